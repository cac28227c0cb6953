"""Published weights into networks; networks into safetensors with a configuration, and back."""

import importlib
import json
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from biaslib.runtime import unknown_name

__all__ = [
    "Layout",
    "WrongCheckpointError",
    "built",
    "count_layers",
    "load_converted",
    "read_official",
    "require_variant",
    "save_converted",
]

WRAPPERS = ("state_dict", "model", "model_state_dict")
"""Names under which the authors' scripts put the weights beside the optimiser's state."""

MODULES = {
    "ALBEF": "albef",
    "MultiTaskViLBERT": "vilbert",
    "VLBert": "vl_bert",
    "ViLBERT": "vilbert",
    "VoltaVLBert": "volta",
}
"""Which module of this folder holds each network that can be converted."""

NAMED = 6
"""How many tensors an error names at most."""

Network = TypeVar("Network", bound=nn.Module)


class WrongCheckpointError(ValueError):
    """The weights are not those of the network that was asked for."""


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
        WrongCheckpointError
            If a copy differs from what it should be a copy of.

        Examples
        --------
        >>> layout = Layout(renames=[("^old", "new")], unused=["_queue$"])
        >>> list(layout.apply({"old.weight": torch.ones(1), "text_queue": torch.ones(1)}))
        ['new.weight']
        """
        renamed = {self._renamed(name): tensor for name, tensor in state.items()}
        kept, copied = {}, {}
        for name, tensor in renamed.items():
            if any(re.search(pattern, name) for pattern in self.unused):
                continue
            (copied if self._original(name) else kept)[name] = tensor
        differing = []
        for name, tensor in copied.items():
            original = kept.setdefault(self._original(name), tensor)
            if not torch.equal(original, tensor):
                differing.append(f"{name} and {self._original(name)}")
        if differing:
            raise WrongCheckpointError(
                f"tensors that should be the same one differ: {_listed(differing)}; the file was "
                "not written by the authors' code for this network"
            )
        return kept

    def _renamed(self, name: str) -> str:
        for pattern, new in self.renames:
            name = re.sub(pattern, new, name)
        return name

    def _original(self, name: str) -> str | None:
        for pattern, original in self.copies:
            if re.search(pattern, name):
                return re.sub(pattern, original, name)
        return None


def read_official(weights: str | Path | Mapping) -> dict[str, torch.Tensor]:
    """Return the tensors of a published file by their names, in float32.

    What wraps them is taken off: the dictionary around them (``state_dict``, ``model``,
    ``model_state_dict``) and the prefix ``module.``; the old names ``gamma`` and ``beta`` become
    ``weight`` and ``bias``. Nothing but tensors and plain values is unpickled.

    Parameters
    ----------
    weights
        A file of torch or a ``.safetensors``; or what is in it.

    Returns
    -------
    dict
        Copies; the mapping that was passed stays as it is.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    WrongCheckpointError
        If the file cannot be read, or holds something else than tensors.

    Examples
    --------
    >>> list(read_official({"state_dict": {"module.LayerNorm.gamma": torch.ones(2)}}))
    ['LayerNorm.weight']
    """
    state = weights if isinstance(weights, Mapping) else _read(Path(weights))
    for wrapper in WRAPPERS:
        if isinstance(state.get(wrapper), Mapping):
            state = state[wrapper]
    others = [str(name) for name, value in state.items() if not isinstance(value, torch.Tensor)]
    if others or not state:
        raise WrongCheckpointError(
            f"weights should be tensors by name, or such a mapping under {' or '.join(WRAPPERS)}; "
            f"these are not tensors: {_listed(others) or 'the mapping is empty'}"
        )
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
    WrongCheckpointError
        If tensors are missing, unknown or of another shape; the message names them.
    """
    with torch.device("meta"):
        empty = network(config)
    tensors = layout.apply(state)
    wanted = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    _require_same(network.__name__, wanted, {n: tuple(t.shape) for n, t in tensors.items()})
    empty.load_state_dict(tensors, assign=True)
    return empty.eval()


def require_variant(found: str, wanted: str, known: Sequence[str]) -> None:
    """Refuse weights of another variant.

    Parameters
    ----------
    found
        What the weights are, as their names and shapes tell.
    wanted
        What was asked for.
    known
        The variants that can be asked for.

    Raises
    ------
    WrongCheckpointError
        If the two differ.

    Examples
    --------
    >>> require_variant("large-prec", "base-prec", ["base-prec", "large-prec"])
    Traceback (most recent call last):
    biaslib.models.networks.files.WrongCheckpointError: these are the weights of 'large-prec', \
not of 'base-prec'; ask for the variant 'large-prec'
    """
    if found == wanted:
        return
    fix = f"ask for the variant {found!r}" if found in known else f"there are {', '.join(known)}"
    raise WrongCheckpointError(f"these are the weights of {found!r}, not of {wanted!r}; {fix}")


def count_layers(state: Mapping[str, torch.Tensor], prefix: str) -> int:
    """Return how many numbered layers have names that begin so.

    Examples
    --------
    >>> count_layers({"layer.0.a": None, "layer.0.b": None, "layer.1.a": None}, "layer.")
    2
    """
    start = re.compile(re.escape(prefix) + r"(\d+)\.")
    return len({found.group(1) for name in state if (found := start.match(name))})


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
    written = {"network": type(network).__name__, **asdict(network.config)}
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
    WrongCheckpointError
        If weights and configuration do not fit each other.
    """
    folder = Path(folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    name = settings.pop("network", None)
    if name not in MODULES:
        raise unknown_name("network", name, MODULES)
    module = importlib.import_module(f"biaslib.models.networks.{MODULES[name]}")
    network = getattr(module, name)
    config = getattr(module, f"{name}Config")
    known = [field.name for field in fields(config)]
    for setting in settings.keys() - set(known):
        raise unknown_name("setting", setting, known)
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    return built(network, config(**settings), read_official(folder / "model.safetensors"))


def _read(path: Path) -> Mapping:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "Unsupported" in str(error) or "GLOBAL" in str(error):
            raise WrongCheckpointError(
                f"{path} holds Python objects beside tensors, which could run code when read. If "
                "you trust it, write its tensors alone into another file: "
                "torch.save(torch.load(old, weights_only=False)['state_dict'], new)"
            ) from error
        raise WrongCheckpointError(_unreadable(path)) from error
    except Exception as error:
        raise WrongCheckpointError(_unreadable(path)) from error


def _unreadable(path: Path) -> str:
    return (
        f"{path} cannot be read as weights; it may be half of a download, or a web page that was "
        "saved in place of the file. Fetch it again"
    )


def _plain(name: str) -> str:
    name = name.removeprefix("module.")
    return re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", name))


def _single(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32 if tensor.is_floating_point() else None).clone()


def _require_same(what: str, wanted: dict[str, tuple], found: dict[str, tuple]) -> None:
    shapes = [
        f"{name} has the shape {found[name]} and not {wanted[name]}"
        for name in wanted
        if name in found and found[name] != wanted[name]
    ]
    problems = {
        "missing": [name for name in wanted if name not in found],
        "unknown": [name for name in found if name not in wanted],
        "of another shape": shapes,
    }
    told = [f"{kind}: {_listed(names)}" for kind, names in problems.items() if names]
    if told:
        raise WrongCheckpointError(f"these are not the weights of this {what}. {'; '.join(told)}")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
