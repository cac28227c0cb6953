"""What a claim is checked against: a paper's printed tables, or those that a run gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas
from scipy import stats

ANSWERS = ("follows", "in part", "does not follow")
"""What a check of a claim can find."""


class NoEvidenceError(LookupError):
    """A claim cannot be checked: the message names what is missing."""


class NoIntervalError(NoEvidenceError):
    """A run has the numbers that a claim is about, but not how far they may be off."""


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes
    ----------
    answer
        One of :data:`ANSWERS`.
    told
        The numbers that it rests on, in a sentence.
    """

    answer: str
    told: str


@dataclass(frozen=True)
class Evidence:
    """A paper's tables, as printed or as a run gives them.

    Attributes
    ----------
    tables
        By the names of the files of :mod:`biaslib.published`, with their columns. Those of a run
        may have *low* and *high* of 95% intervals.
    scores
        Tidy scores of a run, for what the paper does not print in a table; empty for the paper.
    """

    tables: Mapping[str, pandas.DataFrame]
    scores: pandas.DataFrame = field(default_factory=pandas.DataFrame)

    def table(self, name: str, **wanted: object) -> pandas.DataFrame:
        """Return the rows of a table with these entries (one, or any of a list, a column).

        Raises
        ------
        NoEvidenceError
            If there is no such table or no such row.
        """
        if name not in self.tables:
            raise NoEvidenceError(f"there is no table {name}")
        rows = _where(self.tables[name], wanted)
        if rows.empty:
            raise NoEvidenceError(f"{name} has no row of {_said(wanted)}")
        return rows

    def scores_of(self, **wanted: object) -> pandas.DataFrame:
        """Return the scores of a run with these entries.

        Raises
        ------
        NoEvidenceError
            If this is what the paper prints, or the run has no such scores.
        """
        if self.scores.empty:
            raise NoEvidenceError("the paper prints no number for it")
        rows = _where(self.scores, wanted)
        if rows.empty:
            raise NoEvidenceError(f"the run has no scores of {_said(wanted)}")
        return rows


def _where(rows: pandas.DataFrame, wanted: Mapping[str, object]) -> pandas.DataFrame:
    if not set(wanted) <= set(rows.columns):
        return rows.iloc[:0]
    fits = np.ones(len(rows), dtype=bool)
    for column, value in wanted.items():
        many = isinstance(value, list | tuple | set)
        fits &= (rows[column].isin(value) if many else rows[column] == value).to_numpy()
    return rows[fits].reset_index(drop=True)


def _said(wanted: Mapping[str, object]) -> str:
    return ", ".join(f"{column} {value}" for column, value in wanted.items())


Check = Callable[[Evidence], Finding]


def answer(parts: Sequence[bool]) -> str:
    """Return ``follows`` if all parts of a claim hold, ``in part`` if some do.

    Examples
    --------
    >>> answer([True, True]), answer([True, False]), answer([False])
    ('follows', 'in part', 'does not follow')
    """
    held = [bool(part) for part in parts]
    return "follows" if all(held) else "in part" if any(held) else "does not follow"


@dataclass(frozen=True)
class Mean:
    """A mean over rows, with a 95% interval that draws units anew."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.3f} [no width]"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_over(values: Sequence[float], units: Sequence[object]) -> Mean:
    r"""Return the mean of rows, with a 95% interval of Student's t over their units.

    Rows of a unit, such as the levels of one test, stay together; NaN is left out. With the sum
    :math:`s_u` and the number :math:`c_u` of a unit's rows, and k units,

    .. math:: m = \frac{\sum_u s_u}{\sum_u c_u}, \quad
              m \pm t_{k - 1} \sqrt{\frac{\sum_u (s_u - m c_u)^2}{k (k - 1)}} \Big/ \bar c.

    Percentiles of a bootstrap are too narrow for as few units as there are: of 6, a 95% interval
    misses the mean of normal values in 14% of all cases.

    Examples
    --------
    >>> print(mean_over([1.0, 1.0, 3.0, 3.0, 4.0], ["C3", "C3", "C6", "C6", "C8"]))
    2.400 [-1.227, 6.027]
    >>> print(mean_over([1.0, 1.0], ["C3", "C6"]))
    1.000 [no width]
    """
    rows = pandas.DataFrame({"value": np.asarray(values, float), "unit": list(units)}).dropna()
    if rows.empty:
        raise NoEvidenceError("no row has a number")
    sums = rows.groupby("unit", sort=False)["value"].agg(["sum", "count"]).to_numpy(float)

    k, (total, n) = len(sums), sums.sum(axis=0)
    mean = total / n
    if k == 1:
        return Mean(mean, mean, mean)
    rests = sums[:, 0] - mean * sums[:, 1]
    error = np.sqrt((rests @ rests) * k / (k - 1)) / n
    half = stats.t.ppf(0.975, k - 1) * error
    return Mean(mean, mean - half, mean + half)
