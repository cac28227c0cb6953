"""Getting checkpoints: downloaded once, checked by SHA-256, never run as code.

Repositories of the model hub come by huggingface_hub, files of other hosts by requests. They are
kept in one folder, :func:`cache_folder`, at paths like their addresses.

A file is held to the SHA-256 that the hub or the registry gives. Files of other hosts have none
there but where a registry row gives ``sha256``: what is downloaded first is written to the lock
file (:class:`biaslib.runtime.Lock`), which travels with the results, and later ones are held to it.
"""

import contextlib
import dataclasses
import glob
import hashlib
import os
import re
import shutil
import urllib.parse
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from biaslib.checkpoints.entries import ENTRIES, Entry
from biaslib.checkpoints.files import (
    OF_IMAGES,
    OF_SENTENCES,
    TOKENIZERS,
    files_of,
    files_read,
    matching,
    sha256_of,
    weights_among,
)
from biaslib.checkpoints.names import SITE
from biaslib.errors import CheckpointError, refusal
from biaslib.runtime import ChecksumError, Lock, file_sha256, in_book, one_at_a_time

__all__ = ["cache_folder", "fetch", "fetch_data", "kept", "listed_bytes", "settings_of"]

TRIES = 20
"""How often a connection that breaks is gone on with in one call."""

TELLING = ("config.json", "open_clip_config.json", "adapter_config.json", *OF_SENTENCES)
"""Settings that tell the family of a model, and what it adds to the network."""

BRACES = re.compile(r"\{([^{}]+)\}$")
COMMIT = re.compile(r"[0-9a-f]{40}")
BY_HAND = "by-hand"

SAVED = (".bin", ".ckpt", ".model", ".pt", ".pth")
SAVED_BEGIN = (b"PK", b"\x80")
"""What PyTorch saves is called, and how it begins: an archive, or pickled."""

PAGES = (b"<!doctype", b"<!--", b"<html", b"<head", b"<body", b"<title", b"<?xml", b"<script")
"""How web pages begin, which some servers send in place of a file."""

STEPS = "book/model_files.md"
"""The page with the steps by hand for each file."""

OFFLINE = "Without a network, use the profile 'planted'"


def cache_folder() -> Path:
    """Return the folder of downloads: ``BIASLIB_CACHE``, or one in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BIASLIB_CACHE") or Path(caches) / "biaslib" / "checkpoints")


def fetch(source: Entry | str, revision: str | None = None) -> Path:
    """Return a checkpoint on this disk, downloaded if it is not there yet.

    A file of several addresses is asked for at each in turn, the whole of it each time.
    ``BIASLIB_MIRROR`` names an address that has copies of the files of other hosts than the hub:
    ``https://host/path`` is asked for at ``<mirror>/host/path``. The hub's own is ``HF_ENDPOINT``.

    Parameters
    ----------
    source
        An entry of ``biaslib.models.REGISTRY``, or a source as its table writes it:
        ``hub owner/name``, ``url https://...`` or ``by hand file from https://...``. An address
        that ends in names in braces, ``https://host/folder/{one,two}``, is a folder of such files.
    revision
        A commit, tag or branch of the hub; ``None`` takes the one of the lock file, else that of
        the entry, else ``main``.

    Returns
    -------
    pathlib.Path
        The folder of a repository or of several files, or the file of another address.

    Raises
    ------
    CheckpointError
        If it cannot be had, or is not the file that was declared or recorded. The message names
        the file, the addresses, and the place of the steps by hand.
    ValueError
        If the source is none of the three kinds.

    Warns
    -----
    UserWarning
        If an address did not answer and another one did, or a damaged file of the hub is fetched
        again.
    """
    entry = source if isinstance(source, Entry) else _entry(source)
    lock = Lock()
    try:
        if entry.source.startswith("hub "):
            revision = revision or lock.revision(entry.source) or entry.revision
            path = place = _from_hub(entry, revision, lock)
        else:
            place, names, addresses = place_of(entry, cache_folder())
            _fetch_files(entry, place, names, addresses, lock)
            path = place if BRACES.search(addresses[0] if addresses else "") else place / names[0]
        _add_beside(entry, place, lock)
    except ChecksumError as error:
        raise CheckpointError(str(error), path=error.path, word=error.word) from error
    return path


def _entry(source: str) -> Entry:
    return Entry("", source, "", 0, "", "")


def _repository(entry: Entry) -> str:
    return entry.source.removeprefix("hub ")


# Repositories of the hub


def _from_hub(entry: Entry, revision: str, lock: Lock) -> Path:
    """Return the folder of a repository's commit; where the hub does not help, of what is here."""
    open_clip = entry.family == "open_clip"
    names = list(lock.files(entry.source)) if revision == lock.revision(entry.source) else []
    if not weights_among(names, open_clip):
        try:
            revision, sizes = _listing(entry, revision)
            names = [*sizes]
        except CheckpointError:
            here = kept(_repository(entry), revision)
            if here is None:
                raise
            revision, names = here.name, files_of(here)
        lock.require_revision(entry.source, revision)
        if not weights_among(names, open_clip):
            raise CheckpointError(
                f"the repository {_repository(entry)} holds no weights under a name that is known "
                f"here, only {', '.join(sorted(names)) or 'nothing'}"
            )
        names = files_read(names, open_clip)
    folder = _snapshot(entry, revision, names)
    _compare(entry.source, revision, folder, names, lock)
    return folder


