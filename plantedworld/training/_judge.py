"""What a card says of a trained model, which is read from its files as by any user."""

import functools
from pathlib import Path

import numpy as np
import torch

from biaslib import models
from biaslib.capabilities import ENCODE, FILL, FILL_WITH_IMAGES, LIKELIHOOD, MATCH
from plantedworld import World, vocabulary
from plantedworld.training._captions import UNSEEN, Captions

N_CAPTIONS = 500
N_LIKELIHOODS = 100
"""Held-out captions by which a model is judged, and those by which a generative one is."""

N_CHOICES = 100
"""Pictures among which the one of a caption is to be found."""


class HeldOut:
    """Held-out captions of a world with their scenes, or of its text corpus.

    Parameters
    ----------
    world
        Whose.
    n
        How many.
    of_text
        Whether they are those of the text corpus, which has no scenes.
    """

    def __init__(self, world: World, n: int = N_CAPTIONS, of_text: bool = False) -> None:
        rng = np.random.default_rng([world.training_seed, 3])
        self.truth = world.text_truth if of_text else world.truth
        self.scenes = None if of_text else world.scenes(n, rng, split="tune")
        table = world.text_corpus(n, rng) if of_text else world.captions(self.scenes, rng)
        latents = table if of_text else self.scenes
        scene = torch.full((n,), UNSEEN) if of_text else torch.arange(n)
        self.captions = Captions(world, table, latents, scene)
        self.texts, self.content = table["text"].tolist(), table["content"].to_numpy()

    @functools.cached_property
    def masked(self) -> list[str]:
        """The captions with their content word masked."""
        pairs = zip(self.texts, self.content, strict=True)
        return [mask_last(text, word) for text, word in pairs]

    @functools.cached_property
    def pairs(self) -> list[list[str]]:
        """The captions, each beside the same with another content word."""
        generator = torch.Generator().manual_seed(self.captions.world.training_seed)
        rows = torch.arange(len(self.texts))
        numbers = self.captions.swapped_words(rows, generator, other=True).tolist()
        words = self.captions.tokenizer.convert_ids_to_tokens(numbers)
        return [
            [text, masked.replace("[MASK]", word.replace("_", " "))]
            for text, masked, word in zip(self.texts, self.masked, words, strict=True)
        ]

    def guessed(self, log_prob: np.ndarray) -> float:
        """Return how often the masked word is the likeliest of the vocabulary."""
        return float((vocabulary()[log_prob.argmax(axis=1)] == self.content).mean())


def accuracies(world: World, folder: Path) -> dict[str, float]:
    """Return how well a checkpoint does what it can do, beside the truth and chance.

    Parameters
    ----------
    world
        The one that it was trained in, of which other captions and drawings are taken.
    folder
        The checkpoint's.
    """
    model = models.load(str(folder), device="cpu")
    can = model.capabilities
    if LIKELIHOOD in can:
        return _likelihoods(model, HeldOut(world, N_LIKELIHOODS))
    held_out, scores = HeldOut(world, of_text=can.isdisjoint({FILL_WITH_IMAGES, ENCODE})), {}
    if not can.isdisjoint({FILL, FILL_WITH_IMAGES}):
        scores |= _masked_words(model, held_out)
    if MATCH in can:
        scores |= _matches(model, held_out)
    if ENCODE in can:
        scores |= _retrieval(model, held_out)
    return scores | {"captions judged": len(held_out.texts)}


def _masked_words(model, held_out: HeldOut) -> dict[str, float]:
    asked, truth = (held_out.masked, list(vocabulary())), held_out.truth
    seen = () if held_out.scenes is None else (held_out.scenes,)
    return {
        "masked-word accuracy": held_out.guessed(model.mask_log_prob(*asked, *seen)),
        "truth's accuracy": held_out.guessed(truth.mask_log_prob(*asked, *seen)),
        "truth's accuracy without images": held_out.guessed(truth.mask_log_prob(*asked)),
        "chance": 1 / len(vocabulary()),
    }


def _matches(model, held_out: HeldOut) -> dict[str, float]:
    asked = (held_out.scenes, held_out.pairs)
    return {"match accuracy": preferred(*model.match(*asked).T), **_matches_of_truth(held_out)}


def _matches_of_truth(held_out: HeldOut) -> dict[str, float]:
    odds = held_out.truth.match(held_out.scenes, held_out.pairs, mislabelled=0.01)
    counts = {"match chance": 0.5, "pairs judged": len(odds)}
    return {"truth's match accuracy": preferred(*odds.T)} | counts


def _retrieval(model, held_out: HeldOut) -> dict[str, float]:
    similarities = model.encode_text(held_out.texts) @ model.encode_image(held_out.scenes).T
    truth = held_out.truth.similarity(held_out.texts, held_out.scenes)
    names = ("retrieval accuracy", "truth's accuracy", "chance")
    if MATCH in model.capabilities:
        names = ("contrastive retrieval", "truth's contrastive retrieval", "contrastive chance")
    values = (retrieved(similarities), retrieved(truth), 1 / N_CHOICES)
    return dict(zip(names, values, strict=True))


def _likelihoods(model, held_out: HeldOut) -> dict[str, float]:
    """Natural logarithms of a caption's probability, and how often pairs are told apart."""
    scenes, truth = held_out.scenes, held_out.truth
    total = model.log_likelihood(scenes, held_out.pairs).total
    joint = truth.log_joint(held_out.texts, scenes).diagonal()
    return {
        "log-likelihood": float(total[:, 0].mean()),
        "truth's log-likelihood": float((joint - truth.log_image(scenes)).mean()),
        "likelier than swapped": preferred(*total.T),
        "yes to it rather": preferred(*model.yes_no(scenes, held_out.pairs).T),
        **_matches_of_truth(held_out),
    }


def mask_last(text: str, word: str) -> str:
    """Return a caption whose last occurrence of a word is masked.

    Examples
    --------
    >>> mask_last("the nurse is a nurse.", "nurse")
    'the nurse is a [MASK].'
    """
    before, _, after = text.rpartition(word)
    return f"{before}[MASK]{after}"


def preferred(own: np.ndarray, swapped: np.ndarray) -> float:
    """Return how often the first is larger; equal ones (up to rounding) count half.

    Examples
    --------
    >>> preferred(np.array([1.0, 2.0, 0.0]), np.array([0.0, 2.0, 1.0]))
    0.5
    """
    difference = np.round(own - swapped, 9)
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def retrieved(similarities: np.ndarray) -> float:
    """Return how often a picture's own caption fits best, among each hundred of pairs.

    Similarities of captions and pictures, row i and column i belonging together, (n, n).
    """
    starts = range(0, len(similarities), N_CHOICES)
    squares = [similarities[i : i + N_CHOICES, i : i + N_CHOICES] for i in starts]
    own = np.arange(N_CHOICES)
    return float(np.mean([(square.argmax(axis=0) == own).mean() for square in squares]))
