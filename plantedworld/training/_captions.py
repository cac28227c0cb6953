"""Captions of planted worlds as tokens: masked, matched with pictures, and swapped.

Two questions are put to a model: which word is masked, and whether a caption belongs to its
picture. Negatives are those that the truth reckons with (:meth:`plantedworld.Truth.match`): half
of them have another scene's caption, half have their content word exchanged.
"""

import functools
from typing import NamedTuple

import numpy as np
import pandas
import torch
from torch import Generator, Tensor

from plantedworld import GENDERS, TONES, World, content_words, frames, vocabulary
from plantedworld._logs import log_sum_exp
from plantedworld.training._tokenizer import bert_tokenizer, token

VIEWS = {"picture": 0.75, "none": 0.12, "white": 0.05, "no person": 0.08}
"""How often a masked caption comes with its picture, without any, with the white one, and with
person and whole picture hidden, where pictures are regions."""

PICTURE, NONE, WHITE, NO_PERSON = range(len(VIEWS))

ALL_MASKED = 0.08
"""How often the caption's other word is masked as well."""

UNSEEN = -1
"""The scene of a caption whose picture is not drawn."""

CAPTION_HEADS = {"caption gender": len(GENDERS), "caption tone": len(TONES)}
"""Side heads that name what captions are about, and how many classes each tells apart."""


class Masked(NamedTuple):
    """Captions with a masked word: tokens (n, longest), its place (n,), and what stood there."""

    tokens: Tensor
    places: Tensor
    words: Tensor


class Matched(NamedTuple):
    """Captions (n, longest), and 1 where they belong to their scene, else 0; shape (n,)."""

    tokens: Tensor
    labels: Tensor


class Asked(NamedTuple):
    """Captions (2 n, longest), 1 where they belong to their scene, and the places of their words.

    Places are those of content word and person, (2 n, 2). Captions i and n + i are asked about
    scene i.
    """

    tokens: Tensor
    labels: Tensor
    places: Tensor


