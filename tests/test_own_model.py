"""The audit of one's own model: numbers beside their nulls, what is refused, what is given."""

import base64
import dataclasses
import gzip
import itertools
import json
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image
from support import generative_models, repositories
from support.hub import instead_of_the_real_one

from biaslib import __main__ as command_line
from biaslib import display, inference, models, runtime, stimuli
from biaslib.datasets import DataError
from biaslib.metrics import caption_association
from biaslib.models.errors import CapabilityError, CheckpointError
from biaslib.models.own import OwnModel, load_own
from biaslib.studies import own_model as study
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study3_clip_audit, study4_captions
from biaslib.studies.own_model import _counting, _grounding, _nulls, _parts, _plan
from biaslib.studies.scores import COLUMNS
from companion import own_model as plots
from plantedworld.inputs import study1_grounded as planted
from plantedworld.models.checkpoints import checkpoint
from plantedworld.studies import false_alarms

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

NOT_OF_CLIP = {
    "association tests, text alone": "the model does not embed texts",
    "association tests, with images": "the model does not embed texts with images",
    "masked words, caption alone": "the model does not fill masks",
    "masked words, with images": "the model does not fill masks with images",
    "captions by matching logit": "the model does not match images and texts",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return runtime.Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def clip():
    return load_own(checkpoint("clip", 3, 0), "planted", "cpu")


@pytest.fixture(scope="module")
def of_clip(clip, store):
    return study.audit(clip, "planted", store=store)


@pytest.fixture(scope="module")
def of_nothing(store):
    """The audit of a model in which nothing was planted."""
    return study.audit(load_own(checkpoint("clip", 0, 0), "planted", "cpu"), "planted", store=store)


@pytest.fixture(scope="module")
def of_bert(store):
    own = load_own(checkpoint("bert", 3, 0), "planted", "cpu")
    return study.audit(own, "planted", store=store)


# Nulls


def test_a_contrast_is_the_difference_of_means_with_an_exact_p_value():
    """All of 4 above all of 4: 2 of 70 partitions are as far apart."""
    found = study.contrast([5.0, 6, 7, 8], [1.0, 2, 3, 4])
    assert (found["value"], found["n"]) == (4.0, 8)
    assert found["p_value"] == pytest.approx(2 / 70)
    assert found["low"] <= 4 <= found["high"]
    assert found["null_low"] < 0 < found["null_high"] < 4


def test_what_all_words_share_does_not_matter():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=8), rng.normal(size=8)
    one, other = study.contrast(x, y), study.contrast(x + 100, y + 100)
    assert one["value"] == pytest.approx(other["value"])
    assert one["p_value"] == pytest.approx(other["p_value"])


def test_looking_alone_is_no_preference_of_a_caption():
    """A model that always sees which caption is true, and prefers none."""
    stereotypical = np.array([True, False] * 10)
    margins = np.where(stereotypical, 2.0, -2.0)
    found = study.balanced_preference(margins, stereotypical, np.arange(20))
    assert found["value"] == pytest.approx(0)
    assert found["p_value"] == 1.0
    preferring = study.balanced_preference(margins + 1.0, stereotypical, np.arange(20))
    assert preferring["value"] == pytest.approx(1 / (margins + 1).std())
    assert preferring["p_value"] == pytest.approx(2 / 2**20)


@pytest.mark.parametrize(("n", "by"), [(41, 0.006), (81, 0.006), (20, 0.02), (30, 0.02)])
def test_words_like_the_innocent_ones_lie_outside_as_often_as_is_said(n, by):
    """To a simulation's error where the quantiles are scores; else they lie between two.

    For these others .02 was set after .006 had failed, by .012 at 20 words and .007 at 30.
    """
    rng = np.random.default_rng(n)
    drawn = rng.lognormal(size=(20_000, n + 1))
    ranges = np.quantile(drawn[:, 1:], [0.025, 0.975], axis=1)
    outside = np.mean((drawn[:, 0] < ranges[0]) | (drawn[:, 0] > ranges[1]))
    assert outside == pytest.approx(study.outside_by_chance(n), abs=by)
    assert _nulls.reference_range(range(n))["null_n"] == n


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1)])
def test_of_all_ways_to_name_the_stereotypes_the_level_rejects_no_more_than_it_says(shares):
    """Three pictures a triplet, of one kind mostly: exact for any names."""
    rng = np.random.default_rng(3)
    units = np.repeat(np.arange(8), 3)
    kind = rng.choice([1.0, -1.0], units.size, p=shares)
    margins = kind + rng.normal(size=8)[units] + 0.1 * rng.normal(size=units.size)
    p_values = []
    for signs in itertools.product([1.0, -1.0], repeat=8):
        named = np.array(signs)[units]
        if len(np.unique(named * kind)) == 2:
            found = study.balanced_preference(named * margins, named * kind > 0, units, 0)
            p_values.append(found["p_value"])
    for level in (0.02, 0.05, 0.1, 0.5):
        assert sum(each <= level for each in p_values) <= level * 2**8


def test_pictures_of_one_kind_tell_nothing_of_preference():
    with pytest.raises(ValueError, match="both kinds"):
        study.balanced_preference([1.0, 2.0], [True, True], [0, 1])


def embedded(seed, lean=0.0, n=6):
    """Three tests with words at random; in the first X lies nearer to A by ``lean``."""
    rng = np.random.default_rng(seed)
    every = []
    for number, name in enumerate(("one", "two", "three")):
        vectors = {each: rng.normal(size=(n, 40)) for each in grounded.SETS}
        if number == 0:
            axis = rng.normal(size=40)
            for each, sign in (("X", 1), ("Y", -1), ("Ax", 1), ("Ay", 1), ("Bx", -1), ("By", -1)):
                vectors[each] = vectors[each] + lean * sign * axis
        words = {
            each: np.array([f"{name} {each[0]} {at}" for at in range(n)]) for each in grounded.SETS
        }
        images = {each: np.array([f"{name} {each} {at}" for at in range(n)]) for each in words}
        every.append(grounded.EmbeddedSets(name, "word", "none", vectors, words, images))
    return every


