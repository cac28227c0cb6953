"""Checkpoint files in the layouts of the original authors, made into networks of transformers.

Known are VisualBERT, LXMERT and ViLT as their authors published them, and of VOLTA's models
(Bugliarello et al. 2021) the controlled VisualBERT and LXMERT with its original heads. Sizes are
read off the tensors; each head of attention is 64 numbers wide in all of them.

What a plain renaming would get wrong:

- ViLT: query, key and value are one matrix. Its decoder of words is its own, which
  ``ViltForMaskedLM`` of transformers 5 overwrites the word embeddings with;
  :class:`biaslib.models.vilt.ViltNetwork` keeps the two apart.
- VOLTA: what text and image share is stored twice. Label 0 of the matching head is a match, so its
  rows are swapped. Poolers end in a ReLU where the original ones end in a hyperbolic tangent.
  VisualBERT's regions have token type 1, so the rows of that table are swapped. Its matching head
  multiplies two poolers, which transformers has no place for: it is left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers

from biaslib.models._checkpoints import CheckpointError, read_weights, require_keys

__all__ = ["Converted", "convert", "network_of", "read"]

HEAD = 64
"""Numbers a head of attention."""

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Converted:
    """Weights of an original file by the names of transformers.

    Parameters
    ----------
    layout
        What kind of file it was.
    model_type
        Which network of transformers they are for.
    weights
        The tensors.
    """

    layout: str
    model_type: str
    weights: Weights


def read(
    path: str | Path,
    network: type[transformers.PreTrainedModel],
    name: str,
    optional: Iterable[str] = (),
) -> tuple[transformers.PreTrainedModel, set[str]]:
    """Read an original file into a network; no code in the file is run.

    Parameters
    ----------
    path
        A file that ``torch.save`` wrote, or a ``.safetensors`` file with the same names.
    network
        ``VisualBertForPreTraining``, ``LxmertForPreTraining`` or ``ViltNetwork``.
    name
        The model that was asked for, for errors.
    optional
        Patterns, as of a shell, of weights that may be missing.

    Returns
    -------
    tuple
        The network and the names of the missing weights.

    Raises
    ------
    CheckpointError
        If the file is damaged, in no known layout, of another architecture, or weights are missing
        or left over; the message names them.
    """
    converted = convert(read_weights(path), str(path))
    wanted = network.config_class.model_type
    if converted.model_type != wanted:
        raise CheckpointError(
            f"{path} is a file of {converted.layout}, and {name!r} is loaded from {wanted!r}. Load "
            "it under the name of its own family"
        )
    return network_of(converted, network, name, optional=optional)


def convert(weights: Weights, source: str = "the file") -> Converted:
    """Rename the tensors of an original file as transformers has them.

    Parameters
    ----------
    weights
        Tensors by their original names, without a prefix ``module.``.
    source
        What an error calls them.

    Raises
    ------
    CheckpointError
        If the layout is not known, or two copies of a shared tensor differ.
    """
    for layout, (mark, model_type, renamed) in LAYOUTS.items():
        if mark in weights:
            return Converted(layout, model_type, renamed(weights))
    first = ", ".join(sorted(weights)[:3])
    raise CheckpointError(
        f"{source} is in none of the known layouts: {', '.join(LAYOUTS)}. Its first tensors are "
        f"{first}. For a checkpoint of transformers pass its folder"
    )


def network_of(
    converted: Converted,
    network: type[transformers.PreTrainedModel],
    name: str,
    n_heads: int | None = None,
    optional: Iterable[str] = (),
) -> tuple[transformers.PreTrainedModel, set[str]]:
    """Return a network that holds converted weights, and the names of those that were missing.

    Parameters
    ----------
    converted
        As :func:`convert` returns them.
    network, name, optional
        As of :func:`read`.
    n_heads
        Heads of attention a layer; ``None``: of 64 numbers each.

    Raises
    ------
    CheckpointError
        If weights are missing or left over, or two that the network has as one differ.
    """
    weights = converted.weights
    config = CONFIGS[converted.model_type](weights)
    config.num_attention_heads = n_heads or max(1, config.hidden_size // HEAD)
    model = network(config)
    adapt = ADAPTATIONS.get(converted.layout)
    if adapt:
        adapt(model)
    needed = model.state_dict()
    require_keys(weights, needed, name, allowed_missing=optional)
    _require_tied(model, weights, name)
    model.load_state_dict(weights, strict=False)
    return model.eval(), set(needed) - set(weights)


def _require_tied(model: transformers.PreTrainedModel, weights: Weights, name: str) -> None:
    """Refuse two tensors that differ and that the network has as one: the last would win."""
    tied = getattr(model, "_tied_weights_keys", None) or {}
    for one, other in tied.items() if isinstance(tied, dict) else ():
        if one in weights and other in weights and not torch.equal(weights[one], weights[other]):
            raise CheckpointError(
                f"the checkpoint of {name!r} has a {one} that differs from {other}, and the "
                "network has one tensor for both; nothing was loaded"
            )


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


def _visualbert(weights: Weights) -> Weights:
    prefixes = [(r"^bert\.bert\.", "visual_bert."), (r"^bert\.cls\.", "cls.")]
    return _with_decoder_bias(_renamed(weights, [*prefixes, *OF_VISUALBERT]))


def _with_decoder_bias(weights: Weights) -> Weights:
    return weights | {"cls.predictions.decoder.bias": weights["cls.predictions.bias"]}


def _lxmert(weights: Weights) -> Weights:
    return _renamed(weights, [(r"^bert\.", "lxmert.")])


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


def _volta_visualbert(weights: Weights) -> Weights:
    left_out = (r"bert\.[tv]_pooler\.", r"cls\.imagePredictions\.", r"cls\.bi_seq_relationship\.")
    kept = {key: each for key, each in weights.items() if not re.match("|".join(left_out), key)}
    found = _renamed(_without_twins(kept), [(r"^bert\.", "visual_bert."), *OF_VISUALBERT])
    found = {_two_sublayers_a_layer(key): each for key, each in found.items()}
    types = "visual_bert.embeddings.visual_token_type_embeddings.weight"
    return _with_decoder_bias(found) | {types: found[types].flip(0)}


def _two_sublayers_a_layer(key: str) -> str:
    """Rename attention 2i and feed-forward 2i + 1 as layer i."""
    found = re.sub(r"\.layer\.(\d+)\.", lambda each: f".layer.{int(each[1]) // 2}.", key)
    return found.replace(".attention_self.", ".attention.self.").replace(
        ".attention_output.", ".attention.output."
    )


def _without_twins(weights: Weights) -> Weights:
    """Drop the copies under which VOLTA stores the image's side of what text and image share."""
    return {key: each for key, each in weights.items() if not _is_twin(key, weights)}


