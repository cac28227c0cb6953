"""The lock file: which files a result was made with, by the SHA-256 that was seen first."""

import contextlib
import datetime
import errno
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from biaslib.runtime._files import file_sha256

LOCK_NAME = "biaslib-lock.json"

PATIENCE = 2.0
"""Seconds after which a process that waits for another one says so."""

NO_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""What a disk says that takes nothing more, or nothing from us."""


class DownloadError(RuntimeError):
    """A download that failed; its text says why and what to do.

    ``status`` is the number that the server refused with, or 0.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ChecksumError(DownloadError):
    """A file that is not the one that was downloaded, or recorded, before."""


@contextlib.contextmanager
def one_at_a_time(path: str | Path) -> Iterator[None]:
    """Let one process at a time work on a file; the others wait, and say so.

    The lock is a file beside it while one works. It takes every user of the folder, and the last
    one removes it.

    Parameters
    ----------
    path
        The file; its folder must be there.
    """
    from filelock import FileLock, Timeout

    path = Path(path).absolute()
    lock = FileLock(path.with_name(f".{path.name[:200]}.lock"), mode=0o666)
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        warnings.warn(f"another process works on {path}: this one waits for it", stacklevel=3)
        lock.acquire()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes it when it is released
            os.unlink(lock.lock_file)
        lock.release()


@contextlib.contextmanager
def writing(path: str | Path, fix: str, kind: type[Exception] = DownloadError) -> Iterator[None]:
    """Turn what a full or a read-only disk says into an error with the place and what to do.

    Parameters
    ----------
    path
        The file or folder that is written.
    fix
        A sentence that says what to do.
    kind
        Of the error.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_WRITING:
            raise
        raise kind(f"{path} cannot be written: {error.strerror}. {fix}") from error


class Lock:
    """The lock file of a run: one entry a source, with its revision and its files' SHA-256.

    It is written when a file is first seen, and every later use is checked against it. Keep it
    beside the results: whoever repeats them gets the same files or an error.

    Parameters
    ----------
    path
        The file. ``None`` takes the environment variable ``BIASLIB_LOCK``, or
        ``biaslib-lock.json`` in the working directory.

    Raises
    ------
    DownloadError
        On reading, if the file is not a lock file.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path or os.environ.get("BIASLIB_LOCK", LOCK_NAME))

    def entries(self) -> dict[str, dict]:
        """Return what is recorded: source -> revision, date and files."""
        if not self.path.exists():
            return {}
        try:
            return dict(json.loads(self.path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise DownloadError(
                f"{self.path} is not a lock file of biaslib ({error}). Restore it from where the "
                "results are kept, or delete it to record anew what is downloaded"
            ) from None

    def revision(self, source: str) -> str:
        """Return the recorded revision of a source, or an empty string."""
        return self.entries().get(source, {}).get("revision", "")

    def sha256(self, source: str, file: str) -> str:
        """Return the recorded SHA-256 of a file, or an empty string."""
        return self.entries().get(source, {}).get("files", {}).get(file, {}).get("sha256", "")

    def verify(
        self,
        source: str,
        revision: str,
        files: Mapping[str, Path],
        checksums: Mapping[str, str] | None = None,
    ) -> None:
        """Check files against what is recorded, and record those that are not.

        Parameters
        ----------
        source, revision
            Where they come from.
        files
            Name in the source -> path on this disk.
        checksums
            Name -> SHA-256, where it was computed a moment ago; ``None`` computes it.

        Raises
        ------
        ChecksumError
            If a file or the revision is another than recorded; the message names both.
        """
        checksums = checksums or {name: file_sha256(path) for name, path in files.items()}
        self._check(source, revision, files, checksums)
        if all(self.sha256(source, name) for name in files):
            return
        # Another process may have recorded others meanwhile.
        with self.changing():
            self.write(source, revision, self._check(source, revision, files, checksums))

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Let no other process write the lock file while the block lasts."""
        fix = "Make room there, or set BIASLIB_LOCK to a file that can be written"
        with writing(self.path, f"{fix}; what was downloaded is kept"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(self.path):
                yield

    def _check(
        self, source: str, revision: str, files: Mapping[str, Path], checksums: Mapping[str, str]
    ) -> dict[str, dict]:
        self.require_revision(source, revision)
        return {
            name: self._seen(source, name, path, checksums[name]) for name, path in files.items()
        }

    def require_revision(self, source: str, revision: str) -> None:
        """Refuse another revision than the recorded one; an empty string is none in particular.

        Raises
        ------
        ChecksumError
            If another is recorded; the message names both.
        """
        known = self.revision(source)
        if known and revision and known != revision:
            raise ChecksumError(
                f"{self.path} records revision {known} of {source!r}, and {revision} was asked "
                f"for. Use the recorded one, or {self._how_to_accept(source)}"
            )

    def _seen(self, source: str, name: str, path: Path, found: str) -> dict:
        expected = self.sha256(source, name)
        if expected and found != expected:
            raise ChecksumError(
                f"{path}: expected SHA-256 {expected}, which {self.path} records for {name} of "
                f"{source!r}, and found {found}. It is not the file that these results were made "
                f"with. Put the recorded file back, or {self._how_to_accept(source)}"
            )
        return {"sha256": found, "bytes": path.stat().st_size}

    def _how_to_accept(self, source: str) -> str:
        return f"delete the entry {source!r} from {self.path.name} to accept the new one"

    def write(self, source: str, revision: str, seen: dict[str, dict]) -> None:
        """Record files of a source, each with *sha256* and *bytes*, within :meth:`changing`."""
        entries = self.entries()
        entry = entries.setdefault(source, {"revision": revision, "date": "", "files": {}})
        entry["date"] = entry["date"] or f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
        entry["files"].update(seen)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        ordered = {key: entries[key] for key in sorted(entries)}
        try:
            beside.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
            os.replace(beside, self.path)
        finally:
            beside.unlink(missing_ok=True)
