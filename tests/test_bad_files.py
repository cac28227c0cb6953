"""Every reader of files that users bring, with every damage: read rightly, or refused by name."""

import os

import pytest
from support import bad_files

CASES = bad_files.cases()


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_a_bad_file_is_read_rightly_or_refused_by_its_name(tmp_path, name, damage):
    if damage == "may not be read" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    assert bad_files.outcome(name, damage, tmp_path) in ("right", "refused")


def test_there_are_at_least_three_hundred_bad_files():
    assert len(CASES) == len(set(CASES)) >= 300
