"""Regions of the planted world's pictures: person, object, whole; features from their pixels.

A detector gives real region models their boxes and features. Here the boxes are known, and the
features are the states of one small network, the same for every planted model: it was trained once
on a world without bias, to name what a crop of a picture shows, and then left as it is. It sees the
pixels of a box and no label.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pandas
import torch
from safetensors.torch import load_file, save_file

import plantedworld
from biaslib.pictures.regions import RegionFeatures
from plantedworld.models.checkpoints import checkpoint

__all__ = ["KINDS", "SIDE", "WIDTH", "RegionEncoder", "crops_of", "encoder", "regions_of"]

KINDS = ("person", "object", "whole")
"""The regions of a picture, in this order; the white picture has its whole alone."""

SIDE = 40
"""Pixels along one side of a crop."""

STATE = 64
WIDTH = STATE + len(KINDS)
"""Numbers a region: the state, and which of the three kinds it is.

VisualBERT gives all regions one and the same position, so the kind has to be in the features.
"""

ENCODER = ("regions", 0, 1000)
"""Family, dose and seed of the encoder."""

CHANNELS = (32, 32, 64, 64)
PICTURES_AT_ONCE = 512
CROPS_AT_ONCE = 64
WEIGHTS_FILE = "model.safetensors"


class RegionEncoder(torch.nn.Module):
    """Four convolutions and a linear layer: crops (n, 3, 40, 40) to states (n, 64)."""

    def __init__(self) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.layers = torch.nn.Sequential(
            *_convolution(3, first, 5, stride=2),
            *_convolution(first, second, 3),
            torch.nn.MaxPool2d(2),
            *_convolution(second, third, 3),
            torch.nn.MaxPool2d(2),
            *_convolution(third, fourth, 3),
            torch.nn.Flatten(),
            torch.nn.Linear(fourth * (SIDE // 8) ** 2, STATE),
        )
        self.register_buffer("mean", torch.zeros(STATE))
        self.register_buffer("whitening", torch.eye(STATE))

    def forward(self, crops: torch.Tensor) -> torch.Tensor:
        """Return the states of crops."""
        return self.layers(crops)

    def features(self, crops: torch.Tensor) -> torch.Tensor:
        """Return the states, centred and whitened by the statistics kept with the weights."""
        return (self(crops) - self.mean) @ self.whitening

    def keep_statistics(self, states: torch.Tensor) -> None:
        """Take mean and whitening from the states of many crops, (n, 64)."""
        self.mean.copy_(states.mean(0))
        values, vectors = torch.linalg.eigh(torch.cov(states.T).double())
        floor = 1e-3 * values.mean()
        self.whitening.copy_(vectors / (values.clamp(min=0) + floor).sqrt())

    def save_pretrained(self, folder: Path) -> None:
        """Write weights and sizes."""
        save_file(self.state_dict(), folder / WEIGHTS_FILE)
        config = {"model_type": "planted_regions", "side": SIDE, "width": STATE}
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: Path) -> "RegionEncoder":
        """Read what :meth:`save_pretrained` wrote, for inference, in full precision.

        No random number is drawn, so that a training's own are the same whether or not the
        encoder was loaded before.
        """
        with torch.device("meta"):
            model = cls()
        model.load_state_dict(load_file(Path(folder) / WEIGHTS_FILE), assign=True)
        return model.float().eval()


def _convolution(before: int, after: int, size: int, stride: int = 1) -> list[torch.nn.Module]:
    convolution = torch.nn.Conv2d(before, after, size, stride, size // 2, bias=False)
    return [convolution, torch.nn.BatchNorm2d(after), torch.nn.ReLU()]


@functools.cache
def encoder() -> RegionEncoder:
    """Return the shipped region encoder."""
    return RegionEncoder.from_pretrained(checkpoint(*ENCODER))


def regions_of(
    scenes: pandas.DataFrame | np.ndarray,
    boxes: np.ndarray | None = None,
    model: RegionEncoder | None = None,
) -> RegionFeatures:
    """Return the three regions of every picture: person, object, whole.

    Parameters
    ----------
    scenes
        A frame of n planted scenes, which are drawn; or n pictures, uint8, (n, h, w, 3).
    boxes
        Of pictures: (n, 3, 4), x0, y0, x1, y1 in pixels, NaN for a region that is not there.
    model
        The encoder; None takes the shipped one.

    Returns
    -------
    RegionFeatures
        (n, 3, 67); a region that is not there has zeros and is not real. Where a person is in the
        picture, two regions show them: their own and the whole picture.

    Examples
    --------
    >>> regions = regions_of(plantedworld.blank())
    >>> regions.real.tolist(), regions.persons.tolist()
    ([[False, False, True]], [[False, False, False]])
    """
    if not isinstance(scenes, pandas.DataFrame):
        return _encoded(np.asarray(scenes), np.asarray(boxes, float), model or encoder())
    parts = []
    for start in range(0, len(scenes), PICTURES_AT_ONCE):
        some = scenes.iloc[start : start + PICTURES_AT_ONCE]
        corners = plantedworld.boxes(some).to_numpy(dtype=float).reshape(-1, len(KINDS), 4)
        parts.append(_encoded(plantedworld.draw(some), corners, model or encoder()))
    columns = ("features", "boxes", "real", "persons", "sizes")
    return RegionFeatures(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in columns)
    )


def _encoded(pictures: np.ndarray, boxes: np.ndarray, model: RegionEncoder) -> RegionFeatures:
    real = ~np.isnan(boxes).any(axis=2)
    height, width = pictures.shape[1:3]
    features = np.zeros((*real.shape, WIDTH), dtype=np.float32)
    with torch.inference_mode():
        crops = crops_of(pictures, boxes).split(CROPS_AT_ONCE)
        states = torch.cat([model.features(pixels(some)) for some in crops])
    features[real, :STATE] = states.numpy()
    features[..., STATE:] = np.eye(len(KINDS)) * real[..., np.newaxis]
    shares = np.where(real[..., np.newaxis], boxes, 0.0) / [width, height, width, height]
    persons = real & real[:, :1] & (np.array(KINDS) != "object")
    sizes = np.tile([width, height], (len(pictures), 1))
    return RegionFeatures(features, shares, real, persons, sizes)


def crops_of(pictures: np.ndarray, boxes: np.ndarray) -> torch.Tensor:
    """Return what is in every box that is there, resized: uint8, (boxes, 3, 40, 40).

    Picture after picture, and within each in the order of the boxes; between pixels colours are
    interpolated bilinearly.

    Parameters
    ----------
    pictures
        (n, h, w, 3), uint8.
    boxes
        (n, k, 4), in pixels; those with NaN are left out.
    """
    picture, region = np.nonzero(~np.isnan(boxes).any(axis=2))
    corners = torch.tensor(boxes[picture, region], dtype=torch.float32)
    height, width = pictures.shape[1:3]
    steps = (torch.arange(SIDE) + 0.5) / SIDE
    across = corners[:, :1] + (corners[:, 2:3] - corners[:, :1]) * steps
    down = corners[:, 1:2] + (corners[:, 3:] - corners[:, 1:2]) * steps
    places = torch.stack(
        [
            (2 * across / width - 1)[:, None, :].expand(-1, SIDE, -1),
            (2 * down / height - 1)[:, :, None].expand(-1, -1, SIDE),
        ],
        dim=-1,
    )
    colours = torch.tensor(pictures).permute(0, 3, 1, 2).float()[picture]
    crops = torch.nn.functional.grid_sample(
        colours, places, mode="bilinear", padding_mode="border", align_corners=False
    )
    return crops.round().to(torch.uint8)


def pixels(crops: torch.Tensor) -> torch.Tensor:
    """Return uint8 colours as numbers from -1 to 1."""
    return crops.float() / 127.5 - 1
