"""The authors' tensors in networks of transformers, against their code's outputs or plain torch.

Two kinds of reference: outputs of VOLTA's own code on small random networks (tests/golden), and
forward passes in plain torch (tests/support/plain.py) on random weights under the names of the
authors' files. The latter also run at the published sizes, in some minutes and 4 GB:

    BIASLIB_PARITY=FULL python -m pytest tests/test_parityoriginals.py -k as_its_authors
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from support import originals, plain, small_models
from support import volta as of_volta

from biaslib.models import lxmert, vilt, visualbert

GOLDEN = Path(__file__).parent / "golden"
NEAR = 2e-5
"""In single precision."""

EQUAL = 1e-9
"""In double precision, where rounding does not hide a difference."""

VISUALBERT = transformers.VisualBertForPreTraining
LXMERT = transformers.LxmertForPreTraining


def golden(name):
    folder = GOLDEN / name
    arrays = [dict(np.load(folder / f"{part}.npz")) for part in ("inputs", "outputs")]
    tensors = [{key: torch.tensor(each) for key, each in part.items()} for part in arrays]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return load_file(folder / "weights.safetensors"), *tensors, config


def converted(weights, network, config):
    convert = of_volta.visualbert if network is VISUALBERT else of_volta.lxmert
    return convert(weights, network, config["num_attention_heads"])


def off(found, expected):
    """Return the largest difference."""
    assert found.shape == expected.shape
    return float((found - expected).abs().max())


def run_visualbert(network, inputs):
    regions = {
        "visual_embeds": inputs["image_feat"],
        "visual_token_type_ids": torch.zeros(inputs["image_feat"].shape[:2], dtype=torch.long),
    }
    words = {key: inputs[key] for key in ("input_ids", "token_type_ids")}
    with torch.inference_mode():
        embedded = network.visual_bert.embeddings(**words, **regions)
        states = network.visual_bert(
            **words,
            **regions,
            attention_mask=inputs["attention_mask"],
            visual_attention_mask=inputs["image_attention_mask"],
        ).last_hidden_state
        n_words = inputs["input_ids"].shape[1]
        return {
            "embedding_output_t": embedded[:, :n_words],
            "embedding_output_v": embedded[:, n_words:],
            "sequence_output_t": states[:, :n_words],
            "sequence_output_v": states[:, n_words:],
            "prediction_scores_t": network.cls.predictions(states[:, :n_words]),
        }


def run_lxmert(network, inputs):
    with torch.inference_mode():
        found = network.lxmert(
            **{key: inputs[key] for key in ("input_ids", "token_type_ids", "attention_mask")},
            visual_feats=inputs["image_feat"],
            visual_pos=inputs["image_loc"],
            visual_attention_mask=inputs["image_attention_mask"],
        )
        regions = network.obj_predict_head(found.vision_output)
        words = (inputs["input_ids"], inputs["token_type_ids"])
        return {
            "embedding_output_t": network.lxmert.embeddings(*words),
            "embedding_output_v": network.lxmert.encoder.visn_fc(
                inputs["image_feat"], inputs["image_loc"]
            ),
            "sequence_output_t": found.language_output,
            "sequence_output_v": found.vision_output,
            "pooled_output_t": found.pooled_output,
            "prediction_scores_t": network.cls.predictions(found.language_output),
            "seq_relationship_score": network.cls.seq_relationship(found.pooled_output).flip(1),
            "prediction_scores_v_3": regions["obj"],
            "prediction_scores_v_4": regions["attr"],
            "prediction_scores_v_5": regions["feat"],
            "vqa_score": network.answer_head(found.pooled_output),
        }


VOLTA = {
    "volta_ctrl_visualbert": (VISUALBERT, run_visualbert),
    "volta_original_lxmert": (LXMERT, run_lxmert),
}


@pytest.fixture(params=sorted(VOLTA))
def volta(request):
    """A converted network of VOLTA, how it is run, and VOLTA's own inputs and outputs."""
    network, run = VOLTA[request.param]
    weights, inputs, outputs, config = golden(request.param)
    return converted(weights, network, config), run, inputs, outputs


# VOLTA's own outputs


def test_converted_volta_networks_give_the_outputs_of_voltas_code(volta):
    network, run, inputs, outputs = volta
    found = run(network, inputs)
    differences = {name: off(each, outputs[name]) for name, each in found.items()}
    assert max(differences.values()) < NEAR, differences


