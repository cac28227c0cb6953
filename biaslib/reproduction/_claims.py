"""The claims of the four papers in words, and whether they follow from the papers' own tables."""

import functools

import pandas

from biaslib.reproduction._printed import PAPERS, data_of

ANSWERS = ("follows", "in part", "does not follow", "cannot be said")
"""What a paper's own tables can say of a claim."""


@functools.cache
def _claims(paper: str) -> pandas.DataFrame:
    table = pandas.DataFrame(data_of(paper)["claims"]).assign(paper=paper)
    first = table["quotations"].map(lambda quotations: quotations[0])
    places, texts = (
        first.map(lambda each, name=name: each[name]) for name in ("place", "quotation")
    )
    return table.assign(place=places, quotation=texts)


def claims(paper: str | None = None) -> pandas.DataFrame:
    """Return the claims of a paper, or of all, and whether they follow from its printed tables.

    Each was judged three times, independently: twice from quotation and printed tables alone. Where
    all agree, that is the answer. Where the two agree against the first, which asked for more than
    is quoted, theirs is; where they differ, it is *in part* or *cannot be said*. A *remark* says
    where another answer stands, as where the paper's own unbiased score decides, and why a claim
    that it names, with the same criterion or numbers, has another answer.

    Returns
    -------
    pandas.DataFrame
        *id*, *paper*, *place*, *quotation* (the first of *quotations*, each with its place and
        the three *answers*), *claim* (ours, in short), *headline* (of an abstract, introduction or
        conclusion); *counts*, what would make it follow, and whose *thresholds* these are;
        *numbers*, those that decide, each with *what* it is and its *value*; *answer* (of
        :data:`ANSWERS`); *remark*; *erratum*, an open question about it.

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
