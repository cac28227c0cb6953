"""Pictures and labels of one's own: a folder with ``labels.csv``, checked before a model is asked.

``labels.csv`` has a row a picture: *file*, its path below the folder; *person*, who is in it
(several pictures of one person are one unit); any columns with groups, such as *gender*, *race* and
*age*; and, for the check of grounding, *caption*, what the picture shows. These three names may be
written in capitals. Labels that nobody can tell apart are one group
(:func:`biaslib.runtime.cleaned`), those that look alike are two, and noted.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from biaslib import runtime
from biaslib.datasets import DataError
from biaslib.datasets._image_files import is_hidden
from biaslib.models.images import Pictures, check_images, pictures
from biaslib.studies import study3_clip_audit as clip_audit

__all__ = ["LABELS", "OwnFolder", "read_folder"]

LABELS = "labels.csv"
NO_GROUPS = ("file", "person", "caption")
OF_FAIRFACE = {"file", "age", "gender", "race", "service_test"}
"""The columns of FairFace's own label files; the last says nothing of a person."""

FEWEST = 5
"""People that every group needs: of fewer an interval says nothing."""

FOR_INTERSECTION = 10
"""People that every intersection of two columns needs, or it is left out and named."""

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif")


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
        """Return who is there: *column*, *group*, *pictures*, *people*; intersections too."""
        rows = []
        for facet in [*([each] for each in self.groups), *self._crossed()]:
            for names, part in self.people.groupby(facet, sort=False):
                group = " x ".join(map(str, names))
                rows.append((" x ".join(facet), group, len(part), part["person"].nunique()))
        return pandas.DataFrame(rows, columns=["column", "group", "pictures", "people"])

    def _crossed(self) -> list[list[str]]:
        """Return the intersections of the first column with the others."""
        return [[self.groups[0], other] for other in self.groups[1:]]

    def facets(self) -> dict[str, str | list[str]]:
        """Return the columns, and their intersections whose groups are large enough."""
        found: dict[str, str | list[str]] = {each: each for each in self.groups}
        counts = self.counts()
        for pair in self._crossed():
            name = " x ".join(pair)
            if counts.loc[counts["column"] == name, "people"].min() >= FOR_INTERSECTION:
                found[name] = pair
        return found

    def inputs(self, innocent: pandas.DataFrame, lower_case: bool) -> clip_audit.Inputs:
        """Return the pictures as study 3 reads them."""
        labels = {each: tuple(dict.fromkeys(self.people[each])) for each in self.groups}
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


