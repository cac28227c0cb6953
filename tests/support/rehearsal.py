"""The profile ``paper`` rehearsed: official formats, random weights, invented data, no network.

``make rehearsal`` runs the notebooks of the studies so, from the first line to the last. It shows
that every line runs on the formats that the official files have; it says nothing about the models,
none of which is there.

From the command line, in the folder ``tests``: ``python -m support.rehearsal [notebook ...]``.
"""

import argparse
import contextlib
import dataclasses
import importlib
import os
import pkgutil
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
import support
from nbclient import NotebookClient
from support import repositories
from support.hub import serving

from biaslib.checkpoints.downloads import BY_HAND

TESTS = Path(__file__).parents[1]
NOTEBOOKS = TESTS.parent / "notebooks"
LIMIT = 900
"""Seconds that a notebook may take."""


def write_samples(folder: Path) -> list[str]:
    """Write the sample data of every study, by the ``build`` of each ``rehearsal_*.py`` here."""
    names = sorted(
        each.name
        for each in pkgutil.iter_modules(support.__path__)
        if each.name.startswith("rehearsal_")
    )
    for name in names:
        importlib.import_module(f"support.{name}").build(folder)
    return names


@contextlib.contextmanager
def stage(scratch: Path) -> Iterator[dict[str, str]]:
    """Build hub, cache and data in a scratch folder; give the environment of a run on them.

    No proxy answers, so that nothing beyond this machine can be asked.
    """
    hub, cache, data = (scratch / name for name in ("hub", "cache", "data"))
    repositories.build_all(hub)
    shutil.copytree(hub / BY_HAND, cache / BY_HAND)
    write_samples(data)
    with serving(hub) as running:
        yield {
            "BIASLIB_CACHE": str(cache),
            "BIASLIB_DATA": str(data),
            "BIASLIB_MIRROR": f"{running.address}/files",
            "BIASLIB_LOCK": str(scratch / "biaslib-lock.json"),
            "BIASLIB_PROFILE": "paper",
            "BIASLIB_RUNS": str(scratch / "runs"),
            "BIASLIB_STORE": str(scratch / "store"),
            "CUDA_VISIBLE_DEVICES": "",
            "HF_ENDPOINT": running.address,
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
        }


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a notebook fared."""

    name: str
    seconds: float
    error: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.error or 'ran to its end'} ({self.seconds:.0f} s)"


PLANTED_ONLY = "planted-only"
"""Tag of a cell that is about the planted world, whatever the profile."""


NOT_AS_PUBLISHED, AS_PUBLISHED = 'as_published = run.profile == "planted"', "as_published = True"
"""A setting of study 1, and what a reader makes of it who has the weights and regions for it."""


def as_published(cells: list) -> list:
    """Return the cells with the setting that a reader with all weights and regions chooses."""
    for cell in cells:
        cell.source = cell.source.replace(NOT_AS_PUBLISHED, AS_PUBLISHED)
    return cells


CHECKS = {
    "own_model": (
        "left = result.not_run\n"
        "assert left['reason'].str.contains('grounding').all(), left.to_string()"
    ),
    "study4_captions": "assert found.skipped.empty, found.skipped.to_string()",
}
"""What must hold at the end of a notebook: that nothing was left out which was not expected."""


def without_the_planted_world(cells: list) -> list:
    """Return the cells that are not tagged ``planted-only``."""
    return [cell for cell in cells if PLANTED_ONLY not in cell.metadata.get("tags", [])]


def run(path: Path, environment: dict[str, str], short: bool = False) -> Outcome:
    """Run a notebook in a kernel of its own, in short only what depends on the profile."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = as_published(notebook.cells)
    if short:
        notebook.cells = without_the_planted_world(notebook.cells)
    notebook.cells.append(nbformat.v4.new_code_cell(CHECKS.get(path.stem, "")))
    return executed(path, notebook, environment)


def executed(path: Path, notebook: nbformat.NotebookNode, environment: dict[str, str]) -> Outcome:
    """Run a notebook's cells in a kernel of its own, in the folder of its path."""
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=LIMIT, resources=resources)
    begun, error = time.perf_counter(), ""
    try:
        client.execute(env={**os.environ, **environment})
    except Exception:  # whatever it was, the others run and the report names it
        error = re.sub("\x1b\\[[0-9;]*m", "", traceback.format_exc(limit=0))
    return Outcome(path.stem, time.perf_counter() - begun, error)


def notebooks() -> list[Path]:
    """Return the notebooks that have a profile ``paper``."""
    return [*sorted(NOTEBOOKS.glob("study*.ipynb")), *sorted(NOTEBOOKS.glob("own_model.ipynb"))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named notebooks, or all."""
    parser = argparse.ArgumentParser(prog="python -m support.rehearsal", description=__doc__)
    parser.add_argument(
        "notebook", nargs="*", type=Path, help="all of the studies if none is named"
    )
    chosen = parser.parse_args(arguments).notebook or notebooks()
    chosen = [path if path.is_file() else TESTS.parent / path for path in chosen]
    if missing := [str(path) for path in chosen if not path.is_file()]:
        parser.error(f"{', '.join(missing)} is not there; name files such as {notebooks()[0]}")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch, stage(Path(scratch)) as environment:
        for path in chosen:
            outcome = run(path.resolve(), environment)
            failed += bool(outcome.error)
            print(outcome, flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} notebooks ran to their end in 'paper'")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
