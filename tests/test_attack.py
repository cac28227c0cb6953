"""The short form of the standing attack; ``make attack`` is the long one."""

import csv

import pytest
from attack import code, store
from attack.__main__ import RESULTS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(2))
def test_any_damage_to_the_store_heals(seed):
    outcome = store.damages(40, seed)
    assert (outcome.tried, outcome.harm) == (40, 0)


def test_nothing_that_a_checkpoint_or_picture_holds_is_run():
    outcome, seen = code.hidden_code(("clip", "vl-bert", "open-clip"))
    assert (outcome.tried, outcome.harm) == (len(seen), 0), seen
    assert {name for name, *_ in seen} > {f"clip: {change}" for change in code.EVERYWHERE}


def test_the_books_table_shows_no_harm():
    with open(RESULTS, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    harm = ("work lost", "wrong answers", "raw errors", "code run")
    assert {row[name] for row in rows for name in harm} == {"0"}
