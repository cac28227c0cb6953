"""Recorded runs: written, read, checked, added, compared; and what is refused."""

import copy
import json

import numpy as np
import pandas
import pytest

from biaslib import ledger, runtime
from biaslib.ledger.__main__ import main
from biaslib.models import REGISTRY


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


def files_of(name, share=1.0):
    """Files as large as the released ones would be in half precision."""
    size = int(2 * REGISTRY[name].parameters * share)
    return {"pytorch_model.bin": {"sha256": "a" * 64, "bytes": size}}


@pytest.fixture
def found(monkeypatch):
    """A record with weights of the released size and revision."""
    run = runtime.Provenance("paper")
    run.record(weights={"clip": "abc, sha256 aaaa", "vilt-itm": REGISTRY["vilt-itm"].revision})
    entries = {REGISTRY[name].source: {"files": files_of(name)} for name in ("clip", "vilt-itm")}
    monkeypatch.setattr(runtime.Lock, "entries", lambda self: entries)
    return ledger.record("zhou2022", scores(), run)


def changed(found, table=None, **header):
    """The record with another header, or other scores that it knows of."""
    table = found.scores if table is None else table
    new = copy.deepcopy(dict(found.header)) | header
    if "content" not in header:
        new["content"] = ledger.content_hash(table, new)
    return ledger.Record(new, table, "run.parquet")


@pytest.mark.parametrize(("other", "allowed"), [("float32", 1e-5), ("float16", 1e-2)])
def test_records_of_two_precisions_may_differ_by_more(found, other, allowed):
    assert found.header["precision"] == "float32"
    second = changed(found, precision=other)
    assert ledger.compare(found, second).allowed == pytest.approx(allowed)


def test_a_record_is_written_and_read_as_it_is(found, tmp_path):
    path = found.write(tmp_path / "run.parquet")
    again = ledger.read(path)
    ledger.check(again)
    assert again.header == found.header
    pandas.testing.assert_frame_equal(again.scores, found.scores, check_dtype=False)
    wanted = {"schema", "device", "minutes", "versions", "weights", "data", "content"}
    assert wanted <= set(again.header)
    assert {"python", "numpy", "torch"} <= set(again.header["versions"])
    assert again.header["weights"]["clip"]["files"] == files_of("clip")


def test_rows_in_another_order_are_the_same_record(found):
    mixed = found.scores.sample(frac=1, random_state=0)[sorted(found.scores)]
    assert ledger.content_hash(mixed, found.header) == found.header["content"]


def test_the_hash_is_of_the_header_too(found):
    for name in set(found.header) - {"content"}:
        other = dict(found.header) | {name: "other"}
        assert ledger.content_hash(found.scores, other) != found.header["content"], name


def test_a_planted_run_is_not_recorded():
    with pytest.raises(ledger.LedgerError, match="this run is of 'planted'"):
        ledger.record("zhou2022", scores(), runtime.Provenance("planted"))


def test_scores_that_are_given_twice_are_recorded_once(found):
    both = ledger.record("zhou2022", [scores(), scores().iloc[:3]], runtime.Provenance("paper"))
    assert len(both.scores) == len(scores())


def test_summaries_get_the_labels_that_they_lack(found):
    run = runtime.Provenance("paper")
    some = scores()[["model", "test", "level", "statistic", "value", "low", "high", "n"]]
    some = some.assign(level="anti")
    both = ledger.record("zhou2022", [scores(), some], run).scores
    assert set(both["profile"]) == {"paper"}
    assert both["revision"].notna().all()


def refuse(record, told):
    with pytest.raises(ledger.LedgerError, match=told) as caught:
        ledger.check(record)
    assert str(caught.value).startswith("run.parquet: ")


def weights(name, revision="abc", share=1.0):
    return {"revision": revision, "files": files_of(name, share)}


