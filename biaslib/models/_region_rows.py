"""The regions of single pictures, and how they become the rows of :class:`RegionFeatures`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from biaslib.models.regions import RegionFeatures

PADDING = {"classes": -1, "attributes": -1, "scores": 0}
"""What fills the places of a row in which there is no region."""


class RegionRow(NamedTuple):
    """The regions of one picture of ``size`` (w, h): features (k, d), boxes (k, 4) in pixels."""

    features: np.ndarray
    boxes: np.ndarray
    size: tuple[int, int]
    classes: np.ndarray | None = None
    attributes: np.ndarray | None = None
    scores: np.ndarray | None = None


def stacked(rows: Sequence[RegionRow], k: int | None = None) -> RegionFeatures:
    """Return n rows, padded to k places each; None takes the largest number of regions.

    Examples
    --------
    >>> one = RegionRow(np.ones((1, 8)), np.array([[0, 0, 32, 48]]), (64, 48))
    >>> regions = stacked([one], k=2)
    >>> regions.boxes[0].tolist(), regions.real.tolist()
    ([[0.0, 0.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]], [[True, False]])
    """
    k = max(len(row.boxes) for row in rows) if k is None else k
    sizes = np.array([row.size for row in rows])
    real = np.arange(k) < np.array([[len(row.boxes)] for row in rows])
    boxes = _padded([row.boxes for row in rows], k) / np.tile(sizes, 2)[:, None]
    said = {
        name: _padded([getattr(row, name) for row in rows], k, filling)
        for name, filling in PADDING.items()
        if getattr(rows[0], name) is not None
    }
    features = _padded([row.features for row in rows], k)
    return RegionFeatures(features, boxes, real, np.zeros_like(real), sizes, **said)


def _padded(parts: list[np.ndarray], k: int, filling: float = 0) -> np.ndarray:
    column = np.full((len(parts), k, *parts[0].shape[1:]), filling, dtype=parts[0].dtype)
    for row, part in zip(column, parts, strict=True):
        row[: len(part)] = part
    return column
