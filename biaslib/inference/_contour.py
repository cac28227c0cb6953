r"""What the two numerical inversions, smooth and on a lattice, have in common.

Both compute, under a tilt (see ``_saddlepoint``),

.. math:: Q = E\bigl[ 1\{N = m\} \, e^{-s (S - x)} \, 1\{S \ge x\} \bigr]

from the characteristic function of (N, S), after which the number of partitions in the tail is
:math:`Q \exp(K - \tau m - s x)`. The tilt puts x in the middle, so that the digits of Q are the
digits of p however small p is.
"""

import numpy as np
from scipy import special

from biaslib.inference._saddlepoint import Tilt

# What is left out may be this large in proportion to Q.
NEGLIGIBLE = 1e-12


def rough_value(tilt: Tilt) -> float:
    """Return Q as if N and S were normal: the scale that tells what is negligible."""
    middle = 1.0 / np.sqrt(2 * np.pi * tilt.count_variance)
    return middle * min(0.5, 1.0 / (abs(tilt.slope) * tilt.spread * np.sqrt(2 * np.pi) + 1e-300))


def window_radius(tilt: Tilt, scores: np.ndarray, probability: float) -> float:
    """Return a distance from its mean that the sum exceeds with less than a given probability.

    Chernoff's bound at six points either side; never more than the sum can differ.
    """
    mean = tilt.drawn @ scores
    reach = max(scores[scores > 0].sum() - mean, mean - scores[scores < 0].sum())
    steps = np.array([0.25, 1.0, 3.0, 6.0, 9.0, 13.0]) / tilt.spread
    log_odds = special.logit(np.clip(tilt.drawn, 1e-300, 1.0 - 1e-16))
    base = np.logaddexp(0.0, log_odds).sum()
    radii = []
    for signed in (steps, -steps):
        cumulants = np.logaddexp(0.0, log_odds + signed[:, None] * scores).sum(1) - base
        radii.append(((cumulants - signed * mean - np.log(probability)) / np.abs(signed)).min())
    return float(min(max(radii), reach))


def count_modulus(tilt: Tilt, probability: float) -> int:
    """Return a distance from m that N reaches with less than a given probability (Bernstein)."""
    nats = np.log(2.0 / probability)
    distance = nats / 3.0 + np.sqrt(nats**2 / 9.0 + 2.0 * nats * tilt.count_variance)
    return int(min(np.ceil(distance), len(tilt.drawn) + 1))


def characteristic(
    drawn: np.ndarray,
    waves: np.ndarray,
    size: int,
    spectrum: np.ndarray,
    modulus: int,
    cutoff: float,
) -> np.ndarray:
    r"""Return :math:`E[1\{N = m\} e^{i \theta S}]` for every frequency: (n_frequencies,).

    The indicator is a mean over ``modulus`` angles :math:`\varphi` of
    :math:`e^{i \varphi (N - m)}`; ``waves`` are :math:`e^{i \theta a_i}`, (n, n_frequencies). As

    .. math:: |1 - f + f e^{i \psi}| \le e^{-f (1 - f) (1 - \cos \psi)}

    a term is at most :math:`\exp(-W + \mathrm{Re}\, e^{i \varphi} C(\theta))`, with
    :math:`C(\theta) = \sum_i f_i (1 - f_i) e^{i \theta a_i}` the ``spectrum`` and W = C(0). Terms
    bounded by ``cutoff`` are skipped.
    """
    total_variance = (drawn * (1.0 - drawn)).sum()
    stays = (1.0 - drawn)[:, None]
    drawn_waves = drawn[:, None] * waves
    values = np.zeros(len(spectrum), dtype=complex)
    turns = np.exp(2j * np.pi * np.arange(modulus) / modulus)
    kept = np.outer(turns, spectrum).real - total_variance > np.log(cutoff)
    for row in np.flatnonzero(kept.any(axis=1)):
        chosen = drawn_waves if kept[row].all() else drawn_waves[:, kept[row]]
        factors = turns[row] * chosen
        factors += stays
        values[kept[row]] += turns[row] ** -size * _product(factors)
    return values / modulus


def _product(factors: np.ndarray) -> np.ndarray:
    while len(factors) > 1:
        half = len(factors) // 2
        rest = factors[2 * half :]
        factors = factors[:half] * factors[half : 2 * half]
        if len(rest):
            factors[0] *= rest[0]
    return factors[0]


def magnitude_bound(spectrum: np.ndarray, total_variance: float) -> np.ndarray:
    r"""Bound the magnitude of :func:`characteristic`: :math:`e^{-W} I_0(|C|)`.

    The mean over all angles of the bound there. Over ``modulus`` angles the mean is larger by
    Bessel functions of that order, far less than the one in a thousand added here.
    """
    size = np.minimum(np.abs(spectrum), total_variance)
    return 1.001 * np.exp(size - total_variance) * special.i0e(size)
