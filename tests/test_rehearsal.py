"""The studies' notebooks run in the profile ``paper``, on random models and invented data.

The short form of ``make rehearsal``: sections on the planted world, which are the same in both
profiles, are left to the run in ``planted``, and studies 3 and 4 to ``test_reproduce.py``, which
runs their notebooks from nothing.
"""

import shutil
from pathlib import Path

import nbformat
import pytest
from support import rehearsal, released

from biaslib import audit, models, reproduction
from biaslib.studies import study1_grounded as grounded
from companion import study1_grounded as plots


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    with rehearsal.stage(tmp_path_factory.mktemp("rehearsal")) as environment:
        yield environment


@pytest.fixture
def inside(environment, monkeypatch):
    """The folder of the hub's repositories, in the environment of the rehearsal."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Path(environment["BIASLIB_CACHE"]).parent / "hub"


NOTEBOOKS = [
    path for path in rehearsal.notebooks() if not path.stem.startswith(("study3", "study4"))
]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_depends_on_the_profile_runs_in_paper(path, environment):
    outcome = rehearsal.run(path, environment, short=True)
    assert outcome.error == ""
    if path.stem.startswith("study"):
        [paper] = (each for each, name in reproduction.STUDIES.items() if name == path.stem)
        [folder] = Path(environment["BIASLIB_RUNS"]).glob(f"{paper}-*")
        is_compared(paper, *reproduction.read(folder))


OF_ALL_TESTS = {"table1/": 17, "table3": 155, "table4": 155, "table5": 91, "table7": 60}
OF_ALL_TESTS |= {"table6": 60}
OF_OURS = {"table1/": 8, "table3": 47, "table4": 47, "table5": 28, "table6": 60}
"""Ours are four tests at three levels in four models, of which one cell is not printed."""

NEEDED = {
    "ross2021": OF_ALL_TESTS if released.REAL.is_dir() else OF_OURS,
    "srinivasan2021": {},
    "hamidieh2023": {"table1/": 21, "table3/": 12, "table12/": 44, "table18/": 77},
    "zhou2022": {"table1": 5, "table3": 27, "table4": 72},
}
"""Printed numbers by the beginning of their ids that the invented data have."""

SIGNS = {
    "ross2021": 5 if released.REAL.is_dir() else 1,
    "srinivasan2021": 38,
    "hamidieh2023": 66,
    "zhou2022": 18,
}
"""Statements without a number whose scores the invented data give: the names are the studies'."""


def is_compared(paper, scores, stamp):
    """The record of a rehearsal, as it is read, stands beside the printed numbers that it has."""
    assert stamp["pictures"]["there"] > 0
    counts = reproduction.counts_of(stamp)
    as_read = reproduction.compare(scores, paper, counts).set_index("id")
    random = scores.attrs.pop("not released")
    assert set(stamp["networks"]) <= set(random)
    assert ("detector" in random) == isinstance(stamp["detector"], dict)
    found = reproduction.compare(scores, paper, counts).set_index("id")
    ran = found[(found["verdict"] != "not run") & ~found.index.str.contains("/claim/")]
    for place, n in NEEDED[paper].items():
        assert sum(ran.index.str.startswith(f"{paper}/{place}")) == n, place
    claims = found[found.index.str.contains("/claim/")]
    assert "met" not in set(claims["verdict"])  # of random weights, were they the released ones
    lacking = found[found.index.str.contains("/stated/") & (found["verdict"] == "not run")]
    # Which captions random weights choose is chance: a subset of them may be empty.
    none = scores.loc[scores["n"].eq(0), ["model", "test", "level", "statistic"]]
    empty = [f"(asked: {', '.join(row)})" for row in none.itertuples(index=False)]
    by_chance = sum(reason.endswith(tuple(empty)) for reason in lacking["reason"] if empty)
    stated = ran.index.str.contains("/stated/").sum()
    assert stated + by_chance == SIGNS[paper], lacking["reason"].to_dict()
    met = ran[(ran["verdict"] == "met") & ran["value"].notna()]
    assert met[["low", "high"]].notna().all(axis=None)
    assert set(as_read.loc[ran.index, "verdict"]) <= {"cannot be said"}
    assert as_read.loc[ran.index, "reason"].str.startswith("no reproduction: the weights of").all()


def test_study_1_as_published_is_rehearsed_with_its_checkpoints_and_region_files(inside):
    cells = nbformat.read(rehearsal.NOTEBOOKS / "study1_grounded.ipynb", as_version=4).cells
    kept = rehearsal.without_the_planted_world(cells)
    assert sum(rehearsal.NOT_AS_PUBLISHED in cell.source for cell in kept) == 1
    assert not any(rehearsal.NOT_AS_PUBLISHED in c.source for c in rehearsal.as_published(kept))
    asked = {"names": ["C6"], "only_sound": True, "weights": plots.RELEASED_WEIGHTS}
    found = grounded.inputs("paper", **asked)
    assert list(found) == list(grounded.MODELS)
    name = plots.released_weights("visualbert", "paper")
    reader = models.load(name, profile="paper", device="cpu")
    scores = plots.run_as_released({"visualbert": reader}, found)
    assert set(scores["masking"]) == {"none", "words"}
    assert scores["value"].notna().all()


# A model of one's own


def test_a_text_encoder_under_another_name_gets_a_partial_audit(inside):
    source = inside / "google-bert" / "bert-base-uncased"
    shutil.copytree(source, inside / "somebody" / "own-bert", dirs_exist_ok=True)
    found = audit.run("somebody/own-bert", device="cpu")
    assert "masked words, caption alone" in set(found.scores["part"])
    assert "portraits by word" in set(found.not_run["part"])
    assert set(found.scores["model"]) == {"somebody/own-bert"}
