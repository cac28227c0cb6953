"""A run's scores beside the printed numbers of a paper, one by one and table by table."""

from collections.abc import Mapping

import numpy as np
import pandas
from numpy.typing import ArrayLike

from biaslib.reproduction._headlines import judged_headlines
from biaslib.reproduction._printed import families, printed
from biaslib.reproduction._run_tables import Tables, tables_of_run
from biaslib.reproduction._stated import judged_stated

VERDICTS = ("met", "not met", "cannot be said", "not run")
"""What a run can say of a printed number, a list or a claim."""

LIST_RULE = {"met": 0.8, "not met": 0.5}
"""Shares of a printed list's words among as many first words of a run."""

NOT_RELEASED = "not released"
"""Under which name ``attrs`` of scores list networks whose files are not the released ones."""

FEWEST = 4
"""Numbers of a table from which on its mean offset is looked at."""

MOST_OFF, MOST_SCATTER = 0.5, 0.65
"""Share of what a number may lie off, margin and half an interval, by which a table may be off on
average, and by which its numbers may scatter: errors whose intervals hold at 90% scatter by .61,
numbers without intervals by as much as a table may be off."""

OUR_VARIANT = "our variant, not as published"

COLUMNS = ["id", "printed", "value", "low", "high", "margin", "verdict", "reason"]


def compare(
    scores: pandas.DataFrame, paper: str, counts: Mapping[str, pandas.DataFrame] | None = None
) -> pandas.DataFrame:
    r"""Return a run's scores beside everything that a paper prints and that a run can repeat.

    A number is *not met* if the run's whole interval lies further from the printed number than the
    margin. Otherwise it is *met*, unless the interval is too wide to decide (:func:`judge_number`):
    then it *cannot be said*. A number of a variant of ours is judged too, and its reason says so. A
    ranked list is judged by the words that are among the run's first (:func:`judge_list`); a
    headline claim by what it says of the run's tables; what is stated without a number by the
    side on which intervals lie (:func:`biaslib.published.stated`).

    Numbers that are all met can still be wrong as a table. So each table is looked at as a whole.
    With the middles of our n intervals :math:`o_i`, the printed numbers :math:`p_i`, and how far
    each may lie off and be met, :math:`r_i = m_i + (h_i - l_i) / 2`, the mean of
    :math:`(o_i - p_i) / r_i` and its standard deviation are to be at most .5, the latter .65 where
    numbers have intervals; and no model or group is to be nearer to the printed numbers of another
    than to its own. Cells that a paper prints twice with different values are left out. What is
    found stands in ``attrs["checks"]`` (:func:`findings`). Of a number or claim of such a table
    nothing can be said that would be met otherwise; its reason says why. What is not met stays so.

    Parameters
    ----------
    scores
        Tidy scores of the paper's study; those of the profile ``paper`` are judged, and none of a
        taste. Where their ``attrs`` name networks that are not the released ones, as those of
        :func:`biaslib.reproduction.read` do, every verdict on them is *cannot be said*.
    paper
        ``ross2021``, ``srinivasan2021``, ``hamidieh2023`` or ``zhou2022``.
    counts
        Tables of counts that scores do not hold, by the names of the files of
        :mod:`biaslib.published`: ``ross2021_images`` or ``hamidieh2023_laion_pronouns``.

    Returns
    -------
    pandas.DataFrame
        *id*, *printed* (as text), *value*, *low*, *high* (ours), *margin*, *verdict* (of
        :data:`VERDICTS`) and *reason*. ``attrs["checks"]`` has by table *n*, the mean *offset* and
        its *spread* in these units, and the *finding*, empty where there is none.

    Raises
    ------
    UnknownNameError
        If there is no such paper.
    InputError
        If the scores lack a column, as those of another study do.

    Examples
    --------
    >>> found = compare(pandas.DataFrame(), "zhou2022")
    >>> set(found["verdict"])
    {'not run'}
    """
    known = printed(paper)
    if "profile" in scores:  # a taste is not the paper's study, nor is the planted world
        scores = scores[scores["profile"] == "paper"]
    found = compare_tables(tables_of_run(paper, scores, counts or {}), paper, scores, known)
    if others := scores.attrs.get(NOT_RELEASED):
        judged = found["verdict"] != "not run"
        reason = f"no reproduction: the weights of {', '.join(others)} are not the released ones"
        found.loc[judged, ["verdict", "reason"]] = ["cannot be said", reason]
    return found


