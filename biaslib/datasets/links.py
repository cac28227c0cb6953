"""Images from lists of links: fetched politely, checked, recorded, and counted where links died.

The authors of studies 1 and 4 published addresses, not images. Many are dead by now, and which ones
are is not chance: what is left of a test may be out of balance (:func:`coverage`).
"""

import collections
import concurrent.futures
import contextlib
import datetime
import email.utils
import functools
import io
import ipaddress
import itertools
import os
import queue
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import httpx
import pandas

from biaslib.datasets._arguments import require_path, require_table
from biaslib.datasets._problems import DataError
from biaslib.metrics.inputs import flag, whole_number
from biaslib.models.images import ImageError, open_image, opened
from biaslib.runtime import (
    INVISIBLE,
    NO_WRITING,
    cleaned,
    file_sha256,
    one_at_a_time,
    progress,
    writing,
)
from biaslib.runtime.answers import AnswerError, Asker, RefusedError, blocks, is_page, length

__all__ = ["coverage", "download_images", "outcomes"]

RECORD = "downloads.csv"
OURS = (RECORD, f".{RECORD}.lock")
"""What a folder holds beside images, while one process fills it."""

COLUMNS = ["file", "url", "outcome", "sha256", "bytes", "date"]
HERE = "here"
"""The outcome of a link whose image is here and can be opened; others say what went wrong."""

FINAL = ("error 404", "error 410", "not an image", "refused", "larger than")
"""Outcomes that another run would not change; the others are asked again by the next one."""

BUSY = ("error 429", "error 5")
"""Outcomes of a server that may answer in a moment."""

NOT_ASKED = "not downloaded"
GONE = "downloaded, and gone since"

LARGEST = 30_000_000
"""Bytes of an image at most."""

PIXELS = 40_000_000
"""Pixels of an image at most; one image is opened at a time."""

PER_HOST = 2
"""Connections to one host at a time."""

DEADLINE = 120.0
"""Seconds until an image must have arrived."""

TRIES = 3

PAUSE = 2.0
"""Seconds before a busy server is asked again; twice as many before the third time."""

LONGEST_PAUSE = 60.0
"""Seconds of a server's Retry-After that are waited for at most."""

TEXTS = ("text/", "application/json", "application/xhtml", "application/xml")
"""Types of answers to a person or a program, such as that one must log in."""

PARTS = ".parts-"
"""How the folder begins in which images arrive."""

AROUND = re.compile(rf"^[\s{INVISIBLE}]+|[\s{INVISIBLE}]+$")

