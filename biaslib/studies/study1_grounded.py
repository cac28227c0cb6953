"""Study 1: grounded association tests (Ross, Katz and Barbu 2021), on any model that embeds.

A test is six sets of texts with images. :func:`planted_stimuli` takes them from the planted world,
:func:`image_stimuli` from images on this disk; :func:`run` embeds them once for each masking and
scores every experiment, with the p-value of the paper and with those that respect what moves
together: the words, or the pictures.
"""

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import plantedworld
from biaslib import datasets, inference, models, runtime, stimuli
from biaslib.datasets import GroundedTest
from biaslib.metrics.association import cosines
from biaslib.metrics.grounded import GroundedResult, grounded
from biaslib.models.stored import store_key
from biaslib.runtime import progress, unknown_name
from biaslib.studies import _study1_files as files
from biaslib.studies import _study1_regions as regions
from biaslib.studies import _study1_released as released
from biaslib.studies._study1_files import RELEASED, SETS
from plantedworld.models import checkpoints as planted_checkpoints

__all__ = [
    "BASELINES",
    "DOMAINS",
    "EXPERIMENTS",
    "LEVELS",
    "MASKINGS",
    "MODELS",
    "SETS",
    "VARIANTS",
    "EmbeddedSets",
    "GroundedStimuli",
    "ImagePool",
    "Inputs",
    "available_models",
    "averaged",
    "checkpoint",
    "embed",
    "image_stimuli",
    "inputs",
    "numerator",
    "planted_regions",
    "planted_signs",
    "planted_stimuli",
    "run",
    "score",
    "score_released",
    "tests",
]

MODELS = ("visualbert", "vilbert", "lxmert", "vl-bert")
"""The models of the paper, in the order of its Table 4."""

BASELINES = ("bert", "all-MiniLM-L6-v2")
"""Text encoders, which see no image."""

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

EXCHANGES = 20_000
"""Exchanges drawn for Experiment 3 where they are too many to be counted."""

ACCURACY = 0.05
"""Relative error up to which a computed p-value is taken as it is: they are compared with 5%."""

FLAT = 1e-9
"""Range of scores below which they count as equal: what rounding leaves of a difference of 0."""

SHARD = 256
"""Embeddings that a kill may lose."""


@dataclass(frozen=True)
class ImagePool:
    """Images that several tests share.

    ``images`` is what a model takes: a frame of planted scenes, region features, or a list of
    paths. ``ids`` name them by their content; ``kind`` says what was made of them, and by what.
    """

    images: Any
    ids: tuple[str, ...]
    kind: str

    def take(self, rows: np.ndarray) -> Any:
        """Return some of the images."""
        if isinstance(self.images, pandas.DataFrame):
            return self.images.iloc[rows].reset_index(drop=True)
        return [self.images[row] for row in rows] if self._listed else self.images[rows]

    @property
    def _listed(self) -> bool:
        return isinstance(self.images, list)


@dataclass(frozen=True)
class GroundedStimuli:
    """The stimuli of one test at one level.

    ``rows`` has one row a text with its image: *set* (one of the six), *text*, *word* and *image*,
    its place in the pool. ``hidden`` are the words that Experiment 3 hides.
    """

    test: str
    level: str
    rows: pandas.DataFrame
    pool: ImagePool
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


def planted_signs(seed: int) -> pandas.DataFrame:
    """Return what is planted on each test in the worlds of a seed: +1, -1 or 0.

    Even seeds plant the direction that the source of a test names, odd seeds the other one. Nothing
    is planted on the tests of the pair of sets that the seed leaves out, nor on occupations by
    tone.

    Returns
    -------
    pandas.DataFrame
        *test*, *sign*, and *control*, whether nothing is planted.

    Examples
    --------
    >>> signs = planted_signs(0).set_index("test")["sign"]
    >>> int(signs["occupation-gender"]), int(signs["C6"])
    (1, 0)
    """
    left_out = plantedworld.controls()[seed % len(plantedworld.controls())]
    rows = []
    for name in tests()["test"]:
        direction, pair = _direction(name)
        sign = 0 if pair == left_out else -direction * (1 if seed % 2 == 0 else -1)
        rows.append({"test": name, "sign": sign, "control": sign == 0})
    return pandas.DataFrame(rows)


