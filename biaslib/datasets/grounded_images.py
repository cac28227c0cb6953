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
from biaslib.datasets._arguments import require_path, require_table, require_text
from biaslib.datasets._image_files import images_in, readable
from biaslib.datasets._problems import DataError, problems
from biaslib.metrics.inputs import made_by
from biaslib.runtime import cleaned, read_text, unknown_name

__all__ = ["GroundedTest", "balance", "grounded_test", "images_of", "user_test"]

SETS = ("X", "Y", "Ax", "Ay", "Bx", "By")
"""The six sets of a grounded test."""

ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
PAIRS = ["set", "caption_id", "caption", "word", "image"]
LEVELS = {"word": ("word",), "sentence": ("sentence", "contextual")}
TEST_TYPES = ("word", "sentence", "contextual")

COMPARED = (("X", "Y"), ("Ax", "Bx"), ("Ay", "By"))
"""Sets that a test sets against each other."""

PART = {"category": str, "captions": {"*": str}}
SHAPE = {
    **{"test_name": str, "dataset": str, "test_types": ["*"], "dataset_dir": str},
    **{"contextual_words": ["*"], "attr1": PART, "attr2": PART},
    **dict.fromkeys(("targ1", "targ2"), PART | {"images": {}}),
}
"""What a released file must have; contextual_words and dataset_dir are missing from some."""

KINDS = {dict: "an object", list: "a list", str: "text", int: "a number", type(None): "null"}

WRONG_FOLDER = ("weat6", "google", "word", "dataset_dir", "weat13")
WRONG_LABEL = ("occ_race", "google", "word", "attr2", "AfricanAmericanOcc")
KNOWN_ERRORS = {
    WRONG_FOLDER: (
        "folder of another test",
        "dataset_dir is weat13; the images of weat6 are those of its sentence file",
    ),
    WRONG_LABEL: (
        "wrong label",
        "attr2 is labelled AfricanAmericanOcc; it holds the occupations of the test's second set",
    ),
}
"""Errors of released files: test, data set, level, key, and the wrong value that it holds."""


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

    Known and unknown errors are listed in ``problems`` and repaired only where the repair is
    certain: a caption number given as text is taken as a number. Of an image that a set lists
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
    path = require_path(path, "path")
    content, found = _object(path)
    captions, pairs, wrong = _read_sets(content, path)
    name, dataset = content["test_name"].removeprefix("sent-"), content["dataset"]
    levels, words = tuple(content["test_types"]), content["contextual_words"]
    labels = {role: content[key]["category"] for key, role in ROLES.items()}
    held = {"dataset_dir": content["dataset_dir"], "attr2": labels["B"]}
    known = [(name, dataset, levels[0], *each) for each in held.items()]
    found = [
        *wrong,
        *(("note", KNOWN_ERRORS[k][0], path.name, KNOWN_ERRORS[k][1])
          for k in known if k in KNOWN_ERRORS),
        *found,
        *_notes_on_file(words, pairs, dataset, path),
        *_notes_on_sets(captions, pairs),
    ]  # fmt: skip
    return GroundedTest(
        name=name,
        dataset=dataset,
        levels=levels,
        contextual_words=tuple(dict.fromkeys(words)),
        labels=labels,
        captions=captions,
        pairs=pairs,
        folder=name if WRONG_FOLDER in known else content["dataset_dir"],
        problems=problems(found),
    )


