"""OpenCLIP models, through open_clip_torch."""

import json
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

__all__ = ["load", "require_whole"]


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> ContrastiveEncoder:
    """Load an OpenCLIP model from a folder in the layout of its hub repositories, or the hub.

    Raises
    ------
    CheckpointError
        If there are no weights, or weights are missing, left over or of another shape; or the
        settings of its text encoder lie elsewhere.
    """
    path = checkpoint or entry.source.removeprefix("hub ")
    settings = Path(path) / "open_clip_config.json"
    if settings.is_file():
        model = json.loads(settings.read_text(encoding="utf-8")).get("model_cfg", {})
        require_whole(model, str(path))
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


def require_whole(settings: dict, name: str) -> None:
    """Refuse a model of OpenCLIP whose text encoder takes its settings from another repository.

    OpenCLIP would ask the hub for them by name while it builds the network: in no revision, past
    the lock file, and in any profile.

    Parameters
    ----------
    settings
        Of the model, as of ``open_clip.get_model_config``.
    name
        The model, for the error.

    Raises
    ------
    CheckpointError
        If its text encoder is named and is no folder on this disk; the message names it.
    """
    elsewhere = settings.get("text_cfg", {}).get("hf_model_name")
    if elsewhere and not Path(elsewhere).is_dir():
        raise CheckpointError(
            f"{name} takes the settings of its text encoder from {elsewhere!r}, which OpenCLIP "
            "would ask the hub for, unchecked and unrecorded. Put config.json of that repository "
            "into a folder, name the folder as hf_model_name in open_clip_config.json beside the "
            "weights, and pass the weights' folder as checkpoint=; or take another model"
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
