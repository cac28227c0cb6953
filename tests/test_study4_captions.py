"""Study 4: scores against the paper's counts, shifts by hand, kills, worlds of known answer."""

import numpy as np
import pandas
import pytest
from scipy import stats
from scipy.special import log_expit

import plantedworld
from biaslib import published
from biaslib.datasets import DataError
from biaslib.errors import InputError
from biaslib.pictures.images import pictures
from biaslib.pictures.regions import NothingFoundError
from biaslib.runtime import Store
from biaslib.studies import study4_captions as study
from companion import planted_study4_captions as verdicts
from companion import study4_captions as plots
from companion.published_numbers import mcnemar_p, reconstructed_counts, sizes_of
from plantedworld.inputs import study4_captions as planted
from plantedworld.studies import study4_captions as worlds

MATCHING = study.ModelHead("VisualBERT", "matching", True, "visualbert", "visualbert")
OTHER = study.ModelHead("ViLT", "matching", True, "vilt", "vilt-itm")


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


def scored(original, head=MATCHING, neutral=None, white=None, scale=1.0):
    original = np.asarray(original, float)
    nothing = np.full((len(original), 2), np.nan)
    neutral, white = (nothing if each is None else np.asarray(each) for each in (neutral, white))
    return study.Scored(head, "1", original, neutral, white, scale)


def run_of(table, *scores, profile="planted"):
    n = len(table["category"])
    names = [*study.CAPTIONS, *study.NEUTRAL]
    columns = {name: [name] * n for name in names if name not in table}
    table = pandas.DataFrame({"target": ["sister"] * n, "triplet": range(n)} | columns | table)
    given = study.Inputs(table, grey(1), grey(1), profile, "invented", balance=profile == "paper")
    skipped = pandas.DataFrame(columns=["model", "reason"])
    return study.Run(given, {each.model_head.label: each for each in scores}, skipped)


# vlrs, vlbs, ivlas


def table_with_counts(model):
    """Rows whose picks have the whole counts behind a model's percentages."""
    counts = reconstructed_counts().query("model == @model")
    counts = counts.set_index(["category", "metric"])["count"].astype(int)
    categories, labels, logits = [], [], []
    for category, size in sizes_of(model).items():
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
    assert study.missing_inputs(found.inputs)["category"].tolist() == ["religion"]
    in_paper = one_label("paper")
    assert study.selected(in_paper.inputs).tolist() == [0, 1, 2, 3]
    assert study.over_selections(in_paper, [0])["test"].unique().tolist() == ["overall", "gender"]
    assert study.paired_tests(in_paper)["n"].tolist() == [2]


def test_one_anti_stereotype_is_enough_for_scores_over_selections():
    """One image of two: half of all resamples would not have it."""
    label = ["stereotype", "anti-stereotype"]
    found = run_of({"category": ["religion"] * 2, "label": label}, scored([[2, 1, 0]] * 2))
    table = study.over_selections(found, range(6)).query("statistic == 'vlbs'")
    assert table["value"].tolist() == [100] * 12
    rows = study.selection_scores(found, n_resamples=0)
    assert rows[["low", "high"]].isna().all(axis=None)
    assert set(rows["method"]) == {"no interval"}


def test_without_any_anti_stereotype_there_is_nothing_to_compare_and_nothing_to_balance():
    table = {"category": ["religion"] * 3, "label": ["stereotype"] * 3}
    found = run_of(table, scored([[2, 1, 0]] * 3), scored([[2, 1, 0]] * 3, OTHER), profile="paper")
    scores = study.selection_scores(found).set_index(["model", "test", "statistic"])["value"]
    assert np.isnan(scores["VisualBERT", "overall", "vlbs"])
    assert scores["VisualBERT", "overall", "vlrs"] == 100
    assert study.paired_tests(found).empty
    with pytest.raises(DataError):
        study.selected(found.inputs)


def test_in_paper_a_balanced_selection_is_scored_and_in_planted_all():
    label = ["stereotype"] * 10 + ["anti-stereotype"] * 40
    table = {"category": ["race"] * 50, "label": label}
    in_paper, planted_run = (
        run_of(table, scored([[2, 1, 0]] * 50), profile=each) for each in ("paper", "planted")
    )
    rows = study.selected(in_paper.inputs)
    assert in_paper.inputs.table["label"].iloc[rows].value_counts().tolist() == [10, 10]
    assert study.selected(planted_run.inputs).tolist() == list(range(50))


