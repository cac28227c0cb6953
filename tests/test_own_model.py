"""The audit of one's own model: the studies' numbers, what was not run, what is handed over."""

import base64
import json
import re

import numpy as np
import pandas
import pytest
from support import repositories

from biaslib import inference, runtime, stimuli
from biaslib.datasets import DataError
from biaslib.models.own import OwnModel, load_own
from biaslib.report import own_model as plots
from biaslib.studies import own_model as study
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study3_clip_audit, study4_captions
from biaslib.studies.scores import COLUMNS
from plantedworld.inputs import study1_grounded as planted
from plantedworld.models.checkpoints import checkpoint

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
def of_bert(store):
    own = load_own(checkpoint("bert", 3, 0), "planted", "cpu")
    return study.audit(own, "planted", store=store)


def test_a_dual_encoder_gets_the_audits_of_dual_encoders(of_clip):
    assert of_clip.scores["part"].unique().tolist() == ["portraits by word", "captions by cosine"]
    assert dict(zip(of_clip.not_run["part"], of_clip.not_run["reason"], strict=True)) == NOT_OF_CLIP
    assert list(of_clip.scores.columns)[: len(COLUMNS)] == list(COLUMNS)
    assert set(of_clip.scores["model"]) == {"clip-dose3-seed0"}
    assert set(of_clip.scores["revision"]) == {of_clip.own.model.revision}


def test_c_asc_is_that_of_the_formula(of_clip, clip):
    """The paper's equation on the same portraits, written out once more."""
    found = of_clip.scores.query("part == 'portraits by word' and statistic == 'c_asc'")
    given = study3_clip_audit.inputs("planted")
    table = stimuli.taxonomy("sobit")
    assert len(found) == len(table)
    some = [3, 200, 400]
    text = clip.model.encode_text([table["caption"].iloc[row].lower() for row in some])
    cosines = text @ clip.model.encode_image(given.portraits).T
    women = (given.people["gender"] == "women").to_numpy()
    apart = cosines[:, women].mean(1) - cosines[:, ~women].mean(1)
    expected = apart / cosines.std(axis=1, ddof=1)
    values = found["value"].to_numpy()[some]
    np.testing.assert_allclose(values, expected, atol=2e-4)
    assert (found["low"] <= found["high"]).all()


def test_selections_are_those_of_study_4(of_clip, clip, store):
    way = study4_captions.Way("mine", "contrastive", True, "clip", "clip")
    given = study4_captions.inputs("planted")
    found = study4_captions.run([way], given, lambda _: clip.model, store)
    direct = study4_captions.selection_scores(found, n_resamples=50)
    mine = of_clip.scores[of_clip.scores["part"] == "captions by cosine"]
    assert mine["value"].tolist() == direct["value"].tolist()
    assert mine["n"].tolist() == direct["n"].tolist()


def test_a_text_encoder_gets_the_parts_without_images(of_bert):
    run = ["association tests, text alone", "masked words, caption alone"]
    assert of_bert.scores["part"].unique().tolist() == run
    reasons = of_bert.not_run.set_index("part")["reason"]
    lacking = "the model does not embed texts with images"
    assert reasons["association tests, with images"] == lacking
    assert len(reasons) == len(study.PARTS) - 2


def test_association_tests_are_those_of_study_1(of_bert, store):
    every = planted.planted_stimuli(["occupation-gender"], ["sentence"], n_texts=1)
    (direct,) = grounded.run(
        of_bert.own.model, every, (1,), with_images=False, store=store
    ).to_dict("records")
    mine = of_bert.scores.query("test == 'occupation-gender'").iloc[0]
    assert mine["value"] == pytest.approx(direct["value"], abs=1e-9)
    assert (mine["p_value"], mine["n"]) == (direct["p_value_words"], direct["n_words"])


def test_the_same_model_before_and_after_has_no_shift(of_bert):
    """BERT is compared with itself: S_PT is 0 for every entity."""
    shift = of_bert.scores.query("level == 'S_PT' and statistic == 'B'")
    assert len(shift) > 20
    np.testing.assert_allclose(shift["value"], 0, atol=1e-6)


def test_the_page_counts_what_holm_leaves(of_bert):
    page = study.summary(of_bert).set_index("measured")
    tests = of_bert.scores[of_bert.scores["study"] == "ross2021"].dropna(subset=["p_value"])
    kept = np.asarray(inference.adjust(tests["p_value"], "holm")) < 0.05
    assert page.loc["tests with p < .05 (Holm)", "value"] == kept.sum()
    assert page.loc["tests with p < .05 (Holm)", "n"] == len(tests) == 13
    largest = next(name for name in page.index if name.startswith("largest effect size"))
    assert abs(page.loc[largest, "value"]) == tests["value"].abs().max()


def test_a_part_that_fails_does_not_take_the_others_with_it(clip, store, monkeypatch):
    def broken(own, profile, store):
        raise RuntimeError("out of paper\nand ink")

    parts = [
        study.Part(part.study, part.name, part.needs, broken)
        if part.name == "portraits by word"
        else part
        for part in study.PARTS
    ]
    monkeypatch.setattr(study, "PARTS", tuple(parts))
    found = study.audit(clip, "planted", store=store)
    assert found.scores["part"].unique().tolist() == ["captions by cosine"]
    reasons = found.not_run.set_index("part")["reason"]
    assert reasons["portraits by word"] == "RuntimeError: out of paper and ink"


