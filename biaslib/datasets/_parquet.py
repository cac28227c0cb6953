"""Parquet files, opened so that whatever is wrong with one names it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from biaslib.datasets.problems import DataError
from biaslib.errors import brought_by
from biaslib.runtime import naming

if TYPE_CHECKING:
    import pyarrow.parquet


@contextlib.contextmanager
def parquet(path: str | Path) -> "Iterator[pyarrow.parquet.ParquetFile]":
    """Open a parquet file.

    Raises
    ------
    DataError
        If it cannot be read, then or within the ``with`` block; the message names it.
    """
    with brought_by("captions"):
        import pyarrow.parquet

    with naming(path, DataError), pyarrow.parquet.ParquetFile(path) as file:
        names = [name.lower() for name in file.schema_arrow.names]  # all one to DuckDB
        twice = [name for name in file.schema_arrow.names if names.count(name.lower()) > 1]
        if twice:
            what = f"the column {twice[0]!r} twice, as {twice[1]!r}; rename or remove one"
            raise DataError(f"{path} has {what}", path=path, word=twice[0])
        yield file
