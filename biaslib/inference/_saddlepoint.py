r"""The saddlepoint approximation of a permutation tail, and when it holds.

Let every score :math:`a_i` be drawn by itself with probability
:math:`f_i = 1 / (1 + e^{-\tau - s a_i})`, and let N be how many are drawn and S their sum. Given
:math:`N = m`, and s = 0, all choices of m scores are equally likely. For each slope s,
:math:`\tau` is such that m are expected, and x(s) is then the expected sum. With

.. math:: K(\tau, s) = \sum_i \log(1 + e^{\tau + s a_i}), \quad
          \tfrac12 w^2 = m \log\tfrac{n}{m} + (n - m) \log\tfrac{n}{n - m}
          - K(\tau, s) + \tau m + s x,

V the variance of N under s, :math:`\kappa` that of S given N, and :math:`\delta` the term of second
order of an Edgeworth series at the saddlepoint, the density of S at x is (Robinson 1982; Booth and
Butler 1990; McCullagh 1987, Section 6.3)

.. math:: \frac{e^{K - \tau m - s x}}{\binom{n}{m} \, 2 \pi \sqrt{V \kappa}} (1 + \delta), \qquad
          \Pr[S \ge x] = \int_{w(x)}^\infty \phi(w) h(w) (1 + \delta) \, dw, \quad
          h \propto \frac{w}{s \sqrt{V \kappa}}.
"""

import numpy as np
from scipy import interpolate, optimize, special

SLOPES = np.array([0.1, 0.5, 1, 1.5, 2.2, 3, 4, 5.5, 8, 12, 18, 28, 50, 90])
"""Slopes at which the density is computed, over the standard deviation of the sum."""

STEPS = np.array([1, 1.04, 1.1, 1.2, 1.4, 1.8])
"""Multiples of the observed sum's slope at which it is computed as well."""

MIDDLE = 0.05
"""Slope, in the same unit, below which the density is interpolated."""

UNDECIDED = 0.5
"""Variance of the number drawn below which next to every score is surely in or surely out."""

FIRST_ORDER, SECOND_ORDER = 0.06, 0.005
"""By how much the whole density may miss one, without the term of second order and with it."""

ECHO, FAR_ECHO = 0.03, 0.2
"""Of a smooth density, how large its characteristic function is beyond three standard deviations;
in a far tail, where relabellings that are drawn at random would only say that p is small."""

FAR = 1e-5
"""Probability below which a tail is far."""

