"""What holds of the networks whatever their weights: what they read, and what they do not."""

import numpy as np
import pytest
import torch
from support import golden
from torch.utils._python_dispatch import TorchDispatchMode

from biaslib.models.networks import vilbert, vl_bert
from biaslib.models.networks.albef import AlbefNetwork
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.networks.vl_bert import VlBertNetwork

STREAMS = ["vilbert", "vilbert_beta", "volta_vilbert"]


def differs(left, right):
    return np.abs(left.astype(float) - right.astype(float)).max()


# Dropout


def test_dropout_works_in_training_only():
    network = golden.network("vilbert")
    batch = golden.batch("vilbert")
    first = golden.outputs("vilbert", batch)["sequence_output_t"]
    try:
        network.train()
        torch.manual_seed(0)
        trained = [golden.outputs("vilbert", batch)["sequence_output_t"] for _ in range(2)]
    finally:
        network.eval()
    assert differs(*trained) > 0.01
    assert differs(golden.outputs("vilbert", batch)["sequence_output_t"], first) < 1e-6


# Padding


@pytest.mark.parametrize("name", STREAMS)
def test_padding_is_not_read(name):
    batch = golden.batch(name)
    other = {key: each.clone() for key, each in batch.items()}
    no_token, no_region = batch["attention_mask"] == 0, batch["image_attention_mask"] == 0
    assert no_token.any()
    assert no_region.any()
    other["input_ids"][no_token] = 150
    other["image_feat"][no_region] = 3.0
    other["image_loc"][no_region] = 0.7
    found, again = golden.outputs(name, batch), golden.outputs(name, other)
    there = {"sequence_output_t": ~no_token.numpy(), "sequence_output_v": ~no_region.numpy()}
    for key, real in there.items():
        assert differs(found[key][real], again[key][real]) < 1e-6
        assert differs(found[key][~real], again[key][~real]) > 0.1


def test_what_fills_a_row_of_regions_is_not_read_by_vl_bert():
    batch = golden.batch("vlbert")
    absent = batch["real"] == 0
    other = {key: each.clone() for key, each in batch.items()}
    other["features"][absent] = torch.nan
    other["boxes"][absent] = 1e6
    found, again = golden.outputs("vlbert", batch), golden.outputs("vlbert", other)
    assert all(differs(found[key], again[key]) < 1e-6 for key in found)


def test_albef_does_not_read_padding_of_texts():
    batch = golden.batch("albef")
    other = {key: each.clone() for key, each in batch.items()}
    absent = batch["attention_mask"] == 0
    other["input_ids"][absent] = 150
    found, again = golden.outputs("albef", batch), golden.outputs("albef", other)
    for key in ("text_feat", "sim", "itm_logits"):
        assert differs(found[key], again[key]) < 1e-6


# VL-BERT


@torch.inference_mode()
def run_vl_bert(batch, name="vlbert", **changes):
    given = {**batch, **changes}
    ids = given.pop("input_ids")
    return golden.network(name)(ids, ids > 0, **given)


def test_a_text_without_an_image_can_stand_beside_others_or_alone():
    batch = golden.batch("vlbert")
    together = run_vl_bert(batch)[0][2:]
    ids = batch["input_ids"][2:, :7]
    with torch.inference_mode():
        alone, _ = golden.network("vlbert")(ids, ids > 0)
    real = ids > 0
    assert differs(together[:, :7][real].numpy(), alone[real].numpy()) < 1e-5


def test_a_text_without_an_image_is_another_thing_than_one_with():
    batch = golden.batch("vlbert")
    with_image = run_vl_bert(golden.rows(batch, [0]))[0]
    without = run_vl_bert(golden.rows(batch, [0]), real=torch.zeros(1, 6))[0]
    assert differs(with_image.numpy(), without.numpy()) > 0.1


def test_a_masked_region_hides_its_features_and_not_its_place():
    batch = golden.rows(golden.batch("vlbert"), [0])
    hidden = batch["hidden"].bool()
    assert hidden.sum() == 1
    features = batch["features"].clone()
    features[hidden] = 5.0
    found, _ = run_vl_bert(batch)
    again, _ = run_vl_bert(batch, features=features)
    assert differs(found.numpy(), again.numpy()) < 1e-6
    boxes = batch["boxes"].clone()
    boxes[hidden] /= 2
    assert differs(found.numpy(), run_vl_bert(batch, boxes=boxes)[0].numpy()) > 1e-3


