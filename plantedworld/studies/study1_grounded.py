"""How often grounded association tests cry wolf, and two nulls that are measured instead.

Models that learned a world without bias should be called biased by one test in twenty at the 5%
level. :func:`rejections` counts how many are. Two remedies take their null from something without
the bias: from such models (:func:`against_models`), or from other attribute words in the same model
(:func:`against_words`). Each has an error rate of its own, measured by leaving out: see
:func:`leave_one_model_out` and :func:`error_of_words`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas
from scipy import stats

import plantedworld
from biaslib import inference, models, runtime, stimuli
from biaslib.metrics.association import cosines
from biaslib.runtime import progress
from biaslib.studies import study1_grounded as study
from plantedworld.inputs.study1_grounded import planted_stimuli

__all__ = [
    "NULL_MODEL",
    "NULL_SEEDS",
    "OF_THE_PAPER",
    "P_VALUES",
    "QUESTIONS",
    "WORLDS",
    "RandomWords",
    "against_models",
    "against_words",
    "answers",
    "error_of_words",
    "leave_one_model_out",
    "null_scores",
    "over_models",
    "rejections",
    "word_pools",
]

NULL_MODEL = "visualbert"
NULL_SEEDS = tuple(range(8))
"""Worlds without bias whose models were each trained from the start, and from no shared model."""

P_VALUES = {
    "p_value_paper": "the paper's own",
    "p_value": "words as units",
}
"""The permutation tests that are calibrated."""

DATA = Path(plantedworld.__file__).parent / "data"
QUESTIONS = json.loads((DATA / "study1_questions.json").read_text(encoding="utf-8"))
"""Questions, and a number for each: the larger, the more its reading says yes.

Those of one text with and without its picture are not the paper's, which shows pictures throughout.

:meta hide-value:
"""

OF_THE_PAPER = ("1: d", "2: d", "3: pictures", "3: masks")
"""Those that the paper itself reads; the others are ours."""

WORLDS = {
    "1": {"yes": (3, "both"), "no": (0, "both")},
    "2": {"yes": (3, "images"), "no": (3, "text")},
    "3: pictures": {"yes": (3, "images"), "no": (3, "text")},
    "3: masks": {"yes": (3, "text"), "no": (3, "images")},
}
"""For each question, dose and place of a world where the answer is yes and of one where it is no.

