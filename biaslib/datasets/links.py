"""Images from lists of links: fetched politely, checked, recorded, and counted where links died.

The authors of studies 1 and 4 published addresses, not images. Many are dead by now, and which ones
are is not chance: what is left of a test may be out of balance (:func:`coverage`).
"""

import collections
import concurrent.futures
import csv
import datetime
import errno
import io
import os
import queue
import re
import threading
import unicodedata
from pathlib import Path
from typing import Any

import pandas

from biaslib.checkpoints.downloads import PAGES
from biaslib.datasets.problems import DataError, require_table
from biaslib.errors import brought_by
from biaslib.metrics.inputs import flag, whole_number
from biaslib.pictures.images import ImageError, open_image
from biaslib.runtime import INVISIBLE, file_sha256, one_at_a_time, progress

__all__ = ["coverage", "download_images", "outcomes"]

HERE = "here"
"""The outcome of a link whose image has arrived; others say what went wrong."""

RECORD, PART = "downloads.csv", ".part-"
COLUMNS = ["file", "url", "outcome", "sha256", "bytes", "date"]
FINAL = ("error 404", "error 410", "not an image", "refused", "larger than")
"""Outcomes that another run would not change; the others are asked again by the next one."""

NOT_ASKED = "not downloaded"
GONE = "downloaded, and gone since"

NO_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
"""What a disk says that takes nothing more, or nothing from us."""

PER_HOST = 2
"""Connections to one host at a time."""

