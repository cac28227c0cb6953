"""Grounded association tests: captions with images, as Ross, Katz and Barbu (2021) released them.

A test has two sets of targets, X and Y, and attributes in the context of each: Ax and Bx are
attributes shown with the targets X, Ay and By with Y. The authors' files pair every image with the
captions it goes with; :func:`grounded_test` reads such a file, and :func:`user_test` a folder that
a user has filled.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas

from biaslib import stimuli
from biaslib.datasets._image_files import images_in, readable, unused
from biaslib.datasets.problems import DataError, problems, require_table
from biaslib.metrics.inputs import made_by
from biaslib.runtime import cleaned, naming, read_text, unknown_name

__all__ = ["GroundedTest", "balance", "grounded_test", "images_of", "user_test"]

SETS = ("X", "Y", "Ax", "Ay", "Bx", "By")
"""The six sets of a grounded test."""

ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
PAIRS = ["set", "caption_id", "caption", "word", "image"]
LEVELS = {"word": ("word",), "sentence": ("sentence", "contextual")}
TEST_TYPES = ("word", "sentence", "contextual")

COMPARED = (("X", "Y"), ("Ax", "Bx"), ("Ay", "By"))
"""Sets that a test sets against each other."""

KINDS = {dict: "an object", list: "a list", str: "text"}

WRONG_FOLDER = ("weat6", "google", "word", "weat13")
"""A released file that names the images of another test: test, data set, level, folder."""


@dataclass(frozen=True)
class GroundedTest:
    """A grounded association test.

    Attributes
    ----------
    name, dataset
        Of the test, and where its images come from.
    levels
        ``("word",)``, or ``("sentence", "contextual")``.
    contextual_words
        The words that Experiment 3 hides.
    labels
        What the sets X, Y, A and B are, in the file's own terms.
    captions
        One row a caption: *set* (X, Y, A or B), *caption_id*, *caption*, *word* (the contextual
        word that it carries; empty if there is none).
    pairs
        One row a caption with an image: *set* (X, Y, Ax, Ay, Bx or By), *caption_id*, *caption*,
        *word*, *image* (path below the folder of images).
    folder
        The images' folder below that of the data set.
    problems
        One row a problem: *severity* (``error``: rows left out of ``pairs``; ``note``), *kind*,
        *where*, *what*.
    """

    name: str
    dataset: str
    levels: tuple[str, ...]
    contextual_words: tuple[str, ...]
    labels: dict[str, str]
    captions: pandas.DataFrame
    pairs: pandas.DataFrame
    folder: str = ""
    problems: pandas.DataFrame = field(default_factory=lambda: problems([]))


def grounded_test(path: str | Path) -> GroundedTest:
    """Read a test as the authors released it: one JSON object with captions and images.

    Known and unknown errors are listed in ``problems``. A caption number given as text, or outside
    of a list, is taken as one. Of an image that a set lists
    twice with other captions the last counts, as in the authors' own code, and a note says so.

    Parameters
    ----------
    path
        Such as ``tests/grounded-tests/google/sent-weat6.jsonl`` of the authors' repository.

    Raises
    ------
    DataError
        If the file is not there or is not one JSON object, or a key is missing or holds something
        of another kind than the released files; the message names file, key and what is wanted.
    """
    path = Path(path)
    content, notes = _json(path)
    content = {"dataset_dir": "", "contextual_words": []} | content
    name, dataset, folder = (
        _value(path, content, str, key) for key in ("test_name", "dataset", "dataset_dir")
    )
    name, levels = name.removeprefix("sent-"), _texts(path, content, "test_types")
    if not levels or not set(levels) <= set(TEST_TYPES):
        raise _wrong(path, "test_types", f"{levels} is not one or more of {TEST_TYPES}")
    words = [cleaned(word) for word in _texts(path, content, "contextual_words")]
    labels = {role: _value(path, content, str, key, "category") for key, role in ROLES.items()}
    captions, pairs, wrong = _read_sets(content, words, path)
    if (name, dataset, levels[0], folder) == WRONG_FOLDER:
        what = f"dataset_dir is {folder}; the images of {name} are those of its sentence file"
        wrong, folder = [*wrong, ("note", "folder of another test", path.name, what)], name
    notes = [*wrong, *notes, *_notes(words, captions, pairs, dataset, path)]
    words = tuple(dict.fromkeys(words))
    return GroundedTest(
        name, dataset, tuple(levels), words, labels, captions, pairs, folder, problems(notes)
    )


def user_test(name: str, folder: str | Path, level: str = "word") -> GroundedTest:
    """Pair a test's captions with the images that a user has put into folders.

    Every word has a folder: ``X/<word>`` and ``Y/<word>`` hold pictures of the targets,
    ``Ax/<word>``, ``Ay/<word>``, ``Bx/<word>`` and ``By/<word>`` of the attributes with the
    targets X or Y. A word of two parts has a folder with a space or an underscore. For Experiment
    1 the folders X, Y, Ax, Ay, Bx and By are all wanted; a set whose folder is missing is noted,
    and so is what lies elsewhere.

    Parameters
    ----------
    name
        A test of :func:`biaslib.stimuli.association_tests`.
    folder
        The folder of the six folders.
    level
        ``word`` or ``sentence``; with ``sentence``, each image goes with every sentence of its
        word.

    Raises
    ------
    UnknownNameError
        If there is no such test or level.
    DataError
        If the folder is not there or holds none of the six.
    """
    if not isinstance(level, str) or level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    folder = Path(folder)
    test = stimuli.association_test(name, level)
    missing = [each for each in SETS if not (folder / each).is_dir()]
    if len(missing) == len(SETS):
        raise DataError(
            f"{folder} holds none of the folders {', '.join(SETS)}; make them, with a folder of "
            "pictures for every word in each",
            path=folder,
        )
    captions, rows, used = _captions_of(test), [], set()
    wrong = [("error", "folder is missing", each, str(folder / each)) for each in missing]
    for set_name in SETS:
        for word, of_word in captions[captions["set"] == set_name[0]].groupby("word", sort=False):
            places = [
                folder / set_name / each for each in dict.fromkeys([word, word.replace(" ", "_")])
            ]
            images = [image for place in places for image in images_in(place)]
            used |= set(places)
            if not images and set_name not in missing:
                wrong.append(("error", "word without an image", set_name, word))
            rows += [
                (set_name, row.caption_id, row.caption, word, image.relative_to(folder).as_posix())
                for image in images
                for row in of_word.itertuples()
            ]
    wrong += unused(folder, used, f"not in the folder of a set and a word of {name}")
    words, pairs = tuple(captions["word"].unique()), pandas.DataFrame(rows, columns=PAIRS)
    labels, levels = dict(test.labels), LEVELS[level]
    return GroundedTest(
        name, "user", levels, words, labels, captions, pairs, problems=problems(wrong)
    )


def images_of(test: GroundedTest, folder: str | Path) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Return the pairs whose images are there and can be opened, and what is wrong with the rest.

    Parameters
    ----------
    test
        A grounded test.
    folder
        Where its images are: files, or the folders of a released data set's links
        (``<folder>/<test's folder>/targ1`` and so on).

    Returns
    -------
    pairs
        The rows of ``test.pairs`` that are sound, with *path* and *sha256*.
    problems
        Errors: images that are missing, lie in two folders, or cannot be opened. Notes: one picture
        under two names, or in two sets that are compared; two such sets of which one has more
        images, or a larger share of its images left, than the other.

    Raises
    ------
    DataError
        If the folder is not there.
    """
    folder = Path(folder)
    made_by(test, "test", GroundedTest, "what grounded_test() or user_test() returns")
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not there; gather images into it, or download those of the authors' "
            "lists with biaslib.datasets.ross2021.fetch_images",
            path=folder,
        )
    places = _places(folder, test)
    names = test.pairs[["set", "image"]].drop_duplicates()
    wrong = [
        ("error", "image lies in two folders" if places[name] else "image is missing", of, name)
        for of, name in names.itertuples(index=False)
        if len(places[name]) != 1
    ]
    one = {image: paths[0] for image, paths in places.items() if len(paths) == 1}
    placed = names.assign(path=names["image"].map(one)).dropna(subset="path")
    sound, damaged = readable(placed, "set")
    pairs = test.pairs.merge(sound, on=["set", "image"])
    wrong += damaged + _twins(sound) + _unbalanced(balance(test, pairs))
    return pairs, problems(wrong)


