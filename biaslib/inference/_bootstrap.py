"""Intervals that resample the true unit: the word, the image, the person."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from biaslib.errors import InputError
from biaslib.metrics.inputs import (
    between_0_and_1,
    divisor,
    generator,
    in_scale,
    label_codes,
    one_of,
    real_numbers,
    refused,
    whole_number,
    whole_numbers,
)

METHODS = ("percentile", "bca", "auto")

Statistic = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval of one statistic, or of a whole table of them.

    Attributes
    ----------
    estimate
        The statistic of the data themselves: a number or an array, and so are ``low``, ``high``
        and ``n_defined``.
    low, high
        Bounds of the interval; NaN in a table where the data, or all resamples, leave the statistic
        undefined.
    n_defined
        In how many resamples the statistic is defined.
    confidence
        Level of the interval.
    method
        ``"percentile"`` or ``"bca"``.
    n_units
        Number of units resampled in each sample, such as words, triplets or people.
    n_resamples
        Number of resamples.
    values
        The statistic in each resample, (n_resamples,) and the shape of the estimate; NaN where it
        is not defined.
    """

    estimate: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray
    n_defined: int | np.ndarray
    confidence: float
    method: str
    n_units: tuple[int, ...]
    n_resamples: int
    values: np.ndarray


def bootstrap(
    statistic: Statistic,
    n_units: Sequence[int],
    method: str = "percentile",
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    rng: np.random.Generator | int | None = None,
    at_once: int | None = None,
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
    minus the one without unit i. A share of 0 or 1 counts as half a resample, since its quantile
    is infinite. Where nearly all resamples lie on one side of the estimate, as near the end of a
    scale, either interval can leave the estimate out; it is then widened to it, which covers no
    less often.

    Parameters
    ----------
    statistic
        Called with one array of weights a sample, (n_k, r) each, returns r values, or (r, ...) for
        a table of statistics; NaN where it is not defined.
    n_units
        Number of units in each sample.
    method
        ``"percentile"``; ``"bca"`` for a statistic that is one number, which comes nearer to its
        level with few units; or ``"auto"``: ``"bca"``, but ``"percentile"`` for a table and where
        the statistic is not defined without one of the units.
    confidence
        Level of the interval.
    n_resamples
        Number of resamples. Those for which the statistic is not defined are left out.
    rng
        Generator or seed.
    at_once
        How many resamples the statistic is given at a time, to keep its memory small; by default
        all. With several samples the draws depend on it.

    Returns
    -------
    Interval

    Raises
    ------
    InputError
        If the method is unknown, a sample is empty, there are no resamples, the confidence is not
        between 0 and 1, or a statistic that is one number is not defined for the data or in any
        resample; and for ``"bca"`` of a table, or where leaving out one unit leaves the statistic
        undefined.

    Examples
    --------
    >>> values = np.array([1.0, 2.0, 3.0, 4.0])
    >>> def mean(weights):
    ...     return (values @ weights) / weights.sum(axis=0)
    >>> interval = bootstrap(mean, [4], rng=0)
    >>> interval.estimate, interval.low, interval.high
    (2.5, 1.5, 3.5)
    """
    if not callable(statistic):
        raise refused("statistic", f"is of the type {type(statistic).__name__}; give a function")
    one_of(method, "method", METHODS)
    form = "the number of units in each sample"
    n_units = whole_numbers(n_units, "n_units", form, 1, 1, np.inf).tolist()
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    confidence, rng = between_0_and_1(confidence, "confidence"), generator(rng)
    at_once = n_resamples if at_once is None else whole_number(at_once, "at_once", 1)
    estimate = np.asarray(statistic(*(np.ones((n, 1)) for n in n_units)), dtype=float)[0]
    values = _resampled(statistic, n_units, n_resamples, rng, at_once)
    n_defined = np.isfinite(values).sum(axis=0)
    if values.ndim == 1 and n_defined == 0:
        raise InputError("the statistic is not defined in any resample")
    if values.ndim == 1 and not np.isfinite(estimate):
        raise InputError("the statistic is not defined for the data: there is nothing to bound")
    tail = (1.0 - confidence) / 2.0
    levels = np.array([tail, 1.0 - tail])
    if method == "auto":
        whole = values.ndim == 1
        left_out = _left_out(statistic, n_units) if whole else [np.nan]
        method = "bca" if all(np.isfinite(each).all() for each in left_out) else "percentile"
    if method == "bca":
        levels = _bca_levels(statistic, n_units, estimate, values, levels)
    low, high = _quantiles(values, levels)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    summary = (estimate, low, high, n_defined)
    if values.ndim == 1:
        summary = (each.item() for each in summary)
    sizes = tuple(int(n) for n in n_units)
    return Interval(*summary, confidence, method, sizes, n_resamples, values)


def bootstrap_effect_size(
    cosines_a: ArrayLike,
    cosines_b: ArrayLike,
    x_units: ArrayLike,
    y_units: ArrayLike,
    a_units: ArrayLike,
    b_units: ArrayLike,
    ddof: int = 1,
    method: str = "auto",
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
    method
        As :func:`bootstrap`.
    settings
        As :func:`bootstrap`.

    Returns
    -------
    Interval

    Raises
    ------
    InputError
        As :func:`bootstrap`, and if the shapes do not fit together, a cosine is not finite, or
        ``ddof`` is neither 0 nor 1.

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
    ddof, form = divisor(ddof), "a table, one row a target and one column an attribute"
    first = real_numbers(cosines_a, "cosines_a", form, 2)
    second = real_numbers(cosines_b, "cosines_b", form, 2)
    named = {"x_units": x_units, "y_units": y_units, "a_units": a_units, "b_units": b_units}
    owners = [label_codes(labels, name)[0] for name, labels in named.items()]
    n_targets = len(owners[0]) + len(owners[1])
    for name, table, columns in (
        ("cosines_a", first, len(owners[2])),
        ("cosines_b", second, len(owners[3])),
    ):
        if table.shape != (n_targets, columns):
            raise refused(
                name,
                f"has the shape {table.shape}, and the labels of units are of {n_targets} targets, "
                f"those of X before those of Y, and {columns} attributes",
            )
    both, _ = in_scale(np.concatenate([first, second], axis=1))
    first, second = both[:, : first.shape[1]], both[:, first.shape[1] :]

    def statistic(*weights):
        x, y, a, b = (w[owner] for w, owner in zip(weights, owners, strict=True))
        scores = first @ (a / a.sum(0)) - second @ (b / b.sum(0))
        return _weighted_effect_sizes(scores, x, y, ddof)

    return bootstrap(statistic, [owner.max() + 1 for owner in owners], method, **settings)


def _resampled(statistic, n_units, n_resamples: int, rng, at_once: int) -> np.ndarray:
    """Return the statistic of every resample, (n_resamples, ...)."""
    blocks = []
    for start in range(0, n_resamples, at_once):
        number = min(at_once, n_resamples - start)
        blocks.append(statistic(*(_drawn(n, number, rng) for n in n_units)))
    return np.concatenate(blocks).astype(float, copy=False)


def _drawn(n_units: int, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each unit is drawn: (n_units, n_resamples)."""
    drawn = rng.integers(n_units, size=(n_resamples, n_units))
    drawn += n_units * np.arange(n_resamples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=drawn.size)
    return counts.reshape(n_resamples, n_units).T.astype(float)


def _quantiles(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles over the resamples in which the statistic is defined: (2, ...)."""
    if np.isfinite(values).all():
        return np.quantile(values, levels, axis=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice")
        return np.nanquantile(np.where(np.isfinite(values), values, np.nan), levels, axis=0)


def _bca_levels(statistic, n_units, estimate, values, levels) -> np.ndarray:
    if values.ndim > 1:
        raise InputError("method 'bca' is for one number; a table has 'percentile'")
    values = values[np.isfinite(values)]
    near = 1e-9 * np.ptp(values)  # values that rounding alone tells from the estimate are ties
    below = (np.mean(values < estimate - near) + np.mean(values <= estimate + near)) / 2.0
    least = 0.5 / values.size
    shift = stats.norm.ppf(np.clip(below, least, 1.0 - least))
    moved = shift + stats.norm.ppf(levels)
    return stats.norm.cdf(shift + moved / (1.0 - _acceleration(statistic, n_units) * moved))


def _left_out(statistic, n_units):
    """Yield the statistic without one unit of each sample in turn: (n_k,)."""
    for k, n in enumerate(n_units):
        weights = [np.ones((other, n)) for other in n_units]
        weights[k] = 1.0 - np.eye(n)
        yield np.asarray(statistic(*weights), dtype=float) if n > 1 else np.zeros(1)


def _acceleration(statistic, n_units) -> float:
    cubes = squares = 0.0
    for n, left_out in zip(n_units, _left_out(statistic, n_units), strict=True):
        if not np.isfinite(left_out).all():
            raise InputError("without one unit the statistic is not defined: use 'percentile'")
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
