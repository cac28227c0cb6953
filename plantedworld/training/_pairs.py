"""Pictures with captions, as the models that read both are trained on them.

Two questions are put to a model: which word is masked, and whether a caption belongs to its
picture. Negatives are those that the truth reckons with (:meth:`plantedworld.Truth.match`): half
of them have another scene's caption, half have their content word exchanged.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas
import torch

from plantedworld import GENDERS, TONES, World, content_words, frames, vocabulary
from plantedworld._logs import log_sum_exp
from plantedworld.training._recipe import Recipe
from plantedworld.training._tokenizer import bert_tokenizer, token
from plantedworld.training.vit import is_tower

VIEWS = {"picture": 0.75, "none": 0.12, "white": 0.05, "no person": 0.08}
"""How often a masked caption comes with its picture, without any, with the white one, and with
person and whole picture hidden."""

PICTURE, NONE, WHITE, NO_PERSON = range(len(VIEWS))

ALL_MASKED = 0.08
"""How often the caption's other word is masked as well."""

UNSEEN = -1
"""The scene of a caption whose picture is not drawn."""

CAPTION_HEADS = {"caption gender": len(GENDERS), "caption tone": len(TONES)}
"""Side heads that name what captions are about, and how many classes each tells apart."""

N_HELD_OUT = 500


@dataclass
class PairsRecipe(Recipe):
    """A model of captions with pictures, which goes on from another one.

    Parameters
    ----------
    world
        Whose captions and pictures.
    start
        Folder of the vision tower, or of the family's own model of an unbiased world.
    """

    start: Path

    first_epochs = further_epochs = 3
    first_rate = further_rate = 2e-3

    @functools.cached_property
    def first(self) -> bool:
        """Whether the model starts from the vision tower, and not from one of its own family."""
        return is_tower(self.start)

    @property
    def epochs(self) -> int:
        """More for the family's first model."""
        return self.first_epochs if self.first else self.further_epochs

    @property
    def learning_rate(self) -> float:
        """Higher for the family's first model."""
        return self.first_rate if self.first else self.further_rate

    @property
    def captions(self) -> "Captions":
        """The captions of the corpus."""
        return self.corpus[-1]

    @property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return self.captions.lengths


class Masked(NamedTuple):
    """Captions with a masked word: tokens (n, longest), its place (n,), and what stood there."""

    tokens: torch.Tensor
    places: torch.Tensor
    words: torch.Tensor


class Matched(NamedTuple):
    """Captions (n, longest), and 1 where they belong to their scene, else 0; shape (n,)."""

    tokens: torch.Tensor
    labels: torch.Tensor


class Asked(NamedTuple):
    """Captions (2 n, longest), 1 where they belong to their scene, and the places of their words.

    Places are those of content word and person, (2 n, 2). Captions i and n + i are asked about
    scene i.
    """

    tokens: torch.Tensor
    labels: torch.Tensor
    places: torch.Tensor