ERROR, FAR_ERROR = 0.03, 0.1
"""Relative errors that were not exceeded in the conditions of tests/test_inference_permutation.

These and the limits above were chosen on such conditions, after a look at the errors."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def log_choices(n: np.ndarray | int, k: np.ndarray | int) -> np.ndarray:
    """Return the logarithms of the binomial coefficients, minus infinity where k exceeds n."""
    k = np.minimum(k, n + 1)
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def saddlepoint_tail(scores: np.ndarray, size: int, total: float) -> tuple[float, float] | None:
    """Return Pr[S >= total] for a random choice of ``size`` scores, and its relative error.

    None where the approximation does not hold: at the rim of what sums can be; where the density
    does not integrate to one, as where single scores decide; and where it is not smooth, as of few
    different values, of ties, and of scores in clumps.
    """
    n = len(scores)
    spread = scores.std() * np.sqrt(size * (n - size) / n)
    slopes = np.append(-SLOPES[::-1], SLOPES) / spread
    slope = _slope_of(scores, size, total, slopes)
    if slope is None:
        return None
    path = _Path(scores, size, np.sort(np.append(slopes, slope * STEPS)))
    place = int(np.searchsorted(path.slopes, slope))
    usable = np.isfinite(path.height * path.second) & (path.variance > UNDECIDED)
    # Near the middle, w and s are both next to 0, and their ratio is rounding.
    usable &= np.abs(path.slopes) * spread > MIDDLE
    usable[1:] &= np.diff(path.root) > 1e-4
    root, roots = float(path.root[place]), path.root[usable]
    if usable.sum() < len(SLOPES) / 2 or not roots[0] <= root < roots[-1]:
        return None
    height, second = path.height[usable], path.second[usable]
    whole = max(roots[0], -7.0), min(roots[-1], 7.0)
    corrected = interpolate.CubicSpline(roots, height * (1.0 + second))
    first_order = _integral(interpolate.CubicSpline(roots, height), *whole)
    second_order = _integral(corrected, *whole)
    if abs(first_order - 1.0) > FIRST_ORDER or abs(second_order - 1.0) > SECOND_ORDER:
        return None
    tail = _integral(corrected, root, min(roots[-1], np.sqrt(root**2 + 50.0))) / second_order
    echo = _echo(path, place)
    if not 0.0 <= tail <= 1.0 or echo > (FAR_ECHO if tail < FAR else ECHO):
        return None
    return tail, FAR_ERROR if tail < FAR else ERROR


class _Path:
    """The density of the sum at the expected sums of some slopes, in the notation above.

    ``variance`` is V, ``root`` w, ``height`` h and ``second`` the term of second order, each
    (n_slopes,); ``variances`` those of the single draws, and ``residuals`` the scores less what
    goes with the number drawn, (n_slopes, n).
    """

    def __init__(self, scores: np.ndarray, size: int, slopes: np.ndarray):
        n, self.slopes = len(scores), slopes
        log_odds = _log_odds(scores, size, slopes)
        exponents = log_odds[:, None] + slopes[:, None] * scores
        drawn = special.expit(exponents)
        self.variances = drawn * (1.0 - drawn)
        self.variance = self.variances.sum(axis=1)
        self.totals = drawn @ scores
        entropy = n * special.entr(np.array([size, n - size]) / n).sum()
        scale = np.logaddexp(0.0, exponents).sum(axis=1) - log_odds * size - slopes * self.totals
        self.root = np.sign(slopes) * np.sqrt(2.0 * np.maximum(entropy - scale, 0.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            self.residuals = scores - ((self.variances @ scores) / self.variance)[:, None]
            self.sum_variance = _dot(self.variances, self.residuals * self.residuals)
            constant = np.exp(entropy - log_choices(n, size)) / (2.0 * np.pi)
            spread = np.sqrt(self.sum_variance * self.variance)
            self.height = constant * self.root / (slopes * spread)
            self.second = self._second_order(drawn)

    def _second_order(self, drawn: np.ndarray) -> np.ndarray:
        r"""Return :math:`(3 \rho_4 - 3 \rho_{13}^2 - 2 \rho_{23}^2) / 24` of N and S.

        The cumulants of a draw are :math:`v (1 - 2 f)` and :math:`v (1 - 6 v)`, with v its
        variance; a draw moves N by one and the rest of S by its residual, which do not correlate.
        """
        one = 1.0 / np.sqrt(self.variance)
        other = self.residuals / np.sqrt(self.sum_variance)[:, None]
        squares = other * other
        third = self.variances * (1.0 - 2.0 * drawn)
        fourth = self.variances * (1.0 - 6.0 * self.variances)
        t = [third.sum(axis=1)]
        t += [_dot(third, each) for each in (other, squares, other * squares)]
        fours = [fourth.sum(axis=1), _dot(fourth, squares), _dot(fourth, squares * squares)]
        rho4 = one**4 * fours[0] + 2.0 * one**2 * fours[1] + fours[2]
        rho13 = (one**3 * t[0] + one * t[2]) ** 2 + (one**2 * t[1] + t[3]) ** 2
        rho23 = (one**3 * t[0]) ** 2 + 3 * (one**2 * t[1]) ** 2 + 3 * (one * t[2]) ** 2 + t[3] ** 2
        return (3.0 * rho4 - 3.0 * rho13 - 2.0 * rho23) / 24.0


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the sum of products of each row."""
    return np.einsum("ij,ij->i", first, second)


