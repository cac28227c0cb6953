"""Speed: a bare loop, the public call on pictures in memory, and the same on files."""

import dataclasses
import functools
import gc
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tools.benchmarks import loops
from tools.benchmarks.gpu._machine import calculating_in, on_cuda, precisions
from tools.benchmarks.gpu._networks import TASKS, parts_of
from tools.benchmarks.gpu._schedule import Step

QUICK = 2.0
"""A call of fewer seconds is timed a second time."""


def steps(size: str, device: str, ceilings: dict[str, float]) -> list[Step]:
    """Return the steps: all tasks in the two precisions of most worth, then in the others."""
    counted: dict[str, int] = {}
    found = [Step("speed", "load from disk", 8, lambda: load_from_disk(size, device))]
    possible = precisions(device)
    for group in (possible[:2], possible[2:]):
        for name, task in TASKS.items():
            found += [
                Step(
                    "speed",
                    name,
                    task.needs,
                    functools.partial(measured, name, each, size, device, ceilings, counted),
                    each,
                )
                for each in group
                if task.half is None or each != "bfloat16"
            ]
    return found


def measured(
    name: str,
    precision: str,
    size: str,
    device: str,
    ceilings: dict[str, float],
    counted: dict[str, int],
) -> Iterator[dict[str, Any]]:
    """Yield the record of a task in a precision.

    ``ceilings`` are in TFLOP/s by precision; ``counted`` keeps the FLOP of a task's bare loop.
    """
    from biaslib.runtime.batches import autocast

    asked, seconds_to_build = built(name, size, device)
    n = TASKS[name].items[size]
    with calculating_in(precision, device):
        in_memory, files = inputs(name, size, asked.model)
        peak = peak_gb(lambda: asked.public(in_memory), device)
        context = functools.partial(autocast, device, TASKS[name].half)
        public = functools.partial(asked.public, in_memory)
        both = loops.loops(asked.owner, asked.name, public, asked.rows, context)
        if name not in counted:
            counted[name] = flop(both.bare)
        bare = least(both.bare)
        record = {"size": size, "items": n, "passes": both.passes}
        record |= {"build_s": round(seconds_to_build, 2), "flop_an_item": counted[name] // n}
        record |= {"bare_a_second": round(n / bare, 2)}
        record |= {"memory_a_second": round(n / least(public), 2), "files_a_second": None}
        if files is not None:
            from_files = least(lambda: asked.public(files))
            record["files_a_second"] = round(n / from_files, 2)
    speed, ceiling = counted[name] / bare / 1e12, ceilings.get(precision)
    record |= {"tflop_a_second": round(speed, 4), "peak_gb": round(peak, 3)}
    yield record | {"share_of_ceiling": round(speed / ceiling, 4) if ceiling else None}


@functools.lru_cache(maxsize=1)
def built(name: str, size: str, device: str) -> tuple[Any, float]:
    """Return a task's model, built on the device, and the seconds that it took."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    made: list[Any] = []
    taken = loops.seconds(lambda: made.append(TASKS[name].built(size, device)))
    return made[0], taken


def inputs(name: str, size: str, model: Any) -> tuple[Any, list[Path] | None]:
    """Return a task's pictures in memory and as files, which are written once; or regions."""
    n, pixels = TASKS[name].items[size], TASKS[name].pixels
    if pixels is None:
        regions = loops.regions(n, model.width)
        return dataclasses.replace(regions, features=regions.features.astype(np.float32)), None
    most = max(each.items[size] for each in TASKS.values() if each.pixels == pixels)
    files = written(most, *pixels)[:n]
    return decoded(tuple(files)), files


@functools.cache
def folder() -> tempfile.TemporaryDirectory:
    """Return the folder of the pictures, which goes when the process ends."""
    return tempfile.TemporaryDirectory()


@functools.cache
def written(n: int, height: int, width: int) -> list[Path]:
    """Return the files of n pictures."""
    place = Path(folder().name) / f"{n}-{height}-{width}"
    place.mkdir()
    return loops.files(place, n, height, width)


@functools.lru_cache(maxsize=1)
def decoded(files: tuple[Path, ...]) -> list[np.ndarray]:
    """Return pictures of files, uint8 (height, width, 3) each."""
    from biaslib.pictures.images import open_image

    return [np.asarray(open_image(path)) for path in files]


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


def least(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a call, of the quicker of two where it is quick."""
    first = loops.seconds(function, clock)
    return first if first > QUICK else min(first, loops.seconds(function, clock))


def peak_gb(function: Callable[[], Any], device: str) -> float:
    """Return the most memory taken until a call has ended: of the card, or of the process."""
    if not on_cuda(device):
        function()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    torch.cuda.reset_peak_memory_stats()
    function()
    return torch.cuda.max_memory_allocated() / 1e9


def load_from_disk(size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield the seconds in which VisualBERT is loaded from a folder, its checks included."""
    from biaslib import models

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        parts_of("visualbert", size).write(place)
        n_bytes = sum(path.stat().st_size for path in place.rglob("*"))

        def load() -> None:
            models.load("visualbert", profile="paper", checkpoint=place, device=device)

        yield {
            "gb": round(n_bytes / 1e9, 3),
            "load_s": round(loops.seconds(load), 2),
        }
