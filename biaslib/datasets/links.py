"""Images from lists of links: fetched politely, checked, recorded, and counted where links died.

The authors of studies 1 and 4 published addresses, not images. Many are dead by now, and which ones
are is not chance: what is left of a test may be out of balance (:func:`coverage`).
"""

import collections
import concurrent.futures
import contextlib
import datetime
import email.utils
import ipaddress
import os
import socket
import threading
from pathlib import Path
from time import sleep

import httpx
import pandas

from biaslib.datasets._problems import DataError
from biaslib.models.images import ImageError, open_image
from biaslib.runtime import file_sha256, progress

__all__ = ["coverage", "download_images", "outcomes"]

RECORD = "downloads.csv"
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

PER_HOST = 2
"""Connections to one host at a time."""

SECONDS = 20
TRIES = 3

PAUSE = 2.0
"""Seconds before a busy server is asked again; twice as many before the third time."""

LONGEST_PAUSE = 60.0
"""Seconds of a server's Retry-After that are waited for at most."""

HEADERS = {"User-Agent": "biaslib (research companion; image links of published data sets)"}


def download_images(
    links: pandas.DataFrame, folder: str | Path, n_workers: int = 16, again: bool = False
) -> pandas.DataFrame:
    """Download the images of links, a few at a time from any one host.

    Only http and https addresses of public hosts are asked, redirects included. An image gets its
    name once it is complete and can be opened. A server that is busy (429, or 5xx) is asked again
    after a pause, the one that it names if it names one. What became of every link is written to
    ``downloads.csv`` in the folder. When called again, images that are here and unchanged are left,
    and so are links that are dead for good: not found, gone, not an image, too large, or refused by
    us. All others are asked again, so that a run without a network settles nothing.

    Parameters
    ----------
    links
        Columns *file* (path below the folder) and *url*.
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
        If two links have one file, or a file lies outside the folder.
    """
    folder = Path(folder)
    _require_names(links, folder)
    record = _Record(folder)
    wanted = [row for row in links.itertuples() if not record.settled(row.file, row.url, again)]
    fetcher = _Fetcher(folder, record)
    with concurrent.futures.ThreadPoolExecutor(n_workers) as pool, fetcher:
        running = [pool.submit(fetcher, row.file, row.url) for row in wanted]
        try:
            for each in progress(concurrent.futures.as_completed(running), "images", len(running)):
                each.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return links.merge(record.table(), on=["file", "url"], how="left")


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
    folder = Path(folder)
    known = _recorded(folder / RECORD) if (folder / RECORD).is_file() else links.iloc[:0]
    said = {(row.file, row.url): row.outcome for row in known.itertuples()}
    found = [
        _outcome(os.path.isfile(folder / file), said.get((file, url), NOT_ASKED))
        for file, url in zip(links["file"], links["url"], strict=True)
    ]
    return links.assign(outcome=found)


def _outcome(is_here: bool, recorded: str) -> str:
    if is_here:
        return HERE
    return GONE if recorded == HERE else recorded


def _recorded(path: Path) -> pandas.DataFrame:
    """Return the last row of every file of a record."""
    rows = pandas.read_csv(path, dtype=str, keep_default_na=False, on_bad_lines="skip")
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
        folder.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self._write(COLUMNS)

    def table(self) -> pandas.DataFrame:
        """Return the last row of every file."""
        return _recorded(self.path)

    def settled(self, file: str, url: str, again: bool) -> bool:
        known = self._known.get((file, url))
        if known is None:
            return False
        if known["outcome"] == HERE:
            path = self.folder / file
            return path.is_file() and file_sha256(path) == known["sha256"]
        return known["outcome"].startswith(FINAL) and not again

    @property
    def _known(self) -> dict:
        if not hasattr(self, "_rows"):
            self._rows = {(r["file"], r["url"]): r for r in self.table().to_dict("records")}
        return self._rows

    def add(self, file: str, url: str, outcome: str, sha256: str = "", size: int = 0) -> None:
        date = datetime.date.today().isoformat()
        self._write([file, url, outcome, sha256, str(size), date])

    def _write(self, values: list[str]) -> None:
        line = pandas.DataFrame([values]).to_csv(index=False, header=False)
        with self.lock, open(self.path, "a", encoding="utf-8") as stream:
            stream.write(line)


