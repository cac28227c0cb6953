"""FLAVA: an encoder of texts, one of pictures, and one that reads both.

FLAVA says in three ways how well a caption fits a picture:

==============  ==================================================================================
``match``       The matching head on the first state of the encoder that reads both; trained to
                tell pairs from captions with another picture.
contrastive     ``encode_text`` and ``encode_image``: the first states of the two encoders,
                projected, of unit length; their product times ``scale`` was trained as CLIP's is.
unimodal        The same with ``encoder="unimodal"``: first states without the projections. No
                training objective compares them across the two encoders.
==============  ==================================================================================

Zhou et al. (2022, section 4) write that they "used only FLAVA's unimodal encoders", which may mean
the second or the third; their code is not published, so both are offered. The pooling layers of the
two encoders are not: no objective of ``FlavaForPreTraining`` reads them.

Reference: Singh et al. (2022), *FLAVA: A Foundational Language And Vision Alignment Model*.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from biaslib.models._batches import autocast, run_in_batches
from biaslib.models._networks import read_network, read_tokenizer
from biaslib.models._pixels import PixelModel, read_image_processor
from biaslib.models._registry import Entry
from biaslib.models._revisions import revision_of
from biaslib.models.capabilities import CapabilityError
from biaslib.models.fusion import Output
from biaslib.models.images import pictures
from biaslib.runtime import device as best_device
from biaslib.runtime import unknown_name

__all__ = ["ENCODERS", "Flava", "load"]

ENCODERS = ("contrastive", "unimodal")
"""What ``encode_text`` and ``encode_image`` can take vectors from."""

OPTIONAL = ("mlm_head.*", "mmm_text_head.*", "itm_head.*", "mim_head.*", "mmm_image_head.*")
IGNORED = ("image_codebook.*", "*.position_ids", "*.token_type_ids")


class Flava(PixelModel):
    """FLAVA: embeddings, masked words, matching, and unit vectors of texts and pictures.

    With pictures, embeddings and masked words come from the text's part of the encoder that reads
    both (head ``mmm_text_head``); with ``images=None`` from the encoder of texts alone
    (``mlm_head``), as FLAVA was trained on text without pictures.

    Parameters
    ----------
    network
        A ``transformers.FlavaForPreTraining``; its image codebook is not needed.
    tokenizer, processor, name, revision, device
        As of the pixel models.
    missing
        Names of the weights that the file did not have.
    """

    def __init__(self, network, tokenizer, processor, name, revision, device, missing=frozenset()):
        super().__init__(network, tokenizer, processor, name, revision, device)
        self.missing = frozenset(missing)
        self.scale = float(network.flava.logit_scale.detach().exp())

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the encoders that the input needs on a batch."""
        if not visual:
            return Output(self.network.flava.text_model(**tokens).last_hidden_state)
        output = self.network.flava(**tokens, pixel_values=visual["pixel_values"])
        both = output.multimodal_embeddings
        logits = self.network.itm_head(both)
        text = both[:, -tokens["input_ids"].shape[1] :]
        return Output(text, match=logits[:, 1] - logits[:, 0])

    def mask_log_prob(
        self,
        texts: Sequence[str],
        candidates: Sequence[str],
        images: Any = None,
        **options: Any,
    ) -> np.ndarray:
        """Return log P(word | rest of the text, image) of candidates at each text's ``[MASK]``.

        By ``mmm_text_head`` with images and by ``mlm_head`` without. See
        :meth:`biaslib.models.fusion.FusionModel.mask_log_prob`.

        Raises
        ------
        CapabilityError
            If the checkpoint has no such head.
        ValueError
            As the method above.
        """
        self._words = self._head("mlm_head" if images is None else "mmm_text_head")
        return super().mask_log_prob(texts, candidates, images, **options)

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the logits of the head that the last input asked for: (n, vocabulary)."""
        return self._words(states)

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the matching head's logit of a match less that of none, (n, c).

        Index 1 is a match. See :meth:`biaslib.models.fusion.FusionModel.match`.

        Raises
        ------
        CapabilityError
            If the checkpoint has no matching head.
        ValueError
            As the method above.
        """
        self._head("itm_head")
        return super().match(images, texts)

    def encode_text(
        self, texts: Sequence[str], encoder: str = "contrastive", batch_size: int = 256
    ) -> np.ndarray:
        """Return one unit vector a text, (n, d), float32.

        Parameters
        ----------
        texts
            n texts.
        encoder
            ``contrastive`` or ``unimodal``: see the head of this module.
        batch_size
            Texts a forward pass.

        Raises
        ------
        UnknownNameError
            If there is no such encoder.
        ValueError
            If there are no texts, or one is longer than the model reads.
        """
        project = self._projection(encoder, self.network.flava.text_projection)
        rows = self._tokens(texts)

        def run(batch: np.ndarray) -> torch.Tensor:
            tokens = self._on_device(self._padded([rows[i].ids for i in batch]))
            return project(self.network.flava.text_model(**tokens).last_hidden_state[:, 0])

        return self._unit_vectors([len(row.ids) for row in rows], run, batch_size, "texts")

    def encode_image(
        self, images: Any, encoder: str = "contrastive", batch_size: int = 64
    ) -> np.ndarray:
        """Return one unit vector a picture, (n, d), float32.

        Parameters
        ----------
        images
            n images, in any form of the package's.
        encoder
            ``contrastive`` or ``unimodal``: see the head of this module.
        batch_size
            Pictures a forward pass.

        Raises
        ------
        UnknownNameError
            If there is no such encoder.
        ValueError
            If there are no images.
        """
        project = self._projection(encoder, self.network.flava.image_projection)
        seen = pictures(images)
        prepared = self.ahead(seen, np.arange(len(seen)))

        def run(batch: np.ndarray) -> torch.Tensor:
            pixels = self._on_device(self.visual(prepared, batch, None))["pixel_values"]
            return project(self.network.flava.image_model(pixels).last_hidden_state[:, 0])

        return self._unit_vectors(np.ones(len(seen)), run, batch_size, "images")

    def _unit_vectors(self, lengths, run: Callable, batch_size: int, what: str) -> np.ndarray:
        @torch.inference_mode()
        def normalised(batch: np.ndarray) -> np.ndarray:
            with autocast(self.device):
                vectors = run(batch)
            return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()

        label = f"{self.name}: {len(lengths):,} {what}"
        return run_in_batches(lengths, normalised, batch_size, label)

    def _projection(self, encoder: str, projection: torch.nn.Module) -> Callable:
        if encoder not in ENCODERS:
            raise unknown_name("encoder", encoder, ENCODERS)
        return projection if encoder == "contrastive" else torch.nn.Identity()

    def _head(self, name: str) -> torch.nn.Module:
        if any(key.startswith(f"{name}.") for key in self.missing):
            raise CapabilityError(
                f"the checkpoint {self.revision} of {self.name} has no {name}; load one that was "
                "saved with its pre-training heads, such as facebook/flava-full"
            )
        return getattr(self.network, name)


def load(entry: Entry, checkpoint: str | Path | None, device: str | None) -> Flava:
    """Load FLAVA from a folder or the hub; the image codebook in the file is not read.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another architecture, or weights other than those of heads are
        missing or left over.
    """
    path = checkpoint or entry.source.removeprefix("hub ")
    network, missing = read_network(
        transformers.FlavaForPreTraining, path, entry.name, OPTIONAL, IGNORED, init_codebook=False
    )
    tokenizer, processor = read_tokenizer(path), read_image_processor(path)
    where, revision = best_device(device), revision_of(path, network)
    return Flava(network, tokenizer, processor, entry.name, revision, where, missing)
