"""The tests and images of study 1, by what Ross, Katz and Barbu (2021) released.

The authors released no picture. For Google's there are lists of links, for COCO's the names of
files, for those of Conceptual Captions a number made of the address. Each becomes one table of
links, and one call fetches what they still give. :func:`tests_on_disk` reads the tests with the
pictures that are there.
"""

import contextlib
import functools
import json
import os
import re
import shlex
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas

from biaslib.checkpoints.downloads import retrieve
from biaslib.datasets.grounded_images import (
    SETS,
    TEST_TYPES,
    GroundedTest,
    balance,
    grounded_test,
    images_of,
    user_test,
)
from biaslib.datasets.links import NOT_ASKED, download_images, outcomes
from biaslib.datasets.problems import DataError, problems
from biaslib.runtime import data_folder, file_sha256, progress, read_text, unknown_name

__all__ = [
    "SOURCES",
    "TESTS",
    "TestsOnDisk",
    "fetch_files",
    "fetch_images",
    "files_of_tests",
    "image_counts",
    "image_folder",
    "is_fetched",
    "links",
    "taste",
    "tests_on_disk",
]

SOURCES = ("google", "coco", "concap")
"""Where images come from: Google searches, COCO, Conceptual Captions."""

PRINTED_AS = {"concap": "conceptual_captions"}
"""What the paper's tables call a source, where it is not our name."""

COLUMNS = ["test", "group", "file", "url"]

COCO_NAME = re.compile(r"COCO_(?P<split>\w+2014)_\d{12}\.jpg")
COCO_ADDRESS = "http://images.cocodataset.org/{split}/{name}"

CAPTIONS = "Validation_GCC-1.1.0-Validation.tsv"
"""The list of Conceptual Captions' validation images, as its publisher names it."""

FROM = "https://github.com/candacelax/bias-in-vision-and-language"
FILES = (
    "https://raw.githubusercontent.com/candacelax/bias-in-vision-and-language/"
    "162298016af6d728453a8c3d47554a6e87e18be2"
)
"""The authors' files at their commit 1622980."""

DATA = Path(__file__).parent / "data"
STEPS = "book/profiles.md#images-of-study-1"

TESTS = json.loads((DATA / "ross2021_tests.json").read_text(encoding="utf-8"))
"""What the released files call the tests, and what we do; most tests have ``sent-<name>`` too.

:meta hide-value:
"""

LEFT = ["source", "test", "file", "set", "n_images", "n_captions", "images_left", "captions_left"]
LEFT += ["share", "run"]
ASKED = ["source", "test", "level", "outcome"]


@dataclass(frozen=True)
class TestsOnDisk:
    """Tests of one or several sources of images, and what is missing.

    Attributes
    ----------
    sound
        By source, tests with their sound pairs, at the levels at which none of the six sets is
        empty.
    problems
        One row a problem: *severity*, *kind*, *where* (source, file and set), *what*.
    left
        One row a set: *source*, *test*, *file*, *set*; *n_images* and *n_captions* of all,
        *images_left*, *captions_left*, *share*; *run*, the levels at which the test is run.
    asked
        One row a test and level that was asked for: *source*, *test*, *level* and *outcome*:
        ``run``, ``not there``, or which sets have no image.
    """

    sound: dict[str | Path, list[tuple[GroundedTest, pandas.DataFrame]]]
    problems: pandas.DataFrame
    left: pandas.DataFrame
    asked: pandas.DataFrame


NOTHING_MISSING = TestsOnDisk(
    {}, problems([]), pandas.DataFrame(columns=LEFT), pandas.DataFrame(columns=ASKED)
)
"""What there is to say of stimuli that do not come from files.

:meta hide-value:
"""