def balance(test: GroundedTest, pairs: pandas.DataFrame) -> pandas.DataFrame:
    """Return what is left of every set, and how far the two sides of the test have come apart.

    Parameters
    ----------
    test
        A grounded test.
    pairs
        Its rows that are sound, from :func:`images_of`.

    Returns
    -------
    pandas.DataFrame
        One row a set: *n_images* and *n_captions* of all, *images_left*, *captions_left*, and
        *share* of the images that are left.
    """
    made_by(test, "test", GroundedTest, "what grounded_test() or user_test() returns")
    pairs = require_table(pairs, "pairs", ["set", "image", "caption_id"])
    every = test.pairs.groupby("set").agg(
        n_images=("image", "nunique"), n_captions=("caption_id", "nunique")
    )
    left = pairs.groupby("set").agg(
        images_left=("image", "nunique"), captions_left=("caption_id", "nunique")
    )
    table = every.join(left).reindex([each for each in SETS if each in every.index])
    table = table.fillna(0).astype(int)
    return table.assign(share=table["images_left"] / table["n_images"]).reset_index()


def _json(path: Path) -> tuple[dict, list[tuple]]:
    """Return what a file holds, and notes on images that an object lists more than once."""
    repeated: list[tuple] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found and not isinstance(value, list):
                raise ValueError(f"the key {key!r} is there twice; leave one")
            if found.get(key, value) != value:
                what = f"{key}: the last counts, {value}, and not {found[key]}"
                repeated.append(("note", "image is listed twice", path.name, what))
            found[key] = value
        return found

    text = read_text(path, DataError)
    with naming(path, DataError):
        content = json.loads(text, object_pairs_hook=unique)
    if not isinstance(content, dict):
        raise DataError(f"{path} is not one JSON object; see a released file", path=path)
    return content, repeated


