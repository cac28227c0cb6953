"""Study 3: the audit of CLIP with SO-B-IT (Hamidieh et al. 2023), and the captions behind it.

Words in captions against portraits of labelled groups: C-ASC, who is retrieved, how evenly; with
intervals, a correction over words and groups, and the choices that the paper leaves open. Then the
captions of a corpus: with whose pronouns does a word stand?

From the command line, ``python -m biaslib.studies.study3_clip_audit`` computes the embeddings of a
run into the store, to be found there by the notebook; ``accelerate launch -m
biaslib.studies.study3_clip_audit`` does so on several GPUs; ``--model`` and ``--checkpoint`` take
any dual encoder.
"""

import argparse
import functools
import hashlib
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
from biaslib.models import processes, stored
from biaslib.models.images import Pictures, reader_id
from biaslib.studies._inputs import provided_inputs
from biaslib.studies.scores import tidy

__all__ = [
    "COST",
    "ERASED",
    "FEW",
    "TEMPLATES",
    "Audit",
    "Corpus",
    "Inputs",
    "Retrieval",
    "audit",
    "chance_correlation",
    "cost",
    "embed_images",
    "embed_texts",
    "erasure",
    "innocent_captions",
    "inputs",
    "load_model",
    "log_odds",
    "other_crops",
    "paper_inputs",
    "rejections",
    "retrieve",
    "score",
    "sensitivity",
    "source_of_bias",
    "unit_means",
    "welch_p_values",
    "words",
]

STUDY = "hamidieh2023"
ERASED = 0.2
"""A group is called hardly retrieved for a word if its share is below this part of its share in
the data set. Ours: section F of the paper says "few" and gives no number."""

FEW = 10
"""Groups of fewer portraits are named: resampled intervals are too narrow there."""

WORDS_AT_ONCE = 64
SPARE = 50
SMALL = 1_000
"""Up to so many portraits are ranked to the last: units of several portraits use up more."""

TEMPLATES = {
    "adjective template for all": "a photo of {a} {word} person",
    "noun template for all": "a photo of {a} {word}",
}
"""Captions of the sensitivity analysis, in place of the paper's, which go by the kind of a word.

:meta hide-value:
"""


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
    crops
        Returns the same portraits in other crops, by name.
    units
        What intervals draw anew, a number for each portrait: portraits of one drawing stay
        together.
    lower_case
        Whether the models know lower case only.
    no_captions
        Why there is no corpus of captions, and what to do; else empty.
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
    crops: Callable[[], Mapping[str, Pictures]]
    units: np.ndarray = field(repr=False)
    lower_case: bool = False
    no_captions: str = ""
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
            there = sizes.index[sizes > 0]
            if len(there) < 2:
                raise DataError(_one_group(facet, sizes))
            tables[facet] = fairface.membership(self.people, by, there)
        return tables

    def sizes(self, facet: str) -> pandas.Series:
        """Return how many portraits each possible group of a facet has, none included."""
        return fairface.group_sizes(self.people, self.facets[facet], self.labels)

    def spelt(self, texts: Sequence[str]) -> list[str]:
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
        found = [
            each["what"]
            for each in self.people.attrs.get("problems", ())
            if each["severity"] == "note"
        ]
        for facet in self.facets:
            sizes = self.sizes(facet)
            empty, small = sizes.index[sizes == 0], sizes[sizes.between(1, FEW - 1)]
            if len(empty):
                found.append(f"{facet}: no portrait is labelled {_quoted(empty)}; left out")
            if len(small):
                counts = [f"{name!r} ({n})" for name, n in small.sort_values().items()]
                found.append(
                    f"{facet}: {len(small)} of {len(sizes)} groups have fewer than {FEW} "
                    f"portraits, {runtime.first_few(counts, most=4)}: their intervals are "
                    "too narrow, and a group of one has none"
                )
        return found


def _quoted(names: Sequence[str]) -> str:
    return runtime.first_few([repr(name) for name in names], most=4)


