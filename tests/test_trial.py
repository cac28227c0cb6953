"""The sealed trial: what it trains, what it asks of a model, that it runs once, what it says."""

import functools
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from scipy import stats

import plantedworld
from biaslib import models
from biaslib.metrics import caption_association
from biaslib.runtime import file_sha256
from plantedworld import trial
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint, checkpoint_name, shipped
from plantedworld.report import ledger as ledger_rows
from plantedworld.report import trial as plots
from plantedworld.studies import harder, measures
from plantedworld.studies.recovery import recovered
from plantedworld.training.bert import BertRecipe
from plantedworld.trial import __main__ as command
from plantedworld.trial import _design, _judge, _run, _scores

REPOSITORY = Path(__file__).parents[1]
PROTOCOL = json.loads(_run.PROTOCOL.read_text(encoding="utf-8"))


# The protocol


def test_seeds_are_drawn_from_the_commit_alone():
    commit = "c0e93a2" + "0" * 33
    found = trial.world_seeds(commit)
    for i, seed in enumerate(found):
        digest = hashlib.sha256(f"{commit} {i}".encode()).hexdigest()
        assert seed == int(digest[:8], 16)
    assert len(set(found)) == 10
    assert min(found) >= 2_000
    assert not set(found) & set(trial.world_seeds("1" * 40))


def test_the_models_are_those_of_the_protocol():
    table = trial.models_to_train(range(5_000, 5_010))
    sizes = table.groupby("family").size()
    assert sizes.to_dict() == {"bert": 60, "clip": 60} | dict.fromkeys(trial.OTHER_FAMILIES, 10)
    assert not table.duplicated().any()
    two = table[table["family"].isin(["bert", "clip"])]
    assert (two.groupby(["family", "dose", "seed"]).size() == 2).all()
    others = table[~table["family"].isin(["bert", "clip"])]
    assert set(others["seed"]) == set(range(5_000, 5_005))
    assert set(others["dose"]) == {0, 3}
    assert set(_scores.ASKED) == set(sizes.index)


def test_models_that_others_start_from_are_those_of_the_protocol():
    assert set(PROTOCOL["shared"]) == set(_design.SHARED)
    _run.check_shared(PROTOCOL["shared"], CHECKPOINTS)


def test_other_weights_than_those_of_the_protocol_are_refused(tmp_path):
    with pytest.raises(_run.TrialError, match="the trial needs vision-dose0-seed1000"):
        _run.check_shared(PROTOCOL["shared"], tmp_path)
    changed = PROTOCOL["shared"] | {"regions-dose0-seed1000": "0" * 64}
    with pytest.raises(_run.TrialError, match="regions-dose0-seed1000 has other weights"):
        _run.check_shared(changed, CHECKPOINTS)


def test_the_text_of_the_protocol_has_the_numbers_of_the_code():
    text = (Path(plantedworld.__file__).parent / "PROTOCOL.md").read_text(encoding="utf-8")
    for target in (*trial.TARGETS, *trial.SIGN_TARGETS):
        most = "" if np.isinf(target.most) else f" to {target.most:g}"
        row = f"| {target.measure} | {target.model} | {target.dose:g} | {target.statistic} | "
        assert f"{row}{target.least:g}{most} |" in text
    for model in trial.RISES:
        assert f"| {model} |" in text
    for name, found in PROTOCOL["shared"].items():
        assert f"`{name}` | `{found[:12]}`" in text


def test_the_test_drawings_are_opened_by_the_trial_alone():
    """No other module, notebook or tool names the part that is kept."""
    asks = ['split="test"', "split='test'", '"split": "test"', 'looks("test")', "looks('test')"]
    sources = [*REPOSITORY.glob("plantedworld/**/*.py"), *REPOSITORY.glob("notebooks/*.ipynb")]
    sources += [*REPOSITORY.glob("tools/*.py"), *REPOSITORY.glob("biaslib/**/*.py")]
    sources += [*REPOSITORY.glob("benchmarks/*.py")]
    found = {
        path.relative_to(REPOSITORY).as_posix()
        for path in sources
        if any(ask in path.read_text(encoding="utf-8").replace('\\"', '"') for ask in asks)
    }
    assert found <= {"plantedworld/_scenes.py"}
    assert 'split: str = "test"' in (REPOSITORY / "plantedworld/trial/_scores.py").read_text()


# What is asked of a model, here of shipped ones on drawings of tuning


@functools.cache
def scored(family, dose=3):
    return trial.score(family, dose, 0, 0, CHECKPOINTS, "tune")


