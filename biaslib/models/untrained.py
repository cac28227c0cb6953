"""The same network before any training: what its scores are is no finding of a trained one."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch

from biaslib.errors import CapabilityError

__all__ = ["DRAWN", "untrained"]

DRAWN = "torch.manual_seed(seed); the network's class (_init_weights) or open_clip.create_model"
"""How weights are drawn, for a record."""


@contextlib.contextmanager
def untrained(model: Any, seed: int) -> Iterator[Any]:
    """Lend a model whose weights are drawn at random, with its own tokenizer and preprocessing.

    The weights are exchanged in place, so that the memory of one more copy is taken on the
    processor and none on a card. Afterwards the model has its own again. Regions are still those of
    the trained detector: they are what the network is shown.

    Parameters
    ----------
    model
        What :func:`biaslib.models.load` returns; it is not to be asked meanwhile.
    seed
        Of the draw: the same weights on every machine with these versions of the libraries.

    Yields
    ------
    object
        The model under a revision of its own, by which answers are stored.

    Raises
    ------
    CapabilityError
        If it is not known how all of its weights are drawn, as of an object of one's own or of
        layers behind a pooling, or the network that its configuration makes has others.

    Examples
    --------
    >>> from biaslib.models import load
    >>> model = load("all-MiniLM-L6-v2")
    >>> with untrained(model, 0) as twin:
    ...     drawn = twin.embed(["apron"])
    >>> bool((drawn == model.embed(["apron"])).any())
    False
    """
    networks = [getattr(model, name, None) for name in ("masked_lm", "network", "model")]
    network = next((each for each in networks if isinstance(each, torch.nn.Module)), None)
    ours = any(kind.__module__.startswith("biaslib.models.") for kind in type(model).__mro__)
    if network is None or not ours or [*getattr(model, "pool", torch.nn.Identity()).parameters()]:
        raise CapabilityError(f"{model.name} does not say how all of its weights are drawn")
    drawn, kept = _drawn(network, seed), []
    twin, said = copy.copy(model), "weights" if hasattr(model, "weights") else "revision"
    setattr(twin, said, f"{getattr(model, said)}, untrained by torch {torch.__version__}: {seed}")
    try:
        for name, tensor in network.state_dict().items():
            kept.append((tensor, tensor.to("cpu", copy=True)))
            tensor.copy_(drawn.pop(name))
        yield twin
    finally:
        for tensor, own in reversed(kept):  # tensors that are one have their own at last
            tensor.copy_(own)


def _drawn(network: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Return the weights of a new network of the same kind."""
    build = getattr(network, "build_untrained", None)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            new = build() if build else type(network)(copy.deepcopy(network.config))
    except Exception as error:
        raise CapabilityError(f"its network cannot be built from its settings: {error}") from error
    drawn, own = new.state_dict(), network.state_dict()
    if {name: each.shape for name, each in own.items()} != {n: t.shape for n, t in drawn.items()}:
        raise CapabilityError("its configuration makes a network of other weights than its own")
    return drawn
