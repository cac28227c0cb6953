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
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from biaslib.runtime import ChecksumError, DownloadError, Lock, download, file_sha256

__all__ = ["by_hand", "cache_folder", "fetch", "kept", "listed_bytes", "settings_of"]

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
    "video_preprocessor_config.json",
    "chat_template.jinja",
    "chat_template.json",
    *TOKENIZERS,
    "*.model",
)
"""What is taken of a repository beside its weights; programs (``*.py``) never are."""

TELLING = ("config.json", "open_clip_config.json")
"""Settings that tell the family of a model."""

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
A_PAGE = 200
FOR_A_PERSON = (A_PAGE, 401, 403, 404, 410)
"""Answers of a server that a person may be able to do something about: a page, or a refusal."""

SAVED = (".bin", ".ckpt", ".model", ".pt", ".pth")
SAVED_BEGIN = (b"PK", b"\x80")
"""What PyTorch saves is called, and how it begins: an archive, or pickled."""

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
        ``hub owner/name``, ``url https://...`` or ``by hand file from https://...``. An address
        that ends in names in braces, ``https://host/folder/{one,two}``, is a folder of such files.
        Where an entry has several addresses, each is tried in turn, and a warning says which did
        not answer.
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
        The folder of a repository or of several files, or the file of another address.

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
        return _fetch_files(text, source, root, lock)
    if found := re.fullmatch(r"by hand (\S+) from (\S+)", text):
        return _placed_by_hand(text, source, *found.groups(), root, lock)
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
    size: int = 0


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
        names = repository.wanted(path.name for path in by_hand.glob("*"))
        lock.verify(repository.source, "", {name: by_hand / name for name in names})
        return by_hand
    revision = revision or lock.revision(repository.source) or getattr(source, "revision", "")
    folder = _kept(repository, revision, root) or _downloaded(repository, revision, root, lock)
    _check_again(repository, folder, lock)
    return folder


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
    if not COMMIT.fullmatch(commit or ""):
        raise DownloadError(
            f"{_endpoint()} gives {commit!r} as the commit of {repository.name}, and a commit is "
            "40 hexadecimal digits. Whatever answers there is no hub: check HF_ENDPOINT"
        )
    folder = repository.folder(root) / commit
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
        spelling = (
            ". Check its spelling, owner/name; of a private name the hub says the same"
            if status in (401, 404)
            else ""
        )
        raise DownloadError(
            f"the hub refuses {repository.name}: {message}{spelling}", status
        ) from error
    except Exception as error:  # the hub's library has changed the one it uses for connections
        raise DownloadError(
            f"could not reach the hub for {repository.name} ({type(error).__name__}: {error}). "
            f"Check the connection{_mirror()} and run the same call again, or place the files by "
            "hand"
        ) from error
    return found.sha, {file.rfilename: _listed(file) for file in found.siblings or []}


def _listed(file) -> _Listed:
    git_sha1 = "" if file.lfs else file.blob_id or ""
    return _Listed(getattr(file.lfs, "sha256", "") or "", git_sha1, file.size or 0)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", SITE).rstrip("/")


def kept(name: str, revision: str = "") -> Path | None:
    """Return the folder of a repository of the hub that is on this disk already; None if it is not.

    Examples
    --------
    >>> kept("owner/never-downloaded")
    """
    repository, root = _Repository(name, (*OPEN_CLIP_WEIGHTS, *WEIGHTS)), cache_folder()
    by_hand = repository.folder(root) / BY_HAND
    if by_hand.is_dir():
        return by_hand
    return _kept(repository, revision or Lock(None).revision(repository.source) or "", root)


def listed_bytes(name: str, revision: str = "") -> int:
    """Return how many bytes of a repository of the hub would be downloaded; nothing is.

    Raises
    ------
    DownloadError
        If the hub does not have it or refuses it; for what a person can do the message gives steps.
    """
    repository = _Repository(name, (*OPEN_CLIP_WEIGHTS, *WEIGHTS))
    try:
        _, listing = _listing(repository, revision or "main")
    except DownloadError as error:
        raise _with_steps(error, repository, cache_folder(), Lock(None)) from error
    return sum(listing[each].size for each in repository.wanted(listing))


