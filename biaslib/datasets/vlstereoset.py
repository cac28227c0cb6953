"""VLStereoSet (Zhou, Lai and Jiang 2022): captions to choose from, and links to images.

The authors released one table: captions of StereoSet, a label and the address of an image a row.
It is the collection before they balanced it, it comes without images, without the selection that
they scored and without their neutral captions. So three things here are ours, and said to be:
which of the two labels is the stereotype (:data:`STEREOTYPE_LABEL`), the selection
(:func:`balanced`), and the neutral captions (:func:`neutralised`).
"""

import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas

from biaslib.checkpoints.downloads import retrieve
from biaslib.datasets._pronouns import GENDERED, with_they
from biaslib.datasets.links import HERE, NOT_ASKED, address, counted, download_images, outcomes
from biaslib.datasets.problems import DataError, problems, require_sound, require_table
from biaslib.metrics.inputs import one_of, whole_number
from biaslib.runtime import cleaned, file_sha256, read_table

__all__ = [
    "FILE",
    "IMAGES",
    "LABELS",
    "SHA256",
    "STEREOTYPE_LABEL",
    "URL",
    "VLStereoSet",
    "balanced",
    "fetch_images",
    "is_fetched",
    "neutral_terms",
    "neutralised",
    "read",
    "released",
    "with_images",
]

FILE = "VLStereoSet.csv"

REPOSITORY = "https://github.com/K-Square-00/VLStereo"
"""The authors' page."""

IMAGES = "images"
"""The folder of the images, beside the table."""

URL = (
    "https://raw.githubusercontent.com/K-Square-00/VLStereo/"
    "d9cc4b0d2c22174c73aa3ed406db41bdabe972ae/data/VLStereoSet.csv"
)
"""The authors' file, at the commit that holds it.

:meta hide-value:
"""

SHA256 = "754387eb9dc9f183b60a58f1f9e7d66b338d4de5b89fd4c54608acb545b26d5d"
"""Checksum of the file.

:meta hide-value:
"""

STEREOTYPE_LABEL = 0
"""Which label we take for the stereotype: an assumption, since the release does not say.

It is the order of the captions' columns. Of the addresses that contain a word of the one caption
or of the other, those labelled 1 nearly all contain the anti-stereotypical one; those labelled 0
decide nothing.
"""

LABELS = ("stereotype", "anti-stereotype")

ALL_HERE = "–"
"""Stands in a table of what is left where no link is dead."""

COLUMNS = {
    "bias_type": "category",
    "target": "target",
    "context": "context",
    "stereotype": "stereotype",
    "anti-stereotype": "anti-stereotype",
    "unrelated": "irrelevant",
    "label": "label",
    "Imaeg URL": "url",
}
"""The file's columns, its misspelling included, and what they are here."""

CAPTIONS = ["stereotype", "anti-stereotype", "irrelevant"]

ALONE = (
    "across acts am and are as at be because believe but can could did do does for from had has "
    "have he i if in is live looked loved may must of on or seemed served she should showed tend "
    "than that then they to told usually was were when which who whose will with would you"
)
"""Words before which the name of a group stands for people; before others it is an adjective."""

REPAIRS = (
    (r"saudi people\b", "the country"),  # Saudi Arabia, where the target is Arab
    (r"(country|nation) of the country\b", r"\1"),
    (r"(?<!in )the country (?=people|citizens|churches|economies|woman)", ""),
    (r"(many) person\b", r"\1 people"),
    (r"person(?:'s)?(?= (?:are|tend|usually) )", "people"),
    (r"(are|is|was|you're) person\b", r"\1 from the country"),
    (r"(^|man, )person\b", r"\1a person"),
    (r"(?<!type )(?<!types )(from|in|of) person\b", r"\1 the country"),
)
"""What a term leaves that was an adjective, a place or a plural without its letter."""


@dataclass(frozen=True)
class VLStereoSet:
    """The released table as it was read.

    Attributes
    ----------
    table
        One row an instance: *row* (its line in the file), *category*, *target*, *context*, the
        captions *stereotype*, *anti-stereotype* and *irrelevant*, *label* (``"stereotype"`` or
        ``"anti-stereotype"``), *url*, and *triplet*, a number for each set of captions.
    sha256
        Checksum of the file.
    """

    table: pandas.DataFrame
    sha256: str


