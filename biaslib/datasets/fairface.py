"""FairFace: portraits that annotators labelled with age, one of two genders and one of seven races.

Kärkkäinen and Joo (2021), CC BY 4.0, as the hub has it under ``HuggingFaceM4/FairFace``: parquet
files ``0.25/train-*.parquet`` and so on, whose labels are numbers of classes.

The labels say what annotators saw in a photograph, not who a person is.
"""

import hashlib
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib.datasets._parquet import parquet
from biaslib.datasets.problems import DataError, problems, require_sound, require_table
from biaslib.metrics.inputs import texts
from biaslib.pictures.images import ImageError, Pictures, decoded, pictures
from biaslib.runtime import unknown_name

__all__ = [
    "AGES",
    "CROPS",
    "GENDERS",
    "RACES",
    "SPLITS",
    "FairFaceImages",
    "group_sizes",
    "membership",
    "read_fairface",
]

AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
GENDERS = ("Male", "Female")
RACES = (
    "East Asian", "Indian", "Black", "White", "Middle Eastern", "Latino_Hispanic",
    "Southeast Asian",
)  # fmt: skip
"""The labels as released, in the order of the class numbers."""

LABELS = {"age": AGES, "gender": GENDERS, "race": RACES}
SPLITS = {"train": 86_744, "validation": 10_954}
"""The two parts, and how many portraits each has as released."""

CROPS = ("0.25", "1.25")
"""How much is left around a face."""

ROWS_AT_ONCE = 256


def read_fairface(
    folder: str | Path,
    split: str = "train",
    crop: str = "0.25",
) -> pandas.DataFrame:
    """Return the portraits of one part with their labels, each image opened once.

    Opening them takes a minute or two, and what it finds would else stop a run of hours.

    Parameters
    ----------
    folder
        Of the data set, with a folder a crop.
    split
        ``train``, which the paper searched, or ``validation``.
    crop
        ``0.25`` or ``1.25``. The paper does not say which it used.

    Returns
    -------
    pandas.DataFrame
        *file*, *age*, *gender*, *race*, *split*, *crop*, *path* and *row* (of the parquet file,
        and in it), *sha256* of the image's bytes.
        ``attrs["problems"]`` notes it where there are not as many portraits as were released.

    Raises
    ------
    UnknownNameError
        If there is no such split or crop.
    DataError
        If labels or images are not there, a column is missing, a label is not one of FairFace's,
        or images cannot be opened: named and counted.
    """
    for kind, name, known in (("split", split, SPLITS), ("crop", crop, CROPS)):
        if not isinstance(name, str) or name not in known:
            raise unknown_name(f"{kind} of FairFace", name, known)
    source = Path(folder) / crop / f"{split}-*.parquet"
    files = sorted(source.parent.glob(source.name))
    if not files:
        raise DataError(
            f"{source} is not there; biaslib.studies.study3_clip_audit.fetch() downloads it from "
            "HuggingFaceM4/FairFace",
            path=folder,
        )
    tables, wrong = zip(*map(_of_hub, files), strict=True)
    table, wrong = pandas.concat(tables, ignore_index=True), [*itertools.chain(*wrong)]
    wrong += _wrong_labels(table)
    wrong = problems([("error", *each) for each in wrong])
    advice = "Mend the files, or take them from the release again"
    require_sound(wrong, f"FairFace ({split}, crop {crop}) in {source}", advice=advice)
    if table.empty:
        raise DataError(f"{source} has no portrait of the split {split}", path=source, word=split)
    table, notes = table.assign(split=split, crop=crop), []
    if len(table) != SPLITS[split]:
        what = f"{len(table):,} portraits in the split {split}; {SPLITS[split]:,} were released"
        notes = [("note", "not the size of the release", str(folder), what)]
    table.attrs["problems"] = problems(notes).to_dict("records")
    return table


class FairFaceImages(Pictures):
    """The images of a manifest, as models take them; their ids are the manifest's checksums.

    Parameters
    ----------
    manifest
        Rows of :func:`biaslib.datasets.read_fairface`.
    """

    def __init__(self, manifest: pandas.DataFrame) -> None:
        self.manifest = manifest

    def __len__(self) -> int:
        return len(self.manifest)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.part([row])[0]

    def part(self, rows: Sequence[int]) -> Pictures:
        """Return some images; their bytes are read at once."""
        manifest = self.manifest.iloc[list(rows)]
        images = [None] * len(manifest)
        for path, part in manifest.reset_index(drop=True).groupby("path"):
            data = _bytes_of(path, part["row"].to_numpy())
            for place, name, content in zip(part.index, part["file"], data, strict=True):
                images[place] = decoded(io.BytesIO(content), f"{path}, {name}", word=name)
        return pictures(images)

    def name(self, row: int) -> str:
        """Return what an error calls an image."""
        return str(self.manifest["file"].iloc[row])

    @property
    def ids(self) -> list[str]:
        """The SHA-256 of each image's bytes."""
        return self.manifest["sha256"].tolist()


