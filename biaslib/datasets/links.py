"""Images from lists of links: fetched politely, checked, recorded, and counted where links died.

The authors of studies 1 and 4 published addresses, not images. Many are dead by now, and which ones
are is not chance: what is left of a test may be out of balance (:func:`coverage`).
"""

import collections
import concurrent.futures
import contextlib
import datetime
import errno
import functools
import io
import itertools
import os
import queue
import re
import threading
from pathlib import Path
from typing import Any

import pandas

from biaslib.datasets import _fetcher
from biaslib.datasets._arguments import require_path, require_table
from biaslib.datasets._fetcher import HERE
from biaslib.datasets._problems import DataError
from biaslib.metrics.inputs import flag, whole_number
from biaslib.models.downloads import PAGES
from biaslib.models.images import ImageError, open_image, opened
from biaslib.runtime import INVISIBLE, cleaned, file_sha256, one_at_a_time, progress

__all__ = ["coverage", "download_images", "outcomes"]

RECORD, PART = "downloads.csv", ".part-"
OURS = (RECORD, f".{RECORD}.lock")
"""What a folder holds beside images, while one process fills it."""

COLUMNS = ["file", "url", "outcome", "sha256", "bytes", "date"]
FINAL = ("error 404", "error 410", "not an image", "refused", "larger than")
"""Outcomes that another run would not change; the others are asked again by the next one."""

NOT_ASKED = "not downloaded"
GONE = "downloaded, and gone since"

