"""Memory that runs out, and where a card waits for the processor."""

import collections
import contextlib
import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from tools.benchmarks import loops
from tools.benchmarks.gpu import _numerics, _speed
from tools.benchmarks.gpu._machine import calculating_in, on_cuda
from tools.benchmarks.gpu._schedule import SkippedError, Step

ROOT = Path(__file__).parents[3]
SHARE = 0.5
"""Of the memory that a call takes beside its model, what it is left with."""

SYNCHRONISES = "synchronizing CUDA operation"
"""What PyTorch's warning of a wait says."""

SMALLER = "did not fit in memory"


def memory_steps(size: str, device: str) -> list[Step]:
    """Return a step for a dual encoder, and for a fusion model of regions."""
    return [
        Step("memory", name, 8, functools.partial(out_of_memory, name, size, device))
        for name in ("CLIP ViT-B/32", "VisualBERT")
    ]


def out_of_memory(name: str, size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield whether a call that meets a lack of memory says what it says with enough."""
    asked, _ = _speed.built(name, size, device)
    given, _ = _speed.inputs(name, size, asked.model)
    rows = len(given) // 2
    with calculating_in("float32", device):
        expected = asked.public(given)
        with short_of_memory(asked, given, device, rows) as limit:
            found, notes = noted(lambda: asked.public(given))
    apart = float(np.abs(found - expected).max() / np.abs(expected).max())
    yield {"limit": limit, "note": notes, "largest_difference": apart, "same": apart < 1e-5}


@contextlib.contextmanager
def short_of_memory(asked: Any, given: Any, device: str, rows: int) -> Iterator[str]:
    """Give a call on a card half of the memory that it takes; elsewhere, refuse many rows."""
    if not on_cuda(device):
        with loops.watched(asked.owner, asked.name, refusing(rows)):
            yield f"{rows} rows"
        return
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    asked.public(given)
    taken = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + SHARE * taken
    whole = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / whole)
    try:
        yield f"{limit / 1e9:.2f} GB"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def refusing(rows: int) -> Callable[[tuple, dict], None]:
    """Return what finds no memory for a forward pass of more rows than that."""

    def refuse(args: tuple, kwargs: dict) -> None:
        tensors = [each for each in tree_leaves((args, kwargs)) if torch.is_tensor(each)]
        if len(tensors[0]) > rows:
            raise torch.OutOfMemoryError(f"out of memory: more than {rows} rows")

    return refuse


def noted(call: Callable[[], np.ndarray]) -> tuple[np.ndarray, str | None]:
    """Return what a call returns, and what it says of batches that did not fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    said = [str(each.message) for each in caught]
    return found, next((each for each in said if SMALLER in each), None)


def sync_steps(size: str, device: str) -> list[Step]:
    """Return a step for each planted family."""
    return [
        Step("syncs", each, 3, functools.partial(syncs, each, device))
        for each in _numerics.FAMILIES
    ]


def syncs(name: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield how often a family's calls wait for the card, by line of the package."""
    if not on_cuda(device):
        raise SkippedError(f"nothing waits for {device}")
    model = _numerics.planted(name, device)
    for study, (needed, answers) in _numerics.STUDIES.items():
        if needed() & model.capabilities:
            ask = functools.partial(answers, model, _numerics.SIZES["tiny"])
            ask()  # The first call also waits for what is made once.
            found = waits(ask, torch.cuda.set_sync_debug_mode)
            yield {"study": study, "syncs": sum(found.values()), "by_line": found}


def waits(call: Callable[[], Any], mode: Callable[[str], None]) -> dict[str, int]:
    """Return how often PyTorch warns of a wait, by the file and line of this repository.

    Parameters
    ----------
    call
        What is called.
    mode
        Switches the warnings on (``warn``) and off (``default``).
    """
    found: collections.Counter[str] = collections.Counter()

    def note(message: Any, *where: Any) -> None:
        if SYNCHRONISES in str(message):
            found[calling_line()] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        mode("warn")
        try:
            call()
        finally:
            mode("default")
    return dict(found.most_common())


def calling_line() -> str:
    """Return the innermost line of this repository, outside of this file, that is being run."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if ROOT in path.parents and path != Path(__file__):
            return f"{path.relative_to(ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"
