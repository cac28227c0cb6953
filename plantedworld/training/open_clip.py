"""The recipe of the tiny OpenCLIP model: the same corpus, OpenCLIP's own classes and files."""

import json
from pathlib import Path

import open_clip
import torch
from safetensors.torch import save_file
from torch import Tensor

from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS
from plantedworld.training._weights import joined, names, renamed
from plantedworld.training.clip import TEXT_WIDTH, ClipRecipe
from plantedworld.training.vision import SIZE, VISION, WIDTH

CONFIG_FILE = "open_clip_config.json"
TOKENIZER_IN_THE_FOLDER = "local"
"""Any name: OpenCLIP takes the files beside the configuration if there is a name at all."""

WEIGHTS_FILE = "open_clip_model.safetensors"

QKV = tuple(f"self_attn.{part}_proj." for part in "qkv")
TOWER_NAMES = names("open_clip from the tower")
"""Parts of the vision tower: what transformers calls them, what OpenCLIP does."""


class OpenClipRecipe(ClipRecipe):
    """The same model in OpenCLIP's classes, with the same vision tower in it."""

    family = "open_clip"
    worlds = ((3, 0, "both"),)

    @property
    def model_config(self) -> dict:
        """The model's part of OpenCLIP's configuration file."""
        return {
            "embed_dim": TEXT_WIDTH,
            "quick_gelu": True,
            "vision_cfg": {
                "image_size": SIZE,
                "patch_size": VISION["patch_size"],
                "width": WIDTH,
                "layers": VISION["num_hidden_layers"],
                "head_width": WIDTH // VISION["num_attention_heads"],
                "mlp_ratio": 2.0,
            },
            "text_cfg": {
                "context_length": MAX_TOKENS,
                "hf_tokenizer_name": TOKENIZER_IN_THE_FOLDER,
                "vocab_size": len(self.tokenizer),
                "width": TEXT_WIDTH,
                "heads": 4,
                "layers": 2,
                "mlp_ratio": 2.0,
            },
        }

    def network(self) -> open_clip.CLIP:
        """Return the model with the vision tower in its place."""
        model = open_clip.CLIP(**self.model_config)
        tower = renamed(joined(self.tower.state_dict(), QKV, "self_attn.in_proj_"), TOWER_NAMES)
        model.visual.load_state_dict({"proj": model.visual.proj, **tower})
        for name, weight in model.visual.named_parameters():
            weight.requires_grad_(name == "proj")
        return model

    def project(self, model: open_clip.CLIP, states: Tensor) -> Tensor:
        """Return the projected vectors of the tower's states."""
        return states @ model.visual.proj

    def encode_texts(self, model: open_clip.CLIP, tokens: Tensor) -> Tensor:
        """Return the projected vectors of captions."""
        padded = torch.nn.functional.pad(tokens, (0, MAX_TOKENS - tokens.shape[1]))
        return model.encode_text(padded)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer as OpenCLIP's hub repositories have them."""
        weights = model.model.half().state_dict().items()
        save_file({name: weight.contiguous() for name, weight in weights}, folder / WEIGHTS_FILE)
        half = [0.5, 0.5, 0.5]
        preprocess = {"mean": half, "std": half}
        preprocess |= {"interpolation": "bicubic", "resize_mode": "squash"}
        config = {"model_cfg": self.model_config, "preprocess_cfg": preprocess}
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        self.tokenizer.save_pretrained(folder)
