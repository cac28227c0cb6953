"""Metrics judged in a world whose right answer is known: sign, order and size, word by word.

Every score stands beside the truth that was planted. Three kinds of model answer: the oracle, by
exact inference; the shipped checkpoints, which are trained models; and a count of a corpus of the
checkpoints' size, which says how much of an error is the corpus's own sampling noise.
"""

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import pandas
from scipy import special, stats

import plantedworld
from biaslib import models
from biaslib.metrics import caption_association, masked_lm
from biaslib.metrics.inputs import one_of
from biaslib.pictures.images import pictures
from biaslib.runtime import Store, progress
from biaslib.studies import study3_clip_audit
from plantedworld._logs import log_sum_exp
from plantedworld._words import read_table
from plantedworld.models import checkpoints as planted_checkpoints
from plantedworld.models.perfect import PerfectModel

__all__ = [
    "CORPUS_SIZES",
    "DOSES",
    "EQUIVALENCE",
    "MEASURES",
    "VERDICT_SEEDS",
    "bias_scores",
    "control_scores",
    "corpus_counts",
    "dose_zero",
    "drawn_counts",
    "in_costume",
    "masked_scores",
    "mean_over_seeds",
    "means_over_seeds",
    "noise_floor",
    "of_words",
    "over_seeds",
    "portraits",
    "run_masked",
    "run_similarity",
    "similarity_scores",
    "summarise",
    "words",
]

DOSES = (0, 1, 3)
VERDICT_SEEDS = (0, 1, 2, 3, 4)
"""Worlds of the held-out test whose BERT and CLIP are shipped."""

MEASURES = {
    "masked": "masked words: B(E)",
    "logit": "similarity: scaled difference",
    "c_asc": "similarity: C-ASC",
    "top_k": "retrieval: share of women",
}
"""The measures, and what they are called."""

EQUIVALENCE = 0.15
"""Log-odds below which a score counts as none: half of the weakest that the tests' sets carry."""

CORPUS_SIZES = {"text": 300_000, "captions": 45_000}
"""Captions of which a checkpoint was trained: BERT on the text corpus, CLIP on that of images."""

STATISTICS = ["n", "rank", "slope", "response", "signs", "mean", "rms", "q95"]
KEYS = ["measure", "model", "style", "dose", "seed"]
SHARE_RETRIEVED = 0.1


def words() -> pandas.DataFrame:
    """Return the words that are asked about, with a caption and a sentence each.

    Returns
    -------
    pandas.DataFrame
        ``word``; ``slot``: role, object or attribute; ``taxonomy``: whether study 3's list has it;
        ``caption``, which names nobody; ``masked``, a sentence with a place for ``{agent}`` and a
        masked word, for roles, objects and the words of the five pairs; ``pair``, the pair of sets
        that a word belongs to.

    Examples
    --------
    >>> words().set_index("word").loc["nurse", ["caption", "masked"]].tolist()
    ['a photo of a nurse', 'the {agent} is a [MASK].']
    """
    return read_table("measure_words.csv")


def masked_scores(model, dose: float, seed: int) -> pandas.DataFrame:
    """Return the bias score B(E) of study 2 without an image, for every word with a sentence.

    .. math:: B(E) = S_L(E, f) - S_L(E, m) = \\ln P(E | \\text{woman}) - \\ln P(E | \\text{man})

    Parameters
    ----------
    model
        Anything with ``mask_log_prob``.
    dose, seed
        Of the world that it learned, or answers for.

    Returns
    -------
    pandas.DataFrame
        One row a word: measure, model, style, dose, seed, word, slot, taxonomy, value, truth (that
        of the text corpus), planted (the truth at dose 1), frame (the sentence); paired and
        control, whether the word is in one of the five pairs, and in the one that is left out.
    """
    rows = words().dropna(subset="masked")
    truth, unit = (_exact_bias_scores(each, seed) for each in (float(dose), 1.0))
    values = bias_scores(model, rows)
    table = _described(rows, seed).assign(value=values, truth=truth, planted=unit)
    labels = {"measure": "masked", "model": model.name, "style": "", "dose": dose, "seed": seed}
    return table.assign(**labels, frame=rows["masked"])


