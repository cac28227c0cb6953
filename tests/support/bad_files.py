"""Bad files: a small good file of every format that users bring, and what can be wrong with it.

A case is right if the reader gives what the good file holds, where the damage takes nothing away,
or one of the package's own errors with the file's name in it.
"""

import base64
import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image
from safetensors.numpy import load_file, save_file

from biaslib import datasets
from biaslib.datasets import vlstereoset
from biaslib.pictures import images, region_files
from biaslib.pictures.regions import RegionFeatures

GOOD, ERROR, EITHER = "what the good file holds", "an error", "either of the two"
ANYTHING = "other pixels, which no format without checksums can tell, or an error"
JUNK = np.random.default_rng(0).bytes(512)

Damage = tuple[Callable[[Path], Any], Any]


@dataclass(frozen=True)
class Format:
    """How a good file is written and read, and what the reader may raise; damages of its own."""

    write: Callable[[Path], Path]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]
    text: bool
    damages: dict[str, Damage]
    named: tuple[str, ...] = ()
    """What an error names, if not the file: all that is left of one that is not there."""


def cases() -> list[tuple[str, str]]:
    """Return every format with every damage, by their names."""
    return [(name, damage) for name in FORMATS for damage in damages_of(FORMATS[name])]


def damages_of(kind: Format) -> dict[str, Damage]:
    """Return what any file can suffer, what a text can, and what this format can."""
    return ANY | (TEXT if kind.text else BINARY) | kind.damages


def outcome(name: str, damage: str, folder: Path) -> str:
    """Return ``right`` or ``refused``, or in words what is wrong with what the reader did."""
    kind = FORMATS[name]
    path = kind.write(folder)
    good = kind.read(path)
    spoil, expected = damages_of(kind)[damage]
    spoil(path)
    try:
        found = kind.read(path)
    except Exception as error:
        if type(error) not in kind.errors:
            return f"raw error: {type(error).__name__}: {error}"
        if not any(each in str(error) for each in kind.named or (path.name,)):
            return f"without the file's name: {type(error).__name__}: {error}"
        return "refused" if expected != GOOD else f"refused, and is good: {error}"
    wanted = good if expected in (GOOD, EITHER) else expected
    return "right" if found == wanted or expected == ANYTHING else f"wrong without a word: {found}"


# What any file can suffer


def edit(change: Callable[[bytes], bytes]) -> Callable[[Path], Any]:
    """Return what changes a file's bytes."""
    return lambda path: path.write_bytes(change(path.read_bytes()))


def swap(old: str, new: str, times: int = -1) -> Callable[[Path], Any]:
    """Return what replaces a part of a text, which must be there."""

    def change(content: bytes) -> bytes:
        assert old.encode() in content, old
        return content.replace(old.encode(), new.encode(), times)

    return edit(change)


