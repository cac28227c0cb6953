"""Partitions as rows of zeros and ones, all of them or drawn at random."""

import functools
import itertools
import math

import numpy as np

from biaslib.metrics.inputs import generator

BLOCK_SIZE = 4_000
MOST_NUMBERS = 2**24
"""Numbers at most in a block, so that it fits in 128 MB however many items there are."""

FEW = 200_000
"""Partitions up to which all are looked at."""

KEPT = 2**18
"""Numbers up to which their rows are kept for the next test of the same sizes: 2 MB."""


def partitions(n: int, size: int, draws: int, rng: np.random.Generator | int | None):
    """Yield every choice of ``size`` of n items where there are few, else so many at random."""
    if n * math.comb(n, size) <= KEPT:
        return _kept(n, size)
    if math.comb(n, size) <= FEW:
        return all_partitions(n, size)
    return drawn_partitions(n, size, draws, rng)


@functools.lru_cache(maxsize=4)
def _kept(n: int, size: int) -> tuple[np.ndarray, ...]:
    return tuple(all_partitions(n, size))


def rows_of_a_block(n: int) -> int:
    """Return how many partitions of n items are looked at together."""
    return min(BLOCK_SIZE, max(1, MOST_NUMBERS // n))


def all_partitions(n: int, size: int):
    """Yield every choice of ``size`` of n items as rows of zeros and ones, in blocks."""
    choices = itertools.combinations(range(n), size)
    while True:
        block = itertools.islice(choices, rows_of_a_block(n))
        chosen = np.fromiter(itertools.chain.from_iterable(block), dtype=int).reshape(-1, size)
        if not len(chosen):
            return
        rows = np.zeros((len(chosen), n))
        np.put_along_axis(rows, chosen, 1.0, axis=1)
        yield rows


def drawn_partitions(n: int, size: int, draws: int, rng: np.random.Generator | int | None):
    """Yield random choices of ``size`` of n items as rows of zeros and ones, in blocks."""
    rng = generator(rng)
    while draws > 0:
        n_rows = min(rows_of_a_block(n), draws)
        numbers = rng.random((n_rows, n))
        chosen = numbers <= np.sort(numbers, axis=1)[:, size - 1, np.newaxis]
        if np.count_nonzero(chosen) == n_rows * size:  # else two numbers were equal
            yield chosen.astype(float)
            draws -= n_rows


def count_extreme(sums, observed, tolerance, alternative):
    """Count sums at least as extreme as the observed ones, ties included: (n_tests,).

    ``sums`` is (n_tests, n_partitions), of scores whose mean is zero; the others are (n_tests,).
    """
    if alternative == "less":
        reached = sums <= (observed + tolerance)[:, None]
    elif alternative == "two-sided":
        reached = np.abs(sums) >= (np.abs(observed) - tolerance)[:, None]
    else:
        reached = sums >= (observed - tolerance)[:, None]
    return np.count_nonzero(reached, axis=1)
