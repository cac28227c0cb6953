"""Study 3 from nothing to a record in one call: the one study that needs no step by hand."""

import tempfile
from pathlib import Path

import pandas

from biaslib import runtime
from biaslib.reproduction._compare import compare
from biaslib.reproduction._records import read, record, stamp
from biaslib.studies import study3_clip_audit as study

N_RESAMPLES = 300
"""As in the chapter, so that both give one record."""


def of_study3(out: str | Path = ".") -> tuple[Path, pandas.DataFrame]:
    """Fetch data and weights of study 3, run it in ``paper``, and record it.

    What was computed before is taken from the store, so that a run which was stopped goes on.

    Parameters
    ----------
    out
        Where the record's folder is made.

    Returns
    -------
    tuple
        The record's folder, and the run beside the printed numbers:
        :func:`biaslib.reproduction.compare`.

    Raises
    ------
    CheckpointError, DataError, RecordError
        If weights or data cannot be had, are not as they should be, or cannot be recorded.
    """
    run = runtime.start("paper")
    study.fetch()
    given = study.inputs("paper")
    model = study.load_model(given)
    run.record(data={given.dataset: given.checksum}, weights={model.name: model.revision})
    audit, counts = study.audit(given, model=model, n_resamples=N_RESAMPLES), {}
    with tempfile.TemporaryDirectory() as scratch:
        corpus = given.captions(scratch)
        shares = study.source_of_bias(corpus.path, audit.table)
        run.record(data={f"captions ({corpus.profile})": corpus.checksum})
    if not corpus.missing:
        counts = {"hamidieh2023_laion_pronouns": study.pronoun_counts(shares)}
    pictures = dict(zip(("asked", "there"), given.asked_and_there, strict=True))
    made = stamp(run, study.STUDY, pictures, counts)
    name = f"{study.STUDY}-{made['made'].translate(str.maketrans(' :', '-.'))}"
    folder = record(Path(out) / name, audit.scores, made)
    return folder, compare(read(folder)[0], study.STUDY, counts)