@functools.cache
def _direction(name: str) -> tuple[int, str]:
    """Return where the planted set of a test leans (1: women, or tone 5), and its pair."""
    axis = {"gender": "gender", "race": "tone", "race and gender": "interaction"}
    test, words = stimuli.association_test(name), stimuli.word_frame()
    of_set = words.groupby("set")["word"].agg(frozenset)
    for row in plantedworld.planted_sets().itertuples():
        if of_set[row.set] in (frozenset(test.A), frozenset(test.X)):
            return int(getattr(row, axis[test.kind])), row.pair
    raise ValueError(f"no set of the test {name} is planted; add it to planted_sets.csv")


def planted_stimuli(
    names: Sequence[str] | None = None,
    levels: Sequence[str] = LEVELS,
    n_per_word: int = 1,
    n_texts: int | None = 2,
    seed: int = 0,
    split: str = "held out",
) -> list[GroundedStimuli]:
    """Return tests with scenes of the planted world: people in the context of every word.

    Parameters
    ----------
    names
        Of the 13 tests of study 1; ``None`` takes all.
    levels
        Of ``word``, ``sentence`` and ``contextual``; they share their scenes.
    n_per_word
        Scenes a word and set.
    n_texts
        Sentences a word; ``None`` takes all. Sentences and scenes take turns.
    seed
        Of the scenes.
    split
        Whose looks: see :func:`plantedworld.looks`.

    Returns
    -------
    list of GroundedStimuli
        Level by level, with one pool of images.

    Raises
    ------
    UnknownNameError
        If there is no such test or level.

    Examples
    --------
    >>> (one,) = planted_stimuli(["C6"], ["word"])
    >>> one.rows.groupby("set").size().to_dict()
    {'Ax': 8, 'Ay': 8, 'Bx': 8, 'By': 8, 'X': 8, 'Y': 8}
    """
    names = list(tests()["test"]) if names is None else list(names)
    scenes = pandas.concat(
        [_scenes_of(name, n_per_word, seed, split) for name in names], ignore_index=True
    )
    shown = scenes.drop(columns=["test", "set", "word", "drawn"])
    pool = ImagePool(shown, _scene_ids(shown), "planted scenes")
    return [
        _with_texts(name, level, scenes[scenes["test"] == name], n_texts, pool)
        for level in levels
        for name in names
    ]


def _scenes_of(name: str, n_per_word: int, seed: int, split: str) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    found = plantedworld.grounded_sets(name, rng, n_per_word, undrawn="context", split=split)
    return pandas.concat([found[each].assign(test=name, set=each) for each in SETS])


def _scene_ids(scenes: pandas.DataFrame) -> tuple[str, ...]:
    """Return ids by what is shown: the row of a scene, and the one white picture."""
    lines = scenes.to_json(orient="records", lines=True).splitlines()
    hashes = [hashlib.sha256(line.encode()).hexdigest()[:24] for line in lines]
    return tuple(np.where(scenes["blank"].eq(True), "white", hashes))


def _with_texts(name, level, scenes, n_texts, pool) -> GroundedStimuli:
    texts = _texts(name, level)
    rows = []
    for (set_name, word), part in scenes.groupby(["set", "word"], sort=False):
        said = texts[set_name[0]][word][:n_texts]
        n = max(len(said), len(part))
        pairs = zip(np.resize(said, n), np.resize(part.index, n), strict=True)
        rows += [(set_name, str(text), word, image) for text, image in pairs]
    hidden = tuple(dict.fromkeys(word for role in "XYAB" for word in texts[role]))
    table = pandas.DataFrame(rows, columns=["set", "text", "word", "image"])
    return GroundedStimuli(name, level, table, pool, hidden)


def _texts(name: str, level: str) -> dict[str, dict[str, list[str]]]:
    """Return the texts of each word: set -> word -> texts."""
    found = stimuli.association_test(name, level)
    texts: dict[str, dict[str, list[str]]] = {role: {} for role in "XYAB"}
    for role in "XYAB":
        for text, word in zip(getattr(found, role), found.words[role], strict=True):
            texts[role].setdefault(word, []).append(text)
    return texts


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
    paths = pandas.concat([pairs[["path", "sha256"]] for _, pairs in found])
    paths = paths.assign(path=paths["path"].map(str)).drop_duplicates("path", ignore_index=True)
    pool = ImagePool(paths["path"].tolist(), tuple(paths["sha256"]), "files")
    place = pandas.Series(paths.index, index=paths["path"])
    return [
        _with_images(test, pairs, level, pool, place)
        for level in levels
        for test, pairs in found
        if level in test.levels
    ]


