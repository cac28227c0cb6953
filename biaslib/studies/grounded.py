"""Study 1: grounded association tests (Ross, Katz and Barbu 2021), on any model that embeds.

A test is six sets of texts with images. :func:`planted_stimuli` takes them from the planted world,
:func:`image_stimuli` from images on this disk; :func:`run` embeds them once for each masking and
scores every experiment, with the p-value of the paper and with those that respect what moves
together: the words, or the pictures.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from biaslib import inference, planted, stimuli
from biaslib.datasets import GroundedTest
from biaslib.metrics.grounded import GroundedResult, grounded
from biaslib.models.fusion import Mask
from biaslib.runtime import progress, unknown_name

__all__ = [
    "EXPERIMENTS",
    "LEVELS",
    "MASKINGS",
    "SETS",
    "EmbeddedSets",
    "GroundedStimuli",
    "embed",
    "image_stimuli",
    "planted_stimuli",
    "run",
    "score",
]

SETS = ("X", "Y", "Ax", "Ay", "Bx", "By")
LEVELS = ("word", "sentence", "contextual")
EXPERIMENTS = (1, 2, 3)
MASKINGS = ("none", "words", "persons")
"""What is hidden: nothing; the test's words in the text; the people in the picture."""


@dataclass(frozen=True)
class GroundedStimuli:
    """The stimuli of one test at one level.

    ``rows`` has one row a text with its image: *set* (one of the six), *text*, *word* and *image*,
    the row of ``images``. ``words`` are those that Experiment 3 hides.
    """

    test: str
    level: str
    rows: pandas.DataFrame
    images: Any
    words: tuple[str, ...]


@dataclass(frozen=True)
class EmbeddedSets:
    """The embeddings of a test's six sets, with the word and the image of every row."""

    test: str
    level: str
    masking: str
    embeddings: dict[str, np.ndarray]
    words: dict[str, np.ndarray]
    images: dict[str, np.ndarray]

    def grounded(self, experiment: int, ddof: int = 1) -> GroundedResult:
        """Return one of the three experiments: see :func:`biaslib.metrics.grounded.grounded`."""
        return grounded(*(self.embeddings[name] for name in SETS), experiment, ddof)


def planted_stimuli(
    test: str, level: str, n_per_word: int = 2, seed: int = 0, split: str = "held out"
) -> GroundedStimuli:
    """Return a test with scenes of the planted world: people in the context of every word.

    Parameters
    ----------
    test
        One of the 13 tests of study 1.
    level
        ``word``, ``sentence`` or ``contextual``.
    n_per_word
        Scenes a word and set. A sentence takes them in turn, so that there are as many texts with
        an image as sentences, or as scenes if those are more.
    seed
        Of the scenes.
    split
        Whose looks: see :func:`biaslib.planted.looks`.

    Raises
    ------
    UnknownNameError
        If there is no such test or level.
    """
    rng = np.random.default_rng(seed)
    scenes = planted.grounded_sets(test, rng, n_per_word, undrawn="context", split=split)
    frames = [scenes[name].assign(set=name) for name in SETS]
    images = pandas.concat(frames, ignore_index=True)
    texts = _texts(test, level)
    rows = []
    for (set_name, word), part in images.groupby(["set", "word"], sort=False):
        said = texts[set_name[0]][word]
        n_rows = max(len(said), len(part))
        shown = np.resize(part.index, n_rows)
        rows += [
            (set_name, text, word, image)
            for text, image in zip(_cycle(said, n_rows), shown, strict=True)
        ]
    words = tuple(dict.fromkeys(word for role in "XYAB" for word in texts[role]))
    table = pandas.DataFrame(rows, columns=["set", "text", "word", "image"])
    return GroundedStimuli(test, level, table, images.drop(columns=["set", "word", "drawn"]), words)


def image_stimuli(test: GroundedTest, pairs: pandas.DataFrame, level: str) -> GroundedStimuli:
    """Return a test with images on this disk.

    Parameters
    ----------
    test
        From :func:`biaslib.datasets.grounded_test` or :func:`biaslib.datasets.user_test`.
    pairs
        Its sound rows, from :func:`biaslib.datasets.images_of`.
    level
        One that the test has. ``contextual`` leaves out captions that carry none of the words.

    Raises
    ------
    UnknownNameError
        If the test does not have the level.
    ValueError
        If one of the six sets is empty; the message names it.
    """
    if level not in test.levels:
        raise unknown_name(f"level of the test {test.name}", level, test.levels)
    kept = pairs if level != "contextual" else pairs[pairs["word"] != ""]
    empty = [name for name in SETS if name not in set(kept["set"])]
    if empty:
        raise ValueError(f"the test {test.name} has no image left in {', '.join(empty)}")
    paths, place = np.unique(kept["path"].map(str), return_inverse=True)
    rows = kept[["set", "word"]].assign(text=kept["caption"], image=place).reset_index(drop=True)
    return GroundedStimuli(test.name, level, rows, list(paths), test.contextual_words)