def released(folder: str | Path) -> VLStereoSet:
    """Read the table of a folder, downloaded from the authors' repository if it is not there.

    Raises
    ------
    InputError
        As :func:`read`; or if the file cannot be had, or is not the one that is pinned.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        retrieve([URL], path, SHA256, REPOSITORY)
    return read(path)


def fetch_images(
    folder: str | Path, again: bool = False, category: str | None = None
) -> pandas.DataFrame:
    """Download the images of the released links to ``images/`` of a folder, and the table to it.

    What became of each link is written to ``images/downloads.csv``, which names the file of every
    address, dead ones included. Called again, it goes on where it stopped.

    Parameters
    ----------
    folder
        That of :func:`biaslib.runtime.data_folder`; made if it is not there.
    again
        Ask dead links again.
    category
        The one whose links are asked, ``gender`` for example; None asks all.

    Returns
    -------
    pandas.DataFrame
        As :func:`biaslib.datasets.download_images`.

    Raises
    ------
    InputError
        As :func:`released` and :func:`biaslib.datasets.download_images`; or if no row is of the
        category.
    """
    wanted = links(_of_category(released(folder).table, category))
    return download_images(wanted, Path(folder) / IMAGES, again=again)


def is_fetched(folder: str | Path, category: str | None = None) -> bool:
    """Tell whether the table is in a folder, and each link of it, or of a category, was asked."""
    if not (Path(folder) / FILE).is_file():
        return False
    wanted = links(_of_category(released(folder).table, category))
    return NOT_ASKED not in set(outcomes(wanted, Path(folder) / IMAGES)["outcome"])


def _of_category(table: pandas.DataFrame, category: str | None) -> pandas.DataFrame:
    if category is None:
        return table
    one_of(category, "category", sorted(table["category"].unique()))
    return table[table["category"] == category]


def read(path: str | Path) -> VLStereoSet:
    """Read the released table, and say what is wrong with it.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    VLStereoSet

    Raises
    ------
    DataError
        If the file cannot be read or a column is missing, or a row is not sound: a line that is no
        row, as a stray quotation mark makes it, two equal captions, an empty cell, or a label that
        is neither 0 nor 1. The message counts them and names the first of each kind by its line.
    FileNotFoundError
        If there is no file; the message says where to get it.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there. vlstereoset.released(folder) downloads it from the authors' "
            f"repository; or take it from {URL} and put it there"
        )
    raw, broken = read_table(path, DataError)
    raw = raw.rename(columns=cleaned)
    missing = [name for name in COLUMNS if name not in raw]
    if missing:
        raise DataError(
            f"{path.name} lacks the column {missing[0]!r}; it has {', '.join(raw.columns)}",
            path=path,
            word=missing[0],
        )
    raw = raw[list(COLUMNS)].rename(columns=COLUMNS)
    table = raw.map(cleaned).assign(url=raw["url"].map(address), row=raw.index)
    rows = [(line, "line is no row", what) for line, what in broken.items()]
    rows += _wrong_rows(table)
    wrong = [("error", kind, f"{path.name}, line {line}", what) for line, kind, what in rows]
    require_sound(problems(wrong), path.name, advice="Mend those lines, or fetch the file again")
    if table.empty:
        raise DataError(f"{path.name} has no row below its header", path=path)
    table = table.reset_index(drop=True)
    anti = table["label"].astype(int) != STEREOTYPE_LABEL
    table["label"] = np.where(anti, LABELS[1], LABELS[0])
    table["triplet"] = table.groupby(CAPTIONS, sort=False).ngroup()
    return VLStereoSet(table, file_sha256(path))


def _wrong_rows(table: pandas.DataFrame) -> list[tuple]:
    """Return line, kind and text of what is wrong, the first of each row."""
    empty = table[list(COLUMNS.values())].apply(lambda column: column.str.strip() == "")
    plain = table[CAPTIONS].replace(r"[^\w]+", "", regex=True).apply(lambda text: text.str.lower())
    wrong = [
        ("empty cell", empty.any(axis=1), empty.idxmax(axis=1)),
        ("label is neither 0 nor 1", ~table["label"].isin(["0", "1"]), table["label"]),
        ("two equal captions", plain.nunique(axis=1) < 3, table["stereotype"]),
    ]
    rows = {}
    for kind, which, what in wrong:
        for line in table.loc[which, "row"]:
            rows.setdefault(line, (line, kind, what[line]))
    return list(rows.values())


