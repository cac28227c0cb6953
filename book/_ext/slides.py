"""Decks of slides, written in Markdown, with figures, formulas and tables of the built chapters.

A deck is ``book/slides/<chapter>.md``, or one of a lecturer's own, in ``book/slides/own`` or
anywhere else: between lines of three dashes its ``title``, ``minutes`` and ``chapter``, then
slides, with such a line between two of them. A slide begins with its name, ``(bet)=``, by which
plans refer to it, and has one heading, Markdown, and after a line ``Notes:`` what is said.
``![](#label)``, in a paragraph of its own, is what has this label in a chapter
(:mod:`slide_figures`). ``teaching.py`` writes the pages.

An own deck may leave out the chapter and names of slides, which then come from the headings; may
have a ``language``; and may say which deck of the book it ``translates``, and ``without`` which of
its slides.
"""

import html
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.errors import ExtensionError

SLIDES = Path(__file__).parents[1] / "slides"
WORDS = 45
NEEDED, ALLOWED = {"title", "minutes"}, {"chapter", "language", "translates", "without"}
LINE = re.compile(r"^---[ \t]*$", re.M)
NOTES = re.compile(r"^Notes:", re.M | re.I)
NAME = re.compile(r"\s*\(([a-z0-9][a-z0-9-]*)\)=[ \t]*\n")
UNFIT = re.compile(r"\s*\(.*\)=")
HEADING = re.compile(r"^#+ (.*)$", re.M)
STRAY = re.compile(r"^ {0,3}(?:([-*_])(?:[ \t]*\1){2,}|#+ .*?)[ \t]*$", re.M)
TO_THE_LEFT = ("ar", "fa", "he", "ur")
MINUTES = re.compile(r"(?:[(\uff08][^()]*?|[:\uff1a]\s*)\b(\d+)\s*min(?:s?\b|[uū](?!s))", re.I)

HEAD = """<link rel="stylesheet" href="../_static/vendor/reveal/reveal.css">
<link rel="stylesheet" href="../_static/slides.css">
<script defer src="../_static/vendor/reveal/reveal.js"></script>
<script defer src="../_static/slides.js"></script>
"""
NOTES_HEAD = '<script defer src="../_static/slides.js"></script>\n'
TERMS = (
    '<p class="terms" lang="en">{}: <a href="https://creativecommons.org/licenses/by/4.0/">'
    'CC BY 4.0</a>. <a href="../book/releases.html">How to cite</a></p>'
)
KEYS_LINE = "← →, space: move · Esc: overview · F: full screen · B: black"


@dataclass
class Slide:
    """One slide: its name, where it stands, heading in HTML, body, and what the speaker says."""

    name: str
    file: str
    line: int
    source: str
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

    def at(self, words: str) -> str:
        """Return file and line of the first of its lines that has some words, else of the slide."""
        lines = self.source.splitlines()
        found = next((n for n, line in enumerate(lines) if words in line), 0)
        return f"{self.file}, line {self.line + found}"


@dataclass
class Deck:
    """Slides, the minutes that they take, and the file that they come from."""

    path: Path
    title: str
    minutes: float
    slides: list[Slide]
    chapter: str = ""
    language: str = "en"
    translates: str = ""
    without: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        return self.path.stem

    @property
    def direction(self) -> str:
        """The attribute of a slide that says from which side it is read."""
        return ' dir="rtl"' if self.language.split("-")[0] in TO_THE_LEFT else ""


def tex(content: str, options: dict) -> str:
    """Return a formula as MathJax finds it in a page."""
    shown = html.escape(content.strip(), quote=False)
    return rf"\[{shown}\]" if options["display_mode"] else rf"\({shown}\)"


def markdown(text: str, language: str = "en") -> str:
    """Return Markdown as HTML; a formula stands between dollars, and HTML is text.

    Quotation marks and dashes are set as in English, and in another language stay as typed.

    >>> markdown("Is $d < 1$ *large*?")
    '<p>Is <span class="math inline">\\\\(d &lt; 1\\\\)</span> <em>large</em>?</p>\\n'
    """
    english = language.startswith("en")
    parser = MarkdownIt("commonmark", {"html": False, "typographer": english})
    parser.enable(["table", "smartquotes"])
    return parser.use(dollarmath_plugin, renderer=tex, allow_labels=False).render(text)


# Reading


def files(folder: Path | None = None) -> list[Path]:
    """Return the decks of the book, then a lecturer's own."""
    folder = folder or SLIDES
    return [*sorted(folder.glob("*.md")), *sorted((folder / "own").glob("*.md"))]


def is_own(path: Path) -> bool:
    return path.resolve().parent != SLIDES.resolve()


