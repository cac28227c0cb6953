"""A recorded run: a folder with two files, the scores and the stamp that says what made them."""

import datetime
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas

import biaslib
from biaslib import models, runtime
from biaslib.errors import InputError
from biaslib.reproduction._compare import NOT_RELEASED
from biaslib.reproduction._printed import PAPERS
from biaslib.studies.scores import COLUMNS

FORMAT = 1
SCORES, STAMP = "scores.csv.gz", "stamp.json"

TEXTS = ("paper", "size", "made", "device", "driver", "precision", "biaslib", "source", "versions")
FIELDS = {
    "networks": dict,
    "data": dict,
    "pictures": dict,
    "counts": dict,
    "outputs": list,
    "detector": (dict, str),
    "minutes": (int, float),
}
FIELDS |= dict.fromkeys(TEXTS, str)
"""What a stamp has besides its *format* and the hash of the *scores*, and of which type."""

NO_REGIONS = "none: no network of this run reads regions"
NOT_LOADED = "none was loaded"

_IN_REVISION = re.compile(r"sha256 ([0-9a-f]{12,64})(?: and ([0-9a-f]{12,64}))*")


class RecordError(InputError):
    """A record is not as it should be; the message names it, and what to do."""


def stamp(
    run: runtime.Provenance,
    paper: str,
    pictures: Mapping[str, int],
    counts: Mapping[str, pandas.DataFrame] | None = None,
) -> dict[str, Any]:
    """Return the stamp of a run: what ran, on what, with which files.

    Each network has *released*: whether its files are the released ones, null where no hash of
    those is registered.

    Parameters
    ----------
    run
        What the notebook ran on: its weights and data must be noted there.
    paper
        Whose study it is.
    pictures
        How many were *asked* for, and how many were *there*.
    counts
        Tables of counts that scores do not hold: see :func:`biaslib.reproduction.compare`.

    Returns
    -------
    dict
        *format*, *paper*, *size* (``full`` or ``taste``), *made* (UTC), *minutes*; *device*,
        *driver*, *precision*, that of the models as they were loaded, and *outputs*, that of their
        cached outputs (``model:
        precision``); *biaslib* and *source* (version and hash of the code), *versions* of
        libraries; *networks* (by name: *revision* and *sha256* of the files), *detector* (the same,
        or why there is none), *data* (checksum by name); *pictures* and *counts*.

    Raises
    ------
    RecordError
        If the run is of the planted world, or a file of the code was edited during it.
    """
    if run.profile != "paper":
        raise RecordError(
            f"a record is of released models and data; this run is of {run.profile!r}: choose "
            'PROFILE = "paper" at the top of the notebook'
        )
    shown, on, used = run.as_dict(), run.machine(), runtime.used()
    if edited := [name for name, digest in used["files"].items() if digest == runtime.EDITED]:
        raise RecordError(
            f"{runtime.first_few(edited)} changed during the run, so that nobody can say which "
            "code made these scores: run the notebook again"
        )
    rows = {name: json.loads(t.to_json(orient="records")) for name, t in (counts or {}).items()}
    return {
        "format": FORMAT,
        "paper": paper,
        "size": run.size,
        "made": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "minutes": float(shown["Run time"].removesuffix(" s")) / 60,
        "device": shown["Device"],
        "driver": ", ".join(f"{name} {each}" for name, each in on["driver"].items()) or "none",
        "precision": shown["Precision"],
        "outputs": on["outputs"],
        "biaslib": biaslib.__version__,
        "source": used["source"],
        "versions": shown["Versions"],
        "networks": {name: _network(name, revision) for name, revision in run.weights.items()},
        "detector": _detector(run.weights),
        "data": dict(run.data),
        "pictures": dict(pictures),
        "counts": rows,
    }


def _network(name: str, revision: str) -> dict[str, Any]:
    """Return revision and hashes of a network's files: as they were recorded, or as it says."""
    entry = models.REGISTRY.get(name)
    files = runtime.Lock().files(entry.source if entry else name)
    hashes = {file: each["sha256"] for file, each in files.items()}
    named = _IN_REVISION.search(revision)
    of_revision = [digest for digest in named.groups() if digest] if named else []
    if not hashes:
        hashes = {f"file {k}": digest for k, digest in enumerate(of_revision, 1)}
    released = _released(entry, files)
    # A folder of one's own says in its revision which files it holds: others than the recorded.
    if of_revision and not any(h.startswith(d) for h in hashes.values() for d in of_revision):
        released = False
    return {"revision": revision, "sha256": hashes, "released": released}


def _released(entry: models.Entry | None, files: Mapping[str, Any]) -> bool | None:
    """Tell whether files are the published ones: by the registered SHA-256; None where it has none.

    Files that are too small for the numbers of the network, at two bytes each, are others.
    """
    if entry is None or not files:
        return None
    if entry.sha256:
        return any(file["sha256"] == entry.sha256 for file in files.values())
    if sum(file["bytes"] for file in files.values()) < 2 * entry.parameters:
        return False
    return None


def _detector(networks: Iterable[str]) -> dict[str, Any] | str:
    """Return revision and hashes of the detector of regions, or why there is none."""
    known = (models.REGISTRY[name] for name in networks if name in models.REGISTRY)
    if not any(entry.features for entry in known):
        return NO_REGIONS
    found = runtime.Lock().entries().get(models.REGISTRY["detector"].source)
    return _network("detector", found["revision"]) if found else NOT_LOADED


