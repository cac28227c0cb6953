"""The long form of the attack: ``make attack`` writes its counts to tests/attack/results.csv."""

import csv
import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from attack import Outcome, code, store

LONG: tuple[Callable[[], Outcome], ...] = (
    lambda: store.kills(200),
    lambda: store.damages(400),
    lambda: code.hidden_code()[0],
)
RESULTS = Path(__file__).parent / "results.csv"
HEADINGS = {
    "attack": "attack",
    "tried": "tried",
    "lost": "work lost",
    "wrong": "wrong answers",
    "raw": "raw errors",
    "run": "code run",
}


def outcomes() -> Iterator[Outcome]:
    """Make each attack, and print what came of it."""
    for attack in LONG:
        outcome = attack()
        print(*dataclasses.astuple(outcome), sep=", ", flush=True)
        yield outcome


def main() -> None:
    """Attack, write the table of the book, and fail if anything did harm."""
    print(*HEADINGS.values(), sep=", ")
    found = list(outcomes())
    with open(RESULTS, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADINGS.values())
        writer.writerows(dataclasses.astuple(each) for each in found)
    if any(each.harm for each in found):
        sys.exit("something was lost, wrong, raw or run")


if __name__ == "__main__":
    main()
