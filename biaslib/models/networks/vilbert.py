"""ViLBERT (Lu et al. 2019) and its 12-in-1 successor (Lu et al. 2020): two streams of BERT.

Matches facebookresearch/vilbert-multi-task, commit f22b84a (MIT), vilbert/vilbert.py, classes
BertForMultiModalPreTraining and VILBertForVLTasks, in evaluation.

Throughout: n rows of a batch, t tokens of d numbers, k regions of v numbers. Region 0 of a row is
the whole image.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from biaslib.models.networks.bert_parts import (
    EPS,
    AddNorm,
    BertEmbeddings,
    BertLayer,
    FeedForward,
    LayerShape,
    Pooler,
    RegionHead,
    TextConfig,
    WordHead,
    additive_mask,
    attend,
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
    "VilbertConfig",
    "VilbertNetwork",
    "VilbertOutput",
    "load_official",
    "locations",
]

LOCATIONS = 5
"""Numbers that say where a region is: left, top, right, bottom and area."""


@dataclass(frozen=True)
class VilbertConfig(TextConfig):
    """Sizes of a ViLBERT; the defaults are those of the published one.

    Parameters
    ----------
    vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
        Of the text stream, as in BERT.
    max_position_embeddings, type_vocab_size
        Rows of the tables of positions and token types.
    v_feature_size
        Numbers that describe a region.
    v_target_size
        Classes of the region head.
    v_hidden_size, v_num_hidden_layers, v_num_attention_heads, v_intermediate_size
        Of the visual stream.
    bi_hidden_size, bi_num_attention_heads
        Of the co-attention.
    pooler_size
        Of the pooled vectors; ``None`` for that of the co-attention.
    t_biattention_id, v_biattention_id
        Co-attention layer i runs before the text layer and the visual layer of these numbers.
    dropout
        Share that training drops.
    """

    v_feature_size: int = 2048
    v_target_size: int = 1601
    v_hidden_size: int = 1024
    v_num_hidden_layers: int = 6
    v_num_attention_heads: int = 8
    v_intermediate_size: int = 1024
    bi_hidden_size: int = 1024
    bi_num_attention_heads: int = 8
    pooler_size: int | None = None
    t_biattention_id: tuple[int, ...] = (6, 7, 8, 9, 10, 11)
    v_biattention_id: tuple[int, ...] = (0, 1, 2, 3, 4, 5)

    @property
    def visual_shape(self) -> LayerShape:
        """Sizes of a layer of the visual stream."""
        return LayerShape(
            self.v_hidden_size, self.v_num_attention_heads, self.v_intermediate_size, self.dropout
        )

    @property
    def pooled_size(self) -> int:
        """Numbers of a pooled vector."""
        return self.pooler_size or self.bi_hidden_size


VARIANTS = {"pretrained": VilbertConfig()}
"""The published network: pretrained_model.bin.