def test_voltas_visualbert_has_heads_that_transformers_has_no_place_for():
    """They are computed here from the states, to show that nothing but the heads is missing."""
    weights, inputs, outputs, config = golden("volta_ctrl_visualbert")
    network = converted(weights, VISUALBERT, config)
    found = run_visualbert(network, inputs)
    poolers = [
        plain.mapped(weights, f"bert.{side}_pooler.dense", found[f"sequence_output_{side}"][:, 0])
        for side in ("t", "v")
    ]
    text, image = (torch.relu(each) for each in poolers)
    assert off(text, outputs["pooled_output_t"]) < NEAR
    assert off(image, outputs["pooled_output_v"]) < NEAR
    match = plain.mapped(weights, "cls.bi_seq_relationship", text * image)
    assert off(match, outputs["seq_relationship_score"]) < NEAR
    head = "cls.imagePredictions"
    region = plain.gelu(
        plain.mapped(weights, f"{head}.transform.dense", found["sequence_output_v"])
    )
    region = plain.normed(weights, f"{head}.transform.LayerNorm", region)
    region = plain.mapped(weights, f"{head}.decoder_dict.0", region)
    assert off(region, outputs["prediction_scores_v_0"]) < NEAR
    assert network.cls.seq_relationship is None
    assert network.visual_bert.pooler is None


def test_volta_gives_regions_another_type_than_visualbert():
    weights, *_, config = golden("volta_ctrl_visualbert")
    network = converted(weights, VISUALBERT, config)
    table = network.visual_bert.embeddings.visual_token_type_embeddings.weight
    original = weights["bert.embeddings.token_type_embeddings_visual.weight"]
    assert torch.equal(table[0], original[1])


def test_lxmert_of_volta_says_a_match_at_index_1_after_its_relu():
    weights, inputs, outputs, config = golden("volta_original_lxmert")
    network = converted(weights, LXMERT, config)
    model = lxmert.Lxmert(network, small_models.tokenizer(), "test", "golden", "cpu")
    row = slice(1, 2)
    tokens = {key: inputs[key][row] for key in ("input_ids", "attention_mask")}
    visual = {
        "features": inputs["image_feat"][row],
        "boxes": inputs["image_loc"][row],
        "real": inputs["image_attention_mask"][row].bool(),
    }
    with torch.inference_mode():
        output = model.forward(tokens, visual)
    logits = outputs["seq_relationship_score"][row]
    assert off(output.match, logits[:, 0] - logits[:, 1]) < NEAR
    assert off(output.text, outputs["sequence_output_t"][row]) < NEAR
    assert off(output.image, outputs["sequence_output_v"][row, 0]) < NEAR


class NoMatch(torch.nn.Module):
    """Stands where the adapter reads a match: VOLTA's VisualBERT has none of that kind."""

    def forward(self, pooled):
        return torch.zeros(1, 2)


def test_adapter_of_visualbert_gives_voltas_states():
    weights, inputs, outputs, config = golden("volta_ctrl_visualbert")
    network = converted(weights, VISUALBERT, config)
    network.cls.seq_relationship = NoMatch()
    model = visualbert.VisualBert(network, small_models.tokenizer(), "test", "golden", "cpu")
    row = slice(1, 2)
    tokens = {key: inputs[key][row] for key in ("input_ids", "attention_mask")}
    visual = {
        "features": inputs["image_feat"][row],
        "boxes": inputs["image_loc"][row, :, :4],
        "real": inputs["image_attention_mask"][row].bool(),
    }
    with torch.inference_mode():
        output = model.forward(tokens, visual)
        words = model.word_logits(output.text[0])
    assert off(output.text, outputs["sequence_output_t"][row]) < NEAR
    assert off(words, outputs["prediction_scores_t"][1]) < NEAR


# The authors' own layouts, against plain torch


@pytest.fixture
def sizes():
    """Small ones, or those of the published models."""
    return getattr(plain, os.environ.get("BIASLIB_PARITY", "SMALL"))


