"""What every set of images is checked for: can they be opened, and which of them are the same."""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pandas
import PIL

from biaslib.pictures.images import FORMATS, ImageError, check_images, pictures
from biaslib.runtime import Store, is_hidden, progress


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
    hashes, unreadable = _checked(sorted(set(there["path"])))
    damaged = there["path"].map(str).isin(unreadable)
    found = [
        ("error", "image cannot be opened", row[where], unreadable[str(row["path"])])
        for _, row in there[damaged].iterrows()
    ]
    sound = there[~damaged]
    return sound.assign(sha256=sound["path"].map(hashes)), found


def _checked(paths: Sequence[Path]) -> tuple[dict[Path, str], dict[str, str]]:
    """Return checksums of images, and what is wrong with those that cannot be opened, by path.

    The store keeps which contents Pillow could decode: these are not decoded at the next start.
    """
    hashes: dict[Path, str] = {}
    for path in progress(paths, "checksums"):
        with contextlib.suppress(ImageError, OSError):
            hashes[path] = pictures([path]).ids[0]
    known = list(hashes)

    def opens(which: list[int]) -> np.ndarray:
        found = np.ones((len(which), 1), dtype=np.uint8)
        found[check_images([known[at] for at in which])["row"].to_numpy(int)] = 0
        return found

    sound: set[Path] = set()
    if known:
        key = {"model": "Pillow", "revision": PIL.__version__, "output": "images that open"}
        key["formats"] = FORMATS
        rows = Store().rows(key, list(hashes.values()), opens, shard_size=1024)
        sound = {path for path, row in zip(known, rows[:, 0], strict=True) if row}
    wrong = check_images([path for path in paths if path not in sound])
    return hashes, dict(wrong[["path", "problem"]].itertuples(index=False))


def images_in(folder: Path) -> list[Path]:
    """Return the files of a folder, in the order of their names, without hidden ones.

    Whatever they are called: what cannot be opened as an image is told of when it is opened.
    """
    return [path for path in _shown(folder) if path.is_file()]


def unused(folder: Path, places: Collection[Path], why: str) -> list[tuple]:
    """Note folders and files below a folder that are not in one of the places of images.

    Files at its top are not looked at: lists and regions lie there.
    """
    left, inside = [], [folder]
    while inside:
        here = inside.pop()
        for path in _shown(here):
            if any(place.is_relative_to(path) for place in places):
                inside.append(path)
            elif path.is_dir() or here not in {folder, *places}:
                left.append(path)
    return [
        ("note", f"{'folder' if path.is_dir() else 'file'} is not used", name, why)
        for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in left)
    ]


def _shown(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*")) if not is_hidden(path.relative_to(folder))]
