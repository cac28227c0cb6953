"""The tables of a run, and records: written, read, and refused where they cannot be."""

import gzip
import hashlib
import json

import numpy as np
import pandas
import pytest
import torch

from biaslib import published, reproduction, runtime
from biaslib.models import REGISTRY
from biaslib.models.stored import cached_outputs
from biaslib.reproduction import tables_of_run
from biaslib.runtime.batches import full_float32


def grounded_scores(**changed):
    tests = published.table("ross2021", 3)["test"].unique()
    row = {"study": "ross2021", "statistic": "effect size", "experiment": 1, "masking": "none"}
    row |= {"model": "lxmert", "level": "word", "images": "with", "domain": "out of domain"}
    row |= {"value": 1.0, "low": np.nan, "high": np.nan, "share": 1.0}
    row |= {"p_value": 0.9, "p_low": 0.9, "p_high": 0.9}
    row |= {f"p_{end}_paper": 0.01 for end in ("value", "low", "high")}
    d = changed.get("value", 1.0)
    row |= {"low_pictures": d, "high_pictures": d}
    return pandas.DataFrame([row | {"test": test} | changed for test in tests])


def test_effect_sizes_stand_where_the_paper_prints_them():
    parts = [
        grounded_scores(),
        grounded_scores(experiment=2, value=0.5),
        grounded_scores(level="sentence", masking="words", value=-0.5),
        grounded_scores(level="word", masking="words", value=0.91),
        grounded_scores(domain="in domain", value=0.25),
        grounded_scores(images="without", value=0.92),
        grounded_scores(experiment=3, statistic="effect size of X", value=0.93),
    ]
    found = reproduction.compare(pandas.concat(parts), "ross2021").set_index("id")["value"]
    assert found["ross2021/table3/C6/lxmert/W"] == 1.0
    assert found["ross2021/table4/C6/lxmert/W"] == 0.5
    assert found["ross2021/table5/C6/lxmert/T"] == -0.5
    assert found["ross2021/table6/exp1/C6/lxmert/W"] == 0.25
    assert not {0.91, 0.92, 0.93} & set(found)


def test_significant_tests_are_counted_by_the_papers_own_test_with_what_its_bounds_allow():
    scores = grounded_scores()
    papers = ["p_value_paper", "p_low_paper", "p_high_paper"]
    scores.loc[scores["test"] == "C6", papers] = (0.049, 0.04, 0.06)
    scores.loc[scores["test"] == "C8", papers] = (0.5, 0.5, 0.5)
    images = published.table("ross2021", 1).query("source == 'google'")

    def counted(scores, images):
        tables = tables_of_run("ross2021", scores, {"ross2021_images": images})
        return tables["ross2021_significant_counts"].set_index("kind")

    counts = counted(scores, images)
    gender = ["significant", "low", "high", "total"]
    assert counts.loc["gender", gender].tolist() == [5, 4, 5, 6]
    assert counts["column"].unique().tolist() == [4]
    assert counted(scores[scores["test"] != "C11"], images).index.tolist() == ["race"]
    fewer = images.assign(images=images["images"] - (images["test"] == "C6"))
    counts = counted(scores, fewer)
    assert counts.loc["gender", ["low", "high"]].isna().all()
    assert counts.loc["race", ["low", "high"]].notna().all()


LEVELS = {"W": "word", "S": "sentence", "C": "contextual"}
MODELS = {"VisualBERT": "visualbert", "ViLBERT": "vilbert", "LXMERT": "lxmert"}
MODELS |= {"VL-BERT": "vl-bert"}
MASKS = {"T": "words", "I": "persons"}


