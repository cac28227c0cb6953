"""Features of image regions, as the region models take them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from biaslib.errors import InputError

__all__ = [
    "FeatureFileError",
    "NothingFoundError",
    "RegionFeatures",
    "RegionRow",
    "SharedRegions",
    "stacked",
]

KINDS = {
    "features": np.float32,
    "boxes": np.float32,
    "real": bool,
    "persons": bool,
    "sizes": np.int64,
}
"""The arrays, by name, and the numbers that they hold."""

SAID = {"classes": np.int64, "attributes": np.int64, "scores": np.float32}
"""Arrays that only a detector gives."""

PADDING = {"classes": -1, "attributes": -1, "scores": 0}
"""What fills the places of a row in which there is no region."""


class FeatureFileError(InputError):
    """A feature file that is not what the model needs; its text names the file and the picture."""


class NothingFoundError(InputError):
    """Pictures in which a detector finds no region; the message names them."""


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
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, kind in (KINDS | SAID).items():
            if name in KINDS or getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        if self.features.ndim != 3:
            raise ValueError(f"features have the shape {self.features.shape}, not (n, k, d)")
        n, k, d = self.features.shape
        shapes = {"features": (n, k, d), "boxes": (n, k, 4), "sizes": (n, 2)}
        for name, array in self.arrays().items():
            shape = shapes.get(name, (n, k))
            if array.shape != shape:
                raise ValueError(
                    f"{name} have the shape {array.shape}; the features call for {shape}"
                )
        problems = {
            "a feature that is not finite": ~np.isfinite(self.features).all(axis=2),
            "a box that is empty or leaves the picture (0 to 1)": ~_inside(self.boxes),
        }
        for problem, wrong in problems.items():
            rows, regions = np.nonzero(wrong & self.real)
            if len(rows):
                raise InputError(
                    f"region {regions[0]} of picture {rows[0]} has {problem}", row=int(rows[0])
                )
        small = np.flatnonzero((self.sizes < 1).any(axis=1))
        if len(small):
            raise InputError(
                f"picture {small[0]} has the size {self.sizes[small[0]].tolist()}",
                row=int(small[0]),
            )

    @property
    def width(self) -> int:
        """How many numbers describe a region."""
        return self.features.shape[2]

    @property
    def labelled(self) -> bool:
        """Whether anything is known of what the regions show."""
        return self.class_names is not None or bool(self.persons.any())

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Sequence[int] | np.ndarray | slice | int) -> "RegionFeatures":
        """Return the regions of some pictures; a single number gives one picture."""
        if isinstance(rows, (int, np.integer)):
            rows = [rows]
        chosen = {name: array[rows] for name, array in self.arrays().items()}
        return RegionFeatures(**chosen, class_names=self.class_names)

    def named(self, words: Sequence[str]) -> np.ndarray:
        """Return which regions have one of some words as the name of their class, (n, k).

        None has where there are no classes, or their names are not known.

        Examples
        --------
        >>> whole = np.array([[[0.0, 0.0, 1.0, 1.0]]])
        >>> one = RegionFeatures(np.zeros((1, 1, 8)), whole, [[True]], [[False]], [[64, 64]],
        ...                      classes=[[1]], class_names=("dog", "nurse"))
        >>> one.named(["Nurse"]).tolist()
        [[True]]
        """
        if self.classes is None or self.class_names is None:
            return np.zeros_like(self.real)
        wanted = {word.lower() for word in words}
        numbers = [i for i, name in enumerate(self.class_names) if name.lower() in wanted]
        return self.real & np.isin(self.classes, numbers)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that there are, by name."""
        arrays = {name: getattr(self, name) for name in KINDS | SAID}
        return {name: array for name, array in arrays.items() if array is not None}


@dataclass(frozen=True)
class SharedRegions:
    """Regions of pictures without a copy: the i-th are those of row ``rows[i]`` of ``whole``.

    Models take them as they take :class:`RegionFeatures`, of which a picture has 0.3 MB.
    """

    whole: RegionFeatures
    rows: np.ndarray

    @property
    def width(self) -> int:
        """How many numbers describe a region."""
        return self.whole.width

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: np.ndarray) -> RegionFeatures:
        """Return the regions of some pictures."""
        return self.whole[self.rows[rows]]


class RegionRow(NamedTuple):
    """The regions of one picture of ``size`` (w, h): features (k, d), boxes (k, 4) in pixels."""

    features: np.ndarray
    boxes: np.ndarray
    size: tuple[int, int]
    classes: np.ndarray | None = None
    attributes: np.ndarray | None = None
    scores: np.ndarray | None = None


def stacked(rows: Sequence[RegionRow], k: int | None = None) -> RegionFeatures:
    """Return the regions of n pictures, padded to k each; None takes the largest number.

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
        if all(getattr(row, name) is not None for row in rows)
    }
    features = _padded([row.features for row in rows], k)
    return RegionFeatures(features, boxes, real, np.zeros_like(real), sizes, **said)


def _padded(parts: list[np.ndarray], k: int, filling: float = 0) -> np.ndarray:
    column = np.full((len(parts), k, *parts[0].shape[1:]), filling, dtype=parts[0].dtype)
    for row, part in zip(column, parts, strict=True):
        row[: len(part)] = part
    return column


def _inside(boxes: np.ndarray) -> np.ndarray:
    """Return which boxes have an extent and lie within the picture, up to rounding."""
    left, top, right, bottom = np.moveaxis(boxes, -1, 0)
    near = 1e-4
    within = (boxes >= -near).all(axis=-1) & (boxes <= 1 + near).all(axis=-1)
    return within & (right > left) & (bottom > top)
