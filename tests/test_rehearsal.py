"""The studies' notebooks run in the profile ``paper``, on random models and invented data.

The short form of ``make rehearsal``: sections on the planted world, which are the same in both
profiles, are left to the run in ``planted``.
"""

import os

import nbformat
import pytest
from support import rehearsal, rehearsal_grounded

from biaslib import datasets, models, runtime
from biaslib.report import grounded as plots
from biaslib.studies import grounded


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
def test_what_depends_on_the_profile_runs_in_paper(path, environment):
    outcome = rehearsal.run(path, environment, short=True)
    assert outcome.error == ""


@pytest.mark.parametrize("study", ["study1_grounded", "study2_masked", "study4_vlstereoset"])
def test_the_short_form_ends_where_the_planted_world_begins(study):
    cells = nbformat.read(rehearsal.NOTEBOOKS / f"{study}.ipynb", as_version=4).cells
    kept = rehearsal.before_the_planted_world(cells)
    assert 0.2 < len(kept) / len(cells) < 0.8
    assert all("inputs(run.profile" not in cell.source for cell in cells[len(kept) :])


def test_study_1_stops_at_a_missing_image_until_its_reader_goes_on(inside):
    cells = nbformat.read(rehearsal.NOTEBOOKS / "study1_grounded.ipynb", as_version=4).cells
    settings = [cell.source for cell in cells if rehearsal.STOPS in cell.source]
    assert len(settings) == 1
    assert "study.inputs(run.profile, only_sound=only_sound" in settings[0]
    lost = rehearsal_grounded.LOST.rsplit("/", maxsplit=1)[-1]
    with pytest.raises(datasets.DataError, match=rf"1 problem: image is missing .*X: {lost}"):
        grounded.inputs("paper")


def test_study_1_as_published_is_rehearsed_with_its_checkpoints_and_region_files(inside):
    cells = nbformat.read(rehearsal.NOTEBOOKS / "study1_grounded.ipynb", as_version=4).cells
    kept = rehearsal.before_the_planted_world(cells)
    assert sum(rehearsal.NOT_AS_PUBLISHED in cell.source for cell in kept) == 1
    assert not any(rehearsal.NOT_AS_PUBLISHED in c.source for c in rehearsal.going_on(kept))
    asked = {"names": ["C6"], "only_sound": True, "variant": "released"}
    found = grounded.inputs("paper", **asked)
    assert list(found) == list(grounded.MODELS)
    name = grounded.checkpoint("visualbert", "paper", "released")
    scores = grounded.run(
        models.load(name, profile="paper", device="cpu"),
        found["visualbert"],
        maskings=grounded.MASKINGS,
        variant="released",
    )
    assert set(scores["masking"]) == {"none", "words"}
    assert scores["value"].notna().all()


def test_the_sample_of_study_1_has_a_test_in_one_domain_alone_and_lost_an_image(inside):
    out = grounded.inputs("paper", only_sound=True, names=["C6", "C8"])
    own = grounded.inputs("paper", "in domain", only_sound=True, names=["C6", "C8"])
    assert {sets.test for sets in out["lxmert"]} == {"C6"}
    assert {sets.test for sets in own["lxmert"]} == {"C6", "C8"}
    assert {sets.test for sets in own["vilbert"]} == {"C6"}
    left = out.left.set_index(["file", "set"])["images_left"]
    assert left["weat6.jsonl"].to_dict() == dict.fromkeys(grounded.SETS, 2) | {"X": 1}
    assert left["sent-weat6.jsonl"].eq(2).all()
    said = plots.left_sentence(out)
    assert "23 of 24 images are there and can be opened; no set is empty" in said
    assert "compared and unbalanced: 1." in said
    shown = plots.left_table(out.left).set_index("file").loc["weat6.jsonl"]
    assert shown[["X", "Y", "run at"]].tolist() == ["1/2", "2/2", "word"]


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
