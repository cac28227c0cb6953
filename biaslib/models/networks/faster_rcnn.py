"""The Faster R-CNN of Anderson et al. (2018) with its attribute head, in plain PyTorch.

A ResNet up to its fourth stage reads a picture (one cell for 16 pixels), a proposal network says
where something may be, and the ResNet's fifth stage reads each proposed region: its class, its
attribute, a better box, and the 2,048 numbers that the region models take. Tensors have the names
of ``GeneralizedRCNN`` in huggingface/transformers-research-projects (``lxmert/modeling_frcnn.py``),
so that its checkpoints load as they are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import nn
from torchvision.ops import clip_boxes_to_image, nms, roi_pool

__all__ = ["Detections", "FasterRcnn", "FasterRcnnConfig", "Readings", "decoded", "select"]

STRIDE = 16
"""Pixels of the picture for one cell of the map that proposals are made on."""

BLOCKS = {50: (3, 4, 6), 101: (3, 4, 23), 152: (3, 8, 36)}
"""Blocks in the second to fourth stage of a ResNet, by its depth."""

MAX_LOG_SCALE = math.log(1000 / 16)
"""A box grows no more than e to this, whatever the network says."""

AT_ONCE = 64
"""Regions that the fifth stage reads at a time, which bounds its memory."""

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


def _at(place: str):
    return field(metadata={"place": place})


@dataclass(frozen=True)
class FasterRcnnConfig:
    """What the official ``config.yaml`` says, as far as detecting needs it.

    Attributes
    ----------
    pixel_mean, pixel_std, channels
        Subtracted and divided by, for each channel in the order ``BGR`` or ``RGB``.
    min_size, max_size
        Pixels to which a picture's shorter side is resized, unless the longer one passes its limit.
    max_pool
        Whether the stem pools without padding and rounds up, as Caffe does.
    depth, stem_width, bottleneck_width, res2_width, stride_in_1x1
        The ResNet: layers, channels of its stem, of its narrow and wide parts in the second stage
        (each later stage has twice as many), and which convolution of a block has the stride.
    anchor_sizes, aspect_ratios, anchor_offset
        Sides in pixels, heights over widths, and the shift in cells of the boxes that proposals
        start from.
    hidden_width
        Channels of the proposal network; -1 for as many as the map has.
    min_side, n_before, n_after, proposal_iou, proposal_weights
        Proposals: sides that are too short, how many are kept before and after suppression, the
        overlap that suppresses, and what the four shifts are divided by.
    n_classes, n_attributes
        Without the background and without "no attribute".
    pool_size, halves, box_weights
        Cells a region is pooled to, whether the fifth stage has a stride of two, and what its four
        shifts are divided by.
    ious, min_detections, max_detections
        Overlaps that suppress, tried in turn until at least so many regions are left; and at most.
    """

    pixel_mean: tuple[float, ...] = _at("model.pixel_mean")
    pixel_std: tuple[float, ...] = _at("model.pixel_std")
    channels: str = _at("input.format")
    min_size: int = _at("input.min_size_test")
    max_size: int = _at("input.max_size_test")
    max_pool: bool = _at("model.max_pool")
    depth: int = _at("resnets.depth")
    stem_width: int = _at("resnets.stem_out_channels")
    bottleneck_width: int = _at("resnets.width_per_group")
    res2_width: int = _at("resnets.res2_out_channels")
    stride_in_1x1: bool = _at("resnets.stride_in_1x1")
    anchor_sizes: tuple[tuple[float, ...]] = _at("anchor_generator.sizes")
    aspect_ratios: tuple[tuple[float, ...]] = _at("anchor_generator.aspect_ratios")
    anchor_offset: float = _at("anchor_generator.offset")
    hidden_width: int = _at("proposal_generator.hidden_channels")
    min_side: float = _at("proposal_generator.min_size")
    n_before: int = _at("rpn.pre_nms_topk_test")
    n_after: int = _at("rpn.post_nms_topk_test")
    proposal_iou: float = _at("rpn.nms_thresh")
    proposal_weights: tuple[float, ...] = _at("rpn.bbox_reg_weights")
    n_classes: int = _at("roi_heads.num_classes")
    n_attributes: int = _at("roi_box_head.num_attrs")
    pool_size: int = _at("roi_box_head.pooler_resolution")
    halves: bool = _at("roi_box_head.res5halve")
    box_weights: tuple[float, ...] = _at("roi_box_head.bbox_reg_weights")
    ious: tuple[float, ...] = _at("roi_heads.nms_thresh_test")
    min_detections: int = _at("min_detections")
    max_detections: int = _at("max_detections")

    @classmethod
    def from_nested(cls, nested: Mapping) -> "FasterRcnnConfig":
        """Read the official layout: sections of settings, in either case.

        Raises
        ------
        ValueError
            If a setting is missing or has a value that is not built here; the message names it.
        """
        nested = _lowered(nested)
        for place, only in FIXED.items():
            if _found(nested, place) != only:
                raise ValueError(
                    f"the configuration says {place}: {_found(nested, place)}; only {only} is built"
                )
        settings = {
            each.name: _frozen(_found(nested, each.metadata["place"])) for each in fields(cls)
        }
        if not isinstance(settings["ious"], tuple):
            settings["ious"] = (settings["ious"],)
        return cls(**settings)

    def __post_init__(self) -> None:
        if self.depth not in BLOCKS:
            raise ValueError(f"resnets.depth is {self.depth}; known: {', '.join(map(str, BLOCKS))}")
        if sorted(self.channels) != sorted("RGB"):
            raise ValueError(f"input.format is {self.channels!r}; known: BGR, RGB")
        if len(self.anchor_sizes) != 1 or len(self.aspect_ratios) != 1:
            raise ValueError("anchor_generator has more than one map; only res4 is built")

    @property
    def n_anchors(self) -> int:
        """Boxes that proposals start from in each cell."""
        return len(self.anchor_sizes[0]) * len(self.aspect_ratios[0])

    @property
    def width(self) -> int:
        """How many numbers describe a region."""
        return 8 * self.res2_width


def _lowered(nested: Mapping) -> dict:
    return {
        str(key).lower(): _lowered(value) if isinstance(value, Mapping) else value
        for key, value in nested.items()
    }


def _found(nested: Mapping, place: str):
    for name in place.split("."):
        if not isinstance(nested, Mapping) or name not in nested:
            raise ValueError(f"the configuration has no {place}; is it the detector's config.yaml?")
        nested = nested[name]
    return nested


def _frozen(value):
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


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
    """The regions of one picture, the surest first.

    ``boxes`` (k, 4) as x0, y0, x1, y1 in pixels; ``classes`` and ``attributes`` (k,) numbers, with
    the probability of each, ``scores`` and ``attribute_scores`` (k,); ``features`` (k, d).
    """

    boxes: torch.Tensor
    classes: torch.Tensor
    scores: torch.Tensor
    attributes: torch.Tensor
    attribute_scores: torch.Tensor
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

    def forward(
        self, images: torch.Tensor, sizes: torch.Tensor, scales: torch.Tensor
    ) -> list[Detections]:
        """Detect.

        Parameters
        ----------
        images
            (n, 3, h, w): prepared, and padded on the right and below to a common size. Padding
            enters the receptive fields of what lies beside it, so a padded picture's regions differ
            a little from those it has alone.
        sizes
            (n, 2): height and width of each picture within the padding.
        scales
            (n, 2): height and width of the picture as it came over these.

        Returns
        -------
        list of Detections
            One for each picture, with boxes in pixels of the picture as it came.

        Notes
        -----
        Under autocast the convolutions and matrix products run in half precision; boxes, their
        overlaps and probabilities stay in float32.
        """
        maps = self.backbone(images)
        proposals = [boxes for boxes, _ in self.proposal_generator(maps, sizes)]
        readings = Readings(*(part.float() for part in self.roi_heads(maps, proposals)))
        counts = [len(boxes) for boxes in proposals]
        of_picture = zip(*(part.split(counts) for part in readings), strict=True)
        return [
            select(boxes, Readings(*parts), size, self.config, scale)
            for boxes, parts, size, scale in zip(proposals, of_picture, sizes, scales, strict=True)
        ]


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
        self.conv1 = Convolution(len(config.pixel_mean), config.stem_width, 7, stride=2)
        padding = 0 if config.max_pool else 1
        self.pool = nn.MaxPool2d(3, stride=2, padding=padding, ceil_mode=config.max_pool)

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
    narrow = config.bottleneck_width * 2 ** (number - 2)
    n_out = config.res2_width * 2 ** (number - 2)
    n_in = config.stem_width if number == 2 else n_out // 2
    blocks = []
    for i in range(n_blocks):
        shape = (n_in, narrow, n_out) if i == 0 else (n_out, narrow, n_out)
        blocks.append(Bottleneck(*shape, stride if i == 0 else 1, config.stride_in_1x1, dilation))
    return nn.Sequential(*blocks)


class Backbone(nn.Module):
    """The ResNet up to its fourth stage."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        second, third, fourth = BLOCKS[config.depth]
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
        for size in config.anchor_sizes[0]:
            for ratio in config.aspect_ratios[0]:
                width = math.sqrt(size**2 / ratio)
                height = ratio * width
                boxes.append([-width / 2, -height / 2, width / 2, height / 2])
        self.cell_anchors = nn.ParameterList([nn.Parameter(torch.tensor(boxes))])
        self.offset = config.anchor_offset * STRIDE

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
        hidden = n_in if config.hidden_width == -1 else config.hidden_width
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
        self, maps: torch.Tensor, sizes: torch.Tensor
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return the boxes (p, 4) and logits (p,) of each picture's proposals, the surest first."""
        anchors = self.anchor_generator(*maps.shape[-2:])
        logits, shifts = (part.float() for part in self.rpn_head(maps))
        logits = logits.permute(0, 2, 3, 1).flatten(1)
        shifts = shifts.unflatten(1, (-1, 4)).permute(0, 3, 4, 1, 2).flatten(1, 3)
        return [self._best(anchors, *each) for each in zip(logits, shifts, sizes, strict=True)]

    def _best(
        self, anchors: torch.Tensor, logits: torch.Tensor, shifts: torch.Tensor, size: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits, order = logits.sort(descending=True, stable=True)
        logits, order = logits[: self.config.n_before], order[: self.config.n_before]
        boxes = decoded(anchors[order], shifts[order], self.config.proposal_weights)
        boxes = clip_boxes_to_image(boxes, size.tolist())
        large = (boxes[:, 2:] - boxes[:, :2] > self.config.min_side).all(dim=1)
        boxes, logits = boxes[large], logits[large]
        kept = nms(boxes, logits, self.config.proposal_iou)[: self.config.n_after]
        return boxes[kept], logits[kept]


class RegionHeads(nn.Module):
    """What is in each region: the ResNet's fifth stage over the region's part of the map."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        self.pool_size = config.pool_size
        stride, dilation = (2, 1) if config.halves else (1, 2)
        self.res5 = _stage(config, 5, 3, stride, dilation)
        self.box_predictor = Predictor(config)

    def forward(self, maps: torch.Tensor, boxes: list[torch.Tensor]) -> Readings:
        """Read the regions of all pictures, those of the first one first."""
        pictures = [torch.full((len(b), 1), float(i)).to(b) for i, b in enumerate(boxes)]
        places = torch.cat([torch.cat(pictures), torch.cat(boxes)], dim=1)
        features = [self._features(maps, part) for part in places.split(AT_ONCE)]
        return self.box_predictor(torch.cat(features))

    def _features(self, maps: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        pooled = roi_pool(maps.float(), places, self.pool_size, 1 / STRIDE)
        return self.res5(pooled).mean(dim=(2, 3))


class Predictor(nn.Module):
    """A region's class, its attribute given that class, and its box for every class."""

    def __init__(self, config: FasterRcnnConfig):
        super().__init__()
        width = config.width
        self.cls_score = nn.Linear(width, config.n_classes + 1)
        self.bbox_pred = nn.Linear(width, 4 * config.n_classes)
        self.cls_embedding = nn.Embedding(config.n_classes + 1, width // 8)
        self.fc_attr = nn.Linear(width + width // 8, width // 4)
        self.attr_score = nn.Linear(width // 4, config.n_attributes + 1)

    def forward(self, features: torch.Tensor) -> Readings:
        """Read features (p, d)."""
        classes = self.cls_score(features)
        embedded = self.cls_embedding(classes.argmax(dim=1))
        attributes = self.attr_score(self.fc_attr(torch.cat([features, embedded], 1)).relu())
        return Readings(features, classes, attributes, self.bbox_pred(features))


def select(
    proposals: torch.Tensor,
    readings: Readings,
    size: torch.Tensor,
    config: FasterRcnnConfig,
    scale: torch.Tensor,
) -> Detections:
    """Choose a picture's regions: each proposal at its likeliest class, without near copies.

    The overlaps of ``config.ious`` are tried in turn until at least ``min_detections`` regions
    remain. Where none does it, the first that leaves the most is taken and the regions are fewer
    (the official code fails there, or repeats the regions of the picture before).

    Parameters
    ----------
    proposals
        (p, 4), in pixels of the resized picture.
    readings
        What the fifth stage says of them.
    size
        (2,): the resized picture's height and width.
    config
        The detector's settings.
    scale
        (2,): height and width of the picture as it came over those.
    """
    scores, classes = readings.classes.softmax(dim=1)[:, :-1].max(dim=1)
    shifts = readings.shifts.unflatten(1, (-1, 4))[torch.arange(len(classes)), classes]
    boxes = decoded(proposals, shifts, config.box_weights)
    boxes = clip_boxes_to_image(boxes, size.tolist())
    kept = _kept(boxes, scores, config)
    attribute_scores, attributes = readings.attributes[kept, :-1].softmax(dim=1).max(dim=1)
    return Detections(
        boxes[kept] * scale[[1, 0, 1, 0]],
        classes[kept],
        scores[kept],
        attributes,
        attribute_scores,
        readings.features[kept],
    )


def _kept(boxes: torch.Tensor, scores: torch.Tensor, config: FasterRcnnConfig) -> torch.Tensor:
    most = None
    for iou in config.ious:
        kept = nms(boxes, scores, iou)[: config.max_detections]
        if len(kept) >= config.min_detections:
            return kept
        if most is None or len(kept) > len(most):
            most = kept
    return most


def decoded(boxes: torch.Tensor, shifts: torch.Tensor, weights: tuple[float, ...]) -> torch.Tensor:
    """Return boxes (p, 4) moved and stretched by shifts (p, 4).

    With a box's centre (x, y), width w and height h, the new centre is (x + w dx, y + h dy), the
    new width w exp(dw) and height h exp(dh), each shift divided by its weight first (Girshick et
    al. 2014, appendix C).

    Examples
    --------
    >>> box, shift = torch.tensor([[0.0, 0.0, 10.0, 20.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    >>> decoded(box, shift, (10.0, 10.0, 5.0, 5.0)).tolist()
    [[1.0, 0.0, 11.0, 20.0]]
    """
    extents = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + 0.5 * extents
    shifts = shifts / shifts.new_tensor(weights)
    centres = shifts[:, :2] * extents + centres
    extents = shifts[:, 2:].clamp(max=MAX_LOG_SCALE).exp() * extents
    return torch.cat([centres - 0.5 * extents, centres + 0.5 * extents], dim=1)
