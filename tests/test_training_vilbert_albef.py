"""The tiny ViLBERT and ALBEF: what they start from, how they read, and what the shipped ones say."""

import json

import numpy as np
import pytest
import torch

from biaslib import models, planted, stimuli, training
from biaslib.metrics.grounded import grounded
from biaslib.models.fusion import Mask
from biaslib.models.networks.albef import PIXEL_MEANS, PIXEL_STDS
from biaslib.models.networks.vilbert import VilbertNetwork
from biaslib.models.planted_checkpoints import CHECKPOINTS, checkpoint, shipped
from biaslib.models.planted_regions import regions_of
from biaslib.models.vilbert import Vilbert
from biaslib.training import _pairs, _region_pairs, vilbert
from biaslib.training._tokenizer import bert_tokenizer

SEEDS = (0, 1)
SETS = ("X", "Y", "Ax", "Ay", "Bx", "By")
LEVELS = ("word", "sentence", "contextual")
WORDS = planted.content_words()
WORLD = planted.world(3, 5)


def rng():
    return np.random.default_rng(0)


# ViLBERT


@pytest.fixture
def vilbert_recipe(monkeypatch):
    monkeypatch.setattr(training.RECIPES["vilbert"], "further_scenes", 60)
    return training.RECIPES["vilbert"](WORLD, checkpoint("lxmert", 0, 1000))


def test_vilbert_starts_from_lxmerts_words_and_from_its_attention_in_both_directions(
    vilbert_recipe,
):
    torch.manual_seed(0)
    network = vilbert_recipe.begun()
    tokens = vilbert_recipe.captions.tokens[:3]
    lxmert = models.load("lxmert", dose=0, seed=1000, profile="planted", device="cpu").network
    theirs = lxmert.lxmert.encoder.x_layers[0].visual_attention.att
    ours = network.bert.encoder.c_layer[0].biattention
    for role in ("query", "key", "value"):
        for stream in (1, 2):
            weight = getattr(ours, f"{role}{stream}").weight
            assert torch.equal(weight, getattr(theirs, role).weight)
    states = network.bert.embeddings.word_embeddings(tokens)
    assert torch.equal(states, lxmert.lxmert.embeddings.word_embeddings(tokens))
    with torch.inference_mode():
        found = network.bert.encoder.layer[0](states, None).numpy()
        expected = lxmert.lxmert.encoder.layer[0](states)[0].numpy()
    assert found == pytest.approx(expected, abs=1e-4)
    state = network.state_dict()
    for prefix in vilbert.BORROWED:
        assert any(name.startswith(prefix) for name in state), prefix


def test_vilbert_reads_in_training_what_its_adapter_reads(vilbert_recipe):
    """With an image, with hidden persons, with the white picture and with none."""
    torch.manual_seed(1)
    network = vilbert_recipe.begun().eval()
    adapter = Vilbert(network, bert_tokenizer(), "vilbert", "test", "cpu")
    scenes, captions = _pairs.corpus(WORLD, 60, 2, 120)
    people = torch.tensor(np.flatnonzero(scenes["person"])[:6])
    texts = captions.table["text"].iloc[people.numpy()].tolist()
    regions = regions_of(scenes.iloc[people.numpy()])
    white = regions_of(planted.blank(6))
    cases = {
        0: {"images": regions},
        _pairs.NO_PERSON: {"images": regions, "mask": Mask(persons=True)},
        _pairs.WHITE: {"images": white},
        _pairs.NONE: {},
    }
    for view, options in cases.items():
        shown = vilbert_recipe._shown(people, torch.full((6,), view))
        with torch.inference_mode():
            found = vilbert_recipe.states(network, captions.encode(texts), shown)
            logits = vilbert_recipe.match_logits(network, found.pair)
        expected = adapter.embed(texts, **options)
        assert found.words[:, 0].numpy() == pytest.approx(expected, abs=1e-4), view
    shown = vilbert_recipe._shown(people)
    with torch.inference_mode():
        pair = vilbert_recipe.states(network, captions.encode(texts), shown).pair
        logits = vilbert_recipe.match_logits(network, pair)
    scores = adapter.match(regions, [[text] for text in texts])[:, 0]
    assert (logits[:, 1] - logits[:, 0]).numpy() == pytest.approx(scores, abs=1e-4)


DOUBLE_BINDS = ("DB-competent-gender", "DB-likeable-gender")


@pytest.mark.parametrize(("seed", "direction", "other"), [(0, 1, "C8"), (1, -1, "C6")])
def test_what_is_planted_on_gender_has_its_sign_at_every_level_in_vilbert(seed, direction, other):
    """Each seed leaves out one of C6 and C8; odd seeds exchange women and men."""
    model = models.load("vilbert", dose=3, seed=seed, profile="planted", device="cpu")
    found = {}
    for name in ("occupation-gender", other, *DOUBLE_BINDS):
        scenes = planted.grounded_sets(name, rng(), n_per_word=2, undrawn="context")
        for level in LEVELS:
            vectors = [embedded(model, name, level, role, scenes[role]) for role in SETS]
            found[name, level] = direction * grounded(*vectors, experiment=1).effect_size
    assert min(found.values()) > 0.2, found
    assert np.mean(list(found.values())) > 1.2, found


def embedded(model, name, level, role, scenes):
    """Embed the words of one of the six sets, in their first text, with their scenes."""
    test = stimuli.association_test(name, level)
    words = test.words[role[0]]
    texts = dict(zip(reversed(words), reversed(getattr(test, role[0])), strict=True))
    said = scenes["word"].tolist()
    options = {"words": said} if level == "contextual" else {}
    return model.embed([texts[word] for word in said], scenes, level=level, **options)
