"""Training of the fusion models on pixels: recipes, what is shipped, and the files' layout."""

import functools
import json

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats
from support.learning import losses_of_the_same_steps
from transformers import FlavaForPreTraining, ViltForMaskedLM

import plantedworld
from plantedworld import training
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint, shipped
from plantedworld.training import _checkpoint, _pixel_pairs, vilt, vision, vit
from plantedworld.training._agreement import agreement
from plantedworld.training._pictures import labels
from plantedworld.training._tokenizer import bert_tokenizer

FAMILIES = ("vilt", "flava")
WORLD = plantedworld.world(3, 7)
TOWER = CHECKPOINTS / "vit-dose0-seed1000"
WORLDS = {
    (0, 1000, "both"),
    *((dose, seed, "both") for dose in (0, 3) for seed in range(3)),
    (3, 0, "text"),
    (3, 0, "images"),
}


@pytest.fixture(autouse=True)
def few_captions(monkeypatch):
    """A corpus that is drawn in a second."""
    monkeypatch.setattr(_pixel_pairs, "FIRST_SCENES", 96)
    monkeypatch.setattr(_pixel_pairs, "N_SCENES", 96)
    monkeypatch.setattr(_pixel_pairs, "N_UNSEEN", 64)
    monkeypatch.setattr(_pixel_pairs, "FIRST_UNSEEN", 64)


@functools.cache
def recipe(family: str, start=TOWER):
    return training.RECIPES[family](WORLD, start)


def test_the_plan_has_the_three_worlds_of_the_protocol_and_each_modality():
    found = {
        family: set(rows[["dose", "seed", "planted_in"]].itertuples(index=False, name=None))
        for family, rows in training.plan().groupby("family")
    }
    assert found["flava"] == WORLDS
    assert found["vilt"] == WORLDS | {(0, 1001, "both")}


def test_one_tower_is_planned_and_trained_without_bias():
    rows = training.plan().query("family == 'vit'")
    assert rows[["dose", "seed"]].to_numpy().tolist() == [[0, 1000]]
    card = json.loads((TOWER / "card.json").read_text())
    assert card["gender accuracy"] > 0.7
    assert min(card["object accuracy"], card["tone accuracy"]) > 0.7
    assert card["role accuracy"] > 0.4


@pytest.mark.parametrize("family", FAMILIES)
def test_captions_with_a_swapped_word_are_told_apart_at_dose_3(family):
    rows = shipped(family).query("dose == 3")
    assert len(rows) >= 3
    for path in rows["path"]:
        card = json.loads((path / "card.json").read_text())
        assert _interval(card["match accuracy"], card["pairs judged"]).low > 0.5
        assert card["match accuracy"] < card["truth's match accuracy"] + 0.02
        assert card["starts from"] == _checkpoint._start(
            family, plantedworld.world(3, card["seed"])
        )


GAINED = {
    "vilt": ([0.626, 0.638, 0.632], 0.77),
    "flava": ([0.614, 0.568, 0.572], 0.48),
    "albef": ([0.640, 0.598, 0.624], 0.69),
    "lxmert": ([0.660, 0.636, 0.644], 0.85),
    "vilbert": ([0.640, 0.626, 0.650], 0.81),
    "visualbert": ([0.678, 0.682, 0.636], 0.95),
}
"""Share of swapped words told apart by seeds 0 to 2 at dose 0, and the mean of what that is above
chance, of what can be had."""


@pytest.mark.parametrize("family", GAINED)
def test_matching_without_bias_is_grounded_and_in_flava_half_as_well_as_could_be(family):
    """At dose 0 nothing planted makes one word likelier beside the others: the picture must tell.

    The book and proven.csv say so; better checkpoints will make this test, and them, out of date.
    """
    cards = [
        json.loads((checkpoint(family, 0, seed) / "card.json").read_text()) for seed in range(3)
    ]
    matched = np.array([card["match accuracy"] for card in cards])
    exact = np.array([card["truth's match accuracy"] for card in cards])
    measured, share = GAINED[family]
    assert matched.tolist() == pytest.approx(measured, abs=5e-4)
    gained = np.mean((matched - 0.5) / (exact - 0.5))
    assert gained == pytest.approx(share, abs=0.01)
    assert (gained > 2 / 3) == (family != "flava")


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_help_to_guess_masked_words_in_every_model(family):
    for path in shipped(family)["path"]:
        card = json.loads((path / "card.json").read_text())
        guessed = _interval(card["masked-word accuracy"], card["pairs judged"])
        assert guessed.low > card["truth's accuracy without images"]
        assert card["masked-word accuracy"] < card["truth's accuracy"] + 0.03


