"""The store: computed once, never lost, never taken for something else; and its archive."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support import stored

from biaslib.runtime import Store, _store

ROOT = Path(__file__).parent.parent
KEY = {"model": "clip", "revision": "1f2e", "output": "image", "size": 224}
IDS = [f"picture {number}" for number in range(10)]
TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)


class Model:
    """Rows of a table, and a note of the places that were asked for."""

    def __init__(self, table=TABLE):
        self.table, self.asked = table, []

    def __call__(self, which):
        self.asked.append(which)
        return self.table[which]


def nothing(which):
    pytest.fail("these rows are stored")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def full(store):
    """A store with the table, written in three steps."""
    store.rows(KEY, IDS, Model(), shard_size=4)
    return store


def test_only_what_is_missing_is_computed_in_steps_and_what_comes_twice_once(store):
    store.rows(KEY, IDS[2:5], lambda which: TABLE[2:5][which])
    assert store.missing(KEY, [*IDS[:4], IDS[0]]) == [0, 1]
    model = Model(np.concatenate([TABLE, TABLE[:1]]))
    found = store.rows(KEY, [*IDS, IDS[0]], model, shard_size=3)
    np.testing.assert_array_equal(found, [*TABLE, TABLE[0]])
    assert model.asked == [[0, 1, 5], [6, 7, 8], [9]]
    again = Store(store.folder).rows(dict(reversed(KEY.items())), IDS[::-1], nothing)
    np.testing.assert_array_equal(again, TABLE[::-1])
    assert again.dtype == np.float32


@pytest.mark.parametrize(
    "other",
    [{"model": "vilt"}, {"revision": "1f2f"}, {"output": "text"}, {"size": 64}, {"layer": 1}],
)
def test_another_key_is_another_row(full, other):
    np.testing.assert_array_equal(full.rows(KEY | other, IDS, Model(-TABLE)), -TABLE)
    np.testing.assert_array_equal(full.rows(KEY, IDS, nothing), TABLE)


def changed(path, statement):
    """Do to the tables what a disk may do."""
    with contextlib.closing(sqlite3.connect(path)) as tables, tables:
        return tables.execute(statement).rowcount


@pytest.mark.parametrize(
    ("damage", "n_damaged"),
    [
        ("update rows set data = x'0101' || substr(data, 3) where rowid = 3", 1),
        ("update rows set data = cast(x'0101' || substr(data, 3) as blob) where rowid = 3", 1),
        ("update rows set data = x'' where rowid > 4", 6),
        ("update rows set kind = replace(kind, 'f4', 'i4')", 10),
        ("update rows set crc = crc + 1 where rowid = 3", 1),
    ],
)
def test_damaged_rows_are_counted_and_computed_again(full, damage, n_damaged):
    assert changed(full.path, damage) == n_damaged
    model = Model()
    with pytest.warns(UserWarning, match=f"^{n_damaged} rows of .*store.sqlite are damaged"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, model, shard_size=4), TABLE)
    assert sum(len(which) for which in model.asked) == n_damaged
    np.testing.assert_array_equal(full.rows(KEY, IDS, nothing), TABLE)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"not a database, but a text that is long enough to be read as one" * 9,
        lambda data: data[:4096] + b"\x07" * (len(data) - 4096),
    ],
    ids=["cut", "text", "first page alone"],
)
def test_a_damaged_file_is_set_aside_and_what_it_held_is_computed_again(full, damage):
    bad = damage(full.path.read_bytes())
    full.path.write_bytes(bad)
    with pytest.warns(UserWarning, match=r"store.sqlite is damaged. It is set aside as"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, Model()), TABLE)
    (aside,) = full.folder.glob("*.damaged")
    assert aside.read_bytes() == bad
    np.testing.assert_array_equal(full.rows(KEY, IDS, nothing), TABLE)


def test_a_full_or_locked_disk_is_told_and_what_was_written_before_stays(full, monkeypatch):
    opened = _store._connected

    def small(path):
        tables = opened(path)
        (pages,) = tables.execute("pragma page_count").fetchone()
        tables.execute(f"pragma max_page_count = {pages}")
        return tables

    monkeypatch.setattr(_store, "_connected", small)
    wide = np.ones((10, 10**5), dtype=np.float32)
    with pytest.raises(OSError, match="disk is full"):
        full.rows(KEY | {"size": 9}, IDS, Model(wide))
    monkeypatch.undo()
    np.testing.assert_array_equal(full.rows(KEY, IDS, nothing), TABLE)


def test_rows_finished_before_an_error_are_kept(store):
    class Failing(Model):
        def __call__(self, which):
            if 4 in which:
                raise RuntimeError("the photo is broken")
            return super().__call__(which)

    with pytest.raises(RuntimeError, match="broken"):
        store.rows(KEY, IDS, Failing(), shard_size=4)
    model = Model()
    store.rows(KEY, IDS, model, shard_size=4)
    assert model.asked == [[4, 5, 6, 7], [8, 9]]


class Behind(Model):
    """A model that computes its next rows only while the store writes those before."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.begun, self.write = threading.Event(), Store._write
        monkeypatch.setattr(Store, "_write", lambda *each: self.meanwhile() or self.write(*each))

    def meanwhile(self):
        assert self.begun.wait(20)

    def __call__(self, which):
        if self.asked:
            self.begun.set()
        return super().__call__(which)


