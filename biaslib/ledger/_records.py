"""Recorded runs: one file a run, checked before it is believed."""

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import biaslib
from biaslib import models, published, runtime
from biaslib.ledger._contracts import PAPERS, LedgerError
from biaslib.ledger._runs import Tables, tables_of_run
from biaslib.ledger._verdicts import verdicts
from biaslib.studies.scores import COLUMNS

SCHEMA = 1
HEADER = b"biaslib.record"
RUNS = Path(biaslib.__file__).parents[1] / "runs"
"""Where the records of this repository lie."""

LIBRARIES = ("torch", "transformers", "open_clip_torch", "numpy", "scipy", "pandas")
FIELDS = {"schema", "paper", "made", "minutes", "device", "biaslib", "source", "versions"}
FIELDS |= {"weights", "data", "counts", "content"}
LONGEST_TEXT = 300
BYTES_A_NUMBER = 2
"""The fewest bytes in which a weight is released: half precision."""

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


@dataclass(frozen=True)
class Record:
    """A run of a study in ``paper``: its scores, and what they were made with.

    Attributes
    ----------
    header
        *schema*, *paper*, *made* (UTC), *minutes*, *device*, *biaslib* and *source* (version and
        hash of the code), *versions* of libraries, *weights* (by model: *revision*, *source*,
        *files* with *sha256* and *bytes*), *data* (checksum by name), *counts* (tables that scores
        do not hold) and *content*, the hash of the scores.
    scores
        Tidy scores.
    name
        Of its file, without ending.
    """

    header: Mapping[str, Any]
    scores: pandas.DataFrame
    name: str = ""

    @property
    def paper(self) -> str:
        """Which paper's study was run."""
        return self.header["paper"]

    @property
    def label(self) -> str:
        """When and on what, in a line."""
        mark = "REHEARSAL on random weights, " if self.header.get("rehearsal") else ""
        return f"{mark}{self.header['made'][:10]}, {self.header['device']}"

    @property
    def counts(self) -> dict[str, pandas.DataFrame]:
        """Tables of counts, by the names of the files of :mod:`biaslib.published`."""
        return {name: pandas.DataFrame(rows) for name, rows in self.header["counts"].items()}

    def tables(self) -> Tables:
        """Return the scores in the form of the paper's tables."""
        return tables_of_run(self.paper, self.scores, self.counts)

    def verdicts(self) -> pandas.DataFrame:
        """Return what the run says of the paper's contracts: :func:`biaslib.ledger.verdicts`."""
        return verdicts(self.paper, self.tables(), self.scores)

    def write(self, path: str | Path) -> Path:
        """Write one file, a Parquet table with the header in it; return its path."""
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.Table.from_pandas(self.scores, preserve_index=False)
        header = json.dumps(dict(self.header), sort_keys=True).encode()
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), HEADER: header})
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with runtime.writing(path, "Free some space, or choose another folder", LedgerError):
            parquet.write_table(table, path, compression="zstd")
        return path


def content_hash(scores: pandas.DataFrame) -> str:
    """Return the SHA-256 of scores, whatever their order of rows and columns.

    Numbers count with twelve digits, so that the hash survives writing and reading.
    """
    columns = sorted(scores.columns)
    text = scores[columns].to_csv(index=False, float_format="%.12g", lineterminator="\n")
    head, *lines = text.splitlines()
    return hashlib.sha256("\n".join([head, *sorted(lines)]).encode()).hexdigest()


