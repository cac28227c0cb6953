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

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import FlavaConfig, FlavaForPreTraining, FlavaImageProcessor

from plantedworld.training._contrastive_pairs import ContrastivePairsRecipe
from plantedworld.training._pairs import UNSEEN
from plantedworld.training._pictures import shown_in
from plantedworld.training._pixel_pairs import WORD_SIDE_WEIGHT, States
from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS
from plantedworld.training.clip import FIRST_SCALE, unit
from plantedworld.training.vision import SIZE
from plantedworld.training.vit import BLOCKS, HEADS
from plantedworld.training.vit import LAYERS as IMAGE_LAYERS

WIDTH = 48
TEXT_LAYERS = 2
PAIR_LAYERS = 2
CONTRASTIVE_WEIGHT = 0.5


@dataclass
class FlavaRecipe(ContrastivePairsRecipe):
    """Two layers of text and two of both, of width 48, over a vision tower that stays as it is.

    The tower's states of the pictures are worked out once (compare Zhai et al. 2022, LiT).

    The unit vectors find objects; the matching head does not: see ``plantedworld/RECIPES.md``.
    """

    family = "flava"
    first_rate = 3e-3
    further_rate = 3e-3
    width = WIDTH

    def build_model(self) -> FlavaForPreTraining:
        """Return the model with the tower, which is not trained, in its place."""
        if self.first:
            model = FlavaForPreTraining(self._config)
            own = model.flava.image_model
            own.load_state_dict(own.state_dict() | self.tower.state_dict())
        else:
            model = FlavaForPreTraining.from_pretrained(self.start, dtype=torch.float32)
        model.flava.image_model.requires_grad_(False)
        return model

    @property
    def _config(self) -> FlavaConfig:
        tokenizer = self.captions.tokenizer
        blocks = {
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_attention_heads": HEADS,
            "initializer_range": 0.1,
        }
        text = {
            "num_hidden_layers": TEXT_LAYERS,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": MAX_TOKENS,
            "pad_token_id": tokenizer.pad_token_id,
        }
        return FlavaConfig(
            text_config=blocks | text,
            image_config=BLOCKS | {"num_hidden_layers": IMAGE_LAYERS, "vocab_size": 1},
            multimodal_config=blocks | {"num_hidden_layers": PAIR_LAYERS},
            hidden_size=WIDTH,
            projection_dim=WIDTH,
            initializer_range=0.1,
            init_codebook=False,
            logit_scale_init_value=float(np.log(FIRST_SCALE)),
            mim_weight=0.0,
            mmm_image_weight=0.0,
        )

    def states(
        self, model: FlavaForPreTraining, tokens: torch.Tensor, pictures: torch.Tensor | None
    ) -> States:
        """Return the last states of the multimodal transformer, or of the text's alone."""
        attended = self.captions.attended(tokens)
        text = model.flava.text_model(tokens, attention_mask=attended, output_hidden_states=True)
        if pictures is None:
            return States(text.last_hidden_state, text.last_hidden_state[:, 0], None)
        image = model.flava.image_to_mm_projection(pictures.float())
        words = model.flava.text_to_mm_projection(text.hidden_states[-1])
        before = 1 + image.shape[1]
        mask = torch.cat([attended.new_ones(len(tokens), before), attended], dim=1)
        both = torch.cat([image, words], dim=1)
        states = model.flava.multimodal_model(both, attention_mask=mask).last_hidden_state
        return States(states[:, before:], states[:, 0], states[:, 1])

    def word_logits(
        self, model: FlavaForPreTraining, states: torch.Tensor, seen: bool
    ) -> torch.Tensor:
        """Return the logits of the head for captions with a picture, or of that without."""
        return (model.mmm_text_head if seen else model.mlm_head)(states)

    def match_logits(self, model: FlavaForPreTraining, first: torch.Tensor) -> torch.Tensor:
        """Return the matching head's logits."""
        return model.itm_head(first[:, None])

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of masked words, of matching, of the text alone and of the contrast."""
        drawn_rows = rows[self.captions.scene[rows] != UNSEEN]
        contrast = self.contrast(model.model, drawn_rows)
        loss = super().loss(model, rows, generator) + CONTRASTIVE_WEIGHT * contrast
        return loss if self.first else loss + self._text_loss(model, rows, generator)

    def _text_loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the loss of words masked in captions without their pictures."""
        masked = self.captions.masked(rows, generator)
        states = self.states(model.model, masked.tokens, None).words
        states = states[torch.arange(len(rows)), masked.places]
        latent = shown_in(self.captions.labels, rows)
        named = WORD_SIDE_WEIGHT * model.side_loss(states, latent)
        logits = self.word_logits(model.model, states, seen=False)
        return torch.nn.functional.cross_entropy(logits, masked.words) + named

    def scale(self, model: FlavaForPreTraining) -> torch.Tensor:
        """Return what cosines are multiplied by."""
        return model.flava.logit_scale.exp()

    def text_vectors(self, model: FlavaForPreTraining, tokens: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of captions, of length 1."""
        states = model.flava.text_model(tokens, attention_mask=self.captions.attended(tokens))
        return unit(model.flava.text_projection(states.last_hidden_state[:, 0]))

    def image_vectors(self, model: FlavaForPreTraining, pictures: torch.Tensor) -> torch.Tensor:
        """Return the contrastive vectors of pictures, of length 1."""
        whole = model.flava.image_model.layernorm(pictures[:, 0].float())
        return unit(model.flava.image_projection(whole))

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration, tokenizer and image processor; see the module's text."""
        model.model.half().save_pretrained(folder)
        self.captions.tokenizer.save_pretrained(folder)
        image_processor().save_pretrained(folder)


@functools.cache
def image_processor() -> FlavaImageProcessor:
    """Return what turns a picture into the model's input: 64 pixels, colours from -1 to 1."""
    half, size = [0.5, 0.5, 0.5], {"height": SIZE, "width": SIZE}
    return FlavaImageProcessor(
        size=size, do_center_crop=False, crop_size=size, image_mean=half, image_std=half
    )
