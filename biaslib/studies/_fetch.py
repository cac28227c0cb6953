"""What a study in ``paper`` is made of: one list for its gigabytes, a first look, and fetching."""

import errno
import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas

from biaslib.checkpoints import downloads
from biaslib.checkpoints.registry import REGISTRY
from biaslib.errors import InputError
from biaslib.runtime import ChecksumError, data_folder

__all__ = ["MISSING", "Part", "data_of_hub", "fetched", "holds", "weights"]

MISSING = ["what", "without it", "reason"]
"""Columns of the table of what could not be fetched."""


class Part(NamedTuple):
    """Something that a study reads.

    Attributes
    ----------
    what
        What it is, in words.
    source
        Where it comes from: as :class:`biaslib.models.Entry` writes it; ``data owner/name`` of a
        data set on the hub; an address of links' host; or empty, where nobody can fetch it.
    gigabytes
        To download.
    without
        What the study leaves out where it cannot be had; empty if there is no study without it.
    get
        Fetches it, unless it is here already.
    here
        Tells whether it is.
    """

    what: str
    source: str
    gigabytes: float
    without: str
    get: Callable[[], Any]
    here: Callable[[], bool] = lambda: False


def weights(name: str, without: str = "") -> Part:
    """Return the weights of a registered model as a part of a study."""
    entry = REGISTRY[name]
    get, here = (functools.partial(each, entry) for each in (downloads.fetch, downloads.is_kept))
    return Part(f"weights of {name}", entry.source, entry.megabytes / 1000, without, get, here)


def data_of_hub(
    what: str, repository: str, pattern: str, folder: str, gigabytes: float, without: str = ""
) -> Part:
    """Return files of a data set on the hub, which go into a data folder, as a part of a study."""

    def get() -> None:
        downloads.fetch_data(repository, pattern, data_folder(folder, make=True))

    def here() -> bool:
        return holds(folder, lambda path: downloads.data_kept(path, pattern))

    return Part(what, f"data {repository}", gigabytes, without, get, here)


def holds(folder: str, tell: Callable[[Path], bool]) -> bool:
    """Tell something of a data folder; of one that is not there it is false."""
    try:
        return tell(data_folder(folder))
    except FileNotFoundError:
        return False


def fetched(parts: Sequence[Part]) -> pandas.DataFrame:
    """Fetch the parts of a study one by one; return a table of those that could not be had.

    Raises
    ------
    InputError
        If one cannot be had without which there is no study, a file is not the recorded one, or the
        disk is full.
    """
    missing = []
    for part in parts:
        try:
            part.get()
        except (InputError, OSError) as error:
            if _is_full_disk(error):
                raise InputError(
                    f"{os.strerror(errno.ENOSPC)}: {part.what} takes {part.gigabytes:.2g} GB. Make "
                    "room, or name folders on a larger disk (BIASLIB_CACHE, BIASLIB_DATA), and run "
                    "the same again: it goes on"
                ) from error
            if not part.without or isinstance(error, ChecksumError):
                raise
            missing.append((part.what, part.without, str(error)))
    return pandas.DataFrame(missing, columns=MISSING)


def _is_full_disk(error: BaseException | None) -> bool:
    """Tell whether an error, or one that it came of, is of a disk that takes no more."""
    while error is not None and getattr(error, "errno", None) not in (errno.ENOSPC, errno.EDQUOT):
        error = error.__cause__ or error.__context__
    return error is not None