def test_rows_are_written_while_the_next_are_computed(store, monkeypatch):
    np.testing.assert_array_equal(store.rows(KEY, IDS, Behind(monkeypatch), 4), TABLE)
    np.testing.assert_array_equal(store.rows(KEY, IDS, nothing), TABLE)


def test_an_interrupt_loses_nothing_that_was_computed(store, monkeypatch):
    class Interrupted(Behind):
        def __call__(self, which):
            rows = super().__call__(which)
            if 8 in which:
                raise KeyboardInterrupt
            return rows

    with pytest.raises(KeyboardInterrupt):
        store.rows(KEY, IDS, Interrupted(monkeypatch), 4)
    assert store.missing(KEY, IDS) == [8, 9]


def test_what_cannot_be_written_ends_the_run_a_step_later(store, monkeypatch):
    def full_disk(*_):
        raise OSError("disk is full")

    monkeypatch.setattr(Store, "_write", full_disk)
    model = Model()
    with pytest.raises(OSError, match="full"):
        store.rows(KEY, IDS, model, 2)
    assert model.asked == [[0, 1], [2, 3]]


def test_the_folder_is_named_by_the_user_or_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("BIASLIB_STORE", raising=False)
    assert Store().folder == tmp_path / "biaslib"
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "shared"))
    assert Store().folder == tmp_path / "shared"


