"""Speed of networks of published sizes, and calls that meet a lack of memory."""

import contextlib
import dataclasses
import functools
import gc
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from biaslib import models
from tools.benchmarks import full_size, full_size_models
from tools.benchmarks.gpu._machine import calculating_in, finish, on_cuda, seconds

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
"""Of a network where the device is none of CUDA's."""

SHARE = 0.5
"""Of the memory that a call takes beside its model, what it is left with."""


class Task(NamedTuple):
    """What is measured: a model, the name of its forward pass, its public call, and of how much.

    ``regions`` tells of texts with regions; other items are pictures of 224 by 224 pixels.
    """

    family: str
    builder: Callable[..., full_size_models.Parts]
    settings: dict[str, Any]
    passes: str
    public: Callable[[Any, Any], np.ndarray]
    items: int
    regions: bool = False


def encoded(model: Any, images: Any) -> np.ndarray:
    """Return vectors of pictures."""
    return model.encode_image(images)


def embedded(model: Any, images: Any) -> np.ndarray:
    """Return vectors of texts with regions."""
    return model.embed(full_size.texts(len(images)), images)


def clip(builder: Callable, n: int) -> Task:
    """Return the task of a dual encoder."""
    small = {"text": SMALL, "vision": SMALL}
    return Task("clip", builder, small, "encode_batch_of_images", encoded, n)


TASKS = {
    "ViT-H/14": clip(full_size_models.clip_h14, 512),
    "VisualBERT": Task(
        "visualbert", full_size_models.visualbert, SMALL, "forward", embedded, 1024, regions=True
    ),
    "CLIP ViT-B/32": clip(full_size_models.clip, 2048),
}
"""In order of worth, with what makes each network small."""

FEW = 6
"""Items of a small network."""


@functools.lru_cache(maxsize=1)
def built(name: str, size: str, device: str) -> Any:
    """Return a task's model, of random weights, loaded as a user loads it."""
    gc.collect()
    if on_cuda(device):
        torch.cuda.empty_cache()
    task = TASKS[name]
    builder = full_size_models.clip if size == "tiny" and task.family == "clip" else task.builder
    with tempfile.TemporaryDirectory() as folder:
        builder(**(task.settings if size == "tiny" else {})).write(Path(folder))
        return models.load(task.family, profile="paper", checkpoint=folder, device=device)


def inputs(task: Task, size: str) -> Any:
    """Return a task's pictures, or regions."""
    n = task.items if size == "full" else FEW
    if task.regions:
        regions = full_size.regions(2048, n)
        return dataclasses.replace(regions, features=regions.features.astype(np.float32))
    return list(np.random.default_rng(0).integers(0, 256, (n, 224, 224, 3), dtype=np.uint8))


@contextlib.contextmanager
def timed(model: Any, name: str) -> Iterator[list[float]]:
    """Give a list that gets the seconds of every forward pass, which the device has then ended."""
    taken: list[float] = []
    forward = getattr(model, name)

    def timing(*args: Any, **kwargs: Any) -> Any:
        finish()
        started = time.perf_counter()
        found = forward(*args, **kwargs)
        finish()
        taken.append(time.perf_counter() - started)
        return found

    with mock.patch.object(model, name, timing):
        yield taken


def measured(
    name: str, precision: str, size: str, device: str, ceilings: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield the record of a task in a precision; ``ceilings`` are in TFLOP/s by precision."""
    model, task = built(name, size, device), TASKS[name]
    given = inputs(task, size)
    n, public = len(given), functools.partial(task.public, model, given)
    with calculating_in(precision, device):
        operations = flop(public)
        with timed(model, task.passes) as taken:
            public()
        record = {
            "items": n,
            "passes": len(taken),
            "flop_an_item": operations // n,
            "network_a_second": round(n / sum(taken), 2),
            "public_a_second": round(n / min(seconds(public), seconds(public)), 2),
        }
    speed, ceiling = operations / sum(taken) / 1e12, ceilings.get(precision)
    record["tflop_a_second"] = round(speed, 4)
    yield record | {"share_of_ceiling": round(speed / ceiling, 4) if ceiling else None}


def flop(function: Callable[[], Any]) -> int:
    """Return the floating-point operations of a call's products and convolutions.

    Attention is calculated by plain products, which are counted on any device.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            function()
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    return counter.get_total_flops()


# Memory


def out_of_memory(name: str, size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield whether a call that meets a lack of memory says what it says with enough."""
    model, task = built(name, size, device), TASKS[name]
    given = inputs(task, size)
    with calculating_in("float32", device):
        expected = task.public(model, given)
        with (
            short_of_memory(model, task, given, device) as limit,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            found = task.public(model, given)
    apart = float(np.abs(found - expected).max() / np.abs(expected).max())
    notes = [str(each.message) for each in caught if "did not fit in memory" in str(each.message)]
    yield {"limit": limit, "notes": notes, "largest_difference": apart, "same": apart < 1e-5}


@contextlib.contextmanager
def short_of_memory(model: Any, task: Task, given: Any, device: str) -> Iterator[str]:
    """Give a call on a card half of the memory that it takes; elsewhere, refuse many rows."""
    if not on_cuda(device):
        rows = len(given) // 2
        with mock.patch.object(model, task.passes, refusing(getattr(model, task.passes), rows)):
            yield f"{rows} rows"
        return
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    task.public(model, given)
    taken = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + SHARE * taken
    whole = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / whole)
    try:
        yield f"{limit / 1e9:.2f} GB"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def refusing(forward: Callable, rows: int) -> Callable:
    """Return a forward pass that finds no memory for more rows than that."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        tensors = [each for each in tree_leaves((args, kwargs)) if torch.is_tensor(each)]
        if len(tensors[0]) > rows:
            raise torch.OutOfMemoryError(f"out of memory: more than {rows} rows")
        return forward(*args, **kwargs)

    return refuse
