"""The store: computed once, never lost, never taken for something else."""

import contextlib
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import stored

from biaslib import runtime
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


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def full(store):
    """A store with the table, written in three steps."""
    store.rows(KEY, IDS, Model(), shard_size=4)
    return store


def test_rows_are_computed_once_step_by_step_in_order(store):
    model = Model()
    np.testing.assert_array_equal(store.rows(KEY, IDS, model, shard_size=4), TABLE)
    assert model.asked == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    again = Store(store.folder).rows(KEY, IDS[::-1], model)
    np.testing.assert_array_equal(again, TABLE[::-1])
    assert again.dtype == np.float32
    assert len(model.asked) == 3


def test_only_what_is_missing_is_computed_and_what_comes_twice_once(store):
    store.rows(KEY, IDS[2:5], lambda which: TABLE[2:5][which])
    model = Model(np.concatenate([TABLE, TABLE[:1]]))
    found = store.rows(KEY, [*IDS, IDS[0]], model, shard_size=3)
    np.testing.assert_array_equal(found, [*TABLE, TABLE[0]])
    assert model.asked == [[0, 1, 5], [6, 7, 8], [9]]


@pytest.mark.parametrize(
    "other",
    [{"model": "vilt"}, {"revision": "1f2f"}, {"output": "text"}, {"size": 64}, {"layer": 1}],
)
def test_another_key_is_another_row(full, other):
    model = Model(-TABLE)
    np.testing.assert_array_equal(full.rows(KEY | other, IDS, model), -TABLE)
    np.testing.assert_array_equal(full.rows(KEY, IDS, Model(-TABLE)), TABLE)


def test_the_order_of_a_keys_parts_does_not_matter(full):
    turned = dict(reversed(KEY.items()))
    np.testing.assert_array_equal(full.rows(turned, IDS, Model(-TABLE)), TABLE)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, bool])
def test_rows_of_any_type_and_shape_come_back_as_they_were(store, dtype):
    table = np.arange(24).reshape(4, 3, 2).astype(dtype)
    found = store.rows(KEY, IDS[:4], Model(table), shard_size=3)
    np.testing.assert_array_equal(found, table)
    assert found.dtype == dtype
    assert store.rows(KEY | {"size": 1}, IDS[:2], lambda which: np.array(which)).tolist() == [0, 1]


def changed(store, statement, *values):
    """Do to the tables what a disk may do."""
    with contextlib.closing(sqlite3.connect(store.path)) as tables, tables:
        return tables.execute(statement, values).rowcount


@pytest.mark.parametrize(
    ("damage", "n_damaged"),
    [
        ("update rows set data = x'0101' || substr(data, 3) where rowid = 3", 1),
        ("update rows set data = cast(x'0101' || substr(data, 3) as blob) where rowid = 3", 1),
        ("update rows set data = substr(data, 2) where rowid = 3", 1),
        ("update rows set data = x'' where rowid > 4", 6),
        ("update rows set kind = replace(kind, 'f4', 'i4')", 10),
        ("update rows set crc = crc + 1 where rowid = 3", 1),
    ],
)
def test_damaged_rows_are_counted_and_computed_again(full, damage, n_damaged):
    assert changed(full, damage) == n_damaged
    model = Model()
    with pytest.warns(UserWarning, match=f"^{n_damaged} rows of .*store.sqlite are damaged"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, model, shard_size=4), TABLE)
    assert sum(len(which) for which in model.asked) == n_damaged
    np.testing.assert_array_equal(full.rows(KEY, IDS, lambda _: pytest.fail("there")), TABLE)


def test_a_damaged_item_is_no_other_item_and_a_row_of_another_key_is_not_taken(full):
    other = KEY | {"size": 64}
    full.rows(other, IDS, Model(-TABLE))
    changed(full, "update rows set item = zeroblob(32) where rowid = 3")
    np.testing.assert_array_equal(full.rows(KEY, IDS, Model()), TABLE)
    assert changed(full, "delete from rows where key = 2") == 10
    assert changed(full, "update rows set key = 2 where rowid <> 3") == 10
    with pytest.warns(UserWarning, match="10 rows of .* are damaged"):
        np.testing.assert_array_equal(full.rows(other, IDS, Model(-TABLE)), -TABLE)


def test_a_transaction_is_put_on_the_disk_before_it_counts(store):
    """Else a loss of power could leave half of one: SQLite calls this FULL, with a journal."""
    asked = ("pragma synchronous", "pragma journal_mode")
    found = store.look(lambda tables: [tables.execute(each).fetchone()[0] for each in asked])
    assert found == [2, "delete"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"\xff" * len(data),
        lambda data: b"not a database, but a text that is long enough to be read as one" * 9,
        lambda data: data[:4096] + b"\x07" * (len(data) - 4096),
    ],
    ids=["cut", "ones", "text", "first page alone"],
)
def test_a_damaged_file_is_set_aside_and_what_it_held_is_computed_again(full, damage):
    bad = damage(full.path.read_bytes())
    full.path.write_bytes(bad)
    with pytest.warns(UserWarning, match=r"store.sqlite is damaged. It is set aside as"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, Model()), TABLE)
    (aside,) = full.folder.glob("*.damaged")
    assert aside.read_bytes() == bad
    np.testing.assert_array_equal(full.rows(KEY, IDS, lambda _: pytest.fail("there")), TABLE)


