"""The recipe of the tiny ViLBERT: caption and regions in two streams that read each other."""

import torch
from safetensors.torch import load_file
from torch import Tensor

from biaslib.models.networks.vilbert import VilbertConfig, VilbertNetwork, locations
from biaslib.pictures.global_region import with_whole_image
from plantedworld.models import regions as planted_regions
from plantedworld.training._pairs import States
from plantedworld.training._recipe import Stage
from plantedworld.training._region_pairs import WIDTH, RegionBatch, RegionPairsRecipe
from plantedworld.training._weights import borrowed, names
from plantedworld.training.bert import bert_sizes

MATCH = 0
"""The alignment head's logit that stands for a match; in all other families it is the other."""

WHOLE = (0.0, 0.0, 1.0, 1.0)

BORROWED = names("vilbert from lxmert")
"""Which weights of LXMERT each part starts from; the others are random."""


class VilbertRecipe(RegionPairsRecipe):
    """A layer for words, one in which words and regions read each other, one more for words.

    All of width 64. As in the published network, regions go into the first co-attention as they
    are embedded. The whole image goes before them, with the mean of their features, as the adapter
    has it; without an image no region is there and all are zero. The region-class head has one
    class and is not trained.

    The published ViLBERT starts from BERT. This one starts from what the tiny LXMERT of one
    unbiased world has in common with it: words, the layers for text and the attention between the
    streams, which is one for both directions in LXMERT and two here. From random weights it would
    need several times as long. So models of several worlds are not independent draws.
    """

    family = "vilbert"
    starts_from = "lxmert"
    first = Stage(12_000, epochs=(3,), learning_rate=2e-3, captions=2, unseen=24_000)

    def network(self) -> VilbertNetwork:
        """Return the model with the weights of LXMERT where they fit."""
        heads = ("num_attention_heads", "v_num_attention_heads", "bi_num_attention_heads")
        sizes = bert_sizes(WIDTH) | dict.fromkeys(heads, 4)
        config = VilbertConfig(
            **sizes,
            v_feature_size=planted_regions.WIDTH,
            v_target_size=1,
            v_hidden_size=WIDTH,
            v_num_hidden_layers=0,
            v_intermediate_size=WIDTH,
            bi_hidden_size=WIDTH,
            t_biattention_id=(1,),
            v_biattention_id=(0,),
        )
        network = VilbertNetwork(config)
        lxmert = load_file(self.start / "model.safetensors")
        network.load_state_dict(borrowed(network, lxmert, BORROWED), strict=False)
        return network

    def states(self, model: VilbertNetwork, tokens: Tensor, pictures: RegionBatch) -> States:
        """Return the last states of captions read with regions."""
        output = model(tokens, self.captions.attended(tokens), **visual(pictures))
        return States(output.text, output.pooled_text * output.pooled_image)

    def projected(self, model: VilbertNetwork, regions: RegionBatch) -> Tensor:
        """Return the regions' features as the model first has them."""
        return model.bert.v_embeddings.image_embeddings(regions.features)

    def match_logits(self, model: VilbertNetwork, pair: Tensor) -> Tensor:
        """Return the alignment head's logits, those of a match last."""
        return model.cls.bi_seq_relationship(pair)[:, [1 - MATCH, MATCH]]


def visual(regions: RegionBatch) -> dict[str, Tensor]:
    """Return regions as ViLBERT reads them: features, places and which are there, (n, 4, ...).

    The mean is over regions that are there and not hidden. Where none is there, there is no image,
    and all is zero.
    """
    seen = regions.features.any(-1)
    all_regions = with_whole_image(regions._asdict(), seen, torch.tensor(WHOLE))
    is_image = regions.real.any(1, keepdim=True)
    places = locations(all_regions["boxes"]) * is_image[..., None]
    real = all_regions["real"] & is_image
    return {"features": all_regions["features"], "places": places, "real": real}
