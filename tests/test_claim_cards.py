"""The claims as cards: what stands on them is what the data say, and each address leads to one."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from biaslib import reproduction, stimuli
from companion import what_holds_up as chapter

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "book" / "static"
FILES = sorted(Path(reproduction.__file__).parent.glob("data/*.json"))
CLAIMS = {
    claim["id"].replace("/", "-"): claim
    for path in FILES
    for claim in json.loads(path.read_text(encoding="utf-8"))["claims"]
}
"""As the files have them, by the address of their card."""

NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?=, |$)")
HTML = chapter.ClaimCards()._repr_html_()
PAGE = BeautifulSoup(HTML, "html.parser")


def told(name: str, part: str) -> list[str]:
    """The lines of a card below one of its headings."""
    lines = PAGE.find(id=name).find("dt", string=part)
    following = lines.find_next_siblings() if lines else []
    return [each.get_text() for each in itertools.takewhile(lambda e: e.name == "dd", following)]


def test_every_claim_has_one_card_and_every_link_leads_to_one():
    names = [each["id"] for each in PAGE.select("[id]")]
    assert len(set(names)) == len(names)
    assert {each["id"] for each in PAGE.select("details.claim")} == set(CLAIMS)
    assert {link["href"].removeprefix("#") for link in PAGE.select("a")} <= set(CLAIMS)


def test_groups_hold_as_many_claims_as_the_files_and_the_scoreboard_count():
    counted = Counter((name.partition("-")[0], each["answer"]) for name, each in CLAIMS.items())
    board = chapter.scoreboard().set_index("paper")
    for paper, title in chapter.NAMES.items():
        for answer in reproduction.ANSWERS:
            heading = PAGE.find(id=f"{paper}-{answer.replace(' ', '-')}")
            cards = heading.parent.select(".claim")
            assert {CLAIMS[card["id"]]["answer"] for card in cards} <= {answer}
            assert {card.summary.strong.get_text() for card in cards} <= {answer}
            assert len(cards) == counted[paper, answer] == board.loc[title, answer]
            assert heading.get_text().endswith(f": {len(cards) or 'none'}")
    assert sum(counted.values()) == len(CLAIMS) == 143


@pytest.mark.parametrize("name", CLAIMS)
def test_a_card_says_what_the_file_says(name):
    claim = CLAIMS[name]
    summary = PAGE.find(id=name).summary.get_text()
    assert summary == f"{claim['claim']} {claim['answer']}"
    quoted = told(name, "In their words")
    for line, each in zip(quoted, claim["quotations"], strict=True):
        assert line.startswith(f"“{each['quotation']}” ({each['place']})")
    assert told(name, "What would count")[0].startswith(claim["counts"])
    remark = [claim["remark"].replace("-0.", "−0.")] if claim["remark"] else []
    assert told(name, "Remark") == remark
    for line, number in zip(told(name, "Numbers"), claim["numbers"] or [None], strict=True):
        if number is None:
            assert line == "none printed"
            continue
        found = NUMBER.findall(line.removeprefix(f"{number['what']}: "))
        value = number["value"]
        values = list(value.values()) if isinstance(value, dict) else [value]
        assert [float(each.replace("−", "-").replace(",", "")) for each in found] == values


def test_harmful_words_lie_behind_a_line_that_says_so():
    words = stimuli.taxonomy("sobit")
    kinds = words["bias_type"].isin(["Criminal justice", "Portrayal in Media"])
    harmful = {word.lower() for word in words[kinds]["word"]} - {"hacker"}
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, harmful))})\b")
    assert len(harmful) == 50
    for line in PAGE.select(".claims-more"):
        holds = bool(pattern.search(line.get_text().lower()))
        assert line.summary.get_text().endswith("harmful words among them") == holds
    in_sight = [card.summary.get_text() for card in PAGE.select(".claims-group > .claim")]
    assert [text for text in in_sight if pattern.search(text.lower())] == []


# In a browser


@pytest.fixture
def page(browser, tmp_path):
    """The cards with the site's script, on a page of their own."""
    (tmp_path / "page.html").write_text(
        '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
        "<title>Claims</title>"
        f"<style>{(STATIC / 'custom.css').read_text(encoding='utf-8')}</style>"
        f"<main><h1>Claims</h1><h2>All</h2>{HTML}</main>"
        f"<script>{(STATIC / 'custom.js').read_text(encoding='utf-8')}</script></html>",
        encoding="utf-8",
    )
    opened, errors = browser.new_page(viewport={"width": 390, "height": 844}), []
    opened.on("pageerror", lambda error: errors.append(error))
    opened.home = (tmp_path / "page.html").as_uri()
    yield opened
    assert errors == []
    opened.close()


def seen(page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('.claim')].filter(e => e.checkVisibility()).map(e => e.id)"
    )


HEADLINES = {name for name, each in CLAIMS.items() if each["headline"]}


def of(paper: str, answer: str) -> set[str]:
    return {
        name for name, each in CLAIMS.items() if name.startswith(paper) and each["answer"] == answer
    }


def test_a_group_with_harmful_words_stays_folded_until_its_line_is_opened(page):
    page.goto(page.home + "#hamidieh2023-follows")
    every = of("hamidieh2023", "follows")
    assert set(seen(page)) == every & HEADLINES
    folded = f"{len(every)} of 143 claims, {len(every - HEADLINES)} of them folded away"
    assert page.inner_text("[role=status]") == folded
    page.get_by_role("button", name="all four papers").click()
    assert set(seen(page)) == of("", "follows") - (every - HEADLINES)
    page.locator("#hamidieh2023-follows ~ .claims-more > summary").click()
    assert set(seen(page)) == of("", "follows")
    page.get_by_text(f"{len(of('', 'follows'))} of 143 claims", exact=True).wait_for()
