"""Study 3: scores against plain loops, SciPy and the planted truth; kills, processes, figures."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy import stats
from support import rehearsal_clip_audit as sample

import plantedworld
from biaslib import inference, published, runtime
from biaslib.datasets import fairface
from biaslib.metrics import caption_association
from biaslib.pictures.images import pictures
from biaslib.runtime import Store
from biaslib.studies import study3_clip_audit as study
from companion import planted_study3_clip_audit as verdicts
from companion import study3_clip_audit as plots
from plantedworld import corpus as corpus_truth
from plantedworld.inputs import study3_clip_audit as planted
from plantedworld.studies import study3_clip_audit as verdict
from plantedworld.training import clip as recipe


def row_of(table, word):
    return table["word"].tolist().index(word)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def audit(store):
    return study.audit(study.inputs("planted", n_per_cell=12), n_resamples=60, store=store)


def of(scores, statistic, level, word, group):
    rows = scores[(scores["statistic"] == statistic) & (scores["level"] == level)]
    return rows[(rows["test"] == word) & (rows["group"] == group)].iloc[0]


def test_scores_are_tidy_and_complete(audit):
    scores, n_words = audit.scores, len(study.words())
    assert n_words == 428
    assert scores.groupby(["level", "statistic"]).size().to_dict() == {
        (level, statistic): n_words * (1 if statistic == "entropy" else groups)
        for level, groups in (("gender", 2), ("tone", 5), ("age", 3), ("gender x tone", 10))
        for statistic in ("c_asc", "share", "skew", "entropy")
    }


@pytest.mark.parametrize(
    ("level", "group"), [("gender", "women"), ("gender x tone", "men, tone 4")]
)
def test_scores_are_those_of_a_plain_loop(audit, level, group):
    people, found = audit.given.people, audit.retrieval
    label = people["gender"] if level == "gender" else people["gender"] + ", " + people["tone"]
    member, k = (label == group).to_numpy(), audit.given.k
    for word in ("nurse", "fixing cars", "police officer"):
        cosines = found.similarities[row_of(audit.table, word)].astype(float)
        inside, outside = cosines[member], cosines[~member]
        c_asc = of(audit.scores, "c_asc", level, word, group)
        expected = (inside.mean() - outside.mean()) / cosines.std(ddof=1)
        assert c_asc["value"] == pytest.approx(expected, abs=1e-9)
        assert c_asc["low"] < expected < c_asc["high"]
        drawings = pandas.Series(cosines).groupby([audit.given.units, member]).mean()
        sides = (drawings.xs(each, level=1) for each in (True, False))
        p_value = stats.ttest_ind(*sides, equal_var=False).pvalue
        assert c_asc["p_value"] == pytest.approx(p_value, rel=1e-6, abs=1e-300)
        assert c_asc["few"] == (len(set(audit.given.units[member])) < 20)
        top = np.argsort(-cosines, kind="stable")[:k]
        count = int(member[top].sum())
        share = of(audit.scores, "share", level, word, group)
        assert share["value"] == count / k
        assert np.isnan(share["p_value"])  # a drawing has several portraits
        skew = of(audit.scores, "skew", level, word, group)["value"]
        smoothed = (count + member.mean()) / (k + 1)
        assert skew == pytest.approx(np.log(smoothed / member.mean()))
        parts = label.iloc[top].value_counts(normalize=True)
        entropy = stats.entropy(parts) / np.log(label.nunique())
        assert of(audit.scores, "entropy", level, word, "all")["value"] == pytest.approx(entropy)


@pytest.fixture(scope="module")
def alone(audit):
    """The scores where every portrait is a unit of its own."""
    given = replace(audit.given, units=np.arange(len(audit.given.people)))
    return study.score(audit.retrieval, given, audit.table, audit.model, n_resamples=5)


def test_p_values_of_single_portraits_are_scipys(audit, alone):
    member = (audit.given.people["gender"] == "women").to_numpy()
    for word in ("nurse", "fixing cars"):
        cosines = audit.retrieval.similarities[row_of(audit.table, word)].astype(float)
        expected = stats.ttest_ind(cosines[member], cosines[~member], equal_var=False).pvalue
        c_asc = of(alone, "c_asc", "gender", word, "women")
        assert c_asc["p_value"] == pytest.approx(expected, rel=1e-6, abs=1e-300)
        k = audit.given.k
        count = int(member[np.argsort(-cosines, kind="stable")[:k]].sum())
        null = stats.hypergeom(len(member), member.sum(), k)
        tail = min(2 * min(null.sf(count - 1), null.cdf(count)), 1)
        share = of(alone, "share", "gender", word, "women")
        assert share["p_value"] == pytest.approx(tail, rel=1e-6)
    few = alone[alone["group"] != "all"].groupby(["level", "group"])["few"].agg(set).to_dict()
    sizes = {level: members.sum() for level, members in audit.given.groups.items()}
    assert few == {(a, b): {n < 20} for a, of_groups in sizes.items() for b, n in of_groups.items()}


def test_a_group_that_parts_the_portraits_of_a_unit_has_no_p_value(audit):
    """As where a person has two ages: Welch's test of means would count her twice."""
    given = replace(audit.given, units=np.arange(len(audit.given.people)) % 40)
    found = study.score(audit.retrieval, given, audit.table, audit.model, n_resamples=5)
    rows = found[found["statistic"] == "c_asc"]
    assert rows["p_value"].isna().all()
    assert rows["p_adjusted"].isna().all()
    assert rows["low"].notna().any()


