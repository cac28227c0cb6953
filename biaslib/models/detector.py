"""The region detector: a picture's objects, with the features that the region models take.

It is the Faster R-CNN of Anderson et al. (2018), trained on Visual Genome, in the packaging that
LXMERT and VisualBERT were given (``unc-nlp/frcnn-vg-finetuned``).
``biaslib.models.load("detector")`` reads the published files.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

from biaslib import runtime
from biaslib.models._batches import says_no_memory
from biaslib.models._checkpoints import CheckpointError, read_weights, require_same
from biaslib.models._entries import Entry
from biaslib.models.capabilities import DETECT
from biaslib.models.images import Pictures, loaded, pictures
from biaslib.models.networks.faster_rcnn import Detections, FasterRcnn, FasterRcnnConfig
from biaslib.models.regions import RegionFeatures, RegionRow, stacked
from biaslib.runtime import first_few, progress, unknown_name

__all__ = [
    "PERSON_WORDS",
    "Detector",
    "Preparation",
    "load",
    "person_regions",
]

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
SETTINGS = ("config.yaml", "config.json")
LABELS = ("objects_vocab.txt", "attributes_vocab.txt")

LABELS_FROM = "airsplay/py-bottom-up-attention, in demo/data/genome/1600-400-20"
"""The repository that holds the label files; the registry has their addresses."""

PERSON_WORDS = ("people", "person", "woman", "women", "man", "men")
"""Classes that are a person's, in the released code of Ross, Katz and Barbu (2021)."""

ANCHORS = "proposal_generator.anchor_generator.cell_anchors.0"

THINNEST = 16
"""Pixels that a resized picture's shorter side must have, or the network's map has no cell."""

FEW, CHUNK = 16, 4
"""Pictures up to which no workers start, and those that one is handed at a time (13 MB each)."""

WAITING = 32
"""Prepared pictures that wait for others of their size, at most."""

PRECISIONS = ("float32", "bfloat16", "float16")

Prepared = tuple[np.ndarray, tuple[int, int]]
"""What :class:`Preparation` makes of a picture."""


