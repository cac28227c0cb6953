"""The null of random attribute sets: the same targets, other attributes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from biaslib.errors import InputError
from biaslib.metrics.association import ROUNDING, effect_size_of_scores
from biaslib.metrics.inputs import (
    generator,
    real_number,
    real_numbers,
    refused,
    whole_number,
    whole_numbers,
)


@dataclass(frozen=True)
class RandomAttributeNull:
    """Scores (n_sets, n) and effect sizes (n_sets,) of one test's targets, attributes at random."""

    x_scores: np.ndarray
    y_scores: np.ndarray
    effect_sizes: np.ndarray

    def p_value(self, observed: float) -> float:
        r"""Return how often random attribute sets give an effect of at least this size.

        .. math:: p = \frac{1 + \#\{ i : \lvert d_i \rvert \ge \lvert d \rvert \}}
                  {1 + n_{\mathrm{sets}}}

        Two-sided, since the null has no direction, and never 0.

        Parameters
        ----------
        observed
            The effect size to place.

        Raises
        ------
        InputError
            If the effect size is not a finite number: what is not defined has no place.
        """
        observed = real_number(observed, "observed")
        larger = np.abs(self.effect_sizes) >= abs(observed) - 1e-12
        return float((1 + larger.sum()) / (1 + larger.size))


def random_attribute_null(
    x_cosines: ArrayLike,
    y_cosines: ArrayLike,
    n_a: int,
    n_b: int,
    n_sets: int = 5_000,
    draws: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> RandomAttributeNull:
    r"""Put random words in the place of a test's attributes, many times at once.

    The permutation test deals out the targets and keeps the attributes; it asks whether the two
    target sets are exchangeable. This keeps the targets and draws the attributes; it asks whether
    these attributes are special. Where the targets form two clusters, most directions tell them
    apart, and the permutation test rejects for most attributes; this null keeps its level there,
    since the observed attributes are one more draw if they are like the pool's.

    With C the cosines of n targets with m words of the pool, and W (n_sets, m) holding
    :math:`1 / n_a` for the words drawn as A and :math:`-1 / n_b` for those drawn as B, all scores
    are one product, :math:`W C^\top`. The two sets of a pair then change roles with probability
    one half. So the null has no direction, even if the words drawn for A differ as a rule from
    those drawn for B, as matched words do.

    Parameters
    ----------
    x_cosines, y_cosines
        Cosine of every target with every word of the pool, (n_x, m) and (n_y, m); for a word with
        several sentences the mean over them.
    n_a, n_b
        Words in a random A and in a random B.
    n_sets
        Random pairs of sets, if ``draws`` is not given.
    draws
        Positions in the pool, (n_sets, n_a + n_b), those of A before those of B; for example words
        matched in frequency and length. ``None`` draws uniformly without replacement.
    rng
        Generator or seed.

    Returns
    -------
    RandomAttributeNull

    Raises
    ------
    InputError
        If a cosine is not finite, the pool is smaller than two sets, a position is no whole number,
        lies outside the pool or stands twice in one pair of sets, the shapes differ, nothing would
        be drawn, or a pair of sets gives all targets the same score.

    Examples
    --------
    >>> cosines = np.random.default_rng(0).uniform(-1, 1, (8, 50))
    >>> null = random_attribute_null(cosines[:4], cosines[4:], 5, 5, n_sets=999, rng=0)
    >>> null.effect_sizes.shape, bool(null.p_value(1.9) < 0.05)
    ((999,), True)
    """
    form = "a table, one row a target and one column a word of the pool"
    x = real_numbers(x_cosines, "x_cosines", form, 2)
    y = real_numbers(y_cosines, "y_cosines", form, 2)
    if x.shape[1] != y.shape[1]:
        reason = f"has {y.shape[1]} columns and x_cosines {x.shape[1]}; give the same pool"
        raise refused("y_cosines", reason)
    n_a, n_b = whole_number(n_a, "n_a", 1), whole_number(n_b, "n_b", 1)
    m, rng = x.shape[1], generator(rng)
    if draws is None:
        drawn = _uniform_draws(m, n_a + n_b, whole_number(n_sets, "n_sets", 1), rng)
    else:
        drawn = _checked(draws, n_a + n_b, m)
    scores = _combine(drawn, np.repeat([1.0 / n_a, -1.0 / n_b], [n_a, n_b]), np.concatenate([x, y]))
    _require_spread(scores, max(np.abs(x).max(), np.abs(y).max()))
    scores *= rng.choice((-1.0, 1.0), (len(scores), 1))
    x_scores, y_scores = scores[:, : len(x)], scores[:, len(x) :]
    effect_sizes = effect_size_of_scores(x_scores, y_scores, require_equal=False)
    return RandomAttributeNull(x_scores, y_scores, effect_sizes)


def _uniform_draws(m: int, n_words: int, n_sets: int, rng) -> np.ndarray:
    if n_words > m:
        raise refused("n_a", f"and n_b need {n_words} different words, and the pool has {m}")
    places, sets = np.tile(np.arange(m, dtype=np.int32)[:, None], n_sets), np.arange(n_sets)
    for at in range(n_words):  # Fisher and Yates, in all sets at once
        other = rng.integers(at, m, n_sets)
        drawn = places[other, sets]
        places[other, sets] = places[at]
        places[at] = drawn
    return places[:n_words].T


def _checked(draws: ArrayLike, n_words: int, m: int) -> np.ndarray:
    form = f"one row a pair of sets and {n_words} columns, positions in the pool"
    drawn = whole_numbers(draws, "draws", form, 2, 0, m - 1)
    if drawn.shape[1] != n_words:
        raise refused("draws", f"has the shape {drawn.shape}; give {form}")
    ordered = np.sort(drawn, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if twice.size:
        reason = "has a word twice; a pair of sets needs different words"
        raise refused("draws", reason, int(twice[0]))
    return drawn


def _require_spread(scores: np.ndarray, largest: float) -> None:
    """Refuse sets whose scores differ by no more than the rounding of such cosines."""
    flat = np.flatnonzero(np.ptp(scores, axis=1) <= ROUNDING * largest)
    if flat.size:
        raise InputError(
            f"pair {flat[0]} of random sets gives all targets the same score: its effect size is "
            "not defined; take words out of the pool that stand in it twice"
        )


def _combine(drawn: np.ndarray, weights: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    """Return the weighted sum of the drawn columns for every set: (n_sets, n_targets)."""
    # A sparse row a set: each is some ten of thousands of words.
    starts = np.arange(0, drawn.size + 1, drawn.shape[1])
    data = np.tile(weights, len(drawn))
    shape = len(drawn), cosines.shape[1]
    return sparse.csr_array((data, drawn.ravel(), starts), shape=shape) @ cosines.T
