"""Study 4's scores judged in worlds whose answer is known.

Questions: do trained models look at the picture at all; does vlbs find a planted stereotype, and
how does that depend on how visible the evidence is; do lmss and vlss find the modality in which it
was planted?
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas

import plantedworld
from biaslib import models
from biaslib.metrics import caption_selection
from biaslib.pictures.images import WithRegions
from biaslib.pictures.regions import RegionFeatures
from biaslib.runtime import Store, progress
from biaslib.studies import study4_captions as study
from biaslib.studies.study4_captions import CAPTIONS, MODEL_HEADS, Inputs, ModelHead
from plantedworld.inputs.study4_captions import ORACLE, of_scenes
from plantedworld.models import checkpoints as planted_checkpoints
from plantedworld.models.perfect import PerfectModel

__all__ = [
    "SEEDS",
    "TARGET_OPACITY",
    "TARGET_VLRS",
    "choices",
    "faded",
    "faded_choices",
    "grounding",
    "leaning",
    "looking",
    "modality",
    "noise_floor",
    "picks",
    "relevance",
    "shift_summary",
    "shipped_ways",
    "side_by_side",
    "verdict",
    "visibility",
    "zero_seeds",
]

SEEDS = (0, 1)
"""Worlds of the held-out test that are scored here."""

STARTS = 1000
"""From this seed on, checkpoints are what others of their family started from."""

TARGET_OPACITY = 0.5
"""How opaque the object is where models are judged, as the protocol of the held-out test has it: 0
is a picture without it, 1 the picture in plain sight."""

TARGET_SCENES, TARGET_DRAW = 240, 11
"""Scenes a world, and the seed of their draw. With few the noise floor is chance of pictures."""

TARGET_VLRS = 80.0
LEAST_GROUNDED = 60.0
"""Per cent of right captions at which a model is said to look, if its interval is above 50."""

ANSWERED = ("gender", "profession")
"""Categories of which a picture can show the answer."""

OTHER_IRRELEVANT = "photo of a thing"
"""The planted world's other kind of irrelevant caption; see
:func:`plantedworld.caption_choices`."""


def shipped_ways(dose: float = 3, seed: int = 0, planted_in: str = "both") -> list[ModelHead]:
    """Return the ways whose model has a checkpoint of a world.

    FLAVA's encoders alone are left out: tiny ones have vectors of different lengths.

    Examples
    --------
    >>> [way.label for way in shipped_ways(3, 0)][:2]
    ['VisualBERT', 'LXMERT']
    """
    table = planted_checkpoints.shipped()
    kept = table[(table["dose"] == dose) & (table["seed"] == seed)]
    families = set(kept.loc[kept["planted_in"] == planted_in, "family"])
    return [way for way in MODEL_HEADS if way.planted in families and way.head != "unimodal"]


def zero_seeds(way: ModelHead) -> list[int]:
    """Return the seeds of a model's dose-0 checkpoints, those that others start from left out.

    Examples
    --------
    >>> zero_seeds(MODEL_HEADS[1])
    [0, 1, 2]
    """
    table = planted_checkpoints.shipped(way.planted)
    return table.loc[(table["dose"] == 0) & (table["seed"] < STARTS), "seed"].tolist()


def choices(seed: int = 0, n: int = 40, view: str = "visible", draw: int = 7) -> Inputs:
    """Return scenes whose picture can answer the question, as balanced inputs.

    Parameters
    ----------
    seed
        Of the world, which says what is a stereotype.
    n
        Scenes a category, an even number.
    view
        ``visible``: object and costume in plain sight. ``ambiguous``: objects half hidden, so that
        both captions fit; there are no half-hidden costumes, and gender is the only category.
        ``hidden``: neither object nor costume in the picture.
    draw
        Seed of the scenes.

    Examples
    --------
    >>> choices(0, 4, "hidden").table["category"].unique().tolist()
    ['gender', 'profession']
    """
    rng = np.random.default_rng([draw, seed])
    table = plantedworld.caption_choices(plantedworld.world(3, seed), n, rng)
    table = table[table["category"].isin(ANSWERED if view != "ambiguous" else ANSWERED[:1])]
    if view != "visible":
        table = table.assign(object_view=view, role_shown=False)
    name = f"planted captions, evidence {view}, seed {seed}"
    return of_scenes(table.reset_index(drop=True), name)


def shift_summary(found: study.Run, store: Store | None = None) -> pandas.DataFrame:
    """Return lmss and vlss of a run by subset of its images, beside models without bias.

    The subsets of :func:`biaslib.studies.study4_captions.shift_scores` within gender, and
    ``everything``: all images of all categories. In ``planted`` also those within gender of dose-0
    checkpoints.

    Returns
    -------
    pandas.DataFrame
        The columns of that function, and *dose*: missing in ``paper``.
    """
    moved, planted_here = study.shifts(found), found.inputs.profile == "planted"
    whole = study.shift_scores(moved, category=None).query("level == 'all'")
    tables = [study.shift_scores(moved), whole.assign(level="everything")]
    tables = [table.assign(dose=3 if planted_here else np.nan) for table in tables]
    if planted_here:
        ways = [way for way in MODEL_HEADS if way.label in found.scored]
        loader = functools.partial(study.load, profile="planted", dose=0)
        rows = np.flatnonzero(found.inputs.table["category"] == "gender")
        zero = study.run(ways, found.inputs.part(rows), loader, store)
        tables.append(study.shift_scores(study.shifts(zero)).assign(dose=0))
    return pandas.concat(tables, ignore_index=True)


def _model(way: ModelHead, dose: float, seed: int, planted_in: str = "both") -> Any:
    return _kept(way.planted, float(dose), seed, planted_in)


@functools.lru_cache(maxsize=64)
def _kept(name: str, dose: float, seed: int, planted_in: str) -> Any:
    """Load a tiny model once: the questions ask the same ones again."""
    return models.load(name, profile="planted", dose=dose, seed=seed, planted_in=planted_in)


def side_by_side(
    ways: Iterable[ModelHead] | None = None, n: int = 20, store: Store | None = None
) -> pandas.DataFrame:
    """Return vlrs, vlbs, lmss and vlss of oracle and checkpoints on the same scenes.

    lmss and vlss are means over the anti-stereotypical images of both categories, with cosines
    multiplied by the model's own factor.

    Returns
    -------
    pandas.DataFrame
        One row a way, dose, seed and view: *model*, *dose*, *seed*, *view*, *vlrs*, *vlbs*,
        *lmss*, *vlss*, *n* (anti-stereotypical images).
    """
    rows = []
    for seed, view, dose in itertools.product(SEEDS, ("visible", "hidden"), (0, 3)):
        found = _run(ways, choices(seed, n, view), dose, seed, store)
        rows += _means(found, {"dose": dose, "seed": seed, "view": view})
    return pandas.DataFrame(rows)


def _run(
    ways: Iterable[ModelHead] | None,
    given: Inputs,
    dose: float,
    seed: int,
    store: Store | None,
    planted_in: str = "both",
) -> study.Run:
    """Ask the oracle of a world and its checkpoints, all that are shipped if none are named."""
    loader = functools.partial(_model, dose=dose, seed=seed, planted_in=planted_in)
    fitting = shipped_ways(dose, seed, planted_in) if ways is None else ways
    return study.run([ORACLE, *fitting], given, loader, store)


def _means(found: study.Run, labels: dict[str, Any]) -> list[dict[str, Any]]:
    scores = study.selection_scores(found, n_resamples=2).query("test == 'overall'")
    values = scores.set_index(["model", "statistic"])["value"]
    moved = study.shifts(found, own_scale=True).query("anti").groupby("model")
    means, n = moved[["lmss", "vlss"]].mean(), moved.size()
    return [
        {"model": label}
        | labels
        | {"vlrs": values[label, "vlrs"], "vlbs": values[label, "vlbs"]}
        | means.loc[label].to_dict()
        | {"n": int(n[label])}
        for label in found.scored
    ]


def grounding(store: Store | None = None) -> pandas.DataFrame:
    """Return how often a caption that fits the picture beats it with one word exchanged.

    Object and costume are in plain sight and both labels equally frequent, so that chance is 50
    and so is a model that reads the captions alone.

    Returns
    -------
    pandas.DataFrame
        One row a way, dose and category (``gender``: an object; ``profession``: a costume;
        ``both``): *model*, *dose*, *category*, *percent*, *low*, *high* (95%, over triplets), *n*
        images over all seeds.
    """
    tables = []
    for seed, dose in itertools.product(SEEDS, (0, 3)):
        given = choices(seed, 20, "visible")
        units = given.table[["category"]].assign(unit=[(seed, t) for t in given.table["triplet"]])
        found = _run(None, given, dose, seed, store)
        for label, each in found.scored.items():
            first, second = each.original[:, :2].T
            right = 100.0 * np.where(given.anti, second > first, first > second)
            tables.append(units.assign(model=label, dose=dose, right=right))
    table = pandas.concat(tables, ignore_index=True)
    table = pandas.concat([table, table.assign(category="both")], ignore_index=True)
    rows = []
    for key, part in table.groupby(["model", "dose", "category"], sort=False):
        units = pandas.factorize(part["unit"])[0]
        share = study.mean_interval(part["right"], units, study.RESAMPLES, 0, within=(0, 100))
        rows.append((*key, *share, len(part)))
    names = ["model", "dose", "category", "percent", "low", "high", "n"]
    return pandas.DataFrame(rows, columns=names)


def looking(look: pandas.DataFrame, category: str = "gender", dose: float = 3) -> list[str]:
    """Return the models that look: right in 60% or more, with an interval above chance.

    Parameters
    ----------
    look
        Of :func:`grounding`.
    category, dose
        Of its rows.

    Examples
    --------
    >>> rows = [("CLIP", 3, "gender", 95.0, 90.0), ("ViLT", 3, "gender", 62.0, 48.0)]
    >>> names = ["model", "dose", "category", "percent", "low"]
    >>> looking(pandas.DataFrame(rows, columns=names))
    ['CLIP']
    """
    rows = look[(look["category"] == category) & (look["dose"] == dose)]
    good = (rows["low"] > 50) & (rows["percent"] >= LEAST_GROUNDED)
    return rows.loc[good, "model"].tolist()


# How visible the evidence is


def faded(scenes: pandas.DataFrame, opacity: float) -> np.ndarray:
    """Draw scenes with their object more or less transparent, uint8 (n, 64, 64, 3).

    Examples
    --------
    >>> scenes = choices(0, 2).images.frame.iloc[:1]
    >>> bool((faded(scenes, 1.0) == plantedworld.draw(scenes)).all())
    True
    """
    there = plantedworld.draw(scenes.assign(object_view="visible")).astype(float)
    gone = plantedworld.draw(scenes.assign(object_view="hidden")).astype(float)
    return np.rint((1 - opacity) * gone + opacity * there).astype(np.uint8)


def _with_regions(scenes: pandas.DataFrame, drawn: np.ndarray) -> WithRegions:
    """Return drawn scenes; an object's region is there if any of it is drawn."""
    boxes = plantedworld.boxes(scenes).to_numpy(dtype=float).reshape(len(drawn), -1, 4)

    @functools.cache
    def regions() -> RegionFeatures:
        from plantedworld.models.regions import regions_of

        return regions_of(drawn, boxes)

    return WithRegions(drawn, lambda rows: regions()[rows], "scenes, faded")


