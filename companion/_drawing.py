"""What a panel shows of one choice: a sentence and a plot, described and not yet drawn."""

import base64
import io
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas

from biaslib.display import Table

KINDS = ("dots", "bars", "line", "steps", "rule")
GROUPS = 6
HEIGHT = 300
"""Height of a plot in the units of its view box, which is 480 wide."""

LETTER = 7.4
"""Width of a letter of a tick, in the same units."""


@dataclass
class Drawing:
    """A sentence and a plot.

    Parameters
    ----------
    sentence
        The result in words; read aloud when a choice changes.
    marks
        One dictionary a mark, drawn in their order. ``kind`` is one of

        - ``dots``: at ``x`` and ``y``, each with ``text`` beside it, a name in ``names`` that is
          shown where the mouse rests on it, and an interval from ``low`` to ``high`` where these
          are given;
        - ``bars``: from 0 to ``y`` around ``x``; as wide as the smallest gap between two, or as
          ``width``; with intervals as dots have them;
        - ``line``: through ``x`` and ``y``, with a band from ``low`` to ``high``; broken where
          ``dashed``;
        - ``steps``: a histogram of heights ``y`` between edges ``x``, one more than heights;
        - ``rule``: dashed lines across the plot, upright at each ``x``, level at each ``y``.

        ``label`` names it in the legend; ``group`` (0 to 5) gives colour and shape; lines and rules
        that only guide the eye are ``thin``. Intervals are along y, or along x where ``along`` is
        ``"x"``. A value beyond the range is drawn at its edge.
    x_label, y_label
        Names of the axes, with units.
    x_range, y_range
        Ends of the axes.
    alt
        What the plot looks like, for those who do not see it; the sentence is added.
    table
        The numbers behind the plot, folded below it.
    images
        Pairs of an address of a picture and words, as :func:`picture` gives them, shown beside.
    note
        Words in the plot's corner, such as ``"planted world"``.
    x_ticks, y_ticks
        Names by position, for axes of kinds; ``None`` takes round numbers.
    height
        Height of the plot where its width is 480.

    Raises
    ------
    ValueError
        If a mark is of no known kind or group, or its lists do not fit together; the message names
        the mark.

    Examples
    --------
    >>> dots = {"kind": "dots", "x": [0.0, 1.0], "y": [0.2, 0.4], "label": "words", "group": 0}
    >>> Drawing("Two words.", [dots], "dose", "score", (0, 1), (0, 1), "Two dots.").x_ticks
    {0.0: '0', 0.2: '0.2', 0.4: '0.4', 0.6: '0.6', 0.8: '0.8', 1.0: '1'}
    """

    sentence: str
    marks: list[dict[str, Any]]
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    alt: str
    table: pandas.DataFrame | None = None
    images: list[tuple[str, str]] = field(default_factory=list)
    note: str = ""
    x_ticks: dict[float, str] | None = None
    y_ticks: dict[float, str] | None = None
    height: int = HEIGHT

    def __post_init__(self) -> None:
        for number, mark in enumerate(self.marks):
            _require_sound(number, mark)
        self.x_ticks = round_ticks(self.x_range) if self.x_ticks is None else self.x_ticks
        self.y_ticks = round_ticks(self.y_range) if self.y_ticks is None else self.y_ticks

    def as_dict(self) -> dict[str, Any]:
        """Return what the page's script draws from: texts, lists and numbers only."""
        table = "" if self.table is None else Table(self.table, "The numbers", True)._repr_html_()
        return {
            "sentence": self.sentence,
            "marks": [{key: _plain(value) for key, value in mark.items()} for mark in self.marks],
            "labels": [self.x_label, self.y_label],
            "x": _plain(self.x_range),
            "y": _plain(self.y_range),
            "ticks": [[[_plain(at), text] for at, text in t.items()] for t in self._ticks()],
            "left": self._left(),
            "height": self.height,
            "alt": self.alt,
            "note": self.note,
            "table": table,
            "images": [list(pair) for pair in self.images],
        }

    def _ticks(self) -> tuple[dict[float, str], dict[float, str]]:
        return self.x_ticks or {}, self.y_ticks or {}

    def _left(self) -> int:
        """Return the place that the names along the upright axis need."""
        return round(
            16 + LETTER * max((len(text) for text in self._ticks()[1].values()), default=0)
        )


def _require_sound(number: int, mark: dict[str, Any]) -> None:
    name = f"mark {number} ({mark.get('label', 'without label')!r})"
    kind, x, y = mark.get("kind"), len(mark.get("x", ())), len(mark.get("y", ()))
    if kind not in KINDS:
        raise ValueError(f"{name} is of the kind {kind!r}; known: {', '.join(KINDS)}")
    if mark.get("group", 0) not in range(GROUPS):
        raise ValueError(f"{name} is of group {mark['group']!r}; there are 0 to {GROUPS - 1}")
    if kind != "rule" and x != y + (kind == "steps"):
        wanted = "one x more than y" if kind == "steps" else "as many x as y"
        raise ValueError(f"{name} has {x} x and {y} y; {kind} have {wanted}")
    for key in ("text", "names", "low", "high"):
        if len(mark.get(key, ())) not in (0, y):
            raise ValueError(f"{name} has {len(mark[key])} values of {key!r} for {y} of y")


def _plain(value: Any) -> Any:
    """Return numbers to five digits, which is more than a plot can show; undefined ones as None."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, list | tuple | np.ndarray | pandas.Series | pandas.Index):
        return [_plain(each) for each in value]
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{float(value):.5g}")


def round_ticks(ends: tuple[float, float], most: int = 6) -> dict[float, str]:
    """Return round numbers along an axis, with their names.

    >>> round_ticks((-2, 2))
    {-2.0: '−2', -1.0: '−1', 0.0: '0', 1.0: '1', 2.0: '2'}
    """
    low, high = min(ends), max(ends)
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        raise ValueError(f"the ends of an axis are {ends}; give two different numbers")
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(number * step, 12) for number in range(first, last + 1)]
    return {value: f"{value:g}".replace("-", "−") for value in values}


def histogram(values: np.ndarray, edges: np.ndarray) -> dict[str, Any]:
    """Return the mark of a histogram: shares of values, from the first bin with any to the last.

    >>> histogram(np.array([0.1, 0.6, 0.7, 0.9]), np.array([-0.5, 0.0, 0.5, 1.0]))
    {'kind': 'steps', 'x': [0.0, 0.5, 1.0], 'y': [0.25, 0.75]}
    """
    counts, _ = np.histogram(values, edges)
    first, last = np.flatnonzero(counts)[[0, -1]]
    shares = (counts[first : last + 1] / len(values)).round(4)
    return {"kind": "steps", "x": edges[first : last + 2].tolist(), "y": shares.tolist()}


def picture(image: Any, words: str) -> tuple[str, str]:
    """Return a picture of the planted world for a drawing: its address, which holds it, and words.

    Parameters
    ----------
    image
        A PIL image, or an array of (height, width, 3) bytes.
    words
        What it shows; they stand below it, and for it where it is not seen.
    """
    from PIL import Image

    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    held = io.BytesIO()
    image.save(held, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode()}", words
