"""What counts allow: whole counts behind percentages, bounds on paired differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


def possible_counts(percent: float, n: int) -> list[int]:
    """Return the whole counts k out of n that print as this percentage, with two decimals.

    ``|100 k / n - percent| <= 0.005``: a tie may be rounded either way.

    Raises
    ------
    ValueError
        If percent is not from 0 to 100, or n not a whole number of at least 1.

    Examples
    --------
    >>> possible_counts(85.21, 1028), possible_counts(85.21, 14)
    ([876], [])
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"percent is {percent}; it must be a number from 0 to 100")
    n = _count("n", n, 1)
    half = 0.005 + 1e-9
    first = math.ceil((percent - half) * n / 100)
    last = math.floor((percent + half) * n / 100)
    return list(range(max(first, 0), min(last, n) + 1))


def mcnemar_p(first_only: int, second_only: int) -> float:
    """Return the exact two-sided McNemar p-value from the two discordant counts.

    ``p = min(1, 2 P(K <= min(first_only, second_only)))``, K binomial over the discordant items
    with probability 1/2 (McNemar 1947); 1 when nothing is discordant.

    Raises
    ------
    ValueError
        If a count is not a whole number of at least 0.

    Examples
    --------
    >>> mcnemar_p(0, 6), mcnemar_p(5, 5)
    (0.03125, 1.0)
    """
    first, second = _count("first_only", first_only), _count("second_only", second_only)
    if first == second:
        return 1.0
    return float(2 * stats.binom.cdf(min(first, second), first + second, 0.5))


@dataclass(frozen=True)
class PairedBounds:
    """A paired difference of two proportions whose overlap is not known."""

    difference: float
    p_low: float
    p_high: float

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

    Raises
    ------
    ValueError
        If the three differ in length, or a margin is not a whole number from 0 to n.

    Examples
    --------
    >>> bounds = paired_difference_bounds(8, 5, 14)
    >>> bounds.p_low, round(bounds.p_high, 3)
    (0.25, 0.581)
    >>> bounds.verdict()
    'not shown, whatever the overlap'
    """
    strata = [
        (_count("a", first, 0, items), _count("b", second, 0, items), _count("n", items, 1))
        for first, second, items in zip(*map(np.atleast_1d, (a, b, n)), strict=True)
    ]
    first, second, items = (sum(each) for each in zip(*strata, strict=True))
    most = sum(min(i, j) for i, j, _ in strata)
    least = sum(max(0, i + j - m) for i, j, m in strata)
    return PairedBounds(
        difference=(first - second) / items,
        p_low=mcnemar_p(first - most, second - most),
        p_high=mcnemar_p(first - least, second - least),
    )


def _count(name: str, value: object, least: int = 0, most: float = math.inf) -> int:
    """Return a count as an int; raise ``ValueError`` if it is no whole number or out of range."""
    if not least <= value <= most or value != int(value):
        raise ValueError(f"{name} is {value}; it must be a whole number from {least} to {most}")
    return int(value)
