r"""Association tests on embeddings: equations 1 to 3 of Ross, Katz and Barbu (2021).

They are the Word Embedding Association Test of Caliskan, Bryson and Narayanan (2017), which
May et al. (2019) carried to sentences. Two sets of target embeddings :math:`X, Y` are compared by
how near they lie to two sets of attribute embeddings :math:`A, B`.

Shapes, everywhere: ``W`` (n_w, d), ``X`` (n_x, d), ``Y`` (n_y, d), ``A`` (n_a, d), ``B`` (n_b, d).
Cosines have no unit; an effect size is in standard deviations of the scores. Vectors of bytes are
warned of: quantised ones and packed bits have other cosines.
"""

import numpy as np
from numpy.typing import ArrayLike

from biaslib.errors import InputError
from biaslib.metrics.inputs import divisor, embeddings, flag, in_scale, real_numbers, refused

__all__ = ["association", "cosines", "effect_size", "effect_size_of_scores", "test_statistic"]

ROUNDING = 1e-12
"""What rounding can leave of a difference of mean cosines, and, relatively, of equal scores."""


def cosines(W: ArrayLike, V: ArrayLike) -> np.ndarray:
    r"""Return the cosine of every row of ``W`` with every row of ``V``.

    .. math:: \cos(w, v) = \frac{w \cdot v}{\lVert w \rVert \, \lVert v \rVert}

    Parameters
    ----------
    W, V
        Embeddings, (n_w, d) and (n_v, d).

    Returns
    -------
    numpy.ndarray
        (n_w, n_v), between -1 and 1.

    Raises
    ------
    InputError
        If a set is empty or not two-dimensional, if the dimensions differ, or if a row holds a
        value that is not finite or is all zeros, since it then has no direction.

    Examples
    --------
    >>> cosines([[1, 0], [1, 1]], [[2, 0]]).round(3)
    array([[1.   ],
           [0.707]])
    """
    return cosines_of_units(*unit_rows(W=W, V=V))


