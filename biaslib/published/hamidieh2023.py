"""Cells that two C-ASC tables of Hamidieh et al. (2023) print."""

import pandas

from biaslib.published._tables import table

PAPER = "hamidieh2023"
SMALL_AND_FULL = {7: 14, 8: 18, 9: 17, 10: 12}
"""Tables of some groups, and the table of the same category with more groups or words."""
CELL = ["category", "group", "word"]


def casc_tables() -> pandas.DataFrame:
    """Return Tables 3 to 18 one below the other.

    >>> len(casc_tables())
    709
    """
    return pandas.concat([table(PAPER, number) for number in range(3, 19)], ignore_index=True)


def repeated_cells() -> pandas.DataFrame:
    """Return the cells that a smaller and a fuller table both print, with both values (B3).

    >>> frame = repeated_cells()
    >>> len(frame), int((frame["casc_small"] != frame["casc_full"]).sum())
    (112, 2)
    """
    pairs = [
        table(PAPER, small).merge(table(PAPER, full), on=CELL, suffixes=("_small", "_full"))
        for small, full in SMALL_AND_FULL.items()
    ]
    return pandas.concat(pairs, ignore_index=True).drop(columns=["facet_small", "facet_full"])


def value_conflicts() -> pandas.DataFrame:
    """Return the repeated cells whose two values differ (B3).

    >>> value_conflicts()[["word", "casc_small", "casc_full"]].values.tolist()
    [['militant', 0.7, 0.17], ['murderer', 0.4, 0.16]]
    """
    cells = repeated_cells()
    return cells[cells["casc_small"] != cells["casc_full"]].reset_index(drop=True)
