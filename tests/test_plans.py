"""Plans for teaching: their minutes add up, and what they name is there."""

import re
import shutil
from pathlib import Path

import plan_zips
import plans
import pytest
import yaml
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[1]
NAMES = ["ninety_minutes", "half_day", "four_weeks", "semester"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def own(name):
    """A plan of the book, as it is written."""
    return yaml.safe_load(plans.plan_file(ROOT, name).read_text("utf-8"))


def test_a_plan_that_does_not_add_up_stops_the_build(tmp_path):
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    shutil.copytree(ROOT / "book", tmp_path / "book", symlinks=True)
    plan = own("ninety_minutes")
    plan["sessions"][0]["minutes"] += 1
    plans.plan_file(tmp_path, "ninety_minutes").write_text(yaml.safe_dump(plan), "utf-8")
    with pytest.raises(ExtensionError, match="'ninety_minutes', session"):
        plans.read(tmp_path, "ninety_minutes")


@pytest.mark.parametrize("name", NAMES)
def test_what_each_plan_of_the_book_names_is_there(name):
    assert plans.read(ROOT, name)["sessions"]


def test_the_table_for_teachers_has_every_chapter_with_its_own_minutes():
    text = (ROOT / "book" / "teaching.md").read_text("utf-8")
    table = text.split(":name: teaching-chapters")[1].split("```")[0]
    rows = dict(re.findall(r"\* - \[\]\(\.\./notebooks/(\S+)\)\n  - (.+)", table))
    cards = {path.name: plans.card(path) for path in NOTEBOOKS}
    assert rows == {name: f"{card[0]} + {card[1]}" for name, card in cards.items()}


def test_the_course_has_every_chapter_in_a_session():
    named = plan_zips.pages_of("four_weeks", own("four_weeks"))
    stems = {each.partition("/")[2] for each in named if each.startswith("notebooks/")}
    assert stems == {path.stem for path in NOTEBOOKS}


ANSWERED = {
    "tests": {"notebooks/text_encoders", "book/index"},
    "purse": {"notebooks/study2_masked"},
}
"""What prints the answers of the bet on a card."""


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_sent_to_the_answers_of_a_bet_before_it(name):
    plan = own(name)
    for bet, answers in ANSWERED.items():
        seen = []
        for session in plan["sessions"]:
            seen += [page for each in session.get("read", []) for page in each["pages"]]
            for slot in session["slots"]:
                seen += [each for each in [slot.get("card")] if each] + slot.get("pages", [])
        before = seen[: min((n for n, each in enumerate(seen) if each == bet), default=0)]
        assert not answers & set(before), bet