def _one_group(facet: str, sizes: pandas.Series) -> str:
    there = ", ".join(f"{name!r} has {n:,}" for name, n in sizes[sizes > 0].items())
    empty = _quoted(sizes.index[sizes == 0])
    return (
        f"{facet}: no portrait is labelled {empty} ({there}), so that there is nothing to compare. "
        "Take the whole split, or leave the facet out: dataclasses.replace(given, facets=...)"
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
        said = "\n".join(f"{path.name} {path.stat().st_size}" for path in files)
        return hashlib.sha256(said.encode()).hexdigest()[:12]


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


@dataclass(frozen=True)
class Audit:
    """A run: its inputs, model, words (one row a word and type), retrieval and tidy scores."""

    given: Inputs
    model: Any = field(repr=False)
    table: pandas.DataFrame = field(repr=False)
    found: Retrieval
    scores: pandas.DataFrame = field(repr=False)

    def c_asc(self, captions: Sequence[str], facet: str = "gender") -> np.ndarray:
        """Return C-ASC of other captions, (k, groups of the facet)."""
        image = embed_images(self.model, self.given.portraits)
        text = embed_texts(self.model, self.given.spelt(captions))
        return caption_association.c_asc(text @ image.T, self.given.groups[facet].to_numpy())


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
    split: str = "train",
    model: str | None = None,
    checkpoint: str | Path | None = None,
    equal: bool = False,
    seed: int = 0,
) -> Inputs:
    """Return FairFace in the data folder ``fairface``, with OpenCLIP ViT-H/14.

    Captions are those of the data folder ``captions``; where there is none, those of the planted
    world at dose 3 stand in, and :attr:`Corpus.missing` says so.

    Parameters
    ----------
    crop, split
        Of FairFace.
    model, checkpoint
        Any dual encoder, as :func:`biaslib.models.load` takes it; None takes the paper's.
    equal
        Draw as many portraits from every intersection of gender and race as the smallest has.
    seed
        Of that draw.

    Raises
    ------
    FileNotFoundError, DataError
        If the data are not there, or not as they should be; the message says what to do.
    """
    people, noted = _fairface(crop, split), {}
    dataset = f"FairFace {split}, crop {crop}"
    if equal:
        noted = people.attrs
        people = fairface.equal_groups(people, ["gender", "race"], rng=seed)
        people.attrs, dataset = noted, f"{dataset}, equal groups"
    chosen = {"name": model or "open-clip", "profile": "paper"}
    missing = _missing_captions()
    return Inputs(
        profile="paper",
        dataset=dataset,
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
        captions=functools.partial(_captions, missing),
        crops=functools.partial(_other_crop, people),
        no_captions=missing,
        units=np.arange(len(people)),
    )


def _fairface(crop: str, split: str) -> pandas.DataFrame:
    people = fairface.read_fairface(runtime.data_folder("fairface"), split, crop)
    return people.assign(place=range(len(people)))


def _other_crop(people: pandas.DataFrame) -> dict[str, Pictures]:
    """Return the same people in FairFace's other crop; nothing if the folder has one only.

    Raises
    ------
    DataError
        If the other crop's portraits have other labels, so that they cannot be paired, or are not
        as they should be.
    """
    split, crop = people["split"].iloc[0], people["crop"].iloc[0]
    other = next(each for each in fairface.CROPS if each != crop)
    if not fairface.has_crop(runtime.data_folder("fairface"), split, other):
        return {}
    every, places = _fairface(other, split), people["place"].to_numpy()
    again = every.iloc[places[places < len(every)]].reset_index(drop=True)
    labels = list(fairface.LABELS)
    if not again[labels].equals(people[labels]):
        raise DataError(
            f"the crops {crop} and {other} of the split {split} hold different portraits, or "
            "in another order: take both from one release"
        )
    return {f"crop {other}": fairface.FairFaceImages(again)}


def _missing_captions() -> str:
    try:
        runtime.data_folder("captions")
    except FileNotFoundError as error:
        return str(error)
    return ""


def _captions(missing: str, folder: str | Path) -> Corpus:
    if missing:
        return replace(runtime.provider("planted").captions(folder), missing=missing)
    return Corpus(runtime.data_folder("captions"))


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
    """Return the dual encoder of a run, on a device of its own if several processes share it."""
    processes.which_process()
    return models.load(**given.model)


