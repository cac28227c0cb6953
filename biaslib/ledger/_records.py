"""Recorded runs: one file a run, checked before it is believed."""

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import biaslib
from biaslib import models, runtime
from biaslib.ledger._contracts import PAPERS, LedgerError
from biaslib.ledger._runs import Tables, tables_of_run
from biaslib.ledger._verdicts import verdicts
from biaslib.studies.scores import COLUMNS
from biaslib.studies.study4_captions import WAYS

SCHEMA = 1
HEADER = b"biaslib.record"
RUNS = Path(biaslib.__file__).parents[1] / "runs"
"""Where the records of this repository lie."""

LIBRARIES = ("torch", "transformers", "open_clip_torch", "numpy", "scipy", "pandas")
FIELDS = {
    **dict.fromkeys(("paper", "made", "device", "precision", "biaslib", "source", "content"), str),
    **dict.fromkeys(("versions", "weights", "data", "counts"), dict),
    "schema": int,
    "minutes": (int, float),
}
"""What a header has, and of which type."""

NUMBERS = ("value", "low", "high", "p_value", "n", "seed")
NAMED = ("study", "model", "dataset", "test", "level", "statistic")
OWN = {
    "ross2021": (
        ("experiment", "masking", "images", "variant"),
        (
            *("n_words", "n_images", "numerator", "p_low", "p_high", "p_method", "p_value_words"),
            *("p_low_words", "p_high_words", "p_value_images", "p_value_attributes", "domain"),
        ),
    ),
    "srinivasan2021": (("set", "stereotype"), ("probability", "normaliser", "count")),
    "hamidieh2023": (("bias_type", "group"), ("kind", "p_adjusted")),
    "zhou2022": ((), ("head", "count", "tied", "method")),
}
"""The columns that a study's scores must have besides the common ones, and those that they may.
The former, and the domain of pictures, tell its rows apart."""

COUNTED = {
    "ross2021_images": (("source", "test"), ("images",)),
    "hamidieh2023_laion_pronouns": (
        ("word",),
        ("images", *(f"{who}{end}" for who in ("female", "male") for end in ("", " low", " high"))),
    ),
}
"""The texts and the numbers of tables of counts."""

LONGEST_TEXT = 300
DEVICE = re.compile(r"(?!.*(//|www\.))[\w .,;:()/+®™-]+", re.ASCII)
"""A device's name, which stands in sentences of the book: no markup, formula, or address."""
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
        *schema*, *paper*, *made* (UTC), *minutes*, *device*, *precision*, *biaslib* and *source*
        (version and hash of the code), *versions* of libraries, *weights* (by model: *revision*,
        *source*, *files* with *sha256* and *bytes*), *data* (checksum by name), *counts* (tables
        that scores do not hold) and *content*, the hash of the scores and of all this.
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
        try:
            parquet.write_table(table, path, compression="zstd")
        except OSError as error:
            raise LedgerError(
                f"{path} cannot be written: {error.strerror or error}. Free some space, or choose "
                "another folder"
            ) from error
        return path


