"""Texts as tokens: places of words, words hidden or masked, word pieces, and what cannot be read.

What a tokenizer does not know, or a network has no room for, is refused by name: nothing is cut off
or read as an unknown word in silence.
"""

import functools
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from biaslib.errors import CheckpointError, InputError
from biaslib.runtime import unknown_name

MASK = "[MASK]"
"""What stands for the word to be filled in, whatever the tokenizer's own mask token."""

TRIED = ("a man", "the woman is a nurse")
"""Texts that a model is tried out with."""

LEVELS = ("word", "sentence", "contextual")

ALIKE_EVERYWHERE = ("WordPiece", "WordLevel")
"""Tokenizers that give a word the same pieces wherever it stands."""


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
        return [match.span() for match in _whole_words(tuple(words)).finditer(self.text)]

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
    rows = {text: Tokens(text, tuple(ids), tuple(offsets)) for text, ids, offsets in triples}
    for tokens in rows.values():
        if not any(high > low for low, high in tokens.offsets):
            raise ValueError(
                f"{tokens.text!r} has no word in it; check it for invisible characters"
            )
    return [rows[text] for text in texts]


def model_inputs(
    rows: Sequence[Sequence[int]], padding: int, device: str
) -> dict[str, torch.Tensor]:
    """Return rows of tokens as networks take them, on a device: input_ids and attention_mask.

    Examples
    --------
    >>> inputs = model_inputs([[5, 6], [7]], padding=0, device="cpu")
    >>> inputs["input_ids"].tolist(), inputs["attention_mask"].tolist()
    ([[5, 6], [7, 0]], [[1, 1], [1, 0]])
    """
    longest = max(map(len, rows))
    filled = [list(row) + [padding] * (longest - len(row)) for row in rows]
    real = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    return {
        name: torch.tensor(numbers).to(device, non_blocking=True)
        for name, numbers in {"input_ids": filled, "attention_mask": real}.items()
    }


def places_of_masks(rows: Sequence[Sequence[int]], mask: int) -> tuple[np.ndarray, np.ndarray]:
    """Return row and place of each mask token, row by row and from left to right.

    Examples
    --------
    >>> [each.tolist() for each in places_of_masks([[5, 9, 9], [9]], mask=9)]
    [[0, 0, 1], [1, 2, 0]]
    """
    places = [
        (row, place)
        for row, ids in enumerate(rows)
        for place, number in enumerate(ids)
        if number == mask
    ]
    return tuple(np.array(places).T)


def require_level(level: str) -> None:
    """Refuse a level that there is not."""
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)


def listed(texts: Sequence) -> list:
    """Return texts as a list; a single string is an error."""
    if isinstance(texts, str):
        raise TypeError(f"texts is one string; pass a list of texts: [{texts!r}]")
    return list(texts)


def require_apart(texts: Sequence[str], answers: Iterable[Any], name: str) -> None:
    """Refuse one answer for two texts that differ in more than case, accents and punctuation.

    Raises
    ------
    InputError
        If there are two; with the row of the second.
    """
    first: dict[Any, str] = {}
    for row, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        other = first.setdefault(answer, text)
        if _letters(other) != _letters(text):
            problem = f"{name} gives {other!r} and {text!r} one answer: its tokenizer drops what"
            raise InputError(
                f"{problem} differs, or its network does not read that far; check its files, or "
                "leave one out",
                row=row,
                word=text,
            )


def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, without accents."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold()))


def require_known_words(tokenizer, texts: Sequence[str], name: str) -> None:
    """Raise an error that names the words that a tokenizer reads as unknown.

    Raises
    ------
    InputError
        If a text holds a word outside the vocabulary; with the first of them.
    """
    options = {"return_offsets_mapping": True, "add_special_tokens": False, "verbose": False}
    encoded = tokenizer(list(texts), **options)
    for row, (text, ids, places) in enumerate(
        zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ):
        unknown = [
            text[low:high]
            for number, (low, high) in zip(ids, places, strict=True)
            if number == tokenizer.unk_token_id
        ]
        if unknown:
            raise InputError(
                f"{text!r} has words that {name} does not know: {', '.join(unknown)}. "
                f"{_advice(tokenizer)}",
                row=row,
                word=unknown[0],
            )


