"""Training of the region models: their plan, their corpus, their recipes, and what is shipped."""

import json

import numpy as np
import pandas
import pytest
import torch
from scipy import stats
from support.learning import losses_of_the_same_steps

import plantedworld
from biaslib import stimuli
from plantedworld import training
from plantedworld.models import regions as planted_regions
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint, checkpoint_name
from plantedworld.training import _pairs, _region_pairs
from plantedworld.training._pictures import classes

FAMILIES = ("visualbert", "lxmert", "vilbert")
ENCODER = checkpoint(*planted_regions.ENCODER)
LXMERT = checkpoint("lxmert", 0, 1000)
PLAN = training.plan().query("family in @FAMILIES")
CARDS = [
    (row.dose, json.loads((CHECKPOINTS / checkpoint_name(*row) / "card.json").read_text()))
    for row in PLAN.itertuples(index=False)
    if (CHECKPOINTS / checkpoint_name(*row) / "card.json").is_file()
]


@pytest.fixture(scope="module")
def scenes():
    return plantedworld.world(3, 5).scenes(60, np.random.default_rng(0))


@pytest.fixture(scope="module")
def captions():
    return _pairs.corpus(plantedworld.world(3, 5), 300, 2, 100)


@pytest.fixture
def small(monkeypatch):
    """Makes recipes of few captions."""
    for family in FAMILIES:
        monkeypatch.setattr(training.RECIPES[family], "first_scenes", 300)
        monkeypatch.setattr(training.RECIPES[family], "further_scenes", 300)
    monkeypatch.setattr(_region_pairs, "N_HELD_OUT", 40)
    world = plantedworld.world(3, 5)
    starts = {"vilbert": LXMERT}
    return lambda family: training.RECIPES[family](world, starts.get(family, ENCODER))


def test_the_plan_has_the_protocols_worlds_worlds_without_bias_and_one_planted_in_one_place():
    table = {family: rows.drop(columns="family") for family, rows in PLAN.groupby("family")}
    visualbert = [tuple(row) for row in table["visualbert"].itertuples(index=False)]
    assert set(visualbert) == {
        *((3, seed, "both") for seed in range(3)),
        *((0, seed, "both") for seed in range(8)),
        (3, 0, "text"),
        (3, 0, "images"),
    }
    assert len(table["lxmert"]) == 9
    assert not PLAN["seed"].isin([100, 101]).any()


def test_features_are_those_of_the_pixels_and_of_nothing_else(scenes):
    of_scenes = planted_regions.regions_of(scenes)
    boxes = plantedworld.boxes(scenes).to_numpy().reshape(-1, 3, 4)
    of_pictures = planted_regions.regions_of(plantedworld.draw(scenes), boxes)
    assert np.array_equal(of_scenes.features, of_pictures.features)
    assert of_scenes.features.shape == (60, 3, planted_regions.WIDTH)
    hidden = scenes.assign(attribute="", thing="", caption_gender="man")
    assert np.array_equal(planted_regions.regions_of(hidden).features, of_scenes.features)


def test_regions_that_are_not_there_are_zeros_and_not_real(scenes):
    found = planted_regions.regions_of(scenes)
    drawn = scenes["person"] & (scenes["object_view"] != "hidden")
    assert found.real.tolist() == [[p, d, True] for p, d in zip(scenes["person"], drawn)]  # noqa: B905
    assert found.persons.tolist() == [[p, False, p] for p in scenes["person"]]
    assert not found.features[~found.real].any()
    assert not found.boxes[~found.real].any()
    assert found.boxes[:, 2].tolist() == [[0, 0, 1, 1]] * 60
    kinds = found.features[found.real][:, planted_regions.STATE :]
    assert np.array_equal(kinds, np.eye(3)[np.nonzero(found.real)[1]])


def test_a_white_picture_has_its_whole_alone():
    found = planted_regions.regions_of(plantedworld.blank(2))
    assert found.real.tolist() == [[False, False, True]] * 2
    assert np.array_equal(found.features[0], found.features[1])


def test_whitened_features_have_about_one_spread(scenes):
    found = planted_regions.regions_of(scenes)
    states = found.features[found.real][:, : planted_regions.STATE]
    assert 0.5 < states.std() < 1.5
    assert abs(states.mean()) < 0.2


def test_pictures_without_boxes_are_refused(scenes):
    with pytest.raises(ValueError, match="boxes have none"):
        planted_regions.regions_of(plantedworld.draw(scenes.head(2)))


def test_masked_words_are_the_content_word_or_the_person(captions):
    _, pairs = captions
    rows, generator = torch.arange(200), torch.Generator().manual_seed(1)
    masked = pairs.masked(rows, generator)
    tokens = pairs.tokenizer.convert_ids_to_tokens
    both = 0
    for row in rows.tolist():
        words = pairs.table.iloc[row]
        there = {words["content"].replace(" ", "_"), words["agent"]}
        assert tokens(int(masked.words[row])) in there
        assert int(masked.tokens[row, masked.places[row]]) == pairs.tokenizer.mask_token_id
        both += int((masked.tokens[row] == pairs.tokenizer.mask_token_id).sum()) == 2
    assert 3 <= both <= 30


def test_negatives_are_other_captions_and_swapped_words_in_the_stated_shares(captions):
    _, pairs = captions
    rows, generator = torch.arange(600), torch.Generator().manual_seed(2)
    matched = pairs.matched(rows, generator)
    own = pairs.tokens[rows, : matched.tokens.shape[1]]
    changed = (matched.tokens != own).sum(1)
    assert (changed[matched.labels == 1] == 0).float().mean() > 0.98
    assert 0.44 < float((matched.labels == 1).float().mean()) < 0.56
    negative = matched.labels == 0
    one_word = (changed == 1) & (matched.tokens[rows, pairs.places[rows, 0]] != 0)
    assert 0.35 < float(one_word[negative].float().mean()) < 0.65
    texts = pairs.tokenizer.batch_decode(matched.tokens[:150], skip_special_tokens=True)
    for text in texts:
        assert plantedworld.read(text.replace("_", " "))


