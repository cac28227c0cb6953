"""The profile ``paper``: the inputs of each study from released data, with released models."""

import importlib
from typing import Any

from biaslib.runtime import Needs

PROFILE = "paper"
MODELS = ENTRIES = OPTIONS = ()
STUDIES = ("study1_grounded", "study2_masked", "study3_clip_audit", "study4_captions")

NEEDS = {
    ("study1_grounded", "full"): Needs(7.5, 14, 8, "2 to 3 hours"),
    ("study1_grounded", "taste"): Needs(1, 2, 4, "10 minutes"),
    ("study2_masked", "full"): Needs(1.2, 2, 4, "8 to 12 minutes"),
    ("study2_masked", "taste"): Needs(0.9, 2, 4, "5 minutes"),
    ("study3_clip_audit", "full"): Needs(
        5.5, 6, 8, "35 minutes in half precision and 3.3 hours in float32"
    ),
    ("study3_clip_audit", "taste"): Needs(0.2, 1, 1, "2 minutes"),
    ("study4_captions", "full"): Needs(5.7, 7, 8, "30 to 45 minutes"),
    ("study4_captions", "taste"): Needs(0.4, 1, 1, "5 minutes"),
}
"""What each study takes, by its size.

Checkpoints of ``biaslib/checkpoints/data/downloads.csv`` with the data of book/colab.md. The disk
of study 1 holds regions and embeddings too; cards are those on which twice the largest weights
fit."""


def example() -> str:
    """Return the model that the chapter audits until its reader names another one."""
    return "facebook/flava-full"


def __getattr__(name: str) -> Any:
    """Return the inputs of a study, which is imported only then: a page rests on what it uses."""
    if name in STUDIES:
        return importlib.import_module(f"biaslib.studies.{name}").paper_inputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
