"""The tiny ViLBERT and ALBEF: what they start from, how they read, what the shipped ones say."""

import json

import numpy as np
import pytest
import torch
from scipy import stats
from support.learning import losses_of_the_same_steps

import plantedworld
from biaslib import models
from biaslib.metrics import caption_selection
from biaslib.models.albef import plain_caption
from biaslib.models.fusion import Mask
from biaslib.models.networks.albef import PIXEL_MEANS, PIXEL_STDS
from biaslib.models.vilbert import Vilbert
from plantedworld import training
from plantedworld.models.checkpoints import checkpoint, shipped
from plantedworld.models.regions import regions_of
from plantedworld.training import _checkpoint, _pairs, albef, vilbert
from plantedworld.training._tokenizer import albef_tokenizer, bert_tokenizer

WORLD = plantedworld.world(3, 5)


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
    white = regions_of(plantedworld.blank(6))
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


def test_the_shipped_vilbert_fills_masks_with_what_it_sees_and_matches():
    """Judged anew through the adapter, on the held-out captions of its card."""
    held_out = _pairs.HeldOut(plantedworld.world(3, 0))
    table, model = held_out.captions.table, models.load("vilbert", profile="planted", device="cpu")
    scores = model.match(held_out.scenes, _own_and_swapped(held_out))
    found = _pairs.preferred(scores[:, 0], scores[:, 1])
    card = json.loads((checkpoint("vilbert", 3, 0) / "card.json").read_text())
    assert found == pytest.approx(card["match accuracy"], abs=0.02)
    masked = [_pairs.mask_last(*pair) for pair in zip(table["text"], table["content"], strict=True)]
    words = list(plantedworld.vocabulary())
    with_images = model.mask_log_prob(masked, words, held_out.scenes)
    without = model.mask_log_prob(masked, words)
    right = words_of(with_images) == table["content"].to_numpy()
    assert right.mean() == pytest.approx(card["masked-word accuracy"], abs=0.02)
    blind = words_of(without) == table["content"].to_numpy()
    assert blind.mean() < right.mean() - 0.03


def words_of(log_prob):
    return plantedworld.vocabulary()[log_prob.argmax(axis=1)]


def _own_and_swapped(held_out):
    swapped = held_out.captions.tokenizer.batch_decode(held_out.swapped, skip_special_tokens=True)
    changed = [text.replace(" .", ".").replace("_", " ") for text in swapped]
    return list(zip(held_out.captions.table["text"], changed, strict=True))


# ALBEF


@pytest.fixture
def albef_recipe(monkeypatch):
    monkeypatch.setattr(albef, "N_SCENES", 48)
    return training.RECIPES["albef"](WORLD, checkpoint("vit", 0, 1000))


def test_albefs_vision_transformer_is_the_tower_though_it_reads_other_colours(albef_recipe):
    torch.manual_seed(0)
    network = albef_recipe.build_model().eval()
    pictures = plantedworld.draw(albef_recipe.corpus[0].head(4))
    colours = torch.tensor(pictures).permute(0, 3, 1, 2) / 255
    means, stds = (torch.tensor(each)[:, None, None] for each in (PIXEL_MEANS, PIXEL_STDS))
    tower = albef_recipe.tower
    with torch.inference_mode():
        found = network.encode_image((colours - means) / stds).numpy()
        expected = tower(pixel_values=2 * colours - 1).last_hidden_state.numpy()
    assert found == pytest.approx(expected, abs=1e-3)


