"""Every analysis of one association test that somebody could have reported.

Whether a test is "significant" depends on choices that papers make in a line or not at all: which
sentences carry the words, what counts as a unit, what the test is compared with, how it is
corrected for the other tests, which of the attribute words are kept, and what the standard
deviation divides by. All combinations of them are tried here, as in a specification curve.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import pandas

from biaslib import inference
from biaslib.runtime import progress
from biaslib.studies.text_encoders import EmbeddedPool, EmbeddedTest, random_null

__all__ = ["CHOICES", "LEVEL", "SENTENCES", "all_analyses", "half", "p_values"]

SENTENCES = {
    "word": "the word alone",
    "sentence": "our sentences",
    "contextual": "its token in our sentences",
    "SEAT": "SEAT's sentences",
}
"""What carries a word, by level; SEAT's own sentences stand for a level of their own."""

CHOICES = {
    "What carries the word": tuple(SENTENCES.values()),
    "Unit": ("every sentence", "every word"),
    "Compared with": ("relabelled targets", "random attribute words"),
    "Correction": ("none", "Benjamini and Hochberg, 13 tests", "Holm, 13 tests"),
    "Attribute words": ("all", "first half of each list", "second half of each list"),
    "Divide by": ("n − 1", "n"),
}
"""The choices and their values, in the order of :func:`all_analyses`' columns."""

LEVEL = 0.05
METHODS = dict(zip(CHOICES["Correction"], (None, "bh", "holm"), strict=True))


def half(embedded: EmbeddedTest, which: str) -> EmbeddedTest:
    """Return a test with all of its attribute words, or half of each list in its printed order.

    Parameters
    ----------
    embedded
        The test.
    which
        A value of the choice ``"Attribute words"``.

    Raises
    ------
    ValueError
        If there is no such choice.
    """
    every, first, second = CHOICES["Attribute words"]
    if which not in (every, first, second):
        raise ValueError(f"{which!r} is no choice of attribute words: {every}, {first}, {second}")
    if which == every:
        return embedded
    parts = {name: dict(getattr(embedded, name)) for name in ("embeddings", "words", "kinds")}
    for role in "AB":
        words = list(dict.fromkeys(embedded.words[role]))
        middle = len(words) // 2
        chosen = set(words[:middle] if which == first else words[middle:])
        kept = [at for at, word in enumerate(embedded.words[role]) if word in chosen]
        parts["embeddings"][role] = embedded.embeddings[role][kept]
        for name in ("words", "kinds"):
            parts[name][role] = tuple(getattr(embedded, name)[role][at] for at in kept)
    return dataclasses.replace(embedded, **parts)


def p_values(
    embedded: Mapping[str, Sequence[EmbeddedTest]],
    pools: Mapping[str, EmbeddedPool],
    n_sets: int = 2_000,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return what all analyses of a test are made from, before any correction.

    Parameters
    ----------
    embedded
        Tests by a key of :data:`SENTENCES`; under ``"SEAT"`` those that have such sentences.
    pools
        Random words by level. Beside SEAT's sentences they stand in ours.
    n_sets
        Random pairs of attribute sets a row.
    seed
        Seed of their draws.

    Returns
    -------
    pandas.DataFrame
        One row a test, what carries the word and attribute words: *value* and *value_ddof0* (d with
        n − 1 and with n), *p_items*, *p_words* (permutation test, one-sided) and *p_random* (random
        attribute words, two-sided).
    """
    tests = [
        (name, half(each, which), which)
        for name, several in embedded.items()
        for each in several
        for which in CHOICES["Attribute words"]
    ]
    rows = [
        {"test": each.name, "sentences": SENTENCES[name], "words": which}
        | _p_values(each, pools[each.level], n_sets, seed)
        for name, each, which in progress(tests, "analyses")
    ]
    return pandas.DataFrame(rows)


def _p_values(embedded: EmbeddedTest, pool: EmbeddedPool, n_sets: int, seed: int) -> dict:
    x, y = embedded.split(embedded.scores)
    by_word = inference.permutation_test(*embedded.word_scores(), rng=seed).p_value
    value = embedded.effect_size()
    null = random_null(embedded, pool, n_sets=n_sets, rng=seed)
    return {
        "value": value,
        "value_ddof0": embedded.effect_size(ddof=0),
        "p_items": inference.permutation_test(x, y, rng=seed).p_value
        if embedded.level != "word"
        else by_word,
        "p_words": by_word,
        "p_random": null.p_value(value),
    }


def all_analyses(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return every combination of :data:`CHOICES` for every test.

    A correction is over the tests that were treated alike. A test in SEAT's sentences takes the
    place of the same one in ours. A p-value against random attribute words does not depend on the
    unit, and none depends on the divisor.

    Parameters
    ----------
    found
        What :func:`p_values` returns.

    Returns
    -------
    pandas.DataFrame
        *test*, a column a choice, *value* (d), *p* (after the correction) and *survives*
        (p below .05, and the direction that the source of the test expects).
    """
    rows = []
    for carrier, which in found[["sentences", "words"]].drop_duplicates().itertuples(index=False):
        part = found[found["words"] == which]
        own = part[part["sentences"] == carrier].set_index("test")
        family = part[part["sentences"] == SENTENCES["sentence"]].set_index("test")
        whole = len(own) == len(family)
        for unit, of_unit in zip(CHOICES["Unit"], ("p_items", "p_words"), strict=True):
            for null, name in zip(CHOICES["Compared with"], (of_unit, "p_random"), strict=True):
                for label, method in METHODS.items():
                    p = _adjusted(own[name], own[name] if whole else family[name], method)
                    for divisor, value in zip(
                        CHOICES["Divide by"], ("value", "value_ddof0"), strict=True
                    ):
                        chosen = (carrier, unit, null, label, which, divisor)
                        made = dict(zip(CHOICES, chosen, strict=True))
                        rows += [
                            {"test": test, **made, "value": own.loc[test, value], "p": p[test]}
                            for test in own.index
                        ]
    table = pandas.DataFrame(rows)
    return table.assign(survives=(table["p"] < LEVEL) & (table["value"] > 0))


def _adjusted(own: pandas.Series, family: pandas.Series, method: str | None) -> pandas.Series:
    """Return p-values corrected among a family, in which each takes the place of its own test."""
    if method is None:
        return own
    return pandas.Series(
        {
            test: inference.adjust(family.where(family.index != test, p), method)[
                family.index.get_loc(test)
            ]
            for test, p in own.items()
        }
    )
