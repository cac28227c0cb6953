"""What several chapters show: names of tests, p-values with bounds, tables of what data lack."""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas
from PIL import Image

from biaslib import inference
from biaslib.display import Folded, fold, p_cell
from plantedworld import assets

_NAMES = pandas.read_csv(Path(__file__).parent / "data" / "tests.csv", index_col="test")

TESTS, ROWS = (_NAMES[column].to_dict() for column in ("title", "row"))
"""Study 1's tests by name, in our words and in a few: whose names, and what goes with them.

EA/AA: European American and African American.
"""

LEVEL = 0.05
"""The level that tables compare p-values with."""


def undecided(low: float, high: float) -> bool:
    """Say whether bounds of a p-value leave open whether it is below .05.

    >>> undecided(0.04, 0.06), undecided(0.04, 0.05), undecided(0.05, 0.06)
    (True, True, False)
    """
    return low < LEVEL <= high


def bounded_p(p_value: float, low: float, high: float) -> str:
    """Return a p-value for a column that says what it is; its bounds if they are undecided.

    >>> bounded_p(0.0123, 0.0121, 0.0125)
    '.012'
    >>> bounded_p(0.05, 0.0408, 0.0601)  # rounded outwards
    '.040 to .061'
    """
    if undecided(low, high):
        ends = math.floor(round(1e3 * low, 6)), math.ceil(round(1e3 * high, 6))
        return " to ".join(f"{end / 1e3:.3f}".removeprefix("0") for end in ends)
    return p_cell(p_value)


def p_cells(
    p_values: Iterable[float],
    lows: Iterable[float],
    highs: Iterable[float],
    method: str | None = None,
) -> list[str]:
    """Return p-values for a column, with the bounds of those that these leave undecided.

    With a method of :func:`biaslib.inference.adjust` the p-values are corrected ones, and the
    bounds are not: corrected alike, they bound the corrected p-values.

    >>> p_cells([0.02, 0.9], [0.02, 0.9], [0.03, 0.9])
    ['.020', '.900']
    >>> p_cells([0.04, 0.9], [0.02, 0.9], [0.03, 0.9], "holm")
    ['.040 to .060', '.900']
    """
    if method is not None:
        lows, highs = (inference.adjust(list(each), method) for each in (lows, highs))
    return [bounded_p(*each) for each in zip(p_values, lows, highs, strict=True)]


def minus_signs(text: str) -> str:
    """Return text with true minus signs before numbers.

    >>> minus_signs("0.084 [-0.066, 0.215], VL-BERT")
    '0.084 [−0.066, 0.215], VL-BERT'
    """
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)


def availability_table(rows: Sequence[tuple[str, int, int, str]]) -> pandas.DataFrame:
    """Return what a chapter asks for, and how much of it is there.

    Parameters
    ----------
    rows
        What it is, how many are asked for, how many are there, and what is missing or instead.

    Examples
    --------
    >>> availability_table([("images", 72, 70, "tie, woman: 2 missing")]).values.tolist()
    [['images', '70 of 72', 'tie, woman: 2 missing']]
    """
    told = [(what, f"{there:,} of {asked:,}", note or "–") for what, asked, there, note in rows]
    return pandas.DataFrame(told, columns=["asked for", "there", "what is missing"])


def of_the_run(profile: str, *parts) -> Folded:
    """Return what a run has to show, figures and tables, behind one line."""
    line = "The run's tables and figures"
    if profile == "planted":
        line = "A toy's numbers, to show the form of the tables and figures"
    return fold(line, *parts)


def light(name: str, low: float, high: float):
    """Return a part of a palette, such as one whose shades are light enough for black ink.

    A dark page turns figures round: then the cells are dark and the ink is white, with as much
    contrast.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(name, colormaps[name](np.linspace(low, high, 129)))


def emoji_on_white(code: str) -> np.ndarray:
    """Return an emoji of Twemoji by its code point, (72, 72, 3)."""
    with Image.open(assets() / f"{code}.png") as opened:
        emoji = opened.convert("RGBA")
    white = Image.new("RGBA", emoji.size, "white")
    return np.asarray(Image.alpha_composite(white, emoji).convert("RGB"))


def titled(figure, title: str, columns: int = 3):
    """Return a figure with its finding above it and its legend below, in letters for a phone."""
    figure.suptitle(title, size=11)
    if figure.axes[0].get_legend_handles_labels()[1]:
        figure.legend(loc="outside lower center", frameon=False, ncols=columns, fontsize=10)
    for axes in figure.axes:
        axes.tick_params(labelsize=10)
        axes.xaxis.label.set_size(10)
        axes.yaxis.label.set_size(10)
    return figure
