"""VisualBERT: one transformer over the words of a text and the regions of an image.

Reference: Li, Yatskar, Yin, Hsieh and Chang (2019), *VisualBERT: A Simple and Performant Baseline
for Vision and Language*.
"""

from pathlib import Path

import torch
import transformers

from biaslib.checkpoints.entries import Entry
from biaslib.models.fusion import Output
from biaslib.models.reading import read_network_and_tokenizer
from biaslib.models.region_model import RegionModel

__all__ = ["VisualBert", "load"]


class VisualBert(RegionModel):
    """VisualBERT on features of image regions: embeddings, masked words, matching.

    - Regions have the token type 0, as in the original code; transformers gives them 1 unless
      told, which is another model.
    - Index 1 of the matching head is a match, as in the original training; the docstring of
      transformers says 0.
    - Boxes are not read: every region has the same position.
    - Without an image (``images=None``) the transformer reads the words alone.
    - A hidden region has features of zero and stays in the sequence.

    The checkpoints differ in how many numbers describe a region (2048 for those trained on COCO
    captions and questions, 1024 for NLVR2, 512 for VCR), since they were trained with features of
    different detectors; features of another width are refused.

    Parameters
    ----------
    network
        A ``transformers.VisualBertForPreTraining``.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    width_setting = "visual_embedding_dim"

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch: words alone, or words and regions."""
        regions = {}
        if visual:
            real = visual["real"].long()
            regions = {"visual_embeds": visual["features"], "visual_attention_mask": real}
            regions["visual_token_type_ids"] = torch.zeros_like(real)
        output = self.network.visual_bert(**tokens, **regions)
        text = output.last_hidden_state[:, : tokens["input_ids"].shape[1]]
        logits = self.network.cls.seq_relationship(output.pooler_output)
        return Output(text, match=logits[:, 1] - logits[:, 0])


def load(entry: Entry, folder: Path, device: str) -> VisualBert:
    """Load VisualBERT from a folder with its tokenizer.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another architecture, or weights are missing or left over.
    """
    network = transformers.VisualBertForPreTraining
    loaded = read_network_and_tokenizer(network, entry, folder)
    return VisualBert(loaded.network, loaded.tokenizer, entry.name, loaded.revision, device)
