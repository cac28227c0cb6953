"""Plans for teaching: their minutes add up, and what they name is there."""

import re
import shutil
from pathlib import Path

import plan_zips
import plans
import pytest
import yaml
from sphinx.errors import ExtensionError

from tools import make_slides

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


MISTYPED = {
    "a tab": ("        show: the bet", "\tshow: the bet", "line 16: put .* no tab"),
    "a colon": ("show: the bet", "show: a bet: the", "line 16: put a text with a colon between"),
    "a space too many": ("    minutes: 90", "     minutes: 90", "line 4: .*as many spaces"),
    "a word for a number": ("minutes: 90", "minutes: ninety", "line 4: .*`minutes` is a number"),
    "a deck in no list": ("[study2_masked title..bet]", "study2_masked", "line 17: .* is a list"),
    "nothing behind a key": ("late: raise hands instead of cards", "late:", "line 20: .*a text"),
    "a quotation mark": ('title: "Ninety', 'title: "Ninety" "', "line 1: "),
    "late by more than there is": ("(saves 7", "(saves 8", "line 34.*saves 8 minutes of 7"),
    "a minute too few": (
        "minutes: 8\n        show: the",
        "minutes: 2\n        show: the",
        "at least",
    ),
    "comments alone": (None, "# study2_masked\n", "it is empty"),
    "another encoding": (None, "title: caf\xe9 study2_masked", "save it in the encoding UTF-8"),
}


@pytest.mark.parametrize("name", MISTYPED)
def test_a_plan_that_is_mistyped_is_refused_with_file_and_what_to_do(name, tmp_path):
    old, new, expected = MISTYPED[name]
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    shutil.copytree(ROOT / "book", tmp_path / "book", symlinks=True)
    path = plans.plan_file(tmp_path, "ninety_minutes")
    text = path.read_text("utf-8")
    assert old is None or old in text
    path.write_text(text.replace(old, new, 1) if old else new, "utf-8" if old else "latin-1")
    with pytest.raises(ExtensionError, match=f"(?s)ninety_minutes.yml.*{expected}") as error:
        plans.read(tmp_path, "ninety_minutes")
    found = make_slides.missed("study2_masked", tmp_path)
    assert found == ([] if name == "comments alone" else [str(error.value)])


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


CARDS = {"purse": "study2_masked", "tests": "text_encoders"}
"""The deck whose bet a card asks."""
ANSWERED = {"book/index", "notebooks/what_holds_up", "notebooks/published_numbers"}
"""What prints the answers of bets besides the chapter of the deck."""


def steps(plan):
    """What a class reads or sees, a reading or a slot a step: the pages, and decks with a bet."""
    for session in plan["sessions"]:
        for each in session.get("read", []) + session["slots"]:
            decks = [plans.deck(text, "")[0] for text in each.get("decks", [])]
            shown = [plans.slides_of(text, ROOT, "") for text in each.get("decks", [])]
            bets = {stem for stem, named in zip(decks, shown, strict=True) if "bet" in named}
            bets |= {CARDS[each["card"]]} if each.get("card") in CARDS else set()
            yield {page.partition("#")[0] for page in each.get("pages", [])}, bets


def told_before(plan):
    """The decks whose bet comes after a page that prints its answer, with these pages."""
    seen, made, found = set(), set(), {}
    for pages, bets in steps(plan):
        seen |= pages
        for stem in bets - made:
            if early := seen & (ANSWERED | {f"notebooks/{stem}"}):
                found[stem] = early
        made |= bets
    return found


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_sent_to_the_answers_of_a_bet_before_it(name):
    assert told_before(own(name)) == {}


def test_a_chapter_that_is_read_for_the_session_of_its_bet_is_found():
    plan = own("semester")
    sessions = plan["sessions"]
    bet = next(n for n, each in enumerate(sessions) if "study3_clip_audit title..bet" in str(each))
    sessions[bet]["read"].append(sessions[bet + 1]["read"][0])
    assert told_before(plan) == {"study3_clip_audit": {"notebooks/study3_clip_audit"}}


@pytest.mark.parametrize("name", NAMES)
def test_every_plan_has_eight_minutes_on_who_is_described_and_who_was_asked(name):
    slots = [slot for session in own(name)["sessions"] for slot in session["slots"]]
    asked = ("study2_masked described..harms", "what_is_measured labels")
    held = [slot for slot in slots if set(asked) & set(slot.get("decks", []))]
    assert max((slot["minutes"] for slot in held), default=0) >= 8
