"""ViLBERT: a text stream and a visual stream that read each other.

Reference: Lu, Batra, Parikh and Lee (2019), *ViLBERT: Pretraining Task-Agnostic Visiolinguistic
Representations*. The network: :mod:`biaslib.models.networks.vilbert`.
"""

from pathlib import Path

import numpy as np
import torch

from biaslib.checkpoints.entries import Entry
from biaslib.models.fusion import Mask, Output
from biaslib.models.lxmert import no_regions
from biaslib.models.networks import vilbert as networks
from biaslib.models.reading import read_network_and_tokenizer
from biaslib.models.region_model import RegionModel, hidden_regions
from biaslib.pictures.global_region import with_whole_image
from biaslib.pictures.regions import RegionFeatures

__all__ = ["Vilbert", "load"]


class Vilbert(RegionModel):
    """ViLBERT on features of image regions: embeddings, masked words, matching.

    - The whole image is put before the regions, with the mean of their features. Where an image
      has no region, the mean is zero.
    - Index 0 of the alignment head is a match.
    - A hidden region has features of zero, keeps its box, and does not count in the whole image's
      mean.
    - Without an image (``images=None``) it reads what LXMERT reads then
      (:func:`biaslib.models.lxmert.no_regions`). The published networks never saw that in training;
      the planted checkpoints did.

    Parameters
    ----------
    network
        A network of :mod:`biaslib.models.networks.vilbert`.
    tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    width_setting = "v_feature_size"

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features (n, k + 1, d), boxes (n, k + 1, 4) and which regions are real."""
        if prepared is None:
            return {}
        regions = super().visual(prepared, rows, mask)
        counted = regions["real"] & ~torch.as_tensor(hidden_regions(prepared, rows, mask))
        return with_whole_image(regions, counted, torch.tensor([0.0, 0.0, 1.0, 1.0]))

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch."""
        shown = visual or no_regions(tokens["input_ids"], self.width)
        places = networks.locations(shown["boxes"])
        regions = {"features": shown["features"], "places": places, "real": shown["real"]}
        output = self.network(**tokens, **regions)
        logits = self.network.match_logits(output)
        return Output(output.text, output.image[:, 0], logits[:, 0] - logits[:, 1])


def load(entry: Entry, path: Path, device: str) -> Vilbert:
    """Load ViLBERT from a folder that was saved here or a file of the authors.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, has no tokenizer beside it, or weights are missing
        or left over.
    """
    loaded = read_network_and_tokenizer(networks.VilbertNetwork, entry, path)
    return Vilbert(loaded.network, loaded.tokenizer, entry.name, loaded.revision, device)
