"""One profile a run: begun in one cell, kept by every model, and never mixed with the other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support import rehearsal_clip_audit, rehearsal_stereotype

from biaslib import models, runtime
from biaslib.models.errors import CheckpointError

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ONE_PROFILE = {path.stem for path in NOTEBOOKS if path.stem.startswith(("planted_", "capstone"))}
"""Notebooks about the planted world, which have no other profile."""
NO_MODEL = {"foundations", "published_numbers", "what_holds_up", "what_is_measured"}


def test_models_follow_the_run_and_not_the_environment(monkeypatch):
    def fetch(entry):
        raise CheckpointError(f"{entry.source} was asked for")

    monkeypatch.setattr("biaslib.models.downloads.fetch", fetch)
    monkeypatch.setenv("BIASLIB_PROFILE", "planted")
    runtime.start("paper")
    assert runtime.profile() == "paper"
    with pytest.raises(CheckpointError, match="hub unc-nlp/lxmert-base-uncased was asked"):
        models.load("lxmert")


def test_the_environment_is_the_default_of_a_run(monkeypatch):
    monkeypatch.setenv("BIASLIB_PROFILE", "paper")
    assert runtime.start().profile == "paper"
    assert runtime.start("planted").profile == "planted"
    assert runtime.profile() == "planted"


def test_a_run_can_be_begun_anew_until_a_model_is_loaded():
    runtime.start("planted")
    runtime.start("paper")
    runtime.start("planted")
    models.load("bert")
    assert runtime.start("planted").profile == "planted"
    told = r"'paper' cannot begin here: bert of the other profile.*restart the kernel.*= 'paper'"
    with pytest.raises(runtime.ProfileError, match=told):
        runtime.start("paper")
    assert runtime.profile() == "planted"


def test_the_models_of_a_study_settle_its_run():
    from biaslib.studies import study3_clip_audit as clip_audit

    runtime.start()
    clip_audit.load_model(clip_audit.inputs(n_per_cell=2))
    with pytest.raises(runtime.ProfileError, match="clip of the other profile"):
        runtime.start("paper")


def test_a_model_of_the_other_profile_is_refused_by_name():
    runtime.start("paper")
    told = r"this run is 'paper', and 'lxmert' was asked for in 'planted'.*restart the kernel"
    with pytest.raises(runtime.ProfileError, match=told):
        models.load("lxmert", profile="planted")
    with pytest.raises(runtime.ProfileError, match="'oracle' was asked for in 'planted'"):
        models.load("oracle")
    runtime.start("planted")
    with pytest.raises(runtime.ProfileError, match="'lxmert' was asked for in 'paper'"):
        models.load("lxmert", profile="paper")


def test_a_measure_is_checked_on_a_named_planted_world_in_either_run():
    runtime.start("paper")
    assert models.load("bert", profile="planted", dose=0).revision
    assert models.load("oracle", dose=3).world.dose == 3
    assert runtime.start("paper").profile == "paper"


def test_a_model_that_is_the_same_in_both_settles_nothing(encoder):
    models.load("all-MiniLM-L6-v2")
    assert runtime.start("paper").profile == "paper"


def test_the_stamp_names_the_device_on_which_models_were_loaded():
    run = runtime.start("planted")
    models.load("bert", device="meta")
    assert run.as_dict()["Device"].startswith("meta (")
    models.load("lxmert", device="cpu")
    assert run.as_dict()["Device"].startswith("meta; cpu (")
    assert runtime.start("planted").as_dict()["Device"].startswith("cpu (")


def test_the_stamp_names_the_precision_in_which_models_calculate(monkeypatch):
    run = runtime.start("planted")
    assert run.as_dict()["Precision"] == "float32"
    models.load("bert", device="cpu")
    runtime.note_device("cpu", "tf32")
    assert run.as_dict()["Precision"] == "float32; tf32"
    monkeypatch.setattr(torch.cuda, "get_device_name", str)
    runtime.note_device("cuda", "float16")
    assert run.as_dict()["Precision"] == "float32; tf32; float16"


@pytest.mark.parametrize("device", ["cpu:9", "cpu:1", "mps:3", "cuda:7"])
def test_a_device_that_is_not_there(monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=device):
        runtime.device(device)
    assert (runtime.device("cuda:1"), runtime.device("cpu:0")) == ("cuda:1", "cpu:0")


def test_the_stamp_names_a_gpu_by_its_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Tesla T4 as {device}")
    run = runtime.start("planted")
    runtime.note_device("cuda")
    assert run.as_dict()["Device"].startswith("cuda, Tesla T4 as cuda (")


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code(path):
    return ["".join(each["source"]) for each in cells(path) if each["cell_type"] == "code"]


def test_every_notebook_says_its_profile_in_the_same_cell():
    choices = {}
    for path in NOTEBOOKS:
        [choice] = [text for text in code(path) if "runtime.start(" in text]
        choices[path.stem] = choice
        assert not re.search(r"record\([^)]*device", "\n".join(code(path)))
    free = {choices[name] for name in choices if name not in {*ONE_PROFILE, *NO_MODEL}}
    assert len(choices) - len(ONE_PROFILE) - len(NO_MODEL) == 6
    assert len(free) == 1, "the cell is the same everywhere"
    assert "PROFILE = None" in free.pop()
    for name in ONE_PROFILE:
        assert 'runtime.start("planted")' in choices[name]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_profile_comes_before_the_first_model(path):
    sources = code(path)
    [at] = [number for number, text in enumerate(sources) if "runtime.start(" in text]
    assert not any(re.search(r"\bload\w*\(|inputs\(", text) for text in sources[:at])


ALONE = """
import importlib, pkgutil, sys
sys.modules["plantedworld"] = None  # as if it were not installed
import pytest
import biaslib
from biaslib import models, runtime
from biaslib.studies import study3_clip_audit, study4_captions
for each in pkgutil.walk_packages(biaslib.__path__, "biaslib."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
assert list(runtime.providers()) == ["paper"]
runtime.start("paper")
assert "oracle" not in set(models.available()["name"])
assert models.load("all-MiniLM-L6-v2").embed(["nurse"], level="word").shape == (1, 384)
given = study4_captions.inputs()
print(given.dataset, len(given.images), given.images[0].shape[2])
given = study3_clip_audit.inputs(split="train")
print(given.dataset, len(given.portraits), given.portraits[0].shape[2])
with pytest.raises(runtime.ProfileError, match="nothing that is installed provides"):
    study4_captions.inputs("planted")
assert not [name for name in sys.modules if name.startswith("plantedworld.")]
"""


@pytest.mark.slow
def test_the_package_works_in_paper_without_the_planted_world(tmp_path):
    """The sample data are in the released layouts; they are written before, with emoji."""
    rehearsal_stereotype.build(tmp_path)
    rehearsal_clip_audit.build(tmp_path)
    environment = {**os.environ, "BIASLIB_DATA": str(tmp_path)}
    command = [sys.executable, "-c", ALONE]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    said = ran.stdout.splitlines()
    assert said[0].startswith("VLStereoSet ")
    assert said[1] == "FairFace train, crop 0.25 42 3"