def _advice(tokenizer) -> str:
    """Return what to do about an unknown word: planted checkpoints know few, and say so."""
    if (Path(tokenizer.name_or_path) / "card.json").is_file():
        return "A planted checkpoint knows the words of plantedworld.vocabulary() and no others"
    return "Check their spelling, and look for characters that its tokenizer was not made with"


def require_fitting_length(tokenizer, texts: Sequence[str], limit: int, name: str) -> np.ndarray:
    """Return the number of tokens of each text, special ones among them, if all fit the model.

    Parameters
    ----------
    tokenizer
        A transformers tokenizer.
    texts
        n texts.
    limit
        Tokens that the model takes.
    name
        What the error calls the model.

    Returns
    -------
    numpy.ndarray
        (n,), by which texts of like length can be put together.

    Raises
    ------
    ValueError
        If a text is longer; the message gives the text, its number, its tokens and the limit.
    """
    encoded = tokenizer(list(texts), verbose=False)["input_ids"]
    counts = np.array([len(ids) for ids in encoded])
    require_fitting(counts, limit, name, texts)
    return counts


def require_fitting(
    counts: np.ndarray,
    limit: int,
    name: str,
    texts: Sequence[str] | None = None,
    counted: str = "",
) -> None:
    """Raise an error that names the first text with more tokens than a model takes.

    Parameters
    ----------
    counts
        (n,), tokens of each text.
    limit, name
        As of :func:`require_fitting_length`.
    texts
        The texts, to be quoted.
    counted
        What the error adds to the count.

    Raises
    ------
    ValueError
        If a count is above the limit.
    """
    longer = np.flatnonzero(counts > limit)
    if not longer.size:
        return
    row = longer[0]
    with_what = f" {counted}" if counted else ""
    others = f" {longer.size:,} texts are too long." if longer.size > 1 else ""
    quoted = repr(textwrap.shorten(texts[row], 80)) if texts is not None else ""
    raise ValueError(
        f"text {row} has {counts[row]:,} tokens{with_what}, and {name} takes {limit:,}. Shorten or "
        f"split it; nothing is cut off silently.{others} {quoted}".rstrip()
    )


def token_limit(tokenizer, network) -> float:
    """Return how many tokens a text may have: the tokenizer's word, or the network's positions.

    RoBERTa and its kin number positions from one beyond the padding token's, which their embeddings
    know. Funnel has no table of positions, and no limit.
    """
    config = network.config
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(text_config, "max_position_embeddings", math.inf)
    unused = [
        part.padding_idx + 1
        for part in network.modules()
        if hasattr(part, "position_embeddings") and hasattr(part, "padding_idx")
    ]
    return min(tokenizer.model_max_length, positions - max(unused, default=0))


EMBEDDINGS = ("word_embeddings", "token_embedding", "tok_embeddings", "embed_tokens", "wte")
"""What networks call the layer that turns tokens into vectors."""

PLACES = re.compile(r"<(loc\d{4}|seg\d{3})>")
"""Tokens that PaliGemma's processor adds, whatever the network has, and that no text holds."""


def require_embedded(tokenizer, network, folder: object = None) -> None:
    """Refuse a tokenizer with a token for which a network has no vector.

    Parameters
    ----------
    tokenizer
        Of transformers, or OpenCLIP's own.
    network
        Of torch.
    folder
        Where both are from; None for the folder that the tokenizer names.

    Raises
    ------
    CheckpointError
        If it has one, with the token; the message says where both come from.
    """
    vocabulary = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else tokenizer.encoder
    rows = [
        len(part.weight) + getattr(part, "num_additional_embeddings", 0)
        for name, part in network.named_modules()
        if name.rpartition(".")[2] in EMBEDDINGS and hasattr(part, "num_embeddings")
    ]
    lacking = [token for token, at in vocabulary.items() if rows and at >= max(rows)]
    lacking = [token for token in lacking if not PLACES.fullmatch(token)]
    if lacking:
        last = max(lacking, key=vocabulary.get)
        raise CheckpointError(
            f"the tokenizer in {folder or tokenizer.name_or_path} has {vocabulary[last] + 1:,} "
            f"tokens, the last of them {last!r}, and the network {max(rows):,} embeddings: give "
            "the tokenizer that the network was saved with, or resize and train its embeddings",
            path=folder or tokenizer.name_or_path or None,
            word=last,
        )