def _interval(share: float, n: int):
    """The interval of Clopper and Pearson at 99%."""
    return stats.binomtest(round(share * n), n).proportion_ci(0.99)


@pytest.mark.parametrize(("family", "largest"), [("vilt", 0.65e6), ("flava", 0.85e6)])
def test_every_model_takes_at_most_the_space_that_was_set(family, largest):
    for path in shipped(family)["path"]:
        assert sum(file.stat().st_size for file in path.iterdir()) <= largest


@pytest.mark.parametrize("family", FAMILIES)
def test_training_lowers_the_loss_and_is_the_same_every_time(family):
    losses, _ = losses_of_the_same_steps(
        lambda: recipe.__wrapped__(family), torch.arange(0, 256, 8), 2e-3
    )
    assert losses[3] < 0.95 * losses[0]


@pytest.mark.parametrize(
    ("family", "dose", "seed", "start"),
    [
        ("vilt", 0, 1000, "vit-dose0-seed1000"),
        ("vilt", 0, 1001, "vilt-dose0-seed1000"),
        ("vilt", 3, 0, "vilt-dose0-seed1001"),
        ("vilt", 3, 2100, "vilt-dose0-seed1001"),
        ("flava", 0, 1000, "vit-dose0-seed1000"),
        ("flava", 0, 1, "flava-dose0-seed1000"),
        ("clip", 0, 1000, "vision-dose0-seed1000"),
    ],
)
def test_models_start_from_those_of_worlds_without_bias(family, dose, seed, start):
    made = _checkpoint._recipe(family, plantedworld.world(dose, seed), CHECKPOINTS)
    assert _checkpoint._start(family, plantedworld.world(dose, seed)) == start
    assert getattr(made, "start", None) in (None, CHECKPOINTS / start)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_later_model_has_the_weights_of_the_first_and_fewer_epochs(family):
    first = CHECKPOINTS / f"{family}-dose0-seed1000"
    later = recipe(family, first)
    assert later.epochs < recipe(family).epochs
    kept, stored = later.build_model().state_dict(), load_file(first / "model.safetensors")
    assert all(torch.equal(kept[name], stored[name].float()) for name in stored)


def shown(**columns) -> dict[str, torch.Tensor]:
    """Classes of what one picture shows."""
    scene = {"person": True, "gender": "woman", "gender_shown": True, "tone": 2, "age": "adult"}
    scene |= {"role": "nurse", "role_shown": False, "object": "apron", "object_view": "hidden"}
    return labels(pandas.DataFrame([scene | columns]))


@pytest.mark.parametrize(
    ("caption", "columns", "part", "expected"),
    [
        ("the woman is a judge.", {}, "gender", 1),
        ("he is a judge.", {}, "gender", 2),
        ("he is a judge.", {"gender_shown": False}, "gender", 0),
        ("a photo of a judge", {}, "gender", 0),
        ("a photo of a nurse", {"role_shown": True}, "role", 1),
        ("a photo of a judge", {"role_shown": True}, "role", 2),
        ("a photo of a judge", {}, "role", 0),
        ("a photo of an apron", {"object_view": "visible"}, "object", 1),
        ("a photo of a suit", {"object_view": "visible"}, "object", 2),
        ("a photo of a suit", {"object_view": "ambiguous"}, "object", 1),
        ("a photo of beer", {"object_view": "ambiguous"}, "object", 2),
        ("a photo of a judge", {}, "person", 1),
        ("a photo of a judge", {"person": False}, "person", 2),
        ("the woman is a judge.", {"person": False}, "gender", 2),
    ],
)
def test_agreement_of_a_caption_with_what_a_picture_shows(caption, columns, part, expected):
    tokens = torch.tensor([bert_tokenizer()(caption)["input_ids"]])
    assert agreement(tokens, shown(**columns))[part].tolist() == [expected]


