"""Getting checkpoints: downloaded once, checked by SHA-256 before every use, never run as code.

Files are kept in one folder, :func:`cache_folder`, at paths like their addresses. What was seen
first is written to the lock file (:class:`biaslib.runtime.Lock`), which travels with the results.
"""

import fnmatch
import functools
import hashlib
import os
import re
import shutil
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from biaslib.runtime import ChecksumError, DownloadError, Lock, download, file_sha256

__all__ = ["cache_folder", "fetch"]

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)
"""Files of tokenizers of transformers."""

SETTINGS = (
    "config.json",
    "config.yaml",
    "open_clip_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    *TOKENIZERS,
    "*.model",
)
"""What is taken of a repository beside its weights; programs (``*.py``) never are."""

WEIGHTS = (
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
)
"""Files of weights, the safest first: the first that a repository has are taken."""

OPEN_CLIP_WEIGHTS = (("open_clip_model.safetensors",), ("open_clip_pytorch_model.bin",))

AT_THE_TOP = re.compile(r"[^./\\\x00-\x1f:][^/\\\x00-\x1f:]*")
"""A file's name without folders, drives or control characters, that does not begin with a dot."""

COMMIT = re.compile(r"[0-9a-f]{40}")
BY_HAND = "by-hand"
FOR_A_PERSON = (401, 403, 404, 410)
"""Answers of a server that a person may be able to do something about."""

SITE = "https://huggingface.co"


def cache_folder() -> Path:
    """Return the folder of downloads: ``BIASLIB_CACHE``, or one in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BIASLIB_CACHE") or Path(caches) / "biaslib" / "checkpoints")


def fetch(
    source: object,
    revision: str | None = None,
    folder: str | Path | None = None,
    lock: str | Path | None = None,
) -> Path:
    """Return a checkpoint on this disk, downloaded if it is not there yet.

    Where other hosts than the hub cannot be reached, ``BIASLIB_MIRROR`` names an address that has
    copies of their files: ``https://host/path`` is asked for at ``<mirror>/host/path``, and checked
    like any other. The hub's own mirrors are named by its ``HF_ENDPOINT``.

    Its files are checked before every use, and after a download: against the SHA-256 that the hub
    declares, against what was downloaded, and against the lock file, which records what is seen
    first. Interrupted downloads go on where they stopped.

    Parameters
    ----------
    source
        An entry of ``biaslib.models.REGISTRY``, or a source as its table writes it:
        ``hub owner/name``, ``url https://...`` or ``by hand file from https://...``.
    revision
        A commit, tag or branch of the hub; ``None`` takes the one of the lock file, else that of
        the entry, else ``main``.
    folder
        Where downloads are kept; ``None`` takes :func:`cache_folder`.
    lock
        The lock file; ``None`` takes that of :class:`biaslib.runtime.Lock`.

    Returns
    -------
    pathlib.Path
        The folder of a repository, or the file of another address.

    Raises
    ------
    DownloadError
        If it cannot be had; where a person can do what a program cannot (terms to accept, a page
        to click through, a dead link), the message gives the steps to place the file by hand.
    ChecksumError
        If a file is not the one that was declared, downloaded or recorded.
    ValueError
        If the source is none of the three kinds.
    """
    text = getattr(source, "source", source)
    root, lock = Path(folder or cache_folder()), Lock(lock)
    path = _fetched(str(text), source, revision, root, lock)
    folder = path if path.is_dir() else path.parent
    if companion := getattr(source, "companion", ""):
        _add_companion(companion.removeprefix("hub "), folder, root, lock)
    for url in getattr(source, "beside", ()):
        _add_file(url, folder, root, lock)
    return path


def _fetched(text: str, source: object, revision: str | None, root: Path, lock: Lock) -> Path:
    kind, _, address = text.partition(" ")
    if kind == "hub":
        return _fetch_repository(source, address, revision, root, lock)
    if kind == "url":
        return _fetch_file(address, getattr(source, "sha256", ""), root, lock)
    if found := re.fullmatch(r"by hand (\S+) from (\S+)", text):
        return _placed_by_hand(text, *found.groups(), root, lock)
    raise ValueError(
        f"{text!r} is not a source that can be fetched; write 'hub owner/name', 'url https://...' "
        "or 'by hand file from https://...'"
    )


# Repositories of the hub


@dataclass(frozen=True)
class _Repository:
    """A repository of the hub, and which of its files are wanted."""

    name: str
    weights: tuple[tuple[str, ...], ...]

    @property
    def source(self) -> str:
        return f"hub {self.name}"

    def folder(self, root: Path) -> Path:
        return root / "hub" / self.name

    def wanted(self, names: Iterable[str]) -> list[str]:
        names = sorted(names)
        return _matching(names, SETTINGS) + self._weights_among(names)

    def _weights_among(self, names: Iterable[str]) -> list[str]:
        kinds = [_matching(sorted(names), patterns) for patterns in self.weights]
        return next((kind for kind in kinds if kind), [])

    def require_weights(self, names: Iterable[str]) -> None:
        if self.weights and not self._weights_among(names):
            raise DownloadError(
                f"the repository {self.name} holds no weights under a name that is known here, "
                f"only {', '.join(sorted(names)) or 'nothing'}"
            )


def _matching(names: list[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match, of files at the top of a repository.

    A shell's ``*`` stands for slashes too, so that a listing could name a place outside the folder
    of the download; whoever serves it may not be the hub.
    """
    plain = [name for name in names if AT_THE_TOP.fullmatch(name)]
    return [name for name in plain if any(fnmatch.fnmatchcase(name, each) for each in patterns)]