def embed(
    model, sets: GroundedStimuli, masking: str = "none", with_images: bool = True, **options: Any
) -> EmbeddedSets:
    """Embed the six sets of a test.

    Parameters
    ----------
    model
        A :class:`biaslib.models.capabilities.GroundedEncoder`; a text encoder with
        ``with_images=False``.
    sets
        The stimuli.
    masking
        One of :data:`MASKINGS`.
    with_images
        False gives the model the texts alone: the ungrounded baseline.
    **options
        Passed on to the model's ``embed``, such as ``stream="both"``.

    Raises
    ------
    UnknownNameError
        If there is no such masking.
    """
    if masking not in MASKINGS:
        raise unknown_name("masking", masking, MASKINGS)
    if masking != "none":
        words = sets.words if masking == "words" else ()
        options["mask"] = Mask(words, persons=masking == "persons")
    rows = sets.rows
    keys = ["text", "word", "image"] if with_images else ["text", "word"]
    distinct = rows[keys].drop_duplicates(ignore_index=True)
    if with_images:
        options["images"] = _taken(sets.images, distinct["image"].to_numpy())
    if sets.level == "contextual":
        options["words"] = distinct["word"].tolist()
    vectors = model.embed(distinct["text"].tolist(), level=sets.level, **options)
    place = rows[keys].merge(distinct.reset_index(names="place"), on=keys, how="left")["place"]
    of_set = {name: (rows["set"] == name).to_numpy() for name in SETS}
    return EmbeddedSets(
        test=sets.test,
        level=sets.level,
        masking=masking,
        embeddings={name: vectors[place[here]].astype(float) for name, here in of_set.items()},
        words={name: rows.loc[here, "word"].to_numpy() for name, here in of_set.items()},
        images={name: rows.loc[here, "image"].to_numpy() for name, here in of_set.items()},
    )


def score(
    sets: EmbeddedSets, experiment: int, n_bootstrap: int = 1_000, seed: int = 0
) -> dict[str, object]:
    """Return one row of scores of an experiment.

    The p-values of Experiments 1 and 2 are one-sided and computed, not sampled: *p_value* takes
    every text with an image as a unit, as the released code does; *p_value_words* and
    *p_value_images* keep together what shares a target word, or a picture. That of Experiment 3
    exchanges a target's own attribute set with the other one.

    Parameters
    ----------
    sets
        Embedded stimuli.
    experiment
        1, 2 or 3.
    n_bootstrap
        Resamples of the target words for the interval.
    seed
        Of the resamples.

    Returns
    -------
    dict
        *value* (effect size), *low* and *high* (95%, percentile, over target words), *numerator*
        (what the effect size divides by the spread), *p_value*, *p_value_words*,
        *p_value_images*, *n* (texts with an image), *n_words*, *n_images* of the targets.
    """
    result = sets.grounded(experiment)
    interval = _interval(result, sets, n_bootstrap, seed)
    row = {
        "test": sets.test,
        "level": sets.level,
        "experiment": experiment,
        "masking": sets.masking,
        "statistic": "effect size",
        "value": result.effect_size,
        "low": interval.low,
        "high": interval.high,
        "numerator": _numerator(result),
        "n": len(result.x_scores) + len(result.y_scores),
        "n_words": sum(len(set(sets.words[name])) for name in "XY"),
        "n_images": sum(len(set(sets.images[name])) for name in "XY"),
        "seed": seed,
    }
    return row | _p_values(result, sets, seed)


def run(
    model,
    every: Iterable[GroundedStimuli],
    experiments: Sequence[int] = EXPERIMENTS,
    maskings: Sequence[str] = ("none",),
    with_images: bool = True,
    **settings: Any,
) -> pandas.DataFrame:
    """Score tests in all experiments: tidy scores, one row a test, level, experiment and masking.

    Experiment 3's second form hides words or people and runs Experiment 2 again: rows with a
    masking are of Experiment 2 alone.

    Parameters
    ----------
    model
        As of :func:`embed`.
    every
        Stimuli of tests and levels.
    experiments, maskings
        Which.
    with_images
        As of :func:`embed`.
    **settings
        As of :func:`score`.

    Returns
    -------
    pandas.DataFrame
        Columns study, model, revision, images, and those of :func:`score`.
    """
    cases = list(itertools.product(every, maskings))
    rows = []
    for sets, masking in progress(cases, f"{model.name}: grounded tests"):
        embedded = embed(model, sets, masking, with_images)
        asked = experiments if masking == "none" else [each for each in experiments if each == 2]
        rows += [score(embedded, experiment, **settings) for experiment in asked]
    scores = pandas.DataFrame(rows)
    named = {"study": "ross2021", "model": model.name, "revision": model.revision}
    shown = {"images": "with" if with_images else "without"}
    return pandas.DataFrame(named | shown, index=scores.index).join(scores)


