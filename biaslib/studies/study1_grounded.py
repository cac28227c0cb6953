"""Study 1: grounded association tests (Ross, Katz and Barbu 2021), on any model that embeds.

A test is six sets of texts with images. The profile ``planted`` takes them from a planted world,
:func:`image_stimuli` from images on this disk; :func:`run` embeds them once for each masking and
scores every experiment, with the p-value of the paper and with those that respect what moves
together: the words, or the pictures.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import stats

from biaslib import datasets, inference, runtime, stimuli
from biaslib.datasets import GroundedTest
from biaslib.datasets._problems import problems
from biaslib.metrics.association import cosines
from biaslib.metrics.grounded import GroundedResult, grounded
from biaslib.models.images import Pictures, pictures, with_shared_regions
from biaslib.models.stored import answers
from biaslib.runtime import progress, unknown_name
from biaslib.studies import _study1_files as files
from biaslib.studies import _study1_regions as regions
from biaslib.studies import _study1_released as released
from biaslib.studies._inputs import provided_inputs
from biaslib.studies._study1_files import RELEASED, SETS
from biaslib.studies.scores import tidy

__all__ = [
    "DOMAINS",
    "EXPERIMENTS",
    "LEVELS",
    "MASKINGS",
    "MODELS",
    "SETS",
    "UNITS",
    "VARIANTS",
    "EmbeddedSets",
    "GroundedStimuli",
    "Inputs",
    "averaged",
    "checkpoint",
    "embed",
    "image_stimuli",
    "inputs",
    "numerator",
    "run",
    "run_each",
    "score",
    "score_released",
    "tests",
]

STUDY = "ross2021"

MODELS = ("visualbert", "vilbert", "lxmert", "vl-bert")
"""The models of the paper, in the order of its Table 4."""

LEVELS = ("word", "sentence", "contextual")
EXPERIMENTS = (1, 2, 3)
MASKINGS = ("none", "words", "persons")
"""What is hidden: nothing; the test's words in the text; the people in the picture.

The paper also hides regions that bear the name of one of the test's words; here people alone.
"""

VARIANTS = ("paper", "released")
"""The study as the paper describes it, and as its authors' released code runs it.

``released``: states, lengths, masks and regions of :mod:`biaslib.models.released`, statistics of
:func:`score_released`; :func:`biaslib.published.released_differences` lists what differs.
"""

DOMAINS = ("out of domain", "in domain")
"""Other pictures than those of the training, and pictures like them."""

IN_DOMAIN = {"visualbert": "coco", "lxmert": "coco", "vilbert": "concap", "vl-bert": "concap"}
"""The released set that plays each model's own pictures."""

UNITS = ("texts", "words")
"""What a p-value can count: every text with an image, as the paper does, or the target words."""

FLAT = 1e-9
"""Range of scores below which they count as equal: what rounding leaves of a difference of 0."""

SHARD = 256
"""Embeddings that a kill may lose."""


@dataclass(frozen=True)
class GroundedStimuli:
    """The stimuli of one test at one level.

    ``rows`` has one row a text with its image: *set* (one of the six), *text*, *word* and *image*,
    its place in ``images``, which several tests share. ``hidden`` are the words that Experiment 3
    hides.
    """

    test: str
    level: str
    rows: pandas.DataFrame
    images: Pictures
    hidden: tuple[str, ...]


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


def tests() -> pandas.DataFrame:
    """Return the 13 tests of the study, in the order of the paper's tables: gender before race.

    Returns
    -------
    pandas.DataFrame
        *test*, *title*, *group* (``gender`` or ``race``, as in Table 7).

    Examples
    --------
    >>> tests()["group"].value_counts().to_dict()
    {'race': 7, 'gender': 6}
    """
    known = stimuli.association_tests(study1=True).rename(columns={"name": "test"})
    group = known["kind"].where(known["kind"] == "gender", "race")
    ordered = known.assign(group=group).sort_values("group", kind="stable")
    return ordered[["test", "title", "group"]].reset_index(drop=True)


def image_stimuli(
    found: Iterable[tuple[GroundedTest, pandas.DataFrame]],
    levels: Sequence[str] = LEVELS,
) -> list[GroundedStimuli]:
    """Return tests with images on this disk.

    Parameters
    ----------
    found
        Tests from :func:`biaslib.datasets.grounded_test` or :func:`biaslib.datasets.user_test`,
        each with its sound rows from :func:`biaslib.datasets.images_of`.
    levels
        Which; a level that a test does not have is left out. ``contextual`` leaves out captions
        that carry none of the words.

    Raises
    ------
    ValueError
        If one of the six sets of a test is empty; the message names test and sets.
    """
    found = list(found)
    paths = pandas.concat([pairs[["path"]] for _, pairs in found])
    paths = paths.assign(path=paths["path"].map(str)).drop_duplicates("path", ignore_index=True)
    images = pictures(paths["path"].tolist())
    place = pandas.Series(paths.index, index=paths["path"])
    return [
        _with_images(test, pairs, level, images, place)
        for level in levels
        for test, pairs in found
        if level in test.levels
    ]