IMAGES = {"source": "google", "test": "C6", "images": "many"}
HEADERS = {
    "another schema": ({"schema": 2}, "its schema is 2; this version reads 1"),
    "no schema": ({"schema": None}, "its schema is None"),
    "another paper": ({"paper": "zhou2023"}, "of 'zhou2023', which is none"),
    "no date": ({"made": "yesterday"}, "its date 'yesterday' is not like"),
    "a date without zeros": ({"made": "2026-1-1 1:1"}, "1:1' is not like 2026-01-31 12:00"),
    "future": ({"made": "2999-01-01 00:00"}, "which is still to come"),
    "a device as a link": ({"device": "[T4](https://example.org)"}, "is no plain name"),
    "a long device": ({"device": "T4 " * 101}, "its header has a text of 303 characters: T4 T4"),
    "a long library": ({"versions": {"v" * 301: "1"}}, "its header has a text of 301 characters"),
    "no device": ({"device": None}, "device of its header is None"),
    "minutes in text": ({"minutes": "<b>"}, "minutes of its header is '<b>'"),
    "counts": ({"counts": {"table": []}}, "which is none of ross2021_images"),
    "counts of a result": (
        {"counts": {"zhou2022_scores": [{"model": "CLIP", "value": 45.72}]}},
        "'zhou2022_scores', which is none of",
    ),
    "counts in text": (
        {"counts": {"ross2021_images": [IMAGES]}},
        "ross2021_images are not rows of source, test, images",
    ),
    "counts without columns": (
        {"counts": {"ross2021_images": [{"a": 1}]}},
        "ross2021_images are not rows",
    ),
    "counts without rows": ({"counts": {"ross2021_images": [1]}}, "ross2021_images are not rows"),
    "weights as a list": ({"weights": [1]}, r"weights of its header is \[1\]"),
    "weights as text": (
        {"weights": {"clip": "abc"}},
        "the weights of clip have no revision and files",
    ),
    "bytes as text": (
        {"weights": {"clip": {"revision": "r", "files": {"a": {"sha256": "a", "bytes": "9"}}}}},
        "the weights of clip have no revision and files",
    ),
    **{
        f"minutes {minutes}": ({"minutes": minutes}, "minutes: write a finite")
        for minutes in (float("nan"), float("inf"), -float("inf"), -1, True)
    },
    **{
        f"device {device!r}": ({"device": device}, "is no plain name")
        for device in (
            *(
                "a $x$",
                "T4 \u202egnp",
                "https://evil.example/x",
                "T4 www.evil.example",
                "{raw}html",
            ),
            *("T4 @all", "T4 #1", "a~b", "T4 &lt;img&gt;", "T4\u200b", "\u0422\u0034", ""),
        )
    },
    "no weights": ({"weights": {}}, "it names no weights"),
    "unknown model": (
        {"weights": {"clap": weights("clip")}},
        "model 'clap' is not in the registry",
    ),
    "foreign revision": (
        {"weights": {"vilt-itm": weights("vilt-itm", "0" * 40)}},
        "vilt-itm is of revision '0000.*; the released one that biaslib knows is 1c3554941086",
    ),
    "random weights": (
        {"weights": {"clip": weights("clip", share=0.01)}},
        r"clip has weights of 3.0 MB \(sha256 aaaaaaaaaaaa\); 151,277,313 released parameters",
    ),
    "weights of other models": (
        {"weights": {"vilt-itm": weights("vilt-itm", REGISTRY["vilt-itm"].revision)}},
        "it has scores of clip, but says nothing of their weights",
    ),
    "no files": (
        {"weights": {"clip": {"revision": "abc", "files": {}}}},
        r"clip has weights of 0.0 MB \(sha256 unknown\)",
    ),
}


