"""Exact counts of partitions and of signs by halves (Horowitz and Sahni 1974)."""

import numpy as np

from biaslib.inference._saddlepoint import log_choices

MOST_SUMS = 2**16
"""Sums of half of the scores up to which all are listed: 16 against 16 targets, 2 against 700."""


def can_be_counted(n: int, size: int) -> bool:
    """Say whether the sums of at most ``size`` of half of n scores are few enough to be listed."""
    half = (n + 1) // 2
    logs = log_choices(half, np.arange(min(half, size) + 1))
    return bool(np.exp(np.minimum(logs, 50.0)).sum() <= MOST_SUMS + 0.5)


def count_by_halves(scores: np.ndarray, size: int, threshold: float) -> int:
    """Count the choices of ``size`` scores whose sum is at least the threshold.

    A choice takes k scores from one half of the list and size - k from the other. The sums within
    each half are listed and sorted; for each sum of one half, a binary search counts the sums of
    the other that reach the threshold with it.
    """
    first = _sums_by_size(scores[0::2], size)
    second = [np.sort(each) for each in _sums_by_size(scores[1::2], size)]
    return sum(
        _count(sums, second[size - taken], threshold)
        for taken, sums in enumerate(first)
        if 0 <= size - taken < len(second)
    )


def count_signs(values: np.ndarray, threshold: float) -> int:
    """Count the patterns of signs under which the sum of the values is at least the threshold."""
    halves = []
    for half in (values[0::2], values[1::2]):
        sums = np.zeros(1)
        for value in half:
            sums = np.concatenate([sums + value, sums - value])
        halves.append(np.sort(sums))
    return _count(*halves, threshold)


def _count(first: np.ndarray, second: np.ndarray, threshold: float) -> int:
    below = np.searchsorted(second, threshold - first, side="left")
    return len(first) * len(second) - int(below.sum())


def _sums_by_size(scores: np.ndarray, largest: int) -> list[np.ndarray]:
    sums = [np.zeros(1)]
    for score in scores:
        grown = [sums[0]]
        for smaller, same in zip(sums, [*sums[1:], np.zeros(0)], strict=True):
            grown.append(np.concatenate([same, smaller + score]))
        sums = grown[: largest + 1]
    return sums
