"""Study 1: grounded association tests (Ross, Katz and Barbu 2021), on any model that embeds.

A test is six sets of texts with images. The profile ``planted`` takes them from a planted world,
:func:`image_stimuli` from images on this disk; :func:`run` embeds them once for each masking and
scores every experiment, with p-values and intervals that take texts, words or pictures as units.
"""

import functools
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse, stats

from biaslib import datasets, inference, models, runtime, stimuli
from biaslib.datasets import GroundedTest, ross2021
from biaslib.datasets.grounded_images import SETS
from biaslib.datasets.problems import problems
from biaslib.errors import CheckpointError, InputError
from biaslib.metrics.association import unit_rows
from biaslib.metrics.grounded import GroundedResult, grounded
from biaslib.models.stored import cached_outputs
from biaslib.pictures.images import Pictures, pictures, with_shared_regions
from biaslib.runtime import progress, unknown_name
from biaslib.studies import _regions as regions
from biaslib.studies._fetch import Part, fetched, holds
from biaslib.studies._fetch import weights as weights_of
from biaslib.studies._inputs import provided_inputs
from biaslib.studies.scores import Recorded, described_test, tidy

__all__ = [
    "BOTH",
    "DOMAINS",
    "EXPERIMENTS",
    "LEVELS",
    "MASKINGS",
    "MODELS",
    "NEVER_MASKED",
    "RESAMPLED",
    "SETS",
    "EmbeddedSets",
    "GroundedStimuli",
    "Inputs",
    "averaged",
    "embed",
    "fetch",
    "for_record",
    "image_stimuli",
    "inputs",
    "load_models",
    "numerator",
    "paper_inputs",
    "parts",
    "recorded",
    "run",
    "run_each",
    "score",
    "scored",
    "tests",
    "text_alone",
]

STUDY = "ross2021"

MODELS = ("visualbert", "vilbert", "lxmert", "vl-bert")
"""The models of the paper, in the order of its Table 4."""

TASTE_MODEL, TASTE_TEST = "vilt", "C6"
"""A taste: a model that none of the papers has and that needs no detector, on one test."""

BOTH = ("C6", "occupation-gender")
"""The tests of Table 6, which are in domain, too."""

LEVELS = ("word", "sentence", "contextual")
EXPERIMENTS = (1, 2, 3)
MASKINGS = ("none", "words", "persons")
"""What is hidden: nothing; the test's words in the text; the people in the picture.

The paper also hides regions that bear the name of one of the test's words; here people alone.
"""

DOMAINS = ("out of domain", "in domain")
"""Other pictures than those of the training, and pictures like them."""

IN_DOMAIN = {"visualbert": "coco", "lxmert": "coco", "vilbert": "concap", "vl-bert": "concap"}
"""The released set that plays each model's own pictures."""

WIDTHS = {"visualbert-nlvr2": 1024}
"""Numbers a region that weights read, where they are not those of the detector.

Such weights read regions from a file alone.
"""

RESAMPLED = ("words", "pictures")
"""What an interval can draw anew."""

NEVER_MASKED = {"persons": ("visualbert", "vilt")}
"""Models that are left out of a masking: VisualBERT, as in the paper, never hid a region in its
training, and ViLT has none."""

FLAT = 1e-9
"""Range of scores below which they count as equal: what rounding leaves of a difference of 0."""


SHARD = 256
"""Embeddings that a kill may lose."""


@dataclass(frozen=True)
class GroundedStimuli:
    """The stimuli of one test at one level.

    ``rows`` has one row a text with its image: *set* (one of the six), *text*, *word* and *image*,
    its place in ``images``, which several tests share. ``hidden`` are the words that Experiment 3
    hides. ``listed`` has by set how many pictures the paper's files list; it is empty of others.
    """

    test: str
    level: str
    rows: pandas.DataFrame
    images: Pictures
    hidden: tuple[str, ...]
    listed: Mapping[str, int] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """Which share of its listed pictures each set has; empty where nothing is listed."""
        there = self.rows.groupby("set")["image"].nunique()
        return {name: float(there[name] / n) for name, n in self.listed.items()}


@dataclass(frozen=True)
class EmbeddedSets:
    """The embeddings of a test's six sets, with the word and the image of every row.

    ``shares`` are those of :attr:`GroundedStimuli.shares`.
    """

    test: str
    level: str
    masking: str
    embeddings: dict[str, np.ndarray]
    words: dict[str, np.ndarray]
    images: dict[str, np.ndarray]
    shares: Mapping[str, float] = field(default_factory=dict)

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


# Stimuli


