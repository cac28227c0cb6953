"""Letters that are read from the back row and on paper: the build refuses figures with small ones.

Sizes are computed from a drawing's SVG and from the room that ``slides.css`` and ``teaching.css``
leave it; pictures of other kinds are not looked at. A figure ``fig-x-wide`` is ``fig-x`` drawn for
slides and paper, in a cell tagged ``slide-figure`` (:mod:`cells`).
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag
from slides import Deck, Slide, is_own
from sphinx.errors import ExtensionError

ON_SLIDE, ON_PAPER = 26, 8
"""The least font size: in pixels of a slide of 1920 by 1080, and in points of a sheet of A4."""

EM, LINE = 56, 1.35 * 56
"""Size of a slide's text and height of its lines, in those pixels."""

ROOM = 1707, 956
"""Width and height of a slide within its padding."""

TALL = 1.15
"""A figure narrower than this for its height stands beside the text, as in ``slides.js``."""

SHEET, HIGHEST, WIDE, CAPTION = 527, 210, 198, 100
"""In points, on a handout: width of the text; height of a figure, and of a wide one, at most; what
a caption takes of the width beside a figure."""

VIEW = re.compile(r"viewBox=[\"'][\d.-]+[\s,]+[\d.-]+[\s,]+([\d.]+)[\s,]+([\d.]+)[\"']")
GLYPHS = re.compile(r'<g [^>]*?\bscale\(([\d.]+) -[\d.]+\)"[^>]*>(.*?)</g>', re.S)
SMALLER = re.compile(r"<use [^>]*\bscale\(([\d.]+)\)")
WRITTEN = re.compile(r"font(?:-size)?\s*[:=]\s*[\"']?(?:[a-z]+ )*([\d.]+)")


@dataclass
class Drawing:
    """An SVG's width and height, and the least font size in it, in its own units, or infinity."""

    width: float
    height: float
    smallest: float

    @property
    def ratio(self) -> float:
        return self.width / self.height


def drawing(path: Path) -> Drawing | None:
    """Return what an SVG says of itself; None of a file of another kind, or without a ``viewBox``.

    Matplotlib draws letters as outlines of 100 units, which it scales, and once more within a word
    for an index; others write the size.
    """
    if path.suffix != ".svg":
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    view = VIEW.search(text)
    if view is None:
        return None
    sizes = [float(each) for each in WRITTEN.findall(text)]
    for scale, glyphs in GLYPHS.findall(text):
        sizes.append(100 * float(scale) * min([1, *map(float, SMALLER.findall(glyphs))]))
    return Drawing(float(view[1]), float(view[2]), min(sizes, default=math.inf))


def check_deck(deck: Deck, folder: Path) -> None:
    """Check the figures of a filled deck, whose page stands in ``folder``; print it of an own deck.

    Raises
    ------
    ExtensionError
        Naming file, line and figure, the size of its letters, and how wide a figure would do.
    """
    for each in deck.slides:
        for figure in each.body.find_all("figure"):
            drawn = drawing(folder / figure.img["src"])
            if drawn:
                where = f"{each.at(figure['data-label'])}: {figure['data-label']}"
                say = print if is_own(deck.path) else None
                refuse_small(drawn, room(each, drawn), ON_SLIDE, "px of 1080", where, say)


def check_handout(stem: str, sheet: str, folder: Path) -> None:
    """Check the figures of a handout, which stands in ``folder``; raise as :func:`check_deck`."""
    for figure in BeautifulSoup(sheet, "html.parser").find_all("figure"):
        drawn = drawing(folder / figure.img["src"])
        if drawn:
            number = figure.find(class_="caption-number")
            label = number.get_text(strip=True) if number else figure.img["src"]
            where = f"handout_{stem}: {label}"
            refuse_small(drawn, on_paper(figure, drawn), ON_PAPER, "pt", where)


def refuse_small(drawn: Drawing, place, least: float, unit: str, where: str, say=None) -> None:
    found = size(drawn, place)
    if found < least:
        width, height = (each * drawn.smallest / least / 72 for each in place)
        text = (
            f"{where}: its smallest letters have {found:.1f} {unit}, less than {least}; with these "
            f"letters, draw it at most {width:.1f} inches wide and {height:.1f} high"
        )
        if say is None:
            raise ExtensionError(text)
        say(text)


def size(drawn: Drawing, place: tuple[float, float]) -> float:
    """Return the least font size of a drawing that fills a place of a width and a height."""
    return drawn.smallest * min(place[0] / drawn.width, place[1] / drawn.height)


def room(slide: Slide, drawn: Drawing) -> tuple[float, float]:
    """Return width and height that a slide's words leave for its figure."""
    width, height = ROOM
    if drawn.ratio < TALL:
        return width, height
    heading = BeautifulSoup(slide.heading, "html.parser").get_text()
    height -= 1.2 * 1.35 * EM * lines(heading, 1.35 * EM) + 0.25 * 1.35 * EM
    for each in slide.body.find_all(["p", "li", "tr", "div"]):
        height -= LINE * lines(each.get_text(), EM) + EM / 2
    return width, height - EM / 2


def lines(text: str, em: float) -> int:
    """Return how many lines a text takes on a slide, in letters that are wide on average."""
    return math.ceil(len(text.strip()) * 0.55 * em / ROOM[0])


def on_paper(figure: Tag, drawn: Drawing) -> tuple[float, float]:
    """Return width and height of a figure of a handout at most; only wide ones are enlarged."""
    if "wide" in figure.get("class", []):
        return SHEET, WIDE
    return min(SHEET - CAPTION, drawn.width), HIGHEST


def widen(article: Tag) -> None:
    """Let figures of a chapter have the drawings for slides that it keeps of them."""
    for kept in article.find_all("template"):
        figure = article.find(id=kept["id"].removesuffix("-wide"))
        if figure and figure is not kept:
            figure.img.replace_with(kept.img)
            figure["class"] = [*figure.get("class", []), "wide"]
