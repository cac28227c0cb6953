r"""Caption association and retrieval: the measures of Hamidieh et al. (2023), and their relatives.

A caption (a word in a template) is compared with the images of a data set of people. C-ASC asks
whether a group's images lie nearer to the caption than everyone else's do; the retrieval measures
ask who is among the k nearest images.

Shapes, everywhere: k words, n images, g groups, d dimensions. ``similarities`` (k, n);
``groups`` (n, g), true where the image shows a member of the group. Groups may overlap, so that
men, women, races and their intersections go through in one call; entropy, a measure of a whole
distribution, asks for a partition: each image in exactly one group.
Cosines have no unit; C-ASC is in standard deviations of a word's similarities.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from biaslib.errors import InputError
from biaslib.metrics.inputs import (
    divisor,
    embeddings,
    in_scale,
    made_by,
    real_array,
    real_number,
    real_numbers,
    refused,
    require_length,
    truth_values,
    whole_number,
    whole_numbers,
)

__all__ = [
    "Association",
    "Composition",
    "Representation",
    "associate",
    "c_asc",
    "entropy",
    "representation",
    "skew_at_k",
    "top_k",
    "top_k_composition",
]


_IN_CACHE = 2**20
_IMAGES_AT_ONCE = 4096


_TABLE = "a table with at least one row and column"


@dataclass(frozen=True)
class Composition:
    """Who is among the images retrieved for each word.

    ``counts`` and ``shares`` are (k, g): retrieved images of each group, as a number and divided
    by ``n_retrieved``. ``group_sizes`` (g,) and ``n_images`` describe the whole data set, and
    ``expected_shares`` (g,) is their ratio. Shares of overlapping groups add up to more than 1.
    """

    counts: np.ndarray
    n_retrieved: int
    group_sizes: np.ndarray
    n_images: int

    @property
    def shares(self) -> np.ndarray:
        """Share of each group among the images retrieved, (k, g)."""
        return self.counts / self.n_retrieved

    @property
    def expected_shares(self) -> np.ndarray:
        """Share of each group in the data set, (g,)."""
        return self.group_sizes / self.n_images


@dataclass(frozen=True)
class Representation:
    """Over- and under-representation among the images retrieved: see :func:`representation`.

    All arrays are (k, g): ``shares``, ``ratios`` to the shares in the data set, and one-sided
    p-values ``p_over`` and ``p_under``; ``p_value`` is two-sided, twice the smaller and at most 1.
    """

    shares: np.ndarray
    ratios: np.ndarray
    p_over: np.ndarray
    p_under: np.ndarray
    p_value: np.ndarray


@dataclass(frozen=True)
class Association:
    """C-ASC and the nearest images of every caption: see :func:`associate`.

    ``c_asc`` and ``counts``, how many of the nearest images belong to the group, are (w, g);
    ``nearest`` (w, k) are indices of images, the most similar first.
    """

    c_asc: np.ndarray
    nearest: np.ndarray
    counts: np.ndarray


def associate(
    texts: ArrayLike, images: ArrayLike, groups: ArrayLike, k: int = 100, ddof: int = 1
) -> Association:
    r"""Return C-ASC and the k nearest images of every caption, in one pass over the images.

    :func:`c_asc` and :func:`top_k` of the products of vectors (Hamidieh et al. 2023, sections 3.2
    and 3.3), without the table of all products: images are taken some at a time, sums and squares
    are added up in float64, and an image is kept while it is among the k nearest so far.

    Parameters
    ----------
    texts
        Vectors of captions, (w, d); unit vectors, so that products are cosines.
    images
        Vectors of images, (n, d). Products are computed in the wider type of the two, float32 at
        least.
    groups
        (n, g), true where the image belongs to the group. Groups may overlap.
    k
        How many images to retrieve. Equally similar ones go by index, the lower first.
    ddof
        As in :func:`c_asc`.

    Returns
    -------
    Association
        With vectors of float32, C-ASC differs by less than 1e-7 from that of the table of products.

    Raises
    ------
    InputError
        As :func:`c_asc` and :func:`top_k`, and if the vectors differ in length.

    Examples
    --------
    >>> images = [[0.6, 0.8], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]]
    >>> groups = [[True, False], [True, False], [False, True], [False, True]]
    >>> found = associate([[1.0, 0.0]], images, groups, k=3)
    >>> found.nearest.tolist(), found.counts.tolist(), found.c_asc.round(2).tolist()
    ([[1, 0, 2]], [[2, 1]], [[1.58, -1.58]])
    """
    texts, images = _vectors(texts, images)
    members = _groups_and_rests(groups, len(images))
    k, ddof = whole_number(k, "k", 1, len(images)), divisor(ddof)
    belongs = np.column_stack([members, np.ones(len(images), bool)]).astype(texts.dtype)
    sums, squares = np.zeros((len(texts), belongs.shape[1])), np.zeros(len(texts))
    # Squares of what is left of the mean of some images keep the digits that count.
    centre = texts @ images[:_IMAGES_AT_ONCE].mean(axis=0)
    nearest, step = _Nearest(len(texts), k), max(k, _IMAGES_AT_ONCE)
    table = np.empty((len(texts), min(step, len(images))), texts.dtype)  # stays in the cache
    for start in range(0, len(images), step):
        some = images[start : start + step]
        scores = np.matmul(texts, some.T, out=table[:, : len(some)])
        scores -= centre[:, None]
        sums += scores @ belongs[start : start + step]
        squares += np.einsum("wn,wn->w", scores, scores)
        _require_finite_products(squares, texts, images)
        nearest.add(scores, start)
    sums, totals = sums[:, :-1], sums[:, -1]
    spread = np.sqrt(np.maximum(squares - totals**2 / len(images), 0) / (len(images) - ddof))
    _require_spread(spread, 8 * np.finfo(texts.dtype).eps * np.abs(centre))
    inside, outside = _two_means(sums, totals, members)
    places = nearest.places()
    counts = np.count_nonzero(members[places], axis=1)
    return Association((inside - outside) / spread[:, None], places, counts)


def c_asc(
    similarities: ArrayLike,
    groups: ArrayLike,
    ddof: int = 1,
) -> np.ndarray:
    r"""Return how much nearer each caption lies to a group's images than to all others.

    C-ASC of Hamidieh et al. (2023), section 3.2 and appendix D.2, with :math:`D` all images and
    :math:`\bar G = D \setminus G`:

    .. math:: \text{C-ASC}(c, G) = \frac{
              \frac{1}{\lvert G \rvert} \sum_{g \in G} d(c, g)
              - \frac{1}{\lvert \bar G \rvert} \sum_{g' \in \bar G} d(c, g')}
              {\operatorname{std}_{u \in D} d(c, u)}

    The main text prints :math:`1 / G` before both sums; the appendix has the complement in the
    second, as it must be for a difference of means. The paper does not say which standard
    deviation is meant: ``ddof=1`` divides by n - 1, ``ddof=0`` by n, which makes every value
    larger by the factor :math:`\sqrt{n / (n - 1)}`, 1.000005 for the images of FairFace.

    Parameters
    ----------
    similarities
        Cosines of captions and images, (k, n).
    groups
        (n, g), true where the image belongs to the group. Groups may overlap.
    ddof
        What is taken from n in the divisor of the variance, 0 or 1.

    Returns
    -------
    numpy.ndarray
        (k, g), in standard deviations of the word's similarities. With ``ddof=0`` and p the
        group's share, :math:`\lvert \text{C-ASC} \rvert \le 1 / \sqrt{p (1 - p)}`. A group and
        its complement have opposite values. A group of one image is allowed: a mean of one.

    Raises
    ------
    InputError
        If shapes do not fit together; if a similarity is not finite; if a group has no image or
        all of them, so that it or its complement has no mean; if a word has the same similarity
        with every image; if there are fewer than two images; or if ``ddof`` is neither 0 nor 1.

    Examples
    --------
    >>> women = [True, True, False, False]
    >>> men = [False, False, True, True]
    >>> c_asc([[0.3, 0.3, 0.1, 0.1]], np.transpose([women, men]), ddof=0)
    array([[ 2., -2.]])
    """
    table = real_array(similarities, "similarities", _TABLE, 2)
    members = _groups_and_rests(groups, table.shape[1])
    ddof = divisor(ddof)
    weights, sums = members.astype(float), np.empty((len(table), members.shape[1]))
    totals, spread, least = np.empty((3, len(table)))
    # A few words at a time: what is computed of them stays in the processor's cache.
    for rows in _slices(len(table), -(-table.size // _IN_CACHE)):
        scores, largest = _squarable(table[rows].astype(np.float64))
        centred = scores - scores.mean(axis=1, keepdims=True)
        sums[rows], totals[rows] = centred @ weights, centred.sum(axis=1)
        spread[rows] = np.sqrt((centred**2).sum(axis=1) / (len(members) - ddof))
        least[rows] = 1e-12 * largest
    _require_spread(spread, least)
    inside, outside = _two_means(sums, totals, members)
    return (inside - outside) / spread[:, None]


def top_k(similarities: ArrayLike, k: int) -> np.ndarray:
    """Return the k images most similar to each caption, the most similar first.

    The retrieval of Hamidieh et al. (2023), section 3.3 and appendix D.3, with k = 100 there.
    Equal similarities go by index, the lower first, so that the answer does not depend on how
    the machine sorts.

    Parameters
    ----------
    similarities
        Cosines of captions and images, (number of words, n).
    k
        How many images to retrieve.

    Returns
    -------
    numpy.ndarray
        Indices of images, (number of words, k).

    Raises
    ------
    InputError
        If ``k`` is below 1 or above n, or a similarity is not finite.

    Examples
    --------
    >>> top_k([[0.1, 0.3, 0.2, 0.3]], 3)
    array([[1, 3, 2]])
    """
    scores = real_array(similarities, "similarities", _TABLE, 2)
    k = whole_number(k, "k", 1, scores.shape[1])
    found = np.empty((len(scores), k), np.intp)
    for rows in _slices(len(scores), -(-scores.size // _IN_CACHE)):
        table = scores[rows].astype(np.float64)
        nearest = _Nearest(len(table), k)
        nearest.add(table, 0)
        found[rows] = nearest.places()
    return found


def top_k_composition(top: ArrayLike, groups: ArrayLike) -> Composition:
    """Return how many of the retrieved images show a member of each group.

    Hamidieh et al. (2023), section 3.3 and appendix D.3. The paper compares shares with those of
    a balanced data set; here the data set's own shares come along.

    Parameters
    ----------
    top
        Indices of the retrieved images, (k, number retrieved), as from :func:`top_k`.
    groups
        (n, g), true where the image belongs to the group. Groups may overlap.

    Returns
    -------
    Composition
        Counts and shares (k, g).

    Raises
    ------
    InputError
        If ``top`` is not a table of indices below n, names an image twice for one word, or a
        group has no image.

    Examples
    --------
    >>> groups = [[True, False], [True, False], [False, True], [False, True]]
    >>> top_k_composition([[0, 2], [0, 1]], groups).shares
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    members, sizes = group_members(groups)
    retrieved = retrieved_images(top, "top", len(members))
    return Composition(
        counts=np.stack([members[row].sum(axis=0) for row in retrieved]),
        n_retrieved=retrieved.shape[1],
        group_sizes=sizes,
        n_images=len(members),
    )