@pytest.fixture
def clip():
    return scored("clip")


def test_masked_scores_are_those_of_study_2():
    found = scored("bert")
    model = models.load("bert", profile="planted", dose=3, seed=0)
    own = measures.masked_scores(model, 3, 0).set_index("word")
    rows = found.set_index("item")
    words = rows[rows["slot"] != "control"]
    np.testing.assert_allclose(words["value"], own.loc[words.index, "value"], atol=1e-6)
    np.testing.assert_allclose(words["truth"], own.loc[words.index, "truth"], atol=1e-9)
    assert not set(rows.index) & {"nurse", "farmer", "maid"}
    assert rows.loc["purse", "label"] == -rows.loc["briefcase", "label"] == 1
    control = rows[rows["slot"] == "control"]
    assert control.index.tolist() == ["woman", "man"]
    assert (control["value"] > 2).all()
    rows = rows[rows["slot"] != "control"]
    assert stats.pearsonr(rows["sampled"], rows["truth"]).statistic > 0.97
    assert set(found["model"]) == {"bert"}


def test_what_a_corpus_says_is_counted_in_the_corpus_of_the_training():
    found = scored("bert").set_index("item")["sampled"]
    world = plantedworld.world(3, 0)
    corpus = world.text_corpus(300_000, np.random.default_rng([world.training_seed, 1]))
    agents = plantedworld.agent_words().set_index("word")["gender"]
    said = corpus["agent"].map(agents).fillna("")
    corpus, women = corpus[said != ""], said[said != ""] == "woman"
    assert len(corpus) < 200_000
    for word in ("purse", "briefcase", "judge"):
        has = corpus["content"] == word
        ratio = (has & women).sum() + 0.5, (has & ~women).sum() + 0.5
        expected = np.log(ratio[0] / ratio[1]) - np.log(women.sum() / (~women).sum())
        assert found[word] == pytest.approx(expected, abs=1e-9)


def test_similarity_scores_are_those_of_study_3(clip):
    scenes, drawing = _scores.portraits("tune")
    assert len(scenes) == 4 * 2 * 5 * 5
    assert len(set(drawing)) == 8
    assert (scenes.groupby(drawing)[["look", "gender"]].nunique() == 1).all(axis=None)
    model = models.load("clip", profile="planted", dose=3, seed=0)
    women = (scenes["gender"] == "woman").to_numpy()
    shown = model.encode_image(plantedworld.Scenes(scenes))
    texts = model.encode_text(["a photo of a judge"]).astype(float)
    similar = (texts @ shown.T)[0]
    rows = clip[clip["item"] == "judge"].set_index("measure")
    by_hand = (similar[women].mean() - similar[~women].mean()) / similar.std(ddof=1)
    expected = caption_association.c_asc(similar[None], women[:, None])[0, 0]
    assert rows.loc["C-ASC", "value"] == pytest.approx(expected, abs=1e-6)
    assert rows.loc["C-ASC", "value"] == pytest.approx(by_hand, rel=1e-6)
    gap = model.scale * (similar[women].mean() - similar[~women].mean())
    assert rows.loc["difference", "value"] == pytest.approx(gap, rel=1e-5)
    p = stats.ttest_ind(similar[women], similar[~women], equal_var=False).pvalue
    assert rows.loc["difference", "p_portraits"] == pytest.approx(p, rel=1e-4)
    means = pandas.Series(similar).groupby(drawing).mean()
    who = pandas.Series(women).groupby(drawing).first()
    p = stats.ttest_ind(means[who], means[~who], equal_var=False).pvalue
    assert rows.loc["difference", "p_drawings"] == pytest.approx(p, rel=1e-4)


def test_the_positive_control_sees_the_groups_and_not_those_dealt_anew(clip):
    rows = clip[clip["slot"] == "control"]
    assert rows["item"].tolist() == ["woman", "man"]
    assert (rows["value"] > 0.5).all()
    assert rows["dealt"].abs().max() < rows["value"].min()


def test_groups_are_dealt_by_drawings():
    scenes, drawing = _scores.portraits("tune")
    women = (scenes["gender"] == "woman").to_numpy()
    dealt = _scores._dealt(women, drawing, plantedworld.world(3, 0))
    assert dealt.sum() == women.sum()
    assert (pandas.Series(dealt).groupby(drawing).nunique() == 1).all()
    assert not np.array_equal(dealt, women)


def test_what_three_measures_share_is_tested_once(clip):
    known = clip[clip["p_drawings"].notna()]
    assert set(known["measure"]) == {"difference"}


