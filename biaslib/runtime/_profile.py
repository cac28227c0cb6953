"""The two profiles, the device, and progress bars."""

import functools
import importlib
import importlib.metadata
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TypeVar

from biaslib.errors import brought_by
from biaslib.runtime._errors import unknown_name

PROFILES = ("planted", "paper")

SIZES = ("full", "taste")
"""How much of a study is run in ``paper``: all of it, or a taste, some minutes of a small released
model on a fixed subset, whose scores have the profile ``taste`` and are never judged by print."""

PROVIDERS = "biaslib.profiles"
"""The group of entry points that name, for each profile, the module which provides its inputs."""

RESTART = "restart the kernel (Colab: Runtime, Restart session) and run the page from the top"

DELAY = 1.0
"""Seconds before a progress bar is displayed."""

Item = TypeVar("Item")


class ProfileError(RuntimeError):
    """Two profiles in one run: planted and released models in the same tables."""


class _Run:
    """What this process has settled: the profile that was begun, and the models loaded in any."""

    begun: str | None = None
    size: str | None = None
    loaded: ClassVar[list[tuple[str, str]]] = []


def profile(name: str | None = None) -> str:
    """Return the profile of this run: ``planted`` (offline, the default) or ``paper``.

    Parameters
    ----------
    name
        The profile. ``None`` takes the one that :func:`start` began; before it, the environment
        variable ``BIASLIB_PROFILE``, or ``planted``.

    Raises
    ------
    UnknownNameError
        If there is no such profile.

    Examples
    --------
    >>> profile("paper")
    'paper'
    """
    chosen = name or _Run.begun or os.environ.get("BIASLIB_PROFILE") or "planted"
    if chosen not in PROFILES:
        raise unknown_name("profile", chosen, PROFILES)
    return chosen


def size(name: str | None = None) -> str:
    """Return the size of this run: ``full``, the default, or ``taste``; ``planted`` has no other.

    Parameters
    ----------
    name
        The size. ``None`` takes the one that :func:`start` began; before it, the environment
        variable ``BIASLIB_SIZE``, or ``full``.

    Raises
    ------
    UnknownNameError
        If there is no such size.

    Examples
    --------
    >>> size("taste")
    'taste'
    """
    chosen = name or _Run.size or os.environ.get("BIASLIB_SIZE") or "full"
    if chosen not in SIZES:
        raise unknown_name("size", chosen, SIZES)
    return chosen


@functools.cache
def providers() -> dict[str, ModuleType]:
    """Return what is installed to provide each profile's inputs, by the profile's name.

    A provider is a module with a function for each study that returns its inputs, named after the
    study's module; with ``MODELS``, the names of the models that it makes; and with
    ``model(name, **options)``, which returns a folder of weights or a model.

    Examples
    --------
    >>> sorted(providers())
    ['paper', 'planted']
    """
    return {each.name: each.load() for each in importlib.metadata.entry_points(group=PROVIDERS)}


def provider(name: str | None = None) -> ModuleType:
    """Return what provides a profile's inputs; ``None`` takes the profile of the run.

    Raises
    ------
    UnknownNameError
        If there is no such profile.
    """
    return providers()[profile(name)]


def begin(name: str | None = None, of_size: str | None = None) -> tuple[str, str]:
    """Make profile and size those of the run, unless models of the other profile are loaded."""
    chosen = profile(name)
    others = [model for model, place in _Run.loaded if place != chosen]
    if others:
        raise ProfileError(
            f"the profile {chosen!r} cannot begin here: {', '.join(dict.fromkeys(others))} of the "
            "other profile was loaded in this kernel, and tables of the two must not mix. First "
            f"{RESTART} with PROFILE = {chosen!r}"
        )
    _Run.begun, _Run.size = chosen, size(of_size) if chosen == "paper" else "full"
    return chosen, _Run.size


def note_model(model: str, place: str, compared: bool = False) -> None:
    """Note that a run loads a planted or a released model; refuse one of the other profile.

    Parameters
    ----------
    model
        Its name.
    place
        The profile that it is of.
    compared
        Whether it is a planted model of a world that was named, on which a measure is checked: a
        run in ``paper`` may load those.

    Raises
    ------
    ProfileError
        If the run was begun in the other profile; the message says what to do.
    """
    if _Run.begun in (None, place):
        _Run.loaded.append((model, place))
    elif not compared:
        raise ProfileError(
            f"this run is {_Run.begun!r}, and {model!r} was asked for in {place!r}: tables of the "
            f"two must not mix. For a run in {place!r}, {RESTART} with PROFILE = {place!r}. Either "
            "takes weights of your own, load(..., checkpoint=a folder), and a planted world that "
            f"is named, load({model!r}, profile='planted', dose=3)"
        )


def models_loaded() -> bool:
    """Tell whether this process has loaded a model of any profile."""
    return bool(_Run.loaded)


def device(name: str | None = None) -> str:
    """Return the torch device to use: the one named, else ``cuda``, else ``mps``, else ``cpu``.

    Raises
    ------
    ValueError
        If there is no device of that name, or it is a GPU and this machine has none for PyTorch.
    """
    with brought_by("models"):
        torch = importlib.import_module("torch")
    if name is None:
        other = "mps" if torch.backends.mps.is_available() else "cpu"
        return "cuda" if torch.cuda.is_available() else other
    try:
        torch.device(name)
    except RuntimeError as error:
        raise ValueError(
            f"the device {name!r} is none that PyTorch knows, such as cpu, cuda, cuda:1 or mps"
        ) from error
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:  # the latter of a PyTorch without CUDA
        raise ValueError(f"PyTorch finds no device {name!r} here: take cpu") from error
    return name


def free_memory(name: str) -> int:
    """Return the bytes that are free on a device; 0 where the system does not tell."""
    if name.startswith("cuda"):
        return int(importlib.import_module("torch").cuda.mem_get_info(name)[0])
    path = Path("/proc/meminfo")
    told = re.search(r"MemAvailable: +(\d+) kB", path.read_text()) if path.exists() else None
    return 1024 * int(told[1]) if told else 0


def in_book() -> bool:
    """Tell whether the book is being built, so that no kernel will answer the reader."""
    return os.environ.get("BIASLIB_BOOK") == "1"


def progress(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, after a second behind a progress bar; the built book has none."""
    from tqdm import tqdm

    # One line for a bar within a bar: moving between two writes control characters into notebooks.
    yield from tqdm(items, label, total, leave=False, position=0, delay=DELAY, disable=in_book())