:meta hide-value:
"""

CELL = ["test", "level", "experiment"]
PEOPLE = {"gender": "C6", "race": "C3", "race and gender": "ABW"}
"""For each kind of test, the one whose people stand beside the words of a pool."""


def null_scores(
    every: Sequence[study.GroundedStimuli], experiments: Sequence[int] = (1, 2)
) -> pandas.DataFrame:
    """Return the scores of the models that learned a world without bias, one model a seed.

    Parameters
    ----------
    every
        Stimuli, as of :func:`biaslib.studies.study1_grounded.run`.
    experiments
        Which experiments.

    Returns
    -------
    pandas.DataFrame
        As :func:`biaslib.studies.study1_grounded.run`, with *world*, the seed; without intervals.
    """
    tables = []
    for seed in progress(list(NULL_SEEDS), "models without bias"):
        model = models.load(NULL_MODEL, profile="planted", dose=0, seed=seed)
        labels = {"profile": "planted", "dataset": "planted scenes", "dose": 0, "world": seed}
        tables.append(study.run(model, every, experiments, labels=labels, n_bootstrap=0))
    return pandas.concat(tables, ignore_index=True)


def rejections(
    scores: pandas.DataFrame, alpha: float = 0.05, columns: Sequence[str] = tuple(P_VALUES)
) -> pandas.DataFrame:
    """Return how often tests of models without bias are called significant.

    Parameters
    ----------
    scores
        With *world* and p-values, one-sided.
    alpha
        Level.
    columns
        The p-values to judge, each where there is one.

    Returns
    -------
    pandas.DataFrame
        *level*, *experiment*, *p* (the column), *rejected* and *n*; *share* with *low* and
        *high* (Clopper and Pearson, as if all tests were independent) and *model_low*,
        *model_high* (95%, models resampled: tests of one model share its accidents); *both_sides*,
        the share with p below alpha or above 1 - alpha, which is a two-sided test at twice alpha.

    Examples
    --------
    >>> scores = pandas.DataFrame({"level": "word", "experiment": 1, "world": range(4)})
    >>> found = rejections(scores.assign(p=[0.01, 0.5, 0.99, 0.6]), columns=["p"])
    >>> found[["rejected", "n", "both_sides"]].values.tolist()
    [[1.0, 4.0, 0.5]]
    """
    rows = []
    for (level, experiment), part in scores.groupby(["level", "experiment"], sort=False):
        for column in columns:
            known = part.dropna(subset=column)
            if known.empty:
                continue
            rejected = known.assign(rejected=known[column] < alpha)
            count, n = int(rejected["rejected"].sum()), len(known)
            interval = inference.proportion_interval(count, n)
            low, high = over_models(rejected, "rejected")
            both = rejected["rejected"] | (known[column] > 1 - alpha)
            rows.append(
                {"level": level, "experiment": experiment, "p": column}
                | {"rejected": count, "n": n, "share": count / n}
                | {"low": interval.low, "high": interval.high}
                | {"model_low": low, "model_high": high, "both_sides": both.mean()}
            )
    return pandas.DataFrame(rows)


def over_models(
    rows: pandas.DataFrame, column: str, n_resamples: int = 2_000
) -> tuple[float, float]:
    """Return a 95% interval of a mean over rows; whole models are drawn anew."""
    sums = rows.groupby("world")[column].agg(["sum", "size"]).to_numpy(dtype=float)
    if len(sums) < 2:
        return np.nan, np.nan

    def mean(weights: np.ndarray) -> np.ndarray:
        return (sums[:, 0] @ weights) / (sums[:, 1] @ weights)

    found = inference.bootstrap(mean, [len(sums)], (0.0, 1.0), n_resamples=n_resamples, rng=0)
    return found.low, found.high


def against_models(
    scores: pandas.DataFrame, null: pandas.DataFrame, statistic: str = "numerator"
) -> pandas.DataFrame:
    r"""Place scores among those of models without bias: the first remedy.

    With m models whose scores on the same test, level and experiment have the mean
    :math:`\bar v` and standard deviation :math:`\hat\sigma`, a new model without bias is taken to
    score like one more of them:

    .. math:: t = \frac{v - \bar v}{\hat\sigma \sqrt{1 + 1/m}}, \qquad
              p = P(\lvert T_{m-1} \rvert \ge \lvert t \rvert)

    This takes the scores as normal over models; :func:`leave_one_model_out` measures what that is
    worth. It also takes a model without bias of the same kind to be there, which nobody has of a
    large model.

    Parameters
    ----------
    scores
        To be placed.
    null
        Of :func:`null_scores`.
    statistic
        ``"numerator"`` or ``"value"``, the effect size.

    Returns
    -------
    pandas.DataFrame
        The scores with *null_mean*, *null_sd*, *n_null*, *t* and *p_models*, two-sided.
    """
    found = null.groupby(CELL)[statistic].agg(["mean", "std", "count"])
    placed = scores.merge(
        found.set_axis(["null_mean", "null_sd", "n_null"], axis=1), on=CELL, how="left"
    )
    wide = placed["null_sd"] * np.sqrt(1 + 1 / placed["n_null"])
    t = (placed[statistic] - placed["null_mean"]) / wide
    p = 2 * stats.t.sf(t.abs(), placed["n_null"] - 1)
    return placed.assign(t=t, p_models=p)


def leave_one_model_out(null: pandas.DataFrame, statistic: str = "numerator") -> pandas.DataFrame:
    """Place each model without bias among the others: what the first remedy's error rate is.

    Returns
    -------
    pandas.DataFrame
        As :func:`against_models`, one row a row of ``null``.
    """
    parts = []
    for world in null["world"].unique():
        here = null["world"] == world
        parts.append(against_models(null[here], null[~here], statistic))
    return pandas.concat(parts, ignore_index=True)


@dataclass(frozen=True)
class RandomWords:
    """Effect sizes and differences of one test's targets with random attribute words.

    ``differences`` and ``effect_sizes`` have one entry a random pair of sets.
    """

    effect_sizes: np.ndarray
    differences: np.ndarray

    def p_value(self, numerator: float) -> float:
        """Return how often random words give a difference of at least this size, two-sided."""
        larger = int((np.abs(self.differences) >= abs(numerator) - 1e-15).sum())
        return (1 + larger) / (1 + len(self.differences))


def word_pools(n_words: int = 120) -> dict[str, study.GroundedStimuli]:
    """Return pools of words in the context of people, for each kind of test.

    The words are those of the planted world that stand in attribute sets, and are drawn at random;
    every one is shown with the people of both target sets, as attributes are (``Ax`` and ``Ay``).

    Returns
    -------
    dict
        ``gender``, ``race`` and ``race and gender`` -> stimuli at the word level, sharing one pool
        of images.
    """
    content = plantedworld.content_words()
    known = content.index[content["slot"].isin(["attribute", "role"])].to_numpy()
    words = np.random.default_rng(0).choice(known, min(n_words, len(known)), replace=False)
    every = planted_stimuli(list(PEOPLE.values()), ["word"], n_per_word=8, seed=1)
    people = dict(zip(PEOPLE, every, strict=True))
    return {kind: _shown_with(sets, words) for kind, sets in people.items()}


def _shown_with(sets: study.GroundedStimuli, words: np.ndarray) -> study.GroundedStimuli:
    rows = []
    for name in study.SETS:
        shown = sets.rows.loc[sets.rows["set"] == name, "image"].to_numpy()
        images = np.resize(np.random.default_rng(len(shown)).permutation(shown), len(words))
        part = {"set": name, "text": words, "word": words, "image": images}
        rows.append(pandas.DataFrame(part))
    return replace(sets, rows=pandas.concat(rows, ignore_index=True))


def against_words(
    embedded: study.EmbeddedSets,
    pool: study.EmbeddedSets,
    experiment: int,
    n_sets: int = 500,
    seed: int = 0,
) -> RandomWords:
    """Put random words in the place of a test's attributes, in the same model: the second remedy.

    Parameters
    ----------
    embedded
        A test.
    pool
        Words in the context of the same people, at the same level: of :func:`word_pools`.
    experiment
        1 or 2.
    n_sets
        Random pairs of attribute sets, of as many words as those of the test.
    seed
        Of the draws.
    """
    near = [_by_word(embedded, pool, target) for target in "XY"]
    if experiment == 1:
        near = [(own + other) / 2 for own, other in near]
    else:
        near = [own for own, _ in near]
    n_words = [len(set(embedded.words[f"{name}x"])) for name in "AB"]
    found = inference.random_attribute_null(*near, *n_words, n_sets=n_sets, rng=seed)
    differences = found.x_scores.mean(axis=1) - found.y_scores.mean(axis=1)
    return RandomWords(found.effect_sizes, differences)


def _by_word(embedded: study.EmbeddedSets, pool: study.EmbeddedSets, target: str):
    """Return cosines of targets with the words of a pool: in their own context, in the other."""
    contexts = ("Ax", "Ay") if target == "X" else ("Ay", "Ax")
    return [
        _mean_over_rows(cosines(embedded.embeddings[target], pool.embeddings[name]), pool, name)
        for name in contexts
    ]


def _mean_over_rows(near: np.ndarray, pool: study.EmbeddedSets, name: str) -> np.ndarray:
    _, owner = np.unique(pool.words[name], return_inverse=True)
    weights = np.eye(owner.max() + 1)[owner]
    return near @ (weights / weights.sum(axis=0))


def error_of_words(
    model,
    every: Sequence[study.GroundedStimuli],
    pools: dict[str, study.GroundedStimuli],
    labels: dict,
) -> pandas.DataFrame:
    """Place a model's own tests among random words: in a model without bias, the error rate.

    Parameters
    ----------
    model
        As of :func:`biaslib.studies.study1_grounded.embed`.
    every
        Tests at the word level.
    pools
        Of :func:`word_pools`.
    labels
        Further columns.

    Returns
    -------
    pandas.DataFrame
        One row a test and experiment: *value*, *numerator*, *p_random* (two-sided), *q95* (of the
        absolute effect size over random words).
    """
    kinds = stimuli.association_tests(study1=True).set_index("name")["kind"]
    random = dict(zip(pools, study.embed(model, list(pools.values())), strict=True))
    rows = []
    for sets in study.embed(model, every):
        for experiment in (1, 2):
            found = against_words(sets, random[kinds[sets.test]], experiment)
            own = study.score(sets, experiment, n_bootstrap=0, p_values=False)
            row = {name: own[name] for name in [*CELL, "value", "numerator"]}
            size = np.quantile(np.abs(found.effect_sizes), 0.95)
            rows.append(row | {"p_random": found.p_value(own["numerator"]), "q95": size})
    return pandas.DataFrame(rows).assign(**labels, model=model.name)


def answers(
    names: Sequence[str],
    every: Sequence[study.GroundedStimuli],
    store: runtime.Store | None = None,
) -> pandas.DataFrame:
    """Put the paper's three questions to worlds whose answer is known.

    Is there a bias? Yes at dose 3, no at dose 0. Can pictures correct it? Yes where only pictures
    carry it, since they show what there is to know; no where only captions do. Does it come from
    pictures (Experiment 3, exchange), or from language (masks)? As planted. The second question is
    also put as the paper does not: to the same texts with their pictures and without. That leaves
    out tests whose targets are shown with nobody, since their pictures cannot correct anything.

    Parameters
    ----------
    names
        Models, or ``oracle``, which has no masks.
    every
        Scenes at one level, of tests planted in the worlds of seed 0; region models read them as
        regions.
    store
        Where embeddings are kept.

    Returns
    -------
    pandas.DataFrame
        *question* (a key of :data:`QUESTIONS`), *what*, *model*, *answer* (``yes`` or ``no``),
        *test*, *measure*. An effect size that is not defined counts as 0: all targets score the
        same, and there is no association left to divide by a spread.
    """
    rows = []
    for name in names:
        for question, worlds in WORLDS.items():
            if name == "oracle" and question == "3: masks":
                continue
            for answer, (dose, place) in worlds.items():
                model = models.load(name, profile="planted", dose=dose, seed=0, planted_in=place)
                found = _measures(question, model, every, store)
                rows += [{"model": name, "answer": answer, **each} for each in found]
    table = pandas.DataFrame(rows)
    return table.assign(what=table["question"].map(QUESTIONS))


def _measures(question: str, model, every, store) -> list[dict]:
    if question == "3: masks":
        hidden = [_sizes(model, every, 2, masking, store) for masking in ("persons", "words")]
        return _rows("3: masks", hidden[0]["value"] - hidden[1]["value"])
    first = _sizes(model, every, 1, "none", store)
    if question == "1":
        return _rows("1: d", first["value"]) + _rows("1: numerator", first["numerator"])
    if question == "2":
        second = _sizes(model, every, 2, "none", store)
        with_people = [each for each in every if _shows_people(each)]
        alone = _sizes(model, with_people, 1, "none", store, with_images=False)
        shown = first.loc[alone.index]
        return (
            _rows("2: d", first["value"] - second["value"])
            + _rows("2: picture, d", alone["value"] - shown["value"])
            + _rows("2: picture, numerator", 1 - shown["numerator"] / alone["numerator"])
        )
    return _rows(question, _sizes(model, every, 3, "none", store)["value"])


def _shows_people(sets: study.GroundedStimuli) -> bool:
    """Say whether targets have pictures of their own, and not one white picture for all."""
    of_targets = sets.rows.loc[sets.rows["set"].isin(["X", "Y"]), "image"]
    return len({sets.images.ids[image] for image in of_targets}) > 1


def _sizes(model, every, experiment: int, masking: str, store, **shown) -> pandas.DataFrame:
    """Return absolute effect sizes and numerators by test."""
    embedded = study.embed(model, every, masking, store=store, **shown)
    rows = [study.score(sets, experiment, n_bootstrap=0, p_values=False) for sets in embedded]
    return pandas.DataFrame(rows).set_index("test")[["value", "numerator"]].abs().fillna(0.0)


def _rows(question: str, measures: pandas.Series) -> list[dict]:
    return [
        {"question": question, "test": test, "measure": value} for test, value in measures.items()
    ]
