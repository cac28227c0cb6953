"""What a score would be if there were nothing to find: ranges and p-values beside the scores.

Words are the units: the texts of a word, and the pictures that stand with it, share its
peculiarities. Where people in pictures are compared, they are units too. A range is of what the
null gives in 95 of 100 cases.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
from numpy.typing import ArrayLike

from biaslib import inference
from biaslib.studies import study1_grounded as grounded

__all__ = [
    "balanced_preference",
    "contrast",
    "group_apart",
    "least_of_dealing",
    "least_of_signs",
    "outside_by_chance",
    "portrait_contrast",
    "random_attributes",
    "reference_range",
    "standardised",
]

RESAMPLES = 200
"""Of the intervals; each study's chapter uses more."""

DRAWN_SIGNS = 100_000
"""Patterns of signs where they are drawn (:func:`biaslib.inference.sign_flip_test`)."""

DRAWS = 100
"""Random attribute sets for each question of an audit: so many that of m questions a test that none
of them reaches has a p-value of .01 / m at most, and Holm's correction leaves room for a claim."""


def least_of_dealing(n_first: int, n_second: int, two_sided: bool = True) -> float:
    r"""Return the least p-value of dealing out units anew, whatever their scores.

    It is :math:`1 / \binom{n_1 + n_2}{n_1}`, and twice that on two sides with groups of one size,
    where the opposite of the observed deal is as far apart as that itself.

    Examples
    --------
    >>> round(1 / least_of_dealing(8, 8)), round(1 / least_of_dealing(10, 50))
    (6435, 75394027566)
    """
    ways = 2 if two_sided and n_first == n_second else 1
    return ways / inference.n_partitions(n_first, n_second)


def least_of_signs(n: int) -> float:
    """Return the least p-value of exchanging the signs of n units on two sides.

    Examples
    --------
    >>> least_of_signs(6), least_of_signs(1_000)
    (0.03125, 1e-05)
    """
    return 2 / 2**n if n <= 32 else 1 / DRAWN_SIGNS


def contrast(
    first: Sequence[float], second: Sequence[float], n_resamples: int = RESAMPLES, seed: int = 0
) -> dict[str, Any]:
    r"""Compare the scores of two lists of words, each word a unit.

    .. math:: \Delta = \operatorname{mean}_{w \in W_1} s(w) - \operatorname{mean}_{w \in W_2} s(w)

    What all words share, such as a picture's light, cancels. The null deals the words out to the
    two lists anew.

    Parameters
    ----------
    first, second
        One score a word.
    n_resamples, seed
        Of the interval, which draws the words of each list anew; 0 leaves it out.

    Returns
    -------
    dict
        *value*, *low*, *high*, *p_value* (two-sided), *p_least* (what it can be at least),
        *null_low*, *null_high*, *n* words.

    Examples
    --------
    >>> found = contrast([3.0, 4.0, 5.0], [0.0, 1.0, 2.0])
    >>> found["value"], found["p_value"], found["n"]
    (3.0, 0.1, 6)
    """
    x, y = (np.asarray(scores, dtype=float) for scores in (first, second))
    test = inference.permutation_test(x, y, alternative="two-sided", rng=seed)

    def difference(of_x: np.ndarray, of_y: np.ndarray) -> np.ndarray:
        return (x @ of_x) / of_x.sum(0) - (y @ of_y) / of_y.sum(0)

    low, high = _bounds(difference, [len(x), len(y)], n_resamples, seed)
    relabelled = _relabelled(np.concatenate([x, y]), len(x), seed)
    return {
        "value": float(x.mean() - y.mean()),
        "low": low,
        "high": high,
        "p_value": test.p_value,
        "p_least": least_of_dealing(len(x), len(y)),
        **_range(relabelled),
        "n": len(x) + len(y),
    }


