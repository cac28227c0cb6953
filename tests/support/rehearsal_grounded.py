"""Sample data of study 1 in the released layout: drawings for photographs, rows of our own."""

import json
from pathlib import Path

from PIL import Image

from biaslib import planted
from biaslib.studies import grounded as study

TESTS = {
    "google": ["C6", "occupation-gender"],
    "coco": ["C6", "C8"],
    "concap": ["C6", "occupation-gender"],
}
"""Tests by source of images: a few, since every picture runs through a detector.

C8 is in domain alone, and is not compared; nor is what VisualBERT and LXMERT lack in domain.
"""

LOST = "images/google/weat6/X_Paul_1.jpg"
"""A picture whose link is dead: what is run is told to go on without it."""

WORDS = 2
"""Words a set, each with one picture a context."""

PARTS = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
NAMES = {ours: released for released, ours in study.RELEASED.items()}


def build(folder: Path) -> Path:
    """Write ``ross2021``: test files of words and of sentences, and pictures, for each source."""
    root = folder / "ross2021"
    for source, names in TESTS.items():
        tests = root / "tests" / "grounded-tests" / source
        tests.mkdir(parents=True)
        for sets in study.planted_stimuli(names, ["word", "contextual"], n_texts=2):
            prefix = "" if sets.level == "word" else "sent-"
            released = prefix + NAMES[sets.test]
            content = _test(sets, released, source, root / "images" / source)
            (tests / f"{released}.jsonl").write_text(json.dumps(content), encoding="utf-8")
    (root / LOST).unlink()
    return root


def _test(sets, name: str, source: str, images: Path) -> dict:
    folder = images / name
    folder.mkdir(parents=True)
    kept = sets.rows[sets.rows.groupby("set")["word"].transform(_place) < WORDS]
    types = ["word"] if sets.level == "word" else ["sentence", "contextual"]
    content = {
        "test_name": name,
        "dataset": source,
        "dataset_dir": name,
        "test_types": types,
        "contextual_words": kept["word"].drop_duplicates().tolist(),
    }
    for part, role in PARTS.items():
        rows = kept[kept["set"].str[0] == role]
        captions = rows["text"].drop_duplicates().tolist()
        content[part] = {"category": part, "captions": dict(enumerate(captions))}
        for set_name, shown in rows.groupby("set"):
            key = "images" if role in "XY" else f"targ{'xy'.index(set_name[1]) + 1}_Images"
            content[part][key] = _pictures(sets, shown, captions, folder)
    return content


def _place(words):
    return words.map({word: place for place, word in enumerate(dict.fromkeys(words))})


def _pictures(sets, rows, captions: list[str], folder: Path) -> dict[str, list[int]]:
    """Draw the pictures of a set, and return the numbers of the captions of each."""
    found: dict[str, list[int]] = {}
    drawn = planted.draw(sets.pool.take(rows["image"].to_numpy()), size=96)
    for row, picture in zip(rows.itertuples(), drawn, strict=True):
        name = f"{row.set}_{row.word}_{row.image}.jpg".replace(" ", "_")
        Image.fromarray(picture).save(folder / name)
        found.setdefault(name, []).append(captions.index(row.text))
    return found
