"""Decks: what their Markdown becomes, what is refused, and how they are shown."""

import re
import shutil
from pathlib import Path

import policy
import pytest
import slide_figures
import slides
import teaching
from support import decks
from support.browser import axe_violations

STATIC = Path(__file__).parents[1] / "book" / "static"
LONG = " + ".join([r"\sum_{x \in X} s(x, A_x \cup A_y)"] * 2)

PAGE = rf"""<html><body><article><section id="a"><h1>Chapter</h1>
<figure id="fig-wide"><img alt="A 'wide' line &amp; more." src="../_images/wide.svg"><figcaption>
<p>Never shown.</p></figcaption></figure>
<figure id="fig-tall"><img alt="A tall one." src="../_images/tall.svg"></figure>
<figure id="fig-mute"><img src="../_images/tall.svg"></figure>
<div class="math" id="equation-eq-d"><span class="eqno">(1.1)</span>\[d &lt; {LONG}\]</div>
<div class="table-scroll" id="table-1"><table><tr><th>word</th><td>7</td></tr></table></div>
</section></article></body></html>"""

SLIDE = "## Heading\n\nText.\n\nNotes:\n\nSay it.\n"
SHOWN = [
    "# A deck\n\nWith $d$.\n\nNotes:\n\nSay *this*.\n",
    "## Wide\n\n![](#fig-wide)\n\nA line.\n\nNotes:\n\nTwo words.\n",
    "## Tall\n\n![](#fig-tall)\n\n- a line\n\nNotes:\n\nNo.\n",
    "## A formula\n\n![](#eq-d)\n\nNotes:\n\nNo.\n",
    "## A table\n\n![](#table-1)\n\nNotes:\n\nNo.\n",
    "## Own\n\n| a | b |\n|---|---|\n| 1 | $2$ |\n\nNotes:\n\nNo.\n",
    "## Many words\n\n" + "- one two three four five six seven eight nine ten\n" * 4,
]


def named(parts: list[str]) -> list[str]:
    return [f"(s{number})=\n{part}" for number, part in enumerate(parts, start=1)]


def written(folder: Path, parts: list[str], chapter="x", minutes="minutes: 30") -> Path:
    path = folder / "x.md"
    front = f"---\ntitle: A <deck>\nchapter: {chapter}\n{minutes}\n---\n"
    path.write_text(front + "\n---\n\n".join(named(parts)), encoding="utf-8")
    return path


def deck_of(folder: Path, parts: list[str]) -> slides.Deck:
    parts = parts + [SLIDE] * (12 - len(parts))
    found = slides.read(written(folder, parts), ["x"])
    slide_figures.fill(found, slide_figures.Chapters({"x": PAGE}, teaching.article_of), folder)
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> str:
    """Return the address, in a folder on disk, of the pages of a small deck."""
    site = tmp_path_factory.mktemp("site")
    for name, (width, height) in {"wide": (400, 200), "tall": (200, 400)}.items():
        drawing = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
            f'<rect width="{width}" height="{height}" fill="#7a9"/></svg>'
        )
        (site / "_images").mkdir(exist_ok=True)
        (site / "_images" / f"{name}.svg").write_text(drawing, encoding="utf-8")
    shutil.copytree(STATIC, site / "_static")
    (site / "teach").mkdir()
    for kind, parts in slides.pages(deck_of(site, SHOWN)).items():
        page = policy.kept(teaching.PAGE.format(**parts), site / "_static", "../")
        (site / "teach" / f"{kind}_x.html").write_text(page, encoding="utf-8")
    return (site / "teach").as_uri()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    yield opened
    opened.context.close()


def test_a_swipe_shows_the_next_slide(shown, browser):
    phone = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = phone.new_page()
    decks.opened(page, f"{shown}/slides_x.html")
    touch = phone.new_cdp_session(page)
    for kind, place in (("Start", 330), ("Move", 250), ("Move", 90), ("End", None)):
        points = [] if place is None else [{"x": place, "y": 400}]
        touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    page.wait_for_selector("#s2.present")
    phone.close()


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_deck_and_its_notes_can_be_read_by_everybody(shown, page, mode):
    page.emulate_media(color_scheme=mode)
    decks.opened(page, f"{shown}/slides_x.html")
    for key in ("Home", *["ArrowRight"] * 5, "Escape"):
        page.keyboard.press(key)
        assert page.evaluate("() => document.getAnimations().length") == 0  # reduced motion
        assert axe_violations(page) == []
    assert page.title() == "Slides: A <deck>"
    assert page.locator("h1").count() == 1
    assert [page.locator(f"#s{n}").get_attribute("aria-hidden") for n in (5, 6, 7)] == [
        "true", None, "true",
    ]  # fmt: skip
    page.goto(f"{shown}/notes_x.html")
    assert axe_violations(page) == []
    assert page.locator("h2").count() == 12


def test_the_page_of_notes_follows_its_deck(shown, page):
    decks.opened(page, f"{shown}/slides_x.html")
    page.keyboard.press("ArrowRight")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Notes").click()
    notes = opened.value
    notes.wait_for_selector("#s2[aria-current]")
    page.keyboard.press("ArrowRight")
    notes.wait_for_selector("#s3[aria-current]")
    assert notes.locator("[aria-current]").count() == 1
    notes.get_by_role("timer").filter(has_text=re.compile(r"^\d+:0[1-9]$")).wait_for()
    notes.get_by_role("link", name="Slide 4").click()
    page.wait_for_selector("#s4.present")
    notes.wait_for_selector("#s4[aria-current]")


@pytest.mark.parametrize("query", ["", "?print-pdf"])
def test_a_deck_prints_a_page_a_slide(shown, page, query):
    decks.opened(page, f"{shown}/slides_x.html{query}")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 12