def settings_of(name: str, revision: str, folder: Path) -> None:
    """Download what tells the family of a repository of the hub, a few kilobytes, into a folder.

    Raises
    ------
    DownloadError
        As of :func:`listed_bytes`.
    """
    repository = _Repository(name, ())
    try:
        commit, listing = _listing(repository, revision or "main")
        for each in _matching(sorted(listing), TELLING):
            _download_listed(repository, commit, each, listing[each], folder, _record(folder))
    except DownloadError as error:
        raise _with_steps(error, repository, cache_folder(), Lock(None)) from error


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
        _put_beside(_fetch_files(f"url {url}", None, root, lock), folder / name, source=url)


def _fetch_files(text: str, source: object, root: Path, lock: Lock) -> Path:
    """Return the file of an address, or the folder of an address with several names."""
    addresses = [text.removeprefix("url "), *getattr(source, "mirrors", ())]
    folder, names = _place_of(addresses[0], root)
    pinned = getattr(source, "sha256", "")
    for name in names:
        urls = [_BRACES.sub(name, address) for address in addresses]
        expected = pinned if name == names[-1] else ""
        steps = _steps(urls[0], name, folder, lock, by_hand(source or text, root))
        _fetch_file(urls, folder / name, expected, lock.sha256(text, name), steps)
    lock.verify(text, "", {name: folder / name for name in names})
    return folder if _BRACES.search(addresses[0]) else folder / names[0]


_BRACES = re.compile(r"\{([^{}]+)\}$")


def _place_of(address: str, root: Path) -> tuple[Path, list[str]]:
    """Return where an address's files are kept, and their names."""
    parts = urllib.parse.urlsplit(address)
    path = root / "url" / (parts.hostname or "") / parts.path.lstrip("/")
    found = _BRACES.search(address)
    return path.parent, found.group(1).split(",") if found else [path.name]


def _fetch_file(urls: list[str], path: Path, pinned: str, recorded: str, steps: str) -> None:
    """Download a file from the first of its addresses that has it.

    A part that an earlier call left is of the address that it was asked of: others begin anew.
    """
    if path.is_file():
        _require_no_page(path, f"{path} holds", path.name)
        _require_expected(path, path.name, pinned)
        return
    failed: list[DownloadError] = []
    part, held = (path.with_name(f"{path.name}{end}") for end in (".part", ".held"))
    for url in urls:
        check, before = functools.partial(_require_file, path, url, pinned or recorded), _size(part)
        try:
            download(_asked(url), path, check=check)
        except DownloadError as error:
            failed.append(error)
            if not error.status and _size(part) > before:
                raise  # the connection broke: the same call goes on from there
            if part.is_file():
                part.replace(held)
            continue
        held.unlink(missing_ok=True)
        if failed:
            told = f"{path.name} was taken from {url}, since {_listed_in(failed)}"
            warnings.warn(told, stacklevel=2)
        return
    if held.is_file():
        held.replace(part)
    raise _none_left(failed, path.name, steps)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _require_file(path: Path, url: str, expected: str, part: Path) -> None:
    """Refuse what arrived if it is a page for a person, or another file than the expected one."""
    start = _require_no_page(part, f"{url} answers with", path.name)
    _require_expected(part, path.name, expected)
    if not expected and path.suffix in SAVED and not start.startswith(SAVED_BEGIN):
        raise DownloadError(
            f"{url} answers with what PyTorch has not saved in place of {path.name}", A_PAGE
        )


def _require_no_page(path: Path, answer: str, name: str) -> bytes:
    """Refuse a web page, and return how the file begins."""
    from biaslib.runtime.answers import is_page

    with open(path, "rb") as stream:
        start = stream.read(512)
    if not start.strip() or is_page(start):
        what = "a web page" if start.strip() else "nothing"
        raise DownloadError(f"{answer} {what} in place of {name}", A_PAGE)
    return start


