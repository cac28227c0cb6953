"""Intervals for caption association that resample people."""

import numpy as np
from numpy.typing import ArrayLike

from biaslib.errors import InputError
from biaslib.inference._bootstrap import Interval, bootstrap, largest_effect_size
from biaslib.metrics import caption_association
from biaslib.metrics.inputs import (
    in_scale,
    label_codes,
    one_of,
    real_numbers,
    whole_number,
)

STATISTICS = ("share", "ratio")
_RESAMPLES_AT_ONCE = 50


def bootstrap_c_asc(
    similarities: ArrayLike,
    groups: ArrayLike,
    ddof: int = 1,
    people: ArrayLike | None = None,
    n_resamples: int = 1_000,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    r"""Return intervals of C-ASC (Hamidieh et al. 2023, D.2) that resample people.

    In every resample as many people as there are are drawn with replacement from the whole data
    set, and C-ASC is computed with each image counted as often as its person was drawn:
    the means and the standard deviation become weighted ones. Sizes of groups vary with the draw.
    The intervals are those of :func:`bootstrap` for a statistic within plus or minus
    :func:`largest_effect_size`, which are a little wide for values near to it of ten or twenty
    people. C-ASC rests on the a people who
    have images in the group and the b who have some outside it, so that the degrees of freedom are
    Welch's for equal spreads,

    .. math:: f = \frac{(1/a + 1/b)^2}{1 / (a^2 (a - 1)) + 1 / (b^2 (b - 1))}.

    Parameters
    ----------
    similarities
        Cosines of captions and images, (k, n).
    groups
        (n, g), true where the image belongs to the group. Groups may overlap.
    ddof
        What is taken from n in the divisor of the variance, 0 or 1.
    people
        Who is on each image, (n,); images of one person stay together. By default every image is
        a person of its own.
    n_resamples
        Number of resamples.
    rng
        Generator or seed.

    Returns
    -------
    Interval
        ``low`` and ``high`` (k, g), NaN for a group of one person or of all but one. In a resample
        without a member of the group, without anyone outside it, or without spread, the value is
        NaN and left out. ``values`` takes 8 k g bytes for each resample, and
        the working memory is about three times the similarities in float64.

    Raises
    ------
    InputError
        As :func:`biaslib.metrics.caption_association.c_asc`; if ``people`` does not name one
        person for every image; or if ``n_resamples`` is out of range.

    Examples
    --------
    >>> women = np.repeat([[True, False], [False, True]], 20, axis=0)
    >>> similarities = np.r_[np.linspace(0.2, 0.3, 20), np.linspace(0.1, 0.25, 20)][None]
    >>> interval = bootstrap_c_asc(similarities, women, n_resamples=200, rng=0)
    >>> bool(interval.low[0, 0] < 1.42 < interval.high[0, 0])
    True
    """
    caption_association.c_asc(similarities, groups, ddof)  # refuses what has no C-ASC
    scores = real_numbers(similarities, "similarities")
    members, _ = caption_association.group_members(groups)
    scores = in_scale(scores, axis=1)[0]
    person = _persons(people, len(members))
    patterns, blocks, images = _cells(scores - scores.mean(axis=1, keepdims=True), members)

    def statistic(weights):
        return _weighted_c_asc(patterns, blocks, images, weights[person], ddof)

    inside = members.sum(axis=0)
    limit = largest_effect_size(inside, len(members) - inside, ddof)
    return bootstrap(
        statistic,
        [person.max() + 1],
        within=(-limit, limit),
        n_resamples=n_resamples,
        rng=rng,
        at_once=_RESAMPLES_AT_ONCE,
        freedom=_freedom(person, members),
    )


def bootstrap_top_k(
    ranking: ArrayLike,
    groups: ArrayLike,
    k: int = 100,
    statistic: str = "share",
    people: ArrayLike | None = None,
    n_resamples: int = 1_000,
    rng: np.random.Generator | int | None = None,
) -> Interval:
    r"""Return intervals of a top-k composition that retrieve anew in every resample.

    In every resample as many people as there are are drawn with replacement from the whole data
    set, and the k images nearest to each caption are retrieved from those drawn. Since the order
    of the images never changes, it is enough to walk down the one ranking and to count each image
    as often as its person was drawn, until there are k. Resampling only among the k images first
    retrieved would hide that another data set would have brought other images.

    Parameters
    ----------
    ranking
        Indices of images, the most similar first, (number of words, depth), as from
        :func:`biaslib.metrics.caption_association.top_k`. With
        ``depth = n`` it never runs out; without repeated people a depth of 2 k + 50 will do.
    groups
        (n, g), true where the image belongs to the group. Groups may overlap.
    k
        How many images to retrieve.
    statistic
        ``"share"`` of each group among the k, or its ``"ratio"`` to the group's share in the
        resample.
    people
        Who is on each image, (n,); images of one person stay together. By default every image is
        a person of its own.
    n_resamples
        Number of resamples.
    rng
        Generator or seed.

    Returns
    -------
    Interval
        ``low`` and ``high`` (number of words, g). A ratio is NaN, and left out, in a resample
        without any member of the group.

    Raises
    ------
    InputError
        If the ranking is not deep enough for some resample, names an image twice for a word or
        one that does not exist; if a group has no image; if ``statistic`` is unknown; or if ``k``,
        ``people`` or ``n_resamples`` is out of range.

    Notes
    -----
    An image drawn twice is retrieved twice, as two people just like each other would be. Where k is
    small, a share can take few values and is held in more than 95 of 100 cases. A group that is
    absent from the whole ranking has the interval of a share of 0 of k.

    Examples
    --------
    >>> ranking = np.arange(200)[None]
    >>> women = (np.arange(200) % 4 == 0)[:, None]
    >>> interval = bootstrap_top_k(ranking, women, k=40, n_resamples=200, rng=0)
    >>> bool(interval.low[0, 0] < 0.25 < interval.high[0, 0])
    True
    """
    members, _ = caption_association.group_members(groups)
    ranking = caption_association.retrieved_images(ranking, "ranking", len(members))
    person = _persons(people, len(members))
    one_of(statistic, "statistic", STATISTICS)
    k = whole_number(k, "k", 1, ranking.shape[1])

    def composition(weights):
        of_images = weights[person]
        counts = _retrieved_again(ranking, members, of_images, k)
        return _statistic(counts, members, of_images, k, statistic)

    largest = len(members) / members.sum(axis=0) if statistic == "ratio" else np.ones(1)
    return bootstrap(
        composition,
        [person.max() + 1],
        within=(0.0 * largest, largest),
        n_resamples=n_resamples,
        rng=rng,
        at_once=_RESAMPLES_AT_ONCE,
        n_equal=k,
    )


def _freedom(person: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom of a difference of each group's people and the others: (g,)."""
    people = [
        (np.stack([np.bincount(person, each) for each in side.T]) > 0).sum(axis=1).astype(float)
        for side in (members, ~members)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = sum(1 / n for n in people) ** 2
        found = whole / sum(1 / (n**2 * (n - 1)) for n in people)
    return np.where(np.minimum(*people) > 1, found, np.nan)


def _cells(centred: np.ndarray, members: np.ndarray):
    """Sort images by the groups they belong to, since all sums are sums over such cells.

    Returns the groups of each cell (cells, g), and for every cell its similarities (k, size) and
    its images.
    """
    patterns, cell = np.unique(members, axis=0, return_inverse=True)
    order = np.argsort(cell.ravel(), kind="stable")
    images = np.split(order, np.cumsum(np.bincount(cell.ravel()))[:-1])
    return patterns.astype(float), [centred[:, chosen] for chosen in images], images


def _weighted_c_asc(patterns, blocks, images, weights: np.ndarray, ddof: int) -> np.ndarray:
    """Return C-ASC of each resample, (resamples, k, g), for weights (n, resamples)."""
    drawn = [weights[chosen] for chosen in images]
    sizes = np.stack([counts.sum(axis=0) for counts in drawn], axis=-1)
    pairs = list(zip(blocks, drawn, strict=True))
    sums = np.stack([(block @ counts).T for block, counts in pairs], axis=-1)
    squares = sum((block**2 @ counts).T for block, counts in pairs)
    n, total = sizes.sum(axis=1)[:, None], sums.sum(axis=2)
    variance = (squares - total**2 / n) / (n - ddof)
    inside, n_inside = sums @ patterns, (sizes @ patterns)[:, None, :]
    outside, n_outside = total[:, :, None] - inside, n[:, :, None] - n_inside
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = inside / n_inside - outside / n_outside
        spread = np.sqrt(np.where(variance > 1e-12 * squares / n, variance, np.nan))
        return difference / spread[:, :, None]


def _retrieved_again(ranking, members, weights: np.ndarray, k: int) -> np.ndarray:
    """Return how many of each group are among the k retrieved, (resamples, words, g)."""
    counts = np.empty((weights.shape[1], len(ranking), members.shape[1]))
    for word, images in enumerate(ranking):
        drawn = weights[images]
        before = np.cumsum(drawn, axis=0) - drawn
        _require_depth(before[-1] + drawn[-1], k, word)
        taken = np.clip(k - before, 0, drawn)
        counts[:, word] = taken.T @ members[images].astype(float)
    return counts


def _statistic(counts, members, weights: np.ndarray, k: int, statistic: str) -> np.ndarray:
    if statistic == "share":
        return counts / k
    expected = weights.T @ members.astype(float) / weights.sum(axis=0)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1.0, np.nan)[:, None] * (counts / k) / expected[:, None]


def _persons(people: ArrayLike | None, n: int) -> np.ndarray:
    return np.arange(n) if people is None else label_codes(people, "people", n)[0]


def _require_depth(found: np.ndarray, k: int, word: int) -> None:
    if found.min() < k:
        raise InputError(
            f"the ranking of word {word} holds only {found.min():.0f} of {k} images in some "
            "resample; rank the images deeper"
        )