def entropy(counts: ArrayLike) -> np.ndarray:
    r"""Return how evenly each word's retrieved images spread over the groups.

    Hamidieh et al. (2023), section 3.3 and appendix D.3, rank words by the entropy of the
    demographic distribution and print no formula. Ours is Shannon's, divided by its maximum, so
    that sets of groups of different number can be compared:

    .. math:: H = -\frac{1}{\ln g} \sum_{i=1}^{g} p_i \ln p_i, \qquad 0 \ln 0 = 0

    Parameters
    ----------
    counts
        Counts or shares of the g groups of a partition, (k, g).

    Returns
    -------
    numpy.ndarray
        (k,), 1 when all groups are equally frequent and 0 when only one is there. In a data set
        with unequal groups a fair draw has less than 1: compare with the entropy of its own sizes.

    Raises
    ------
    InputError
        If there are fewer than two groups, or a row holds a negative number, one that is not
        finite, or nothing.

    Examples
    --------
    >>> entropy([[50, 50], [100, 0], [90, 10]]).round(3)
    array([1.   , 0.   , 0.469])
    """
    shares = _shares(counts)
    if shares.shape[1] < 2:
        raise InputError("the entropy of one group is not defined: ln 1 = 0")
    return np.clip(_entropies(shares) / np.log(shares.shape[1]), 0.0, 1.0) + 0.0


