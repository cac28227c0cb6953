"""VisualBERT and LXMERT against direct calls of transformers, and the features that they read."""

import shutil

import numpy as np
import pytest
import torch
import transformers
from support import families, small_models
from support.families import WIDTH, regions

from biaslib import models
from biaslib.models.fusion import Mask
from biaslib.pictures.regions import RegionFeatures

TEXTS = ["the woman is carrying a nurse.", "old", "a man is here.", "the pilot is a tall woman."]
MASKED = ["the [MASK] is a nurse.", "[MASK]", "a man is [MASK] here.", "the tall [MASK]."]
CANDIDATES = ["woman", "man", "nurse"]
CAPTIONS = [[text, "the nurse is here.", "a man"] for text in TEXTS]
WORDS = ["carrying", "old", "man", "woman"]


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The two networks and the folders in which they lie."""
    kinds = {"visualbert": transformers.VisualBertForPreTraining}
    kinds |= {"lxmert": transformers.LxmertForPreTraining}
    found = {}
    for name, kind in kinds.items():
        folder = families.save(name, tmp_path_factory.mktemp("families") / name)
        found[name] = (kind.from_pretrained(folder).eval(), folder)
    return found


@pytest.fixture(params=["visualbert", "lxmert"])
def pair(request, networks):
    """A loaded model, and a direct call of its network for one row."""
    network, folder = networks[request.param]
    model = models.load(request.param, checkpoint=folder, device="cpu")
    direct = {"visualbert": direct_visualbert, "lxmert": direct_lxmert}[request.param]
    return model, lambda text, row=None: direct(network, text, row)


def tokens_of(text):
    return small_models.tokenizer()(text, return_tensors="pt")["input_ids"]


def direct_visualbert(network, text, row):
    """Return the states of a text, log-probabilities of words and the matching logits."""
    ids, visual = tokens_of(text), {}
    if row is not None:
        features, _ = there(row)
        types = torch.zeros(features.shape[:2], dtype=torch.long)
        visual = {"visual_embeds": features, "visual_token_type_ids": types}
    with torch.inference_mode():
        found = network(input_ids=ids, output_hidden_states=True, **visual)
    states = found.hidden_states[-1][0, : ids.shape[1]]
    words = found.prediction_logits[0, : ids.shape[1]].log_softmax(-1)
    return states, None, words, found.seq_relationship_logits[0]


def direct_lxmert(network, text, row):
    features, boxes = (
        (torch.zeros(1, 1, WIDTH), torch.zeros(1, 1, 4)) if row is None else there(row)
    )
    with torch.inference_mode():
        found = network(
            input_ids=tokens_of(text),
            visual_feats=features,
            visual_pos=boxes,
            output_hidden_states=True,
        )
    states = (found.language_hidden_states[-1][0], found.vision_hidden_states[-1][0, 0])
    words = found.prediction_logits[0].log_softmax(-1)
    return *states, words, found.cross_relationship_score[0]


def there(row):
    """Return features and boxes of the real regions of one picture, as tensors."""
    real = row.real[0]
    return torch.tensor(row.features[0, real])[None], torch.tensor(row.boxes[0, real])[None]


def near(found, expected):
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5, rtol=1e-5)


# Values


def test_embeddings_are_the_states_that_transformers_gives(pair):
    model, direct = pair
    images = regions()
    states = [direct(text, images[i])[0] for i, text in enumerate(TEXTS)]
    near(model.embed(TEXTS, images), [each[0] for each in states])
    near(model.embed(TEXTS, images, "word"), [each[0] for each in states])
    places = [4, 1, 2, 6]
    contextual = [each[place] for each, place in zip(states, places, strict=True)]
    near(model.embed(TEXTS, images, "contextual", WORDS), contextual)


def test_masked_words_are_the_probabilities_that_transformers_gives(pair):
    model, direct = pair
    images = regions()
    columns = small_models.tokenizer().convert_tokens_to_ids(CANDIDATES)
    places = [2, 1, 4, 3]
    logs = [direct(text, images[i])[2][places[i], columns] for i, text in enumerate(MASKED)]
    near(model.mask_log_prob(MASKED, CANDIDATES, images), logs)


def test_index_1_is_a_match(pair):
    model, direct = pair
    images = regions()
    logits = [[direct(text, images[i])[3] for text in row] for i, row in enumerate(CAPTIONS)]
    near(model.match(images, CAPTIONS), [[each[1] - each[0] for each in row] for row in logits])


def test_without_an_image_the_words_alone_are_read(pair):
    model, direct = pair
    found = [direct(text) for text in TEXTS]
    near(model.embed(TEXTS), [each[0][0] for each in found])
    columns = small_models.tokenizer().convert_tokens_to_ids(CANDIDATES)
    near(model.mask_log_prob(MASKED[:1], CANDIDATES), [direct(MASKED[0])[2][2, columns]])
    nothing = regions()
    nothing = RegionFeatures(
        nothing.features, nothing.boxes, nothing.real & False, nothing.persons, nothing.sizes
    )
    near(model.embed(TEXTS, nothing), [each[0][0] for each in found])


# Hiding


def test_hidden_persons_have_features_of_zero_and_keep_their_box(pair):
    model, direct = pair
    images = regions()
    features = np.where(images.persons[..., None], 0, images.features)
    hidden = RegionFeatures(features, images.boxes, images.real, images.persons, images.sizes)
    states = [direct(text, hidden[i])[0][0] for i, text in enumerate(TEXTS)]
    found = model.embed(TEXTS, images, mask=Mask(persons=True))
    near(found, states)
    assert np.abs(found - model.embed(TEXTS, images)).max() > 1e-3


# Checkpoints


def test_lxmert_may_be_without_the_heads_that_nothing_reads(networks, tmp_path):
    network, folder = networks["lxmert"]
    shutil.copytree(folder, tmp_path / "less")
    unread = ("answer_head", "obj_predict_head")
    weights = {
        key: each for key, each in network.state_dict().items() if not key.startswith(unread)
    }
    network.save_pretrained(tmp_path / "less", state_dict=weights)
    less = models.load("lxmert", checkpoint=tmp_path / "less", device="cpu")
    whole = models.load("lxmert", checkpoint=folder, device="cpu")
    expected = whole.embed(TEXTS, regions())
    assert np.allclose(less.embed(TEXTS, regions()), expected, atol=1e-5)


# Features
