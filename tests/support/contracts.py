"""What a data file of contracts must hold, and one clear error when it does not."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from biaslib.ledger import KINDS, LedgerError
from biaslib.ledger._contracts import PAPERS
from biaslib.runtime import unknown_name

LONGEST_QUOTATION = 25
THRESHOLDS = ("the paper's", "ours", "none needed")

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
