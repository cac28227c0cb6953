"""Names and words from outside: what looks the same is the same, and what says nothing is none."""

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["INVISIBLE", "MISSING", "cleaned", "look_alikes"]

MISSING = frozenset([
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
])  # fmt: skip
"""What stands for a value that is missing, as ``pandas.read_csv`` has it."""

INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
"""Characters without a width, as the inside of a pattern's brackets: soft hyphens, marks of order
and of direction, zero-width spaces.

:meta hide-value:
"""

CONTROL = r"\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
"""What a terminal obeys, except blanks."""

GOES = re.compile(rf"[{INVISIBLE}{CONTROL}]|[\u200c\u200d]+(?=[\0-\u052f]|$)")
"""Joiners go before Latin, Greek and Cyrillic; they show in other scripts, and in emoji."""

BLANK = re.compile(r"[\s\u115f\u1160\u2800\u3164\uffa0]")

LOOKS = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮԌаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχ‐‑‒–—−_-‘’ʼ",
    "ABESIJKMHOPCTYXYGaeopcyxijshdqwABEZHIKMNOPTYXaivopux        '''",
)
"""Cyrillic and Greek letters, dashes and quotation marks, and what they are taken for."""


def cleaned(text: str) -> str:
    r"""Return a label, name or caption without what nobody sees, each letter as one character.

    Letters and accents are composed (NFC), invisible characters and outer blanks go, and blanks of
    every kind become spaces.

    Examples
    --------
    >>> cleaned(" a\u0308l\u00adter\u200b ") == "\u00e4lter"
    True
    """
    return BLANK.sub(" ", unicodedata.normalize("NFC", GOES.sub("", text))).strip()


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    r"""Return the names that differ by case, by dashes and blanks, or by letters of another script.

    Examples
    --------
    >>> look_alikes(["Women", "men", "women", "non-binary", "non binary"])
    [['Women', 'women'], ['non-binary', 'non binary']]
    """
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        seen = re.sub("[\u034f\u200c\u200d\ufe00-\ufe0f]", "", name)
        looks = unicodedata.normalize("NFKC", seen).translate(LOOKS)
        found.setdefault(" ".join(looks.casefold().split()), []).append(name)
    return [each for each in found.values() if len(each) > 1]