def representation(composition: Composition) -> Representation:
    r"""Return whether groups are over- or under-represented among the images retrieved.

    Hamidieh et al. (2023), appendix D.3, call a share "significantly higher or lower" than
    expected without naming a test. Here the null hypothesis is that the m images retrieved are
    drawn from the n at random without replacement, so that the count of a group of size K is
    hypergeometric:

    .. math:: P(X = x) = \binom{K}{x} \binom{n - K}{m - x} \Big/ \binom{n}{m}

    and the one-sided p-values are :math:`P(X \ge x)` and :math:`P(X \le x)`. Every group is
    judged by itself: groups may overlap or leave images out, so that counts need not add up to m.

    Parameters
    ----------
    composition
        As from :func:`top_k_composition`.

    Returns
    -------
    Representation
        Shares, ratios to the data set's own shares, and p-values, all (k, g). They are not
        corrected for many words and groups: see :func:`biaslib.inference.adjust`.

    Raises
    ------
    InputError
        If the composition is none.

    Notes
    -----
    The null treats images as exchangeable. Several images of one person, or near duplicates,
    are retrieved together, and then these p-values are too small.

    Examples
    --------
    >>> groups = np.repeat([[True, False], [False, True]], 5, axis=0)
    >>> result = representation(top_k_composition([[0, 1, 2, 3]], groups))
    >>> result.ratios, result.p_over.round(4)
    (array([[2., 0.]]), array([[0.0238, 1.    ]]))
    """
    composition = _composition(composition)
    tails = [
        _tails(composition.counts[:, group], size, composition)
        for group, size in enumerate(composition.group_sizes)
    ]
    over, under = (np.stack(tail, axis=1) for tail in zip(*tails, strict=True))
    return Representation(
        shares=composition.shares,
        ratios=composition.shares / composition.expected_shares,
        p_over=over,
        p_under=under,
        p_value=np.minimum(2 * np.minimum(over, under), 1.0),
    )


