"""Loads the networks that are written out in :mod:`biaslib.models.networks`."""

from collections.abc import Callable
from pathlib import Path

import torch

from biaslib.models._checkpoints import CheckpointError
from biaslib.models._networks import TOKENIZER_FILES, Loaded, quiet, read_tokenizer
from biaslib.models._registry import Entry
from biaslib.models.networks.files import load_converted
from biaslib.models.text import revision_of
from biaslib.runtime import file_sha256

__all__ = ["read_own"]


def read_own(
    entry: Entry,
    checkpoint: str | Path | None,
    load_official: Callable[[Path], torch.nn.Module],
    *kinds: type[torch.nn.Module],
) -> Loaded:
    """Load a network with its tokenizer.

    Parameters
    ----------
    entry
        Of the registry.
    checkpoint
        A folder that :func:`biaslib.models.networks.files.save_converted` wrote, or a file of the
        authors; a tokenizer lies in the folder, or beside the file.
    load_official
        What reads a file of the authors.
    *kinds
        Networks that the model can be.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, it is of another model, or has no tokenizer.
    """
    if checkpoint is None:
        raise CheckpointError(f"{entry.name!r} has no checkpoint here; pass checkpoint= with one")
    path = Path(checkpoint)
    folder = path if path.is_dir() else path.parent
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise CheckpointError(
            f"there is no tokenizer in {folder}, and files of the authors bring none: put "
            "vocab.txt and tokenizer_config.json of google-bert/bert-base-uncased there"
        )
    network = load_converted(path) if path.is_dir() else load_official(path)
    if not isinstance(network, kinds):
        raise CheckpointError(
            f"{path} is a {type(network).__name__}, and {entry.name!r} is loaded from "
            f"{' or '.join(kind.__name__ for kind in kinds)}"
        )
    with quiet():
        tokenizer = read_tokenizer(folder)
    return Loaded(network, tokenizer, _revision(path, network))


def _revision(path: Path, network: torch.nn.Module) -> str:
    if path.is_dir():
        return revision_of(path, network)
    return f"{path.name}, sha256 {file_sha256(path)[:12]}"
