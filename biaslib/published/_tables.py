"""The printed tables by paper and number."""

import functools
import json
from pathlib import Path

import pandas

from biaslib.runtime import source_hash, unknown_name

DATA = Path(__file__).parent / "data"

SCHEMAS = json.loads((DATA / "schemas.json").read_text(encoding="utf-8"))
"""The columns of each data file, by its name; the tests hold every cell against them."""

NUMBERS = {"integer": (int, "Int64"), "number": (float, "float64")}
"""How a number is read, and the type of its column, by the column's kind; others hold text."""

PAPERS = {
    "ross2021": "Ross, Katz, Barbu 2021: grounded association tests",
    "srinivasan2021": "Srinivasan, Bisk 2021: a case study of VL-BERT",
    "hamidieh2023": "Hamidieh et al. 2023: the taxonomy SO-B-IT and C-ASC",
    "zhou2022": "Zhou, Lai, Jiang 2022: VLStereoSet",
}
"""The four papers, by the key of the bibliography."""


@functools.cache
def _file(name: str, as_printed: bool = False) -> pandas.DataFrame:
    """Return a data file. An empty cell is an empty text, or no number."""
    rows = pandas.read_csv(DATA / f"{name}.csv", dtype=str, keep_default_na=False)
    rows = rows[[each["name"] for each in SCHEMAS[name]["columns"]]]
    for each in () if as_printed else SCHEMAS[name]["columns"]:
        if each.get("kind") in NUMBERS:
            read, kind = NUMBERS[each["kind"]]
            numbers = [read(text) if text else None for text in rows[each["name"]]]
            rows = rows.assign(**{each["name"]: pandas.Series(numbers, dtype=kind)})
    return rows


def _stem(paper: str, number: int) -> str:
    carried = _file("catalogue").query("paper == @paper").set_index("number")["file"]
    if number not in carried:
        raise unknown_name(f"table of {paper}", str(number), carried.index)
    return carried[number]


def table(paper: str, number: int, as_printed: bool = False) -> pandas.DataFrame:
    """Return a printed table in tidy form.

    Parameters
    ----------
    paper
        ``"ross2021"``, ``"srinivasan2021"``, ``"hamidieh2023"`` or ``"zhou2022"``.
    number
        The printed number of the table.
    as_printed
        Leave numbers as text, with all their digits: ``32.30``.

    Raises
    ------
    UnknownNameError
        If there is no such paper, or the paper's table is not carried.

    Examples
    --------
    >>> table("ross2021", 3).query("test == 'C6' and level == 'W'")["effect_size"].tolist()
    [0.57, 1.04, 0.55, 1.61]
    """
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    frame = _file(_stem(paper, number), as_printed)
    if "table" in frame:
        frame = frame[frame["table"].astype(int) == number]
    return frame.reset_index(drop=True).copy()


def tables() -> pandas.DataFrame:
    """Return the overview of the tables that are carried: paper, number, contents, file.

    Examples
    --------
    >>> tables().groupby("paper", sort=False).size().to_dict()
    {'ross2021': 6, 'srinivasan2021': 3, 'hamidieh2023': 18, 'zhou2022': 4}
    """
    rows = _file("catalogue").astype({"number": int})
    keys = zip(rows["paper"], rows["number"], strict=True)
    names = ([column["name"] for column in SCHEMAS[stem]["columns"]] for stem in rows["file"])
    rows = rows.assign(rows=[len(table(*key)) for key in keys], columns=list(map(", ".join, names)))
    return rows.assign(file=rows["file"] + ".csv")[
        ["paper", "number", "holds", "rows", "file", "columns"]
    ]


def casc_tables() -> pandas.DataFrame:
    """Return Tables 3 to 18 of Hamidieh et al. (2023) one below the other.

    Examples
    --------
    >>> len(casc_tables())
    709
    """
    every = [table("hamidieh2023", number) for number in range(3, 19)]
    return pandas.concat(every, ignore_index=True)


def released_counts() -> pandas.DataFrame:
    """Return how many rows of the released VLStereoSet file have each label, by category."""
    return _file("zhou2022_released_counts").copy()


def released_sizes() -> dict[str, int]:
    """Return VLStereoSet's images by category: twice the rarer label's rows of the released file.

    Examples
    --------
    >>> released_sizes()
    {'gender': 206, 'profession': 322, 'race': 486, 'religion': 14}
    """
    rows = released_counts().set_index("category")
    return {name: 2 * int(n) for name, n in rows.min(axis=1).items()}


def released_differences() -> pandas.DataFrame:
    """Return where the code of Ross, Katz and Barbu (2021) differs from their paper.

    Returns
    -------
    pandas.DataFrame
        *model* (a name of study 1, or ``all``), *subject*, *paper*, *code*, *where* (commit, file
        and lines of candacelax/bias-in-vision-and-language), and what study 1 does as
        *released_variant* and *paper_variant*.

    Examples
    --------
    >>> table = released_differences().set_index(["model", "subject"])
    >>> table.loc[("vilbert", "word and sentence level"), "code"]
    'text[0] joined with vision[0]'
    """
    return _file("ross2021_released_code").copy()


def stated(paper: str | None = None) -> pandas.DataFrame:
    """Return what a paper, or all, states without a number: on which side of a mark scores lie.

    Returns
    -------
    pandas.DataFrame
        *id*; *claims*, the numbers of those it belongs to; *place* and *quotation*. Which scores:
        *model*, *test*, *level*, *statistic* (in bars, its absolute value), *group*, *bias_type*,
        *experiment*, *masking*, *domain* and *variant*, columns of a study's tidy scores, empty
        where any will do, alternatives divided by ``|``; at least so many *rows*. They lie above
        (*sign* ``+``) or below (``-``) a *mark*, or the same scores with other entries, *than*
        (``test=suit|wine``; ``*`` is every other one). All of them, or more than a *share*.
        *exact*, of captions alone: nothing of it is drawn, so that a number needs no interval.
        *note*, what is read into the sentence. Words of size, as *much* or *strongly*, have no
        mark unless a note gives one.

    Raises
    ------
    UnknownNameError
        If there is no such paper.

    Examples
    --------
    >>> found = stated("srinivasan2021").set_index("id")
    >>> found.loc["srinivasan2021/stated/S_V/beer/B", ["claims", "sign"]].tolist()
    ['2 5 8 22', '-']
    """
    if paper is not None and paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    rows = _file("stated")
    return rows[rows["paper"].isin(PAPERS if paper is None else [paper])].reset_index(drop=True)


def data_checksum() -> str:
    """Return 12 hexadecimal digits that change whenever a data file of this package changes."""
    return source_hash(DATA)