def test_in_paper_alone_printed_scores_stand_beside_those_of_the_same_head():
    label = ["stereotype", "anti-stereotype"] * 4
    table = {"category": ["gender"] * 4 + ["religion"] * 4, "label": label}
    heads = (MATCHING, study.MODEL_HEADS[6])
    in_paper, in_planted = (
        study.selection_scores(
            run_of(table, *(scored([[2, 1, 0]] * 8, head) for head in heads), profile=each)
        )
        for each in ("paper", "planted")
    )
    both = plots.scores_table(in_paper).set_index("model")
    printed = published.table("zhou2022", 3).set_index(["model", "metric"])["value"]
    for name in ("vlrs", "vlbs"):
        shown = both[f"{name}, printed"].dropna()
        assert shown.to_dict() == {"VisualBERT": printed["VisualBERT", name]}
    assert not any("printed" in name for name in plots.scores_table(in_planted))


# Paired tests


def test_two_models_are_compared_within_triplets():
    table = {"category": ["race"] * 8, "label": ["anti-stereotype"] * 8}
    one, other = [[2, 1, 0]] * 7 + [[1, 2, 0]], [[1, 2, 0]] * 8
    found = study.paired_tests(run_of(table, scored(one), scored(other, OTHER))).iloc[0]
    assert found["difference"] == pytest.approx(87.5)
    assert found["low"] < 87.5 <= found["high"] <= 100
    assert found["p_value"] == pytest.approx(mcnemar_p(7, 0))
    assert found[["n", "triplets"]].tolist() == [8, 8]
    assert found["p_low"] == found["p_high"] == found["p_value"]
    worse = [[1, 0, 2]] * 6 + [[1, 2, 0]] * 2
    of_all = study.paired_tests(run_of(table, scored(one), scored(worse, OTHER)), "vlrs").iloc[0]
    assert of_all["difference"] == pytest.approx(75)
    assert of_all["p_value"] == pytest.approx(mcnemar_p(6, 0))
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
    assert study.missing_inputs(found.inputs)["category"].tolist() == ["gender"]


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


def test_without_neutral_captions_there_are_no_shifts_and_this_is_counted():
    table = {"category": ["gender"] * 3, "label": ["anti-stereotype"] * 3}
    table |= dict.fromkeys(study.NEUTRAL, [None] * 3)
    found = run_of(table, scored([[2, 1, 0]] * 3), profile="paper")
    moved = study.shifts(found)
    assert moved.empty
    assert list(moved) == study.SHIFTS
    assert study.shift_scores(moved).empty
    assert study.missing_inputs(found.inputs)["category"].tolist() == ["gender", "all"]


# Scoring


def test_cosines_and_logits_are_of_each_image_with_its_own_captions():
    texts = [["x 1", "x 3"], ["x 0", "x 1"]]
    cosines = study.caption_scores(Dual(), "contrastive", grey(2), texts)
    expected = [[1 / np.sqrt(2), 1 / np.sqrt(10)], [2 / np.sqrt(5), 3 / np.sqrt(10)]]
    np.testing.assert_allclose(cosines, expected)
    logits = np.arange(8).reshape(2, 4)
    found = study.caption_scores(Matcher(logits), "matching", grey(2), texts)
    assert found.tolist() == [[1, 3], [4, 5]]


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
    found = study.score_inputs(Matcher(logits), MATCHING, small_inputs(), Store(tmp_path))
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
    found = study.run([MATCHING], given, lambda way: Blind(np.eye(3)))
    assert found.skipped["model"].tolist() == ["VisualBERT, vlss"]
    moved = study.shifts(found)
    assert moved["lmss"].notna().all()
    assert moved["vlss"].isna().all()
    assert study.shift_scores(moved).query("test == 'vlss'")["n"].tolist() == [0] * 6


