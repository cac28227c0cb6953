"""What the evidence says of every contract: the paper's own tables, and a recorded run."""

import functools
from collections.abc import Mapping

import numpy as np
import pandas

from biaslib.ledger import (
    _claims_hamidieh2023,
    _claims_ross2021,
    _claims_srinivasan2021,
    _claims_zhou2022,
)
from biaslib.ledger._contracts import (
    PAPERS,
    contracts,
    families,
    named_checks,
    open_questions,
    printed,
)
from biaslib.ledger._evidence import Check, Evidence, NoEvidenceError, NoIntervalError
from biaslib.ledger._numbers import judge_list, judge_number
from biaslib.ledger._runs import Tables

VERDICTS = ("met", "not met", "cannot be said", "not run")
"""What a run can say of a contract."""

FROM_ANSWER = {"follows": "met", "in part": "cannot be said", "does not follow": "not met"}
"""The verdict on a claim by what its check finds in a run."""

RULES = {
    "ross2021": _claims_ross2021,
    "srinivasan2021": _claims_srinivasan2021,
    "hamidieh2023": _claims_hamidieh2023,
    "zhou2022": _claims_zhou2022,
}
"""Where the rules lie by which a paper's claims are checked, a function each."""


def checks(paper: str) -> dict[str, Check]:
    """Return a paper's checks: the rule that a claim's contract names, with its settings."""
    found = {}
    for name, settings in named_checks(paper).items():
        rule = getattr(RULES[paper], settings["rule"])
        given = {key: value for key, value in settings.items() if key != "rule"}
        found[name] = functools.partial(rule, **given)
    return found


CHECKS: Mapping[str, Check] = {
    name: check for paper in PAPERS for name, check in checks(paper).items()
}
"""The check of each claim that can be checked, by the claim's id."""

NO_CHECK = "no table of the paper and no score of ours holds what it speaks of"


@functools.cache
def reexamined(paper: str) -> pandas.DataFrame:
    """Return whether each claim follows from what the paper itself prints.

    Returns
    -------
    pandas.DataFrame
        One row a claim or open question: *id*, *answer* (follows, in part, does not follow; empty
        where it cannot be told; of an open question its standing) and *told*, the numbers or the
        reason.

    Examples
    --------
    >>> found = reexamined("zhou2022").set_index("id")
    >>> found.loc["zhou2022/claim/19", "answer"]
    'follows'
    """
    evidence = Evidence(printed(paper))
    table = contracts(paper)
    rows = [(name, *_asked(name, evidence)) for name in table.loc[table["kind"] == "claim", "id"]]
    for each in open_questions(paper):
        numbers = "; ".join(f"{name}: {value}" for name, value in each["computed"].items())
        rows.append((f"{paper}/open/{each['id']}", each["standing"], numbers))
    return pandas.DataFrame(rows, columns=["id", "answer", "told"])


def _asked(name: str, evidence: Evidence) -> tuple[str, str]:
    if name not in CHECKS:
        return "", NO_CHECK
    try:
        found = CHECKS[name](evidence)
    except NoIntervalError as error:
        return "in part", str(error)
    except NoEvidenceError as error:
        return "", str(error)
    except (KeyError, IndexError, TypeError, ValueError):
        if evidence.scores.empty:
            raise
        return "", "the run lacks some of what the claim is about"
    return found.answer, found.told


