"""What a picture shows and whether captions agree with it, as labels for side heads."""

import functools

import numpy as np
import pandas
import torch
from torch import Tensor

from plantedworld import (
    AGES,
    GENDERS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    TONES,
    agent_words,
    content_words,
    object_pairs,
    shown_evidence,
)
from plantedworld.training._tokenizer import bert_tokenizer, token

NOBODY = "nobody"

NOT_ASKED = -100
"""The class that the cross-entropy leaves out."""

NOT_COMPARED, AGREES, CONTRADICTS = range(3)

PARTS = ("gender", "role", "object", "person")
"""What is compared: the word for a person, the role, the object, and whether anybody is there."""

RULED_OUT, LEFT_OPEN, SHOWN = range(3)
"""What a picture can do with a caption's word."""


@functools.cache
def classes() -> dict[str, list]:
    """Return what the heads tell apart; the empty text stands for hidden or absent."""
    pairs = ["|".join(sorted(pair)) for pair in object_pairs().itertuples(index=False)]
    return {
        "gender": [NOBODY, "", *GENDERS],
        "tone": [0, *TONES],
        "age": [NOBODY, *AGES],
        "role": ["", *PICTURED_ROLES],
        "object": ["", *PICTURED_OBJECTS, *pairs],
    }


def n_classes(prefix: str = "", names: tuple[str, ...] = ()) -> dict[str, int]:
    """Return how many classes each head tells apart, by the head's name with a prefix."""
    return {f"{prefix}{name}": len(classes()[name]) for name in names or classes()}


def labels(scenes: pandas.DataFrame) -> dict[str, Tensor]:
    """Return the class of each picture for every head, (n,) each."""
    shown = shown_evidence(scenes)
    shown["gender"] = shown["gender"].where(shown["person"], NOBODY)
    shown["age"] = np.where(shown["person"], scenes["age"], NOBODY)
    return {
        name: torch.tensor(pandas.Categorical(shown[name], each).codes.astype(np.int64))
        for name, each in classes().items()
    }


def selected(shown: dict[str, Tensor], rows: Tensor, prefix: str = "") -> dict[str, Tensor]:
    """Return the classes of some pictures, or of some captions, by the head's name."""
    return {f"{prefix}{name}": label[rows] for name, label in shown.items()}


def shown_words(shown: dict[str, Tensor]) -> Tensor:
    """Return the token of the costume and of the object that each picture shows in full, (n, 2).

    ``NOT_ASKED`` where it shows none, or one of two objects.
    """
    numbers = bert_tokenizer().get_vocab()
    columns = []
    for name in ("role", "object"):
        tokens = [numbers.get(token(each), NOT_ASKED) for each in classes()[name]]
        columns.append(torch.tensor(tokens)[shown[name]])
    return torch.stack(columns, dim=1)


def agreement(tokens: Tensor, shown: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return for each part whether captions agree with pictures, contradict them, or neither.

    A caption is not compared where it does not speak of the part or the picture does not show it.

    Parameters
    ----------
    tokens
        Of the captions, (n, longest).
    shown
        Classes of what the pictures show, (n,) each, as of :func:`labels`.

    Returns
    -------
    dict
        For each of ``PARTS``: 0, not compared; 1, agrees; 2, contradicts; (n,).
    """
    agreements = {}
    for name in ("gender", "role", "object"):
        spoken_of = _spoken_of(name)[tokens].amax(1)
        agreements[name] = _fits(name)[spoken_of, shown[name]]
    thing = _things()[tokens].amax(1)
    agreements["person"] = torch.where(thing == _nobody(shown), AGREES, CONTRADICTS)
    return agreements


def agreement_of_content(words: Tensor, shown: dict[str, Tensor]) -> Tensor:
    """Return whether a picture rules a content word out (0), leaves it open (1), shows it (2).

    A costume rules out all other roles, an object all other objects, a person all things, and a
    picture without anybody everything but things.

    Parameters
    ----------
    words
        Tokens, (n,).
    shown
        As of :func:`labels`.
    """
    fits = sum(_fits_of_slot(slot)[words, shown[slot]] for slot in ("role", "object"))
    nobody = _things()[words] != _nobody(shown)
    open_or_not = torch.where((fits < 0) | nobody, RULED_OUT, LEFT_OPEN)
    return torch.where(fits > 0, SHOWN, open_or_not)


def agreement_of_gender(words: Tensor, shown: dict[str, Tensor]) -> Tensor:
    """Return whether a word for a person and the picture differ in gender (0) or agree (2).

    1 where either says none. Words are tokens, (n,).
    """
    fits = _fits("gender")[_spoken_of("gender")[words], shown["gender"]]
    fits = torch.tensor([LEFT_OPEN, SHOWN, RULED_OUT])[fits]
    return torch.where(_nobody(shown), LEFT_OPEN, fits)


def _nobody(shown: dict[str, Tensor]) -> Tensor:
    return shown["gender"] == classes()["gender"].index(NOBODY)


@functools.cache
def _spoken_of(name: str) -> Tensor:
    """Class of every token as a gender, a role or an object that can be shown; else 0."""
    if name == "gender":
        agents = agent_words()
        words = dict(zip(agents["word"], agents["gender"], strict=True))
    else:
        words = {word: word for word in classes()[name] if word in content_words().index}
    return _table({word: classes()[name].index(said) for word, said in words.items() if said})


@functools.cache
def _things() -> Tensor:
    """Whether each token is a thing."""
    content = content_words()
    return _table(dict.fromkeys(content.index[content["slot"] == "thing"], 1)).bool()


def _table(values: dict[str, int | list[int]], shape: tuple[int, ...] = ()) -> Tensor:
    """Return values by token, (tokens, ...), zeros for words without any."""
    numbers = bert_tokenizer().get_vocab()
    table = torch.zeros((len(numbers), *shape), dtype=torch.long)
    for word, value in values.items():
        table[numbers[token(word)]] = torch.tensor(value)
    return table


@functools.cache
def _fits(name: str) -> Tensor:
    """Agreement of each class that is spoken of, a row, with each that is shown, a column."""
    names = classes()[name]
    table = torch.full((len(names), len(names)), NOT_COMPARED)
    for row, said in enumerate(names):
        for column, seen in enumerate(names):
            if said and said != NOBODY and seen:
                table[row, column] = AGREES if said in seen.split("|") else CONTRADICTS
    return table


@functools.cache
def _fits_of_slot(slot: str) -> Tensor:
    """1 where a word of a slot is what a class shows, -1 where that is another word, else 0."""
    content = content_words()
    shown = [seen.split("|") for seen in classes()[slot]]
    values = {
        word: [(1 if word in seen else -1) if seen[0] in content.index else 0 for seen in shown]
        for word in content.index[content["slot"] == slot]
    }
    return _table(values, (len(shown),))
