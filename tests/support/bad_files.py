"""Bad files: a small good file of every format that users bring, and what can be wrong with it.

A case is right if the reader gives what the good file holds, where the damage takes nothing away,
or one of the package's own errors with the file's name in it.
"""

import base64
import contextlib
import io
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image
from safetensors.numpy import load_file, save_file

from biaslib import datasets, stimuli
from biaslib.datasets import captions, ross2021, vlstereoset
from biaslib.errors import InputError
from biaslib.pictures import images, region_files
from biaslib.pictures.regions import RegionFeatures
from biaslib.runtime import Store

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
    "NULs only": (edit(lambda content: b"\0" * len(content)), ERROR),
    "NULs at the end": (edit(lambda content: content + b"\0" * 64), EITHER),
    "a page of the web": (edit(lambda content: b"<!DOCTYPE html>\n<p>404</p>\n"), ERROR),
    "a folder": (instead(Path.mkdir), ERROR),
    "a link to itself": (instead(lambda path: path.symlink_to(path)), ERROR),
    "a link to nothing": (instead(lambda path: path.symlink_to("/nowhere/at/all")), ERROR),
    "may not be read": (lambda path: path.chmod(0), ERROR),
}

TEXT: dict[str, Damage] = {
    "UTF-16": (edit(lambda content: content.decode().encode("utf-16")), ERROR),
    "UTF-16 without a mark": (edit(lambda content: content.decode().encode("utf-16-le")), ERROR),
    "UTF-32": (edit(lambda content: content.decode().encode("utf-32")), ERROR),
    "a mark of UTF-8": (edit(lambda content: b"\xef\xbb\xbf" + content), GOOD),
    "lines end as on Windows": (edit(lambda content: content.replace(b"\n", b"\r\n")), GOOD),
    "lines end as on an old Mac": (edit(lambda content: content.replace(b"\n", b"\r")), GOOD),
    "empty lines": (edit(lambda content: content.replace(b"\n", b"\n\n")), GOOD),
    "a NUL within": (edit(lambda content: content[:-9] + b"\0" + content[-9:]), ERROR),
    "a byte of Latin 1": (edit(lambda content: content[:-9] + b"\xe9" + content[-9:]), ERROR),
    "NULs at the end": (edit(lambda content: content + b"\0" * 64), ERROR),
}

BINARY: dict[str, Damage] = {
    "the last byte cut": (edit(lambda content: content[:-1]), EITHER),
    "a tenth left": (cut(0.1), ERROR),
    "half cut": (cut(0.5), ERROR),
    "three quarters left": (cut(0.75), EITHER),
    "the first byte cut": (edit(lambda content: content[1:]), ERROR),
    "noise at the head": (junk_at(0), EITHER),
    "noise in the middle": (junk_at(0.5), EITHER),
    "noise at the end": (junk_at(0.9), EITHER),
}

LONG = "x" * 200_000
"""More than the csv module takes in a cell."""


def of_table(header: str, column: str, row: str, first: str, last: str) -> dict[str, Damage]:
    """Return what a table of text can suffer: ``row`` is one, with its first and its last cell."""
    body = row.removeprefix(first).removesuffix(last)
    lines = header.count(",") * ","
    return {
        "only a header": (edit(lambda content: header.encode() + b"\n"), ERROR),
        "no header": (swap(header + "\n", ""), ERROR),
        "a column is missing": (swap(column, "other", 1), ERROR),
        "a column is there twice": (swap(header, f"{header},{column}", 1), ERROR),
        "a column twice, its cells too": (
            edit(lambda content: doubled(content.decode(), header, column).encode()), ERROR,
        ),
        "a column more": (
            edit(lambda content: "".join(f"{line},more\n" for line in
                                         content.decode().splitlines()).encode()), GOOD,
        ),
        "a cell too many": (swap(row, f"{row},more"), ERROR),
        "a cell too many in every row": (
            edit(lambda content: "\n".join(
                line if line == header else f"x,{line}"
                for line in content.decode().splitlines()).encode()), ERROR,
        ),
        "a row cut off": (swap(row, first), ERROR),
        "a row of empty cells": (swap(row, f"{row}\n{lines}"), ERROR),
        "a stray quotation mark": (swap(row, f'"{row}'), ERROR),
        "a stray quotation mark at the end": (
            swap(row, f'{first}{body}"{last}'), ERROR,
        ),
        "two stray quotation marks": (
            edit(lambda content: content
                 + f'{first}{body}"{last}\n{first}{body}{last}"\n'.encode()),
            ERROR,
        ),
        "quoted cells": (swap(row, f'"{first}"{body}{last}'), GOOD),
        "a cell over two lines": (swap(row, f'{first}{body}"{last}\n"'), ERROR),
        "a line too long": (swap(row, f"{first}{body}{LONG}"), ERROR),
        "semicolons": (edit(lambda content: content.replace(b",", b";")), ERROR),
        "tabs": (edit(lambda content: content.replace(b",", b"\t")), ERROR),
    }  # fmt: skip


