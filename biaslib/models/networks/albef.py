"""ALBEF (Li et al. 2021): a vision transformer, a text encoder, and a fusion of the two.

Matches salesforce/ALBEF, commit b9727e4 (BSD-3-Clause), models/model_pretrain.py,
models/model_retrieval.py, models/xbert.py and models/vit.py, in evaluation. The momentum copies
and the queues in the published files belong to training and are left out.

Throughout: n rows of a batch, t tokens, p patches, d numbers a position. There is no text-only
input: the upper half of the text encoder cannot run without an image. The authors' tokeniser ends
no text with ``[SEP]``: ``[CLS]`` words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from biaslib.models.capabilities import CapabilityError
from biaslib.models.networks.bert_parts import (
    BertEmbeddings,
    BertEncoder,
    TextConfig,
    WordPredictions,
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
    "PIXEL_MEANS",
    "PIXEL_STDS",
    "VARIANTS",
    "AlbefConfig",
    "AlbefNetwork",
    "load_official",
]

PIXEL_MEANS = (0.48145466, 0.4578275, 0.40821073)
"""Taken off red, green and blue (0..1)."""

PIXEL_STDS = (0.26862954, 0.26130258, 0.27577711)
"""By which red, green and blue are then divided."""

VIT_EPS = 1e-6
"""What the vision transformer's layer norms add to the variance."""

MATCH = 1
"""Index of a match among the two matching logits."""


@dataclass(frozen=True)
class AlbefConfig(TextConfig):
    """Sizes and parts of an ALBEF; the defaults are those of the published pre-trained one.

    Parameters
    ----------
    image_size
        Height and width of its images in pixels.
    patch_size
        Height and width of a patch in pixels.
    vision_width, vision_layers, vision_heads
        Of the vision transformer.
    vision_intermediate_size
        Its inner width; ``None`` for four times ``vision_width``.
    vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size
        Of the text encoder, as in BERT.
    max_position_embeddings, type_vocab_size
        Rows of the tables of positions and token types.
    fusion_layer
        The first layer of the text encoder that looks at the image.
    embed_dim
        Numbers of the vectors whose products are similarities.
    masked_words
        Whether there is a masked-word head; the retrieval models have none.
    dropout
        Share that training drops, in the text encoder.
    """

    image_size: int = 256
    patch_size: int = 16
    vision_width: int = 768
    vision_layers: int = 12
    vision_heads: int = 12
    vision_intermediate_size: int | None = None
    fusion_layer: int = 6
    embed_dim: int = 256
    masked_words: bool = True

    @property
    def grid(self) -> int:
        """Patches a side."""
        return self.image_size // self.patch_size


VARIANTS = {
    "pretrained": AlbefConfig(),
    "retrieval": AlbefConfig(image_size=384, masked_words=False),
}
"""The published networks: ALBEF.pth and ALBEF_4M.pth; flickr30k.pth and mscoco.pth.

:meta hide-value:
"""

BODY = "text_encoder.bert.encoder.layer"

SIZES = Sizes(
    axes=bert_axes("text_encoder.bert.embeddings", BODY)
    | {
        "patch_size": ("visual_encoder.patch_embed.proj.weight", 2),
        "vision_width": ("visual_encoder.pos_embed", 2),
        "embed_dim": ("vision_proj.weight", 0),
    },
    counts={
        "vision_layers": r"visual_encoder\.blocks\.\d+\.",
        "num_hidden_layers": r"text_encoder\.bert\.encoder\.layer\.\d+\.",
    },
    heads={
        "vision_heads": ("vision_width", HEAD),
        "num_attention_heads": ("hidden_size", HEAD),
    },
)
"""Where the tensors tell the sizes."""