NO_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""What a disk says that takes nothing more, or nothing from us."""

PIXELS = 40_000_000
"""Pixels of an image at most; one image is opened at a time."""

PER_HOST = 2
"""Connections to one host at a time."""

TEXTS = ("text/", "application/json", "application/xhtml", "application/xml")
"""Types of answers to a person or a program, such as that one must log in."""

AROUND = re.compile(rf"^[\s{INVISIBLE}]+|[\s{INVISIBLE}]+$")


def download_images(
    links: pandas.DataFrame, folder: str | Path, n_workers: int = 16, again: bool = False
) -> pandas.DataFrame:
    """Download the images of links, a few at a time from any one host.

    Only http and https addresses of public hosts are asked, redirects included. An image gets its
    name once it is complete and can be opened. A server that is busy (429, or 5xx) is asked again
    after a pause, the one that it names if it names one. What became of every link is written to
    ``downloads.csv`` in the folder. When called again, images that are here and unchanged are left,
    and so are links that are dead for good: not found, gone, not an image, too large, or refused by
    us. All others are asked again, so that a run without a network settles nothing, nor does one
    where a page to log in answers for every host. Of several processes that are to fill a folder,
    one does; the others wait, and find the images there.

    Parameters
    ----------
    links
        Columns *file* (path below the folder) and *url*; what is no text is no address, and blanks
        around one are no part of it.
    folder
        Where the images go.
    n_workers
        Downloads at a time.
    again
        Ask links again that are dead for good.

    Returns
    -------
    pandas.DataFrame
        The rows of ``links`` with *outcome* (``here``, or what went wrong), *sha256*, *bytes* and
        *date*.

    Raises
    ------
    DataError
        If two links have one file, a file has no name, lies outside the folder or is one that is
        written there beside the images, or nothing can be written there.
    """
    folder, again = require_path(folder, "folder"), flag(again, "again")
    n_workers = whole_number(n_workers, "n_workers", 1)
    links = require_table(links, "links", [], ["file", "url"])
    _require_names(links, folder)
    links = links.assign(url=[address(url) for url in links["url"]])
    asked = list(zip(links["file"], links["url"], strict=True))
    record = _Record(folder)
    if record.open_ones(asked, again):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(folder / RECORD):
                for left in folder.glob(f"{PART}*"):  # of a run that was killed
                    left.unlink()
                record = _Record(folder)  # another process may have been at it meanwhile
                record.begin()
                _fetch_all(record.open_ones(asked, again), _Fetcher(record), n_workers)
        except OSError as error:
            raise DataError(
                f"{folder} cannot be written: {error.strerror}. Make room there, or free it for "
                "writing, and run the same call again: it goes on",
                path=folder,
            ) from error
    return links.assign(**record.columns(asked))


def _fetch_all(wanted: list[tuple[str, str]], fetch: "_Fetcher", n_workers: int) -> None:
    """Fetch links, those of a host one after another in PER_HOST rows: a slow one holds no more."""
    hosts, done = collections.defaultdict(list), queue.SimpleQueue()
    for file, url in wanted:
        hosts[f"{url}///".split("/")[2]].append((file, url))
    stopped = threading.Event()

    def fetch_row(row: list[tuple[str, str]]) -> None:
        for link in row:
            if stopped.is_set():
                return
            try:
                done.put(fetch(*link))
            except BaseException as error:
                done.put(error)

    with concurrent.futures.ThreadPoolExecutor(n_workers) as pool:
        for links in hosts.values():
            for at in range(PER_HOST):
                pool.submit(fetch_row, links[at::PER_HOST])
        try:
            for _ in progress(wanted, "images"):
                if error := done.get():
                    raise error
        finally:
            stopped.set()


def outcomes(links: pandas.DataFrame, folder: str | Path) -> pandas.DataFrame:
    """Return what became of links, without asking any again.

    Parameters
    ----------
    links
        Columns *file* and *url*, as :func:`download_images` takes them.
    folder
        Where the images are.

    Returns
    -------
    pandas.DataFrame
        The rows of ``links`` with *outcome*: ``here`` where there is the file, however it came;
        else what ``downloads.csv`` in the folder says went wrong, or ``not downloaded`` where it
        says nothing.

    Examples
    --------
    >>> link = {"file": "a.img", "url": "https://example.org/a.jpg"}
    >>> outcomes(pandas.DataFrame([link]), "no such folder")["outcome"].tolist()
    ['not downloaded']
    """
    folder, links = require_path(folder, "folder"), require_table(links, "links", ["file"], ["url"])
    known = _recorded(folder / RECORD)
    said = {(row.file, row.url): row.outcome for row in known.itertuples()}
    found = [
        _outcome(os.path.isfile(folder / file), said.get((file, address(url)), NOT_ASKED))
        for file, url in zip(links["file"], links["url"], strict=True)
    ]
    return links.assign(outcome=found)


def _outcome(is_here: bool, recorded: str) -> str:
    if is_here:
        return HERE
    return GONE if recorded == HERE else recorded


def _recorded(path: Path) -> pandas.DataFrame:
    """Return the last row of every file of a record, without a line that was not ended."""
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    if "\n" not in text:
        return pandas.DataFrame(columns=COLUMNS)
    whole = io.StringIO(text[: text.rindex("\n") + 1])
    rows = pandas.read_csv(whole, dtype=str, keep_default_na=False, on_bad_lines="skip")
    if not {"file", "url", "outcome"} <= set(rows):
        raise DataError(f"{path} is no record of downloads: move it away", path=path)
    return rows.drop_duplicates(["file", "url"], keep="last")


def coverage(downloaded: pandas.DataFrame) -> pandas.DataFrame:
    """Return how many links of every test and group still lead to an image, and what the rest did.

    Parameters
    ----------
    downloaded
        What :func:`download_images` returned, with *test* and *group*.

    Returns
    -------
    pandas.DataFrame
        *test*, *group*, *links*, *here*, *share*, and *reasons*: the outcomes of the others, the
        most frequent first.
    """
    rows = []
    downloaded = require_table(downloaded, "downloaded", ["test", "group", "outcome"])
    for (test, group), part in downloaded.groupby(["test", "group"]):
        reasons = counted(part.loc[part["outcome"] != HERE, "outcome"])
        here = int((part["outcome"] == HERE).sum())
        rows.append((test, group, len(part), here, here / len(part), reasons))
    return pandas.DataFrame(rows, columns=["test", "group", "links", "here", "share", "reasons"])


def counted(reasons: pandas.Series) -> str:
    """Return how often each reason occurs, in words, the most frequent first."""
    return "; ".join(f"{reason} ({n})" for reason, n in reasons.value_counts().items())


class _Record:
    """What became of every link, in a table that is added to line by line."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / RECORD
        self.lock = threading.Lock()
        rows = _recorded(self.path).reindex(columns=COLUMNS, fill_value="").itertuples(index=False)
        self.rows = {(row.file, row.url): list(row) for row in rows}

    def begin(self) -> None:
        """Take away what a run that was killed left of a line, and head a new table."""
        whole = self.path.read_bytes() if self.path.exists() else b""
        if not whole.endswith(b"\n"):
            self.path.touch()
            os.truncate(self.path, whole.rfind(b"\n") + 1)
        if b"\n" not in whole:
            self._write(COLUMNS)

    def columns(self, links: list[tuple[str, str]]) -> dict[str, list[str]]:
        """Return the columns that a record adds to links."""
        rows = [self.rows[link] for link in links]
        return {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS) if at > 1}

    def open_ones(self, links: list[tuple[str, str]], again: bool) -> list[tuple[str, str]]:
        """Return the links that are to be asked."""
        return [link for link in links if not self._settled(*link, again)]

    def _settled(self, file: str, url: str, again: bool) -> bool:
        _, _, outcome, sha256, *_ = self.rows.get((file, url), [""] * 4)
        if outcome == HERE:
            path = self.folder / file
            return path.is_file() and file_sha256(path) == sha256
        return outcome.startswith(FINAL) and not again

    def add(self, file: str, url: str, outcome: str, sha256: str = "", size: int = 0) -> None:
        """Note what became of a link."""
        row = [file, url, outcome, sha256, str(size), datetime.date.today().isoformat()]
        with self.lock:
            self._write(row)
            self.rows[file, url] = row

    def _write(self, values: list[str]) -> None:
        line = pandas.DataFrame([values]).to_csv(index=False, header=False)
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(line)


