"""What each data file must look like, and one clear error when it does not."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas

from biaslib.published import TableError
from biaslib.published._tables import SCHEMAS as WRITTEN
from biaslib.runtime import unknown_name
from biaslib.runtime._files import read_rows

KINDS = {
    "text": (str, "string", "some text", "C6"),
    "integer": (int, "Int64", "a whole number", "14"),
    "number": (float, "float64", "a decimal number", "0.57"),
}
"""For each kind of column: the type of a value and of the column, its name, and an example."""


@dataclass(frozen=True)
class Column:
    """One column of a data file: its kind, the values allowed, the range, and emptiness."""

    name: str
    kind: str = "text"
    allowed: tuple[str, ...] = ()
    low: float = -sys.float_info.max
    high: float = sys.float_info.max
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
            if self.kind != "text" and "_" in text:
                raise ValueError(text)
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


def _columns(rows: list[dict]) -> tuple[Column, ...]:
    return tuple(Column(**row | {"allowed": tuple(row.get("allowed", ()))}) for row in rows)


SCHEMAS = {name: _columns(each["columns"]) for name, each in WRITTEN.items()}
"""The columns of each data file, by its name."""

KEYS = {name: tuple(each["key"]) for name, each in WRITTEN.items()}
"""The columns that tell the rows of each data file apart."""

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
    rows, wrong = read_rows(path, TableError)
    for row, what in wrong.items():
        raise TableError(f"{path.name}, row {row}: {what}")
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
