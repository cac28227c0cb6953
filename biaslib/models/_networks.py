"""Networks and tokenizers from folders, from the hub, or from the original authors' files."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

from biaslib.models import _originals
from biaslib.models._checkpoints import CheckpointError, require_complete
from biaslib.models._registry import Entry
from biaslib.models._revisions import revision_of

__all__ = [
    "Loaded",
    "quiet",
    "read_network",
    "read_network_and_tokenizer",
    "read_tokenizer",
    "require_tokenizer",
]

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt")


class Loaded(NamedTuple):
    """A network, its fast tokenizer, and what names the weights."""

    network: torch.nn.Module
    tokenizer: Any
    revision: str


def read_network(
    network: type[transformers.PreTrainedModel],
    path: str | Path,
    name: str,
    optional: Iterable[str] = (),
    ignored: Iterable[str] = (),
    **changes: Any,
) -> tuple[transformers.PreTrainedModel, set[str]]:
    """Load a network's weights in float32, and say which of the optional ones were not there.

    No remote code is run.

    Parameters
    ----------
    network
        A class of transformers, or one that is made from such a class.
    path
        A folder or a name on the hub.
    name
        The model that was asked for, for errors.
    optional, ignored
        Patterns, as of a shell, of weights that may be missing, and of weights in the file that
        nothing reads.
    **changes
        Settings of the configuration to replace.

    Returns
    -------
    tuple
        The network and the names of the missing weights.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another architecture, or other weights are missing or left over.
    """
    options = {"trust_remote_code": False, "local_files_only": Path(path).is_dir()}
    transformers.utils.logging.disable_progress_bar()
    kind = network.config_class.model_type
    config = transformers.AutoConfig.from_pretrained(path, **options)
    if config.model_type != kind:
        architectures = ", ".join(config.architectures or []) or "no architecture named"
        raise CheckpointError(
            f"{path} is a checkpoint of {config.model_type!r} ({architectures}), and {name!r} is "
            f"loaded from {kind!r}. Load it under the name of its own family"
        )
    for setting, value in changes.items():
        setattr(config, setting, value)
    with quiet():
        model, info = network.from_pretrained(
            path, config=config, dtype=torch.float32, output_loading_info=True, **options
        )
    require_complete(info, name, allowed_missing=optional, allowed_unexpected=ignored)
    return model, set(info["missing_keys"])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from reporting weights, which the caller checks."""
    before = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.utils.logging.set_verbosity(before)


def read_tokenizer(path: str | Path):
    """Return the fast tokenizer of a folder or of a name on the hub."""
    options = {"trust_remote_code": False, "local_files_only": Path(path).is_dir()}
    return transformers.AutoTokenizer.from_pretrained(path, use_fast=True, **options)


def read_network_and_tokenizer(
    network: type[transformers.PreTrainedModel],
    entry: Entry,
    checkpoint: str | Path | None,
    optional: Iterable[str] = (),
) -> Loaded:
    """Load what an adapter needs.

    Parameters
    ----------
    network
        A class of transformers.
    entry
        Of the registry.
    checkpoint
        A folder, a name on the hub, or a file in a layout of the original authors (see
        :mod:`biaslib.models._originals`), with a tokenizer beside it in its folder; ``None`` takes
        the entry's source.
    optional
        Patterns, as of a shell, of weights that may be missing.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another architecture, damaged, or lacks weights or has others; or a
        file has no tokenizer beside it.
    """
    path = checkpoint or entry.source.removeprefix("hub ")
    if not Path(path).is_file():
        model, _ = read_network(network, path, entry.name, optional, ["*.position_ids"])
        return Loaded(model, read_tokenizer(path), revision_of(path, model))
    path = Path(path)
    require_tokenizer(path)
    model, _ = _originals.read(path, network, entry.name, optional)
    return Loaded(model, read_tokenizer(path.parent), revision_of(path))


def require_tokenizer(path: Path) -> None:
    """Refuse a file of the original authors that has no tokenizer beside it."""
    if not any((path.parent / name).is_file() for name in TOKENIZER_FILES):
        raise CheckpointError(
            f"there is no tokenizer beside {path}, and files of the authors bring none: put "
            "vocab.txt and tokenizer_config.json of google-bert/bert-base-uncased in its folder"
        )