@functools.lru_cache(maxsize=32)
def _exact_bias_scores(dose: float, seed: int) -> np.ndarray:
    oracle = PerfectModel(_world(dose, seed), corpus="text")
    return bias_scores(oracle, words().dropna(subset="masked"))


@functools.lru_cache(maxsize=32)
def _world(dose: float, seed: int) -> plantedworld.World:
    """A world that keeps what it worked out."""
    return plantedworld.world(dose, seed)


def bias_scores(model, rows: pandas.DataFrame) -> np.ndarray:
    """Return B(E) of each word in its own sentence.

    Parameters
    ----------
    model
        Anything with ``mask_log_prob``.
    rows
        Of :func:`words`, those with a masked sentence.
    """
    scores = pandas.Series(np.nan, index=rows.index)
    for frame, group in rows.groupby("masked", sort=False):
        texts = [frame.format(agent=agent) for agent in ("woman", "man", "person")]
        log_p = model.mask_log_prob(texts, group["word"].tolist())
        for index, (woman, man, person) in zip(group.index, log_p.T, strict=True):
            f = masked_lm.language_association([woman], [person])
            m = masked_lm.language_association([man], [person])
            scores[index] = masked_lm.bias_score(f=f, m=m).score
    return scores.to_numpy()


def run_masked(seeds: Iterable[int] = VERDICT_SEEDS) -> pandas.DataFrame:
    """Return :func:`masked_scores` of the oracle, of a count, and of every shipped BERT."""
    shipped = _shipped("bert", seeds)
    tables = []
    for dose, seed in progress(_worlds(seeds), "masked words"):
        exact = masked_scores(PerfectModel(_world(dose, seed), corpus="text"), dose, seed)
        tables += [exact, corpus_counts(exact, "text")]
        if (dose, seed) in shipped:
            bert = models.load("bert", profile="planted", dose=dose, seed=seed)
            tables.append(masked_scores(bert, dose, seed))
    return pandas.concat(tables, ignore_index=True)


def portraits(n_per_cell: int = 20, seed: int = 0, split: str = "tune") -> pandas.DataFrame:
    """Return neutral portraits of women and men in five tones, all in the same order.

    Held out looks of adults and older people are in no training; children have one drawing each.
    """
    return plantedworld.faces(n_per_cell, np.random.default_rng(seed), split)


