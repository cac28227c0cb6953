"""The recipe of the vision tower that the tiny fusion models on pixels start from.

It learns what the tower of the dual encoders (:mod:`plantedworld.training.vision`) learns, in the
layout that ViLT and FLAVA share: blocks without a normalisation before them, and patches of 16
pixels, of which a picture has 16 and not 64, so that text and picture together are short.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas
import torch
from transformers import CLIPVisionModel, FlavaImageConfig, FlavaImageModel

from biaslib.runtime import progress
from plantedworld.training._pictures import classes, labels
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training.vision import (
    GENDER_EXTRA,
    N_HELD_OUT,
    SIZE,
    WIDTH,
    VisionRecipe,
    drawn,
    pixels,
    portraits,
)

PATCH = 16
LAYERS = 3
INNER_WIDTH = 96
HEADS = 4
BLOCKS = {
    "hidden_size": WIDTH,
    "intermediate_size": INNER_WIDTH,
    "num_attention_heads": HEADS,
    "image_size": SIZE,
    "patch_size": PATCH,
    "initializer_range": 0.1,
    "layer_norm_eps": 1e-6,
}
"""What all three have in common: this tower, ViLT and the picture's part of FLAVA."""

TEACHER_WEIGHT = 1.0
PICTURES_AT_ONCE = 512


class Tower(WithSideHeads):
    """The tower with heads that name what is shown and heads that guess the teacher's states."""

    def __init__(self) -> None:
        config = FlavaImageConfig(**BLOCKS, num_hidden_layers=LAYERS)
        model = FlavaImageModel(config, add_pooling_layer=False)
        for places in (model.embeddings.cls_token, model.embeddings.position_embeddings):
            torch.nn.init.normal_(places, std=0.1)
        super().__init__(model, WIDTH, {name: len(each) for name, each in classes().items()})
        self.teachers = torch.nn.ModuleList([torch.nn.Linear(WIDTH, WIDTH) for _ in range(2)])

    def teacher_loss(self, states: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
        """Return the squared error of the teacher's states; both (n, 17, 64)."""
        whole, patches = self.teachers
        guessed = torch.cat([whole(states[:, :1]), patches(states[:, 1:])], dim=1)
        errors = (guessed - taught).square()
        return errors[:, 0].mean() + errors[:, 1:].mean()


@dataclass
class VitRecipe(VisionRecipe):
    """A vision transformer of three layers and width 64 on patches of 16 pixels.

    Besides naming what is shown, it guesses the states of the dual encoders' tower, patch by
    patch (four of its patches make one of ours). It stops after a quarter of its schedule, while
    the rate is high: the models that start from it go on.
    """

    vision: Path

    family = "vit"
    epochs = 6
    scheduled_epochs = 24
    learning_rate = 2e-3
    n_scenes = 120_000

    @functools.cached_property
    def teacher(self) -> CLIPVisionModel:
        """The dual encoders' tower."""
        return CLIPVisionModel.from_pretrained(self.vision, dtype=torch.float32).eval()

    @functools.cached_property
    def taught(self) -> torch.Tensor:
        """The teacher's states of all pictures as they are, then mirrored: (2, n, 17, 64)."""
        both = [self._taught(mirrored) for mirrored in (False, True)]
        mean, spread = _moments(both[0])
        return torch.stack([((each.float() - mean) / spread).half() for each in both])

    @torch.inference_mode()
    def _taught(self, mirrored: bool) -> torch.Tensor:
        parts = []
        starts = range(0, len(self.pictures), PICTURES_AT_ONCE)
        for start in progress(starts, f"{self.family}: the teacher's states"):
            pictures = self.pictures[start : start + PICTURES_AT_ONCE]
            parts.append(self._states(pictures.flip(-1) if mirrored else pictures).half())
        return torch.cat(parts)

    def _states(self, pictures: torch.Tensor) -> torch.Tensor:
        """The pooled state, then those of its patches, each the mean of four; (n, 17, 64).

        Of the layer before the last, since the last one reads patches and does not use its own.
        """
        output = self.teacher(pixel_values=pixels(pictures), output_hidden_states=True)
        grid = output.hidden_states[-2][:, 1:].unflatten(1, (4, 2, 4, 2)).mean(dim=(2, 4))
        return torch.cat([output.pooler_output[:, None], grid.flatten(1, 2)], dim=1)

    def build(self) -> Tower:
        """Return the untrained model."""
        return Tower()

    def loss(self, model: Tower, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the loss of all heads; half of the batches are mirrored."""
        mirrored = int(torch.randint(2, (1,), generator=generator))
        pictures = self.pictures[rows]
        if mirrored:
            pictures = pictures.flip(-1)
        states = model.model(pixel_values=pixels(pictures)).last_hidden_state
        shown = {name: label[rows] for name, label in self.labels.items()}
        named = model.side_loss(states[:, 0], shown)
        gender = model.side_loss(states[:, 0], {"gender": shown["gender"]})
        taught = model.teacher_loss(states, self.taught[mirrored, rows].float())
        return named + GENDER_EXTRA * gender + TEACHER_WEIGHT * taught

    @torch.inference_mode()
    def judge(self, model: Tower) -> dict[str, float]:
        """Return how often held-out pictures are named right, gender on adult portraits alone."""
        rng = np.random.default_rng([self.world.training_seed, 2])
        scenes = self.world.scenes(N_HELD_OUT, rng, split="tune")
        states = model.model(pixel_values=drawn(scenes)).last_hidden_state[:, 0]
        right = {
            name: (model.heads[name](states).argmax(-1) == label).numpy()
            for name, label in labels(scenes).items()
        }
        return {
            "gender accuracy": float(right["gender"][portraits(scenes).to_numpy()].mean()),
            "chance": 0.5,
            "role accuracy": float(right["role"][scenes["role_shown"]].mean()),
            "object accuracy": float(right["object"][scenes["object_view"] == "visible"].mean()),
            "tone accuracy": float(right["tone"].mean()),
        }


def read_tower(folder: Path) -> FlavaImageModel:
    """Return the tower of a checkpoint, in single precision."""
    return FlavaImageModel.from_pretrained(
        folder, dtype=torch.float32, add_pooling_layer=False
    ).eval()


def is_tower(folder: Path) -> bool:
    """Say whether a folder holds the tower, and not a model that has it as a part."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config["model_type"] == FlavaImageConfig.model_type


@torch.no_grad()
def tower_states(tower: FlavaImageModel, scenes: pandas.DataFrame, family: str) -> torch.Tensor:
    """Return the tower's states before its last normalisation, float16, (n, 17, 64)."""
    starts = range(0, len(scenes), PICTURES_AT_ONCE)
    parts = []
    for start in progress(starts, f"{family}: pictures"):
        pictures = drawn(scenes.iloc[start : start + PICTURES_AT_ONCE])
        parts.append(tower(pictures, output_hidden_states=True).hidden_states[-1].half())
    return torch.cat(parts)


def _moments(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of each number, pooled states and patches apart."""
    some = states[:20_000].float()
    spread = torch.cat([some[:, :1].std(0), some[:, 1:].flatten(0, 1).std(0)[None].expand(16, -1)])
    mean = torch.cat([some[:, :1].mean(0), some[:, 1:].mean((0, 1))[None].expand(16, -1)])
    return mean, spread
