"""The recipe of the tiny LLaVA, and the checkpoints that it made."""

import json

import numpy as np
import pytest
import torch

import plantedworld
from biaslib import models
from biaslib.models.generative import PROMPTS, Generative
from plantedworld import training
from plantedworld.models.checkpoints import checkpoint, shipped
from plantedworld.models.prompts import ASKED
from plantedworld.training import _checkpoint, llava, vision

WORLD = plantedworld.world(3, 7)
SEEN, WITHOUT, WHITE = llava.SEEN, llava.WITHOUT, llava.WHITE


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llava, "N_SCENES", 96)
        made = training.RECIPES["llava"](WORLD, checkpoint("vit", 0, 1000))
        assert made.n_scenes == 96
        yield made


@pytest.fixture(scope="module")
def model(recipe):
    torch.manual_seed(0)
    return recipe.build().eval()


@pytest.fixture(scope="module")
def asked(recipe, model):
    return Generative(model.model, recipe.processor(), "llava", "", "cpu")


def test_letters_of_options_are_no_articles():
    found = llava.tokenizer()
    assert found.tokenize("A. A photo of a nurse.\nB. a pilot") == [
        *("option-a", ".", "a", "photo", "of", "a", "nurse", "."),
        *("option-b", ".", "a", "pilot"),
    ]
    assert found.tokenize(" B") == ["option-b"]


def test_every_word_of_prompts_and_of_the_world_is_known():
    found = llava.tokenizer()
    told = [text for prompts in ASKED.values() for text in vars(prompts).values()]
    texts = [text.format(caption="the woman is a nurse.", options="A. he.") for text in told]
    texts += [frame.write("nurse", "she") for frame in plantedworld.frames()[:1]]
    ids = [number for text in texts for number in found(text)["input_ids"]]
    assert found.unk_token_id not in ids


def test_the_tower_is_the_vision_tower_s(recipe, model):
    pixels = vision.drawn(recipe.corpus[0].iloc[:3])
    with torch.no_grad():
        found = model.model.model.vision_tower(pixels, output_hidden_states=True).hidden_states[-1]
    np.testing.assert_allclose(found, recipe.states[:3].float(), atol=0.01)


@pytest.mark.parametrize("view", [SEEN, WITHOUT, WHITE])
def test_captions_side_by_side_are_scored_as_the_adapter_scores_each_alone(
    recipe, model, asked, view
):
    rows = torch.tensor([3, 8])
    captions = recipe._captions(rows, torch.Generator().manual_seed(1))[:, :2]
    prompt = recipe.ids(f"{PROMPTS.describe} {llava.ANSWER}")
    judged = recipe._judged(rows, torch.Generator().manual_seed(2)).tokens
    longest = captions.shape[2]
    tokens = torch.cat([prompt.expand(2, -1), captions.flatten(1), judged], 1)
    widths = [len(prompt), longest, longest, judged.shape[1]]
    with torch.no_grad():
        views = torch.full((2,), view)
        states = recipe._run(model.model, rows, views, tokens, widths)
        log_p = model.model.lm_head(states).log_softmax(-1)
    ends = [recipe.tokenizer.eos_token_id, recipe.tokenizer.pad_token_id]
    found = np.zeros((2, 2))
    for row, at in np.ndindex(2, 2):
        start, before = len(prompt) + at * longest, len(prompt) - 1
        for place, number in enumerate(captions[row, at].tolist()):
            if number not in ends:
                found[row, at] += log_p[row, before, number]
            before = start + place
    texts = recipe.captions.table["text"]
    known = {tuple(recipe.ids(text).tolist()): text for text in texts}
    said = [
        [known[tuple(n for n in captions[row, at].tolist() if n not in ends)] for at in range(2)]
        for row in range(2)
    ]
    scenes = recipe.corpus[0].iloc[rows.numpy()].reset_index(drop=True)
    if view == WHITE:
        scenes = plantedworld.blank(2)
    without = "picture" if view == WITHOUT else ""
    expected = asked.log_likelihood(scenes, said, without).total
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_a_choice_has_the_scene_s_own_caption_where_the_answer_says(recipe):
    rows = torch.arange(20)
    found = recipe._chosen(rows, torch.Generator().manual_seed(0))
    own = [
        {recipe.tokenizer.decode(recipe.ids(text)) for text in texts}
        for texts in recipe.captions.table["text"].to_numpy().reshape(-1, 96).T[:20]
    ]
    for row, tokens, answer in zip(rows, found.tokens, found.answers, strict=True):
        text = recipe.tokenizer.decode(tokens[tokens != recipe.tokenizer.pad_token_id])
        letter = recipe.tokenizer.decode(answer)
        line = text.split(f"{letter} .")[1].split(" option-")[0].split(" answer with")[0].strip()
        assert line in own[row]