def test_the_correction_is_over_all_words_and_groups_of_a_facet(alone):
    for statistic in ("c_asc", "share"):
        rows = alone[alone["statistic"].eq(statistic)].query("level == 'tone'")
        expected = stats.false_discovery_control(rows["p_value"], method="by")
        np.testing.assert_allclose(rows["p_adjusted"], expected)


@pytest.mark.parametrize("statistic", ["c_asc", "share"])
def test_two_groups_have_one_test_of_a_word_which_is_corrected_once(audit, alone, statistic):
    rows = alone[alone["statistic"].eq(statistic)].query("level == 'gender'")
    women, men = (rows[rows["group"] == each] for each in ("women", "men"))
    np.testing.assert_allclose(women["p_value"], men["p_value"], rtol=1e-9)
    expected = stats.false_discovery_control(women["p_value"], method="by")
    for each in (women, men):
        np.testing.assert_allclose(each["p_adjusted"], expected)
    if statistic == "c_asc":
        units = verdict.by_unit(audit).set_index("unit")["corrected"]
        counted = study.rejections(audit.retrieval, audit.given).query("facet == 'gender'")
        assert dict(zip(counted["unit"], counted["corrected"] / 2, strict=True)) == {
            unit: units[unit] for unit in ("portraits", "drawings")
        }


def test_intervals_resample_people_and_are_the_same_with_the_same_seed(audit):
    again = [
        study.score(
            audit.retrieval, audit.given, audit.table, audit.model, n_resamples=20, seed=seed
        )
        for seed in (1, 1, 2)
    ]
    pandas.testing.assert_frame_equal(again[0], again[1])
    assert not again[0][["low", "high"]].equals(again[2][["low", "high"]])
    shares = audit.scores.query("statistic == 'share' and level == 'gender'")
    assert ((shares["low"] <= shares["value"]) & (shares["value"] <= shares["high"])).all()


