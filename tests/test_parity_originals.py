"""The authors' tensors in networks of transformers, against their code's outputs or plain torch.

VisualBERT and LXMERT: outputs of VOLTA's own code on small random networks (tests/golden). ViLT: a
forward pass in plain torch (tests/support/plain.py) on random weights under the names of the
authors' files; it also runs at the published sizes, in some minutes and 4 GB:

    BIASLIB_PARITY=FULL python -m pytest tests/test_parity_originals.py -k as_its_authors
"""

import json
import os
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


class NoMatch(torch.nn.Module):
    """Stands where the adapter reads a match: VOLTA's VisualBERT has none of that kind."""

    def forward(self, pooled):
        return torch.zeros(1, 2)


ADAPTERS = {LXMERT: lxmert.Lxmert, VISUALBERT: visualbert.VisualBert}


@torch.inference_mode()
def test_adapters_read_the_states_and_the_match_that_voltas_code_gives(volta):
    network, _, inputs, outputs = volta
    if type(network) is VISUALBERT:
        network.cls.seq_relationship = NoMatch()
    model = ADAPTERS[type(network)](network, small_models.tokenizer(), "test", "golden", "cpu")
    row = slice(1, 2)
    tokens = {key: inputs[key][row] for key in ("input_ids", "attention_mask")}
    visual = {
        "features": inputs["image_feat"][row],
        "boxes": inputs["image_loc"][row, :, :4],
        "real": inputs["image_attention_mask"][row].bool(),
    }
    output = model.forward(tokens, visual)
    assert off(output.text, outputs["sequence_output_t"][row]) < NEAR
    assert off(model.word_logits(output.text), outputs["prediction_scores_t"][row]) < NEAR
    if type(network) is LXMERT:
        logits = outputs["seq_relationship_score"][row]
        assert off(output.match, logits[:, 0] - logits[:, 1]) < NEAR
        assert off(output.image, outputs["sequence_output_v"][row, 0]) < NEAR


@pytest.fixture
def sizes():
    """Small ones, or those of the published model."""
    return getattr(plain, os.environ.get("BIASLIB_PARITY", "SMALL"))


def real_states(real, states):
    return states[real.bool()]


def test_vilt_as_its_authors_wrote_it(tmp_path, sizes):
    """In double precision, where rounding does not hide a difference."""
    weights = plain.vilt_weights(sizes)
    buffer = {"text_embeddings.position_ids": torch.arange(sizes.positions)[None]}
    path = tmp_path / "vilt_200k_mlm_itm.ckpt"
    torch.save({"state_dict": weights | buffer, "epoch": 9}, path)
    network, missing = originals.read_vilt(path)
    assert missing == {"mlm_score.bias", "rank_output.weight", "rank_output.bias"}
    text_embeddings = network.vilt.embeddings.text_embeddings.word_embeddings.weight
    assert torch.equal(text_embeddings, weights["text_embeddings.word_embeddings.weight"])
    network = network.double()
    weights = {name: each.double() for name, each in weights.items()}
    real = (torch.arange(9) < torch.tensor([[9], [6], [4]])).long()
    ids = torch.randint(5, sizes.vocabulary, (3, 9), generator=torch.Generator().manual_seed(5))
    visual, covered = pictures(sizes)
    text, logits, match = plain.vilt(
        weights, ids * real, real, visual["pixel_values"], covered, sizes
    )
    model = vilt.Vilt(network, small_models.tokenizer(), None, "vilt", "file", "cpu", missing)
    with torch.inference_mode():
        tokens = {"input_ids": ids * real, "attention_mask": real}
        output = model.forward(tokens, model.encode(visual))
        words = model.word_logits(output.text)
    assert off(real_states(real, output.text), real_states(real, text)) < 1e-9
    assert off(real_states(real, words), real_states(real, logits)) < 1e-9
    assert off(output.match, match[:, 1] - match[:, 0]) < 1e-9


def pictures(sizes):
    """Return pictures of three sizes as ViLT takes them, and their rows and columns of patches."""
    side, patch = sizes.grid * sizes.patch, sizes.patch
    pixels = torch.randn(3, 3, side, side + patch, generator=torch.Generator().manual_seed(6))
    covered = [(3, 4), (2, 3), (3, 1)]
    mask = torch.zeros(3, *pixels.shape[-2:], dtype=torch.long)
    for row, (down, across) in enumerate(covered):
        mask[row, : down * patch, : across * patch] = 1
    pixels = pixels.double() * mask[:, None]
    return {"pixel_values": pixels, "sizes": torch.tensor(covered) * patch}, covered
