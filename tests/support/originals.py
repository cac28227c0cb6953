"""Networks of transformers with the weights of other files: ViLT's authors' and VOLTA's.

Sizes are read off the tensors; each head of attention is 64 numbers wide unless told.

What a plain renaming would get wrong: ViLT's query, key and value are one matrix, and its decoder
of words is its own, which ``ViltForMaskedLM`` of transformers 5 overwrites the word embeddings
with; :class:`biaslib.models.vilt.ViltNetwork` keeps the two apart.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
import transformers

from biaslib.checkpoints.weights import read_weights, require_same
from biaslib.models import vilt

HEAD = 64
"""Numbers a head of attention."""

Weights = dict[str, torch.Tensor]


def read_vilt(path: str | Path) -> tuple[vilt.ViltNetwork, set[str]]:
    """Return ViLT with the weights of its authors' file, and the names of those it lacks."""
    weights = _vilt(read_weights(path))
    model = network_of(weights, vilt.ViltNetwork, optional=vilt.OPTIONAL)
    return model, set(model.state_dict()) - set(weights)


def network_of(
    weights: Weights,
    network: type[transformers.PreTrainedModel],
    n_heads: int | None = None,
    optional: Iterable[str] = (),
) -> transformers.PreTrainedModel:
    """Return a network that holds weights by its own names; heads have 64 numbers unless told."""
    config = CONFIGS[network.config_class.model_type](weights)
    config.num_attention_heads = n_heads or max(1, config.hidden_size // HEAD)
    model = network(config)
    require_same(weights, model.state_dict(), "test", optional)
    model.load_state_dict(weights, strict=False)
    return model.eval()


def _renamed(weights: Weights, pairs: Iterable[tuple[str, str]]) -> Weights:
    """Replace patterns in all names, one after the other."""
    found = {}
    for key, tensor in weights.items():
        for pattern, new in pairs:
            key = re.sub(pattern, new, key)
        found[key] = tensor
    return found


OF_VISUALBERT = (
    (r"\.token_type_embeddings_visual\.", ".visual_token_type_embeddings."),
    (r"\.position_embeddings_visual\.", ".visual_position_embeddings."),
    (r"\.embeddings\.projection\.", ".embeddings.visual_projection."),
)


def _with_decoder_bias(weights: Weights) -> Weights:
    return weights | {"cls.predictions.decoder.bias": weights["cls.predictions.bias"]}


def _vilt(weights: Weights) -> Weights:
    parts = [
        (r"^transformer\.blocks\.", "vilt.encoder.layer."),
        (r"\.norm1\.", ".layernorm_before."),
        (r"\.norm2\.", ".layernorm_after."),
        (r"\.attn\.proj\.", ".attention.output.dense."),
        (r"\.mlp\.fc1\.", ".intermediate.dense."),
        (r"\.mlp\.fc2\.", ".output.dense."),
        (r"^transformer\.norm\.", "vilt.layernorm."),
        (r"^transformer\.cls_token$", "vilt.embeddings.cls_token"),
        (r"^transformer\.pos_embed$", "vilt.embeddings.position_embeddings"),
        (r"^transformer\.patch_embed\.proj\.", "vilt.embeddings.patch_embeddings.projection."),
        (r"^text_embeddings\.", "vilt.embeddings.text_embeddings."),
        (r"^token_type_embeddings\.", "vilt.embeddings.token_type_embeddings."),
        (r"^pooler\.", "vilt.pooler."),
        (r"^mlm_score\.bias$", "mlm_score.decoder.bias"),
    ]
    kept = {key: each for key, each in weights.items() if not key.endswith(".position_ids")}
    return dict(_with_split_attention(_renamed(kept, parts)))


def _with_split_attention(weights: Weights) -> Iterator[tuple[str, torch.Tensor]]:
    for key, tensor in weights.items():
        if ".attn.qkv." not in key:
            yield key, tensor
            continue
        for part, each in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
            yield key.replace(".attn.qkv.", f".attention.attention.{part}."), each


def _count(weights: Weights, pattern: str) -> int:
    """Return how many different numbers stand where the pattern has a group."""
    return len({found[1] for key in weights if (found := re.match(pattern, key))})


def _bert_sizes(weights: Weights, embeddings: str, feed: str) -> dict[str, int]:
    words = weights[f"{embeddings}.word_embeddings.weight"]
    return {
        "vocab_size": words.shape[0],
        "hidden_size": words.shape[1],
        "max_position_embeddings": len(weights[f"{embeddings}.position_embeddings.weight"]),
        "type_vocab_size": len(weights[f"{embeddings}.token_type_embeddings.weight"]),
        "intermediate_size": len(weights[feed]),
    }


def _visualbert_config(weights: Weights) -> transformers.VisualBertConfig:
    embeddings, layers = "visual_bert.embeddings", "visual_bert.encoder.layer"
    return transformers.VisualBertConfig(
        **_bert_sizes(weights, embeddings, f"{layers}.0.intermediate.dense.weight"),
        num_hidden_layers=_count(weights, r"visual_bert\.encoder\.layer\.(\d+)\."),
        visual_embedding_dim=weights[f"{embeddings}.visual_projection.weight"].shape[1],
        pad_token_id=0,
    )


def _lxmert_config(weights: Weights) -> transformers.LxmertConfig:
    encoder, answers = "lxmert.encoder", weights.get("answer_head.logit_fc.3.bias", ())
    heads = {
        each: len(weights.get(f"obj_predict_head.decoder_dict.{each}.bias", ()))
        for each in ("obj", "attr", "feat")
    }
    feed = f"{encoder}.layer.0.intermediate.dense.weight"
    return transformers.LxmertConfig(
        **_bert_sizes(weights, "lxmert.embeddings", feed),
        l_layers=_count(weights, r"lxmert\.encoder\.layer\.(\d+)\."),
        x_layers=_count(weights, r"lxmert\.encoder\.x_layers\.(\d+)\."),
        r_layers=_count(weights, r"lxmert\.encoder\.r_layers\.(\d+)\."),
        visual_feat_dim=weights[f"{encoder}.visn_fc.visn_fc.weight"].shape[1],
        visual_pos_dim=weights[f"{encoder}.visn_fc.box_fc.weight"].shape[1],
        num_qa_labels=len(answers),
        num_object_labels=heads["obj"],
        num_attr_labels=heads["attr"],
        task_qa=bool(len(answers)),
        task_obj_predict=any(heads.values()),
        **{f"visual_{each}_loss": bool(count) for each, count in heads.items()},
    )


def _vilt_config(weights: Weights) -> transformers.ViltConfig:
    embeddings, layers = "vilt.embeddings", "vilt.encoder.layer"
    text = f"{embeddings}.text_embeddings"
    patch = weights[f"{embeddings}.patch_embeddings.projection.weight"].shape[-1]
    n_patches = weights[f"{embeddings}.position_embeddings"].shape[1] - 1
    return transformers.ViltConfig(
        **_bert_sizes(weights, text, f"{layers}.0.intermediate.dense.weight"),
        num_hidden_layers=_count(weights, r"vilt\.encoder\.layer\.(\d+)\."),
        modality_type_vocab_size=len(weights[f"{embeddings}.token_type_embeddings.weight"]),
        patch_size=patch,
        image_size=patch * round(n_patches**0.5),
    )


CONFIGS = {"visual_bert": _visualbert_config, "lxmert": _lxmert_config, "vilt": _vilt_config}