def record(
    paper: str,
    scores: pandas.DataFrame | Sequence[pandas.DataFrame],
    run: runtime.Provenance,
    counts: Mapping[str, pandas.DataFrame] | None = None,
) -> Record:
    """Return the record of a run in ``paper``.

    Parameters
    ----------
    paper
        Whose study it is.
    scores
        Its tidy scores, or several tables of them.
    run
        What the notebook ran on: its weights and data must be noted there.
    counts
        Tables of counts, by the names of the files of :mod:`biaslib.published`.

    Raises
    ------
    LedgerError
        If the run is of the planted world.
    """
    if run.profile != "paper":
        raise LedgerError(
            f"a record is of released models and data; this run is of {run.profile!r}: choose "
            'PROFILE = "paper" at the top of the notebook'
        )
    tables = [scores] if isinstance(scores, pandas.DataFrame) else list(scores)
    every = pandas.concat([_completed(each, tables[0]) for each in tables], ignore_index=True)
    stamp = run.as_dict()
    rows = {name: json.loads(t.to_json(orient="records")) for name, t in (counts or {}).items()}
    header = {
        "schema": SCHEMA,
        "paper": paper,
        "made": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "minutes": round(float(stamp["Run time"].removesuffix(" s")) / 60, 1),
        "device": stamp["Device"],
        "biaslib": biaslib.__version__,
        "source": runtime.used()["source"],
        "versions": _versions(),
        "weights": {name: _weights(name, text) for name, text in run.weights.items()},
        "data": dict(run.data),
        "counts": rows,
        "content": content_hash(every),
    }
    return Record(header, every)


def _completed(table: pandas.DataFrame, first: pandas.DataFrame) -> pandas.DataFrame:
    """Return scores with the labels that a summary of them lacks, as the first table has them."""
    labels = {name: first[name].iloc[0] for name in ("study", "profile", "dataset", "seed")}
    missing = {name: value for name, value in labels.items() if name not in table}
    if "revision" not in table:
        revisions = first.drop_duplicates("model").set_index("model")["revision"]
        missing["revision"] = table["model"].map(revisions)
    if "p_value" not in table:
        missing["p_value"] = np.nan
    return table.assign(**missing)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _weights(name: str, revision: str) -> dict[str, Any]:
    """Return revision, source and files of weights, as the lock file has them."""
    entry = models.REGISTRY.get(name)
    source = entry.source if entry else name
    files = runtime.Lock().entries().get(source, {}).get("files", {})
    return {"revision": revision, "source": source, "files": files}


def read(path: str | Path) -> Record:
    """Return a record from its file, unchecked.

    Raises
    ------
    LedgerError
        If the file is not there, cannot be read, or is no record.
    """
    from pyarrow import parquet

    path = Path(path)
    try:
        table = parquet.read_table(path)
        header = json.loads((table.schema.metadata or {})[HEADER])
    except KeyError:
        raise LedgerError(f"{path} is a table, but no record: it has no header") from None
    except Exception as error:
        raise LedgerError(
            f"{path} cannot be read as a record ({type(error).__name__}: {error})"
        ) from error
    return Record(header, table.to_pandas(), path.stem)


def check(found: Record, rehearsal: bool = False) -> None:
    """Check a record: schema, hashes, plausibility.

    Parameters
    ----------
    found
        What was read.
    rehearsal
        Accept random weights, in a run that is marked as a rehearsal.

    Raises
    ------
    LedgerError
        For another version of the schema, a missing column, a changed row, scores outside their
        range, texts that are none of ours, a foreign revision, or weights that are too small to
        be the released ones.
    """
    name = found.name or "the record"
    _check_header(name, found)
    _check_scores(name, found)
    if not rehearsal:
        _check_weights(name, found)


def _refuse(name: str, what: str) -> None:
    raise LedgerError(f"{name}: {what}")


def _check_header(name: str, found: Record) -> None:
    header = found.header
    if header.get("schema") != SCHEMA:
        _refuse(name, f"its schema is {header.get('schema')!r}; this version reads {SCHEMA}")
    missing = sorted(FIELDS - set(header))
    if missing:
        _refuse(name, f"its header lacks {', '.join(missing)}: write it anew with ledger.record")
    if header["paper"] not in PAPERS:
        _refuse(name, f"it is of {header['paper']!r}, which is none of {', '.join(PAPERS)}")
    try:
        made = datetime.datetime.strptime(header["made"], "%Y-%m-%d %H:%M")
    except (TypeError, ValueError):
        _refuse(name, f"its date {header['made']!r} is not like 2026-01-31 12:00")
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    if made > now + datetime.timedelta(days=1):
        _refuse(name, f"it was made on {header['made']}, which is still to come")
    strange = set(header["counts"]) - {row.removesuffix(".csv") for row in published.tables().file}
    if strange:
        _refuse(name, f"its counts have {sorted(strange)}, which is no printed table")


