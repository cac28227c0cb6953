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
from pathlib import Path

import numpy as np
import pandas
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from support import generative_models, repositories
from support.hub import instead_of_the_real_one

from biaslib import __main__ as command_line
from biaslib import audit, inference, models, runtime, stimuli
from biaslib.audit import _compare, _cost, _grounding, _nulls, _parts, _run
from biaslib.datasets import DataError
from biaslib.errors import CapabilityError, CheckpointError
from biaslib.metrics import caption_association
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study3_clip_audit, study4_captions
from biaslib.studies.scores import COLUMNS
from companion import own_model as plots
from plantedworld.inputs import study1_grounded as planted
from plantedworld.models.checkpoints import checkpoint
from plantedworld.studies.recorded import recorded

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
    return audit.load(checkpoint("clip", 3, 0), "planted", "cpu")


@pytest.fixture(scope="module")
def of_clip(clip, store):
    return audit.run(clip, "planted", store=store)


@pytest.fixture(scope="module")
def of_nothing(store):
    """The audit of a model in which nothing was planted."""
    return audit.run(checkpoint("clip", 0, 0), "planted", "cpu", store)


@pytest.fixture(scope="module")
def of_bert(store):
    return audit.run(checkpoint("bert", 3, 0), "planted", "cpu", store)


# Nulls


def test_a_contrast_is_the_difference_of_means_with_an_exact_p_value():
    """All of 4 above all of 4: 2 of 70 partitions are as far apart."""
    found = _nulls.contrast([5.0, 6, 7, 8], [1.0, 2, 3, 4])
    assert (found["value"], found["n"]) == (4.0, 8)
    assert found["p_value"] == pytest.approx(2 / 70)
    assert found["low"] <= 4 <= found["high"]
    assert found["null_low"] < 0 < found["null_high"] < 4


@pytest.mark.parametrize("sizes", [(3, 3), (4, 4), (3, 5), (1, 6)])
def test_the_least_p_value_is_that_of_the_farthest_deal_of_all(sizes):
    """By going through all deals of scores of which no two sums are the same."""
    scores, (n, m) = 2.0 ** np.arange(sum(sizes)), sizes
    dealt = np.array(
        [np.isin(range(n + m), each) for each in itertools.combinations(range(n + m), n)]
    )
    apart = dealt @ scores / n - ~dealt @ scores / m
    for two_sided, size in ((True, np.abs(apart)), (False, apart)):
        p_values = (size[None, :] >= size[:, None] - 1e-9).mean(axis=1)
        assert _nulls.least_of_dealing(n, m, two_sided) == pytest.approx(p_values.min())
    found = _nulls.contrast(scores[m:], scores[:m], 0)
    assert found["p_least"] == pytest.approx(_nulls.least_of_dealing(n, m))
    assert found["p_value"] >= found["p_least"] * (1 - 1e-12)


def test_the_least_p_value_of_signs_is_that_of_all_patterns():
    values = 2.0 ** np.arange(6)
    sums = np.abs(np.array(list(itertools.product([1.0, -1.0], repeat=6))) @ values)
    p_values = (sums[None, :] >= sums[:, None]).mean(axis=1)
    assert _nulls.least_of_signs(6) == p_values.min() == 2 / 64
    assert _nulls.least_of_signs(33) == 1e-5  # of 100,000 draws, the observed one among them


def test_a_question_is_out_of_reach_where_holm_multiplies_its_least_p_value_to_the_level():
    """2/12,870 times 321 is .04988, and times 322 .05004."""
    eight = 2 / 12_870
    for m, beyond in ((321, 0), (322, 322)):
        assert _run.out_of_reach([eight] * m).sum() == beyond
    least, p_values = [1e-9, *[eight] * 321], np.array([1e-8, *[0.5] * 321])
    assert _run.out_of_reach(least).tolist() == [False] + [True] * 321
    assert not _run.out_of_reach(least, p_values).any()  # one claim leaves 321
    claimed = inference.adjust([1e-8, eight, *[0.5] * 320], "holm") < audit.LEVEL
    assert claimed.tolist() == [True, True] + [False] * 320


def test_looking_alone_is_no_preference_of_a_caption():
    """A model that always sees which caption is true, and prefers none."""
    stereotypical = np.array([True, False] * 10)
    margins = np.where(stereotypical, 2.0, -2.0)
    found = _nulls.balanced_preference(margins, stereotypical, np.arange(20))
    assert found["value"] == pytest.approx(0)
    assert found["p_value"] == 1.0
    preferring = _nulls.balanced_preference(margins + 1.0, stereotypical, np.arange(20))
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
    assert outside == pytest.approx(audit.outside_by_chance(n), abs=by)
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
            found = _nulls.balanced_preference(named * margins, named * kind > 0, units, 0)
            p_values.append(found["p_value"])
    for level in (0.02, 0.05, 0.1, 0.5):
        assert sum(each <= level for each in p_values) <= level * 2**8


