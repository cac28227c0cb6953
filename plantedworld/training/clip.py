"""The recipe of the tiny CLIP."""

import functools

import numpy as np
import pandas
import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy, normalize
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPVisionModel

from plantedworld.training._recipe import GRID, Recipe, Stage, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS, clip_tokenizer
from plantedworld.training.vision import SIZE, VISION, encoded

N_PAIRS = 45_000
TEXT_WIDTH = 48
FIRST_SCALE = 10.0


class ClipRecipe(Recipe):
    """CLIP whose vision tower is trained already and stays as it is (Zhai et al. 2022, LiT).

    Trained from nothing, in the minutes that a laptop has, both towers learn what is in plain
    sight and hardly what goes with it. A tower that can name what it sees leaves the training to
    the associations, and pictures are encoded once.

    What was compared with it: ``plantedworld/RECIPES.md``.
    """

    family = "clip"
    worlds = GRID
    starts_from = "vision"
    first = Stage(scenes=N_PAIRS, epochs=(8,))
    weight_decay = 0.02

    @functools.cached_property
    def tower(self) -> CLIPVisionModel:
        """The vision tower."""
        return CLIPVisionModel.from_pretrained(self.start, dtype=torch.float32).eval()

    @functools.cached_property
    def scenes(self) -> pandas.DataFrame:
        """The scenes of the corpus."""
        rng = np.random.default_rng([self.world.training_seed, 1])
        return self.world.scenes(self.stage.scenes, rng)

    @functools.cached_property
    def states(self) -> Tensor:
        """The tower's states of the corpus, (n, 64)."""
        return encoded(self.scenes, lambda seen: self.tower(seen).pooler_output, "clip: pictures")

    @functools.cached_property
    def tokenizer(self):
        """The word-level tokenizer."""
        return clip_tokenizer()

    @functools.cached_property
    def tokens(self) -> Tensor:
        """The captions' tokens, (n, longest)."""
        rng = np.random.default_rng([self.world.training_seed, 2])
        texts = self.world.captions(self.scenes, rng)["text"].tolist()
        return self.tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]

    @functools.cached_property
    def lengths(self) -> Tensor:
        """Number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    @property
    def preprocessing(self) -> list:
        """The tokenizer and the image processor."""
        return [self.tokenizer, image_processor()]

    def network(self) -> CLIPModel:
        """Return the model with the vision tower in its place."""
        text = {
            "vocab_size": len(self.tokenizer),
            "hidden_size": TEXT_WIDTH,
            "intermediate_size": 2 * TEXT_WIDTH,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": MAX_TOKENS,
        }
        ends = ("pad_token_id", "bos_token_id", "eos_token_id")
        config = CLIPConfig(
            text_config=text | {name: getattr(self.tokenizer, name) for name in ends},
            vision_config=VISION,
            projection_dim=TEXT_WIDTH,
            logit_scale_init_value=float(np.log(FIRST_SCALE)),
            initializer_factor=2.0,
        )
        model = CLIPModel(config)
        model.vision_model.load_state_dict(self.tower.state_dict())
        model.vision_model.requires_grad_(False)
        return model

    def loss(self, model: WithSideHeads, rows: Tensor, generator: Generator) -> Tensor:
        """Return the contrastive loss of a batch (Radford et al. 2021)."""
        tokens = self.tokens[rows, : int(self.lengths[rows].max())]
        images = self.project(model.model, self.states[rows])
        texts = self.encode_texts(model.model, tokens)
        return contrastive_loss(model.model.logit_scale.exp() * unit(texts) @ unit(images).T)

    def project(self, model: CLIPModel, states: Tensor) -> Tensor:
        """Return the projected vectors of the tower's states."""
        return model.visual_projection(states)

    def encode_texts(self, model: CLIPModel, tokens: Tensor) -> Tensor:
        """Return the projected vectors of captions."""
        attended = (tokens != self.tokenizer.pad_token_id).long()
        states = model.text_model(tokens, attention_mask=attended).pooler_output
        return model.text_projection(states)


def unit(vectors: Tensor) -> Tensor:
    """Return vectors of length 1."""
    return normalize(vectors, dim=-1)


def contrastive_loss(logits: Tensor) -> Tensor:
    """Return the mean of the two cross-entropies, texts to images and images to texts."""
    own = torch.arange(len(logits))
    return (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2


def image_processor() -> CLIPImageProcessor:
    """Return what turns a picture into the model's input: 64 pixels, colours from -1 to 1."""
    half = [0.5, 0.5, 0.5]
    return CLIPImageProcessor(
        size={"height": SIZE, "width": SIZE}, do_center_crop=False, image_mean=half, image_std=half
    )
