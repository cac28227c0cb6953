"""The audit of one's own model: numbers beside their nulls, what is refused, what is given."""

import base64
import contextlib
import dataclasses
import functools
import gzip
import io
import itertools
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import matplotlib
import numpy as np
import pandas
import pytest
import torch
import transformers
from bs4 import BeautifulSoup
from PIL import Image
from support import generative_models, repositories
from support.hub import instead_of_the_real_one

from biaslib import __main__ as command_line
from biaslib import audit, inference, models, runtime, stimuli
from biaslib.audit import _compare, _cost, _grounding, _parts, _report, _run, _tables, nulls
from biaslib.audit._folder import OwnFolder
from biaslib.datasets import DataError
from biaslib.metrics import caption_association
from biaslib.models.untrained import untrained
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked, study3_clip_audit, study4_captions
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
    found = nulls.contrast([5.0, 6, 7, 8], [1.0, 2, 3, 4])
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
        assert nulls.least_of_dealing(n, m, two_sided) == pytest.approx(p_values.min())
    found = nulls.contrast(scores[m:], scores[:m], 0)
    assert found["p_least"] == pytest.approx(nulls.least_of_dealing(n, m))
    assert found["p_value"] >= found["p_least"] * (1 - 1e-12)


def test_the_least_p_value_of_signs_is_that_of_all_patterns():
    values = 2.0 ** np.arange(6)
    sums = np.abs(np.array(list(itertools.product([1.0, -1.0], repeat=6))) @ values)
    p_values = (sums[None, :] >= sums[:, None]).mean(axis=1)
    assert nulls.least_of_signs(6) == p_values.min() == 2 / 64
    assert nulls.least_of_signs(33) == 1e-5  # of 100,000 draws, the observed one among them


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
    found = nulls.balanced_preference(margins, stereotypical, np.arange(20))
    assert found["value"] == pytest.approx(0)
    assert found["p_value"] == 1.0
    preferring = nulls.balanced_preference(margins + 1.0, stereotypical, np.arange(20))
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
    assert outside == pytest.approx(nulls.outside_by_chance(n), abs=by)
    assert nulls.reference_range(range(n))["null_n"] == n


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
            found = nulls.balanced_preference(named * margins, named * kind > 0, units, 0)
            p_values.append(found["p_value"])
    for level in (0.02, 0.05, 0.1, 0.5):
        assert sum(each <= level for each in p_values) <= level * 2**8


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
    leaning = nulls.random_attributes(embedded(0, lean=2.0)).set_index("test")
    assert leaning.loc["one", "p_random"] < 0.01
    assert leaning.loc["one", "pool"] == 2 * 4 * 6
    p_values = [nulls.random_attributes(embedded(seed))["p_random"].iloc[0] for seed in range(40)]
    assert np.mean(np.array(p_values) < 0.05) <= 0.15
    assert 0.3 < np.mean(p_values) < 0.7


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


COMPARED = pandas.DataFrame(
    {"p_value": [0.01, 0.02], "p_least": 1e-9, "p_holm": [0.0496, 0.0504]}, index=[0, 1]
)


class Matcher:
    """Matches captions by their length, and counts how often it is asked."""

    name, revision, notes = "matcher", "1", ("two words have one vector",)
    capabilities = frozenset({"match images and texts", "fill masks with images"})

    def __init__(self):
        self.asked = 0

    def match(self, images, texts):
        self.asked += 1
        return np.array([[len(text) for text in row] for row in texts], dtype=float)


@pytest.mark.parametrize("broken", ["word_check", "caption_check"])
def test_a_model_that_was_not_seen_to_look_is_told_so_and_gets_no_vlbs(
    tmp_path, monkeypatch, broken
):
    """Also where a check, of another head or of its own, cannot be made."""

    def lacking(*_):
        raise DataError("no picture is there")

    words = _grounding.GroundingCheck("masked words", 5, 10, 0.2, 0.8, "")
    monkeypatch.setattr(_grounding, "word_check", lambda *_: words)
    monkeypatch.setattr(_grounding, broken, lacking)
    store = runtime.Store(tmp_path)
    found = audit.run(Matcher(), "planted", store=store, parts=["zhou2022", "hamidieh2023"])
    shares = {head: check.share for head, check in found.checks.items()}
    assert shares == ({"matching": 0.5} if broken == "word_check" else {"masked words": 0.5})
    assert "zhou2022" not in set(found.scores["study"])
    reasons = found.not_run.set_index("part")["reason"]
    assert {"captions by matching logit", "portraits by word, matching"} <= set(reasons.index)
    assert found.faults.empty
    assert found.notes[0] == "two words have one vector"
    assert found.notes[1].endswith("no picture is there")
    page = BeautifulSoup(audit.report(found, COMPARED, found), "html.parser").get_text()
    assert page.count(found.notes[0]) == 2  # of the model, and of the one beside it
    assert json.loads(audit.files(found)["provenance.json"])["notes"] == list(found.notes)
    is_left_out = "this is left out: captions by matching logit" in " ".join(page.split())
    assert is_left_out == (broken == "word_check")


