"""Every reader of files that users bring, with every damage: read rightly, or refused by name."""

import os

import pytest
from support import bad_files


@pytest.mark.parametrize(("name", "damage"), bad_files.cases())
def test_a_bad_file_is_read_rightly_or_refused_by_its_name(tmp_path, name, damage):
    if damage == "may not be read" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    assert bad_files.outcome(name, damage, tmp_path) in ("right", "refused")
