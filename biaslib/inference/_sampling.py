"""Partitions as rows of zeros and ones, all of them or drawn at random."""

import itertools

import numpy as np

from biaslib.metrics.inputs import generator

BLOCK_SIZE = 4_000
MOST_NUMBERS = 2**24
"""Numbers at most in a block, so that it fits in 128 MB however many items there are."""


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
        # The size smallest of n random numbers are a choice in which all are equally likely.
        chosen = numbers <= np.partition(numbers, size - 1, axis=1)[:, size - 1, np.newaxis]
        if np.count_nonzero(chosen) == n_rows * size:  # else two numbers were equal
            yield chosen.astype(float)
            draws -= n_rows