def _check_scores(name: str, found: Record) -> None:
    scores = found.scores
    missing = [column for column in COLUMNS if column not in scores]
    if missing:
        _refuse(name, f"its scores lack the columns {', '.join(missing)}")
    if scores.empty:
        _refuse(name, "it has no scores")
    if content_hash(scores) != found.header["content"]:
        _refuse(name, "its scores are not those that were recorded: a row was changed or lost")
    others = set(scores["profile"]) - {"paper"}
    if others:
        _refuse(name, f"it has scores of the profile {', '.join(map(repr, others))}")
    others = set(scores["study"]) - {found.paper}
    if others:
        _refuse(name, f"it has scores of {', '.join(map(repr, others))}")
    for column in scores.columns[[not pandas.api.types.is_numeric_dtype(t) for t in scores.dtypes]]:
        lengths = scores[column].dropna().astype(str).str.len()
        if len(lengths) and lengths.max() > LONGEST_TEXT:
            _refuse(name, f"column {column!r} has a text of {lengths.max()} characters")
    _check_ranges(name, scores)


def _check_ranges(name: str, scores: pandas.DataFrame) -> None:
    known = scores["statistic"].map(RANGES)
    least = known.map(lambda ends: ends[0], na_action="ignore").astype(float).fillna(-np.inf)
    most = known.map(lambda ends: ends[1], na_action="ignore").astype(float).fillna(np.inf)
    numbers = scores[["value", "low", "high"]].astype(float)
    outside = numbers.lt(least - 1e-9, axis=0) | numbers.gt(most + 1e-9, axis=0)
    wrong = (outside | np.isinf(numbers)).any(axis=1)
    if wrong.any():
        row = scores[wrong].iloc[0]
        ends = f"{least[wrong].iloc[0]:g} to {most[wrong].iloc[0]:g}"
        _refuse(
            name,
            f"{row['statistic']} of {row['test']}, {row['model']}, is {row['value']} "
            f"[{row['low']}, {row['high']}], outside {ends}",
        )
    p = scores["p_value"].astype(float)
    if ((p < 0) | (p > 1)).any() or (scores["n"].astype(float) < 0).any():
        _refuse(name, "it has a p-value outside 0 to 1, or a negative n")
    if (scores["low"].astype(float) > scores["high"].astype(float)).any():
        _refuse(name, "it has an interval whose lower end lies above the upper one")


def _check_weights(name: str, found: Record) -> None:
    given = found.header["weights"]
    if not given:
        _refuse(name, "it names no weights: note them with run.record(weights=...)")
    for model, entry in given.items():
        known = models.REGISTRY.get(model)
        if known is None:
            _refuse(name, f"model {model!r} is not in the registry of released models")
        if known.revision and known.revision[:12] not in entry["revision"]:
            _refuse(
                name,
                f"{model} is of revision {entry['revision'].split(',')[0]!r}; the released one "
                f"that biaslib knows is {known.revision[:12]}",
            )
        pinned = [file["sha256"] for file in entry["files"].values()]
        if known.sha256 and entry["files"] and known.sha256 not in pinned:
            _refuse(name, f"{model} has weights of a foreign hash; known is {known.sha256[:12]}")
        largest = max(entry["files"].values(), key=lambda file: file["bytes"], default={})
        size = sum(file["bytes"] for file in entry["files"].values())
        least = BYTES_A_NUMBER * (known.parameters or 0)
        if size < least and not known.source.startswith("package "):
            told = f"{model} has weights of {size / 1e6:,.1f} MB (sha256 "
            told += f"{largest.get('sha256', 'unknown')[:12]}); {known.parameters:,} released "
            told += f"parameters take {least / 1e6:,.0f} MB at least"
            _refuse(name, f"{told}: these are others, such as random ones")


