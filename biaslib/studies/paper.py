"""The profile ``paper``: the inputs of each study from released data, with released models."""

import importlib
from typing import Any

PROFILE = "paper"
MODELS = ENTRIES = OPTIONS = ()
STUDIES = ("study1_grounded", "study2_masked", "study3_clip_audit", "study4_captions")


def example() -> str:
    """Return the model that the chapter audits until its reader names another one."""
    return "facebook/flava-full"


def first_look(study: str, size: str) -> list[str]:
    """Return what a study takes on this machine, and what of it cannot work; of others nothing."""
    look = importlib.import_module("biaslib.studies._look")
    return look.first_look(study, size) if study in STUDIES else []


def __getattr__(name: str) -> Any:
    """Return the inputs of a study, which is imported only then: a page rests on what it uses."""
    if name in STUDIES:
        return importlib.import_module(f"biaslib.studies.{name}").paper_inputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
