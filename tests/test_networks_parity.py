"""The networks give what the official implementations give, whatever the batch is made of.

The fixtures under tests/golden hold random weights, inputs, and the official outputs.
"""

import numpy as np
import pytest
import torch
from support import golden

TOLERANCE = 2e-5


def told_of(name, key, rows):
    """The official output for rows of the fixture's batch, and which of these it has."""
    value, rows = golden.expected(name)[key], np.asarray(rows)
    if key in golden.PAIRWISE:
        return value[np.ix_(rows, rows)], np.arange(len(rows))
    before = len(golden.batch(name)["input_ids"]) - len(value) if key == "mlm_logits_aux" else 0
    there = (before <= rows) & (rows < before + len(value))
    return value[rows[there] - before], np.flatnonzero(there)


def require_parity(name, batch, rows):
    """Compare every output that a row has by itself, within the fixture's shape."""
    found = golden.outputs(name, batch)
    for key in golden.expected(name):
        if key.startswith(("batched_", "nomask_")):
            continue
        expected, told = told_of(name, key, rows)
        got = found[key][told][tuple(slice(size) for size in expected.shape)]
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE, err_msg=f"{name} {key}")


def all_rows(name):
    return np.arange(len(golden.batch(name)["input_ids"]))


@pytest.mark.parametrize("name", golden.NAMES)
def test_every_output_of_the_fixture(name):
    require_parity(name, golden.batch(name), all_rows(name))


@pytest.mark.parametrize("name", golden.NAMES)
def test_rows_in_another_order(name):
    order = all_rows(name)[::-1]
    require_parity(name, golden.rows(golden.batch(name), order), order)


@pytest.mark.parametrize("name", golden.NAMES)
def test_more_padding_changes_nothing(name):
    batch = golden.padded(golden.batch(name), tokens=2, regions=3)
    assert batch["input_ids"].shape[1] == golden.batch(name)["input_ids"].shape[1] + 2
    require_parity(name, batch, all_rows(name))


@pytest.mark.parametrize("name", golden.NAMES)
def test_each_row_alone(name):
    for row in all_rows(name):
        require_parity(name, golden.rows(golden.batch(name), [row]), [row])


@pytest.mark.parametrize("name", ["vlbert", "vilbert", "albef", "volta_ctrl_vilbert"])
def test_another_norm_would_be_noticed(name):
    """The fixtures tell a layer norm with 1e-5 from one with 1e-12."""
    network = golden.loaded(name, golden.weights(name))
    for module in network.modules():
        if hasattr(module, "eps"):
            module.eps = 1e-5
    key = {"vlbert": "text_hidden", "albef": "fusion_embeds"}.get(name, "sequence_output_t")
    found = golden.outputs(name, golden.batch(name), network)[key]
    assert np.abs(found - golden.expected(name)[key]).max() > 1e-3


def test_vilbert_without_masks_reads_padding_as_the_official_code_does():
    name = "vilbert_beta"
    batch = golden.batch(name)
    for key in ("attention_mask", "image_attention_mask"):
        batch[key] = torch.ones_like(batch[key])
    found = golden.outputs(name, batch)
    told = {key: each for key, each in golden.expected(name).items() if key.startswith("nomask_")}
    assert len(told) == 5
    for key, expected in told.items():
        got = found[key.removeprefix("nomask_")]
        np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE, err_msg=key)
