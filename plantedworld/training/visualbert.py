"""The recipe of the tiny VisualBERT: caption and regions in one sequence."""

from dataclasses import dataclass

import torch
from transformers import VisualBertConfig, VisualBertForPreTraining

from plantedworld.models import regions as planted_regions
from plantedworld.training._region_pairs import WIDTH, RegionPairsRecipe, Shown, States
from plantedworld.training._tokenizer import MAX_TOKENS


@dataclass
class VisualBertRecipe(RegionPairsRecipe):
    """Two layers of width 64 on ``[CLS] words [SEP]`` and three regions.

    Regions have token type 0, as in the original code, not 1, as transformers has it unless told.
    The matching head's index 1 is a match. Every model starts from nothing, so that those of
    unbiased worlds are independent draws of a model without bias.
    """

    family = "visualbert"
    batch_size = 192
    first_scenes = 16_000
    first_epochs = 5

    def untrained(self) -> VisualBertForPreTraining:
        """Return the model with random weights."""
        tokenizer = self.captions.tokenizer
        config = VisualBertConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            visual_embedding_dim=planted_regions.WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            initializer_range=0.1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
        return VisualBertForPreTraining(config)

    def states(self, model: VisualBertForPreTraining, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions."""
        found = model.visual_bert(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            visual_embeds=shown.features,
            visual_attention_mask=shown.real.long(),
            visual_token_type_ids=torch.zeros_like(shown.real, dtype=torch.long),
        )
        return States(found.last_hidden_state[:, : tokens.shape[1]], found.pooler_output)

    def projected(self, model: VisualBertForPreTraining, shown: Shown) -> torch.Tensor:
        """Return the regions' features as the model first has them."""
        return model.visual_bert.embeddings.visual_projection(shown.features)
