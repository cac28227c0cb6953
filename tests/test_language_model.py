"""A real language model on the captions of study 4 and the templates of study 2.

Its committed scores by plain arithmetic and, once a week where its package is, scored again.
"""

import csv
import importlib.metadata
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from biaslib import published, stimuli
from biaslib.published import released_sizes
from biaslib.studies import study2_masked, study4_captions
from companion import study2_masked as masked
from companion import study4_captions as captions

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import language_model  # noqa: E402

KINDS = ("stereotype", "anti-stereotype", "irrelevant")
HE = ("he", "she")


def read(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def picks(row, column="log_p", per_token=True):
    scores = [
        float(row[f"{column} {kind}"]) / (int(row[f"tokens {kind}"]) if per_token else 1)
        for kind in KINDS
    ]
    assert sorted(scores)[1] < sorted(scores)[2]
    return scores.index(max(scores))


# The committed scores


@pytest.mark.parametrize("choice", captions.LANGUAGE_CHOICES.values(), ids=str)
def test_the_three_scores_are_counts_of_triplets_by_hand(choice):
    scored = {name: each for name, each in choice.items() if name != "images"}
    images = choice.get("images", "drawn")
    found = study4_captions.selection_scores(captions.language_run(**choice), n_resamples=0)
    found = found.set_index(["test", "statistic"])["value"]
    rows = read(language_model.CAPTIONS)
    for test in ("overall", "gender", "profession", "race", "religion"):
        kept = [row for row in rows if test in ("overall", row["category"])]
        n = [[int(row[f"{images} {kind}"]) for kind in KINDS[:2]] for row in kept]
        picked = [picks(row, **scored) for row in kept]
        anti = sum(each[1] for each in n)
        relevant = sum(sum(each) for each, pick in zip(n, picked, strict=True) if pick != 2)
        biased = sum(each[1] for each, pick in zip(n, picked, strict=True) if pick == 0)
        vlrs, vlbs = 100 * relevant / sum(map(sum, n)), 100 * biased / anti
        ivlas = 2 * vlrs * (100 - vlbs) / (vlrs + 100 - vlbs)
        expected = {"vlrs": vlrs, "vlbs": vlbs, "ivlas": ivlas}
        assert found[test].to_dict() == pytest.approx(expected, abs=1e-9)


def test_words_alone_pick_the_stereotype_more_often_than_any_printed_model():
    """What the chapter says, under every choice of the score; of guessing it says half of vlrs."""
    printed = published.table("zhou2022", 3)
    heads = {head.model for head in study4_captions.MODEL_HEADS}
    six = printed[(printed["metric"] == "vlbs") & printed["model"].isin(heads)]["value"]
    assert (len(six), six.max()) == (6, 45.72)
    for choice in captions.LANGUAGE_CHOICES.values():
        found = study4_captions.selection_scores(captions.language_run(**choice), n_resamples=0)
        vlbs = found.query("test == 'overall' and statistic == 'vlbs'")["value"].item()
        assert 50 < vlbs < 57
        assert vlbs > six.max()


def test_the_triplets_are_those_of_the_released_table():
    rows = pandas.read_csv(language_model.CAPTIONS)
    assert len(rows) == 883
    counts = rows.groupby("category").sum(numeric_only=True)
    for kind in KINDS[:2]:
        assert (2 * counts[f"drawn {kind}"]).to_dict() == released_sizes()
    assert counts["images stereotype"].to_dict() == {
        "gender": 103, "profession": 470, "race": 717, "religion": 37,
    }  # fmt: skip


def test_bias_is_the_log_ratio_of_woman_and_man_and_its_interval_is_students():
    rows, found = read(language_model.ENTITIES), masked.language_bias().set_index("entity")
    assert len(rows) == 6 * len(found) == 6 * 46
    for entity in ("purse", "beer", "cat", "cigar"):
        own = [row for row in rows if row["entity"] == entity]
        ratios = [float(row["woman"]) - float(row["man"]) for row in own]
        assert found["B"][entity] == pytest.approx(ratios[0], abs=1e-9)
        assert found["value"][entity] == pytest.approx(np.mean(ratios), abs=1e-9)
        half = 2.5706 * np.std(ratios, ddof=1) / math.sqrt(6)
        width = found["high"][entity] - found["low"][entity]
        assert width == pytest.approx(2 * half, rel=0.15)  # the bootstrap's spread, and its skew
        neutral = float(own[0]["person"])
        assert found["S(f)"][entity] == pytest.approx(float(own[0]["woman"]) - neutral, abs=1e-9)
    shares = masked.language_shares(found.reset_index())
    assert shares["agrees"].startswith("30 of 40 ")
    assert shares["clear"] == "23 of 27"
    assert (shares["cat"][:7], shares["cigar"][:7]) == ("0.04 (−", "−1.48 (")


# The model itself


def installed():
    try:
        importlib.metadata.version(language_model.PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return False
    return all(importlib.util.find_spec(name) for name in ("gguf", "accelerate"))


@pytest.fixture(scope="module")
def model():
    if not installed():
        pytest.skip(f"{language_model.PACKAGE}, gguf or accelerate is not installed")
    return language_model.load()


def by_hand(model, start, text):
    """The sum over tokens, from one call of the network for each of them."""
    import torch

    ids, total = model.tokenizer(start + text, add_special_tokens=False)["input_ids"], 0.0
    for at in range(1, len(ids)):
        with torch.no_grad():
            logits = model.network(torch.tensor([ids[:at]])).logits[0, -1].double()
        total += logits.log_softmax(-1)[ids[at]].item()
    return total


@pytest.mark.weekly
def test_what_was_measured_of_it_elsewhere(model):
    import torch

    said = [f"The {who} said that {he} was late." for who in ("nurse", "doctor") for he in HE]
    nurse, doctor = np.diff(model.log_p(said)[:, 0].reshape(2, 2), axis=1)[:, 0]
    assert (nurse, doctor) == pytest.approx((1.06, 0.17), abs=0.005)
    whole, shuffled = model.log_p(["The cat sat on the mat.", "cat the on mat sat The."])[:, 0]
    assert (whole, shuffled) == pytest.approx((-42.5, -68.6), abs=0.05)
    ids = model.tokenizer("The capital of France is", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        first = model.network(torch.tensor([ids])).logits[0, -1].topk(2)
    assert first.values.tolist() == pytest.approx([17.4, 14.9], abs=0.05)
    assert model.tokenizer.decode(first.indices[0]) == " Paris"


@pytest.mark.weekly
@pytest.mark.parametrize("entity", ["purse", "beer", "cigar"])
def test_entities_are_scored_as_by_hand_and_as_committed(model, entity):
    """What follows the agent, from what it is with less what stands before the entity alone."""
    frame = stimuli.entities().set_index("entity").at[entity, "frame"]
    rows = pandas.read_csv(language_model.ENTITIES).query(
        "entity == @entity and wording == 'A … was'"
    )
    for agent in study2_masked.AGENTS:
        text = frame.replace("The {agent} is", f"A {agent} was").format(entity=entity)
        before = text[: text.rindex(f" {entity}")]
        found = by_hand(model, model.start, text) - by_hand(model, model.start, before)
        assert found == pytest.approx(rows[agent].item(), abs=1e-3)