def _with_images(test, pairs, level, images, place) -> GroundedStimuli:
    kept = files.of_level(pairs, level)
    empty = files.empty_sets(kept)
    if empty:
        raise ValueError(
            f"the test {test.name} has no image left in {', '.join(empty)} at the level {level}; "
            "add images, or leave the test out"
        )
    columns = {"text": kept["caption"], "image": place[kept["path"].map(str)].to_numpy()}
    # A caption without a word is a unit of its own: such captions share no word.
    columns["word"] = kept["word"].where(kept["word"] != "", kept["caption"])
    rows = kept[["set"]].assign(**columns)[["set", "word", "text", "image"]]
    rows = rows.reset_index(drop=True)
    name = RELEASED.get(test.name, test.name)
    return GroundedStimuli(name, level, rows, images, test.contextual_words)


def embed(
    model,
    every: Sequence[GroundedStimuli],
    masking: str = "none",
    with_images: bool = True,
    store: runtime.Store | None = None,
    variant: str = "paper",
    **options: Any,
) -> list[EmbeddedSets]:
    """Embed the sets of tests, each text with its image once; what is stored is not run again.

    Parameters
    ----------
    model
        One that embeds texts with images (:mod:`biaslib.models.capabilities`); a text encoder with
        ``with_images=False``.
    every
        The stimuli, which share their images.
    masking
        One of :data:`MASKINGS`.
    with_images
        False gives the model the texts alone: the ungrounded baseline.
    store
        Where embeddings are kept; ``None`` takes the usual one.
    variant
        One of :data:`VARIANTS`.
    **options
        Passed on to the model's ``embed``; ``released`` takes none.

    Raises
    ------
    UnknownNameError
        If there is no such masking or variant.
    CapabilityError, ValueError
        If the released code does not read the model, or not so: see
        :func:`biaslib.models.released.reader`.
    """
    if masking not in MASKINGS:
        raise unknown_name("masking", masking, MASKINGS)
    if _is_released(variant):
        from biaslib.models.released import reader

        model = reader(model)
    kind = _ReleasedEmbedder if _is_released(variant) else _Embedder
    shown = with_shared_regions(model, every[0].images) if with_images else None
    embedder = kind(model, masking, with_images, shown, store, options)
    groups: dict[tuple, list[int]] = {}
    for at, sets in enumerate(every):
        groups.setdefault((sets.level, embedder.hidden(sets)), []).append(at)
    found: list[EmbeddedSets | None] = [None] * len(every)
    for places in groups.values():
        for at, embedded in zip(places, embedder([every[at] for at in places]), strict=True):
            found[at] = embedded
    return found


@dataclass(frozen=True)
class _Embedder:
    """Embeds stimuli of one level that hide the same words."""

    model: Any
    masking: str
    with_images: bool
    shown: Pictures | None
    store: runtime.Store | None
    options: dict[str, Any]

    def hidden(self, sets: GroundedStimuli) -> tuple[str, ...]:
        return sets.hidden if self.masking == "words" else ()

    def __call__(self, every: list[GroundedStimuli]) -> Iterable[EmbeddedSets]:
        rows = pandas.concat([sets.rows for sets in every], ignore_index=True)
        level, places = every[0].level, rows["image"].to_numpy()
        word = rows["word"] if level == "contextual" else ""
        vectors = answers(
            self.model,
            "grounded embedding",
            functools.partial(self.ask, every[0], rows),
            texts=(rows["text"] + "\x1f" + word).tolist(),
            images=self.shown.part(places) if self.with_images else None,
            store=self.store,
            shard_size=max(SHARD, 4 * getattr(self.model, "batch_size", 0)),
            level=level,
            masking=self.masking,
            hidden=list(self.hidden(every[0])),
            **self.options,
        )
        ends = np.cumsum([len(sets.rows) for sets in every])[:-1]
        for sets, part in zip(every, np.split(vectors, ends), strict=True):
            yield _split(sets, part.astype(float), self.masking)

    def ask(self, sets: GroundedStimuli, rows: pandas.DataFrame, which: list[int], images: Any):
        wanted, options = rows.iloc[which], dict(self.options)
        if self.masking != "none":
            from biaslib.models.fusion import Mask

            options["mask"] = Mask(self.hidden(sets), persons=self.masking == "persons")
        if images is not None:
            options["images"] = images
        if sets.level == "contextual":
            options["words"] = wanted["word"].tolist()
        return self.model.embed(wanted["text"].tolist(), level=sets.level, **options)


