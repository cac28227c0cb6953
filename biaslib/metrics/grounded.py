r"""Grounded association tests: the three experiments of Ross, Katz and Barbu (2021), section 4.

Every embedding is that of a text with an image. Attributes are seen in the context of a target's
category: ``Ax`` (n_ax, d) and ``Bx`` (n_bx, d) show the attributes with the category of X, ``Ay``
(n_ay, d) and ``By`` (n_by, d) with that of Y. ``X`` is (n_x, d) and ``Y`` (n_y, d). For masked
text or masked image regions, embed the masked inputs and use Experiment 2.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from biaslib.metrics.association import (
    association_of_units,
    cosines_of_units,
    effect_size_of_scores,
    require_spread,
    unit_rows,
)
from biaslib.metrics.inputs import divisor, whole_number

__all__ = ["GroundedResult", "grounded"]


@dataclass(frozen=True)
class GroundedResult:
    r"""Scores and effect size of one grounded experiment.

    ``x_scores`` (n_x,) and ``y_scores`` (n_y,) are the scores of the targets with the attributes
    that the experiment gives them. In Experiments 2 and 3 ``x_other`` and ``y_other`` are the
    scores with the attributes of the other target's category; in Experiment 1 they are None.

    ``effect_size`` is signed in Experiments 1 and 2. In Experiment 3 as the paper prints it, it is
    half a sum of absolute values and never negative; ``x_effect`` and ``y_effect`` are then the
    two signed effect sizes that the released code gives instead, each of a target set's scores with
    the attributes of X's category less those with the attributes of Y's. ``attributes`` has for
    ``Ax``, ``Ay``, ``Bx`` and ``By`` the mean cosine of every attribute with the targets of X and
    with those of Y, (n, 2), for :func:`biaslib.inference.exchange_test`. ``ddof`` is that of every
    standard deviation in the result.
    """

    experiment: int
    effect_size: float
    ddof: int
    x_scores: np.ndarray
    y_scores: np.ndarray
    x_other: np.ndarray | None = None
    y_other: np.ndarray | None = None
    x_effect: float | None = None
    y_effect: float | None = None
    attributes: dict[str, np.ndarray] | None = None


def grounded(
    X: ArrayLike,
    Y: ArrayLike,
    Ax: ArrayLike,
    Ay: ArrayLike,
    Bx: ArrayLike,
    By: ArrayLike,
    experiment: int,
    ddof: int = 1,
) -> GroundedResult:
    r"""Return one of the three grounded experiments.

    Experiment 1 (section 4.1) integrates the image out: all attributes for all targets,

    .. math:: s(w, A_x \cup A_y, B_x \cup B_y), \quad w \in X \cup Y.

    Experiment 2 (section 4.2) shows each target only the attributes of its own category,

    .. math:: s(x, A_x, B_x) \quad\text{and}\quad s(y, A_y, B_y).

    Both give the effect size of equation 3 on these scores. Experiment 3 (section 4.3) compares a
    target's own attributes with the other category's. The paper prints a statistic,

    .. math:: \tfrac12 \Bigl( \bigl| \textstyle\sum_x s(x, A_x, B_x) - \sum_x s(x, A_y, B_y) \bigr|
              + \bigl| \textstyle\sum_y s(y, A_y, B_y) - \sum_y s(y, A_x, B_x) \bigr| \Bigr),

    and no formula for its effect size. Ours divides the same with means in place of sums by the
    standard deviation over all :math:`2 (\lvert X \rvert + \lvert Y \rvert)` scores. The released
    code returns two signed effect sizes instead, each the mean of :math:`s(w, A_x, B_x)` less that
    of :math:`s(w, A_y, B_y)` over one target set, by the standard deviation of both
    (``weat_images_intra_targ.py:168-184`` of commit 1622980); they are ``x_effect`` and
    ``y_effect``.

    Parameters
    ----------
    X, Y
        Target embeddings, (n_x, d) and (n_y, d). They may differ in number, since each item is a
        caption with an image and the released sets are not balanced.
    Ax, Ay, Bx, By
        Attribute embeddings, (n, d) each.
    experiment
        1, 2 or 3.
    ddof
        What is taken from n in the divisor of every variance, 0 or 1; the released code takes 1.

    Returns
    -------
    GroundedResult

    Raises
    ------
    InputError
        As :func:`biaslib.metrics.association.cosines`; if there is no such experiment; or if the
        scores have no spread.

    Notes
    -----
    An absolute sum is positive even where nothing is to be found: judge Experiment 3 by
    :func:`biaslib.inference.exchange_test`, which exchanges attribute words, and not by its
    distance from 0. The released code's p-value is 1 whatever the data. Where a category's
    attribute images are the same for both targets (:math:`A_x = A_y, B_x = B_y`), Experiments 1
    and 2 are one and the same, and Experiment 3 is 0.

    Examples
    --------
    >>> man, woman = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> lawyer_man, lawyer_woman = [[1.0, 0.2]], [[0.9, 0.6]]
    >>> teacher_man, teacher_woman = [[0.6, 0.9]], [[0.2, 1.0]]
    >>> sets = man, woman, lawyer_man, lawyer_woman, teacher_man, teacher_woman
    >>> round(grounded(*sets, experiment=1).effect_size, 3)
    1.414
    >>> round(grounded(*sets, experiment=3).effect_size, 3)
    0.336
    """
    experiment, ddof = whole_number(experiment, "experiment", 1, 3), divisor(ddof)
    X, Y, Ax, Ay, Bx, By = unit_rows(X=X, Y=Y, Ax=Ax, Ay=Ay, Bx=Bx, By=By)
    if experiment == 1:
        A, B = np.concatenate([Ax, Ay]), np.concatenate([Bx, By])
        return _compared(1, association_of_units(X, A, B), association_of_units(Y, A, B), ddof)
    own = association_of_units(X, Ax, Bx), association_of_units(Y, Ay, By)
    other = association_of_units(X, Ay, By), association_of_units(Y, Ax, Bx)
    if experiment == 2:
        return _compared(2, *own, ddof, *other)
    near = {
        name: np.column_stack([cosines_of_units(rows, each).mean(axis=1) for each in (X, Y)])
        for name, rows in (("Ax", Ax), ("Ay", Ay), ("Bx", Bx), ("By", By))
    }
    return replace(_congruence(*own, *other, ddof), attributes=near)


def _compared(experiment, x_scores, y_scores, ddof, x_other=None, y_other=None) -> GroundedResult:
    require_spread(x_scores, y_scores)
    d = effect_size_of_scores(x_scores, y_scores, ddof, require_equal=False)
    return GroundedResult(experiment, d, ddof, x_scores, y_scores, x_other, y_other)


def _congruence(x_own, y_own, x_other, y_other, ddof) -> GroundedResult:
    require_spread(x_own, y_own, x_other, y_other)
    spread = np.concatenate([x_own, y_own, x_other, y_other]).std(ddof=ddof)
    x_shift, y_shift = x_own.mean() - x_other.mean(), y_own.mean() - y_other.mean()
    effect_size = float(0.5 * (abs(x_shift) + abs(y_shift)) / spread)
    # With X's attributes less with Y's: for X its own come first, for Y the other's.
    signed = _signed(x_own, x_other, ddof), _signed(y_other, y_own, ddof)
    return GroundedResult(3, effect_size, ddof, x_own, y_own, x_other, y_other, *signed)


def _signed(with_x, with_y, ddof) -> float:
    """Return the released code's effect size of one set; 0 where scores agree but for rounding."""
    if np.allclose(with_x, with_y, rtol=0.0, atol=64 * np.finfo(float).eps):
        return 0.0
    return effect_size_of_scores(with_x, with_y, ddof)
