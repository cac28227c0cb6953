"""What the recipes of FLAVA and ALBEF share: a vision tower that stays as it is, and a contrast.

The tower's states of the pictures are worked out once (compare Zhai et al. 2022, LiT).
"""

import functools
from abc import abstractmethod
from dataclasses import dataclass

import pandas
import torch
from transformers import FlavaImageModel

from plantedworld.training._pairs import HeldOut
from plantedworld.training._pixel_pairs import PixelPairsRecipe
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training.clip import N_HELD_OUT, contrastive_loss, retrieved
from plantedworld.training.vit import read_tower, tower_states


@dataclass
class ContrastivePairsRecipe(PixelPairsRecipe):
    """Masked words, matching, and unit vectors of captions and pictures."""

    def prepared(self, scenes: pandas.DataFrame) -> torch.Tensor:
        """Return the tower's states before its last normalisation, float16, (n, 17, 64)."""
        return tower_states(self.tower, scenes, self.family)

    @functools.cached_property
    def tower(self) -> FlavaImageModel:
        """The vision tower that the states of pictures come from."""
        return read_tower(self.start)

    @abstractmethod
    def scale(self, model: torch.nn.Module) -> torch.Tensor:
        """Return what cosines are multiplied by."""

    @abstractmethod
    def text_vectors(self, model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of captions, of length 1."""

    @abstractmethod
    def image_vectors(self, model: torch.nn.Module, pictures: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of pictures, of length 1."""

    def contrast(self, model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        """Return the contrastive loss of captions whose scenes are drawn (Radford et al. 2021)."""
        texts = self.text_vectors(model, self.captions.cut(rows))
        images = self.image_vectors(model, self._pictures(self.captions.scene[rows]))
        return contrastive_loss(self.scale(model) * texts @ images.T)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return what all pixel models are judged by, and how well captions are retrieved."""
        held_out = HeldOut(self.world)
        texts = self.text_vectors(model.model, held_out.captions.tokens)
        images = self.image_vectors(model.model, self.prepared(held_out.scenes))
        said = held_out.captions.table["text"].tolist()
        return super().judge(model) | {
            "contrastive retrieval": retrieved((texts @ images.T).numpy()),
            "truth's contrastive retrieval": retrieved(
                self.world.truth.similarity(said, held_out.scenes)
            ),
            "contrastive chance": 1 / N_HELD_OUT,
        }
