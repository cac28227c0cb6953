"""The Faster R-CNN of Anderson et al. (2018) with its attribute head, in plain PyTorch.

A ResNet up to its fourth stage reads a picture (one cell for 16 pixels), a proposal network says
where something may be, and the ResNet's fifth stage reads each proposed region: its class, its
attribute, a better box, and the 2,048 numbers that the region models take. Tensors have the names
of ``GeneralizedRCNN`` in huggingface/transformers-research-projects (``lxmert/modeling_frcnn.py``),
so that its checkpoints load as they are.
"""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import nn
from torchvision.models.detection._utils import BoxCoder
from torchvision.ops import clip_boxes_to_image, nms, roi_pool

__all__ = ["Detections", "FasterRcnn", "FasterRcnnConfig", "Readings", "select"]

STRIDE = 16
"""Pixels of the picture for one cell of the map that proposals are made on."""

BLOCKS = {50: (3, 4, 6), 101: (3, 4, 23), 152: (3, 8, 36)}
"""Blocks in the second to fourth stage of a ResNet, by its depth."""

AT_ONCE = 64
"""Regions that the fifth stage reads at a time unless there is memory for more."""

FIXED = {
    "resnets.norm": "BN",
    "resnets.num_groups": 1,
    "resnets.out_features": ["res4"],
    "rpn.in_features": ["res4"],
    "roi_heads.in_features": ["res4"],
    "roi_box_head.cls_agnostic_bbox_reg": False,
    "roi_box_head.attr": True,
}
"""Settings for which there is only one value here."""


READ = """
input.format input.min_size_test input.max_size_test model.pixel_mean model.pixel_std model.max_pool
resnets.depth resnets.stem_out_channels resnets.width_per_group resnets.res2_out_channels
resnets.stride_in_1x1 anchor_generator.sizes anchor_generator.aspect_ratios anchor_generator.offset
proposal_generator.hidden_channels proposal_generator.min_size rpn.pre_nms_topk_test
rpn.post_nms_topk_test rpn.nms_thresh rpn.bbox_reg_weights roi_heads.num_classes
roi_heads.nms_thresh_test roi_box_head.num_attrs roi_box_head.pooler_resolution
roi_box_head.res5halve roi_box_head.bbox_reg_weights min_detections max_detections
"""
"""Settings that detecting needs, by their places in the official ``config.yaml``."""


class FasterRcnnConfig:
    """The official ``config.yaml``: sections of settings, by their names in lower case.

    Parameters
    ----------
    nested
        What the file holds.

    Raises
    ------
    ValueError
        If a setting is missing or has a value that is not built here; the message names it.
    """

    def __init__(self, nested: Mapping):
        vars(self).update(vars(_lowered(nested)))
        for place in READ.split():
            self.at(place)
        for place, only in FIXED.items():
            if self.at(place) != only:
                raise ValueError(
                    f"the configuration says {place}: {self.at(place)}; only {only} is built"
                )
        if self.resnets.depth not in BLOCKS:
            known = ", ".join(map(str, BLOCKS))
            raise ValueError(f"resnets.depth is {self.resnets.depth}; known: {known}")
        if self.input.format not in ("BGR", "RGB"):
            raise ValueError(f"input.format is {self.input.format!r}; known: BGR, RGB")
        if len(self.anchor_generator.sizes) != 1 or len(self.anchor_generator.aspect_ratios) != 1:
            raise ValueError("anchor_generator has more than one map; only res4 is built")
        if not isinstance(self.roi_heads.nms_thresh_test, list):
            self.roi_heads.nms_thresh_test = [self.roi_heads.nms_thresh_test]

    def at(self, place: str) -> Any:
        """Return the setting at a place, such as ``rpn.nms_thresh``."""
        setting: Any = self
        for name in place.split("."):
            if name not in vars(setting):
                raise ValueError(
                    f"the configuration has no {place}; is it the detector's config.yaml?"
                )
            setting = getattr(setting, name)
        return setting

    @property
    def n_anchors(self) -> int:
        """Boxes that proposals start from in each cell."""
        return len(self.anchor_generator.sizes[0]) * len(self.anchor_generator.aspect_ratios[0])

    @property
    def width(self) -> int:
        """How many numbers describe a region."""
        return 8 * self.resnets.res2_out_channels


