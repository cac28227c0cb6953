"""The contracts of the four papers: data files, their schema, and one table of all."""

import fnmatch
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas

from biaslib import published
from biaslib.ledger._numbers import Family
from biaslib.runtime import source_hash, unknown_name

DATA = Path(__file__).parent / "data"
PAPERS = tuple(published.PAPERS)
KINDS = ("number", "count", "list", "claim", "open question")
COLUMNS = (
    *("id", "paper", "place", "kind", "printed", "value", "unit", "population", "statistic"),
    *("needs", "margin", "reason", "measure", "chapter", "headline", "quotation", "claim"),
    *("predicate", "thresholds", "erratum", "remark", "words"),
)


class LedgerError(ValueError):
    """A contract or a record is not as it should be; the message names it, and what to do."""


@functools.cache
def _file(paper: str) -> dict[str, Any]:
    return json.loads((DATA / f"{paper}.json").read_text(encoding="utf-8"))


def checksum() -> str:
    """Return 12 hexadecimal digits that change with any contract."""
    return source_hash(DATA)


def needs(paper: str) -> dict[str, str]:
    """Return what re-runs of a paper take, in a sentence by key."""
    return dict(_of(paper)["needs"])


def limits(paper: str | None = None) -> pandas.DataFrame:
    """Return what the authors say of their studies' limits: *paper*, *place*, *quotation*, *says*.

    Examples
    --------
    >>> limits("zhou2022")["place"].tolist()[:2]
    ['Section 3.4', 'Section 4.2']
    """
    rows = [
        {"paper": name, **each}
        for name in (PAPERS if paper is None else (paper,))
        for each in _of(name)["limits"]
    ]
    return pandas.DataFrame(rows)


def named_checks(paper: str) -> dict[str, dict[str, Any]]:
    """Return, by the claims' ids, the rule that checks each and its settings."""
    return {each["id"]: each["check"] for each in _of(paper)["claims"] if "check" in each}


def _of(paper: str) -> dict[str, Any]:
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    return _file(paper)


@functools.cache
def families(paper: str) -> tuple[Family, ...]:
    """Return a paper's families of numbers and lists."""
    every = _of(paper)["numbers"]
    return tuple(
        Family(paper, **{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for each in every
    )


@functools.cache
def printed(paper: str) -> Mapping[str, pandas.DataFrame]:
    """Return a paper's printed tables, by the names of their files."""
    every = published.tables().query("paper == @paper")
    return {
        file.removesuffix(".csv"): pandas.concat(
            [published.table(paper, number) for number in part["number"]], ignore_index=True
        )
        for file, part in every.groupby("file", sort=False)
    }


@functools.cache
def _contracts(paper: str) -> pandas.DataFrame:
    parts = [_of_family(family, printed(paper)) for family in families(paper)]
    parts.append(pandas.DataFrame(map(_of_claim, _of(paper)["claims"])))
    parts.append(pandas.DataFrame(_of_erratum(each) for each in open_questions(paper)))
    table = pandas.concat(parts, ignore_index=True)
    table = table.assign(paper=paper).reindex(columns=COLUMNS)
    twice = table.loc[table["id"].duplicated(), "id"]
    if len(twice):
        raise LedgerError(f"{paper}.json names two contracts {twice.iloc[0]}")
    texts = [c for c in COLUMNS if c not in ("value", "margin", "needs", "headline", "words")]
    table[texts] = table[texts].astype(object).fillna("")
    for question, patterns in _of(paper)["questions"].items():
        _mark(table, paper, question, patterns)
    return table.assign(headline=table["headline"].eq(True))


def _mark(table: pandas.DataFrame, paper: str, question: str, patterns: Sequence[str]) -> None:
    """Write an open question beside the numbers and lists that it is about."""
    if question not in {each["id"] for each in open_questions(paper)}:
        raise LedgerError(f"{paper}.json: {question} is no erratum of the paper")
    for pattern in patterns:
        about = [fnmatch.fnmatchcase(name, f"{paper}/{pattern}") for name in table["id"]]
        if not any(about):
            raise LedgerError(f"{paper}.json: {question}: no contract is called {pattern}")
        known = table.loc[about, "erratum"]
        table.loc[about, "erratum"] = [f"{each}, {question}".removeprefix(", ") for each in known]


def contracts(paper: str | None = None) -> pandas.DataFrame:
    """Return the contracts of a paper, or of all: one row a printed number, list or claim.

    Returns
    -------
    pandas.DataFrame
        *id*, *paper*, *place*, *kind* (number, count, list, claim, or open question: where our
        copy of the paper does not fit itself); *printed*, as text, and *value*, as a number, with
        its *unit*; *population*, *statistic* (of our scores) and *needs* (see :func:`needs`);
        *margin* and *reason*, the tolerance; *measure*, as it is judged in the planted world;
        *chapter*; and of claims *headline*, *quotation*, *claim*, *predicate*, *thresholds* (whose
        they are) and *remark*; *erratum*, the open questions that bear on it. *words*
        of a list: each with its printed number.

    Raises
    ------
    UnknownNameError
        If there is no such paper.

    Examples
    --------
    >>> table = contracts("ross2021").set_index("id")
    >>> table.loc["ross2021/table3/C6/visualbert/W", ["value", "margin"]].tolist()
    [0.57, 0.05]
    """
    chosen = PAPERS if paper is None else (paper,)
    return pandas.concat(map(_contracts, chosen), ignore_index=True)


def _of_family(family: Family, tables: Mapping[str, pandas.DataFrame]) -> pandas.DataFrame:
    rows = family.rows(tables)
    same = ("kind", "unit", "population", "statistic", "margin", "reason", "measure", "chapter")
    table = pandas.DataFrame({"id": rows["id"]})
    table = table.assign(**{name: getattr(family, name) for name in same})
    numbers = rows["table"] if "table" in rows else _number_of(family)
    table["place"] = [f"Table {each}" for each in numbers] if "table" in rows else numbers
    table["needs"] = [family.needs] * len(table)
    if family.kind == "list":
        texts = [", ".join(words) for words in rows["value"]]
        return table.assign(words=rows["value"], printed=texts)
    texts = rows[family.printed] if family.printed else rows["value"].map("{:g}".format)
    return table.assign(value=rows["value"].astype(float), printed=texts.astype(str))


def _number_of(family: Family) -> str:
    rows = published.tables().query("paper == @family.paper")
    of_file = rows.loc[rows["file"] == f"{family.stem}.csv", "number"]
    return f"Table {of_file.iloc[0]}"


def _of_claim(each: Mapping[str, Any]) -> dict[str, Any]:
    copied = {k: v for k, v in each.items() if k not in ("tables", "needs")}
    shown = {"printed": each["quotation"], "statistic": each["predicate"]}
    return copied | shown | {"kind": "claim", "needs": tuple(each["needs"])}


@functools.cache
def open_questions(paper: str) -> Sequence[Mapping[str, Any]]:
    """Return a paper's errata, with their numbers computed once."""
    return published.errata(paper).to_dict("records")


def _of_erratum(each: Mapping[str, Any]) -> dict[str, Any]:
    tables = ", ".join(map(str, each["tables"])) if len(each["tables"]) else ""
    return {
        "id": f"{each['paper']}/open/{each['id']}",
        "kind": "open question",
        "place": f"Table {tables}" if tables else "text",
        "printed": each["title"],
        "claim": each["summary"],
        "statistic": each["settle"],
        "erratum": each["id"],
        "needs": (),
        "chapter": "notebooks/published_numbers",
    }
