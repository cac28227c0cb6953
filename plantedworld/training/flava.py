"""The recipe of the tiny FLAVA: a text, an image and a multimodal transformer.

Files of a checkpoint
---------------------
``model.safetensors`` in half precision, with the names of ``FlavaForPreTraining`` without its image
codebook (``init_codebook`` is false in ``config.json``): ``flava.*``; ``mmm_text_head``, masked
words with a picture; ``mlm_head``, masked words without one; ``itm_head``, whose index 1 is a
match; ``flava.image_projection``, ``flava.text_projection`` and ``flava.logit_scale``, the
contrastive pair. The heads for masked patches (``mim_head``, ``mmm_image_head``) are there because
transformers asks for them; they have one class and are not trained.

No image is the text model alone with ``mlm_head``, since the multimodal transformer of transformers
cannot run without one. The white picture is another input, and trained as well.
"""

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy
from transformers import FlavaConfig, FlavaForPreTraining, FlavaImageProcessor

from plantedworld.training._captions import NONE, UNSEEN
from plantedworld.training._pairs import SIDE_WEIGHT, States
from plantedworld.training._pixel_pairs import ContrastivePairsRecipe, ReadsWithoutPictures
from plantedworld.training._recipe import FEW, ONCE, Stage, WithSideHeads
from plantedworld.training.bert import bert_sizes
from plantedworld.training.clip import FIRST_SCALE, unit
from plantedworld.training.vision import SIZE
from plantedworld.training.vit import BLOCKS, LAYERS

WIDTH = 48
CONTRASTIVE_WEIGHT = 0.5
MATCH_WEIGHT = 2.0


class FlavaRecipe(ContrastivePairsRecipe, ReadsWithoutPictures):
    """Two layers of text and two of both, of width 48, over a vision tower that stays as it is.

    The unit vectors find objects; the matching head does not: see ``plantedworld/RECIPES.md``.
    """

    family = "flava"
    worlds = (*ONCE, *FEW)
    first_seeds = (1000,)
    first = Stage(30_000, epochs=(5,), learning_rate=3e-3, captions=2, unseen=20_000)
    further = Stage(15_000, epochs=(3,), learning_rate=3e-3, captions=2, unseen=30_000)
    width = WIDTH

    @property
    def preprocessing(self) -> list:
        """The tokenizer and the image processor."""
        half, size = [0.5, 0.5, 0.5], {"height": SIZE, "width": SIZE}
        processor = FlavaImageProcessor(
            size=size, do_center_crop=False, crop_size=size, image_mean=half, image_std=half
        )
        return [*super().preprocessing, processor]

    def network(self) -> FlavaForPreTraining:
        """Return the model with the tower, which is not trained, in its place."""
        if self.is_first:
            model = FlavaForPreTraining(self.config)
            own = model.flava.image_model
            own.load_state_dict(own.state_dict() | self.tower.state_dict())
        else:
            model = FlavaForPreTraining.from_pretrained(self.start, dtype=torch.float32)
        model.flava.image_model.requires_grad_(False)
        return model

    @property
    def config(self) -> FlavaConfig:
        """The sizes of the model."""
        text = bert_sizes(WIDTH)
        apart = ("vocab_size", "max_position_embeddings", "pad_token_id")
        blocks = {name: size for name, size in text.items() if name not in apart}
        return FlavaConfig(
            text_config=text,
            image_config=BLOCKS | {"num_hidden_layers": LAYERS, "vocab_size": 1},
            multimodal_config=blocks,
            hidden_size=WIDTH,
            projection_dim=WIDTH,
            initializer_range=0.1,
            init_codebook=False,
            logit_scale_init_value=float(np.log(FIRST_SCALE)),
            mim_weight=0.0,
            mmm_image_weight=0.0,
        )

    def states(self, model: FlavaForPreTraining, tokens: Tensor, pictures: Tensor | None) -> States:
        """Return the last states of the multimodal transformer, or of the text's alone."""
        attended = self.captions.attended(tokens)
        text = model.flava.text_model(tokens, attention_mask=attended, output_hidden_states=True)
        if pictures is None:
            return States(text.last_hidden_state, text.last_hidden_state[:, 0])
        image = model.flava.image_to_mm_projection(pictures.float())
        words = model.flava.text_to_mm_projection(text.hidden_states[-1])
        before = 1 + image.shape[1]
        mask = torch.cat([attended.new_ones(len(tokens), before), attended], dim=1)
        both = torch.cat([image, words], dim=1)
        states = model.flava.multimodal_model(both, attention_mask=mask).last_hidden_state
        return States(states[:, before:], states[:, 0], states[:, 1])

    def word_logits(self, model: FlavaForPreTraining, states: Tensor, seen: bool = True) -> Tensor:
        """Return the logits of the head for captions with a picture, or of that without."""
        return (model.mmm_text_head if seen else model.mlm_head)(states)

    def match_logits(self, model: FlavaForPreTraining, pair: Tensor) -> Tensor:
        """Return the matching head's logits."""
        return model.itm_head(pair[:, None])

    def similarities(self, model: FlavaForPreTraining, tokens: Tensor, pictures: Tensor) -> Tensor:
        """Return the scaled cosines of captions with pictures."""
        flava, attended = model.flava, self.captions.attended(tokens)
        text = flava.text_model(tokens, attention_mask=attended).last_hidden_state[:, 0]
        image = flava.image_model.layernorm(pictures[:, 0].float())
        texts, images = unit(flava.text_projection(text)), unit(flava.image_projection(image))
        return flava.logit_scale.exp() * texts @ images.T

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of masked words, of matching, of the text alone and of the contrast."""
        drawn = rows[self.captions.scene[rows] != UNSEEN]
        contrast = CONTRASTIVE_WEIGHT * self.contrast(model.model, drawn)
        loss = self.word_loss(model, rows, generator)
        loss = loss + self.match_loss(model, drawn, generator) + contrast
        if self.is_first:
            return loss
        alone = self.captions.masked(rows, generator)
        return loss + self.masked_loss(model, rows, alone, torch.full((len(rows),), NONE))

    def match_loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the loss of telling whether captions belong to the scenes of some captions."""
        matched, scene = self.captions.matched(rows, generator), self.captions.scene[rows]
        states = self.states(model.model, matched.tokens, self.view(scene))
        loss = cross_entropy(self.match_logits(model.model, states.pair), matched.labels)
        named = self.named(model, "picture", states.picture, scene)
        named = named + self.named(model, "pair", states.pair, scene)
        loss = MATCH_WEIGHT * loss + SIDE_WEIGHT * named
        if self.is_first:
            return loss
        read = {"agrees": states.pair}
        return loss + self.agreement_loss(model, matched.tokens, scene, read)
