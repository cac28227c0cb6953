"""What the recipes of ViLT and FLAVA share: captions with pictures, as pixels or their states.

Each family has a model of an unbiased world, which learns from the vision tower on
(:mod:`plantedworld.training.vit`) what words and pictures have to do with each other; ViLT, which
takes longer, has a second one that goes on from the first. All others of the family start there and
learn the associations of their own worlds, in a fraction of the time. So what differs between them
comes from their captions; what they have in common may also come from their common start. Models
of several worlds without bias are therefore not independent draws: no interval over them says how
much a model without bias varies.
"""

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import pandas
import torch
from torch.nn.functional import cross_entropy

from plantedworld import World, blank
from plantedworld.training._agreement import PARTS, agreement
from plantedworld.training._pairs import (
    CAPTION_HEADS,
    NONE,
    UNSEEN,
    WHITE,
    Captions,
    HeldOut,
    Masked,
    PairsRecipe,
    corpus,
    views,
)
from plantedworld.training._pictures import classes, labels, shown_in
from plantedworld.training._recipe import WithSideHeads

FIRST_SCENES = 30_000
N_SCENES = 15_000
"""Scenes of the family's first model, and of all others."""

CAPTIONS_PER_SCENE = 2
FIRST_UNSEEN = 20_000
N_UNSEEN = 30_000
"""Captions without a picture, of the models of worlds without bias that others start from, and of
all others."""

SECOND_SEED = 1001
"""Seed of the world without bias of a family's second model, where it has one."""

MATCH_WEIGHT = 2.0
WORD_SIDE_WEIGHT = 0.5
PICTURE_SIDE_WEIGHT = 0.5
AGREEMENT_WEIGHT = 1.0

AT_ONCE = 500
"""Captions that are read at once when a model is judged."""


class States(NamedTuple):
    """What a model makes of captions and pictures.

    ``words`` (n, longest, width); ``first`` (n, width), from which a match is told; ``picture``
    (n, width), that of the picture as a whole, or None where there is no picture.
    """

    words: torch.Tensor
    first: torch.Tensor
    picture: torch.Tensor | None


