"""A paper's study from an empty folder to a record: by one command that is killed, and by Run all.

A hub on this machine has weights and data in their publishers' formats, and answers for every
other host. The command runs in a process of its own, which gets SIGKILL once while it downloads and
once while it computes, and is called a third time; the notebook runs in another empty folder. Both
have to leave the same record.

From the command line, in the folder ``tests``: ``python -m support.from_nothing PAPER [SIZE]``.
"""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pandas
from support import (
    rehearsal,
    rehearsal_clip_audit,
    rehearsal_grounded,
    rehearsal_stereotype,
    released,
    repositories,
)
from support.hub import Hub, serving

from biaslib import reproduction
from biaslib.checkpoints.downloads import BY_HAND
from biaslib.datasets import vlstereoset

PATIENCE = 1200
"""Seconds that a busy machine may take for one process."""

LINKS = "links"
"""Folder of the hub with what hosts of image links have, at ``host/path``."""

OF_THE_RUN = ("made", "minutes")
"""Fields of a stamp that two runs of the same cannot share."""

DIES = "DIES_AS_IT_COMPUTES"

STARTUP = f'''
"""What a process does before all else: links to pictures are asked for by the proxy, as http."""
import os, signal, socket
import requests
from biaslib.runtime import Store

asked, rows, looked_up = requests.Session.request, Store.rows, socket.getaddrinfo

def of_numbers(host, *more, **named):  # where no name leads anywhere, a name server takes its time
    if any(map(str.isalpha, str(host or ""))) and host != "localhost":
        raise socket.gaierror(socket.EAI_NONAME, "no names here")
    return looked_up(host, *more, **named)

socket.getaddrinfo = of_numbers

def request(self, method, url, **more):
    return asked(self, method, url.replace("https://", "http://", 1), **more)

def dying(self, key, ids, compute, *more, **named):
    def last(which):
        if int(os.environ["{DIES}"]) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        os.environ["{DIES}"] = str(int(os.environ["{DIES}"]) - 1)
        return compute(which)
    return rows(self, key, ids, last, *more, **named)

requests.Session.request = request
if "{DIES}" in os.environ:
    Store.rows = dying
'''


@dataclasses.dataclass(frozen=True)
class Study:
    """What the rehearsal of a paper's study needs.

    Attributes
    ----------
    publish
        Writes the data sets into the folder of the hub as their publishers have them: those of the
        model hub at ``owner/name``, files of other hosts at ``host/path``, pictures that are linked
        to at ``links/host/path``; what is not there is a dead link, or answered with 404.
    hold
        A part of the path of the file in whose middle the command is killed.
    missing
        What the command must say that it could not get, in the order of its lines.
    computed
        How many shards of models' outputs are stored before it is killed again.
    by_hand
        Whether weights that have to be placed by hand are there.
    place
        Places what only a person can get into the data folder.
    startup
        More of what a process does before all else, as Python.
    """

    publish: Callable[[Path], object]
    hold: str
    missing: tuple[str, ...] = ()
    computed: int = 1
    by_hand: bool = False
    place: Callable[[Path], object] = lambda folder: None
    startup: str = ""


FAIRFACE, COYO = "HuggingFaceM4/FairFace", "kakaobrain/coyo-700m"


def publish_fairface_and_coyo(folder: Path) -> None:
    """Write FairFace's two splits and the first file of COYO-700M; others are not to be asked."""
    for split in rehearsal_clip_audit.SPLITS:
        rehearsal_clip_audit.write_parquet(folder / FAIRFACE, split)
    corpus = rehearsal_clip_audit.write_corpus(folder / COYO / "data")
    (corpus / "part-00000.parquet").rename(corpus / "part-00000-17da-c000.snappy.parquet")
    (corpus / "part-00001-17da-c000.snappy.parquet").write_bytes(b"not asked for")


def publish_vlstereoset(folder: Path) -> Path:
    """Write the table where its authors have it, and pictures behind half of its links."""
    table = folder / vlstereoset.URL.removeprefix("https://")
    rehearsal_stereotype.write(table, rehearsal_stereotype.rows())
    for at, row in enumerate(rehearsal_stereotype.rows()):
        path = folder / LINKS / row["Imaeg URL"].removeprefix("http://")
        path.parent.mkdir(parents=True, exist_ok=True)
        if at % 4 < 2:
            repositories.picture(at).resize((96, 96)).save(path)
    return table


