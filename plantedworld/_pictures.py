"""Planted scenes as the models of biaslib take pictures: drawn when they are asked for."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas

from biaslib.pictures.images import Pictures, pictures
from biaslib.pictures.regions import RegionFeatures
from biaslib.runtime import file_sha256, source_hash
from plantedworld._scenes import COLUMNS, blank_rows, boxes, draw
from plantedworld._styles import STYLES

AT_ONCE = 64
"""Up to so many scenes are drawn together, and kept: one by one takes longer."""

SHARED = 2_048
"""Up to so many scenes keep what their parts have drawn, 12 KB each: models ask for it again. Of
more, nothing is kept."""


class Scenes(Pictures):
    """Scenes of a planted world, drawn a few at a time; their regions are known.

    Wherever a model takes pictures, a frame of scenes is taken for these.

    Parameters
    ----------
    frame
        Scenes, one a row.
    style
        How they are drawn: one of :data:`plantedworld.STYLES`.

    Raises
    ------
    ValueError
        If the frame lacks the columns of scenes.
    """

    has_regions = True

    def __init__(self, frame: pandas.DataFrame, style: str = STYLES[0]) -> None:
        if "layout" not in frame:
            raise ValueError(
                "a frame of images must have the columns of planted scenes; for a table of files "
                'pass its column of paths, as images=table["path"]'
            )
        self.frame, self.style = frame, style
        self._kept: dict[str, np.ndarray] = {}

    @property
    def source(self) -> str:
        """How scenes are drawn, and by which version of this package."""
        return f"planted scenes, {self.style}, source {package_hash()}"

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, row: int) -> np.ndarray:
        few = len(self) <= AT_ONCE
        return self._drawn[row] if few else draw(self.frame.iloc[[row]], style=self.style)[0]

    @functools.cached_property
    def _drawn(self) -> np.ndarray:
        if len(self) > SHARED:
            return draw(self.frame, style=self.style)
        ids, first = np.unique(self.ids, return_index=True)
        new = [row for name, row in zip(ids, first, strict=True) if name not in self._kept]
        if new:
            pictures = draw(self.frame.iloc[new], style=self.style)
            self._kept.update(zip((self.ids[row] for row in new), pictures, strict=True))
        return np.stack([self._kept[name] for name in self.ids])

    def part(self, rows: Sequence[int]) -> "Scenes":
        """Return the scenes of some rows."""
        part = Scenes(self.frame.iloc[list(rows)].reset_index(drop=True), self.style)
        if len(self) <= SHARED:
            part._kept = self._kept
        return part

    def name(self, row: int) -> str:
        """Return what an error calls a scene."""
        return f"scene {row}"

    @functools.cached_property
    def ids(self) -> list[str]:
        """What each scene is called in a store: a hash of what is drawn; one name for white."""
        lines = self.frame[list(COLUMNS)].to_json(orient="records", lines=True).splitlines()
        hashes = [hashlib.sha256(line.encode()).hexdigest() for line in lines]
        return np.where(blank_rows(self.frame), "white", hashes).tolist()

    def regions(self) -> RegionFeatures:
        """Return person, object and whole picture of every scene, each scene read once."""
        from plantedworld.models.regions import regions_of

        _, first, place = np.unique(self.ids, return_index=True, return_inverse=True)
        once = self.frame.iloc[first]
        corners = boxes(once).to_numpy(dtype=float).reshape(len(once), -1, 4)
        return regions_of(self.part(first)._drawn, corners)[place]


def frame_of(images: Scenes | pandas.DataFrame | None) -> pandas.DataFrame | None:
    """Return the frame of scenes behind pictures of a planted world.

    Raises
    ------
    TypeError
        If they are other pictures, of which nobody knows what they show.
    """
    if images is None or isinstance(images, pandas.DataFrame):
        return images
    if isinstance(images, Scenes):
        return images.frame
    raise TypeError(f"the oracle reads scenes of a planted world, not {type(images).__name__}")


@functools.cache
def package_hash() -> str:
    """Return a hash of the code and data by which scenes are drawn and the oracle answers."""
    folder = Path(__file__).parent
    code = [file_sha256(path) for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256("\n".join([*code, source_hash(folder / "data")]).encode()).hexdigest()[
        :12
    ]


pictures.register(pandas.DataFrame, Scenes)
