"""The one path by which arguments enter the data sets: see :mod:`biaslib.metrics.inputs`."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas

from biaslib.datasets._problems import DataError
from biaslib.metrics.inputs import label_keys, refused


def require_path(value: str | Path, name: str) -> Path:
    """Return the path of a file or folder.

    Examples
    --------
    >>> require_path(None, "folder")
    Traceback (most recent call last):
    biaslib.errors.InputError: folder is of the type NoneType; give a path
    """
    if not isinstance(value, str | os.PathLike):
        raise refused(name, f"is of the type {type(value).__name__}; give a path")
    return Path(value)


def require_text(value: str, name: str) -> str:
    """Return a text.

    Examples
    --------
    >>> require_text(b"nurse", "word")
    Traceback (most recent call last):
    biaslib.errors.InputError: word is of the type bytes; give text
    """
    if not isinstance(value, str):
        raise refused(name, f"is of the type {type(value).__name__}; give text")
    return value


def require_texts(values: Sequence[str], name: str) -> list[str]:
    """Return a list of texts, none of them missing.

    Examples
    --------
    >>> require_texts("nurse", "words")
    Traceback (most recent call last):
    biaslib.errors.InputError: words is one text; give a list of them
    """
    if isinstance(values, str):
        raise refused(name, "is one text; give a list of them")
    listed = label_keys(values, name)
    for row, each in enumerate(listed):
        if not isinstance(each, str):
            raise refused(name, f"is of the type {type(each).__name__}; give text", row)
    return listed


def require_table(
    values: pandas.DataFrame, name: str, columns: Iterable[str], gaps: Iterable[str] = ()
) -> pandas.DataFrame:
    """Return a table that has some columns, each with a label in every row, and others with gaps.

    Raises
    ------
    InputError
        If it is no table; ``word`` is the name of the argument.
    DataError
        If a column or a label in one is missing; ``word`` is the column, ``row`` counts from 0.

    Examples
    --------
    >>> require_table(pandas.DataFrame({"gender": ["man", None]}), "manifest", ["gender"])
    Traceback (most recent call last):
    biaslib.datasets._problems.DataError: row 1 of manifest has no 'gender'
    """
    if not isinstance(values, pandas.DataFrame):
        raise refused(name, f"is of the type {type(values).__name__}; give a table of pandas")
    for column in (*columns, *gaps):
        if column not in values:
            there = ", ".join(map(str, values.columns))
            raise DataError(f"{name} has no column {column!r}; it has {there}", word=column)
        missing = values[column].isna().to_numpy()
        if missing.any() and column not in gaps:
            row = int(missing.argmax())
            raise DataError(f"row {row} of {name} has no {column!r}", row=row, word=column)
    return values
