"""LXMERT: a language stream and a vision stream that read each other.

Reference: Tan and Bansal (2019), *LXMERT: Learning Cross-Modality Encoder Representations from
Transformers*.
"""

from pathlib import Path

import torch
import transformers

from biaslib.checkpoints.entries import Entry
from biaslib.models.fusion import Output
from biaslib.models.reading import read_network_and_tokenizer
from biaslib.models.region_model import RegionModel

__all__ = ["Lxmert", "load", "no_regions"]

UNREAD = ("obj_predict_head.*", "answer_head.*")
"""Heads that nothing here reads; a checkpoint may be without them."""


class Lxmert(RegionModel):
    """LXMERT on features of image regions: embeddings, masked words, matching.

    - Index 1 of the matching head is a match.
    - Boxes are read as shares of the picture, x0, y0, x1, y1 from 0 to 1.
    - Without an image (``images=None``) see :func:`no_regions`. The published LXMERT never saw that
      in training; the planted checkpoints did.
    - A hidden region has features of zero and keeps its box, as in the released code of Ross, Katz
      and Barbu (2021).

    The text stream is the language output. The visual stream's first state is that of the first
    region, since there is no token for the whole image.

    Parameters
    ----------
    network
        A ``transformers.LxmertForPreTraining``.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    width_setting = "visual_feat_dim"

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch."""
        visual = visual or no_regions(tokens["input_ids"], self.width)
        output = self.network.lxmert(
            **tokens,
            visual_feats=visual["features"],
            visual_pos=visual["boxes"],
            visual_attention_mask=visual["real"].long(),
        )
        logits = self.network.cls.seq_relationship(output.pooled_output)
        match = logits[:, 1] - logits[:, 0]
        return Output(output.language_output, output.vision_output[:, 0], match)


def no_regions(tokens: torch.Tensor, width: int) -> dict[str, torch.Tensor]:
    """Return what LXMERT reads where there is no image: a region of zeros that is not there.

    The cross-attention of the text needs something to look at. With features and boxes of zero,
    any number of regions that are not real gives the same numbers: attention falls evenly on equal
    states.

    Parameters
    ----------
    tokens
        (n, t), to know how many and on which device.
    width
        Numbers a region.

    Examples
    --------
    >>> {name: tuple(each.shape) for name, each in no_regions(torch.zeros(2, 5), 8).items()}
    {'features': (2, 1, 8), 'boxes': (2, 1, 4), 'real': (2, 1)}
    """
    zeros = torch.zeros(len(tokens), 1, width + 4, device=tokens.device)
    real = torch.zeros(len(tokens), 1, dtype=torch.bool, device=tokens.device)
    return {"features": zeros[..., :width], "boxes": zeros[..., width:], "real": real}


def load(entry: Entry, folder: Path, device: str) -> Lxmert:
    """Load LXMERT from a folder with its tokenizer.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another architecture, or weights are missing or left over.
    """
    network = transformers.LxmertForPreTraining
    loaded = read_network_and_tokenizer(network, entry, folder, UNREAD)
    return Lxmert(loaded.network, loaded.tokenizer, entry.name, loaded.revision, device)
