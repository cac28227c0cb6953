"""Study 1's release: the authors' files where they lie beside the repository, else ours in small.

Ours have the layout of theirs and one of each of their oddities; the words are the package's. The
pictures are coloured squares, at the names that the link lists write.
"""

import json
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from biaslib import datasets, stimuli

REAL = Path(__file__).parents[3] / "shared" / "data" / "ross2021"
LISTED = re.compile(r"-O (\S+)[ \t]+\S")
WORDS = 2
LISTED_CAPTIONS = 5_000
SOURCES = ("google", "coco", "concap")

COMPETENT = "heilman_gender_double_bind_competent"
FOLDERS = {
    "weat6": "weat6",
    "sent-weat6": "weat6",
    "weat8": "weat8",
    "sent-weat8": "weat8",
    "occ_gender": "occupations-gender",
    "sent-occ_gender": "occupations-gender",
    f"{COMPETENT}_one_word": "heilman-gender-double-bind-competent-one-word",
    f"{COMPETENT}_one_sentence": "heilman-gender-double-bind-competent-one-sent",
}
"""Our files of Google's images, and the folders of their lists."""

OURS = {"weat6": "C6", "weat8": "C8", "occ_gender": "occupation-gender"}
PARTS = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}


def copied(folder: Path) -> Path:
    """Copy the authors' tests and lists to a folder, or write ours."""
    root = folder / "ross2021"
    if REAL.is_dir():
        shutil.copytree(REAL / "tests", root / "tests")
        shutil.copytree(REAL / "data", root / "data")
    else:
        written(root)
    return root


def written(root: Path) -> Path:
    """Write our release: files of tests, lists of links, the list of Conceptual Captions."""
    for name in FOLDERS:
        _write(root, "google", name, _test(name, "google"))
    for source, names in {
        "coco": ["weat6", "sent-weat6", "weat8", "sent-weat8", "occ_gender", "sent-occ_gender"],
        "concap": ["weat6", "sent-weat6", "weat8", "occ_gender", "sent-occ_gender"],
    }.items():
        for name in names:
            _write(root, source, name, _test(name, source))
    _write_lists(root)
    lines = [f"a caption\t{_address(n)}\n" for n in range(LISTED_CAPTIONS)]
    (root / "Validation_GCC-1.1.0-Validation.tsv").write_text("".join(lines))
    return root


def _write(root: Path, source: str, name: str, content: dict) -> None:
    path = root / "tests" / "grounded-tests" / source / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _test(name: str, source: str) -> dict:
    """Return a test: two words a set, each with one picture a context."""
    level = "sentence" if name.startswith("sent-") or name.endswith("_sentence") else "word"
    ours = OURS.get(name.removeprefix("sent-"), "DB-competent-gender")
    test = stimuli.association_test(ours, level)
    content = {
        "test_name": name,
        "dataset": source,
        "test_types": ["word"] if level == "word" else ["sentence", "contextual"],
        "contextual_words": [],
    }
    for part, role in PARTS.items():
        words = list(dict.fromkeys(test.words[role]))[:WORDS]
        said = zip(getattr(test, role), test.words[role], strict=True)
        captions = {str(n): text for n, (text, word) in enumerate(said) if word in words}
        of_word = {w: [int(n) for n, text in captions.items() if w in text] for w in words}
        content[part] = {"category": part, "captions": captions}
        content["contextual_words"] += words
        for key, context in ({"images": ""} if role in "XY" else CONTEXTS).items():
            content[part][key] = {
                _name(ours, source, role, context, w): numbers for w, numbers in of_word.items()
            }
    if source == "google":
        content["dataset_dir"] = FOLDERS[name]
    return _odd(content, name, source)


CONTEXTS = {"targ1_Images": "x", "targ2_Images": "y"}
LISTS = {"targ1_Images": "attr1", "targ2_Images": "attr2"}
"""The lists of attributes go by the targets that they are shown with, but those of weat8."""


def _name(test: str, source: str, role: str, context: str, word: str) -> str:
    """Return what a picture is called: in Google's lists by its word, else by a number."""
    if test == "C8":  # the authors show its attributes with nobody
        context = ""
    if source == "google":
        return f"{role}{context}_{word.replace(' ', '_')}_0.jpg"
    number = zlib.crc32(f"{test} {role} {context} {word}".encode())
    if source == "coco" or test == "C8":
        return f"COCO_val2014_{number:012d}.jpg"
    return str(zlib.crc32(_address(number % LISTED_CAPTIONS).encode()))