def test_study_2_stands_beside_the_oracle_and_the_score_without_a_picture():
    found = scored("vl_bert")
    rows = found[found["measure"] == "S_V"].set_index("item")
    blind = found[found["measure"] == "S_L, no image"].set_index("item")["value"]
    np.testing.assert_array_equal(rows["blind"], blind[rows.index])
    text = found[found["measure"] == "S_L, text model"].set_index("item")["value"]
    shifts = found[found["measure"] == "S_PT"].set_index("item")
    np.testing.assert_array_equal(shifts["blind"], text[shifts.index])
    assert len(rows) == 46
    table = recovered(_judge.of_words(found)).set_index("measure")
    assert table.loc["S_L, no image", "partial rank"] == 0.0
    assert 0 < table.loc["S_V", "partial rank"] < 1
    tests = found[found["measure"] == "d, word"].set_index("item")
    assert tests.loc[["C6", "C8"], "truth"].tolist() == [1.0, 0.0]


def test_study_4_counts_picture_by_picture(clip):
    rows = clip[clip["slot"] == "picture"]
    assert rows.groupby("measure").size().to_dict() == {"errors": 240, "vlbs": 240, "vlrs": 240}
    assert set(rows["model"]) == {"CLIP, contrastive"}
    assert rows["value"].between(0, 100).all()


# Running, once


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """Trainings that take no time; what was trained and scored."""
    made = []

    def make(family, dose, seed, folder, sample=0):
        name = plantedworld.models.checkpoints.checkpoint_name(family, dose, seed, sample=sample)
        (folder / name).mkdir(parents=True)
        card = {"sha256": "a" * 64, "minutes": 1.0, "torch": "2"}
        (folder / name / "card.json").write_text(json.dumps(card))
        made.append((family, dose, seed, sample))

    def score(family, dose, seed, sample, folder):
        row = dict.fromkeys(_scores.COLUMNS, np.nan) | {"measure": "m", "model": family}
        row |= {"dose": dose, "seed": seed, "sample": sample, "item": "a", "value": 1 / 3}
        return pandas.DataFrame([row])

    monkeypatch.setattr("plantedworld.training.make_checkpoint", make)
    monkeypatch.setattr("plantedworld.trial._scores.score", score)
    return made


ROWS = [("bert", 1, 5_000, 0), ("clip", 3, 5_000, 1), ("vl_bert", 0, 5_001, 0)]
WANTED = pandas.DataFrame(ROWS, columns=["family", "dose", "seed", "sample"])


def test_a_model_is_trained_after_those_that_it_starts_from(trained, tmp_path):
    for row in ROWS:
        _run._one(row, tmp_path, None)
    assert trained == [*ROWS[:2], ("bert", 0, 5_001, 0), ROWS[2]]
    for row in ROWS:
        _run._one(row, tmp_path, None)
    assert len(trained) == 4


def test_no_model_is_begun_after_the_time_is_over(trained, tmp_path):
    _run._one(ROWS[0], tmp_path, 0.0)
    assert trained == []


def test_scores_are_collected_once_and_not_changed(trained, tmp_path):
    into = tmp_path / "data"
    _run._one(ROWS[0], tmp_path, None)
    assert _run.collect(WANTED, tmp_path, into) == (1, 3)
    for row in ROWS[1:]:
        _run._one(row, tmp_path, None)
    assert _run.collect(WANTED, tmp_path, into) == (3, 3)
    assert _run.collect(WANTED, tmp_path, into) == (3, 3)
    scores, cards = _run.collected(into)
    assert list(cards[list(WANTED)].itertuples(index=False, name=None)) == ROWS
    assert scores["value"].tolist() == [round(1 / 3, 6)] * 3
    assert cards["start"].tolist() == ["-", "-", "a" * 64]
    berts = cards.iloc[[0]].assign(dose=0.0, seed=5_001, sha256="b" * 64)
    assert _run.other_starts(cards) == []
    assert _run.other_starts(pandas.concat([cards, berts])) == ["vl_bert-dose0-seed5001"]
    path = _run._scores_path(tmp_path, ROWS[0])
    pandas.read_parquet(path).assign(value=0.5).to_parquet(path, index=False)
    with pytest.raises(_run.TrialError, match="bert-dose1-seed5000 was scored before"):
        _run.collect(WANTED, tmp_path, into)


@pytest.fixture
def fixed(monkeypatch, tmp_path):
    """Write a protocol of some commit, and take it for the trial's."""

    def write(commit):
        path = tmp_path / "protocol.json"
        path.write_text(json.dumps(PROTOCOL | {"commit": commit}))
        monkeypatch.setattr(_run, "PROTOCOL", path)

    return write