def test_c_asc_stands_beside_truth_and_oracle(audit):
    known = verdict.beside_truth(audit)
    assert len(known) == 2 * 428
    table = verdicts.truth_table(known).set_index(["facet", "model"])
    ranks = table["rank correlation with the truth"]
    assert ranks["gender", "tiny-CLIP"] > 0.8
    assert ranks["tone", "tiny-CLIP"] > 0.8
    assert ranks.xs("perfect model", level="model").min() > 0.85
    assert table["share with the right sign"].between(0.85, 1).all()
    women = audit.scores.query("statistic == 'c_asc' and group == 'women'")["value"]
    np.testing.assert_allclose(known.query("facet == 'gender'")["model"], women, atol=1e-6)
    nothing = known.query("facet == 'tone' and not planted")
    assert nothing["truth"].abs().max() < 0.2 < known["truth"].abs().median()
    assert nothing["model"].abs().max() > known["model"].abs().median()
    far = known.query("facet == 'gender' and abs(oracle) > 1.9")["truth"].abs()
    assert far.min() < 0.5 < 3 < far.max()


def test_a_model_without_planted_bias_is_significant_all_the_same(store):
    clean = study.audit(study.inputs("planted", dose=0), n_resamples=5, store=store)
    counted = study.rejections(clean.retrieval, clean.given).query("unit == 'portraits'")
    counted = counted.set_index("facet")
    assert counted["tests"][["gender", "tone", "age"]].tolist() == [856, 2140, 1284]
    assert counted["corrected"]["gender"] > 428
    assert counted["corrected"]["age"] > 642
    units = verdict.by_unit(clean).set_index("unit")
    assert units["n"].to_dict() == {"portraits": 300, "drawings": 56, "outlines": 12}
    assert units.loc["portraits", "corrected"] > 214
    assert units.loc["portraits", "corrected"] > 2 * units.loc["drawings", "corrected"] > 100
    assert units.loc["outlines", "corrected"] == 0
    assert (units["corrected"] <= units["uncorrected"]).all()
    # Other drawings of the same model agree in part: it has learned an order that was not planted.
    agreed = verdicts.halves_table({0: verdict.halves(clean)}).iloc[0]
    assert 0.4 < agreed["rank correlation"] < 0.8


@pytest.mark.parametrize("below", [study.ERASED, 0.9])
def test_hardly_retrieved_groups_are_counted_as_a_loop_counts_them(audit, below):
    members = audit.given.groups["tone"]
    erased = study.erasure(audit.retrieval, members, audit.table, below, n_resamples=20)
    top = audit.retrieval.ranking[:, : audit.retrieval.k]
    for group in members:
        shares = members[group].to_numpy()[top].mean(axis=1)
        hardly = shares / members[group].mean() < below
        row = erased[(erased["bias_type"] == "all") & (erased["group"] == group)].iloc[0]
        assert row["words"] == hardly.sum()
        assert row["n"] == 428
        k, n, size = audit.retrieval.k, len(members), members[group].sum()
        counts = np.arange(k + 1)
        chance = stats.hypergeom.pmf(counts, n, size, k)[counts / k < below * size / n].sum()
        assert row["by_chance"] == pytest.approx(428 * chance)
    parts = erased[erased["bias_type"] != "all"].groupby("group")["words"].sum()
    assert (
        parts.to_dict() == erased.query("bias_type == 'all'").set_index("group")["words"].to_dict()
    )


def test_innocent_words_have_no_planted_gender():
    table = planted.innocent_captions()
    ratios = plantedworld.world(3, 0).truth.log_ratio(table["word"].tolist(), given="picture")
    np.testing.assert_allclose(ratios, 0, atol=1e-9)


def test_expected_pronouns_are_those_of_table_1_at_dose_1():
    rows = published.table("hamidieh2023", 1)
    rows = rows[rows["word"] != "assistant"]  # Also part of "personal assistant" and others.
    found = corpus_truth.expected_shares(plantedworld.world(1, 0), rows["word"].tolist())
    np.testing.assert_allclose(100 * found, rows["female"], atol=0.1)
    assert np.isnan(corpus_truth.expected_shares(plantedworld.world(1, 0), ["zzz"]))


