"""Whether a caption agrees with what its picture shows, as labels for heads of the training."""

import functools

import torch

from plantedworld import agent_words, content_words
from plantedworld.training._pictures import NOBODY, classes
from plantedworld.training._tokenizer import bert_tokenizer, token

NOT_COMPARED, AGREES, CONTRADICTS = range(3)

PARTS = ("gender", "role", "object", "person")
"""What is compared: the word for a person, the role, the object, and whether anybody is there."""


def agreement(tokens: torch.Tensor, shown: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return for each part whether captions agree with pictures, contradict them, or neither.

    A caption is not compared where it does not speak of the part or the picture does not show it.

    Parameters
    ----------
    tokens
        Of the captions, (n, longest).
    shown
        Classes of what the pictures show, (n,) each, as of
        :func:`plantedworld.training._pictures.labels`.

    Returns
    -------
    dict
        For each of ``PARTS``: 0, not compared; 1, agrees; 2, contradicts; (n,).
    """
    found = {}
    for name in ("gender", "role", "object"):
        table = _meanings()[name]
        spoken_of = table[tokens].amax(1)
        found[name] = _fits()[name][spoken_of, shown[name]]
    thing = _meanings()["thing"][tokens].amax(1).bool()
    nobody = shown["gender"] == classes()["gender"].index(NOBODY)
    found["person"] = torch.where(thing == nobody, AGREES, CONTRADICTS)
    return found


@functools.cache
def _meanings() -> dict[str, torch.Tensor]:
    """Class of every token as a gender, a role and an object, and whether it is a thing; else 0."""
    agents, content = agent_words(), content_words()
    genders = dict(zip(agents["word"], agents["gender"], strict=True))
    words = {
        "gender": {word: gender for word, gender in genders.items() if gender},
        "role": {word: word for word in classes()["role"] if word in content.index},
        "object": {word: word for word in classes()["object"] if word in content.index},
    }
    tables = {name: _table(found, classes()[name]) for name, found in words.items()}
    things = content.index[content["slot"] == "thing"]
    return tables | {"thing": _table(dict.fromkeys(things, True), [False, True])}


def _table(meanings: dict, names: list) -> torch.Tensor:
    numbers = bert_tokenizer().get_vocab()
    table = torch.zeros(len(numbers), dtype=torch.long)
    for word, meaning in meanings.items():
        table[numbers[token(word)]] = names.index(meaning)
    return table


@functools.cache
def _fits() -> dict[str, torch.Tensor]:
    """Agreement of each class that is spoken of, a row, with each that is shown, a column."""
    return {name: _compared(classes()[name]) for name in ("gender", "role", "object")}


def _compared(names: list[str]) -> torch.Tensor:
    table = torch.full((len(names), len(names)), NOT_COMPARED)
    for row, said in enumerate(names):
        for column, seen in enumerate(names):
            if said and said != NOBODY and seen:
                table[row, column] = AGREES if said in seen.split("|") else CONTRADICTS
    return table