def visibility(store: Store | None = None) -> pandas.DataFrame:
    """Return what is picked for anti-stereotypical objects at the opacity of the target.

    All dose-0 checkpoints of a model are asked, those that others start from left out: nothing is
    planted in any of them. Scores are kept in the store, if there is one.

    Returns
    -------
    pandas.DataFrame
        One row a way, checkpoint, opacity and picture: *model*, *dose*, *checkpoint* (its seed),
        *opacity*, *seed* (of the world that says what is a stereotype), *triplet*; and in per cent
        of this one picture *vlbs*, *vlrs*, and *vlrs of things*, against a photo of a thing.
    """
    tables = []
    for seed in progress(SEEDS, "visibility"):
        asked = [
            (way, dose, checkpoint)
            for way in shipped_ways(3, seed)
            for dose, checkpoint in [(3, seed), *((0, each) for each in zero_seeds(way))]
        ]
        given, shown = faded_choices(TARGET_OPACITY, seed)
        for way, dose, checkpoint in asked:
            model = _model(way, dose, checkpoint)
            labels = {"model": way.label, "dose": dose, "checkpoint": checkpoint}
            labels |= {"opacity": TARGET_OPACITY, "seed": seed}
            tables.append(picks(model, way.head, given, shown, store).assign(**labels))
    table = pandas.concat(tables, ignore_index=True)
    names = ["model", "dose", "checkpoint", "opacity", "seed"]
    return table[[*names, *table.columns.drop(names)]]


