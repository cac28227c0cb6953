"""Study 4: scores against the paper's counts, shifts by hand, kills, worlds of known answer."""

import base64
import dataclasses
import functools
import io
import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image
from scipy import stats
from scipy.special import log_expit
from support import rehearsal_stereotype

import plantedworld
from biaslib import display, inference, published
from biaslib.datasets import DataError, vlstereoset
from biaslib.models.images import pictures
from biaslib.models.regions import NothingFoundError
from biaslib.published import zhou2022
from biaslib.published.counts import mcnemar_p
from biaslib.runtime import Store
from biaslib.studies import study4_captions as study
from companion import _check
from companion import planted_study4_captions as verdicts
from companion import study4_captions as plots
from plantedworld.inputs import study4_captions as planted
from plantedworld.studies import study4_captions as worlds

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "vlstereoset" / vlstereoset.FILE
released = pytest.mark.skipif(
    not SAMPLE.is_file(), reason="the authors' table is not redistributed, and is not here"
)
WAY = study.Way("VisualBERT", "matching", True, "visualbert", "visualbert")
OTHER = study.Way("ViLT", "matching", True, "vilt", "vilt-itm")


class Matcher:
    """Scores captions by a table; every row is one image."""

    name, revision = "matcher", "1"
    capabilities = frozenset({"match images and texts"})

    def __init__(self, logits):
        self.logits = np.asarray(logits, dtype=float)

    def match(self, images, texts):
        rows = [int(image[0, 0, 0]) for image in images]
        columns = [[int(text.split()[-1]) for text in row] for row in texts]
        return np.array([self.logits[r, c] for r, c in zip(rows, columns, strict=True)])


class Dual:
    """Vectors by the number that a text ends with, and of grey pictures."""

    name, revision, scale = "dual", "1", 10.0
    capabilities = frozenset({"encode texts and images apart"})

    def encode_text(self, texts):
        return np.array([[1.0, float(text.split()[-1])] for text in texts])

    def encode_image(self, images):
        return np.array([[2.0, float(image[0, 0, 0])] for image in images])


def grey(n):
    return [np.full((4, 4, 3), value, np.uint8) for value in range(n)]


def scored(original, way=WAY, neutral=None, white=None, scale=1.0):
    original = np.asarray(original, float)
    nothing = np.full((len(original), 2), np.nan)
    neutral, white = (nothing if each is None else np.asarray(each) for each in (neutral, white))
    return study.Scored(way, "1", original, neutral, white, scale)


def run_of(table, *scores, profile="planted"):
    n = len(table["category"])
    names = [*study.CAPTIONS, *study.NEUTRAL]
    columns = {name: [name] * n for name in names if name not in table}
    table = pandas.DataFrame({"target": ["sister"] * n, "triplet": range(n)} | columns | table)
    given = study.Inputs(table, grey(1), grey(1), profile, "invented", balance=profile == "paper")
    skipped = pandas.DataFrame(columns=["model", "reason"])
    return study.Run(given, {each.way.label: each for each in scores}, skipped)


# vlrs, vlbs, ivlas


def table_with_counts(model):
    """Rows whose picks have the whole counts behind a model's percentages."""
    counts = zhou2022.reconstructed_counts().query("model == @model")
    counts = counts.set_index(["category", "metric"])["count"].astype(int)
    categories, labels, logits = [], [], []
    for category, size in zhou2022.sizes_of(model).items():
        half, biased = size // 2, counts[category, "vlbs"]
        lost = size - counts[category, "vlrs"]
        picks = ["s"] * biased + ["i"] * lost + ["a"] * (size - biased - lost)
        for at, pick in enumerate(picks):
            categories.append(category)
            labels.append("anti-stereotype" if at < half else "stereotype")
            logits.append({"s": (2, 1, 0), "a": (1, 2, 0), "i": (1, 0, 2)}[pick])
    return {"category": categories, "label": labels}, logits


@pytest.mark.parametrize("model", published.table("zhou2022", 2)["model"])
def test_the_whole_counts_behind_table_4_give_tables_3_and_4(model):
    table, logits = table_with_counts(model)
    found = study.selection_scores(run_of(table, scored(logits)), n_resamples=2)
    values = found.set_index(["test", "statistic"])["value"].round(2)
    printed = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    for row in printed[printed["model"] == model].itertuples():
        near = 0.011 if row.metric == "ivlas" else 0.0051
        assert values[row.category, row.metric] == pytest.approx(row.value, abs=near)
    assert found["n"].max() == (1018 if model == "ViLT" else 1028)


def test_scores_are_tidy_and_an_interval_without_spread_has_a_width():
    table = {"category": ["gender"] * 6, "label": ["stereotype", "anti-stereotype"] * 3}
    found = study.selection_scores(run_of(table, scored([[1, 2, 0]] * 6)))
    columns = "study model revision profile dataset test level statistic value low high p_value n"
    assert set(columns.split()) | {"seed"} <= set(found)
    row = found.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
    moved = stats.t.ppf(0.975, 2) ** 2 / 3
    assert (row["value"], row["low"], row["n"]) == (0, 0, 3)
    assert row["high"] == pytest.approx(100 * moved / (1 + moved))
    assert row["method"] == "bootstrap of triplets"


def test_images_of_a_triplet_are_drawn_together():
    """One triplet of 20 images against 20 of one each: the same picks, a wider interval."""
    label = ["anti-stereotype"] * 40
    logits = [[2, 1, 0]] * 20 + [[1, 2, 0]] * 20
    widths = []
    for triplet in ([0] * 20 + [1] * 20, range(40)):
        table = {"category": ["race"] * 40, "label": label, "triplet": triplet}
        found = study.selection_scores(run_of(table, scored(logits)))
        row = found.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
        widths.append(row["high"] - row["low"])
    assert widths[0] > 95
    assert widths[1] < 40


def test_ties_are_counted_and_split_or_given_to_the_anti_stereotype():
    table = {"category": ["race"] * 4, "label": ["anti-stereotype"] * 4}
    found = study.ties(run_of(table, scored([[1, 1, 0], [1, 1, 0], [2, 1, 0], [0, 1, 0]])))
    assert found.iloc[0].tolist() == ["VisualBERT", 2, 50.0, 25.0]


def test_averages_over_target_terms_weigh_terms_alike():
    table = {
        "category": ["race"] * 4,
        "label": ["anti-stereotype"] * 4,
        "target": ["a", "a", "a", "b"],
    }
    found = study.averages(run_of(table, scored([[1, 2, 0]] * 3 + [[2, 1, 0]])))
    row = found.query("statistic == 'vlbs'").iloc[0]
    assert row["over images"] == 25
    assert row["over target terms"] == 50


def test_selections_by_seed_are_balanced_and_move_the_score():
    rng = np.random.default_rng(0)
    labels = ["stereotype"] * 10 + ["anti-stereotype"] * 40
    table = {"category": ["race"] * 50, "label": labels}
    found = study.over_selections(run_of(table, scored(rng.normal(size=(50, 3)))), range(6))
    assert (found.query("statistic == 'vlrs'")["n"] == 20).all()
    assert found.query("statistic == 'vlbs' and test == 'race'")["value"].nunique() > 1