def _with_images(test, pairs, level, pool, place) -> GroundedStimuli:
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
    return GroundedStimuli(name, level, rows, pool, test.contextual_words)


def planted_regions(
    every: Sequence[GroundedStimuli], style: str = "twemoji"
) -> list[GroundedStimuli]:
    """Return stimuli whose planted scenes are read as regions, once for all region models.

    Parameters
    ----------
    every
        From one call of :func:`planted_stimuli`.
    style
        How they are drawn: one of ``plantedworld.STYLES``.
    """
    from plantedworld.models import regions as found

    def read(scenes: pandas.DataFrame) -> Any:
        corners = plantedworld.boxes(scenes).to_numpy(dtype=float).reshape(len(scenes), -1, 4)
        return found.regions_of(plantedworld.draw(scenes, style=style), corners)

    return _reread(every, read, f"planted regions, {style}, {_drawing()}")


def _reread(every, read: Callable[[Any], Any], kind: str) -> list[GroundedStimuli]:
    """Read every distinct image of a pool once."""
    pool = every[0].pool
    _, first, place = np.unique(pool.ids, return_index=True, return_inverse=True)
    made = ImagePool(read(pool.take(first))[place], pool.ids, kind)
    return [replace(each, pool=made) for each in every]


_POOLS: dict[tuple[str, ...], ImagePool] = {}
"""The regions of one pool at most, which takes 0.3 MB a picture."""


def _taken(model: Any, pool: ImagePool, rows: np.ndarray) -> Any:
    """Return images of a pool; of files, the regions that the model takes of them, read once."""
    from biaslib.models.regions import RegionFeatures, SharedRegions

    if pool.kind == "files" and not getattr(model, "reads_pixels", True):
        key = (model.detector.name, model.detector.revision, *pool.ids)
        if key not in _POOLS:
            _POOLS.clear()
            _POOLS[key] = replace(pool, images=model.regions_of(pool.images))
        pool = _POOLS[key]
    shared = isinstance(pool.images, RegionFeatures) and not getattr(model, "reads_pixels", True)
    return SharedRegions(pool.images, rows) if shared else pool.take(rows)


@functools.cache
def _drawing() -> str:
    """Return a hash of what scenes are drawn with."""
    return runtime.source_hash(Path(plantedworld.__file__).parent)


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
        A :class:`biaslib.models.capabilities.GroundedEncoder`; a text encoder with
        ``with_images=False``.
    every
        The stimuli, with one pool of images.
    masking
        One of :data:`MASKINGS`.
    with_images
        False gives the model the texts alone: the ungrounded baseline.
    store
        Where embeddings are kept; ``None`` takes the usual one.
    variant
        One of :data:`VARIANTS`.
    **options
        Passed on to the model's ``embed``, such as ``stream="both"``; ``released`` takes none.

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
    embedder = kind(model, masking, with_images, store or runtime.Store(), options)
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
    store: runtime.Store
    options: dict[str, Any]

    def hidden(self, sets: GroundedStimuli) -> tuple[str, ...]:
        return sets.hidden if self.masking == "words" else ()

    def __call__(self, every: list[GroundedStimuli]) -> Iterable[EmbeddedSets]:
        rows = pandas.concat([sets.rows for sets in every], ignore_index=True)
        shown = np.array(every[0].pool.ids)[rows["image"]] if self.with_images else ""
        word = rows["word"] if every[0].level == "contextual" else ""
        ids = rows["text"] + "\x1f" + word + "\x1f" + shown
        vectors = self.store.rows(
            self._key(every[0]),
            ids.tolist(),
            functools.partial(self._compute, every[0], rows),
            max(SHARD, 4 * getattr(self.model, "batch_size", 0)),
        )
        ends = np.cumsum([len(sets.rows) for sets in every])[:-1]
        for sets, part in zip(every, np.split(vectors, ends), strict=True):
            yield _split(sets, part.astype(float), self.masking)

    def _key(self, sets: GroundedStimuli) -> dict[str, Any]:
        kind = sets.pool.kind if self.with_images else "none"
        return store_key(
            self.model,
            "grounded embedding",
            level=sets.level,
            masking=self.masking,
            hidden=list(self.hidden(sets)),
            images=f"{kind}, {self._reader(kind)}",
            **self.options,
        )

    def _reader(self, kind: str) -> str:
        """Return what stands between an image and the model: how it is drawn, or the detector."""
        if kind == "files":
            return getattr(getattr(self.model, "detector", None), "revision", "")
        return _drawing() if kind.startswith("planted") else ""

    def _compute(self, sets: GroundedStimuli, rows: pandas.DataFrame, which: list[int]):
        wanted, options = rows.iloc[which], dict(self.options)
        if self.masking != "none":
            from biaslib.models.fusion import Mask

            options["mask"] = Mask(self.hidden(sets), persons=self.masking == "persons")
        if self.with_images:
            options["images"] = _taken(self.model, sets.pool, wanted["image"].to_numpy())
        if sets.level == "contextual":
            options["words"] = wanted["word"].tolist()
        return self.model.embed(wanted["text"].tolist(), level=sets.level, **options)


