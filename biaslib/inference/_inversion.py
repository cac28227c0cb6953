r"""A permutation tail by numerical integration along the path through the saddlepoint.

The distribution is taken as smooth: the integral ends where the characteristic function has died
away the first time. The trapezoid rule is exact on such an integrand but for what wraps around, so
that, unlike an expansion at the saddlepoint, nothing depends on the scores being nearly normal.
"""

import numpy as np

from biaslib.inference._contour import (
    characteristic,
    count_modulus,
    magnitude_bound,
    rough_value,
    window_radius,
)
from biaslib.inference._saddlepoint import Tilt, log_choices

# What is left out may be this large in proportion to the answer.
SMALL = 1e-7
# Frequencies are added a batch at a time, until a batch adds nothing.
BATCH = 16
MOST_BATCHES = 16
BINS = 2**12


def inverted_log_tail(
    scores: np.ndarray, size: int, total: float, tilt: Tilt | None
) -> tuple[float, float]:
    """Return log Pr[S >= total] for a random choice, and an estimate of its relative error.

    The estimate adds up, with random phases, a bound on what the characteristic function may
    still hold beyond the end of the integral: it is large when scores lie on a lattice, when few
    of them decide, or when the tail holds few partitions. NaN and infinity if there is no answer.
    ``tilt`` is that of :func:`solve_tilt`.
    """
    if tilt is None or tilt.spread == 0.0:
        return np.nan, np.inf
    centred = scores - tilt.regression
    small = SMALL * rough_value(tilt)
    radius = window_radius(tilt, centred, small)
    step = np.pi / radius
    modulus = count_modulus(tilt, small)
    offset = total - size * tilt.regression
    variances = tilt.drawn * (1.0 - tilt.drawn)
    value = 0.0
    for batch in range(MOST_BATCHES):
        frequencies = step * np.arange(batch * BATCH, (batch + 1) * BATCH)
        waves = np.exp(1j * np.outer(centred, frequencies))
        spectrum = (variances[:, None] * waves).sum(axis=0)
        values = characteristic(tilt.drawn, waves, size, spectrum, modulus, small)
        kernel = _one_sided_kernel(tilt.slope + 1j * frequencies, radius)
        terms = step / np.pi * (kernel * values * np.exp(-1j * frequencies * offset)).real
        if batch == 0:
            terms[0] *= 0.5
        value += terms.sum()
        if np.abs(terms[-BATCH // 4 :]).sum() <= 1e-5 * abs(value):
            break
    if not value > 0.0:
        return np.nan, np.inf
    beyond = _unresolved(centred, variances, tilt, frequencies[-1], step)
    log_p = tilt.log_scale + np.log(value) - log_choices(len(scores), size)
    return float(log_p), float(beyond / value + 1e-5)


def _one_sided_kernel(decay, radius):
    """Return the integral of exp(-decay y) for y from 0 to the end of the window."""
    small = np.abs(decay) * radius < 1e-8
    safe = np.where(small, 1.0, decay)
    return np.where(small, radius, -np.expm1(-safe * radius) / safe)


def _unresolved(scores, variances, tilt: Tilt, last, step):
    """Return what may lie beyond the last frequency."""
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
    weighted = bounds / np.pi / np.hypot(tilt.slope, frequencies)
    # Echoes of the middle, from scores in clumps, have phases that need not be random.
    echoes = bounds > 0.03 * magnitude_bound(variances.sum(), variances.sum())
    random_phases = np.sqrt((weighted**2).sum() * spacing * step)
    return float(random_phases + weighted[echoes].sum() * spacing)