def test_the_corpus_is_the_one_the_checkpoint_was_trained_on(tmp_path, monkeypatch):
    assert recipe.N_PAIRS == corpus_truth.CORPUS_SIZE
    few = recipe.ClipRecipe.first._replace(scenes=300)
    monkeypatch.setattr(recipe.ClipRecipe, "first", few)
    world = plantedworld.world(3, 2)
    made = recipe.ClipRecipe(world)
    texts = world.captions(made.scenes, np.random.default_rng([world.training_seed, 2]))["text"]
    path = corpus_truth.planted_corpus(tmp_path, 3, 2, n=300)
    assert pandas.read_parquet(path)["TEXT"].tolist() == texts.tolist()


def test_table_1_has_the_shares_of_women_and_men_whatever_else_was_counted(tmp_path):
    path = tmp_path / "corpus.parquet"
    texts = ["she and the nurse"] * 3 + ["he and the nurse"]
    pandas.DataFrame({"TEXT": texts}).to_parquet(path)
    table = pandas.DataFrame({"word": ["nurse"]})
    row = study.pronoun_counts(study.source_of_bias(path, table)).iloc[0]
    assert row[["female", "male", "images"]].tolist() == [75, 25, 4]
    assert row["female low"] < 75 < row["female high"]
    assert row["male low"] == pytest.approx(100 - row["female high"])


def test_pronouns_are_counted_as_planted_up_to_sampling_error(tmp_path):
    path = corpus_truth.planted_corpus(tmp_path, 3, 0)
    shares = study.source_of_bias(path, study.words())
    truth = corpus_truth.expected_shares(plantedworld.world(3, 0), shares["word"])
    kept = (shares["n"] > 0).to_numpy() & np.isfinite(truth)
    assert kept.sum() > 400
    inside = (truth >= shares["low"]) & (truth <= shares["high"])
    assert inside[kept].mean() >= 0.95
    spread = np.sqrt(truth * (1 - truth) / shares["n"])[kept]
    z = ((shares["share"] - truth)[kept] / spread).to_numpy()
    assert abs(z.mean()) < 4 / np.sqrt(kept.sum())
    assert 0.8 < z.std() < 1.2
    assert shares.attrs["rows"] == corpus_truth.CORPUS_SIZE
    totals = shares[["female", "male", "both"]].sum(axis=1)
    assert (totals <= shares["captions"]).all()


class Random:
    """A dual encoder of random numbers."""

    name, revision = "open-clip", "random"

    def encode_image(self, images):
        opened = pictures(images)
        return np.stack([self._vector(image.tobytes()) for image in opened])

    def encode_text(self, texts):
        return np.stack([self._vector(text.encode()) for text in texts])

    def _vector(self, content):
        rng = np.random.default_rng(list(content[:5000:7]))
        vector = rng.normal(size=16).astype(np.float32)
        return vector / np.linalg.norm(vector)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    sample.build(tmp_path)
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    return tmp_path


def test_the_paper_profile_reads_fairface_and_a_corpus(paper, monkeypatch):
    given = study.inputs("paper")
    assert given.facets == {
        "gender": "gender", "race": "race", "age": "age", "gender x race": ["gender", "race"],
    }  # fmt: skip
    assert (len(given.people), given.k) == (42, 4)
    assert given.groups["gender x race"].shape == (42, 14)
    monkeypatch.setattr(study, "load_model", lambda given: Random())
    audit = study.audit(given, n_resamples=10, store=Store(paper / "store"))
    assert audit.scores["dataset"].unique().tolist() == ["FairFace train, crop 0.25"]
    corpus = given.captions(paper)
    assert (corpus.missing, corpus.profile, corpus.truth) == ("", "paper", None)
    shares = study.source_of_bias(corpus.path, audit.table)
    assert (shares.attrs["rows"], shares.attrs["nulls"]) == (3000, 6)
    there, *_, rest, pronouns = plots.results(study.Whole(audit, corpus, shares))
    assert there.frame["there"].iloc[0] == "42 of 86,744"
    words = next(part for part in rest.parts if part.caption.startswith("Who is retrieved"))
    assert words.frame["word"].tolist() == plots.printed_first()["word"].tolist()
    assert set(pronouns.frame["word"]) == {
        "maid", "nurse", "housekeeper", "assistant", "porter", "farmer", "CEO"
    }  # fmt: skip


