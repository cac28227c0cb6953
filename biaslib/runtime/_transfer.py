"""Downloads that go on where they stopped, over encrypted connections only.

The maintained libraries were looked at first: pooch starts every file anew, and huggingface_hub 2
resumes inside one call and keeps nothing when the process ends.
"""

import errno
import os
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path

from biaslib.runtime._lock import DownloadError, one_at_a_time
from biaslib.runtime._profile import in_book

BLOCK = 1 << 20
SECONDS = 30
"""How long a server may be silent."""

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
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    with one_at_a_time(path):
        if path.is_file() and path.stat().st_mtime > begun:
            return path
        return _download(url, path, headers, check)


def _download(
    url: str, path: Path, headers: Mapping[str, str] | None, check: Callable[[Path], None] | None
) -> Path:
    part = path.with_name(f"{path.name}.part")
    try:
        _receive(url, part, dict(headers or {}))
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(_refusal(url, error.code), error.code) from error
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error) or type(error).__name__
        raise DownloadError(_unreachable(url, reason, part)) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(f"the disk of {part.parent} is full. {_elsewhere()}") from error
        raise
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


def _receive(url: str, part: Path, headers: dict[str, str]) -> None:
    start, version = _already(part)
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": version}
    request = urllib.request.Request(url, headers={"User-Agent": "biaslib", **headers})
    try:
        response = urllib.request.build_opener(_Redirects).open(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        error.close()
        part.unlink()
        return _receive(url, part, {k: v for k, v in headers.items() if "Range" not in k})
    with response:
        start = start if response.status == 206 else 0
        _save(response, part, start)


def _already(part: Path) -> tuple[int, str]:
    """Return how much has arrived and the version it belongs to; nothing if that is unknown."""
    if not part.exists() or not _note(part).exists():
        return 0, ""
    return part.stat().st_size, _note(part).read_text(encoding="utf-8")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _save(response, part: Path, start: int) -> None:
    from tqdm.auto import tqdm

    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    _require_space(part.parent, (total or 0) - start)
    _keep_version(response, part)
    label = part.name.removesuffix(".part")
    bar = tqdm(
        desc=label, total=total, initial=start, unit="B", unit_scale=True, delay=1, leave=False,
        disable=in_book(),
    )  # fmt: skip
    with bar, open(part, "ab" if start else "wb") as stream:
        while block := response.read(BLOCK):
            stream.write(block)
            bar.update(len(block))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(
            f"the connection broke after {part.stat().st_size:,} of {total:,} bytes"
        )


def _keep_version(response, part: Path) -> None:
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
            f"{free / 1e9:.1f} GB free. {_elsewhere()}"
        )


def _elsewhere() -> str:
    return "Make room there, or set BIASLIB_CACHE to a folder on a larger disk"


def _require_encryption(url: str) -> None:
    address = urllib.parse.urlsplit(url)
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


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects over encrypted connections, and takes no token to another host."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        try:
            _require_encryption(newurl)
        except DownloadError:
            fp.close()
            raise
        follower = super().redirect_request(req, fp, code, msg, headers, newurl)
        hosts = [urllib.parse.urlsplit(each).netloc for each in (req.full_url, newurl)]
        if follower is not None and hosts[0] != hosts[1]:
            follower.remove_header("Authorization")
        return follower
