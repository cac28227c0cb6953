"""Scores of generative models in the planted world: by hand, on stand-ins, and as recorded."""

import numpy as np
import pandas
import pytest

import plantedworld
from biaslib import models, stimuli
from biaslib.display import table
from companion import planted_generative as plots
from companion._check import Check
from plantedworld.models.checkpoints import checkpoint
from plantedworld.models.prompts import ASKED
from plantedworld.studies import generative as study


@pytest.fixture(scope="module")
def tiny():
    return models.load(str(checkpoint("llava", 3, 2100)), device="cpu")


def captions_of(entity, gender):
    frame = stimuli.entities().set_index("entity").at[entity, "frame"]
    return frame.format(agent=gender, entity=entity)


def test_b_of_an_entity_is_what_adding_up_by_hand_gives(tiny):
    found = study.associations(tiny, seed=2100, per_agent=1)
    (neutral,) = set(stimuli.entities()["entity"]) - set(found["item"])
    scenes = plantedworld.agents_with_entities(
        np.random.default_rng(study.DRAW), found["item"].unique().tolist(), 1, "hidden"
    )
    for entity in found["item"].unique()[:3]:
        b = 0.0
        for side, gender in ((1, "woman"), (-1, "man")):
            shown = scenes[(scenes["entity"] == entity) & (scenes["gender"] == gender)]
            pair = [captions_of(each, gender) for each in (entity, neutral)]
            total = tiny.log_likelihood(shown.reset_index(drop=True), [pair]).total
            b += side * float((total[:, 0] - total[:, 1]).mean())
        of_entity = found[found["item"] == entity].set_index("score")["value"]
        assert of_entity["total"] == pytest.approx(b, abs=1e-4)
        assert set(of_entity.index) == set(study.SCORES)


def test_what_is_planted_goes_with_the_world_s_log_odds():
    names = stimuli.entities()["entity"].tolist()
    exact = study._exact_log_odds(2100, "tune")
    odds = plantedworld.world(3, 2100).truth.log_ratio(names, given="caption")
    assert exact.index.tolist() == names
    assert np.corrcoef(exact, odds)[0, 1] > 0.9


def fabricated(values):
    """Rows as recorded, of three worlds at both doses, whose values are functions of a truth."""
    planted = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    rows = []
    for score, of_dose in values.items():
        for dose in (0.0, 3.0):
            for seed in (1, 2, 3):
                value = of_dose[dose](planted) + 0.01 * seed * (dose == 3) * planted
                rows.append(
                    pandas.DataFrame(
                        {"item": range(6), "score": score, "value": value, "planted": planted}
                    ).assign(dose=dose, seed=seed, question="study 2", prompt="trained")
                )
    return pandas.concat(rows, ignore_index=True)


def test_signs_alone_find_nothing_and_the_truth_itself_does(monkeypatch):
    monkeypatch.setattr(study, "SCORES", dict.fromkeys(["total", "cloze", "yes"], ""))
    recorded = fabricated(
        {
            "total": {3.0: lambda x: x, 0.0: lambda x: 0 * x},
            "cloze": {3.0: lambda x: np.sign(x) - 0.02 * x, 0.0: lambda x: 0 * x},
            "yes": {3.0: lambda x: x, 0.0: lambda x: 1.1 * x},
        }
    )
    found = study.finding(recorded).set_index("score")
    assert found["finds"].to_dict() == {"total": True, "cloze": False, "yes": False}
    assert found.at["total", "slope"] == pytest.approx(1.02)
    assert found.at["total", "rank"] == 1


def test_lengths_put_the_right_word_where_they_say(tiny, monkeypatch):
    asked = []

    def remembered(model, images, texts):
        asked.append((images.frame, texts))
        return {"total": np.tile([1.0, 0.0], (len(texts), 1))}

    monkeypatch.setattr(study, "caption_scores", remembered)
    found = study.lengths(tiny, seed=2100, n=8)
    assert found[["right is long", "right is short"]].to_numpy().tolist() == [[100, 100]]
    (frame, long_right), (_, short_right) = asked
    for (right, wrong), word in zip(long_right, frame["object"], strict=True):
        assert word in right
        assert word not in wrong
        assert wrong.startswith("a photo of")
        assert not right.startswith("a photo of")
    for (right, wrong), word in zip(short_right, frame["object"], strict=True):
        assert word in right
        assert word not in wrong
        assert right.startswith("a photo of")
        assert not wrong.startswith("a photo of")