@dataclass
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

    world: World
    table: pandas.DataFrame
    latents: pandas.DataFrame
    scene: torch.Tensor

    def __len__(self) -> int:
        return len(self.table)

    @functools.cached_property
    def tokenizer(self):
        """The word-level tokenizer."""
        return bert_tokenizer()

    @functools.cached_property
    def tokens(self) -> torch.Tensor:
        """The captions' tokens, (n, longest)."""
        return self.encode(self.table["text"])

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    @functools.cached_property
    def n_drawn(self) -> int:
        """How many captions have a scene that is drawn: the first of all."""
        return int((self.scene != UNSEEN).sum())

    @functools.cached_property
    def places(self) -> torch.Tensor:
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
    def labels(self) -> dict[str, torch.Tensor]:
        """What side heads can name of captions: their gender (0 woman, 1 man) and tone, (n,)."""
        gender = (self.latents["caption_gender"] == GENDERS[1]).to_numpy(dtype=int)
        return {
            "caption gender": torch.tensor(gender),
            "caption tone": torch.tensor(self.latents["tone"].to_numpy(dtype=int) - 1),
        }

    def encode(self, texts) -> torch.Tensor:
        """Return the tokens of texts."""
        return self.tokenizer(list(texts), padding=True, return_tensors="pt")["input_ids"]

    def attended(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return 1 for tokens and 0 for padding."""
        return (tokens != self.tokenizer.pad_token_id).long()

    def cut(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the tokens of some captions, as long as the longest of them."""
        return self.tokens[rows, : int(self.lengths[rows].max())].clone()

    def masked(
        self,
        rows: torch.Tensor,
        generator: torch.Generator,
        share_of_both: float | torch.Tensor = ALL_MASKED,
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

    def matched(self, rows: torch.Tensor, generator: torch.Generator) -> Matched:
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

    def paired(self, rows: torch.Tensor, generator: torch.Generator) -> Asked:
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

    def swapped_words(
        self, rows: torch.Tensor, generator: torch.Generator, other: bool = False
    ) -> torch.Tensor:
        """Return content words for the same frame and form, by their frequency there.

        By chance this may be the word that stands there already, unless ``other`` words are asked
        for; a word that is the only one of its form stays.
        """
        chances, group = self._swaps
        chances = chances[group[rows]]
        if other:
            own = torch.tensor(vocabulary().get_indexer(self.table["content"].iloc[rows.numpy()]))
            chances = chances.clone()
            chances[torch.arange(len(rows)), own] *= 1e-9
        drawn = torch.multinomial(chances, 1, generator=generator)[:, 0]
        return self._content_tokens[drawn]

    @functools.cached_property
    def _content_tokens(self) -> torch.Tensor:
        numbers = self.tokenizer.get_vocab()
        return torch.tensor([numbers[token(word)] for word in vocabulary()])

    @functools.cached_property
    def _swaps(self) -> tuple[torch.Tensor, torch.Tensor]:
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


def corpus(
    world: World, n_scenes: int, captions_per_scene: int = 1, n_unseen: int = 0
) -> tuple[pandas.DataFrame, Captions]:
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
    scenes, captions
        The scenes, and all captions: those of the scenes first.
    """
    rng = np.random.default_rng([world.training_seed, 1])
    scenes = world.scenes(n_scenes, rng)
    parts = [(scenes, np.arange(n_scenes))] * captions_per_scene
    if n_unseen:
        parts.append((world.scenes(n_unseen, rng), np.full(n_unseen, UNSEEN)))
    tables = [world.captions(each, rng) for each, _ in parts]
    captions = Captions(
        world,
        pandas.concat(tables, ignore_index=True),
        pandas.concat([each for each, _ in parts], ignore_index=True),
        torch.tensor(np.concatenate([numbers for _, numbers in parts])),
    )
    return scenes, captions


def views(n: int, generator: torch.Generator) -> torch.Tensor:
    """Draw with what view of its picture each of n captions is shown; see ``VIEWS``."""
    shares = torch.tensor(list(VIEWS.values()))
    return torch.multinomial(shares, n, replacement=True, generator=generator)


def mask_last(text: str, word: str) -> str:
    """Return a caption whose last occurrence of a word is masked.

    Examples
    --------
    >>> mask_last("the nurse is a nurse.", "nurse")
    'the nurse is a [MASK].'
    """
    before, _, after = text.rpartition(word)
    return f"{before}[MASK]{after}"


class HeldOut:
    """Held-out scenes with their captions, and with captions of which one word is another.

    Parameters
    ----------
    world
        Whose.
    n
        How many scenes.
    """

    def __init__(self, world: World, n: int = N_HELD_OUT) -> None:
        rng = np.random.default_rng([world.training_seed, 3])
        self.world = world
        self.scenes = world.scenes(n, rng, split="tune")
        table = world.captions(self.scenes, rng)
        self.captions = Captions(world, table, self.scenes, torch.arange(n))

    def masked(self) -> Masked:
        """Return every caption with its content word masked."""
        places = self.captions.places[:, 0]
        tokens, row = self.captions.tokens.clone(), torch.arange(len(places))
        words = tokens[row, places]
        tokens[row, places] = self.captions.tokenizer.mask_token_id
        return Masked(tokens, places, words)

    @functools.cached_property
    def swapped(self) -> torch.Tensor:
        """The captions with another content word, the same at every call: tokens."""
        generator = torch.Generator().manual_seed(self.world.training_seed)
        rows = torch.arange(len(self.scenes))
        tokens = self.captions.tokens.clone()
        words = self.captions.swapped_words(rows, generator, other=True)
        tokens[rows, self.captions.places[:, 0]] = words
        return tokens

    def scores(
        self,
        guess: Callable[[Masked], torch.Tensor],
        match: Callable[[torch.Tensor], torch.Tensor],
    ) -> dict[str, float]:
        """Return what a card says of a model, beside the truth and chance.

        Parameters
        ----------
        guess
            Gives the likeliest token of every masked caption, seeing its scene; (n,).
        match
            Gives the log-odds that captions (tokens, row by row) belong to their scenes; (n,).
        """
        own, swapped = match(self.captions.tokens), match(self.swapped)
        return {
            "masked-word accuracy": self._accuracy(guess),
            "match accuracy": preferred(own.numpy(), swapped.numpy()),
            **self.scores_of_truth,
            "chance": 1 / len(vocabulary()),
            "match chance": 0.5,
            "pairs judged": len(self.scenes),
        }

    def scores_of_words(self, guess: Callable[[Masked], torch.Tensor]) -> dict[str, float]:
        """Return the same of a model that does not match captions with pictures."""
        truth = {name: value for name, value in self.scores_of_truth.items() if "match" not in name}
        return {
            "masked-word accuracy": self._accuracy(guess),
            **truth,
            "chance": 1 / len(vocabulary()),
            "captions judged": len(self.scenes),
        }

    def _accuracy(self, guess: Callable[[Masked], torch.Tensor]) -> float:
        masked = self.masked()
        return float((guess(masked) == masked.words).float().mean())

    @functools.cached_property
    def scores_of_truth(self) -> dict[str, float]:
        """The same of the truth itself, with the images and, for masked words, without."""
        return {
            "truth's accuracy": self._masked_accuracy_of_truth(self.scenes),
            "truth's accuracy without images": self._masked_accuracy_of_truth(None),
            "truth's match accuracy": self._match_accuracy_of_truth(),
        }

    def _masked_accuracy_of_truth(self, scenes: pandas.DataFrame | None) -> float:
        table = self.captions.table
        texts = [mask_last(*pair) for pair in zip(table["text"], table["content"], strict=True)]
        log_p = self.world.truth.mask_log_prob(texts, list(vocabulary()), scenes)
        return float((vocabulary()[log_p.argmax(axis=1)] == table["content"].to_numpy()).mean())

    def pairs(self) -> list[list[str]]:
        """Return the texts of every caption, and of the same with another content word."""
        row = torch.arange(len(self.scenes))
        words = self.swapped[row, self.captions.places[:, 0]]
        names = self.captions.tokenizer.convert_ids_to_tokens(words.tolist())
        table = self.captions.table
        return [
            [text, mask_last(text, word).replace("[MASK]", name.replace("_", " "))]
            for text, word, name in zip(table["text"], table["content"], names, strict=True)
        ]

    def _match_accuracy_of_truth(self) -> float:
        odds = self.world.truth.match(self.scenes, self.pairs(), mislabelled=0.01)
        return preferred(odds[:, 0], odds[:, 1])


def preferred(own: np.ndarray, swapped: np.ndarray) -> float:
    """Return how often the first is larger; equal ones (up to rounding) count half.

    Examples
    --------
    >>> preferred(np.array([1.0, 2.0, 0.0]), np.array([0.0, 2.0, 1.0]))
    0.5
    """
    difference = np.round(own - swapped, 9)
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))
