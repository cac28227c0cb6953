"""The profile ``planted``: the inputs of each study and the models, all made here."""

import importlib
from pathlib import Path
from typing import Any

from biaslib.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    ENCODE,
    FILL,
    FILL_WITH_IMAGES,
    MATCH,
)
from biaslib.models import Entry
from plantedworld.models.checkpoints import checkpoint

PROFILE = "planted"

TINY = (
    "bert",
    "visualbert",
    "lxmert",
    "vilt",
    "clip",
    "open-clip",
    "flava",
    "vl-bert",
    "vilbert",
    "albef",
)
"""The registered models of which there are tiny checkpoints, each under its family's name."""

MODELS = (*TINY, "oracle")
OPTIONS = ("dose", "seed", "planted_in")

ENTRIES = (
    Entry(
        name="oracle",
        family="oracle",
        source="planted world",
        features="planted scenes",
        pooling="",
        parameters=0,
        licence="MIT",
        note="Exact inference on a planted world, untrained. Options: dose, seed, planted_in, "
        "wrong_gender, corpus, mislabelled.",
        capabilities=(EMBED, EMBED_WITH_IMAGES, FILL, FILL_WITH_IMAGES, ENCODE, MATCH),
    ),
)


def example() -> Path:
    """Return the model that the chapter audits until its reader names another one."""
    return folder("flava", 3, 0, "both")


def innocent_things() -> list[str]:
    """Return words of the world on which nothing is planted, for captions without a person."""
    from plantedworld.inputs.study3_clip_audit import innocent_captions

    return innocent_captions()["word"].tolist()


STUDIES = ("study1_grounded", "study2_masked", "study3_clip_audit", "study4_captions")


def __getattr__(name: str) -> Any:
    """Return the inputs of a study, which is imported only then: a page rests on what it uses."""
    if name == "captions":
        return importlib.import_module("plantedworld.inputs.study3_clip_audit").captions
    if name in STUDIES:
        return importlib.import_module(f"plantedworld.inputs.{name}").inputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def model(name: str, dose: float = 3, seed: int = 0, planted_in: str = "both", **options: Any):
    """Return the oracle of a world, or the folder of a tiny checkpoint.

    Raises
    ------
    FileNotFoundError
        If no checkpoint is shipped for the world.
    TypeError
        If a checkpoint is given other options.

    Examples
    --------
    >>> model("bert", dose=1).name
    'bert-dose1-seed0'
    """
    if name == "oracle":
        from plantedworld.models import perfect

        return perfect.load(dose=dose, seed=seed, planted_in=planted_in, **options)
    return folder(name, dose, seed, planted_in, **options)


def folder(name: str, dose: float, seed: int, planted_in: str) -> Path:
    """Return the folder of a registered model's tiny checkpoint."""
    return checkpoint(name.replace("-", "_"), dose, seed, planted_in)
