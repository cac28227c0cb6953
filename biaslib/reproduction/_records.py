"""A recorded run: a folder with two files, the scores and the stamp that says what made them."""

import datetime
import hashlib
import io
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import biaslib
from biaslib import models, runtime
from biaslib.errors import InputError
from biaslib.reproduction._compare import NOT_RELEASED
from biaslib.reproduction._printed import PAPERS
from biaslib.studies.scores import COLUMNS
from biaslib.studies.study4_captions import MODEL_HEADS

FORMAT = 1
SCORES, STAMP = "scores.csv.gz", "stamp.json"
LONGEST = 60 * 24 * 30
"""Minutes of the longest run that is believed: a month."""

TEXTS = ("paper", "made", "device", "driver", "precision", "biaslib", "source", "versions")
FIELDS = {
    **dict.fromkeys(TEXTS, str),
    **dict.fromkeys(("networks", "data", "pictures", "counts"), dict),
    "outputs": list,
    "detector": (dict, str),
    "minutes": (int, float),
}
"""What a stamp has besides its *format* and the hash of the *scores*, and of which type."""

NO_REGIONS = "none: no network of this run reads regions"
NOT_LOADED = "none was loaded"

RANGES = {
    **dict.fromkeys(("effect size", "effect size of X", "effect size of Y"), (-20.0, 20.0)),
    "c_asc": (-20.0, 20.0),
    "share": (0.0, 1.0),
    "entropy": (0.0, 20.0),
    **dict.fromkeys(("vlrs", "vlbs", "ivlas", "% positive"), (0.0, 100.0)),
    **dict.fromkeys(("agrees with the label", "towards men"), (0.0, 1.0)),
}
"""Between which numbers a statistic can lie. Effect sizes and C-ASC of sets of one size stay within
2; of sets of other sizes the bound is larger."""

NAMED = (
    *("study", "model", "dataset", "test", "level", "statistic", "experiment", "masking", "images"),
    *("variant", "set", "stereotype", "bias_type", "group", "domain"),
)
"""The columns that tell rows apart."""

COUNTED = {
    "ross2021_images": ("source", "test", "images"),
    "hamidieh2023_laion_pronouns": ("word", "images", "female", "male"),
}
"""The columns of tables of counts."""

