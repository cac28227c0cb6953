"""The recipe of the region encoder: crops of an unbiased world's pictures, named by side heads.

All region models read its features, so what differs between them comes from captions.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas
import torch

import plantedworld
from biaslib.runtime import progress
from plantedworld.models.regions import (
    KINDS,
    PICTURES_AT_ONCE,
    STATE,
    RegionEncoder,
    crops_of,
    pixels,
)
from plantedworld.training._pictures import NOT_ASKED, classes, labels
from plantedworld.training._recipe import Recipe, WithSideHeads
from plantedworld.training.vision import GENDER_EXTRA, portraits

N_SCENES = 30_000
N_HELD_OUT = 3_000
N_FOR_STATISTICS = 10_000
SHOWN_BY = {
    "person": ("gender", "tone", "age", "role"),
    "object": ("object",),
    "whole": ("gender", "tone", "age", "role", "object"),
}
"""What a crop of each kind is to be named by."""


@dataclass
class RegionRecipe(Recipe):
    """A small convolutional network on crops of 40 pixels."""

    family = "regions"
    epochs = 5
    learning_rate = 4e-3

    @functools.cached_property
    def scenes(self) -> pandas.DataFrame:
        """The scenes of the corpus."""
        return self.world.scenes(N_SCENES, np.random.default_rng([self.world.training_seed, 1]))

    @functools.cached_property
    def corpus(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The crops, uint8, (n, 3, 40, 40), and what each is to be named by."""
        return cropped(self.scenes)

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """One and the same for every crop."""
        return torch.ones(len(self.corpus[0]), dtype=torch.long)

    def build(self) -> WithSideHeads:
        """Return the untrained model."""
        n_classes = {name: len(each) for name, each in classes().items()}
        return WithSideHeads(RegionEncoder(), STATE, n_classes)

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the heads' loss; half of the batches are mirrored."""
        crops, named = self.corpus
        crops = crops[rows]
        if torch.randint(2, (1,), generator=generator):
            crops = crops.flip(-1)
        states = model.model(pixels(crops))
        asked = {name: label[rows] for name, label in named.items()}
        gender = {"gender": asked["gender"]}
        return model.side_loss(states, asked) + GENDER_EXTRA * model.side_loss(states, gender)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how often each variable is named in held-out crops, beside the commonest class.

        Gender and tone of adult portraits that show them, role of costumes, object of objects.
        """
        rng = np.random.default_rng([self.world.training_seed, 2])
        scenes = self.world.scenes(N_HELD_OUT, rng, split="tune")
        alone = scenes[portraits(scenes)]
        asked = {
            "gender": (alone, "person"),
            "tone": (alone, "person"),
            "role": (scenes[scenes["role_shown"]], "person"),
            "object": (scenes[scenes["object_view"] == "visible"], "object"),
        }
        scores = {}
        for name, (shown, kind) in asked.items():
            scores |= _accuracy(model, shown, kind, name)
        return scores

    @torch.inference_mode()
    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Keep the whitening of the corpus's first crops, and write weights in half precision."""
        model.eval()
        some = self.corpus[0][:N_FOR_STATISTICS].split(PICTURES_AT_ONCE)
        states = torch.cat([model.model(pixels(crops)) for crops in some])
        model.model.keep_statistics(states)
        model.model.half().save_pretrained(folder)


def cropped(
    scenes: pandas.DataFrame, kinds: tuple[str, ...] = KINDS
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the crops of scenes, and the class of each for every head."""
    crops, places = [], []
    starts = range(0, len(scenes), PICTURES_AT_ONCE)
    for start in progress(starts, "regions: pictures"):
        some = scenes.iloc[start : start + PICTURES_AT_ONCE]
        boxes = (
            plantedworld.boxes(some)[list(kinds)].to_numpy(dtype=float).reshape(-1, len(kinds), 4)
        )
        picture, kind = np.nonzero(~np.isnan(boxes).any(axis=2))
        crops.append(crops_of(plantedworld.draw(some), boxes))
        places.append(np.stack([picture + start, kind]))
    picture, kind = np.concatenate(places, axis=1)
    return torch.cat(crops), _named(scenes, picture, np.array(kinds)[kind])


def _named(scenes: pandas.DataFrame, picture: np.ndarray, kind: np.ndarray) -> dict:
    named = {}
    for name, label in labels(scenes).items():
        asked = np.isin(kind, [each for each, names in SHOWN_BY.items() if name in names])
        named[name] = torch.where(torch.tensor(asked), label[picture], NOT_ASKED)
    return named


def _accuracy(model: WithSideHeads, scenes: pandas.DataFrame, kind: str, name: str) -> dict:
    crops, named = cropped(scenes, (kind,))
    guessed = model.heads[name](model.model(pixels(crops))).argmax(-1)
    return {
        f"{name} accuracy": float((guessed == named[name]).float().mean()),
        f"{name} chance": float(named[name].bincount().max() / len(named[name])),
    }
