"""A report's folder is whole and of one run, whatever ends a run; no report is lost."""

import errno
import functools
import itertools
import os
import random
import signal
import sys
from types import SimpleNamespace

import pandas
import pytest

from biaslib import audit
from biaslib.audit import _report
from biaslib.errors import InputError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks what is killed")

TAKES_ROOM = ("open", "os.mkdir", "os.rename")
CHANGES = {"full": TAKES_ROOM, "killed": (*TAKES_ROOM, "os.remove", "os.rmdir", "shutil.rmtree")}
COMPARED = pandas.DataFrame({"measured": ["vlbs"], "value": [1.0]})


def audited(name, revision, *values):
    """Return an audit with some scores, without a model."""
    model = SimpleNamespace(name=name, revision=revision)
    columns = ["part", "dataset", "value", "p_value", "p_holm"]
    scores = pandas.DataFrame([("a", "d", value, 0.5, 1.0) for value in values], columns=columns)
    not_run = pandas.DataFrame(
        [("zhou2022", "b", "the disk is full", "error")],
        columns=["study", "part", "reason", "kind"],
    )
    return audit.Audit(audit.AuditedModel(name, model), "planted", scores, not_run, "today")


CLIP, BERT = audited("clip", "1", 0.5, 0.25), audited("bert", "1", 0.125)
RUNS = {
    "clip": (CLIP,),
    "clip, fewer parts": (audited("clip", "1", 0.5),),
    "clip, trained on": (audited("clip", "2", 0.75),),
    "bert": (BERT,),
    "clip beside bert": (CLIP, COMPARED, BERT),
    "nothing": (audited("clip", "1"),),
}


@pytest.fixture(autouse=True)
def _short_page(monkeypatch):
    monkeypatch.setattr("biaslib.runtime.source_hash", lambda: "source")
    monkeypatch.setattr(_report, "report", lambda *given: f"<p>{given[0].scores}{given[1:]}")


def save(place, name, step=-1, how=""):
    """Save in a process of its own, killed or out of disk where it changes its step-th file."""
    child = os.fork()
    if child:
        return child
    count, status = itertools.count(), 0

    def hook(event, arguments):
        is_change = event != "open" or "w" in str(arguments[1]) or arguments[2] & os.O_CREAT
        if event in CHANGES.get(how, ()) and is_change and next(count) == step:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.addaudithook(hook)
    try:
        audit.save(place, *RUNS[name])
    except (OSError, InputError):
        status = 1
    finally:
        os._exit(status)


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@functools.cache
def known():
    return {name: _report.files(*run) for name, run in RUNS.items()}


def reports(place):
    """Return by folder which run's report it holds: the texts are those of one run alone."""
    wholes = known()
    held = {}
    for folder in place.parent.glob(f"{place.name}*"):
        texts = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
        (held[folder.name],) = (name for name, whole in wholes.items() if whole == texts)
    return held


def follow(place, seed):
    """Draw some runs into one folder, each with its fault, and check the folder after each."""
    rng, seen = random.Random(seed), set()
    for name in rng.choices([*RUNS], k=5):
        before = reports(place)
        step, how = rng.randrange(30), rng.choice(["", "killed", "full"])
        status, held = ended(save(place, name, step, how)), reports(place)
        done, has_scores = held.get(place.name), name != "nothing"
        assert status in {"": [0, 1], "full": [0, 1], "killed": [0, 1, -signal.SIGKILL]}[how]
        assert done == name or status != 0
        assert done == before.get(place.name) or status != 1
        assert done in {None, name, before.get(place.name)}
        assert has_scores or before == held or not before.get(place.name)
        seen.update(held.values())
        gone = seen - set(held.values())
        assert not gone or (gone == {"clip"} and "clip beside bert" in held.values())
    ended(save(place, "bert"))
    assert reports(place)[place.name] == "bert"
    assert [path.name for path in place.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("seed", range(12))
def test_after_any_sequence_of_runs_kills_and_full_disks_each_report_is_whole(tmp_path, seed):
    follow(tmp_path / "audit", seed)


def test_audits_at_once_into_one_folder_are_all_kept(tmp_path):
    names = ["clip", "bert", "clip, trained on", "clip beside bert"] * 2
    children = [save(tmp_path / "audit", name) for name in names]
    assert [ended(child) for child in children] == [0] * 8
    assert set(names) - {"clip"} <= set(reports(tmp_path / "audit").values())


def test_what_is_no_report_is_neither_written_over_nor_moved(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "scores.csv").write_text("theirs")
    (tmp_path / "notes" / "notes.md").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path / "notes")
    places = (tmp_path / name for name in ("file", "file/below", "notes", "loop"))
    for place in [*places, ".", ".."]:
        for do in (audit.require_writable, lambda place: audit.save(place, CLIP)):
            with pytest.raises((InputError, OSError)):
                do(place)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"
    assert (tmp_path / "notes" / "scores.csv").read_text() == "theirs"


def test_a_link_leads_to_the_folder_and_an_empty_one_is_filled(tmp_path):
    (tmp_path / "disk" / "audit").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "audit")
    audit.require_writable(tmp_path / "link")
    assert audit.save(tmp_path / "link", CLIP)[0].read_text() == CLIP.scores.to_csv(index=False)
    assert reports(tmp_path / "disk" / "audit") == {"audit": "clip"}


def test_a_store_that_cannot_be_opened_is_told_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "store").write_text("a file")
    monkeypatch.setenv("BIASLIB_STORE", str(tmp_path / "store"))
    with pytest.raises(OSError, match="store"):
        audit.require_writable(tmp_path / "audit")
