r"""A permutation tail by numerical integration along the path through the saddlepoint.

The distribution is taken as smooth: the integral ends where the characteristic function has died
away the first time. The trapezoid rule is exact on such an integrand but for what wraps around, so
that, unlike an expansion at the saddlepoint, nothing depends on the scores being nearly normal.
"""

import numpy as np

from biaslib.inference._contour import (
    NEGLIGIBLE,
    characteristic,
    count_modulus,
    magnitude_bound,
    rough_value,
    window_radius,
)
from biaslib.inference._saddlepoint import Tilt, log_n_choices, solve_tilt

MOST_NODES = 1_024
BINS = 2**13


def inverted_log_tail(scores: np.ndarray, size: int, total: float) -> tuple[float, float]:
    """Return log Pr[S >= total] for a random choice, and an estimate of its relative error.

    The estimate adds up, with random phases, three times what the characteristic function may
    still hold beyond the end of the integral: it is large when scores lie on a lattice, when few
    of them decide, or when the tail holds few partitions. NaN and infinity if there is no answer.
    """
    tilt = solve_tilt(scores, size, total)
    if tilt is None or tilt.spread == 0.0:
        return np.nan, np.inf
    centred = scores - tilt.regression
    rough = rough_value(tilt)
    radius = window_radius(tilt, centred, NEGLIGIBLE * rough)
    step = np.pi / radius
    cutoff = 1e-8 * rough
    variances = tilt.drawn * (1.0 - tilt.drawn)
    spectrum = _spectrum_until_gone(centred, variances, step, cutoff)
    frequencies = step * np.arange(len(spectrum))
    modulus = count_modulus(tilt, NEGLIGIBLE * rough)
    values = characteristic(
        tilt.drawn, centred, size, frequencies, spectrum, modulus, NEGLIGIBLE * rough
    )
    values *= np.exp(-1j * frequencies * (total - size * tilt.regression))
    decay = tilt.slope + 1j * frequencies
    kernel = _one_sided_kernel(decay, radius)
    terms = (kernel * values).real
    value = step / np.pi * (terms.sum() - 0.5 * terms[0])
    if not value > 0.0:
        return np.nan, np.inf
    beyond = _unresolved(centred, variances, tilt, frequencies[-1], step)
    log_p = tilt.log_scale + np.log(value) - log_n_choices(len(scores), size)
    return float(log_p), float(3.0 * beyond / value + 1e-6)


def _one_sided_kernel(decay, radius):
    """Return the integral of exp(-decay y) for y from 0 to the end of the window."""
    small = np.abs(decay) * radius < 1e-8
    safe = np.where(small, 1.0, decay)
    return np.where(small, radius, -np.expm1(-safe * radius) / safe)


def _spectrum_until_gone(scores, variances, step, cutoff):
    """Return C at multiples of ``step``, up to where its bound stays under ``cutoff``."""
    nodes = 32
    while True:
        waves = np.exp(1j * np.outer(step * np.arange(nodes), scores))
        spectrum = waves @ variances
        alive = np.flatnonzero(magnitude_bound(spectrum, variances.sum()) > cutoff)
        if alive[-1] < 0.75 * nodes:
            return spectrum[: alive[-1] + 2]
        if nodes >= MOST_NODES:
            return spectrum
        nodes *= 2


def _unresolved(scores, variances, tilt: Tilt, last, step):
    """Return the root mean square of what lies beyond the last frequency."""
    low = scores.min()
    width = (scores.max() - low) / (BINS - 1)
    histogram = np.bincount(np.rint((scores - low) / width).astype(int), variances, BINS)
    spectrum = np.fft.rfft(histogram, 4 * BINS)
    spacing = 2.0 * np.pi / (4 * BINS * width)
    first = int(last / spacing) + 1
    if first >= len(spectrum):
        return np.inf
    frequencies = spacing * np.arange(first, len(spectrum))
    bounds = magnitude_bound(spectrum[first:], variances.sum())
    squares = (bounds / np.pi) ** 2 / (tilt.slope**2 + frequencies**2)
    return float(np.sqrt(squares.sum() * spacing * step))
