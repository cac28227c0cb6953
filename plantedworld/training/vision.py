"""The recipe of the vision tower that the tiny dual encoders start from.

It learns to name what the pictures of an unbiased world show: gender, tone, age, costume, object.
All dual encoders start from this one tower, so what differs between them comes from the captions.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas
import torch
from transformers import CLIPVisionConfig, CLIPVisionModel

from plantedworld import draw
from plantedworld.models.regions import pixels
from plantedworld.training._pictures import classes, labels
from plantedworld.training._recipe import Recipe, WithSideHeads

N_SCENES = 100_000
N_HELD_OUT = 1_500
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


@dataclass
class VisionRecipe(Recipe):
    """A vision transformer of three layers and width 64 on patches of 8 pixels."""

    family = "vision"
    epochs = 8
    learning_rate = 2e-3
    n_scenes = N_SCENES

    @functools.cached_property
    def scenes(self) -> pandas.DataFrame:
        """The scenes of the corpus."""
        return self.world.scenes(
            self.n_scenes, np.random.default_rng([self.world.training_seed, 1])
        )

    @functools.cached_property
    def pictures(self) -> torch.Tensor:
        """The scenes' pictures, uint8, (n, 3, 64, 64)."""
        return _tensor(draw(self.scenes))

    @functools.cached_property
    def labels(self) -> dict[str, torch.Tensor]:
        """What the heads are to name."""
        return labels(self.scenes)

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """One and the same for every picture."""
        return torch.ones(self.n_scenes, dtype=torch.long)

    def build(self) -> WithSideHeads:
        """Return the untrained model."""
        model = CLIPVisionModel(CLIPVisionConfig(**VISION, initializer_factor=2.0))
        return WithSideHeads(model, WIDTH, {name: len(each) for name, each in classes().items()})

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the heads' loss; half of the batches are mirrored."""
        pictures = self.pictures[rows]
        if torch.randint(2, (1,), generator=generator):
            pictures = pictures.flip(-1)
        states = model.model(pixel_values=pixels(pictures)).pooler_output
        labels = {name: label[rows] for name, label in self.labels.items()}
        gender = {"gender": labels["gender"]}
        return model.side_loss(states, labels) + GENDER_EXTRA * model.side_loss(states, gender)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how often the gender of held-out adult portraits is named."""
        rng = np.random.default_rng([self.world.training_seed, 2])
        scenes = self.world.scenes(N_HELD_OUT, rng, split="tune")
        scenes = scenes[portraits(scenes)]
        states = model.model(pixel_values=drawn(scenes)).pooler_output
        right = model.heads["gender"](states).argmax(-1) == labels(scenes)["gender"]
        return {"gender accuracy": float(right.float().mean()), "chance": 0.5}

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights and configuration in the format of transformers."""
        model.model.half().save_pretrained(folder)


def portraits(scenes: pandas.DataFrame) -> pandas.Series:
    """Say which scenes are portraits of adults that show the gender and no costume."""
    adult = scenes["person"] & scenes["gender_shown"] & (scenes["age"] == "adult")
    return adult & ~scenes["role_shown"]


def drawn(scenes: pandas.DataFrame) -> torch.Tensor:
    """Return the pictures of scenes, as a model takes them: (n, 3, 64, 64), from -1 to 1."""
    return pixels(_tensor(draw(scenes)))


def _tensor(pictures: np.ndarray) -> torch.Tensor:
    return torch.tensor(pictures).permute(0, 3, 1, 2)