:meta hide-value:
"""

WIDE_HEAD = 128
"""Numbers a head of the visual stream and of the co-attention."""

SIZES = Sizes(
    axes=bert_axes("bert.embeddings", "bert.encoder.layer")
    | {
        "v_feature_size": ("bert.v_embeddings.image_embeddings.weight", 1),
        "v_target_size": ("cls.imagePredictions.decoder.weight", 0),
        "v_hidden_size": ("bert.v_embeddings.image_embeddings.weight", 0),
        "v_intermediate_size": ("bert.encoder.v_layer.0.intermediate.dense.weight", 0),
        "bi_hidden_size": ("bert.encoder.c_layer.0.biattention.query1.weight", 0),
    },
    counts={
        "num_hidden_layers": r"bert\.encoder\.layer\.\d+\.",
        "v_num_hidden_layers": r"bert\.encoder\.v_layer\.\d+\.",
    },
    heads={
        "num_attention_heads": ("hidden_size", HEAD),
        "v_num_attention_heads": ("v_hidden_size", WIDE_HEAD),
        "bi_num_attention_heads": ("bi_hidden_size", WIDE_HEAD),
    },
)
"""Where the tensors tell the sizes."""


class VilbertOutput(NamedTuple):
    """What ViLBERT says of a batch.

    ``text`` (n, t, d) and ``image`` (n, k, v) are the last states; ``pooled_text`` and
    ``pooled_image`` (n, p) the pooled first ones; ``embedded_text`` and ``embedded_image`` what
    went into the first layers. Positions of padding hold numbers without a meaning.
    """

    text: torch.Tensor
    image: torch.Tensor
    pooled_text: torch.Tensor | None
    pooled_image: torch.Tensor | None
    embedded_text: torch.Tensor
    embedded_image: torch.Tensor


class VilbertNetwork(nn.Module):
    """The pre-training network of ViLBERT.

    Parameters
    ----------
    config
        Its sizes.

    Examples
    --------
    >>> tiny = VilbertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=2, intermediate_size=8,
    ...                      num_attention_heads=2, v_feature_size=4, v_hidden_size=8,
    ...                      v_num_hidden_layers=1, v_num_attention_heads=2, bi_hidden_size=8,
    ...                      bi_num_attention_heads=2, t_biattention_id=(1,), v_biattention_id=(0,))
    >>> network = VilbertNetwork(tiny).eval()
    >>> ids, features = torch.tensor([[2, 5, 3]]), torch.zeros(1, 1, 4)
    >>> whole = locations(torch.tensor([[[0.0, 0.0, 1.0, 1.0]]]))
    >>> output = network(ids, ids > 0, features, whole, torch.ones(1, 1))
    >>> network.match_logits(output).shape
    torch.Size([1, 2])
    """

    def __init__(self, config: VilbertConfig = VARIANTS["pretrained"]):
        super().__init__()
        self.config = config
        self.bert = _TwoStreams(config)
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
    ) -> VilbertOutput:
        """Run the network.

        Parameters
        ----------
        input_ids, attention_mask
            (n, t): ``[CLS]`` words ``[SEP]``, padded at the end; and which are tokens.
        features
            (n, k, f): the regions' features; row 0 is the whole image, the mean of the others.
        places
            (n, k, 5): where the regions are; see :func:`locations`.
        real
            (n, k): which regions there are.
        token_type_ids
            (n, t): 0 unless given.

        Returns
        -------
        VilbertOutput
            States of both streams.

        Raises
        ------
        ValueError
            If features are of the wrong width.
        """
        if features.shape[-1] != self.config.v_feature_size:
            raise ValueError(
                f"this ViLBERT takes features of {self.config.v_feature_size} numbers a region, "
                f"not {features.shape[-1]}"
            )
        return self.bert(input_ids, attention_mask, features, places, real, token_type_ids)

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of text states (..., d)."""
        return self.cls.predictions(states, self.bert.embeddings.word_embeddings)

    def match_logits(self, output: VilbertOutput) -> torch.Tensor:
        """Return (n, 2): index 0 for a text that belongs to its image, 1 for one that does not."""
        return self.cls.bi_seq_relationship(output.pooled_text * output.pooled_image)


def locations(boxes: torch.Tensor) -> torch.Tensor:
    """Return left, top, right, bottom and area of boxes (n, k, 4), as shares of the image.

    Examples
    --------
    >>> locations(torch.tensor([[0.0, 0.0, 0.5, 1.0]])).tolist()
    [[0.0, 0.0, 0.5, 1.0, 0.5]]
    """
    extent = boxes[..., 2:] - boxes[..., :2]
    return torch.cat([boxes, extent.prod(dim=-1, keepdim=True)], dim=-1)


