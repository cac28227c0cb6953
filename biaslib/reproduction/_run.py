"""A paper's study from nothing to a record in one call."""

import hashlib
import importlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas

from biaslib import runtime
from biaslib.reproduction._compare import compare
from biaslib.reproduction._records import read, record, stamp
from biaslib.studies.scores import Recorded

STUDIES = {
    "ross2021": "study1_grounded",
    "srinivasan2021": "study2_masked",
    "hamidieh2023": "study3_clip_audit",
    "zhou2022": "study4_captions",
}
"""The module of each paper's study."""


def reproduce(
    paper: str, out: str | Path = ".", size: str | None = None
) -> tuple[Path, pandas.DataFrame, pandas.DataFrame]:
    """Fetch what a paper's study reads, run it in ``paper``, and record it, as its chapter does.

    What was fetched or computed before is taken from the disk, so that a run which was stopped goes
    on.

    Parameters
    ----------
    paper
        ``ross2021``, ``srinivasan2021``, ``hamidieh2023`` or ``zhou2022``.
    out
        Where the record's folder is made.
    size
        ``full`` or ``taste``; None takes :func:`biaslib.runtime.size`.

    Returns
    -------
    tuple
        The record's folder; the run beside the printed numbers
        (:func:`biaslib.reproduction.compare`), of a taste none; and what could not be fetched.

    Raises
    ------
    CheckpointError, DataError, RecordError
        If what the study cannot go without cannot be had, or is not as it should be, or the record
        cannot be written.
    """
    run = runtime.start("paper", size)
    study = importlib.import_module(f"biaslib.studies.{STUDIES[paper]}")
    missing = study.fetch(run.size)
    return *write_record(paper, run, study.recorded(run), out), missing


def write_record(
    paper: str, run: runtime.Provenance, found: Recorded, out: str | Path = "."
) -> tuple[Path, pandas.DataFrame]:
    """Write the record of a run in ``paper``; return its folder, and it beside the printed numbers.

    The folder is named after the paper, and the time; that of a taste says so.

    Parameters
    ----------
    paper, run
        As of :func:`biaslib.reproduction.stamp`.
    found
        Scores and what goes into the stamp.
    out
        Where the folder is made.

    Raises
    ------
    RecordError
        As of :func:`biaslib.reproduction.record`.
    """
    named = {
        "pictures": {name for each in found.images for name in each.ids},
        "regions": {each.source for each in found.images if each.has_regions},
    }
    for name, parts in named.items():
        if parts:
            run.record(data={name: hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()})
    pictures = {"asked": int(found.asked), "there": int(found.there)}
    made = stamp(run, paper, pictures, found.counts)
    of_size = "-taste" if run.size == "taste" else ""
    name = f"{paper}{of_size}-{made['made'].translate(str.maketrans(' :', '-.'))}"
    folder = record(Path(out) / name, _completed(found.scores), made)
    counts = found.counts if run.size == "full" else {}
    return folder, compare(read(folder)[0], paper, counts)


def _completed(scores: tuple[pandas.DataFrame, ...]) -> pandas.DataFrame:
    """Return several tables of scores as one, with the labels that a summary lacks.

    Labels (study, profile, dataset, seed, revision) are those of the first table.
    """
    first = scores[0]
    labels: Mapping = first[["study", "profile", "dataset", "seed"]].iloc[0].to_dict()
    revisions = first.drop_duplicates("model").set_index("model")["revision"]
    parts = []
    for table in scores:
        known = labels | {"revision": table["model"].map(revisions), "p_value": np.nan}
        parts.append(table.assign(**{k: v for k, v in known.items() if k not in table}))
    return pandas.concat(parts, ignore_index=True).drop_duplicates(ignore_index=True)
