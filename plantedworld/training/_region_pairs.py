"""What the recipes of the region models share: captions with the regions of their pictures."""

from abc import abstractmethod
from typing import NamedTuple

import pandas
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from plantedworld.models.regions import KINDS, regions_of
from plantedworld.training import _captions, _labels
from plantedworld.training._pairs import SIDE_WEIGHT, PairsRecipe, at_content
from plantedworld.training._recipe import WithSideHeads

WIDTH = 64
MATCH_WEIGHT = 2.0
NAMES = ("gender", "tone", "role", "object")
OF_PEOPLE = torch.tensor([kind != "object" for kind in KINDS])


class RegionBatch(NamedTuple):
    """Regions of pictures: features (n, 3, d), boxes (n, 3, 4), which are there (n, 3)."""

    features: Tensor
    boxes: Tensor
    real: Tensor


class RegionPairsRecipe(PairsRecipe):
    """Masked words, and matching of captions with the regions of their pictures.

    Side heads also name, at the content word and at the pair's state, whether the picture rules the
    content word out and, at the pair's state, whether caption and picture differ in gender.
    """

    width = WIDTH
    names = NAMES
    agreements = {"words": ("agreement",), "pair": ("agreement", "gender agreement")}  # noqa: RUF012
    """Of what the side heads at each place name the agreement of caption and picture."""

    @property
    def heads(self) -> dict[str, int]:
        """Side heads at a word and at the pair's state."""
        heads = dict(_captions.CAPTION_HEADS)
        for place, agreements in self.agreements.items():
            heads |= _labels.n_classes(f"{place} ", NAMES)
            heads |= {f"{place} {name}": 3 for name in agreements}
        return heads

    def prepared(self, scenes: pandas.DataFrame) -> RegionBatch:
        """Return the regions of scenes."""
        regions = regions_of(scenes)
        parts = (regions.features, regions.boxes, regions.real)
        return RegionBatch(*(torch.tensor(part) for part in parts))

    @abstractmethod
    def projected(self, model: nn.Module, regions: RegionBatch) -> Tensor:
        """Return the regions' features as the model first has them, (n, 3, width)."""

    def word_head(self, model: nn.Module) -> nn.Module:
        """Return the masked-word head, whose decoder has the embeddings of all tokens."""
        return model.cls.predictions

    def word_logits(self, model: nn.Module, states: Tensor, seen: bool = True) -> Tensor:
        """Return the masked-word head's logits."""
        return self.word_head(model)(states)

    def view(self, scene: Tensor, view: Tensor | None = None) -> RegionBatch:
        """Return the regions of scenes, all there or as some view has them."""
        features, boxes, real = (part[scene] for part in self.pictures)
        if view is None:
            return RegionBatch(features, boxes, real)
        white = (view == _captions.WHITE)[:, None]
        features = torch.where(white[..., None], self.white.features, features)
        boxes = torch.where(white[..., None], self.white.boxes, boxes)
        real = torch.where(white, self.white.real, real) & (view != _captions.NONE)[:, None]
        hidden = (view == _captions.NO_PERSON)[:, None] & OF_PEOPLE
        kept = (real & ~hidden)[..., None]
        return RegionBatch(features * kept, boxes * real[..., None], real)

    def names_in(self, view: Tensor) -> Tensor:
        """Return in which views the whole picture is there, (n,)."""
        return view == _captions.PICTURE

    def regions_loss(self, model: WithSideHeads, regions: RegionBatch, scene: Tensor) -> Tensor:
        """Return the loss of naming costume and object by the model's own embedding of the word.

        So a region is near the word for it before any layer compares the two.
        """
        projected = self.projected(model.model, regions)[:, :2]
        logits = projected @ self.word_head(model.model).decoder.weight.T
        words = _labels.shown_words(_labels.selected(self.shown, scene))
        return cross_entropy(logits.flatten(0, 1), words.flatten())

    def match_logits(self, model: nn.Module, pair: Tensor) -> Tensor:
        """Return the matching head's logits, (n, 2); index 1 is a match."""
        return model.cls.seq_relationship(pair)

    def match_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of matching, of naming regions and of the side heads."""
        asked, scene = self.asked_captions(rows, generator)
        regions, shown = self.view(scene), _labels.selected(self.shown, scene)
        states = self.states(model.model, asked.tokens, regions)
        loss = cross_entropy(self.match_logits(model.model, states.pair), asked.labels)
        content, person = asked.tokens.gather(1, asked.places).T
        fits = {
            "agreement": _labels.agreement_of_content(content, shown),
            "gender agreement": _labels.agreement_of_gender(person, shown),
        }
        named = self.named(model, "pair", states.pair, scene)
        named = named + self.regions_loss(model, regions, scene)
        read = {"words": at_content(states, asked), "pair": states.pair}
        for place, agreements in self.agreements.items():
            asked_for = {f"{place} {name}": fits[name] for name in agreements}
            named = named + model.side_loss(read[place], asked_for)
        return MATCH_WEIGHT * loss + SIDE_WEIGHT * named


@torch.no_grad()
def like_attends_to_like(model: nn.Module) -> None:
    """Let all keys start as the queries do, so that a word first attends to what resembles it.

    From keys and queries that have nothing to do with each other, a comparison of words with
    regions is found late or never.
    """
    for part in model.modules():
        if hasattr(part, "query") and hasattr(part, "key"):
            part.key.load_state_dict(part.query.state_dict())