def portrait_contrast(
    first: np.ndarray,
    second: np.ndarray,
    members: np.ndarray,
    units: np.ndarray,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    r"""Compare the C-ASC of two lists of words for one group of portraits.

    With :math:`z_{wi}` the similarity of word w and portrait i, divided by the word's standard
    deviation over all portraits (:func:`standardised`), or the difference of two models' z, and g
    the portraits of the group,

    .. math:: \Delta = \operatorname{mean}_{i \in g} t_i - \operatorname{mean}_{i \notin g} t_i,
              \quad t_i = \operatorname{mean}_{w \in W_1} z_{wi}
                         - \operatorname{mean}_{w \in W_2} z_{wi},

    which is the difference of the lists' mean C-ASC (Hamidieh et al. 2023, equation 1). Two nulls
    have to be rejected: words are dealt out anew to the two lists; and people are dealt out anew to
    the group and the rest, each with the mean of t over their pictures. The first alone says
    nothing of other people: if the scores of a list go together, it is rejected for groups that
    were drawn at random.

    Parameters
    ----------
    first, second
        z of both lists, (words, n) each.
    members
        (n,), whether a portrait belongs to the group.
    units
        (n,), the person in it.
    n_resamples, seed
        Of the interval, which draws words and people anew, with each word's standard deviation
        held; 0 leaves it out.

    Returns
    -------
    dict
        As of :func:`contrast`; *p_value* is the larger one, *n_units* counts people.

    Examples
    --------
    >>> scores = [[3.0, 3.1, 1.0, 1.2], [1.0, 1.1, 1.2, 1.0], [1.1, 1.3, 1.0, 1.1]]
    >>> women, people, z = np.array([True, True, False, False]), np.arange(4), standardised(scores)
    >>> found = portrait_contrast(z[:1], z[1:], women, people, 0)
    >>> round(found["value"], 2), round(found["p_value"], 2), found["n_units"]
    (1.39, 0.67, 4)
    """
    lists = [np.asarray(z, dtype=float) for z in (first, second)]
    inside = np.asarray(members, bool)
    sides = (inside, ~inside)
    persons = [pandas.factorize(np.asarray(units)[side])[0] for side in sides]
    apart = lists[0].mean(0) - lists[1].mean(0)
    people = [
        np.bincount(person, apart[side]) / np.bincount(person)
        for person, side in zip(persons, sides, strict=True)
    ]
    test = inference.permutation_test(*people, alternative="two-sided", rng=seed)

    # Of each side and list a word's scores (rows), summed over every person's pictures.
    sums = [
        [np.stack([np.bincount(person, row) for row in z[:, side]]) for z in lists]
        for side, person in zip(sides, persons, strict=True)
    ]
    shown = [np.bincount(person) for person in persons]

    def difference(*drawn) -> np.ndarray:
        words = [of / of.sum(0) for of in drawn[:2]]
        means = []
        for side, of, n in zip(sums, drawn[2:], shown, strict=True):
            both = [(word * (z @ of)).sum(0) for word, z in zip(words, side, strict=True)]
            means.append((both[0] - both[1]) / (n @ of))
        return means[0] - means[1]

    sizes = [*map(len, lists), *map(len, people)]
    low, high = _bounds(difference, sizes, n_resamples, seed)
    of_words = contrast(*(group_apart(z, inside) for z in lists), 0, seed)
    both = {
        "low": low,
        "high": high,
        "p_value": max(of_words["p_value"], test.p_value),
        "p_least": max(of_words["p_least"], least_of_dealing(*map(len, people))),
    }
    return of_words | both | {"n_units": sum(map(len, people))}


def standardised(scores: ArrayLike) -> np.ndarray:
    """Return scores, (words, n), divided by each word's standard deviation, as C-ASC does."""
    scores = np.asarray(scores, dtype=float)
    return scores / scores.std(axis=1, ddof=1, keepdims=True)


def group_apart(z: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return each word's mean over a group less that over the others: C-ASC, (words,)."""
    return z[:, inside].mean(axis=1) - z[:, ~inside].mean(axis=1)


def _bounds(statistic, sizes: list[int], n_resamples: int, seed: int) -> tuple[float, float]:
    if not n_resamples:
        return np.nan, np.nan
    drawn = inference.bootstrap(statistic, sizes, n_resamples=n_resamples, rng=seed)
    return drawn.low, drawn.high


def _relabelled(scores: np.ndarray, n_first: int, seed: int, n_draws: int = 999) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.tile(scores, (n_draws, 1)), axis=1)
    return shuffled[:, :n_first].mean(axis=1) - shuffled[:, n_first:].mean(axis=1)


def _range(values: np.ndarray) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return {"null_low": float(low), "null_high": float(high)}


def reference_range(scores: Sequence[float]) -> dict[str, float]:
    """Return where 95 of 100 innocent words lie: what a word without social meaning scores.

    It is no test: in models in which nothing was planted, more than 5% of other words lie outside.
    *null_n* is how many words it is the range of; see :func:`outside_by_chance`.
    """
    return _range(np.asarray(scores, dtype=float)) | {"null_n": len(scores)}


def outside_by_chance(n: int) -> float:
    r"""Return the chance that one more word of the same kind lies outside of the range of n.

    Of n + 1 words in random order each is as likely to come anywhere, so that the quantile at
    :math:`\alpha` of n, which lies :math:`\alpha (n - 1)` places above the least one, has the next
    word below it in :math:`(\alpha (n - 1) + 1) / (n + 1)` of all cases: exactly so where that
    place is a whole number, and else about.

    Examples
    --------
    >>> [round(outside_by_chance(n), 3) for n in (30, 60, 4_999)]
    [0.111, 0.081, 0.05]
    """
    return 2.0 * (0.025 * (n - 1) + 1.0) / (n + 1)


def balanced_preference(
    margins: Sequence[float],
    stereotypical: Sequence[bool],
    units: Sequence[Any],
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Any]:
    r"""Compare two captions of each picture, what the picture shows left out.

    With :math:`m` the score of the stereotypical caption less that of the anti-stereotypical one,
    a model that looks has a high m where the picture is stereotypical, and a low one elsewhere. Of
    each triplet of captions u

    .. math:: d_u = \bar m_u - \hat g \bar z_u, \quad
              \hat g = \tfrac12 (\bar m_{z = 1} - \bar m_{z = -1})

    is left, with z = 1 for stereotypical pictures and -1 for the others. If nothing in the model
    goes with which of the captions is called the stereotype, m and z of a triplet could as well
    both have the other sign. The mean of :math:`m z` is then the same, so that the test exchanges
    the signs of :math:`\bar m_u - \overline{m z}\, \bar z_u`; with :math:`\hat g`, which would not
    be, it would reject too often where pictures of one kind are few.

    Parameters
    ----------
    margins
        m, one a picture.
    stereotypical
        Whether the picture is.
    units
        The triplet of captions that belongs to it.
    n_resamples, seed
        Of the interval, which draws triplets anew; 0 leaves it out.

    Returns
    -------
    dict
        As of :func:`contrast`; *value* is the mean of d in standard deviations of m.

    Raises
    ------
    ValueError
        If the pictures are all stereotypical, or all not.
    """
    m, z = np.asarray(margins, dtype=float), np.where(stereotypical, 1.0, -1.0)
    if len(np.unique(z)) < 2:
        raise ValueError("pictures of both kinds are needed to tell looking from preferring")
    m = m / (m.std() or 1.0)
    grounding = (m[z > 0].mean() - m[z < 0].mean()) / 2
    of_units = pandas.DataFrame({"m": m, "z": z}).groupby(np.asarray(units)).mean()
    left = (of_units["m"] - grounding * of_units["z"]).to_numpy()
    n = len(left)
    exchanged = (of_units["m"] - (m * z).mean() * of_units["z"]).to_numpy()
    test = inference.sign_flip_test(exchanged, rng=seed)
    shrinks = 1.0 - z.mean() ** 2  # of value's size: exactly with one picture a triplet
    low, high = _bounds(lambda drawn: (left @ drawn) / drawn.sum(0), [n], n_resamples, seed)
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (999, n))
    bounds = {"low": low, "high": high, "p_value": test.p_value, "p_least": least_of_signs(n)}
    null = _range(signs @ exchanged / n / shrinks)
    return {"value": float(left.mean()), **bounds, **null, "n": n}


