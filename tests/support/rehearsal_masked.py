"""Sample data of study 2 in the layout of a user: drawings for photographs, random features."""

from pathlib import Path

import numpy as np
from PIL import Image

import plantedworld
from biaslib import stimuli
from biaslib.pictures import region_files
from biaslib.pictures.regions import RegionFeatures

REGIONS, WIDTH = 3, 2048


def build(folder: Path) -> Path:
    """Write ``srinivasan2021``: six drawings of women and of men an entity, and their regions."""
    root = folder / "srinivasan2021"
    entities = stimuli.entities().query("set == 'case study'")["entity"].tolist()
    rng = np.random.default_rng(0)
    scenes = plantedworld.agents_with_entities(rng, entities, n_per_agent=6)
    drawn = plantedworld.draw(scenes)
    numbers = scenes.groupby(["entity", "gender"]).cumcount()
    names = []
    for row, number, picture in zip(scenes.itertuples(), numbers, drawn, strict=True):
        name = f"{row.entity}/{row.gender}/{number}.png"
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(root / name)
        names.append(name)
    n = len(names)
    boxes = np.tile([0.1, 0.1, 0.9, 0.8], (n, REGIONS, 1))
    there = np.ones((n, REGIONS), dtype=bool)
    features = rng.normal(size=(n, REGIONS, WIDTH)).astype(np.float32)
    regions = RegionFeatures(features, boxes, there, ~there, np.full((n, 2), 64))
    region_files.write(root / "regions.safetensors", regions, names)
    return root
