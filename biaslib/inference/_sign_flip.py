"""A paired test: two models on the same items, exchanged within each unit."""

import numpy as np
from numpy.typing import ArrayLike

from biaslib.inference._sign_sums import ExchangeResult, absolute_sums
from biaslib.metrics.inputs import in_scale, real_numbers


def sign_flip_test(differences: ArrayLike) -> ExchangeResult:
    r"""Test paired differences whose sign could as well be the other, on two sides.

    If two models do not differ, exchanging them within a unit, such as a triplet of captions with
    all its images, changes nothing but the sign of its difference :math:`d_u` (Fisher 1935):

    .. math:: p = P\left( \bigl| \textstyle\sum_u s_u d_u \bigr|
                          \ge \bigl| \textstyle\sum_u d_u \bigr| \right),
              \qquad s_u = \pm 1

    With units of one item each and differences of -1, 0 and 1 this is McNemar's exact test. Nothing
    is sampled; sums that tie within rounding count, as in :func:`permutation_test`.

    It tests just this, that each sign could be the other, and not that the mean is 0: of 14
    differences whose mean is 0, but which are skewed as exponential numbers are, it rejects 8%
    at .05 and 3% at .01, and of 60 it rejects 7% and 2% (:ref:`the table of levels <levels>`).
    Dividing by a standard error changes nothing, since it orders the sums in the same way.

    Parameters
    ----------
    differences
        Sum of each unit's differences, (n_units,).

    Returns
    -------
    ExchangeResult
        Exact up to 16 units that differ, and where differences are multiples of a step; otherwise
        with proven bounds.

    Raises
    ------
    InputError
        If there are no units, or a difference is not finite.

    Examples
    --------
    >>> sign_flip_test([1, 1, 1, 1, 1, 1]).p_value
    0.03125
    >>> sign_flip_test([1, -1, 0, 0]).p_value
    1.0
    >>> found = sign_flip_test([1] * 40 + [-1] * 20)
    >>> found.method, found.interval, round(found.p_value, 6)
    ('lattice', 'exact', 0.013489)
    """
    values = real_numbers(differences, "differences", "one number for each of at least one unit", 1)
    scaled, exponent = in_scale(values)
    values, total = scaled[scaled != 0], np.abs(scaled).sum()
    sums, statistic = absolute_sums(values), np.ldexp(scaled.sum(), exponent)
    return ExchangeResult.of(sums.tail, abs(values.sum()), total, [sums], 2**values.size, statistic)
