"""The studies' notebooks run in the profile ``paper``, on random models and invented data.

The same as ``make rehearsal``, with failures as test failures.
"""

import os

import nbformat
import pytest
from support import rehearsal

from biaslib import models, runtime
from biaslib.models import detector


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with rehearsal.stage(tmp_path_factory.mktemp("rehearsal")) as environment:
        yield environment


@pytest.fixture
def inside(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for module in (rehearsal.vl_bert, rehearsal.vilbert, rehearsal.albef):
        monkeypatch.setattr(module, "VARIANTS", dict(module.VARIANTS))
    rehearsal.know_tiny_networks()


@pytest.mark.slow
@pytest.mark.parametrize("path", rehearsal.notebooks(), ids=lambda path: path.stem)
def test_the_notebook_runs_to_its_end_in_paper(path, environment):
    outcome = rehearsal.run(path, environment)
    assert outcome.error == ""


@pytest.mark.parametrize("name", ["vl-bert", "vilbert", "albef"])
def test_files_of_the_authors_are_found_where_a_person_places_them(name, inside, environment):
    loaded = models.load(name, device="cpu")
    placed = rehearsal.place_of(name, rehearsal.Path(environment["BIASLIB_CACHE"]))
    assert runtime.file_sha256(placed)[:12] in loaded.revision
    recorded = runtime.Lock().entries()[models.REGISTRY[name].source]["files"]
    assert recorded[placed.name]["sha256"] == runtime.file_sha256(placed)


def test_the_detector_names_what_it_finds(inside):
    found = detector.load(device="cpu", labels=runtime.data_folder("detector"))
    regions = found.regions([rehearsal.repositories.picture(seed) for seed in range(2)])
    assert regions.width == 2048
    assert set(found.classes_of(regions)[regions.real]) <= set(rehearsal.repositories.CLASSES)


def test_a_notebook_that_fails_is_reported_with_its_error(tmp_path, environment):
    path = tmp_path / "broken.ipynb"
    cell = nbformat.v4.new_code_cell(
        "import os\n\nraise SystemError(os.environ['BIASLIB_PROFILE'])"
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    outcome = rehearsal.run(path, environment)
    assert "SystemError: paper" in outcome.error
    assert "BIASLIB_PROFILE" not in os.environ or os.environ["BIASLIB_PROFILE"] != "paper"
