"""Tables that were made once and are kept: ``plantedworld/data`` says of each by what."""

from pathlib import Path

import pandas

import plantedworld
from biaslib.runtime import unknown_name

__all__ = ["FOLDER", "recorded"]

FOLDER = Path(plantedworld.__file__).parent / "data"

FILES = {
    "false_alarms": "false_alarms.csv",
    "generative": "generative.parquet",
    "harder_worlds": "harder_worlds.csv",
    "harder_frequencies": "harder_frequencies.csv",
    "harder_intersections": "harder_intersections.csv",
    "in_plain_sight": "in_plain_sight.csv",
}


def recorded(name: str) -> pandas.DataFrame:
    """Return a table that is kept with the package.

    Parameters
    ----------
    name
        ``false_alarms``, ``generative``, ``in_plain_sight``, or one of ``harder_*``. The ``.md``
        files of ``plantedworld/data`` describe the columns, and the commit whose code made them.

    Raises
    ------
    UnknownNameError
        If there is no such table.

    Examples
    --------
    >>> len(recorded("false_alarms")), int(recorded("false_alarms")["claims"].sum())
    (31, 1)
    """
    if name not in FILES:
        raise unknown_name("recorded table", name, FILES)
    path = FOLDER / FILES[name]
    return pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path)
