"""The recipe of the vision tower that the tiny dual encoders start from.

It learns to name what the pictures of an unbiased world show: gender, tone, age, costume, object.
All dual encoders start from this one tower, so what differs between them comes from the captions.
"""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import Generator, Tensor, nn
from transformers import CLIPVisionConfig, CLIPVisionModel

from biaslib.runtime import progress
from plantedworld import draw
from plantedworld.models.regions import pixels
from plantedworld.training._labels import labels, n_classes, selected
from plantedworld.training._recipe import ONCE, Recipe, Stage, WithSideHeads

N_HELD_OUT = 1_500
PICTURES_AT_ONCE = 512
SIZE = 64
GENDER_EXTRA = 2.0
"""Further weight of the gender, which is the hardest to see."""

WIDTH = 64
VISION = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": SIZE,
    "patch_size": 8,
}


class EncoderRecipe(Recipe):
    """An encoder of pictures, which names what they show, in one world without bias."""

    worlds = ONCE
    heads = n_classes()

    @functools.cached_property
    def scenes(self) -> pandas.DataFrame:
        """The scenes of the corpus."""
        rng = np.random.default_rng([self.world.training_seed, 1])
        return self.world.scenes(self.stage.scenes, rng)

    @functools.cached_property
    def pictures(self) -> Tensor:
        """What the encoder reads of the scenes, uint8, (n, 3, height, width)."""
        return colours(self.scenes)

    @functools.cached_property
    def labels(self) -> dict[str, Tensor]:
        """What the heads are to name, (n,) each."""
        return labels(self.scenes)

    @functools.cached_property
    def lengths(self) -> Tensor:
        """One and the same for every picture."""
        return torch.ones(len(self.pictures), dtype=torch.long)

    def states(self, network: nn.Module, pictures: Tensor) -> Tensor:
        """Return the states of pictures from which they are named, (n, width)."""
        return network(pixel_values=pictures).pooler_output

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the heads' loss; half of the batches are mirrored."""
        mirrored = bool(torch.randint(2, (1,), generator=generator))
        pictures = self.pictures[rows].flip(-1) if mirrored else self.pictures[rows]
        return self.naming_loss(model, self.states(model.model, pixels(pictures)), rows)

    def naming_loss(self, model: WithSideHeads, states: Tensor, rows: Tensor) -> Tensor:
        """Return the loss of all heads, with more weight on the gender."""
        shown = selected(self.labels, rows)
        gender = {"gender": shown["gender"]}
        return model.side_loss(states, shown) + GENDER_EXTRA * model.side_loss(states, gender)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads, folder: Path) -> dict[str, float]:
        """Return how often each variable is named in held-out pictures, beside the commonest class.

        Gender and tone of adult portraits that show them, role of costumes, object of objects.
        """
        rng = np.random.default_rng([self.world.training_seed, 2])
        scenes = self.world.scenes(N_HELD_OUT, rng, split="tune")
        alone, scores = portraits(scenes), {}
        seen = scenes["object_view"] == "visible"
        asked = {"gender": alone, "tone": alone, "role": scenes["role_shown"], "object": seen}
        for name, rows in asked.items():
            some = scenes[rows].reset_index(drop=True)
            states = self.states(model.model, pixels(self.showing(some, name)))
            right, shown = model.heads[name](states).argmax(-1), labels(some)[name]
            scores[f"{name} accuracy"] = float((right == shown).float().mean())
            scores[f"{name} chance"] = float(shown.bincount().max() / len(shown))
        return scores

    def showing(self, scenes: pandas.DataFrame, name: str) -> Tensor:
        """Return the pictures of scenes in which a variable is to be seen."""
        return colours(scenes)


class VisionRecipe(EncoderRecipe):
    """A vision transformer of three layers and width 64 on patches of 8 pixels."""

    family = "vision"
    first = Stage(scenes=100_000, epochs=(8,), learning_rate=2e-3)

    def network(self) -> CLIPVisionModel:
        """Return the untrained tower."""
        return CLIPVisionModel(CLIPVisionConfig(**VISION, initializer_factor=2.0))


def portraits(scenes: pandas.DataFrame) -> pandas.Series:
    """Say which scenes are portraits of adults that show the gender and no costume."""
    adult = scenes["person"] & scenes["gender_shown"] & (scenes["age"] == "adult")
    return adult & ~scenes["role_shown"]


def colours(scenes: pandas.DataFrame) -> Tensor:
    """Return the pictures of scenes, uint8, (n, 3, 64, 64)."""
    return torch.tensor(draw(scenes)).permute(0, 3, 1, 2)


def drawn(scenes: pandas.DataFrame) -> Tensor:
    """Return the pictures of scenes, as a model takes them: (n, 3, 64, 64), from -1 to 1."""
    return pixels(colours(scenes))


@torch.no_grad()
def encoded(scenes: pandas.DataFrame, encode: Callable[[Tensor], Tensor], label: str) -> Tensor:
    """Return what a tower makes of the pictures of scenes, which are drawn a few at a time."""
    parts = []
    for start in progress(range(0, len(scenes), PICTURES_AT_ONCE), label):
        parts.append(encode(drawn(scenes.iloc[start : start + PICTURES_AT_ONCE])))
    return torch.cat(parts)
