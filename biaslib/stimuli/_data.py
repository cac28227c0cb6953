"""The data files of the association tests, read once and checked."""

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
    """Return the tests by name, after :func:`check_tests`."""
    rows = read_json("tests.json")
    check_tests(pandas.DataFrame(rows), word_frame())
    return {row["name"]: row for row in rows}


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


def check_tests(tests: pandas.DataFrame, words: pandas.DataFrame) -> None:
    """Check that every test compares proper sets.

    No set is empty or holds a word twice; the target sets are of one size, as the permutation
    test needs; no word is in both target sets or in both attribute sets.

    Parameters
    ----------
    tests
        One row per test, with columns name, X, Y, A, B that name sets.
    words
        One row per word, with columns set and word.

    Raises
    ------
    ValueError
        If a check fails; the text names the test, the set and the word.

    Examples
    --------
    >>> tests = pandas.DataFrame([{"name": "T", "X": "x", "Y": "x", "A": "a", "B": "b"}])
    >>> words = pandas.DataFrame({"set": ["x", "a", "b"], "word": ["John", "work", "home"]})
    >>> check_tests(tests, words)
    Traceback (most recent call last):
    ValueError: test T: X (x) and Y (x) share the word 'John'
    """
    members = words.groupby("set")["word"].apply(list).to_dict()
    for test in tests.to_dict("records"):
        sets = {role: members.get(test[role], []) for role in ROLES}
        for role in ROLES:
            _check_set(sets[role], f"test {test['name']}: {role} ({test[role]})")
        _check_sizes(test, sets)
        _check_disjoint(test, sets, "X", "Y")
        _check_disjoint(test, sets, "A", "B")


def _check_set(words: list[str], where: str) -> None:
    if not words:
        raise ValueError(f"{where} holds no words")
    twice = [word for word in words if words.count(word) > 1]
    if twice:
        raise ValueError(f"{where} holds the word {twice[0]!r} twice")


def _check_sizes(test: dict, sets: dict[str, list[str]]) -> None:
    n_x, n_y = len(sets["X"]), len(sets["Y"])
    if n_x != n_y:
        raise ValueError(
            f"test {test['name']}: X ({test['X']}) has {n_x} words and Y ({test['Y']}) has {n_y}, "
            f"but target sets must be of one size; their last words are {sets['X'][-1]!r} "
            f"and {sets['Y'][-1]!r}"
        )


def _check_disjoint(test: dict, sets: dict[str, list[str]], one: str, other: str) -> None:
    shared = [word for word in sets[one] if word in sets[other]]
    if shared:
        raise ValueError(
            f"test {test['name']}: {one} ({test[one]}) and {other} ({test[other]}) "
            f"share the word {shared[0]!r}"
        )


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
    """Return the content of a CSV file of ``biaslib/stimuli/data``, every cell as text."""
    with _file(name).open(encoding="utf-8") as stream:
        return pandas.read_csv(stream, dtype=str, keep_default_na=False)
