"""Kills of a process that writes into the store, and damage to what is stored."""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from attack import Outcome
from biaslib.runtime import Store

ROOT = Path(__file__).resolve().parents[2]
KEY = {"model": "clip", "revision": "1f2e", "output": "image", "size": 224}
OTHER = KEY | {"size": 64}
IDS = [f"picture {number}" for number in range(10)]
TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)
TABLES = ((KEY, TABLE), (OTHER, -TABLE))


def kills(n: int) -> Outcome:
    """Kill a process at random moments while it writes; see :mod:`benchmarks.kills`."""
    command = [sys.executable, "-m", "benchmarks.kills", str(n), "writing"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = json.loads(told)
    same, of = map(int, found["same_bytes_at_the_end"].split(" of "))
    found_wrong = of - same + (found["most_rows_twice_after_a_kill"] > found["rows_a_shard"])
    return Outcome(
        "a process killed while it writes into the store",
        found["kills"],
        lost=found["finished_shards_lost"],
        wrong=found_wrong,
    )


def damages(n: int, seed: int = 0) -> Outcome:
    """Damage stored files, one to three at once, and read both keys that lie there."""
    outcome, rng = Outcome("files of the store damaged"), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the shard")
        store = Store(name)
        for _ in range(n):
            for key, table in TABLES:
                store.rows(key, IDS, table.__getitem__, shard_size=4)
            for _ in range(rng.integers(1, 4)):
                harm(rng, sorted(store.folder.rglob("*.*")))
            outcome.tried += 1
            try:
                for key, table in TABLES:
                    found = store.rows(key, IDS, table.__getitem__, shard_size=4)
                    outcome.wrong += not np.array_equal(found, table)
            except Exception:
                outcome.raw += 1
            keys = [json.loads(path.read_bytes()) for path in store.folder.rglob("key.json")]
            outcome.lost += sum(key not in keys for key, _ in TABLES)
    return outcome


def harm(rng: np.random.Generator, files: list[Path]) -> None:
    """Do one thing to one of the files that a disk, a copy or a person may do."""
    path = files[rng.integers(len(files))]
    data = path.read_bytes() if path.exists() else b""
    at = rng.integers(len(data)) if data else 0
    kind = rng.integers(7)
    if kind == 0:
        path.unlink(missing_ok=True)
    elif kind == 1:
        path.write_bytes(data[:at])
    elif kind == 2:
        path.write_bytes(data[:at] + rng.bytes(8) + data[at + 8 :])
    elif kind == 3:
        path.write_bytes(rng.bytes(100))
    elif kind == 4 and path.suffix == ".safetensors":
        size = min(320, len(data))
        path.write_bytes(data[:-size] + rng.bytes(size))
    elif kind == 5 and path.suffix == ".safetensors" and len(data) > 8:
        flip(rng, path, data)
    else:
        folders = sorted({each.parent for each in files})
        target = folders[rng.integers(len(folders))] / path.name
        if path.exists() and target != path:
            target.write_bytes(data)


def flip(rng: np.random.Generator, path: Path, data: bytes) -> None:
    """Flip a bit of the tensors in a shard, which are read as well without it."""
    start = 8 + int.from_bytes(data[:8], "little")
    if start < len(data):
        at = rng.integers(start, len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.integers(8)]) + data[at + 1 :])