def _no_captions(name: str, folder: Any) -> Any:
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
        If there is no folder, or no ``labels.csv`` in it; labels and files do not match, a row
        names more than one picture, a label is empty or a word for a missing value such as ``nan``,
        a picture is damaged or there twice, a column has one group, or a group has fewer than
        :data:`FEWEST` people; the message counts and names them.
    """
    folder = _with_labels(Path(folder).expanduser())
    people, wrong = runtime.read_table(folder / LABELS, DataError)
    if wrong:
        line, what = next(iter(wrong.items()))
        raise DataError(
            f"line {line} of {folder / LABELS} is no row of the table: {what}",
            path=folder / LABELS,
            row=line,
        )
    people, notes = _named(people, folder)
    groups = _groups(people, folder)
    people = people.assign(file=_as_on_disk(people["file"], folder))
    _require_files(people, folder)
    if "person" not in people:
        notes.append("no column person: each picture counts as a person")
        people = people.assign(person=people["file"])
    _require_groups(people, groups, folder)
    people = people.reset_index(drop=True)
    paths = [folder / each for each in people["file"]]
    _require_readable(paths)
    found = OwnFolder(folder.resolve().name, people, groups, pictures(paths))
    _require_once(people, found.pictures, folder)
    notes += [*_twins(people, [*groups, "person"]), *_left_out(found)]
    return OwnFolder(found.name, people, groups, found.pictures, tuple(notes))


def _with_labels(folder: Path) -> Path:
    """Return the folder; that of ``labels.csv`` where the file itself is given."""
    if folder.name.lower() == LABELS and folder.is_file():
        return folder.parent
    if not folder.exists():
        raise DataError(f"{folder} is not there; check the path", path=folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is a file; give the folder that holds {LABELS}", path=folder)
    if not (folder / LABELS).is_file():
        raise DataError(
            f"{folder} has no {LABELS}: a table with a row a picture, its path below the folder in "
            "the column file, and columns with groups, such as gender and age",
            path=folder / LABELS,
        )
    return folder


def _named(people: pandas.DataFrame, folder: Path) -> tuple[pandas.DataFrame, list[str]]:
    """Return the table with clean cells and names of columns, of which each needs one, and notes.

    Empty columns without a name, of commas at the end, go. Names of files stay as they are.
    """
    names = [runtime.cleaned(name) for name in people]
    names = [name.lower() if name.lower() in NO_GROUPS else name for name in names]
    people = people.set_axis(names, axis=1).map(str.strip)
    people = people.loc[
        :, [bool(n) or (people.iloc[:, at] != "").any() for at, n in enumerate(names)]
    ]
    table = folder / LABELS
    if "" in people:
        raise DataError(
            f"a column of {LABELS} has no name in the first line: give it one", path=table
        )
    twice = people.columns[people.columns.duplicated()]
    if len(twice):
        raise DataError(
            f"{LABELS} has the column {twice[0]!r} twice: rename or remove one of them",
            path=table,
            word=twice[0],
        )
    people = people.assign(
        **{name: people[name].map(runtime.cleaned) for name in people if name != "file"}
    )
    if set(people) >= OF_FAIRFACE:
        note = "the column service_test of FairFace's label files is no group, and is left out"
        return people.drop(columns="service_test"), [note]
    return people, []


def _as_on_disk(files: pandas.Series, folder: Path) -> pandas.Series:
    """Return names as the disk has them: an umlaut can be one character there and two here."""
    there = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    own = {runtime.cleaned(name): name for name in there} | {name: name for name in there}
    return files.map(lambda name: own.get(name) or own.get(runtime.cleaned(name), name))


def _twins(people: pandas.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return notes on labels, or people, that look alike and are counted as two."""
    return [
        f"the column {column} has names that look alike and are counted apart: "
        f"{' and '.join(map(repr, names))}. If they are one, write them alike"
        for column in columns
        for names in runtime.look_alikes(people[column])
    ]


def _groups(people: pandas.DataFrame, folder: Path) -> tuple[str, ...]:
    table = folder / LABELS
    if "file" not in people:
        raise DataError(
            f"{table} has no column file, with each picture's path: its first line is "
            f"{','.join(map(str, people.columns))!r}, and should be like 'file,person,gender', "
            "with commas",
            path=table,
            word="file",
        )
    groups = tuple(each for each in people if each not in NO_GROUPS)
    if not groups:
        raise DataError(
            f"{table} has no column with groups: add one, such as gender, race or age", path=table
        )
    for name in ("file", *groups, *(each for each in NO_GROUPS[1:] if each in people)):
        empty = people[name][people[name].isin(runtime.MISSING)]
        if len(empty):
            word = f", such as {empty.iloc[0]!r}" if empty.iloc[0] else ""
            raise DataError(
                f"the column {name} of {LABELS} is empty{word} in {_some(empty.index, 'line')}: "
                "fill it in, with another word if it is a group, or leave these pictures out",
                path=table,
                row=int(empty.index[0]),
                word=empty.iloc[0],
            )
    return groups


