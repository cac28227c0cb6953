"""The calibration of study 1 on data whose error rate is known, and the chapter's tables."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import stats
from support import typed

from biaslib import inference, models, runtime
from biaslib.display import p_text, signed
from biaslib.metrics.association import cosines
from biaslib.studies import study1_grounded as study
from companion import planted_study1_grounded as verdicts
from companion import study1_grounded as plots
from plantedworld.inputs import study1_grounded as planted
from plantedworld.studies import study1_grounded as calibration


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
    assert 0 <= row["model_low"] < 0.1 < 0.9 < row["model_high"] <= 1


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
        dict.fromkeys(("Ax", "Ay"), np.array(list("aabcdefgh"))),
        {},
    )
    found = calibration.against_words(test, pool, 2, n_sets=50, seed=5)
    near = [cosines(sets[t], pool.embeddings[a]) for t, a in (("X", "Ax"), ("Y", "Ay"))]
    near = [np.column_stack([each[:, :2].mean(axis=1), each[:, 2:]]) for each in near]
    other = inference.random_attribute_null(*near, 4, 4, n_sets=50, rng=5)
    np.testing.assert_allclose(found.effect_sizes, other.effect_sizes)
    np.testing.assert_allclose(
        found.differences, other.x_scores.mean(axis=1) - other.y_scores.mean(axis=1)
    )


def test_a_pool_shows_every_word_with_the_people_of_the_targets():
    pools = calibration.word_pools(n_words=10)
    gender = pools["gender"]
    assert gender.rows.groupby("set")["word"].nunique().tolist() == [10] * 6
    people = gender.images.frame.iloc[gender.rows.loc[gender.rows["set"] == "Ax", "image"]]
    assert set(people["gender"]) == {"man"}
    tones = pools["race"].images.frame.iloc[
        pools["race"].rows.loc[pools["race"].rows["set"] == "Ay", "image"]
    ]
    assert set(tones["tone"]) == {5}


def test_words_dealt_by_chance_have_the_root_mean_square_that_is_said():
    """All 70 ways to deal eight words, whatever their scores."""
    scores = np.random.default_rng(8).lognormal(size=8)
    sizes = []
    for chosen in itertools.combinations(range(8), 4):
        own = np.isin(np.arange(8), chosen)
        difference = scores[own].mean() - scores[~own].mean()
        sizes.append(difference / scores.std(ddof=1))
    table = pandas.DataFrame({"level": "word", "experiment": 1, "world": 0, "value": sizes})
    row = verdicts.null_table(table.assign(numerator=0.0, n=8)).iloc[0]
    assert row["rms d, words dealt by chance"] == pytest.approx(np.sqrt(1 / 2))
    assert row["rms d"] == pytest.approx(row["rms d, words dealt by chance"])


def test_worlds_of_the_oracle_answer_the_first_question(tmp_path):
    scenes = planted.planted_stimuli(["C11", "occupation-gender"], ["word"])
    found = calibration.answers(["oracle"], scenes, runtime.Store(tmp_path))
    first = found[found["question"] == "1: numerator"]
    assert (first.loc[first["answer"] == "no", "measure"] == 0).all()
    assert (first.loc[first["answer"] == "yes", "measure"] > 0.05).all()
    table = verdicts.worlds_table(found).set_index("question")
    assert table.at["1: d", "all tests apart"]


def test_the_oracle_tells_by_one_text_with_and_without_its_picture_what_pictures_can_correct(
    tmp_path,
):
    """C8 has no part: its targets are shown with nobody."""
    scenes = planted.planted_stimuli(["C8", "C11", "occupation-gender"], ["word"])
    found = calibration.answers(["oracle"], scenes, runtime.Store(tmp_path))
    measures = found.set_index(["question", "answer", "test"])["measure"].sort_index()
    for question in ("2: picture, d", "2: picture, numerator"):
        assert set(measures.loc[question].reset_index()["test"]) == {"C11", "occupation-gender"}
    yes, no = (measures.loc["2: picture, numerator", answer] for answer in ("yes", "no"))
    assert (yes == 1).all()
    assert no.between(0.85, 0.95).all()
    # Without a difference there is no effect size, which counts as 0.
    oracle = models.load("oracle", dose=3, seed=0, planted_in="images")
    for sets in study.embed(oracle, scenes, store=runtime.Store(tmp_path)):
        row = study.score(sets, 1, n_bootstrap=0, p_values=False)
        assert np.isnan(row["value"])
    yes, no = (measures.loc["2: picture, d", answer] for answer in ("yes", "no"))
    assert (yes > 1.8).all()
    assert no.abs().max() < 0.2


def test_a_picture_leaves_a_name_little_to_add_on_tone(tmp_path):
    tones = planted.planted_stimuli(["C3", "DB-likeable-race"], ["word"])
    oracle, store = models.load("oracle", dose=3, seed=0), runtime.Store(tmp_path)
    sizes = [
        study.run(
            oracle, tones, [1], with_images=shown, store=store, n_bootstrap=0, p_values=False
        )["numerator"].abs()
        for shown in (False, True)
    ]
    assert (sizes[1] < sizes[0] / 10).all()


# The chapter's tables


@pytest.mark.weekly
def test_the_quiz_compares_the_medians_of_the_chapters_table():
    """Its cells, for the ratios that a question of the quiz names."""
    world = next(iter(study.inputs("planted", n_per_word=3, n_texts=3).values()))
    gender = set(study.tests().query("group == 'gender'")["test"])
    calibrated = [each for each in world if each.level == "word" or each.test in gender]
    null = calibration.null_scores(calibrated, experiments=[1])
    found = []
    for seed in (0, 1):
        model = models.load(calibration.NULL_MODEL, profile="planted", dose=3, seed=seed)
        settings = {"labels": {"world": seed}, "n_bootstrap": 0, "p_values": False}
        found.append(study.run(model, world, (1,), **settings))
    signs = verdicts.with_signs(pandas.concat(found)).query("group == 'gender'")
    table = verdicts.contrast_table(null, signs).set_index("models")
    d, difference = table.loc["dose 3, planted tests"] / table.loc["without bias"]
    asked = typed.source("book/quizzes/planted_study1_grounded.yml")
    words = "about {difference} times as large .. only {d} times"
    assert typed.check(words, asked, {"difference": difference, "d": d}).matched


def scores(value=0.5, p=0.01):
    rows = [
        {"model": model, "test": test, "level": level, "experiment": 1, "masking": "none"}
        for model in ("visualbert", "lxmert")
        for test in ("C3", "C6")
        for level in study.LEVELS
    ]
    numbers = {"p_value": p, "p_value_paper": p, "numerator": 0.1, "low": 0.1, "high": 0.9}
    return pandas.DataFrame(rows).assign(value=value, **numbers)


def test_signs_are_judged_against_the_world_of_each_model():
    table = pandas.concat([scores(d).assign(world=w) for d, w in ((0.5, 0), (0.3, 1))])
    table = pandas.concat([table, table.assign(test="C8")])
    rows = verdicts.with_signs(table)
    # C8 is the control of seed 0; seed 1 draws its direction, and the opposite of C6's and C3's.
    assert set(zip(rows["test"], rows["world"], rows["right"], strict=True)) == {
        ("C3", 0, True), ("C3", 1, False), ("C6", 0, True), ("C6", 1, False), ("C8", 1, True),
    }  # fmt: skip
    signs = verdicts.sign_table(table)
    gender = signs.query("group == 'gender' and model == 'tiny-LXMERT'").iloc[0]
    assert gender["word"] == "3 of 4; 0.20"
    missed = verdicts.miss_table(table)
    assert set(missed["test"]) == {"C6"}
    assert missed["d in the planted direction"].unique().tolist() == [-0.3]
    assert missed["model"].value_counts().to_dict() == {"tiny-VisualBERT": 3, "tiny-LXMERT": 3}


def test_more_is_asked_from_left_to_right():
    """Of five p-values of words, Holm multiplies the least by 5 and the next by 4."""
    papers = [0.001, 0.01, 0.02, 0.04, 0.5]
    rows = pandas.DataFrame({"p_value_paper": papers, "p_value": [0.009, 0.012, 0.03, 0.2, 0.6]})
    row = plots.stricter_counts(rows.assign(experiment=2, masking="words")).iloc[0]
    assert row.tolist() == ["Experiment 2, words hidden", 5, 4, 3, 2]
    third = rows.assign(experiment=3, masking="none", p_value_paper=np.nan)
    assert plots.stricter_counts(third).iloc[0].tolist() == ["Experiment 3", 5, "none", 3, 2]


def test_what_bounds_of_p_leave_undecided_has_a_star_in_brackets_and_a_count_from_to():
    labels = {"domain": "out of domain", "statistic": "effect size", "p_value_paper": 0.2}
    rows = scores().assign(**labels, p_low=0.002, p_high=0.003)
    least = rows["test"] == "C3"
    rows.loc[least, ["p_value", "p_high"]] = 0.048, 0.06
    table = plots.score_table(rows).set_index("test")["LXMERT"]
    assert table["C6"].tolist() == ["0.50*"] * 3
    assert table["C3"].tolist() == ["0.50(*)"] * 3
    counts = plots.stricter_counts(rows).iloc[0]
    # Holm takes the least p 12 times: .036 by the upper bounds of C6, .024 by all lower ones.
    assert counts.tolist() == ["Experiment 1", 12, 0, "6 to 12", "6 to 12"]


def test_the_panel_shows_the_scores_and_their_computed_null(tmp_path):
    model = models.load("visualbert", profile="planted", dose=3, seed=0)
    every = planted.planted_stimuli(["C11", "ABW"], ["word"], n_per_word=2)
    store = runtime.Store(tmp_path)
    table = study.run(model, every, store=store, n_bootstrap=0, labels={"profile": "planted"})
    panel = plots.panel({"visualbert": study.embed(model, every, store=store)}, table)
    for row in table.itertuples():
        chosen = row.test, "tiny-VisualBERT", "word", f"Experiment {row.experiment}"
        clouds, shown = panel.drawings(*chosen)
        assert f"d = {signed(row.value)}; difference {signed(row.numerator, 3)};" in clouds.sentence
        papers = f"{p_text(row.p_value_paper)} by the paper's own" in clouds.sentence
        assert papers == (row.experiment < 3)
        histogram, rule = shown.marks
        edges, shares = np.array(histogram["x"]), np.array(histogram["y"])
        assert shares.sum() == pytest.approx(1, abs=0.01)
        below, above = shares[edges[:-1] > rule["x"][0]].sum(), shares[edges[1:] > rule["x"][0]]
        assert below - 0.01 <= row.p_value <= above.sum() + 0.01
        assert rule["x"] == [pytest.approx(row.numerator)]
