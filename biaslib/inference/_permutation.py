"""The permutation test of association tests, for sets of any size and without sampling."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from biaslib.errors import InputError
from biaslib.inference._clumps import clumps_tail
from biaslib.inference._enumeration import count_by_halves, needs_more_sums
from biaslib.inference._inversion import inverted_log_tail
from biaslib.inference._lattice import common_step, lattice_tail
from biaslib.inference._proportions import proportion_interval
from biaslib.inference._saddlepoint import (
    log_choices,
    saddlepoint_log_tail,
    solve_tilt,
)
from biaslib.inference._sampling import (
    all_partitions,
    count_extreme,
    drawn_partitions,
)
from biaslib.inference._tail import count_listed
from biaslib.metrics.inputs import (
    between_0_and_1,
    in_scale,
    label_codes,
    label_keys,
    one_of,
    real_numbers,
    refused,
    whole_number,
)

ALTERNATIVES = ("greater", "less", "two-sided")
METHODS = (
    "auto",
    "enumeration",
    "tail",
    "lattice",
    "saddlepoint",
    "inversion",
    "sampled",
    "normal",
)
# From the firmest to the weakest; a sum of two tails is as firm as the weaker.
INTERVALS = ("exact", "proven bound", "error estimate", "95% confidence")

# Sums in the larger half of the scores: up to the first "auto" enumerates at once, up to the second
# if nothing quicker can be trusted, up to the third it can be asked for.
EASY_HALF_SUMS = 2**18
HARD_HALF_SUMS = 2**23
MOST_HALF_SUMS = 2**25
# Partitions in the tail: up to the first "auto" lists rather than approximates, up to the second
# it lists rather than take a lattice, up to the third it can be asked for.
FEW_LISTED = 20_000
MANY_LISTED = 2_000_000
MOST_LISTED = 5_000_000
# Ways to choose from equal scores that are looked at, each at once.
MOST_CHOICES = 2**21
# Tests whose sums over a block of partitions are looked at together: these fit in the cache.
TESTS_AT_ONCE = 64
# Levels that a p-value is compared with.
LEVELS = (0.05, 0.01, 0.001)
# Of the summed distances of scores from their mean: sums so near below the observed one may tie.
NEAR = 1e-11
# The least positive number: a p-value is never zero.
LEAST = 5e-324
# Relative error up to which "auto" trusts an estimate, and relative distance of the bounds that a
# lattice is made for, unless less is asked for.
TRUSTED = 0.003
LATTICE_WIDTH = 0.008
# Relative distance of the bounds of scores in few clumps up to which nothing else is tried.
CLOSE = 0.02


@dataclass(frozen=True)
class PermutationResult:
    """A p-value with what is needed to judge it.

    ``low`` and ``high`` enclose the p-value of full enumeration in the sense that ``interval``
    states:

    - ``"exact"``: every partition was counted, or the scores lie on a lattice and the p-value is
      right to 9 digits. ``low`` and ``high`` equal ``p_value``.
    - ``"proven bound"``: the p-value cannot lie outside.
    - ``"error estimate"``: it is not expected outside; nothing is proven.
    - ``"95% confidence"``: Clopper and Pearson's interval of a sampled p-value.

    ``method`` is the method used; ``n_partitions`` how many partitions there are, as a whole number
    of any length; ``n_evaluated`` how many were counted, listed or drawn (None where partitions
    are not counted); ``statistic`` the difference of the means, in units of the scores.
    """

    p_value: float
    low: float
    high: float
    method: str
    n_partitions: int = field(repr=False)
    n_evaluated: int | None
    statistic: float
    interval: str

    @property
    def undecided(self) -> tuple[float, ...]:
        """Return which of the levels .05, .01 and .001 lie between ``low`` and ``high``.

        Of such a level the bounds do not tell whether p is below it, as significance asks;
        ``p_value`` is then no more than a number between them.

        >>> PermutationResult(0.1, 0.04, 0.2, "lattice", 10, None, 1.0, "proven bound").undecided
        (0.05,)
        """
        return tuple(level for level in LEVELS if self.low < level <= self.high)


@dataclass(frozen=True)
class _Question:
    """What is the chance that a random choice of ``size`` scores sums up to ``observed`` or more?

    The scores have mean zero and size is at most half their number. With ``strict`` sums that tie
    with the observed one do not count.
    """

    scores: np.ndarray
    size: int
    observed: float
    tolerance: float
    rounding: float
    strict: bool = False
    accuracy: float = TRUSTED

    @property
    def threshold(self) -> float:
        return self.observed + self.tolerance if self.strict else self.observed - self.tolerance

    @property
    def thresholds(self) -> tuple[float, float]:
        """The threshold, and that with which only sums tie that differ by no more than rounding."""
        sign = 1.0 if self.strict else -1.0
        return self.threshold, self.observed + sign * self.rounding

    @property
    def n_partitions(self) -> int:
        return math.comb(len(self.scores), self.size)

    @property
    def log_n_partitions(self) -> float:
        return log_choices(len(self.scores), self.size)

    def complement(self) -> "_Question":
        """Return the question whose answer is one minus the answer to this."""
        return replace(self, scores=-self.scores, observed=-self.observed, strict=not self.strict)


@dataclass(frozen=True)
class _Answer:
    p_value: float
    low: float
    high: float
    method: str
    interval: str
    count: int | None = None
    # Where every partition was judged: how many are in the tail, of how many.
    share: tuple[int, int] | None = None


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
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 100_000,
    rng: np.random.Generator | int | None = None,
    clusters_x: ArrayLike | None = None,
    clusters_y: ArrayLike | None = None,
    accuracy: float = TRUSTED,
) -> PermutationResult:
    r"""Test whether the scores of X exceed those of Y by more than a relabelling would give.

    The targets' labels are exchanged, never the attributes':

    .. math:: p = \Pr\nolimits_{(X', Y')}\Bigl[
              \operatorname{mean}_{x \in X'} s(x) - \operatorname{mean}_{y \in Y'} s(y) \ge
              \operatorname{mean}_{x \in X} s(x) - \operatorname{mean}_{y \in Y} s(y) \Bigr]

    over all partitions of the pooled targets into two sets of the given sizes (Caliskan et al.
    2017, who have sums; with sets of equal size it is the same). As the pool does not change, the
    sum over X' says it all. A partition that ties with the observed one counts towards p, as in
    May et al. (2019). Sums tie if they differ by no more than their own rounding. Where scores come
    out of long computations, sums that should tie may differ by more: those that lie below the
    observed one by at most 1e-11 of the summed distances of all scores from their mean count
    towards p and ``high``, and not towards ``low``.

    Parameters
    ----------
    x, y
        Scores s(w, A, B) of the targets, (n_x,) and (n_y,), in any unit; any two numbers.
    method
        ``"enumeration"``
            Counts every partition, by sums of halves (Horowitz and Sahni 1974). Exact; up to 25
            and 25 targets, which take some seconds and 1 GB.
        ``"tail"``
            Lists the partitions in the tail from its top. Exact; up to five million in the tail.
        ``"lattice"``
            Convolution on a lattice (Pagano and Tritchler 1983), tilted. Exact if the scores are
            multiples of a step, as ranks are; otherwise with proven bounds, 1% apart wherever
            the work allows.
        ``"saddlepoint"``
            The double saddlepoint approximation (Robinson 1982; Booth and Butler 1990). Its error
            is estimated from ``"inversion"``.
        ``"inversion"``
            Numerical integration along the path through the saddlepoint; error estimated.
        ``"sampled"``
            Draws ``n_resamples - 1`` random partitions and adds one to numerator and denominator
            for the observed one, so that p is never 0 (May et al. 2019).
        ``"normal"``
            Normal with the variance of sampling without replacement; ``low`` and ``high`` reach
            to the p-value of ``"auto"``.
        ``"auto"``
            Never samples. ``"enumeration"`` up to about 18 and 18 targets, and where scores have
            few different values, by how many of each are chosen; ``"lattice"`` where it is exact;
            ``"tail"`` where it holds few partitions; ``"saddlepoint"`` if the integral confirms it
            within 0.3% and is itself trusted that far; ``"inversion"`` if its error is estimated
            to be at most ``accuracy``; else ``"tail"`` or ``"lattice"``, for scores in few clumps
            one for each.
    alternative
        ``"greater"`` (X nearer to A, the papers' choice), ``"less"`` or ``"two-sided"`` (the
        absolute difference of means; SciPy doubles the smaller tail, which with sets of unequal
        size is another number).
    n_resamples
        Number of draws plus one, if sampled.
    rng
        Generator or seed; needed for a result that can be repeated when partitions are sampled.
    clusters_x, clusters_y
        Labels of units that move together, (n_x,) and (n_y,), such as the word of each sentence.
        The mean of each cluster then takes the place of its scores, and partitions deal clusters.
        Sentences of a word share its embedding's peculiarities: dealing them one by one would
        count the same evidence many times over, and p would shrink with every template added.
        The statistic is the difference of the means of cluster means. With clusters of equal size
        it equals that of the scores; otherwise every cluster weighs the same, not every score.
    accuracy
        Relative error of p up to which ``"auto"`` takes an estimate rather than work on; a lattice
        is made for bounds this far apart, or 0.8% if that is more. Where many tests are run and p
        is only compared with a level, 0.05 saves most of the time. ``low`` and ``high`` tell what
        the error is.

    Returns
    -------
    PermutationResult
        With ``p_value`` in (0, 1], ``low``, ``high`` and ``interval``, which says in what sense
        they bound it. A p-value below 5e-324 is given as that.

    Raises
    ------
    InputError
        If a set is empty or no list of real numbers, a score is not finite, labels do not fit the
        scores or occur in both sets, an option is unknown, the accuracy is not between 0 and 1, or
        the method asked for cannot answer.

    Examples
    --------
    >>> permutation_test([3.0, 2.0], [1.0, 0.0]).p_value  # one partition of six
    0.16666666666666666
    >>> result = permutation_test(range(20, 60), range(40))  # whole numbers: a lattice
    >>> result.method, result.interval, f"{result.p_value:.3e}"
    ('lattice', 'exact', '5.793e-11')
    >>> words = [list("aabbccdd"), list("eeffgghh")]
    >>> permutation_test(range(8, 16), range(8), clusters_x=words[0], clusters_y=words[1]).p_value
    0.014285714285714285
    """
    _check_options(method, alternative)
    accuracy = between_0_and_1(accuracy, "accuracy")
    pooled, n_x = pooled_units(x, y, clusters_x, clusters_y)
    scores, exponent = in_scale(pooled[None, :])
    difference = float(np.ldexp(_difference(scores[0], n_x), exponent))
    if method == "sampled":
        return _sampled(scores, n_x, alternative, n_resamples, rng, difference)
    answer = _answer(scores[0], n_x, method, alternative, accuracy)
    return PermutationResult(
        max(float(answer.p_value), LEAST),
        float(answer.low),
        max(float(answer.high), LEAST),
        answer.method,
        n_partitions(n_x, scores.shape[1] - n_x),
        answer.count,
        difference,
        answer.interval,
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

    The partitions are listed or drawn once and used for every test, which is much faster than one
    test after the other where there are thousands.

    Parameters
    ----------
    x, y
        Scores, (n_tests, n_x) and (n_tests, n_y).
    method
        As for :func:`permutation_test`, except ``"auto"``: every partition is looked at when there
        are at most ``n_resamples``; otherwise all tests are judged on one sample of them.
    alternative, n_resamples, rng
        As for :func:`permutation_test`.

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
    _check_options(method, alternative)
    form = "a table, one row a test and one column a target"
    x_scores, y_scores = real_numbers(x, "x", form, 2), real_numbers(y, "y", form, 2)
    if len(x_scores) != len(y_scores):
        raise refused("y", f"has {len(y_scores)} rows and x {len(x_scores)}; give one a test")
    scores, _ = in_scale(np.concatenate([x_scores, y_scores], axis=1), axis=1)
    n_x, n_resamples = x_scores.shape[1], whole_number(n_resamples, "n_resamples", 2)
    few = n_partitions(n_x, scores.shape[1] - n_x) <= n_resamples
    if method == "auto":
        method = "enumeration" if few else "sampled"
    if method == "sampled" or (method == "enumeration" and few):
        counts, evaluated, _ = _counts(scores, n_x, method, alternative, n_resamples, rng)
        return counts / evaluated
    tests = [_answer(row, n_x, method, alternative).p_value for row in scores]
    return np.maximum(tests, LEAST)


def relabelled_differences(
    x: ArrayLike, y: ArrayLike, n_resamples: int, rng: np.random.Generator | int | None = None
) -> np.ndarray:
    """Return differences of means under random relabellings: a sample of the permutation null.

    Parameters
    ----------
    x, y
        Scores of the targets, (n_x,) and (n_y,).
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
    InputError
        As :func:`permutation_test`, and if nothing would be drawn.

    Examples
    --------
    >>> sorted(set(relabelled_differences([1.0], [0.0], 50, rng=0).tolist()))
    [-1.0, 1.0]
    """
    pooled, n_x = pooled_units(x, y, None, None)
    scores, exponent = in_scale(pooled)
    n, n_resamples = scores.size, whole_number(n_resamples, "n_resamples", 1)
    blocks = drawn_partitions(n, n_x, n_resamples, rng)
    sums = np.concatenate([block @ scores for block in blocks])
    return np.ldexp(sums / n_x - (scores.sum() - sums) / (n - n_x), exponent)


def _check_options(method, alternative):
    one_of(method, "method", METHODS)
    one_of(alternative, "alternative", ALTERNATIVES)


def pooled_units(
    x: ArrayLike, y: ArrayLike, clusters_x: ArrayLike | None, clusters_y: ArrayLike | None
) -> tuple[np.ndarray, int]:
    """Return the scores of what is relabelled, those of X first, and how many are of X."""
    x_units, y_units = units(x, clusters_x, "X"), units(y, clusters_y, "Y")
    if clusters_x is not None and clusters_y is not None:
        refuse_shared_labels(clusters_x, clusters_y)
    return np.concatenate([x_units, y_units]), x_units.size


def units(scores, clusters, side):
    """Return the scores of what is exchanged: the items, or the means of clusters."""
    name = side.lower()
    values = real_numbers(scores, name, "one list of at least one score", 1)
    if clusters is None:
        return values
    unit, _ = label_codes(clusters, f"clusters_{name}", values.size)
    values, exponent = in_scale(values)
    return np.ldexp(np.bincount(unit, values) / np.bincount(unit), exponent)


def refuse_shared_labels(clusters_x, clusters_y):
    in_x = set(label_keys(clusters_x, "clusters_x"))
    for row, key in enumerate(label_keys(clusters_y, "clusters_y")):
        if key in in_x:
            reason = (
                f"is {key!r}, which has scores in both target sets and cannot change sides as a "
                "whole; give different labels to different clusters, or use a test of pairs"
            )
            raise refused("clusters_y", reason, row)


def _difference(scores, n_x):
    return float(scores[:n_x].mean() - scores[n_x:].mean())


def _centred(scores):
    """Return scores of mean zero, (n_tests, n), and by how much sums that tie may differ.

    Twice (n_tests,): at most by nearness, and at least, by rounding.
    """
    centred = scores - scores.mean(axis=1, keepdims=True)
    rounding = 8 * np.finfo(float).eps * np.abs(scores).sum(axis=1)
    return centred, np.maximum(NEAR * np.abs(centred).sum(axis=1), rounding), rounding


def _counts(scores, n_x, method, alternative, n_resamples, rng):
    """Count partitions one by one: (n_tests,), and how many were looked at."""
    n = scores.shape[1]
    centred, tolerance, _ = _centred(scores)
    observed = centred[:, :n_x].sum(axis=1)
    sampled = method == "sampled"
    blocks = drawn_partitions(n, n_x, n_resamples - 1, rng) if sampled else all_partitions(n, n_x)
    counts, evaluated = np.full(len(scores), int(sampled)), int(sampled)
    parts = [slice(at, at + TESTS_AT_ONCE) for at in range(0, len(scores), TESTS_AT_ONCE)]
    for block in blocks:
        for part in parts:
            sums = centred[part] @ block.T
            counts[part] += count_extreme(sums, observed[part], tolerance[part], alternative)
        evaluated += len(block)
    return counts, evaluated, observed


def _sampled(scores, n_x, alternative, n_resamples, rng, difference):
    n_resamples = whole_number(n_resamples, "n_resamples", 2)
    counts, evaluated, _ = _counts(scores, n_x, "sampled", alternative, n_resamples, rng)
    count = int(counts[0])
    interval = proportion_interval(count - 1, evaluated - 1)
    low, high = interval.low, interval.high
    total = n_partitions(n_x, scores.shape[1] - n_x)
    return PermutationResult(
        count / evaluated, low, high, "sampled", total, evaluated, difference, INTERVALS[3]
    )


def _answer(
    scores: np.ndarray, n_x: int, method: str, alternative: str, accuracy: float = TRUSTED
) -> _Answer:
    """Turn a test into questions about upper tails of sums over the smaller set."""
    centred, tolerance, rounding = (each[0] for each in _centred(scores[None, :]))
    observed = centred[:n_x].sum()
    size = min(n_x, scores.size - n_x)
    # The sum over X is minus the sum over Y.
    towards_x = centred if n_x == size else -centred
    tolerances = float(tolerance), float(rounding)
    upper = _Question(towards_x, size, float(observed), *tolerances, accuracy=accuracy)
    lower = replace(upper, scores=-towards_x, observed=float(-observed))
    if alternative == "greater":
        return _upper_tail(upper, method)
    if alternative == "less":
        return _upper_tail(lower, method)
    if abs(observed) <= rounding:
        return _Answer(1.0, 1.0, 1.0, "enumeration", "exact", upper.n_partitions)
    right = upper if observed > 0 else lower
    first = _upper_tail(right, method)
    if 2 * size == scores.size:
        return _sum(first, first)
    return _sum(first, _upper_tail(replace(right, scores=-right.scores), method))


def _sum(first: _Answer, second: _Answer) -> _Answer:
    weaker = max(first, second, key=lambda each: INTERVALS.index(each.interval))
    if first.share is None or second.share is None:
        p, low, high = (
            min(1.0, getattr(first, name) + getattr(second, name))
            for name in ("p_value", "low", "high")
        )
        return _Answer(p, low, high, weaker.method, weaker.interval)
    count, total = first.share[0] + second.share[0], first.share[1]
    p = count / total
    counted = total if "enumeration" in (first.method, second.method) else count
    return _Answer(p, p, p, weaker.method, "exact", counted, (count, total))


def _upper_tail(question: _Question, method: str) -> _Answer:
    if np.abs(question.scores).sum() <= question.rounding:
        return _exact(question, question.n_partitions, "enumeration")
    if method == "enumeration" or (method == "auto" and not _needs(question, EASY_HALF_SUMS)):
        return _enumerated(question)
    if question.threshold <= 0.0:
        return _one_minus(question, _far_tail(question.complement(), method))
    return _far_tail(question, method)


def _far_tail(question: _Question, method: str) -> _Answer:
    answer = _AUTOMATIC[method](question)
    if answer is None:
        raise InputError(
            f"the method {method!r} has no answer for these scores; 'auto' chooses one that has"
        )
    return answer


def _needs(question, limit):
    return needs_more_sums(len(question.scores), question.size, limit)


def _exact(question: _Question, count: int, method: str, listed: int | None = None) -> _Answer:
    total = question.n_partitions
    counted = total if listed is None else listed
    return _Answer(*(count / total,) * 3, method, "exact", counted, (count, total))


def _between(question: _Question, near: int, apart: int, method: str) -> _Answer:
    """Return the answer from the counts with near sums taken for ties, and without."""
    if near == apart:
        return _exact(question, near, method, near if method == "tail" else None)
    total = question.n_partitions
    bounds = min(near, apart) / total, max(near, apart) / total
    counted = max(near, apart) if method == "tail" else total
    return _Answer(near / total, *bounds, method, "proven bound", counted)


def _one_minus(question: _Question, answer: _Answer) -> _Answer:
    if answer.share is not None:
        count, total = answer.share
        return _exact(question, total - count, answer.method, answer.count)
    low, high = 1.0 - answer.high, 1.0 - answer.low
    return replace(answer, p_value=1.0 - answer.p_value, low=low, high=high)


def _enumerated(question: _Question) -> _Answer:
    if _needs(question, MOST_HALF_SUMS):
        raise InputError(
            f"{question.n_partitions} partitions are too many to enumerate; use method='auto', "
            "which needs no list of them"
        )
    counts = count_by_halves(question.scores, question.size, *question.thresholds)
    return _between(question, *counts, "enumeration")


def _listed(question: _Question, limit: int = MOST_LISTED) -> _Answer | None:
    counts = [
        count_listed(question.scores, question.size, threshold, limit)
        for threshold in question.thresholds
    ]
    return None if None in counts else _between(question, *counts, "tail")


def _of_few_values(question: _Question) -> _Answer | None:
    """Count by how many of each value are chosen: the multivariate hypergeometric distribution."""
    values, numbers = np.unique(question.scores, return_counts=True)
    # How many are chosen of the most frequent value follows from the others.
    (frequent, *values), (most_frequent, *numbers) = (
        each[np.argsort(-numbers, kind="stable")] for each in (values, numbers)
    )
    most = np.minimum(numbers, question.size)
    if np.log1p(most).sum() > math.log(MOST_CHOICES):
        return None
    chosen, sums, weights = np.zeros(1, int), np.zeros(1), np.zeros(1)
    for value, number, largest in zip(values, numbers, most, strict=True):
        each = np.arange(largest + 1)
        chosen = (chosen[:, None] + each).ravel()
        sums = (sums[:, None] + each * value).ravel()
        weights = (weights[:, None] + log_choices(number, each)).ravel()
        fits = chosen <= question.size
        chosen, sums, weights = chosen[fits], sums[fits], weights[fits]
    rest = question.size - chosen
    fits = rest <= most_frequent
    sums = (sums + rest * frequent)[fits]
    weights = (weights + log_choices(most_frequent, rest))[fits]
    shares = np.exp(weights - question.log_n_partitions)
    near, apart = (float(shares[sums >= threshold].sum()) for threshold in question.thresholds)
    low, high = sorted((near, apart))
    interval = "exact" if low == high else "proven bound"
    return _Answer(min(near, 1.0), low, min(high, 1.0), "enumeration", interval)


def _on_lattice(question: _Question, step: float | None = None) -> _Answer | None:
    if step is None:
        step = common_step(question.scores, 16 * question.rounding)
    tail = None
    if step is not None:
        tail = lattice_tail(question.scores, question.size, _below_a_place(question, step), step)
        if tail is None and (answer := _listed(question, FEW_LISTED)):
            return answer
    if tail is None:
        width = max(LATTICE_WIDTH, question.accuracy)
        near, apart = question.thresholds
        tail = lattice_tail(question.scores, question.size, near, width=width, band=apart - near)
    if tail is None:
        # At the rim of what is possible few partitions are left.
        return _listed(question)
    interval = "exact" if tail.exact else "proven bound"
    # The observed partition itself is one of them.
    least = 0.0 if question.strict else math.exp(-question.log_n_partitions)
    p, low = max(tail.p_value, least), max(tail.low, least)
    return _Answer(p, low, max(tail.high, p), "lattice", interval)


def _below_a_place(question: _Question, step: float) -> float:
    """Return a threshold a quarter of a step below the least sum on the lattice that counts.

    In the other tail of sets of unequal size the observed sum need not be on the lattice.
    """
    tie = min(0.25 * step, max(question.tolerance, 64 * question.rounding))
    origin = question.size * question.scores.min()
    observed = question.observed + (tie if question.strict else -tie)
    return origin + step * (math.ceil((observed - origin) / step) - 0.25)


def _of_clumps(question: _Question) -> _Answer | None:
    bounds = clumps_tail(question.scores, question.size, *question.thresholds)
    if bounds is None:
        return None
    # The observed partition itself is one of them.
    least = 0.0 if question.strict else math.exp(-question.log_n_partitions)
    low, high = (max(each, least) for each in bounds)
    return _Answer(math.sqrt(low * high), low, high, "lattice", "proven bound")


def _smooth(question: _Question) -> tuple[float, float, float]:
    """Return the p-values of saddlepoint and integral, and the integral's relative error.

    Both take the distribution as smooth, which leaves out half of the observed partition.
    """
    scores, size, observed = question.scores, question.size, question.observed
    half_step = (-0.5 if question.strict else 0.5) * math.exp(-question.log_n_partitions)
    tilt = solve_tilt(scores, size, observed)
    log_integral, error = inverted_log_tail(scores, size, observed, tilt)
    saddlepoint = math.exp(saddlepoint_log_tail(scores, size, observed, tilt))
    return saddlepoint + half_step, math.exp(log_integral) + half_step, error


def _by_saddlepoint(question: _Question) -> _Answer | None:
    p, integral, error = _smooth(question)
    if not 0.0 < p <= 1.0:
        return None
    if not integral > 0.0:
        return _Answer(p, 0.0, 1.0, "saddlepoint", "error estimate")
    low, high = min(p, integral * (1.0 - error)), max(p, integral * (1.0 + error))
    return _Answer(p, max(low, 0.0), min(high, 1.0), "saddlepoint", "error estimate")


def _by_inversion(question: _Question) -> _Answer | None:
    _, p, error = _smooth(question)
    return _integral_answer(p, error) if p > 0.0 else None


def _integral_answer(p, error):
    low, high = max(0.0, p * (1.0 - error)), min(1.0, p * (1.0 + error))
    return _Answer(p, low, high, "inversion", "error estimate")


def _by_normal(question: _Question) -> _Answer:
    n, size = len(question.scores), question.size
    variance = size * (n - size) / (n * (n - 1)) * (question.scores**2).sum()
    p = float(special.ndtr(-question.observed / np.sqrt(variance)))
    better = _upper_tail(question, "auto")
    return _Answer(p, min(p, better.low), max(p, better.high), "normal", "error estimate")


def _automatic(question: _Question) -> _Answer | None:
    step = common_step(question.scores, 16 * question.rounding)
    if step is not None:
        answer = _on_lattice(question, step)
        if answer is not None and answer.interval == "exact":
            return answer
    if answer := _of_few_values(question):
        return answer
    saddlepoint, integral, error = _smooth(question)
    listed = math.log(integral) + question.log_n_partitions if integral > 0.0 else 0.0
    if listed <= math.log(FEW_LISTED) and (answer := _listed(question, 20 * FEW_LISTED)):
        return answer
    trusted = min(TRUSTED, question.accuracy)
    if error <= trusted and abs(saddlepoint - integral) <= trusted * integral:
        low, high = sorted((saddlepoint, integral))
        low, high = low * (1.0 - error), min(1.0, high * (1.0 + error))
        return _Answer(saddlepoint, low, high, "saddlepoint", "error estimate")
    if error <= question.accuracy:
        return _integral_answer(integral, error)
    if listed <= math.log(MANY_LISTED) and (answer := _listed(question, 2 * MANY_LISTED)):
        return answer
    if not _needs(question, HARD_HALF_SUMS):
        return _enumerated(question)
    clumps = _of_clumps(question)
    if clumps and clumps.high - clumps.low <= CLOSE * clumps.p_value:
        return clumps
    found = [each for each in (clumps, _on_lattice(question)) if each]
    narrowest = min(found, key=lambda each: each.high - each.low, default=None)
    return narrowest or _by_inversion(question)


_AUTOMATIC = {
    "auto": _automatic,
    "tail": _listed,
    "lattice": _on_lattice,
    "saddlepoint": _by_saddlepoint,
    "inversion": _by_inversion,
    "normal": _by_normal,
}
