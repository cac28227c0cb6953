"""The store and the lock file in one file: what a new machine needs to go on without a model."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import stored

from biaslib import models, runtime
from biaslib.runtime.__main__ import main as command_line
from biaslib.studies import study4_captions as study

KEY = {"model": "clip", "revision": "1f2e", "output": "image"}


@pytest.fixture
def places(tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"weights")
    store, lock = runtime.Store(tmp_path / "store"), runtime.Lock(tmp_path / "lock.json")
    lock.verify("hub owner/name", "abc123", {"weights.bin": tmp_path / "weights.bin"})
    return store, lock, tmp_path / "drive" / "kept.zip"


def wipe(store, lock):
    shutil.rmtree(store.folder)
    lock.path.unlink()
    assert stored.table(store).empty
    assert lock.entries() == {}


def test_a_study_goes_on_from_an_archive_without_a_call_of_its_model(places, monkeypatch):
    store, lock, kept = places
    model = models.load("lxmert", profile="planted", dose=3, seed=0)
    given = study.inputs("planted", n_per_category=4)
    first = study.run(study.WAYS[1:2], given, lambda way: model, store)
    n = runtime.archive(kept, store, lock)
    wipe(store, lock)

    def refuse(*arguments, **options):
        raise AssertionError("the model was called")

    monkeypatch.setattr(type(model), "match", refuse)
    assert runtime.restore(kept, store, lock) == n
    again = study.run(study.WAYS[1:2], given, lambda way: model, store)
    for part in ("original", "neutral", "white"):
        one, other = (getattr(found.scored["LXMERT"], part) for found in (first, again))
        assert np.isfinite(one).any()
        assert np.array_equal(one, other, equal_nan=True)
    recorded = lock.sha256("hub owner/name", "weights.bin")
    assert recorded == runtime.file_sha256(lock.path.with_name("weights.bin"))
    with pytest.raises(runtime.ChecksumError, match="records revision abc123"):
        lock.require_revision("hub owner/name", "def456")
    wipe(store, lock)
    with pytest.raises(AssertionError, match="the model was called"):
        study.run(study.WAYS[1:2], given, lambda way: model, store)


def test_what_is_there_already_stays_and_the_rest_is_added(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    shutil.rmtree(store.folder)
    store.rows(KEY, ["b"], lambda which: np.array([[2.0]]))
    runtime.restore(kept, store, lock)
    assert store.rows(KEY, ["a", "b"], lambda which: [][0]).tolist() == [[1.0], [2.0]]


def test_the_command_line_takes_the_store_and_the_lock_of_the_run(places, monkeypatch):
    store, lock, kept = places
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_LOCK", str(lock.path))
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    command = [sys.executable, "-m", "biaslib.runtime"]
    said = subprocess.run([*command, "archive", kept], capture_output=True, text=True, check=True)
    assert "3 files of the store and the lock file archived" in said.stdout
    wipe(store, lock)
    subprocess.run([*command, "restore", kept], check=True)
    assert store.rows(KEY, ["a"], lambda which: [][0]).tolist() == [[1.0]]
    assert lock.revision("hub owner/name") == "abc123"


def test_an_empty_store_is_not_archived(places):
    store, lock, kept = places
    with pytest.raises(ValueError, match=r"the store .*store is empty.* restore an archive first"):
        runtime.archive(kept, store, lock)
    assert not kept.parent.exists()


def without_the_shards(store, lock):
    shutil.rmtree(store.folder)
    store.rows(KEY, ["b"], lambda which: np.array([[2.0]]))


def without_the_lock_file(store, lock):
    lock.path.unlink()


def with_another_lock_file(store, lock):
    lock.path.unlink()
    lock.verify("hub other/name", "abc123", {"weights.bin": lock.path.with_name("weights.bin")})


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (without_the_shards, "store/.*safetensors"),
        (without_the_lock_file, "biaslib-lock.json"),
        (with_another_lock_file, "hub owner/name"),
    ],
)
def test_an_archive_that_holds_more_is_left_as_it_is(places, change, lost):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    before = kept.read_bytes()
    change(store, lock)
    with pytest.raises(ValueError, match=rf"kept\.zip holds .*{lost}.*restore it first"):
        runtime.archive(kept, store, lock)
    assert kept.read_bytes() == before
    assert runtime.restore(kept, store, lock) == 3
    runtime.archive(kept, store, lock)


def test_a_file_that_is_no_archive_is_not_replaced(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    kept.parent.mkdir()
    kept.write_text("a thesis")
    with pytest.raises(ValueError, match=r"kept\.zip cannot be read"):
        runtime.archive(kept, store, lock)
    assert kept.read_text() == "a thesis"


def test_the_command_line_says_one_line_of_what_is_wrong(places, monkeypatch, capsys):
    store, lock, kept = places
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_LOCK", str(lock.path.with_name("none.json")))
    target = lock.path / "kept.zip"
    for command, told in (
        (["restore", str(kept)], f"FileNotFoundError: {kept} is not there; archive(path) makes it"),
        (["archive", str(kept)], f"ArchiveError: the store {store.folder} is empty"),
    ):
        assert command_line(command) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.startswith(told)
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    assert command_line(["archive", str(target)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert command_line(["archive", str(kept)]) == 0
    assert "2 files of the store archived" in capsys.readouterr().out


def test_other_recorded_files_are_refused_and_nothing_is_changed(places, tmp_path):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    lock.path.unlink()
    (tmp_path / "weights.bin").write_bytes(b"other weights")
    lock.verify("hub owner/name", "abc123", {"weights.bin": tmp_path / "weights.bin"})
    before = lock.path.read_bytes()
    with pytest.raises(runtime.ChecksumError, match=r"another weights\.bin of 'hub owner/name'"):
        runtime.restore(kept, store, lock)
    assert lock.path.read_bytes() == before


def rewritten(kept, change):
    with zipfile.ZipFile(kept) as source:
        held = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(kept, "w") as target:
        for name, data in change(held).items():
            target.writestr(name, data)


@pytest.mark.parametrize("name", ["../outside.txt", "store/x/key.json", "/etc/outside", "a.py"])
def test_a_file_with_other_names_is_refused_and_writes_nothing(places, tmp_path, name):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    rewritten(kept, lambda held: {**held, name: b"x"})
    there = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="not an archive of a store: it holds"):
        runtime.restore(kept, store, lock)
    assert sorted(tmp_path.rglob("*")) == there


def test_a_damaged_shard_and_a_damaged_archive_are_named(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    whole = kept.read_bytes()
    rewritten(
        kept, lambda held: {n: d[:-1] + b"?" if "store/" in n else d for n, d in held.items()}
    )
    with pytest.raises(runtime.ChecksumError, match="does not have the checksum in its name"):
        runtime.restore(kept, store, lock)
    kept.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read: File is not a zip file"):
        runtime.restore(kept, store, lock)
    with pytest.raises(FileNotFoundError, match=Path(kept).with_name("none.zip").name):
        runtime.restore(kept.with_name("none.zip"), store, lock)


@pytest.mark.parametrize("content", ["[]", "{", '{"hub owner/name": {"revision": "a"}}'])
def test_a_damaged_lock_file_in_an_archive_is_named(tmp_path, content):
    with zipfile.ZipFile(tmp_path / "kept.zip", "w") as kept:
        kept.writestr("biaslib-lock.json", content)
    lock = runtime.Lock(tmp_path / "lock.json")
    with pytest.raises(ValueError, match=r"kept.zip: .*lock.* is damaged"):
        runtime.restore(tmp_path / "kept.zip", runtime.Store(tmp_path / "store"), lock)
    assert lock.entries() == {}