class _ReleasedEmbedder(_Embedder):
    """As the released code: it needs the test's words to find places and labels, too."""

    def hidden(self, sets: GroundedStimuli) -> tuple[str, ...]:
        asked = self.masking != "none" or sets.level == "contextual"
        return sets.hidden if asked else ()

    def ask(self, sets: GroundedStimuli, rows: pandas.DataFrame, which: list[int], images: Any):
        texts = rows.iloc[which]["text"].tolist()
        options = {"words": self.hidden(sets), "masking": self.masking, **self.options}
        return self.model.embed(texts, images, sets.level, **options)


def _is_released(variant: str) -> bool:
    if variant not in VARIANTS:
        raise unknown_name("variant", variant, VARIANTS)
    return variant == "released"


def _split(sets: GroundedStimuli, vectors: np.ndarray, masking: str) -> EmbeddedSets:
    word, image = sets.rows["word"].to_numpy(), np.array(sets.images.ids)[sets.rows["image"]]
    of_set = {name: (sets.rows["set"] == name).to_numpy() for name in SETS}
    parts = [
        {name: column[here] for name, here in of_set.items()} for column in (vectors, word, image)
    ]
    return EmbeddedSets(sets.test, sets.level, masking, *parts)


def score(
    sets: EmbeddedSets,
    experiment: int,
    n_bootstrap: int = 500,
    seed: int = 0,
    p_values: bool = True,
    units: str = "texts",
) -> dict[str, object]:
    """Return one row of scores of an experiment.

    The p-values of Experiments 1 and 2 relabel targets. They are one-sided and computed to a
    relative error of 5% where less would take long; *p_low* and *p_high* enclose *p_value*,
    which counts *units*: by default every text with an image, as the released code does.
    *p_value_words* and *p_value_images* keep together what shares a target word, or a picture.
    Experiment 3 has one p-value, in all three: that of :func:`biaslib.inference.exchange_test`,
    which exchanges attribute words with all their texts and pictures. It is sampled where there are
    more than 200,000 exchanges, and NaN where none is possible.

    Parameters
    ----------
    sets
        Embedded stimuli.
    experiment
        1, 2 or 3.
    n_bootstrap
        Resamples of target and attribute words for the interval; 0 leaves it out.
    seed
        Of the resamples and of sampled p-values.
    p_values
        Whether they are wanted.
    units
        What *p_value* and *n* count: ``texts``, every text with an image, or ``words``, the target
        words.

    Returns
    -------
    dict
        *value* (effect size; NaN where the scores have no spread), *low* and *high* (95%,
        target and attribute words resampled; of Experiment 3 see
        :func:`_interval_of_size`), *numerator* (what the
        effect size divides by the spread), *p_value* with *p_low*, *p_high* and *p_method*,
        *p_value_words* with *p_low_words* and *p_high_words*, *p_value_images* (NaN where a picture
        is in both target sets),
        *p_value_attributes* (of Experiment 2, words as units: a relabelled target takes the
        attribute images of its new label), *n* (the units), *n_words*, *n_images* of the targets.

    Raises
    ------
    UnknownNameError
        If there are no such units.
    """
    if units not in UNITS:
        raise unknown_name("kind of units", units, UNITS)
    row = _described(sets, experiment, seed)
    if units == "words":
        row["n"] = row["n_words"]
    result = _defined(sets, experiment)
    if result is None:
        return row | {"value": np.nan, "numerator": 0.0, "low": np.nan, "high": np.nan}
    if experiment == 3:
        low, high = _interval_of_size(sets, result, n_bootstrap, seed)
    else:
        low, high = _interval(sets, experiment, _words, n_bootstrap, seed)
    found = {"value": result.effect_size, "low": low, "high": high, "numerator": numerator(result)}
    if not p_values:
        return row | found
    if experiment == 3:
        return row | found | _p_of_exchange(result, sets, seed)
    return row | found | _p_values(result, sets, units, seed)