def test_flava_and_vilt_keep_the_tower_as_it_is():
    tower = load_file(TOWER / "model.safetensors")
    own = recipe("flava").build_model().flava.image_model
    for name, weight in own.named_parameters():
        assert not weight.requires_grad
        if name in tower:
            assert torch.equal(weight, tower[name].float())
    shared = dict(recipe("vilt").build_model().vilt.named_parameters())
    for name in set(tower) - {"embeddings.mask_token", *tower_norm(tower)}:
        assert not shared[name].requires_grad
        assert torch.equal(shared[name], tower[name].float())
    assert shared["encoder.layer.3.output.dense.weight"].requires_grad
    assert shared["embeddings.text_embeddings.word_embeddings.weight"].requires_grad


def tower_norm(tower) -> list[str]:
    """The tower's last normalisation, which has other layers before it in ViLT."""
    return [name for name in tower if name.startswith("layernorm.")]


def test_a_vilt_that_goes_on_trains_all_but_the_tower(tmp_path):
    torch.manual_seed(3)
    first = recipe("vilt")
    first.save(first.build(), tmp_path)
    parts = first.build_model()
    frozen = {name for name, weight in parts.named_parameters() if not weight.requires_grad}
    later = recipe("vilt", tmp_path)
    model = later.build()
    before = {name: weight.clone() for name, weight in model.model.named_parameters()}
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    later.loss(model, torch.arange(32), torch.Generator().manual_seed(1)).backward()
    optimizer.step()
    same = {
        name for name, each in model.model.named_parameters() if torch.equal(each, before[name])
    }
    assert frozen <= same
    assert not any("encoder.layer.3" in name for name in same)


def test_the_first_vilt_sees_all_in_plain_sight_and_is_asked_about_it():
    made = recipe("vilt")
    scenes, captions = made.corpus
    assert set(scenes["object_view"]) == {"visible", "hidden"}
    hidden = scenes["object_view"] == "hidden"
    assert not (
        scenes["object"].isin(plantedworld.PICTURED_OBJECTS) & scenes["person"] & hidden
    ).any()
    adult = scenes["role"].isin(plantedworld.PICTURED_ROLES) & (scenes["age"] == "adult")
    assert scenes["role_shown"].tolist() == (adult & scenes["person"]).tolist()
    often = made._asked_about.numpy()
    assert len(often) == captions.n_drawn
    table = captions.table[: len(often)]
    shown = scenes.iloc[captions.scene[: len(often)].numpy()].reset_index(drop=True)
    names_object = (table["content"] == shown["object"]) & (shown["object_view"] == "visible")
    names_costume = (table["content"] == shown["role"]) & shown["role_shown"]
    assert often == pytest.approx(0.02 + names_object + 1.6 * names_costume)


def test_later_vilts_see_the_world_as_it_is_and_are_asked_about_all_scenes(tmp_path):
    first = recipe("vilt")
    first.save(first.build(), tmp_path)
    made = recipe("vilt", tmp_path)
    assert "ambiguous" in set(made.corpus[0]["object_view"])
    assert torch.equal(made._asked_about, torch.ones(made.captions.n_drawn))


def test_words_that_vilt_aligns_are_those_for_what_is_shown():
    made = recipe("vilt")
    texts, named = made._words_and_names
    tokenizer, scenes = made.captions.tokenizer, made.corpus[0]
    for row in range(20):
        scene = scenes.iloc[row]
        said = [
            tokenizer.convert_ids_to_tokens(texts[i].tolist())[1] if i >= 0 else ""
            for i in named[row]
        ]
        role = scene["role"] if scene["role_shown"] else ""
        thing = scene["object"] if scene["object_view"] == "visible" else ""
        known = tokenizer.get_vocab()
        assert said == [role, thing if thing in known else ""]


def test_the_embeddings_of_pictures_are_those_of_transformers():
    made = recipe("vilt")
    model = made.build_model().eval()
    tokens = made.captions.tokens[:2, :6]
    pixels = vit.pixels(made.pictures[:2])
    with torch.inference_mode():
        ours = made.states(model, tokens, made.pictures[:2]).words
        theirs = model.vilt(tokens, made.captions.attended(tokens), pixel_values=pixels)
    assert ours.numpy() == pytest.approx(theirs.last_hidden_state[:, :6].numpy(), abs=1e-4)


