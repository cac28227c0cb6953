"""What the fusion models share that read features of image regions."""

import contextlib
import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from biaslib.models.fusion import FusionModel, Mask
from biaslib.models.stored import store_key
from biaslib.pictures.images import Workers, pictures
from biaslib.pictures.regions import NothingFoundError, RegionFeatures, SharedRegions
from biaslib.runtime import Store

if TYPE_CHECKING:
    from biaslib.pictures.detector import Detector

SHARD, SHARD_ON_CUDA = 16, 128
"""Pictures a shard of the store: a run that is killed may have to look at two of them again."""

AT_ONCE = 1024
"""Pictures whose regions are in memory at a time while they are looked for: 0.3 GB."""

PARTS = {
    "features": None,
    "boxes": 4,
    "real": 1,
    "sizes": 2,
    "classes": 1,
    "attributes": 1,
    "scores": 1,
}
"""What a region's row of numbers holds, in this order, and how many of each; None for the rest."""


class RegionModel(FusionModel):
    """A fusion model that takes an image as regions, each a box with a vector of features.

    Parameters
    ----------
    network, tokenizer, name, revision, device
        As of :class:`biaslib.models.fusion.FusionModel`.
    """

    hides_boxes = False
    """Whether hiding a region hides where it is, too."""

    width_setting = ""
    """What the network's configuration calls the numbers a region that it takes."""

    @property
    def width(self) -> int:
        """Numbers a region that the network takes."""
        return getattr(self.network.config, self.width_setting)

    other_detector = ""
    """Whose features the network was trained on, where they were not those of ``detector``."""

    find_detector: Callable[[], "Detector"] | None = None
    """What loads the detector that reads pictures; :func:`biaslib.models.load` sets it."""

    @functools.cached_property
    def detector(self) -> "Detector":
        """The detector that reads pictures, loaded when it is first needed; set it to use another.

        Raises
        ------
        ValueError
            If the profile is ``planted``, which never downloads.
        ModuleNotFoundError
            If torchvision is not installed.
        """
        if self.find_detector is None:
            raise ValueError(
                f"{self.name} was not loaded by biaslib.models.load: set its detector, as "
                'model.detector = biaslib.models.load("detector", checkpoint=folder)'
            )
        return self.find_detector()

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""
        return self.network.cls.predictions(states)

    def prepare(self, images: Any) -> "Regions | None":
        """Return the regions of images.

        Parameters
        ----------
        images
            :class:`biaslib.pictures.regions.RegionFeatures`; pictures in any other form of the
            package's, which know their regions or are read by the detector once
            (:attr:`detector`); or ``None`` for none.

        Raises
        ------
        ValueError
            If the features are not as wide as the network takes them, nothing is found in some
            pictures, or a detector is needed in the profile ``planted``.
        TypeError, ImageError
            If they are no pictures, or one cannot be used.

        Warns
        -----
        UserWarning
            If the network was trained on another detector's features than those that pictures get.
        """
        if images is None:
            return None
        given = isinstance(images, RegionFeatures | SharedRegions)
        regions = images if given else self.regions_of(images)
        self._require_width(regions.width, "these features have")
        return regions

    def regions_of(self, images: Any) -> "Regions":
        """Return the regions that pictures know of themselves, or that the detector finds."""
        shown = pictures(images)
        if shown.has_regions:
            return shown.regions()
        detector = self.detector
        self._require_width(detector.network.config.width, f"those of {detector.name} have")
        if self.other_detector:
            warnings.warn(
                f"{self.name} was trained on features of {self.other_detector}, and pictures "
                f"get those of {detector.name}: its numbers are not those of the published model. "
                "Read features of that detector from a file (biaslib.pictures.region_files)",
                stacklevel=2,
            )
        return found_regions(shown, detector)

    def _require_width(self, width: int, whose: str) -> None:
        if width != self.width:
            raise ValueError(
                f"{self.name} ({self.revision}) reads {self.width} numbers a region, and {whose} "
                f"{width}; use features of the detector that the checkpoint was trained with, or "
                "the checkpoint that was trained with these"
            )

    def visual(
        self, prepared: RegionFeatures | None, rows: np.ndarray, mask: Mask | None
    ) -> dict[str, torch.Tensor]:
        """Return features (n, k, d), boxes (n, k, 4) and which regions are real (n, k).

        Regions that are not real are zero throughout, whatever was in them. Hidden persons have
        features of zero, and a box of zero where the family says so.
        """
        if prepared is None:
            return {}
        features, boxes = prepared.features[rows], prepared.boxes[rows]
        real = prepared.real[rows]
        seen = real & ~hidden_regions(prepared, rows, mask)
        features[~seen] = 0
        boxes[~seen if self.hides_boxes else ~real] = 0
        arrays = {"features": features, "boxes": boxes, "real": real}
        return {name: torch.as_tensor(array) for name, array in arrays.items()}


