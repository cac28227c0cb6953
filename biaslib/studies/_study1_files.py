"""The tests of study 1 on this disk: read, checked, and what is left of them."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas

from biaslib import datasets, runtime
from biaslib.datasets import ross2021
from biaslib.datasets._problems import problems
from biaslib.datasets.grounded_images import TEST_TYPES

SETS = ("X", "Y", "Ax", "Ay", "Bx", "By")

RELEASED = {
    "weat3": "C3",
    "weat6": "C6",
    "weat8": "C8",
    "weat11": "C11",
    "weat12": "C12",
    "weat13": "C13",
    "occ_gender": "occupation-gender",
    "occ_race": "occupation-race",
    "angry_black_woman_stereotype": "ABW",
    "heilman_gender_double_bind_competent_one_word": "DB-competent-gender",
    "heilman_gender_double_bind_competent_one_sentence": "DB-competent-gender",
    "heilman_gender_double_bind_likable_one_word": "DB-likeable-gender",
    "heilman_gender_double_bind_likable_one_sentence": "DB-likeable-gender",
    "heilman_race_double_bind_competent_one_word": "DB-competent-race",
    "heilman_race_double_bind_competent_one_sentence": "DB-competent-race",
    "heilman_race_double_bind_likable_one_word": "DB-likeable-race",
    "heilman_race_double_bind_likable_one_sentence": "DB-likeable-race",
}
"""What the released files call the tests, and what we do; most tests have ``sent-<name>`` too.

:meta hide-value:
"""

LEFT = ["source", "test", "file", "set", "n_images", "n_captions", "images_left", "captions_left"]
LEFT += ["share", "run"]
ASKED = ["source", "test", "level", "outcome"]
NOT_THERE = "not there"

Reading = tuple[str, Callable[[], datasets.GroundedTest], Path]
"""What a test is called in messages, how it is read, and the folder of its images."""


@dataclass(frozen=True)
class Checked:
    """Tests of a source of images: those that can be run, and tables about all.

    ``sound`` are tests with their sound pairs, at the levels at which none of the six sets is
    empty; ``problems``, ``left`` and ``asked`` are as of
    :class:`biaslib.studies.study1_grounded.Inputs`.
    """

    sound: list[tuple[datasets.GroundedTest, pandas.DataFrame]]
    problems: pandas.DataFrame
    left: pandas.DataFrame
    asked: pandas.DataFrame


def none_checked() -> Checked:
    """Return that nothing was checked, and nothing found wrong."""
    return Checked([], problems([]), *(pandas.DataFrame(columns=each) for each in (LEFT, ASKED)))


def joined(parts: Iterable[Checked]) -> Checked:
    """Return the tests of several files or sources as one."""
    parts, tables = list(parts), {}
    for name in ("problems", "left", "asked"):
        full = [table for each in parts if len(table := getattr(each, name))]
        empty = getattr(none_checked(), name)
        tables[name] = pandas.concat(full, ignore_index=True) if full else empty
    return Checked([pair for each in parts for pair in each.sound], **tables)


def checked(source: str | Path, wanted: Sequence[str]) -> Checked:
    """Read and check the tests of a source.

    Parameters
    ----------
    source
        ``google``, ``coco`` or ``concap``, or a folder with a folder a test.
    wanted
        Tests, by our names.
    """
    own = isinstance(source, Path)
    label = source.name if own else source
    try:
        readings, strange = (_own(source, wanted), []) if own else _released(source, wanted)
    except datasets.DataError as error:
        readings, strange = [], [("error", "source is not there", label, str(error))]
    parts = [_checked(label, *reading) for reading in readings]
    found = joined([*parts, replace(none_checked(), problems=problems(strange))])
    seen = set(zip(found.asked["test"], found.asked["level"], strict=True))
    absent = [
        (label, name, level, NOT_THERE)
        for name in wanted
        for level in TEST_TYPES
        if (name, level) not in seen
    ]
    rows = pandas.DataFrame(absent, columns=ASKED)
    return joined([found, replace(none_checked(), asked=rows)])


def _checked(label: str, file: str, read: Callable, folder: Path) -> Checked:
    try:
        test = read()
    except datasets.DataError as error:
        wrong = [("error", "test cannot be read", f"{label}/{file}", str(error))]
        return replace(none_checked(), problems=problems(wrong))
    pairs, found = datasets.images_of(test, folder)
    name = RELEASED.get(test.name, test.name)
    emptied = {level: empty_sets(of_level(pairs, level)) for level in test.levels}
    levels = tuple(level for level in test.levels if not emptied[level])
    outcomes = [f"no image in {', '.join(sets)}" if sets else "run" for sets in emptied.values()]
    rows = [(label, name, *each) for each in zip(emptied, outcomes, strict=True)]
    wrong = pandas.concat([test.problems, found], ignore_index=True)
    wrong = wrong.assign(where=f"{label}/{file}, " + wrong["where"])
    counts = datasets.balance(test, pairs)
    counts = counts.assign(source=label, test=name, file=file, run=", ".join(levels) or "not run")
    sound = [(replace(test, levels=levels), pairs)] if levels else []
    return Checked(sound, wrong, counts[LEFT], pandas.DataFrame(rows, columns=ASKED))


def _released(source: str, wanted: Sequence[str]) -> tuple[list[Reading], list[tuple]]:
    """Return the authors' files of a source, by the names that they have, and other files."""
    folder = runtime.data_folder("ross2021")
    images = ross2021.image_folder(folder, source)
    readings, strange = [], []
    for path in ross2021.files_of_tests(folder, source):
        name = RELEASED.get(path.stem.removeprefix("sent-"))
        if name is None or path.suffix != ".jsonl":
            where = f"{source}/{path.name}"
            strange.append(("note", "file is not a released test", where, "its name is not known"))
        elif name in wanted:
            readings.append((path.name, functools.partial(datasets.grounded_test, path), images))
    if readings and not images.is_dir():
        raise datasets.DataError(
            f"{images} is not there; biaslib.datasets.ross2021.fetch_images({str(folder)!r}, "
            f"{source!r}) downloads what its links still give"
        )
    return readings, strange


def _own(folder: Path, wanted: Sequence[str]) -> list[Reading]:
    """Return the folders of a user, each at both levels."""
    there = [name for name in wanted if (folder / name).is_dir()]
    if not there:
        raise FileNotFoundError(
            f"{folder} holds no folder of a test; make one, such as {folder / 'C6'}, and fill it "
            "as biaslib.datasets.user_test says"
        )
    return [
        (f"{name}, {level}", functools.partial(datasets.user_test, name, path, level), path)
        for name, path in ((name, folder / name) for name in there)
        for level in ("word", "sentence")
    ]


def of_level(pairs: pandas.DataFrame, level: str) -> pandas.DataFrame:
    """Return the pairs that a level can use: for ``contextual`` those with a word."""
    return pairs if level != "contextual" else pairs[pairs["word"] != ""]


def empty_sets(pairs: pandas.DataFrame) -> list[str]:
    """Return which of the six sets have no pair."""
    return [name for name in SETS if name not in set(pairs["set"])]