@pytest.fixture
def inputs(sizes):
    """Words and regions of three rows, with padding in both."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(5, sizes.vocabulary, (3, 9), generator=generator)
    text_real = torch.arange(9) < torch.tensor([[9], [6], [4]])
    image_real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    shown = image_real[..., None].double()
    features = torch.randn(3, 5, sizes.features, generator=generator) * shown
    boxes = torch.rand(3, 5, 4, generator=generator) * shown
    return {
        "ids": ids * text_real,
        "text_real": text_real.long(),
        "features": features,
        "boxes": boxes,
        "image_real": image_real.long(),
    }


def at(places, *states):
    """Return the states at real places alone."""
    return torch.cat([each[places.bool()] for each in states], dim=-1)


def doubled(network, weights):
    """Return network and weights in double precision."""
    return network.double(), {name: each.double() for name, each in weights.items()}


def written(tmp_path, weights, name="weights.th", prefix=""):
    path = tmp_path / name
    torch.save({prefix + key: each for key, each in weights.items()}, path)
    return path


def test_visualbert_as_its_authors_wrote_it(tmp_path, inputs, sizes):
    weights = plain.visualbert_weights(sizes)
    network, missing = originals.read(written(tmp_path, weights), VISUALBERT)
    network, weights = doubled(network, weights)
    words = {name: inputs[name] for name in ("ids", "text_real", "features", "image_real")}
    embedded, states, logits, match = plain.visualbert(weights, *words.values(), sizes)
    types = torch.zeros_like(inputs["image_real"])
    given = {
        "input_ids": inputs["ids"],
        "attention_mask": inputs["text_real"],
        "visual_embeds": inputs["features"],
        "visual_attention_mask": inputs["image_real"],
        "output_hidden_states": True,
    }
    with torch.inference_mode():
        found = network(**given, visual_token_type_ids=types)
        unless_told = network(**given)
    real = torch.cat([inputs["text_real"], inputs["image_real"]], dim=1)
    assert missing == set()
    assert off(found.hidden_states[0], embedded) < EQUAL
    assert off(at(real, found.hidden_states[-1]), at(real, states)) < EQUAL
    found_words = found.prediction_logits[:, : logits.shape[1]]
    assert off(at(inputs["text_real"], found_words), at(inputs["text_real"], logits)) < EQUAL
    assert off(found.seq_relationship_logits, match) < EQUAL
    assert off(unless_told.seq_relationship_logits, match) > 0.02


def test_lxmert_as_its_authors_wrote_it(tmp_path, inputs, sizes):
    weights = plain.lxmert_weights(sizes)
    path = written(tmp_path, weights, "Epoch20_LXRT.pth", prefix="module.")
    network, missing = originals.read(path, LXMERT)
    network, weights = doubled(network, weights)
    text, image, logits, match = plain.lxmert(weights, *inputs.values(), sizes)
    with torch.inference_mode():
        found = network(
            input_ids=inputs["ids"],
            attention_mask=inputs["text_real"],
            visual_feats=inputs["features"],
            visual_pos=inputs["boxes"],
            visual_attention_mask=inputs["image_real"],
            output_hidden_states=True,
        )
    assert missing == set()
    places = inputs["text_real"]
    language, vision = found.language_hidden_states[-1], found.vision_hidden_states[-1]
    assert off(at(places, language), at(places, text)) < EQUAL
    assert off(at(inputs["image_real"], vision), at(inputs["image_real"], image)) < EQUAL
    assert off(at(places, found.prediction_logits), at(places, logits)) < EQUAL
    assert off(found.cross_relationship_score, match) < EQUAL
    assert network.config.num_qa_labels == 7


def test_vilt_as_its_authors_wrote_it(tmp_path, inputs, sizes):
    weights = plain.vilt_weights(sizes)
    buffer = {"text_embeddings.position_ids": torch.arange(sizes.positions)[None]}
    path = tmp_path / "vilt_200k_mlm_itm.ckpt"
    torch.save({"state_dict": weights | buffer, "epoch": 9}, path)
    network, missing = originals.read(path, vilt.ViltNetwork, vilt.OPTIONAL)
    network, weights = doubled(network, weights)
    tokens = {"input_ids": inputs["ids"], "attention_mask": inputs["text_real"]}
    visual, shown = pictures(sizes)
    text, logits, match = plain.vilt(
        weights, *tokens.values(), visual["pixel_values"], shown, sizes
    )
    model = vilt.Vilt(network, small_models.tokenizer(), None, "vilt", "file", "cpu", missing)
    places = inputs["text_real"]
    with torch.inference_mode():
        output = model.outputs(tokens, visual, range(3))
        words = model.word_logits(output.text)
        vilt_with(1e-12, network)
        other = model.outputs(tokens, visual, range(3))
    assert off(at(places, output.text), at(places, text)) < EQUAL
    assert off(at(places, words), at(places, logits)) < EQUAL
    assert off(output.match, match[:, 1] - match[:, 0]) < EQUAL
    assert missing == {"mlm_score.bias", "rank_output.weight", "rank_output.bias"}
    assert off(at(places, other.text), at(places, text)) > 1e-3


def vilt_with(epsilon, network):
    for module in network.vilt.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = epsilon


def pictures(sizes):
    """Return pictures of three sizes as ViLT takes them, and their rows and columns of patches."""
    side, patch = sizes.grid * sizes.patch, sizes.patch
    pixels = torch.randn(3, 3, side, side + patch, generator=torch.Generator().manual_seed(6))
    shown = [(3, 4), (2, 3), (3, 1)]
    mask = torch.zeros(3, *pixels.shape[-2:], dtype=torch.long)
    for row, (down, across) in enumerate(shown):
        mask[row, : down * patch, : across * patch] = 1
    pixels = pixels.double() * mask[:, None]
    return {"pixel_values": pixels, "sizes": torch.tensor(shown) * patch}, shown


def test_vilts_decoder_stays_apart_from_its_word_embeddings(tmp_path):
    weights = plain.vilt_weights()
    path = written(tmp_path, weights)
    network, _ = originals.read(path, vilt.ViltNetwork, vilt.OPTIONAL)
    words = network.vilt.embeddings.text_embeddings.word_embeddings.weight
    assert torch.equal(words, weights["text_embeddings.word_embeddings.weight"])
    assert torch.equal(network.mlm_score.decoder.weight, weights["mlm_score.decoder.weight"])


# Names of full size


def volta_lxmert_of_full_size():
    """Return the names in the file of full size, after those of the small one."""
    weights, *_ = golden("volta_original_lxmert")
    small = {**dict(enumerate([0, 1] * 5)), **dict(enumerate([4, 5] * 4, start=10))}
    small |= dict(enumerate([6, 7, 8] * 5, start=18))
    begin = "bert.encoder.layer."
    names = {name: each for name, each in weights.items() if not name.startswith(begin)}
    for number, template in small.items():
        for name in (name for name in weights if name.startswith(f"{begin}{template}.")):
            names[name.replace(f"{begin}{template}.", f"{begin}{number}.")] = weights[name]
    return names


def volta_visualbert_of_full_size():
    weights, *_ = golden("volta_ctrl_visualbert")
    begin = re.compile(r"bert\.encoder\.layer\.([01])\.")
    names = {name: each for name, each in weights.items() if ".layer." not in name}
    for name, each in weights.items():
        if found := begin.match(name):
            for number in range(int(found[1]), 24, 2):
                names[begin.sub(f"bert.encoder.layer.{number}.", name)] = each
    return names


def renamed(names, network):
    """Return the names of a file as transformers has them, or as VOLTA's converter makes them."""
    if "bert.embeddings.projection.weight" in names:
        return of_volta.visualbert_names(names)
    if "bert.v_embeddings.ImgLayerNorm.weight" in names:
        return of_volta.lxmert_names(names)
    return originals.renamed(names, network)


def named(shapes):
    return {name: torch.zeros(1).expand(1) for name in shapes}


@pytest.mark.parametrize(
    ("names", "n_names", "network", "config", "left_out"),
    [
        (
            named(plain.visualbert_shapes(plain.FULL)),
            211,
            VISUALBERT,
            transformers.VisualBertConfig(),
            (),
        ),
        (named(plain.lxmert_shapes(plain.FULL)), 473, LXMERT, transformers.LxmertConfig(), ()),
        (volta_lxmert_of_full_size(), 523, LXMERT, transformers.LxmertConfig(), ()),
        (
            volta_visualbert_of_full_size(),
            411,
            VISUALBERT,
            transformers.VisualBertConfig(),
            ("visual_bert.pooler.", "cls.seq_relationship."),
        ),
    ],
    ids=["VisualBERT", "LXMERT", "VOLTA's LXMERT", "VOLTA's VisualBERT"],
)
def test_names_of_full_size_are_those_of_transformers(names, n_names, network, config, left_out):
    with torch.device("meta"):
        needed = network(config).state_dict()
    found = renamed(names, network)
    assert len(names) == n_names
    assert set(found) == {name for name in needed if not name.startswith(left_out)}
