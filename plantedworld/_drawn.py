"""Objects that the emoji lack, drawn with a few shapes in the manner of the set."""

from collections.abc import Callable

from PIL import Image, ImageDraw

SIDE = 72
"""Pixels along one side of a sprite."""

FINE = 4
"""How many times finer the shapes are drawn than they are returned."""

Pen = ImageDraw.ImageDraw


def drawn(name: str) -> Image.Image:
    """Return the sprite of one object that we draw.

    Parameters
    ----------
    name
        One of :data:`DRAWN`.

    Returns
    -------
    PIL.Image.Image
        72 by 72 pixels, RGBA.

    Examples
    --------
    >>> drawn("cigar").size
    (72, 72)
    """
    image = Image.new("RGBA", (SIDE * FINE, SIDE * FINE))
    DRAWN[name](ImageDraw.Draw(image))
    return image.resize((SIDE, SIDE), Image.Resampling.BOX)


def _scaled(*points: tuple[float, float]) -> list[tuple[float, float]]:
    return [(x * FINE, y * FINE) for x, y in points]


def _polygon(pen: Pen, colour: str, *points: tuple[float, float]) -> None:
    pen.polygon(_scaled(*points), fill=colour)


def _line(pen: Pen, colour: str, width: float, *points: tuple[float, float]) -> None:
    pen.line(_scaled(*points), fill=colour, width=round(width * FINE), joint="curve")


def _disc(pen: Pen, colour: str, x: float, y: float, radius: float) -> None:
    pen.ellipse(_scaled((x - radius, y - radius), (x + radius, y + radius)), fill=colour)


def _bar(pen: Pen, colour: str, radius: float, *corners: tuple[float, float]) -> None:
    pen.rounded_rectangle(_scaled(*corners), radius * FINE, fill=colour)


def _apron(pen: Pen) -> None:
    pen.arc(_scaled((24, 2), (48, 26)), 180, 360, fill="#7a4b94", width=3 * FINE)
    _line(pen, "#7a4b94", 3, (4, 34), (14, 37))
    _line(pen, "#7a4b94", 3, (58, 37), (68, 34))
    _bar(pen, "#e8e0f0", 3, (23, 10), (49, 40))
    _polygon(pen, "#e8e0f0", (23, 26), (49, 26), (60, 40), (60, 70), (12, 70), (12, 40))
    _polygon(pen, "#c3b1d6", (12, 63), (60, 63), (60, 70), (12, 70))
    _bar(pen, "#9f86bd", 3, (23, 42), (49, 57))
    _line(pen, "#7a4b94", 2, (13, 38), (59, 38))


def _suit(pen: Pen) -> None:
    _polygon(
        pen, "#3d4a5c", (20, 6), (52, 6), (68, 18), (70, 66), (58, 66), (14, 66), (2, 66), (4, 18)
    )
    _polygon(pen, "#2b3542", (15, 30), (16.5, 30), (17, 66), (14, 66))
    _polygon(pen, "#2b3542", (55.5, 30), (57, 30), (58, 66), (55, 66))
    _polygon(pen, "#f2f5f8", (25, 4), (47, 4), (36, 46))
    _polygon(pen, "#a0041e", (33, 11), (39, 11), (41, 32), (36, 43), (31, 32))
    _polygon(pen, "#c1203a", (32, 5), (40, 5), (38.5, 12), (33.5, 12))
    _polygon(pen, "#56657a", (25, 4), (36, 46), (22, 28), (26, 24), (18, 20))
    _polygon(pen, "#56657a", (47, 4), (36, 46), (50, 28), (46, 24), (54, 20))
    _line(pen, "#2b3542", 1.5, (36, 46), (36, 66))
    _disc(pen, "#c8d0da", 39.5, 52, 1.6)
    _disc(pen, "#c8d0da", 39.5, 59, 1.6)


def _cigar(pen: Pen) -> None:
    _line(pen, "#c4ccd4", 3, (62, 30), (58, 22), (64, 15), (60, 6))
    _line(pen, "#7b4a2b", 14, (12, 57), (56, 35))
    _line(pen, "#935c37", 5, (12, 54), (55, 32.5))
    _disc(pen, "#7b4a2b", 11, 57.5, 7)
    _line(pen, "#d9a520", 14.5, (22, 52), (29, 48.5))
    _line(pen, "#a0041e", 14.5, (24, 51), (27, 49.5))
    _line(pen, "#5c6066", 14, (56, 35), (61, 32.5))
    _line(pen, "#f4702b", 14, (61, 32.5), (64, 31))


def _drill(pen: Pen) -> None:
    _line(pen, "#8a95a1", 4, (50, 21), (70, 21))
    _polygon(pen, "#66717c", (46, 13), (55, 17), (55, 25), (46, 29))
    _bar(pen, "#f4900c", 6, (4, 9), (46, 33))
    _polygon(pen, "#292f33", (10, 31), (28, 31), (24, 58), (8, 58))
    _polygon(pen, "#f4900c", (10, 31), (28, 31), (26, 42), (11, 42))
    _line(pen, "#dd2e44", 4, (30, 34), (29, 41))
    _bar(pen, "#4a545d", 3, (3, 55), (31, 67))
    _bar(pen, "#f4900c", 2, (3, 60), (31, 63))
    for x in (10, 16, 22):
        _line(pen, "#a85f00", 2, (x, 15), (x, 27))


def _necklace(pen: Pen) -> None:
    pen.arc(_scaled((10, -48), (62, 52)), 0, 180, fill="#e0a526", width=3 * FINE)
    for x, y in (
        (11.5, 4),
        (12.5, 15),
        (15.5, 27),
        (21, 39),
        (51, 39),
        (56.5, 27),
        (59.5, 15),
        (60.5, 4),
    ):
        _disc(pen, "#ffcc4d", x, y, 4)
    _disc(pen, "#ffcc4d", 36, 50, 5)
    _polygon(pen, "#2f7fd1", (26, 57), (31, 51), (41, 51), (46, 57), (36, 70))
    _polygon(pen, "#8fc7ff", (31, 51), (41, 51), (36, 57))
    _polygon(pen, "#5aa5ef", (31, 57), (41, 57), (36, 70))


DRAWN: dict[str, Callable[[Pen], None]] = {
    "apron": _apron,
    "suit": _suit,
    "cigar": _cigar,
    "drill": _drill,
    "necklace": _necklace,
}
"""The objects drawn here, and what draws them."""