NAT64 = ipaddress.ip_network("64:ff9b::/96")
UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of IPv6 that lead to single hosts of the public network."""


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
    if wanted := record.open_ones(asked, again):
        fix = "Make room there, or free it for writing, and run the same call again: it goes on"
        with writing(folder, fix, DataError):
            folder.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(folder / RECORD), _parts(folder) as parts:
                record = _Record(folder)  # another process may have been at it meanwhile
                record.begin()
                wanted = record.open_ones(wanted, again)
                _fetch_all(wanted, _Fetcher(folder, parts, record), n_workers)
    return links.assign(**record.columns(asked))


@contextlib.contextmanager
def _parts(folder: Path) -> Iterator[Path]:
    """Make a folder for what is arriving, and clear away those of runs that were killed."""
    for left in folder.glob(f"{PARTS}*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=PARTS, dir=folder) as parts:
        yield Path(parts)


def _fetch_all(wanted: list[tuple[str, str]], fetcher: "_Fetcher", n_workers: int) -> None:
    """Fetch links, those of each host in turn: a slow one takes up PER_HOST workers at most."""
    waiting = collections.defaultdict(collections.deque)
    for file, url in wanted:
        waiting[_host(url)].append((file, url))
    ended: queue.SimpleQueue = queue.SimpleQueue()
    with concurrent.futures.ThreadPoolExecutor(n_workers) as pool, fetcher.ask:

        def begin(host: str) -> None:
            running = pool.submit(fetcher, *waiting[host].popleft())
            running.add_done_callback(lambda done: ended.put((host, done)))

        for host, links in waiting.items():
            for _ in range(min(PER_HOST, len(links))):
                begin(host)
        try:
            for _ in progress(wanted, "images"):
                host, done = ended.get()
                done.result()
                if waiting[host]:
                    begin(host)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


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
        return [(file, url) for file, url in links if not self.settled(file, url, again)]

    def settled(self, file: str, url: str, again: bool) -> bool:
        """Tell whether a link need not be asked."""
        _, _, outcome, sha256, *_ = self.rows.get((file, url), [""] * 4)
        if outcome == HERE:
            path = self.folder / file
            return path.is_file() and file_sha256(path) == sha256
        return outcome.startswith(FINAL) and not again

    def add(self, file: str, url: str, outcome: str, sha256: str = "", size: int = 0) -> None:
        """Note what became of a link."""
        date = datetime.date.today().isoformat()
        row = [file, url, outcome, sha256, str(size), date]
        with self.lock:
            self._write(row)
            self.rows[file, url] = row

    def _write(self, values: list[str]) -> None:
        line = pandas.DataFrame([values]).to_csv(index=False, header=False)
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(line)


class _Fetcher:
    """Fetches one link after another, from many threads."""

    def __init__(self, folder: Path, parts: Path, record: _Record) -> None:
        self.folder, self.parts, self.record = folder, parts, record
        self.numbers, self.opening = itertools.count(), threading.Lock()
        self.ask = Asker(_require_public, _public_addresses)

    def __call__(self, file: str, url: str) -> None:
        part = self.parts / str(next(self.numbers))
        try:
            self._keep(file, url, part)
        except (OSError, ValueError) as error:  # such as a name that is longer than the disk takes
            if getattr(error, "errno", None) in NO_WRITING:
                raise
            self.record.add(file, url, f"cannot be written: {getattr(error, 'strerror', error)}")
        finally:
            part.unlink(missing_ok=True)

    def _keep(self, file: str, url: str, part: Path) -> None:
        outcome = self._tried(url, part)
        if outcome != HERE:
            self.record.add(file, url, outcome)
            return
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        size, sha256 = part.stat().st_size, file_sha256(part)
        os.replace(part, path)
        self.record.add(file, url, HERE, sha256, size)

    def _tried(self, url: str, part: Path) -> str:
        if not url:
            return "refused: no address"
        if url.startswith("//"):
            return "refused: an address without https: before it"
        for attempt in range(TRIES):
            outcome, asked_to_wait = self._fetch(url, part)
            if not outcome.startswith(BUSY) or attempt == TRIES - 1:
                break
            sleep(max(PAUSE * 2**attempt, asked_to_wait))
        return outcome

    def _fetch(self, url: str, part: Path) -> tuple[str, float]:
        """Return the outcome, and how many seconds the server asks to be left alone."""
        try:
            with self.ask(url, DEADLINE) as response:
                if response.status_code != 200:
                    return f"error {response.status_code}", _retry_after(response)
                with open(part, "wb") as stream:
                    for block in blocks(response, LARGEST):
                        stream.write(block)
        except AnswerError as error:
            return str(error), 0.0
        return self._judged(part, response), 0.0

    def _judged(self, part: Path, response: httpx.Response) -> str:
        """Return the outcome of an answer that has arrived."""
        with self.opening:
            problem = _problem(part)
        if not problem or problem.startswith("larger"):
            return problem or HERE
        with open(part, "rb") as stream:
            start = stream.read(512)
        if not start:
            return "an empty answer"
        if response.headers.get("Content-Type", "").lower().startswith(TEXTS) or is_page(start):
            return "a page in place of an image"
        if length(response) is None and "Transfer-Encoding" not in response.headers:
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


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds of the header Retry-After, which gives seconds or a date; 0 without it."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return min(float(value), LONGEST_PAUSE)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    now = datetime.datetime.now(date.tzinfo)
    return min(max((date - now).total_seconds(), 0.0), LONGEST_PAUSE)


def address(url: object) -> str:
    """Return an address that can be written down, without blanks around it; or nothing."""
    try:
        return AROUND.sub("", url.encode().decode())
    except (AttributeError, UnicodeEncodeError):
        return ""


def _host(url: str) -> str:
    """Return what stands between the second and the third slash, of any text."""
    return f"{url}///".split("/")[2]


def _require_public(request: httpx.Request) -> None:
    """Refuse addresses that are not http or https, or lead into a private network."""
    if request.url.scheme not in ("http", "https"):
        raise RefusedError("refused: not an http or https address")
    with contextlib.suppress(socket.gaierror):
        if not _is_public(request.url.host):
            raise RefusedError("refused: address of a private network")


def _is_public(host: str) -> bool:
    return all(_leads_out(ipaddress.ip_address(each)) for each in _addresses(host))


def _leads_out(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Tell whether an address is one host's of the public network, one that it embeds included.

    Examples
    --------
    >>> every = ("8.8.8.8", "64:ff9b::808:808", "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1")
    >>> [_leads_out(ipaddress.ip_address(each)) for each in every]
    [True, True, False, False, False]
    """
    if address.version == 4:
        return address.is_global and not address.is_multicast
    embedded = address.ipv4_mapped
    if address in NAT64:
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if embedded:
        return _leads_out(embedded)
    tunnelled = address.sixtofour or address.teredo
    return address.is_global and address in UNICAST and not tunnelled


def _addresses(host: str) -> list[str]:
    return [found[4][0] for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _public_addresses(host: str) -> list[str]:
    """Return the addresses of a host, each checked: names may lead elsewhere a moment later."""
    try:
        found = _addresses(host)
    except socket.gaierror:
        return []
    if not all(_is_public(each) for each in found):
        raise RefusedError("refused: address of a private network")
    return found


def _require_names(links: pandas.DataFrame, folder: Path) -> None:
    root, seen = folder.resolve(), {}
    for row, file in enumerate(links["file"]):
        wrong = functools.partial(DataError, path=folder, row=row, word=file)
        if not isinstance(file, str) or not file.strip():
            raise wrong(
                f"row {row} of the links, from 0, has no file; give it a path below {folder}"
            )
        path = _resolved(root / file)
        if path == root or not path.is_relative_to(root):
            raise wrong(f"the file {file} lies outside {folder}; give a path below it")
        first = cleaned(path.relative_to(root).parts[0]).partition(":")[0].casefold().rstrip(". ")
        if first in OURS or first.startswith(PARTS):
            raise wrong(f"the file {file} is one that {folder} needs itself; give another name")
        if seen.setdefault(path, row) != row:
            raise wrong(f"two links have the file {file}; give each its own name")


def _resolved(path: Path) -> Path:
    """Return where a path leads; a name that no disk takes, such as one of 300 letters, nowhere."""
    with contextlib.suppress(OSError, ValueError):
        return path.resolve()
    return Path(os.path.abspath(path))
