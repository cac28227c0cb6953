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

    Parameters
    ----------
    p_values
        (m,), between 0 and 1.
    method
        ``"bh"``, ``"by"`` or ``"holm"``.

    Returns
    -------
    numpy.ndarray
        (m,), in the order given.

    Raises
    ------
    InputError
        If a p-value is outside [0, 1], NaN, masked or no number, or the method is unknown.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], method="holm")
    array([0.03, 0.06, 0.06])
    """
    p = sound_p_values(p_values)
    if p.ndim != 1:
        raise refused("p_values", f"has the shape {p.shape}; give a list, or use adjust_table")
    return adjusted(p, one_of(method, "method", METHODS))


def sound_p_values(p_values: ArrayLike) -> np.ndarray:
    """Return p-values of any shape as float64, refusing what is not between 0 and 1."""
    p = real_numbers(p_values, "p_values")
    bad = (p < 0) | (p > 1)
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) if bad.ndim else None
        raise refused("p_values", "is not between 0 and 1", row)
    return p


def adjusted(p: np.ndarray, method: str) -> np.ndarray:
    """Return :func:`adjust` of p-values that are sound, (m,)."""
    if method == "holm":
        return _holm(p)
    return stats.false_discovery_control(p, method=method)


def _holm(p: np.ndarray) -> np.ndarray:
    order = np.argsort(p, kind="stable")
    scaled = (p.size - np.arange(p.size)) * p[order]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
