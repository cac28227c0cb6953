"""The machine, the precisions it calculates in, and its ceilings."""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import transformers

import biaslib
from tools.benchmarks import machine as here

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


def machine(device: str, commit: str) -> tuple[str, str]:
    """Return the device's name, and what rows say of where and with what they were measured."""
    name = torch.cuda.get_device_name(device) if on_cuda(device) else f"CPU {platform.machine()}"
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    of_ours = f"biaslib {biaslib.__version__} {commit}".strip()
    return name, f"{here()}, {name}, {versions}, {of_ours}"


@contextlib.contextmanager
def calculating_in(precision: str, device: str) -> Iterator[None]:
    """Have the package calculate in a precision, on a processor in half precision, too."""
    from biaslib.models import generative
    from biaslib.runtime import batches

    half = precision in HALF
    asked = {"BIASLIB_PRECISION": precision if half else "float32"}
    with contextlib.ExitStack() as settings:
        settings.enter_context(mock.patch.dict(os.environ, asked))
        if half and not on_cuda(device):
            number = getattr(torch, precision)
            for module in (batches, generative):
                patch = mock.patch.object(module, "precision", return_value=number)
                settings.enter_context(patch)
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


def seconds(function: Callable) -> float:
    """Return the seconds of a call; a CUDA device has finished at either end."""
    finish()
    started = time.perf_counter()
    function()
    finish()
    return time.perf_counter() - started


def finish() -> None:
    """Wait for what CUDA devices still have to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


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
    yield {"side": side, "tflop_a_second": round(2 * side**3 / taken / 1e12, 4)}


def copies(size: str, device: str) -> Iterator[dict[str, Any]]:
    """Yield the GB/s of copies: within the device, counting both ways, and from the host to it."""
    n_bytes = 4 * 2**30 if size == "full" else 2**22
    if on_cuda(device):
        n_bytes = min(n_bytes, torch.cuda.mem_get_info(device)[0] // 4)
    there = torch.empty(n_bytes, dtype=torch.uint8, device=device)
    source = torch.ones_like(there)
    within = seconds(lambda: [there.copy_(source) for _ in range(TIMES)]) / TIMES
    yield {"copy": "within the device", "gb_a_second": round(2 * n_bytes / within / 1e9, 2)}
    if on_cuda(device):
        part = there[: n_bytes // 4]
        source = torch.ones(len(part), dtype=torch.uint8, pin_memory=True)
        taken = seconds(lambda: part.copy_(source, non_blocking=True))
        yield {"copy": "from pinned host memory", "gb_a_second": round(len(part) / taken / 1e9, 2)}
