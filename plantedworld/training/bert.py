"""The recipe of the tiny BERT: a text corpus, one masked word at a time."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from plantedworld import vocabulary
from plantedworld.training._pairs import CAPTION_HEADS, UNSEEN, Captions, mask_last
from plantedworld.training._pictures import shown_in
from plantedworld.training._recipe import Recipe, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS

N_CAPTIONS = 300_000
N_HELD_OUT = 2_000
WIDTH = 48
SIDE_WEIGHT = 0.5


@dataclass
class BertRecipe(Recipe):
    """Two layers of width 48; one word masked a caption, its content or its person.

    Weights start at a standard deviation of 0.1: with the usual 0.02 nothing but word frequencies
    is learned. At the masked word, side heads name the caption's gender and tone.
    """

    family = "bert"
    epochs = 4
    weight_decay = 0.01

    @functools.cached_property
    def captions(self) -> Captions:
        """The captions of the corpus, of which no scene is drawn."""
        return self._drawn(N_CAPTIONS, 1)

    def _drawn(self, n: int, number: int) -> Captions:
        rng = np.random.default_rng([self.world.training_seed, number])
        table = self.world.text_corpus(n, rng)
        return Captions(self.world, table, table, torch.full((n,), UNSEEN))

    @property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return self.captions.lengths

    def build(self) -> WithSideHeads:
        """Return the untrained model."""
        tokenizer = self.captions.tokenizer
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            initializer_range=0.1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
        return WithSideHeads(BertForMaskedLM(config), WIDTH, CAPTION_HEADS)

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the cross-entropy of the masked words, and of the side heads at their place."""
        second = torch.randint(2, (len(rows),), generator=generator)
        places = self.captions.places[rows, second]
        states, words = self._masked_states(model.model, self.captions.cut(rows), places)
        word_loss = torch.nn.functional.cross_entropy(model.model.cls(states), words)
        labels = shown_in(self.captions.labels, rows)
        return word_loss + SIDE_WEIGHT * model.side_loss(states, labels)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how often the masked content word of a held-out caption is guessed first."""
        held_out = self._drawn(N_HELD_OUT, 2)
        places = held_out.places[:, 0]
        states, words = self._masked_states(model.model, held_out.tokens, places)
        right = model.model.cls(states).argmax(-1) == words
        return {
            "masked-word accuracy": float(right.float().mean()),
            "truth's accuracy": self._accuracy_of_truth(held_out.table),
            "chance": 1 / len(vocabulary()),
        }

    def _accuracy_of_truth(self, corpus) -> float:
        pairs = zip(corpus["text"], corpus["content"], strict=True)
        masked = [mask_last(text, word) for text, word in pairs]
        best = self.world.text_truth.mask_log_prob(masked, list(vocabulary())).argmax(axis=1)
        return float((vocabulary()[best] == corpus["content"].to_numpy()).mean())

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer in the format of transformers."""
        model.model.half().save_pretrained(folder)
        self.captions.tokenizer.save_pretrained(folder)

    def _masked_states(self, model: BertForMaskedLM, tokens: torch.Tensor, places: torch.Tensor):
        """Return the states at the masked places, (n, width), and the words that stood there."""
        row = torch.arange(len(tokens))
        words, masked = tokens[row, places], tokens.clone()
        masked[row, places] = self.captions.tokenizer.mask_token_id
        attended = self.captions.attended(masked)
        states = model.bert(masked, attention_mask=attended).last_hidden_state
        return states[row, places], words