def scores_as_printed(half=0.0, variant="released", share=1.0):
    """Scores whose numbers are those of Tables 3 to 6, with wide intervals over words."""
    printed = pandas.concat([published.table("ross2021", number) for number in (3, 4, 5, 6)])
    printed = printed.dropna(subset="effect_size")
    masking = printed["level"].map(MASKS)
    d = printed["effect_size"]
    return pandas.DataFrame(
        {
            "model": printed["model"].map(MODELS),
            "test": printed["test"],
            "level": printed["level"].map(LEVELS).fillna("sentence"),
            "statistic": "effect size",
            "experiment": printed["experiment"].where(masking.isna(), 1),
            "masking": masking.fillna("none"),
            "domain": np.where(printed["source"] == "google", "out of domain", "in domain"),
            **{"value": d, "low": d - 1, "high": d + 1},
            **{"low_pictures": d - half, "high_pictures": d + half, "share": share},
            **{"images": "with", "variant": variant, "p_value": 0.9},
            **{"p_value_paper": 0.01},
        }
    )


def all_there():
    return {"ross2021_images": published.table("ross2021", 1)}


def test_a_run_that_is_the_papers_to_the_last_digit_meets_every_effect_size():
    found = reproduction.compare(scores_as_printed(), "ross2021", all_there())
    ran = found[found["verdict"] != "not run"]
    place = ran["id"].str.extract(r"ross2021/(table[1-6])")[0]
    n = {"table1": 17, "table3": 155, "table4": 155, "table5": 91, "table6": 60}
    assert place.value_counts().to_dict() == n
    of_tables = ran[place.notna()]
    assert of_tables[["low", "high"]].notna().all(axis=None)
    assert set(of_tables["verdict"]) == {"met"}
    assert found.query("verdict == 'not run'")["id"].str.contains("table[1-6]").sum() == 0


def test_what_a_rerun_could_change_are_the_pictures_that_it_lacks():
    """The scores' intervals over pictures, at 90% in place of 95%: normal quantiles."""
    rows = scores_as_printed(0.3)
    moved = rows.assign(low_pictures=rows["low_pictures"] + 0.2)  # its middle is .1 higher
    for scores, middle, half in ((rows, 0.0, 0.3), (moved, 0.1, 0.2)):
        table = tables_of_run("ross2021", scores, all_there())["ross2021_effect_sizes"]
        reach = half * 1.645 / 1.96
        low, high = (table[end] - table["effect_size"] for end in ("low", "high"))
        assert low.tolist() == pytest.approx([middle - reach] * len(table))
        assert high.tolist() == pytest.approx([middle + reach] * len(table))


def test_without_intervals_over_pictures_nothing_is_judged():
    """Those over words, which are the paper's, do not stand in for them."""
    rows = scores_as_printed().drop(columns=["low_pictures", "high_pictures"])
    found = reproduction.compare(rows, "ross2021", all_there())
    of_tables = found[found["id"].str.contains("table[3-6]")]
    assert set(of_tables["verdict"]) == {"cannot be said"}
    assert of_tables["reason"].str.startswith("the run has no interval: ").all()


def test_of_our_variant_are_the_counts_too_in_which_one_of_its_rows_is():
    ours = scores_as_printed(variant="paper")
    both = pandas.concat([ours, scores_as_printed().query("model == 'lxmert' and level != 'word'")])
    tables = tables_of_run("ross2021", both, all_there())
    assert len(tables["ross2021_effect_sizes"]) == len(ours)
    counts = tables["ross2021_significant_counts"].query("experiment < 3")
    found = counts.set_index(["model", "level"])["variant"].to_dict()
    released = {key for key, variant in found.items() if variant == "released"}
    assert released == {("LXMERT", "S"), ("LXMERT", "C")}


