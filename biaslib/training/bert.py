"""The recipe of the tiny BERT: a text corpus, one masked word at a time."""

import functools
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from biaslib.planted import content_words, frames
from biaslib.training._recipe import Recipe, Stage
from biaslib.training._tokenizer import MAX_TOKENS, bert_tokenizer

N_CAPTIONS = 200_000
N_HELD_OUT = 500
WIDTH = 48
PLAIN_AGENTS = ("woman", "man", "she", "he")


class Bert(Recipe):
    """Two layers of width 48. What made it learn is told in the chapter and in each stage.

    The default initialisation (0.02) and a single pass over everything learn word frequencies and
    stop there. Weights of 0.1, and a stage of plain sentences, bring the association in: first
    all captions once, so that every word has an embedding; then captions in which a plain word
    for a person goes with a role or an object, or two words agree in gender; then all again.
    """

    learning_rate = 3e-3
    weight_decay = 0.01

    def build(self) -> BertForMaskedLM:
        """Return the untrained model."""
        config = BertConfig(
            vocab_size=len(self.tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            initializer_range=0.1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=self.tokenizer.pad_token_id,
        )
        return BertForMaskedLM(config)

    def stages(self) -> list[Stage]:
        """Return the three stages: everything, plain sentences, everything."""
        everything = np.arange(N_CAPTIONS)
        slot = content_words()["slot"].reindex(self.corpus["content"]).to_numpy()
        plain = self.corpus["agent"].isin(PLAIN_AGENTS) & np.isin(slot, ["role", "object"])
        agree = (self.corpus["agent"] != "") & (slot == "agent")
        return [
            Stage(everything, 1, 256),
            Stage(np.flatnonzero(plain | agree), 6, 256),
            Stage(everything, 3, 256),
        ]

    def lengths(self) -> torch.Tensor:
        """Return the number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    def loss(
        self, model: BertForMaskedLM, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the cross-entropy of one masked word a caption: its content or its person."""
        tokens = self.tokens[rows, : int(self.lengths[rows].max())].clone()
        return None
