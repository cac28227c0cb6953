"""Side-by-side measurements: our code and what a user would pick instead, in one run."""

import datetime
import os
import platform

MACHINE = "measured on"
"""The column that says when and where a row was measured."""


def machine() -> str:
    """Return today's date and what the page says of this machine."""
    today = datetime.datetime.now(datetime.UTC).date()
    python = platform.python_version()
    return f"{today}, {platform.machine()}, {os.cpu_count()} cores, Python {python}"


def shown(value):
    """Return a value as the page shows it: large whole numbers in groups of three digits.

    Examples
    --------
    >>> shown(97698), shown(4096), shown(408)
    ('97,698', '4,096', 408)
    """
    return f"{value:,}" if isinstance(value, int) and value >= 1_000 else value


HEADS = {
    "of": "time of",
    "biaslib ms": "this package, ms",
    "loop ms": "plain loop, ms",
    "scipy ms": "SciPy, ms",
    "loop ratio": "plain loop, times longer",
    "scipy ratio": "SciPy, times longer",
    "p scipy": "p, SciPy",
    "p loop": "p, plain loop",
    "n images": "images",
    "words a set": "words per set",
    "product seconds": "bare product, s",
    "c asc seconds": "C-ASC, s",
    "top k seconds": "top k, s",
    "seconds extrapolated": "seconds, extrapolated",
    "largest difference in c asc": "largest difference in C-ASC",
    "by length s": "like lengths together, s",
    "as given s": "in the order given, s",
    "rows a batch": "rows per batch",
    "rows a shard": "rows per shard",
    "computed s": "computed, s",
    "read again s": "read again, s",
    "public s": "public call, s",
    "bare loop s": "bare loop, s",
    "entries": "entries counted",
    "of several words": "of these, of several words",
    "wall seconds": "wall-clock s",
    "processor seconds": "processor s",
    "numbers a region": "numbers per region",
    "gb loaded": "GB loaded",
    "gb at most": "GB at most",
    "seconds a picture": "s per picture",
    "processor seconds a picture": "processor s per picture",
    "targets a side": "targets per side",
    "tflop a second": "TFLOP/s",
    "gb a second": "GB/s",
    "flop an item": "FLOP per item",
    "bare a second": "bare loop, items/s",
    "memory a second": "pictures in memory, items/s",
    "files a second": "files, items/s",
    "share of ceiling": "share of the product's",
    "outputs error": "outputs, in standard deviations",
    "d error": "d",
    "p error": "p",
    "s error": "S",
    "sign of s changed": "signs of S that changed",
    "c asc error": "C-ASC",
    "top 100 kept": "nearest 100 kept",
    "vlrs error": "vlrs",
    "vlbs error": "vlbs",
    "choice changed": "choices that changed",
    "by line": "most often at",
    "note": "what it says",
    "device s": "on the card, s",
    "stored s": "again, stored, s",
    "cpu s": "on the CPU, s",
    "load s": "loading, s",
    "peak gb": "GB at most",
}
"""Columns of the tables in words."""


def head(column: str) -> str:
    """Return the name of a column, or of what was timed, in words.

    Examples
    --------
    >>> head("product_seconds"), head("kills")
    ('bare product, s', 'kills')
    """
    told = column.replace("_", " ")
    return HEADS.get(told, told)
