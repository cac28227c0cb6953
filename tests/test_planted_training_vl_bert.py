"""The tiny VL-BERT: what it starts from, what it reads, and what its cards say."""

import json

import numpy as np
import pytest
import torch
from support.learning import losses_of_the_same_steps
from transformers import BertForMaskedLM

import plantedworld
from biaslib import models
from biaslib.models.fusion import Mask
from plantedworld import training
from plantedworld.models import regions as planted_regions
from plantedworld.models.checkpoints import checkpoint
from plantedworld.training import vl_bert
from plantedworld.training._region_pairs import Shown

PLAN = training.plan().query("family == 'vl_bert'")


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
        *((dose, seed, "both") for dose in (0, 1, 3) for seed in (0, 1, 2)),
        (3, 0, "text"),
        (3, 0, "images"),
    }


def test_it_starts_as_the_bert_of_its_world(recipe):
    """Embeddings of words, every layer and the masked-word head."""
    bert = BertForMaskedLM.from_pretrained(recipe.start, dtype=torch.float32).eval()
    torch.manual_seed(0)
    network = recipe.begun().eval()
    tokens = recipe.captions.tokens[:50]
    there, read = tokens != recipe.captions.tokenizer.pad_token_id, []
    with torch.inference_mode():
        embedded = bert.bert.embeddings(tokens)
        network.vlbert.encoder.register_forward_pre_hook(lambda _, given: read.append(given[0]))
        network(tokens, there)
        hidden = torch.where(there, 0.0, -1e4)[:, None, None]
        ours = network.word_logits(network.vlbert.encoder(embedded, hidden).last_hidden_state)
        expected = bert(tokens, attention_mask=there.long()).logits
    np.testing.assert_allclose(read[0][:, : tokens.shape[1]][there], embedded[there], atol=1e-5)
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
        alone = network(tokens, recipe.captions.attended(tokens))[0]
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