def test_what_nobody_foresaw_is_a_fault_and_what_is_missing_is_none(clip, store, monkeypatch):
    def raising(error):
        def run(own, profile, store):
            raise error

        return run

    errors = {
        "portraits by word": DataError("no portrait is left. Put some there"),
        "captions by cosine": ValueError("shapes differ"),
    }
    parts = [
        study.Part(each.study, each.name, each.needs, raising(errors[each.name]))
        for each in study.PARTS
        if each.name in errors
    ]
    monkeypatch.setattr(study, "PARTS", (*parts, study.PARTS[0]))
    found = study.audit(clip, "planted", store=store)
    kept = found.not_run.set_index("part")[["kind", "reason"]]
    assert kept.loc["portraits by word"].tolist() == [
        "not there",
        "no portrait is left. Put some there",
    ]
    assert kept.loc["captions by cosine"].tolist() == ["error", "ValueError: shapes differ"]
    assert kept.loc["association tests, text alone", "kind"] == "not possible"
    assert found.faults["part"].tolist() == ["captions by cosine"]


class Matcher:
    """Matches captions by their length, and counts how often it is asked."""

    name, revision = "matcher", "1"
    capabilities = frozenset({"match images and texts"})

    def __init__(self):
        self.asked = 0

    def match(self, images, texts):
        self.asked += 1
        return np.array([[len(text) for text in row] for row in texts], dtype=float)


def test_a_second_audit_asks_the_model_nothing_again(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path))
    first, second = Matcher(), Matcher()
    scores = [
        study.audit(OwnModel("mine", "vilt", each), "planted").scores for each in (first, second)
    ]
    assert first.asked > 0
    assert second.asked == 0
    pandas.testing.assert_frame_equal(*scores)
    assert scores[0]["part"].unique().tolist() == ["captions by matching logit"]


def test_a_model_without_any_capability_is_named_and_its_parts_counted():
    with pytest.raises(
        study.CapabilityError, match=r"nothing at all fits none of the 7 parts .*masks"
    ):
        study.audit(OwnModel("nothing at all", "bert", object()), "planted")


# What is handed over


def test_files_hold_the_scores_and_what_they_were_made_of(of_clip, tmp_path):
    saved = plots.downloads(of_clip).save(tmp_path / "audit")
    assert [path.name for path in saved] == ["scores.csv", "provenance.json", "report.md"]
    scores, provenance, written = saved
    assert written.read_text(encoding="utf-8") == plots.write_up(of_clip)
    again = pandas.read_csv(scores, dtype={"revision": str})
    pandas.testing.assert_frame_equal(again, of_clip.scores, check_dtype=False)
    said = json.loads(provenance.read_text())
    assert said["revision"] == of_clip.own.model.revision
    assert said["parts not run"] == NOT_OF_CLIP
    assert runtime.source_hash() in said["biaslib"]


def test_links_hold_the_files(of_clip):
    page = plots.downloads(of_clip)._repr_html_()
    held = re.findall(r'download="(.+?)" href="data:[\w/]+;base64,(.+?)"', page)
    texts = {name: base64.b64decode(text).decode() for name, text in held}
    assert list(texts) == ["scores.csv", "provenance.json", "report.md"]
    assert texts["scores.csv"] == of_clip.scores.to_csv(index=False)
    assert json.loads(texts["provenance.json"])["model"] == "clip-dose3-seed0"


def test_the_report_fills_in_what_is_known_and_asks_for_the_rest(of_clip):
    text = plots.write_up(of_clip)
    assert of_clip.own.model.revision in text
    assert "must not be quoted as findings" in text
    assert all(reason in text for reason in NOT_OF_CLIP.values())
    vlbs = of_clip.scores.query("test == 'overall' and statistic == 'vlbs'")["value"].iloc[0]
    assert f"| vlbs | {vlbs:.2f} |" in text
    outline = plots.report_outline(of_clip).set_index("section")["what only you can write"]
    assert outline["What was not run"] == "Whether this matters for the use above."
    assert outline["Words to keep to"] == "nothing: filled in"


def test_pages_quote_occupations_and_no_other_words_of_study_3(of_clip):
    occupations = set(stimuli.taxonomy("sobit").query("bias_type == 'Occupation'")["word"])
    rows = plots.forest_table(of_clip).query("study == 'Study 3'")["row"]
    assert set(rows) <= occupations
    named = [m for m in plots.one_page(of_clip)["measured"] if "occupations: " in m]
    assert named[0].rsplit(": ")[1] in occupations


def test_reading_checks():
    assert not plots.check_reading(lambda *_: "The model is unbiased: 0.12 (-0.3 to 0.54)").passed
    assert not plots.check_reading(lambda value, low, high: f"{value:.2f}").passed
    assert not plots.check_reading(None).passed
    assert plots.check_count(repositories.SIDE).passed is False
