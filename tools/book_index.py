"""What the labels of the book mean: chapters and their numbers, titles, equations, figures.

The numbers are those that Sphinx gives on the site: chapters in the order of ``_toc.yml``, and in
each of them equations with a label, figures and exercises one after the other.
"""

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import repository
import yaml
from citations import Bibliography
from myst_blocks import Block, blocks

BRANCH = "main"
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)


@dataclass(frozen=True)
class Place:
    """Where a label leads: *kind* is ``equation``, ``figure``, ``exercise`` or ``section``."""

    kind: str
    document: str
    number: str = ""
    title: str = ""


@dataclass
class Book:
    """The pages of the book by document, such as ``notebooks/foundations``."""

    address: str
    site: str
    bibliography: Bibliography
    chapters: dict[str, int] = field(default_factory=dict)
    suffixes: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    headings: dict[tuple[str, str], str] = field(default_factory=dict)
    labels: dict[str, Place] = field(default_factory=dict)
    terms: dict[str, str] = field(default_factory=dict)

    def place(self, label: str) -> Place:
        """Return where a label leads."""
        if label not in self.labels:
            raise ValueError(f"nothing in the book has the label {label!r}")
        return self.labels[label]

    def page(self, document: str, anchor: str = "") -> str:
        """Return the address of a page: on the site, else of its source, else nothing."""
        end = f"#{anchor}" if anchor else ""
        if self.site:
            return f"{self.site}/{document}.html{end}"
        file = self.file(document + self.suffixes[document])
        return file + end if file else ""

    def file(self, path: str) -> str:
        """Return the address of a file of the repository, or nothing where none is set."""
        return f"{self.address}/blob/{BRANCH}/{path}" if self.address else ""

    def term(self, term: str) -> str:
        """Return the address of a term in the glossary, or nothing without a site."""
        if not self.site:
            return ""
        name = self.terms.get(term.casefold(), term)
        return self.page("book/glossary", "term-" + re.sub(r"[^\w.]+", "-", name).strip("-"))


def read_book(root: Path) -> Book:
    """Read the book of a repository."""
    book = Book(
        repository.known(), repository.site(), Bibliography(root / "book" / "references.bib")
    )
    for number, document in enumerate(documents(root)):
        notebook = root / f"{document}.ipynb"
        book.chapters[document] = number
        book.suffixes[document] = ".ipynb" if notebook.exists() else ".md"
        pieces = _cells(notebook) if notebook.exists() else [("markdown", _page(root, document))]
        _Reader(book, document, number).read(pieces)
    return book


def documents(root: Path) -> list[str]:
    """Return the pages in the order of the table of contents, the start page first."""
    contents = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [each["file"] for part in contents["parts"] for each in part["chapters"]]
    return [contents["root"], *chapters]


def slug(heading: str) -> str:
    """Return the anchor of a heading.

    >>> slug("Bounds: `ddof`, and *d*")
    'bounds-ddof-and-d'
    """
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def figure_calls(source: str) -> list[ast.Call]:
    """Return the calls of ``display.figure`` in a cell, in their order.

    Those of the profile ``paper`` alone have no number: the site is built in ``planted``.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a command of the notebook program
        return []
    choices = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    of_paper = [each for each in choices if "== 'paper'" in ast.unparse(each.test)]
    apart = {id(node) for each in of_paper for part in each.body for node in ast.walk(part)}
    nodes = [node for node in ast.walk(tree) if id(node) not in apart]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    found = [each for each in calls if ast.unparse(each.func) == "display.figure"]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def name_of(call: ast.Call) -> str:
    """Return the name that a figure is given."""
    return next((k.value.value for k in call.keywords if k.arg == "name"), "")


def _page(root: Path, document: str) -> str:
    text = (root / f"{document}.md").read_text(encoding="utf-8")
    return re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)


def without_slides(cells: list[dict]) -> list[dict]:
    """Return a notebook's cells but those that draw for slides alone."""
    return [each for each in cells if "slide-figure" not in each["metadata"].get("tags", [])]


def _cells(path: Path) -> list[tuple[str, str]]:
    cells = without_slides(json.loads(path.read_text(encoding="utf-8"))["cells"])
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


class _Reader:
    """Notes what a page labels, and counts as Sphinx does."""

    def __init__(self, book: Book, document: str, number: int):
        self.book, self.document, self.number = book, document, number
        self.counts: Counter[str] = Counter()
        self.waiting: list[str] = []

    def read(self, pieces: list[tuple[str, str]]) -> None:
        for kind, source in pieces:
            if kind == "markdown":
                self.markdown(source)
            elif kind == "code":
                for call in figure_calls(source):
                    self.note(name_of(call), "figure", "", count=True)

    def markdown(self, text: str) -> None:
        for block in blocks(text):
            if block.kind == "target":
                self.waiting.append(block.text)
            elif block.kind == "math":
                if "label" in block.options:
                    self.note(block.options["label"], "equation", "", count=True)
            elif block.kind == "directive":
                self.directive(block)
            elif block.kind == "prose":
                self.prose(block.text)

    def directive(self, block: Block) -> None:
        label = block.options.get("label") or block.options.get("name", "")
        if block.name in ("exercise", "exercise-start"):
            self.note(label, "exercise", block.argument, count="nonumber" not in block.options)
        elif block.name == "figure":
            self.note(label, "figure", block.text.strip(), count=bool(block.text.strip()))
        elif block.name == "glossary":
            terms = [line for line in block.text.splitlines() if line and not line.startswith(" ")]
            self.book.terms |= {term.casefold(): term for term in terms}
        else:
            self.note(label, "section", block.argument)
            if block.name not in ("code", "code-block", "csv-table", "list-table", "table"):
                self.markdown(block.text)

    def prose(self, text: str) -> None:
        for heading in HEADING.findall(text):
            self.book.titles.setdefault(self.document, heading)
            self.book.headings[self.document, slug(heading)] = heading
            for label in self.waiting:
                self.note(label, "section", heading)
            self.waiting = []

    def note(self, label: str, kind: str, title: str, count: bool = False) -> None:
        self.counts[kind] += count
        if label:
            number = f"{self.number}.{self.counts[kind]}" if count else ""
            self.book.labels[label] = Place(kind, self.document, number, title)
