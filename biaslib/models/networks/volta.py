"""ViLBERT and VL-BERT as VOLTA trained them (Bugliarello et al. 2021), also under control.

Matches e-bug/volta, commit 62f78cd (MIT), volta/encoders.py, class BertForVLPreTraining with the
configurations vilbert_base, ctrl_vilbert_base, vl-bert_base and ctrl_vl-bert_base, in evaluation.
ViLBERT is the network of :mod:`biaslib.models.networks.vilbert` under other names and sizes.
VL-BERT differs in its embeddings and has its own class here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from biaslib.models.capabilities import CapabilityError
from biaslib.models.networks.bert_parts import (
    EPS,
    BertEncoder,
    LayerShape,
    Pooler,
    RegionHead,
    WordHead,
    additive_mask,
    initialise,
)
from biaslib.models.networks.files import Layout, built, config_for, read_official
from biaslib.models.networks.vilbert import LAYOUT as VILBERT_LAYOUT
from biaslib.models.networks.vilbert import VilbertConfig, VilbertNetwork, VilbertOutput
from biaslib.models.networks.vl_bert import IMAGE_TYPE, coordinate_embedding

__all__ = ["VARIANTS", "VoltaVlBertConfig", "VoltaVlBertNetwork", "load_official"]


@dataclass(frozen=True)
class VoltaVlBertConfig:
    """Sizes and parts of VOLTA's VL-BERT; the defaults are those of the controlled one.

    Parameters
    ----------
    vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
        As in BERT.
    max_position_embeddings, type_vocab_size
        Rows of the tables of positions and token types.
    visual_region_classes
        Classes of the region head.
    feature_size
        Numbers that describe a region.
    n_waves
        Sines, and as many cosines, for each coordinate of a box.
    pooler_size
        Of the pooled vectors that the matching head reads; ``None`` for a network without.
    masked_word
        Whether the word beside a masked region has an embedding of its own.
    dropout
        Share that training drops.
    """

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 3
    visual_region_classes: int = 1601
    feature_size: int = 2048
    n_waves: int = 256
    pooler_size: int | None = 1024
    masked_word: bool = False
    dropout: float = 0.1

    @property
    def shape(self) -> LayerShape:
        """Sizes of a layer."""
        return LayerShape(
            self.hidden_size, self.num_attention_heads, self.intermediate_size, self.dropout
        )


VARIANTS = {
    "vilbert": VilbertConfig(),
    "ctrl_vilbert": VilbertConfig(
        v_hidden_size=768,
        v_num_attention_heads=12,
        v_intermediate_size=3072,
        bi_hidden_size=768,
        bi_num_attention_heads=12,
        pooler_size=1024,
    ),
    "vl-bert": VoltaVlBertConfig(pooler_size=None, masked_word=True),
    "ctrl_vl-bert": VoltaVlBertConfig(),
}
"""The published networks that are loaded here, by VOLTA's names.

