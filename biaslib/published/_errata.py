"""What does not follow from the printed tables, with the standing of each finding."""

import json

import pandas

from biaslib.published._tables import DATA, PAPERS
from biaslib.runtime import unknown_name

STANDINGS = {
    "confirmed by the released file": "The data that the paper released give the computed numbers.",
    "confirmed by the released code": "The code that the paper released does what we say.",
    "does not follow from the printed table, in our copy": (
        "A statement, or another table, says something else than the printed numbers give."
    ),
    "inferred": "The best reading of the printed numbers that we found; others are possible.",
    "a matter of wording, in our copy": "A sentence, a reference or a heading.",
    "cannot be checked here": "The numbers that would decide it are not printed.",
    "agrees with the printed table": "We checked a statement, and it holds.",
}
"""Each standing an erratum may have, and what it means."""

COLUMNS = ["id", "paper", "tables", "title", "summary", "printed", "computed", "standing", "settle"]


def errata(paper: str | None = None) -> pandas.DataFrame:
    """Return the errata of one paper, or of all: one row for each.

    ``printed`` and ``computed`` are dictionaries of numbers by name; the second follow from the
    printed tables. ``settle`` says what would settle the matter.

    Raises
    ------
    UnknownNameError
        If there is no such paper.

    Examples
    --------
    >>> errata("srinivasan2021")[["id", "standing"]].values.tolist()[1]
    ['D2', 'agrees with the printed table']
    """
    if paper is not None and paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    entries = json.loads((DATA / "errata.json").read_text(encoding="utf-8"))
    chosen = [each for each in entries if paper in (None, each["paper"])]
    return pandas.DataFrame(chosen, columns=COLUMNS)
