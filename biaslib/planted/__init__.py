"""A planted world: pictures and captions in which the right answer is known.

Pictures are composed from emoji, one row of a frame for each; see :func:`draw`.

>>> PICTURED_ROLES[:3], PICTURED_OBJECTS[:2]
(('nurse', 'judge', 'pilot'), ('purse', 'briefcase'))
"""

from biaslib.planted._scenes import (
    N_HELD_OUT_LOOKS,
    N_TRAIN_LOOKS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    boxes,
    draw,
    looks,
    object_pairs,
    white,
)
from biaslib.planted._styles import STYLES

__all__ = [
    "N_HELD_OUT_LOOKS",
    "N_TRAIN_LOOKS",
    "PICTURED_OBJECTS",
    "PICTURED_ROLES",
    "STYLES",
    "boxes",
    "draw",
    "looks",
    "object_pairs",
    "white",
]
