"""Region features that were computed before, from the files in which they are handed on.

Read are a folder with one ``.npz`` a picture, as the PyTorch ports of bottom-up attention write it;
the ``.tsv`` of LXMERT, of Anderson et al. (2018), and of Ross, Katz and Barbu (2021) for VL-BERT,
each also as a folder of several; VisualBERT's ``.th``, a dictionary of tensors; and the
``.safetensors`` that :func:`write` makes. Nothing that is read can run a program: ViLBERT's LMDB,
whose rows are pickled, is refused with what to do.
"""

import base64
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from biaslib.models._region_rows import RegionRow, stacked
from biaslib.models.regions import FeatureFileError, RegionFeatures
from biaslib.runtime import first_few, naming

__all__ = ["FeatureFileError", "damaged", "missing", "read", "write"]

COLUMNS = {
    10: ("id", "height", "width", "classes", "scores", "attributes", "", "n", "boxes", "features"),
    6: ("id", "width", "height", "n", "boxes", "features"),
    8: ("id", "height", "width", "n", "boxes", "features", "", "double_classes"),
}
"""The columns of a ``.tsv`` by their number: LXMERT's, and those of Anderson et al. (2018).

Those of Ross, Katz and Barbu (2021) are eight; their code reads the classes as float64.
"""

KINDS = {
    "classes": np.int64,
    "attributes": np.int64,
    "scores": np.float32,
    "boxes": np.float32,
    "features": np.float32,
    "double_classes": np.float64,
}
"""The columns that hold numbers in base64, and of which type."""

NAMES = "class_names"
"""Under which a ``.safetensors`` holds the names of its classes."""

LMDB = (
    "its rows are pickled, and unpickling runs whatever their writer put there, so it is not read. "
    "If you trust the file, write each row as a line of a .tsv yourself: image_id, image_h, "
    "image_w, num_boxes, boxes, features, an empty column and classes, with tabs between; boxes, "
    "features and classes stay the base64 that they are"
)

OTHERS = {
    b"\x93NUMPY": "an array of NumPy, as a .npy of features by grid cells",
    b"\x89HDF": "HDF5",
    b"PK\x03\x04": "an archive, as .pth, .pt or a .npz of one picture",
    b"\x80": "pickled, as .pth, .pkl or an index of pictures",
    b"\x1f\x8b": "packed by gzip",
}
"""How files of other formats begin."""

ENDINGS = (".npy", ".h5", ".hdf5", ".pth", ".pt", ".pkl", ".gz", ".zip", ".parquet", ".csv")

READ = (
    "Read are a folder with one .npz a picture (x, bbox, num_bbox, image_w, image_h), the .tsv of "
    "LXMERT, of bottom-up attention and of VL-BERT, VisualBERT's .th, and a .safetensors of "
    "biaslib.models.region_files.write. Features of grid cells have no boxes, and take no place of "
    "regions"
)

NEAR = 1e-4
"""How far a box may pass the picture's edge by rounding, as a share of the picture."""

PIXELS = "Boxes are x0, y0, x1, y1 in pixels of the picture as it came, not resized and not shares"


def missing(path: str | Path, ids: Sequence[str]) -> list[str]:
    """Return the ids of which a file has no regions, in the order given.

    Raises
    ------
    FeatureFileError
        If the file cannot be read.
    """
    path = _known(Path(path))
    if path.is_dir() and not _tables(path):
        return [each for each in ids if _npz(path, each) is None]
    if path.suffix == ".safetensors":
        known = set(_ids(path))
    else:
        known = set(_of_tensors(path)) if path.suffix == ".th" else set(_places(path))
    return [each for each in ids if _id_in(known, each) is None]


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
    path, found = _known(Path(path)), {}
    if path.suffix == ".safetensors":
        _read_ours(path, [str(each) for each in ids][:1], width)
        return found
    one = _reader(path)
    for each in dict.fromkeys(ids):
        try:
            row = one(each)
            if row is not None:
                _check(path, each, row, width)
        except FeatureFileError as error:
            found[each] = str(error)
    return found


def _id_in(known, name: str) -> str | None:
    """Return under which id a picture is known: its name, or its name without the ending."""
    return next((each for each in (name, _stem(name), f"{name}.npz") if each in known), None)


def _stem(name: str) -> str:
    return name.removesuffix(Path(name).suffix)


