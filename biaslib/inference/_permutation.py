"""The permutation test of association tests: counted, approximated or drawn."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from biaslib.inference._enumeration import can_be_counted, count_by_halves
from biaslib.inference._proportions import proportion_interval
from biaslib.inference._saddlepoint import log_choices, saddlepoint_tail
from biaslib.inference._sampling import all_partitions, drawn_partitions
from biaslib.metrics.inputs import in_scale, one_of, real_numbers, require_length, whole_number

ALTERNATIVES = ("greater", "less", "two-sided")

RESAMPLES = 100_000
"""Relabellings where they are drawn, the observed one among them."""

NEAR = 1e-11
"""Of the summed distances of scores from their mean: sums so near below the observed one tie."""

LEAST = 5e-324
"""The least positive number: a p-value is never zero."""

TESTS_AT_ONCE = 64
"""Tests whose sums over a block of partitions are looked at together: these fit in the cache."""


@dataclass(frozen=True)
class PermutationResult:
    """A p-value with what is needed to judge it.

    ``method`` says how the p-value of all relabellings was found, and with it what ``low`` and
    ``high`` are:

    - ``"enumeration"``: every relabelling was counted. ``low`` and ``high`` equal ``p_value``.
    - ``"saddlepoint"``: an approximation. The tail lies 3% from either, below .00001 10%: errors
      that were not exceeded in comparisons with exact counts.
    - ``"sampled"``: relabellings were drawn. They are Clopper and Pearson's interval at 95%.

    ``n_partitions`` is how many relabellings there are, a whole number of any length;
    ``statistic`` the difference of the means, in units of the scores, or what the test has in its
    place.
    """

    p_value: float
    low: float
    high: float
    method: str
    n_partitions: int = field(repr=False)
    statistic: float

    @classmethod
    def of_counts(cls, count: int, n: int, statistic: float) -> "PermutationResult":
        """Return the result where ``count`` of all n relabellings reach the observed one."""
        p_value = float(max(count / n, LEAST))
        return cls(p_value, p_value, p_value, "enumeration", n, statistic)

    @classmethod
    def of_draws(cls, count: int, draws: int, n: int, statistic: float) -> "PermutationResult":
        """Return the result where ``count`` of some draws reach the observed one.

        The observed one is added to both numbers, so that p is never 0 (May et al. 2019).
        """
        drawn = proportion_interval(count, draws)
        p_value = float((1 + count) / (1 + draws))
        return cls(p_value, drawn.low, drawn.high, "sampled", n, statistic)


def n_partitions(n_x: int, n_y: int) -> int:
    """Return how many ways there are to deal the pooled targets into sets of the same sizes.

    Examples
    --------
    >>> n_partitions(8, 8)
    12870
    """
    n_x, n_y = whole_number(n_x, "n_x", 0), whole_number(n_y, "n_y", 0)
    return math.comb(n_x + n_y, n_x)


def permutation_test(
    x: ArrayLike,
    y: ArrayLike,
    alternative: str = "greater",
    rng: np.random.Generator | int | None = None,
) -> PermutationResult:
    r"""Test whether the scores of X exceed those of Y by more than a relabelling would give.

    The targets' labels are exchanged, never the attributes':

    .. math:: p = \Pr\nolimits_{(X', Y')}\Bigl[
              \operatorname{mean}_{x \in X'} s(x) - \operatorname{mean}_{y \in Y'} s(y) \ge
              \operatorname{mean}_{x \in X} s(x) - \operatorname{mean}_{y \in Y} s(y) \Bigr]

    over all partitions of the pooled targets into two sets of the given sizes (Caliskan et al.
    2017, who have sums; with sets of equal size it is the same). As the pool does not change, the
    sum over X' says it all. A partition that ties with the observed one counts towards p, as in
    May et al. (2019). Sums tie that differ by at most 1e-11 of the summed distances of all scores
    from their mean: scores come out of long computations.

    There are three ways to the p-value:

    - enumeration, by sums of halves (Horowitz and Sahni 1974), up to 16 against 16 targets or 2
      against 700, and where few relabellings come near to the observed one;
    - the saddlepoint approximation (Robinson 1982; Booth and Butler 1990), right to 3% above
      .00001 in the conditions in which it was tried. It is not used where the density that it
      gives does not integrate to one, or the sums' distribution is not smooth: of few different
      values, ties or scores in clumps, or where single scores decide;
    - else 100,000 relabellings, one of which is the observed one.

    Where several items carry one word, give a word's mean as its score: items of a word share
    its embedding's peculiarities, and dealt one by one they would count the same evidence many
    times over.

    Parameters
    ----------
    x, y
        Scores s(w, A, B) of the targets, (n_x,) and (n_y,), in any unit; any two numbers.
    alternative
        ``"greater"`` (X nearer to A, the papers' choice), ``"less"`` or ``"two-sided"`` (the
        absolute difference of means; SciPy doubles the smaller tail, which with sets of unequal
        size is another number).
    rng
        Generator or seed; needed for a result that can be repeated where relabellings are drawn.

    Returns
    -------
    PermutationResult
        With ``p_value`` in (0, 1], ``low``, ``high`` and ``method``.

    Raises
    ------
    InputError
        If a set is empty or no list of real numbers, a score is not finite, or the alternative is
        unknown.

    Examples
    --------
    >>> permutation_test([3.0, 2.0], [1.0, 0.0]).p_value  # one partition of six
    0.16666666666666666
    >>> result = permutation_test(np.arange(25.0) ** 1.1 + 3, np.arange(30.0) ** 1.1, rng=0)
    >>> result.method, round(result.p_value, 3)
    ('saddlepoint', 0.58)
    """
    one_of(alternative, "alternative", ALTERNATIVES)
    pooled, n_x = pooled_scores(x, y)
    scores, exponent = in_scale(pooled)
    difference = float(np.ldexp(scores[:n_x].mean() - scores[n_x:].mean(), exponent))
    n_y, total = scores.size - n_x, n_partitions(n_x, scores.size - n_x)
    centred, tolerance = _centred(scores[None, :])
    centred, tolerance = centred[0], float(tolerance[0])
    observed = float(centred[:n_x].sum())
    # The sum over X is minus the sum over Y: choices of the smaller set are looked at.
    towards_x, size = (centred, n_x) if n_x <= n_y else (-centred, n_y)
    tails = _tails(towards_x, observed, alternative)
    nothing = np.abs(centred).sum() <= tolerance
    if nothing or (alternative == "two-sided" and abs(observed) <= tolerance):
        return PermutationResult.of_counts(total, total, difference)
    counts = [_count(each, size, least - tolerance) for each, least in tails]
    if None not in counts:
        return PermutationResult.of_counts(min(sum(counts), total), total, difference)
    shares = [_approximation(each, size, least) for each, least in tails]
    if None not in shares:
        p_value, error = (sum(each) for each in zip(*shares, strict=True))
        p_value = min(max(p_value, LEAST), 1.0)
        low, high = max(p_value - error, 0.0), min(p_value + error, 1.0)
        return PermutationResult(p_value, low, high, "saddlepoint", total, difference)
    reached = _reached(scores[None, :], n_x, alternative, RESAMPLES - 1, rng)
    return PermutationResult.of_draws(int(reached[0]), RESAMPLES - 1, total, difference)


def permutation_p_values(
    x: ArrayLike,
    y: ArrayLike,
    n_resamples: int = RESAMPLES,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return the one-sided p-values of many tests of the same targets at once.

    The partitions are listed or drawn once and used for every test, which is much faster than one
    test after the other where there are thousands.

    Parameters
    ----------
    x, y
        Scores, (n_tests, n_x) and (n_tests, n_y). X nearer to A is what is tested.
    n_resamples
        Every partition is looked at when there are at most so many; otherwise all tests are judged
        on so many, of which one is the observed one.
    rng
        Generator or seed.

    Returns
    -------
    numpy.ndarray
        (n_tests,).

    Raises
    ------
    InputError
        As :func:`permutation_test`.

    Examples
    --------
    >>> permutation_p_values([[3.0, 2.0], [0.0, 1.0]], [[1.0, 0.0], [2.0, 3.0]]).round(3)
    array([0.167, 1.   ])
    """
    form = "a table, one row a test and one column a target"
    x_scores, y_scores = real_numbers(x, "x", form, 2), real_numbers(y, "y", form, 2)
    require_length(y_scores, len(x_scores), "y", "tests in x")
    scores, _ = in_scale(np.concatenate([x_scores, y_scores], axis=1), axis=1)
    n_x, n_resamples = x_scores.shape[1], whole_number(n_resamples, "n_resamples", 2)
    total = n_partitions(n_x, y_scores.shape[1])
    if total <= n_resamples:
        return _reached(scores, n_x, "greater") / total
    return (1 + _reached(scores, n_x, "greater", n_resamples - 1, rng)) / n_resamples