def test_albef_reads_in_training_what_its_adapter_reads(albef_recipe, tmp_path):
    """Captions with full stops, and one whose word has a hyphen."""
    torch.manual_seed(1)
    whole = albef_recipe.build().eval()
    albef_recipe.save(whole, tmp_path)
    adapter = models.load("albef", checkpoint=tmp_path, device="cpu")
    network = adapter.network
    scenes = albef_recipe.corpus[0].head(4)
    texts = [*albef_recipe.captions.table["text"].iloc[:3].tolist(), "a photo of a low-wage person"]
    tokens = albef_recipe.captions.encode(texts)
    pictures = albef_recipe.pictures[:4]
    with torch.inference_mode():
        states = albef_recipe.states(network, tokens, pictures)
        logits = albef_recipe.match_logits(network, states.first).numpy()
        vectors = albef_recipe.text_vectors(network, tokens).numpy()
        seen = albef_recipe.image_vectors(network, pictures).numpy()
    near = {"abs": 0.02}
    assert adapter.embed(texts, scenes) == pytest.approx(states.first.numpy(), **near)
    scores = adapter.match(scenes, [[text] for text in texts])[:, 0]
    assert scores == pytest.approx(logits[:, 1] - logits[:, 0], **near)
    assert adapter.encode_text(texts) == pytest.approx(vectors, **near)
    assert adapter.encode_image(scenes) == pytest.approx(seen, **near)


def test_albefs_tokenizer_knows_words_without_their_hyphens():
    ours, others = albef_tokenizer(), bert_tokenizer()
    assert ours.get_vocab() == others.get_vocab()
    for word in (word for word in plantedworld.vocabulary() if "-" in word):
        text = f"a photo of a {word} person"
        assert ours(plain_caption(text))["input_ids"] == others(text)["input_ids"], word


def test_albef_learns_the_same_every_time(albef_recipe):
    losses, model = losses_of_the_same_steps(lambda: albef_recipe, torch.arange(96), 2e-3)
    assert losses[3] < 0.9 * losses[0]
    untouched = model.model.visual_encoder.encoder.layers[0].mlp.fc1.weight
    assert torch.equal(
        untouched, albef_recipe.build_model().visual_encoder.encoder.layers[0].mlp.fc1.weight
    )


ALBEFS = [(row.dose, row.seed, row.path) for row in shipped("albef").itertuples()]


@pytest.mark.parametrize(("dose", "seed", "path"), ALBEFS)
def test_every_albef_guesses_words_from_pictures_and_tells_swapped_words_apart(dose, seed, path):
    """Words: above what text alone can give. Matching: above one half, at dose 3 surely."""
    card = json.loads((path / "card.json").read_text())
    n = card["pairs judged"]
    words = stats.binomtest(round(card["masked-word accuracy"] * n), n).proportion_ci(0.99)
    match = stats.binomtest(round(card["match accuracy"] * n), n).proportion_ci(0.99)
    assert words.low > card["truth's accuracy without images"]
    assert match.low > (0.5 if dose else 0.47)
    assert card["match accuracy"] < card["truth's match accuracy"] + 0.02
    assert card["contrastive retrieval"] > 5 * card["contrastive chance"]
    assert card["starts from"] == _checkpoint._start("albef", plantedworld.world(dose, seed))
    assert card["and from"] == "lxmert-dose0-seed1000"
    assert sum(file.stat().st_size for file in path.iterdir()) < 0.75e6


CAPTIONS = ["stereotype", "anti-stereotype", "photo of a thing"]


@pytest.mark.parametrize(
    "seed", shipped("albef").query("dose == 3 and planted_in == 'both'")["seed"].tolist()
)
def test_albef_chooses_relevant_captions_and_the_object_in_the_picture(seed):
    """By its unit vectors, as study 4 scores it, and by the matching head."""
    model = models.load("albef", dose=3, seed=seed, profile="planted", device="cpu")
    table = plantedworld.caption_choices(plantedworld.world(3, seed), 40, rng())
    texts = table[CAPTIONS].to_numpy()
    vectors = model.encode_text(texts.ravel()).reshape(*texts.shape, -1)
    cosines = np.einsum("ncd,nd->nc", vectors, model.encode_image(table))
    for scores in (cosines, model.match(table, texts.tolist())):
        assert caption_selection.vlrs(scores).value > 90
        objects = (table["category"] == "gender").to_numpy()
        own = np.where(table["label"] == "stereotype", scores[:, 0], scores[:, 1])
        other = np.where(table["label"] == "stereotype", scores[:, 1], scores[:, 0])
        assert (own > other)[objects].mean() > 0.7
    tones = (table["category"] == "tone").to_numpy()
    assert (cosines[:, 0] > cosines[:, 1])[tones].mean() > 0.6