def read(path: Path, chapters: list[str]) -> Deck:
    """Read a deck.

    Raises
    ------
    ExtensionError
        Naming file, line and what to do, if its front matter lacks a key or has a wrong one, a
        slide is against the rules, two have one name, or a translation lacks a slide.
    """
    text = text_of(path)
    about = front_matter(path, text, chapters)
    found = []
    for number, (line, part) in enumerate(parts(text), start=1):
        each = slide(part, path, line, number, about.get("language", "en"))
        if each.name in {other.name for other in found}:
            raise ExtensionError(
                f"{each.at('')}: a second slide has the name {each.name!r}: put another one, such "
                f"as ({each.name}-2)=, in the line before its heading"
            )
        found.append(each)
    original = about.get("translates", "")
    about.setdefault("chapter", original if original in chapters else "")
    deck = Deck(path, slides=found, **about)
    if deck.translates:
        check_translation(deck, text)
    return deck


def text_of(path: Path) -> str:
    """Return the text of a file, or say how to save it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ExtensionError(f"{path.name}: save it in the encoding UTF-8") from None


def refusal(path: Path, error: yaml.YAMLError) -> ExtensionError:
    """Return what to do about a file, or first lines of one, that is no YAML."""
    mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", error)
    fix = (
        "put a text with a colon between quotation marks, and before a line as many spaces as its "
        "neighbours have, and no tab"
    )
    if "quoted scalar" in str(getattr(error, "context", "")):
        mark, fix = error.context_mark, "close the quotation mark that begins here"
    place = f", line {mark.line + 1}" if mark else ""
    return ExtensionError(f"{path.name}{place}: {fix} ({why})")


def parts(text: str) -> list[tuple[int, str]]:
    """Return the slides' texts, each with the number of its first line that is not empty."""
    found = []
    for each in list(LINE.finditer(text))[1:]:
        rest = text[each.end() :]
        begin = each.end() + len(rest) - len(rest.lstrip())
        found.append((text.count("\n", 0, begin) + 1, LINE.split(text[begin:])[0]))
    return found


def front_matter(path: Path, text: str, chapters: list[str]) -> dict:
    """Return what the first lines of a deck say, or refuse it."""
    start, *rest = LINE.split(text)
    first = "" if start.strip() else "".join(rest[:1])
    if inside := re.search(r"^(?:#+ |\(\S+\)=).*", first, re.M):
        line = text.count("\n", 0, text.index(inside[0])) + 1
        raise ExtensionError(
            f"{path.name}, line {line}: close the first lines with a line of --- above this one"
        )
    try:
        about = yaml.safe_load(rest[0]) if rest and not start.strip() else None
    except yaml.YAMLError as error:
        raise refusal(path, error) from error
    needed, allowed = (NEEDED, ALLOWED) if is_own(path) else (NEEDED | {"chapter"}, set())
    keys = set(about) if isinstance(about, dict) else set()
    if keys - needed - allowed or needed - keys:
        raise ExtensionError(
            f"{path.name}, line 1: it begins with {', '.join(sorted(needed))} between lines "
            f"of ---, and may have {', '.join(sorted(allowed)) or 'nothing'} besides"
        )
    decks = [each.stem for each in SLIDES.glob("*.md")]
    others = [each.stem for each in files(SLIDES)]
    minutes, without = about["minutes"], about.get("without", [])
    language = about.get("language", "en")
    wrong = {
        "title": (not isinstance(about["title"], str), "write the title between quotation marks"),
        "minutes": (
            not isinstance(minutes, int | float) or minutes <= 0,
            f"minutes are a number, such as 35, and not {minutes!r}",
        ),
        "chapter": (
            about.get("chapter", "") not in ["", *chapters]
            or not (is_own(path) or about["chapter"] == path.stem),
            f"{about.get('chapter')!r} is not the chapter of this deck; there are {chapters}",
        ),
        "language": (
            not isinstance(language, str) or not re.fullmatch(r"[a-z]{2,3}(-\w+)*", language),
            f'the language is a code such as "de" or "pt-BR", and not {language!r}',
        ),
        "translates": (
            about.get("translates", "") not in ["", *others],
            f"{about.get('translates')!r} is no deck in book/slides or its own/: {others}",
        ),
        "without": (not isinstance(without, list), "name the slides as in [bet, title]"),
    }
    for key, (is_wrong, why) in wrong.items():
        if is_wrong:
            raise ExtensionError(f"{path.name}, {line_of(key, text)}: {why}")
    taken = path.stem.lower() in decks  # some disks hold one file of both names
    if is_own(path) and (taken or not re.fullmatch(r"[\w-]+", path.stem, re.A)):
        raise ExtensionError(
            f"{path}, line 1: rename the file: letters, digits, - and _, and not the name of a "
            f"deck of the book, such as my_{re.sub(r'[^a-z0-9_]+', '_', path.stem.lower())}.md"
        )
    return about


