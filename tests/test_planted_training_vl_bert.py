"""The tiny VL-BERT: what it starts from, what it reads, and its scores beside their planted truth.

The scores of study 2 (Srinivasan and Bisk 2021) over 40 entities, in pictures whose object is
hidden: in plain sight the truth is certain, whoever is in the picture.
"""

import functools
import json

import numpy as np
import pandas
import pytest
import torch
from scipy import stats
from support.learning import losses_of_the_same_steps
from transformers import BertForMaskedLM

import plantedworld
from biaslib import models, stimuli
from biaslib.metrics import masked_lm
from biaslib.models.fusion import Mask
from plantedworld import training
from plantedworld.models import regions as planted_regions
from plantedworld.models.checkpoints import checkpoint, shipped
from plantedworld.training import vl_bert
from plantedworld.training._region_pairs import Shown

SEEDS = (0, 1, 2, 3, 4)
ENTITIES = stimuli.entities().query("set == 'gendered'").reset_index(drop=True)
PLAN = training.plan().query("family == 'vl_bert'")
AGENTS = {"f": "woman", "m": "man", "p": "person"}


def sentence(frame: str, agent: str) -> str:
    return frame.replace("{agent}", agent).replace("{entity}", "[MASK]").replace("The", "the")


@functools.cache
def scenes(split: str = "train") -> pandas.DataFrame:
    """Six women and six men for every entity, which is hidden, with looks of training or new."""
    rng = np.random.default_rng(11)
    return plantedworld.agents_with_entities(rng, list(ENTITIES["entity"]), 6, "hidden", split)


@functools.cache
def regions(split: str):
    return planted_regions.regions_of(scenes(split))


def log_p(model, agent: str, table: pandas.DataFrame, images=None) -> np.ndarray:
    """Log-probability of each row's entity in its own sentence, (n,)."""
    texts = [sentence(frame, agent) for frame in table["frame"]]
    entities = list(ENTITIES["entity"])
    found = model.mask_log_prob(texts, entities, *([] if images is None else [images]))
    return found[np.arange(len(texts)), [entities.index(each) for each in table["entity"]]]


def scores(model, before, images) -> pandas.DataFrame:
    """S_PT, S_L and S_V for each gender, and B of S_L, with images and without; 40 rows."""
    alone = {g: log_p(model, agent, ENTITIES) for g, agent in AGENTS.items()}
    text = {g: log_p(before, agent, ENTITIES) for g, agent in AGENTS.items()}
    seen = {g: log_p(model, agent, scenes(), images) for g, agent in AGENTS.items()}
    men = (scenes()["gender"] == "man").to_numpy()
    rows = []
    for index, entity in enumerate(ENTITIES["entity"]):
        here = (scenes()["entity"] == entity).to_numpy()
        row = {}
        for g, of_gender in (("f", ~men), ("m", men)):
            shift = masked_lm.pretraining_shift([alone[g][index]], [text[g][index]])
            row[f"S_PT {g}"] = shift.score
            row[f"S_L {g}"] = masked_lm.language_association(seen[g][here], seen["p"][here]).score
            visual = masked_lm.visual_association(seen["p"][here & of_gender], alone["p"][index])
            row[f"S_V {g}"] = visual.score
        row["B"] = row["S_L f"] - row["S_L m"]
        row["B without image"] = alone["f"][index] - alone["m"][index]
        row["B of S_V"] = row["S_V f"] - row["S_V m"]
        rows.append(row)
    return pandas.DataFrame(rows, index=ENTITIES["entity"])


@functools.cache
def truth(dose: float, direction: int, planted_in: str = "both") -> pandas.DataFrame:
    """The planted scores; those of entities depend on the parity of the seed alone.

    BERT's text corpus is planted in both.
    """
    world, text = (
        plantedworld.world(dose, direction, planted_in),
        plantedworld.world(dose, direction),
    )
    return scores(world.truth, text.text_truth, scenes())


@functools.cache
def found(dose: float, seed: int, planted_in: str = "both", split: str = "train"):
    """The scores of a shipped model, and of BERT that it started from."""
    model = models.load("vl-bert", dose=dose, seed=seed, planted_in=planted_in)
    return scores(model, models.load("bert", dose=dose, seed=seed), regions(split))


