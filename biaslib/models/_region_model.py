"""What the fusion models share that read features of image regions."""

from typing import Any

import numpy as np
import pandas
import torch

from biaslib.models.fusion import FusionModel, Mask
from biaslib.models.regions import RegionFeatures

__all__ = ["RegionModel"]


class RegionModel(FusionModel):
    """A fusion model that takes an image as regions, each a box with a vector of features.

    Parameters
    ----------
    network, tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    width
        Numbers a region that the network takes.
    """

    hides_boxes = False
    """Whether hiding a region hides where it is, too."""

    def __init__(self, network, tokenizer, name: str, revision: str, device: str, width: int):
        super().__init__(network, tokenizer, name, revision, device)
        self.width = width

    def prepare(self, images: Any) -> RegionFeatures | None:
        """Return the regions of images.

        Parameters
        ----------
        images
            :class:`biaslib.models.regions.RegionFeatures`; a frame of planted scenes, whose
            regions are made from the pictures; or ``None`` for none.

        Raises
        ------
        TypeError
            If they are pictures, which a detector would have to read first.
        ValueError
            If the features are not as wide as the network takes them.
        """
        if images is None:
            return None
        if isinstance(images, pandas.DataFrame):
            from biaslib.models.planted_regions import regions_of

            images = regions_of(images)
        if not isinstance(images, RegionFeatures):
            raise TypeError(
                f"{self.name} reads features of image regions, not pictures. Make them with a "
                "detector, as biaslib.models.detector.load().regions(images), or read them from a "
                "file: biaslib.models.region_files.read, RegionFeatures.load"
            )
        if images.width != self.width:
            raise ValueError(
                f"{self.name} ({self.revision}) reads {self.width} numbers a region, and these "
                f"features have {images.width}; use the detector that the checkpoint was trained "
                "with, or the checkpoint that was trained with these features"
            )
        return images

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features (n, k, d), boxes (n, k, 4) and which regions are real (n, k).

        Regions that are not real are zero throughout, whatever was in them. Hidden persons have
        features of zero, and a box of zero where the family says so.
        """
        if prepared is None:
            return {}
        features, boxes = prepared.features[rows], prepared.boxes[rows]
        real = prepared.real[rows]
        seen = real & ~prepared.persons[rows] if mask is not None and mask.persons else real
        features[~seen] = 0
        boxes[~seen if self.hides_boxes else ~real] = 0
        found = {"features": features, "boxes": boxes, "real": real}
        return {name: torch.as_tensor(each) for name, each in found.items()}
