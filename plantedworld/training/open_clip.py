"""The recipe of the tiny OpenCLIP model: the same corpus, OpenCLIP's own classes and files."""

import json
from dataclasses import dataclass
from pathlib import Path

import open_clip
import torch
from safetensors.torch import save_file

from plantedworld.training._recipe import WithSideHeads
from plantedworld.training._tokenizer import MAX_TOKENS
from plantedworld.training.clip import TEXT_WIDTH, ClipRecipe
from plantedworld.training.vision import SIZE, VISION, WIDTH

CONFIG_FILE = "open_clip_config.json"
TOKENIZER_IN_THE_FOLDER = "local"
"""Any name: OpenCLIP takes the files beside the configuration if there is a name at all."""

WEIGHTS_FILE = "open_clip_model.safetensors"


LAYER_NAMES = {
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "self_attn.out_proj": "attn.out_proj",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
}
"""Parts of a vision layer: what transformers calls them, what OpenCLIP does."""


@dataclass
class OpenClipRecipe(ClipRecipe):
    """The same model in OpenCLIP's classes, with the same vision tower in it."""

    family = "open_clip"

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

    def build(self) -> WithSideHeads:
        """Return the model with the vision tower in its place."""
        model = open_clip.CLIP(**self.model_config)
        tower = converted_tower(self.tower.state_dict())
        model.visual.load_state_dict({"proj": model.visual.proj, **tower})
        for name, weight in model.visual.named_parameters():
            weight.requires_grad_(name == "proj")
        return WithSideHeads(model, WIDTH, {})

    def project(self, model: open_clip.CLIP, states: torch.Tensor) -> torch.Tensor:
        """Return the projected vectors of the tower's states."""
        return states @ model.visual.proj

    def encode_texts(self, model: open_clip.CLIP, tokens: torch.Tensor) -> torch.Tensor:
        """Return the projected vectors of captions."""
        padded = torch.nn.functional.pad(tokens, (0, MAX_TOKENS - tokens.shape[1]))
        return model.encode_text(padded)

    def save(self, model: WithSideHeads, folder: Path) -> None:
        """Write weights, configuration and tokenizer as OpenCLIP's hub repositories have them."""
        weights = model.model.half().state_dict().items()
        save_file({name: weight.contiguous() for name, weight in weights}, folder / WEIGHTS_FILE)
        half = [0.5, 0.5, 0.5]
        preprocess = {
            "mean": half,
            "std": half,
            "interpolation": "bicubic",
            "resize_mode": "squash",
        }
        config = {"model_cfg": self.model_config, "preprocess_cfg": preprocess}
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        self.tokenizer.save_pretrained(folder)


def converted_tower(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights of a vision tower of transformers under OpenCLIP's names."""
    converted = {
        "class_embedding": weights["embeddings.class_embedding"],
        "positional_embedding": weights["embeddings.position_embedding.weight"],
        "conv1.weight": weights["embeddings.patch_embedding.weight"],
    }
    for end in ("weight", "bias"):
        converted[f"ln_pre.{end}"] = weights[f"pre_layrnorm.{end}"]
        converted[f"ln_post.{end}"] = weights[f"post_layernorm.{end}"]
        for layer in range(VISION["num_hidden_layers"]):
            old, new = f"encoder.layers.{layer}", f"transformer.resblocks.{layer}"
            parts = [weights[f"{old}.self_attn.{part}_proj.{end}"] for part in "qkv"]
            converted[f"{new}.attn.in_proj_{end}"] = torch.cat(parts)
            for old_part, new_part in LAYER_NAMES.items():
                converted[f"{new}.{new_part}.{end}"] = weights[f"{old}.{old_part}.{end}"]
    return converted
