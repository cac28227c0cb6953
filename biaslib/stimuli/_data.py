"""The data files of the association tests, read once; ``tests/test_stimuli.py`` checks them."""

import functools
import importlib.resources
import json

import pandas

from biaslib.runtime import source_hash

ROLES = ("X", "Y", "A", "B")
"""Target sets X and Y, attribute sets A and B."""


@functools.cache
def read_json(name: str) -> list | dict:
    """Return the content of a JSON file of ``biaslib/stimuli/data``."""
    return json.loads(_file(name).read_text(encoding="utf-8"))


@functools.cache
def catalogue() -> dict[str, dict]:
    """Return the tests by name."""
    return {row["name"]: row for row in read_json("tests.json")}


@functools.cache
def set_frame() -> pandas.DataFrame:
    """Return what each set holds and its source, by set."""
    return read_csv("sets.csv").set_index("set")


@functools.cache
def word_frame() -> pandas.DataFrame:
    """Return the words of all sets: columns set, word, kind."""
    return read_csv("words.csv")


@functools.cache
def word_set(name: str) -> tuple[tuple[str, str], ...]:
    """Return the words of one set, each with its kind."""
    frame = word_frame()
    rows = frame[frame["set"] == name]
    return tuple(zip(rows["word"], rows["kind"], strict=True))


def data_checksum() -> str:
    """Return 12 hexadecimal digits that change whenever a word list or template changes.

    Examples
    --------
    >>> len(data_checksum())
    12
    """
    return source_hash(str(_file("")))


def _file(name: str):
    return importlib.resources.files("biaslib.stimuli") / "data" / name


def read_csv(name: str) -> pandas.DataFrame:
    """Return a table of ``biaslib/stimuli/data``, every cell as text and never as a gap."""
    with _file(name).open(encoding="utf-8") as stream:
        return pandas.read_csv(stream, dtype=str, keep_default_na=False)
