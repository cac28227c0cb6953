"""Study 3: scores against plain loops, SciPy and the planted truth; kills, processes, figures."""

import csv
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import matplotlib.figure
import numpy as np
import pandas
import pytest
from PIL import Image
from scipy import stats
from support import rehearsal_clip_audit as sample

import plantedworld
from biaslib import inference, published, stimuli
from biaslib.datasets import DataError, captions, fairface
from biaslib.metrics import caption_association
from biaslib.models import processes
from biaslib.models.images import pictures
from biaslib.runtime import Store, UnknownNameError
from biaslib.studies import study3_clip_audit as study
from companion import planted_study3_clip_audit as verdicts
from companion import study3_clip_audit as plots
from plantedworld import corpus as corpus_truth
from plantedworld.inputs import study3_clip_audit as planted
from plantedworld.studies import study3_clip_audit as verdict
from plantedworld.training import clip as recipe

ROOT = Path(__file__).parents[1]


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
    assert scores["bias_type"].nunique() == 10
    assert scores[["study", "model", "profile"]].drop_duplicates().values.tolist() == [
        ["hamidieh2023", "clip", "planted"]
    ]
    assert scores["revision"].str.startswith("clip-dose3-seed0, sha256").all()


@pytest.mark.parametrize(
    ("level", "group"), [("gender", "women"), ("gender x tone", "men, tone 4")]
)
def test_scores_are_those_of_a_plain_loop(audit, level, group):
    people, found = audit.given.people, audit.found
    label = people["gender"] if level == "gender" else people["gender"] + ", " + people["tone"]
    member, n, k = (label == group).to_numpy(), len(people), audit.given.k
    for word in ("nurse", "fixing cars", "police officer"):
        cosines = found.similarities[row_of(audit.table, word)].astype(float)
        inside, outside = cosines[member], cosines[~member]
        c_asc = of(audit.scores, "c_asc", level, word, group)
        expected = (inside.mean() - outside.mean()) / cosines.std(ddof=1)
        assert c_asc["value"] == pytest.approx(expected, abs=1e-9)
        assert c_asc["low"] < expected < c_asc["high"]
        p_value = stats.ttest_ind(inside, outside, equal_var=False).pvalue
        assert c_asc["p_value"] == pytest.approx(p_value, rel=1e-6, abs=1e-300)
        top = np.argsort(-cosines, kind="stable")[:k]
        count = int(member[top].sum())
        share = of(audit.scores, "share", level, word, group)
        assert share["value"] == count / k
        null = stats.hypergeom(n, member.sum(), k)
        tail = min(2 * min(null.sf(count - 1), null.cdf(count)), 1)
        assert share["p_value"] == pytest.approx(tail, rel=1e-6)
        skew = of(audit.scores, "skew", level, word, group)["value"]
        smoothed = (count + member.mean()) / (k + 1)
        assert skew == pytest.approx(np.log(smoothed / member.mean()))
        parts = label.iloc[top].value_counts(normalize=True)
        entropy = stats.entropy(parts) / np.log(label.nunique())
        assert of(audit.scores, "entropy", level, word, "all")["value"] == pytest.approx(entropy)


def test_the_correction_is_over_all_words_and_groups_of_a_facet(audit):
    for statistic in ("c_asc", "share"):
        rows = audit.scores[audit.scores["statistic"].eq(statistic)].query("level == 'tone'")
        expected = stats.false_discovery_control(rows["p_value"], method="by")
        np.testing.assert_allclose(rows["p_adjusted"], expected)


@pytest.mark.parametrize("statistic", ["c_asc", "share"])
def test_two_groups_have_one_test_of_a_word_which_is_corrected_once(audit, statistic):
    rows = audit.scores[audit.scores["statistic"].eq(statistic)].query("level == 'gender'")
    women, men = (rows[rows["group"] == each] for each in ("women", "men"))
    np.testing.assert_allclose(women["p_value"], men["p_value"], rtol=1e-9)
    expected = stats.false_discovery_control(women["p_value"], method="by")
    for each in (women, men):
        np.testing.assert_allclose(each["p_adjusted"], expected)
    if statistic == "c_asc":
        units = verdict.by_unit(audit).set_index("unit")["corrected"]
        counted = study.rejections(audit.found, audit.given).query("facet == 'gender'")
        assert dict(zip(counted["unit"], counted["corrected"] / 2, strict=True)) == {
            unit: units[unit] for unit in ("portraits", "drawings")
        }


