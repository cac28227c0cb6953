"""The short form of the standing attack; ``make attack`` is the long one."""

import csv

import pytest
from attack import code, store
from attack.__main__ import HEADINGS, RESULTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(2))
def test_any_damage_to_the_store_heals(seed):
    outcome = store.damages(40, seed)
    assert (outcome.tried, outcome.harm) == (40, 0)


def test_nothing_that_a_checkpoint_or_picture_holds_is_run():
    outcome, seen = code.hidden_code()
    assert [each for each in seen if each[2]] == []
    assert (outcome.tried, outcome.harm) == (len(seen), 0), seen
    assert outcome.tried >= 140
    of_libraries = [what for what, told, _ in seen if "cannot be read as" in told]
    assert len(of_libraries) > 30


def test_the_books_table_is_of_the_long_form_and_shows_no_harm():
    with open(RESULTS, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == list(HEADINGS.values())
    tried = {row["attack"]: int(row["tried"]) for row in rows}
    least = {
        "a process killed while it writes into the store": 200,
        "the store damaged": 400,
        "bad files": 300,
        "answers of a hostile server": 100,
        "checkpoints and pictures that hold code": 140,
    }
    for attack, n in least.items():
        assert tried[attack] >= n
    harmed = [row for row in rows if any(int(row[name]) for name in list(HEADINGS.values())[2:])]
    assert harmed == []