def _address(number: int) -> str:
    return f"https://example.org/{number}.jpg?w=612&h=612"


def _odd(content: dict, name: str, source: str) -> dict:
    """Return the test with the oddities that the authors' file of that name has, and one more."""
    if (name, source) == ("weat6", "google"):
        content["dataset_dir"] = "weat13"
        content["targ1"]["images"]["addressless_0.jpg"] = [0]
    if name == "sent-weat6":  # a word of the list at the head of a sentence
        content["attr1"]["captions"]["999"] = "Executives are things."
        content["contextual_words"].append("executives")
        for key in CONTEXTS:
            next(iter(content["attr1"][key].values())).append(999)
    if (name, source) == ("sent-weat6", "coco"):
        pictures = content["targ1"]["images"]
        content["targ1"]["images"] = {image: str(ns[0]) for image, ns in pictures.items()}
    if (name, source) == ("sent-occ_gender", "google"):
        content["targ2"]["images"]["Y_nobody_0.jpg"] = []
    if (name, source) == ("weat8", "concap"):
        content["contextual_words"] = []
    if source == "coco":
        content["test_name"] = name.removeprefix("sent-")
    return content


def _write_lists(root: Path) -> None:
    """Write the lists of Google's images, with all that a line may be."""
    for name, folder in FOLDERS.items():
        content = _test(name, "google")
        sets = {
            (part, key): images
            for part in PARTS
            for key, images in content[part].items()
            if key.lower().endswith("images")
        }
        groups: dict[str, list[str]] = {part: [] for part in PARTS}
        for (part, key), images in sets.items():
            by_context = key in CONTEXTS and folder != "weat8"
            groups[LISTS[key] if by_context else part] += images
        for group, images in groups.items():
            path = root / "data" / "google-images" / folder / group / "get.sh"
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.read_text() if path.exists() else ""
            for number, image in enumerate(dict.fromkeys(images)):
                if f" {image} " not in written and image != "addressless_0.jpg":
                    written += f"wget --tries=2 -O {image} {_address(number)}\n\t\n"
            path.write_text(written, encoding="utf-8")
    odd = root / "data" / "google-images" / "weat6" / "targ1" / "get.sh"
    odd.write_text(odd.read_text() + ODD_LINES, encoding="utf-8")


ODD_LINES = r"""
# a comment
sleep 3
wget --tries=2 --timeout=10 -O escaped_0.jpg https://example.org/768x0/filters:no_upscale\(\)/a.jpg
wget -O "quoted 0.jpg" 'http://example.org/b c.jpg?x=1&y=2'
wget --tries=2 --timeout=10 -O addressless_0.jpg 
wget -O open_0.jpg 'http://example.org/open.jpg
curl https://example.org/a.jpg
wget -O ../outside_0.jpg https://example.org/a.jpg
wget -O escaped_0.jpg https://example.org/again.jpg
"""  # noqa: W291


def place(root: Path, n_words: int | None = WORDS, sources: tuple[str, ...] = SOURCES) -> int:
    """Place pictures below ``images``, of so many words a set, or of all; return how many.

    Google's lie at the names that the lists write, where there is an address.
    """
    numbers: dict[Path, int] = {}
    for source in sources:
        there = _listed(root) if source == "google" else None
        for path in sorted((root / "tests" / "grounded-tests" / source).glob("*.jsonl")):
            test = datasets.grounded_test(path)
            pairs = test.pairs[test.pairs["word"] != ""].drop_duplicates(["set", "word"])
            chosen = pairs.groupby("set").head(n_words) if n_words else test.pairs
            for image in chosen["image"].unique():
                file = image if there is None else there.get((test.folder, image))
                if file is not None:
                    numbers.setdefault(root / "images" / source / file, len(numbers))
    for path, number in numbers.items():
        draw(path, number)
    return len(numbers)


def _listed(root: Path) -> dict[tuple[str, str], str]:
    """Return where the lists write each image: folder of the test and name -> path."""
    found = {}
    for path in (root / "data" / "google-images").glob("*/*/get.sh"):
        test, group = path.parts[-3:-1]
        for name in LISTED.findall(path.read_text(encoding="utf-8")):
            found[test, name] = f"{test}/{group}/{name}"
    return found


def draw(path: Path, number: int) -> None:
    """Draw squares in colours of their own, small enough for a tiny detector."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.random.default_rng(number).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(colours).resize((96, 96), Image.Resampling.NEAREST).save(path, "png")
