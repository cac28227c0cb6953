r"""Permutation tails of scores on a lattice, and bounds for scores that are not.

Every score is written as :math:`a_i = o + h (k_i + e_i)` with whole numbers k. The sum of m of them
is :math:`m o + h (K + E)`, and E lies between the sums of the m least and the m greatest e: so

.. math:: \Pr[K \ge \lceil t - E_{\min} \rceil] \le \Pr[S \ge m o + h t]
          \le \Pr[K \ge \lceil t - E_{\max} \rceil]

On a lattice every e is zero and the three are equal. The distribution of K given m is the
convolution of n two-point distributions, tilted so that the observed sum lies in the middle
(otherwise a small tail drowns in rounding), and summed in the frequency domain, where terms that
cannot matter are known beforehand and left out; a bound on them widens the interval.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import fft, special

from biaslib.inference._contour import (
    NEGLIGIBLE,
    characteristic,
    count_modulus,
    magnitude_bound,
    rough_value,
    window_radius,
)
from biaslib.inference._saddlepoint import Tilt, log_choices, solve_tilt, tilt_at

# The greatest relative error of floating point that we have to reckon with.
ROUNDING = 1e-9
MOST_POINTS = 2**22
MOST_WORK = 4e8
GREATEST_SPAN = 2**20


@dataclass(frozen=True)
class LatticeTail:
    """A tail probability with bounds.

    ``exact`` says that scores lay on the lattice, ``complete`` that to save time neither was a
    frequency left out that could matter nor the lattice made coarser (the bounds hold either way).
    """

    p_value: float
    low: float
    high: float
    exact: bool
    complete: bool


def common_step(scores: np.ndarray, tolerance: float) -> float | None:
    """Return the largest step of which all differences of scores are multiples, if there is one.

    Euclid's algorithm on all differences at once; None if the step would be less than a millionth
    of the range, or if the sum of what is left over exceeds a quarter of ``tolerance``.
    """
    differences = np.unique(scores) - scores.min()
    differences = differences[1:]
    if differences.size == 0:
        return None
    least = tolerance / len(scores)
    step = np.diff(differences, prepend=0.0)
    step = step[step > least].min(initial=differences[-1])
    while step > differences[-1] / GREATEST_SPAN:
        rest = differences % step
        rest = np.minimum(rest, step - rest)
        if rest.max() <= max(least, 1e-7 * step):
            steps = np.rint(differences / step)
            step = float(steps @ differences / (steps @ steps))
            above = scores - scores.min()
            left_over = np.abs(above - step * np.rint(above / step))
            return step if left_over.sum() <= tolerance / 4 else None
        step = rest[rest > max(least, 1e-7 * step)].min()
    return None


def lattice_tail(
    scores: np.ndarray,
    size: int,
    threshold: float,
    step: float | None = None,
    width: float = 0.008,
    band: float = 0.0,
) -> LatticeTail | None:
    """Return Pr[S >= threshold] for a random choice of ``size`` scores, with proven bounds.

    Parameters
    ----------
    scores
        Pooled scores, (n,).
    size
        How many are chosen.
    threshold
        What the sum has to reach; where the tail is less than about a half.
    step
        The step on which the scores lie (:func:`common_step`), or None.
    width
        Without a step: the relative distance of the bounds that the lattice is made for. A finer
        lattice than can be afforded is not made, and the bounds are then further apart; nor is
        one that has less than a hundred partitions between its bounds.
    band
        Without a step: the bounds also hold for a threshold that lies this far above, or below.

    Returns
    -------
    LatticeTail or None
        None where the sum is at the rim of what is possible, or too much work.
    """
    tilt = solve_tilt(scores, size, threshold)
    if tilt is None or tilt.spread == 0.0:
        return None
    radius = window_radius(tilt, scores - tilt.regression, NEGLIGIBLE * rough_value(tilt))
    finest = 2.0 * radius / MOST_POINTS
    if step is not None:
        if step < finest:
            return None
        return _tail(scores, size, threshold, tilt, radius, step, exact=True)
    steepness = max(tilt.slope, 0.8 / tilt.spread)
    step = width / (steepness * size * (len(scores) - size) / len(scores))
    few = 100 * np.exp(-log_choices(len(scores), size))
    while True:
        tail = _tail(scores, size, threshold, tilt, radius, max(step, finest), band=band)
        gap = tail.high - tail.low
        if not tail.complete or step <= finest or gap <= max(1.25 * width * tail.p_value, few):
            return tail
        # Steeper at the threshold than its tilt says: scores in clumps.
        step *= min(0.5, width * tail.p_value / gap)


def _tail(scores, size, threshold, tilt, radius, step, exact=False, band=0.0):
    origin = scores.min()
    origin += step * np.rint((tilt.regression - origin) / step)
    scaled = (scores - origin) / step
    places = np.rint(scaled)
    errors = np.zeros(1) if exact else np.sort(scaled - places)
    least, greatest = errors[:size].sum(), errors[-size:].sum()
    target = (threshold - size * origin) / step
    nearest = np.ceil(target + min(band, 0.0) / step - greatest)
    furthest = np.ceil(target + max(band, 0.0) / step - least)
    lattice_tilt = tilt_at(places, size, tilt.log_odds + tilt.slope * origin, tilt.slope * step, 0)
    points = fft.next_fast_len(int(2 * radius / step + furthest - nearest) + 2, real=True)
    sums = _LatticeSums(places, size, lattice_tilt, points, NEGLIGIBLE if exact else 1e-6)
    steepness = max(lattice_tilt.slope, 0.8 / lattice_tilt.spread)
    if not exact and 2.0 * sums.left_out > steepness * (furthest - nearest) * sums.rough:
        # What cannot be afforded of so fine a lattice would cost more than rounding to a coarser.
        coarser = _tail(scores, size, threshold, tilt, radius, 2.0 * step, band=band)
        return replace(coarser, complete=False)
    log_scale = lattice_tilt.log_scale - log_choices(len(scores), size)
    values, doubt = sums.tails(np.array([nearest, furthest]))
    scales = np.exp(log_scale - lattice_tilt.slope * np.array([nearest, furthest]))
    high, low = scales * values
    slack = scales[0] * doubt
    middle = np.sqrt(max(low, 0.0) * max(high, 0.0))
    if exact and slack <= ROUNDING * high:
        return LatticeTail(high, high, high, True, True)
    low = max(0.0, (low - slack) * (1 - ROUNDING))
    high = min(1.0, (high + slack) * (1 + ROUNDING))
    return LatticeTail(min(max(middle, low), high), low, high, False, sums.complete)


class _LatticeSums:
    """The tilted distribution of sums of ``size`` places, wrapped to ``points`` residues."""

    def __init__(self, places: np.ndarray, size: int, tilt: Tilt, points: int, negligible: float):
        self.places, self.size, self.tilt, self.points = places, size, tilt, points
        self.rough = rough_value(tilt)
        self.negligible = negligible * self.rough
        self.cutoff = NEGLIGIBLE * self.rough
        variances = tilt.drawn * (1.0 - tilt.drawn)
        residues = places.astype(np.int64) % points
        self.spectrum = np.conj(fft.rfft(np.bincount(residues, variances, points)))
        self.frequencies = 2.0 * np.pi * np.arange(len(self.spectrum)) / points
        self.kernel = _geometric_sum(tilt.slope + 1j * self.frequencies, points // 2)
        bounds = magnitude_bound(self.spectrum, variances.sum()) * np.abs(self.kernel)
        self.modulus = count_modulus(tilt, self.cutoff)
        self.kept, self.complete = self._affordable(bounds)
        self.left_out = max(2.0 * (bounds.sum() - bounds[self.kept].sum()) / points, 0.0)

    def tails(self, starts: np.ndarray) -> tuple[np.ndarray, float]:
        """Return Q for every start (see ``_contour``), and a bound on what was left out."""
        kept = self.kept
        frequencies = self.frequencies[kept]
        values = self._values(frequencies, self.spectrum[kept], self.modulus)
        weights = np.where((kept == 0) | (2 * kept == self.points), 1.0, 2.0) / self.points
        shifted = np.exp(-1j * np.outer(starts, frequencies))
        tails = (shifted * (weights * self.kernel[kept] * values)).real.sum(axis=1)
        # What wraps around, and angles that were skipped.
        return tails, float(self.left_out + 20.0 * self.cutoff)

    def _values(self, frequencies, spectrum, modulus):
        values = np.zeros(len(frequencies), dtype=complex)
        block = max(8, 60_000 // len(self.places))
        for start in range(0, len(frequencies), block):
            part = slice(start, start + block)
            waves = np.exp(1j * np.outer(self.places, frequencies[part]))
            values[part] = characteristic(
                self.tilt.drawn, waves, self.size, spectrum[part], modulus, self.cutoff
            )
        return values

    def _affordable(self, bounds: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return the frequencies that matter, as many as can be afforded, and if these are all."""
        kept = np.flatnonzero(bounds > self.negligible)
        most = int(MOST_WORK / (self.modulus * len(self.places))) + 1
        if len(kept) <= most:
            return kept, True
        return np.sort(kept[np.argpartition(bounds[kept], -most)[-most:]]), False


def _geometric_sum(decay: np.ndarray, n_terms: int) -> np.ndarray:
    """Return the sum of exp(-decay k) for k from 0 to n_terms - 1."""
    small = np.abs(decay) * n_terms < 1e-12
    safe = np.where(small, 1.0, decay)
    return np.where(small, n_terms, special.expm1(-safe * n_terms) / special.expm1(-safe))