def _npz(folder: Path, name: str) -> Path | None:
    """Return a picture's file in a folder, which may hold folders of its own."""
    paths = (folder / f"{each}.npz" for each in (name, _stem(name)))
    return next((path for path in paths if path.is_file()), None)


def read(path: str | Path, ids: Sequence[str], width: int = 2048) -> RegionFeatures:
    """Read the regions of some pictures, in the order asked for.

    Parameters
    ----------
    path
        A folder of ``.npz`` files, named by the pictures' ids, each with ``x`` (k, d), ``bbox``
        (k, 4) in pixels, ``num_bbox``, ``image_w`` and ``image_h``; a ``.tsv`` without a heading,
        with 10, 8 or 6 columns, or a folder of such; a ``.th`` of VisualBERT, whose boxes are not
        kept, since it has no sizes and the model does not read them; or a ``.safetensors`` written
        by :func:`write`.
    ids
        n ids; for a folder of ``.npz``, the files' names without their ending. Where the file has
        no such id, the same without an ending as of ``.jpg`` is looked for.
    width
        Numbers a region that the model takes: 2048 for most, 1024 for some of VisualBERT's.

    Returns
    -------
    RegionFeatures
        (n, k, width); k is the largest number of regions of a picture, the other rows are padded.
        Which regions show a person is not looked for: every ``persons`` is False, unless the file
        is a ``.safetensors`` that says so (:func:`biaslib.models.detector.person_regions` tells
        from classes' names).

    Raises
    ------
    FeatureFileError
        If a picture is missing, its features have another width, its boxes are shares, one leaves
        the picture or is empty, or the file is damaged or has another format; the message names the
        file and the picture.
    """
    path, ids = _known(Path(path)), [str(each) for each in ids]
    if not ids:
        raise ValueError("there are no ids: the list is empty")
    if path.suffix == ".safetensors":
        return _read_ours(path, ids, width)
    one = _reader(path)
    found = {each: row for each in dict.fromkeys(ids) if (row := one(each)) is not None}
    _require_all(path, ids, found)
    for each in set(ids):
        _check(path, each, found[each], width)
    return stacked([found[each] for each in ids])


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

    ids = [str(each) for each in ids]
    if len(ids) != len(regions) or len(set(ids)) != len(ids):
        raise ValueError(f"{len(regions)} pictures need as many ids, all different")
    arrays = {name: np.ascontiguousarray(column) for name, column in regions.arrays().items()}
    said = {"ids": ids} if regions.class_names is None else {"ids": ids, NAMES: regions.class_names}
    save_file(arrays, path, metadata={name: json.dumps(each) for name, each in said.items()})


def _read_ours(path: Path, ids: list[str], width: int) -> RegionFeatures:
    from safetensors.numpy import load_file

    known, names = _ids(path), _said(path, NAMES)
    with naming(path, FeatureFileError):
        regions = RegionFeatures(**load_file(path), class_names=names and tuple(names))
    if len(known) != len(regions):
        raise FeatureFileError(
            f"{path} has {len(known)} ids for {len(regions)} pictures", path=path
        )
    if regions.width != width:
        raise _wrong_width(path, None, regions.width, width)
    places = {each: row for row, each in enumerate(known)}
    names = {each: _id_in(places, each) for each in ids}
    rows = {each: places[name] for each, name in names.items() if name is not None}
    _require_all(path, ids, rows)
    return regions[[rows[each] for each in ids]]


def _ids(path: Path) -> list[str]:
    ids = _said(path, "ids")
    if ids is None or len(set(ids)) != len(ids):
        raise FeatureFileError(
            f"{path} does not say which picture is which; write it with "
            "biaslib.models.region_files.write",
            path=path,
        )
    return ids


def _said(path: Path, what: str) -> list[str] | None:
    """Return a list of texts that a ``.safetensors`` holds beside its arrays; None without it."""
    from safetensors import safe_open

    with naming(path, FeatureFileError):
        with safe_open(path, "numpy") as file:
            said = json.loads((file.metadata() or {}).get(what, "null"))
        if said is not None and not (
            isinstance(said, list) and all(isinstance(each, str) for each in said)
        ):
            raise ValueError(f"its {what} are no list of texts")
    return said