@pytest.mark.parametrize("asked", [["run", "--folder", "absent"], ["seeds"], ["judge"]])
def test_nothing_is_drawn_before_the_protocol_is_committed(asked, fixed, capsys):
    fixed("")
    assert trial.wanted_models() is None
    assert command.main(asked) == 1
    assert "the protocol names no commit yet" in capsys.readouterr().err


def test_nothing_is_judged_before_all_is_scored(fixed, monkeypatch, capsys):
    fixed("0" * 40)
    cards = trial.wanted_models().iloc[:-1].assign(minutes=1.0)
    monkeypatch.setattr(_run, "collected", lambda: (pandas.DataFrame(), cards))
    assert command.main(["judge"]) == 1
    assert "nothing is judged before that" in capsys.readouterr().err


def git(folder, *words):
    named = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = ["git", "-C", str(folder), *named, *words]
    return subprocess.run(done, check=True, capture_output=True, text=True).stdout.strip()


def test_the_code_that_runs_is_that_of_the_commit(tmp_path):
    """What only shows the verdicts, and the trial's own data, may change."""
    files = ["biaslib/a.py", "plantedworld/trial/b.py", "plantedworld/report/c.py"]
    files += ["plantedworld/data/trial/protocol.json"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "protocol")
    commit = git(tmp_path, "rev-parse", "HEAD")
    for name in files[2:]:
        (tmp_path / name).write_text("2\n")
    _run.check_code(commit, tmp_path)
    (tmp_path / files[1]).write_text("2\n")
    with pytest.raises(_run.TrialError, match=r"plantedworld/trial/b\.py is not as"):
        _run.check_code(commit, tmp_path)
    with pytest.raises(_run.TrialError, match="is no checkout that knows 000000000000"):
        _run.check_code("0" * 40, tmp_path)


def test_a_score_that_is_there_twice_is_refused(trained, tmp_path):
    into = tmp_path / "data"
    _run._one(ROWS[0], tmp_path, None)
    _run.collect(WANTED, tmp_path, into)
    (into / _run.CARDS).unlink()
    pandas.DataFrame(columns=_run.CARD).to_csv(into / _run.CARDS, index=False)
    with pytest.raises(_run.TrialError, match="has a score twice"):
        _run.collect(WANTED, tmp_path, into)


def test_samples_of_a_world_begin_with_other_weights():
    weights = []
    for sample in (0, 1):
        world = plantedworld.world(3, 5_000, sample=sample)
        torch.manual_seed(world.training_seed)
        weights.append(next(BertRecipe(world).build().parameters()))
    assert not torch.equal(*weights)
    assert plantedworld.world(3, 2**32 - 1, sample=1).training_seed < 2**32


# What is shipped of it


ON_ANOTHER_PROCESSOR = {(family, 0) for family in ("bert", "clip")}
"""Families and worlds whose models were scored on another kind of processor than the one on which
those that are shipped were trained anew."""


def test_a_seed_below_ten_names_a_world_of_the_trial():
    for label, number in enumerate(trial.world_seeds(PROTOCOL["commit"])):
        one, other = plantedworld.world(3, label, sample=1), plantedworld.world(3, number, sample=1)
        assert one.training_seed == other.training_seed
        assert one.design == other.design
    texts = [
        plantedworld.world(1, seed).text_corpus(50, np.random.default_rng(0))
        for seed in (2, trial.world_seeds(PROTOCOL["commit"])[2])
    ]
    pandas.testing.assert_frame_equal(*texts)