def one_label(profile="planted"):
    """Four rows of gender, and three of religion that are all stereotypical."""
    label = ["stereotype", "anti-stereotype"] * 2 + ["stereotype"] * 3
    table = {"category": ["gender"] * 4 + ["religion"] * 3, "label": label}
    logits = [[2, 1, 0], [2, 1, 0], [1, 2, 0], [1, 2, 0], [1, 0, 2], [2, 1, 0], [2, 1, 0]]
    return run_of(table, scored(logits), scored(logits, OTHER), profile=profile)


def test_a_category_without_an_anti_stereotype_has_no_vlbs_and_is_counted():
    found = one_label()
    scores = study.selection_scores(found).set_index(["model", "test", "statistic"])
    of_model = scores.loc["VisualBERT"]
    assert of_model.loc[("religion", "vlrs"), ["value", "n"]].tolist() == [100 * 2 / 3, 3]
    for name, n in (("vlbs", 0), ("ivlas", 3)):
        row = of_model.loc["religion", name]
        assert row[["value", "low", "high"]].isna().all()
        assert row[["n", "method"]].tolist() == [n, "not defined: no anti-stereotypical image"]
    assert of_model.loc[("overall", "vlbs"), ["value", "n"]].tolist() == [50, 2]
    assert study.gaps(found.inputs).to_numpy().tolist() == [
        [
            "religion",
            "3 stereotype, 0 anti-stereotype",
            "vlbs and ivlas are not defined; no balanced selection has it",
        ]
    ]
    assert plots.score_cell(of_model.loc["religion", "vlbs"]) == "–"
    assert plots.score_cell(of_model.loc["gender", "vlbs"]).startswith("50.0 (")
    assert len(plots.intervals(scores.reset_index()).axes) == 3


def test_one_anti_stereotype_is_enough_for_scores_over_selections():
    """One image of two: half of all resamples would not have it."""
    label = ["stereotype", "anti-stereotype"]
    found = run_of({"category": ["religion"] * 2, "label": label}, scored([[2, 1, 0]] * 2))
    table = study.over_selections(found, range(6)).query("statistic == 'vlbs'")
    assert table["value"].tolist() == [100] * 12
    assert study.ties(found)["vlbs, split"].tolist() == [100]
    rows = study.selection_scores(found, n_resamples=0)
    assert rows[["low", "high"]].isna().all(axis=None)
    assert set(rows["method"]) == {"no interval"}


def test_the_chapter_s_other_tables_leave_such_a_category_out_too():
    found = one_label("paper")
    assert study.selected(found.inputs).tolist() == [0, 1, 2, 3]
    assert study.over_selections(found, [0])["test"].unique().tolist() == ["overall", "gender"]
    assert study.ties(found)["vlbs, split"].tolist() == [50, 50]
    assert study.averages(found).query("statistic == 'vlbs'")["over images"].tolist() == [50, 50]
    assert study.paired_tests(found)["n"].tolist() == [2]


def test_without_any_anti_stereotype_there_is_nothing_to_compare_and_nothing_to_balance():
    table = {"category": ["religion"] * 3, "label": ["stereotype"] * 3}
    found = run_of(table, scored([[2, 1, 0]] * 3), scored([[2, 1, 0]] * 3, OTHER), profile="paper")
    scores = study.selection_scores(found).set_index(["model", "test", "statistic"])["value"]
    assert np.isnan(scores["VisualBERT", "overall", "vlbs"])
    assert scores["VisualBERT", "overall", "vlrs"] == 100
    assert study.paired_tests(found).empty
    assert plots.paired_table(study.paired_tests(found)).empty
    with pytest.raises(DataError, match="no category has images of both labels"):
        study.selected(found.inputs)


def test_in_paper_a_balanced_selection_is_scored_and_in_planted_all():
    label = ["stereotype"] * 10 + ["anti-stereotype"] * 40
    table = {"category": ["race"] * 50, "label": label}
    in_paper, planted_run = (
        run_of(table, scored([[2, 1, 0]] * 50), profile=each) for each in ("paper", "planted")
    )
    rows = study.selected(in_paper.inputs)
    assert in_paper.inputs.table["label"].iloc[rows].value_counts().tolist() == [10, 10]
    assert "20 images, 10 of them anti" in plots.selected_sentence(in_paper.inputs)
    assert study.selected(planted_run.inputs).tolist() == list(range(50))
    assert "all images of this run: 50 images, 40" in plots.selected_sentence(planted_run.inputs)


def test_in_paper_alone_printed_scores_stand_beside_those_of_the_same_way():
    label = ["stereotype", "anti-stereotype"] * 4
    table = {"category": ["gender"] * 4 + ["religion"] * 4, "label": label}
    ways = (WAY, study.WAYS[6])
    in_paper, in_planted = (
        study.selection_scores(
            run_of(table, *(scored([[2, 1, 0]] * 8, way) for way in ways), profile=each)
        )
        for each in ("paper", "planted")
    )
    shown = plots.scores_table(in_paper).set_index("model")
    assert shown.loc["VisualBERT", ["vlrs, printed", "vlbs, printed"]].tolist() == [85.31, 38.91]
    assert shown.loc["ALBEF, matching logit", ["vlrs, printed", "vlbs, printed"]].isna().all()
    assert not [name for name in plots.scores_table(in_planted) if "printed" in name]
    both = plots.printed_beside(in_paper).set_index(["model", "category", "score"])
    assert set(both.index.get_level_values("model")) == {"VisualBERT"}
    tables = [published.table("zhou2022", number) for number in (3, 4)]
    printed = pandas.concat(tables).set_index(["model", "category", "metric"])["value"]
    assert len(both) == 9
    for key, value in both["printed"].items():
        assert value == printed[key]
    with pytest.raises(ValueError, match="share no table"):
        plots.printed_beside(in_planted)


# Paired tests


@pytest.mark.parametrize(("first", "second"), [(6, 0), (5, 5), (7, 2), (0, 1), (20, 8)])
def test_sign_flips_of_single_items_are_mcnemars_test(first, second):
    differences = [1] * first + [-1] * second + [0] * 5
    found = inference.sign_flip_test(differences)
    assert found.p_value == pytest.approx(mcnemar_p(first, second), rel=1e-12)


def test_errors_of_sign_flips_say_what_is_wrong():
    with pytest.raises(ValueError, match="one number for each of at least one unit"):
        inference.sign_flip_test([])


def test_two_models_are_compared_within_triplets():
    table = {"category": ["race"] * 8, "label": ["anti-stereotype"] * 8}
    one, other = [[2, 1, 0]] * 7 + [[1, 2, 0]], [[1, 2, 0]] * 8
    found = study.paired_tests(run_of(table, scored(one), scored(other, OTHER))).iloc[0]
    assert found["difference"] == pytest.approx(87.5)
    assert found["p_value"] == pytest.approx(mcnemar_p(7, 0))
    assert found[["n", "triplets"]].tolist() == [8, 8]
    assert found["p_low"] == found["p_high"] == found["p_value"]
    shown = found.to_frame().T.assign(p_value=0.04, adjusted=0.04, p_low=0.03, p_high=0.06)
    cells = plots.paired_table(shown)[["p", "p, Holm"]]
    assert cells.iloc[0].str.replace("\xa0", " ").tolist() == [".030 to .060"] * 2
    table["triplet"] = [0] * 8
    found = study.paired_tests(run_of(table, scored(one), scored(other, OTHER))).iloc[0]
    assert found["p_value"] == 1


