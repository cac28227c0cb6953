"""What the first cell of a chapter says of a machine before anything is downloaded."""

import csv
import os
import re
import shutil
import types
from pathlib import Path

import pytest
import torch

from biaslib import runtime
from biaslib.runtime import _profile
from biaslib.studies.paper import NEEDS

STUDY3 = "study3_clip_audit"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A kernel in which nothing is loaded and no precision is set; what a test sets is undone."""
    monkeypatch.setattr(_profile._Run, "loaded", [])
    monkeypatch.setattr(_profile._Run, "begun", None)
    monkeypatch.setenv("BIASLIB_PRECISION", "")


def card(monkeypatch, gib):
    """A machine with an NVIDIA card of so much memory."""
    properties = types.SimpleNamespace(total_memory=int(gib * 2**30))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


def test_the_form_sets_the_precision_of_a_run_in_paper(monkeypatch):
    assert "Precision: auto.\n" in runtime.prepare("paper", "auto")
    assert os.environ["BIASLIB_PRECISION"] == "auto"
    told = runtime.prepare("paper", "float32")
    assert told.startswith("Precision: float32; BIASLIB_PRECISION was auto.\n")
    assert os.environ["BIASLIB_PRECISION"] == "float32"
    monkeypatch.setenv("BIASLIB_PRECISION", "bfloat16")
    assert runtime.prepare("paper").startswith("Precision: bfloat16.\n")
    runtime.prepare("planted", "auto")
    assert os.environ["BIASLIB_PRECISION"] == "bfloat16"


def test_another_precision_than_that_of_loaded_models_is_refused(monkeypatch):
    monkeypatch.setenv("BIASLIB_PRECISION", "auto")
    runtime.start("paper")
    runtime.note_model("open-clip", "paper")
    assert "Precision: auto" in runtime.prepare("paper", "auto", STUDY3)
    with pytest.raises(runtime.ProfileError):
        runtime.prepare("paper", "float32", STUDY3)
    assert os.environ["BIASLIB_PRECISION"] == "auto"


@pytest.mark.parametrize(("gib", "small"), [(3.9, True), (7.99, True), (8, False), (14.7, False)])
def test_a_card_that_is_too_small_is_named_before_the_download(gib, small, monkeypatch):
    card(monkeypatch, gib)
    told = runtime.prepare("paper", "float32", STUDY3)
    assert ("WARNING: the card has" in told) == small


@pytest.mark.parametrize(("free", "small"), [(5.9e9, True), (6e9, False)])
def test_a_disk_that_is_too_small_is_named_before_the_download(free, small, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda at: types.SimpleNamespace(free=free))
    told = runtime.prepare("paper", "auto", STUDY3, str(tmp_path))
    assert ("WARNING: 5.9 GB of disk" in told) == small


def test_what_a_study_needs_is_what_the_lists_of_files_add_up_to():
    path = Path(runtime.__file__).parents[1] / "checkpoints" / "data" / "downloads.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row["Study"] for row in csv.DictReader(file)]
    weights = dict(re.fullmatch(r"Study (\d): ([\d.]+) GB", row).groups() for row in rows)
    data = {"1": 4, "2": 0, "3": 0.5 + 1.05, "4": 1}
    for (study, size), needs in NEEDS.items():
        if size == "taste":
            continue
        number = study[len("study")]
        assert needs.download == pytest.approx(float(weights[number]) + data[number], abs=0.06)
        assert needs.disk > needs.download
