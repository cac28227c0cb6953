"""Whether contracts can fail: how many are met by scores that should not meet them."""

import functools
import itertools

import pandas

from biaslib.ledger._contracts import DATA, contracts, families, printed
from biaslib.ledger._evidence import Evidence, NoEvidenceError
from biaslib.ledger._numbers import judge_number
from biaslib.ledger._runs import Tables
from biaslib.ledger._verdicts import CHECKS

MOST = 0.1
"""Share of a table's contracts that wrong scores may meet."""

IMAGINED = ("IDM", "RAM", "BIM")

SIDES = {
    "ross2021_images": ("test", "images", ["source"]),
    "ross2021_effect_sizes": ("model", "effect_size", ["table", "experiment", "test", "level"]),
    "ross2021_significant_counts": ("column", "significant", ["experiment", "kind", "level"]),
    "hamidieh2023_laion_pronouns": ("word", "female", []),
    "hamidieh2023_casc": ("group", "casc", ["table", "word"]),
    "zhou2022_images": ("category", "images", []),
    "zhou2022_scores": ("model", "value", ["table", "category", "metric"]),
}
"""What stands in the columns of a printed table, its number, and what tells its rows apart."""


def other_columns(paper: str) -> Tables:
    """Return the tables of a paper with the numbers of one column in the place of another's.

    They are numbers of the right kind, printed by the authors, for another model or group. Every
    ordered pair of columns is taken, one below the other, so that these are the cells that an
    exchange of two columns puts in the wrong place.

    Examples
    --------
    >>> table = other_columns("zhou2022")["zhou2022_images"]
    >>> table.query("category == 'gender'")["images"].tolist()
    [206, 322, 14, 1028]
    """
    found = {}
    for stem, (side, value, keys) in SIDES.items():
        if stem in printed(paper):
            rows = printed(paper)[stem]
            rows = rows[~rows[side].isin(IMAGINED)]
            given = rows[[side, *keys, value]].drop_duplicates([side, *keys])
            given = given.rename(columns={side: "taken from"})
            asked = rows.drop(columns=value)
            both = asked.merge(given, **({"on": keys} if keys else {"how": "cross"}))
            found[stem] = both[both[side] != both["taken from"]]
    return found


@functools.cache
def random_weights() -> pandas.DataFrame:
    """Return what models of random weights in the official formats gave.

    They are those of the rehearsal of the profile ``paper``, on invented pictures.

    Returns
    -------
    pandas.DataFrame
        *id* and *value* of a number, or *id* and *verdict* of a claim.
    """
    return pandas.read_csv(DATA / "random_weights.csv")


def _met(paper: str, rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return by place how many numbers are met, and of how many, if *value* had no error."""
    every = contracts(paper)[["id", "place", "value", "margin"]]
    both = rows[["id", "value"]].merge(every, on="id", suffixes=("", " printed"))
    value, limit, margin = (
        both[name].astype(float) for name in ("value", "value printed", "margin")
    )
    met = pandas.Series(judge_number(limit, margin, value, value), both.index) == "met"
    by_place = met[value.notna()].groupby(both["place"])
    return pandas.DataFrame({"met": by_place.sum(), "n": by_place.size()})


def _shares(parts: list[pandas.DataFrame], name: str) -> pandas.DataFrame:
    total = pandas.concat(parts).groupby(level=0).sum()
    share = total["met"] / total["n"].where(total["n"] > 0)
    return pandas.DataFrame({name: share.astype(float), f"{name}, n": total["n"].astype(int)})


@functools.cache
def discrimination(paper: str) -> pandas.DataFrame:
    """Return, by table, what share of its numbers is met by scores that should not meet them.

    Returns
    -------
    pandas.DataFrame
        One row a printed table, and one for claims: *paper*, *place*; *another column*, the
        share that the numbers of another model or group meet; *random weights*, that of models
        without training; each with its *n* of verdicts; and *discriminates*: whether neither is
        above a tenth.

    Examples
    --------
    >>> int(discrimination("zhou2022").set_index("place").loc["Table 3", "another column, n"])
    90
    """
    tables = other_columns(paper)
    asked = [family for family in families(paper) if family.kind != "list"]
    asked = [family for family in asked if family.column == SIDES.get(family.stem, " " * 2)[1]]
    others = [_met(paper, family.rows(tables)) for family in asked]
    ours = random_weights()
    random = [_met(paper, ours[ours["value"].notna()])]
    claims = ours.loc[ours["value"].isna() & ours["id"].str.startswith(paper), "verdict"]
    if len(claims):
        row = {"met": int((claims == "met").sum()), "n": len(claims)}
        random.append(pandas.DataFrame(row, index=["claims"]))
    parts = [_shares(others, "another column")] if others else []
    table = pandas.concat([*parts, _shares(random, "random weights")], axis=1)
    table = table.reindex(sorted(table.index, key=_number_of_place))
    shares = table[[name for name in ("another column", "random weights") if name in table]]
    table = table.assign(paper=paper, discriminates=~(shares > MOST).any(axis=1))
    return table.rename_axis("place").reset_index()


def _number_of_place(place: str) -> int:
    return int(place.split()[-1]) if place.startswith("Table") else 100


def claims_after_exchange(paper: str) -> pandas.DataFrame:
    """Return how many claims that follow still do when two columns of a table are exchanged.

    Returns
    -------
    pandas.DataFrame
        One row an exchange of two models, groups or columns: *table*, *exchanged*, *followed*
        (claims that follow from the printed tables), *still* (those that do afterwards).
    """
    right = Evidence(printed(paper))
    names = [name for name in CHECKS if name.startswith(paper) and _follows(name, right)]
    rows = []
    for stem in ("ross2021_effect_sizes", "hamidieh2023_casc", "zhou2022_scores"):
        side = SIDES[stem][0]
        table = printed(paper).get(stem, pandas.DataFrame({side: []}))
        facets = table.set_index(side)["facet"].to_dict() if "facet" in table else {}
        columns = [each for each in table[side].unique() if each not in IMAGINED]
        for one, other in itertools.combinations(columns, 2):
            if facets.get(one) != facets.get(other):
                continue
            moved = table.assign(**{side: table[side].replace({one: other, other: one})})
            changed = Evidence({**printed(paper), stem: moved})
            still = sum(_follows(name, changed) for name in names)
            rows.append((stem, f"{one} and {other}", len(names), still))
    return pandas.DataFrame(rows, columns=["table", "exchanged", "followed", "still"])


def _follows(name: str, evidence: Evidence) -> bool:
    try:
        return CHECKS[name](evidence).answer == "follows"
    except NoEvidenceError:
        return False
