"""Where data that cannot travel with the package lies."""

import json
import os
from pathlib import Path

from biaslib.runtime._errors import unknown_name

SETS: dict[str, str] = json.loads(
    (Path(__file__).parent / "data" / "sets.json").read_text(encoding="utf-8")
)
"""What belongs in each folder, ``{folder}`` where it names it."""


def data_folder(name: str, make: bool = False) -> Path:
    """Return the folder of a data set, below ``BIASLIB_DATA`` or else ``./biaslib-data``.

    Parameters
    ----------
    name
        ``ross2021``, ``srinivasan2021``, ``fairface``, ``captions`` or ``vlstereoset``.
    make
        Make the folder where it is not there.

    Raises
    ------
    UnknownNameError
        If no study reads such a set.
    FileNotFoundError
        If the folder is not there; the message says what to put there and where it comes from.

    Examples
    --------
    >>> data_folder("faces")
    Traceback (most recent call last):
    biaslib.runtime._errors.UnknownNameError: unknown data set 'faces'. ...
    """
    if name not in SETS:
        raise unknown_name("data set", name, SETS)
    folder = Path(os.environ.get("BIASLIB_DATA") or "biaslib-data").absolute() / name
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"the profile 'paper' reads the data set {name!r} from {folder}, which is not there. "
            f"Put there: {SETS[name].format(folder=str(folder))}. More is in book/data_and_models"
            f".md; BIASLIB_DATA names another place, the folder that holds {name!r}"
        )
    return folder