def test_what_has_no_printed_table_is_kept_beside():
    parts = [
        grounded_scores(experiment=3, value=0.42, low=0.3, high=0.5, model="vilbert"),
        grounded_scores(experiment=3, value=0.5, low=0.4, high=0.6, model="visualbert"),
        grounded_scores(experiment=3, value=0.9, domain="in domain", model="vilbert"),
        grounded_scores(experiment=2, masking="words", level="word", value=0.7, variant="paper"),
        grounded_scores(experiment=2, masking="words", level="sentence", value=0.8),
    ]
    tables = tables_of_run("ross2021", pandas.concat(parts), all_there())
    first = tables["ross2021_first_form"].groupby("model")["effect_size"].agg(["mean", "size"])
    assert first.T.to_dict("list") == {"ViLBERT": [0.42, 13], "VisualBERT": [0.5, 13]}
    assert set(tables["ross2021_effect_sizes"]["effect_size"]) == {0.8}
    found = reproduction.compare(pandas.concat(parts), "ross2021", all_there()).set_index("id")
    told = "ViLBERT 0.420, stated 0.42; VisualBERT 0.500, stated 0.467"
    assert found.loc["ross2021/claim/37", "reason"].startswith(told)
    assert found.loc["ross2021/claim/37", "verdict"] == "met"
    assert found.loc["ross2021/claim/38", "verdict"] == "not met"  # 26 of 26, not 12%
    assert found.loc["ross2021/claim/34", "verdict"] == "not run"
    dead = pandas.concat(parts).assign(share=0.5)
    dead = dead.assign(low_pictures=dead["value"] - 0.1, high_pictures=dead["value"] + 0.1)
    some = reproduction.compare(dead, "ross2021", all_there()).set_index("id")
    assert some.loc["ross2021/claim/37", "verdict"] == "cannot be said"
    assert some.loc["ross2021/claim/38", "verdict"] == "cannot be said"


def test_files_that_list_other_pictures_than_table_1_give_no_interval():
    """One picture less, or a test that is not counted: what is missing is not known."""
    images = published.table("ross2021", 1).query("source == 'google'")
    fewer = images.assign(images=images["images"] - (images["test"] == "C6"))
    for counts in (fewer, images[images["test"] != "C6"]):
        tables = tables_of_run("ross2021", grounded_scores(), {"ross2021_images": counts})
        rows = tables["ross2021_effect_sizes"].set_index("test")
        assert rows.loc["C6", ["low", "high", "share"]].isna().all()
        others = rows.drop("C6")[["low", "high", "share"]]
        assert set(others.to_numpy().ravel()) == {1.0}


def test_sizes_of_categories_are_those_that_the_scores_fit():
    """Half of the 206 images that gender has by its scores, printed as 486 (open question C1)."""
    rows = scores().assign(n=lambda table: table["test"].map({"overall": 514, "gender": 103}))
    chosen = rows.assign(level="balanced selections", low=45.0, high=45.0)
    table = tables_of_run("zhou2022", pandas.concat([rows, chosen]), {})["zhou2022_scores"]
    table = table[table["model"].isin(["CLIP", "ViLT"])]
    expected = [np.sqrt(0.5) * 1.645 / 1.96] * 8
    assert (table["high"] - 45).tolist() == pytest.approx(expected)


def test_a_choice_of_images_that_is_not_known_is_a_range_about_its_middle():
    """By hand: half-widths 1 of sampling and 3 below, 4 above of the choice, in rows mixed up."""
    rows = scores().assign(n=1028, low=45.0, high=45.0)
    chosen = rows.assign(level="balanced selections", value=47.0, low=44.0, high=51.0)
    both = pandas.concat([chosen, rows]).sample(frac=1, random_state=1)
    table = tables_of_run("zhou2022", both, {})["zhou2022_scores"]
    table = table[table["test"] == "overall"]
    [ends] = table[["value", "low", "high"]].drop_duplicates().astype(float).to_numpy()
    assert ends == pytest.approx([47, 47 - 3 * 1.645 / 1.96, 47 + 4 * 1.645 / 1.96])


