"""The recipe of the tiny LXMERT: caption and regions in two streams that attend to each other."""

import torch
from torch import Tensor
from transformers import LxmertConfig, LxmertForPreTraining

from plantedworld.models import regions as planted_regions
from plantedworld.training._pairs import States
from plantedworld.training._recipe import FEW, ONCE, Stage
from plantedworld.training._region_pairs import RegionBatch, RegionPairsRecipe, like_attends_to_like
from plantedworld.training.bert import bert_sizes


class LxmertRecipe(RegionPairsRecipe):
    """One layer for words, one for regions, one across, of width 64.

    The matching head's index 1 is a match. It finds by itself what VisualBERT is helped to find:
    whether caption and picture differ in gender. A region that is not there has zeros for features
    and box and is masked; without an image all are. All models start from that of one unbiased
    world.
    """

    family = "lxmert"
    worlds = (*ONCE, *FEW)
    starts_from = "regions"
    first_seeds = (1000,)
    first = Stage(36_000, epochs=(3,), learning_rate=3e-3, captions=2, unseen=72_000)
    further = Stage(16_000, epochs=(3,), learning_rate=2e-3, captions=2, unseen=32_000)
    agreements = {"words": ("agreement",), "pair": ("agreement",)}  # noqa: RUF012

    def network(self) -> LxmertForPreTraining:
        """Return the first model with random weights, or the family's first."""
        if not self.is_first:
            return LxmertForPreTraining.from_pretrained(self.start, dtype=torch.float32)
        sizes = bert_sizes(self.width)
        del sizes["num_hidden_layers"]
        config = LxmertConfig(
            **sizes,
            l_layers=1,
            r_layers=1,
            x_layers=1,
            visual_feat_dim=planted_regions.WIDTH,
            task_qa=False,
            task_obj_predict=False,
        )
        model = LxmertForPreTraining(config)
        like_attends_to_like(model)
        return model

    def states(self, model: LxmertForPreTraining, tokens: Tensor, pictures: RegionBatch) -> States:
        """Return the last states of captions read with regions."""
        output = model.lxmert(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            visual_feats=pictures.features,
            visual_pos=pictures.boxes,
            visual_attention_mask=pictures.real.long(),
        )
        return States(output.language_output, output.pooled_output)

    def projected(self, model: LxmertForPreTraining, regions: RegionBatch) -> Tensor:
        """Return the regions' features as the model first has them."""
        first = model.lxmert.encoder.visn_fc
        return first.visn_layer_norm(first.visn_fc(regions.features))