def _reader(path: Path) -> Callable[[str], RegionRow | None]:
    """Return what reads the regions of one picture, or None where the file has none of it."""
    if path.suffix == ".th":
        known = _of_tensors(path)
        return lambda name: known.get(_id_in(known, name))
    if path.is_dir() and not _tables(path):
        return lambda name: None if (file := _npz(path, name)) is None else _of_npz(file)
    places = _places(path)
    return lambda name: None if (at := _id_in(places, name)) is None else _of_line(*places[at])


def _known(path: Path) -> Path:
    """Return a path, unless what is there has a format that is not read."""
    if path.is_dir():
        if (path / "data.mdb").exists() or path.suffix == ".lmdb":
            raise FeatureFileError(f"{path} is an LMDB: {LMDB}", path=path)
        if not _tables(path) and not any(path.rglob("*.npz")):
            other = next((e for e in sorted(path.rglob("*")) if e.suffix.lower() in ENDINGS), None)
            if other:
                raise FeatureFileError(
                    f"{path} holds {other.suffix} files, such as {other.name}. {READ}", path=other
                )
    elif path.suffix not in (".th", ".safetensors"):
        with naming(path, FeatureFileError), path.open("rb") as stream:
            start = stream.read(6)
        kind = next((kind for first, kind in OTHERS.items() if start.startswith(first)), None)
        if kind:
            raise FeatureFileError(f"{path} is {kind}. {READ}", path=path)
    return path


def _of_tensors(path: Path) -> dict[str, RegionRow]:
    with naming(path, FeatureFileError):
        modified = path.stat().st_mtime_ns
    return _tensors(path, modified)


@functools.lru_cache(maxsize=1)
def _tensors(path: Path, modified: int) -> dict[str, RegionRow]:
    """Return the pictures of a ``.th``: name -> (features, boxes, confidence)."""
    import torch

    from biaslib.models._checkpoints import CheckpointError, require_safe_torch

    try:
        require_safe_torch(path)
    except CheckpointError as error:
        raise FeatureFileError(str(error), path=path) from error
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        features = {name: np.asarray(parts[0], np.float32) for name, parts in found.items()}
        if any(each.ndim != 2 for each in features.values()):
            raise ValueError("features are not of the shape (regions, numbers)")
    except Exception as error:
        raise FeatureFileError(
            f"{path} is no dictionary of a tuple of tensors (features, boxes, confidence) by the "
            f"picture's name: {error}",
            path=path,
        ) from error
    whole = [[0.0, 0.0, 1.0, 1.0]]
    return {
        name: RegionRow(each, np.repeat(whole, len(each), axis=0), (1, 1))
        for name, each in features.items()
    }


