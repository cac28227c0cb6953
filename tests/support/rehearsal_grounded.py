"""Sample data of study 1: the authors' tests where they are at hand, with squares for photographs.

Of each set the pictures of a few words are there, since every picture runs through a detector; the
others are missing, as they are for a reader of dead links: no link is asked again.
"""

import contextlib
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from support import released

from biaslib.datasets import DataError, ross2021
from biaslib.runtime import file_sha256


def build(folder: Path) -> Path:
    """Put ``ross2021`` into a folder: tests and lists of links, and pictures for each source."""
    root = released.copied(folder)
    released.place(root)
    for source in released.SOURCES:
        with contextlib.suppress(DataError):  # the list of Conceptual Captions, which none may have
            record(root, source)
    return root


def record(root: Path, source: str) -> None:
    """Write what became of every link: it gave the picture that is there, or is dead for good."""
    folder, (links, _) = ross2021.image_folder(root, source), ross2021.links(root, source)
    paths = [folder / file for file in links["file"]]
    hashes = [file_sha256(path) if path.is_file() else "" for path in paths]
    outcomes = ["here" if sha256 else "error 404" for sha256 in hashes]
    rows = links[["file", "url"]].assign(outcome=outcomes, sha256=hashes, bytes=0, date="")
    rows.to_csv(folder / "downloads.csv", index=False)


def publish(folder: Path) -> None:
    """Write the authors' files as their host has them, and what is behind links that are alive.

    Those are the links to the pictures of :func:`build`, and every second one of a taste.
    """
    host = folder / ross2021.FILES.removeprefix("https://")
    for part in ("tests", "data"):
        shutil.copytree(released.REAL / part, host / part)
    with tempfile.TemporaryDirectory() as scratch:
        root = released.copied(Path(scratch))
        released.place(root)
        for number, file in enumerate(ross2021.taste()[::2]):
            released.draw(root / "images" / "google" / file, 1000 + number)
        for source in ("google", "coco"):
            links, _ = ross2021.links(root, source)
            for file, url in zip(links["file"], links["url"], strict=True):
                picture, address = root / "images" / source / file, urlsplit(url)
                place = folder / "links" / address.netloc / unquote(address.path).lstrip("/")
                if picture.is_file() and not place.exists():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(picture, place)
