"""The lock file: which files a result was made with, by the SHA-256 that was seen first."""

import contextlib
import datetime
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from biaslib.errors import InputError

LOCK_NAME = "biaslib-lock.json"


class ChecksumError(InputError):
    """A file or a revision that is not the recorded one."""


@contextlib.contextmanager
def one_at_a_time(path: str | Path) -> Iterator[None]:
    """Let one process at a time work on a file, whose folder must be there; the others wait."""
    from filelock import FileLock

    path = Path(path).absolute()
    lock = FileLock(path.with_name(f".{path.name[:200]}.lock"), mode=0o666)
    with lock:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows removes it when it is released
                os.unlink(lock.lock_file)


class Lock:
    """The lock file of a run: one entry a source, with its revision and its files' SHA-256.

    It is written when a source is first used, and every later use is compared with it. Keep it
    beside the results: whoever repeats them gets the same files or an error.

    Parameters
    ----------
    path
        The file. ``None`` takes the environment variable ``BIASLIB_LOCK``, or
        ``biaslib-lock.json`` in the working directory.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path or os.environ.get("BIASLIB_LOCK") or LOCK_NAME)

    def entries(self) -> dict[str, dict]:
        """Return what is recorded: source -> revision, date and files.

        Raises
        ------
        ChecksumError
            If the file is not a lock file.
        """
        if not self.path.exists():
            return {}
        try:
            recorded = json.loads(self.path.read_text(encoding="utf-8"))
            for name, entry in recorded.items():
                hashes = [file["sha256"] for file in entry["files"].values()]
                if not all(isinstance(text, str) for text in (entry["revision"], *hashes)):
                    raise TypeError(f"the entry {name!r} holds {entry!r:.80}")
            return recorded
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ChecksumError(
                f"{self.path} is not a lock file of biaslib ({error}): restore it, or delete it to "
                "record anew what is used",
                path=self.path,
            ) from None

    def files(self, source: str) -> dict[str, dict]:
        """Return the recorded files of a source, each with *sha256* and *bytes*."""
        return self.entries().get(source, {}).get("files", {})

    def revision(self, source: str) -> str:
        """Return the recorded revision of a source, or an empty string."""
        return self.entries().get(source, {}).get("revision", "")

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
                f"for: use the recorded one, or delete the entry {source!r} to accept the other",
                path=self.path,
            )

    def verify(self, source: str, revision: str, files: Mapping[str, dict]) -> None:
        """Compare a source's files, each with *sha256* and *bytes*, with those recorded; add new.

        Raises
        ------
        ChecksumError
            If a file or the revision is another than recorded; the message names both.
        """
        if self._is_new(source, revision, files):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(self.path):
                self._is_new(source, revision, files)  # another process may have recorded others
                self._write(source, revision, files)

    def _is_new(self, source: str, revision: str, files: Mapping[str, dict]) -> bool:
        self.require_revision(source, revision)
        known = self.files(source)
        for name, seen in files.items():
            expected = known.get(name, seen)["sha256"]
            if expected != seen["sha256"]:
                raise ChecksumError(
                    f"{name} of {source!r} has SHA-256 {seen['sha256']}, and {self.path} records "
                    f"{expected}: put the recorded file back, or delete the entry {source!r} to "
                    "accept the other",
                    path=self.path,
                    word=name,
                )
        return not files.keys() <= known.keys() or self.revision(source) == "" != revision

    def _write(self, source: str, revision: str, files: Mapping[str, dict]) -> None:
        entries = self.entries()
        today = f"{datetime.date.today()}"
        entry = entries.setdefault(source, {"revision": revision, "date": today, "files": {}})
        entry["revision"] = entry["revision"] or revision
        entry["files"].update(files)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        text = json.dumps(dict(sorted(entries.items())), indent=1) + "\n"
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, self.path)