@dataclass(frozen=True)
class _Listed:
    """A file as the hub lists it: SHA-256 of large ones, git's own checksum of small ones."""

    sha256: str
    git_sha1: str


def _fetch_repository(
    source: object, name: str, revision: str | None, root: Path, lock: Lock
) -> Path:
    family = getattr(source, "family", "")
    weights = (*OPEN_CLIP_WEIGHTS, *WEIGHTS) if family == "open_clip" else WEIGHTS
    repository = _Repository(name, weights)
    by_hand = repository.folder(root) / BY_HAND
    if by_hand.is_dir():
        if revision:
            raise DownloadError(
                f"revision {revision} of {name} was asked for, and {by_hand} holds files placed by "
                "hand, of which no revision is known. Leave the revision out to use them, or move "
                "that folder away to download the revision"
            )
        repository.require_weights([path.name for path in by_hand.glob("*")])
        lock.verify(repository.source, "", _paths(by_hand, repository))
        return by_hand
    revision = revision or lock.revision(repository.source) or getattr(source, "revision", "")
    folder = _kept(repository, revision, root) or _downloaded(repository, revision, root, lock)
    _check_again(repository, folder, lock)
    return folder


def _paths(folder: Path, repository: _Repository) -> dict[str, Path]:
    return {name: folder / name for name in repository.wanted(p.name for p in folder.glob("*"))}


def _kept(repository: _Repository, revision: str, root: Path) -> Path | None:
    """Return the folder of a commit that was downloaded before, which needs no network."""
    folder = repository.folder(root) / (revision or "main")
    return folder if COMMIT.fullmatch(revision) and _record(folder).entries() else None


def _record(folder: Path) -> Lock:
    """Return what was noted in a folder when its download was complete."""
    return Lock(folder / "downloaded.json")


def _check_again(repository: _Repository, folder: Path, lock: Lock) -> None:
    """Check a folder's files against what was downloaded, and against the lock file."""
    record = _record(folder)
    paths = {name: folder / name for name in record.entries()[repository.source]["files"]}
    found = {name: file_sha256(path) if path.is_file() else "" for name, path in paths.items()}
    for name, path in paths.items():
        expected = record.sha256(repository.source, name)
        if found[name] != expected:
            raise _removed(path, expected, found[name], record)
    lock.verify(repository.source, record.revision(repository.source), paths, found)


def _removed(path: Path, expected: str, found: str, record: Lock) -> ChecksumError:
    """Remove a damaged file, and the note that its folder is complete."""
    path.unlink(missing_ok=True)
    record.path.unlink()
    return ChecksumError(
        f"{path} was damaged or changed since it was downloaded: expected SHA-256 {expected}, "
        f"found {found or 'no such file'}. It was removed; the same call downloads it again"
    )


