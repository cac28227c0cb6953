"""The studies' notebooks run in the profile ``paper``, on random models and invented data.

The same as ``make rehearsal``, with failures as test failures.
"""

import os

import nbformat
import pytest
from support import rehearsal

from biaslib import models, runtime


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with rehearsal.stage(tmp_path_factory.mktemp("rehearsal")) as environment:
        yield environment


@pytest.fixture
def inside(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.slow
@pytest.mark.parametrize("path", rehearsal.notebooks(), ids=lambda path: path.stem)
def test_the_notebook_runs_to_its_end_in_paper(path, environment):
    outcome = rehearsal.run(path, environment)
    assert outcome.error == ""


@pytest.mark.parametrize("name", ["vl-bert", "vilbert", "albef", "detector"])
def test_files_of_the_authors_are_loaded_by_name(name, inside):
    loaded = models.load(name, device="cpu")
    recorded = runtime.Lock().entries()[models.REGISTRY[name].source]["files"]
    weights = max(recorded.values(), key=lambda file: file["bytes"])
    assert weights["sha256"][:12] in loaded.revision


def test_a_notebook_that_fails_is_reported_with_its_error(tmp_path, environment):
    path = tmp_path / "broken.ipynb"
    cell = nbformat.v4.new_code_cell(
        "import os\n\nraise SystemError(os.environ['BIASLIB_PROFILE'])"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    outcome = rehearsal.run(path, environment)
    assert "SystemError: paper" in outcome.error
    assert "BIASLIB_PROFILE" not in os.environ or os.environ["BIASLIB_PROFILE"] != "paper"