def test_what_is_recorded_is_whole():
    found = study.recorded()
    worlds = {(dose, seed) for dose in (0.0, 3.0) for seed in study.VERDICT_WORLDS}
    biased = {(dose, seed) for dose, seed in worlds if dose}
    for (_, _, prompt), part in found.groupby(["question", "score", "prompt"]):
        asked = worlds if prompt == "trained" else biased
        assert set(zip(part["dose"], part["seed"], strict=True)) == asked
    two = found[found["question"] == "study 2"]
    assert set(two["score"]) == set(study.SCORES)
    assert set(two["prompt"]) == set(ASKED)
    sizes = two.groupby(["score", "prompt", "dose", "seed"]).size()
    assert set(sizes) == {len(stimuli.entities()) - 1}
    four = found[found["question"].isin(["study 4", "length"])]
    assert four["value"].between(0, 100).all()
    places = found[found["item"].astype(str).str.startswith("share of")]
    np.testing.assert_allclose(places.groupby(["dose", "seed"])["value"].sum(), 1, atol=1e-5)


def test_what_is_said_of_the_recorded_answers_adds_up():
    recorded = study.recorded()
    found = study.finding(recorded)
    said = plots.selection_sentence(found, recorded)
    rise = found.set_index("score").at["total", "rise"]
    assert f"which makes {rise:.0f}." in said
    finders = found[found["finds"] & (found["score"] != "no picture")]
    assert plots.found_by(found).count("(slope ") == len(finders) == 1
    assert plots.found_by(found).startswith("one score finds what is planted")
    none = plots.found_by(found.assign(finds=False))
    assert none == "no score finds what is planted in study 2"
    shares = plots.order_shares(recorded)
    assert shares["least"] <= shares["lowest"] < shares["highest"] <= shares["most"]


def test_tables_hold_decimals_and_no_powers_of_ten():
    recorded = study.recorded()
    for each in (plots.finding_table(study.finding(recorded)), plots.prompt_table(recorded)):
        assert "e−" not in table(each, "any")._repr_html_()


def test_answers_at_chance_are_told_from_answers_above_it():
    card = {"pairs judged": 100, "match chance": 0.5, "yes to it rather": 0.58}
    card |= {"likelier than swapped": 0.71, "truth's match accuracy": 0.84}
    said = plots.answered_sentence(pandas.DataFrame([card]))
    assert said.startswith(
        "Yes or no is at chance (100 pairs: ±10 points); the likelihood is above"
    )
    # Shares as the table prints them: 0.835 is 0.83 there.
    cards = pandas.DataFrame([card | {"truth's match accuracy": each} for each in (0.67, 0.835)])
    assert plots.answered_sentence(cards).endswith(
        "right in a share of 0.67 and 0.83 of such pairs."
    )
    assert '<td class="number">0.83</td>' in table(cards, "any")._repr_html_()
    said = plots.answered_sentence(pandas.DataFrame([card | {"yes to it rather": 0.7}]))
    assert said.startswith("Yes or no is not at chance")


def log_odds(p):
    return np.log(p / (1 - p))


def test_the_check_of_two_orders_rejects_what_it_teaches_against():
    def halved(first, second):
        return (log_odds(first) - log_odds(second)) / 2

    assert plots.check_preference(halved).passed
    assert plots.check_preference(lambda a, b: np.array(halved(a, b))).passed
    wrong = [
        lambda first, second: first - second,
        lambda first, second: (log_odds(first) + log_odds(second)) / 2,
        lambda first, second: log_odds((first + 1 - second) / 2),
        lambda first, second: log_odds(first),
        None,
    ]
    for answer in wrong:
        found = plots.check_preference(answer)
        assert isinstance(found, Check)
        assert not found.passed
