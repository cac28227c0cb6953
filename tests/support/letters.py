"""How large the letters of a figure are."""

import re

WORDS = re.compile(r'<g [^>]*transform="[^"]*scale\(([\d.]+) -[\d.]+\)">(.*?)</g>', re.DOTALL)
RAISED = re.compile(r'<use [^>]*transform="[^"]*scale\(([\d.]+)\)')
COLUMN = 528
"""Width in points of the book's text column on a desktop; a wider figure is made smaller."""


def smallest_letters(svg: str) -> float:
    """Return the size in points of the smallest letters of a picture by Matplotlib, on its page.

    A letter is a path with 100 units to the em; the raised ones of powers are scaled once more.
    """
    width = float(re.search(r'<svg [^>]*?width="([\d.]+)pt"', svg)[1])
    sizes = [
        100 * float(scale) * min(map(float, RAISED.findall(letters)), default=1.0)
        for scale, letters in WORDS.findall(svg)
    ]
    return min(sizes) * min(1.0, COLUMN / width)
