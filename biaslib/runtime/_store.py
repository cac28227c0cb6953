"""The one store of what models answer: what was computed once is never computed again.

It is one SQLite file. Rows are added in transactions, so that a process that is killed loses the
rows that it was computing and no others, and any number of processes may use it at once. Every row
carries a checksum of itself, its item and its key.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from biaslib.runtime._lock import one_at_a_time
from biaslib.runtime._profile import progress

NAME = "store.sqlite"

SCHEMA = """
create table if not exists keys (id integer primary key, name text unique not null, parts text);
create table if not exists rows (
  key integer not null, item blob not null, kind text not null, crc integer not null,
  data blob not null, primary key (key, item));
"""

REQUIRED = ("model", "revision", "output")
"""What every key says; without a revision, other weights would be taken for the same."""

ATTEMPTS = 3
"""How often rows are computed again before a disk is given up."""

EVERY = 300.0
"""Seconds between two copies into ``BIASLIB_ARCHIVE``; ten times a copy's own, if that is more."""

PATIENCE = 600
"""Seconds for which a process waits while others write."""

BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file can raise: its message quotes what it cannot read."""

OF_THE_DISK = ("locked", "full", "unable to open", "disk I/O")
"""What SQLite says of a disk, and not of a file."""


Answer = TypeVar("Answer")


class Store:
    """Rows of numbers on disk, one for each item that a model has encoded, shared by all studies.

    A run that is killed at any moment loses the rows that it was computing and no others. Two
    processes may use a store at once; if they lack the same rows, both compute them.

    Where the environment variable ``BIASLIB_ARCHIVE`` names a file, on a mounted drive for example,
    what is computed is added to that archive every few minutes (:func:`biaslib.runtime.archive`).

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

    archived = time.monotonic()
    """When what is computed was last added to ``BIASLIB_ARCHIVE``, or the run began."""

    spacing = EVERY

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
            :attr:`biaslib.models.images.Pictures.ids` does, and texts by themselves.
        compute
            Takes the places in ``ids`` of m items, and returns their rows, (m, ...). It is called
            for at most ``shard_size`` missing items at a time, each once, in the order of ``ids``.
        shard_size
            Items a call: what a kill may lose.

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
            If the store cannot be read or written, or is damaged as soon as it is written.
        """
        if not len(ids):
            raise ValueError("there are no ids: nothing to look up or compute")
        written, digests = _as_json(key), [_digest(each) for each in ids]
        for _ in range(ATTEMPTS):
            missing = self._missing(written, digests)
            label = f"{key['model']}, {key['output']}: {len(missing):,} to compute"
            for start in progress(range(0, len(missing), shard_size), label):
                which = missing[start : start + shard_size]
                self._add(written, [digests[at] for at in which], compute(which))
                self._archive_if_due()
            found = self._read(written, digests)
            if found is not None:
                return found
            self._set_aside()
        raise OSError(f"{self.path}: rows are damaged as soon as written; check the disk")

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
        return self._missing(_as_json(key), [_digest(each) for each in ids])

    def clear(self, key: dict[str, Any]) -> None:
        """Delete the rows of a key; nothing happens if there are none."""
        name = [_name(_as_json(key))]

        def delete(tables: sqlite3.Connection) -> None:
            tables.execute(
                "delete from rows where key = (select id from keys where name = ?)", name
            )
            tables.execute("delete from keys where name = ?", name)

        self.change(delete)

    def change(self, do: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do something in one transaction, which is whole on the disk at the end, or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        """

        def whole(tables: sqlite3.Connection) -> Answer:
            tables.execute("begin immediate")
            try:
                found = do(tables)
                tables.execute("commit")
            except BaseException:
                tables.rollback()
                raise
            return found

        return self.look(whole)

    def look(self, do: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Do something with the tables; where the file is damaged, with new and empty ones.

        Raises
        ------
        OSError
            If the file cannot be read.
        """
        for _ in range(ATTEMPTS):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with contextlib.closing(connected(self.path)) as tables:
                    return do(tables)
            except BROKEN as error:
                if not self._set_aside():
                    raise _unusable(self.path, error) from error
            except (PermissionError, FileExistsError, NotADirectoryError) as error:
                raise _unusable(self.folder, error) from error
        raise OSError(f"{self.path} is damaged as soon as it is written; check the disk")

    def _archive_if_due(self) -> None:
        path, began = os.environ.get("BIASLIB_ARCHIVE"), time.monotonic()
        if not path or began < Store.archived + Store.spacing:
            return
        from biaslib.runtime._archive import archive

        try:
            archive(path, self)
        except (ValueError, OSError, RuntimeError) as error:
            warnings.warn(f"nothing was added to BIASLIB_ARCHIVE: {error}", stacklevel=3)
        Store.archived = time.monotonic()
        Store.spacing = max(EVERY, 10 * (Store.archived - began))

    def _missing(self, written: str, digests: list[bytes]) -> list[int]:
        """Return where each id that has no row stands first."""
        there = self.look(
            lambda tables: {
                item
                for (item,) in tables.execute(
                    "select item from rows join keys on key = id where name = ?", [_name(written)]
                )
            }
        )
        first: dict[bytes, int] = {}
        for at, digest in enumerate(digests):
            first.setdefault(digest, at)
        return [at for digest, at in first.items() if digest not in there]

    def _add(self, written: str, digests: list[bytes], rows: np.ndarray) -> None:
        """Add rows to those of a key."""
        rows = np.ascontiguousarray(rows)
        if len(rows) != len(digests):
            raise ValueError(f"{len(digests)} rows were to be computed, and {len(rows)} came back")
        name, kind = _name(written), json.dumps([rows.dtype.str, *rows.shape[1:]])
        data = [row.tobytes() for row in rows]
        sums = [_checksum(name, kind, *each) for each in zip(digests, data, strict=True)]

        def insert(tables: sqlite3.Connection) -> None:
            tables.execute(
                "insert or ignore into keys (name, parts) values (?, ?)", [name, written]
            )
            (number,) = tables.execute("select id from keys where name = ?", [name]).fetchone()
            there = tables.execute("select kind from rows where key = ? limit 1", [number])
            for (other,) in there:
                _require_alike(written, {kind, other})
            added = zip(digests, sums, data, strict=True)
            tables.executemany(
                "insert or ignore into rows values (?, ?, ?, ?, ?)",
                ((number, digest, kind, crc, row) for digest, crc, row in added),
            )

        self.change(insert)

    def _read(self, written: str, digests: list[bytes]) -> np.ndarray | None:
        """Return the rows of all ids, or None if some were damaged, which are then deleted."""
        name, places = _name(written), {}
        for at, digest in enumerate(digests):
            places.setdefault(digest, []).append(at)

        def read(tables: sqlite3.Connection) -> tuple[np.ndarray | None, list[int], int]:
            table, kinds, damaged, absent = None, set(), [], 0
            for digest, wanted in places.items():
                row = tables.execute(
                    "select rows.rowid, kind, crc, data from rows join keys on key = id "
                    "where name = ? and item = ?",
                    [name, digest],
                ).fetchone()
                if row is None:
                    absent += 1
                elif not _is_whole(name, digest, *row[1:]):
                    damaged.append(row[0])
                else:
                    kinds.add(row[1])
                    _require_alike(written, kinds)
                    one = _row(row[1], row[3])
                    if table is None:
                        table = np.empty((len(digests), *one.shape), one.dtype)
                    table[wanted] = one
            return table, damaged, absent

        table, damaged, absent = self.look(read)
        if damaged:
            warnings.warn(
                f"{len(damaged)} rows of {self.path} are damaged, and are computed again",
                stacklevel=3,
            )
            self.change(
                lambda tables: tables.executemany(
                    "delete from rows where rowid = ?", [[each] for each in damaged]
                )
            )
        return None if damaged or absent else table

    def _set_aside(self) -> bool:
        """Move a damaged file away, unless another process has; say whether to try again."""
        before = _identity(self.path)
        with one_at_a_time(self.path):
            if _is_sound(self.path):
                return _identity(self.path) != before
            aside = self.path.with_name(f"{NAME}.{time.time_ns()}.damaged")
            self.path.replace(aside)
            self.path.with_name(f"{NAME}-journal").unlink(missing_ok=True)
        warnings.warn(
            f"{self.path} is damaged. It is set aside as {aside.name}, and what it held is "
            "computed again; restore(path) brings back what an archive holds",
            stacklevel=4,
        )
        return True


def connected(path: Path) -> sqlite3.Connection:
    """Open a file of rows, and make it if it is not there."""
    place = path.absolute().as_uri()
    tables = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None, uri=True)
    tables.text_factory = lambda text: text.decode(errors="replace")
    try:
        tables.executescript(SCHEMA)
    except BROKEN:
        tables.close()
        raise
    return tables


def _is_sound(path: Path) -> bool:
    """Tell whether a file of rows is one, not there, or out of reach, and not damaged."""
    if not path.exists() or not os.access(path, os.R_OK):
        return True
    try:
        with contextlib.closing(connected(path)) as tables:
            with contextlib.closing(sqlite3.connect(":memory:")) as made:
                made.executescript(SCHEMA)
                if _tables(tables) != _tables(made):
                    return False
            if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
                tables.execute("begin immediate")
                tables.rollback()
            return tables.execute("pragma integrity_check(1)").fetchone() == ("ok",)
    except BROKEN as error:
        return any(each in str(error) for each in OF_THE_DISK)


def _tables(of: sqlite3.Connection) -> list[tuple]:
    return of.execute("select type, name, sql from sqlite_master order by name").fetchall()


def _identity(path: Path) -> int:
    return path.stat().st_ino if path.exists() else 0


def _unusable(path: Path, error: Exception) -> OSError:
    reason = getattr(error, "strerror", None) or error
    return OSError(
        f"the store {path} cannot be read or written ({reason}): free some space, give yourself "
        "the right to write there, or choose another folder with BIASLIB_STORE"
    )


def _require_alike(written: str, kinds: set[str]) -> None:
    if len(kinds) > 1:
        one, other = sorted(kinds)
        raise ValueError(
            f"rows under the key {written} have the types and shapes {one} and {other}: put what "
            "differs into the key, or clear it"
        )


def _row(kind: str, data: bytes) -> np.ndarray:
    dtype, *shape = json.loads(kind)
    return np.frombuffer(data, dtype).reshape(shape)


def _checksum(name: str, kind: str, item: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(item, zlib.crc32(f"{name} {kind}".encode())))


def _is_whole(name: str, item: bytes, kind: Any, crc: Any, data: Any) -> bool:
    """Tell whether a row is as it was written, and that of its key and item."""
    typed = isinstance(kind, str) and isinstance(data, bytes)
    return typed and crc == _checksum(name, kind, item, data)


def _digest(item: str) -> bytes:
    if not isinstance(item, str):
        raise TypeError(f"ids are strings, and {item!r} has the type {type(item).__name__}")
    return hashlib.sha256(item.encode()).digest()


def _name(written: str) -> str:
    return hashlib.sha256(written.encode()).hexdigest()


def _as_json(key: dict[str, Any]) -> str:
    absent = [part for part in REQUIRED if not key.get(part)]
    if absent:
        raise ValueError(f"the key {key} lacks {', '.join(absent)}: it must tell what rows are")
    return json.dumps(key, sort_keys=True)
