r"""What makes a world harder, and what that does to each measure: the oracle's answers first.

Whatever the oracle's scores miss here is the measure's doing, since nothing was trained. What makes
it hard: frequencies that go with nothing, clothes or age that go with the gender, an association
that neither gender nor tone has alone, labels that are wrong or missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas

import plantedworld
from biaslib.runtime import progress
from plantedworld import Evidence, World
from plantedworld.models.perfect import PerfectModel
from plantedworld.studies import measures
from plantedworld.studies.measures import mean_over_seeds
from plantedworld.studies.recovery import rank_within_signs

__all__ = [
    "GROUPS",
    "OPTIONS",
    "SEEDS",
    "Option",
    "annotated",
    "by_frequency",
    "intersections",
    "oracle_scores",
    "summary",
]

SEEDS = (2_000, 2_001, 2_002, 2_003)
"""Worlds for tuning, which no trial uses."""

SHARE = 0.8
"""How often clothes, ground, place or age are on the side of the gender that they go with."""

WRONG, UNSAID = 0.1, 0.15
"""How often an annotator says the other gender, and how often none."""

SAID = ("woman", "man", "not said")


@dataclass(frozen=True)
class Option:
    """One way to make a world harder.

    Attributes
    ----------
    name
        In words.
    world
        Options of :func:`plantedworld.world`.
    gender_shown
        Whether the portraits show the gender. Where they do not, what goes with it is all that is
        there to see.
    ages
        Of the portraits.
    wrong, unsaid
        See :func:`annotated`.
    """

    name: str
    world: Mapping[str, object] = field(default_factory=dict)
    gender_shown: bool = True
    ages: tuple[str, ...] = ("adult",)
    wrong: float = 0.0
    unsaid: float = 0.0


def _going_with(nuisance: str) -> dict[str, object]:
    return {"evidence": Evidence(nuisance=nuisance, nuisance_share=SHARE)}


OLDER = {"evidence": Evidence(older_share=SHARE)}
OPTIONS = (
    Option("as it is"),
    Option("frequencies by Zipf's law", {"zipf": 1.0}),
    Option("clothes go with the gender", _going_with("clothes")),
    Option("clothes, gender not shown", _going_with("clothes"), gender_shown=False),
    Option("age goes with the gender", OLDER, ages=("child", "older")),
    Option("age, gender not shown", OLDER, gender_shown=False, ages=("child", "older")),
    Option("noisy labels", wrong=WRONG, unsaid=UNSAID),
)


def annotated(
    gender: np.ndarray, rng: np.random.Generator, wrong: float = WRONG, unsaid: float = UNSAID
) -> np.ndarray:
    """Return what annotators say of people: a gender, wrong at a known rate, or ``"not said"``.

    Parameters
    ----------
    gender
        Of the people, ``"woman"`` or ``"man"``.
    rng
        Source of randomness.
    wrong
        Share of the genders said that are the other one.
    unsaid
        Share of the people of whom none is said.

    Examples
    --------
    >>> said = annotated(np.repeat(["woman", "man"], 5000), np.random.default_rng(0))
    >>> bool(abs((said == "not said").mean() - 0.15) < 0.02)
    True
    """
    other = np.where(gender == "woman", "man", "woman")
    said = np.where(rng.random(len(gender)) < wrong, other, gender)
    return np.where(rng.random(len(gender)) < unsaid, SAID[2], said)


def oracle_scores(
    option: Option, seed: int, dose: float = 3, n_per_cell: int = 20
) -> pandas.DataFrame:
    """Return the oracle's scores of one world beside the truth, one row a word and measure.

    Parameters
    ----------
    option
        What is harder in it.
    seed, dose
        Of the world.
    n_per_cell
        Portraits of each gender in each tone.

    Returns
    -------
    pandas.DataFrame
        *measure*, *word*, *slot*, *frequency*, *value* and *truth*: for ``masked`` that of the text
        corpus, and for the others that of the gender in the picture. Portraits without a gender
        that was said are left out.
    """
    world = plantedworld.world(dose, seed, **option.world)
    words = measures.words()
    words = words[words["slot"].isin(["role", "object"])]
    rng = np.random.default_rng([seed, 5])
    scenes = _portraits(world, option, n_per_cell, rng)
    said = annotated(scenes["gender"].to_numpy(), rng, option.wrong, option.unsaid)
    kept = said != SAID[2]
    scenes, women = scenes[kept].reset_index(drop=True), said[kept] == "woman"
    oracle = PerfectModel(world, scenes=scenes)
    similar = oracle.encode_text(words["caption"].tolist()) @ oracle.encode_image(scenes).T
    found = measures.similarity_scores(similar, 1.0, women)
    frequency = plantedworld.frequencies(world.plan)[words["word"]].to_numpy()
    base = words[["word", "slot"]].assign(frequency=frequency)
    truth = world.truth.log_ratio(words["word"].tolist(), given="picture")
    tables = [base.assign(measure=name, value=value, truth=truth) for name, value in found.items()]
    exact = world.text_truth.log_ratio(words["word"].tolist(), given="caption")
    blind = measures.bias_scores(PerfectModel(world, corpus="text"), words.dropna(subset="masked"))
    tables.append(base.assign(measure="masked", value=blind, truth=exact))
    return pandas.concat(tables, ignore_index=True)


def _portraits(
    world: World, option: Option, n_per_cell: int, rng: np.random.Generator
) -> pandas.DataFrame:
    """Portraits whose clothes and ages go with the gender as the world has it."""
    scenes = plantedworld.faces(n_per_cell, rng)
    scenes = scenes.assign(age=np.resize(option.ages, len(scenes)))
    if world.evidence.older_share != Evidence().older_share:
        shares = {gender: world.evidence.age_shares(gender) for gender in plantedworld.GENDERS}
        drawn = [
            rng.choice(plantedworld.AGES, p=_among(shares[gender], option.ages))
            for gender in scenes["gender"]
        ]
        scenes = scenes.assign(age=drawn)
    if world.evidence.nuisance:
        scenes["layout"] = world.layouts(scenes, rng)
    return scenes.assign(gender_shown=option.gender_shown)


def _among(shares: np.ndarray, ages: tuple[str, ...]) -> np.ndarray:
    """Return shares of the ages that are there, which add up to 1."""
    kept = shares * np.isin(plantedworld.AGES, ages)
    return kept / kept.sum()


def summary(seeds: Iterable[int] = SEEDS) -> pandas.DataFrame:
    """Return what each option does to each measure, as the oracle answers.

    Returns
    -------
    pandas.DataFrame
        One row an option and measure: *option*, *measure*; *slope* on the truth with *low* and
        *high* (95%, over *n* worlds); *rank within signs* and *rank*, means.
    """
    rows = []
    cases = [(option, seed) for option in OPTIONS for seed in seeds]
    for option, seed in progress(cases, "harder worlds"):
        scores = oracle_scores(option, seed)
        for measure, part in scores.dropna(subset="value").groupby("measure", sort=False):
            value, truth = part["value"].to_numpy(), part["truth"].to_numpy()
            found = {"slope": np.polyfit(truth, value, 1)[0]}
            found |= {"rank within signs": rank_within_signs(value, truth)}
            found |= {"rank": float(part["value"].corr(part["truth"], method="spearman"))}
            rows.append({"option": option.name, "measure": measure} | found)
    return _over_worlds(rows, ["option", "measure"], "slope")


def _over_worlds(rows: list[dict], keys: list[str], name: str) -> pandas.DataFrame:
    """Return means over worlds by the keys, that of a number with *low* and *high* over *n*."""
    table = []
    for key, part in pandas.DataFrame(rows).groupby(keys, sort=False):
        found = mean_over_seeds(part[name])
        means = part.drop(columns=[*keys, name]).mean().to_dict()
        table.append(dict(zip(keys, key, strict=True)) | {name: found.pop("mean")} | found | means)
    return pandas.DataFrame(table)


GROUPS = {
    "women against men": (("woman", None), ("man", None)),
    "tone 5 against tone 1": ((None, 5), (None, 1)),
    "women of tone 5 against men of tone 5": (("woman", 5), ("man", 5)),
    "women of tone 1 against men of tone 1": (("woman", 1), ("man", 1)),
}
"""Whom a comparison of portraits sets against whom: a gender and a tone, or any."""


def intersections(seeds: Iterable[int] = SEEDS) -> pandas.DataFrame:
    """Return what comparisons of groups find of associations that only intersections have.

    Roles and objects go with gender and tone together: with women of tone 5 as much as with men of
    tone 1, and as little with the other two. The oracle answers.

    Returns
    -------
    pandas.DataFrame
        One row a comparison: *groups*; *size*, the root mean square of the scaled difference over
        words, with *low* and *high* (95%, over *n* worlds); *rank* with what is planted on gender
        and tone together.
    """
    rows = []
    for seed in seeds:
        world = plantedworld.world(3, seed, intersections=True)
        words = measures.words()
        words = words[words["slot"].isin(["role", "object"])]["word"]
        planted = plantedworld.strengths(world.plan).loc[words, ["gender", "tone", "interaction"]]
        words = planted.index[(planted["interaction"] != 0) & (planted["gender"] == 0)]
        captions = measures.words().set_index("word").loc[words, "caption"].tolist()
        scenes = plantedworld.faces(3, np.random.default_rng(seed)).query("age == 'adult'")
        scenes = scenes.reset_index(drop=True)
        oracle = PerfectModel(world, scenes=scenes)
        similar = oracle.encode_text(captions) @ oracle.encode_image(scenes).T
        for name, sides in GROUPS.items():
            first, second = (similar[:, _of_group(scenes, *side)].mean(axis=1) for side in sides)
            found = pandas.Series(first - second, words)
            rank = found.corr(planted.loc[words, "interaction"], method="spearman")
            size = float(np.sqrt((found**2).mean()))
            rows.append({"groups": name, "size": size, "rank": rank})
    return _over_worlds(rows, ["groups"], "size")


def _of_group(scenes: pandas.DataFrame, gender: str | None, tone: int | None) -> np.ndarray:
    fits = scenes["gender"].eq(gender) if gender else pandas.Series(True, scenes.index)
    return (fits & (scenes["tone"].eq(tone) if tone else True)).to_numpy()


def by_frequency(seeds: Iterable[int] = SEEDS) -> pandas.DataFrame:
    """Return how far a count of captions is off, by how frequent a word is.

    Of log ratios the artefact is known: rare words have large ones by chance. As many captions as
    a checkpoint saw are counted, half a count added.

    Returns
    -------
    pandas.DataFrame
        *zipf*, *third* of the words by frequency; *error*, the root mean square of the count less
        the truth, with *low* and *high* (95%, over *n* worlds); *extreme*, the share of this third
        among the tenth of all words whose counts go most with one gender.
    """
    rows = []
    for exponent in (0.0, 1.0):
        for seed in seeds:
            rows += _errors(plantedworld.world(3, seed, zipf=exponent), exponent)
    return _over_worlds(rows, ["zipf", "third"], "error")


def _errors(world: World, exponent: float) -> list[dict]:
    words = plantedworld.content_words()
    names = words.index[words["slot"].isin(["role", "attribute"])].tolist()
    rng = np.random.default_rng(world.seed)
    n = measures.CORPUS_SIZES["text"]
    counts = measures.drawn_counts(world.text_truth, "caption", n, rng)[names]
    value = np.log(counts.loc["woman"] / counts.loc["man"])
    error = value - world.text_truth.log_ratio(names, given="caption")
    thirds = pandas.qcut(counts.sum().rank(method="first"), 3, labels=THIRDS)
    extreme = value.abs().rank(ascending=False) <= len(names) / 10
    return [
        {
            "zipf": exponent,
            "third": third,
            "error": float(np.sqrt((error[thirds == third] ** 2).mean())),
            "extreme": float((extreme & (thirds == third)).sum() / extreme.sum()),
        }
        for third in THIRDS
    ]


THIRDS = ("rarest", "middle", "commonest")
