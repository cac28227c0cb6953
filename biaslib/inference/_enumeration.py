"""Exact counts of partitions by halves (Horowitz and Sahni 1974)."""

import math

import numpy as np


def needs_more_sums(n: int, size: int, limit: int) -> bool:
    """Say whether choices of ``size`` need more than ``limit`` sums of the larger half of n."""
    half, total = (n + 1) // 2, 0
    for taken in range(min(half, size) + 1):
        total += math.comb(half, taken)
        if total > limit:
            return True
    return False


def count_by_halves(scores: np.ndarray, size: int, *thresholds: float) -> list[int]:
    """Count the choices of ``size`` scores whose sum is at least each of some thresholds.

    A choice takes k scores from the first half of the list and size - k from the second. The sums
    within each half are listed and sorted; for each sum of one half, a binary search counts the
    sums of the other that reach the threshold with it. Every choice is counted, none is visited by
    itself: the square root of the work of a list of all.
    """
    first = _sorted_sums_by_size(scores[0::2], size)
    second = _sorted_sums_by_size(scores[1::2], size)
    counts = [0] * len(thresholds)
    for taken, sums in enumerate(first):
        if 0 <= size - taken < len(second):
            others = second[size - taken]
            for at, threshold in enumerate(thresholds):
                below = np.searchsorted(others, threshold - sums, side="left")
                counts[at] += len(sums) * len(others) - int(below.sum())
    return counts


def _sorted_sums_by_size(scores: np.ndarray, largest: int) -> list[np.ndarray]:
    sums = [np.zeros(1)]
    for score in scores:
        grown = [sums[0]]
        for smaller, same in zip(sums, [*sums[1:], np.zeros(0)], strict=True):
            grown.append(np.concatenate([same, smaller + score]))
        sums = grown[: largest + 1]
    return [np.sort(each) for each in sums]
