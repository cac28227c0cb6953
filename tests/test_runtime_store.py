"""The store: computed once, never lost, never taken for something else."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save
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
    """A store with the table in three shards."""
    store.rows(KEY, IDS, Model(), shard_size=4)
    return store


def shards(store):
    return sorted(store.folder.rglob("*.safetensors"))


def test_rows_are_computed_once_shard_by_shard_in_order(store):
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


def flip(data):
    """Change one bit of the last row; the hashes of the ids come after it."""
    at = len(data) - load(data)["ids"].size - 1
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


class Noting:
    """The module os, and what bore a shard's name when each file or folder was put on the disk."""

    def __init__(self, store):
        self.store, self.synced = store, {}

    def fsync(self, file):
        named = {path.stat().st_ino for path in shards(self.store)}
        self.synced[os.fstat(file).st_ino] = named
        os.fsync(file)

    def __getattr__(self, name):
        return getattr(os, name)


def test_a_shard_is_on_the_disk_before_it_has_its_name(store, monkeypatch):
    """Else a loss of power could leave a name whose bytes never arrived."""
    noting = Noting(store)
    monkeypatch.setattr(_store, "os", noting)
    store.rows(KEY, IDS, Model(), shard_size=4)
    files = {path.stat().st_ino for path in shards(store)}
    assert len(files) == 3
    assert all(each in noting.synced and each not in noting.synced[each] for each in files)
    if os.name == "posix":
        assert noting.synced[shards(store)[0].parent.stat().st_ino] == files


@pytest.mark.parametrize(
    "damage",
    [flip, lambda data: data[:-1], lambda data: b"", lambda data: b"\xff" * len(data)],
    ids=["one bit", "one byte short", "empty", "garbage"],
)
def test_a_damaged_shard_is_named_set_aside_and_computed_again(full, damage):
    before = {path: path.read_bytes() for path in shards(full)}
    bad = shards(full)[1]
    bad.write_bytes(damage(before[bad]))
    model = Model()
    with pytest.warns(UserWarning, match=f"(?s){bad.name} is damaged.*computed again"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, model, shard_size=4), TABLE)
    assert [len(which) for which in model.asked] in ([4], [2])
    assert {path: path.read_bytes() for path in shards(full)} == before
    assert stored.table(full)["damaged"].tolist() == [1]


def test_a_damaged_id_is_no_other_id(full):
    bad = shards(full)[1]
    data = bad.read_bytes()
    bad.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.warns(UserWarning, match=f"{bad.name} is damaged"):
        np.testing.assert_array_equal(full.rows(KEY, IDS, Model()), TABLE)


def test_a_shard_of_which_every_id_is_damaged_heals(full):
    """Its rows are missed, and what is computed again has the name of the damaged file."""
    bad = shards(full)[1]
    data = bad.read_bytes()
    size = load(data)["ids"].size
    bad.write_bytes(data[:-size] + bytes(each ^ 1 for each in data[-size:]))
    np.testing.assert_array_equal(full.rows(KEY, IDS, Model(), shard_size=4), TABLE)
    assert bad.read_bytes() == data


def test_a_shard_of_another_key_is_not_taken(full):
    other = KEY | {"size": 64}
    full.rows(other, IDS, Model(-TABLE), shard_size=4)
    of_key = {path.parent for path in shards(full)}
    mine, theirs = sorted(of_key, key=lambda folder: b"64" in (folder / "key.json").read_bytes())
    for path in list(mine.glob("*.safetensors")):
        path.replace(theirs / path.name)
    with pytest.warns(UserWarning, match="another key's"):
        np.testing.assert_array_equal(full.rows(other, IDS, Model(-TABLE)), -TABLE)


def test_a_shard_that_names_no_key_is_that_of_its_folder(full):
    """So did all shards once; who comes back after an update computes nothing again."""
    for path in shards(full):
        data = save(load(path.read_bytes()))
        path.with_name(f"{hashlib.sha256(data).hexdigest()}.safetensors").write_bytes(data)
        path.unlink()
    model = Model()
    np.testing.assert_array_equal(Store(full.folder).rows(KEY, IDS, model), TABLE)
    assert not model.asked


def test_a_shard_that_may_not_be_read_is_left_alone(full, monkeypatch):
    """As another user of the machine finds it."""
    import safetensors

    def refused(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(safetensors, "safe_open", refused)
    with pytest.raises(OSError, match=r"cannot be read \(Permission denied\); make it readable"):
        full.rows(KEY, IDS, Model())
    monkeypatch.undo()
    np.testing.assert_array_equal(full.rows(KEY, IDS, lambda _: pytest.fail("there")), TABLE)


def test_a_wrong_clock_takes_no_file_from_a_living_process(full):
    fcntl = pytest.importorskip("fcntl", reason="locks of files are POSIX's")
    alive = shards(full)[0].parent / "a.partial"
    with open(alive, "wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        os.utime(alive, (0, 0))
        full.rows(KEY, ["a new picture"], Model())
        assert alive.exists()
    full.rows(KEY, ["another picture"], Model())
    assert not alive.exists()


def test_a_damaged_key_is_shown_and_written_anew(full):
    (path,) = full.folder.glob("*/key.json")
    path.write_bytes(b"{")
    assert stored.table(full)[["model", "options", "rows"]].values.tolist() == [
        ["", "key.json=damaged", 10]
    ]
    full.rows(KEY, ["a new picture"], Model())
    assert stored.table(full)["model"].tolist() == ["clip"]


def test_a_disk_that_damages_what_it_is_given_is_given_up(store, monkeypatch):
    from biaslib.runtime import _store

    monkeypatch.setattr(
        _store, "_write", lambda path, data: path.write_bytes(data[:-1] + b"\x00\x01")
    )
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(OSError, match="damaged as soon as written; check the disk"),
    ):
        store.rows(KEY, IDS, Model())


def test_shards_finished_before_an_error_are_kept(store):
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


def test_an_unfinished_file_is_never_read_and_goes_after_an_hour(full):
    folder = shards(full)[0].parent
    fresh, old = folder / "a.partial", folder / "b.partial"
    fresh.write_bytes(b"half")
    old.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    full.rows(KEY, ["a new picture"], Model())
    assert fresh.exists()
    assert not old.exists()


def test_an_unfinished_file_may_be_finished_by_its_process_while_others_look(full):
    """A name that is listed and leads nowhere: two processes were caught so in one test run."""
    gone = shards(full)[0].parent / "a.partial"
    gone.symlink_to("nowhere")
    full.rows(KEY, ["a new picture"], Model())
    assert full.missing(KEY, ["a new picture"]) == []


def test_rows_that_do_not_fit_those_under_the_same_key_are_refused(full):
    with pytest.raises(ValueError, match=r"shapes .*\(2,\).*put what differs into the key"):
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
    size = sum(path.stat().st_size for path in shards(full))
    assert found["MB"].sum() == pytest.approx(size / 1e6)
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
    """With the same shards, and with others."""
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
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the process that is killed")
def test_kills_at_random_moments_lose_nothing_and_repeat_at_most_a_shard():
    """A short form of ``python -m benchmarks kills``."""
    command = [sys.executable, "-m", "benchmarks.kills", "8", "writing"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["kills"] == 8
    assert found["finished_shards_lost"] == 0
    assert 0 < found["rows_computed_twice"] <= 8 * found["rows_a_shard"]
    assert found["most_rows_twice_after_a_kill"] <= found["rows_a_shard"]
    same, of = found["same_bytes_at_the_end"].split(" of ")
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
