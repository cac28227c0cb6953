"""Names and words from outside: what looks the same is the same, and what says nothing is none."""

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal

__all__ = ["INVISIBLE", "MISSING", "cleaned", "look_alikes", "says_nothing"]

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

NOTHING = re.compile(
    "na|nan|nat|nil|none|null|missing|un(known|defined|specified|disclosed|labell?ed)"
    "|no(answer|data|label|value)"
    "|not(applicable|available|given|known|provided|recorded|reported|specified|stated)"
)
"""What people write for a missing value, its letters alone. It can be meant as a group."""

LOOKS = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮԌаеорсухіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχıİ‐‑‒–—−_-‘’`ʹʻʼʽˈ",
    "ABESIJKMHOPCTYXYGaeopcyxijshdqwABEZHIKMNOPTYXaivopuxiI        ''''''''",
)
"""Cyrillic, Greek and Turkish letters, dashes and quotation marks, and what they are taken for."""

NUMBER = re.compile(
    r"(?:(?<!\w)\+)?(?:(?<![\w.])((?:\d+(?:\.\d*)?|\.\d+)e[+-]?\d{1,3})(?!\w)"
    r"|(?<![\d.])(\d*\.\d+|\d+)(?!\.?\d))",
    re.IGNORECASE,
)
"""Numbers, also within a name; powers of ten stand alone, and dates with dots are none."""


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
    r"""Return the names that differ by case, dashes, blanks, or the spelling of a letter or number.

    Examples
    --------
    >>> look_alikes(["Women", "men", "women", "non-binary", "non binary", "7", "007", "7.0", "-7"])
    [['Women', 'women'], ['non-binary', 'non binary'], ['7', '007', '7.0']]
    """
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(_look(name), []).append(name)
    return [each for each in found.values() if len(each) > 1]


def says_nothing(label: str) -> bool:
    """Tell whether a label may stand for a missing one, though nothing says that it does.

    Examples
    --------
    >>> list(filter(says_nothing, ["?", "n.a.", "Not available", "♀", "-1", "other"]))
    ['?', 'n.a.', 'Not available']
    """
    looks = _look(label)
    letters = "".join(filter(str.isalnum, looks))
    signs = any(unicodedata.category(sign)[0] == "S" for sign in looks)
    return bool(NOTHING.fullmatch(letters)) or not (letters or signs)


def _look(name: str) -> str:
    """Return what is the same for names that look the same."""
    seen = re.sub("[\u034f\u200c\u200d\ufe00-\ufe0f]", "", name).replace("´", "'")
    plain = unicodedata.normalize("NFKC", seen).strip("'\"“”„«» ")
    plain = re.sub(r"(?<=\d)[,' ](?=\d{3}(?!\d))", "", plain)  # thousands
    plain = re.sub(r"(?<=\d),(?=\d)", ".", re.sub(r"^[-‐‑–−]\s*(?=\.?\d)", "minus ", plain))
    looks = NUMBER.sub(_number, plain).translate(LOOKS).casefold()
    return " ".join(looks.split()).rstrip(" .")


def _number(match: re.Match[str]) -> str:
    """Return a number as it is without needless zeros."""
    digits = format(Decimal(match[1] or match[2]), "f").lstrip("0")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) or "0"