def skew_at_k(composition: Composition, smoothing: float = 0.0) -> np.ndarray:
    r"""Return the log ratio of each group's share among the k retrieved to its share in the data.

    Skew@k of Geyik, Ambler and Kenthapadi (2019), with the data set's own shares q as the
    desired ones and an optional pseudo-count:

    .. math:: \text{Skew}_a@k = \ln \frac{p_a}{q_a}, \qquad
              p_a = \frac{x_a + \alpha q_a}{k + \alpha}

    Parameters
    ----------
    composition
        As from :func:`top_k_composition`.
    smoothing
        The pseudo-count :math:`\alpha`, in images, shared out as the data set is. With 0, as
        defined, a group that is absent from the k has minus infinity.

    Returns
    -------
    numpy.ndarray
        (k words, g), in nats; 0 where the share is as in the data set.

    Raises
    ------
    InputError
        If ``smoothing`` is negative, or as :func:`representation`.

    Examples
    --------
    >>> groups = np.repeat([[True, False], [False, True]], 5, axis=0)
    >>> composition = top_k_composition([[0, 1, 2, 3]], groups)
    >>> skew_at_k(composition).round(3), skew_at_k(composition, smoothing=1).round(3)
    (array([[0.693,  -inf]]), array([[ 0.588, -1.609]]))
    """
    composition = _composition(composition)
    smoothing = real_number(smoothing, "smoothing", low=0)
    expected = composition.expected_shares
    counts = composition.counts + smoothing * expected
    shares = counts / (composition.n_retrieved + smoothing)
    with np.errstate(divide="ignore"):
        return np.log(shares / expected)


def _slices(length: int, number: int) -> list[slice]:
    edges = np.linspace(0, length, number + 1).astype(int)
    return [slice(first, last) for first, last in pairwise(edges)]


