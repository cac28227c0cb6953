"""Checks of arguments that more than one measure takes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def weight_columns(weights: ArrayLike, n: int) -> np.ndarray:
    """Return weights of n images, (n,) or (n, r), as columns: (n, 1) or (n, r).

    Examples
    --------
    >>> weight_columns([1, 2], 2).shape
    (2, 1)
    """
    columns = np.asarray(weights, dtype=np.float64)
    if columns.ndim not in (1, 2) or len(columns) != n:
        raise ValueError(f"weights have shape {columns.shape}; there are {n} images, one row each")
    if not np.isfinite(columns).all() or (columns < 0).any():
        raise ValueError("weights must be finite and not negative")
    return columns.reshape(n, -1)


def complete_labels(labels: Sequence, n: int, name: str) -> np.ndarray:
    """Return one label an image as text, (n,), refusing rows without: None, NaN or "".

    Examples
    --------
    >>> complete_labels(["race", 4], 2, "categories").tolist()
    ['race', '4']
    """
    values = list(labels)
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} labels; there are {n} images")
    missing = [row for row, each in enumerate(values) if each is None or each != each or each == ""]
    if missing:
        raise ValueError(f"row {missing[0]} of {name} has no label")
    return np.array([str(each) for each in values])