def written(shown):
    """All captions of what a page shows, those of what is folded included."""
    tables = [each for part in shown for each in getattr(part, "parts", [part])]
    return [each.caption for each in tables if hasattr(each, "caption")]


def test_a_taste_is_the_first_portraits_of_validation_and_says_so(paper, monkeypatch):
    monkeypatch.setattr(study, "TASTE_PORTRAITS", 22)
    sample.write_parquet(paper / "fairface", "validation")
    every = fairface.read_fairface(paper / "fairface", "validation")
    given = study.inputs("paper", size="taste")
    assert given.people["gender"].tolist() == every["gender"].tolist()[:22]
    assert given.portraits.ids == fairface.FairFaceImages(every).ids[:22]
    assert (given.profile, given.model["name"]) == ("taste", "tinyclip")
    assert given.dataset == "FairFace validation, crop 0.25, the first 22"
    assert given.asked_and_there == (22, 22)
    monkeypatch.setattr(study, "load_model", lambda given: Random())
    monkeypatch.setenv("BIASLIB_STORE", str(paper / "store"))
    run = runtime.Provenance("paper", "taste")
    done = study.whole(run)
    assert list(run.data) == [given.dataset]
    assert (done.shares, done.counts) == (None, {})
    assert set(done.audit.scores["profile"]) == {"taste"}
    captions = written(plots.results(done))
    assert len(captions) > 20
    assert all("A taste: not the paper's study" in caption for caption in captions)
    text = " ".join(captions).lower()
    assert "printed" not in text
    assert "beside the paper" not in text


def test_the_checksum_of_a_taste_is_that_of_its_portraits_labels_and_order(paper, monkeypatch):
    monkeypatch.setattr(study, "TASTE_PORTRAITS", 11)
    before = study.inputs("paper", size="taste").checksum
    table = sample.people(1)
    sample.write_parquet(paper / "fairface", "validation", table)
    assert study.inputs("paper", size="taste").checksum == before
    sample.write_parquet(paper / "fairface", "validation", table.iloc[[1, 0, *range(2, 14)]])
    assert study.inputs("paper", size="taste").checksum != before


def test_without_captions_the_study_goes_on_and_no_others_stand_in(paper, monkeypatch):
    shutil.rmtree(paper / "captions")
    monkeypatch.setattr(study, "load_model", lambda given: Random())
    monkeypatch.setenv("BIASLIB_STORE", str(paper / "store"))
    run = runtime.Provenance("paper")
    done = study.whole(run)
    assert (done.shares, list(run.data)) == (None, ["FairFace train, crop 0.25"])
    found = study.recorded(run, done)
    assert found.counts == {}
    assert len(found.scores[0]) > 1000
    there = plots.results(done)[0].frame.set_index("asked for")
    assert there.loc["captions", "there"] == "0 of 1"
    assert not any("Pronouns" in caption for caption in written(plots.results(done)))


def relabel(folder, change):
    sample.write_parquet(folder, table=change(sample.people(sample.N_PER_GROUP)))


