"""What VL-BERT, ViLBERT and ALBEF have to themselves: hiding, punctuation, files of the authors."""

import dataclasses

import numpy as np
import pytest
import torch
from support import families, small_models
from support.families import WIDTH
from support.official import save_official

from biaslib import models
from biaslib.checkpoints.weights import CheckpointError
from biaslib.models import albef, vl_bert
from biaslib.models.fusion import Mask
from biaslib.models.networks.vl_bert import VlBertConfig, VlBertNetwork

TEXTS = ["the woman is a nurse.", "a man is here.", "the pilot is old tall"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    root = tmp_path_factory.mktemp("families")
    return {
        name: models.load(name, checkpoint=families.save(name, root / name), device="cpu")
        for name in ("vl-bert", "vilbert", "albef")
    }


def ids_of(model, text):
    return torch.tensor([model._tokens([text])[0].ids])


# What comes back


def test_captions_are_prepared_as_the_authors_do():
    assert albef.plain_caption("a 'black/white' cat-like: (thing) #1; really?!") == (
        "a black white cat like thing 1 really"
    )


# Hiding


@pytest.mark.parametrize(("name", "hides"), [("vl-bert", True), ("vilbert", False)])
def test_where_a_hidden_person_is(loaded, name, hides):
    model, mask, regions = loaded[name], Mask(persons=True), families.regions(3)
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


def test_vl_bert_that_never_read_text_alone():
    config = VlBertConfig(**families.BERT, feature_size=WIDTH, text_only=False)
    tokenizer = small_models.tokenizer()
    model = vl_bert.VlBert(VlBertNetwork(config), tokenizer, "vl-bert", "random", "cpu")
    assert model.embed(TEXTS, families.regions(3)).shape == (3, 32)
    with pytest.raises(ValueError, match=r"vl-bert cannot embed texts\. Its weights"):
        model.embed(TEXTS)


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