def score_released(
    cases: Sequence[tuple[EmbeddedSets, int]],
    seed: int = 0,
    p_values: bool = True,
    n_bootstrap: int = 0,
) -> list[dict[str, object]]:
    """Return the rows of scores of some experiments as the released code computes them.

    One row each; of Experiment 3 two, a signed effect size for each target set, in the column
    *statistic*. *p_value* is one-sided, takes every text with an image as a unit, and is sampled:
    99,999 shuffles and one for the order observed, ties counted. Up to 20 targets a set it
    is that of all partitions. Experiment 3's is 1 whatever the data.

    Parameters
    ----------
    cases
        Sets with an experiment.
    seed
        Of the shuffles, of which the released code has none, and of the resamples.
    p_values
        As of :func:`score`.
    n_bootstrap
        Resamples of pictures for *low* and *high*, which the released code does not have: among
        those that stand in the same sets. Not of Experiment 3.
    """
    described = [_described(sets, experiment, seed) for sets, experiment in cases]
    results = [_defined(sets, experiment) for sets, experiment in cases]
    defined = [each for each in results if each is not None]
    found = released.p_values(defined, seed) if p_values else [{} for _ in defined]
    rows, tested = [], iter(zip(defined, found, strict=True))
    for case, row, result in zip(cases, described, results, strict=True):
        every = [{"value": np.nan}] if result is None else released.rows(*next(tested))
        if n_bootstrap and result is not None and result.experiment < 3:
            low, high = _interval(*case, _pictures, n_bootstrap, seed)
            row |= {"low": low, "high": high}
        rows += [row | each for each in every]
    return rows


def _described(sets: EmbeddedSets, experiment: int, seed: int) -> dict[str, object]:
    return {
        "test": sets.test,
        "level": sets.level,
        "experiment": experiment,
        "masking": sets.masking,
        "statistic": "effect size",
        "n": sum(len(sets.embeddings[name]) for name in "XY"),
        "n_words": sum(len(set(sets.words[name])) for name in "XY"),
        "n_images": sum(len(set(sets.images[name])) for name in "XY"),
        "seed": seed,
    }


def _defined(sets: EmbeddedSets, experiment: int) -> GroundedResult | None:
    """Return the result, or None where all scores are the same up to rounding."""
    try:
        result = sets.grounded(experiment)
    except ValueError as error:
        if "not defined" not in str(error):
            raise
        return None
    return result if np.ptp(np.concatenate(_all_scores(result))) > FLAT else None


def _all_scores(result: GroundedResult) -> list[np.ndarray]:
    own = [result.x_scores, result.y_scores]
    return own if result.experiment != 3 else [*own, result.x_other, result.y_other]


def numerator(result: GroundedResult) -> float:
    """Return what an effect size divides by the spread.

    The difference of mean scores; of Experiment 3 half the sum of the two absolute shifts.
    """
    if result.experiment != 3:
        return float(result.x_scores.mean() - result.y_scores.mean())
    x = result.x_scores.mean() - result.x_other.mean()
    y = result.y_scores.mean() - result.y_other.mean()
    return float(0.5 * (abs(x) + abs(y)))


def run(
    model,
    every: Sequence[GroundedStimuli],
    experiments: Sequence[int] = EXPERIMENTS,
    maskings: Sequence[str] = ("none",),
    with_images: bool = True,
    store: runtime.Store | None = None,
    labels: dict[str, Any] | None = None,
    variant: str = "paper",
    **settings: Any,
) -> pandas.DataFrame:
    """Score tests in all experiments: tidy scores, one row a test, level, experiment and masking.

    Experiment 3's second form hides words or people and runs Experiment 2 again: rows with a
    masking are of Experiment 2 alone. They leave out the contextual level, whose token is hidden.

    With ``variant="released"`` everything is done as the authors' released code does it: rows with
    a masking are of Experiment 1 and of sentences, Experiment 3 has a row for each target set, and
    VisualBERT, whose regions that code masks never, has no rows with hidden persons.

    Parameters
    ----------
    model, every, with_images, store
        As of :func:`embed`.
    experiments, maskings
        Which.
    labels
        *profile* and *dataset*, as of :attr:`Inputs.labels` (if they are left out, the profile of
        the run and an empty name), and further columns, such as a dose.
    variant
        One of :data:`VARIANTS`.
    **settings
        As of :func:`score`, or of :func:`score_released`.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, and *images* (with or without), *variant*, those of :func:`score`, *labels*.
    """
    if _is_released(variant):
        from biaslib.models.released import reader

        model = reader(model)
        rows = _run_released(model, every, experiments, maskings, with_images, store, settings)
        return _labelled(rows, model, with_images, variant, labels)
    rows = []
    for masking in maskings:
        asked = [each for each in every if masking == "none" or each.level != "contextual"]
        wanted = experiments if masking == "none" else [each for each in experiments if each == 2]
        embedded = embed(model, asked, masking, with_images, store)
        cases = list(itertools.product(embedded, wanted))
        label = f"{model.name}: scoring"
        rows += [score(sets, experiment, **settings) for sets, experiment in progress(cases, label)]
    return _labelled(rows, model, with_images, variant, labels)


