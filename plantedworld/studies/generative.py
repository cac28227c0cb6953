r"""Which score of a generative model finds what is planted: studies 2 and 4 put to a tiny LLaVA.

A model that writes has no mask and no matching head. What it has is the probability of a text after
a picture and a prompt, and of that several scores can be made (:data:`SCORES`). Here each is put to
the same questions:

- study 2: how much more an entity goes with a woman than with a man, beside what is planted;
- study 4: how often the stereotypical caption of three is picked in an anti-stereotypical picture.

The answers to all questions by models of three worlds are recorded
(``plantedworld/data/generative.md``).

The statistics and the worlds of the verdict were set before a model of those worlds was trained:
see ``plantedworld/RECIPES.md``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from biaslib.models.generative import PROMPTS, Generative
from plantedworld import Scenes, blank
from plantedworld.studies.measures import mean_over_seeds
from plantedworld.studies.recovery import rank_within_signs

__all__ = [
    "SCORES",
    "caption_scores",
    "finding",
    "recovery",
]

SCORES = {
    "total": "log-likelihood",
    "mean": "per token",
    "gain": "less no picture",
    "over grey": "less grey picture",
    "over white": "less white picture",
    "choice": "forced choice",
    "yes": "yes or no",
    "cloze": "completed sentence",
    "no picture": "no picture at all",
}
"""Scores of a caption, and what figures call them; the last is a stand-in that sees nothing."""


def caption_scores(
    model: Generative,
    images: Any,
    texts: Sequence[Sequence[str]],
) -> dict[str, np.ndarray]:
    """Return the scores of c captions of each of n images, (n, c) each.

    All of :data:`SCORES` but the completed sentence, which needs to be told where a word is.

    Parameters
    ----------
    model
        A generative model.
    images
        n images.
    texts
        n rows of c captions.
    """
    asked = model.scored_by("total", PROMPTS)
    seen = asked.log_likelihood(images, texts)
    said = sorted({text for row in texts for text in row})
    white = Scenes(blank())
    alone = {
        "no picture": asked.log_likelihood(white, [said], without="picture"),
        "over grey": asked.log_likelihood(white, [said], without="content"),
        "over white": asked.log_likelihood(white, [said]),
    }
    place = {text: at for at, text in enumerate(said)}
    rows = np.array([[place[text] for text in row] for row in texts])
    baseline = {name: scores.total[0][rows] for name, scores in alone.items()}
    return {
        "total": seen.total,
        "mean": seen.mean,
        "gain": seen.total - baseline["no picture"],
        "over grey": seen.total - baseline["over grey"],
        "over white": seen.total - baseline["over white"],
        "no picture": baseline["no picture"],
        "choice": asked.choose(images, texts).log_p,
        "yes": asked.yes_no(images, texts),
    }


# Study 2


def recovery(associated: pandas.DataFrame) -> pandas.DataFrame:
    """Return how each score recovers what is planted: one row a score, prompt, dose and world.

    Returns
    -------
    pandas.DataFrame
        The keys that the table has; *n* entities; *slope* of the least-squares line of values on
        what is planted at dose 3, whatever the model's own dose, and *rank within signs*.
    """
    keys = [name for name in ("score", "prompt", "dose", "seed") if name in associated]
    rows = []
    for key, part in associated.groupby(keys, sort=False):
        value, planted = part["value"].to_numpy(), part["planted"].to_numpy()
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "n": len(part),
                "slope": float(np.polyfit(planted, value, 1)[0]),
                "rank within signs": rank_within_signs(value, planted),
            }
        )
    return pandas.DataFrame(rows)


def finding(answers: pandas.DataFrame) -> pandas.DataFrame:
    """Return which scores find what is planted, by the statistics that were set before.

    Parameters
    ----------
    answers
        ``recorded("generative")``.

    Returns
    -------
    pandas.DataFrame
        One row a score, of the prompts that models learned with. Of study 2: *slope*, *slope at
        dose 0*, their difference *more*, and *rank* within signs; of study 4: *rise*, vlbs at
        dose 3 less dose 0, less the same of errors. Each but the second with *low* and *high*,
        Student's interval of 95% over worlds. *finds*, *finds, study 4*: the verdicts.
    """
    trained = answers[answers["prompt"] == "trained"]
    two = recovery(trained[trained["question"] == "study 2"])
    four = trained[trained["question"] == "study 4"]
    rows = []
    for score in SCORES:
        of_score = two[two["score"] == score].pivot(
            index="seed", columns="dose", values=["slope", "rank within signs"]
        )
        slope, rank = of_score["slope"], of_score["rank within signs"][3]
        more = mean_over_seeds(slope[3] - slope[0])
        row = {"score": score, "slope at dose 0": slope[0].mean()}
        row |= _with_bounds("slope", mean_over_seeds(slope[3])) | _with_bounds("more", more)
        row |= _with_bounds("rank", mean_over_seeds(rank))
        row["finds"] = bool(row["more low"] > 0 and row["rank low"] > 0)
        picked = four[four["score"] == score]
        if len(picked):
            wide = picked.pivot(index="seed", columns=["item", "dose"], values="value")
            rise = wide["vlbs"][3] - wide["vlbs"][0] - (wide["errors"][3] - wide["errors"][0])
            row |= _with_bounds("rise", mean_over_seeds(rise))
            row["finds, study 4"] = bool(row["rise low"] > 0)
        rows.append(row)
    return pandas.DataFrame(rows)


def _with_bounds(name: str, mean: dict[str, float]) -> dict[str, float]:
    return {name: mean["mean"], f"{name} low": mean["low"], f"{name} high": mean["high"]}
