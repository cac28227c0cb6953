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

from biaslib.datasets._arguments import require_path, require_table, require_text
from biaslib.datasets._problems import DataError, problems, require_sound
from biaslib.datasets._pronouns import GENDERED, with_they
from biaslib.datasets.links import HERE, address, counted, download_images, outcomes
from biaslib.metrics.inputs import whole_number
from biaslib.models.downloads import retrieve
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
    "coverage",
    "fetch",
    "fetch_images",
    "found_links",
    "links",
    "neutral_caption",
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

COLUMNS = {
    "bias_type": "category",
    "target": "target",
    "context": "context",
    "stereotype": "stereotype",
    "anti-stereotype": "anti-stereotype",
    "unrelated": "irrelevant",
    "label": "label",
    "Imaeg URL": "url",
    "": "remark",
}
"""The file's columns, its misspelling and its nameless one included, and what they are here."""

CAPTIONS = ["stereotype", "anti-stereotype", "irrelevant"]
NEEDED = [name for name in COLUMNS.values() if name != "remark"]

ALONE = (
    "across acts am and are as at be because believe but can could did do does for from had has "
    "have he i if in is live looked loved may must of on or seemed served she should showed tend "
    "than that then they to told usually was were when which who whose will with would you"
)
"""Words before which the name of a group stands for people; before others it is an adjective."""


@dataclass(frozen=True)
class VLStereoSet:
    """The released table as it was read.

    Attributes
    ----------
    table
        One row an instance: *row* (its line in the file), *category*, *target*, *context*, the
        captions *stereotype*, *anti-stereotype* and *irrelevant*, *label* (``"stereotype"`` or
        ``"anti-stereotype"``), *url*, and *triplet*, a number for each set of captions.
    problems
        What was found: severity, kind, where, what.
    sha256
        Checksum of the file.
    """

    table: pandas.DataFrame
    problems: pandas.DataFrame
    sha256: str


def fetch(folder: str | Path, url: str = URL, sha256: str = SHA256) -> Path:
    """Return the authors' file in a folder, downloaded from their repository if it is not there.

    Parameters
    ----------
    folder
        Where it lies, or goes.
    url, sha256
        Its address and checksum; an empty checksum takes what comes.

    Raises
    ------
    InputError
        If it cannot be had, or is not the file that was pinned.
    """
    path = require_path(folder, "folder") / FILE
    if not path.is_file():
        retrieve([url], path, sha256, REPOSITORY)
    if sha256 and (found := file_sha256(path)) != sha256:
        raise DataError(
            f"{path} has SHA-256 {found} and the released table has {sha256}: it was changed, or "
            "is another version. Remove it, and the same call downloads the pinned one; or read "
            "another file with vlstereoset.read(path)",
            path=path,
        )
    return path


def released(folder: str | Path) -> VLStereoSet:
    """Read the table of a folder, downloaded from the authors' repository if it is not there.

    Raises
    ------
    InputError
        As :func:`read` and :func:`fetch`.
    """
    path = require_path(folder, "folder") / FILE
    return read(path if path.is_file() else fetch(folder))


def fetch_images(folder: str | Path, again: bool = False) -> pandas.DataFrame:
    """Download the images of the released links to ``images/`` of a folder, and the table to it.

    What became of each link is written to ``images/downloads.csv``, which names the file of every
    address, dead ones included. Called again, it goes on where it stopped.

    Parameters
    ----------
    folder
        That of :func:`biaslib.runtime.data_folder`; made if it is not there.
    again
        Ask dead links again.

    Returns
    -------
    pandas.DataFrame
        As :func:`biaslib.datasets.download_images`.

    Raises
    ------
    InputError
        As :func:`released`.
    """
    table = released(folder).table
    return download_images(links(table), Path(folder) / IMAGES, again=again)


