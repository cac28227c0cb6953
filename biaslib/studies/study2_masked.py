r"""Study 2: masked words with and without images (Srinivasan and Bisk 2021), on any model.

A vision-language model and a text-only one fill the masked entity of a caption. What they answer is
kept in a store, so that a killed run goes on where it was; every score is computed from those
log-probabilities by :mod:`biaslib.metrics.masked_lm`.

.. math:: S(E, g) = \ln \frac{P(E \mid g)}{P(E \mid g_N)}, \qquad B(E) = S(E, f) - S(E, m)
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import stats

from biaslib import datasets, inference, models, runtime, stimuli
from biaslib.datasets.problems import problems
from biaslib.errors import CheckpointError
from biaslib.metrics import masked_lm
from biaslib.models import stored
from biaslib.pictures.images import (
    Pictures,
    WithRegions,
    pictures,
    reader_id,
    with_shared_regions,
)
from biaslib.pictures.regions import RegionFeatures
from biaslib.studies import _regions as regions
from biaslib.studies._fetch import Part, fetched, holds, weights
from biaslib.studies._inputs import provided_inputs
from biaslib.studies.scores import Recorded, tidy

__all__ = [
    "AGENTS",
    "ARTICLES",
    "CHAPTER",
    "FEW",
    "NO_IMAGE",
    "SOURCES",
    "TEXT_MODELS",
    "Choices",
    "EntityImages",
    "Inputs",
    "Results",
    "Whole",
    "captions",
    "fetch",
    "inputs",
    "load_models",
    "masked_log_probs",
    "misnaming_rates",
    "paper_inputs",
    "parts",
    "per_image",
    "picture_tests",
    "pictured_entities",
    "readable",
    "recorded",
    "run",
    "scores",
    "shares",
    "tokenizer_problems",
    "top_candidates",
    "whole",
]

AGENTS = ("woman", "man", "person")
"""Who stands in the caption; the last is the paper's neutral agent."""

GENDERS = AGENTS[:2]
"""Who is shown."""

SOURCES = {
    "S_PT": "pre-training",
    "S_L": "language, with the image",
    "S_V": "image",
    "S_L, no image": "language, without an image",
    "S_L, text model": "language, the text-only model",
}
"""Where an association is looked for, and what it is called."""

ARTICLES = ("fitted", "printed")
NO_IMAGE = ("text", "blank")

TEXT_MODELS = {"vl-bert-large": "bert-large"}
"""The text-only model from which a vision-language model began, where it is not BERT base."""

TASTE_MODEL = "visualbert"
"""A taste: another model that began from BERT, in captions alone; not the paper's."""

STUDY = "srinivasan2021"
COLUMNS = ["entity", "gender", "image", "agent", "candidate", "log_p"]

TIED = 1e-9
"""Log-probabilities no further apart than this name two entities."""

FEW = 100
"""Images below which the interval of S(f) or S(m) of S_V can hold less than it says."""

NO_DETECTOR = (CheckpointError, FileNotFoundError, ImportError)
"""Errors of a detector that cannot be had; others are raised."""


@dataclass(frozen=True)
class Choices:
    """What the paper leaves open.

    Parameters
    ----------
    article
        ``fitted``: "wearing an [MASK]" where an apron is asked for, which gives something away;
        ``printed``: "wearing a [MASK]" for every entity that is counted, as in the paper's Table 2.
    no_image
        What stands for no image: ``text``, the caption alone, as the model reads text; ``blank``,
        an empty picture.
    pieces
        How an entity of several word pieces is scored: ``chain`` or ``mean``, see
        :meth:`biaslib.models.bert.Bert.mask_log_prob`. With an empty string such an entity is a
        problem, since the paper does not say what it did.
    among
        Over what the probability is shared: the ``vocabulary``, or the ``candidates``.

    Raises
    ------
    UnknownNameError
        If there is no such choice.

    Examples
    --------
    >>> Choices(no_image="blank").article
    'fitted'
    """

    article: str = "fitted"
    no_image: str = "text"
    pieces: str = ""
    among: str = "vocabulary"

    def __post_init__(self) -> None:
        known = {
            "article": ARTICLES,
            "no_image": NO_IMAGE,
            "pieces": ("", "chain", "mean"),
            "among": ("vocabulary", "candidates"),
        }
        for name, names in known.items():
            if getattr(self, name) not in names:
                raise runtime.unknown_name(f"choice of {name}", getattr(self, name), names)

    @property
    def options(self) -> dict[str, str]:
        """What a model is told; nothing where the choice is its own."""
        options = {"pieces": self.pieces, "among": self.among}
        usual = {"pieces": ("", "chain"), "among": ("vocabulary",)}
        return {name: value for name, value in options.items() if value not in usual[name]}


