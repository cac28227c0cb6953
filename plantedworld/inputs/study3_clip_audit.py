"""Study 3's inputs in the profile `planted`: emoji portraits, a tiny CLIP, its captions."""

import functools
from pathlib import Path

import numpy as np
import pandas

from biaslib import stimuli
from biaslib.studies import study3_clip_audit as study
from plantedworld import AGES, Scenes, content_words, faces, world
from plantedworld.corpus import expected_shares, planted_corpus

__all__ = ["captions", "drawings", "innocent_captions", "inputs"]

FACETS = {"gender": "gender", "tone": "tone", "age": "age", "gender x tone": ["gender", "tone"]}
LABELS = {
    "gender": ("women", "men"),
    "tone": tuple(f"tone {tone}" for tone in range(1, 6)),
    "age": AGES,
}


def inputs(
    dose: float = 3,
    seed: int = 0,
    n_per_cell: int = 30,
    model: str | None = None,
    checkpoint: str | Path | None = None,
) -> study.Inputs:
    """Return emoji portraits with looks that training did not show, and a tiny CLIP.

    Parameters
    ----------
    dose, seed
        Of the planted world.
    n_per_cell
        Portraits of each gender in each tone.
    model, checkpoint
        Any dual encoder, as :func:`biaslib.models.load` takes it; None takes the tiny CLIP.
    """
    scenes = faces(n_per_cell, np.random.default_rng([seed, 3]))
    people = scenes.assign(
        gender=scenes["gender"].map({"woman": "women", "man": "men"}),
        tone="tone " + scenes["tone"].astype(str),
    )
    loaded = {"name": model or "clip", "profile": "planted", "dose": dose, "seed": seed}
    return study.Inputs(
        profile="planted",
        dataset="planted portraits",
        model=loaded | ({"checkpoint": checkpoint} if checkpoint else {}),
        people=people,
        portraits=Scenes(scenes),
        words=study.words(),
        facets=FACETS,
        labels=LABELS,
        gender=("women", "men"),
        k=len(people) // 10,
        innocent=innocent_captions(),
        captions=functools.partial(captions, dose=dose, seed=seed),
        lower_case=True,
        units=drawings(scenes),
        unit_name="drawings",
    )


def drawings(scenes: pandas.DataFrame) -> np.ndarray:
    """Return a number for each portrait that those of one drawing share, (n,).

    A drawing is an outline in one tone: its portraits differ in hair, clothes, ground and place.
    Of each gender and tone there are four of adults and one each of a child and of an old person.

    Examples
    --------
    >>> len(np.unique(drawings(faces(60, np.random.default_rng(0)))))
    60
    """
    shown = scenes.assign(look=scenes["look"].where(scenes["age"] == "adult", 0))
    return shown.groupby(["gender", "tone", "age", "look"]).ngroup().to_numpy()


def captions(folder: str | Path, dose: float = 3, seed: int = 0) -> study.Corpus:
    """Write the captions that the tiny CLIP of a world was trained on, and return the corpus."""
    truth = functools.partial(expected_shares, world(dose, seed))
    return study.Corpus(planted_corpus(folder, dose, seed), truth, "planted")


def innocent_captions(n: int = 60) -> pandas.DataFrame:
    """Return captions of the world's things, on which nothing is planted.

    As :func:`biaslib.studies.study3_clip_audit.innocent_captions` has them for released models.
    """
    content = content_words()
    named = content["phrase"].str.contains("{word}", regex=False)
    rows = content[content["slot"].eq("thing") & named].head(n)
    phrases = [
        row.phrase.replace("a {word}", f"{stimuli.indefinite_article(word)} {word}").replace(
            "{word}", word
        )
        for word, row in rows.iterrows()
    ]
    table = pandas.DataFrame({"word": rows.index, "caption": [f"a photo of {p}" for p in phrases]})
    return table.assign(bias_type="none", kind="object")