def _is_twin(key: str, weights: Weights) -> bool:
    text = key.replace(".v_", ".") if key.startswith("bert.encoder.") else key
    if text == key or text not in weights:
        return False
    if not torch.equal(weights[text], weights[key]):
        raise CheckpointError(
            f"{key} differs from {text}: text and image do not share this layer, so the file is "
            "not of the model that it looks like"
        )
    return True


VOLTA_LXMERT = (
    (r"^bert\.v_embeddings\.image_embeddings\.", "lxmert.encoder.visn_fc.visn_fc."),
    (r"^bert\.v_embeddings\.image_location_embeddings\.", "lxmert.encoder.visn_fc.box_fc."),
    (r"^bert\.v_embeddings\.ImgLayerNorm\.", "lxmert.encoder.visn_fc.visn_layer_norm."),
    (r"^bert\.v_embeddings\.LocLayerNorm\.", "lxmert.encoder.visn_fc.box_layer_norm."),
    (r"^bert\.t_pooler\.", "lxmert.pooler."),
    (r"^bert\.", "lxmert."),
    (r"^cls\.bi_seq_relationship\.", "cls.seq_relationship."),
    (r"^cls\.imagePredictions\.", "obj_predict_head."),
    (r"\.decoder_dict\.3\.", ".decoder_dict.obj."),
    (r"\.decoder_dict\.4\.", ".decoder_dict.attr."),
    (r"\.decoder_dict\.5\.", ".decoder_dict.feat."),
    (r"^cls\.qaPredictions\.", "answer_head."),
)

SUBLAYER = re.compile(r"bert\.encoder\.layer\.(\d+)\.(\w+)\.(v_)?(\w+\.(?:weight|bias))")


