"""OpenCLIP models, through open_clip_torch."""

from pathlib import Path

import numpy as np
import open_clip
import torch
from PIL import Image

from biaslib.models._registry import Entry
from biaslib.models._words import require_known_words
from biaslib.models.dual import ContrastiveEncoder
from biaslib.models.text import revision_of
from biaslib.runtime import device as best_device

__all__ = ["load"]


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> ContrastiveEncoder:
    """Load an OpenCLIP model from a folder in the layout of its hub repositories, or the hub."""
    path = checkpoint or entry.source.removeprefix("hub ")
    name = f"local-dir:{path}" if Path(path).is_dir() else f"hf-hub:{path}"
    where = best_device(device)
    model, preprocess = open_clip.create_model_from_pretrained(name, device=where)
    model = model.float().eval()
    tokenizer = open_clip.get_tokenizer(name)

    def encode_texts(texts: list[str]) -> torch.Tensor:
        if hasattr(tokenizer, "tokenizer"):
            require_known_words(tokenizer.tokenizer, texts)
        return model.encode_text(tokenizer(texts).to(where))

    def encode_images(images: np.ndarray) -> torch.Tensor:
        batch = torch.stack([preprocess(Image.fromarray(image)) for image in images])
        return model.encode_image(batch.to(where))

    scale = float(model.logit_scale.detach().exp())
    return ContrastiveEncoder(
        encode_texts, encode_images, scale, entry.name, revision_of(path, model)
    )
