"""Checks that a tokenizer knows the words it is given."""

from collections.abc import Sequence

import numpy as np


def require_known_words(tokenizer, texts: Sequence[str]) -> None:
    """Raise an error that names the words that a tokenizer reads as unknown.

    Raises
    ------
    ValueError
        If a text holds a word outside the vocabulary.
    """
    encoded = tokenizer(list(texts), return_offsets_mapping=True, add_special_tokens=False)
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
                "checkpoint knows the words of biaslib.planted.vocabulary() and no others"
            )


def single_tokens(tokenizer, words: Sequence[str]) -> np.ndarray:
    """Return the number of each word's only token, shape (k,).

    Raises
    ------
    ValueError
        If a word is unknown or splits into several tokens; the message names it.
    """
    require_known_words(tokenizer, words)
    ids = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    split = [word for word, pieces in zip(words, ids, strict=True) if len(pieces) != 1]
    if split:
        raise ValueError(f"candidates must be one token each, and these split: {', '.join(split)}")
    return np.array([pieces[0] for pieces in ids])


def require_fitting_length(tokenizer, texts: Sequence[str], limit: int, name: str) -> None:
    """Stand-in until the one of branch store is here."""
    for text in texts:
        count = len(tokenizer(text)["input_ids"])
        if count > limit:
            raise ValueError(f"{text!r} has {count} tokens, and {name} reads {limit} at most")
