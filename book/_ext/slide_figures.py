"""What slides take: a figure, formula or table of a built chapter, or a picture of one's own."""

import difflib
import html
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup
from bs4.element import Tag
from slides import Deck
from sphinx.errors import ExtensionError

KINDS = {
    ".png": b"\x89PNG",
    ".jpg": b"\xff\xd8",
    ".jpeg": b"\xff\xd8",
    ".svg": b"<",
    ".webp": b"RIFF",
}
"""Pictures that every browser shows, and what their files begin with."""

LARGEST = 4  # megabytes of a picture, above which a line is printed
LABEL = re.compile(r'id="(?:equation-)?((?:fig|eq|tab)[^"]*)"')


@dataclass
class Chapters:
    """Pages of chapters by name, in HTML, and the articles of those that were asked for."""

    pages: dict[str, str]
    parse: Callable[[str, str], Tag]
    parsed: dict[str, Tag] = field(default_factory=dict)

    def article(self, stem: str) -> Tag:
        if stem not in self.parsed:
            self.parsed[stem] = self.parse(self.pages[stem], stem)
        return self.parsed[stem]

    def find(self, label: str, first: str, place: str) -> Tag:
        """Return what has a label, in one chapter or else in any, or name the nearest label."""
        ids = [label, f"equation-{label}"]
        for stem in sorted(self.pages, key=lambda each: each != first):
            named = any(f'id="{each}"' in self.pages[stem] for each in ids)
            if named and (found := self.article(stem).find(id=ids)):
                return found
        labels = {each: stem for stem, page in self.pages.items() for each in LABEL.findall(page)}
        near = difflib.get_close_matches(label, labels, 1, 0)
        nearest = f"; the nearest label is #{near[0]}, of {labels[near[0]]}" if near else ""
        raise ExtensionError(f"{place} is no figure, formula or table of the book{nearest}")


def fill(deck: Deck, book: Chapters, folder: Path) -> None:
    """Put into a deck what its slides take from the book, and pictures into the site's folder.

    Raises
    ------
    ExtensionError
        Naming file, line and what to do, if there is no such label or picture, or no text for it.
    """
    number = 0
    for each in deck.slides:
        images = each.body.find_all("img")
        pictures = [image for image in images if not image["src"].startswith(("#eq", "#tab"))]
        if len(pictures) > 1:
            raise ExtensionError(
                f"{each.at(unquote(pictures[1]['src']))}: a second picture on one slide: give it a "
                "slide of its own, or make one picture of both"
            )
        for image in images:
            source = unquote(image["src"])
            alt, place = " ".join(image["alt"].split()), f"{each.at(source)}: {source}"
            if image.parent.get_text(strip=True) or len(image.parent.find_all()) > 1:
                raise ExtensionError(f"{place} stands in a text: leave empty lines around it")
            if source.startswith("#"):
                found = book.find(source[1:], deck.chapter, place)
                shown = taken(found, place, alt)
                if not (deck.language.startswith("en") or alt):
                    shown["lang"] = "en"
            else:
                number += 1
                name = f"picture_{deck.stem}_{number}{Path(source).suffix.lower()}"
                check(deck.path.parent / source, source, alt, place)
                shutil.copyfile(deck.path.parent / source, folder / name)
                shown = figure(name, alt)
            image.parent.replace_with(shown)


def check(path: Path, source: str, alt: str, place: str) -> None:
    """Refuse a picture that is not there, of an unknown kind, or without a text for it."""
    if "://" in source:
        raise ExtensionError(f"{place} is on the web: download it, and lay it beside the deck")
    begins = KINDS.get(path.suffix.lower())
    if begins is None:
        raise ExtensionError(f"{place} is of an unknown kind: save it as one of {', '.join(KINDS)}")
    if not path.is_file():
        raise ExtensionError(f"{place} is not there: put the picture at {path}")
    if begins not in path.read_bytes()[:200]:
        raise ExtensionError(f"{place} is no {path.suffix} inside: save it anew as one")
    if (size := path.stat().st_size / 1e6) > LARGEST:
        print(f"{place} has {size:.0f} MB: make it smaller, 2,000 pixels wide are enough")
    if not alt.strip():
        raise ExtensionError(
            f"{place} has no alternative text: say what it shows, ![two bars, 7 and 3]({source})"
        )


def figure(source: str, alt: str, label: str = "", narrow: str = "") -> Tag:
    """Return a picture as a slide shows it, and in its place a narrow one on phones."""
    shown = f'<img src="{source}" alt="{html.escape(alt)}">'
    if narrow:
        narrow = f'<source media="(max-width: 599px)" srcset="{narrow}">'
        shown = f"<picture>{narrow}{shown}</picture>"
    shown = f'<figure data-label="{label or source}">{shown}</figure>'
    return BeautifulSoup(shown, "html.parser").find()


def taken(found: Tag, place: str, alt: str = "") -> Tag:
    """Return a figure's image, a formula or a table of the chapter as a slide shows it."""
    names = {found.name, *found.get("class", [])}
    if names & {"figure", "template"} and found.find("img"):
        image = found.find("img")
        if not (alt or image.get("alt")):
            raise ExtensionError(f"{place} has no alternative text")
        narrow = found.find_previous("figure", id=found["id"].removesuffix("-wide"))
        source = narrow.img["src"] if narrow else ""  # as the page has it, for phones
        return figure(image["src"], alt or image["alt"], f"#{found['id']}", source)
    if "math" in names:
        for number in found.select(".eqno"):
            number.decompose()
        shown = f'<div class="math">{html.escape(found.get_text(), quote=False)}</div>'
    elif names & {"table", "table-scroll", "pst-scrollable-table-container"}:
        shown = str(found if found.name == "table" else found.find("table"))
    else:
        raise ExtensionError(f"{place} is no figure, formula or table")
    return BeautifulSoup(shown, "html.parser").find()
