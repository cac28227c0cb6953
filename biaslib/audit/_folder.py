"""Pictures and labels of one's own: a folder with ``labels.csv``, checked before a model is asked.

``labels.csv`` has a row a picture: *file*, its path below the folder; *person*, who is in it
(several pictures of one person are one unit); any columns with groups, such as *gender*, *race* and
*age*; and, for the check of grounding, *caption*, what the picture shows. These three names may be
written in capitals. Labels that nobody can tell apart are one group
(:func:`biaslib.runtime.cleaned`); those that look alike, numbers included, are two, and noted, as
are those that may stand for a missing one.
"""

import functools
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas

from biaslib import runtime
from biaslib.datasets import DataError
from biaslib.pictures.images import Pictures, check_images, pictures
from biaslib.studies import study3_clip_audit as clip_audit

__all__ = ["LABELS", "OwnFolder", "read_folder"]

LABELS = "labels.csv"
NO_GROUPS = ("file", "person", "caption")
FEWEST = 5
"""People that every group needs: of fewer an interval says nothing."""

FOR_INTERSECTION = 10
"""People that every intersection of two columns needs, or it is left out and named."""

ENDINGS = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib",
    ".tif", ".tiff", ".avif", ".jp2", ".j2k", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm", ".heic",
)  # fmt: skip
"""What pictures' names end in: of one without a row in the table nothing else tells."""


