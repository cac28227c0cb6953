"""Make the pages of one deck of slides, and of its notes, in the built site.

    make slides DECK=book/slides/own/my_deck.md

The site has to be built before (``make book``). The deck may be one of the book, one of
``book/slides/own``, which ``make book`` builds as well, or lie anywhere. With ``PPTX=yes`` it is
written as a file for PowerPoint, too.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "tools")]

import plans  # noqa: E402 - an extension of the book, which lies on no path
import policy  # noqa: E402
import powerpoint  # noqa: E402
import slides  # noqa: E402
import teaching  # noqa: E402
from sphinx.errors import ExtensionError  # noqa: E402


def main(path: Path, root: Path = ROOT, as_file: bool = False) -> int:
    """Make both pages of a deck, say where they are and which plans miss a slide of it."""
    site = root / "_build" / "html"
    if not (site / teaching.FOLDER / "index.html").is_file():
        print("There is no site in _build/html: run 'make book' first.", file=sys.stderr)
        return 1
    if not path.is_file():
        print(f"make slides DECK=path/to/deck.md: there is no file {path}", file=sys.stderr)
        return 1
    try:
        deck = make(path, site)
    except ExtensionError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(deck.slides)} slides, {deck.minutes} minutes: {address(site, deck).as_uri()}")
    if as_file:
        print(powerpoint.write(deck, site, root / "_build" / "slides" / f"{deck.stem}.pptx"))
    for complaint in missed(deck.stem, root):
        print(f"'make book' will stop: {complaint}", file=sys.stderr)
    return 0


def make(path: Path, site: Path) -> slides.Deck:
    """Write the pages of a deck into a site, with its policy."""
    stems = sorted(each.stem for each in (site / "notebooks").glob("*.html"))
    deck = teaching.write_deck(path, teaching.chapters(site, stems), site / teaching.FOLDER)
    for page in (address(site, deck, kind) for kind in ("slides", "notes")):
        kept = policy.kept(page.read_text(encoding="utf-8"), site / "_static", "../")
        page.write_text(kept, encoding="utf-8")
    return deck


def address(site: Path, deck: slides.Deck, kind: str = "slides") -> Path:
    return (site / teaching.FOLDER / f"{kind}_{deck.stem}.html").resolve()


def missed(stem: str, root: Path) -> list[str]:
    """Return what is wrong with the plans that name a deck, the first of each."""
    found = []
    for path in sorted((root / "book" / "plans").glob("*.yml")):
        said = re.sub(r"(^|\s)#.*", "", path.read_text(encoding="utf-8", errors="replace"))
        if re.search(rf"\b{stem}\b", said):
            try:
                plans.read(root, path.stem)
            except ExtensionError as error:
                found.append(str(error))
    return found


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2]).expanduser(), as_file=bool("".join(sys.argv[2:]))))
