"""Say in words whether this machine can build and run the book: ``make check``.

Python, disk, memory, browser, GPU, and the versions that are installed against those that were
tested. It needs nothing but Python. The exit status is 1 if something is missing without which the
book cannot be built.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OK, NOTE, FAILS = "ok", "note", "FAILS"
LEAST_PYTHON = (3, 10)
TESTED_PYTHONS = ((3, 11), (3, 12))
GB = 10**9
NEEDED = {"install": 9 * GB, "build": 2 * GB}
"""Free disk: for the environment and a build, and for a build alone."""

MEMORY = 4 * GB
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAIN = ("numpy", "pandas", "torch", "transformers", "matplotlib", "jupyter-book")


class Finding(NamedTuple):
    """What was found, and whether it will do."""

    state: str
    words: str


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Judge the version of Python that runs this."""
    name = ".".join(map(str, version))
    if version < LEAST_PYTHON:
        return Finding(FAILS, f"Python {name}: 3.10 is the least; `make book` takes 3.11 or 3.12")
    if version[:2] not in TESTED_PYTHONS:
        return Finding(NOTE, f"Python {name}: the package runs; `make book` takes 3.11 or 3.12")
    return Finding(OK, f"Python {name}")


def disk(free: int, installed: bool) -> Finding:
    """Judge the free disk, with or without an environment that is there already."""
    what = "build" if installed else "install"
    words = f"{free / GB:.1f} GB free on the disk; to {what} takes about {NEEDED[what] // GB} GB"
    return Finding(OK if free >= NEEDED[what] else FAILS, words)


def memory(total: int | None) -> Finding:
    """Judge the memory of the machine."""
    if total is None:
        return Finding(NOTE, "memory: this system does not say how much there is")
    words = f"{total / GB:.0f} GB of memory"
    if total < MEMORY:
        return Finding(NOTE, f"{words}: a notebook takes up to 2 GB, and several run at a time")
    return Finding(OK, words)


def browser() -> Finding:
    """Look for a browser, which only the tests of the site need."""
    named = os.environ.get("CHROMIUM")
    there = [named] if named and Path(named).exists() else map(shutil.which, BROWSERS)
    path = next(filter(None, there), None)
    if path:
        return Finding(OK, f"browser for the tests of the site: {path}")
    return Finding(NOTE, "no Chromium: the book can be built, the tests of its pages are skipped")


def gpu(listed: str | None) -> Finding:
    """Judge the GPU, from what ``nvidia-smi`` lists."""
    if listed:
        return Finding(OK, f"GPU: {listed}")
    return Finding(
        NOTE,
        "no NVIDIA GPU: the profile 'planted' needs none and takes minutes, and `make book "
        "TORCH=cpu` installs PyTorch without CUDA, a third of the size; 'paper' would take "
        "days on a CPU. On Colab: Runtime, Change runtime type, T4 GPU",
    )


def tested(requirements: str) -> dict[str, str]:
    """Return the versions that the book was tested with, by the name of the package.

    >>> tested("numpy==2.1.0 \\\\\\n    --hash=sha256:00")
    {'numpy': '2.1.0'}
    """
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", requirements, re.MULTILINE)
    return {name.lower(): version for name, version in found}


def versions(installed: dict[str, str], wanted: dict[str, str]) -> Finding:
    """Compare what is installed with what was tested."""
    missing = [name for name in MAIN if name not in installed]
    if missing:
        return Finding(NOTE, f"not installed: {', '.join(missing)}; `make install` brings them")
    other = [
        f"{name} {installed[name]} (tested: {version})"
        for name, version in wanted.items()
        if name in installed and installed[name].partition("+")[0] != version
    ]
    if not other:
        return Finding(OK, f"all {len(wanted)} packages have the versions that were tested")
    few = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
    return Finding(NOTE, f"{len(other)} packages have other versions: {few}")


def installed_versions() -> dict[str, str]:
    """Return what is installed in the environment that runs this."""
    found = importlib.metadata.distributions()
    return {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each.version for each in found}


def total_memory() -> int | None:
    """Return the bytes of memory, where the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def listed_gpu() -> str | None:
    """Return the names of NVIDIA's cards; None where there are none, or no driver."""
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return "; ".join(done.stdout.split("\n")).strip("; ") if done.returncode == 0 else None


def findings() -> Iterator[Finding]:
    """Yield everything that is looked at."""
    packages = installed_versions()
    pins = tested((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    yield python()
    yield Finding(OK, f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores")
    yield disk(shutil.disk_usage(ROOT).free, "torch" in packages)
    yield memory(total_memory())
    yield versions(packages, {re.sub(r"[-_.]+", "-", name): v for name, v in pins.items()})
    yield browser()
    yield gpu(listed_gpu())


def main() -> int:
    """Print what was found; return the exit status."""
    found = list(findings())
    for state, words in found:
        print(f"{state:>5}  {words}")
    failed = sum(state == FAILS for state, _ in found)
    print("== The book can be built here" if not failed else f"== {failed} to mend first")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
