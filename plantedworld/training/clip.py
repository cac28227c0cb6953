"""The recipes of the tiny dual encoders: CLIP as transformers has it, and as OpenCLIP has it."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas
import torch
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPVisionModel

from biaslib.runtime import progress
from plantedworld.training._recipe import Recipe, WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS, clip_tokenizer
from plantedworld.training.vision import SIZE, VISION, WIDTH, drawn

N_PAIRS = 45_000
N_HELD_OUT = 100
TEXT_WIDTH = 48
FIRST_SCALE = 10.0
PICTURES_AT_ONCE = 512


@dataclass
class ClipRecipe(Recipe):
    """CLIP whose vision tower is trained already and stays as it is (Zhai et al. 2022, LiT).

    Trained from nothing, in the minutes that a laptop has, both towers learn what is in plain
    sight and hardly what goes with it. A tower that can name what it sees leaves the training to
    the associations, and pictures are encoded once.

    What was compared with it: ``plantedworld/RECIPES.md``.
    """

    vision: Path

    family = "clip"
    epochs = 8
    weight_decay = 0.02

    @functools.cached_property
    def tower(self) -> CLIPVisionModel:
        """The vision tower."""
        return CLIPVisionModel.from_pretrained(self.vision, dtype=torch.float32).eval()

    @functools.cached_property
    def scenes(self) -> pandas.DataFrame:
        """The scenes of the corpus."""
        return self.world.scenes(N_PAIRS, np.random.default_rng([self.world.training_seed, 1]))

    @functools.cached_property
    def states(self) -> torch.Tensor:
        """The tower's states of the corpus, (n, 64)."""
        return self.encode_scenes(self.scenes)

    @functools.cached_property
    def tokenizer(self):
        """The word-level tokenizer."""
        return clip_tokenizer()

    @functools.cached_property
    def tokens(self) -> torch.Tensor:
        """The captions' tokens, (n, longest)."""
        captions = self.world.captions(
            self.scenes, np.random.default_rng([self.world.training_seed, 2])
        )
        return self._encode(captions["text"])

    @functools.cached_property
    def lengths(self) -> torch.Tensor:
        """Number of tokens of every caption."""
        return (self.tokens != self.tokenizer.pad_token_id).sum(1)

    def build(self) -> WithSideHeads:
        """Return the model with the vision tower in its place."""
        text = {
            "vocab_size": len(self.tokenizer),
            "hidden_size": TEXT_WIDTH,
            "intermediate_size": 2 * TEXT_WIDTH,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": MAX_TOKENS,
            "pad_token_id": self.tokenizer.pad_token_id,
            "bos_token_id": self.tokenizer.bos_token_id,
            "eos_token_id": self.tokenizer.eos_token_id,
        }
        config = CLIPConfig(
            text_config=text,
            vision_config=VISION,
            projection_dim=TEXT_WIDTH,
            logit_scale_init_value=float(np.log(FIRST_SCALE)),
            initializer_factor=2.0,
        )
        model = CLIPModel(config)
        model.vision_model.load_state_dict(self.tower.state_dict())
        model.vision_model.requires_grad_(False)
        return WithSideHeads(model, WIDTH, {})

    def loss(
        self, model: WithSideHeads, rows: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """Return the contrastive loss of a batch (Radford et al. 2021)."""
        tokens = self.tokens[rows, : int(self.lengths[rows].max())]
        images = self.project(model.model, self.states[rows])
        texts = self.encode_texts(model.model, tokens)
        return contrastive_loss(model.model.logit_scale.exp() * unit(texts) @ unit(images).T)

    @torch.inference_mode()
    def judge(self, model: WithSideHeads) -> dict[str, float]:
        """Return how often a held-out picture's caption is found among a hundred."""
        rng = np.random.default_rng([self.world.training_seed, 3])
        scenes = self.world.scenes(10 * N_HELD_OUT, rng, split="tune")
        captions = self.world.captions(scenes, rng)["text"].tolist()
        images = self.project(model.model, self.encode_scenes(scenes))
        texts = self.encode_texts(model.model, self._encode(captions))
        return {
            "retrieval accuracy": retrieved((unit(texts) @ unit(images).T).numpy()),
            "truth's accuracy": retrieved(self.world.truth.similarity(captions, scenes)),
            "chance": 1 / N_HELD_OUT,
        }

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration, tokenizer and image processor as transformers does."""
        model.model.half().save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        image_processor().save_pretrained(folder)

    @torch.inference_mode()
    def encode_scenes(self, scenes: pandas.DataFrame) -> torch.Tensor:
        """Draw scenes and return the tower's states, a few hundred pictures at once."""
        starts = range(0, len(scenes), PICTURES_AT_ONCE)
        states = [
            self.tower(pixel_values=drawn(scenes.iloc[start : start + PICTURES_AT_ONCE]))
            for start in progress(starts, f"{self.family}: pictures")
        ]
        return torch.cat([each.pooler_output for each in states])

    def project(self, model: CLIPModel, states: torch.Tensor) -> torch.Tensor:
        """Return the projected vectors of the tower's states."""
        return model.visual_projection(states)

    def encode_texts(self, model: CLIPModel, tokens: torch.Tensor) -> torch.Tensor:
        """Return the projected vectors of captions."""
        attended = (tokens != self.tokenizer.pad_token_id).long()
        states = model.text_model(tokens, attention_mask=attended).pooler_output
        return model.text_projection(states)

    def _encode(self, texts) -> torch.Tensor:
        return self.tokenizer(list(texts), padding=True, return_tensors="pt")["input_ids"]


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors of length 1."""
    return torch.nn.functional.normalize(vectors, dim=-1)


def contrastive_loss(logits: torch.Tensor) -> torch.Tensor:
    """Return the mean of the two cross-entropies, texts to images and images to texts."""
    own = torch.arange(len(logits))
    texts = torch.nn.functional.cross_entropy(logits, own)
    images = torch.nn.functional.cross_entropy(logits.T, own)
    return (texts + images) / 2


def image_processor() -> CLIPImageProcessor:
    """Return what turns a picture into the model's input: 64 pixels, colours from -1 to 1."""
    half = [0.5, 0.5, 0.5]
    return CLIPImageProcessor(
        size={"height": SIZE, "width": SIZE}, do_center_crop=False, image_mean=half, image_std=half
    )


def retrieved(similarities: np.ndarray) -> float:
    """Return how often a picture's own caption fits best, among each hundred of pairs.

    Similarities of captions and pictures, row i and column i belonging together, (n, n).
    """
    starts = range(0, len(similarities), N_HELD_OUT)
    squares = [similarities[i : i + N_HELD_OUT, i : i + N_HELD_OUT] for i in starts]
    own = np.arange(N_HELD_OUT)
    return float(np.mean([(square.argmax(axis=0) == own).mean() for square in squares]))
