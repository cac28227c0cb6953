"""The adapters of the planted checkpoints: BERT's masked words, CLIP and OpenCLIP's vectors."""

import numpy as np
import open_clip
import pytest
import torch
import transformers

import plantedworld
from biaslib import models
from biaslib.models.open_clip import _token_counts
from plantedworld.models.checkpoints import checkpoint

CAPTIONS = [
    "a photo of a nurse",
    "a photo of an apron",
    "the woman is a judge.",
    "a photo of a pilot",
]


@pytest.fixture(scope="module")
def bert():
    return models.load("bert", dose=3, seed=0)


@pytest.fixture(scope="module")
def clip():
    return models.load("clip", dose=3, seed=0)


@pytest.fixture(scope="module")
def pictures():
    scenes = plantedworld.faces(2, np.random.default_rng(3))
    return plantedworld.draw(scenes)


def test_a_word_outside_the_vocabulary_is_named_and_never_silently_unknown(bert, clip):
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["the zeppelin is a [MASK]."], ["nurse"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["she is a [MASK]."], ["zeppelin"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.embed(["zeppelin nurse"], level="sentence")
    with pytest.raises(ValueError, match="zeppelin"):
        clip.encode_text(["a photo of a zeppelin"])


def test_clip_vectors_are_those_of_transformers_own_similarity(clip, pictures):
    path = checkpoint("clip", 3, 0)
    model = transformers.CLIPModel.from_pretrained(path, dtype=torch.float32).eval()
    tokens = clip_tokens(path, CAPTIONS)
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.inference_mode():
        expected = model(**tokens, pixel_values=pixels).logits_per_text.numpy()
    found = clip.scale * clip.encode_text(CAPTIONS) @ clip.encode_image(pictures).T
    assert found == pytest.approx(expected, abs=2e-4)


def clip_tokens(path, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    return tokenizer(texts, padding=True, return_tensors="pt")


@pytest.mark.parametrize("name", ["clip", "open-clip"])
def test_a_caption_longer_than_the_model_takes_is_refused_with_its_count(name):
    """14 words fill it, with a start and an end."""
    model = models.load(name, dose=3, seed=0)
    assert model.encode_text([" ".join(["nurse"] * 14)]).shape == (1, 48)
    with pytest.raises(ValueError, match=r"17 tokens.* 16"):
        model.encode_text(["a photo of a nurse", " ".join(["nurse"] * 15)])


def test_open_clips_own_tokenizer_is_counted_as_it_counts():
    own = open_clip.tokenizer.SimpleTokenizer()
    texts = ["a photo of a housekeeper", "antidisestablishmentarianism " * 40, ""]
    real = [int((row != 0).sum()) for row in own(texts, context_length=1000)]
    assert _token_counts(own, texts).tolist() == real