def _require_files(people: pandas.DataFrame, folder: Path) -> None:
    table, files = folder / LABELS, people["file"]
    several = files[files.str.contains(r"[;|\n]")]
    if len(several):
        raise DataError(
            f"{_some(several, 'row')} of {LABELS} names more than one picture: each caption is "
            "scored beside one picture, so give every picture a row",
            **_first(table, several),
        )
    outside = files[[Path(each).is_absolute() or ".." in Path(each).parts for each in files]]
    if len(outside):
        raise DataError(
            f"{_some(outside, 'file')} of {LABELS} is not below the folder",
            **_first(table, outside),
        )
    twice = files[files.duplicated()]
    if len(twice):
        raise DataError(
            f"{LABELS} has {_some(twice.unique(), 'file')} twice: keep one row a picture",
            **_first(table, twice),
        )
    missing = files[[not (folder / each).is_file() for each in files]]
    below = (path.relative_to(folder) for path in folder.rglob("*"))
    there = {
        path.as_posix() for path in below if path.suffix.lower() in ENDINGS and not is_hidden(path)
    }
    left = sorted(there - {Path(each).as_posix() for each in files})
    if len(missing) or left:
        raise DataError(
            f"{LABELS} and the files do not match: {_some(missing, 'file')} of the table not "
            f"there, {_some(left, 'picture')} without a row. Correct the column file, add rows, "
            "or move the pictures away",
            **(_first(table, missing) if len(missing) else {"path": table, "word": left[0]}),
        )


def _first(table: Path, cells: pandas.Series) -> dict[str, Any]:
    """Return where the first of some cells stands, for an error."""
    return {"path": table, "row": int(cells.index[0]), "word": cells.iloc[0]}


def _require_groups(people: pandas.DataFrame, groups: Sequence[str], folder: Path) -> None:
    table = folder / LABELS
    for column in groups:
        labels = people.groupby("person", sort=False)[column].unique()
        several = labels[labels.map(len) > 1]
        if len(several):
            raise DataError(
                f"{_some(several.index, 'person')} of {LABELS} has more than one label in the "
                f"column {column}, {runtime.first_few([*map(repr, several.iloc[0])])}: a "
                "person counts once. Correct the labels, or keep this person's pictures of one",
                path=table,
                word=several.index[0],
            )
        sizes = people.groupby(column, sort=False)["person"].nunique()
        if len(sizes) < 2:
            raise DataError(
                f"the column {column} has one group only, {sizes.index[0]!r}: there is nothing to "
                "compare. Add another group, or remove the column",
                path=table,
                word=column,
            )
        small = sizes[sizes < FEWEST]
        if len(small):
            named = runtime.first_few([f"{name!r} ({n})" for name, n in small.items()], 3)
            raise DataError(
                f"the column {column} has groups of fewer than {FEWEST} people: {named}. Nothing "
                "can be said of so few; add pictures, join groups, or leave these out",
                path=table,
                word=small.index[0],
            )


def _require_readable(paths: Sequence[Path]) -> None:
    problems = check_images(paths)
    if len(problems):
        raise DataError(
            f"{len(problems)} of {len(paths)} pictures cannot be used: "
            f"{'; '.join(problems['problem'].head(3))}. Replace them, or remove their rows",
            path=problems["path"].iloc[0],
        )


def _require_once(people: pandas.DataFrame, shown: Pictures, folder: Path) -> None:
    ids = pandas.Series(shown.ids, index=people["file"])
    twice = ids[ids.duplicated(keep=False)]
    if len(twice):
        raise DataError(
            f"{_some(twice.index, 'file')} hold the same picture as another one: keep one of each",
            path=folder / twice.index[0],
        )


def _left_out(found: OwnFolder) -> list[str]:
    kept = found.facets()
    left = [" x ".join(pair) for pair in found._crossed() if " x ".join(pair) not in kept]
    return [
        f"the intersection {name} is left out: one of its groups has fewer than "
        f"{FOR_INTERSECTION} people"
        for name in left
    ]


def _some(names: Sequence[Any], what: str, most: int = 3) -> str:
    """Return how many there are, and the first of them."""
    listed = runtime.first_few([repr(str(each)) for each in names], most)
    plural = "" if len(names) == 1 else "s"
    return f"{len(names)} {what}{plural}" + (f" ({listed})" if listed else "")
