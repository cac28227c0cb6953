r"""Study 4, VLStereoSet (Zhou, Lai and Jiang 2022): which of three captions does a model pick?

Six models, each scored as the paper did, ALBEF and FLAVA by other heads too: nine in all.
Every image has a stereotypical, an anti-stereotypical and an irrelevant caption: n images take 3 n
passes, and 4 n more for the shifts lmss and vlss (neutral captions, and these with a white image).
What was scored is stored, so that a run that is killed goes on where it stopped. A taste asks a
small CLIP about the images of gender alone.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import inference, models, runtime
from biaslib.capabilities import (
    ENCODE,
    LIKELIHOOD,
    MATCH,
    UNIMODAL,
    CapabilityError,
    require,
)
from biaslib.checkpoints.registry import REGISTRY
from biaslib.datasets import DataError, vlstereoset
from biaslib.errors import CheckpointError
from biaslib.metrics import caption_selection
from biaslib.metrics.inputs import one_of
from biaslib.models import stored
from biaslib.pictures.images import Pictures, pictures
from biaslib.pictures.regions import NothingFoundError
from biaslib.runtime import Store, data_folder, progress
from biaslib.studies._fetch import MISSING, Part, fetched, holds, weights
from biaslib.studies._inputs import provided_inputs
from biaslib.studies.scores import Recorded, tidy

__all__ = [
    "HEADS",
    "MODEL_HEADS",
    "Inputs",
    "ModelHead",
    "Run",
    "Scored",
    "caption_scores",
    "fetch",
    "inputs",
    "load",
    "missing_inputs",
    "over_selections",
    "paired_tests",
    "paper_inputs",
    "parts",
    "recorded",
    "reference_models",
    "run",
    "score_inputs",
    "selected",
    "selection_scores",
    "shift_scores",
    "shifts",
    "strict",
]

STUDY = "zhou2022"
CAPTIONS = list(caption_selection.CAPTIONS)
PAIR = ["stereotype", "anti-stereotype"]
WHEN = ("here", "released")
NEUTRAL = [f"neutral {name}" for name in PAIR]
LEFT = "gendered words left"
TOLERANCE = 1e-9
"""Scores no further apart than this are tied: an oracle's sums differ in their last digits."""

HEADS = {
    "matching": "matching logit",
    "contrastive": "contrastive cosine",
    "unimodal": "cosine of the encoders alone",
}
"""What a caption can be scored by, and what it is called."""

NEEDS = {"matching": MATCH, "contrastive": ENCODE, "unimodal": UNIMODAL}
"""The capability that a model needs to be scored so."""

SHIFTS = ["model", "row", "category", "triplet", "anti", "chosen", "balanced", "strict", "lmss"]
SHIFTS += ["vlss", "scale"]
"""Columns of :func:`shifts`."""

RESAMPLES = 400
BOOTSTRAP = "bootstrap of triplets"

SHARD, SHARD_OF_WRITERS = 64, 4
"""Images a shard of the store, which a kill may lose: fewer where a model writes, which is slow."""

LEFT_OUT = (CapabilityError, CheckpointError, FileNotFoundError, ImportError, NothingFoundError)
"""Errors for which a model is left out and named, its own or its detector's; others are raised."""


@dataclass(frozen=True)
class ModelHead:
    """A model and what its captions are scored by.

    Attributes
    ----------
    model
        As the paper writes it.
    head
        One of :data:`HEADS`.
    as_in_paper
        Whether the paper scored it so.
    planted, paper
        Its names in the registry, in the two profiles.
    """

    model: str
    head: str
    as_in_paper: bool
    planted: str
    paper: str

    @property
    def label(self) -> str:
        """Model, and the head where it is not the paper's."""
        return self.model if self.as_in_paper else f"{self.model}, {HEADS[self.head]}"


MODEL_HEADS = (
    ModelHead("VisualBERT", "matching", True, "visualbert", "visualbert"),
    ModelHead("LXMERT", "matching", True, "lxmert", "lxmert"),
    ModelHead("ViLT", "matching", True, "vilt", "vilt-itm"),
    ModelHead("CLIP", "contrastive", True, "clip", "clip"),
    ModelHead("ALBEF", "contrastive", True, "albef", "albef"),
    ModelHead("FLAVA", "contrastive", True, "flava", "flava"),
    ModelHead("ALBEF", "matching", False, "albef", "albef"),
    ModelHead("FLAVA", "matching", False, "flava", "flava"),
    ModelHead("FLAVA", "unimodal", False, "flava", "flava"),
)
"""Models with the heads that score captions: six as in the paper, and by other heads.

The paper "used only FLAVA's unimodal encoders", which may mean their contrastive vectors or those
before the projection: both are here.
"""