def test_the_weights_that_are_shipped_are_those_that_the_trial_scored():
    _, cards = trial.collected()
    numbers = trial.world_seeds(PROTOCOL["commit"])
    scored = cards.query("sample == 0").set_index(["family", "dose", "seed"])["sha256"]
    there = shipped().query("seed < 10 and planted_in == 'both'")
    same = {}
    for row in there.itertuples():
        asked = scored.get((row.family, row.dose, numbers[row.seed]))
        if asked is not None:
            (weights,) = row.path.glob("*.safetensors")
            same[row.family, row.dose, row.seed] = file_sha256(weights) == asked
    sizes = pandas.Series([family for family, *_ in same]).value_counts()
    few = dict.fromkeys(trial.OTHER_FAMILIES, 6) | {"visualbert": 8}
    assert sizes.to_dict() == {"bert": 15, "clip": 15} | few
    assert sum(same.values()) == 68
    others = {key for key, equal in same.items() if not equal}
    assert {(family, seed) for family, _, seed in others} == ON_ANOTHER_PROCESSOR
    starts = cards.query("family == 'vl_bert' and seed == @numbers[0]").set_index("dose")["start"]
    for dose, weights in starts.items():
        path = checkpoint("bert", dose, 0) / "model.safetensors"
        assert file_sha256(path) == weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "dose", "world"),
    [("bert", 1, 1), ("clip", 3, 1), ("lxmert", 3, 0), ("vilt", 0, 1), ("vl_bert", 3, 0)],
)
def test_the_scores_of_the_trial_are_those_of_the_weights_that_are_shipped(
    family, dose, world, tmp_path
):
    """Under the number of the world, which draws the pictures of study 4."""
    number = trial.world_seeds(PROTOCOL["commit"])[world]
    for name in {family, "bert"}:
        folder = tmp_path / checkpoint_name(name, dose, number)
        shutil.copytree(checkpoint(name, dose, world), folder)
    rows, _ = trial.collected()
    for column, asked in {"family": family, "dose": dose, "seed": number, "sample": 0}.items():
        rows = rows[rows[column] == asked]
    again = trial.score(family, dose, number, 0, tmp_path)
    keys = ["measure", "model", "item"]
    rows, again = (each.set_index(keys).sort_index() for each in (rows, again))
    assert len(rows) > 20
    assert again.index.equals(rows.index)
    for column in ("value", "truth", "planted", "blind", "sampled", "dealt", "p_drawings"):
        np.testing.assert_allclose(
            again[column].astype(float), rows[column].astype(float), atol=2e-5, err_msg=column
        )


# What the book says of it


def test_the_evidence_of_vl_bert_has_the_numbers_of_the_verdicts():
    proven = pandas.read_csv(Path(models.__file__).parent / "data" / "proven.csv")
    told = " ".join(proven.loc[proven["model"] == "`vl-bert`", "claim"])
    found = trial.judged()["verdicts"].query("model == 'vl_bert'")
    found = found.set_index(["measure", "statistic"])

    def rounded(row):
        return [f"{row[name]:.2f}".removeprefix("0") for name in ("mean", "low", "high")]

    mean, low, high = rounded(found.loc[("S_PT", "rank within signs")])
    assert f"correlation {mean} (95% over worlds {low} to {high}) within words of one sign" in told
    for statistic, target in (("rank within signs", "; target"), ("slope", "")):
        for measure in ("S_L", "S_V"):
            row = found.loc[(measure, statistic)]
            mean, low, high = rounded(row)
            least = f"{row['least']:.1f}".removeprefix("0") if target else ""
            end = f"{target} {least})" if target else ")"
            assert f"{mean} ({low} to {high}{end}" in told
            assert not row["reached"]


def test_what_the_chapter_says_held_and_did_not():
    """Its paragraphs are written out, since the trial is over: each of their claims."""
    verdicts = trial.judged()["verdicts"]
    found = verdicts.set_index(["measure", "model", "dose", "statistic"]).sort_index()
    assert found.loc[("B(E)", "bert"), "reached"].all()
    assert found.loc[("S_PT", "vl_bert"), "reached"].all()
    clip = found.xs("clip", level="model")
    assert clip.loc[("difference", 3, "rank within signs"), "reached"]
    assert (clip.loc["difference"].xs("slope", level="statistic")["high"] < 1 / 3).all()
    assert (clip.loc["C-ASC", "high"] < clip.loc["C-ASC", "least"]).all()
    assert clip.loc["C-ASC, attributes", "reached"].all()
    (retrieval,) = clip.loc["top k"].itertuples()
    assert retrieval.low < retrieval.least < retrieval.high
    for measure in ("S_L", "S_V"):
        assert not found.loc[(measure, "vl_bert"), "reached"].any()
    signs = verdicts[verdicts["statistic"] == "signs"]
    assert signs.groupby("measure")["reached"].sum().to_dict() == {
        "d, contextual": 2, "d, sentence": 0, "d, word": 0,
    }  # fmt: skip
    assert (signs["mean"] > 0.5).all()
    exact = harder.summary().query("option == 'as it is'").set_index("measure")
    order = exact["rank within signs"]
    assert 0.4 < order["c_asc"] < 0.6
    assert order["top_k"] < 0.1


# What the scores say


