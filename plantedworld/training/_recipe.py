"""What a family has to say so that its tiny model can be trained."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import torch

from plantedworld import World


class WithSideHeads(torch.nn.Module):
    """A model with linear heads that exist in training alone.

    The heads name latent variables that the world knows, such as the gender or the tone, from a
    state of the model. Without them a tiny model spends its training on word frequencies; with
    them the variables are there to be associated with words. How strongly words go with them is
    learned from the captions alone.
    """

    def __init__(self, model: torch.nn.Module, width: int, n_classes: dict[str, int]) -> None:
        super().__init__()
        self.model = model
        heads = {name: torch.nn.Linear(width, count) for name, count in n_classes.items()}
        self.heads = torch.nn.ModuleDict(heads)

    def side_loss(self, states: torch.Tensor, labels: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the sum of the heads' cross-entropies; states (n, width), labels (n,) each."""
        losses = [
            torch.nn.functional.cross_entropy(self.heads[name](states), label)
            for name, label in labels.items()
        ]
        return torch.stack(losses).sum()


@dataclass
class Recipe(ABC):
    """How a family's tiny model is built, fed, judged and saved.

    To add a family, write a subclass and list it in ``plantedworld.training.RECIPES``. A recipe
    holds the corpus of one world, whose training seed is also that of the weights.
    """

    world: World

    family = ""
    epochs = 1
    batch_size = 256
    learning_rate = 3e-3
    weight_decay = 0.05
    warm_up = 0.15
    also_from = ""
    """Another checkpoint that the model starts from, or an empty text."""

    @property
    def scheduled_epochs(self) -> int:
        """Epochs over which the rate rises and falls; more than are trained to stop before that."""
        return self.epochs

    @property
    @abstractmethod
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every row of the corpus, so that rows of like length go together."""

    @abstractmethod
    def build(self) -> WithSideHeads:
        """Return the untrained model."""

    @abstractmethod
    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of some rows of the corpus."""

    @abstractmethod
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return accuracy on held-out data, that of chance, and that of the truth itself."""

    @abstractmethod
    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write the model in half precision, and all that is needed to load it."""

    def next_round(self, folder: Path) -> "Recipe | None":
        """Return the recipe that goes on from the model that a folder holds now, if there is one.

        A round has a learning rate that rises and falls, and an optimiser of its own.
        """
        return None
