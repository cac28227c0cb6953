"""CLIP and other dual encoders that transformers loads."""

from pathlib import Path

import numpy as np
import torch
import transformers

from biaslib.models._registry import Entry
from biaslib.models._words import require_known_words
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

    def encode_texts(texts: list[str]) -> torch.Tensor:
        require_known_words(tokenizer, texts)
        inputs = tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(where)
        return _vectors(model.get_text_features(**inputs))

    def encode_images(images: np.ndarray) -> torch.Tensor:
        inputs = processor(images=list(images), return_tensors="pt").to(where)
        return _vectors(model.get_image_features(**inputs))

    scale = float(model.logit_scale.detach().exp())
    return ContrastiveEncoder(
        encode_texts, encode_images, scale, entry.name, revision_of(path, model)
    )


def _vectors(output) -> torch.Tensor:
    """Return the projected vectors, which transformers 5 wraps in an output object."""
    return getattr(output, "pooler_output", output)
