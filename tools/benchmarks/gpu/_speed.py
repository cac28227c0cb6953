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

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils.flop_counter import FlopCounterMode

from biaslib import models
from biaslib.pictures.regions import RegionFeatures
from tools.benchmarks import full_size, full_size_models
from tools.benchmarks.gpu._machine import calculating_in, finish, on_cuda, seconds

SHARE = 0.5
"""Of the memory that a call takes beside its model, what it is left with."""


class Task(NamedTuple):
    """What is measured: a family at a size, its public call, and of how many items at most.

    ``regions`` tells of texts with regions; other items are pictures of 224 by 224 pixels.
    """

    family: str
    builder: Callable[..., Any]
    public: Callable[[Any, Any], np.ndarray]
    items: int
    regions: bool = False


def encoded(model: Any, images: Any) -> np.ndarray:
    """Return vectors of pictures."""
    return model.encode_image(images)


def embedded(model: Any, images: Any) -> np.ndarray:
    """Return vectors of texts, with regions where the model reads them."""
    beside = images if isinstance(images, RegionFeatures) else None
    return model.embed(full_size.texts(len(images)), beside)


def matched(model: Any, images: Any) -> np.ndarray:
    """Return how well two captions fit each picture."""
    said = full_size.texts(2 * len(images))
    return model.match(images, [said[row : row + 2] for row in range(0, len(said), 2)])


def scored(model: Any, images: Any) -> np.ndarray:
    """Return log-likelihoods of two captions of each picture."""
    return model.log_likelihood(images, [["a woman", "a man"]] * len(images)).total


def detected(model: Any, images: Any) -> np.ndarray:
    """Return features of each picture's regions."""
    return model.regions(images, words=None).features


TASKS = {
    "ViT-H/14": Task("clip", full_size_models.clip_h14, encoded, 512),
    "VisualBERT": Task("visualbert", full_size_models.visualbert, embedded, 1024, True),
    "CLIP ViT-B/32": Task("clip", full_size_models.clip, encoded, 2048),
    "detector": Task("detector", full_size_models.detector, detected, 32),
    "ViLT": Task("vilt", full_size_models.vilt, matched, 256),
    "LLaVA": Task("llava", full_size_models.llava, scored, 32),
    "VL-BERT": Task("vl-bert", full_size_models.vl_bert_base, embedded, 1024, True),
    "ALBEF": Task("albef", full_size_models.albef, matched, 128),
    "FLAVA": Task("flava", full_size_models.flava, matched, 128),
    "BERT": Task("bert", full_size_models.bert_base, embedded, 2048),
    "LXMERT": Task("lxmert", full_size_models.lxmert, embedded, 1024, True),
    "ViLBERT": Task("vilbert", full_size_models.vilbert, embedded, 1024, True),
}
"""In order of worth, every family once, and CLIP in two sizes."""

FEW = 6
"""Items of a small network, and those whose operations are counted."""

AT_THE_CEILING = 1.0
"""Seconds that the items of a call would take at the ceiling: fewer items on a slower card."""


@functools.lru_cache(maxsize=1)
def written(name: str, size: str, device: str) -> tempfile.TemporaryDirectory:
    """Return a folder with a task's model, of random weights, which goes with the next one."""
    folder, task = tempfile.TemporaryDirectory(), TASKS[name]
    settings = full_size_models.TINY[task.family] if size == "tiny" else {}
    task.builder(**settings).write(Path(folder.name), device)
    return folder


def loaded(name: str, size: str, device: str) -> Any:
    """Return a task's model, loaded as a user loads it."""
    gc.collect()
    if on_cuda(device):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    place = full_size.checkpoint(Path(written(name, size, device).name))
    if TASKS[name].family == "llava":
        return models.load(str(place), device=device)
    return models.load(TASKS[name].family, profile="paper", checkpoint=place, device=device)


def inputs(task: Task, n: int) -> Any:
    """Return n pictures, or as many pictures' regions."""
    if task.regions:
        regions = full_size.regions(2048, n)
        return dataclasses.replace(regions, features=regions.features.astype(np.float32))
    return list(np.random.default_rng(0).integers(0, 256, (n, 224, 224, 3), dtype=np.uint8))


@contextlib.contextmanager
def timed_passes() -> Iterator[list[float]]:
    """Give a list that gets the seconds of every call of a network, which the device has ended.

    A network may be called by parts, such as a tower and what projects its vectors.
    """
    began: list[float] = []
    taken: list[float] = []

    def before(*_: Any) -> None:
        if not began:
            finish()
        began.append(time.perf_counter())

    def after(*_: Any) -> None:
        started = began.pop()
        if not began:
            finish()
            taken.append(time.perf_counter() - started)

    hooks = [register_module_forward_pre_hook(before), register_module_forward_hook(after)]
    try:
        yield taken
    finally:
        for hook in hooks:
            hook.remove()


def measured(
    name: str, precision: str, size: str, device: str, ceilings: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield the record of a task in a precision; ``ceilings`` are in TFLOP/s by precision."""
    task, ceiling = TASKS[name], ceilings.get(precision)
    with calculating_in(precision, device):
        model = loaded(name, size, device)
        few = inputs(task, FEW)
        each = flop(lambda: task.public(model, few)) / FEW
        n = fitting(task, each, ceiling) if size == "full" else FEW
        public = functools.partial(task.public, model, inputs(task, n))
        operations = flop(public)
        once = seconds(public)
        with timed_passes() as taken:
            public()
        again = seconds(public)
    speed = operations / sum(taken) / 1e12
    record = {
        "items": n,
        "flop_an_item": operations // n,
        "network_a_second": round(n / sum(taken), 2),
        "public_a_second": round(n / min(once, again), 2),
        "tflop_a_second": round(speed, 4),
        "share_of_ceiling": round(speed / ceiling, 4) if ceiling else None,
    }
    if on_cuda(device):
        record["peak_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    yield record


def fitting(task: Task, each: float, ceiling: float | None) -> int:
    """Return how many items a call has, of so many operations each: fewer on a slower card.

    Examples
    --------
    >>> fitting(TASKS["ViT-H/14"], 3.3e11, 25), fitting(TASKS["ViT-H/14"], 3.3e11, 700)
    (75, 512)
    """
    most = AT_THE_CEILING * ceiling * 1e12 / each if ceiling else task.items
    return int(min(task.items, max(FEW, most)))


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
    task = TASKS[name]
    given = inputs(task, task.items if size == "full" else FEW)
    with calculating_in("float32", device):
        model = loaded(name, size, device)
        expected = task.public(model, given)
        with (
            short_of_memory(functools.partial(task.public, model, given), device) as limit,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            found = task.public(model, given)
    apart = float(np.abs(found - expected).max() / np.abs(expected).max())
    notes = [str(each.message) for each in caught if "did not fit in memory" in str(each.message)]
    yield {"limit": limit, "notes": notes, "largest_difference": apart, "same": apart < 1e-5}


@contextlib.contextmanager
def short_of_memory(public: Callable[[], Any], device: str) -> Iterator[str]:
    """Give a call on a card half of the memory that it takes; elsewhere, all of it."""
    if not on_cuda(device):
        yield "none"
        return
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    public()
    taken = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_reserved() + SHARE * taken
    whole = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / whole)
    try:
        yield f"{limit / 1e9:.2f} GB"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