TASTE_CATEGORY = "gender"
TASTE_HEADS = (ModelHead("TinyCLIP", "contrastive", False, "", "tinyclip"),)
"""A taste: a small CLIP that none of the papers has, on the images of gender."""


@dataclass(frozen=True)
class Inputs:
    """What is shown and said.

    Attributes
    ----------
    table
        One row an image: *category*, *target*, *label*, *triplet*, the three captions, and
        *neutral stereotype* and *neutral anti-stereotype*, empty where there are none; in
        ``paper`` also *gendered words left*, see :func:`biaslib.datasets.vlstereoset.neutralised`.
    images
        The images, in the same order; in any form that models take.
    white
        One white image.
    profile, dataset
        What the scores will say of themselves.
    checksum
        Of the data, for the stamp.
    links
        Links and images by category, where images come by links.
    balance
        Whether vlrs, vlbs and ivlas are those of a balanced selection.
    heads
        Models and heads that are asked.
    """

    table: pandas.DataFrame
    images: Pictures
    white: Pictures
    profile: str
    dataset: str
    checksum: str = ""
    links: pandas.DataFrame | None = None
    balance: bool = False
    heads: Sequence[ModelHead] = MODEL_HEADS

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", pictures(self.images))
        object.__setattr__(self, "white", pictures(self.white))

    @property
    def anti(self) -> np.ndarray:
        """Which images are anti-stereotypical, (n,)."""
        return (self.table["label"] == PAIR[1]).to_numpy()

    def part(self, rows: Sequence[int]) -> "Inputs":
        """Return some rows, by their places."""
        rows = list(rows)
        table = self.table.iloc[rows].reset_index(drop=True)
        return replace(self, table=table, images=self.images.part(rows))


@dataclass(frozen=True)
class Scored:
    """The scores of one model by one head.

    Attributes
    ----------
    model_head
        Which.
    revision
        Of the weights.
    original
        Logits or cosines of the three captions, (n, 3).
    neutral, white
        Of the two neutral captions with the image and with a white one, (n, 2); NaN where there is
        no neutral caption.
    scale
        What the model multiplies its cosines by; 1 for logits.
    note
        What could not be scored, and why.
    """

    model_head: ModelHead
    revision: str
    original: np.ndarray
    neutral: np.ndarray
    white: np.ndarray
    scale: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class Run:
    """All models on one set of inputs.

    Attributes
    ----------
    inputs
        What was scored.
    scored
        Scores by the label of model and head.
    skipped
        What could not be run: model and reason.
    """

    inputs: Inputs
    scored: dict[str, Scored]
    skipped: pandas.DataFrame

    @property
    def weights(self) -> dict[str, str]:
        """Revision by model, for the stamp: of released ones by its name in the registry."""
        toy = self.inputs.profile == "planted"
        heads = ((scored.model_head, scored.revision) for scored in self.scored.values())
        return {head.model if toy else head.paper: revision for head, revision in heads}


# From nothing to a record


def parts(size: str = "full") -> list[Part]:
    """Return what the study reads in ``paper``, of one size: see :func:`fetch`."""
    taste = size == "taste"
    category, gigabytes = (TASTE_CATEGORY, 0.1) if taste else (None, 0.6)

    def get() -> None:
        vlstereoset.fetch_images(data_folder("vlstereoset", make=True), category=category)

    def here() -> bool:
        return holds("vlstereoset", lambda folder: vlstereoset.is_fetched(folder, category))

    data = Part("VLStereoSet", vlstereoset.URL, gigabytes, "", get, here)
    if taste:
        return [data, *(weights(head.paper) for head in TASTE_HEADS)]
    labels: dict[str, list[str]] = {}
    for head in MODEL_HEADS:
        labels.setdefault(head.paper, []).append(head.label)
        if REGISTRY[head.paper].features:
            labels.setdefault("detector", []).append(head.label)
    without = {name: f"{'; '.join(those)}: left out" for name, those in labels.items()}
    return [data, *(weights(name, text) for name, text in without.items())]


