"""VL-BERT: words and image regions in one transformer; masked words, with an image or without.

Reference: Su, Zhu, Cao, Li, Lu, Wei and Dai (2020), *VL-BERT: Pre-training of Generic
Visual-Linguistic Representations*. The network: :mod:`biaslib.models.networks.vl_bert`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from biaslib.models._checkpoints import CheckpointError
from biaslib.models._global_region import with_whole_image
from biaslib.models._own_networks import read_own
from biaslib.models._region_model import RegionModel
from biaslib.models._registry import Entry
from biaslib.models.fusion import Mask, Output
from biaslib.models.networks import vl_bert as networks
from biaslib.models.regions import RegionFeatures
from biaslib.runtime import device as best_device

__all__ = ["VlBert", "load", "pixel_boxes"]

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

    def __init__(self, network, tokenizer, name: str, revision: str, device: str):
        width = network.config.feature_size
        super().__init__(network, tokenizer, name, revision, device, width)
        self.max_tokens = min(self.max_tokens, network.config.max_position_embeddings - 2)

    def prepare(self, images: Any) -> RegionFeatures | None:
        """Return the regions of images; ``None`` for none, if the network was trained so.

        Raises
        ------
        ValueError
            If it was not; and as :meth:`biaslib.models._region_model.RegionModel.prepare`.
        """
        if images is None and not self.network.config.text_only:
            raise ValueError(
                f"{self.name} ({self.revision}) was trained without texts alone and needs an image "
                "for every text; load vl-bert-base-prec, which was trained with them"
            )
        return super().prepare(images)

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features, boxes in pixels, which regions are real, and the images' sizes."""
        if prepared is None:
            return {}
        found = super().visual(prepared, rows, mask)
        hides = mask is not None and mask.persons
        counted = found["real"] & ~(torch.as_tensor(prepared.persons[rows]) & hides)
        sizes = resized(torch.as_tensor(prepared.sizes[rows]))
        found["boxes"] = pixel_boxes(found["boxes"], sizes)
        whole = torch.cat([torch.zeros_like(sizes), sizes - 1], dim=1)
        return {**with_whole_image(found, counted, whole), "sizes": sizes}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch: words alone, or words and regions."""
        return Output(self.network(**tokens, **visual).text)

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.word_logits(states)

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Raise an error: VL-BERT was not trained to tell whether a text fits an image."""
        raise ValueError(
            f"{self.name} has no head that matches captions: VL-BERT was published without one. "
            "vilbert, lxmert and visualbert have one"
        )


def resized(sizes: torch.Tensor) -> torch.Tensor:
    """Return widths and heights (n, 2) of images as the authors resize them, in whole pixels.

    Examples
    --------
    >>> resized(torch.tensor([[64, 64], [600, 300]])).tolist()
    [[600.0, 600.0], [1000.0, 500.0]]
    """
    sizes = sizes.float()
    short, long = sizes.amin(dim=1), sizes.amax(dim=1)
    scale = torch.minimum(SHORT_SIDE / short, LONG_SIDE / long)
    return (sizes * scale[:, None]).round()


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


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> VlBert:
    """Load VL-BERT from a converted folder or a file of the authors.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, is an end-to-end one, has no tokenizer beside it, or
        weights are missing or left over.
    """
    found = read_own(entry, checkpoint, networks.load_official, networks.VlBertNetwork)
    if found.network.config.end_to_end:
        raise CheckpointError(
            f"{checkpoint} is an end-to-end VL-BERT, which reads pixels; {entry.name!r} takes "
            "features of regions. Load a file whose name ends in -prec"
        )
    where = best_device(device)
    return VlBert(found.network, found.tokenizer, entry.name, found.revision, where)
