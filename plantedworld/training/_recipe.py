"""What a family has to say so that its tiny model can be trained."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from plantedworld import World
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.training._judge import accuracies

GRID = tuple((dose, seed, "both") for dose in (0, 1, 3) for seed in range(5))
"""The worlds of BERT and CLIP: dose, seed, where it is planted."""

FEW = (
    *((dose, seed, "both") for dose in (0, 3) for seed in range(3)),
    (3, 0, "text"),
    (3, 0, "images"),
)
"""The worlds of the other families: those that the protocol of the held-out test names, and two
planted in captions or pictures alone."""

ONCE = ((0, 1000, "both"),)
"""The world of the encoders that several models share."""


class Stage(NamedTuple):
    """What a model learns from, and how long.

    Scenes that are drawn; epochs of each round, in which the learning rate rises and falls once;
    the highest learning rate; captions of each scene; captions whose scenes are not drawn.
    """

    scenes: int
    epochs: tuple[int, ...]
    learning_rate: float = 3e-3
    captions: int = 1
    unseen: int = 0


class WithSideHeads(nn.Module):
    """A model with linear heads that exist in training alone.

    The heads name latent variables that the world knows, such as the gender or the tone, from a
    state of the model. Without them a tiny model spends its training on word frequencies; with
    them the variables are there to be associated with words. How strongly words go with them is
    learned from the captions alone.
    """

    def __init__(self, model: nn.Module, width: int, n_classes: dict[str, int]) -> None:
        super().__init__()
        self.model = model
        heads = {name: nn.Linear(width, count) for name, count in n_classes.items()}
        self.heads = nn.ModuleDict(heads)

    def side_loss(self, states: Tensor, labels: dict[str, Tensor]) -> Tensor:
        """Return the sum of the heads' cross-entropies; states (n, width), labels (n,) each."""
        losses = [cross_entropy(self.heads[name](states), label) for name, label in labels.items()]
        return torch.stack(losses).sum()


class Recipe(ABC):
    """How a family's tiny model is built, fed and saved.

    To add a family, write a subclass and list its module in ``plantedworld.training``.

    Parameters
    ----------
    world
        Whose corpus it learns; the world's training seed is also that of the weights.
    """

    family = ""
    worlds = FEW
    """Those of the shipped checkpoints: dose, seed, where it is planted."""

    starts_from = ""
    """The family of the encoder that a model starts from, or an empty text."""

    first_seeds = ()
    """Seeds of worlds without bias that a family sees first: its first model starts from an
    encoder, the next one from that, and all models of other worlds start from the last."""

    also_from = ""
    """Another checkpoint that the model starts from, or an empty text."""

    first: Stage
    """Of a model that starts from nothing, from an encoder, or from another family's model."""

    further: Stage
    """Of a model that goes on from one of its own family."""

    scheduled_epochs = 0
    """Epochs over which the rate rises and falls, if training stops before."""

    batch_size = 256
    weight_decay = 0.05
    width = 64
    """Numbers of the states that side heads read."""

    heads: dict[str, int] = {}  # noqa: RUF012
    """Side heads, and how many classes each tells apart."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def start(self) -> Path:
        """Folder of the checkpoint that the model starts from, among those that are shipped."""
        seeds, seed = self.first_seeds, self.world.seed
        before = seeds[: seeds.index(seed)] if self.world.dose == 0 and seed in seeds else seeds
        family, seed = (self.family, before[-1]) if before else (self.starts_from, ONCE[0][1])
        return CHECKPOINTS / checkpoint_name(family, 0, seed)

    @property
    def is_first(self) -> bool:
        """Whether the model starts from another one than its own family's."""
        return not self.start.name.startswith(f"{self.family}-")

    @property
    def stage(self) -> Stage:
        """What the model learns from."""
        return self.first if self.is_first else self.further

    @property
    @abstractmethod
    def lengths(self) -> Tensor:
        """Number of tokens of every row of the corpus, so that rows of like length go together."""

    @abstractmethod
    def network(self) -> nn.Module:
        """Return the model as it is when training begins."""

    @abstractmethod
    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of some rows of the corpus."""

    @property
    def preprocessing(self) -> list:
        """What a checkpoint holds beside the network: tokenizer and image processor."""
        return []

    def build(self) -> WithSideHeads:
        """Return the model as it is when training begins, and its side heads."""
        return WithSideHeads(self.network(), self.width, self.heads)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write the model in half precision, and all that is needed to load it."""
        model.model.half().save_pretrained(folder)
        for part in self.preprocessing:
            part.save_pretrained(folder)

    def judge(self, model: WithSideHeads, folder: Path) -> dict[str, float]:
        """Return accuracy on held-out data, that of chance, and that of the truth itself."""
        return accuracies(self.world, folder)
