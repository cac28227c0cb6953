"""Cells that can be read: short, in sight, no prose twice; figures with all they need."""

import ast
import json
from pathlib import Path

import pytest
from cells import has_captions, unsaid

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


def is_hidden(cell):
    return bool(HIDING & set(cell["metadata"].get("tags", [])))


def open_cells(path):
    """Return the code that a page shows unasked: not folded, and more than prose."""
    texts = ["".join(cell["source"]) for cell in code_cells(path) if not is_hidden(cell)]
    return [unsaid(text) for text in texts if unsaid(text) and not has_captions(text)]


@each_notebook
def test_few_cells_are_hidden(path):
    """Besides the one that installs the package, and the stamp."""
    _, *cells, _ = code_cells(path)
    assert sum(map(is_hidden, cells)) <= len(cells) / 5


@each_notebook
def test_lines_fit(path):
    """Eighty columns show without scrolling at 1280 pixels, in book/static/custom.css."""
    lines = [line for text in sources(path) for line in text.splitlines()]
    assert [line for line in lines if len(line) > 100] == []
    lines = [line for text in open_cells(path) for line in text.splitlines()]
    assert [line for line in lines if len(line) > 80] == []


@each_notebook
def test_cells_are_short(path):
    lengths = sorted(len(text.splitlines()) for text in open_cells(path))
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
    assert unsaid(said) == "mean = 2"
    assert unsaid('display.say("Two.")') == ""
    assert unsaid("%pip install this") == "%pip install this"


def test_a_cell_with_the_words_of_a_figure_is_folded():
    alt = '"Two dots – one is high, "\n    "the other one is low."'
    figure = f'display.figure(\n    plot(x),\n    "Short.",\n    name="fig-a",\n    alt={alt},\n)'
    assert has_captions(figure)
    assert has_captions(f'told = "{"prose " * 9}"\ndisplay.table(rows, told)')
    assert not has_captions('display.table(rows, "Words of a table, which are longer than this")')
    assert not has_captions("%pip install this")
