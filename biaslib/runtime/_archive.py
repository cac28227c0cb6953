"""A copy of the store and the lock file, to be kept where a machine's end does not reach.

A mounted drive is the place of such a copy and not of the store, which is written in many small
steps. A copy is written beside itself and then renamed.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from biaslib.errors import InputError
from biaslib.runtime._errors import first_few
from biaslib.runtime._lock import ChecksumError, Lock
from biaslib.runtime._store import Store, connected

LOCK = "biaslib-lock.json"

TABLES = {("table", "keys"), ("table", "rows"), ("table", "files")}
"""What an archive holds."""

ADD = """
insert or ignore into keys (name, parts) select name, parts from other.keys;
insert or ignore into rows select mine.id, item, kind, crc, data from other.rows
  join other.keys as theirs on theirs.id = other.rows.key
  join main.keys as mine on mine.name = theirs.name;
"""


class ArchiveError(InputError):
    """A file that is no whole archive; its text names it."""


def archive(path: str | os.PathLike, store: Store | None = None, lock: Lock | None = None) -> int:
    """Add everything that the store and the lock file hold to an archive; what it holds stays.

    Processes may go on writing into the store meanwhile: the copy is that of one moment.

    Parameters
    ----------
    path
        The archive, an SQLite file; on Colab, in a mounted drive.
    store, lock
        ``None`` takes those of the run.

    Returns
    -------
    int
        How many rows the archive holds.

    Raises
    ------
    ValueError
        If there is nothing to keep, or a file of that name that is no archive.
    ChecksumError
        If the archive records other files of the same source than the lock file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = Store(folder / "store")
    >>> key = {"model": "clip", "revision": "1f2e", "output": "image"}
    >>> rows = store.rows(key, ["a"], lambda missing: np.ones((1, 2)))
    >>> archive(folder / "kept.sqlite", store, Lock(folder / "lock.json"))
    1
    """
    store, lock, path = store or Store(), lock or Lock(), Path(path)
    entries = lock.entries()
    if os.path.lexists(path):
        entries = _together(path, _recorded(path), lock)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            count = _copied(store, copy, path if os.path.lexists(path) else None, entries)
            if not count:
                raise ArchiveError(
                    f"the store {store.folder} is empty, and {path} was not written: set "
                    "BIASLIB_STORE to the folder of the store"
                )
            shutil.copyfile(copy, partial)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return count


def _copied(store: Store, copy: Path, old: Path | None, entries: dict[str, dict]) -> int:
    """Write what the store and an older archive hold, and the lock's entries; count the rows."""
    with contextlib.closing(connected(copy)) as tables:
        store.look(lambda stored: stored.backup(tables))
        if old is not None:
            _add(tables, old)
        tables.execute("create table if not exists files (name text primary key, content text)")
        tables.execute("insert or replace into files values (?, ?)", [LOCK, json.dumps(entries)])
        return tables.execute("select count(*) from rows").fetchone()[0]


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
        How many rows of the archive there were.

    Raises
    ------
    FileNotFoundError
        If there is no such archive.
    ValueError
        If the file is no archive of a store, or damaged.
    ChecksumError
        If the lock file here records other files of the same source.
    """
    store, lock, path = store or Store(), lock or Lock(), Path(path)
    kept = _recorded(path)
    _together(path, kept, lock)
    with lock.changing():
        for source, entry in kept.items():
            lock.write(source, entry["revision"], entry["files"])

    def add(tables: sqlite3.Connection) -> int:
        _add(tables, path)
        return _counted(path)

    return store.look(add)


def _add(tables: sqlite3.Connection, path: Path) -> None:
    """Add the rows of another file, in one transaction."""
    tables.execute("attach ? as other", [_read_only(path)])
    try:
        tables.executescript(f"begin immediate; {ADD} commit;")
    finally:
        if tables.in_transaction:
            tables.rollback()
        tables.execute("detach other")


def _read_only(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an archive for reading; an error says what it is instead."""
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{path} is not there; archive(path) makes it")
    try:
        with contextlib.closing(sqlite3.connect(_read_only(path), uri=True)) as kept:
            yield kept
    except sqlite3.DatabaseError as error:
        raise ArchiveError(
            f"{path} cannot be read as an archive ({error}). It is damaged or of another kind: "
            "take an older one, or another name"
        ) from error


def _recorded(path: Path) -> dict[str, dict]:
    """Return the lock's entries in an archive, which is looked at whole."""
    with _opened(path) as kept:
        found = set(kept.execute("select type, name from sqlite_master where sql <> ''"))
        if found != TABLES:
            held = first_few([f"the {kind} {name}" for kind, name in sorted(found)]) or "nothing"
            raise ArchiveError(f"{path} is not an archive of a store: it holds {held}")
        if (told := kept.execute("pragma quick_check(1)").fetchone()) != ("ok",):
            raise sqlite3.DatabaseError(told[0])
        content = dict(kept.execute("select name, content from files")).get(LOCK)
    try:
        entries = json.loads(content)
        for entry in entries.values():
            str(entry["revision"]), [file["sha256"] for file in entry["files"].values()]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(f"{path}: {LOCK} in it is damaged ({error!r})") from error
    return entries


def _counted(path: Path) -> int:
    with _opened(path) as kept:
        return kept.execute("select count(*) from rows").fetchone()[0]


def _together(path: Path, kept: dict[str, dict], lock: Lock) -> dict[str, dict]:
    """Return the entries of an archive and of the lock file here, unless they contradict."""
    entries = {source: dict(entry) for source, entry in lock.entries().items()}
    for source, entry in kept.items():
        lock.require_revision(source, entry["revision"])
        here = entries.setdefault(source, {**entry, "files": {}})
        for file, recorded in entry["files"].items():
            known = here["files"].get(file, recorded)
            if known["sha256"] != recorded["sha256"]:
                raise ChecksumError(
                    f"{path} was made with another {file} of {source!r} than {lock.path} records. "
                    f"Move {lock.path.name} aside to go on with the archive's"
                )
        here["files"] = {**entry["files"], **here["files"]}
    return entries
