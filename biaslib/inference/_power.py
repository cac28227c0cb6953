"""Which effects a test of given size could have found."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import optimize, stats

from biaslib.errors import InputError
from biaslib.inference._permutation import n_partitions
from biaslib.inference._saddlepoint import log_choices
from biaslib.metrics.inputs import between_0_and_1, real_number, refused, whole_number


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest effect that a test finds with the wanted power.

    ``shift`` is the difference of the two sets' means in standard deviations within a set;
    ``effect_size`` the effect size d (equation 3, spread over all targets) that goes with it in
    large samples; both are infinite where the test can never be significant.
    """

    shift: float
    effect_size: float
    power: float
    alpha: float
    n_x: int
    n_y: int


def power(shift: float, n_x: int, n_y: int, alpha: float = 0.05) -> float:
    r"""Return the power of the one-sided permutation test for normal scores.

    The power of the t test at the same level, which the permutation test follows closely (Lehmann
    and Romano, Testing Statistical Hypotheses, chapter 15):

    .. math:: 1 - F_{t'}\Bigl( t_{1 - \alpha, \nu};\; \nu,\;
              \delta \sqrt{n_x n_y / (n_x + n_y)} \Bigr), \quad \nu = n_x + n_y - 2

    with :math:`F_{t'}` the noncentral t distribution. A p-value is a whole number k of partitions,
    at least one, out of their number C: the level that the test attains, and which stands for
    :math:`\alpha` in the formula, is the largest k / C below alpha. The power is 0 where there is
    none. In small sets at a strict level the formula is too high: by simulation 5 and 5 targets at
    .005 have a power of .72 where it says .80.

    Parameters
    ----------
    shift
        Difference of the means in standard deviations within a set.
    n_x, n_y
        Targets in each set, at least two in all but one.
    alpha
        Level of the test; p must be below it.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InputError
        If a set is empty, both have one target, alpha is not between 0 and 1, or the shift is not
        finite.

    Examples
    --------
    >>> round(power(1.0, 8, 8), 3)
    0.601
    >>> round(power(2.0, 5, 5, alpha=0.005), 3)  # the level is 1 / 252, and not .005
    0.432
    >>> power(5.0, 3, 3)
    0.0
    """
    n_x, n_y = whole_number(n_x, "n_x", 1), whole_number(n_y, "n_y", 1)
    if n_x + n_y < 3:
        raise InputError(f"sets of {n_x} and {n_y} targets are too small for a test", word="n_y")
    alpha, shift = between_0_and_1(alpha, "alpha"), real_number(shift, "shift")
    level = _attained(alpha, n_x, n_y)
    if level == 0.0:
        return 0.0
    freedom = n_x + n_y - 2
    centre = shift * np.sqrt(n_x * n_y / (n_x + n_y))
    return float(stats.nct.sf(stats.t.isf(level, freedom), freedom, centre))


def _attained(alpha: float, n_x: int, n_y: int) -> float:
    """Return the largest share of all partitions that lies below alpha.

    Where alpha is of 1e20 partitions and more, it is alpha to all digits of a float.
    """
    if math.log(alpha) + log_choices(n_x + n_y, n_x) > math.log(1e20):
        return alpha
    n = n_partitions(n_x, n_y)
    below = Fraction(repr(float(alpha))) * n  # as it was written: 1 / 20 is not below 0.05
    return float(Fraction(math.ceil(below) - 1, n))


def minimum_detectable_effect(
    n_x: int, n_y: int, alpha: float = 0.05, wanted_power: float = 0.8
) -> DetectableEffect:
    r"""Return the smallest effect that the one-sided permutation test finds with given power.

    The shift :math:`\delta` solves power = wanted power; the effect size of equation 3 that goes
    with it, where the spread is taken over both sets together, is in large samples

    .. math:: d = \frac{\delta}{\sqrt{1 + \pi_x \pi_y \delta^2}}, \quad \pi_x = n_x / (n_x + n_y).

    Parameters
    ----------
    n_x, n_y
        Targets in each set.
    alpha
        Level; for m tests under Holm's correction, at worst alpha / m.
    wanted_power
        Power, above alpha and below 1.

    Returns
    -------
    DetectableEffect

    Raises
    ------
    InputError
        As :func:`power`, and if the wanted power is not between alpha and 1.

    Examples
    --------
    >>> found = minimum_detectable_effect(8, 8)
    >>> round(found.shift, 2), round(found.effect_size, 2)
    (1.31, 1.09)
    >>> minimum_detectable_effect(3, 3).effect_size
    inf
    """
    wanted_power = between_0_and_1(wanted_power, "wanted_power")
    alpha = between_0_and_1(alpha, "alpha")
    if alpha >= wanted_power:
        raise refused("wanted_power", f"is {wanted_power}; it must lie above alpha ({alpha})")
    n_x, n_y = whole_number(n_x, "n_x", 1), whole_number(n_y, "n_y", 1)
    if power(1.0, n_x, n_y, alpha) == 0.0:
        return DetectableEffect(np.inf, np.inf, wanted_power, alpha, n_x, n_y)
    shift = optimize.brentq(lambda s: power(s, n_x, n_y, alpha) - wanted_power, 0.0, 60.0)
    shares = n_x * n_y / (n_x + n_y) ** 2
    effect_size = shift / np.sqrt(1.0 + shares * shift**2)
    return DetectableEffect(float(shift), float(effect_size), wanted_power, alpha, n_x, n_y)