CHAPTER = Choices(pieces="chain")
"""Those of the chapter, and of a record."""


@dataclass(frozen=True)
class EntityImages:
    """Images of people with entities.

    Attributes
    ----------
    rows
        One row an image: *entity*, *gender* (``woman`` or ``man``), *image* (its name).
    images
        The images themselves, in the same order.
    blank
        One empty picture.
    """

    rows: pandas.DataFrame
    images: Pictures
    blank: Pictures


@dataclass(frozen=True)
class Inputs:
    """What the study asks about, and which models it asks.

    Attributes
    ----------
    profile, dataset
        Of the run, and where its images come from.
    model, text_model
        Options of :func:`biaslib.models.load`: of the vision-language model, and of the text-only
        one from which its training on images began.
    entities
        One row an entity: *entity*, *frame*, *set*, *stereotype*.
    images
        The images, or None for the part of the study that has none.
    seed
        Of the world and of the resampling.
    problems
        What is wrong with the images: see :func:`biaslib.datasets.entity_images`.
    pictured
        The entities that should have images.
    per_agent
        Images of women, and of men, that each of those should have.
    """

    profile: str
    dataset: str
    model: Mapping[str, Any]
    text_model: Mapping[str, Any]
    entities: pandas.DataFrame
    images: EntityImages | None
    seed: int = 0
    problems: pandas.DataFrame = field(default_factory=lambda: problems([]))
    pictured: Sequence[str] = ()
    per_agent: int = 0


@dataclass(frozen=True)
class Results:
    """What came out.

    Attributes
    ----------
    scores
        Tidy scores: see :func:`scores`.
    log_probs
        What the vision-language model answered: see :func:`masked_log_probs`.
    problems
        What was left out, and what a reader should know.
    weights
        Revision by model, for the stamp.
    """

    scores: pandas.DataFrame
    log_probs: pandas.DataFrame
    problems: pandas.DataFrame
    weights: dict[str, str]


@dataclass(frozen=True)
class Whole:
    """The study as it was carried out.

    Attributes
    ----------
    given
        Its inputs.
    models
        The vision-language model and the text-only one.
    results
        What came out.
    """

    given: Inputs
    models: tuple[Any, Any]
    results: Results


# What is asked


def captions(entities: pandas.DataFrame, article: str = "fitted") -> pandas.DataFrame:
    """Return the caption in which each entity is masked, and the verb that it shares with others.

    Parameters
    ----------
    entities
        With the columns *entity* and *frame*.
    article
        See :class:`Choices`.

    Returns
    -------
    pandas.DataFrame
        *entity*; *caption*, with places for ``{agent}`` and a ``[MASK]``; *verb*, the caption
        without its article: entities with the same verb are candidates for the same mask.

    Examples
    --------
    >>> some = stimuli.entities().query("entity in ['apron', 'suit']")
    >>> captions(some, article="printed")["caption"].unique().tolist()
    ['The {agent} is wearing a [MASK].']
    """
    masked = entities["frame"].str.replace("{entity}", "[MASK]", regex=False)
    verbs = masked.str.replace(r" an? \[MASK\]", " [MASK]", regex=True)
    if article == "printed":
        masked = masked.str.replace(" an [MASK]", " a [MASK]", regex=False)
    table = {"entity": entities["entity"], "caption": masked, "verb": verbs}
    return pandas.DataFrame(table).reset_index(drop=True)


def tokenizer_problems(model, entities: Sequence[str], pieces: str = "") -> pandas.DataFrame:
    """Return the entities that a model's tokenizer lacks or splits, as a table of problems.

    They are read behind another word, as they stand in captions. A model without a tokenizer, such
    as the oracle, has none of these.

    Examples
    --------
    >>> bert = models.load("bert", dose=3, seed=0)
    >>> tokenizer_problems(bert, ["purse", "zeppelin"])[["kind", "what"]].values.tolist()
    [['entity is not in the vocabulary', 'zeppelin']]
    """
    tokenizer = getattr(model, "tokenizer", None)
    wrong = []
    for entity in entities if tokenizer is not None else ():
        article, tokens = tokenizer.tokenize("a"), tokenizer.tokenize(f"a {entity}")
        behind = tokens[: len(article)] == article
        tokens = tokens[len(article) :] if behind else tokenizer.tokenize(entity)
        if not tokens or tokenizer.unk_token in tokens:
            wrong.append(("error", "entity is not in the vocabulary", model.name, entity))
        elif len(tokens) > 1:
            what = f"{entity}: {' '.join(tokens)}"
            severity = "note" if pieces else "error"
            wrong.append((severity, "entity splits into word pieces", model.name, what))
    return problems(wrong)


# Inputs

WITHOUT_PICTURES = "S_L and S_V of pictures; captions alone are asked"


