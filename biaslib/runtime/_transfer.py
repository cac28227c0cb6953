"""Downloads that go on where they stopped, over encrypted connections only.

The maintained libraries were looked at first: pooch starts every file anew, and huggingface_hub 2
resumes inside one call and keeps nothing when the process ends.
"""

import os
import re
import shutil
import time
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from biaslib.runtime._lock import DownloadError, one_at_a_time, writing
from biaslib.runtime._profile import in_book

if TYPE_CHECKING:
    import httpx

BEGIN = 120
"""Seconds until the first megabyte has arrived."""

PACE = 600
"""Seconds for each megabyte after it."""

UNANNOUNCED = 10e9
"""Bytes at most of a file whose length the server does not give."""

ELSEWHERE = "Make room there, or set BIASLIB_CACHE to a folder on a larger disk"

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def download(
    url: str,
    path: str | Path,
    headers: Mapping[str, str] | None = None,
    check: Callable[[Path], None] | None = None,
) -> Path:
    """Download a file, or what is still missing of it.

    What has arrived is kept beside the file, under its name and ``.part``, until it is complete
    and checked. If another process is at it, this one waits and takes its file.

    Parameters
    ----------
    url
        An https address; http is taken from this machine alone.
    path
        Where the file goes.
    headers
        Sent with the request, and to no other host it is redirected to.
    check
        Called with the complete file before it gets its name; what it raises is raised, and the
        file is removed.

    Raises
    ------
    DownloadError
        If the address is not encrypted, the server cannot be reached or refuses, the disk is too
        small, or the connection broke: then the same call goes on from there.
    """
    _require_encryption(url)
    path = Path(path)
    begun = time.time()
    with writing(path.parent, ELSEWHERE):
        path.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(path):
            if path.is_file() and path.stat().st_mtime > begun:
                return path
            return _download(url, path, headers, check)


def _download(
    url: str, path: Path, headers: Mapping[str, str] | None, check: Callable[[Path], None] | None
) -> Path:
    from biaslib.runtime.answers import AnswerError

    part = path.with_name(f"{path.name}.part")
    try:
        _receive(url, part, headers or {})
    except AnswerError as error:
        reason = f"{error} ({error.__cause__})" if error.__cause__ else str(error)
        raise DownloadError(_unreachable(url, reason, part)) from error
    return _finished(part, path, check)


def _finished(part: Path, path: Path, check: Callable[[Path], None] | None) -> Path:
    try:
        if check is not None:
            check(part)
    except DownloadError:
        part.unlink()
        raise
    finally:
        _note(part).unlink(missing_ok=True)
    os.replace(part, path)
    return path


def _receive(url: str, part: Path, headers: Mapping[str, str]) -> None:
    from biaslib.runtime.answers import Asker

    start, version = _already(part)
    ranged = {"Range": f"bytes={start}-", "If-Range": version} if start else {}
    asker = Asker(lambda request: _require_encryption(str(request.url)))
    with asker, asker(url, BEGIN, {**headers, **ranged}) as response:
        if response.status_code != 416 or not start:
            return _save(response, part, *_place(response, url, part, start))
    part.unlink()
    return _receive(url, part, headers)


def _place(response: "httpx.Response", url: str, part: Path, asked: int) -> tuple[int, int | None]:
    """Return where an answer begins in its file, and how long the file is, if that is known."""
    from biaslib.runtime.answers import length

    status, size = response.status_code, length(response)
    if status not in (200, 206) or (status == 206 and not asked):
        raise DownloadError(_refusal(url, status), status)
    if response.headers.get("Content-Type", "").startswith("text/html"):
        name = part.name.removesuffix(".part")
        raise DownloadError(f"{url} answers with a web page in place of {name}", status)
    if status == 200:
        if size is None and "Transfer-Encoding" not in response.headers:
            raise DownloadError(
                f"{url} gives no length, and a part of the file could not be told from the whole. "
                "Try again later, or download it in a browser"
            )
        return 0, size
    span = response.headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", span)
    first, last, total = map(int, found.groups()) if found else (0, 0, 0)
    if first != asked or last + 1 != total or size not in (None, total - first):
        part.unlink()
        raise DownloadError(
            f"{url} answers with another part ({span or 'which one is not said'}) than the one "
            f"from byte {asked} on. What had arrived is removed; the same call begins anew"
        )
    return asked, total


def _already(part: Path) -> tuple[int, str]:
    """Return how much has arrived and the version it belongs to; nothing if that is unknown."""
    if not part.exists() or not _note(part).exists():
        return 0, ""
    return part.stat().st_size, _note(part).read_text(encoding="utf-8")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _save(response: "httpx.Response", part: Path, start: int, total: int | None) -> None:
    from tqdm.auto import tqdm

    from biaslib.runtime.answers import BROKEN, AnswerError, blocks

    _require_space(part.parent, (total or 0) - start)
    _keep_version(response, part)
    label = part.name.removesuffix(".part")
    bar = tqdm(
        desc=label, total=total, initial=start, unit="B", unit_scale=True, delay=1, leave=False,
        disable=in_book(),
    )  # fmt: skip
    size, largest = start, UNANNOUNCED if total is None else total - start
    try:
        with bar, open(part, "ab" if start else "wb") as stream:
            for block in blocks(response, largest, PACE):
                stream.write(block)
                size += len(block)
                bar.update(len(block))
    except BROKEN as error:
        of = "" if total is None else f" of {total:,}"
        raise AnswerError(f"the connection broke after {size:,}{of} bytes") from error
    if total is not None and size < total:
        raise AnswerError(f"the connection broke after {size:,} of {total:,} bytes")


def _keep_version(response: "httpx.Response", part: Path) -> None:
    """Note which version of the file is arriving, so that no other one is joined to it."""
    version = response.headers.get("ETag") or response.headers.get("Last-Modified") or "W/"
    if version.startswith("W/"):
        _note(part).unlink(missing_ok=True)
    else:
        _note(part).write_text(version, encoding="utf-8")


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DownloadError(
            f"{needed / 1e9:.1f} GB are to be downloaded and the disk of {folder} has "
            f"{free / 1e9:.1f} GB free. {ELSEWHERE}"
        )


def _require_encryption(url: str) -> None:
    try:
        address = urllib.parse.urlsplit(url)
    except ValueError:
        raise DownloadError(f"{url} is not an address; check how it is written") from None
    if address.scheme != "https" and not (
        address.scheme == "http" and address.hostname in LOOPBACK
    ):
        raise DownloadError(
            f"{url} is not an https address; weights are not downloaded over an open connection"
        )


def _refusal(url: str, code: int) -> str:
    what = {401: "asks for a token", 403: "refuses access", 404: "is not there", 410: "is gone"}
    meaning = what.get(code, f"was answered with the error {code}")
    return f"{url} {meaning}{'' if code in what else '; try again later'}"


def _unreachable(url: str, reason: object, part: Path) -> str:
    kept = f"{part.stat().st_size:,} bytes are kept" if part.exists() else "nothing was downloaded"
    return (
        f"could not download {url}: {reason}. Check the connection and run the same call again; "
        f"{kept} and it goes on from there. Without a network, use the profile 'planted'"
    )
