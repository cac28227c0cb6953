"""What the trial trains, scores and asks for: the numbers of ``plantedworld/PROTOCOL.md``."""

from collections.abc import Sequence
from dataclasses import replace

import pandas

from plantedworld._seeds import N_WORLDS
from plantedworld.studies.recovery import Target

N_OTHER = 5
"""Worlds that families other than BERT and CLIP learn, the first of :data:`N_WORLDS`."""

SAMPLES = (0, 1)
DOSES = (0, 1, 3)
OTHER_FAMILIES = ("visualbert", "lxmert", "vilbert", "vilt", "flava", "albef", "vl_bert")
OTHER_DOSES = (0, 3)

SHARED = (
    *("vision-dose0-seed1000", "vit-dose0-seed1000", "regions-dose0-seed1000"),
    *("lxmert-dose0-seed1000", "vilt-dose0-seed1000", "vilt-dose0-seed1001"),
    "flava-dose0-seed1000",
)
"""Checkpoints of worlds without bias that others start from, or read the features of."""

LAYOUTS = 5
"""Portraits of each of the 16 drawings of adults, in each of five tones, that the trial keeps."""

OPACITY, PICTURES = 0.5, 240
"""How opaque objects are drawn for study 4, and how many pictures of each label a world has."""

PER_AGENT = 6
"""Pictures of a woman, and of a man, with each entity of study 2."""

DRAW = 2_026
"""Seed of portraits, scenes and their layouts."""

_TARGETS = (
    Target("B(E)", "bert", 1, "slope", 0.85, 1.15),
    Target("B(E)", "bert", 3, "slope", 0.85, 1.15),
    Target("B(E)", "bert", 1, "rank within signs", 0.8),
    Target("B(E)", "bert", 3, "rank within signs", 0.9),
    Target("difference", "clip", 1, "slope", 0.75, 1.25),
    Target("difference", "clip", 3, "slope", 0.75, 1.25),
    Target("difference", "clip", 1, "rank within signs", 0.5),
    Target("difference", "clip", 3, "rank within signs", 0.7),
    Target("C-ASC", "clip", 1, "rank within signs", 0.5),
    Target("C-ASC", "clip", 3, "rank within signs", 0.7),
    Target("top k", "clip", 3, "rank within signs", 0.5),
    Target("C-ASC, attributes", "clip", 3, "rank within signs", 0.5),
    Target("S_PT", "vl_bert", 3, "rank within signs", 0.5),
    Target("S_PT", "vl_bert", 3, "partial rank", 0.5),
    Target("S_L", "vl_bert", 3, "rank within signs", 0.7),
    Target("S_L", "vl_bert", 3, "slope", 0.75, 1.25),
    Target("S_L", "vl_bert", 3, "partial rank", 0.5),
    Target("S_V", "vl_bert", 3, "rank within signs", 0.5),
    Target("S_V", "vl_bert", 3, "slope", 0.75, 1.25),
    Target("S_V", "vl_bert", 3, "partial rank", 0.5),
)
TARGETS = tuple(
    replace(each, worlds=N_WORLDS if each.model in ("bert", "clip") else N_OTHER)
    for each in _TARGETS
)
"""Slopes and ranks of words."""

SIGN_TARGETS = tuple(
    Target(f"d, {level}", family, 3, "signs", 0.8, worlds=N_OTHER)
    for family in ("visualbert", "vilbert", "lxmert", "vl_bert")
    for level in ("word", "sentence", "contextual")
)
"""Share of study 1's tests with the planted sign. Effect sizes saturate: there is no slope."""

RISES = (
    *("VisualBERT, matching", "LXMERT, matching", "ViLT, matching", "CLIP, contrastive"),
    *("ALBEF, contrastive", "FLAVA, contrastive"),
)
"""Models of study 4 as the paper scores them."""


def models_to_train(seeds: Sequence[int]) -> pandas.DataFrame:
    """Return the models of the trial in the order of their training: family, dose, seed, sample.

    Examples
    --------
    >>> models_to_train(range(5000, 5010)).groupby("family").size()[["bert", "albef"]].tolist()
    [60, 10]
    """
    rows = [
        (family, dose, seed, sample)
        for seed in seeds
        for sample in SAMPLES
        for dose in DOSES
        for family in ("bert", "clip")
    ]
    rows += [
        (family, dose, seed, 0)
        for family in OTHER_FAMILIES
        for seed in seeds[:N_OTHER]
        for dose in OTHER_DOSES
    ]
    return pandas.DataFrame(rows, columns=["family", "dose", "seed", "sample"])