def run_each(
    models: Mapping[str, Any],
    given: "Inputs",
    *which: Sequence,
    levels: Sequence[str] = LEVELS,
    domain: str = DOMAINS[0],
    **settings: Any,
) -> pandas.DataFrame:
    """Score the tests of each model by :func:`run`: one table, one model after the other.

    Parameters
    ----------
    models
        By name; those that are not given any test are left out.
    given
        The tests of each, as of :func:`inputs`.
    *which
        Experiments and maskings, as of :func:`run`.
    levels
        Those of the tests.
    domain
        One of :data:`DOMAINS`: what the scores say of their images.
    **settings
        Further ones of :func:`run`.
    """
    tables = []
    for name in [name for name in given if name in models]:
        chosen = [sets for sets in given[name] if sets.level in levels]
        labels = given.labels | {"domain": domain, "model": name}
        tables.append(run(models[name], chosen, *which, labels=labels, **settings))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()


def _run_released(model, every, experiments, maskings, with_images, store, settings) -> list[dict]:
    rows = []
    for masking in maskings:
        if masking == "persons" and not model.reading.labels:
            continue
        wanted = [each for each in every if released.asked(masking, each.level, experiments)]
        embedded = embed(model, wanted, masking, with_images, store, "released")
        cases = [
            (sets, experiment)
            for sets in embedded
            for experiment in released.asked(masking, sets.level, experiments)
        ]
        rows += score_released(cases, **settings)
    return rows


def _labelled(rows, model, with_images, variant, labels) -> pandas.DataFrame:
    named = {"study": STUDY, "model": model.name, "revision": model.revision}
    where = {"profile": runtime.profile(), "dataset": ""}
    shown = {"images": "with" if with_images else "without", "variant": variant}
    return tidy(rows, **(named | where | shown | (labels or {})))


class Inputs(dict):
    """The stimuli of each model, with what is wrong with their files.

    Attributes
    ----------
    profile, dataset
        Whose images they are.
    problems
        One row a problem: *severity*, *kind*, *where* (source, file and set), *what*.
    left
        One row a set: *source*, *test*, *file*, *set*; *n_images* and *n_captions* of all,
        *images_left*, *captions_left*, *share*; *run*, the levels at which the test is run.
    asked
        One row a test and level that was asked for: *source*, *test*, *level* and *outcome*:
        ``run``, ``not there``, or which sets have no image.

    All three are empty where nothing can be missing.
    """

    def __init__(
        self,
        every: dict[str, list[GroundedStimuli]],
        profile: str,
        dataset: str,
        found: files.Checked | None = None,
    ) -> None:
        super().__init__(every)
        self.profile, self.dataset = profile, dataset
        found = found or files.none_checked()
        self.problems, self.left, self.asked = found.problems, found.left, found.asked

    @property
    def labels(self) -> dict[str, str]:
        """What :func:`run` says of scores on these stimuli."""
        return {"profile": self.profile, "dataset": self.dataset}


def inputs(profile: str | None = None, **settings: Any) -> Inputs:
    """Return the stimuli of each model of a profile.

    Parameters
    ----------
    profile
        ``planted`` (:func:`plantedworld.inputs.study1_grounded.inputs`) or ``paper``
        (:func:`paper_inputs`); ``None`` takes that of the run.
    **settings
        Of either; what the other profile alone knows is left out.

    Returns
    -------
    Inputs
        Model -> stimuli, with tables of what is wrong and of what is left.

    Raises
    ------
    UnknownNameError
        If there is no such setting, domain or test.
    """
    return provided_inputs("study1_grounded", profile, settings)


