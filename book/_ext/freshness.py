"""Sphinx extension: every page shows what the present packages compute, and only old pages run.

myst-nb keeps executed notebooks in a cache that is keyed on their cells alone. The stamp at the end
of an executed notebook lists the files of our packages that it used, the libraries that compute and
draw, and the profile, each with a digest or version (``biaslib.runtime``). Before a build, every
execution whose list does not match what is there is dropped from the cache, so that myst-nb runs
the notebook again, and Sphinx reads its page again. A notebook without a stamp runs every time.

Notebooks that have to run do so side by side before Sphinx reads the first page. One that fails is
left to myst-nb, which runs it again and reports the cell.
"""

import hashlib
import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
LOGGER = logging.getLogger(__name__)
MOST = 4
"""Notebooks at a time; each may take some gigabytes of memory."""
THREADS = "OMP_NUM_THREADS"


def setup(app):
    os.environ["BIASLIB_BOOK"] = "1"
    put_packages_first()
    app.connect("env-get-outdated", outdated)
    # Sphinx reads and writes every page again when this number changes: when an extension does.
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    version = int(hashlib.sha256(code).hexdigest()[:8], 16)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": version}


def put_packages_first() -> None:
    """Let Sphinx and the kernels it starts import the packages of this repository."""
    if not (ROOT / "biaslib").is_dir():
        return
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [path for path in inherited if path and path != str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *others])
    sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT))]
    importlib.invalidate_caches()


def outdated(app, env, added, changed, removed) -> list[str]:
    """Drop the executions that are out of date; return the pages to read again.

    A page is also read again if it shows another execution than the one in the cache, as after a
    build that was stopped.
    """
    config = env.mystnb_config
    cache = get_cache(config.execution_cache_path)
    paths = {name: Path(env.doc2path(name)) for name in sorted(env.found_docs)}
    books = {name: path for name, path in paths.items() if path.suffix == ".ipynb"}
    old = [name for name in books if not is_fresh(app.builder, name, books[name], cache)]
    if config.execution_mode == "cache":
        run_together([books[name] for name in old], cache, config.execution_timeout)
    return old


def is_fresh(builder, name: str, path: Path, cache) -> bool:
    """Tell whether a page shows what its notebook computes; drop an execution that does not."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    if all(cell.cell_type != "code" for cell in notebook.cells):
        return True
    try:
        record = cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    used = used_by(cache.get_cache_bundle(record.pk).nb)
    if not is_current(used):
        cache.remove_cache(record.pk)
        return False
    return builder.format != "html" or shows(Path(builder.get_outfilename(name)), used)


def run_together(paths: list[Path], cache, timeout: int) -> None:
    """Run the notebooks that the cache lacks, several at a time, and put them into the cache."""
    waiting = [path for path in paths if not is_cached(path, cache)]
    n = at_once(len(waiting))
    if n < 2:
        return
    threads = os.environ.get(THREADS)
    os.environ[THREADS] = threads or str(max(1, (os.cpu_count() or 1) // n))
    LOGGER.info("running %d notebooks, %d at a time", len(waiting), n)
    try:
        with ThreadPoolExecutor(n) as pool:
            running = {pool.submit(executed, path, timeout): path for path in waiting}
            for number, done in enumerate(as_completed(running), 1):
                path, result = running[done], done.result()
                said = "failed; it will run again" if result.err else f"ran in {result.time:.0f} s"
                LOGGER.info("[%d of %d] %s %s", number, len(waiting), path.stem, said)
                if not result.err:
                    keep(path, result, cache)
    finally:
        if threads is None:
            del os.environ[THREADS]


def keep(path: Path, result, cache) -> None:
    """Put the result of running a notebook into the cache, as myst-nb does."""
    bundle = CacheBundleIn(result.nb, str(path), data={"execution_seconds": result.time})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def at_once(n_waiting: int) -> int:
    """Return how many notebooks run at a time: in `paper` one, which has the card to itself."""
    if os.environ.get("BIASLIB_PROFILE") == "paper":
        return 1
    return min(n_waiting, os.cpu_count() or 1, MOST)


def is_cached(path: Path, cache) -> bool:
    try:
        cache.match_cache_notebook(nbformat.read(path, nbformat.NO_CONVERT))
    except KeyError:
        return False
    return True


def executed(path: Path, timeout: int):
    """Return the result of running a notebook in its folder."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    return single_nb_execution(notebook, str(path.parent), timeout, allow_errors=False)


def used_by(notebook) -> dict:
    """Return what an executed notebook's last stamp says it used, or nothing."""
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    stamps = [each.get("metadata", {}).get(runtime().USED) for each in outputs]
    return next(filter(None, reversed(stamps)), {})


def is_current(used: dict) -> bool:
    """Tell whether files and settings are those of an earlier stamp; of nothing they are not."""
    return bool(used) and runtime().used(used["files"]) == used


def runtime():
    """Return ``biaslib.runtime`` of the repository, which :func:`setup` has put first."""
    return importlib.import_module("biaslib.runtime")


def shows(page: Path, used: dict) -> bool:
    """Tell whether a built page has the stamp of an execution."""
    return page.is_file() and f'data-source="{used["source"]}"' in page.read_text(encoding="utf-8")