def balanced(table: pandas.DataFrame, seed: int) -> pandas.DataFrame:
    """Draw equally many images of both labels in every category.

    As the paper did (Section 3.2), of every category as many as its rarer label has. Which rows
    the authors drew is not known, so that a selection of ours has the same make-up and is not the
    same. A category that has one label only is left out.

    Parameters
    ----------
    table
        With *category* and *label*.
    seed
        Of the draw.

    Returns
    -------
    pandas.DataFrame
        Some of the rows, in their order and with their index.

    Raises
    ------
    DataError
        If nothing is left.

    Examples
    --------
    >>> labels = [*LABELS, *LABELS, "stereotype"]
    >>> table = pandas.DataFrame({"category": "race", "label": labels})
    >>> balanced(table, seed=0)["label"].value_counts().tolist()
    [2, 2]
    """
    table = require_table(table, "table", ["category", "label"])
    rng, chosen = np.random.default_rng(whole_number(seed, "seed", 0)), []
    for category in sorted(table["category"].unique()):
        of_category = table["category"] == category
        by_label = [np.flatnonzero(of_category & (table["label"] == name)) for name in LABELS]
        size = min(map(len, by_label))
        for places in by_label:
            chosen += places[rng.choice(len(places), size=size, replace=False)].tolist()
    if not chosen:
        raise DataError("no category has images of both labels: there is nothing to balance")
    return table.iloc[sorted(chosen)]


