"""The recipe of the tiny VisualBERT: caption and regions in one sequence."""

import torch
from torch import Tensor
from transformers import VisualBertConfig, VisualBertForPreTraining

from plantedworld.models import regions as planted_regions
from plantedworld.training._pairs import States
from plantedworld.training._recipe import FEW, Stage
from plantedworld.training._region_pairs import RegionBatch, RegionPairsRecipe, like_attends_to_like
from plantedworld.training.bert import bert_sizes


class VisualBertRecipe(RegionPairsRecipe):
    """Two layers of width 64 on ``[CLS] words [SEP]`` and three regions.

    Regions have token type 0, as in the original code, not 1, as transformers has it unless told.
    The matching head's index 1 is a match. Every model starts from nothing, so that those of
    unbiased worlds are independent draws of a model without bias; there are eight, from which the
    spread of a test without any bias is known.
    """

    family = "visualbert"
    worlds = (*FEW, *((0, seed, "both") for seed in range(3, 8)))
    starts_from = "regions"
    batch_size = 192
    first = Stage(16_000, epochs=(5,), learning_rate=3e-3, captions=2, unseen=32_000)

    def network(self) -> VisualBertForPreTraining:
        """Return the model with random weights."""
        width = planted_regions.WIDTH
        config = VisualBertConfig(**bert_sizes(self.width), visual_embedding_dim=width)
        model = VisualBertForPreTraining(config)
        like_attends_to_like(model)
        return model

    def states(
        self, model: VisualBertForPreTraining, tokens: Tensor, pictures: RegionBatch
    ) -> States:
        """Return the last states of captions read with regions."""
        output = model.visual_bert(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            visual_embeds=pictures.features,
            visual_attention_mask=pictures.real.long(),
            visual_token_type_ids=torch.zeros_like(pictures.real, dtype=torch.long),
        )
        return States(output.last_hidden_state[:, : tokens.shape[1]], output.pooler_output)

    def projected(self, model: VisualBertForPreTraining, regions: RegionBatch) -> Tensor:
        """Return the regions' features as the model first has them."""
        return model.visual_bert.embeddings.visual_projection(regions.features)
