"""Absolute sums under every pattern of signs: listed, or on a lattice with proven bounds."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import fft

from biaslib.inference._lattice import common_step
from biaslib.inference._permutation import LEAST, NEAR

METHODS = ("enumeration", "lattice")

ENUMERATED = 16
"""Up to this many values, every pattern of signs is listed."""

MOST_WORK = 2e8
"""Additions at most that a lattice may take."""

FINE = 2**18
"""Steps at least of a lattice for values that lie on none."""

ROUGH = 0.01
"""Of the sum's standard deviation: values whose sums lie further off are summed by frequencies."""

POINTS = 2**20
"""Places of a lattice at most, where its distribution is summed by frequencies."""

REACH = 9.0
"""Standard deviations on either side that they cover: beyond lie at most 2 exp(-81/2) = 5e-18."""

SURE = math.sqrt(2.0 * math.log(2.0 / 1e-15))
"""Signed errors e exceed this times their root sum of squares with a chance below 1e-15."""

SILENT = 1e-18
"""A characteristic function below this is taken for 0."""

FIRST = 256
"""Values after which next to no frequency is heard, unless sums lie in clumps."""

HALVED_AT_ONCE = 512
"""Coins after which counts of patterns become shares, long before a float is too small for them."""


@dataclass(frozen=True)
class ExchangeResult:
    """A p-value over all exchanges, with what is needed to judge it.

    ``low`` and ``high`` enclose the share of all ``n_exchanges`` sign patterns that reach the
    observed one. ``interval`` says in what sense, in the words of :class:`PermutationResult`: they
    are ``"exact"`` where every pattern was counted or the shifts lie on a lattice, and else a
    ``"proven bound"``. ``method`` is ``"enumeration"`` or ``"lattice"``.
    """

    p_value: float
    low: float
    high: float
    method: str
    n_exchanges: int = field(repr=False)
    statistic: float
    interval: str

    @classmethod
    def of(
        cls,
        tail: Callable[[float], float],
        observed: float,
        total: float,
        sums: "list[AbsoluteSums]",
        n_exchanges: int,
        statistic: float,
    ) -> "ExchangeResult":
        """Return the result of a test on absolute sums; the observed exchange is one of them.

        Parameters
        ----------
        tail
            The share of exchanges whose absolute sums reach a number.
        observed, total
            What the observed one reaches, and the summed sizes of all values.
        sums
            Of each side.
        n_exchanges, statistic
            As in the result.
        """
        slack, near = sum(each.slack for each in sums), NEAR * total
        doubt = sum(each.doubt for each in sums)
        offsets = -near, slack - rounding(total), -slack - near
        p_value, low, high = (float(tail(observed + off)) for off in offsets)
        # What is less than the doubt is not known: then the doubt stands for it.
        p_value, low, high = max(p_value, doubt), low - doubt, min(high + doubt, 1.0)
        least = max(math.ldexp(1.0, 1 - n_exchanges.bit_length()), LEAST)
        low, p_value, high = (max(each, least) for each in sorted((low, p_value, high)))
        method = max((each.method for each in sums), key=METHODS.index)
        interval = "exact" if low == high else "proven bound"
        return cls(p_value, low, high, method, n_exchanges, float(statistic), interval)


@dataclass(frozen=True)
class AbsoluteSums:
    r"""The distribution of :math:`|\sum_i s_i v_i|` over all signs :math:`s_i = \pm 1`.

    ``sums`` ascend; ``reached`` is the share of patterns whose sum is at least that large. A sum
    may lie beside its place by ``slack`` at most, and ``reached`` beside the truth by ``doubt``.
    ``method`` is ``enumeration`` or ``lattice``.
    """

    sums: np.ndarray
    reached: np.ndarray
    slack: float
    method: str
    doubt: float = 0.0

    @property
    def shares(self) -> np.ndarray:
        """The share of patterns at each of the sums."""
        return -np.diff(self.reached, append=0.0)

    def tail(self, least: np.ndarray | float) -> np.ndarray:
        """Return the share of patterns whose sum is at least so large."""
        at = np.searchsorted(self.sums, least, side="left")
        return np.append(self.reached, 0.0)[at]


