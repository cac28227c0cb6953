"""The region detector: a picture's objects, with the features that the region models take.

It is the Faster R-CNN of Anderson et al. (2018), trained on Visual Genome, in the packaging that
LXMERT and VisualBERT were given (``unc-nlp/frcnn-vg-finetuned``).
``biaslib.models.load("detector")`` reads the published files.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biaslib import runtime
from biaslib.capabilities import DETECT
from biaslib.checkpoints.entries import Entry
from biaslib.errors import CheckpointError, brought_by
from biaslib.runtime import first_few

with brought_by("models,regions"):
    import torch
    import yaml
    from torch import nn

    from biaslib.checkpoints.weights import read_weights, require_same
    from biaslib.pictures.faster_rcnn import AT_ONCE, FasterRcnn, FasterRcnnConfig
    from biaslib.pictures.images import pictures
    from biaslib.pictures.regions import RegionFeatures
    from biaslib.pictures.transforms import PIXELS, ImageBatch, ImageTransform, image_batches
    from biaslib.runtime.batches import (
        autocast,
        on_device,
        precision_name,
        rows_that_fit,
        run_in_batches,
    )

__all__ = [
    "PERSON_WORDS",
    "Detector",
    "Preparation",
    "load",
]

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SETTINGS = ("config.yaml", "config.json")
LABELS = ("objects_vocab.txt", "attributes_vocab.txt")
"""Files of airsplay/py-bottom-up-attention, in demo/data/genome/1600-400-20."""

PERSON_WORDS = ("people", "person", "woman", "women", "man", "men")
"""Classes that are a person's, in the released code of Ross, Katz and Barbu (2021)."""

ANCHORS = "proposal_generator.anchor_generator.cell_anchors.0"

THINNEST = 16
"""Pixels that a resized picture's shorter side must have, or the network's map has no cell."""


