"""The two profiles, the device, and progress bars."""

import functools
import importlib.metadata
import importlib.util
import os
import time
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TypeVar

from biaslib.runtime._errors import unknown_name

PROFILES = ("planted", "paper")

PROVIDERS = "biaslib.profiles"
"""The group of entry points that name, for each profile, the module which provides its inputs."""

RESTART = "restart the kernel (Colab: Runtime, Restart session)"
"""The one way to a clean run, as messages say it."""

DELAY = 1.0
"""Seconds before a progress bar is shown."""

Item = TypeVar("Item")


class ProfileError(RuntimeError):
    """Two profiles in one run: planted and released models in the same tables."""


class _Run:
    """What this process has settled: the profile that was begun, and the models loaded in any."""

    begun: str | None = None
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
    found = importlib.metadata.entry_points(group=PROVIDERS)
    there = [each for each in found if importlib.util.find_spec(each.module.partition(".")[0])]
    return {each.name: each.load() for each in there}


def provider(name: str | None = None) -> ModuleType:
    """Return what provides a profile's inputs; ``None`` takes the profile of the run.

    Raises
    ------
    UnknownNameError
        If there is no such profile.
    ProfileError
        If nothing that is installed provides it.
    """
    chosen = profile(name)
    if chosen not in providers():
        raise ProfileError(
            f"nothing that is installed provides the profile {chosen!r}: install biaslib anew, "
            f"with all its packages. There is: {', '.join(providers()) or 'none'}"
        )
    return providers()[chosen]


def begin(name: str | None = None) -> str:
    """Make a profile that of the run, unless models of the other one are loaded already."""
    chosen = profile(name)
    others = [model for model, place in _Run.loaded if place != chosen]
    if others:
        raise ProfileError(
            f"the profile {chosen!r} cannot begin here: "
            f"{', '.join(dict.fromkeys(others))} of the other profile was loaded in this kernel, "
            f"and tables of the two must not mix. First {RESTART}, then run the page from the top "
            f"with PROFILE = {chosen!r}"
        )
    _Run.begun = chosen
    return chosen


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
        other = (
            f"to check a measure on a planted world, name it: load({model!r}, profile='planted', "
            "dose=3)"
            if place == "planted"
            else "weights of your own are taken in either: load(..., checkpoint=a folder)"
        )
        raise ProfileError(
            f"this run is {_Run.begun!r}, and {model!r} was asked for in {place!r}: tables of the "
            f"two must not mix. For a run in {place!r}, {RESTART} and run the page from the top "
            f"with PROFILE = {place!r}; {other}"
        )


def device(name: str | None = None) -> str:
    """Return the torch device to use: the one named, else ``cuda``, else ``mps``, else ``cpu``.

    Raises
    ------
    ValueError
        If there is no device of that name, or it is a GPU and this machine has none for PyTorch.
    """
    torch = importlib.import_module("torch")
    if name is not None:
        try:
            kind, number = torch.device(name).type, torch.device(name).index or 0
        except RuntimeError as error:
            raise ValueError(
                f"the device {name!r} is none that PyTorch knows, such as cpu, cuda, cuda:1 or mps"
            ) from error
        if kind == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"PyTorch finds no GPU here for the device {name!r}: take cpu")
        if number >= (torch.cuda.device_count() if kind == "cuda" else 1):
            raise ValueError(f"there is no device {name!r} here: take {kind}, or another number")
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def free_memory(name: str) -> int:
    """Return the bytes that are free on a device; 0 where the system does not tell."""
    if name.startswith("cuda"):
        return int(importlib.import_module("torch").cuda.mem_get_info(name)[0])
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
        return 1024 * int(kilobytes["MemAvailable"])
    except (OSError, KeyError):
        return 0


def in_book() -> bool:
    """Tell whether the book is being built, so that no kernel will answer the reader."""
    return os.environ.get("BIASLIB_BOOK") == "1"


def progress(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, after a second behind a progress bar; the built book has none.

    A bar that is not seen is not made: each one costs a notebook dozens of messages.
    """
    if in_book():
        yield from items
        return
    from tqdm.auto import tqdm

    total = len(items) if total is None and isinstance(items, Sized) else total
    begun, bar = time.monotonic(), None
    try:
        for done, item in enumerate(items, start=1):
            yield item
            if bar is not None:
                bar.update()
            elif time.monotonic() - begun > DELAY:
                bar = tqdm(desc=label, total=total, initial=done, leave=False)
    finally:
        if bar is not None:
            bar.close()
