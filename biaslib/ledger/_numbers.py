"""Printed numbers and lists as rows with an id, of the paper's tables and of a run's alike."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas

_FIELDS = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Family:
    """Contracts of one kind: the rows of some printed tables, read from one column.

    Attributes
    ----------
    paper, stem
        The paper, and the file of :mod:`biaslib.published` with its rows.
    id
        How a row is called, with columns in braces: ``table{table}/{test}/{model}/{level}``.
    kind
        ``number``, ``count`` (a whole number) or ``list`` (words in an order).
    column, printed
        The column with the number, and the one with the text as printed; empty where the paper's
        digits are those of the number.
    tables
        Numbers of the printed tables; empty where the file is one table.
    wanted, unit
        Further entries that rows must have, and the unit of the number.
    population, statistic
        Of whom or what, and the number of our scores that corresponds, in words.
    needs
        What a run must have.
    margin
        How far a run may lie off and still agree, in the unit of the number; for lists the shares
        of words of :data:`LIST_RULE`.
    reason
        Why that far.
    measure
        The measure that is judged in the planted world; empty where there is none.
    chapter
        The page where the number is discussed.
    """

    paper: str
    stem: str
    id: str
    kind: str
    column: str
    tables: tuple[int, ...]
    population: str
    statistic: str
    needs: tuple[str, ...]
    margin: float
    reason: str
    printed: str = ""
    wanted: Mapping[str, object] | None = None
    unit: str = ""
    measure: str = ""
    chapter: str = ""

    def rows(self, tables: Mapping[str, pandas.DataFrame]) -> pandas.DataFrame:
        """Return this family's rows of a paper's or a run's tables, with the column *id*."""
        if self.stem not in tables:
            return pandas.DataFrame(columns=["id", "value"])
        rows = tables[self.stem]
        if self.tables and "table" in rows:
            rows = rows[rows["table"].isin(self.tables)]
        for column, value in (self.wanted or {}).items():
            rows = rows[rows[column].isin(value if isinstance(value, list) else [value])]
        rows = rows.assign(value=rows[self.column])
        if self.kind == "list":
            return self._lists(rows)
        rows = rows[rows["value"].notna()]
        for end in ("low", "high"):
            own = f"{self.column} {end}"
            rows = rows.assign(**{end: rows[own]}) if own in rows else rows
        return rows.assign(id=self._named(rows))

    def _lists(self, rows: pandas.DataFrame) -> pandas.DataFrame:
        """Return one row a list, whose *value* is its words with their numbers, in order."""
        rows = rows.assign(id=self._named(rows))
        ordered = rows.sort_values("rank", kind="stable")
        words = {
            name: dict(zip(part["word"], part["value"], strict=True))
            for name, part in ordered.groupby("id", sort=False)
        }
        firsts = rows.drop_duplicates("id")
        return firsts.assign(value=firsts["id"].map(words))

    def _named(self, rows: pandas.DataFrame) -> list[str]:
        """Return the ids of rows."""
        parts = [rows[name].map(slug) for name in _FIELDS.findall(self.id)]
        template = f"{self.paper}/{_FIELDS.sub('{}', self.id)}"
        return [template.format(*values) for values in zip(*parts, strict=True)]


@functools.cache
def slug(value: object) -> str:
    """Return a value as a part of an id: lower case, hyphens for what is no letter or digit.

    Levels, tests and other names of capital letters keep them.

    Examples
    --------
    >>> slug("VL-BERT"), slug("Latino/Hispanic"), slug("C6"), slug("W"), slug("Female")
    ('vl-bert', 'latino-hispanic', 'C6', 'W', 'women')
    """
    named = {"Male": "men", "male": "men", "Female": "women", "female": "women"}.get(value, value)
    text = re.sub(r"[^A-Za-z0-9]+", "-", str(named)).strip("-")
    short = re.fullmatch(r"[A-Z]{1,3}[0-9]{0,2}|DB-.*|occupation-.*", text)
    return text if short else text.lower()


LIST_RULE = {"met": 0.8, "not met": 0.5}
"""Shares of a printed list's words among as many first words of a run."""


def judge_number(
    printed: np.ndarray, margin: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    r"""Return the verdict on each number of a run.

    *Met* if the run's whole interval lies within the margin about the printed number,

    .. math:: p - m \le l \le h \le p + m,

    *not met* if none of it does (:math:`h < p - m` or :math:`l > p + m`), else *cannot be said*;
    also without an interval. An interval of no width is a number.

    Examples
    --------
    >>> low, high = [0.95, 0.8, 1.2, None], [1.05, 1.0, 1.3, None]
    >>> judge_number([1.0] * 4, [0.1] * 4, low, high).tolist()
    ['met', 'cannot be said', 'not met', 'cannot be said']
    """
    printed, margin, low, high = (
        np.asarray(each, dtype=float) for each in (printed, margin, low, high)
    )
    slack = margin + 1e-9
    inside = (low >= printed - slack) & (high <= printed + slack)
    apart = (high < printed - slack) | (low > printed + slack)
    return np.select([inside, apart], ["met", "not met"], "cannot be said")


def judge_list(printed: Mapping[str, float], ours: Mapping[str, float]) -> tuple[str, str]:
    """Return the verdict on a ranked list, and what it rests on.

    Of n printed words, the share that is among the run's first n; and Kendall's tau-b of the
    printed numbers and the run's over the words that both have. *Met*: a share of at least .8 and
    tau of at least .5; *not met*: a share below .5, or tau at most 0. Nothing can be said of a run
    with less than twice as many words, whose first ones are first by omission.

    Examples
    --------
    >>> ours = {"b": 5, "a": 4, "c": 3, "d": 0, "e": -1, "f": -2}
    >>> judge_list({"a": 3, "b": 2, "c": 1}, ours)
    ('cannot be said', '3 of 3 words, tau 0.33')
    """
    from scipy import stats

    first = list(ours)[: len(printed)]
    shared = [word for word in printed if word in first]
    both = [word for word in printed if word in ours]
    tau = np.nan
    if len(both) > 1:
        tau = stats.kendalltau([printed[w] for w in both], [ours[w] for w in both]).statistic
    share = len(shared) / len(printed)
    told = f"{len(shared)} of {len(printed)} words, tau {tau:.2f}"
    if len(ours) < 2 * len(printed):
        return "cannot be said", f"the run has {len(ours)} words of the type only"
    if share < LIST_RULE["not met"] or tau <= 0:
        return "not met", told
    if share >= LIST_RULE["met"] and tau >= 0.5:
        return "met", told
    return "cannot be said", told
