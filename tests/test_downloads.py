"""Downloads: resumed, verified, cached and recorded; what goes wrong is named with what to do."""

import contextlib
import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys

import pytest
from support import hostile, repositories
from support.hub import instead_of_the_real_one

from biaslib import models
from biaslib.checkpoints import downloads, files
from biaslib.checkpoints.downloads import fetch
from biaslib.errors import CheckpointError
from biaslib.runtime import ChecksumError, Lock, _lock, file_sha256

BERT = models.REGISTRY["bert"]
REPOSITORY = "google-bert/bert-base-uncased"
LXMERT = models.REGISTRY["lxmert"]
VISUALBERT = models.REGISTRY["visualbert"]


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """Tiny repositories of three models."""
    folder = tmp_path_factory.mktemp("official")
    for name in ("bert", "lxmert", "visualbert"):
        repositories.build(name, folder)
    return folder


@pytest.fixture
def hub(official, tmp_path):
    """A hub on the loopback, of a copy that a test may change; nothing else answers."""
    shutil.copytree(official, tmp_path / "served")
    with instead_of_the_real_one(tmp_path / "served", tmp_path) as running:
        yield running


# Repositories of the hub


def test_only_settings_and_the_safest_weights_are_downloaded_and_recorded(hub):
    folder = fetch(BERT)
    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "vocab.txt"]
    for path in folder.iterdir():
        assert path.read_bytes() == (hub.folder / REPOSITORY / path.name).read_bytes()
    entry = json.loads(Lock().path.read_text())[BERT.source]
    assert entry["revision"] == folder.name == hub.commit(REPOSITORY)
    path = folder / "model.safetensors"
    seen = {"sha256": file_sha256(path), "bytes": path.stat().st_size}
    assert entry["files"]["model.safetensors"] == seen
    hub.requests.clear()
    assert fetch(BERT) == folder
    assert hub.requests == []
    names = {path.name for path in fetch(LXMERT).iterdir()}
    assert "pytorch_model.bin" in names
    assert LXMERT.revision == Lock().revision(LXMERT.source)
    assert not {"tf_model.h5", "modeling_custom.py", "README.md"} & names


def test_a_repository_without_a_tokenizer_gets_its_companions(hub):
    folder = fetch(VISUALBERT)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "visual_bert"
    assert (folder / "vocab.txt").read_bytes() == (
        hub.folder / REPOSITORY / "vocab.txt"
    ).read_bytes()
    assert not (folder / "model.safetensors").exists()
    assert set(Lock().entries()) == {VISUALBERT.source, BERT.source}
    assert (fetch(BERT) / "model.safetensors").is_file()
    assert {"vocab.txt", "model.safetensors"} <= set(Lock().files(BERT.source))


OUTSIDE = [
    "model-/../../../../../outside.safetensors",
    "../../outside.model",
    "/tmp/outside.model",
    "..\\..\\outside.model",
    "C:outside.model",
]


def test_names_and_commits_that_lead_out_of_the_folder_are_not_taken(hub, tmp_path):
    """The shell's star stands for slashes too, and a mirror can list what it likes."""
    assert files.files_read(OUTSIDE) == []
    hub.also_listed = [{"rfilename": name, "size": 1, "blobId": "0" * 40} for name in OUTSIDE]
    for hub.false_commit in ("", "../../../outside", None):
        with contextlib.suppress(CheckpointError):
            fetch(BERT)
    assert not [path for path in tmp_path.rglob("*outside*") if path.is_file()]


def test_a_lock_file_pins_the_revision_when_the_repository_moves_on(hub):
    folder = fetch(BERT)
    config = hub.folder / REPOSITORY / "config.json"
    config.write_text(config.read_text().replace("0.02", "0.03"))
    assert fetch(BERT) == folder
    now = hub.commit(REPOSITORY)
    with pytest.raises(CheckpointError, match=f"{folder.name}.*{now}"):
        fetch(BERT, revision="main")
    Lock().path.unlink()
    assert fetch(BERT, revision="main") != folder


def test_another_file_than_the_recorded_one_is_refused_and_both_are_named(hub):
    found, lock = file_sha256(fetch(BERT) / "model.safetensors"), Lock()
    lock.path.write_text(lock.path.read_text().replace(found, "0" * 64))
    with pytest.raises(CheckpointError) as refusal:
        fetch(BERT)
    assert refusal.value.word == "model.safetensors"
    lock.path.write_text("<<<<<<< HEAD")
    with pytest.raises(CheckpointError) as refusal:
        fetch(BERT)
    assert refusal.value.path == lock.path


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_that_is_not_the_hubs_is_not_kept(hub, name):
    """Neither one that was changed on the way nor one that changed on the disk."""
    hub.corrupt = name
    with pytest.raises(CheckpointError) as refusal:
        fetch(BERT)
    assert refusal.value.path.name == name
    hub.corrupt = ""
    whole = (hub.folder / REPOSITORY / name).read_bytes()
    path = fetch(BERT) / name
    assert path.read_bytes() == whole
    path.resolve().write_bytes(whole[:-1] + b"x")
    with pytest.raises(CheckpointError):
        fetch(BERT)
    assert (fetch(BERT) / name).read_bytes() == whole


