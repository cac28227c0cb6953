"""Region files of study 1 as published: VisualBERT's, in its layout, with invented numbers."""

from pathlib import Path

import torch

REGIONS = 5


def build(folder: Path) -> Path:
    """Write a file of regions for the pictures that ``rehearsal_grounded`` wrote before."""
    images = folder / "ross2021" / "images" / "google"
    generator = torch.Generator().manual_seed(0)
    found = {}
    for path in sorted(images.rglob("*.jpg")):
        features = torch.randn(REGIONS, 1024, generator=generator)
        parts = (features, torch.rand(REGIONS, 4, generator=generator), torch.ones(REGIONS))
        # Pictures of two folders may share a name, and are then looked up with their folder.
        found |= {path.name: parts, f"{path.parent.name}/{path.name}": parts}
    place = folder / "ross2021" / "regions" / "google"
    place.mkdir(parents=True)
    torch.save(found, place / "visualbert-nlvr2.th")
    return place
