"""Planted scenes as the models of biaslib take pictures: drawn when they are asked for."""

import functools
from collections.abc import Sequence

import numpy as np
import pandas

from biaslib.models.images import Pictures, pictures
from biaslib.models.regions import RegionFeatures
from plantedworld._scenes import draw
from plantedworld._truth import shown_evidence

__all__ = ["Scenes"]

AT_ONCE = 64
"""Up to so many scenes are drawn together, and kept: one by one takes longer."""


class Scenes(Pictures):
    """Scenes of a planted world, drawn a few at a time; their regions are known.

    Wherever a model takes pictures, a frame of scenes is taken for these.

    Parameters
    ----------
    frame
        Scenes, one a row.

    Raises
    ------
    ValueError
        If the frame lacks the columns of scenes.
    """

    def __init__(self, frame: pandas.DataFrame) -> None:
        if "layout" not in frame:
            raise ValueError(
                "a frame of images must have the columns of planted scenes; for a table of files "
                'pass its column of paths, as images=table["path"]'
            )
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, row: int) -> np.ndarray:
        return self._drawn[row] if len(self) <= AT_ONCE else draw(self.frame.iloc[[row]])[0]

    @functools.cached_property
    def _drawn(self) -> np.ndarray:
        return draw(self.frame)

    def part(self, rows: Sequence[int]) -> "Scenes":
        """Return the scenes of some rows."""
        return Scenes(self.frame.iloc[list(rows)].reset_index(drop=True))

    def name(self, row: int) -> str:
        """Return what an error calls a scene."""
        return f"scene {row}"

    def regions(self) -> RegionFeatures:
        """Return person, object and whole picture of every scene."""
        from plantedworld.models.regions import regions_of

        return regions_of(self.frame)

    @functools.cached_property
    def evidence(self) -> list[str]:
        """What each scene shows, in words: all that the oracle reads of it."""
        return shown_evidence(self.frame).astype(str).agg(" ".join, axis=1).tolist()


pictures.register(pandas.DataFrame, Scenes)
