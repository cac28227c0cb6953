"""The command: see the package."""

import argparse
import functools
import json
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

import tools.benchmarks.gpu as package
from tools.benchmarks.gpu import _machine, _numerics, _speed

RESULTS = Path(__file__).parents[1] / "results"

Step = tuple[dict[str, str], Callable[[], Iterable[dict[str, Any]]]]
"""What records of a measurement say of themselves, and what yields them."""


def steps(size: str, device: str) -> Iterator[Step]:
    """Yield all measurements, those of most worth first."""
    ceilings: dict[str, float] = {}
    precisions = _machine.precisions(device)
    for precision in precisions:
        run = functools.partial(_machine.product, size, device, precision, ceilings)
        yield {"measure": "ceilings", "task": "product", "precision": precision}, run
    run = functools.partial(_machine.copies, size, device)
    yield {"measure": "ceilings", "task": "copies"}, run
    for family in _numerics.FAMILIES:
        run = functools.partial(_numerics.measured, family, device)
        yield {"measure": "numerics", "task": family}, run
    for task in ("CLIP ViT-B/32", "VisualBERT"):
        run = functools.partial(_speed.out_of_memory, task, size, device)
        yield {"measure": "memory", "task": task}, run
    yield {"measure": "study", "task": "3"}, functools.partial(_numerics.study, device)
    for task in _speed.TASKS:
        for precision in precisions:
            run = functools.partial(_speed.measured, task, precision, size, device, ceilings)
            yield {"measure": "speed", "task": task, "precision": precision}, run


def in_time(
    planned: Iterable[Step], seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[dict[str, Any]]:
    """Yield the records of the measurements that begin in so many seconds; why, where one stops."""
    began = clock()
    for labels, run in planned:
        if clock() - began > seconds:
            yield labels | {"skipped": "no time was left"}
            continue
        try:
            for record in run():
                yield labels | record | {"at_s": round(clock() - began, 1)}
        except Exception:  # Whatever goes wrong with one measurement, the others have their turn.
            yield labels | {"failed": traceback.format_exc().splitlines()[-6:]}


def append(path: Path, record: dict[str, Any]) -> None:
    """Write a record behind those of a file, and show it; NaN becomes null."""
    line = json.dumps(json.loads(json.dumps(record), parse_constant=lambda _: None))
    with path.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
    print(line, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write records."""
    parser = argparse.ArgumentParser(
        "tools.benchmarks.gpu",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sections = ("ceilings", "numerics", "memory", "study", "speed")
    parser.add_argument("sections", nargs="*", help=f"of: {', '.join(sections)}")
    parser.add_argument("--seconds", type=float, default=420, help="for all of it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the records")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--commit", default="", help="of the code, for the records")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.sections) - set(sections):
        parser.error(f"no section {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    os.environ.setdefault("BIASLIB_BOOK", "1")  # No progress bars.
    size = "full" if _machine.on_cuda(chosen.device) else "tiny"
    machine = _machine.machine(chosen.device, chosen.commit) | {"size": size}
    name = re.sub("[^a-z0-9]+", "_", machine["name"].lower())
    chosen.out.mkdir(parents=True, exist_ok=True)
    write = functools.partial(append, chosen.out / f"gpu_{name}.jsonl")
    write(machine)
    every = steps(size, chosen.device)
    wanted = (step for step in every if step[0]["measure"] in (chosen.sections or sections))
    for record in in_time(wanted, chosen.seconds):
        write(record)


if __name__ == "__main__":
    main()