def image_stimuli(
    sound: Iterable[tuple[GroundedTest, pandas.DataFrame]],
    levels: Sequence[str] = LEVELS,
    listed: bool = False,
) -> list[GroundedStimuli]:
    """Return tests with images on this disk.

    Parameters
    ----------
    sound
        Tests from :func:`biaslib.datasets.grounded_test` or :func:`biaslib.datasets.user_test`,
        each with its sound rows from :func:`biaslib.datasets.images_of`.
    levels
        Which; a level that a test does not have is left out. ``contextual`` leaves out captions
        that carry none of the words.
    listed
        Whether the tests list the paper's pictures, of which those that are left are a share.

    Raises
    ------
    ValueError
        If one of the six sets of a test is empty; the message names test and sets.
    """
    sound = list(sound)
    paths = pandas.concat([pairs["path"] for _, pairs in sound]).map(str).unique()
    images, places = pictures(paths.tolist()), pandas.Series(range(len(paths)), index=paths)
    return [
        _with_images(test, pairs, level, images, places, listed)
        for level in levels
        for test, pairs in sound
        if level in test.levels
    ]


def _with_images(test, pairs, level, images, places, listed) -> GroundedStimuli:
    if empty := ross2021.empty_sets(pairs, level):
        raise ValueError(
            f"the test {test.name} has no image left in {', '.join(empty)} at the level {level}; "
            "add images, or leave the test out"
        )
    kept, every = (
        rows[rows["word"] != ""] if level == "contextual" else rows for rows in (pairs, test.pairs)
    )
    # A caption without a word is a unit of its own: such captions share no word.
    word = kept["word"].where(kept["word"] != "", kept["caption"])
    rows = kept[["set"]].assign(word=word, text=kept["caption"])
    rows = rows.assign(image=places[kept["path"].map(str)].to_numpy()).reset_index(drop=True)
    name = ross2021.TESTS.get(test.name, test.name)
    n_listed = every.groupby("set")["image"].nunique().to_dict() if listed else {}
    return GroundedStimuli(name, level, rows, images, test.contextual_words, n_listed)


class Inputs(dict):
    """The stimuli of each model, with what is wrong with their files.

    Attributes
    ----------
    profile, dataset
        Whose images they are.
    problems, left, asked
        As of :class:`biaslib.datasets.ross2021.TestsOnDisk`; empty where nothing can be missing.
    """

    def __init__(
        self,
        every: Mapping[str, list[GroundedStimuli]],
        profile: str,
        dataset: str,
        checked: ross2021.TestsOnDisk = ross2021.NOTHING_MISSING,
    ) -> None:
        super().__init__(every)
        self.profile, self.dataset = profile, dataset
        self.problems, self.left, self.asked = checked.problems, checked.left, checked.asked

    @property
    def labels(self) -> dict[str, str]:
        """What :func:`run` says of scores on these stimuli."""
        return {"profile": self.profile, "dataset": self.dataset}


# What the study reads, and what it records


def parts(size: str = "full") -> list[Part]:
    """Return what the study reads in ``paper``, of one size: see :func:`fetch`."""
    folder = functools.partial(runtime.data_folder, STUDY, make=True)

    def photographs(name: str, gigabytes: float, without: str = "", only=()) -> Part:
        get = functools.partial(ross2021.fetch_images, source=name, only=only)
        what = f"pictures of {name}"

        def here() -> bool:
            return _is_here("*") and ross2021.is_fetched(runtime.data_folder(STUDY), name, only)

        return Part(what, ross2021.FROM, gigabytes, without, lambda: get(folder()), here)

    first = "tests/grounded-tests/google/weat6.jsonl"
    files = Part(
        "the authors' tests and lists of links",
        f"url {ross2021.FILES}/{first}",
        0.003,
        "",
        lambda: ross2021.fetch_files(folder()),
        functools.partial(_is_here, first),
    )
    if size == "taste":
        some = photographs("google", 0.06, only=ross2021.taste())
        return [files, weights_of(TASTE_MODEL), weights_of("bert"), some]
    return [
        files,
        weights_of("detector", "models without a file of regions are left out" * _own_regions()),
        *(weights_of(name, f"{name} is left out") for name in MODELS),
        weights_of("bert"),
        Part("the authors' region features", "", 0, NO_REGIONS, _require_regions),
        photographs("concap", 0.05, "ViLBERT and VL-BERT have no test in domain"),
        photographs("coco", 0.1, "VisualBERT and LXMERT have no test in domain"),
        photographs("google", 3.5),
    ]


NO_REGIONS = "VisualBERT and ViLBERT get another detector's; nothing is run as the released code is"


def _own_regions() -> bool:
    """Tell whether there are files of regions, with which models do without the detector."""
    return _is_here("regions/*/*")


def _is_here(pattern: str) -> bool:
    """Tell whether the data folder has a file of that pattern: some pictures' links are dead."""
    return holds(STUDY, lambda folder: any(folder.glob(pattern)))


def _require_regions() -> None:
    if not _own_regions():
        raise datasets.DataError("nobody has published them: book/profiles.md#regions-of-study-1")


