"""What the fusion models share that read pixels: how pictures come in."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from biaslib.models.dual import unit_vectors, vectors_of_images
from biaslib.models.fusion import FusionModel, Mask
from biaslib.models.tokens import require_apart
from biaslib.pictures.images import Pictures, pictures
from biaslib.pictures.transforms import (
    PIXELS,
    ImageBatch,
    ImageTransform,
    image_batches,
    of_processor,
    read_image_processor,
)
from biaslib.runtime.batches import rows_that_fit, run_in_batches

__all__ = ["PixelModel", "read_image_processor"]


class PixelModel(FusionModel):
    """A fusion model that takes whole pictures, prepared by its own image processor.

    Parameters
    ----------
    network, tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    processor
        The image processor of the checkpoint, or the transform itself.
    """

    def __init__(self, network, tokenizer, processor, name: str, revision: str, device: str):
        super().__init__(network, tokenizer, name, revision, device)
        self.processor = processor

    @functools.cached_property
    def transform(self) -> ImageTransform:
        """What is done to pictures before the network takes them."""
        ready = isinstance(self.processor, ImageTransform)
        return self.processor if ready else of_processor(self.processor)

    def prepare(self, images: Any) -> Pictures | None:
        """Return the images as a lazy sequence of pictures; None for none."""
        return None if images is None else pictures(images)

    def load(
        self, prepared: Pictures | None, planned: Sequence[np.ndarray], mask: Mask | None
    ) -> Iterator[ImageBatch]:
        """Yield the pixels of the pictures of each batch, read by workers ahead of the network."""
        if mask is not None and mask.persons:
            raise ValueError(
                f"{self.name} reads whole pictures and has no regions to hide; hide persons with a "
                "model of region features, or pass pictures without them"
            )
        if prepared is None:
            return (ImageBatch(images, {}) for images in planned)
        return image_batches(prepared, self.transform, planned, self.device)

    def vectors_of_texts(
        self, texts: Sequence[str], read: Callable[..., torch.Tensor], batch_size: int | None
    ) -> np.ndarray:
        """Return one unit vector a text, (n, d); ``read`` takes input_ids and attention_mask."""
        rows = self._tokens(texts)

        def run(batch: np.ndarray) -> torch.Tensor:
            tokens = self._inputs([rows[i].ids for i in batch])
            return unit_vectors(self.device, lambda inputs: read(**inputs), tokens)

        size = batch_size or rows_that_fit(self.device, 256)
        label = f"{self.name}: {len(rows):,} texts"
        vectors = run_in_batches([len(row.ids) for row in rows], run, size, label)
        require_apart([row.text for row in rows], map(bytes, vectors), self.name)
        return vectors

    def vectors_of_images(
        self, images: Any, read: Callable[[torch.Tensor], torch.Tensor], batch_size: int | None
    ) -> np.ndarray:
        """Return one unit vector a picture, (n, d); ``read`` takes pixels (n, 3, h, w)."""
        size = batch_size or rows_that_fit(self.device, self.batch_size)
        return vectors_of_images(self, images, lambda inputs: read(inputs[PIXELS]), size)