def _lowered(nested: Mapping) -> SimpleNamespace:
    settings = {
        str(key).lower(): _lowered(value) if isinstance(value, Mapping) else value
        for key, value in nested.items()
    }
    return SimpleNamespace(**settings)


class Readings(NamedTuple):
    """What the fifth stage says of p regions.

    ``features`` (p, d); ``classes`` (p, classes + 1), the background last, ``attributes``
    (p, attributes + 1), none last, both logits; ``shifts`` (p, 4 x classes).
    """

    features: torch.Tensor
    classes: torch.Tensor
    attributes: torch.Tensor
    shifts: torch.Tensor


class Detections(NamedTuple):
    """The regions of a picture, the surest first.

    ``boxes`` (k, 4) as x0, y0, x1, y1 in pixels; ``classes`` (k,), with the probability of each,
    ``scores`` (k,); ``attributes`` (k,); ``features`` (k, d).
    """

    boxes: torch.Tensor
    classes: torch.Tensor
    scores: torch.Tensor
    attributes: torch.Tensor
    features: torch.Tensor


class FasterRcnn(nn.Module):
    """The whole detector.

    Parameters
    ----------
    config
        Its settings.
    """

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        self.config = config
        self.backbone = Backbone(config)
        self.proposal_generator = ProposalGenerator(config)
        self.roi_heads = RegionHeads(config)

    def forward(self, image: torch.Tensor, size: tuple[int, int] | None = None) -> Detections:
        """Detect in one picture.

        Under autocast, convolutions and products of matrices are in half precision; boxes, and
        what chooses among them, are in float32.

        Parameters
        ----------
        image
            (1, 3, h, w): prepared, and perhaps padded on the right and below.
        size
            Height and width of the picture within the padding; ``None`` if there is none.

        Returns
        -------
        Detections
            With boxes in pixels of the prepared picture.

        Raises
        ------
        FloatingPointError
            If half precision does not hold what the backbone makes of the picture.
        """
        size = size or tuple(image.shape[-2:])
        maps = self.backbone(image)
        if maps.dtype != torch.float32 and not maps.isfinite().all():
            raise FloatingPointError(
                "a picture goes beyond what half precision holds in the detector: set "
                "BIASLIB_PRECISION=float32"
            )
        boxes, _ = self.proposal_generator(maps, size)
        readings = Readings(*(part.float() for part in self.roi_heads(maps, boxes)))
        return select(boxes, readings, size, self.config)


