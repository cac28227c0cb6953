"""The command: see the package."""

import argparse
import importlib.metadata
import json
import os
import re
import sys
import tempfile
import time
import tomllib
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tools.benchmarks.gpu as package
from tools.benchmarks.gpu import _limits, _machine, _numerics, _schedule, _speed, _studies

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "tools" / "benchmarks" / "results"


def steps(size: str, device: str) -> list[_schedule.Step]:
    """Return all steps, section by section."""
    ceilings: dict[str, float] = {}
    return [
        *_machine.steps(size, device, ceilings),
        *_numerics.steps(size, device),
        *_speed.steps(size, device, ceilings),
        *_limits.memory_steps(size, device),
        *_limits.sync_steps(size, device),
        *_studies.steps(size, device),
    ]


def appending(path: Path) -> Callable[[dict[str, Any]], None]:
    """Return what writes a record behind those of a file, and shows it; NaN becomes null."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def write(record: dict[str, Any]) -> None:
        line = json.dumps(json.loads(json.dumps(record), parse_constant=lambda _: None))
        with path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
        print(line, flush=True)

    return write


def file_name(record: dict[str, Any]) -> str:
    """Return the name of the file of a machine's records.

    Examples
    --------
    >>> file_name({"name": "NVIDIA H100 80GB HBM3"})
    'gpu_nvidia_h100_80gb_hbm3.jsonl'
    """
    return f"gpu_{re.sub('[^a-z0-9]+', '_', record['name'].lower())}.jsonl"


def unpacked(folder: Path) -> None:
    """Have Python find the wheels of a folder, which are of Python alone."""
    place = tempfile.mkdtemp()
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(place)
    sys.path.append(place)


def installed() -> None:
    """Have the package find its profiles where it was copied and not installed."""
    if importlib.metadata.entry_points(group="biaslib.profiles"):
        return
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = project["entry-points"]["biaslib.profiles"]
    place = Path(tempfile.mkdtemp())
    (place / "biaslib.dist-info").mkdir()
    told = "".join(f"{name} = {module}\n" for name, module in points.items())
    (place / "biaslib.dist-info" / "entry_points.txt").write_text(f"[biaslib.profiles]\n{told}")
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n"
    (place / "biaslib.dist-info" / "METADATA").write_text(head)
    sys.path.append(str(place))


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write records."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(
        "tools.benchmarks.gpu",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", help=f"of: {', '.join(_schedule.SHARES)}")
    parser.add_argument("--seconds", type=float, default=420, help="for all of it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the records")
    parser.add_argument("--size", choices=("full", "tiny"))
    parser.add_argument("--device", default=device)
    parser.add_argument("--commit", help="of the code, where git is not there")
    parser.add_argument("--wheels", type=Path, help="folder of wheels that are to be found")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.sections) - set(_schedule.SHARES):
        parser.error(f"no section {', '.join(sorted(unknown))}")
    if chosen.wheels:
        unpacked(chosen.wheels)
    installed()
    warnings.simplefilter("ignore")
    os.environ.setdefault("BIASLIB_BOOK", "1")  # No progress bars.
    size = chosen.size or ("full" if _machine.on_cuda(chosen.device) else "tiny")
    first = _machine.machine(chosen.device, chosen.commit) | {"size": size}
    write = appending(chosen.out / file_name(first))
    write(first)
    wanted = [
        each
        for each in steps(size, chosen.device)
        if each.section in (chosen.sections or _schedule.SHARES)
    ]
    began = time.monotonic()
    for record in _schedule.in_time(wanted, chosen.seconds, time.monotonic):
        write(record | {"at_s": round(time.monotonic() - began, 1)})


if __name__ == "__main__":
    main()