@dataclass(frozen=True)
class OwnFolder:
    """Pictures of people with their groups.

    Attributes
    ----------
    name
        Of the folder.
    people
        One row a picture, as in ``labels.csv``.
    groups
        The columns that name groups.
    pictures
        In the same order.
    notes
        What a reader has to know of the data.
    """

    name: str
    people: pandas.DataFrame
    groups: tuple[str, ...]
    pictures: Pictures
    notes: tuple[str, ...] = ()

    def counts(self) -> pandas.DataFrame:
        """Count pictures and people: *column*, *group*, *pictures*, *people*; intersections too."""
        once = self.people.drop_duplicates("person")
        rows, tables = [], [table.to_dict("list") for table in (self.people, once)]
        for name, facet in self._all_facets().items():
            pictures, people = (
                Counter(zip(*(table[column] for column in facet), strict=True)) for table in tables
            )
            rows += [(name, " x ".join(each), n, people[each]) for each, n in pictures.items()]
        return pandas.DataFrame(rows, columns=["column", "group", "pictures", "people"])

    def _all_facets(self) -> dict[str, list[str]]:
        """Return the columns, and the intersections of the first one with the others."""
        crossed = {f"{self.groups[0]} x {name}": [self.groups[0], name] for name in self.groups[1:]}
        return {name: [name] for name in self.groups} | crossed

    def facets(self) -> dict[str, str | list[str]]:
        """Return the columns, and their intersections whose groups are large enough."""
        smallest = self.counts().groupby("column")["people"].min()
        return {
            name: name if name in self.groups else facet
            for name, facet in self._all_facets().items()
            if name in self.groups or smallest[name] >= FOR_INTERSECTION
        }

    def inputs(self, innocent: pandas.DataFrame, lower_case: bool) -> clip_audit.Inputs:
        """Return the pictures as study 3 reads them."""
        labels = {name: tuple(dict.fromkeys(self.people[name])) for name in self.groups}
        first = labels[self.groups[0]]
        return clip_audit.Inputs(
            profile="own",
            dataset=self.name,
            model={},
            people=self.people,
            portraits=self.pictures,
            words=clip_audit.words(),
            facets=self.facets(),
            labels=labels,
            gender=(first[0], first[1]),
            k=max(1, len(self.people) // 10),
            innocent=innocent,
            captions=functools.partial(_no_captions, self.name),
            lower_case=lower_case,
            units=pandas.factorize(self.people["person"])[0],
            unit_name="people",
        )

    @property
    def captions(self) -> tuple[Pictures, list[str], str] | None:
        """Pictures, their captions and the folder's name; None without a column *caption*."""
        if "caption" not in self.people:
            return None
        return self.pictures, self.people["caption"].tolist(), self.name


def _no_captions(name: str, folder: Path) -> Any:
    raise DataError(f"{name} is a folder of pictures, and has no corpus of captions")


def read_folder(folder: str | Path) -> OwnFolder:
    """Read and check a folder of pictures with ``labels.csv``.

    Parameters
    ----------
    folder
        With ``labels.csv``: a column *file*, one or more columns with groups, and if you like
        *person* and *caption*. Without *person* every picture is taken for another person.

    Raises
    ------
    DataError
        If there is no folder, or no ``labels.csv`` in it; labels and files do not match, a label is
        empty or a word for a missing value such as ``nan``, a picture is damaged or there twice, a
        column has one group, or a group has fewer than :data:`FEWEST` people; the message counts
        and names them, and the error has file, row and word.
    """
    folder = Path(folder).expanduser()
    table = folder / LABELS
    if not table.is_file():
        _refuse(
            f"{folder} has no {LABELS}: give the folder that holds it, a row a picture, "
            "that is its path below the folder in the column file, and columns with groups",
            table,
        )
    people, wrong = runtime.read_table(table, DataError)
    if wrong:
        line, what = next(iter(wrong.items()))
        problem = f"line {line} of {table} is no row of the table: {what}"
        raise DataError(problem, path=table, row=line)
    people = _named(people, table)
    groups, notes = _groups(people, table), _notes(people)
    people = people.assign(file=_paths(people["file"], table))
    if "person" not in people:
        notes.append("no column person: each picture counts as a person")
        people = people.assign(person=people["file"])
    for column in groups:
        _require_sound_groups(people, column, table)
    people = people.reset_index(drop=True)
    shown = _readable([folder / name for name in people["file"]])
    own = OwnFolder(folder.resolve().name, people, groups, shown)
    kept = own.facets()
    notes += [
        f"the intersection {name} is left out: one of its groups has fewer than "
        f"{FOR_INTERSECTION} people"
        for name in own._all_facets()
        if name not in kept
    ]
    return replace(own, notes=tuple(notes))


def _notes(people: pandas.DataFrame) -> list[str]:
    """Return which labels look alike, and which may stand for a missing one."""
    labelled, found = people.drop(columns=["file", "caption"], errors="ignore"), []
    named = {"the first line": labelled.columns}
    named |= {f"the column {name}": labelled[name].unique() for name in labelled}
    for where, names in named.items():
        alike = [" and ".join(map(repr, each)) for each in runtime.look_alikes(names)]
        unsaid = [repr(name) for name in names if runtime.says_nothing(name)]
        found.append((where, "look alike", alike, "apart", "one, write them alike"))
        what = "may stand for a missing label"
        found.append((where, what, unsaid, "as groups", "missing, leave these pictures out"))
    return [
        f"{where} has names that {what} and are counted {how}: {runtime.first_few(names)}. "
        f"If they are {advice}"
        for where, what, names, how, advice in found
        if names
    ]


def _refuse(
    problem: str, table: Path, cells: pandas.Series | None = None, word: Any = None
) -> None:
    """Raise an error that knows the table, and the line and word of the first of some cells."""
    if cells is None:
        raise DataError(problem, path=table, word=word)
    raise DataError(problem, path=table, row=int(cells.index[0]), word=cells.iloc[0])


def _named(people: pandas.DataFrame, table: Path) -> pandas.DataFrame:
    """Return the table with clean cells and names of columns, of which each needs one.

    Empty columns without a name, of commas at the end, go. Names of files stay as they are.
    """
    names = [runtime.cleaned(name) for name in people]
    names = [name.lower() if name.lower() in NO_GROUPS else name for name in names]
    people = people.set_axis(names, axis=1).map(str.strip)
    people = people.loc[:, (people.columns != "") | (people != "").any().to_numpy()]
    if "" in people:
        _refuse(f"a column of {LABELS} has no name in the first line: give it one", table)
    if len(twice := people.columns[people.columns.duplicated()]):
        problem = f"{LABELS} has the column {twice[0]!r} twice: rename or remove one of them"
        _refuse(problem, table, word=twice[0])
    clean = {name: people[name].map(runtime.cleaned) for name in people if name != "file"}
    return people.assign(**clean)


def _groups(people: pandas.DataFrame, table: Path) -> tuple[str, ...]:
    """Return the columns with groups; refuse a table without any, and empty cells."""
    if "file" not in people:
        _refuse(
            f"{table} has no column file, with each picture's path: its first line is "
            f"{','.join(map(str, people.columns))!r}, and should be like 'file,person,gender', "
            "with commas",
            table,
            word="file",
        )
    groups = tuple(name for name in people if name not in NO_GROUPS)
    if not groups:
        _refuse(f"{table} has no column with groups: add one, such as gender, race or age", table)
    for name in people:
        empty = people[name][people[name].isin(runtime.MISSING)]
        if len(empty):
            word = f", such as {empty.iloc[0]!r}" if empty.iloc[0] else ""
            _refuse(
                f"the column {name} of {LABELS} is empty{word} in {_some(empty.index, 'line')}: "
                "fill it in, with another word if it is a group, or leave these pictures out",
                table,
                empty,
            )
    return groups


def _paths(files: pandas.Series, table: Path) -> pandas.Series:
    """Return each row's path below the folder, as it is there, however the row writes it.

    Refuse rows whose picture is not one file below the folder, and pictures without a row.
    """
    folder, alike = table.parent, {}
    below = [path.relative_to(folder).as_posix() for path in runtime.files_below(folder)]
    for name in below:
        alike.setdefault(_spelt(name, folder), []).append(name)
    written = {name: [name] for name in below}
    meant = [written.get(name) or alike.get(_spelt(name, folder), []) for name in files]
    paths = pandas.Series([names[0] if len(names) == 1 else None for names in meant], files.index)
    checks = {
        f"is no file below {folder}: correct the column file, or leave the row out": paths.isna(),
        "is there twice: keep one row a picture": paths.duplicated(),
    }
    for problem, wrong in checks.items():
        if wrong.any():
            cells = files[wrong]
            _refuse(f"{_some(cells, 'file')} of {LABELS} {problem}", table, cells)
    left = [
        name
        for name in sorted(set(below) - set(paths))
        if Path(name).suffix.lower() in ENDINGS and not runtime.is_hidden(Path(name))
    ]
    if left:
        problem = f"{_some(left, 'picture')} without a row in {LABELS}: add rows, or move them away"
        _refuse(problem, table, word=left[0])
    return paths


def _spelt(name: str, folder: Path) -> str:
    """Return a path relative to a folder, one for all the ways in which people write it."""
    slashes = unquote(name).replace("\\", "/")
    path = os.path.relpath(folder / slashes, folder)
    if path.startswith("../"):
        path = os.path.relpath((folder / slashes).resolve(), folder.resolve())
    return runtime.cleaned(path).casefold()


def _require_sound_groups(people: pandas.DataFrame, column: str, table: Path) -> None:
    """Refuse a person in two groups of a column, a column of one group, and small groups."""
    once = people[["person", column]].drop_duplicates()
    several = once["person"][once["person"].duplicated()].unique()
    if len(several):
        labels = once[column][once["person"] == several[0]]
        _refuse(
            f"{_some(several, 'person')} of {LABELS} has more than one label in the column "
            f"{column}, {runtime.first_few([*map(repr, labels)])}: a person counts once. "
            "Correct the labels, or keep this person's pictures of one",
            table,
            word=several[0],
        )
    sizes = once[column].value_counts(sort=False)
    if len(sizes) < 2:
        problem = f"the column {column} has one group only, {sizes.index[0]!r}: add another one"
        _refuse(f"{problem}, or remove the column", table, word=column)
    small = sizes[sizes < FEWEST]
    if len(small):
        named = runtime.first_few([f"{name!r} ({n})" for name, n in small.items()], 3)
        problem = f"the column {column} has groups of fewer than {FEWEST} people: {named}"
        advice = "add pictures, join groups, or leave these out"
        _refuse(f"{problem}: {advice}", table, word=small.index[0])


def _readable(paths: Sequence[Path]) -> Pictures:
    """Return pictures that open, each once."""
    problems = check_images(paths)
    if len(problems):
        first = "; ".join(problems["problem"].head(3))
        problem = f"{len(problems)} of {len(paths)} pictures cannot be used: {first}"
        _refuse(f"{problem}. Replace them, or remove their rows", problems["path"].iloc[0])
    shown = pictures(paths)
    ids = pandas.Series(shown.ids, index=paths)
    if len(twice := ids.index[ids.duplicated(keep=False)]):
        names = _some([path.name for path in twice], "file")
        _refuse(f"{names} hold the same picture as another one: keep one of each", twice[0])
    return shown


def _some(names: Sequence[Any], what: str, most: int = 3) -> str:
    """Return how many there are, and the first of them."""
    first = runtime.first_few([repr(str(name)) for name in names], most)
    plural = "" if len(names) == 1 else "s"
    return f"{len(names)} {what}{plural}" + (f" ({first})" if first else "")
