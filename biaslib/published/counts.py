"""What counts allow: whole counts behind percentages, bounds on paired differences."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def _whole(name: str, value: object, least: int) -> int:
    """Return a count as an int; raise ``ValueError`` if it is no whole number or too small."""
    real = isinstance(value, numbers.Real) and math.isfinite(value)
    if not real or value != int(value) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    return int(value)


def _part(name: str, value: object, n: int) -> int:
    """Return a count that cannot exceed n."""
    value = _whole(name, value, 0)
    if value > n:
        raise ValueError(f"{name} is {value} of {n}; it must lie between 0 and {n}")
    return value


def _between(name: str, value: object, low: float, high: float, ends: bool) -> None:
    inside = isinstance(value, numbers.Real) and (
        low <= value <= high if ends else low < value < high
    )
    if not inside:
        how = "from {} to {}" if ends else "between {} and {}, without either"
        raise ValueError(f"{name} is {value!r}; it must be a number {how.format(low, high)}")


def possible_counts(percent: float, n: int, decimals: int = 2) -> list[int]:
    """Return the whole counts k out of n that print as this percentage.

    ``|100 k / n - percent| <= 10 ** -decimals / 2``: a tie may be rounded either way.

    Raises
    ------
    ValueError
        If percent is not from 0 to 100, n not a whole number of at least 1, or decimals not one of
        at least 0.

    Examples
    --------
    >>> possible_counts(85.21, 1028), possible_counts(85.21, 14)
    ([876], [])
    """
    _between("percent", percent, 0, 100, ends=True)
    n, decimals = _whole("n", n, 1), _whole("decimals", decimals, 0)
    half = 0.5 * 10**-decimals + 1e-9
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
    first_only, second_only = (
        _whole(name, value, 0)
        for name, value in (("first_only", first_only), ("second_only", second_only))
    )
    n, k = first_only + second_only, min(first_only, second_only)
    tail = sum(math.comb(n, i) for i in range(k + 1))
    return min(1.0, 2 * tail / 2**n)


@dataclass(frozen=True)
class PairedBounds:
    """A paired difference of two proportions whose overlap is not known."""

    difference: float
    p_low: float
    p_high: float

    def verdict(self, level: float = 0.05) -> str:
        """Return what the margins settle: differ, no difference shown, or open.

        A level that is not between 0 and 1 is a ``ValueError``.
        """
        _between("level", level, 0, 1, ends=False)
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
        If the three differ in length or are empty, or a margin is not a whole number from 0 to n.

    Examples
    --------
    >>> bounds = paired_difference_bounds(8, 5, 14)
    >>> bounds.p_low, round(bounds.p_high, 3)
    (0.25, 0.581)
    >>> bounds.verdict()
    'not shown, whatever the overlap'
    """
    strata = _strata(*(np.atleast_1d(each).tolist() for each in (a, b, n)))
    first, second, items = (sum(each) for each in zip(*strata, strict=True))
    most = sum(min(i, j) for i, j, _ in strata)
    least = sum(max(0, i + j - m) for i, j, m in strata)
    return PairedBounds(
        difference=(first - second) / items,
        p_low=mcnemar_p(first - most, second - most),
        p_high=mcnemar_p(first - least, second - least),
    )


def _strata(a: list, b: list, n: list) -> list[tuple[int, int, int]]:
    if not len(a) == len(b) == len(n) or not n:
        raise ValueError(
            f"{len(a)}, {len(b)} and {len(n)} strata in a, b and n; "
            "pass the same number in each, at least one"
        )
    n = [_whole("n", items, 1) for items in n]
    return [
        (_part("a", first, items), _part("b", second, items), items)
        for first, second, items in zip(a, b, n, strict=True)
    ]


def independent_p(a: int, b: int, n: int) -> float:
    """Return the two-sided p-value of the z-test for two independent proportions out of n each.

    ``z = (a - b) / n / sqrt(2 q (1 - q) / n)`` with ``q = (a + b) / (2 n)``. For comparison only:
    models scored on the same items are not independent.

    Raises
    ------
    ValueError
        If n is not a whole number of at least 1, or a or b not one from 0 to n.

    Examples
    --------
    >>> round(independent_p(60, 40, 100), 4)
    0.0047
    """
    n = _whole("n", n, 1)
    a, b = _part("a", a, n), _part("b", b, n)
    pooled = (a + b) / (2 * n)
    error = math.sqrt(2 * pooled * (1 - pooled) / n)
    return 1.0 if error == 0 else math.erfc(abs(a - b) / n / error / math.sqrt(2))
