"""The two profiles, the device, and progress bars."""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

from biaslib.runtime._errors import unknown_name

PROFILES = ("planted", "paper")

Item = TypeVar("Item")


def profile(name: str | None = None) -> str:
    """Return the profile of this run: ``planted`` (offline, the default) or ``paper``.

    Parameters
    ----------
    name
        The profile. ``None`` takes the environment variable ``BIASLIB_PROFILE``, or ``planted``.

    Raises
    ------
    UnknownNameError
        If there is no such profile.

    Examples
    --------
    >>> profile("paper")
    'paper'
    """
    chosen = name or os.environ.get("BIASLIB_PROFILE", "planted")
    if chosen not in PROFILES:
        raise unknown_name("profile", chosen, PROFILES)
    return chosen


def device(name: str | None = None) -> str:
    """Return the torch device to use: the one named, else ``cuda``, else ``mps``, else ``cpu``."""
    if name is not None:
        return name
    import importlib

    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def in_book() -> bool:
    """Tell whether the book is being built, so that no kernel will answer the reader."""
    return os.environ.get("BIASLIB_BOOK") == "1"


def progress(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items behind a progress bar; the bar is left out of the built book."""
    from tqdm.auto import tqdm

    yield from tqdm(items, desc=label, total=total, disable=in_book(), leave=False, delay=1.0)