def statistics(
    dose: float, split: str = "train", seeds=SEEDS, planted_in="both"
) -> pandas.DataFrame:
    """Rank correlation, slope and root mean square; a row a score, means over seeds and genders."""
    tables = []
    for seed in seeds:
        planted_scores = truth(dose, seed % 2, planted_in)
        rows = {}
        for name, values in found(dose, seed, planted_in, split).items():
            row = {"rms": np.sqrt(np.mean(values**2))}
            if planted_scores[name].std() > 1e-6:
                row["rank"] = stats.spearmanr(planted_scores[name], values)[0]
                row["slope"] = np.polyfit(planted_scores[name], values, 1)[0]
            rows[name] = row
        tables.append(pandas.DataFrame(rows).T)
    mean = sum(tables) / len(tables)
    for name in ("S_PT", "S_L", "S_V"):
        mean.loc[name] = mean.loc[[f"{name} f", f"{name} m"]].mean()
    return mean


@pytest.fixture
def recipe(monkeypatch):
    """The recipe on few captions."""
    monkeypatch.setattr(vl_bert.VlBertRecipe, "further_scenes", 200)
    monkeypatch.setattr("plantedworld.training._region_pairs.N_HELD_OUT", 40)
    return vl_bert.VlBertRecipe(plantedworld.world(3, 5), checkpoint("bert", 3, 0))


# What it starts from, and what it reads


def test_the_plan_has_the_worlds_that_study_2_rests_on():
    found = {tuple(row) for row in PLAN.drop(columns="family").itertuples(index=False)}
    assert found == {
        *((dose, seed, "both") for dose in (0, 1, 3) for seed in SEEDS),
        (3, 0, "text"),
        (3, 0, "images"),
    }


def test_it_starts_as_the_bert_of_its_world(recipe):
    """Embeddings of words, every layer and the masked-word head."""
    bert = BertForMaskedLM.from_pretrained(recipe.start, dtype=torch.float32).eval()
    torch.manual_seed(0)
    network = recipe.begun().eval()
    tokens = recipe.captions.tokens[:50]
    there = tokens != recipe.captions.tokenizer.pad_token_id
    with torch.inference_mode():
        embedded = bert.bert.embeddings(tokens)
        found = network(tokens, there)
        hidden = torch.where(there, 0.0, -1e4)[:, None, None]
        ours = network.word_logits(network.vlbert.encoder(embedded, hidden))
        expected = bert(tokens, attention_mask=there.long()).logits
    is_text = found.is_text[:, : tokens.shape[1]]
    np.testing.assert_allclose(
        found.embedded[:, : tokens.shape[1]][is_text], embedded[there], atol=1e-5
    )
    np.testing.assert_allclose(ours[there], expected[there], atol=1e-4)


def test_it_reads_in_training_what_the_adapter_reads(recipe):
    """Pictures, pictures whose people are hidden, and no picture."""
    table = recipe.world.scenes(30, np.random.default_rng(4))
    found = planted_regions.regions_of(table)
    model = models.load("vl-bert", dose=3, seed=0)
    rows = np.arange(30)
    for mask in (None, Mask(persons=True)):
        theirs = model.visual(model.prepare(table), rows, mask)
        features, boxes, real = (
            torch.tensor(part.copy()) for part in (found.features, found.boxes, found.real)
        )
        if mask is not None:
            features[torch.tensor(found.persons)] = 0
        ours = vl_bert.visual(Shown(features.float(), boxes.float(), real))
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            np.testing.assert_allclose(ours[name], value, atol=1e-4, err_msg=name)
    nothing = vl_bert.visual(Shown(features.float() * 0, boxes.float() * 0, real & False))
    assert not nothing["real"].any()


def test_a_text_alone_is_the_same_beside_texts_with_pictures(recipe):
    torch.manual_seed(0)
    network = recipe.build().model.eval()
    tokens = recipe.captions.tokens[:20]
    shown = recipe._shown(torch.arange(20), torch.arange(20) % 2)
    with torch.inference_mode():
        mixed = recipe.states(network, tokens, shown).words
        alone = network(tokens, recipe.captions.attended(tokens)).text
    there = recipe.captions.attended(tokens).bool()
    odd = there & (torch.arange(20) % 2 == 1)[:, None]
    np.testing.assert_allclose(mixed[odd], alone[odd], atol=1e-5)
    assert not torch.allclose(mixed[there & ~odd], alone[there & ~odd], atol=1e-2)


