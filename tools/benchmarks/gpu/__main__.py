"""The command: see the package."""

import argparse
import csv
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import torch

import tools.benchmarks.gpu as package
from tools.benchmarks import MACHINE
from tools.benchmarks.gpu import _machine
from tools.benchmarks.gpu._parts import Apart, in_time, steps

RESULTS = Path(__file__).parents[1] / "results"
SECTIONS = ("ceilings", "numerics", "study", "memory", "speed")
LABELS = ("measure", "task", "study", "precision")


def append(path: Path, record: dict[str, Any], machine: str) -> None:
    """Write what a record says behind the rows of a file, one row a number, and show it."""
    labels = [record.get(name, "") for name in LABELS]
    numbers = {name: value for name, value in record.items() if name not in LABELS}
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        if new:
            table.writerow([*LABELS, "quantity", "value", MACHINE])
        table.writerows([*labels, name, value, machine] for name, value in numbers.items())
    print(*filter(None, labels), numbers, flush=True)


def main(arguments: list[str] | None = None, commit: str = "") -> None:
    """Measure, and write rows; end with an error if a part failed."""
    parser = argparse.ArgumentParser(
        description=package.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--seconds", type=float, default=450, help="for all of it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the rows")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("BIASLIB_BOOK", "1")  # No progress bars.
    size = "full" if _machine.on_cuda(chosen.device) else "tiny"
    name, machine = _machine.machine(chosen.device, commit)
    path = chosen.out / f"gpu_{re.sub('[^a-z0-9]+', '_', name.lower())}.csv"
    chosen.out.mkdir(parents=True, exist_ok=True)
    every = enumerate(labels for labels, _ in steps(size, chosen.device, {}))
    wanted = [step for step in every if step[1]["measure"] in chosen.only]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:  # Where a part that is ended leaves its files.
        os.environ["TMPDIR"] = scratch
        for record in in_time(wanted, chosen.seconds, Apart(size, chosen.device)):
            append(path, record, machine)
            failed += "failed" in record
    if failed:
        raise SystemExit(f"{failed} of {len(wanted)} parts failed: {path} says why")


if __name__ == "__main__":
    main()