def test_one_step_lowers_the_loss(recipe):
    torch.manual_seed(0)
    model = recipe.build()
    rows, losses = torch.arange(32), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(4):
        loss = recipe.loss(model, rows, torch.Generator().manual_seed(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 1


def test_all_models_but_the_first_go_on_from_the_unbiased_one(recipe):
    assert recipe.first
    further = training.RECIPES["llava"](WORLD, checkpoint("llava", 0, 1000))
    assert not further.first
    assert further.epochs == 2
    assert recipe.next_round(checkpoint("llava", 3, 2100)) is None
    second = further.next_round(checkpoint("llava", 3, 2100))
    assert second.second
    assert second.epochs == 3
    assert second.next_round(checkpoint("llava", 3, 2100)) is None


def test_a_second_round_goes_on_from_what_the_first_one_wrote(tmp_path, monkeypatch):
    starts, models_of_rounds = [], []

    def trained(recipe, folder):
        starts.append((recipe.start, recipe.second, folder.name))
        models_of_rounds.append(recipe.build().eval())
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "training_state.pt").touch()
        return models_of_rounds[-1]

    monkeypatch.setattr(llava, "N_SCENES", 8)
    monkeypatch.setattr(_checkpoint, "train", trained)
    monkeypatch.setattr(llava.LlavaRecipe, "judge", lambda self, model: {})
    for family in ("vit", "llava"):
        path = checkpoint(family, 0, 1000)
        (tmp_path / path.name).symlink_to(path)
    card = _checkpoint.make_checkpoint("llava", 3, 7, folder=tmp_path)
    made = tmp_path / "llava-dose3-seed7"
    assert starts == [
        (tmp_path / "llava-dose0-seed1000", False, "llava-dose3-seed7"),
        (made, True, "second round"),
    ]
    assert card["starts from"] == "llava-dose0-seed1000"
    assert sorted(path.name for path in made.iterdir() if path.is_dir()) == []
    assert not (made / "training_state.pt").exists()
    first, second = (each.model.lm_head.weight for each in models_of_rounds)
    np.testing.assert_allclose(first.detach(), second.detach(), atol=1e-3)


SHIPPED = shipped("llava")["path"].tolist()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_model_is_read_as_any_model_of_the_hub(path):
    model = models.load(str(path), device="cpu")
    assert isinstance(model, Generative)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_card_tells_log_likelihoods_beside_the_truth_s(path):
    """A caption has some six words of a thousand: without any learning it has less than -40."""
    card = json.loads((path / "card.json").read_text(encoding="utf-8"))
    least = card["truth's log-likelihood"] - 2
    assert least < card["log-likelihood"] < card["truth's log-likelihood"]
    assert card["likelier than swapped"] > card["match chance"]
    assert card["pairs judged"] == 100


def test_the_shipped_models_are_of_one_world_and_of_the_one_that_they_began_with():
    table = shipped("llava")
    assert list(zip(table["dose"], table["seed"], strict=True)) == [(0, 1000), (0, 2100), (3, 2100)]