def record(folder: str | Path, scores: pandas.DataFrame, stamp: Mapping[str, Any]) -> Path:
    """Write a record's two files, ``scores.csv.gz`` and ``stamp.json``; return the folder.

    The stamp on the disk has the SHA-256 of the file of scores, as *scores*.

    Parameters
    ----------
    folder
        Where; it is made. A record that is there already is not written over.
    scores
        Tidy scores of one study, in the profile ``paper``, or ``taste`` if the stamp is of one.
    stamp
        Of :func:`stamp`.

    Raises
    ------
    RecordError
        If scores or stamp lack something: the message names the field or the columns.
    """
    folder = Path(folder)
    _require(folder, scores, stamp)
    if (folder / STAMP).exists():
        raise RecordError(f"{folder} holds a record already: choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        way = {"method": "gzip", "mtime": 1}
        scores.to_csv(folder / SCORES, index=False, compression=way)
        whole = {**stamp, "scores": runtime.file_sha256(folder / SCORES)}
        text = json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / STAMP).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be written: {error.strerror or error}. Free some space, or choose "
            "another folder",
            path=folder,
        ) from error
    return folder


def read(folder: str | Path) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """Return the scores and the stamp of a record, checked.

    ``attrs["not released"]`` of the scores names networks whose files are not the released ones:
    :func:`biaslib.reproduction.compare` then says of no number that it is met.

    Raises
    ------
    RecordError
        If a file is not there or cannot be read, the format is another, the scores are not those
        that were recorded, or scores or stamp lack something: the message names it.
    """
    folder = Path(folder)
    try:
        found = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        data = (folder / SCORES).read_bytes()
        scores = pandas.read_csv(io.BytesIO(data), compression="gzip", low_memory=False)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise RecordError(
            f"{folder} cannot be read as a record ({type(error).__name__}: {error}). A record is "
            f"a folder with {SCORES} and {STAMP}"
        ) from error
    if isinstance(found, dict):
        found.setdefault("size", "full")  # of records from before there were tastes
    _require(folder, scores, found)
    if found.get("scores") != hashlib.sha256(data).hexdigest():
        raise RecordError(
            f"{folder}: {SCORES} has another SHA-256 than {STAMP} says under 'scores': it was "
            "changed after the run. Take the file as the run wrote it, or record the run again"
        )
    scores.attrs[NOT_RELEASED] = not_released(found)
    return scores, found


def counts_of(stamp: Mapping[str, Any]) -> dict[str, pandas.DataFrame]:
    """Return the tables of counts that a stamp holds, for :func:`biaslib.reproduction.compare`."""
    return {name: pandas.DataFrame(rows) for name, rows in stamp["counts"].items()}


def not_released(stamp: Mapping[str, Any]) -> list[str]:
    """Return which networks of a stamp are known not to be the released ones."""
    networks = _networks(stamp).items()
    return [name for name, network in networks if network.get("released") is False]


def _networks(stamp: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the networks of a stamp, with the detector where one was loaded."""
    of_regions = stamp["detector"]
    detector = {"detector": of_regions} if isinstance(of_regions, Mapping) else {}
    return dict(stamp["networks"]) | detector


def _require(folder: Path, scores: pandas.DataFrame, stamp: Any) -> None:
    for problem in _problems(scores, stamp):
        raise RecordError(f"{folder}: {problem}", path=folder)


def _problems(scores: pandas.DataFrame, stamp: Any) -> Iterator[str]:
    """Yield what a record lacks, or what does not belong together in it; the first is enough."""
    if not isinstance(stamp, Mapping) or stamp.get("format") != FORMAT:
        yield f"{STAMP} is not of format {FORMAT}, the only one that this version reads"
    for name, kind in FIELDS.items():
        if not isinstance(stamp.get(name), kind) or stamp[name] == "":
            yield f"{STAMP} has no sound {name!r}: take it from biaslib.reproduction.stamp"
    if stamp["paper"] not in PAPERS:
        yield f"{STAMP} names the paper {stamp['paper']!r}, which is none of {', '.join(PAPERS)}"
    for name, network in _networks(stamp).items():
        if not network.get("sha256"):
            yield (
                f"the stamp has no SHA-256 of the files of {name}: keep the lock file of the "
                "run's downloads, BIASLIB_LOCK, and record the run again"
            )
    precisions = {str(output).rpartition(": ")[2] for output in stamp["outputs"]}
    if len(precisions) > 1 or not precisions <= set(stamp["precision"].split("; ")):
        yield (
            f"precision is {stamp['precision']!r}, and cached outputs are in "
            f"{' and '.join(sorted(precisions))}: set BIASLIB_PRECISION once, restart, and run the "
            "notebook again"
        )
    missing = [column for column in COLUMNS if column not in scores]
    if missing or scores.empty:
        yield f"there are no scores, or they lack columns: {', '.join(missing or COLUMNS)}"
    profile = "taste" if stamp["size"] == "taste" else "paper"
    for column, only in (("profile", profile), ("study", stamp["paper"])):
        others = sorted(set(scores[column].astype(str)) - {only})
        if others:
            yield f"the scores have the {column} {', '.join(others)} beside {only}"