def tests_on_disk(
    sources: Iterable[str | Path], names: Sequence[str], only: Collection[str]
) -> TestsOnDisk:
    """Read and check the tests of sources, with the images that are there.

    Parameters
    ----------
    sources
        Of :data:`SOURCES`, in the folder :func:`biaslib.runtime.data_folder` of ``ross2021``; or
        a folder of one's own with a folder a test, as :func:`biaslib.datasets.user_test` reads it.
    names
        Tests, by our names (the values of :data:`TESTS`).
    only
        Files of images, as :func:`taste` returns them: the tests are cut to these, as if they
        listed no others. All, if there are none.

    Raises
    ------
    FileNotFoundError
        If there is no data folder, or the folder of one's own has none of a test.
    """
    sound, wrong, left, asked = {}, [], [], []
    chosen = {Path(file).name for file in only}
    for source in sources:
        label = source.name if isinstance(source, Path) else source
        readings, strange = _readings(source, label, names)
        wrong.append(problems(strange))
        outcomes = {}
        for file, read, folder in readings:
            try:
                test = read()
            except DataError as error:
                what = ("error", "test cannot be read", f"{label}/{file}", str(error))
                wrong.append(problems([what]))
                continue
            if chosen:
                test = replace(test, pairs=test.pairs[test.pairs["image"].isin(chosen)])
            pairs, found = images_of(test, folder)
            found = pandas.concat([test.problems, found])
            wrong.append(found.assign(where=f"{label}/{file}, " + found["where"]))
            name = TESTS.get(test.name, test.name)
            empty = {level: empty_sets(pairs, level) for level in test.levels}
            levels = tuple(level for level in test.levels if not empty[level])
            if levels:
                sound.setdefault(source, []).append((replace(test, levels=levels), pairs))
            run = ", ".join(levels) or "not run"
            left.append(balance(test, pairs).assign(source=label, test=name, file=file, run=run))
            for level, sets in empty.items():
                outcomes[name, level] = f"no image in {', '.join(sets)}" if sets else "run"
        outcomes |= {
            (name, level): "not there"
            for name in names
            for level in TEST_TYPES
            if (name, level) not in outcomes
        }
        asked += [(label, *case, outcome) for case, outcome in outcomes.items()]
    return TestsOnDisk(
        sound,
        pandas.concat([each for each in wrong if len(each)] or [problems([])], ignore_index=True),
        pandas.concat(left, ignore_index=True)[LEFT] if left else NOTHING_MISSING.left,
        pandas.DataFrame(asked, columns=ASKED),
    )


def image_counts(folder: str | Path) -> pandas.DataFrame:
    """Return how many images the released files of each test list: *source*, *test*, *images*.

    They are counted as in the paper's Table 1, from the files alone, whether an image is on this
    disk or not: the images of each of the six sets, added up, so that one that stands in two sets
    counts twice; of the files of a test, one for words and one for sentences, that with more. A
    source is called as in that table. Sources and files that cannot be read are left out.

    Parameters
    ----------
    folder
        As of :func:`fetch_images`.
    """
    rows = []
    for source in SOURCES:
        with contextlib.suppress(DataError):
            for path in files_of_tests(folder, source):
                with contextlib.suppress(DataError):
                    test = grounded_test(path)
                    images = test.pairs.groupby("set")["image"].nunique().sum()
                    name = TESTS.get(test.name, test.name)
                    rows.append((PRINTED_AS.get(source, source), name, images))
    table = pandas.DataFrame(rows, columns=["source", "test", "images"])
    return table.groupby(["source", "test"], sort=False, as_index=False)["images"].max()


def empty_sets(pairs: pandas.DataFrame, level: str) -> list[str]:
    """Return which of the six sets have no pair that a level can use.

    ``contextual`` uses captions that carry one of the test's words.
    """
    usable = pairs[pairs["word"] != ""] if level == "contextual" else pairs
    return [name for name in SETS if name not in set(usable["set"])]


Reading = tuple[str, Callable[[], GroundedTest], Path]
"""What a test is called in messages, how it is read, and the folder of its images."""


def _readings(source: str | Path, label: str, names: Sequence[str]) -> tuple[list[Reading], list]:
    """Return how the tests of a source are read, and what is odd in its folder."""
    if isinstance(source, Path):
        return _readings_of_ones_own(source, names), []
    folder = data_folder("ross2021")
    images, readings, strange = image_folder(folder, source), [], []
    try:
        paths = files_of_tests(folder, source)
    except DataError as error:
        return [], [("error", "source is not there", label, str(error))]
    for path in paths:
        name = TESTS.get(path.stem.removeprefix("sent-"))
        if name is None or path.suffix != ".jsonl":
            where = f"{source}/{path.name}"
            strange.append(("note", "file is not a released test", where, "its name is not known"))
        elif name in names:
            readings.append((path.name, functools.partial(grounded_test, path), images))
    if readings and not images.is_dir():
        what = (
            f"{images} is not there; biaslib.datasets.ross2021.fetch_images({str(folder)!r}, "
            f"{source!r}) downloads what its links still give"
        )
        return [], [("error", "source is not there", label, what)]
    return readings, strange


def _readings_of_ones_own(folder: Path, names: Sequence[str]) -> list[Reading]:
    """Return the folders of a user, each at both levels."""
    filled = [name for name in names if (folder / name).is_dir()]
    if not filled:
        raise FileNotFoundError(
            f"{folder} holds no folder of a test; make one, such as {folder / 'C6'}, and fill it "
            "as biaslib.datasets.user_test says"
        )
    return [
        (
            f"{name}, {level}",
            functools.partial(user_test, name, folder / name, level),
            folder / name,
        )
        for name in filled
        for level in ("word", "sentence")
    ]


