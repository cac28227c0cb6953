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
    """Kill a process at random moments while it writes; see :mod:`tools.benchmarks.kills`."""
    command = [sys.executable, "-m", "tools.benchmarks.kills", str(n), "writing"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = json.loads(told)
    same, of = map(int, found["same_rows_at_the_end"].split(" of "))
    found_wrong = of - same + (found["most_rows_twice_after_a_kill"] > 2 * found["rows_a_step"])
    return Outcome(
        "a process killed while it writes into the store",
        found["kills"],
        lost=found["finished_rows_lost"],
        wrong=found_wrong,
    )


def damages(n: int, seed: int = 0) -> Outcome:
    """Damage the stored file, and read both keys that lie there."""
    outcome, rng = Outcome("the store damaged"), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* damaged")
        store = Store(name)
        for _ in range(n):
            for key, table in TABLES:
                store.rows(key, IDS, table.__getitem__, shard_size=4)
            harm(rng, store.path)
            outcome.tried += 1
            try:
                for key, table in TABLES:
                    found = store.rows(key, IDS, table.__getitem__, shard_size=4)
                    outcome.wrong += not np.array_equal(found, table)
            except Exception:
                outcome.raw += 1
            for path in store.folder.glob("*.damaged"):
                path.unlink()
    return outcome


def harm(rng: np.random.Generator, path: Path) -> None:
    """Do one thing to the file that a disk, a copy or a person may do."""
    data = path.read_bytes()
    at, kind = rng.integers(len(data)), rng.integers(5)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.write_bytes(data[:at])
    elif kind == 2:
        path.write_bytes(data[:at] + rng.bytes(8) + data[at + 8 :])
    elif kind == 3:
        path.write_bytes(rng.bytes(100))
    else:  # within the rows that are stored
        whole = np.concatenate([table for _, table in TABLES])
        at = data.find(whole[rng.integers(len(whole))].tobytes())
        path.write_bytes(data[:at] + rng.bytes(3) + data[at + 3 :])
