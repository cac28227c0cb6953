"""Getting checkpoints: downloaded once, checked by SHA-256, never run as code.

Repositories of the model hub come by huggingface_hub, files of other hosts by pooch. They are kept
in one folder, :func:`cache_folder`, at paths like their addresses. What was used first is written
to the lock file (:class:`biaslib.runtime.Lock`), which travels with the results.
"""

import contextlib
import dataclasses
import fnmatch
import functools
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

from biaslib.models._entries import ENTRIES, Entry
from biaslib.models.errors import CheckpointError
from biaslib.runtime import ChecksumError, Lock, file_sha256, in_book, one_at_a_time

__all__ = ["cache_folder", "fetch", "kept", "listed_bytes", "settings_of"]

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

OF_IMAGES = ("preprocessor_config.json", "processor_config.json")

SETTINGS = (
    "config.json",
    "config.yaml",
    "open_clip_config.json",
    *OF_IMAGES,
    "video_preprocessor_config.json",
    "chat_template.jinja",
    "chat_template.json",
    *TOKENIZERS,
    "*.model",
)
"""What is taken of a repository beside its weights; programs (``*.py``) never are."""

OF_SENTENCES = ("modules.json", "sentence_*_config.json", "config_sentence_transformers.json")
"""Settings that tell how a sentence encoder makes one vector of a text's tokens."""

LAYER = re.compile(
    r"[1-9]\d?_\w{1,30}/(config\.json|model\.safetensors|pytorch_model\.bin)", re.ASCII
)
"""Files of a sentence encoder's pooling and layers, each in a folder of its own."""

ADAPTERS = (
    *("adapter_config.json", "adapter_model.*", "pytorch_adapter.bin", "pytorch_lora_weights.*"),
    *("*[_.-]lora.safetensors", "lora.safetensors"),
)
"""Files of changes to a model's weights, which lie beside these."""

TELLING = ("config.json", "open_clip_config.json", "adapter_config.json", *OF_SENTENCES)
"""Settings that tell the family of a model, and what it adds to the network."""

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

BRACES = re.compile(r"\{([^{}]+)\}$")
COMMIT = re.compile(r"[0-9a-f]{40}")
BY_HAND = "by-hand"

SAVED = (".bin", ".ckpt", ".model", ".pt", ".pth")
SAVED_BEGIN = (b"PK", b"\x80")
"""What PyTorch saves is called, and how it begins: an archive, or pickled."""

PAGES = (b"<!doctype", b"<!--", b"<html", b"<head", b"<body", b"<title", b"<?xml", b"<script")
"""How web pages begin, which some servers send in place of a file."""

SITE = "https://huggingface.co"
STEPS = "book/model_files.md"
"""The page with the steps by hand for each file."""

OFFLINE = "Without a network, use the profile 'planted'"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TRIES = 20
"""How often a connection that breaks is gone on with in one call."""


def cache_folder() -> Path:
    """Return the folder of downloads: ``BIASLIB_CACHE``, or one in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BIASLIB_CACHE") or Path(caches) / "biaslib" / "checkpoints")


def fetch(
    source: Entry | str,
    revision: str | None = None,
    folder: str | Path | None = None,
    lock: str | Path | None = None,
) -> Path:
    """Return a checkpoint on this disk, downloaded if it is not there yet.

    Files are compared with the SHA-256 that the hub, the registry or the lock file gives; a damaged
    download is fetched again. A file of several addresses is asked for at each in turn.
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
    CheckpointError
        If it cannot be had, or is not the file that was declared or recorded. The message names
        the file, the addresses, and the place of the steps by hand.
    ValueError
        If the source is none of the three kinds.

    Warns
    -----
    UserWarning
        If an address did not answer and another one did, or a damaged file is fetched again.
    """
    entry = source if isinstance(source, Entry) else Entry("", str(source), "", 0, "", "")
    root, lock = Path(folder or cache_folder()), Lock(lock)
    try:
        if entry.source.startswith("hub "):
            revision = revision or lock.revision(entry.source) or entry.revision
            path = place = _from_hub(entry, revision, root, lock)
        else:
            place, names, addresses = place_of(entry, root)
            _fetch_files(entry, place, names, addresses, lock)
            path = place if BRACES.search(addresses[0] if addresses else "") else place / names[0]
        _add_beside(entry, place, root, lock)
    except ChecksumError as error:
        raise CheckpointError(str(error), path=error.path, word=error.word) from error
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, which a process reads once as long as it does not change."""
    found = path.stat()
    return _sha256_as_of(path.resolve(), found.st_size, found.st_mtime_ns)


