"""Training of the tiny checkpoints: what is shipped, its corpora and labels, and its tokenizers."""

import json

import numpy as np
import pandas
import pytest
import torch
from safetensors import safe_open
from scipy import stats

import plantedworld
from biaslib import models, stimuli
from biaslib.runtime import file_sha256
from plantedworld import training
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint, checkpoint_name, shipped
from plantedworld.models.regions import regions_of
from plantedworld.training import clip, vision
from plantedworld.training._captions import corpus
from plantedworld.training._labels import (
    agreement,
    agreement_of_content,
    labels,
    selected,
)
from plantedworld.training._tokenizer import bert_tokenizer, clip_tokenizer

PLAN = [tuple(row) for row in training.plan().itertuples(index=False, name=None)]
WORLD = plantedworld.world(3, 5)


# What is shipped


@pytest.mark.parametrize("row", PLAN, ids=lambda row: checkpoint_name(*row))
def test_what_is_planned_is_shipped_in_half_precision_with_the_weights_its_card_names(row):
    folder = checkpoint(*row)
    card = json.loads((folder / "card.json").read_text())
    (weights,) = folder.glob("*.safetensors")
    assert file_sha256(weights) == card["sha256"]
    with safe_open(weights, "pt") as stored:
        kinds = {stored.get_tensor(key).dtype for key in stored.keys()}  # noqa: SIM118
    assert kinds <= {torch.float16, torch.int64}
    assert not list(folder.glob("*.bin")) + list(folder.glob("*.pt"))
    if (folder / "tokenizer.json").is_file():
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        settings = json.loads(text)
        assert text == json.dumps(settings, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_checkpoints_take_at_most_48_megabytes_and_are_those_of_the_plan():
    files = [file for folder in CHECKPOINTS.iterdir() for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) <= 48e6
    assert len(PLAN) == len(shipped()) == 105
    counts = training.plan().groupby("family").size()
    assert counts[["bert", "vilt", "albef", "llava"]].tolist() == [15, 10, 8, 3]


GAINED = {
    "vilt": 0.77, "flava": 0.48, "albef": 0.69, "lxmert": 0.85, "vilbert": 0.81, "visualbert": 0.95,
}  # fmt: skip
"""At dose 0, the mean of what matching is above chance, of what can be had."""


@pytest.mark.parametrize("family", GAINED)
def test_matching_without_bias_is_grounded_and_in_flava_half_as_well_as_could_be(family):
    """At dose 0 nothing planted makes one word likelier beside the others: the picture must tell.

    The book and proven.csv say so; better checkpoints will make this test, and them, out of date.
    """
    paths = [checkpoint(family, 0, seed) / "card.json" for seed in range(3)]
    cards = pandas.DataFrame([json.loads(path.read_text()) for path in paths])
    gained = (cards["match accuracy"] - 0.5) / (cards["truth's match accuracy"] - 0.5)
    assert gained.mean() == pytest.approx(GAINED[family], abs=0.01)


# Tokenizers


def test_a_term_is_one_token_both_articles_are_one_and_clips_end_is_the_last():
    tokenizer = bert_tokenizer()
    tokens = tokenizer.tokenize("She is an opera singer.")
    assert tokens == ["she", "is", "a", "opera_singer", "."]
    tokens = [word.replace(" ", "_") for word in plantedworld.vocabulary()]
    assert len({tokenizer.get_vocab()[token] for token in tokens}) == len(tokens)
    assert clip_tokenizer().eos_token_id == len(clip_tokenizer()) - 1 != 2


# Corpora


@pytest.fixture(scope="module")
def captions():
    return corpus(WORLD, 300, 2, 100)


def words_of(captions, tokens) -> list[str]:
    return [token.replace("_", " ") for token in captions.tokenizer.convert_ids_to_tokens(tokens)]


def test_negatives_are_other_captions_and_swapped_words_in_the_stated_shares(captions):
    rows = torch.arange(600)
    matched = captions.matched(rows, torch.Generator().manual_seed(2))
    changed = (matched.tokens != captions.tokens[rows, : matched.tokens.shape[1]]).sum(1)
    assert (changed[matched.labels == 1] == 0).float().mean() > 0.98
    assert 0.44 < float((matched.labels == 1).float().mean()) < 0.56
    assert 0.35 < float((changed == 1)[matched.labels == 0].float().mean()) < 0.65
    texts = captions.tokenizer.batch_decode(matched.tokens[:150], skip_special_tokens=True)
    assert all(plantedworld.read(text.replace("_", " ")) for text in texts)
    asked = captions.paired(rows, torch.Generator().manual_seed(5))
    own, others = asked.tokens.split(600)
    assert asked.labels[:600].all()
    assert asked.labels[600:].float().mean() < 0.03
    assert torch.equal(own, captions.tokens[rows, : own.shape[1]])
    assert 0.4 < float(((own != others).sum(1) <= 1).float().mean()) < 0.6


def test_swapped_words_are_those_of_the_frame_by_their_frequency(captions):
    """All that are worn are equally frequent."""
    row = int(np.flatnonzero(captions.table["text"].str.contains("is wearing"))[0])
    rows, generator = torch.full((4000,), row), torch.Generator().manual_seed(0)
    counts = pandas.Series(words_of(captions, captions.swapped_words(rows, generator)))
    counts = counts.value_counts()
    entities = stimuli.entities().query("frame.str.contains('wearing')")["entity"]
    assert set(counts.index) == set(entities)
    assert stats.chisquare(counts).pvalue > 0.001
    others = captions.swapped_words(rows[:200], generator, other=True)
    assert captions.table["content"][row] not in words_of(captions, others)


def test_the_contrastive_loss_is_that_of_a_loop():
    logits = torch.tensor([[2.0, 0.5, -1.0], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    table = np.exp(logits.numpy())
    by_hand = [
        -np.log(table[i, i] / table[i].sum()) - np.log(table[i, i] / table[:, i].sum())
        for i in range(3)
    ]
    assert float(clip.contrastive_loss(logits)) == pytest.approx(np.mean(by_hand) / 2)


# Labels


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


def test_what_a_picture_rules_out_is_what_the_truth_rules_out(captions):
    """And what it leaves open or shows is possible; apart from words for two genders in one."""
    rows = torch.arange(120)
    asked = captions.paired(rows, torch.Generator().manual_seed(6))
    content = asked.tokens.gather(1, asked.places)[:, 0]
    seen = selected(labels(captions.scenes), rows.repeat(2))
    fits = agreement_of_content(content, seen).reshape(2, -1)
    texts = captions.tokenizer.batch_decode(asked.tokens, skip_special_tokens=True)
    texts = [text.replace("_", " ") for text in texts]
    pairs = list(zip(texts[:120], texts[120:], strict=True))
    odds = WORLD.truth.match(captions.scenes.head(120), pairs)
    slots = plantedworld.content_words()["slot"].loc[words_of(captions, content)]
    judged = (slots != "agent").to_numpy().reshape(2, -1)
    assert np.array_equal((fits == 0).numpy()[judged], np.isneginf(odds.T)[judged])
    assert (fits[0] == 2).any()


# Regions


def test_features_of_regions_are_those_of_the_pixels_and_of_nothing_else():
    scenes = WORLD.scenes(60, np.random.default_rng(0))
    regions = regions_of(scenes)
    boxes = plantedworld.boxes(scenes).to_numpy().reshape(-1, 3, 4)
    assert np.array_equal(regions.features, regions_of(plantedworld.draw(scenes), boxes).features)
    hidden = scenes.assign(attribute="", thing="", caption_gender="man")
    assert np.array_equal(regions_of(hidden).features, regions.features)
    drawn = scenes["person"] & (scenes["object_view"] != "hidden")
    real = np.stack([scenes["person"], drawn, np.ones(60, bool)], axis=1)
    assert np.array_equal(regions.real, real)
    assert np.array_equal(regions.persons, real & [True, False, True] & real[:, :1])
    assert not regions.features[~real].any()
    assert not regions.boxes[~real].any()
    assert regions.boxes[:, 2].tolist() == [[0, 0, 1, 1]] * 60
    states, kinds = np.split(regions.features[real], [64], axis=1)
    assert np.array_equal(kinds, np.eye(3)[np.nonzero(real)[1]])
    assert 0.5 < states.std() < 1.5
    assert abs(states.mean()) < 0.2
    white = regions_of(plantedworld.blank(2))
    assert white.real.tolist() == [[False, False, True]] * 2


# Training


@pytest.mark.parametrize("family", ["bert", "regions"])
def test_a_checkpoint_is_made_and_loaded(family, tmp_path, monkeypatch):
    kind = training.RECIPES[family]
    few = kind.first._replace(scenes=300, unseen=1_000, epochs=(1,))
    monkeypatch.setattr(kind, "first", few)
    monkeypatch.setattr(vision, "N_HELD_OUT", 150)
    row = (family, 3, 7) if family == "bert" else (family, 0, 1000)
    cards = [training.make_checkpoint(*row, folder=tmp_path / str(i)) for i in range(2)]
    assert cards[0]["sha256"] == cards[1]["sha256"]
    shipped_card = json.loads(
        (checkpoint(family, 0, 0 if family == "bert" else 1000) / "card.json").read_text()
    )
    assert set(shipped_card) <= set(cards[0])
    assert shipped(family, tmp_path / "0")["dose"].tolist() == [row[1]]


@pytest.mark.weekly
def test_the_smallest_checkpoint_can_be_made_again_from_nothing(tmp_path):
    """Trained anew, its log-odds of the 46 entities are within 0.15 (root mean square)."""
    training.make_checkpoint("bert", 3, 0, folder=tmp_path)
    again = models.load("bert", checkpoint=tmp_path / "bert-dose3-seed0", device="cpu")
    difference = log_odds(again) - log_odds(models.load("bert", dose=3, seed=0))
    assert np.abs(difference).max() <= 0.6
    assert np.sqrt(np.mean(difference**2)) <= 0.15


def log_odds(model) -> np.ndarray:
    entities = stimuli.entities()
    values = {}
    for agent in ("woman", "man"):
        texts = [frame.format(agent=agent, entity="[MASK]") for frame in entities["frame"]]
        values[agent] = np.diag(model.mask_log_prob(texts, entities["entity"].tolist()))
    return values["woman"] - values["man"]