def links(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the addresses as :func:`biaslib.datasets.download_images` takes them.

    Returns
    -------
    pandas.DataFrame
        One row an address: *test* (the category), *group* (the label), *file* (named by a hash of
        the address) and *url*. An address of several rows is listed once, under the first.

    Examples
    --------
    >>> row = {"category": "race", "label": "stereotype", "url": "https://example.org/a.jpg"}
    >>> links(pandas.DataFrame([row, row]))["file"].tolist()
    ['700caca5ae8f856f.img']
    """
    once = table.drop_duplicates("url").rename(columns={"category": "test", "label": "group"})
    files = [f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.img" for url in once["url"]]
    return once[["test", "group", "url"]].assign(file=files).reset_index(drop=True)


def with_images(
    table: pandas.DataFrame, folder: str | Path
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return the rows whose image is here, and what is left of every category.

    Parameters
    ----------
    table
        Of :func:`read`.
    folder
        The one that holds the table and ``images/``.

    Returns
    -------
    rows : pandas.DataFrame
        Those whose image is here, with its *path*.
    coverage : pandas.DataFrame
        One row a category and one for all: rows released and kept by label, how many images a
        balanced selection has (twice the rarer label), and *what came instead* of the images of the
        other links.

    Raises
    ------
    DataError
        If no link leads to an image; the message counts what came instead, and says how to get
        them.
    """
    place = Path(folder) / IMAGES
    table = require_table(table, "table", ["category", "label", "url"])
    asked = outcomes(links(table), place)
    files = asked[asked["outcome"] == HERE].set_index("url")["file"]
    if files.empty:
        reasons = counted(asked["outcome"]) or "there are no links"
        raise DataError(
            f"none of {len(asked)} links leads to an image: {reasons}. biaslib.datasets.vlstereoset"
            f".fetch_images({str(place.parent)!r}) downloads them, with again=True dead ones, too; "
            f"an image of yours takes the name that {place / 'downloads.csv'} gives its address",
            path=place,
        )
    kept = table[table["url"].isin(files.index)]
    kept = kept.assign(path=[str(place / files[url]) for url in kept["url"]])
    return kept, _coverage(table, kept, asked[asked["outcome"] != HERE])


def _coverage(table: pandas.DataFrame, kept: pandas.DataFrame, lost: pandas.DataFrame):
    categories = sorted(table["category"].unique())
    counts = pandas.DataFrame(index=pandas.Index(categories, name="category"))
    for when, rows in (("released", table), ("here", kept)):
        sizes = pandas.crosstab(rows["category"], rows["label"])
        sizes = sizes.reindex(index=categories, columns=LABELS, fill_value=0)
        counts[[f"{label}, {when}" for label in LABELS]] = sizes
    for name, when in (("balanced as released", "released"), ("balanced now", "here")):
        counts[name] = 2 * counts[[f"{label}, {when}" for label in LABELS]].min(axis=1)
    counts.loc["all"] = counts.sum()
    reasons = {name: counted(lost.loc[lost["test"] == name, "outcome"]) for name in categories}
    reasons["all"] = counted(lost["outcome"])
    counts["what came instead"] = [reasons[name] or ALL_HERE for name in counts.index]
    return counts.reset_index()


@functools.cache
def _by_target() -> dict[str, dict]:
    return neutral_terms().set_index("target").to_dict("index")


def neutral_terms() -> pandas.DataFrame:
    """Return the mapping of target terms to neutral ones: ours, checked by hand.

    Returns
    -------
    pandas.DataFrame
        *category*, *target* as the release spells it, *neutral*, *plural*, and *use*: ``noun`` is
        replaced; ``group`` is replaced where it stands for people and left out where it is an
        adjective; ``place`` is replaced, and left out where letters have made it an adjective.

    Examples
    --------
    >>> neutral_terms().set_index("target").loc["sister", "neutral"]
    'sibling'
    """
    return pandas.read_csv(Path(__file__).parent / "data" / "vlstereoset_terms.csv")


def neutral_caption(caption: str, target: str) -> str | None:
    """Return a caption without its target term; None if it does not name it.

    The rule: every occurrence of the term, small or capital, is replaced as
    :func:`neutral_terms` says, by the plural where letters follow it or it is one. The name of a
    group before a word that is not in a short list of verbs and conjunctions is an adjective and
    is left out. "a" and "an" follow the new word, and a sentence begins with a capital. Of a term
    of the category gender, "she" and "he" become "they" in all their forms, with a verb that
    agrees; nouns such as "girl" stay. In the other categories pronouns do not say the group, and
    stay, and what the term leaves without sense is mended.

    Raises
    ------
    KeyError
        If the term has no neutral one.

    Examples
    --------
    >>> neutral_caption("My sister says that she is tall.", "sister")
    'My sibling says that they are tall.'
    >>> neutral_caption("The male cook was tall; the males were not.", "male")
    'The cook was tall; the people were not.'
    """
    known = _by_target()
    if target not in known:
        raise KeyError(
            f"no neutral term for {target!r}; add it to biaslib/datasets/data/vlstereoset_terms.csv"
        )
    pattern = re.compile(rf"(\ban?\s+)?\b{re.escape(target)}(\w*)('s)?\s*", re.IGNORECASE)
    changed, n = pattern.subn(functools.partial(_neutral, term=known[target]), caption)
    changed = with_they(changed) if known[target]["category"] == "gender" else _repaired(changed)
    return re.sub(r"^\s*(\w)", lambda match: match[1].upper(), changed) if n else None


def _repaired(text: str) -> str:
    for wrong, right in REPAIRS:
        text = re.sub(rf"\b{wrong}", right, text, flags=re.IGNORECASE)
    return text


def _neutral(match: re.Match, term: dict) -> str:
    article, letters, owner = match[1] or "", match[2], match[3] or ""
    following = match.string[match.end() :]
    word = "" if _is_adjective(term["use"], letters, following) else term["neutral"]
    if word and letters:
        word = term["plural"]
    gap = " " if match[0].endswith(" ") else ""
    text = f"{word}{owner}{gap}" if word else ""
    if article and term["use"] == "place" and word:
        return text
    return _article(article, text or following) + text


def _is_adjective(use: str, letters: str, following: str) -> bool:
    if use == "place":
        return letters not in ("", "s")
    next_word = re.match(r"[A-Za-z]*", following)[0].lower()
    return use == "group" and not letters and next_word not in ("", *ALONE.split())


def _article(article: str, following: str) -> str:
    if not article:
        return ""
    fitting = "an " if following[:1].lower() in "aeiou" else "a "
    return fitting.capitalize() if article[0].isupper() else fitting


def neutralised(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows with *neutral stereotype* and *neutral anti-stereotype*.

    Returns
    -------
    pandas.DataFrame
        The rows whose captions name their target, with *gendered words left*: whether, in the
        category gender, a neutral caption still has a pronoun, a noun or a first name that says a
        gender, whoever it speaks of. Adjectives such as "feminine" are attributes, and no such
        word; in the other categories the group is not a gender, and this is False.

    Raises
    ------
    KeyError
        If a target has no neutral term.
    """
    table = require_table(table, "table", ["category", "target", *LABELS])
    neutral = {
        f"neutral {name}": list(map(neutral_caption, table[name], table["target"]))
        for name in LABELS
    }
    table = table.assign(**neutral).dropna(subset=list(neutral))
    texts = table["neutral stereotype"] + " " + table["neutral anti-stereotype"]
    left = texts.str.contains(GENDERED) & (table["category"] == "gender")
    return table.assign(**{"gendered words left": left})