def instead(make: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Return what puts something else in the place of a file."""

    def spoil(path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make(path)

    return spoil


def cut(share: float) -> Callable[[Path], Any]:
    """Return what leaves the first part of a file."""
    return edit(lambda content: content[: int(len(content) * share)])


def junk_at(share: float) -> Callable[[Path], Any]:
    """Return what writes noise over a part of a file."""

    def change(content: bytes) -> bytes:
        at, size = int(len(content) * share), max(8, len(content) // 10)
        return content[:at] + JUNK[:size] + content[at + size :]

    return edit(change)


ANY: dict[str, Damage] = {
    "not there": (Path.unlink, ERROR),
    "empty": (edit(lambda content: b""), ERROR),
    "noise": (edit(lambda content: JUNK), ERROR),
    "a folder": (instead(Path.mkdir), ERROR),
    "a link to nothing": (instead(lambda path: path.symlink_to("/nowhere/at/all")), ERROR),
    "may not be read": (lambda path: path.chmod(0), ERROR),
}

TEXT: dict[str, Damage] = {
    "UTF-16": (edit(lambda content: content.decode().encode("utf-16")), ERROR),
    "a mark of UTF-8": (edit(lambda content: b"\xef\xbb\xbf" + content), GOOD),
    "lines end as on Windows": (edit(lambda content: content.replace(b"\n", b"\r\n")), GOOD),
    "empty lines": (edit(lambda content: content.replace(b"\n", b"\n\n")), GOOD),
    "a NUL within": (edit(lambda content: content[:-9] + b"\0" + content[-9:]), ERROR),
    "a byte of Latin 1": (edit(lambda content: content[:-9] + b"\xe9" + content[-9:]), ERROR),
}

BINARY: dict[str, Damage] = {
    "the last byte cut": (edit(lambda content: content[:-1]), EITHER),
    "half cut": (cut(0.5), ERROR),
    "the first byte cut": (edit(lambda content: content[1:]), ERROR),
    "noise in the middle": (junk_at(0.5), EITHER),
}


def of_table(header: str, column: str, row: str, first: str, last: str) -> dict[str, Damage]:
    """Return what a table of text can suffer: ``row`` is one, with its first and its last cell."""
    body = row.removeprefix(first).removesuffix(last)
    return {
        "no header": (swap(header + "\n", ""), ERROR),
        "a column is missing": (swap(column, "other", 1), ERROR),
        "a column is there twice": (swap(header, f"{header},{column}", 1), ERROR),
        "a column more": (
            edit(lambda content: "".join(f"{line},more\n" for line in
                                         content.decode().splitlines()).encode()), GOOD,
        ),
        "a cell too many": (swap(row, f"{row},more"), ERROR),
        "a row cut off": (swap(row, first), ERROR),
        "a stray quotation mark": (swap(row, f'"{row}'), ERROR),
        "quoted cells": (swap(row, f'"{first}"{body}{last}'), GOOD),
        "semicolons": (edit(lambda content: content.replace(b",", b";")), ERROR),
    }  # fmt: skip


def text_file(name: str, content: str) -> Callable[[Path], Path]:
    """Return what writes a file of text into a folder."""

    def write(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    return write


# FairFace


def as_parquet(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def of_parquet(make: Callable[[pyarrow.Table], Any]) -> Callable[[Path], Any]:
    """Return what writes a parquet file anew."""

    def spoil(path: Path) -> None:
        table = make(pyarrow.parquet.read_table(path))
        table = table if isinstance(table, pyarrow.Table) else pyarrow.table(table)
        pyarrow.parquet.write_table(table, path)

    return spoil


def as_jpeg(number: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (number * 20, 0, 0)).save(stream, "JPEG")
    return stream.getvalue()


def read_portraits(folder: Path) -> list:
    found = datasets.read_fairface(folder)
    return found[["age", "gender", "race", "sha256"]].to_numpy().tolist()


def write_hub(folder: Path) -> Path:
    (folder / "0.25").mkdir()
    columns = {"age": [0, 3], "gender": [0, 1], "race": [3, 2], "service_test": [True, False]}
    pictures = [{"bytes": as_jpeg(number), "path": None} for number in (1, 2)]
    return as_parquet(folder / "0.25" / "train-0.parquet", image=pictures, **columns)


def column(name: str, values: Any) -> Callable[[Path], Any]:
    return of_parquet(lambda t: t.set_column(t.schema.get_field_index(name), name, [values]))


HUB_DAMAGES: dict[str, Damage] = {
    "no column of labels": (of_parquet(lambda t: t.drop_columns(["race"])), ERROR),
    "labels twice": (of_parquet(lambda t: t.append_column("race", t["race"])), ERROR),
    "no rows": (of_parquet(lambda t: t.slice(0, 0)), ERROR),
    "a label that is null": (column("race", [None, 2]), ERROR),
    "a label that is NaN": (column("race", [float("nan"), 2.0]), ERROR),
    "labels in words": (column("race", ["White", "Black"]), EITHER),
    "a class below 0": (column("race", [-1, 2]), ERROR),
    "a class too many": (column("race", [7, 2]), ERROR),
    "a picture that is null": (column("image", [None, {"bytes": b"", "path": None}]), ERROR),
    "pictures as text": (column("image", ["1.jpg", "2.jpg"]), ERROR),
}


# VLStereoSet

STEREO_HEADER = (
    "bias_type,target,context,stereotype,anti-stereotype,unrelated,label,Imaeg URL,remark,"
)
STEREO_ROW = (
    "gender,sister{0},My sister{0} is  today.,My sister{0} is tall today.,"
    "My sister{0} is small today.,My sister{0} is soup today.,{1},https://example.org/{0}.jpg,,"
)
STEREO = [STEREO_ROW.format(number, number % 2) for number in range(1, 5)]


write_stereo = text_file(vlstereoset.FILE, "\n".join([STEREO_HEADER, *STEREO, ""]))


def read_stereo(path: Path) -> list:
    return vlstereoset.read(path).table.drop(columns="row").to_numpy().tolist()


STEREO_DAMAGES: dict[str, Damage] = of_table(
    STEREO_HEADER, "target", STEREO[1], "gender", "https://example.org/2.jpg,,"
) | {
    "a label of 2": (swap("today.,1,", "today.,2,", 1), ERROR),
    "an empty caption": (swap("My sister1 is soup today.", ""), ERROR),
    "two equal captions": (swap("sister1 is soup", "sister1 is tall"), ERROR),
}
STEREO_DAMAGES.pop("a column is there twice")


# Grounded tests


def of_images(names: list[str]) -> dict:
    """Return a test with four images as the authors' files have it."""
    one, two, three, four = names
    return {
        "test_name": "weat6", "dataset": "concap", "dataset_dir": "weat6",
        "test_types": ["word"], "contextual_words": ["John", "Amy", "office", "home"],
        "targ1": {"category": "M", "captions": {"0": "John"}, "images": {one: [0]}},
        "targ2": {"category": "F", "captions": {"0": "Amy"}, "images": {two: [0]}},
        "attr1": {"category": "C", "captions": {"0": "office"},
                  "M_Images": {three: [0]}, "F_Images": {four: [0]}},
        "attr2": {"category": "H", "captions": {"0": "home"},
                  "M_Images": {three: [0]}, "F_Images": {four: [0]}},
    }  # fmt: skip


IMAGES = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
write_grounded = text_file("weat6.jsonl", json.dumps(of_images(IMAGES), indent=1) + "\n")


def read_grounded(path: Path) -> list:
    test = datasets.grounded_test(path)
    datasets.require_sound(test.problems, path.name)
    return [test.name, test.levels, test.labels, test.pairs.to_numpy().tolist()]


def said_instead(**changes: Any) -> Callable[[Path], Any]:
    return edit(lambda content: json.dumps(json.loads(content) | changes).encode())


GROUNDED_DAMAGES: dict[str, Damage] = {
    "half cut": (cut(0.5), ERROR),
    "a list": (edit(lambda content: b"[" + content + b"]"), ERROR),
    "a key is missing": (swap('"targ2"', '"targ3"'), ERROR),
    "a key more": (swap('"test_name"', '"more": 1, "test_name"'), GOOD),
    "a caption twice": (swap('"0": "John"', '"0": "Paul", "0": "John"'), ERROR),
    "a part twice": (swap('"targ1"', '"targ1": {}, "targ1"'), ERROR),
    "NaN": (swap('"a.jpg": [\n    0', '"a.jpg": [\n    NaN'), ERROR),
    "a number below 0": (swap("[\n    0", "[\n    -1", 1), ERROR),
    "a number that no caption has": (swap("[\n    0", "[\n    7", 1), ERROR),
    "captions that are a list": (swap('{\n   "0": "John"\n  }', '["John"]'), ERROR),
    "types that nobody knows": (said_instead(test_types=["words"]), ERROR),
}


# Regions

BOXES = {"a": [[0, 0, 64, 48], [16, 12, 32, 24]], "b": [[5, 5, 10, 10]]}


def arrays(name: str) -> dict[str, np.ndarray]:
    boxes = np.array(BOXES[name], np.float32)
    features = np.arange(len(boxes) * 8, dtype=np.float32).reshape(-1, 8)
    return {"x": features, "bbox": boxes, "num_bbox": len(boxes), "image_w": 64, "image_h": 48}


def of_regions(found: RegionFeatures) -> list:
    return [getattr(found, name).tolist() for name in ("features", "boxes", "real", "sizes")]


def row_of(name: str, **changes: Any) -> str:
    said = arrays(name) | changes
    n = len(said["bbox"])
    cells = [np.arange(n), np.full(n, 0.5, np.float32), np.arange(n), np.full(n, 0.5, np.float32)]
    cells = [as_text(each) for each in cells]
    last = [str(said["num_bbox"]), as_text(said["bbox"]), as_text(said["x"])]
    return "\t".join([name, str(said["image_h"]), str(said["image_w"]), *cells, *last]) + "\n"


def as_text(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


write_tsv = text_file("regions.tsv", row_of("a") + row_of("b"))


def read_one_file(path: Path) -> list:
    return of_regions(region_files.read(path, ["a", "b"], width=8))


def tsv(**changes: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_text(row_of("a", **changes) + row_of("b"))


X, BBOX = arrays("a")["x"], arrays("a")["bbox"]
TSV_DAMAGES: dict[str, Damage] = {
    "features that are NaN": (tsv(x=X * np.nan), ERROR),
    "boxes turned round": (tsv(bbox=BBOX[:, [2, 3, 0, 1]]), ERROR),
    "fewer regions than said": (tsv(num_bbox=3), ERROR),
    "features too narrow": (tsv(x=X[:, :7]), ERROR),
    "a mark of UTF-8": (TEXT["a mark of UTF-8"][0], EITHER),
    "half cut": (cut(0.5), ERROR),
    "a picture twice": (edit(lambda content: content + row_of("a").encode()), ERROR),
    "a picture missing": (lambda path: path.write_text(row_of("a")), ERROR),
    "a cell too few": (swap("\t48\t", "\t", 1), ERROR),
    "a heading": (edit(lambda content: b"image_id\timage_h\timage_w\n" + content), EITHER),
    "no base64": (swap(as_text(arrays("b")["bbox"]), "%%%%"), ERROR),
    "a width that is NaN": (swap("\t64\t", "\tnan\t", 1), ERROR),
    "a width beyond all numbers": (swap("\t64\t", f"\t{10**30}\t", 1), ERROR),
    "numbers of another size": (tsv(x=X.astype(np.float64)), ERROR),
}  # fmt: skip


def whole() -> RegionFeatures:
    boxes = [[[0, 0, 1, 1], [0.25, 0.25, 0.5, 0.5]], [[0, 0, 0.5, 0.5], [0, 0, 0, 0]]]
    features = np.arange(32, dtype=np.float32).reshape(2, 2, 8)
    real = [[True, True], [True, False]]
    return RegionFeatures(features, boxes, real, np.zeros((2, 2), bool), [[64, 48], [64, 48]])


def write_ours(folder: Path) -> Path:
    path = folder / "regions.safetensors"
    region_files.write(path, whole(), ["a", "b"])
    return path


def with_ids(ids: str) -> Callable[[Path], Any]:
    return lambda path: save_file(load_file(path), path, {"ids": ids})


OURS_DAMAGES: dict[str, Damage] = {
    "ids that are no JSON": (with_ids("a, b"), ERROR),
    "too few ids": (with_ids('["a"]'), ERROR),
    "an id twice": (with_ids('["a", "a"]'), ERROR),
}


# Pictures


def picture(ending: str, **options: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"a.{ending}", **options)
        return folder / f"a.{ending}"

    return write


def read_picture(path: Path) -> list:
    return np.asarray(images.open_image(path)).tolist()


PICTURE_DAMAGES: dict[str, Damage] = {
    "noise in the middle": (junk_at(0.5), ANYTHING),
    "a drawing that is a program": (edit(lambda content: b"%!PS-Adobe-3.0 EPSF-3.0\n"), ERROR),
    "a named pipe": (instead(os.mkfifo), ERROR),
}


DATA, REGIONS = (datasets.DataError,), (region_files.FeatureFileError,)

FORMATS: dict[str, Format] = {
    "FairFace": Format(
        write_hub, lambda path: read_portraits(path.parents[1]), DATA, False, HUB_DAMAGES,
        ("train-0.parquet", "0.25/train-*.parquet", "train-0/"),
    ),
    "VLStereoSet": Format(
        write_stereo, read_stereo, (*DATA, FileNotFoundError), True, STEREO_DAMAGES
    ),
    "grounded test": Format(write_grounded, read_grounded, DATA, True, GROUNDED_DAMAGES),
    "regions, tsv": Format(write_tsv, read_one_file, REGIONS, True, TSV_DAMAGES),
    "regions, safetensors": Format(write_ours, read_one_file, REGIONS, False, OURS_DAMAGES),
    **{
        f"picture, {ending}": Format(
            picture(ending), read_picture, (images.ImageError,), False, PICTURE_DAMAGES
        )
        for ending in ("jpg", "png", "webp", "tiff")
    },
}  # fmt: skip