def fetch(size: str | None = None) -> pandas.DataFrame:
    """Download what the study reads in ``paper``, unless it is here already.

    VLStereoSet's table, the images that its links still lead to (some 0.6 GB), and the weights of
    all models and of the detector (4.7 GB); for a taste the images of gender (some 0.1 GB) and the
    weights of a small CLIP. What became of each link is in ``images/downloads.csv`` of the data
    folder ``vlstereoset``.

    Parameters
    ----------
    size
        ``full`` or ``taste``; None takes that of the run.

    Returns
    -------
    pandas.DataFrame
        What could not be had: *what*, what the study does *without it*, and the *reason*. Images
        whose links are dead have a row a category.

    Raises
    ------
    InputError
        If the table cannot be had or is not the one that is pinned, no image is there, or the disk
        is full.
    """
    size = runtime.size(size)
    missing, lost = fetched(parts(size)), []
    _, _, coverage = _released(data_folder("vlstereoset"), size)
    for row in coverage.iloc[:-1].to_dict("records"):
        if row["what came instead"] != vlstereoset.ALL_HERE:
            here, asked = (sum(row[f"{label}, {when}"] for label in PAIR) for when in WHEN)
            left = f"{here} of {asked} rows are left, a balanced selection has "
            left += f"{row['balanced now']} of {row['balanced as released']}"
            lost.append((f"some images of {row['category']}", left, row["what came instead"]))
    return pandas.concat([missing, pandas.DataFrame(lost, columns=MISSING)], ignore_index=True)


def _released(folder: Path, size: str) -> tuple[str, pandas.DataFrame, pandas.DataFrame]:
    """Return checksum of VLStereoSet's table, its rows with an image, and what is left of it."""
    released = vlstereoset.released(folder)
    table = released.table
    if size == "taste":
        table = table[table["category"] == TASTE_CATEGORY]
    return released.sha256[:12], *vlstereoset.with_images(table, folder)


def recorded(provenance: runtime.Provenance, found: Run | None = None) -> Recorded:
    """Return what goes into the record of a run, which is noted there.

    Parameters
    ----------
    provenance
        Of the run; its profile and size say what is run.
    found
        What :func:`run` returned, as the chapter calls it; None runs it.
    """
    if found is None:
        given = inputs(provenance.profile, size=provenance.size)
        found = run(given.heads, given, store=Store())
    given = found.inputs
    provenance.record(data={given.dataset: given.checksum}, weights=found.weights)
    tables = [selection_scores(found, selected(given)), shift_scores(shifts(found))]
    if given.profile != "planted":
        tables.append(selection_range(found))
    asked = there = len(given.table)
    if given.links is not None:
        asked = given.links.filter(like=", released").iloc[-1].sum()
    return Recorded(tables, asked, there, images=[given.images])


# What is shown and said


def inputs(profile: str | None = None, **settings: Any) -> Inputs:
    """Return the images and captions of a profile.

    Parameters
    ----------
    profile
        ``planted`` (:func:`plantedworld.inputs.study4_captions.inputs`) or ``paper``
        (:func:`paper_inputs`); ``None`` takes that of the run.
    **settings
        Of either; what the other profile alone knows is left out.

    Raises
    ------
    UnknownNameError
        If no profile knows a setting.
    """
    return provided_inputs("study4_captions", profile, settings)


def paper_inputs(folder: str | Path | None = None, size: str | None = None) -> Inputs:
    """Return VLStereoSet: all rows of ``VLStereoSet.csv`` whose image is in ``images/``.

    Parameters
    ----------
    folder
        Of both; None takes ``data_folder("vlstereoset")``.
    size
        ``full`` or ``taste``, which has the rows of gender, for a small CLIP alone; None takes that
        of the run.

    Raises
    ------
    FileNotFoundError
        If the folder is not there.
    DataError
        If the table is not sound or no image is there.
    """
    folder = data_folder("vlstereoset") if folder is None else Path(folder)
    size = runtime.size(size)
    checksum, kept, coverage = _released(folder, size)
    kept = kept.reset_index(drop=True)
    return Inputs(
        table=kept.join(vlstereoset.neutralised(kept)[[*NEUTRAL, LEFT]]),
        images=pictures(kept["path"].tolist()),
        white=pictures([np.full((224, 224, 3), 255, np.uint8)]),
        profile="taste" if size == "taste" else "paper",
        dataset=f"VLStereoSet, {TASTE_CATEGORY}" if size == "taste" else "VLStereoSet",
        checksum=checksum,
        links=coverage,
        balance=True,
        heads=TASTE_HEADS if size == "taste" else MODEL_HEADS,
    )


