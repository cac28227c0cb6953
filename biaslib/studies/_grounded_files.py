"""The tests of study 1 on this disk: read, checked, and what is left of them."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas

from biaslib import datasets, runtime

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
    "heilman_gender_double_bind_likable_one_word": "DB-likeable-gender",
    "heilman_race_double_bind_competent_one_word": "DB-competent-race",
    "heilman_race_double_bind_likable_one_word": "DB-likeable-race",
}
"""What the released files call the tests, and what we do.

:meta hide-value:
"""

LEFT = ["source", "test", "file", "set", "n_images", "n_captions", "images_left", "captions_left"]
LEFT += ["share", "run"]

Reading = tuple[str, Callable[[], datasets.GroundedTest], Path]
"""What a test is called in messages, how it is read, and the folder of its images."""


@dataclass(frozen=True)
class Checked:
    """Tests of a source of images: those that can be run, and tables about all.

    ``sound`` are tests with their sound pairs, at the levels at which none of the six sets is
    empty; ``problems`` and ``left`` are as of :class:`biaslib.studies.grounded.Inputs`.
    """

    sound: list[tuple[datasets.GroundedTest, pandas.DataFrame]]
    problems: pandas.DataFrame
    left: pandas.DataFrame


def none_checked() -> Checked:
    """Return that nothing was checked, and nothing found wrong."""
    columns = ["severity", "kind", "where", "what"]
    return Checked([], pandas.DataFrame(columns=columns), pandas.DataFrame(columns=LEFT))


def joined(parts: Iterable[Checked]) -> Checked:
    """Return the tests of several files or sources as one."""
    parts = [none_checked(), *parts]
    tables = {
        name: pandas.concat([getattr(each, name) for each in parts], ignore_index=True)
        for name in ("problems", "left")
    }
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
    readings = _own(source, wanted) if own else _released(source, wanted)
    label = source.name if own else source
    found = joined(_checked(label, *reading) for reading in readings)
    lacking = [name for name in wanted if name not in set(found.left["test"])]
    notes = [("note", "test is not there", label, name) for name in lacking]
    return joined([found, replace(none_checked(), problems=_table(notes))])


def _checked(label: str, file: str, read: Callable, folder: Path) -> Checked:
    try:
        test = read()
    except datasets.DataError as error:
        wrong = [("error", "test cannot be read", f"{label}/{file}", str(error))]
        return replace(none_checked(), problems=_table(wrong))
    pairs, problems = datasets.images_of(test, folder)
    levels = tuple(each for each in test.levels if not empty_sets(of_level(pairs, each)))
    emptied = [
        (
            "note",
            "test is not run",
            ", ".join(empty_sets(of_level(pairs, level))),
            f"none at {level}",
        )
        for level in test.levels
        if level not in levels
    ]
    wrong = pandas.concat([test.problems, problems, _table(emptied)], ignore_index=True)
    name = RELEASED.get(test.name, test.name)
    counts = datasets.balance(test, pairs)
    counts = counts.assign(source=label, test=name, file=file, run=", ".join(levels) or "not run")
    sound = [(replace(test, levels=levels), pairs)] if levels else []
    return Checked(sound, wrong.assign(where=f"{label}/{file}, " + wrong["where"]), counts[LEFT])


def _table(rows: list[tuple]) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=none_checked().problems.columns)


def _released(source: str, wanted: Sequence[str]) -> Iterator[Reading]:
    """Yield the authors' files of a source, by the names that the files have."""
    folder = runtime.data_folder("ross2021")
    paths = sorted((folder / "tests" / "grounded-tests" / source).glob("*.jsonl"))
    if not paths:
        raise FileNotFoundError(
            f"{folder}/tests/grounded-tests/{source} holds no test; put the authors' .jsonl files "
            "there, from their repository candacelax/bias-in-vision-and-language"
        )
    for path in paths:
        if RELEASED.get(path.stem.removeprefix("sent-")) in wanted:
            read = functools.partial(datasets.grounded_test, path)
            yield path.name, read, folder / "images" / source


def _own(folder: Path, wanted: Sequence[str]) -> Iterator[Reading]:
    """Yield the folders of a user, each at both levels."""
    there = [name for name in wanted if (folder / name).is_dir()]
    if not there:
        raise FileNotFoundError(
            f"{folder} holds no folder of a test; make one, such as {folder / 'C6'}, and fill it "
            "as biaslib.datasets.user_test says"
        )
    for name in there:
        for level in ("word", "sentence"):
            read = functools.partial(datasets.user_test, name, folder / name, level)
            yield f"{name}, {level}", read, folder / name


def of_level(pairs: pandas.DataFrame, level: str) -> pandas.DataFrame:
    """Return the pairs that a level can use: for ``contextual`` those with a word."""
    return pairs if level != "contextual" else pairs[pairs["word"] != ""]


def empty_sets(pairs: pandas.DataFrame) -> list[str]:
    """Return which of the six sets have no pair."""
    return [name for name in SETS if name not in set(pairs["set"])]