def test_a_rise_is_over_worlds():
    rng, rows = np.random.default_rng(0), []
    for seed in range(5):
        for dose, share in ((0.0, 0.1), (3.0, 0.3)):
            part = pandas.DataFrame({"value": 100.0 * (rng.random(200) < share), "item": "p"})
            rows.append(part.assign(dose=dose, seed=seed))
    table = pandas.concat(rows).assign(slot="picture", model="ViLT, matching", measure="vlbs")
    others = {"vlrs": 90.0, "errors": 5.0}
    table = pandas.concat([table, *(table.assign(measure=n, value=v) for n, v in others.items())])
    (row,) = _judge.rises(table).to_dict("records")
    means = table[table["measure"] == "vlbs"].groupby(["dose", "seed"])["value"].mean()
    gaps = means[3.0] - means[0.0]
    low, high = stats.t.interval(0.95, 4, gaps.mean(), stats.sem(gaps))
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert (row["n"], row["reached"], row["vlrs"]) == (5, True, 90.0)
    same = table.assign(value=table["value"].where(table["dose"] == 0, 10.0))
    assert not _judge.rises(same).iloc[0]["reached"]
    worse = table.assign(value=table["value"].where(table["measure"] != "errors", 25.0))
    worse["value"] = worse["value"].where((worse["dose"] == 3) | (worse["measure"] == "vlbs"), 5.0)
    assert not _judge.rises(worse).iloc[0]["reached"]
    assert _judge.rises(worse).iloc[0]["vlbs rise"] == pytest.approx(row["vlbs rise"])
    assert not _judge.rises(table[table["seed"] > 0]).iloc[0]["reached"]


def test_the_two_nulls_tell_the_world_from_the_sample():
    rng, rows = np.random.default_rng(1), []
    for seed in range(5):
        sampled = rng.normal(size=200)
        part = {"sampled": sampled, "value": 0.5 * sampled + rng.normal(0, 0.1, 200)}
        part |= {"p_portraits": np.where(np.arange(200) < 80, 0.01, 0.5), "p_drawings": 0.5}
        rows.append(pandas.DataFrame(part).assign(seed=seed))
    table = pandas.concat(rows).assign(measure="C-ASC", model="clip", dose=0.0, sample=0)
    found = _judge.two_nulls(table.assign(slot="role", item="a")).set_index("share")["mean"]
    assert found["with the sample"] > 0.97
    assert found["rejected by portraits"] == 0.4
    assert found["rejected by drawings"] == 0.0


def test_the_oracle_recovers_what_is_planted_and_its_stand_ins_do_not():
    """Exact answers in ten worlds: masked words and differences are recovered, by no wrong ones."""
    cases = [(dose, seed) for dose in (0, 1, 3) for seed in range(2_000, 2_010)]
    scores = pandas.concat([trial.oracle_scores(*each, split="tune") for each in cases])
    labels = [
        {"measure": measure, "model": model, "dose": float(dose), "seed": seed, "value": 2.0}
        for dose, seed in cases
        for measure, model in (("B(E)", "bert"), ("difference", "clip"))
    ]
    controls = pandas.DataFrame(labels).assign(slot="control", sample=0, dealt=0.0)
    scores = pandas.concat([scores, controls], ignore_index=True)
    judged = _judge.recoveries(trial.verdicts(scores))
    recovers = judged.set_index(["measure", "dose"])["recovers"]
    assert recovers[["B(E)", "difference"]].all()
    # C-ASC of the oracle saturates: it does not rank words of one sign.
    assert not recovers["C-ASC", 3]
    told = _judge.attacks(scores).set_index("scores")
    wrong = told.drop(index="the models' own")
    assert told.loc["the models' own", "called recoveries"] >= 4
    assert wrong["called recoveries"].sum() == 0
    assert told.drop(index="no bias")["called unbiased"].sum() == 0
    assert told.loc["no bias", "called unbiased"] == 4
    clean = _judge.found_without_bias(scores).groupby("dose")["shown"].all()
    assert clean.to_dict() == {0.0: True, 1.0: False, 3.0: False}


def test_checkpoints_of_the_trial_are_not_taken_for_shipped_ones():
    with pytest.raises(FileNotFoundError):
        checkpoint("bert", 3, 5_000)


# The page


def made(worlds=range(10)):
    """Scores of a BERT that finds the truth, of a CLIP that finds a third of it."""
    rng, rows = np.random.default_rng(0), []
    for seed in worlds:
        planted = rng.uniform(-1.1, 1.1, 150)
        for dose in (0.0, 1.0, 3.0):
            for family, measure, slope in (("bert", "B(E)", 1.0), ("clip", "difference", 1 / 3)):
                value = slope * dose * planted + rng.normal(0, 0.1, 150)
                part = {"item": [f"word {n}" for n in range(150)], "slot": "role"}
                part |= {"planted": planted, "truth": dose * planted, "value": value}
                part |= {"measure": measure, "model": family, "dose": dose, "seed": seed}
                part |= {"sampled": rng.normal(size=150), "p_portraits": 0.5}
                rows.append(pandas.DataFrame(part).assign(sample=0))
    return pandas.concat(rows, ignore_index=True).reindex(columns=_scores.COLUMNS)