@dataclass
class PixelPairsRecipe(PairsRecipe):
    """Masked words and matching, over captions and pictures.

    Latent variables are named by side heads in training: the caption's gender and tone at the
    masked word; what the picture shows at the masked word and at the states of the picture and of
    the pair; and, once words and pictures have to do with each other, whether they agree.
    """

    weight_decay = 0.02
    first_epochs = 5
    second_epochs = 4

    @property
    def epochs(self) -> int:
        """More for the models that others start from."""
        second = not self.first and self.world.seed == SECOND_SEED
        return self.second_epochs if second else super().epochs

    @functools.cached_property
    def corpus(self) -> tuple[pandas.DataFrame, Captions]:
        """The scenes, and the captions."""
        early = self.first or self.world.seed == SECOND_SEED
        n_scenes = FIRST_SCENES if self.first else N_SCENES
        n_unseen = FIRST_UNSEEN if early else N_UNSEEN
        return corpus(self.corpus_world, n_scenes, CAPTIONS_PER_SCENE, n_unseen)

    @property
    def corpus_world(self) -> World:
        """The world that the corpus is drawn from."""
        return self.world

    @functools.cached_property
    def shown(self) -> dict[str, torch.Tensor]:
        """What the scenes' pictures show, as classes."""
        return labels(self.corpus[0])

    @functools.cached_property
    def pictures(self) -> torch.Tensor:
        """The scenes' pictures in the form that ``states`` takes."""
        return self.prepared(self.corpus[0])

    @functools.cached_property
    def white(self) -> torch.Tensor:
        """The white picture in the same form, as the only one."""
        return self.prepared(blank())

    @abstractmethod
    def prepared(self, scenes: pandas.DataFrame) -> torch.Tensor:
        """Return the pictures of scenes in the form that ``states`` takes."""

    @abstractmethod
    def build_model(self) -> torch.nn.Module:
        """Return the model as it is when training begins."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of the states."""

    @abstractmethod
    def states(
        self, model: torch.nn.Module, tokens: torch.Tensor, pictures: torch.Tensor | None
    ) -> States:
        """Return the last states of captions read with pictures, or without any."""

    @abstractmethod
    def word_logits(self, model: torch.nn.Module, states: torch.Tensor, seen: bool) -> torch.Tensor:
        """Return the logits of masked words, read with pictures or not, (n, words)."""

    @abstractmethod
    def match_logits(self, model: torch.nn.Module, first: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits, (n, 2); index 1 is a match."""

    def build(self) -> WithSideHeads:
        """Return the untrained model with its side heads."""
        heads = dict(CAPTION_HEADS)
        for place in ("picture", "first", "word"):
            heads |= {f"{place} {name}": len(each) for name, each in classes().items()}
        heads |= {f"agrees in {name}": 3 for name in PARTS}
        return WithSideHeads(self.build_model(), self.width, heads)

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words and of matching."""
        drawn = rows[self.captions.scene[rows] != UNSEEN]
        words = self._word_loss(model, rows, generator)
        return words + self._match_loss(model, drawn, generator)

    def _word_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        masked, scene = self.captions.masked(rows, generator), self.captions.scene[rows]
        view = torch.where(scene == UNSEEN, NONE, views(len(rows), generator))
        loss, found = torch.zeros(()), []
        for seen in (True, False):
            part = torch.nonzero((view != NONE) == seen)[:, 0]
            tokens, places, words = (each[part] for each in masked)
            pictures = self._pictures(scene[part], view[part] == WHITE) if seen else None
            states = self.states(model.model, tokens, pictures)
            found.append((part, states.words[torch.arange(len(part)), places]))
            logits = self.word_logits(model.model, found[-1][1], seen)
            loss = loss + cross_entropy(logits, words, reduction="sum") / len(rows)
            if seen:
                plain = view[part] != WHITE
                shown, of_picture = scene[part][plain], states.picture[plain]
                loss = loss + self._named(model, "picture", of_picture, shown)
                loss = loss + self._named(model, "word", found[-1][1][plain], shown)
        part, states = (torch.cat(each) for each in zip(*found, strict=True))
        latent = shown_in(self.captions.labels, rows[part])
        return loss + WORD_SIDE_WEIGHT * model.side_loss(states, latent)

    def _match_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        matched, scene = self.captions.matched(rows, generator), self.captions.scene[rows]
        states = self.states(model.model, matched.tokens, self._pictures(scene))
        loss = cross_entropy(self.match_logits(model.model, states.first), matched.labels)
        named = self._named(model, "picture", states.picture, scene)
        named = named + self._named(model, "first", states.first, scene)
        loss = MATCH_WEIGHT * loss + named
        if self.first:
            return loss
        compared = agreement(matched.tokens, shown_in(self.shown, scene))
        agrees = {f"agrees in {name}": each for name, each in compared.items()}
        return loss + AGREEMENT_WEIGHT * model.side_loss(states.first, agrees)

    def _named(
        self, model: WithSideHeads, place: str, states: torch.Tensor, scene: torch.Tensor
    ) -> torch.Tensor:
        shown = {f"{place} {name}": each[scene] for name, each in self.shown.items()}
        return PICTURE_SIDE_WEIGHT * model.side_loss(states, shown)

    def _pictures(self, scene: torch.Tensor, white: torch.Tensor | None = None) -> torch.Tensor:
        """Return the pictures of scenes, the white one where it is asked for."""
        pictures = self.pictures[scene]
        if white is not None:
            pictures[white] = self.white
        return pictures

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return masked-word and matching accuracy on held-out scenes; see ``HeldOut.scores``."""
        held_out = HeldOut(self.world)
        pictures = self.prepared(held_out.scenes)

        def guess(masked: Masked) -> torch.Tensor:
            return self.masked_logits(model, masked, pictures).argmax(-1)

        def match(tokens: torch.Tensor) -> torch.Tensor:
            return self.match_log_odds(model, tokens, pictures)

        return held_out.scores(guess, match)

    def masked_logits(
        self, model: WithSideHeads, masked: Masked, pictures: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the logits of all words at the masked places, (n, words)."""
        found = []
        for rows in torch.arange(len(masked.tokens)).split(AT_ONCE):
            shown = None if pictures is None else pictures[rows]
            words = self.states(model.model, masked.tokens[rows], shown).words
            states = words[torch.arange(len(rows)), masked.places[rows]]
            found.append(self.word_logits(model.model, states, pictures is not None))
        return torch.cat(found)

    def match_log_odds(
        self, model: WithSideHeads, tokens: torch.Tensor, pictures: torch.Tensor
    ) -> torch.Tensor:
        """Return the log-odds that captions belong to their pictures, (n,)."""
        parts = zip(tokens.split(AT_ONCE), pictures.split(AT_ONCE), strict=True)
        firsts = torch.cat([self.states(model.model, *part).first for part in parts])
        logits = self.match_logits(model.model, firsts)
        return logits[:, 1] - logits[:, 0]
