"""What names the weights of a model, and all that its numbers depend on beside them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from biaslib.models._limits import read_json
from biaslib.models.downloads import OF_SENTENCES, SETTINGS, TOKENIZERS, sha256_of
from biaslib.models.errors import CheckpointError

OF_TRANSFORMERS = (
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""The files of weights that transformers looks for, in its order; an index lists the others."""

OF_OPEN_CLIP = (
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors"),
    *("open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"),
    *("model.safetensors", "pytorch_model.bin", "pytorch_model.pth", "model.pth"),
)
"""Those of OpenCLIP; where none is there it takes the first file of these kinds."""

BESIDE = (*TOKENIZERS, "preprocessor_config.json", "processor_config.json")
"""What is read beside a file of the authors."""


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
        As :func:`weight_files`; or if there are no weights.
    """
    found = checksums(path, open_clip, [*beside, *_of_sentences(path)])
    if not found:
        raise CheckpointError(
            f"{path} holds no weights under a name that is read: {', '.join(OF_TRANSFORMERS)}",
            path=path,
        )
    return f"{path.name}, {found}"


def checksums(path: str | Path, open_clip: bool = False, beside: Iterable[Path] = ()) -> str:
    """Return the SHA-256 of the weights that are read, and of the settings beside them.

    Settings are the configuration, the tokenizer and the preparation of pictures: the same weights
    give other numbers under others. Without weights the text is empty.

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
    if not weights:
        return ""
    one = len(weights) == 1
    of_weights = sha256_of(weights[0]) if one else _together(weights, folder)
    settings = [*_named(folder, BESIDE if path.is_file() else SETTINGS), *beside]
    return (
        f"sha256 {'' if one else f'of {len(weights)} files '}{of_weights[:12]}"
        f"{f', settings {_together(settings, folder)[:8]}' if settings else ''}"
    )


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
    first = next((name for name in _preferred(folder, open_clip) if (folder / name).is_file()), "")
    if not first:
        return []
    listed = [first]
    if first.endswith(".index.json"):
        listed = _listed(folder / first)
    for name in dict.fromkeys([first, *listed]):
        _require_inside(folder, name)
    return [folder / name for name in listed]


def _of_sentences(folder: Path) -> list[Path]:
    """Return what makes vectors of a network's states: pooling, and layers after it."""
    if not (folder / "modules.json").is_file():
        return []
    places = [each.get("path") for each in read_json(folder / "modules.json", list)]
    parts = [f"{place}/*" for place in places if place]
    for place in places:
        if (folder / (place or ".")).exists():  # one without settings may be left out
            _require_inside(folder, place or ".")
    return _named(folder, [*OF_SENTENCES, *parts])


def _preferred(folder: Path, open_clip: bool) -> list[str]:
    """Return the names under which weights are looked for, in order."""
    if open_clip:
        kinds = ("*.safetensors", "*.bin", "*.pth")
        others = [path.name for kind in kinds for path in folder.glob(kind)]
        others = sorted(others, key=lambda name: (not name.endswith(".safetensors"), name))
        return [*OF_OPEN_CLIP, *others]
    path = folder / "config.json"
    named = read_json(path).get("transformers_weights") if path.is_file() else None
    return [*([str(named)] if named else []), *OF_TRANSFORMERS]


def _listed(index: Path) -> list[str]:
    """Return the files that an index of weights lists, in order."""
    of_weights = read_json(index).get("weight_map")
    names = of_weights.values() if isinstance(of_weights, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"{index} lists no files of weights under weight_map; download it again",
            path=index.parent,
        )
    return sorted(set(names))


def _require_inside(folder: Path, name: str) -> None:
    """Refuse weights that are not there or lie outside a folder.

    In the hub's own cache the files of a snapshot are links to the blobs of its repository, or of
    the whole cache; and so are files that huggingface_hub of before 2024 put into folders.
    """
    root, path = folder.resolve(), (folder / name).resolve()
    inside = path.is_relative_to(root) or "blobs" in path.parent.parts
    if ".." in Path(name).parts or Path(name).is_absolute() or not inside:
        raise CheckpointError(
            f"{folder} takes weights from {name!r}, which leads out of the folder to {path}: they "
            "could change unseen. Copy the file into the folder",
            path=folder,
        )
    if not path.exists():
        raise CheckpointError(
            f"{folder} lacks {name}, which it names; download it again",
            path=folder,
        )


def _named(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder under names that match, in order."""
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)


def _together(files: Iterable[Path], folder: Path) -> str:
    """Return one SHA-256 of the names below a folder and the contents of files."""
    lines = [f"{_below(path, folder)}\0{sha256_of(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
