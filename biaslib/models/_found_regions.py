"""The regions of pictures through the store: what was found once is not looked for again."""

from typing import TYPE_CHECKING, Any

import numpy as np

from biaslib.models.images import Pictures, ReadAhead, pictures
from biaslib.models.regions import NothingFoundError, RegionFeatures
from biaslib.runtime import Store

if TYPE_CHECKING:
    from biaslib.models.detector import Detector

SHARD, SHARD_ON_CUDA = 16, 128
"""Pictures a shard of the store: what a run that is killed may have to look at again."""

PARTS = {"features": None, "boxes": 4, "real": 1, "sizes": 2, "classes": 1, "attributes": 1}
PARTS |= {"scores": 1}
"""What a region's row of numbers holds, in this order, and how many of each; None for the rest."""


def found_regions(images: Any, detector: "Detector", store: Store | None = None) -> RegionFeatures:
    """Return the regions that a detector finds in pictures, from the store where they are there.

    A picture is known by its content, wherever its file lies, and a detector by its revision.

    Parameters
    ----------
    images
        n images, in any form of the package's.
    detector
        As ``biaslib.models.load("detector")`` returns it.
    store
        Where rows are kept; ``None`` takes the one of the run.

    Returns
    -------
    RegionFeatures
        As :meth:`biaslib.models.detector.Detector.regions` returns it. A picture takes 0.3 MB of
        memory.

    Raises
    ------
    NothingFoundError
        If nothing is found in some; the message names those.
    ValueError
        If there are no images.
    ImageError
        If an image cannot be used; the message names it.
    """
    shown = pictures(images)
    key = {"model": detector.name, "revision": detector.revision, "output": "regions"}

    store = store or Store()
    ahead = ReadAhead(shown, store.missing(key, shown.ids) if len(shown) else [])

    def look(which: list[int]) -> np.ndarray:
        return _packed(detector.regions(ahead.part(which), words=None))

    on_cuda = str(getattr(detector, "device", "cpu")).startswith("cuda")
    rows = store.rows(key, shown.ids, look, SHARD_ON_CUDA if on_cuda else SHARD)
    found = detector.with_persons(_unpacked(rows))
    _require_regions(found, shown, detector.name)
    return found


def _packed(regions: RegionFeatures) -> np.ndarray:
    """Return (n, k, numbers a region), float32; whole numbers stay exact up to 2^24."""
    columns = {name: getattr(regions, name) for name in PARTS}
    columns["sizes"] = np.repeat(regions.sizes[:, None], regions.real.shape[1], axis=1)
    parts = [each.reshape(*regions.real.shape, -1) for each in columns.values()]
    return np.concatenate(parts, axis=2, dtype=np.float32, casting="unsafe")


def _unpacked(rows: np.ndarray) -> RegionFeatures:
    width = rows.shape[2] - sum(n for n in PARTS.values() if n)
    ends = np.cumsum([n or width for n in PARTS.values()])
    parts = dict(zip(PARTS, np.split(rows, ends[:-1], axis=2), strict=True))
    columns = {name: part[..., 0] if part.shape[2] == 1 else part for name, part in parts.items()}
    columns["sizes"] = columns["sizes"][:, 0]
    return RegionFeatures(**columns, persons=np.zeros(rows.shape[:2], dtype=bool))


def _require_regions(found: RegionFeatures, shown: Pictures, name: str) -> None:
    empty = [shown.name(row) for row in np.flatnonzero(~found.real.any(axis=1))]
    if empty:
        raise NothingFoundError(
            f"{name} found nothing in {len(empty)} of {len(found)} pictures: {', '.join(empty)}. "
            "Leave them out, or pass regions of your own (biaslib.models.regions.RegionFeatures)"
        )