OF_THE_SAMPLE = """
from biaslib.datasets import _fetcher, vlstereoset
vlstereoset.SHA256 = ""
_fetcher._addresses = lambda *_: []
"""
"""The authors' table, whose hash is pinned, may not be passed on; and its proxy alone knows the
hosts of the sample: a machine without a network looks for each in vain for seconds."""

LOST = tuple(f"some images of {name}" for name in sorted(rehearsal_stereotype.TERMS))

DRIVE = "drive.usercontent.google.com/download"


def publish_vl_bert(folder: Path) -> None:
    """Write VL-BERT's file where Google Drive has it."""
    (folder / DRIVE).parent.mkdir(exist_ok=True)
    shutil.copyfile(folder / BY_HAND / "vl-bert-base-prec.model", folder / DRIVE)


STUDIES = {
    ("srinivasan2021", "full"): Study(
        publish_vl_bert, hold=DRIVE, missing=("72 photographs, which the authors never released",)
    ),
    ("srinivasan2021", "taste"): Study(publish_vl_bert, hold="pytorch_model.bin"),
    ("hamidieh2023", "full"): Study(publish_fairface_and_coyo, hold="part-00000-17da"),
    ("hamidieh2023", "taste"): Study(publish_fairface_and_coyo, hold="validation-00001"),
    ("zhou2022", "full"): Study(
        publish_vlstereoset, hold="unc-nlp/lxmert", missing=LOST, startup=OF_THE_SAMPLE
    ),
    ("zhou2022", "taste"): Study(
        publish_vlstereoset, hold="/sister/1/1.jpg", missing=LOST[:1], startup=OF_THE_SAMPLE
    ),
}
"""The studies that are rehearsed, by paper and size."""

if (
    released.REAL.is_dir()
):  # their authors' files may not be passed on, and are held to their hashes
    STUDIES["ross2021", "full"] = Study(
        rehearsal_grounded.publish,
        hold="COCO_val2014_000000035705",
        missing=("the authors' region features", "pictures of concap"),
    )
    STUDIES["ross2021", "taste"] = Study(rehearsal_grounded.publish, hold="vilt-b32-mlm/resolve")


@dataclasses.dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal took: minutes of command and notebook, and bytes by each of the calls."""

    scores: pandas.DataFrame
    stamp: dict
    told: str
    minutes: float
    of_notebook: float
    sent: tuple[int, ...]

    def __str__(self) -> str:
        sent = ", ".join(f"{each / 1e6:.2f}" for each in self.sent)
        return (
            f"command {self.minutes:.1f} minutes in three calls, notebook {self.of_notebook:.1f}; "
            f"sent to each call and to the notebook: {sent} MB"
        )


def published(folder: Path) -> Path:
    """Write all repositories of models, and what all studies read, in publishers' formats."""
    repositories.build_all(folder)
    for publish in {study.publish for study in STUDIES.values()}:
        publish(folder)
    return folder


@contextlib.contextmanager
def empty(hub: Hub, study: Study, size: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give an empty folder, and the environment of a process that keeps everything in it."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        (root / "startup").mkdir()
        (root / "startup" / "sitecustomize.py").write_text(
            STARTUP + study.startup, encoding="utf-8"
        )
        (root / "data").mkdir()
        study.place(root / "data")
        if study.by_hand:
            shutil.copytree(hub.folder / BY_HAND, root / "cache" / BY_HAND)
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("BIASLIB_", "HF_"))}
        code = [root / "startup", rehearsal.TESTS.parent, rehearsal.TESTS]
        yield (
            root,
            ours
            | {
                "BIASLIB_CACHE": str(root / "cache"),
                "BIASLIB_DATA": str(root / "data"),
                "BIASLIB_LOCK": str(root / "biaslib-lock.json"),
                "BIASLIB_MIRROR": f"{hub.address}/files",
                "BIASLIB_RUNS": str(root / "runs"),
                "BIASLIB_STORE": str(root / "store"),
                "CUDA_VISIBLE_DEVICES": "",
                "HF_ENDPOINT": hub.address,
                "HF_HOME": str(root / "hf"),
                "HTTP_PROXY": hub.address,
                "HTTPS_PROXY": "http://127.0.0.1:9",
                "NO_PROXY": "127.0.0.1,localhost",
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(map(str, code)),
                "BIASLIB_SIZE": size,
            },
        )


