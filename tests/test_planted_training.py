"""Training of the tiny checkpoints: what is shipped, that it can be made again, and resumed."""

import json

import numpy as np
import pytest
import torch

import plantedworld
from biaslib import models, runtime, stimuli
from biaslib.runtime import file_sha256
from plantedworld import training, trial
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint, checkpoint_name, shipped
from plantedworld.training import _checkpoint
from plantedworld.training import bert as bert_recipe
from plantedworld.training import clip as clip_recipe
from plantedworld.training._tokenizer import bert_tokenizer, clip_tokenizer
from plantedworld.training._train import STATE

PLAN = [checkpoint_name(*row) for row in training.plan().itertuples(index=False, name=None)]


@pytest.mark.parametrize("name", PLAN)
def test_what_is_planned_is_shipped_in_half_precision_with_the_weights_its_card_names(name):
    folder = CHECKPOINTS / name
    card = json.loads((folder / "card.json").read_text())
    (weights,) = folder.glob("*.safetensors")
    assert file_sha256(weights) == card["sha256"]
    from safetensors import safe_open

    with safe_open(weights, "pt") as stored:
        kinds = {stored.get_tensor(key).dtype for key in stored.keys()}  # noqa: SIM118
    assert kinds <= {torch.float16, torch.int64}
    assert not list(folder.glob("*.bin")) + list(folder.glob("*.pt"))


def test_tokenizers_are_stored_without_spaces_and_say_the_same(tmp_path):
    wide, settings = tmp_path / "tokenizer.json", {"vocab": {"the": 5, "tür": 6}, "padding": None}
    wide.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    _checkpoint._write_without_spaces(wide)
    assert wide.read_bytes() == '{"vocab":{"the":5,"tür":6},"padding":null}\n'.encode()
    for path in CHECKPOINTS.glob("*/tokenizer.json"):
        again = tmp_path / f"{path.parent.name}.json"
        again.write_bytes(path.read_bytes())
        _checkpoint._write_without_spaces(again)
        assert again.read_bytes() == path.read_bytes()
    _checkpoint._write_without_spaces(tmp_path / "absent.json")
    assert not (tmp_path / "absent.json").exists()


def test_the_trials_checkpoints_take_at_most_40_megabytes_and_all_together_48():
    size = {
        folder.name: sum(file.stat().st_size for file in folder.iterdir())
        for folder in CHECKPOINTS.iterdir()
        if folder.is_dir()
    }
    assert sum(size.values()) <= 48e6
    rows = training.plan().query("planted_in == 'both' and seed < 10")
    rows = rows[rows["family"].isin(trial.models()["family"])]
    of_trial = (checkpoint_name(*row) for row in rows.itertuples(index=False, name=None))
    assert sum(size[name] for name in of_trial) <= 40e6


@pytest.mark.parametrize(
    "name", [name for name in PLAN if not name.startswith(("vision", "vit-", "regions", "llava"))]
)
def test_every_card_tells_accuracy_beside_chance_and_the_truth(name):
    card = json.loads((CHECKPOINTS / name / "card.json").read_text())
    (accuracy,) = (
        card[key] for key in card if key in ("masked-word accuracy", "retrieval accuracy")
    )
    assert accuracy > 3 * card["chance"]
    assert accuracy < card["truth's accuracy"] + 0.03


def test_a_dose_that_is_not_shipped_is_refused_with_those_that_are_and_the_command():
    with pytest.raises(FileNotFoundError) as refusal:
        models.load("bert", dose=2, seed=0, profile="planted")
    assert "dose 3: seeds 0, 1, 2, 3, 4" in str(refusal.value)
    assert "python -m plantedworld.training bert --dose 2 --seed 0" in str(refusal.value)
    with pytest.raises(FileNotFoundError, match="--dose 3 --seed 77"):
        checkpoint("clip", 3, 77)


@pytest.fixture
def three_worlds(tmp_path):
    """A folder with the cards of a family planted everywhere, in text alone and in images alone."""
    for name in ("vilt-dose3-seed0", "vilt-dose3-seed1-text", "vilt-dose0.5-seed2-images"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "card.json").write_text("{}")
    (tmp_path / "vilt-dose3-seed0-elsewhere").mkdir()
    (tmp_path / "vilt-dose3-seed0-elsewhere" / "card.json").write_text("{}")
    return tmp_path


def test_worlds_planted_in_text_or_images_alone_have_names_of_their_own(three_worlds):
    table = shipped("vilt", three_worlds)
    assert list(table.drop(columns="path").itertuples(index=False, name=None)) == [
        ("vilt", 0.5, 2, "images"),
        ("vilt", 3.0, 0, "both"),
        ("vilt", 3.0, 1, "text"),
    ]
    for row in table.itertuples():
        assert checkpoint_name("vilt", row.dose, row.seed, row.planted_in) == row.path.name
        found = checkpoint("vilt", row.dose, row.seed, row.planted_in, three_worlds)
        assert found == row.path


def test_a_world_that_is_not_shipped_is_refused_with_those_that_are(three_worlds):
    with pytest.raises(FileNotFoundError) as refusal:
        checkpoint("vilt", 3, 0, "images", three_worlds)
    assert "dose 3 and seed 0, planted only in images" in str(refusal.value)
    assert "dose 3: seeds 0; " in str(refusal.value)
    assert "dose 0.5, planted only in images: seeds 2" in str(refusal.value)
    assert "dose 3, planted only in text: seeds 1" in str(refusal.value)
    assert str(refusal.value).endswith("vilt --dose 3 --seed 0 --planted-in images")
    with pytest.raises(runtime.UnknownNameError, match="Did you mean 'images'"):
        checkpoint("vilt", 3, 0, "image")


