"""A chapter's notebook for the classroom: each exercise below the data that it uses, no solution.

Of the chapter's code it keeps what exercises, their solutions and that data need; a name counts as
needed where one of them reads it, and a cell is kept if it binds or changes such a name.
"""

import ast
import builtins
import json
import re
import symtable
import sys
from pathlib import Path

import needs
from cells import unsaid

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import notebook_copies
from book_index import without_slides

FENCE = r"^(?P<fence>`{{3,}}|:{{3,}})\{{{kind}\}}[^\n]*\n.*?^(?P=fence)[ \t]*$\n?"
SOLUTION = re.compile(FENCE.format(kind="solution"), re.M | re.S)
EXERCISE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{exercise\} *(?P<title>[^\n]*)\n(?P<options>(?::[^\n]*\n)*)"
    r"(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.M | re.S,
)
LABEL = re.compile(r":label: ([\w-]+)")
NOTE = re.compile(r"^:::\{admonition\} Content note\n(?::[^\n]*\n)*(.*?)^:::", re.M | re.S)
FORMULA = re.compile(r"^```\{math\}\n(?::label: ([\w-]+)\n)?(.*?)^```", re.M | re.S)
HEADING = re.compile(r"^(#+) (.*)$", re.M)
PYTHON = re.compile(r"^`{3,}(?:python|\{code-cell\})[^\n]*\n(.*?)^`{3,}", re.M | re.S)
ROLE = re.compile(r"\{(eq|numref|term|cite:?\w*|py:\w+)\}`([^`]*)`")
PAGE = re.compile(r"\[([^\]]*)\]\([^)\s]*\.(?:ipynb|md)[^)]*\)")
NAMED = re.compile(r"`([A-Za-z_]\w*)[\w.]*[`(]")
"""A name of code in the text of an exercise, or what it is an attribute of."""

MAGIC = re.compile(r"^( *)%.*$", re.M)
SHORT = re.compile(r'"\s*\n\s*(?:\w+ \+= )?f?"')
"""Where a string goes on in the next line."""

INTRODUCTION = """# Classroom notebook: {title}

The exercises of the chapter, each below the data that it uses, without solutions. Run the first
cell of code, which installs what is missing. The others print results: run them all when your
lecturer says so, or now if you work alone. A check says *Not yet* until its exercise is answered,
and then *Right*. The prose is in the chapter.

On a laptop with Python:
`python -m pip install jupyterlab`, then `jupyter lab` in the folder of this notebook. If the first
cell asks for `biaslib_colab.zip`, put that file, from whoever gave you the notebook,
beside it."""


def classroom(folder: Path, stem: str, terms: str, notes: Path = needs.NOTES) -> str:
    """Return a chapter's classroom notebook.

    Parameters
    ----------
    folder
        The notebooks of the book.
    stem
        The chapter's name.
    terms
        What may be done with it and what to cite.
    notes
        Where ``needs`` of exercises are written.

    Raises
    ------
    ValueError
        Naming chapter, exercise and what it needs, if the notebook that should have it does not, or
        if nothing binds a name that a cell reads.
    """
    found = read(folder, stem)
    cells, written = found["cells"], needs.written(stem, notes)
    first = next((n for n, cell in enumerate(cells) if EXERCISE.search(source(cell))), None)
    if first is None:
        raise ValueError(f"{stem}: the notebook has no exercise")
    below, asked = [markdown("## Exercises", "exercises")], False
    for cell in outside_solutions(cells[first:]):
        if cell["cell_type"] == "markdown":
            text = source(cell)
            for exercise in EXERCISE.finditer(SOLUTION.sub("", text)):
                below += [*in_sight(folder, stem, exercise, written), told(exercise)]
            places = [text.rfind(kind) for kind in ("{exercise}", "{solution")]
            asked = places[0] > places[1] if max(places) >= 0 else asked
        elif (kept := bare(cell)) is not None and (asked or is_stamp(cell)):
            below.append(kept)
    wanted = set()
    for cell in reversed(below):
        wanted = read_before(source(cell), wanted) if cell["cell_type"] == "code" else wanted
    for code in code_of(cells[first:]):
        wanted |= read_before(code, set())
    above = [markdown("## What the exercises need", "needed"), *sliced(cells[:first], wanted)]
    above += lacking([*above, *below], imports(code_of(cells)))
    cells = [introduction(cells, terms), *above, *numbered(below)]
    found["cells"] = [with_setup(each, stem) for each in cells]
    check_names(found["cells"], stem)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def read(folder: Path, stem: str) -> dict:
    found = json.loads((folder / f"{stem}.ipynb").read_text(encoding="utf-8"))
    return found | {"cells": without_slides(found["cells"])}