class Detector:
    """Pictures -> the regions of their objects.

    Pictures of one size run through the network together, and are never padded to a common size: so
    a picture's regions do not depend on the others (in the official code they do, through the
    padding beside a smaller picture).

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
    precision
        ``float32``; or ``bfloat16`` or ``float16``, in which convolutions and matrix products run
        while boxes stay in float32, and which the revision then names. Half precision changes the
        order of regions that are nearly as likely, and so which are kept: no default, and no part
        of ``BIASLIB_PRECISION``.

    Attributes
    ----------
    batch_size
        Pictures of one size a forward pass: 8 on CUDA devices, halved where memory does not
        suffice, and 1 elsewhere, where more save no time.
    """

    capabilities = frozenset({DETECT})

    def __init__(
        self,
        network: FasterRcnn,
        name: str,
        revision: str,
        device: str,
        class_names: Sequence[str] | None = None,
        precision: str = "float32",
    ):
        if precision not in PRECISIONS:
            raise unknown_name("precision", precision, PRECISIONS)
        self.network = network.to(device).eval()
        self.precision = getattr(torch, precision)
        if self.precision != torch.float32:
            self.network.to(memory_format=torch.channels_last)
        self.config = network.config
        self.name, self.device = name, device
        self.revision = revision if precision == "float32" else f"{revision}, {precision}"
        self.batch_size = 8 if device.startswith("cuda") else 1
        self.preparation = Preparation(self.config)
        self._class_names = class_names

    @property
    def class_names(self) -> list[str]:
        """The name of every class; an error says where to get them if they are missing."""
        if self._class_names is None:
            raise FileNotFoundError(
                f"{self.name} has no {LABELS[0]}, which names what the numbers mean: copy it from "
                f"the repository {LABELS_FROM}, to the checkpoint's folder or one to pass as "
                "labels=. Without it, ask for numbers alone: words=None"
            )
        return self._class_names

    def regions(self, images: Any, words: Sequence[str] | None = ()) -> RegionFeatures:
        """Return the regions of pictures, as the region models take them.

        Every row has as many places as the configuration allows regions (36), the surest first;
        those that a picture does not fill are not ``real``, have zeros in every number, and -1 for
        class and attribute. A white picture has few distinct regions, or none. A box that the
        picture's edge has cut thinner than a pixel is given a pixel.

        Parameters
        ----------
        images
            n images, in any form of the package's.
        words
            Classes whose regions show a person, beside :data:`PERSON_WORDS`: see
            :func:`person_regions`. ``None`` does not look for persons and needs no class names.

        Returns
        -------
        RegionFeatures
            With ``classes``, ``attributes`` and ``scores``.

        Raises
        ------
        FileNotFoundError
            If persons are looked for and the names of the classes are missing.
        ImageError
            If an image cannot be used; the message names it.

        Warns
        -----
        UserWarning
            If nothing was detected in an image; the warning names it, and its row has no real
            region.
        """
        shown = pictures(images)
        if not len(shown):
            raise ValueError("there are no images: the list is empty")
        names = None if words is None else self.class_names
        label = f"{self.name}: {len(shown):,} images"
        found = dict(progress(self._found(shown), label, len(shown)))
        rows = [found[i] for i in range(len(shown))]
        self._warn_of_empty([shown.name(i) for i, row in enumerate(rows) if not len(row.boxes)])
        regions = stacked(rows, self.config.max_detections)
        return regions if names is None else self.with_persons(regions, words)

    def with_persons(self, regions: RegionFeatures, words: Sequence[str] = ()) -> RegionFeatures:
        """Return regions with which of them show a person, and with the names of their classes.

        Parameters
        ----------
        regions
            As :meth:`regions` returns them; without the names of the classes they stay as they are.
        words
            Further classes, as of :func:`person_regions`.
        """
        names = self._class_names
        if names is None:
            return regions
        persons = person_regions(np.array([*names, ""])[regions.classes], words)
        return replace(regions, persons=persons, class_names=tuple(names))

    def _found(self, shown: Pictures) -> Iterator[tuple[int, RegionRow]]:
        """Yield the number of each picture and its regions, pictures of one size together."""
        prepared = loaded(shown, self.preparation, range(len(shown)), few=FEW, chunk=CHUNK)
        for group in _of_one_size(enumerate(prepared), self.batch_size):
            detections = self._that_fit([each for _, each in group])
            for (row, (_, raw_size)), found in zip(group, detections, strict=True):
                yield row, _row(found, raw_size[::-1])

    def _that_fit(self, prepared: list[Prepared]) -> list[Detections]:
        """Run pictures together, or half as many from then on where there is no memory."""
        found: list[Detections] = []
        while len(found) < len(prepared):
            part = prepared[len(found) : len(found) + self.batch_size]
            try:
                found += self._run(part)
            except (MemoryError, RuntimeError) as error:
                if not says_no_memory(error) or len(part) == 1:
                    raise
                self.batch_size = len(part) // 2
        return found

    @torch.inference_mode()
    def _run(self, prepared: list[Prepared]) -> list[Detections]:
        """Detect in pictures that were resized to one size."""
        images = torch.from_numpy(np.stack([pixels for pixels, _ in prepared])).to(self.device)
        sizes = torch.tensor([images.shape[-2:]] * len(images), device=self.device)
        scales = torch.tensor([size for _, size in prepared], device=self.device) / sizes
        if self.precision != torch.float32:
            images = images.contiguous(memory_format=torch.channels_last)
        with self.autocast():
            found = self.network(images, sizes, scales)
        return [Detections(*(part.cpu().numpy() for part in each)) for each in found]

    def autocast(self) -> torch.autocast:
        """Return the context in which the network runs in the detector's precision."""
        half = self.precision != torch.float32
        kind = self.device.split(":")[0]
        return torch.autocast(kind, dtype=self.precision if half else None, enabled=half)

    def _warn_of_empty(self, empty: list[str]) -> None:
        if empty:
            warnings.warn(
                f"{self.name} found nothing in {first_few(empty)}: no region of these rows is "
                "real. Leave the images out, or use another picture",
                stacklevel=3,
            )