class Convolution(nn.Conv2d):
    """A convolution without bias, and its batch norm."""

    def __init__(self, n_in: int, n_out: int, side: int, stride: int = 1, dilation: int = 1):
        padding = dilation * (side // 2)
        super().__init__(n_in, n_out, side, stride, padding, dilation, bias=False)
        self.norm = nn.BatchNorm2d(n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve and normalise."""
        return self.norm(super().forward(x))


class Stem(nn.Module):
    """A convolution and a pooling that take four pixels to one cell."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        self.conv1 = Convolution(3, config.resnets.stem_out_channels, 7, stride=2)
        of_caffe = config.model.max_pool
        self.pool = nn.MaxPool2d(3, 2, padding=0 if of_caffe else 1, ceil_mode=of_caffe)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take (n, 3, h, w) to (n, channels, h / 4, w / 4)."""
        return self.pool(self.conv1(x).relu_())


class Bottleneck(nn.Module):
    """Three convolutions around which there is a shortcut."""

    def __init__(
        self, n_in: int, narrow: int, n_out: int, stride: int, stride_in_1x1: bool, dilation: int
    ):
        super().__init__()
        first, second = (stride, 1) if stride_in_1x1 else (1, stride)
        self.shortcut = Convolution(n_in, n_out, 1, stride) if n_in != n_out else None
        self.conv1 = Convolution(n_in, narrow, 1, first)
        self.conv2 = Convolution(narrow, narrow, 3, second, dilation)
        self.conv3 = Convolution(narrow, n_out, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the convolutions make of the input to it."""
        added = self.conv3(self.conv2(self.conv1(x).relu_()).relu_())
        return (added + (x if self.shortcut is None else self.shortcut(x))).relu_()


def _stage(
    config: FasterRcnnConfig, number: int, n_blocks: int, stride: int, dilation: int = 1
) -> nn.Sequential:
    """Return a stage of the ResNet, from the second to the fifth."""
    sizes = config.resnets
    narrow = sizes.width_per_group * 2 ** (number - 2)
    n_out = sizes.res2_out_channels * 2 ** (number - 2)
    n_in = sizes.stem_out_channels if number == 2 else n_out // 2
    how = sizes.stride_in_1x1, dilation
    first = Bottleneck(n_in, narrow, n_out, stride, *how)
    later = (Bottleneck(n_out, narrow, n_out, 1, *how) for _ in range(n_blocks - 1))
    return nn.Sequential(first, *later)


class Backbone(nn.Module):
    """The ResNet up to its fourth stage."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        second, third, fourth = BLOCKS[config.resnets.depth]
        self.stem = Stem(config)
        self.res2 = _stage(config, 2, second, stride=1)
        self.res3 = _stage(config, 3, third, stride=2)
        self.res4 = _stage(config, 4, fourth, stride=2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Take (n, 3, h, w) to the map (n, channels, h / 16, w / 16)."""
        return self.res4(self.res3(self.res2(self.stem(images))))


class Anchors(nn.Module):
    """The boxes that proposals start from: in every cell, each size in each shape."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        boxes = []
        for size in config.anchor_generator.sizes[0]:
            for ratio in config.anchor_generator.aspect_ratios[0]:
                width = math.sqrt(size**2 / ratio)
                height = ratio * width
                boxes.append([-width / 2, -height / 2, width / 2, height / 2])
        self.cell_anchors = nn.ParameterList([nn.Parameter(torch.tensor(boxes))])
        self.offset = config.anchor_generator.offset * STRIDE

    def forward(self, height: int, width: int) -> torch.Tensor:
        """Return (height x width x anchors, 4): by row, by column, by anchor."""
        boxes = self.cell_anchors[0]
        ys = torch.arange(height, device=boxes.device) * STRIDE + self.offset
        xs = torch.arange(width, device=boxes.device) * STRIDE + self.offset
        y, x = torch.meshgrid(ys, xs, indexing="ij")
        corners = torch.stack([x, y, x, y], dim=-1)
        return (corners[:, :, None] + boxes).reshape(-1, 4)


class ProposalHead(nn.Module):
    """What each anchor of each cell is: how likely something, and how to shift its box."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        n_in = config.width // 2
        hidden = config.proposal_generator.hidden_channels
        hidden = n_in if hidden == -1 else hidden
        self.conv = nn.Conv2d(n_in, hidden, 3, padding=1)
        self.objectness_logits = nn.Conv2d(hidden, config.n_anchors, 1)
        self.anchor_deltas = nn.Conv2d(hidden, 4 * config.n_anchors, 1)

    def forward(self, maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (n, anchors, h, w) and shifts (n, 4 x anchors, h, w)."""
        hidden = self.conv(maps).relu_()
        return self.objectness_logits(hidden), self.anchor_deltas(hidden)


class ProposalGenerator(nn.Module):
    """Where something may be."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        self.config = config
        self.anchor_generator = Anchors(config)
        self.rpn_head = ProposalHead(config)

    def forward(
        self, maps: torch.Tensor, size: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the boxes (p, 4) and logits (p,) of a picture's proposals, the surest first."""
        settings = self.config.rpn
        logits, shifts = (part[0].float() for part in self.rpn_head(maps))
        shifts = shifts.unflatten(0, (-1, 4)).permute(2, 3, 0, 1).flatten(0, 2)
        logits, order = logits.permute(1, 2, 0).flatten().sort(descending=True, stable=True)
        logits, order = logits[: settings.pre_nms_topk_test], order[: settings.pre_nms_topk_test]
        anchors = self.anchor_generator(*maps.shape[-2:])[order]
        boxes = BoxCoder(settings.bbox_reg_weights).decode_single(shifts[order], anchors)
        boxes = clip_boxes_to_image(boxes, size)
        large = large_enough(boxes, self.config.proposal_generator.min_size)
        boxes, logits = boxes[large], logits[large]
        kept = nms(boxes, logits, settings.nms_thresh)[: settings.post_nms_topk_test]
        return boxes[kept], logits[kept]


def large_enough(boxes: torch.Tensor, least: float) -> torch.Tensor:
    """Return the numbers of the boxes both of whose sides are longer than so many pixels."""
    return (boxes[:, 2:] - boxes[:, :2] > least).all(dim=1).nonzero()[:, 0]


class RegionHeads(nn.Module):
    """What is in each region: the ResNet's fifth stage over the region's part of the map."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        self.at_once = AT_ONCE
        self.pool_size = config.roi_box_head.pooler_resolution
        stride, dilation = (2, 1) if config.roi_box_head.res5halve else (1, 2)
        self.res5 = _stage(config, 5, 3, stride, dilation)
        self.box_predictor = Predictor(config)

    def forward(self, maps: torch.Tensor, boxes: torch.Tensor) -> Readings:
        """Read the regions of a picture, some at a time."""
        features = []
        for part in boxes.split(self.at_once):
            pooled = roi_pool(maps.float(), [part], self.pool_size, 1 / STRIDE)
            features.append(self.res5(pooled).mean(dim=(2, 3)))
        return self.box_predictor(torch.cat(features))


class Predictor(nn.Module):
    """A region's class, its attribute given that class, and its box for every class."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        width, n_classes = config.width, config.roi_heads.num_classes
        self.cls_score = nn.Linear(width, n_classes + 1)
        self.bbox_pred = nn.Linear(width, 4 * n_classes)
        self.cls_embedding = nn.Embedding(n_classes + 1, width // 8)
        self.fc_attr = nn.Linear(width + width // 8, width // 4)
        self.attr_score = nn.Linear(width // 4, config.roi_box_head.num_attrs + 1)

    def forward(self, features: torch.Tensor) -> Readings:
        """Read features (p, d)."""
        classes = self.cls_score(features)
        embedded = self.cls_embedding(classes.argmax(dim=1))
        attributes = self.attr_score(self.fc_attr(torch.cat([features, embedded], 1)).relu())
        return Readings(features, classes, attributes, self.bbox_pred(features))


def select(
    proposals: torch.Tensor, readings: Readings, size: tuple[int, int], config: FasterRcnnConfig
) -> Detections:
    """Choose a picture's regions: each proposal at its likeliest class, without near copies.

    The overlaps of ``nms_thresh_test`` are tried in turn until at least ``min_detections`` regions
    remain. Where none does it, the first that leaves the most is taken and the regions are fewer
    (the official code fails there, or repeats the regions of the picture before).

    Parameters
    ----------
    proposals
        (p, 4), in pixels of the prepared picture.
    readings
        What the fifth stage says of them.
    size
        The prepared picture's height and width.
    config
        The detector's settings.
    """
    scores, classes = readings.classes.softmax(dim=1)[:, :-1].max(dim=1)
    shifts = readings.shifts.unflatten(1, (-1, 4))[torch.arange(len(classes)), classes]
    boxes = BoxCoder(config.roi_box_head.bbox_reg_weights).decode_single(shifts, proposals)
    boxes = clip_boxes_to_image(boxes, size)
    kept = boxes.new_zeros(0, dtype=torch.long)
    for overlap in config.roi_heads.nms_thresh_test:
        chosen = nms(boxes, scores, overlap)[: config.max_detections]
        kept = chosen if len(chosen) > len(kept) else kept
        if len(kept) >= config.min_detections:
            break
    attributes = readings.attributes[kept, :-1].argmax(dim=1)
    return Detections(boxes[kept], classes[kept], scores[kept], attributes, readings.features[kept])
