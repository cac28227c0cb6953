"""An audit of a model of one's own: the four studies, as far as its capabilities and data allow.

:func:`run` checks whether the model looks at pictures, asks it for what each study needs, runs
the parts that it can do, and says of the others why not. Every score is that of its study, and
stands beside what it would be if there were nothing to find.
"""

from pathlib import Path

from biaslib.errors import brought_by

with brought_by("audit"):
    from biaslib import runtime
    from biaslib.audit import nulls
    from biaslib.audit._compare import compare, differences
    from biaslib.audit._cost import Cost, cost
    from biaslib.audit._folder import OwnFolder, read_folder
    from biaslib.audit._grounding import GroundingCheck, check_grounding
    from biaslib.audit._parts import LISTS, PARTS, AuditedModel, listed_captions, load, word_sides
    from biaslib.audit._report import files, report, require_writable, save
    from biaslib.audit._run import LEVEL, Audit, capabilities, chosen_data, run
    from biaslib.audit._tables import (
        claim_counts,
        figure,
        grounding_table,
        overview,
        question_table,
        summary,
    )

__all__ = [
    "LEVEL",
    "LISTS",
    "PARTS",
    "Audit",
    "AuditedModel",
    "Cost",
    "GroundingCheck",
    "OwnFolder",
    "capabilities",
    "check_grounding",
    "chosen_data",
    "claim_counts",
    "compare",
    "cost",
    "differences",
    "example",
    "figure",
    "files",
    "grounding_table",
    "listed_captions",
    "load",
    "nulls",
    "overview",
    "question_table",
    "read_folder",
    "report",
    "require_writable",
    "run",
    "save",
    "summary",
    "word_sides",
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
