"""Markdown of the book in plain Markdown, which Colab, JupyterLab and VS Code show alike.

Roles become words, directives become quotations, headings and ``<details>``, equations carry their
numbers. What this module does not know it refuses, so that no page shows raw markup.
"""

import csv
import html
import posixpath
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from book_index import Book, Place
from myst_blocks import Block, blocks
from repository import UNSET

CODE = r"(?P<code>(?P<marks>`+)(?!`)(?:.+?)(?<!`)(?P=marks)(?!`))"
MATH = r"(?P<math>\$(?![\s$])[^$]+?\$)"
ROLE = re.compile(
    rf"\{{(?P<role>[A-Za-z][\w:.+-]*)\}}(?P<ticks>`+)(?P<content>.+?)(?P=ticks)(?!`)|{CODE}|{MATH}",
    re.S,
)
LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
    rf"\((?P<target>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)|{CODE}|{MATH}",
    re.S,
)
NAMED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.S)
ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)")
LEFT = re.compile(
    r"\{[A-Za-z][\w:.+-]*\}`|^\s*:::|^\s*(?:`{3,}|~{3,})\s*\{|^\([^)\s]+\)=\s*$"
    r"|^(?:%|\+\+\+|\{[#.])|\]\{|!\[|^\[\^|^:[ \t]+\S",
    re.M,
)
"""Markup that only the book's own reader knows, or of which no chapter has any yet."""
CONTENT_NOTE = re.compile(r"content[ -]note", re.I)


@dataclass
class Page:
    """A page that is put into plain words, and what it has cited."""

    book: Book
    document: str
    cited: list[str] = field(default_factory=list)


def plain(text: str, page: Page) -> str:
    """Return Markdown of the book as plain Markdown.

    Raises
    ------
    ValueError
        If there is a role, a directive or a label that is not known; the message names it.
    """
    parts = (
        textwrap.indent(_shown(block, page).strip("\n"), block.indent) for block in blocks(text)
    )
    return "\n\n".join(part for part in parts if part.strip())


def inline(text: str, page: Page) -> str:
    """Return prose without roles, and with links that lead somewhere from a notebook."""
    worded = ROLE.sub(lambda found: _role(found, page), text)
    return LINK.sub(lambda found: _link(found, page), worded)


def left_over(text: str) -> list[str]:
    """Return what is still markup of the book, outside code."""
    prose = "\n".join(block.text for block in blocks(text) if block.kind != "code")
    raw = [f"{{{block.name}}}" for block in blocks(text) if block.kind in ("directive", "target")]
    return raw + LEFT.findall(re.sub(CODE, "", prose, flags=re.S))


def _shown(block: Block, page: Page) -> str:
    if block.kind == "prose":
        return inline(block.text, page)
    if block.kind == "math":
        return _equation(block, page)
    if block.kind == "directive":
        if block.name not in DIRECTIVES:
            raise ValueError(f"{page.document}: no plain form of the directive {{{block.name}}}")
        return DIRECTIVES[block.name](block, page)
    return "" if block.kind == "target" else block.text


# Equations: on one line, since some programs take a line of "=" for a heading


def _equation(block: Block, page: Page) -> str:
    tex = re.sub(r"(?<!\\)%[^\n]*", "", block.text)
    tex = " ".join(tex.split())
    label = block.options.get("label") or block.options.get("name")
    if not label:
        return f"$$ {tex} $$"
    if "\n\n" in block.text.strip() or ("\\\\" in tex and "\\begin" not in tex):
        tex = rf"\begin{{aligned}} {tex} \end{{aligned}}"
    return rf"$$ {tex} \tag{{{page.book.place(label).number}}} $$"


# Roles


def _role(found: re.Match, page: Page) -> str:
    name, content = found["role"], found["content"]
    if name is None:
        return found[0]
    content = " ".join(content.split())
    if name.startswith("cite"):
        return _citation(name, content, found.string[: found.start()], page)
    kind = name.removeprefix("py:")
    if kind in PYTHON:
        return _python(content)
    if name not in ROLES:
        raise ValueError(f"{page.document}: no plain form of the role {{{name}}}")
    return ROLES[name](content, page)


PYTHON = {"func", "mod", "class", "meth", "data", "attr", "exc", "obj", "const", "property"}


def _python(content: str) -> str:
    named = NAMED.match(content)
    name = content.lstrip("!")
    if named and named[1]:
        return f"`{named[1]}`"
    return f"`{name.rpartition('.')[2] if name.startswith('~') else name}`"


def _citation(role: str, content: str, before: str, page: Page) -> str:
    keys = [key.strip() for key in content.split(",")]
    page.cited += [key for key in keys if key not in page.cited]
    known = page.book.bibliography
    if role.startswith("cite:t"):
        *most, last = [known.in_text(key) for key in keys]
        return f"{', '.join(most)} and {last}" if most else last
    return known.in_brackets(keys, before)


def _term(content: str, page: Page) -> str:
    words, term = _named(content)
    return _linked(words, page.book.term(term))


def _reference(content: str, page: Page) -> str:
    """Return what a role says that leads to a label: ``(6.2)``, ``Fig. 6.1``, or its own words."""
    words, label = _named(content)
    place = page.book.place(label)
    return _there(words if words != label else _name(place, page), place, page)