class Captions:
    """Captions of one world as tokens, and where their words stand.

    Parameters
    ----------
    world
        Whose captions they are.
    table
        What :meth:`plantedworld.World.captions` returned, the caption's own index aside.
    latents
        The scene of every caption, row by row: ``caption_gender`` and ``tone`` are read.
    scene
        Number of every caption's scene, (n,), or ``UNSEEN``.
    """

    def __init__(
        self, world: World, table: pandas.DataFrame, latents: pandas.DataFrame, scene: Tensor
    ) -> None:
        self.world, self.table, self.latents, self.scene = world, table, latents, scene
        self.tokenizer = bert_tokenizer()

    def __len__(self) -> int:
        return len(self.table)

    @property
    def scenes(self) -> pandas.DataFrame:
        """The scenes that are drawn."""
        return self.latents.iloc[: int(self.scene.max()) + 1]

    @functools.cached_property
    def tokens(self) -> Tensor:
        """The captions' tokens, (n, longest)."""
        return self.encode(self.table["text"])

    @functools.cached_property
    def lengths(self) -> Tensor:
        """Number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    @functools.cached_property
    def n_drawn(self) -> int:
        """How many captions have a scene that is drawn: the first of all."""
        return int((self.scene != UNSEEN).sum())

    @functools.cached_property
    def places(self) -> Tensor:
        """Where the two words that can be masked stand, (n, 2).

        First the content word, then the word for a person, or the content word again where the
        caption speaks of nobody.
        """
        numbers, tokens = self.tokenizer.get_vocab(), self.tokens
        content = torch.tensor([numbers[token(word)] for word in self.table["content"]])
        agents = self.table["agent"]
        agent = torch.tensor([numbers[token(word)] if word else -1 for word in agents])
        last = tokens.shape[1] - 1 - (tokens == content[:, None]).flip(1).long().argmax(1)
        first = (tokens == agent[:, None]).long().argmax(1)
        return torch.stack([last, torch.where(agent < 0, last, first)], dim=1)

    @functools.cached_property
    def labels(self) -> dict[str, Tensor]:
        """What side heads can name of captions: their gender (0 woman, 1 man) and tone, (n,)."""
        gender = (self.latents["caption_gender"] == GENDERS[1]).to_numpy(dtype=int)
        tone = self.latents["tone"].to_numpy(dtype=int) - 1
        return {"caption gender": torch.tensor(gender), "caption tone": torch.tensor(tone)}

    def encode(self, texts) -> Tensor:
        """Return the tokens of texts."""
        return self.tokenizer(list(texts), padding=True, return_tensors="pt")["input_ids"]

    def attended(self, tokens: Tensor) -> Tensor:
        """Return 1 for tokens and 0 for padding."""
        return (tokens != self.tokenizer.pad_token_id).long()

    def cut(self, rows: Tensor) -> Tensor:
        """Return the tokens of some captions, as long as the longest of them."""
        return self.tokens[rows, : int(self.lengths[rows].max())].clone()

    def masked(
        self, rows: Tensor, generator: Generator, share_of_both: float | Tensor = ALL_MASKED
    ) -> Masked:
        """Mask the content word or the word for a person of each caption, now and then both."""
        which = torch.randint(2, (len(rows),), generator=generator)
        tokens, row = self.cut(rows), torch.arange(len(rows))
        places = self.places[rows, which]
        words = tokens[row, places]
        both = torch.rand(len(rows), generator=generator) < share_of_both
        others = torch.where(both, self.places[rows, 1 - which], places)
        tokens[row, others] = self.tokenizer.mask_token_id
        tokens[row, places] = self.tokenizer.mask_token_id
        return Masked(tokens, places, words)

    def matched(self, rows: Tensor, generator: Generator) -> Matched:
        """Return for each row's scene its own caption, another scene's, or a swapped one.

        The rows are captions whose scenes are drawn.
        """
        chance = torch.rand(len(rows), generator=generator)
        other = (chance >= 0.5) & (chance < 0.75)
        drawn = torch.randint(self.n_drawn, (len(rows),), generator=generator)
        shown = torch.where(other, drawn, rows)
        tokens, swap = self.cut(shown), torch.nonzero(chance >= 0.75)[:, 0]
        tokens[swap, self.places[rows[swap], 0]] = self.swapped_words(rows[swap], generator)
        same = self.scene[shown] == self.scene[rows]
        return Matched(tokens, ((chance < 0.5) | (other & same)).long())

    def paired(self, rows: Tensor, generator: Generator) -> Asked:
        """Return the captions of n scenes and, after them, n that do not belong to those scenes.

        The same shares as of :meth:`matched`: half of the negatives have another scene's caption,
        half a swapped word. Each scene has one of both sorts, so that a batch tells what a single
        word changes.
        """
        swap = torch.rand(len(rows), generator=generator) < 0.5
        drawn = torch.randint(self.n_drawn, (len(rows),), generator=generator)
        shown = torch.cat([rows, torch.where(swap, rows, drawn)])
        tokens, places = self.cut(shown), self.places[shown]
        swapped = len(rows) + torch.nonzero(swap)[:, 0]
        tokens[swapped, places[swapped, 0]] = self.swapped_words(rows[swap], generator)
        same = ~swap & (self.scene[drawn] == self.scene[rows])
        return Asked(tokens, torch.cat([torch.ones(len(rows)), same.float()]).long(), places)

    def swapped_words(self, rows: Tensor, generator: Generator, other: bool = False) -> Tensor:
        """Return content words for the same frame and form, by their frequency there: tokens.

        By chance this may be the word that stands there already, unless ``other`` words are asked
        for; a word that is the only one of its form stays.
        """
        chances, group = self._swaps
        chances = chances[group[rows]]
        if other:
            own = torch.tensor(vocabulary().get_indexer(self.table["content"].iloc[rows.numpy()]))
            chances = chances.clone()
            chances[torch.arange(len(rows)), own] *= 1e-9
        return self._content[torch.multinomial(chances, 1, generator=generator)[:, 0]]

    @functools.cached_property
    def _content(self) -> Tensor:
        numbers = self.tokenizer.get_vocab()
        return torch.tensor([numbers[token(word)] for word in vocabulary()])

    @functools.cached_property
    def _swaps(self) -> tuple[Tensor, Tensor]:
        """Frequency of every content word in each group (a frame and a form), and the groups."""
        phrases = content_words()["phrase"]
        forms = phrases.loc[self.table["content"]].to_numpy()
        whole = np.array(["{phrase}" not in frame.text for frame in frames()])
        forms = np.where(whole[self.table["frame"]], "", forms)
        keys = pandas.MultiIndex.from_arrays([self.table["frame"].to_numpy(), forms])
        distinct = keys.unique()
        truth = self.world.truth
        frequency = np.exp(log_sum_exp(truth.log_words + truth.design.log_cells, axis=1))
        in_frame = np.exp(truth.log_frames)
        chances = [
            frequency * in_frame[:, frame] * ((phrases == form).to_numpy() if form else 1.0)
            for frame, form in distinct
        ]
        return torch.tensor(np.stack(chances)), torch.tensor(distinct.get_indexer(keys))


def corpus(world: World, n_scenes: int, captions_per_scene: int = 1, n_unseen: int = 0) -> Captions:
    """Draw the scenes of a world and their captions.

    Parameters
    ----------
    world
        Whose.
    n_scenes
        Scenes to be drawn.
    captions_per_scene
        Captions of each: caption i is that of scene i modulo ``n_scenes``.
    n_unseen
        Further captions, each of a scene of its own that is not drawn.

    Returns
    -------
    Captions
        Those of the scenes first.
    """
    rng = np.random.default_rng([world.training_seed, 1])
    parts = [(world.scenes(n_scenes, rng), np.arange(n_scenes))] * captions_per_scene
    if n_unseen:
        parts.append((world.scenes(n_unseen, rng), np.full(n_unseen, UNSEEN)))
    tables = [world.captions(scenes, rng) for scenes, _ in parts]
    return Captions(
        world,
        pandas.concat(tables, ignore_index=True),
        pandas.concat([scenes for scenes, _ in parts], ignore_index=True),
        torch.tensor(np.concatenate([numbers for _, numbers in parts])),
    )


def views(n: int, generator: Generator) -> Tensor:
    """Draw with what view of its picture each of n captions is shown; see ``VIEWS``."""
    shares = torch.tensor(list(VIEWS.values()))
    return torch.multinomial(shares, n, replacement=True, generator=generator)