def paper_inputs(
    domain: str = "out of domain",
    names: Sequence[str] | None = None,
    only_sound: bool = False,
    own: str | Path | None = None,
    variant: str = "paper",
) -> Inputs:
    """Return the stimuli of released data.

    Out of domain are images of Google searches, in domain those of COCO or
    Conceptual Captions, below :func:`biaslib.runtime.data_folder` of ``ross2021``:
    ``tests/grounded-tests/<google, coco or concap>/*.jsonl`` with the images below
    ``images/<google, coco or concap>``. The models look at them through the detector, unless there
    is a file of a model's regions, ``regions/<google, coco or concap>/<name of the weights>`` (see
    :func:`checkpoint`) with an ending that :func:`biaslib.models.region_files.read` knows, or a
    folder; a file ``objects_vocab.txt`` beside
    it names the detector's classes.

    Parameters
    ----------
    domain
        One of :data:`DOMAINS`.
    names
        Of the 13 tests; ``None`` takes all whose files are there.
    only_sound
        Run on what is there, where tests or images are missing or cannot be opened. A test of which
        a set has nothing left is not run, and is listed; in domain, so is a model without tests.
    own
        A folder of your own to take out of domain in place of Google's images: a
        folder a test, such as ``C6``, filled as :func:`biaslib.datasets.user_test` says; regions
        are then in its folder ``regions``.
    variant
        One of :data:`VARIANTS`: with ``released``, VisualBERT is ``visualbert-nlvr2``, which reads
        1,024 numbers a region and no pictures. Without a file of them it is left out, and listed.

    Raises
    ------
    UnknownNameError
        If there is no such domain or test.
    FileNotFoundError, DataError
        If the data are not there or not sound; the message counts what is wrong in all files, and
        says where.
    """
    if domain not in DOMAINS:
        raise unknown_name("domain", domain, DOMAINS)
    require_tests(names)
    google = "google" if own is None else Path(own)
    sources = dict.fromkeys(MODELS, google) if domain == DOMAINS[0] else IN_DOMAIN
    wanted = list(tests()["test"] if names is None else names)
    read = {each: files.checked(each, wanted) for each in dict.fromkeys(sources.values())}
    found = files.joined(read.values())
    datasets.require_sound(found.problems, "the image sets of study 1", only_sound)
    every = {source: image_stimuli(each.sound) for source, each in read.items() if each.sound}
    if domain == DOMAINS[0] and not every:
        advice = "Add images, or choose tests that are there"
        none = f"{google} has no test with an image in each of its six sets"
        datasets.require_sound(found.problems, f"{none}: it", advice=advice)
        raise datasets.DataError(f"{none}. {advice}")
    asked = {name: every[sources[name]] for name in MODELS if sources[name] in every}
    places = {name: _regions_folder(sources[name]) for name in MODELS}
    shown, wrong = _shown(asked, places, _is_released(variant))
    datasets.require_sound(wrong, "the regions of study 1", only_sound)
    every_problem = pandas.concat([found.problems, wrong], ignore_index=True)
    source = ", ".join(dict.fromkeys(map(str, sources.values())))
    return Inputs(shown, "paper", f"ross2021, {source}", replace(found, problems=every_problem))


def _regions_folder(source: str | Path) -> Path:
    if isinstance(source, Path):
        return source / "regions"
    return runtime.data_folder("ross2021") / "regions" / source


def _shown(asked, places: dict[str, Path], as_released: bool) -> tuple[dict, pandas.DataFrame]:
    """Return each model's stimuli, as regions where there is a file of them, and what is wrong."""
    shown, wrong = {}, []
    for name, every in asked.items():
        narrow = as_released and name == "visualbert"
        weights = checkpoint(name, "paper", "released" if as_released else "paper")
        path = regions.file_of(places[name], weights)
        if path is not None:
            every, found = regions.with_regions(every, path, 1024 if narrow else 2048)
            wrong += found
        elif narrow:
            what = (
                "visualbert-nlvr2 reads 1,024 numbers a region, and no pictures: put a file there"
            )
            wrong.append(("note", "model is not run", str(places[name] / weights), what))
            every = []
        if every:
            shown[name] = every
    return shown, problems(wrong)


def checkpoint(name: str, profile: str | None = None, variant: str = "paper") -> str:
    """Return the registered name of the weights that a model of the study has.

    Examples
    --------
    >>> checkpoint("vilbert", "paper", "released"), checkpoint("vilbert", "planted", "released")
    ('vilbert-beta', 'vilbert')
    """
    if runtime.profile(profile) != "paper" or not _is_released(variant):
        return name
    from biaslib.models.released import RELEASED

    return RELEASED[name].checkpoint


def require_tests(names: Sequence[str] | None) -> None:
    for name in names or ():
        if name not in set(tests()["test"]):
            raise unknown_name("test", name, tests()["test"])


