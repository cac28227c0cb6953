"""Copies of the chapters that read well in any notebook program: ``make copies`` writes them.

Colab, JupyterLab and VS Code know plain Markdown only. A copy has the chapter's cells with plain
Markdown in place of MyST (:mod:`plain_markdown`), with solutions folded, with its first cell made
for a machine on which nothing is installed, and with the list of what it cites. The copies are
committed in ``colab/``; a test compares them with what this program makes of the notebooks.
"""

import ast
import functools
import json
import re
import sys
from pathlib import Path

import repository
from book_index import BRANCH, Book, figure_calls, name_of, read_book, without_slides
from plain_markdown import ROLE, Page, inline, left_over, plain

ROOT = Path(__file__).parents[1]
FOLDER = "colab"
HIDING = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
IN_WORDS = "# @title In words"
STAMP = "# @title What this run used"
SOLUTION_ENDS = re.compile(r"^(?=(?:`{3,}|:{3,})\{solution-(?:start|end)\})", re.M)
LINK_IN_CODE = re.compile(r"\[[^\[\]]*\]\((?:\.\./|\w+\.ipynb)[^()\s]*\)")

INTRODUCTION = """\
*A chapter of {book} as a notebook: run the cells from top to bottom. \
Sentences that hold numbers appear below the cells that compute them.* {where}"""

NOWHERE = """\
*This copy was made before the book had a web address: names of other chapters are no links. The \
zip has them in its folder `notebooks`.*"""

SETUP = """\
# @title Start here: installs what is missing, and looks at the machine { display-mode: "form" }
CHOICE
import os, tempfile, zipfile
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path
from packaging.requirements import Requirement
from packaging.version import Version


def lacking(extra):  # what an extra of biaslib asks for, and this machine has not
    missing = []
    for needed in map(Requirement, requires("biaslib")):
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            if needed.name == "biaslib":
                missing += [name for inner in needed.extras for name in lacking(inner)]
                continue
            try:
                fits = needed.specifier.contains(version(needed.name), prereleases=True)
            except PackageNotFoundError:
                fits = False
            missing += [] if fits else [needed.name]
    return missing


SOURCE
wheels = Path(tempfile.mkdtemp())
for folder in ("/content/drive/MyDrive", "/content", "."):
    for path in sorted(Path(folder).glob("ZIP*.zip"), key=os.path.getmtime):
        try:
            zipfile.ZipFile(path).extractall(wheels)
        except zipfile.BadZipFile:
            raise RuntimeError(f"{path} is not whole: delete it and upload it again") from None
zips = {each.name.split("-")[1]: each for each in wheels.glob("biaslib-*.whl")}
newest = max(zips, key=Version, default="0")
try:
    why = [name for extra in EXTRAS for name in lacking(extra)]
    if Version(newest) > Version(version("biaslib")):
        why.append(f"biaslib {newest} in place of {version('biaslib')}")
except PackageNotFoundError:
    why = ["biaslib"]
if why:
    if zips:
        source = zips[newest].as_uri()
    elif "YOUR_ACCOUNT" in source:
        raise RuntimeError(
            f"{', '.join(why)} not installed, and there is no ZIP.zip in this folder, /content "
            "or /content/drive/MyDrive. Upload it (Colab: Files, at the left) or mount the drive "
            "that has it, wait until it is whole, and run this cell again. `make colab` makes it"
        )
    print(f"Installing {', '.join(why)}; the zips here have {', '.join(zips) or 'no biaslib'}")
    kept = wheels / "kept.txt"  # what this machine has of these stays as it is
    here = [each for each in distributions() if each.name in ("numpy", "torch", "torchvision")]
    kept.write_text("".join(f"{each.name}=={each.version}\\n" for each in here))
    %pip install -q --find-links {wheels} --constraint {kept} "REQUIREMENT @ {source}"

from biaslib import runtime

print(runtime.prepare(PREPARED))"""

CHOICE = """\
# @markdown `planted`: tiny models and emoji, on any machine. \
`paper`: the released models and data, on a GPU.
PROFILE = "planted"  # @param ["planted", "paper"]
# @markdown In `paper`, on a GPU: `auto`, half precision, or `float32`, several times slower.
PRECISION = "auto"  # @param ["auto", "float32"]
"""