def verdicts(paper: str, tables: Tables, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return what a run says of every contract of a paper.

    Parameters
    ----------
    paper
        One of the four.
    tables
        The run's scores in the form of the paper's tables: :func:`tables_of_run`.
    scores
        Its tidy scores.

    Returns
    -------
    pandas.DataFrame
        One row a contract that a run can meet: *id*, *kind*, *verdict* (of :data:`VERDICTS`),
        *value*, *low*, *high* of the run, and *told*, what it rests on or what is missing.
    """
    every = contracts(paper)
    numbers = judged_numbers(paper, _rows(tables, paper, lists=False))
    parts = [numbers, _of_lists(every, tables, paper)]
    evidence = Evidence(tables, scores)
    claims = every.loc[every["kind"] == "claim", ["id", "kind"]]
    answers = [_asked(name, evidence) for name in claims["id"]]
    parts.append(
        claims.assign(
            verdict=[FROM_ANSWER.get(answer, "not run") for answer, _ in answers],
            told=[told for _, told in answers],
        )
    )
    return pandas.concat([part for part in parts if len(part)], ignore_index=True)


def _rows(tables: Tables, paper: str, lists: bool) -> pandas.DataFrame:
    """Return a run's rows by id, of its lists or of its numbers."""
    parts = [f.rows(tables) for f in families(paper) if (f.kind == "list") == lists]
    columns = ["id", "value", "low", "high", "variant"]
    parts = [part.reindex(columns=columns) for part in parts if len(part)]
    if not parts:
        return pandas.DataFrame(columns=columns)
    return pandas.concat(parts, ignore_index=True).drop_duplicates("id")


def judged_numbers(paper: str, run: pandas.DataFrame) -> pandas.DataFrame:
    """Return the verdict on every printed number of a paper.

    Parameters
    ----------
    paper
        One of the four.
    run
        A run's numbers, with *id*, *value*, *low* and *high*.

    Returns
    -------
    pandas.DataFrame
        *id*, *kind*, *value*, *low*, *high*, *verdict* and *told*.
    """
    every = contracts(paper)
    asked = every.loc[every["kind"].isin(["number", "count"]), ["id", "kind", "value", "margin"]]
    both = asked.rename(columns={"value": "printed"}).merge(run, on="id", how="left")
    value = both["value"].astype(float)
    both["low"] = both["low"].astype(float).where(lambda low: ~(low > value), value)
    both["high"] = both["high"].astype(float).where(lambda high: ~(high < value), value)
    numbers = both[["printed", "margin", "low", "high"]].astype(float)
    there = both["value"].notna()
    bare = there & both["low"].isna()
    verdict = pandas.Series(judge_number(*(numbers[name] for name in numbers)), both.index)
    ours = both.get("variant", pandas.Series("", both.index)) == "paper"
    reasons = ["not in the run", "the run has no interval", "our variant, not as published"]
    told = np.select([~there, bare, ours], reasons, "")
    verdict = verdict.where(~(ours & (verdict == "met")), "cannot be said")
    both = both.assign(verdict=verdict.where(there, "not run"), told=told)
    return both[["id", "kind", "value", "low", "high", "verdict", "told"]]


def _of_lists(every: pandas.DataFrame, tables: Tables, paper: str) -> pandas.DataFrame:
    asked = every.loc[every["kind"] == "list"]
    ours = _rows(tables, paper, lists=True).set_index("id")["value"]
    rows = []
    for each in asked.itertuples():
        found = ("not run", "not in the run")
        if each.id in ours.index:
            found = judge_list(each.words, ours[each.id])
        rows.append((each.id, each.kind, *found))
    return pandas.DataFrame(rows, columns=["id", "kind", "verdict", "told"])


def standing(
    runs: Mapping[str, pandas.DataFrame] | None = None, paper: str | None = None
) -> pandas.DataFrame:
    """Return contracts with their evidence: the paper's own tables, and recorded runs.

    Parameters
    ----------
    runs
        Verdicts by paper, as of :func:`verdicts`; None or a paper that is left out: not run.
    paper
        One of the four; None for all.

    Returns
    -------
    pandas.DataFrame
        :func:`contracts`, with *answer* and *from_printed* (see :func:`reexamined`), *verdict*,
        *run* (the run's number, or None), *run_low*, *run_high* and *run_told*.
    """
    table = contracts(paper)
    own = pandas.concat(map(reexamined, PAPERS if paper is None else (paper,))).rename(
        columns={"told": "from_printed"}
    )
    table = table.merge(own, on="id", how="left").fillna({"answer": "", "from_printed": ""})
    names = {"value": "run", "low": "run_low", "high": "run_high", "told": "run_told"}
    given = [each.drop(columns="kind") for each in (runs or {}).values()]
    if given:
        table = table.merge(pandas.concat(given).rename(columns=names), on="id", how="left")
    else:
        table = table.assign(verdict=None, run=np.nan, run_low=np.nan, run_high=np.nan, run_told="")
    asked = table["kind"] != "open question"
    told = table["needs"].map(lambda keys: "needs " + ", ".join(keys) if keys else "")
    table["run_told"] = table["run_told"].where(table["verdict"].notna(), told)
    table["verdict"] = table["verdict"].where(table["verdict"].notna(), "not run").where(asked, "")
    return table