def _wrong(path: Path, place: str, what: str) -> DataError:
    return DataError(f"{path}: {place}: {what}; see a released file", path=path, word=place)


def _value(path: Path, content: dict, kind: type, *keys: str) -> Any:
    """Return the value of a key, or of a key within that of others, which has to be of a kind."""
    for at, key in enumerate(keys):
        place = ".".join(keys[: at + 1])
        if key not in content:
            raise _wrong(path, place, f"there is no such key, only {', '.join(content)}")
        content, wanted = content[key], kind if at == len(keys) - 1 else dict
        if not isinstance(content, wanted):
            raise _wrong(path, place, f"{json.dumps(content)[:40]} is not {KINDS[wanted]}")
    return content


def _texts(path: Path, content: dict, key: str) -> list[str]:
    values = _value(path, content, list, key)
    for at, value in enumerate(values):
        if not isinstance(value, str):
            raise _wrong(path, f"{key}[{at}]", f"{json.dumps(value)[:40]} is not text")
    return values


def _number(value: Any, path: Path, place: str) -> int:
    """Return a caption number, which files also give as text."""
    if type(value) is int or (isinstance(value, str) and value.strip().isdecimal()):
        return int(value)
    raise _wrong(path, place, f"{json.dumps(value)[:40]} is no caption number")


def _read_sets(content: dict, words: list[str], path: Path):
    """Return captions, pairs and problems of the six sets."""
    captions, pairs, wrong = [], [], []
    for key, role in ROLES.items():
        place, texts = f"{key}.captions", {}
        given = _value(path, content, dict, key, "captions")
        for number in given:
            text = cleaned(_value(path, content, str, key, "captions", number))
            texts[_number(number, path, place)] = (text, _word_of(text, words))
        if len(texts) < len(given):
            raise _wrong(path, place, "two captions have one number")
        captions += [(role, number, *text) for number, text in texts.items()]
        for set_name, name in _image_sets(content, key):
            images = _value(path, content, dict, key, name)
            rows, found = _pair_rows(set_name, images, texts, path, f"{key}.{name}")
            pairs += rows
            wrong += found
    captions = pandas.DataFrame(captions, columns=PAIRS[:-1])
    return captions, pandas.DataFrame(pairs, columns=PAIRS), wrong


def _word_of(text: str, words: Sequence[str]) -> str:
    """Return the longest contextual word of a caption; a caption of one word is its own.

    As the test lists it: "Caress" at the head of a sentence is the word "caress".
    """
    if " " not in text:
        return text
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    found = re.search(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.I) if words else None
    listed = {word.lower(): word for word in reversed(words)}
    return listed[found.group().lower()] if found else ""


