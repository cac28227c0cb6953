"""A study from nothing to a record in one command, on a model hub on this machine."""

import dataclasses
import errno
import importlib
import json
import os
import shutil
import warnings
from pathlib import Path

import pandas
import pytest
from support import from_nothing
from support.from_nothing import FAIRFACE
from support.hub import instead_of_the_real_one
from test_rehearsal import is_compared

from biaslib import models, reproduction, runtime
from biaslib.__main__ import main
from biaslib.checkpoints.downloads import fetch_data
from biaslib.models import REGISTRY
from biaslib.studies import study3_clip_audit as study
from biaslib.studies import study4_captions

PORTRAITS = "0.25/train-*"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """All data sets and models in the publishers' formats, the models with random weights."""
    return from_nothing.published(tmp_path_factory.mktemp("repositories"))


@pytest.fixture
def hub(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BIASLIB_PRECISION", "")
    monkeypatch.chdir(tmp_path)
    with instead_of_the_real_one(repository, tmp_path) as running:
        yield running


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.parquet"))


def bodies(hub):
    """The files that were sent, without the requests for their headers alone."""
    return [path for method, path, _ in hub.requests if method == "GET" and ".parquet" in path]


def is_study_3(found):
    assert found.stamp["pictures"] == {"asked": 86_744, "there": 28}  # FairFace's, and the sample's
    assert list(found.stamp["networks"]) == ["open-clip"]
    counted = pandas.DataFrame(found.stamp["counts"]["hamidieh2023_laion_pronouns"])
    assert {"nurse", "maid", "farmer"} <= set(counted["word"])
    is_compared("hamidieh2023", found.scores, found.stamp)


def is_study_4(found):
    assert set(found.stamp["networks"]) == {head.paper for head in study4_captions.MODEL_HEADS}
    is_compared("zhou2022", found.scores, found.stamp)


def is_a_taste(found):
    assert found.stamp["size"] == "taste"
    assert set(found.scores["profile"]) == {"taste"}
    assert runtime.TASTE in found.told
    judged = reproduction.compare(found.scores, found.stamp["paper"])
    assert set(judged["verdict"]) == {"not run"}


WHAT_IS_RECORDED = {("hamidieh2023", "full"): is_study_3, ("zhou2022", "full"): is_study_4}
"""What else must hold of a record, by paper and size."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "size"), [each for each in from_nothing.STUDIES if each[0] != "ross2021"]
)
def test_command_and_notebook_go_from_nothing_to_the_same_record(paper, size, repository):
    found = from_nothing.rehearse(repository, paper, size)
    assert "Recorded in runs/" in found.told
    if size == "taste":
        is_a_taste(found)
    WHAT_IS_RECORDED.get((paper, size), bool)(found)


@pytest.mark.parametrize("size", runtime.SIZES)
@pytest.mark.parametrize("paper", reproduction.STUDIES)
def test_a_dry_run_says_what_it_takes_and_downloads_nothing(paper, size, hub, tmp_path, capsys):
    if (paper, size) not in from_nothing.STUDIES:
        pytest.skip("its authors' files, which the first look asks for, may not be passed on")
    parts = importlib.import_module(f"biaslib.studies.{reproduction.STUDIES[paper]}").parts(size)
    gigabytes = sum(part.gigabytes for part in parts if not part.here())  # one is placed by hand
    assert main(["reproduce", paper, "--size", size, "--dry-run"]) == 0
    assert f"downloads some {gigabytes:.1f} GB" in capsys.readouterr().out
    assert hub.sent == 0
    assert not {"data", "record"} & {path.name for path in tmp_path.iterdir()}


def test_what_is_there_is_not_fetched_again_and_what_is_missing_is(hub, tmp_path):
    folder = tmp_path / "fairface"
    folder.mkdir()
    fetch_data(FAIRFACE, PORTRAITS, folder)
    sent = sorted(Path(path).name for path in bodies(hub))
    assert sent == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    fetch_data(FAIRFACE, PORTRAITS, folder)
    assert len(bodies(hub)) == 2
    (folder / "0.25" / sent[1]).unlink()
    fetch_data(FAIRFACE, PORTRAITS, folder)
    assert files(folder / "0.25") == sent
    assert [Path(path).name for path in bodies(hub)[2:]] == sent[1:]


def test_files_of_ones_own_are_left_alone(hub, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "labels.csv").write_text("mine")
    fetch_data(FAIRFACE, PORTRAITS, own)
    assert hub.requests == []
    assert files(own) == []


# What goes wrong


def refuses(capsys, *options):
    """Call the command, which must end with 1 and one line on the error stream; return the line."""
    assert main(["reproduce", "hamidieh2023", "--out", "runs", *options]) == 1
    (line,) = (e for e in capsys.readouterr().err.splitlines() if "Error: " in e)
    assert not [*Path("runs").glob("hamidieh2023*")]
    return line


def carried_out(*_):
    raise RuntimeError("all was fetched")


@pytest.fixture
def fetched_alone(monkeypatch):
    """The command ends where the study would be run."""
    monkeypatch.setattr("biaslib.studies.study3_clip_audit.recorded", carried_out)


@pytest.mark.usefixtures("fetched_alone")
def test_a_gated_repository_is_told_and_with_a_token_the_command_goes_on(hub, tmp_path, capsys):
    hub.refuse = 403
    line = refuses(capsys, "--size", "taste")
    assert "wkcn/TinyCLIP" in line
    assert "HF_TOKEN" in line
    hub.refuse = None
    assert "all was fetched" in refuses(capsys, "--size", "taste")
    assert len(files(tmp_path / "data")) == 2


@pytest.mark.usefixtures("fetched_alone")
def test_without_a_network_nothing_is_lost(hub, tmp_path, capsys, monkeypatch):
    assert "all was fetched" in refuses(capsys, "--size", "taste")
    before, sent = files(tmp_path / "data"), hub.sent
    with monkeypatch.context() as patch:
        patch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        assert "all was fetched" in refuses(capsys, "--size", "taste")
        assert "connection" in refuses(capsys, "--size", "full")
    assert files(tmp_path / "data") == before
    assert hub.sent == sent


@pytest.mark.usefixtures("fetched_alone")
def test_a_full_disk_is_told_and_the_command_goes_on_when_there_is_room(
    hub, tmp_path, capsys, monkeypatch
):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.file_download.http_get", full)
        assert os.strerror(errno.ENOSPC) in refuses(capsys, "--size", "taste")
    assert "all was fetched" in refuses(capsys, "--size", "taste")


@pytest.mark.usefixtures("fetched_alone")
@pytest.mark.parametrize("source", ["data HuggingFaceM4/FairFace", "data kakaobrain/coyo-700m"])
def test_a_hub_with_other_files_than_the_recorded_is_told(source, hub, tmp_path, capsys):
    assert "all was fetched" in refuses(capsys)
    lock = runtime.Lock()
    entries = lock.entries()
    for each in entries[source]["files"].values():
        each["sha256"] = "0" * 64
    lock.path.write_text(json.dumps(entries))
    shutil.rmtree(tmp_path / "data")
    for _ in range(2):  # a second call does not take the file that the first one left
        line = refuses(capsys)
        assert line.startswith("ChecksumError: ")
        assert source in line


def test_without_coyo_the_study_goes_on(repository, tmp_path, monkeypatch):
    folder = tmp_path / "hub"
    folder.mkdir()
    for name in ("HuggingFaceM4", "laion"):
        (folder / name).symlink_to(repository / name)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path / "data"))
    with instead_of_the_real_one(folder, tmp_path):
        missing = study.fetch("full")
    assert missing["what"].tolist() == ["a file of COYO-700M"]
    assert missing["without it"].tolist() == ["no captions are counted"]
    assert "kakaobrain/coyo-700m" in missing["reason"].item()


# Whose weights a record is of


ENTRY = REGISTRY["open-clip"]


def stamped(monkeypatch, files, revision="c" * 40, name="open-clip"):
    """The stamp of a run of one network, with these files in the lock."""
    entries = {REGISTRY[name].source: {"files": files, "revision": revision}}
    monkeypatch.setattr(runtime.Lock, "entries", lambda self: entries)
    run = runtime.Provenance("paper").record(weights={name: revision})
    return reproduction.stamp(run, "hamidieh2023", {"asked": 9, "there": 9})


@pytest.mark.parametrize(
    ("bytes_", "revision", "released"),
    [
        (ENTRY.parameters * 4, "c" * 40, None),  # No hash of the published file is registered.
        (ENTRY.parameters * 2, f"{'c' * 40}, sha256 {'a' * 12}, settings 0123abcd", None),
        (ENTRY.parameters * 2 - 1, "c" * 40, False),
        (ENTRY.parameters * 4, f"my-folder, sha256 {'b' * 12}", False),
    ],
)
def test_a_stamp_says_which_weights_are_not_the_released_ones(
    bytes_, revision, released, monkeypatch
):
    files = {"open_clip_pytorch_model.bin": {"sha256": "a" * 64, "bytes": bytes_}}
    made = stamped(monkeypatch, files, revision)
    assert made["networks"]["open-clip"]["released"] is released


@pytest.mark.parametrize(("digest", "released"), [("a" * 64, True), ("b" * 64, False)])
def test_a_registered_hash_decides(digest, released, monkeypatch):
    pinned = dataclasses.replace(ENTRY, sha256="a" * 64)
    monkeypatch.setitem(REGISTRY, "open-clip", pinned)
    made = stamped(monkeypatch, {"a.bin": {"sha256": digest, "bytes": 9}})
    assert made["networks"]["open-clip"]["released"] is released


@pytest.mark.parametrize("name", ["visualbert", "open-clip", "vl-bert", "albef", "detector"])
def test_files_of_each_kind_of_source_are_known_by_what_was_loaded(name, hub, monkeypatch):
    """Random weights in the official formats: too small, and else nothing to be said against."""
    runtime.start("paper")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that VisualBERT had another detector
        model = models.load(name, device="cpu")
    run = runtime.Provenance("paper").record(weights={name: model.revision})
    made = reproduction.stamp(run, "zhou2022", {"asked": 9, "there": 9})
    assert made["networks"][name]["released"] is False
    monkeypatch.setitem(REGISTRY, name, dataclasses.replace(REGISTRY[name], parameters=1))
    made = reproduction.stamp(run, "zhou2022", {"asked": 9, "there": 9})
    assert made["networks"][name]["released"] is None
