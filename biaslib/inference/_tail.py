"""Exact counts of a tail that holds few partitions, by listing it from its top."""

import numpy as np


def count_listed(scores: np.ndarray, size: int, threshold: float, limit: int) -> int | None:
    """Count the choices of ``size`` scores with a sum of at least ``threshold``, or give up.

    The scores are ranked from the greatest down. The top choice holds ranks 0 to size - 1; any
    other is reached by moving its members down, the lowest by most: the member at rank i moves to
    i + d(i) with d(0) <= d(1) <= ... <= d(size - 1). Members move one after the other, the lowest
    first, and a move is made only if the sum stays in the tail. As the members still to be moved
    may all stay, every choice met belongs to the tail: the work grows with the count.

    Returns
    -------
    int or None
        None if the tail holds more than ``limit`` partitions.
    """
    ranked = np.sort(scores)[::-1]
    slack = ranked[:size].sum() - threshold
    if slack < 0:
        return 0
    count = 1
    furthest, slacks = np.array([len(scores) - size]), np.array([slack])
    for member in range(size - 1, -1, -1):
        losses = ranked[member] - ranked[member + 1 :]
        moves = np.minimum(np.searchsorted(losses, slacks, side="right"), furthest)
        found = int(moves.sum())
        count += found
        if count > limit:
            return None
        if found == 0:
            break
        slacks = np.repeat(slacks, moves)
        starts = np.repeat(np.cumsum(moves) - moves, moves)
        furthest = np.arange(found) - starts + 1
        slacks = slacks - losses[furthest - 1]
    return count
