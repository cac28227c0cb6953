"""VL-BERT (Su et al. 2020): text and image regions in one sequence of BERT.

Matches jackroos/VL-BERT, commit 4373674 (MIT), classes ResNetVLBERTForPretrainingMultitask and
ResNetVLBERTForPretraining, in evaluation. Published weights have a head for masked words and one
for the classes of masked regions; none that says whether a text fits an image.

Throughout: n rows of a batch, t tokens, k regions, s = t + k + 1 positions of the longest row, d
numbers a position. Region 0 of a row is the whole image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from biaslib.models.networks.bert_parts import (
    EPS,
    BertEncoder,
    RegionHead,
    TextConfig,
    WordPredictions,
    additive_mask,
    initialise,
)
from biaslib.models.networks.files import (
    HEAD,
    Layout,
    Sizes,
    bert_axes,
    built,
    config_for,
    read_official,
)

__all__ = [
    "VARIANTS",
    "RegionEncoder",
    "VlBertConfig",
    "VlBertNetwork",
    "VlBertOutput",
    "coordinate_embedding",
    "load_official",
]

LAYOUT = Layout(
    renames=[(r"\.region_cls_pred\.", ".decoder.")],
    copies=[
        (r"^vlbert\.mlm_head\.predictions\.decoder\.weight$", "vlbert.word_embeddings.weight"),
    ],
)
"""Tensors that the authors' files hold twice."""

IMAGE_TYPE = 2
"""Token type of regions and of the element that ends a row."""


@dataclass(frozen=True)
class VlBertConfig(TextConfig):
    """Sizes and parts of a VL-BERT; the defaults are the published base model's.

    Parameters
    ----------
    vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
        As in BERT.
    max_position_embeddings, type_vocab_size
        Rows of the tables of positions and token types.
    visual_region_classes
        Classes of the region head.
    feature_size
        Numbers that describe a region's pixels.
    coordinate_waves
        Sines, and as many cosines, for each of the four values that say where a box is.
    text_only
        Whether the network was also trained on texts without an image and knows what to put there.
    dropout
        Share that training drops.
    """

    type_vocab_size: int = 3
    visual_region_classes: int = 1601
    feature_size: int = 2048
    coordinate_waves: int = 256
    text_only: bool = True


LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}

VARIANTS = {
    "base-prec": VlBertConfig(),
    "base-prec-withouttextonly": VlBertConfig(text_only=False),
    "large-prec": VlBertConfig(**LARGE),
}
"""The published pre-trained networks that take features computed beforehand.

:meta hide-value:
"""

SIZES = Sizes(
    axes=bert_axes("vlbert", "vlbert.encoder.layer")
    | {
        "visual_region_classes": ("vlbert.mvrc_head.decoder.weight", 0),
    },
    counts={"num_hidden_layers": r"vlbert\.encoder\.layer\.\d+\."},
    heads={"num_attention_heads": ("hidden_size", HEAD)},
)
"""Where the tensors tell the sizes."""


class VlBertOutput(NamedTuple):
    """What VL-BERT says of a batch.

    ``sequence`` (n, s, d) are the last states of the packed rows, ``embedded`` (n, s, d) what went
    into the first layer; ``is_text``, ``is_object`` and ``real`` (n, s) say which positions hold a
    token, a region, or anything. ``text`` (n, t, d) are the first t positions: beyond the end of a
    shorter row's text they hold its regions. ``objects`` (n, k, d) are the regions' states, 0
    where there is none; ``regions`` (n, k, d) what went in for them.
    """

    text: torch.Tensor
    objects: torch.Tensor
    sequence: torch.Tensor
    embedded: torch.Tensor
    is_text: torch.Tensor
    is_object: torch.Tensor
    real: torch.Tensor
    regions: torch.Tensor