def test_scores_of_imaginary_models_follow_and_counts_reach_up_to_the_released_table():
    tables = tables_of_run("zhou2022", scores().assign(n=100), {})
    ideal = tables["zhou2022_scores"].query("model == 'IDM'").set_index("metric")["value"]
    assert ideal.to_dict() == {"vlrs": 100.0, "vlbs": 0.0, "ivlas": 100.0}
    counts = tables["zhou2022_images"].set_index("category")
    assert counts.loc["overall", ["images low", "images high"]].tolist() == [100, 1028]
    assert counts.loc["gender", ["images low", "images high"]].tolist() == [100, 206]


def test_shares_of_pronouns_in_another_corpus_are_a_variants_and_their_number_says_nothing():
    counted = {"word": ["nurse"], "images": [900], "female": [80.0], "male": [20.0]}
    counted |= {f"{name} {end}": [80.0] for name in ("male", "female") for end in ("low", "high")}
    found = reproduction.compare(
        pandas.DataFrame(),
        "hamidieh2023",
        {"hamidieh2023_laion_pronouns": pandas.DataFrame(counted)},
    )
    rows = found[found["id"].str.startswith("hamidieh2023/table1/nurse")].set_index("id")
    assert rows.loc["hamidieh2023/table1/nurse/images", "verdict"] == "cannot be said"
    assert rows["reason"].str.startswith("our variant, not as published").all()


def casc_scores(rows, **same):
    same = {"statistic": "c_asc", "level": "gender", "bias_type": "Occupation"} | same
    same |= {"group": "Female", "model": "open-clip"}
    return pandas.DataFrame(rows).assign(**same)


def test_a_lists_order_is_that_of_the_run():
    rows = [
        {"test": word, "value": value, "low": value, "high": value, "n": 86_744}
        for word, value in (("nurse", 0.1), ("maid", 0.9), ("miner", -0.5))
    ]
    scores = casc_scores(rows, dataset="FairFace train, crop 0.25")
    table = tables_of_run("hamidieh2023", scores, {})["hamidieh2023_casc"]
    table = table[table["table"] == 4].sort_values("rank")
    assert table["word"].tolist() == ["maid", "nurse", "miner"]


