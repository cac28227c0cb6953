"""The two profiles, the device, and progress bars."""

import os
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from biaslib.runtime._errors import unknown_name

PROFILES = ("planted", "paper")

DELAY = 1.0
"""Seconds before a progress bar is shown."""

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