def _squarable(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose squares are neither infinite nor 0, and the largest size in each.

    C-ASC has no unit: a row that is very large or very small is divided by a power of two.
    """
    largest = np.abs(scores).max(axis=1)
    if ((largest > 1e-100) & (largest < 1e100)).all():
        return scores, largest
    scores, _ = in_scale(scores, axis=1)
    return scores, np.abs(scores).max(axis=1)


def _two_means(sums, totals, members):
    """Return the means over each group and over its complement, (k, g) each."""
    sizes = np.count_nonzero(members, axis=0)
    return sums / sizes, (totals[:, None] - sums) / (len(members) - sizes)


def _tails(counts: np.ndarray, size: int, composition: Composition):
    """Return P(X >= count) and P(X <= count) for one group, each summed from its far end."""
    n_retrieved = composition.n_retrieved
    null = stats.hypergeom(composition.n_images, size, n_retrieved)
    probabilities = null.pmf(np.arange(n_retrieved + 1))
    over = np.cumsum(probabilities[::-1])[::-1]
    under = np.cumsum(probabilities)
    return np.minimum(over[counts], 1.0), np.minimum(under[counts], 1.0)


def _entropies(shares: np.ndarray) -> np.ndarray:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=1)


def group_members(groups: ArrayLike, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return groups as booleans, (n, g), if every group has an image, and their sizes, (g,)."""
    members = truth_values(groups, "groups", "one row an image and one column a group", 2)
    if n is not None:
        require_length(members, n, "groups", "images")
    sizes = np.count_nonzero(members, axis=0)
    if not sizes.all():
        raise InputError(f"group {np.argmin(sizes)} has no image", word="groups")
    return members, sizes


def _groups_and_rests(groups: ArrayLike, n: int) -> np.ndarray:
    """Return groups as booleans, (n, g), if every group and its complement have an image."""
    members, sizes = group_members(groups, n)
    full = np.flatnonzero(sizes == n)
    if full.size:
        raise InputError(
            f"group {full[0]} holds every image: its complement is empty", word="groups"
        )
    return members


def _vectors(texts: ArrayLike, images: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    texts, images = (
        embeddings(vectors, name, finite=False)
        for vectors, name in ((texts, "texts"), (images, "images"))
    )
    if texts.shape[1] != images.shape[1]:
        raise InputError(
            f"texts have {texts.shape[1]} numbers each, images {images.shape[1]}", word="images"
        )
    dtype = np.result_type(texts, images, np.float32)
    return texts.astype(dtype, copy=False), images.astype(dtype, copy=False)


def _require_finite_products(squares: np.ndarray, texts: np.ndarray, images: np.ndarray) -> None:
    """Refuse what is not finite, which shows in sums: a look at all vectors costs a tenth more."""
    if not np.isfinite(squares).all():
        real_array(texts, "texts")
        real_array(images, "images")
        raise InputError("products of texts and images are too large: give unit vectors")


class _Nearest:
    """The k largest of every row, of columns that come some at a time, k at least at first."""

    def __init__(self, rows: int, k: int) -> None:
        self.rows, self.k = rows, k
        self.kept: list[tuple[np.ndarray, ...]] = []
        self.least: np.ndarray | None = None

    def add(self, scores: np.ndarray, start: int) -> None:
        """Keep what may be among the k largest: what is no less than the k-th so far."""
        if self.least is None:
            self.least = np.partition(scores, -self.k, axis=1)[:, -self.k, None]
        places = np.flatnonzero(scores >= self.least)
        row, column = np.divmod(places, scores.shape[1])
        self.kept.append((row, column + start, scores.ravel()[places]))
        if sum(len(row) for row, *_ in self.kept) > 2 * self.rows * self.k:
            self.places()

    def places(self) -> np.ndarray:
        """Return the columns of the k largest of every row, (rows, k), and forget the others."""
        row, column, value = (np.concatenate(part) for part in zip(*self.kept, strict=True))
        order = np.lexsort((-value, row))  # stable: of equal values the one further left
        rank = np.arange(len(row)) - np.searchsorted(row[order], np.arange(self.rows))[row[order]]
        best = order[rank < self.k]
        self.kept = [(row[best], column[best], value[best])]
        self.least = value[best].reshape(self.rows, self.k)[:, -1:]
        return column[best].reshape(self.rows, self.k)


def _require_spread(spread: np.ndarray, least: np.ndarray) -> None:
    flat = np.flatnonzero(spread <= least)
    if flat.size:
        raise InputError(
            f"word {flat[0]} has the same similarity with every image: its C-ASC is not defined",
            row=int(flat[0]),
        )


def retrieved_images(top: ArrayLike, name: str, n: int) -> np.ndarray:
    """Return indices of images below n, (k words, number retrieved), if no word has one twice."""
    table = whole_numbers(top, name, "indices of images, one row a word", 2, 0, n - 1)
    twice = np.flatnonzero((np.diff(np.sort(table, axis=1), axis=1) == 0).any(axis=1))
    if twice.size:
        raise refused(name, "names an image twice", int(twice[0]))
    return table


def _shares(counts: ArrayLike) -> np.ndarray:
    table = real_numbers(counts, "counts", _TABLE, 2)
    bad = np.flatnonzero((table < 0).any(axis=1) | ~table.any(axis=1))
    if bad.size:
        raise refused("counts", "must not be negative, and not all zero", int(bad[0]))
    table, _ = in_scale(table, axis=1)
    return table / table.sum(axis=1, keepdims=True)


def _composition(composition: Composition) -> Composition:
    return made_by(composition, "composition", Composition, "what top_k_composition() returns")