def test_models_that_cannot_be_scored_are_named_counted_and_an_error_if_none_is_left():
    def load(way):
        if way.model == "ALBEF":
            raise FileNotFoundError("no weights. Train them")
        return Dual()

    contrastive = study.ModelHead("CLIP", "contrastive", True, "clip", "clip")
    ways = [MATCHING, contrastive, study.MODEL_HEADS[4], study.MODEL_HEADS[-1]]
    found = study.run(ways, small_inputs(), load)
    assert list(found.scored) == ["CLIP"]
    left_out = ["VisualBERT", "ALBEF", "FLAVA, cosine of the encoders alone"]
    assert found.skipped["model"].tolist() == left_out
    with pytest.raises(study.CapabilityError):
        study.run([MATCHING], small_inputs(), load)


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
    found = worlds.leaning(dose=3).set_index(["seed", "head"])["preference"]
    for seed in worlds.SEEDS:
        assert found[seed, "matching"] == pytest.approx(1.5, abs=0.15)
        assert 0.2 < found[seed, "contrastive"] < 0.4 * found[seed, "matching"]
    assert worlds.leaning(dose=0, n=4)["preference"].abs().max() < 1e-9


def test_shifts_name_the_modality_only_where_captions_and_pictures_are_independent():
    where = worlds.modality([], n=8)
    apart = "oracle, genders independent"
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


def test_a_perfect_model_never_picks_an_irrelevant_caption_if_it_sees_the_answer():
    exact = worlds.relevance(seeds=[0], n=12).set_index("model")
    assert exact.loc["oracle", ["third word", "thing"]].tolist() == [100, 100]
    assert exact.loc["oracle", "thing, white picture"] < 100
    assert exact.loc["VisualBERT", "third word, white picture"] < 95


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
    assert all(seed < 1000 for way in study.MODEL_HEADS for seed in worlds.zero_seeds(way))
    assert worlds.zero_seeds(MATCHING) == list(range(8))


def test_the_verdict_asks_for_a_look_a_rise_above_the_floor_and_relevance():
    models = {"VisualBERT": 56.0, "LXMERT": 53.0, "CLIP": 90.0, "ViLT": 95.0}
    table = picked(**models)
    table.loc[(table["model"] == "CLIP") & (table["dose"] == 3), "vlrs"] = 70.0
    look = looks_of(table, blind=["ViLT"])
    by_model = worlds.verdict(table, look).set_index("model")
    assert by_model["rise"].tolist() == [10, 7, 44, 49]
    assert by_model["floor"].unique().tolist() == [8]
    assert by_model["reached"].tolist() == [True, False, False, False]
    assert by_model[["n", "worlds"]].to_numpy().tolist() == [[4, 2]] * 4
    assert by_model.loc["VisualBERT", ["low", "high"]].tolist() == [10, 10]
    unjudged = table[(table["model"] != "LXMERT") | (table["dose"] == 3)]
    found = worlds.verdict(unjudged, look)
    assert found.set_index("model").loc["LXMERT", "reached"] is None


def test_the_interval_of_a_rise_draws_triplets():
    table = picked(one=50.0)
    table.loc[(table["dose"] == 3) & (table["triplet"] == 0), "vlbs"] = 70.0
    row = worlds.verdict(table, looks_of(table)).iloc[0]
    assert row["rise"] == 14
    assert -100 <= row["low"] < 4
    assert row["high"] > 24


# The chapter


def fair(vlrs, vlbs):
    return 2 * vlrs * (100 - vlbs) / (vlrs + 100 - vlbs)


