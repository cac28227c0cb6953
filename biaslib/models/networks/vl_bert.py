"""VL-BERT (Su et al. 2020): text and image regions in one sequence of BERT.

Matches jackroos/VL-BERT, commit 4373674 (MIT), classes ResNetVLBERTForPretrainingMultitask and
ResNetVLBERTForPretraining, in evaluation. Published weights have a head for masked words and one
for the classes of masked regions; none that says whether a text fits an image.

Throughout: n rows of a batch, t tokens, k regions, d numbers a position. Region 0 of a row is the
whole image. The authors pack a row's tokens and regions without gaps; here padding stays where it
is and positions are numbered without it, which is the same function.
"""

from typing import ClassVar

import torch
import transformers
from torch import nn
from transformers.models.bert import modeling_bert as bert

from biaslib.models.networks.network import Network, RegionHead, additive_mask

__all__ = ["RegionEncoder", "VlBertConfig", "VlBertNetwork", "coordinate_embedding"]

IMAGE_TYPE = 2
"""Token type of regions and of the element that ends a row."""


class VlBertConfig(transformers.BertConfig):
    """Sizes and parts of a VL-BERT, beside those of BERT; by default the published base model's.

    Attributes
    ----------
    visual_region_classes
        Classes of the region head.
    feature_size
        Numbers that describe a region's pixels.
    coordinate_waves
        Sines, and as many cosines, for each of the four values that say where a box is.
    text_only
        Whether the network was also trained on texts without an image and knows what to put there.
    """

    model_type = "vl_bert"

    type_vocab_size: int = 3
    visual_region_classes: int = 1601
    feature_size: int = 2048
    coordinate_waves: int = 256
    text_only: bool = True


class VlBertNetwork(Network):
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
    >>> states, _ = network(ids, ids > 0)
    >>> network.word_logits(states).shape
    torch.Size([1, 3, 9])
    """

    config_class = VlBertConfig
    renames: ClassVar = {r"\.region_cls_pred\.": ".decoder."}
    sizes: ClassVar = {"visual_region_classes": (r"^vlbert\.mvrc_head\.decoder\.weight$", 0)}
    _tied_weights_keys: ClassVar = {
        "vlbert.mlm_head.predictions.decoder.weight": "vlbert.word_embeddings.weight",
        "vlbert.mlm_head.predictions.decoder.bias": "vlbert.mlm_head.predictions.bias",
    }

    def __init__(self, config: VlBertConfig):
        super().__init__(config)
        width = config.hidden_size
        self.image_feature_extractor = RegionEncoder(config)
        self.object_linguistic_embeddings = nn.Embedding(1, width)
        self.object_mask_word_embedding = nn.Embedding(1, width)
        self.object_mask_visual_embedding = nn.Embedding(1, config.feature_size)
        if config.text_only:
            self.aux_text_visual_embedding = nn.Embedding(1, width)
        self.vlbert = _Transformer(config)
        self.post_init()

    @classmethod
    def config_of(cls, state) -> VlBertConfig:
        """Return the configuration that tensors tell; see :meth:`Network.config_of`."""
        config = super().config_of(state)
        config.text_only = "aux_text_visual_embedding.weight" in state
        regions = state.get("image_feature_extractor.obj_downsample.1.weight")
        if regions is not None:
            config.feature_size = regions.shape[1] - 8 * config.coordinate_waves
        return config

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        boxes: torch.Tensor | None = None,
        sizes: torch.Tensor | None = None,
        features: torch.Tensor | None = None,
        hidden: torch.Tensor | None = None,
        real: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
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
        tuple of torch.Tensor
            The last states of tokens (n, t, d) and of regions (n, k, d), those of padding without
            a meaning.
        """
        n, width = len(input_ids), self.config.hidden_size
        if boxes is None:
            real = torch.zeros(n, 0, dtype=torch.bool, device=input_ids.device)
            regions = words = torch.zeros(n, 0, width, dtype=self.dtype, device=input_ids.device)
        else:
            real = torch.ones_like(boxes[..., 0], dtype=torch.bool) if real is None else real.bool()
            hidden = torch.zeros_like(real) if hidden is None else hidden.bool()
            hidden = hidden[..., None]
            masked = self.object_mask_visual_embedding.weight
            features = torch.where(hidden, masked, features)
            regions = self.image_feature_extractor(boxes, sizes, features, real)
            masked = self.object_mask_word_embedding.weight
            words = torch.where(hidden, masked, self.object_linguistic_embeddings.weight)
        image = self._image(regions, real)
        return self.vlbert(input_ids, attention_mask.bool(), regions, real, image, words)

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of text states (..., d)."""
        return self.vlbert.mlm_head(states)

    def _image(self, regions: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Return what stands for the image beside each token, (n, 1, d)."""
        if not self.config.text_only:
            return regions[:, :1]
        alone = self.aux_text_visual_embedding.weight.expand(len(real), 1, -1)
        if not regions.shape[1]:
            return alone
        return torch.where(real.any(dim=1)[:, None, None], regions[:, :1], alone)


class RegionEncoder(nn.Module):
    """Where a region is and what it looks like, in one vector."""

    def __init__(self, config: VlBertConfig):
        super().__init__()
        self.n_waves = config.coordinate_waves
        linear = nn.Linear(8 * self.n_waves + config.feature_size, config.hidden_size)
        self.obj_downsample = nn.Sequential(
            nn.Dropout(config.hidden_dropout_prob), linear, nn.ReLU()
        )

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


class _Transformer(nn.Module):
    """BERT over tokens, regions and one closing element."""

    def __init__(self, config: VlBertConfig):
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.end_embedding = nn.Embedding(1, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.embedding_LayerNorm = nn.LayerNorm(width, eps=eps)
        self.visual_ln_text = nn.LayerNorm(width, eps=eps)
        self.visual_ln_object = nn.LayerNorm(width, eps=eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.encoder = bert.BertEncoder(config)
        self.mlm_head = bert.BertOnlyMLMHead(config)
        self.mvrc_head = RegionHead(config, config.visual_region_classes, norm=False)

    def forward(self, input_ids, is_token, regions, real, image, object_words):
        """Return the states of tokens and of regions.

        ``image`` (n, 1, d) stands for the image beside each token, ``object_words`` (n, k, d) for
        the word beside each region. All regions share the position after the text; the closing
        element has the next one, also where there is no region.
        """
        (n, t), k = input_ids.shape, regions.shape[1]
        tokens = self.word_embeddings(input_ids) + self.visual_ln_text(image)
        objects = object_words + self.visual_ln_object(regions)
        states = torch.cat([tokens, objects, self.end_embedding.weight.expand(n, 1, -1)], dim=1)
        index, end = torch.arange(t + k + 1, device=input_ids.device), is_token.sum(1, keepdim=True)
        positions = torch.cat([index[:t].expand(n, -1), end.expand(-1, k), end + 1], dim=1)
        types = IMAGE_TYPE * (index >= t).long()
        states = states + self.position_embeddings(positions) + self.token_type_embeddings(types)
        there = torch.cat([is_token, real, torch.ones_like(is_token[:, :1])], dim=1)
        states = self.dropout(self.embedding_LayerNorm(states))
        mask = additive_mask(there, states.dtype)
        states = self.encoder(states, mask).last_hidden_state
        return states[:, :t], states[:, t:-1]
