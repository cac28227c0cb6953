"""Whether the report of an audit is complete, each section written and each cell run.

Whether it is right is for a reader to judge.
"""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas

from biaslib.display import counted, marked, p_cell, subplots
from companion._check import Check, items_of

__all__ = ["SECTIONS", "Section", "against_null", "check_flaws", "complete", "template", "to_read"]

OPEN = re.compile(r"\[[^\[\]]*(?:…|\.\.\.)\s*\]|\[\s*TODO[^\[\]]*\]", re.I)
"""A place that is still to be filled in: square brackets that end in an ellipsis, or a TODO."""


@dataclass(frozen=True)
class Section:
    """A section that the report of an audit has to have.

    Attributes
    ----------
    heading
        As it stands in the template.
    words
        How many words of prose it has at least.
    mentions
        Words of which each has to occur, in any form that begins so.
    """

    heading: str
    words: int
    mentions: tuple[str, ...] = ()


SECTIONS = (
    Section("The decision", 40),
    Section("What bias means here", 40),
    Section("The people and their labels", 40, ("label",)),
    Section("Stimuli and data", 20),
    Section("What was fixed before the run", 30),
    Section("Does the model look?", 15),
    Section("Results", 30, ("interval",)),
    Section("Against what", 30),
    Section("What may be said", 20),
    Section("What may not be said", 20),
    Section("Limits and harms", 40),
)
"""In the order of the template."""

READ = Section("Read, not run", 60, ("report", "not run"))
"""What the text of a group that does not program has in place of cells."""

WORKED = re.compile(r"\d[^=\n]*=\s*[−-]?\.?\d")
"""A number with its way, as in 3 / 12 = .25; :data:`READ` has three at least."""


SETTING_UP = {"display", "runtime"}
"""What a template's own cells call."""


def template(programs: bool = True) -> Path:
    """Return the path of the notebook, or of the text without code, that an audit fills in.

    Examples
    --------
    >>> template().name, template(programs=False).name
    ('audit_template.ipynb', 'audit_template_read.md')
    """
    name = "audit_template.ipynb" if programs else "audit_template_read.md"
    return Path(__file__).parent / "data" / name