def _texts(test: str, level: str) -> dict[str, dict[str, list[str]]]:
    """Return the texts of each word: set -> word -> texts."""
    found = stimuli.association_test(test, level)
    texts: dict[str, dict[str, list[str]]] = {role: {} for role in "XYAB"}
    for role in "XYAB":
        for text, word in zip(getattr(found, role), found.words[role], strict=True):
            texts[role].setdefault(word, []).append(text)
    return texts


def _cycle(items: Sequence[str], n: int) -> list[str]:
    return [items[i % len(items)] for i in range(n)]


def _taken(images: Any, rows: np.ndarray) -> Any:
    if isinstance(images, pandas.DataFrame):
        return images.iloc[rows].reset_index(drop=True)
    return images[rows] if hasattr(images, "dtype") else [images[row] for row in rows]


def _numerator(result: GroundedResult) -> float:
    """Return the difference of means; of Experiment 3 half the sum of its absolute shifts."""
    if result.experiment != 3:
        return float(result.x_scores.mean() - result.y_scores.mean())
    shifts = (
        result.x_scores.mean() - result.x_other.mean(),
        result.y_scores.mean() - result.y_other.mean(),
    )
    return float(np.abs(shifts).mean())


def _p_values(result: GroundedResult, sets: EmbeddedSets, seed: int) -> dict[str, object]:
    if result.experiment == 3:
        by_words = _averaged(result, sets.words)
        tests = {
            "p_value": result,
            "p_value_words": by_words,
            "p_value_images": _averaged(result, sets.images),
        }
        found = {name: inference.exchange_test(each, rng=seed) for name, each in tests.items()}
    else:
        words = _averaged(result, sets.words)
        pictures = _averaged(result, sets.images)
        tests = {"p_value": result, "p_value_words": words, "p_value_images": pictures}
        found = {
            name: inference.permutation_test(each.x_scores, each.y_scores)
            for name, each in tests.items()
        }
    return {name: each.p_value for name, each in found.items()} | {
        "p_method": found["p_value"].method
    }


def _averaged(result: GroundedResult, labels: dict[str, np.ndarray]) -> GroundedResult:
    """Return a result with one score a label, the mean over its rows."""
    means = {
        name: _means(getattr(result, name), labels[name[0].upper()])
        for name in ("x_scores", "y_scores", "x_other", "y_other")
        if getattr(result, name) is not None
    }
    return replace(result, **means)


def _means(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    _, owner = np.unique(labels, return_inverse=True)
    return np.bincount(owner, scores) / np.bincount(owner)


def _interval(
    result: GroundedResult, sets: EmbeddedSets, n_resamples: int, seed: int
) -> inference.Interval:
    """Resample target words; a word's rows stay together."""
    owners = [np.unique(sets.words[name], return_inverse=True)[1] for name in "XY"]

    def statistic(*weights: np.ndarray) -> np.ndarray:
        return _weighted(result, *(w[owner] for w, owner in zip(weights, owners, strict=True)))

    counts = [owner.max() + 1 for owner in owners]
    return inference.bootstrap(statistic, counts, n_resamples=n_resamples, rng=seed)


def _weighted(result: GroundedResult, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return effect sizes with every row counted as often as the weights say: (n, r) -> (r,)."""
    x_own, y_own = result.x_scores @ x / x.sum(0), result.y_scores @ y / y.sum(0)
    if result.experiment != 3:
        scores, weights = [result.x_scores, result.y_scores], [x, y]
        return (x_own - y_own) / _spread(scores, weights, result.ddof)
    x_other, y_other = result.x_other @ x / x.sum(0), result.y_other @ y / y.sum(0)
    scores = [result.x_scores, result.y_scores, result.x_other, result.y_other]
    shifts = np.abs(x_own - x_other) + np.abs(y_own - y_other)
    return shifts / 2 / _spread(scores, [x, y, x, y], result.ddof)


def _spread(scores: list[np.ndarray], weights: list[np.ndarray], ddof: int) -> np.ndarray:
    """Return the weighted standard deviation over all scores, NaN where it is 0: (r,)."""
    values, counts = np.concatenate(scores)[:, None], np.concatenate(weights)
    total = counts.sum(0)
    mean = (counts * values).sum(0) / total
    variance = (counts * (values - mean) ** 2).sum(0) / (total - ddof)
    return np.sqrt(np.where(variance > 1e-24, variance, np.nan))