def test_without_a_network_what_was_downloaded_is_used(hub, monkeypatch):
    folder = fetch(BERT)
    Lock().path.unlink()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch(BERT) == folder
    for source in (LXMERT, "url http://127.0.0.1:9/a.bin"):
        with pytest.raises(CheckpointError):
            fetch(source)


def test_a_refusal_gives_the_place_of_the_steps_by_hand(hub):
    hub.refuse = 401
    with pytest.raises(CheckpointError, match=r"model_files.md .*'bert'"):
        fetch(BERT)
    with pytest.raises(CheckpointError, match=r"model_files.md .*'Placing files by hand'"):
        fetch("hub nobody/nothing")
    for status in (401, 403, 404, 500):
        hub.refuse = status
        with pytest.raises(CheckpointError) as refusal:
            fetch(BERT)
        assert len(str(refusal.value)) <= 300  # three lines
    hub.refuse = None
    (hub.folder / "nobody" / "nothing").mkdir(parents=True)
    (hub.folder / "nobody" / "nothing" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        fetch("hub nobody/nothing")


# Files of other hosts


FETCH = """
import sys
from biaslib.checkpoints.downloads import fetch
print(fetch(sys.argv[1]).read_bytes().count(bytes([128])))
"""


def test_processes_that_want_the_same_file_at_once_get_it(hub):
    """One downloads it, the others wait for it; the lock file has every source."""
    sources = [f"url {hub.address}/files/{name}.ckpt" for name in "ab"]
    for name in "ab":
        (hub.folder / f"{name}.ckpt").write_bytes(b"\x80" * 3_000_000)
    commands = [[sys.executable, "-c", FETCH, source] for source in sources * 2]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    assert [process.communicate()[0].strip() for process in running] == ["3000000"] * 4
    assert set(Lock().entries()) == set(sources)
    assert sorted(path for _, path, _ in hub.requests) == ["/files/a.ckpt", "/files/b.ckpt"]


PAGE = b"  \n<!DOCTYPE html><html><body>Sign in to continue</body></html>"


@pytest.fixture
def several(hub):
    """An entry of two files in a folder with three addresses, and the three folders."""
    names = ("first", "second", "third")
    places = [hub.folder / name for name in names]
    for place in places:
        place.mkdir()
    address, *mirrors = (
        f"{hub.address}/files/{name}/{{config.yaml,weights.bin}}" for name in names
    )
    source = f"url {address}"
    entry = dataclasses.replace(BERT, source=source, mirrors=tuple(mirrors), companion="")
    return entry, places


def put(place, config=b"anchors: 12", weights=b"\x80weights"):
    (place / "config.yaml").write_bytes(config)
    (place / "weights.bin").write_bytes(weights)


def test_what_was_begun_is_not_joined_to_another_version(hub, monkeypatch):
    monkeypatch.setattr(downloads, "TRIES", 1)
    served = hub.folder / "a.ckpt"
    served.write_bytes(b"\x80" * 5_000_000)
    source = f"url {hub.address}/files/a.ckpt"
    hub.cut_after = [2_500_000, 2_500_000]
    for _ in range(2):
        with pytest.raises(CheckpointError):
            fetch(source)
    assert hub.requests[-1][2].startswith("bytes=")
    served.write_bytes(b"PK" * 2_500_000)
    assert fetch(source).read_bytes() == b"PK" * 2_500_000


def test_the_next_address_is_tried_and_what_was_wrong_with_those_before_is_said(hub, several):
    entry, (_, second, third) = several
    put(second, weights=PAGE)
    put(third)
    with pytest.warns(UserWarning, match="was taken from"):
        folder = fetch(entry)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"config.yaml": b"anchors: 12", "weights.bin": b"\x80weights"}
    asked = len(hub.requests)
    assert fetch(entry) == folder
    assert len(hub.requests) == asked


