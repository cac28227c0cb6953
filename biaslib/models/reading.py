"""Networks and tokenizers from folders on this disk."""

import contextlib
import copy
import re
import string
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Regex, normalizers

from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import LOCAL, read_json, require_weights, revision_of
from biaslib.checkpoints.weights import (
    read_weights,
    require_complete,
    require_finite,
    require_numbers_for,
)
from biaslib.errors import CheckpointError, refusal
from biaslib.models.networks.network import Network
from biaslib.stimuli import CAPTION_TEMPLATES

__all__ = [
    "Loaded",
    "lowered",
    "quiet",
    "read_network",
    "read_network_and_tokenizer",
    "read_official",
    "read_tokenizer",
    "require_tokenizer",
    "steady",
]

VOCABULARIES = ("tokenizer.json", "vocab.txt", "*.model", "tekken.json")
"""Files that hold a tokenizer's whole vocabulary."""
OF_SIGLIP = ("SiglipTokenizer", "SiglipTokenizerFast")
OWN = "give the tokenizer that the network was saved with"
OF_BERT = "vocab.txt and tokenizer_config.json of google-bert/bert-base-uncased"


class Loaded(NamedTuple):
    """A network, its fast tokenizer, and what names the weights."""

    network: torch.nn.Module
    tokenizer: Any
    revision: str


def read_network(
    network: Any,
    folder: Path,
    name: str,
    optional: Iterable[str] = (),
    ignored: Iterable[str] = ("*.position_ids",),
    numbers: torch.dtype = torch.float32,
    **changes: Any,
) -> tuple[transformers.PreTrainedModel, set[str]]:
    """Load a network's weights, and say which of the optional ones were not there.

    Parameters
    ----------
    network
        A class of transformers, or one that is made from such a class.
    folder
        With weights and configuration.
    name
        The model that was asked for, for errors.
    optional, ignored
        Patterns, as of a shell, of weights that may be missing, and of weights in the file that
        nothing reads.
    numbers
        What the weights are kept as.
    **changes
        Settings of the configuration to replace.

    Returns
    -------
    tuple
        The network and the names of the missing weights.

    Raises
    ------
    CheckpointError
        If other weights are missing or left over, or there is no folder but one file.
    """
    if folder.is_file():
        needed = "a folder with config.json, weights and tokenizer, as transformers saves them"
        raise refusal(folder, f"is one file, and {name!r} is loaded from {needed}")
    kind = getattr(network, "config_class", None) or transformers.AutoConfig
    config = kind.from_pretrained(folder, **LOCAL, **changes)
    build = getattr(network, "from_config", network)
    with quiet():
        files = require_weights(folder)
        require_numbers_for(lambda: build(copy.deepcopy(config)), folder / "config.json", files)
    how = {"config": config, "dtype": numbers, **LOCAL}
    model, missing = _complete(network, folder, name, how, optional, ignored)
    require_finite(model, folder, missing)
    return model, missing