BESIDE = """
import sys, time
import numpy as np
from biaslib.runtime import Store

def compute(which):
    time.sleep(0.01)
    return np.array(which, dtype=np.float32)[:, None] * 10

key = {"model": "m", "revision": "1", "output": "o"}
found = Store(sys.argv[1]).rows(key, [str(i) for i in range(120)], compute, int(sys.argv[2]))
assert (found[:, 0] == np.arange(120) * 10).all()
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_that_write_the_same_rows_at_once_do_no_harm(tmp_path, damaged):
    if damaged:
        (tmp_path / "store.sqlite").write_bytes(b"no store" * 1000)
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", BESIDE, str(tmp_path), size], cwd=ROOT
        )
        for size in ("8", "8", "7")
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    key = {"model": "m", "revision": "1", "output": "o"}
    found = Store(tmp_path).rows(key, [str(i) for i in range(120)], nothing)
    assert found[:, 0].tolist() == [10 * i for i in range(120)]
    assert stored.table(Store(tmp_path))["rows"].tolist() == [120]
    assert len(list(tmp_path.glob("*.damaged"))) == damaged
    assert len(list(tmp_path.glob("store*"))) == 1 + damaged


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the process that is killed")
def test_kills_at_random_moments_lose_nothing_and_repeat_at_most_two_steps():
    """A short form of ``python -m tools.benchmarks kills``."""
    command = [sys.executable, "-m", "tools.benchmarks.kills", "8", "writing"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["kills"] == 8
    assert found["finished_rows_lost"] == 0
    # None where every kill came between two steps.
    assert found["rows_computed_twice"] <= 8 * 2 * found["rows_a_step"]
    assert found["most_rows_twice_after_a_kill"] <= 2 * found["rows_a_step"]
    same, of = found["same_rows_at_the_end"].split(" of ")
    assert same == of


# The archive


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "drive" / "kept.sqlite"


def test_archiving_and_restoring_add_and_replace_nothing(store, kept):
    store.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    assert store.archive(kept) == 1
    shutil.rmtree(store.folder)
    store.rows(KEY, ["b"], lambda which: np.array([[2.0]]))
    assert store.archive(kept) == 2
    assert store.restore(kept) == 1
    assert store.restore(kept) == 0
    assert store.rows(KEY, ["a", "b"], nothing).tolist() == [[1.0], [2.0]]
    shutil.rmtree(store.folder)
    store.rows(KEY, ["a"], lambda which: np.array([[-1.0]]))
    assert store.restore(kept) == 1
    assert store.rows(KEY, ["a", "b"], nothing).tolist() == [[-1.0], [2.0]]
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_two_machines_on_one_archive_lose_no_row(tmp_path, kept, monkeypatch):
    """One adds its rows between the other's reading and its writing."""
    one, two = (Store(tmp_path / name) for name in "12")
    one.rows(KEY, ["a"], lambda which: np.array([[1.0]]))
    two.rows(KEY, ["b"], lambda which: np.array([[2.0]]))
    copy, counts = shutil.copyfile, []

    def slow(*paths):
        monkeypatch.setattr(_store.shutil, "copyfile", copy)
        counts.append(two.archive(kept))
        return copy(*paths)

    monkeypatch.setattr(_store.shutil, "copyfile", slow)
    assert [one.archive(kept), *counts] == [2, 1]
    assert Store(tmp_path / "3").restore(kept) == 2
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    "damage", ["data = zeroblob(12)", "data = 7", "item = 'x'", "kind = 7", "crc = 'c'"]
)
def test_a_damaged_row_is_not_archived_and_replaces_no_sound_one(full, kept, damage):
    assert full.archive(kept) == 10
    changed(full.path, f"update rows set {damage} where rowid = 3")
    assert full.archive(kept) == 10
    other = Store(full.folder / "other")
    assert other.restore(kept) == 10
    np.testing.assert_array_equal(other.rows(KEY, IDS, nothing), TABLE)


COMPUTING = """
import time
import numpy as np
from biaslib.runtime import Store, _store

_store.EVERY = Store.spacing = 0.0
def compute(which):
    time.sleep(0.02)
    return np.array(which, dtype=float)[:, None]

key = {"model": "clip", "revision": "1f2e", "output": "image"}
Store().rows(key, [str(each) for each in range(1000)], compute, 10)
"""


def test_a_process_that_ends_has_added_its_last_rows(store, kept, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_ARCHIVE", str(kept))
    code = COMPUTING.replace("_store.EVERY = Store.spacing = 0.0", "").replace("0.02", "0")
    subprocess.run([sys.executable, "-c", code], check=True)
    shutil.rmtree(store.folder)
    monkeypatch.delenv("BIASLIB_ARCHIVE")
    assert store.restore(kept) == 1000


def test_who_loses_the_machine_goes_on_from_the_last_copy(store, kept, monkeypatch):
    """The process is killed and its disk is gone; the drive is left."""
    monkeypatch.setenv("BIASLIB_STORE", str(store.folder))
    monkeypatch.setenv("BIASLIB_ARCHIVE", str(kept))
    process = subprocess.Popen([sys.executable, "-c", COMPUTING])
    seen = set()
    while process.poll() is None and len(seen) < 2:  # it is copied more than once
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            seen.add(kept.stat().st_mtime_ns)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    computed = stored.table(store)["rows"].item()
    shutil.rmtree(store.folder)
    monkeypatch.delenv("BIASLIB_ARCHIVE")
    restored = store.restore(kept)
    assert 20 <= restored <= computed < 1000
    key, ids = {name: KEY[name] for name in _store.REQUIRED}, [str(each) for each in range(1000)]
    assert store.missing(key, ids) == list(range(restored, 1000))
    assert store.rows(key, ids[:restored], nothing)[:, 0].tolist() == list(range(restored))
