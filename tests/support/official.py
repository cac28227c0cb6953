"""Networks written to files as their authors' own code writes them."""

import torch

from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vl_bert import VlBertNetwork

WORDS = "text_encoder.cls.predictions"
TWINS = {
    "VlBertNetwork": [
        ("vlbert.mlm_head.predictions.decoder.weight", "vlbert.word_embeddings.weight"),
        (
            "image_feature_extractor.head.0.",
            "image_feature_extractor.roi_head_feature_extractor.",
        ),
    ],
    "AlbefNetwork": [
        (f"{WORDS}.decoder.weight", "text_encoder.bert.embeddings.word_embeddings.weight"),
        (f"{WORDS}.decoder.bias", f"{WORDS}.bias"),
    ],
}
"""Tensors, or beginnings of names, that a file holds a second time: (second, first)."""

TWINS_OF_VILBERT = [("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")]


def save_official(network, path):
    """Write a network's file, without what only training used; return the path."""
    state = {name: each.detach() for name, each in network.state_dict().items()}
    of_albef, of_vl_bert = isinstance(network, AlbefNetwork), isinstance(network, VlBertNetwork)
    if not of_albef or network.config.masked_words:
        for second, first in TWINS.get(type(network).__name__, TWINS_OF_VILBERT):
            state |= {
                second + name.removeprefix(first): each
                for name, each in state.items()
                if name.startswith(first)
            }
    elif of_albef:
        state = {name.replace(".bert.", ".", 1): each for name, each in state.items()}
    if of_vl_bert:
        state = {
            f"module.{name.replace('mvrc_head.decoder', 'mvrc_head.region_cls_pred')}": each
            for name, each in state.items()
        }
    wrapper = "model" if of_albef else "state_dict"
    torch.save({wrapper: state} if of_albef or of_vl_bert else state, path)
    return path