:meta hide-value:
"""


class VoltaVlBertNetwork(nn.Module):
    """VL-BERT as VOLTA has it: one BERT over a block of text and a block of regions.

    The LAST region row of the tensor stands for the whole image, also where the row is padding and
    where the published configuration (ctrl_vl-bert) puts the whole image first. So give every row
    the same number of regions.

    Parameters
    ----------
    config
        Its sizes and parts.
    """

    def __init__(self, config: VoltaVlBertConfig = VARIANTS["ctrl_vl-bert"]):
        super().__init__()
        self.config = config
        self.bert = _OneStream(config)
        self.cls = _Heads(config)
        self.apply(initialise)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        features: torch.Tensor,
        places: torch.Tensor,
        real: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        as_released: bool = False,
    ) -> VilbertOutput:
        """Run the network.

        Parameters
        ----------
        input_ids, attention_mask
            (n, t): ``[CLS]`` words ``[SEP]``, padded with 0 at the end; and which are tokens.
        features
            (n, k, f): a row of zeros is a masked region.
        places
            (n, k, 4 or more): left, top, right and bottom of the boxes, as shares of the image;
            further columns are not looked at.
        real
            (n, k): which regions there are.
        token_type_ids
            (n, t): 0 unless given.
        as_released
            Number positions as the released code does to a batch of unequal lengths: beyond the
            shortest text, every row's tokens are moved up, so that a row depends on its batch.

        Returns
        -------
        VilbertOutput
            States of text and regions; ``None`` for what the network does not pool.

        Raises
        ------
        ValueError
            If features are of the wrong width.
        """
        if features.shape[-1] != self.config.feature_size:
            raise ValueError(
                f"this VL-BERT takes features of {self.config.feature_size} numbers a region, "
                f"not {features.shape[-1]}"
            )
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        text, image = self.bert.embeddings(input_ids, types, features, places, as_released)
        return self.bert(text, image, torch.cat([attention_mask, real.to(attention_mask)], dim=1))

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of text states (..., d)."""
        return self.cls.predictions(states, self.bert.embeddings.word_embeddings)

    def class_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return region-class logits (..., classes) of region states (..., d)."""
        return self.cls.imagePredictions(states)

    def match_logits(self, output: VilbertOutput) -> torch.Tensor:
        """Return (n, 2): index 0 for a text that belongs to its image, 1 for one that does not.

        Raises
        ------
        ValueError
            If the network has no matching head.
        """
        if self.config.pooler_size is None:
            raise CapabilityError("VOLTA's vl-bert has no matching head; ctrl_vl-bert has one")
        return self.cls.bi_seq_relationship(output.pooled_text * output.pooled_image)


class _Embeddings(nn.Module):
    """Words with the whole image beside them; regions with what stands for their word."""

    def __init__(self, config: VoltaVlBertConfig):
        super().__init__()
        self.n_waves = config.n_waves
        width, inputs = config.hidden_size, 8 * config.n_waves + config.feature_size
        self.obj_downsample = nn.Sequential(
            nn.Dropout(config.dropout), nn.Linear(inputs, width), nn.ReLU()
        )
        self.object_linguistic_embeddings = nn.Embedding(1, width)
        self.object_mask_visual_embedding = nn.Embedding(1, config.feature_size)
        if config.masked_word:
            self.object_mask_word_embedding = nn.Embedding(1, width)
        self.masked_word = config.masked_word
        self.end_embedding = nn.Embedding(1, width)
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.visual_ln_text = nn.LayerNorm(width, eps=EPS)
        self.visual_ln_object = nn.LayerNorm(width, eps=EPS)
        self.LayerNorm = nn.LayerNorm(width, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, input_ids, token_type_ids, features, places, as_released
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return embedded tokens (n, t, d) and regions (n, k, d)."""
        masked = (features == 0).all(dim=-1, keepdim=True)
        features = torch.where(masked, self.object_mask_visual_embedding.weight, features)
        sizes = torch.ones_like(places[:, 0, :2])
        where = coordinate_embedding(places[..., :4], sizes, self.n_waves)
        regions = self.obj_downsample(torch.cat([where, features], dim=-1))
        text = self.word_embeddings(input_ids) + self.visual_ln_text(regions[:, -1:])
        image = self._words_of_regions(masked) + self.visual_ln_object(regions)
        token_places, region_places = _positions(input_ids, regions.shape[1], as_released)
        image_types = torch.full_like(region_places, IMAGE_TYPE)
        text = self._finished(text, token_places, token_type_ids)
        return text, self._finished(image, region_places, image_types)

    def _words_of_regions(self, masked: torch.Tensor) -> torch.Tensor:
        words = self.object_linguistic_embeddings.weight
        if self.masked_word:
            words = torch.where(masked, self.object_mask_word_embedding.weight, words)
        words = words.expand(*masked.shape[:2], -1)
        end = self.end_embedding.weight.expand(len(masked), 1, -1)
        return torch.cat([words[:, :-1], end], dim=1)

    def _finished(self, states, positions, types) -> torch.Tensor:
        states = states + self.position_embeddings(positions) + self.token_type_embeddings(types)
        return self.dropout(self.LayerNorm(states))


