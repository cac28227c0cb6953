"""The contracts of the four papers: data files, their schema, and one table of all."""

import fnmatch
import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import published
from biaslib.ledger._numbers import Family
from biaslib.runtime import source_hash, unknown_name

DATA = Path(__file__).parent / "data"
PAPERS = tuple(published.PAPERS)
KINDS = ("number", "count", "list", "claim", "open question")
LONGEST_QUOTATION = 25
THRESHOLDS = ("the paper's", "ours", "none needed")
COLUMNS = (
    *("id", "paper", "place", "kind", "printed", "value", "unit", "population", "statistic"),
    *("needs", "margin", "reason", "measure", "chapter", "headline", "quotation", "claim"),
    *("predicate", "thresholds", "erratum", "remark", "words"),
)

_NUMBER = {
    *("stem", "id", "kind", "column", "tables", "population", "statistic", "needs", "margin"),
    *("reason", "unit", "measure", "chapter"),
}
_MAY = {"printed", "wanted"}
_CLAIM_MAY = {"check"}
_FILE = {"paper": str, "needs": dict, "questions": dict}
_FILE |= dict.fromkeys(("numbers", "claims", "limits"), list)
_TYPES: dict[str, type] = {"needs": list, "tables": list, "check": dict}
_TYPES |= dict.fromkeys(("id", "place", "quotation", "claim", "population", "predicate"), str)
_TYPES |= dict.fromkeys(("kind", "column", "reason", "stem", "says"), str)
_CLAIM = {
    *("id", "place", "headline", "quotation", "claim", "population", "predicate", "thresholds"),
    *("needs", "tables", "erratum", "remark"),
}


class LedgerError(ValueError):
    """A contract or a record is not as it should be; the message names it, and what to do."""


def check_contracts(found: Mapping[str, Any], source: str, text: str | None = None) -> None:
    """Check what a data file of contracts holds.

    Parameters
    ----------
    found
        *paper*, *needs* (a sentence by key), *numbers* (see :class:`biaslib.ledger.Family`),
        *claims*, with the rule of ``_claims_<paper>.py`` that checks each and its settings,
        *limits*, what the authors say of their own, and *questions*: which numbers an erratum of
        :func:`biaslib.published.errata` is about, as patterns of ids.
    source
        The file's name, for messages.
    text
        The paper's text; each quotation has to be in it. None where it is not at hand.

    Raises
    ------
    LedgerError
        If a contract lacks a tolerance or a reason for it, has an id twice, a need that is not
        explained, a quotation of more than 25 words or one that the text does not have.

    Examples
    --------
    >>> claim = dict.fromkeys(_CLAIM, "") | {"id": "zhou2022/claim/1", "needs": [], "tables": []}
    >>> claim |= {"thresholds": "ours", "headline": True, "quotation": "no such words"}
    >>> found = {"paper": "zhou2022", "needs": {}, "numbers": [], "claims": [claim]}
    >>> found |= {"limits": [], "questions": {}}
    >>> check_contracts(found, "zhou2022.json", text="other words")
    Traceback (most recent call last):
    ...
    biaslib.ledger._contracts.LedgerError: zhou2022.json: zhou2022/claim/1: its claim is empty
    """
    _need_types(source, found, _FILE)
    if set(found) != set(_FILE):
        raise LedgerError(f"{source} has {sorted(found)}; it needs {sorted(_FILE)}")
    if found["paper"] not in PAPERS:
        raise unknown_name("paper", found["paper"], PAPERS)
    spelt = None if text is None else _letters(text)
    seen = set()
    for each in [*found["numbers"], *found["claims"]]:
        _need_types(f"{source}: a contract", each, _TYPES)
        claim = "quotation" in each
        where = f"{source}: {each.get('id', 'a contract without an id')}"
        _need_keys(where, each, _CLAIM if claim else _NUMBER, _CLAIM_MAY if claim else _MAY)
        key = (each["id"], tuple(each["tables"]) if not claim else ())
        if key in seen:
            raise LedgerError(f"{where} is there twice: give one of the two another id")
        seen.add(key)
        strange = set(each["needs"]) - set(found["needs"])
        if strange:
            raise LedgerError(f"{where} needs {sorted(strange)}, which 'needs' does not explain")
        _check_claim(where, each, spelt) if claim else _check_number(where, each)
    for each in found["limits"]:
        _need_types(f"{source}: a limit", each, _TYPES)
        where = f"{source}: limit of {each.get('place', 'no place')}"
        _need_keys(where, each, {"place", "quotation", "says"}, set())
        _check_quotation(where, each["quotation"], spelt)


