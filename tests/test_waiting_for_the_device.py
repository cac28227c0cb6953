"""No batch of any family waits for the card.

Weights are given to PyTorch's fake tensors, which have a device, a shape and no data. What needs
their data stops: ``item``, ``tolist``, an index that is a mask, a size that depends on numbers.
Copies are seen as they are dispatched.
"""

import traceback
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from support import families, small_models
from test_detector import SETTINGS
from test_models_contract import CANDIDATES, CAPTIONS, MASKED, TEXTS
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from biaslib import capabilities as can
from biaslib import models
from biaslib.pictures import faster_rcnn
from biaslib.pictures.detector import Detector

OWN_WAITS = {"siglip2": "transformers reads the shape of each picture back from the device"}
"""Families whose library waits within its own code."""

LEAVES = "_leaving"
"""The function of ``runtime.batches`` that begins to take results off the device."""


class Copies(TorchDispatchMode):
    """Note the copies from one device to another, with the function of ours that asks for each."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = function(*args, **kwargs)
        if function.overloadpacket in (torch.ops.aten._to_copy, torch.ops.aten.to):
            came, goes = args[0].device.type, made.device.type
            names = [each.name for each in function._schema.arguments]
            free = (dict(zip(names, args, strict=False)) | kwargs).get("non_blocking", False)
            if came != goes:
                stack = [each.name for each in traceback.extract_stack() if "biaslib" in each[0]]
                self.seen.append((came, goes, free, stack[-1]))
        return made


@pytest.fixture
def card(monkeypatch):
    """Return a mode in which tensors on a card without data can be made and calculated with."""
    numbers = torch.Tensor.numpy

    def numpy(tensor, *args, **kwargs):
        if not isinstance(tensor, FakeTensor):
            return numbers(tensor, *args, **kwargs)
        assert tensor.device.type == "cpu"
        return np.ones(tensor.shape, str(tensor.dtype).removeprefix("torch."))

    memory = SimpleNamespace(total_memory=2**34)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "Event", MagicMock)
    monkeypatch.setattr(torch.Tensor, "numpy", numpy)
    for module in ("text", "dual", "pixel_model"):  # all that comes off this card is zero
        monkeypatch.setattr(f"biaslib.models.{module}.require_apart", lambda *_: None)
    return FakeTensorMode(allow_non_fake_inputs=True)


def put(model, card):
    """Give a loaded model weights without data on a card."""
    found = [each for each in vars(model).values() if isinstance(each, torch.nn.Module)]
    for function in (each for each in vars(model).values() if hasattr(each, "__closure__")):
        for cell in function.__closure__ or ():
            if isinstance(cell.cell_contents, torch.nn.Module):
                found.append(cell.cell_contents)
            elif cell.cell_contents == "cpu":
                cell.cell_contents = "cuda"
    for part in {id(part): part for whole in found for part in whole.modules()}.values():
        for name, each in [*part._parameters.items(), *part._buffers.items()]:
            if each is not None:
                with card:
                    empty = torch.empty_strided(
                        each.shape, each.stride(), dtype=each.dtype, device="cuda"
                    )
                kept = part._parameters if name in part._parameters else part._buffers
                kept[name] = empty if kept is part._buffers else torch.nn.Parameter(empty, False)
    model.device = "cuda"


def asked(model, images):
    """Return all that a model can be asked."""
    calls = {
        can.EMBED: lambda: model.embed(TEXTS),
        can.FILL: lambda: model.mask_log_prob(MASKED, CANDIDATES),
        can.EMBED_WITH_IMAGES: lambda: model.embed(TEXTS, images),
        can.FILL_WITH_IMAGES: lambda: model.mask_log_prob(MASKED, CANDIDATES, images),
        can.MATCH: lambda: model.match(images, CAPTIONS),
        can.ENCODE: lambda: np.hstack([model.encode_text(TEXTS), model.encode_image(images)]),
    }
    return [ask for name, ask in calls.items() if name in model.capabilities]


def require_no_wait(copies):
    """Refuse copies that the host waits for, and any back but those of a batch's results."""
    assert {where for came, *_, where in copies if came == "cuda"} == {LEAVES}
    assert [each for each in copies if not each[2]] == []
    assert "cpu" in {came for came, *_ in copies}


@pytest.mark.parametrize("name", families.NAMES)
def test_no_batch_waits_for_the_card(name, card, tmp_path):
    folder = families.save(name, tmp_path / name)
    model = models.load(families.registered(name), checkpoint=folder, device="cpu")
    images = families.regions() if hasattr(model, "width_setting") else small_models.pictures(4)
    put(model, card)
    for ask in asked(model, images):
        with card, Copies() as copies:
            if name in OWN_WAITS:
                with pytest.raises(Exception, match="_local_scalar_dense") as stopped:
                    ask()
                files = [str(each.path) for each in stopped.traceback]
                known = [file for file in files if "/biaslib/" in file or "transformers" in file]
                assert "transformers" in known[-1]
                continue
            assert len(ask()) == 4
        require_no_wait(copies.seen)


def test_the_detector_waits_only_for_how_many_boxes_there_are(card, monkeypatch):
    """Suppression and the smallest box say how many; given that, nothing else of ours waits.

    torchvision's coder of boxes makes two constants on the device for each of its two calls.
    """
    monkeypatch.setattr(faster_rcnn.BoxCoder, "decode_single", lambda _, shifts, boxes: shifts)
    monkeypatch.setattr(faster_rcnn, "large_enough", lambda boxes, _: torch.arange(len(boxes)))
    monkeypatch.setattr(faster_rcnn, "nms", lambda boxes, *_: torch.arange(len(boxes)))
    network = faster_rcnn.FasterRcnn(faster_rcnn.FasterRcnnConfig(SETTINGS))
    model = Detector(network, "detector", "random", "cpu")
    put(model, card)
    with card, Copies() as copies:
        found = model.regions(small_models.pictures(4))
    assert found.real.all()
    require_no_wait(copies.seen)