def content_hash(scores: pandas.DataFrame, header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record, whatever the order of its rows and columns.

    Numbers count with twelve digits, so that the hash survives writing and reading. Of the header
    all counts but the hash itself and the mark of a rehearsal.
    """
    columns = sorted(scores.columns)
    text = scores[columns].to_csv(index=False, float_format="%.12g", lineterminator="\n")
    head, *lines = text.splitlines()
    fields = {k: v for k, v in header.items() if k not in ("content", "rehearsal")}
    told = json.dumps(fields, sort_keys=True)
    return hashlib.sha256("\n".join([told, head, *sorted(lines)]).encode()).hexdigest()


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
    every = every.drop_duplicates(ignore_index=True)
    must, may = OWN[paper]
    every = every[[each for each in every if each in (*COLUMNS, *must, *may)]]
    stamp = run.as_dict()
    rows = {name: json.loads(t.to_json(orient="records")) for name, t in (counts or {}).items()}
    header = {
        "schema": SCHEMA,
        "paper": paper,
        "made": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "minutes": round(float(stamp["Run time"].removesuffix(" s")) / 60, 1),
        "device": stamp["Device"],
        "precision": stamp["Precision"],
        "biaslib": biaslib.__version__,
        "source": runtime.used()["source"],
        "versions": _versions(),
        "weights": {name: _weights(name, text) for name, text in run.weights.items()},
        "data": dict(run.data),
        "counts": rows,
    }
    return Record(header | {"content": content_hash(every, header)}, every)


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
        For another version of the schema, a field of another type, a missing or an unknown
        column, a changed row, a number that is there twice or outside its range, a foreign
        revision or hash, or weights that are too small to be the released ones.
    """
    for problem in _problems(found, rehearsal):
        raise LedgerError(f"{found.name or 'the record'}: {problem}")


def _problems(found: Record, rehearsal: bool) -> Iterator[str]:
    """Yield what is wrong with a record; each question relies on the answers to those before."""
    yield from _in_header(found.header)
    yield from _in_scores(found)
    if not rehearsal:
        yield from _in_weights(found.header["weights"])
        yield from _not_covered(found)
    yield from _not_judged(found)


def _in_header(header: Any) -> Iterator[str]:
    if not isinstance(header, dict):
        yield "its header is no table of names: write it anew with ledger.record"
    if header.get("schema") != SCHEMA:
        yield f"its schema is {header.get('schema')!r}; this version reads {SCHEMA}"
    missing = sorted(set(FIELDS) - set(header))
    if missing:
        yield f"its header lacks {', '.join(missing)}: write it anew with ledger.record"
    for field_, kind in FIELDS.items():
        if not isinstance(header[field_], kind):
            yield f"{field_} of its header is {header[field_]!r:.60}, of another type"
    if header["paper"] not in PAPERS:
        yield f"it is of {header['paper']!r}, which is none of {', '.join(PAPERS)}"
    made = _date(header["made"])
    if made is None:
        yield f"its date {header['made']!r:.60} is not like 2026-01-31 12:00"
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    if made > now + datetime.timedelta(days=1):
        yield f"it was made on {header['made']}, which is still to come"
    for stem, rows in header["counts"].items():
        yield from _in_counts(stem, rows)
    if not DEVICE.fullmatch(header["device"]):
        yield f"the device {header['device']!r:.60} is no plain name: write letters and digits"
    if isinstance(header["minutes"], bool) or not 0 <= header["minutes"] < np.inf:
        yield f"it took {header['minutes']} minutes: write a finite number that is not negative"
    longest = max(_texts({k: v for k, v in header.items() if k != "counts"}), key=len)
    if len(longest) > LONGEST_TEXT:
        yield f"its header has a text of {len(longest):,} characters: {longest:.40}..."


def _date(text: str) -> datetime.datetime | None:
    """Return a date that is written as records write it, else None."""
    form = "%Y-%m-%d %H:%M"
    try:
        made = datetime.datetime.strptime(text, form)
    except ValueError:
        return None
    return made if made.strftime(form) == text else None


def _texts(found: Any) -> list[str]:
    """Return all texts in a header, names included."""
    if isinstance(found, dict):
        return [text for pair in found.items() for each in pair for text in _texts(each)]
    if isinstance(found, list):
        return [text for each in found for text in _texts(each)]
    return [str(found)]


def _in_counts(stem: str, rows: Any) -> Iterator[str]:
    if stem not in COUNTED:
        yield f"its counts have {stem!r}, which is none of {', '.join(COUNTED)}"
    texts, numbers = COUNTED[stem]
    try:
        table = pandas.DataFrame(rows, columns=[*texts, *numbers])
        sound = all(isinstance(each, str) for each in table[list(texts)].to_numpy().ravel())
        sound &= bool(np.isfinite(table[list(numbers)].to_numpy(dtype=float)).all())
    except (TypeError, ValueError, AssertionError):
        sound = False
    if not sound or table.duplicated(list(texts)).any():
        yield f"its counts {stem} are not rows of {', '.join([*texts, *numbers])}"


def _in_scores(found: Record) -> Iterator[str]:
    scores = found.scores
    must, may = OWN[found.paper]
    missing = [column for column in (*COLUMNS, *must) if column not in scores]
    if missing:
        yield f"its scores lack the columns {', '.join(missing)}"
    strange = [str(each) for each in scores if each not in (*COLUMNS, *must, *may)]
    if strange:
        yield f"its scores have columns that the study has not: {', '.join(strange)}"
    if scores.empty:
        yield "it has no scores"
    for column in scores:
        yield from _in_column(column, scores[column])
    if content_hash(scores, found.header) != found.header["content"]:
        yield "it is not as it was: a row or its header was changed, or a row lost"
    known = {"profile": {"paper"}, "variant": {"paper", "released"}, "study": {found.paper}}
    for column, names in known.items():
        others = set(scores.get(column, names)) - names
        if others:
            yield f"it has scores of the {column} {', '.join(map(repr, others))}"
    twice = scores.duplicated(_named(scores, found.paper))
    if twice.any():
        row = scores[twice].iloc[0]
        yield f"{row['statistic']} of {row['test']}, {row['model']}, is there twice"
    yield from _out_of_range(scores)


def _named(scores: pandas.DataFrame, paper: str) -> list[str]:
    """Return the columns that tell a study's rows apart."""
    return [name for name in (*NAMED, *OWN[paper][0], "domain") if name in scores]


def _is_text(values: pandas.Series) -> bool:
    return not pandas.api.types.is_numeric_dtype(values)


def _in_column(column: str, values: pandas.Series) -> Iterator[str]:
    number = column in NUMBERS or column == "experiment"
    if number != (not _is_text(values)) and (number or column in COLUMNS):
        yield f"column {column!r} holds {'text' if number else 'numbers'}"
    if pandas.api.types.is_bool_dtype(values):
        yield f"column {column!r} holds yes and no"
    if not _is_text(values):
        if column == "n" and not np.isfinite(values.astype(float)).all():
            yield "its n is not a number throughout"
        return
    known = values.dropna()
    if not known.map(lambda each: isinstance(each, str)).all():
        yield f"column {column!r} holds something else than text"
    if column in COLUMNS and len(known) < len(values):
        yield f"column {column!r} has a row without an entry"
    longest = int(known.str.len().max()) if len(known) else 0
    if longest > LONGEST_TEXT:
        yield f"column {column!r} has a text of {longest} characters"


def _out_of_range(scores: pandas.DataFrame) -> Iterator[str]:
    known = scores["statistic"].map(RANGES)
    least = known.map(lambda ends: ends[0], na_action="ignore").astype(float).fillna(-np.inf)
    most = known.map(lambda ends: ends[1], na_action="ignore").astype(float).fillna(np.inf)
    numbers = scores[["value", "low", "high"]].astype(float)
    outside = numbers.lt(least - 1e-9, axis=0) | numbers.gt(most + 1e-9, axis=0)
    wrong = (outside | np.isinf(numbers)).any(axis=1)
    if wrong.any():
        row = scores[wrong].iloc[0]
        ends = f"{least[wrong].iloc[0]:g} to {most[wrong].iloc[0]:g}"
        yield (
            f"{row['statistic']} of {row['test']}, {row['model']}, is {row['value']} "
            f"[{row['low']}, {row['high']}], outside {ends}"
        )
    value, low, high = (numbers[name] for name in numbers)
    p, n = scores["p_value"].astype(float), scores["n"].astype(float)
    if ((p < 0) | (p > 1)).any():
        yield "it has a p-value outside 0 to 1"
    if ((n < 0) | (n % 1 != 0) | ((n == 0) & value.notna())).any():
        yield "its n is no whole number throughout, or 0 beside a value"
    if (low > high).any():
        yield "it has an interval whose lower end lies above the upper one"
    if ((value < low - 1e-9) | (value > high + 1e-9)).any():
        yield "it has a value outside its interval"
    if value.isna().all():
        yield "none of its scores has a value"


def _in_weights(given: Mapping[str, Any]) -> Iterator[str]:
    if not given:
        yield "it names no weights: note them with run.record(weights=...)"
    for model, entry in given.items():
        known = models.REGISTRY.get(model)
        if known is None:
            yield f"model {model!r} is not in the registry of released models"
        if not _is_described(entry):
            yield f"the weights of {model} have no revision and files with sha256 and bytes"
        revision, files = entry["revision"], list(entry["files"].values())
        if known.revision and known.revision[:12] not in revision:
            yield (
                f"{model} is of revision {revision.split(',')[0]!r}; the released one "
                f"that biaslib knows is {known.revision[:12]}"
            )
        if known.sha256 and files and known.sha256 not in [each["sha256"] for each in files]:
            yield f"{model} has weights of a foreign hash; known is {known.sha256[:12]}"
        size = sum(each["bytes"] for each in files)
        least = BYTES_A_NUMBER * (known.parameters or 0)
        if size < least and not known.source.startswith("package "):
            largest = max(files, key=lambda each: each["bytes"], default={"sha256": "unknown"})
            yield (
                f"{model} has weights of {size / 1e6:,.1f} MB (sha256 {largest['sha256'][:12]}); "
                f"{known.parameters:,} released parameters take {least / 1e6:,.0f} MB at least: "
                "these are others, such as random ones"
            )


def _not_covered(found: Record) -> Iterator[str]:
    """Yield the models that have scores and whose weights are not described."""
    named = {way.label: way.paper for way in WAYS}
    used = {named.get(model, model) for model in found.scores["model"]}
    missing = sorted(used - set(found.header["weights"]))
    if missing:
        yield f"it has scores of {', '.join(missing)}, but says nothing of their weights"


def _is_described(entry: Any) -> bool:
    """Tell whether weights have a revision, and files with their hashes and sizes."""
    try:
        files = list(entry["files"].values())
        hashes, sizes = ([each[what] for each in files] for what in ("sha256", "bytes"))
        texts = all(isinstance(each, str) for each in (entry["revision"], *hashes))
        return texts and all(isinstance(each, int) for each in sizes)
    except (KeyError, TypeError, AttributeError):
        return False


def _not_judged(found: Record) -> Iterator[str]:
    try:
        found.verdicts()
    except Exception as error:  # Whatever a file from outside holds, it is refused by name.
        yield f"its scores cannot be judged ({type(error).__name__}: {error})"


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
    if rehearsal and folder is None:
        raise LedgerError("a rehearsal does not belong under runs/: name another folder")
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


def compare(first: Record, second: Record, rehearsal: bool = False) -> Comparison:
    """Return how two records of one study differ.

    Parameters
    ----------
    first, second
        Of one study.
    rehearsal
        See :func:`check`.

    Raises
    ------
    LedgerError
        If one of them is not as it should be, or they have no study or no number in common.
    """
    if first.paper != second.paper:
        raise LedgerError(f"{first.paper} and {second.paper} are different studies")
    for each in (first, second):
        check(each, rehearsal)
    keys = _named(first.scores, first.paper)
    one, two = (each.scores.reindex(columns=[*keys, "value"]) for each in (first, second))
    both = one.merge(two, on=keys, how="outer", suffixes=("", " of second"), indicator=True)
    apart = (both["value"] - both["value of second"]).abs()
    if not apart.notna().any():
        raise LedgerError("the two records have no number in common")
    rows = both.assign(apart=apart).groupby("statistic")
    table = rows.agg(
        n=("apart", "count"),
        largest=("apart", "max"),
        mean=("apart", "mean"),
        only_first=("_merge", lambda side: int((side == "left_only").sum())),
        only_second=("_merge", lambda side: int((side == "right_only").sum())),
    ).reset_index()
    family = [
        (each.header["device"].split(",")[-1].strip(), each.header["precision"])
        for each in (first, second)
    ]
    allowed = SAME_FAMILY if family[0] == family[1] else OTHER_DEVICE
    models_ = set(first.header["weights"]) | set(second.header["weights"])
    others = sorted(name for name in models_ if _hashes(first, name) != _hashes(second, name))
    lacking = both[["value", "value of second"]].isna().sum(axis=1) == 1
    lost = int((lacking & (both["_merge"] == "both")).sum())
    far = bool((apart > allowed).any()) or lost > 0
    told = f"{lost} of the numbers only one has; " if lost else ""
    told += f"other weights of {', '.join(others)}; " if others else ""
    told += f"largest difference {apart.max():.2g}, allowed {allowed:g}"
    return Comparison(table, allowed, not far and not others, told)


def _hashes(found: Record, model: str) -> set[str]:
    """Return the hashes of a model's files; none if the record does not have the model."""
    files = found.header["weights"].get(model, {"files": {}})["files"]
    return {file["sha256"] for file in files.values()}
