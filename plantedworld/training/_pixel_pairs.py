"""What the recipes of ViLT, FLAVA and ALBEF share: captions with pictures, over a vision tower."""

import functools
from abc import abstractmethod

import pandas
import torch
from torch import Tensor, nn
from transformers import FlavaImageModel

from plantedworld.training._captions import CAPTION_HEADS, NONE, Masked
from plantedworld.training._labels import PARTS, agreement, n_classes, selected
from plantedworld.training._pairs import PairsRecipe, States
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training.clip import contrastive_loss
from plantedworld.training.vit import read_tower, tower_states


class PixelPairsRecipe(PairsRecipe):
    """Masked words and matching, over captions and pictures.

    Once words and pictures have to do with each other, side heads also name whether they agree, and
    in what.
    """

    starts_from = "vit"
    heads = (
        CAPTION_HEADS
        | n_classes("picture ")
        | n_classes("pair ")
        | n_classes("words ")
        | {f"agrees in {name}": 3 for name in PARTS}
    )

    @abstractmethod
    def match_logits(self, model: nn.Module, pair: Tensor) -> Tensor:
        """Return the matching head's logits, (n, 2); index 1 is a match."""

    def agreement_loss(
        self, model: WithSideHeads, tokens: Tensor, scene: Tensor, states: dict[str, Tensor]
    ) -> Tensor:
        """Return the loss of naming in what captions agree with scenes, from states of places."""
        agreements = agreement(tokens, selected(self.shown, scene)).items()
        losses = []
        for place, read in states.items():
            labels = {f"{place} in {name}": label for name, label in agreements}
            losses.append(model.side_loss(read, labels))
        return torch.stack(losses).sum()


class ReadsWithoutPictures(PixelPairsRecipe):
    """A model whose captions without a picture are read by themselves."""

    places = ("picture", "words")

    def masked_states(
        self, model: nn.Module, masked: Masked, scene: Tensor, view: Tensor
    ) -> tuple[States, Tensor]:
        """Return the states at masked words, read with their pictures or alone, and the logits."""
        order, parts = [], []
        for seen in (view != NONE).unique().tolist():
            rows = torch.nonzero((view != NONE) == seen)[:, 0]
            pictures = self.view(scene[rows], view[rows]) if seen else None
            states = self.states(model, masked.tokens[rows], pictures)
            words = states.words[torch.arange(len(rows)), masked.places[rows]]
            picture = states.picture if seen else torch.zeros_like(words)
            order.append(rows)
            parts.append((words, states.pair, picture, self.word_logits(model, words, seen)))
        back = torch.cat(order).argsort()
        *states, logits = (torch.cat(both)[back] for both in zip(*parts, strict=True))
        return States(*states), logits


class ContrastivePairsRecipe(PixelPairsRecipe):
    """Masked words, matching, and unit vectors of captions and pictures, over a tower that stays.

    The tower's states of the pictures are worked out once (compare Zhai et al. 2022, LiT).
    """

    @functools.cached_property
    def tower(self) -> FlavaImageModel:
        """The vision tower that the states of pictures come from."""
        return read_tower(self.start)

    def prepared(self, scenes: pandas.DataFrame) -> Tensor:
        """Return the tower's states before its last normalisation, float16, (n, 17, 64)."""
        return tower_states(self.tower, scenes)

    @abstractmethod
    def similarities(self, model: nn.Module, tokens: Tensor, pictures: Tensor) -> Tensor:
        """Return the scaled cosines of n captions with n pictures, (n, n)."""

    def contrast(self, model: nn.Module, rows: Tensor) -> Tensor:
        """Return the contrastive loss of captions whose scenes are drawn (Radford et al. 2021)."""
        pictures = self.view(self.captions.scene[rows])
        return contrastive_loss(self.similarities(model, self.captions.cut(rows), pictures))
