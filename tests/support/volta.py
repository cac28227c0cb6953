"""Files of VOLTA (Bugliarello et al. 2021), as the networks here read them.

VOLTA computed some of the fixtures under tests/golden with code of its own, on the controlled
VisualBERT, LXMERT with its original heads, and ViLBERT. What differs in its files:

- What text and image share is stored twice, and attention and feed-forward parts are numbered
  throughout, in the order in which they run.
- Label 0 of LXMERT's matching head is a match, so its rows are swapped. Its pooler ends in a ReLU
  where the original one ends in a hyperbolic tangent.
- VisualBERT's regions have token type 1, so the rows of that table are swapped. Its matching head
  multiplies two poolers, which transformers has no place for: it is left out.
"""

import re

import torch
from support import originals

from biaslib.checkpoints.weights import unwrapped
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.reading import read_official


def load_official(weights, config):
    """Return VOLTA's ViLBERT."""
    tensors = two_streams(unwrapped(weights), config)
    return read_official(VilbertNetwork, tensors, "vilbert", config)


def two_streams(state, config):
    """Return the tensors of VOLTA's ViLBERT by the names of the authors' own code."""
    before, renamed = 2 * config.t_biattention_id[0], {}
    for name, tensor in state.items():
        found = re.match(r"bert\.encoder\.layer\.(\d+)\.(\w+)\.(.+)", name)
        if found:
            name = "bert.encoder." + _two_stream_name(int(found[1]), found[2], found[3], before)
        renamed[re.sub(r"(imagePredictions\.decoder)_dict\.\d+", r"\1", name)] = tensor
    return renamed


PARTS_OF_BERT = {
    "attention_self": "attention.self",
    "attention_output": "attention.output",
    "intermediate": "intermediate",
    "output": "output",
}


def _two_stream_name(number, part, rest, before):
    """Return ViLBERT's name.

    The first ``before`` sub-layers are those of the text alone; then come, by turns, two of a
    co-attention and two of a layer of both streams, whose visual tensors begin with ``v_``.
    """
    is_visual = rest.startswith("v_")
    rest = rest.removeprefix("v_")
    if number < before:
        return f"layer.{number // 2}.{PARTS_OF_BERT[part]}.{rest}"
    meeting, place = divmod(number - before, 4)
    if place >= 2:
        layer = f"v_layer.{meeting}" if is_visual else f"layer.{before // 2 + meeting}"
        return f"{layer}.{PARTS_OF_BERT[part]}.{rest}"
    suffix, letter = ("1", "v") if is_visual else ("2", "t")
    module, last = rest.split(".")
    inner = {
        "attention_self": f"biattention.{module}{suffix}.{last}",
        "attention_output": f"biOutput.{module}{suffix}.{last}",
        "intermediate": f"{letter}_intermediate.{rest}",
        "output": f"{letter}_output.{rest}",
    }
    return f"c_layer.{meeting}.{inner[part]}"


def visualbert(weights, network, n_heads):
    """Return VOLTA's controlled VisualBERT as one of transformers, without a matching head."""
    optional = ["visual_bert.pooler.*", "cls.seq_relationship.*"]
    model = originals.network_of(visualbert_names(weights), network, n_heads, optional)
    model.visual_bert.pooler = model.cls.seq_relationship = None
    return model


def lxmert(weights, network, n_heads):
    """Return VOLTA's LXMERT as one of transformers, whose pooler ends in a ReLU."""
    model = originals.network_of(lxmert_names(weights), network, n_heads)
    model.lxmert.pooler.activation = torch.nn.ReLU()
    return model


def visualbert_names(weights):
    left_out = (r"bert\.[tv]_pooler\.", r"cls\.imagePredictions\.", r"cls\.bi_seq_relationship\.")
    kept = {key: each for key, each in weights.items() if not re.match("|".join(left_out), key)}
    found = originals._renamed(
        _without_twins(kept), [(r"^bert\.", "visual_bert."), *originals.OF_VISUALBERT]
    )
    found = {_two_sublayers_a_layer(key): each for key, each in found.items()}
    types = "visual_bert.embeddings.visual_token_type_embeddings.weight"
    return originals._with_decoder_bias(found) | {types: found[types].flip(0)}


def _two_sublayers_a_layer(key):
    """Rename attention 2i and feed-forward 2i + 1 as layer i."""
    found = re.sub(r"\.layer\.(\d+)\.", lambda each: f".layer.{int(each[1]) // 2}.", key)
    return found.replace(".attention_self.", ".attention.self.").replace(
        ".attention_output.", ".attention.output."
    )


def _without_twins(weights):
    """Drop the copies under which VOLTA stores the image's side of what text and image share."""
    return {key: each for key, each in weights.items() if not _is_twin(key, weights)}


def _is_twin(key, weights):
    text = key.replace(".v_", ".") if key.startswith("bert.encoder.") else key
    return text != key and text in weights and torch.equal(weights[text], weights[key])


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


def lxmert_names(weights):
    places = _lxmert_places(weights)
    found = {}
    for key, tensor in weights.items():
        part = SUBLAYER.fullmatch(key)
        if part is None:
            found[key] = tensor
            continue
        number, module, image, rest = part.groups()
        place = places[int(number)][bool(image)]
        if place is None:
            continue
        found[f"lxmert.encoder.{place}{PARTS[_kind(place)][module]}.{rest}"] = tensor
    found = originals._renamed(found, VOLTA_LXMERT)
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


def _kind(place):
    if not place.startswith("x_layers."):
        return "layer"
    if place.endswith("visual_attention"):
        return "cross"
    return "self" if place.endswith("self_att") else "feed"


def _lxmert_places(weights):
    """Return where transformers has each sub-layer's text side and image side.

    VOLTA numbers sub-layers throughout: pairs of attention and feed-forward are layers of the text,
    of the image, or of both side by side; triples are cross-attention, which both share, attention
    of each to itself, and feed-forward.
    """
    places = {}
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


def _blocks(weights):
    """Yield the numbers of sub-layers, up to each feed-forward one."""
    found = [SUBLAYER.fullmatch(key) for key in weights]
    kinds = {int(each[1]): each[2] for each in found if each}
    block = []
    for number in sorted(kinds):
        block.append(number)
        if not kinds[number].startswith("attention"):
            yield block
            block = []