def test_random_attribute_words_tell_a_lean_from_none():
    leaning = study.random_attributes(embedded(0, lean=2.0)).set_index("test")
    assert leaning.loc["one", "p_random"] < 0.01
    assert leaning.loc["one", "pool"] == 2 * 4 * 6
    p_values = [study.random_attributes(embedded(seed))["p_random"].iloc[0] for seed in range(40)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.15
    assert 0.3 < np.mean(p_values) < 0.7


def test_experiment_2_has_a_pool_only_where_people_are_shared():
    found = study.random_attributes(embedded(0), experiment=2)
    assert found["pool"].tolist() == [0, 0, 0]
    assert found["p_random"].isna().all()


# Does it look?


class Looker:
    """Matches a caption with a picture by a number that both hold."""

    name, revision = "looker", "1"
    capabilities = frozenset({"match images and texts"})

    def __init__(self, sees=True, prefers=0.0):
        self.sees, self.prefers = sees, prefers

    def match(self, images, texts):
        rows = []
        for picture, row in zip(images, texts, strict=True):
            shown = int(np.asarray(picture)[0, 0, 0])
            numbers = np.array([int(text.split()[-1]) for text in row])
            rows.append(self.sees * -abs(numbers - shown) + self.prefers * numbers)
        return np.array(rows, dtype=float)


def numbered(n=40):
    from biaslib.models.images import pictures

    shown = pictures(np.stack([np.full((8, 8, 3), at, np.uint8) for at in range(n)]))
    return shown, [f"picture {at}" for at in range(n)]


def test_who_looks_gets_all_pairs_right_whatever_caption_it_prefers():
    found = study.caption_check(Looker(prefers=0.5), "matching", *numbered())
    assert (found.share, found.n, found.looks) == (1.0, 20, True)
    assert (found.low, found.high) == pytest.approx((0.8316, 1), abs=1e-3)


def test_who_does_not_look_is_right_by_half_whatever_caption_it_prefers():
    found = study.caption_check(Looker(sees=False, prefers=5.0), "matching", *numbered())
    assert (found.share, found.looks) == (0.5, False)


def test_captions_that_are_all_the_same_cannot_be_swapped():
    shown, said = numbered(4)
    with pytest.raises(ValueError, match="nothing can be swapped"):
        study.caption_check(Looker(), "matching", shown, [said[0]] * 4)


class Matcher:
    """Matches captions by their length, and counts how often it is asked."""

    name, revision = "matcher", "1"
    capabilities = frozenset({"match images and texts"})

    def __init__(self):
        self.asked = 0

    def match(self, images, texts):
        self.asked += 1
        return np.array([[len(text) for text in row] for row in texts], dtype=float)


def test_a_model_that_does_not_look_is_told_so_and_gets_no_vlbs(tmp_path):
    store = runtime.Store(tmp_path)
    found = study.audit(OwnModel("mine", "vilt", Matcher()), "planted", store=store)
    assert found.looking["matching"].share == 0.5
    assert "zhou2022" not in set(found.scores["study"])
    reasons = found.not_run.set_index("part")["reason"]
    assert "was not seen to look at pictures" in reasons["captions by matching logit"]
    assert "all pictures the same score" in reasons["portraits by word, matching"]
    assert "(vlbs and its companions) are left out" in plots.write_up(found)
    assert found.faults.empty


# The parts


def test_a_dual_encoder_gets_the_audits_of_dual_encoders(of_clip):
    assert of_clip.scores["part"].unique().tolist() == ["portraits by word", "captions by cosine"]
    assert dict(zip(of_clip.not_run["part"], of_clip.not_run["reason"], strict=True)) == NOT_OF_CLIP
    assert list(of_clip.scores.columns)[: len(COLUMNS)] == list(COLUMNS)
    assert set(of_clip.scores["model"]) == {"clip-dose3-seed0"}
    assert set(of_clip.scores["revision"]) == {of_clip.own.model.revision}
    assert of_clip.looking["contrastive"].looks


def test_c_asc_is_that_of_the_formula_in_every_facet(of_clip, clip):
    """The paper's equation on the same portraits, written out once more."""
    found = of_clip.scores.query("part == 'portraits by word' and statistic == 'c_asc'")
    given = study3_clip_audit.inputs("planted")
    table = stimuli.taxonomy("sobit")
    groups = {"gender": 1, "tone": 5, "age": 3, "gender x tone": 10}
    assert found.groupby("level", sort=False).size().to_dict() == {
        facet: n * len(table) for facet, n in groups.items()
    }
    some = [3, 200, 400]
    text = clip.model.encode_text([table["caption"].iloc[row].lower() for row in some])
    cosines = text @ clip.model.encode_image(given.portraits).T
    for facet, group, label in (("gender", "women", "women"), ("tone", "tone 5", "tone 5")):
        inside = (given.people[facet] == label).to_numpy()
        apart = cosines[:, inside].mean(1) - cosines[:, ~inside].mean(1)
        expected = apart / cosines.std(axis=1, ddof=1)
        rows = found[(found["level"] == facet) & (found["group"] == group)]
        np.testing.assert_allclose(rows["value"].to_numpy()[some], expected, atol=2e-4)
    assert (found["low"] <= found["high"]).all()


def test_a_contrast_of_portraits_is_that_of_its_words(of_clip):
    scores = of_clip.scores.query("level == 'gender'")
    name = study.LISTS[5][0]
    listed = scores[(scores["bias_type"] == name) & (scores["kind"].isin(["0", "1"]))]
    means = listed.groupby("kind")["value"].mean()
    row = scores[(scores["test"] == name) & scores["p_value"].notna()].iloc[0]
    assert row["value"] == pytest.approx(means["0"] - means["1"])
    test = stimuli.association_test("occupation-gender", "word")
    assert row["n"] == len(test.A) + len(test.B) == 40


def test_what_is_planted_is_claimed_and_nothing_is_where_nothing_is_planted(of_clip, of_nothing):
    claims = of_clip.claims[of_clip.claims["level"] == "gender"]
    assert study.LISTS[5][0] in set(claims["test"])
    occupations = claims.set_index("test").loc[study.LISTS[5][0]]
    assert occupations["value"] < 0  # women lie nearer to occupations held mostly by women
    assert len(of_nothing.claims) == 0
    assert len(of_nothing.asked) == len(of_clip.asked) == 7 * (1 + 5 + 3 + 10) + 5


def test_one_correction_over_everything_that_was_asked(of_clip):
    asked = of_clip.asked
    assert set(asked["part"]) == {"portraits by word", "captions by cosine"}
    np.testing.assert_allclose(asked["p_holm"], inference.adjust(asked["p_value"], "holm"))
    assert of_clip.scores.loc[of_clip.scores["p_value"].isna(), "p_holm"].isna().all()


def test_the_recorded_false_alarms_are_those_of_an_audit(of_nothing):
    found = false_alarms.recorded().set_index(["family", "seed"])
    row = found.loc[("clip", 0)]
    assert (row["asked"], row["claims"]) == (len(of_nothing.asked), len(of_nothing.claims))
    assert row["below"] == (of_nothing.asked["p_value"] < 0.05).sum()
    assert len(found) >= 10
    assert not found.index.duplicated().any()
    known = false_alarms.checkpoints()
    assert set(found.index) <= set(known.itertuples(index=False, name=None))


def test_the_rate_of_false_alarms_counts_reports_and_not_questions():
    rate = false_alarms.rate(pandas.DataFrame({"claims": [0, 0, 0, 5, 0, 0, 0, 0, 0, 0]}))
    assert (rate["reports"], rate["false"], rate["share"]) == (10, 1, 0.1)
    assert (rate["low"], rate["high"]) == pytest.approx((0.00253, 0.44502), abs=1e-4)


def test_selections_are_those_of_study_4(of_clip, clip, store):
    way = study4_captions.Way("mine", "contrastive", True, "clip", "clip")
    given = study4_captions.inputs("planted")
    found = study4_captions.run([way], given, lambda _: clip.model, store)
    direct = study4_captions.selection_scores(found, n_resamples=50)
    mine = of_clip.scores[of_clip.scores["part"] == "captions by cosine"]
    mine = mine[mine["statistic"] != "preference"]
    assert mine["value"].tolist() == direct["value"].tolist()
    assert mine["n"].tolist() == direct["n"].tolist()
    assert set(mine["test"]) == {"overall", "gender", "profession", "tone", "age"}


def test_beside_shares_stands_what_guessing_gives(of_clip):
    """The paper's imaginary random model, in closed form."""
    rows = study.summary(of_clip).set_index("measured")["null"]
    guessing = study4_captions.reference_models().set_index("model").loc["random"]
    for name in ("vlrs", "ivlas"):
        assert rows[f"overall: {name}"] == f"{guessing[name]:.2f} by guessing"


def test_beside_vlbs_stands_the_same_mistake_the_other_way_round(of_clip, clip, store):
    given = study4_captions.inputs("planted")
    texts = given.table[["stereotype", "anti-stereotype", "irrelevant"]].to_numpy().tolist()
    scores = study4_captions.caption_scores(clip.model, "contrastive", given.images, texts, store)
    wrong = scores[~given.anti].argmax(axis=1) == 1
    row = of_clip.scores.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
    assert row["mirrored"] == pytest.approx(100 * wrong.mean())


def test_a_text_encoder_gets_the_parts_without_images(of_bert):
    run = ["association tests, text alone", "masked words, caption alone"]
    assert of_bert.scores["part"].unique().tolist() == run
    assert of_bert.faults.empty
    reasons = of_bert.not_run.set_index("part")["reason"]
    assert reasons["association tests, with images"] == "the model does not embed texts with images"


def test_association_tests_are_those_of_study_1_at_every_level(of_bert, store):
    tests = of_bert.scores[of_bert.scores["study"] == "ross2021"]
    assert tests.groupby("level").size().to_dict() == dict.fromkeys(grounded.LEVELS, 13)
    every = planted.planted_stimuli(["occupation-gender"], ["sentence"], n_texts=1)
    (direct,) = grounded.run(
        of_bert.own.model, every, (1,), with_images=False, store=store
    ).to_dict("records")
    mine = tests.query("test == 'occupation-gender' and level == 'sentence'").iloc[0]
    assert mine["value"] == pytest.approx(direct["value"], abs=1e-9)
    assert (mine["p_value_words"], mine["n"]) == (direct["p_value_words"], direct["n_words"])
    assert mine["p_value"] == max(mine["p_value_words"], mine["p_random"], mine["p_value_images"])


def test_masked_words_stand_beside_innocent_things(of_bert):
    rows = of_bert.scores.query("study == 'srinivasan2021'")
    bias = rows[rows["statistic"] == "B"]
    assert set(bias["test"]) == set(stimuli.entities()["entity"])
    assert bias["null_low"].notna().all()
    (row,) = rows[rows["statistic"] == "difference of B"].to_dict("records")
    by_label = bias.groupby("stereotype")["value"].mean()
    assert row["value"] == pytest.approx(by_label["women"] - by_label["men"])
    assert row["n"] == len(bias)
    assert rows.loc[rows["statistic"] == "agrees with the label", "p_value"].isna().all()


def test_the_shift_in_pre_training_is_from_the_model_that_a_checkpoint_began_from():
    own = load_own(checkpoint("vl_bert", 0, 1), "planted", "cpu")
    before = _parts._text_model(own, study.Setting("planted"), None)
    assert before.revision.startswith("bert-dose0-seed1,")
    own = load_own(checkpoint("visualbert", 0, 0), "planted", "cpu")
    assert _parts._text_model(own, study.Setting("planted"), None) is own.model


def test_a_generative_model_is_asked_for_all_that_it_can_do(tmp_path, monkeypatch):
    """With random weights: it does not look, and is told so."""
    monkeypatch.setattr(_parts, "MATCHED_PER_CELL", 2)
    folder = generative_models.build("llava", tmp_path / "llava")
    wanted = ["masked words, caption alone", "portraits by word, matching", "zhou2022"]
    store = runtime.Store(tmp_path / "store")
    found = study.audit(folder, "planted", "cpu", store, parts=wanted, n_resamples=20)
    assert found.faults.empty, found.faults["reason"].tolist()
    assert set(found.scores["part"]) == set(wanted[:2])
    assert not found.looking["matching"].looks
    entities = found.scores.query("statistic == 'B'")
    assert set(entities["level"]) == {"S_L, no image"}
    (one,) = entities[entities["test"] == "purse"].to_dict("records")
    said = ["The woman is carrying a [MASK].", "The man is carrying a [MASK]."]
    log_p = found.own.model.mask_log_prob(said, ["purse"])
    assert one["value"] == pytest.approx(log_p[0, 0] - log_p[1, 0], abs=1e-3)
    assert len(found.claims) == 0
    display.use_style()
    assert "was not seen to look" in plots.html_report(found)


def test_parts_are_chosen_by_name_and_the_others_are_named(clip, store):
    found = study.audit(clip, "planted", store=store, parts=["zhou2022"], n_resamples=0)
    assert set(found.scores["study"]) == {"zhou2022"}
    left = found.not_run.set_index("part")["kind"]
    assert left["portraits by word"] == "not asked for"
    with pytest.raises(KeyError, match="unknown part of the audit"):
        study.chosen_parts(["zhou2023"])


def test_a_part_that_fails_does_not_take_the_others_with_it(clip, store, monkeypatch):
    errors = {
        "portraits by word": RuntimeError("out of paper\nand ink"),
        "captions by cosine": DataError("no picture is left. Put some there"),
    }

    def raising(name):
        def ask(own, setting):
            raise errors[name]

        return ask

    parts = [
        dataclasses.replace(part, ask=raising(part.name)) if part.name in errors else part
        for part in study.PARTS
    ]
    monkeypatch.setattr(_parts, "PARTS", tuple(parts))
    found = study.audit(clip, "planted", store=store)
    assert found.scores.empty
    kept = found.not_run.set_index("part")[["kind", "reason"]]
    expected = ["error", "RuntimeError: out of paper and ink"]
    assert kept.loc["portraits by word"].tolist() == expected
    expected = ["not there", "no picture is left. Put some there"]
    assert kept.loc["captions by cosine"].tolist() == expected
    assert kept.loc["association tests, text alone", "kind"] == "not possible"
    assert found.faults["part"].tolist() == ["portraits by word"]


def test_a_second_audit_asks_the_model_nothing_again(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path))
    monkeypatch.setattr(_parts, "MATCHED_PER_CELL", 1)
    first, second = Matcher(), Matcher()
    scores = [
        study.audit(OwnModel("mine", "vilt", each), "planted").scores for each in (first, second)
    ]
    assert first.asked > 0
    assert second.asked == 0
    pandas.testing.assert_frame_equal(*scores)


