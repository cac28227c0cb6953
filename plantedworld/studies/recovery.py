r"""Whether scores recover what was planted, by statistics that can fail.

A correlation with the truth over all words is high as soon as a score knows which words go with
women and which with men: the signs alone reach .87. So a recovery is judged by the slope of scores
on truths, in log-odds, and by the rank correlation *within* words of one sign, of which a score
that knows signs alone has 0. Units are worlds: an interval says what another world would give.
"""

from collections.abc import Sequence

import numpy as np
from scipy import stats

__all__ = ["SIZE", "partial_rank", "rank_within_signs"]

SIZE = 0.3
"""Root mean square of scores, in log-odds, from which a model does not count as without bias: the
weakest association that a word of a set carries at dose 1."""

ZERO = 1e-9
"""Truths, in log-odds, that are 0 but for rounding, and have no sign."""

FEWEST = 3
"""Words of a sign of which a rank correlation is taken."""


def rank_within_signs(value: Sequence[float], truth: Sequence[float]) -> float:
    r"""Return Spearman's correlation within words of one sign, averaged over both signs.

    .. math:: \frac{n_+ \rho_+ + n_- \rho_-}{n_+ + n_-}

    where :math:`\rho_+` is that of the :math:`n_+` words whose truth is above 0. Values that are
    all the same have a correlation of 0; a sign of fewer than three words is left out.

    Examples
    --------
    >>> truth = [-3, -2, -1, 1, 2, 3]
    >>> rank_within_signs([-1, -1, -1, 1, 1, 1], truth), rank_within_signs(truth, truth)
    (0.0, 1.0)
    """
    value, truth = np.asarray(value, float), np.asarray(truth, float)
    total, n = 0.0, 0
    for side in (truth > ZERO, truth < -ZERO):
        if side.sum() >= FEWEST:
            total += side.sum() * _spearman(value[side], truth[side])
            n += side.sum()
    return float(total / n) if n else np.nan


def partial_rank(value: Sequence[float], truth: Sequence[float], given: Sequence[float]) -> float:
    r"""Return the partial rank correlation of values and truths, given other scores.

    .. math:: \frac{\rho_{vt} - \rho_{vg} \rho_{tg}}
              {\sqrt{(1 - \rho_{vg}^2) (1 - \rho_{tg}^2)}}

    with Spearman's correlations. 0 where the values say nothing that the others do not.

    Examples
    --------
    >>> truth, given = [1, 3, 2, 4, 6, 5], [1, 2, 3, 4, 5, 6]
    >>> partial_rank(given, truth, given), round(partial_rank(truth, truth, given), 2)
    (0.0, 1.0)
    """
    vt, vg, tg = _spearman(value, truth), _spearman(value, given), _spearman(truth, given)
    left = (1 - vg**2) * (1 - tg**2)
    return float((vt - vg * tg) / np.sqrt(left)) if left > 1e-12 else 0.0


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    one, other = np.asarray(one, float), np.asarray(other, float)
    if min(np.ptp(one), np.ptp(other)) < 1e-12:
        return 0.0
    return float(stats.spearmanr(one, other).statistic)
