"""What names the weights of a model, and all that its numbers depend on beside them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from biaslib.models.downloads import SETTINGS, TOKENIZERS
from biaslib.runtime import file_sha256

WEIGHTS = ("*.safetensors", "open_clip*.bin", "*.bin")
"""Files of weights in a folder: those of the first kind that it has."""

BESIDE = (*TOKENIZERS, "preprocessor_config.json", "processor_config.json")
"""What is read beside a file of the authors."""


def revision_of(path: Path) -> str:
    """Return what names a model: the name and the checksums of its folder or file."""
    return f"{path.name}, {checksums(path)}"


def checksums(path: str | Path) -> str:
    """Return the SHA-256 of all weights, and of the settings beside them; empty without weights.

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
    weights = [path] if path.is_file() else _weights(path)
    if not weights:
        return ""
    one = len(weights) == 1
    of_weights = file_sha256(weights[0]) if one else _together(weights)
    settings = _named(path.parent, BESIDE) if path.is_file() else _named(path, SETTINGS)
    return (
        f"sha256 {'' if one else f'of {len(weights)} files '}{of_weights[:12]}"
        f"{f', settings {_together(settings)[:8]}' if settings else ''}"
    )


def _weights(folder: Path) -> list[Path]:
    kinds = (_named(folder, [kind]) for kind in WEIGHTS)
    return next((kind for kind in kinds if kind), [])


def _named(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files of a folder under names that match, in order."""
    found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)


def _together(files: Iterable[Path]) -> str:
    """Return one SHA-256 of the names and the contents of files."""
    lines = [f"{path.name}\0{file_sha256(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