SIZE = """\
# @markdown In `paper`: the whole study, or `taste`, ten minutes on a small released model.
SIZE = "full"  # @param ["full", "taste"]
"""

ZIP = "biaslib_colab"
"""How the names of zips begin that the first cell installs from: see :mod:`colab_zip`."""


def main() -> None:
    """Write the copies, and delete those whose notebook is gone."""
    folder, made = ROOT / FOLDER, copies(ROOT)
    folder.mkdir(exist_ok=True)
    for path in set(folder.glob("*.ipynb")) - {folder / name for name in made}:
        path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} copies are in {FOLDER}/")


def copies(root: Path) -> dict[str, str]:
    """Return the text of every copy by its file's name."""
    book, made = read_book(root), {}
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        try:
            copy = copied(notebook, Page(book, f"notebooks/{path.stem}"))
        except ValueError as error:
            raise SystemExit(f"{path.name} has no copy: {error}") from error
        made[path.name] = json.dumps(copy, indent=1, ensure_ascii=False) + "\n"
    return made


def copied(notebook: dict, page: Page) -> dict:
    """Return the copy of a notebook."""
    cells = folded_answers(without_slides(notebook["cells"]))
    made = [each for cell in cells for each in _cell(cell, page)]
    made[0] = with_introduction(made[0], page)
    if page.cited:
        made.append(markdown_cell("references", references(page)))
    name = f"{page.document.rpartition('/')[2]}.ipynb"
    card = {"accelerator": "GPU"} if page.document in with_profiles() else {}
    colab = {"name": name, "provenance": [], "toc_visible": True}
    return {
        "cells": made,
        "metadata": notebook["metadata"]
        | card
        | {"colab": colab, "made_from": f"notebooks/{name}"},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def source_of(cell: dict) -> str:
    """Return a cell's text."""
    return "".join(cell["source"])


def markdown_cell(name: str, text: str) -> dict:
    """Return a cell of Markdown."""
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": lines_of(text)}


def code_cell(name: str, text: str, metadata: dict | None = None) -> dict:
    """Return a cell of code that was not run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata or {},
        "outputs": [],
        "source": lines_of(text),
    }


def lines_of(text: str) -> list[str]:
    """Return text as notebooks store it."""
    return text.splitlines(keepends=True)


def hidden_cell(name: str, text: str, title: str) -> dict:
    """Return a cell whose code is hidden: by a form in Colab, by a note in the other programs."""
    metadata = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    return code_cell(name, f"{title}\n{text}", metadata)


# What a reader should not see at once: answers to exercises


def folded_answers(cells: list[dict]) -> list[dict]:
    """Put the code of answers into the folded solutions.

    Cells between ``{solution-start}`` and ``{solution-end}`` become one ``{solution}``; a cell that
    the book folds away, since it checks a written solution, becomes one more thing to open.
    """
    found, inside, answers = [], None, answer_cells(cells)
    for place, cell in enumerate(cells):
        text = source_of(cell)
        if cell["cell_type"] == "markdown":
            for piece in SOLUTION_ENDS.split(text):
                inside = _answer_piece(piece, cell, found, inside)
        elif inside is not None:
            inside.append(f"```python\n{text}\n```")
        elif place in answers:
            found.append(_answer_as_code(cell, text))
        else:
            found.append(cell)
    return found


def answer_cells(cells: list[dict]) -> set[int]:
    """Return the places of code cells that hold an answer."""
    found, inside, installed = set(), False, False
    for place, cell in enumerate(cells):
        text = source_of(cell)
        if cell["cell_type"] == "markdown":
            ends = re.findall(r"\{solution-(start|end)\}", text)
            inside = ends[-1] == "start" if ends else inside
        elif inside or (installed and "hide-cell" in cell["metadata"].get("tags", [])):
            found.add(place)
        installed = installed or "%pip" in text
    return found


def _answer_piece(text: str, cell: dict, found: list[dict], inside: list[str] | None):
    """Take a piece of Markdown into the cells, or into the solution that is open; return that."""
    begun = re.match(
        r"(`{3,}|:{3,})\{solution-(start|end)\} *(\S*)\n.*?^\1[ \t]*\n?", text, re.M | re.S
    )
    if begun is None:
        if inside is not None:
            inside.append(text)
        elif text.strip():
            found.append(cell | {"source": text})
        return inside
    rest = text[begun.end() :]
    if begun[2] == "start":
        return [begun[3], *([rest] if rest.strip() else [])]
    label, *parts = inside or [""]
    body = "\n\n".join(part.strip() for part in parts)
    if "```python" in body:
        body += "\n\nTo run the code, copy it into a cell."
    found.append(cell | {"source": f"``````{{solution}} {label}\n{body}\n``````"})
    if rest.strip():
        found.append(cell | {"source": rest, "id": f"{cell['id']}-rest"})
    return None


def _answer_as_code(cell: dict, text: str) -> dict:
    title = "The solution checked by code (copy it into a cell to run it)"
    fence = f"``````{{dropdown}} {title}\n```python\n{text}\n```\n``````"
    return {"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": fence}


# Cells


def _cell(cell: dict, page: Page) -> list[dict]:
    """Return what stands for a cell in the copy: one cell, or code and the sentence it says."""
    text, name = source_of(cell), cell["id"]
    if cell["cell_type"] != "code":
        return _markdown(name, text, page)
    if "%pip" in text:
        return [code_cell(name, setup(text, page.document), {"cellView": "form"})]
    text = in_copies(text, page)
    if HIDING & set(cell["metadata"].get("tags", [])):
        return [hidden_cell(name, text, title(text))]
    code, *said = split_sentences(text)
    if code and only_draws(code):
        return [hidden_cell(name, code, title(code))]
    made = [code_cell(name, code)] if code else []
    for n, each in enumerate(said):
        own = name if not made else f"{name}-words-{n}" if n else f"{name}-words"
        made.append(hidden_cell(own, each, IN_WORDS))
    return made


def title(code: str) -> str:
    """Return what stands above a hidden cell.

    >>> title("import numpy as np"), title('display.figure(draw(), "Fig. 1.2. Shares.")')
    ('# @title Imports', '# @title Fig. 1.2')
    """
    number = re.search(r"Fig\. [\d.]+\d", code)
    if number or only_draws(code):
        return f"# @title {number[0] if number else 'Figure'}"
    if code.endswith("run"):
        return STAMP
    if re.match(r"(import|from) ", code):
        return "# @title Imports"
    return IN_WORDS if "display.say(" in code else "# @title Code"


def _markdown(name: str, text: str, page: Page) -> list[dict]:
    shown = plain(text, page)
    if left := left_over(shown):
        raise ValueError(f"cell {name} still has {left}")
    return [markdown_cell(name, shown)] if shown.strip() else []


def setup(text: str, document: str) -> str:
    """Return the first code cell: it installs, offers the profile, and looks at the machine."""
    source, requirement = re.search(r'(source = .*)\n *%pip install -q "(\S+) @', text).groups()
    extras = requirement.partition("[")[2].rstrip("]")
    name = document.rpartition("/")[2]
    chosen, sizes = document in with_profiles(), document in with_sizes()
    prepared = f'PROFILE, PRECISION, "{name}"{", size=SIZE" if sizes else ""}'
    filled = {
        "CHOICE\n": CHOICE + (SIZE if sizes else "") + "\n" if chosen else "",
        "SOURCE": source,
        "ZIP": ZIP,
        "REQUIREMENT": requirement,
        "EXTRAS": repr(extras.split(",")),
        "PREPARED": prepared if chosen else "",
    }
    return functools.reduce(lambda cell, part: cell.replace(*part), filled.items(), SETUP)


def with_profiles() -> set[str]:
    """Return the chapters that can be run in either profile."""
    return _that_say("runtime.start(PROFILE")


def with_sizes() -> set[str]:
    """Return the chapters that can be run as a taste."""
    return _that_say("runtime.start(PROFILE, SIZE)")


def _that_say(code: str) -> set[str]:
    paths = (ROOT / "notebooks").glob("*.ipynb")
    texts = {f"notebooks/{path.stem}": path.read_text(encoding="utf-8") for path in paths}
    return {name for name, text in texts.items() if code in text}


def in_copies(text: str, page: Page) -> str:
    """Return a cell's code with the first cell's profile, numbered captions and plain words."""
    text = numbered_captions(without_choice(text), page.book)
    if "display.say" not in text:
        return text
    text = re.sub(r"\{\{(\w[\w:.+-]*)\}\}(?=`)", r"{\1}", text)
    text = ROLE.sub(lambda found: inline(found[0], page) if found["role"] else found[0], text)
    return LINK_IN_CODE.sub(lambda found: inline(found[0], page), text)


def without_choice(text: str) -> str:
    """Return a cell's code without the choice that the first cell offers."""
    return re.sub(
        r"(?:^#.*\n)*^PROFILE = .*\n(SIZE = .*\n)?",
        lambda found: (
            f"# PROFILE {'and SIZE were' if found[1] else 'was'} chosen in the first cell\n"
        ),
        text,
        flags=re.M,
    )


def numbered_captions(text: str, book: Book) -> str:
    """Write the figure's number, as the site gives it, before each caption."""
    lines = text.splitlines(keepends=True)
    for call in reversed(figure_calls(text)):
        place = book.labels.get(name_of(call))
        if place is None or len(call.args) < 2:
            continue
        caption = call.args[1]
        line = lines[caption.lineno - 1].encode()
        before, after = line[: caption.col_offset].decode(), line[caption.col_offset :].decode()
        opening = re.match(r"[rRfFbBuU]*(?:\"{3}|'{3}|[\"'])", after)
        if opening:
            numbered = f"{opening[0]}Fig. {place.number}. {after[opening.end() :]}"
            lines[caption.lineno - 1] = before + numbered
    return "".join(lines)


def split_sentences(text: str) -> list[str]:
    """Return a cell's code, and each of the sentences with which it ends.

    >>> split_sentences('n = 2\\ndisplay.say("{n}.", n=n)')
    ['n = 2', 'display.say("{n}.", n=n)']
    """
    try:
        body = ast.parse(text).body
    except SyntaxError:  # a command of the notebook program
        return [text]
    lines, said = text.splitlines(), []
    while body and _calls(body[-1], "display.say"):
        first = body.pop().lineno - 1
        said.insert(0, "\n".join(lines[first:]).strip())
        del lines[first:]
    return ["\n".join(lines).rstrip(), *said]


def only_draws(text: str) -> bool:
    """Tell whether a cell does nothing but show a figure, so that its code is mostly captions."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return len(body) == 1 and _calls(body[0], "display.figure")


def _calls(statement: ast.stmt, function: str) -> bool:
    called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return called and ast.unparse(statement.value.func) == function


# Head and end


def with_introduction(cell: dict, page: Page) -> dict:
    """Return the first cell with what the copy is, and where it opens, below its title."""
    title, _, rest = source_of(cell).partition("\n")
    name, book, address = page.document, page.book, page.book.site or page.book.address
    told = INTRODUCTION.format(
        book=f"[{book.titles['book/index']}]({address})" if address else book.titles["book/index"],
        where=f"[Open in Colab]({colab_address(name)})" if book.address else NOWHERE,
    )
    return cell | {"source": lines_of(f"{title}\n\n{told}\n\n{rest.strip()}".rstrip())}


def colab_address(name: str) -> str:
    """Return the address at which Colab opens a copy."""
    pair = repository.owner_and_name(repository.address())
    copy = f"{FOLDER}/{name.rpartition('/')[2]}.ipynb"
    return f"https://colab.research.google.com/github/{pair}/blob/{BRANCH}/{copy}"


def references(page: Page) -> str:
    """Return what the page cites, as a list."""
    listed = page.book.bibliography.listed(page.cited)
    return "## References\n\n" + "\n".join(f"- {each}" for each in listed)


if __name__ == "__main__":
    sys.exit(main())