def test_the_first_region_speaks_for_the_image_to_every_word():
    batch, read = golden.rows(golden.batch("vlbert"), [0]), []
    features = batch["features"].clone()
    features[:, 0] += 1.0
    encoder = golden.network("vlbert").vlbert.encoder
    hook = encoder.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    run_vl_bert(batch), run_vl_bert(batch, features=features)
    hook.remove()
    moved = (read[0] - read[1]).abs().amax(-1)[0]
    t = batch["input_ids"].shape[1]
    there = (batch["input_ids"][0] > 0).tolist()
    assert (moved[:t][there] > 1e-3).all()
    assert moved[t] > 1e-3
    assert (moved[t + 1 :] == 0).all()


def test_where_a_box_is_depends_on_shares_of_the_image_alone():
    boxes = torch.tensor([[[10.0, 20.0, 50.0, 40.0]]])
    small = vl_bert.coordinate_embedding(boxes, torch.tensor([[100, 80]]))
    large = vl_bert.coordinate_embedding(2 * boxes, torch.tensor([[200, 160]]))
    assert torch.allclose(small, large, atol=1e-5)
    values = 100 * np.array([30 / 100, 30 / 80, 40 / 100, 20 / 80])
    angles = values[:, None] / 1000 ** (np.arange(256) / 256)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).ravel()
    np.testing.assert_allclose(small[0, 0], expected, atol=2e-5)


# ViLBERT


def test_places_of_boxes():
    found = vilbert.locations(torch.tensor([[[0.0, 0.0, 1.0, 1.0], [0.25, 0.5, 0.75, 1.0]]]))
    assert found.tolist() == [[[0, 0, 1, 1, 1], [0.25, 0.5, 0.75, 1, 0.25]]]


# ALBEF


def test_the_lower_half_of_albefs_text_encoder_sees_no_image():
    batch = golden.batch("albef")
    other = {**batch, "image": batch["image"].flip(0)}
    found, again = golden.outputs("albef", batch), golden.outputs("albef", other)
    assert differs(found["text_embeds"], again["text_embeds"]) < 1e-6
    assert differs(found["mlm_logits"], again["mlm_logits"]) > 0.01
    np.testing.assert_allclose(again["itm_logits"], found["itm_logits"][::-1], atol=1e-6)


def test_albefs_vectors_have_length_one():
    found = golden.outputs("albef", golden.batch("albef"))
    for key in ("image_feat", "text_feat"):
        np.testing.assert_allclose(np.linalg.norm(found[key], axis=1), 1, atol=1e-6)


# Precision


UNIT = 2.0**-8
"""How far rounding to bfloat16 moves a number, as a share of it, at most."""

PRODUCTS = {"linear", "matmul", "conv2d", "scaled_dot_product_attention"}
"""What autocast does in half the precision."""


class Rounded(TorchDispatchMode):
    """Move what goes into each product, and its result, as rounding to bfloat16 may move it."""

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def moved(self, given):
        if not (torch.is_tensor(given) and given.is_floating_point()):
            return given
        return given * (1 + UNIT * (2 * torch.rand(given.shape, generator=self.generator) - 1))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name.removeprefix("aten::") not in PRODUCTS:
            return function(*args, **(kwargs or {}))
        return self.moved(function(*map(self.moved, args), **(kwargs or {})))


@pytest.mark.parametrize("name", golden.NAMES)
def test_half_the_precision_costs_no_more_than_the_rounding_of_products(name):
    """Three times the largest of eight draws is beyond what rounding does by chance."""
    batch = golden.batch(name)
    full = golden.outputs(name, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = golden.outputs(name, batch)
    drawn = []
    for seed in range(8):
        with Rounded(seed):
            drawn.append(golden.outputs(name, batch))
    for key, expected in full.items():
        there = expected > -1000  # a logit of -10,000 stands for padding
        bound = 3 * max(differs(expected[there], each[key][there]) for each in drawn)
        assert differs(expected[there], half[key][there]) <= bound, key


# Training


def tiny(name, network):
    """A freshly initialised network of a fixture's sizes."""
    torch.manual_seed(0)
    return network(golden.config(name))


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("vlbert", VlBertNetwork),
        ("vilbert", VilbertNetwork),
        ("albef", AlbefNetwork),
    ],
)
def test_every_weight_can_be_trained(name, network):
    fresh = tiny(name, network)
    batch = golden.batch(name)
    run = golden.RUNS[next(start for start in golden.RUNS if name.startswith(start))]
    found = run(fresh, batch)
    sum(each.float().square().sum() for each in found.values() if each is not None).backward()
    still = [key for key, each in fresh.named_parameters() if each.grad is None]
    assert still == []