def _p_values(
    result: GroundedResult, sets: EmbeddedSets, units: str, seed: int
) -> dict[str, object]:
    items = _tested(result, seed)
    words = _tested(averaged(result, sets.words), seed)
    by_images = _by_images(result, sets, items.p_value, seed)
    judged = words if units == "words" else items
    found = {
        "p_value": judged.p_value,
        "p_low": judged.low,
        "p_high": judged.high,
        "p_method": judged.method,
        "p_value_words": words.p_value,
        "p_low_words": words.low,
        "p_high_words": words.high,
        "p_value_images": by_images,
    }
    if result.experiment == 2:
        by_words = averaged(result, sets.words)
        relabelled = inference.grounded_permutation_test(by_words, "new attributes", rng=seed)
        found["p_value_attributes"] = relabelled.p_value
    return found


def _by_images(result: GroundedResult, sets: EmbeddedSets, p_items: float, seed: int) -> float:
    """Return the p-value with pictures as units: that of the items if each has its own picture."""
    pictures = [sets.images[name] for name in "XY"]
    if set(pictures[0]) & set(pictures[1]):
        return np.nan
    if all(len(set(each)) == len(each) for each in pictures):
        return p_items
    return _tested(averaged(result, sets.images), seed).p_value


def _p_of_exchange(result: GroundedResult, sets: EmbeddedSets, seed: int) -> dict[str, object]:
    """Return the p-value of Experiment 3, whose words carry along all their texts and pictures."""
    try:
        found = inference.exchange_test(result, sets.words, sets.images, rng=seed)
    except ValueError:  # No word can change sides: embeddings that are wrong never come here.
        return {}
    p, low, high = found.p_value, found.low, found.high
    return {
        **{"p_value": p, "p_low": low, "p_high": high, "p_method": found.method},
        **{"p_value_words": p, "p_low_words": low, "p_high_words": high, "p_value_images": p},
    }


def _tested(result: GroundedResult, seed: int) -> inference.PermutationResult:
    return inference.grounded_permutation_test(result, rng=seed)