class _Fetcher:
    """Fetches one link after another, from many threads."""

    def __init__(self, folder: Path, record: _Record) -> None:
        self.folder, self.record = folder, record
        self.hosts: dict = collections.defaultdict(lambda: threading.Semaphore(PER_HOST))
        self.client = httpx.Client(
            headers=HEADERS,
            timeout=SECONDS,
            follow_redirects=True,
            event_hooks={"request": [_require_public]},
        )

    def __enter__(self) -> "_Fetcher":
        return self

    def __exit__(self, *error: object) -> None:
        self.client.close()

    def __call__(self, file: str, url: str) -> None:
        try:
            self._keep(file, url)
        except (OSError, ValueError) as error:  # such as a name that is longer than the disk takes
            self.record.add(file, url, f"cannot be written: {getattr(error, 'strerror', error)}")

    def _keep(self, file: str, url: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        with self.hosts[_host(url)]:
            outcome = self._tried(url, part)
        if outcome == HERE:
            try:
                open_image(part)
            except ImageError as error:
                outcome = f"not an image: {str(error).removeprefix(f'{part} ')}"
        if outcome != HERE:
            part.unlink(missing_ok=True)
            self.record.add(file, url, outcome)
            return
        size, sha256 = part.stat().st_size, file_sha256(part)
        os.replace(part, path)
        self.record.add(file, url, HERE, sha256, size)

    def _tried(self, url: str, part: Path) -> str:
        if not url:
            return "refused: no address"
        for attempt in range(TRIES):
            outcome, asked_to_wait = self._fetch(url, part)
            if not outcome.startswith(BUSY) or attempt == TRIES - 1:
                break
            sleep(max(PAUSE * 2**attempt, asked_to_wait))
        return outcome

    def _fetch(self, url: str, part: Path) -> tuple[str, float]:
        """Return the outcome, and how many seconds the server asks to be left alone."""
        try:
            with self.client.stream("GET", url) as response, open(part, "wb") as stream:
                if response.status_code != 200:
                    return f"error {response.status_code}", _retry_after(response)
                for block in response.iter_bytes():
                    stream.write(block)
                    if stream.tell() > LARGEST:
                        return f"larger than {LARGEST / 1e6:.0f} MB", 0.0
        except _RefusedError as error:
            return str(error), 0.0
        except httpx.HTTPError as error:
            return f"no answer: {type(error).__name__}", 0.0
        except (httpx.InvalidURL, ValueError):  # no host, a label of 64 letters, a NUL, a bad IDN
            return "refused: not an address", 0.0
        return HERE, 0.0


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds of the header Retry-After, which gives seconds or a date; 0 without it."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return min(float(value), LONGEST_PAUSE)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    now = datetime.datetime.now(date.tzinfo)
    return min(max((date - now).total_seconds(), 0.0), LONGEST_PAUSE)


def _host(url: str) -> str:
    """Return what stands between the second and the third slash, of any text."""
    return f"{url}///".split("/")[2]


class _RefusedError(Exception):
    """An address that is not asked."""


def _require_public(request: httpx.Request) -> None:
    """Refuse addresses that are not http or https, or lead into a private network."""
    if request.url.scheme not in ("http", "https"):
        raise _RefusedError("refused: not an http or https address")
    with contextlib.suppress(socket.gaierror):
        if not _is_public(request.url.host):
            raise _RefusedError("refused: address of a private network")


def _is_public(host: str) -> bool:
    found = socket.getaddrinfo(host, None)
    return all(ipaddress.ip_address(each[4][0]).is_global for each in found)


def _require_names(links: pandas.DataFrame, folder: Path) -> None:
    repeated = links.loc[links["file"].duplicated(), "file"]
    if len(repeated):
        raise DataError(f"two links have the file {repeated.iloc[0]}; give each its own name")
    root = folder.resolve()
    for file in links["file"]:
        if not _resolved(root / file).is_relative_to(root):
            raise DataError(f"the file {file} lies outside {folder}; give a path below it")


def _resolved(path: Path) -> Path:
    """Return where a path leads; a name that no disk takes, such as one of 300 letters, nowhere."""
    with contextlib.suppress(OSError, ValueError):
        return path.resolve()
    return Path(os.path.abspath(path))
