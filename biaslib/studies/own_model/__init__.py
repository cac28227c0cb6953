"""The four audits on a model of one's own, as far as its capabilities and the data allow.

:func:`audit` checks whether the model looks at pictures, asks it for what each study needs, runs
those that it can, and says of the others why not. Nothing is measured here: every score is that of
its study, and stands beside what it would be if there were nothing to find.
"""

from pathlib import Path

from biaslib import runtime
from biaslib.studies.own_model._audit import (
    LEVEL,
    Audit,
    audit,
    capabilities,
    chosen_data,
    chosen_parts,
    summary,
)
from biaslib.studies.own_model._compare import compare
from biaslib.studies.own_model._folder import OwnFolder, read_folder
from biaslib.studies.own_model._grounding import Looking, caption_check, describe, looking
from biaslib.studies.own_model._nulls import (
    balanced_preference,
    contrast,
    outside_by_chance,
    portrait_contrast,
    random_attributes,
)
from biaslib.studies.own_model._parts import LISTS, PARTS, QUOTED, Part, Setting
from biaslib.studies.own_model._plan import DoesNotFitError, Plan, plan

__all__ = [
    "LEVEL",
    "LISTS",
    "PARTS",
    "QUOTED",
    "Audit",
    "DoesNotFitError",
    "Looking",
    "OwnFolder",
    "Part",
    "Plan",
    "Setting",
    "audit",
    "balanced_preference",
    "capabilities",
    "caption_check",
    "chosen_data",
    "chosen_parts",
    "compare",
    "contrast",
    "describe",
    "example",
    "looking",
    "outside_by_chance",
    "plan",
    "portrait_contrast",
    "random_attributes",
    "read_folder",
    "summary",
]


def example(profile: str | None = None) -> str | Path:
    """Return the model that the chapter audits until its reader names another one.

    In ``planted`` a folder with a checkpoint of the planted world, in ``paper`` a name of the hub;
    FLAVA in either, since it can be asked for every part.

    Examples
    --------
    >>> example("paper")
    'facebook/flava-full'
    """
    return runtime.provider(profile).example()