def parts(size: str = "full") -> list[Part]:
    """Return what the study reads in ``paper``, of one size: see :func:`fetch`."""
    if size == "taste":
        return [weights(TASTE_MODEL), weights("bert")]
    photographs = "72 photographs, which the authors never released"
    found = [
        weights("vl-bert"),
        weights("bert"),
        Part(photographs, "", 0, WITHOUT_PICTURES, lambda: runtime.data_folder(STUDY)),
    ]
    if holds(STUDY, lambda folder: regions.file_of(folder, "regions") is None):
        found.append(weights("detector", WITHOUT_PICTURES))
    return found


def fetch(size: str | None = None) -> pandas.DataFrame:
    """Download what the study reads in ``paper``, unless it is here already.

    The weights of VL-BERT, which lie on Google Drive, and of BERT, and the detector where there are
    photographs without a file of regions; for a taste the weights of VisualBERT and BERT. Nobody
    can fetch the authors' photographs.

    Parameters
    ----------
    size
        ``full`` or ``taste``; None takes that of the run.

    Returns
    -------
    pandas.DataFrame
        What could not be had: *what*, what the study does *without it*, and the *reason*.

    Raises
    ------
    CheckpointError
        If weights of a model cannot be had; the message names the steps by hand.
    """
    return fetched(parts(runtime.size(size)))


def whole(begun: runtime.Provenance) -> Whole:
    """Carry the study out, in the profile and the size of a run, and note there what it read."""
    given = inputs(begun.profile, size=begun.size, only_sound=True)
    both = load_models(given)
    given = readable(given, both[0])
    results = run(given, *both, CHAPTER)
    begun.record(weights=results.weights, data={"images": given.dataset})
    return Whole(given, both, results)


def recorded(begun: runtime.Provenance, done: Whole | None = None) -> Recorded:
    """Return what goes into the record of a run: of its study as :func:`whole` carries it out."""
    done = done or whole(begun)
    given, scores = done.given, done.results.scores
    images = [] if given.images is None else [given.images.images]
    there = sum(map(len, images))
    asked = max(there, 2 * given.per_agent * len(given.pictured))
    return Recorded([scores, shares(scores)], asked, there, images)


def inputs(profile: str | None = None, **settings: Any) -> Inputs:
    """Return the study's inputs in a profile: the same call for both.

    Parameters
    ----------
    profile
        ``planted`` (:func:`plantedworld.inputs.study2_masked.inputs`) or ``paper``
        (:func:`paper_inputs`); ``None`` takes that of the run.
    **settings
        Of either; what the other profile alone knows is left out.

    Raises
    ------
    UnknownNameError
        If no profile knows a setting.
    """
    return provided_inputs("study2_masked", profile, settings)


def load_models(given: Inputs) -> tuple[Any, Any]:
    """Return the vision-language model of a run and the text-only one."""
    return models.load(**given.model), models.load(**given.text_model)


def readable(given: Inputs, model: Any) -> Inputs:
    """Return inputs without images, and with the reason, if a model lacks the detector for them."""
    if given.images is None:
        return given
    try:
        reader_id(model, given.images.images)
    except NO_DETECTOR as error:
        n = f"{len(given.images.rows)} images"
        why = problems([("error", "the detector is not there", n, str(error))])
        found = pandas.concat([given.problems, why], ignore_index=True)
        return replace(given, dataset="no images", images=None, problems=found)
    return given