@dataclass(frozen=True)
class Preparation:
    """A picture -> what the network takes of it.

    Channels in the network's order, the shorter side resized to ``min_size`` unless the longer one
    would pass ``max_size`` (bilinear, on floats, without smoothing), mean subtracted and divided
    by the deviation.

    Parameters
    ----------
    config
        The detector's settings.
    """

    config: FasterRcnnConfig

    def __call__(self, picture: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """Return the prepared picture, (3, h, w) float32, and the height and width it came with.

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
        channels = picture[:, :, ::-1] if self.config.channels == "BGR" else picture
        pixels = torch.from_numpy(channels.astype(np.float32)).permute(2, 0, 1)[None]
        pixels = nn.functional.interpolate(pixels, size, mode="bilinear", align_corners=False)[0]
        mean, deviation = (
            torch.tensor(each)[:, None, None]
            for each in (self.config.pixel_mean, self.config.pixel_std)
        )
        return ((pixels - mean) / deviation).numpy(), (height, width)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to which a picture is resized."""
        least, most = self.config.min_size, self.config.max_size
        scale = least / min(height, width)
        sides = (least, scale * width) if height < width else (scale * height, least)
        scale = most / max(sides) if max(sides) > most else 1.0
        return int(sides[0] * scale + 0.5), int(sides[1] * scale + 0.5)


def person_regions(classes: np.ndarray, words: Sequence[str] = ()) -> np.ndarray:
    """Return which regions show a person, by the names of their classes.

    A region does if its class is one of :data:`PERSON_WORDS` or of the given words, such as the
    contextual words of a test (Ross, Katz and Barbu 2021, Experiment 3, as released). Others that
    name a person, such as ``boy``, ``lady`` or ``player``, count only if they are given.

    Parameters
    ----------
    classes
        (n, k) names.
    words
        Further classes.

    Returns
    -------
    numpy.ndarray
        (n, k), bool.

    Examples
    --------
    >>> person_regions(np.array([["Woman", "dog", "boy"]]), words=["boy"]).tolist()
    [[True, False, True]]
    """
    if isinstance(words, str):
        raise TypeError(f"words is one string; pass a list of words: [{words!r}]")
    wanted = {word.lower() for word in (*PERSON_WORDS, *words)}
    return np.isin(np.char.lower(np.asarray(classes, dtype=str)), sorted(wanted))


def _of_one_size(
    prepared: Iterable[tuple[int, Prepared]], most: int
) -> Iterator[list[tuple[int, Prepared]]]:
    """Yield groups of pictures that were resized to one size, from among few that wait.

    Examples
    --------
    >>> wide, tall = (np.zeros((3, 2, 4)), (2, 4)), (np.zeros((3, 4, 2)), (4, 2))
    >>> groups = _of_one_size(enumerate([wide, tall, wide, wide, tall]), most=2)
    >>> [[row for row, _ in group] for group in groups]
    [[0, 2], [1, 4], [3]]
    """
    waiting: dict[tuple[int, ...], list] = {}
    for row, each in prepared:
        group = waiting.setdefault(each[0].shape, [])
        group.append((row, each))
        if sum(map(len, waiting.values())) >= WAITING:
            group = max(waiting.values(), key=len)
        elif len(group) < most:
            continue
        yield waiting.pop(group[0][1][0].shape)
    for group in waiting.values():
        yield group


def _row(found: Detections, size: tuple[int, int]) -> RegionRow:
    """Return a picture's detections, none thinner than a pixel; size is (w, h)."""
    low = np.clip(found.boxes[:, :2], 0, np.array(size) - 1)
    high = np.clip(found.boxes[:, 2:], low + 1, size)
    boxes = np.concatenate([low, high], axis=1)
    return RegionRow(found.features, boxes, size, found.classes, found.attributes, found.scores)


def load(
    entry: Entry,
    checkpoint: Path,
    device: str,
    labels: str | Path | None = None,
    precision: str = "float32",
) -> Detector:
    """Load the detector: what ``biaslib.models.load("detector", ...)`` calls.

    Parameters
    ----------
    entry
        Of the registry.
    checkpoint
        A folder with the published files: ``pytorch_model.bin`` or ``model.safetensors``, and
        ``config.yaml`` or ``config.json``.
    device
        A torch device.
    labels
        A folder with ``objects_vocab.txt`` and ``attributes_vocab.txt``, one name a line, which
        may be missing; ``None`` looks in the checkpoint's, where a download puts them.
    precision
        As of :class:`Detector`.

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
    labels = checkpoint if labels is None else Path(labels)
    counts = (network.config.n_classes, network.config.n_attributes)
    class_names, _ = (_names(labels / file, n) for file, n in zip(LABELS, counts, strict=True))
    named = [labels / file for file in LABELS if (labels / file).exists()]
    hashes = " and ".join(runtime.file_sha256(file)[:12] for file in (weights, settings, *named))
    revision = f"{checkpoint.name}, sha256 {hashes}"
    return Detector(network, entry.name, revision, device, class_names, precision)


def _files(folder: Path) -> tuple[Path, Path]:
    """Return the files of weights and of settings; the published settings before others."""
    there = {each.name for each in folder.glob("*")}
    weights = next((file for file in WEIGHTS if file in there), None)
    settings = next((file for file in SETTINGS if file in there), None)
    if weights is None or settings is None:
        raise CheckpointError(
            f"{folder} is no checkpoint of the detector: it needs {' or '.join(WEIGHTS)}, and "
            f"{' or '.join(SETTINGS)}, and holds {', '.join(sorted(there)) or 'nothing'}"
        )
    return folder / weights, folder / settings


def _built(weights: Path, settings: Path) -> FasterRcnn:
    """Return the network with its weights, if they are all there and no others."""
    try:
        config = FasterRcnnConfig.from_nested(_settings(settings))
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
            f"{settings} gives {config.n_anchors} anchors a cell "
            f"({len(config.anchor_sizes[0])} sizes x {len(config.aspect_ratios[0])} ratios), and "
            f"the weights hold {len(state[ANCHORS])}: the two files are not of the same detector"
        )


def _settings(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    try:
        nested = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
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