def compare_tables(
    tables: Tables, paper: str, scores: pandas.DataFrame, known: pandas.DataFrame
) -> pandas.DataFrame:
    """Return :func:`compare` of scores that have the form of the paper's tables already."""
    numbers = known[known["kind"] != "list"].rename(columns={"value": "printed_value"})
    names = ["id", "place", "printed", "printed_value", "margin", "widest", "barrier"]
    names += ["of", "cell", "twice"]
    both = numbers[names].merge(_rows(tables, paper, lists=False), on="id", how="left")
    value, low, high = (both[name].astype(float) for name in ("value", "low", "high"))
    there = both[both["value"].notna()].groupby("place", sort=False)
    checks = {place: _check(rows) for place, rows in there}
    # The number of all pictures may be expected elsewhere than where that of the run lies.
    both = both.assign(low=low.mask(low > value, value), high=high.mask(high < value, value))
    both = both.join(_judged(both))
    parts = [
        _held_back(both, checks),
        _of_lists(known[known["kind"] == "list"], _rows(tables, paper, lists=True)),
        _held_back(judged_headlines(paper, tables, scores), checks),
        judged_stated(paper, scores),
    ]
    found = pandas.concat([part for part in parts if len(part)])
    found = found.reindex(columns=COLUMNS).reset_index(drop=True)
    found.attrs["checks"] = checks
    return found


def findings(compared: pandas.DataFrame) -> list[str]:
    """Return what :func:`compare` found of tables as a whole, a sentence a table."""
    return [each["finding"] for each in compared.attrs["checks"].values() if each["finding"]]


def _held_back(rows: pandas.DataFrame, checks: Mapping[str, Mapping]) -> pandas.DataFrame:
    """Return rows of which none is met that is of a table with a finding."""
    of_tables = [[checks.get(each, {}) for each in place.split(", ")] for place in rows["place"]]
    told = [
        "; ".join(filter(None, (each.get("finding") for each in checked))) for checked in of_tables
    ]
    told = pandas.Series(told, rows.index, dtype=str)
    held = (rows["verdict"] == "met") & (told != "")
    reasons = (rows["reason"] + "; " + told).str.removeprefix("; ")
    return rows.assign(
        verdict=rows["verdict"].mask(held, "cannot be said"),
        reason=rows["reason"].mask(held, reasons),
    )


def _rows(tables: Tables, paper: str, lists: bool) -> pandas.DataFrame:
    """Return a run's rows by id, of its lists or of its numbers."""
    parts = [each.rows(tables) for each in families(paper) if (each.kind == "list") == lists]
    columns = ["id", "value", "low", "high", "variant"]
    parts = [part.reindex(columns=columns) for part in parts if len(part)]
    if not parts:
        return pandas.DataFrame(columns=columns)
    return pandas.concat(parts, ignore_index=True).drop_duplicates("id")


def _judged(both: pandas.DataFrame) -> pandas.DataFrame:
    """Return *verdict* and *reason* of numbers, a row each."""
    names = ["printed_value", "margin", "low", "high", "widest"]
    verdict = pandas.Series(judge_number(*(both[name] for name in names)), both.index)
    missing, none = both["value"].isna(), both["low"].isna() | both["high"].isna()
    wide = [
        f"its interval, {low:.3g} to {high:.3g}, is too wide"
        for low, high in zip(both["low"], both["high"], strict=True)
    ]
    nowhere = ~(~missing).groupby(both["place"]).transform("any")
    of_table = "the run has no number of " + both["place"]
    reasons = [of_table, "not in the run", "the run has no interval", wide]
    open_ = verdict == "cannot be said"
    reason = pandas.Series(np.select([nowhere, missing, none, open_], reasons, ""), both.index)
    because = both["barrier"].map(lambda each: each and f": {each}")
    reason = reason.mask(reason != "", reason + because)
    ours = (both["variant"] == "paper") & ~missing
    told = (OUR_VARIANT + reason.map(lambda each: each and f"; {each}")).where(ours, reason)
    return pandas.DataFrame({"verdict": verdict.mask(missing, "not run"), "reason": told})


def _of_lists(asked: pandas.DataFrame, ours: pandas.DataFrame) -> pandas.DataFrame:
    found = ours.set_index("id")["value"]
    rows = []
    for each in asked.itertuples():
        verdict, reason = "not run", "not in the run"
        if each.id in found.index:
            verdict, reason = judge_list(each.words, found[each.id])
        row = {"id": each.id, "printed": each.printed, "margin": each.margin}
        rows.append(row | {"verdict": verdict, "reason": reason})
    return pandas.DataFrame(rows)