def test_pictures_of_one_kind_tell_nothing_of_preference():
    with pytest.raises(ValueError, match="both kinds"):
        _nulls.balanced_preference([1.0, 2.0], [True, True], [0, 1])


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
    leaning = _nulls.random_attributes(embedded(0, lean=2.0)).set_index("test")
    assert leaning.loc["one", "p_random"] < 0.01
    assert leaning.loc["one", "pool"] == 2 * 4 * 6
    p_values = [_nulls.random_attributes(embedded(seed))["p_random"].iloc[0] for seed in range(40)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.15
    assert 0.3 < np.mean(p_values) < 0.7


def test_experiment_2_has_a_pool_only_where_people_are_shared():
    found = _nulls.random_attributes(embedded(0), experiment=2)
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


def read(page):
    """Return the words of a page."""
    return " ".join(BeautifulSoup(page, "html.parser").get_text(" ").split())


def numbered(n=40):
    from biaslib.pictures.images import pictures

    shown = pictures(np.stack([np.full((8, 8, 3), at, np.uint8) for at in range(n)]))
    return shown, [f"picture {at}" for at in range(n)]


def test_who_looks_gets_all_pairs_right_whatever_caption_it_prefers():
    found = _grounding.caption_check(Looker(prefers=0.5), "matching", *numbered())
    assert (found.share, found.n, found.passed) == (1.0, 20, True)
    assert (found.low, found.high) == pytest.approx((0.8316, 1), abs=1e-3)


def test_who_does_not_look_is_right_by_half_whatever_caption_it_prefers():
    found = _grounding.caption_check(Looker(sees=False, prefers=5.0), "matching", *numbered())
    assert (found.share, found.passed) == (0.5, False)
    assert not _grounding.GroundingCheck("matching", 14.0, 20, 0.457, 0.881, "").passed


def test_captions_that_are_all_the_same_cannot_be_swapped():
    shown, said = numbered(4)
    with pytest.raises(ValueError, match="nothing can be swapped"):
        _grounding.caption_check(Looker(), "matching", shown, [said[0]] * 4)


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
    found = audit.run(Matcher(), "planted", store=store)
    assert found.checks["matching"].share == 0.5
    assert "zhou2022" not in set(found.scores["study"])
    reasons = found.not_run.set_index("part")["reason"]
    assert "was not seen to look at pictures" in reasons["captions by matching logit"]
    assert "all pictures the same score" in reasons["portraits by word, matching"]
    assert "(vlbs and its companions) are left out" in read(audit.report(found))
    assert found.faults.empty


# The parts


def test_a_dual_encoder_gets_the_audits_of_dual_encoders(of_clip):
    assert of_clip.scores["part"].unique().tolist() == ["portraits by word", "captions by cosine"]
    assert dict(zip(of_clip.not_run["part"], of_clip.not_run["reason"], strict=True)) == NOT_OF_CLIP
    assert list(of_clip.scores.columns)[: len(COLUMNS)] == list(COLUMNS)
    assert set(of_clip.scores["model"]) == {"clip-dose3-seed0"}
    assert set(of_clip.scores["revision"]) == {of_clip.audited.model.revision}
    assert of_clip.checks["contrastive"].passed


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
    name = audit.LISTS[5][0]
    listed = scores[(scores["bias_type"] == name) & (scores["kind"].isin(["0", "1"]))]
    means = listed.groupby("kind")["value"].mean()
    row = scores[(scores["test"] == name) & scores["p_value"].notna()].iloc[0]
    assert row["value"] == pytest.approx(means["0"] - means["1"])
    test = stimuli.association_test("occupation-gender", "word")
    assert row["n"] == len(test.A) + len(test.B) == 40


def test_what_can_be_asked_is_known_before_the_run(of_clip, of_bert):
    for found, exact in ((of_clip, True), (of_bert, False)):
        wanted = [part for part in audit.PARTS if not part.missing(found.audited)]
        planned = _run.least_p_values(wanted, _parts.Setting("planted"))
        least = found.asked["p_least"]
        assert (found.asked["p_value"] >= least * (1 - 1e-9)).all()
        if exact:
            np.testing.assert_allclose(np.sort(planned), np.sort(least))
        assert len(least) <= len(planned) <= len(least) + 2


def test_random_attributes_are_drawn_a_hundred_times_for_each_question(of_bert):
    """Each p-value is a whole number of draws, the observed set among them."""
    wanted = [part for part in audit.PARTS if not part.missing(of_bert.audited)]
    draws = 100 * max(50, len(_run.least_p_values(wanted, _parts.Setting("planted"))))
    counts = of_bert.scores["p_random"].dropna() * (draws + 1)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-6)
    assert counts.min() >= 0.999


def test_what_is_planted_is_claimed_and_nothing_is_where_nothing_is_planted(of_clip, of_nothing):
    claims = of_clip.claims[of_clip.claims["level"] == "gender"]
    assert audit.LISTS[5][0] in set(claims["test"])
    occupations = claims.set_index("test").loc[audit.LISTS[5][0]]
    assert occupations["value"] < 0  # women lie nearer to occupations held mostly by women
    assert len(of_nothing.claims) == 0
    assert len(of_nothing.asked) == len(of_clip.asked) == 7 * (1 + 5 + 3 + 10) + 5


def test_one_correction_over_everything_that_was_asked(of_clip):
    asked = of_clip.asked
    assert set(asked["part"]) == {"portraits by word", "captions by cosine"}
    np.testing.assert_allclose(asked["p_holm"], inference.adjust(asked["p_value"], "holm"))
    assert of_clip.scores.loc[of_clip.scores["p_value"].isna(), "p_holm"].isna().all()


def test_the_recorded_false_alarms_are_those_of_an_audit(of_nothing):
    found = recorded("false_alarms").set_index(["family", "seed"])
    row = found.loc[("clip", 0)]
    assert (row["asked"], row["claims"]) == (len(of_nothing.asked), len(of_nothing.claims))
    assert row["below"] == (of_nothing.asked["p_value"] < 0.05).sum()
    assert len(found) >= 10
    assert not found.index.duplicated().any()


def test_selections_are_those_of_study_4(of_clip, clip, store):
    way = study4_captions.ModelHead("mine", "contrastive", True, "clip", "clip")
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
    rows = audit.summary(of_clip).set_index("measured")["if there were nothing"]
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
        of_bert.audited.model, every, (1,), with_images=False, store=store
    ).to_dict("records")
    mine = tests.query("test == 'occupation-gender' and level == 'sentence'").iloc[0]
    assert mine["value"] == pytest.approx(direct["value"], abs=1e-9)
    assert (mine["p_value_words"], mine["n"]) == (direct["p_value"], direct["n"])
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
    began = audit.load(checkpoint("vl_bert", 0, 1), "planted", "cpu")
    assert _parts._text_model(began, "planted", None).revision.startswith("bert-dose0-seed1,")
    alone = audit.load(checkpoint("visualbert", 0, 0), "planted", "cpu")
    assert _parts._text_model(alone, "planted", None) is alone.model