def paper_inputs(
    model: str | None = None,
    entities: pandas.DataFrame | None = None,
    per_agent: int = 6,
    folder: str | Path | None = None,
    checkpoint: str | Path | None = None,
    only_sound: bool = False,
    pictured: str | None = "case study",
    size: str | None = None,
) -> Inputs:
    """Return the inputs of a folder of images, and of official checkpoints.

    Parameters
    ----------
    model
        A name of the registry; None takes ``vl-bert``, and for a taste :data:`TASTE_MODEL`. The
        text-only model beside it is the one that it began from: :data:`TEXT_MODELS`, and else BERT.
    entities
        With the columns *entity*, *frame*, *set* and *stereotype*; None takes
        ``entities.csv`` of the folder (:func:`biaslib.stimuli.own_entities`) if there is one, and
        else :func:`biaslib.stimuli.entities`.
    per_agent
        Images of women, and of men, that an entity should have; 0 for none.
    folder
        Of the images (:func:`biaslib.datasets.entity_images`); None takes the folder
        ``srinivasan2021`` of the data folder. Features of regions, where the model reads those,
        are taken from ``regions.safetensors``, ``regions.tsv`` or the folder ``regions`` in it,
        named by the images' paths below it, and else made by the detector.
    checkpoint
        Of the model, instead of the registered source.
    only_sound
        Go on with the images that are sound, as many of women as of men, maybe with none: every
        entity is asked about in captions alone, which need no image.
    pictured
        The set of entities that have images, as in the paper; the others are asked about in
        captions alone. None, or a set that is not there, stands for all.
    size
        ``full`` or ``taste``, which asks in captions alone unless a folder is named; None takes
        that of the run.

    Raises
    ------
    UnknownNameError
        If the registry has no such model.
    DataError
        If images are missing, damaged, there twice or unbalanced, or the file of regions has none
        of an image or others than the model reads, unless told to go on; the message counts them
        by kind.
    FileNotFoundError
        If there is no folder of images, unless told to go on.
    """
    profile = "taste" if runtime.size(size) == "taste" else "paper"
    model = model or (TASTE_MODEL if profile == "taste" else "vl-bert")
    if model not in models.REGISTRY:
        raise runtime.unknown_name("model", model, models.REGISTRY)
    if profile == "taste" and folder is None:
        entities, per_agent = stimuli.entities() if entities is None else entities, 0
    folder = _image_folder(folder, only_sound or not per_agent)
    if entities is None:
        own = folder / "entities.csv"
        entities = stimuli.own_entities(own) if own.is_file() else stimuli.entities()
    asked = {"name": model, "profile": "paper", "checkpoint": checkpoint}
    text = {"name": TEXT_MODELS.get(model, "bert"), "profile": "paper"}
    if not per_agent:
        return Inputs(profile, "no images", asked, text, entities, None)
    wanted = tuple(pictured_entities(entities, pictured))
    manifest, found = datasets.entity_images(folder, wanted, per_agent)
    path = regions.file_of(folder, "regions") if models.REGISTRY[model].features else None
    if path is not None:
        why = manifest["image"].map(regions.unusable(path, manifest["image"]))
        lost = manifest.assign(why=why)[why.notna()]
        lacking = [
            ("error", "regions cannot be used", f"{row.entity}, {row.gender}", row.why)
            for row in lost.itertuples()
        ]
        found = pandas.concat([found, problems(lacking)], ignore_index=True)
        manifest = manifest[why.isna()]
    datasets.require_sound(found, f"the image set {folder}", only_sound)
    images, name = _entity_images(datasets.balanced_images(manifest), path), folder.name
    name = name if images else "no images"
    return Inputs(profile, name, asked, text, entities, images, 0, found, wanted, per_agent)


def _entity_images(manifest: pandas.DataFrame, path: Path | None) -> EntityImages | None:
    """Return image files, with their regions where there is a file of them."""
    if manifest.empty:
        return None
    images = pictures(manifest["path"].tolist())
    if path is not None:
        images = regions.with_regions(images, path, manifest["image"].tolist())
    return EntityImages(manifest[["entity", "gender", "image"]], images, _blank())


def _image_folder(folder: str | Path | None, only_sound: bool) -> Path:
    """Return the folder of the images, which has to be named or there unless told to go on."""
    if folder is not None:
        return Path(folder)
    try:
        return runtime.data_folder(STUDY)
    except FileNotFoundError as error:
        if only_sound:
            return Path(STUDY)
        raise FileNotFoundError(
            f"{error}. To go on with captions alone, pass only_sound=True"
        ) from error


def pictured_entities(entities: pandas.DataFrame, chosen: str | None) -> list[str]:
    """Return the entities of a set; those of all sets where it is None, or not there."""
    of_set = entities["set"] == chosen
    return entities.loc[of_set if of_set.any() else slice(None), "entity"].tolist()


def _blank() -> Pictures:
    """Return an empty picture, of which no region is real, so that none is looked at."""

    def read(rows: Sequence[int]) -> RegionFeatures:
        n = len(rows)
        whole, none = np.tile([0.0, 0.0, 1.0, 1.0], (n, 1, 1)), np.zeros((n, 1), bool)
        features = np.zeros((n, 1, regions.WIDTH), np.float32)
        return RegionFeatures(features, whole, none, none, np.full((n, 2), 64))

    return WithRegions([np.full((224, 224, 3), 255, np.uint8)], read, "no regions")


# Log-probabilities


