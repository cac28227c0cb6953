"""A planted world: pictures and captions whose bias we chose, so that the right answer is known.

Scenes and captions are drawn from a distribution that can be enumerated (:func:`world`); its
:class:`Truth` answers what a perfect model would. Pictures are composed from emoji, one row of a
frame for each; see :func:`draw`. Nothing here says anything about a real model.

>>> PICTURED_ROLES[:3], PICTURED_OBJECTS[:2]
(('nurse', 'judge', 'pilot'), ('purse', 'briefcase'))
"""

from plantedworld._frames import Frame, frames, read
from plantedworld._pictures import Scenes
from plantedworld._scenes import (
    N_LOOKS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    boxes,
    draw,
    looks,
    object_pairs,
    white,
)
from plantedworld._sets import (
    agents_with_entities,
    blank,
    caption_choices,
    faces,
    grounded_sets,
)
from plantedworld._sprites import assets
from plantedworld._styles import STYLES
from plantedworld._tables import GENDERS, TONES
from plantedworld._truth import Evidence, Truth, shown_evidence, vocabulary, word_indices
from plantedworld._words import (
    Plan,
    agent_words,
    content_words,
    controls,
    frequencies,
    planted_sets,
    strengths,
)
from plantedworld._world import AGES, World, world

__all__ = [
    "AGES",
    "GENDERS",
    "N_LOOKS",
    "PICTURED_OBJECTS",
    "PICTURED_ROLES",
    "STYLES",
    "TONES",
    "Evidence",
    "Frame",
    "Plan",
    "Scenes",
    "Truth",
    "World",
    "agent_words",
    "agents_with_entities",
    "assets",
    "blank",
    "boxes",
    "caption_choices",
    "content_words",
    "controls",
    "draw",
    "faces",
    "frames",
    "frequencies",
    "grounded_sets",
    "looks",
    "object_pairs",
    "planted_sets",
    "read",
    "shown_evidence",
    "strengths",
    "vocabulary",
    "white",
    "word_indices",
    "world",
]