class _RegionEmbeddings(nn.Module):
    """What a region looks like and where it is."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.image_embeddings = nn.Linear(config.v_feature_size, config.v_hidden_size)
        self.image_location_embeddings = nn.Linear(LOCATIONS, config.v_hidden_size)
        self.LayerNorm = nn.LayerNorm(config.v_hidden_size, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return (n, k, v)."""
        states = self.image_embeddings(features) + self.image_location_embeddings(places)
        return self.dropout(self.LayerNorm(states))


class _CoAttention(nn.Module):
    """Each stream asks the other. Suffix 1 is the visual stream, 2 the text."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.heads, self.dropout = config.bi_num_attention_heads, config.dropout
        for suffix, size in (("1", config.v_hidden_size), ("2", config.hidden_size)):
            for role in ("query", "key", "value"):
                self.add_module(role + suffix, nn.Linear(size, config.bi_hidden_size))

    def forward(self, image, image_mask, text, text_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the regions gathered from the text, and the tokens from the image."""
        rate = self.dropout if self.training else 0.0
        from_text = attend(
            self.query1(image), self.key2(text), self.value2(text), self.heads, text_mask, rate
        )
        from_image = attend(
            self.query2(text), self.key1(image), self.value1(image), self.heads, image_mask, rate
        )
        return from_text, from_image


class _CoOutput(nn.Module):
    """Adds what was gathered to each stream, and normalises."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.dense1 = nn.Linear(config.bi_hidden_size, config.v_hidden_size)
        self.LayerNorm1 = nn.LayerNorm(config.v_hidden_size, eps=EPS)
        self.dense2 = nn.Linear(config.bi_hidden_size, config.hidden_size)
        self.LayerNorm2 = nn.LayerNorm(config.hidden_size, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, from_text, image, from_image, text) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of image and text."""
        image = self.LayerNorm1(self.dropout(self.dense1(from_text)) + image)
        text = self.LayerNorm2(self.dropout(self.dense2(from_image)) + text)
        return image, text


class _CoLayer(nn.Module):
    """Co-attention, then the feed-forward part of each stream (Lu et al. 2019, figure 2b)."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        visual, text = config.visual_shape, config
        self.biattention = _CoAttention(config)
        self.biOutput = _CoOutput(config)
        self.v_intermediate = FeedForward(visual.hidden_size, visual.intermediate_size)
        self.v_output = AddNorm(visual.intermediate_size, visual.hidden_size, visual.dropout)
        self.t_intermediate = FeedForward(text.hidden_size, text.intermediate_size)
        self.t_output = AddNorm(text.intermediate_size, text.hidden_size, text.dropout)

    def forward(self, image, image_mask, text, text_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of image and text."""
        from_text, from_image = self.biattention(image, image_mask, text, text_mask)
        image, text = self.biOutput(from_text, image, from_image, text)
        image = self.v_output(self.v_intermediate(image), image)
        return image, self.t_output(self.t_intermediate(text), text)


class _Encoder(nn.Module):
    """Layers of both streams, with co-attention in between."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        if len(config.t_biattention_id) != len(config.v_biattention_id):
            raise ValueError(
                "t_biattention_id and v_biattention_id need one number each for every "
                f"co-attention layer, not {len(config.t_biattention_id)} and "
                f"{len(config.v_biattention_id)}"
            )
        text, visual = config, config.visual_shape
        self.layer = nn.ModuleList([BertLayer(text) for _ in range(config.num_hidden_layers)])
        self.v_layer = nn.ModuleList([BertLayer(visual) for _ in range(config.v_num_hidden_layers)])
        self.c_layer = nn.ModuleList([_CoLayer(config) for _ in config.t_biattention_id])
        self.meetings = list(zip(config.t_biattention_id, config.v_biattention_id, strict=True))

    def forward(self, text, text_mask, image, image_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of text and image."""
        text_done = image_done = 0
        for (text_next, image_next), meet in zip(self.meetings, self.c_layer, strict=True):
            text = _through(self.layer[text_done:text_next], text, text_mask)
            image = _through(self.v_layer[image_done:image_next], image, image_mask)
            image, text = meet(image, image_mask, text, text_mask)
            text_done, image_done = text_next, image_next
        text = _through(self.layer[text_done:], text, text_mask)
        return text, _through(self.v_layer[image_done:], image, image_mask)


