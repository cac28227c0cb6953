"""Sample data of study 4: rows of our own in the released format, and emoji for photographs."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

import plantedworld
from biaslib.datasets import vlstereoset

HEADER = [*vlstereoset.COLUMNS, ""]

TERMS = {
    "gender": ("sister", "grandfather"),
    "profession": ("engineer", "plumber"),
    "race": ("Norway", "Russian"),
    "religion": ("Muslim",),
}
ATTRIBUTES = (("tall", "small", "soup"), ("early", "late", "fork"), ("near", "far", "lamp"))
IMAGES = 2
"""Images a triplet and label."""

CONTEXTS = ("I heard that the {term} was {{}} again.", "She says that her {term} is {{}} again.")
CONTEXTS += ("The girl heard that the {term} was {{}} again.",)
"""One a triplet: of gender, the second is reworded, and the third still says a gender."""


def rows() -> list[dict[str, str]]:
    """Return the rows: every target with every triplet, labels out of balance."""
    found = []
    for category, terms in TERMS.items():
        for term in terms:
            for number, words in enumerate(ATTRIBUTES):
                for image in range(2 * IMAGES - (number == 0)):
                    url = f"http://example.org/{category}/{term}/{number}/{image}.jpg".lower()
                    found.append(_row(category, term, words, image % 2, url, CONTEXTS[number]))
    return found


def _row(
    category: str, term: str, words: tuple[str, ...], label: int, url: str, context: str
) -> dict[str, str]:
    context = context.format(term=term)
    texts = [context.format(word) for word in ("", *words)]
    values = [category, term, *texts, str(label), url, ""]
    return dict(zip(HEADER, values, strict=True))


def write(path: Path, table: list[dict[str, str]]) -> None:
    """Write rows as the released file has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, HEADER)
        writer.writeheader()
        writer.writerows(table)


def build(folder: Path) -> None:
    """Write the table and its images below the folder of data; two links are dead."""
    place = folder / "vlstereoset"
    write(place / vlstereoset.FILE, rows())
    (place / "images").mkdir(exist_ok=True)
    links = vlstereoset.links(vlstereoset.read(place / vlstereoset.FILE).table)
    drawn = plantedworld.draw(
        plantedworld.faces(12, np.random.default_rng(0)).iloc[: len(links)], size=96
    )
    for picture, name in list(zip(drawn, links["file"], strict=True))[2:]:
        Image.fromarray(picture).save(place / "images" / name, format="PNG")