class _ReleasedEmbedder(_Embedder):
    """As the released code: it needs the test's words to find places and labels, too."""

    def hidden(self, sets: GroundedStimuli) -> tuple[str, ...]:
        asked = self.masking != "none" or sets.level == "contextual"
        return sets.hidden if asked else ()

    def _compute(self, sets: GroundedStimuli, rows: pandas.DataFrame, which: list[int]):
        wanted = rows.iloc[which]
        at = wanted["image"].to_numpy()
        images = _taken(self.model, sets.pool, at) if self.with_images else None
        options = {"words": self.hidden(sets), "masking": self.masking, **self.options}
        return self.model.embed(wanted["text"].tolist(), images, sets.level, **options)


def _is_released(variant: str) -> bool:
    if variant not in VARIANTS:
        raise unknown_name("variant", variant, VARIANTS)
    return variant == "released"


def _split(sets: GroundedStimuli, vectors: np.ndarray, masking: str) -> EmbeddedSets:
    word, image = sets.rows["word"].to_numpy(), np.array(sets.pool.ids)[sets.rows["image"]]
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
) -> dict[str, object]:
    """Return one row of scores of an experiment.

    All p-values are computed and not sampled as long as that can be done, one-sided, and to a
    relative error of 5% where less would take long; *p_low* and *p_high* enclose them. *p_value*
    takes every text with an image as a unit, as the released code does; *p_value_words* and
    *p_value_images* keep together what shares a target word, or a picture. Those of Experiments 1
    and 2 relabel targets; those of Experiment 3 exchange a target's own attribute set with the
    other one.

    Parameters
    ----------
    sets
        Embedded stimuli.
    experiment
        1, 2 or 3.
    n_bootstrap
        Resamples of target and attribute words for the interval; 0 leaves it out.
    seed
        Of the resamples.
    p_values
        Whether they are wanted.

    Returns
    -------
    dict
        *value* (effect size; NaN where the scores have no spread), *low* and *high* (95%,
        percentile, target and attribute words resampled), *numerator* (what the effect size
        divides by the spread), *p_value* with *p_low*, *p_high* and *p_method*, *p_value_words*,
        *p_value_images* (NaN where a picture is in both target sets), *p_value_attributes* (of
        Experiment 2, words as units: a relabelled target takes the attribute images of its new
        label), *n* (texts with an image), *n_words*, *n_images* of the targets.
    """
    row = _described(sets, experiment, seed)
    result = _defined(sets, experiment)
    if result is None:
        return row | {"value": np.nan, "numerator": 0.0, "low": np.nan, "high": np.nan}
    low, high = _interval(sets, experiment, n_bootstrap, seed)
    found = {"value": result.effect_size, "low": low, "high": high, "numerator": numerator(result)}
    return row | found | (_p_values(result, sets, seed) if p_values else {})


def score_released(
    sets: EmbeddedSets, experiment: int, seed: int = 0, p_values: bool = True
) -> list[dict[str, object]]:
    """Return an experiment's rows of scores as the released code computes them.

    One row; of Experiment 3 two, a signed effect size for each target set, in the column
    *statistic*. *p_value* is one-sided, takes every text with an image as a unit, and is sampled:
    99,999 shuffles and one for the order observed, ties counted. Up to 20 targets a set it
    is that of all partitions. Experiment 3's is 1 whatever the data.

    Parameters
    ----------
    sets, experiment, p_values
        As of :func:`score`.
    seed
        Of the shuffles; the released code has none.
    """
    row, result = _described(sets, experiment, seed), _defined(sets, experiment)
    if result is None:
        return [row | {"value": np.nan}]
    return [row | each for each in released.rows(result, seed, p_values)]


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
        Further columns, such as dataset or dose.
    variant
        One of :data:`VARIANTS`.
    **settings
        As of :func:`score`, or of :func:`score_released`.

    Returns
    -------
    pandas.DataFrame
        Columns study, model, revision, images, variant, *labels*, and those of :func:`score`.
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
        for sets, experiment in progress(cases, f"{model.name}: scoring"):
            rows += score_released(sets, experiment, **settings)
    return rows


