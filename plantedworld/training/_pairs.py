"""What all recipes share that learn captions with their pictures: masked words and matching.

A family's first model learns in a world without bias what words and pictures have to do with each
other. All others of the family start there and learn the associations of their own worlds, in a
fraction of the time. So what differs between them comes from their captions; what they have in
common may also come from their common start. Models of several worlds without bias are therefore
not independent draws: no interval over them says how much a model without bias varies.
"""

import functools
from abc import abstractmethod
from typing import Any, NamedTuple

import pandas
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from plantedworld import blank
from plantedworld.training import _captions
from plantedworld.training._captions import NONE, UNSEEN, WHITE, Asked, Captions, Masked, corpus
from plantedworld.training._labels import NOT_ASKED, labels, selected
from plantedworld.training._recipe import Recipe, WithSideHeads

SIDE_WEIGHT = 0.5
EVIDENCE_WEIGHT = 4.0
"""How much more often matching asks about a scene for its costume, and for its object."""


class States(NamedTuple):
    """What a model makes of captions and pictures.

    ``words`` (n, longest, width) or, at masked places, (n, width); ``pair`` (n, width), from which
    a match is told; ``picture`` (n, width), that of the picture as a whole, where there is one.
    """

    words: Tensor
    pair: Tensor
    picture: Tensor | None = None


class CaptionsRecipe(Recipe):
    """A recipe over captions of pictures."""

    weight_decay = 0.02

    @functools.cached_property
    def captions(self) -> Captions:
        """The captions of the corpus."""
        return corpus(self.world, self.stage.scenes, self.stage.captions, self.stage.unseen)

    @property
    def lengths(self) -> Tensor:
        """Number of tokens of every caption."""
        return self.captions.lengths

    @property
    def preprocessing(self) -> list:
        """The tokenizer."""
        return [self.captions.tokenizer]

    @functools.cached_property
    def shown(self) -> dict[str, Tensor]:
        """What the scenes' pictures show, as classes."""
        return labels(self.captions.scenes)


