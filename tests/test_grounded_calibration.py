"""The calibration of study 1 on data whose error rate is known, and the chapter's tables."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy import stats

from biaslib import inference, models, published, runtime
from biaslib.report import grounded as plots
from biaslib.studies import grounded as study
from biaslib.studies import grounded_calibration as calibration


def null_of(n_models, n_tests, rng, spread=1.0):
    """Scores of models without bias: normal, with a mean for every test."""
    cells = pandas.MultiIndex.from_product([range(n_models), range(n_tests)])
    table = pandas.DataFrame(index=cells).reset_index(names=["world", "test"])
    centre = rng.normal(size=n_tests)[table["test"]]
    table["numerator"] = centre + spread * rng.normal(size=len(table))
    return table.assign(level="word", experiment=1, value=table["numerator"])


def test_rejections_count_and_bound_as_clopper_and_pearson():
    scores = pandas.DataFrame({"p": [0.01, 0.04, 0.2, 0.97], "world": [0, 0, 1, 1]})
    found = calibration.rejections(scores.assign(level="word", experiment=1), columns=["p"])
    row = found.iloc[0]
    assert (row["rejected"], row["n"], row["both_sides"]) == (2, 4, 0.75)
    assert row["low"] == pytest.approx(stats.beta.ppf(0.025, 2, 3))
    assert row["high"] == pytest.approx(stats.beta.ppf(0.975, 3, 2))
    assert (row["model_low"], row["model_high"]) == (0, 1)


def test_intervals_over_models_are_wider_where_models_share_their_accidents():
    rng = np.random.default_rng(0)
    bad = np.repeat(rng.random(8) < 0.5, 50)
    scores = pandas.DataFrame({"p": np.where(bad, 0.01, 0.5), "world": np.repeat(range(8), 50)})
    row = calibration.rejections(scores.assign(level="word", experiment=1), columns=["p"]).iloc[0]
    assert row["model_high"] - row["model_low"] > 3 * (row["high"] - row["low"])


def test_the_first_remedy_is_a_prediction_by_students_t():
    null = null_of(8, 3, np.random.default_rng(1))
    new = null[null["world"] == 0].assign(numerator=2.0)
    found = calibration.against_models(new, null[null["world"] > 0])
    other = null.query("world > 0 and test == 1")["numerator"]
    t = (2.0 - other.mean()) / (other.std(ddof=1) * np.sqrt(1 + 1 / 7))
    assert found.loc[found["test"] == 1, "t"].item() == pytest.approx(t)
    assert found.loc[found["test"] == 1, "p_models"].item() == pytest.approx(
        2 * stats.t.sf(abs(t), 6)
    )


def test_the_first_remedy_has_its_level_where_scores_are_normal():
    null = null_of(8, 1_500, np.random.default_rng(2))
    found = calibration.leave_one_model_out(null)
    assert len(found) == len(null)
    assert (found["p_models"] < 0.05).mean() == pytest.approx(0.05, abs=0.008)


def test_random_words_hold_their_level_where_the_permutation_test_does_not():
    """Targets in two clusters, and attributes that are words like all others."""
    rng = np.random.default_rng(3)
    n, d, n_tests = 8, 20, 150
    rejected = {"permutation": 0, "words": 0}
    for _ in range(n_tests):
        centre = rng.normal(size=(2, d))
        targets = {t: c + 0.2 * rng.normal(size=(n, d)) for t, c in zip("XY", centre, strict=True)}
        words = rng.normal(size=(60, d))
        labels = np.array([f"w{i:02}" for i in range(60)])
        own = {f"{a}{c}": words[k : k + 8] for a, k in (("A", 0), ("B", 8)) for c in "xy"}
        pool = {f"A{c}": words[16:] for c in "xy"}
        names = {name: np.arange(len(rows)).astype(str) for name, rows in (targets | own).items()}
        test = study.EmbeddedSets("C6", "word", "none", targets | own, names, names)
        pool_words = dict.fromkeys(pool, labels[16:])
        pool = study.EmbeddedSets("C6", "word", "none", pool, pool_words, pool_words)
        result = test.grounded(1)
        found = calibration.against_words(test, pool, 1, n_sets=199)
        p = inference.permutation_test(result.x_scores, result.y_scores).p_value
        rejected["permutation"] += p < 0.025 or p > 0.975
        rejected["words"] += found.p_value(study.numerator(result)) < 0.05
    assert rejected["permutation"] / n_tests > 0.4
    assert rejected["words"] / n_tests == pytest.approx(0.05, abs=0.05)


def test_experiment_2_draws_words_in_the_context_of_each_target():
    rng = np.random.default_rng(4)
    sets = {name: rng.normal(size=(4, 6)) for name in study.SETS}
    names = {name: np.array(list("abcd")) for name in study.SETS}
    test = study.EmbeddedSets("C6", "word", "none", sets, names, names)
    pool = study.EmbeddedSets(
        "C6",
        "word",
        "none",
        {name: rng.normal(size=(9, 6)) for name in ("Ax", "Ay")},
        dict.fromkeys(("Ax", "Ay"), np.array(list("abcdefghi"))),
        {},
    )
    found = calibration.against_words(test, pool, 2, n_sets=50, seed=5)
    near = [study.cosines(sets[t], pool.embeddings[a]) for t, a in (("X", "Ax"), ("Y", "Ay"))]
    other = inference.random_attribute_null(*near, 4, 4, n_sets=50, rng=5)
    np.testing.assert_allclose(found.effect_sizes, other.effect_sizes)
    np.testing.assert_allclose(
        found.differences, other.x_scores.mean(axis=1) - other.y_scores.mean(axis=1)
    )


def test_a_pool_shows_every_word_with_the_people_of_the_targets():
    pools = calibration.word_pools(n_words=10)
    gender = pools["gender"]
    assert gender.rows.groupby("set")["word"].nunique().tolist() == [10] * 6
    people = gender.pool.images.iloc[gender.rows.loc[gender.rows["set"] == "Ax", "image"]]
    assert set(people["gender"]) == {"man"}
    tones = pools["race"].pool.images.iloc[
        pools["race"].rows.loc[pools["race"].rows["set"] == "Ay", "image"]
    ]
    assert set(tones["tone"]) == {5}


def test_the_real_encoder_is_judged_by_the_other_half_of_random_words():
    rng = np.random.default_rng(6)
    found = SimpleNamespace(
        test="C6", level="word", effect_sizes=rng.normal(size=2_000), p_values=np.full(2_000, 0.01)
    )
    row = calibration.encoder_rejections([found]).iloc[0]
    assert row["permutation"] == 1
    assert row["remedy"] == pytest.approx(0.05, abs=0.02)
    assert row["low"] < row["remedy"] < row["high"]


def test_null_scores_are_those_of_models_without_bias(tmp_path):
    store = runtime.Store(tmp_path)
    every = study.planted_regions(study.planted_stimuli(["C6"], ["word"], n_per_word=2))
    null = calibration.null_scores(every, seeds=[0, 1], store=store)
    model = models.load("visualbert", profile="planted", dose=0, seed=1)
    (one,) = study.embed(model, every, store=store)
    expected = study.score(one, 1, n_bootstrap=0)["value"]
    assert null.query("world == 1 and experiment == 1")["value"].item() == expected
    sizes = calibration.sizes(null)
    assert sizes["n_models"].tolist() == [2, 2]
    assert sizes["mean"].iloc[0] == pytest.approx(
        null.query("experiment == 1")["value"].abs().mean()
    )


def test_worlds_of_the_oracle_answer_the_first_question(tmp_path):
    scenes = study.planted_stimuli(["C11", "occupation-gender"], ["word"])
    found = calibration.answers(["oracle"], scenes, runtime.Store(tmp_path))
    first = found[found["question"] == "1: numerator"]
    assert (first.loc[first["answer"] == "no", "measure"] == 0).all()
    assert (first.loc[first["answer"] == "yes", "measure"] > 0.05).all()
    table = plots.worlds_table(found).set_index("question")
    assert table.at["1: d", "all tests apart"]
    assert "oracle" in plots.worlds_sentence(table.reset_index())


# The chapter's tables


def scores(value=0.5, p=0.01):
    rows = [
        {"model": model, "test": test, "level": level, "experiment": 1, "masking": "none"}
        for model in ("visualbert", "lxmert")
        for test in ("C3", "C6")
        for level in study.LEVELS
    ]
    return pandas.DataFrame(rows).assign(value=value, p_value=p, numerator=0.1, low=0.1, high=0.9)


def test_effect_tables_have_the_papers_structure():
    table = plots.effect_table(scores(-0.5), 1)
    assert table.columns.tolist() == ["test", "level", "VisualBERT", "LXMERT"]
    assert table["test"].tolist() == ["C6"] * 3 + ["C3"] * 3
    assert table["level"].tolist() == ["W", "S", "C"] * 2
    assert set(table["LXMERT"]) == {"−0.50*"}
    counts = plots.significant_counts(scores(p=0.2))
    assert set(counts["LXMERT"]) == {"0 of 1"}


def test_printed_tables_are_those_that_were_transcribed():
    table = plots.printed_table(3).set_index(["kind", "test", "level"])
    assert table.loc[("gender", "C6", "W")].tolist() == ["0.57", "1.04", "0.55", "1.61"]
    assert len(table) == 39
    assert plots.printed_counts().iloc[0, 3:].tolist() == ["2", "2", "3", "3"]
    total = published.table("ross2021", 7).groupby("experiment")["significant"].sum()
    assert f"{total[1]:.0f} significant tests in Experiment 1" in plots.printed_sentence()


def test_figures_of_planted_scores_say_so_and_others_do_not():
    planted = plots.effects_figure(scores().assign(profile="planted"), "word")
    paper = plots.effects_figure(scores().assign(profile="paper"), "word")
    assert planted.get_suptitle() == "planted world"
    assert paper.get_suptitle() == ""
