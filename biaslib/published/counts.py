"""What counts allow: whole counts behind percentages, intervals, bounds on paired differences."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def possible_counts(percent: float, n: int, decimals: int = 2) -> list[int]:
    """Return the whole counts k out of n that print as this percentage.

    ``|100 k / n - percent| <= 10 ** -decimals / 2``: a tie may be rounded either way.

    Examples
    --------
    >>> possible_counts(85.21, 1028), possible_counts(85.21, 14)
    ([876], [])
    """
    half = 0.5 * 10**-decimals + 1e-9
    first = math.ceil((percent - half) * n / 100)
    last = math.floor((percent + half) * n / 100)
    return list(range(max(first, 0), min(last, n) + 1))


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a proportion (Clopper and Pearson 1934).

    The bounds solve ``P(K >= k | low) = alpha / 2`` and ``P(K <= k | high) = alpha / 2``.

    Examples
    --------
    >>> [round(each, 4) for each in clopper_pearson(7, 14)]
    [0.2304, 0.7696]
    >>> [round(each, 4) for each in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    tail = (1 - level) / 2
    low = high = None
    if successes == 0:
        low = 0.0
    if successes == n:
        high = 1.0
    if low is None:
        low = _bisect(lambda p: 1 - _binomial_cdf(successes - 1, n, p) - tail)
    if high is None:
        high = _bisect(lambda p: tail - _binomial_cdf(successes, n, p))
    return low, high


def _bisect(increasing, low: float = 0.0, high: float = 1.0) -> float:
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return (low + high) / 2


def _binomial_cdf(k: int, n: int, p: float) -> float:
    if p <= 0 or p >= 1:
        return 1.0 if p <= 0 or k >= n else 0.0
    at = np.arange(k + 1)
    log_choose = math.lgamma(n + 1) - np.array(
        [math.lgamma(i + 1) + math.lgamma(n - i + 1) for i in at]
    )
    return float(np.exp(log_choose + at * math.log(p) + (n - at) * math.log1p(-p)).sum())


def mcnemar_p(first_only: int, second_only: int) -> float:
    """Return the exact two-sided McNemar p-value from the two discordant counts.

    ``p = min(1, 2 P(K <= min(first_only, second_only)))``, K binomial over the discordant items
    with probability 1/2 (McNemar 1947); 1 when nothing is discordant.

    Examples
    --------
    >>> mcnemar_p(0, 6), mcnemar_p(5, 5)
    (0.03125, 1.0)
    """
    n, k = first_only + second_only, min(first_only, second_only)
    tail = sum(math.comb(n, i) for i in range(k + 1))
    return min(1.0, 2 * tail / 2**n)


@dataclass(frozen=True)
class PairedBounds:
    """A paired difference of two proportions whose overlap is not known."""

    difference: float
    p_low: float
    p_high: float
    discordant_low: int
    discordant_high: int

    def verdict(self, level: float = 0.05) -> str:
        """Return what the margins settle: differ, no difference shown, or open."""
        if self.p_high <= level:
            return "differ, whatever the overlap"
        return "not shown, whatever the overlap" if self.p_low > level else "open"


def paired_difference_bounds(
    a: int | Sequence[int], b: int | Sequence[int], n: int | Sequence[int]
) -> PairedBounds:
    """Bound the exact McNemar p-value of two models scored on the same items.

    Only the margins are known: of ``n`` items the first model has ``a``, the second ``b``. The
    items that both have lie between ``max(0, a + b - n)`` and ``min(a, b)``; a larger overlap
    leaves fewer discordant items and the same difference, so a smaller p-value. With sequences,
    each place is a stratum (a category) and the overlaps are bounded stratum by stratum, which
    is sharper.

    Examples
    --------
    >>> bounds = paired_difference_bounds(8, 5, 14)
    >>> bounds.discordant_low, bounds.discordant_high, bounds.p_low, round(bounds.p_high, 3)
    (3, 13, 0.25, 0.581)
    >>> bounds.verdict()
    'not shown, whatever the overlap'
    """
    strata = list(zip(*(np.atleast_1d(each).tolist() for each in (a, b, n)), strict=True))
    _check_margins(strata)
    first, second, items = (sum(each) for each in zip(*strata, strict=True))
    most = sum(min(i, j) for i, j, _ in strata)
    least = sum(max(0, i + j - m) for i, j, m in strata)
    return PairedBounds(
        difference=(first - second) / items,
        p_low=mcnemar_p(first - most, second - most),
        p_high=mcnemar_p(first - least, second - least),
        discordant_low=first + second - 2 * most,
        discordant_high=first + second - 2 * least,
    )


def _check_margins(strata) -> None:
    for first, second, items in strata:
        if items < 1 or not (0 <= first <= items and 0 <= second <= items):
            raise ValueError(
                f"margins {first} and {second} of {items} items: each must lie between 0 and n"
            )


def independent_p(a: int, b: int, n: int) -> float:
    """Return the two-sided p-value of the z-test for two independent proportions out of n each.

    ``z = (a - b) / n / sqrt(2 q (1 - q) / n)`` with ``q = (a + b) / (2 n)``. For comparison only:
    models scored on the same items are not independent.

    Examples
    --------
    >>> round(independent_p(60, 40, 100), 4)
    0.0047
    """
    pooled = (a + b) / (2 * n)
    error = math.sqrt(2 * pooled * (1 - pooled) / n)
    return 1.0 if error == 0 else math.erfc(abs(a - b) / n / error / math.sqrt(2))


def pearson(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Pearson's correlation.

    >>> round(pearson([1, 2, 3], [2, 4, 6]), 12)
    1.0
    """
    x, y = (np.asarray(each, dtype=float) - np.mean(each) for each in (x, y))
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))


def ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks from 1, ties sharing their mean rank.

    >>> ranks([10, 30, 20, 30])
    [1.0, 3.5, 2.0, 3.5]
    """
    values = list(values)
    return [sum(other < each for other in values) + (values.count(each) + 1) / 2 for each in values]


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Spearman's correlation: Pearson's of the ranks.

    >>> round(spearman([1, 2, 3], [1, 8, 27]), 12)
    1.0
    """
    return pearson(ranks(x), ranks(y))


def correlation_p(x: Sequence[float], y: Sequence[float], statistic=pearson) -> float:
    """Return the exact two-sided permutation p-value of a correlation: all n! orders of y.

    >>> correlation_p([1, 2, 3, 4], [1, 2, 3, 4])
    0.08333333333333333
    """
    if len(x) > 8:
        raise ValueError(f"{len(x)} pairs have too many orders to list; use at most 8 pairs")
    observed = abs(statistic(x, y)) - 1e-12
    orders = [abs(statistic(x, order)) >= observed for order in itertools.permutations(y)]
    return sum(orders) / len(orders)
