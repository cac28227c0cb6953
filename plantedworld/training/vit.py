"""The recipe of the vision tower that the tiny fusion models on pixels start from.

It learns what the tower of the dual encoders (:mod:`plantedworld.training.vision`) learns, in the
layout that ViLT and FLAVA share: blocks without a normalisation before them, and patches of 16
pixels, of which a picture has 16 and not 64, so that text and picture together are short.
"""

import functools
from pathlib import Path

import pandas
import torch
from torch import Generator, Tensor
from transformers import CLIPVisionModel, FlavaImageConfig, FlavaImageModel

from biaslib.runtime import progress
from plantedworld.training._labels import n_classes
from plantedworld.training._recipe import Stage, WithSideHeads
from plantedworld.training.vision import (
    PICTURES_AT_ONCE,
    SIZE,
    WIDTH,
    EncoderRecipe,
    encoded,
    pixels,
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

TEACHERS = {"teacher's picture": WIDTH, "teacher's patches": WIDTH}
"""Heads that guess the teacher's states of the picture as a whole, and of its patches."""


class VitRecipe(EncoderRecipe):
    """A vision transformer of three layers and width 64 on patches of 16 pixels.

    Besides naming what is shown, it guesses the states of the dual encoders' tower, patch by
    patch (four of its patches make one of ours). It stops after a quarter of its schedule, while
    the rate is high: the models that start from it go on.
    """

    family = "vit"
    starts_from = "vision"
    first = Stage(scenes=120_000, epochs=(6,), learning_rate=2e-3)
    scheduled_epochs = 24
    heads = n_classes() | TEACHERS

    def network(self) -> FlavaImageModel:
        """Return the untrained tower."""
        config = FlavaImageConfig(**BLOCKS, num_hidden_layers=LAYERS)
        model = FlavaImageModel(config, add_pooling_layer=False)
        for places in (model.embeddings.cls_token, model.embeddings.position_embeddings):
            torch.nn.init.normal_(places, std=0.1)
        return model

    def states(self, network: FlavaImageModel, pictures: Tensor) -> Tensor:
        """Return the states of pictures from which they are named, (n, 64)."""
        return network(pixel_values=pictures).last_hidden_state[:, 0]

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of all heads; half of the batches are mirrored."""
        mirrored = int(torch.randint(2, (1,), generator=generator))
        pictures = self.pictures[rows].flip(-1) if mirrored else self.pictures[rows]
        states = model.model(pixel_values=pixels(pictures)).last_hidden_state
        whole, patches = (model.heads[name] for name in TEACHERS)
        guessed = torch.cat([whole(states[:, :1]), patches(states[:, 1:])], dim=1)
        errors = (guessed - self.taught[mirrored, rows].float()).square()
        named = self.naming_loss(model, states[:, 0], rows)
        return named + errors[:, 0].mean() + errors[:, 1:].mean()

    @functools.cached_property
    def teacher(self) -> CLIPVisionModel:
        """The dual encoders' tower."""
        return CLIPVisionModel.from_pretrained(self.start, dtype=torch.float32).eval()

    @functools.cached_property
    def taught(self) -> Tensor:
        """The teacher's states of all pictures as they are, then mirrored: (2, n, 17, 64).

        Less their mean and over their standard deviation, pooled states and patches apart.
        """
        both = [self._taught(mirrored) for mirrored in (False, True)]
        some = both[0][:20_000].float()
        pooled, patches = some[:, 0], some[:, 1:].flatten(0, 1)
        parts = torch.arange(17).clamp(max=1)
        mean, spread = (
            torch.stack([moment(pooled, 0), moment(patches, 0)])[parts]
            for moment in (torch.mean, torch.std)
        )
        return torch.stack([((states.float() - mean) / spread).half() for states in both])

    @torch.inference_mode()
    def _taught(self, mirrored: bool) -> Tensor:
        """The pooled state, then those of its patches, each the mean of four; (n, 17, 64).

        Of the layer before the last, since the last one reads patches and does not use its own.
        """
        parts = []
        for some in progress(self.pictures.split(PICTURES_AT_ONCE), "vit: the teacher's states"):
            seen = pixels(some.flip(-1) if mirrored else some)
            output = self.teacher(pixel_values=seen, output_hidden_states=True)
            grid = output.hidden_states[-2][:, 1:].unflatten(1, (4, 2, 4, 2)).mean(dim=(2, 4))
            parts.append(torch.cat([output.pooler_output[:, None], grid.flatten(1, 2)], 1).half())
        return torch.cat(parts)


def read_tower(folder: Path) -> FlavaImageModel:
    """Return the tower of a checkpoint, in single precision."""
    return FlavaImageModel.from_pretrained(
        folder, dtype=torch.float32, add_pooling_layer=False
    ).eval()


def tower_states(tower: FlavaImageModel, scenes: pandas.DataFrame) -> Tensor:
    """Return the tower's states before its last normalisation, float16, (n, 17, 64)."""

    def encode(pictures: Tensor) -> Tensor:
        return tower(pictures, output_hidden_states=True).hidden_states[-1].half()

    return encoded(scenes, encode, "the tower's states")
