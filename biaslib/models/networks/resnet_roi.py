"""A ResNet that describes image regions: the lower half of the end-to-end VL-BERT.

Module names are those of the published files. Images are BGR, 0..255 less the mean of ImageNet.
"""

import torch
from torch import nn
from torch.nn import functional

__all__ = [
    "PIXEL_MEANS",
    "Bottleneck",
    "FixedBatchNorm",
    "ResNetBody",
    "cut_regions",
    "region_stage",
]

PIXEL_MEANS = (102.9801, 115.9465, 122.7717)
"""What is taken off blue, green and red (0..255)."""

EXPANSION = 4
BINS = 14
STRIDE = 16


class FixedBatchNorm(nn.Module):
    """Batch norm with its stored mean and variance, in training too."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return (n, channels, h, w)."""
        return functional.batch_norm(
            maps, self.running_mean, self.running_var, self.weight, self.bias, training=False
        )


class Bottleneck(nn.Module):
    """Convolutions 1 x 1, 3 x 3 and 1 x 1 with a shortcut (He et al. 2016, figure 5).

    Parameters
    ----------
    channels_in
        Channels of the input.
    planes
        Channels in between; four times as many come out.
    stride
        Of the first convolution, not of the 3 x 3.
    dilation
        Of the 3 x 3 convolution.
    """

    def __init__(self, channels_in: int, planes: int, stride: int = 1, dilation: int = 1):
        super().__init__()
        channels_out = planes * EXPANSION
        self.conv1 = nn.Conv2d(channels_in, planes, 1, stride=stride, bias=False)
        self.bn1 = FixedBatchNorm(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=dilation, dilation=dilation, bias=False)
        self.bn2 = FixedBatchNorm(planes)
        self.conv3 = nn.Conv2d(planes, channels_out, 1, bias=False)
        self.bn3 = FixedBatchNorm(channels_out)
        self.downsample = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, FixedBatchNorm(channels_out))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Return (n, 4 planes, h / stride, w / stride) for (n, channels_in, h, w)."""
        states = functional.relu(self.bn1(self.conv1(maps)))
        states = functional.relu(self.bn2(self.conv2(states)))
        states = self.bn3(self.conv3(states))
        return functional.relu(states + self.downsample(maps))


def _stage(channels_in: int, planes: int, blocks: int, stride: int, dilation: int) -> nn.Sequential:
    first = Bottleneck(channels_in, planes, stride, dilation)
    others = [Bottleneck(planes * EXPANSION, planes, 1, dilation) for _ in range(blocks - 1)]
    return nn.Sequential(first, *others)


class ResNetBody(nn.Module):
    """A ResNet up to its fourth stage, ``layer3``: one output position for 16 pixels.

    Parameters
    ----------
    width
        Channels of the first convolution; 64 in every published ResNet.
    blocks
        Bottlenecks of the three stages: 3, 4, 23 for ResNet-101.
    """

    def __init__(self, width: int = 64, blocks: tuple[int, int, int] = (3, 4, 23)):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = FixedBatchNorm(width)
        self.layer1 = _stage(width, width, blocks[0], stride=1, dilation=1)
        self.layer2 = _stage(4 * width, 2 * width, blocks[1], stride=2, dilation=1)
        self.layer3 = _stage(8 * width, 4 * width, blocks[2], stride=2, dilation=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return (n, 16 width, h / 16, w / 16) for images (n, 3, h, w)."""
        maps = functional.relu(self.bn1(self.conv1(images)))
        maps = functional.max_pool2d(maps, 3, stride=2, padding=1)
        return self.layer3(self.layer2(self.layer1(maps)))


def region_stage(width: int = 64) -> nn.Sequential:
    """Return the fifth stage, which runs on every region: dilated by 2 and without a stride."""
    return _stage(16 * width, 8 * width, blocks=3, stride=1, dilation=2)


def cut_regions(maps: torch.Tensor, boxes: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Cut the real boxes out of feature maps: 14 x 14 bins each, one bilinear sample a bin.

    Parameters
    ----------
    maps
        (n, c, h / 16, w / 16).
    boxes
        (n, k, 4): x0, y0, x1, y1 in pixels of the image.
    real
        (n, k), which boxes there are.

    Returns
    -------
    torch.Tensor
        (number of real boxes, c, 14, 14), row by row.
    """
    from torchvision.ops import roi_align

    rows, _ = real.nonzero(as_tuple=True)
    numbered = torch.cat([rows[:, None].to(boxes.dtype), boxes[real]], dim=1)
    return roi_align(maps, numbered, BINS, 1 / STRIDE, sampling_ratio=1, aligned=False)
