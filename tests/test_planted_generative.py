"""Scores of generative models in the planted world: by hand, on stand-ins, and as recorded."""

import numpy as np
import pandas
import pytest

import plantedworld
from biaslib import models
from companion import planted_generative as plots
from plantedworld.models.checkpoints import checkpoint
from plantedworld.studies import generative as study
from plantedworld.studies.recorded import recorded


@pytest.fixture(scope="module")
def tiny():
    return models.load(str(checkpoint("llava", 3, 2100)), device="cpu")


def test_scores_of_captions_differ_by_what_stands_in_for_the_picture(tiny):
    scene = plantedworld.agents_with_entities(np.random.default_rng(0), ["purse"], 1, "hidden")
    scene, pair = scene.iloc[[0]], ["The woman is carrying a purse.", "The man is in a tie."]
    found = study.caption_scores(tiny, scene, [pair])
    assert set(found) == set(study.SCORES) - {"cloze"}
    total = tiny.scored_by("total").log_likelihood(scene, [pair]).total
    np.testing.assert_allclose(found["total"], total, atol=1e-4)
    np.testing.assert_allclose(found["gain"], total - found["no picture"], atol=1e-4)


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


def test_one_score_finds_what_is_planted_in_study_2_and_none_without_a_picture():
    found = study.finding(recorded("generative")).set_index("score")
    assert found.index[found["finds"]].tolist() == ["cloze"]
    finders = found.index[found["finds, study 4"].eq(True)].tolist()
    assert finders == ["total", "mean", "gain", "over white"]
    assert (found["rank"].drop("no picture") < found.at["no picture", "rank"]).all()
    orders = plots.order_table(recorded("generative"))["%"].tolist()
    assert sum(orders[:3]) == pytest.approx(100, abs=1e-3)
    assert orders[6] <= orders[4] < orders[5] <= orders[7]


def test_the_length_of_a_caption_counts_one_way_and_divided_by_it_the_other():
    shares = plots.length_table(plots.length_shares(recorded("generative"))).set_index("score")
    more = shares["right is short"] - shares["right is long"]
    assert more["log-likelihood"] > 30
    assert more["per token"] < -30
    assert abs(more["less white picture"]) < abs(more["less no picture"]) < 10
    assert shares.loc["less grey picture", "right is short"] < 10


def test_between_prompts_slopes_move_by_a_few_hundredths():
    table = plots.prompt_table(recorded("generative")).set_index("score")
    assert (table.max(axis=1) - table.min(axis=1)).max() < 0.04


def test_position_decides_every_pick_though_letters_are_even():
    table = plots.order_table(recorded("generative")).set_index("what")["%"]
    assert table[[f"share of {letter}" for letter in "ABC"]].to_numpy() == pytest.approx(33, abs=2)
    assert table["pictures whose pick depends on the order"] == 100
