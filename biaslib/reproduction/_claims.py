"""The claims of the four papers in words, and whether they follow from the papers' own tables."""

import fnmatch
import functools

import pandas

from biaslib import published
from biaslib.reproduction._headlines import HEADLINES
from biaslib.reproduction._printed import PAPERS, data_of, printed

ANSWERS = ("follows", "in part", "does not follow", "cannot be said")
"""What a paper's own tables can say of a claim."""


@functools.cache
def _claims(paper: str) -> pandas.DataFrame:
    table = pandas.DataFrame(data_of(paper)["claims"]).assign(paper=paper)
    first = table["quotations"].map(lambda quotations: quotations[0])
    places, texts = (
        first.map(lambda each, name=name: each[name]) for name in ("place", "quotation")
    )
    table = table.assign(place=places, quotation=texts, beside=_beside(paper))
    return table.assign(none=[each.get("none", "") for each in data_of(paper)["claims"]])


def _beside(paper: str) -> list[list[str]]:
    """Return the ids of what a run is set beside for each claim, in the order of ``compare``."""
    numbers = printed(paper)["id"].tolist()
    signs = published.stated(paper).set_index("id")["claims"].str.split()
    found = []
    for claim in data_of(paper)["claims"]:
        patterns = (f"{paper}/{each}" for each in claim.get("beside", ()))
        ids = [name for each in patterns for name in fnmatch.filter(numbers, each)]
        ids += [claim["id"]] if claim["id"] in HEADLINES else []
        number = claim["id"].rsplit("/", 1)[1]
        found.append(ids + [name for name, of in signs.items() if number in of])
    return found


def claims(paper: str | None = None) -> pandas.DataFrame:
    """Return the claims of a paper, or of all, and whether they follow from its printed tables.

    Each was judged three times, independently: twice from quotation and printed tables alone. Where
    all agree, that is the answer. Where the two agree against the first, which asked for more than
    is quoted, theirs is; where they differ, it is *in part* or *cannot be said*. A *remark* says
    where another answer stands, as where the paper's own unbiased score decides, and why a claim
    that it names, with the same criterion or numbers, has another answer.

    One answer is against all three: the numbers of hamidieh2023/claim/9, which they had not
    counted, say *in part*.

    Returns
    -------
    pandas.DataFrame
        *id*, *paper*, *place*, *quotation* (the first of *quotations*, each with its place and
        the three *answers*), *claim* (ours, in short), *headline* (of an abstract, introduction or
        conclusion); *counts*, what would make it follow, and whose *thresholds* these are;
        *numbers*, those that decide, each with *what* it is and its *value*; *answer* (of
        :data:`ANSWERS`); *remark*; *erratum*, an open question about it; *beside*, the ids of
        :func:`biaslib.reproduction.compare` that a run is set beside for it, or *none*, why there
        is nothing.

    Raises
    ------
    UnknownNameError
        If there is no such paper.

    Examples
    --------
    >>> found = claims("zhou2022").set_index("id")
    >>> found.loc["zhou2022/claim/19", "answer"]
    'follows'
    """
    chosen = PAPERS if paper is None else (paper,)
    return pandas.concat(map(_claims, chosen), ignore_index=True)


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
        for each in data_of(name)["limits"]
    ]
    return pandas.DataFrame(rows)