def test_a_model_without_any_capability_is_named_and_its_parts_counted():
    with pytest.raises(CapabilityError, match=r"nothing at all fits none of the 8 parts .*masks"):
        study.audit(OwnModel("nothing at all", "bert", object()), "planted")


# Pictures of one's own


@pytest.fixture
def folder(tmp_path):
    """Twenty-four people, in colours of their own."""
    place = tmp_path / "people"
    place.mkdir()
    rows = []
    for at in range(24):
        picture = np.full((48, 48, 3), [10 * at, 255 - 10 * at, 120], np.uint8)
        Image.fromarray(picture).save(place / f"{at:02}.png")
        gender, age = ("women", "men")[at % 2], ("young", "old")[at // 12]
        rows.append({"file": f"{at:02}.png", "person": f"p{at}", "gender": gender, "age": age})
    write(place, pandas.DataFrame(rows))
    return place


def write(place, table):
    table.to_csv(place / "labels.csv", index=False)


def labels(place):
    return pandas.read_csv(place / "labels.csv", dtype=str)


def test_counts_by_group_come_first_and_intersections_with_them(folder):
    found = study.read_folder(folder)
    counts = found.counts().set_index(["column", "group"])
    assert counts.loc[("gender", "women")].tolist() == [12, 12]
    assert counts.loc[("gender x age", "women x old")].tolist() == [6, 6]
    assert list(found.facets()) == ["gender", "age"]
    assert "intersection gender x age is left out" in found.notes[0]


def test_an_audit_of_ones_own_pictures(folder, clip, store):
    found = study.audit(clip, "planted", store=store, data=folder, n_resamples=20)
    assert found.stimuli == "own"
    assert found.scores["part"].unique().tolist() == ["portraits by word"]
    assert set(found.scores["profile"]) == {"own"}
    assert set(found.scores["level"]) == {"gender", "age"}
    assert set(found.scores.query("statistic == 'c_asc'")["n"]) == {24}
    assert "labels.csv has no column caption" in " ".join(found.notes)
    parts = plots.write_up(found).split("\n## ")
    (asked,) = (each for each in parts if each.startswith("What was asked"))
    assert "intersection gender x age is left out" in asked
    assert sum("intersection gender x age" in each for each in parts) == 1
    text = plots.write_up(found)
    assert "| gender | women | 12 | 12 |" in text
    assert "planted world" not in text.split("## Words to keep to")[0]
    reasons = found.not_run.set_index("part")["reason"]
    assert reasons["captions by cosine"].startswith("the folder has portraits")


def test_pictures_of_one_person_are_one_unit(folder, clip, store):
    table = labels(folder)
    write(folder, table.assign(person=[f"p{at // 2 * 2 + at % 2}" for at in range(24)]))
    assert set(study.read_folder(folder).counts()["people"]) == {12, 6}
    people = [at % 12 for at in range(24)]
    ages = [("young", "old")[each // 6] for each in people]
    write(folder, table.assign(person=[f"p{each}" for each in people], age=ages))
    found = study.audit(clip, "planted", store=store, data=folder, n_resamples=5)
    assert set(found.scores.query("statistic == 'c_asc'")["n"]) == {12}


def changed(place, change):
    write(place, change(labels(place)))


BAD = {
    "a group of two": (
        lambda place: changed(place, lambda t: t.assign(race=["a", "a"] + ["b"] * 22)),
        (None, "a"),
    ),
    "one group": (
        lambda place: changed(place, lambda t: t.assign(gender="women")),
        (None, "gender"),
    ),
    "no groups": (
        lambda place: changed(place, lambda t: t[["file", "person"]]),
        (None, None),
    ),
    "no file column": (
        lambda place: changed(place, lambda t: t.rename(columns={"file": "picture"})),
        (None, "file"),
    ),
    "an empty label": (
        lambda place: changed(place, lambda t: t.assign(age=["", *t["age"][1:]])),
        (2, ""),
    ),
    "an empty label after an empty line": (
        lambda place: (place / "labels.csv").write_text(
            (place / "labels.csv").read_text().replace("03.png,p3,men", "\n03.png,p3,")
        ),
        (6, ""),
    ),
    "a person called nan": (
        lambda place: changed(place, lambda t: t.assign(person=[*t["person"][:-3], *["nan"] * 3])),
        (23, "nan"),
    ),
    "a caption that is missing": (
        lambda place: changed(place, lambda t: t.assign(CAPTION=["a dog", *["None"] * 23])),
        (3, "None"),
    ),
    **{
        f"people called {word}": (
            lambda place, word=word: changed(
                place, lambda t: t.assign(race=["White"] * 16 + [word] * 8)
            ),
            (18, word.strip()),
        )
        for word in ("nan", "None", "NA", "<NA>", "NaN", "null", "N/A", " nan")
    },
    "a file not there": (
        lambda place: (place / "03.png").unlink(),
        (5, "03.png"),
    ),
    "a picture without a row": (
        lambda place: changed(place, lambda t: t[1:]),
        (None, "00.png"),
    ),
    "a file twice": (
        lambda place: changed(place, lambda t: pandas.concat([t, t[:1]])),
        (26, "00.png"),
    ),
    "two pictures in a row": (
        lambda place: changed(place, lambda t: t.assign(file=["00.png;01.png", *t["file"][1:]])),
        (2, "00.png;01.png"),
    ),
    "a person with two labels": (
        lambda place: changed(place, lambda t: t.assign(person=["p1", *t["person"][1:]])),
        (None, "p1"),
    ),
    "a column twice": (
        lambda place: changed(
            place, lambda t: t.set_axis(["file", "person", "age", " age"], axis=1)
        ),
        (None, "age"),
    ),
    "captions twice": (
        lambda place: changed(place, lambda t: t.assign(caption="a", Caption="b")),
        (None, "caption"),
    ),
    "a column without a name": (
        lambda place: changed(place, lambda t: t.rename(columns={"age": " "})),
        (None, None),
    ),
    "a group a picture": (
        lambda place: changed(place, lambda t: t.assign(id=t["file"])),
        (None, "00.png"),
    ),
    "a file elsewhere": (
        lambda place: changed(place, lambda t: t.assign(file=["../x.png", *t["file"][1:]])),
        (2, "../x.png"),
    ),
    "a line too short": (
        lambda place: (place / "labels.csv").write_text(
            (place / "labels.csv").read_text() + "25.png\n"
        ),
        (26, None),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_before_a_model_is_loaded(folder, case):
    spoil, (row, word) = BAD[case]
    spoil(folder)
    with pytest.raises(DataError) as caught:
        study.audit("no such model is needed", "planted", data=folder)
    assert caught.value.path == folder / "labels.csv"
    assert (caught.value.row, caught.value.word) == (row, word)


def test_pictures_that_cannot_be_used_are_named(folder):
    shutil.copy(folder / "00.png", folder / "01.png")
    with pytest.raises(DataError) as caught:
        study.read_folder(folder)
    assert caught.value.path == folder / "00.png"
    (folder / "05.png").write_bytes(b"\x89PNG\r\n\x1a\n not a picture")
    with pytest.raises(DataError) as caught:
        study.read_folder(folder)
    assert caught.value.path == folder / "05.png"


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        ("\u00e4lter", "a\u0308lter"),
        ("\u00e4lter", "\u00e4l\u200bter"),
        ("\u00e4lter", "\ufeff\u00e4lter\u00a0"),
        ("women", "wo\u00admen"),
        ("East Asian", "East\u00a0Asian"),
    ],
)
def test_a_label_in_two_spellings_of_unicode_is_one_group(folder, usual, other):
    ages = [usual if at < 12 else "jung" for at in range(24)]
    spelt = [other if each == usual and at % 4 == 1 else each for at, each in enumerate(ages)]
    changed(folder, lambda t: t.assign(age=spelt))
    found = study.read_folder(folder)
    assert found.counts().query("column == 'age'")["group"].tolist() == [usual, "jung"]
    assert found.counts().query("column == 'age'")["people"].tolist() == [12, 12]


def test_a_person_in_two_spellings_of_unicode_is_one_person(folder):
    people = ["\u00e9lise", "e\u0301lise\u200b", *[f"p{at}" for at in range(2, 24)]]
    changed(folder, lambda t: t.assign(person=people, gender=["women"] * 12 + ["men"] * 12))
    assert study.read_folder(folder).counts()["people"].tolist()[:2] == [11, 12]


@pytest.mark.parametrize("other", ["Women", "wom\u0435n", "WOMEN", "women"])
def test_labels_that_look_alike_are_two_groups_and_noted(folder, other):
    spelt = [("women", other, "men")[at % 3] for at in range(24)]
    changed(folder, lambda t: t.assign(gender=spelt))
    found = study.read_folder(folder)
    assert found.counts().query("column == 'gender'")["group"].nunique() == len(set(spelt))
    assert any("alike" in note and other in note for note in found.notes) == (other != "women")


def test_people_that_look_alike_are_noted(folder):
    changed(folder, lambda t: t.assign(person=["P1", *t["person"][1:]], gender=["x", "y"] * 12))
    assert any("'P1' and 'p1'" in note for note in study.read_folder(folder).notes)


@pytest.mark.parametrize("name", ["Caption", "CAPTION", "caption "])
def test_a_column_of_captions_is_no_group_however_it_is_written(folder, name):
    changed(folder, lambda t: t.assign(**{name: ["a dog", "a cat"] * 12}))
    found = study.read_folder(folder)
    assert found.groups == ("gender", "age")
    assert found.captions[1] == ["a dog", "a cat"] * 12


def test_fairface_s_own_table_is_read_without_its_column_of_a_test(folder):
    changed(
        folder,
        lambda t: t[["file", "age", "gender"]].assign(
            race=["Black"] * 12 + ["White"] * 12, service_test=["True", "False"] * 12
        ),
    )
    found = study.read_folder(folder)
    assert found.groups == ("age", "gender", "race")
    assert any("service_test" in note for note in found.notes)


def test_what_programs_leave_among_pictures_is_no_picture(folder):
    for name in (".ipynb_checkpoints/00.png", "@eaDir/00.png", "__MACOSX/._00.png", "._01.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not a picture")
    (folder / "00.png").rename(folder / "_00.png")  # as cameras write names
    changed(folder, lambda t: t.assign(file=["_00.png", *t["file"][1:]]))
    assert study.read_folder(folder).counts()["pictures"].tolist()[:2] == [12, 12]


def test_the_first_line_of_a_spreadsheet_is_no_header(folder):
    expected = study.read_folder(folder).counts()
    table = (folder / "labels.csv").read_text()
    (folder / "labels.csv").write_text("\ufeffsep=,\n" + table, encoding="utf-8")
    pandas.testing.assert_frame_equal(study.read_folder(folder).counts(), expected)


def test_names_with_dots_and_umlauts_of_two_kinds_and_commas_at_the_end_are_read(folder):
    (folder / "00.png").rename(folder / "anna..0.png")
    (folder / "01.png").rename(folder / "mu\u0308ller.png")  # as a Mac writes it
    changed(folder, lambda t: t.assign(file=["anna..0.png", "m\u00fcller.png", *t["file"][2:]]))
    lines = (folder / "labels.csv").read_text(encoding="utf-8").splitlines()
    (folder / "labels.csv").write_text("\n".join(f"{line},," for line in lines), encoding="utf-8")
    found = study.read_folder(folder)
    assert found.groups == ("gender", "age")
    assert found.people["file"].tolist()[:2] == ["anna..0.png", "mu\u0308ller.png"]


def test_the_table_stands_for_its_folder(folder, monkeypatch):
    expected = study.read_folder(folder)
    assert study.read_folder(folder / "labels.csv").name == expected.name
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    pandas.testing.assert_frame_equal(study.read_folder("~/people").people, expected.people)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "is not there; check the path"),
        ("people/labels.txt", "is not there; check the path"),
        ("people/00.png", "is a file; give the folder"),
        ("people/below", "has no labels.csv"),
    ],
)
def test_data_that_are_no_folder_are_told_apart(folder, name, said):
    (folder / "below").mkdir()
    with pytest.raises(DataError, match=said) as caught:
        study.read_folder(folder.parent / name)
    path = folder.parent / name
    assert caught.value.path == (path / "labels.csv" if name == "people/below" else path)


