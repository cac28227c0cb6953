"""Tokens of a text, with the places of its words, and the hiding of words before a model reads."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Tokens:
    """The tokens of one text, special ones included.

    Parameters
    ----------
    text
        The text.
    ids
        The tokens' numbers.
    offsets
        The characters that each token covers, from (low) to just after (high); (0, 0) for a
        special token.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]

    def place_of(self, word: str) -> int:
        """Return the index of the first token of a word, where it first stands in the text.

        Raises
        ------
        ValueError
            If it is not a whole word of the text.
        """
        spans = self._spans([word]) if word else []
        if not spans:
            raise ValueError(f"the word {word!r} is not a whole word of the text {self.text!r}")
        return next(self._pieces(spans[0]))

    def hiding(self, words: Sequence[str], mask: int) -> "Tokens":
        """Return the tokens with every occurrence of the words hidden: each piece is a mask token.

        Words are whole words, in either case; a text that holds none of them stays as it is.
        """
        hidden = {place for span in self._spans(words) for place in self._pieces(span)}
        ids = [mask if place in hidden else number for place, number in enumerate(self.ids)]
        return replace(self, ids=tuple(ids))

    def _spans(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return the characters of each whole-word occurrence, the longest word first."""
        if not words:
            return []
        return [each.span() for each in _whole_words(tuple(words)).finditer(self.text)]

    def _pieces(self, span: tuple[int, int]) -> Iterator[int]:
        start, end = span
        for place, (low, high) in enumerate(self.offsets):
            if low < end and start < high:
                yield place


def places_of(rows: Sequence[Tokens], words: Sequence[str] | None) -> np.ndarray:
    """Return the index of the first token of each row's word, (n,)."""
    if words is None or len(words) != len(rows):
        raise ValueError("the contextual level needs the word to look at for every text")
    return np.array([row.place_of(word) for row, word in zip(rows, words, strict=True)])


@functools.lru_cache(maxsize=256)
def _whole_words(words: tuple[str, ...]) -> re.Pattern:
    longest_first = sorted(words, key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in longest_first)
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


def tokenized(tokenizer, texts: Sequence[str]) -> list[Tokens]:
    """Return the tokens of every text; one that is there several times is split once.

    Raises
    ------
    ValueError
        If there are no texts, or one has no tokens but the special ones; the message names it.
    """
    if not len(texts):
        raise ValueError("there are no texts to encode: the set is empty")
    different = list(dict.fromkeys(texts))
    encoded = tokenizer(different, return_offsets_mapping=True, verbose=False)
    triples = zip(different, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    found = {text: Tokens(text, tuple(ids), tuple(offsets)) for text, ids, offsets in triples}
    for tokens in found.values():
        if not any(high > low for low, high in tokens.offsets):
            raise ValueError(
                f"{tokens.text!r} has no word in it; check it for invisible characters"
            )
    return [found[text] for text in texts]