def with_setup(cell: dict, stem: str) -> dict:
    """Return a cell as the chapter's copy has it: the first installs, and offers the profile."""
    text = source(cell)
    if cell["cell_type"] != "code":
        return cell
    if "%pip" not in text:
        return cell | {"source": notebook_copies.without_choice(text).splitlines(keepends=True)}
    code = notebook_copies.setup(text, f"notebooks/{stem}")
    return notebook_copies.code_cell(cell["id"], code, {"cellView": "form"})


def source(cell: dict) -> str:
    return "".join(cell["source"])


def markdown(text: str, name: str) -> dict:
    lines = plain(text).strip().splitlines(keepends=True)
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": lines}


def introduction(cells: list[dict], terms: str) -> dict:
    """Return the first cell: what this is, the chapter's content note, licence and citation."""
    prose = "\n".join(source(each) for each in cells if each["cell_type"] == "markdown")
    parts = [INTRODUCTION.format(title=HEADING.search(prose)[2])]
    parts += [f"**Content note.** {each.strip()}" for each in NOTE.findall(prose)]
    return markdown("\n\n".join([*parts, terms]), "classroom-introduction")


def told(exercise: re.Match) -> dict:
    title, text = exercise["title"], exercise["text"].strip()
    label = LABEL.search(exercise["options"])[1]
    head = f"**Exercise: {title}**" if title else "**Exercise**"
    return markdown(f"{head}\n\n{text}", label)


def plain(text: str) -> str:
    """Return the book's Markdown as any notebook program shows it.

    >>> plain("See {eq}`eq-score`, {term}`C-ASC` and [the world](planted_world.ipynb).")
    'See (score), C-ASC and the world.'
    >>> plain("An interval {cite}`efron1994,hall2023visogender`.")
    'An interval [Efron 1994,Hall 2023].'
    >>> plain("```{math}\\n:label: eq-score\\ns = 1\\n```")
    '$$\\ns = 1\\n\\\\tag{score}\\n$$'
    """

    def formula(found: re.Match) -> str:
        tag = f"\\tag{{{found[1].removeprefix('eq-')}}}\n" if found[1] else ""
        return f"$$\n{found[2]}{tag}$$"

    def role(found: re.Match) -> str:
        kind, what = found.groups()
        if kind == "eq":
            return f"({what.removeprefix('eq-')})"
        if kind.startswith("cite"):
            named = re.sub(r"([a-z]+)(\d{4})\w*", lambda key: f"{key[1].title()} {key[2]}", what)
            return f"[{named}]"
        return f"`{what}`" if kind == "numref" else what

    text = FORMULA.sub(formula, NOTE.sub("", text))
    return PAGE.sub(r"\1", ROLE.sub(role, text))