def test_a_store_that_may_not_be_read_is_left_alone(full, monkeypatch):
    """As another user of the machine finds it."""

    def refused(path):
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr("biaslib.runtime._store.connected", refused)
    with pytest.raises(OSError, match=r"store.sqlite cannot be read or written .unable to open"):
        full.rows(KEY, IDS, Model())
    monkeypatch.undo()
    np.testing.assert_array_equal(full.rows(KEY, IDS, lambda _: pytest.fail("there")), TABLE)


def test_a_disk_that_damages_what_it_is_given_is_given_up(store, monkeypatch):
    model, right = Model(), _store._checksum
    monkeypatch.setattr(_store, "_checksum", lambda *row: right(*row) + next(harm))
    harm = itertools.count()
    with (
        pytest.warns(UserWarning, match="rows of .* are damaged"),
        pytest.raises(OSError, match="damaged as soon as written; check the disk"),
    ):
        store.rows(KEY, IDS, model)


def test_a_full_disk_is_told_and_what_was_written_before_stays(store, monkeypatch):
    store.rows(KEY, IDS[:4], Model())
    opened = _store.connected

    def small(path):
        tables = opened(path)
        (pages,) = tables.execute("pragma page_count").fetchone()
        tables.execute(f"pragma max_page_count = {pages}")
        return tables

    monkeypatch.setattr(_store, "connected", small)
    wide = np.ones((6, 10**5), dtype=np.float32)
    with pytest.raises(OSError, match=r"database or disk is full.*free some space"):
        store.rows(KEY | {"size": 9}, IDS[4:], lambda which: wide[which])
    monkeypatch.undo()
    np.testing.assert_array_equal(
        store.rows(KEY, IDS[:4], lambda _: pytest.fail("there")), TABLE[:4]
    )


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


def test_rows_that_do_not_fit_those_under_the_same_key_are_refused(full):
    with pytest.raises(ValueError, match=r"<f4\", 2.*put what differs into the key"):
        full.rows(KEY, [*IDS, "other"], lambda which: np.zeros((1, 2), np.float32))


def test_what_compute_returns_must_be_a_row_an_item(store):
    with pytest.raises(ValueError, match="10 rows were to be computed, and 3 came back"):
        store.rows(KEY, IDS, lambda which: TABLE[:3])


def test_keys_and_ids_that_do_not_tell_what_they_are_are_refused(store):
    with pytest.raises(ValueError, match="lacks revision, output"):
        store.rows({"model": "clip", "revision": ""}, IDS, Model())
    with pytest.raises(TypeError, match="not JSON serializable"):
        store.rows(KEY | {"layers": {1, 2}}, IDS, Model())
    with pytest.raises(TypeError, match="7 has the type int"):
        store.rows(KEY, [7], Model())
    with pytest.raises(ValueError, match="no ids"):
        store.rows(KEY, [], Model())


def test_clear_deletes_one_key(full):
    full.rows({"model": "bert", "revision": "9", "output": "text"}, ["nurse"], lambda _: TABLE[:1])
    found = stored.table(full).sort_values("model").reset_index(drop=True)
    assert found["model"].tolist() == ["bert", "clip"]
    assert found["rows"].tolist() == [1, 10]
    assert found["options"].tolist() == ["", "size=224"]
    full.clear(KEY)
    full.clear(KEY)
    assert stored.table(full)["model"].tolist() == ["bert"]
    assert stored.table(Store(full.folder / "nothing")).empty


def test_the_folder_is_named_by_the_user_or_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("BIASLIB_STORE", raising=False)
    assert Store().folder == tmp_path / "biaslib"
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "shared"))
    assert Store().folder == tmp_path / "shared"
    assert Store(tmp_path / "mine").folder == tmp_path / "mine"


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
"""


def test_processes_that_write_the_same_rows_at_once_do_no_harm(tmp_path):
    running = [
        subprocess.Popen([sys.executable, "-c", BESIDE, str(tmp_path), size], cwd=ROOT)
        for size in ("8", "8", "7")
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    key = {"model": "m", "revision": "1", "output": "o"}
    ids = [str(i) for i in range(120)]
    found = Store(tmp_path).rows(key, ids, lambda which: pytest.fail("nothing is missing"))
    assert found[:, 0].tolist() == [10 * i for i in range(120)]
    assert stored.table(Store(tmp_path))["rows"].tolist() == [120]
    assert [path.name for path in tmp_path.iterdir()] == ["store.sqlite"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the process that is killed")
def test_kills_at_random_moments_lose_nothing_and_repeat_at_most_a_step():
    """A short form of ``python -m benchmarks kills``."""
    command = [sys.executable, "-m", "benchmarks.kills", "8", "writing"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["kills"] == 8
    assert found["finished_rows_lost"] == 0
    assert 0 < found["rows_computed_twice"] <= 8 * found["rows_a_step"]
    assert found["most_rows_twice_after_a_kill"] <= found["rows_a_step"]
    same, of = found["same_rows_at_the_end"].split(" of ")
    assert same == of


def test_a_store_of_numbers_does_not_import_torch(tmp_path):
    code = (
        "import sys, numpy; from biaslib.runtime import Store; "
        "Store(sys.argv[1]).rows(dict(model='m', revision='1', output='o'), ['a'], "
        "lambda which: numpy.ones((1, 2))); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)


def test_a_progress_bar_is_made_only_for_long_work(capsys, monkeypatch):
    monkeypatch.delenv("BIASLIB_BOOK", raising=False)
    assert list(runtime.progress(range(3), "short")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("biaslib.runtime._profile.DELAY", -1.0)
    assert list(runtime.progress(range(3), "long")) == [0, 1, 2]
    assert "long" in capsys.readouterr().err