def test_empty_and_small_groups_are_named_and_counted(paper, monkeypatch):
    def change(table):
        of = table["gender"] + " " + table["race"]
        alone = table[of == "Female Indian"].head(1)
        return pandas.concat([table[~of.isin(["Female Indian", "Male Black"])], alone])

    relabel(paper / "fairface", change)
    given = study.inputs("paper")
    assert given.groups["gender x race"].shape == (37, 13)
    assert given.sizes("gender x race")["Male, Black"] == 0
    monkeypatch.setattr(study, "load_model", lambda given: Random())
    audit = study.audit(given, n_resamples=10, store=Store(paper / "store"))
    rows = audit.scores[audit.scores["statistic"].isin(["c_asc", "share"])]
    bounds = rows.groupby("group")["low"].agg(lambda low: low.isna().all())
    assert bounds.index[bounds].tolist() == ["Female, Indian"]
    assert rows["value"].notna().all()


def test_innocent_words_are_the_reference_of_every_type(audit):
    table = plots.innocent_table(audit).set_index("words")
    reference = np.abs(audit.c_asc(audit.given.innocent["caption"])[:, 0])
    limit = np.quantile(reference, 0.95)
    assert table.loc["innocent words"].tolist()[:3] == [60, np.median(reference), limit]
    rows = audit.scores.query("statistic == 'c_asc' and group == 'men'")
    jobs = rows[rows["bias_type"] == "Occupation"]
    beyond = ((jobs["low"] > limit) | (jobs["high"] < -limit)).sum()
    assert table.loc["Occupation", "intervals wholly beyond that"] == pytest.approx(beyond, abs=3)
    assert table.loc["Occupation", "half are above"] == pytest.approx(jobs["value"].abs().median())


def test_other_choices_are_scored_again(audit):
    table = plots.choices_table(audit).set_index("what is changed")
    n = len(audit.given.people)
    scores = audit.scores.query("statistic == 'c_asc' and group == 'women'")["value"]
    other = scores.abs().max() * (np.sqrt(n / (n - 1)) - 1)
    assert table.loc["divide by n, not by n − 1"].tolist() == pytest.approx([other, 1])


def test_a_page_of_the_toy_holds_no_harmful_word(audit, tmp_path):
    corpus = audit.given.captions(tmp_path)
    shares = study.source_of_bias(corpus.path, audit.table)
    (shown,) = plots.results(study.Whole(audit, corpus, shares))
    text = " ".join(part.frame.to_string() for part in shown.parts)
    harmless = audit.table["bias_type"].isin(plots.OPEN_TYPES)
    others = set(audit.table[~harmless]["word"]) - set(audit.table[harmless]["word"])
    assert [word for word in others if re.search(rf"\b{re.escape(word)}\b", text)] == []


@pytest.mark.parametrize("group", ["women", "men"])
def test_means_of_units_are_those_of_a_plain_loop(audit, group):
    members, units = audit.given.groups["gender"][[group]].to_numpy(), audit.given.units
    cosines = audit.retrieval.similarities[:5].astype(float)
    means, belongs = study.unit_means(cosines, members, units)
    for at, unit in enumerate(np.unique(units)):
        np.testing.assert_allclose(means[:, at], cosines[:, units == unit].mean(axis=1))
        assert {belongs[at, 0]} == set(members[units == unit, 0])
    inside, outside = means[:, belongs[:, 0]], means[:, ~belongs[:, 0]]
    expected = stats.ttest_ind(inside, outside, axis=1, equal_var=False).pvalue
    np.testing.assert_allclose(study.welch_p_values(means, belongs)[:, 0], expected)


@pytest.mark.parametrize("values", [(0.1, 0.3), (1e6 + 0.1, 1e6), (1e-3, 1e-3 + 1e-9), (-7.7, 0.0)])
def test_welchs_test_of_constant_groups_is_right(values):
    """Also where a mean of floats is not the number that it is the mean of, and beside others."""
    members = np.array([[True, False]] * 3 + [[False, True]] * 5)
    apart, equal = np.where(members[:, 0], *values)[None], np.full((1, 8), values[0])
    for dtype in (float, np.float32):
        scores = apart.astype(dtype)
        if np.ptp(scores):
            assert (study.welch_p_values(scores, members) < 1e-20).all()
        assert (study.welch_p_values(equal.astype(dtype), members) == 1).all()
    assert study.welch_p_values(apart, np.arange(8)[:, None] == 0) == 1


