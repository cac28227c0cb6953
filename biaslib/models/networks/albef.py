"""ALBEF (Li et al. 2021): a vision transformer, a text encoder, and a fusion of the two.

Matches salesforce/ALBEF, commit b9727e4 (BSD-3-Clause), models/model_pretrain.py,
models/model_retrieval.py, models/xbert.py and models/vit.py, in evaluation. The momentum copies
and the queues in the published files belong to training and are left out. The parts are those of
BLIP, its successor, in transformers.

Throughout: n rows of a batch, t tokens, p patches, d numbers a position. There is no text-only
input: the upper half of the text encoder cannot run without an image. The authors' tokeniser ends
no text with ``[SEP]``: ``[CLS]`` words.
"""

import copy
from typing import ClassVar

import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers.models.bert import modeling_bert as bert
from transformers.models.blip import modeling_blip_text as blip

from biaslib.models.networks.network import HEAD, Network, additive_mask

__all__ = ["PIXEL_MEANS", "PIXEL_STDS", "AlbefConfig", "AlbefNetwork"]

PIXEL_MEANS = (0.48145466, 0.4578275, 0.40821073)
"""Taken off red, green and blue (0..1)."""

PIXEL_STDS = (0.26862954, 0.26130258, 0.27577711)
"""By which red, green and blue are then divided."""

VIT_EPS = 1e-6
"""What the vision transformer's layer norms add to the variance."""

MATCH = 1
"""Index of a match among the two matching logits."""

OF_TRAINING = [r"^\w+_m\.", r"_queue$", r"^queue_ptr$", r"\.position_ids$"]
"""Momentum copies and queues, and numbers of positions, which are counted."""

EMBEDDINGS, LAYERS = "visual_encoder.embeddings", "visual_encoder.encoder.layers"


class AlbefConfig(transformers.BertConfig):
    """Sizes and parts of an ALBEF, beside those of BERT; by default the published pre-trained one.

    Attributes
    ----------
    image_size
        Height and width of its images in pixels.
    patch_size
        Height and width of a patch in pixels.
    vision_width, vision_layers, vision_heads, vision_intermediate_size
        Of the vision transformer.
    fusion_layer
        The first layer of the text encoder that looks at the image.
    embed_dim
        Numbers of the vectors whose products are similarities.
    masked_words
        Whether there is a masked-word head; the retrieval models have none.
    """

    model_type = "albef"

    image_size: int = 256
    patch_size: int = 16
    vision_width: int = 768
    vision_layers: int = 12
    vision_heads: int = 12
    vision_intermediate_size: int = 3072
    fusion_layer: int = 6
    embed_dim: int = 256
    masked_words: bool = True

    def visual(self) -> transformers.BlipVisionConfig:
        """Return the sizes of the vision transformer."""
        return transformers.BlipVisionConfig(
            image_size=self.image_size,
            patch_size=self.patch_size,
            hidden_size=self.vision_width,
            num_hidden_layers=self.vision_layers,
            num_attention_heads=self.vision_heads,
            intermediate_size=self.vision_intermediate_size,
            layer_norm_eps=VIT_EPS,
            initializer_range=self.initializer_range,
        )