def _volta_lxmert(weights: Weights) -> Weights:
    places = _volta_lxmert_places(weights)
    found = {}
    for key, tensor in weights.items():
        part = SUBLAYER.fullmatch(key)
        if part is None:
            found[key] = tensor
            continue
        number, module, image, rest = part.groups()
        place = places[int(number)][bool(image)]
        if place is None:
            _is_twin(key, weights)
            continue
        found[f"lxmert.encoder.{place}{PARTS[_kind(place)][module]}.{rest}"] = tensor
    found = _renamed(found, VOLTA_LXMERT)
    rows = ("cls.seq_relationship.weight", "cls.seq_relationship.bias")
    return found | {key: found[key].flip(0) for key in rows if key in found}


PARTS = {
    "layer": {
        "attention_self": ".attention.self",
        "attention_output": ".attention.output",
        "intermediate": ".intermediate",
        "output": ".output",
    },
    "cross": {"attention_self": ".att", "attention_output": ".output"},
    "self": {"attention_self": ".self", "attention_output": ".output"},
    "feed": {"intermediate": "_inter", "output": "_output"},
}
"""How transformers calls the modules of a sub-layer, by what kind of place it is in."""


def _kind(place: str) -> str:
    if not place.startswith("x_layers."):
        return "layer"
    if place.endswith("visual_attention"):
        return "cross"
    return "self" if place.endswith("self_att") else "feed"


def _volta_lxmert_places(weights: Weights) -> dict[int, tuple[str | None, str | None]]:
    """Return where transformers has each sub-layer's text side and image side.

    VOLTA numbers sub-layers throughout: pairs of attention and feed-forward are layers of the text,
    of the image, or of both side by side; triples are cross-attention, which both share, attention
    of each to itself, and feed-forward.
    """
    places: dict[int, tuple[str | None, str | None]] = {}
    n_text = n_image = n_cross = 0
    for block in _blocks(weights):
        if len(block) == 3:
            layer = f"x_layers.{n_cross}"
            sides = (f"{layer}.lang", f"{layer}.visn")
            places[block[0]] = (f"{layer}.visual_attention", None)
            places[block[1]] = (f"{sides[0]}_self_att", f"{sides[1]}_self_att")
            places[block[2]] = sides
            n_cross += 1
            continue
        places |= dict.fromkeys(block, (f"layer.{n_text}", f"r_layers.{n_image}"))
        names = f"bert.encoder.layer.{block[0]}.attention_self."
        n_text += f"{names}query.weight" in weights
        n_image += f"{names}v_query.weight" in weights
    return places


def _blocks(weights: Weights) -> Iterator[list[int]]:
    """Yield the numbers of sub-layers, up to each feed-forward one."""
    found = [SUBLAYER.fullmatch(key) for key in weights]
    kinds = {int(each[1]): each[2] for each in found if each}
    block = []
    for number in sorted(kinds):
        block.append(number)
        if not kinds[number].startswith("attention"):
            yield block
            block = []


LAYOUTS: dict[str, tuple[str, str, Callable[[Weights], Weights]]] = {
    "VisualBERT": (
        "bert.bert.embeddings.token_type_embeddings_visual.weight",
        "visual_bert",
        _visualbert,
    ),
    "LXMERT": ("bert.encoder.visn_fc.visn_fc.weight", "lxmert", _lxmert),
    "ViLT": ("transformer.blocks.0.attn.qkv.weight", "vilt", _vilt),
    "VOLTA's VisualBERT": ("bert.embeddings.projection.weight", "visual_bert", _volta_visualbert),
    "VOLTA's LXMERT": ("bert.v_embeddings.ImgLayerNorm.weight", "lxmert", _volta_lxmert),
}
"""By layout: a tensor that only it has, the network that it is for, how its names are changed."""


def _without_matching(model: transformers.VisualBertForPreTraining) -> None:
    model.visual_bert.pooler = model.cls.seq_relationship = None


def _with_relu(model: transformers.LxmertForPreTraining) -> None:
    model.lxmert.pooler.activation = torch.nn.ReLU()


ADAPTATIONS = {"VOLTA's VisualBERT": _without_matching, "VOLTA's LXMERT": _with_relu}
"""By layout: how the network itself differs from that of transformers."""


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
