"""What a run says of what the papers state without numbers: each a row with a sign, none in code.

A row of :func:`biaslib.published.stated` says which scores lie above or below a mark, or other
scores. Their intervals decide, as the scores have them.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas

from biaslib import published
from biaslib.reproduction._headlines import MissingError

OF_STUDY_1 = ("experiment", "masking", "domain", "variant")
SELECTORS = ("model", "test", "level", "statistic", "group", "bias_type", *OF_STUDY_1)
"""Columns of scores by which a row names those that it is about."""

Row = Mapping[str, object]


def judged_stated(paper: str, scores: pandas.DataFrame) -> pandas.DataFrame:
    r"""Return *id*, *printed*, *value*, *low*, *high*, *verdict* and *reason* of a paper's signs.

    With an interval from l to h, a mark m and the sign +: *met* if :math:`l > m`, *not met* if
    :math:`h \le m`, else *cannot be said*, also without an interval; the sign - exchanges the
    sides. Of two scores that are compared it is the interval from :math:`l_1 - h_2` to
    :math:`h_1 - l_2`, and m is 0: they are told apart where their own intervals do not meet.

    A row about several scores is met if all, or more than the share that it names, are on its side;
    not met if one, or too many for that share, is not. Then *value* is the share that is, *low* and
    *high* what open scores leave of it: words and models are the paper's own, and none is drawn.

    Examples
    --------
    >>> row = {"model": "vl-bert", "test": "beer", "level": "S_V", "statistic": "B"}
    >>> run = pandas.DataFrame([row | {"value": -0.7, "low": -0.9, "high": -0.4}])
    >>> found = judged_stated("srinivasan2021", run).set_index("id")
    >>> found.loc["srinivasan2021/stated/S_V/beer/B", ["verdict", "reason"]].tolist()
    ['met', 'stated: below 0']
    """
    rows = published.stated(paper).to_dict("records")
    scores = scores.assign(**{name: _texts(scores, name) for name in SELECTORS})
    return pandas.DataFrame([_judged(row, scores) for row in rows])


def _judged(row: Row, scores: pandas.DataFrame) -> dict[str, object]:
    found = {"id": row["id"], "printed": row["quotation"]}
    try:
        own = _selected(row, scores)
        compared = _differences(row, own, scores) if row["than"] else own
    except MissingError as error:
        return found | {"verdict": "not run", "reason": str(error)}
    sign = 1 if row["sign"] == "+" else -1
    low, high = (sign * (compared[end] - row["mark"]) for end in ("low", "high"))
    low, high = np.minimum(low, high), np.maximum(low, high)
    n, yes, no = len(compared), int((low > 0).sum()), int((high <= 0).sum())
    share = row["share"]
    held = yes == n if np.isnan(share) else yes > share * n
    failed = no > 0 if np.isnan(share) else n - no <= share * n
    found["verdict"] = "met" if held else "not met" if failed else "cannot be said"
    if len(own) == 1:
        found |= own[["value", "low", "high"]].iloc[0].to_dict()
    else:
        hits = (sign * (compared["value"] - row["mark"]) > 0).mean()
        found |= {"value": hits, "low": yes / n, "high": 1 - no / n}
    return found | {"reason": _reason(row, compared, (n, yes, no))}


def _selected(row: Row, scores: pandas.DataFrame, **other: str) -> pandas.DataFrame:
    """Return the scores that a row is about, or with other entries, with the ends of intervals.

    Raises
    ------
    MissingError
        If the run lacks one of them.
    """
    wanted = {name: other.get(name, row[name]).strip("|") for name in SELECTORS}
    asked = {name: set(text.split("|")) for name, text in wanted.items() if text not in ("", "*")}
    found = scores.dropna(subset="value") if "value" in scores else scores.iloc[:0]
    for column, names in asked.items():
        found = found[found[column].isin(names)]
        if found.empty:
            raise MissingError(_absent(column, names, asked))
    for column, names in asked.items():
        if lost := names - set(found[column]):
            raise MissingError(_absent(column, lost, asked))
    least = 1 if other else row["rows"]
    if len(found) < least:
        raise MissingError(f"{len(found)} of at least {least} scores are in the run")
    return _with_ends(found, row)


def _texts(rows: pandas.DataFrame, column: str) -> pandas.Series:
    """Return a column as text, whole numbers as they are printed; empty where it is not there."""
    known = rows.get(column, pandas.Series("", rows.index))
    return known.astype(str).str.removesuffix(".0")


def _absent(column: str, names: set[str], asked: Mapping[str, set[str]]) -> str:
    told = ", ".join("|".join(sorted(each)) for each in asked.values())
    return f"not in the run: {column} {', '.join(sorted(names))} (asked: {told})"


def _with_ends(rows: pandas.DataFrame, row: Row) -> pandas.DataFrame:
    """Return rows with *value*, *low* and *high* as numbers; of sizes those of absolute values."""
    value = rows["value"].astype(float)
    # Texts without a picture leave nothing to draw anew: the number is its own interval.
    alone = np.full(len(rows), row["exact"] == "yes")
    if "images" in rows:
        alone |= (rows["images"] == "without").to_numpy()
    ends = []
    for name in ("low", "high"):
        end = rows.get(name, pandas.Series(np.nan, rows.index)).astype(float)
        end = end.fillna(rows[f"{name}_pictures"]) if f"{name}_pictures" in rows else end
        ends.append(end.mask(alone & end.isna(), value))
    # Percentiles of a bootstrap need not hold the value itself.
    low, high = ends[0].mask(ends[0] > value, value), ends[1].mask(ends[1] < value, value)
    if row["statistic"].startswith("|"):
        across = (low < 0) & (high > 0)
        value, sizes = value.abs(), (low.abs(), high.abs())
        low, high = np.minimum(*sizes).mask(across, 0.0), np.maximum(*sizes)
    return rows.assign(value=value, low=low, high=high)


def _differences(row: Row, own: pandas.DataFrame, scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return each score less those of the same names that it is compared with."""
    than = dict(part.split("=") for part in row["than"].split("; "))
    others = _selected(row, scores, **than)
    for column, wanted in than.items():
        if wanted == "*":
            others = others[others[column] != own[column].iloc[0]]
    keys = [name for name in SELECTORS if name not in than]
    both = own.merge(others, on=keys, suffixes=("", " than"))
    if both.empty:
        raise MissingError("nothing to compare it with is in the run")
    apart = {
        "value": both["value"] - both["value than"],
        "low": both["low"] - both["high than"],
        "high": both["high"] - both["low than"],
    }
    return both.assign(**apart)


def _reason(row: Row, compared: pandas.DataFrame, counts: tuple[int, int, int]) -> str:
    n, yes, no = counts
    side = "above" if row["sign"] == "+" else "below"
    than = re.sub(r"(\w+)=\*", r"every other \1", row["than"]).replace("|", " or ")
    mark = f"that of {than}" if than else f"{row['mark']:g}"
    parts = [f"stated: {side} {mark}"]
    if not np.isnan(row["share"]):
        parts[0] += f" for more than {row['share']:.0%} of the scores"
    if n > 1:
        parts.append(f"{yes} of {n} are, {no} are not, {n - yes - no} are open")
    if compared[["low", "high"]].isna().any(axis=None):
        parts.append("the run has no interval")
    if row["note"]:
        parts.append(row["note"])
    return "; ".join(parts)
