"""Classroom notebooks run from top to bottom, with their exercises unanswered.

Notebooks' tests come after the site's, so that the store has what models answer.
"""

import json
from pathlib import Path

import nbformat
import pytest
from classroom import classroom
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
STEMS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
LONG = {"own_model", "planted_world", *(each for each in STEMS if each.startswith("planted_study"))}
"""No plan sends a class to these, most of which take half a minute and more."""


@pytest.mark.parametrize(
    "stem", [pytest.param(each, marks=[pytest.mark.weekly] * (each in LONG)) for each in STEMS]
)
def test_a_classroom_notebook_runs_and_its_checks_say_not_yet(stem):
    given = nbformat.reads(classroom(ROOT / "notebooks", stem, "Terms."), 4)
    place = {"metadata": {"path": ROOT / "notebooks"}}
    done = NotebookClient(given, resources=place, timeout=600).execute()
    checks = [each for each in done.cells if "exercise-check" in each.metadata.get("tags", [])]
    for each in checks:
        assert "Not yet" in json.dumps(each.outputs)
