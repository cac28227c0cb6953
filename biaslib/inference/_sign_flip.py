"""A paired test: two models on the same items, exchanged within each unit."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from biaslib.metrics.inputs import in_scale, real_numbers, require_draws

ENUMERATED = 12
"""Up to this many units that differ, every pattern of signs is counted."""


def sign_flip_test(
    differences: ArrayLike,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = None,
) -> float:
    r"""Return the two-sided p-value of paired differences whose sign could as well be the other.

    If two models do not differ, exchanging them within a unit, such as a triplet of captions with
    all its images, changes nothing but the sign of its difference :math:`d_u` (Fisher 1935):

    .. math:: p = P\left( \bigl| \textstyle\sum_u s_u d_u \bigr|
                          \ge \bigl| \textstyle\sum_u d_u \bigr| \right),
              \qquad s_u = \pm 1

    With units of one item each and differences of -1, 0 and 1 this is McNemar's exact test.

    Parameters
    ----------
    differences
        Sum of each unit's differences, (n_units,).
    n_resamples
        Patterns drawn where there are too many to count; the observed one counts as one more.
    rng
        Generator or seed.

    Raises
    ------
    ValueError
        If there are no units, a difference is not finite, or nothing would be drawn.

    Examples
    --------
    >>> sign_flip_test([1, 1, 1, 1, 1, 1])
    0.03125
    >>> sign_flip_test([1, -1, 0, 0])
    1.0
    """
    values = real_numbers(differences, "differences")
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("differences must be finite numbers, one for each of at least one unit")
    values = in_scale(values)[0]
    values = values[values != 0]
    if values.size <= ENUMERATED:
        signs = np.array(list(itertools.product([1.0, -1.0], repeat=values.size)))
        sums = signs.reshape(2**values.size, values.size) @ values
        return float(_as_far(sums, values).mean())
    require_draws(n_resamples, 1)
    signs = np.random.default_rng(rng).choice([1.0, -1.0], size=(n_resamples, values.size))
    return float((1 + _as_far(signs @ values, values).sum()) / (1 + n_resamples))


def _as_far(sums: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.abs(sums) >= abs(values.sum()) - 1e-9 * np.abs(values).sum()
