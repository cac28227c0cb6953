"""What a picture shows, as labels for the heads that training alone has."""

import functools

import numpy as np
import pandas
import torch

from biaslib.planted import (
    AGES,
    GENDERS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    TONES,
    object_pairs,
    shown_evidence,
)

NOBODY = "nobody"


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