def cosines_of_units(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return :func:`cosines` of embeddings that are of length 1 and of the same dimensions."""
    return np.clip(first @ second.T, -1.0, 1.0)


def association(W: ArrayLike, A: ArrayLike, B: ArrayLike) -> np.ndarray:
    r"""Return how much nearer each embedding lies to ``A`` than to ``B``.

    Equation 1 of Ross, Katz and Barbu (2021):

    .. math:: s(w, A, B) = \operatorname{mean}_{a \in A} \cos(w, a)
                         - \operatorname{mean}_{b \in B} \cos(w, b)

    Parameters
    ----------
    W
        Embeddings to score, (n_w, d).
    A, B
        Attribute embeddings, (n_a, d) and (n_b, d); they may differ in number.

    Returns
    -------
    numpy.ndarray
        (n_w,), between -2 and 2.

    Raises
    ------
    InputError
        As :func:`cosines`.

    Examples
    --------
    >>> association([[1, 0], [0, 1]], A=[[1, 0]], B=[[0, 1]])
    array([ 1., -1.])
    """
    return association_of_units(*unit_rows(W=W, A=A, B=B))


def association_of_units(W: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return :func:`association` of embeddings that are of length 1 and of the same dimensions."""
    return cosines_of_units(W, A).mean(axis=1) - cosines_of_units(W, B).mean(axis=1)


def test_statistic(X: ArrayLike, Y: ArrayLike, A: ArrayLike, B: ArrayLike) -> float:
    r"""Return the statistic of the association test.

    Equation 2 of Ross, Katz and Barbu (2021):

    .. math:: s(X, Y, A, B) = \sum_{x \in X} s(x, A, B) - \sum_{y \in Y} s(y, A, B)

    Parameters
    ----------
    X, Y
        Target embeddings, (n_x, d) and (n_y, d), equal in number.
    A, B
        Attribute embeddings, (n_a, d) and (n_b, d).

    Returns
    -------
    float
        A sum of differences of cosines; it grows with the number of targets.

    Raises
    ------
    InputError
        As :func:`cosines`, and if the target sets differ in number.

    Examples
    --------
    >>> test_statistic([[1, 0]], [[0, 1]], [[1, 0]], [[0, 1]])
    2.0
    """
    X, Y, A, B = unit_rows(X=X, Y=Y, A=A, B=B)
    x_scores, y_scores = association_of_units(X, A, B), association_of_units(Y, A, B)
    _require_equal(x_scores.size, y_scores.size)
    return float(x_scores.sum() - y_scores.sum())


# The name is the field's; it is not a test for pytest to collect.
test_statistic.__test__ = False


def effect_size(
    X: ArrayLike,
    Y: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    ddof: int = 1,
    require_equal: bool = True,
) -> float:
    r"""Return the effect size of the association test.

    Equation 3 of Ross, Katz and Barbu (2021):

    .. math:: d = \frac{\operatorname{mean}_{x \in X} s(x, A, B)
                      - \operatorname{mean}_{y \in Y} s(y, A, B)}
                     {\operatorname{std\,dev}_{w \in X \cup Y} s(w, A, B)}

    Neither this paper nor Caliskan et al. say which standard deviation is meant. The released
    code of both May et al. and Ross et al. divides by n - 1, hence ``ddof=1``; the package WEFE
    divides by n (``ddof=0``), which makes every value larger by the factor
    :math:`\sqrt{n / (n - 1)}` with n the number of targets.

    Parameters
    ----------
    X, Y
        Target embeddings, (n_x, d) and (n_y, d).
    A, B
        Attribute embeddings, (n_a, d) and (n_b, d).
    ddof
        What is taken from n in the divisor of the variance, 0 or 1.
    require_equal
        Refuse target sets of different size, as the definition of the test does.

    Returns
    -------
    float
        In standard deviations of the scores. For equal target sets of n targets in all,
        :math:`\lvert d \rvert \le 2` with ``ddof=0`` and :math:`2\sqrt{(n-1)/n}` with ``ddof=1``.

    Raises
    ------
    InputError
        As :func:`cosines`; if the target sets differ in number; if fewer than two targets or no
        spread of the scores leave the standard deviation at zero; or if ``ddof`` is neither 0
        nor 1.

    Examples
    --------
    >>> X, Y = [[1.0, 0.0], [0.8, 0.6]], [[0.0, 1.0], [0.6, 0.8]]
    >>> round(effect_size(X, Y, A=[[1, 0]], B=[[0, 1]]), 4)
    1.4412
    """
    X, Y, A, B = unit_rows(X=X, Y=Y, A=A, B=B)
    x_scores, y_scores = association_of_units(X, A, B), association_of_units(Y, A, B)
    require_spread(x_scores, y_scores)
    return effect_size_of_scores(x_scores, y_scores, ddof, require_equal)


def require_spread(*scores: np.ndarray) -> None:
    """Refuse scores that differ by no more than the rounding of mean cosines.

    Raises
    ------
    InputError
        If they do.
    """
    if np.ptp(np.concatenate(scores)) <= ROUNDING:
        raise InputError("all targets have the same score: the effect size is not defined")


def effect_size_of_scores(
    x_scores: ArrayLike, y_scores: ArrayLike, ddof: int = 1, require_equal: bool = True
) -> float | np.ndarray:
    """Return equation 3 from scores that are already computed: see :func:`effect_size`.

    Parameters
    ----------
    x_scores, y_scores
        Scores s(w, A, B) of the targets, (n_x,) and (n_y,); or (k, n_x) and (k, n_y) for k tests
        of the same targets at once.
    ddof
        What is taken from n in the divisor of the variance, 0 or 1.
    require_equal
        Refuse target sets of different size.

    Returns
    -------
    float or numpy.ndarray
        In standard deviations of the scores; (k,) for k tests.

    Raises
    ------
    InputError
        As :func:`effect_size`.

    Examples
    --------
    >>> effect_size_of_scores([1, 1], [-1, -1], ddof=0)
    2.0
    >>> effect_size_of_scores([[1, 1], [3, 1]], [[-1, -1], [1, -1]], ddof=0).round(3)
    array([2.   , 1.414])
    """
    form = "one score a target, and at least one"
    x, y = (
        real_numbers(scores, name, form, (1, 2))
        for name, scores in (("x_scores", x_scores), ("y_scores", y_scores))
    )
    if flag(require_equal, "require_equal"):
        _require_equal(x.shape[-1], y.shape[-1])
    if x.shape[:-1] != y.shape[:-1]:
        raise refused("y_scores", f"of the shape {y.shape} are not of the tests of {x.shape}")
    ddof = divisor(ddof)
    together, _ = in_scale(np.concatenate([x, y], axis=-1), axis=-1)
    x, y = together[..., : x.shape[-1]], together[..., x.shape[-1] :]
    spread = together.std(axis=-1, ddof=ddof)
    if (spread <= ROUNDING * np.abs(together).max(axis=-1)).any():
        raise InputError("all targets have the same score: the effect size is not defined")
    effect_sizes = (x.mean(axis=-1) - y.mean(axis=-1)) / spread
    return float(effect_sizes) if effect_sizes.ndim == 0 else effect_sizes


def unit_rows(**sets: ArrayLike) -> list[np.ndarray]:
    """Return each set's embeddings as float64, (n, d), at length 1; warn of vectors of bytes.

    Raises
    ------
    InputError
        As :func:`cosines`.
    """
    found: list[np.ndarray] = []
    for name, vectors in sets.items():
        rows = real_numbers(embeddings(vectors, name), name)
        zero = np.flatnonzero(~rows.any(axis=1))
        if zero.size:
            raise refused(name, "is all zeros: it has no direction", int(zero[0]))
        if found and rows.shape[1] != found[0].shape[1]:
            raise refused(
                name,
                f"has {rows.shape[1]} dimensions, and the set before it {found[0].shape[1]}; "
                "encode all sets with the same model",
            )
        rows, _ = in_scale(rows, axis=1)
        found.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return found


def _require_equal(n_x: int, n_y: int) -> None:
    if n_x != n_y:
        raise InputError(
            f"the target sets have {n_x} and {n_y} items; the test is defined for sets of equal "
            "size. Drop items, or pass require_equal=False to an effect size"
        )