def _positions(
    input_ids: torch.Tensor, n_regions: int, as_released: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return position numbers of tokens (n, t) and regions (n, k).

    Regions share the number after the text and the last one has the next; padding of the text goes
    on behind them.
    """
    length = (input_ids != 0).sum(dim=1, keepdim=True)
    index = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
    beyond = index >= length
    if as_released:
        beyond = beyond.any(dim=0).expand_as(beyond)
    of_regions = length.repeat(1, n_regions)
    of_regions[:, -1] += 1
    return index + n_regions * beyond, of_regions


class _OneStream(nn.Module):
    """Embeddings, encoder and, where there are, poolers."""

    def __init__(self, config: VoltaVlBertConfig):
        super().__init__()
        self.embeddings = _Embeddings(config)
        self.encoder = BertEncoder(config.shape, config.num_hidden_layers)
        if config.pooler_size is not None:
            self.t_pooler = Pooler(config.hidden_size, config.pooler_size)
            self.v_pooler = Pooler(config.hidden_size, config.pooler_size)
        self.pools = config.pooler_size is not None

    def forward(self, embedded_text, embedded_image, real) -> VilbertOutput:
        """Run the layers over tokens (n, t, d) and regions (n, k, d); ``real`` is (n, t + k)."""
        states = torch.cat([embedded_text, embedded_image], dim=1)
        states = self.encoder(states, additive_mask(real))
        text, image = states.split([embedded_text.shape[1], embedded_image.shape[1]], dim=1)
        pooled = (self.t_pooler(text), self.v_pooler(image)) if self.pools else (None, None)
        return VilbertOutput(text, image, *pooled, embedded_text, embedded_image)


class _Heads(nn.Module):
    """Heads of pre-training, under the names that they have in the files."""

    def __init__(self, config: VoltaVlBertConfig):
        super().__init__()
        self.predictions = WordHead(config.hidden_size, config.vocab_size)
        self.imagePredictions = RegionHead(
            config.hidden_size, config.visual_region_classes, norm=False
        )
        if config.pooler_size is not None:
            self.bi_seq_relationship = nn.Linear(config.pooler_size, 2)


PARTS = {
    "attention_self": "attention.self",
    "attention_output": "attention.output",
    "intermediate": "intermediate",
    "output": "output",
}
"""VOLTA's names of the parts of a layer, and BERT's."""

VL_BERT_LAYOUT = Layout(
    copies=[
        (r"^cls\.predictions\.decoder\.weight$", "bert.embeddings.word_embeddings.weight"),
        (r"^(bert\.encoder\.layer\..*\.)v_", r"\1"),
    ]
)
"""Regions go through the text's own matrices, which the files hold twice."""


def load_official(
    weights: str | Path | Mapping[str, torch.Tensor],
    variant: str | VilbertConfig | VoltaVlBertConfig | None = None,
) -> VilbertNetwork | VoltaVlBertNetwork:
    """Load a file that VOLTA published.

    Parameters
    ----------
    weights
        The file (``pytorch_model_9.bin``, ...), or what is in it.
    variant
        A key of :data:`VARIANTS`, or a config; ``None`` takes what the file is.

    Returns
    -------
    VilbertNetwork or VoltaVlBertNetwork
        In evaluation mode, in float32.

    Raises
    ------
    UnknownNameError
        If there is no such variant.
    CheckpointError
        If the file holds another variant, or tensors are missing, of another shape, or unknown;
        the message names them.
    """
    state = read_official(weights)
    config = config_for(variant, _variant_of(state), VARIANTS, "VOLTA")
    if isinstance(config, VilbertConfig):
        before = 2 * config.t_biattention_id[0]
        return built(
            VilbertNetwork, config, _renamed(state, _two_stream_name, before), VILBERT_LAYOUT
        )
    return built(VoltaVlBertNetwork, config, _renamed(state, _one_stream_name, 0), VL_BERT_LAYOUT)


def _variant_of(state: Mapping[str, torch.Tensor]) -> str:
    """Return which variant weights are, or what else they seem to be."""
    if not any(".attention_self." in name for name in state):
        return "another family of models"
    if "bert.embeddings.obj_downsample.1.weight" in state:
        return "ctrl_vl-bert" if "bert.t_pooler.dense.weight" in state else "vl-bert"
    features = state.get("bert.v_embeddings.image_embeddings.weight")
    if features is None or "bert.v_embeddings.LayerNorm.weight" not in state:
        return "another model of VOLTA"
    return "vilbert" if features.shape[0] == 1024 else "ctrl_vilbert"


def _renamed(state: Mapping[str, torch.Tensor], name_of, before: int) -> dict[str, torch.Tensor]:
    """Give the tensors of VOLTA's numbered sub-layers the names of layers.

    VOLTA counts attention and feed-forward parts in the order in which they run.
    """
    renamed = {}
    for name, tensor in state.items():
        found = re.match(r"bert\.encoder\.layer\.(\d+)\.(\w+)\.(.+)", name)
        if found:
            name = "bert.encoder." + name_of(int(found[1]), found[2], found[3], before)
        renamed[re.sub(r"(imagePredictions\.decoder)_dict\.\d+", r"\1", name)] = tensor
    return renamed


def _one_stream_name(number: int, part: str, rest: str, before: int) -> str:
    return f"layer.{number // 2}.{PARTS[part]}.{rest}"


def _two_stream_name(number: int, part: str, rest: str, before: int) -> str:
    """Return ViLBERT's name.

    The first ``before`` sub-layers are those of the text alone; then come, by turns, two of a
    co-attention and two of a layer of both streams, whose visual tensors begin with ``v_``.
    """
    is_visual = rest.startswith("v_")
    rest = rest.removeprefix("v_")
    if number < before:
        return f"layer.{number // 2}.{PARTS[part]}.{rest}"
    meeting, place = divmod(number - before, 4)
    if place >= 2:
        layer = f"v_layer.{meeting}" if is_visual else f"layer.{before // 2 + meeting}"
        return f"{layer}.{PARTS[part]}.{rest}"
    suffix, letter = ("1", "v") if is_visual else ("2", "t")
    module, last = rest.split(".")
    inner = {
        "attention_self": f"biattention.{module}{suffix}.{last}",
        "attention_output": f"biOutput.{module}{suffix}.{last}",
        "intermediate": f"{letter}_intermediate.{rest}",
        "output": f"{letter}_output.{rest}",
    }
    return f"c_layer.{meeting}.{inner[part]}"