def fetch(size: str | None = None) -> pandas.DataFrame:
    """Download what the study reads in ``paper``, unless it is here already.

    The authors' tests and lists of links (3 MB); the weights of the detector, of the four models
    and of BERT (3.5 GB); and the pictures that 12,929 links still give, 16 at a time and two at one
    host: hours. For a taste the weights of ViLT and BERT (0.9 GB), and 192 pictures of one test.
    Stopped, it goes on where it was.

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
    CheckpointError, DataError
        If what the study cannot go without is not to be had, or a disk takes nothing more.
    """
    return fetched(parts(runtime.size(size)))


def load_models(
    given: Mapping[str, list[GroundedStimuli]], stamp: runtime.Provenance
) -> dict[str, Any]:
    """Return the models of stimuli by name, and write their revisions into a run's stamp.

    Raises
    ------
    CheckpointError
        If none can be had.

    Warns
    -----
    UserWarning
        If the weights of one cannot be had, or the detector where its regions are in no file: the
        model is left out.
    """
    loaded, problem = {}, None
    for name, every in given.items():
        try:
            loaded[name] = models.load(name)
            if every and hasattr(type(loaded[name]), "regions_of"):
                _ = every[0].images.has_regions or loaded[name].detector
        except CheckpointError as error:
            problem = error
            loaded.pop(name, None)
            warnings.warn(f"{name} is left out: {error}", stacklevel=2)
    if problem and not loaded:
        raise problem
    stamp.record(weights={name: each.revision for name, each in loaded.items()})
    return loaded


def scored(
    encoders: Mapping[str, Any], given: Inputs, domain: str = DOMAINS[0]
) -> pandas.DataFrame:
    """Return the scores of a record: all of the paper's experiments on pictures of a domain.

    Experiments 1, 2 and 3 at three levels, in domain 1 and 2; then Experiment 2 with words and
    with people hidden, on words and on sentences, in domain on sentences. Intervals resample
    pictures, which are what a rerun may lack; in ``planted`` there are none.

    Parameters
    ----------
    encoders, given
        As of :func:`run_each`.
    domain
        One of :data:`DOMAINS`.
    """
    out, planted = domain == DOMAINS[0], given.profile == "planted"
    how = {"n_bootstrap": 0 if planted else 500, "resample": "pictures", "domain": domain}
    shown = run_each(encoders, given, EXPERIMENTS if out else (1, 2), **how)
    levels = ("word", "sentence") if out else ("sentence",)
    hidden = run_each(encoders, given, (2,), ("words", "persons"), levels, **how)
    return pandas.concat([shown, hidden], ignore_index=True)


def text_alone(given: Inputs, stamp: runtime.Provenance) -> pandas.DataFrame:
    """Return Experiment 1 of BERT on the same texts without pictures: the ungrounded baseline."""
    [encoder] = load_models({"bert": []}, stamp).values()
    labels = given.labels | {"domain": DOMAINS[0]}
    settings = {"with_images": False, "n_bootstrap": 0, "p_values": False}
    return run(encoder, next(iter(given.values())), (1,), labels=labels, **settings)


def for_record(scores: Sequence[pandas.DataFrame], *read: Inputs) -> Recorded:
    """Return what goes into a record: scores, and what was read for them.

    Parameters
    ----------
    scores
        Tables of scores; empty ones are left out.
    *read
        The stimuli, of either domain and any weights. Where they are of the released files, the
        images that these list are counted, as Table 1 does.
    """
    left = pandas.concat([each.left for each in read])
    sources = [set(each.left["source"]) for each in read]
    listed = any(names and names <= set(ross2021.SOURCES) for names in sources)
    files = {"ross2021_images": ross2021.image_counts(runtime.data_folder(STUDY))} if listed else {}
    shown = [sets.images for each in read for every in each.values() for sets in every]
    there = left["n_images"].sum(), left["images_left"].sum()
    return Recorded([each for each in scores if len(each)], *there, shown, files)


