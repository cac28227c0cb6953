"""The whole distribution under a null, for a picture of it: every relabelling, every exchange.

Scores are rounded to a fine step, and the distribution of their sums is built up score by score.
"""

import numpy as np
from numpy.typing import ArrayLike

from biaslib.inference._clumps import shares_of_sums
from biaslib.inference._sign_sums import shares_of_heads
from biaslib.metrics.grounded import GroundedResult
from biaslib.metrics.inputs import real_numbers, require_finite

POINTS = 2**13
"""Steps between the least and the greatest sum."""


def permutation_histogram(x: ArrayLike, y: ArrayLike, edges: ArrayLike) -> np.ndarray:
    """Return which share of all relabellings has a difference of means between two edges.

    Nothing is sampled: all partitions of :func:`permutation_test` are in it. The scores are rounded
    to 1/8,192 of their range times the size of the smaller set, so that a difference of means may
    lie beside its place by at most that much, and an edge counts as reached within it.

    Parameters
    ----------
    x, y
        Scores of the targets, (n_x,) and (n_y,).
    edges
        Of the bins, ascending, (k + 1,), in units of the scores.

    Returns
    -------
    numpy.ndarray
        (k,). The shares add up to 1 if the edges enclose every relabelling.

    Raises
    ------
    ValueError
        If a set is empty or a score is not finite.

    Examples
    --------
    >>> permutation_histogram([3.0, 2.0], [1.0, 0.0], [-3, -1.5, -0.5, 0.5, 1.5, 3]).round(3)
    array([0.167, 0.167, 0.333, 0.167, 0.167])
    """
    first, second = _sound(x, y)
    if len(first) > len(second):
        return permutation_histogram(second, first, -np.asarray(edges)[::-1])[::-1]
    pooled, size = np.concatenate([first, second]), len(first)
    least = pooled.min()
    step = size * max(np.ptp(pooled), np.finfo(float).tiny) / POINTS
    shares = shares_of_sums(np.rint((pooled - least) / step).astype(int), size)
    sums = size * least + step * np.arange(len(shares))
    differences = sums / size - (pooled.sum() - sums) / len(second)
    return np.histogram(differences, edges, weights=shares)[0]


def exchange_histogram(result: GroundedResult, edges: ArrayLike) -> np.ndarray:
    """Return which share of all exchanges has a statistic of Experiment 3 between two edges.

    Nothing is sampled: all sign patterns of :func:`exchange_test` are in it, and its statistic is
    that of this test, half the sum of two absolute sums. The shifts of targets are rounded to
    1/8,192 of the larger of both sums of absolute shifts; the statistic may lie beside its place by
    a quarter of that for every target.

    Parameters
    ----------
    result
        Of :func:`biaslib.metrics.grounded.grounded`, Experiment 3.
    edges
        Of the bins, ascending, (k + 1,).

    Returns
    -------
    numpy.ndarray
        (k,).

    Raises
    ------
    ValueError
        If the result is not of Experiment 3, or a score is not finite.

    Examples
    --------
    >>> own, other = np.array([0.4, 0.3]), np.array([0.1, 0.1])
    >>> result = GroundedResult(3, 1.0, 1, own, own, other, other)
    >>> exchange_histogram(result, [-0.1, 0.2, 0.4, 0.6])
    array([0.25, 0.5 , 0.25])
    """
    if result.experiment != 3:
        raise ValueError(f"exchange_histogram is for Experiment 3, this is {result.experiment}")
    shifts = _sound(result.x_scores - result.x_other, result.y_scores - result.y_other)
    reach = max(np.abs(each).sum() for each in shifts)
    step = max(reach, np.finfo(float).tiny) / POINTS
    first, second = (_shares_of_absolute_sums(each, step) for each in shifts)
    shares = np.convolve(first, second)
    return np.histogram(0.5 * step * np.arange(len(shares)), edges, weights=shares)[0]


def _sound(x: ArrayLike, y: ArrayLike) -> list[np.ndarray]:
    sets = [real_numbers(each, "scores") for each in (x, y)]
    if not all(each.size and each.ndim == 1 for each in sets):
        shapes = " and ".join(str(each.shape) for each in sets)
        raise ValueError(f"scores have the shapes {shapes}; give one list of at least one a set")
    require_finite("score", *sets)
    return sets


def _shares_of_absolute_sums(values: np.ndarray, step: float) -> np.ndarray:
    """Return the distribution of the absolute sum under random signs, in steps from 0."""
    shares = shares_of_heads(np.rint(np.abs(values) / step).astype(int))
    reach = len(shares) - 1
    return np.bincount(np.abs(2 * np.arange(len(shares)) - reach), shares)