def in_sight(folder: Path, stem: str, exercise: re.Match, written: dict) -> list[dict]:
    """Return cells that show what an exercise refers to."""
    label = LABEL.search(exercise["options"])[1]
    roles = [each for each in ROLE.findall(exercise["text"]) if each[0] in ("eq", "numref")]
    linked = [f"equation-{what}" if kind == "eq" else what for kind, what in roles]
    places = [needs.place(each, stem) for each in [*linked, *written.get(label, [])]]
    found = []
    for other, need in dict.fromkeys(places):
        cells = read(folder, other)["cells"]
        shown = showing(cells, need)
        if not shown:
            raise ValueError(f"{stem}, {label}: notebooks/{other}.ipynb has no {need!r}")
        if other != stem and not need.startswith("equation-"):
            chapter = HEADING.search(source(cells[0]))[2]
            shown = [markdown(f"Look at `{need}` in the chapter *{chapter}*.", "elsewhere")]
        found += [each for each in shown if each not in found]
    return found


def showing(cells: list[dict], need: str) -> list[dict]:
    """Return the cells of a notebook that show a formula, a section, a figure or a table."""
    if need.startswith("equation-"):
        label = need.removeprefix("equation-")
        formulas = [each for cell in cells for each in FORMULA.finditer(source(cell))]
        return [markdown(each[0], label) for each in formulas if each[1] == label]
    wanted = re.sub(r"^(?:code|output): ", "", need)
    code = [each for each in cells if each["cell_type"] == "code"]
    found = [each for each in code if wanted in SHORT.sub("", source(each))]
    return [bare(found[0])] if found else section(cells, need)


def section(cells: list[dict], name: str) -> list[dict]:
    """Return what stands below the heading of that name, up to the next heading."""
    found, inside = [], False
    for cell in cells:
        if cell["cell_type"] == "code":
            found += [cell] if inside else []
            continue
        pieces = re.split(r"(?m)^(?=#+ )", source(cell))
        for number, piece in enumerate(pieces):
            heading = HEADING.match(piece)
            if heading:
                inside = slug(heading[2]) == name
            if inside and piece.strip():
                found.append(markdown(piece, f"{cell['id']}-{number}"))
    return found


def slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def outside_solutions(cells: list[dict]) -> list[dict]:
    """Return the cells that do not stand between a ``solution-start`` and its ``solution-end``.

    The cell of the end is kept, for the exercise that may follow in it.
    """
    kept, inside = [], False
    for cell in cells:
        begins = "{solution-start}" in source(cell)
        inside = (inside or begins) and "{solution-end}" not in source(cell)
        if not inside:
            kept.append(cell)
    return kept


def is_stamp(cell: dict) -> bool:
    """Tell whether a cell ends a notebook with the stamp of its run."""
    return source(cell).strip().split("\n")[-1] == "run"


def bare(cell: dict) -> dict | None:
    """Return a code cell without its prose; None if it is folded, or nothing is left."""
    if "%pip" in source(cell):
        return cell
    hidden = "hide-cell" in cell["metadata"].get("tags", [])
    code = unsaid(source(cell))
    return None if hidden or not code else cell | {"source": code.splitlines(keepends=True)}


def numbered(cells: list[dict]) -> list[dict]:
    """Return the cells with names of their own, since data may be shown twice."""
    return [cell | {"id": f"{cell['id'][:58]}-{n}"} for n, cell in enumerate(cells, start=1)]


# Which cells are needed