class VlBertNetwork(nn.Module):
    """The pre-training network of VL-BERT.

    Parameters
    ----------
    config
        Its sizes and parts.

    Examples
    --------
    >>> tiny = VlBertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, intermediate_size=8,
    ...                     num_attention_heads=2, feature_size=4)
    >>> network = VlBertNetwork(tiny).eval()
    >>> ids = torch.tensor([[2, 5, 3]])
    >>> states = network(ids, ids > 0).text
    >>> network.word_logits(states).shape
    torch.Size([1, 3, 9])
    """

    def __init__(self, config: VlBertConfig = VARIANTS["base-prec"]):
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.image_feature_extractor = RegionEncoder(config)
        self.object_linguistic_embeddings = nn.Embedding(1, width)
        self.object_mask_word_embedding = nn.Embedding(1, width)
        self.object_mask_visual_embedding = nn.Embedding(1, config.feature_size)
        if config.text_only:
            self.aux_text_visual_embedding = nn.Embedding(1, width)
        self.vlbert = _PackedBert(config)
        self.apply(initialise)
        self._silence_images()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        boxes: torch.Tensor | None = None,
        sizes: torch.Tensor | None = None,
        features: torch.Tensor | None = None,
        hidden: torch.Tensor | None = None,
        real: torch.Tensor | None = None,
    ) -> VlBertOutput:
        """Run the network.

        Parameters
        ----------
        input_ids, attention_mask
            (n, t): ``[CLS]`` words ``[SEP]``, padded at the end; and which are tokens.
        boxes
            (n, k, 4): x0, y0, x1, y1 in pixels; box 0 is the whole image, (0, 0, w - 1, h - 1).
            ``None``, or a row without a real box, is a text without an image.
        sizes
            (n, 2): width and height of the images in pixels.
        features
            (n, k, f): the regions' features; that of the whole image is the mean of the others.
        hidden
            (n, k): regions that are masked.
        real
            (n, k): which boxes there are; all if ``None``.

        Returns
        -------
        VlBertOutput
            States of tokens and regions.

        Raises
        ------
        ValueError
            If a row is longer than the table of positions, has boxes but no box 0, features are
            of the wrong width, or a row has no image and the network was never trained so.
        """
        boxes, real, hidden = self._regions_asked_for(input_ids, boxes, real, hidden)
        self._require_known(real)
        regions = input_ids.new_zeros((*real.shape, self.config.hidden_size), dtype=self._dtype)
        if real.any():
            features = self._features(features, hidden)
            regions = self.image_feature_extractor(boxes, sizes, features, real)
        return self.vlbert(
            input_ids,
            attention_mask.bool(),
            regions,
            real,
            *self._visual_words(regions, real, hidden),
        )

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of text states (..., d)."""
        return self.vlbert.mlm_head.predictions(states, self.vlbert.word_embeddings)

    def _silence_images(self) -> None:
        """Let images say nothing before training finds a use for them, as the authors do."""
        nn.init.zeros_(self.vlbert.visual_ln_text.weight)
        nn.init.zeros_(self.vlbert.visual_ln_object.weight)
        nn.init.zeros_(self.object_mask_visual_embedding.weight)

    @property
    def _dtype(self) -> torch.dtype:
        return self.object_linguistic_embeddings.weight.dtype

    def _regions_asked_for(self, input_ids, boxes, real, hidden):
        n, device = len(input_ids), input_ids.device
        if boxes is None:
            boxes = torch.zeros(n, 0, 4, device=device)
        shape = boxes.shape[:2]
        real = torch.ones(shape, dtype=torch.bool, device=device) if real is None else real.bool()
        hidden = torch.zeros_like(real) if hidden is None else hidden.bool()
        return boxes, real, hidden & real

    def _require_known(self, real: torch.Tensor) -> None:
        without = ~real.any(dim=1)
        if without.any() and not self.config.text_only:
            raise ValueError(
                f"row {int(without.nonzero()[0])} has no image, and this VL-BERT was trained "
                "without texts alone; give it an image, or take the variant base-prec"
            )
        if real.shape[1] and (real.any(dim=1) & ~real[:, 0]).any():
            raise ValueError("a row has regions but no region 0, which stands for the whole image")

    def _features(self, features, hidden) -> torch.Tensor:
        if features is None or features.shape[-1] != self.config.feature_size:
            found = "none" if features is None else f"{features.shape[-1]} numbers a region"
            raise ValueError(
                f"this VL-BERT takes features of {self.config.feature_size} numbers a region, "
                f"not {found}"
            )
        return torch.where(hidden[..., None], self.object_mask_visual_embedding.weight, features)

    def _visual_words(self, regions, real, hidden) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what stands for the image beside tokens (n, d) and for words beside regions."""
        words = torch.where(
            hidden[..., None],
            self.object_mask_word_embedding.weight,
            self.object_linguistic_embeddings.weight,
        )
        if not self.config.text_only:
            return regions[:, 0], words
        alone = self.aux_text_visual_embedding.weight.expand(len(real), -1)
        if not regions.shape[1]:
            return alone, words
        return torch.where(real.any(dim=1)[:, None], regions[:, 0], alone), words


