"""What the fusion models share that read pixels: how pictures come in."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from biaslib.models._batches import run_in_batches
from biaslib.models._networks import LOCAL
from biaslib.models.dual import unit_vectors
from biaslib.models.fusion import FusionModel, Mask
from biaslib.models.images import Ahead, Pictures, pictures


class PixelModel(FusionModel):
    """A fusion model that takes whole pictures, prepared by its own image processor.

    Parameters
    ----------
    network, tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    processor
        The image processor of the checkpoint.
    """

    def __init__(self, network, tokenizer, processor, name: str, revision: str, device: str):
        super().__init__(network, tokenizer, name, revision, device)
        self.processor = processor

    def prepare(self, images: Any) -> Pictures | None:
        """Return the images as a lazy sequence of pictures; None for none."""
        return None if images is None else pictures(images)

    def ahead(self, prepared: Pictures | None, rows: np.ndarray) -> Ahead | None:
        """Have workers prepare the pictures in the order in which batches will ask for them."""
        return None if prepared is None else Ahead(prepared, OnePicture(self.processor), rows)

    def visual(
        self, prepared: Ahead | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return the pixels of the given pictures, smaller ones with zeros around.

        A picture that several texts of the batch share is prepared once.
        """
        if mask is not None and mask.persons:
            raise ValueError(
                f"{self.name} reads whole pictures and has no regions to hide; hide persons with a "
                "model of region features, or pass pictures without them"
            )
        if prepared is None:
            return {}
        different = list(dict.fromkeys(rows.tolist()))
        place = {row: number for number, row in enumerate(different)}
        pixels, shown = padded(prepared(different))
        places = [place[row] for row in rows.tolist()]
        return {"pixel_values": pixels[places], "pixel_mask": shown[places]}

    def vectors_of_texts(
        self, texts: Sequence[str], read: Callable[..., torch.Tensor], batch_size: int
    ) -> np.ndarray:
        """Return one unit vector a text, (n, d); ``read`` takes input_ids and attention_mask."""
        rows = self._tokens(texts)

        def run(batch: np.ndarray) -> torch.Tensor:
            return read(**self._on_device(self._padded([rows[i].ids for i in batch])))

        return self._unit_vectors([len(row.ids) for row in rows], run, batch_size, "texts")

    def vectors_of_images(
        self, images: Any, read: Callable[[torch.Tensor], torch.Tensor], batch_size: int
    ) -> np.ndarray:
        """Return one unit vector a picture, (n, d); ``read`` takes pixels (n, 3, h, w)."""
        seen = pictures(images)
        prepared = self.ahead(seen, np.arange(len(seen)))

        def run(batch: np.ndarray) -> torch.Tensor:
            return read(self._on_device(self.visual(prepared, batch, None))["pixel_values"])

        return self._unit_vectors(np.ones(len(seen)), run, batch_size, "images")

    def _unit_vectors(self, lengths, run: Callable, batch_size: int, what: str) -> np.ndarray:
        label = f"{self.name}: {len(lengths):,} {what}"
        read = functools.partial(unit_vectors, self.device, run)
        return run_in_batches(lengths, read, batch_size, label)


@dataclass(frozen=True)
class OnePicture:
    """A picture, uint8 (h, w, 3), as a checkpoint's image processor makes it, alone.

    Parameters
    ----------
    processor
        An image processor of transformers.
    whole
        Whether what it says beside the pixels is kept.
    """

    processor: Any
    whole: bool = False

    def __call__(self, picture: np.ndarray) -> np.ndarray | dict[str, np.ndarray]:
        """Return the pixels, (3, height, width), or all that there is, by name."""
        inputs = self.processor(images=[picture], return_tensors="np")
        if self.whole and len(inputs) > 1:
            return {name: each[0] for name, each in inputs.items()}
        return inputs["pixel_values"][0]


def padded(images: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pictures of any sizes as one tensor, and where they are in it.

    Parameters
    ----------
    images
        n arrays (3, h, w).

    Returns
    -------
    tuple of torch.Tensor
        Pixels (n, 3, height, width), each picture at the upper left with zeros around, and a mask
        (n, height, width), 1 where the picture is.

    Examples
    --------
    >>> pixels, mask = padded([np.ones((3, 1, 2), np.float32), np.ones((3, 2, 1), np.float32)])
    >>> pixels.shape, mask.tolist()
    (torch.Size([2, 3, 2, 2]), [[[1, 1], [0, 0]], [[1, 0], [1, 0]]])
    """
    height, width = (max(image.shape[side] for image in images) for side in (1, 2))
    pixels = torch.zeros(len(images), 3, height, width)
    shown = torch.zeros(len(images), height, width, dtype=torch.long)
    for row, image in enumerate(images):
        pixels[row, :, : image.shape[1], : image.shape[2]] = torch.as_tensor(image)
        shown[row, : image.shape[1], : image.shape[2]] = 1
    return pixels, shown


def read_image_processor(folder: Path) -> Any:
    """Return the image processor of a folder, the one made with Pillow.

    The published models were trained and scored on pictures that Pillow made smaller; torchvision's
    resizing gives slightly other pixels.
    """
    return transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **LOCAL)