def _downloaded(repository: _Repository, revision: str, root: Path, lock: Lock) -> Path:
    """Download what is missing of a revision and return its folder."""
    try:
        commit, listing = _listing(repository, revision or "main")
    except DownloadError as error:
        latest = _latest(repository, root) if not revision and not error.status else None
        if latest is None:
            raise _with_steps(error, repository, root, lock) from error
        return latest
    folder = repository.folder(root) / commit
    if not COMMIT.fullmatch(commit or ""):
        raise DownloadError(
            f"{_endpoint()} gives {commit!r} as the commit of {repository.name}, and a commit is "
            "40 hexadecimal digits. Whatever answers there is no hub: check HF_ENDPOINT"
        )
    repository.require_weights(listing)
    lock.require_revision(repository.source, commit)
    names = repository.wanted(listing)
    for name in names:
        try:
            _download_listed(repository, commit, name, listing[name], folder, lock)
        except DownloadError as error:
            raise _with_steps(error, repository, root, lock) from error
    _record(folder).verify(repository.source, commit, {name: folder / name for name in names})
    return folder


def _latest(repository: _Repository, root: Path) -> Path | None:
    """Return the revision downloaded last, for a run without a network and without a lock file."""
    records = repository.folder(root).glob("*/downloaded.json")
    found = max(records, key=lambda path: path.stat().st_mtime, default=None)
    return found and found.parent


def _listing(repository: _Repository, revision: str) -> tuple[str, dict[str, _Listed]]:
    """Ask the hub for the commit of a revision, and the files at the top of its repository."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=_endpoint())
    try:
        found = api.model_info(repository.name, revision=revision, files_metadata=True, timeout=30)
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        message = str(error).strip().splitlines()[0]
        raise DownloadError(f"the hub refuses {repository.name}: {message}", status) from error
    except Exception as error:  # the hub's library has changed the one it uses for connections
        raise DownloadError(
            f"could not reach the hub for {repository.name} ({type(error).__name__}: {error}). "
            "Check the connection and run the same call again, or use the profile 'planted'"
        ) from error
    return found.sha, {file.rfilename: _listed(file) for file in found.siblings or []}


def _listed(file) -> _Listed:
    return _Listed(getattr(file.lfs, "sha256", "") or "", "" if file.lfs else file.blob_id or "")


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", SITE).rstrip("/")


def _download_listed(
    repository: _Repository, commit: str, name: str, listed: _Listed, folder: Path, lock: Lock
) -> None:
    """Download one file unless it is there; a finished file has been checked."""
    from huggingface_hub.utils import build_hf_headers

    if (folder / name).is_file():
        return
    url = f"{_endpoint()}/{repository.name}/resolve/{commit}/{urllib.parse.quote(name)}"
    headers = {k: v for k, v in build_hf_headers().items() if k.lower() == "authorization"}
    recorded = lock.sha256(repository.source, name)
    check = functools.partial(_require_declared, name=name, listed=listed, recorded=recorded)
    download(url, folder / name, headers, check)


def _require_declared(path: Path, name: str, listed: _Listed, recorded: str) -> None:
    """Refuse what arrived if it is not what the hub or the lock file says it is."""
    found = file_sha256(path)
    _refuse_other(name, listed.sha256, found, "the hub declares")
    if listed.git_sha1:
        _refuse_other(name, listed.git_sha1, _git_sha1(path), "the hub declares")
    _refuse_other(name, recorded, found, "the lock file records")


def _refuse_other(name: str, expected: str, found: str, who: str) -> None:
    if expected and expected != found:
        raise ChecksumError(
            f"{name} arrived damaged, or is another file: {who} the checksum {expected}, and "
            f"what arrived has {found}. It is not used; remove it if it was placed by hand, and "
            "run the same call again. If it happens again, something between this machine and the "
            "server changes the file"
        )


def _git_sha1(path: Path) -> str:
    """Return git's checksum of a file: the SHA-1 of its size and content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _add_companion(name: str, folder: Path, root: Path, lock: Lock) -> None:
    """Put another repository's tokenizer and image settings beside weights that come without."""
    repository, settings = _Repository(name, weights=()), root / "settings"
    revision = lock.revision(repository.source)
    kept = _kept(repository, revision, settings)
    kept = kept or _downloaded(repository, revision, settings, lock)
    _check_again(repository, kept, lock)
    own = {file for entry in _record(folder).entries().values() for file in entry["files"]}
    for file in _record(kept).entries()[repository.source]["files"]:
        if file not in own and file != "config.json":
            _put_beside(kept / file, folder / file, source=repository.source)


