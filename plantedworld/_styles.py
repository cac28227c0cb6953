"""Drawing styles: the pictures as they are, and hatched in ink as ones that training never saw."""

import functools

import numpy

STYLES = ("twemoji", "hatched")
"""Twemoji's flat colours, and the same scenes as black lines and hatching on white.

Both are the same sprites: the second changes colour and texture and not the shapes. Tones differ
in it by how densely a face is hatched.
"""

INK, PAPER = 25.0, 250.0
EDGE = 42.0
"""Sum of the steps to the pixels right and below from which a line is drawn."""

SHADES = (125.0, 80.0, 40.0)
"""Brightness below which a first, a second and a third set of lines is laid."""

FAINT = 0.25
"""How much of the ground's colour is left under hatching, so that figures stand out."""

Array = numpy.ndarray


def restyled(picture: Array, style: str) -> Array:
    """Return a picture in a style.

    Parameters
    ----------
    picture
        Colours from 0 to 255, shape (size, size, 3).
    style
        One of :data:`STYLES`.

    Examples
    --------
    >>> restyled(numpy.full((8, 8, 3), 255.0), "hatched")[0, 0].tolist()
    [250.0, 250.0, 250.0]
    """
    return _hatched(picture) if style == "hatched" else picture


def ground_in(style: str, ground: Array) -> Array:
    """Return a ground as a style has it before anything is painted on it; arguments as above.

    Examples
    --------
    >>> ground_in("hatched", numpy.zeros((1, 1, 3)))[0, 0].tolist()
    [191.25, 191.25, 191.25]
    """
    return 255 - FAINT * (255 - ground) if style == "hatched" else ground


def _hatched(picture: Array) -> Array:
    grey = picture @ numpy.full(3, 1 / 3, dtype=picture.dtype)
    ink = _edges(picture)
    for shade, lines in zip(SHADES, _hatches(len(picture)), strict=True):
        ink |= lines & (grey < shade)
    return numpy.where(ink[..., None], INK, PAPER).repeat(3, axis=-1)


def _edges(picture: Array) -> Array:
    across = _largest(numpy.abs(numpy.diff(picture, axis=1, append=picture[:, -1:])))
    down = _largest(numpy.abs(numpy.diff(picture, axis=0, append=picture[-1:])))
    return across + down > EDGE


def _largest(steps: Array) -> Array:
    """Return the largest of the three channels; quicker than a reduction over them."""
    return numpy.maximum(numpy.maximum(steps[..., 0], steps[..., 1]), steps[..., 2])


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
