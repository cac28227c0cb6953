"""The claims as cards: what stands on them is what the data say, and each address leads to one."""

import itertools
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import cells
import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from biaslib import published, reproduction, stimuli
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


def computed(number: dict) -> str:
    """What a number is of, whatever it is called."""
    return json.dumps({key: part for key, part in number.items() if key != "what"}, sort_keys=True)


def alike(one: dict, other: dict) -> bool:
    """Tell whether claims have a criterion or a quotation in common, or half of their numbers."""
    quoted = [{each["quotation"] for each in claim["quotations"]} for claim in (one, other)]
    numbers = [set(map(computed, claim["numbers"])) for claim in (one, other)]
    shared, fewest, most = len(set.intersection(*numbers)), *sorted(map(len, numbers))
    half = shared > 0 and (shared == fewest or 2 * shared >= most)
    return one["counts"] == other["counts"] or bool(set.intersection(*quoted)) or half


def named(name: str) -> set[str]:
    """The claims that a card's remark links to."""
    links = PAGE.find(id=name).select("dd a")
    return {each["href"].removeprefix("#") for each in links} - {name}


def test_claims_alike_with_other_answers_name_each_other_in_their_remarks():
    pairs = [
        (one, other)
        for one, other in itertools.combinations(CLAIMS, 2)
        if one.partition("-")[0] == other.partition("-")[0]
        and CLAIMS[one]["answer"] != CLAIMS[other]["answer"]
        and alike(CLAIMS[one], CLAIMS[other])
    ]
    assert ("ross2021-claim-5", "ross2021-claim-6") in pairs
    assert len(pairs) > 30
    assert [pair for pair in pairs if pair[1] not in named(pair[0])] == []
    assert [name for name in CLAIMS for other in named(name) if name not in named(other)] == []


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


def test_open_questions_are_those_that_the_book_lists():
    given = {name: told(name, "Open question") for name in CLAIMS}
    listed = set(published.errata()["id"])
    assert given == {
        name: [each["erratum"]] * bool(each["erratum"]) for name, each in CLAIMS.items()
    }
    assert {each for many in given.values() for each in many} <= listed


def test_a_link_of_the_book_may_lead_to_any_card_and_group():
    """MyST warns of a target that is not in a page's ``myst_slugs``, which fails the build."""
    page = nodes.container("", nodes.raw("", HTML, format="html"))
    env = SimpleNamespace(docname="page", metadata=defaultdict(dict))
    env.metadata["page"]["myst_slugs"] = {"a-heading": (1, "a-heading", "A heading")}
    cells.name_targets(SimpleNamespace(env=env), page)
    known = {name: target for name, (_, target, _) in env.metadata["page"]["myst_slugs"].items()}
    addresses = [each["id"] for each in PAGE.select("[id]")]
    assert known == {name: name for name in ["a-heading", *addresses]}
    assert len(addresses) == 143 + 4 * 5


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


def test_an_address_chooses_a_group_and_a_card(page):
    page.goto(page.home + "#ross2021-follows")
    assert set(seen(page)) == of("ross2021", "follows")
    page.get_by_text(f"{len(of('ross2021', 'follows'))} of 143 claims", exact=True).wait_for()
    pressed = page.locator("button[aria-pressed=true]").all_inner_texts()
    assert pressed == ["Ross et al. 2021", "follows"]
    page.goto(page.home + "#hamidieh2023-claim-36")
    assert page.locator("#hamidieh2023-claim-36 dl").is_visible()
    folded = set(CLAIMS) - HEADLINES - of("hamidieh2023", CLAIMS["hamidieh2023-claim-36"]["answer"])
    page.get_by_text(f"143 of 143 claims, {len(folded)} of them folded away").wait_for()


def test_buttons_choose_with_the_keyboard_and_write_the_address(page):
    page.goto(page.home)
    for name in ("Zhou et al. 2022", "in part"):
        page.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
    assert set(seen(page)) == of("zhou2022", "in part")
    assert page.url.endswith("#zhou2022-in-part")
    assert page.inner_text("[role=status]") == f"{len(of('zhou2022', 'in part'))} of 143 claims"
    page.get_by_role("button", name="does not follow").click()
    assert seen(page) == []
    assert page.inner_text("[role=status]") == "0 of 143 claims"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


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


def test_on_paper_all_claims_are_open_but_those_behind_a_line_that_warns(page):
    page.goto(page.home)
    page.emulate_media(media="print")
    warned = {each["id"] for each in PAGE.select("[data-harmful] .claim")}
    assert set(seen(page)) == set(CLAIMS) - warned
    closed = "e => e.filter(each => !each.checkVisibility()).map(each => each.parentElement.id)"
    assert set(page.locator(".claim dl").evaluate_all(closed)) == warned
