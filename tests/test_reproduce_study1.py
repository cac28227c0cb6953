"""Study 1 from nothing to a record: beside its authors' files, to whose hashes it is held."""

import pytest
from support import from_nothing, released
from test_reproduce import is_a_taste

from biaslib import runtime


@pytest.mark.slow
@pytest.mark.skipif(not released.REAL.is_dir(), reason="the authors' files may not be passed on")
@pytest.mark.parametrize("size", runtime.SIZES)
def test_study_1_goes_from_nothing_to_the_same_record(size, tmp_path):
    repository = from_nothing.published(tmp_path / "repositories")
    found = from_nothing.rehearse(repository, "ross2021", size)
    assert "Recorded in runs/" in found.told
    if size == "taste":
        is_a_taste(found)