class _Fetcher:
    """Fetches one link after another, from many threads."""

    def __init__(self, record: _Record) -> None:
        self.record = record
        self.numbers, self.opening = itertools.count(), threading.Lock()

    def __call__(self, file: str, url: str) -> None:
        """Fetch a link, and note what became of it."""
        outcome, headers, body = _fetcher.tried(url)
        folder = self.record.folder
        part, path = folder / f"{PART}{next(self.numbers)}", folder / file
        sha256 = ""
        if outcome == HERE:
            part.write_bytes(body)
            with self.opening:
                outcome = _judged(part, headers, body)
        if outcome == HERE:
            sha256 = file_sha256(part)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(part, path)
            except (OSError, ValueError) as error:
                if getattr(error, "errno", None) in NO_WRITING:
                    raise
                outcome = f"cannot be written: {getattr(error, 'strerror', error)}"
        part.unlink(missing_ok=True)
        size = len(body) if outcome == HERE else 0
        self.record.add(file, url, outcome, sha256 if size else "", size)


def _judged(part: Path, headers: Any, body: bytes) -> str:
    """Return the outcome of an answer that has arrived."""
    problem = _problem(part)
    if not problem or problem.startswith("larger"):
        return problem or HERE
    if not body:
        return "an empty answer"
    begin = body[:512].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if headers.get("Content-Type", "").lower().startswith(TEXTS) or begin.startswith(PAGES):
        return "a page in place of an image"
    if "Content-Length" not in headers and "Transfer-Encoding" not in headers:
        return f"cut short, or damaged: {problem}"
    return f"not an image: {problem}"


def _problem(part: Path) -> str:
    """Return why a file is not opened as an image, or nothing."""
    try:
        with contextlib.suppress(OSError, ValueError), opened(part) as image:
            if image.width * image.height > PIXELS:
                return f"larger than {PIXELS / 1e6:.0f} megapixels"
        open_image(part)
    except ImageError as error:
        return str(error).removeprefix(f"{part} ")
    return ""


def address(url: object) -> str:
    """Return an address that can be written down, without blanks around it; or nothing."""
    try:
        return AROUND.sub("", url.encode().decode())
    except (AttributeError, UnicodeEncodeError):
        return ""


def _require_names(links: pandas.DataFrame, folder: Path) -> None:
    """Refuse names of files that would overwrite one another, or anything but an image."""
    root, seen = folder.resolve(), {}
    for row, file in enumerate(links["file"]):
        wrong = functools.partial(DataError, path=folder, row=row, word=file)
        if not isinstance(file, str) or not file.strip():
            raise wrong(f"row {row} of the links, from 0, has no file: give it a path")
        path = _resolved(root / file)
        if path == root or not path.is_relative_to(root):
            raise wrong(f"the file {file} lies outside {folder}: give a path below it")
        first = cleaned(path.relative_to(root).parts[0]).partition(":")[0].casefold().rstrip(". ")
        if first in OURS or first.startswith(PART):
            raise wrong(f"the file {file} is one that {folder} needs itself: give another name")
        if seen.setdefault(path, row) != row:
            raise wrong(f"two links have the file {file}: give each its own name")


def _resolved(path: Path) -> Path:
    """Return where a path leads; a name that no disk takes, such as one of 300 letters, nowhere."""
    with contextlib.suppress(OSError, ValueError):
        return path.resolve()
    return Path(os.path.abspath(path))
