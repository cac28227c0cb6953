"""Count pronouns beside the whole taxonomy in 10 million captions, and beside single words only.

Run as ``python -m tools.benchmarks.captions [captions]``. The captions are drawn: 4 to 17 words,
most of them ordinary, 3% from the taxonomy, 1% pronouns, with marks between them; they are written
in four parquet files of LAION's layout, which takes a few minutes and is not timed. Wall-clock
seconds depend on what else runs; processor seconds (user and system, all threads) much less. Prints
one JSON record.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from biaslib import stimuli
from biaslib.datasets import captions
from biaslib.stimuli.pool import word_pool

CAPTIONS = 10_000_000
PARTS, ROWS_AT_ONCE = 4, 500_000
THREADS = 2
FILLERS = ("the", "of", "a", "in", "with", "for", "|", "2019", "photo", "by", "at", "New", "Free")
SHARES = {"pool": 0.62, "taxonomy": 0.03, "fillers": 0.34, "pronouns": 0.01}


def vocabulary() -> tuple[np.ndarray, np.ndarray]:
    """Return words and how frequent each is."""
    pronouns = [word for group in captions.PRONOUNS.values() for word in group]
    lists = (word_pool()["word"], stimuli.taxonomy("sobit")["word"].unique(), FILLERS, pronouns)
    words = np.concatenate([np.asarray(each, dtype=object) for each in lists])
    pairs = zip(SHARES.values(), lists, strict=True)
    return words, np.concatenate([np.full(len(each), share / len(each)) for share, each in pairs])


def drawn(n: int, rng: np.random.Generator) -> list[str]:
    """Return n captions."""
    words, shares = vocabulary()
    ends = np.cumsum(rng.integers(4, 18, n))
    chosen = words[rng.choice(len(words), ends[-1], p=shares)]
    return [" ".join(part) + "." for part in np.split(chosen, ends[:-1])]


def write(folder: Path, n: int) -> None:
    """Write a corpus in four files."""
    rng = np.random.default_rng(0)
    for part in range(PARTS):
        writer, left = None, n // PARTS
        while left:
            rows = min(left, ROWS_AT_ONCE)
            table = pyarrow.table({"SAMPLE_ID": np.arange(rows), "TEXT": drawn(rows, rng)})
            path = folder / f"part-{part:05d}.parquet"
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
            left -= rows
        writer.close()


def processor_seconds() -> float:
    """Return what this process has used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(folder: Path) -> dict:
    """Return one record of the count of the whole taxonomy."""
    words = stimuli.taxonomy("sobit")["word"].unique().tolist()
    start, used = time.perf_counter(), processor_seconds()
    counts = captions.group_counts(folder, words, threads=THREADS)
    wall, used = time.perf_counter() - start, processor_seconds() - used
    return {
        "measure": "time",
        "captions": counts.attrs["rows"],
        "entries": len(counts),
        "of_several_words": sum(" " in captions.normalised(word) for word in words),
        "threads": THREADS,
        "wall_seconds": round(wall, 1),
        "processor_seconds": round(used, 1),
        "peak_GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "load_average": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Write a corpus in a process of its own, whose memory does not count, and measure."""
    if len(sys.argv) > 2:
        print(json.dumps(measured(Path(sys.argv[2]))))
        return
    n = int(sys.argv[1]) if len(sys.argv) > 1 else CAPTIONS
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n)
        os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", __spec__.name, str(n), folder])


if __name__ == "__main__":
    main()
