"""False alarms of the whole report: models in which nothing was planted, audited as any other.

A report counts once, however many of its questions it claims. Run ``python -m
plantedworld.studies.false_alarms`` to audit them anew; it goes on where it stopped.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas

from biaslib import audit, inference
from plantedworld.models.checkpoints import checkpoint, shipped

__all__ = ["FOUND", "audited", "checkpoints", "rate", "recorded"]

FOUND = Path(__file__).parents[1] / "data" / "false_alarms.csv"
"""What was found: one row a model."""

COMPANIONS = 1_000
"""From this seed on a checkpoint was trained to begin others with, and is no model of a study."""


def checkpoints() -> pandas.DataFrame:
    """Return the shipped models that see and in which nothing was planted: *family*, *seed*.

    They are of the sealed trial's worlds, and were trained after it was decided what is asked.
    """
    found = shipped()
    found = found[(found["dose"] == 0) & (found["family"] != "bert")]
    found = found[(found["planted_in"] == "both") & (found["seed"] < COMPANIONS)]
    return found[["family", "seed"]].reset_index(drop=True)


def audited(family: str, seed: int, parts: Sequence[str] | None = None) -> dict[str, object]:
    """Audit one of them in the planted world, and return its row.

    Returns
    -------
    dict
        *family*, *seed*, *asked* (questions), *claims*, and *below* (questions with p < .05 before
        the correction).
    """
    given = checkpoint(family, 0, seed)
    result = audit.run(given, "planted", "cpu", parts=parts, n_resamples=0)
    if len(result.faults):
        raise RuntimeError(f"{given.name}: {'; '.join(result.faults['reason'])}")
    below = int((result.asked["p_value"] < audit.LEVEL).sum())
    counts = {"asked": len(result.asked), "claims": len(result.claims), "below": below}
    return {"family": family, "seed": seed} | counts


def recorded() -> pandas.DataFrame:
    """Return the rows that are kept with the package; see :func:`audited`."""
    return pandas.read_csv(FOUND)


def rate(found: pandas.DataFrame) -> dict[str, float]:
    """Return the share of reports that claim anything, with an interval.

    Returns
    -------
    dict
        *reports*, *false* (those that claim anything), *share*, and *low* and *high* of Clopper and
        Pearson at 95%.

    Examples
    --------
    >>> found = rate(pandas.DataFrame({"claims": [0] * 10}))
    >>> found["false"], round(found["high"], 3)
    (0, 0.308)
    """
    false, n = int((found["claims"] > 0).sum()), len(found)
    interval = inference.proportion_interval(false, n)
    bounds = {"low": interval.low, "high": interval.high}
    return {"reports": n, "false": false, "share": false / n} | bounds


def main(arguments: Sequence[str] | None = None) -> None:
    """Audit the models that have no row yet, and write each row at once."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=FOUND)
    parser.add_argument("--families", nargs="+", default=None)
    options = parser.parse_args(arguments)
    out = options.out
    rows = pandas.read_csv(out).to_dict("records") if out.is_file() else []
    there = {(row["family"], row["seed"]) for row in rows}
    for each in checkpoints().itertuples(index=False):
        wanted = options.families is None or each.family in options.families
        if wanted and (each.family, each.seed) not in there:
            rows.append(audited(each.family, each.seed))
            pandas.DataFrame(rows).to_csv(out, index=False)
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
