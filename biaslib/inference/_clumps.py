r"""Permutation tails of scores in few clumps, where one lattice for all is too coarse or too long.

How many of the chosen scores come from each clump is hypergeometric. For most of these numbers
the sum reaches the threshold whatever is chosen within the clumps, or never does. For the others
the sums within the clumps are built up on a lattice as fine as the clumps are narrow.
"""

import numpy as np

from biaslib.inference._saddlepoint import log_choices

MOST_CLUMPS = 5
"""Clumps at most that are looked for, between the widest gaps."""

CLOSE = 0.005
"""Relative distance of bounds with which no more clumps are looked for."""

MOST_CHOICES = 2**16
"""Ways at most to take so many of each clump."""

MOST_UNSETTLED = 4
"""Ways whose sums may lie on both sides of the threshold and that are looked into, the likeliest
first."""

MOST_LEFT = 0.002
"""Share of the upper bound at most that the others of them may have."""

MOST_WORK = 8e9
"""Additions at most for the sums within clumps, if every place had every sum: a tenth are made."""

MOST_COUNTED = 1_000
"""Places up to which all choices are counted as they are: beyond, they are scaled on the way."""

POINTS = 2**13, 2**7
"""Steps in a clump: as many as that, and fewer as the work asks for, but not below the second."""


def clumps_tail(
    scores: np.ndarray, size: int, first: float, second: float
) -> tuple[float, float] | None:
    """Return bounds on Pr[S >= t] for a random choice of ``size`` scores and any t between two.

    None where the scores have no gaps wide enough, or it is too much work.

    Examples
    --------
    >>> bounds = clumps_tail(np.array([0.0, 0.001, 1.0, 1.001]), 2, 1.5, 1.5)
    >>> [round(each, 6) for each in bounds]  # both of the upper two: 1 of 6
    [0.166667, 0.166667]
    """
    ordered, reach, certain = np.sort(scores), min(first, second), max(first, second)
    widest = np.argsort(-np.diff(ordered), kind="stable") + 1
    found = None
    for n_clumps in range(2, min(MOST_CLUMPS, len(ordered)) + 1):
        clumps = np.split(ordered, np.sort(widest[: n_clumps - 1]))
        bounds = _bounds(clumps, size, reach, certain)
        if bounds and (found is None or bounds[1] - bounds[0] < found[1] - found[0]):
            found = bounds
        if found and found[1] - found[0] <= CLOSE * found[1]:
            break
    return found


def _bounds(clumps, size: int, reach: float, certain: float) -> tuple[float, float] | None:
    ways = _ways([len(each) for each in clumps], size)
    if ways is None:
        return None
    numbers, shares = ways
    least, greatest = (
        sum(
            np.append(0.0, np.cumsum(each[::end]))[taken]
            for each, taken in zip(clumps, numbers.T, strict=True)
        )
        for end in (1, -1)
    )
    unsettled = np.flatnonzero((greatest >= reach) & (least < certain))
    unsettled = unsettled[np.argsort(-shares[unsettled], kind="stable")]
    low = float(shares[least >= certain].sum())
    left = float(shares[unsettled[MOST_UNSETTLED:]].sum())
    if left > MOST_LEFT * (low + float(shares[unsettled].sum())):
        return None
    high = low + left
    for way in unsettled[:MOST_UNSETTLED]:
        within = _within(clumps, numbers[way], certain, reach)
        if within is None:
            return None
        low, high = low + shares[way] * within[0], high + shares[way] * within[1]
    return float(low * (1 - 1e-9)), float(min(1.0, high * (1 + 1e-9)))


def _ways(sizes: list[int], size: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how many of each clump can be chosen, (ways, clumps), and the share of each way."""
    *others, last = sizes
    if np.prod([min(each, size) + 1.0 for each in others]) > MOST_CHOICES:
        return None
    grids = np.meshgrid(*(np.arange(min(each, size) + 1) for each in others), indexing="ij")
    numbers = np.stack([each.ravel() for each in grids], axis=1)
    numbers = np.column_stack([numbers, size - numbers.sum(axis=1)])
    numbers = numbers[(numbers[:, -1] >= 0) & (numbers[:, -1] <= last)]
    logs = log_choices(np.array(sizes), numbers).sum(axis=1)
    shares = np.exp(logs - logs.max())
    return numbers, shares / shares.sum()


def _rims(clumps, numbers, end: int) -> float:
    """Return the sum of so many of the least (``end`` is 1) or greatest (-1) values of each."""
    return float(sum(each[::end][:k].sum() for each, k in zip(clumps, numbers, strict=True)))


def _within(clumps, numbers, certain: float, reach: float) -> tuple[float, float] | None:
    """Return bounds on the share of choices of so many of each clump that reach a threshold."""
    # The sums of all clumps but the last are one list, which grows with each.
    lengths = [*np.cumsum(numbers[:-1]), numbers[-1]]
    work = sum(len(each) * k * n for each, k, n in zip(clumps, numbers, lengths, strict=True))
    points = int(min(POINTS[0], MOST_WORK / max(work, 1)))
    step = max(np.ptp(each) for each in clumps) / max(points, 1)
    if points < POINTS[1] or step == 0:
        return (0.0, 1.0) if step == 0 else None
    scaled = [(each - each[0]) / step for each in clumps]
    places = [np.rint(each).astype(int) for each in scaled]
    errors = [np.sort(each - place) for each, place in zip(scaled, places, strict=True)]
    rounding = 4 * np.finfo(float).eps * sum(numbers) * np.abs(np.concatenate(clumps)).max() / step
    base = sum(k * each[0] for each, k in zip(clumps, numbers, strict=True))
    first = np.ones(1)
    for place, k in zip(places[:-1], numbers[:-1], strict=True):
        first = shares_of_sums(place, k, first)
    second = shares_of_sums(places[-1], numbers[-1])
    tail = np.append(np.cumsum(second[::-1])[::-1], 0.0)
    bounds = []
    for threshold, end in ((certain, 1), (reach, -1)):
        error = _rims(errors, numbers, end) - end * rounding
        needed = np.ceil((threshold - base) / step - error)
        at = np.clip(needed - np.arange(len(first)), 0, len(second)).astype(int)
        bounds.append(float(first @ tail[at]))
    return bounds[0], bounds[1]


def shares_of_sums(places: np.ndarray, size: int, start: np.ndarray | None = None) -> np.ndarray:
    """Return the distribution of the sum of ``size`` of the places, whole numbers from 0.

    ``start`` is that of a sum which it is added to. Ways are counted by how many places are taken
    and by their sum, where both can still come about: additions of positive numbers.

    Examples
    --------
    >>> shares_of_sums(np.array([0, 1, 1]), 2)  # 1 two times of three, 2 once
    array([0.        , 0.66666667, 0.33333333])
    """
    start, places, n = np.ones(1) if start is None else start, np.sort(places), len(places)
    ends = np.append(0, np.cumsum(places))
    ways = np.zeros((size + 1, len(start) + ends[n] - ends[n - size]))
    ways[0, : len(start)] = start
    # There are more of them than a float counts.
    scale = np.exp(-log_choices(n, np.array(size)) / n) if n > MOST_COUNTED else 1.0
    for i, place in enumerate(places):
        for taken in range(min(i + 1, size), max(size - n + i, 0), -1):
            low, high = ends[taken - 1], len(start) + ends[i] - ends[i - taken + 1]
            ways[taken, low + place : high + place] += ways[taken - 1, low:high]
        if scale != 1.0:
            ways *= scale
    return ways[size] / ways[size].sum()