def _put_beside(file: Path, place: Path, source: str) -> None:
    """Copy a file that weights need and come without; another one that is there is not replaced.

    Raises
    ------
    ChecksumError
        If another file is there: placed by hand, or for other weights in the same folder.
    """
    if place.exists():
        expected, found = file_sha256(file), file_sha256(place)
        if found == expected:
            return
        raise ChecksumError(
            f"{place} is another file than {file.name} of {source}, which is to go beside the "
            f"weights: expected SHA-256 {expected}, found {found}. It was placed there by hand, or "
            f"for other weights, and is not replaced. Move it away to use that of {source}; to "
            "use it, put it with its weights into a folder of your own and pass checkpoint="
        )
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.copyfile(file, beside)
    os.replace(beside, place)


# Files of other hosts


def _add_file(url: str, folder: Path, root: Path, lock: Lock) -> None:
    """Put a single file beside weights that come without it."""
    own = {file for entry in _record(folder).entries().values() for file in entry["files"]}
    name = url.rpartition("/")[2]
    if name not in own:
        _put_beside(_fetch_file(url, "", root, lock), folder / name, source=url)


def _fetch_file(url: str, sha256: str, root: Path, lock: Lock) -> Path:
    source = f"url {url}"
    address = urllib.parse.urlsplit(url)
    path = root / "url" / (address.hostname or "") / address.path.lstrip("/")
    expected = sha256 or lock.sha256(source, path.name)
    if not path.is_file():
        try:
            download(
                _asked(url), path, check=lambda part: _require_expected(part, path.name, expected)
            )
        except DownloadError as error:
            if error.status not in FOR_A_PERSON:
                raise
            steps = _steps(url, path.name, path.parent, lock)
            raise DownloadError(f"{error}\n{steps}", error.status) from error
    elif sha256:
        _require_expected(path, path.name, sha256)
    lock.verify(source, "", {path.name: path})
    return path


def _asked(url: str) -> str:
    """Return where a file is asked for: at its own address, or at ``BIASLIB_MIRROR``."""
    mirror = os.environ.get("BIASLIB_MIRROR", "").rstrip("/")
    scheme, _, address = url.partition("://")
    return f"{mirror}/{address}" if mirror and scheme == "https" else url


def _require_expected(path: Path, name: str, expected: str) -> None:
    _refuse_other(name, expected, file_sha256(path), "the registry or the lock file records")


def _placed_by_hand(source: str, name: str, page: str, root: Path, lock: Lock) -> Path:
    path = root / BY_HAND / name
    if not path.is_file():
        raise DownloadError(
            f"{page} cannot be downloaded from by a program.\n"
            f"{_steps(page, name, path.parent, lock)}"
        )
    lock.verify(source, "", {name: path})
    return path


# Steps for a person


def _with_steps(
    error: DownloadError, repository: _Repository, root: Path, lock: Lock
) -> DownloadError:
    """Return the error with what a person can do, where the hub refuses a program."""
    if error.status not in FOR_A_PERSON:
        return error
    page = f"{SITE}/{repository.name}"
    place = repository.folder(root) / BY_HAND
    files = "config.json, the tokenizer's files and the weights (*.safetensors or *.bin)"
    return DownloadError(
        f"{error}\nIf the repository asks for terms to be accepted: open {page}, accept them, "
        "make a token in your settings there, set it as HF_TOKEN, and run the same call again.\n"
        f"{_steps(page, files, place, lock)}",
        error.status,
    )


def _steps(page: str, files: str, place: Path, lock: Lock) -> str:
    return (
        f"To place it by hand:\n"
        f"1. Open {page} in a browser and download {files}.\n"
        f"2. Put it, under its own name, into {place}\n"
        f"3. Run the same call again. It checks the SHA-256 against {lock.path}, or records it "
        "there if it is seen for the first time: compare that with the publisher's."
    )