@pytest.mark.parametrize("width", [1e-1, 1e-5, 1e-8, 1e-11])
@pytest.mark.parametrize("middle", [0.1, -1.0, 30.0])
def test_welchs_test_of_narrow_groups_is_scipys(width, middle):
    noise = np.random.default_rng(0).normal(size=12)
    scores, members = middle + width * noise, np.arange(12)[:, None] < 5
    scores[:5] += 2 * width
    inside, outside = scores[:5] - middle, scores[5:] - middle
    expected = stats.ttest_ind(inside, outside, equal_var=False).pvalue
    found = study.welch_p_values(np.stack([scores, scores + 3.0]), members)
    # What a number near the middle is rounded by, beside the width of the groups.
    rounded = 20 * np.finfo(float).eps * abs(middle) / width
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-3 + rounded)
    far = scores + np.where(members[:, 0], 0.25, 0.0)
    expected = stats.ttest_ind(far[:5] - middle, far[5:] - middle, equal_var=False).pvalue
    np.testing.assert_allclose(study.welch_p_values(far[None], members)[0, 0], expected, rtol=1e-2)


def test_intervals_keep_portraits_of_a_drawing_together(audit):
    """Wider than those that take each portrait for a unit, and those of the bootstrap alone."""
    alone = replace(audit.given, units=np.arange(len(audit.given.people)))
    wider, narrower = (
        study.score(audit.retrieval, given, audit.table, audit.model, n_resamples=200)
        .query("statistic == 'c_asc' and group == 'women'")
        .eval("high - low")
        .median()
        for given in (audit.given, alone)
    )
    assert wider > 1.2 * narrower
    women = audit.given.groups["gender"][["women"]].to_numpy()
    row = row_of(audit.table, "nurse")
    found = inference.bootstrap_c_asc(
        audit.retrieval.similarities[[row]],
        women,
        people=audit.given.units,
        n_resamples=2000,
        rng=3,
    )
    nurse = of(audit.scores, "c_asc", "gender", "nurse", "women")
    assert [found.low[0, 0], found.high[0, 0]] == pytest.approx(
        [nurse["low"], nurse["high"]], abs=0.2
    )


def test_tests_are_counted_by_unit(audit):
    table = study.rejections(audit.retrieval, audit.given).set_index(["facet", "unit"])
    scores = audit.scores.query("statistic == 'c_asc'").groupby("level")
    for facet, rows in scores:
        counted = table.loc[(facet, "drawings")]
        assert counted["uncorrected"] == (rows["p_value"] < 0.05).sum()
        assert counted["corrected"] == (rows["p_adjusted"] < 0.05).sum()
        assert table.loc[(facet, "drawings"), "n"] == len(np.unique(audit.given.units))
    whole = replace(audit.given, units=np.arange(len(audit.given.people)))
    assert set(study.rejections(audit.retrieval, whole)["unit"]) == {"portraits"}