def test_other_addresses_are_held_to_the_same_checksum(several):
    entry, (first, second, _) = several
    put(first)
    folder = fetch(entry)
    shutil.rmtree(folder)
    put(second, weights=b"\x80others")
    (first / "weights.bin").unlink()
    with pytest.raises(CheckpointError):
        fetch(entry)
    assert not (folder / "weights.bin").exists()
    pinned = dataclasses.replace(entry, sha256=hashlib.sha256(b"\x80others").hexdigest())
    Lock().path.unlink()
    with pytest.warns(UserWarning, match="weights.bin was taken from"):
        assert fetch(pinned) == folder
    (folder / "weights.bin").write_bytes(b"\x80damaged")
    with pytest.raises(CheckpointError) as refusal:
        fetch(pinned)
    assert refusal.value.path == folder / "weights.bin"


def test_a_file_that_a_person_places(hub, tmp_path):
    entry = dataclasses.replace(models.REGISTRY["vl-bert"], mirrors=())
    place = tmp_path / "cache" / "by-hand" / "vl-bert-base-prec.model"
    with pytest.raises(CheckpointError, match=r"model_files.md .*'vl-bert'"):
        fetch(entry)
    place.write_bytes(b"\x80weights")
    (place.parent / "vocab.txt").write_text("my own words")
    assert fetch(entry) == place
    assert (place.parent / "vocab.txt").read_text() == "my own words"
    (place.parent / "vocab.txt").unlink()
    fetch(entry)
    of_bert = hub.folder / REPOSITORY / "vocab.txt"
    assert (place.parent / "vocab.txt").read_bytes() == of_bert.read_bytes()
    for content in (b"\x80another", PAGE):
        place.write_bytes(content)
        with pytest.raises(CheckpointError) as refusal:
            fetch(entry)
        assert refusal.value.path == place


def test_open_connections_are_refused_redirects_included(hub):
    with pytest.raises(CheckpointError, match="not an https address"):
        fetch("url http://example.org/a.ckpt")
    (hub.folder / "a.ckpt").write_bytes(b"\x80weights")
    hub.redirect_files_to = "http://example.org/a.ckpt"
    with pytest.raises(CheckpointError, match="not an https address"):
        fetch(f"url {hub.address}/files/a.ckpt")


def test_a_mirror_stands_for_other_hosts_and_their_files_are_checked_all_the_same(hub):
    path = hub.folder / "example.org" / "models" / "a.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x80" * 50)
    source = "url https://example.org/models/a.ckpt"
    found = fetch(source)
    assert found.parts[-4:] == ("url", "example.org", "models", "a.ckpt")
    assert Lock().files(source)["a.ckpt"]["sha256"] == file_sha256(path)
    found.unlink()
    path.write_bytes(b"PK" * 25)
    with pytest.raises(CheckpointError):
        fetch(source)


# A hostile server

PICKLED = b"\x80\x02" + bytes(range(256)) * 20
"""What begins like weights that PyTorch saved."""

BAD = ("login_page", "status/204", "gzipped", "truncated", "more_than_announced", "wrong_range")
BAD += ("range_without_span", "never_the_range", "endless", "redirect_loop", "reset")


@pytest.fixture
def bad(tmp_path, monkeypatch):
    """A server that answers badly, of a file that begins like weights."""
    monkeypatch.setenv("BIASLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BIASLIB_LOCK", str(tmp_path / "lock.json"))
    with hostile.serving(PICKLED) as running:
        yield running


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_no_file_and_the_next_good_one_is(bad, tmp_path, name):
    path, sha256 = tmp_path / "folder" / "a.bin", hashlib.sha256(PICKLED).hexdigest()
    for known in ("", sha256):
        with contextlib.suppress(CheckpointError):
            downloads.retrieve([f"{bad.address}/{name}"], path, known)
        assert not path.exists() or path.read_bytes() == PICKLED
        path.unlink(missing_ok=True)
    downloads.retrieve([f"{bad.address}/good"], path, sha256)
    assert path.read_bytes() == PICKLED
    assert list(path.parent.iterdir()) == [path]


def test_another_revision_or_file_recorded_at_once_is_not_mixed(tmp_path, monkeypatch):
    """What another process records while this one waits is not added to."""
    for revision, sha256, match in (
        ("2" * 40, "a", "records revision 1"),
        ("1" * 40, "b", "SHA-2"),
    ):
        lock, real = Lock(tmp_path / f"{sha256}.json"), _lock.one_at_a_time

        def after_another(path, lock=lock, real=real):
            monkeypatch.setattr(_lock, "one_at_a_time", real)
            lock.verify("hub a/b", "1" * 40, {"one": {"sha256": "a", "bytes": 1}})
            return real(path)

        monkeypatch.setattr(_lock, "one_at_a_time", after_another)
        with pytest.raises(ChecksumError, match=match):
            lock.verify("hub a/b", revision, {"one": {"sha256": sha256, "bytes": 1}})
        entry = lock.entries()["hub a/b"]
        assert (entry["revision"], entry["files"]["one"]["sha256"]) == ("1" * 40, "a")