class Detector:
    """Pictures -> the regions of their objects.

    Every picture runs through the network alone, so that its regions do not depend on others (in
    the official code they do, through the padding beside a smaller picture). On a card with the
    memory for it, all its proposals are read together.

    Where ``BIASLIB_PRECISION`` asks for half precision of either kind, convolutions and products of
    matrices are in float16, and boxes in float32. Of 796 regions that random weights find in 144
    pictures, float16 keeps 98 in 100, and bfloat16, which is coarser, 88.

    Parameters
    ----------
    network
        The network with its weights.
    name, revision
        What the stamp says of it.
    device
        Where it runs.
    class_names
        What the numbers of classes mean; ``None`` where the label file is missing.
    """

    capabilities = frozenset({DETECT})

    def __init__(
        self,
        network: FasterRcnn,
        name: str,
        revision: str,
        device: str,
        class_names: Sequence[str] | None = None,
    ):
        self.network = on_device(network, device, name)
        self.network.roi_heads.at_once = rows_that_fit(device, AT_ONCE)
        self.config = network.config
        self.name, self.revision, self.device = name, revision, device
        if self.precision == "float16":  # tensor cores take convolutions in this order
            self.network.to(memory_format=torch.channels_last)
        self.preparation = Preparation(self.config)
        self.class_names = class_names

    @property
    def precision(self) -> str:
        """In what it calculates: ``float16``, if half precision of either kind is asked for."""
        name = precision_name(self.device)
        return "float16" if name == "bfloat16" else name

    def regions(self, images: Any) -> RegionFeatures:
        """Return the regions of pictures, as the region models take them.

        Every row has as many places as the configuration allows regions (36), the surest first;
        those that a picture does not fill are not ``real``, have zeros in every number, and -1 for
        class and attribute. A white picture has few distinct regions, or none. A box that the
        picture's edge has cut thinner than a pixel is given a pixel.

        Parameters
        ----------
        images
            n images, in any form of the package's.

        Returns
        -------
        RegionFeatures
            With ``classes``, ``attributes`` and ``scores``; with the names of classes, and which
            regions show a person, if the label files are there (:meth:`with_persons`).

        Raises
        ------
        ImageError
            If an image cannot be used; the message names it.
        MemoryError
            If a single picture does not fit in memory.
        FloatingPointError
            If half precision is asked for and does not hold what the network makes of a picture.

        Warns
        -----
        UserWarning
            If nothing was detected in an image; the warning names it, and its row has no real
            region.
        """
        shown = pictures(images)
        sizes = np.zeros((len(shown), 2), dtype=np.int64)

        def load(planned: list[np.ndarray]) -> Iterator[ImageBatch]:
            return image_batches(shown, ImageTransform(self.preparation), planned, self.device)

        def run(rows: np.ndarray, loaded: ImageBatch) -> torch.Tensor:
            pixels = loaded.of(rows)[PIXELS]
            sizes[rows] = pixels.shape[:1:-1]
            return self._found(pixels)

        label = f"{self.name}: {len(shown):,} images"
        regions = _regions(run_in_batches(np.ones(len(shown)), run, 1, label, load), sizes)
        empty = [shown.name(row) for row in np.flatnonzero(~regions.real.any(axis=1))]
        if empty:
            warnings.warn(
                f"{self.name} found nothing in {first_few(empty)}: no region of these rows is "
                "real. Leave the images out, or use another picture",
                stacklevel=2,
            )
        return self.with_persons(regions)

    def with_persons(self, regions: RegionFeatures) -> RegionFeatures:
        """Return regions with which of them show a person, and with the names of their classes.

        A region does if its class is one of :data:`PERSON_WORDS`. Others that name a person, such
        as ``boy``, ``lady`` or ``player``, and a test's contextual words (Ross, Katz and Barbu
        2021, Experiment 3, as released), are hidden if a mask names them
        (:class:`biaslib.models.fusion.Mask`).

        Parameters
        ----------
        regions
            As :meth:`regions` returns them; without the names of the classes they stay as they are.
        """
        if self.class_names is None:
            return regions
        named = replace(regions, class_names=tuple(self.class_names))
        return replace(named, persons=named.named(PERSON_WORDS))

    @torch.inference_mode()
    def _found(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the numbers of a picture's regions, (1, most regions, 8 + d), zero beyond them.

        They are the box in pixels of the picture, class, score, attribute, 1 and the features;
        whole numbers stay exact up to 2^24.
        """
        with autocast(self.device, torch.float16):
            detections = self.network(self.preparation.prepared(pixels))
        height, width = self.preparation.size(*pixels.shape[-2:])
        scale = np.array(pixels.shape[-2:], np.float32) / np.array([height, width], np.float32)
        scale = torch.as_tensor(scale[[1, 0, 1, 0]]).to(self.device, non_blocking=True)
        parts = [
            detections.boxes * scale,
            detections.classes[:, None],
            detections.scores[:, None],
            detections.attributes[:, None],
            torch.ones_like(detections.scores)[:, None],
            detections.features,
        ]
        numbers = torch.cat(parts, dim=1)
        beyond = self.config.max_detections - len(numbers)
        return nn.functional.pad(numbers, (0, 0, 0, beyond))[None]


def _regions(numbers: np.ndarray, sizes: np.ndarray) -> RegionFeatures:
    """Return the regions of n pictures, given their numbers (n, k, 8 + d) and (w, h) of each."""
    classes, scores, attributes, ones = np.moveaxis(numbers[..., 4:8], 2, 0)
    real = ones > 0
    boxes = clip_boxes(numbers[..., :4], sizes[:, None]) / np.tile(sizes, 2)[:, None]
    return RegionFeatures(
        numbers[..., 8:],
        np.where(real[..., None], boxes, 0),
        real,
        np.zeros_like(real),
        sizes,
        np.where(real, classes, -1),
        np.where(real, attributes, -1),
        scores,
    )


@dataclass(frozen=True)
class Preparation:
    """A picture -> what the network takes of it.

    Channels in the network's order, the shorter side resized to ``min_size`` unless the longer one
    would pass ``max_size`` (bilinear, on floats, without smoothing), mean subtracted and divided
    by the deviation: on the device, which is sent the picture as it is.

    The official code differs in the order: where the settings say BGR, its ``img_tensorize`` turns
    a local file into RGB, and only what it gets from an address into BGR. The means are BGR's.

    Parameters
    ----------
    config
        The detector's settings.
    """

    config: FasterRcnnConfig

    def __call__(self, picture: np.ndarray) -> dict[str, np.ndarray]:
        """Return a picture, uint8 (h, w, 3), as pixel_values, uint8 (3, h, w).

        Raises
        ------
        ValueError
            If the picture is so long and narrow that nothing of it would be left.
        """
        height, width = picture.shape[:2]
        size = self.size(height, width)
        if min(size) < THINNEST:
            raise ValueError(
                f"a picture of {width} x {height} pixels is too narrow: resized it has "
                f"{size[1]} x {size[0]}, and the detector needs {THINNEST}. Crop it"
            )
        return {PIXELS: picture.transpose(2, 0, 1)}

    def prepared(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return pixels (n, 3, h, w) in the network's order, size and range, float32."""
        pixels = pixels.flip(1) if self.config.input.format == "BGR" else pixels
        size = self.size(*pixels.shape[-2:])
        pixels = nn.functional.interpolate(pixels.float(), size, mode="bilinear")
        mean, deviation = (
            torch.tensor(colours)[:, None, None].to(pixels.device, non_blocking=True)
            for colours in (self.config.model.pixel_mean, self.config.model.pixel_std)
        )
        return (pixels - mean) / deviation

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to which a picture is resized."""
        least, most = self.config.input.min_size_test, self.config.input.max_size_test
        scale = least / min(height, width)
        sides = (least, scale * width) if height < width else (scale * height, least)
        scale = most / max(sides) if max(sides) > most else 1.0
        return int(sides[0] * scale + 0.5), int(sides[1] * scale + 0.5)


def clip_boxes(boxes: np.ndarray, size: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return boxes (..., 4) of pictures of (w, h) pixels, none thinner than a pixel.

    Examples
    --------
    >>> clip_boxes(np.array([[50.0, 5.0, 50.0, 20.0]]), (50, 20)).tolist()
    [[49.0, 5.0, 50.0, 20.0]]
    """
    low = np.clip(boxes[..., :2], 0, np.array(size) - 1)
    return np.concatenate([low, np.clip(boxes[..., 2:], low + 1, size)], axis=-1)


def load(entry: Entry, checkpoint: Path, device: str) -> Detector:
    """Load the detector: what ``biaslib.models.load("detector", ...)`` calls.

    Parameters
    ----------
    entry
        Of the registry.
    checkpoint
        A folder with the published files: ``pytorch_model.bin`` or ``model.safetensors``,
        ``config.yaml`` or ``config.json``, and where the classes are to have names
        ``objects_vocab.txt`` and ``attributes_vocab.txt``, one name a line.
    device
        A torch device.

    Returns
    -------
    Detector

    Raises
    ------
    CheckpointError
        If files are missing or damaged, a setting is missing or unknown, tensors are missing, left
        over or of another shape, or the label files do not fit; the message names them.
    """
    weights, settings = _files(checkpoint)
    network = _built(weights, settings)
    named = [checkpoint / file for file in LABELS if (checkpoint / file).exists()]
    class_names = _names(checkpoint / LABELS[0], network.config.roi_heads.num_classes)
    hashes = " and ".join(runtime.file_sha256(file)[:12] for file in (weights, settings, *named))
    revision = f"{checkpoint.name}, sha256 {hashes}"
    return Detector(network, entry.name, revision, device, class_names)


def _files(folder: Path) -> tuple[Path, Path]:
    """Return the files of weights and of settings; the published settings before others."""
    names = {path.name for path in folder.glob("*")}
    weights = next((name for name in WEIGHTS if name in names), None)
    settings = next((name for name in SETTINGS if name in names), None)
    if weights is None or settings is None:
        raise CheckpointError(
            f"{folder} is no checkpoint of the detector: it needs {' or '.join(WEIGHTS)}, and "
            f"{' or '.join(SETTINGS)}, and holds {', '.join(sorted(names)) or 'nothing'}"
        )
    return folder / weights, folder / settings


def _built(weights: Path, settings: Path) -> FasterRcnn:
    """Return the network with its weights, if they are all there and no others."""
    try:
        config = FasterRcnnConfig(_settings(settings))
    except ValueError as error:
        raise CheckpointError(f"{settings}: {error}") from error
    state = read_weights(weights)
    _check_anchors(state, config, settings)
    network = FasterRcnn(config)
    require_same(state, network.state_dict(), "detector", ["*.num_batches_tracked"])
    network.load_state_dict(state, strict=False)
    return network


def _check_anchors(state: dict, config: FasterRcnnConfig, settings: Path) -> None:
    if ANCHORS in state and len(state[ANCHORS]) != config.n_anchors:
        raise CheckpointError(
            f"{settings} gives {config.n_anchors} anchors a cell, and the weights hold "
            f"{len(state[ANCHORS])}: the two files are not of the same detector"
        )


def _settings(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    try:
        nested = yaml.safe_load(text)  # which reads JSON, too
    except (ValueError, yaml.YAMLError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(nested, dict):
        raise CheckpointError(f"{path} holds no settings; download it again")
    return nested


def _names(path: Path, count: int) -> list[str] | None:
    """Return the first name of each line, as the official code reads them; None without a file."""
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    names = [line.split(",")[0].strip().lower() for line in lines if line.strip()]
    if len(names) != count:
        raise CheckpointError(f"{path} has {len(names)} names, and the detector knows {count}")
    return names
