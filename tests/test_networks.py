"""What holds of the networks whatever their weights: what they read, and what they do not."""

import numpy as np
import torch
from support import golden

from biaslib.models.networks import vilbert, vl_bert


def differs(left, right):
    return np.abs(left.astype(float) - right.astype(float)).max()


@torch.inference_mode()
def run_vl_bert(batch, name="vlbert", **changes):
    given = {**batch, **changes}
    ids = given.pop("input_ids")
    return golden.network(name)(ids, ids > 0, **given)


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


# Precision


# Training