def test_no_image_is_an_image_whose_tokens_are_not_attended_to():
    made = recipe("vilt")
    model = made.build_model().eval()
    tokens = made.captions.tokens[:3]
    with torch.inference_mode():
        ours = made.states(model, tokens, None).words
        theirs = model.vilt(
            tokens,
            made.captions.attended(tokens),
            image_embeds=torch.randn(3, 17, 64),
            pixel_mask=torch.zeros(3, 17, dtype=torch.long),
        ).last_hidden_state[:, : tokens.shape[1]]
    assert ours.numpy() == pytest.approx(theirs.numpy(), abs=1e-4)


def test_flavas_states_are_those_of_transformers():
    made = recipe("flava")
    model = made.build_model().eval()
    tokens, attended = made.captions.tokens[:2], made.captions.attended(made.captions.tokens[:2])
    pixels = vision.drawn(made.corpus[0].iloc[:2])
    with torch.inference_mode():
        ours = made.states(model, tokens, made.pictures[:2])
        theirs = model(
            input_ids=tokens,
            input_ids_masked=tokens,
            attention_mask=attended,
            pixel_values=pixels,
            return_loss=False,
        )
        words = made.word_logits(model, ours.words, seen=True)
        match = made.match_logits(model, ours.first)
        vectors = [made.text_vectors(model, tokens), made.image_vectors(model, made.pictures[:2])]
        similarity = model.flava.logit_scale.exp() * vectors[0] @ vectors[1].T
    assert words.numpy() == pytest.approx(theirs.mmm_text_logits.numpy(), abs=0.02)
    assert match.numpy() == pytest.approx(theirs.itm_logits.numpy(), abs=0.02)
    assert similarity.numpy() == pytest.approx(theirs.contrastive_logits_per_text.numpy(), abs=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_saved_is_read_again_by_transformers(family, tmp_path):
    made = recipe(family)
    torch.manual_seed(3)
    model = made.build().eval()
    masked = made.captions.masked(torch.arange(8), torch.Generator().manual_seed(2))
    made.save(model, tmp_path)
    model.float()
    reader = {"vilt": ViltForMaskedLM, "flava": FlavaForPreTraining}[family]
    again = reader.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.inference_mode():
        for seen in (True, False):
            pictures = made.pictures[:8] if seen else None
            found = []
            for each in (model.model, again):
                words = made.states(each, masked.tokens, pictures).words
                found.append(made.word_logits(each, words, seen).numpy())
            assert found[0] == pytest.approx(found[1], abs=1e-4)
    stored = load_file(tmp_path / "model.safetensors")
    assert {weight.dtype for weight in stored.values()} == {torch.float16}
    if family == "vilt":
        assert stored["itm_score.fc.weight"].shape == (2, 64)
        assert torch.equal(stored["itm_score.fc.bias"].float(), model.model.itm_score.fc.bias)
    else:
        own = model.model.itm_head.seq_relationship.weight
        assert torch.equal(own, again.itm_head.seq_relationship.weight)
    assert (tmp_path / "preprocessor_config.json").is_file()


def test_a_shipped_vilt_knows_what_its_card_says(monkeypatch):
    """Judged anew on its card's own held-out captions, from its files."""
    path = checkpoint("vilt", 3, 0)
    made = vilt.ViltRecipe(plantedworld.world(3, 0), TOWER)
    model = ViltForMaskedLM.from_pretrained(path, dtype=torch.float32).eval()
    stored = load_file(path / "model.safetensors")
    model.itm_score = vilt.MatchScore(64)
    model.itm_score.fc.weight.data = stored["itm_score.fc.weight"].float()
    model.itm_score.fc.bias.data = stored["itm_score.fc.bias"].float()
    held_out = _pixel_pairs.HeldOut(made.world)
    pictures = made.prepared(held_out.scenes)
    whole = training.WithSideHeads(model, 64, {})
    with torch.inference_mode():
        own = made.match_log_odds(whole, held_out.captions.tokens, pictures)
        swapped = made.match_log_odds(whole, held_out.swapped, pictures)
    card = json.loads((path / "card.json").read_text())
    assert np.mean(own.numpy() > swapped.numpy()) == pytest.approx(card["match accuracy"], abs=0.02)