class AlbefNetwork(nn.Module):
    """ALBEF with the heads for contrast, matching and, if it has one, masked words.

    Parameters
    ----------
    config
        Its sizes and parts.

    Examples
    --------
    >>> tiny = AlbefConfig(image_size=32, vision_width=8, vision_layers=1, vision_heads=2,
    ...                    vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
    ...                    intermediate_size=8, fusion_layer=1, embed_dim=4)
    >>> network = AlbefNetwork(tiny).eval()
    >>> ids, patches = torch.tensor([[2, 5, 3]]), network.encode_image(torch.zeros(1, 3, 32, 32))
    >>> fused = network.fuse(network.encode_text(ids, ids > 0), ids > 0, patches)
    >>> network.match_logits(fused).shape
    torch.Size([1, 2])
    """

    def __init__(self, config: AlbefConfig = VARIANTS["pretrained"]):
        super().__init__()
        self.config = config
        self.visual_encoder = _VisionTransformer(config)
        self.text_encoder = _TextEncoder(config)
        self.vision_proj = nn.Linear(config.vision_width, config.embed_dim)
        self.text_proj = nn.Linear(config.hidden_size, config.embed_dim)
        self.itm_head = nn.Linear(config.hidden_size, 2)
        self.temp = nn.Parameter(torch.tensor(0.07))
        self.apply(initialise)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, images: torch.Tensor
    ) -> torch.Tensor:
        """Return the fused states (n, t, d) of n texts with n images."""
        text = self.encode_text(input_ids, attention_mask)
        return self.fuse(text, attention_mask, self.encode_image(images))

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        """Return the states of an image's first token and its patches.

        Parameters
        ----------
        images
            (n, 3, h, h): RGB, 0..1 less the means, over the standard deviations.

        Returns
        -------
        torch.Tensor
            (n, 1 + p, d).

        Raises
        ------
        ValueError
            If the images are not of the size that the network has positions for.
        """
        side = self.config.image_size
        if images.shape[-2:] != (side, side):
            raise ValueError(
                f"this ALBEF reads images of {side} x {side} pixels, not "
                f"{images.shape[-1]} x {images.shape[-2]}; resize them"
            )
        return self.visual_encoder(images)

    def encode_text(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the text's states (n, t, d) below the fusion, for token numbers (n, t)."""
        bert = self.text_encoder.bert
        states, mask = bert.embeddings(input_ids), additive_mask(attention_mask)
        return bert.encoder(states, mask, stop=self.config.fusion_layer)

    def fuse(
        self, text: torch.Tensor, attention_mask: torch.Tensor, image: torch.Tensor
    ) -> torch.Tensor:
        """Return the fused states of texts with images.

        Parameters
        ----------
        text
            (n, t, d), of :meth:`encode_text`.
        attention_mask
            (n, t), which are tokens.
        image
            (n, 1 + p, d), of :meth:`encode_image`.

        Returns
        -------
        torch.Tensor
            (n, t, d).
        """
        mask, first = additive_mask(attention_mask), self.config.fusion_layer
        return self.text_encoder.bert.encoder(text, mask, image, first=first)

    def image_features(self, image: torch.Tensor) -> torch.Tensor:
        """Return unit vectors (n, e) of images (n, 1 + p, d), comparable with those of texts."""
        return functional.normalize(self.vision_proj(image[:, 0]), dim=-1)

    def text_features(self, text: torch.Tensor) -> torch.Tensor:
        """Return unit vectors (n, e) of texts (n, t, d) below the fusion."""
        return functional.normalize(self.text_proj(text[:, 0]), dim=-1)

    def match_logits(self, fused: torch.Tensor) -> torch.Tensor:
        """Return (n, 2) of fused states (n, t, d): index 1 for a text that fits the image."""
        return self.itm_head(fused[:, 0])

    def word_logits(self, fused: torch.Tensor) -> torch.Tensor:
        """Return masked-word logits (..., vocabulary) of fused states (..., d).

        Raises
        ------
        CapabilityError
            If the network has no masked-word head.
        """
        if not self.config.masked_words:
            raise CapabilityError(
                "this ALBEF was tuned for retrieval and has no masked-word head; load 'albef'"
            )
        words = self.text_encoder.bert.embeddings.word_embeddings
        return self.text_encoder.cls.predictions(fused, words)


class _Patches(nn.Module):
    """Cuts an image into patches and describes each by a linear map."""

    def __init__(self, config: AlbefConfig):
        super().__init__()
        side = config.patch_size
        self.proj = nn.Conv2d(3, config.vision_width, side, stride=side)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return (n, p, d), row by row from the top left."""
        return self.proj(images).flatten(2).transpose(1, 2)


class _JointAttention(nn.Module):
    """Self-attention with one matrix for queries, keys and values, in this order."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(states).chunk(3, dim=-1)
        return self.proj(attend(query, key, value, self.heads, mask=None))


class _Perceptron(nn.Module):
    """Linear, GELU, linear."""

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.fc2(functional.gelu(self.fc1(states)))


class _Block(nn.Module):
    """A layer that normalises before attention and before the perceptron."""

    def __init__(self, width: int, heads: int, inner: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=VIT_EPS)
        self.attn = _JointAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=VIT_EPS)
        self.mlp = _Perceptron(width, inner)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        states = states + self.attn(self.norm1(states))
        return states + self.mlp(self.norm2(states))