OPENING = threading.Lock()
"""Held while an image is opened: decoded, each may take hundreds of megabytes."""

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
    where a page to log in answers for every host, or every name leads to a private address. Of
    several processes that are to fill a folder, one does; the others wait, and find the images
    there.

    Parameters
    ----------
    links
        Columns *file* (path below the folder) and *url*; what is no text, or holds control
        characters, is no address, and blanks around one are no part of it.
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
        If two links have one file, a file has no name or one with control characters, lies outside
        the folder or is one that is written there beside the images, or nothing can be written
        there.
    """
    folder, again = Path(folder), flag(again, "again")
    n_workers = whole_number(n_workers, "n_workers", 1)
    links = require_table(links, "links", [], ["file", "url"])
    _require_names(links, folder)
    links = links.assign(url=[address(url) for url in links["url"]])
    asked = list(zip(links["file"], links["url"], strict=True))
    if _open_links(asked, folder, again):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(folder / RECORD):
                for left in folder.glob(f"{PART}*"):  # of a run that was killed
                    left.unlink()
                # Another process may have been at it meanwhile.
                _fetch_all(_open_links(asked, folder, again), folder, n_workers)
        except OSError as error:
            raise DataError(
                f"{folder} cannot be written: {error.strerror}. Make room there, or free it for "
                "writing, and run the same call again: it goes on",
                path=folder,
            ) from error
    rows = _recorded(folder)
    return links.assign(**{name: [rows[link][name] for link in asked] for name in COLUMNS[2:]})


def _open_links(links: list[tuple[str, str]], folder: Path, again: bool) -> list[tuple[str, str]]:
    """Return the links that are to be asked: not those that are here, or dead for good."""
    rows = _recorded(folder)

    def is_settled(file: str, url: str) -> bool:
        row = rows.get((file, url), {"outcome": ""})
        if row["outcome"] == HERE:
            path = folder / file
            return path.is_file() and file_sha256(path) == row["sha256"]
        return row["outcome"].startswith(FINAL) and not again

    return [link for link in links if not is_settled(*link)]


def _fetch_all(wanted: list[tuple[str, str]], folder: Path, n_workers: int) -> None:
    """Fetch links, those of a host one after another in PER_HOST rows: a slow one holds no more."""
    hosts, done = collections.defaultdict(list), queue.SimpleQueue()
    for file, url in wanted:
        hosts[f"{url}///".split("/")[2]].append((file, url))  # also of what is no address
    stopped = threading.Event()

    def fetch_row(row: list[tuple[str, str]]) -> None:
        for file, url in row:
            if stopped.is_set():
                return
            try:
                done.put(_fetched(folder, file, url))
            except BaseException as error:
                done.put(error)

    # Written anew, without what a run that was killed left of a line.
    whole = pandas.DataFrame(_recorded(folder).values(), columns=COLUMNS)
    whole.to_csv(folder / f"{PART}record", index=False)
    os.replace(folder / f"{PART}record", folder / RECORD)
    with (
        open(folder / RECORD, "a", encoding="utf-8", newline="") as record,
        concurrent.futures.ThreadPoolExecutor(n_workers) as pool,
    ):
        for links in hosts.values():
            for at in range(PER_HOST):
                pool.submit(fetch_row, links[at::PER_HOST])
        try:
            for _ in progress(wanted, "images"):
                row = done.get()
                if isinstance(row, BaseException):
                    raise row
                csv.writer(record, lineterminator="\n").writerow(row)
                record.flush()
        finally:
            stopped.set()


def _fetched(folder: Path, file: str, url: str) -> list:
    """Fetch a link; return its row of the record."""
    with brought_by("models"):
        from biaslib.datasets import _fetcher
    outcome, headers, body = _fetcher.fetched(url)
    part, path, sha256 = folder / f"{PART}{threading.get_ident()}", folder / file, ""
    if not outcome:
        part.write_bytes(body)
        with OPENING:
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
    date, is_here = datetime.date.today().isoformat(), outcome == HERE
    return [file, url, outcome, sha256 if is_here else "", len(body) if is_here else 0, date]


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
    folder, links = Path(folder), require_table(links, "links", ["file"], ["url"])
    rows, found = _recorded(folder), []
    for file, url in zip(links["file"], links["url"], strict=True):
        outcome = rows.get((file, address(url)), {"outcome": NOT_ASKED})["outcome"]
        is_here = os.path.isfile(folder / file)
        found.append(HERE if is_here else GONE if outcome == HERE else outcome)
    return links.assign(outcome=found)


def _recorded(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the last row of every link of a record, without a line that was not ended."""
    path = folder / RECORD
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    if "\n" not in text:
        return {}
    whole = io.StringIO(text[: text.rindex("\n") + 1])
    rows = pandas.read_csv(whole, dtype=str, keep_default_na=False, on_bad_lines="skip")
    if not {"file", "url", "outcome"} <= set(rows):
        raise DataError(f"{path} is no record of downloads: move it away", path=path)
    rows = rows.reindex(columns=COLUMNS, fill_value="").to_dict("records")
    return {(row["file"], row["url"]): row for row in rows}


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
    downloaded = require_table(downloaded, "downloaded", ["test", "group", "outcome"])
    rows = []
    for case, part in downloaded.groupby(["test", "group"]):
        lost = part.loc[part["outcome"] != HERE, "outcome"]
        here = len(part) - len(lost)
        rows.append((*case, len(part), here, here / len(part), counted(lost)))
    return pandas.DataFrame(rows, columns=["test", "group", "links", "here", "share", "reasons"])


def counted(reasons: pandas.Series) -> str:
    """Return how often each reason occurs, in words, the most frequent first."""
    return "; ".join(f"{reason} ({n})" for reason, n in reasons.value_counts().items())


def _judged(part: Path, headers: Any, body: bytes) -> str:
    """Return the outcome of an answer that has arrived."""
    problem = _problem(part)
    if not problem:
        return HERE
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
        open_image(part)
    except ImageError as error:
        return str(error).removeprefix(f"{part} ")
    return ""


def address(url: object) -> str:
    """Return an address that can be written down, without blanks around it; or nothing."""
    inside = AROUND.sub("", url) if isinstance(url, str) else ""
    return inside if is_plain(inside) else ""


def is_plain(text: object) -> bool:
    """Tell whether something is a text that one line of UTF-8 can hold."""
    return isinstance(text, str) and not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def _require_names(links: pandas.DataFrame, folder: Path) -> None:
    """Refuse names of files that would overwrite one another, or anything but an image."""
    root = folder.resolve()
    taken = {root, root / RECORD}
    for row, file in enumerate(links["file"]):
        path = (root / file).resolve() if is_plain(file) else root
        if path in taken or not path.is_relative_to(root):
            raise DataError(
                f"the file {file!r} in row {row} of the links is no name of its own below {folder}",
                path=folder,
                row=row,
                word=file,
            )
        taken.add(path)
