"""Study 4's inputs in the profile `planted`: scenes with a choice of captions, and the oracle."""

import hashlib

import numpy as np
import pandas

from biaslib.studies import study4_captions as study
from plantedworld import Scenes, blank, caption_choices, world

__all__ = ["ORACLE", "inputs", "of_scenes"]

ORACLE = study.ModelHead("oracle", "matching", True, "oracle", "oracle")


def inputs(seed: int = 0, n_per_category: int = 48, draw: int = 5) -> study.Inputs:
    """Return planted scenes with captions, thinned out to the unbalance of the released labels.

    Of the rarer label of each category every second row is kept: in ``gender`` stereotypes are
    rarer, in the others anti-stereotypes, as in the release. In ``gender`` half of the objects are
    half hidden, so that both captions fit.

    Parameters
    ----------
    seed
        Of the world.
    n_per_category
        Scenes a category before labels are thinned out.
    draw
        Of the scenes.

    Examples
    --------
    >>> found = inputs(0, 8)
    >>> found.table.groupby(["category", "label"]).size().loc["gender"].tolist()
    [4, 2]
    """
    table = caption_choices(world(3, seed), n_per_category, np.random.default_rng([draw, seed]))
    rarer = np.where(table["category"] == "gender", *study.PAIR)
    thinned = (table["label"] == rarer) & (table.groupby(["category", "label"]).cumcount() % 2 == 1)
    half = (table["category"] == "gender") & (table.groupby("category").cumcount() % 4 >= 2)
    table["object_view"] = table["object_view"].mask(half, "ambiguous")
    return of_scenes(table[~thinned].reset_index(drop=True), f"planted captions, seed {seed}")


def of_scenes(table: pandas.DataFrame, dataset: str) -> study.Inputs:
    """Return scenes as inputs; their columns are both table and images."""
    triplet = table.groupby(study.PAIR, sort=False).ngroup()
    checksum = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()[:12]
    return study.Inputs(
        table.assign(triplet=triplet), Scenes(table), Scenes(blank()), "planted", dataset, checksum
    )
