"""What each data file must look like, and one clear error when it does not."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas

from biaslib.runtime import unknown_name

KINDS = {
    "text": (str, "string", "some text", "C6"),
    "integer": (int, "Int64", "a whole number", "14"),
    "number": (float, "float64", "a decimal number", "0.57"),
}
"""For each kind of column: the type of a value and of the column, its name, and an example."""


class TableError(ValueError):
    """A data file that breaks its schema; the text names file, row, column and the fix."""


@dataclass(frozen=True)
class Column:
    """One column of a data file: its kind, the values allowed, the range, and emptiness."""

    name: str
    kind: str = "text"
    allowed: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")
    empty: bool = False

    def value(self, text: str):
        """Return the cell's value; raise ``ValueError`` with the fix if it has none."""
        if text == "":
            return self._nothing()
        value = self._parsed(text)
        if self.allowed and text not in self.allowed:
            raise ValueError(f"{text!r} is not known; use one of {', '.join(self.allowed)}")
        if self.kind != "text" and not self.low <= value <= self.high:
            raise ValueError(f"{text} is out of range; use a value from {self.low} to {self.high}")
        return value

    def _nothing(self):
        if not self.empty:
            raise ValueError(f"the cell is empty; write {KINDS[self.kind][2]}")
        return "" if self.kind == "text" else None

    def _parsed(self, text: str):
        parse, _, wanted, example = KINDS[self.kind]
        try:
            return parse(text)
        except ValueError:
            hint = ", or leave the cell empty for a dash" if self.empty else ""
            raise ValueError(
                f"{text!r} is not {wanted}; write one such as {example}{hint}"
            ) from None

    def series(self, values: list) -> pandas.Series:
        """Return the column's values with the column's type."""
        dtype = "object" if self.kind == "text" else KINDS[self.kind][1]
        return pandas.Series(values, dtype=dtype).infer_objects()


def _one_of(name: str, *allowed: str) -> Column:
    return Column(name, allowed=allowed)


_SOURCE = _one_of("source", "google", "coco", "conceptual_captions", "pretraining")
_KIND = _one_of("kind", "gender", "race")
_LEVEL = _one_of("level", "W", "S", "C", "T", "I")
_GROUNDED = ("VisualBERT", "ViLBERT", "LXMERT", "VL-BERT")
_CATEGORIES = ("gender", "profession", "race", "religion")
_GROUPS = (
    *("Male", "Female", "White", "Black", "Latino/Hispanic", "Middle Eastern"),
    *("Southeast Asian", "East Asian", "Indian"),
)
_TYPES = (
    *("Appearance", "Behavioral", "Criminal justice", "Education and wealth", "Healthcare"),
    *("Occupation", "Political", "Portrayal in Media", "Religion"),
)
_PROBERS = ("VisualBERT", "LXMERT", "ViLT", "CLIP", "ALBEF", "FLAVA")


def _count(name: str, low: int = 0, **kwargs) -> Column:
    return Column(name, "integer", low=low, **kwargs)


SCHEMAS: dict[str, tuple[Column, ...]] = {
    "ross2021_images": (_SOURCE, Column("test"), Column("label"), _count("images", 1)),
    "ross2021_effect_sizes": (
        Column("table", "integer", low=3, high=6),
        Column("experiment", "integer", low=1, high=3),
        *(_SOURCE, _KIND, Column("test"), Column("label"), _LEVEL),
        _one_of("model", *_GROUNDED),
        Column("effect_size", "number", low=-2, high=2, empty=True),
        Column("printed"),
    ),
    "ross2021_significant_counts": (
        Column("table", "integer", low=7, high=7),
        Column("experiment", "integer", low=1, high=3),
        *(_SOURCE, _KIND, _LEVEL),
        Column("column", "integer", low=1, high=4),
        _one_of("model_table4_order", *_GROUNDED),
        _one_of("model_inferred", *_GROUNDED),
        _count("significant", high=7, empty=True),
        _count("total", 6, high=7),
        Column("printed"),
    ),
    "ross2021_released_code": (
        _one_of("model", "all", "visualbert", "vilbert", "lxmert", "vl-bert"),
        *(Column(name) for name in ("subject", "paper", "code", "where")),
        *(Column(name) for name in ("released_variant", "paper_variant")),
    ),
    "srinivasan2021_methodology": (
        Column("source_x"),
        Column("visual_input", empty=True),
        *(Column("language_input"), Column("modified_component"), Column("new_value")),
        Column("association_score"),
    ),
    "srinivasan2021_case_study": (
        Column("table", "integer", low=2, high=3),
        *(Column("template", empty=True), Column("entity")),
        Column("image", "integer", low=1, high=2, empty=True),
        Column("probability", "number", low=0, high=1, empty=True),
        Column("mark", allowed=("✓", "✗"), empty=True),
    ),
    "hamidieh2023_laion_pronouns": (
        Column("word"),
        Column("male", "number", low=0, high=100),
        Column("female", "number", low=0, high=100),
        _count("images", 1),
    ),
    "hamidieh2023_taxonomy": (_one_of("bias_type", *_TYPES), Column("word")),
    "hamidieh2023_casc": (
        Column("table", "integer", low=3, high=18),
        _one_of("facet", "gender", "race"),
        _one_of("category", *_TYPES, "Activity"),
        _one_of("group", *_GROUPS),
        Column("rank", "integer", low=1, high=10),
        Column("word"),
        Column("casc", "number", low=-2, high=2),
    ),
    "zhou2022_images": (_one_of("category", *_CATEGORIES, "overall"), _count("images", 1)),
    "zhou2022_models": (
        _one_of("model", *_PROBERS),
        Column("year", "integer", low=2018, high=2022),
        *(Column("text_encoder"), Column("image_encoder"), Column("encoder_type")),
        *(Column("pretraining_objectives"), Column("model_printed")),
    ),
    "zhou2022_scores": (
        Column("table", "integer", low=3, high=4),
        _one_of("model", *_PROBERS, "IDM", "RAM", "BIM"),
        _one_of("category", *_CATEGORIES, "overall"),
        _one_of("metric", "vlrs", "vlbs", "ivlas"),
        Column("value", "number", low=0, high=100),
        Column("model_printed"),
    ),
    "zhou2022_released_counts": (
        _one_of("category", *_CATEGORIES),
        *(_count("label_0"), _count("label_1")),
    ),
}
"""The columns of every data file of this package, by the file's name without ``.csv``."""


