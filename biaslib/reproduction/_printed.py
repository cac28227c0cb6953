"""The printed numbers and ranked lists of the four papers, each with the margin of a re-run."""

import fnmatch
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from biaslib import published
from biaslib.runtime import unknown_name

DATA = Path(__file__).parent / "data"
PAPERS = tuple(published.PAPERS)
_FIELDS = re.compile(r"{(\w+)}")


@functools.cache
def data_of(paper: str) -> dict[str, Any]:
    """Return a paper's data file: *numbers*, *questions*, *claims* and *limits*."""
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    return json.loads((DATA / f"{paper}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Family:
    """Printed numbers of one kind: the rows of some printed tables, read from one column.

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
    side
        The column whose entries a run could exchange: models, or groups of people; or empty.
    tables
        Numbers of the printed tables; empty where the file is one table.
    wanted, unit
        Further entries that rows must have, and the unit of the number.
    population, statistic
        Of whom or what, and the number of our scores that corresponds, in words.
    margin
        How far a run may lie off and still agree, in the unit of the number.
    reason
        Why that far.
    measure
        The measure that is judged in the planted world; empty where there is none.
    barrier
        What can stand in the way of a run that agrees.
    widest
        The widest interval of a run that decides, in the unit of the number; twice the margin where
        nothing else is said.
    """

    paper: str
    stem: str
    id: str
    kind: str
    column: str
    tables: tuple[int, ...]
    population: str
    statistic: str
    margin: float
    reason: str
    printed: str = ""
    side: str = ""
    wanted: Mapping[str, object] | None = None
    unit: str = ""
    measure: str = ""
    barrier: str = ""
    widest: float | None = None

    def rows(self, tables: Mapping[str, pandas.DataFrame]) -> pandas.DataFrame:
        """Return this family's rows of a paper's or a run's tables.

        Columns *id* and *value* are added, and of numbers *of*, the entry of :attr:`side`, and
        *cell*, which is the same for cells that differ in that entry alone.
        """
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
        others = self.id.replace(f"{{{self.side}}}", "*")
        sides = rows[self.side].astype(str) if self.side else ""
        return rows.assign(id=self._named(rows, self.id), cell=self._named(rows, others), of=sides)

    def _lists(self, rows: pandas.DataFrame) -> pandas.DataFrame:
        """Return one row a list, whose *value* is its words with their numbers, in order."""
        rows = rows.assign(id=self._named(rows, self.id))
        ordered = rows.sort_values("rank", kind="stable")
        words = {
            name: dict(zip(part["word"], part["value"], strict=True))
            for name, part in ordered.groupby("id", sort=False)
        }
        firsts = rows.drop_duplicates("id")
        return firsts.assign(value=firsts["id"].map(words))

    def _named(self, rows: pandas.DataFrame, template: str) -> list[str]:
        """Return names of rows by a template with columns in braces."""
        parts = [rows[name].map(slug) for name in _FIELDS.findall(template)]
        template = f"{self.paper}/{_FIELDS.sub('{}', template)}"
        if not parts:
            return [template] * len(rows)
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


@functools.cache
def families(paper: str) -> tuple[Family, ...]:
    """Return a paper's families of numbers and lists."""
    every = data_of(paper)["numbers"]
    return tuple(
        Family(paper, **{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for each in every
    )


@functools.cache
def printed_tables(paper: str, as_printed: bool = False) -> Mapping[str, pandas.DataFrame]:
    """Return a paper's printed tables, by the names of their files."""
    every = published.tables().query("paper == @paper")
    return {
        file.removesuffix(".csv"): pandas.concat(
            [published.table(paper, number, as_printed) for number in part["number"]],
            ignore_index=True,
        )
        for file, part in every.groupby("file", sort=False)
    }


@functools.cache
def _printed(paper: str) -> pandas.DataFrame:
    table = pandas.concat(
        [_of_family(family, printed_tables(paper)) for family in families(paper)],
        ignore_index=True,
    )
    questions = pandas.Series("", table.index)
    for question, patterns in data_of(paper)["questions"].items():
        for pattern in patterns:
            about = [fnmatch.fnmatchcase(name, f"{paper}/{pattern}") for name in table["id"]]
            questions[about] += f", {question}"
    return table.assign(paper=paper, erratum=questions.str.removeprefix(", "))


def printed(paper: str | None = None) -> pandas.DataFrame:
    """Return the printed numbers and ranked lists of a paper, or of all, each with its margin.

    Returns
    -------
    pandas.DataFrame
        *id*, *paper*, *place*, *kind* (number, count or list); *printed*, as text, and *value*, as
        a number, with its *unit*; *population* and *statistic* (of our scores); *margin* and
        *reason*, how far a run may lie off, and why; *widest*, the widest interval that decides;
        *measure*, as it is judged in the planted world; *barrier*, what can stand in the way of
        deciding it; *erratum*, the open questions about it; *words* of a list, each with its
        number; *of* and *cell*, whose number it is, and what it is a number of; *twice*, whether
        the paper prints the same cell with another value besides.

    Raises
    ------
    UnknownNameError
        If there is no such paper.

    Examples
    --------
    >>> table = printed("ross2021").set_index("id")
    >>> table.loc["ross2021/table3/C6/visualbert/W", ["value", "margin"]].tolist()
    [0.57, 0.05]
    """
    chosen = PAPERS if paper is None else (paper,)
    return pandas.concat(map(_printed, chosen), ignore_index=True)


def _of_family(family: Family, tables: Mapping[str, pandas.DataFrame]) -> pandas.DataFrame:
    rows = family.rows(tables)
    same = ("kind", "unit", "population", "statistic", "margin", "reason", "measure", "barrier")
    table = pandas.DataFrame({"id": rows["id"]})
    table = table.assign(**{name: getattr(family, name) for name in same})
    table["widest"] = 2 * family.margin if family.widest is None else family.widest
    number = published.tables().query("file == @family.stem + '.csv'")["number"].iloc[0]
    numbers = rows.get("table", pandas.Series(number, rows.index))
    table["place"] = "Table " + numbers.astype(str)
    if family.kind == "list":
        texts = [", ".join(words) for words in rows["value"]]
        return table.assign(words=rows["value"], printed=texts)
    texts = printed_tables(family.paper, True)[family.stem].loc[rows.index]
    numbers = {"id", "table", "rank", "value", "cell", "of", family.column, family.printed}
    same = rows.groupby([name for name in rows if name not in numbers], dropna=False)["value"]
    cells = rows[["cell", "of"]].assign(twice=same.transform("nunique") > 1)
    return table.assign(
        value=rows["value"].astype(float), printed=texts[family.printed or family.column], **cells
    )