def recorded(run: runtime.Provenance) -> Recorded:
    """Run the study as its chapter does, and return what goes into its record."""
    asked = {"only_sound": True, "size": run.size}
    given = inputs("paper", **asked)
    own = inputs("paper", domain=DOMAINS[1], names=BOTH, **asked)
    encoders = load_models(given, run)
    scores = [scored(encoders, given), scored(encoders, own, DOMAINS[1]), text_alone(given, run)]
    return for_record(scores, given, own)


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
    weights: Mapping[str, str] | None = None,
    size: str | None = None,
) -> Inputs:
    """Return the stimuli of released data.

    Out of domain are images of Google searches, in domain those of COCO or
    Conceptual Captions, below :func:`biaslib.runtime.data_folder` of ``ross2021``:
    ``tests/grounded-tests/<google, coco or concap>/*.jsonl`` with the images below
    ``images/<google, coco or concap>``. The models look at them through the detector, unless there
    is a file of a model's regions, ``regions/<google, coco or concap>/<name of the weights>`` with
    an ending that :func:`biaslib.pictures.region_files.read` knows, or a folder; a file
    ``objects_vocab.txt`` beside it names the detector's classes.

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
    weights
        Registered names of the weights of models, where they are not the model's own name. A model
        whose weights read other regions than the detector's is left out, and listed, without a file
        of them.
    size
        ``full``, or ``taste``: one test on the pictures of :func:`biaslib.datasets.ross2021.taste`,
        for a model that has nothing in domain; None takes that of the run.

    Raises
    ------
    UnknownNameError
        If there is no such domain, test or model.
    InputError
        If a folder of one's own is to be in domain.
    FileNotFoundError, DataError
        If the data are not there or not sound; the message counts what is wrong in all files, and
        says where.
    """
    require_known(domain, names)
    for name in weights or ():
        if name not in MODELS:
            raise unknown_name("model", name, MODELS)
    if own is not None and domain != DOMAINS[0]:
        raise InputError(f"a folder of one's own is {DOMAINS[0]}; pass this domain, or no folder")
    google, taste = "google" if own is None else Path(own), runtime.size(size) == "taste"
    known, in_domain = ((TASTE_MODEL,), {}) if taste else (MODELS, IN_DOMAIN)
    sources = dict.fromkeys(known, google) if domain == DOMAINS[0] else in_domain
    names = [TASTE_TEST] if taste else names
    wanted = list(tests()["test"] if names is None else names)
    only = ross2021.taste() if taste and own is None else ()
    checked = ross2021.tests_on_disk(dict.fromkeys(sources.values()), wanted, only)
    datasets.require_sound(checked.problems, "the image sets of study 1", only_sound)
    if domain == DOMAINS[0] and not checked.sound:
        advice = "Add images, or choose tests that are there"
        none = f"{google} has no test with an image in each of its six sets"
        datasets.require_sound(checked.problems, f"{none}: it", advice=advice)
        raise datasets.DataError(f"{none}. {advice}")
    every = {
        source: image_stimuli(sound, listed=not isinstance(source, Path))
        for source, sound in checked.sound.items()
    }
    shown, wrong = {}, []
    for name in known:
        if sources.get(name) in every:
            own_weights = (weights or {}).get(name, name)
            kept, found = _as_regions(every[sources[name]], sources[name], own_weights)
            shown |= {name: kept} if kept else {}
            wrong += found
    wrong = problems(wrong)
    datasets.require_sound(wrong, "the regions of study 1", only_sound)
    checked = replace(checked, problems=pandas.concat([checked.problems, wrong], ignore_index=True))
    label = [STUDY, *dict.fromkeys(map(str, sources.values()))]
    label += [f"{len(only)} pictures of {TASTE_TEST}"] if only else []
    return Inputs(shown, "taste" if taste else "paper", ", ".join(label), checked)


def require_known(domain: str, names: Sequence[str] | None) -> None:
    """Refuse a domain, or names of tests, that there are not."""
    if domain not in DOMAINS:
        raise unknown_name("domain", domain, DOMAINS)
    known = tests()["test"].tolist()
    for name in names or ():
        if name not in known:
            raise unknown_name("test", name, known)


def _as_regions(
    every: list[GroundedStimuli], source: str | Path, weights: str
) -> tuple[list[GroundedStimuli], list[tuple]]:
    """Return stimuli as regions, where there is a file of those that weights read, and problems.

    Rows whose picture has no sound regions are left out, and with them a test at a level at which
    a set has nothing left.
    """
    own = isinstance(source, Path)
    folder = (source if own else runtime.data_folder(STUDY)) / "regions" / ("" if own else source)
    path = regions.file_of(folder, weights)
    if path is None and weights in WIDTHS:
        what = f"{weights} reads {WIDTHS[weights]:,} numbers a region, and no pictures: put a "
        return [], [("note", "model is not run", str(folder / weights), f"{what}file there")]
    if path is None:
        return every, []
    images, where = every[0].images, f"{folder.name}/{path.name}"
    names = regions.names_of(images)
    lost = regions.unusable(path, names, WIDTHS.get(weights, regions.WIDTH))
    wrong = [("error", "regions cannot be used", where, f"{n}: {why}") for n, why in lost.items()]
    wrong += regions.unnamed_classes(path)
    shown, kept = regions.with_regions(images, path, names, WIDTHS.get(weights, regions.WIDTH)), []
    for sets in every:
        rows = sets.rows[~sets.rows["image"].map(lambda row: names[row] in lost).astype(bool)]
        if rows["set"].nunique() == sets.rows["set"].nunique():
            kept.append(replace(sets, rows=rows.reset_index(drop=True), images=shown))
        else:
            what = f"no regions at {sets.level}"
            wrong.append(("note", "test is not run", f"{where}, {sets.test}", what))
    return kept, wrong


# Embeddings