def records(folder: str | Path | None = None, rehearsal: bool = False) -> list[Record]:
    """Return the checked records of a folder, newest first; none where there is no folder.

    Parameters
    ----------
    folder
        None takes the folder ``runs`` of this repository.
    rehearsal
        See :func:`check`.

    Raises
    ------
    LedgerError
        If one of them is not as it should be.
    """
    if folder is None:
        runtime.note_files(RUNS / "*")
    folder = RUNS if folder is None else Path(folder)
    found = [read(path) for path in sorted(folder.glob("*.parquet"))]
    for each in found:
        check(each, rehearsal and bool(each.header.get("rehearsal")))
    return sorted(found, key=lambda each: each.header["made"], reverse=True)


def add(path: str | Path, folder: str | Path | None = None, rehearsal: bool = False) -> Path:
    """Check a record and put it into a folder, named after paper, day and content.

    Raises
    ------
    LedgerError
        If it is not as it should be, or there already.
    """
    found = read(path)
    check(found, rehearsal)
    header = dict(found.header) | ({"rehearsal": True} if rehearsal else {})
    folder = RUNS if folder is None else Path(folder)
    name = f"{found.paper}-{header['made'][:10]}-{header['content'][:8]}.parquet"
    if (folder / name).exists():
        raise LedgerError(f"{folder / name} is there already: this record was added before")
    return Record(header, found.scores, name).write(folder / name)


SAME_FAMILY, OTHER_DEVICE = 1e-5, 1e-2
"""How far scores of one study may differ between devices of one family, and of two."""


@dataclass(frozen=True)
class Comparison:
    """Two records of one study beside each other.

    Attributes
    ----------
    rows
        Statistic by statistic: *n* rows that both have, *only first*, *only second*, *largest*
        and *mean* absolute difference.
    allowed
        How far they may lie apart, by their devices.
    agree
        Whether no difference is larger, and the weights are the same.
    told
        What is not the same, in a sentence.
    """

    rows: pandas.DataFrame = field(repr=False)
    allowed: float
    agree: bool
    told: str


def compare(first: Record, second: Record) -> Comparison:
    """Return how two records of one study differ.

    Raises
    ------
    LedgerError
        If they are of different studies.
    """
    if first.paper != second.paper:
        raise LedgerError(f"{first.paper} and {second.paper} are different studies")
    ignored = {"value", "low", "high", "p_value", "revision", "seed", "n"}
    texts = [c for c in first.scores if c in second.scores and c not in ignored]
    keys = [c for c in texts if not pandas.api.types.is_float_dtype(first.scores[c])]
    one, two = (each.scores.drop_duplicates(keys)[[*keys, "value"]] for each in (first, second))
    both = one.merge(two, on=keys, how="outer", suffixes=("", " of second"), indicator=True)
    apart = (both["value"] - both["value of second"]).abs()
    rows = both.assign(apart=apart).groupby("statistic")
    table = rows.agg(
        n=("apart", "count"),
        largest=("apart", "max"),
        mean=("apart", "mean"),
        only_first=("_merge", lambda side: int((side == "left_only").sum())),
        only_second=("_merge", lambda side: int((side == "right_only").sum())),
    ).reset_index()
    family = [each.header["device"].split(",")[-1].strip() for each in (first, second)]
    allowed = SAME_FAMILY if family[0] == family[1] else OTHER_DEVICE
    others = sorted(
        model
        for model in set(first.header["weights"]) & set(second.header["weights"])
        if _hashes(first, model) != _hashes(second, model)
    )
    far = bool((apart > allowed).any())
    told = f"other weights of {', '.join(others)}; " if others else ""
    told += f"largest difference {apart.max():.2g}, allowed {allowed:g}"
    return Comparison(table, allowed, not far and not others, told)


def _hashes(found: Record, model: str) -> set[str]:
    return {file["sha256"] for file in found.header["weights"][model]["files"].values()}
