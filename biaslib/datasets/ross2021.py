"""The images of study 1: where each is, by what Ross, Katz and Barbu (2021) released, and fetched.

The authors released no picture. For Google's there are lists of links, for COCO's the names of
files, for those of Conceptual Captions a number made of the address. Each becomes one table of
links, and one call fetches what they still give.
"""

import os
import re
import shlex
import zlib
from pathlib import Path

import pandas

from biaslib.datasets._arguments import require_path
from biaslib.datasets._problems import DataError, problems
from biaslib.datasets.grounded_images import grounded_test
from biaslib.datasets.links import download_images
from biaslib.runtime import read_text, unknown_name

__all__ = ["SOURCES", "fetch_images", "files_of_tests", "image_folder", "links"]

SOURCES = ("google", "coco", "concap")
"""Where images come from: Google searches, COCO, Conceptual Captions."""

COLUMNS = ["test", "group", "file", "url"]

COCO_NAME = re.compile(r"COCO_(?P<split>\w+2014)_\d{12}\.jpg")
COCO_ADDRESS = "http://images.cocodataset.org/{split}/{name}"

CAPTIONS = "Validation_GCC-1.1.0-Validation.tsv"
"""The list of Conceptual Captions' validation images, as its publisher names it."""

FROM = "https://github.com/candacelax/bias-in-vision-and-language"


def fetch_images(
    folder: str | Path, source: str, again: bool = False
) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Download the images of a source to ``images/<source>`` of a folder.

    Called again, it goes on where it stopped: see :func:`biaslib.datasets.download_images`.

    Parameters
    ----------
    folder
        That of :func:`biaslib.runtime.data_folder` for ``ross2021``: a clone of the authors'
        repository, and for ``concap`` the list of Conceptual Captions beside it.
    source
        One of :data:`SOURCES`.
    again
        Ask links again that are dead for good.

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
    wanted, found = links(folder, source)
    return download_images(wanted, image_folder(folder, source), again=again), found


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
    rows, found = read(require_path(folder, "folder"), source)
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
    return require_path(folder, "folder") / "images" / _known(source)


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
    place = require_path(folder, "folder") / "tests" / "grounded-tests" / _known(source)
    paths = [path for path in sorted(place.glob("*")) if not path.name.startswith(".")]
    if not paths:
        raise DataError(
            f"{place} holds no test; put the authors' .jsonl files there, from their repository "
            f"{FROM}",
            path=place,
        )
    return paths


def _of_lists(folder: Path, source: str) -> tuple[list[tuple], list[tuple]]:
    groups = sorted((folder / "data" / f"{source}-images").glob("[!.]*/[!.]*/"))
    lists = [group / "get.sh" for group in groups if group.is_dir()]
    if not any(map(os.path.lexists, lists)):
        raise DataError(
            f"{folder}/data/{source}-images holds no list of links, <test>/<group>/get.sh; copy "
            f"that folder from the authors' repository {FROM}",
            path=folder / "data" / f"{source}-images",
        )
    rows, found = [], []
    for path in lists:
        test, group = path.parts[-3:-1]
        name = f"{test}/{group}/get.sh"
        try:
            lines = _lines(path)
        except DataError as error:
            found.append(("error", "list cannot be read", name, str(error)))
            continue
        for number, line in lines:
            where = f"{name}, line {number}"
            command = _wget(line)
            if command:
                rows.append((test, group, f"{test}/{group}/{command[0]}", command[1]))
            elif line.split()[0] == "sleep":
                found.append(("note", "command that fetches nothing", where, line))
            else:
                found.append(("error", "line gives no image", where, line))
    return rows, found


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
        raise DataError(
            f"{path} is not there; download the validation split of Conceptual Captions, 2 MB, "
            f"from https://ai.google.com/research/ConceptualCaptions/download to that place",
            path=path,
        )
    lines = [line for line in read_text(path, DataError).split("\n") if line]
    urls = [url for caption, tab, url in (line.rpartition("\t") for line in lines) if tab]
    if not urls:
        raise DataError(
            f"{path} has no line with a caption, a tab and an address; get it again", path=path
        )
    return {str(zlib.crc32(url.encode())): url for url in urls}