def imports(codes: list[str]) -> dict[str, str]:
    """Return the statement that imports each name which code imports."""
    found = {}
    for node in (node for code in codes if (tree := parsed(code)) for node in ast.walk(tree)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                node.names = [each]
                found |= dict.fromkeys(bound(node), ast.unparse(node))
    return found


def lacking(cells: list[dict], known: dict[str, str]) -> list[dict]:
    """Return a cell that imports what the text of an exercise names and no cell imports."""
    named = {name for each in cells if is_told(each) for name in NAMED.findall(source(each))}
    code = [source(each) for each in cells if each["cell_type"] == "code"]
    lines = sorted({known[name] for name in (named & {*known}) - {*imports(code)}})
    return [notebook_copies.code_cell("named", "\n".join(lines))] if lines else []


def is_told(cell: dict) -> bool:
    return cell["cell_type"] == "markdown" and source(cell).startswith("**Exercise")


def check_names(cells: list[dict], stem: str) -> None:
    """Refuse a notebook in which a cell reads a name that neither it nor one above it binds."""
    known, place = {*dir(builtins), "get_ipython"}, "what the exercises need"
    for cell in cells:
        if is_told(cell):
            place = source(cell).partition("\n")[0].strip("*")
        elif cell["cell_type"] == "code":
            code = MAGIC.sub(r"\1pass", source(cell))
            known |= changed(ast.parse(code), set())
            if unknown := sorted(read_before(code, set()) - known):
                raise ValueError(
                    f"{stem}, {place}: its classroom notebook reads {', '.join(unknown)}, which no "
                    "cell of it binds. Import or compute it above the exercise, in a cell that is "
                    "not folded"
                )


def code_of(cells: list[dict]) -> list[str]:
    """Return all code of cells: of code cells, and of the blocks and code spans in Markdown."""
    found = []
    for cell in cells:
        if cell["cell_type"] == "code":
            found.append(source(cell))
        else:
            found += PYTHON.findall(source(cell))
            found += re.findall(r"`([A-Za-z_][\w.]*)`", source(cell))
    return found


def read_before(code: str, wanted: set[str]) -> set[str]:
    """Return what must be bound before code so that it runs, and binds or leaves what is wanted.

    >>> sorted(read_before("x = y\\nfor a in x:\\n    print(a + z)", {"x", "w"}))
    ['print', 'w', 'y', 'z']
    """
    tree = parsed(code)
    return wanted_before(tree.body, wanted) if tree else wanted


def wanted_before(statements: list[ast.stmt], wanted: set[str]) -> set[str]:
    for statement in reversed(statements):
        if isinstance(statement, ast.For):
            inside = wanted_before(statement.body, set()) - stored(statement.target)
            wanted = wanted | inside | read_by(statement.iter)
        else:
            wanted = (wanted - bound(statement)) | read_by(statement)
        if isinstance(statement, ast.AugAssign):
            wanted.add(base(statement.target))
    return wanted


def read_by(node: ast.AST) -> set[str]:
    return referenced(symtable.symtable(ast.unparse(node), "cell", "exec"))


def referenced(table: symtable.SymbolTable) -> set[str]:
    """Return the global names that code reads, also within its functions."""
    outside = table.get_type() == "module"
    symbols = [each for each in table.get_symbols() if outside or each.is_global()]
    found = {each.get_name() for each in symbols if each.is_referenced()}
    return found.union(*(referenced(each) for each in table.get_children()))


def bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement gives a new object, whatever they were before."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {each.asname or each.name.split(".")[0] for each in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return set().union(*(stored(each) for each in targets))


def stored(target: ast.AST) -> set[str]:
    nodes = [node for node in ast.walk(target) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


def parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except SyntaxError:  # a command of the notebook program, or prose
        return None


def sliced(cells: list[dict], wanted: set[str]) -> list[dict]:
    """Return the code cells on which the wanted names depend, in their order."""
    code = [each for each in cells if each["cell_type"] == "code"]
    imported = {*imports([source(each) for each in code])}
    kept, wanted = [], set(wanted)
    for cell in reversed(code):
        if (shown := bare(cell)) is None:
            continue
        tree = parsed(source(shown))
        if tree is None or changed(tree, imported) & wanted:
            kept.append(shown)
            wanted = read_before(source(shown), wanted)
    return kept[::-1]


def changed(tree: ast.Module, imported: set[str]) -> set[str]:
    """Return the names that a cell binds, or whose object it may change.

    A method that is called for its effect changes its object, and so does whatever draws from a
    generator of random numbers; a function of a module changes nothing, and what is recorded of
    the run nothing that is computed.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= bound(node)
        elif isinstance(node, ast.Name) and (isinstance(node.ctx, ast.Store) or "rng" in node.id):
            found.add(node.id)
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(base(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found |= {base(node.value.func)} - imported - {"run"}
    return found


def base(node: ast.AST) -> str:
    """Return the name from which an expression such as ``a.b[c].d`` begins."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
