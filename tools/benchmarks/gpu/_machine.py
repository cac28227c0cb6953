"""The machine, the precisions it calculates in, and its ceilings."""

import contextlib
import datetime
import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers

import biaslib
from tools.benchmarks.gpu._schedule import SkippedError, Step
from tools.benchmarks.loops import seconds

PRECISIONS = ("bfloat16", "float32", "tf32", "float16")
"""In order of worth."""

HALF = ("bfloat16", "float16")
TIMES = 20


def on_cuda(device: str) -> bool:
    """Tell whether a device is a CUDA card."""
    return device.startswith("cuda")


def precisions(device: str, capability: tuple[int, int] | None = None) -> tuple[str, ...]:
    """Return the precisions that are measured on a device, in order of worth.

    TF32 and bfloat16 are of cards of compute capability 8.0 on; of a processor two show that this
    runs. ``capability`` is asked of PyTorch.

    Examples
    --------
    >>> precisions("cuda", (9, 0))
    ('bfloat16', 'float32', 'tf32', 'float16')
    >>> precisions("cuda", (7, 5)), precisions("cpu")
    (('float32', 'float16'), ('bfloat16', 'float32'))
    """
    if not on_cuda(device):
        return PRECISIONS[:2]
    if (capability or torch.cuda.get_device_capability(device)) >= (8, 0):
        return PRECISIONS
    return ("float32", "float16")


def machine(device: str, commit: str | None) -> dict[str, Any]:
    """Return what a reader has to know of the machine."""
    name = torch.cuda.get_device_name(device) if on_cuda(device) else f"CPU {platform.machine()}"
    record = {
        "measure": "machine",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": device,
        "name": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "biaslib": biaslib.__version__,
        "commit": commit or _answer("git", "rev-parse", "HEAD"),
    }
    if on_cuda(device):
        record["memory_gb"] = round(torch.cuda.get_device_properties(device).total_memory / 1e9, 1)
        asked = "--query-gpu=driver_version,clocks.sm,clocks.max.sm,power.limit"
        record["driver, clock, highest clock, watts"] = _answer(
            "nvidia-smi", asked, "--format=csv,noheader"
        )
    return record


def _answer(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return run.stdout.strip() or None


@contextlib.contextmanager
def calculating_in(precision: str, device: str) -> Iterator[None]:
    """Have the package calculate in a precision, on a processor in half precision, too."""
    from biaslib.runtime import batches

    half = precision in HALF
    with contextlib.ExitStack() as settings:
        told = {"BIASLIB_PRECISION": precision if half else "float32"}
        settings.enter_context(mock.patch.dict(os.environ, told))
        if half and not on_cuda(device):
            number = getattr(torch, precision)
            settings.enter_context(mock.patch.object(batches, "precision", return_value=number))
        settings.enter_context(products_in(precision))
        yield


@contextlib.contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Have products and convolutions of float32 keep all digits, or those of TF32."""
    settings = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = [each.fp32_precision for each in settings]
    for each in settings:
        each.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        yield
    finally:
        for each, kept in zip(settings, before, strict=True):
            each.fp32_precision = kept


def steps(size: str, device: str, ceilings: dict[str, float]) -> list[Step]:
    """Return the steps that measure ceilings, which are kept by precision in TFLOP/s."""

    def kept(precision: str) -> Iterator[dict[str, Any]]:
        for record in product(size, device, precision):
            ceilings[precision] = record["tflop_a_second"]
            yield record

    products = [
        Step("ceilings", "product", 1.5, functools.partial(kept, each), each)
        for each in precisions(device)
    ]
    return [*products, Step("ceilings", "copies", 3, functools.partial(copies, size, device))]


def product(size: str, device: str, precision: str) -> Iterator[dict[str, Any]]:
    """Yield the TFLOP/s of a product of two square matrices of random numbers."""
    side = 8192 if size == "full" else 256
    number = getattr(torch, precision) if precision in HALF else torch.float32
    left, right = (torch.randn(side, side, device=device, dtype=number) for _ in range(2))
    result = torch.empty_like(left)

    def multiply() -> None:
        for _ in range(TIMES):
            torch.mm(left, right, out=result)

    with products_in(precision):
        multiply()
        taken = seconds(multiply) / TIMES
    found = 2 * side**3 / taken / 1e12
    yield {"side": side, "tflop_a_second": round(found, 4)}


def copies(size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield the GB/s of copies: within the device, counting both ways, and from the host to it."""
    n_bytes = 4 * 2**30 if size == "full" else 2**22
    if on_cuda(device):
        n_bytes = min(n_bytes, torch.cuda.mem_get_info(device)[0] // 4)
    there = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    source = torch.ones_like(there)
    there.copy_(source)
    within = seconds(lambda: [there.copy_(source) for _ in range(TIMES)]) / TIMES
    yield {"copy": "within the device", "gb_a_second": round(2 * n_bytes / within / 1e9, 2)}
    if not on_cuda(device):
        raise SkippedError(f"nothing is copied to {device}: it is the host")
    part = there[: n_bytes // 4]
    for kind, pinned in (("pinned host memory", True), ("pageable host memory", False)):
        source = torch.ones(len(part), dtype=torch.uint8, pin_memory=pinned)
        part.copy_(source)
        taken = seconds(lambda source=source: part.copy_(source, non_blocking=True))
        yield {"copy": f"from {kind}", "gb_a_second": round(len(part) / taken / 1e9, 2)}
