"""The permutation test of association tests."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

ALTERNATIVES = ("greater", "less", "two-sided")
METHODS = ("auto", "enumeration", "sampled")


@dataclass(frozen=True)
class PermutationResult:
    """A p-value with what is needed to judge it.

    ``low`` and ``high`` bound the p-value of full enumeration at 95% (Clopper and Pearson); they
    equal ``p_value`` when every partition was counted. ``n_partitions`` is the number of
    partitions there are, ``n_evaluated`` how many were looked at.
    """

    p_value: float
    low: float
    high: float
    method: str
    n_partitions: int
    n_evaluated: int
    statistic: float


def n_partitions(n_x: int, n_y: int) -> int:
    """Return how many ways there are to deal the pooled targets into sets of the same sizes.

    Examples
    --------
    >>> n_partitions(8, 8)
    12870
    """
    return math.comb(n_x + n_y, n_x)


def permutation_test(
    x: ArrayLike,
    y: ArrayLike,
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 100_000,
    rng: np.random.Generator | int | None = None,
) -> PermutationResult:
    r"""Test whether the scores of X exceed those of Y by more than a relabelling would give.

    The targets' labels are exchanged, never the attributes':

    .. math:: p = \Pr\nolimits_{(X', Y')}\bigl[ s(X', Y', A, B) \ge s(X, Y, A, B) \bigr]

    over all partitions of the pooled targets into two sets of the given sizes (Caliskan et al.
    2017). A partition that ties with the observed one counts towards p, as in May et al. (2019);
    ties are told apart from rounding by a tolerance of 1e-9 of the statistic's greatest value.

    Parameters
    ----------
    x, y
        Scores s(w, A, B) of the targets, (n_x,) and (n_y,), equal in number.
    method
        ``"enumeration"`` counts every partition. ``"sampled"`` draws ``n_resamples - 1`` random
        partitions and adds one to numerator and denominator for the observed one, so that p is
        never 0 (May et al. 2019). ``"auto"`` enumerates when there are at most ``n_resamples``
        partitions.
    alternative
        ``"greater"`` (X nearer to A, the papers' choice), ``"less"`` or ``"two-sided"`` (absolute
        values).
    n_resamples
        Limit of enumeration, and number of draws plus one of sampling.
    rng
        Generator or seed; needed for a result that can be repeated when partitions are sampled.

    Returns
    -------
    PermutationResult
        With ``p_value``, ``low``, ``high``, ``method``, ``n_partitions``.

    Raises
    ------
    ValueError
        If a set is empty or the sets differ in number, a score is not finite, or an option is
        unknown.

    Examples
    --------
    >>> permutation_test([3.0, 2.0], [1.0, 0.0]).p_value  # one partition of six
    0.16666666666666666
    """
    scores = _scores_table(
        np.atleast_2d(np.asarray(x, dtype=float)), np.atleast_2d(np.asarray(y, dtype=float))
    )
    p, counts, used, evaluated, statistic = _p_values(scores, method, alternative, n_resamples, rng)
    total = n_partitions(scores.shape[1] // 2, scores.shape[1] // 2)
    exact = used == "enumeration"
    low, high = (p[0], p[0]) if exact else _clopper_pearson(int(counts[0]) - 1, evaluated - 1)
    return PermutationResult(
        float(p[0]), float(low), float(high), used, total, evaluated, float(statistic[0])
    )


def permutation_p_values(
    x: ArrayLike,
    y: ArrayLike,
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 100_000,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return the p-values of many tests of the same targets at once.

    The partitions are drawn once and used for every test, which is much faster than one test
    after the other; each p-value is what :func:`permutation_test` gives on those partitions.

    Parameters
    ----------
    x, y
        Scores, (n_tests, n_x) and (n_tests, n_y), with n_x equal to n_y.
    method, alternative, n_resamples, rng
        As for :func:`permutation_test`.

    Returns
    -------
    numpy.ndarray
        (n_tests,).

    Raises
    ------
    ValueError
        As :func:`permutation_test`.

    Examples
    --------
    >>> permutation_p_values([[3.0, 2.0], [0.0, 1.0]], [[1.0, 0.0], [2.0, 3.0]]).round(3)
    array([0.167, 1.   ])
    """
    scores = _scores_table(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    return _p_values(scores, method, alternative, n_resamples, rng)[0]


def relabelled_differences(
    x: ArrayLike, y: ArrayLike, n_resamples: int, rng: np.random.Generator | int | None = None
) -> np.ndarray:
    """Return differences of means under random relabellings: a sample of the permutation null.

    Parameters
    ----------
    x, y
        Scores of the targets, (n_x,) and (n_y,), equal in number.
    n_resamples
        Number of relabellings drawn.
    rng
        Generator or seed.

    Returns
    -------
    numpy.ndarray
        (n_resamples,), in units of the scores.

    Raises
    ------
    ValueError
        As :func:`permutation_test`.

    Examples
    --------
    >>> sorted(set(relabelled_differences([1.0], [0.0], 50, rng=0).tolist()))
    [-1.0, 1.0]
    """
    scores = _scores_table(np.atleast_2d(x).astype(float), np.atleast_2d(y).astype(float))
    n = scores.shape[1]
    blocks = _drawn_partitions(n, n_resamples, np.random.default_rng(rng))
    sums = np.concatenate([block @ scores[0] for block in blocks])
    return (2.0 * sums - scores.sum()) / (n // 2)


def _scores_table(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.ndim != 2 or y.ndim != 2 or x.size == 0 or y.size == 0:
        raise ValueError("a target set is empty; a test needs at least one score on each side")
    if x.shape != y.shape:
        raise ValueError(
            f"the target sets have {x.shape[1]} and {y.shape[1]} scores; the permutation test is "
            "defined for sets of equal size"
        )
    scores = np.concatenate([x, y], axis=1)
    if not np.isfinite(scores).all():
        raise ValueError("a score is not finite; look for NaN in the embeddings")
    return scores


def _p_values(scores, method, alternative, n_resamples, rng):
    """Return p-values, counts, the method used, the partitions evaluated and the statistics.

    The difference of sums is 2 sum(X) - sum(all): relabelling only changes sum(X).
    """
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative {alternative!r} is not one of {', '.join(ALTERNATIVES)}")
    centred = scores - scores.mean(axis=1, keepdims=True)
    n_x = scores.shape[1] // 2
    used = _choose(method, n_partitions(n_x, n_x), n_resamples)
    observed = 2.0 * centred[:, :n_x].sum(axis=1)
    tolerance = 1e-9 * np.abs(centred).sum(axis=1)
    blocks = (
        _all_partitions(2 * n_x)
        if used == "enumeration"
        else _drawn_partitions(2 * n_x, n_resamples - 1, np.random.default_rng(rng))
    )
    counts = np.zeros(len(scores), dtype=np.int64)
    evaluated = 0
    for block in blocks:
        statistics = (2.0 * centred) @ block.T
        counts += _count_extreme(statistics, observed, tolerance, alternative)
        evaluated += len(block)
    if used == "sampled":
        counts, evaluated = counts + 1, evaluated + 1
    return counts / evaluated, counts, used, evaluated, observed


def _choose(method: str, partitions: int, n_resamples: int) -> str:
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not one of {', '.join(METHODS)}")
    if method != "auto":
        return method
    return "enumeration" if partitions <= n_resamples else "sampled"


def _count_extreme(statistics, observed, tolerance, alternative):
    """Count statistics at least as extreme as the observed ones, ties included: (n_tests,)."""
    if alternative == "less":
        reached = statistics <= (observed + tolerance)[:, None]
    elif alternative == "two-sided":
        reached = np.abs(statistics) >= (np.abs(observed) - tolerance)[:, None]
    else:
        reached = statistics >= (observed - tolerance)[:, None]
    return np.count_nonzero(reached, axis=1)


def _all_partitions(n: int, block_size: int = 4_000):
    """Yield every choice of half of n items as rows of zeros and ones, in blocks."""
    choices = itertools.combinations(range(n), n // 2)
    while block := list(itertools.islice(choices, block_size)):
        rows = np.zeros((len(block), n))
        np.put_along_axis(rows, np.array(block), 1.0, axis=1)
        yield rows


def _drawn_partitions(n: int, draws: int, rng: np.random.Generator, block_size: int = 4_000):
    """Yield random halves of n items as rows of zeros and ones, in blocks."""
    while draws > 0:
        size = min(block_size, draws)
        order = rng.random((size, n)).argpartition(n // 2, axis=1)[:, : n // 2]
        rows = np.zeros((size, n))
        np.put_along_axis(rows, order, 1.0, axis=1)
        yield rows
        draws -= size


def _clopper_pearson(successes: int, trials: int, confidence: float = 0.95):
    interval = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    return interval.low, interval.high
