r"""The double saddlepoint approximation of a permutation tail.

Let every score :math:`a_i` be drawn by itself with probability
:math:`f_i = 1 / (1 + e^{-\tau - s a_i})`, and let N be how many are drawn and S their sum. Given
:math:`N = m`, and s = 0, all choices of m scores are equally likely. With

.. math:: K(\tau, s) = \sum_i \log(1 + e^{\tau + s a_i})

the tilt :math:`(\tau, s)` that solves :math:`\nabla K = (m, x)` puts the observed sum x in the
middle of the distribution.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Tilt:
    """A solution of the saddlepoint equations, and moments of the tilted distribution.

    ``log_scale`` is :math:`K - \\tau m - s x`: the logarithm of what turns a tilted expectation
    back into a count of partitions. ``drawn`` holds the probabilities f, (n,).
    """

    log_odds: float
    slope: float
    log_scale: float
    drawn: np.ndarray
    count_variance: float
    covariance: float
    sum_variance: float

    @property
    def regression(self) -> float:
        """What the sum rises by when one more score is drawn."""
        return self.covariance / self.count_variance

    @property
    def spread(self) -> float:
        """Standard deviation of the sum when the number drawn is given."""
        remaining = self.sum_variance - self.covariance * self.regression
        return float(np.sqrt(max(remaining, 0.0)))


def log_choices(n: np.ndarray | int, k: np.ndarray | int) -> np.ndarray:
    """Return the logarithms of the binomial coefficients, minus infinity where k exceeds n."""
    k = np.minimum(k, n + 1)
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def tilt_at(scores: np.ndarray, size: int, log_odds: float, slope: float, total: float) -> Tilt:
    """Return the moments under a given tilt; ``total`` is the x of ``log_scale``."""
    exponents = log_odds + slope * scores
    drawn = special.expit(exponents)
    variances = drawn * special.expit(-exponents)
    weighted = variances * scores
    log_scale = np.logaddexp(0.0, exponents).sum() - log_odds * size - slope * total
    return Tilt(
        float(log_odds),
        float(slope),
        float(log_scale),
        drawn,
        float(variances.sum()),
        float(weighted.sum()),
        float(weighted @ scores),
    )


def solve_tilt(scores: np.ndarray, size: int, total: float, steps: int = 100) -> Tilt | None:
    """Return the tilt under which ``size`` scores and a sum of ``total`` are expected.

    Newton's method on the convex function K - tau m - s x, with halved steps where a full one does
    not descend. None where there is no solution within reach: at the rim of what sums can be.
    """
    n = len(scores)
    spread = scores.std() * np.sqrt(size * (n - size) / n)
    if spread == 0.0:
        return None
    tilt = tilt_at(scores, size, np.log(size / (n - size)), 0.0, total)
    for _ in range(steps):
        by_count = tilt.drawn.sum() - size
        by_sum = tilt.drawn @ scores - total
        if abs(by_count) < 1e-10 * n and abs(by_sum) < 1e-10 * n * spread:
            return tilt
        determinant = tilt.count_variance * tilt.spread**2
        if not determinant > 0.0:
            return None
        down = (tilt.covariance * by_sum - tilt.sum_variance * by_count) / determinant
        across = (tilt.covariance * by_count - tilt.count_variance * by_sum) / determinant
        tilt = _descend(scores, size, total, tilt, down, across)
        if tilt is None:
            return None
    return None


def _descend(scores, size, total, tilt, down, across):
    gain = 1e-12 * max(abs(tilt.log_scale), 1.0)
    for halvings in range(40):
        fraction = 0.5**halvings
        moved = tilt_at(
            scores, size, tilt.log_odds + fraction * down, tilt.slope + fraction * across, total
        )
        if moved.log_scale <= tilt.log_scale + gain and moved.count_variance > 0.0:
            return moved
    return None


def saddlepoint_log_tail(scores: np.ndarray, size: int, total: float, tilt: Tilt | None) -> float:
    r"""Return log Pr[S >= total] for a random choice of ``size`` scores; NaN if it cannot be had.

    ``tilt`` is that of :func:`solve_tilt`.

    The formula of Lugannani and Rice (1980) in its double saddlepoint form, which is Skovgaard's.
    For saddlepoints of permutations see Robinson (1982) and Booth and Butler (1990).

    .. math:: p = 1 - \Phi(w) + \phi(w) \left(\frac{1}{u} - \frac{1}{w}\right), \quad
              w^2 = 2 \bigl[K_0 - K(\hat\tau, \hat s) + \hat\tau m + \hat s x\bigr], \quad
              u = \hat s \sqrt{\frac{\det K''(\hat\tau, \hat s)}{K''_{\tau\tau}(\hat\tau_0, 0)}}

    with :math:`K_0 = n \log n - m \log m - (n - m) \log (n - m)`. In the middle, where 1/u and 1/w
    cancel, their difference is interpolated between two points beside it.
    """
    spread = _spread_without_tilt(scores, size)
    if abs(total) < 0.1 * spread:
        left, right = (
            _signed_root(scores, size, solve_tilt(scores, size, at * spread)) for at in (-0.2, 0.2)
        )
        if left is None or right is None or tilt is None:
            return np.nan
        root = np.sign(total) * _root(scores, size, tilt)
        share = (root - left[0]) / (right[0] - left[0])
        correction = (1.0 - share) * left[1] + share * right[1]
    else:
        pair = _signed_root(scores, size, tilt)
        if pair is None:
            return np.nan
        root, correction = pair
    # In units of the normal density, so that nothing underflows far out.
    tail = np.sqrt(np.pi / 2) * special.erfcx(root / np.sqrt(2)) + correction
    if not tail > 0.0:
        return np.nan
    return float(np.log(tail) - 0.5 * root**2 - 0.5 * np.log(2 * np.pi))


def _spread_without_tilt(scores, size):
    n = len(scores)
    return scores.std() * np.sqrt(size * (n - size) / (n - 1))


def _root(scores, size, tilt):
    n = len(scores)
    entropy = special.xlogy(n, n) - special.xlogy(size, size) - special.xlogy(n - size, n - size)
    return np.sqrt(max(2.0 * (entropy - tilt.log_scale), 0.0))


def _signed_root(scores, size, tilt):
    """Return w and 1/u - 1/w."""
    if tilt is None or tilt.slope == 0.0 or tilt.spread == 0.0:
        return None
    n = len(scores)
    root = np.sign(tilt.slope) * _root(scores, size, tilt)
    untilted = size * (n - size) / n
    scaled = tilt.slope * tilt.spread * np.sqrt(tilt.count_variance / untilted)
    if root == 0.0:
        return None
    return root, 1.0 / scaled - 1.0 / root
