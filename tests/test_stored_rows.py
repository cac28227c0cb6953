"""Rows of half precision and of float32 are never mixed in the store, in any study."""

from types import SimpleNamespace

import numpy as np
import pytest

from biaslib.models.stored import store_key
from biaslib.runtime import Store
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked_association
from biaslib.studies import study3_clip_audit as clip_audit
from biaslib.studies import study4_captions as stereotype_selection


class OnCard:
    """A model that computes on a card and answers with one number, counting how often."""

    name, revision, device = "clip", "1f2e", "cuda"

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
    key = {"model": "clip", "revision": "1f2e", "output": "vectors", "level": "word"}
    assert store_key(OnCard(), "vectors", level="word") == key
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    assert store_key(OnCard(), "vectors", level="word") == {**key, "precision": "float16"}
    nowhere = SimpleNamespace(name="oracle", revision="dose 3")
    assert "precision" not in store_key(nowhere, "vectors")
    monkeypatch.setattr(OnCard, "device", "cpu")
    with pytest.raises(ValueError, match="float16 is for CUDA devices; on cpu use"):
        store_key(OnCard(), "vectors")


def test_embeddings_of_the_audit_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    model, store = OnCard(), Store(tmp_path)
    full = clip_audit.embed_texts(model, ["a photo"], store)
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    half = clip_audit.embed_texts(model, ["a photo"], store)
    monkeypatch.delenv("BIASLIB_PRECISION")
    again = clip_audit.embed_texts(model, ["a photo"], store)
    assert [each[0, 0] for each in (full, half, again)] == [1, 2, 1]
    assert sorted(store.table()["options"]) == ["", "precision=float16"]


def test_caption_scores_are_computed_again_in_another_precision(tmp_path, monkeypatch):
    monkeypatch.delenv("BIASLIB_PRECISION", raising=False)
    model, store = OnCard(), Store(tmp_path)
    images, texts = np.zeros((1, 8, 8, 3), dtype=np.uint8), [["one", "two"]]
    stereotype_selection.caption_scores(model, "contrastive", images, texts, store)
    asked = model.calls
    stereotype_selection.caption_scores(model, "contrastive", images, texts, store)
    assert model.calls == asked
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    stereotype_selection.caption_scores(model, "contrastive", images, texts, store)
    assert model.calls == 2 * asked


def test_keys_of_masked_words_and_grounded_embeddings_name_the_precision(monkeypatch):
    monkeypatch.setenv("BIASLIB_PRECISION", "float16")
    choices = masked_association.Choices()
    question = masked_association._Question(OnCard(), "a {agent}", ["x"], choices, None, 1)
    assert question._key("files")["precision"] == "float16"
    embedder = grounded._Embedder(OnCard(), "none", False, None, {})
    sets = SimpleNamespace(level="word", hidden=(), pool=None)
    assert embedder._key(sets)["precision"] == "float16"