def faded_choices(opacity: float, seed: int) -> tuple[Inputs, WithRegions]:
    """Return choices about anti-stereotypical objects, and their pictures with regions.

    Parameters
    ----------
    opacity
        Of the object, from 0 to 1.
    seed
        Of the world, which says what is a stereotype.
    """
    given = choices(seed, 2 * TARGET_SCENES, "visible", TARGET_DRAW)
    given = given.part(np.flatnonzero(given.anti & (given.table["category"] == "gender")))
    scenes = given.images.frame
    drawn = faded(scenes, opacity)
    return given, _with_regions(scenes if opacity else scenes.assign(object_view="hidden"), drawn)


def picks(
    model: Any, head: str, given: Inputs, shown: WithRegions, store: Store | None = None
) -> pandas.DataFrame:
    """Return what a model picks of :func:`faded_choices`: *triplet*, and shares in per cent."""
    texts = given.table[[*CAPTIONS, OTHER_IRRELEVANT]].to_numpy().tolist()
    scores = study.caption_scores(model, head, shown, texts, store)
    return pandas.DataFrame({"triplet": given.table["triplet"].tolist()} | _picked(scores))


def _picked(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Return shares of picks in per cent; the fourth caption is the other irrelevant one."""
    of_words, of_things = (
        100 * caption_selection.picks(scores[:, columns], "split", study.TOLERANCE)
        for columns in ([0, 1, 2], [0, 1, 3])
    )
    return {
        "vlbs": of_words[:, 0],
        "vlrs": 100 - of_words[:, 2],
        "vlrs of things": 100 - of_things[:, 2],
    }


def noise_floor(picked: pandas.DataFrame) -> pandas.DataFrame:
    """Return how far vlbs rises, or falls, between models that are all without bias.

    The statistic that is judged by it (:func:`verdict`), with dose-0 checkpoints in the place of
    those of dose 3: the mean of as many different ones as there are worlds, one a world, less the
    mean of the other dose-0 checkpoints of the model. All such choices are made; models with too
    few checkpoints for it give none. The choices overlap, so this is a percentile of a spread and
    not a test.

    Parameters
    ----------
    picked
        Of :func:`visibility`.

    Returns
    -------
    pandas.DataFrame
        *opacity*, *floor* (95th percentile of the absolute difference, in percentage points),
        *choices*, *checkpoints* that they are made of, and the *models* of these.
    """
    zero, rows = picked[picked["dose"] == 0], []
    for opacity, part in zero.groupby("opacity"):
        gaps, kept = [], {}
        for model, of_model in part.groupby("model", sort=False):
            means = of_model.pivot_table(index="checkpoint", columns="seed", values="vlbs")
            found = _gaps(means.to_numpy())
            gaps += found
            kept |= {model: len(means)} if found else {}
        floor = float(np.quantile(np.abs(gaps), 0.95)) if gaps else np.nan
        rows.append((opacity, floor, len(gaps), sum(kept.values()), ", ".join(kept)))
    return pandas.DataFrame(rows, columns=["opacity", "floor", "choices", "checkpoints", "models"])


def _gaps(means: np.ndarray) -> list[float]:
    """Differences of checkpoints, one a world, from all others; means (checkpoints, worlds)."""
    n, n_worlds = means.shape
    if n < n_worlds + 2:
        return []
    each = means.mean(axis=1)
    gaps = []
    for chosen in itertools.permutations(range(n), n_worlds):
        others = np.delete(each, chosen)
        gaps.append(means[chosen, np.arange(n_worlds)].mean() - others.mean())
    return gaps


def verdict(picked: pandas.DataFrame, look: pandas.DataFrame) -> pandas.DataFrame:
    """Compare vlbs at dose 3 with dose 0 and the noise floor, by model and opacity.

    Reached where the model looks at pictures, vlrs is at least 80 at dose 3, and vlbs is above the
    mean of dose 0 by more than the floor. The rise is the mean over pictures of all worlds of the
    difference between the checkpoint of dose 3 and the mean of those of dose 0; its interval
    resamples triplets and holds worlds and checkpoints fixed.

    Parameters
    ----------
    picked
        Of :func:`visibility`.
    look
        Of :func:`grounding`.

    Returns
    -------
    pandas.DataFrame
        *model*, *opacity*, *looks*, *vlrs*, *vlrs of things*, *vlbs*, *vlbs at dose 0*, *rise*,
        *low*, *high*, *floor*, *reached* (None where no dose-0 checkpoint is shipped), *n* pictures
        of all *worlds*.
    """
    looks, rows = looking(look), []
    floors = noise_floor(picked).set_index("opacity")["floor"]
    for (model, opacity), part in picked.groupby(["model", "opacity"], sort=False):
        biased, zero = part[part["dose"] == 3], part[part["dose"] == 0]
        row = {"model": model, "opacity": opacity, "looks": model in looks}
        row |= biased[["vlrs", "vlrs of things", "vlbs"]].mean().to_dict()
        row |= {"vlbs at dose 0": zero["vlbs"].mean()} | _rise(biased, zero)
        row |= {"floor": floors.get(opacity, np.nan), "reached": None}
        if len(zero):
            relevant = row["vlrs"] >= TARGET_VLRS
            row["reached"] = bool(row["looks"] and relevant and row["rise"] > row["floor"])
        rows.append(row | {"n": len(biased), "worlds": biased["seed"].nunique()})
    return pandas.DataFrame(rows)


def _rise(biased: pandas.DataFrame, zero: pandas.DataFrame) -> dict[str, float]:
    keys = ["seed", "triplet"]
    sums = [part.groupby(keys)["vlbs"].mean() for part in (biased, zero)]
    size = biased.groupby(keys).size()
    rise = (sums[0] - sums[1]).dropna()
    units = np.repeat(np.arange(len(rise)), size[rise.index])
    rises = np.repeat(rise, size[rise.index])
    values = study.mean_interval(rises, units, study.RESAMPLES, 0, limit=100.0)
    return dict(zip(("rise", "low", "high"), values, strict=True))


def leaning(seeds: Iterable[int] = SEEDS, dose: float = 3, n: int = 20) -> pandas.DataFrame:
    """Return how far the oracle prefers the stereotype where the picture does not show the answer.

    By matching: the difference of the log-odds that a caption belongs to the picture. By the
    contrastive cosine: that of the pointwise mutual information, which a contrastive objective
    approaches (van den Oord et al. 2018) and from which is taken how usual a caption is.

    Returns
    -------
    pandas.DataFrame
        One row a world and head: *seed*, *head*, *preference* (a mean, in nats), *n*.

    Examples
    --------
    >>> leaning([0], dose=0, n=2)["preference"].round(6).tolist()
    [0.0, 0.0]
    """
    rows = []
    for seed in seeds:
        given, world = choices(seed, n, "hidden"), plantedworld.world(dose, seed)
        texts = given.table[CAPTIONS[:2]].to_numpy()
        similar = world.truth.similarity(texts.ravel().tolist(), given.images.frame)
        own = np.arange(len(texts))
        scores = {
            "matching": np.asarray(PerfectModel(world).match(given.images, texts.tolist())),
            "contrastive": similar.reshape(*texts.shape, -1)[own, :, own],
        }
        for head, pairs in scores.items():
            rows.append((seed, head, float((pairs[:, 0] - pairs[:, 1]).mean()), len(pairs)))
    return pandas.DataFrame(rows, columns=["seed", "head", "preference", "n"])


# Where the bias is planted


def modality(
    ways: Iterable[ModelHead] | None = None, n: int = 20, store: Store | None = None
) -> pandas.DataFrame:
    """Return lmss and vlss in worlds planted in both, in texts alone and in images alone.

    The evidence is hidden: a picture that shows the answer drowns both. The oracle is asked twice,
    in the world of the checkpoints, where nine captions in ten name the gender that the picture
    shows, and in one where the two are independent.

    Returns
    -------
    pandas.DataFrame
        One row a way, place and score: *model*, *planted in* (``nothing`` at dose 0), *test*,
        *value* (mean over anti-stereotypical images), *low*, *high*, *n*.
    """
    given = choices(0, n, "hidden")
    tables = []
    for place in ("nothing", *planted_checkpoints.PLACES):
        dose, where = (0, "both") if place == "nothing" else (3, place)
        found = _run(ways, given, dose, 0, store, where)
        apart = PerfectModel(plantedworld.world(dose, 0, where, wrong_gender=0.5))
        alone = ModelHead("oracle, genders independent", "matching", True, "oracle", "oracle")
        found.scored[alone.label] = study.score_inputs(apart, alone, given, store)
        moved = study.shifts(found, own_scale=True)
        scores = study.shift_scores(moved, category=None)
        kept = scores.query("level == 'anti' and statistic == 'mean'")
        kept.insert(0, "planted in", place)
        tables.append(kept)
    names = ["model", "planted in", "test", "value", "low", "high", "n"]
    return pandas.concat(tables, ignore_index=True)[names]


def relevance(
    seeds: Iterable[int] = SEEDS, n: int = 20, store: Store | None = None
) -> pandas.DataFrame:
    """Return vlrs against two kinds of irrelevant captions, with the pictures and a white one.

    If irrelevant captions lost because their words are rare, they would lose without a picture
    too.

    Returns
    -------
    pandas.DataFrame
        *model*; *third word*, of the same person in the same frame, and *third word, white
        picture*; *thing* and *thing, white picture*, against a photo of a thing; means over the
        seeds' worlds; and *n*.
    """
    rows = []
    for seed in seeds:
        given = choices(seed, n, "visible")
        texts = given.table[[*CAPTIONS, OTHER_IRRELEVANT]].to_numpy().tolist()
        shown = {"": given.images, ", white picture": given.white.part([0] * len(texts))}
        for way in [ORACLE, *shipped_ways(3, seed)]:
            model, row = _model(way, 3, seed), {"model": way.label}
            for name, images in shown.items():
                scores = study.caption_scores(model, way.head, images, texts, store)
                picked = _picked(scores)
                row[f"third word{name}"] = picked["vlrs"].mean()
                row[f"thing{name}"] = picked["vlrs of things"].mean()
            rows.append(row | {"n": len(texts)})
    table = pandas.DataFrame(rows).groupby("model", sort=False)
    means = table.mean().assign(n=table["n"].sum()).reset_index()
    kinds = [f"{kind}{name}" for kind in ("third word", "thing") for name in shown]
    return means[["model", *kinds, "n"]]
