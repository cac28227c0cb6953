"""CLIP and other dual encoders that transformers loads: SigLIP, ALIGN, Chinese-CLIP and so on.

What differs between them, and is seen to here:

- SigLIP was trained on texts padded to their full length, with the padding read as any other token.
- SigLIP adds a number, the logit bias, to scaled cosines, and takes each pair's sigmoid.
- ALIGN divides cosines by a temperature where the others multiply by exp(logit scale).
- SigLIP 2 was trained on texts in lower case, and its repositories may name Gemma's tokenizer,
  which keeps capitals.
- OpenAI's code mends texts before CLIP's tokenizer reads them, typographic quotation marks among
  them (ftfy); the tokenizer of transformers does not.
- SigLIP 2 in its variants of flexible resolution takes patches with a mask and the shape of the
  picture instead of pixels.
- transformers 5 returns an output object where earlier ones return the projected vectors, and for
  ALIGN projects all tokens, of which the first stands for the text.
"""

import html
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import revision_of
from biaslib.errors import CheckpointError, brought_by
from biaslib.models.dual import ContrastiveEncoder
from biaslib.models.reading import lowered, read_network, read_tokenizer
from biaslib.models.tokens import (
    TRIED,
    require_embedded,
    require_fitting_length,
    require_known_words,
    token_limit,
)
from biaslib.pictures.transforms import of_processor, read_image_processor
from biaslib.runtime.batches import on_device

__all__ = ["encoder_of", "load"]

PADDING_IS_READ = ("siglip", "siglip2")
"""Kinds of models that read a text's padding."""

READ_AT_THE_END = ("clip_text_model", "clipseg_text_model", "metaclip_2_text_model")
"""Kinds of encoders of texts that read the text off at its last token."""

BEGINS_GEMMA = "<bos>"
"""The first token of Gemma's tokenizer, which keeps capitals."""

BEGINS_OPENAI = "<|startoftext|>"
"""The first token of OpenAI's tokenizer, before which their code mends texts."""


def load(entry: Entry, folder: Path, device: str) -> ContrastiveEncoder:
    """Load a dual encoder from a folder through transformers; no remote code is run.

    Raises
    ------
    CheckpointError
        If the checkpoint is not of a dual encoder, or weights are missing or left over.
    """
    model, _ = read_network(transformers.AutoModel, folder, entry.name)
    if not (hasattr(model, "logit_scale") or hasattr(model, "temperature")):
        raise CheckpointError(
            f"{folder} is a checkpoint of {model.config.model_type!r}, which is no dual encoder of "
            f"texts and images, and {entry.name!r} is one. Load it under the name of its own family"
        )
    tokenizer, processor = read_tokenizer(folder), read_image_processor(folder)
    _require_ends(tokenizer, model.config, folder)
    if model.config.model_type in PADDING_IS_READ and tokenizer.bos_token == BEGINS_GEMMA:
        lowered(tokenizer)
    return encoder_of(model, tokenizer, processor, entry.name, revision_of(folder), device)


def _require_ends(tokenizer, config, folder: Path) -> None:
    """Refuse a tokenizer that does not end texts with the token at which CLIP reads them off.

    CLIP's configurations of before 2023 give 2 for it, and mean the token of the highest number.
    """
    text = getattr(config, "text_config", None)
    if getattr(text, "model_type", "") not in READ_AT_THE_END:
        return
    ids = tokenizer(TRIED[-1])["input_ids"]
    of_before = text.eos_token_id == 2 and text.model_type != "metaclip_2_text_model"
    end = max(ids, default=None) if of_before else text.eos_token_id
    if ids[-1:] == [end] and end not in ids[:-1]:
        return
    raise CheckpointError(
        f"the tokenizer in {folder} does not end texts with token {end}, at which the network "
        "reads them off: give the tokenizer that the network was saved with",
        path=folder,
        word=end,
    )


def encoder_of(
    model, tokenizer, processor, name: str, revision: str, device: str
) -> ContrastiveEncoder:
    """Return the adapter of a dual encoder of transformers, with its tokenizer and processor."""
    require_embedded(tokenizer, model)
    model = on_device(model, device, name)
    texts = Texts(tokenizer, model, name)

    def encode_texts(batch: list[str]) -> torch.Tensor:
        return _vectors(
            model.get_text_features(**texts.inputs(batch).to(device, non_blocking=True))
        )

    def encode_images(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return _vectors(model.get_image_features(**batch))

    return ContrastiveEncoder(
        encode_texts,
        encode_images,
        _scale(model),
        name,
        revision,
        bias=float(getattr(model, "logit_bias", torch.zeros(1)).detach()),
        transform=of_processor(processor, names=()),
        token_counts=texts.token_counts,
        device=device,
        network=model,
    )


def _scale(model: transformers.PreTrainedModel) -> float:
    """Return what a model multiplies cosines with."""
    if hasattr(model, "temperature"):
        return 1 / float(model.temperature.detach())
    return float(model.logit_scale.detach().exp())


class Texts:
    """Turns texts into what a model's encoder of texts takes, and counts their tokens.

    Parameters
    ----------
    tokenizer
        A tokenizer of transformers.
    model
        Of transformers.
    name
        What errors call the model.
    """

    def __init__(self, tokenizer: Any, model: transformers.PreTrainedModel, name: str) -> None:
        self.tokenizer, self.name = tokenizer, name
        self.limit = token_limit(tokenizer, model)
        self.padding_is_read = model.config.model_type in PADDING_IS_READ
        self.clean = _mended if BEGINS_OPENAI in tokenizer.get_vocab() else str

    def token_counts(self, texts: list[str]) -> np.ndarray:
        """Return the tokens of each text, (n,), or refuse one that is longer than the limit."""
        texts = [self.clean(text) for text in texts]
        if self.tokenizer.is_fast:
            require_known_words(self.tokenizer, texts, self.name)
        return require_fitting_length(self.tokenizer, texts, self.limit, self.name)

    def inputs(self, texts: list[str]) -> transformers.BatchEncoding:
        """Return the model's inputs for a batch of texts that fit."""
        texts = [self.clean(text) for text in texts]
        if not self.padding_is_read:
            return self.tokenizer(texts, padding=True, return_tensors="pt")
        full = {"padding": "max_length", "max_length": self.limit, "return_tensors": "pt"}
        padded = self.tokenizer(texts, **full)
        return transformers.BatchEncoding({"input_ids": padded["input_ids"]})


def _mended(text: str) -> str:
    """Return a text as OpenAI's code hands it to CLIP's tokenizer, but for white space and case."""
    if text.isascii() and text.isprintable() and "&" not in text:
        return text
    with brought_by("clip"):
        import ftfy
    return html.unescape(html.unescape(ftfy.fix_text(text)))


def _vectors(output: Any) -> torch.Tensor:
    """Return the projected vectors, (n, d)."""
    vectors = getattr(output, "pooler_output", output)
    return vectors[:, 0] if vectors.ndim == 3 else vectors
