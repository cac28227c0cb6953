"""Published weights into networks; networks as safetensors with a configuration."""

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save_file
from torch import nn

from biaslib.models._checkpoints import (
    CheckpointError,
    read_weights,
    require_same,
    unwrapped,
)
from biaslib.runtime import unknown_name

__all__ = [
    "HEAD",
    "Layout",
    "Sizes",
    "bert_axes",
    "built",
    "class_of",
    "config_for",
    "load_converted",
    "read_official",
    "save_converted",
]

NETWORKS = {
    "albef": "albef.Albef",
    "vilbert": "vilbert.Vilbert",
    "vl_bert": "vl_bert.VlBert",
}
"""By ``model_type``: the module of this folder, and how its network and configuration begin."""

HEAD = 64
"""Numbers a head in BERT of any published size."""

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class Layout:
    """How the names in a published file relate to those of a network.

    Each pair is a regular expression and what replaces it.

    Parameters
    ----------
    renames
        Names that differ, replaced one after the other.
    copies
        Second names of one and the same tensor, with the name to keep; the copy must be equal.
    unused
        Tensors that the network does not use: dropped.
    """

    renames: Sequence[tuple[str, str]] = ()
    copies: Sequence[tuple[str, str]] = ()
    unused: Sequence[str] = ()

    def apply(self, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tensors by the network's names, each once.

        Raises
        ------
        CheckpointError
            If a copy differs from what it should be a copy of.

        Examples
        --------
        >>> layout = Layout(renames=[("^old", "new")], unused=["_queue$"])
        >>> list(layout.apply({"old.weight": torch.ones(1), "text_queue": torch.ones(1)}))
        ['new.weight']
        """
        kept, copied = {}, {}
        for name, tensor in self.renamed(state).items():
            if any(re.search(pattern, name) for pattern in self.unused):
                continue
            (copied if self._original(name) else kept)[name] = tensor
        differing = []
        for name, tensor in copied.items():
            original = kept.setdefault(self._original(name), tensor)
            if not torch.equal(original, tensor):
                differing.append(f"{name} and {self._original(name)}")
        if differing:
            raise CheckpointError(
                f"tensors that should be the same one differ: {', '.join(differing[:3])}; the file "
                "was not written by the authors' code for this network"
            )
        return kept

    def renamed(self, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return all tensors, copies and unused ones among them, by the network's names."""
        return {self._renamed(name): tensor for name, tensor in state.items()}

    def _renamed(self, name: str) -> str:
        for pattern, new in self.renames:
            name = re.sub(pattern, new, name)
        return name

    def _original(self, name: str) -> str | None:
        for pattern, original in self.copies:
            if re.search(pattern, name):
                return re.sub(pattern, original, name)
        return None


@dataclass(frozen=True)
class Sizes:
    """Where a published file, which brings no configuration, tells the sizes of its network.

    Parameters
    ----------
    axes
        By setting: a tensor, by the network's name, and the axis that is as long.
    counts
        By setting: a regular expression for the numbered layers that are counted.
    heads
        By setting: the setting that is divided among the heads, and the numbers a head, as in the
        published networks; how many heads there are is in no tensor.
    """

    axes: Mapping[str, tuple[str, int]]
    counts: Mapping[str, str]
    heads: Mapping[str, tuple[str, int]]

    def of(self, state: Mapping[str, torch.Tensor], config: Any) -> Any:
        """Return a configuration with the sizes of the tensors; those that none tells stay.

        Parameters
        ----------
        state
            Tensors by the network's names.
        config
            Of the published network of this kind.

        Raises
        ------
        CheckpointError
            If a size is not published and cannot be divided among heads as in those that are.

        Examples
        --------
        >>> from biaslib.models.networks.vl_bert import SIZES, VlBertConfig
        >>> words = {"vlbert.word_embeddings.weight": torch.zeros(5, 128)}
        >>> found = SIZES.of(words, VlBertConfig())
        >>> found.vocab_size, found.hidden_size, found.num_attention_heads
        (5, 128, 2)
        """
        found = {
            setting: state[name].shape[axis]
            for setting, (name, axis) in self.axes.items()
            if name in state
        }
        for setting, pattern in self.counts.items():
            layers = {match[0] for name in state if (match := re.match(pattern, name))}
            found |= {setting: len(layers)} if layers else {}
        sized = replace(config, **found)
        return replace(sized, **self._heads(config, sized))

    def _heads(self, config: Any, sized: Any) -> dict[str, int]:
        """Return the numbers of heads where a size is another than the published one."""
        found = {}
        for heads, (size, numbers) in self.heads.items():
            width = getattr(sized, size)
            if width == getattr(config, size):
                continue
            if width % numbers:
                raise CheckpointError(
                    f"the weights are of a network with {size} {width}, which was not published; "
                    "how many heads it has is in no tensor, and it is no multiple of the "
                    f"{numbers} numbers a head of the published ones. Pass its configuration"
                )
            found[heads] = width // numbers
        return found


def bert_axes(embeddings: str, layers: str) -> dict[str, tuple[str, int]]:
    """Return where a BERT tells its sizes, as :class:`Sizes` takes them.

    Parameters
    ----------
    embeddings, layers
        What the names of its embeddings and of its layers begin with.

    Examples
    --------
    >>> bert_axes("bert.embeddings", "bert.encoder.layer")["hidden_size"]
    ('bert.embeddings.word_embeddings.weight', 1)
    """
    words = f"{embeddings}.word_embeddings.weight"
    return {
        "vocab_size": (words, 0),
        "hidden_size": (words, 1),
        "intermediate_size": (f"{layers}.0.intermediate.dense.weight", 0),
        "max_position_embeddings": (f"{embeddings}.position_embeddings.weight", 0),
        "type_vocab_size": (f"{embeddings}.token_type_embeddings.weight", 0),
    }


def read_official(weights: str | Path | Mapping) -> dict[str, torch.Tensor]:
    """Return the tensors of a published file by their names, in float32.

    What wraps them is taken off, as :func:`biaslib.models._checkpoints.unwrapped` says; the old
    names ``gamma`` and ``beta`` become ``weight`` and ``bias``.

    Parameters
    ----------
    weights
        A file of torch or a ``.safetensors``; or what is in it.

    Returns
    -------
    dict
        Copies; a mapping that was passed stays as it is.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CheckpointError
        If the file is damaged, or holds anything but tensors and plain values.

    Examples
    --------
    >>> list(read_official({"state_dict": {"module.LayerNorm.gamma": torch.ones(2)}}))
    ['LayerNorm.weight']
    """
    state = unwrapped(weights) if isinstance(weights, Mapping) else read_weights(weights)
    return {_plain(name): _single(tensor) for name, tensor in state.items()}


def built(
    network: type[Network],
    config,
    state: Mapping[str, torch.Tensor],
    layout: Layout = Layout(),
) -> Network:
    """Return a network with the given weights, in evaluation mode.

    Parameters
    ----------
    network
        Its class.
    config
        What its class takes.
    state
        Tensors by the file's names.
    layout
        How those relate to the network's.

    Raises
    ------
    CheckpointError
        If tensors are missing, unknown or of another shape; the message names them.
    """
    with torch.device("meta"):
        empty = network(config)
    tensors = layout.apply(state)
    require_same(tensors, empty.state_dict(), network.__name__)
    empty.load_state_dict(tensors, assign=True)
    return empty.eval()


def config_for(found: str, variants: Mapping[str, Any], family: str) -> Any:
    """Return the configuration of published weights.

    Parameters
    ----------
    found
        What the weights are, as their names and shapes tell.
    variants
        Configurations by variant.
    family
        What the models are called, for the error.

    Raises
    ------
    CheckpointError
        If the weights are of no known variant.

    Examples
    --------
    >>> config_for("another family of models", {"base": 1, "large": 2}, "VL-BERT")
    Traceback (most recent call last):
    biaslib.models.errors.CheckpointError: these are the weights of 'another family of models', \
which are not known of VL-BERT; known: base, large
    """
    if found not in variants:
        raise CheckpointError(
            f"these are the weights of {found!r}, which are not known of {family}; known: "
            f"{', '.join(variants)}"
        )
    return variants[found]


def save_converted(
    network: nn.Module, folder: str | Path, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a network as ``model.safetensors`` and ``config.json``.

    Parameters
    ----------
    network
        One of this folder's.
    folder
        Where; made if it is not there.
    dtype
        In which the weights are stored.

    Returns
    -------
    Path
        The folder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {n: t.detach().to("cpu", dtype) for n, t in network.state_dict().items()}
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    kinds = {class_of(kind, "Network"): kind for kind in NETWORKS}
    written = {"model_type": kinds[type(network)], **asdict(network.config)}
    text = json.dumps(written, indent=2) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


def load_converted(folder: str | Path) -> nn.Module:
    """Read what :func:`save_converted` wrote.

    Returns
    -------
    torch.nn.Module
        In evaluation mode, in float32.

    Raises
    ------
    FileNotFoundError
        If the folder lacks a file.
    UnknownNameError
        If its configuration names a network or a setting that is not known.
    CheckpointError
        If weights and configuration do not fit each other.
    """
    folder = Path(folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = settings.pop("model_type", None)
    if kind not in NETWORKS:
        raise unknown_name("model_type", kind, NETWORKS)
    network, config = class_of(kind, "Network"), class_of(kind, "Config")
    known = [field.name for field in fields(config)]
    for setting in settings.keys() - set(known):
        raise unknown_name("setting", setting, known)
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return built(network, config(**settings), read_official(folder / "model.safetensors"))


def class_of(kind: str, what: str) -> type:
    """Return the class of a ``model_type``: its ``Network`` or its ``Config``.

    Examples
    --------
    >>> class_of("vl_bert", "Config").__name__
    'VlBertConfig'
    """
    module, name = NETWORKS[kind].split(".")
    return getattr(importlib.import_module(f"biaslib.models.networks.{module}"), name + what)


def _plain(name: str) -> str:
    name = name.removeprefix("module.")
    return re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name))


def _single(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32 if tensor.is_floating_point() else None).clone()