# Shifts


def test_shifts_are_the_papers_by_hand_and_the_model_s_scale_is_a_choice():
    original, neutral, white = [[0.3, 0.1, 0.0]], [[0.2, 0.2]], [[0.1, 0.4]]
    table = {"category": ["gender"], "label": ["anti-stereotype"]}
    found = run_of(table, scored(original, neutral=neutral, white=white, scale=10.0))
    for own, factor in ((False, 1.0), (True, 10.0)):
        row = study.shifts(found, own_scale=own).iloc[0]
        p = [log_expit(factor * (pair[0] - pair[1])) for pair in (*original, *neutral, *white)]
        assert row["lmss"] == pytest.approx(p[0] - p[1])
        assert row["vlss"] == pytest.approx(p[1] - p[2])
        assert (row["chosen"], row["anti"], row["scale"]) == (True, True, factor)


def test_shifts_are_summarised_on_three_subsets_and_rows_without_neutral_captions_left_out():
    neutral = np.zeros((5, 2))
    neutral[4] = np.nan
    original = [[2, 0, -1], [0, 2, -1], [1, 0, -1], [2, 0, -1], [1, 0, 0]]
    label = ["anti-stereotype"] * 3 + ["stereotype"] * 2
    table = {"category": ["gender"] * 5, "label": label}
    moved = study.shifts(run_of(table, scored(original, neutral=neutral, white=neutral)))
    found = study.shift_scores(moved).query("test == 'lmss'").set_index(["level", "statistic"])
    gain = [log_expit(a - b) - np.log(0.5) for a, b, _ in original]
    assert found.loc[("paper", "mean"), "value"] == pytest.approx(np.mean([gain[0], gain[2]]))
    assert found.loc[("anti", "mean"), "value"] == pytest.approx(np.mean(gain[:3]))
    assert found.loc[("all", "% positive"), "value"] == 75
    assert found["n"].tolist() == [2, 2, 3, 3, 4, 4]


def test_the_papers_subset_is_balanced_and_says_no_gender_and_others_stand_beside_it():
    label = ["anti-stereotype"] * 4 + ["stereotype"] * 3
    logits = [[3, 0, -1], [2, 0, -1], [1, 0, -1], [0, 2, -1], *([[1, 0, 0]] * 3)]
    table = {"category": ["gender"] * 7, "label": label, "row": [722, *range(2, 8)]}
    table[study.LEFT] = [True, *[False] * 6]
    found = run_of(table, scored(logits, neutral=np.zeros((7, 2))), profile="paper")
    drawn = set(study.selected(found.inputs)) & set(range(4))
    assert len(drawn) == 3
    gain = [log_expit(a - b) - np.log(0.5) for a, b, _ in logits]
    picked = {0, 1, 2}
    expected = {
        "paper": drawn & picked - {0},
        "gendered": drawn & picked,
        "chosen": picked - {0},
        "anti": {1, 2, 3},
        "all": set(range(1, 7)),
    }
    moved = study.shifts(found)
    means = study.shift_scores(moved).query("test == 'lmss' and statistic == 'mean'")
    means = means.set_index("level")
    assert list(means.index) == list(expected)
    for level, rows in expected.items():
        assert means.loc[level, "value"] == pytest.approx(np.mean([gain[row] for row in rows]))
    told = "1 of 7 rows whose neutral captions still say a gender"
    assert study.gaps(found.inputs)["here"].tolist() == [told]
    shown = plots.shift_table(worlds.shift_summary(found))["images"].tolist()
    assert "the same, with captions that say a gender" in shown
    assert (
        "50 images for CLIP (0 here) and 39 images for ALBEF (0 here)"
        in plots.figure_4_sentence(moved)
    )


def shares_of(gains):
    """Summaries of lmss of images that are a triplet each, all of them in every subset."""
    neutral = np.zeros((len(gains), 2))
    table = {"category": ["gender"] * len(gains), "label": ["anti-stereotype"] * len(gains)}
    original = [[gain, 0, -9] for gain in gains]
    found = study.shift_scores(study.shifts(run_of(table, scored(original, neutral=neutral))))
    return found.query("test == 'lmss' and level == 'anti'").set_index("statistic")


@pytest.mark.parametrize(("above", "below"), [(0, 6), (6, 0), (2, 4), (10, 9), (10, 40)])
def test_a_share_of_triplets_has_wilsons_interval_with_students_quantile(above, below):
    row = shares_of([1] * above + [-1] * below).loc["% positive"]
    n, share = above + below, above / (above + below)
    size = n - 1 if above and below else n
    for end in row[["low", "high"]] / 100:
        if 0 < end < 1:
            distance = abs(share - end) / np.sqrt(end * (1 - end) / size)
            assert distance == pytest.approx(stats.t.ppf(0.975, n - 1), rel=0.15)  # 400 resamples
    assert 0 <= row["low"] <= row["value"] <= row["high"] <= 100
    assert row["high"] - row["low"] > 5
    assert row["method"] == "bootstrap of triplets"


def test_one_triplet_has_no_interval():
    one = shares_of([1])
    assert one["method"].tolist() == ["no interval"] * 2
    assert one[["low", "high"]].isna().all(axis=None)
    assert plots.shift_cell(one.loc["mean"]) == "0.38"
    assert plots.score_cell(one.loc["% positive"]) == "100.0"


def test_the_two_cases_of_figure_3_are_found_by_their_lines_or_said_to_be_missing():
    table = {"category": ["gender"], "label": ["anti-stereotype"], "row": [722]}
    found = run_of(table, scored([[2, 1, 0]]), scored([[1, 2, 0]], OTHER), profile="paper")
    shown = plots.figure_3(found)
    assert shown["this run"].tolist() == ["VisualBERT", "its image is not here"]
    with pytest.raises(ValueError, match="run the profile 'paper'"):
        plots.figure_3(run_of(table, scored([[2, 1, 0]])))


@released
def test_the_lines_of_figure_3_hold_the_words_that_the_paper_prints():
    table = vlstereoset.read(SAMPLE).table.set_index("row")
    for line, (target, one, other, _) in plots.FIGURE_3.items():
        row = table.loc[line]
        assert (row["target"], row["label"]) == (target, "anti-stereotype")
        assert one in row["stereotype"]
        assert other in row["anti-stereotype"]


def test_without_neutral_captions_there_are_no_shifts_and_this_is_counted():
    table = {"category": ["gender"] * 3, "label": ["anti-stereotype"] * 3}
    table |= dict.fromkeys(study.NEUTRAL, [None] * 3)
    found = run_of(table, scored([[2, 1, 0]] * 3), profile="paper")
    moved = study.shifts(found)
    assert moved.empty
    assert list(moved) == study.SHIFTS
    assert study.shift_scores(moved).empty
    assert plots.shift_table(worlds.shift_summary(found)).empty
    (drawn,) = plots.shift_figure(moved, "planted").axes[0].texts
    assert drawn.get_text() == "No anti-stereotypical image of this category has neutral captions."
    assert study.gaps(found.inputs)["here"].tolist() == [
        "0 stereotype, 3 anti-stereotype",
        "3 of 3 rows without neutral captions",
    ]


