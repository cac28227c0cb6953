"""Drawing styles: the pictures as they are, and hatched in ink as ones that training never saw."""

import functools

import numpy

from biaslib.runtime import unknown_name

STYLES = ("twemoji", "hatched")
"""Twemoji's flat colours, and the same scenes as black lines and hatching on white.

Both are the same sprites: the second changes colour and texture and not the shapes.
"""

INK, PAPER = 25.0, 250.0
EDGE = 70.0
"""Sum of the steps to the next pixels, in any one colour channel, from which a line is drawn."""

SHADES = (60.0, 110.0, 160.0)
"""Brightness below which a first, a second and a third set of lines is laid."""

Array = numpy.ndarray


def restyled(picture: Array, style: str) -> Array:
    """Return a picture in a style.

    Parameters
    ----------
    picture
        Colours from 0 to 255, shape (size, size, 3).
    style
        One of :data:`STYLES`.

    Raises
    ------
    UnknownNameError
        If there is no such style; a :class:`KeyError`.

    Examples
    --------
    >>> restyled(numpy.full((8, 8, 3), 255.0), "hatched")[0, 0].tolist()
    [250.0, 250.0, 250.0]
    """
    if style == "twemoji":
        return picture
    if style == "hatched":
        return _hatched(picture)
    raise unknown_name("style", style, STYLES)


def _hatched(picture: Array) -> Array:
    grey = picture.mean(axis=-1)
    ink = _edges(picture)
    for shade, lines in zip(SHADES, _hatches(len(picture)), strict=True):
        ink |= lines & (grey < shade)
    return numpy.where(ink[..., None], INK, PAPER).repeat(3, axis=-1)


def _edges(picture: Array) -> Array:
    across = numpy.abs(numpy.diff(picture, axis=1, append=picture[:, -1:])).max(-1)
    down = numpy.abs(numpy.diff(picture, axis=0, append=picture[-1:])).max(-1)
    return across + down > EDGE


@functools.cache
def _hatches(size: int) -> tuple[Array, ...]:
    down, across = numpy.mgrid[:size, :size]
    step = max(4, size // 16)
    width = max(1, size // 64)
    return (
        (across + step // 2) % step < width,
        (across - down) % step < width,
        (across + down) % step < width,
    )