def user_test(name: str, folder: str | Path, level: str = "word") -> GroundedTest:
    """Pair a test's captions with the images that a user has put into folders.

    Every word has a folder: ``X/<word>`` and ``Y/<word>`` hold pictures of the targets,
    ``Ax/<word>``, ``Ay/<word>``, ``Bx/<word>`` and ``By/<word>`` of the attributes with the
    targets X or Y. A word of two parts has a folder with a space or an underscore. For Experiment
    1 the folders X, Y, Ax, Ay, Bx and By are all wanted; a set whose folder is missing is noted.

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
    folder = require_path(folder, "folder")
    test = stimuli.association_test(require_text(name, "name"), level)
    there = [each for each in SETS if (folder / each).is_dir()]
    if not there:
        raise DataError(
            f"{folder} holds none of the folders {', '.join(SETS)}; make them, with a folder of "
            "pictures for every word in each",
            path=folder,
        )
    captions = _captions_of(test)
    rows, found = [], []
    for set_name in SETS:
        if set_name not in there:
            found.append(("error", "folder is missing", set_name, str(folder / set_name)))
            continue
        known = captions[captions["set"] == set_name[0]]
        paired, lacking = _pair_folder(folder, set_name, known)
        rows += paired
        found += lacking
    pairs = pandas.DataFrame(rows, columns=PAIRS)
    return GroundedTest(
        name=name,
        dataset="user",
        levels=LEVELS[level],
        contextual_words=tuple(captions["word"].unique()),
        labels=dict(test.labels),
        captions=captions,
        pairs=pairs,
        problems=problems(found),
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
    folder = require_path(folder, "folder")
    made_by(test, "test", GroundedTest, "what grounded_test() or user_test() returns")
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not there; gather images into it, or download those of the authors' "
            "lists with biaslib.datasets.ross2021.fetch_images",
            path=folder,
        )
    places = _places(folder, test)
    names = test.pairs[["set", "image"]].drop_duplicates()
    found = []
    for row in names.itertuples():
        if len(places[row.image]) != 1:
            kind = "image lies in two folders" if places[row.image] else "image is missing"
            found.append(("error", kind, row.set, row.image))
    one = {image: paths[0] for image, paths in places.items() if len(paths) == 1}
    there = names.assign(path=names["image"].map(one)).dropna(subset="path")
    sound, damaged = readable(there, "set")
    pairs = test.pairs.merge(sound, on=["set", "image"])
    found += damaged + _twins(sound) + _unbalanced(balance(test, pairs))
    return pairs, problems(found)


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


def _object(path: Path) -> tuple[dict, list[tuple]]:
    """Return what a file holds, every key of the kind that the reader goes on with, and notes."""
    content, repeated = _json(path)
    if isinstance(content, dict):
        content = {"dataset_dir": "", "contextual_words": []} | content
    _require(content, SHAPE, path)
    types = content["test_types"]
    if not types or not set(types) <= set(TEST_TYPES):
        raise DataError(
            f"{path}: test_types: {types} is not one or more of {', '.join(TEST_TYPES)}",
            path=path,
            word="test_types",
        )
    content["contextual_words"] = [*map(cleaned, content["contextual_words"])]
    return content, repeated


def _json(path: Path) -> tuple[Any, list[tuple]]:
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

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no number of JSON")

    text = read_text(path, DataError)
    try:
        content = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path} is not one JSON object: {error.msg} in line {error.lineno}, column "
            f"{error.colno}; a released file holds a single object",
            path=path,
            row=error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is not one JSON object: {error}; see a released file", path=path
        ) from error
    return content, repeated


def _require(value: Any, shape: Any, path: Path, key: str = "") -> None:
    """Refuse a value that is not of a shape: a type, a list of texts, or an object with keys."""
    kind = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind):
        given = KINDS.get(type(value), type(value).__name__)
        raise DataError(
            f"{path}{f': {key} is' * bool(key) or ' holds'} {given}, not {KINDS[kind]}; see a "
            "released file",
            path=path,
            word=key or None,
        )
    if kind is list:
        for place, each in enumerate(value):
            _require(each, str, path, f"{key}[{place}]")
    for name, of in shape.items() if kind is dict else ():
        for each in value if name == "*" else [name]:
            place = f"{key}.{each}".lstrip(".")
            if each not in value:
                raise DataError(
                    f"{path} lacks the key {place}; it has {', '.join(sorted(value)) or 'no key'}",
                    path=path,
                    word=place,
                )
            _require(value[each], of, path, place)


def _number(value: Any, path: Path, key: str) -> int:
    """Return a caption number, which files also give as text."""
    if type(value) is int or (isinstance(value, str) and value.strip().isdecimal()):
        return int(value)
    raise DataError(
        f"{path}: {key}: {json.dumps(value)} is no caption number; write a whole number that the "
        "captions have",
        path=path,
        word=key,
    )


def _read_sets(content: dict, path: Path):
    """Return captions, pairs and problems of the six sets."""
    words = content["contextual_words"]
    captions, pairs, found = [], [], []
    for key, role in ROLES.items():
        place, texts = f"{key}.captions", {}
        for number, text in content[key]["captions"].items():
            text = cleaned(text)
            texts[_number(number, path, place)] = (text, _word_of(text, words))
        if len(texts) < len(content[key]["captions"]):
            raise DataError(
                f"{path}: {place}: two captions have one number; number them anew",
                path=path,
                word=place,
            )
        captions += [(role, number, *text) for number, text in texts.items()]
        for set_name, name in _image_sets(content, key):
            _require(content[key], {name: {}}, path, key)
            rows, wrong = _pair_rows(set_name, content[key][name], texts, path, f"{key}.{name}")
            pairs += rows
            found += wrong
    captions = pandas.DataFrame(captions, columns=PAIRS[:-1])
    return captions, pandas.DataFrame(pairs, columns=PAIRS), found


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
        if not isinstance(numbers, list):
            found.append(
                ("note", "caption number is not in a list", set_name, f"{image}: {numbers!r}")
            )
        if numbers == []:
            found.append(("error", "image without a caption", set_name, image))
        for each in numbers if isinstance(numbers, list) else [numbers]:
            number = _number(each, path, f"{key}.{image}")
            if number in texts:
                rows.append((set_name, number, *texts[number], image))
            else:
                found.append(("error", "caption is not there", set_name, f"{image}: {number}"))
    return rows, found


def _notes_on_file(words: list, pairs: pandas.DataFrame, dataset: str, path: Path) -> list[tuple]:
    """Note that a file has no contextual words, or images that another data set's names have."""
    found = []
    if not words:
        what = "no contextual words: the contextual level and Experiment 3 cannot be run"
        found.append(("note", "key is missing", path.name, what))
    foreign = pairs.loc[pairs["image"].str.startswith("COCO_"), "image"].nunique()
    if foreign and dataset != "coco":
        what = f"{foreign} images are named as COCO's"
        found.append(("note", "images of another data set", path.name, what))
    return found


