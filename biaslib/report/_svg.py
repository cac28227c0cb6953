"""Draws a described plot as SVG; ``data/explorer.js`` draws the same in a page without a kernel."""

import html
import itertools
from collections.abc import Iterator
from typing import Any

from biaslib.report._drawing import BASE, RIGHT, TOP, WIDTH

SHAPES = [
    "M4,0A4,4 0 1 1 -4,0A4,4 0 1 1 4,0Z",
    "M-3.5,-3.5H3.5V3.5H-3.5Z",
    "M0,-5L5,0L0,5L-5,0Z",
    "M0,-5L4.8,3.6H-4.8Z",
    "M0,5L4.8,-3.6H-4.8Z",
    "M-4,-4L4,4M-4,4L4,-4",
]
"""Outlines of the dots of each group around 0, so that colour is not all that tells them apart."""

Element = tuple[str, dict[str, Any], str]


class _Axes:
    """Places of values in the view box."""

    def __init__(self, shown: dict[str, Any]):
        self.shown = shown
        self.left, self.right = shown["left"], WIDTH - RIGHT
        self.top, self.base = TOP, shown["height"] - BASE

    def x(self, value: float) -> float:
        return self._place(value, self.shown["x"], self.left, self.right)

    def y(self, value: float) -> float:
        return self._place(value, self.shown["y"], self.base, self.top)

    @staticmethod
    def _place(value: float, ends: list[float], start: float, stop: float) -> float:
        share = (value - ends[0]) / (ends[1] - ends[0])
        return start + (stop - start) * min(max(share, 0), 1)


def view(shown: dict[str, Any]) -> str:
    """Return plot, legend, pictures and table of a described drawing as HTML."""
    alt = html.escape(f"{shown['alt']} {shown['sentence']}")
    elements = "".join(map(_written, _elements(shown)))
    return (
        f'<div class="explorer-view"><svg class="explorer-plot" role="img" aria-label="{alt}" '
        f'viewBox="0 0 {WIDTH} {shown["height"]}">{elements}</svg>'
        f'<ul class="explorer-legend">{_legend(shown)}</ul>{_images(shown)}{shown["table"]}</div>'
    )


