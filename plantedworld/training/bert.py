"""The recipe of the tiny BERT: a text corpus, one masked word at a time."""

import functools

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM

from plantedworld.training._captions import CAPTION_HEADS, UNSEEN, Captions
from plantedworld.training._labels import selected
from plantedworld.training._pairs import SIDE_WEIGHT, CaptionsRecipe
from plantedworld.training._recipe import GRID, Stage, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS, bert_tokenizer

N_CAPTIONS = 300_000


class BertRecipe(CaptionsRecipe):
    """Two layers of width 48; one word masked a caption, its content or its person.

    Weights start at a standard deviation of 0.1: with the usual 0.02 nothing but word frequencies
    is learned. At the masked word, side heads name the caption's gender and tone.
    """

    family = "bert"
    worlds = GRID
    first = Stage(scenes=0, epochs=(4,), unseen=N_CAPTIONS)
    weight_decay = 0.01
    width = 48
    heads = CAPTION_HEADS

    @functools.cached_property
    def captions(self) -> Captions:
        """The captions of the corpus, of which no scene is drawn."""
        rng = np.random.default_rng([self.world.training_seed, 1])
        table = self.world.text_corpus(self.stage.unseen, rng)
        return Captions(self.world, table, table, torch.full((len(table),), UNSEEN))

    def network(self) -> BertForMaskedLM:
        """Return the untrained model."""
        return BertForMaskedLM(BertConfig(**bert_sizes(self.width)))

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the cross-entropy of the masked words, and of the side heads at their place."""
        row, captions = torch.arange(len(rows)), self.captions
        places = captions.places[rows, torch.randint(2, (len(rows),), generator=generator)]
        tokens = captions.cut(rows)
        words = tokens[row, places]
        tokens[row, places] = captions.tokenizer.mask_token_id
        read = model.model.bert(tokens, attention_mask=captions.attended(tokens))
        states = read.last_hidden_state[row, places]
        named = model.side_loss(states, selected(captions.labels, rows))
        return cross_entropy(model.model.cls(states), words) + SIDE_WEIGHT * named


def bert_sizes(width: int, n_layers: int = 2) -> dict:
    """Return the settings that the tiny text encoders in BERT's layout have in common."""
    tokenizer = bert_tokenizer()
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "num_hidden_layers": n_layers,
        "num_attention_heads": 4,
        "intermediate_size": 2 * width,
        "max_position_embeddings": MAX_TOKENS,
        "initializer_range": 0.1,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": tokenizer.pad_token_id,
    }
