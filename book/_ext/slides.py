"""Decks of slides, written in Markdown, with figures, formulas and tables of the built chapters.

A deck is ``book/slides/<chapter>.md``: between lines of three dashes its ``title``, ``chapter`` and
``minutes``, then slides, with such a line between two of them. A slide begins with its name,
``(bet)=``, by which plans refer to it, and has one heading, Markdown, and after a line ``Notes:``
what the speaker says. ``![](#label)``, in a paragraph of its own, is what has this label in the
chapter, so that both show the same. ``teaching.py`` writes the pages.
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from bs4.element import Tag
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.errors import ExtensionError

SLIDES = Path(__file__).parents[1] / "slides"
WORDS = 45
KEYS = {"title", "chapter", "minutes"}
LINE = re.compile(r"^---[ \t]*$", re.M)
NOTES = re.compile(r"^Notes:[ \t]*$", re.M)
NAME = re.compile(r"\s*\(([a-z0-9][a-z0-9-]*)\)=[ \t]*\n")

HEAD = """<link rel="stylesheet" href="../_static/vendor/reveal/reveal.css">
<link rel="stylesheet" href="../_static/slides.css">
<script defer src="../_static/vendor/reveal/reveal.js"></script>
<script defer src="../_static/slides.js"></script>
"""
NOTES_HEAD = '<script defer src="../_static/slides.js"></script>\n'
TERMS = (
    '<p class="terms">Text: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>. '
    '<a href="../book/releases.html">How to cite</a></p>'
)
KEYS_LINE = "← →, space: move · Esc: overview · F: full screen · B: black"


@dataclass
class Slide:
    """One slide: its name, file and line, heading in HTML, body, and what the speaker says."""

    name: str
    place: str
    heading: str
    body: BeautifulSoup
    notes: str

    @property
    def words(self) -> int:
        """Words of the heading and of the body, without formulas and what the chapter gives."""
        shown = BeautifulSoup(f"<h2>{self.heading}</h2>\n{self.body}", "html.parser")
        for each in shown.select(".math"):
            each.decompose()
        return sum(any(map(str.isalnum, word)) for word in shown.get_text().split())


@dataclass
class Deck:
    """A chapter's slides, the minutes that they take, and the file that they come from."""

    file: str
    title: str
    chapter: str
    minutes: float
    slides: list[Slide]


def tex(content: str, options: dict) -> str:
    """Return a formula as MathJax finds it in a page."""
    shown = html.escape(content.strip(), quote=False)
    return rf"\[{shown}\]" if options["display_mode"] else rf"\({shown}\)"


def markdown(text: str) -> str:
    """Return Markdown as HTML; a formula stands between dollars, and HTML is text.

    >>> markdown("Is $d < 1$ *large*?")
    '<p>Is <span class="math inline">\\\\(d &lt; 1\\\\)</span> <em>large</em>?</p>\\n'
    """
    parser = MarkdownIt("commonmark", {"html": False, "typographer": True})
    parser.enable(["table", "smartquotes"])
    return parser.use(dollarmath_plugin, renderer=tex, allow_labels=False).render(text)


def read(path: Path, chapters: list[str]) -> Deck:
    """Read a deck.

    Raises
    ------
    ExtensionError
        Naming the file, and the line, if its front matter lacks a key, its chapter is none of
        those given, or a slide is against the rules.
    """
    text = path.read_text(encoding="utf-8-sig")
    start, *parts = LINE.split(text)
    try:
        about = yaml.safe_load(parts[0]) if parts and not start.strip() else None
    except yaml.YAMLError as error:
        raise ExtensionError(f"{path.name}: its first lines are no YAML: {error}") from error
    if not isinstance(about, dict) or set(about) != KEYS:
        raise ExtensionError(f"{path.name}: it begins with title, chapter and minutes between ---")
    if about["chapter"] != path.stem or path.stem not in chapters:
        raise ExtensionError(f"{path.name}: {about['chapter']!r} is not the chapter of this name")
    if not isinstance(about["minutes"], int | float):
        raise ExtensionError(f"{path.name}: minutes are a number, not {about['minutes']!r}")
    lines = [text.count("\n", 0, each.end()) + 2 for each in LINE.finditer(text)][1:]
    slides = [
        slide(part, f"{path.name}, line {line}")
        for part, line in zip(parts[1:], lines, strict=True)
    ]
    names = [each.name for each in slides]
    for number, each in enumerate(slides):
        if each.name in names[:number]:
            raise ExtensionError(f"{each.place}: a second slide has the name {each.name!r}")
    return Deck(path.name, slides=slides, **about)


def slide(text: str, place: str) -> Slide:
    """Return one slide of its Markdown, or refuse it."""
    named = NAME.match(text)
    if named is None:
        raise ExtensionError(f"{place}: a slide begins with its name in a line, such as (bet)=")
    shown, *said = NOTES.split(text[named.end() :], maxsplit=1)
    body = BeautifulSoup(markdown(shown), "html.parser")
    headings = body.find_all(re.compile(r"^h\d$"))
    if len(headings) != 1 or not headings[0].get_text(strip=True):
        raise ExtensionError(f"{place}: {len(headings)} headings, not one")
    heading = headings[0].extract().decode_contents()
    found = Slide(named[1], place, heading, body, markdown("".join(said)))
    if found.words > WORDS:
        raise ExtensionError(f"{place}: {found.words} words, more than {WORDS}")
    for item in body.find_all("li"):
        own = "".join(each.get_text() for each in item if each.name not in ("ul", "ol"))
        if own.rstrip().endswith(":"):
            raise ExtensionError(f"{place}: the item {own.strip()!r} ends in a colon")
    return found


