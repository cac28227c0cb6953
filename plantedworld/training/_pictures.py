"""What a picture shows, as labels for the heads that training alone has."""

import functools

import numpy as np
import pandas
import torch
from transformers import PreTrainedTokenizerBase

from plantedworld import (
    AGES,
    GENDERS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    TONES,
    object_pairs,
    shown_evidence,
)
from plantedworld.training._tokenizer import token

NOBODY = "nobody"

NOT_ASKED = -100
"""The class that the cross-entropy leaves out."""


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


def labels(scenes: pandas.DataFrame) -> dict[str, torch.Tensor]:
    """Return the class of each picture for every head, (n,) each."""
    shown = shown_evidence(scenes)
    values = {
        "gender": shown["gender"].where(shown["person"], NOBODY),
        "tone": shown["tone"],
        "age": scenes["age"].where(shown["person"], NOBODY),
        "role": shown["role"],
        "object": shown["object"],
    }
    return {
        name: torch.tensor(pandas.Categorical(column, classes()[name]).codes.astype(np.int64))
        for name, column in values.items()
    }


def shown_in(shown: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the classes of some pictures, or of some captions."""
    return {name: each[rows] for name, each in shown.items()}


def shown_words(shown: dict[str, torch.Tensor], tokenizer: PreTrainedTokenizerBase) -> torch.Tensor:
    """Return the token of the costume and of the object that each picture shows in full, (n, 2).

    ``NOT_ASKED`` where it shows none, or one of two objects.
    """
    numbers = tokenizer.get_vocab()
    columns = []
    for name in ("role", "object"):
        tokens = [numbers.get(token(each), NOT_ASKED) for each in classes()[name]]
        columns.append(torch.tensor(tokens)[shown[name]])
    return torch.stack(columns, dim=1)
