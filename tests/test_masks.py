"""Masked words of several pieces, against a slow computation one row and one piece at a time."""

import numpy as np
import pytest
import torch
import transformers
from support import small_models

from biaslib import models
from biaslib.models.masked_words import candidate_log_prob

TOKENIZER = small_models.tokenizer()
TEXTS = ["the man is a [MASK].", "the [MASK] is here", "the old old tall [MASK] is here.", "[MASK]"]
CANDIDATES = ["nurse", "carry", "caring", "bad", "carrying", "car"]
PIECES = [["nurse"], ["car", "##ry"], ["car", "##ing"], ["b", "##a", "##d"],
          ["car", "##ry", "##ing"], ["car"]]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT with large random weights, so that words depend on one another."""
    folder = tmp_path_factory.mktemp("pieces")
    config = transformers.BertConfig(
        vocab_size=len(small_models.VOCABULARY), max_position_embeddings=12, **small_models.BLOCKS
    )
    network = small_models.random_network(lambda: transformers.BertForMaskedLM(config))
    network.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(folder):
    return models.load("bert", checkpoint=folder, device="cpu")


@pytest.fixture(scope="module")
def log_p(folder):
    """Log P of a piece at a place of one row of words, read with torch alone."""
    number = TOKENIZER.convert_tokens_to_ids
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()

    def at(words, place, piece):
        with torch.no_grad():
            logits = model(torch.tensor([number(words)])).logits[0, place].double()
        return (logits - logits.exp().sum().log())[number(piece)].item()

    return at


def words_of(text):
    inside = text.replace(".", " .").split()
    return ["[CLS]", *inside, "[SEP]"]


def slow_chain(log_p, text, pieces):
    words = words_of(text)
    start, total = words.index("[MASK]"), 0.0
    words[start : start + 1] = ["[MASK]"] * len(pieces)
    for place, piece in enumerate(pieces, start):
        total += log_p(words, place, piece)
        words[place] = piece
    return total


def slow_mean(log_p, text, pieces):
    words = words_of(text)
    start = words.index("[MASK]")
    words[start : start + 1] = ["[MASK]"] * len(pieces)
    return sum(log_p(words, start + i, piece) for i, piece in enumerate(pieces)) / len(pieces)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize(("rule", "slow"), [("chain", slow_chain), ("mean", slow_mean)])
def test_pieces_are_scored_as_defined(bert, log_p, rule, slow, batch_size):
    expected = [[slow(log_p, text, pieces) for pieces in PIECES] for text in TEXTS]
    found = bert.mask_log_prob(TEXTS, CANDIDATES, pieces=rule, batch_size=batch_size)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("rule", ["chain", "mean"])
def test_among_candidates_probabilities_sum_to_one_and_keep_their_ratios(bert, rule):
    over_all = bert.mask_log_prob(TEXTS, CANDIDATES, pieces=rule)
    shared = bert.mask_log_prob(TEXTS, CANDIDATES, pieces=rule, among="candidates")
    np.testing.assert_allclose(np.exp(shared).sum(axis=1), 1)
    np.testing.assert_allclose(np.diff(shared), np.diff(over_all))
    assert np.exp(over_all).sum(axis=1).max() < 0.99


def test_masks_count_towards_the_limit(bert):
    text = "the old old old old old old old [MASK] ."
    assert bert.limit == 12
    assert bert.mask_log_prob([text], ["nurse"]).shape == (1, 1)
    with pytest.raises(
        ValueError, match=r"text 1 has 14 tokens with the masks of the longest .* bert takes 12"
    ):
        bert.mask_log_prob(["the [MASK]", text], CANDIDATES)


def test_passes_that_are_asked_for_different_numbers_of_words_are_finite(monkeypatch):
    """Half precision refuses what is not finite: a place that nobody asks for must not be."""
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")

    def uniform(texts, rows, pairs):
        return np.full(len(pairs), -np.log(10))

    found = candidate_log_prob([[1, 9, 2], [9, 2]], [[[3], [6], [4, 5]]] * 2, 9, uniform)
    np.testing.assert_allclose(found, -np.log(10) * np.array([[1, 1, 2]] * 2))
