"""Intervals that resample the true unit: the word."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Interval:
    """An interval with its level, how many resamples it rests on, and the resampled values."""

    low: float
    high: float
    confidence: float
    n_resamples: int
    values: np.ndarray


def bootstrap_effect_size(
    cosines_a: ArrayLike,
    cosines_b: ArrayLike,
    x_units: ArrayLike,
    y_units: ArrayLike,
    a_units: ArrayLike,
    b_units: ArrayLike,
    ddof: int = 1,
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    r"""Return a percentile interval of an effect size that resamples targets and attributes.

    In every resample the words of X, Y, A and B are drawn anew with replacement, each set by
    itself, and the effect size (equation 3 of Ross, Katz and Barbu 2021) is computed with each
    item counted as often as its word was drawn. Several sentences of a word stay together: the
    word is the unit, not the sentence.

    Parameters
    ----------
    cosines_a, cosines_b
        Cosines of the targets, first those of X and then those of Y, with the attributes:
        (n_x + n_y, n_a) and (n_x + n_y, n_b).
    x_units, y_units, a_units, b_units
        The word that each item carries: (n_x,), (n_y,), (n_a,), (n_b,).
    ddof
        What is taken from n in the divisor of the variance, 0 or 1.
    confidence
        Level of the interval.
    n_resamples
        Number of resamples.
    rng
        Generator or seed.

    Returns
    -------
    Interval
        With ``low``, ``high`` and all resampled ``values``. Resamples without spread are left out.

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    Notes
    -----
    With eight words a side a percentile interval is rough, and d lies between -2 and 2, so that it
    cannot be read as a test. It says how much the number depends on the words chosen.

    Examples
    --------
    >>> near, far = np.array([[0.9], [0.7], [0.1], [0.2]]), np.array([[0.1], [0.2], [0.8], [0.7]])
    >>> interval = bootstrap_effect_size(near, far, "ab", "cd", "e", "f", rng=0)
    >>> bool(interval.low <= 1.7 <= interval.high)
    True
    """
    first, second = np.asarray(cosines_a, float), np.asarray(cosines_b, float)
    x_units, y_units = list(x_units), list(y_units)
    if len(first) != len(x_units) + len(y_units) or len(first) != len(second):
        raise ValueError("cosines need one row for every target, those of X before those of Y")
    if first.shape[1] != len(list(a_units)) or second.shape[1] != len(list(b_units)):
        raise ValueError("cosines need one column for every attribute")
    rng = np.random.default_rng(rng)
    x, y, a, b = (
        _drawn_weights(units, n_resamples, rng) for units in (x_units, y_units, a_units, b_units)
    )
    scores = first @ (a / a.sum(0)) - second @ (b / b.sum(0))
    values = _weighted_effect_sizes(scores, x, y, ddof)
    values = values[np.isfinite(values)]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return Interval(float(low), float(high), confidence, len(values), values)


def _drawn_weights(units, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each item is drawn when its unit is: (n_items, n_resamples)."""
    names, unit_of_item = np.unique(np.asarray(list(units)), return_inverse=True)
    drawn = rng.multinomial(len(names), np.full(len(names), 1.0 / len(names)), size=n_resamples)
    return drawn.T[unit_of_item].astype(float)


def _weighted_effect_sizes(scores, x_weights, y_weights, ddof):
    n_x = len(x_weights)
    x_mean = (scores[:n_x] * x_weights).sum(0) / x_weights.sum(0)
    y_mean = (scores[n_x:] * y_weights).sum(0) / y_weights.sum(0)
    weights = np.concatenate([x_weights, y_weights])
    total = weights.sum(0)
    mean = (scores * weights).sum(0) / total
    variance = (weights * (scores - mean) ** 2).sum(0) / (total - ddof)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 1e-20, (x_mean - y_mean) / np.sqrt(variance), np.nan)
