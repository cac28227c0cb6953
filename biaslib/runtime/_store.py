"""The store of what models compute: what was computed once is never computed again.

It is one SQLite file. Rows are added in transactions, a step behind those that are computed, so
that a process that is killed loses two steps at most, and any number of processes may use it at
once. Every row carries a checksum of itself, its item and its key.
"""

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from biaslib.errors import InputError
from biaslib.runtime._files import naming
from biaslib.runtime._lock import one_at_a_time
from biaslib.runtime._profile import progress

NAME = "store.sqlite"

SCHEMA = """
begin;
create table if not exists keys (id integer primary key, name text unique not null, parts text);
create table if not exists rows (
  key integer not null, item blob not null, kind text not null, crc integer not null,
  data blob not null, primary key (key, item));
commit;
"""

SELECT = """
select cast(kind as blob), crc, cast(data as blob) from rows join keys on key = id
  where name = ? and item = ?
"""

INSERT = "insert or replace into rows select id, ?, ?, ?, ? from keys where name = ?"

ADD = """
insert or ignore into rows select mine.id, item, kind, crc, data from other.rows
  join other.keys as theirs on theirs.id = other.rows.key
  join main.keys as mine on mine.name = theirs.name
  where crc = checksum(cast(theirs.name as blob), cast(kind as blob), cast(item as blob),
    cast(data as blob))
"""

REQUIRED = ("model", "revision", "output")
"""What every key says; without a revision, other weights would be taken for the same."""

EVERY = 300.0
"""Seconds between two copies into ``BIASLIB_ARCHIVE``; ten times a copy's own, if that is more."""

PATIENCE = 600
"""Seconds for which a process waits while others write."""

BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file can raise: its message quotes what it cannot read."""

Answer = TypeVar("Answer")


class Store:
    """Rows of numbers on disk, one for each item that a model has encoded, shared by all studies.

    A run that is killed at any moment loses the rows that it was computing, and those that were
    being written meanwhile; one that an error or an interrupt ends, the former alone. Two processes
    may use a store at once; if they lack the same rows, both compute them. Damaged rows are
    computed again, and a damaged file is renamed and begun anew, each with a warning.

    Where the environment variable ``BIASLIB_ARCHIVE`` names a file, on a mounted drive for example,
    what is computed is added to that archive every few minutes, and when the process ends by itself
    (:meth:`archive`).

    Parameters
    ----------
    folder
        Where it is: on this machine, not on a mounted drive. None takes the environment variable
        ``BIASLIB_STORE``, or ``biaslib`` in the user's cache folder.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> key = {"model": "clip", "revision": "1f2e", "output": "image", "size": 224}
    >>> store.rows(key, ["a", "b", "a"], lambda which: np.array(which)[:, None] * 10).tolist()
    [[0], [10], [0]]
    >>> store.rows(key, ["b", "c"], lambda which: np.array([[7]])).tolist()
    [[10], [7]]
    """

    # When what is computed was last added to BIASLIB_ARCHIVE, or the run began.
    archived = time.monotonic()

    spacing = EVERY
    at_end: ClassVar[set[Path]] = set()
    """The folders whose rows are added when the process ends."""

    def __init__(self, folder: str | os.PathLike | None = None) -> None:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = folder or os.environ.get("BIASLIB_STORE") or Path(caches) / "biaslib"
        self.folder = Path(chosen).expanduser()
        self.path = self.folder / NAME

    def rows(
        self,
        key: dict[str, Any],
        ids: Sequence[str],
        compute: Callable[[list[int]], np.ndarray],
        shard_size: int = 256,
    ) -> np.ndarray:
        """Return one row an id, and compute those that are not there yet.

        Parameters
        ----------
        key
            What the rows are, as JSON can write it: ``model``, ``revision``, ``output``, and every
            option on which they depend (level, pooling, layers, precision, size ...).
        ids
            n names of items. Name files by a hash of their content, as
            :attr:`biaslib.pictures.images.Pictures.ids` does, and texts by themselves.
        compute
            Takes the places in ``ids`` of m items, and returns their rows, (m, ...). It is called
            for at most ``shard_size`` missing items at a time, each once, in the order of ``ids``,
            while the rows before are written.
        shard_size
            Items a call: a kill may lose two calls'.

        Returns
        -------
        numpy.ndarray
            (n, ...).

        Raises
        ------
        TypeError
            If an id is no string, or JSON cannot write the key.
        ValueError
            If there are no ids, the key lacks a part, or rows differ in shape or type from those
            that are stored under the same key.
        OSError
            If the store cannot be read or written.
        """
        if not len(ids):
            raise ValueError("there are no ids: nothing to look up or compute")
        (name, parts), digests = _named(key), [_digest(each) for each in ids]
        first = _first_places(digests)
        table, missing = self._read(name, parts, first, len(ids))
        label = f"{key['model']}, {key['output']}: {len(missing):,} to compute"
        written = None
        with ThreadPoolExecutor(1) as writer:  # which, left by an error, first writes what it has
            for start in progress(range(0, len(missing), shard_size), label):
                which = missing[start : start + shard_size]
                rows = np.ascontiguousarray(compute(which))
                if len(rows) != len(which):
                    raise ValueError(
                        f"{len(which)} rows were to be computed, and {len(rows)} came back"
                    )
                table = _filled(table, len(ids), which, rows, parts)
                items = [digests[at] for at in which]
                before, written = written, writer.submit(self._write, name, parts, items, rows)
                if before:
                    before.result()
            if written:
                written.result()
        for at, digest in enumerate(digests):
            if at != first[digest]:
                table[at] = table[first[digest]]
        return table

    def missing(self, key: dict[str, Any], ids: Sequence[str]) -> list[int]:
        """Return the places of the ids that have no row yet, each id once: to share them out.

        Examples
        --------
        >>> import tempfile
        >>> store = Store(tempfile.mkdtemp())
        >>> key = {"model": "clip", "revision": "1f2e", "output": "image"}
        >>> _ = store.rows(key, ["b"], lambda which: np.array([[7]]))
        >>> store.missing(key, ["a", "b", "c", "a"])
        [0, 2]
        """
        select = "select item from rows join keys on key = id where name = ?"
        name, _ = _named(key)
        stored = set(self.transaction(lambda tables: tables.execute(select, [name]).fetchall()))
        first = _first_places([_digest(each) for each in ids])
        return [at for digest, at in first.items() if (digest,) not in stored]

    def archive(self, path: str | os.PathLike) -> int:
        """Add all sound rows to an archive, keep those that are in it; return how many it holds.

        An archive is a copy to be kept where a machine's end does not reach, as on a mounted drive.
        Processes may go on writing into the store meanwhile: the copy is that of one moment. It is
        written beside the archive and then renamed; anew, if others wrote the archive meanwhile.

        Parameters
        ----------
        path
            The archive, an SQLite file.

        Raises
        ------
        InputError
            If there is nothing to keep, or a file of that name that is no archive.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> store = Store(folder / "store")
        >>> key = {"model": "clip", "revision": "1f2e", "output": "image"}
        >>> rows = store.rows(key, ["a"], lambda missing: np.ones((1, 2)))
        >>> store.archive(folder / "drive" / "biaslib.sqlite")
        1
        >>> Store(folder / "another machine").restore(folder / "drive" / "biaslib.sqlite")
        1
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name[:200]}.", dir=path.parent) as beside:
            partial = Path(beside) / NAME
            with tempfile.TemporaryDirectory() as folder:
                copy = Store(folder)
                n_rows = copy._add(self.path) if self.path.exists() else 0
                while True:
                    seen = _version(path)
                    n_rows += copy.restore(path) if seen else 0
                    if not n_rows:
                        raise InputError(
                            f"the store {self.folder} is empty, and {path} was not written: set "
                            "BIASLIB_STORE to the folder of the store"
                        )
                    shutil.copyfile(copy.path, partial)
                    with one_at_a_time(path):
                        if _version(path) == seen:
                            partial.replace(path)
                            return n_rows

    def restore(self, path: str | os.PathLike) -> int:
        """Add the rows of an archive, and keep those that are here; return how many were added.

        Parameters
        ----------
        path
            A file that :meth:`archive` wrote.

        Raises
        ------
        InputError
            If it is not there, no archive of a store, or damaged.
        """
        with naming(path, InputError):
            Path(path).open("rb").close()
            if not {b"keys", b"rows"} <= (_sound_tables(Path(path)) or set()):
                raise InputError(
                    f"{path} cannot be read as an archive of a store. It is damaged or of another "
                    "kind: take an older one, or another name"
                )
        return self._add(Path(path))

    def transaction(self, do: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do something with the tables in one transaction; with new ones if the file is damaged."""
        with contextlib.suppress(OSError):  # the second attempt says what is wrong
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            return self._in_transaction(do)
        except BROKEN:
            with contextlib.suppress(OSError):
                self._set_aside_if_damaged()
        try:
            return self._in_transaction(do)
        except BROKEN as error:
            raise OSError(
                f"the store {self.path} cannot be read or written ({error}): free some space, give "
                "yourself the right to write there, or choose another folder with BIASLIB_STORE"
            ) from error

    def _in_transaction(self, do: Callable[[sqlite3.Connection], Answer]) -> Answer:
        with contextlib.closing(_connected(self.path)) as tables, tables:
            tables.executescript(SCHEMA)
            return do(tables)

    def _set_aside_if_damaged(self) -> None:
        """Rename a damaged file, unless another process has."""
        from filelock import FileLock

        with FileLock(self.folder / f".{NAME}.lock"):
            if _sound_tables(self.path) is not None:
                return
            aside = self.path.with_name(f"{NAME}.{time.time_ns()}.damaged")
            self.path.with_name(f"{NAME}-journal").unlink(missing_ok=True)
            self.path.replace(aside)
        warnings.warn(
            f"{self.path} is damaged. It is set aside as {aside.name}, and what it held is "
            "computed again; Store().restore(path) brings back what an archive holds",
            stacklevel=4,
        )

    def _read(
        self, name: str, parts: str, first: dict[bytes, int], n: int
    ) -> tuple[np.ndarray | None, list[int]]:
        """Return a table with the rows that are stored, and the places of those that are not."""

        def read(tables: sqlite3.Connection) -> tuple[np.ndarray | None, list[int], int]:
            table, missing, n_damaged = None, [], 0
            for digest, at in first.items():
                kind, crc, data = tables.execute(SELECT, [name, digest]).fetchone() or (None,) * 3
                if kind is None or crc != _checksum(name.encode(), kind, digest, data):
                    missing.append(at)
                    n_damaged += kind is not None
                    continue
                dtype, *shape = json.loads(kind)
                row = np.frombuffer(data, dtype).reshape(1, *shape)
                table = _filled(table, n, [at], row, parts)
            return table, missing, n_damaged

        table, missing, n_damaged = self.transaction(read)
        if n_damaged:
            warnings.warn(
                f"{n_damaged} rows of {self.path} are damaged, and are computed again", stacklevel=3
            )
            self._set_aside_if_damaged()
        return table, missing

    def _write(self, name: str, parts: str, digests: list[bytes], rows: np.ndarray) -> None:
        kind = json.dumps([rows.dtype.str, *rows.shape[1:]]).encode()
        items = [(digest, row.tobytes()) for digest, row in zip(digests, rows, strict=True)]
        added = [
            (item, kind, _checksum(name.encode(), kind, item, data), data, name)
            for item, data in items
        ]

        def insert(tables: sqlite3.Connection) -> None:
            tables.execute("insert or ignore into keys (name, parts) values (?, ?)", [name, parts])
            tables.executemany(INSERT, added)

        self.transaction(insert)
        self._archive_if_due()

    def _add(self, path: Path) -> int:
        """Add the rows of another file; return how many there were to add."""

        def add(tables: sqlite3.Connection) -> int:
            tables.create_function("checksum", 4, _checksum)
            tables.execute("attach ? as other", [_read_only(path)])
            tables.execute(
                "insert or ignore into keys (name, parts) select name, parts from other.keys"
            )
            return tables.execute(ADD).rowcount

        return self.transaction(add)

    def _archive_if_due(self, at_end: bool = False) -> None:
        path, began = os.environ.get("BIASLIB_ARCHIVE"), time.monotonic()
        if not path:
            return
        if not at_end and began < Store.archived + Store.spacing:
            if self.folder not in Store.at_end:
                Store.at_end.add(self.folder)
                atexit.register(self._archive_if_due, at_end=True)
            return
        try:
            self.archive(path)
        except (InputError, OSError) as error:
            warnings.warn(f"nothing was added to BIASLIB_ARCHIVE: {error}", stacklevel=3)
        Store.archived = time.monotonic()
        Store.spacing = max(EVERY, 10 * (Store.archived - began))


def _connected(path: Path) -> sqlite3.Connection:
    tables = sqlite3.connect(path.absolute().as_uri(), timeout=PATIENCE, uri=True)
    tables.text_factory = bytes
    return tables


def _sound_tables(path: Path) -> set[bytes] | None:
    """Return the names of a file's tables and indices; None where SQLite finds it damaged."""
    try:
        with contextlib.closing(sqlite3.connect(_read_only(path), uri=True)) as tables:
            tables.text_factory = bytes
            if tables.execute("pragma integrity_check(1)").fetchone() != (b"ok",):
                return None
            return {name for (name,) in tables.execute("select name from sqlite_master")}
    except sqlite3.OperationalError:
        return set()  # It cannot be opened at present, which is no damage.
    except BROKEN:
        return None


def _read_only(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


def _first_places(digests: list[bytes]) -> dict[bytes, int]:
    first: dict[bytes, int] = {}
    for at, digest in enumerate(digests):
        first.setdefault(digest, at)
    return first


def _filled(
    table: np.ndarray | None, n: int, which: list[int], rows: np.ndarray, parts: str
) -> np.ndarray:
    """Return a table of n rows, new if there was none, with some of its rows set."""
    if table is None:
        table = np.empty((n, *rows.shape[1:]), rows.dtype)
    if (table.dtype, table.shape[1:]) != (rows.dtype, rows.shape[1:]):
        raise ValueError(
            f"rows under the key {parts} have the types and shapes {table.dtype} {table.shape[1:]} "
            f"and {rows.dtype} {rows.shape[1:]}: put what differs into the key"
        )
    table[which] = rows
    return table


def _checksum(name: bytes, kind: bytes, item: bytes, data: bytes) -> int:
    """Return what says that a row is as it was written, and that of its key and item."""
    return zlib.crc32(data, zlib.crc32(item, zlib.crc32(name + b" " + kind)))


def _version(path: Path) -> tuple[int, ...]:
    """Return what is another once a file is written anew; nothing where there is none."""
    with contextlib.suppress(FileNotFoundError):
        said = path.stat()
        return said.st_ino, said.st_mtime_ns, said.st_size
    return ()


def _digest(item: str) -> bytes:
    if not isinstance(item, str):
        raise TypeError(f"ids are strings, and {item!r} has the type {type(item).__name__}")
    return hashlib.sha256(item.encode()).digest()


def _named(key: dict[str, Any]) -> tuple[str, str]:
    """Return the name under which the rows of a key lie, and the key as JSON."""
    absent = [part for part in REQUIRED if not key.get(part)]
    if absent:
        raise ValueError(f"the key {key} lacks {', '.join(absent)}: it must tell what rows are")
    parts = json.dumps(key, sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest(), parts
