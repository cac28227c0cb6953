"""Checks that a tokenizer knows the words it is given, and that texts fit a model."""

import textwrap
from collections.abc import Sequence

import numpy as np


def listed(texts: Sequence) -> list:
    """Return texts as a list; a single string is an error."""
    if isinstance(texts, str):
        raise TypeError(f"texts is one string; pass a list of texts: [{texts!r}]")
    return list(texts)


def require_known_words(tokenizer, texts: Sequence[str]) -> None:
    """Raise an error that names the words that a tokenizer reads as unknown.

    Raises
    ------
    ValueError
        If a text holds a word outside the vocabulary.
    """
    options = {"return_offsets_mapping": True, "add_special_tokens": False, "verbose": False}
    encoded = tokenizer(list(texts), **options)
    for text, ids, places in zip(
        texts, encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        unknown = [
            text[low:high]
            for number, (low, high) in zip(ids, places, strict=True)
            if number == tokenizer.unk_token_id
        ]
        if unknown:
            raise ValueError(
                f"{text!r} has words that the model does not know: {', '.join(unknown)}. A planted "
                "checkpoint knows the words of plantedworld.vocabulary() and no others"
            )


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


def token_limit(tokenizer, config) -> int:
    """Return how many tokens a text may have: the tokenizer's word, or the model's positions.

    The RoBERTa family numbers positions from one beyond the padding token's number.
    """
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = text_config.max_position_embeddings
    if "roberta" in getattr(text_config, "model_type", ""):
        positions -= text_config.pad_token_id + 1
    return min(tokenizer.model_max_length, positions)


def word_pieces(tokenizer, words: Sequence[str]) -> list[list[int]]:
    """Return the numbers of each word's tokens, without special ones.

    Raises
    ------
    ValueError
        If there are no words, or one is unknown, whole or in part, or tokenises to nothing; the
        message names it.
    """
    if not len(words):
        raise ValueError("there are no candidate words")
    require_known_words(tokenizer, words)
    ids = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    for word, pieces in zip(words, ids, strict=True):
        if not pieces:
            raise ValueError(f"the candidate {word!r} tokenises to nothing; check its spelling")
    return ids