def _snapshot(entry: Entry, commit: str, names: Sequence[str]) -> Path:
    """Return the folder of a commit with some of its files; none is kept that is not the hub's."""
    folder = _snapshots(_repository(entry)) / commit
    if not all((folder / name).is_file() for name in names):
        patterns = [glob.escape(name) for name in names]
        _download_from_hub(entry, commit, patterns, cache_dir=cache_folder() / "hub")
    for path in filter(_is_damaged, (folder / name for name in names)):
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        problem = "is not the file of the hub and was deleted: run the same call again, or place it"
        raise refusal(path, f"{problem} by hand: {_steps(entry)}")
    return folder


def _download_from_hub(entry: Entry, revision: str, patterns: list[str], **where: Any) -> None:
    """Let huggingface_hub download the files of a repository that match."""
    from huggingface_hub import snapshot_download

    how = {"revision": revision or None, "endpoint": os.environ.get("HF_ENDPOINT", SITE)}
    with _asking(entry):
        snapshot_download(_repository(entry), allow_patterns=patterns, **how, **where)


def _listing(entry: Entry, revision: str) -> tuple[str, dict[str, int]]:
    """Ask the hub for the commit of a revision, and for the bytes of its files by name."""
    from huggingface_hub import HfApi

    name, api = _repository(entry), HfApi(os.environ.get("HF_ENDPOINT", SITE))
    with _asking(entry):
        info = api.model_info(name, revision=revision or None, files_metadata=True, timeout=30)
    if not COMMIT.fullmatch(info.sha or ""):
        raise CheckpointError(
            f"{api.endpoint} gives {info.sha!r} as the commit of {name}, and a commit is 40 "
            "hexadecimal digits: check HF_ENDPOINT, which names another server than the hub"
        )
    return info.sha, {file.rfilename: file.size or 0 for file in info.siblings or []}


def _snapshots(name: str) -> Path:
    """Return where huggingface_hub keeps the commits of a repository."""
    return cache_folder() / "hub" / f"models--{name.replace('/', '--')}" / "snapshots"


def _is_damaged(path: Path) -> bool:
    """Compare a file with the name of its blob, SHA-256 of a large one and git's of a small one."""
    expected = path.resolve().name
    if not path.is_symlink():
        return False  # a disk without links keeps no blobs
    if len(expected) == 64:
        return sha256_of(path) != expected
    content = path.read_bytes()
    content = b"blob %d\0" % len(content) + content
    return hashlib.sha1(content, usedforsecurity=False).hexdigest() != expected


@contextlib.contextmanager
def _asking(entry: Entry) -> Iterator[None]:
    """Say of a hub that refuses or does not answer what was asked for, and what can be done."""
    try:
        yield
    except Exception as error:  # the hub's library has changed the one it uses for connections
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise CheckpointError(
            f"the hub does not give {_repository(entry)} ({type(error).__name__}: {reason}). Check "
            "its spelling, owner/name (no such folder is here), the connection and HF_ENDPOINT; "
            "accept its terms on its "
            "page if it has any, and set a token as HF_TOKEN; or place the files by hand: "
            f"{_steps(entry)}. {OFFLINE}"
        ) from error


def _steps(entry: Entry) -> str:
    """Return the place of the steps by hand for a model: the page, and the part of it."""
    known = any(row.name == entry.name for row in ENTRIES)
    return f"{STEPS}#{f'files-{entry.name}' if known else 'files-by-hand'}"


def kept(name: str, revision: str = "") -> Path | None:
    """Return the folder of a repository of the hub that is on this disk already; None if it is not.

    It is that of a revision, or of the one in the lock file, or else what was downloaded last.

    Examples
    --------
    >>> kept("owner/never-downloaded")
    """
    folders = _snapshots(name).glob(revision or Lock().revision(f"hub {name}") or "*")
    here = [folder for folder in folders if weights_among(files_of(folder), open_clip=True)]
    return max(here, key=os.path.getmtime, default=None)


