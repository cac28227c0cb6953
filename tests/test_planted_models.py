"""The adapters of the planted checkpoints: BERT's masked words, CLIP and OpenCLIP's vectors."""

import numpy as np
import open_clip
import pytest
import torch
import transformers
from PIL import Image

import plantedworld
from biaslib import models
from biaslib.models import capabilities
from biaslib.models.images import ImageError
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


def test_models_have_the_capabilities_that_studies_ask_for(bert, clip):
    assert bert.capabilities == {capabilities.EMBED, capabilities.FILL}
    assert clip.capabilities == {capabilities.ENCODE}


def test_masked_probabilities_are_those_of_the_head_over_the_whole_vocabulary(bert):
    path = checkpoint("bert", 3, 0)
    model = transformers.AutoModelForMaskedLM.from_pretrained(path, dtype=torch.float32).eval()
    numbers = bert.tokenizer.get_vocab()
    words = ["[CLS]", "the", "woman", "is", "wearing", "a", "[MASK]", ".", "[SEP]"]
    tokens = torch.tensor([[numbers[word] for word in words]])
    with torch.inference_mode():
        logits = model(tokens).logits[0, words.index("[MASK]")].double().numpy()
    expected = logits - np.log(np.exp(logits).sum())
    found = bert.mask_log_prob(["The woman is wearing an [MASK]."], ["apron", "suit", "nurse"])
    assert found[0] == pytest.approx(
        expected[[numbers[w] for w in ("apron", "suit", "nurse")]], abs=1e-5
    )


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
def test_pictures_of_several_sizes_are_resized_one_by_one(name):
    rng = np.random.default_rng(5)
    images = [rng.integers(0, 255, (size, 90, 3), np.uint8) for size in (40, 64, 200)]
    model = models.load(name, dose=3, seed=0)
    alone = np.concatenate([model.encode_image([image]) for image in images])
    assert model.encode_image(images) == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("name", ["clip", "open-clip"])
def test_a_bad_file_is_named(name, tmp_path):
    (tmp_path / "cut.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(ImageError, match=r"cut\.jpg"):
        models.load(name, dose=3, seed=0).encode_image([tmp_path / "cut.jpg"])


@pytest.mark.parametrize("name", ["clip", "open-clip"])
def test_a_caption_longer_than_the_model_takes_is_refused_with_its_count(name):
    """14 words fill it, with a start and an end."""
    model = models.load(name, dose=3, seed=0)
    assert model.encode_text([" ".join(["nurse"] * 14)]).shape == (1, 48)
    with pytest.raises(ValueError, match=rf"text 1 has 17 tokens, and {name} takes 16"):
        model.encode_text(["a photo of a nurse", " ".join(["nurse"] * 15)])


def test_open_clips_own_tokenizer_is_counted_as_it_counts():
    from biaslib.models.open_clip import _token_counts

    own = open_clip.tokenizer.SimpleTokenizer()
    texts = ["a photo of a housekeeper", "antidisestablishmentarianism " * 40, ""]
    real = [int((row != 0).sum()) for row in own(texts, context_length=1000)]
    assert _token_counts(own, texts).tolist() == real


def test_a_masked_text_longer_than_the_model_takes_is_refused_with_its_count(bert):
    """As many words as leave room for a mask, a start and an end; then one more."""
    words = ["nurse"] * (bert.limit - 3)
    assert bert.mask_log_prob([" ".join([*words, "[MASK]"])], ["nurse"]).shape == (1, 1)
    with pytest.raises(ValueError, match=rf"text 0 has {bert.limit + 1} tokens.*{bert.limit}"):
        bert.mask_log_prob([" ".join([*words, "pilot", "[MASK]"])], ["nurse"])


TEXTS = [
    "the woman is a [MASK].",
    "Aisha [MASK].",
    "[MASK] is a nurse.",
    "a photo of a [MASK]",
    "she is wearing an [MASK].",
    "the [MASK] is a judge.",
    "the [MASK]",
    "a [MASK]",
    "John is a [MASK].",
    "[MASK]",
]


@pytest.mark.parametrize("batch_size", [1, 2, 7])
@pytest.mark.parametrize("what", ["embed", "mask_log_prob", "encode_text", "encode_image"])
def test_results_agree_whatever_the_batch_size(bert, clip, pictures, what, batch_size):
    """Texts of many lengths; a batch of all is what the others are held against."""
    unmasked = [text.replace("[MASK]", "nurse") for text in TEXTS]
    run = {
        "embed": lambda size: bert.embed(unmasked, batch_size=size),
        "mask_log_prob": lambda size: bert.mask_log_prob(TEXTS, ["nurse", "he"], batch_size=size),
        "encode_text": lambda size: clip.encode_text(unmasked, batch_size=size),
        "encode_image": lambda size: clip.encode_image(pictures[:10], batch_size=size),
    }[what]
    together = run(10)
    assert len(together) == 10
    assert len(np.unique(together.round(4), axis=0)) == 10
    np.testing.assert_allclose(run(batch_size), together, atol=1e-5)


@pytest.mark.parametrize("what", ["texts", "images"])
def test_a_lack_of_memory_does_not_change_vectors(clip, pictures, monkeypatch, what):
    encode, items = {
        "texts": (clip.encode_text, CAPTIONS * 3),
        "images": (clip.encode_image, pictures[:12]),
    }[what]
    expected, pass_over = encode(items), getattr(clip, f"encode_batch_of_{what}")

    def small(batch):
        if len(batch) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return pass_over(batch)

    monkeypatch.setattr(clip, f"encode_batch_of_{what}", small)
    with pytest.warns(UserWarning, match="12 rows a batch did not fit in memory; went on with 3"):
        found = encode(items, batch_size=12)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_vision_tower_in_open_clip_is_the_one_in_transformers(clip, pictures):
    """Same tower, other projection: the vectors before it agree."""
    ours = open_clip.create_model_from_pretrained(f"local-dir:{checkpoint('open_clip', 3, 0)}")[0]
    theirs = transformers.CLIPModel.from_pretrained(checkpoint("clip", 3, 0), dtype=torch.float32)
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 127.5 - 1
    ours.visual.proj = None
    with torch.inference_mode():
        found = ours.float().eval().visual(pixels).numpy()
        expected = theirs.eval().vision_model(pixel_values=pixels).pooler_output.numpy()
    assert found == pytest.approx(expected, abs=1e-4)


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
