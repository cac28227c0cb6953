"""Corrections for many tests."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from biaslib.metrics.inputs import one_of, real_numbers, refused

METHODS = ("bh", "by", "holm")


def adjust(p_values: ArrayLike, method: str = "bh") -> np.ndarray:
    r"""Return p-values adjusted for the number of tests.

    Holm (1979) keeps the family-wise error rate: with :math:`p_{(1)} \le \dots \le p_{(m)}`,

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\bigl( (m - j + 1) p_{(j)}, 1 \bigr)

    Benjamini and Hochberg (1995), ``bh``, keep the false discovery rate of tests that are
    independent or positively dependent; Benjamini and Yekutieli (2001), ``by``, of any tests:

    .. math:: \tilde p_{(i)} = \min_{j \ge i} \min\bigl( m p_{(j)} c / j, 1 \bigr), \quad
              c_{\mathrm{bh}} = 1, \quad c_{\mathrm{by}} = \sum_{k=1}^{m} 1 / k

    Counts of one word add up, and similar words retrieve the same people, so that the tests of an
    audit depend on one another: ``"by"`` and ``"holm"`` allow for any dependence.

    Parameters
    ----------
    p_values
        Between 0 and 1, a list or a table of any shape, of which all are one family.
    method
        ``"bh"``, ``"by"`` or ``"holm"``.

    Returns
    -------
    numpy.ndarray
        In the shape and order given.

    Raises
    ------
    InputError
        If a p-value is outside [0, 1], NaN, masked or no number, or the method is unknown.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], method="holm")
    array([0.03, 0.06, 0.06])
    """
    p = real_numbers(p_values, "p_values")
    bad = (p < 0) | (p > 1)
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) if bad.ndim else None
        raise refused("p_values", "is not between 0 and 1", row)
    every = p.ravel()
    if one_of(method, "method", METHODS) != "holm":
        return stats.false_discovery_control(every, method=method).reshape(p.shape)
    order = np.argsort(every, kind="stable")
    adjusted = np.empty_like(every)
    scaled = (every.size - np.arange(every.size)) * every[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted.reshape(p.shape)
