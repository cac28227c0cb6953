"""What a study in ``paper`` is made of: one list for its gigabytes, a first look, and fetching."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas

from biaslib.checkpoints import downloads
from biaslib.checkpoints.registry import REGISTRY
from biaslib.errors import InputError
from biaslib.runtime import data_folder

__all__ = ["MISSING", "Part", "data_of_hub", "fetched", "weights"]

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
    """

    what: str
    source: str
    gigabytes: float
    without: str
    get: Callable[[], Any]


def weights(name: str, without: str = "") -> Part:
    """Return the weights of a registered model as a part of a study."""
    entry = REGISTRY[name]
    what = f"weights of {name}"
    return Part(what, entry.source, entry.megabytes / 1000, without, lambda: downloads.fetch(entry))


def data_of_hub(
    what: str, repository: str, pattern: str, folder: str, gigabytes: float, without: str = ""
) -> Part:
    """Return files of a data set on the hub, which go into a data folder, as a part of a study."""

    def get() -> None:
        downloads.fetch_data(repository, pattern, data_folder(folder, make=True))

    return Part(what, f"data {repository}", gigabytes, without, get)


def fetched(parts: Sequence[Part]) -> pandas.DataFrame:
    """Fetch the parts of a study one by one; return a table of those that could not be had.

    Raises
    ------
    InputError
        If one cannot be had without which there is no study.
    """
    missing = []
    for part in parts:
        try:
            part.get()
        except (InputError, OSError) as error:
            if not part.without:
                raise
            missing.append((part.what, part.without, str(error)))
    return pandas.DataFrame(missing, columns=MISSING)