def _name(place: Place, page: Page) -> str:
    """Return what a place is called in a sentence."""
    if place.kind == "equation":
        return f"({place.number})"
    if place.kind == "figure":
        return f"Fig. {place.number}"
    if place.kind == "exercise":
        return f"Exercise {place.number}"
    return f"“{inline(place.title, page)}”"


def _there(words: str, place: Place, page: Page) -> str:
    """Return words that lead to another page, or that stand for themselves on this one."""
    if place.document == page.document:
        return words
    return _linked(words, _document(place.document, "", page))


def _download(content: str, page: Page) -> str:
    words, target = _named(content)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.document), target))
    return _linked(words, page.book.file(path))


def _named(content: str) -> tuple[str, str]:
    """Return the words and the target of ``words <target>``, or of one that is both."""
    named = NAMED.match(content)
    return (named[1], named[2]) if named else (content, content)


ROLES: dict[str, Callable[[str, Page], str]] = {
    "download": _download,
    "eq": _reference,
    "math": lambda content, page: f"${content}$",
    "numref": _reference,
    "ref": _reference,
    "term": _term,
}


# Links


def _linked(words: str, address: str) -> str:
    """Return a link; words alone where there is no address, since a dead link helps nobody."""
    return f"[{words}]({address})" if address and UNSET not in address else words


def _link(found: re.Match, page: Page) -> str:
    if found["text"] is None:
        return found[0]
    text, target = found["text"], found["target"]
    if ADDRESS.match(target):
        return _linked(text or target, target)
    return _inside(text, target, page)


def _inside(text: str, target: str, page: Page) -> str:
    """Return a link within the book: to a copy, or to a page."""
    path, _, anchor = target.partition("#")
    whole = posixpath.normpath(posixpath.join(posixpath.dirname(page.document), path))
    document = posixpath.splitext(whole)[0]
    if document not in page.book.suffixes:
        raise ValueError(f"{page.document}: no page {target!r}")
    heading = page.book.headings.get((document, anchor), "")
    shown = text or inline(heading or page.book.titles[document], page)
    return _linked(shown, _document(document, anchor, page))


def _document(document: str, anchor: str, page: Page) -> str:
    """Return where a page is on the web: beside a copy on a drive nothing else is found."""
    if page.book.suffixes[document] == ".ipynb" and not page.book.site:
        return page.book.file(f"colab/{posixpath.basename(document)}.ipynb")
    return page.book.page(document, anchor)


# Directives


def _quoted(title: str, body: str) -> str:
    """Return a quotation with a title in bold."""
    lines = "\n\n".join(filter(None, [f"**{title}**" if title else "", body])).split("\n")
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def folded(summary: str, body: str) -> str:
    """Return Markdown that a reader has to open, and room below it."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n<br>"


def _heading_text(text: str) -> str:
    """Return a title for HTML, which shows no Markdown."""
    return html.escape(re.sub(r"[*`]", "", text), quote=False)


def _admonition(block: Block, page: Page) -> str:
    title = inline(block.argument, page)
    classes = block.options.get("class", "")
    is_note = CONTENT_NOTE.search(f"{title} {classes}")
    if "dropdown" in classes and not is_note:
        return folded(_heading_text(title), plain(block.text, page))
    return _quoted(f"⚠️ {title}" if is_note else title, plain(block.text, page))


def _dropdown(block: Block, page: Page) -> str:
    return folded(_heading_text(inline(block.argument, page)), plain(block.text, page))


def _exercise(block: Block, page: Page) -> str:
    place = page.book.labels.get(block.options.get("label", ""))
    name = _name(place, page) if place and place.number else "Exercise"
    title = f": {inline(block.argument, page)}" if block.argument else ""
    return f"#### {name}{title}\n\n{plain(block.text, page)}".strip()


def _solution(block: Block, page: Page) -> str:
    place = page.book.place(block.argument)
    title = f" ({place.title})" if place.title else ""
    return folded(
        f"Solution to {_name(place, page)}{_heading_text(inline(title, page))}",
        plain(block.text, page),
    )


def _list_table(block: Block, page: Page) -> str:
    rows = [
        [cell.strip() for cell in re.split(r"^\s*- ?|\n\s+- ?", row) if cell.strip()]
        for row in re.split(r"^\* ?", block.text, flags=re.M)[1:]
    ]
    return _rows([[" ".join(inline(c, page).split()) for c in row] for row in rows], block, page)


def _rows(cells: list[list[str]], block: Block, page: Page) -> str:
    """Return a table, its caption above it."""
    lines = [f"| {' | '.join(row)} |" for row in cells]
    caption = f"*{inline(block.argument, page)}*\n\n" if block.argument else ""
    return caption + "\n".join([lines[0], "|" + " --- |" * len(cells[0]), *lines[1:]])


def _csv_table(block: Block, page: Page) -> str:
    folder = Path(__file__).parents[1] / posixpath.dirname(page.document)
    with open(folder / block.options["file"], encoding="utf-8", newline="") as file:
        rows = [[" ".join(inline(cell, page).split()) for cell in row] for row in csv.reader(file)]
    return _rows(rows, block, page)


DIRECTIVES: dict[str, Callable[[Block, Page], str]] = {
    "admonition": _admonition,
    "csv-table": _csv_table,
    "dropdown": _dropdown,
    "exercise": _exercise,
    "list-table": _list_table,
    "solution": _solution,
}
