"""Association tests on text encoders: WEAT and SEAT, with the null distribution they lack.

Three questions about every test: how large is the effect (equation 3 of Ross, Katz and Barbu
2021) and how much does it depend on the words chosen; is it larger than relabelled targets would
give (the permutation test); is it larger than random attribute words would give (the same targets,
thousands of random attribute sets).
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas

from biaslib import inference, runtime, stimuli
from biaslib.metrics.association import cosines, effect_size_of_scores, require_spread
from biaslib.models import stored
from biaslib.runtime import Store, progress
from biaslib.stimuli import pool as word_pools
from biaslib.studies.scores import described_test, tidy

__all__ = [
    "LEVELS",
    "EmbeddedPool",
    "EmbeddedTest",
    "RandomAttributes",
    "against_random",
    "embed_pools",
    "embed_tests",
    "random_attributes",
    "random_null",
    "run",
    "score",
]

LEVELS = ("word", "sentence", "contextual")
SETS = ("X", "Y", "A", "B")


@dataclass(frozen=True)
class EmbeddedTest:
    """A test with the embeddings of its four sets, at one level.

    ``embeddings`` maps X, Y, A, B to (n, d) arrays; ``words`` to the word that each row carries,
    ``kinds`` to that word's grammatical kind.
    """

    name: str
    level: str
    embeddings: dict[str, np.ndarray]
    words: dict[str, Sequence[str]]
    kinds: dict[str, Sequence[str]]

    @cached_property
    def targets(self) -> np.ndarray:
        """Embeddings of X and then of Y: (n_x + n_y, d)."""
        return np.concatenate([self.embeddings["X"], self.embeddings["Y"]])

    @cached_property
    def cosines_a(self) -> np.ndarray:
        """Cosines of the targets with the attributes A: (n_x + n_y, n_a)."""
        return cosines(self.targets, self.embeddings["A"])

    @cached_property
    def cosines_b(self) -> np.ndarray:
        """Cosines of the targets with the attributes B: (n_x + n_y, n_b)."""
        return cosines(self.targets, self.embeddings["B"])

    @cached_property
    def scores(self) -> np.ndarray:
        """Scores s(w, A, B) of the targets, X before Y: (n_x + n_y,)."""
        return self.cosines_a.mean(axis=1) - self.cosines_b.mean(axis=1)

    @property
    def n_x(self) -> int:
        """Number of items of X, which is that of Y."""
        return len(self.embeddings["X"])

    def split(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of X and of Y; the targets are the last axis."""
        return scores[..., : self.n_x], scores[..., self.n_x :]

    def effect_size(self, ddof: int = 1) -> float:
        """Return the effect size d, as :func:`biaslib.metrics.association.effect_size`."""
        require_spread(self.scores)
        return effect_size_of_scores(*self.split(self.scores), ddof)

    def word_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Return one score a target word, the mean over its sentences, for X and for Y."""
        x, y = self.split(self.scores)
        return _mean_by_word(x, self.words["X"]), _mean_by_word(y, self.words["Y"])


def embed_tests(
    encoder,
    tests: Sequence[str | stimuli.AssociationTest],
    level: str,
    store: Store | None = None,
    both: bool = False,
) -> list[EmbeddedTest]:
    """Embed several tests at one level; an item that they share is encoded once.

    Parameters
    ----------
    encoder
        A model with ``embed(texts, level=..., words=...)``, such as
        :func:`biaslib.models.load` gives.
    tests
        Names of :func:`biaslib.stimuli.association_tests`, or tests at the level asked for.
    level
        ``word``, ``sentence`` or ``contextual``.
    store
        Where embeddings are kept; None keeps none.
    both
        Keep both levels of sentences from one pass, if there is a store and the encoder has
        ``embed_sentences(texts, words)``; each text then holds its word.

    Raises
    ------
    UnknownNameError
        If there is no such test or level.
    ValueError
        If the encoder cannot encode an item, or a test is of another level.
    """
    tests = [
        stimuli.association_test(test, level) if isinstance(test, str) else test for test in tests
    ]
    for test in tests:
        if test.level != level:
            raise ValueError(f"the test {test.name} is at level {test.level}, not at {level}")
    keys = sorted({item for test in tests for role in SETS for item in _items(test, role)})
    rows = _embedded(encoder, keys, level, store, both)
    place = {key: position for position, key in enumerate(keys)}
    return [
        EmbeddedTest(
            test.name,
            level,
            {role: rows[[place[item] for item in _items(test, role)]] for role in SETS},
            test.words,
            test.kinds,
        )
        for test in tests
    ]


def _items(test: stimuli.AssociationTest, role: str) -> list[tuple[str, str]]:
    """Return the items of a set with the word each carries."""
    return list(zip(getattr(test, role), test.words[role], strict=True))


def _embedded(
    encoder, items: Sequence[tuple[str, str]], level: str, store: Store | None, both: bool
) -> np.ndarray:
    """Return embeddings of texts with the word that each carries."""
    both &= store is not None and level != "word" and hasattr(encoder, "embed_sentences")

    def ask(rows: Sequence[int], images: None = None) -> np.ndarray:
        texts, words = (list(column) for column in zip(*(items[row] for row in rows), strict=True))
        if both:
            return np.stack(encoder.embed_sentences(texts, words), axis=1)
        return encoder.embed(texts, level=level, words=words if level == "contextual" else None)

    if store is None:
        return ask(range(len(items)))
    texts = [text if level == "word" else f"{text}\x1f{word}" for text, word in items]
    settings = {"store": store, "shard_size": 2_048, "level": "sentences" if both else level}
    rows = stored.cached_outputs(
        encoder, "text embeddings at a level", ask, texts=texts, **settings
    )
    return rows[:, int(level == "contextual")] if both else rows


def score(
    embedded: EmbeddedTest,
    n_bootstrap: int = 2_000,
    seed: int = 0,
) -> dict[str, object]:
    """Return one row of scores: effect size, interval, p-values and their n.

    The interval resamples target and attribute words. ``p_value`` averages the sentences of a word
    first, so that a word is one unit however many sentences carry it; ``p_value_paper`` takes every
    item as a unit, as May et al. (2019) do, and rejects too often where a word has several. Both
    are one-sided: X nearer to A than Y is. ``n`` counts the words of X and Y, ``n_texts`` their
    items.

    Raises
    ------
    ValueError
        If all targets have the same score.
    """
    value = embedded.effect_size()
    x, y = embedded.split(embedded.scores)
    x_words, y_words = embedded.word_scores()
    interval = inference.bootstrap_effect_size(
        embedded.cosines_a,
        embedded.cosines_b,
        *(embedded.words[each] for each in SETS),
        n_resamples=n_bootstrap,
        rng=seed,
    )
    n, n_texts = len(x_words) + len(y_words), len(x) + len(y)
    words = inference.permutation_test(x_words, y_words, rng=seed)
    items = words if n == n_texts else inference.permutation_test(x, y, rng=seed)
    row = {
        "test": embedded.name,
        "level": embedded.level,
        "statistic": "effect size",
        "value": value,
        "low": interval.low,
        "high": interval.high,
        "value_ddof0": embedded.effect_size(ddof=0),
    }
    row |= described_test(words) | described_test(items, "_paper")
    return row | {"n": n, "n_texts": n_texts, "n_partitions": words.n_partitions, "seed": seed}


def run(
    encoder,
    names: Iterable[str],
    levels: Iterable[str] = LEVELS,
    store: Store | None = None,
    **settings,
) -> tuple[pandas.DataFrame, list[EmbeddedTest]]:
    """Score tests at levels: tidy scores, one row a test and level, and the embedded tests.

    Parameters
    ----------
    encoder
        As :func:`embed_tests`.
    names, levels
        Tests and levels.
    store
        Where embeddings are kept; None keeps none.
    settings
        As :func:`score`.

    Returns
    -------
    pandas.DataFrame
        Tidy scores (:data:`biaslib.studies.scores.COLUMNS`), and those of :func:`score`;
        ``p_holm`` and ``p_bh`` are ``p_value`` adjusted over all rows.
    list of EmbeddedTest
        In the order of the rows.
    """
    names, levels = list(names), list(levels)
    both = {"sentence", "contextual"} <= set(levels)
    embedded = [
        test for level in levels for test in embed_tests(encoder, names, level, store, both)
    ]
    scored = [score(each, **settings) for each in progress(embedded, "scoring tests")]
    labels = {"study": "text encoders", "model": encoder.name, "revision": encoder.revision}
    scores = tidy(scored, **labels, profile=runtime.profile(), dataset="")
    return _adjusted(scores, "p_value"), embedded


def _adjusted(scores: pandas.DataFrame, column: str, prefix: str = "p") -> pandas.DataFrame:
    """Return the scores with a column of p-values adjusted over rows: ``p_holm`` and ``p_bh``."""
    table = scores.copy()
    for method in ("holm", "bh"):
        table[f"{prefix}_{method}"] = inference.adjust(scores[column], method)
    return table


@dataclass(frozen=True)
class EmbeddedPool:
    """A pool of ordinary words at one level; ``directions`` (n, d) are means of unit vectors."""

    words: pandas.DataFrame
    level: str
    directions: np.ndarray


def embed_pools(
    encoder,
    words: pandas.DataFrame,
    levels: Iterable[str] = LEVELS,
    store: Store | None = None,
) -> dict[str, EmbeddedPool]:
    """Embed a pool of words by level, in sentences of the tests' frames where it asks for them.

    The mean cosine of a target with the sentences of a word is the target's unit vector times
    the mean of the sentences' unit vectors; so one mean a word is all that is returned. The
    sentences' embeddings are kept in the store, if there is one, as by :func:`embed_tests`.
    """
    levels = list(levels)
    both = {"sentence", "contextual"} <= set(levels)
    return {level: _embed_pool(encoder, words, level, store, both) for level in levels}


def _embed_pool(encoder, words: pandas.DataFrame, level: str, store, both: bool) -> EmbeddedPool:
    kinds = zip(words["word"], words["kind"], strict=True)
    texts = [[word] if level == "word" else stimuli.sentences(word, kind) for word, kind in kinds]
    owner = np.repeat(np.arange(len(texts)), list(map(len, texts)))
    items = list(zip(itertools.chain(*texts), words["word"].to_numpy()[owner], strict=True))
    rows = _embedded(encoder, items, level, store, both).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sums = np.zeros((len(texts), rows.shape[1]))
    np.add.at(sums, owner, rows)
    return EmbeddedPool(words, level, sums / np.bincount(owner)[:, None])


@dataclass(frozen=True)
class RandomAttributes:
    """What random attribute words give with a test's own targets.

    ``null`` has one entry a random pair of attribute sets, and so have ``p_values`` (permutation
    test, words as units, one-sided: X nearer to A), which are shares of ``n_partitions``.
    """

    test: str
    level: str
    null: inference.RandomAttributeNull
    p_values: np.ndarray
    n_partitions: int

    @property
    def effect_sizes(self) -> np.ndarray:
        """Effect sizes over random pairs of attribute sets: (n_sets,)."""
        return self.null.effect_sizes

    def rejection_rate(self, alpha: float = 0.05, both_sides: bool = False) -> float:
        """Return the share of random attribute sets with a one-sided p-value below alpha.

        With ``both_sides`` also those of which the p of the other side is: a test at twice alpha.
        """
        rejected = self.p_values < alpha
        if both_sides:  # The observed partition counts on either side.
            rejected |= 1.0 - self.p_values + 1.0 / self.n_partitions < alpha
        return float(rejected.mean())

    def quantile(self, share: float = 0.95) -> float:
        """Return a quantile of the absolute effect size over random attribute sets."""
        return float(np.quantile(np.abs(self.effect_sizes), share))

    def p_value(self, effect_size: float) -> float:
        """Return how often random attribute words give an effect at least as large."""
        return self.null.p_value(effect_size)


def random_attributes(
    embedded: EmbeddedTest,
    pool: EmbeddedPool,
    n_sets: int = 2_000,
    matched: bool = True,
    n_resamples: int = 13_000,
    seed: int = 0,
) -> RandomAttributes:
    """Put random words in the place of a test's attributes, many times.

    Parameters
    ----------
    embedded
        The test, whose targets stay as they are.
    pool
        Words to draw from, embedded at the same level.
    n_sets
        Number of random pairs of attribute sets, of the sizes of A and B.
    matched
        Replace each attribute word by one near in frequency and length, of the same kind;
        otherwise draw from the whole pool.
    n_resamples
        As for the permutation test; up to this many partitions are enumerated.
    seed
        Seed of the draws.

    Raises
    ------
    ValueError
        If test and pool are of different levels.
    """
    rng = np.random.default_rng(seed)
    null = random_null(embedded, pool, n_sets, matched, rng)
    x, y = (
        _mean_by_word(scores, embedded.words[role])
        for role, scores in (("X", null.x_scores), ("Y", null.y_scores))
    )
    p_values = inference.permutation_p_values(x, y, n_resamples=n_resamples, rng=rng)
    n_partitions = min(inference.n_partitions(x.shape[1], y.shape[1]), n_resamples)
    return RandomAttributes(embedded.name, embedded.level, null, p_values, n_partitions)


def random_null(
    embedded: EmbeddedTest,
    pool: EmbeddedPool,
    n_sets: int = 2_000,
    matched: bool = True,
    rng: np.random.Generator | int | None = None,
) -> inference.RandomAttributeNull:
    """Return scores and effect sizes of a test's targets with random words as attributes.

    Parameters
    ----------
    embedded, pool, n_sets, matched
        As for :func:`random_attributes`.
    rng
        Generator or seed of the draws.

    Raises
    ------
    ValueError
        If test and pool are of different levels.
    """
    if embedded.level != pool.level:
        raise ValueError(f"the test is at level {embedded.level}, the pool at {pool.level}")
    rng = np.random.default_rng(rng)
    kind_of = [dict(zip(embedded.words[s], embedded.kinds[s], strict=True)) for s in "AB"]
    draws = None
    if matched:
        words, kinds = zip(*kind_of[0].items(), *kind_of[1].items(), strict=True)
        draws = word_pools.draw_matched(words, kinds, pool.words, n_sets, rng)
    units = embedded.targets / np.linalg.norm(embedded.targets, axis=1, keepdims=True)
    x, y = np.split(units.astype(float) @ pool.directions.T, [embedded.n_x])
    sizes = [len(each) for each in kind_of]
    return inference.random_attribute_null(x, y, *sizes, n_sets, draws, rng=rng)


def against_random(
    scores: pandas.DataFrame,
    embedded: Sequence[EmbeddedTest],
    pools: dict[str, EmbeddedPool],
    n_sets: int = 5_000,
    seed: int = 0,
) -> tuple[pandas.DataFrame, list[RandomAttributes]]:
    """Place every test in its own distribution of random attribute sets.

    Parameters
    ----------
    scores, embedded
        As :func:`run` gives them.
    pools
        Words to draw from, embedded by the same encoder at each level: :func:`embed_pools`.
    n_sets
        Random pairs of attribute sets a row, matched in kind, frequency and length.
    seed
        Seed of the draws.

    Returns
    -------
    pandas.DataFrame
        One row a row of the scores: ``p_random`` (how often random words give an effect of this
        size), ``p_random_holm`` and ``p_random_bh``, ``q95`` (95th percentile of the absolute
        effect size over random sets), ``rejected`` and ``rejected_uniform`` (share of random sets
        with one-sided p < .05, matched and drawn from the whole pool), ``rejected_two_sided`` (at
        10%, matched).
    list of RandomAttributes
        The matched sets, one entry a row.
    """
    rows, matched_sets = [], []
    for test in progress(embedded, "random attribute sets"):
        settings = {"pool": pools[test.level], "seed": seed}
        matched = random_attributes(test, n_sets=n_sets, **settings)
        uniform = random_attributes(test, n_sets=n_sets // 2, matched=False, **settings)
        matched_sets.append(matched)
        rows.append(
            {
                "test": test.name,
                "level": test.level,
                "p_random": matched.p_value(test.effect_size()),
                "q95": matched.quantile(),
                "rejected": matched.rejection_rate(),
                "rejected_uniform": uniform.rejection_rate(),
                "rejected_two_sided": matched.rejection_rate(both_sides=True),
                "n_sets": len(matched.effect_sizes),
            }
        )
    placed = _adjusted(pandas.DataFrame(rows), "p_random", prefix="p_random")
    columns = ["test", "level", "value", "p_value", "p_bh"]
    return scores[columns].merge(placed, on=["test", "level"], validate="1:1"), matched_sets


def _mean_by_word(scores: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Return means over the items of each word, in order of appearance: (..., n_words)."""
    owner, _ = pandas.factorize(np.asarray(words))
    membership = np.eye(owner.max() + 1)[owner]
    return scores @ (membership / membership.sum(axis=0))
