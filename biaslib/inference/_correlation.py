"""Intervals of rank correlations."""

import numpy as np
from scipy import special

from biaslib.metrics.inputs import real_number, refused, whole_number


def rank_correlation_interval(r: float, n: int) -> tuple[float, float]:
    r"""Return an interval at 95% of Spearman's rank correlation by Fisher's transformation.

    .. math:: \tanh\Bigl( \operatorname{artanh} r \pm
              \frac{1.03 \, z_{.975}}{\sqrt{n - 3}} \Bigr)

    (Fieller, Hartley and Pearson 1957, of normal variables). The transform of a correlation of 1 is
    infinite, and its interval would have no width. The bound towards 0 is then that of the next
    correlation that n ranks without ties can have, :math:`1 - 12 / (n (n^2 - 1))`.

    Parameters
    ----------
    r
        Spearman's correlation.
    n
        Number of pairs.

    Returns
    -------
    tuple of float
        The bounds; NaN for fewer than five pairs, and where the correlation is not defined.

    Raises
    ------
    InputError
        If the correlation is beyond 1 in size.

    Examples
    --------
    >>> [round(each, 2) for each in rank_correlation_interval(0.9, 5)]
    [0.04, 0.99]
    >>> [round(each, 2) for each in rank_correlation_interval(1.0, 7)]
    [0.76, 1.0]
    """
    r = real_number(r, "r", finite=False)
    if abs(r) > 1 + 1e-12:
        raise refused("r", f"is {r}; a correlation lies between -1 and 1")
    n = whole_number(n, "n", 0)
    if n < 5 or np.isnan(r):
        return np.nan, np.nan
    half = 1.03 * special.ndtri(0.975) / np.sqrt(n - 3)
    next_to_one = 1 - 12 / (n * (n**2 - 1))
    if abs(r) <= next_to_one:
        return float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))
    inner = float(np.tanh(np.arctanh(next_to_one) - half))
    return (inner, 1.0) if r > 0 else (-1.0, -inner)
