"""Dual encoders: texts and images in one space."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from biaslib.capabilities import ENCODE
from biaslib.models.tokens import listed, require_apart
from biaslib.pictures.images import pictures
from biaslib.pictures.transforms import SIZES, ImageBatch, ImageTransform, image_batches
from biaslib.runtime.batches import autocast, rows_that_fit, run_in_batches

__all__ = ["ContrastiveEncoder", "unit_vectors"]


class ContrastiveEncoder:
    """Texts and images to unit vectors whose inner product says how well they fit.

    Parameters
    ----------
    encode_batch_of_texts
        A list of texts -> tensor (n, d).
    encode_batch_of_images
        Tensors by name, n rows each, as ``transform`` makes them of images -> tensor (n, d).
    scale
        What the model multiplies cosines with, exp(logit scale).
    name, revision
        What the stamp says of it.
    bias
        What the model adds to scaled cosines before it takes their sigmoid; 0 for models that
        compare captions by a softmax.
    transform
        What is done to pictures before the model takes them.
    token_counts
        Texts -> the tokens of each, (n,), which puts texts of like length together, and raises an
        error if a text is longer than the model takes.
    device
        Where the model runs.
    network
        What both encoders run.
    """

    capabilities = frozenset({ENCODE})
    one_at_a_time = False
    """Whether an answer would depend on the texts beside: ``biaslib.models.trial`` finds out."""

    def __init__(
        self,
        encode_batch_of_texts: Callable,
        encode_batch_of_images: Callable,
        scale: float,
        name: str,
        revision: str,
        *,
        bias: float,
        transform: ImageTransform,
        token_counts: Callable,
        device: str,
        network: torch.nn.Module | None = None,
    ) -> None:
        self.encode_batch_of_texts = encode_batch_of_texts
        self.encode_batch_of_images = encode_batch_of_images
        self.transform, self.token_counts = transform, token_counts
        self.scale, self.bias = scale, bias
        self.name, self.revision = name, revision
        self.device, self.network = device, network

    def encode_text(self, texts: Sequence[str], batch_size: int | None = None) -> np.ndarray:
        """Return one unit vector a text, (n, d), float32.

        Parameters
        ----------
        texts
            n texts.
        batch_size
            Texts a forward pass: 256, or more on a card with the memory for it. It is halved if
            memory does not suffice.

        Raises
        ------
        ValueError
            If there are no texts, a text is longer than the model takes (nothing is cut off), two
            texts of other words get one vector, or a planted checkpoint does not know a word.
        TypeError
            If ``texts`` is a single string.
        """
        texts = listed(texts)
        if not texts:
            raise ValueError("there are no texts to encode: the set is empty")
        lengths = self.token_counts(texts)

        def run(rows: np.ndarray) -> torch.Tensor:
            batch = [texts[row] for row in rows]
            return unit_vectors(self.device, self.encode_batch_of_texts, batch)

        size = 1 if self.one_at_a_time else batch_size or rows_that_fit(self.device, 256)
        vectors = run_in_batches(lengths, run, size, f"{self.name}: {len(texts):,} texts")
        require_apart(texts, map(bytes, vectors), self.name)
        return vectors

    def encode_image(self, images: Any, batch_size: int | None = None) -> np.ndarray:
        """Return one unit vector an image, (n, d), float32.

        Parameters
        ----------
        images
            As :func:`biaslib.pictures.images.pictures` takes them: paths, PIL images, uint8 arrays
            (height, width, 3), one array of many, or a frame of planted scenes.
        batch_size
            Images a forward pass: 128, or more on a card with the memory for it. It is halved if
            memory does not suffice.

        Raises
        ------
        ValueError
            If there are no images, or they come out of the image processor in different sizes.
        ImageError
            If a file cannot be used; the message names it.
        """
        size = batch_size or rows_that_fit(self.device, 128)
        return vectors_of_images(self, images, self.encode_batch_of_images, size)


def vectors_of_images(model: Any, images: Any, encode: Callable, batch_size: int) -> np.ndarray:
    """Return one unit vector an image, (n, d), of a model with a ``transform`` and a ``device``.

    ``encode`` takes tensors by name, as the transform makes them.
    """
    shown = pictures(images)
    if not len(shown):
        raise ValueError("there are no images: the list is empty")

    def load(planned: list[np.ndarray]) -> Iterator[ImageBatch]:
        return image_batches(shown, model.transform, planned, model.device)

    def run(batch: np.ndarray, loaded: ImageBatch) -> torch.Tensor:
        inputs = loaded.of(batch)
        if SIZES in inputs:
            raise ValueError(
                f"{model.name} takes pictures of one size, and its image processor makes them of "
                "different ones; have preprocessor_config.json resize both sides, or crop"
            )
        return unit_vectors(model.device, encode, inputs)

    label = f"{model.name}: {len(shown):,} images"
    return run_in_batches(np.ones(len(shown)), run, batch_size, label, load)


@torch.inference_mode()
def unit_vectors(device: str, encode: Callable[[Any], torch.Tensor], batch: Any) -> torch.Tensor:
    """Return what an encoder makes of a batch on a device, (n, d), each row of length 1."""
    with autocast(device):
        vectors = encode(batch)
    return torch.nn.functional.normalize(vectors.float(), dim=-1)
