"""Tests for grounded experiments: which null is which."""

from dataclasses import replace

import numpy as np

from biaslib.inference._permutation import (
    PermutationResult,
    permutation_test,
    refuse_shared_labels,
    units,
)
from biaslib.inference._sign_sums import ExchangeResult, absolute_sums
from biaslib.metrics.grounded import GroundedResult
from biaslib.metrics.inputs import in_scale, require_finite

NULLS = ("fixed scores", "new attributes")


def grounded_permutation_test(
    result: GroundedResult, null: str = "fixed scores", **settings
) -> PermutationResult:
    r"""Test a grounded Experiment 1 or 2 by relabelling its targets.

    ``"fixed scores"`` deals out the scores as they are, which is what the paper describes. In
    Experiment 2 a score carries its category's attributes along: it also reacts to :math:`A_x`
    differing from :math:`A_y`, even if every target were embedded alike. ``"new attributes"``
    gives a relabelled target the attributes of its new label. The statistic of a relabelling
    :math:`(X', Y')` is then

    .. math:: \operatorname{mean}_{w \in X'} s(w, A_x, B_x)
              - \operatorname{mean}_{w \in Y'} s(w, A_y, B_y)
              = \sum_{w \in X'} u(w) - \text{const}, \quad
              u(w) = \frac{s(w, A_x, B_x)}{n_x} + \frac{s(w, A_y, B_y)}{n_y},

    so that it is a permutation test of the sums u.

    Parameters
    ----------
    result
        Of :func:`biaslib.metrics.grounded.grounded`, Experiment 1 or 2.
    null
        ``"fixed scores"`` or ``"new attributes"`` (Experiment 2).
    settings
        As :func:`permutation_test`.

    Returns
    -------
    PermutationResult

    Raises
    ------
    ValueError
        If the null is unknown or does not fit the experiment.

    Examples
    --------
    >>> scores = np.array([0.3, 0.2]), np.array([-0.1, 0.1])
    >>> result = GroundedResult(1, 1.5, 1, *scores)
    >>> grounded_permutation_test(result).p_value
    0.16666666666666666
    """
    if null not in NULLS:
        raise ValueError(f"null {null!r} is not one of {', '.join(NULLS)}")
    if result.experiment == 3:
        raise ValueError("Experiment 3 is tested by exchange_test, which exchanges attribute sets")
    if null == "fixed scores":
        return permutation_test(result.x_scores, result.y_scores, **settings)
    if result.x_other is None:
        raise ValueError("in Experiment 1 every target has all attributes: use 'fixed scores'")
    clusters = [settings.pop(f"clusters_{side}", None) for side in "xy"]
    if not any(each is None for each in clusters):
        refuse_shared_labels(*clusters)
    own, other = (
        [units(*each) for each in zip(both, clusters, "XY", strict=True)]
        for both in ((result.x_scores, result.y_scores), (result.x_other, result.y_other))
    )
    n_x, n_y = own[0].size, own[1].size
    # With sets of equal size the plain sums.
    of_x, of_y = 2 * n_y / (n_x + n_y), 2 * n_x / (n_x + n_y)
    x = of_x * own[0] + of_y * other[0]
    y = of_x * other[1] + of_y * own[1]
    found = permutation_test(x, y, **settings)
    return replace(found, statistic=float(own[0].mean() - own[1].mean()))


def exchange_test(result: GroundedResult) -> ExchangeResult:
    r"""Test Experiment 3 by exchanging each target's own and other attribute sets.

    Under the null that the images do not matter, a target's score with its own attributes and
    with the other category's could as well be exchanged. With
    :math:`\delta_w = s_{\text{own}}(w) - s_{\text{other}}(w)` and signs
    :math:`\varepsilon_w = \pm 1` the statistic is

    .. math:: \tfrac12 \Bigl( \bigl| \textstyle\sum_x \varepsilon_x \delta_x \bigr|
              + \bigl| \textstyle\sum_y \varepsilon_y \delta_y \bigr| \Bigr)

    and p the share of all sign patterns that reach the observed one. A relabelling of targets
    would not do: the statistic is an absolute sum, positive under the null as well. Nothing is
    sampled: the two absolute sums are independent, and the distribution of each is listed or built
    up on a lattice.

    Parameters
    ----------
    result
        Of :func:`biaslib.metrics.grounded.grounded`, Experiment 3.

    Returns
    -------
    ExchangeResult
        Exact up to 16 targets a side, and where shifts are multiples of a step; otherwise with
        proven bounds.

    Raises
    ------
    ValueError
        If the result is not of Experiment 3, or a score is not finite.

    Examples
    --------
    >>> own, other = np.array([0.4, 0.3]), np.array([0.1, 0.1])
    >>> result = GroundedResult(3, 1.0, 1, own, own, other, other)
    >>> exchange_test(result).p_value  # 2 of 4 sign patterns a side
    0.25
    """
    if result.experiment != 3:
        raise ValueError(f"exchange_test is for Experiment 3, this is {result.experiment}")
    x, y = result.x_scores - result.x_other, result.y_scores - result.y_other
    require_finite("score", x, y)
    both, exponent = in_scale(np.concatenate([x, y]))
    x, y = both[: x.size], both[x.size :]
    observed, total = abs(x.sum()) + abs(y.sum()), np.abs(both).sum()
    first, second = absolute_sums(x), absolute_sums(y)

    def reached(least: float) -> float:
        """Return the share of pairs of sign patterns whose two absolute sums reach a sum."""
        return first.shares @ second.tail(least - first.sums)

    statistic = np.ldexp(0.5 * observed, exponent)
    sides, n_exchanges = [first, second], 2 ** (x.size + y.size)
    return ExchangeResult.of(reached, observed, total, sides, n_exchanges, statistic)
