"""Dual encoders: texts and images in one space."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from biaslib.runtime import progress

__all__ = ["ContrastiveEncoder"]


class ContrastiveEncoder:
    """Texts and images to unit vectors whose inner product says how well they fit.

    Parameters
    ----------
    encode_batch_of_texts
        A list of texts -> tensor (n, d).
    encode_batch_of_images
        Images, uint8 (n, height, width, 3) -> tensor (n, d).
    scale
        What the model multiplies cosines with, exp(logit scale).
    name, revision
        What the stamp says of it.
    """

    def __init__(
        self,
        encode_batch_of_texts: Callable,
        encode_batch_of_images: Callable,
        scale: float,
        name: str,
        revision: str,
    ) -> None:
        self._texts, self._images = encode_batch_of_texts, encode_batch_of_images
        self.scale = scale
        self.name, self.revision = name, revision

    def encode_text(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        """Return one unit vector a text, (n, d), float32.

        Raises
        ------
        ValueError
            If there are no texts, or a planted checkpoint does not know a word.
        """
        if isinstance(texts, str):
            raise TypeError(f"texts is one string; pass a list of texts: [{texts!r}]")
        return self._encode(self._texts, list(texts), batch_size, "texts")

    def encode_image(self, images: np.ndarray, batch_size: int = 128) -> np.ndarray:
        """Return one unit vector an image, (n, d), float32.

        Parameters
        ----------
        images
            uint8, (n, height, width, 3).
        batch_size
            Images a forward pass.

        Raises
        ------
        ValueError
            If there are no images.
        """
        return self._encode(self._images, images, batch_size, "images")

    @torch.inference_mode()
    def _encode(self, encode: Callable, items, batch_size: int, what: str) -> np.ndarray:
        if not len(items):
            raise ValueError(f"there are no {what} to encode: the set is empty")
        starts = range(0, len(items), batch_size)
        label = f"{self.name}: {len(items):,} {what}"
        batches = [
            encode(items[start : start + batch_size])
            for start in (progress(starts, label) if len(starts) > 4 else starts)
        ]
        vectors = torch.cat(batches).float()
        return torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy()
