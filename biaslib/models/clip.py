"""CLIP and other dual encoders that transformers loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from biaslib.models._registry import Entry
from biaslib.models._words import require_fitting_length, require_known_words, token_limit
from biaslib.models.dual import ContrastiveEncoder
from biaslib.models.text import revision_of
from biaslib.runtime import device as best_device

__all__ = ["load"]


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> ContrastiveEncoder:
    """Load a dual encoder from a folder or the hub through transformers; no remote code is run."""
    path = checkpoint or entry.source.removeprefix("hub ")
    options = {"trust_remote_code": False, "local_files_only": Path(path).is_dir()}
    where = best_device(device)
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModel.from_pretrained(path, dtype=torch.float32, **options)
    model = model.to(where).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, use_fast=True, **options)
    processor = transformers.AutoImageProcessor.from_pretrained(path, **options)
    limit = token_limit(tokenizer, model.config)

    def token_counts(texts: list[str]) -> np.ndarray:
        require_known_words(tokenizer, texts)
        return require_fitting_length(tokenizer, texts, limit, entry.name)

    def encode_texts(texts: list[str]) -> torch.Tensor:
        inputs = tokenizer(texts, padding=True, return_tensors="pt").to(where)
        return _vectors(model.get_text_features(**inputs))

    def encode_images(pixels: np.ndarray) -> torch.Tensor:
        return _vectors(model.get_image_features(pixel_values=torch.as_tensor(pixels).to(where)))

    return ContrastiveEncoder(
        encode_texts,
        encode_images,
        float(model.logit_scale.detach().exp()),
        entry.name,
        revision_of(path, model),
        prepare=Pixels(processor),
        token_counts=token_counts,
        device=where,
    )


@dataclass(frozen=True)
class Pixels:
    """Resizes and normalises a picture as a transformers image processor does: (3, h, w)."""

    processor: Any

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        """Return the pixel values of a picture, uint8 (h, w, 3)."""
        return self.processor(images=picture, return_tensors="pt")["pixel_values"][0].numpy()


def _vectors(output) -> torch.Tensor:
    """Return the projected vectors, which transformers 5 wraps in an output object."""
    return getattr(output, "pooler_output", output)
