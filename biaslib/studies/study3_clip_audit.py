"""Study 3: the audit of CLIP with SO-B-IT (Hamidieh et al. 2023), and the captions behind it.

Words in captions against portraits of labelled groups: C-ASC, who is retrieved, how evenly; with
intervals, a correction over words and groups, and the choices that the paper leaves open. Then the
captions of a corpus: with whose pronouns does a word stand?
"""

import functools
import hashlib
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import stats

from biaslib import inference, models, runtime, stimuli
from biaslib.datasets import DataError, fairface
from biaslib.datasets import captions as corpora
from biaslib.metrics import caption_association
from biaslib.models import stored
from biaslib.pictures.images import Pictures
from biaslib.studies._fetch import Part, data_of_hub, fetched, weights
from biaslib.studies._inputs import provided_inputs
from biaslib.studies.scores import Recorded, tidy

__all__ = [
    "ERASED",
    "FEW",
    "Audit",
    "Corpus",
    "Inputs",
    "Retrieval",
    "audit",
    "embed_images",
    "embed_texts",
    "erasure",
    "fetch",
    "innocent_captions",
    "inputs",
    "load_model",
    "paper_inputs",
    "parts",
    "recorded",
    "rejections",
    "retrieve",
    "score",
    "source_of_bias",
    "unit_means",
    "welch_p_values",
    "words",
]

STUDY = "hamidieh2023"

OF_THE_PAPER, PORTRAITS = "FairFace train", 86_744
"""The paper's portraits, as data sets are named here, and how many there are; those of FairFace's
other part are of other people."""
ERASED = 0.2
"""A group is called hardly retrieved for a word if its share is below this part of its share in
the data set. Ours: section F of the paper says "few" and gives no number."""

FEW = 20
"""Units below which a group is named: interval and p-value of C-ASC do not hold their level there
where scores are skewed."""

N_RESAMPLES = 300
"""Of the intervals in a record."""

TASTE_MODEL, TASTE_PORTRAITS = "tinyclip", 1_000
"""A taste: a small CLIP that none of the papers has, on the first validation portraits."""

WORDS_AT_ONCE = 64
SPARE = 50
SMALL = 1_000
"""Up to so many portraits are ranked to the last: units of several portraits use up more."""