@functools.lru_cache(4096)
def _sha256_as_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)


# Repositories of the hub


def of_sentences(names: Iterable[str]) -> list[str]:
    """Return the files that a sentence encoder has beside its network, if it is one."""
    names = sorted(names)
    if "modules.json" not in names:
        return []
    layers = [name for name in names if LAYER.fullmatch(name)]
    safe = {name.rpartition("/")[0] for name in layers if name.endswith(".safetensors")}
    twice = {f"{layer}/pytorch_model.bin" for layer in safe}
    return _matching(names, OF_SENTENCES) + [name for name in layers if name not in twice]


def files_of(folder: Path) -> list[str]:
    """Return the names of a folder's files, and of those in folders of a sentence encoder's."""
    deep = folder.glob("[1-9]*_*/*") if (folder / "modules.json").is_file() else ()
    paths = [path for path in (*folder.glob("*"), *deep) if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def wanted(names: Iterable[str], open_clip: bool = False) -> list[str]:
    """Return which of a repository's files are read, where OpenCLIP reads it or another library."""
    names = sorted(names)
    settings = _matching(names, ("adapter_config.json", *SETTINGS))
    return settings + of_sentences(names) + _weights_among(names, open_clip)


def _weights_among(names: list[str], open_clip: bool) -> list[str]:
    kinds = (*OPEN_CLIP_WEIGHTS, *WEIGHTS) if open_clip else WEIGHTS
    return next(filter(None, (_matching(names, patterns) for patterns in kinds)), [])


def _matching(names: list[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match, of files at the top of a repository.

    A shell's ``*`` stands for slashes too, so that a listing could name a place outside the folder
    of the download; whoever serves it may not be the hub.
    """
    plain = [name for name in names if AT_THE_TOP.fullmatch(name)]
    return [name for name in plain if any(fnmatch.fnmatchcase(name, each) for each in patterns)]


def _from_hub(entry: Entry, revision: str, root: Path, lock: Lock) -> Path:
    """Return the folder of a repository's commit; where the hub does not help, of what is here."""
    name, open_clip = entry.source.removeprefix("hub "), entry.family == "open_clip"
    names = list(lock.files(entry.source)) if revision == lock.revision(entry.source) else []
    if not revision or not _weights_among(names, open_clip):
        try:
            listing = _listing(entry, revision)
            revision, names = listing.sha, [file.rfilename for file in listing.siblings or []]
        except CheckpointError:
            here = _on_this_disk(name, revision, root)
            if here is None:
                raise
            revision, names = here.name, files_of(here)
        lock.require_revision(entry.source, revision)
        if not _weights_among(sorted(names), open_clip):
            raise CheckpointError(
                f"the repository {name} holds no weights under a name that is known here, only "
                f"{', '.join(sorted(names)) or 'nothing'}"
            )
        names = wanted(names, open_clip)
    folder = _taken(entry, revision, root, names)
    _compare(entry.source, revision, folder, names, lock)
    return folder


def _taken(
    entry: Entry, commit: str, root: Path, names: Sequence[str], again: bool = False
) -> Path:
    """Return the folder of a commit with some of its files; damaged ones are downloaded again."""
    folder = _snapshots(entry.source.removeprefix("hub "), root) / commit
    if not all((folder / each).is_file() for each in names):
        _hub(entry, commit, [glob.escape(each) for each in names], cache_dir=root / "hub")
    damaged = [folder / each for each in names if _is_damaged(folder / each)]
    for path in damaged:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
    if damaged and again:
        raise CheckpointError(
            f"{damaged[0]} arrived damaged twice, of another checksum than the hub gives: place "
            f"it by hand: {_steps(entry)}",
            path=damaged[0],
        )
    if damaged:
        warnings.warn(f"{damaged[0]} is damaged: it is downloaded again", stacklevel=2)
        return _taken(entry, commit, root, names, again=True)
    return folder


def _hub(entry: Entry, revision: str, patterns: list[str], **where: Path) -> None:
    """Let huggingface_hub download the files of a repository that match."""
    from huggingface_hub import snapshot_download

    name, endpoint = entry.source.removeprefix("hub "), os.environ.get("HF_ENDPOINT", SITE)
    how = {"revision": revision or None, "allow_patterns": patterns, "endpoint": endpoint}
    with _asking(entry):
        snapshot_download(name, **how, **where)


def _listing(entry: Entry, revision: str) -> Any:
    """Ask the hub for the commit of a revision and its files."""
    from huggingface_hub import HfApi

    name, api = entry.source.removeprefix("hub "), HfApi(os.environ.get("HF_ENDPOINT", SITE))
    with _asking(entry):
        found = api.model_info(name, revision=revision or None, files_metadata=True, timeout=30)
    if not COMMIT.fullmatch(found.sha or ""):
        raise CheckpointError(
            f"{api.endpoint} gives {found.sha!r} as the commit of {name}, and a commit is 40 "
            "hexadecimal digits: check HF_ENDPOINT, which names another server than the hub"
        )
    return found


def _on_this_disk(name: str, revision: str, root: Path) -> Path | None:
    """Return the folder of a commit, or else the one that was downloaded last, if it is here."""
    folders = _snapshots(name, root).glob(revision or "*")
    here = [each for each in folders if _weights_among(files_of(each), open_clip=True)]
    return max(here, key=os.path.getmtime, default=None)


def _snapshots(name: str, root: Path) -> Path:
    """Return where huggingface_hub keeps the commits of a repository."""
    return root / "hub" / f"models--{name.replace('/', '--')}" / "snapshots"


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
    from huggingface_hub.errors import HfHubHTTPError

    name = entry.source.removeprefix("hub ")
    by_hand = f"or place the files by hand: {_steps(entry)}"
    try:
        yield
    except HfHubHTTPError as error:
        raise CheckpointError(
            f"the hub refuses {name}: {str(error).strip().splitlines()[0]}. Check its spelling, "
            "owner/name, or the path if a folder is meant; accept its terms on its page if it has "
            f"any, and set a token as HF_TOKEN; {by_hand}"
        ) from error
    except Exception as error:  # the hub's library has changed the one it uses for connections
        raise CheckpointError(
            f"could not reach the hub for {name} ({type(error).__name__}: {error}). Check the "
            f"connection and HF_ENDPOINT, and run the same call again, {by_hand}. {OFFLINE}"
        ) from error


def _steps(entry: Entry) -> str:
    """Return the place of the steps by hand for a model: the page, and the part of it."""
    known = any(each.name == entry.name for each in ENTRIES)
    return f"{STEPS}#{f'files-{entry.name}' if known else 'files-by-hand'}"


def kept(name: str, revision: str = "") -> Path | None:
    """Return the folder of a repository of the hub that is on this disk already; None if it is not.

    Examples
    --------
    >>> kept("owner/never-downloaded")
    """
    return _on_this_disk(name, revision or Lock().revision(f"hub {name}"), cache_folder())


def listed_bytes(name: str, revision: str = "") -> int:
    """Return how many bytes of a repository of the hub would be downloaded; nothing is.

    Raises
    ------
    CheckpointError
        If the hub does not have it or refuses it.
    """
    listing = _listing(Entry("", f"hub {name}", "", 0, "", ""), revision)
    sizes = {file.rfilename: file.size or 0 for file in listing.siblings or []}
    return sum(sizes[each] for each in wanted(sizes, open_clip=True))


def settings_of(name: str, revision: str, folder: Path) -> None:
    """Download what tells the family of a repository of the hub, a few kilobytes, into a folder.

    Raises
    ------
    CheckpointError
        As of :func:`listed_bytes`.
    """
    entry = Entry("", f"hub {name}", "", 0, "", "")
    _hub(entry, revision, [*TELLING, "[1-9]*_*/config.json"], local_dir=folder)


def _compare(source: str, revision: str, folder: Path, names: Iterable[str], lock: Lock) -> None:
    """Compare files of a source with the lock file, which records them if they are new to it."""
    paths = {name: folder / name for name in names}
    files = {n: {"sha256": sha256_of(p), "bytes": p.stat().st_size} for n, p in paths.items()}
    lock.verify(source, revision, files)


def _add_beside(entry: Entry, folder: Path, root: Path, lock: Lock) -> None:
    """Put tokenizer and lists of another source beside weights that come without."""
    if entry.companion and not any((folder / each).is_file() for each in TOKENIZERS):
        companion = dataclasses.replace(entry, source=entry.companion)
        listing = _listing(companion, lock.revision(entry.companion))
        names = sorted(file.rfilename for file in listing.siblings or [])
        names = _matching(names, (*OF_IMAGES, *TOKENIZERS))
        other = _taken(companion, listing.sha, root, names)
        _compare(entry.companion, other.name, other, names, lock)
        for name in names:
            shutil.copyfile(other / name, folder / f".{name}")
            os.replace(folder / f".{name}", folder / name)
    for url in entry.beside:
        beside = dataclasses.replace(entry, source=f"url {url}", mirrors=(), sha256="")
        _fetch_files(beside, folder, [url.rpartition("/")[2]], [url], lock)


# Files of other hosts


def place_of(entry: Entry, root: Path) -> tuple[Path, list[str], list[str]]:
    """Return the folder of an entry's files, their names, and their addresses in order."""
    if found := re.fullmatch(r"by hand (\S+) from \S+", entry.source):
        return root / BY_HAND, [found[1]], [*entry.mirrors]
    if not entry.source.startswith("url "):
        raise ValueError(
            f"{entry.source!r} is not a source that can be fetched; write 'hub owner/name', "
            "'url https://...' or 'by hand file from https://...'"
        )
    address = entry.source.removeprefix("url ")
    parts = urllib.parse.urlsplit(address)
    path = root / "url" / (parts.hostname or "") / parts.path.lstrip("/")
    found = BRACES.search(address)
    return path.parent, found[1].split(",") if found else [path.name], [address, *entry.mirrors]


def _fetch_files(
    entry: Entry, folder: Path, names: list[str], addresses: list[str], lock: Lock
) -> None:
    """Download files that are not there or are damaged, and compare all with the lock file."""
    recorded, steps = lock.files(entry.source), _steps(entry)
    for name in names:
        path, pinned = folder / name, entry.sha256 if name == names[-1] else ""
        expected = pinned or recorded.get(name, {}).get("sha256", "")
        if path.is_file() and expected not in ("", sha256_of(path)):
            told = f"{path} has SHA-256 {sha256_of(path)} and not {expected}, as is recorded"
            if folder.name == BY_HAND:
                raise CheckpointError(f"{told}: put the right file there, {steps}", path=path)
            warnings.warn(f"{told}: it is downloaded again", stacklevel=2)
            path.unlink()
        if not path.is_file():
            retrieve([BRACES.sub(name, each) for each in addresses], path, expected, steps)
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
    import pooch

    path.parent.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel("WARNING")
    failed: list[str] = []
    with one_at_a_time(path):
        for url in () if path.is_file() else urls:
            if not (told := _from_one(url, path, sha256)):
                break
            failed.append(f"{url}: {told}")
    if not path.is_file():
        told = "; ".join(failed) or "no address of it is known"
        raise CheckpointError(
            f"{path.name} could not be downloaded ({told}). Run the same call again to go on, or "
            f"place the file by hand: {steps}. {OFFLINE}",
            path=path,
        )
    if failed:
        warnings.warn(
            f"{path.name} was taken from {url}; before, {'; '.join(failed)}", stacklevel=2
        )


def _from_one(url: str, path: Path, sha256: str) -> str:
    """Download a file from one address, whose connection may break; return what is wrong."""
    import pooch

    part = path.with_name(f"{path.name}.part")
    for _ in range(TRIES):
        before = _size(part)
        try:
            known = f"sha256:{sha256}" if sha256 else None
            downloader = functools.partial(_go_on, part=part)
            pooch.retrieve(mirrored(url), known, path.name, path.parent, downloader=downloader)
            return ""
        except (OSError, ValueError) as error:
            told = " ".join(str(error).split()) or type(error).__name__
        if _size(part) == before:
            break
    return told


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def mirrored(url: str) -> str:
    """Return where a file is asked for: at its own address, or at ``BIASLIB_MIRROR``."""
    mirror = os.environ.get("BIASLIB_MIRROR", "").rstrip("/")
    scheme, _, address = url.partition("://")
    return f"{mirror}/{address}" if mirror and scheme == "https" else url


def _go_on(url: str, output_file: str, pooch: Any, part: Path) -> None:
    """Download as pooch does, from where an earlier download of the same version stopped."""
    from pooch import HTTPDownloader
    from tqdm.auto import tqdm

    version = part.with_name(f"{part.name}.version")
    tag = version.read_text("utf-8") if version.is_file() else ""
    begun = _size(part) if tag else 0
    headers = {"Range": f"bytes={begun}-", "If-Range": tag} if begun else {}
    headers["Accept-Encoding"] = "identity"
    _require_encrypted(url)
    with open(part, "ab") as stream:

        def check(response: Any, **_: object) -> None:
            if response.is_redirect:
                response.raw.close()  # what comes with it is not read
                place = urllib.parse.urljoin(url, response.headers["Location"])
                return _require_encrypted(place)
            if response.status_code != 206 or _problem(response, begun):
                stream.truncate(0)
            response.raise_for_status()
            if told := _problem(response, begun):
                raise ValueError(told)
            tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or "W/"
            version.write_text("" if tag.startswith("W/") else tag, "utf-8")

        how = {"headers": headers, "hooks": {"response": check}, "chunk_size": 1 << 20}
        bar = {"unit": "B", "unit_scale": True, "delay": 1, "leave": False, "disable": in_book()}
        HTTPDownloader(progressbar=tqdm(desc=part.stem, total=1, **bar), **how)(url, stream, pooch)
    version.unlink()
    try:
        _require_content(part)
    finally:
        os.replace(part, output_file)


def _require_encrypted(url: str) -> None:
    place = urllib.parse.urlsplit(url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in LOOPBACK):
        raise ValueError(f"{url} is not an https address")


def _problem(response: Any, begun: int) -> str:
    """Return why an answer is not a file, or not what is missing of it; nothing if it is."""
    headers = response.headers
    rest = re.fullmatch(rf"bytes {begun}-(\d+)/(\d+)", headers.get("Content-Range", ""))
    missing = begun and response.status_code == 206 and rest and int(rest[1]) + 1 == int(rest[2])
    if headers.get("Content-Type", "").startswith("text/html"):
        return "answers with a web page"
    if response.status_code != 200 and not missing:
        return f"answers {response.status_code}, or with another part than the missing one"
    if headers.get("Content-Encoding", "identity") != "identity":
        return "is encoded, which was not asked for"
    return "" if headers.get("Content-Length", "").isdecimal() else "gives no length"


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
