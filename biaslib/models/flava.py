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

from biaslib.capabilities import ENCODE, FILL, FILL_WITH_IMAGES, MATCH, UNIMODAL
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import revision_of
from biaslib.models.fusion import Output
from biaslib.models.pixel_model import PixelModel, read_image_processor
from biaslib.models.reading import read_network, read_tokenizer
from biaslib.runtime import unknown_name

__all__ = ["ENCODERS", "Flava", "load"]

ENCODERS = ("contrastive", "unimodal")
"""What ``encode_text`` and ``encode_image`` can take vectors from."""

HEADS = {"mlm_head": FILL, "mmm_text_head": FILL_WITH_IMAGES, "itm_head": MATCH}
"""What FLAVA needs its heads for."""

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
        lost = {name.partition(".")[0] for name in missing}
        lacking = {capability for head, capability in HEADS.items() if head in lost}
        self.capabilities = self.capabilities - lacking | {ENCODE, UNIMODAL}
        self.scale = float(network.flava.logit_scale.detach().exp())

    def encode(self, visual: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the states of pictures as the encoder that reads both takes them.

        They are those before the last layer norm, as in transformers.
        """
        if not visual:
            return {}
        flava = self.network.flava
        output = flava.image_model(visual["pixel_values"], output_hidden_states=True)
        return {"image": flava.image_to_mm_projection(output.hidden_states[-1])}

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the encoders that the input needs on a batch."""
        flava = self.network.flava
        output = flava.text_model(**tokens, output_hidden_states=bool(visual))
        if not visual:
            return Output(output.last_hidden_state, words=self.network.mlm_head)
        image, attended = visual["image"], tokens["attention_mask"]
        pair = torch.cat([image, flava.text_to_mm_projection(output.hidden_states[-1])], dim=1)
        n_image = image.shape[1] + int(flava.multimodal_model.use_cls_token)
        attended = torch.cat([attended.new_ones(len(image), n_image), attended], dim=1)
        both = flava.multimodal_model(pair, attention_mask=attended).last_hidden_state
        logits = self.network.itm_head(both)
        match, words = logits[:, 1] - logits[:, 0], self.network.mmm_text_head
        return Output(both[:, n_image:], match=match, words=words)

    def encode_text(
        self, texts: Sequence[str], encoder: str = "contrastive", batch_size: int | None = None
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

        def read(**tokens: torch.Tensor) -> torch.Tensor:
            return project(self.network.flava.text_model(**tokens).last_hidden_state[:, 0])

        return self.vectors_of_texts(texts, read, batch_size)

    def encode_image(
        self, images: Any, encoder: str = "contrastive", batch_size: int | None = None
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

        def read(pixels: torch.Tensor) -> torch.Tensor:
            return project(self.network.flava.image_model(pixels).last_hidden_state[:, 0])

        return self.vectors_of_images(images, read, batch_size)

    def _projection(self, encoder: str, projection: torch.nn.Module) -> Callable:
        if encoder not in ENCODERS:
            raise unknown_name("encoder", encoder, ENCODERS)
        return projection if encoder == "contrastive" else torch.nn.Identity()


def load(entry: Entry, folder: Path, device: str) -> Flava:
    """Load FLAVA from a folder; the image codebook in the file is not read.

    Raises
    ------
    CheckpointError
        If weights other than those of heads are missing or left over.
    """
    network, missing = read_network(
        transformers.FlavaForPreTraining, folder, entry.name, OPTIONAL, IGNORED, init_codebook=False
    )
    tokenizer, processor = read_tokenizer(folder), read_image_processor(folder)
    revision = revision_of(folder)
    return Flava(network, tokenizer, processor, entry.name, revision, device, missing)
