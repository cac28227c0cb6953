"""Letters of slides and handouts: sizes that are computed are those of a browser."""

import shutil
from pathlib import Path

import font_sizes
import nbformat
import pytest
import slide_figures
import slides
import teaching
from bs4 import BeautifulSoup
from sphinx.cmd.build import build_main
from sphinx.errors import ExtensionError
from support import decks
from support.letters import A4, compare, of_deck, of_handout

from biaslib import display

STATIC = Path(__file__).parents[1] / "book" / "static"
DECK = """---
title: T
chapter: x
minutes: 10
---

(start)=
# T

Notes:

Say it.

---

(one)=
## {heading}

![](#fig-{name})

{text}

Notes:

Say it.
"""
BOTH = """<html><body><article><h1>C</h1><section id="s">
<figure id="fig-a"><img src="../_images/tall.svg" alt="Tall."><figcaption>
<p><span class="caption-number">Fig. 1.1 </span>A.</p></figcaption></figure>
<template id="fig-a-wide"><p><img src="../_images/wide.svg" alt="Wide."></p></template>
<figure id="fig-photo"><img src="../_images/photo.png" alt="A photo."></figure>
</section></article></body></html>"""
SHAPES = {"tall": (3.4, 8.9), "wide": (7.2, 3.0)}
LONG = "Words of a line that is as long as lines of slides are"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "_images").mkdir()
    shutil.copytree(STATIC, folder / "_static")
    for name, (width, height) in SHAPES.items():
        figure, axis = display.subplots(height=height, width=width)
        axis.set_title("$10^{-3}$", parse_math=True, fontsize=16)
        axis.set_xlabel("ten points", fontsize=10)
        axis.tick_params(labelsize=11)
        figure.savefig(folder / "_images" / f"{name}.svg", bbox_inches="tight")
    (folder / "teach").mkdir()
    return folder


def deck_of(folder, name, heading="Heading", text="One line."):
    path = folder / "x.md"
    path.write_text(DECK.format(name=name, heading=heading, text=text), encoding="utf-8")
    deck = slides.read(path, ["x"])
    book = slide_figures.Chapters({"x": BOTH}, teaching.article_of)
    slide_figures.fill(deck, book, folder / "teach")
    return deck


def test_the_smallest_letters_of_a_drawing(site, tmp_path):
    assert font_sizes.drawing(site / "_images" / "wide.svg").smallest == pytest.approx(10, abs=0.1)
    own = tmp_path / "own.svg"
    words = '<text font-size="14">a</text><text style="font: italic 9px serif">b</text>'
    own.write_text(f'<svg viewBox="0 0 300 100">{words}</svg>', encoding="utf-8")
    assert font_sizes.drawing(own) == font_sizes.Drawing(300, 100, 9)
    own.write_text('<svg viewBox="0 0 300 100"/>', encoding="utf-8")
    assert font_sizes.size(font_sizes.drawing(own), (10, 10)) > font_sizes.ON_SLIDE
    own.write_text("<svg viewBox='0,0 300,100'/>", encoding="utf-16")
    assert font_sizes.drawing(own) is None
    assert font_sizes.drawing(site / "_images" / "photo.png") is None


def test_small_letters_are_refused_with_what_would_do(site, monkeypatch, capsys):
    font_sizes.check_deck(deck_of(site, "a"), site / "teach")
    assert "x.md, line 19: #fig-a: its smallest" in capsys.readouterr().out  # a lecturer's own deck
    monkeypatch.setattr(font_sizes, "is_own", lambda path: False)
    font_sizes.check_deck(deck_of(site, "a-wide"), site / "teach")
    font_sizes.check_deck(deck_of(site, "photo"), site / "teach")
    with pytest.raises(ExtensionError, match=r"x.md, line 19: #fig-a: .* 1\d\.\d px .* 5\.\d high"):
        font_sizes.check_deck(deck_of(site, "a"), site / "teach")
    text = "\n\n".join([LONG] * 3)
    with pytest.raises(ExtensionError, match=r"#fig-a-wide: .* less than 26; .* 2\.\d high"):
        font_sizes.check_deck(deck_of(site, "a-wide", text=text), site / "teach")