class AlbefNetwork(Network):
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

    config_class = AlbefConfig
    renames: ClassVar = {
        r"^text_encoder\.(?!bert\.|cls\.)": "text_encoder.bert.",
        r"^visual_encoder\.cls_token$": f"{EMBEDDINGS}.class_embedding",
        r"^visual_encoder\.pos_embed$": f"{EMBEDDINGS}.position_embedding",
        r"^visual_encoder\.patch_embed\.proj\.": f"{EMBEDDINGS}.patch_embedding.",
        r"^visual_encoder\.norm\.": "visual_encoder.post_layernorm.",
        r"^visual_encoder\.blocks\.": f"{LAYERS}.",
        r"^(visual_encoder\..*)\.norm([12])\.": r"\1.layer_norm\2.",
        r"^(visual_encoder\..*)\.attn\.qkv\.": r"\1.self_attn.qkv.",
        r"^(visual_encoder\..*)\.attn\.proj\.": r"\1.self_attn.projection.",
    }
    sizes: ClassVar = {
        "patch_size": (rf"^{EMBEDDINGS}\.patch_embedding\.weight$", 2),
        "vision_width": (rf"^{EMBEDDINGS}\.patch_embedding\.weight$", 0),
        "vision_layers": (rf"^{LAYERS}\.\d+\.mlp\.fc1\.weight$", None),
        "vision_intermediate_size": (rf"^{LAYERS}\.0\.mlp\.fc1\.weight$", 0),
        "embed_dim": (r"^vision_proj\.weight$", 0),
    }
    heads: ClassVar = {
        "num_attention_heads": ("hidden_size", HEAD),
        "vision_heads": ("vision_width", HEAD),
    }
    _tied_weights_keys: ClassVar = {
        "text_encoder.cls.predictions.decoder.weight": (
            "text_encoder.bert.embeddings.word_embeddings.weight"
        ),
        "text_encoder.cls.predictions.decoder.bias": "text_encoder.cls.predictions.bias",
    }
    _keys_to_ignore_on_load_unexpected: ClassVar = OF_TRAINING

    def __init__(self, config: AlbefConfig):
        super().__init__(config)
        self.visual_encoder = transformers.BlipVisionModel(config.visual())
        self.text_encoder = nn.Module()
        self.text_encoder.bert = _Bert(config)
        if config.masked_words:
            self.text_encoder.cls = bert.BertOnlyMLMHead(config)
        else:
            self._tied_weights_keys = {}
        self.vision_proj = nn.Linear(config.vision_width, config.embed_dim)
        self.text_proj = nn.Linear(config.hidden_size, config.embed_dim)
        self.itm_head = nn.Linear(config.hidden_size, 2)
        self.temp = nn.Parameter(torch.tensor(0.07))
        self.post_init()

    @classmethod
    def config_of(cls, state) -> AlbefConfig:
        """Return the configuration that tensors tell; see :meth:`Network.config_of`."""
        config = super().config_of(state)
        places = state.get(f"{EMBEDDINGS}.position_embedding")
        if places is not None:
            config.image_size = config.patch_size * round((places.shape[1] - 1) ** 0.5)
        reading = sum(name.endswith(".crossattention.self.query.weight") for name in state)
        config.fusion_layer = config.num_hidden_layers - reading
        config.masked_words = "text_encoder.cls.predictions.bias" in state
        return config

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, images: torch.Tensor
    ) -> torch.Tensor:
        """Return the fused states (n, t, d) of n texts with n images."""
        text = self.encode_text(input_ids, attention_mask)
        return self.fuse(text, attention_mask, self.encode_image(images))

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        """Return the states (n, 1 + p, d) of an image's first token and its patches.

        Parameters
        ----------
        images
            (n, 3, h, h): RGB, 0..1 less the means, over the standard deviations.
        """
        return self.visual_encoder(images).last_hidden_state

    def encode_text(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the text's states (n, t, d) below the fusion, for token numbers (n, t)."""
        states = self.text_encoder.bert.embeddings(input_ids)
        return self._through(slice(self.config.fusion_layer), states, attention_mask)

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
        return self._through(slice(self.config.fusion_layer, None), text, attention_mask, image)

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
        """Return masked-word logits (..., vocabulary) of fused states (..., d)."""
        return self.text_encoder.cls(fused)

    def _through(self, layers: slice, states, attention_mask, image=None) -> torch.Tensor:
        mask = additive_mask(attention_mask, states.dtype)
        for layer in self.text_encoder.bert.encoder.layer[layers]:
            states = layer(states, image, attention_mask=mask)
        return states


class _Bert(nn.Module):
    """BERT whose upper layers look at the image as well."""

    def __init__(self, config: AlbefConfig):
        super().__init__()
        self.embeddings = bert.BertEmbeddings(config)
        fusing = copy.deepcopy(config)
        fusing.is_decoder, fusing.encoder_hidden_size = True, config.vision_width
        below, n = config.fusion_layer, config.num_hidden_layers
        layers = [blip.BlipTextLayer(config if i < below else fusing, i) for i in range(n)]
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(layers)
