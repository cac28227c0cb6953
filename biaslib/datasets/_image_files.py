"""What every set of images is checked for: can they be opened, and which of them are the same."""

from pathlib import Path

import pandas

from biaslib.models.images import check_images
from biaslib.runtime import file_sha256, progress

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


def readable(there: pandas.DataFrame, where: str) -> tuple[pandas.DataFrame, list[tuple]]:
    """Return the rows whose images can be opened, with their checksums, and problems of the rest.

    Parameters
    ----------
    there
        One row an image: ``path``, and what ``where`` names.
    where
        The column that a problem names.

    Returns
    -------
    pandas.DataFrame
        The rows that are sound, with *sha256*.
    list of tuple
        Severity, kind, where and what of every image that cannot be opened.
    """
    paths = sorted(set(there["path"]))
    unreadable = dict(check_images(paths)[["path", "problem"]].itertuples(index=False))
    damaged = there["path"].map(str).isin(unreadable)
    found = [
        ("error", "image cannot be opened", row[where], unreadable[str(row["path"])])
        for _, row in there[damaged].iterrows()
    ]
    sound = there[~damaged]
    hashes = {path: file_sha256(path) for path in progress(sorted(set(sound["path"])), "checksums")}
    return sound.assign(sha256=sound["path"].map(hashes)), found


def images_in(folder) -> list:
    """Return the image files of a folder, in the order of their names, without hidden ones."""
    return [
        path
        for path in sorted(folder.glob("*"))
        if path.suffix.lower() in SUFFIXES and not is_hidden(path.relative_to(folder))
    ]


def is_hidden(path: Path) -> bool:
    """Tell whether a program put a picture there, and not a person: a copy, or one made smaller.

    Examples
    --------
    >>> [is_hidden(Path(name)) for name in ("._x.jpg", "@eaDir/x.jpg", "_DSC0001.jpg")]
    [True, True, False]
    """
    return any(part.startswith((".", "@eaDir", "__MACOSX")) for part in path.parts)