def _notes_on_sets(captions: pandas.DataFrame, pairs: pandas.DataFrame) -> list[tuple]:
    """Note captions that repeat, have no image or no contextual word, and sets that are alike."""
    counts = captions.groupby("set")["caption"].agg(["size", "nunique"])
    found = [
        ("captions repeat", row.Index, f"{row.size} captions, {row.nunique} of them different")
        for row in counts[counts["size"] > counts["nunique"]].itertuples()
    ]
    for attribute in "AB":
        one, other = (set(pairs.loc[pairs["set"] == f"{attribute}{t}", "image"]) for t in "xy")
        if one and one == other:
            what = "the images are the same with both targets, so that Experiments 1 and 2 coincide"
            found.append(("sets are the same", f"{attribute}x, {attribute}y", what))
    for name, rows in pairs.groupby("set"):
        known = captions[captions["set"] == name[0]]
        lacking = known.loc[~known["caption_id"].isin(rows["caption_id"]), "caption"]
        found += [("caption without an image", name, text) for text in lacking]
    wordless = captions.loc[captions["word"] == "", ["set", "caption"]]
    found += [("caption without a contextual word", *row) for row in wordless.to_numpy()]
    return [("note", *each) for each in found]


def _captions_of(test: stimuli.AssociationTest) -> pandas.DataFrame:
    """Return the captions of a test, with the word of each."""
    rows = [
        (role, text, word)
        for role in "XYAB"
        for text, word in zip(getattr(test, role), test.words[role], strict=True)
    ]
    table = pandas.DataFrame(rows, columns=["set", "caption", "word"])
    return table.assign(caption_id=table.groupby("set").cumcount())


def _pair_folder(folder: Path, set_name: str, captions: pandas.DataFrame):
    rows, found = [], []
    for word, of_word in captions.groupby("word", sort=False):
        names = [folder / set_name / each for each in dict.fromkeys([word, word.replace(" ", "_")])]
        images = [image for name in names for image in images_in(name)]
        if not images:
            found.append(("error", "word without an image", set_name, word))
        rows += [
            (set_name, row.caption_id, row.caption, word, image.relative_to(folder).as_posix())
            for image in images
            for row in of_word.itertuples()
        ]
    return rows, found


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
            candidates = [root / image, *(root / group / image for group in ROLES)]
            found[image] = [path for path in candidates if path.is_file()]
            if found[image]:
                break
    return found


def _twins(sound: pandas.DataFrame) -> list[tuple]:
    """Note pictures that are there twice: in a set under two names, or in two sets."""
    found = []
    for _, rows in sound.groupby("sha256"):
        for set_name, names in rows.groupby("set")["image"]:
            if len(names) > 1:
                found.append(("note", "picture is there twice", set_name, ", ".join(names)))
        for one, other in COMPARED:
            if {one, other} <= set(rows["set"]):
                what = rows.loc[rows["set"] == one, "image"].iloc[0]
                found.append(("note", "picture is in two sets", f"{one}, {other}", what))
    return found


def _unbalanced(table: pandas.DataFrame) -> list[tuple]:
    """Note sets that are compared, and of which more images are left, or a larger share, in one."""
    sets = table.set_index("set")
    found = []
    for one, other in COMPARED:
        if {one, other} <= set(sets.index):
            two = sets.loc[[one, other]]
            if two["images_left"].nunique() > 1 or two["share"].nunique() > 1:
                counts = [f"{r.Index} {r.images_left} of {r.n_images}" for r in two.itertuples()]
                found.append(("note", "sets are unbalanced", f"{one}, {other}", ", ".join(counts)))
    return found