def _listed_in(failed: list[DownloadError]) -> str:
    return "; ".join(str(error).splitlines()[0] for error in failed)


def _none_left(failed: list[DownloadError], name: str, steps: str) -> DownloadError:
    """Return the error for a file that no address has, with what a person can do."""
    if len(failed) == 1 and failed[0].status not in FOR_A_PERSON:
        return failed[0]
    told = str(failed[0])
    if len(failed) > 1:
        told = f"none of {len(failed)} addresses has {name}: {_listed_in(failed)}"
    return DownloadError(f"{told}\n{steps}", failed[0].status)


def _asked(url: str) -> str:
    """Return where a file is asked for: at its own address, or at ``BIASLIB_MIRROR``."""
    mirror = os.environ.get("BIASLIB_MIRROR", "").rstrip("/")
    scheme, _, address = url.partition("://")
    return f"{mirror}/{address}" if mirror and scheme == "https" else url


def _require_expected(path: Path, name: str, expected: str) -> None:
    _refuse_other(name, expected, file_sha256(path), "the registry or the lock file records")


def _placed_by_hand(
    text: str, source: object, name: str, page: str, root: Path, lock: Lock
) -> Path:
    """Return a file that a person placed, or that one of its addresses has after all."""
    path = root / BY_HAND / name
    steps = _steps(page, name, path.parent, lock, by_hand(source, root))
    if path.is_file():
        _require_no_page(path, f"{path} holds", name)
    elif addresses := getattr(source, "mirrors", ()):
        pinned, recorded = getattr(source, "sha256", ""), lock.sha256(text, name)
        try:
            _fetch_file([*addresses], path, pinned, recorded, steps)
        except DownloadError as error:
            told = str(error) if steps in str(error) else f"{error}\n{steps}"
            raise DownloadError(told, error.status) from error
    else:
        raise DownloadError(f"{page} cannot be downloaded from by a program.\n{steps}")
    lock.verify(text, "", {name: path})
    return path


def _mirror() -> str:
    """Return the mirror that was asked in place of the hub, for an error's text."""
    return f" and HF_ENDPOINT, which is {_endpoint()}," if os.environ.get("HF_ENDPOINT") else ""


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
        f"{_steps(page, files, place, lock, by_hand(repository.source, root))}",
        error.status,
    )


def by_hand(source: object, folder: str | Path | None = None) -> str:
    """Return the one command for a shell that places a checkpoint's weights by hand.

    Parameters
    ----------
    source, folder
        As of :func:`fetch`.

    Returns
    -------
    str
        Empty where there is none: a file behind a page, of which no identifier is known.

    Examples
    --------
    >>> by_hand("hub owner/name", "cache")
    'hf download owner/name --local-dir "cache/hub/owner/name/by-hand"'
    >>> by_hand("url https://host/folder/{one,two}", "cache")
    'curl -L --create-dirs --output-dir "cache/url/host/folder" -O "https://host/folder/{one,two}"'
    """
    root = Path(folder or cache_folder())
    kind, _, address = str(getattr(source, "source", source)).partition(" ")
    if own := getattr(source, "command", ""):
        return own.replace("PLACE", (root / BY_HAND).as_posix())
    if kind == "hub":
        place = _Repository(address, ()).folder(root) / BY_HAND
        return f'hf download {address} --local-dir "{place.as_posix()}"'
    if kind == "url":
        place, _ = _place_of(address, root)
        return f'curl -L --create-dirs --output-dir "{place.as_posix()}" -O "{address}"'
    return ""


def _steps(page: str, files: str, place: Path, lock: Lock, command: str) -> str:
    shorter = f"   Steps 1 and 2 in one command: {command}\n" if command else ""
    return (
        f"To place it by hand:\n"
        f"1. Open {page} in a browser and download {files}.\n"
        f"2. Put it, under its own name, into {place}\n{shorter}"
        f"3. Run the same call again. It checks the SHA-256 against {lock.path}, or records it "
        "there if it is seen for the first time: compare that with the publisher's."
    )