@dataclass(frozen=True)
class Inputs:
    """What a run of the study reads.

    Attributes
    ----------
    profile, dataset
        Of the run, and the name of the portraits.
    model
        Options of :func:`biaslib.models.load`.
    people
        One row a portrait, with the columns of the facets.
    portraits
        Their pictures, in the same order.
    words
        The words of the audit, with their captions: see :func:`words`.
    facets
        Name of a facet -> its column, or columns of an intersection.
    labels
        Known labels of each column, in their order, whether or not they occur.
    gender
        Names of the two genders in ``people``, women first.
    k
        Portraits retrieved for each word.
    innocent
        Words without social meaning, with their captions.
    captions
        Takes a folder to write in, and returns the corpus of captions to count in.
    units
        What intervals draw anew, a number for each portrait: portraits of one drawing stay
        together.
    lower_case
        Whether the models know lower case only.
    unit_name
        What the units are, in the plural.
    """

    profile: str
    dataset: str
    model: Mapping[str, Any]
    people: pandas.DataFrame
    portraits: Pictures
    words: pandas.DataFrame
    facets: Mapping[str, str | list[str]]
    labels: Mapping[str, Sequence[str]]
    gender: tuple[str, str]
    k: int
    innocent: pandas.DataFrame
    captions: "Callable[[str | Path], Corpus]"
    units: np.ndarray = field(repr=False)
    lower_case: bool = False
    unit_name: str = "portraits"

    @functools.cached_property
    def groups(self) -> dict[str, pandas.DataFrame]:
        """Who belongs to which group, by facet: a partition each, without empty groups.

        Raises
        ------
        DataError
            If a facet has one group only; the message names the empty ones and counts the other.
        """
        tables = {}
        for facet, by in self.facets.items():
            sizes = self.sizes(facet)
            occurring = sizes.index[sizes > 0]
            if len(occurring) < 2:
                raise DataError(_one_group(facet, sizes))
            tables[facet] = fairface.membership(self.people, by, occurring)
        return tables

    def sizes(self, facet: str) -> pandas.Series:
        """Return how many portraits each possible group of a facet has, none included."""
        return fairface.group_sizes(self.people, self.facets[facet], self.labels)

    @property
    def asked_and_there(self) -> tuple[int, int]:
        """How many portraits the paper's part of FairFace has, and how many of them are here.

        Of other portraits as many are asked for as are here.
        """
        there = len(self.people)
        asked = PORTRAITS if self.dataset.startswith(OF_THE_PAPER) else there
        return max(asked, there), there

    def model_case(self, texts: Sequence[str]) -> list[str]:
        """Return texts as the models read them."""
        return [text.lower() for text in texts] if self.lower_case else list(texts)

    @property
    def checksum(self) -> str:
        """12 hexadecimal digits that change with any portrait or label."""
        columns = self.people[list(self.labels)].assign(portrait=self.portraits.ids)
        return hashlib.sha256(columns.to_csv(index=False).encode()).hexdigest()[:12]

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the portraits: other size, empty groups, small groups."""
        problems = self.people.attrs.get("problems", ())
        notes = [each["what"] for each in problems if each["severity"] == "note"]
        few = []
        for facet in self.facets:
            sizes = self.sizes(facet)
            empty, units = sizes.index[sizes == 0], self.groups[facet].groupby(self.units)
            n_units = units.any().sum().sort_values()
            small = [f"{name!r} ({n})" for name, n in n_units.items() if n < FEW]
            if len(empty):
                notes.append(f"{facet}: no portrait is labelled {_quoted(empty)}; left out")
            if small:
                named = runtime.first_few(small, most=2)
                few.append(f"{len(small)} of {len(sizes)} by {facet}, {named}")
        if few:
            notes.append(
                f"groups of fewer than {FEW} {self.unit_name} ({'; '.join(few)}): where scores are "
                "skewed, their 95% intervals of C-ASC hold in some 91%, and p lies below .05 in "
                "some 10% with nothing to find; a group of one has no interval"
            )
        return notes


def _quoted(names: Sequence[str]) -> str:
    return runtime.first_few([repr(name) for name in names], most=4)


def _one_group(facet: str, sizes: pandas.Series) -> str:
    counts = ", ".join(f"{name!r} has {n:,}" for name, n in sizes[sizes > 0].items())
    empty = _quoted(sizes.index[sizes == 0])
    return (
        f"{facet}: no portrait is labelled {empty} ({counts}), so that there is nothing to "
        "compare. Take the whole split, or leave the facet out: "
        "dataclasses.replace(given, facets=...)"
    )


@dataclass(frozen=True)
class Corpus:
    """Captions that are counted.

    Attributes
    ----------
    path
        Parquet file or folder.
    truth
        Takes entries, and returns the known share of women's pronouns of each; None where nobody
        knows it.
    profile
        Whose captions they are: ``planted`` or ``paper``.
    missing
        Why these stand in where others were wanted, and what to do; else empty.
    """

    path: Path
    truth: Callable[[Sequence[str]], np.ndarray] | None = None
    profile: str = "paper"
    missing: str = ""

    @property
    def checksum(self) -> str:
        """12 hexadecimal digits of the files' names and sizes: terabytes are not read twice."""
        files = corpora.caption_files(self.path)
        listing = "\n".join(f"{path.name} {path.stat().st_size}" for path in files)
        return hashlib.sha256(listing.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Retrieval:
    """Cosines and rankings of a run, of which scores are made.

    Attributes
    ----------
    similarities
        (k words, n portraits), float32.
    ranking
        Portraits nearest to each word, nearest first, deeper than k for resampling.
    k
        How many count as retrieved.
    """

    similarities: np.ndarray = field(repr=False)
    ranking: np.ndarray = field(repr=False)
    k: int

    def intervals(self, members: np.ndarray, statistic: str, units, n_resamples: int, rng):
        """Return intervals that draw units anew: :func:`biaslib.inference.bootstrap_top_k`."""
        return inference.bootstrap_top_k(
            self.ranking, members, self.k, statistic, units, n_resamples=n_resamples, rng=rng
        )


@dataclass(frozen=True)
class Audit:
    """A run: its inputs, model, words (one row a word and type), retrieval, tidy scores, store."""

    given: Inputs
    model: Any = field(repr=False)
    table: pandas.DataFrame = field(repr=False)
    retrieval: Retrieval
    scores: pandas.DataFrame = field(repr=False)
    store: runtime.Store | None = field(default=None, repr=False)

    def c_asc(self, captions: Sequence[str], facet: str = "gender") -> np.ndarray:
        """Return C-ASC of other captions, (k, groups of the facet)."""
        image = embed_images(self.model, self.given.portraits, self.store)
        text = embed_texts(self.model, self.given.model_case(captions), self.store)
        return caption_association.c_asc(text @ image.T, self.given.groups[facet].to_numpy())


def parts(size: str = "full") -> list[Part]:
    """Return what the study reads in ``paper``, of one size: see :func:`fetch`."""
    if size == "taste":
        portraits = "0.25/validation-*"
        return [
            weights(TASTE_MODEL),
            data_of_hub("FairFace", "HuggingFaceM4/FairFace", portraits, "fairface", 0.07),
        ]
    return [
        data_of_hub("FairFace", "HuggingFaceM4/FairFace", "0.25/train-*", "fairface", 0.5),
        data_of_hub(
            "a file of COYO-700M",
            "kakaobrain/coyo-700m",
            "data/part-00000-*",
            "captions",
            1.05,
            "the captions behind the words are those of the planted world",
        ),
        weights("open-clip"),
    ]


def fetch(size: str | None = None) -> pandas.DataFrame:
    """Download what the study reads in ``paper``, unless it is here already.

    FairFace's training portraits, crop 0.25 (0.5 GB, ``HuggingFaceM4/FairFace``), the first of the
    128 files of COYO-700M (1.05 GB, 5.8 million captions, ``kakaobrain/coyo-700m``), and the
    weights; for a taste the validation portraits and the weights of a small CLIP.

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
        If the hub does not give what the study cannot go without.
    """
    return fetched(parts(runtime.size(size)))


def recorded(run: runtime.Provenance) -> Recorded:
    """Run the study as its chapter does, and return what goes into its record."""
    given = inputs("paper", size=run.size)
    model = load_model(given)
    run.record(data={given.dataset: given.checksum}, weights={model.name: model.revision})
    found, counts = audit(given, model=model, n_resamples=N_RESAMPLES), {}
    with tempfile.TemporaryDirectory() as scratch:
        corpus = given.captions(scratch)
        shares = source_of_bias(corpus.path, found.table)
        run.record(data={f"captions ({corpus.profile})": corpus.checksum})
    if not corpus.missing:
        counts = {"hamidieh2023_laion_pronouns": pronoun_counts(shares)}
    return Recorded([found.scores], *given.asked_and_there, counts=counts)


def inputs(profile: str | None = None, **settings: Any) -> Inputs:
    """Return what the study reads in a profile: the same call for both.

    Parameters
    ----------
    profile
        ``planted`` (:func:`plantedworld.inputs.study3_clip_audit.inputs`) or ``paper``
        (:func:`paper_inputs`); ``None`` takes that of the run.
    **settings
        Of either; what the other profile alone knows is left out.

    Raises
    ------
    UnknownNameError
        If no profile knows a setting.
    DataError
        If a facet has one group only.
    """
    given = provided_inputs("study3_clip_audit", profile, settings)
    given.groups  # noqa: B018  A facet with one group is refused here, before hours of embedding.
    return given


def paper_inputs(
    crop: str = "0.25",
    split: str | None = None,
    model: str | None = None,
    checkpoint: str | Path | None = None,
    size: str | None = None,
) -> Inputs:
    """Return FairFace in the data folder ``fairface``, with OpenCLIP ViT-H/14.

    Captions are those of the data folder ``captions``; where there is none, those of the planted
    world at dose 3 stand in, and :attr:`Corpus.missing` says so.

    Parameters
    ----------
    crop, split
        Of FairFace; None takes ``train``, and for a taste ``validation``.
    model, checkpoint
        Any dual encoder, as :func:`biaslib.models.load` takes it; None takes the paper's, and for a
        taste :data:`TASTE_MODEL`.
    size
        ``full`` or ``taste``, which has the first 1,000 portraits; None takes that of the run.

    Raises
    ------
    FileNotFoundError, DataError
        If the data are not there, or not as they should be; the message says what to do.
    """
    taste = runtime.size(size) == "taste"
    split = split or ("validation" if taste else "train")
    people = fairface.read_fairface(runtime.data_folder("fairface"), split, crop)
    of_people = f"FairFace {split}, crop {crop}"
    if taste:
        people = people.head(TASTE_PORTRAITS).reset_index(drop=True)
        of_people += f", the first {len(people):,}"
    chosen = {"name": model or (TASTE_MODEL if taste else "open-clip"), "profile": "paper"}
    return Inputs(
        profile="taste" if taste else "paper",
        dataset=of_people,
        model=chosen | ({"checkpoint": checkpoint} if checkpoint else {}),
        people=people,
        portraits=fairface.FairFaceImages(people),
        words=words(outside=True),
        facets={
            "gender": "gender",
            "race": "race",
            "age": "age",
            "gender x race": ["gender", "race"],
        },
        labels={**fairface.LABELS, "gender": ("Female", "Male")},
        gender=("Female", "Male"),
        k=min(100, len(people) // 10),
        innocent=innocent_captions(),
        captions=_captions,
        units=np.arange(len(people)),
    )


def _captions(folder: str | Path) -> Corpus:
    """Return the corpus of the data folder, or that of the planted world and what is missing."""
    try:
        return Corpus(runtime.data_folder("captions"))
    except FileNotFoundError as error:
        return replace(runtime.provider("planted").captions(folder), missing=str(error))


def innocent_captions(things: Sequence[str] | None = None) -> pandas.DataFrame:
    """Return captions without social meaning: how high is C-ASC for these?

    Portraits of two groups differ in clothing, light and background, and any caption lies a little
    nearer to one of them. These are things chosen by hand
    (:func:`biaslib.stimuli.innocent_things`), unless others are given. Their captions are those of
    objects and do not say "person", as those of adjectives and activities do.

    Returns
    -------
    pandas.DataFrame
        ``word``, ``bias_type`` ("none"), ``kind`` and ``caption``.
    """
    things = stimuli.innocent_things() if things is None else things
    captions = [stimuli.caption(word, "object") for word in things]
    table = pandas.DataFrame({"word": things, "caption": captions})
    return table.assign(bias_type="none", kind="object")


def words(outside: bool = False) -> pandas.DataFrame:
    """Return the taxonomy, a row a word and type, with its caption in the models' spelling.

    Parameters
    ----------
    outside
        Add the words that the paper's tables print under a type that its taxonomy does not give
        them: :func:`biaslib.stimuli.printed_outside`.

    Examples
    --------
    >>> words().groupby("bias_type", sort=False).size().to_dict()["Activity"]
    20
    """
    table = stimuli.taxonomy("sobit")
    if not outside:
        return table
    return pandas.concat([table, stimuli.printed_outside()], ignore_index=True)


def load_model(given: Inputs) -> Any:
    """Return the dual encoder of a run."""
    return models.load(**given.model)


def embed_images(model: Any, images: Pictures, store: runtime.Store | None = None) -> np.ndarray:
    """Return one unit vector a portrait, (n, d), computed once for all runs.

    A run that is killed repeats one step at most: 512 portraits, and 4,096 on CUDA devices.
    """
    on_cuda = str(getattr(model, "device", "")).startswith("cuda")
    return stored.cached_outputs(
        model,
        "image embeddings",
        lambda rows, portraits: model.encode_image(portraits),
        images=images,
        store=store,
        shard_size=4096 if on_cuda else 512,
    )


def embed_texts(model: Any, texts: Sequence[str], store: runtime.Store | None = None) -> np.ndarray:
    """Return one unit vector a caption, (k, d), computed once for all runs."""
    texts = list(texts)

    def ask(which: list[int], images: None) -> np.ndarray:
        return model.encode_text([texts[row] for row in which])

    return stored.cached_outputs(model, "text embeddings", ask, texts=texts, store=store)


def retrieve(text: np.ndarray, image: np.ndarray, k: int) -> Retrieval:
    """Return cosines of captions (k, d) and portraits (n, d), and rankings with some to spare."""
    similarities = (text @ image.T).astype(np.float32)
    depth = len(image) if len(image) <= SMALL else min(len(image), 2 * k + SPARE)
    return Retrieval(similarities, caption_association.top_k(similarities, depth), k)


def score(
    retrieval: Retrieval,
    given: Inputs,
    table: pandas.DataFrame,
    model: Any,
    *,
    ddof: int = 1,
    n_resamples: int = 1_000,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return tidy scores of every word and group: C-ASC, share, skew and entropy.

    Parameters
    ----------
    retrieval
        As of :func:`retrieve`.
    given
        The run's inputs.
    table
        The words: ``word``, ``bias_type``, ``kind``, ``caption``, in the order of ``retrieval``.
    model
        For its name and revision.
    ddof
        Of C-ASC.
    n_resamples
        Resamples of units.
    seed
        Of the resamples.

    Returns
    -------
    pandas.DataFrame
        Tidy scores, one row a statistic, word (*test*), facet (*level*) and *group*; *n* portraits;
        *bias_type*, *kind*, *p_adjusted*, *few*. ``c_asc``, ``share`` (of the k retrieved) and
        ``skew`` (log of its ratio to the share in the data set, one portrait added) a group;
        ``entropy`` a facet, its group "all", without interval. Intervals, of 95%, draw
        :attr:`Inputs.units` anew; a group of one unit has none for C-ASC, and one of one portrait
        none at all. p-values take
        the same units: for C-ASC Welch's test of their means, where no unit belongs to the group
        with some portraits only; for shares the hypergeometric test, where each portrait is a
        unit. They are adjusted (Benjamini and Yekutieli) over all words and groups of a facet and
        statistic, where two groups share one test of a word. *few*: the group, or the rest, has
        fewer than :data:`FEW` units, so that interval and p-value of C-ASC do not hold
        their level where scores are skewed (:ref:`the table of levels <levels>`).
    """
    rng, units = np.random.default_rng(seed), given.units
    nearest = retrieval.ranking[:, : retrieval.k]
    everyone = pandas.concat(given.groups, axis=1)
    columns = _of_groups(retrieval, everyone.to_numpy(), units, ddof, n_resamples, rng)
    few = pandas.Series(few_units(everyone.to_numpy(), units), everyone.columns)
    parts = []
    for facet, groups in given.groups.items():
        place = everyone.columns.get_loc(facet)
        for statistic, numbers in columns.items():
            of_facet = (each[:, place] for each in numbers)
            rows = _rows(table, facet, groups.columns, statistic, *of_facet)
            parts.append(rows.assign(few=rows["group"].map(few[facet])))
        counts = caption_association.top_k_composition(nearest, groups.to_numpy()).counts
        even = caption_association.entropy(counts)[:, None]
        parts.append(_rows(table, facet, ["all"], "entropy", even).assign(few=False))
    labels = {"study": STUDY, "model": model.name, "revision": model.revision}
    labels |= {"profile": given.profile, "dataset": given.dataset}
    return tidy(pandas.concat(parts, ignore_index=True), **labels, n=len(given.people), seed=seed)


def _of_groups(retrieval: Retrieval, members, units, ddof: int, n_resamples: int, rng):
    """Return value, low, high and p-value, (k, g) each, of the statistics that a group has."""
    seed = rng.integers(2**32)
    c_asc = c_asc_intervals(retrieval.similarities, members, units, ddof, n_resamples, seed)
    share = retrieval.intervals(members, "share", units, n_resamples, rng)
    for bounds in (*c_asc[1:], share.low, share.high):
        bounds[:, members.sum(axis=0) < 2] = np.nan
    top = retrieval.ranking[:, : retrieval.k]
    composition = caption_association.top_k_composition(top, members)
    chance = caption_association.representation(composition).p_value
    if len(np.unique(units)) < len(units):
        chance = np.full(chance.shape, np.nan)  # Portraits of one unit are not drawn one by one.
    return {
        "c_asc": (*c_asc, _unit_p_values(retrieval.similarities, members, units)),
        "share": (share.estimate, share.low, share.high, chance),
        "skew": (caption_association.skew_at_k(composition, smoothing=1.0),),
    }


def _rows(table, facet, groups, statistic, value, low=np.nan, high=np.nan, p_value=None):
    """Return the scores of a statistic: words outside, groups inside."""
    words_ = table[["word", "bias_type", "kind"]].rename(columns={"word": "test"})
    rows = words_.loc[words_.index.repeat(len(groups))].reset_index(drop=True)
    nothing = np.full(value.shape, np.nan)
    adjusted = nothing if p_value is None else _adjusted(p_value)
    numbers = {"value": value, "low": low, "high": high}
    numbers |= {"p_value": nothing if p_value is None else p_value, "p_adjusted": adjusted}
    return rows.assign(
        level=facet,
        group=np.tile(np.asarray(groups, dtype=object), len(table)),
        statistic=statistic,
        **{name: np.broadcast_to(each, value.shape).ravel() for name, each in numbers.items()},
    )


def _adjusted(p_values: np.ndarray) -> np.ndarray:
    """Return p-values, (words, groups), corrected; of two groups both have the same, taken once."""
    there = ~np.isnan(p_values[0])
    adjusted = np.full(p_values.shape, np.nan)
    if p_values.shape[1] == 2 and there.any():
        adjusted[:] = inference.adjust(p_values[:, :1], "by")
    elif there.any():
        adjusted[:, there] = inference.adjust(p_values[:, there], "by")
    return adjusted


def _unit_p_values(similarities: np.ndarray, members: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return Welch's p-values over units, (k, g); NaN for groups that part a unit's portraits."""
    of_units = pandas.DataFrame(members).groupby(np.asarray(units))
    whole = (of_units.min() == of_units.max()).all().to_numpy()
    p_values = np.full((len(similarities), members.shape[1]), np.nan)
    p_values[:, whole] = welch_p_values(*unit_means(similarities, members[:, whole], units))
    return p_values


def few_units(members: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return for each group whether it, or the rest, has fewer than :data:`FEW` units.

    Parameters
    ----------
    members
        (n, g).
    units
        (n,), as :attr:`Inputs.units`.

    Returns
    -------
    numpy.ndarray
        (g,).

    Examples
    --------
    >>> women = np.arange(60)[:, None] < [30, 19]
    >>> few_units(women, np.arange(60)).tolist(), few_units(women, np.arange(60) // 2).tolist()
    ([False, True], [True, True])
    """
    sides = (np.asarray(members, dtype=bool), ~np.asarray(members, dtype=bool))
    of_units = (pandas.DataFrame(side).groupby(np.asarray(units)).any().sum() for side in sides)
    return np.minimum(*of_units).to_numpy() < FEW


def c_asc_intervals(similarities: np.ndarray, members, units, ddof: int, n_resamples: int, seed):
    """Return C-ASC with bounds, (k, g) each, some words at a time; all see the same resamples."""
    parts = []
    for start in range(0, len(similarities), WORDS_AT_ONCE):
        block = similarities[start : start + WORDS_AT_ONCE]
        interval = inference.bootstrap_c_asc(
            block, members, ddof, units, n_resamples=n_resamples, rng=seed
        )
        parts.append((interval.estimate, interval.low, interval.high))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def audit(
    given: Inputs,
    *,
    model: Any = None,
    n_resamples: int = 1_000,
    seed: int = 0,
    store: runtime.Store | None = None,
) -> "Audit":
    """Return the audit of the whole taxonomy: embeddings through the store, rankings, scores.

    In ``paper`` the words that are printed outside of their type are scored too: see :func:`words`.
    The model is loaded if none is given.
    """
    model, table = model or load_model(given), given.words
    image = embed_images(model, given.portraits, store)
    text = embed_texts(model, given.model_case(table["caption"]), store)
    retrieval = retrieve(text, image, given.k)
    scores = score(retrieval, given, table, model, n_resamples=n_resamples, seed=seed)
    return Audit(given, model, table, retrieval, scores, store)


def welch_p_values(similarities: np.ndarray, members: np.ndarray) -> np.ndarray:
    r"""Return two-sided p-values of the difference of means that C-ASC standardises.

    Welch's test of a group's portraits against all others, with :math:`s^2` the variances within:

    .. math:: t = \frac{\bar d_G - \bar d_{\bar G}}
              {\sqrt{s_G^2 / |G| + s_{\bar G}^2 / |\bar G|}}

    Parameters
    ----------
    similarities
        (k, n).
    members
        (n, g), true where the portrait belongs to the group.

    Returns
    -------
    numpy.ndarray
        (k, g). Groups of a single portrait, or all but one, have 1; where neither side has any
        spread, it is 0 if their means differ and 1 if not.

    Examples
    --------
    >>> women = np.array([[True], [True], [True], [False], [False], [False]])
    >>> welch_p_values(np.array([[3.0, 4, 5, 1, 2, 3]]), women).round(4)
    array([[0.0705]])
    """
    cells, cell = np.unique(np.asarray(members, dtype=bool), axis=0, return_inverse=True)
    order, sizes = np.argsort(cell.ravel(), kind="stable"), np.bincount(cell.ravel())
    p_values = np.ones((len(similarities), cells.shape[1]))
    for start in range(0, len(similarities), WORDS_AT_ONCE):
        rows = slice(start, start + WORDS_AT_ONCE)
        scores = np.asarray(similarities[rows], dtype=np.float64)
        scores = scores[:, order] - scores[:, :1]  # So that equal scores are exactly 0 apart.
        moments = _cell_moments(scores, sizes)
        for column, own in enumerate(cells.T):
            if 1 < sizes[own].sum() < sizes.sum() - 1:
                sides = (_joined(*moments, sizes, side) for side in (own, ~own))
                test = stats.ttest_ind_from_stats(*itertools.chain(*sides), equal_var=False)
                p_values[rows, column] = np.nan_to_num(test.pvalue, nan=1.0)
    return p_values


def _cell_moments(scores: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sum of squares about it, (k, cells) each, of cells that follow each other."""
    first = np.cumsum(sizes) - sizes
    means = np.add.reduceat(scores, first, axis=1) / sizes
    apart = scores - np.repeat(means, sizes, axis=1)
    return means, np.add.reduceat(apart**2, first, axis=1)


def _joined(means: np.ndarray, squares: np.ndarray, sizes: np.ndarray, which: np.ndarray):
    """Return mean, standard deviation and number of some cells taken together."""
    means, squares, sizes = means[:, which], squares[:, which], sizes[which]
    n = sizes.sum()
    mean = means @ sizes / n
    squares = squares.sum(axis=1) + (means - mean[:, None]) ** 2 @ sizes
    return mean, np.sqrt(squares / (n - 1)), n


def unit_means(
    similarities: np.ndarray, members: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean cosines of units of several portraits, and who belongs to which group.

    A test on these takes each unit once, however many portraits there are of it.

    Parameters
    ----------
    similarities
        (k, n).
    members
        (n, g), the same for all portraits of a unit.
    units
        (n,), as :attr:`Inputs.units`.

    Returns
    -------
    tuple
        Means (k, u) and membership (u, g), in the order of the sorted units.

    Raises
    ------
    ValueError
        If portraits of one unit belong to different groups.

    Examples
    --------
    >>> women = np.array([[True], [True], [False]])
    >>> means, members = unit_means(np.array([[0.1, 0.3, 0.4]]), women, np.array([7, 7, 8]))
    >>> means.round(2).tolist(), members.ravel().tolist()
    ([[0.2, 0.4]], [True, False])
    """
    order = np.argsort(units, kind="stable")
    _, first, sizes = np.unique(np.asarray(units)[order], return_index=True, return_counts=True)
    scores = np.asarray(similarities, dtype=np.float64)[:, order]
    belongs = np.asarray(members)[order]
    shares = np.add.reduceat(belongs.astype(float), first) / sizes[:, None]
    if not np.isin(shares, (0, 1)).all():
        raise ValueError("portraits of one unit belong to different groups")
    return np.add.reduceat(scores, first, axis=1) / sizes, belongs[first]


def rejections(retrieval: Retrieval, given: Inputs, level: float = 0.05) -> pandas.DataFrame:
    """Return how many tests of C-ASC reject, by facet and by what counts as a unit.

    Parameters
    ----------
    retrieval, given
        Of a run.
    level
        Of the tests.

    Returns
    -------
    pandas.DataFrame
        One row a facet and unit (each portrait; and :attr:`Inputs.units` where these hold several):
        *facet*, *unit*, *n* units, *tests*; how many p-values of Welch's test are below the level,
        *uncorrected* and *corrected* (Benjamini and Yekutieli, over words and groups; two groups
        share one test of a word, which is corrected once and counted for each).
    """
    units = {"portraits": np.arange(len(given.people))}
    if len(np.unique(given.units)) < len(given.people):
        units[given.unit_name] = given.units
    rows = []
    for (facet, members), (name, numbers) in itertools.product(given.groups.items(), units.items()):
        means, belongs = unit_means(retrieval.similarities, members.to_numpy(), numbers)
        p_values = welch_p_values(means, belongs)
        counts = [int((each < level).sum()) for each in (p_values, _adjusted(p_values))]
        rows.append((facet, name, len(belongs), p_values.size, *counts))
    names = ["facet", "unit", "n", "tests", "uncorrected", "corrected"]
    return pandas.DataFrame(rows, columns=names)


def erasure(
    retrieval: Retrieval,
    members: pandas.DataFrame,
    table: pandas.DataFrame,
    below: float = ERASED,
    n_resamples: int = 200,
    seed: int = 0,
    units: np.ndarray | None = None,
) -> pandas.DataFrame:
    """Return for how many words each group is hardly ever retrieved: section F's question.

    Parameters
    ----------
    retrieval
        As of :func:`retrieve`.
    members
        A facet's groups, as of :attr:`Inputs.groups`.
    table
        The words, in the order of ``retrieval``.
    below
        Hardly: a share below this part of the group's share in the data set.
    n_resamples, seed
        Of the intervals, which draw units anew; resamples without a member of the group are left
        out. Resampling makes extremes more frequent than they are, so that the bounds lie rather
        high.
    units
        As :attr:`Inputs.units`.

    Returns
    -------
    pandas.DataFrame
        One row a type of bias and group, and one a group over ``"all"`` types: *words*, how many
        have the group hardly retrieved, with *low* and *high*; *by_chance*, how many would be if
        k portraits were drawn at random for each; *n*, of how many words.
    """
    rng = np.random.default_rng(seed)
    interval = retrieval.intervals(members.to_numpy(), "ratio", units, n_resamples, rng)
    sizes = members.sum().to_numpy()
    below = below * (1 - 1e-12)  # A ratio of just this much is not below, however it rounds.
    limit = np.ceil(below * retrieval.k * sizes / len(members)) - 1
    chance = stats.hypergeom.cdf(limit, len(members), sizes, retrieval.k)
    tables = []
    for name in ["all", *dict.fromkeys(table["bias_type"])]:
        chosen = (table["bias_type"] == name).to_numpy() | (name == "all")
        values = interval.values[:, chosen]
        # In a resample without a member of the group nobody can be erased, or not.
        resampled = np.where(np.isnan(values), np.nan, values < below).sum(axis=1)
        low, high = np.nanquantile(resampled, [0.025, 0.975], axis=0)
        counts = {
            "words": (interval.estimate[chosen] < below).sum(axis=0),
            "low": low,
            "high": high,
        }
        counts |= {"by_chance": chosen.sum() * chance, "n": int(chosen.sum())}
        tables.append(pandas.DataFrame({"bias_type": name, "group": members.columns} | counts))
    return pandas.concat(tables, ignore_index=True)


def source_of_bias(
    corpus: str | Path,
    table: pandas.DataFrame,
    groups: Mapping[str, Sequence[str]] = corpora.PRONOUNS,
    both: str = "left out",
    **options: Any,
) -> pandas.DataFrame:
    """Return, word by word, captions with the word and the women's share of pronouns: section 5.

    Parameters
    ----------
    corpus
        Parquet file or folder.
    table
        The words.
    groups, both
        As of :func:`biaslib.datasets.group_counts` and :func:`biaslib.datasets.proportions`.
    **options
        Of :func:`biaslib.datasets.group_counts`.

    Returns
    -------
    pandas.DataFrame
        *word*, *captions*, the groups' columns, *both*; *share* of the first group with *low* and
        *high* (Clopper and Pearson), and *n*. ``attrs`` as of the counts.
    """
    counts = corpora.group_counts(corpus, table["word"].unique().tolist(), groups, **options)
    shares = corpora.proportions(counts, both)
    joined = counts.join(shares.drop(columns="word"))
    joined.attrs = counts.attrs
    return joined


def pronoun_counts(shares: pandas.DataFrame) -> pandas.DataFrame:
    """Return counted captions in the form of the paper's Table 1.

    Parameters
    ----------
    shares
        Of :func:`source_of_bias`.

    Returns
    -------
    pandas.DataFrame
        *word*, *male* and *female* (per cent of the captions with pronouns of one gender), their
        *low* and *high*, and *images*, the captions; words without any are left out.

    Raises
    ------
    ValueError
        If the groups that were counted are not *female* and *male*, in this order.
    """
    groups = [name for name in shares.columns if name in ("female", "male")]
    if groups != ["female", "male"]:
        raise ValueError(
            "Table 1 is of the pronouns of women and men: count with groups named 'female' and "
            f"'male', in this order; these are {', '.join(groups) or 'others'}"
        )
    counted = shares[shares["n"] > 0]
    ends = {"": ("share", "share"), " low": ("low", "high"), " high": ("high", "low")}
    table = {"word": counted["word"].str.lower(), "images": counted["n"].astype(int)}
    for name, (women, men) in ends.items():
        table |= {f"female{name}": 100 * counted[women], f"male{name}": 100 * (1 - counted[men])}
    return pandas.DataFrame(table).reset_index(drop=True)