def line_of(key: str, text: str) -> str:
    lines = text.splitlines()
    found = (n for n, line in enumerate(lines, start=1) if re.match(rf"\s*{key}\s*:", line))
    return f"line {next(found, 1)}"


def slide(text: str, path: Path, line: int, number: int, language: str = "en") -> Slide:
    """Return one slide of its Markdown, or refuse it."""
    place = f"{path.name}, line {line}"
    name, rest = named(text, number)
    if UNFIT.match(rest):
        raise ExtensionError(
            f"{place}: a slide's name has small letters, digits and hyphens, such as (my-bet)="
        )
    if not (is_own(path) or NAME.match(text)):
        raise ExtensionError(f"{place}: a slide begins with its name in a line, such as (bet)=")
    shown, *said = NOTES.split(rest, maxsplit=1)
    body = BeautifulSoup(markdown(shown, language), "html.parser")
    headings = body.find_all(re.compile(r"^h\d$"))
    if len(headings) != 1 or not headings[0].get_text(strip=True):
        raise ExtensionError(
            f"{place}: {len(headings)} headings, not one: a slide has one line such as ## Heading, "
            "and a line of --- stands between two slides"
        )
    heading = headings[0].extract().decode_contents()
    notes = markdown("".join(said), language)
    found = Slide(name, path.name, line, text, heading, body, notes)
    check_ends(found)
    check_formulas(found)
    if "![" in body.get_text():
        raise ExtensionError(
            f"{found.at('![')}: this is no picture: rename it so that its name has no spaces, and "
            "put none between ] and ("
        )
    if "<img " in notes:
        raise ExtensionError(
            f"{found.at(NOTES.search(text)[0])}: notes have no pictures: put it on the slide"
        )
    if is_own(path):
        if found.words > WORDS:
            print(f"{place}: {found.words} words; slides of the book have {WORDS} at most")
        return found
    if found.words > WORDS:
        raise ExtensionError(f"{place}: {found.words} words, more than {WORDS}: shorten it")
    for item in body.find_all("li"):
        own = "".join(each.get_text() for each in item if each.name not in ("ul", "ol"))
        if own.rstrip().endswith(":"):
            raise ExtensionError(f"{place}: the item {own.strip()!r} ends in a colon")
    return found


def check_ends(each: Slide) -> None:
    """Refuse a line that was meant to end the slide, and a heading among the notes."""
    if "<hr" not in f"{each.body}{each.notes}" and not re.search(r"<h\d", each.notes):
        return
    own = HEADING.search(each.source)
    strays = [found for found in STRAY.finditer(each.source) if not own or found[0] != own[0]]
    before = each.source[: strays[0].start()] if strays else ""
    raise ExtensionError(
        f"{each.file}, line {each.line + before.count(chr(10))}: between two slides stands a line "
        "of three dashes alone, ---, and no other line; notes have no headings"
    )


def check_formulas(each: Slide) -> None:
    for math in BeautifulSoup(f"{each.body}{each.notes}", "html.parser").select(".math"):
        bare = re.sub(r"\\[\\{}]", "", math.get_text())
        for pair in (("{", "}"), (r"\\left\b", r"\\right\b"), (r"\\begin\b", r"\\end\b")):
            first, last = (len(re.findall(sign, bare)) for sign in pair)
            if first != last:
                place = each.at(math.get_text().strip()[2:-2].split("\n")[0])
                opening, closing = (sign.strip("\\b") for sign in pair)
                raise ExtensionError(
                    f"{place}: a formula has {first} {opening} and {last} {closing}: close each"
                )


def named(text: str, number: int) -> tuple[str, str]:
    """Return a slide's name, else one of its heading's letters, and the rest of its text.

    >>> named("(bet)=\\n## Your bet", 3), named("## Für wen? (5 min)", 3)[0], named("## 赌注", 3)[0]
    (('bet', '## Your bet'), 'fur-wen', 'slide-3')
    """
    if name := NAME.match(text):
        return name[1], text[name.end() :]
    heading = HEADING.search(text)
    plain = re.sub(r"\(.*?\)", "", heading[1] if heading else "")
    letters = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall("[a-z0-9]+", letters)) or f"slide-{number}", text