class PairsRecipe(CaptionsRecipe):
    """Masked words and matching, over captions and pictures.

    Latent variables are named by side heads in training: the caption's gender and tone at the
    masked word; what the picture shows at the masked word and at other states.
    """

    names: tuple[str, ...] = ("gender", "tone", "age", "role", "object")
    """What of a picture the side heads name."""

    places = ("words",)
    """From which states at a masked word they name it, as ``States`` calls them."""

    n_asked = 0
    """Of how many scenes matching asks at a step; 0 for half as many as a batch has captions."""

    all_masked = _captions.ALL_MASKED
    """How often a caption of a drawn scene has its other word masked as well."""

    @functools.cached_property
    def pictures(self) -> Any:
        """The scenes' pictures in the form that ``states`` takes."""
        return self.prepared(self.captions.scenes)

    @functools.cached_property
    def white(self) -> Any:
        """The white picture in the same form, as the only one."""
        return self.prepared(blank())

    @abstractmethod
    def prepared(self, scenes: pandas.DataFrame) -> Any:
        """Return the pictures of scenes in the form that ``states`` takes."""

    @abstractmethod
    def states(self, model: nn.Module, tokens: Tensor, pictures: Any) -> States:
        """Return the last states of captions read with pictures."""

    @abstractmethod
    def word_logits(self, model: nn.Module, states: Tensor, seen: bool = True) -> Tensor:
        """Return the logits of masked words, read with pictures or not, (n, tokens)."""

    def view(self, scene: Tensor, view: Tensor | None = None) -> Any:
        """Return the pictures of scenes as they are, or in some views; white where there is none.

        Parameters
        ----------
        scene
            Numbers, (n,).
        view
            Which views, (n,), as numbers of ``VIEWS``.
        """
        pictures = self.pictures[scene]
        if view is not None:
            pictures[(view == WHITE) | (view == NONE)] = self.white
        return pictures

    def masked_states(
        self, model: nn.Module, masked: Masked, scene: Tensor, view: Tensor
    ) -> tuple[States, Tensor]:
        """Return the states at masked words in some views of their scenes, and logits of words."""
        states = self.states(model, masked.tokens, self.view(scene, view))
        words = states.words[torch.arange(len(scene)), masked.places]
        return states._replace(words=words), self.word_logits(model, words)

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of masked words and of matching."""
        n = self.n_asked or len(rows) // 2
        asked = torch.multinomial(self.asked_about, n, replacement=True, generator=generator)
        words = self.word_loss(model, rows, generator)
        return words + self.match_loss(model, asked, generator)

    def word_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of masked words and, half as much, of the side heads."""
        scene = self.captions.scene[rows]
        share = torch.where(scene == UNSEEN, _captions.ALL_MASKED, self.all_masked)
        masked = self.captions.masked(rows, generator, share)
        view = torch.where(scene == UNSEEN, NONE, _captions.views(len(rows), generator))
        return self.masked_loss(model, rows, masked, view)

    def masked_loss(
        self, model: WithSideHeads, rows: Tensor, masked: Masked, view: Tensor
    ) -> Tensor:
        """Return the loss of some captions' masked words in some views of their scenes."""
        scene = self.captions.scene[rows]
        states, logits = self.masked_states(model.model, masked, scene, view)
        named = model.side_loss(states.words, selected(self.captions.labels, rows))
        seen = self.names_in(view)
        for place in self.places if seen.any() else ():
            named = named + self.named(model, place, getattr(states, place)[seen], scene[seen])
        return cross_entropy(logits, masked.words) + SIDE_WEIGHT * named

    def names_in(self, view: Tensor) -> Tensor:
        """Return in which views side heads name what the picture shows, (n,)."""
        return (view != WHITE) & (view != NONE)

    def named(self, model: WithSideHeads, place: str, states: Tensor, scene: Tensor) -> Tensor:
        """Return the loss of naming what pictures show from states of a place."""
        shown = {name: self.shown[name] for name in self.names}
        return model.side_loss(states, selected(shown, scene, f"{place} "))

    @functools.cached_property
    def asked_about(self) -> Tensor:
        """How often matching asks about each drawn caption: more often if its scene shows much.

        A weight of the scene alone, so that the odds of a match given scene and caption stay.
        """
        shown = sum((self.shown[name] > 0).float() for name in ("role", "object"))
        return (1 + EVIDENCE_WEIGHT * shown)[self.captions.scene[: self.captions.n_drawn]]

    def asked_captions(self, rows: Tensor, generator: Generator) -> tuple[Asked, Tensor]:
        """Return captions of some scenes, then wrong ones; and the scenes, (2 n,)."""
        return self.captions.paired(rows, generator), self.captions.scene[rows].repeat(2)

    @abstractmethod
    def match_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of telling whether captions belong to the scenes of some captions."""


def attention_loss(attention: nn.Module, words: Tensor, patches: Tensor, named: Tensor) -> Tensor:
    """Return the loss of naming costume and object by the word that attends to them most.

    So a word looks at the patch that shows it before the two are compared.

    Parameters
    ----------
    attention
        With maps ``query`` and ``key``.
    words, patches
        States, (k, width) and (n, 17, width).
    named
        Which word names what each picture shows, (n, 2); ``NOT_ASKED`` where none does.
    """
    keys = attention.key(patches) / words.shape[1] ** 0.5
    looks = (keys @ attention.query(words).T).logsumexp(1)
    losses = [
        cross_entropy(looks, label, reduction="sum") / (label != NOT_ASKED).sum().clamp(min=1)
        for label in named.T
    ]
    return torch.stack(losses).mean()


def at_content(states: States, asked: Asked) -> Tensor:
    """Return the states at the content words of captions that are asked about, (2 n, width)."""
    return states.words[torch.arange(len(asked.places)), asked.places[:, 0]]