def selected(given: Inputs, seed: int = 0) -> np.ndarray:
    """Return the places of the rows that vlrs, vlbs and ivlas are computed of.

    Those of a balanced selection, as the paper scored one, if the inputs say so; else all.

    Raises
    ------
    DataError
        If a selection is to be balanced and no category has images of both labels.
    """
    if not given.balance:
        return np.arange(len(given.table))
    drawn = vlstereoset.balanced(given.table, seed)
    return given.table.index.get_indexer(drawn.index)


def missing_inputs(given: Inputs) -> pandas.DataFrame:
    """Return what cannot be computed of these images, and why; no row if nothing is missing.

    Returns
    -------
    pandas.DataFrame
        *category*, *here* (what was counted), *what follows*.
    """
    counts = given.table.groupby(["category", "label"]).size().unstack(fill_value=0)
    released = [] if given.links is None else [*given.links["category"].iloc[:-1]]
    names = list(dict.fromkeys([*counts.index, *released]))
    counts = counts.reindex(index=names, columns=PAIR, fill_value=0)
    undefined, unbalanced = "vlbs and ivlas are not defined; ", "no balanced selection has it"
    rows = [
        (category, f"{stereo} {PAIR[0]}, {anti} {PAIR[1]}", undefined * (not anti) + unbalanced)
        for category, stereo, anti in counts.itertuples()
        if not (stereo and anti)
    ]
    without = int(given.table[NEUTRAL].isna().any(axis=1).sum())
    if without:
        here = f"{without} of {len(given.table)} rows without neutral captions"
        rows.append(("all", here, "they have no lmss and no vlss"))
    gendered = ~strict(given)
    if gendered.any():
        n = int((given.table["category"] == "gender").sum())
        here = f"{gendered.sum()} of {n} rows whose neutral captions still say a gender"
        rows.append(("gender", here, "lmss and vlss are summarised without them, and with"))
    return pandas.DataFrame(rows, columns=["category", "here", "what follows"])


def strict(given: Inputs) -> np.ndarray:
    """Return which rows of the inputs have no neutral caption that says a gender, (n,)."""
    return ~given.table.reindex(columns=[LEFT])[LEFT].eq(True).to_numpy()


def _in_selection(given: Inputs) -> np.ndarray:
    """Return which rows are of the balanced selection, (n,); none where there cannot be one."""
    try:
        return np.isin(np.arange(len(given.table)), selected(given))
    except DataError:
        return np.zeros(len(given.table), bool)


# Scoring


def load(model_head: ModelHead, profile: str | None = None, **world: Any) -> Any:
    """Load a model; ``world`` is dose, seed and planted_in of a planted checkpoint."""
    if profile in ("paper", "taste"):
        return models.load(model_head.paper, profile="paper", **world)
    return models.load(model_head.planted, profile=profile, **world)


def caption_scores(
    model: Any,
    head: str,
    images: Pictures,
    texts: Sequence[Sequence[str]],
    store: Store | None = None,
) -> np.ndarray:
    """Return the scores of c captions of each of n images, (n, c), computed once and stored.

    Parameters
    ----------
    model
        With the capability that the head asks for, a name and a revision.
    head
        One of :data:`HEADS`.
    images
        n images.
    texts
        n rows of c captions.
    store
        Where scores are kept; None keeps none, and computes all at once.

    Raises
    ------
    CapabilityError
        If the model cannot score captions so.
    ValueError
        If texts and images differ in number.
    """
    if head not in NEEDS:
        raise CapabilityError(f"{head!r} is no head; there are {', '.join(NEEDS)}")
    require(model, NEEDS[head])
    images = pictures(images)
    texts = [list(row) for row in texts]
    if len(texts) != len(images):
        raise ValueError(f"there are {len(images)} images for {len(texts)} rows of captions")

    def ask(rows: Sequence[int], part: Pictures) -> np.ndarray:
        return _scores_of(model, head, part, [texts[row] for row in rows])

    if store is None:
        return ask(range(len(texts)), images)
    hashes = [hashlib.sha256(json.dumps(row).encode()).hexdigest() for row in texts]
    size = SHARD_OF_WRITERS if LIKELIHOOD in getattr(model, "capabilities", ()) else SHARD
    settings = {"store": store, "shard_size": size, "head": head, "captions": len(texts[0])}
    return stored.cached_outputs(
        model, "caption scores", ask, texts=hashes, images=images, **settings
    )