@pytest.mark.parametrize(
    ("dataset", "n", "half"),
    [
        ("FairFace train, crop 0.25", 86_744, 0.0),
        ("FairFace train, crop 0.25", 86_744 // 4, 0.1 * np.sqrt(0.75) * 1.645 / 1.96),
        ("FairFace validation, crop 0.25", 86_744, 0.1 * 1.645 / 1.96),
        ("FairFace train, crop 0.25", 10**9, 0.1 * 1.645 / 1.96),
    ],
)
def test_other_people_are_no_census_of_the_papers(dataset, n, half):
    row = {"test": "nurse", "value": 1.0, "low": 0.9, "high": 1.1, "n": n}
    table = tables_of_run("hamidieh2023", casc_scores([row], dataset=dataset), {})
    high = table["hamidieh2023_casc"]["high"].iloc[0]
    assert high - 1.0 == pytest.approx(half, abs=1e-12)


# Records


def scores(value=45.0):
    rows = [
        {"model": model, "test": test, "statistic": name, "value": value, "n": 514}
        for model in ("CLIP", "ViLT")
        for test in ("overall", "gender")
        for name in ("vlrs", "vlbs")
    ]
    same = {"study": "zhou2022", "profile": "paper", "dataset": "VLStereoSet", "level": "images"}
    same |= {"revision": "r", "p_value": np.nan, "seed": 0, "head": "matching"}
    table = pandas.DataFrame(rows).assign(low=value - 1, high=value + 1, **same)
    return table.assign(count=[None, 3.0] * 4)


@pytest.fixture
def stamp(monkeypatch):
    """The stamp of a run of two models, one of them with the hashes of its files in the lock."""
    run = runtime.Provenance("paper", started=-1000.0)
    run.record(weights={"clip": "abc", "vilt-itm": "1c35, sha256 0123456789ab and ba9876543210"})
    run.record(data={"VLStereoSet": "0123456789ab"})
    files = {"pytorch_model.bin": {"sha256": "a" * 64, "bytes": 9}}
    entries = {
        REGISTRY["clip"].source: {"files": files},
        REGISTRY["detector"].source: {"files": files, "revision": "r"},
    }
    monkeypatch.setattr(runtime.Lock, "entries", lambda self: entries)
    return reproduction.stamp(run, "zhou2022", {"asked": 1028, "there": 1020})


def test_a_record_is_two_files_and_is_read_as_it_was_written(stamp, tmp_path):
    folder = reproduction.record(tmp_path / "run", scores(), stamp)
    assert sorted(path.name for path in folder.iterdir()) == ["scores.csv.gz", "stamp.json"]
    found, again = reproduction.read(folder)
    hashed = hashlib.sha256((folder / "scores.csv.gz").read_bytes()).hexdigest()
    assert again == json.loads(json.dumps(stamp | {"scores": hashed}))
    pandas.testing.assert_frame_equal(found, scores(), check_dtype=False)
    with pytest.raises(reproduction.RecordError, match="holds a record already"):
        reproduction.record(folder, scores(), stamp)


def test_a_stamp_names_files_device_driver_and_pictures(stamp):
    assert stamp["format"] == 1
    hashes = {name: list(each["sha256"].values()) for name, each in stamp["networks"].items()}
    assert hashes == {"clip": ["a" * 64], "vilt-itm": ["0123456789ab", "ba9876543210"]}
    assert stamp["detector"] == "none: no network of this run reads regions"
    assert stamp["pictures"] == {"asked": 1028, "there": 1020}
    assert stamp["data"] == {"VLStereoSet": "0123456789ab"}
    assert stamp["precision"] == "float32"
    assert stamp["device"].startswith("cpu")
    assert stamp["driver"]
    assert stamp["minutes"] > 16


@pytest.mark.usefixtures("stamp")
def test_a_stamp_names_the_detector_of_a_network_that_reads_regions():
    run = runtime.Provenance("paper").record(weights={"lxmert": "abc"})
    made = reproduction.stamp(run, "zhou2022", {"asked": 9, "there": 9})
    assert list(made["detector"]["sha256"].values()) == ["a" * 64]


def edited(folder, value):
    """Write another value into the first row of a record's scores, as an editor would."""
    path = folder / "scores.csv.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    assert ",45.0," in lines[1]
    lines[1] = lines[1].replace(",45.0,", f",{value},", 1)
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=1))


def test_scores_that_were_edited_by_hand_are_found(stamp, tmp_path):
    folder = reproduction.record(tmp_path / "run", scores(), stamp)
    edited(folder, "45.72")
    with pytest.raises(reproduction.RecordError, match="changed after the run"):
        reproduction.read(folder)


class Reader:
    """A model that answers with the length of a text, on a processor."""

    name, revision, device = "clip", "abc", "cpu"


def answered(store):
    ask = lambda which, images: np.ones((len(which), 1))  # noqa: E731
    return cached_outputs(Reader(), "lengths", ask, texts=["a", "b"], store=store)


@pytest.mark.usefixtures("stamp")
def test_outputs_of_another_precision_than_the_models_are_refused(tmp_path, request):
    """PyTorch's switch is turned after the model was loaded, whose stamp says float32."""
    store, pictures = runtime.Store(tmp_path / "store"), {"asked": 0, "there": 0}
    run = runtime.Provenance("paper", started=-1000.0).record(weights={"clip": "abc"})
    runtime.note_device("cpu", "float32")
    answered(store)
    made = reproduction.stamp(run, "zhou2022", pictures)
    assert (made["precision"], made["outputs"]) == ("float32", ["clip: float32"])
    table = scores().query("model == 'CLIP'")
    reproduction.record(tmp_path / "run", table, made)
    request.addfinalizer(full_float32)
    torch.set_float32_matmul_precision("medium")
    answered(store)
    both = reproduction.stamp(run, "zhou2022", pictures)
    with pytest.raises(reproduction.RecordError, match="in bf16 and float32"):
        reproduction.record(tmp_path / "both", table, both)
    other = runtime.Provenance("paper", started=-1000.0).record(weights={"clip": "abc"})
    runtime.note_device("cpu", "float32")
    answered(store)
    with pytest.raises(reproduction.RecordError, match="cached outputs are in bf16"):
        reproduction.record(
            tmp_path / "other", table, reproduction.stamp(other, "zhou2022", pictures)
        )