_DEVICE = re.compile(r"(?!.*(//|www\.))[\w .,;:()/+®™-]+", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{12,64}")
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
        *format*, *paper*, *made* (UTC), *minutes*; *device*, *driver*, *precision*, that of the
        models as they were loaded, and *outputs*, that of their cached outputs (``model:
        precision``); *biaslib* and *source* (version and hash of the code), *versions* of
        libraries; *networks* (by name: *revision* and *sha256* of the files), *detector* (the same,
        or why there is none), *data* (checksum by name); *pictures* and *counts*.

    Raises
    ------
    RecordError
        If the run is of the planted world.
    """
    if run.profile != "paper":
        raise RecordError(
            f"a record is of released models and data; this run is of {run.profile!r}: choose "
            'PROFILE = "paper" at the top of the notebook'
        )
    shown, on = run.as_dict(), run.machine()
    rows = {name: json.loads(t.to_json(orient="records")) for name, t in (counts or {}).items()}
    return {
        "format": FORMAT,
        "paper": paper,
        "made": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "minutes": float(shown["Run time"].removesuffix(" s")) / 60,
        "device": shown["Device"],
        "driver": ", ".join(f"{name} {each}" for name, each in on["driver"].items()) or "none",
        "precision": shown["Precision"],
        "outputs": on["outputs"],
        "biaslib": biaslib.__version__,
        "source": runtime.used()["source"],
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
    files = runtime.Lock().entries().get(entry.source if entry else name, {}).get("files", {})
    hashes = {file: each["sha256"] for file, each in files.items()}
    named = _IN_REVISION.search(revision)
    if not hashes and named:
        hashes = {f"file {k}": each for k, each in enumerate(named.groups(), 1) if each}
    told = [each for each in named.groups() if each] if named else []
    known = not told or any(full.startswith(each) for full in hashes.values() for each in told)
    return {"revision": revision, "sha256": hashes, "released": known and _released(entry, files)}


def _of_regions(networks: Iterable[str]) -> list[str]:
    """Return which networks read regions."""
    known = (name for name in networks if name in models.REGISTRY)
    return [name for name in known if models.REGISTRY[name].features]


def _detector(networks: Iterable[str]) -> dict[str, Any] | str:
    """Return revision and hashes of the detector of regions, or why there is none."""
    if not _of_regions(networks):
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
        Tidy scores of one study, in the profile ``paper``.
    stamp
        Of :func:`stamp`.

    Raises
    ------
    RecordError
        If scores or stamp cannot be: the message names the field or the row.
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
        that were recorded, or scores or stamp cannot be: the message names the field or the row.
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


def _released(entry: models.Entry | None, files: Mapping[str, Any]) -> bool | None:
    """Tell whether files are the published ones: by the registered SHA-256; None where it has none.

    Files that are too small for the numbers of the network, at two bytes each, are others.
    """
    if entry is None or not files:
        return None
    if entry.sha256:
        return entry.sha256 in {each["sha256"] for each in files.values()}
    return None if sum(each["bytes"] for each in files.values()) >= 2 * entry.parameters else False


def not_released(stamp: Mapping[str, Any]) -> list[str]:
    """Return which networks of a stamp are known not to be the released ones."""
    named = {**stamp["networks"], "detector": stamp["detector"]}
    found = {name: each for name, each in named.items() if isinstance(each, Mapping)}
    return [name for name, each in found.items() if each.get("released") is False]


def _require(folder: Path, scores: pandas.DataFrame, stamp: Any) -> None:
    for problem in itertools.chain(_in_stamp(stamp), _in_scores(scores, stamp)):
        raise RecordError(f"{folder}: {problem}")


def _in_stamp(found: Any) -> Iterator[str]:
    """Yield what cannot be in a stamp; the first ends the check."""
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        yield f"{STAMP} is not of format {FORMAT}, the only one that this version reads"
    for name, kind in FIELDS.items():
        sound = isinstance(found.get(name), kind) and not isinstance(found.get(name), bool)
        if not sound or (isinstance(found[name], str) and not found[name].strip()):
            yield f"{STAMP} has no sound {name!r}: take it from biaslib.reproduction.stamp"
    if found["paper"] not in PAPERS:
        yield f"{STAMP} names the paper {found['paper']!r}, which is none of {', '.join(PAPERS)}"
    if not 0 < found["minutes"] <= LONGEST:
        yield f"minutes are {found['minutes']}; a run takes more than 0 and at most {LONGEST:,}"
    for name in ("device", "driver", "precision"):
        if not _DEVICE.fullmatch(found[name]) or len(found[name]) > 300:
            yield f"{name} is {found[name]!r:.60}: write letters and digits"
    if not _HASH.fullmatch(found["source"]):
        yield f"source is {found['source']!r:.60}, and no hash of the code"
    yield from _in_date(found["made"])
    yield from _in_precision(found)
    yield from _in_files(found)
    pictures = [found["pictures"].get(name) for name in ("asked", "there")]
    if not all(type(n) is int and n >= 0 for n in pictures) or pictures[1] > pictures[0]:
        yield f"pictures asked for and there are {pictures}: write two counts, the second no larger"
    for name, rows in found["counts"].items():
        if name not in COUNTED:
            yield f"counts has {name!r}, which is none of {', '.join(COUNTED)}"
        if not all(isinstance(row, Mapping) and set(COUNTED[name]) <= set(row) for row in rows):
            yield f"counts of {name} are not rows of {', '.join(COUNTED[name])}"


def _in_date(made: str) -> Iterator[str]:
    try:
        date = datetime.datetime.strptime(made, "%Y-%m-%d %H:%M")
    except ValueError:
        yield f"made is {made!r}: write a date as 2026-01-31 12:00"
    if date > datetime.datetime.now() + datetime.timedelta(days=2):
        yield f"made is {made!r}, which is still to come"


def _in_precision(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield where cached outputs are of another precision than the run says, or of several."""
    of_outputs = sorted({str(each).rpartition(": ")[2] for each in found["outputs"]})
    fix = "set BIASLIB_PRECISION once, restart, and run the notebook again"
    if len(of_outputs) > 1:
        yield f"cached outputs are in {' and '.join(of_outputs)} ({found['outputs']!r:.200}): {fix}"
    if not set(of_outputs) <= set(found["precision"].split("; ")):
        yield (
            f"precision is {found['precision']!r}, but cached outputs were computed in "
            f"{of_outputs[0]}: {fix}"
        )


def _in_files(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield which network, detector or data has no hash."""
    if not found["networks"]:
        yield "the stamp names no network: note them with run.record(weights=...)"
    named = dict(found["networks"])
    if isinstance(found["detector"], Mapping):
        named["the detector"] = found["detector"]
    for name, each in named.items():
        hashes = each.get("sha256") if isinstance(each, Mapping) else None
        if not isinstance(hashes, Mapping) or not hashes:
            yield (
                f"the stamp has no SHA-256 of the files of {name} (networks, detector): keep the "
                "lock file of the run's downloads, BIASLIB_LOCK, and record the run again"
            )
        if not all(_HASH.fullmatch(str(value)) for value in hashes.values()):
            yield f"the stamp has a SHA-256 of {name} that is none: {dict(hashes)!r:.80}"
    # Without a picture the data are the words of this package, whose hash is that of its source.
    hashed = any(_HASH.fullmatch(str(each)) for each in found["data"].values())
    there, readers = found["pictures"].get("there"), _of_regions(found["networks"])
    own = _HASH.fullmatch(str(found["data"].get("regions")))
    if there and readers and isinstance(found["detector"], str) and not own:
        yield (
            f"the stamp has no detector with its SHA-256, and {', '.join(readers)} read regions of "
            "pictures: keep the lock file of the run's downloads, BIASLIB_LOCK; of regions from a "
            "file note its hash with run.record(data={'regions': ...})"
        )
    if there and not hashed:
        yield "the stamp names no data by its hash: note it with run.record(data=...)"


def _in_scores(scores: pandas.DataFrame, stamp: Mapping[str, Any]) -> Iterator[str]:
    missing = [column for column in COLUMNS if column not in scores]
    if missing:
        yield f"the scores lack the columns {', '.join(missing)}"
    if scores.empty:
        yield "there are no scores"
    for column, only in (("profile", "paper"), ("study", stamp["paper"])):
        others = sorted(set(scores[column].astype(str)) - {only})
        if others:
            yield f"the scores have the {column} {', '.join(others)} beside {only}"
    registered = {way.label: way.paper for way in MODEL_HEADS}
    used = {registered.get(model, model) for model in scores["model"]}
    if used - set(stamp["networks"]):
        yield f"the stamp has no network {', '.join(sorted(used - set(stamp['networks'])))}"
    numbers = ["value", "low", "high", "p_value", "n"]
    try:
        known = scores[numbers].astype(float)
    except (TypeError, ValueError) as error:
        yield f"a column of {', '.join(numbers)} holds something else than numbers ({error})"
    for wrong, told in _impossible(scores, known):
        if wrong.any():
            yield f"row {int(np.flatnonzero(wrong)[0]) + 2}: {_said(scores[wrong].iloc[0])}, {told}"
    twice = scores.duplicated([name for name in NAMED if name in scores])
    if twice.any():
        yield f"row {int(np.flatnonzero(twice)[0]) + 2}: {_said(scores[twice].iloc[0])}, twice"
    if known["value"].isna().all():
        yield "none of the scores has a value"


def _impossible(
    scores: pandas.DataFrame, known: pandas.DataFrame
) -> Iterator[tuple[pandas.Series, str]]:
    """Yield which rows cannot be, and why."""
    value, low, high, p, n = (known[name] for name in known)
    least, most = (
        scores["statistic"].map({name: RANGES[name][end] for name in RANGES}).fillna(beyond)
        for end, beyond in enumerate((-np.inf, np.inf))
    )
    ends = known[["value", "low", "high"]]
    outside = ends.lt(least - 1e-9, axis=0) | ends.gt(most + 1e-9, axis=0)
    yield np.isinf(ends).any(axis=1), "which is not finite"
    yield outside.any(axis=1), "outside the range of its statistic"
    yield low > high, "an interval whose lower end lies above the upper one"
    yield (value < low - 1e-9) | (value > high + 1e-9), "a value outside its interval"
    yield (p < 0) | (p > 1), "with a p-value outside 0 to 1"
    yield ~(n >= 1) & value.notna(), "with n below 1, or no n"
    yield n.notna() & (n % 1 != 0), "with an n that is no whole number"


def _said(row: pandas.Series) -> str:
    ends = f"{row['value']} [{row['low']}, {row['high']}], n {row['n']}, p {row['p_value']}"
    return f"{row['statistic']} of {row['test']}, {row['model']}, is {ends}"
