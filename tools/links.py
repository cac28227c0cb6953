"""Ask every outside address that the book, the notebooks and the README link to: ``make links``.

Headers alone are asked for. What is gone (404, 410, or no such host) is printed with the files that
link to it, and makes the exit status 1. What refuses to be asked by a program (403, 429 and the
like) is printed, and left to a person.
"""

import json
import re
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import addresses

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("*.md", "book/**/*.md", "book/references.bib", "notebooks/*.ipynb")
ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^\]]+")
OURS = ("YOUR_ACCOUNT", "//localhost", "//127.", "//example.")
"""Parts of addresses that lead nowhere on purpose."""

GONE = ("404", "410", "Name or service not known", "nodename nor servname")


def text_of(path: Path) -> str:
    """Return a page's text; of a notebook that of its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text


def linked(text: str) -> set[str]:
    """Return the outside addresses of a text, without what closes a sentence or a bracket.

    >>> sorted(linked("See [it](https://a.org/b_(c)), https://a.org. And http://localhost:8000"))
    ['https://a.org', 'https://a.org/b_(c)']
    """
    found = set()
    for address in ADDRESS.findall(text):
        address = address.rstrip(".,;:!?*")
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(".,;:!?*")
        found.add(address.partition("#")[0])
    found |= {f"https://doi.org/{doi}" for doi in re.findall(r"\bdoi\s*=\s*[{\"]([^}\"]+)", text)}
    return {each for each in found if not any(part in each for part in OURS)}


def places(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the files that link to each address."""
    found = defaultdict(list)
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        for address in linked(text_of(path)):
            found[address].append(path.relative_to(root).as_posix())
    return dict(sorted(found.items()))


def main(root: Path = ROOT) -> int:
    """Ask all of them, and print what is wrong; return the exit status."""
    where = places(root)
    with ThreadPoolExecutor(8) as pool:
        told = pool.map(lambda address: addresses.asked(address, page=True)["problem"], where)
        problems = {address: text for address, text in zip(where, told, strict=True) if text}
    gone = {each for each, text in problems.items() if any(part in text for part in GONE)}
    for address, text in problems.items():
        kind = "gone" if address in gone else "not sure"
        print(f"{kind}: {address}: {text} ({', '.join(where[address])})")
    print(f"{len(where) - len(problems)} of {len(where)} outside addresses answer")
    return int(bool(gone))


if __name__ == "__main__":
    sys.exit(main())
