"""ViLBERT: a text stream and a visual stream that read each other; also the 12-in-1 model.

References: Lu, Batra, Parikh and Lee (2019), *ViLBERT: Pretraining Task-Agnostic Visiolinguistic
Representations*; Lu, Goswami, Rohrbach, Parikh and Lee (2020), *12-in-1: Multi-Task Vision and
Language Representation Learning*. The networks: :mod:`biaslib.models.networks.vilbert`.
"""

from pathlib import Path

import numpy as np
import torch

from biaslib.models._entries import Entry
from biaslib.models._networks import read_own
from biaslib.models._region_model import RegionModel, hidden_regions
from biaslib.models.fusion import Mask, Output
from biaslib.models.global_region import with_whole_image
from biaslib.models.lxmert import no_regions
from biaslib.models.networks import vilbert as networks
from biaslib.models.regions import RegionFeatures

__all__ = ["RETRIEVAL", "Vilbert", "load"]

RETRIEVAL = 7
"""The 12-in-1 model's task of finding captions and images of COCO; 8 is that of Flickr30k."""


class Vilbert(RegionModel):
    """ViLBERT on features of image regions: embeddings, masked words, matching.

    - The whole image is put before the regions, with the mean of their features. Where an image
      has no region, the mean is zero.
    - Index 0 of the alignment head is a match. The 12-in-1 model matches by its retrieval score,
      and reads every text with the token of the task ``task``.
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
    task
        The number of the 12-in-1 model's task.
    """

    width_setting = "v_feature_size"

    def __init__(
        self, network, tokenizer, name: str, revision: str, device: str, task: int = RETRIEVAL
    ):
        super().__init__(network, tokenizer, name, revision, device)
        self.task = task if isinstance(network, networks.MultiTaskVilbertNetwork) else None

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features (n, k + 1, d), boxes (n, k + 1, 4) and which regions are real."""
        if prepared is None:
            return {}
        found = super().visual(prepared, rows, mask)
        counted = found["real"] & ~torch.as_tensor(hidden_regions(prepared, rows, mask))
        return with_whole_image(found, counted, torch.tensor([0.0, 0.0, 1.0, 1.0]))

    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch."""
        shown = visual or no_regions(tokens["input_ids"], self.width)
        places = networks.locations(shown["boxes"])
        regions = {"features": shown["features"], "places": places, "real": shown["real"]}
        if self.task is None:
            found = self.network(**tokens, **regions)
            logits = self.network.match_logits(found)
            return Output(found.text, found.image[:, 0], logits[:, 0] - logits[:, 1])
        ids = tokens["input_ids"]
        found = self.network(**tokens, **regions, task_ids=ids.new_full((len(ids), 1), self.task))
        words = torch.cat([found.text[:, :1], found.text[:, 2:]], dim=1)
        return Output(words, found.image[:, 0], self.network.retrieval_score(found)[:, 0])

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.word_logits(states)


def load(entry: Entry, path: Path, device: str) -> Vilbert:
    """Load ViLBERT from a folder that was saved here or a file of the authors.

    Raises
    ------
    CheckpointError
        If the checkpoint is of another model, has no tokenizer beside it, or weights are missing
        or left over.
    """
    found = read_own(entry, path, networks.load_official, networks.VilbertNetwork)
    return Vilbert(found.network, found.tokenizer, entry.name, found.revision, device)
