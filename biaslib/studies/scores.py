"""The columns with which the scores of every study begin."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas

from biaslib import inference
from biaslib.pictures.images import Pictures

__all__ = ["COLUMNS", "Recorded", "described_test", "tidy"]

COLUMNS = (
    "study",
    "model",
    "revision",
    "profile",
    "dataset",
    "test",
    "level",
    "statistic",
    "value",
    "low",
    "high",
    "p_value",
    "n",
    "seed",
)
"""What the scores of all studies have, in this order and in one meaning.

*study*, the paper; *model* and *revision*, what was measured, and of which weights; *profile* and
*dataset*, on what; *test*, what was asked about: an association test, an entity, a word, a category
of captions; *level*, at which setting of the study; *statistic* with its *value*, *low* and *high*
of a 95% interval, and *p_value*, NaN where there is none; *n*, the units that the p-value, or else
the value, rests on; *seed*, of what is drawn.
"""

OPTIONAL = ("low", "high", "p_value")


@dataclass(frozen=True)
class Recorded:
    """What a run of a study leaves for its record.

    Attributes
    ----------
    scores
        Tables of tidy scores; labels that a later one lacks are those of the first.
    asked, there
        How many pictures were asked for, and how many were there.
    images
        Those that were shown, in the form of models, for the hash of the data.
    counts
        As of :func:`biaslib.reproduction.stamp`.
    """

    scores: Sequence[pandas.DataFrame]
    asked: int
    there: int
    images: Sequence[Pictures] = ()
    counts: Mapping[str, pandas.DataFrame] = field(default_factory=dict)


def described_test(test: inference.PermutationResult, of: str = "") -> dict[str, object]:
    """Return what a row of scores says of a test, under names that end with *of*."""
    bounds = {f"p_low{of}": test.low, f"p_high{of}": test.high}
    return {f"p_value{of}": test.p_value, **bounds, f"p_method{of}": test.method}


def tidy(rows: pandas.DataFrame | Iterable[Mapping[str, Any]], **labels: Any) -> pandas.DataFrame:
    """Return scores with :data:`COLUMNS` first, and a study's own columns after them.

    Parameters
    ----------
    rows
        One a number. Bounds and p-values that a study does not have are filled with NaN.
    **labels
        Columns that are the same in all rows, or one entry a row.

    Raises
    ------
    ValueError
        If another column is missing; the message names it.

    Examples
    --------
    >>> labels = {"study": "s", "model": "m", "revision": "r", "profile": "paper", "dataset": "d"}
    >>> row = {"test": "C6", "level": "word", "statistic": "d", "value": 1.0, "n": 8, "seed": 0}
    >>> tidy([row], **labels)[["test", "value", "low"]].to_dict("records")
    [{'test': 'C6', 'value': 1.0, 'low': nan}]
    """
    table = pandas.DataFrame(rows).assign(**labels)
    for name in OPTIONAL:
        if name not in table:
            table[name] = np.nan
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise ValueError(f"scores lack the columns {', '.join(missing)}")
    return table[[*COLUMNS, *(name for name in table if name not in COLUMNS)]]
