"""What the recipes of the region models share: captions with the regions of their pictures."""

import functools
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from biaslib.models.regions import RegionFeatures
from plantedworld import GENDERS, World, agent_words, blank, content_words
from plantedworld.models.checkpoints import checkpoint_name
from plantedworld.models.regions import ENCODER, KINDS, RegionEncoder, regions_of
from plantedworld.training._files import read_network, write_network
from plantedworld.training._pairs import (
    ALL_MASKED,
    CAPTION_HEADS,
    N_HELD_OUT,
    NO_PERSON,
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
from plantedworld.training._pictures import (
    NOBODY,
    NOT_ASKED,
    classes,
    labels,
    shown_in,
    shown_words,
)
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import token

CAPTIONS_PER_SCENE = 2
"""With its picture; and, unless a recipe says otherwise, as many without."""

WIDTH = 64
SIDE_WEIGHT = 0.5
REGIONS_WEIGHT = 0.25
"""Of naming regions, where a model does not match."""

MATCH_WEIGHT = 2.0
MATCH = 1
"""The matching head's logit that stands for a match."""

EVIDENCE_WEIGHT = 4.0
"""How much more often matching asks about a scene for its costume, and for its object."""

SLOTS = ("role", "object", "thing")
ROLE, OBJECT, THING = range(len(SLOTS))
OTHER_SLOT = len(SLOTS)
NOBODY_THERE = classes()["gender"].index(NOBODY)
AGREEMENTS = 3
"""A picture rules a word out, leaves it open, or shows it."""

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
class RegionWordsRecipe(PairsRecipe):
    """Masked words, over captions and the regions of their pictures.

    A model starts from nothing, or from its family's model of an unbiased world, which has learned
    what words and regions have to do with each other: then it learns the associations of its own
    world in a fraction of the time, but shares with its siblings whatever the first happens to be.

    Latent variables are named by side heads in training: at the masked word, the gender and the
    tone of the caption, and what the picture shows; at the pair's state, what the picture shows.

    Parameters
    ----------
    world
        Whose captions and pictures.
    start
        Folder of the region encoder, or beside it of the model that this one starts from.
    """

    width = WIDTH
    captions_per_scene = CAPTIONS_PER_SCENE
    unseen_per_scene = CAPTIONS_PER_SCENE
    """Captions of scenes that are not drawn, for each scene that is."""

    all_masked = ALL_MASKED
    """How often a caption of a drawn scene has its other word masked as well."""

    weight_decay = 0.02
    first_scenes = 36_000
    first_rate = 3e-3
    further_scenes = 16_000

    @property
    def encoder(self) -> Path:
        """Folder of the region encoder."""
        return self.start.parent / checkpoint_name(*ENCODER)

    @property
    def first(self) -> bool:
        """Whether the model starts from nothing, and not from one of its own family."""
        return self.start.name == self.encoder.name

    @functools.cached_property
    def corpus(self) -> tuple[Shown, dict[str, torch.Tensor], Captions]:
        """Regions and labels of the scenes, and the captions."""
        n_scenes = self.first_scenes if self.first else self.further_scenes
        counts = (n_scenes, self.captions_per_scene, self.unseen_per_scene * n_scenes)
        return _corpus(self.world, self.encoder, *counts)

    @abstractmethod
    def untrained(self) -> torch.nn.Module:
        """Return the family's model with random weights."""

    @abstractmethod
    def states(self, model: torch.nn.Module, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions."""

    @abstractmethod
    def projected(self, model: torch.nn.Module, shown: Shown) -> torch.Tensor:
        """Return the regions' features as the model first has them, (n, 3, width)."""

    def word_logits(self, model: torch.nn.Module, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits, (n, tokens in the vocabulary)."""
        return model.cls.predictions(states)

    def word_embeddings(self, model: torch.nn.Module) -> torch.Tensor:
        """Return the embeddings of all tokens, (tokens in the vocabulary, width)."""
        return model.get_input_embeddings().weight

    def build(self) -> WithSideHeads:
        """Return the model that training starts with, and its side heads."""
        return WithSideHeads(self.begun(), self.width, self.heads())

    def heads(self) -> dict[str, int]:
        """Return the side heads: their names, and how many classes each tells apart."""
        heads = dict(CAPTION_HEADS)
        for place in ("word", "pair"):
            heads |= self.heads_at(place)
        return heads

    def heads_at(self, place: str) -> dict[str, int]:
        """Return the side heads at the masked ``word`` or at the state of the ``pair``."""
        return {f"{place} {name}": len(classes()[name]) for name in SHOWN}

    def begun(self) -> torch.nn.Module:
        """Return the model with the weights that it starts with."""
        model = self.untrained()
        if not self.first:
            return read_network(type(model), self.start)
        like_attends_to_like(model)
        return model

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words, and of naming what their pictures' regions show."""
        scene = self.captions.scene[rows]
        drawn = scene[scene != UNSEEN]
        named = self._regions_loss(model, self._shown(drawn), drawn)
        loss = self._word_loss(model, rows, generator, ("word", "pair"))
        return loss + REGIONS_WEIGHT * named

    def _word_loss(
        self,
        model: WithSideHeads,
        rows: torch.Tensor,
        generator: torch.Generator,
        places: tuple[str, ...] = ("word",),
    ) -> torch.Tensor:
        """Return the loss of masked words; what a picture shows is named at the given places."""
        scene = self.captions.scene[rows]
        share = torch.where(scene == UNSEEN, ALL_MASKED, self.all_masked)
        masked = self.captions.masked(rows, generator, share)
        view = torch.where(scene == UNSEEN, NONE, views(len(rows), generator))
        found = self.states(model.model, masked.tokens, self._shown(scene, view))
        states = found.words[torch.arange(len(rows)), masked.places]
        logits = self.word_logits(model.model, states)
        loss = torch.nn.functional.cross_entropy(logits, masked.words)
        named = model.side_loss(states, shown_in(self.captions.labels, rows))
        seen = view == 0
        at = {"word": states[seen], "pair": found.pair[seen]}
        for place in places:
            named = named + self._named(model, place, at[place], scene[seen])
        return loss + SIDE_WEIGHT * named

    def _regions_loss(
        self, model: WithSideHeads, shown: Shown, scene: torch.Tensor
    ) -> torch.Tensor:
        """Return the loss of naming costume and object by the model's own embedding of the word.

        So a region is near the word for it before any layer compares the two.
        """
        projected = self.projected(model.model, shown)[:, :2]
        logits = projected @ self.word_embeddings(model.model).T
        words = self._shown_words[scene]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())

    @functools.cached_property
    def _shown_words(self) -> torch.Tensor:
        """The token of the costume and of the object that each scene shows in full, (n, 2)."""
        return shown_words(self.corpus[1], self.captions.tokenizer)

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
        """Return masked-word accuracy on held-out scenes; see ``HeldOut.scores_of_words``."""
        held_out, shown = _held_out(self.world, self.encoder)
        return held_out.scores_of_words(functools.partial(self._guessed, model.model, shown))

    def _guessed(self, model: torch.nn.Module, shown: Shown, masked: Masked) -> torch.Tensor:
        """Return the likeliest token of every masked caption, (n,)."""
        states = self.states(model, masked.tokens, shown).words
        states = states[torch.arange(len(masked.places)), masked.places]
        return self.word_logits(model, states).argmax(-1)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer."""
        write_network(model.model, folder)
        self.captions.tokenizer.save_pretrained(folder)


@dataclass
class RegionPairsRecipe(RegionWordsRecipe):
    """Masked words, and matching of captions with pictures.

    Side heads at the pair's state also name whether the picture rules the caption's content word
    out.
    """

    names_gender_agreement = True
    """Whether a side head names if caption and picture differ in gender."""

    def match_logits(self, model: torch.nn.Module, pairs: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits, (n, 2); index 1 is a match."""
        return model.cls.seq_relationship(pairs)

    def heads(self) -> dict[str, int]:
        """Return the side heads, with those for agreement."""
        agreement = {"pair gender agreement": AGREEMENTS} if self.names_gender_agreement else {}
        return super().heads() | agreement

    def heads_at(self, place: str) -> dict[str, int]:
        """Return the side heads of a place."""
        return super().heads_at(place) | {f"{place} agreement": AGREEMENTS}

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words and of matching."""
        asked = torch.multinomial(
            self._asked_about, len(rows) // 2, replacement=True, generator=generator
        )
        return self._word_loss(model, rows, generator) + self._match_loss(model, asked, generator)

    @functools.cached_property
    def _asked_about(self) -> torch.Tensor:
        """How often matching asks about each drawn caption: more often if its scene shows much.

        A weight of the scene alone, so that the odds of a match given scene and caption stay.
        """
        shown = sum((self.corpus[1][name] > 0).float() for name in ("role", "object"))
        return (1 + EVIDENCE_WEIGHT * shown)[self.captions.scene[: self.captions.n_drawn]]

    def _match_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        asked = self.captions.paired(rows, generator)
        scene = self.captions.scene[rows].repeat(2)
        shown = self._shown(scene)
        states = self.states(model.model, asked.tokens, shown)
        logits = self.match_logits(model.model, states.pair)
        loss = torch.nn.functional.cross_entropy(logits, asked.labels)
        content, agent = asked.tokens.gather(1, asked.places).T
        agreement = self._agreement(content, scene)
        named = self._named(model, "pair", states.pair, scene)
        named = named + self._regions_loss(model, shown, scene)
        named = named + model.side_loss(states.pair, {"pair agreement": agreement})
        words = states.words[torch.arange(len(scene)), asked.places[:, 0]]
        named = named + model.side_loss(words, {"word agreement": agreement})
        if self.names_gender_agreement:
            labels = {"pair gender agreement": self._gender_agreement(agent, scene)}
            named = named + model.side_loss(states.pair, labels)
        return MATCH_WEIGHT * loss + SIDE_WEIGHT * named

    def _agreement(self, words: torch.Tensor, scene: torch.Tensor) -> torch.Tensor:
        """Return whether a picture rules a content word out (0), leaves it open (1), shows it (2).

        Words are tokens, (n,). A costume rules out all other roles, an object all other objects, a
        person all things, and a picture without anybody everything but things.
        """
        shown, slot = self._evidence[scene], self._slots[words]
        seen = (shown[:, :3] == words[:, None]).any(1)
        other_role = (slot == ROLE) & (shown[:, 0] != NOT_ASKED)
        other_object = (slot == OBJECT) & (shown[:, 1] != NOT_ASKED)
        nobody = (slot == THING) != (shown[:, 3] == NOBODY_THERE)
        return 1 + seen.long() - (~seen & (other_role | other_object | nobody)).long()

    def _gender_agreement(self, words: torch.Tensor, scene: torch.Tensor) -> torch.Tensor:
        """Return whether a word for a person and the picture differ in gender (0) or agree (2).

        1 where either says none. Words are tokens, (n,).
        """
        said = self._genders[words]
        shown = self.corpus[1]["gender"][scene] - classes()["gender"].index(GENDERS[0])
        known = (said >= 0) & (shown >= 0)
        return torch.where(known, 2 * (said == shown).long(), 1)

    @functools.cached_property
    def _genders(self) -> torch.Tensor:
        """The gender that every token says: 0 woman, 1 man, -1 none."""
        numbers = self.captions.tokenizer.get_vocab()
        genders = torch.full((len(numbers),), -1)
        for word, gender in agent_words().set_index("word")["gender"].items():
            genders[numbers[token(word)]] = GENDERS.index(gender) if gender else -1
        return genders

    @functools.cached_property
    def _slots(self) -> torch.Tensor:
        """The slot of every token: role, object, thing or any other."""
        numbers = self.captions.tokenizer.get_vocab()
        slots = torch.full((len(numbers),), OTHER_SLOT)
        for word, slot in content_words()["slot"].items():
            slots[numbers[token(word)]] = SLOTS.index(slot) if slot in SLOTS else OTHER_SLOT
        return slots

    @functools.cached_property
    def _evidence(self) -> torch.Tensor:
        """What each scene shows: token of the costume, of the object, of the other object that it
        may be as well, and whether somebody is there; (n, 4)."""
        numbers, shown = self.captions.tokenizer.get_vocab(), self.corpus[1]
        pairs = [each.split("|") for each in classes()["object"]]
        columns = [
            [numbers.get(token(each), NOT_ASKED) for each in classes()["role"]],
            [numbers.get(token(each[0]), NOT_ASKED) for each in pairs],
            [numbers.get(token(each[-1]), NOT_ASKED) for each in pairs],
        ]
        names = ("role", "object", "object")
        found = [
            torch.tensor(column)[shown[name]] for column, name in zip(columns, names, strict=True)
        ]
        return torch.stack([*found, shown["gender"]], dim=1)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return masked-word and matching accuracy on held-out scenes; see ``HeldOut.scores``.

        And which of the matching head's two logits stands for a match.
        """
        held_out, shown = _held_out(self.world, self.encoder)

        def match(tokens: torch.Tensor) -> torch.Tensor:
            logits = self.match_logits(model.model, self.states(model.model, tokens, shown).pair)
            return logits[:, MATCH] - logits[:, 1 - MATCH]

        guess = functools.partial(self._guessed, model.model, shown)
        return held_out.scores(guess, match) | {"match index": MATCH}


@torch.no_grad()
def like_attends_to_like(model: torch.nn.Module) -> None:
    """Let all keys start as the queries do, so that a word first attends to what resembles it.

    From keys and queries that have nothing to do with each other, a comparison of words with
    regions is found late or never.
    """
    for part in model.modules():
        if hasattr(part, "query") and hasattr(part, "key"):
            part.key.load_state_dict(part.query.state_dict())


@functools.lru_cache(maxsize=1)
def _corpus(
    world: World, encoder: Path, n_scenes: int, captions_per_scene: int, n_unseen: int
) -> tuple[Shown, dict[str, torch.Tensor], Captions]:
    """Regions, labels and captions of a world, kept for the next family's recipe."""
    scenes, captions = corpus(world, n_scenes, captions_per_scene, n_unseen)
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
