"""Region features that were computed before, read picture by picture from the files of others.

Read are the ``.tsv`` of LXMERT (ten columns) and of Anderson et al. (2018, six columns), as one
file or as a folder of several, and the ``.safetensors`` that :func:`write` makes of any others.
"""

import base64
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biaslib.pictures.regions import FeatureFileError, RegionFeatures, RegionRow, stacked
from biaslib.runtime import first_few, naming

__all__ = ["FeatureFileError", "damaged", "missing", "read", "write"]

COLUMNS = {
    10: ("id", "height", "width", "classes", "scores", "attributes", "", "n", "boxes", "features"),
    6: ("id", "width", "height", "n", "boxes", "features"),
}
"""The columns of a ``.tsv`` by their number: LXMERT's, and those of Anderson et al. (2018)."""

KINDS = {
    "classes": np.int64,
    "attributes": np.int64,
    "scores": np.float32,
    "boxes": np.float32,
    "features": np.float32,
}
"""The columns that hold numbers in base64, and of which type."""

OURS = ".safetensors"

READ = (
    "Read are a .tsv, or a folder of them, of ten columns as LXMERT's or of six as those of "
    "bottom-up attention, and a .safetensors of biaslib.pictures.region_files.write: write other "
    "files anew with it"
)

NEAR = 1e-4
"""How far a box may pass the picture's edge by rounding, as a share of the picture."""

Place = tuple[Path, int]
"""A file, and where a picture is in it: the byte at which its row begins, or its number."""


def missing(path: str | Path, ids: Sequence[str]) -> list[str]:
    """Return the ids of which a file has no regions, in the order given.

    Raises
    ------
    FeatureFileError
        If the file cannot be read.
    """
    known = _places(Path(path))
    return [picture for picture in ids if _known_as(known, picture) is None]


def damaged(path: str | Path, ids: Sequence[str], width: int = 2048) -> dict[str, str]:
    """Return which pictures of a file :func:`read` refuses, and why.

    Parameters
    ----------
    path, ids, width
        As of :func:`read`. Pictures that the file does not have are no part of the answer.

    Raises
    ------
    FeatureFileError
        If the file as a whole cannot be read.
    """
    lost, problems = set(missing(path, ids)), {}
    for name in dict.fromkeys(ids):
        try:
            if name not in lost:
                read(path, [name], width)
        except FeatureFileError as error:
            problems[name] = str(error)
    return problems


def read(path: str | Path, ids: Sequence[str], width: int = 2048) -> RegionFeatures:
    """Read the regions of some pictures, in the order asked for, and of no others.

    Parameters
    ----------
    path
        A ``.tsv`` without a heading, with 10 or 6 columns and boxes in pixels, or a folder of such;
        or a ``.safetensors`` written by :func:`write`.
    ids
        n ids. Where the file has no such id, the same without an ending as of ``.jpg`` is looked
        for.
    width
        Numbers a region that the model takes: 2048 for most, 1024 for some of VisualBERT's.

    Returns
    -------
    RegionFeatures
        (n, k, width); k is the largest number of regions of a picture, the other rows are padded.
        Which regions show a person is not looked for: every ``persons`` is False, unless the file
        is a ``.safetensors`` that says so (:meth:`RegionFeatures.named` tells from classes' names).

    Raises
    ------
    FeatureFileError
        If a picture is missing, its features have another width, its boxes are shares, one leaves
        the picture or is empty, or the file is damaged or has another format; the message names the
        file and the picture.
    """
    path, ids = Path(path), [str(picture) for picture in ids]
    if not ids:
        raise ValueError("there are no ids: the list is empty")
    known = _places(path)
    if lost := [picture for picture in ids if _known_as(known, picture) is None]:
        what = f"no regions of {len(lost)} of {len(ids)} pictures: {first_few(lost)}"
        raise FeatureFileError(f"{path} has {what}", path=path, word=lost[0])
    places = [known[_known_as(known, picture)] for picture in ids]
    try:
        if path.suffix == OURS:
            return RegionFeatures(**_of_ours(path, [row for _, row in places], width))
        return stacked([_of_line(*place, width) for place in places])
    except FeatureFileError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        row = getattr(error, "row", None)
        name = None if row is None else ids[row]
        of = "" if row is None else f" for {name!r}"
        raise FeatureFileError(
            f"{path} cannot be used{of}: {error}", path=path, word=name
        ) from error


def write(path: str | Path, regions: RegionFeatures, ids: Sequence[str]) -> None:
    """Write regions as a ``.safetensors`` file, with the ids of their pictures.

    Examples
    --------
    >>> import tempfile
    >>> whole = np.array([[[0.0, 0.0, 1.0, 1.0]]])
    >>> one = RegionFeatures(np.ones((1, 1, 8)), whole, [[True]], [[False]], [[64, 48]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/regions.safetensors", one, ["a"])
    ...     read(f"{folder}/regions.safetensors", ["a"], width=8).sizes.tolist()
    [[64, 48]]
    """
    from safetensors.numpy import save_file

    ids = [str(picture) for picture in ids]
    if len(ids) != len(regions) or len(set(ids)) != len(ids):
        raise ValueError(f"{len(regions)} pictures need as many ids, all different")
    arrays = {name: np.ascontiguousarray(column) for name, column in regions.arrays().items()}
    texts = {"ids": ids} | ({"class_names": regions.class_names} if regions.class_names else {})
    save_file(arrays, path, metadata={name: json.dumps(value) for name, value in texts.items()})


