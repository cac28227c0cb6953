"""The store and the lock file in one file: what a new machine needs to go on without a model."""

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

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
    lock.verify(
        "hub owner/name",
        "abc123",
        {"weights.bin": {"sha256": runtime.file_sha256(tmp_path / "weights.bin"), "bytes": 1}},
    )
    return store, lock, tmp_path / "drive" / "kept.sqlite"


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
    recorded = lock.files("hub owner/name")["weights.bin"]["sha256"]
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
    assert "1 rows of the store and the lock file archived" in said.stdout
    wipe(store, lock)
    subprocess.run([*command, "restore", kept], check=True)
    assert store.rows(KEY, ["a"], lambda which: [][0]).tolist() == [[1.0]]
    assert lock.revision("hub owner/name") == "abc123"


def test_an_empty_store_is_not_archived(places):
    store, lock, kept = places
    with pytest.raises(ValueError, match=r"the store .*store is empty.*was not written"):
        runtime.archive(kept, store, lock)
    assert list(kept.parent.iterdir()) == []


def test_an_archive_keeps_what_the_store_and_the_lock_file_do_not_hold(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    assert runtime.archive(kept, store, lock) == 1
    wipe(store, lock)
    store.rows(KEY, ["a", "b"], lambda which: np.array([[-1.0], [2.0]]))
    lock.verify(
        "hub other/name",
        "def456",
        {
            "weights.bin": {
                "sha256": runtime.file_sha256(lock.path.with_name("weights.bin")),
                "bytes": 1,
            }
        },
    )
    assert runtime.archive(kept, store, lock) == 2
    wipe(store, lock)
    assert runtime.restore(kept, store, lock) == 2
    found = store.rows(KEY, ["a", "b"], lambda which: [][0])
    assert found.tolist() in ([[1.0], [2.0]], [[-1.0], [2.0]])
    assert lock.revision("hub owner/name") == "abc123"
    assert lock.revision("hub other/name") == "def456"


COMPUTING = """
import sys, time
import numpy as np
from biaslib.runtime import Store, _store

_store.EVERY = Store.spacing = 0.0
def compute(which):
    time.sleep(0.02)
    return np.array(which, dtype=float)[:, None]

key = {"model": "clip", "revision": "1f2e", "output": "image"}
Store().rows(key, [str(each) for each in range(1000)], compute, 10)
"""


def test_who_loses_the_machine_goes_on_from_the_last_copy(places, monkeypatch):
    """The process is killed and its disk is gone; the drive is left."""
    store, lock, kept = places
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_LOCK", str(lock.path))
    monkeypatch.setenv("BIASLIB_ARCHIVE", str(kept))
    process = subprocess.Popen([sys.executable, "-c", COMPUTING])
    before = None
    while process.poll() is None and before is None:
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            before = kept.stat().st_ino
    while process.poll() is None and kept.stat().st_ino == before:  # it is copied more than once
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    computed = stored.table(store)["rows"].item()
    shutil.rmtree(store.folder)
    monkeypatch.delenv("BIASLIB_ARCHIVE")
    restored = runtime.restore(kept)
    assert 20 <= restored <= computed < 1000
    asked = []
    found = store.rows(
        KEY,
        [str(each) for each in range(1000)],
        lambda which: asked.extend(which) or np.array(which, dtype=float)[:, None],
    )
    assert found[:, 0].tolist() == list(range(1000))
    assert asked == list(range(restored, 1000))


def test_a_copy_that_cannot_be_made_stops_no_run(places, monkeypatch, tmp_path):
    store, lock, _ = places
    (tmp_path / "drive").write_text("no folder")
    monkeypatch.setenv("BIASLIB_LOCK", str(lock.path))
    monkeypatch.setenv("BIASLIB_ARCHIVE", str(tmp_path / "drive" / "kept.sqlite"))
    monkeypatch.setattr(runtime.Store, "spacing", 0.0)
    with pytest.warns(UserWarning, match="nothing was added to BIASLIB_ARCHIVE: .*drive"):
        assert store.rows(KEY, ["a"], lambda which: np.array([[1.0]])).tolist() == [[1.0]]


def test_a_file_that_is_no_archive_is_not_replaced(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    kept.parent.mkdir()
    kept.write_text("a thesis")
    with pytest.raises(ValueError, match=r"kept\.sqlite cannot be read"):
        runtime.archive(kept, store, lock)
    assert kept.read_text() == "a thesis"


def test_the_command_line_says_one_line_of_what_is_wrong(places, monkeypatch, capsys):
    store, lock, kept = places
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_LOCK", str(lock.path.with_name("none.json")))
    target = lock.path / "kept.sqlite"
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
    assert "1 rows of the store and the lock file archived" in capsys.readouterr().out


def test_other_recorded_files_are_refused_and_nothing_is_changed(places, tmp_path):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    lock.path.unlink()
    (tmp_path / "weights.bin").write_bytes(b"other weights")
    lock.verify(
        "hub owner/name",
        "abc123",
        {"weights.bin": {"sha256": runtime.file_sha256(tmp_path / "weights.bin"), "bytes": 1}},
    )
    before = lock.path.read_bytes()
    with pytest.raises(runtime.ChecksumError, match=r"another weights\.bin of 'hub owner/name'"):
        runtime.restore(kept, store, lock)
    assert lock.path.read_bytes() == before


def changed(kept, statement):
    with contextlib.closing(sqlite3.connect(kept)) as tables, tables:
        tables.executescript(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "create table more (a)",
        "create view theirs as select * from rows",
        "create trigger harm after insert on rows begin delete from keys; end",
        "drop table files",
    ],
)
def test_a_file_with_other_tables_is_refused_and_nothing_is_written(places, statement):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    changed(kept, statement)
    wipe(store, lock)
    with pytest.raises(ValueError, match="not an archive of a store: it holds"):
        runtime.restore(kept, store, lock)
    assert stored.table(store).empty


def test_a_damaged_row_and_a_damaged_archive_are_named(places):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.ones((1, 5000)))
    runtime.archive(kept, store, lock)
    whole = kept.read_bytes()
    changed(kept, "update rows set data = x'00'")
    wipe(store, lock)
    runtime.restore(kept, store, lock)
    with pytest.warns(UserWarning, match="1 rows of .* are damaged, and are computed again"):
        assert (store.rows(KEY, ["a"], lambda which: np.ones((1, 5000))) == 1).all()
    for damaged in (whole[: len(whole) // 2], b"a thesis" * 100):
        kept.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"kept.sqlite cannot be read as an archive"):
            runtime.restore(kept, store, lock)
    with pytest.raises(FileNotFoundError, match=r"none\.sqlite"):
        runtime.restore(kept.with_name("none.sqlite"), store, lock)


@pytest.mark.parametrize("content", ["[]", "{", '{"hub owner/name": {"revision": "a"}}'])
def test_a_damaged_lock_file_in_an_archive_is_named(places, content):
    store, lock, kept = places
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    runtime.archive(kept, store, lock)
    changed(kept, f"update files set content = '{content}'")
    wipe(store, lock)
    with pytest.raises(ValueError, match=r"kept.sqlite: .*lock.* is damaged"):
        runtime.restore(kept, store, lock)
    assert lock.entries() == {}
