"""What VL-BERT, ViLBERT and ALBEF share: their authors' files by name, and heads on BERT.

Layers, embeddings and the masked-word head are BERT's of transformers, under the names that they
have in the authors' files.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import nn
from transformers.models.bert import modeling_bert as bert

from biaslib.errors import CheckpointError

__all__ = ["HEAD", "Network", "RegionHead", "additive_mask"]

HIDDEN_SCORE = -10_000.0
"""What is added to the attention score of a position that is not there."""

HEAD = 64
"""Numbers an attention head in BERT of any published size."""

SIZES = {
    "vocab_size": (r"\bword_embeddings\.weight$", 0),
    "hidden_size": (r"\bword_embeddings\.weight$", 1),
    "max_position_embeddings": (r"\bposition_embeddings\.weight$", 0),
    "type_vocab_size": (r"\btoken_type_embeddings\.weight$", 0),
    "intermediate_size": (r"\bencoder\.layer\.0\.intermediate\.dense\.weight$", 0),
    "num_hidden_layers": (r"\bencoder\.layer\.\d+\.output\.dense\.weight$", None),
}
"""Where tensors tell the sizes of BERT: a pattern of names, and the axis; None counts tensors."""


class Network(bert.BertPreTrainedModel):
    """A network that transformers lacks, with the names that its authors' files have.

    Attributes
    ----------
    renames
        Patterns of the authors' names, and what they become here.
    sizes
        As :data:`SIZES`, of what the network has beside BERT.
    heads
        By the setting that counts attention heads: the setting of their common width, and how many
        numbers a head has in the published networks. How many heads there are is in no tensor.
    """

    base_model_prefix = ""
    renames: ClassVar[dict[str, str]] = {}
    sizes: ClassVar[dict[str, tuple[str, int | None]]] = {}
    heads: ClassVar[dict[str, tuple[str, int]]] = {"num_attention_heads": ("hidden_size", HEAD)}

    @classmethod
    def named(cls, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the tensors of an official file by the network's names, without unused ones.

        Raises
        ------
        CheckpointError
            If a tensor that the file holds twice differs from its copy.
        """
        unused = cls._keys_to_ignore_on_load_unexpected or ()
        state = {}
        for name, tensor in tensors.items():
            for pattern, new in cls.renames.items():
                name = re.sub(pattern, new, name)
            if not any(re.search(pattern, name) for pattern in unused):
                state[name] = tensor
        for copy, original in cls._tied_weights_keys.items():
            if {copy, original} <= state.keys() and not torch.equal(state[copy], state[original]):
                raise CheckpointError(
                    f"{copy} and {original} should be the same tensor and differ; the file was not "
                    "written by the authors' code for this network"
                )
        return state

    @classmethod
    def config_of(cls, state: Mapping[str, torch.Tensor]):
        """Return the configuration that tensors tell; what none tells is as published.

        Parameters
        ----------
        state
            Tensors as :meth:`named` returns them.

        Raises
        ------
        CheckpointError
            If a width cannot be divided among heads as in the published networks.

        Examples
        --------
        >>> from biaslib.models.networks.vl_bert import VlBertNetwork
        >>> words = {"vlbert.word_embeddings.weight": torch.zeros(5, 128)}
        >>> found = VlBertNetwork.config_of(words)
        >>> found.vocab_size, found.hidden_size, found.num_attention_heads
        (5, 128, 2)
        """
        sizes = {}
        for setting, (pattern, axis) in (SIZES | cls.sizes).items():
            alike = [tensor for name, tensor in state.items() if re.search(pattern, name)]
            if alike:
                sizes[setting] = len(alike) if axis is None else alike[0].shape[axis]
        for setting, (size, numbers) in cls.heads.items():
            if sizes.get(size, 0) % numbers:
                raise CheckpointError(
                    f"the weights have {size} {sizes[size]}, no multiple of the {numbers} numbers "
                    "of a published attention head, and how many heads there are is in no tensor. "
                    "Load a folder with the network's config.json"
                )
            sizes |= {setting: sizes[size] // numbers} if size in sizes else {}
        return cls.config_class(**sizes)


def additive_mask(real: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what is added to attention scores: 0 where there is something, else -10,000.

    Parameters
    ----------
    real
        (n, t), true or 1 where there is something.
    dtype
        Of the result, (n, 1, 1, t).

    Examples
    --------
    >>> additive_mask(torch.tensor([[True, False]]), torch.float32).flatten().abs().tolist()
    [0.0, 10000.0]
    """
    return ((1 - real.to(dtype)) * HIDDEN_SCORE)[:, None, None]


class RegionHead(nn.Module):
    """Logits of the classes of regions: a linear map, GELU, a norm where there is one, a map."""

    def __init__(self, config, classes: int, norm: bool = True):
        super().__init__()
        self.transform = bert.BertPredictionHeadTransform(config)
        if not norm:
            self.transform.LayerNorm = nn.Identity()
        self.decoder = nn.Linear(config.hidden_size, classes)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., classes) for states (..., d)."""
        return self.decoder(self.transform(states))