def _need_types(where: str, each: Any, types: Mapping[str, type]) -> None:
    if not isinstance(each, dict):
        raise LedgerError(f"{where} is {each!r:.60}, no table of names")
    where = f"{where} {each['id']}" if isinstance(each.get("id"), str) else where
    for name in set(each) & set(types):
        if not isinstance(each[name], types[name]):
            raise LedgerError(f"{where}: its {name} is {each[name]!r:.60}, of another type")
        if isinstance(each[name], list) and name in ("needs", "tables"):
            strange = [v for v in each[name] if not isinstance(v, (str, int))]
            if strange:
                raise LedgerError(f"{where}: its {name} have {strange[0]!r:.60}")


def _need_keys(where: str, each: Mapping[str, Any], must: set[str], may: set[str]) -> None:
    missing, strange = must - set(each), set(each) - must - may
    if missing or strange:
        what = f"lacks {sorted(missing)}" if missing else f"has {sorted(strange)}"
        raise LedgerError(f"{where} {what}; a contract has {sorted(must)}")


def _check_number(where: str, each: Mapping[str, Any]) -> None:
    margin = each["margin"]
    real = isinstance(margin, (int, float)) and not isinstance(margin, bool)
    if not real or not np.isfinite(margin) or margin < 0:
        raise LedgerError(f"{where} has no tolerance: its margin {margin!r} is no number from 0 on")
    if not each["reason"]:
        raise LedgerError(f"{where} gives no reason for its tolerance")
    if each["kind"] not in KINDS[:3]:
        raise LedgerError(f"{where} is of kind {each['kind']!r}; choose one of {KINDS[:3]}")


def _check_claim(where: str, each: Mapping[str, Any], spelt: str | None) -> None:
    for name in ("claim", "predicate", "population", "quotation", "place"):
        if not each[name]:
            raise LedgerError(f"{where}: its {name} is empty")
    if each["thresholds"] not in THRESHOLDS:
        raise LedgerError(f"{where}: thresholds are of {each['thresholds']!r}, not {THRESHOLDS}")
    if "rule" not in each.get("check", {"rule": ""}):
        raise LedgerError(f"{where}: its check names no rule")
    _check_quotation(where, each["quotation"], spelt)


def _check_quotation(where: str, quotation: str, spelt: str | None) -> None:
    n = len(quotation.split())
    if not _letters(quotation):
        raise LedgerError(f"{where} quotes {quotation!r}, which has no word")
    if n > LONGEST_QUOTATION:
        raise LedgerError(f"{where} quotes {n} words; at most {LONGEST_QUOTATION} are quoted")
    if spelt is not None and _letters(quotation) not in spelt:
        raise LedgerError(f"{where}: the paper's text does not have {quotation!r}")


def _letters(text: str) -> str:
    """Return a text without white space, hyphens and marks of emphasis."""
    return re.sub(r"[\s\-‐­*]+", "", text).lower()


@functools.cache
def _file(paper: str) -> dict[str, Any]:
    found = json.loads((DATA / f"{paper}.json").read_text(encoding="utf-8"))
    check_contracts(found, f"{paper}.json")
    return found


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
    if paper is not None and paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
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