def outline(path: Path) -> dict[str, str]:
    """Return the heading of each slide of a deck, in Markdown, by the slide's name."""
    texts = [each for _, each in parts(text_of(path))]
    headings = [HEADING.search(each) for each in texts]
    names = [named(each, number)[0] for number, each in enumerate(texts, start=1)]
    return {name: found[1] for name, found in zip(names, headings, strict=True) if found}


def check_translation(deck: Deck, text: str) -> None:
    """Refuse a translation without a slide that it does not list, or that lists one too many."""
    path = next(each for each in files(SLIDES) if each.stem == deck.translates)
    original = outline(path)
    if unknown := [each for each in deck.without if each not in original]:
        raise ExtensionError(
            f"{deck.path.name}, {line_of('without', text)}: {deck.translates}.md has no slide "
            f"{unknown[0]!r}; it has {list(original)}"
        )
    own = {each.name: each for each in deck.slides}
    missing = [each for each in original if each not in own and each not in deck.without]
    if missing:
        before = [
            own[each] for each in list(original)[: list(original).index(missing[0])] if each in own
        ]
        place = before[-1].at("") if before else f"{deck.path.name}, {line_of('translates', text)}"
        raise ExtensionError(
            f"{place}: after this, the slide {missing[0]!r} of {deck.translates}.md, "
            f"{original[missing[0]]!r}, is missing: translate it, with ({missing[0]})= before its "
            "heading, or say in the first lines what is left out, "
            f"without: [{', '.join([*deck.without, *missing])}]"
        )


# Showing


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
    first = TERMS.format("From the book" if is_own(deck.path) else "Text")
    for number, each in enumerate(deck.slides, start=1):
        level, terms = ("h1", first) if number == 1 else ("h2", "")
        heading = f"<{level}>{each.heading}</{level}>"
        begin = f'<section id="{each.name}"{deck.direction}>'
        sections.append(f"{begin}{heading}{each.body}{terms}</section>")
    return (
        f'<main><article class="reveal"><div class="slides">{"".join(sections)}</div>'
        "</article></main>"
        f'<nav class="bar" aria-label="deck" lang="en">{source_of(deck)}'
        f'<a href="notes_{deck.stem}.html" target="notes">Notes</a>'
        f'<span class="keys">{KEYS_LINE}</span></nav>'
    )


def source_of(deck: Deck) -> str:
    """Return a link to the chapter of a deck, else to the book."""
    if deck.chapter:
        return f'<a href="../notebooks/{deck.chapter}.html">Chapter</a>'
    return '<a href="../index.html">Book</a>'


def begins(deck: Deck) -> list[int]:
    """Return the minute in which each slide begins.

    A slide that names its minutes, as *Your turn (5 min)*, has these; the others share the rest
    by the words of their notes.

    Raises
    ------
    ExtensionError
        Naming the deck, if its tasks leave the speaker no minute.
    """
    tasks, words = [], []
    for each in deck.slides:
        tasks.append(task(each.heading))
        words.append(0 if tasks[-1] else len(each.notes.split()) or 1)
    rest = deck.minutes - sum(tasks)
    if rest < 0 or (rest == 0 and any(words)):
        raise ExtensionError(
            f"{deck.path.name}: tasks take {sum(tasks)} of {deck.minutes} minutes: give it more "
            "`minutes`, or its tasks fewer"
        )
    each = [n + rest * word / max(sum(words), 1) for n, word in zip(tasks, words, strict=True)]
    return [round(sum(each[:number])) for number in range(len(each))]


def task(heading: str) -> int:
    """Return the minutes that a heading names for a task, as *Your turn (5 min)*, or 0.

    >>> [task(each) for each in ("Du bist dran: 5 Minuten", "12 minorities", "9 minus 3")]
    [5, 0, 0]
    """
    found = MINUTES.search(heading)
    return int(found[1]) if found else 0


def said(deck: Deck) -> str:
    """Return the body of the page of notes."""
    sections, minutes = [], [*begins(deck), deck.minutes]
    for number, each in enumerate(deck.slides, start=1):
        begin, end = minutes[number - 1 : number + 1]
        link = f'<a class="slide" href="slides_{deck.stem}.html#{each.name}">Slide {number}</a>'
        sections.append(
            f'<section id="{each.name}"{deck.direction} data-from="{begin}" data-to="{end}">'
            f'<h2>{each.heading}</h2><p class="when" lang="en" dir="ltr">{link}, from minute '
            f"{begin}</p>{each.notes}</section>"
        )
    return (
        f'<main><h1><span lang="en">Speaker\'s notes:</span> {html.escape(deck.title)}</h1>'
        f'<p lang="en">{source_of(deck)}. '
        f"{deck.minutes} minutes. Opened from the deck, this page follows it.</p>"
        f"{''.join(sections)}</main>"
    )
