"""One file that holds the store and the lock file, to be kept where a machine's end does not reach.

A mounted drive is the place of such a file and not of the store: every look-up opens each shard of
a key, which takes a round trip to the drive, and a shard is whole only once it has been renamed,
which not every mounted drive does in one step.
"""

import hashlib
import json
import os
import re
import uuid
import zipfile
from pathlib import Path

from biaslib.errors import InputError
from biaslib.runtime._errors import first_few
from biaslib.runtime._files import naming
from biaslib.runtime._lock import ChecksumError, Lock
from biaslib.runtime._profile import progress
from biaslib.runtime._store import Store, _write

LOCK = "biaslib-lock.json"
SHARD = re.compile(r"store/(?P<folder>[0-9a-f]{32})/(?P<sha256>[0-9a-f]{64})\.safetensors")
KEY = re.compile(r"store/(?P<folder>[0-9a-f]{32})/key\.json")


class ArchiveError(InputError):
    """A file that is no whole archive; its text names it."""


def archive(path: str | os.PathLike, store: Store | None = None, lock: Lock | None = None) -> int:
    """Write everything that the store holds, and the lock file, into one file.

    Call it again whenever something is worth keeping: it replaces the archive by a whole new one,
    unless the old one holds what would be lost.

    Parameters
    ----------
    path
        The archive, a zip file that is not compressed; on Colab, in a mounted drive.
    store, lock
        ``None`` takes those of the run.

    Returns
    -------
    int
        How many files the archive holds.

    Raises
    ------
    ValueError
        If the store is empty, or if there is a file of that name that is no archive or holds
        something that the store or the lock file lacks.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = Store(folder / "store")
    >>> key = {"model": "clip", "revision": "1f2e", "output": "image"}
    >>> rows = store.rows(key, ["a"], lambda missing: np.ones((1, 2)))
    >>> archive(folder / "kept.zip", store, Lock(folder / "lock.json"))
    2
    """
    store, lock, path = store or Store(), lock or Lock(), Path(path)
    keys = [each for each in store.folder.glob("*/key.json") if each.is_file()]
    files = [each for key in keys for each in [key, *sorted(key.parent.glob("*.safetensors"))]]
    named = {f"store/{each.parent.name}/{each.name}": each for each in sorted(files)}
    if not named:
        raise ArchiveError(
            f"the store {store.folder} is empty, and {path} was not written: restore an archive "
            "first, or set BIASLIB_STORE to the folder of the store"
        )
    if lock.path.is_file():
        named[LOCK] = lock.path
    if os.path.lexists(path):
        _require_kept(path, set(named), lock)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with zipfile.ZipFile(partial, "w") as kept:
            for name, file in progress(named.items(), f"into {path.name}", len(named)):
                kept.write(file, name)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return len(named)


def _require_kept(path: Path, names: set[str], lock: Lock) -> None:
    """Refuse to replace an archive that holds something that would be lost."""
    with _opened(path) as old:
        held = set(old.namelist())
        recorded = _lock_of(path, _content(path, old, LOCK)) if LOCK in held else {}
    lost = sorted(held - names) + sorted(recorded.keys() - lock.entries().keys())
    if lost:
        raise ArchiveError(
            f"{path} holds what is not here ({first_few(lost, 2)}) and was left as it is: restore "
            "it first, or take another name"
        )


def restore(path: str | os.PathLike, store: Store | None = None, lock: Lock | None = None) -> int:
    """Put what an archive holds back into the store and the lock file; what is there stays.

    Parameters
    ----------
    path
        A file that :func:`archive` wrote.
    store, lock
        ``None`` takes those of the run.

    Returns
    -------
    int
        How many files of the archive there were.

    Raises
    ------
    FileNotFoundError
        If there is no such archive.
    ValueError
        If the file is no archive of a store; the message names what is wrong in it.
    ChecksumError
        If a file is damaged, or the lock file here records other files of the same source.
    """
    store, lock = store or Store(), lock or Lock()
    with _opened(path) as kept:
        names = kept.namelist()
        _require_known(path, names)
        if LOCK in names:
            _restore_lock(path, _lock_of(path, _content(path, kept, LOCK)), lock)
        for name in progress(names, f"from {Path(path).name}"):
            if name != LOCK:
                _restore_file(path, name, _content(path, kept, name), store)
    return len(names)


def _opened(path: str | os.PathLike) -> zipfile.ZipFile:
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{path} is not there; archive(path) makes it")
    with naming(path, ArchiveError):
        return zipfile.ZipFile(path)


def _content(path: str | os.PathLike, kept: zipfile.ZipFile, name: str) -> bytes:
    with naming(path, ArchiveError):
        return kept.read(name)


def _require_known(path: str | os.PathLike, names: list[str]) -> None:
    for name in names:
        if not (name == LOCK or SHARD.fullmatch(name) or KEY.fullmatch(name)):
            raise ArchiveError(f"{path} is not an archive of a store: it holds {name!r}")


def _restore_file(path: str | os.PathLike, name: str, data: bytes, store: Store) -> None:
    found, shard = hashlib.sha256(data).hexdigest(), SHARD.fullmatch(name)
    if found != shard["sha256"] if shard else not found.startswith(KEY.fullmatch(name)["folder"]):
        raise ChecksumError(
            f"{path}: {name} does not have the checksum in its name; take an older archive, or "
            "begin without"
        )
    target = store.folder / name.removeprefix("store/")
    target.parent.mkdir(parents=True, exist_ok=True)
    _write(target, data)


def _lock_of(path: str | os.PathLike, data: bytes) -> dict[str, dict]:
    """Return the entries of an archive's lock file."""
    try:
        entries = json.loads(data)
        for entry in entries.values():
            str(entry["revision"]), [file["sha256"] for file in entry["files"].values()]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(f"{path}: {LOCK} in it is damaged ({error!r})") from error
    return entries


def _restore_lock(path: str | os.PathLike, kept: dict[str, dict], lock: Lock) -> None:
    """Add the entries of an archive's lock file to the one here, unless they contradict it."""
    with lock.changing():
        for source, entry in kept.items():
            lock.require_revision(source, entry["revision"])
            for file, recorded in entry["files"].items():
                here = lock.sha256(source, file)
                if here and here != recorded["sha256"]:
                    raise ChecksumError(
                        f"{path} was made with another {file} of {source!r} than {lock.path} "
                        f"records. Move {lock.path.name} aside to go on with the archive's"
                    )
        for source, entry in kept.items():
            lock.write(source, entry["revision"], entry["files"])
