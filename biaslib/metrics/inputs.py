"""Checks of arguments that more than one measure or test takes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

REAL = "biuf"
"""Kinds of NumPy's types that are real numbers: truth values, whole numbers, floats."""


def real_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return values as float64, refusing what only looks like numbers.

    Raises
    ------
    ValueError
        If an entry is masked, or the values are dates, text, complex numbers or other objects.

    Examples
    --------
    >>> real_numbers([1, 2], "scores")
    array([1., 2.])
    >>> real_numbers(["1", "2"], "scores")
    Traceback (most recent call last):
    ValueError: scores are of the type <U1; give real numbers
    """
    return real_array(values, name).astype(np.float64)


def real_array(values: ArrayLike, name: str) -> np.ndarray:
    """Return values in a type of their own as an array: see :func:`real_numbers`."""
    if _is_masked(values):
        raise ValueError(f"{name} have masked entries; fill them, or leave them out")
    array = np.asarray(values)
    if array.dtype.kind not in REAL and array.size:
        raise ValueError(f"{name} are of the type {array.dtype}; give real numbers")
    return array


def _is_masked(values: ArrayLike) -> bool:
    """Say whether an array, or one of a list of arrays, has a masked entry."""
    rows = values if isinstance(values, list | tuple) else [values]
    return any(np.ma.is_masked(each) for each in rows)


def in_scale(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return values divided by a power of two that brings the largest into [0.5, 1), and its log2.

    Nothing is rounded: only exponents change, so that sums and squares of what is very large or
    very small are neither infinite nor 0.

    Examples
    --------
    >>> values, exponent = in_scale(np.array([3e200, -1e200]))
    >>> float(np.abs(values).max()) < 1, np.ldexp(values, exponent).tolist()
    (True, [3e+200, -1e+200])
    """
    largest = np.abs(values).max(axis=axis, keepdims=axis is not None)
    exponent = np.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent


def require_finite(kind: str, *arrays: np.ndarray) -> None:
    """Refuse arrays that hold NaN or infinity.

    Examples
    --------
    >>> require_finite("score", np.array([np.nan]))
    Traceback (most recent call last):
    ValueError: a score is not finite; look for NaN in the embeddings
    """
    if not all(np.isfinite(each).all() for each in arrays):
        raise ValueError(f"a {kind} is not finite; look for NaN in the embeddings")


def require_ddof(ddof: int) -> None:
    """Refuse a divisor of the variance that is neither n nor n - 1.

    Examples
    --------
    >>> require_ddof(2)
    Traceback (most recent call last):
    ValueError: ddof is 2; it can be 0 (divide by n) or 1 (divide by n - 1)
    """
    if ddof not in (0, 1):
        raise ValueError(f"ddof is {ddof!r}; it can be 0 (divide by n) or 1 (divide by n - 1)")


def require_draws(n_resamples: int, least: int) -> None:
    """Refuse to sample nothing.

    Examples
    --------
    >>> require_draws(0, 1)
    Traceback (most recent call last):
    ValueError: n_resamples is 0; sampling needs at least 1
    """
    if n_resamples < least:
        raise ValueError(f"n_resamples is {n_resamples}; sampling needs at least {least}")


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
    require_labelled(values, name)
    return np.array([str(each) for each in values])


def require_labelled(labels: Sequence, name: str) -> None:
    """Refuse labels that are None, NaN or "": such rows are not one unit.

    Examples
    --------
    >>> require_labelled(["a", None], "people")
    Traceback (most recent call last):
    ValueError: row 1 of people has no label
    """
    for row, each in enumerate(labels):
        if each is None or each != each or (isinstance(each, str) and not each):
            raise ValueError(f"row {row} of {name} has no label")