def _written(element: Element) -> str:
    name, attributes, text = element
    written = "".join(f' {key}="{_number(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{html.escape(text)}</{name}>"


def _number(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _legend(shown: dict[str, Any]) -> str:
    return "".join(
        f'<li><svg class="explorer-swatch" viewBox="-12 -7 24 14" aria-hidden="true">'
        f"{_written(_swatch(mark))}</svg> {html.escape(mark['label'])}</li>"
        for mark in shown["marks"]
        if mark.get("label")
    )


def _images(shown: dict[str, Any]) -> str:
    figures = (
        f'<figure><img class="no-invert" src="{address}" alt="{html.escape(words)}">'
        f'<figcaption aria-hidden="true">{html.escape(words)}</figcaption></figure>'
        for address, words in shown["images"]
    )
    return f'<div class="explorer-images">{"".join(figures)}</div>' if shown["images"] else ""


def _class(mark: dict[str, Any]) -> str:
    dashed = " explorer-dashed" if mark.get("dashed") or mark["kind"] == "rule" else ""
    thin = " explorer-thin" if mark.get("thin") else ""
    return f"explorer-{mark['kind']} explorer-group-{mark.get('group', 0)}{dashed}{thin}"


def _swatch(mark: dict[str, Any]) -> Element:
    if mark["kind"] == "dots":
        return "path", {"d": SHAPES[mark.get("group", 0)], "class": _class(mark)}, ""
    if mark["kind"] in ("bars", "steps"):
        return "rect", {"x": -11, "y": -5, "width": 22, "height": 10, "class": _class(mark)}, ""
    return "line", {"x1": -11, "x2": 11, "y1": 0, "y2": 0, "class": _class(mark)}, ""


def _elements(shown: dict[str, Any]) -> Iterator[Element]:
    axes = _Axes(shown)
    yield from _frame(axes, shown)
    for mark in shown["marks"]:
        yield from DRAWN[mark["kind"]](axes, mark)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> Element:
    return "text", {"x": x, "y": y, "text-anchor": anchor, "class": f"explorer-{kind}"}, text


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return "line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind}, ""


def _frame(axes: _Axes, shown: dict[str, Any]) -> Iterator[Element]:
    left, right, top, base = axes.left, axes.right, axes.top, axes.base
    yield _line(left, base, right, base, "explorer-axis")
    yield _line(left, top, left, base, "explorer-axis")
    for value, text in shown["ticks"][0]:
        yield _line(axes.x(value), base, axes.x(value), base + 4, "explorer-axis")
        yield _text(axes.x(value), base + 19, text, "middle")
    for value, text in shown["ticks"][1]:
        yield _line(left - 4, axes.y(value), left, axes.y(value), "explorer-axis")
        yield _text(left - 8, axes.y(value) + 5, text, "end")
    yield _text((left + right) / 2, base + 39, shown["labels"][0], "middle")
    yield _text(4, top - 11, shown["labels"][1], "start")
    yield _text(right, top - 11, shown["note"], "end")


def _intervals(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    kind = f"explorer-interval explorer-group-{mark.get('group', 0)}"
    ends = zip(mark.get("low", ()), mark.get("high", ()), strict=True)
    for x, y, (low, high) in zip(mark["x"], mark["y"], ends, strict=False):
        if None in (x, y, low, high):
            continue
        if mark.get("along") == "x":
            yield _line(axes.x(low), axes.y(y), axes.x(high), axes.y(y), kind)
        else:
            yield _line(axes.x(x), axes.y(low), axes.x(x), axes.y(high), kind)


def _dots(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    yield from _intervals(axes, mark)
    shape, words = SHAPES[mark.get("group", 0)], mark.get("text") or [""] * len(mark["x"])
    for x, y, text in zip(mark["x"], mark["y"], words, strict=True):
        if x is None or y is None:
            continue
        place = f"translate({_number(axes.x(x))} {_number(axes.y(y))})"
        yield "path", {"d": shape, "transform": place, "class": _class(mark)}, ""
        if text:
            end = axes.x(x) > (axes.left + axes.right) / 2
            yield _text(
                axes.x(x) + (-8 if end else 8),
                axes.y(y) + 4,
                text,
                "end" if end else "start",
                "word",
            )


def _bars(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    width = mark.get("width") or _smallest_gap(mark["x"])
    for x, y in zip(mark["x"], mark["y"], strict=True):
        if x is None or y is None:
            continue
        yield _box(axes, x - width / 2, x + width / 2, y, mark)
    yield from _intervals(axes, mark)


def _smallest_gap(values: list[float]) -> float:
    ordered = sorted({value for value in values if value is not None})
    return 0.8 * min((b - a for a, b in itertools.pairwise(ordered)), default=1)


def _box(axes: _Axes, start: float, stop: float, height: float, mark: dict[str, Any]) -> Element:
    left, right = axes.x(start), axes.x(stop)
    top, bottom = sorted((axes.y(height), axes.y(0)))
    place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return "rect", {**place, "class": _class(mark)}, ""


def _steps(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    for start, stop, height in zip(mark["x"][:-1], mark["x"][1:], mark["y"], strict=True):
        if height:
            yield _box(axes, start, stop, height, mark)


def _joined(axes: _Axes, xs: list[float], ys: list[float]) -> list[str]:
    return [
        f"{_number(axes.x(x))},{_number(axes.y(y))}"
        for x, y in zip(xs, ys, strict=True)
        if x is not None and y is not None
    ]


def _lines(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    if mark.get("low"):
        band = _joined(axes, mark["x"], mark["high"])
        band += _joined(axes, mark["x"], mark["low"])[::-1]
        kind = f"explorer-band explorer-group-{mark.get('group', 0)}"
        yield "polygon", {"points": " ".join(band), "class": kind}, ""
    points = " ".join(_joined(axes, mark["x"], mark["y"]))
    yield "polyline", {"points": points, "class": _class(mark)}, ""


def _rules(axes: _Axes, mark: dict[str, Any]) -> Iterator[Element]:
    for x in mark.get("x", ()):
        yield _line(axes.x(x), axes.top, axes.x(x), axes.base, _class(mark))
    for y in mark.get("y", ()):
        yield _line(axes.left, axes.y(y), axes.right, axes.y(y), _class(mark))


DRAWN = {"dots": _dots, "bars": _bars, "line": _lines, "steps": _steps, "rule": _rules}
