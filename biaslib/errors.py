"""The error of bad input, which knows where the input is bad."""

from pathlib import Path
from typing import Any

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong and what to do.

    Parameters
    ----------
    message
        For a person.
    path
        The file or folder.
    row
        The row of a table, or the number of an item, from 0.
    word
        The word, label or name.

    Examples
    --------
    >>> raise InputError("line 3 of labels.csv has no label", path="labels.csv", row=1)
    Traceback (most recent call last):
    biaslib.errors.InputError: line 3 of labels.csv has no label
    """

    def __init__(
        self,
        message: str = "",
        *,
        path: str | Path | None = None,
        row: Any = None,
        word: Any = None,
    ):
        super().__init__(message)
        self.path = None if path is None else Path(path)
        self.row = row
        self.word = word
