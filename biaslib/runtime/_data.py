"""Where data that cannot travel with the package lies."""

import os
from pathlib import Path

from biaslib.runtime._errors import unknown_name

SETS = {
    "ross2021": (
        "tests/grounded-tests/ and data/google-images/ of "
        "https://github.com/candacelax/bias-in-vision-and-language; then, for the pictures: from "
        "biaslib.datasets import ross2021; ross2021.fetch_images({folder!r}, 'google')"
    ),
    "srinivasan2021": "one folder an entity with pictures for each agent, as purse/woman/1.jpg",
    "fairface": (
        "the parquet files of HuggingFaceM4/FairFace that one line fetches: "
        "biaslib.studies.study3_clip_audit.fetch()"
    ),
    "captions": (
        "parquet files with a column of captions, such as the one of kakaobrain/coyo-700m that one "
        "line fetches: biaslib.studies.study3_clip_audit.fetch()"
    ),
    "vlstereoset": (
        "what two lines fetch: from biaslib.datasets import vlstereoset; "
        "vlstereoset.fetch_images({folder!r})"
    ),
}
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
            f"Put there: {SETS[name].format(folder=str(folder))}. More is in "
            "book/data_and_models.md; BIASLIB_DATA names another place, the folder that holds "
            f"{name!r}"
        )
    return folder
