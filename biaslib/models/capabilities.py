"""What a model can do, as protocols: a study asks for a capability and never for a class.

``images`` are paths, PIL images, arrays, a lazy sequence of arrays (h, w, 3)
(:class:`biaslib.models.images.Pictures`), region features where the family reads regions, or frames
of planted scenes, which every model takes: the oracle reads them, the others see them drawn.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["CapabilityError", "DualEncoder", "GroundedEncoder", "ImageTextMatcher", "MaskedLM"]


class CapabilityError(ValueError):
    """A model that lacks what it was asked for: a method, or the head behind one.

    A study that goes through several models leaves such a model out and names it. Any other error
    of a model is a fault, of the model or of its input, and is not caught.
    """


@runtime_checkable
class GroundedEncoder(Protocol):
    """Embeds texts, alone or each with an image: study 1.

    Text encoders take no images. Models that read both also take ``mask=``, what to hide before
    embedding (:class:`biaslib.models.fusion.Mask`).
    """

    def embed(
        self, texts: Sequence[str], images: Any = None, level: str = "sentence", words: Any = None
    ) -> np.ndarray:
        """Return one embedding a text, (n, d)."""


@runtime_checkable
class DualEncoder(Protocol):
    """Embeds texts and images apart, so that products of the two are similarities: study 3."""

    def encode_text(self, texts: Sequence[str]) -> np.ndarray:
        """Return (n, d)."""

    def encode_image(self, images: Any) -> np.ndarray:
        """Return (n, d)."""


@runtime_checkable
class MaskedLM(Protocol):
    """Fills one ``[MASK]`` a text: study 2."""

    def mask_log_prob(
        self, texts: Sequence[str], candidates: Sequence[str], images: Any = None
    ) -> np.ndarray:
        """Return natural logarithms of the candidates' probabilities, (n, k)."""


@runtime_checkable
class ImageTextMatcher(Protocol):
    """Scores how well captions fit an image: study 4."""

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return logits or cosines of c captions of each of n images, (n, c)."""
