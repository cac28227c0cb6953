"""The files of a model's folder: which are read, what settings hold, and their checksums."""

import fnmatch
import functools
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from biaslib.errors import refusal
from biaslib.runtime import file_sha256, first_few

LOCAL = {"trust_remote_code": False, "local_files_only": True}
"""What every reading of a folder through transformers is told: run nothing, ask nobody."""

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
    "video_preprocessor_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "*.model",
    *OF_IMAGES,
    *TOKENIZERS,
)
"""What is read of a folder beside its weights; programs (``*.py``) never are."""

OF_SENTENCES = ("modules.json", "sentence_*_config.json", "config_sentence_transformers.json")
"""Settings that tell how a sentence encoder makes one vector of a text's tokens."""

LAYER = re.compile(
    r"[1-9]\d?_\w{1,30}/(config\.json|model\.safetensors|pytorch_model\.bin)", re.ASCII
)
"""Files of a sentence encoder's pooling and layers, each in a folder of its own."""

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Files of weights in the order of transformers; an index lists the others."""

OPEN_CLIP_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
)
"""Those of OpenCLIP, which it takes before the others."""

UNREAD = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".h5", ".msgpack", ".gguf", ".onnx")
"""Endings of files that may hold weights under a name, or in a form, that is not read."""

AT_THE_TOP = re.compile(r"[^./\\\x00-\x1f:][^/\\\x00-\x1f:]*")
"""A file's name without folders, drives or control characters, that does not begin with a dot."""

POINTER = b"version https://git-lfs.github.com/spec/"