def _labelled(rows, model, with_images, variant, labels) -> pandas.DataFrame:
    named = {"study": "ross2021", "model": model.name, "revision": model.revision}
    shown = {"images": "with" if with_images else "without", "variant": variant}
    scores = pandas.DataFrame(rows)
    first = pandas.DataFrame(named | shown | (labels or {}), index=scores.index)
    return first.join(scores)


def available_models(profile: str | None = None) -> list[str]:
    """Return the paper's models that can be run: in ``planted`` those with shipped checkpoints.

    Examples
    --------
    >>> available_models("paper")
    ['visualbert', 'vilbert', 'lxmert', 'vl-bert']
    """
    if runtime.profile(profile) == "paper":
        return list(MODELS)
    shipped = planted_checkpoints.shipped()
    there = set(shipped.loc[(shipped["dose"] == 3) & (shipped["seed"] == 0), "family"])
    return [name for name in MODELS if models.REGISTRY[name].family in there]


class Inputs(dict):
    """The stimuli of each model, with what is wrong with their files.

    Attributes
    ----------
    problems
        One row a problem: *severity*, *kind*, *where* (source, file and set), *what*.
    left
        One row a set: *source*, *test*, *file*, *set*; *n_images* and *n_captions* of all,
        *images_left*, *captions_left*, *share*; *run*, the levels at which the test is run.
    asked
        One row a test and level that was asked for: *source*, *test*, *level* and *outcome*:
        ``run``, ``not there``, or which sets have no image.

    All three are empty in ``planted``, where nothing can be missing.
    """

    def __init__(
        self, every: dict[str, list[GroundedStimuli]], found: files.Checked | None = None
    ) -> None:
        super().__init__(every)
        found = found or files.none_checked()
        self.problems, self.left, self.asked = found.problems, found.left, found.asked