def found_links(table: pandas.DataFrame, folder: str | Path) -> pandas.DataFrame:
    """Return the links of a table with what became of them: see :func:`fetch_images`.

    Parameters
    ----------
    table
        Of :func:`read`.
    folder
        The one that holds the table and ``images/``.

    Returns
    -------
    pandas.DataFrame
        :func:`links` with *outcome*, as :func:`biaslib.datasets.outcomes` finds it.
    """
    return outcomes(links(table), require_path(folder, "folder") / IMAGES)


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
        row, as a stray quotation mark makes it, no blank in the context, two equal captions, an
        empty cell, or a label that is neither 0 nor 1. The message counts them and names the first
        of each kind by its line in the file.
    FileNotFoundError
        If there is no file; the message says where to get it.
    """
    path = require_path(path, "path")
    raw, broken = _raw(path)
    found = [("error", "line is no row", f"{path.name}, line {at}", broken[at]) for at in broken]
    found = problems(found + _errors(raw, path.name) + _notes(raw, path.name))
    require_sound(found, path.name, advice="Mend those lines, or fetch the file again")
    if raw.empty:
        raise DataError(f"{path.name} has no row below its header", path=path)
    table = raw.reset_index(drop=True)
    anti = table["label"].astype(int) != STEREOTYPE_LABEL
    table["label"] = np.where(anti, LABELS[1], LABELS[0])
    table["triplet"] = table.groupby(CAPTIONS, sort=False).ngroup()
    return VLStereoSet(table.drop(columns="remark"), found, file_sha256(path))


def _raw(path: Path) -> tuple[pandas.DataFrame, dict[int, str]]:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there. vlstereoset.fetch(folder) downloads it from the authors' "
            f"repository; or take it from {URL} and put it there"
        )
    table, broken = read_table(path, DataError)
    table = table.rename(columns=cleaned)
    missing = [name for name in COLUMNS if name and name not in table]
    if missing:
        raise DataError(
            f"{path.name} lacks the column {missing[0]!r}; it has {', '.join(table.columns)}",
            path=path,
            word=missing[0],
        )
    table = table.assign(**{"": table.get("", "")})[list(COLUMNS)].rename(columns=COLUMNS)
    urls = table["url"].map(address)
    return table.map(cleaned).assign(url=urls, row=table.index), broken


def _errors(table: pandas.DataFrame, name: str) -> list[tuple]:
    empty = table[NEEDED].apply(lambda column: column.str.strip() == "")
    plain = table[["context", *CAPTIONS]].apply(lambda column: column.map(_plain))
    equal = plain[CAPTIONS].nunique(axis=1) < len(CAPTIONS)
    has_blank = [all(_put_in(context, each) for each in row) for context, *row in plain.to_numpy()]
    wrong = [
        ("empty cell", empty.any(axis=1), empty.idxmax(axis=1)),
        ("label is neither 0 nor 1", ~table["label"].isin(["0", "1"]), table["label"]),
        ("two equal captions", equal, table["stereotype"]),
        ("no blank in the context", ~np.array(has_blank, dtype=bool), table["context"]),
    ]
    rows, seen = [], set()
    for kind, which, what in wrong:
        for row, text in zip(table.loc[which, "row"], what[which], strict=True):
            if row not in seen:
                rows.append(("error", kind, f"{name}, line {row}", text))
            seen.add(row)
    return rows


def _plain(text: str) -> str:
    """Return the letters and digits of a text, small: spaces and marks moved with the blank."""
    return re.sub(r"[^\w]+", "", text).lower()


def _put_in(context: str, caption: str) -> bool:
    """Tell whether a caption is the context with something put in."""
    letters = iter(caption)
    return len(caption) > len(context) and all(each in letters for each in context)


def _notes(table: pandas.DataFrame, name: str) -> list[tuple]:
    found = []
    shared = table.loc[table["url"] != "", "url"].value_counts()
    if (shared > 1).any():
        what = f"{(shared > 1).sum()} addresses stand in {shared[shared > 1].sum()} rows"
        found.append(("note", "address in several rows", name, what))
    for row in table[table["remark"].str.strip() != ""].itertuples():
        where = f"{name}, line {row.row}"
        found.append(("note", "text in the nameless column", where, row.remark))
    for category, rows in table.groupby("category", sort=False):
        if rows["label"].nunique() == 1:
            what = f"all {len(rows)} rows have the label {rows['label'].iloc[0]}"
            found.append(("note", "category with one label only", category, what))
    return found


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
    given = require_table(table, "table", ["category", "label"])
    table, chosen = given.reset_index(drop=True), []
    rng = np.random.default_rng(whole_number(seed, "seed", 0))
    for _, rows in table.groupby("category", sort=True):
        by_label = [rows.index[rows["label"] == label] for label in LABELS]
        size = min(len(each) for each in by_label)
        for each in by_label:
            drawn = rng.choice(len(each), size=size, replace=False)
            chosen += each[drawn].tolist()
    if not chosen:
        raise DataError("no category has images of both labels: there is nothing to balance")
    return given.iloc[sorted(chosen)]


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
    found = require_table(table, "table", ["category", "label", "url"]).drop_duplicates("url")
    found = found.rename(columns={"category": "test", "label": "group"})
    files = [_file_of(url) for url in found["url"]]
    return found[["test", "group", "url"]].assign(file=files).reset_index(drop=True)


def _file_of(url: str) -> str:
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.img"


def with_images(
    table: pandas.DataFrame, downloaded: pandas.DataFrame, folder: str | Path
) -> pandas.DataFrame:
    """Return the rows whose image is here, with its *path*.

    Parameters
    ----------
    table
        Of :func:`read`.
    downloaded
        What :func:`biaslib.datasets.download_images` returned for :func:`links`.
    folder
        Where the images are.

    Raises
    ------
    DataError
        If no link leads to an image; the message counts what came instead, and says how to get
        them.
    """
    place, table = require_path(folder, "folder"), require_table(table, "table", ["url"])
    downloaded = require_table(downloaded, "downloaded", ["outcome", "file"], ["url"])
    here = downloaded[downloaded["outcome"] == HERE].set_index("url")["file"]
    if here.empty:
        reasons = counted(downloaded["outcome"]) or "there are no links"
        raise DataError(
            f"none of {len(downloaded)} links leads to an image: {reasons}. To download them: from "
            f"biaslib.datasets import vlstereoset; vlstereoset.fetch_images({str(place.parent)!r}),"
            " with again=True to ask dead links once more. An image that you have yourself takes "
            f"the name that {place / 'downloads.csv'} then gives its address",
            path=place,
        )
    kept = table[table["url"].isin(here.index)]
    paths = [str(place / here[url]) for url in kept["url"]]
    return kept.assign(path=paths)


def coverage(
    table: pandas.DataFrame, kept: pandas.DataFrame, downloaded: pandas.DataFrame
) -> pandas.DataFrame:
    """Return what is left of every category, and what that does to the balance.

    Parameters
    ----------
    table
        All rows.
    kept
        Those whose image is here.
    downloaded
        Links with *test* and *outcome*: of :func:`found_links` or :func:`fetch_images`.

    Returns
    -------
    pandas.DataFrame
        One row a category and one for all: rows released and kept by label, how many images a
        balanced selection has of each (twice the rarer label), and *what came instead* of the
        images of the other links.

    Examples
    --------
    >>> table = pandas.DataFrame({"category": "race", "label": list(LABELS) * 3})
    >>> asked = pandas.DataFrame({"test": "race", "outcome": ["here"] * 3 + ["error 404"] * 3})
    >>> found = coverage(table, table.iloc[:3], asked)
    >>> found[["balanced now", "what came instead"]].to_numpy().tolist()
    [[2, 'error 404 (3)'], [2, 'error 404 (3)']]
    """
    table = require_table(table, "table", ["category", "label"])
    kept = require_table(kept, "kept", ["category", "label"])
    downloaded = require_table(downloaded, "downloaded", ["test", "outcome"])
    rows = []
    for category, released in table.groupby("category", sort=True):
        here = kept[kept["category"] == category]
        counts = [
            [int((part["label"] == name).sum()) for name in LABELS] for part in (released, here)
        ]
        rows.append([category, *counts[0], *counts[1], 2 * min(counts[0]), 2 * min(counts[1])])
    names = [f"{label}, {when}" for when in ("released", "here") for label in LABELS]
    names = ["category", *names, "balanced as released", "balanced now"]
    found = pandas.DataFrame(rows, columns=names)
    total = {"category": "all"} | found.drop(columns="category").sum().to_dict()
    found = pandas.concat([found, pandas.DataFrame([total])], ignore_index=True)
    lost = downloaded[downloaded["outcome"] != HERE]
    parts = [lost if each == "all" else lost[lost["test"] == each] for each in found["category"]]
    reasons = [counted(part["outcome"]) or "–" for part in parts]
    return found.assign(**{"what came instead": reasons})


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
    stay.

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
    caption, target = require_text(caption, "caption"), require_text(target, "target")
    known = _by_target()
    if target not in known:
        raise KeyError(
            f"no neutral term for {target!r}; add it to biaslib/datasets/data/vlstereoset_terms.csv"
        )
    pattern = re.compile(rf"(\ban?\s+)?\b{re.escape(target)}(\w*)('s)?\s*", re.IGNORECASE)
    changed, n = pattern.subn(functools.partial(_neutral, term=known[target]), caption)
    changed = with_they(changed) if known[target]["category"] == "gender" else changed
    return re.sub(r"^\s*(\w)", lambda found: found[1].upper(), changed) if n else None


def _neutral(found: re.Match, term: dict) -> str:
    article, letters, owner = found[1] or "", found[2], found[3] or ""
    following = found.string[found.end() :]
    word = "" if _is_adjective(term["use"], letters, following) else term["neutral"]
    if word and letters:
        word = term["plural"]
    gap = " " if found[0].endswith(" ") else ""
    text = f"{word}{owner}{gap}" if word else ""
    if article and term["use"] == "place" and word:
        return text
    return _article(article, text or following) + text


def _is_adjective(use: str, letters: str, following: str) -> bool:
    if use == "place":
        return letters not in ("", "s")
    next_word = re.match(r"[A-Za-z]+", following)
    return (
        use == "group"
        and not letters
        and bool(next_word)
        and next_word[0].lower() not in ALONE.split()
    )


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
    DataError
        If no caption names its target.
    """
    table = require_table(table, "table", ["category", "target", *LABELS])
    pairs = {
        name: [neutral_caption(*each) for each in zip(table[name], table["target"], strict=True)]
        for name in LABELS
    }
    found = table.assign(**{f"neutral {name}": texts for name, texts in pairs.items()})
    found = found.dropna(subset=[f"neutral {name}" for name in LABELS])
    if found.empty:
        raise DataError("no caption names its target: there is nothing to make neutral")
    texts = found["neutral stereotype"] + " " + found["neutral anti-stereotype"]
    left = texts.str.contains(GENDERED) & (found["category"] == "gender")
    return found.assign(**{"gendered words left": left})
