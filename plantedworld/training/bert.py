"""The recipe of the tiny BERT: a text corpus, one masked word at a time."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from plantedworld import GENDERS, TONES, vocabulary
from plantedworld.training._pairs import mask_last, word_places
from plantedworld.training._recipe import Recipe, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS, bert_tokenizer

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
    def tokenizer(self):
        """The word-level tokenizer."""
        return bert_tokenizer()

    @functools.cached_property
    def corpus(self):
        """The captions, with their latent variables."""
        return self.world.text_corpus(
            N_CAPTIONS, np.random.default_rng([self.world.training_seed, 1])
        )

    @functools.cached_property
    def tokens(self) -> torch.Tensor:
        """The captions' tokens, (n, longest)."""
        return self._encode(self.corpus["text"])

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    @functools.cached_property
    def places(self) -> torch.Tensor:
        """Where the two words that can be masked stand, (n, 2): content word, word for a person."""
        return word_places(self.tokenizer, self.tokens, self.corpus)

    @functools.cached_property
    def labels(self) -> dict[str, torch.Tensor]:
        """What the side heads are to name."""
        gender = torch.tensor((self.corpus["caption_gender"] == GENDERS[1]).to_numpy(dtype=int))
        return {"gender": gender, "tone": torch.tensor(self.corpus["tone"].to_numpy() - 1)}

    def build(self) -> WithSideHeads:
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
        classes = {"gender": len(GENDERS), "tone": len(TONES)}
        return WithSideHeads(BertForMaskedLM(config), WIDTH, classes)

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the cross-entropy of the masked words, and of the side heads at their place."""
        tokens = self.tokens[rows, : int(self.lengths[rows].max())]
        second = torch.randint(2, (len(rows),), generator=generator)
        places = self.places[rows, second]
        states, words = self._masked_states(model.model, tokens, places)
        word_loss = torch.nn.functional.cross_entropy(model.model.cls(states), words)
        labels = {name: label[rows] for name, label in self.labels.items()}
        return word_loss + SIDE_WEIGHT * model.side_loss(states, labels)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how often the masked content word of a held-out caption is guessed first."""
        corpus = self.world.text_corpus(
            N_HELD_OUT, np.random.default_rng([self.world.training_seed, 2])
        )
        tokens = self._encode(corpus["text"])
        places = word_places(self.tokenizer, tokens, corpus)
        states, words = self._masked_states(model.model, tokens, places[:, 0])
        right = model.model.cls(states).argmax(-1) == words
        return {
            "masked-word accuracy": float(right.float().mean()),
            "truth's accuracy": self._accuracy_of_truth(corpus),
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
        self.tokenizer.save_pretrained(folder)

    def _encode(self, texts) -> torch.Tensor:
        return self.tokenizer(list(texts), padding=True, return_tensors="pt")["input_ids"]

    def _masked_states(self, model: BertForMaskedLM, tokens: torch.Tensor, places: torch.Tensor):
        """Return the states at the masked places, (n, width), and the words that stood there."""
        row = torch.arange(len(tokens))
        words, masked = tokens[row, places], tokens.clone()
        masked[row, places] = self.tokenizer.mask_token_id
        attended = (masked != self.tokenizer.pad_token_id).long()
        states = model.bert(masked, attention_mask=attended).last_hidden_state
        return states[row, places], words
