"""Study 1: signs against what was planted, and values by other routes."""

import functools
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from support import stored

import plantedworld
from biaslib import datasets, inference, models, runtime, stimuli
from biaslib.errors import InputError
from biaslib.metrics.association import cosines
from biaslib.pictures.images import WithRegions
from biaslib.studies import study1_grounded as study
from plantedworld.inputs import study1_grounded as planted

GENDER = tuple(study.tests().query("group == 'gender'")["test"])
WORLDS = [(1, 0), (3, 1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return runtime.Store(tmp_path_factory.mktemp("store"))


@functools.cache
def planted_stimuli(*tests, levels=("word",), **settings):
    """Stimuli of the planted world, made once for all worlds that are asked about them."""
    return planted.planted_stimuli(tests or None, levels, **settings)


def results(model, every, store, experiments=(1, 2), **options):
    """Test, level, experiment -> effect size and numerator."""
    found = {}
    for sets in study.embed(model, every, store=store, **options):
        for experiment in experiments:
            row = study.score(sets, experiment, n_bootstrap=0)
            found[sets.test, sets.level, experiment] = row["value"], row["numerator"]
    return found


def signs(seed):
    return planted.planted_signs(seed).set_index("test")["sign"].to_dict()


@pytest.mark.parametrize(("dose", "seed"), WORLDS)
def test_the_oracle_has_the_planted_sign_on_every_test_where_it_reads_texts_alone(
    dose, seed, store
):
    every = planted_stimuli()
    found = results(
        models.load("oracle", dose=dose, seed=seed), every, store, (1,), with_images=False
    )
    for (test, _, _), (d, numerator) in found.items():
        sign = signs(seed)[test]
        if sign:
            assert np.sign(d) == sign, test
            assert sign * numerator > 0.005, test
        else:
            assert np.isnan(d) or abs(d) < 0.05, test


@pytest.mark.parametrize(("dose", "seed"), WORLDS)
def test_the_oracle_has_the_planted_sign_on_gender_with_pictures(dose, seed, store):
    every = planted_stimuli(*GENDER, levels=("word", "contextual"), n_texts=1)
    zero = results(models.load("oracle", dose=0, seed=seed), every, store)
    assert all(np.isnan(d) and numerator == 0 for d, numerator in zero.values())
    found = results(models.load("oracle", dose=dose, seed=seed), every, store)
    for (test, _, _), (d, numerator) in found.items():
        sign = signs(seed)[test]
        if sign:
            assert sign * d > 1, test
        else:
            assert np.isnan(d), test
            assert numerator == 0, test


# Stimuli


def test_a_scene_is_read_as_regions_once_and_gives_what_the_scene_gives(store):
    (scenes,) = planted.planted_stimuli(["C6"], ["word"])
    drawn, rows = scenes.images, scenes.images.regions()
    shown = WithRegions(drawn, lambda which: rows[list(which)], "by hand")
    regions = replace(scenes, images=shown)
    model = models.load("visualbert", profile="planted", dose=3, seed=0)
    (one,), (other,) = (study.embed(model, [each], store=store) for each in (scenes, regions))
    for name in study.SETS:
        np.testing.assert_allclose(one.embeddings[name], other.embeddings[name], atol=1e-4)
    assert stored.table(store)["rows"].max() >= 48


def test_hiding_words_makes_two_names_with_one_picture_the_same(store):
    (sets,) = planted.planted_stimuli(["C6"], ["word"])
    white = plantedworld.Scenes(plantedworld.blank())
    sets = study.GroundedStimuli("C6", "word", sets.rows.assign(image=0), white, sets.hidden)
    model = models.load("visualbert", profile="planted", dose=3, seed=0)
    (hidden,) = study.embed(model, [sets], "words", store=store)
    (plain,) = study.embed(model, [sets], store=store)
    assert np.ptp(hidden.embeddings["X"], axis=0).max() < 1e-4
    assert np.ptp(plain.embeddings["X"], axis=0).max() > 0.1
    assert np.isnan(study.score(hidden, 2)["value"])


def test_a_text_encoder_reads_a_word_of_two_parts_in_its_place(store):
    (sets,) = planted.planted_stimuli(["occupation-gender"], ["contextual"], n_texts=1)
    bert = models.load("bert", profile="planted", dose=3, seed=0)
    (found,) = study.embed(bert, [sets], with_images=False, store=store)
    (row,) = np.flatnonzero(found.words["Ax"] == "construction worker")
    text = sets.rows.loc[sets.rows["word"] == "construction worker", "text"].iloc[0]
    ids = bert.tokenizer(text)["input_ids"]
    place = bert.tokenizer.convert_ids_to_tokens(ids).index("construction_worker")
    with torch.inference_mode():
        states = bert.model(input_ids=torch.tensor([ids]))
    expected = states.last_hidden_state[0, place]
    np.testing.assert_allclose(found.embeddings["Ax"][row], expected, atol=1e-5)


# Scores


def embedded(rng, n=(6, 6, 4, 4, 4, 4), d=5, copies=2):
    embeddings = {
        name: np.repeat(rng.normal(size=(count, d)), copies, 0)
        for name, count in zip(study.SETS, n, strict=True)
    }
    embeddings = {
        name: rows + 0.1 * rng.normal(size=rows.shape) for name, rows in embeddings.items()
    }
    words = {
        name: np.repeat([f"{name[0]}{i}" for i in range(count)], copies)
        for name, count in zip(study.SETS, n, strict=True)
    }
    images = {name: np.array([f"{name}-{i}" for i in range(len(w))]) for name, w in words.items()}
    return study.EmbeddedSets("test", "word", "none", embeddings, words, images)


def test_the_interval_of_experiment_1_is_that_of_the_effect_size_of_all_attributes():
    sets = embedded(np.random.default_rng(0))
    row = study.score(sets, 1, n_bootstrap=300, seed=4)
    targets = np.concatenate([sets.embeddings["X"], sets.embeddings["Y"]])
    near = [
        cosines(targets, np.concatenate([sets.embeddings[f"{a}x"], sets.embeddings[f"{a}y"]]))
        for a in "AB"
    ]
    labels = [
        sets.words["X"],
        sets.words["Y"],
        *(np.concatenate([sets.words[f"{a}x"], sets.words[f"{a}y"]]) for a in "AB"),
    ]
    other = inference.bootstrap_effect_size(*near, *labels, n_resamples=300, rng=4)
    assert row["value"] == pytest.approx(other.estimate)
    assert [row["low"], row["high"]] == pytest.approx([other.low, other.high])


def test_p_values_of_words_are_those_of_words_without_copies():
    """Copies of a word change the p-value of items and leave that of words as it is."""
    once, four = (embedded(np.random.default_rng(2), copies=c) for c in (1, 4))
    exact = {name: np.repeat(once.embeddings[name], 4, 0) for name in study.SETS}
    four = study.EmbeddedSets("test", "word", "none", exact, four.words, four.images)
    for experiment in (1, 2, 3):
        one, many = study.score(once, experiment, 0), study.score(four, experiment, 0)
        assert many["p_value"] == pytest.approx(one["p_value"], abs=0.005)
        # What changes sides: six words of X and of Y, or four of A and of B.
        assert (many["n"], many["n_texts"]) == (8 if experiment == 3 else 12, 48)
        if experiment < 3:
            assert abs(many["p_value_paper"] - one["p_value_paper"]) > 0.005


def as_dealt(sets, words, own):
    """Return the statistic of Experiment 2 with these words in X, from the embeddings.

    Without *own* a word keeps the scores that it has where it stands.
    """
    means = {}
    for name in "XY":
        for word in np.unique(sets.words[name]):
            rows = sets.embeddings[name][sets.words[name] == word]
            side = "x" if (word in words if own else name == "X") else "y"
            near = [cosines(rows, sets.embeddings[kind + side]).mean() for kind in "AB"]
            means[word] = near[0] - near[1]
    x, y = ([d for word, d in means.items() if (word in words) == side] for side in (True, False))
    return np.mean(x) - np.mean(y)


def test_a_word_that_is_dealt_to_the_other_side_takes_the_attributes_of_that_side():
    """Sets of different size, against every relabelling of words written out."""
    differ = 0
    for seed in range(5):
        sets = embedded(np.random.default_rng(seed), n=(3, 5, 4, 3, 4, 3))
        every = [*np.unique(sets.words["X"]), *np.unique(sets.words["Y"])]
        p_values = []
        for own in (True, False):
            dealt = [as_dealt(sets, words, own) for words in itertools.combinations(every, 3)]
            p_values.append(np.mean(np.array(dealt) >= dealt[0] - 1e-12))
        row = study.score(sets, 2, 0)
        assert (row["p_value"], row["p_method"]) == (pytest.approx(p_values[0]), "enumeration")
        by_words = study.averaged(sets.grounded(2), sets.words)
        found = inference.grounded_permutation_test(by_words)
        assert found.statistic == pytest.approx(dealt[0])
        differ += abs(p_values[0] - p_values[1]) > 0.05
    assert differ


def test_the_papers_own_test_deals_every_text_with_the_score_that_it_has():
    sets = embedded(np.random.default_rng(2), n=(3, 3, 4, 4, 4, 4))
    for experiment in (1, 2):
        result = sets.grounded(experiment)
        scores = np.concatenate([result.x_scores, result.y_scores])
        dealt = [
            2 * scores[list(six)].sum() - scores.sum()
            for six in itertools.combinations(range(12), 6)
        ]
        p = np.mean(np.array(dealt) >= dealt[0] - 1e-12)
        assert study.score(sets, experiment, 0)["p_value_paper"] == pytest.approx(p)
    assert np.isnan(study.score(sets, 3, 0)["p_value_paper"])


def test_experiment_3_has_one_p_value_with_attribute_words_as_units():
    sets = embedded(np.random.default_rng(2))
    row = study.score(sets, 3, 0)
    found = inference.exchange_test(sets.grounded(3), sets.words)
    assert found.n_partitions == 70
    columns = ["p_value", "p_low", "p_high", "p_value_images"]
    assert [row[each] for each in columns] == [found.p_value] * 4
    assert row["p_method"] == "enumeration"
    for name in ("Ax", "Bx"):
        sets.images[name][:] = "white"
    row = study.score(sets, 3, 0)
    assert row["value"] > 0
    assert "p_value" not in row


def test_the_interval_of_experiment_3_holds_0_as_often_as_it_says_and_leaves_it_for_more():
    """Normal embeddings: attributes that know nothing of categories, and those that show them."""
    rng, held, left = np.random.default_rng(0), 0, 0
    for _ in range(100):
        sets = embedded(rng, n=(8,) * 6, d=16, copies=1)
        row = study.score(sets, 3, 200, p_values=False)
        held += row["low"] == 0
        for name, category in (("X", 1), ("Y", -1), ("Ax", 1), ("Ay", -1)):
            sets.embeddings[name][:, 0] += 3 * category
        left += study.score(sets, 3, 200, p_values=False)["low"] > 0
    assert held >= stats.binom.ppf(1e-6, 100, 0.93)
    assert left > 90


def test_an_interval_of_experiment_3_needs_two_words_a_set():
    sets = embedded(np.random.default_rng(1), n=(6, 6, 4, 4, 1, 1))
    row = study.score(sets, 3, 50)
    assert row["value"] > 0
    assert np.isnan([row["low"], row["high"]]).all()


def test_resamples_without_a_word_of_one_of_the_sets_are_left_out_of_experiment_3():
    """Of eight words of A three are left beside pictures of X; two units have no draws of none."""
    for seed in range(4):
        sets = embedded(np.random.default_rng(seed), n=(6, 6, 8, 8, 8, 8), copies=1)
        for column in (sets.embeddings, sets.words, sets.images):
            column["Ax"] = column["Ax"][5:]
        row = study.score(sets, 3, 200, p_values=False)
        assert 0 <= row["low"] <= row["value"] < row["high"] < np.inf
        interval = study.resampled(sets, 3, study._words(sets), 400, 0)
        undefined = np.isnan(interval.values[800:1200]).any(axis=1).mean()  # words of A drawn anew
        assert undefined == pytest.approx((5 / 8) ** 8, abs=0.03)


@pytest.mark.parametrize("experiment", [1, 2])
def test_an_effect_size_of_three_words_has_no_interval(experiment):
    row = study.score(embedded(np.random.default_rng(1), n=(3, 6, 4, 4, 4, 4)), experiment, 50)
    assert np.isfinite([row["value"], row["p_value"]]).all()
    assert np.isnan([row["low"], row["high"]]).all()


def test_maskings_that_leave_nothing_to_ask_are_passed_over(store):
    model = models.load("visualbert", dose=3, seed=0)
    every = planted_stimuli("C6", levels=("contextual",))
    options = {"store": store, "n_bootstrap": 0, "p_values": False, "experiments": (1, 2)}
    assert len(study.run(model, every, maskings=("none", "words"), **options)) == 2
    assert study.run(model, every, maskings=("words",), **options).empty


@pytest.mark.parametrize(
    ("settings", "error", "named"),
    [
        ({"domain": "in domain", "own": "mine"}, InputError, "out of domain"),
        ({"weights": {"VisualBERT": "visualbert-nlvr2"}}, runtime.UnknownNameError, "VisualBERT"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings, error, named):
    with pytest.raises(error, match=named):
        study.inputs("paper", **settings)


def test_a_picture_in_both_target_sets_has_no_p_value_of_pictures():
    sets = embedded(np.random.default_rng(3))
    sets.images["X"][0] = sets.images["Y"][0]
    assert np.isnan(study.score(sets, 1, 0)["p_value_images"])


def test_scores_without_spread_have_no_effect_size():
    sets = embedded(np.random.default_rng(3))
    for name in "XY":
        sets.embeddings[name][:] = 1.0
    row = study.score(sets, 1)
    assert np.isnan(row["value"])
    assert row["numerator"] == 0


# Intervals over pictures


def of_pictures(rng, words=(3, 3, 2, 2, 2, 2), n=5, texts=2, d=6, told=None):
    """Sets of words whose pictures differ; each picture goes with several texts."""
    told = told or np.random.default_rng(7)
    embeddings, of_word, of_picture = {}, {}, {}
    for name, count in zip(study.SETS, words, strict=True):
        centres = told.normal(size=(count, d))
        pictures = np.repeat(centres, n, 0) + rng.normal(size=(count * n, d))
        embeddings[name] = np.repeat(pictures, texts, 0) + 0.1 * np.tile(
            told.normal(size=(texts, d)), (count * n, 1)
        )
        of_word[name] = np.repeat([f"{name[0]}{i}" for i in range(count)], n * texts)
        of_picture[name] = np.repeat([f"{name}-{i}" for i in range(count * n)], texts)
    return study.EmbeddedSets("test", "word", "none", embeddings, of_word, of_picture)


def one_by_one(sets, experiment, counts, signs):
    """An experiment in plain loops, each picture counted as often as told.

    Experiment 3 adds up its two shifts with the signs given.
    """

    def mean(items):
        return sum(c * v for c, v in items) / sum(c for c, _ in items)

    def cosine(a, b):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def counted(name):
        pictures = sets.images[name]
        return [(counts[each], v) for each, v in zip(pictures, sets.embeddings[name], strict=True)]

    def scores(target, contexts):
        found = []
        for count, w in counted(target):
            near = {}
            for kind in "AB":
                rows = [row for context in contexts for row in counted(kind + context)]
                near[kind] = mean([(c, cosine(w, v)) for c, v in rows])
            found.append((count, near["A"] - near["B"]))
        return found

    def spread(items):
        middle = mean(items)
        squares = sum(c * (v - middle) ** 2 for c, v in items)
        return np.sqrt(squares / (sum(c for c, _ in items) - 1))

    if experiment < 3:
        x, y = (scores(t, "xy" if experiment == 1 else t.lower()) for t in "XY")
        return (mean(x) - mean(y)) / spread([*x, *y])
    x, y = (scores("X", "x"), scores("X", "y")), (scores("Y", "y"), scores("Y", "x"))
    shifts = mean(x[0]) - mean(x[1]), mean(y[0]) - mean(y[1])
    size = 0.5 * (signs[0] * shifts[0] + signs[1] * shifts[1])
    return size / spread([*x[0], *x[1], *y[0], *y[1]])


UNEVEN = {"X": 0.5, "Y": 1.0, "Ax": 0.25, "Ay": 0.8, "Bx": 1.0, "By": 1.0}


@pytest.mark.parametrize(
    ("experiment", "shares"), [(1, {}), (2, {}), (3, {}), (1, UNEVEN), (2, UNEVEN)]
)
def test_the_interval_over_pictures_is_that_of_draws_in_plain_loops(experiment, shares):
    """Of n pictures of a set n - 1 are dealt, each for n / (n - 1): Rao and Wu (1988).

    Where a share f of a set is left, each picture stands for 1 / f of them, and what is dealt
    deviates by the square root of 1 - f.
    """
    sets = replace(of_pictures(np.random.default_rng(1), n=3), shares=shares)
    row = study.score(sets, experiment, 4000, p_values=False, resample="pictures")
    rng, values = np.random.default_rng(2), []
    groups = {name: sorted(set(sets.images[name])) for name in study.SETS}
    once = {each: 1 / shares.get(name, 1) for name, own in groups.items() for each in own}
    result = sets.grounded(3)
    signs = np.sign(
        [
            result.x_scores.mean() - result.x_other.mean(),
            result.y_scores.mean() - result.y_other.mean(),
        ]
    )
    d = one_by_one(sets, experiment, once, signs)
    for _ in range(400):
        counts = {}
        for name, names in groups.items():
            n, left = len(names), np.sqrt(1 - shares.get(name, 0))
            dealt = [names[rng.integers(n)] for _ in range(n - 1)]
            counts |= {
                each: once[each] * (1 + left * (dealt.count(each) * n / (n - 1) - 1))
                for each in names
            }
        values.append(one_by_one(sets, experiment, counts, signs))
    plain = one_by_one(sets, experiment, dict.fromkeys(once, 1), signs)
    assert row["value"] == pytest.approx(plain, abs=1e-12)
    missing = [names for name, names in groups.items() if shares.get(name, 0) < 1]
    quantile = stats.t.ppf(0.975, sum(map(len, missing)) - len(missing))
    reach = quantile * np.std(values, ddof=1)
    if experiment < 3:  # Fisher's, for a number of limited range
        limit = np.sqrt((36 - 1) * 36 / 18**2)
        half = reach / limit / (1 - (np.mean(values) / limit) ** 2)
        ends = limit * np.tanh(np.arctanh(d / limit) + np.array([-half, half]))
    else:
        ends = [max(0, d - reach), d + reach]
    found = [row["low_pictures"], row["high_pictures"]]
    # Of 400 draws a standard deviation is known to 3.5%; three of these.
    assert found == pytest.approx(ends, abs=0.11 * reach)
    assert np.isnan([row["low"], row["high"]]).all()
    assert row["no_interval"] == ""


def test_a_set_with_one_picture_left_has_no_interval_and_a_whole_test_has_one_of_no_width():
    sets = of_pictures(np.random.default_rng(1))
    one = {name: np.full(len(sets.words[name]), name) for name in ("Ay", "Bx")}
    sets, settings = replace(sets, images=sets.images | one), {"resample": "pictures"}
    row = study.score(sets, 2, 50, p_values=False, **settings)
    assert np.isnan([row["low_pictures"], row["high_pictures"], row["share"]]).all()
    assert row["no_interval"] == "one picture in Ay, Bx"
    whole = replace(sets, shares=dict.fromkeys(study.SETS, 1.0))
    row = study.score(whole, 2, 50, p_values=False, **settings)
    ends = [row["low_pictures"], row["high_pictures"]]
    assert (ends, row["share"]) == (pytest.approx([row["value"]] * 2, abs=1e-12), 1)


# Images on this disk


@pytest.fixture
def released(tmp_path):
    """A test in the released format, with a picture for every name in it."""
    folder = tmp_path / "ross2021" / "images" / "google"
    (folder / "weat6").mkdir(parents=True)

    def images(prefix, n):
        names = [f"{prefix}_{i}.png" for i in range(n)]
        for i, name in enumerate(names):
            colour = (17 * i, len(prefix) * 9 % 256, sum(map(ord, prefix)) % 256)
            Image.new("RGB", (32, 32), colour).save(folder / "weat6" / name)
        return {name: [i % 2] for i, name in enumerate(names)}

    def part(category, words, **sets):
        return {"category": category, "captions": dict(enumerate(words)), **sets}

    content = {
        "test_name": "weat6",
        "dataset": "google",
        "dataset_dir": "weat6",
        "test_types": ["word"],
        "contextual_words": ["John", "Amy", "Paul", "Joan", "office", "career", "home", "family"],
        "targ1": part("M", ["John", "Paul"], images=images("m", 4)),
        "targ2": part("F", ["Amy", "Joan"], images=images("f", 4)),
    }
    for key, words in (("attr1", ["office", "career"]), ("attr2", ["home", "family"])):
        sets = {f"{c}_Images": images(f"{key}{c}", 2) for c in "MF"}
        content[key] = part(key, words, **sets)
    path = tmp_path / "ross2021" / "tests" / "grounded-tests" / "google" / "weat6.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_released_test_becomes_stimuli_with_its_own_name(released):
    test = datasets.grounded_test(released)
    pairs, _ = datasets.images_of(test, released.parents[3] / "images" / "google")
    (sets,) = study.image_stimuli([(test, pairs)])
    assert (sets.test, sets.level) == ("C6", "word")
    assert sets.rows.groupby("set").size().to_dict() == {
        "Ax": 2, "Ay": 2, "Bx": 2, "By": 2, "X": 4, "Y": 4,
    }  # fmt: skip
    assert sets.rows["text"].tolist() == sets.rows["word"].tolist()
    names = [Path(sets.images.name(image)).name for image in sets.rows["image"]]
    assert names[:4] == ["m_0.png", "m_1.png", "m_2.png", "m_3.png"]


@pytest.fixture
def in_paper(released, monkeypatch):
    """The folder of the released tests' images, in the profile paper."""
    monkeypatch.setenv("BIASLIB_DATA", str(released.parents[4]))
    return released.parents[3] / "images"


def counts(every):
    (sets,) = every["lxmert"]
    return sets.rows["set"].value_counts().to_dict()


def test_missing_images_stop_the_study_unless_it_is_told_to_go_on(in_paper):
    whole = counts(study.inputs("paper"))
    (in_paper / "google" / "weat6" / "m_0.png").unlink()
    with pytest.raises(datasets.DataError):
        study.inputs("paper")
    every = study.inputs("paper", only_sound=True)
    assert counts(every) == whole | {"X": whole["X"] - 1}
    assert whole["X"] == 4
    assert every.problems.to_numpy().tolist() == [
        ["error", "image is missing", "google/weat6.jsonl, X", "m_0.png"],
        ["note", "sets are unbalanced", "google/weat6.jsonl, X, Y", "X 3 of 4, Y 4 of 4"],
    ]
    left = every.left.set_index("set")
    assert left.loc[["X", "Y"], "images_left"].tolist() == [3, 4]
    assert left.loc["X", ["source", "test", "n_images", "share", "run"]].tolist() == [
        "google", "C6", 4, 0.75, "word",
    ]  # fmt: skip
    [lacking] = every["lxmert"]
    assert lacking.shares == dict.fromkeys(study.SETS, 1) | {"X": 0.75}
    hashed = {"lxmert": ByHash("lxmert")}
    scores = study.run_each(hashed, every, [1], n_bootstrap=0, p_values=False)
    assert scores["share"].tolist() == [0.75]


class ByHash:
    """A model whose embeddings depend on text and picture alone."""

    revision = "1"

    def __init__(self, name):
        self.name = name

    def embed(self, texts, images, level, **options):
        names = [Path(images.name(row)).name for row in range(len(images))]
        seeds = [sum(map(ord, text + name)) for text, name in zip(texts, names, strict=True)]
        return np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds])


def test_each_model_is_scored_on_its_tests_and_one_without_any_is_left_out(released, in_paper):
    every = study.inputs("paper")
    hashed = {name: ByHash(name) for name in ("lxmert", "vilbert", "another")}
    settings = {"n_bootstrap": 0, "p_values": False}
    scores = study.run_each(hashed, every, [1, 2], domain="in domain", **settings)
    assert scores[["model", "experiment"]].to_numpy().tolist() == [
        ["vilbert", 1], ["vilbert", 2], ["lxmert", 1], ["lxmert", 2],
    ]  # fmt: skip
    assert set(scores["domain"]) == {"in domain"}
    assert set(scores["profile"]) == {"paper"}
    alone = study.run(hashed["lxmert"], every["lxmert"], [1, 2], **settings)
    assert scores["value"].iloc[2:].tolist() == alone["value"].tolist()
    assert study.run_each({}, every).empty


def test_no_person_is_hidden_from_visualbert_as_in_the_paper(in_paper):
    every = study.inputs("paper")
    hashed = {name: ByHash(name) for name in ("visualbert", "lxmert")}
    settings = {"n_bootstrap": 20, "p_values": False, "resample": "pictures"}
    masked = study.run_each(hashed, every, [2], ["words", "persons"], **settings)
    assert masked[["model", "masking", "level"]].to_numpy().tolist() == [
        ["visualbert", "words", "word"],
        ["lxmert", "words", "word"],
        ["lxmert", "persons", "word"],
    ]
    # Nothing is missing that the test lists.
    assert set(masked["share"]) == {1}
    for end in ("low_pictures", "high_pictures"):
        assert masked[end].tolist() == pytest.approx(masked["value"].tolist(), abs=1e-12)
    assert study.run_each({"visualbert": hashed["visualbert"]}, every, [2], ["persons"]).empty


# Words as units


def test_captions_without_a_word_are_units_of_their_own(released):
    content = json.loads(released.read_text(encoding="utf-8"))
    content["test_types"] = ["sentence", "contextual"]
    content["targ1"]["captions"] = {"0": "This is John.", "1": "A man walks."}
    content["targ2"]["captions"] = {"0": "AMY is here.", "1": "This is Amy."}
    released.write_text(json.dumps(content), encoding="utf-8")
    test = datasets.grounded_test(released)
    pairs, _ = datasets.images_of(test, released.parents[3] / "images" / "google")
    sentence, contextual = study.image_stimuli([(test, pairs)])
    words = sentence.rows.groupby("set")["word"].agg(set)
    assert words["X"] == {"John", "A man walks."}
    assert words["Y"] == {"Amy"}
    assert set(contextual.rows["word"]).isdisjoint({"", "A man walks."})


# A folder of one's own


def filled(folder, words_a_set=2):
    """A test as a user fills it: a folder a word with a picture in each."""
    test = stimuli.association_test("C6")
    for number, name in enumerate(study.SETS):
        for place, word in enumerate(getattr(test, name[0])[:words_a_set]):
            (folder / name / word).mkdir(parents=True)
            colour = (40 * number, 90 * place, 7)
            Image.new("RGB", (32, 32), colour).save(folder / name / word / "1.png")
    return test


def test_a_folder_of_ones_own_becomes_stimuli(tmp_path):
    words = filled(tmp_path / "C6")
    test = datasets.user_test("C6", tmp_path / "C6", "sentence")
    pairs, _ = datasets.images_of(test, tmp_path / "C6")
    sentence, contextual = study.image_stimuli([(test, pairs)])
    n_sentences = len(stimuli.association_test("C6", "sentence").X) // len(words.X)
    sizes = sentence.rows.groupby("set")["image"].agg(["size", "nunique"])
    assert sizes["nunique"].tolist() == [2] * 6
    assert sizes.loc["X", "size"] == 2 * n_sentences
    assert sentence.rows.loc[0, ["set", "word", "text"]].tolist() == [
        "X", "John", stimuli.association_test("C6", "sentence").X[0],
    ]  # fmt: skip
    place = Path(sentence.images.name(sentence.rows.loc[0, "image"]))
    assert place == tmp_path / "C6" / "X" / "John" / "1.png"
    assert contextual.rows.equals(sentence.rows)
    every = study.inputs("paper", own=tmp_path, only_sound=True)
    assert [sets.level for sets in every["vl-bert"]] == list(study.LEVELS)
    assert every.left["images_left"].eq(2).all()
