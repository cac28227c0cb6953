"""What is wrong with a data set, as a table, and the error that stops a study because of it."""

from collections.abc import Iterable

import pandas

from biaslib.errors import InputError
from biaslib.metrics.inputs import flag, made_by

COLUMNS = ["severity", "kind", "where", "what"]
"""``error``: rows that cannot be used; ``note``: what a reader of the results should know."""


class DataError(InputError):
    """A data set that cannot be used as it is; the message says what to do."""


def problems(rows: list[tuple[str, str, str, str]]) -> pandas.DataFrame:
    """Return a table of problems, one row each: severity, kind, where, what."""
    return pandas.DataFrame(rows, columns=COLUMNS)


ADVICE = "Mend the files, or pass only_sound=True to go on without those rows"


def require_sound(
    found: pandas.DataFrame, name: str, only_sound: bool = False, advice: str = ADVICE
) -> None:
    """Raise an error if there are problems that rule out rows, unless told to leave those out.

    Parameters
    ----------
    found
        A table of problems, with the columns severity, kind, where and what.
    name
        Whose problems they are.
    only_sound
        Go on with the rows that are sound.
    advice
        What to do: the last sentence of the message, without its full stop.

    Raises
    ------
    DataError
        If there are errors and ``only_sound`` is False; the message counts them by kind and quotes
        the first of each, and ``word`` says where the first is.

    Examples
    --------
    >>> found = problems([("error", "image is missing", "X", "1.jpg")])
    >>> require_sound(found, "C6", only_sound=True)
    >>> require_sound(found, "C6")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    biaslib.datasets.problems.DataError: C6 has 1 problem: image is missing (1, such as X: ...
    """
    made_by(found, "found", pandas.DataFrame, "a table of problems")
    errors = found[found["severity"] == "error"]
    if flag(only_sound, "only_sound") or errors.empty:
        return
    kinds = [
        f"{kind} ({len(rows):,}, such as {rows['where'].iloc[0]}: {rows['what'].iloc[0]})"
        for kind, rows in errors.groupby("kind", sort=False)
    ]
    noun = "problem" if len(errors) == 1 else "problems"
    raise DataError(
        f"{name} has {len(errors):,} {noun}: {'; '.join(kinds)}. {advice}",
        word=errors["where"].iloc[0],
    )


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
    biaslib.datasets.problems.DataError: row 1 of manifest has no 'gender'
    """
    made_by(values, name, pandas.DataFrame, "a table of pandas")
    for column in (*columns, *gaps):
        if column not in values:
            known = ", ".join(map(str, values.columns))
            raise DataError(f"{name} has no column {column!r}; it has {known}", word=column)
        missing = values[column].isna().to_numpy()
        if missing.any() and column not in gaps:
            row = int(missing.argmax())
            raise DataError(f"row {row} of {name} has no {column!r}", row=row, word=column)
    return values