def _complete(
    network: Any,
    folder: Path | None,
    name: str,
    how: dict[str, Any],
    optional: Iterable[str] = (),
    ignored: Iterable[str] = (),
) -> tuple[Any, set[str]]:
    """Return a network with all of its weights, and the names of the optional ones it lacks."""
    how |= {"ignore_mismatched_sizes": True, "output_loading_info": True}
    with quiet():
        model, info = network.from_pretrained(folder, **how)
    require_complete(info, name, allowed_missing=optional, allowed_unexpected=ignored)
    return model, set(info["missing_keys"])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from reporting weights, which the caller checks."""
    transformers.utils.logging.disable_progress_bar()
    before = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.utils.logging.set_verbosity(before)


def read_tokenizer(path: Path, of_bert: bool = False):
    """Return the fast tokenizer of a folder, which pads texts behind their last token.

    Networks that number their positions from the first token on would read other texts otherwise.

    Parameters
    ----------
    path
        The folder.
    of_bert
        Whether the model reads BERT's word pieces. Files that name no class are then read as
        BERT's, as those of google-bert/bert-base-uncased are: transformers would go by the
        network's ``config.json``, and makes of unknown networks a tokenizer without a mask.

    Raises
    ------
    CheckpointError
        If there is none, or a model of BERT's word pieces gets one that cannot pad, mask or tell
        what it does not know.
    """
    require_tokenizer(path)
    settings = read_json(path / "tokenizer_config.json", default={})
    named = settings.get("tokenizer_class")
    if not of_bert:
        siglip = named in OF_SIGLIP
        if siglip and not (path / "tokenizer.json").is_file():
            raise refusal(path, "has no tokenizer.json: take a revision of the model that has it")
        kind = transformers.PreTrainedTokenizerFast if siglip else transformers.AutoTokenizer
        tokenizer = kind.from_pretrained(path, use_fast=True, padding_side="right", **LOCAL)
        if siglip:
            _as_siglip(tokenizer, settings.get("do_lower_case", True))
        return steady(tokenizer, path)
    kind = transformers.AutoTokenizer if named else transformers.BertTokenizerFast
    tokenizer = kind.from_pretrained(path, **LOCAL)
    tokens = ("pad", "mask", "unk")
    if missing := [name for name in tokens if getattr(tokenizer, f"{name}_token") is None]:
        what = f"has a {named or kind.__name__} without a token for {', '.join(missing)}"
        raise refusal(path, f"{what}; put {OF_BERT} there")
    return steady(tokenizer, path)


def steady(tokenizer: Any, path: Path) -> Any:
    """Return a tokenizer that draws nothing at random, and whose panics are errors of its folder.

    It has read the studies' captions.

    Raises
    ------
    CheckpointError
        If it breaks off at one; later, at any text.

    Warns
    -----
    UserWarning
        If it would have dropped merges at random, as in training (BPE dropout).
    """
    if tokenizer.is_fast and getattr(tokenizer.backend_tokenizer.model, "dropout", None):
        tokenizer.backend_tokenizer.model.dropout = None
        what = "its tokenizer splits words at random (dropout, as in training): switched off"
        warnings.warn(what, stacklevel=2)
    kind = type(tokenizer)

    class Told(kind):
        def __call__(self, *texts: Any, **options: Any) -> Any:
            try:
                return super().__call__(*texts, **options)
            except BaseException as error:
                if type(error).__name__ != "PanicException":  # of Rust: it is no Exception
                    raise
                raise refusal(path, f"has a tokenizer that breaks off ({error}): {OWN}") from error

    Told.__name__ = kind.__name__
    tokenizer.__class__ = Told
    tokenizer([caption.format(a="a", word="nurse") for caption in CAPTION_TEMPLATES.values()])
    return tokenizer


def _as_siglip(tokenizer: Any, lower: bool) -> None:
    """Have texts read as ``SiglipTokenizer`` of transformers does, which needs sentencepiece.

    Punctuation goes, and white space is one blank: ``canonicalize_text`` of big_vision.
    """
    _normalised_first(
        tokenizer,
        *([normalizers.Lowercase()] if lower else ()),
        normalizers.Replace(Regex(f"[{re.escape(string.punctuation)}]"), ""),
        normalizers.Replace(Regex(r"\s+"), " "),
        normalizers.Strip(),
    )


def read_network_and_tokenizer(
    network: type[transformers.PreTrainedModel],
    entry: Entry,
    path: Path,
    optional: Iterable[str] = (),
) -> Loaded:
    """Load what an adapter of BERT's word pieces needs.

    Parameters
    ----------
    network
        A class of transformers, or of :mod:`biaslib.models.networks`.
    entry
        Of the registry.
    path
        A folder with weights, configuration and tokenizer; for networks written here also a file
        of the authors, with a tokenizer beside it.
    optional
        Patterns, as of a shell, of weights that may be missing.

    Raises
    ------
    CheckpointError
        If weights are missing or left over, or there is no tokenizer.
    """
    if path.is_file() and issubclass(network, Network):
        folder = require_tokenizer(path)
        model = read_official(network, read_weights(path), entry.name)
        require_finite(model, path)
    else:
        folder = path
        model, _ = read_network(network, path, entry.name, optional)
    with quiet():
        tokenizer = read_tokenizer(folder, of_bert=True)
    return Loaded(model, tokenizer, revision_of(path))


def require_tokenizer(path: Path) -> Path:
    """Return the folder of a checkpoint, which for a file is the one that it lies in.

    Raises
    ------
    CheckpointError
        If there is no tokenizer in it.
    """
    folder = path if path.is_dir() else path.parent
    of_bytes = (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file()
    if of_bytes or any(file != path for name in VOCABULARIES for file in folder.glob(name)):
        return folder
    fix = "save that of the model beside the weights (tokenizer.save_pretrained)"
    if path.is_file():
        fix = f"files of the authors bring none: put {OF_BERT} there"
    raise CheckpointError(f"there is no tokenizer in {folder}, or not all: {fix}", path=folder)


def lowered(tokenizer: Any) -> None:
    """Make a fast tokenizer read texts in lower case."""
    _normalised_first(tokenizer, normalizers.Lowercase())


def _normalised_first(tokenizer: Any, *steps: normalizers.Normalizer) -> None:
    own = tokenizer.backend_tokenizer.normalizer
    steps = [*steps, own] if own else steps
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence(list(steps))


def read_official(
    network: type[Network],
    tensors: Mapping[str, torch.Tensor],
    name: str,
    config: transformers.PreTrainedConfig | None = None,
) -> Network:
    """Return a network with the tensors of an official file, in float32 and evaluation mode.

    Parameters
    ----------
    network
        Its class.
    tensors
        By the names that the file has for them.
    name
        The model that was asked for, for errors.
    config
        Its sizes; by default what the tensors tell.

    Raises
    ------
    CheckpointError
        If tensors are missing, left over or of another shape; the message names them.
    """
    state = network.named(tensors)
    how = {"config": config or network.config_of(state), "dtype": torch.float32}
    return _complete(network, None, name, how | {"state_dict": state})[0]