def _scores_of(model: Any, head: str, images: Any, texts: list[list[str]]) -> np.ndarray:
    if head == "matching":
        return np.asarray(model.match(images, texts), dtype=np.float64)
    once = list(dict.fromkeys(itertools.chain.from_iterable(texts)))
    option = {"encoder": head} if head == "unimodal" else {}
    of_texts = _unit(model.encode_text(once, **option))
    of_images = _unit(model.encode_image(images, **option))
    if of_texts.shape[1] != of_images.shape[1]:
        raise CapabilityError(
            f"{model.name}'s {head} vectors have {of_texts.shape[1]} numbers for a text and "
            f"{of_images.shape[1]} for an image: they have no cosine"
        )
    rows = [[once.index(text) for text in row] for row in texts]
    return np.einsum("ncd,nd->nc", of_texts[np.array(rows)], of_images)


def _unit(vectors: Any) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def run(
    model_heads: Iterable[ModelHead],
    given: Inputs,
    loader: Callable[[ModelHead], Any] | None = None,
    store: Store | None = None,
) -> Run:
    """Score all captions by all models, as far as they can.

    Parameters
    ----------
    model_heads
        Which; see :data:`MODEL_HEADS`.
    given
        Images and captions.
    loader
        Takes one of them and returns its model; by default :func:`load` in the inputs' profile.
    store
        Where scores are kept.

    Raises
    ------
    CapabilityError
        If none can be run; the message counts them and gives every reason.

    Notes
    -----
    A model is left out and named where it or its detector is not there, it lacks what the head
    needs, or the detector finds nothing in an image. Any other error is raised.
    """
    loader = loader or functools.partial(load, profile=given.profile)
    scored, skipped, model_heads = {}, [], list(model_heads)
    for model_head in progress(model_heads, "models"):
        label = model_head.label
        try:
            model = loader(model_head)
            scored[label] = score_inputs(model, model_head, given, store)
            skipped += [(f"{label}, vlss", note) for note in [scored[label].note] if note]
        except LEFT_OUT as error:
            skipped.append((label, " ".join(str(error).split())))
    if not scored:
        reasons = "; ".join(f"{label}: {reason}" for label, reason in skipped)
        raise CapabilityError(f"none of {len(model_heads)} models can be scored ({reasons})")
    return Run(given, scored, pandas.DataFrame(skipped, columns=["model", "reason"]))


def score_inputs(
    model: Any, model_head: ModelHead, given: Inputs, store: Store | None = None
) -> Scored:
    """Score the captions of all images, and the neutral ones, by one model and head."""
    score = functools.partial(caption_scores, model, model_head.head, store=store)
    table = given.table
    original = score(given.images, table[CAPTIONS].to_numpy().tolist())
    neutral, white = (np.full((len(table), 2), np.nan) for _ in range(2))
    rows, note = np.flatnonzero(table[NEUTRAL].notna().all(axis=1)), ""
    if len(rows):
        pairs = [tuple(pair) for pair in table[NEUTRAL].iloc[rows].to_numpy()]
        neutral[rows] = score(given.images.part(rows), pairs)
        once = list(dict.fromkeys(pairs))
        try:
            blank = score(given.white.part([0] * len(once)), once)
            white[rows] = blank[[once.index(pair) for pair in pairs]]
        except NothingFoundError:
            note = "the detector finds no region in a white image"
    # The factor of training is that of the contrastive cosine; nothing else was trained with it.
    scale = getattr(model, "scale", 1.0) if model_head.head == "contrastive" else 1.0
    return Scored(model_head, str(model.revision), original, neutral, white, float(scale), note)


# vlrs, vlbs, ivlas


