"""From a recipe to a checkpoint's folder, with a card that says how good it is."""

import json
import time
from pathlib import Path

import pandas
import torch
import transformers

from biaslib.models.planted_checkpoints import CHECKPOINTS, checkpoint_name
from biaslib.planted import world
from biaslib.runtime import file_sha256
from biaslib.training._recipes import RECIPES
from biaslib.training._train import STATE, train

DOSES = (0, 1, 3)
SEEDS = (0, 1, 2, 3, 4)
VISION = ("vision", 0, 1000)
"""The vision tower that all dual encoders start from: family, dose, seed."""

STARTING_FROM_VISION = ("clip", "open_clip")

ONLY_ONE = {"open_clip": [(3, 0)]}
"""Families of which one model is shipped, to show that the adapter's path works."""


def plan() -> pandas.DataFrame:
    """Return the checkpoints that are shipped: columns family, dose, seed.

    Examples
    --------
    >>> plan().groupby("family").size().to_dict()
    {'bert': 15, 'clip': 15, 'open_clip': 1, 'vision': 1}
    """
    grid = [(dose, seed) for dose in DOSES for seed in SEEDS]
    families = [family for family in RECIPES if family != VISION[0]]
    rows = [(family, *each) for family in families for each in ONLY_ONE.get(family, grid)]
    return pandas.DataFrame([VISION, *rows], columns=["family", "dose", "seed"])


def make_checkpoint(
    family: str, dose: float, seed: int, folder: Path = CHECKPOINTS
) -> dict[str, float | str]:
    """Train one model, or go on where it was interrupted, and write its folder.

    Parameters
    ----------
    family
        A key of ``RECIPES``.
    dose, seed
        Those of the world, and the seed of the weights.
    folder
        Where the checkpoint's folder is made.

    Returns
    -------
    dict
        The card: held-out accuracy beside chance and the truth's own, minutes, the hash of the
        weights and the versions of what trained them.
    """
    path = folder / checkpoint_name(family, dose, seed)
    started = time.monotonic()
    recipe = _recipe(family, dose, seed, folder)
    model = train(recipe, path)
    scores = {name: round(value, 4) for name, value in recipe.judge(model).items()}
    recipe.save(model, path)
    minutes = round((time.monotonic() - started) / 60, 1)
    card = {"family": family, "dose": dose, "seed": seed, **scores, "minutes": minutes}
    card |= {"sha256": _weights_hash(path), "torch": torch.__version__}
    card |= {"transformers": transformers.__version__}
    (path / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (path / STATE).unlink()
    return card


def _recipe(family: str, dose: float, seed: int, folder: Path):
    recipe, its_world = RECIPES[family], world(dose, seed)
    if family in STARTING_FROM_VISION:
        return recipe(its_world, vision=folder / checkpoint_name(*VISION))
    return recipe(its_world)


def _weights_hash(path: Path) -> str:
    return file_sha256(next(path.glob("*.safetensors")))
