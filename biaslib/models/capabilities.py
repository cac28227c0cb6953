"""What a model can do, by name: a study asks for a capability and never for a class.

Every model has an attribute ``capabilities``, a set of these names, which its adapter makes of the
heads that were loaded; the registry says the same of the published weights before they are loaded.
A class of one's own needs the attribute and the methods.

===================================  =======================================  =================
Name                                 Method                                   Used by
===================================  =======================================  =================
``embed texts``                      ``embed(texts, None, level, words)``     study 1
``embed texts with images``          ``embed(texts, images, level, words)``   study 1
``fill masks``                       ``mask_log_prob(texts, candidates)``     study 2
``fill masks with images``           ``mask_log_prob(..., images)``           study 2
``encode texts and images apart``    ``encode_text``, ``encode_image``        studies 3 and 4
``give unimodal vectors``            these with ``encoder="unimodal"``        study 4
``match images and texts``           ``match(images, texts)``                 study 4
``give likelihoods of texts``        ``log_likelihood(images, texts)``        one's own
``find regions of pictures``         ``regions(images)``                      region models
===================================  =======================================  =================

``images`` are paths, PIL images, arrays, a lazy sequence of arrays (h, w, 3)
(:class:`biaslib.models.images.Pictures`), region features where the family reads regions, or frames
of planted scenes, which every model takes: the oracle reads them, the others see them drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from biaslib.models.errors import CapabilityError
from biaslib.runtime import unknown_name

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "DETECT",
    "EMBED",
    "EMBED_WITH_IMAGES",
    "ENCODE",
    "FILL",
    "FILL_WITH_IMAGES",
    "LIKELIHOOD",
    "MATCH",
    "NAMES",
    "UNIMODAL",
    "CapabilityError",
    "DualEncoder",
    "GroundedEncoder",
    "ImageTextMatcher",
    "MaskedLM",
    "require",
    "require_known",
]

EMBED = "embed texts"
EMBED_WITH_IMAGES = "embed texts with images"
FILL = "fill masks"
FILL_WITH_IMAGES = "fill masks with images"
ENCODE = "encode texts and images apart"
UNIMODAL = "give unimodal vectors"
MATCH = "match images and texts"
LIKELIHOOD = "give likelihoods of texts"
DETECT = "find regions of pictures"

NAMES = (
    *(EMBED, EMBED_WITH_IMAGES, FILL, FILL_WITH_IMAGES, ENCODE, UNIMODAL, MATCH, LIKELIHOOD),
    DETECT,
)
"""All capabilities that there are."""


def require(model: Any, *wanted: str) -> None:
    """Refuse a model that lacks a capability.

    Parameters
    ----------
    model
        With ``capabilities``; a model without that attribute has none.
    wanted
        Of :data:`NAMES`.

    Raises
    ------
    CapabilityError
        If the model lacks one; the message names it, and what the model can do.
    UnknownNameError
        If there is no such capability.

    Examples
    --------
    >>> from biaslib import models
    >>> bert = models.load("bert", dose=3, seed=0)
    >>> require(bert, "fill masks")
    >>> require(bert, "match images and texts")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    biaslib.models.errors.CapabilityError: bert cannot match images and texts. Its weights (...
    """
    require_known(wanted)
    there = getattr(model, "capabilities", ())
    lacking = [each for each in wanted if each not in there]
    if lacking:
        weights = f"Its weights ({getattr(model, 'revision', 'of no revision')}) can"
        raise CapabilityError(
            f"{getattr(model, 'name', model)} cannot {' or '.join(lacking)}. {weights}: "
            f"{', '.join(each for each in NAMES if each in there) or 'nothing that is asked here'}"
        )


def require_known(names: Sequence[str]) -> None:
    """Refuse names that are no capabilities, with the nearest that is one."""
    for each in names:
        if each not in NAMES:
            raise unknown_name("capability", each, NAMES)


class GroundedEncoder(Protocol):
    """Embeds texts, alone or each with an image: study 1.

    Text encoders take no images. Models that read both also take ``mask=``, what to hide before
    embedding (:class:`biaslib.models.fusion.Mask`).
    """

    capabilities: frozenset[str]

    def embed(
        self, texts: Sequence[str], images: Any = None, level: str = "sentence", words: Any = None
    ) -> "np.ndarray":
        """Return one embedding a text, (n, d)."""


class DualEncoder(Protocol):
    """Embeds texts and images apart, so that products of the two are similarities: study 3."""

    capabilities: frozenset[str]

    def encode_text(self, texts: Sequence[str]) -> "np.ndarray":
        """Return (n, d)."""

    def encode_image(self, images: Any) -> "np.ndarray":
        """Return (n, d)."""


class MaskedLM(Protocol):
    """Fills one ``[MASK]`` a text: study 2."""

    capabilities: frozenset[str]

    def mask_log_prob(
        self, texts: Sequence[str], candidates: Sequence[str], images: Any = None
    ) -> "np.ndarray":
        """Return natural logarithms of the candidates' probabilities, (n, k)."""


class ImageTextMatcher(Protocol):
    """Scores how well captions fit an image: study 4."""

    capabilities: frozenset[str]

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> "np.ndarray":
        """Return logits or cosines of c captions of each of n images, (n, c)."""
