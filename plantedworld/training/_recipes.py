"""The families that can be trained."""

import importlib

from plantedworld.training._recipe import Recipe

FAMILIES = (
    "vision",
    "vit",
    "regions",
    "bert",
    "clip",
    "open_clip",
    "visualbert",
    "lxmert",
    "vilt",
    "flava",
    "vilbert",
    "albef",
    "vl_bert",
    "llava",
)


def _recipe(family: str) -> type[Recipe]:
    module = importlib.import_module(f"plantedworld.training.{family}")
    return next(each for each in vars(module).values() if getattr(each, "family", "") == family)


RECIPES = {family: _recipe(family) for family in FAMILIES}
"""Recipes by family, in the order of their training."""
