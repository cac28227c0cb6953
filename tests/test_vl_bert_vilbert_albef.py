"""VL-BERT, ViLBERT and ALBEF through their adapters: what reaches the networks, and what returns.

Networks of random weights; what they compute is compared with the official implementations in
test_networks_parity.py. Here the adapter is compared with the bare network, one text at a time.
"""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image
from support import families, small_models
from support.families import WIDTH
from support.official import save_official

from biaslib import models
from biaslib.checkpoints.weights import CheckpointError
from biaslib.models import albef, vl_bert
from biaslib.models.fusion import Mask
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork
from biaslib.pictures.regions import RegionFeatures

TEXTS = ["the woman is a nurse.", "a man is here.", "the pilot is old tall"]


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    root = tmp_path_factory.mktemp("families")
    return {
        name: models.load(name, checkpoint=families.save(name, root / name), device="cpu")
        for name in ("vl-bert", "vilbert", "albef")
    }


@pytest.fixture(scope="module")
def regions():
    """Three images: two regions, three regions with a person, and none at all."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 0.4, (3, 3, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.2, 0.5, (3, 3, 2))], axis=2)
    real = np.array([[True, True, False], [True, True, True], [False, False, False]])
    persons = np.array([[False, False, False], [False, True, False], [False, False, False]])
    features = rng.normal(size=(3, 3, WIDTH))
    return RegionFeatures(features, boxes, real, persons, [[64, 64], [200, 80], [64, 64]])


def images_for(name, regions):
    return small_models.pictures(3) if name == "albef" else regions


def ids_of(model, text):
    return torch.tensor([model._tokens([text])[0].ids])


def bare_vl_bert(model, text, regions, row):
    """VL-BERT on one text with the regions of a row, written out."""
    ids, n = ids_of(model, text), int(regions.real[row].sum())
    width, height = {64: (600, 600), 200: (1000, 400)}[regions.sizes[row, 0]]
    boxes = regions.boxes[row, :n] * [width, height, width, height]
    boxes = np.minimum(boxes, [width - 1, height - 1, width - 1, height - 1])
    right, bottom = (regions.sizes[row] - 1) * [width, height] / regions.sizes[row]
    features = regions.features[row, :n]
    mean = features.mean(axis=0) if n else np.zeros(WIDTH)
    boxes = np.concatenate([[[0, 0, right, bottom]], boxes])
    features = np.concatenate([[mean], features])
    found = model.network(
        ids,
        torch.ones_like(ids),
        boxes=torch.tensor(boxes[None], dtype=torch.float32),
        sizes=torch.tensor([[width, height]]),
        features=torch.tensor(features[None], dtype=torch.float32),
    )
    return found[0][0].numpy()


def bare_vilbert(model, text, regions, row, **options):
    ids, n = ids_of(model, text), int(regions.real[row].sum())
    features = regions.features[row, :n]
    mean = features.mean(axis=0) if n else np.zeros(WIDTH)
    boxes = np.concatenate([[[0, 0, 1, 1]], regions.boxes[row, :n]])
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return model.network(
        ids,
        torch.ones_like(ids),
        torch.tensor(np.concatenate([[mean], features])[None], dtype=torch.float32),
        torch.tensor(np.column_stack([boxes, areas])[None], dtype=torch.float32),
        torch.ones(1, n + 1),
        **options,
    )


def bare_albef(model, text, picture):
    ids = ids_of(model, text)
    image = Image.fromarray(picture).resize((32, 32), Image.Resampling.BICUBIC)
    means = np.array([0.48145466, 0.4578275, 0.40821073])
    pixels = (np.asarray(image) / 255 - means) / [0.26862954, 0.26130258, 0.27577711]
    pixels = torch.tensor(pixels.transpose(2, 0, 1)[None], dtype=torch.float32)
    return model.network(ids, torch.ones_like(ids), pixels)


# What comes back


def test_vl_bert_puts_the_whole_image_first(loaded, regions):
    model = loaded["vl-bert"]
    found = model.embed(TEXTS, regions)
    expected = [bare_vl_bert(model, text, regions, row)[0] for row, text in enumerate(TEXTS)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_vl_bert_reads_text_alone_as_it_was_trained(loaded):
    model = loaded["vl-bert"]
    found = model.embed(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        ids = ids_of(model, text)
        expected = model.network(ids, torch.ones_like(ids))[0][0, 0]
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_vilbert_puts_the_whole_image_first(loaded, regions):
    model = loaded["vilbert"]
    found = model.embed(TEXTS, regions)
    scores = model.match(regions, [[text] for text in TEXTS])
    for row, text in enumerate(TEXTS):
        bare = bare_vilbert(model, text, regions, row)
        np.testing.assert_allclose(found[row], bare.text[0, 0], atol=1e-5)
        logits = model.network.match_logits(bare)[0]
        np.testing.assert_allclose(scores[row, 0], logits[0] - logits[1], atol=1e-5)


def test_albef_reads_plain_captions_without_sep(loaded):
    model, pictures = loaded["albef"], small_models.pictures(3)
    row = ids_of(model, "the woman is a nurse.")[0].tolist()
    words = [small_models.VOCABULARY[number] for number in row]
    assert words == ["[CLS]", "the", "woman", "is", "a", "nurse"]
    found = model.embed(TEXTS, pictures)
    scores = model.match(pictures, [[text] for text in TEXTS])
    for row, (text, picture) in enumerate(zip(TEXTS, pictures, strict=True)):
        bare = bare_albef(model, text, picture)
        np.testing.assert_allclose(found[row], bare[0, 0], atol=1e-5)
        logits = model.network.match_logits(bare)[0]
        np.testing.assert_allclose(scores[row, 0], logits[1] - logits[0], atol=1e-5)


def test_captions_are_prepared_as_the_authors_do():
    assert albef.plain_caption("a 'black/white' cat-like: (thing) #1; really?!") == (
        "a black white cat like thing 1 really"
    )


@pytest.mark.parametrize("name", ["vl-bert", "vilbert", "albef"])
def test_masked_words(loaded, regions, name):
    model, images = loaded[name], images_for(name, regions)
    texts = ["the woman is a [MASK].", "a [MASK] is here", "the [MASK]"]
    candidates = ["nurse", "pilot", "man"]
    found = model.mask_log_prob(texts, candidates, images)
    assert found.shape == (3, 3)
    bare = {
        "vl-bert": lambda row: torch.tensor(bare_vl_bert(model, texts[row], regions, row)),
        "albef": lambda row: bare_albef(model, texts[row], images[row])[0],
        "vilbert": lambda row: bare_vilbert(model, texts[row], regions, row).text[0],
    }[name]
    columns = [small_models.VOCABULARY.index(each) for each in candidates]
    for row, text in enumerate(texts):
        place = ids_of(model, text)[0].tolist().index(small_models.VOCABULARY.index("[MASK]"))
        logits = model.word_logits(bare(row)[place]).log_softmax(-1)
        np.testing.assert_allclose(found[row], logits[columns], atol=1e-4)


# Hiding


@pytest.mark.parametrize(("name", "hides"), [("vl-bert", True), ("vilbert", False)])
def test_where_a_hidden_person_is(loaded, regions, name, hides):
    model, mask = loaded[name], Mask(persons=True)
    boxes = regions.boxes.copy()
    boxes[regions.persons] = [0.1, 0.2, 0.3, 0.9]
    other = dataclasses.replace(regions, boxes=boxes)
    found = [model.embed(TEXTS, each, mask=mask)[1] for each in (regions, other)]
    assert (np.abs(found[0] - found[1]).max() < 1e-6) == hides


@pytest.mark.parametrize("word", ["car-carry", "car/carry", "car'a", "CAR-carry"])
def test_albef_hides_words_that_it_reads_without_their_punctuation(loaded, word):
    model, pictures = loaded["albef"], small_models.pictures(2)
    texts = [f"the woman is a {word.lower()} nurse.", "the man is here."]
    found = model.embed(texts, pictures, mask=Mask(words=[word, "-"]))
    seen = model.embed(texts, pictures)
    pieces = len(ids_of(model, word.lower())[0]) - 1
    hidden = "[MASK]" * pieces
    expected = model.embed([f"the woman is a {hidden} nurse.", texts[1]], pictures)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found[0] - seen[0]).max() > 1e-3
    np.testing.assert_allclose(found[1], seen[1], atol=1e-5)


# What is refused


def test_vl_bert_that_never_read_text_alone(regions):
    config = VlBertConfig(**families.BERT, feature_size=WIDTH, text_only=False)
    tokenizer = small_models.tokenizer()
    model = vl_bert.VlBert(VlBertNetwork(config), tokenizer, "vl-bert", "random", "cpu")
    assert model.embed(TEXTS, regions).shape == (3, 32)
    with pytest.raises(ValueError, match=r"vl-bert cannot embed texts\. Its weights"):
        model.embed(TEXTS)


def test_vilbert_without_an_image_reads_a_region_that_is_not_there(loaded):
    model = loaded["vilbert"]
    found = model.embed(TEXTS)
    ids = ids_of(model, TEXTS[0])
    nothing, places = torch.zeros(1, 1, WIDTH), torch.zeros(1, 1, 5)
    none_real = torch.zeros(1, 1, dtype=torch.bool)
    expected = model.network(ids, torch.ones_like(ids), nothing, places, none_real).text[0, 0]
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


# Loading


def test_files_of_the_authors_load_with_a_tokenizer_beside_them(tmp_path, loaded, monkeypatch):
    network = loaded["vl-bert"].network
    path = save_official(network, tmp_path / "vl-bert-base-prec.model")
    with pytest.raises(CheckpointError, match=r"no tokenizer in .*put vocab.txt and tokenizer_con"):
        models.load("vl-bert", checkpoint=path, device="cpu")
    small_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"hidden_size 32, .* how many heads there are is in"):
        models.load("vl-bert", checkpoint=path, device="cpu")
    monkeypatch.setattr(VlBertNetwork, "config_of", lambda _: network.config)
    again = models.load("vl-bert", checkpoint=path, device="cpu")
    assert again.revision.startswith("vl-bert-base-prec.model, sha256 ")
    assert np.allclose(again.embed(TEXTS), loaded["vl-bert"].embed(TEXTS), atol=1e-5)


def test_sizes_are_cut_and_not_rounded():
    """An image of 500 x 375 pixels becomes 800 x 600; one of 1000 x 333 stays below 1000."""
    sizes = torch.tensor([[500, 375], [333, 1000], [640, 427]])
    assert vl_bert.resized(sizes).tolist() == [[800, 600], [333, 1000], [899, 600]]
