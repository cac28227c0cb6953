"""The distribution of differences of means under relabelling, for a picture of it."""

import numpy as np
from numpy.typing import ArrayLike

from biaslib.inference._permutation import pooled_units
from biaslib.inference._sampling import partitions
from biaslib.metrics.inputs import in_scale, real_numbers, refused, whole_number


def permutation_histogram(
    x: ArrayLike,
    y: ArrayLike,
    edges: ArrayLike,
    n_resamples: int = 100_000,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return which share of relabellings has a difference of means between two edges.

    Up to 200,000 relabellings all are counted; beyond, ``n_resamples`` are drawn.

    Parameters
    ----------
    x, y
        Scores of the targets, (n_x,) and (n_y,).
    edges
        Of the bins, ascending, (k + 1,), in units of the scores.
    n_resamples, rng
        How many are drawn, and generator or seed.

    Returns
    -------
    numpy.ndarray
        (k,). The shares add up to 1 if the edges enclose every relabelling.

    Raises
    ------
    InputError
        If a set is empty, a score is masked or not finite, the edges do not ascend, or nothing
        would be drawn.

    Examples
    --------
    >>> permutation_histogram([3.0, 2.0], [1.0, 0.0], [-3, -1.5, -0.5, 0.5, 1.5, 3]).round(3)
    array([0.167, 0.167, 0.333, 0.167, 0.167])
    """
    edges = real_numbers(edges, "edges", "a list of numbers that ascend", 1, finite=False)
    falls = np.flatnonzero(~(np.diff(edges) > 0))
    if edges.size < 2 or falls.size:
        row = int(falls[0]) + 1 if falls.size else None
        raise refused("edges", "is not above the edge before; give two or more that ascend", row)
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    pooled, n_x = pooled_units(x, y, None, None)
    scores, exponent = in_scale(pooled)
    counts, n = np.zeros(len(edges) - 1, dtype=int), 0
    for chosen in partitions(scores.size, n_x, n_resamples, rng):
        sums = chosen @ scores
        differences = sums / n_x - (scores.sum() - sums) / (scores.size - n_x)
        counts += np.histogram(np.ldexp(differences, exponent), edges)[0]
        n += len(chosen)
    return counts / n
