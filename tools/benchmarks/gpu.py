"""Time what the studies ask of a card, beside bare loops of the same passes, in every precision.

Run as ``python -m tools.benchmarks gpu`` on the machine with the card. There the networks have
their published sizes and random weights; on any other device, the tiny sizes of the planted world,
which show that this runs and nothing about speed. Prints one JSON record a task and precision:
items a second by the public call, which opens files and reads text, and by the bare loop, whose
tensors are on the device; the ratio of their seconds, of the least and of the median turn; and the
most memory taken: of the card, or of the process. Public call and bare loop must give the same
numbers.
"""

import argparse
import contextlib
import functools
import json
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from biaslib import models, runtime
from biaslib.models._batches import autocast
from tools.benchmarks import full_size_models, loops, overhead
from tools.benchmarks.detector import SETTINGS

PRECISIONS = ("float32", "tf32", "float16", "bfloat16")
ITEMS = {
    "full": {"detector": 64, "ViT-H/14": 1024, "ViLT matching": 256, "study 1": 2048},
    "tiny": {"detector": 5, "ViT-H/14": 6, "ViLT matching": 6, "study 1": 6},
}
"""Pictures, and for study 1 texts with regions."""

PLANTED = "the person is a nurse ."


class Task(NamedTuple):
    """What is loaded and what is asked of it: (size, items, folder, device, precision) -> loops."""

    loops: Callable[..., loops.Loops]
    half: bool = True


def network(size: str, name: str, builder: Callable, folder: Path, device: str):
    """Return a model of the published size with random weights, or a tiny one."""
    if size == "tiny":
        return models.load(name, profile="planted", device=device)
    place = folder / "model"
    if not place.exists():
        place.mkdir()
        builder(place)
    return models.load(name, profile="paper", checkpoint=place, device=device)


def detector(size: str, n: int, folder: Path, device: str, precision: str) -> loops.Loops:
    """The region detector on files of 640 x 480 pixels."""
    settings = SETTINGS
    if size == "tiny":
        settings = overhead.small_settings()
        settings["input"] |= {"min_size_test": 96, "max_size_test": 160}
        settings["resnets"] |= {"stem_out_channels": 8, "width_per_group": 4}
        settings["resnets"]["res2_out_channels"] = 16
        settings["rpn"]["post_nms_topk_test"] = 8
    return overhead.of_detector(settings, loops.files(folder, n), device)


def portraits(size: str, n: int, folder: Path, device: str, precision: str) -> loops.Loops:
    """OpenCLIP's ViT-H/14 on files of 224 x 224 pixels, as FairFace's are."""
    model = network(size, "open-clip", full_size_models.open_clip_h14, folder, device)
    paths = loops.files(folder, n, 224, 224)
    return loops.loops(
        model,
        "encode_batch_of_images",
        lambda: model.encode_image(paths),
        lambda found: torch.nn.functional.normalize(found.float(), dim=-1),
        functools.partial(autocast, device),
    )


def captions(size: str, n: int, folder: Path, device: str, precision: str) -> loops.Loops:
    """ViLT's matching head on files of 640 x 480 pixels with two captions each."""
    model = network(size, "vilt", full_size_models.vilt, folder, device)
    paths = loops.files(folder, n)
    said = [PLANTED] * 2 * n if size == "tiny" else loops.texts(2 * n)
    rows = [said[at : at + 2] for at in range(0, 2 * n, 2)]
    public = functools.partial(model.match, paths, rows)
    context = functools.partial(autocast, device)
    return loops.loops(
        model, "outputs", lambda: public().ravel(), lambda found: found.match, context
    )


def embeddings(size: str, n: int, folder: Path, device: str, precision: str) -> loops.Loops:
    """Study 1's embeddings: VisualBERT on sentences with 36 regions each."""
    model = network(size, "visualbert", full_size_models.visualbert, folder, device)
    said = [PLANTED] * n if size == "tiny" else loops.texts(n)
    images = loops.regions(n, model.width)
    public = functools.partial(model.embed, said, images)
    context = functools.partial(autocast, device)
    return loops.loops(model, "outputs", public, lambda found: found.text[:, 0], context)


TASKS = {
    "detector": Task(detector, half=False),
    "ViT-H/14": Task(portraits),
    "ViLT matching": Task(captions),
    "study 1": Task(embeddings),
}


@contextlib.contextmanager
def calculating_in(precision: str) -> Iterator[None]:
    """Set the precision of a run, and TF32 for both products and convolutions, or for neither."""
    before = os.environ.get("BIASLIB_PRECISION")
    settings = torch.backends.cuda.matmul, torch.backends.cudnn
    flags = [each.allow_tf32 for each in settings]
    os.environ["BIASLIB_PRECISION"] = "float32" if precision == "tf32" else precision
    for each in settings:
        each.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        for each, flag in zip(settings, flags, strict=True):
            each.allow_tf32 = flag
        if before is None:
            del os.environ["BIASLIB_PRECISION"]
        else:
            os.environ["BIASLIB_PRECISION"] = before


def possible(task: str, precision: str, device: str) -> bool:
    """Tell whether a device runs a task in a precision; TF32 is of cards from Ampere on."""
    if precision in ("float16", "bfloat16") and not TASKS[task].half:
        return False
    if device.startswith("cuda"):
        newer = torch.cuda.get_device_capability(device) >= (8, 0)
        return newer or precision in ("float32", "float16")
    return precision == "float32"


def measured(
    task: str, precision: str, size: str, device: str, items: int, repeats: int
) -> dict[str, object]:
    """Return the record of a task in a precision."""
    on_cuda = device.startswith("cuda")
    if on_cuda:
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as name, calculating_in(precision):
        both = TASKS[task].loops(size, items, Path(name), device, precision)
        with calculating_in(precision):  # Loading turns TF32 off.
            found = loops.in_turns(both.public, both.bare, time.perf_counter, repeats)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = torch.cuda.max_memory_allocated() if on_cuda else taken
    return {
        "measure": "speed",
        "device": torch.cuda.get_device_name() if on_cuda else f"{device}, {platform.machine()}",
        "size": size,
        "task": task,
        "precision": precision,
        "items": items,
        "passes": both.passes,
        "items_a_second": round(items / found["public_s"], 2),
        "bare_loop_a_second": round(items / found["bare_loop_s"], 2),
        "ratio": found["ratio"],
        "median_ratio": found["median_ratio"],
        "peak_gb": round(peak / 1e9, 2),
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the records."""
    device = runtime.device()
    parser = argparse.ArgumentParser("tools.benchmarks.gpu", description=__doc__)
    parser.add_argument("task", nargs="*", help=f"of: {', '.join(TASKS)}")
    parser.add_argument("--size", choices=ITEMS, default="full" if "cuda" in device else "tiny")
    parser.add_argument("--device", default=device)
    parser.add_argument("--items", type=int, help="pictures or texts a task")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(arguments)
    for task in chosen.task or TASKS:
        for precision in PRECISIONS:
            if possible(task, precision, chosen.device):
                items = chosen.items or ITEMS[chosen.size][task]
                found = (chosen.size, chosen.device, items, chosen.repeats)
                print(json.dumps(measured(task, precision, *found)), flush=True)


if __name__ == "__main__":
    main()
