"""Exercises with a check: not yet on the blank, right on the code of the solution.

The convention. An exercise that asks for code is

- a ``{exercise}`` block with a label;
- then a code cell with the tag ``exercise-check`` and the label as its metadata ``exercise``. Its
  last line is an expression that gives a ``_check.Check``; what stands before it is the blank, such
  as ``answer = ...`` or a function that returns None;
- then a ``{solution}`` block of the label, whose ```` ```python ```` blocks together replace the
  blank: they define the same names and hold no check.

A cell uses the imports of its notebook and what it defines itself, and no variable of other cells.
So each is tested in a namespace of its own, in no time.
"""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BLOCK = r"^(`{{3,}}|:{{3,}})\{{{kind}\}} *{first}\n(.*?)^\1$"


def cells(path, kind):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def prose(path):
    return "\n\n".join(source(cell) for cell in cells(path, "markdown"))


def exercises(text):
    """Return the labels of the exercises."""
    blocks = re.findall(BLOCK.format(kind="exercise", first="[^\n]*"), text, re.M | re.S)
    return [re.search(r"^:label: *(\S+)", body, re.M).group(1) for _, body in blocks]


def solutions(text):
    """Return the texts of the solutions by label."""
    blocks = re.findall(BLOCK.format(kind="solution", first=r"(\S+)"), text, re.M | re.S)
    return {label: body for _, label, body in blocks}


def checked(path):
    """Return the cells with a check by label."""
    tagged = [
        cell for cell in cells(path, "code") if "exercise-check" in cell["metadata"].get("tags", [])
    ]
    return {cell["metadata"]["exercise"]: source(cell) for cell in tagged}


def code_of(solution):
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", solution, re.M | re.S))


def imports(path):
    """Return the notebook's import lines, one below the other."""
    lines = []
    for cell in cells(path, "code"):
        if not re.search(r"^\s*[%!]", source(cell), re.M):
            body = ast.parse(source(cell)).body
            lines += [ast.unparse(n) for n in body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(lines)


def outcomes(first, cell, solution, change=None):
    """Return the check on the blank, and on the solution, or on what a change makes of it."""
    *blank, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr), "the last line must be the check"
    check = compile(ast.Expression(last.value), "check", "eval")
    namespace = {}
    exec(first, namespace)
    exec(compile(ast.Module(blank, []), "blank", "exec"), namespace)
    before = eval(check, namespace)
    exec(solution, namespace)
    for name in named(blank) if change else ():
        namespace[name] = changed(namespace[name], change)
    return before, eval(check, namespace)


def named(statements):
    """Return the names that the blank leaves to be filled in."""
    of_calls = [each.name for each in statements if isinstance(each, ast.FunctionDef)]
    assigned = [each for each in statements if isinstance(each, ast.Assign)]
    return of_calls + [t.id for each in assigned for t in each.targets if isinstance(t, ast.Name)]


def changed(value, change):
    """Return an answer, or a function's answers, with each float changed."""
    if callable(value):
        return lambda *given: changed(value(*given), change)
    if isinstance(value, list | tuple):
        return [changed(each, change) for each in value]
    return change(value) if isinstance(value, float | np.floating) else value


SAMPLED = {"ex-deal", "ex-grounded-cluster"}
"""Exercises whose p-value may be drawn."""

CHECKED = [(path, label) for path in NOTEBOOKS for label in checked(path)]


@pytest.mark.parametrize(("path", "label"), CHECKED, ids=[label for _, label in CHECKED])
def test_the_check_fails_on_the_blank_and_passes_on_the_solution(path, label):
    text = prose(path)
    assert label in exercises(text)
    before, after = outcomes(imports(path), checked(path)[label], code_of(solutions(text)[label]))
    assert not before.passed
    assert repr(before).startswith("Not yet: ")
    assert len(before.message) > 10
    assert after.passed, repr(after)


@pytest.mark.parametrize(("path", "label"), CHECKED, ids=[label for _, label in CHECKED])
def test_numbers_may_be_rounded_and_may_not_be_off(path, label):
    """Four decimals are enough; what is further off than that, or than chance for a p, is wrong."""
    seen = []

    def off(number):
        seen.append(number)
        return number + (0.05 if label in SAMPLED else 2e-4)

    code = code_of(solutions(prose(path))[label])
    _, rounded = outcomes(
        imports(path), checked(path)[label], code, lambda number: round(number, 4)
    )
    _, wrong = outcomes(imports(path), checked(path)[label], code, off)
    assert rounded.passed, repr(rounded)
    assert wrong.passed == (not seen), repr(wrong)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_solutions_are_of_exercises_and_folded(path):
    text = prose(path)
    folded = solutions(text)
    assert set(folded) <= set(exercises(text))
    assert all(re.search("^:class: dropdown", body, re.M) for body in folded.values())