def _image_sets(content: dict, key: str) -> Iterator[tuple[str, str]]:
    """Yield each set's name and the key of its images: one set for targets, two for attributes."""
    role, part = ROLES[key], content[key]
    if role in "XY":
        yield role, "images"
        return
    named = [name for name in part if name.endswith("_Images")]
    for at, target in enumerate(("targ1", "targ2")):
        name = f"{content[target]['category']}_Images"
        if name not in part and len(named) == 2:
            name = named[at]
        yield f"{role}{ROLES[target].lower()}", name


def _pair_rows(
    set_name: str, images: dict, texts: dict[int, tuple[str, str]], path: Path, key: str
):
    rows, found = [], []
    for image, numbers in images.items():
        if numbers == []:
            found.append(("error", "image without a caption", set_name, image))
        for each in numbers if isinstance(numbers, list) else [numbers]:
            number = _number(each, path, f"{key}.{image}")
            if number in texts:
                rows.append((set_name, number, *texts[number], image))
            else:
                found.append(("error", "caption is not there", set_name, f"{image}: {number}"))
    return rows, found


def _notes(words, captions, pairs, dataset: str, path: Path) -> list[tuple]:
    """Note what a file lacks, what is another data set's, and sets of attributes that are one."""
    notes = []
    if not words:
        what = "no contextual words: the contextual level and Experiment 3 cannot be run"
        notes.append(("key is missing", path.name, what))
    foreign = pairs.loc[pairs["image"].str.startswith("COCO_"), "image"].nunique()
    if foreign and dataset != "coco":
        what = f"{foreign} images are named as COCO's"
        notes.append(("images of another data set", path.name, what))
    of_set = pairs.groupby("set")["image"].agg(set)
    for one, other in (("Ax", "Ay"), ("Bx", "By")):
        if of_set.get(one) == of_set.get(other) is not None:
            what = "the images are the same with both targets, so that Experiments 1 and 2 coincide"
            notes.append(("sets are the same", f"{one}, {other}", what))
    wordless = captions.loc[captions["word"] == "", ["set", "caption"]]
    notes += [("caption without a contextual word", *row) for row in wordless.to_numpy()]
    return [("note", *each) for each in notes]


def _captions_of(test: stimuli.AssociationTest) -> pandas.DataFrame:
    """Return the captions of a test, with the word of each."""
    rows = [
        (role, text, word)
        for role in "XYAB"
        for text, word in zip(getattr(test, role), test.words[role], strict=True)
    ]
    table = pandas.DataFrame(rows, columns=["set", "caption", "word"])
    return table.assign(caption_id=table.groupby("set").cumcount())


def _places(folder: Path, test: GroundedTest) -> dict[str, list[Path]]:
    """Return where each image lies: by its path below the folder, or in a folder of the lists.

    The lists of a test have four folders. Pictures of X lie in targ1, of Y in targ2. The other two
    go by the targets that the attributes are shown with (attr1: Ax and Bx, attr2: Ay and By), but
    in weat8, which shows them alone, by the attributes (attr1: A, attr2: B). No released name lies
    in two folders of a test.
    """
    roots = [folder / test.folder, folder]
    found = {}
    for image in test.pairs["image"].unique():
        for root in roots:
            candidates = [root / group / image for group in ("", *ROLES)]
            found[image] = [path for path in candidates if path.is_file()]
            if found[image]:
                break
    return found


def _twins(sound: pandas.DataFrame) -> list[tuple]:
    """Note pictures that are there twice: in a set under two names, or in two sets."""
    notes = []
    for _, rows in sound.groupby("sha256"):
        names = rows.groupby("set")["image"].agg(list)
        twice = names[names.map(len) > 1]
        notes += [("picture is there twice", of, ", ".join(each)) for of, each in twice.items()]
        notes += [
            ("picture is in two sets", f"{one}, {other}", names[one][0])
            for one, other in COMPARED
            if one in names and other in names
        ]
    return [("note", *each) for each in notes]


def _unbalanced(table: pandas.DataFrame) -> list[tuple]:
    """Note sets that are compared, and of which more images are left, or a larger share, in one."""
    sets, notes = table.set_index("set"), []
    for pair in COMPARED:
        two = sets.reindex(pair).dropna()
        if len(two) == 2 and (two[["images_left", "share"]].nunique() > 1).any():
            counts = [
                f"{of} {row.images_left:.0f} of {row.n_images:.0f}" for of, row in two.iterrows()
            ]
            notes.append(("note", "sets are unbalanced", ", ".join(pair), ", ".join(counts)))
    return notes
