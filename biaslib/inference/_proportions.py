"""Intervals of percentages: one by one from counts, and of scores that combine them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from biaslib.inference._bootstrap import Interval, bootstrap
from biaslib.metrics.caption_selection import SelectionScores
from biaslib.metrics.inputs import (
    between_0_and_1,
    label_codes,
    made_by,
    one_of,
    whole_number,
)

STATISTICS = ("ivlas", "vlrs", "vlbs")


@dataclass(frozen=True)
class ProportionInterval:
    """A proportion with its interval.

    Attributes
    ----------
    proportion, low, high
        Between 0 and 1.
    """

    proportion: float
    low: float
    high: float


def proportion_interval(successes: float, n: int, confidence: float = 0.95) -> ProportionInterval:
    r"""Return the interval of Clopper and Pearson (1934) of a proportion.

    Its bounds solve

    .. math:: P(K \ge k \mid \mathit{low}) = \tfrac{\alpha}{2}, \qquad
              P(K \le k \mid \mathit{high}) = \tfrac{\alpha}{2}

    for k successes of n with :math:`\alpha` one less the confidence. It holds its level for every
    proportion if the n are independent; images that share their captions are not, and
    :func:`bootstrap_selection` is for them.

    Parameters
    ----------
    successes
        Whole number from 0 to n, such as the numerator of vlrs or vlbs.
    n
        Number of trials, at least 1.
    confidence
        Level of the interval.

    Returns
    -------
    ProportionInterval

    Raises
    ------
    InputError
        If the counts are not whole (as where ties are split), not in range, not numbers, or too
        large to compute with; or if the confidence is not between 0 and 1.

    Examples
    --------
    >>> interval = proportion_interval(166, 514)  # ALBEF's vlbs in Zhou et al. (2022), Table 3
    >>> round(interval.proportion, 4), round(interval.low, 4), round(interval.high, 4)
    (0.323, 0.2827, 0.3653)
    """
    n = whole_number(n, "n", 1)
    k = whole_number(successes, "successes", 0, n)
    confidence = between_0_and_1(confidence, "confidence")
    found = stats.binomtest(k, n).proportion_ci(confidence, method="exact")
    return ProportionInterval(k / n, float(found.low), float(found.high))


def bootstrap_selection(
    scores: SelectionScores,
    triplets: Sequence,
    statistic: str = "ivlas",
    n_resamples: int = 2_000,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    """Return an interval of ivlas, vlrs or vlbs that resamples triplets of captions.

    The images of a triplet are scored with the same three captions, and what is odd about those
    captions moves all of them. So the triplet is the unit: triplets are drawn anew with
    replacement, as many as there are, each with all its images.

    Parameters
    ----------
    scores
        One entry of :func:`biaslib.metrics.caption_selection.selection_scores`.
    triplets
        Triplet of each image, (n,), for the same rows as were given there; for scores averaged
        over target terms, give the terms.
    statistic
        ``"ivlas"``, ``"vlrs"`` or ``"vlbs"``.
    n_resamples
        Number of resamples.
    rng
        Generator or seed.

    Returns
    -------
    Interval
        In per cent, the interval of :func:`bootstrap` for a statistic from 0 to 100. ``vlbs`` draws
        the triplets that have an anti-stereotypical image; of ``ivlas``, which draws all,
        resamples without one are left out, and its degrees of freedom are those of ``vlbs``.

    Raises
    ------
    InputError
        If the triplets do not fit the scores or the statistic is unknown; and as
        :func:`bootstrap`.

    Examples
    --------
    >>> from biaslib.metrics.caption_selection import selection_scores
    >>> found = selection_scores([[3, 2, 1], [1, 3, 2], [1, 2, 3], [2, 3, 1]], [True] * 4)
    >>> interval = bootstrap_selection(found["overall"], ["a", "a", "b", "c"], rng=0)
    >>> bool(interval.low <= interval.estimate <= interval.high), interval.n_units
    (True, (3,))
    """
    one_of(statistic, "statistic", STATISTICS)
    made_by(scores, "scores", SelectionScores, "an entry of what selection_scores() returns")
    unit, _ = label_codes(triplets, "triplets", scores.vlrs.n_rows)
    part = scores.vlbs if statistic == "vlbs" else scores.vlrs
    used, member = np.unique(unit[part.rows], return_inverse=True)
    fewest = len(np.unique(unit[scores.vlbs.rows])) if statistic == "ivlas" else len(used)

    def of_triplets(weights):
        of_images = np.zeros((len(unit), weights.shape[1]))
        of_images[part.rows] = weights[member]
        return getattr(scores.reweighted(of_images), statistic)

    return bootstrap(
        of_triplets,
        [len(used)],
        within=(0.0, 100.0),
        n_resamples=n_resamples,
        rng=rng,
        freedom=fewest - 1 if fewest > 1 else np.nan,
    )