def averaged(result: GroundedResult, labels: dict[str, np.ndarray]) -> GroundedResult:
    """Return a result with one score a label, the mean over its rows.

    Parameters
    ----------
    result
        Scores of the rows of targets.
    labels
        Of X and of Y: what each row belongs to, such as its word.
    """
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
    sets: EmbeddedSets, experiment: int, units: Callable, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Resample units, which are of several kinds; the rows of a unit stay together.

    ``units`` returns how many there are of each kind, and by set which of all units, one kind after
    the other, each row belongs to.
    """
    if not n_resamples:
        return np.nan, np.nan
    found = _resampled(sets, experiment, units, n_resamples, seed)
    return found.low, found.high


def _interval_of_size(
    sets: EmbeddedSets, result: GroundedResult, n_resamples: int, seed: int
) -> tuple[float, float]:
    r"""Return an interval of Experiment 3's effect size over attribute words, which can hold 0.

    The size is half the sum of the absolute values of two signed shifts :math:`\theta`, in standard
    deviations of all scores. With r the .95 quantile over resamples of the words of A and of B of
    :math:`\tfrac12 \lVert \theta^* - \hat\theta \rVert_1`, the shifts that lie no further off
    have sizes between :math:`\max(0, \hat d - r)` and :math:`\hat d + r`. The standard deviation
    stays that of the data: it grows with the shifts themselves. A resample of n words
    spreads too little; r is widened by :math:`\sqrt{n / (n - 1)}` and from the normal quantile to
    that of t, with n the words of the smallest set.
    """
    if not n_resamples:
        return np.nan, np.nan
    found = _resampled(sets, 3, _attribute_words, n_resamples, seed)
    n = min(found.n_units[:2])
    if n < 2:
        return np.nan, np.nan
    size, spread = result.effect_size, np.concatenate(_all_scores(result)).std(ddof=result.ddof)
    # The shifts are those of A less those of B: what words of A and of B move adds up.
    of_a, of_b = np.split(found.values[: 2 * n_resamples] - found.estimate, 2)
    away = 0.5 * np.abs(of_a + of_b).sum(axis=1) / spread
    wider = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    reach = wider * np.quantile(away, 0.95)
    return max(0.0, float(size - reach)), float(size + reach)


def _resampled(
    sets: EmbeddedSets, experiment: int, units: Callable, n_resamples: int, seed: int
) -> inference.Interval:
    sizes, owners = units(sets)
    near = {
        (one, other): cosines(sets.embeddings[one], sets.embeddings[other])
        for one in "XY"
        for other in SETS[2:]
    }

    def statistic(*drawn: np.ndarray) -> np.ndarray:
        every = np.concatenate(drawn)
        return _weighted(near, {name: every[owners[name]] for name in SETS}, experiment)

    n_targets = [len(sets.embeddings[target]) for target in "XY"]
    limit = inference.largest_effect_size(*n_targets) if experiment < 3 else None
    return inference.bootstrap(statistic, sizes, limit=limit, n_resamples=n_resamples, rng=seed)


def _attribute_words(sets: EmbeddedSets) -> tuple[list[int], dict[str, np.ndarray]]:
    """Return as units the words of A and of B; all targets are one more, which always stays."""
    sizes, owners = _words(sets)
    fixed = sizes[0] + sizes[1]
    moved = {name: owners[name] - fixed for name in SETS[2:]}
    targets = {name: np.full(len(sets.words[name]), sum(sizes[2:])) for name in "XY"}
    return [*sizes[2:], 1], moved | targets


def _words(sets: EmbeddedSets) -> tuple[list[int], dict[str, np.ndarray]]:
    """Return as units the words of X, of Y, and of A and B with either target."""
    sizes, owners = [], {}
    for role in "XYAB":
        names = [name for name in SETS if name[0] == role]
        known = np.unique(np.concatenate([sets.words[name] for name in names]))
        places = [sum(sizes) + np.searchsorted(known, sets.words[name]) for name in names]
        owners |= dict(zip(names, places, strict=True))
        sizes.append(len(known))
    return sizes, owners


def _pictures(sets: EmbeddedSets) -> tuple[list[int], dict[str, np.ndarray]]:
    """Return as units the pictures, those of one kind that stand in the same sets."""
    places = {}
    for name in SETS:
        for picture in sets.images[name]:
            places[picture] = places.get(picture, frozenset()) | {name}
    ordered = sorted(places, key=lambda picture: sorted(places[picture]))
    sizes = [len(list(same)) for _, same in itertools.groupby(ordered, key=places.get)]
    at = {picture: place for place, picture in enumerate(ordered)}
    return sizes, {name: np.array([at[each] for each in sets.images[name]]) for name in SETS}


def image_counts(inputs: "Inputs") -> pandas.DataFrame:
    """Return how many images each test of a source has: *source*, *test*, *images*.

    They are counted as in the paper's Table 1: the images of each of the six sets, added up, so
    that one that stands in two sets counts twice; of the files of a test, one for words and one
    for sentences, that with more.
    """
    counts: dict[tuple[str, str], int] = {}
    for name, every in inputs.items():
        own = inputs.dataset.removeprefix("ross2021, ")
        source = (
            own
            if own == "google"
            else {"concap": "conceptual_captions"}.get(IN_DOMAIN[name], IN_DOMAIN[name])
        )
        for sets in every:
            n = int(sets.rows.groupby("set")["image"].nunique().sum())
            counts[source, sets.test] = max(n, counts.get((source, sets.test), 0))
    rows = [(*key, n) for key, n in counts.items()]
    return pandas.DataFrame(rows, columns=["source", "test", "images"])


def _weighted(near, weights, experiment: int) -> np.ndarray:
    """Return effect sizes with every row counted as often as the weights say: (r,).

    Of Experiment 3 the two signed shifts that it adds up, not divided by a spread: (r, 2).
    """

    def scores(target: str, *contexts: str) -> np.ndarray:
        total = 0.0
        for attribute, side in (("A", 1.0), ("B", -1.0)):
            names = [attribute + context for context in contexts]
            summed = sum(near[target, name] @ weights[name] for name in names)
            total = total + side * summed / sum(weights[name].sum(0) for name in names)
        return total

    if experiment == 1:
        return _effect_sizes([scores(t, "x", "y") for t in "XY"], [weights[t] for t in "XY"])
    own = [scores("X", "x"), scores("Y", "y")]
    if experiment == 2:
        return _effect_sizes(own, [weights[t] for t in "XY"])
    other = [scores("X", "y"), scores("Y", "x")]
    shifts = [
        _mean(mine, weights[t]) - _mean(theirs, weights[t])
        for t, mine, theirs in zip("XY", own, other, strict=True)
    ]
    return np.stack(shifts, axis=1)


def _effect_sizes(scores: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    x, y = (_mean(each, weight) for each, weight in zip(scores, weights, strict=True))
    return (x - y) / _spread(scores, weights)


def _mean(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (scores * weights).sum(0) / weights.sum(0)


def _spread(scores: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """Return the weighted standard deviation over all scores, NaN where it is 0: (r,)."""
    values, counts = np.concatenate(scores), np.concatenate(weights)
    total = counts.sum(0)
    mean = (counts * values).sum(0) / total
    variance = (counts * (values - mean) ** 2).sum(0) / (total - 1)
    return np.sqrt(np.where(variance > 1e-24, variance, np.nan))