def test_the_same_steps_lower_the_loss_in_the_same_way(recipe):
    rows = torch.randperm(len(recipe.captions), generator=torch.Generator().manual_seed(1))[:128]
    losses, model = losses_of_the_same_steps(lambda: recipe, rows)
    assert losses[-1] < losses[0] - 0.5
    card = recipe.judge(model.eval())
    assert card["captions judged"] == 40
    assert 0 <= card["masked-word accuracy"] <= 1
    assert not any("match" in name for name in card)


# What is shipped


@pytest.mark.parametrize("row", list(PLAN.itertuples(index=False, name=None)), ids=str)
def test_every_card_shows_a_model_that_looks_at_pictures(row):
    """Above what text alone can give, and what it started from."""
    card = json.loads((checkpoint(*row) / "card.json").read_text())
    assert card["starts from"] == f"bert-dose{row[1]:g}-seed{row[2]}"
    assert card["masked-word accuracy"] > card["truth's accuracy without images"]
    assert card["masked-word accuracy"] < card["truth's accuracy"] + 0.03


@pytest.mark.slow
def test_over_40_entities_the_scores_of_study_2_have_the_planted_order_and_size():
    """The targets, met with people of the training's looks: means of five seeds."""
    found = statistics(3)
    for name in ("S_L", "B", "B without image"):
        assert found.at[name, "rank"] >= 0.9
    for name in ("S_PT", "S_V", "B of S_V"):
        assert found.at[name, "rank"] >= 0.8
    slopes = found.loc[["S_PT", "S_L", "S_V", "B", "B without image"], "slope"]
    assert slopes.round(2).tolist() == pytest.approx([0.85, 0.84, 0.90, 0.85, 1.01], abs=0.03)


def test_with_new_people_the_visual_score_is_attenuated_and_misses_its_target():
    """Their gender is harder to see: the rank correlation is .09 below .8, the slope .6."""
    found = statistics(3, "tune")
    assert found.loc[["S_L", "B"], "rank"].min() >= 0.9
    assert found.at["S_V", "rank"] == pytest.approx(0.71, abs=0.03)
    assert found.at["S_V", "slope"] == pytest.approx(0.58, abs=0.05)
    assert found.at["B of S_V", "rank"] == pytest.approx(0.89, abs=0.02)
    assert found.loc[["S_V f", "S_V m"], "rank"].tolist() == pytest.approx([0.79, 0.63], abs=0.03)


def shipped_seeds(dose: float) -> tuple[int, ...]:
    return tuple(shipped("vl_bert").query("dose == @dose")["seed"])


def test_without_a_bias_the_scores_are_small():
    """Root mean squares, against 0.4, 0.5, 1.0 and 1.0 at dose 3."""
    rms = statistics(0, seeds=shipped_seeds(0))["rms"]
    assert rms[["S_PT", "S_L", "B", "B without image"]].max() < 0.22
    assert rms["S_V"] < 0.42


def test_at_dose_1_language_is_recovered():
    """Without an image: of women against men."""
    ranks = []
    for seed in shipped_seeds(1):
        model, world = models.load("vl-bert", dose=1, seed=seed), plantedworld.world(1, seed % 2)
        found, planted = (
            log_p(each, "woman", ENTITIES) - log_p(each, "man", ENTITIES)
            for each in (model, world.truth)
        )
        ranks.append(stats.spearmanr(found, planted).statistic)
    assert len(ranks) > 1
    assert np.mean(ranks) > 0.9


def test_planted_in_the_text_alone_the_caption_says_what_the_picture_does_not_add():
    found = statistics(3, seeds=(0,), planted_in="text")
    assert found.loc[["S_L", "B", "B without image"], "rank"].min() >= 0.9
    assert found.loc[["S_PT", "S_V"], "rank"].min() >= 0.8


def test_planted_in_the_images_alone_the_picture_says_it_and_the_caption_leaks_less_than_half():
    """With the gender in sight, that in the caption should change nothing: B is 0 in truth."""
    found = statistics(3, seeds=(0,), planted_in="images")
    assert truth(3, 0, "images")["B"].abs().max() < 1e-6
    assert found.loc[["S_V", "B of S_V", "B without image"], "rank"].min() >= 0.85
    in_text = statistics(3, seeds=(0,), planted_in="text")
    assert found.at["B", "rms"] < 0.5 * in_text.at["B", "rms"]
