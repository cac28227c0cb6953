"""Say in words whether this machine can build and run the book: ``make check``.

Python, disk, memory, browser, GPU, and the versions that are installed against those that were
tested. It needs nothing but Python. The exit status is 1 if something is missing without which the
book cannot be built. ``--python`` looks at Python alone, and prints nothing if it fits: so the
Makefile looks for one.

Whoever has an old Python is to read what to do, and no traceback: all of it runs on Python 3.6,
which knows neither ``list[str]`` nor ``str | None`` outside quotation marks.
"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parents[1]
OK, NOTE, FAILS = "ok", "note", "FAILS"
FIRST_PYTHON, TESTED_PYTHON, LAST_PYTHON = (3, 11, 5), (3, 13), (3, 14)
"""The first on which every pinned package runs, the last that was tested, and the last for which
every pinned package has a wheel."""

PARTS = ("ensurepip", "venv", "_ctypes", "_sqlite3", "_ssl")
"""Of the standard library, what a system's or one's own build of Python may lack."""

GET_PYTHON = (
    "`apt install python3.12 python3.12-venv` where the system has that version, `brew install "
    "python@3.12`, `pyenv install 3.12`, `uv python install 3.12` or "
    "https://www.python.org/downloads; one that is not found by itself is named with "
    "PYTHON=/path/to/python3.12"
)
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


def python(version: Tuple[int, ...], missing: Sequence[str] = ()) -> Finding:
    """Judge a version of Python, and what it lacks of its standard library."""
    name, first, last = (".".join(map(str, some)) for some in (version, FIRST_PYTHON, LAST_PYTHON))
    if version < FIRST_PYTHON or version[:2] > LAST_PYTHON:
        return Finding(FAILS, f"Python {name}: the book takes {first} to {last}. {GET_PYTHON}")
    if missing:
        debian = f"`apt install python{version[0]}.{version[1]}-venv` on Debian and Ubuntu"
        words = f"Python {name} lacks {', '.join(missing)}: {debian}, or another one: {GET_PYTHON}"
        return Finding(FAILS, words)
    if version[:2] > TESTED_PYTHON:
        return Finding(NOTE, f"Python {name}: every package has a file for it; not tested")
    return Finding(OK, f"Python {name}")


def this_python() -> Finding:
    """Judge the Python that runs this."""
    missing = [name for name in PARTS if importlib.util.find_spec(name) is None]
    return python(sys.version_info[:3], missing)


def disk(free: int, installed: bool) -> Finding:
    """Judge the free disk, with or without an environment that is there already."""
    what = "build" if installed else "install"
    words = f"{free / GB:.1f} GB free on the disk; to {what} takes about {NEEDED[what] // GB} GB"
    return Finding(OK if free >= NEEDED[what] else FAILS, words)


def memory(total: Optional[int]) -> Finding:
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


def gpu(listed: Optional[str]) -> Finding:
    """Judge the GPU, from what ``nvidia-smi`` lists."""
    if listed:
        return Finding(OK, f"GPU: {listed}")
    return Finding(
        NOTE,
        "no NVIDIA GPU: the profile 'planted' needs none and takes minutes, and `make book "
        "TORCH=cpu` installs PyTorch without CUDA, a third of the size; 'paper' would take "
        "days on a CPU. On Colab: Runtime, Change runtime type, T4 GPU",
    )


def tested(requirements: str) -> Dict[str, str]:
    """Return the versions that the book was tested with, by the name of the package.

    >>> tested("numpy==2.1.0 \\\\\\n    --hash=sha256:00")
    {'numpy': '2.1.0'}
    """
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", requirements, re.MULTILINE)
    return {name.lower(): version for name, version in found}


def versions(installed: Dict[str, str], wanted: Dict[str, str]) -> Finding:
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


def plain(name: str) -> str:
    """Return a package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_versions() -> Dict[str, str]:
    """Return what is installed in the environment that runs this."""
    try:
        from importlib.metadata import distributions
    except ImportError:  # before Python 3.8, for which nothing can be installed
        return {}
    return {plain(package.metadata["Name"]): package.version for package in distributions()}


def total_memory() -> Optional[int]:
    """Return the bytes of memory, where the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def listed_gpu() -> Optional[str]:
    """Return the names of NVIDIA's cards; None where there are none, or no driver."""
    if not shutil.which("nvidia-smi"):
        return None
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        listed = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=30)
    except subprocess.CalledProcessError:
        return None
    return "; ".join(listed.decode().split("\n")).strip("; ")


def findings() -> Iterator[Finding]:
    """Yield everything that is looked at."""
    packages = installed_versions()
    pins = tested((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    yield this_python()
    yield Finding(OK, f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores")
    yield disk(shutil.disk_usage(ROOT).free, "torch" in packages)
    yield memory(total_memory())
    yield versions(packages, {plain(name): version for name, version in pins.items()})
    yield browser()
    yield gpu(listed_gpu())


def main(options: Sequence[str] = ()) -> int:
    """Print what was found; return the exit status."""
    if "--python" in options:
        found = [finding for finding in [this_python()] if finding.state == FAILS]
    else:
        found = list(findings())
    for state, words in found:
        print(f"{state:>5}  {words}")
    failed = sum(state == FAILS for state, _ in found)
    if "--python" not in options:
        print("== The book can be built here" if not failed else f"== {failed} to mend first")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
