"""What a machine means for a chapter's run, said before anything is downloaded."""

import csv
import importlib
import os
import re
import time
from pathlib import Path

from biaslib.runtime._errors import unknown_name
from biaslib.runtime._profile import RESTART, ProfileError, device, models_loaded, provider
from biaslib.runtime._profile import size as chosen_size

PRECISIONS = ("float32", "bfloat16", "float16", "auto")
GIB = 2**30


CARDS = Path(__file__).parent / "data" / "cards.csv"
"""TFLOP/s of cards as their makers state them, in half and in single precision."""

REACHED = {"half": 0.3, "single": 0.5}
"""Which part of a card's stated rate networks are reckoned to reach: ours, not measured."""

OF_PRODUCTS = 0.5
"""And of the rate at which a device multiplies matrices, which is measured: ours."""


def prepare(
    profile_name: str = "planted",
    precision: str | None = None,
    study: str = "",
    size: str | None = None,
) -> str:
    """Choose the precision of a run, and return what this machine means for it, a line each.

    Parameters
    ----------
    profile_name
        ``planted``, which needs nothing and keeps float32, or ``paper``.
    precision
        Sets the environment variable ``BIASLIB_PRECISION`` of a run in ``paper``; None leaves it.
    study
        The study's module, ``study3_clip_audit`` for example: what it takes is then compared with
        card, memory and disk, and each of its sources is asked for one header. What is short, or
        cannot be had, is a line that begins with ``WARNING``.
    size
        ``full`` or ``taste``; None takes :func:`biaslib.runtime.size`.

    Raises
    ------
    UnknownNameError
        If there is no such precision.
    ProfileError
        If models are loaded in another precision already: tables of the two must not mix.
    ValueError
        If this device does not calculate in the precision.
    CheckpointError
        If a source does not give what there is no study without.

    Examples
    --------
    >>> prepare()
    'No GPU is needed: this runs on any laptop.'
    """
    if profile_name == "planted":
        return "No GPU is needed: this runs on any laptop."
    lines = [*_precision(precision), _gpu(profile_name)]
    if study:
        lines += provider(profile_name).first_look(study, chosen_size(size))
    return "\n".join(lines)


def _precision(wanted: str | None) -> list[str]:
    """Set the precision that was chosen; say so where another one was set before."""
    before = os.environ.get("BIASLIB_PRECISION") or "float32"
    wanted = wanted or before
    if wanted not in PRECISIONS:
        raise unknown_name("precision", wanted, PRECISIONS)
    if wanted != before and models_loaded():
        raise ProfileError(
            f"models are loaded in the precision {before!r}, and {wanted!r} is chosen now: scores "
            f"of the two must not mix. {RESTART[0].upper()}{RESTART[1:]} in the one that you want"
        )
    os.environ["BIASLIB_PRECISION"] = wanted
    other = f"; BIASLIB_PRECISION was {before}" if wanted != before != "float32" else ""
    return [f"Precision: {wanted}{other}."]


def _gpu(profile_name: str) -> str:
    found = device()
    if found != "cpu":
        return f"There is a GPU ({found}), and the profile {profile_name!r} will use it."
    return (
        "No GPU was found. On Colab: Runtime, Change runtime type, a GPU; then run this cell "
        "again. A taste, and the profile 'planted', need none."
    )


def rate(card: str, kind: str) -> float:
    """Return the TFLOP/s that networks are reckoned to reach on a card: 0 for one not listed.

    Parameters
    ----------
    card
        Its name, as PyTorch has it.
    kind
        ``half`` or ``single``.

    Examples
    --------
    >>> rate("Tesla T4", "half"), rate("NVIDIA A100-SXM4-40GB", "single")
    (19.5, 9.75)
    """
    with open(CARDS, encoding="utf-8", newline="") as file:
        rows = [each for each in csv.DictReader(file) if re.search(rf"\b{each['card']}\b", card)]
    return REACHED[kind] * float(rows[0][kind]) if rows else 0.0


def speed() -> tuple[str, float]:
    """Return this machine's device, with the precision of the run, and the TFLOP/s it may reach.

    Of a card that is not listed, and of a processor, a product of matrices is timed.
    """
    torch, batches = map(importlib.import_module, ("torch", "biaslib.runtime.batches"))
    where = device()
    number = batches.precision(where)
    named = torch.cuda.get_device_name() if where == "cuda" else f"this machine's {where}"
    reached = rate(named, "single" if number == torch.float32 else "half")
    if not reached:
        side = 4096 if where == "cuda" else 1024  # a small product does not fill a card
        matrix = torch.ones(side, side, dtype=number, device=where)
        begun, times = time.perf_counter(), 0
        while (passed := time.perf_counter() - begun) < 0.3:
            float((matrix @ matrix)[0, 0])  # waits for the device
            times += 1
        reached = OF_PRODUCTS * times * 2 * side**3 / passed / 1e12
    return f"{named} in {str(number).removeprefix('torch.')}", reached


def card_memory() -> float:
    """Return the GiB of the first NVIDIA card; 0 where there is none."""
    cuda = importlib.import_module("torch").cuda
    return cuda.get_device_properties(0).total_memory / GIB if cuda.is_available() else 0.0