def test_what_a_failed_check_leaves_out_is_what_was_not_run(of_clip):
    """Captions by cosine ran, and masked words, of which there is no choice, failed."""
    failed = _grounding.GroundingCheck("masked words", 5, 10, 0.2, 0.8, "")
    page = audit.report(dataclasses.replace(of_clip, checks={"masked words": failed}))
    assert "was not seen to look" in page
    assert "left out" not in page


def test_a_report_whose_figure_is_empty_says_whether_a_part_ran(of_clip):
    words = of_clip.scores[of_clip.scores["statistic"] == "c_asc"]
    for scores, said in ((words, "No part that was run has"), (words[:0], "No part was run:")):
        axes = audit.figure(dataclasses.replace(of_clip, scores=scores)).picture.axes[0]
        assert said in " ".join(" ".join(text.get_text() for text in axes.texts).split())


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


def test_beside_vlbs_stands_the_same_mistake_the_other_way_round(of_clip, clip, store):
    given = study4_captions.inputs("planted")
    texts = given.table[["stereotype", "anti-stereotype", "irrelevant"]].to_numpy().tolist()
    scores = study4_captions.caption_scores(clip.model, "contrastive", given.images, texts, store)
    wrong = scores[~given.anti].argmax(axis=1) == 1
    row = of_clip.scores.query("test == 'overall' and statistic == 'vlbs'").iloc[0]
    assert row["mirrored"] == pytest.approx(100 * wrong.mean())


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


def test_parts_are_chosen_by_name_and_the_others_are_named(clip, store):
    found = audit.run(clip, "planted", store=store, parts=["zhou2022"], n_resamples=0)
    assert set(found.scores["study"]) == {"zhou2022"}
    assert found.not_run.set_index("part")["kind"]["portraits by word"] == "not asked for"
    with pytest.raises(runtime.UnknownNameError):
        audit.run(clip, "planted", store=store, parts=["zhou2023"])


def test_a_part_that_another_one_stands_for_is_named_where_it_was_asked_for(clip, store):
    name = "portraits by word, matching"
    found = audit.run(clip, "planted", store=store, parts=[name]).not_run.set_index("part")
    assert found.loc[name, "kind"] == "not possible"
    assert "encode" in found.loc[name, "reason"]


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


def test_an_audit_of_ones_own_pictures(folder, clip, store):
    own = audit.read_folder(folder)
    counts = own.counts().set_index(["column", "group"])
    assert counts.loc[("gender", "women")].tolist() == [12, 12]
    assert counts.loc[("gender x age", "women x old")].tolist() == [6, 6]
    assert list(own.facets()) == ["gender", "age"]  # Groups of 6 are too small to be crossed.
    found = audit.run(clip, "planted", store=store, data=folder, n_resamples=20)
    assert found.stimuli == "own"
    assert found.scores["part"].unique().tolist() == ["portraits by word"]
    assert set(found.scores["level"]) == {"gender", "age"}
    assert set(found.scores.query("statistic == 'c_asc'")["n"]) == {24}
    assert found.checks == {}


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
    "a person nan": (lambda t: t.assign(person=[*t["person"][:-3], *["nan"] * 3]), 23, "nan"),
    "a file not there": (lambda t: t.assign(file=["x.png", *t["file"][1:]]), 2, "x.png"),
    "a picture without a row": (lambda t: t[1:], None, "00.png"),
    "a file twice": (lambda t: pandas.concat([t, t[:1]]), 26, "00.png"),
    "two labels": (lambda t: t.assign(person=["p1", *t["person"][1:]]), None, "p1"),
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


