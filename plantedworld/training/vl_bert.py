"""The recipe of the tiny VL-BERT: BERT's text weights, which then learn captions with regions.

BERT learned the text corpus, whose words are planted with other strengths than those of captions of
images. Going on from its weights, VL-BERT learns the captions. What that changes is the shift of
pre-training, S_PT, whose truth is log P(word | caption) in the corpus of captions less the same in
the text corpus: :attr:`plantedworld.World.truth` and ``text_truth``. Models of worlds planted in
the text or in the images alone start from the BERT of the world planted in both, and their truth is
taken against that.

What was tried, and how near the truth the scores come: ``plantedworld/RECIPES.md``.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Generator, Tensor, nn

from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.models.vl_bert import pixel_boxes, resized, whole_box
from biaslib.pictures.global_region import with_whole_image
from plantedworld.models import regions as planted_regions
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.training._captions import UNSEEN
from plantedworld.training._pairs import States
from plantedworld.training._recipe import FEW, Stage, WithSideHeads
from plantedworld.training._region_pairs import RegionBatch, RegionPairsRecipe
from plantedworld.training._weights import names, renamed
from plantedworld.training.bert import bert_sizes

PICTURE = 64
"""Pixels a side of the planted world's pictures."""

N_WAVES = 16
"""Sines that say where a box is; the published model has 256."""

ENDING = 2
"""Positions that a row needs beyond its text: one for all regions, one for the closing element."""

REGIONS_WEIGHT = 0.25
OF_BERT = names("vl_bert from bert")
"""What parts of BERT are called in VL-BERT."""


class VlBertRecipe(RegionPairsRecipe):
    """Two layers of width 48, begun with the weights of the tiny BERT of the same seed and dose.

    Without a picture a row has no region, and what was learned in place of the image stands beside
    every word. As published, the model has no head that matches. No region is masked in training,
    so the head of region classes has one class and is not trained. Side heads name what the picture
    shows at the masked word and at the pair's state.
    """

    family = "vl_bert"
    worlds = (*FEW, *((1, seed, "both") for seed in range(3)))
    starts_from = "bert"
    width = 48
    first = Stage(16_000, epochs=(2,), learning_rate=2e-3, captions=6, unseen=224_000)
    all_masked = 0.35
    weight_decay = 0.01
    places = ("words", "pair")
    agreements = {"words": (), "pair": ()}  # noqa: RUF012

    @property
    def start(self) -> Path:
        """Folder of the BERT of the same world, planted in both."""
        return CHECKPOINTS / checkpoint_name("bert", self.world.dose, self.world.seed)

    def network(self) -> VlBertNetwork:
        """Return the network with BERT's weights wherever BERT has the same part.

        As the authors begin, images say nothing before training finds a use for them.
        """
        sizes = bert_sizes(self.width)
        sizes["max_position_embeddings"] += ENDING
        config = VlBertConfig(
            **sizes,
            visual_region_classes=1,
            feature_size=planted_regions.WIDTH,
            coordinate_waves=N_WAVES,
        )
        network = VlBertNetwork(config)
        torch.nn.init.zeros_(network.vlbert.visual_ln_text.weight)
        torch.nn.init.zeros_(network.vlbert.visual_ln_object.weight)
        own = network.state_dict()
        for name, weight in renamed(load_file(self.start / "model.safetensors"), OF_BERT).items():
            own[name][: len(weight)] = weight
        return network

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of masked words, and of naming what their pictures' regions show."""
        scene = self.captions.scene[rows]
        drawn = scene[scene != UNSEEN]
        words = self.word_loss(model, rows, generator)
        return words + REGIONS_WEIGHT * self.regions_loss(model, self.view(drawn), drawn)

    def states(self, model: VlBertNetwork, tokens: Tensor, pictures: RegionBatch) -> States:
        """Return the last states of captions read with regions; ``[CLS]`` stands for the pair."""
        attended = self.captions.attended(tokens).bool()
        states, _ = model(tokens, attended, **visual(pictures))
        return States(states, states[:, 0])

    def projected(self, model: VlBertNetwork, regions: RegionBatch) -> Tensor:
        """Return the regions as they go into the first layer, the whole image not included."""
        features = model.image_feature_extractor(**visual(regions))
        return model.vlbert.visual_ln_object(features)[:, 1:]

    def word_head(self, model: VlBertNetwork) -> nn.Module:
        """Return the masked-word head."""
        return model.vlbert.mlm_head.predictions


def visual(regions: RegionBatch) -> dict[str, Tensor]:
    """Return regions as the network takes them: the whole image first, boxes in pixels.

    As :meth:`biaslib.models.vl_bert.VlBert.visual` does it: a hidden region has no box and does not
    count in the whole image; a row without any region is a text alone.
    """
    original = torch.full((len(regions.real), 2), PICTURE)
    sizes = resized(original)
    seen = regions.real & regions.features.any(-1)
    boxes = pixel_boxes(regions.boxes * seen[..., None], sizes)
    in_pixels = regions._replace(boxes=boxes)._asdict()
    all_regions = with_whole_image(in_pixels, seen, whole_box(original, sizes)[:, 0])
    all_regions["real"] = all_regions["real"] & regions.real.any(dim=1, keepdim=True)
    return {**all_regions, "sizes": sizes}
