"""Run the benchmarks of this folder and write their records to ``tools/benchmarks/results``.

``python -m tools.benchmarks`` runs all, ``python -m tools.benchmarks kills encoders`` those named.
Each row says on which machine it was measured. ``python -m tools.benchmarks gpu`` is for a machine
with a card and not among all; nor is ``python -m tools.benchmarks full_size [family ...]``, for its
memory.
"""

import csv
import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.benchmarks import MACHINE, head, machine, shown

FOLDER = Path(__file__).parent
NAMES = (
    "permutation",
    "caption_association",
    "bootstrap",
    "encoders",
    "overhead",
    "audit",
    "kills",
    "detector",
    "captions",
)
ALONE = {
    "full_size": "tools.benchmarks.full_size",
    "gpu": "tools.benchmarks.gpu.__main__",
}
"""Those with options and files of their own."""


def records(name: str) -> list[dict]:
    """Run one benchmark in a process of its own; return what it printed, and show it."""
    found = []
    command = [sys.executable, "-m", f"tools.benchmarks.{name}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parent) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            found.append(json.loads(line))
    if process.returncode:
        raise SystemExit(f"tools.benchmarks.{name} failed")
    return found


def write(name: str, rows: list[dict]) -> None:
    """Write one table for each measure of a benchmark."""
    for measure in dict.fromkeys(row["measure"] for row in rows):
        chosen = [row for row in rows if row["measure"] == measure]
        chosen = [row | {MACHINE: machine()} for row in chosen]
        columns = dict.fromkeys(key for row in chosen for key in row if key != "measure")
        path = FOLDER / "results" / f"{name}_{measure}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream)
            table.writerow([head(column) for column in columns])
            table.writerows([[shown(row.get(column, "")) for column in columns] for row in chosen])


def main(names: Sequence[str] = NAMES) -> None:
    """Run benchmarks, and write their tables."""
    if names[0] in ALONE:
        return importlib.import_module(ALONE[names[0]]).main(list(names[1:]))
    if unknown := set(names) - set(NAMES):
        raise SystemExit(
            f"unknown benchmarks {', '.join(unknown)}; known: {', '.join((*NAMES, *ALONE))}"
        )
    (FOLDER / "results").mkdir(exist_ok=True)
    for name in names:
        print(f"== {name}", flush=True)
        write(name, records(name))


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