class _VisionTransformer(nn.Module):
    """ViT (Dosovitskiy et al. 2021), all of whose last states are used."""

    def __init__(self, config: AlbefConfig):
        super().__init__()
        width = config.vision_width
        inner = config.vision_intermediate_size or 4 * width
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 1 + config.grid**2, width))
        self.patch_embed = _Patches(config)
        self.blocks = nn.ModuleList(
            [_Block(width, config.vision_heads, inner) for _ in range(config.vision_layers)]
        )
        self.norm = nn.LayerNorm(width, eps=VIT_EPS)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return (n, 1 + p, d)."""
        patches = self.patch_embed(images)
        states = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1)
        states = states + self.pos_embed
        for block in self.blocks:
            states = block(states)
        return self.norm(states)


class _Bert(nn.Module):
    """BERT whose upper layers look at the image as well."""

    def __init__(self, config: AlbefConfig):
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        n_layers = config.num_hidden_layers
        self.encoder = BertEncoder(
            config, n_layers, n_layers - config.fusion_layer, config.vision_width
        )


class _TextEncoder(nn.Module):
    """The text encoder with its masked-word head, if it has one."""

    def __init__(self, config: AlbefConfig):
        super().__init__()
        self.bert = _Bert(config)
        if config.masked_words:
            self.cls = WordPredictions(config.hidden_size, config.vocab_size)


LAYOUT = Layout(
    renames=[(r"^text_encoder\.(?!bert\.|cls\.)", "text_encoder.bert.")],
    copies=[
        (
            r"^text_encoder\.cls\.predictions\.decoder\.weight$",
            "text_encoder.bert.embeddings.word_embeddings.weight",
        ),
        (
            r"^text_encoder\.cls\.predictions\.decoder\.bias$",
            "text_encoder.cls.predictions.bias",
        ),
    ],
    unused=[r"^\w+_m\.", r"_queue$", r"^queue_ptr$", r"\.position_ids$"],
)
"""Names of retrieval files, tensors held twice, and what belongs to training alone."""


def load_official(weights: str | Path | Mapping[str, torch.Tensor]) -> AlbefNetwork:
    """Load a published file of ALBEF.

    Parameters
    ----------
    weights
        The file (``ALBEF.pth``, ``flickr30k.pth``, ...), or what is in it.

    Returns
    -------
    AlbefNetwork
        In evaluation mode, in float32.

    Raises
    ------
    CheckpointError
        If the file holds none of :data:`VARIANTS`, or tensors are missing, of another shape, or
        unknown; the message names them.
    """
    state = read_official(weights)
    config = config_for(_variant_of(state), VARIANTS, "ALBEF")
    return built(AlbefNetwork, _sized(config, LAYOUT.renamed(state)), state, LAYOUT)


def _sized(config: AlbefConfig, state: Mapping[str, torch.Tensor]) -> AlbefConfig:
    """Return the configuration of weights of this kind, whatever their sizes."""
    config = SIZES.of(state, config)
    grid = round((state["visual_encoder.pos_embed"].shape[1] - 1) ** 0.5)
    config = replace(config, image_size=config.patch_size * grid)
    fused = {
        name for name in state if name.startswith(BODY) and ".crossattention.self.query.w" in name
    }
    return replace(config, fusion_layer=config.num_hidden_layers - len(fused)) if fused else config


def _variant_of(state: Mapping[str, torch.Tensor]) -> str:
    """Return which variant weights are, or what else they seem to be."""
    if "visual_encoder.pos_embed" not in state:
        return "another family of models"
    if any(name.startswith("text_decoder.") for name in state):
        return "an ALBEF tuned to answer questions"
    if "itm_head.weight" not in state:
        return "an ALBEF tuned for a task, without a matching head"
    has_words = "text_encoder.cls.predictions.bias" in state
    return "pretrained" if has_words else "retrieval"
