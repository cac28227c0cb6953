r"""Permutation tails of scores in two clumps, where one lattice for all is too coarse or too long.

How many of the chosen scores come from the upper clump is hypergeometric. For most of these numbers
the sum reaches the threshold whatever is chosen within the clumps, or never does. For the others
the sums within each clump are built up on a lattice as fine as the clumps are narrow.
"""

import numpy as np
from scipy import stats

MOST_UNSETTLED = 4
"""Numbers from the upper clump at most whose sums may lie on both sides of the threshold."""

MOST_WORK = 4e8
"""Additions at most for the sums within a clump."""

POINTS = 2**13, 2**9
"""Steps in a clump: as many as that, and fewer as the work asks for, but not below the second."""


def two_clumps_tail(
    scores: np.ndarray, size: int, first: float, second: float
) -> tuple[float, float] | None:
    """Return bounds on Pr[S >= t] for a random choice of ``size`` scores and any t between two.

    None where the scores have no gap wide enough, or it is too much work.

    Examples
    --------
    >>> bounds = two_clumps_tail(np.array([0.0, 0.001, 1.0, 1.001]), 2, 1.5, 1.5)
    >>> [round(each, 6) for each in bounds]  # both of the upper two: 1 of 6
    [0.166667, 0.166667]
    """
    ordered = np.sort(scores)
    cut = int(np.argmax(np.diff(ordered))) + 1
    clumps = ordered[:cut], ordered[cut:]
    chosen = np.arange(max(0, size - cut), min(size, len(clumps[1])) + 1)
    shares = stats.hypergeom(len(scores), len(clumps[1]), size).pmf(chosen)
    reach, certain = min(first, second), max(first, second)
    least, greatest = (
        np.array([_rims(clumps, (size - above, above), end) for above in chosen]) for end in (1, -1)
    )
    unsettled = (greatest >= reach) & (least < certain)
    points = int(min(POINTS[0], MOST_WORK / (len(scores) * size**2)))
    if unsettled.sum() > MOST_UNSETTLED or points < POINTS[1]:
        return None
    low = high = 0.0
    for above, share, lowest, open_ in zip(chosen, shares, least, unsettled, strict=True):
        within = (float(lowest >= certain),) * 2
        if open_:
            within = _within(clumps, (size - above, above), certain, reach, points)
        low, high = low + share * within[0], high + share * within[1]
    return float(low * (1 - 1e-9)), float(min(1.0, high * (1 + 1e-9)))


def _rims(clumps, numbers, end: int) -> float:
    """Return the sum of so many of the least (``end`` is 1) or greatest (-1) values of each."""
    return float(sum(each[::end][:k].sum() for each, k in zip(clumps, numbers, strict=True)))


def _within(clumps, numbers, certain: float, reach: float, points: int) -> tuple[float, float]:
    """Return bounds on the share of choices of so many of each clump that reach a threshold."""
    step = max(np.ptp(each) for each in clumps) / points
    if step == 0:
        return 0.0, 1.0
    scaled = [(each - each[0]) / step for each in clumps]
    places = [np.rint(each).astype(int) for each in scaled]
    errors = [np.sort(each - place) for each, place in zip(scaled, places, strict=True)]
    rounding = 4 * np.finfo(float).eps * sum(numbers) * np.abs(np.concatenate(clumps)).max() / step
    base = sum(k * each[0] for each, k in zip(clumps, numbers, strict=True))
    first, second = (shares_of_sums(place, k) for place, k in zip(places, numbers, strict=True))
    tail = np.append(np.cumsum(second[::-1])[::-1], 0.0)
    bounds = []
    for threshold, end in ((certain, 1), (reach, -1)):
        error = _rims(errors, numbers, end) - end * rounding
        needed = np.ceil((threshold - base) / step - error)
        at = np.clip(needed - np.arange(len(first)), 0, len(second)).astype(int)
        bounds.append(float(first @ tail[at]))
    return bounds[0], bounds[1]


def shares_of_sums(places: np.ndarray, size: int) -> np.ndarray:
    """Return the distribution of the sum of ``size`` of the places, whole numbers from 0."""
    drawn = size / len(places)
    shares = np.zeros((size + 1, size * places.max() + 1))
    shares[0, 0] = 1.0
    for place in places:
        taken = drawn * shares[:-1, : shares.shape[1] - place]
        shares *= 1.0 - drawn
        shares[1:, place:] += taken
    return shares[size] / shares[size].sum()