def _log_odds(scores: np.ndarray, size: int, slopes: np.ndarray) -> np.ndarray:
    """Return the tau of each slope, by Newton's method within bounds that close in."""
    n, ordered = len(scores), np.sort(scores)
    start = np.log(size / (n - size))
    reach = np.abs(slopes) * np.abs(ordered[[0, -1]]).max() + abs(start) + 1.0
    low, high, found = -reach, reach, np.full(len(slopes), start)
    # Of steep slopes the choice is nearly that of the largest: between them and the others.
    edges = np.where(slopes > 0.0, ordered[-size - 1 :][:2].sum(), ordered[size - 1 :][:2].sum())
    found = np.where(np.abs(slopes) * scores.std() > 2.0, -0.5 * slopes * edges, found)
    left = np.arange(len(slopes))
    for _ in range(100):
        drawn = special.expit(found[left, None] + slopes[left, None] * scores)
        excess = drawn.sum(axis=1) - size
        wrong = np.abs(excess) >= 1e-10 * n
        if not wrong.any():
            break
        left, drawn, excess = left[wrong], drawn[wrong], excess[wrong]
        at = found[left]
        low[left] = np.where(excess < 0.0, at, low[left])
        high[left] = np.where(excess > 0.0, at, high[left])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = at - excess / (size + excess - _dot(drawn, drawn))
        inside = (low[left] < newton) & (newton < high[left])
        found[left] = np.where(inside, newton, 0.5 * (low[left] + high[left]))
    return found


def _slope_of(scores: np.ndarray, size: int, total: float, slopes: np.ndarray) -> float | None:
    """Return the slope whose expected sum is the total; None if it is beyond those of a list."""

    def excess(slope: float) -> float:
        log_odds = _log_odds(scores, size, np.array([slope]))
        return float(special.expit(log_odds + slope * scores) @ scores - total)

    if not excess(slopes[0]) < 0.0 < excess(slopes[-1]):
        return None
    return optimize.brentq(excess, slopes[0], slopes[-1], xtol=1e-9 * slopes[-1], rtol=1e-9)


def _integral(density: interpolate.CubicSpline, start: float, end: float) -> float:
    half = 0.5 * (end - start)
    roots = 0.5 * (start + end) + half * NODES
    return float(half * (WEIGHTS * np.exp(-0.5 * roots**2) * density(roots)).sum())


def _echo(path: _Path, place: int, bins: int = 1024, frequencies: int = 32) -> float:
    r"""Return how large the characteristic function of the sum is where it should have died away.

    At the frequency t it is at most about
    :math:`\prod_i |1 - f_i + f_i e^{i (t r_i - \psi)}|`, with r the residuals and
    :math:`\psi` the phase of :math:`\sum_i v_i e^{i t r_i}`. A histogram finds the frequencies at
    which that sum is largest.
    """
    variances, residuals = path.variances[place], path.residuals[place]
    width = np.ptp(residuals) / (bins - 1)
    places = np.rint((residuals - residuals.min()) / width).astype(int)
    at = 2.0 * np.pi / (2 * bins * width) * np.arange(bins + 1)
    heard = np.abs(np.fft.rfft(np.bincount(places, variances, bins), 2 * bins))
    heard[at * np.sqrt(path.sum_variance[place]) < 3.0] = 0.0
    largest = np.argsort(-heard)[:frequencies]
    turns = np.outer(at[largest], residuals)
    waves = np.cos(turns), np.sin(turns)
    phase = np.arctan2(*(wave @ variances for wave in waves[::-1]))[:, None]
    real = np.cos(phase) * waves[0] + np.sin(phase) * waves[1]
    factors = np.maximum(1.0 - 2.0 * variances * (1.0 - real), 1e-300)
    products = np.exp(0.5 * np.log(factors).sum(axis=1))
    return float(products[heard[largest] > 0.0].max(initial=0.0))
