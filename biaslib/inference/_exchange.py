"""Tests for grounded experiments: which null is which."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from biaslib.errors import InputError
from biaslib.inference._permutation import NEAR, RESAMPLES, PermutationResult, permutation_test
from biaslib.inference._sampling import all_partitions, drawn_partitions
from biaslib.metrics.grounded import GroundedResult
from biaslib.metrics.inputs import (
    in_scale,
    label_keys,
    made_by,
    one_of,
    refused,
    whole_number,
)

ROLES = ("Ax", "Ay", "Bx", "By")
NULLS = ("new attributes", "fixed scores")

COUNTED = 200_000
"""Exchanges up to which all are looked at."""


def grounded_permutation_test(
    result: GroundedResult,
    null: str = "new attributes",
    rng: np.random.Generator | int | None = None,
) -> PermutationResult:
    r"""Test a grounded Experiment 1 or 2 by relabelling its targets: is X nearer to A than Y?

    In Experiment 2 a relabelled target takes the attributes of its new label. The statistic of a
    relabelling :math:`(X', Y')` of n targets is

    .. math:: \operatorname{mean}_{w \in X'} s(w, A_x, B_x)
              - \operatorname{mean}_{w \in Y'} s(w, A_y, B_y)
              = \operatorname{mean}_{w \in X'} v(w) - \operatorname{mean}_{w \in Y'} v(w)
              + \text{const}, \quad
              v(w) = \frac{n_y}{n} s(w, A_x, B_x) + \frac{n_x}{n} s(w, A_y, B_y),

    so that it is a permutation test of v. With sets of equal size v is the score of Experiment 1,
    and p is that of Experiment 1: relabelling says whether targets differ, and not what pictures of
    the own category change.

    ``"fixed scores"`` is the paper's own test: it deals out the scores as they are. They carry
    their category's attributes along, so that it also reacts to :math:`A_x` differing from
    :math:`A_y`, and rejects far too often where targets are exchangeable
    (``tools/levels/experiments12.py``). In Experiment 1 every target has all attributes, and both
    are one test.

    Parameters
    ----------
    result
        Of :func:`biaslib.metrics.grounded.grounded`, Experiment 1 or 2.
    null
        ``"new attributes"``, or ``"fixed scores"`` for a comparison with the paper.
    rng
        As of :func:`permutation_test`.

    Returns
    -------
    PermutationResult

    Raises
    ------
    InputError
        If the null is unknown, the result is of Experiment 3, or one of Experiment 2 has no scores
        with the attributes of the other category.

    Examples
    --------
    The attributes seen with X's category are nearer to every target, and the scores as they are
    part X from Y; a target with both categories' attributes does not:

    >>> x, x_other = np.array([0.3, 0.2]), np.array([-0.1, 0.0])
    >>> y, y_other = np.array([-0.1, 0.1]), np.array([0.2, 0.4])
    >>> result = GroundedResult(2, 1.5, 1, x, y, x_other, y_other)
    >>> [round(grounded_permutation_test(result, null).p_value, 3) for null in NULLS]
    [0.667, 0.167]
    """
    one_of(null, "null", NULLS)
    made_by(result, "result", GroundedResult, "what grounded() returns")
    if result.experiment == 3:
        raise InputError("Experiment 3 is tested by exchange_test, which exchanges attribute words")
    if result.experiment == 1 or null == "fixed scores":
        return permutation_test(result.x_scores, result.y_scores, rng=rng)
    if result.x_other is None or result.y_other is None:
        raise InputError("the result has no scores with other attributes; take it from grounded()")
    x, x_other, y, y_other = result.x_scores, result.x_other, result.y_scores, result.y_other
    of_x, of_y = y.size / (x.size + y.size), x.size / (x.size + y.size)
    found = permutation_test(of_x * x + of_y * x_other, of_x * y_other + of_y * y, rng=rng)
    return replace(found, statistic=float(x.mean() - y.mean()))


def exchange_test(
    result: GroundedResult,
    words: Mapping[str, ArrayLike],
    pictures: Mapping[str, ArrayLike] | None = None,
    n_resamples: int = RESAMPLES,
    rng: np.random.Generator | int | None = None,
) -> PermutationResult:
    r"""Test Experiment 3 by exchanging attribute words between A and B.

    The pictures of an attribute word w, those with X's category less those with Y's, shift its mean
    cosine with the targets of X and with those of Y by

    .. math:: \delta_w = \operatorname{mean}_{p \in w_x} v_p - \operatorname{mean}_{p \in w_y} v_p,
              \quad v_p = \bigl( \operatorname{mean}_{x \in X} \cos(x, p),\;
                               \operatorname{mean}_{y \in Y} \cos(y, p) \bigr),

    and with means in place of sums the statistic of Experiment 3 is

    .. math:: \tfrac12 \bigl\lVert \operatorname{mean}_{w \in A} \delta_w
              - \operatorname{mean}_{w \in B} \delta_w \bigr\rVert_1 .

    The null is that a picture's category shifts the words of A as it shifts those of B: then any
    words could as well stand in A. Targets are left alone, since all their scores rest on the same
    pictures: exchanged one by one they reject far too often, all at once they change nothing.
    Pictures are not dealt to other categories either. That would take as null that the category
    shifts no word at all; a model that sees people at all is further from that than any bias takes
    it, and the test would next to never reject.

    Parameters
    ----------
    result
        Of :func:`biaslib.metrics.grounded.grounded`, Experiment 3.
    words
        The word of every attribute embedding, one list for each of ``Ax``, ``Ay``, ``Bx`` and
        ``By``. The pictures and texts of a word stay together, and every word weighs the same;
        those that are seen with one category alone are left out.
    pictures
        The picture of every attribute embedding. Words that share one stay together.
    n_resamples
        Exchanges drawn where there are more than 200,000, the observed one among them.
    rng
        Generator or seed of these.

    Returns
    -------
    PermutationResult
        ``"enumeration"`` or ``"sampled"``, then with the interval of Clopper and Pearson.

    Raises
    ------
    InputError
        If the result is not of Experiment 3 or not from ``grounded``, labels do not fit, or no
        word of A or of B can change sides: none is seen with both categories, or a picture stands
        beside words of A and of B.

    Notes
    -----
    By simulation (``tools/levels/experiment3.py``) it rejects in .04 to .06 at .05 at any mean
    cosine, also where several captions share a picture and where the category shifts all words. It
    was chosen among three exchanges after a look at the planted models; the levels to be held and
    the effect to be found were fixed before.

    Examples
    --------
    >>> from biaslib.metrics.grounded import grounded
    >>> X, Y, Ax, Ay, Bx, By = np.random.default_rng(0).normal(size=(6, 4, 3))
    >>> result = grounded(X, Y, Ax, Ay, Bx, By, experiment=3)
    >>> found = exchange_test(result, dict.fromkeys(["Ax", "Ay", "Bx", "By"], "abcd"))
    >>> found.method, found.n_partitions, 0 < found.p_value <= 1
    ('enumeration', 70, True)
    """
    values, observed, near, n = _exchanges(result, words, pictures, n_resamples, rng)
    reached = int(np.count_nonzero(values >= observed - near))
    if len(values) == n:
        return PermutationResult.of_counts(reached, n, observed)
    return PermutationResult.of_draws(reached, len(values), n, observed)


def exchanged_statistics(
    result: GroundedResult,
    words: Mapping[str, ArrayLike],
    pictures: Mapping[str, ArrayLike] | None = None,
    n_resamples: int = RESAMPLES,
    rng: np.random.Generator | int | None = None,
) -> np.ndarray:
    """Return the statistic of the exchanges of :func:`exchange_test`, for a picture of its null.

    Parameters
    ----------
    result, words, pictures, n_resamples, rng
        As of :func:`exchange_test`.

    Returns
    -------
    numpy.ndarray
        One value for each exchange, or ``n_resamples - 1`` of those that are drawn.

    Raises
    ------
    InputError
        As :func:`exchange_test`.

    Examples
    --------
    >>> from biaslib.metrics.grounded import grounded
    >>> X, Y, Ax, Ay, Bx, By = np.random.default_rng(0).normal(size=(6, 4, 3))
    >>> result = grounded(X, Y, Ax, Ay, Bx, By, experiment=3)
    >>> words = dict.fromkeys(["Ax", "Ay", "Bx", "By"], "abcd")
    >>> values, test = exchanged_statistics(result, words), exchange_test(result, words)
    >>> len(values), bool((values >= test.statistic - 1e-9).mean() == test.p_value)
    (70, True)
    """
    return _exchanges(result, words, pictures, n_resamples, rng)[0]


def _exchanges(
    result: GroundedResult, words, pictures, n_resamples: int, rng
) -> tuple[np.ndarray, float, float, int]:
    """Return the statistic of exchanges, the observed one, what counts as a tie, and how many.

    There are as many values as exchanges, or ``n_resamples - 1`` that are drawn.
    """
    n_resamples = whole_number(n_resamples, "n_resamples", 2)
    made_by(result, "result", GroundedResult, "what grounded() returns")
    shifts = _shifts(result, words, pictures)
    both, exponent = in_scale(np.concatenate(shifts))
    n, n_a = len(both), len(shifts[0])
    weight = 0.5 * (1 / n_a + 1 / (n - n_a))
    near = NEAR * weight * np.abs(both).sum()
    both = both - both.mean(axis=0)

    def statistic(chosen: np.ndarray) -> np.ndarray:
        return weight * np.abs(chosen @ both).sum(axis=1)

    total, observed = math.comb(n, n_a), statistic(np.arange(n)[None, :] < n_a)[0]
    few = total <= COUNTED
    blocks = all_partitions(n, n_a) if few else drawn_partitions(n, n_a, n_resamples - 1, rng)
    values = np.concatenate([statistic(each) for each in blocks])
    values, observed, near = (np.ldexp(each, exponent) for each in (values, observed, near))
    return values, float(observed), float(near), total


def _shifts(result: GroundedResult, words, pictures) -> list[np.ndarray]:
    """Return the shifts of what is exchanged, (n_a, 2) and (n_b, 2)."""
    if result.experiment != 3:
        raise InputError(f"the exchange is for Experiment 3, this is {result.experiment}")
    if result.attributes is None:
        raise InputError("the result has no cosines of attributes; take it from metrics.grounded")
    near = {name: result.attributes[name] for name in ROLES}
    lengths = {name: len(each) for name, each in near.items()}
    labels = _complete(words, "words", lengths)
    # Words of A are other units than those of B, even if they are the same.
    unit = _codes([(name[0], each) for name in ROLES for each in labels[name]])
    if pictures is not None:
        shown = _complete(pictures, "pictures", lengths)
        unit = _joined(unit, _codes([each for name in ROLES for each in shown[name]]))
    parts = np.split(unit, np.cumsum(list(lengths.values()))[:-1])
    if set(np.concatenate(parts[:2])) & set(np.concatenate(parts[2:])):
        raise InputError("a picture stands beside words of A and of B: these cannot change sides")
    means = [_means(near[name], part) for name, part in zip(ROLES, parts, strict=True)]
    shifts = []
    for role, with_x, with_y in (("A", *means[:2]), ("B", *means[2:])):
        common = [each for each in with_x if each in with_y]
        if not common:
            raise InputError(f"no word of {role} is seen with both categories")
        shifts.append(np.array([with_x[each] - with_y[each] for each in common]))
    return shifts


def _complete(labels: Mapping[str, ArrayLike], what: str, lengths: dict[str, int]) -> dict:
    """Return the labels of each set as a list, one for every row."""
    made_by(labels, what, Mapping, f"lists by name: {', '.join(lengths)}")
    found = {}
    for name, n in lengths.items():
        if name not in labels:
            raise refused(what, f"has none of {name}; give one label for every row")
        found[name] = label_keys(labels[name], f"{what}[{name!r}]", n)
    return found


def _codes(labels: list) -> np.ndarray:
    place = {each: at for at, each in enumerate(dict.fromkeys(labels))}
    return np.array([place[each] for each in labels])


def _joined(words: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """Return one number for all rows that hang together by a word or by a picture."""
    ends = words, words.max() + 1 + pictures
    size = ends[1].max() + 1
    graph = sparse.coo_array((np.ones(len(words)), ends), shape=(size, size))
    return sparse.csgraph.connected_components(graph, directed=False)[1][words]


def _means(values: np.ndarray, unit: np.ndarray) -> dict[int, np.ndarray]:
    return {each: values[unit == each].mean(axis=0) for each in np.unique(unit).tolist()}