def selection_scores(
    run: Run,
    rows: Sequence[int] | None = None,
    policy: str = "split",
    per_target: bool = False,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return vlrs, vlbs and ivlas of all models, overall and by category, as tidy scores.

    Intervals resample triplets of captions, or target terms where these are averaged over; of one
    triplet there is none. Of a category without an anti-stereotypical image vlbs and ivlas are NaN.

    Parameters
    ----------
    run
        What :func:`run` returned.
    rows
        Places of the rows to use, such as :func:`selected` gives them; None for all.
    policy
        What to do about ties: see :func:`biaslib.metrics.caption_selection.picks`.
    per_target
        Average over target terms, as StereoSet does, and not over images.
    n_resamples, seed
        Of the bootstrap; without resamples there are no intervals.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, one row a model, category (*test*) and statistic; *level*, what is averaged
        over; *n* images; *head*, *count*, *tied* and *method*.
    """
    places = np.arange(len(run.inputs.table)) if rows is None else np.asarray(rows)
    table, anti = run.inputs.table.iloc[places], run.inputs.anti[places]
    units = table["target" if per_target else "triplet"].astype(str).tolist()
    every = []
    for scored in run.scored.values():
        by_category = caption_selection.selection_scores(
            scored.original[places],
            anti,
            table["category"].tolist(),
            table["target"].tolist() if per_target else None,
            ties=policy,
            tolerance=TOLERANCE,
            require_relevant=False,
            require_anti=False,
        )
        labels = {"model": scored.model_head.label, "revision": scored.revision}
        labels |= {"head": scored.model_head.head}
        for category, scores in by_category.items():
            for name in ("vlrs", "vlbs", "ivlas"):
                row = _selection_row(scores, name, units, n_resamples, seed)
                every.append(labels | {"test": category} | row)
    level = "target terms" if per_target else "images"
    labels = {"profile": run.inputs.profile, "dataset": run.inputs.dataset, "level": level}
    return tidy(every, study=STUDY, **labels)


def _selection_row(scores, name: str, units: list, n_resamples: int, seed: int) -> dict[str, Any]:
    part = scores.vlbs if name == "vlbs" else scores.vlrs
    row = {"statistic": name, **dict.fromkeys(("value", "low", "high"), np.nan)}
    row |= {"n": part.denominator, "count": np.nan, "seed": seed, "tied": scores.n_tied}
    if name != "vlrs" and not scores.vlbs.denominator:
        return row | {"method": "not defined: no anti-stereotypical image"}
    row |= {"value": part.value, "count": part.numerator, "method": "no interval"}
    if name == "ivlas":
        row |= {"value": scores.ivlas, "count": np.nan}
    if n_resamples:
        interval = inference.bootstrap_selection(
            scores, units, name, n_resamples=n_resamples, rng=seed
        )
        row |= {"low": interval.low, "high": interval.high}
        row["method"] = BOOTSTRAP if np.isfinite(interval.low) else row["method"]
    return row


def over_selections(run: Run, seeds: Iterable[int]) -> pandas.DataFrame:
    """Return vlrs, vlbs and ivlas of balanced selections by several seeds.

    The paper scored one balanced selection, and which images it had is not known. The spread over
    seeds is what that choice alone can do.

    Returns
    -------
    pandas.DataFrame
        One row a model, selection, category and statistic: *model*, *test*, *statistic*, *value*,
        *n* and *seed*.
    """
    tables = []
    for seed in seeds:
        places = selected(replace(run.inputs, balance=True), seed)
        scores = selection_scores(run, places, n_resamples=0)
        tables.append(scores[["model", "test", "statistic", "value", "n"]].assign(seed=seed))
    return pandas.concat(tables, ignore_index=True)


def selection_range(run: Run, seeds: Iterable[int] = range(40)) -> pandas.DataFrame:
    """Return what the choice of balanced images can do: the scores' range over selections.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, one row a model, category and statistic: *level* ``balanced selections``;
        *value*, the median, *low* and *high*, the 2.5% and 97.5% quantiles; *n* images.
    """
    drawn = over_selections(run, seeds).dropna(subset="value")
    groups = drawn.groupby(["model", "test", "statistic"], sort=False)
    table = groups["value"].quantile([0.025, 0.5, 0.975]).unstack()
    table = table.set_axis(["low", "value", "high"], axis=1).assign(n=groups["n"].first())
    table = table.reset_index()
    revisions = {label: scored.revision for label, scored in run.scored.items()}
    labels = {"profile": run.inputs.profile, "dataset": run.inputs.dataset, "seed": 0}
    labels |= {"revision": table["model"].map(revisions), "level": "balanced selections"}
    return tidy(table, study=STUDY, **labels)


def reference_models() -> pandas.DataFrame:
    """Return the paper's three imaginary models, in closed form.

    Examples
    --------
    >>> round(float(reference_models().set_index("model").loc["random", "vlbs"]), 2)
    33.33
    """
    names = ("ideal", "random", "biased")
    rows = [(name, *vars(caption_selection.reference_scores(name)).values()) for name in names]
    return pandas.DataFrame(rows, columns=["model", "vlrs", "vlbs", "ivlas"])


def paired_tests(
    run: Run, statistic: str = "vlbs", n_resamples: int = 4_000, seed: int = 0
) -> pandas.DataFrame:
    """Compare every two models on the same images.

    The difference of two percentages, with an interval that resamples triplets and a p-value that
    exchanges the two models within triplets at random; adjusted for the number of pairs (Holm).

    Parameters
    ----------
    run
        What :func:`run` returned.
    statistic
        ``vlrs`` (all images) or ``vlbs`` (anti-stereotypical ones).
    n_resamples, seed
        Of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        *first*, *second*, *difference* in percentage points, *low*, *high*, *p_value*,
        with *p_low* and *p_high*, which enclose it, *adjusted*, *n*, *triplets*. No row where there
        is no image to compare on.

    Raises
    ------
    InputError
        If the statistic is another.
    """
    one_of(statistic, "statistic", ("vlrs", "vlbs"))
    keep = np.ones(len(run.inputs.table), bool) if statistic == "vlrs" else run.inputs.anti
    triplets = run.inputs.table["triplet"][keep]
    units = np.unique(triplets, return_inverse=True)[1]
    shares = {label: _shares(each, statistic)[keep] for label, each in run.scored.items()}
    rows = []
    for first, second in itertools.combinations(shares, 2) if len(units) else ():
        apart = shares[first] - shares[second]
        interval = mean_interval(apart, triplets, n_resamples, seed, limit=1.0)
        test = inference.sign_flip_test(np.bincount(units, apart), rng=seed)
        values = (*(100 * each for each in interval), test.p_value, test.low, test.high)
        rows.append((first, second, *values, len(units), units.max() + 1))
    names = ["first", "second", "difference", "low", "high", "p_value", "p_low", "p_high"]
    table = pandas.DataFrame(rows, columns=[*names, "n", "triplets"])
    adjusted = inference.adjust(table["p_value"], "holm") if len(table) else []
    return table.assign(adjusted=adjusted, statistic=statistic)


def _shares(scored: Scored, statistic: str) -> np.ndarray:
    picked = caption_selection.picks(scored.original, "split", TOLERANCE)
    return picked[:, 0] if statistic == "vlbs" else 1 - picked[:, 2]


# lmss and vlss


def shifts(run: Run, own_scale: bool = False) -> pandas.DataFrame:
    """Return lmss and vlss of every image with neutral captions.

    Parameters
    ----------
    run
        What :func:`run` returned.
    own_scale
        Multiply contrastive cosines by the model's own factor before the softmax. False is the
        paper's: as they are.

    Returns
    -------
    pandas.DataFrame
        One row an image and model: *model*, *row*, *category*, *triplet*, *anti*, *chosen* (the
        stereotype is the highest of the three original captions), *balanced* (of the selection of
        :func:`selected`), *strict* (no neutral caption says a gender), *lmss*, *vlss* (NaN where a
        white image could not be scored), *scale*. No row where no image has neutral captions.
    """
    inputs, tables = run.inputs, [pandas.DataFrame(columns=SHIFTS)]
    every = inputs.table[["category", "triplet"]].assign(
        row=range(len(inputs.table)),
        anti=inputs.anti,
        balanced=_in_selection(inputs),
        strict=strict(inputs),
    )
    for label, scored in run.scored.items():
        kept = np.isfinite(scored.neutral).all(axis=1)
        if not kept.any():
            continue
        scale = scored.scale if own_scale else 1.0
        original, neutral = (
            caption_selection.two_way(scores[kept], scale)
            for scores in (scored.original[:, :2], scored.neutral)
        )
        chosen = caption_selection.picks(scored.original[kept], "split", TOLERANCE)[:, 0] == 1
        values = {"lmss": caption_selection.lmss(original, neutral).values, "vlss": np.nan}
        if np.isfinite(scored.white[kept]).all():
            white = caption_selection.two_way(scored.white[kept], scale)
            values["vlss"] = caption_selection.vlss(neutral, white).values
        tables.append(every[kept].assign(model=label, chosen=chosen, scale=scale, **values))
    return pandas.concat(tables[1:] or tables, ignore_index=True)[SHIFTS]


def shift_scores(
    table: pandas.DataFrame,
    category: str | None = "gender",
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> pandas.DataFrame:
    """Summarise lmss and vlss on the paper's subset, on anti-stereotypical images, and on all.

    The paper's Figure 4 is of the balanced images of gender for which the model picked the
    stereotype. Subsets are ``paper`` (anti-stereotypical images of the balanced selection, the
    stereotype chosen), ``gendered`` (the same, with captions that still say a gender; such images
    are in no other subset), ``chosen`` (all anti-stereotypical images, the stereotype chosen),
    ``anti`` (all anti-stereotypical images) and ``all``.

    Parameters
    ----------
    table
        Of :func:`shifts`.
    category
        ``gender`` is the paper's; None takes all.
    n_resamples, seed
        Of the bootstrap, which resamples triplets.

    Returns
    -------
    pandas.DataFrame
        One row a model, score, subset and statistic (``mean``, ``% positive``): *model*, *test*
        (lmss or vlss), *level* (the subset; ``gendered`` and ``chosen`` only where they differ
        from the paper's), *statistic*, *value*, *low*, *high*, *n*, *method* of the interval. NaN
        where the subset is empty.

    Notes
    -----
    The interval of a mean is Student's, that of a share stays between 0 and 100. One triplet has
    none.
    """
    kept = table if category is None else table[table["category"] == category]
    columns = kept[["anti", "chosen", "balanced", "strict"]].to_numpy(dtype=bool)
    anti, chosen, balanced, neutral = columns.T
    subsets = {"paper": anti & chosen & balanced & neutral}
    subsets |= {} if neutral.all() else {"gendered": anti & chosen & balanced}
    subsets |= {} if balanced.all() else {"chosen": anti & chosen & neutral}
    subsets |= {"anti": anti & neutral, "all": neutral}
    subsets = {name: kept[rows] for name, rows in subsets.items()}
    rows = []
    for label, (subset, part), name in itertools.product(
        dict.fromkeys(table["model"]), subsets.items(), ("lmss", "vlss")
    ):
        of_model = part[(part["model"] == label) & part[name].notna()]
        above = 100.0 * (of_model[name].to_numpy() > TOLERANCE)
        summaries = {"mean": (of_model[name], {}), "% positive": (above, {"within": (0.0, 100.0)})}
        for statistic, (values, scale) in summaries.items():
            bounds = mean_interval(values, of_model["triplet"], n_resamples, seed, **scale)
            method = BOOTSTRAP if np.isfinite(bounds[1]) else "no interval"
            rows.append((label, name, subset, statistic, *bounds, method, len(of_model)))
    names = ["model", "test", "level", "statistic", "value", "low", "high", "method", "n"]
    return pandas.DataFrame(rows, columns=names)


def mean_interval(
    values: Sequence[float],
    triplets: Sequence,
    n_resamples: int,
    seed: int,
    **bounds: Any,
) -> tuple[float, float, float]:
    """Return a mean over images with an interval that draws triplets anew: NaN where it has none.

    Parameters
    ----------
    values, triplets
        One an image.
    n_resamples, seed
        Of the resamples.
    **bounds
        ``within`` or ``limit``, as :func:`biaslib.inference.bootstrap`.
    """
    if not len(values):
        return (np.nan,) * 3
    units = np.unique(triplets, return_inverse=True)[1]
    total, size = np.bincount(units, values), np.bincount(units).astype(float)
    interval = inference.bootstrap(
        lambda weights: (total @ weights) / (size @ weights),
        [len(size)],
        n_resamples=n_resamples,
        rng=seed,
        **bounds,
    )
    return interval.estimate, interval.low, interval.high