def inputs(
    profile: str | None = None,
    domain: str = "out of domain",
    names: Sequence[str] | None = None,
    only_sound: bool = False,
    own: str | Path | None = None,
    variant: str = "paper",
    **sizes,
) -> Inputs:
    """Return the stimuli of each model of a profile.

    In ``planted``, out of domain are looks that training did not show, in domain those that it
    did. In ``paper``, out of domain are images of Google searches, in domain those of COCO or
    Conceptual Captions, below :func:`biaslib.runtime.data_folder` of ``ross2021``:
    ``tests/grounded-tests/<google, coco or concap>/*.jsonl`` with the images below
    ``images/<google, coco or concap>``. The models look at them through the detector, unless there
    is a file of a model's regions, ``regions/<google, coco or concap>/<name of the weights>`` (see
    :func:`checkpoint`) with an ending that :func:`biaslib.models.region_files.read` knows, or a
    folder; a file ``objects_vocab.txt`` beside
    it names the detector's classes.

    Parameters
    ----------
    profile
        ``planted`` or ``paper``; ``None`` takes that of the run.
    domain
        One of :data:`DOMAINS`.
    names
        Of the 13 tests; ``None`` takes all, in ``paper`` those whose files are there.
    only_sound
        Run on what is there, where tests or images are missing or cannot be opened. A test of which
        a set has nothing left is not run, and is listed; in domain, so is a model without tests.
    own
        In ``paper``, a folder of your own to take out of domain in place of Google's images: a
        folder a test, such as ``C6``, filled as :func:`biaslib.datasets.user_test` says; regions
        are then in its folder ``regions``.
    variant
        One of :data:`VARIANTS`: with ``released``, VisualBERT is ``visualbert-nlvr2``, which reads
        1,024 numbers a region and no pictures. Without a file of them it is left out, and listed.
    **sizes
        Of the planted sets, as of :func:`planted_stimuli`.

    Returns
    -------
    Inputs
        Model -> stimuli, with tables of what is wrong and of what is left.

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
    _require_tests(names)
    profile = runtime.profile(profile)
    chosen = available_models(profile)
    if profile == "planted":
        split = "held out" if domain == DOMAINS[0] else "train"
        sizes = sizes | {"names": names}
        kept = {key: tuple(v) if isinstance(v, list) else v for key, v in sizes.items()}
        return Inputs(dict.fromkeys(chosen, _planted_inputs(split, tuple(sorted(kept.items())))))
    google = "google" if own is None else Path(own)
    sources = dict.fromkeys(chosen, google) if domain == DOMAINS[0] else IN_DOMAIN
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
    asked = {name: every[sources[name]] for name in chosen if sources[name] in every}
    places = {name: _regions_folder(sources[name]) for name in chosen}
    shown, wrong = _shown(asked, places, _is_released(variant))
    datasets.require_sound(wrong, "the regions of study 1", only_sound)
    problems = pandas.concat([found.problems, wrong], ignore_index=True)
    return Inputs(shown, replace(found, problems=problems))


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
    return shown, pandas.DataFrame(wrong, columns=files.none_checked().problems.columns)


def checkpoint(name: str, profile: str | None = None, variant: str = "paper") -> str:
    """Return the registered name of the weights that a model of the study has.

    Examples
    --------
    >>> checkpoint("vilbert", "paper", "released"), checkpoint("vilbert", "planted", "released")
    ('vilbert-beta', 'vilbert')
    """
    if runtime.profile(profile) == "planted" or not _is_released(variant):
        return name
    from biaslib.models.released import RELEASED

    return RELEASED[name].checkpoint


def _require_tests(names: Sequence[str] | None) -> None:
    for name in names or ():
        if name not in set(tests()["test"]):
            raise unknown_name("test", name, tests()["test"])


@functools.lru_cache(maxsize=4)
def _planted_inputs(split: str, sizes: tuple) -> list[GroundedStimuli]:
    """Draw and read the scenes of a call once: later ones ask for the same again."""
    return planted_regions(planted_stimuli(split=split, **dict(sizes)))


def _p_values(result: GroundedResult, sets: EmbeddedSets, seed: int) -> dict[str, object]:
    items = _tested(result, seed)
    words = _tested(averaged(result, sets.words), seed)
    by_images = _by_images(result, sets, items.p_value, seed)
    found = {
        "p_value": items.p_value,
        "p_low": items.low,
        "p_high": items.high,
        "p_method": items.method,
        "p_value_words": words.p_value,
        "p_value_images": by_images,
    }
    if result.experiment == 2:
        by_words = averaged(result, sets.words)
        relabelled = inference.grounded_permutation_test(
            by_words, "new attributes", accuracy=ACCURACY
        )
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


def _tested(result: GroundedResult, seed: int):
    if result.experiment == 3:
        return inference.exchange_test(result, n_resamples=EXCHANGES, rng=seed)
    return inference.grounded_permutation_test(result, accuracy=ACCURACY)


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
    sets: EmbeddedSets, experiment: int, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Resample target and attribute words; the rows of a word stay together."""
    if not n_resamples:
        return np.nan, np.nan
    near = {
        (one, other): cosines(sets.embeddings[one], sets.embeddings[other])
        for one in "XY"
        for other in SETS[2:]
    }
    labels = [*(sets.words[name] for name in "XY"), *_attribute_words(sets)]
    known = [np.unique(each) for each in labels]
    owners = {
        name: np.searchsorted(known["XYAB".index(name[0])], sets.words[name]) for name in SETS
    }

    def statistic(*drawn: np.ndarray) -> np.ndarray:
        weights = {name: drawn["XYAB".index(name[0])][owners[name]] for name in SETS}
        return _weighted(near, weights, experiment)

    found = inference.bootstrap(
        statistic, [len(each) for each in known], n_resamples=n_resamples, rng=seed
    )
    return found.low, found.high


def _attribute_words(sets: EmbeddedSets) -> list[np.ndarray]:
    return [np.concatenate([sets.words[f"{each}x"], sets.words[f"{each}y"]]) for each in "AB"]


def _weighted(near, weights, experiment: int) -> np.ndarray:
    """Return effect sizes with every row counted as often as the weights say: (r,)."""

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
        np.abs(_mean(mine, weights[t]) - _mean(theirs, weights[t]))
        for t, mine, theirs in zip("XY", own, other, strict=True)
    ]
    both = [weights[t] for t in "XYXY"]
    return sum(shifts) / 2 / _spread([*own, *other], both)


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