def embed_images(
    model: Any,
    images: Pictures,
    store: runtime.Store | None = None,
    shard_size: int | None = None,
) -> np.ndarray:
    """Return one unit vector a portrait, (n, d), computed once for all runs.

    A run that is killed repeats one step at most; None takes steps of 512, and of 4,096 on CUDA
    devices. If several processes were launched, each computes its share of those that are not there
    yet.
    """
    on_cuda = str(getattr(model, "device", "")).startswith("cuda")

    def embedded(some: Pictures) -> np.ndarray:
        return stored.answers(
            model,
            "image embeddings",
            lambda which, shown: model.encode_image(shown),
            images=some,
            store=store,
            shard_size=shard_size or (4096 if on_cuda else 512),
        )

    if processes.which_process()[1] > 1:
        key = stored.store_key(model, "image embeddings", images=reader_id(model, images))
        missing = (store or runtime.Store()).missing(key, images.ids)
        processes.wait_for_all()  # All have seen the same before anybody writes.
        own = [missing[at] for at in processes.own_share(len(missing))]
        if own:
            embedded(images.part(own))
        processes.wait_for_all()
    return embedded(images)


def embed_texts(model: Any, texts: Sequence[str], store: runtime.Store | None = None) -> np.ndarray:
    """Return one unit vector a caption, (k, d), computed once for all runs."""
    texts = list(texts)

    def ask(which: list[int], images: None) -> np.ndarray:
        return model.encode_text([texts[row] for row in which])

    return stored.answers(model, "text embeddings", ask, texts=texts, store=store)


def other_crops(
    model: Any, given: Inputs, store: runtime.Store | None = None
) -> dict[str, np.ndarray]:
    """Return embeddings of the same people in other crops, by name; none where there is one crop.

    Raises
    ------
    DataError
        If the other crop's portraits cannot be paired with these.
    """
    return {name: embed_images(model, images, store) for name, images in given.crops().items()}


def retrieve(text: np.ndarray, image: np.ndarray, k: int) -> Retrieval:
    """Return cosines of captions (k, d) and portraits (n, d), and rankings with some to spare."""
    similarities = (text @ image.T).astype(np.float32)
    depth = len(image) if len(image) <= SMALL else min(len(image), 2 * k + SPARE)
    return Retrieval(similarities, caption_association.top_k(similarities, depth), k)


