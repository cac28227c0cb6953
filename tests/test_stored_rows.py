"""Rows of half precision and of float32 are never mixed in the store, in any study."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from support import stored

from biaslib import models
from biaslib.models._batches import full_float32
from biaslib.models.capabilities import ENCODE
from biaslib.models.images import pictures
from biaslib.models.stored import store_key
from biaslib.runtime import Store
from biaslib.studies import study1_grounded, study2_masked, study3_clip_audit, study4_captions


class OnCard:
    """A model that computes on a card and answers with one number, counting how often."""

    name, revision, device = "clip", "1f2e", "cuda"
    capabilities = frozenset({ENCODE})

    def __init__(self):
        self.calls = 0

    def encode_text(self, texts):
        self.calls += 1
        return np.full((len(texts), 2), float(self.calls), dtype=np.float32)

    def encode_image(self, images):
        return self.encode_text(images)

    scale = 1.0


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


def test_embeddings_of_the_audit_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    model, store = OnCard(), Store(tmp_path)
    full = study3_clip_audit.embed_texts(model, ["a photo"], store)
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    half = study3_clip_audit.embed_texts(model, ["a photo"], store)
    monkeypatch.delenv("BIASLIB_PRECISION")
    again = study3_clip_audit.embed_texts(model, ["a photo"], store)
    assert [each[0, 0] for each in (full, half, again)] == [1, 2, 1]
    assert sorted(stored.table(store)["options"]) == ["", "precision=float16"]


def test_caption_scores_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    model, store = OnCard(), Store(tmp_path)
    images, texts = np.zeros((1, 8, 8, 3), dtype=np.uint8), [["one", "two"]]
    study4_captions.caption_scores(model, "contrastive", images, texts, store)
    asked = model.calls
    study4_captions.caption_scores(model, "contrastive", images, texts, store)
    assert model.calls == asked
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    study4_captions.caption_scores(model, "contrastive", images, texts, store)
    assert model.calls == 2 * asked


def test_answers_of_masked_words_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    model, store = OnCard(), Store(tmp_path)
    model.mask_log_prob = lambda texts, *_: model.encode_text(texts)[:, :1]
    question = study2_masked._Question(model, "a {agent}", ["x"], study2_masked.Choices(), store, 1)
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    assert question.alone(None).ravel().tolist() == question.alone(None).ravel().tolist()
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    question.alone(None)
    assert model.calls == 2 * len(study2_masked.AGENTS)
    assert stored.table(store)["options"].str.contains("precision=float16").sum() == 1


def test_embeddings_with_images_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    model, store = OnCard(), Store(tmp_path)
    model.embed = lambda texts, **_: model.encode_text(texts)
    rows = pandas.DataFrame(
        {"set": list(study1_grounded.SETS), "text": "a", "word": "a", "image": 0}
    )
    shown = pictures(np.zeros((1, 8, 8, 3), dtype=np.uint8))
    sets = study1_grounded.GroundedStimuli("C6", "word", rows, shown, ())
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    study1_grounded.embed(model, [sets], store=store)
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    study1_grounded.embed(model, [sets], store=store)
    assert model.calls == 2
    assert stored.table(store)["options"].str.contains("precision=float16").sum() == 1
