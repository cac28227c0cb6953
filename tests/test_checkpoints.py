"""Checkpoints that are not what they should be are refused, and what is wrong is named."""

import argparse
import pathlib
import sys
import types

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from timm.scheduler import CosineLRScheduler

from biaslib.checkpoints import weights
from biaslib.checkpoints.weights import (
    numbers_in,
    read_weights,
    require_complete,
    require_readable,
    require_same,
)
from biaslib.errors import CheckpointError


def test_missing_left_over_and_misshapen_weights_are_refused_and_the_allowed_are_not():
    info = {
        "missing_keys": {"bert.pooler.dense.bias"},
        "unexpected_keys": {"itm_score.bias"},
        "mismatched_keys": [],
    }
    require_complete(info, "vilt", ["bert.pooler.*"], ["itm_score.*"])
    for allowed in ((["bert.pooler.*"], []), ([], ["itm_score.*"])):
        with pytest.raises(CheckpointError):
            require_complete(info, "vilt", *allowed)
    one = torch.ones(1)
    require_same({"a": one}, {"a": one, "pooler.bias": one}, "bert", ["pooler.*"])
    with pytest.raises(CheckpointError) as caught:
        require_same({"a": one}, {"a": torch.ones(2)}, "bert")
    assert caught.value.word == "a"


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_the_numbers_in_a_file_are_those_of_its_tensors(tmp_path, name):
    tensors = {"a": torch.zeros(3, 4), "b": torch.zeros(5)}
    path = tmp_path / name
    save_file(tensors, path) if name.endswith("safetensors") else torch.save(tensors, path)
    assert numbers_in([path, path]) == 34


def written_as_vl_bert_does(network, optimizer, best):
    """Return what VL-BERT's ``Checkpoint`` saves after an epoch."""
    return {
        "state_dict": {f"module.{name}": each for name, each in network.state_dict().items()},
        "optimizer": optimizer.state_dict(),
        "validation_monitor": {"best_epoch": 3, "best_val": best},
    }


def written_as_albef_does(network, optimizer):
    """Return what ALBEF's ``Pretrain.py`` saves; its scheduler's state is that of timm's."""
    scheduler = CosineLRScheduler(optimizer, t_initial=30, warmup_t=20)
    config = {"image_res": 256, "optimizer": {"opt": "adamW", "lr": 1e-4}, "train_file": ["a"]}
    return {
        "model": network.state_dict(),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": scheduler.state_dict(),
        "config": config,
        "epoch": 29,
    }


class EasyDict(dict):
    """As that of the package easydict, which VOLTA and VL-BERT keep their settings in."""

    def __init__(self, **settings):
        super().__init__(settings)
        self.__dict__.update(settings)


@pytest.mark.parametrize("zipped", [True, False], ids=["zipped", "as before torch 1.6"])
def test_what_training_programs_save_beside_the_weights_is_plain_data(tmp_path, zipped):
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    EasyDict.__module__ = "easydict"
    sys.modules["easydict"] = types.ModuleType("easydict")
    sys.modules["easydict"].EasyDict = EasyDict
    saved = [
        written_as_vl_bert_does(network, optimizer, best=0.5),
        written_as_vl_bert_does(network, optimizer, best=np.float64(0.5)),
        written_as_vl_bert_does(network, optimizer, best=np.float32(0.5)),
        written_as_albef_does(network, optimizer),
        {"model": network.state_dict(), "args": argparse.Namespace(lr=0.1, out=pathlib.Path("a"))},
        {"model_state_dict": network.state_dict(), "task": EasyDict(name="vqa", ids=[1, 2])},
    ]
    for number, each in enumerate(saved):
        path = tmp_path / f"{number}.pth"
        torch.save(each, path, _use_new_zipfile_serialization=zipped)
    del sys.modules["easydict"]
    for number in range(len(saved)):
        found = read_weights(tmp_path / f"{number}.pth")
        assert set(found) == {"weight", "bias"}
        assert torch.equal(found["weight"], network.weight)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_truncated_file_of_weights_is_named(tmp_path, name):
    whole = tmp_path / f"whole-{name}"
    weights = {"a": torch.arange(100.0)}
    save_file(weights, whole) if name.endswith("safetensors") else torch.save(weights, whole)
    (tmp_path / name).write_bytes(whole.read_bytes()[:-150])
    with pytest.raises(CheckpointError) as caught:
        read_weights(tmp_path / name)
    assert caught.value.path == tmp_path / name


@pytest.mark.parametrize(
    ("name", "open_clip"),
    [("pytorch_model.bin", False), ("a.bin", True), ("ALBEF.pth", True)],
)
def test_pickled_weights_need_a_torch_that_reads_them_safely(
    tmp_path, monkeypatch, name, open_clip
):
    """A file of adapters beside pickled weights does not make these safe."""
    torch.save({"weight": torch.ones(1)}, tmp_path / name)
    require_readable(tmp_path, open_clip)
    monkeypatch.setattr(weights.torch, "__version__", "2.5.1+cpu")
    with pytest.raises(CheckpointError) as caught:
        require_readable(tmp_path, open_clip)
    assert caught.value.path == tmp_path / name
    save_file({"weight": torch.ones(1)}, tmp_path / "model.safetensors")
    require_readable(tmp_path, open_clip)