def masked_log_probs(
    model,
    entities: pandas.DataFrame,
    images: EntityImages | None = None,
    choices: Choices = Choices(),
    store: runtime.Store | None = None,
    shard_size: int = 64,
) -> pandas.DataFrame:
    """Return what a model answers: log P(candidate) for every caption, with and without images.

    Every entity with the same verb is a candidate for the same mask, so that it can be seen which
    of them a model prefers. A row of the store is an image in a caption: the three agents and all
    candidates at once, so that an image is read once.

    Parameters
    ----------
    model
        Anything with ``mask_log_prob``.
    entities
        With the columns *entity* and *frame*.
    images
        None for captions alone.
    choices
        What the paper leaves open.
    store
        None takes the usual one.
    shard_size
        Images that a kill may lose.

    Returns
    -------
    pandas.DataFrame
        *entity*, which the image shows, or whose caption stands alone; *gender*, whom the image
        shows, and *image*, its name: both empty for a caption alone; *agent*, in the caption;
        *candidate*; *log_p*, its natural logarithm.
    """
    if images is not None:
        images = replace(images, images=with_shared_regions(model, images.images))
    parts = []
    for _, group in captions(entities, choices.article).groupby("verb", sort=False):
        candidates = group["entity"].tolist()
        for caption, members in group.groupby("caption", sort=False):
            ask = functools.partial(_stored, model, caption, candidates, choices, store, shard_size)
            blank = images is not None and choices.no_image == "blank"
            alone = ask(images=images.blank) if blank else ask(texts=["no image"])
            rows = members[["entity"]].assign(gender="", image="")
            parts.append(_long(rows, np.repeat(alone, len(rows), axis=0), candidates))
            if images is None:
                continue
            shown = np.flatnonzero(images.rows["entity"].isin(members["entity"]))
            if len(shown):
                log_p = ask(images=images.images.part(shown))
                parts.append(_long(images.rows.iloc[shown], log_p, candidates))
    return pandas.concat(parts, ignore_index=True)


def _stored(model, caption, candidates, choices, store, shard_size, **items: Any) -> np.ndarray:
    """Return the log-probabilities of one caption, (items, agents, candidates), from the store."""

    def ask(which: list[int], images: Any) -> np.ndarray:
        of_agents = [
            model.mask_log_prob(
                [caption.format(agent=agent)] * len(which), candidates, images, **choices.options
            )
            for agent in AGENTS
        ]
        return np.stack(of_agents, axis=1)

    return stored.cached_outputs(
        model,
        "masked words",
        ask,
        **items,
        store=store,
        shard_size=shard_size,
        caption=caption,
        agents=AGENTS,
        candidates=candidates,
        **choices.options,
    )


def _long(rows: pandas.DataFrame, log_p: np.ndarray, candidates: list[str]) -> pandas.DataFrame:
    """Return (n, agents, candidates) as one row a number."""
    n_agents, n_candidates = log_p.shape[1:]
    repeated = rows.iloc[np.repeat(np.arange(len(rows)), n_agents * n_candidates)]
    return repeated.reset_index(drop=True).assign(
        agent=np.tile(np.repeat(AGENTS, n_candidates), len(rows)),
        candidate=np.tile(candidates, len(rows) * n_agents),
        log_p=log_p.reshape(-1),
    )[COLUMNS]


# Scores

ADVICE = (
    'An entity that splits can be asked for piece by piece: pass Choices(pieces="chain"). For any '
    "other, choose another word, or pass only_sound=True to go on without those entities"
)


def run(
    inputs: Inputs,
    model: Any,
    text_model: Any,
    choices: Choices = Choices(),
    only_sound: bool = False,
    store: runtime.Store | None = None,
    n_resamples: int = 1000,
    shard_size: int = 64,
) -> Results:
    """Ask both models, and score every entity.

    Parameters
    ----------
    inputs
        Of :func:`inputs`.
    model, text_model
        Anything with ``mask_log_prob``, such as what :func:`load_models` returns.
    choices
        What the paper leaves open.
    only_sound
        Go on without the entities that a tokenizer lacks, or splits without a choice of what to do.
    store, shard_size
        As of :func:`masked_log_probs`.
    n_resamples
        Of images, for the intervals; 0 for none.

    Raises
    ------
    DataError
        If a tokenizer lacks or splits an entity, unless told to go on; the message names it.
    """
    names = inputs.entities["entity"].tolist()
    checked = [tokenizer_problems(each, names, choices.pieces) for each in (model, text_model)]
    wrong = pandas.concat(checked)
    datasets.require_sound(wrong, "the list of entities", only_sound, ADVICE)
    entities = sound_entities(inputs.entities, wrong)
    log_probs = masked_log_probs(model, entities, inputs.images, choices, store, shard_size)
    of_text = masked_log_probs(text_model, entities, None, choices, store, shard_size)
    table = scores(log_probs, of_text, entities, n_resamples, inputs.seed)
    is_text = table["level"] == "S_L, text model"
    labels = {"study": STUDY, "profile": inputs.profile, "dataset": inputs.dataset}
    labels["model"] = np.where(is_text, text_model.name, model.name)
    labels["revision"] = np.where(is_text, text_model.revision, model.revision)
    weights = {each.name: each.revision for each in (model, text_model)}
    wrong = pandas.concat([inputs.problems, *checked], ignore_index=True)
    return Results(tidy(table, **labels), log_probs, wrong, weights)