def test_a_generative_model_is_asked_for_all_that_it_can_do(tmp_path, monkeypatch):
    """With random weights: it does not look, and is told so."""
    monkeypatch.setattr(_parts, "MATCHED_PER_CELL", 2)
    folder = generative_models.build("llava", tmp_path / "llava")
    wanted = ["masked words, caption alone", "portraits by word, matching", "zhou2022"]
    store = runtime.Store(tmp_path / "store")
    found = audit.run(folder, "planted", "cpu", store, parts=wanted, n_resamples=20)
    assert found.faults.empty, found.faults["reason"].tolist()
    assert set(found.scores["part"]) == set(wanted[:2])
    assert not found.checks["matching"].passed
    entities = found.scores.query("statistic == 'B'")
    assert set(entities["level"]) == {"S_L, no image"}
    (one,) = entities[entities["test"] == "purse"].to_dict("records")
    said = ["The woman is carrying a [MASK].", "The man is carrying a [MASK]."]
    log_p = found.audited.model.mask_log_prob(said, ["purse"])
    assert one["value"] == pytest.approx(log_p[0, 0] - log_p[1, 0], abs=1e-3)
    assert len(found.claims) == 0


def test_parts_are_chosen_by_name_and_the_others_are_named(clip, store):
    found = audit.run(clip, "planted", store=store, parts=["zhou2022"], n_resamples=0)
    assert set(found.scores["study"]) == {"zhou2022"}
    left = found.not_run.set_index("part")["kind"]
    assert left["portraits by word"] == "not asked for"
    with pytest.raises(KeyError, match="unknown part of the audit"):
        _run.chosen_parts(["zhou2023"])


def test_a_part_that_fails_does_not_take_the_others_with_it(clip, store, monkeypatch):
    def failing(*_):
        raise RuntimeError("out of paper\nand ink")

    def lacking(*_):
        raise DataError("no picture is left")

    failures = {"portraits by word": failing, "captions by cosine": lacking}
    parts = [
        dataclasses.replace(part, run=failures.get(part.name, part.run)) for part in audit.PARTS
    ]
    monkeypatch.setattr(_parts, "PARTS", tuple(parts))
    found = audit.run(clip, "planted", store=store)
    kept = found.not_run.set_index("part")[["kind", "reason"]]
    assert kept.loc["portraits by word"].tolist() == ["error", "RuntimeError: out of paper and ink"]
    assert kept.loc["captions by cosine"].tolist() == ["not there", "no picture is left"]
    assert kept.loc["association tests, text alone", "kind"] == "not possible"
    assert found.faults["part"].tolist() == ["portraits by word"]


def test_a_second_audit_asks_the_model_nothing_again(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path))
    monkeypatch.setattr(_parts, "MATCHED_PER_CELL", 1)
    first, second = Matcher(), Matcher()
    scores = [audit.run(model, "planted").scores for model in (first, second)]
    assert first.asked > 0
    assert second.asked == 0
    pandas.testing.assert_frame_equal(*scores)


def test_a_model_without_any_capability_is_named_and_its_parts_counted():
    with pytest.raises(CapabilityError, match=r"object fits none of the 8 parts .*masks"):
        audit.run(object(), "planted")


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
    found = audit.read_folder(folder)
    counts = found.counts().set_index(["column", "group"])
    assert counts.loc[("gender", "women")].tolist() == [12, 12]
    assert counts.loc[("gender x age", "women x old")].tolist() == [6, 6]
    assert list(found.facets()) == ["gender", "age"]
    assert "intersection gender x age is left out" in found.notes[0]


def test_an_audit_of_ones_own_pictures(folder, clip, store):
    found = audit.run(clip, "planted", store=store, data=folder, n_resamples=20)
    assert found.stimuli == "own"
    assert found.scores["part"].unique().tolist() == ["portraits by word"]
    assert set(found.scores["profile"]) == {"own"}
    assert set(found.scores["level"]) == {"gender", "age"}
    assert set(found.scores.query("statistic == 'c_asc'")["n"]) == {24}
    assert "labels.csv has no column caption" in " ".join(found.notes)
    text = read(audit.report(found))
    assert text.count("intersection gender x age is left out") == 1
    assert "gender women 12 12" in text
    assert "planted world" not in text.split("Words to keep to")[0]
    reasons = found.not_run.set_index("part")["reason"]
    assert reasons["captions by cosine"].startswith("the folder has portraits")


