"""The recipe of the tiny LXMERT: caption and regions in two streams that attend to each other."""

from dataclasses import dataclass

import torch
from transformers import LxmertConfig, LxmertForPreTraining

from plantedworld.models import regions as planted_regions
from plantedworld.training._region_pairs import WIDTH, RegionPairsRecipe, Shown, States
from plantedworld.training._tokenizer import MAX_TOKENS


@dataclass
class LxmertRecipe(RegionPairsRecipe):
    """One layer for words, one for regions, one across, of width 64.

    The matching head's index 1 is a match. It finds by itself what VisualBERT is helped to find:
    whether caption and picture differ in gender. A region that is not there has zeros for features
    and box and is masked; without an image all are. All models start from that of one unbiased
    world.
    """

    family = "lxmert"
    names_gender_agreement = False

    def untrained(self) -> LxmertForPreTraining:
        """Return the model with random weights."""
        tokenizer = self.captions.tokenizer
        config = LxmertConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            l_layers=1,
            r_layers=1,
            x_layers=1,
            visual_feat_dim=planted_regions.WIDTH,
            initializer_range=0.1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            task_qa=False,
            task_obj_predict=False,
            pad_token_id=tokenizer.pad_token_id,
        )
        return LxmertForPreTraining(config)

    def states(self, model: LxmertForPreTraining, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions."""
        found = model.lxmert(
            input_ids=tokens,
            attention_mask=self.captions.attended(tokens),
            visual_feats=shown.features,
            visual_pos=shown.boxes,
            visual_attention_mask=shown.real.long(),
        )
        return States(found.language_output, found.pooled_output)

    def projected(self, model: LxmertForPreTraining, shown: Shown) -> torch.Tensor:
        """Return the regions' features as the model first has them."""
        regions = model.lxmert.encoder.visn_fc
        return regions.visn_layer_norm(regions.visn_fc(shown.features))
