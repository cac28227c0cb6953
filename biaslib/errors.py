"""The errors of bad input, which know where the input is bad, and that of a missing package."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CapabilityError",
    "CheckpointError",
    "InputError",
    "brought_by",
    "lacking",
    "refusal",
    "shown",
]

CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that end a line, or that a terminal obeys."""


def shown(text: object) -> str:
    r"""Return what is to be shown in one line, control characters as they are written in Python.

    Examples
    --------
    >>> shown("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], str(text))


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong and what to do.

    Parameters
    ----------
    message
        For a person; see :func:`shown`.
    path
        The file or folder.
    row
        The line of a file, or the number of an item, from 0.
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
        super().__init__(shown(message))
        self.path = None if path is None else Path(path)
        self.row = row
        self.word = word


class CapabilityError(InputError):
    """A model that lacks what it was asked for: a method, or the head behind one.

    A study that goes through several models leaves such a model out and names it. Any other error
    of a model is a fault, of the model or of its input, and is not caught.
    """


class CheckpointError(InputError):
    """A checkpoint that is not what the model needs; its text says what is wrong and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return what notebooks show of it: its text, since no line of code is at fault."""
        return [f"{type(self).__name__}: {self}"]


def refusal(path: str | Path, problem: str, word: str | None = None) -> CheckpointError:
    """Return the error about a file or folder, which its text begins with.

    Examples
    --------
    >>> refusal("config.json", "is no plain file: put a file there").path.name
    'config.json'
    """
    return CheckpointError(f"{path} {problem}", path=path, word=word)


@contextlib.contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Say which extra brings a package that an import within does not find.

    Raises
    ------
    ModuleNotFoundError
        With the command that installs the extra. An error that names a command keeps its own.

    Examples
    --------
    >>> with brought_by("captions"):
    ...     raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
    Traceback (most recent call last):
    ModuleNotFoundError: duckdb is not installed; install it in a clone of the repository with: \
pip install '.[captions]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if "pip install" in str(error):
            raise
        raise lacking(error.name, extra) from error


def lacking(package: str | None, extra: str) -> ModuleNotFoundError:
    """Return the error about a package that an extra of this one brings.

    The command is README's: no package index has this package, so that its name alone would install
    whatever somebody puts there.
    """
    how = f"install it in a clone of the repository with: pip install '.[{extra}]'"
    return ModuleNotFoundError(f"{package} is not installed; {how}", name=package)
