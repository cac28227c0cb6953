"""Say which pages of the built book differ from those of another build, or of the published one.

``python tools/changed_pages.py OLD [NEW]`` prints a list in Markdown. OLD and NEW are folders, or
OLD is an address; NEW is ``_build/html`` if it is not given. Words are compared, and how many
pictures a page has; stamps are left out, since they have another date with every run.
"""

import difflib
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30
LISTED = 12
"""Words of a change that are printed."""


@dataclass(frozen=True)
class Page:
    """What is compared of a page."""

    words: tuple[str, ...]
    pictures: int


def read(html: str) -> Page:
    """Return the words of a page's article, and the number of its pictures.

    >>> read("<nav>a</nav><article>One <b>two</b><dl class='stamp'>today</dl><img></article>")
    Page(words=('One', 'two'), pictures=1)
    """
    soup = BeautifulSoup(html, "html.parser")
    article = soup.find("article") or soup
    for each in article.select(".stamp, script, style"):
        each.decompose()
    return Page(tuple(article.get_text(" ").split()), len(article.find_all("img")))


def page_of(place: str, name: str) -> Page | None:
    """Return a page of a build in a folder or at an address; None if it has none of this name."""
    if not place.startswith(("http://", "https://")):
        path = Path(place) / name
        return read(path.read_text(encoding="utf-8")) if path.is_file() else None
    try:
        with urllib.request.urlopen(f"{place.rstrip('/')}/{name}", timeout=SECONDS) as answer:
            return read(answer.read().decode("utf-8"))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise


def change(old: Page | None, new: Page) -> str:
    """Return how a page differs, in words; nothing where it does not.

    >>> change(Page(("a", "b"), 1), Page(("a", "c", "d"), 1))
    '2 words more, 1 less: **c d** in place of **b**'
    >>> change(None, Page(("a",), 0)), change(Page(("a",), 0), Page(("a",), 0))
    ('new', '')
    """
    if old is None:
        return "new"
    matcher = difflib.SequenceMatcher(None, old.words, new.words, autojunk=False)
    parts = [part for part in matcher.get_opcodes() if part[0] != "equal"]
    told = []
    if parts:
        more = sum(end - start for *_, start, end in parts)
        less = sum(end - start for _, start, end, *_ in parts)
        _, *(a, b, c, d) = parts[0]
        told.append(f"{more} words more, {less} less: {_shown(new.words[c:d], old.words[a:b])}")
    if old.pictures != new.pictures:
        told.append(f"{new.pictures} pictures, before {old.pictures}")
    return "; ".join(told)


def _shown(new: tuple[str, ...], old: tuple[str, ...]) -> str:
    parts = [f"**{_short(each)}**" if each else "nothing" for each in (new, old)]
    return f"{parts[0]} in place of {parts[1]}"


def _short(words: tuple[str, ...]) -> str:
    dots = " …" if len(words) > LISTED else ""
    return " ".join(words[:LISTED]).replace("|", "/").replace("*", "") + dots


def report(old: str, new: Path) -> str:
    """Return the list of changed pages in Markdown.

    Raises
    ------
    FileNotFoundError
        If there is no site in the folder.
    """
    names = sorted(path.relative_to(new).as_posix() for path in new.rglob("*.html"))
    names = [name for name in names if not name.startswith(("_", "teach/"))]
    if not names:
        raise FileNotFoundError(f"no pages in {new}: run 'make book' first")
    found = {name: change(page_of(old, name), page_of(str(new), name)) for name in names}
    changed = {name: text for name, text in found.items() if text}
    head = f"{len(changed)} of {len(names)} pages differ.\n"
    if not changed:
        return head
    rows = "".join(f"| {name} | {text} |\n" for name, text in changed.items())
    return f"{head}\n| Page | The first change, and how many words |\n| --- | --- |\n{rows}"


def main(arguments: list[str]) -> int:
    """Print the list; return 2 if it is not known what to compare."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    new = Path(arguments[1]) if len(arguments) == 2 else ROOT / "_build" / "html"
    try:
        print(report(arguments[0], new))
    except (OSError, ValueError) as error:
        print(f"cannot compare with {arguments[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
