"""What a model does once at loading: it answers two texts, and two pictures, twice over."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from biaslib.capabilities import EMBED, EMBED_WITH_IMAGES, ENCODE
from biaslib.errors import refusal
from biaslib.models.tokens import TRIED
from biaslib.pictures.regions import RegionFeatures
from biaslib.runtime.batches import precision_of

FLOAT32, HALF = 1e-4, 0.05
"""How far an answer may move with what is beside it, as a share of the largest number in it."""


def tried_out(model: Any, folder: str | Path) -> Any:
    """Return a model that answers the same twice, in any company, and not the same to all.

    A model whose answer to a text depends on the texts beside it reads one at a time from here on.

    Raises
    ------
    CheckpointError
        If what it gives is no number, the same for both of two, or not the same twice.

    Warns
    -----
    UserWarning
        If it reads texts one at a time.
    """
    if getattr(model, "device", None) == "meta":
        return model
    for file, ask in _questions(model):
        both, steady = _asked(model, ask)
        if not steady and getattr(model, "one_at_a_time", None) is False:
            model.one_at_a_time = True
            both, steady = _asked(model, ask)
            what = "answers a text otherwise beside a longer one: it gets one text at a time"
            if steady:
                warnings.warn(f"{model.name} {what}", stacklevel=2)
        if not np.isfinite(both).all() or (both == both[0]).all():
            what = "gives what is no number, or the same for whatever it reads: its weights or its"
            raise refusal(folder, f"{what} {file} are damaged; download them again", file)
        if not steady:
            what = "answers otherwise when it is asked again: switch off what is drawn at random"
            raise refusal(folder, f"{what}, as by active dropout, or goes by what is beside")
    return model


def _questions(model: Any) -> Iterator[tuple[str, Callable[[list[int]], np.ndarray]]]:
    """Yield what a model is asked of rows, and the file that may be at fault."""
    can, rng = model.capabilities, np.random.default_rng(0)
    noise = list(rng.integers(0, 256, (2, 64, 64, 3), dtype=np.uint8))
    if {EMBED, ENCODE} & can:
        read = model.embed if EMBED in can else model.encode_text
        yield "tokenizer.json", lambda rows: read([TRIED[row] for row in rows])
    if ENCODE in can:
        see = model.encode_image
        yield "preprocessor_config.json", lambda rows: see([noise[row] for row in rows])
    elif EMBED_WITH_IMAGES in can:
        # Families of regions take numbers of their own width: two pictures of one region each.
        regions = getattr(model, "width", None) and _regions(rng.normal(size=(2, 1, model.width)))
        yield (
            "config.json",
            lambda rows: model.embed(
                [TRIED[row] for row in rows],
                regions[rows] if regions else [noise[row] for row in rows],
            ),
        )


def _regions(numbers: np.ndarray) -> RegionFeatures:
    there = np.ones((2, 1), dtype=bool)
    return RegionFeatures(numbers, [[[0, 0, 1, 1]]] * 2, there, there, [[64, 64]] * 2)


def _asked(model: Any, ask: Callable[[list[int]], np.ndarray]) -> tuple[np.ndarray, bool]:
    """Return the answers to both, and whether they are the same in turn and alone."""
    both, turned, alone = ask([0, 1]), ask([1, 0])[::-1], ask([0])
    off = FLOAT32 if precision_of(model) == "float32" else HALF
    near = off * np.abs(both).max()
    return both, np.abs(turned - both).max() <= near and np.abs(alone[0] - both[0]).max() <= near