def test_a_planted_run_has_no_stamp():
    with pytest.raises(reproduction.RecordError):
        reproduction.stamp(runtime.Provenance("planted"), "zhou2022", {"asked": 1, "there": 1})


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"device": ""},
        {"precision": None},
        {"source": None},
        {"networks": {"clip": {"revision": "abc", "sha256": {}}}},
        {"detector": {"revision": "r"}},
        {"outputs": ["clip: float16"]},
        {"paper": "ross2021"},
        {"size": "taste"},
        {"size": "half"},
    ],
    ids=str,
)
def test_a_stamp_without_what_it_is_for_is_refused_when_written_and_when_read(
    changes, stamp, tmp_path
):
    with pytest.raises(reproduction.RecordError):
        reproduction.record(tmp_path / "run", scores(), stamp | changes)
    assert not (tmp_path / "run").exists()
    folder = reproduction.record(tmp_path / "run", scores(), stamp)
    written = json.loads((folder / "stamp.json").read_text())
    (folder / "stamp.json").write_text(json.dumps(written | changes))
    with pytest.raises(reproduction.RecordError):
        reproduction.read(folder)


def test_scores_of_another_profile_or_without_a_column_are_refused(stamp, tmp_path):
    others = (scores().assign(profile=each) for each in ("planted", "taste"))
    for table in (*others, scores().drop(columns="n"), scores()[:0]):
        with pytest.raises(reproduction.RecordError):
            reproduction.record(tmp_path / "run", table, stamp)


def test_of_a_taste_nothing_is_judged_and_its_stamp_cannot_be_made_that_of_a_study(stamp, tmp_path):
    judged = reproduction.compare(scores(), "zhou2022")
    assert set(judged["verdict"]) > {"not run"}
    table, of_taste = scores().assign(profile="taste"), stamp | {"size": "taste"}
    folder = reproduction.record(tmp_path / "run", table, of_taste)
    found, read = reproduction.read(folder)
    assert read["size"] == "taste"
    assert set(reproduction.compare(found, "zhou2022")["verdict"]) == {"not run"}
    (folder / "stamp.json").write_text(json.dumps(read | {"size": "full"}))
    with pytest.raises(reproduction.RecordError, match="profile taste"):
        reproduction.read(folder)
    (folder / "stamp.json").write_text(json.dumps({k: v for k, v in read.items() if k != "size"}))
    with pytest.raises(reproduction.RecordError, match="profile taste"):
        reproduction.read(folder)


@pytest.mark.usefixtures("stamp")
def test_hashes_of_files_go_before_those_of_a_revision():
    run = runtime.Provenance("paper").record(weights={"clip": "1c35, sha256 0123456789ab"})
    made = reproduction.stamp(run, "zhou2022", {"asked": 0, "there": 0})
    assert list(made["networks"]["clip"]["sha256"].values()) == ["a" * 64]


@pytest.mark.parametrize("name", ["scores.csv.gz", "stamp.json"])
def test_files_that_are_no_record_are_refused(name, stamp, tmp_path):
    folder = reproduction.record(tmp_path / "run", scores(), stamp)
    (folder / name).write_bytes(b"no record")
    with pytest.raises(reproduction.RecordError):
        reproduction.read(folder)