class RegionEncoder(nn.Module):
    """Where a region is and what it looks like, in one vector."""

    def __init__(self, config: VlBertConfig):
        super().__init__()
        self.n_waves = config.coordinate_waves
        linear = nn.Linear(8 * self.n_waves + config.feature_size, config.hidden_size)
        self.obj_downsample = nn.Sequential(nn.Dropout(config.dropout), linear, nn.ReLU())

    def forward(
        self,
        boxes: torch.Tensor,
        sizes: torch.Tensor,
        features: torch.Tensor,
        real: torch.Tensor,
    ) -> torch.Tensor:
        """Return (n, k, d), 0 where no region is."""
        places = coordinate_embedding(boxes, sizes, self.n_waves).to(features.dtype)
        states = self.obj_downsample(torch.cat([places, features], dim=-1))
        return states.masked_fill(~real[..., None], 0)


def coordinate_embedding(
    boxes: torch.Tensor, sizes: torch.Tensor, n_waves: int = 256
) -> torch.Tensor:
    """Return the numbers that say where each box is.

    Centre x, centre y, width and height, as hundredths of the image; of each value v, sines and
    then cosines of v / 1000^(j / n_waves), j = 0 ... n_waves - 1.

    Parameters
    ----------
    boxes
        (n, k, 4): x0, y0, x1, y1 in pixels.
    sizes
        (n, 2): width and height of the images in pixels.
    n_waves
        Sines, and as many cosines, for each value.

    Returns
    -------
    torch.Tensor
        (n, k, 8 n_waves).

    Examples
    --------
    >>> whole = coordinate_embedding(torch.tensor([[[0.0, 0.0, 8.0, 8.0]]]), torch.tensor([[8, 8]]))
    >>> torch.allclose(whole[0, 0, 0], torch.sin(torch.tensor(50.0)))
    True
    """
    low, high = boxes[..., :2], boxes[..., 2:]
    sizes = sizes[:, None].to(boxes.dtype)
    values = 100 * torch.cat([(low + high) / 2 / sizes, (high - low) / sizes], dim=-1)
    waves = torch.arange(n_waves, dtype=values.dtype, device=values.device) / n_waves
    angles = values[..., None] / 1000**waves
    return torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class _PackedBert(nn.Module):
    """BERT over rows of tokens, regions and one closing element, without gaps."""

    def __init__(self, config: VlBertConfig):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.end_embedding = nn.Embedding(1, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.embedding_LayerNorm = nn.LayerNorm(width, eps=EPS)
        self.visual_ln_text = nn.LayerNorm(width, eps=EPS)
        self.visual_ln_object = nn.LayerNorm(width, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = BertEncoder(config, config.num_hidden_layers)
        self.mlm_head = WordPredictions(config.hidden_size, config.vocab_size)
        self.mvrc_head = RegionHead(width, config.visual_region_classes, norm=False)

    def forward(self, input_ids, is_token, regions, has_region, image, object_words):
        """Run the packed rows; see :class:`VlBertOutput`.

        ``image`` (n, d) stands for the image beside each token, ``object_words`` (n, k, d) for the
        word beside each region.
        """
        rows = _Rows.of(is_token, has_region)
        self._require_fitting(rows)
        tokens = self.word_embeddings(input_ids) + self.visual_ln_text(image)[:, None]
        objects = object_words + self.visual_ln_object(regions)
        states = tokens.new_zeros(*rows.real.shape, tokens.shape[-1])
        states[rows.is_text] = tokens[is_token]
        states[rows.is_object] = objects[has_region].to(states.dtype)
        states[rows.is_end] = self.end_embedding.weight.to(states.dtype).expand(len(states), -1)
        states = states + self.position_embeddings(rows.positions)
        states = states + self.token_type_embeddings(rows.types)
        embedded = self.dropout(self.embedding_LayerNorm(states))
        sequence = self.encoder(embedded, additive_mask(rows.real))
        found = torch.zeros_like(regions)
        found[has_region] = sequence[rows.is_object].to(found.dtype)
        return VlBertOutput(
            text=_first(sequence, input_ids.shape[1]),
            objects=found,
            sequence=sequence,
            embedded=embedded,
            is_text=rows.is_text,
            is_object=rows.is_object,
            real=rows.real,
            regions=regions,
        )

    def _require_fitting(self, rows: "_Rows") -> None:
        most, longest = self.position_embeddings.num_embeddings, int(rows.positions.max()) + 1
        if longest > most:
            raise ValueError(
                f"a row needs {longest} positions and the network has {most}; shorten it"
            )


def _first(states: torch.Tensor, length: int) -> torch.Tensor:
    """Return the first positions (n, length, d), with zeros where rows are shorter."""
    return functional.pad(states[:, :length], (0, 0, 0, max(0, length - states.shape[1])))


class _Rows(NamedTuple):
    """Which position of each packed row holds what, all (n, s)."""

    is_text: torch.Tensor
    is_object: torch.Tensor
    is_end: torch.Tensor
    real: torch.Tensor
    positions: torch.Tensor
    types: torch.Tensor

    @classmethod
    def of(cls, is_token: torch.Tensor, has_region: torch.Tensor) -> "_Rows":
        """Lay out rows: tokens, regions, the closing element, padding.

        All regions share the position after the text; the closing element has the next one, also
        where there is no region.
        """
        n_tokens = is_token.sum(dim=1, keepdim=True)
        end = n_tokens + has_region.sum(dim=1, keepdim=True)
        index = torch.arange(int(end.max()) + 1, device=end.device).expand(len(end), -1)
        is_text = index < n_tokens
        is_object = (index >= n_tokens) & (index < end)
        is_end = index == end
        positions = torch.where(is_object, n_tokens, index)
        positions = torch.where(is_end, n_tokens + 1, positions)
        types = IMAGE_TYPE * (is_object | is_end).long()
        return cls(is_text, is_object, is_end, index <= end, positions, types)


def load_official(weights: str | Path | Mapping[str, torch.Tensor]) -> VlBertNetwork:
    """Load a published file of VL-BERT.

    Parameters
    ----------
    weights
        The file (``vl-bert-base-prec.model``, ...), or what is in it.

    Returns
    -------
    VlBertNetwork
        In evaluation mode, in float32.

    Raises
    ------
    CheckpointError
        If the file holds none of :data:`VARIANTS`, or tensors are missing, of another shape, or
        unknown; the message names them.
    """
    state = read_official(weights)
    config = config_for(_variant_of(state), VARIANTS, "VL-BERT")
    return built(VlBertNetwork, _sized(config, LAYOUT.renamed(state)), state, LAYOUT)


def _sized(config: VlBertConfig, state: Mapping[str, torch.Tensor]) -> VlBertConfig:
    """Return the configuration of weights of this kind, whatever their sizes."""
    config = SIZES.of(state, config)
    projection = state.get("image_feature_extractor.obj_downsample.1.weight")
    if projection is None:
        return config
    return replace(config, feature_size=projection.shape[1] - 8 * config.coordinate_waves)


def _variant_of(state: Mapping[str, torch.Tensor]) -> str:
    """Return which variant weights are, or what else they seem to be."""
    words = state.get("vlbert.word_embeddings.weight")
    if words is None:
        return "another family of models"
    fine_tuned = [name for name in state if name.startswith("final_mlp")]
    if fine_tuned or "vlbert.mlm_head.predictions.bias" not in state:
        return "a VL-BERT that was fine-tuned for a task and has no masked-word head"
    if any(".backbone." in name for name in state):
        return "an end-to-end VL-BERT, which reads pixels"
    widths = {768: "base", 1024: "large"}
    size = widths.get(words.shape[1], "base")
    ending = "" if "aux_text_visual_embedding.weight" in state else "-withouttextonly"
    return f"{size}-prec{ending}"
