"""What a machine means for a chapter's run, said before anything is downloaded."""

import importlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from biaslib.runtime._errors import unknown_name
from biaslib.runtime._profile import RESTART, ProfileError, device, models_loaded, provider
from biaslib.runtime._profile import size as chosen_size

PRECISIONS = ("float32", "bfloat16", "float16", "auto")
GIB = 2**30


class Needs(NamedTuple):
    """What a study takes in the profile ``paper``: none of it measured on a GPU so far.

    Attributes
    ----------
    download, disk
        GB of weights and data that are fetched, and of disk that these and the store take.
    memory
        GiB of a card that hold the weights with a batch.
    minutes
        On a T4 without the downloads, in words.
    """

    download: float
    disk: float
    memory: float
    minutes: str


def prepare(
    profile_name: str = "planted",
    precision: str | None = None,
    study: str = "",
    at: str = "",
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
        The study's module, ``study3_clip_audit`` for example: what it needs is then compared with
        the card and the disk, and too little is a line that begins with ``WARNING``.
    at
        A folder on the disk that is looked at; the working directory if it is empty.
    size
        ``full`` or ``taste``; None takes :func:`biaslib.runtime.size`.

    Raises
    ------
    UnknownNameError
        If there is no such precision.
    ProfileError
        If models are loaded in another precision already: tables of the two must not mix.

    Examples
    --------
    >>> prepare()
    'No GPU is needed: this runs on any laptop.'
    """
    if profile_name == "planted":
        return "No GPU is needed: this runs on any laptop."
    lines = [*_precision(precision), _gpu(profile_name)]
    needs = getattr(provider(profile_name), "NEEDS", {}).get((study, chosen_size(size)))
    if needs is not None:
        lines += _needs(needs, Path(at or "."))
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
        f"No GPU was found, and without one the profile {profile_name!r} takes hours. On Colab: "
        "Runtime, Change runtime type, a GPU; then run this cell again. Or choose the profile "
        "'planted', which needs none."
    )


def _needs(needs: Needs, folder: Path) -> list[str]:
    """Return what a study takes, and a warning for each thing of which there is too little."""
    lines = [
        f"It downloads some {needs.download:g} GB unless they are here, takes {needs.disk:g} GB of "
        f"disk, and on a T4 {needs.minutes}: estimates, not measured."
    ]
    free = shutil.disk_usage(folder).free / 1e9
    if free < needs.disk:
        lines.append(
            f"WARNING: {free:.1f} GB of disk are free here, too little unless the files are here "
            "already. Make room, or name folders on a larger disk: BIASLIB_DATA, BIASLIB_CACHE and "
            "BIASLIB_STORE"
        )
    memory = card_memory()
    if memory and memory < needs.memory:
        lines.append(
            f"WARNING: the card has {memory:.1f} GiB of memory; the weights and a batch take some "
            f"{needs.memory:g}. Choose the precision 'auto', or a larger card"
        )
    return lines


def card_memory() -> float:
    """Return the GiB of the first NVIDIA card; 0 where there is none."""
    cuda = importlib.import_module("torch").cuda
    return cuda.get_device_properties(0).total_memory / GIB if cuda.is_available() else 0.0
