"""ViLBERT (Lu et al. 2019): two streams of BERT that read each other.

Matches facebookresearch/vilbert-multi-task, commit f22b84a (MIT), vilbert/vilbert.py, class
BertForMultiModalPreTraining, in evaluation.

Throughout: n rows of a batch, t tokens of d numbers, k regions of v numbers. Region 0 of a row is
the whole image.
"""

from typing import ClassVar, NamedTuple

import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers.models.bert import modeling_bert as bert

from biaslib.models.networks.network import HEAD, Network, RegionHead, additive_mask

__all__ = ["VilbertConfig", "VilbertNetwork", "VilbertOutput", "locations"]

LOCATIONS = 5
"""Numbers that say where a region is: left, top, right, bottom and area."""

WIDE_HEAD = 128
"""Numbers an attention head of the visual stream and of the co-attention."""


class VilbertConfig(transformers.BertConfig):
    """Sizes of a ViLBERT, beside those of BERT for its text stream; by default the published one's.

    Attributes
    ----------
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
    """

    model_type = "vilbert"

    v_feature_size: int = 2048
    v_target_size: int = 1601
    v_hidden_size: int = 1024
    v_num_hidden_layers: int = 6
    v_num_attention_heads: int = 8
    v_intermediate_size: int = 1024
    bi_hidden_size: int = 1024
    bi_num_attention_heads: int = 8
    pooler_size: int | None = None
    t_biattention_id: tuple[int, ...] | list[int] = (6, 7, 8, 9, 10, 11)
    v_biattention_id: tuple[int, ...] | list[int] = (0, 1, 2, 3, 4, 5)

    def visual(self) -> transformers.BertConfig:
        """Return the sizes of a layer of the visual stream."""
        return transformers.BertConfig(
            hidden_size=self.v_hidden_size,
            num_attention_heads=self.v_num_attention_heads,
            intermediate_size=self.v_intermediate_size,
            hidden_dropout_prob=self.hidden_dropout_prob,
            attention_probs_dropout_prob=self.attention_probs_dropout_prob,
            attn_implementation=self._attn_implementation,
        )


class VilbertOutput(NamedTuple):
    """What ViLBERT says of a batch.

    ``text`` (n, t, d) and ``image`` (n, k, v) are the last states; ``pooled_text`` and
    ``pooled_image`` (n, p) the pooled first ones. Positions of padding hold numbers without a
    meaning.
    """

    text: torch.Tensor
    image: torch.Tensor
    pooled_text: torch.Tensor
    pooled_image: torch.Tensor


class VilbertNetwork(Network):
    """The pre-training network of ViLBERT.

    Parameters
    ----------
    config
        Its sizes.

    Examples
    --------
    >>> tiny = VilbertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, intermediate_size=8,
    ...                      num_attention_heads=2, v_feature_size=4, v_hidden_size=8,
    ...                      v_num_hidden_layers=1, v_num_attention_heads=2, v_intermediate_size=8,
    ...                      bi_hidden_size=8, bi_num_attention_heads=2, t_biattention_id=(0,),
    ...                      v_biattention_id=(0,))
    >>> network = VilbertNetwork(tiny).eval()
    >>> ids, boxes = torch.tensor([[2, 5, 3]]), torch.tensor([[[0.0, 0.0, 1.0, 1.0]]])
    >>> found = network(ids, ids > 0, torch.zeros(1, 1, 4), locations(boxes), torch.ones(1, 1))
    >>> network.match_logits(found).shape
    torch.Size([1, 2])
    """

    config_class = VilbertConfig
    sizes: ClassVar = {
        "v_feature_size": (r"^bert\.v_embeddings\.image_embeddings\.weight$", 1),
        "v_target_size": (r"^cls\.imagePredictions\.decoder\.weight$", 0),
        "v_hidden_size": (r"^bert\.v_embeddings\.image_embeddings\.weight$", 0),
        "v_intermediate_size": (r"\.v_layer\.0\.intermediate\.dense\.weight$", 0),
        "v_num_hidden_layers": (r"\.v_layer\.\d+\.output\.dense\.weight$", None),
        "bi_hidden_size": (r"\.c_layer\.0\.biattention\.query1\.weight$", 0),
    }
    heads: ClassVar = {
        "num_attention_heads": ("hidden_size", HEAD),
        "v_num_attention_heads": ("v_hidden_size", WIDE_HEAD),
        "bi_num_attention_heads": ("bi_hidden_size", WIDE_HEAD),
    }
    _tied_weights_keys: ClassVar = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    _keys_to_ignore_on_load_unexpected: ClassVar = [r"\.biOutput\.q_dense[12]\."]

    def __init__(self, config: VilbertConfig):
        super().__init__(config)
        self.bert = _TwoStreams(config)
        self.cls = _Heads(config)
        self.post_init()

    @classmethod
    def config_of(cls, state) -> VilbertConfig:
        """Return the configuration that tensors tell: the last layers of both streams meet."""
        config = super().config_of(state)
        if n := sum(name.endswith(".biattention.query1.weight") for name in state):
            config.t_biattention_id = [*range(config.num_hidden_layers)][-n:]
            config.v_biattention_id = [*range(config.v_num_hidden_layers)][-n:]
        return config

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
        """
        text = self.bert.embeddings(input_ids, token_type_ids)
        image = self.bert.v_embeddings(features, places)
        masks = (additive_mask(real_tokens, text.dtype) for real_tokens in (attention_mask, real))
        text, image = self.bert.encoder(text, image, *masks)
        return VilbertOutput(text, image, self.bert.t_pooler(text), self.bert.v_pooler(image))

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of text states (..., d)."""
        return self.cls.predictions(states)

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


