"""What the recipes of the region models share: captions with the regions of their pictures."""

import functools
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from biaslib.models.planted_regions import KINDS, RegionEncoder, regions_of
from biaslib.models.regions import RegionFeatures
from biaslib.planted import GENDERS, TONES, World, blank
from biaslib.training._pairs import (
    N_HELD_OUT,
    NO_PERSON,
    NONE,
    UNSEEN,
    WHITE,
    Captions,
    HeldOut,
    Masked,
    corpus,
    views,
)
from biaslib.training._pictures import classes, labels
from biaslib.training._recipe import Recipe, WithSideHeads

N_SCENES = 36_000
CAPTIONS_PER_SCENE = 2
N_UNSEEN = 72_000
WIDTH = 64
SIDE_WEIGHT = 0.5
MATCH_WEIGHT = 1.0

SHOWN = ("gender", "tone", "role", "object")
"""What a picture shows, as side heads name it from a caption's masked place and from [CLS]."""

OF_PEOPLE = torch.tensor([kind != "object" for kind in KINDS])


class Shown(NamedTuple):
    """Regions of a batch: features (n, 3, d), boxes (n, 3, 4), which are there (n, 3)."""

    features: torch.Tensor
    boxes: torch.Tensor
    real: torch.Tensor


class States(NamedTuple):
    """What a model makes of captions and regions: states of the words, and one of the pair."""

    words: torch.Tensor
    pair: torch.Tensor


@dataclass
class RegionPairsRecipe(Recipe):
    """Masked words and matching, over captions and the regions of their pictures.

    Latent variables are named by side heads in training: at the masked word, the gender and the
    tone of the caption, and what the picture shows; at the pair's state, what the picture shows.
    """

    encoder: Path

    epochs = 4
    weight_decay = 0.02

    @functools.cached_property
    def corpus(self) -> tuple[Shown, dict[str, torch.Tensor], Captions]:
        """Regions and labels of the scenes, and the captions."""
        return _corpus(self.world, self.encoder)

    @property
    def captions(self) -> Captions:
        """The captions of the corpus."""
        return self.corpus[2]

    @property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return self.captions.lengths

    @abstractmethod
    def build_model(self) -> torch.nn.Module:
        """Return the untrained model itself."""

    @abstractmethod
    def states(self, model: torch.nn.Module, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions."""

    @abstractmethod
    def word_logits(self, model: torch.nn.Module, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits, (n, tokens in the vocabulary)."""

    @abstractmethod
    def match_logits(self, model: torch.nn.Module, pairs: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits, (n, 2); index 1 is a match."""

    def build(self) -> WithSideHeads:
        """Return the untrained model with its side heads."""
        shown = {name: len(classes()[name]) for name in SHOWN}
        heads = {"caption gender": len(GENDERS), "caption tone": len(TONES)}
        for place in ("word", "pair"):
            heads |= {f"{place} {name}": count for name, count in shown.items()}
        return WithSideHeads(self.build_model(), WIDTH, heads)

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words and of matching."""
        drawn = rows[self.captions.scene[rows] != UNSEEN]
        return self._word_loss(model, rows, generator) + self._match_loss(model, drawn, generator)

    def _word_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        masked = self.captions.masked(rows, generator)
        scene = self.captions.scene[rows]
        view = torch.where(scene == UNSEEN, NONE, views(len(rows), generator))
        states = self.states(model.model, masked.tokens, self._shown(scene, view)).words
        states = states[torch.arange(len(rows)), masked.places]
        logits = self.word_logits(model.model, states)
        loss = torch.nn.functional.cross_entropy(logits, masked.words)
        latent = {f"caption {name}": each[rows] for name, each in self.captions.labels.items()}
        named = model.side_loss(states, latent)
        seen = view == 0
        named = named + self._named(model, "word", states[seen], scene[seen])
        return loss + SIDE_WEIGHT * named

    def _match_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        matched = self.captions.matched(rows, generator)
        scene = self.captions.scene[rows]
        pair = self.states(model.model, matched.tokens, self._shown(scene)).pair
        logits = self.match_logits(model.model, pair)
        loss = torch.nn.functional.cross_entropy(logits, matched.labels)
        return MATCH_WEIGHT * loss + SIDE_WEIGHT * self._named(model, "pair", pair, scene)

    def _named(
        self, model: WithSideHeads, place: str, states: torch.Tensor, scene: torch.Tensor
    ) -> torch.Tensor:
        shown = {f"{place} {name}": self.corpus[1][name][scene] for name in SHOWN}
        return model.side_loss(states, shown)

    def _shown(self, scene: torch.Tensor, view: torch.Tensor | None = None) -> Shown:
        """Return the regions of scenes, all there or as some view has them."""
        features, boxes, real = (part[scene] for part in self.corpus[0])
        if view is None:
            return Shown(features, boxes, real)
        white = _white(self.encoder)
        is_white = (view == WHITE)[:, None]
        features = torch.where(is_white[..., None], white.features, features)
        boxes = torch.where(is_white[..., None], white.boxes, boxes)
        real = torch.where(is_white, white.real, real) & (view != NONE)[:, None]
        hidden = (view == NO_PERSON)[:, None] & OF_PEOPLE
        kept = (real & ~hidden)[..., None]
        return Shown(features * kept, boxes * real[..., None], real)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return masked-word and matching accuracy on held-out scenes; see ``HeldOut.scores``."""
        held_out, shown = _held_out(self.world, self.encoder)

        def guess(masked: Masked) -> torch.Tensor:
            states = self.states(model.model, masked.tokens, shown).words
            states = states[torch.arange(len(masked.places)), masked.places]
            return self.word_logits(model.model, states).argmax(-1)

        def match(tokens: torch.Tensor) -> torch.Tensor:
            logits = self.match_logits(model.model, self.states(model.model, tokens, shown).pair)
            return logits[:, 1] - logits[:, 0]

        return held_out.scores(guess, match)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer in the format of transformers."""
        model.model.half().save_pretrained(folder)
        self.captions.tokenizer.save_pretrained(folder)


@functools.lru_cache(maxsize=1)
def _corpus(world: World, encoder: Path) -> tuple[Shown, dict[str, torch.Tensor], Captions]:
    """Regions, labels and captions of a world, kept for the next family's recipe."""
    scenes, captions = corpus(world, N_SCENES, CAPTIONS_PER_SCENE, N_UNSEEN)
    return _as_shown(regions_of(scenes, model=_encoder(encoder))), labels(scenes), captions


@functools.lru_cache(maxsize=1)
def _held_out(world: World, encoder: Path) -> tuple[HeldOut, Shown]:
    held_out = HeldOut(world, N_HELD_OUT)
    return held_out, _as_shown(regions_of(held_out.scenes, model=_encoder(encoder)))


@functools.cache
def _encoder(folder: Path) -> RegionEncoder:
    return RegionEncoder.from_pretrained(folder)


@functools.cache
def _white(folder: Path) -> Shown:
    return _as_shown(regions_of(blank(), model=_encoder(folder)))


def _as_shown(found: RegionFeatures) -> Shown:
    return Shown(*(torch.tensor(part) for part in (found.features, found.boxes, found.real)))