def with_mask(text: str, tokenizer) -> str:
    """Return a text with the tokenizer's own mask in place of its one ``[MASK]``."""
    return tokenizer.mask_token.join(around_mask(text))


def around_mask(text: str) -> list[str]:
    """Return what stands before and after a text's one ``[MASK]``.

    Raises
    ------
    ValueError
        If there is not exactly one.
    """
    parts = text.split(MASK)
    if len(parts) != 2:
        raise ValueError(f"{text!r} should have one {MASK}, and no more")
    return parts


def word_pieces(
    tokenizer, words: Sequence[str], texts: Sequence[str], name: str
) -> list[list[tuple[int, ...]]]:
    """Return the numbers of each word's tokens as they are at each text's ``[MASK]``.

    Byte-level and SentencePiece tokenizers give a word that follows a space other tokens than one
    at the head of a text or behind a bracket.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of transformers.
    words
        k words.
    texts
        n texts with one ``[MASK]`` each.
    name
        What an error calls the model.

    Returns
    -------
    list
        n rows of k words, each of one or several pieces.

    Raises
    ------
    ValueError
        If there are no words, or one is unknown, whole or in part, or tokenises to nothing; the
        message names it.

    Examples
    --------
    >>> from biaslib.models import load
    >>> bert = load("bert", dose=3, seed=0)
    >>> pieces = word_pieces(bert.tokenizer, ["purse"], ["a [MASK].", "[MASK] is here."], "bert")
    >>> pieces[0] == pieces[1]
    True
    """
    if not len(words):
        raise ValueError("there are no candidate words")
    require_known_words(tokenizer, words, name)
    alone = [tuple(ids) for ids in tokenizer(list(words), add_special_tokens=False)["input_ids"]]
    for word, pieces in zip(words, alone, strict=True):
        if not pieces:
            raise InputError(
                f"the candidate {word!r} tokenises to nothing; check its spelling", word=word
            )
        if tokenizer.mask_token_id in pieces:
            raise InputError(f"the candidate {word!r} holds a mask; leave it out", word=word)
    require_apart(words, alone, name)
    if type(tokenizer.backend_tokenizer.model).__name__ in ALIKE_EVERYWHERE:
        return [alone] * len(texts)
    rows = {
        text: [
            _pieces_between(tokenizer, *around_mask(text), word.strip()) or pieces
            for word, pieces in zip(words, alone, strict=True)
        ]
        for text in dict.fromkeys(texts)
    }
    return [rows[text] for text in texts]


def _pieces_between(tokenizer, before: str, after: str, word: str) -> tuple[int, ...]:
    """Return a word's tokens between two parts of a text, or none where it has no tokens alone.

    A space before the word is the word's, whether it has a token to itself or not. Where a token
    goes on into what follows, the word is read without that; a word that is one with what stands
    before it has none.
    """
    low, high = len(before), len(before) + len(word)
    left = tokenizer(before.rstrip(), add_special_tokens=False, verbose=False)["input_ids"]
    for text in (before + word + after, before + word):
        encoded = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        touching = [n for n, (start, end) in enumerate(offsets) if start < high and end > low]
        if not touching:
            continue
        first, last = touching[0], touching[-1]
        if offsets[last][1] == high and not text[offsets[first][0] : low].strip():
            # A space may be a token of its own, right behind those of what stands before it.
            if ids[: len(left)] == left:
                first = min(first, len(left))
            return tuple(ids[first : last + 1])
    return ()