class _TwoStreams(nn.Module):
    """Embeddings, encoder and poolers, under the names that they have in the files."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        pooled = config.pooler_size or config.bi_hidden_size
        self.embeddings = bert.BertEmbeddings(config)
        self.v_embeddings = _RegionEmbeddings(config)
        self.encoder = _Encoder(config)
        self.t_pooler = _Pooler(config.hidden_size, pooled)
        self.v_pooler = _Pooler(config.v_hidden_size, pooled)


class _RegionEmbeddings(nn.Module):
    """What a region looks like and where it is."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.image_embeddings = nn.Linear(config.v_feature_size, config.v_hidden_size)
        self.image_location_embeddings = nn.Linear(LOCATIONS, config.v_hidden_size)
        self.LayerNorm = nn.LayerNorm(config.v_hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, features: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return (n, k, v)."""
        states = self.image_embeddings(features) + self.image_location_embeddings(places)
        return self.dropout(self.LayerNorm(states))


class _Encoder(nn.Module):
    """Layers of both streams, with co-attention in between."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        text, visual = range(config.num_hidden_layers), range(config.v_num_hidden_layers)
        self.layer = nn.ModuleList([bert.BertLayer(config) for _ in text])
        self.v_layer = nn.ModuleList([bert.BertLayer(config.visual()) for _ in visual])
        self.c_layer = nn.ModuleList([_CoLayer(config) for _ in config.t_biattention_id])
        self.meetings = list(zip(config.t_biattention_id, config.v_biattention_id, strict=True))

    def forward(self, text, image, text_mask, image_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of text and image."""
        text_done = image_done = 0
        for (text_next, image_next), meet in zip(self.meetings, self.c_layer, strict=True):
            text = _through(self.layer[text_done:text_next], text, text_mask)
            image = _through(self.v_layer[image_done:image_next], image, image_mask)
            text, image = meet(text, image, text_mask, image_mask)
            text_done, image_done = text_next, image_next
        text = _through(self.layer[text_done:], text, text_mask)
        return text, _through(self.v_layer[image_done:], image, image_mask)


def _through(layers: nn.ModuleList, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        states = layer(states, mask)
    return states


class _CoLayer(nn.Module):
    """Co-attention, then the feed-forward part of each stream (Lu et al. 2019, figure 2b)."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        visual = config.visual()
        self.biattention = _CoAttention(config)
        self.biOutput = _CoOutput(config)
        self.v_intermediate = bert.BertIntermediate(visual)
        self.v_output = bert.BertOutput(visual)
        self.t_intermediate = bert.BertIntermediate(config)
        self.t_output = bert.BertOutput(config)

    def forward(self, text, image, text_mask, image_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of text and image."""
        gathered = self.biattention(text, image, text_mask, image_mask)
        text, image = self.biOutput(text, image, *gathered)
        text = self.t_output(self.t_intermediate(text), text)
        return text, self.v_output(self.v_intermediate(image), image)


class _CoAttention(nn.Module):
    """Each stream asks the other. Suffix 1 is the visual stream, 2 the text."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.heads, self.rate = config.bi_num_attention_heads, config.attention_probs_dropout_prob
        for suffix, size in (("1", config.v_hidden_size), ("2", config.hidden_size)):
            for role in ("query", "key", "value"):
                self.add_module(role + suffix, nn.Linear(size, config.bi_hidden_size))

    def forward(self, text, image, text_mask, image_mask) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the tokens gathered from the image, and the regions from the text."""
        of_text = self.query2(text), self.key2(text), self.value2(text)
        of_image = self.query1(image), self.key1(image), self.value1(image)
        from_image = self._attend(of_text[0], *of_image[1:], image_mask)
        return from_image, self._attend(of_image[0], *of_text[1:], text_mask)

    def _attend(self, query, key, value, mask) -> torch.Tensor:
        """Return softmax(q k' / sqrt(d / heads) + mask) v, head by head (Vaswani et al. 2017)."""
        query, key, value = (
            states.unflatten(-1, (self.heads, -1)).transpose(1, 2) for states in (query, key, value)
        )
        rate = self.rate if self.training else 0.0
        mask = mask.to(query.dtype)
        attended = functional.scaled_dot_product_attention(query, key, value, mask, rate)
        return attended.transpose(1, 2).flatten(2)


class _CoOutput(nn.Module):
    """Adds what was gathered to each stream, and normalises."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        eps = config.layer_norm_eps
        self.dense1 = nn.Linear(config.bi_hidden_size, config.v_hidden_size)
        self.LayerNorm1 = nn.LayerNorm(config.v_hidden_size, eps=eps)
        self.dense2 = nn.Linear(config.bi_hidden_size, config.hidden_size)
        self.LayerNorm2 = nn.LayerNorm(config.hidden_size, eps=eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, text, image, from_image, from_text) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of text and image."""
        text = self.LayerNorm2(self.dropout(self.dense2(from_image)) + text)
        return text, self.LayerNorm1(self.dropout(self.dense1(from_text)) + image)


class _Pooler(nn.Module):
    """The first position through a linear map and ReLU (BERT itself has tanh)."""

    def __init__(self, size_in: int, size_out: int):
        super().__init__()
        self.dense = nn.Linear(size_in, size_out)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (n, size_out) for (n, t, size_in)."""
        return functional.relu(self.dense(states[:, 0]))


class _Heads(nn.Module):
    """Heads of pre-training, under the names that they have in the files."""

    def __init__(self, config: VilbertConfig):
        super().__init__()
        self.predictions = bert.BertLMPredictionHead(config)
        self.bi_seq_relationship = nn.Linear(config.pooler_size or config.bi_hidden_size, 2)
        self.imagePredictions = RegionHead(config.visual(), config.v_target_size)