def sound_entities(entities: pandas.DataFrame, wrong: pandas.DataFrame) -> pandas.DataFrame:
    """Return the entities without errors among the problems of :func:`tokenizer_problems`."""
    errors = wrong.loc[wrong["severity"] == "error", "what"]
    names = {what.split(":")[0] for what in errors}
    left = entities[~entities["entity"].isin(names)].reset_index(drop=True)
    if left.empty:
        raise datasets.DataError(
            f"none of the {len(entities)} entities is left: {', '.join(sorted(names)[:5])} are "
            "missing from a tokenizer or split by it; choose other words, or choose pieces"
        )
    return left


def scores(
    log_probs: pandas.DataFrame,
    of_text: pandas.DataFrame,
    entities: pandas.DataFrame,
    n_resamples: int = 1000,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return the association and bias scores of every entity, from what two models answered.

    Parameters
    ----------
    log_probs, of_text
        Those of the vision-language model and of the text-only one: :func:`masked_log_probs`.
    entities
        With the columns *entity*, *set* and *stereotype*.
    n_resamples
        Of images, women's and men's apart, for the intervals; 0 for none.
    seed
        Of the resampling.

    Returns
    -------
    pandas.DataFrame
        One row a number: *test*, the entity; *level*, one of :data:`SOURCES`; *statistic*,
        ``S(f)``, ``S(m)`` or ``B``; *value*, *low*, *high*, *p_value* (empty); *n*, the images it
        rests on, or 1 caption; *seed*; *probability*, of the entity with the gendered agent, and
        *normaliser*, without (means over images; empty for B); *set* and *stereotype*; *few*,
        whether it is S(f) or S(m) of S_V from fewer than :data:`FEW` images: where their
        probabilities differ by much, a few of them carry the mean, and its 95% interval holds in
        88 to 92% (:ref:`the table of levels <levels>`).
    """
    own, text = _own_log_p(log_probs), _own_log_p(of_text)
    rows = []
    for entity in entities.itertuples():
        own_seed = [seed, *entity.entity.encode()]  # whatever the order of the entities
        labels = {"test": entity.entity, "set": entity.set, "stereotype": entity.stereotype}
        biases = _biases(own.loc[entity.entity], text.loc[entity.entity])
        for level, (bias, resampling) in biases.items():
            labels |= {"level": level, "seed": seed}
            rows += [labels | row for row in _rows(bias, resampling, n_resamples, own_seed)]
    table = pandas.DataFrame(rows)
    of_pictures = (table["level"] == "S_V") & (table["statistic"] != "B")
    return table.assign(few=of_pictures & (table["n"] < FEW))


def _own_log_p(log_probs: pandas.DataFrame) -> pandas.DataFrame:
    """Return log P of the entity itself: rows entity, gender, image; columns agents."""
    own = log_probs[log_probs["candidate"] == log_probs["entity"]]
    index = ["entity", "gender", "image"]
    return own.pivot(index=index, columns="agent", values="log_p").sort_index()


Resampling = dict[str, tuple[Callable, tuple[int, ...]]]
"""By score (f, m or B), what takes weights of images, and how many images there are of whom."""


def _biases(own: pandas.DataFrame, text: pandas.DataFrame) -> dict[str, tuple]:
    """Return by source the bias score of an entity, and how its images are resampled."""
    alone, before = own.loc[("", "")], text.loc[("", "")]

    def without_images(score: Callable, log_p: pandas.Series, *below: Any) -> tuple:
        f, m = (score(log_p[g], below[at]) for at, g in enumerate(GENDERS))
        return masked_lm.bias_score(f=f, m=m), {}

    language = masked_lm.language_association
    biases = {
        "S_PT": without_images(masked_lm.pretraining_shift, alone, *before[list(GENDERS)]),
        "S_L, no image": without_images(language, alone, *[alone["person"]] * 2),
        "S_L, text model": without_images(language, before, *[before["person"]] * 2),
    }
    if not set(GENDERS) <= set(own.index.get_level_values("gender")):
        return biases
    women, men = (own.loc[gender] for gender in GENDERS)
    both, sizes = pandas.concat([women, men]), (len(women), len(men))
    f, m = (language(both[gender], both["person"]) for gender in GENDERS)
    bias = masked_lm.bias_score(f=f, m=m)
    joined = {"f": f, "m": m, "B": bias}
    biases["S_L"] = bias, {name: (_of_both(each), sizes) for name, each in joined.items()}
    f, m = (masked_lm.visual_association(g["person"], alone["person"]) for g in (women, men))
    bias = masked_lm.bias_score(f=f, m=m)
    apart = {"f": (f.reweighted, sizes[:1]), "m": (m.reweighted, sizes[1:])}
    biases["S_V"] = bias, apart | {"B": (bias.reweighted, sizes)}
    return biases


def _of_both(score: masked_lm.AssociationScore | masked_lm.BiasScore) -> Callable:
    return lambda women, men: score.reweighted(np.concatenate([women, men]))


def _rows(bias: masked_lm.BiasScore, resampling: Resampling, n_resamples: int, seed) -> list[dict]:
    """Return three rows: both agents, and their difference."""
    n = bias.f.n + bias.m.n if bias.f.name == "S_V" else bias.f.n
    rows = [{"statistic": "B", "value": bias.score, "n": n}]
    for name, score in (("m", bias.m), ("f", bias.f)):
        row = {"statistic": f"S({name})", "value": score.score, "n": score.n}
        row["probability"] = float(score.probabilities.mean())
        row["normaliser"] = float(np.exp(score.log_normaliser).mean())
        rows.insert(0, row)
    if resampling and n_resamples:
        for row, name in zip(rows, "fmB", strict=True):
            statistic, sizes = resampling[name]
            rng = np.random.default_rng(seed)
            interval = inference.bootstrap(statistic, sizes, n_resamples=n_resamples, rng=rng)
            row |= {"low": interval.low, "high": interval.high}
    empty = dict.fromkeys(("low", "high", "p_value", "probability", "normaliser"), np.nan)
    return [empty | row for row in rows]


def per_image(log_probs: pandas.DataFrame) -> pandas.DataFrame:
    """Return what each image adds to the scores of its entity.

    Returns
    -------
    pandas.DataFrame
        One row an image: *entity*, *gender*, *image*; *S_L(f)*, *S_L(m)* and *S_V*, its log
        ratios; *probability*, of the entity with "person", and *no image*, without the image.
    """
    log_p = _own_log_p(log_probs).reset_index()
    alone = log_p[log_p["image"] == ""].set_index("entity")["person"]
    shown = log_p[log_p["image"] != ""]
    without = shown["entity"].map(alone).astype(float)
    table = shown[["entity", "gender", "image"]].rename_axis(columns=None)
    table["S_L(f)"] = shown["woman"] - shown["person"]
    table["S_L(m)"] = shown["man"] - shown["person"]
    table["S_V"] = shown["person"] - without
    table["probability"] = np.exp(shown["person"])
    table["no image"] = np.exp(without)
    return table.reset_index(drop=True)


def picture_tests(log_probs: pandas.DataFrame) -> pandas.DataFrame:
    r"""Test, for each entity, whether the gender in the picture matters: images are the units.

    The images of women and of men are relabelled in every way that there is, and the absolute
    difference of their mean probabilities is compared,

    .. math:: \Bigl| \operatorname{mean}_{I \in I_f} P_{VL}(E \mid I)
              - \operatorname{mean}_{I \in I_m} P_{VL}(E \mid I) \Bigr|,

    which is 0 where the bias score of ``S_V`` is. The paper has no test.

    Returns
    -------
    pandas.DataFrame
        One row an entity with images of both: *entity*; *n* images; *p_value*, two-sided, with
        *p_low* and *p_high*, which enclose it; *p_holm*, corrected for the number of entities.
    """
    rows = []
    for entity, images in per_image(log_probs).groupby("entity", sort=False):
        women, men = (images.loc[images["gender"] == g, "probability"] for g in GENDERS)
        if len(women) and len(men):
            test = inference.permutation_test(women, men, alternative="two-sided", rng=0)
            rows.append((entity, len(images), test.p_value, test.low, test.high))
    table = pandas.DataFrame(rows, columns=["entity", "n", "p_value", "p_low", "p_high"])
    adjusted = inference.adjust(table["p_value"], "holm") if len(table) else []
    return table.assign(p_holm=adjusted)


def shares(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return the two shares of the paper's section 5, with intervals.

    "Agrees with the label": entities whose B without an image has the sign of the stereotype, for
    the vision-language model and for the text-only one; only entities with a label count.
    "Towards men": entities whose B is lower than under the text-only model; that difference is
    the B of ``S_PT``.

    Parameters
    ----------
    scores
        Of :func:`run`.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, one row a share and set of entities (and ``"all"``), which is the *test*;
        *low*, *high* (Clopper and Pearson), *p_value* (two-sided binomial test against one half)
        rest on *n* entities; *count*.
    """
    bias, rows = scores[scores["statistic"] == "B"], []
    for name, group in [("all", bias), *bias.groupby("set", sort=False)]:
        for level in ("S_L, no image", "S_L, text model"):
            labelled = group[(group["level"] == level) & (group["stereotype"] != "")]
            expected = labelled["stereotype"].map({"women": 1, "men": -1})
            agrees = np.sign(labelled["value"]) == expected
            rows.append(_share(name, level, "agrees with the label", agrees))
        shifted = group.loc[group["level"] == "S_PT", "value"] < 0
        rows.append(_share(name, "S_PT", "towards men", shifted))
    table = pandas.DataFrame(rows)
    names = ["study", "model", "revision", "profile", "dataset", "seed"]
    of_level = bias.drop_duplicates("level")[["level", *names]]
    return tidy(table.merge(of_level, on="level", validate="m:1"))


def _share(name: str, level: str, statistic: str, hits: pandas.Series) -> dict:
    count, n = int(hits.sum()), len(hits)
    labels = {"test": name, "level": level, "statistic": statistic, "count": count, "n": n}
    if not n:
        return labels | dict.fromkeys(("value", "low", "high", "p_value"), np.nan)
    interval = inference.proportion_interval(count, n)
    p_value = float(stats.binomtest(count, n).pvalue)
    bounds = {"value": count / n, "low": interval.low, "high": interval.high}
    return labels | bounds | {"p_value": p_value}


def top_candidates(log_probs: pandas.DataFrame, entities: pandas.DataFrame) -> pandas.DataFrame:
    """Return what a model names where the picture shows an entity: the logic of Table 3.

    The caption says "person". Of the entities with the same verb, the most probable one is what
    the model names.

    Returns
    -------
    pandas.DataFrame
        One row an image, or several where names tie: *entity*, *gender*, *image*; *named*; *shown
        probability* and *named probability*; *wrong*, whether they differ; *fits the gender*, for a
        wrong name, whether its stereotype is that of the gender in the picture (None where it has
        no label); *share*, 1 over the names that tie.
    """
    neutral = log_probs[(log_probs["agent"] == "person") & (log_probs["image"] != "")]
    keys = ["entity", "gender", "image"]
    most = neutral.groupby(keys, sort=False)["log_p"].transform("max")
    first = neutral[neutral["log_p"] >= most - TIED]
    own = neutral[neutral["candidate"] == neutral["entity"]]
    table = own[[*keys, "log_p"]].merge(
        first[[*keys, "candidate", "log_p"]], on=keys, suffixes=("", "_named"), validate="1:m"
    )
    wrong = table["candidate"] != table["entity"]
    labels = entities.set_index("entity")["stereotype"].map({"women": "woman", "men": "man"})
    of_named = table["candidate"].map(labels)
    fits = (of_named == table["gender"]).astype(object).where(wrong & of_named.notna(), None)
    columns = {
        "named": table["candidate"],
        "shown probability": np.exp(table["log_p"]),
        "named probability": np.exp(table["log_p_named"]),
        "wrong": wrong,
        "fits the gender": fits,
        "share": 1.0 / table.groupby(keys)["candidate"].transform("size"),
    }
    return table[keys].join(pandas.DataFrame(columns))


def misnaming_rates(named: pandas.DataFrame, seed: int = 0) -> pandas.DataFrame:
    """Return how often the wrong entity is named, and how often the wrong name fits the gender.

    What misleads a model about an entity misleads it in all its images. So the entity is the unit:
    the interval draws entities anew, and the test exchanges wrong and right within an entity.

    Parameters
    ----------
    named
        Of :func:`top_candidates`; without *share*, each row counts once.
    seed
        Of the resamples.

    Returns
    -------
    pandas.DataFrame
        *statistic*, *value*; *low*, *high* (:func:`biaslib.inference.bootstrap`; NaN of one
        entity); *p_value* (against one half, :func:`biaslib.inference.sign_flip_test`); *count*
        of *n* images, of so many *entities*.
    """
    named = named if "share" in named else named.assign(share=1.0)
    wrong = named[named["wrong"].astype(bool) & named["fits the gender"].notna()]
    asked = {
        "names another entity": (named, "wrong"),
        "the wrong name fits the gender": (wrong, "fits the gender"),
    }
    return pandas.DataFrame([{"statistic": n} | _rate(*of, seed) for n, of in asked.items()])


def _rate(rows: pandas.DataFrame, column: str, seed: int) -> dict:
    """Return how often a column is true, entities being the units."""
    hits, share = rows[column].to_numpy(dtype=float), rows["share"].to_numpy()
    units, entities = pandas.factorize(rows["entity"], sort=True)
    count, size = np.bincount(units, hits * share), np.bincount(units, share)
    row = dict.fromkeys(("value", "low", "high", "p_value"), np.nan)
    if len(rows):
        found = inference.bootstrap(
            lambda drawn: (count @ drawn) / (size @ drawn), [len(size)], (0.0, 1.0), rng=seed
        )
        row |= {"value": found.estimate, "low": found.low, "high": found.high}
        row["p_value"] = inference.sign_flip_test(count - size / 2, rng=seed).p_value
    # Whole numbers, but where names tie.
    n, k = (int(x) if x.is_integer() else x for x in (size.sum().round(6), count.sum().round(6)))
    return row | {"n": n, "count": k, "entities": len(entities)}