def complete(path: str | Path) -> pandas.DataFrame:
    """Say of every section of an audit whether it is complete, and what it lacks.

    A notebook is complete if each of :data:`SECTIONS` has its words and no open bracket, if every
    code cell holds code and was run, in order and without an error, if one of them calls a measure,
    and if the last one shows the stamp. A text (``.md``) has the section :data:`READ` in place of
    cells, with three numbers computed by hand. Whether what it says is right is for a reader to
    judge.

    Parameters
    ----------
    path
        Of the notebook, saved with its outputs, or of the text.

    Returns
    -------
    DataFrame
        *section*, *complete*, *lacks*; the last row is about the cells, or what stands for them.

    Raises
    ------
    ValueError
        If the file is neither.
    """
    path = Path(path)
    reads = path.suffix == ".md"
    try:
        text = path.read_text(encoding="utf-8")
        cells = [{"cell_type": "markdown", "source": text}] if reads else json.loads(text)["cells"]
        cells = [each | {"text": "".join(each["source"])} for each in cells if each["cell_type"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be read as a notebook ({type(error).__name__}): save it first"
        ) from error
    texts = _sections(cells)
    rows = [(each.heading, _lacks(each, texts.get(each.heading.lower()))) for each in SECTIONS]
    last = _unworked(texts.get(READ.heading.lower())) if reads else _unrun(cells)
    heading = READ.heading if reads else "All cells"
    rows.append((heading, "; ".join([*_untitled(texts), *last])))
    frame = pandas.DataFrame(rows, columns=["section", "lacks"])
    frame.insert(1, "complete", frame["lacks"].eq(""))
    return frame


def _sections(cells: list[dict]) -> dict[str, str]:
    """Return the prose below each heading, by heading in small letters."""
    found: dict[str, str] = {}
    heading = ""
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        for line in cell["text"].splitlines():
            if match := re.match(r"#{1,6}\s+(.*?)\s*$", line):
                heading = match[1].lower()
                found.setdefault(heading, "")
            else:
                found[heading] = f"{found.get(heading, '')}\n{line}"
    return found


def _lacks(section: Section, text: str | None) -> str:
    if text is None:
        return "the section"
    lacking = []
    prose = _prose(text)
    if n := len(OPEN.findall(prose)):
        lacking.append(f"{counted(n, 'places')} in brackets to be filled in")
    if (n := len(OPEN.sub(" ", prose).split())) < section.words:
        lacking.append(f"words: {n} of at least {section.words}")
    for each in section.mentions:
        if not re.search(rf"\b{each}", prose, re.I):
            lacking.append(f"the word '{each}'")
    return "; ".join(lacking)


def _prose(text: str) -> str:
    """Return a text without its hints."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


def _untitled(texts: dict[str, str]) -> list[str]:
    """Say how many places are open before the sections, the title among them."""
    known = {each.heading.lower() for each in (*SECTIONS, READ)}
    outside = [f"{name}\n{_prose(text)}" for name, text in texts.items() if name not in known]
    n = len(OPEN.findall("\n\n".join(outside)))
    return [f"{counted(n, 'places')} in brackets outside the sections"] if n else []


def _unworked(text: str | None) -> list[str]:
    """Say what the section lacks that a group writes in place of code."""
    lacking = [each for each in [_lacks(READ, text)] if each]
    if text is not None and (n := len(WORKED.findall(_prose(text)))) < 3:
        lacking.append(f"numbers computed by hand, as in 3 / 12 = .25: {n} of at least 3")
    return lacking


def _unrun(cells: list[dict]) -> list[str]:
    """Say what the code cells lack."""
    written = [each for each in cells if each["cell_type"] == "code" and each["text"].strip()]
    lacking = []
    trees = [_parsed(each["text"]) for each in written]
    for each, tree in zip(written, trees, strict=True):
        if not any(isinstance(node, ast.Name | ast.alias) for node in ast.walk(tree)):
            lacking.append(f"code in the cell '{each['text'].strip().splitlines()[0]}'")
    if not lacking and not _measures([node for tree in trees for node in ast.walk(tree)]):
        lacking.append("a call of a measure, from biaslib or a function of your own")
    if missing := sum(each.get("execution_count") is None for each in written):
        were = "was" if missing == 1 else "were"
        lacking.append(f"{counted(missing, 'cells')} {were} not run")
    counts = [each["execution_count"] for each in written if each.get("execution_count")]
    if counts != sorted(counts):
        lacking.append("cells were run out of order: restart and run all")
    outputs = [output for each in written for output in each.get("outputs", [])]
    if any(each.get("output_type") == "error" for each in outputs):
        lacking.append("a cell ended in an error")
    last = json.dumps(written[-1].get("outputs", [])) if written else ""
    if "Profile" not in last:
        lacking.append("the stamp in the last cell")
    return lacking


def _parsed(code: str) -> ast.Module:
    """Return the tree of a cell, without lines for IPython; of one that is no Python, none."""
    try:
        return ast.parse(re.sub(r"^\s*[%!].*$", "", code, flags=re.M))
    except SyntaxError:
        return ast.Module([], [])


def _measures(nodes: list[ast.AST]) -> bool:
    """Tell whether something is called that was defined or imported, besides setting up."""
    imported = {
        a.asname or a.name
        for node in nodes
        for a in getattr(node, "names", [])
        if isinstance(a, ast.alias)
    }
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    heads = [node.func for node in nodes if isinstance(node, ast.Call)]
    called = {each.id for head in heads for each in ast.walk(head) if isinstance(each, ast.Name)}
    return bool(((imported | defined) - SETTING_UP) & called)


def against_null(results: pandas.DataFrame, null: np.ndarray):
    """Draw scores with their intervals, a row a word, and those of models without bias beside them.

    Parameters
    ----------
    results
        *word*, *C-ASC, women*, *low*, *high*.
    null
        Scores of other models, (m, n) for n words.
    """
    figure, axes = subplots(height=0.32 * len(results) + 1.2, width=4.2)
    rows = np.arange(len(results))[::-1]
    value = results["C-ASC, women"]
    spans = np.abs(results[["low", "high"]].to_numpy().T - value.to_numpy())
    for scores in null:
        axes.scatter(scores, rows, 22, "0.45", "x", linewidths=1)
    axes.errorbar(value, rows, xerr=spans, fmt="o", color="C0", capsize=2)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.set_yticks(rows, results["word"])
    axes.set_xlabel("C-ASC, women against men", size=10)
    axes.tick_params(labelsize=10)
    axes.set_title("Models without bias reach some scores", loc="left", size=11)
    return marked(figure)


def to_read(results: pandas.DataFrame) -> pandas.DataFrame:
    """Return the table of scores with p-values as text.

    Examples
    --------
    >>> to_read(pandas.DataFrame({"word": ["chef"], "p, Holm": [3.9e-3]})).values.tolist()
    [['chef', '.004']]
    """
    return results.assign(**{"p, Holm": [p_cell(each) for each in results["p, Holm"]]})


FLAWED = frozenset({1, 3, 4, 6, 7, 9})
"""The numbers of the sentences of the second report that say more than was measured."""


def check_flaws(numbers) -> Check:
    """Check an exercise: which sentences of a report say more than was measured."""
    try:
        chosen = {int(each) for each in items_of(numbers)}
    except (TypeError, ValueError):
        chosen = set()
    right, wrong = len(chosen & FLAWED), len(chosen - FLAWED)
    if chosen == set(FLAWED):
        return Check(True, "each of them can be mended in a few words; do so.")
    return Check(
        False,
        f"{right} of the {len(FLAWED)} sentences found, and {wrong} named that can stand: ask of "
        "each what was measured, on what, with which doubt, and how many others were asked.",
    )
