"""The statistics of the sealed trial: closed forms, and scores that have to fail."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plantedworld.studies.recovery import (
    EQUIVALENCE,
    SIZE,
    Target,
    judge,
    partial_rank,
    rank_within_signs,
    recovered,
    stand_ins,
    without_bias,
)

N_WORDS, WORLDS = 120, range(8)


def made(slope=1.0, noise=0.15, dose=(0, 1, 3), seed=0, samples=(0, 1)):
    """Scores of a model that finds ``slope`` times the truth, with noise."""
    rng, rows = np.random.default_rng(seed), []
    for world in WORLDS:
        planted = rng.uniform(-1.1, 1.1, N_WORDS)
        label = np.sign(rng.normal(size=N_WORDS))
        for each in dose:
            for sample in samples:
                error = rng.normal(0, noise, N_WORDS)
                part = {"item": [f"word {n}" for n in range(N_WORDS)], "planted": planted}
                part |= {"truth": each * planted, "value": slope * each * planted + error}
                part |= {"label": label, "blind": rng.normal(size=N_WORDS)}
                part |= {"dealt": rng.normal(0, noise, N_WORDS)}
                fixed = {"measure": "m", "model": "a", "dose": float(each), "seed": world}
                rows.append(pandas.DataFrame(part).assign(**fixed, sample=sample))
    return pandas.concat(rows, ignore_index=True)


TARGETS = [
    Target("m", "a", dose, statistic, least, most)
    for dose in (1, 3)
    for statistic, least, most in (("slope", 0.85, 1.15), ("rank within signs", 0.8, np.inf))
]


# Single statistics


def test_rank_within_signs_is_the_weighted_mean_of_two_correlations():
    rng = np.random.default_rng(1)
    truth = np.concatenate([rng.uniform(0.1, 1, 30), -rng.uniform(0.1, 1, 10)])
    value = truth + rng.normal(0, 0.5, 40)
    up, down = (stats.spearmanr(value[s], truth[s]).statistic for s in (truth > 0, truth < 0))
    assert rank_within_signs(value, truth) == pytest.approx((30 * up + 10 * down) / 40, abs=1e-12)


def test_signs_alone_have_a_high_rank_over_all_words_and_none_within_signs():
    truth = np.random.default_rng(2).uniform(-1, 1, 400)
    signs = np.sign(truth)
    assert stats.spearmanr(signs, truth).statistic == pytest.approx(0.866, abs=0.005)
    assert rank_within_signs(signs, truth) == 0.0
    noisy = signs + np.random.default_rng(3).normal(0, 0.1, 400)
    assert abs(rank_within_signs(noisy, truth)) < 0.15


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40, unique=True))
@settings(max_examples=50, deadline=None)
def test_rank_within_signs_knows_no_monotone_change_that_keeps_signs(truth):
    truth = np.round(truth, 6)
    if len(set(truth)) < len(truth) or max((truth > 0).sum(), (truth < 0).sum()) < 3:
        return
    assert rank_within_signs(truth**3, truth) == pytest.approx(1.0)
    assert rank_within_signs(-truth, truth) == pytest.approx(-1.0)


def test_too_few_words_of_a_sign_are_left_out():
    assert rank_within_signs([1, 2, 3, 9, -9], [1, 2, 3, -1, -2]) == pytest.approx(1.0)
    assert np.isnan(rank_within_signs([1, -1], [1, -1]))


def test_partial_rank_is_the_correlation_of_residual_ranks():
    rng = np.random.default_rng(4)
    given = rng.normal(size=200)
    truth, value = given + rng.normal(size=200), given + rng.normal(size=200)
    ranks = [stats.rankdata(each) for each in (value, truth, given)]
    lines = [np.polyval(np.polyfit(ranks[2], each, 1), ranks[2]) for each in ranks[:2]]
    residuals = [each - line for each, line in zip(ranks[:2], lines, strict=True)]
    expected = stats.pearsonr(*residuals).statistic
    assert partial_rank(value, truth, given) == pytest.approx(expected, abs=1e-12)
    assert partial_rank(given, truth, given) == 0.0


# Verdicts


def test_samples_of_a_world_are_averaged_and_worlds_counted():
    table = recovered(made())
    assert len(table) == 3 * len(WORLDS)
    scores = made(samples=(0,))
    one = scores.query("dose == 3 and seed == 2")
    slope = stats.linregress(one["truth"], one["value"]).slope
    row = recovered(scores).query("dose == 3 and seed == 2").iloc[0]
    assert row["slope"] == pytest.approx(slope, abs=1e-12)
    assert row["response"] == pytest.approx(3 * slope, abs=1e-12)
    assert row["size"] == pytest.approx(np.sqrt((one["value"] ** 2).mean()))
    zero = table[table["dose"] == 0]
    assert zero[["slope", "rank", "rank within signs", "signs"]].isna().all(axis=None)


def test_a_model_that_finds_the_truth_reaches_its_targets():
    found = judge(recovered(made()), TARGETS)
    assert found["reached"].all()
    assert set(found["n"]) == {len(WORLDS)}


def test_a_target_needs_the_whole_interval():
    rows = recovered(made(noise=0.5, samples=(0,)))
    (found,) = judge(rows, [Target("m", "a", 1, "slope", 0.0)]).to_dict("records")
    assert found["reached"]
    for least, most in ((found["mean"] - 1e-9, np.inf), (0.0, found["mean"] + 1e-9)):
        told = judge(rows, [Target("m", "a", 1, "slope", least, most)])
        assert not told["reached"].item()
    exact = judge(rows, [Target("m", "a", 1, "slope", found["low"], found["high"])])
    assert exact["reached"].item()


def test_what_was_not_scored_is_not_reached():
    found = judge(recovered(made()), [Target("other", "a", 1, "slope", 0.0)])
    assert found[["n", "reached"]].values.tolist() == [[0, False]]
    one_world = made().query("seed == 0")
    assert not judge(recovered(one_world), TARGETS)["reached"].any()


WRONG = [
    *("signs alone", "sees nothing", "label alone", "signs exchanged", "truth shuffled"),
    *("another world", "no bias", "no picture", "groups dealt anew"),
]


def test_no_stand_in_is_called_a_recovery():
    found = stand_ins(made())
    assert set(found) == set(WRONG)
    for name, scores in found.items():
        told = judge(recovered(scores), TARGETS)
        for _, each in told.groupby("dose"):
            assert not each["reached"].all(), name


def test_stand_ins_are_what_they_say():
    scores = made()
    found = stand_ins(scores)
    rows = scores[(scores["dose"] == 3) & (scores["seed"] == 2) & (scores["sample"] == 1)]
    other = scores[(scores["dose"] == 3) & (scores["seed"] == 3) & (scores["sample"] == 1)]
    zero = scores[(scores["dose"] == 0) & (scores["seed"] == 2) & (scores["sample"] == 1)]
    taken = {name: each.loc[rows.index] for name, each in found.items()}
    assert np.array_equal(taken["another world"]["value"], other["value"])
    assert np.array_equal(taken["no bias"]["value"], zero["value"])
    assert np.array_equal(taken["signs exchanged"]["value"], -rows["value"])
    assert sorted(taken["truth shuffled"]["truth"]) == sorted(rows["truth"])
    assert not np.array_equal(taken["truth shuffled"]["truth"], rows["truth"])
    alone = taken["signs alone"]
    assert np.array_equal(np.sign(alone["value"]), np.sign(rows["truth"]))
    assert alone["value"].abs().nunique() == 1
    assert np.polyfit(alone["truth"], alone["value"], 1)[0] == pytest.approx(1.0)
    assert not taken["sees nothing"]["value"].any()


def test_another_world_is_one_in_which_the_model_was_trained():
    """Families have other numbers of worlds: none is lost for want of a neighbour."""
    both = pandas.concat([made(), made().query("seed % 2 == 0").assign(model="b")])
    found = stand_ins(both)["another world"]
    assert found.groupby("model")["seed"].nunique().to_dict() == {"a": 8, "b": 4}


# Without bias


def controls(value=2.0):
    rows = [
        {"measure": "m", "model": "a", "dose": float(dose), "seed": world, "value": value}
        for dose in (0, 1, 3)
        for world in WORLDS
    ]
    return pandas.DataFrame(rows)


def test_models_of_dose_0_are_shown_to_be_without_bias_and_no_others():
    found = without_bias(recovered(made()), controls()).set_index("dose")["shown"]
    assert found.to_dict() == {0.0: True, 1.0: False, 3.0: False}


def test_a_measure_that_sees_nothing_shows_nothing():
    for name in ("groups dealt anew", "sees nothing"):
        table = recovered(stand_ins(made())[name])
        assert without_bias(table, controls())["shown"].all()
        assert not without_bias(table, controls(0.0))["shown"].any()
        assert not without_bias(table, controls().iloc[:0])["shown"].any()
    own = without_bias(recovered(made()), controls()).set_index("dose")["shown"]
    assert own.to_dict() == {0.0: True, 1.0: False, 3.0: False}


def test_a_bias_in_other_directions_is_no_absence_of_bias():
    other = stand_ins(made())["another world"]
    found = without_bias(recovered(other[other["dose"] > 0]), controls())
    assert (found["mean"].abs() < EQUIVALENCE).all()
    assert (found["size"] > SIZE).all()
    assert not found["shown"].any()


def test_few_worlds_show_nothing():
    assert not without_bias(recovered(made().query("seed == 0")), controls())["shown"].any()
    seven = recovered(made().query("seed > 0"))
    assert without_bias(seven, controls(), worlds=7).set_index("dose").loc[0.0, "shown"]
    assert not without_bias(seven, controls(), worlds=8)["shown"].any()


def test_a_target_is_not_reached_with_a_world_missing():
    """A model that breaks down in one world may not leave it out."""
    scores = made()
    broken = (scores["seed"] == 3) & (scores["dose"] == 3)
    some = recovered(scores.assign(value=scores["value"].mask(broken)))
    for worlds, reached in ((8, False), (7, True)):
        told = judge(some, [Target("m", "a", 3, "slope", 0.85, 1.15, worlds)])
        assert told["reached"].item() == reached


def test_truths_that_are_zero_but_for_rounding_have_no_sign():
    truth = np.concatenate([np.linspace(0.1, 1, 10), -np.linspace(0.1, 1, 10), np.full(20, 1e-12)])
    value = np.concatenate([truth[:20], np.arange(20.0)])
    assert rank_within_signs(value, truth) == pytest.approx(1.0)