def _of_npz(path: Path) -> RegionRow:
    with (
        naming(path, FeatureFileError),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        size = (int(file["image_w"]), int(file["image_h"]))
        x, boxes = (_numbers(file[name]) for name in ("x", "bbox"))
        picture, count = RegionRow(x, boxes, size), int(file["num_bbox"])
    if x.ndim != 2 or len(x) != count or boxes.shape != (count, 4):
        raise FeatureFileError(
            f"{path} says {count} regions and has x of the shape {picture.features.shape}, bbox of "
            f"{picture.boxes.shape}; they should be ({count}, d) and ({count}, 4)",
            path=path,
        )
    return picture


def _numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise TypeError(f"an array holds {array.dtype}, and regions are numbers")
    return array


def _of_line(path: Path, start: int) -> RegionRow:
    with naming(path, FeatureFileError), path.open("rb") as stream:
        stream.seek(start)
        row = stream.readline().decode("ascii", "replace").rstrip("\r\n").split("\t")
    return _of_row(path, row)


def _tables(folder: Path) -> list[Path]:
    """Return the tables of a folder, unless it is one of ``.npz`` files."""
    return [] if any(folder.rglob("*.npz")) else sorted(folder.glob("*.tsv"))


def _places(path: Path) -> dict[str, tuple[Path, int]]:
    """Return in which table each picture is, and at which byte its row begins."""
    places: dict[str, tuple[Path, int]] = {}
    for part in _tables(path) if path.is_dir() else [path]:
        with naming(part, FeatureFileError):
            starts = _starts(part, part.stat().st_mtime_ns)
        for name, start in starts.items():
            if name in places:
                raise FeatureFileError(
                    f"{part} and {places[name][0]} both have {name!r}; keep one",
                    path=part,
                    word=name,
                )
            places[name] = part, start
    return places


@functools.lru_cache(maxsize=64)
def _starts(path: Path, modified: int) -> dict[str, int]:
    starts, at = {}, 0
    with path.open("rb") as stream:
        for line in stream:
            name, tab, _ = line.decode("ascii").partition("\t")
            if name in starts or (line.strip() and not tab):
                what = "is there twice; keep one" if tab else "has no tab; it may be cut off"
                raise FeatureFileError(
                    f"{path}: the row of {name[:40]!r} {what}", path=path, word=name
                )
            starts |= {name: at} if tab else {}
            at += len(line)
    return starts


def _of_row(path: Path, row: list[str]) -> RegionRow:
    if len(row) not in COLUMNS:
        raise FeatureFileError(
            f"{path}: the row of {row[0]!r} has {len(row)} columns; known are "
            f"{', '.join(map(str, COLUMNS))}. It may be cut off",
            path=path,
            word=row[0],
        )
    cells = dict(zip(COLUMNS[len(row)], row, strict=True))
    try:
        count = int(cells["n"])
        numbers = {
            name: _decoded(cells[name], kind) for name, kind in KINDS.items() if name in cells
        }
        if "double_classes" in numbers:
            numbers["classes"] = numbers.pop("double_classes").astype(np.int64)
        shapes = {"boxes": (count, 4), "features": (count, -1)}
        numbers = {name: n.reshape(shapes.get(name, count)) for name, n in numbers.items()}
        return RegionRow(size=(int(cells["width"]), int(cells["height"])), **numbers)
    except ValueError as error:
        raise FeatureFileError(
            f"{path}: the row of {row[0]!r} is damaged: {error}", path=path, word=row[0]
        ) from error


def _decoded(cell: str, kind: type) -> np.ndarray:
    text = cell[2:-1] if cell[:2] == "b'" else cell  # as Python 3 writes bytes to a table
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)


def _require_all(path: Path, ids: list[str], found: Mapping) -> None:
    missing = [each for each in ids if each not in found]
    if missing:
        raise FeatureFileError(
            f"{path} has no regions of {len(missing)} of {len(ids)} pictures: {first_few(missing)}",
            path=path,
            word=missing[0],
        )


def _check(path: Path, name: str, picture: RegionRow, width: int) -> None:
    path = (_npz(path, name) or path) if path.is_dir() else path
    if min(picture.size) < 1 or not len(picture.boxes):
        width, height = picture.size
        raise FeatureFileError(
            f"{path}: {name!r} has {len(picture.boxes)} regions in {width} x {height} pixels; "
            "leave the picture out, or write its size and at least one region",
            path=path,
            word=name,
        )
    if picture.features.shape[1] != width:
        raise _wrong_width(path, name, picture.features.shape[1], width)
    if max(picture.size) > 1 and (picture.boxes <= 1 + NEAR).all():
        raise FeatureFileError(
            f"{path}: all boxes of {name!r} lie within one pixel of {picture.size[0]} x "
            f"{picture.size[1]}, such as {picture.boxes[0].tolist()}: they are shares. {PIXELS}",
            path=path,
            word=name,
        )
    shares = picture.boxes / np.tile(picture.size, 2)
    outside = ~((shares >= -NEAR) & (shares <= 1 + NEAR)).all(axis=1)
    empty = (picture.boxes[:, 2:] <= picture.boxes[:, :2]).any(axis=1)
    for wrong, what in ((outside, "leaves the picture"), (empty, "is empty")):
        for region in np.flatnonzero(wrong)[:1]:
            raise FeatureFileError(
                f"{path}: box {region} of {name!r} {what}: {picture.boxes[region].tolist()} in "
                f"{picture.size[0]} x {picture.size[1]} pixels. {PIXELS}",
                path=path,
                row=int(region),
                word=name,
            )
    if not np.isfinite(picture.features).all():
        raise FeatureFileError(
            f"{path}: a feature of {name!r} is not a finite number", path=path, word=name
        )


def _wrong_width(path: Path, name: str | None, found: int, width: int) -> FeatureFileError:
    return FeatureFileError(
        f"{path}: the features of {name or 'each picture'} have {found} numbers a region, and the "
        f"model takes {width}; get those of the detector that the model was trained with",
        path=path,
        word=name,
    )
