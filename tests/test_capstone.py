"""A report is complete when all of it is written and run; flaws are found by reading."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from companion import capstone

ROOT = Path(__file__).parents[1]
TEMPLATE = capstone.template()
CALL = "\ngrounded.grounded(scores)"
PROSE = "The label was given by a worker, and the interval is wide. " * 8


def filled(tmp_path, change=lambda cells: None):
    """Return a path to the template, filled in and run; *change* spoils it."""
    notebook = json.loads(TEMPLATE.read_text(encoding="utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["source"] = [*cell["source"], "\nfrom biaslib.metrics import grounded", CALL]
            continue
        text = capstone.OPEN.sub(PROSE, "".join(cell["source"]))
        cell["source"] = text.splitlines(keepends=True)
    stamp = {"output_type": "execute_result", "data": {"text/plain": "Profile: planted"}}
    notebook["cells"][-1]["outputs"] = [stamp]
    change(notebook["cells"])
    path = tmp_path / "audit.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_the_template_has_every_section_in_order_and_lacks_all_of_them():
    found = capstone.complete(TEMPLATE)
    headings = [
        line.removeprefix("## ").strip()
        for cell in json.loads(TEMPLATE.read_text(encoding="utf-8"))["cells"]
        for line in cell["source"]
        if line.startswith("## ")
    ]
    assert headings == [each.heading for each in capstone.SECTIONS]
    assert found["section"].tolist() == [*headings, "All cells"]
    assert not found["complete"].any()
    assert found["lacks"].iloc[:-1].str.contains("1 place in brackets").all()


def test_a_filled_template_is_complete(tmp_path):
    found = capstone.complete(filled(tmp_path))
    assert found["complete"].all(), found.to_string()


def without_a_section(cells):
    cells[:] = [each for each in cells if "What may not be said" not in "".join(each["source"])]


def a_bracket_left(cells):
    cells[1]["source"].append("\n\n[and the people…]")


def a_bracket_over_two_lines(cells):
    cells[1]["source"].append("\n\n[and the\npeople…]")


def a_note_left(cells):
    cells[1]["source"].append("\n\n[TODO]")


def the_title_left(cells):
    cells[0]["source"] = ["# An audit of [model…]\n", "\n", "By [who…]"]


def an_untouched_cell(cells):
    cells[10]["source"] = ["# the run, and its table"]


def no_code(cells):
    for cell in cells[8], cells[10]:
        cell["source"] = ["1"]


def no_measure(cells):
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["source"] = [each for each in cell["source"] if each != CALL]


def too_short(cells):
    cells[1]["source"] = ["## The decision\n", "\n", "To hire."]


def no_interval(cells):
    spot = next(each for each in cells if "## Results" in "".join(each["source"]))
    spot["source"] = [line.replace("interval", "spread") for line in spot["source"]]


def not_run(cells):
    cells[5]["execution_count"] = None


def out_of_order(cells):
    cells[5]["execution_count"] = 99


def with_an_error(cells):
    cells[5]["outputs"] = [{"output_type": "error", "ename": "ValueError"}]


def no_stamp(cells):
    cells[-1]["outputs"] = []


@pytest.mark.parametrize(
    ("change", "section", "lacks"),
    [
        (without_a_section, "What may not be said", "the section"),
        (a_bracket_left, "The decision", "1 place in brackets to be filled in"),
        (a_bracket_over_two_lines, "The decision", "1 place in brackets to be filled in"),
        (a_note_left, "The decision", "1 place in brackets to be filled in"),
        (the_title_left, "All cells", "2 places in brackets outside the sections"),
        (an_untouched_cell, "All cells", "code in the cell '# the run, and its table'"),
        (no_code, "All cells", "code in the cell '1'; code in the cell '1'"),
        (no_measure, "All cells", "a call of a measure, from biaslib or a function of your own"),
        (too_short, "The decision", "words: 2 of at least 40"),
        (no_interval, "Results", "the word 'interval'"),
        (not_run, "All cells", "1 cell was not run"),
        (out_of_order, "All cells", "cells were run out of order: restart and run all"),
        (with_an_error, "All cells", "a cell ended in an error"),
        (no_stamp, "All cells", "the stamp in the last cell"),
    ],
)
def test_what_is_missing_is_named_and_nothing_else(tmp_path, change, section, lacks):
    found = capstone.complete(filled(tmp_path, change)).set_index("section")
    assert found.loc[section, "lacks"] == lacks
    assert found.drop(section)["complete"].all()


def read_report(tmp_path, ways):
    text = capstone.OPEN.sub(PROSE, capstone.template(programs=False).read_text("utf-8"))
    path = tmp_path / "audit.md"
    path.write_text(f"{text}\nFrom this report; training was not run. {ways}", "utf-8")
    return path


def test_a_group_that_does_not_program_hands_in_three_numbers_with_their_way(tmp_path):
    text = capstone.template(programs=False).read_text("utf-8")
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [each.heading for each in (*capstone.SECTIONS, capstone.READ)]
    assert not capstone.complete(capstone.template(programs=False))["complete"].any()
    ways = "3 / 12 = .25, and\n1.5 − 2 = −0.5, and\n√(2.25) = 1.5"
    assert capstone.complete(read_report(tmp_path, ways))["complete"].all()
    found = capstone.complete(read_report(tmp_path, "3 / 12 = .25")).set_index("section")
    assert "1 of at least 3" in found.loc["Read, not run", "lacks"]
    assert found.drop("Read, not run")["complete"].all()


def test_the_worked_example_fills_in_every_section_of_the_template():
    found = capstone.complete(ROOT / "notebooks" / "capstone.ipynb").set_index("section")
    sections = [each.heading for each in capstone.SECTIONS]
    assert found.loc[sections, "complete"].all(), found.to_string()
    cells = nbformat.read(ROOT / "notebooks" / "capstone.ipynb", as_version=4).cells
    text = "\n".join(each.source for each in cells if each.cell_type == "markdown")
    rubric = text.split("### Rubric")[1].split("\n\n")[1].splitlines()[2:]
    marked = re.findall(r"^\* - (.*)$", text.split("{solution} ex-capstone-mark")[1], re.M)
    assert [each.split("|")[1].strip() for each in rubric] == marked[1 : len(rubric) + 1]


def test_the_template_s_cells_run_and_end_with_the_stamp():
    notebook = nbformat.read(TEMPLATE, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": ROOT}}).execute()
    assert "Profile" in json.dumps(notebook.cells[-1]["outputs"])


def test_the_chapter_s_cell_about_the_template_runs_from_an_empty_folder(tmp_path, monkeypatch):
    cells = nbformat.read(ROOT / "colab" / "capstone.ipynb", as_version=4).cells
    (cell,) = (c.source for c in cells if "capstone.complete(" in c.source)
    monkeypatch.chdir(tmp_path)
    found = {"capstone": capstone}
    exec(cell.partition("display.say(")[0], found)
    assert len(found["lacking"]) == len(capstone.SECTIONS) + 1


@pytest.mark.parametrize("wrong", [[], None, ..., {1, 3}, range(1, 11), {2, 5, 8, 10}, ["one"]])
def test_flaws_that_are_not_all_found_are_not_right(wrong):
    assert not capstone.check_flaws(wrong).passed
