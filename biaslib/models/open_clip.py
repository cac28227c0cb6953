"""OpenCLIP models, through open_clip_torch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import open_clip
import torch
from PIL import Image

from biaslib.models._checkpoints import CheckpointError
from biaslib.models._registry import Entry
from biaslib.models._revisions import revision_of
from biaslib.models._words import require_fitting, require_known_words
from biaslib.models.dual import ContrastiveEncoder
from biaslib.runtime import device as best_device

__all__ = ["load"]


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> ContrastiveEncoder:
    """Load an OpenCLIP model from a folder in the layout of its hub repositories, or the hub.

    Raises
    ------
    CheckpointError
        If there are no weights, or weights are missing, left over or of another shape.
    """
    path = checkpoint or entry.source.removeprefix("hub ")
    name = f"local-dir:{path}" if Path(path).is_dir() else f"hf-hub:{path}"
    where = best_device(device)
    try:
        model, preprocess = open_clip.create_model_from_pretrained(name, device=where)
    except RuntimeError as error:
        raise CheckpointError(f"OpenCLIP cannot load {path} as {entry.name!r}: {error}") from error
    model = model.float().eval()
    tokenizer = open_clip.get_tokenizer(name)

    def token_counts(texts: list[str]) -> np.ndarray:
        counts = _token_counts(tokenizer, texts)
        require_fitting(counts, tokenizer.context_length, entry.name, texts)
        return counts

    def encode_texts(texts: list[str]) -> torch.Tensor:
        return model.encode_text(tokenizer(texts).to(where))

    def encode_images(pixels: list[np.ndarray]) -> torch.Tensor:
        return model.encode_image(torch.as_tensor(np.stack(pixels)).to(where))

    return ContrastiveEncoder(
        encode_texts,
        encode_images,
        float(model.logit_scale.detach().exp()),
        entry.name,
        revision_of(path, model),
        bias=_bias(model),
        prepare=Pixels(preprocess),
        token_counts=token_counts,
        device=where,
    )


def _bias(model: torch.nn.Module) -> float:
    """Return what a model trained with a sigmoid loss adds to scaled cosines, or 0."""
    bias = getattr(model, "logit_bias", None)
    return 0.0 if bias is None else float(bias.detach())


@dataclass(frozen=True)
class Pixels:
    """Resizes and normalises a picture as OpenCLIP's preprocessing does: (3, h, w)."""

    preprocess: Callable

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        """Return the pixel values of a picture, uint8 (h, w, 3)."""
        return self.preprocess(Image.fromarray(picture)).numpy()


def _token_counts(tokenizer, texts: list[str]) -> np.ndarray:
    """Return the tokens of each text, special ones among them, before OpenCLIP cuts any off.

    Its own tokenizer adds a start and an end; the others wrap one of transformers.
    """
    wrapped = getattr(tokenizer, "tokenizer", None)
    if wrapped is None:
        return np.array([len(tokenizer.encode(text)) + 2 for text in texts])
    require_known_words(wrapped, texts)
    cleaned = [tokenizer.clean_fn(text) for text in texts]
    return np.array([len(ids) for ids in wrapped(cleaned, verbose=False)["input_ids"]])
