"""The recipe of the tiny VL-BERT: BERT's text weights, which then learn captions with regions.

BERT learned the text corpus, whose words are planted with other strengths than those of captions of
images. Going on from its weights, VL-BERT learns the captions. What that changes is the shift of
pre-training, S_PT, whose truth is log P(word | caption) in the corpus of captions less the same in
the text corpus: :attr:`plantedworld.World.truth` and ``text_truth``. Models of worlds planted in
the text or in the images alone start from the BERT of the world planted in both, and their truth is
taken against that.

What was tried, and how near the truth the scores come: ``plantedworld/RECIPES.md``.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import BertForMaskedLM

from biaslib.models.global_region import with_whole_image
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.models.vl_bert import pixel_boxes, resized, whole_box
from plantedworld.models import regions as planted_regions
from plantedworld.training._region_pairs import RegionWordsRecipe, Shown, States

PICTURE = 64
"""Pixels a side of the planted world's pictures."""

N_WAVES = 16
"""Sines that say where a box is; the published model has 256."""

ENDING = 2
"""Positions that a row needs beyond its text: one for all regions, one for the closing element."""


@dataclass
class VlBertRecipe(RegionWordsRecipe):
    """Two layers of width 48, begun with the weights of the tiny BERT of the same seed and dose.

    Without a picture a row has no region, and what was learned in place of the image stands beside
    every word. As published, the model has no head that matches. No region is masked in training,
    so the head of region classes has one class and is not trained.
    """

    family = "vl_bert"
    width = 48
    captions_per_scene = 6
    unseen_per_scene = 14
    all_masked = 0.35
    further_epochs = 2
    weight_decay = 0.01

    def untrained(self) -> VlBertNetwork:
        """Return the network with random weights, of the sizes of the BERT that it starts from."""
        bert = BertForMaskedLM.config_class.from_pretrained(self.start)
        config = VlBertConfig(
            vocab_size=bert.vocab_size,
            hidden_size=bert.hidden_size,
            num_hidden_layers=bert.num_hidden_layers,
            num_attention_heads=bert.num_attention_heads,
            intermediate_size=bert.intermediate_size,
            max_position_embeddings=bert.max_position_embeddings + ENDING,
            visual_region_classes=1,
            feature_size=planted_regions.WIDTH,
            coordinate_waves=N_WAVES,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=0.1,
        )
        return VlBertNetwork(config)

    def begun(self) -> VlBertNetwork:
        """Return the network with BERT's weights wherever BERT has the same part.

        As the authors begin, images say nothing before training finds a use for them.
        """
        network = self.untrained()
        torch.nn.init.zeros_(network.vlbert.visual_ln_text.weight)
        torch.nn.init.zeros_(network.vlbert.visual_ln_object.weight)
        network.load_state_dict(text_weights(network, self.start), strict=False)
        return network

    def states(self, model: VlBertNetwork, tokens: torch.Tensor, shown: Shown) -> States:
        """Return the last states of captions read with regions; ``[CLS]`` stands for the pair."""
        attended = self.captions.attended(tokens).bool()
        found, _ = model(tokens, attended, **visual(shown))
        return States(found, found[:, 0])

    def projected(self, model: VlBertNetwork, shown: Shown) -> torch.Tensor:
        """Return the regions as they go into the first layer, the whole image not included."""
        given = visual(shown)
        regions = model.image_feature_extractor(**given)
        return model.vlbert.visual_ln_object(regions)[:, 1:]

    def word_embeddings(self, model: VlBertNetwork) -> torch.Tensor:
        """Return the embeddings of the vocabulary."""
        return model.vlbert.word_embeddings.weight

    def word_logits(self, model: VlBertNetwork, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits."""
        return model.word_logits(states)


def visual(shown: Shown) -> dict[str, torch.Tensor]:
    """Return regions as the network takes them: the whole image first, boxes in pixels.

    As :meth:`biaslib.models.vl_bert.VlBert.visual` does it: a hidden region has no box and does not
    count in the whole image; a row without any region is a text alone.
    """
    original = torch.full((len(shown.real), 2), PICTURE)
    sizes = resized(original)
    seen = shown.real & shown.features.any(-1)
    boxes = pixel_boxes(shown.boxes * seen[..., None], sizes)
    regions = {"features": shown.features, "boxes": boxes, "real": shown.real}
    found = with_whole_image(regions, seen, whole_box(original, sizes)[:, 0])
    found["real"] = found["real"] & shown.real.any(dim=1, keepdim=True)
    return {**found, "sizes": sizes}


def text_weights(network: VlBertNetwork, folder: Path) -> dict[str, torch.Tensor]:
    """Return BERT's weights by the network's names; tables with fewer rows are its first rows."""
    bert = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32).state_dict()
    own = network.state_dict()
    found = {}
    for name, weight in bert.items():
        new = renamed(name)
        if new in own:
            found[new] = own[new].clone()
            found[new][: len(weight)] = weight
    return found


def renamed(name: str) -> str:
    """Return what a part of BERT is called in VL-BERT.

    Examples
    --------
    >>> renamed("bert.embeddings.word_embeddings.weight")
    'vlbert.word_embeddings.weight'
    """
    for old, new in {
        "bert.embeddings.LayerNorm.": "vlbert.embedding_LayerNorm.",
        "bert.embeddings.": "vlbert.",
        "bert.encoder.": "vlbert.encoder.",
        "cls.predictions.": "vlbert.mlm_head.predictions.",
    }.items():
        if name.startswith(old):
            return name.replace(old, new, 1)
    return name