def fill(deck: Deck, article: Tag) -> None:
    """Put into a deck what its slides take from the chapter's article.

    Raises
    ------
    ExtensionError
        Naming file, line and label, if the chapter has nothing of that label.
    """
    for each in deck.slides:
        for picture in each.body.find_all("img"):
            label = picture["src"].removeprefix("#")
            place = f"{each.place}: {picture['src']}"
            if picture.parent.get_text(strip=True) or len(picture.parent.find_all()) > 1:
                raise ExtensionError(f"{place} does not stand in a paragraph of its own")
            found = article.find(id=label) or article.find(id=f"equation-{label}")
            if not picture["src"].startswith("#") or found is None:
                raise ExtensionError(f"{place} is no figure, formula or table of {deck.chapter}")
            picture.parent.replace_with(taken(found, place))


def taken(found: Tag, place: str) -> Tag:
    """Return a figure's image, a formula or a table of the chapter as a slide shows it."""
    names = {found.name, *found.get("class", [])}
    if names & {"figure", "template"} and found.find("img"):
        image = found.find("img")
        if not image.get("alt"):
            raise ExtensionError(f"{place} has no alternative text")
        shown = f'<img src="{image["src"]}" alt="{html.escape(image["alt"])}">'
        narrow = found.find_previous("figure", id=found["id"].removesuffix("-wide"))
        if narrow:  # as the page has it, for phones
            source = f'<source media="(max-width: 599px)" srcset="{narrow.img["src"]}">'
            shown = f"<picture>{source}{shown}</picture>"
        shown = f'<figure data-label="{found["id"]}">{shown}</figure>'
    elif "math" in names:
        for number in found.select(".eqno"):
            number.decompose()
        shown = f'<div class="math">{html.escape(found.get_text(), quote=False)}</div>'
    elif names & {"table", "table-scroll", "pst-scrollable-table-container"}:
        shown = str(found if found.name == "table" else found.find("table"))
    else:
        raise ExtensionError(f"{place} is no figure, formula or table")
    return BeautifulSoup(shown, "html.parser").find()


def pages(deck: Deck) -> dict[str, dict[str, str]]:
    """Return what ``teaching.PAGE`` asks for, for the deck and for its notes, by kind of page."""
    title = html.escape(deck.title)
    return {
        "slides": {
            "title": f"Slides: {title}",
            "kind": "deck",
            "script": HEAD,
            "body": shown(deck),
        },
        "notes": {
            "title": f"Speaker's notes: {title}",
            "kind": "notes",
            "script": NOTES_HEAD,
            "body": said(deck),
        },
    }


def shown(deck: Deck) -> str:
    """Return the body of the page that is projected."""
    sections = []
    for number, each in enumerate(deck.slides, start=1):
        level, terms = ("h1", TERMS) if number == 1 else ("h2", "")
        heading = f"<{level}>{each.heading}</{level}>"
        sections.append(f'<section id="{each.name}">{heading}{each.body}{terms}</section>')
    return (
        f'<main><article class="reveal"><div class="slides">{"".join(sections)}</div>'
        "</article></main>"
        f'<nav class="bar" aria-label="deck"><a href="../notebooks/{deck.chapter}.html">Chapter</a>'
        f'<a href="notes_{deck.chapter}.html" target="notes">Notes</a>'
        f'<span class="keys">{KEYS_LINE}</span></nav>'
    )


def begins(deck: Deck) -> list[int]:
    """Return the minute in which each slide begins.

    A slide that names its minutes, as *Your turn: 5 minutes*, has these; the others share the rest
    by the words of their notes.

    Raises
    ------
    ExtensionError
        Naming the deck, if its tasks leave the speaker no minute.
    """
    named, words = [], []
    for each in deck.slides:
        task = re.search(r"(\d+) minutes", each.heading)
        named.append(int(task[1]) if task else 0)
        words.append(0 if task else len(each.notes.split()))
    rest = deck.minutes - sum(named)
    if rest <= 0:
        raise ExtensionError(f"{deck.file}: tasks take {sum(named)} of {deck.minutes} minutes")
    each = [n + rest * word / max(sum(words), 1) for n, word in zip(named, words, strict=True)]
    return [round(sum(each[:number])) for number in range(len(each))]


def said(deck: Deck) -> str:
    """Return the body of the page of notes."""
    parts = []
    for number, (each, minute) in enumerate(zip(deck.slides, begins(deck), strict=True), start=1):
        link = f'<a href="slides_{deck.chapter}.html#{each.name}">Slide {number}</a>'
        parts.append(
            f'<section id="{each.name}"><h2>{each.heading}</h2>'
            f'<p class="when">{link}, from minute {minute}</p>{each.notes}</section>'
        )
    return (
        f"<main><h1>Speaker's notes: {html.escape(deck.title)}</h1>"
        f'<p><a href="../notebooks/{deck.chapter}.html">The chapter</a>. '
        f"{deck.minutes} minutes. Opened from the deck, this page follows it.</p>"
        f'{"".join(parts)}<p class="clock" role="timer" aria-live="off"></p></main>'
    )
