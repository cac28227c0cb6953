"""ALBEF: unit vectors of texts and pictures; embeddings, masked words and matching of both.

=============  ===================================================================================
``match``      The matching head on the fused states; trained on pairs, one wrong in two of them.
contrastive    ``encode_text`` and ``encode_image``: projected first states below the fusion, of
               unit length; their product times ``scale`` was trained as CLIP's is. This is what
               Zhou et al. (2022, table 2) score by.
=============  ===================================================================================

Reference: Li, Selvaraju, Gotmare, Joty, Xiong and Hoi (2021), *Align before Fuse: Vision and
Language Representation Learning with Momentum Distillation*. The network:
:mod:`biaslib.models.networks.albef`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from biaslib.capabilities import EMBED_WITH_IMAGES, ENCODE, FILL_WITH_IMAGES, MATCH
from biaslib.checkpoints.entries import Entry
from biaslib.models.fusion import Mask, Output
from biaslib.models.networks import albef as networks
from biaslib.models.pixel_model import PixelModel
from biaslib.models.reading import read_network_and_tokenizer
from biaslib.models.tokens import Tokens, listed
from biaslib.pictures.transforms import ImageTransform

__all__ = ["Albef", "load", "plain_caption"]


@dataclass(frozen=True)
class Squared:
    """Resizes a picture, uint8 (h, w, 3), as the authors do for scoring: to a square, not cut.

    Parameters
    ----------
    side
        Pixels along one side.
    """

    side: int

    def __call__(self, picture: np.ndarray) -> dict[str, np.ndarray]:
        """Return pixel_values, uint8 (3, side, side)."""
        image = Image.fromarray(np.asarray(picture))
        image = image.resize((self.side, self.side), Image.Resampling.BICUBIC)
        return {"pixel_values": np.asarray(image).transpose(2, 0, 1)}


def transform(side: int) -> ImageTransform:
    """Return how pictures are prepared: squares, less the means, over the standard deviations."""
    pairs = list(zip(networks.PIXEL_MEANS, networks.PIXEL_STDS, strict=True))
    scale, shift = (1 / (255 * std) for _, std in pairs), (-mean / std for mean, std in pairs)
    return ImageTransform(Squared(side), tuple(scale), tuple(shift))


def plain_caption(text: str) -> str:
    """Return a text as the authors prepare captions: without punctuation.

    Quotation marks and ``,.!?()*#:;~`` are dropped, hyphens and slashes become spaces. Letters
    stay as they are: the tokenizer makes them small.

    Examples
    --------
    >>> plain_caption('A well-known "man".')
    'A well known man'
    """
    text = re.sub(r"[,.'!?\"()*#:;~]", "", text)
    return re.sub(r"\s{2,}", " ", re.sub(r"[-/]", " ", text)).strip()


class Albef(PixelModel):
    """ALBEF: embeddings, masked words, matching, and unit vectors of texts and pictures.

    - Texts are prepared as the authors do: without punctuation, and without a ``[SEP]`` at the end.
    - Every text needs an image, but for ``encode_text``: the upper half of the text encoder looks
      at one.
    - Index 1 of the matching head is a match.

    Parameters
    ----------
    network
        A :class:`biaslib.models.networks.albef.AlbefNetwork`.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    def __init__(self, network, tokenizer, name: str, revision: str, device: str):
        prepared = transform(network.config.image_size)
        super().__init__(network, tokenizer, prepared, name, revision, device)
        self.scale = 1 / float(network.temp.detach())
        masks = {FILL_WITH_IMAGES} if network.config.masked_words else set()
        self.capabilities = frozenset({EMBED_WITH_IMAGES, ENCODE, MATCH} | masks)

    def embed(
        self,
        texts: Sequence[str],
        images: Any = None,
        level: str = "sentence",
        words: Sequence[str] | None = None,
        **options: Any,
    ) -> np.ndarray:
        """Return one embedding a text with its image, (n, d).

        See :meth:`biaslib.models.fusion.FusionModel.embed`.
        """
        plain = None if words is None else [plain_caption(word) for word in words]
        return super().embed(texts, images, level, plain, **options)

    def mask_log_prob(
        self, texts: Sequence[str], candidates: Sequence[str], *images: Any, **options: Any
    ) -> np.ndarray:
        """Return log P(word | rest of the text, image), (n, k); words are made plain as texts.

        See :meth:`biaslib.models.fusion.FusionModel.mask_log_prob`.
        """
        plain = [plain_caption(word) for word in listed(candidates)]
        return super().mask_log_prob(texts, plain, *images, **options)

    def encode(self, visual: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the states of pictures and their patches."""
        return {"image": self.network.encode_image(visual["pixel_values"])}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch."""
        text = self.network.encode_text(**tokens)
        fused = self.network.fuse(text, tokens["attention_mask"], visual["image"])
        logits = self.network.match_logits(fused)
        return Output(fused, match=logits[:, networks.MATCH] - logits[:, 1 - networks.MATCH])

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.word_logits(states)

    def encode_text(self, texts: Sequence[str], batch_size: int | None = None) -> np.ndarray:
        """Return one unit vector a text, (n, d), float32.

        Parameters
        ----------
        texts
            n texts.
        batch_size
            Texts a forward pass.

        Raises
        ------
        ValueError
            If there are no texts, or one is longer than the model reads.
        """

        def read(**tokens: torch.Tensor) -> torch.Tensor:
            return self.network.text_features(self.network.encode_text(**tokens))

        return self.vectors_of_texts(texts, read, batch_size)

    def encode_image(self, images: Any, batch_size: int | None = None) -> np.ndarray:
        """Return one unit vector a picture, (n, d), float32.

        Parameters
        ----------
        images
            n images, in any form of the package's.
        batch_size
            Pictures a forward pass.

        Raises
        ------
        ValueError
            If there are no images.
        """

        def read(pixels: torch.Tensor) -> torch.Tensor:
            return self.network.image_features(self.network.encode_image(pixels))

        return self.vectors_of_images(images, read, batch_size)

    def _tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Return tokens of plain captions, without the ``[SEP]`` that other models end them with.

        The mask token passes: its brackets are no punctuation.
        """
        rows = super()._tokens([plain_caption(text) for text in listed(texts)])
        return [replace(row, ids=row.ids[:-1], offsets=row.offsets[:-1]) for row in rows]

    def _hidden(self, tokens: Tokens, mask: Mask | None) -> Tokens:
        """Return the tokens with a mask's words hidden, which are made plain as the captions are.

        ``low-wage`` stands as *low wage* in the caption that is read.
        """
        if mask is not None:
            plain = [plain_caption(word) for word in mask.words]
            mask = replace(mask, words=[word for word in plain if word])
        return super()._hidden(tokens, mask)


def load(entry: Entry, path: Path, device: str) -> Albef:
    """Load ALBEF from a folder that was saved here or a file of the authors.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, has no tokenizer beside it, or weights are missing
        or left over.
    """
    loaded = read_network_and_tokenizer(networks.AlbefNetwork, entry, path)
    return Albef(loaded.network, loaded.tokenizer, entry.name, loaded.revision, device)