def relabelled_differences(
    x: ArrayLike,
    y: ArrayLike,
    n_resamples: int = RESAMPLES,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return differences of means under relabellings: the permutation null, or a sample of it.

    Parameters
    ----------
    x, y
        Scores of the targets, (n_x,) and (n_y,).
    n_resamples
        Every relabelling is looked at when there are at most so many; otherwise so many are drawn.
    rng
        Generator or seed.

    Returns
    -------
    numpy.ndarray
        One for each relabelling, in units of the scores.

    Raises
    ------
    InputError
        As :func:`permutation_test`, and if nothing would be drawn.

    Examples
    --------
    >>> relabelled_differences([3.0, 2.0], [1.0, 0.0])
    array([ 2.,  1.,  0.,  0., -1., -2.])
    """
    pooled, n_x = pooled_scores(x, y)
    scores, exponent = in_scale(pooled)
    n, n_resamples = scores.size, whole_number(n_resamples, "n_resamples", 1)
    few = n_partitions(n_x, n - n_x) <= n_resamples
    blocks = all_partitions(n, n_x) if few else drawn_partitions(n, n_x, n_resamples, rng)
    sums = np.concatenate([block @ scores for block in blocks])
    return np.ldexp(sums / n_x - (scores.sum() - sums) / (n - n_x), exponent)


def pooled_scores(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, int]:
    """Return the scores of what is relabelled, those of X first, and how many are of X."""
    form = "one list of at least one score"
    x_scores, y_scores = real_numbers(x, "x", form, 1), real_numbers(y, "y", form, 1)
    return np.concatenate([x_scores, y_scores]), x_scores.size


def _centred(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of mean zero, (n_tests, n), and by how much sums that tie may differ."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    rounding = 8 * np.finfo(float).eps * np.abs(scores).sum(axis=1)
    return centred, np.maximum(NEAR * np.abs(centred).sum(axis=1), rounding)


def _tails(scores: np.ndarray, observed: float, alternative: str) -> list:
    """Return scores and the sum that choices of them have to reach, of one tail or of two."""
    upper, lower = (scores, observed), (-scores, -observed)
    if alternative != "two-sided":
        return [upper if alternative == "greater" else lower]
    return [(scores, abs(observed)), (-scores, abs(observed))]


def _count(scores: np.ndarray, size: int, least: float) -> int | None:
    """Return how many choices reach a sum; None if they are too many to be counted."""
    ordered = np.sort(scores)
    others, highest = ordered[:-size], ordered[-size:]
    missing = highest.sum() - least
    if missing < 0.0:
        return 0
    # Near the rim most of the highest cannot be left out, and most of the others not be taken.
    loose = highest[highest <= others[-1] + missing]
    free = np.concatenate([others[others >= highest[0] - missing], loose])
    if not can_be_counted(len(free), len(loose)):
        return None
    return count_by_halves(free, len(loose), least - (highest.sum() - loose.sum()))


def _approximation(scores: np.ndarray, size: int, least: float) -> tuple[float, float] | None:
    """Return the share of choices that reach a sum, and its error; None where it is not known."""
    # A smooth distribution leaves out half of the observed choice.
    half = 0.5 * math.exp(-log_choices(len(scores), size))
    sign = 1.0 if least > 0.0 else -1.0
    found = saddlepoint_tail(sign * scores, size, abs(least))
    if found is None:
        return None
    tail, error = found
    return (tail if least > 0.0 else 1.0 - tail) + half, error * tail


def _reached(scores: np.ndarray, n_x: int, alternative: str, draws: int = 0, rng=None):
    """Count the partitions that reach the observed sum: all of them, or of some draws; (n_tests,).

    The scores are (n_tests, n).
    """
    n = scores.shape[1]
    centred, tolerance = _centred(scores)
    observed = centred[:, :n_x].sum(axis=1)
    turn = {"greater": np.positive, "less": np.negative, "two-sided": np.abs}[alternative]
    least = turn(observed) - tolerance
    counts = np.zeros(len(scores), dtype=int)
    blocks = drawn_partitions(n, n_x, draws, rng) if draws else all_partitions(n, n_x)
    parts = [slice(at, at + TESTS_AT_ONCE) for at in range(0, len(scores), TESTS_AT_ONCE)]
    for block in blocks:
        for part in parts:
            sums = turn(centred[part] @ block.T)
            counts[part] += np.count_nonzero(sums >= least[part, None], axis=1)
    return counts