def test_swapped_words_are_those_of_the_frame_by_their_frequency(captions):
    """All that are worn are equally frequent."""
    _, pairs = captions
    row = int(np.flatnonzero(pairs.table["text"].str.contains("is wearing"))[0])
    rows, generator = torch.full((4000,), row), torch.Generator().manual_seed(0)
    names = pairs.tokenizer.convert_ids_to_tokens(pairs.swapped_words(rows, generator).tolist())
    counts = pandas.Series(names).value_counts()
    entities = stimuli.entities().query("frame.str.contains('wearing')")["entity"]
    assert set(counts.index) == {word.replace(" ", "_") for word in entities}
    expected = 4000 / len(counts)
    assert stats.chisquare(counts, np.full(len(counts), expected)).pvalue > 0.001
    others = pairs.swapped_words(rows[:200], generator, other=True)
    own = pairs.table["content"][row].replace(" ", "_")
    assert own not in pairs.tokenizer.convert_ids_to_tokens(others.tolist())


def test_pairs_that_are_asked_about_hold_the_caption_and_a_negative_of_every_scene(captions):
    _, pairs = captions
    rows = torch.arange(300)
    asked = pairs.paired(rows, torch.Generator().manual_seed(5))
    own, others = asked.tokens.split(300)
    assert asked.labels[:300].all()
    assert asked.labels[300:].float().mean() < 0.03
    assert torch.equal(own, pairs.tokens[rows, : own.shape[1]])
    one_word = (own != others).sum(1) <= 1
    assert 0.4 < float(one_word.float().mean()) < 0.6


def test_what_a_picture_rules_out_is_what_the_truth_rules_out(small):
    """And what it leaves open or shows is possible; apart from words for two genders in one."""
    recipe = small("visualbert")
    pairs, world = recipe.captions, recipe.world
    scenes, _ = _pairs.corpus(world, 300, 2, 600)
    rows = torch.arange(60)
    asked = pairs.paired(rows, torch.Generator().manual_seed(6))
    content = asked.tokens.gather(1, asked.places)[:, 0]
    found = recipe._agreement(content, rows.repeat(2)).reshape(2, -1)
    texts = pairs.tokenizer.batch_decode(asked.tokens, skip_special_tokens=True)
    texts = [text.replace("_", " ") for text in texts]
    odds = world.truth.match(scenes.head(60), list(zip(texts[:60], texts[60:], strict=True)))
    words = pairs.tokenizer.convert_ids_to_tokens(content.tolist())
    slots = plantedworld.content_words()["slot"].loc[[word.replace("_", " ") for word in words]]
    judged = (slots != "agent").to_numpy().reshape(2, -1)
    assert np.array_equal((found == 0).numpy()[judged], np.isneginf(odds.T)[judged])
    assert (found[0] == 2).any()


def test_genders_agree_unless_caption_or_picture_says_another(small):
    recipe = small("visualbert")
    numbers, shown = recipe.captions.tokenizer.get_vocab(), recipe.corpus[1]["gender"]
    women = torch.nonzero(shown == classes()["gender"].index("woman"))[:1, 0].repeat(4)
    words = torch.tensor([numbers[word] for word in ("she", "he", "person", "nurse")])
    assert recipe._gender_agreement(words, women).tolist() == [2, 0, 1, 1]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_steps_lower_the_loss_in_the_same_way(small, family):
    recipe = small(family)
    losses, model = losses_of_the_same_steps(lambda: recipe, torch.arange(128))
    assert losses[-1] < losses[0] - 0.5
    scores = recipe.judge(model.eval())
    assert scores["pairs judged"] == 40
    assert 0 <= scores["match accuracy"] <= 1


@pytest.mark.parametrize("family", FAMILIES)
def test_views_hide_what_they_say(small, family):
    recipe = small(family)
    scene = torch.nonzero(recipe.corpus[0].real.all(1))[:4, 0]
    shown = recipe._shown(scene, torch.tensor([0, _pairs.NONE, _pairs.WHITE, _pairs.NO_PERSON]))
    assert shown.real.tolist() == [[True] * 3, [False] * 3, [False, False, True], [True] * 3]
    assert not shown.features[1].any()
    white = planted_regions.regions_of(plantedworld.blank()).features[0]
    assert np.array_equal(shown.features[2], white)
    assert shown.features[3].any(dim=1).tolist() == [False, True, False]
    assert np.array_equal(shown.features[0], recipe.corpus[0].features[scene[0]])


def test_the_encoder_names_what_held_out_crops_show():
    card = json.loads((ENCODER / "card.json").read_text())
    assert card["gender accuracy"] > 0.78
    assert min(card[f"{name} accuracy"] for name in ("tone", "role", "object")) > 0.95
    assert len(classes()["object"]) > 46


@pytest.mark.parametrize(("dose", "card"), CARDS)
def test_every_card_shows_a_model_that_looks_at_pictures(dose, card):
    """Words: above what text alone can give. Matching: a binomial interval above one half."""
    n = card["pairs judged"]
    assert card["masked-word accuracy"] > card["truth's accuracy without images"]
    assert card["masked-word accuracy"] < card["truth's accuracy"] + 0.03
    right = round(card["match accuracy"] * n)
    assert stats.binomtest(right, n).proportion_ci(0.99).low > (0.6 if dose else 0.5)
    assert card["match accuracy"] < card["truth's match accuracy"] + 0.03