def listed_bytes(name: str, revision: str = "") -> int:
    """Return how many bytes of a repository of the hub would be downloaded; nothing is.

    Raises
    ------
    CheckpointError
        If the hub does not have it or refuses it.
    """
    _, sizes = _listing(_entry(f"hub {name}"), revision)
    return sum(sizes[file] for file in files_read(sizes, open_clip=True))


def settings_of(name: str, revision: str, folder: Path) -> None:
    """Download what tells the family of a repository of the hub, a few kilobytes, into a folder.

    Raises
    ------
    CheckpointError
        As of :func:`listed_bytes`.
    """
    patterns = [*TELLING, "[1-9]*_*/config.json"]
    _download_from_hub(_entry(f"hub {name}"), revision, patterns, local_dir=folder)


def fetch_data(repository: str, pattern: str, folder: Path) -> None:
    """Download files of a data set on the hub into a folder; what is there already is left.

    A name such as ``train-00000-of-00002.parquet`` says how many files belong together. A folder
    in which somebody has put other files is left as it is. The lock file records the files as they
    were first seen, and they are held to it.

    Raises
    ------
    CheckpointError
        If the hub does not have the files or refuses them.
    ChecksumError
        If a file is another than the recorded one.
    """
    entry = _entry(f"hub {repository}")
    files = (path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts)
    own = not any(folder.glob(pattern)) and next(files, None) is not None
    if not own and not _whole(folder, pattern):
        _download_from_hub(entry, "", [pattern], repo_type="dataset", local_dir=folder)
        if not _whole(folder, pattern):  # an unanswered request is none of the library's errors
            raise CheckpointError(
                f"the hub does not give all files {pattern} of the data set {repository}: check "
                "the connection and HF_ENDPOINT and run the same call again, or put them into "
                f"{folder}",
                path=folder,
            )
    names = sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
    if names:
        _compare(f"data {repository}", "", folder, names, Lock())


def _whole(folder: Path, pattern: str) -> bool:
    """Tell whether all files of a pattern are there: one, or as many as their names say."""
    parts = [path.name for path in folder.glob(pattern)]
    number = re.search(r"-of-0*(\d+)", parts[0]) if parts else None
    return len(parts) >= (int(number[1]) if number else 1)


def _compare(source: str, revision: str, folder: Path, names: Iterable[str], lock: Lock) -> None:
    """Compare files of a source with the lock file, which records them if they are new to it."""
    paths = {name: folder / name for name in names}
    files = {n: {"sha256": sha256_of(p), "bytes": p.stat().st_size} for n, p in paths.items()}
    lock.verify(source, revision, files)


def _add_beside(entry: Entry, folder: Path, lock: Lock) -> None:
    """Put tokenizer and lists of another source beside weights that come without."""
    if entry.companion and not any((folder / name).is_file() for name in TOKENIZERS):
        companion = dataclasses.replace(entry, source=entry.companion)
        commit, sizes = _listing(companion, lock.revision(entry.companion))
        names = matching(sizes, (*OF_IMAGES, *TOKENIZERS))
        other = _snapshot(companion, commit, names)
        _compare(entry.companion, commit, other, names, lock)
        for name in names:
            shutil.copyfile(other / name, folder / f".{name}")
            os.replace(folder / f".{name}", folder / name)
    for url in entry.beside:
        beside = dataclasses.replace(entry, source=f"url {url}", mirrors=(), sha256="")
        _fetch_files(beside, folder, [url.rpartition("/")[2]], [url], lock)


# Files of other hosts


def place_of(entry: Entry, root: Path) -> tuple[Path, list[str], list[str]]:
    """Return the folder of an entry's files, their names, and their addresses in order."""
    if by_hand := re.fullmatch(r"by hand (\S+) from \S+", entry.source):
        return root / BY_HAND, [by_hand[1]], [*entry.mirrors]
    if not entry.source.startswith("url "):
        raise ValueError(
            f"{entry.source!r} is not a source that can be fetched; write 'hub owner/name', "
            "'url https://...' or 'by hand file from https://...'"
        )
    address = entry.source.removeprefix("url ")
    parts = urllib.parse.urlsplit(address)
    path = root / "url" / (parts.hostname or "") / parts.path.lstrip("/")
    several = BRACES.search(address)
    names = several[1].split(",") if several else [path.name]
    return path.parent, names, [address, *entry.mirrors]


