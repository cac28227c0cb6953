"""The recipe of the region encoder: crops of an unbiased world's pictures, named by side heads.

All region models read its features, so what differs between them comes from captions.
"""

import functools
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import Tensor

import plantedworld
from biaslib.runtime import progress
from plantedworld.models.regions import KINDS, PICTURES_AT_ONCE, RegionEncoder, crops_of, pixels
from plantedworld.training._labels import NOT_ASKED, labels
from plantedworld.training._recipe import Stage, WithSideHeads
from plantedworld.training.vision import EncoderRecipe

N_FOR_STATISTICS = 10_000
SHOWN_BY = dict.fromkeys(("gender", "tone", "age", "role"), ("person", "whole"))
SHOWN_BY["object"] = ("object", "whole")
"""By which kinds of crops each variable is to be named."""


class RegionRecipe(EncoderRecipe):
    """A small convolutional network on crops of 40 pixels."""

    family = "regions"
    first = Stage(scenes=30_000, epochs=(5,), learning_rate=4e-3)

    @functools.cached_property
    def crops(self) -> tuple[Tensor, np.ndarray, np.ndarray]:
        """The crops, uint8, (n, 3, 40, 40), and whose and of which kind each is, (n,)."""
        return cropped(self.scenes)

    @property
    def pictures(self) -> Tensor:
        """The crops."""
        return self.crops[0]

    @functools.cached_property
    def labels(self) -> dict[str, Tensor]:
        """What each crop is to be named by."""
        _, picture, kind = self.crops
        named = {}
        for name, label in labels(self.scenes).items():
            asked = torch.tensor(np.isin(kind, SHOWN_BY[name]))
            named[name] = torch.where(asked, label[picture], NOT_ASKED)
        return named

    def network(self) -> RegionEncoder:
        """Return the untrained encoder."""
        return RegionEncoder()

    def states(self, network: RegionEncoder, pictures: Tensor) -> Tensor:
        """Return the states of crops, (n, 64)."""
        return network(pictures)

    def showing(self, scenes: pandas.DataFrame, name: str) -> Tensor:
        """Return the crops in which a variable is to be seen: of persons, or of objects."""
        return cropped(scenes, SHOWN_BY[name][:1])[0]

    @torch.inference_mode()
    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Keep the whitening of the corpus's first crops, and write weights in half precision."""
        some = self.pictures[:N_FOR_STATISTICS].split(PICTURES_AT_ONCE)
        states = torch.cat([model.model(pixels(crops)) for crops in some])
        model.model.keep_statistics(states)
        super().save(model, folder)


def cropped(
    scenes: pandas.DataFrame, kinds: tuple[str, ...] = KINDS
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Return the crops of scenes, the number of each one's scene, and its kind."""
    crops, places = [], []
    for start in progress(range(0, len(scenes), PICTURES_AT_ONCE), "regions: pictures"):
        some = scenes.iloc[start : start + PICTURES_AT_ONCE]
        corners = plantedworld.boxes(some)[list(kinds)].to_numpy(dtype=float)
        boxes = corners.reshape(-1, len(kinds), 4)
        picture, kind = np.nonzero(~np.isnan(boxes).any(axis=2))
        crops.append(crops_of(plantedworld.draw(some), boxes))
        places.append(np.stack([picture + start, kind]))
    picture, kind = np.concatenate(places, axis=1)
    return torch.cat(crops), picture, np.array(kinds)[kind]
