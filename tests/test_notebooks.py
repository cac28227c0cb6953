"""Cells that can be read: short, in sight, no prose twice; figures with all they need."""

import ast
import json
from pathlib import Path

import pytest
from cells import shown

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
HIDING = {"hide-cell", "hide-input", "hide-output", "remove-cell", "remove-input", "remove-output"}
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def sources(path):
    """Return the code of the cells, but for the one that installs the package."""
    texts = ["".join(cell["source"]) for cell in code_cells(path)]
    return [text for text in texts if "%pip" not in text]


@each_notebook
def test_few_cells_are_hidden(path):
    cells = code_cells(path)
    hidden = [cell for cell in cells if HIDING & set(cell["metadata"].get("tags", []))]
    assert len(hidden) <= len(cells) / 5


@each_notebook
def test_lines_fit(path):
    """Eighty columns show without scrolling at 1280 pixels, in book/static/custom.css."""
    lines = [line for text in sources(path) for line in text.splitlines()]
    assert [line for line in lines if len(line) > 100] == []
    lines = [line for text in sources(path) for line in shown(text).splitlines()]
    assert [line for line in lines if len(line) > 80] == []


@each_notebook
def test_cells_are_short(path):
    """In the notebook, prose included, and so as the page shows them."""
    lengths = sorted(len(text.splitlines()) for text in sources(path))
    assert lengths[len(lengths) // 2] <= 8


def calls(path, function):
    trees = [ast.parse(text) for text in sources(path)]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in nodes if ast.unparse(node.func) == function]


@each_notebook
def test_every_figure_has_caption_alt_text_name_and_table(path):
    names = []
    for call in calls(path, "display.figure"):
        given = {each.arg: each.value for each in call.keywords}
        caption, alt = call.args[1].value, given["alt"].value
        assert len(alt) > 60
        assert alt not in caption
        assert caption not in alt
        assert "table" in given, caption
        names.append(given["name"].value)
    assert names or calls(path, "audit.figure")  # which has its words, as the report of an audit
    assert len(set(names)) == len(names)


@each_notebook
def test_sayings_are_templates(path):
    """Their values have names: an f-string would compute within the prose."""
    for call in calls(path, "display.say"):
        assert not any(isinstance(node, ast.JoinedStr) for node in ast.walk(call.args[0]))


def test_prose_is_left_out_of_the_code_that_is_shown():
    said = 'mean = 2\ndisplay.say(\n    """\n    The mean is {mean}.\n    """,\n    mean=mean,\n)'
    assert shown(said) == "mean = 2"
    assert shown('display.say("Two.")') == ""
    assert shown("%pip install this") == "%pip install this"
    alt = '"Two dots – one is high, "\n    "the other one is low."'
    figure = f'display.figure(\n    plot(x),\n    "Short.",\n    name="fig-a",\n    alt={alt},\n)'
    assert shown(figure) == (
        'display.figure(\n    plot(x),\n    "Short.",\n    name="fig-a",\n    alt="…",\n)'
    )
    told = f'told = """\n{"prose " * 9}\n"""\nif x:\n    told = "None."\ndisplay.say(told)'
    assert shown(told) == 'told = "…"\nif x:\n    told = "None."'