def embed(
    model,
    every: Sequence[GroundedStimuli],
    masking: str = "none",
    with_images: bool = True,
    store: runtime.Store | None = None,
    **options: Any,
) -> list[EmbeddedSets]:
    """Embed the sets of tests, each text with its image once; what is stored is not run again.

    Parameters
    ----------
    model
        One that embeds texts with images (:mod:`biaslib.capabilities`); a text encoder with
        ``with_images=False``.
    every
        The stimuli, which share their images.
    masking
        One of :data:`MASKINGS`.
    with_images
        False gives the model the texts alone: the ungrounded baseline.
    store
        Where embeddings are kept; ``None`` takes the usual one.
    **options
        Passed on to the model's ``embed``.

    Raises
    ------
    UnknownNameError
        If there is no such masking.
    """
    if masking not in MASKINGS:
        raise unknown_name("masking", masking, MASKINGS)
    images = with_shared_regions(model, every[0].images) if with_images else None
    groups: dict[tuple, list[int]] = {}
    for at, sets in enumerate(every):
        groups.setdefault((sets.level, sets.hidden if masking == "words" else ()), []).append(at)
    embedded = {}
    for (level, hidden), places in groups.items():
        rows = pandas.concat([every[at].rows.assign(at=at) for at in places], ignore_index=True)
        vectors = cached_outputs(
            model,
            "grounded embedding",
            functools.partial(_ask, model, rows, level, hidden, masking, options),
            texts=(
                rows["text"] + "\x1f" + (rows["word"] if level == "contextual" else "")
            ).tolist(),
            images=images.part(rows["image"].to_numpy()) if with_images else None,
            store=store,
            shard_size=max(SHARD, 4 * getattr(model, "batch_size", 0)),
            level=level,
            masking=masking,
            hidden=list(hidden),
            **options,
        )
        for at in places:
            own = vectors[(rows["at"] == at).to_numpy()]
            embedded[at] = _by_set(every[at], own.astype(float), masking)
    return [embedded[at] for at in range(len(every))]


def _ask(model, rows, level, hidden, masking, options, which: list[int], images: Any):
    """Return the embeddings of some rows of stimuli of one level that hide the same words."""
    wanted, options = rows.iloc[which], dict(options)
    if masking != "none":
        from biaslib.models.fusion import Mask

        options["mask"] = Mask(hidden, persons=masking == "persons")
    if images is not None:
        options["images"] = images
    if level == "contextual":
        options["words"] = wanted["word"].tolist()
    return model.embed(wanted["text"].tolist(), level=level, **options)


def _by_set(sets: GroundedStimuli, vectors: np.ndarray, masking: str) -> EmbeddedSets:
    words, images = sets.rows["word"].to_numpy(), np.array(sets.images.ids)[sets.rows["image"]]
    of_set = {name: (sets.rows["set"] == name).to_numpy() for name in SETS}
    parts = [
        {name: column[own] for name, own in of_set.items()} for column in (vectors, words, images)
    ]
    return EmbeddedSets(sets.test, sets.level, masking, *parts, sets.shares)


# Scores