def test_shipped_lists_doses_and_seeds():
    table = shipped("bert")
    assert table.groupby("dose")["seed"].apply(list).to_dict() == {
        dose: [0, 1, 2, 3, 4] for dose in (0.0, 1.0, 3.0)
    }


def sentences_of_the_studies() -> list[str]:
    tests = [
        stimuli.association_test(name, "sentence") for name in stimuli.association_tests()["name"]
    ]
    texts = [text for test in tests for role in "XYAB" for text in getattr(test, role)]
    texts += stimuli.taxonomy("sobit")["caption"].tolist()
    entities = stimuli.entities()
    for agent in ("man", "woman", "person"):
        filled = zip(entities["frame"], entities["entity"], strict=True)
        texts += [frame.format(agent=agent, entity=entity) for frame, entity in filled]
    return texts


@pytest.mark.parametrize("tokenizer", [bert_tokenizer(), clip_tokenizer()], ids=["bert", "clip"])
def test_no_sentence_of_the_studies_has_an_unknown_word(tokenizer):
    texts = sentences_of_the_studies()
    encoded = tokenizer(texts)["input_ids"]
    unknown = [
        text for text, ids in zip(texts, encoded, strict=True) if tokenizer.unk_token_id in ids
    ]
    assert len(texts) > 5_000
    assert unknown == []
    assert max(map(len, encoded)) <= tokenizer.model_max_length


def test_a_term_is_one_token_and_both_articles_are_one():
    tokenizer = bert_tokenizer()
    tokens = tokenizer.tokenize("She is an opera singer.")
    assert tokens == ["she", "is", "a", "opera_singer", "."]
    assert tokenizer.tokenize("a ant") == tokenizer.tokenize("an Ant")


def test_the_end_of_a_caption_is_the_last_token_and_not_number_2():
    tokenizer = clip_tokenizer()
    assert tokenizer.eos_token_id == len(tokenizer) - 1 != 2


def test_every_content_word_is_one_token_of_its_own():
    numbers = bert_tokenizer().get_vocab()
    tokens = [word.replace(" ", "_") for word in plantedworld.vocabulary()]
    assert len({numbers[token] for token in tokens}) == len(plantedworld.vocabulary())


@pytest.fixture
def short_recipe(monkeypatch):
    """A recipe of BERT on few captions, which trains in seconds."""
    monkeypatch.setattr(bert_recipe, "N_CAPTIONS", 3_000)
    monkeypatch.setattr(bert_recipe.BertRecipe, "epochs", 3)
    return lambda: bert_recipe.BertRecipe(plantedworld.world(3, 7))


def test_training_that_is_interrupted_goes_on_and_ends_the_same(
    short_recipe, tmp_path, monkeypatch
):
    whole = training.train(short_recipe(), tmp_path / "whole").state_dict()
    from plantedworld.training import _train

    keep = _train._keep

    def keep_and_stop_after_the_second(path, epochs_done, *rest):
        keep(path, epochs_done, *rest)
        if epochs_done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_train, "_keep", keep_and_stop_after_the_second)
    with pytest.raises(KeyboardInterrupt):
        training.train(short_recipe(), tmp_path / "halves")
    assert (tmp_path / "halves" / STATE).is_file()
    monkeypatch.setattr(_train, "_keep", keep)
    resumed = training.train(short_recipe(), tmp_path / "halves").state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_masked_places_are_those_of_the_content_word_and_of_the_person(short_recipe):
    captions = short_recipe().captions
    tokens = captions.tokenizer.convert_ids_to_tokens
    for row in range(200):
        content, person = captions.places[row].tolist()
        words = captions.table.iloc[row]
        assert tokens(int(captions.tokens[row, content])) == words["content"].replace(" ", "_")
        assert tokens(int(captions.tokens[row, person])) == words["agent"] or words["agent"] == ""


def test_the_contrastive_loss_is_that_of_a_loop():
    logits = torch.tensor([[2.0, 0.5, -1.0], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    table = np.exp(logits.numpy())
    by_hand = [
        -np.log(table[i, i] / table[i].sum()) - np.log(table[i, i] / table[:, i].sum())
        for i in range(3)
    ]
    assert float(clip_recipe.contrastive_loss(logits)) == pytest.approx(np.mean(by_hand) / 2)


@pytest.mark.weekly
def test_the_smallest_checkpoint_can_be_made_again_from_nothing(tmp_path):
    """Trained anew, its log-odds of the 46 entities are within 0.15 (root mean square)."""
    training.make_checkpoint("bert", 3, 0, folder=tmp_path)
    again = models.load("bert", checkpoint=tmp_path / "bert-dose3-seed0", device="cpu")
    assert log_odds(again) == pytest.approx(log_odds(models.load("bert", dose=3, seed=0)), abs=0.6)
    difference = log_odds(again) - log_odds(models.load("bert", dose=3, seed=0))
    assert np.sqrt(np.mean(difference**2)) <= 0.15


def log_odds(model) -> np.ndarray:
    entities = stimuli.entities()
    values = {}
    for agent in ("woman", "man"):
        texts = [frame.format(agent=agent, entity="[MASK]") for frame in entities["frame"]]
        table = model.mask_log_prob(texts, entities["entity"].tolist())
        values[agent] = np.diag(table)
    return values["woman"] - values["man"]


def test_a_dose_in_words_is_refused():
    with pytest.raises(TypeError, match="the dose must be a number and is '3'"):
        models.load("clip", profile="planted", dose="3")
