"""Region files of study 1 as published: VisualBERT's, with invented numbers."""

from pathlib import Path

import numpy as np

from biaslib.pictures import region_files
from biaslib.pictures.regions import RegionFeatures

REGIONS = 5


def build(folder: Path) -> Path:
    """Write a file of regions for the pictures that ``rehearsal_grounded`` wrote before."""
    images = folder / "ross2021" / "images" / "google"
    # Pictures of two folders may share a name, and are then looked up with their folders.
    paths = sorted(images.rglob("*.jpg"))
    names = {"/".join(path.parts[-depth:]): None for path in paths for depth in (1, 2, 3)}
    n, whole = len(names), [0.0, 0.0, 1.0, 1.0]
    features = np.random.default_rng(0).normal(size=(n, REGIONS, 1024))
    real = np.ones((n, REGIONS), dtype=bool)
    boxes = np.tile(whole, (n, REGIONS, 1))
    regions = RegionFeatures(features, boxes, real, ~real, np.full((n, 2), 64))
    place = folder / "ross2021" / "regions" / "google"
    place.mkdir(parents=True)
    region_files.write(place / "visualbert-nlvr2.safetensors", regions, names)
    return place