def test_phones_get_the_figure_of_the_page(site, browser):
    parts = slides.pages(deck_of(site, "a-wide"))["slides"]
    path = site / "teach" / "slides_x.html"
    path.write_text(teaching.PAGE.format(**parts), encoding="utf-8")
    for width, shown in ((390, "tall.svg"), (1280, "wide.svg")):
        page = browser.new_page(viewport={"width": width, "height": 800})
        decks.opened(page, path.as_uri())
        assert page.locator("figure img").evaluate("each => each.currentSrc").endswith(shown)
        page.context.close()


def test_a_handout_has_the_wide_figure_under_the_number_of_the_other(site):
    article = teaching.article_of(BOTH, "x", numbers=True)
    with pytest.raises(ExtensionError, match=r"handout_x: Fig. 1.1: .* pt, less than 8"):
        font_sizes.check_handout("x", str(article), site / "teach")
    font_sizes.widen(article)
    assert article.find(id="fig-a").img["alt"] == "Wide."
    assert "Fig. 1.1" in article.find(id="fig-a").get_text()
    font_sizes.check_handout("x", str(article), site / "teach")


def test_slides_show_letters_as_large_as_computed(site, browser):
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    for name, heading, text in (
        ("a", "Tall", "One line."),
        ("a-wide", "Wide", "One line."),
        ("a-wide", "A heading that takes two lines, since it goes on and on", f"{LONG} {LONG}"),
        ("a-wide", "A list", "- one\n- two"),
    ):
        deck = deck_of(site, name, heading, text)
        path = site / "teach" / "slides_x.html"
        path.write_text(teaching.PAGE.format(**slides.pages(deck)["slides"]), encoding="utf-8")
        decks.opened(page, path.as_uri())
        compare(page, site / "teach", 1, of_deck(deck, site / "teach"))
    page.context.close()


def test_handouts_show_letters_as_large_as_computed(site, browser):
    page = browser.new_page(viewport=A4)
    page.emulate_media(media="print")
    for kind in ("", "wide"):
        article = teaching.article_of(BOTH, "x", numbers=True)
        article.find(id="fig-photo").decompose()
        if kind:
            font_sizes.widen(article)
        path = site / "teach" / "handout_x.html"
        parts = {"title": "x", "kind": "handout", "script": "", "body": f"<main>{article}</main>"}
        path.write_text(teaching.PAGE.format(**parts), encoding="utf-8")
        page.goto(path.as_uri())
        compare(page, path.parent, 0.75, of_handout(path))
    page.context.close()


CONF = """
import sys
sys.path.insert(0, {ext!r})
extensions = ["myst_nb", "cells"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
numfig = True
myst_enable_extensions = ["colon_fence"]
"""


def cell_with(figure, tags=()):
    shown = nbformat.v4.new_output("display_data", {"text/markdown": figure.page()})
    return nbformat.v4.new_code_cell("draw()", metadata={"tags": list(tags)}, outputs=[shown])


def test_a_page_keeps_what_is_drawn_for_slides_in_a_template(tmp_path):
    picture, _ = display.subplots()
    a, wide, b = (
        display.figure(picture, "A caption.", name=name, alt=f"Alt of {name}.")
        for name in ("fig-a", "fig-a-wide", "fig-b")
    )
    text = nbformat.v4.new_markdown_cell("# C\n\nSee {numref}`fig-b`.")
    cells = [text, cell_with(a), cell_with(wide, ["slide-figure"]), cell_with(b)]
    source = tmp_path / "source"
    source.mkdir()
    language = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    chapter = nbformat.v4.new_notebook(cells=cells, metadata=language)
    nbformat.write(chapter, source / "index.ipynb")
    (source / "conf.py").write_text(CONF.format(ext=str(STATIC.parent / "_ext")))
    assert build_main(["-q", "-W", str(source), str(tmp_path / "site")]) == 0
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    kept = BeautifulSoup(page, "html.parser").find("template", id="fig-a-wide")
    assert kept.img["alt"] == "Alt of fig-a-wide."
    assert font_sizes.drawing(tmp_path / "site" / kept.img["src"])
    assert "Fig. 2" in page
    assert "Fig. 3" not in page
    assert page.count(">draw<") == page.count("A caption.") == 2
