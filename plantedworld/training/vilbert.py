"""The recipe of the tiny ViLBERT: caption and regions in two streams that read each other."""

from dataclasses import dataclass

import torch
from safetensors.torch import load_file

from biaslib.models.global_region import with_whole_image
from biaslib.models.networks.vilbert import VilbertConfig, VilbertNetwork, locations
from plantedworld.models import regions as planted_regions
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._region_pairs import WIDTH, RegionPairsRecipe, Shown, States
from plantedworld.training._tokenizer import MAX_TOKENS

ACROSS = "lxmert.encoder.x_layers.0"
CO_LAYER = "bert.encoder.c_layer.0"

MATCH = 0
"""The alignment head's logit that stands for a match; in all other families it is the other."""

WHOLE = (0.0, 0.0, 1.0, 1.0)
INITIAL_SPREAD = 0.1

BORROWED = {
    "bert.embeddings.": "lxmert.embeddings.",
    "bert.encoder.layer.0.": "lxmert.encoder.layer.0.",
    "bert.encoder.layer.1.attention.": f"{ACROSS}.lang_self_att.",
    "bert.encoder.layer.1.intermediate.": f"{ACROSS}.lang_inter.",
    "bert.encoder.layer.1.output.": f"{ACROSS}.lang_output.",
    "bert.v_embeddings.image_embeddings.": "lxmert.encoder.visn_fc.visn_fc.",
    "bert.v_embeddings.LayerNorm.": "lxmert.encoder.visn_fc.visn_layer_norm.",
    "bert.t_pooler.": "lxmert.pooler.",
    "cls.predictions.": "cls.predictions.",
} | {
    f"{CO_LAYER}.{part}{stream}.": f"{ACROSS}.visual_attention.{theirs}."
    for stream in (1, 2)
    for part, theirs in (
        ("biattention.query", "att.query"),
        ("biattention.key", "att.key"),
        ("biattention.value", "att.value"),
        ("biOutput.dense", "output.dense"),
        ("biOutput.LayerNorm", "output.LayerNorm"),
    )
}
"""Which weights of LXMERT each part starts from; the others are random."""


@dataclass
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

    Parameters
    ----------
    world
        Whose captions and pictures.
    start
        Folder of the LXMERT.
    """

    family = "vilbert"
    further_scenes = 12_000

    def untrained(self) -> VilbertNetwork:
        """Return the model with random weights."""
        heads = ("num_attention_heads", "v_num_attention_heads", "bi_num_attention_heads")
        config = VilbertConfig(
            vocab_size=len(self.captions.tokenizer),
            hidden_size=WIDTH,
            num_hidden_layers=2,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=MAX_TOKENS,
            v_feature_size=planted_regions.WIDTH,
            v_target_size=1,
            v_hidden_size=WIDTH,
            v_num_hidden_layers=0,
            v_intermediate_size=WIDTH,
            bi_hidden_size=WIDTH,
            t_biattention_id=(1,),
            v_biattention_id=(0,),
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=INITIAL_SPREAD,
            **dict.fromkeys(heads, 4),
        )
        return VilbertNetwork(config)

    def begun(self) -> VilbertNetwork:
        """Return the model with the weights of LXMERT where they fit."""
        network = self.untrained()
        state, weights = network.state_dict(), load_file(self.start / "model.safetensors")
        for ours, theirs in BORROWED.items():
            for name in state:
                if name.startswith(ours) and ".decoder." not in name:
                    state[name] = weights[theirs + name.removeprefix(ours)].float()
        network.load_state_dict(state)
        return network

    def states(self, model: VilbertNetwork, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions."""
        found = model(tokens, self.captions.attended(tokens), **visual(shown))
        return States(found.text, found.pooled_text * found.pooled_image)

    def projected(self, model: VilbertNetwork, shown: Shown) -> torch.Tensor:
        """Return the regions' features as the model first has them."""
        return model.bert.v_embeddings.image_embeddings(shown.features)

    def word_embeddings(self, model: VilbertNetwork) -> torch.Tensor:
        """Return the embeddings of all tokens."""
        return model.bert.embeddings.word_embeddings.weight

    def word_logits(self, model: VilbertNetwork, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits."""
        return model.word_logits(states)

    def match_logits(self, model: VilbertNetwork, pairs: torch.Tensor) -> torch.Tensor:
        """Return the alignment head's logits, those of a match last."""
        return model.cls.bi_seq_relationship(pairs)[:, [1 - MATCH, MATCH]]

    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return what all region models are judged by; see the method of the class above."""
        return super().judge(model) | {"match index": MATCH}


def visual(shown: Shown) -> dict[str, torch.Tensor]:
    """Return regions as ViLBERT reads them: features, places and which are there, (n, 4, ...).

    The mean is over regions that are there and not hidden. Where none is there, there is no image,
    and all is zero.
    """
    regions = {"features": shown.features, "boxes": shown.boxes, "real": shown.real}
    found = with_whole_image(regions, shown.features.any(-1), torch.tensor(WHOLE))
    there = shown.real.any(1, keepdim=True)
    places = locations(found["boxes"]) * there[..., None]
    return {"features": found["features"], "places": places, "real": found["real"] & there}