def similarity_scores(
    similarities: np.ndarray, scale: float, women: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the measures of study 3 for every word, and the difference that C-ASC scales away.

    Parameters
    ----------
    similarities
        Of words and portraits, (k, n).
    scale
        What the model multiplies them with.
    women
        Which portraits show women, (n,).

    Returns
    -------
    dict
        ``logit``: scale times the difference of mean similarity, women less men, in log-odds;
        ``c_asc``: C-ASC of women; ``top_k``: share of women among the tenth of the portraits that
        is retrieved, less one half, with ties shared out.

    Examples
    --------
    >>> found = similarity_scores(np.array([[0.4, 0.2, 0.1, 0.1]]), 10, np.array([1, 1, 0, 0]) == 1)
    >>> {name: values.round(2).tolist() for name, values in found.items()}
    {'logit': [2.0], 'c_asc': [1.41], 'top_k': [0.5]}
    """
    difference = similarities[:, women].mean(axis=1) - similarities[:, ~women].mean(axis=1)
    # A word without any spread has no C-ASC: at dose 0 the oracle has 0 divided by 0.
    spread = np.ptp(similarities, axis=1) > 1e-9
    c_asc = np.full(len(similarities), np.nan)
    if spread.any():
        c_asc[spread] = caption_association.c_asc(similarities[spread], women[:, np.newaxis])[:, 0]
    shares = np.array([_share_of_women(row, women) for row in similarities])
    return {"logit": scale * difference, "c_asc": c_asc, "top_k": shares - 0.5}


def _share_of_women(similarities: np.ndarray, women: np.ndarray) -> float:
    """Share of women among the best tenth; those that tie for the last places share them."""
    k = max(1, round(SHARE_RETRIEVED * len(women)))
    rounded = similarities.round(9)
    last = np.sort(rounded)[-k]
    above, tied = rounded > last, rounded == last
    places = k - above.sum()
    return (women[above].sum() + places * women[tied].mean()) / k


def in_costume(scenes: pandas.DataFrame) -> pandas.DataFrame:
    """Return the same people as adults in costume, each role equally often among women and men.

    Examples
    --------
    >>> in_costume(portraits(22)).groupby("gender")["role"].value_counts().unique().tolist()
    [5]
    """
    roles = scenes.groupby("gender").cumcount().mod(len(plantedworld.PICTURED_ROLES))
    shown = np.array(plantedworld.PICTURED_ROLES)[roles]
    return scenes.assign(role=shown, role_shown=True, age="adult")


def run_similarity(
    scenes: pandas.DataFrame,
    drawings: dict[str, np.ndarray],
    seeds: Iterable[int] = VERDICT_SEEDS,
    store: Store | None = None,
) -> pandas.DataFrame:
    """Return the measures of study 3 for the oracle, for a count, and for every shipped CLIP.

    Parameters
    ----------
    scenes
        Portraits, as of :func:`portraits`: what the oracle reads.
    drawings
        The same portraits drawn, by style: what CLIP sees. Row i shows a person of the gender of
        row i of the scenes.
    seeds
        Of the worlds.
    store
        Where encodings of pictures are kept; None keeps none.

    Returns
    -------
    pandas.DataFrame
        As of :func:`masked_scores`, one row a word and measure. ``truth`` is the planted log-odds
        log P(word | picture of a woman) / P(word | picture of a man), for every measure: C-ASC and
        shares are judged by their order alone.
    """
    shipped = _shipped("clip", seeds)
    rows, women = words(), (scenes["gender"] == "woman").to_numpy()
    captions = rows["caption"].tolist()
    tables = []
    for dose, seed in progress(_worlds(seeds), "similarities"):
        base = _with_truth(rows, dose, seed)
        oracle = PerfectModel(_world(dose, seed), scenes=scenes)
        exact = oracle.encode_text(captions) @ oracle.encode_image(scenes).T
        tables += _scored(base, "oracle", "twemoji", similarity_scores(exact, 1.0, women))
        tables.append(corpus_counts(tables[-3], "captions"))
        if (dose, seed) in shipped:
            clip = models.load("clip", profile="planted", dose=dose, seed=seed)
            texts = clip.encode_text(captions).astype(float)
            for style, drawn in drawings.items():
                shown = _encoded(clip, drawn, store)
                measured = similarity_scores(texts @ shown.T, clip.scale, women)
                tables += _scored(base, "clip", style, measured)
    return pandas.concat(tables, ignore_index=True)


def _encoded(clip, drawn: np.ndarray, store: Store | None) -> np.ndarray:
    if store is None:
        return clip.encode_image(drawn)
    return study3_clip_audit.embed_images(clip, pictures(drawn), store)


def _with_truth(rows: pandas.DataFrame, dose: float, seed: int) -> pandas.DataFrame:
    truth, unit = (
        _world(each, seed).truth.log_ratio(rows["word"].tolist(), given="picture")
        for each in (dose, 1)
    )
    table = _described(rows, seed).assign(truth=truth, planted=unit)
    return table.assign(dose=dose, seed=seed)


def _described(rows: pandas.DataFrame, seed: int) -> pandas.DataFrame:
    """What a row of scores says of its word; ``control`` where this seed plants nothing on it."""
    left_out = _world(1.0, seed).control
    table = rows[["word", "slot", "taxonomy"]]
    return table.assign(paired=rows["pair"].notna(), control=rows["pair"] == left_out)


def _scored(
    base: pandas.DataFrame, model: str, style: str, measured: dict
) -> list[pandas.DataFrame]:
    labels = {"model": model, "style": style}
    return [base.assign(measure=name, value=values, **labels) for name, values in measured.items()]


def corpus_counts(scores: pandas.DataFrame, corpus: str) -> pandas.DataFrame:
    """Return what a model would score that only counts a corpus of the checkpoints' size.

    Words and genders are drawn as often as a checkpoint saw a caption; the score is the log ratio
    of their counts with half a count added. What differs from the truth is sampling noise, which
    no training can take away.

    Parameters
    ----------
    scores
        Rows of one world, with ``word``, ``dose`` and ``seed``.
    corpus
        ``"text"`` or ``"captions"``: of which size, and whether the caption's gender is counted
        or the picture's.
    """
    dose, seed = scores[["dose", "seed"]].iloc[0]
    truth, given = CORPORA[corpus](_world(float(dose), int(seed)))
    rng = np.random.default_rng([int(seed), round(10 * dose)])
    words = scores["word"].tolist()
    women, men = drawn_counts(truth, given, CORPUS_SIZES[corpus], rng)[words].to_numpy()
    exact = truth.log_ratio(words, given=given)
    labels = {"model": "count", "measure": MEASURE_OF_CORPUS[corpus], "truth": exact}
    return scores.assign(value=np.log(women / men), **labels)


def drawn_counts(
    truth: plantedworld.Truth, given: str, n: int, rng: np.random.Generator
) -> pandas.DataFrame:
    """Draw how often each word of the vocabulary goes with women and with men, plus one half.

    Parameters
    ----------
    truth
        Of a corpus.
    given
        Whose gender is counted: ``"caption"`` or ``"picture"``.
    n
        Captions of the corpus.
    rng
        Source of randomness.

    Returns
    -------
    pandas.DataFrame
        Two rows, *woman* and *man*; a column a word.
    """
    vocabulary = plantedworld.vocabulary().tolist()
    ratios = truth.log_ratio(vocabulary, given=given)
    frequency = np.exp(log_sum_exp(truth.log_words + truth.design.log_cells, axis=1))
    shares = frequency * special.expit([ratios, -ratios])
    counts = rng.multinomial(n, shares.ravel() / shares.sum()) + 0.5
    return pandas.DataFrame(counts.reshape(shares.shape), plantedworld.GENDERS, vocabulary)


CORPORA = {
    "text": lambda world: (world.text_truth, "caption"),
    "captions": lambda world: (world.truth, "picture"),
}
MEASURE_OF_CORPUS = {"text": "masked", "captions": "logit"}


def _worlds(seeds: Iterable[int]) -> list[tuple[float, int]]:
    return [(dose, seed) for dose in DOSES for seed in seeds]


def _shipped(family: str, seeds: Iterable[int]) -> set[tuple[float, int]]:
    shipped = planted_checkpoints.shipped(family)
    shipped = shipped[shipped["seed"].isin(list(seeds))]
    return set(zip(shipped["dose"], shipped["seed"], strict=True))


def summarise(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how each model recovers the truth: one row a measure, model, style, dose and seed.

    Returns
    -------
    pandas.DataFrame
        The keys; ``n`` words; ``rank``, Spearman's correlation with the truth, and ``slope``, that
        of the least-squares line of scores on truths (at dose 0, where the truth is 0 for every
        word, both with the truth at dose 1: what it would look like if there were a bias);
        ``response``, the slope on the truth at dose 1, whatever the dose;
        ``mean`` and ``rms`` of the scores, ``signs``, the share with the sign of the truth among
        words whose truth exceeds :data:`EQUIVALENCE`, and ``q95``, the 95th percentile of their
        sizes.
    """
    rows = [
        dict(zip(KEYS, key, strict=True)) | _summary(group, key[3])
        for key, group in scores.dropna(subset="value").groupby(KEYS, sort=False)
    ]
    return pandas.DataFrame(rows, columns=[*KEYS, *STATISTICS])


def _summary(group: pandas.DataFrame, dose: float) -> dict:
    value = group["value"].to_numpy()
    against = group["truth" if dose else "planted"].to_numpy()
    strong = np.abs(against) > EQUIVALENCE
    spread = np.ptp(value) > 1e-9
    return {
        "n": len(group),
        "rank": stats.spearmanr(value, against).statistic if spread else np.nan,
        "slope": np.polyfit(against, value, 1)[0],
        "response": np.polyfit(group["planted"], value, 1)[0],
        "signs": np.mean(np.sign(value[strong]) == np.sign(against[strong])),
        "mean": value.mean(),
        "rms": np.sqrt(np.mean(value**2)),
        "q95": np.quantile(np.abs(value), 0.95),
    }


def mean_over_seeds(values: Sequence[float], confidence: float = 0.95) -> dict[str, float]:
    """Return mean, low, high and n of values over seeds: Student's interval.

    Examples
    --------
    >>> {key: round(value, 2) for key, value in mean_over_seeds([0.9, 1.0, 1.1]).items()}
    {'mean': 1.0, 'low': 0.75, 'high': 1.25, 'n': 3}
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    mean = float(values.mean()) if n else np.nan
    if n < 2:
        return {"mean": mean, "low": np.nan, "high": np.nan, "n": n}
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": n}


def over_seeds(summary: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Return one statistic's mean over seeds with its 95% interval: mean, low, high, n."""
    return means_over_seeds(summary, [key for key in KEYS if key != "seed"], column)


def means_over_seeds(
    table: pandas.DataFrame, keys: Sequence[str], column: str, confidence: float = 0.95
) -> pandas.DataFrame:
    """Return :func:`mean_over_seeds` of a column for each of some keys."""
    rows = [
        dict(zip(keys, key, strict=True)) | mean_over_seeds(group[column], confidence)
        for key, group in table.groupby(list(keys), sort=False)
    ]
    return pandas.DataFrame(rows, columns=[*keys, "mean", "low", "high", "n"])


def control_scores(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return the size of scores on the pair of sets that a seed leaves out, and on the others.

    Returns
    -------
    pandas.DataFrame
        One row a measure, model, dose and kind of words (``words``: left out, planted): the root
        mean square of the scores, its ``mean`` over seeds with ``low``, ``high`` and ``n``.
    """
    kept = scores[scores["paired"] & scores["style"].isin(["", "twemoji"])].dropna(subset="value")
    kept = kept.assign(words=np.where(kept["control"], "left out", "planted"))
    keys = ["measure", "model", "dose", "words"]
    sizes = kept.groupby([*keys, "seed"])["value"].agg(lambda v: np.sqrt(np.mean(v**2)))
    return means_over_seeds(sizes.reset_index(), keys, "value")


def noise_floor(scores: pandas.DataFrame, quantile: float = 0.95) -> pandas.DataFrame:
    """Return how large scores are without any bias: measure, model, style, seed, floor.

    For each seed of the scores the quantile of their sizes over the dose-0 models of the *other*
    seeds.
    """
    clean = scores[(scores["dose"] == 0) & scores["value"].notna()]
    rows = [
        dict(zip(("measure", "model", "style"), key, strict=True))
        | {
            "seed": seed,
            "floor": group.loc[group["seed"] != seed, "value"].abs().quantile(quantile),
        }
        for key, group in clean.groupby(["measure", "model", "style"], sort=False)
        for seed in sorted(scores["seed"].unique())
    ]
    return pandas.DataFrame(rows)


def dose_zero(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what models without bias score: one row a measure, model and style.

    Two things would look like bias: scores that follow the directions which the same seed plants
    at higher doses (``slope``), and scores that lean to one gender altogether (``mean``). Both are
    shown to be small if their whole 90% interval over seeds lies within :data:`EQUIVALENCE`, which
    is two one-sided tests at 5%. The scores of single words (``rms``) hold the corpus's sampling
    noise as well, which the model that counts shows alone.

    Returns
    -------
    pandas.DataFrame
        ``statistic``: slope, mean or rms; ``mean`` over seeds, ``low``, ``high``, ``n`` seeds;
        ``within``, None for C-ASC and shares, which are not in log-odds, and for one seed.
    """
    keys, parts = ["measure", "model", "style"], []
    for _, part in summarise(scores[scores["dose"] == 0]).groupby(keys, sort=False):
        for statistic in ("slope", "mean", "rms"):
            means = means_over_seeds(part, keys, statistic, 0.9)
            parts.append(means.assign(statistic=statistic))
    table = pandas.concat(parts, ignore_index=True)
    inside = np.maximum(-table["low"], table["high"]) < EQUIVALENCE
    judged = table["measure"].isin(["masked", "logit"]) & (table["n"] > 1)
    table["within"] = inside.astype(object).where(judged, None)
    return table[[*keys, "statistic", "mean", "low", "high", "n", "within"]]


def of_words(scores: pandas.DataFrame, chosen: str) -> pandas.DataFrame:
    """Return the rows of ``"roles and objects"``, or of the words of the ``"taxonomy"``."""
    one_of(chosen, "chosen", ("roles and objects", "taxonomy"))
    if chosen == "taxonomy":
        return scores[scores["taxonomy"]]
    return scores[scores["slot"].isin(["role", "object"])]
