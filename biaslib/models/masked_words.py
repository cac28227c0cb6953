"""Probabilities of words of one or several pieces at a mask, whatever the model."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import logsumexp

from biaslib.errors import InputError
from biaslib.models.tokens import require_fitting
from biaslib.runtime import unknown_name
from biaslib.runtime.batches import run_in_batches

PIECES = ("chain", "mean")
AMONG = ("vocabulary", "candidates")


class Filling(NamedTuple):
    """What stands in the place of a text's mask in one pass: pieces filled in, then masks."""

    pieces: tuple[int, ...]
    n_masks: int


class Query(NamedTuple):
    """One number to be read off a pass: a piece's log-probability at one of its masks."""

    mask: int
    piece: int


Queries = dict[Filling, dict[Query, int]]
"""The questions to each pass, numbered."""


def candidate_log_prob(
    tokens: Sequence[Sequence[int]],
    candidates: Sequence[Sequence[Sequence[int]]],
    mask: int,
    log_probabilities: Callable[..., np.ndarray | torch.Tensor],
    *,
    pieces: str = "chain",
    among: str = "vocabulary",
    limit: int | None = None,
    name: str = "the model",
    batch_size: int = 256,
    load: Callable[[list[np.ndarray]], Iterable[Any]] | None = None,
) -> np.ndarray:
    r"""Return log P(word | rest of the text) for words of one or several word pieces.

    The mask gives way to as many masks as the word has pieces :math:`w_1 \ldots w_m`. ``chain``
    fills them from left to right, in m passes:

    .. math:: \sum_{j=1}^m \log P(w_j \mid w_1 \ldots w_{j-1}, \text{m - j + 1 masks}, \text{text})

    ``mean`` reads all of them in one pass, in which none knows of the others:

    .. math:: \frac{1}{m} \sum_{j=1}^m \log P(w_j \mid \text{m masks}, \text{text})

    For words of one piece both are :math:`\log P(w_1)`. The number of masks tells the model how
    many pieces to expect, so words of different numbers of pieces are compared with care under
    either: the chain is the lower the more pieces there are, and the mean is no probability.

    Parameters
    ----------
    tokens
        n texts as numbers of tokens, special ones among them, each with one mask.
    candidates
        n rows of k words as numbers of pieces, which may differ from text to text.
    mask
        Number of the mask token.
    log_probabilities
        Takes the numbers of the texts of a batch, (b,), b rows of tokens with masks, and q pairs
        (q, 2) of a mask, counted through all rows from left to right, and a word piece; returns
        the log-softmax over the vocabulary of each pair, (q,), as
        :func:`biaslib.runtime.batches.gather_log_probabilities` does. Every row has as many pairs
        as the one that is asked most; what fills a row up is not looked at.
    pieces
        ``chain`` or ``mean``.
    among
        ``vocabulary``: as above; ``candidates``: renormalised, so that the k probabilities of a
        text sum to 1.
    limit, name
        Tokens that the model takes, and what an error calls it.
    batch_size
        Rows of tokens a pass. Those of a text come one after the other, the longest text first.
    load
        Takes the numbers of the texts of all batches and yields for each what
        ``log_probabilities`` is given as its fourth argument.

    Returns
    -------
    numpy.ndarray
        (n, k), natural logarithms, float64.

    Raises
    ------
    UnknownNameError
        If there is no such rule for pieces, or set to share the probability.
    ValueError
        If a text has not one mask, or is longer than the limit with a candidate's masks.

    Examples
    --------
    >>> uniform = lambda texts, rows, pairs: np.full(len(pairs), -np.log(10))
    >>> candidate_log_prob([[1, 9, 2]], [[[3], [4, 5]]], 9, uniform).round(2).tolist()
    [[-2.3, -4.61]]
    """
    if pieces not in PIECES:
        raise unknown_name("rule for several pieces", pieces, PIECES)
    if among not in AMONG:
        raise unknown_name("set to share the probability", among, AMONG)
    for row, ids in enumerate(tokens):
        if (masks := list(ids).count(mask)) != 1:
            problem = f"text {row} has {masks} masks among its tokens, and needs one"
            raise InputError(
                f"{problem}: write [MASK] once, and no mask of the tokenizer's", row=row
            )
    numbers: dict[tuple[int, ...], int] = {}
    words = np.array(
        [[numbers.setdefault(tuple(word), len(numbers)) for word in row] for row in candidates]
    )
    queries, terms = _plan(list(numbers), pieces)
    fillings = list(queries)
    of_word = [{number for number, _ in word} for word in terms]
    passes_of = [
        sorted({number for word in row for number in of_word[word]}) for row in words.tolist()
    ]
    texts = np.repeat(np.arange(len(tokens)), [len(numbers) for numbers in passes_of])
    passes = np.concatenate(passes_of)
    rows = [
        _filled(tokens[text], mask, fillings[number])
        for text, number in zip(texts, passes, strict=True)
    ]
    longest = np.zeros(len(tokens), dtype=int)
    np.maximum.at(longest, texts, [len(row) for row in rows])
    if limit is not None:
        require_fitting(longest, limit, name, counted="with the masks of the longest candidate")

    most = max(map(len, queries.values()))

    def run(batch: np.ndarray, *loaded: Any) -> np.ndarray | torch.Tensor:
        pairs = _pairs([fillings[passes[row]] for row in batch], queries, most)
        filled = [rows[row] for row in batch]
        return log_probabilities(texts[batch], filled, pairs, *loaded).reshape(len(batch), most)

    label = f"{name}: {len(rows):,} masked texts"
    load_texts = load and (lambda planned: load([texts[batch] for batch in planned]))
    answers = run_in_batches(longest[texts], run, batch_size, label, load_texts)
    read = np.full((len(tokens), len(fillings), most), np.nan)
    read[texts, passes] = answers
    scores = np.take_along_axis(_scores(read, terms, pieces), words, axis=1)
    return scores - logsumexp(scores, axis=1, keepdims=True) if among == "candidates" else scores


