"""Intervals that resample the true unit: the word, the image, the person."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

METHODS = ("percentile", "bca")

Statistic = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Interval:
    """An interval with its level and method, how many resamples it rests on, and their values."""

    low: float
    high: float
    confidence: float
    method: str
    n_resamples: int
    values: np.ndarray


def bootstrap(
    statistic: Statistic,
    n_units: Sequence[int],
    method: str = "percentile",
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    r"""Return a bootstrap interval of a statistic of one or several samples of units.

    Each sample is drawn anew by itself, with replacement (Efron and Tibshirani 1994). A resample
    is given as how often each unit was drawn, so that units with several items stay together and
    a statistic can be computed for all resamples at once.

    ``"percentile"`` takes quantiles of the resampled values. ``"bca"`` shifts them for bias and
    skewness: with :math:`z_0` the normal quantile of the share of values below the estimate and
    :math:`a` from leaving out one unit at a time,

    .. math:: \alpha_1 = \Phi\left( z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)} \right),
              \quad a = \frac{\sum_k \sum_i U_{ki}^3 / n_k^3}
                             {6 \bigl( \sum_k \sum_i U_{ki}^2 / n_k^2 \bigr)^{3/2}},

    where :math:`U_{ki}` is :math:`n_k - 1` times the mean of the leave-one-out values of sample k
    minus the one without unit i.

    Parameters
    ----------
    statistic
        Called with one array of weights a sample, (n_k, r) each, returns r values; NaN where it
        is not defined.
    n_units
        Number of units in each sample.
    method
        ``"percentile"`` or ``"bca"``.
    confidence
        Level of the interval.
    n_resamples
        Number of resamples. Those for which the statistic is not defined are left out.
    rng
        Generator or seed.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If the method is unknown, a sample is empty, there are no resamples, the confidence is not
        between 0 and 1, or the statistic is never defined.

    Examples
    --------
    >>> values = np.array([1.0, 2.0, 3.0, 4.0])
    >>> def mean(weights):
    ...     return (values @ weights) / weights.sum(axis=0)
    >>> interval = bootstrap(mean, [4], rng=0)
    >>> interval.low, interval.high
    (1.5, 3.5)
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not one of {', '.join(METHODS)}")
    if not n_units or min(n_units) < 1:
        raise ValueError("every sample needs at least one unit")
    if n_resamples < 1:
        raise ValueError("at least one resample is needed")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, such as 0.95")
    rng = np.random.default_rng(rng)
    values = np.asarray(statistic(*(_drawn(n, n_resamples, rng) for n in n_units)), dtype=float)
    values = values[np.isfinite(values)]
    if values.size == 0:
        raise ValueError("the statistic is not defined in any resample")
    tail = (1.0 - confidence) / 2.0
    levels = np.array([tail, 1.0 - tail])
    if method == "bca":
        levels = _bca_levels(statistic, n_units, values, levels)
    low, high = np.quantile(values, levels)
    return Interval(float(low), float(high), confidence, method, len(values), values)


def bootstrap_effect_size(
    cosines_a: ArrayLike,
    cosines_b: ArrayLike,
    x_units: ArrayLike,
    y_units: ArrayLike,
    a_units: ArrayLike,
    b_units: ArrayLike,
    ddof: int = 1,
    **settings,
) -> Interval:
    r"""Return an interval of an effect size that resamples target and attribute words.

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
    settings
        As :func:`bootstrap`.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        As :func:`bootstrap`, and if the shapes do not fit together.

    Notes
    -----
    With eight words a side an interval is rough, and d lies between -2 and 2, so that it cannot
    be read as a test. It says how much the number depends on the words chosen.

    Examples
    --------
    >>> near, far = np.array([[0.9], [0.7], [0.1], [0.2]]), np.array([[0.1], [0.2], [0.8], [0.7]])
    >>> interval = bootstrap_effect_size(near, far, "ab", "cd", "e", "f", rng=0)
    >>> bool(interval.low <= 1.7 <= interval.high)
    True
    """
    first, second = np.asarray(cosines_a, float), np.asarray(cosines_b, float)
    units = [list(each) for each in (x_units, y_units, a_units, b_units)]
    if len(first) != len(units[0]) + len(units[1]) or len(first) != len(second):
        raise ValueError("cosines need one row for every target, those of X before those of Y")
    if first.shape[1] != len(units[2]) or second.shape[1] != len(units[3]):
        raise ValueError("cosines need one column for every attribute")
    owners = [np.unique(np.asarray(each), return_inverse=True)[1] for each in units]

    def statistic(*weights):
        x, y, a, b = (w[owner] for w, owner in zip(weights, owners, strict=True))
        scores = first @ (a / a.sum(0)) - second @ (b / b.sum(0))
        return _weighted_effect_sizes(scores, x, y, ddof)

    return bootstrap(statistic, [owner.max() + 1 for owner in owners], **settings)


def _drawn(n_units: int, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each unit is drawn: (n_units, n_resamples)."""
    shares = np.full(n_units, 1.0 / n_units)
    return rng.multinomial(n_units, shares, size=n_resamples).T.astype(float)


def _bca_levels(statistic, n_units, values, levels) -> np.ndarray:
    estimate = statistic(*(np.ones((n, 1)) for n in n_units))[0]
    below = (np.mean(values < estimate) + np.mean(values <= estimate)) / 2.0
    shift = stats.norm.ppf(below)
    moved = shift + stats.norm.ppf(levels)
    return stats.norm.cdf(shift + moved / (1.0 - _acceleration(statistic, n_units) * moved))


def _acceleration(statistic, n_units) -> float:
    cubes = squares = 0.0
    for k, n in enumerate(n_units):
        weights = [np.ones((other, n)) for other in n_units]
        weights[k] = 1.0 - np.eye(n)
        left_out = np.asarray(statistic(*weights), dtype=float) if n > 1 else np.zeros(1)
        influence = (n - 1) * (left_out.mean() - left_out)
        cubes += (influence**3).sum() / n**3
        squares += (influence**2).sum() / n**2
    return float(cubes / (6.0 * squares**1.5)) if squares > 0 else 0.0


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
