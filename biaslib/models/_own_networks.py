"""Loads the networks that are written out in :mod:`biaslib.models.networks`."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from biaslib.models._checkpoints import CheckpointError
from biaslib.models._networks import TOKENIZER_FILES, Loaded, quiet, read_tokenizer
from biaslib.models._registry import REGISTRY, Entry
from biaslib.models._revisions import revision_of
from biaslib.models.networks.files import load_converted

__all__ = ["read_own", "require_variant"]

KINDS = ("end_to_end", "masked_words")
"""Settings in which published networks of a family differ in what they can be used for."""


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
        If there is no checkpoint, it is of another model or another published variant of it, or
        has no tokenizer.
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
    require_variant(entry, network, path)
    with quiet():
        tokenizer = read_tokenizer(folder)
    return Loaded(network, tokenizer, revision_of(path, network))


def require_variant(entry: Entry, network: torch.nn.Module, path: Path) -> None:
    """Refuse weights of another published network than the one that was asked for.

    Networks of sizes that were never published are taken, if they are of the same kind.
    """
    variants = _variants(entry)
    if not variants or _alike(network.config, variants[entry.variant], variants):
        return
    others = [
        each.name
        for each in REGISTRY.values()
        if each.family == entry.family and _alike(network.config, variants[each.variant], variants)
    ]
    names = (name for name, each in variants.items() if _alike(network.config, each, variants))
    found = next(names, type(network).__name__)
    hint = f"load it as {' or '.join(map(repr, others))}" if others else "pass another checkpoint="
    raise CheckpointError(
        f"{path} holds {found!r} of its family, and {entry.name!r} is {entry.variant!r}; {hint}"
    )


def _variants(entry: Entry) -> Mapping[str, Any]:
    if not entry.variant:
        return {}
    return importlib.import_module(f"biaslib.models.networks.{entry.family}").VARIANTS


def _alike(found: Any, published: Any, variants: Mapping[str, Any]) -> bool:
    """Tell whether a network is of a published one's kind, and not of another published size."""
    if type(found) is not type(published):
        return False
    if any(getattr(found, part, None) != getattr(published, part, None) for part in KINDS):
        return False
    sizes = {each.hidden_size for each in variants.values()}
    return found.hidden_size == published.hidden_size or found.hidden_size not in sizes
