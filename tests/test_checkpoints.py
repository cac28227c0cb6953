"""Checkpoints that are not what they should be are refused, and what is wrong is named."""

import argparse
import json
import pathlib
import pickle
import sys
import types

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from timm.scheduler import CosineLRScheduler

from biaslib.checkpoints import folders, weights
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.weights import (
    read_weights,
    require_complete,
    require_readable,
    require_same,
)
from biaslib.errors import CheckpointError


def require_kind(folder, kinds, name):
    folders.require_family(folder, Entry(name, "", "", 0, "", "", kinds=tuple(kinds)))


def test_a_checkpoint_of_another_architecture_is_named(tmp_path):
    config = {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    require_kind(tmp_path, ["bert"], "bert")
    with pytest.raises(CheckpointError, match=r"of 'bert' \(BertForMaskedLM\), and 'vilt' is lo"):
        require_kind(tmp_path, ["vilt"], "vilt")


def test_a_folder_that_is_no_checkpoint(tmp_path):
    (tmp_path / "model.onnx").touch()
    with pytest.raises(
        CheckpointError,
        match=r"has no config.json, which is saved beside the weights. It holds model.onnx",
    ):
        require_kind(tmp_path, ["vilt"], "vilt")
    (tmp_path / "config.json").write_text("<html>not found</html>")
    with pytest.raises(
        CheckpointError, match=r"config.json is not valid JSON .* download it again"
    ):
        require_kind(tmp_path, ["vilt"], "vilt")


def test_missing_and_unexpected_weights_are_named_and_the_others_counted():
    info = {
        "missing_keys": {f"layer.{number}.weight" for number in range(7)},
        "unexpected_keys": {"itm_score.fc.weight", "mlm_score.bias"},
        "mismatched_keys": [("embed.weight", torch.Size([3, 4]), torch.Size([5, 4]))],
    }
    with pytest.raises(CheckpointError) as refusal:
        require_complete(info, "vilt", allowed_unexpected=["itm_score.*"])
    assert "'vilt' lacks 7 weights" in str(refusal.value)
    assert "layer.4.weight and 2 more" in str(refusal.value)
    assert "holds 1 weight that the model does not know: mlm_score.bias" in str(refusal.value)
    assert "embed.weight (3, 4) not (5, 4)" in str(refusal.value)


def test_weights_that_may_be_missing_or_left_over():
    info = {"missing_keys": {"bert.pooler.dense.bias"}, "unexpected_keys": {"cls.bias"}}
    require_complete(info, "bert", allowed_missing=["bert.pooler.*"], allowed_unexpected=["cls.*"])
    one = torch.ones(1)
    with pytest.raises(CheckpointError, match=r"lacks 1 weight .*: bert.pooler.dense.bias"):
        require_same({"a": one}, {"a": one, "bert.pooler.dense.bias": one}, "bert")


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


class Intruder:
    def __reduce__(self):
        return (print, ("code in a checkpoint was run",))


def test_code_in_a_checkpoint_is_never_run(tmp_path, capsys):
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Intruder()}, protocol=2))
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin is damaged, or holds objects"):
        read_weights(tmp_path / "pytorch_model.bin")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_truncated_file_of_weights_is_named(tmp_path, name):
    whole = tmp_path / f"whole-{name}"
    weights = {"a": torch.arange(100.0)}
    save_file(weights, whole) if name.endswith("safetensors") else torch.save(weights, whole)
    (tmp_path / name).write_bytes(whole.read_bytes()[:-150])
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        read_weights(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "open_clip"),
    [("pytorch_model.bin", False), ("a.bin", True), ("ALBEF.pth", True)],
)
def test_pickled_weights_need_a_torch_that_reads_them_safely(
    tmp_path, monkeypatch, name, open_clip
):
    """A file of adapters beside pickled weights does not make these safe."""
    (tmp_path / name).touch()
    require_readable(tmp_path, open_clip)
    monkeypatch.setattr(weights.torch, "__version__", "2.5.1+cpu")
    with pytest.raises(CheckpointError, match=rf"{name} .* torch 2.5.1.* torch 2.6 or"):
        require_readable(tmp_path, open_clip)
    save_file({"weight": torch.ones(1)}, tmp_path / "model.safetensors")
    require_readable(tmp_path, open_clip)