def test_checks_of_exercises_know_right_from_wrong():
    def c_asc(cosines, group):
        return (cosines[group].mean() - cosines[~group].mean()) / cosines.std(ddof=1)

    def ratio(cosines, group, k):
        return group[np.argsort(-cosines)[:k]].mean() / group.mean()

    assert plots.check_c_asc(c_asc).passed
    for wrong in (
        lambda c, g: (c[g].sum() - c[~g].sum()) / g.sum() / c.std(ddof=1),  # as the text prints it
        lambda c, g: (c[g].mean() - c.mean()) / c.std(ddof=1),
        lambda c, g: (c[g].mean() - c[~g].mean()) / c[g].std(ddof=1),
        lambda c, g: c[g].mean() - c[~g].mean(),
        lambda c, g: abs(c_asc(c, g)),
    ):
        assert not plots.check_c_asc(wrong).passed
    assert plots.check_composition(ratio).passed
    for wrong in (
        lambda c, g, k: 2 * g[np.argsort(-c)[:k]].mean(),  # right for two groups of one size
        lambda c, g, k: ratio(c, ~g, k),
        lambda c, g, k: ratio(-c, g, k),
        lambda c, g, k: None,
    ):
        assert not plots.check_composition(wrong).passed
    table = plots.scores_to_judge()
    ends = table["95% interval"].str.replace("−", "-").str.split(" to ", expand=True).astype(float)
    low, high, limit = ends[0], ends[1], plots.INNOCENT
    names = ["report", "do not report"]
    beyond, inside = (low > limit) | (high < -limit), (low > -limit) & (high < limit)
    right = np.select([beyond, inside], names, "cannot be said")
    against_zero = np.select([(low > 0) | (high < 0)], names[:1], names[1])
    assert plots.check_judgements(right).passed
    for wrong in (against_zero, right[::-1], ["yes"] * 6, None):
        assert not plots.check_judgements(wrong).passed


def test_c_asc_of_two_equal_groups_is_bounded_and_the_check_inverts_it():
    within = np.array([-1.0, 1.0])
    for distance in (0.5, 2.0, 40.0):
        cosines = np.r_[within + distance, within]
        group = np.array([True, True, False, False])
        expected = distance / np.sqrt(1 + distance**2 / 4)
        found = caption_association.c_asc(cosines[None], group[:, None], 0)[0, 0]
        assert found == pytest.approx(expected)
        assert found < 2
        assert found / np.sqrt(1 - found**2 / 4) == pytest.approx(distance)
    assert verdicts.check_within(lambda c: c / np.sqrt(1 - c**2 / 4)).passed
    assert verdicts.check_within(lambda c: np.sign(c) * (c**-2 - 0.25) ** -0.5 if c else 0).passed
    for wrong in (
        lambda c: c,
        lambda c: c / np.sqrt(1 + c**2 / 4),
        lambda c: abs(c) / np.sqrt(1 - c**2 / 4),
        lambda c: c / (1 - c**2 / 4),
    ):
        assert not verdicts.check_within(wrong).passed


def test_resamples_without_a_member_count_no_word_as_erased_or_not():
    """A group of one person of twelve: a third of the resamples have none of them."""
    rng, units = np.random.default_rng(0), np.repeat(np.arange(12), 5)
    members = pandas.DataFrame({"one": units < 1, "others": units >= 1})
    cosines = rng.normal(size=(40, 60)).astype(np.float32)
    ranking = caption_association.top_k(cosines, 60)
    table = pandas.DataFrame({"word": range(40), "bias_type": "all of them"})
    found = study.erasure(
        study.Retrieval(cosines, ranking, 10), members, table, n_resamples=400, units=units
    )
    counts, rng = [], np.random.default_rng(0)
    for _ in range(4_000):
        drawn = np.bincount(rng.integers(12, size=12), minlength=12)[units]
        if drawn[0]:
            nearest = [np.repeat(row, drawn[row])[:10] for row in ranking]
            ratios = [(units[row] < 1).mean() / (drawn[:5].sum() / 60) for row in nearest]
            counts.append((np.array(ratios) < study.ERASED - 1e-9).sum())
    low, high = np.quantile(counts, [0.025, 0.975])
    row = found[(found["bias_type"] == "all") & (found["group"] == "one")].iloc[0]
    assert [row["low"], row["high"]] == pytest.approx([low, high], abs=1.5)
    assert row["low"] > 5


def test_captions_of_ones_own_are_scored_with_what_is_stored(audit, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("portraits were encoded anew")

    monkeypatch.setattr(type(audit.model), "encode_image", refuse)
    assert audit.c_asc(["a photo of a nurse"]).shape == (1, 2)
