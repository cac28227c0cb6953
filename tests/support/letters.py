"""How large the letters of figures are: on pages, on slides and on paper."""

from pathlib import Path

import font_sizes
from bs4 import BeautifulSoup

COLUMN = 528
"""Width in points of the book's text column on a desktop; a wider figure is made smaller."""

A4 = {"width": 703, "height": 1031}
"""A sheet without its margins, in pixels of a style sheet."""

MEASURED = """() => [...document.querySelectorAll("figure img")].map(
  each => [each.getAttribute("src"), each.getBoundingClientRect().width])"""


def smallest_letters(path: Path) -> float:
    """Return the size in points of the smallest letters of a picture on its page."""
    drawn = font_sizes.drawing(path)
    return drawn.smallest * min(1.0, COLUMN / drawn.width)


def of_deck(deck, folder: Path) -> list[float]:
    """Return the sizes that are computed of a filled deck's figures, in their order."""
    pairs = [(slide, figure) for slide in deck.slides for figure in slide.body("figure")]
    drawn = [(slide, font_sizes.drawing(folder / figure.img["src"])) for slide, figure in pairs]
    return [font_sizes.size(each, font_sizes.room(slide, each)) for slide, each in drawn if each]


def of_handout(path: Path) -> list[float]:
    """Return the sizes that are computed of a handout's figures, in their order."""
    figures = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")("figure")
    drawn = [(each, font_sizes.drawing(path.parent / each.img["src"])) for each in figures]
    return [
        font_sizes.size(each, font_sizes.on_paper(figure, each)) for figure, each in drawn if each
    ]


def compare(page, folder: Path, unit: float, computed: list[float]) -> None:
    """Compare computed sizes with those that a page shows, of which ``unit`` is a pixel."""
    found = [each for each in page.evaluate(MEASURED) if each[0].endswith(".svg")]
    assert len(found) == len(computed)
    for (source, width), expected in zip(found, computed, strict=True):
        drawn = font_sizes.drawing(folder / source)
        shown = drawn.smallest * width / drawn.width * unit
        assert 0.9 * shown <= expected <= 1.05 * shown, (source, shown, expected)
