"""Cards load and link to nothing, and sheets fit on paper."""

import re
import shutil
from pathlib import Path

import cards
import plans
import pytest
import yaml
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError
from support.browser import axe_violations

ROOT = Path(__file__).parents[1]
CARDS = ROOT / "book" / "cards"
SIZES = """() => [...document.querySelectorAll('.sheet *')].filter(each => each.innerText)
    .map(each => parseFloat(getComputedStyle(each).fontSize) * 0.75)"""
OVER = """() => [...document.querySelectorAll('.sheet > div')].filter(each =>
    each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1).length"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teach")
    (folder / "card_gone.html").touch()
    cards.write_all(CARDS, folder)
    assert not (folder / "card_gone.html").exists()
    return folder


def test_a_card_is_small_loads_nothing_and_links_to_nothing(made):
    pages = sorted(made.glob("card_*.html"))
    assert {each.stem for each in pages} >= {"card_purse", "card_tests"}
    for path in pages:
        page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        assert path.stat().st_size < 5_000
        assert not page.find_all(["script", "a", "img", "form"])
        assert [each["href"] for each in page.find_all(href=True)] == ["data:,"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_cards_and_sheets_can_be_read_by_everybody(made, browser, mode):
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=mode)
    for path in sorted(made.glob("*.html")):
        page.goto(path.as_uri())
        assert axe_violations(page) == [], path.name
    page.close()


def test_what_is_printed_has_letters_of_eleven_points_and_stays_in_its_lines(made, browser):
    page = browser.new_page()
    page.emulate_media(media="print")
    for path in sorted(made.glob("print_*.html")):
        page.goto(path.as_uri())
        assert min(page.evaluate(SIZES)) >= 11, path.name
        assert page.evaluate(OVER) == 0, path.name
    page.close()


def test_thirty_slips_are_ten_of_each_heap(made):
    page = BeautifulSoup((made / "print_ninety_minutes.html").read_text("utf-8"), "html.parser")
    halves = [each.find("div").get_text(strip=True) for each in page.select(".halves")]
    assert {each: halves.count(each) for each in halves} == {
        f"The {who} is carrying a": 10 for who in ("woman", "man", "person")
    }


def test_a_card_keeps_all_its_parts_and_its_title_is_text(tmp_path):
    (tmp_path / "own.md").write_text("# A & <b>\n\n## The first\n\n## The second\n", "utf-8")
    cards.write_all(tmp_path, tmp_path)
    page = (tmp_path / "card_own.html").read_text("utf-8")
    assert "<title>A &amp; &lt;b&gt;</title>" in page
    assert "The first" in page


def test_a_card_that_is_not_there_is_named_with_file_and_line(tmp_path):
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    shutil.copytree(ROOT / "book", tmp_path / "book", symlinks=True)
    path = plans.plan_file(tmp_path, "ninety_minutes")
    plan = yaml.safe_load(path.read_text("utf-8"))
    plan["sessions"][0]["slots"][1]["card"] = "hat"
    path.write_text(yaml.safe_dump(plan), "utf-8")
    line = path.read_text("utf-8").partition("card: hat")[0].count("\n") + 1
    with pytest.raises(ExtensionError, match=rf"ninety_minutes.yml, line {line}\).*hat\.md"):
        plans.read(tmp_path, "ninety_minutes")


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        ("{say: x, card: purse A}", "sheet 1: a sheet has say, grid"),
        ("{say: x, grid: 2x2, card: purse Z}", "sheet 1: the card purse has no part 'Z'"),
        ("{say: x, grid: 2x2, card: hat A}", "sheet 1: there is no card"),
    ],
)
def test_a_sheet_that_cannot_be_printed_is_refused(tmp_path, sheet, said):
    shutil.copytree(CARDS, tmp_path / "book" / "cards")
    path = tmp_path / "book" / "cards" / "half_day.yml"
    path.write_text(f"- {sheet}\n", "utf-8")
    with pytest.raises(ExtensionError, match=f"half_day.yml, {re.escape(said)}"):
        cards.printed(path)