def test_shifts_in_paper_are_summarised_without_a_baseline():
    table = {"category": ["gender", "race"], "label": ["anti-stereotype"] * 2}
    found = run_of(table, scored([[2, 0, -1], [0, 0, -1]], neutral=np.zeros((2, 2))))
    found = dataclasses.replace(found, inputs=dataclasses.replace(found.inputs, profile="paper"))
    summary = worlds.shift_summary(found)
    mean = summary.query("statistic == 'mean' and test == 'lmss'").set_index("level")["value"]
    gain = log_expit(2) - np.log(0.5)
    assert mean["all"] == pytest.approx(gain)
    assert mean["everything"] == pytest.approx(gain / 2)
    shown = plots.shift_table(summary)
    assert "dose" not in shown
    assert "all images" in shown["images"].tolist()
    assert set(shown["interval of the share"]) == {"no interval", "bootstrap of triplets", "–"}


@pytest.mark.slow
def test_shifts_in_planted_stand_beside_checkpoints_without_bias():
    given = planted.inputs(0, 8)
    ways = [way for way in study.WAYS if way.model == "CLIP"]
    found = study.run(ways, given, functools.partial(study.load, profile="planted"))
    summary = worlds.shift_summary(found)
    part = given.part(np.flatnonzero(given.table["category"] == "gender"))
    zero = study.run(ways, part, functools.partial(study.load, profile="planted", dose=0))
    row = summary.query("dose == 0 and test == 'lmss' and level == 'all' and statistic == 'mean'")
    assert row["value"].item() == pytest.approx(study.shifts(zero)["lmss"].mean())
    shown = plots.shift_table(summary)
    assert shown["dose"].tolist() == sorted(shown["dose"], reverse=True)


# Scoring


def test_cosines_and_logits_are_of_each_image_with_its_own_captions():
    texts = [["x 1", "x 3"], ["x 0", "x 1"]]
    cosines = study.caption_scores(Dual(), "contrastive", grey(2), texts)
    expected = [[1 / np.sqrt(2), 1 / np.sqrt(10)], [2 / np.sqrt(5), 3 / np.sqrt(10)]]
    np.testing.assert_allclose(cosines, expected)
    logits = np.arange(8).reshape(2, 4)
    found = study.caption_scores(Matcher(logits), "matching", grey(2), texts)
    assert found.tolist() == [[1, 3], [4, 5]]
    with pytest.raises(ValueError, match="there are 2 images for 1 rows of captions"):
        study.caption_scores(Matcher(logits), "matching", grey(2), texts[:1])


def small_inputs():
    table = pandas.DataFrame(
        {
            "category": "gender",
            "target": "sister",
            "triplet": [0, 1],
            "label": ["stereotype", "anti-stereotype"],
            "stereotype": "a 0",
            "anti-stereotype": "a 1",
            "irrelevant": "a 2",
            "neutral stereotype": ["n 0", None],
            "neutral anti-stereotype": ["n 1", None],
        }
    )
    return study.Inputs(table, grey(2), [grey(2)[0]], "planted", "invented")


def test_neutral_captions_are_scored_where_there_are_any(tmp_path):
    logits = np.arange(6).reshape(2, 3) ** 2
    found = study.score_inputs(Matcher(logits), WAY, small_inputs(), Store(tmp_path))
    assert found.original.tolist() == [[0, 1, 4], [9, 16, 25]]
    assert found.neutral[0].tolist() == found.white[0].tolist() == [0, 1]
    assert np.isnan(found.neutral[1]).all()


def test_a_detector_that_finds_nothing_in_white_leaves_vlss_out_and_says_so(tmp_path):
    class Blind(Matcher):
        def match(self, images, texts):
            if images[0].max() == 255:
                raise NothingFoundError("detector found nothing in 1 of 1 pictures: picture 0")
            return super().match(images, texts)

    given = small_inputs()
    given = study.Inputs(
        given.table, given.images, pictures([grey(1)[0] + 255]), "planted", "invented"
    )
    found = study.run([WAY], given, lambda way: Blind(np.eye(3)))
    assert found.skipped.to_numpy().tolist() == [
        ["VisualBERT, vlss", "the detector finds no region in a white image"]
    ]
    moved = study.shifts(found)
    assert moved["lmss"].notna().all()
    assert moved["vlss"].isna().all()
    assert study.shift_scores(moved).query("test == 'vlss'")["n"].tolist() == [0] * 6


def test_models_that_cannot_be_scored_are_named_counted_and_an_error_if_none_is_left():
    def load(way):
        if way.model == "ALBEF":
            raise FileNotFoundError("no weights. Train them")
        return Dual()

    contrastive = study.Way("CLIP", "contrastive", True, "clip", "clip")
    ways = [WAY, contrastive, study.WAYS[4], study.WAYS[-1]]
    found = study.run(ways, small_inputs(), load)
    assert list(found.scored) == ["CLIP"]
    can = "Its weights (1) can: encode texts and images apart"
    assert found.skipped.to_numpy().tolist() == [
        ["VisualBERT", f"dual cannot match images and texts. {can}"],
        ["ALBEF", "no weights. Train them"],
        ["FLAVA, cosine of the encoders alone", f"dual cannot give unimodal vectors. {can}"],
    ]
    with pytest.raises(study.CapabilityError, match=r"none of 1 models .*: dual cannot match"):
        study.run([WAY], small_inputs(), load)


def test_a_detector_that_finds_nothing_in_an_image_leaves_its_model_out():
    class Blind(Matcher):
        def match(self, images, texts):
            raise NothingFoundError(
                "detector found nothing in 1 of 2 pictures: 1.jpg. Leave it out"
            )

    models = {"VisualBERT": Blind(np.eye(3)), "ViLT": Matcher(np.eye(3))}
    found = study.run([WAY, OTHER], small_inputs(), lambda way: models[way.model])
    assert list(found.scored) == ["ViLT"]
    assert found.skipped["reason"].str.endswith("1.jpg. Leave it out").tolist() == [True]


@pytest.mark.parametrize("message", ["the head of the list is gone", "found nothing", "no bert"])
def test_a_fault_of_a_model_is_no_missing_capability(message):
    class Faulty(Matcher):
        def match(self, images, texts):
            raise ValueError(message)

    with pytest.raises(ValueError, match=message) as caught:
        study.run([WAY], small_inputs(), lambda way: Faulty(np.eye(3)))
    assert not isinstance(caught.value, study.CapabilityError)

    def load(way):
        raise KeyError(message)

    with pytest.raises(KeyError, match=message):
        study.run([WAY], small_inputs(), load)


