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


def off(found, expected):
    """Return the largest difference."""
    assert found.shape == expected.shape
    return float((found - expected).abs().max())


class NoMatch(torch.nn.Module):
    """Stands where the adapter reads a match: VOLTA's VisualBERT has none of that kind."""

    def forward(self, pooled):
        return torch.zeros(1, 2)


@torch.inference_mode()
@pytest.mark.parametrize("name", ["volta_ctrl_visualbert", "volta_original_lxmert"])
def test_adapters_read_the_states_and_the_match_that_voltas_code_gives(name):
    """Of the one row without tokens of another type, which the adapters do not give."""
    weights, inputs, outputs, config = golden(name)
    heads = config["num_attention_heads"]
    if name == "volta_original_lxmert":
        network, adapter = of_volta.lxmert(weights, LXMERT, heads), lxmert.Lxmert
    else:
        network, adapter = of_volta.visualbert(weights, VISUALBERT, heads), visualbert.VisualBert
        network.cls.seq_relationship = NoMatch()
    model = adapter(network, small_models.tokenizer(), "test", "golden", "cpu")
    inputs, outputs = ({key: each[1:2] for key, each in part.items()} for part in (inputs, outputs))
    tokens = {key: inputs[key] for key in ("input_ids", "attention_mask")}
    visual = {
        "features": inputs["image_feat"],
        "boxes": inputs["image_loc"][..., :4],
        "real": inputs["image_attention_mask"].bool(),
    }
    output = model.forward(tokens, visual)
    assert off(output.text, outputs["sequence_output_t"]) < NEAR
    assert off(model.word_logits(output.text), outputs["prediction_scores_t"]) < NEAR
    if name == "volta_original_lxmert":
        logits = outputs["seq_relationship_score"]
        assert off(output.match, logits[:, 0] - logits[:, 1]) < NEAR
        assert off(output.image, outputs["sequence_output_v"][:, 0]) < NEAR


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