def membership(
    manifest: pandas.DataFrame, by: str | Sequence[str], order: Sequence | None = None
) -> pandas.DataFrame:
    """Return who belongs to which group: one row a portrait, one column a group.

    Parameters
    ----------
    manifest
        With the columns named.
    by
        A column, or several for intersections, such as ``["gender", "race"]``.
    order
        The groups that must be there, in this order; by default those that occur.

    Returns
    -------
    pandas.DataFrame
        Booleans; columns are labels, joined by ``", "`` for intersections. A partition.

    Raises
    ------
    DataError
        If a column is missing, or a group is empty: named.

    Examples
    --------
    >>> people = pandas.DataFrame({"gender": ["Male", "Female"], "age": ["0-2", "0-2"]})
    >>> membership(people, ["gender", "age"]).columns.tolist()
    ['Female, 0-2', 'Male, 0-2']
    """
    labels = _joined(manifest, by)
    names = sorted(labels.unique()) if order is None else texts(order, "order")
    table = pandas.DataFrame({name: (labels == name).to_numpy() for name in names})
    empty = [name for name in names if not table[name].any()]
    if empty:
        raise DataError(
            f"no portrait is labelled {', '.join(map(repr, empty))}: an empty group has no mean. "
            "Leave it out, or take the whole split",
            word=empty[0],
        )
    return table


def group_sizes(
    manifest: pandas.DataFrame, by: str | Sequence[str], labels: Mapping[str, Sequence[str]]
) -> pandas.Series:
    """Return how many portraits every possible group has, those with none included.

    Parameters
    ----------
    manifest, by
        As of :func:`biaslib.datasets.membership`.
    labels
        The known labels of each column.

    Returns
    -------
    pandas.Series
        Sizes by group, in the order of the labels.

    Raises
    ------
    DataError
        If a column is missing.

    Examples
    --------
    >>> people = pandas.DataFrame({"gender": ["Male", "Male"]})
    >>> group_sizes(people, "gender", {"gender": GENDERS}).to_dict()
    {'Male': 2, 'Female': 0}
    """
    columns = [by] if isinstance(by, str) else by
    names = [", ".join(parts) for parts in itertools.product(*(labels[c] for c in columns))]
    return _joined(manifest, by).value_counts().reindex(names, fill_value=0)


def _joined(manifest: pandas.DataFrame, by: str | Sequence[str]) -> pandas.Series:
    """Return the group of every portrait: its labels, joined."""
    columns = [by] if isinstance(by, str) else texts(by, "by")
    labels = require_table(manifest, "manifest", columns)[columns].reset_index(drop=True)
    rows = zip(*(labels[name].astype(str) for name in columns), strict=True)
    return pandas.Series([", ".join(row) for row in rows], dtype=str)


def _of_hub(path: Path) -> tuple[pandas.DataFrame, list]:
    """Return the rows of a parquet file, each image opened, and those that cannot be."""
    rows, wrong = [], []
    with parquet(path) as file:
        classes = _classes(file.schema_arrow.metadata or {})
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=["image", *LABELS]):
            columns = (batch.column(name).to_pylist() for name in ("image", *LABELS))
            for image, *labels in zip(*columns, strict=True):
                image = image if isinstance(image, dict) else {}
                name = f"{path.stem}/{image.get('path') or f'row {len(rows)}'}"
                content = image.get("bytes") or b""
                try:
                    decoded(io.BytesIO(content), name)
                except ImageError as error:
                    wrong.append(("image cannot be opened", name, str(error)))
                labels = map(_name, labels, classes)
                rows.append((name, *labels, hashlib.sha256(content).hexdigest()))
    table = pandas.DataFrame(rows, columns=["file", *LABELS, "sha256"])
    return table.assign(row=range(len(table)), path=str(path)), wrong


def _classes(metadata: Mapping[bytes, bytes]) -> list[Sequence[str]]:
    """Return the names of the class numbers: those that the file states, else the hub's."""
    stated = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    return [stated.get(name, {}).get("names") or LABELS[name] for name in LABELS]


def _name(value: Any, classes: Sequence[str]) -> str:
    """Return the label of a class number; anything else stays as it is, to be reported."""
    return classes[value] if type(value) is int and 0 <= value < len(classes) else str(value)


def _wrong_labels(table: pandas.DataFrame) -> list[tuple[str, str, str]]:
    """Return the rows whose label is not one of FairFace's, with the nearest that is."""
    return [
        (f"{column} is unknown", row["file"], str(unknown_name(column, row[column], known)))
        for column, known in LABELS.items()
        for _, row in table[~table[column].isin(known)].iterrows()
    ]


def _bytes_of(path: str, rows: np.ndarray) -> list[bytes]:
    """Return the bytes of some images of a parquet file, reading the row groups that hold them."""
    with parquet(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        group = np.searchsorted(ends, rows, side="right")
        images = {}
        for number in np.unique(group):
            column = file.read_row_group(int(number), columns=["image"]).column("image")
            first = ends[number] - sizes[number]
            for row in rows[group == number]:
                picture = column[int(row - first)].as_py()
                images[row] = (picture.get("bytes") if isinstance(picture, dict) else None) or b""
    return [images[row] for row in rows]