@pytest.mark.parametrize(("changes", "told"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_cannot_be_believed_is_refused_by_name(changes, told, found):
    refuse(changed(found, **changes), told)


@pytest.mark.parametrize("field", ["schema", "device", "weights", "versions", "content"])
def test_a_header_without_a_field_is_refused(field, found):
    header = {name: each for name, each in found.header.items() if name != field}
    refuse(ledger.Record(header, found.scores, "run.parquet"), field)
    refuse(ledger.Record([1], found.scores, "run.parquet"), "its header is no")


SCORES = {
    "value as text": (lambda s: s.assign(value="a"), "'value' holds text"),
    "value yes": (lambda s: s.assign(value=True), "'value' holds yes and no"),
    "level a number": (lambda s: s.assign(level=1), "'level' holds numbers"),
    "no test": (lambda s: s.assign(test=None), "'test' .*"),
    "n unknown": (lambda s: s.assign(n=np.nan), "its n is not a number"),
    "twice": (
        lambda s: pandas.concat([s, s.assign(value=45.72)]),
        "vlrs of overall, CLIP, is there twice",
    ),
    "two heads of one model": (
        lambda s: pandas.concat([s, s.assign(head="other", value=45.2)]),
        "vlrs of overall, CLIP, is there twice",
    ),
    "missing column": (lambda s: s.drop(columns="n"), "its scores lack the columns n"),
    "no rows": (lambda s: s.iloc[:0], "it has no scores"),
    "planted": (lambda s: s.assign(profile="planted"), "scores of the profile 'planted'"),
    "another study": (
        lambda s: s.assign(study="ross2021"),
        "it has scores of the study 'ross2021'",
    ),
    "a text": (lambda s: s.assign(head="x" * 301), "a text of 301 characters"),
    "another column": (
        lambda s: s.assign(caption="My sister is rude"),
        "columns that the study has not: caption",
    ),
    "out of range": (
        lambda s: s.assign(value=101.0, high=102.0),
        r"vlrs of overall, CLIP, is 101.0 \[44.0, 102.0\], outside 0 to 100",
    ),
    "infinite": (lambda s: s.assign(high=np.inf), "outside 0 to 100"),
    "crossed": (lambda s: s.assign(low=50.0, high=40.0), "lower end lies above"),
    "p-value": (lambda s: s.assign(p_value=1.5), "p-value outside 0 to 1"),
    "above its interval": (lambda s: s.assign(low=40.0, high=44.0), "outside its interval"),
    "below its interval": (lambda s: s.assign(low=46.0, high=47.0), "outside its interval"),
    "below its lower end": (lambda s: s.assign(low=46.0, high=np.nan), "outside its interval"),
    "no units": (lambda s: s.assign(n=0), "its n is no whole number"),
    "half a unit": (lambda s: s.assign(n=0.5), "its n is no whole number"),
    "fewer than none": (lambda s: s.assign(n=-1), "its n is no whole number"),
    "no value": (lambda s: s.assign(value=np.nan), "none of its scores has a value"),
}


@pytest.mark.parametrize(("change", "told"), SCORES.values(), ids=SCORES)
def test_scores_that_cannot_be_believed_are_refused_by_name(change, told, found):
    refuse(changed(found, change(found.scores)), told)


@pytest.mark.parametrize(
    "device", ["cpu (x86_64)", "cuda, NVIDIA H100 80GB HBM3 (x86_64)", "Intel(R) Arc™ A770 (arm64)"]
)
def test_the_names_of_devices_are_taken(found, device):
    ledger.check(changed(found, device=device, minutes=0))


def test_what_has_no_units_may_have_no_value(found):
    first = found.scores["test"] == "gender"
    columns = {name: found.scores[name].mask(first) for name in ("value", "low", "high")}
    none = found.scores.assign(n=found.scores["n"].mask(first, 0), **columns)
    ledger.check(changed(found, none))


def test_what_was_changed_or_lost_after_it_was_written_is_noticed(found):
    content = found.header["content"]
    for table in (found.scores.assign(value=44.9), found.scores.iloc[1:]):
        told = "a row or its header was changed, or a row lost"
        refuse(changed(found, table, content=content), told)
    refuse(changed(found, minutes=1.5, content=content), "its header was changed")


def test_files_that_are_no_records_are_refused_by_name(tmp_path):
    (tmp_path / "text.parquet").write_text("not a table")
    pandas.DataFrame({"a": [1]}).to_parquet(tmp_path / "table.parquet")
    for name, told in (("text", "cannot be read as a record"), ("table", "but no record")):
        with pytest.raises(ledger.LedgerError, match=rf"{name}\.parquet.*{told}"):
            ledger.read(tmp_path / f"{name}.parquet")
    with pytest.raises(ledger.LedgerError, match=r"absent\.parquet cannot be read"):
        ledger.read(tmp_path / "absent.parquet")


def test_a_record_is_added_once_and_found_again(found, tmp_path, capsys):
    sent = found.write(tmp_path / "sent.parquet")
    runs = tmp_path / "runs"
    assert ledger.records(runs) == []
    assert main(["check", str(sent)]) == 0
    assert "8 scores" in capsys.readouterr().out
    assert main(["add", str(sent), "--to", str(runs)]) == 0
    [again] = ledger.records(runs)
    assert again.name.startswith("zhou2022-")
    assert again.header["content"] == found.header["content"]
    assert main(["add", str(sent), "--to", str(runs)]) == 1
    assert "is there already" in capsys.readouterr().err


def test_a_page_that_shows_records_depends_on_their_names():
    ledger.records()
    assert "runs/*" in runtime.used()["files"]


def test_the_records_of_this_repository_are_sound():
    assert all(not each.header.get("rehearsal") for each in ledger.records())


def test_a_damaged_record_in_the_folder_is_named(found, tmp_path):
    path = found.write(tmp_path / "run.parquet")
    table = path.read_bytes()
    path.write_bytes(table[:200] + b"\0" * 50 + table[250:])
    with pytest.raises(ledger.LedgerError, match="run"):
        ledger.records(tmp_path)


def test_two_records_of_one_study_are_compared(found, tmp_path, capsys):
    near = changed(found, found.scores.assign(value=45.0 + 1e-6))
    far = changed(found, found.scores.assign(value=45.1))
    assert ledger.compare(found, near).agree
    assert not ledger.compare(found, far).agree
    lost = near.scores["value"].where(near.scores.index > 0)
    told = ledger.compare(found, changed(near, near.scores.assign(value=lost)))
    assert not told.agree
    assert told.told.startswith("1 of the numbers only one has; ")
    other = changed(near, near.scores.assign(value=45.005), device="cuda:0, NVIDIA T4 (x86_64)")
    assert ledger.compare(found, other).agree
    assert ledger.compare(found, other).allowed > ledger.compare(found, near).allowed
    weights = json.loads(json.dumps(found.header["weights"]))
    weights["clip"]["files"]["pytorch_model.bin"]["sha256"] = "b" * 64
    told = ledger.compare(found, changed(near, weights=weights))
    assert not told.agree
    assert "other weights of clip" in told.told
    paths = [str(each.write(tmp_path / name)) for each, name in ((found, "a"), (far, "b"))]
    assert main(["compare", *paths]) == 1
    assert "DO NOT AGREE" in capsys.readouterr().out
    with pytest.raises(ledger.LedgerError, match="different studies"):
        ledger.compare(found, changed(found, paper="ross2021"))


def test_records_that_cannot_be_believed_are_not_compared(found):
    with pytest.raises(ledger.LedgerError, match="an interval whose lower end"):
        ledger.compare(found, changed(found, found.scores.assign(low=50.0, high=40.0)))


def test_a_model_that_one_record_lacks_is_told(found):
    alone = changed(found, found.scores[found.scores["model"] == "CLIP"])
    weights = {"clip": found.header["weights"]["clip"]}
    told = ledger.compare(found, changed(alone, alone.scores, weights=weights))
    assert "other weights of vilt-itm" in told.told
    assert not told.agree
    other = found.scores["model"] == "ViLT"
    lone = changed(
        found, found.scores[other], weights={"vilt-itm": found.header["weights"]["vilt-itm"]}
    )
    with pytest.raises(ledger.LedgerError, match="no number in common"):
        ledger.compare(changed(alone, alone.scores, weights=weights), lone)


def test_verdicts_of_a_record_are_those_of_its_numbers(found):
    rows = found.verdicts().set_index("id")
    assert rows.loc["zhou2022/table3/overall/clip/vlbs", "verdict"] == "cannot be said"
    assert rows.loc["zhou2022/table3/overall/albef/vlbs", "verdict"] == "not run"
    exact = found.scores.assign(value=45.72, low=45.72, high=45.72)
    alone = changed(found, exact).verdicts().set_index("id")
    assert alone.loc["zhou2022/table3/overall/clip/vlbs", "verdict"] == "cannot be said"
    drawn = exact.assign(level="balanced selections", head=None, count=np.nan)
    rows = changed(found, pandas.concat([exact, drawn])).verdicts().set_index("id")
    assert rows.loc["zhou2022/table3/overall/clip/vlbs", "verdict"] == "met"
    assert rows.loc["zhou2022/table3/overall/clip/vlrs", "verdict"] == "not met"
