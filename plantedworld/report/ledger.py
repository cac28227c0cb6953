"""The planted world's verdicts on the papers' measures, for the page of contracts."""

from pathlib import Path

import pandas

DATA = Path(__file__).parents[1] / "data" / "measure_verdicts.csv"


def measures() -> pandas.DataFrame:
    """Return what the planted world says of each measure: one row a measure.

    Returns
    -------
    pandas.DataFrame
        *measure* and the *study* that uses it; *what it finds*, of which *scope*; *page*, where it
        is shown.

    Examples
    --------
    >>> measures()["measure"].tolist()[4:8]
    ['S_PT', 'S_L', 'S_V', 'C-ASC']
    """
    return verdicts().drop(columns="words of the page")


def verdicts() -> pandas.DataFrame:
    """Return :func:`measures` with the words of the page on which each rests."""
    return pandas.read_csv(DATA, dtype=str)