def run(
    model,
    every: Sequence[GroundedStimuli],
    experiments: Sequence[int] = EXPERIMENTS,
    maskings: Sequence[str] = ("none",),
    with_images: bool = True,
    store: runtime.Store | None = None,
    labels: dict[str, Any] | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Score tests in all experiments: tidy scores, one row a test, level, experiment and masking.

    Experiment 3's second form hides words or people and runs Experiment 2 again: rows with a
    masking are of Experiment 2 alone. They leave out the contextual level, whose token is hidden.

    Parameters
    ----------
    model, every, with_images, store
        As of :func:`embed`.
    experiments, maskings
        Which.
    labels
        *profile* and *dataset*, as of :attr:`Inputs.labels` (if they are left out, the profile of
        the run and an empty name), and further columns, such as a dose.
    **settings
        As of :func:`score`.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, and *images* (``with`` or ``without``), *variant* (``paper``: the study as the
        paper describes it), those of :func:`score`, *labels*. Empty where the maskings leave
        nothing to ask.
    """
    rows = []
    for masking in maskings:
        asked = [each for each in every if masking == "none" or each.level != "contextual"]
        wanted = experiments if masking == "none" else [each for each in experiments if each == 2]
        if not (asked and wanted):
            continue
        embedded = embed(model, asked, masking, with_images, store)
        cases = list(itertools.product(embedded, wanted))
        label = f"{model.name}: scoring"
        rows += [score(sets, experiment, **settings) for sets, experiment in progress(cases, label)]
    columns = {"study": STUDY, "model": model.name, "revision": model.revision}
    columns |= {"profile": runtime.profile(), "dataset": "", "variant": "paper"}
    columns |= {"images": "with" if with_images else "without"}
    return tidy(rows, **(columns | (labels or {}))) if rows else pandas.DataFrame()


def run_each(
    models: Mapping[str, Any],
    given: Inputs,
    experiments: Sequence[int] = EXPERIMENTS,
    maskings: Sequence[str] = ("none",),
    levels: Sequence[str] = LEVELS,
    domain: str = DOMAINS[0],
    **settings: Any,
) -> pandas.DataFrame:
    """Score the tests of each model by :func:`run`: one table, one model after the other.

    As in the paper, no person is hidden from VisualBERT (:data:`NEVER_MASKED`).

    Parameters
    ----------
    models
        By name; those that are not given any test are left out.
    given
        The tests of each, as of :func:`inputs`.
    experiments, maskings
        As of :func:`run`.
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
        hidden = [each for each in maskings if name not in NEVER_MASKED.get(each, ())]
        labels = given.labels | {"domain": domain, "model": name}
        if hidden:
            tables.append(run(models[name], chosen, experiments, hidden, labels=labels, **settings))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()


def score(
    sets: EmbeddedSets,
    experiment: int,
    n_bootstrap: int = 500,
    seed: int = 0,
    p_values: bool = True,
    resample: str = "words",
) -> dict[str, object]:
    """Return one row of scores of an experiment.

    *p_value* is one-sided and takes words as units, with all their texts and pictures. In
    Experiments 1 and 2 target words change sides, in Experiment 2 with the attributes of their new
    side (:func:`biaslib.inference.grounded_permutation_test`); in Experiment 3 attribute words do
    (:func:`biaslib.inference.exchange_test`), and p is NaN where none can. *p_value_paper* is the
    paper's own test of Experiments 1 and 2, to set a run beside its tables: it takes every text
    with an image as a unit and deals out the scores as they are, and rejects too often
    (``tools/levels/experiments12.py``).

    Parameters
    ----------
    sets
        Embedded stimuli.
    experiment
        1, 2 or 3.
    n_bootstrap
        Resamples for the interval; 0 leaves it out.
    seed
        Of the resamples and of sampled p-values.
    p_values
        Whether they are wanted.
    resample
        ``words``: other words could have been chosen, and the interval is in *low* and *high*. Or
        ``pictures``: the words are those of the paper, of whose pictures some are left; the
        interval, of where the number with all of them lies, is in *low_pictures* and
        *high_pictures* (Rao and Wu 1988).

    Returns
    -------
    dict
        *value* (effect size; NaN where the scores have no spread), *low* and *high* (95%,
        target and attribute words resampled), or *low_pictures* and *high_pictures* with
        *no_interval* (why they are NaN), *numerator* (what the effect size divides by the
        spread), *p_value* with *p_low*, *p_high*, which enclose it, and *p_method*; the same of
        *p_value_paper*; *p_value_images* (as *p_value*, with pictures as units; NaN where one is in
        both target sets); *n* words (of Experiments 1 and 2 targets, of Experiment 3 attributes);
        *n_texts*, *n_images* of the targets;
        *share* (of the listed pictures, in the set that has least left; NaN where unknown).

    Raises
    ------
    UnknownNameError
        If there are no such resamples.
    """
    if resample not in RESAMPLED:
        raise unknown_name("kind of resamples", resample, RESAMPLED)
    row = described(sets, experiment, seed)
    row |= {"value": np.nan, "low": np.nan, "high": np.nan, "numerator": 0.0}
    row["p_value_paper"] = np.nan
    result = defined_result(sets, experiment)
    if result is None:
        return row
    row |= {"value": result.effect_size, "numerator": numerator(result)}
    if n_bootstrap and resample == "pictures":
        row |= interval_of_pictures(sets, experiment, n_bootstrap, seed)
    elif n_bootstrap and experiment == 3:
        row["low"], row["high"] = _interval_of_size(sets, result, n_bootstrap, seed)
    elif n_bootstrap:
        interval = resampled(sets, experiment, _words(sets), n_bootstrap, seed)
        row |= {"low": interval.low, "high": interval.high}
    if not p_values:
        return row
    if experiment == 3:
        try:
            test = inference.exchange_test(result, sets.words, sets.images, rng=seed)
        except ValueError:  # No word can change sides: embeddings that are wrong never come here.
            return row
        return row | described_test(test) | {"p_value_images": test.p_value}
    test = functools.partial(inference.grounded_permutation_test, rng=seed)
    row |= described_test(test(averaged(result, sets.words)))
    row |= described_test(test(result, "fixed scores"), "_paper")
    shared = not set(sets.images["X"]).isdisjoint(sets.images["Y"])
    p_images = np.nan if shared else test(averaged(result, sets.images)).p_value
    return row | {"p_value_images": p_images}


def described(sets: EmbeddedSets, experiment: int, seed: int) -> dict[str, object]:
    """Return what a row of scores says of the sets that it is of."""
    n_words = _words(sets)[0]
    return {
        "test": sets.test,
        "level": sets.level,
        "experiment": experiment,
        "masking": sets.masking,
        "statistic": "effect size",
        "n": sum(n_words[:2] if experiment < 3 else n_words[2:]),
        "n_texts": sum(len(sets.embeddings[name]) for name in "XY"),
        "n_images": sum(len(set(sets.images[name])) for name in "XY"),
        "share": min(sets.shares.values(), default=np.nan),
        "seed": seed,
    }


def defined_result(sets: EmbeddedSets, experiment: int) -> GroundedResult | None:
    """Return an experiment, or None where all scores are the same up to rounding."""
    try:
        result = sets.grounded(experiment)
    except ValueError as error:
        if "not defined" not in str(error):
            raise
        return None
    return result if np.ptp(_all_scores(result)) > FLAT else None


def _all_scores(result: GroundedResult) -> np.ndarray:
    own = [result.x_scores, result.y_scores]
    return np.concatenate(own if result.experiment < 3 else [*own, result.x_other, result.y_other])


def numerator(result: GroundedResult) -> float:
    """Return what an effect size divides by the spread.

    The difference of mean scores; of Experiment 3 half the sum of the two absolute shifts.
    """
    if result.experiment != 3:
        return float(result.x_scores.mean() - result.y_scores.mean())
    x = result.x_scores.mean() - result.x_other.mean()
    y = result.y_scores.mean() - result.y_other.mean()
    return float(0.5 * (abs(x) + abs(y)))


# P-values


def averaged(result: GroundedResult, labels: dict[str, np.ndarray]) -> GroundedResult:
    """Return a result with one score a label, the mean over its rows.

    Parameters
    ----------
    result
        Scores of the rows of targets.
    labels
        Of X and of Y: what each row belongs to, such as its word.
    """
    means = {}
    for name in ("x_scores", "y_scores", "x_other", "y_other"):
        if getattr(result, name) is not None:
            _, owner = np.unique(labels[name[0].upper()], return_inverse=True)
            means[name] = np.bincount(owner, getattr(result, name)) / np.bincount(owner)
    return replace(result, **means)


# Intervals

Units = tuple[list[int], dict[str, np.ndarray]]
"""How many units there are of each kind; and by set which of all units, one kind after the other,
each row belongs to."""


def resampled(
    sets: EmbeddedSets, experiment: int, units: Units, n_resamples: int, seed: int
) -> inference.Interval:
    """Return the interval of an effect size over resamples of units; a unit's rows stay together.

    Of Experiment 3 that of the two signed shifts that it adds up, not divided by a spread.
    """
    sizes, owners = units
    scores = _scorer(sets, owners, sum(sizes))

    def statistic(*drawn: np.ndarray) -> np.ndarray:
        weights = np.concatenate(drawn)
        if experiment < 3:
            return _weighted_effect_size(scores, owners, weights, experiment)
        return np.stack(_weighted_shifts(scores, owners, weights)[0], axis=1)

    if experiment == 3:
        return inference.bootstrap(statistic, sizes, n_resamples=n_resamples, rng=seed)
    of, once = ("xy", "xy") if experiment == 1 else ("x", "y"), np.ones((sum(sizes), 1))
    own = [scores(once, target, kind)[:, 0] for target, kind in zip("XY", of, strict=True)]
    return inference.bootstrap(
        statistic,
        sizes,
        items=tuple(len(each) for each in own),
        between=inference.share_between(np.concatenate(own), owners["X"], owners["Y"]),
        n_resamples=n_resamples,
        rng=seed,
    )


Scorer = Callable[[np.ndarray, str, str], np.ndarray]
"""Takes weights of units, (n, r), a target set and contexts of attributes; returns s(w, A, B) of
the targets with each attribute counted as often as its unit: (n_targets, r)."""


def _scorer(sets: EmbeddedSets, owners: dict[str, np.ndarray], n_units: int) -> Scorer:
    vectors = dict(zip(SETS, unit_rows(**sets.embeddings), strict=True))
    sums = {}
    for name in SETS[2:]:
        rows = np.arange(len(owners[name]))
        of_unit = sparse.csr_array((np.ones(len(rows)), (owners[name], rows)), (n_units, len(rows)))
        sums[name] = np.column_stack([of_unit @ vectors[name], of_unit.sum(axis=1)])

    def scores(weights: np.ndarray, target: str, contexts: str) -> np.ndarray:
        a, b = (weights.T @ sum(sums[kind + of] for of in contexts) for kind in "AB")
        with np.errstate(invalid="ignore"):  # NaN where no attribute of a set was drawn
            return vectors[target] @ (a[:, :-1] / a[:, -1:] - b[:, :-1] / b[:, -1:]).T

    return scores


def _weighted_effect_size(scores: Scorer, owners, weights, experiment: int) -> np.ndarray:
    """Return equation 3 with every unit counted as weights say, NaN where the spread is 0: (r,)."""
    of_x, of_y = ("xy", "xy") if experiment == 1 else ("x", "y")
    x, y = scores(weights, "X", of_x), scores(weights, "Y", of_y)
    of = [weights[owners[target]] for target in "XY"]
    return (_mean(x, of[0]) - _mean(y, of[1])) / _spread([x, y], of)


def _weighted_shifts(scores: Scorer, owners, weights) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the two signed shifts of Experiment 3, and the spread of its scores: (r,) each."""
    x, y = ([scores(weights, target, of) for of in "xy"] for target in "XY")
    of_x, of_y = (weights[owners[target]] for target in "XY")
    shifts = [_mean(x[0], of_x) - _mean(x[1], of_x), _mean(y[1], of_y) - _mean(y[0], of_y)]
    return shifts, _spread([*x, *y], [of_x, of_x, of_y, of_y])


def _spread(scores: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """Return the standard deviation of scores counted as weights say, NaN where it is 0: (r,)."""
    values, counts = np.concatenate(scores), np.concatenate(weights)
    variance = (counts * (values - _mean(values, counts)) ** 2).sum(0) / (counts.sum(0) - 1)
    return np.sqrt(np.where(variance > 1e-24, variance, np.nan))


def _mean(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (scores * weights).sum(0) / weights.sum(0)


def _words(sets: EmbeddedSets) -> Units:
    """Return as units the words of X, of Y, and of A and B with either target."""
    sizes, owners = [], {}
    for role in "XYAB":
        names = [name for name in SETS if name[0] == role]
        known = np.unique(np.concatenate([sets.words[name] for name in names]))
        for name in names:
            owners[name] = sum(sizes) + np.searchsorted(known, sets.words[name])
        sizes.append(len(known))
    return sizes, owners


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
    (n_x, n_y, *n_attributes), owners = _words(sets)
    n = min(len(set(sets.words[name])) for name in SETS[2:])
    if n < 2:
        return np.nan, np.nan
    # All targets are one more unit, which always stays.
    targets = {name: np.full(len(sets.words[name]), sum(n_attributes)) for name in "XY"}
    moved = {name: owners[name] - n_x - n_y for name in SETS[2:]} | targets
    interval = resampled(sets, 3, ([*n_attributes, 1], moved), n_resamples, seed)
    # The shifts are those of A less those of B: what words of A and of B move adds up.
    of_a, of_b = np.split(interval.values[: 2 * n_resamples] - interval.estimate, 2)
    away = 0.5 * np.abs(of_a + of_b).sum(axis=1) / _all_scores(result).std(ddof=result.ddof)
    wider = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    # A resample without any word of one of the sets has no shifts.
    reach = wider * np.nanquantile(away, 0.95)
    return max(0.0, float(result.effect_size - reach)), float(result.effect_size + reach)


def interval_of_pictures(
    sets: EmbeddedSets, experiment: int, n_resamples: int, seed: int
) -> dict[str, object]:
    r"""Return *low_pictures*, *high_pictures* and *no_interval*, why they are NaN.

    What could change a number in a rerun is pictures: the words are the paper's. The pictures of
    each set are drawn anew among themselves, each with all its texts. Those of a set of which the
    share f is left count as 1 / f of what they are drawn, so that sets that are pooled keep their
    sizes, and deviate by :math:`\sqrt{1 - f}` of that (Rao and Wu 1988,
    :func:`biaslib.inference.stratified_bootstrap`): the interval is that of the number with all
    pictures, and the number itself where none is missing. Where the shares are not known, it is
    that of all pictures there could be.

    A picture that stands in several sets counts to the first. Of a set with pictures missing that
    has one left there is no interval. Experiment 3's is that of the two shifts with the signs that
    they have, and ends at 0.
    """
    owners, strata = _pictures(sets)
    share = np.array([sets.shares.get(name, 0.0) for name in strata])
    counts = Counter(name for name, f in zip(strata, share, strict=True) if f < 1)
    if alone := sorted(name for name, n in counts.items() if n == 1):
        told = f"one picture in {', '.join(alone)}"
        return {"low_pictures": np.nan, "high_pictures": np.nan, "no_interval": told}
    scores = _scorer(sets, owners, len(strata))
    shifts, _ = _weighted_shifts(scores, owners, np.ones((len(strata), 1)))
    signs = np.sign(np.ravel(shifts))
    stands_for = 1.0 / np.where(share > 0, share, 1.0)[:, None]

    def statistic(weights: np.ndarray) -> np.ndarray:
        weights = stands_for * weights
        if experiment < 3:
            return _weighted_effect_size(scores, owners, weights, experiment)
        shifts, spread = _weighted_shifts(scores, owners, weights)
        return 0.5 * (signs @ shifts) / spread

    limit = None
    if experiment < 3:  # What is bounded is the number of all pictures.
        n_all = [stands_for[owners[target]].sum() for target in "XY"]
        limit = inference.largest_effect_size(*n_all, ddof=1 if sets.shares else 0)
    found = inference.stratified_bootstrap(statistic, strata, n_resamples, seed, limit, share)
    low = found.low if experiment < 3 else max(0.0, found.low)
    return {"low_pictures": low, "high_pictures": found.high, "no_interval": ""}


def _pictures(sets: EmbeddedSets) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the number of each row's picture, and the first set in which each picture stands."""
    first: dict[Any, str] = {}
    for name in SETS:
        for picture in sets.images[name]:
            first.setdefault(picture, name)
    at = {picture: number for number, picture in enumerate(first)}
    owners = {name: np.array([at[each] for each in sets.images[name]]) for name in SETS}
    return owners, list(first.values())