def _check(rows: pandas.DataFrame) -> dict[str, object]:
    """Return what a table's numbers say together: *n*, *offset*, *spread* and *finding*."""
    found = [*_exchanged(rows)]
    # The imaginary models follow from formulas, whatever was run.
    measured = (rows["margin"] > 0) & rows["low"].notna() & rows["high"].notna()
    measured = rows[
        measured & ~rows["id"].str.contains("/reference/") & ~rows["twice"].astype(bool)
    ]
    expected = (measured["low"] + measured["high"]) / 2
    off = ((expected - measured["printed_value"]) / _room(measured)).astype(float)
    n, offset = len(off), float(off.mean())
    spread = float(off.std(ddof=0))
    if n >= FEWEST and abs(offset) > MOST_OFF:
        side = "above" if offset > 0 else "below"
        found.append(f"on average ours lie {abs(offset):.2g} margins {side} the printed numbers")
    intervals = (measured["high"] > measured["low"]).any()
    if n >= FEWEST and spread > (MOST_SCATTER if intervals else MOST_OFF):
        found.append(f"ours scatter about the printed numbers by {spread:.2g} margins")
    told = f"{rows['place'].iloc[0]} as a whole: {'; '.join(found)}" if found else ""
    return {"n": len(rows), "offset": offset, "spread": spread, "finding": told}


def _room(rows: pandas.DataFrame) -> pandas.Series:
    """Return how far numbers may lie off and be met: half an interval counts to the margin."""
    return (rows["margin"] + ((rows["high"] - rows["low"]) / 2).fillna(0.0)).astype(float)


def _exchanged(rows: pandas.DataFrame) -> list[str]:
    """Name models or groups whose numbers are those that the paper prints of another.

    Over the cells that two of them share, their distance to the printed numbers of the other is
    at most two margins (root mean square), half an interval counted to the margin, and less than
    half of that to their own.
    """
    if rows["of"].nunique() < 2:
        return []
    unit = max(_room(rows).median(), 1e-9)
    cells = rows.assign(ours=rows["value"] / unit, theirs=rows["printed_value"] / unit)
    wide = cells.astype({"ours": float, "theirs": float}).pivot_table(
        index="cell", columns="of", values=["ours", "theirs"]
    )
    names = wide["ours"].columns
    ours, theirs = (wide[each].to_numpy() for each in ("ours", "theirs"))
    found = []
    for at, one in enumerate(names):
        near = {}
        for to in [place for place in range(len(names)) if place != at]:
            shared = np.isfinite(ours[:, at]) & np.isfinite(theirs[:, to])
            if shared.sum() < 3:
                continue
            differences = (ours[shared, at] - theirs[shared, each] for each in (to, at))
            away, own = (np.sqrt(np.mean(each**2)) for each in differences)
            if away <= min(2, own / 2):
                near[names[to]] = away
        if near:
            nearest = min(near, key=lambda each: near[each])
            found.append(f"ours of {one} are those that the paper prints of {nearest}")
    return found


def judge_number(
    printed: ArrayLike,
    margin: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    widest: ArrayLike | None = None,
) -> np.ndarray:
    r"""Return what a run says of each printed number.

    With a printed number p, its margin m, and the interval of a re-run from l to h: *not met* if
    the whole interval lies further than m from p,

    .. math:: h < p - m \quad\text{or}\quad l > p + m.

    Otherwise *met* if the interval is no wider than the widest that decides, :math:`h - l \le w`,
    which is 2 m where *widest* is not given; else *cannot be said*, also without an interval. An
    interval of no width is a number.

    The interval is one of prediction: of where the paper's number may lie, if only pictures
    differ (Patil, Peng and Leek 2016; Spence and Stanley 2016). ``tools/decision_rule.py``
    compares this rule with others by simulation.

    Examples
    --------
    >>> low, high = [0.95, 0.8, 1.2, None], [1.2, 1.4, 1.3, None]
    >>> judge_number([1.0] * 4, [0.1] * 4, low, high, widest=0.5).tolist()
    ['met', 'cannot be said', 'not met', 'cannot be said']
    """
    printed, margin, low, high = (
        np.asarray(each, dtype=float) for each in (printed, margin, low, high)
    )
    widest = 2 * margin if widest is None else np.asarray(widest, dtype=float)
    slack = margin + 1e-9
    apart = (high < printed - slack) | (low > printed + slack)
    narrow = high - low <= widest + 1e-9
    return np.select([apart, narrow], ["not met", "met"], "cannot be said")


def judge_list(printed: Mapping[str, float], ours: Mapping[str, float]) -> tuple[str, str]:
    """Return what a run says of a ranked list, and what it rests on.

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