# Models that cannot be audited


def save_config(folder, **config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_model_that_needs_code_of_its_own_is_refused(tmp_path):
    folder = save_config(tmp_path / "m", model_type="strange", auto_map={"AutoModel": "m.Model"})
    with pytest.raises(CheckpointError, match="never run"):
        study.audit(folder, "planted")


def test_a_model_that_does_not_see_is_named(tmp_path):
    folder = save_config(tmp_path / "m", model_type="gpt2", architectures=["GPT2LMHeadModel"])
    with pytest.raises(CheckpointError, match=r"'gpt2' \(GPT2LMHeadModel\), which no family"):
        study.audit(folder, "planted")


def test_a_gated_name_without_a_token_says_what_to_do(tmp_path):
    (tmp_path / "served").mkdir()
    with instead_of_the_real_one(tmp_path / "served", tmp_path) as hub:
        hub.refuse = 401
        with pytest.raises(CheckpointError, match="HF_TOKEN"):
            study.plan("google/secret", "paper", "cpu")


# What it would take


def test_a_plan_counts_texts_pictures_and_bytes_without_loading_a_model(monkeypatch):
    monkeypatch.setattr("biaslib.models.own.load_identified", None)
    found = study.plan(checkpoint("clip", 3, 0), "planted", "cpu", speed=1e9)
    parts = [_counting.CHECK, "portraits by word", "captions by cosine"]
    assert found.parts["part"].tolist() == parts
    files = sum(path.stat().st_size for path in checkpoint("clip", 3, 0).glob("*.safetensors"))
    assert found.parameters == files / 2  # float16 on disk
    assert found.download == 0
    assert found.parts.set_index("part").loc["portraits by word", "pictures"] == 300
    assert found.fits
    found.require_fit()


class Tally:
    """Answers at random, and counts texts, pictures and pairs of these."""

    name, revision = "tally", "1"

    def __init__(self, capabilities):
        self.capabilities, self.rng = capabilities, np.random.default_rng(1)
        self.read = dict.fromkeys(("texts", "pictures", "pairs"), 0)

    def embed(self, texts, images=None, level="sentence", words=None):
        self.read["texts" if images is None else "pairs"] += len(texts)
        return self.rng.normal(size=(len(texts), 8))

    def mask_log_prob(self, texts, candidates, images=None, **options):
        each = len(candidates) if "give likelihoods of texts" in self.capabilities else 1
        self.read["texts" if images is None else "pairs"] += len(texts) * each
        return -self.rng.exponential(size=(len(texts), len(candidates)))

    def encode_text(self, texts):
        self.read["texts"] += len(texts)
        return self.rng.normal(size=(len(texts), 8))

    def encode_image(self, images):
        self.read["pictures"] += len(images)
        return self.rng.normal(size=(len(images), 8))

    def match(self, images, texts):
        self.read["pairs"] += sum(map(len, texts))
        return self.rng.normal(size=(len(images), len(texts[0])))


@pytest.mark.parametrize("name", ["clip", "vilt", "smolvlm", "bert"])
def test_an_audit_reads_as_much_as_the_plan_counted(name, tmp_path, monkeypatch):
    monkeypatch.setattr(_grounding.Looking, "looks", True)
    monkeypatch.setattr(_parts, "MATCHED_PER_CELL", 2)
    monkeypatch.setattr(_nulls, "DRAWS", 99)
    # A tiny checkpoint is not shipped of every family.
    monkeypatch.setattr(_plan, "weights_of", lambda *_: (4_000, 4, 0))
    planned = study.plan(name, "planted", "cpu", speed=1e9)
    tally = Tally(models.REGISTRY[name].capabilities)
    store = runtime.Store(tmp_path)
    found = study.audit(OwnModel("mine", name, tally), "planted", store=store, n_resamples=0)
    refused = found.not_run[~found.not_run["reason"].str.startswith("the model does not")]
    assert refused.empty, refused["reason"].tolist()
    assert planned.parts[["texts", "pictures", "pairs"]].sum().to_dict() == tally.read
    parts = [part for part in planned.parts["part"] if part != _counting.CHECK]
    assert parts == found.scores["part"].unique().tolist()


def test_minutes_are_measured_with_a_few_items_of_each_question(folder, monkeypatch):
    planned = study.plan("clip", "planted", "cpu", data=folder, speed=1e9)
    assert "an estimate" in planned.time
    tally, ticks = Tally(models.REGISTRY["clip"].capabilities), itertools.count()
    monkeypatch.setattr(_counting, "perf_counter", lambda: next(ticks))
    timed = planned.timed(tally)  # a second for each call
    read = planned.parts[["texts", "pictures", "pairs"]].sum()
    assert (read["pictures"], read["pairs"]) == (24, 0)
    assert tally.read == {"texts": 16, "pictures": 16, "pairs": 0}
    assert timed.minutes == pytest.approx((read["texts"] + 24) / 8 / 60)
    assert "measured with a few items" in timed.time


def test_what_does_not_fit_is_refused_and_what_would_is_said(monkeypatch):
    found = study.plan(checkpoint("clip", 3, 0), "planted", "cpu", speed=1e9)
    large = dataclasses.replace(found, memory=60.0, free=40.0, device="cuda:0")
    with pytest.raises(
        study.DoesNotFitError, match=r"BIASLIB_PRECISION=auto would take 30.0 GiB, "
    ):
        large.require_fit()
    with pytest.raises(study.DoesNotFitError, match="A smaller batch does not help"):
        dataclasses.replace(large, device="cpu").require_fit()
    monkeypatch.setattr(runtime, "free_memory", lambda name: 1000)
    with pytest.raises(study.DoesNotFitError):
        study.plan(checkpoint("clip", 3, 0), "planted", "cpu", speed=1e9).require_fit()


def test_half_precision_on_disk_counts_two_bytes_a_number(tmp_path):
    folder = save_config(tmp_path / "m", model_type="clip", dtype="bfloat16")
    (folder / "model.safetensors").write_bytes(b"0" * 4000)
    (folder / "pytorch_model.bin").write_bytes(b"0" * 4000)  # the same weights once more
    assert _plan.weights_of(folder, "planted") == (4000, 2, 0)


def test_a_registered_name_in_planted_is_as_large_as_its_tiny_checkpoint():
    tiny = (checkpoint("clip", 3, 0) / "model.safetensors").stat().st_size
    assert _plan.weights_of("clip", "planted") == (tiny, 2, 0)
    assert _plan.weights_of("clip", "paper") == (4 * 151_277_313, 4, 4 * 151_277_313)
    with pytest.raises(FileNotFoundError, match="smolvlm"):
        study.plan("smolvlm", "planted", "cpu")


# The command line


def test_the_command_says_what_it_would_take_and_stops(capsys, folder):
    arguments = ["audit", str(checkpoint("clip", 3, 0)), "--data", str(folder), "--device", "cpu"]
    assert command_line.main([*arguments, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.index("women") < said.index("million parameters")
    assert "portraits by word" in said
    assert said.index("an estimate") < said.index("measured with a few items")


def test_the_command_writes_a_report(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    arguments = ["audit", str(checkpoint("clip", 3, 0)), "--parts", "zhou2022", "--device", "cpu"]
    arguments += ["--compare", str(checkpoint("clip", 0, 0)), "--out", str(tmp_path / "out")]
    assert command_line.main(arguments) == 0
    names = ["scores.csv", "provenance.json", "report.md", "report.html", "comparison.csv"]
    names += ["scores-second.csv", "provenance-second.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    assert "questions were asked" in capsys.readouterr().out


def audit_of(model, *more):
    given = ["audit", str(model), "--parts", "zhou2022", "--device", "cpu", *map(str, more)]
    return command_line.main(given)


@pytest.fixture
def no_audit(monkeypatch):
    """An audit must not begin: what is wrong can be known before."""
    monkeypatch.setattr(study, "audit", lambda *_, **__: pytest.fail("an audit was begun"))


def test_a_place_that_cannot_hold_the_report_is_refused_before_the_audit(
    capsys, tmp_path, no_audit
):
    (tmp_path / "a file").write_text("mine")
    assert audit_of(checkpoint("clip", 3, 0), "--out", tmp_path / "a file") == 1
    error = capsys.readouterr().err
    assert f"{tmp_path / 'a file'} cannot hold the report (File exists): free some space" in error
    assert (tmp_path / "a file").read_text() == "mine"


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_second_model_that_is_not_there_is_named_before_the_audit(
    capsys, tmp_path, no_audit, more
):
    more = ("--compare", "nosuch", "--out", tmp_path / "out", *more)
    assert audit_of(checkpoint("clip", 3, 0), *more) == 1
    assert "ValueError: nosuch is no registered name" in capsys.readouterr().err


def test_a_name_of_the_hub_beside_a_folder_is_looked_for_there(capsys, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(runtime, "start", lambda profile: seen.append(profile))
    monkeypatch.setattr(study, "plan", lambda *_: pytest.fail(f"in {seen}"))
    with pytest.raises(pytest.fail.Exception, match=r"in \['paper'\]"):
        audit_of(tmp_path, "--compare", "owner/name", "--out", tmp_path / "out")
    assert audit_of("", "--out", tmp_path / "out") == 1
    assert "a model's name is empty" in capsys.readouterr().err


def test_the_first_report_stays_where_two_models_have_nothing_in_common(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    more = ("--compare", checkpoint("bert", 3, 0), "--out", tmp_path / "out")
    assert audit_of(checkpoint("clip", 3, 0), *more) == 1
    error = capsys.readouterr().err
    assert f"no part in common that is compared. The first model's report is in {tmp_path}" in error
    names = {"scores.csv", "provenance.json", "report.md", "report.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names


def test_a_report_that_cannot_be_written_leaves_the_earlier_one_whole(tmp_path, of_clip):
    (tmp_path / "scores.csv").write_text("earlier")
    (tmp_path / "report.md.part").mkdir()  # what stands in its way
    with pytest.raises(OSError, match=r"cannot hold the report \(Is a directory\): free some"):
        plots.Downloads(of_clip).save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md.part", "scores.csv"]
    assert (tmp_path / "scores.csv").read_text() == "earlier"


def test_a_store_that_cannot_be_written_is_told_where_the_command_is_run(
    capsys, tmp_path, monkeypatch
):
    (tmp_path / "store").write_text("a file where a folder should be")
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    assert audit_of(checkpoint("clip", 3, 0), "--out", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert "captions by cosine: " in error
    assert "choose another folder with BIASLIB_STORE" in error


@pytest.mark.parametrize(
    ("name", "said"),
    [("gpu", "none that PyTorch knows, such as cpu"), ("cuda", "finds no device 'cuda' here")],
)
def test_a_device_that_is_not_there_is_named(name, said, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match=said):
        models.load("clip", profile="planted", device=name)


@pytest.mark.parametrize(
    ("model", "data", "profile"),
    [
        ("clip", "planted", "planted"),
        ("clip", "my-pictures", "paper"),  # the toy of that name knows no word of such captions
        ("owner/name", "planted", "paper"),
        (str(Path(__file__).parent), "my-pictures", "planted"),
    ],
)
def test_the_command_takes_a_model_from_where_it_is_meant(model, data, profile):
    assert command_line.profile_of(model, data) == profile


def test_an_interrupted_command_says_that_it_can_go_on(capsys, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "plan", interrupted)
    assert command_line.main(["audit", "clip", "--out", str(tmp_path)]) == 130
    assert "run the same command to go on" in capsys.readouterr().out


def test_the_command_says_in_a_line_what_is_wrong(capsys, tmp_path):
    assert command_line.main(["audit", "clip", "--data", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("DataError: ")
    assert "has no labels.csv" in error


# From the README alone: a name of the hub, and a folder of pictures

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HUB_NAMES = {"siglip": "google/siglip-base-patch16-224", "llava": "llava-hf/llava-tiny"}
NEVER_AUDITED = "llava-hf/llava-other"
RUN = {
    "siglip": ["portraits by word"],
    "llava": ["masked words, caption alone", "portraits by word, matching"],
}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with a dual encoder and a model that writes, both tiny and in the official formats."""
    official = tmp_path_factory.mktemp("official")
    repositories.build("siglip", official)
    generative_models.build("llava", official / HUB_NAMES["llava"])
    generative_models.build("llava", official / NEVER_AUDITED)
    scratch = tmp_path_factory.mktemp("scratch")
    with instead_of_the_real_one(official, scratch) as running:
        yield running


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Ten people in a folder as the README describes it, with what each picture shows."""
    place = tmp_path_factory.mktemp("newcomer") / "people"
    place.mkdir()
    (columns,) = re.findall(r"^file,.+$", README, re.MULTILINE)
    rows = [f"{columns},caption"]
    for at in range(10):
        repositories.picture(at).save(place / f"{at}.png")
        gender, age = ("women", "men")[at % 2], ("young", "old")[at // 5]
        rows.append(f"{at}.png,p{at},{gender},{age},a picture of person number {at}")
    (place / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return place


@pytest.mark.parametrize("kind", HUB_NAMES)
def test_a_newcomer_audits_a_model_of_the_hub_with_the_command_of_the_readme(
    hub, people, kind, tmp_path
):
    (line,) = re.findall(r"^biaslib (audit .+ --out my-audit)$", README, re.MULTILINE)
    given = {"MODEL": HUB_NAMES[kind], "FOLDER": str(people), "my-audit": str(tmp_path / "out")}
    command = [given.get(word, word) for word in line.split()]
    command = [sys.executable, "-m", "biaslib", *command]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, process.stderr[-3000:]
    said = process.stdout
    assert said.index("women") < said.index("million parameters") < said.index("report.html")
    saved = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert sorted(saved) == ["provenance.json", "report.html", "report.md", "scores.csv"]
    provenance = json.loads(saved["provenance.json"])
    assert provenance["model"] == HUB_NAMES[kind]
    assert hub.commit(HUB_NAMES[kind]) in provenance["revision"]
    assert provenance["parts run"] == RUN[kind]
    assert "of 5 swapped pairs" in " ".join(provenance["checks of grounding"])
    scores = pandas.read_csv(tmp_path / "out" / "scores.csv", dtype={"kind": str})
    assert set(scores["model"]) == {HUB_NAMES[kind]}
    assert set(scores.loc[scores["study"] == "hamidieh2023", "level"]) == {"gender", "age"}
    assert HUB_NAMES[kind] in saved["report.html"]
    assert "| gender | women | 5 | 5 |" in saved["report.md"]
    asked = len(hub.requests)
    assert study.plan(HUB_NAMES[kind], "paper", "cpu", data=people, speed=1e9).download == 0
    assert len(hub.requests) == asked


def test_a_plan_for_a_name_of_the_hub_asks_for_its_settings_alone(hub, people):
    before = len(hub.requests)
    planned = study.plan(NEVER_AUDITED, "paper", "cpu", data=people, speed=1e9)
    files = [path.rpartition("/")[2] for _, path, _ in hub.requests[before:] if "/resolve/" in path]
    assert set(files) == {"config.json"}
    assert planned.parts["part"].tolist() == [_counting.CHECK, *RUN["llava"]]
    rows = planned.parts.set_index("part")
    assert rows.loc[_counting.CHECK, "pairs"] == 10 * 2
    assert rows.loc[RUN["llava"][1], "pairs"] % 10 == 0
    assert planned.download > 0


# Two models


def test_a_model_beside_itself_does_not_differ(of_clip, store):
    found = study.compare(of_clip, of_clip, store)
    assert (found["value"] == 0).all()
    assert (found["p_holm"] == 1).all()


def test_two_models_differ_by_the_difference_of_their_words(of_clip, of_nothing, store):
    found = study.compare(of_clip, of_nothing, store).set_index("measured")
    name = study.LISTS[5][0]
    row = found.loc[f"gender, women: {name}"]
    tables = [each.asked[each.asked["level"] == "gender"] for each in (of_clip, of_nothing)]
    values = [each.set_index("test").loc[name, "value"] for each in tables]
    assert [row["first"], row["second"]] == pytest.approx(values)
    assert row["value"] == pytest.approx(values[0] - values[1])
    assert row["low"] < row["value"] < row["high"] < 0
    assert row["p_holm"] < 0.05
    vlbs = found.loc["vlbs, captions by cosine"]
    assert vlbs["value"] == pytest.approx(vlbs["first"] - vlbs["second"])


def test_other_stimuli_are_not_compared(of_clip):
    other = dataclasses.replace(of_clip, profile="paper")
    with pytest.raises(ValueError, match="other stimuli"):
        study.compare(of_clip, other)


# What is handed over


def test_files_hold_the_scores_and_what_they_were_made_of(of_clip, tmp_path):
    saved = plots.Downloads(of_clip).save(tmp_path / "audit")
    names = ["scores.csv", "provenance.json", "report.md", "report.html"]
    assert [path.name for path in saved] == names
    scores, provenance, written, page = saved
    assert written.read_text(encoding="utf-8") == plots.write_up(of_clip)
    again = pandas.read_csv(scores, dtype={"revision": str, "kind": str})
    pandas.testing.assert_frame_equal(again, of_clip.scores, check_dtype=False)
    said = json.loads(provenance.read_text())
    assert said["revision"] == of_clip.own.model.revision
    assert said["parts not run"] == NOT_OF_CLIP
    assert said["questions asked"] == len(of_clip.asked)
    assert runtime.source_hash() in said["biaslib"]
    html = page.read_text(encoding="utf-8")
    assert "://" not in re.sub(r"data:image/png;base64,[^\"]+", "", html)
    assert "<script" not in html


def test_links_hold_the_files(of_clip):
    page = plots.Downloads(of_clip)._repr_html_()
    held = re.findall(r'download="(.+?)" href="data:[\w/]+;base64,(.+?)"', page)
    files = {name: base64.b64decode(text) for name, text in held}
    scores = gzip.decompress(files["scores.csv.gz"]).decode()
    assert scores == of_clip.scores.to_csv(index=False)
    assert json.loads(files["provenance.json"])["model"] == "clip-dose3-seed0"
    assert len(page) < 1_000_000


def markdown_rows(text, heading):
    """Return the table under a heading as a data frame of texts."""
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ") for line in part.splitlines() if line.startswith("|")]
    kept = "\n".join(re.sub(r" \| ", "\t", line) for n, line in enumerate(lines) if n != 1)
    return pandas.read_csv(StringIO(kept), sep="\t", dtype=str, keep_default_na=False)


def test_intervals_stand_in_the_column_of_intervals_and_counts_are_whole(of_clip):
    rows = markdown_rows(plots.write_up(of_clip), "Results").set_index("measured")
    vlbs = of_clip.scores.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
    row = rows.loc["overall: vlbs"]
    assert row["value"] == f"{vlbs['value']:.2f}"
    assert row["95% interval"] == f"{vlbs['low']:.2f} to {vlbs['high']:.2f}"
    assert row["n"] == f"{vlbs['n']:.0f} images"
    counts = rows[rows["95% interval"] == "none: a count"]
    assert len(counts) > 4
    assert counts["value"].str.fullmatch(r"[\d,]+").all()


def test_every_claim_is_in_the_report_and_no_maximum(of_clip):
    text = plots.write_up(of_clip)
    assert len(markdown_rows(text, "What is claimed after the correction")) == len(of_clip.claims)
    assert not re.search(r"\b(largest|maximum|highest|strongest)\b", text)
    assert "must not be quoted as findings" in text
    assert all(reason in text for reason in NOT_OF_CLIP.values())


def test_claims_are_counted_by_study(of_clip):
    told = dict(each.split(": ") for each in plots.claim_counts(of_clip).split("; "))
    assert list(told) == ["Study 3", "Study 4"]
    counts = pandas.DataFrame([each.split(" of ") for each in told.values()]).astype(int)
    assert counts.sum().tolist() == [len(of_clip.claims), len(of_clip.asked)]
    of_portraits = of_clip.asked[of_clip.asked["study"] == "hamidieh2023"]
    claimed = (of_portraits["p_holm"] < 0.05).sum()
    assert told["Study 3"] == f"{claimed} of {len(of_portraits)}"
    assert len(plots.claim_table(of_clip)) == len(of_clip.claims) > 0


def test_a_report_without_claims_does_not_say_that_nothing_is_there(of_nothing):
    text = " ".join(plots.write_up(of_nothing).split())
    n = len(of_nothing.asked)
    assert f"Nothing: the null was rejected in none of {n} questions. That does not show" in text


def test_the_report_asks_a_person_for_what_only_they_can_say(of_clip):
    asked = [text for kind, text in plots.blocks(of_clip) if kind == "ask"]
    assert "Whether this matters for the use above." in asked
    assert re.findall(r"^\[(.+)\]$", plots.write_up(of_clip), re.M) == asked


def test_the_figure_shows_the_same_questions_whatever_they_gave(of_clip, of_nothing):
    one, other = (plots.forest_table(each) for each in (of_clip, of_nothing))
    assert one["row"].tolist() == other["row"].tolist()
    assert one["row"].tolist()[:7] == [name for name, *_ in study.LISTS]
    assert one["null_low"].notna().all()


# Exercises

RIGHT = [
    lambda v, low, high: f"With these words {v:.2f} was measured (95% {low:.2f} to {high:.2f}).",
    lambda v, low, high: f"On FairFace the difference is {v:.2f}, between {low:.2f} and {high:.2f}",
    lambda v, low, high: f"{v:.2f} [{low:.2f}; {high:.2f}]; this does not prove an absence",
    lambda v, low, high: f"measured: {v:+.2f} ({low:.2f}-{high:.2f})",
    lambda v, low, high: f"measured: {v:.2f} ({low:.2f} to {high:.2f})".replace("-", "−"),
    *(
        lambda v, low, high, more=more: f"{v:.2f} ({low:.2f} to {high:.2f}) was measured; {more}"
        for more in (
            "this does not show that the model is unbiased",
            "that is no verdict on its fairness",
            "which proves nothing",
            "a fairly small difference",
            "the neutral captions are the paper's",
            "women's portraits were treated as one group",
            "words are treated as the units",
            "both lists were treated as a single set",
            "pictures that do not open were treated as missing",
            "the difference is in favour of women's portraits",
            "pictures were passed through the encoder once",
            "two images failed to open",
            "the weights are those of the fine-tuned model, on the clean captions",
            "this does not show that the model favours men",
        )
    ),
]
VERDICTS = {
    "The model is neutral": "is neutral",
    "it treats women and men equally": "treats",
    "There is no difference between women and men": "no difference",
    "it thinks women are nurses": "thinks",
    "it hates women": "hates",
    "it is misogynistic": "misogynistic",
    "it is bias-free": "bias-free",
    "it is objective and stereotype-free": "is objective",
    "it is stereotype-free": "stereotype-free",
    "it treats them fairly": "treats",
    "this does not mean much, and the model is sexist": "sexist",
    "the model is not biased": "biased",
    "this model passed the audit and can be deployed": "passed",
    "it can be deployed": "deployed",
    "it failed the audit": "failed",
    "it is approved for use": "approved",
    "it is ready for the shop": "ready",
    "this shows that the model favours men": "favours",
    "men are favored": "favored",
    "it disfavours women": "disfavours",
    "it prefers men": "prefers",
    "clean": "clean",
    "the model is spotless": "spotless",
    "all is fine": "fine",
    "no problems": "no problems",
    "women were treated as inferior": "treated",
    "women are treated as second to men": "treated",
    "groups are treated alike": "treated",
}
WRONG = [
    lambda v, low, high: f"The model is racist: {v:.2f} ({low:.2f} to {high:.2f}).",
    lambda v, low, high: f"The model is unbiased: {v:.2f} ({low:.2f} to {high:.2f}).",
    lambda v, low, high: f"This proves that it is fair: {v:.2f} ({low:.2f} to {high:.2f}).",
    lambda v, low, high: f"{v:.2f}",
    lambda v, low, high: "0.12 (-0.30 to 0.54)",
    lambda v, low, high: f"measured: {v:.6f} ({low:.6f} to {high:.6f})",
    lambda *each: "measured: " + ", ".join(str(number) for number in each),
    lambda v, low, high: f"measured: {v:.2f} ({high:.2f} to {low:.2f})",
    lambda v, low, high: f"measured: {low:.2f} ({v:.2f} to {high:.2f})",
    None,
]


@pytest.mark.parametrize("sentence", RIGHT)
def test_readings_that_say_what_was_measured_pass(sentence):
    assert plots.check_reading(sentence).passed


@pytest.mark.parametrize("sentence", WRONG)
def test_readings_with_a_verdict_or_without_an_interval_do_not(sentence):
    assert not plots.check_reading(sentence).passed


@pytest.mark.parametrize(("verdict", "named"), VERDICTS.items())
def test_a_verdict_on_the_model_is_named(verdict, named):
    found = plots.check_reading(lambda v, low, high: f"{v:.2f} ({low:.2f}, {high:.2f}); {verdict}.")
    assert repr(found).startswith(f"Not yet: '{named}' says what the model is")


@pytest.mark.parametrize("answer", [0, 1, 13, repositories.SIDE, None])
def test_counts_by_chance(answer):
    assert plots.check_count(13 * 0.05).passed
    assert not plots.check_count(answer).passed


@pytest.mark.parametrize("answer", [0, 1, 0.25, None])
def test_who_does_not_look_is_right_in_half(answer):
    assert plots.check_swapped(0.5).passed
    assert not plots.check_swapped(answer).passed


def shared_scores(rng, people=20, words=25):
    """Scores of two lists of words that go opposite ways with something of each person's own."""
    own = rng.standard_normal(people)
    noise = 0.5 * rng.standard_normal((2, words, people))
    return own + noise[0], -own + noise[1]


def test_the_contrast_of_portraits_is_the_difference_of_mean_c_asc():
    rng = np.random.default_rng(0)
    scores, units = rng.standard_normal((12, 30)), np.repeat(np.arange(10), 3)
    members = units < 4
    found = _nulls.portrait_contrast(scores[:5], scores[5:], members, units, 0)
    each = caption_association.c_asc(scores, members[:, None])[:, 0]
    assert found["value"] == pytest.approx(each[:5].mean() - each[5:].mean())
    assert (found["n"], found["n_units"]) == (12, 10)


def test_labels_drawn_at_random_are_no_finding_however_the_words_go_together():
    rng = np.random.default_rng(1)
    units, rejected = np.arange(20), {"words": 0, "both": 0}
    for _ in range(400):
        first, second = shared_scores(rng)
        members = rng.permutation(units) < 8
        found = _nulls.portrait_contrast(first, second, members, units, 0)
        each = caption_association.c_asc(np.vstack([first, second]), members[:, None])[:, 0]
        by_words = _nulls.contrast(each[: len(first)], each[len(first) :], 0)
        rejected["words"] += by_words["p_value"] < 0.05
        rejected["both"] += found["p_value"] < 0.05
    assert rejected["words"] > 200  # what dealing out words alone would claim
    assert rejected["both"] <= 30  # 20 expected; 30 has a probability of 1%


def test_the_interval_of_a_contrast_draws_people_too():
    rng = np.random.default_rng(2)
    first, second = shared_scores(rng)
    members = np.arange(20) < 8
    found = _nulls.portrait_contrast(first, second, members, np.arange(20), 2_000)
    apart = [each / each.std(axis=1, ddof=1, keepdims=True) for each in (first, second)]
    of_people = apart[0].mean(0) - apart[1].mean(0)
    sides = of_people[members], of_people[~members]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in sides))
    assert 1 < (found["high"] - found["low"]) / (2 * 1.96 * error) < 1.4  # few people
