"""Kill an extraction at random moments, again and again, and see what is lost or done twice.

Run as ``python -m tools.benchmarks.kills [kills [extraction ...]]``; the default is 100 of each,
and writes the table of the book's page. Two extractions go into the store: ``clip``, planted
pictures through a tiny CLIP, and ``writing``, numbers that take no time to compute, so that kills
meet rows that are being written. Prints one JSON record each.
"""

import collections
import csv
import itertools
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from biaslib.runtime import Store
from tools.benchmarks import MACHINE, machine, shown

RESULTS = Path(__file__).parent / "results" / "kills.csv"
STEP = 16
KEY = {"model": "a test", "revision": "1", "output": "rows"}


@dataclass
class Extraction:
    """What is extracted."""

    ids: list[str]
    compute: Callable[[list[int]], np.ndarray]


@dataclass
class Findings:
    """What was seen after each kill, and at the end of each extraction."""

    kills: int = 0
    extractions: int = 0
    rows_computed: int = 0
    twice: int = 0
    most_twice_a_kill: int = 0
    finished_and_lost: int = 0
    same_rows: list[bool] = field(default_factory=list)


def writing(n_rows: int = 1600) -> Extraction:
    """Return an extraction that only writes."""
    table = np.random.default_rng(0).normal(size=(n_rows, 256)).astype(np.float32)
    return Extraction([f"row {i}" for i in range(n_rows)], lambda which: table[which])


def clip(n_rows: int = 640) -> Extraction:
    """Return an extraction by a model, its forward passes in one thread."""
    import torch

    import plantedworld
    from biaslib import models
    from biaslib.pictures.images import pictures

    torch.set_num_threads(1)
    model = models.load("clip", profile="planted", dose=3, seed=0, device="cpu")
    scenes = plantedworld.world(3, 0).scenes(n_rows, np.random.default_rng(0))
    drawn = pictures(plantedworld.draw(scenes))
    return Extraction(drawn.ids, lambda which: model.encode_image(drawn.part(which)))


def run(extraction: Extraction, folder: Path, log: Path) -> None:
    """Extract to the end, and note the rows of each step before they are computed."""

    def compute(which: list[int]) -> np.ndarray:
        with log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(which) + "\n")
        return extraction.compute(which)

    Store(folder).rows(KEY, extraction.ids, compute, shard_size=STEP)


def killed(extraction: Extraction, folder: Path, log: Path, seconds: float | None) -> bool:
    """Extract in a process of its own, killed after so many seconds; tell whether it was."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run(extraction, folder, log)
            status = 0
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("the extraction failed")
    return os.WIFSIGNALED(status)


def stored(folder: Path) -> dict[bytes, list]:
    """Return the rows by their items."""
    select = "select item, kind, data from rows"

    def items(tables: sqlite3.Connection) -> dict[bytes, list]:
        return {item: rest for item, *rest in tables.execute(select)}

    return Store(folder).transaction(items)


def examine(lives: list[list[list[int]]], before: dict, after: dict, found: Findings) -> None:
    """Note what the last life did again, and what it or an earlier life had finished and is lost.

    A step is written while the next is computed: all rows but those of the last two must be there.
    """
    earlier = collections.Counter(row for life in lives[:-1] for rows in life for row in rows)
    again = sum(row in earlier for rows in lives[-1] for row in rows)
    found.twice += again
    found.most_twice_a_kill = max(found.most_twice_a_kill, again)
    found.rows_computed += sum(map(len, lives[-1]))
    found.finished_and_lost += sum(after.get(item) != row for item, row in before.items())
    finished = {row for life in lives for rows in life[:-2] for row in rows}
    found.finished_and_lost += max(len(finished) - len(after), 0)


def undisturbed(extraction: Extraction) -> tuple[dict[bytes, list], float]:
    """Return the rows of an extraction without a kill, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as name:
        run(extraction, Path(name) / "first", Path(name) / "log")
        started = time.perf_counter()
        run(extraction, Path(name) / "store", Path(name) / "log")
        return stored(Path(name) / "store"), time.perf_counter() - started


def one_extraction(
    extraction: Extraction, n_kills: int, lives: Iterator[float], found: Findings
) -> dict[bytes, list]:
    """Kill an extraction until it ends or there were kills enough; return its rows."""
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name) / "store", Path(name) / "log"
        begun, before, again = [], {}, True
        while again:
            log.write_text("", encoding="utf-8")
            seconds = next(lives) if found.kills < n_kills else None
            again = killed(extraction, folder, log, seconds)
            lines = log.read_text(encoding="utf-8").splitlines()
            begun.append([json.loads(line) for line in lines])
            after = stored(folder)
            examine(begun, before, after, found)
            before = after
            found.kills += again
        found.extractions += 1
        return after


def proof(extraction: Extraction, n_kills: int, seed: int = 0) -> Findings:
    """Kill extractions so many times, and hold what they leave against one without a kill."""
    found, chance = Findings(), random.Random(seed)
    expected, seconds = undisturbed(extraction)
    lives = (chance.uniform(0, seconds / 8) for _ in itertools.count())
    while found.kills < n_kills:
        found.same_rows.append(one_extraction(extraction, n_kills, lives, found) == expected)
    return found


def record(name: str, extraction: Extraction, found: Findings) -> dict:
    """Return a line of the table."""
    return {
        "extraction": name,
        "rows": len(extraction.ids),
        "rows_a_step": STEP,
        "kills": found.kills,
        "extractions": found.extractions,
        "finished_rows_lost": found.finished_and_lost,
        "rows_computed": found.rows_computed,
        "rows_computed_twice": found.twice,
        "most_rows_twice_after_a_kill": found.most_twice_a_kill,
        "same_rows_at_the_end": f"{sum(found.same_rows)} of {len(found.same_rows)}",
    }


def main(n_kills: int, names: list[str]) -> list[dict]:
    """Print a record for each extraction, and return them."""
    # Forked processes share the lock of progress bars, and one that is killed keeps it.
    tqdm.set_lock(threading.RLock())
    rows = []
    for name in names:
        extraction = {"writing": writing, "clip": clip}[name]()
        rows.append(record(name, extraction, proof(extraction, n_kills)))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def write(rows: list[dict]) -> None:
    """Write the table, its columns in words."""
    with RESULTS.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow([name.replace("_", " ") for name in rows[0]] + [MACHINE])
        table.writerows([*map(shown, row.values()), machine()] for row in rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(int(sys.argv[1]), sys.argv[2:] or ["writing", "clip"])
    else:
        write(main(100, ["writing", "clip"]))