KEYS = {
    "ross2021_images": ("source", "test"),
    "ross2021_effect_sizes": (
        *("table", "experiment", "source", "kind", "test", "level", "model"),
    ),
    "ross2021_significant_counts": (*("table", "experiment", "source", "kind", "level", "column"),),
    "ross2021_released_code": ("model", "subject"),
    "srinivasan2021_methodology": ("source_x",),
    "srinivasan2021_case_study": ("table", "template", "entity", "image"),
    "hamidieh2023_laion_pronouns": ("word",),
    "hamidieh2023_taxonomy": ("bias_type", "word"),
    "hamidieh2023_casc": ("table", "group", "rank"),
    "zhou2022_images": ("category",),
    "zhou2022_models": ("model",),
    "zhou2022_scores": ("table", "model", "category", "metric"),
    "zhou2022_released_counts": ("category",),
}
"""The columns whose values together may stand in one row only, by the name of the schema."""

Rows = dict[int, list[str]]


def read_table(path: str | Path, schema: str | None = None) -> pandas.DataFrame:
    """Read a data file and check it against its schema.

    Rows are counted from 1, which is the header; blank rows are counted and left out.

    Parameters
    ----------
    path
        A CSV file.
    schema
        The schema's name. ``None`` takes the file's name without ``.csv``.

    Raises
    ------
    TableError
        At the first thing that breaks the schema, naming file, row and the fix, and the column
        where there is one: a file without header or rows, a missing or repeated column, a row
        with too few or too many cells, a bad cell, or a second row with the same key.
    UnknownNameError
        If there is no such schema.
    """
    path = Path(path)
    name = schema or path.stem
    if name not in SCHEMAS:
        raise unknown_name("schema", name, SCHEMAS)
    wanted = [column.name for column in SCHEMAS[name]]
    header, rows = _records(path, wanted)
    _check_columns(path, header, wanted)
    _check_widths(path, len(header), rows)
    cells = {each: [row[header.index(each)] for row in rows.values()] for each in wanted}
    columns = {each.name: _column(path, rows, cells[each.name], each) for each in SCHEMAS[name]}
    _check_key(path, rows, KEYS[name], zip(*(columns[each] for each in KEYS[name]), strict=True))
    return pandas.DataFrame(columns)


def _records(path: Path, wanted: list[str]) -> tuple[list[str], Rows]:
    """Return the header and, by their number in the file, the rows under it."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = {at: cells for at, cells in enumerate(csv.reader(stream), start=1) if cells}
    if not rows:
        raise TableError(
            f"{path.name}, row 1 (the header): the file is empty; write the header "
            f"{','.join(wanted)} and at least one row under it"
        )
    first = min(rows)
    header = rows.pop(first)
    if not rows:
        raise TableError(
            f"{path.name}, row {first + 1}: there is no row under the header; write at least one"
        )
    return header, rows


def _check_columns(path: Path, found: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in found:
            raise TableError(
                f"{path.name}, row 1 (the header), column {name!r}: the column is missing; "
                f"the header must hold {', '.join(wanted)}"
            )
        if found.count(name) > 1:
            raise TableError(
                f"{path.name}, row 1 (the header), column {name!r}: the column is there "
                f"{found.count(name)} times; keep one of them"
            )


def _check_widths(path: Path, wanted: int, rows: Rows) -> None:
    for row, cells in rows.items():
        if len(cells) == wanted:
            continue
        fix = (
            "add those that are missing (an empty cell still has its comma)"
            if len(cells) < wanted
            else "take out those too many, or put a cell that holds a comma in double quotes"
        )
        raise TableError(
            f"{path.name}, row {row}: the row has {_counted(len(cells))} and the header "
            f"{wanted}; {fix}"
        )


def _counted(cells: int) -> str:
    return f"{cells} cell" if cells == 1 else f"{cells} cells"


def _check_key(path: Path, rows: Rows, key: tuple[str, ...], values: Iterator[tuple]) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for row, value in zip(rows, values, strict=True):
        text = tuple("" if pandas.isna(each) else str(each) for each in value)
        if text in seen:
            what = ", ".join(f"{name} {each!r}" for name, each in zip(key, text, strict=True))
            raise TableError(
                f"{path.name}, row {row}: {what} is in row {seen[text]} already; "
                "take out one of the two rows, or correct it"
            )
        seen[text] = row


def _column(path: Path, rows: Rows, cells: list[str], column: Column) -> pandas.Series:
    values = []
    for row, text in zip(rows, cells, strict=True):
        try:
            values.append(column.value(text))
        except ValueError as error:
            raise TableError(f"{path.name}, row {row}, column {column.name!r}: {error}") from None
    return column.series(values)
