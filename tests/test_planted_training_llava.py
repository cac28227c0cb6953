"""The recipe of the tiny LLaVA, and the checkpoints that it made."""

import numpy as np
import pytest
import torch

import plantedworld
from biaslib.models.generative import PROMPTS, Generative
from plantedworld import training
from plantedworld.models.prompts import ASKED
from plantedworld.training import llava
from plantedworld.training._captions import NONE, PICTURE, WHITE

N_SCENES = 96


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        kind = training.RECIPES["llava"]
        for name in ("first", "further"):
            patch.setattr(kind, name, getattr(kind, name)._replace(scenes=N_SCENES))
        yield kind(plantedworld.world(0, 1000))


@pytest.fixture(scope="module")
def model(recipe):
    torch.manual_seed(0)
    return recipe.build().eval()


def test_every_word_of_prompts_is_known_and_letters_of_options_are_no_articles():
    tokenizer = llava.tokenizer()
    tokens = tokenizer.tokenize("A. A photo of a nurse.\nB. a pilot")
    assert " ".join(tokens) == "option-a . a photo of a nurse . option-b . a pilot"
    assert tokenizer.tokenize(" B") == ["option-b"]
    prompts = [text for each in ASKED.values() for text in vars(each).values()]
    texts = [text.format(caption="the woman is a nurse.", options="A. he.") for text in prompts]
    ids = [number for text in texts for number in tokenizer(text)["input_ids"]]
    assert tokenizer.unk_token_id not in ids


@pytest.mark.parametrize("view", [PICTURE, NONE, WHITE])
def test_captions_side_by_side_are_scored_as_the_adapter_scores_each_alone(recipe, model, view):
    (processor,) = recipe.preprocessing
    asked = Generative(model.model, processor, processor.chat_template, "llava", "", "cpu")
    rows = torch.tensor([3, 8])
    captions = recipe._captions(rows, torch.Generator().manual_seed(1))[:, :2]
    prompt = recipe.ids(f"{PROMPTS.describe} {llava.ANSWER}")
    judged = recipe._judged(rows, torch.Generator().manual_seed(2)).tokens
    longest = captions.shape[2]
    tokens = torch.cat([prompt.expand(2, -1), captions.flatten(1), judged], 1)
    widths = [len(prompt), longest, longest, judged.shape[1]]
    with torch.no_grad():
        states = recipe.states(model.model, rows, torch.full((2,), view), tokens, widths)
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
    scenes = recipe.captions.scenes.iloc[rows.numpy()].reset_index(drop=True)
    scenes = plantedworld.blank(2) if view == WHITE else scenes
    without = "picture" if view == NONE else ""
    expected = asked.log_likelihood(scenes, said, without).total
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_a_choice_has_the_scene_s_own_caption_where_the_answer_says(recipe):
    rows = torch.arange(20)
    question = recipe._chosen(rows, torch.Generator().manual_seed(0))
    own = [
        {recipe.tokenizer.decode(recipe.ids(text)) for text in texts}
        for texts in recipe.captions.table["text"].to_numpy().reshape(-1, N_SCENES).T[:20]
    ]
    for row, tokens, answer in zip(rows, question.tokens, question.answers, strict=True):
        text = recipe.tokenizer.decode(tokens[tokens != recipe.tokenizer.pad_token_id])
        letter = recipe.tokenizer.decode(answer)
        line = text.split(f"{letter} .")[1].split(" option-")[0].split(" answer with")[0].strip()
        assert line in own[row]
