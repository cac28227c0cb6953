"""The adapters of the planted checkpoints: BERT's masked words, CLIP and OpenCLIP's vectors."""

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image

import plantedworld
from biaslib import models
from biaslib.models.open_clip import _token_counts
from plantedworld import profile
from plantedworld.models import checkpoints
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


def test_a_text_without_a_mask_or_with_two_is_named(bert):
    with pytest.raises(ValueError, match="one \\[MASK\\]"):
        bert.mask_log_prob(["she is a nurse."], ["nurse"])
    with pytest.raises(ValueError, match="one \\[MASK\\]"):
        bert.mask_log_prob(["[MASK] is a [MASK]."], ["nurse"])


def test_a_word_outside_the_vocabulary_is_named_and_never_silently_unknown(bert, clip):
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["the zeppelin is a [MASK]."], ["nurse"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.mask_log_prob(["she is a [MASK]."], ["zeppelin"])
    with pytest.raises(ValueError, match="zeppelin"):
        bert.embed(["zeppelin nurse"], level="sentence")
    with pytest.raises(ValueError, match="zeppelin"):
        clip.encode_text(["a photo of a zeppelin"])


def test_pictures_are_refused_by_a_model_that_reads_text_alone(bert, pictures):
    with pytest.raises(ValueError, match="text alone"):
        bert.mask_log_prob(["she is a [MASK]."], ["nurse"], images=pictures)


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
def test_images_may_be_scenes_files_pil_images_or_arrays(name, tmp_path):
    model = models.load(name, dose=3, seed=0)
    scenes = plantedworld.faces(1, np.random.default_rng(3))
    drawn = plantedworld.draw(scenes)
    expected = model.encode_image(drawn)
    whole = [Image.fromarray(picture) for picture in drawn]
    paths = [tmp_path / f"{number}.png" for number in range(len(whole))]
    for picture, path in zip(whole, paths, strict=True):
        picture.save(path)
    for images in (scenes, list(drawn), whole, paths, [whole[0], *paths[1:]]):
        assert model.encode_image(images) == pytest.approx(expected, abs=1e-5)
    assert model.encode_image(paths * 30) == pytest.approx(np.tile(expected, (30, 1)), abs=1e-5)


@pytest.mark.parametrize("name", ["clip", "open-clip"])
def test_a_caption_longer_than_the_model_takes_is_refused_with_its_count(name):
    """14 words fill it, with a start and an end."""
    model = models.load(name, dose=3, seed=0)
    assert model.encode_text([" ".join(["nurse"] * 14)]).shape == (1, 48)
    with pytest.raises(ValueError, match=rf"text 1 has 17 tokens, and {name} takes 16"):
        model.encode_text(["a photo of a nurse", " ".join(["nurse"] * 15)])


def test_a_masked_text_longer_than_the_model_takes_is_refused_with_its_count(bert):
    """As many words as leave room for a mask, a start and an end; then one more."""
    words = ["nurse"] * (bert.limit - 3)
    assert bert.mask_log_prob([" ".join([*words, "[MASK]"])], ["nurse"]).shape == (1, 1)
    with pytest.raises(ValueError, match=rf"text 0 has {bert.limit + 1} tokens.*{bert.limit}"):
        bert.mask_log_prob([" ".join([*words, "pilot", "[MASK]"])], ["nurse"])


def test_open_clips_own_tokenizer_is_counted_as_it_counts():
    own = open_clip.tokenizer.SimpleTokenizer()
    texts = ["a photo of a housekeeper", "antidisestablishmentarianism " * 40, ""]
    real = [int((row != 0).sum()) for row in own(texts, context_length=1000)]
    assert _token_counts(own, texts).tolist() == real


@pytest.mark.parametrize("what", ["texts", "images"])
def test_a_lack_of_memory_does_not_change_vectors(clip, pictures, monkeypatch, what):
    encode, items = {
        "texts": (clip.encode_text, CAPTIONS * 3),
        "images": (clip.encode_image, pictures[:12]),
    }[what]
    expected, pass_over = encode(items), getattr(clip, f"encode_batch_of_{what}")

    def small(batch):
        if (len(batch) if what == "texts" else len(next(iter(batch.values())))) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return pass_over(batch)

    monkeypatch.setattr(clip, f"encode_batch_of_{what}", small)
    with pytest.warns(UserWarning, match="12 rows a batch did not fit in memory; went on with 3"):
        found = encode(items, batch_size=12)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_empty_sets_and_single_strings_are_refused(clip):
    with pytest.raises(ValueError, match="no texts"):
        clip.encode_text([])
    with pytest.raises(ValueError, match="no images"):
        clip.encode_image(np.empty((0, 64, 64, 3), dtype=np.uint8))
    with pytest.raises(TypeError, match="one string"):
        clip.encode_text("a photo of a nurse")


def test_the_registry_loads_planted_checkpoints_only_where_there_are_some():
    families = {models.REGISTRY[name].family for name in profile.TINY}
    assert families <= set(checkpoints.shipped()["family"])
    grounded = {"visualbert", "lxmert", "vilbert", "vilt", "flava", "albef", "vl_bert"}
    assert families == {"bert", "clip", "open_clip"} | grounded
    with pytest.raises(ValueError, match="never downloads"):
        models.load("roberta", profile="planted")