def random_attributes(
    every: Sequence[grounded.EmbeddedSets],
    experiment: int = 1,
    seed: int = 0,
    n_sets: int = 50 * DRAWS,
) -> pandas.DataFrame:
    """Place each test's effect size among those of random attribute words.

    The pool of a test are words of the other tests at the same level, without its own: they come
    with the same sentences and pictures. In Experiment 2 each target set has its own pictures of
    the attributes, so that the pool are attribute words of tests of the same people, each beside
    the picture that belongs to the target set. Experiment 3 asks no question about words.

    Parameters
    ----------
    every
        All tests of one level.
    experiment
        1 or 2.
    seed, n_sets
        Of the draws.

    Returns
    -------
    pandas.DataFrame
        *test*, *level*, *experiment*, *p_random* (two-sided), *null_low*, *null_high*, *pool*
        (words), *p_least*: what the larger one of *p_random* and of the p-value of dealing out
        target words can be at least. NaN where the pool is too small.
    """
    pool_of = _any_words if experiment == 1 else _of_same_people
    rows = [_placed(sets, *pool_of(sets, every), experiment, seed, n_sets) for sets in every]
    return pandas.DataFrame(rows)


def _directions(sets: grounded.EmbeddedSets, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return of every word of some sets the mean of its unit vectors."""
    vectors = np.concatenate([sets.embeddings[name] for name in names])
    words = np.concatenate([sets.words[name] for name in names])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return {word: unit[words == word].mean(axis=0) for word in dict.fromkeys(words)}


def _others(sets: grounded.EmbeddedSets, every, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the words of other tests, without those of the test itself."""
    own = {word for name in grounded.SETS for word in sets.words[name]}
    found = {}
    for other in every:
        if other.test != sets.test:
            found |= _directions(other, names)
    return {word: vector for word, vector in found.items() if word not in own}


def _any_words(sets: grounded.EmbeddedSets, every) -> tuple[dict, dict]:
    pool = _others(sets, every, grounded.SETS)
    return pool, pool


def _of_same_people(sets: grounded.EmbeddedSets, every) -> tuple[dict, dict]:
    """Return pools beside the pictures of X and of Y, of tests that share words of X."""
    people = set(sets.words["X"])
    same = [other for other in every if people & set(other.words["X"])]
    pools = [_others(sets, same, (f"A{context}", f"B{context}")) for context in "xy"]
    both = [word for word in pools[0] if word in pools[1]]
    return tuple({word: pool[word] for word in both} for pool in pools)


def _placed(sets, x_pool, y_pool, experiment: int, seed: int, n_sets: int) -> dict[str, Any]:
    row = {"test": sets.test, "level": sets.level, "experiment": experiment, "pool": len(x_pool)}
    nothing = dict.fromkeys(("p_random", "p_least", "null_low", "null_high"), np.nan)
    sizes = [len({w for c in "xy" for w in sets.words[each + c]}) for each in "AB"]
    if len(x_pool) < sum(sizes):
        return row | nothing
    x, y = (
        np.stack(list(_directions(sets, each).values())) @ np.stack(list(pool.values())).T
        for each, pool in (("X", x_pool), ("Y", y_pool))
    )
    null = inference.random_attribute_null(x, y, *sizes, n_sets=n_sets, rng=seed)
    result = grounded.averaged(sets.grounded(experiment), sets.words)
    observed = _effect_size(result.x_scores, result.y_scores)
    defined = null.effect_sizes[np.isfinite(null.effect_sizes)]
    if not np.isfinite(observed) or not len(defined):
        return row | nothing
    dealt = least_of_dealing(*(len(set(sets.words[each])) for each in "XY"), two_sided=False)
    least = max(dealt, 1 / (1 + n_sets))
    return row | {"p_random": null.p_value(observed), "p_least": least, **_range(defined)}


def _effect_size(x: np.ndarray, y: np.ndarray) -> float:
    spread = np.concatenate([x, y]).std(ddof=1)
    return float((x.mean() - y.mean()) / spread) if spread > grounded.FLAT else np.nan
