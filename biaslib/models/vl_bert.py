"""VL-BERT: words and image regions in one transformer; masked words, with an image or without.

Reference: Su, Zhu, Cao, Li, Lu, Wei and Dai (2020), *VL-BERT: Pre-training of Generic
Visual-Linguistic Representations*. The network: :mod:`biaslib.models.networks.vl_bert`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from biaslib.models._entries import Entry
from biaslib.models._networks import read_own
from biaslib.models._pixels import padded
from biaslib.models._region_model import RegionModel, hidden_regions
from biaslib.models.capabilities import EMBED, FILL, MATCH
from biaslib.models.fusion import Mask, Output
from biaslib.models.global_region import with_whole_image
from biaslib.models.images import pictures
from biaslib.models.networks import vl_bert as networks
from biaslib.models.networks.resnet_roi import PIXEL_MEANS
from biaslib.models.regions import RegionFeatures

__all__ = ["Pictured", "VlBert", "VlBertFromPixels", "load", "pixel_boxes", "resized", "whole_box"]

SHORT_SIDE, LONG_SIDE = 600, 1000
"""Pixels to which the authors resize an image: its short side, unless the long one gets longer."""


class VlBert(RegionModel):
    """VL-BERT on features of image regions: embeddings and masked words.

    - The whole image is put before the regions, with the mean of their features; its
      representation stands beside every word. Where an image has no region, the mean is zero.
    - Without an image (``images=None``) there are no regions, and what the model learned in place
      of the image stands beside every word: a text as it was trained on text alone. A network that
      was not trained so (``base-prec-withouttextonly``) refuses.
    - Boxes are read in pixels of the resized image.
    - A hidden region has features of zero and a box of zero, as in the released code of Ross, Katz
      and Barbu (2021), and does not count in the whole image's mean.
    - There is no head that says whether a text fits an image.

    Parameters
    ----------
    network
        A :class:`biaslib.models.networks.vl_bert.VlBertNetwork` that takes features.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    hides_boxes = True
    width_setting = "feature_size"

    def __init__(self, network, tokenizer, name: str, revision: str, device: str):
        super().__init__(network, tokenizer, name, revision, device)
        self.max_tokens = min(self.max_tokens, network.config.max_position_embeddings - 2)
        alone = set() if network.config.text_only else {EMBED, FILL}
        self.capabilities = self.capabilities - alone - {MATCH}

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features, boxes in pixels, which regions are real, and the images' sizes."""
        if prepared is None:
            return {}
        found = super().visual(prepared, rows, mask)
        counted = found["real"] & ~torch.as_tensor(hidden_regions(prepared, rows, mask))
        original = torch.as_tensor(prepared.sizes[rows])
        sizes = resized(original)
        found["boxes"] = pixel_boxes(found["boxes"], sizes)
        whole = whole_box(original, sizes)[:, 0]
        return {**with_whole_image(found, counted, whole), "sizes": sizes}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch: words alone, or words and regions."""
        return Output(self.network(**tokens, **visual).text)

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.word_logits(states)


class Pictured:
    """Pictures with the regions that were found in them.

    Parameters
    ----------
    images
        n pictures, in any form of the package's.
    regions
        Their regions; the features are not read and may be zero numbers wide.

    Raises
    ------
    ValueError
        If they differ in number.
    """

    def __init__(self, images: Any, regions: RegionFeatures):
        self.pictures, self.regions = pictures(images), regions
        if len(self.pictures) != len(regions):
            raise ValueError(
                f"there are {len(self.pictures)} pictures and regions of {len(regions)}; give both "
                "for each"
            )

    def __len__(self) -> int:
        return len(self.regions)

    def picture(self, row: int) -> np.ndarray:
        """Return a picture, uint8 (h, w, 3), of the size that its regions speak of."""
        found, size = self.pictures[row], tuple(self.regions.sizes[row].tolist())
        if found.shape[1::-1] != size:
            raise ValueError(
                f"picture {row} is {found.shape[1]} x {found.shape[0]} pixels and its regions are "
                f"of one of {size[0]} x {size[1]}; find the regions in the same file"
            )
        return found


class VlBertFromPixels(VlBert):
    """VL-BERT that reads pixels: it takes from each box what its own ResNet sees there.

    As :class:`VlBert`, but for this: the whole image's representation comes from its pixels, and a
    hidden region is blank, keeps its box, and has the word that masked regions had in training.

    Parameters
    ----------
    network
        A :class:`biaslib.models.networks.vl_bert.VlBertNetwork` that takes pixels.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    batch_size = 1
    """One image at a time: beside a larger one, it would get a margin that its borders notice."""

    reads_pixels = True

    def prepare(self, images: Any) -> Pictured | None:
        """Return pictures with their regions.

        Parameters
        ----------
        images
            Pictures in any form of the package's, in which the detector finds the regions;
            :class:`Pictured`, which brings them; a frame of planted scenes; ``None`` for none.

        Raises
        ------
        ValueError, TypeError, ImageError
            As of :meth:`biaslib.models._region_model.RegionModel.prepare`.
        """
        if images is None or isinstance(images, Pictured):
            return images
        return Pictured(images, self.regions_of(images))

    def _require_width(self, width: int, whose: str) -> None:
        """Take boxes with features of any width, which are not read."""

    def visual(
        self, prepared: Pictured | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return pixels, boxes, which regions are real or hidden, and the images' sizes."""
        if prepared is None:
            return {}
        regions = prepared.regions[rows]
        real = torch.as_tensor(regions.real)
        hidden = real & torch.as_tensor(hidden_regions(prepared.regions, rows, mask))
        original = torch.as_tensor(regions.sizes)
        sizes = resized(original)
        shown = torch.where(real[..., None], torch.as_tensor(regions.boxes), 0)
        boxes = pixel_boxes(shown, sizes)
        images = [
            read_pixels(prepared.picture(row), size, blank[out])
            for row, size, blank, out in zip(rows.tolist(), sizes, boxes, hidden, strict=True)
        ]
        none = torch.zeros_like(hidden[:, :1])
        return {
            "images": padded([each.numpy() for each in images])[0],
            "boxes": torch.cat([whole_box(original, sizes), boxes], dim=1),
            "real": torch.cat([~none, real], dim=1),
            "hidden": torch.cat([none, hidden], dim=1),
            "sizes": sizes,
        }


def resized(sizes: torch.Tensor) -> torch.Tensor:
    """Return widths and heights (n, 2) of images as the authors resize them, cut to whole pixels.

    Examples
    --------
    >>> resized(torch.tensor([[64, 64], [600, 300], [500, 333]])).tolist()
    [[600.0, 600.0], [1000.0, 500.0], [900.0, 600.0]]
    """
    sizes = sizes.double()
    short, long = sizes.amin(dim=1, keepdim=True), sizes.amax(dim=1, keepdim=True)
    fits = SHORT_SIDE * long <= LONG_SIDE * short
    side = torch.where(fits, SHORT_SIDE, (LONG_SIDE * short / long).floor())
    return (side * sizes / short).floor().float()


def pixel_boxes(boxes: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return boxes in pixels, none beyond the last pixel.

    Parameters
    ----------
    boxes
        (n, k, 4): x0, y0, x1, y1, as shares of the image from 0 to 1.
    sizes
        (n, 2): width and height in pixels.

    Examples
    --------
    >>> pixel_boxes(torch.tensor([[[0.0, 0.5, 1.0, 1.0]]]), torch.tensor([[600.0, 400.0]])).tolist()
    [[[0.0, 200.0, 599.0, 399.0]]]
    """
    sizes = torch.cat([sizes, sizes], dim=1)[:, None]
    return torch.minimum((boxes * sizes).clamp(min=0), sizes - 1)


def whole_box(original: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Return the box (n, 1, 4) that stands for the whole image.

    The authors take (0, 0, width - 1, height - 1) of the original and resize it.

    Examples
    --------
    >>> whole_box(torch.tensor([[300, 200]]), torch.tensor([[900.0, 600.0]])).tolist()
    [[[0.0, 0.0, 897.0, 597.0]]]
    """
    corner = (original - 1) * sizes / original
    return torch.cat([torch.zeros_like(corner), corner], dim=1)[:, None]


def read_pixels(picture: np.ndarray, size: torch.Tensor, blank: torch.Tensor) -> torch.Tensor:
    """Return a picture as the end-to-end network takes it: BGR, 0..255 less the means.

    Parameters
    ----------
    picture
        uint8 (h, w, 3).
    size
        (2,): width and height after resizing, in pixels.
    blank
        (b, 4): boxes in pixels of the resized picture that are made zero.

    Returns
    -------
    torch.Tensor
        (3, height, width), float32.
    """
    width, height = (int(side) for side in size)
    image = Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.float32)[..., ::-1] - np.float32(PIXEL_MEANS)
    found = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    for x0, y0, x1, y1 in blank.int().tolist():
        found[:, y0 : y1 + 1, x0 : x1 + 1] = 0
    return found


def load(entry: Entry, path: Path, device: str) -> VlBert:
    """Load VL-BERT from a folder that was saved here or a file of the authors.

    Returns
    -------
    VlBert
        A :class:`VlBertFromPixels` where the network is an end-to-end one.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, has no tokenizer beside it, or weights are missing or
        left over.
    """
    found = read_own(entry, path, networks.load_official, networks.VlBertNetwork)
    kind = VlBertFromPixels if found.network.config.end_to_end else VlBert
    return kind(found.network, found.tokenizer, entry.name, found.revision, device)
