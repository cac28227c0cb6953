"""One profile a run: begun in one cell, kept by every model, and never mixed with the other."""

import json

import pytest
import torch

from biaslib import models, runtime
from biaslib.errors import CheckpointError
from biaslib.runtime import ChecksumError


def test_models_follow_the_run_and_not_the_environment(monkeypatch):
    def fetch(entry):
        raise CheckpointError(f"{entry.source} was asked for")

    monkeypatch.setattr("biaslib.checkpoints.downloads.fetch", fetch)
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
    with pytest.raises(runtime.ProfileError):
        runtime.start("paper")
    assert runtime.profile() == "planted"


def test_a_model_of_the_other_profile_is_refused_by_name():
    runtime.start("paper")
    with pytest.raises(runtime.ProfileError):
        models.load("lxmert", profile="planted")
    runtime.start("planted")
    with pytest.raises(runtime.ProfileError):
        models.load("lxmert", profile="paper")


def test_a_measure_is_checked_on_a_named_planted_world_in_either_run():
    runtime.start("paper")
    assert models.load("bert", profile="planted", dose=0).revision
    assert models.load("oracle", dose=3).world.dose == 3
    assert runtime.start("paper").profile == "paper"


@pytest.mark.parametrize("name", ["mps", "cuda:99", "xpu", "gpu"])
def test_a_device_that_is_not_here_is_no_fault_of_the_model(name):
    with pytest.raises(ValueError, match=name) as caught:
        models.load("bert", device=name)
    assert not isinstance(caught.value, CheckpointError)


@pytest.mark.parametrize(
    "content",
    [
        *("[1]", "7", '{"x": 7}', '{"x": {"revision": 1, "files": {}}}', "[" * 99999),
        *('{"x": {"revision": "", "files": {"a": {}}}}', '{"x": {"revision": "", "files": [1]}}'),
    ],
)
def test_a_lock_file_that_is_no_table_is_named(tmp_path, content):
    (tmp_path / "lock.json").write_text(content)
    with pytest.raises(ChecksumError) as caught:
        runtime.Lock(tmp_path / "lock.json").revision("x")
    assert caught.value.path == tmp_path / "lock.json"


def test_a_lock_keeps_the_first_revision_that_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BIASLIB_LOCK", "")
    lock, file = runtime.Lock(), {"a": {"sha256": "1", "bytes": 1}}
    for revision in ("", "first", ""):
        lock.verify("source", revision, file)
    with pytest.raises(ChecksumError):
        lock.verify("source", "second", file)
    assert (lock.revision("source"), lock.path.name) == ("first", "biaslib-lock.json")


def test_the_stamp_names_devices_and_precisions_of_the_models_that_were_loaded(monkeypatch):
    run = runtime.start("planted")
    assert run.as_dict()["Precision"] == "float32"
    models.load("bert", device="meta")
    models.load("lxmert", device="cpu")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Tesla T4 as {device}")
    runtime.note_device("cuda", "float16")
    assert run.as_dict()["Device"].startswith("meta; cpu; cuda, Tesla T4 as cuda (")
    assert run.as_dict()["Precision"] == "float32; float16"
    machine = json.loads(json.dumps(run.machine()))
    assert machine["device"] == ["meta", "cpu", "cuda, Tesla T4 as cuda"]
    assert machine["precision"] == ["float32", "float16"]
    assert machine["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert runtime.start("planted").as_dict()["Device"].startswith("cpu (")


def test_a_bar_within_a_bar_writes_no_control_characters(capsys, monkeypatch):
    monkeypatch.setattr("biaslib.runtime._profile.DELAY", 0)
    monkeypatch.delenv("BIASLIB_BOOK", raising=False)
    for _ in runtime.progress(range(2), "models"):
        for _ in runtime.progress(range(2), "pictures"):
            pass
    shown = capsys.readouterr().err
    assert "models: " in shown
    assert "pictures: " in shown
    assert "\x1b" not in shown