def hidden_regions(prepared: RegionFeatures, rows: np.ndarray, mask: Mask | None) -> np.ndarray:
    """Return which regions of some pictures a mask hides, (n, k): persons, and what it names.

    The regions that the detector gave the name of one of the mask's words are hidden with the
    persons (Ross, Katz and Barbu 2021, Experiment 3); in features from elsewhere, persons alone.
    """
    if mask is None or not mask.persons:
        return np.zeros(prepared.real[rows].shape, dtype=bool)
    return prepared.persons[rows] | prepared.named(mask.words)[rows]


@dataclass(frozen=True)
class FoundRegions:
    """Regions that a detector found in n pictures: they stay in the store, and some are read.

    Parameters
    ----------
    n
        How many pictures there are.
    width
        How many numbers describe a region.
    detector
        What found them.
    read
        Takes the numbers of m pictures, and returns their rows of the store.
    """

    n: int
    width: int
    detector: "Detector"
    read: Callable[[Sequence[int]], np.ndarray]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Sequence[int]) -> RegionFeatures:
        """Return the regions of some pictures."""
        return self.detector.with_persons(_unpacked(self.read(rows)))


Regions = RegionFeatures | SharedRegions | FoundRegions


def found_regions(images: Any, detector: "Detector", store: Store | None = None) -> FoundRegions:
    """Return the regions that a detector finds in pictures, from the store where they are there.

    A picture is known by its content, wherever its file lies, and a detector by its revision.

    Parameters
    ----------
    images
        n images, in any form of the package's.
    detector
        As ``biaslib.models.load("detector")`` returns it.
    store
        Where rows are kept; ``None`` takes the one of the run.

    Raises
    ------
    NothingFoundError
        If nothing is found in some; the message names those.
    ValueError
        If there are no images.
    ImageError
        If an image cannot be used; the message names it.
    """
    shown, store = pictures(images), store or Store()
    if not len(shown):
        raise ValueError("there are no images: the list is empty")
    ids = shown.ids
    key = store_key(detector, "regions")
    on_cuda = str(getattr(detector, "device", "cpu")).startswith("cuda")

    shard = SHARD_ON_CUDA if on_cuda else SHARD
    workers = Workers(shown, lambda: store.missing(key, ids))

    def read(rows: Sequence[int]) -> np.ndarray:
        def look(which: list[int]) -> np.ndarray:
            part = workers.part([rows[at] for at in which])
            return _packed(detector.regions(part))

        return store.rows(key, [ids[row] for row in rows], look, shard)

    empty, width = [], 0
    with contextlib.closing(workers):
        for start in range(0, len(ids), AT_ONCE):
            regions = _unpacked(read(range(start, min(start + AT_ONCE, len(ids)))))
            width = regions.width
            empty += [shown.name(start + row) for row in np.flatnonzero(~regions.real.any(axis=1))]
    if empty:
        raise NothingFoundError(
            f"{detector.name} found nothing in {len(empty)} of {len(ids)} pictures: "
            f"{', '.join(empty)}. Leave them out, or pass regions of your own "
            "(biaslib.pictures.regions.RegionFeatures)"
        )
    return FoundRegions(len(ids), width, detector, read)


def _packed(regions: RegionFeatures) -> np.ndarray:
    """Return (n, k, numbers a region), float32; whole numbers stay exact up to 2^24."""
    columns = {name: getattr(regions, name) for name in PARTS}
    columns["sizes"] = np.repeat(regions.sizes[:, None], regions.real.shape[1], axis=1)
    parts = [column.reshape(*regions.real.shape, -1) for column in columns.values()]
    return np.concatenate(parts, axis=2, dtype=np.float32, casting="unsafe")


def _unpacked(rows: np.ndarray) -> RegionFeatures:
    width = rows.shape[2] - sum(n for n in PARTS.values() if n)
    ends = np.cumsum([n or width for n in PARTS.values()])
    parts = dict(zip(PARTS, np.split(rows, ends[:-1], axis=2), strict=True))
    columns = {name: part[..., 0] if part.shape[2] == 1 else part for name, part in parts.items()}
    columns["sizes"] = columns["sizes"][:, 0]
    return RegionFeatures(**columns, persons=np.zeros(rows.shape[:2], dtype=bool))
