"""The one store of embeddings and features: what was computed once is never computed again.

On disk, ``<folder>/<hash of the key>/`` holds ``key.json`` and shards. A shard is a safetensors
file of rows, of hashes of their ids and of the hash of the key, and its name is the SHA-256 of its
bytes. So every shard carries its checksum, is complete as soon as it has its name, and never
changes; processes that write at once write different names or the same bytes, and there is no lock
that a killed process could leave behind: what is locked is the unfinished file, by the system, as
long as its process lives.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from biaslib.runtime._profile import progress

try:
    import fcntl
except ImportError:
    fcntl = None

REQUIRED = ("model", "revision", "output")
"""What every key says; without a revision, other weights would be taken for the same."""

ATTEMPTS = 3
"""How often rows are computed again before a disk is given up."""

ABANDONED = 3600
"""Seconds after which an unfinished file has been left by a process that was killed."""


class Store:
    """Rows of numbers on disk, one for each item that a model has encoded, shared by all studies.

    A run that is killed at any moment loses the shard that it was computing and no other. Two
    processes may use a store at once; if they lack the same rows, both compute them.

    Parameters
    ----------
    folder
        Where it is. None takes the environment variable ``BIASLIB_STORE``, or ``biaslib`` in the
        user's cache folder.

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

    def __init__(self, folder: str | os.PathLike | None = None) -> None:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = folder or os.environ.get("BIASLIB_STORE") or Path(caches) / "biaslib"
        self.folder = Path(chosen).expanduser()

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
            Items a shard: what a kill may lose.

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
            If shards cannot be read or written, or are damaged as soon as they are written.
        """
        if not len(ids):
            raise ValueError("there are no ids: nothing to look up or compute")
        digests = [_digest(each) for each in ids]
        shelf = _Shelf(self._place(key), key)
        for _ in range(ATTEMPTS):
            missing = shelf.missing(digests)
            for start in progress(range(0, len(missing), shard_size), shelf.label(len(missing))):
                which = missing[start : start + shard_size]
                shelf.add([digests[at] for at in which], compute(which))
            found = shelf.read(digests)
            if found is not None:
                # Rows are read from where nobody may write, too.
                with contextlib.suppress(OSError):
                    shelf.write_key()
                return found
        raise OSError(f"{shelf.folder}: shards are damaged as soon as written; check the disk")

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
        return _Shelf(self._place(key), key).missing([_digest(each) for each in ids])

    def clear(self, key: dict[str, Any]) -> None:
        """Delete the rows of a key; nothing happens if there are none."""
        shutil.rmtree(self._place(key), ignore_errors=True)

    def _place(self, key: dict[str, Any]) -> Path:
        absent = [part for part in REQUIRED if not key.get(part)]
        if absent:
            raise ValueError(f"the key {key} lacks {', '.join(absent)}: it must tell what rows are")
        return self.folder / hashlib.sha256(_as_json(key)).hexdigest()[:32]


class _Shelf:
    """The shards of one key."""

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self.folder, self.key = folder, key
        self.metadata = {"key": hashlib.sha256(_as_json(key)).hexdigest()}

    def label(self, n_missing: int) -> str:
        return f"{self.key['model']}, {self.key['output']}: {n_missing:,} to compute"

    def missing(self, digests: list[bytes]) -> list[int]:
        """Return where each id that has no row stands first."""
        there, first = self.index(), {}
        for at, digest in enumerate(digests):
            first.setdefault(digest, at)
        return [at for digest, at in first.items() if digest not in there]

    def index(self) -> dict[bytes, tuple[Path, int]]:
        """Return the shard of every id, and its row there."""
        found = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            for row, digest in enumerate(self._ids(path)):
                found.setdefault(digest.tobytes(), (path, row))
        return found

    def add(self, digests: list[bytes], rows: np.ndarray) -> None:
        """Write a shard: under another name first, so that it is whole once it has its own."""
        from safetensors.numpy import save

        rows = np.ascontiguousarray(rows)
        if len(rows) != len(digests):
            raise ValueError(f"{len(digests)} rows were to be computed, and {len(rows)} came back")
        ids = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)
        data = save({"ids": ids, "rows": rows}, self.metadata)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self._remove_abandoned()
        self.write_key()
        _write(self.folder / f"{hashlib.sha256(data).hexdigest()}.safetensors", data)

    def write_key(self) -> None:
        """Write the key, or what damage has left of it, anew."""
        _write(self.folder / "key.json", _as_json(self.key))

    def read(self, digests: list[bytes]) -> np.ndarray | None:
        """Return the rows of all ids, or None if a shard had to be set aside."""
        there, wanted = self.index(), {}
        for at, digest in enumerate(digests):
            path, row = there.get(digest, (None, 0))
            wanted.setdefault(path, []).append((at, row))
        found = None
        for path, pairs in wanted.items():
            stored = self._rows(path) if path else None
            if stored is None:
                return None
            if found is None:
                found = np.empty((len(digests), *stored.shape[1:]), dtype=stored.dtype)
            self._require_alike(stored, found)
            at, rows = np.array(pairs).T
            found[at] = stored[rows]
        return found

    def _ids(self, path: Path) -> np.ndarray:
        from safetensors import SafetensorError, safe_open

        nothing = np.empty((0, 32), dtype=np.uint8)
        try:
            with safe_open(path, framework="numpy") as shard:
                # One that names no key is of the key that its folder is named after.
                if shard.metadata() in (None, self.metadata):
                    return shard.get_tensor("ids")
        except FileNotFoundError:  # Another process set it aside, or cleared the key.
            return nothing
        except SafetensorError:
            pass
        except OSError as error:
            raise _unreadable(path, error) from error
        self._set_aside(path)
        return nothing

    def _rows(self, path: Path) -> np.ndarray | None:
        """Return the rows of a shard whose bytes have the hash that is its name."""
        from safetensors.numpy import load

        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        if hashlib.sha256(data).hexdigest() != path.stem:
            self._set_aside(path)
            return None
        return load(data)["rows"]

    def _set_aside(self, path: Path) -> None:
        aside = path.with_suffix(".damaged")
        try:
            path.replace(aside)
        except FileNotFoundError:  # Another process was faster, or cleared the key.
            return
        warnings.warn(
            f"the shard {path} is damaged, or is another key's. It is set aside as {aside.name}, "
            "and its rows are computed again",
            stacklevel=2,
        )

    def _require_alike(self, stored: np.ndarray, found: np.ndarray) -> None:
        if (stored.shape[1:], stored.dtype) != (found.shape[1:], found.dtype):
            raise ValueError(
                f"rows under the key {self.key} have the shapes {stored.shape[1:]} and "
                f"{found.shape[1:]}, types {stored.dtype} and {found.dtype}: put what differs into "
                "the key, or clear it"
            )

    def _remove_abandoned(self) -> None:
        for path in self.folder.glob("*.partial"):
            # Another process may finish its file between two of these steps.
            with contextlib.suppress(FileNotFoundError):
                old = path.stat().st_mtime < time.time() - ABANDONED
                if old and not _is_being_written(path):
                    path.unlink()


def _write(path: Path, data: bytes) -> None:
    """Write a file that is either whole and on the disk, or not there; damage is written over."""
    if path.exists() and path.read_bytes() == data:
        return
    partial = path.with_name(f"{uuid.uuid4().hex}.partial")
    try:
        with open(partial, "wb") as stream:
            _lock(stream)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _unwritable(folder: Path, error: OSError) -> OSError:
    return OSError(
        f"the store cannot write into {folder} ({error.strerror or error}): free some space, make "
        "it writable, or choose another folder with BIASLIB_STORE"
    )


def _lock(stream: IO[bytes]) -> bool:
    """Lock an open file as long as this process lives; say whether nobody else has."""
    if fcntl is None:  # Windows deletes no open file.
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_being_written(path: Path) -> bool:
    """Say whether a living process holds an unfinished file, whatever the clocks say."""
    with open(path, "rb") as stream:
        return not _lock(stream)


def _unreadable(path: Path, error: OSError) -> OSError:
    reason = error.strerror or str(error)
    return OSError(
        f"{path} cannot be read ({reason}); make it readable, or choose another folder with "
        "BIASLIB_STORE"
    )


def _sync_folder(folder: Path) -> None:
    """Put a new name on the disk, where folders can be opened: not on Windows."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _digest(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"ids are strings, and {name!r} has the type {type(name).__name__}")
    return hashlib.sha256(name.encode()).digest()


def _as_json(key: dict[str, Any]) -> bytes:
    return json.dumps(key, sort_keys=True).encode()
