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

All return NumPy arrays. ``embed``, ``encode_text`` and ``encode_image`` give one vector an item,
(n, d); ``embed`` of models that read both takes ``mask=`` too, what to hide
(:class:`biaslib.models.fusion.Mask`). ``mask_log_prob`` gives natural logarithms of k candidates'
probabilities at the one ``[MASK]`` of each of n texts, (n, k). ``match`` takes n images and n rows
of c captions, and gives logits or cosines, (n, c).

``images`` are paths, PIL images, arrays, a lazy sequence of arrays (h, w, 3)
(:class:`biaslib.pictures.images.Pictures`), region features where the family reads regions, or
frames of planted scenes, which every model takes: the oracle reads them, the others see them drawn.
"""

from collections.abc import Sequence
from typing import Any

from biaslib.errors import CapabilityError
from biaslib.runtime import unknown_name

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
    "require",
    "require_known",
]

NAMES = (
    EMBED := "embed texts",
    EMBED_WITH_IMAGES := "embed texts with images",
    FILL := "fill masks",
    FILL_WITH_IMAGES := "fill masks with images",
    ENCODE := "encode texts and images apart",
    UNIMODAL := "give unimodal vectors",
    MATCH := "match images and texts",
    LIKELIHOOD := "give likelihoods of texts",
    DETECT := "find regions of pictures",
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
    biaslib.errors.CapabilityError: bert cannot match images and texts. Its weights (...
    """
    require_known(wanted)
    can = getattr(model, "capabilities", ())
    lacking = [name for name in wanted if name not in can]
    if lacking:
        weights = f"Its weights ({getattr(model, 'revision', 'of no revision')}) can"
        raise CapabilityError(
            f"{getattr(model, 'name', model)} cannot {' or '.join(lacking)}. {weights}: "
            f"{', '.join(name for name in NAMES if name in can) or 'nothing that is asked here'}"
        )


def require_known(names: Sequence[str]) -> None:
    """Refuse names that are no capabilities, with the nearest that is one."""
    for name in names:
        if name not in NAMES:
            raise unknown_name("capability", name, NAMES)