def fetch_files(folder: str | Path) -> None:
    """Download the authors' tests and lists of links, 105 files of 3 MB; what is there is left.

    They are those of commit 1622980, and each is held to its SHA-256. A folder in which one is
    another file, such as a later clone or a release of one's own, is left as it is.

    Raises
    ------
    CheckpointError
        If one cannot be had, or an address gives another file; the message names it.
    """
    listed = pandas.read_csv(DATA / "ross2021_files.csv").to_numpy().tolist()
    files = [(file, Path(folder) / file, sha256) for file, sha256 in listed]
    if all(file_sha256(path) == sha256 for _, path, sha256 in files if path.is_file()):
        for file, path, sha256 in progress(files, "the authors' tests and lists"):
            retrieve([f"{FILES}/{file}"], path, sha256, STEPS)


def taste() -> list[str]:
    """Return the files of a taste: of C6, four pictures of each of eight words a set, 192.

    Both its tests name them, that of words and that of sentences, and all have an address.

    Examples
    --------
    >>> taste()[-1]
    'weat6/targ2/female_73.jpg'
    """
    return pandas.read_csv(DATA / "ross2021_taste.csv")["file"].tolist()


def fetch_images(
    folder: str | Path, source: str, again: bool = False, only: Collection[str] = ()
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Download the images of a source to ``images/<source>`` of a folder.

    Called again, it goes on where it stopped: see :func:`biaslib.datasets.download_images`.

    Parameters
    ----------
    folder
        That of :func:`biaslib.runtime.data_folder` for ``ross2021``: what :func:`fetch_files`
        put there, or a clone of the authors' repository; for ``concap`` also the list of Conceptual
        Captions.
    source
        One of :data:`SOURCES`.
    again
        Ask links again that are dead for good.
    only
        Files, as *file* of :func:`links`; all, if there are none.

    Returns
    -------
    found
        As :func:`biaslib.datasets.download_images`, for :func:`biaslib.datasets.coverage`.
    problems
        As :func:`links`.

    Raises
    ------
    UnknownNameError, DataError
        As :func:`links`.
    """
    wanted, found = _links_of(folder, source, only)
    return download_images(wanted, image_folder(folder, source), again=again), found


def is_fetched(folder: str | Path, source: str, only: Collection[str] = ()) -> bool:
    """Tell whether the links of a source, or of some files, were all asked: some are dead."""
    try:
        wanted, _ = _links_of(folder, source, only)
    except DataError:
        return False
    return NOT_ASKED not in set(outcomes(wanted, image_folder(folder, source))["outcome"])


def _links_of(
    folder: str | Path, source: str, only: Collection[str]
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    wanted, found = links(folder, source)
    return wanted[wanted["file"].isin(only or wanted["file"])].reset_index(drop=True), found


def links(folder: str | Path, source: str) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return the links to the images of a source, and what could not be read.

    ``google``: the lists ``data/google-images/<test>/<targ1, targ2, attr1 or attr2>/get.sh``, a
    ``wget`` command a line, quotes and escapes undone as a shell does. ``coco`` and ``concap``: the
    images that the tests in ``tests/grounded-tests`` name. A COCO name gives its address. A name in
    Conceptual Captions is the CRC-32 of its address in decimals, which is looked up in the
    publisher's list ``Validation_GCC-1.1.0-Validation.tsv``.

    Parameters
    ----------
    folder
        As of :func:`fetch_images`.
    source
        One of :data:`SOURCES`.

    Returns
    -------
    links
        One row an image: *test*, *group* (the folder of the list, or the set), *file* (path below
        ``images/<source>``) and *url*, empty where there is none. An image that several tests name
        is listed under the first.
    problems
        *severity*, *kind*, *where*, *what*. Errors: an image without an address, a line that gives
        no image, a name that is there twice, a list or test that cannot be read. Notes: commands
        that fetch nothing (``sleep``).

    Raises
    ------
    UnknownNameError
        If there is no such source.
    DataError
        If the lists or tests are not there; for ``concap``, the publisher's list.
    """
    read = {"google": _of_lists, "coco": _of_names, "concap": _of_names}[_known(source)]
    rows, found = read(Path(folder), source)
    table = pandas.DataFrame(rows, columns=COLUMNS)
    repeated = table["file"].duplicated()
    if source == "google":
        found += [("error", "name is there twice", f, "") for f in table.loc[repeated, "file"]]
    table = table[~repeated].reset_index(drop=True)
    nowhere = table.loc[table["url"] == "", ["test", "file"]].itertuples(index=False)
    found += [("error", "image without an address", *row) for row in nowhere]
    return table, problems(found)


def image_folder(folder: str | Path, source: str) -> Path:
    """Return where the images of a source lie below the folder of the release."""
    return Path(folder) / "images" / _known(source)


def _known(source: str) -> str:
    if not isinstance(source, str) or source not in SOURCES:
        raise unknown_name("source", source, SOURCES)
    return source


def files_of_tests(folder: str | Path, source: str) -> list[Path]:
    """Return the files in the folder of the tests of a source, hidden ones left out.

    Raises
    ------
    DataError
        If there is none.
    """
    place = Path(folder) / "tests" / "grounded-tests" / _known(source)
    paths = [path for path in sorted(place.glob("*")) if not path.name.startswith(".")]
    if not paths:
        what = f"{place} holds no test; put the .jsonl files of {FROM} there"
        raise DataError(what, path=place)
    return paths


def _of_lists(folder: Path, source: str) -> tuple[list[tuple], list[tuple]]:
    place, rows, wrong = folder / "data" / f"{source}-images", [], []
    groups = sorted(group for group in place.glob("[!.]*/[!.]*/") if group.is_dir())
    if not any(os.path.lexists(group / "get.sh") for group in groups):
        what = f"{place} holds no list of links, <test>/<group>/get.sh; copy that folder of {FROM}"
        raise DataError(what, path=place)
    for group in groups:
        name = f"{group.parent.name}/{group.name}"
        try:
            lines = _lines(group / "get.sh")
        except DataError as error:
            wrong.append(("error", "list cannot be read", f"{name}/get.sh", str(error)))
            continue
        for number, line in lines:
            where = f"{name}/get.sh, line {number}"
            command = _wget(line)
            if command:
                rows.append((*name.split("/"), f"{name}/{command[0]}", command[1]))
            elif line.split()[0] == "sleep":
                wrong.append(("note", "command that fetches nothing", where, line))
            else:
                wrong.append(("error", "line gives no image", where, line))
    return rows, wrong


def _lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a list with their numbers, without empty lines and comments."""
    lines = enumerate(map(str.strip, read_text(path, DataError).split("\n")), start=1)
    found = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not found:
        raise DataError(f"{path} is empty; copy it again from {FROM}", path=path)
    return found


def _wget(line: str) -> tuple[str, str] | None:
    """Return file and address of a line such as ``wget -O file address``.

    The address is empty if the line has none.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if words[:1] != ["wget"] or "-O" not in words[:-1]:
        return None
    at = words.index("-O")
    file = words[at + 1]
    urls = [word for word in words[1:at] + words[at + 2 :] if not word.startswith("-")]
    sound = all(":" in url and url[-1] != ";" for url in urls)
    if len(urls) > 1 or not sound or Path(file).name != file or file in ("", "-", ".."):
        return None
    return file, "".join(urls)


def _of_names(folder: Path, source: str) -> tuple[list[tuple], list[tuple]]:
    rows, found = [], []
    numbers = _captions_by_number(folder) if source == "concap" else {}
    for path in files_of_tests(folder, source):
        try:
            test = grounded_test(path)
        except DataError as error:
            found.append(("error", "test cannot be read", path.name, str(error)))
            continue
        for row in test.pairs[["set", "image"]].drop_duplicates().itertuples():
            url = numbers.get(row.image) or _coco_address(row.image)
            rows.append((test.name, row.set, row.image, url))
    return rows, found


def _coco_address(name: str) -> str:
    """Return the address of a COCO image; empty for any other name.

    >>> _coco_address("COCO_val2014_000000410554.jpg")
    'http://images.cocodataset.org/val2014/COCO_val2014_000000410554.jpg'
    """
    found = COCO_NAME.fullmatch(name)
    return COCO_ADDRESS.format(split=found["split"], name=name) if found else ""


def _captions_by_number(folder: Path) -> dict[str, str]:
    """Return the addresses of Conceptual Captions by the numbers that the tests call them."""
    path = folder / CAPTIONS
    if not path.is_file():
        what = (
            f"{path} is not there; download the validation split of Conceptual Captions, 2 MB, "
            "from https://ai.google.com/research/ConceptualCaptions/download to that place"
        )
        raise DataError(what, path=path)
    lines = [line.rpartition("\t") for line in read_text(path, DataError).split("\n")]
    urls = [url for _, tab, url in lines if tab]
    if not urls:
        what = f"{path} has no line with a caption, a tab and an address; get it again"
        raise DataError(what, path=path)
    return {str(zlib.crc32(url.encode())): url for url in urls}
