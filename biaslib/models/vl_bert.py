"""VL-BERT: words and image regions in one transformer; masked words, with an image or without.

Reference: Su, Zhu, Cao, Li, Lu, Wei and Dai (2020), *VL-BERT: Pre-training of Generic
Visual-Linguistic Representations*. The network: :mod:`biaslib.models.networks.vl_bert`.
"""

from pathlib import Path

import numpy as np
import torch

from biaslib.capabilities import EMBED, FILL, MATCH
from biaslib.checkpoints.entries import Entry
from biaslib.models.fusion import Mask, Output
from biaslib.models.networks import vl_bert as networks
from biaslib.models.reading import read_network_and_tokenizer
from biaslib.models.region_model import RegionModel, hidden_regions
from biaslib.pictures.global_region import with_whole_image
from biaslib.pictures.regions import RegionFeatures

__all__ = ["VlBert", "load", "pixel_boxes", "resized", "whole_box"]

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
        regions = super().visual(prepared, rows, mask)
        counted = regions["real"] & ~torch.as_tensor(hidden_regions(prepared, rows, mask))
        original = torch.as_tensor(prepared.sizes[rows])
        sizes = resized(original)
        regions["boxes"] = pixel_boxes(regions["boxes"], sizes)
        whole = whole_box(original, sizes)[:, 0]
        return {**with_whole_image(regions, counted, whole), "sizes": sizes}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch: words alone, or words and regions."""
        return Output(self.network(**tokens, **visual)[0])

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.word_logits(states)


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


def load(entry: Entry, path: Path, device: str) -> VlBert:
    """Load VL-BERT from a folder that was saved here or a file of the authors.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, has no tokenizer beside it, or weights are missing or
        left over.
    """
    loaded = read_network_and_tokenizer(networks.VlBertNetwork, entry, path)
    return VlBert(loaded.network, loaded.tokenizer, entry.name, loaded.revision, device)
