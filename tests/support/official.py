"""Networks written to files as their authors' own code writes them."""

import torch

from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vl_bert import VlBertNetwork

OF_ALBEF = {
    "embeddings.class_embedding": "cls_token",
    "embeddings.position_embedding": "pos_embed",
    "embeddings.patch_embedding.": "patch_embed.proj.",
    "post_layernorm.": "norm.",
    "encoder.layers.": "blocks.",
    ".layer_norm": ".norm",
    ".self_attn.qkv.": ".attn.qkv.",
    ".self_attn.projection.": ".attn.proj.",
}
"""What parts of the vision transformer are called here, and in the authors' files."""


def save_official(network, path):
    """Write a network's file, without what only training used; return the path."""
    state = {name: each.detach() for name, each in network.state_dict().items()}
    if isinstance(network, AlbefNetwork):
        torch.save({"model": _of_albef(state, network.config.masked_words)}, path)
        return path
    state = {k: each for k, each in state.items() if not k.endswith("predictions.decoder.bias")}
    if isinstance(network, VlBertNetwork):
        names = [f"module.{name}".replace("head.decoder", "head.region_cls_pred") for name in state]
        state = {"state_dict": dict(zip(names, state.values(), strict=True))}
    torch.save(state, path)
    return path


def _of_albef(state, masked_words):
    found = {}
    for name, each in state.items():
        if name.startswith("visual_encoder."):
            for ours, theirs in OF_ALBEF.items():
                name = name.replace(ours, theirs)
        elif not masked_words:
            name = name.replace(".bert.", ".", 1)
        found[name] = each
    return found