def test_reasons_are_short_in_table_2_and_whole_in_a_table_of_their_own():
    reason = "the checkpoint 1 of ALBEF has no matching head, and none can be made. " * 2
    skipped = pandas.DataFrame([("ALBEF", reason.strip())], columns=["model", "reason"])
    found = study.Run(small_inputs(), {}, skipped)
    short = plots.models_table(found).set_index("model").loc["ALBEF", "run"].iloc[0]
    assert short.startswith("no: the checkpoint 1 of ALBEF has no matching head")
    assert len(short) <= 116 < len(reason)
    assert plots.skipped_table(found)["why not"].tolist() == [reason.strip()]
    nothing = study.Run(small_inputs(), {}, skipped.iloc[:0])
    assert plots.skipped_table(nothing)["why not"].tolist() == ["everything was run"]


@pytest.mark.slow
def test_in_planted_one_way_alone_is_left_out_and_for_its_vectors():
    found = study.run(study.WAYS, planted.inputs(0, 2))
    assert found.skipped.to_numpy().tolist() == [
        [
            "FLAVA, cosine of the encoders alone",
            "flava's unimodal vectors have 48 numbers for a text and 64 for an image: they have no "
            "cosine",
        ]
    ]
    assert list(found.scored) == [way.label for way in study.WAYS[:-1]]


class Slow(Matcher):
    """Notes every row that it scores, and takes its time."""

    name = "slow"

    def __init__(self, log):
        super().__init__(np.random.default_rng(0).normal(size=(200, 3)))
        self.log = log

    def match(self, images, texts):
        with open(self.log, "a") as stream:
            stream.writelines(f"{image[0, 0, 0]}\n" for image in images)
            stream.flush()
        time.sleep(0.05)
        return super().match(images, texts)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the process that is killed")
def test_a_run_that_is_killed_goes_on_and_gives_the_same_scores(tmp_path):
    texts, log = [["a 0", "a 1", "a 2"]] * 200, tmp_path / "log"
    whole = study.caption_scores(Slow(tmp_path / "other"), "matching", grey(200), texts)
    child = os.fork()
    if child == 0:
        study.caption_scores(Slow(log), "matching", grey(200), texts, Store(tmp_path / "store"))
        os._exit(0)
    while not log.exists() or len(log.read_text().splitlines()) <= study.SHARD:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    before = log.read_text().splitlines()
    again = study.caption_scores(Slow(log), "matching", grey(200), texts, Store(tmp_path / "store"))
    np.testing.assert_array_equal(again, whole)
    after = log.read_text().splitlines()
    assert len(before) < 200 <= len(after) <= 200 + study.SHARD
    study.caption_scores(Slow(log), "matching", grey(200), texts, Store(tmp_path / "store"))
    assert log.read_text().splitlines() == after


# Inputs


def test_planted_inputs_are_unbalanced_as_the_release_is_and_have_the_same_captions_anywhere():
    given = planted.inputs(0, 16)
    counts = given.table.groupby(["category", "label"]).size()
    for category in ("gender", "profession", "tone", "age"):
        rarer = "stereotype" if category == "gender" else "anti-stereotype"
        assert counts[category, rarer] == 4
        assert counts[category].sum() == 12
    views = given.images.frame.query("category == 'gender'")["object_view"].value_counts()
    assert views["ambiguous"] == 6
    assert planted.inputs(0, 16).checksum == given.checksum
    assert planted.inputs(1, 16).checksum != given.checksum


def test_the_sample_of_the_rehearsal_is_read_in_paper_with_its_dead_links(tmp_path, monkeypatch):
    rehearsal_stereotype.build(tmp_path)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    given = study.inputs("paper")
    rows = rehearsal_stereotype.rows()
    assert len(given.table) == len(given.images) == len(rows) - 2
    assert given.table["neutral stereotype"].notna().all()
    lost = given.links.set_index("category").loc["all"]
    assert lost["stereotype, released"] - lost["stereotype, here"] == 1
    assert lost["what came instead"] == "not downloaded (2)"
    for path in (tmp_path / "vlstereoset" / "images").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=f"none of {len(rows)} links leads to an image") as caught:
        study.inputs("paper")
    assert f"vlstereoset.fetch_images({str(tmp_path / 'vlstereoset')!r})" in str(caught.value)


def test_what_became_of_the_links_is_read_from_the_downloads(tmp_path, monkeypatch):
    rehearsal_stereotype.build(tmp_path)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    folder = tmp_path / "vlstereoset"
    links = vlstereoset.links(vlstereoset.released(folder).table)
    religion = links[links["test"] == "religion"]
    dead = religion.assign(outcome="error 404")
    record = pandas.concat([dead, links.iloc[:1].assign(outcome="here")])
    record[["file", "url", "outcome"]].to_csv(folder / "images" / "downloads.csv", index=False)
    for file in religion["file"].iloc[1:]:
        (folder / "images" / file).unlink()
    found = study.inputs("paper").links.set_index("category")["what came instead"]
    assert found["religion"] == f"error 404 ({len(religion) - 1})"
    assert found["gender"] == "downloaded, and gone since (1); not downloaded (1)"
    (folder / "images" / religion["file"].iloc[0]).unlink()
    assert study.gaps(study.inputs("paper")).to_numpy().tolist() == [
        [
            "religion",
            "0 stereotype, 0 anti-stereotype",
            "vlbs and ivlas are not defined; no balanced selection has it",
        ],
        [
            "gender",
            "8 of 20 rows whose neutral captions still say a gender",
            "lmss and vlss are summarised without them, and with",
        ],
    ]


# Worlds with a known answer


@pytest.fixture(scope="module")
def oracle_scores():
    return worlds.side_by_side([], n=4).set_index(["dose", "seed", "view"])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_truth_of_vlbs_is_nothing_in_plain_sight_and_all_or_chance_where_hidden(
    oracle_scores, seed
):
    for dose in (0, 3):
        seen = oracle_scores.loc[(dose, seed, "visible")]
        assert seen[["vlrs", "vlbs"]].tolist() == [100, 0]
    chance = oracle_scores.loc[(0, seed, "hidden"), ["vlrs", "vlbs"]].tolist()
    assert chance == pytest.approx([200 / 3, 100 / 3])
    assert oracle_scores.loc[(3, seed, "hidden"), ["vlrs", "vlbs"]].tolist() == [100, 100]


def test_a_contrastive_score_has_less_of_a_stereotype_to_show():
    leaning = worlds.leaning(dose=3)
    found = leaning.set_index(["seed", "head"])["preference"]
    for seed in worlds.SEEDS:
        assert found[seed, "matching"] == pytest.approx(1.5, abs=0.15)
        assert 0.2 < found[seed, "contrastive"] < 0.4 * found[seed, "matching"]
    assert worlds.leaning(dose=0, n=4)["preference"].abs().max() < 1e-9
    sentence = verdicts.leaning_sentence(leaning)
    assert f"{found.xs('contrastive', level='head').mean():.2f} nats in the score" in sentence


def test_what_a_perfect_model_scores_is_said_from_the_run(oracle_scores):
    sentence = verdicts.hidden_sentence(oracle_scores.reset_index())
    assert "vlbs is 0 without bias and 0 with a planted bias of dose 3; where" in sentence
    assert "it is 33 without bias, which is guessing (33), and 100 with it." in sentence