def doubled(text: str, header: str, column: str) -> str:
    """Return a table that holds a column a second time, with its name."""
    return "".join(f"{line},{column if line == header else 'more'}\n" for line in text.splitlines())


def text_file(name: str, content: str) -> Callable[[Path], Path]:
    """Return what writes a file of text into a folder."""

    def write(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    return write


# Captions


def write_captions(folder: Path) -> Path:
    return as_parquet(folder / "part.parquet", TEXT=["her nurse", "his nurse", None, "a nurse"])


def read_captions(path: Path) -> list:
    found = captions.group_counts(path, ["nurse"], threads=1)
    return [found.attrs["rows"], found.attrs["nulls"], *found.iloc[0, 1:].tolist()]


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


def no_utf8() -> pyarrow.Array:
    values = pyarrow.array([b"her nurse", b"his nurse \xff"])
    return pyarrow.Array.from_buffers(pyarrow.string(), 2, values.buffers())


TWICE = ["TEXT", "TEXT"]
CAPTION_DAMAGES: dict[str, Damage] = {
    "no column of captions": (of_parquet(lambda t: t.rename_columns(["words"])), ERROR),
    "captions twice": (
        of_parquet(lambda t: pyarrow.Table.from_arrays([t["TEXT"], t["TEXT"]], names=TWICE)), ERROR,
    ),
    "a column more": (of_parquet(lambda t: t.append_column("more", [[1, 2, 3, 4]])), GOOD),
    "large text": (of_parquet(lambda t: {"TEXT": t["TEXT"].cast("large_string")}), GOOD),
    "text by numbers": (of_parquet(lambda t: {"TEXT": t["TEXT"].dictionary_encode()}), GOOD),
    "numbers": (of_parquet(lambda t: {"TEXT": [1, 2, 3, 4]}), ERROR),
    "bytes": (of_parquet(lambda t: {"TEXT": t["TEXT"].cast("binary")}), GOOD),
    "lists": (of_parquet(lambda t: {"TEXT": [["her nurse"], []]}), ERROR),
    "a column within another": (of_parquet(lambda t: {"row": [{"TEXT": "her nurse"}]}), ERROR),
    "captions that are objects": (of_parquet(lambda t: {"TEXT": [{"TEXT": "nurse"}]}), ERROR),
    "nulls of no kind": (of_parquet(lambda t: {"TEXT": pyarrow.nulls(4)}), ERROR),
    "nulls only": (of_parquet(lambda t: {"TEXT": pyarrow.nulls(4, "string")}), ERROR),
    "no rows": (of_parquet(lambda t: t.slice(0, 0)), ERROR),
    "no columns": (of_parquet(lambda t: t.select([])), ERROR),
    "no UTF-8": (of_parquet(lambda t: {"TEXT": no_utf8()}), ERROR),
    "a table of text": (edit(lambda content: b"TEXT\nher nurse\n"), ERROR),
}  # fmt: skip


# FairFace


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


def said(metadata: Any) -> Callable[[Path], Any]:
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    return of_parquet(lambda t: t.replace_schema_metadata({"huggingface": text}))


def column(name: str, values: Any) -> Callable[[Path], Any]:
    return of_parquet(lambda t: t.set_column(t.schema.get_field_index(name), name, [values]))


def names_of(**names: Any) -> dict:
    return {"info": {"features": {name: {"names": each} for name, each in names.items()}}}


HUB_DAMAGES: dict[str, Damage] = {
    "no column of labels": (of_parquet(lambda t: t.drop_columns(["race"])), ERROR),
    "no pictures": (of_parquet(lambda t: t.drop_columns(["image"])), ERROR),
    "labels twice": (of_parquet(lambda t: t.append_column("race", t["race"])), ERROR),
    "a column more": (of_parquet(lambda t: t.append_column("more", t["race"])), GOOD),
    "no rows": (of_parquet(lambda t: t.slice(0, 0)), ERROR),
    "a label that is null": (column("race", [None, 2]), ERROR),
    "a label that is NaN": (column("race", [float("nan"), 2.0]), ERROR),
    "labels in words": (column("race", ["White", "Black"]), EITHER),
    "labels that are lists": (column("race", [[3], [2]]), ERROR),
    "labels that are true or false": (column("race", [True, False]), ERROR),
    "labels that are no UTF-8": (column("race", no_utf8()), ERROR),
    "a class below 0": (column("race", [-1, 2]), ERROR),
    "a class too many": (column("race", [7, 2]), ERROR),
    "a picture that is null": (column("image", [None, {"bytes": b"", "path": None}]), ERROR),
    "a picture without bytes": (column("image", [{"bytes": b"", "path": "a"}] * 2), ERROR),
    "pictures as bytes": (column("image", [as_jpeg(1), as_jpeg(2)]), EITHER),
    "pictures as text": (column("image", ["1.jpg", "2.jpg"]), ERROR),
    "pictures without a path": (column("image", [{"bytes": as_jpeg(n)} for n in (1, 2)]), EITHER),
    "pictures without bytes": (column("image", [{"path": "1.jpg"}, {"path": "2.jpg"}]), ERROR),
    "a description that is cut off": (said('{"info": {"fea'), ERROR),
    "a description that is a list": (said([1, 2]), ERROR),
    "a description of another shape": (said({"info": [{"features": 3}]}), ERROR),
    "class names that are a number": (said(names_of(race=7)), ERROR),
    "too few class names": (said(names_of(race=["White", "Black"])), ERROR),
    "class names that nobody knows": (said(names_of(race=list("abcdefg"))), ERROR),
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
    "a label that is no number": (swap("today.,1,", "today.,NaN,", 1), ERROR),
    "a label of 2": (swap("today.,1,", "today.,2,", 1), ERROR),
    "a label with a dot": (swap("today.,1,", "today.,1.0,", 1), ERROR),
    "an empty caption": (swap("My sister1 is soup today.", ""), ERROR),
    "two equal captions": (swap("sister1 is soup", "sister1 is tall"), ERROR),
    "half a row": (edit(lambda content: content[: -len(STEREO[-1]) // 2]), ERROR),
}
STEREO_DAMAGES.pop("a column is there twice")
STEREO_DAMAGES["a stray quotation mark at the end"] = (
    swap("https://example.org/2.jpg", '"https://example.org/2.jpg'), ERROR,
)  # fmt: skip


# The lists of Ross, Katz and Barbu

LINES = [
    f"wget --tries=2 -O a_{number}.jpg https://example.org/{number}.jpg" for number in range(4)
]


def write_list(folder: Path) -> Path:
    path = folder / "data" / "google-images" / "weat6" / "targ1" / "get.sh"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([*LINES, ""]))
    other = folder / "data" / "google-images" / "weat6" / "targ2" / "get.sh"
    other.parent.mkdir()
    other.write_text(LINES[0] + "\n")
    return path


def read_list(path: Path) -> list:
    found, problems = ross2021.links(path.parents[4], "google")
    datasets.require_sound(problems, "the lists")
    return found[["file", "url"]].to_numpy().tolist()


def line(new: str) -> Callable[[Path], Any]:
    return swap(LINES[1], new)


LIST_DAMAGES: dict[str, Damage] = {
    "a quoted name": (line('wget -O "a_1.jpg" https://example.org/1.jpg'), GOOD),
    "quotes within a word": (line("wget -O a'_1'.jpg https://example.org/1.jpg"), GOOD),
    "a quoted address": (line("wget -O a_1.jpg 'https://example.org/1.jpg'"), GOOD),
    "the address first": (line("wget https://example.org/1.jpg -O a_1.jpg"), GOOD),
    "many spaces": (line("  wget   -O\ta_1.jpg    https://example.org/1.jpg  "), GOOD),
    "a name with a space": (line("wget -O a_1.jpg b.jpg https://example.org/1.jpg"), ERROR),
    "a quotation mark that is open": (line("wget -O 'a_1.jpg https://example.org/1.jpg"), ERROR),
    "quotation marks over two lines": (line("wget -O 'a_1\n.jpg' https://a.org/1.jpg"), ERROR),
    "a line that goes on": (line("wget -O a_1.jpg \\\nhttps://example.org/1.jpg"), ERROR),
    "no name": (line("wget https://example.org/1.jpg"), ERROR),
    "an empty name": (line("wget -O '' https://example.org/1.jpg"), ERROR),
    "the name of a folder": (line("wget -O .. https://example.org/1.jpg"), ERROR),
    "a path": (line("wget -O ../a_1.jpg https://example.org/1.jpg"), ERROR),
    "no file but the screen": (line("wget -O - https://example.org/1.jpg"), ERROR),
    "no address": (line("wget -O a_1.jpg"), ERROR),
    "two addresses": (line("wget -O a_1.jpg https://a.org/1.jpg https://b.org/1.jpg"), ERROR),
    "no address but a word": (line("wget -O a_1.jpg example"), ERROR),
    "a second command": (line(LINES[1] + "; sleep 3"), ERROR),
    "a semicolon": (line(LINES[1] + ";"), ERROR),
    "another program": (line("curl -o a_1.jpg https://example.org/1.jpg"), ERROR),
    "a name twice": (line(LINES[0]), ERROR),
}

GCC = [f"a caption\thttps://example.org/{number}.jpg" for number in range(4)]


def write_gcc(folder: Path) -> Path:
    names = [str(zlib.crc32(each.rpartition("\t")[2].encode())) for each in GCC]
    place = folder / "tests" / "grounded-tests" / "concap"
    place.mkdir(parents=True)
    (place / "weat6.jsonl").write_text(json.dumps(of_images(names)))
    path = folder / ross2021.CAPTIONS
    path.write_text("\n".join([*GCC, ""]))
    return path


def read_gcc(path: Path) -> list:
    found, problems = ross2021.links(path.parent, "concap")
    datasets.require_sound(problems, f"what {path.name} lists")
    return found[["file", "url"]].to_numpy().tolist()


GCC_DAMAGES: dict[str, Damage] = {
    "another address": (swap("/2.jpg", "/9.jpg"), ERROR),
    "no tabs": (swap("\t", " "), ERROR),
    "commas": (swap("\t", ","), ERROR),
    "an end within an address": (edit(lambda content: content[:-4]), ERROR),
    "a quotation mark": (swap("a caption\t", '"a caption\t', 1), GOOD),
}


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
    "the last brace cut": (edit(lambda content: content.rstrip()[:-1]), ERROR),
    "two objects": (edit(lambda content: content + content), ERROR),
    "a list": (edit(lambda content: b"[" + content + b"]"), ERROR),
    "a number": (edit(lambda content: b"3"), ERROR),
    "null": (edit(lambda content: b"null"), ERROR),
    "a key is missing": (swap('"targ2"', '"targ3"'), ERROR),
    "a key more": (swap('"test_name"', '"more": 1, "test_name"'), GOOD),
    "a key twice": (swap('"test_name"', '"test_name": "weat7", "test_name"'), ERROR),
    "a caption twice": (swap('"0": "John"', '"0": "Paul", "0": "John"'), ERROR),
    "a caption's number twice": (swap('"0": "John"', '"00": "Paul", "0": "John"'), ERROR),
    "a part twice": (swap('"targ1"', '"targ1": {}, "targ1"'), ERROR),
    "NaN": (swap('"a.jpg": [\n    0', '"a.jpg": [\n    NaN'), ERROR),
    "infinity": (swap('"a.jpg": [\n    0', '"a.jpg": [\n    1e999'), ERROR),
    "NaN where nobody looks": (swap('"test_name"', '"more": NaN, "test_name"'), ERROR),
    "a number with too many digits": (swap("[\n    0", "[\n    " + "9" * 5000, 1), ERROR),
    "brackets too deep": (edit(lambda content: b"[" * 100_000), ERROR),
    "a number below 0": (swap("[\n    0", "[\n    -1", 1), ERROR),
    "a number that no caption has": (swap("[\n    0", "[\n    7", 1), ERROR),
    "true for a number": (swap("[\n    0", "[\n    true", 1), ERROR),
    "captions that are a list": (swap('{\n   "0": "John"\n  }', '["John"]'), ERROR),
    "images that are a list": (swap('"images": {', '"images": ["a.jpg"], "others": {', 1), ERROR),
    "a caption that is null": (swap('"John"\n  }', "null\n  }", 1), ERROR),
    "types that are text": (said_instead(test_types="word"), ERROR),
    "types that nobody knows": (said_instead(test_types=["words"]), ERROR),
    "single quotes": (edit(lambda content: content.replace(b'"', b"'")), ERROR),
    "a comma too many": (edit(lambda content: content.rstrip()[:-1] + b",}"), ERROR),
}


# Lists of entities

ENTITIES = (
    "entity,frame,stereotype\n"
    "kettle,The {agent} is holding a {entity}.,women\n"
    "ladder,The {agent} is climbing a {entity}.,men\n"
    "lamp,The {agent} is lighting a {entity}.,\n"
)


write_entities = text_file("mine.csv", ENTITIES)


def read_entities(path: Path) -> list:
    return stimuli.own_entities(path).to_numpy().tolist()


LADDER = "ladder,The {agent} is climbing a {entity}.,men"
ENTITIES_DAMAGES: dict[str, Damage] = of_table(
    "entity,frame,stereotype", "frame", LADDER, "ladder", "men"
) | {
    "an entity twice": (swap("lamp,", "ladder,"), ERROR),
    "no entity": (swap("lamp,", ","), ERROR),
    "no frame": (swap("The {agent} is climbing a {entity}.", ""), ERROR),
    "a frame without a place": (swap("climbing a {entity}", "climbing"), ERROR),
    "a frame with a place twice": (swap("climbing a {entity}", "{entity} a {entity}"), ERROR),
    "a frame with another place": (swap("climbing a", "climbing {a}"), ERROR),
    "a frame with an open brace": (swap("climbing a", "climbing { a"), ERROR),
    "an unknown stereotype": (swap(",men", ",people"), ERROR),
}


# Regions

BOXES = {"a": [[0, 0, 64, 48], [16, 12, 32, 24]], "b": [[5, 5, 10, 10]]}


def arrays(name: str) -> dict[str, np.ndarray]:
    boxes = np.array(BOXES[name], np.float32)
    features = np.arange(len(boxes) * 8, dtype=np.float32).reshape(-1, 8)
    return {"x": features, "bbox": boxes, "num_bbox": len(boxes), "image_w": 64, "image_h": 48}


def of_regions(found: RegionFeatures) -> list:
    return [getattr(found, name).tolist() for name in ("features", "boxes", "real", "sizes")]


def wrong_features(of: Callable[..., Callable[[Path], Any]]) -> dict[str, Damage]:
    """Return features and boxes that no model can read, of any format."""
    x, bbox = arrays("a")["x"], arrays("a")["bbox"]
    return {
        "features that are NaN": (of(x=x * np.nan), ERROR),
        "features that are infinite": (of(x=x + np.inf), ERROR),
        "boxes that are NaN": (of(bbox=np.full_like(bbox, np.nan)), ERROR),
        "boxes that are infinite": (of(bbox=np.full_like(bbox, np.inf)), ERROR),
        "boxes turned round": (of(bbox=bbox[:, [2, 3, 0, 1]]), ERROR),
        "boxes outside": (of(bbox=bbox * 3), ERROR),
        "boxes below 0": (of(bbox=bbox - 10), ERROR),
        "a picture without width": (of(image_w=0), ERROR),
        "a picture of width below 0": (of(image_w=-64), ERROR),
        "a picture of width and height below 0": (of(image_w=-64, image_h=-48, bbox=-bbox), ERROR),
        "fewer regions than said": (of(num_bbox=3), ERROR),
        "regions below 0": (of(num_bbox=-1), ERROR),
        "no regions": (of(num_bbox=0, x=x[:0], bbox=bbox[:0]), ERROR),
        "features too narrow": (of(x=x[:, :7]), ERROR),
    }


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


TSV_DAMAGES: dict[str, Damage] = wrong_features(tsv) | {
    "a mark of UTF-8": (TEXT["a mark of UTF-8"][0], EITHER),
    "lines end as on an old Mac": (TEXT["lines end as on an old Mac"][0], EITHER),
    "half cut": (cut(0.5), ERROR),
    "the end cut": (edit(lambda content: content[:-3]), ERROR),
    "a picture twice": (edit(lambda content: content + row_of("a").encode()), ERROR),
    "a picture twice, with others": (
        lambda path: path.write_text(
            row_of("a", bbox=arrays("a")["bbox"] / 2) + row_of("b") + row_of("a")), ERROR,
    ),
    "a picture missing": (lambda path: path.write_text(row_of("a")), ERROR),
    "a cell too many": (swap("\t48\t", "\t48\t48\t", 1), ERROR),
    "a cell too few": (swap("\t48\t", "\t", 1), ERROR),
    "a heading": (edit(lambda content: b"image_id\timage_h\timage_w\n" + content), EITHER),
    "spaces for tabs": (swap("\t", " "), ERROR),
    "no base64": (swap(as_text(arrays("b")["bbox"]), "%%%%"), ERROR),
    "base64 with a letter less": (
        swap(as_text(arrays("b")["bbox"]), as_text(arrays("b")["bbox"])[1:]), ERROR,
    ),
    "a width in words": (swap("\t64\t", "\twide\t", 1), ERROR),
    "a width that is NaN": (swap("\t64\t", "\tnan\t", 1), ERROR),
    "a width with a dot": (swap("\t64\t", "\t64.0\t", 1), EITHER),
    "numbers of another size": (tsv(x=arrays("a")["x"].astype(np.float64)), ERROR),
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


def ours(metadata: dict | None = None, **changes: Any) -> Callable[[Path], Any]:
    """Return what writes our file with other arrays, or other ids."""

    def spoil(path: Path) -> None:
        ids = {"ids": '["a", "b"]'} if metadata is None else metadata
        found = {
            name: each for name, each in (load_file(path) | changes).items() if each is not None
        }
        save_file(found, path, ids)

    return spoil


def wrong_arrays() -> dict[str, Damage]:
    """Return arrays that do not fit each other."""
    good, of = whole(), ours
    return {
        "no boxes": (of(boxes=None), ERROR),
        "features that are NaN": (of(features=good.features * np.nan), ERROR),
        "boxes that are NaN": (of(boxes=good.boxes * np.nan), ERROR),
        "boxes outside": (of(boxes=good.boxes * 3), ERROR),
        "sizes of 0": (of(sizes=good.sizes * 0), ERROR),
        "sizes below 0": (of(sizes=-good.sizes), ERROR),
        "features of two axes": (of(features=good.features[0].copy()), ERROR),
        "boxes of another shape": (of(boxes=good.boxes[:, :1].copy()), ERROR),
        "a picture less": (of(real=good.real[:1].copy()), ERROR),
        "no numbers": (of(features=np.zeros(0, np.float32)), ERROR),
    }


OURS_DAMAGES: dict[str, Damage] = wrong_arrays() | {
    "no ids": (ours({"other": "x"}), ERROR),
    "ids that are no JSON": (ours({"ids": "a, b"}), ERROR),
    "ids that are an object": (ours({"ids": '{"a": 1, "b": 0}'}), ERROR),
    "ids that are text": (ours({"ids": '"ab"'}), ERROR),
    "ids that are numbers": (ours({"ids": "[0, 1]"}), ERROR),
    "too few ids": (ours({"ids": '["a"]'}), ERROR),
    "too many ids": (ours({"ids": '["a", "b", "c"]'}), ERROR),
    "an id twice": (ours({"ids": '["a", "a"]'}), ERROR),
    "class names that are no JSON": (ours({"ids": '["a", "b"]', "class_names": "{"}), ERROR),
    "class names that are a number": (ours({"ids": '["a", "b"]', "class_names": "3"}), ERROR),
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
    "noise at the end": (junk_at(0.9), ANYTHING),
    "a drawing that is a program": (edit(lambda content: b"%!PS-Adobe-3.0 EPSF-3.0\n"), ERROR),
    "a sound": (edit(lambda content: b"RIFF\x24\0\0\0WAVEfmt "), ERROR),
    "a named pipe": (instead(os.mkfifo), ERROR),
}


# Archives of the store


def write_archive(folder: Path) -> Path:
    store = Store(folder / "written")
    key = {"model": "clip", "revision": "1f2e", "output": "image"}
    store.rows(key, ["a"], lambda missing: np.ones((1, 2)))
    store.archive(folder / "kept.sqlite")
    return folder / "kept.sqlite"


def read_archive(path: Path) -> int:
    here = path.parent / "here"
    shutil.rmtree(here, ignore_errors=True)
    return Store(here).restore(path)


def in_tables(statement: str) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as tables, tables:
            tables.execute(statement)

    return spoil


ARCHIVE_DAMAGES: dict[str, Damage] = {
    "another table": (in_tables("create table notes (a)"), ERROR),
    "a view in place of a table": (in_tables("create view more as select * from rows"), ERROR),
    "a trigger": (
        in_tables("create trigger more after insert on rows begin delete from keys; end"), ERROR,
    ),
    "no keys": (in_tables("drop table keys"), ERROR),
}  # fmt: skip


DATA, REGIONS = (datasets.DataError,), (region_files.FeatureFileError,)

FORMATS: dict[str, Format] = {
    "captions": Format(write_captions, read_captions, DATA, False, CAPTION_DAMAGES),
    "FairFace": Format(
        write_hub, lambda path: read_portraits(path.parents[1]), DATA, False, HUB_DAMAGES,
        ("train-0.parquet", "0.25/train-*.parquet", "train-0/"),
    ),
    "VLStereoSet": Format(
        write_stereo, read_stereo, (*DATA, FileNotFoundError), True, STEREO_DAMAGES
    ),
    "list of links": Format(
        write_list, read_list, DATA, True, LIST_DAMAGES, ("weat6/targ1",)
    ),
    "Conceptual Captions": Format(write_gcc, read_gcc, DATA, True, GCC_DAMAGES),
    "grounded test": Format(write_grounded, read_grounded, DATA, True, GROUNDED_DAMAGES),
    "own entities": Format(
        write_entities, read_entities, (InputError, ValueError), True, ENTITIES_DAMAGES
    ),
    "regions, tsv": Format(write_tsv, read_one_file, REGIONS, True, TSV_DAMAGES),
    "regions, safetensors": Format(write_ours, read_one_file, REGIONS, False, OURS_DAMAGES),
    **{
        f"picture, {ending}": Format(
            picture(ending), read_picture, (images.ImageError,), False, PICTURE_DAMAGES
        )
        for ending in ("jpg", "png", "webp", "gif", "bmp", "tiff")
    },
    "archive": Format(
        write_archive, read_archive,
        (InputError,), False, ARCHIVE_DAMAGES,
    ),
}  # fmt: skip
