"""A pool of ordinary words, from which random attribute sets are drawn.

Frequencies come from wordfreq (Speer 2022), word kinds from lemminflect's dictionary, which lists
common words and hardly any personal names. Both packages come with ``biaslib[language]``.
"""

import functools
import importlib.metadata
import importlib.resources
from collections.abc import Collection, Sequence

import numpy as np
import pandas

from biaslib.errors import brought_by

__all__ = [
    "draw_matched",
    "left_out_words",
    "sources",
    "word_frequency",
    "word_pool",
]

KINDS = {"NOUN": "count noun", "ADJ": "adjective"}


def sources() -> dict[str, str]:
    """Return the versions of the packages that the pool is made from, for the stamp.

    Examples
    --------
    >>> sorted(sources())
    ['lemminflect', 'wordfreq']
    """
    return {name: importlib.metadata.version(name) for name in ("wordfreq", "lemminflect")}


def word_frequency(word: str) -> float:
    """Return the Zipf frequency of a word or phrase: log10 of its uses in a billion words.

    Examples
    --------
    >>> 4 < word_frequency("lawyer") < 5.5
    True
    """
    with brought_by("language"):
        import wordfreq

    return wordfreq.zipf_frequency(word, "en")


@functools.cache
def _dictionary_words() -> pandas.DataFrame:
    """Return the most frequent English words that the dictionary lists in their base form."""
    with brought_by("language"):
        import wordfreq

    rows = [
        (word, kind, word_frequency(word), len(word))
        for word in wordfreq.top_n_list("en", 25_000)
        if word.isascii() and word.isalpha() and 3 <= len(word) <= 14 and (kind := _kind(word))
    ]
    return pandas.DataFrame(rows, columns=["word", "kind", "frequency", "length"])


def word_pool(
    n_words: int | None = None,
    exclude: Collection[str] = (),
    rng: np.random.Generator | int | None = None,
) -> pandas.DataFrame:
    """Return ordinary English words with kind, Zipf frequency and length.

    Kept are words of three to fourteen letters with a Zipf frequency of at least 3, one use in a
    million words, that the dictionary lists, in their base form, as
    a noun or else as an adjective. A list of ours (``data/left_out_words.txt``) is left out: words
    that name a gender, so that a random set cannot hold the very contrast that is tested; pronouns
    and numerals, which the dictionary lists as adjectives; sexual and abusive words.

    Parameters
    ----------
    n_words
        Draw this many at random; ``None`` returns all.
    exclude
        Further words to leave out, for example all words of the tests.
    rng
        Generator or seed for the draw.

    Returns
    -------
    pandas.DataFrame
        Columns ``word``, ``kind`` (``count noun`` or ``adjective``), ``frequency``, ``length``.

    Raises
    ------
    ValueError
        If fewer than ``n_words`` words are left.

    Examples
    --------
    >>> pool = word_pool(exclude=["chair"])
    >>> sorted(pool.loc[pool["word"].isin(["table", "chair", "queen"]), "word"])
    ['table']
    """
    words = _dictionary_words()
    left_out = {word.lower() for word in exclude} | left_out_words()
    kept = words[(words["frequency"] >= 3) & ~words["word"].isin(left_out)]
    if n_words is not None and n_words > len(kept):
        raise ValueError(f"{n_words} words were asked for and the pool has {len(kept)}")
    if n_words is not None:
        kept = kept.sample(n_words, random_state=np.random.default_rng(rng)).sort_index()
    return kept.reset_index(drop=True)


def left_out_words() -> frozenset[str]:
    """Return the words that are kept out of the pool.

    Examples
    --------
    >>> "waitress" in left_out_words()
    True
    """
    text = importlib.resources.files("biaslib.stimuli") / "data" / "left_out_words.txt"
    lines = text.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _kind(word: str) -> str | None:
    """Return ``noun`` or ``adjective`` for a base form that the dictionary lists, or None."""
    with brought_by("language"):
        import lemminflect

    lemmas = lemminflect.getAllLemmas(word)
    if set(lemmas) & {"AUX", "ADV"}:
        return None
    return next((KINDS[tag] for tag in KINDS if word in lemmas.get(tag, ())), None)


def draw_matched(
    words: Sequence[str],
    kinds: Sequence[str],
    pool: pandas.DataFrame,
    n_sets: int,
    rng: np.random.Generator,
    n_neighbours: int = 60,
) -> np.ndarray:
    """Draw random sets in which each word of a list is replaced by one that is much like it.

    A replacement is of the same kind and one of the ``n_neighbours`` words of the pool nearest
    in Zipf frequency and in length (half a unit of frequency counts as one letter). No word
    occurs twice in a set.

    Parameters
    ----------
    words
        The m words to replace.
    kinds
        Their kinds; adjectives are replaced by adjectives, all others by nouns.
    pool
        As :func:`word_pool` gives it, without the words that shall not be drawn.
    n_sets
        Number of sets.
    rng
        Generator.
    n_neighbours
        Number of candidates for each word.

    Returns
    -------
    numpy.ndarray
        (n_sets, m) positions in the pool; column j replaces ``words[j]``.

    Raises
    ------
    ValueError
        If the pool is too small.

    Examples
    --------
    >>> pool = word_pool()
    >>> rng = np.random.default_rng(0)
    >>> draw_matched(["lawyer", "nurse"], ["count noun"] * 2, pool, 3, rng).shape
    (3, 2)
    """
    pairs = zip(words, kinds, strict=True)
    candidates = np.stack([_nearest(word, kind, pool, n_neighbours) for word, kind in pairs])
    picks = rng.integers(n_neighbours, size=(n_sets, len(words)))
    drawn = np.take_along_axis(candidates.T, picks, axis=0)
    while (repeated := _repeats(drawn)).any():
        rows, columns = np.nonzero(repeated)
        drawn[rows, columns] = candidates[columns, rng.integers(n_neighbours, size=rows.size)]
    return drawn


def _nearest(word: str, kind: str, pool: pandas.DataFrame, n: int) -> np.ndarray:
    same_kind = np.flatnonzero((pool["kind"] == "adjective") == (kind == "adjective"))
    if same_kind.size < n:
        raise ValueError(f"the pool has {same_kind.size} words like {word!r}; {n} are needed")
    near = pool.iloc[same_kind]
    distance = (
        2.0 * (near["frequency"] - word_frequency(word)).abs() + (near["length"] - len(word)).abs()
    )
    return same_kind[np.argsort(distance.to_numpy(), kind="stable")[:n]]


def _repeats(drawn: np.ndarray) -> np.ndarray:
    """Mark each word of a set that stands further left in the same set."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ordered = np.take_along_axis(drawn, order, axis=1)
    marks = np.zeros(drawn.shape, dtype=bool)
    np.put_along_axis(marks, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return marks