def log_p(pair):
    return log_expit(pair[0] - pair[1])


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (
            plots.check_ivlas,
            lambda a, b: fair(a, b) if a + 100 - b else 0,
            [
                lambda vlrs, vlbs: (vlrs + 100 - vlbs) / 2,  # the arithmetic mean
                lambda vlrs, vlbs: np.sqrt(vlrs * (100 - vlbs)),  # the geometric mean
                lambda vlrs, vlbs: 2 * vlrs * vlbs / (vlrs + vlbs),  # vlbs is not turned round
                fair,  # 0 / 0
            ],
        ),
        (
            plots.check_vlbs,
            lambda logits, anti: 100 * np.mean(logits[anti].argmax(axis=1) == 0),
            [
                lambda logits, anti: 100 * np.sum(logits[anti].argmax(axis=1) == 0) / len(logits),
                lambda logits, anti: 100 * np.mean(logits[anti, 0] > logits[anti, 1]),  # of two
                lambda logits, anti: 100 * np.mean(logits.argmax(axis=1) == 0),  # of all images
                lambda logits, anti: 100 * np.mean(logits[~anti].argmax(axis=1) == 0),
            ],
        ),
        (
            plots.check_lmss,
            lambda a, b: log_p(a) - log_p(b),
            [
                lambda named, neutral: named[0] - neutral[0],  # the logits
                lambda named, neutral: log_p(neutral) - log_p(named),  # upside down
                lambda named, neutral: np.exp(log_p(named)) - np.exp(log_p(neutral)),
                lambda named, neutral: (named[0] - named[1]) - (neutral[0] - neutral[1]),
            ],
        ),
    ],
)
def test_a_formula_is_checked_against_what_it_is_taken_for(check, right, wrong):
    with np.errstate(invalid="ignore"):
        assert not any(check(each).passed for each in [lambda *given: None, *wrong])
    assert check(right).passed


def test_the_judgement_follows_from_intervals_and_not_from_points():
    right = plots.statements_shown()
    assert right == [True, True, False, False, False, False]
    by_the_points, low_score = [True] * 5 + [False], [*right[:5], True]
    assert not any(plots.check_statements(each).passed for each in (by_the_points, low_score, None))
    assert plots.check_statements(np.array(right)).passed


def test_table_3_has_its_counts_and_intervals():
    table = plots.printed_intervals().set_index("model")
    assert table.loc["ALBEF", "vlbs, 95% interval"] == "28.3 to 36.5"
    assert table["anti-stereotypical images"].dropna().tolist() == [514, 514, 509, 514, 514, 514]
    assert table.loc["CLIP", "half of vlrs"] == f"{50 * 905 / 1028:.2f}"  # 905 of 1028 is 88.04.


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


def test_the_four_models_are_judged_by_what_they_read_and_by_noise():
    wrong = [
        ["yes", "yes", "yes", "no"],  # by the rise alone
        ["yes", "no", "yes", "no"],  # by the estimate alone
        ["yes", "no", "no", "no"],  # open is taken for no
    ]
    assert not any(verdicts.check_four(each).passed for each in wrong)
    assert verdicts.check_four(["yes", "no", "open", "no"]).passed


@pytest.mark.parametrize("wrong", [(100, 70, 70), (70, 70, 50), (100, 30, 50)])
def test_a_model_without_eyes_is_right_half_of_the_time(wrong):
    triplets, usual = 100, 70
    rows = [(label, at < usual) for at in range(triplets) for label in ("stereo", "anti")]
    right = np.mean([stereotyped == (label == "stereo") for label, stereotyped in rows])
    vlbs = np.mean([stereotyped for label, stereotyped in rows if label == "anti"])
    assert verdicts.check_blind([100, 100 * vlbs, 100 * right]).passed
    assert not verdicts.check_blind(wrong).passed


@pytest.mark.parametrize("statistic", ["ivlas", "vlsb"])
def test_models_are_compared_by_what_was_asked_for_or_not_at_all(statistic):
    run = run_of({"category": ["gender"], "label": ["anti-stereotype"]}, scored([[1, 2, 3]]))
    with pytest.raises(InputError, match=f"{statistic}.*vlrs, vlbs"):
        study.paired_tests(run, statistic)


def test_the_contrastive_scale_is_of_the_contrastive_cosine_alone(monkeypatch):
    monkeypatch.setattr(study, "caption_scores", lambda m, h, p, t, store: np.zeros((1, len(t[0]))))
    given = run_of({"category": ["gender"], "label": ["anti-stereotype"]}).inputs
    heads = [study.ModelHead("FLAVA", head, True, "flava", "flava") for head in study.HEADS]
    scales = [study.score_inputs(Dual(), head, given).scale for head in heads]
    assert dict(zip(study.HEADS, scales, strict=True)) == {
        "matching": 1.0, "contrastive": 10.0, "unimodal": 1.0,
    }  # fmt: skip