def files_of(folder: Path) -> list[str]:
    """Return the names of a folder's files, and of those in folders of a sentence encoder's."""
    deep = folder.glob("[1-9]*_*/*") if (folder / "modules.json").is_file() else ()
    paths = [path for path in (*folder.glob("*"), *deep) if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that match, of files at the top of a folder, in order.

    A shell's ``*`` stands for slashes too, so that a listing could name a place outside the folder
    of the download; whoever serves it may not be the hub.
    """
    plain = [name for name in sorted(names) if AT_THE_TOP.fullmatch(name)]
    return [name for name in plain if any(fnmatch.fnmatchcase(name, one) for one in patterns)]


def files_read(names: Iterable[str], open_clip: bool = False) -> list[str]:
    """Return which of a repository's files are read, where OpenCLIP reads it or another library.

    Examples
    --------
    >>> files_read(["README.md", "config.json", "model.safetensors", "pytorch_model.bin"])
    ['config.json', 'model.safetensors']
    """
    names = sorted(names)
    read = matching(names, ("adapter_config.json", *SETTINGS, *OF_SENTENCES))
    layers = [name for name in names if LAYER.fullmatch(name)]
    safe = {name.rpartition("/")[0] for name in layers if name.endswith(".safetensors")}
    twice = {f"{layer}/pytorch_model.bin" for layer in safe}
    return read + weights_among(names, open_clip) + [name for name in layers if name not in twice]


def weights_among(names: Iterable[str], open_clip: bool = False) -> list[str]:
    """Return the names of the weights among those of a repository, the first that are known."""
    kinds = (*OPEN_CLIP_WEIGHTS, *WEIGHTS) if open_clip else WEIGHTS
    for kind in kinds:
        if first := matching(names, [kind]):
            stem, _, rest = kind.partition(".")
            shards = [f"{stem}-*.{rest.removesuffix('.index.json')}"]
            return first + (matching(names, shards) if kind.endswith(".index.json") else [])
    return []


def read_json(path: Path, kind: type = dict, default: Any = None) -> Any:
    """Return what a file of settings holds: the one way in which settings are read.

    Parameters
    ----------
    path
        The file.
    kind
        What it must hold.
    default
        What is returned if there is no file; None refuses that.

    Raises
    ------
    FileNotFoundError
        If there is none.
    CheckpointError
        If it is no plain file, no JSON, or holds something else than the kind.
    """
    if default is not None and not path.exists():
        return default
    if path.exists() and not path.is_file():  # a pipe would be waited for without end
        raise refusal(path, "is no plain file: put a file there")
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        fix = "download it again, the file itself and not its page"
        raise refusal(path, f"is not valid JSON ({error}); {fix}") from None
    if not isinstance(settings, kind):
        needed = "list" if kind is list else "settings by name"
        raise refusal(path, f"holds {settings!r:.40}, and no {needed}; download it again")
    return settings


def require_no_pointer(path: Path) -> None:
    """Refuse a pointer of Git LFS in place of a file."""
    with open(path, "rb") as stream:
        begun = stream.read(len(POINTER))
    if begun == POINTER:
        fix = "run `git lfs pull` in the folder, or give owner/name of the hub"
        raise refusal(path, f"is a pointer of Git LFS, and not the file itself: {fix}")


def weight_files(folder: Path, open_clip: bool = False) -> list[Path]:
    """Return the files of weights that are read of a folder: none where none has a known name.

    Parameters
    ----------
    folder
        Of a model.
    open_clip
        Whether OpenCLIP reads it, and not transformers.

    Raises
    ------
    CheckpointError
        If an index lists nothing, or one of the files is not there or lies outside the folder.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> [path.name for path in weight_files(checkpoint("bert", 3, 0))]
    ['model.safetensors']
    """
    names = _open_clip_order(folder) if open_clip else WEIGHTS
    first = next((name for name in names if (folder / name).is_file()), "")
    if not open_clip:
        named = read_json(folder / "config.json", default={}).get("transformers_weights")
        first = str(named or first)
    if not first:
        return []
    listed = _listed(folder / first) if first.endswith(".index.json") else [first]
    for name in dict.fromkeys([first, *listed]):
        require_inside(folder, name)
    return [folder / name for name in listed]


def require_weights(folder: Path, open_clip: bool = False) -> list[Path]:
    """Return the files of weights that are read of a folder, or refuse one that has none.

    Raises
    ------
    CheckpointError
        As :func:`weight_files`; or if there are none, with the files and folders that may be meant.
    """
    if files := weight_files(folder, open_clip):
        return files
    known = OPEN_CLIP_WEIGHTS[2] if open_clip else f"{WEIGHTS[0]} or {WEIGHTS[2]}"
    others = sorted(path.name for path in folder.glob("*") if path.suffix in UNREAD)
    where = below(folder, *WEIGHTS, *OPEN_CLIP_WEIGHTS)
    if others:
        fix = f"rename it to {known} if PyTorch saved it, and take other files otherwise"
        where = f"; of {first_few(others)}, none has that name: {fix}"
    raise refusal(folder, f"holds no weights under a name that is read, {known}{where}", known)


def below(folder: Path, *names: str) -> str:
    """Return which folders below one hold a file of these names, as advice; nothing if none does.

    They are the snapshots of a repository in the hub's own cache, or what a training run saved.
    """
    found = (folder.glob(f"{depth}/{name}") for name in names for depth in ("*", "*/*"))
    places = {path.parent.relative_to(folder).as_posix() for path in itertools.chain(*found)}
    inside = first_few(sorted(places, key=lambda place: (len(place), place)))
    return f"; give {inside} below it, if that is meant" if places else ""


def _open_clip_order(folder: Path) -> list[str]:
    """Return the names under which OpenCLIP looks for weights; then whatever is of such a kind."""
    single = (name for name in WEIGHTS if not name.endswith(".index.json"))
    others = [path.name for kind in ("bin", "pth") for path in folder.glob(f"*.{kind}")]
    safe = sorted(path.name for path in folder.glob("*.safetensors"))
    names = *OPEN_CLIP_WEIGHTS, *single, "pytorch_model.pth", "model.pth"
    return [*names, *safe, *sorted(others)]


def _listed(index: Path) -> list[str]:
    """Return the files that an index of weights lists, in order."""
    of_weights = read_json(index).get("weight_map")
    names = of_weights.values() if isinstance(of_weights, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        problem = f"lists no files of weights under weight_map of {index.name}; download it again"
        raise refusal(index.parent, problem)
    return sorted(set(names))


def require_inside(folder: Path, name: str) -> None:
    """Refuse weights that are not there or lie outside a folder.

    In the hub's own cache the files of a snapshot are links to the blobs of its repository, or of
    the whole cache; and so are files that huggingface_hub of before 2024 put into folders.
    """
    path = folder / name
    if "\0" in name or not (os.path.isfile(path) or os.path.isdir(path)):  # none is a pipe
        raise refusal(folder, f"lacks {name:.80}, which it names; download it again", name)
    root, path = folder.resolve(), path.resolve()
    inside = path.is_relative_to(root) or "blobs" in path.parent.parts
    if ".." in Path(name).parts or Path(name).is_absolute() or not inside:
        raise refusal(
            folder,
            f"takes weights from {name!r}, which leads out of the folder to {path}: they could "
            "change unseen. Copy the file into the folder",
        )


def revision_of(path: Path, open_clip: bool = False, beside: Iterable[Path] = ()) -> str:
    """Return what names a model: the name and the checksums of its folder or file.

    Parameters
    ----------
    path
        The folder or file.
    open_clip
        Whether OpenCLIP reads the folder, and not transformers.
    beside
        Settings that are read from elsewhere.

    Raises
    ------
    CheckpointError
        As :func:`weight_files`.
    """
    return f"{path.name}, {checksums(path, open_clip, [*beside, *_layers_of_sentences(path)])}"


def checksums(path: str | Path, open_clip: bool = False, beside: Iterable[Path] = ()) -> str:
    """Return the SHA-256 of the weights that are read, and of the settings beside them.

    Settings are the configuration, the tokenizer and the preparation of pictures: the same weights
    give other numbers under others.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "model.safetensors").write_text("weights")
    >>> checksums(folder)
    'sha256 9a129038d9a0'
    >>> _ = (folder / "vocab.txt").write_text("words")
    >>> checksums(folder)
    'sha256 9a129038d9a0, settings f1c5c73f'
    """
    path = Path(path)
    folder = path.parent if path.is_file() else path
    weights = [path] if path.is_file() else weight_files(path, open_clip)
    one = len(weights) == 1
    of_weights = sha256_of(weights[0]) if one else _together(weights, folder)
    names = (*TOKENIZERS, *OF_IMAGES) if path.is_file() else SETTINGS
    settings = [*_files(folder, names), *beside]
    return (
        f"sha256 {'' if one else f'of {len(weights)} files '}{of_weights[:12]}"
        f"{f', settings {_together(settings, folder)[:8]}' if settings else ''}"
    )


def _layers_of_sentences(folder: Path) -> list[Path]:
    """Return what makes vectors of a network's states: pooling, and layers after it."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    places = [module.get("path") for module in read_json(path, list)]
    for place in places:
        if (folder / (place or ".")).exists():  # one without settings may be left out
            require_inside(folder, place or ".")
    inside = [f"{place}/*" for place in places if place]
    return _files(folder, [*OF_SENTENCES, *inside])


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder under names that match, in order."""
    return sorted({path for name in patterns for path in folder.glob(name) if path.is_file()})


def _together(files: Iterable[Path], folder: Path) -> str:
    """Return one SHA-256 of the names below a folder and the contents of files."""
    digest = hashlib.sha256()
    for path in files:
        inside = path.is_relative_to(folder)
        name = path.relative_to(folder).as_posix() if inside else path.name
        digest.update(f"{name}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, which a process reads once as long as it does not change."""
    status = path.stat()
    return _sha256_as_of(path.resolve(), status.st_size, status.st_mtime_ns)


@functools.lru_cache(4096)
def _sha256_as_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)