def test_the_truth_is_drawn_beside_models_by_score_and_evidence(oracle_scores):
    truth = oracle_scores.reset_index()
    model = truth.assign(model="made up", vlbs=40.0 + 20 * truth["seed"], vlrs=70.0)
    figure = verdicts.truth_figure(pandas.concat([truth, model]))
    assert figure.get_suptitle() == "planted world"
    found = {axis.get_title().replace("\n", " "): drawn_means(axis) for axis in figure.axes}
    third, two = pytest.approx(100 / 3), pytest.approx(200 / 3)
    without, planted_3 = "no bias", "planted bias of dose 3"
    assert found == {
        "vlbs, in plain sight": {without: [0, 50], planted_3: [0, 50]},
        "vlbs, not in the picture": {without: [third, 50], planted_3: [100, 50]},
        "vlrs, in plain sight": {without: [100, 70], planted_3: [100, 70]},
        "vlrs, not in the picture": {without: [two, 70], planted_3: [100, 70]},
    }
    half = verdicts.truth_figure(truth, ["vlbs"])
    assert [axis.get_title().split(",")[0] for axis in half.axes] == ["vlbs", "vlbs"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["oracle", "made up"]


def drawn_means(axis):
    """The means that a panel of the truth shows, by dose, from the first row down."""
    drawn = zip(*axis.get_legend_handles_labels(), strict=True)
    return {label: list(marks.get_xdata()) for marks, label in drawn}


def test_shifts_name_the_modality_only_where_captions_and_pictures_are_independent():
    where = worlds.modality([], n=8)
    apart = "oracle, genders independent"
    assert verdicts.names_modality(where, apart)
    assert not verdicts.names_modality(where, "oracle")
    sentence = verdicts.modality_sentence(where)
    assert "For a perfect model of these worlds, the scores do **not** name" in sentence
    assert "in 90% of the scenes" in sentence
    assert "independent, the scores name the modality" in sentence
    drifting = where[where["model"] == "oracle"].assign(model="ViLT")
    told = verdicts.tiny_modality_sentence(pandas.concat([where, drifting]))
    assert "name the modality for 0 of 1 ways" in told
    assert "lmss is above 0 in both for none" in told
    assert "vlss is above 0 in both for tiny-ViLT (" in told
    found = where.set_index(["model", "planted in", "test"])["value"]
    assert found[apart, "text", "lmss"] > 0.2
    assert abs(found[apart, "text", "vlss"]) < 0.01
    assert abs(found[apart, "images", "lmss"]) < 0.01
    assert found[apart, "images", "vlss"] > 0.2
    assert found["oracle", "text", "vlss"] > found["oracle", "text", "lmss"] + 0.2
    for model in ("oracle", apart):
        for test in ("lmss", "vlss"):
            assert abs(found[model, "nothing", test]) < 1e-6


def test_an_object_fades_from_the_picture_without_it_to_the_one_with_it():
    scenes = worlds.choices(0, 4).images.frame.query("category == 'gender'")
    hidden = plantedworld.draw(scenes.assign(object_view="hidden"))
    assert (worlds.faded(scenes, 0) == hidden).all()
    assert (worlds.faded(scenes, 1) == plantedworld.draw(scenes)).all()
    between = worlds.faded(scenes, 0.5).astype(float)
    mean = (hidden.astype(float) + plantedworld.draw(scenes)) / 2
    assert np.abs(between - mean).max() <= 0.5


def test_irrelevant_captions_are_as_frequent_as_the_others():
    found = worlds.frequencies().set_index("caption")
    captions, words = found["caption, per 100,000"], found["word, per 1,000 captions"]
    assert 0.5 < captions["irrelevant"] / captions["stereotype"] < 2
    assert 0.5 < words["irrelevant"] / words["stereotype"] < 2
    assert captions["anti-stereotype"] < captions["irrelevant"] < captions["stereotype"]
    assert words["stereotype"] == pytest.approx(words["anti-stereotype"], rel=0.05)
    assert words[worlds.OTHER_IRRELEVANT] < 0.2 * words["stereotype"]
    sentence = verdicts.frequency_sentence(found.reset_index())
    assert f"{captions['irrelevant'] / captions['stereotype']:.1f} times as frequent" in sentence


def test_a_perfect_model_never_picks_an_irrelevant_caption_if_it_sees_the_answer():
    exact = worlds.relevance(seeds=[0], n=12).set_index("model")
    assert exact.loc["oracle", ["third word", "thing"]].tolist() == [100, 100]
    assert exact.loc["oracle", "thing, white picture"] < 100
    assert exact.loc["VisualBERT", "third word, white picture"] < 95
    exact["third word"] = exact["third word"].clip(lower=80)
    sentence = verdicts.relevance_sentence(exact.reset_index())
    assert "With three captions, guessing gives 66.7" in sentence
    assert sentence.startswith("vlrs is 80 or more in all rows, against either kind.")
    exact.loc["VisualBERT", "third word"] = 79.4
    sentence = verdicts.relevance_sentence(exact.reset_index())
    assert sentence.startswith("vlrs is below 80 against a third word for tiny-VisualBERT (79.4).")


def picked(**vlbs_at_dose_3):
    """Four dose-0 checkpoints with vlbs 40, 44, 48 and 52, and one a world of dose 3."""
    rows = []
    for model, value in vlbs_at_dose_3.items():
        for seed, triplet in ((0, 0), (0, 1), (1, 0), (1, 1)):
            row = {"model": model, "opacity": worlds.TARGET_OPACITY}
            row |= {"seed": seed, "triplet": triplet}
            row |= {"vlrs": 90.0, "vlrs of things": 100.0}
            rows.append(row | {"dose": 3, "checkpoint": seed, "vlbs": value})
            for checkpoint in range(4):
                zero = {"dose": 0, "checkpoint": checkpoint, "vlbs": 40.0 + 4 * checkpoint}
                rows.append(row | zero)
    return pandas.DataFrame(rows)


def looks_of(table, blind=()):
    rows = [
        (model, 3, "gender", 50.0 if model in blind else 90.0, 35.0 if model in blind else 80.0)
        for model in table["model"].unique()
    ]
    return pandas.DataFrame(rows, columns=["model", "dose", "category", "percent", "low"])


def test_the_noise_floor_is_the_statistic_of_the_rise_by_hand():
    """Two of 40, 44, 48, 52 less the mean of the other two: at most 8 apart, in 2 of 6 pairs."""
    floor = worlds.noise_floor(picked(one=50.0)).iloc[0]
    gaps = np.repeat([8.0, 4.0, 0.0, 0.0, 4.0, 8.0], 2)
    assert floor["floor"] == np.quantile(gaps, 0.95)
    assert floor[["choices", "checkpoints", "models"]].tolist() == [12, 4, "one"]
    few = picked(one=50.0).query("checkpoint < 3")
    assert np.isnan(worlds.noise_floor(few)["floor"].iloc[0])


def test_models_that_others_start_from_are_no_part_of_the_floor():
    assert all(seed < 1000 for way in study.WAYS for seed in worlds.zero_seeds(way))
    assert worlds.zero_seeds(WAY) == list(range(8))


def test_the_verdict_asks_for_a_look_a_rise_above_the_floor_and_relevance():
    models = {"VisualBERT": 56.0, "LXMERT": 53.0, "CLIP": 90.0, "ViLT": 95.0}
    table = picked(**models)
    table.loc[(table["model"] == "CLIP") & (table["dose"] == 3), "vlrs"] = 70.0
    look = looks_of(table, blind=["ViLT"])
    found = worlds.verdict(table, look)
    by_model = found.set_index("model")
    assert by_model["rise"].tolist() == [10, 7, 44, 49]
    assert by_model["floor"].unique().tolist() == [8]
    assert by_model["reached"].tolist() == [True, False, False, False]
    assert by_model[["n", "worlds"]].to_numpy().tolist() == [[4, 2]] * 4
    assert by_model.loc["VisualBERT", ["low", "high"]].tolist() == [10, 10]
    sentence = verdicts.verdict_sentence(found)
    assert "1 model: **NOT reached**. This was judged on the estimate. If" in sentence
    assert "1 model remains (not: none). Met, by the estimate, by: tiny-Vis" in sentence
    assert "tiny-VisualBERT rises by 10.0 (" in sentence
    assert "tiny-LXMERT (rises by 7.0 (" in sentence
    assert "tiny-CLIP (vlrs 70); tiny-ViLT (does not read the picture)" in sentence
    assert verdicts.interval_sentence(found).endswith("1 model remains (not: none).")
    wide = found.assign(low=found["floor"])
    assert verdicts.interval_sentence(wide).endswith("0 models remain (not: tiny-VisualBERT).")
    unjudged = table[(table["model"] != "LXMERT") | (table["dose"] == 3)]
    found = worlds.verdict(unjudged, look)
    assert found.set_index("model").loc["LXMERT", "reached"] is None
    assert "want of a dose-0 checkpoint: tiny-LXMERT." in verdicts.verdict_sentence(found)


def test_verdicts_stand_at_the_opacity_of_the_target_and_beside_those_of_the_trial():
    table = picked(VisualBERT=56.0, CLIP=90.0)
    table = pandas.concat([table.assign(opacity=1.0, vlbs=5.0), table])
    found = worlds.verdict(table, looks_of(table))
    shown = verdicts.verdict_table(found)
    assert shown["opacity"].tolist() == ["0.5", "0.5", "1", "1"]
    assert shown["reached"].tolist() == [True, True, None, None]
    assert "is 5.0% to 5.0%." in verdicts.plain_sentence(found)
    rises = {"model": ["VisualBERT, matching", "CLIP, contrastive"], "reached": [True, False]}
    rises |= {"mean": [8.0, 4.4], "low": [6.0, -3.0], "high": [10.0, 11.8]}
    said = verdicts.unlike_trial_sentence(found, pandas.DataFrame(rises))
    assert said.endswith("by: tiny-CLIP, whose rise less that of errors is 4.4 (−3.0 to 11.8)")


def test_the_interval_of_a_rise_draws_triplets():
    table = picked(one=50.0)
    table.loc[(table["dose"] == 3) & (table["triplet"] == 0), "vlbs"] = 70.0
    row = worlds.verdict(table, looks_of(table)).iloc[0]
    assert row["rise"] == 14
    assert -100 <= row["low"] < 4
    assert row["high"] > 24


@pytest.mark.slow
@pytest.mark.parametrize(("model", "least"), [("visualbert", 85), ("lxmert", 75), ("clip", 75)])
def test_trained_models_prefer_the_right_word(model, least):
    given = worlds.choices(0, 24)
    way = next(way for way in study.WAYS if way.planted == model)
    loader = functools.partial(study.load, profile="planted", dose=3, seed=0)
    first, second = study.run([way], given, loader).scored[way.label].original[:, :2].T
    right = np.where(given.anti, second > first, first > second)
    assert 100 * right.mean() > least


# The chapter


def test_ivlas_is_checked_against_what_it_is_taken_for():
    def fair(vlrs, vlbs):
        return 2 * vlrs * (100 - vlbs) / (vlrs + 100 - vlbs)

    wrong = [
        lambda vlrs, vlbs: None,
        lambda vlrs, vlbs: (vlrs + 100 - vlbs) / 2,  # the arithmetic mean
        lambda vlrs, vlbs: np.sqrt(vlrs * (100 - vlbs)),  # the geometric mean
        lambda vlrs, vlbs: 2 * vlrs * vlbs / (vlrs + vlbs),  # vlbs is not turned round
        fair,  # 0 / 0
        lambda vlrs, vlbs: np.divide(2 * vlrs * (100 - vlbs), np.float64(vlrs + 100 - vlbs)),
    ]
    with np.errstate(invalid="ignore"):
        assert not any(plots.check_ivlas(each).passed for each in wrong)
    assert plots.check_ivlas(lambda a, b: fair(a, b) if a + 100 - b else 0).passed
    assert plots.check_ivlas(lambda a, b: np.array([fair(a, b) if b < 100 else 0.0])).passed


def test_vlbs_is_checked_against_what_it_is_taken_for():
    wrong = [
        lambda logits, anti: None,
        lambda logits, anti: 100 * np.mean(logits.argmax(axis=1)[anti]),  # the wrong column
        lambda logits, anti: 100 * np.sum(logits[anti].argmax(axis=1) == 0) / len(logits),
        lambda logits, anti: 100 * np.mean(logits[anti, 0] > logits[anti, 1]),  # of two
        lambda logits, anti: 100 * np.mean(logits.argmax(axis=1) == 0),  # of all images
        lambda logits, anti: np.mean(logits[anti].argmax(axis=1) == 0),  # no per cent
        lambda logits, anti: 100 * np.mean(logits[~anti].argmax(axis=1) == 0),
    ]
    assert not any(plots.check_vlbs(each).passed for each in wrong)

    def loop(logits, anti):
        rows = [row for row, of in zip(logits.tolist(), anti.tolist(), strict=True) if of]
        return 100 * sum(row[0] == max(row) for row in rows) / len(rows)

    def in_place(logits, anti):
        logits -= logits.max(axis=1, keepdims=True)
        return 100 * np.mean(logits[anti, 0] == 0)

    assert plots.check_vlbs(loop).passed
    assert plots.check_vlbs(in_place).passed


def test_lmss_is_checked_against_what_it_is_taken_for():
    def log_p(pair):
        return log_expit(pair[0] - pair[1])

    wrong = [
        lambda named, neutral: None,
        lambda named, neutral: named[0] - neutral[0],  # the logits
        lambda named, neutral: log_p(neutral) - log_p(named),  # upside down
        lambda named, neutral: np.exp(log_p(named)) - np.exp(log_p(neutral)),  # no logarithm
        lambda named, neutral: (named[0] - named[1]) - (neutral[0] - neutral[1]),  # log-odds
    ]
    assert not any(plots.check_lmss(each).passed for each in wrong)
    good = plots.check_lmss(lambda a, b: log_p(a) - log_p(b))
    assert isinstance(good, _check.Check)
    assert good.passed
    assert plots.check_lmss(lambda a, b: np.log(np.exp(log_p(a)) / np.exp(log_p(b)))).passed


def test_the_judgement_follows_from_intervals_and_not_from_points():
    right = plots.statements_shown()
    assert right == [True, True, False, False, False, False]
    wrong = [
        [True] * 6,
        [False] * 6,
        [True, True, True, True, True, False],  # by the points
        [True, True, False, False, False, True],  # a low score is taken for few stereotypes
        ["True"] * 6,
        right[:5],
        None,
    ]
    assert not any(plots.check_statements(each).passed for each in wrong)
    assert plots.check_statements(right).passed
    assert plots.check_statements(np.array(right)).passed


def test_table_3_has_its_counts_and_intervals():
    table = plots.printed_intervals().set_index("model")
    assert table.loc["ALBEF", "vlbs, 95% interval"] == "28.3 to 36.5"
    assert table["anti-stereotypical images"].dropna().tolist() == [514, 514, 509, 514, 514, 514]
    imagined = ["ideal (IDM)", "random (RAM)", "biased (BIM)"]
    assert [each for each in table.index if "(" in each] == imagined
    assert table.loc["random (RAM)", "vlbs, 95% interval"] == "–"
    assert '<td class="number">1,018</td>' in display.table(table, "Table 3")._repr_html_()
    assert plots.beside_guessing() == {
        "above": "CLIP, ViLT and VisualBERT",
        "below": "FLAVA",
        "open": "ALBEF and LXMERT",
    }
    assert plots.figure_4_counts() == {"CLIP": 50, "ALBEF": 39}


def test_models_of_the_planted_world_are_called_tiny_and_nothing_else_is():
    names = ["oracle", "CLIP", "ALBEF, matching logit", "random (imaginary)"]
    table = pandas.DataFrame({"model": names})
    tiny = ["oracle", "tiny-CLIP", "tiny-ALBEF, matching logit", "random (imaginary)"]
    assert plots.tiny(table, "planted")["model"].tolist() == tiny
    assert plots.tiny(table, "paper")["model"].tolist() == names
    assert plots.titled("Scores", "paper") == "Scores"


def test_choices_of_whoever_repeats_it_stand_side_by_side():
    table = {"category": ["race"] * 8, "label": study.PAIR * 4, "target": list("aaaaaabb")}
    logits = [[1, 1, 0], [1, 1, 0], [2, 1, 0], [2, 1, 0]] + [[1, 2, 0]] * 4
    found = run_of(table, scored(logits))
    shown = plots.choices_table(found, study.over_selections(found, range(2))).iloc[0]
    # Of four anti-stereotypical images one is tied, one picked, two not; two terms, 1.5 of 3 and 0.
    assert shown["vlbs, all images"] == 37.5
    assert shown["tied images"] == 2
    assert shown["ties to the anti-stereotype"] == 25
    assert shown["over target terms"] == 25
    assert shown["lowest of the selections"] == shown["highest"] == 37.5


def test_the_printed_tables_have_a_row_a_model_and_category():
    assert plots.printed_scores(3).set_index("model").loc["ALBEF"].tolist() == [85.21, 32.3, 75.46]
    assert plots.printed_scores(4).shape == (24, 5)


def test_the_panel_says_what_moved(monkeypatch):
    monkeypatch.setattr(worlds, "shipped_ways", lambda dose, seed: [])
    panel = verdicts.chooser(n=2)
    scene = panel.choices["Scene"][0]
    shown = panel.sentence("oracle", scene, "the group is named", "shown")
    assert "it picks the anti-stereotype." in shown
    assert "has moved" not in shown
    assert "has moved by" in panel.sentence("oracle", scene, "neutral", "white")
    drawing = panel.drawings("oracle", scene, "neutral", "white")[0]
    assert sum(drawing.marks[0]["y"]) == pytest.approx(1)
    assert drawing.note == "planted world"
    captions = drawing.table["caption"].tolist()
    assert len(set(captions)) == 3
    assert all(caption.startswith("the person is") for caption in captions)
    named = panel.drawings("oracle", scene, "the group is named", "shown")[0]
    for caption in named.table["caption"]:
        assert f"“{caption}” (" in named.sentence
        assert not caption.startswith("the person")
    for look in ("shown", "white"):
        address = panel.drawings("oracle", scene, "neutral", look)[0].images[0][0]
        held = io.BytesIO(base64.b64decode(address.split(",")[1]))
        assert Image.open(held).size == (64, 64)


def test_a_tie_of_the_panel_is_no_pick():
    assert verdicts._picked(np.array([0.34, 0.34, 0.32])).startswith("the stereotype and the anti-")
    assert "tied" in verdicts._picked(np.array([0.30, 0.347, 0.353]))
    assert verdicts._picked(np.array([0.5, 0.3, 0.2])) == "it picks the stereotype"


def test_captions_that_name_no_group_do_so_in_none_of_the_three():
    given = worlds.choices(0, 8)
    rows = range(len(given.table))
    named, neutral = (worlds.captions_of(given, rows, said) for said in ("named", "neutral"))
    for row, other in zip(named, neutral, strict=True):
        for text, plain in zip(row, other, strict=True):
            assert plain.startswith("the person")
            assert plain.split()[2:] == text.split()[2:]


def shift_rows(test, values):
    """Shares above 0 of all and of chosen images by model, of models without bias."""
    rows = [
        {"model": model, "test": test, "level": level, "statistic": "% positive", "dose": 0}
        | {"value": value}
        for model, pair in values.items()
        for level, value in zip(("anti", "paper"), pair, strict=True)
    ]
    return pandas.DataFrame(rows)


def test_what_choosing_by_the_outcome_does_is_counted_both_ways():
    summary = pandas.concat(
        [
            shift_rows("lmss", {"a": (50, 40), "b": (50, 60), "c": (50, 50)}),
            shift_rows("vlss", {"a": (50, 60), "b": (50, 60), "c": (50, 40)}),
        ]
    )
    sentence = verdicts.chosen_sentence(summary)
    assert "of 3 ways of scoring" in sentence
    assert "lmss is above 0 more often in 1 and less often in 1, and vlss is" in sentence
    assert "vlss is above 0 more often in 2 and less often in 1 of" in sentence
    assert "expected of lmss is not seen." in sentence
    assert "without bias too (2 of 3 ways" in verdicts.chosen_summary(summary)


def test_the_four_models_are_judged_by_what_they_read_and_by_noise():
    wrong = [
        ["yes", "yes", "yes", "no"],  # by the rise alone
        ["yes", "no", "yes", "no"],  # by the estimate alone
        ["yes", "no", "no", "no"],  # open is taken for no
        ["yes", "no", "open", "open"],
        ["yes"] * 3,
        [..., ..., ..., ...],
        "yes",
    ]
    assert not any(verdicts.check_four(each).passed for each in wrong)
    assert verdicts.check_four(["yes", "no", "open", "no"]).passed
    assert verdicts.check_four(np.array(["yes", "no", "open", "no"])).passed


@pytest.mark.parametrize("wrong", [(100, 70, 70), (70, 70, 50), (100, 30, 50)])
def test_a_model_without_eyes_is_right_half_of_the_time(wrong):
    triplets, usual = 100, 70
    rows = [(label, at < usual) for at in range(triplets) for label in ("stereo", "anti")]
    right = np.mean([stereotyped == (label == "stereo") for label, stereotyped in rows])
    vlbs = np.mean([stereotyped for label, stereotyped in rows if label == "anti"])
    assert verdicts.check_blind([100, 100 * vlbs, 100 * right]).passed
    assert not verdicts.check_blind(wrong).passed