def _known_as(known: dict[str, Place], name: str) -> str | None:
    """Return under which id a picture is known: its name, or its name without the ending."""
    names = (name, name.removesuffix(Path(name).suffix))
    return next((candidate for candidate in names if candidate in known), None)


def _places(path: Path) -> dict[str, Place]:
    """Return where the regions of each picture are."""
    tables = sorted(path.glob("*.tsv")) if path.is_dir() else [path]
    if not tables or tables[0].suffix not in (".tsv", OURS):
        raise FeatureFileError(f"{path} is of another format. {READ}", path=path)
    places: dict[str, Place] = {}
    for table in tables:
        with naming(table, FeatureFileError):
            ours = table.suffix == OURS
            starts = _numbers(table) if ours else _starts(table, table.stat().st_mtime_ns)
        for name, start in starts.items():
            if name in places:
                what = f"{table} and {places[name][0]} both have {name!r}; keep one"
                raise FeatureFileError(what, path=table, word=name)
            places[name] = table, start
    return places


def _numbers(path: Path) -> dict[str, int]:
    """Return the number of each picture in a ``.safetensors``."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        ids, n = _listed(file, "ids") or (), file.get_slice("features").get_shape()[0]
    if len(set(ids)) != len(ids) or len(ids) != n:
        raise ValueError(f"it has {len(set(ids))} different ids for {n} pictures")
    return {name: row for row, name in enumerate(ids)}


@functools.lru_cache(maxsize=64)
def _starts(path: Path, modified: int) -> dict[str, int]:
    """Return at which byte of a table the row of each picture begins."""
    starts, at = {}, 0
    with path.open("rb") as stream:
        for line in stream:
            name, tab, _ = line.decode("ascii").partition("\t")
            if name in starts or (line.strip() and not tab):
                what = "is there twice; keep one" if tab else "has no tab; it may be cut off"
                text = f"{path}: the row of {name[:40]!r} {what}"
                raise FeatureFileError(text, path=path, word=name)
            starts |= {name: at} if tab else {}
            at += len(line)
    return starts


def _listed(file: Any, name: str) -> tuple[str, ...] | None:
    """Return a list of texts that a ``.safetensors`` holds beside its arrays; None without it."""
    texts = json.loads((file.metadata() or {}).get(name, "null"))
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"its {name} are no list of texts")
    return tuple(texts)


def _of_ours(path: Path, rows: list[int], width: int) -> dict:
    """Return some rows of the arrays of a ``.safetensors``, and the names of its classes."""
    from safetensors import safe_open

    with naming(path, FeatureFileError), safe_open(path, "numpy") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        arrays = {name: np.stack([part[row] for row in rows]) for name, part in slices.items()}
        names = _listed(file, "class_names")
    _require_width(arrays["features"], width)
    return {**arrays, "class_names": names}


def _require_width(features: np.ndarray, width: int) -> None:
    if features.shape[-1] != width:
        raise ValueError(
            f"its features have {features.shape[-1]} numbers a region, and the model takes "
            f"{width}; get those of the detector that the model was trained with"
        )


def _of_line(path: Path, start: int, width: int) -> RegionRow:
    """Return the regions of the picture whose row of a table begins at a byte."""
    with naming(path, FeatureFileError), path.open("rb") as stream:
        stream.seek(start)
        cells = stream.readline().decode("ascii", "replace").rstrip("\r\n").split("\t")
    try:
        if len(cells) not in COLUMNS:
            raise ValueError(f"it has {len(cells)} columns; known are 10 and 6")
        row = dict(zip(COLUMNS[len(cells)], cells, strict=True))
        n, size = int(row["n"]), (int(row["width"]), int(row["height"]))
        numbers = {name: _decoded(row[name], kind) for name, kind in KINDS.items() if name in row}
        shapes = {"boxes": (n, 4), "features": (n, -1)}
        numbers = {name: each.reshape(shapes.get(name, n)) for name, each in numbers.items()}
        if n < 1 or min(size) < 1:
            raise ValueError(f"it has {n} regions in {size[0]} x {size[1]} pixels")
        _require_width(numbers["features"], width)
        if max(size) > 1 and (numbers["boxes"] <= 1 + NEAR).all():
            raise ValueError(
                f"all its boxes lie within one pixel, such as {numbers['boxes'][0].tolist()}; they "
                "should be in pixels of the picture as it came, x0, y0, x1, y1, and not shares"
            )
    except ValueError as error:
        raise FeatureFileError(
            f"{path}: the row of {cells[0]!r} cannot be used: {error}", path=path, word=cells[0]
        ) from error
    return RegionRow(size=size, **numbers)


def _decoded(cell: str, kind: type) -> np.ndarray:
    text = cell[2:-1] if cell[:2] == "b'" else cell  # as Python 3 writes bytes to a table
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
