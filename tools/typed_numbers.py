"""Change numbers of the book at random, one at a time, and count how many the tests notice.

``python -m tools.typed_numbers [--number 60] [--seed 20261128]``. Drawn are the numbers that are
typed into chapters, slides, quizzes, notes for instructors, plans and other pages, and have a
truth: not names (study 2, Table 3, a year), ends of scales (0 and 1), advice in minutes, nor what
was made up and has no consequence. Of each one digit becomes another. It is caught if
``tests/test_typed_numbers.py`` or the arithmetic of the plans fails for it.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEED, NUMBER = 20261128, 60
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "book" / "_ext")]

import plans  # noqa: E402
from sphinx.errors import ExtensionError  # noqa: E402
from support import typed  # noqa: E402
from test_typed_numbers import VALUES, faults  # noqa: E402

OF_PLANS = re.compile(r"minutes: (\d+)|[{ ]\d+: (\d\d+)[,}]")
CARD = re.compile(r"\*\*(?:Minutes\.|Time:)\*\* (\d+)(?:\D+(\d+))?")


def census() -> tuple[list[tuple[str, int, int]], Counter]:
    """Return where the numbers with a truth stand, and how many there are of each kind."""
    drawn, kinds = [], Counter()
    for page in typed.pages():
        text = typed.source(page)
        known = typed.known(page, text, VALUES)
        for match in typed.numbers(text):
            kind = "derived" if match.start() in known.at else "made up or cited"
            kind = "0 or 1" if match[0] in typed.BOUNDS and kind != "derived" else kind
            kinds[kind] += 1
            drawn += [(page, *match.span())] * (kind == "derived")
        data = {"book/plans": OF_PLANS, "notebooks": CARD}.get(page.rpartition("/")[0])
        found = [m.span(n) for m in data.finditer(text) for n in (1, 2) if m[n]] if data else []
        kinds["minutes"] += len(found)
        drawn += [(page, *span) for span in found]
    return drawn, kinds


def changed(number: str, rng: random.Random) -> str:
    """Return the number with one digit exchanged for another."""
    at = rng.choice([n for n, sign in enumerate(number) if sign.isdigit()])
    return number[:at] + rng.choice([d for d in "0123456789" if d != number[at]]) + number[at + 1 :]


def complaint(page: str, text: str) -> str:
    """Return what is said of a page with this text, or nothing."""
    typed.CHANGED[page] = text
    try:
        wrong = faults(page, text)
        wrong += faults("book/teaching.md") if page.startswith("notebooks/") else []
        if page.startswith("book/plans/"):
            wrong += plan_fault(page, text)
        return wrong[0] if wrong else ""
    finally:
        typed.CHANGED.clear()


def plan_fault(page: str, text: str) -> list[str]:
    """Return why the book would not be built with this plan."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "notebooks").symlink_to(ROOT / "notebooks")
        shutil.copytree(ROOT / "book", root / "book", symlinks=True)
        (root / page).write_text(text, encoding="utf-8")
        try:
            plans.read(root, Path(page).stem)
        except ExtensionError as error:
            return [str(error)]
    return []


def main(number: int, seed: int) -> int:
    """Print each change, and what was said of it; return how many were noticed."""
    rng = random.Random(seed)
    places, kinds = census()
    print(*(f"{n} {kind}" for kind, n in kinds.items()), sep=", ")
    caught = 0
    for page, start, end in rng.sample(places, number):
        text = typed.source(page)
        other = changed(text[start:end], rng)
        said = complaint(page, text[:start] + other + text[end:])
        caught += bool(said)
        print(f"{'caught' if said else 'MISSED'} | {page} | {text[start:end]} as {other} | {said}")
    print(f"{caught} of {number} caught, seed {seed}")
    return caught


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--number", type=int, default=NUMBER)
    arguments.add_argument("--seed", type=int, default=SEED)
    main(**vars(arguments.parse_args()))