def test_the_page_says_what_was_trained_and_what_broke_off():
    origin = {"processor": ["A", "A", "B"], "resumed": [True, False, False]}
    origin |= {"sha256": ["x", "y", "z"], "start": "-"}
    whole = plots.state(WANTED.assign(minutes=60.0, **origin), WANTED)
    assert "3 of its 3 models are trained and scored (3.0 hours on one core)" in whole
    assert "Of the trainings, 1 broke off" in whole
    assert "0 started from a BERT trained anew" in whole


def test_what_was_collected_is_of_the_protocol():
    scores, cards = trial.collected()
    wanted = trial.wanted_models().itertuples(index=False, name=None)
    keys = ["family", "dose", "seed", "sample"]
    found = list(cards[keys].itertuples(index=False, name=None))
    assert sorted(found) == sorted(wanted)
    assert set(scores[keys].itertuples(index=False, name=None)) == set(found)
    assert cards["sha256"].str.fullmatch("[0-9a-f]{64}").all()


def test_figure_tables_and_sentence_say_the_verdicts():
    scores = made()
    judged = trial.verdicts(scores)
    beside = trial.stand_in_means(scores)
    risen = pandas.DataFrame(
        {
            "model": ["ViLT, matching", "ALBEF, contrastive"],
            "vlbs": [21.2, 14.5],
            "vlbs at dose 0": [11.1, 9.5],
            "mean": [13.5, 4.4],
            "low": [9.8, -3.0],
            "high": [17.2, 11.8],
            "n": 5,
            "reached": [True, False],
        }
    )
    table = plots.verdict_table(judged, risen).set_index(["measure", "statistic"])
    assert len(table) == len(judged.drop_duplicates(["measure", "model", "statistic"])) + 2
    rises = table.xs("rise less that of errors, points", level="statistic")
    assert rises.loc["vlbs, tiny-ViLT, matching"].tolist() == [
        "not asked",
        "13.50 (9.80 to 17.20), asked more than 0: yes",
        5,
    ]
    assert rises.loc["vlbs, tiny-ALBEF, contrastive", "dose 3"].endswith(": no")
    assert table.loc[("B(E), tiny-BERT", "slope"), "dose 3"].endswith("asked 0.85 to 1.15: yes")
    assert table.loc[("difference, tiny-CLIP", "slope"), "dose 3"].endswith(": no")
    assert "asked 0.8 or more" in table.loc[("B(E), tiny-BERT", "rank within signs"), "dose 1"]
    assert table.loc[("top k, tiny-CLIP", "rank within signs"), "dose 1"] == "not asked"
    signs = beside.set_index(["measure", "dose", "statistic", "scores"])["mean"]
    assert signs["B(E)", 3, "rank within signs", "signs alone"] == 0.0
    ranks, slopes = plots.figure(judged, beside).axes
    names = [each.get_text() for each in ranks.get_yticklabels()]
    assert names[:2] == ["B(E), tiny-BERT, dose 1", "B(E), tiny-BERT, dose 3"]
    bands = slopes.containers[0]
    assert len(bands) == (judged["statistic"] == "slope").sum()
    band = bands[0]
    assert names[round(band.get_y() + band.get_height() / 2)] == "B(E), tiny-BERT, dose 1"
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((0.85, 1.15))
    told = plots.sentence(judged, risen)
    reached = int(judged["reached"].sum())
    assert told.startswith(f"**{reached} of {len(judged)} targets are reached.** All of their ")
    whole = trial.recoveries(judged)["recovers"]
    assert f"targets are reached by {whole.sum()} of {len(whole)} measures" in told
    assert "errors on stereotypical pictures do for 1 of 2 models (vlbs at" in told
    assert told.endswith(
        "tiny-ViLT, matching 11.1 and 21.2; tiny-ALBEF, contrastive 9.5 and 14.5)."
    )
    missed = told.partition("Missed: ")[2].partition(".\n")[0].split("; ")
    lines = [line for line in missed if line.startswith("difference, tiny-CLIP")]
    assert len(lines) == 1
    assert "slope at doses 1 and 3" in lines[0]
    assert table.loc[("difference, tiny-CLIP", "slope"), "dose 3"].startswith("0.33 (")
    rows = judged[~judged["reached"]][["measure", "model"]].drop_duplicates()
    for measure, model in rows.itertuples(index=False):
        told_of = [line for line in missed if line.startswith(f"{measure}, ")]
        assert any(plots.MODELS[model] in line for line in told_of)
    recovers = trial.recoveries(judged).set_index(["measure", "dose"])["recovers"]
    assert recovers["B(E)", 3]
    assert not recovers["difference", 3]
    attacks = trial.attacks(scores)
    attacked = plots.attack_table(attacks).set_index("scores")
    assert attacked.loc["the models' own", "called recoveries"] == 2
    assert attacked.drop(index="the models' own")["called recoveries"].sum() == 0
    wrong = attacks[attacks["scores"] != "the models' own"]
    told = plots.attack_sentence(attacks)
    assert told.startswith(f"Of {wrong['claims'].sum()} claims that wrong scores make, **0 are")
    assert told.endswith("could have been called without bias. It never was.")
    posing = attacks.assign(**{"called unbiased": [0] * len(attacks)}).set_index("scores")
    posing.loc["no bias", "called unbiased"] = posing.loc["no bias", "models"]
    posing.loc["another world", "called unbiased"] = 1
    told = plots.attack_sentence(posing.reset_index())
    n = posing.loc["no bias", "models"]
    assert f"called without bias in {n} of {n} cases" in told
    assert told.endswith(
        "could have been called without bias. Once it was (with the scores of *another "
        "world* in the place of the model's own). The protocol allows no such case, so that "
        "*shown to be without bias* is not fully "
        "reliable here."
    )
    single = plots.single_targets_sentence(judged, beside)
    # Signs alone are scaled to a slope of 1.
    slopes = judged.query("statistic == 'slope' and n > 0")
    assert f"signs alone, {len(slopes)}" in single
    assert "truth shuffled" not in single
    twice = pandas.concat([beside, beside.assign(scores="the same again")])
    both = plots.single_targets_sentence(judged, twice)
    assert f"{len(slopes)} of them by more than one kind" in both
    assert "more than one kind" not in single
    clean = plots.unbiased_table(trial.found_without_bias(scores))
    assert clean["shown to be without bias"].eq("no").all()
    nulls = plots.null_table(trial.two_nulls(scores))
    assert nulls["at dose 0"].notna().all()
    told = plots.null_sentence(trial.two_nulls(scores))
    assert "with portraits as units, 0% (0% to 0%) of words come out significant" in told