def absolute_sums(values: np.ndarray) -> AbsoluteSums:
    r"""Return the distribution of the absolute sum of values under all signs.

    Up to 16 values all patterns are listed. Beyond, each value is :math:`v_i = h (k_i + e_i)` with
    whole numbers k, and the distribution of :math:`\sum_i s_i k_i` is built up value by value:
    additions of positive numbers, which keep their relative accuracy in any tail. Values that are
    multiples of a step have no rest e; otherwise a sum lies beside its place by at most
    :math:`h \sum_i |e_i|`. The step h is so fine that this is at most about a five-hundredth of
    the sum's standard deviation, unless that would take more than 200 million additions: beyond
    some 250 values. Where it is more than a hundredth, beyond some 500 values, the distribution is
    summed by frequencies (:func:`_by_frequencies`): tails down to about 1e-12 are then known, for
    any number of values.

    Examples
    --------
    >>> found = absolute_sums(np.array([2.0, 1.0]))
    >>> found.sums, found.reached
    (array([1., 1., 3., 3.]), array([1.  , 0.75, 0.5 , 0.25]))
    """
    values = np.abs(values[values != 0])
    if values.size <= ENUMERATED:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        reached = np.arange(sums.size, 0, -1) / sums.size
        return AbsoluteSums(np.sort(np.abs(sums)), reached, 0.0, "enumeration")
    total, most = values.sum(), MOST_WORK / values.size
    common = step = common_step(np.append(values, 0.0), rounding(total))
    if step is None or total / step > most:
        step = total / min(most, max(FINE, 125 * values.size**1.5))
        if 0.25 * step * values.size > ROUGH * math.sqrt(values @ values):
            return _by_frequencies(values, common)
    shares = shares_of_heads(np.rint(values / step).astype(int))
    top = shares[(len(shares) // 2) :]
    reached = 2.0 * np.cumsum(top[::-1])[::-1]
    reached[0] = 1.0
    sums = step * (2.0 * np.arange(len(shares) // 2, len(shares)) - (len(shares) - 1))
    left_over = np.abs(values - step * np.rint(values / step)).sum()
    slack = float(left_over) if left_over > rounding(total) else 0.0
    return AbsoluteSums(sums, reached, slack, "lattice")


def _by_frequencies(values: np.ndarray, step: float | None) -> AbsoluteSums:
    r"""Return the distribution of absolute sums from their characteristic function.

    On a lattice of M points the chance of :math:`\sum_i s_i k_i = k` is

    .. math:: \frac{1}{M} \sum_{m=0}^{M-1} \cos\frac{2\pi m k}{M}
              \prod_i \cos\frac{2\pi m k_i}{M},

    up to sums beyond half of M, of which there are next to none. At most frequencies m the product
    of a few of its factors already is next to nothing. The rests of values that lie on no lattice
    have signs at random too, so that they add up to more than 8.4 times the root of their summed
    squares with a chance below 1e-15 (Hoeffding 1963): that is the slack.
    """
    spread = math.sqrt(values @ values)
    if step is None or 2.0 * REACH * spread / step > POINTS:
        step = 2.0 * REACH * spread / POINTS
    while (transform := _transform(values, step)) is None:
        step *= 2.0
    points, places = 2 * (transform.size - 1), np.rint(values / step).astype(int)
    # Sums are even where the sum of all places is, or odd.
    kept = np.arange(places.sum() % 2, points // 2, 2)
    shares = fft.irfft(transform, points)[kept]
    reached = np.clip(2.0 * np.cumsum(shares[::-1])[::-1], 0.0, 1.0)
    reached[0] = 1.0
    rests = values - step * places
    slack = min(SURE * math.sqrt(rests @ rests), float(np.abs(rests).sum()))
    slack = slack if slack > rounding(values.sum()) else 0.0
    return AbsoluteSums(step * kept, reached, slack, "lattice", 1e-15 * (values.size + 1000))


def _transform(values: np.ndarray, step: float) -> np.ndarray | None:
    """Return the characteristic function of rounded values at half of the frequencies.

    None where more of it is heard than can be computed.
    """
    points = 2 ** math.ceil(math.log2(2.0 * REACH * math.sqrt(values @ values) / step))
    places = np.rint(values / step).astype(int)
    different, numbers = np.unique(places[places > 0], return_counts=True)
    cosines = np.cos(2.0 * np.pi / points * np.arange(points))
    heard, product = np.arange(points // 2 + 1), np.ones(points // 2 + 1)
    for at, (place, number) in enumerate(zip(different[:FIRST], numbers[:FIRST], strict=True), 1):
        product *= cosines[heard * place & points - 1] ** number
        if at % 8 == 0:
            kept = np.abs(product) > SILENT
            heard, product = heard[kept], product[kept]
    left, numbers = different[FIRST:], numbers[FIRST:]
    if heard.size * left.size > MOST_WORK:
        return None
    for at in range(0, left.size, max(1, 2**22 // heard.size)):
        some = slice(at, at + max(1, 2**22 // heard.size))
        factors = cosines[heard[:, None] * left[some] & points - 1]
        product *= np.prod(factors ** numbers[some], axis=1)
    transform = np.zeros(points // 2 + 1)
    transform[heard] = product
    return transform


def rounding(total: float) -> float:
    """Return by how much sums that tie may differ, for values of that summed size."""
    return 8 * np.finfo(float).eps * total


def shares_of_heads(places: np.ndarray) -> np.ndarray:
    """Return the distribution of the sum of those whole numbers whose coin falls on heads."""
    shares, length = np.zeros(1 + places.sum()), 1
    shares[0] = 1.0
    for tossed, place in enumerate(np.sort(places), 1):
        shares[place : place + length] += shares[:length]
        length += place
        if tossed % HALVED_AT_ONCE == 0:
            shares *= 0.5**HALVED_AT_ONCE
    return shares * 0.5 ** (len(places) % HALVED_AT_ONCE)
