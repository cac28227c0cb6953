"""Rows of half precision and of float32 are never mixed in the store."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from biaslib import models
from biaslib.capabilities import ENCODE
from biaslib.models.stored import store_key
from biaslib.runtime.batches import full_float32


class OnCard:
    """A model that computes on a card and answers with one number, counting how often."""

    name, revision, device = "clip", "1f2e", "cuda"
    capabilities = frozenset({ENCODE})

    def __init__(self):
        self.calls = 0

    def encode_text(self, texts):
        self.calls += 1
        return np.full((len(texts), 2), float(self.calls), dtype=np.float32)


def test_float32_has_the_key_that_it_always_had(monkeypatch):
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    full_float32()
    key = {"model": "clip", "revision": "1f2e", "output": "vectors", "level": "word"}
    assert store_key(OnCard(), "vectors", level="word") == key
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    assert store_key(OnCard(), "vectors", level="word") == {**key, "precision": "float16"}
    nowhere = SimpleNamespace(name="oracle", revision="dose 3")
    assert "precision" not in store_key(nowhere, "vectors")
    monkeypatch.setattr(OnCard, "device", "cpu")
    with pytest.raises(ValueError, match="float16 is for CUDA devices; on cpu use"):
        store_key(OnCard(), "vectors")


@pytest.mark.parametrize(
    ("device", "shorten", "shortened"),
    [
        ("cuda", lambda: torch.set_float32_matmul_precision("high"), "tf32"),
        ("cuda:0", lambda: setattr(torch.backends.cudnn, "allow_tf32", True), "tf32"),
        ("cuda", lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True), "tf32"),
        ("cpu", lambda: torch.set_float32_matmul_precision("medium"), "bf16"),
        ("cpu", lambda: setattr(torch.backends.cudnn, "allow_tf32", True), None),
    ],
)
def test_float32_that_is_shortened_has_another_key(monkeypatch, device, shorten, shortened):
    """What torch calls float32 has the digits of TF32 or bfloat16 then, until a model is loaded."""
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    if shortened == "bf16" and not hasattr(torch.backends, "fp32_precision"):
        pytest.skip("this torch does not tell whether a processor shortens float32")
    monkeypatch.setattr(OnCard, "device", device)
    full_float32()
    whole = store_key(OnCard(), "vectors")
    try:
        shorten()
        more = {} if shortened is None else {"precision": shortened}
        assert store_key(OnCard(), "vectors") == whole | more
        models.load("bert", device="cpu")
        assert store_key(OnCard(), "vectors") == whole
    finally:
        full_float32()
