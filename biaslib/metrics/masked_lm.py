r"""Association in masked language modelling: Srinivasan and Bisk (2021), Section 3.2 and Table 1.

A model fills the masked entity E of a caption such as "The person is drinking [MASK]". Its
probability with a gendered agent g, in the caption or in the image, is held against a
probability without:

.. math:: S(E, g) = \ln \frac{P(E \mid g)}{P(E \mid g_N)}

The paper's equations carry no numbers. Its three sources of association differ in what is
replaced:

========= ============================= ================================ =====================
score     P(E | g)                      P(E | g_N)                       average over images
========= ============================= ================================ =====================
``S_PT``  VL-BERT, caption with g       BERT, the same caption           none, no image is shown
``S_L``   image, caption with g         the same image, "person"         mean of log ratios
``S_V``   image with g, "person"        no image, "person"               log of mean probability
========= ============================= ================================ =====================

Everything is a natural logarithm: a score of 0.69 says that the probability doubled. Genders are
named m and f as in the paper. Shapes: n images, r sets of weights.

Notes
-----
Where the paper leaves a choice, the choice made here:

* ``S_V`` averages probabilities and then takes the logarithm, as Table 1 and the definition of
  :math:`\hat P_{VL}` say; ``S_L`` averages logarithms. The two orders differ (Jensen's inequality).
* Section 4.4 writes :math:`S_V(E, u)` with a symbol u that is not defined anywhere (erratum D3);
  the caption of Figure 4, which it speaks of, has :math:`S_V(E, m/f)`. u is read as the gender g
  of the person in the image; the caption says "person" throughout, as in Table 1.
* What "no image" feeds the model is not stated. Here it is one number, given by the caller.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from biaslib.errors import InputError
from biaslib.metrics.inputs import (
    made_by,
    real_numbers,
    refused,
    require_length,
    weight_columns,
)

__all__ = [
    "AssociationScore",
    "BiasScore",
    "bias_score",
    "language_association",
    "pretraining_shift",
    "visual_association",
]


@dataclass(frozen=True)
class AssociationScore:
    r"""A score S(E, g) with what each image adds to it.

    Attributes
    ----------
    name
        ``"S_PT"``, ``"S_L"`` or ``"S_V"``.
    score
        The score, in natural logarithms.
    contributions
        Log ratio of each image (or caption), (n,). ``S_PT`` and ``S_L`` are their mean; ``S_V``
        is the logarithm of the mean of their exponentials.
    log_probabilities
        Natural logarithms of the probabilities with the gendered agent, (n,).
    log_normaliser
        Natural logarithms of the probabilities without: (n,), or one number for ``S_V``.
    """

    name: str
    score: float
    contributions: np.ndarray
    log_probabilities: np.ndarray
    log_normaliser: np.ndarray | float

    @property
    def n(self) -> int:
        """Number of images (captions for ``S_PT``)."""
        return len(self.contributions)

    @property
    def probabilities(self) -> np.ndarray:
        """Probability of the entity in each image with the gendered agent, (n,)."""
        return np.exp(self.log_probabilities)

    def reweighted(self, weights: ArrayLike) -> float | np.ndarray:
        r"""Return the score with image i counted :math:`w_i` times, as a bootstrap needs it.

        .. math:: S_L = \frac{\sum_i w_i c_i}{\sum_i w_i}, \qquad
                  S_V = \ln \frac{\sum_i w_i e^{c_i}}{\sum_i w_i}

        with the contributions :math:`c_i`; ``S_PT`` as ``S_L``.

        Parameters
        ----------
        weights
            Not negative, (n,) or (n, r) for r resamples at once.

        Returns
        -------
        float or numpy.ndarray
            (r,) for weights (n, r). NaN where all weights are zero: an average over no image.

        Raises
        ------
        InputError
            If the weights do not fit the images, are negative, or are not finite.

        Examples
        --------
        >>> score = language_association(np.log([0.2, 0.4]), np.log([0.1, 0.1]))
        >>> np.exp(score.reweighted([[1, 0], [0, 2]])).round(3)
        array([2., 4.])
        """
        return self._reweighted(*weight_columns(weights, self.n))

    def _reweighted(self, columns: np.ndarray, single: bool) -> float | np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = _AVERAGES[self.name](self.contributions, columns)
        return float(values[0]) if single else values


@dataclass(frozen=True)
class BiasScore:
    """A bias score B(E) with the two association scores it is the difference of.

    Attributes
    ----------
    score
        S(E, f) - S(E, m): above 0 towards women, below 0 towards men.
    f, m
        The association scores.
    """

    score: float
    f: AssociationScore
    m: AssociationScore

    def reweighted(
        self, f_weights: ArrayLike, m_weights: ArrayLike | None = None
    ) -> float | np.ndarray:
        """Return the bias score with the images counted as often as the weights say.

        Parameters
        ----------
        f_weights
            Weights of the images behind ``f``, (n_f,) or (n_f, r).
        m_weights
            Weights of the images behind ``m``. By default those of ``f``: right for ``S_L``, where
            both captions are given to the same images, and wrong for ``S_V``, where women and men
            are shown in different ones.

        Returns
        -------
        float or numpy.ndarray
            (r,) for r sets of weights.

        Raises
        ------
        InputError
            As :meth:`AssociationScore.reweighted`; and for ``S_V`` without ``m_weights``.

        Examples
        --------
        >>> f = language_association(np.log([0.2, 0.4]), np.log([0.1, 0.1]))
        >>> m = language_association(np.log([0.1, 0.1]), np.log([0.1, 0.1]))
        >>> round(bias_score(f=f, m=m).reweighted([1, 0]), 3)
        0.693
        """
        if m_weights is None and self.f.name == "S_V":
            raise refused("m_weights", "is missing: S_V shows women and men in different images")
        name = "f_weights" if m_weights is None else "m_weights"
        other = weight_columns(f_weights if m_weights is None else m_weights, self.m.n, name)
        own = weight_columns(f_weights, self.f.n, "f_weights")
        return self.f._reweighted(*own) - self.m._reweighted(*other)


def pretraining_shift(log_p_vl: ArrayLike, log_p_l: ArrayLike) -> AssociationScore:
    r"""Return how much pre-training on images and text shifted an entity towards a gender.

    Srinivasan and Bisk (2021), Table 1, first row, and Section 3.2, item 1:

    .. math:: S_{PT}(E, g) = \ln \frac{P_{VL}(E \mid g)}{P_L(E \mid g)}

    No image is shown to either model. The paper has one caption an entity; with several, the mean
    of their log ratios is returned.

    Parameters
    ----------
    log_p_vl
        Natural logarithms of the vision-language model's probabilities of E in the caption with
        the gendered agent: a number, or (n,) for n captions.
    log_p_l
        Those of the text-only model for the same captions.

    Returns
    -------
    AssociationScore

    Raises
    ------
    InputError
        If the shapes differ, nothing is given, or a row holds NaN, the logarithm of a probability
        of zero, or a number above 0.

    Examples
    --------
    >>> round(pretraining_shift(np.log(0.02), np.log(0.01)).score, 4)
    0.6931
    """
    return _mean_of_log_ratios("S_PT", log_p_vl, log_p_l, ("log_p_vl", "log_p_l"))


def language_association(log_p_gendered: ArrayLike, log_p_neutral: ArrayLike) -> AssociationScore:
    r"""Return how much naming the gender in the caption raises the entity's probability.

    Srinivasan and Bisk (2021), Section 3.2, item 2, and Table 1, second row:

    .. math:: S_L(E, g) = \operatorname{mean}_{I \in I_E}
                          \ln \frac{P_{VL}(E \mid g, I)}{P_{VL}(E \mid p, I)}

    with "person" (p) in place of the gendered agent. Section 5 uses the same score without images;
    then one number each is given.

    Parameters
    ----------
    log_p_gendered
        Natural logarithms of the probabilities of E with "man" or "woman" in the caption, (n,).
    log_p_neutral
        Those with "person", for the same images in the same order, (n,).

    Returns
    -------
    AssociationScore

    Raises
    ------
    InputError
        As :func:`pretraining_shift`.

    Examples
    --------
    >>> score = language_association(np.log([0.4, 0.1]), np.log([0.1, 0.2]))
    >>> score.contributions.round(3), round(score.score, 3)
    (array([ 1.386, -0.693]), 0.347)
    """
    names = ("log_p_gendered", "log_p_neutral")
    return _mean_of_log_ratios("S_L", log_p_gendered, log_p_neutral, names)


def visual_association(log_p_images: ArrayLike, log_p_no_image: float) -> AssociationScore:
    r"""Return how much images with a person of one gender raise the entity's probability.

    Srinivasan and Bisk (2021), Section 3.2, item 3, and Table 1, third row:

    .. math:: S_V(E, g) = \ln \frac{\hat P_{VL}(E \mid I_g)}{P_{VL}(E)}, \qquad
              \hat P_{VL}(E \mid I_g) = \operatorname{mean}_{I \in I_g} P_{VL}(E \mid I)

    The mean is over probabilities, and its logarithm is taken afterwards; it is computed without
    leaving the logarithms, so that probabilities too small for a float do not vanish.

    Parameters
    ----------
    log_p_images
        Natural logarithms of the probabilities of E with "person" in the caption, one for each
        image of a person of gender g, (n,).
    log_p_no_image
        Natural logarithm of the probability for the same caption without an image: one number.

    Returns
    -------
    AssociationScore

    Raises
    ------
    InputError
        As :func:`pretraining_shift`; and if ``log_p_no_image`` is not one number.

    Examples
    --------
    >>> round(visual_association(np.log([0.3, 0.1]), np.log(0.1)).score, 4)
    0.6931
    """
    log_p = _log_probabilities(log_p_images, "log_p_images")
    base = _log_probabilities(log_p_no_image, "log_p_no_image")
    if base.size != 1:
        raise refused(
            "log_p_no_image",
            f"holds {base.size} numbers; without an image there is one caption and so one number",
        )
    contributions = log_p - base[0]
    score = float(_log_mean_exp(contributions, np.ones((len(log_p), 1)))[0])
    return AssociationScore("S_V", score, contributions, log_p, float(base[0]))


def bias_score(*, f: AssociationScore, m: AssociationScore) -> BiasScore:
    r"""Return the gender bias of an entity: women's association score less men's.

    Srinivasan and Bisk (2021), Section 3.2, last equation:

    .. math:: B(E) = S(E, f) - S(E, m)

    "Positive for 'female,' negative for 'male.'" For ``S_L`` over the same images the neutral
    probability cancels (Section 5): B is the mean of
    :math:`\ln P(E \mid f, I) / P(E \mid m, I)`.

    Parameters
    ----------
    f, m
        The same score for women and for men; by name, since the sign depends on it.

    Returns
    -------
    BiasScore

    Raises
    ------
    InputError
        If the two scores are of different kinds, ``S_L`` or ``S_PT`` rest on different numbers of
        images, or the neutral probabilities of ``S_L`` or ``S_V`` are not the same.

    Examples
    --------
    >>> f = visual_association(np.log([0.3, 0.1]), np.log(0.1))
    >>> m = visual_association(np.log([0.1, 0.1]), np.log(0.1))
    >>> round(bias_score(f=f, m=m).score, 4)
    0.6931
    """
    for name, score in (("f", f), ("m", m)):
        made_by(score, name, AssociationScore, "an AssociationScore")
    if f.name != m.name:
        raise InputError(
            f"f is a score {f.name} and m a score {m.name}: compare scores of one kind"
        )
    if f.name != "S_V" and f.n != m.n:
        raise InputError(
            f"{f.name} rests on {f.n} images for f and {m.n} for m; use the same images"
        )
    if f.name != "S_PT" and not np.array_equal(f.log_normaliser, m.log_normaliser):
        raise InputError(
            f"the neutral probabilities of {f.name} are not the same for f and m, which an entity "
            "has but once; pass both the same ones"
        )
    return BiasScore(f.score - m.score, f, m)


def _mean_of_log_ratios(name, log_p, log_base, argument_names) -> AssociationScore:
    first, second = (
        _log_probabilities(each, argument)
        for each, argument in zip((log_p, log_base), argument_names, strict=True)
    )
    require_length(second, first.size, argument_names[1], f"in {argument_names[0]}")
    contributions = first - second
    return AssociationScore(name, float(contributions.mean()), contributions, first, second)


def _log_probabilities(values: ArrayLike, name: str) -> np.ndarray:
    logs = real_numbers(values, name, "one number an image", (0, 1), finite=False)
    logs = np.atleast_1d(logs)
    _refuse_rows(np.isnan(logs), name, "is not a number")
    _refuse_rows(logs == -np.inf, name, "is the logarithm of a probability of zero")
    _refuse_rows(
        logs > 0,
        name,
        "is above 0, a probability above 1; are these probabilities, not logarithms?",
    )
    return logs


def _refuse_rows(bad: np.ndarray, name: str, reason: str) -> None:
    if bad.any():
        raise refused(name, reason, int(np.flatnonzero(bad)[0]))


def _weighted_mean(contributions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return contributions @ weights / weights.sum(axis=0)


def _log_mean_exp(contributions: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=0)
    return np.where(
        total > 0, logsumexp(contributions[:, None], b=weights, axis=0) - np.log(total), np.nan
    )


_AVERAGES = {"S_PT": _weighted_mean, "S_L": _weighted_mean, "S_V": _log_mean_exp}
