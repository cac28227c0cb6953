"""Sentence encoders: one vector of a text's hidden states, as ``SentenceTransformer`` makes it."""

from collections.abc import Callable

import torch

from biaslib.checkpoints.sentences import Dense, Modules
from biaslib.checkpoints.weights import read_weights, require_same
from biaslib.errors import CheckpointError


def _mean(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    weights = real.unsqueeze(-1).float()
    return (states * weights).sum(1) / weights.sum(1)


def _mean_by_root(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    weights = real.unsqueeze(-1).float()
    return (states * weights).sum(1) / weights.sum(1).sqrt()


def _later_count_more(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return _mean(states, real * real.cumsum(1))


def _max(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return states.masked_fill(real.unsqueeze(-1) == 0, -torch.inf).amax(1)


def _first(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return states[torch.arange(len(states), device=states.device), real.argmax(1)]


def _last(states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    index = torch.arange(len(states), device=states.device)
    return states[index, -1 - real.flip(1).argmax(1)]


POOLED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _later_count_more,
    "lasttoken": _last,
}
"""Last hidden states (n, tokens, d) and which are real (n, tokens) -> (n, d)."""


class Normalize(torch.nn.Module):
    """Vectors to length 1."""

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors (n, d) of length 1."""
        return torch.nn.functional.normalize(vectors, dim=-1)


class Pooling(torch.nn.Module):
    """Makes one vector of a text's last hidden states.

    Parameters
    ----------
    modes
        Names of :data:`POOLED`, whose vectors are put one behind the other.
    layers
        What follows.
    """

    def __init__(self, modes: tuple[str, ...], layers: tuple[torch.nn.Module, ...] = ()) -> None:
        super().__init__()
        self.modes, self.layers = modes, torch.nn.Sequential(*layers)

    def __str__(self) -> str:
        return " + ".join(self.modes)

    def forward(self, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Return one vector a text, (n, d), of states (n, tokens, d), of which some are real."""
        return self.layers(torch.cat([POOLED[mode](states, real) for mode in self.modes], dim=-1))


def read_pooling(modules: Modules) -> Pooling:
    """Return the pooling of a sentence encoder with the weights of its layers, ready to run.

    Raises
    ------
    CheckpointError
        If a layer has no weights, or others.
    """
    layers = [Normalize() if layer is None else _read_dense(layer) for layer in modules.layers]
    return Pooling(modules.modes, tuple(layers)).eval().requires_grad_(False)


def _read_dense(dense: Dense) -> torch.nn.Module:
    safe = dense.folder / "model.safetensors"
    path = safe if safe.is_file() else dense.folder / "pytorch_model.bin"
    if not path.is_file():
        raise CheckpointError(f"{dense.folder} has no weights of its layer", path=dense.folder)
    weights = {
        name.removeprefix("linear."): tensor.float() for name, tensor in read_weights(path).items()
    }
    layer = torch.nn.Linear(dense.inputs, dense.outputs, bias=dense.bias)
    require_same(weights, layer.state_dict(), str(dense.folder))
    layer.load_state_dict(weights)
    return torch.nn.Sequential(layer, getattr(torch.nn, dense.activation)())