def test_what_judges_wrote_is_what_the_scores_say(tmp_path, monkeypatch):
    scores = made()  # without pictures, so that nothing rises
    asked = {name: ask for name, ask in _judge.QUESTIONS.items() if name != "rises"}
    monkeypatch.setattr(_judge, "QUESTIONS", asked)
    answers = trial.judge_all(scores)
    for name, table in answers.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    assert_same(trial.judged(tmp_path), answers)


def test_verdicts_are_those_of_the_collected_scores():
    assert_same(trial.judged(), trial.judge_all(trial.collected()[0]))


def assert_same(found, answers):
    assert set(found) == set(answers)
    for name, table in found.items():
        expected = answers[name].reset_index(drop=True)
        pandas.testing.assert_frame_equal(table, expected, check_dtype=False, atol=1e-6)


def test_the_ledger_takes_the_verdicts_of_the_trial():
    found = ledger_rows.verdicts().set_index("measure")
    assert found.loc["B(E)", "page"] == "planted_world"


def test_sentences_of_the_trial_name_what_was_asked_with_every_interval():
    judged = trial.judged()["verdicts"].query("dose == 3")
    signs = judged["statistic"] == "signs"
    masked = judged["measure"].isin(["B(E)", "S_PT", "S_L", "S_V"])
    for study, rows in (("1", judged[signs]), ("2", judged[masked])):
        told = ledger_rows.sealed_sentences(study)
        assert told.count("; asked: ") == len(rows)
        assert told.count("target reached") == rows["reached"].sum()
        assert told.count("target missed") == (~rows["reached"]).sum()
        assert told.count(ledger_rows.RULE) == 1
        assert ledger_rows.sealed_sentences(study, rule=False) == told.split("\n\n")[0]
    shares = ledger_rows.sealed_sentences("1")
    assert not re.search(r"to 10[1-9]", shares)
    assert "(the same in all 5 worlds; asked: 80% or more; target reached)" in shares