@pytest.mark.parametrize("name", ["00.png", "x.JFIF", "x.jp2", "x.heic"])
@pytest.mark.parametrize("bad", ["the same", "damaged"])
def test_pictures_that_cannot_be_used_or_have_no_row_are_named(folder, name, bad):
    other = (folder / "01.png").read_bytes() if bad == "the same" else b"\x89PNG no picture"
    (folder / name).write_bytes(other)
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder)
    assert name in (caught.value.path.name, caught.value.word)


@pytest.mark.parametrize("other", ["wom\u0435n", "WOMEN", "women"])
def test_labels_that_look_alike_are_two_groups_and_noted(folder, other):
    spelt = [("women", other, "men")[at % 3] for at in range(24)]
    changed(folder, lambda t: t.assign(gender=spelt))
    found = audit.read_folder(folder)
    assert found.counts().query("column == 'gender'")["group"].nunique() == len(set(spelt))
    assert any("alike" in note and other in note for note in found.notes) == (other != "women")


def test_numbers_of_people_and_words_for_missing_labels_are_noted_once(folder):
    people = [f"{at // 2}{('', '.0')[at % 2]}" for at in range(24)]
    ages = [("?", "old")[at // 12] for at in range(24)]
    changed(folder, lambda t: t.assign(person=people, age=ages, Gender=t["gender"]))
    notes = " ".join(audit.read_folder(folder).notes)
    assert notes.count("the column person") == notes.count("the column age") == 1
    assert "'0' and '0.0'" in notes
    assert "'?'" in notes
    assert "'gender' and 'Gender'" in notes


@pytest.mark.parametrize(
    "spelt",
    [
        lambda name, place: place / name,
        lambda name, place: str(place / name).replace("/", "\\"),
        lambda name, place: f".\\{name}",
        lambda name, place: f"../{place.name}/{name}",
        lambda name, place: name.upper(),
        lambda name, place: name.replace(" ", "%20"),
        lambda name, place: unicodedata.normalize("NFD", name),
        lambda name, place: place.parent / "link" / name,
    ],
)
def test_a_picture_below_the_folder_is_found_however_its_path_is_written(folder, spelt):
    names = [f"p\u00e9 {at}.png" for at in range(24)]
    for at, name in enumerate(names):
        (folder / f"{at:02}.png").rename(folder / name)
    (folder.parent / "link").symlink_to(folder)
    changed(folder, lambda t: t.assign(file=[spelt(name, folder) for name in names]))
    assert audit.read_folder(folder).people["file"].tolist() == names


def test_two_spellings_of_a_path_are_one_picture_and_one_of_two_pictures_none(folder):
    changed(folder, lambda t: t.assign(file=["01.PNG", *t["file"][1:]]))
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder)
    assert (caught.value.row, caught.value.word) == (3, "01.png")
    for name in ("00.Png", "00.pnG"):
        (folder / name).write_bytes(name.encode())
    changed(folder, lambda t: t.assign(file=["00.PNG", *t["file"][1:]]))
    (folder / "00.png").unlink()
    with pytest.raises(DataError) as caught:
        audit.read_folder(folder)
    assert (caught.value.row, caught.value.word) == (2, "00.PNG")


def test_people_are_counted_once_however_many_columns_there_are(folder, monkeypatch):
    wide = {
        f"attribute {at}": [("-1", "1")[(row >> at % 4) & 1] for row in range(24)]
        for at in range(40)
    }
    changed(folder, lambda t: t[["file", "person"]].assign(**wide))
    calls, counts = [], OwnFolder.counts
    monkeypatch.setattr(OwnFolder, "counts", lambda own: calls.append(own) or counts(own))
    found = audit.read_folder(folder)
    assert len(found.groups) == 40
    assert len(calls) == 1
    table = counts(found).query("column == 'attribute 0 x attribute 5'").set_index("group")
    pairs = pandas.Series(wide["attribute 0"]) + " x " + pandas.Series(wide["attribute 5"])
    assert table["people"].to_dict() == pairs.value_counts().to_dict()


def test_a_label_is_no_formula_in_the_tables_of_an_audit(of_clip):
    labels = ["=1+1", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "-1", "+3.5", "women"]
    scores = of_clip.scores.head(8).assign(level=labels)
    written = pandas.read_csv(io.StringIO(_report._csv(scores)), dtype={"level": str})
    assert written["level"].tolist() == [*(f"'{each}" for each in labels[:5]), *labels[5:]]
    assert written["value"].tolist() == scores["value"].tolist()


@pytest.mark.parametrize("name", ["CAPTION", "caption "])
def test_a_column_of_captions_is_no_group_however_it_is_written(folder, name):
    changed(folder, lambda t: t.assign(**{name: ["a dog", "a cat"] * 12}))
    found = audit.read_folder(folder)
    assert found.groups == ("gender", "age")
    assert found.captions[1] == ["a dog", "a cat"] * 12


# What it would take


class Tally:
    """Counts texts and pictures."""

    read = 0

    def encode_text(self, texts):
        self.read += len(texts)

    encode_image = encode_text


def test_bytes_items_and_minutes_of_an_audit(folder, monkeypatch):
    """Bytes without loading a model; minutes by a clock on which each call takes a second."""
    path = checkpoint("clip", 3, 0)
    found = audit.cost(path, "planted", "cpu", data=folder)
    files = sum(path.stat().st_size for path in path.glob("*.safetensors"))
    assert found.parameters == files / 2  # float16 on disk
    assert found.memory == pytest.approx(4 * found.parameters * 1.25 / 2**30)
    assert found.download == 0
    assert {part.name: n for part, n in found.items.items()} == {"portraits by word": 621 + 24}
    found.require_fit()
    with pytest.raises(_cost.DoesNotFitError):
        dataclasses.replace(found, free=found.memory / 2).require_fit()
    assert "0.0 GiB free" not in str(dataclasses.replace(found, free=0.0))
    tally, ticks = Tally(), itertools.count()
    monkeypatch.setattr(_cost, "perf_counter", lambda: next(ticks))
    assert found.minutes(tally) == pytest.approx((621 + 24) / 8 / 60)
    assert tally.read == 2 * 2 * 8
    beside = audit.cost(path, "planted", "cpu", data=folder, untrained=3)
    assert beside.minutes(tally) == pytest.approx(4 * (621 + 24) / 8 / 60)
    assert beside.memory == pytest.approx(2 * found.memory)
    assert found.minutes(object()) is None


# The command line


def audit_of(model, *more, part="zhou2022"):
    given = ["audit", str(model), "--parts", part, "--device", "cpu", *map(str, more)]
    return command_line.main(given)


def test_the_command_says_what_it_would_take_and_stops(capsys, folder, tmp_path):
    more = ("--data", folder, "--out", tmp_path / "out", "--dry-run")
    assert audit_of(checkpoint("clip", 3, 0), *more, part="hamidieh2023") == 0
    said = capsys.readouterr().out
    assert said.index("women") < said.index("download: 0.00 GB") < said.index("minutes, timed")
    assert not (tmp_path / "out").exists()


def test_two_models_have_to_fit_together(capsys, monkeypatch):
    cost = _cost.Cost(1e8, 0.0, 6.0, 10.0, "cuda", {}, np.array([0.01]))
    monkeypatch.setattr(audit, "cost", lambda *_, **__: cost)
    monkeypatch.setattr(audit, "load", lambda *_: pytest.fail("this does not fit"))
    assert command_line.main(["audit", "clip", "--compare", "albef", "--dry-run"]) == 1
    assert capsys.readouterr().err.startswith("DoesNotFitError: ")


@pytest.mark.parametrize("second", ["clip", "bert"])
def test_the_command_writes_reports_of_what_two_models_have_in_common(
    capsys, second, tmp_path, monkeypatch
):
    """Those of the first alone where that is nothing: it stays."""
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    more = ("--compare", checkpoint(second, 0, 0), "--out", tmp_path / "out")
    status = audit_of(checkpoint("clip", 3, 0), *more)
    names = {"scores.csv", "provenance.json", "report.html"}
    if second == "clip":
        names |= {"comparison.csv", "scores-second.csv", "provenance-second.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert status == (second == "bert")
    assert ("no part in common" in capsys.readouterr().err) == (second == "bert")


def test_toy_models_are_not_asked_about_pictures_of_people(capsys, folder):
    more = ("--data", folder, "--profile", "planted", "--dry-run")
    assert audit_of("clip", *more, part="hamidieh2023") == 1
    assert capsys.readouterr().err.startswith("ValueError: ")


def test_an_interrupted_command_and_a_wrong_one_end_with_a_line(capsys, tmp_path, monkeypatch):
    assert command_line.main(["audit", "clip", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("DataError: ")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(audit, "cost", interrupted)
    assert command_line.main(["audit", "clip", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().out.startswith("Interrupted.")


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


# From the README alone: a name of the hub, and a folder of pictures

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HUB_NAMES = {"siglip": "google/siglip-base-patch16-224", "llava": "llava-hf/llava-tiny"}
NEVER_AUDITED = "llava-hf/llava-other"
RUN = {
    "siglip": ["portraits by word"],
    "llava": ["masked words, caption alone"],
}
MORE = {"siglip": [], "llava": ["--parts", "masked words, caption alone", "zhou2022"]}
"""What a model that writes is asked besides, each caption beside each portrait, takes long."""


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
    command = [sys.executable, "-m", "biaslib", *command, *MORE[kind]]
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
    if kind == "siglip":
        assert set(scores["level"]) == {"gender", "age"}
    else:
        purse = scores.query("test == 'purse' and level == 'S_L, no image'")["value"].item()
        said = ["The woman is carrying a [MASK].", "The man is carrying a [MASK]."]
        runtime.start("paper")
        log_p = models.load(HUB_NAMES[kind], device="cpu").mask_log_prob(said, ["purse"])
        assert purse == pytest.approx(log_p[0, 0] - log_p[1, 0], abs=1e-3)
    before = len(hub.requests)
    assert audit.cost(HUB_NAMES[kind], "paper", "cpu", data=people).download == 0
    assert len(hub.requests) == before


def test_the_cost_of_a_name_of_the_hub_asks_for_its_settings_alone(hub, people):
    before = len(hub.requests)
    found = audit.cost(NEVER_AUDITED, "paper", "cpu", data=people)
    files = [path.rpartition("/")[2] for _, path, _ in hub.requests[before:] if "/resolve/" in path]
    assert set(files) == {"config.json"}
    assert [part.name for part in found.items] == [*RUN["llava"], "portraits by word, matching"]
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


def test_two_models_have_the_vlbs_of_their_own_reports(clip, store, monkeypatch):
    """Also where it is that of a balanced selection, and labels are unequal."""
    inputs = study4_captions.inputs

    def unequal(profile=None, **settings):
        given = inputs(profile, **settings)
        kept = np.delete(np.arange(len(given.table)), np.flatnonzero(given.anti)[::3])
        return dataclasses.replace(given.part(kept), balance=True)

    monkeypatch.setattr(study4_captions, "inputs", unequal)
    settings = {"parts": ["captions by cosine"], "n_resamples": 0, "store": store}
    other = checkpoint("clip", 0, 0)
    audits = [audit.run(model, "planted", **settings) for model in (clip, other)]
    row = audit.compare(*audits, store).iloc[0]
    own = [each.scores.query("test == 'overall' and statistic == 'vlbs'") for each in audits]
    assert [row["first"], row["second"]] == [each["value"].item() for each in own]
    assert row["n"] == own[0]["n"].item() == own[1]["n"].item()


def test_rows_that_differ_are_told_from_those_that_look_the_same():
    table = _tables.comparison_table(COMPARED)
    assert table["p_holm"].tolist() == [".050", ".050"]
    assert table["differ"].tolist() == ["yes", "no"]


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


def other_table(folder, change):
    """Return a folder of the same name and pictures with another table."""
    place = folder.parent / "elsewhere" / folder.name
    shutil.copytree(folder, place)
    changed(place, change)
    return audit.read_folder(place)


@pytest.mark.parametrize(
    ("column", "like"), [("person", "file"), ("age", "gender"), ("hat", "gender")]
)
def test_a_folder_of_the_same_name_with_another_table_is_not_compared(
    folder, of_clip, column, like
):
    turned = other_table(folder, lambda table: table.assign(**{column: table[like]}))
    audits = [dataclasses.replace(of_clip, folder=f) for f in (audit.read_folder(folder), turned)]
    assert audits[0].folder.name == audits[1].folder.name
    for first, second in (audits, audits[::-1], (audits[0], of_clip)):
        with pytest.raises(ValueError, match="other stimuli"):
            audit.compare(first, second)


def test_a_part_that_one_audit_was_not_asked_for_is_not_left_out_in_silence(of_clip, clip, store):
    fewer = audit.run(clip, "planted", store=store, parts=["zhou2022"], n_resamples=0)
    for pair in ((of_clip, fewer), (fewer, of_clip)):
        with pytest.raises(ValueError, match="'portraits by word'"):
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


def test_the_scores_of_a_page_are_those_of_the_audit_to_six_digits(of_clip):
    _, _, packed = BeautifulSoup(plots.links(of_clip).data, "html.parser").a["href"].partition(",")
    text = gzip.decompress(base64.b64decode(packed)).decode()
    again = pandas.read_csv(io.StringIO(text), dtype={"revision": str, "kind": str})
    pandas.testing.assert_frame_equal(again, of_clip.scores, check_dtype=False, rtol=1e-5)
    assert len(text) < len(_report.files(of_clip)["scores.csv"])


def test_one_figure_has_every_question_and_those_claimed_in_orange(of_clip):
    asked, table = of_clip.asked, plots.answers_table(of_clip)
    assert table["questions"].sum() == len(asked)
    assert table["claimed"].sum() == len(of_clip.claims) > 0
    beyond = ~asked["value"].between(asked["null_low"], asked["null_high"])
    assert table["outside"].sum() == beyond.sum()
    axes = plots.answers_figure(of_clip).axes[0]
    orange = [
        drawn.get_offsets()
        for drawn in axes.collections
        if matplotlib.colors.same_color(drawn.get_facecolor()[0, :3], "C1")
    ]
    claimed = np.concatenate(orange)
    assert len(claimed) == len(of_clip.claims)
    assert (np.abs(claimed[:, 0]) > 1).all()
    assert sum(len(drawn.get_offsets()) for drawn in axes.collections) == len(asked)
    assert axes.get_title(loc="left").startswith(f"{len(of_clip.claims)} of {len(asked)} ")


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


def test_the_report_has_every_claim_and_every_reason(of_clip):
    page = BeautifulSoup(audit.report(of_clip), "html.parser")
    tables = {table.caption.get_text(): table for table in page.find_all("table") if table.caption}
    (claims,) = (table for name, table in tables.items() if name.startswith("Every claim"))
    assert len(claims.find_all("tr")) - 1 == len(of_clip.claims) > 0
    text = " ".join(page.get_text(" ").split())
    assert all(reason in text for reason in NOT_OF_CLIP.values())
    told = dict(part.split(": ") for part in audit.claim_counts(of_clip).split("; "))
    of_portraits = of_clip.asked[of_clip.asked["study"] == "hamidieh2023"]
    claimed = (of_portraits["p_holm"] < 0.05).sum()
    assert told["Study 3"] == f"{claimed} of {len(of_portraits)}"


def test_the_figure_shows_the_same_questions_whatever_they_gave(of_clip, of_nothing):
    one, other = (audit.figure(each).tables[0].frame for each in (of_clip, of_nothing))
    assert one["question"].tolist() == other["question"].tolist()
    assert one["question"].tolist()[:7] == [name for name, *_ in audit.LISTS]
    assert one["low if nothing"].notna().all()


# Exercises


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("{v:.2f} [{low:.2f}; {high:.2f}]; this does not prove an absence", True),
        ("on FairFace we measured {v:+.2f} ({low:.2f}-{high:.2f})", True),
        ("{v:.2f} ({low:.2f} to {high:.2f}), a fairly small difference", True),
        ("{v:.2f}", False),
        ("0.12 (-0.30 to 0.54)", False),
        ("{v:.6f} ({low:.6f} to {high:.6f})", False),
        ("{v:.2f} ({high:.2f} to {low:.2f})", False),
        ("{v:.2f} ({low:.2f}, {high:.2f}); the model is neutral", False),
        ("{v:.2f} ({low:.2f}, {high:.2f}); it treats women and men equally", False),
        ("{v:.2f} ({low:.2f}, {high:.2f}); this does not mean much, and it is sexist", False),
        ("{v:.2f} ({low:.2f}, {high:.2f}); this model passed and can be deployed", False),
    ],
)
def test_a_reading_gives_its_interval_and_no_verdict(sentence, right):
    found = plots.check_reading(lambda v, low, high: sentence.format(v=v, low=low, high=high))
    assert found.passed == right


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
    z = nulls.standardised(scores)
    found = nulls.portrait_contrast(z[:5], z[5:], members, units, 0)
    each = caption_association.c_asc(scores, members[:, None])[:, 0]
    assert found["value"] == pytest.approx(each[:5].mean() - each[5:].mean())
    assert (found["n"], found["n_units"]) == (12, 10)


def test_labels_drawn_at_random_are_no_finding_however_the_words_go_together():
    rng = np.random.default_rng(1)
    units, rejected = np.arange(20), {"words": 0, "both": 0}
    for _ in range(400):
        first, second = shared_scores(rng)
        members = rng.permutation(units) < 8
        lists = map(nulls.standardised, (first, second))
        found = nulls.portrait_contrast(*lists, members, units, 0)
        each = caption_association.c_asc(np.vstack([first, second]), members[:, None])[:, 0]
        by_words = nulls.contrast(each[: len(first)], each[len(first) :], 0)
        rejected["words"] += by_words["p_value"] < 0.05
        rejected["both"] += found["p_value"] < 0.05
    assert rejected["words"] > 200  # what dealing out words alone would claim
    assert rejected["both"] <= 30  # 20 expected; 30 has a probability of 1%


def test_the_interval_of_a_contrast_draws_people_too():
    rng = np.random.default_rng(2)
    first, second = shared_scores(rng)
    members = np.arange(20) < 8
    apart = [each / each.std(axis=1, ddof=1, keepdims=True) for each in (first, second)]
    found = nulls.portrait_contrast(*apart, members, np.arange(20), 2_000)
    of_people = apart[0].mean(0) - apart[1].mean(0)
    sides = of_people[members], of_people[~members]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in sides))
    assert 1 < (found["high"] - found["low"]) / (2 * 1.96 * error) < 1.4  # few people


# Networks with random weights


def _drawn_by_transformers(seed):
    """A network of the example's configuration, as transformers makes it before training."""
    config = transformers.CLIPConfig.from_pretrained(checkpoint("clip", 3, 0))
    torch.manual_seed(seed)
    return transformers.CLIPModel(config).eval()


@pytest.fixture(scope="module")
def beside(store):
    """Audits of what was planted and of nothing, each beside three untrained networks."""
    settings = {"parts": ["portraits by word"], "n_resamples": 0, "untrained": 3}
    models = (audit.load(checkpoint("clip", dose, 0), "planted", "cpu") for dose in (3, 0))
    return [audit.run(model, "planted", store=store, **settings) for model in models]


@pytest.mark.parametrize("seed", [0, 2])
def test_an_untrained_network_scores_as_transformers_own_of_that_seed(beside, clip, seed):
    """By the formula, from vectors that transformers makes of the same tokens and pixels."""
    network, planted_inputs = _drawn_by_transformers(seed), study3_clip_audit.inputs("planted")
    folder = checkpoint("clip", 3, 0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    listed = audit.listed_captions()
    listed = listed[listed["bias_type"] == listed["bias_type"].iloc[0]]
    tokens = tokenizer(
        planted_inputs.model_case(listed["caption"]), padding=True, return_tensors="pt"
    )
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(
        list(planted_inputs.portraits), return_tensors="pt"
    )
    with torch.inference_mode():
        text = network.get_text_features(**tokens).pooler_output.double()
        image = network.get_image_features(**pixels).pooler_output.double()
    cosines = torch.nn.functional.normalize(text) @ torch.nn.functional.normalize(image).T
    z = (cosines / cosines.std(dim=1, keepdim=True)).numpy()
    women = planted_inputs.groups["gender"].iloc[:, 0].to_numpy()
    c_asc = z[:, women].mean(axis=1) - z[:, ~women].mean(axis=1)
    first = (listed["kind"] == "0").to_numpy()
    scores = beside[0].asked
    row = scores[(scores["test"] == listed["bias_type"].iloc[0]) & (scores["level"] == "gender")]
    expected = c_asc[first].mean() - c_asc[~first].mean()
    assert row[f"untrained {seed}"].item() == pytest.approx(expected, abs=2e-5)


def test_what_is_planted_lies_beyond_untrained_networks_and_changes_by_none_of_them(
    beside, of_clip
):
    claims, drawn = beside[0].claims, beside[0].untrained
    beyond = ~claims["value"].between(
        drawn.min(axis=1)[claims.index], drawn.max(axis=1)[claims.index]
    )
    assert len(claims) > 10
    assert beyond.all()
    assert beside[1].untrained.equals(drawn)  # of one configuration: no trained weight is left
    alone = of_clip.scores[of_clip.scores["part"] == "portraits by word"]["value"]
    assert beside[0].scores["value"].tolist() == pytest.approx(alone.tolist())
    table = plots.beside_untrained(dict(zip("ab", beside, strict=True))).set_index("model")
    assert table["claimed and beyond"].tolist() == [len(claims), 0]
    made_of = beside[0].provenance["untrained"]
    assert made_of["seeds"] == [0, 1, 2]
    assert audit.summary(beside[0]).shape[1] == audit.summary(of_clip).shape[1] + 1


def test_a_model_has_its_own_weights_again_after_an_error(clip):
    before = {name: each.clone() for name, each in clip.model.network.state_dict().items()}
    revision = clip.model.revision
    with contextlib.suppress(KeyboardInterrupt), untrained(clip.model, 1) as twin:
        assert twin.revision.startswith(f"{revision}, untrained")
        raise KeyboardInterrupt
    assert clip.model.revision == revision
    assert all(torch.equal(before[n], each) for n, each in clip.model.network.state_dict().items())


@pytest.mark.parametrize("study", [grounded, study2_masked, study3_clip_audit, study4_captions])
def test_an_audit_in_paper_is_of_all_data_also_after_a_taste(study, clip, store, monkeypatch):
    """No size of a run cuts it: its report would not say so."""
    asked = []

    @functools.wraps(study.paper_inputs)
    def of_paper(*_, size=None, **__):
        asked.append(runtime.size(size))
        raise FileNotFoundError("no data are here")

    monkeypatch.setenv("BIASLIB_SIZE", "taste")
    monkeypatch.setattr(study, "paper_inputs", of_paper)
    setting = _parts.Setting("paper", store)
    reads = [part.run for part in _parts.PARTS if part.study == study.STUDY]
    for read in reads:
        with pytest.raises(FileNotFoundError, match="no data"):
            read(clip, setting)
    assert set(asked) == {"full"}


def test_other_weights_of_the_same_seed_are_stored_apart(clip, monkeypatch):
    """As another version of a library draws them."""
    with untrained(clip.model, 0) as twin:
        first = twin.revision
    with untrained(clip.model, 0) as twin:
        assert twin.revision == first
    draws = transformers.CLIPModel._init_weights
    monkeypatch.setattr(
        transformers.CLIPModel,
        "_init_weights",
        lambda self, part: (torch.rand(1), draws(self, part)),
    )
    with untrained(clip.model, 0) as twin:
        assert twin.revision != first


def test_an_audit_stands_where_a_part_fails_of_an_untrained_network_alone(clip, store, monkeypatch):
    def run(part):
        def of(audited, setting):
            if setting.untrained and part.name == "portraits by word":
                raise MemoryError("too little")
            return part.run(audited, setting)

        return of

    parts = [dataclasses.replace(part, run=run(part)) for part in _parts.PARTS]
    monkeypatch.setattr(_parts, "PARTS", tuple(parts))
    names = ["portraits by word", "captions by cosine"]
    found = audit.run(clip, "planted", store=store, parts=names, n_resamples=0, untrained=1)
    there = found.untrained["untrained 0"].notna().groupby(found.scores["part"]).mean()
    assert there.to_dict() == {names[0]: 0, names[1]: 1}
    assert found.not_run.set_index("part").loc[f"{names[0]}, untrained", "kind"] is not None


def test_an_object_of_ones_own_has_no_untrained_network_and_it_is_said(clip, store):
    own = type("Own", (), dict.fromkeys(["network"]) | {"capabilities": clip.capabilities})()
    own.name, own.revision, own.device = "own", "1", "cpu"
    own.encode_text, own.encode_image = clip.model.encode_text, clip.model.encode_image
    found = audit.run(own, "planted", store=store, parts=["zhou2022"], n_resamples=0, untrained=1)
    row = found.not_run.set_index("part").loc["untrained networks"]
    assert row["kind"] == "not possible"
    assert found.untrained.isna().all(axis=None)
