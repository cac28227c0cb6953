"""Where data that cannot travel with the package lies."""

import os
from pathlib import Path

from biaslib.runtime._errors import unknown_name

SETS = {
    "ross2021": (
        "the folders tests/grounded-tests/ and data/google-images/, and in images/ the pictures of "
        "their links, which one line downloads: from biaslib.datasets import ross2021; "
        "ross2021.fetch_images({folder!r}, 'google')",
        "the authors' repository, https://github.com/candacelax/bias-in-vision-and-language",
    ),
    "srinivasan2021": (
        "one folder an entity with pictures for each agent, such as purse/woman/1.jpg",
        "pictures that you gather: the paper's own were not released",
    ),
    "fairface": (
        "the folders train/ and val/ with fairface_label_train.csv and fairface_label_val.csv, "
        "or the parquet files of the hub's configurations 0.25 and 1.25",
        "https://github.com/joojs/fairface, or HuggingFaceM4/FairFace on the model hub",
    ),
    "captions": (
        "parquet files with a column of captions, such as those of COYO-700M",
        "kakaobrain/coyo-700m on the model hub, or another corpus that you may use; its card says "
        "on what terms",
    ),
    "vlstereoset": (
        "VLStereoSet.csv, and in images/ the pictures of its links, which two lines download: "
        "from biaslib.datasets import vlstereoset; vlstereoset.fetch_images({folder!r})",
        "the authors' repository, https://github.com/K-Square-00/VLStereo",
    ),
}
"""What belongs in each folder, ``{folder}`` where it names it, and where it comes from."""


def data_folder(name: str) -> Path:
    """Return the folder of a data set, below ``BIASLIB_DATA`` or else ``./biaslib-data``.

    Parameters
    ----------
    name
        ``ross2021``, ``srinivasan2021``, ``fairface``, ``captions`` or ``vlstereoset``.

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
    if not folder.is_dir():
        content, source = (text.format(folder=str(folder)) for text in SETS[name])
        raise FileNotFoundError(
            f"the profile 'paper' reads the data set {name!r} from {folder}, which is not there. "
            f"Put there: {content}. Where it comes from: {source}. Another place can be set with "
            f"the environment variable BIASLIB_DATA, the folder that holds {name!r}"
        )
    return folder
