"""Partitions as rows of zeros and ones, all of them or drawn at random."""

import itertools

import numpy as np

BLOCK_SIZE = 4_000


def all_partitions(n: int, size: int):
    """Yield every choice of ``size`` of n items as rows of zeros and ones, in blocks."""
    choices = itertools.combinations(range(n), size)
    while block := list(itertools.islice(choices, BLOCK_SIZE)):
        rows = np.zeros((len(block), n))
        np.put_along_axis(rows, np.array(block), 1.0, axis=1)
        yield rows


def drawn_partitions(n: int, size: int, draws: int, rng: np.random.Generator | int | None):
    """Yield random choices of ``size`` of n items as rows of zeros and ones, in blocks."""
    rng = np.random.default_rng(rng)
    while draws > 0:
        n_rows = min(BLOCK_SIZE, draws)
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