@contextlib.contextmanager
def called(root: Path, environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen]:
    """Run ``python -m biaslib`` in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "biaslib", *arguments]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=root, env=environment, **how) as process:
        try:
            yield process
        finally:
            process.kill()


def by_command(hub: Hub, paper: str, size: str, study: Study, root: Path, environment: dict):
    """Run the command, killed twice on the way; return what it said, and the bytes of each call."""
    arguments, sent = ("reproduce", paper, "--out", "runs", "--size", size), []
    # Killed in the middle of a download.
    hub.sent, hub.hold = 0, study.hold
    hub.held.clear(), hub.released.clear()
    with called(root, environment, *arguments) as process:
        begun = time.monotonic()
        while not hub.held.wait(0.1):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() - begun < PATIENCE, f"{study.hold} was never asked for"
        process.kill()
        process.communicate(timeout=PATIENCE)
    hub.hold = ""
    hub.released.set()
    sent.append(hub.sent)
    # Killed by itself as soon as some outputs are stored and others are computed; then not at all.
    for more, status in (({DIES: str(study.computed)}, -signal.SIGKILL), ({}, 0)):
        hub.sent = 0
        with called(root, environment | more, *arguments) as process:
            told = process.communicate(timeout=PATIENCE)[0]
        assert process.returncode == status, told
        assert not more or not [*root.glob("runs/*")], "a record was there before the end"
        sent.append(hub.sent)
    return told, sent


def by_run_all(root: Path, environment: dict[str, str], paper: str) -> rehearsal.Outcome:
    """Run all cells of the notebook but those on the planted world alone, in ``paper``."""
    path = rehearsal.NOTEBOOKS / f"{reproduction.STUDIES[paper]}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = rehearsal.without_the_planted_world(notebook.cells)
    outcome = rehearsal.executed(path, notebook, environment | {"BIASLIB_PROFILE": "paper"})
    assert outcome.error == "", outcome.error
    assert "\\u001b" not in nbformat.writes(notebook), "bars left control characters in outputs"
    return outcome


def require_same(one: tuple[pandas.DataFrame, dict], other: tuple[pandas.DataFrame, dict]) -> None:
    """Fail unless two records have the same scores, to the last digit, and the same stamp."""
    pandas.testing.assert_frame_equal(one[0], other[0], check_exact=True)
    differ = {name: (one[1][name], other[1][name]) for name in one[1].keys() | other[1].keys()
              if name not in OF_THE_RUN and one[1][name] != other[1][name]}  # fmt: skip
    assert not differ, differ


def rehearse(folder: Path, paper: str, size: str = "full") -> Rehearsed:
    """Run a study by the command and by its notebook, each from nothing; compare the records.

    Parameters
    ----------
    folder
        Of :func:`published`.
    paper, size
        A key of :data:`STUDIES`.
    """
    study = STUDIES[paper, size]
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(serving(folder))
        hub.links = folder / LINKS
        root, environment = stack.enter_context(empty(hub, study, size))
        begun = time.monotonic()
        told, sent = by_command(hub, paper, size, study, root, environment)
        minutes = (time.monotonic() - begun) / 60
        missing = [line for line in told.splitlines() if line.startswith("Without ")]
        assert len(missing) == len(study.missing), told
        for line, what in zip(missing, study.missing, strict=True):
            assert line.startswith(f"Without {what}"), line
        hub.sent = 0
        there, its_own = stack.enter_context(empty(hub, study, size))
        outcome = by_run_all(there, its_own, paper)
        [record] = map(reproduction.read, root.glob("runs/*"))
        [other] = map(reproduction.read, there.glob("runs/*"))
        require_same(record, other)
        assert sent[2] == 0, "what was there was fetched again"
        assert sum(sent) - hub.sent <= sent[0], "more was fetched again than the kill interrupted"
        return Rehearsed(*record, told, minutes, outcome.seconds / 60, (*sent, hub.sent))


def main(paper: str, size: str = "full") -> None:
    """Rehearse one study, and say what it took."""
    with tempfile.TemporaryDirectory() as folder:
        print(rehearse(published(Path(folder)), paper, size))


if __name__ == "__main__":
    main(*sys.argv[1:])
