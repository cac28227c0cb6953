"""Features of image regions, as the region models take them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

__all__ = ["RegionFeatures"]


@dataclass(frozen=True)
class RegionFeatures:
    """Regions of n pictures, k for each; those that are not real only fill the row.

    Parameters
    ----------
    features
        (n, k, d), float32: what a detector or an encoder made of each region's pixels.
    boxes
        (n, k, 4): x0, y0, x1, y1 from the top left, as shares of the picture from 0 to 1.
    real
        (n, k): False for a region that is not there; its numbers are never looked at.
    persons
        (n, k): which regions show a person.
    sizes
        (n, 2): width and height of each picture, in pixels.
    classes, attributes, scores
        (n, k), where a detector says so: the number of each region's class and of its attribute,
        and how sure it is of the class.

    Raises
    ------
    ValueError
        If shapes do not fit each other, a real region has a number that is not finite or a box
        that leaves the picture or is empty, or a picture has no size; the message names the row.

    Examples
    --------
    >>> whole = np.array([[[0.0, 0.0, 1.0, 1.0]]])
    >>> one = RegionFeatures(np.zeros((1, 1, 8)), whole, [[True]], [[False]], [[64, 64]])
    >>> len(one), one.width
    (1, 8)
    """

    features: np.ndarray
    boxes: np.ndarray
    real: np.ndarray
    persons: np.ndarray
    sizes: np.ndarray
    classes: np.ndarray | None = None
    attributes: np.ndarray | None = None
    scores: np.ndarray | None = None

    def __post_init__(self) -> None:
        kinds = {"features": np.float32, "boxes": np.float32, "real": bool, "persons": bool}
        kinds |= {"sizes": np.int64, "classes": np.int64, "attributes": np.int64}
        for name, kind in (kinds | {"scores": np.float32}).items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        self._check_shapes()
        self._refuse(~np.isfinite(self.features).all(axis=2), "a feature that is not finite")
        self._refuse(~_inside(self.boxes), "a box that is empty or leaves the picture (0 to 1)")
        small = np.flatnonzero((self.sizes < 1).any(axis=1))
        if len(small):
            raise ValueError(f"picture {small[0]} has the size {self.sizes[small[0]].tolist()}")

    @property
    def width(self) -> int:
        """How many numbers describe a region."""
        return self.features.shape[2]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Sequence[int] | np.ndarray | slice | int) -> "RegionFeatures":
        """Return the regions of some pictures; a single number gives one picture."""
        if isinstance(rows, (int, np.integer)):
            rows = [rows]
        parts = (getattr(self, each.name) for each in fields(self))
        return RegionFeatures(*(None if part is None else part[rows] for part in parts))

    def _check_shapes(self) -> None:
        if self.features.ndim != 3:
            raise ValueError(f"features have the shape {self.features.shape}, not (n, k, d)")
        n, k, _ = self.features.shape
        for name, shape in {"boxes": (n, k, 4), "real": (n, k), "persons": (n, k)}.items():
            self._require(name, shape)
        self._require("sizes", (n, 2))
        for name in ("classes", "attributes", "scores"):
            if getattr(self, name) is not None:
                self._require(name, (n, k))

    def _require(self, name: str, shape: tuple[int, ...]) -> None:
        found = getattr(self, name).shape
        if found != shape:
            raise ValueError(f"{name} have the shape {found}; the features call for {shape}")

    def _refuse(self, wrong: np.ndarray, what: str) -> None:
        rows, regions = np.nonzero(wrong & self.real)
        if len(rows):
            raise ValueError(f"region {regions[0]} of picture {rows[0]} has {what}")


def _inside(boxes: np.ndarray) -> np.ndarray:
    """Return which boxes have an extent and lie within the picture, up to rounding."""
    left, top, right, bottom = np.moveaxis(boxes, -1, 0)
    near = 1e-4
    within = (boxes >= -near).all(axis=-1) & (boxes <= 1 + near).all(axis=-1)
    return within & (right > left) & (bottom > top)