def _through(layers: nn.ModuleList, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        states = layer(states, mask)
    return states


class _TwoStreams(nn.Module):
    """Embeddings, encoder and poolers."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.v_embeddings = _RegionEmbeddings(config)
        self.encoder = _Encoder(config)
        self.t_pooler = Pooler(config.hidden_size, config.pooled_size)
        self.v_pooler = Pooler(config.v_hidden_size, config.pooled_size)

    def forward(
        self, input_ids, attention_mask, features, places, real, token_type_ids
    ) -> VilbertOutput:
        """Run both streams; see :meth:`VilbertNetwork.forward`."""
        embedded_text = self.embeddings(input_ids, token_type_ids)
        embedded_image = self.v_embeddings(features, places)
        text, image = self.encoder(
            embedded_text, additive_mask(attention_mask), embedded_image, additive_mask(real)
        )
        return VilbertOutput(
            text, image, self.t_pooler(text), self.v_pooler(image), embedded_text, embedded_image
        )


class _Heads(nn.Module):
    """Heads of pre-training, under the names that they have in the files."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.predictions = WordHead(config.hidden_size, config.vocab_size)
        self.bi_seq_relationship = nn.Linear(config.pooled_size, 2)
        self.imagePredictions = RegionHead(config.v_hidden_size, config.v_target_size)


LAYOUT = Layout(
    copies=[(r"^cls\.predictions\.decoder\.weight$", "bert.embeddings.word_embeddings.weight")],
    unused=[r"\.biOutput\.q_dense[12]\."],
)
"""The tied matrix that the files hold twice, and linear maps that the authors' code never calls."""


def load_official(weights: str | Path | Mapping[str, torch.Tensor]) -> VilbertNetwork:
    """Load a published file of ViLBERT.

    Parameters
    ----------
    weights
        The file (``pretrained_model.bin``), or what is in it.

    Returns
    -------
    VilbertNetwork
        In evaluation mode, in float32.

    Raises
    ------
    CheckpointError
        If the file holds none of :data:`VARIANTS`, or tensors are missing, of another shape, or
        unknown; the message names them.

    Examples
    --------
    >>> load_official({"bert.pooler.dense.weight": torch.zeros(1)})
    Traceback (most recent call last):
    biaslib.models.errors.CheckpointError: these are the weights of 'another family \
of models', which are not known of ViLBERT; known: pretrained
    """
    state = read_official(weights)
    config = config_for(_variant_of(state), VARIANTS, "ViLBERT")
    return built(VilbertNetwork, _sized(config, LAYOUT.renamed(state)), state, LAYOUT)


def _sized(config: VilbertConfig, state: Mapping[str, torch.Tensor]) -> VilbertConfig:
    """Return the configuration of weights of this kind, whatever their sizes.

    As in the published networks, the last layers of both streams read each other.
    """
    config = SIZES.of(state, config)
    n = len({name.split(".")[3] for name in state if name.startswith("bert.encoder.c_layer.")})
    if not n:
        return config
    last = (
        range(layers - n, layers)
        for layers in (config.num_hidden_layers, config.v_num_hidden_layers)
    )
    text, visual = map(tuple, last)
    return replace(config, t_biattention_id=text, v_biattention_id=visual)


def _variant_of(state: Mapping[str, torch.Tensor]) -> str:
    """Return which variant weights are, or what else they seem to be."""
    if "bert.v_embeddings.image_embeddings.weight" not in state:
        return "another family of models"
    if any(".attention_self." in name for name in state):
        return "a ViLBERT of VOLTA"
    if "vil_logit.weight" in state:
        return "a ViLBERT that was tuned for tasks, such as 12-in-1"
    return "pretrained"