def score(
    found: Retrieval,
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
    found
        As of :func:`retrieve`.
    given
        The run's inputs.
    table
        The words: ``word``, ``bias_type``, ``kind``, ``caption``, in the order of ``found``.
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
        *bias_type*, *kind*, *p_adjusted*. ``c_asc``, ``share`` (of the k retrieved) and ``skew``
        (log of its ratio to the share in the data set, one portrait added) a group; ``entropy`` a
        facet, its group "all". p-values: Welch's test for C-ASC, the hypergeometric test for
        shares; adjusted (Benjamini and Yekutieli) over all words and groups of a facet and
        statistic, where two groups share one test of a word; both take each portrait for a unit.
        Intervals, of 95%, draw :attr:`Inputs.units` anew; a group of one unit has none for C-ASC,
        and one of one portrait none at all.
    """
    rng = np.random.default_rng(seed)
    everyone = pandas.concat(given.groups.values(), axis=1)
    asked = (found.similarities, everyone.to_numpy(), given.units)
    intervals = c_asc_intervals(*asked, ddof, n_resamples, rng.integers(2**32))
    p_values = welch_p_values(found.similarities, everyone.to_numpy())
    shares = _resampled(found, everyone.to_numpy(), given.units, "share", n_resamples, rng)
    alone = everyone.to_numpy().sum(axis=0) < 2
    for bounds in (*intervals[1:], shares.low, shares.high):
        bounds[:, alone] = np.nan
    top = found.ranking[:, : found.k]
    rows, start = [], 0
    for facet, members in given.groups.items():
        columns = slice(start, start + members.shape[1])
        start += members.shape[1]
        composition = caption_association.top_k_composition(top, members.to_numpy())
        test = caption_association.representation(composition)
        skew = caption_association.skew_at_k(composition, smoothing=1.0)
        nothing = np.full(skew.shape, np.nan)
        parts = {
            "c_asc": (*(part[:, columns] for part in intervals), p_values[:, columns]),
            "share": (test.shares, shares.low[:, columns], shares.high[:, columns], test.p_value),
            "skew": (skew, nothing, nothing, nothing),
        }
        rows += [_tidy(table, facet, members.columns, name, *part) for name, part in parts.items()]
        even = _resampled(found, members.to_numpy(), given.units, "entropy", n_resamples, rng)
        bounds = (np.asarray(each)[:, None] for each in (even.estimate, even.low, even.high))
        rows.append(_tidy(table, facet, ["all"], "entropy", *bounds, nothing[:, :1]))
    scores = pandas.concat(rows, ignore_index=True)
    labels = {"study": STUDY, "model": model.name, "revision": model.revision}
    labels |= {"profile": given.profile, "dataset": given.dataset}
    return tidy(scores, **labels, n=len(given.people), seed=seed)


def _tidy(table, facet, names, statistic, value, low, high, p_value) -> pandas.DataFrame:
    """Return the rows of a statistic: words outside, groups inside."""
    adjusted = np.full(p_value.shape, np.nan)
    if np.isfinite(p_value).all():
        adjusted = _adjusted(p_value)
    words_ = table.loc[table.index.repeat(len(names)), ["word", "bias_type", "kind"]]
    columns = {
        "test": words_["word"].to_numpy(),
        "level": facet,
        "bias_type": words_["bias_type"].to_numpy(),
        "kind": words_["kind"].to_numpy(),
        "group": np.tile(np.asarray(names, dtype=object), len(table)),
        "statistic": statistic,
    }
    numbers = {"value": value, "low": low, "high": high}
    numbers |= {"p_value": p_value, "p_adjusted": adjusted}
    return pandas.DataFrame(columns | {key: each.ravel() for key, each in numbers.items()})


def _adjusted(p_values: np.ndarray) -> np.ndarray:
    """Return p-values, (words, groups), corrected; of two groups both have the same, taken once."""
    if p_values.shape[1] == 2:
        return np.repeat(inference.adjust(p_values[:, :1], "by"), 2, axis=1)
    return inference.adjust(p_values, "by")


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


def _resampled(found: Retrieval, members, units, statistic: str, n_resamples: int, rng):
    return inference.bootstrap_top_k(
        found.ranking, members, found.k, statistic, units, n_resamples=n_resamples, rng=rng
    )


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
    text = embed_texts(model, given.spelt(table["caption"]), store)
    found = retrieve(text, image, given.k)
    scores = score(found, given, table, model, n_resamples=n_resamples, seed=seed)
    return Audit(given, model, table, found, scores)


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
    scores = np.asarray(similarities, dtype=np.float64)
    inside = np.asarray(members, dtype=bool)
    rounding = (4 * np.finfo(float).eps * np.abs(scores).max(axis=1)) ** 2
    found = np.empty((len(scores), inside.shape[1]))
    for column, own in enumerate(inside.T):
        sides = [scores[:, own], scores[:, ~own]]
        apart = sides[0].mean(axis=1) - sides[1].mean(axis=1)
        errors, freedoms = [], []
        for side in sides:
            n = side.shape[1]
            variance = side.var(axis=1) * n / (n - 1) if n > 1 else np.full(len(side), np.nan)
            errors.append(np.where(variance <= rounding, 0.0, variance) / n)
            freedoms.append(n - 1)
        error = errors[0] + errors[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(apart**2 <= 4 * rounding, 0.0, np.abs(apart)) / np.sqrt(error)
            freedom = error**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
        found[:, column] = 2 * stats.t.sf(t, np.where(error > 0, freedom, 1.0))
    return np.nan_to_num(found, nan=1.0)


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


def rejections(found: Retrieval, given: Inputs, level: float = 0.05) -> pandas.DataFrame:
    """Return how many tests of C-ASC reject, by facet and by what counts as a unit.

    Parameters
    ----------
    found, given
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
    ways = {"portraits": np.arange(len(given.people))}
    if len(np.unique(given.units)) < len(given.people):
        ways[given.unit_name] = given.units
    rows = []
    for facet, members in given.groups.items():
        for name, units in ways.items():
            means, belongs = unit_means(found.similarities, members.to_numpy(), units)
            p_values = welch_p_values(means, belongs)
            adjusted = _adjusted(p_values)
            rows.append(
                {"facet": facet, "unit": name, "n": len(belongs), "tests": p_values.size,
                 "uncorrected": int((p_values < level).sum()),
                 "corrected": int((adjusted < level).sum())}
            )  # fmt: skip
    return pandas.DataFrame(rows)


def erasure(
    found: Retrieval,
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
    found
        As of :func:`retrieve`.
    members
        A facet's groups, as of :attr:`Inputs.groups`.
    table
        The words, in the order of ``found``.
    below
        Hardly: a share below this part of the group's share in the data set.
    n_resamples, seed
        Of the intervals, which draw units anew. Resampling makes extremes more frequent than they
        are, so that the bounds lie rather high.
    units
        As :attr:`Inputs.units`.

    Returns
    -------
    pandas.DataFrame
        One row a type of bias and group, and one a group over ``"all"`` types: *words*, how many
        have the group hardly retrieved, with *low* and *high*; *by_chance*, how many would be if
        k portraits were drawn at random for each; *n*, of how many words.
    """
    interval = _resampled(
        found, members.to_numpy(), units, "ratio", n_resamples, np.random.default_rng(seed)
    )
    sizes = members.sum().to_numpy()
    below = below * (1 - 1e-12)  # A ratio of just this much is not below, however it rounds.
    limit = np.ceil(below * found.k * sizes / len(members)) - 1
    chance = stats.hypergeom.cdf(limit, len(members), sizes, found.k)
    rows = []
    for name in ["all", *dict.fromkeys(table["bias_type"])]:
        chosen = (
            np.ones(len(table), bool) if name == "all" else (table["bias_type"] == name).to_numpy()
        )
        counts = (interval.values[:, chosen] < below).sum(axis=1)
        low, high = np.quantile(counts, [0.025, 0.975], axis=0)
        words_ = (interval.estimate[chosen] < below).sum(axis=0)
        for column, group in enumerate(members):
            rows.append(
                {"bias_type": name, "group": group, "words": int(words_[column]),
                 "low": low[column], "high": high[column],
                 "by_chance": chosen.sum() * chance[column], "n": int(chosen.sum())}
            )  # fmt: skip
    return pandas.DataFrame(rows)


def sensitivity(
    model: Any,
    given: Inputs,
    table: pandas.DataFrame,
    found: Retrieval,
    other_images: Mapping[str, np.ndarray] | None = None,
    store: runtime.Store | None = None,
) -> pandas.DataFrame:
    """Return how far the scores move when one open choice is made in another way.

    Parameters
    ----------
    model, given, table
        Of the run.
    found
        Its retrieval, made with the paper's template and k.
    other_images
        Embeddings of the same people in other crops, by name.
    store
        Of embeddings.

    Returns
    -------
    pandas.DataFrame
        One row a choice and setting: *statistic* (C-ASC of women, or their share among the
        retrieved); *rank correlation* with the run's own, over words; *mean change* and *largest
        change*, in the statistic's unit; *top 10 kept*, how many of the ten words highest for
        women stay among the ten; *n* words.
    """
    women = given.groups["gender"][[given.gender[0]]].to_numpy()
    base = caption_association.c_asc(found.similarities, women)[:, 0]
    rows = [
        _moved("ddof", "0", base, caption_association.c_asc(found.similarities, women, 0)[:, 0])
    ]
    image = embed_images(model, given.portraits, store)
    for name, template in TEMPLATES.items():
        texts = [template.format(a=stimuli.indefinite_article(w), word=w) for w in table["word"]]
        text = embed_texts(model, given.spelt(texts), store)
        other = caption_association.c_asc(text @ image.T, women)[:, 0]
        rows.append(_moved("template", name, base, other))
    text = embed_texts(model, given.spelt(table["caption"]), store)
    for name, images in (other_images or {}).items():
        other = caption_association.c_asc(text @ images.T, women)[:, 0]
        rows.append(_moved("crop", name, base, other))
    share = _share_of(found.ranking, women, found.k)
    for k in sorted({max(1, found.k // 4), found.k // 2, 2 * found.k} - {found.k, 0}):
        if k <= found.ranking.shape[1]:
            rows.append(_moved("k", str(k), share, _share_of(found.ranking, women, k), "share"))
    return pandas.DataFrame(rows)


def _share_of(ranking: np.ndarray, members: np.ndarray, k: int) -> np.ndarray:
    return caption_association.top_k_composition(ranking[:, :k], members).shares[:, 0]


def _moved(choice: str, setting: str, base, other, statistic: str = "C-ASC") -> dict:
    highest = [set(np.argsort(-values, kind="stable")[:10]) for values in (base, other)]
    change = np.abs(other - base)
    return {
        "choice": choice,
        "setting": setting,
        "statistic": statistic,
        "rank correlation": stats.spearmanr(base, other).statistic,
        "mean change": change.mean(),
        "largest change": change.max(),
        "top 10 kept": len(highest[0] & highest[1]),
        "n": len(base),
    }


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
    there = shares[shares["n"] > 0]
    ends = {"": ("share", "share"), " low": ("low", "high"), " high": ("high", "low")}
    table = {"word": there["word"].str.lower(), "images": there["n"].astype(int)}
    for name, (women, men) in ends.items():
        table |= {f"female{name}": 100 * there[women], f"male{name}": 100 * (1 - there[men])}
    return pandas.DataFrame(table).reset_index(drop=True)


COST = {
    "images": fairface.SPLITS["train"],
    "cpu_seconds": 9.21,
    "cpu_batch": 4,
    "image_gflop": 335.0,
    "efficiency": 0.3,
    "peaks": {
        ("T4", "float32"): 8.1,
        ("T4", "float16"): 65.0,
        ("H100", "float32"): 67.0,
        ("H100", "bfloat16"): 989.0,
    },
}
"""What the estimate reckons with. Measured: seconds of a batch of four pictures by ViT-H/14 at full
size with random weights, one CPU thread (benchmarks/results/full_size.csv). Stated by makers: dense
peaks of T4 and H100 SXM, in 10^12 operations a second; float32 is the default, and
``BIASLIB_PRECISION`` chooses the other. Ours: 335 x 10^9 operations a picture (twice the
multiplications of a ViT-H/14 with 257 tokens), and 30% of the peak.

:meta hide-value:
"""


def cost(n_images: int = COST["images"]) -> pandas.DataFrame:
    """Return how long embedding the portraits takes: measured on a CPU, estimated for two GPUs.

    Examples
    --------
    >>> cost().round(1).values.tolist()[0]
    ['one CPU thread', 'float32', 'measured', 0.4, 55.5]
    """
    rate = COST["cpu_batch"] / COST["cpu_seconds"]
    rows = [("one CPU thread", "float32", "measured", rate)]
    for (name, precision), peak in COST["peaks"].items():
        rate = peak * 1e3 * COST["efficiency"] / COST["image_gflop"]
        rows.append((name, precision, "estimate until measured", rate))
    columns = ["device", "precision", "standing", "images a second"]
    table = pandas.DataFrame(rows, columns=columns)
    return table.assign(hours=n_images / table["images a second"] / 3600)


def log_odds(shares: Sequence[float], n: Sequence[float]) -> np.ndarray:
    """Return log-odds of shares of n, half a count added to either side, so that 0 and 1 have one.

    Examples
    --------
    >>> log_odds([0.5, 1.0], [10, 10]).round(2).tolist()
    [0.0, 3.04]
    """
    k = np.asarray(shares, dtype=float) * np.asarray(n, dtype=float)
    return np.log((k + 0.5) / (np.asarray(n, dtype=float) - k + 0.5))


def chance_correlation(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Return Spearman's correlation with a 95% interval by Fisher's transformation.

    Examples
    --------
    >>> [round(each, 2) for each in chance_correlation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])]
    [0.9, 0.04, 0.99]
    """
    r = float(stats.spearmanr(x, y).statistic)
    return r, *inference.rank_correlation_interval(r, len(x))


def main(arguments: Sequence[str] | None = None) -> None:
    """Embed portraits and captions of a run into the store, and say how many there are."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--profile", choices=runtime.PROFILES, default=None)
    parser.add_argument("--split", default="train")
    parser.add_argument("--crop", default="0.25")
    parser.add_argument("--portraits", type=int, default=30, help="planted: of each group")
    parser.add_argument("--model", help="any dual encoder of the registry")
    parser.add_argument("--checkpoint", help="folder, file or hub repository instead of its own")
    parser.add_argument("--equal", action="store_true", help="paper: equally many of each group")
    options = parser.parse_args(arguments)
    given = inputs(
        options.profile, n_per_cell=options.portraits, crop=options.crop, split=options.split,
        model=options.model, checkpoint=options.checkpoint, equal=options.equal,
    )  # fmt: skip
    model = load_model(given)
    n = len(embed_images(model, given.portraits))
    texts = given.words["caption"]
    n_texts = len(embed_texts(model, given.spelt(texts)))
    number, processes_ = processes.which_process()
    print(f"process {number + 1} of {processes_}: {n} portraits, {n_texts} captions in the store")


if __name__ == "__main__":
    main()