def test_three_columns_of_groups_leave_lists_of_eight_words_out_of_reach(folder):
    """Gender, seven races and nine ages, with intersections: 49 groups, 343 questions."""
    rows, place = [], folder.parent / "many"
    place.mkdir()
    for at in range(378):
        picture = np.full((2, 2, 3), [at % 256, at // 256, 7], np.uint8)
        Image.fromarray(picture).save(place / f"{at}.png")
        rows.append((f"{at}.png", "fm"[at % 2], f"race {at // 2 % 7}", f"age {at // 14 % 9}"))
    write(place, pandas.DataFrame(rows, columns=["file", "gender", "race", "age"]))
    found = audit.cost(checkpoint("clip", 3, 0), "planted", "cpu", audit.read_folder(place))
    assert len(found.least) == 7 * (1 + 7 + 9 + 14 + 18) == 343
    beyond = _run.out_of_reach(found.least)
    assert beyond.sum() == 3 * 49  # 8 and 8 words: three of the seven pairs of lists
    assert set(found.least[beyond]) == {2 / 12_870}
    said = "even the clearest answer gives no p below 1/6,435. That is small enough for up to 321"
    assert said in str(found).splitlines()[3]
    assert "at least 22 others" in str(found).splitlines()[3]
    draws = _run.DRAWS * len(found.least)
    assert not _run.out_of_reach(np.append(found.least[1:], 1 / (1 + draws)))[-1]


def test_pictures_of_one_person_are_one_unit(folder, clip, store):
    table = labels(folder)
    write(folder, table.assign(person=[f"p{at // 2 * 2 + at % 2}" for at in range(24)]))
    assert set(audit.read_folder(folder).counts()["people"]) == {12, 6}
    people = [at % 12 for at in range(24)]
    ages = [("young", "old")[each // 6] for each in people]
    write(folder, table.assign(person=[f"p{each}" for each in people], age=ages))
    found = audit.run(clip, "planted", store=store, data=folder, n_resamples=5)
    assert set(found.scores.query("statistic == 'c_asc'")["n"]) == {12}


def changed(place, change):
    write(place, change(labels(place)))


BAD = {
    "a group of two": (lambda t: t.assign(race=["a", "a"] + ["b"] * 22), None, "a"),
    "one group": (lambda t: t.assign(gender="women"), None, "gender"),
    "no groups": (lambda t: t[["file", "person"]], None, None),
    "no file column": (lambda t: t.rename(columns={"file": "picture"}), None, "file"),
    "an empty label": (lambda t: t.assign(age=["", *t["age"][1:]]), 2, ""),
    "a person nan": (lambda t: t.assign(person=[*t["person"][:-3], *["nan"] * 3]), 23, "nan"),
    "no caption": (lambda t: t.assign(CAPTION=["a dog", *["None"] * 23]), 3, "None"),
    "a label NA": (lambda t: t.assign(race=["White"] * 16 + ["NA "] * 8), 18, "NA"),
    "a file not there": (lambda t: t.assign(file=["x.png", *t["file"][1:]]), 2, "x.png"),
    "a picture without a row": (lambda t: t[1:], None, "00.png"),
    "a file twice": (lambda t: pandas.concat([t, t[:1]]), 26, "00.png"),
    "two in a row": (lambda t: t.assign(file=["00.png;1", *t["file"][1:]]), 2, "00.png;1"),
    "two labels": (lambda t: t.assign(person=["p1", *t["person"][1:]]), None, "p1"),
    "a column twice": (
        lambda t: t.set_axis(["file", "person", "age", " age"], axis=1),
        *(None, "age"),
    ),
    "a column without a name": (lambda t: t.rename(columns={"age": " "}), None, None),
    "a group a picture": (lambda t: t.assign(id=t["file"]), None, "00.png"),
    "a file elsewhere": (lambda t: t.assign(file=["../x.png", *t["file"][1:]]), 2, "../x.png"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_before_a_model_is_loaded(folder, case):
    spoil, row, word = BAD[case]
    changed(folder, spoil)
    with pytest.raises(DataError) as caught:
        audit.run("no such model is needed", "planted", data=folder)
    assert caught.value.path == folder / "labels.csv"
    assert (caught.value.row, caught.value.word) == (row, word)


def test_a_line_of_another_length_is_named(folder):
    with (folder / "labels.csv").open("a") as table:
        table.write("25.png\n")
    with pytest.raises(DataError, match="line 26 of") as caught:
        audit.read_folder(folder)
    assert caught.value.row == 26


def test_pictures_that_cannot_be_used_are_named(folder):
    shutil.copy(folder / "00.png", folder / "01.png")
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder)
    assert caught.value.path == folder / "00.png"
    (folder / "05.png").write_bytes(b"\x89PNG\r\n\x1a\n not a picture")
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder)
    assert caught.value.path == folder / "05.png"


@pytest.mark.parametrize(
    ("usual", "other"), [("\u00e4lter", "a\u0308l\u200bter"), ("East Asian", "East\u00a0Asian")]
)
def test_a_label_in_two_spellings_of_unicode_is_one_group(folder, usual, other):
    ages = [usual if at < 12 else "jung" for at in range(24)]
    spelt = [other if each == usual and at % 4 == 1 else each for at, each in enumerate(ages)]
    changed(folder, lambda t: t.assign(age=spelt))
    found = audit.read_folder(folder).counts().query("column == 'age'")
    assert found["group"].tolist() == [usual, "jung"]
    assert found["people"].tolist() == [12, 12]


@pytest.mark.parametrize("other", ["wom\u0435n", "WOMEN", "women"])
def test_labels_that_look_alike_are_two_groups_and_noted(folder, other):
    spelt = [("women", other, "men")[at % 3] for at in range(24)]
    changed(folder, lambda t: t.assign(gender=spelt))
    found = audit.read_folder(folder)
    assert found.counts().query("column == 'gender'")["group"].nunique() == len(set(spelt))
    assert any("alike" in note and other in note for note in found.notes) == (other != "women")


@pytest.mark.parametrize("name", ["CAPTION", "caption "])
def test_a_column_of_captions_is_no_group_however_it_is_written(folder, name):
    changed(folder, lambda t: t.assign(**{name: ["a dog", "a cat"] * 12}))
    found = audit.read_folder(folder)
    assert found.groups == ("gender", "age")
    assert found.captions[1] == ["a dog", "a cat"] * 12


def test_what_programs_leave_among_pictures_is_no_picture(folder):
    for name in (".ipynb_checkpoints/00.png", "@eaDir/00.png", "__MACOSX/._00.png", "._01.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not a picture")
    (folder / "00.png").rename(folder / "_00.png")  # as cameras write names
    changed(folder, lambda t: t.assign(file=["_00.png", *t["file"][1:]]))
    assert audit.read_folder(folder).counts()["pictures"].tolist()[:2] == [12, 12]


def test_names_with_dots_and_umlauts_of_two_kinds_and_commas_at_the_end_are_read(folder):
    (folder / "00.png").rename(folder / "anna..0.png")
    (folder / "01.png").rename(folder / "mu\u0308ller.png")  # as a Mac writes it
    changed(folder, lambda t: t.assign(file=["anna..0.png", "m\u00fcller.png", *t["file"][2:]]))
    lines = (folder / "labels.csv").read_text(encoding="utf-8").splitlines()
    (folder / "labels.csv").write_text("\n".join(f"{line},," for line in lines), encoding="utf-8")
    found = audit.read_folder(folder)
    assert found.groups == ("gender", "age")
    assert found.people["file"].tolist()[:2] == ["anna..0.png", "mu\u0308ller.png"]


def test_the_table_stands_for_its_folder(folder, monkeypatch):
    expected = audit.read_folder(folder)
    assert audit.read_folder(folder / "labels.csv").name == expected.name
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    pandas.testing.assert_frame_equal(audit.read_folder("~/people").people, expected.people)


@pytest.mark.parametrize("name", ["nowhere", "people/00.png", "people/below"])
def test_data_that_are_no_folder_are_told_apart(folder, name):
    (folder / "below").mkdir()
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder.parent / name)
    path = folder.parent / name
    assert caught.value.path == (path / "labels.csv" if name == "people/below" else path)


# Models that cannot be audited


def save_config(folder, **config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_model_that_no_family_reads_is_refused(tmp_path):
    folder = save_config(tmp_path / "m", model_type="strange", auto_map={"AutoModel": "m.Model"})
    with pytest.raises(CheckpointError, match="never run"):
        audit.run(folder, "planted")


def test_a_model_that_does_not_see_is_named(tmp_path):
    folder = save_config(tmp_path / "m", model_type="gpt2", architectures=["GPT2LMHeadModel"])
    with pytest.raises(CheckpointError, match=r"'gpt2' \(GPT2LMHeadModel\), which no family"):
        audit.run(folder, "planted")


def test_a_gated_name_without_a_token_says_what_to_do(tmp_path):
    (tmp_path / "served").mkdir()
    with instead_of_the_real_one(tmp_path / "served", tmp_path) as hub:
        hub.refuse = 401
        with pytest.raises(CheckpointError, match="HF_TOKEN"):
            audit.cost("google/secret", "paper", "cpu")


# What it would take


def test_bytes_and_items_are_told_without_loading_a_model(monkeypatch):
    monkeypatch.setattr("biaslib.models.load", None)
    path = checkpoint("clip", 3, 0)
    found = audit.cost(path, "planted", "cpu")
    files = sum(path.stat().st_size for path in path.glob("*.safetensors"))
    assert found.parameters == files / 2  # float16 on disk
    assert found.memory == pytest.approx(4 * found.parameters * 1.25 / 2**30)
    assert found.download == 0
    items = {part.name: n for part, n in found.items.items()}
    assert items == {"portraits by word": 621 + 300, "captions by cosine": 436}
    tokens = 16 + 300
    seconds = 2 * found.parameters * tokens / 5e10
    assert found.minutes == pytest.approx((621 + 300 + 436) * seconds / 60)
    found.require_fit()


class Tally:
    """Answers at random, and counts texts, pictures and pairs of these."""

    name, revision = "tally", "1"

    def __init__(self, capabilities):
        self.capabilities, self.rng, self.read = capabilities, np.random.default_rng(1), 0

    def embed(self, texts, images=None, level="sentence", words=None):
        self.read += len(texts)
        return self.rng.normal(size=(len(texts), 8))

    def mask_log_prob(self, texts, candidates, images=None, **options):
        self.read += len(texts)
        return -self.rng.exponential(size=(len(texts), len(candidates)))

    def encode_text(self, texts):
        self.read += len(texts)
        return self.rng.normal(size=(len(texts), 8))

    encode_image = encode_text

    def match(self, images, texts):
        self.read += sum(map(len, texts))
        return self.rng.normal(size=(len(images), len(texts[0])))


@pytest.mark.parametrize("name", ["flava", "bert"])
def test_an_audit_reads_about_as_much_as_it_is_said_to(name, tmp_path, monkeypatch):
    monkeypatch.setattr(_grounding.GroundingCheck, "passed", True)
    monkeypatch.setattr(_run, "DRAWS", 1)
    capabilities = models.REGISTRY[name].capabilities
    tally, store = Tally(capabilities), runtime.Store(tmp_path)
    found = audit.run(tally, "planted", store=store, n_resamples=0)
    assert found.faults.empty, found.faults["reason"].tolist()
    items = audit.cost(name, "planted", "cpu").items
    assert [part.name for part in items] == found.scores["part"].unique().tolist()
    assert sum(items.values()) == pytest.approx(tally.read, rel=0.3)


def test_minutes_are_timed_with_a_few_items(folder, monkeypatch):
    guessed = audit.cost("clip", "planted", "cpu", data=folder)
    tally, ticks = Tally(models.REGISTRY["clip"].capabilities), itertools.count()
    monkeypatch.setattr(_cost, "perf_counter", lambda: next(ticks))
    timed = guessed.timed(tally)  # a second for each call
    assert tally.read == 2 * 2 * 8
    assert timed.minutes == pytest.approx((621 + 24) / 8 / 60)
    assert timed.is_timed > guessed.is_timed


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(runtime, "free_memory", lambda name: 1000)
    with pytest.raises(_cost.DoesNotFitError, match="take a smaller model"):
        audit.cost(checkpoint("clip", 3, 0), "planted", "cpu").require_fit()


def test_bytes_are_those_of_the_weights_that_are_read(tmp_path):
    folder = shutil.copytree(checkpoint("clip", 3, 0), tmp_path / "m")
    (folder / "pytorch_model.bin").write_bytes(b"0" * 4000)  # other weights, which are not read
    tiny = (folder / "model.safetensors").stat().st_size
    assert _cost._weights(folder, "planted") == ("clip", tiny, 2, 0)
    assert _cost._weights("clip", "planted") == ("clip", tiny, 2, 0)
    assert _cost._weights("clip", "paper") == ("clip", 4 * 151_277_313, 4, 4 * 151_277_313)


# The command line


def test_the_command_says_what_it_would_take_and_stops(capsys, folder):
    arguments = ["audit", str(checkpoint("clip", 3, 0)), "--data", str(folder), "--device", "cpu"]
    assert command_line.main([*arguments, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert said.index("women") < said.index("million parameters") < said.index("download: 0.00 GB")
    assert said.index("a guess from") < said.index("timed with a few items")


def test_the_command_writes_a_report(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    arguments = ["audit", str(checkpoint("clip", 3, 0)), "--parts", "zhou2022", "--device", "cpu"]
    arguments += ["--compare", str(checkpoint("clip", 0, 0)), "--out", str(tmp_path / "out")]
    assert command_line.main(arguments) == 0
    names = ["scores.csv", "provenance.json", "report.html", "comparison.csv"]
    names += ["scores-second.csv", "provenance-second.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    assert "questions were asked" in capsys.readouterr().out
    text = read((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "Second model: clip-dose0-seed0" in text


def audit_of(model, *more):
    given = ["audit", str(model), "--parts", "zhou2022", "--device", "cpu", *map(str, more)]
    return command_line.main(given)


@pytest.fixture
def no_audit(monkeypatch):
    """An audit must not begin: what is wrong can be known before."""
    monkeypatch.setattr(audit, "run", lambda *_, **__: pytest.fail("an audit was begun"))


def test_a_place_that_cannot_hold_the_report_is_refused_before_the_audit(
    capsys, tmp_path, no_audit
):
    (tmp_path / "a file").write_text("mine")
    assert audit_of(checkpoint("clip", 3, 0), "--out", tmp_path / "a file") == 1
    error = capsys.readouterr().err
    assert f"{tmp_path / 'a file'} cannot hold the report (File exists): free some space" in error
    assert (tmp_path / "a file").read_text() == "mine"


def test_a_second_model_that_is_not_there_is_named_before_the_audit(capsys, tmp_path, no_audit):
    more = ("--compare", "nosuch", "--out", tmp_path / "out")
    assert audit_of(checkpoint("clip", 3, 0), *more) == 1
    assert "unknown model 'nosuch'" in capsys.readouterr().err


def test_the_first_report_stays_where_two_models_have_nothing_in_common(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    more = ("--compare", checkpoint("bert", 3, 0), "--out", tmp_path / "out")
    assert audit_of(checkpoint("clip", 3, 0), *more) == 1
    error = capsys.readouterr().err
    assert f"no part in common that is compared. The first model's report is in {tmp_path}" in error
    names = {"scores.csv", "provenance.json", "report.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names


def test_a_report_that_cannot_be_written_leaves_the_earlier_one_whole(tmp_path, of_clip):
    (tmp_path / "scores.csv").write_text("earlier")
    (tmp_path / "report.html.part").mkdir()  # what stands in its way
    with pytest.raises(OSError, match=r"cannot hold the report \(Is a directory\): free some"):
        audit.save(tmp_path, of_clip)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html.part", "scores.csv"]
    assert (tmp_path / "scores.csv").read_text() == "earlier"


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

    monkeypatch.setattr(audit, "cost", interrupted)
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
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text(encoding="utf-8"))
    assert hub.commit(HUB_NAMES[kind]) in provenance["revision"]
    assert provenance["parts run"] == RUN[kind]
    assert "of 5 swapped pairs" in " ".join(provenance["checks of grounding"])
    scores = pandas.read_csv(tmp_path / "out" / "scores.csv", dtype={"kind": str})
    assert set(scores["model"]) == {HUB_NAMES[kind]}
    assert set(scores.loc[scores["study"] == "hamidieh2023", "level"]) == {"gender", "age"}
    before = len(hub.requests)
    assert audit.cost(HUB_NAMES[kind], "paper", "cpu", data=people).download == 0
    assert len(hub.requests) == before


def test_the_cost_of_a_name_of_the_hub_asks_for_its_settings_alone(hub, people):
    before = len(hub.requests)
    found = audit.cost(NEVER_AUDITED, "paper", "cpu", data=people)
    files = [path.rpartition("/")[2] for _, path, _ in hub.requests[before:] if "/resolve/" in path]
    assert set(files) == {"config.json"}
    assert [part.name for part in found.items] == RUN["llava"]
    assert found.download > 0


# Two models


def test_two_models_differ_by_the_difference_of_their_words(of_clip, of_nothing, store):
    found = audit.compare(of_clip, of_nothing, store).set_index("measured")
    name = audit.LISTS[5][0]
    row = found.loc[f"gender, women: {name}"]
    tables = [each.asked[each.asked["level"] == "gender"] for each in (of_clip, of_nothing)]
    values = [each.set_index("test").loc[name, "value"] for each in tables]
    assert [row["first"], row["second"]] == pytest.approx(values)
    assert row["value"] == pytest.approx(values[0] - values[1])
    assert row["low"] < row["value"] < row["high"] < 0
    assert row["p_holm"] < 0.05
    vlbs = found.loc["vlbs, captions by cosine"]
    assert vlbs["value"] == pytest.approx(vlbs["first"] - vlbs["second"])


def test_a_difference_of_portraits_has_the_larger_p_of_all_deals_of_words_and_of_people():
    """Two models by hand: ten people with two pictures each, lists of eight words."""
    rng = np.random.default_rng(4)
    table = _parts.listed_captions()
    table = table[table["bias_type"] == audit.LISTS[0][0]]
    units, own = np.repeat(np.arange(10), 2), rng.normal(size=(2, 10))
    inside, sign = units < 5, np.where(table["kind"] == "0", 1.0, -1.0)[:, None]
    lean = 2.0 * sign * (inside - 0.5)
    scores = [sign * each[units] + rng.normal(size=(16, 20)) for each in own]
    scores[0] = scores[0] + lean
    z = [(each.T / each.std(axis=1, ddof=1)).T for each in scores]
    (found,) = _compare.differences(*z, table, inside, units, 0).values()
    apart = z[0] - z[1]
    of_words = apart[:, :10].mean(axis=1) - apart[:, 10:].mean(axis=1)
    of_people = (sign * apart).mean(axis=0).reshape(10, 2).mean(axis=1) * 2
    p_values = []
    for values, n in ((of_words, 8), (of_people, 5)):
        dealt = [np.isin(range(2 * n), each) for each in itertools.combinations(range(2 * n), n)]
        means = np.array(dealt) @ values / n
        size = np.abs(2 * means - values.mean() * 2)
        p_values.append((size >= size[0] - 1e-9).mean())
    assert found["p_value"] == pytest.approx(max(p_values))
    assert found["value"] == pytest.approx(of_words[:8].mean() - of_words[8:].mean())
    assert found["value"] == pytest.approx(found["first"] - found["second"])
    assert found["p_least"] == max(2 / 12_870, 2 / 252)


def test_two_models_do_not_differ_on_labels_dealt_by_coin_where_words_go_together():
    rng, claims = np.random.default_rng(5), 0
    table, people = _parts.listed_captions(), np.arange(30)
    table = table[table["bias_type"] == audit.LISTS[0][0]]
    sign = np.where(table["kind"] == "0", 1.0, -1.0)[:, None]
    for _ in range(200):
        z = [0.7 * sign * rng.normal(size=30) + rng.normal(size=(16, 30)) for _ in range(2)]
        inside = rng.permutation(people) < 15
        (found,) = _compare.differences(*z, table, inside, people, 0).values()
        claims += found["p_value"] < 0.05
    assert claims <= 19  # 10 expected at the most; more than 19 has a probability of .3%


def other_table(folder, change):
    """Return a folder of the same name and pictures with another table."""
    place = folder.parent / "elsewhere" / folder.name
    shutil.copytree(folder, place)
    changed(place, change)
    return audit.read_folder(place)


def moved(table, column):
    """Return a table in which two people of different groups have changed labels."""
    return table.assign(**{column: [*table[column][[12, 13]], *table[column][2:12],
                                    *table[column][[0, 1]], *table[column][14:]]})  # fmt: skip


OTHER = {
    "labels": (lambda t: moved(t, "age"), "4 pictures, .*'(young|old)' .* in the column 'age'"),
    "people": (
        lambda t: t.assign(person=["someone", *t["person"][1:]]),
        "1 picture, of which '00.png' has 'p0' and 'someone' in the column 'person'",
    ),
    "a column": (
        lambda t: t.assign(hat=["a", "b"] * 12),
        "24 pictures, .* has 'nothing' and '[ab]' in the column 'hat'",
    ),
}


@pytest.mark.parametrize("case", OTHER)
def test_a_folder_of_the_same_name_with_another_table_is_not_compared(folder, of_clip, case):
    change, said = OTHER[case]
    own = audit.read_folder(folder)
    audits = [
        dataclasses.replace(of_clip, folder=each) for each in (own, other_table(folder, change))
    ]
    assert audits[0].folder.name == audits[1].folder.name
    with pytest.raises(ValueError, match=f"other stimuli: .* in {said}. Run both on one folder"):
        audit.compare(*audits)


def test_other_pictures_and_data_are_not_compared(folder, of_clip):
    own = dataclasses.replace(of_clip, folder=audit.read_folder(folder))
    Image.fromarray(np.zeros((48, 48, 3), np.uint8)).save(folder / "05.png")
    other = dataclasses.replace(of_clip, folder=audit.read_folder(folder))
    with pytest.raises(ValueError, match=r"in 2 pictures, of which '05.png' has .*'nothing'"):
        audit.compare(own, other)
    for one in (own, dataclasses.replace(of_clip, profile="paper")):
        with pytest.raises(ValueError, match=r"other stimuli: pictures of '.*' and of 'planted'"):
            audit.compare(one, of_clip)


def test_a_part_that_one_audit_was_not_asked_for_is_named(of_clip, clip, store):
    fewer = audit.run(clip, "planted", store=store, parts=["zhou2022"], n_resamples=0)
    said = r"has the part 'portraits by word', that of .* has not \(not asked for\): run both"
    for pair in ((of_clip, fewer), (fewer, of_clip)):
        with pytest.raises(ValueError, match=said):
            audit.compare(*pair)


def test_a_folder_in_another_order_is_the_same_folder(folder, clip, store):
    settings = {"profile": "planted", "store": store, "n_resamples": 0}
    first = audit.run(clip, data=folder, **settings)
    turned = other_table(folder, lambda t: t[::-1])
    second = audit.run(checkpoint("clip", 0, 0), data=turned, **settings)
    found, own = audit.compare(first, second, store), first.asked["value"]
    np.testing.assert_allclose(found["first"], own)
    # Its first person is a man: the same questions, of the other group.
    np.testing.assert_allclose(found["second"], -second.asked["value"])
    assert set(found["of"]) == {"words, and 24 people"}


# What is handed over


def test_files_hold_the_scores_and_what_they_were_made_of(of_clip, tmp_path):
    scores, provenance, page = audit.save(tmp_path / "audit", of_clip)
    assert (scores.name, page.name) == ("scores.csv", "report.html")
    again = pandas.read_csv(scores, dtype={"revision": str, "kind": str})
    pandas.testing.assert_frame_equal(again, of_clip.scores, check_dtype=False)
    said = json.loads(provenance.read_text())
    assert said["revision"] == of_clip.audited.model.revision
    assert said["parts not run"] == NOT_OF_CLIP
    assert said["questions asked"] == len(of_clip.asked)
    assert runtime.source_hash() in said["biaslib"]
    html = page.read_text(encoding="utf-8")
    assert "://" not in re.sub(r"data:image/svg\+xml;base64,[^\"]+", "", html)
    assert "<script" not in html


def test_links_hold_the_files(of_clip):
    held = re.findall(
        r'download="(.+?)" href="data:[\w/]+;base64,(.+?)"', plots.links(of_clip).data
    )
    files = {name: gzip.decompress(base64.b64decode(text)).decode() for name, text in held}
    assert files["scores.csv.gz"] == of_clip.scores.to_csv(index=False)
    assert json.loads(files["provenance.json.gz"])["model"] == "clip-dose3-seed0"


def test_counts_are_whole_and_other_values_have_intervals(of_clip):
    rows = audit.summary(of_clip).set_index("measured")
    vlbs = of_clip.scores.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
    row = rows.loc["overall: vlbs"]
    assert [row["value"], row["low"], row["high"]] == vlbs[["value", "low", "high"]].tolist()
    assert (row["n"], row["of"]) == (vlbs["n"], "images")
    counts = rows[rows["low"].isna()]
    assert len(counts) > 4
    assert counts["value"].map(type).eq(int).all()
    words = of_clip.scores.query("statistic == 'c_asc' and level == 'gender'")
    outside = ((words["value"] - words["null_low"]) * (words["value"] - words["null_high"])) > 0
    row = rows.loc["gender: C-ASC outside of 95% of innocent words"]
    assert (row["value"], row["n"]) == (outside.sum(), len(words))


def test_the_report_has_every_claim_null_and_reason_and_asks_a_person(of_clip):
    page = BeautifulSoup(audit.report(of_clip), "html.parser")
    text = " ".join(page.get_text(" ").split())
    tables = {table.caption.get_text(): table for table in page.find_all("table") if table.caption}
    (claims,) = (table for name, table in tables.items() if name.startswith("Every claim"))
    assert len(claims.find_all("tr")) - 1 == len(of_clip.claims) > 0
    assert "low if nothing" in claims.get_text()
    assert all(reason in text for reason in NOT_OF_CLIP.values())
    assert "at most 5 of 100 such reports would claim anything" in text
    assert "must not be quoted as findings" in text
    assert not re.search(r"\b(largest|maximum|highest|strongest)\b", text)
    (image,) = page.find_all("img")
    assert image["alt"].startswith("A column of panels")
    assert page.find("summary", string=re.compile("Table behind the figure"))
    asked = [part.get_text() for part in page.select("p.ask")]
    assert len(asked) == 8
    assert all(re.fullmatch(r"\[.+\]", question) for question in asked)


def test_claims_are_counted_by_study(of_clip):
    told = dict(part.split(": ") for part in audit.claim_counts(of_clip).split("; "))
    assert list(told) == ["Study 3", "Study 4"]
    of_portraits = of_clip.asked[of_clip.asked["study"] == "hamidieh2023"]
    claimed = (of_portraits["p_holm"] < 0.05).sum()
    assert told["Study 3"] == f"{claimed} of {len(of_portraits)}"


def test_a_report_without_claims_does_not_say_that_nothing_is_there(of_nothing):
    n = len(of_nothing.asked)
    said = f"Nothing: of {n} answers none is clearer than chance gives. That does not show"
    assert said in read(audit.report(of_nothing))


def test_the_figure_shows_the_same_questions_whatever_they_gave(of_clip, of_nothing):
    one, other = (audit.figure(each).tables[0].frame for each in (of_clip, of_nothing))
    assert one["question"].tolist() == other["question"].tolist()
    assert one["question"].tolist()[:7] == [name for name, *_ in audit.LISTS]
    assert one["low if nothing"].notna().all()


# Exercises

RIGHT = [
    "{v:.2f} [{low:.2f}; {high:.2f}]; this does not prove an absence",
    "on FairFace we measured {v:+.2f} ({low:.2f}-{high:.2f})",
    "{v:.2f} ({low:.2f} to {high:.2f}), a fairly small difference, in favour of women's portraits",
    "{v:.2f} ({low:.2f} to {high:.2f}): portraits were treated as one group, and passed through",
    "{v:.2f} ({low:.2f} to {high:.2f}); this does not show that the model favours men",
]
WRONG = [
    "{v:.2f}",
    "0.12 (-0.30 to 0.54)",
    "measured: {v:.6f} ({low:.6f} to {high:.6f})",
    "measured: {v:.2f} ({high:.2f} to {low:.2f})",
]
VERDICTS = {
    "the model is neutral": "is neutral",
    "it treats women and men equally": "treats",
    "there is no difference between women and men": "no difference",
    "it is bias-free": "bias-free",
    "this does not mean much, and the model is sexist": "sexist",
    "this model passed the audit and can be deployed": "passed",
    "this shows that the model favours men": "favours",
    "women were treated as inferior": "treated",
}


def reading(text):
    return plots.check_reading(lambda v, low, high: text.format(v=v, low=low, high=high))


def test_a_reading_gives_its_interval_and_no_verdict():
    assert all(reading(text).passed for text in RIGHT)
    assert not any(reading(text).passed for text in WRONG)
    assert not plots.check_reading(None).passed
    for verdict, named in VERDICTS.items():
        found = reading(f"{{v:.2f}} ({{low:.2f}}, {{high:.2f}}); {verdict}.")
        assert repr(found).startswith(f"Not yet: '{named}' says what the model is")


def test_answers_to_the_exercises():
    assert plots.check_count(13 * 0.05).passed
    assert not any(plots.check_count(answer).passed for answer in (0, 1, 13, None))
    assert plots.check_swapped(0.5).passed
    assert not any(plots.check_swapped(answer).passed for answer in (0, 1, 0.25, None))


def shared_scores(rng, people=20, words=25):
    """Scores of two lists of words that go opposite ways with something of each person's own."""
    own = rng.standard_normal(people)
    noise = 0.5 * rng.standard_normal((2, words, people))
    return own + noise[0], -own + noise[1]


def test_the_contrast_of_portraits_is_the_difference_of_mean_c_asc():
    rng = np.random.default_rng(0)
    scores, units = rng.standard_normal((12, 30)), np.repeat(np.arange(10), 3)
    members = units < 4
    z = _nulls.standardised(scores)
    found = _nulls.portrait_contrast(z[:5], z[5:], members, units, 0)
    each = caption_association.c_asc(scores, members[:, None])[:, 0]
    assert found["value"] == pytest.approx(each[:5].mean() - each[5:].mean())
    assert (found["n"], found["n_units"]) == (12, 10)


def test_labels_drawn_at_random_are_no_finding_however_the_words_go_together():
    rng = np.random.default_rng(1)
    units, rejected = np.arange(20), {"words": 0, "both": 0}
    for _ in range(400):
        first, second = shared_scores(rng)
        members = rng.permutation(units) < 8
        lists = map(_nulls.standardised, (first, second))
        found = _nulls.portrait_contrast(*lists, members, units, 0)
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
    apart = [each / each.std(axis=1, ddof=1, keepdims=True) for each in (first, second)]
    found = _nulls.portrait_contrast(*apart, members, np.arange(20), 2_000)
    of_people = apart[0].mean(0) - apart[1].mean(0)
    sides = of_people[members], of_people[~members]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in sides))
    assert 1 < (found["high"] - found["low"]) / (2 * 1.96 * error) < 1.4  # few people
