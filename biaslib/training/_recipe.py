"""What a family has to say so that its tiny model can be trained."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from biaslib.planted import World


@dataclass(frozen=True)
class Stage:
    """A part of the training: which rows of the corpus, how often, and how many at once."""

    rows: np.ndarray
    epochs: int
    batch_size: int


class Recipe(ABC):
    """How a family's tiny model is built, fed, judged and saved.

    To add a family, write a subclass and list it in ``biaslib.training.RECIPES``. A recipe holds
    the corpus of one world; ``seed`` is that of the world and of the weights.
    """

    learning_rate = 3e-3
    weight_decay = 0.05
    warm_up = 0.15
    decayed_last = True

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def build(self) -> torch.nn.Module:
        """Return the untrained model."""

    @abstractmethod
    def stages(self) -> list[Stage]:
        """Return the stages of the training, in order."""

    @abstractmethod
    def lengths(self) -> torch.Tensor:
        """Return the number of tokens of every row, so that rows of like length go together."""

    @abstractmethod
    def loss(
        self, model: torch.nn.Module, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of some rows of the corpus."""

    @abstractmethod
    def judge(self, model: torch.nn.Module) -> dict[str, float]:
        """Return held-out accuracy, what chance gives, and what the truth itself gives."""

    @abstractmethod
    def save(self, model: torch.nn.Module, folder: Path) -> None:
        """Write the model, in half precision, and all that is needed to load it."""