def _fetch_files(
    entry: Entry, folder: Path, names: list[str], addresses: list[str], lock: Lock
) -> None:
    """Download files that are not there, and compare all with the registry and the lock file."""
    for name in names:
        path = folder / name
        pinned = entry.sha256 if name == names[-1] else ""
        expected = pinned or lock.files(entry.source).get(name, {}).get("sha256", "")
        if path.is_file() and expected not in ("", sha256_of(path)):
            problem = f"has SHA-256 {sha256_of(path)}, and {expected} is recorded: delete it, and"
            fix = "the same call downloads it again, or put the right file there"
            raise refusal(path, f"{problem} {fix}: {_steps(entry)}")
        retrieve([BRACES.sub(name, url) for url in addresses], path, expected, _steps(entry))
        _require_content(path)
    _compare(entry.source, "", folder, names, lock)


def retrieve(urls: Sequence[str], path: Path, sha256: str = "", steps: str = STEPS) -> None:
    """Download a file from the first address that has it; what arrived before is gone on with.

    Parameters
    ----------
    urls
        Addresses in order, https alone.
    path
        Where it goes.
    sha256
        Expected; empty if it is not known.
    steps
        Where the steps by hand stand.

    Raises
    ------
    CheckpointError
        If none has it; the message says what came of each.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    with one_at_a_time(path):
        for url in () if path.is_file() else urls:
            try:
                _download(mirrored(url), path, sha256)
                break
            except (OSError, ValueError) as error:
                failed.append(f"{url}: {' '.join(str(error).split()) or type(error).__name__}")
    if not path.is_file():
        problems = "; ".join(failed) or "no address of it is known"
        raise CheckpointError(
            f"{path.name} could not be downloaded ({problems}). Run the same call again to go on, "
            f"or place the file by hand: {steps}. {OFFLINE}",
            path=path,
        )
    if failed:
        warnings.warn(
            f"{path.name} was taken from {url}; before, {'; '.join(failed)}", stacklevel=2
        )


def _download(url: str, path: Path, sha256: str) -> None:
    """Download a file; a connection that breaks is gone on with, now or in a later call."""
    part = path.with_name(f"{path.name}.part")
    for left in reversed(range(TRIES)):
        before = _size(part)
        try:
            _go_on(url, part)
            break
        except OSError:
            if not left or _size(part) <= before:
                raise
    try:
        _require_content(part)
        if sha256 and file_sha256(part) != sha256:
            raise ValueError(f"has another hash than {sha256}")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def mirrored(url: str) -> str:
    """Return where a file is asked for: at its own address, or at ``BIASLIB_MIRROR``."""
    mirror = os.environ.get("BIASLIB_MIRROR", "").rstrip("/")
    scheme, _, address = url.partition("://")
    return f"{mirror}/{address}" if mirror and scheme == "https" else url


def _go_on(url: str, part: Path) -> None:
    """Download a file from where an earlier download of the same version of it stopped."""
    from tqdm.auto import tqdm

    from biaslib.checkpoints.client import session

    version = part.with_name(f"{part.name}.version")
    tag = version.read_text("utf-8") if version.is_file() else ""
    begun = _size(part) if tag else 0
    headers = {"Range": f"bytes={begun}-", "If-Range": tag} if begun else {}
    headers["Accept-Encoding"] = "identity"
    with session() as client, client.get(url, headers=headers, stream=True, timeout=30) as answer:
        begun = begun if answer.status_code == 206 else 0
        if not begun:
            part.unlink(missing_ok=True)
        total = _total(answer, begun)
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "W/"
        version.write_text("" if tag.startswith("W/") else tag, "utf-8")
        how = {"unit": "B", "unit_scale": True, "delay": 1, "leave": False, "disable": in_book()}
        bar = tqdm(desc=part.stem, initial=begun, total=total, **how)
        with bar, open(part, "ab") as stream:
            for chunk in answer.iter_content(1 << 20):
                bar.update(stream.write(chunk))
    if _size(part) != total:
        raise OSError(f"broke off after {_size(part):,} of {total:,} bytes")
    version.unlink()


def _total(answer: Any, begun: int) -> int:
    """Return of how many bytes a file is of which an answer is all, or what was missing."""
    answer.raise_for_status()
    rest = re.fullmatch(rf"bytes {begun}-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
    if begun and rest and int(rest[1]) + 1 == int(rest[2]):
        return int(rest[2])
    length = answer.headers.get("Content-Length", "")
    if answer.status_code != 200 or not length.isdecimal():
        raise ValueError("gives no length, or another part than the missing one")
    return int(length)


def _require_content(path: Path) -> None:
    """Refuse a file that is empty, a web page, or called as PyTorch's are and begins otherwise."""
    with open(path, "rb") as stream:
        start = stream.read(512)
    name = path.name.removesuffix(".part")
    begin = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not begin or begin.startswith(PAGES):
        raise CheckpointError(f"{name} is {'a web page' if begin else 'empty'}", path=path)
    if Path(name).suffix in SAVED and not start.startswith(SAVED_BEGIN):
        raise CheckpointError(f"{name} is not what PyTorch has saved", path=path)