def _plan(candidates: Sequence[Sequence[int]], pieces: str) -> tuple[Queries, list[list[tuple]]]:
    """Return what each pass is asked, and the (pass, question) numbers that make up each word.

    Words that begin alike share their passes.
    """
    queries: Queries = {}
    words = [
        [
            (filling, queries.setdefault(filling, {}).setdefault(query, len(queries[filling])))
            for filling, query in _steps(word, pieces)
        ]
        for word in candidates
    ]
    number = {filling: at for at, filling in enumerate(queries)}
    return queries, [[(number[filling], query) for filling, query in word] for word in words]


def _steps(word: Sequence[int], pieces: str) -> list[tuple[Filling, Query]]:
    """Return, for each piece of a word, the pass that it needs and what to read there."""
    places = range(len(word))
    if pieces == "chain":
        return [
            (Filling(tuple(word[:at]), len(word) - at), Query(mask=0, piece=word[at]))
            for at in places
        ]
    return [(Filling((), len(word)), Query(mask=at, piece=word[at])) for at in places]


def _filled(text: Sequence[int], mask: int, filling: Filling) -> list[int]:
    """Return a text's tokens with its mask replaced."""
    place = list(text).index(mask)
    return [*text[:place], *filling.pieces, *[mask] * filling.n_masks, *text[place + 1 :]]


def _pairs(fillings: list[Filling], queries: Queries, most: int) -> np.ndarray:
    """Return the (mask, piece) pairs that b rows are asked, (b most, 2), filled up with (0, 0)."""
    pairs = np.zeros((len(fillings), most, 2), dtype=int)
    start = 0
    for row, filling in zip(pairs, fillings, strict=True):
        pairs_of = [(start + query.mask, query.piece) for query in queries[filling]]
        row[: len(pairs_of)] = pairs_of
        start += filling.n_masks
    return pairs.reshape(-1, 2)


def _scores(read: np.ndarray, terms, pieces: str) -> np.ndarray:
    """Add up the terms of each word: (n texts, passes, questions) -> (n, words)."""
    combine = np.sum if pieces == "chain" else np.mean
    columns = [
        combine([read[:, number, question] for number, question in word], axis=0) for word in terms
    ]
    return np.stack(columns, axis=1)