def test_intervals_resample_people_and_are_the_same_with_the_same_seed(audit):
    again = [
        study.score(audit.found, audit.given, audit.table, audit.model, n_resamples=20, seed=seed)
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
    assert ranks.xs("oracle", level="model").min() > 0.85
    assert table["share with the right sign"].between(0.85, 1).all()
    assert "165 of them of the type *Occupation*" in verdicts.bare_by_tone(known)
    assert "12 of the words: by type, 9 of *Behavioral*, " in verdicts.bare_sentence(known)
    assert table.loc["tone", "words without"].tolist() == [177, 177]
    women = audit.scores.query("statistic == 'c_asc' and group == 'women'")["value"]
    np.testing.assert_allclose(known.query("facet == 'gender'")["model"], women, atol=1e-6)
    nothing = known.query("facet == 'tone' and not planted")
    assert nothing["bias_type"].value_counts().head(2).to_dict() == {
        "Occupation": 165, "Behavioral": 9,
    }  # fmt: skip
    assert nothing["truth"].abs().max() < 0.2 < known["truth"].abs().median()
    assert nothing["model"].abs().max() > known["model"].abs().median()
    moved = nothing["truth"].abs().max()
    assert f"words of the place move by up to {moved:.2f}," in verdicts.on_truth(known, "tone")
    far = known.query("facet == 'gender' and abs(oracle) > 1.9")["truth"].abs()
    assert far.min() < 0.5 < 3 < far.max()
    assert f"gives {len(far)} words" in verdicts.saturated(known)
    assert f"from ±{far.min():.2f} to ±{far.max():.2f}" in verdicts.saturated(known)
    assert "all words but 0" in verdicts.saturated(known.assign(oracle=0.0))
    figure = verdicts.truth_figure(known)
    assert figure.get_suptitle() == "planted world"
    axis = figure.axes[0]
    assert axis.get_ylim()[1] > known.query("facet == 'gender'")["oracle"].max()


def test_a_model_without_planted_bias_is_significant_all_the_same(store):
    clean = study.audit(study.inputs("planted", dose=0), n_resamples=5, store=store)
    found = clean.scores.query("statistic == 'c_asc'").groupby("level")["p_adjusted"]
    assert found.size()[["gender", "tone", "age"]].tolist() == [856, 2140, 1284]
    corrected = found.agg(lambda p_values: (p_values < 0.05).sum())
    assert corrected["gender"] > 428
    assert corrected["age"] > 642
    units = verdict.by_unit(clean).set_index("unit")
    assert units["n"].to_dict() == {"portraits": 300, "drawings": 56, "outlines": 12}
    assert units.loc["portraits", "corrected"] > 214
    assert units.loc["portraits", "corrected"] > 2 * units.loc["drawings", "corrected"] > 100
    assert units.loc["outlines", "corrected"] == 0
    assert (units["corrected"] <= units["uncorrected"]).all()
    # Other drawings of the same model agree in part: it has learned an order that was not planted.
    agreed = verdicts.halves_table({0: verdict.halves(clean)}).iloc[0]
    assert 0.4 < agreed["rank correlation"] < 0.8


def test_an_audit_of_a_real_model_is_not_taken_for_one_of_the_planted_world(audit):
    assert verdict.in_planted_world(audit) is audit


def test_occupations_that_name_a_gender_are_starred(audit):
    listed = set(audit.table.query("bias_type == 'Occupation'")["word"])
    assert set(stimuli.GENDERED_OCCUPATIONS) <= listed
    every = plots.top_words(audit.scores, "gender", "Occupation", 166)
    starred = every["women"][every["women"].str.contains("*", regex=False)].str.split("*").str[0]
    assert set(starred) == set(stimuli.GENDERED_OCCUPATIONS)


@pytest.mark.parametrize("below", [study.ERASED, 0.9])
def test_hardly_retrieved_groups_are_counted_as_a_loop_counts_them(audit, below):
    members = audit.given.groups["tone"]
    erased = study.erasure(audit.found, members, audit.table, below, n_resamples=20)
    top = audit.found.ranking[:, : audit.found.k]
    for group in members:
        shares = members[group].to_numpy()[top].mean(axis=1)
        hardly = shares / members[group].mean() < below
        row = erased[(erased["bias_type"] == "all") & (erased["group"] == group)].iloc[0]
        assert row["words"] == hardly.sum()
        assert row["n"] == 428
        k, n, size = audit.found.k, len(members), members[group].sum()
        counts = np.arange(k + 1)
        chance = stats.hypergeom.pmf(counts, n, size, k)[counts / k < below * size / n].sum()
        assert row["by_chance"] == pytest.approx(428 * chance)
    parts = erased[erased["bias_type"] != "all"].groupby("group")["words"].sum()
    assert (
        parts.to_dict() == erased.query("bias_type == 'all'").set_index("group")["words"].to_dict()
    )


def test_open_choices_are_switched_one_at_a_time(audit, store):
    crops = study.other_crops(audit.model, audit.given, store)
    moved = study.sensitivity(audit.model, audit.given, audit.table, audit.found, crops, store)
    assert moved["choice"].unique().tolist() == ["ddof", "template", "crop", "k"]
    ddof = moved.iloc[0]
    n = len(audit.given.people)
    women = audit.scores.query("statistic == 'c_asc' and group == 'women'")["value"]
    assert ddof["mean change"] == pytest.approx(women.abs().mean() * (np.sqrt(n / (n - 1)) - 1))
    assert ddof["rank correlation"] == pytest.approx(1, abs=1e-12)
    assert ddof["top 10 kept"] == 10
    assert (moved["rank correlation"] < 1 - 1e-9).sum() >= 4
    said = plots.most_moved(moved, audit.found.k)
    assert f"moves C-ASC by {ddof['largest change']:.4f} at most" in said
    assert f"{moved['top 10 kept'].min()} to 10 of the first ten words" in said
    assert ("less stable" in said) == (moved["rank correlation"].min() > 0.9)
    loose = moved.assign(**{"rank correlation": 0.1})
    assert "less stable" not in plots.most_moved(loose, audit.found.k)


def test_innocent_words_have_no_planted_gender():
    table = planted.innocent_captions()
    ratios = plantedworld.world(3, 0).truth.log_ratio(table["word"].tolist(), given="picture")
    np.testing.assert_allclose(ratios, 0, atol=1e-9)


def test_innocent_things_are_those_that_were_checked_word_by_word():
    assert " ".join(stimuli.innocent_things()) == (
        "anchor balcony basin bench boulder brick bridge cable canal chimney cliff cloud corridor "
        "crate cube dome drain envelope fence fountain gate glacier hill hinge hook iceberg island "
        "jar ladder lake lamp lantern leaf lever lid lighthouse magnet mountain pebble pencil "
        "plank pond puddle river rope shelf stair stone table tent tile tower tree tunnel valley "
        "valve wall waterfall wheel window"
    )
    things = study.innocent_captions()
    listed = {word.lower() for word in (*stimuli.all_words(), *study.words()["word"])}
    listed |= set(stimuli.entities()["entity"]) | set(plantedworld.content_words().index)
    assert not set(things["word"]) & listed
    captions = things.set_index("word")["caption"]
    assert captions["anchor"] == "a photo of an anchor"
    assert captions["tile"] == "a photo of a tile"
    assert not captions.str.contains("person").any()


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
    turned = dict(reversed(captions.PRONOUNS.items()))
    with pytest.raises(ValueError, match="in this order; these are male, female"):
        study.pronoun_counts(study.source_of_bias(path, table, turned))


def test_pronouns_are_counted_as_planted_up_to_sampling_error(tmp_path):
    table = study.words()
    path = corpus_truth.planted_corpus(tmp_path, 3, 0)
    shares = study.source_of_bias(path, table)
    truth = corpus_truth.expected_shares(plantedworld.world(3, 0), shares["word"])
    kept = (shares["n"] > 0).to_numpy() & np.isfinite(truth)
    assert kept.sum() > 400
    inside = (truth >= shares["low"]) & (truth <= shares["high"])
    assert inside[kept].mean() >= 0.95
    spread = np.sqrt(truth * (1 - truth) / shares["n"])[kept]
    z = ((shares["share"] - truth)[kept] / spread).to_numpy()
    assert abs(z.mean()) < 4 / np.sqrt(kept.sum())
    assert 0.8 < z.std() < 1.2
    found = verdict.against_truth(shares, truth)
    assert found["words"] == kept.sum()
    assert [found["mean"], found["spread"]] == pytest.approx([z.mean(), z.std(ddof=1)])
    assert found["inside"] >= inside[kept].mean()
    assert "the count is right" in verdicts.recovered(found)
    off = verdict.against_truth(shares, np.clip(truth + 0.1, 0, 1))
    assert "the count is off" in verdicts.recovered(off)
    world = plantedworld.world(3, 0)
    corpus = study.Corpus(path, lambda words: corpus_truth.expected_shares(world, words), "planted")
    told = plots.pronoun_sentence(corpus, shares, ["nurse", "no such word"])
    nurse = shares.set_index("word").loc["nurse"]
    assert f"with *nurse*, {nurse['share']:.0%} ({nurse['low']:.0%} to" in told
    assert told.count("; planted: ") == 1
    assert "captions of the planted world, none of them empty" in told
    assert "no such word" not in told
    assert shares.attrs["rows"] == corpus_truth.CORPUS_SIZE
    totals = shares[["female", "male", "both"]].sum(axis=1)
    assert (totals <= shares["captions"]).all()


def test_a_run_that_is_stopped_goes_on_and_gives_the_same_embeddings(tmp_path):
    """What a killed process leaves is tested with the store."""
    given = study.inputs("planted", n_per_cell=3)
    model = study.load_model(given)
    encode, computed = model.encode_image, []

    def counting(images):
        if len(computed) == 2:
            computed.append(0)
            raise KeyboardInterrupt
        computed.append(len(images))
        return encode(images)

    model.encode_image = counting
    with pytest.raises(KeyboardInterrupt):
        study.embed_images(model, given.portraits, Store(tmp_path / "stopped"), shard_size=8)
    assert computed == [8, 8, 0]
    resumed = study.embed_images(model, given.portraits, Store(tmp_path / "stopped"), shard_size=8)
    assert sum(computed) == 30
    fresh = study.embed_images(model, given.portraits, Store(tmp_path / "fresh"), shard_size=8)
    np.testing.assert_allclose(resumed, fresh, atol=1e-5)


@pytest.mark.slow
def test_two_processes_share_the_portraits(tmp_path):
    pytest.importorskip("accelerate", reason="Accelerate is not there: biaslib[several-gpus]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    common |= {
        "ACCELERATE_USE_CPU": "true",
        "BIASLIB_STORE": str(tmp_path),
        "LOCAL_WORLD_SIZE": "2",
    }
    command = [sys.executable, "-m", "biaslib.studies.study3_clip_audit", "--portraits", "3"]
    started = [
        subprocess.Popen(
            [*command, "--profile", "planted"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[0].strip().splitlines()[-1] for process in started]
    assert said == [
        f"process {rank} of 2: 30 portraits, 428 captions in the store" for rank in (1, 2)
    ]
    given = study.inputs("planted", n_per_cell=3)
    model = study.load_model(given)
    stored = study.embed_images(model, given.portraits, Store(tmp_path))
    alone = model.encode_image(given.portraits)
    np.testing.assert_allclose(stored, alone, atol=1e-6)


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


class FakeState:
    """Accelerate's state of the first of two processes, on cards that are not there."""

    events: ClassVar[list] = []
    process_index, num_processes = 0, 2

    def __init__(self, **options):
        self.events.append(("state", options["timeout"]))

    def wait_for_everyone(self):
        self.events.append(("wait",))


def test_a_process_has_its_card_before_its_model_and_shares_what_is_missing(tmp_path, monkeypatch):
    class Counting(Random):
        def encode_image(self, images):
            FakeState.events.append(("encode", len(images)))
            return super().encode_image(images)

    def load(name, **options):
        FakeState.events.append(("load", name))
        return Counting()

    given = study.inputs("planted", n_per_cell=3)
    store = Store(tmp_path)
    study.embed_images(Random(), given.portraits.part(range(4)), store)
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", SimpleNamespace(PartialState=FakeState))
    monkeypatch.setattr(study.models, "load", load)
    monkeypatch.setattr(FakeState, "events", [])
    study.main(["--profile", "planted", "--portraits", "3", "--model", "clip"])
    said = [event for event in FakeState.events if event[0] != "state"]
    # 4 of 30 are there; the other process is not, so that its half is computed at the end.
    assert said == [
        ("load", "clip"), ("wait",), ("encode", 13), ("wait",), ("encode", 13),
    ]  # fmt: skip
    assert FakeState.events[0] == ("state", processes.PATIENCE)
    assert processes.PATIENCE.total_seconds() >= 24 * 3600


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
    lists = plots.folded_lists(audit.scores, given)
    assert all(each.folded and "harmful words included" in each.caption for each in lists)
    assert len(lists) == 1 + 2 + audit.scores["bias_type"].nunique()
    assert len(lists[0].frame) == 11
    corpus = given.captions(paper)
    assert (corpus.missing, corpus.profile) == ("", "paper")
    shares = study.source_of_bias(corpus.path, audit.table)
    assert (shares.attrs["rows"], shares.attrs["nulls"]) == (3000, 6)
    assert corpus.truth is None
    other = study.other_crops(audit.model, given, Store(paper / "store"))
    assert other["crop 1.25"].shape == (42, 16)
    shutil.rmtree(paper / "fairface" / sample.OTHER_CROP)
    assert study.other_crops(audit.model, given, Store(paper / "store")) == {}
    folders, both = paper / "fairface", paper / "both" / "fairface"
    for name in ("margin025", "margin125"):
        shutil.copytree(folders, both / name)
    for image in (both / "margin125" / "train").iterdir():
        Image.open(image).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(image)
    monkeypatch.setenv("BIASLIB_DATA", str(paper / "both"))
    other = study.other_crops(audit.model, study.inputs("paper"), Store(paper / "store"))
    assert other["crop 1.25"].shape == (42, 16)


def test_missing_data_say_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("BIASLIB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Put there: train/, val/ and"):
        study.inputs("paper")
    sample.write_folders(tmp_path / "fairface")
    corpus = study.inputs("paper").captions(tmp_path)
    assert "parquet files with a column of captions" in corpus.missing
    assert corpus.profile == "planted"
    assert corpus.path.parent == tmp_path
    expected = corpus_truth.expected_shares(plantedworld.world(3, 0), ["nurse"])
    assert corpus.truth(["nurse"]) == expected


def relabel(folder, change):
    path = folder / "fairface_label_train.csv"
    change(pandas.read_csv(path)).to_csv(path, index=False)


def test_a_facet_with_one_group_is_refused_with_names_and_counts(paper):
    relabel(paper / "fairface", lambda table: table[table["gender"] == "Male"])
    message = r"gender: no portrait is labelled 'Female' \('Male' has 21\).*nothing to compare"
    with pytest.raises(DataError, match=message):
        study.inputs("paper")


def test_empty_and_small_groups_are_named_and_counted(paper, monkeypatch):
    def change(table):
        of = table["gender"] + " " + table["race"]
        alone = table[of == "Female Indian"].head(1)
        return pandas.concat([table[~of.isin(["Female Indian", "Male Black"])], alone])

    relabel(paper / "fairface", change)
    given = study.inputs("paper")
    assert given.groups["gender x race"].shape == (37, 13)
    assert given.sizes("gender x race")["Male, Black"] == 0
    assert given.notes[0] == "37 portraits in the split train; 86,744 were released"
    assert "gender x race: no portrait is labelled 'Male, Black'; left out" in given.notes
    small = next(note for note in given.notes if note.startswith("gender x race: 13 of 14"))
    assert "fewer than 10 portraits, 'Female, Indian' (1), 'Female, East Asian' (3)" in small
    monkeypatch.setattr(study, "load_model", lambda given: Random())
    audit = study.audit(given, n_resamples=10, store=Store(paper / "store"))
    rows = audit.scores[audit.scores["statistic"].isin(["c_asc", "share"])]
    bounds = rows.groupby("group")["low"].agg(lambda low: low.isna().all())
    assert bounds.index[bounds].tolist() == ["Female, Indian"]
    assert rows["value"].notna().all()


def test_groups_are_drawn_equal_and_other_crops_follow(paper, monkeypatch):
    folders, both = paper / "fairface", paper / "both" / "fairface"
    for name in ("margin025", "margin125"):
        shutil.copytree(folders, both / name)
        relabel(both / name, lambda table: table.drop(index=[0, 25]))
    for image in (both / "margin125" / "train").iterdir():
        Image.open(image).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(image)
    monkeypatch.setenv("BIASLIB_DATA", str(paper / "both"))
    given = study.inputs("paper", equal=True, seed=4)
    assert given.groups["gender x race"].sum().unique().tolist() == [2]
    assert given.dataset == "FairFace train, crop 0.25, equal groups"
    found = study.other_crops(Random(), given, Store(paper / "store"))["crop 1.25"]
    shown = [both / "margin125" / file for file in given.people["file"]]
    np.testing.assert_array_equal(found, Random().encode_image(shown))
    relabel(both / "margin125", lambda table: table.assign(age="0-2"))
    with pytest.raises(DataError, match="hold different portraits"):
        study.other_crops(Random(), given, Store(paper / "store"))
    (both / "margin125" / "train" / "3.jpg").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"cannot be opened \(1, such as train/3\.jpg"):
        study.other_crops(Random(), given, Store(paper / "store"))
    shutil.rmtree(both / "margin125")
    assert study.other_crops(Random(), given, Store(paper / "store")) == {}


def test_any_dual_encoder_can_be_named(paper):
    given = study.inputs("paper", model="clip", checkpoint="some/where")
    assert given.model == {"checkpoint": "some/where", "name": "clip", "profile": "paper"}
    flava = study.inputs("planted", dose=0, n_per_cell=3, model="flava")
    assert study.load_model(flava).name == "flava"
    assert (
        study.embed_texts(study.load_model(flava), ["a photo of a nurse"], Store(paper)).ndim == 2
    )


def test_checksums_change_with_portraits_labels_and_corpora(paper):
    given = study.inputs("paper")
    assert study.inputs("paper").checksum == given.checksum
    corpus = given.captions(paper).checksum
    relabel(paper / "fairface", lambda table: table.assign(age="0-2").iloc[::-1])
    sample.write_corpus(paper / "captions", n=100)
    other = study.inputs("paper", split="validation")
    assert len({given.checksum, other.checksum}) == 2
    assert given.captions(paper).checksum != corpus


def test_the_cost_reckons_with_what_the_benchmark_measured():
    with open(ROOT / "benchmarks" / "results" / "full_size.csv", encoding="utf-8") as stream:
        rows = {row["family"]: row for row in csv.DictReader(stream)}
    assert float(rows["open-clip ViT-H-14"]["seconds per batch"]) == study.COST["cpu_seconds"]
    table = study.cost().set_index("device")
    assert table.loc["one CPU thread", "hours"] == pytest.approx(86_744 / 4 * 9.21 / 3600)
    rates = table.set_index("precision", append=True)["images a second"]
    assert rates["T4", "float16"] == pytest.approx(65e12 * 0.3 / 335e9)
    assert rates["T4", "float32"] == pytest.approx(8.1e12 * 0.3 / 335e9)
    assert rates["H100", "bfloat16"] / rates["H100", "float32"] == pytest.approx(989 / 67)
    assert table["standing"].tolist() == ["measured"] + ["estimate until measured"] * 4


def test_tables_and_figures_show_the_scores(audit):
    scores, given = audit.scores, audit.given
    top = plots.top_words(scores, "gender", "Occupation", 3)
    rows = scores.query("bias_type == 'Occupation' and statistic == 'c_asc' and group == 'women'")
    best = rows.sort_values("value", ascending=False).iloc[0]
    star = "*" if best["test"] in stimuli.GENDERED_OCCUPATIONS else ""
    assert top["women"].iloc[0] == f"{best['test']}{star} {best['value']:.2f}"
    words = plots.unevenest(scores, "gender x tone", "Activity", 4)
    entropies = scores.query(
        "bias_type == 'Activity' and statistic == 'entropy' and level == 'gender x tone'"
    )
    assert entropies.set_index("test").loc[words, "value"].is_monotonic_increasing
    table = plots.composition_table(scores, "gender x tone", "Activity", words)
    np.testing.assert_allclose(table.drop(columns="word").sum(axis=1), 1)
    figures = [
        plots.flow(audit.found.similarities[0], given, "a photo of a nurse"),
        plots.composition(scores, "gender x tone", {"Activity": words}),
        plots.innocent_figure(scores, np.array([0.1, -0.2, 0.3])),
    ]
    assert all(isinstance(each, matplotlib.figure.Figure) for each in figures)
    assert {each.get_suptitle() for each in figures} == {"planted world"}
    assert len(plots.printed_lists([4])) == 2
    assert "nurse 69.0% of 18,742" in plots.printed_gender_lists()["as printed"].iloc[-1]


def test_the_mark_of_the_figure_of_erasure_lies_beside_its_key(audit):
    rows = study.erasure(audit.found, audit.given.groups["tone"], audit.table, n_resamples=5)
    figure = plots.erasure_figure({"one model": rows})
    figure.draw_without_rendering()
    note, key = (each.get_window_extent() for each in (figure._suptitle, *figure.legends))
    assert not note.overlaps(key)


def test_the_flow_of_a_word_shows_the_means_and_the_first_hits(audit):
    row = row_of(audit.table, "nurse")
    shown = plots.flow_table(audit.found.similarities[row], audit.given).set_index("group")
    share = of(audit.scores, "share", "gender", "nurse", "women")["value"]
    assert shown.loc["women", "share of the retrieved"] == share
    women = audit.given.groups["gender"]["women"].to_numpy()
    mean = audit.found.similarities[row][women].mean()
    assert shown.loc["women", "mean cosine"] == pytest.approx(mean)


def test_compositions_stand_below_each_other(audit):
    words = {"Occupation": ("nurse", "chef"), "Activity": ("sewing",)}
    table = plots.compositions(audit.scores, "gender", words)
    assert table["word"].tolist() == ["nurse", "chef", "sewing"]
    assert (
        table.loc[table["word"] == "nurse", "women"].item()
        == (of(audit.scores, "share", "gender", "nurse", "women")["value"])
    )


def test_nothing_harmful_is_listed_of_the_planted_world(audit):
    assert plots.folded_lists(audit.scores, audit.given) == []
    assert plots.beside_tables(audit.scores) == []


def test_who_comes_up_is_what_the_captions_of_the_paper_say():
    first = plots.printed_first().set_index("word")
    assert first.loc["homemaker", ["C-ASC by gender", "C-ASC by race"]].tolist() == [1.14, 0.5]
    assert first.loc["hacker", "C-ASC by race"] == 0.24
    assert first.loc["CEO", ["C-ASC by gender", "C-ASC by race"]].isna().all()
    assert first.filter(like="C-ASC").notna().sum().tolist() == [2, 8]
    axis = plots.printed_intersections().axes[0]
    races = [
        label.get_text().replace("/\n", "/").replace("\n", " ") for label in axis.get_xticklabels()
    ]
    words = [label.get_text() for label in axis.get_yticklabels()]
    marks = {
        (line.get_label(), words[int(y)], races[int(x)])
        for line in axis.lines
        for x, y in zip(*line.get_data(), strict=True)
    }
    assert marks == set(zip(first["gender"], first.index, first["race"], strict=True))


def test_figures_take_any_words_and_name_one_that_was_not_scored(audit):
    known = study.words()[["bias_type", "word"]].apply(tuple, axis=1).tolist()
    for kind, words in plots.FIGURE_WORDS.items():
        assert {(kind, word) for word in words} <= set(known)
    figure = plots.composition(audit.scores, "gender x tone", plots.FIGURE_WORDS)
    rows = [[each.get_text() for each in axis.get_yticklabels()] for axis in figure.axes]
    assert rows == [list(words) for words in plots.FIGURE_WORDS.values()]
    with pytest.raises(UnknownNameError, match=r"word of the type Occupation 'shy'\."):
        plots.composition(audit.scores, "gender", {"Occupation": ["shy"]})


@pytest.mark.parametrize("number", range(3, 19))
def test_lists_are_as_long_as_those_of_the_paper(number):
    printed = published.table("hamidieh2023", number)
    facet = "gender" if number < 7 else "race"
    longest = {8: 10, 18: 10}.get(number, int(printed.groupby("group").size().max()))
    assert plots.list_length(facet, printed["category"].iloc[0]) == longest


def test_the_words_printed_outside_of_their_type_are_six_in_nineteen_cells():
    outside = stimuli.printed_outside()
    assert outside.groupby("printed_in").size().to_dict() == {
        "Table 13": 2,
        "Table 17": 1,
        "Table 18": 3,
    }
    assert len(study.words(outside=True)) == 428 + 6
    assert not study.words(outside=True).duplicated(["word", "bias_type"]).any()
    printed = pandas.concat(published.table("hamidieh2023", number) for number in range(3, 19))
    keys = [printed["word"], printed["category"]]
    pairs = set(outside[["word", "bias_type"]].itertuples(index=False, name=None))
    assert sum(pair in pairs for pair in zip(*keys, strict=True)) == 19


def test_every_printed_cell_finds_the_score_of_its_word_type_and_group():
    """Scores that are the printed ones stand beside themselves: 709 of 709."""
    printed = pandas.concat(published.table("hamidieh2023", number) for number in range(3, 19))
    scores = pandas.DataFrame(
        {
            "profile": "paper",
            "statistic": "c_asc",
            "level": np.where(printed["facet"] == "gender", "gender", "race"),
            "test": printed["word"],
            "bias_type": printed["category"],
            "group": printed["group"].replace("Latino/Hispanic", "Latino_Hispanic"),
            "value": printed["casc"],
            "low": printed["casc"],
            "high": printed["casc"],
        }
    ).drop_duplicates(["level", "test", "bias_type", "group"])
    assert set(scores["group"]) == {*fairface.GENDERS, *fairface.RACES}
    beside = plots.printed_beside(scores, range(3, 19))
    assert len(beside) == 709
    ours = beside["this run (95% interval)"].str.split(" ").str[0].str.replace("−", "-")
    apart = (ours.astype(float) - beside["printed"]).abs()
    assert apart.gt(0.0051).sum() == 2  # Printed twice, with two values: militant and murderer.
    [of_gender, others] = plots.beside_tables(scores)
    assert len(of_gender.frame) + len(others.frame) == 709
    alone = scores.assign(low=np.nan, high=np.nan)
    [shown, _] = plots.beside_tables(alone)
    assert shown.frame["this run (95% interval)"].str.endswith("(none, one portrait)").all()
    with pytest.raises(ValueError, match="planted scores and printed ones share no table"):
        plots.printed_beside(scores.assign(profile="planted"), [4])


def test_what_is_there_is_counted(audit):
    shown = plots.there(audit.given).set_index("asked for")["there"]
    assert shown["portraits"] == "120 of 120"
    assert shown["printed cells of C-ASC: words with their types"] == "690 of 709"
    shown = plots.there(replace(audit.given, words=study.words(outside=True))).set_index(
        "asked for"
    )["there"]
    assert shown["printed cells of C-ASC: words with their types"] == "709 of 709"


@pytest.mark.parametrize("group", ["women", "men"])
def test_means_of_units_are_those_of_a_plain_loop(audit, group):
    members, units = audit.given.groups["gender"][[group]].to_numpy(), audit.given.units
    cosines = audit.found.similarities[:5].astype(float)
    means, belongs = study.unit_means(cosines, members, units)
    for at, unit in enumerate(np.unique(units)):
        np.testing.assert_allclose(means[:, at], cosines[:, units == unit].mean(axis=1))
        assert {belongs[at, 0]} == set(members[units == unit, 0])
    inside, outside = means[:, belongs[:, 0]], means[:, ~belongs[:, 0]]
    expected = stats.ttest_ind(inside, outside, axis=1, equal_var=False).pvalue
    np.testing.assert_allclose(study.welch_p_values(means, belongs)[:, 0], expected)


def test_welchs_test_of_constant_groups_is_right():
    """Also where a mean of floats is not the number that it is the mean of, and beside others."""
    members = np.array([[True, False]] * 3 + [[False, True]] * 5)
    apart, equal = np.repeat([[0.3], [0.1]], [3, 5], axis=0).T, np.full((1, 8), 0.1)
    large = apart + 1e6
    one_side = np.array([[0.3, 0.3, 0.3, 0.1, 0.2, 0.15, 0.1, 0.12]])
    for scores in (apart, large, apart.astype(np.float32), -apart):
        assert (study.welch_p_values(scores, members) == 0).all()
    for scores in (equal, equal + 1e6, equal.astype(np.float32)):
        assert (study.welch_p_values(scores, members) == 1).all()
    expected = stats.ttest_ind(one_side[0, :3] + [1e-9, 0, -1e-9], one_side[0, 3:], equal_var=False)
    found = study.welch_p_values(one_side, members)
    np.testing.assert_allclose(found, expected.pvalue, rtol=1e-4)
    alone = np.arange(8)[:, None] == 0
    assert study.welch_p_values(apart, alone) == 1


def test_welchs_test_of_scores_far_from_zero_is_scipys():
    scores = 1e7 + np.random.default_rng(0).normal(size=(4, 12))
    members = np.arange(12)[:, None] < 5
    expected = stats.ttest_ind(scores[:, :5], scores[:, 5:], axis=1, equal_var=False).pvalue
    np.testing.assert_allclose(study.welch_p_values(scores, members)[:, 0], expected, rtol=1e-6)


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


@pytest.mark.parametrize("values", [(1.0, 2.0), (0.1, 0.3), (1e-3, 1e-3 + 1e-9), (-7.7, 0.0)])
def test_constant_groups_that_differ_do_not_differ_by_chance(values):
    members = np.arange(9)[:, None] < 4
    scores = np.where(members[:, 0], *values)
    assert study.welch_p_values(scores[None], members)[0, 0] < 1e-20
    assert study.welch_p_values(np.full((1, 9), values[0]), members)[0, 0] == pytest.approx(1)
    assert study.welch_p_values(scores[None], np.arange(9)[:, None] < 1)[0, 0] == pytest.approx(1)


def test_a_unit_within_two_groups_is_refused():
    members = np.array([[True], [False], [False]])
    with pytest.raises(ValueError, match="different groups"):
        study.unit_means(np.ones((1, 3)), members, np.array([0, 0, 1]))


def test_portraits_of_a_drawing_share_outline_and_tone(audit):
    people = audit.given.people.assign(unit=audit.given.units)
    same = people.groupby("unit")[["gender", "tone", "age"]].nunique()
    assert (same == 1).all(axis=None)
    adults = people[people["age"] == "adult"].groupby("unit")["look"].nunique()
    assert (adults == 1).all()
    assert people.groupby(["gender", "tone"])["unit"].nunique().le(6).all()


def test_intervals_keep_portraits_of_a_drawing_together(audit):
    """Wider than those that take each portrait for a unit, and those of the bootstrap alone."""
    alone = replace(audit.given, units=np.arange(len(audit.given.people)))
    wider, narrower = (
        study.score(audit.found, given, audit.table, audit.model, n_resamples=200)
        .query("statistic == 'c_asc' and group == 'women'")
        .eval("high - low")
        .median()
        for given in (audit.given, alone)
    )
    assert wider > 1.2 * narrower
    women = audit.given.groups["gender"][["women"]].to_numpy()
    row = row_of(audit.table, "nurse")
    found = inference.bootstrap_c_asc(
        audit.found.similarities[[row]], women, people=audit.given.units, n_resamples=2000, rng=3
    )
    nurse = of(audit.scores, "c_asc", "gender", "nurse", "women")
    assert [found.low[0, 0], found.high[0, 0]] == pytest.approx(
        [nurse["low"], nurse["high"]], abs=0.2
    )


def test_tests_are_counted_by_unit(audit):
    table = study.rejections(audit.found, audit.given).set_index(["facet", "unit"])
    scores = audit.scores.query("statistic == 'c_asc'").groupby("level")
    for facet, rows in scores:
        counted = table.loc[(facet, "portraits")]
        assert counted["uncorrected"] == (rows["p_value"] < 0.05).sum()
        assert counted["corrected"] == (rows["p_adjusted"] < 0.05).sum()
        assert table.loc[(facet, "drawings"), "n"] == len(np.unique(audit.given.units))
    whole = replace(audit.given, units=np.arange(len(audit.given.people)))
    assert set(study.rejections(audit.found, whole)["unit"]) == {"portraits"}


def test_printed_figures_draw_the_printed_numbers():
    drawn = plots.printed_races().axes
    for axis, number in zip(drawn, plots.PRINTED_RACES, strict=True):
        printed = published.table("hamidieh2023", number)["casc"]
        np.testing.assert_allclose(axis.collections[0].get_offsets()[:, 0], printed)
    words = [[text.get_text() for text in axis.texts] for axis in drawn]
    assert [sorted(each) for each in words] == [sorted(w) for w in plots.PRINTED_RACES.values()]
    jobs, activities, pronouns = plots.printed_genders().axes
    at = {line.get_marker(): line.get_xdata() for line in jobs.lines}
    assert (max(at["o"]), min(at["^"])) == (1.28, -0.99)
    assert next(label.get_text() for label in activities.get_yticklabels()) == "fixing cars"
    assert list(pronouns.lines[0].get_xdata())[-1] == 72.1
    figures = (plots.printed_races(), plots.printed_genders())
    assert all(figure.get_suptitle() == "" for figure in figures)


def test_the_highest_printed_scores_are_those_that_the_paper_speaks_of():
    race, gender = plots.highest_printed("race"), plots.highest_printed("gender")
    named = ("terrorist", "extremist", "illiterate", "felon", "undocumented")
    assert [race[word] for word in named] == [1.05, 0.88, 0.80, 0.37, 0.64]
    assert [gender[word] for word in ("maid", "nurse", "miner")] == [1.28, 1.28, 0.99]
    political = published.table("hamidieh2023", 14).groupby("group")["casc"].max()
    assert political["Black"] == -0.07


def test_the_check_of_c_asc_knows_right_from_wrong():
    def c_asc(cosines, group):
        return (cosines[group].mean() - cosines[~group].mean()) / cosines.std(ddof=1)

    def weighted(cosines, group):
        return np.where(group, 1 / group.sum(), -1 / (~group).sum()) @ cosines / cosines.std(ddof=1)

    def by_own_size(cosines, group):  # The formula of the paper's main text.
        difference = (cosines[group].sum() - cosines[~group].sum()) / group.sum()
        return difference / cosines.std(ddof=1)

    def against_all(cosines, group):
        return (cosines[group].mean() - cosines.mean()) / cosines.std(ddof=1)

    def within(cosines, group):
        return (cosines[group].mean() - cosines[~group].mean()) / cosines[group].std(ddof=1)

    def no_spread(cosines, group):
        return cosines[group].mean() - cosines[~group].mean()

    def in_size(cosines, group):
        return abs(c_asc(cosines, group))

    assert plots.check_c_asc(c_asc).passed
    assert plots.check_c_asc(weighted).passed
    for wrong in (by_own_size, against_all, within, no_spread, in_size):
        assert not plots.check_c_asc(wrong).passed, wrong.__name__


def test_the_check_of_the_composition_knows_right_from_wrong():
    def ratio(cosines, group, k):
        return group[np.argsort(-cosines)[:k]].mean() / group.mean()

    def counted(cosines, group, k):
        found = sum(group[at] for at in sorted(range(len(group)), key=lambda at: -cosines[at])[:k])
        return found * len(group) / (k * sum(group))

    def twice(cosines, group, k):  # Right for two groups of one size.
        return 2 * group[np.argsort(-cosines)[:k]].mean()

    def of_the_others(cosines, group, k):
        return ratio(cosines, ~group, k)

    def against_the_others(cosines, group, k):
        nearest = group[np.argsort(-cosines)[:k]]
        return nearest.sum() / (~nearest).sum()

    def farthest(cosines, group, k):
        return ratio(-cosines, group, k)

    assert plots.check_composition(ratio).passed
    assert plots.check_composition(counted).passed
    for wrong in (twice, of_the_others, against_the_others, farthest):
        assert not plots.check_composition(wrong).passed, wrong.__name__
    assert not plots.check_composition(lambda cosines, group, k: None).passed


def test_the_check_of_judgements_knows_right_from_wrong():
    table = plots.scores_to_judge()
    ends = table["95% interval"].str.replace("−", "-").str.split(" to ", expand=True).astype(float)
    low, high = ends[0], ends[1]

    def named(tied, untied):
        return np.select([tied, untied], ["report", "do not report"], "cannot be said")

    limit = plots.INNOCENT
    right = named((low > limit) | (high < -limit), (low > -limit) & (high < limit))
    against_zero = named((low > 0) | (high < 0), (low <= 0) & (high >= 0))
    by_the_score = named(table["C-ASC"].abs() > limit, table["C-ASC"].abs() <= limit)
    assert plots.check_judgements(right).passed
    assert plots.check_judgements(list(right)).passed
    for wrong in (against_zero, by_the_score, right[::-1], ["yes"] * 6, None):
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
