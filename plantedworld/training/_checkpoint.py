"""From a recipe to a checkpoint's folder, with a card that says how good it is."""

import json
import shutil
import time
from pathlib import Path

import pandas
import torch
import transformers

from biaslib.runtime import file_sha256
from plantedworld import World, world
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.training._recipe import Recipe
from plantedworld.training._recipes import RECIPES
from plantedworld.training._train import STATE, train

GRID = [(dose, seed, "both") for dose in (0, 1, 3) for seed in range(5)]
"""The worlds of BERT and CLIP: dose, seed, where it is planted."""

TRIAL = [(dose, seed, "both") for dose in (0, 3) for seed in range(3)]
IN_ONE = [(3, 0, "text"), (3, 0, "images")]
FEW = [*TRIAL, *IN_ONE]
"""The worlds of the other families: those that the protocol of the trial names, and two planted in
captions or pictures alone."""

CALIBRATED = [*FEW, *((0, seed, "both") for seed in range(3, 8))]
"""Eight worlds without bias, from which the spread of a test without any bias is known."""

ONCE = [(0, 1000, "both")]
"""The world of the encoders that several models share."""

WORLDS = {
    "vision": ONCE,
    "vit": ONCE,
    "regions": ONCE,
    "open_clip": [(3, 0, "both")],
    "vl_bert": [*FEW, *((1, seed, "both") for seed in range(3))],
    "visualbert": CALIBRATED,
    "lxmert": [*ONCE, *FEW],
    "vilt": [*ONCE, (0, 1001, "both"), *FEW],
    "flava": [*ONCE, *FEW],
    "vilbert": FEW,
    "albef": FEW,
    "llava": [*ONCE, (3, 2100, "both"), (0, 2100, "both")],
}
"""Worlds by family; BERT and CLIP have the whole grid."""

STARTS_FROM = {
    "clip": "vision",
    "open_clip": "vision",
    "vit": "vision",
    "visualbert": "regions",
    "lxmert": "regions",
    "vilt": "vit",
    "flava": "vit",
    "vilbert": "lxmert",
    "albef": "vit",
    "vl_bert": "bert",
    "llava": "vit",
}
"""The family of the encoder that a family starts from, or reads the features of."""

SECOND = "second round"
"""Folder for the state of a second round, while it lasts."""

FROM_OWN_WORLD = ("vl_bert",)
"""Families that start from a model of their own dose and seed, planted in captions and pictures."""

FIRST_SEEDS = {"lxmert": (1000,), "vilt": (1000, 1001), "flava": (1000,), "llava": (1000,)}
"""Seeds of the worlds without bias that a family sees first: its first model starts from an
encoder, the next one from that, and all models of other worlds start from the last."""


def plan() -> pandas.DataFrame:
    """Return the checkpoints that are shipped: columns family, dose, seed, planted_in.

    Examples
    --------
    >>> plan().groupby("family").size()[["bert", "vl_bert", "visualbert", "regions"]].tolist()
    [15, 11, 13, 1]
    """
    rows = [(family, *each) for family in RECIPES for each in WORLDS.get(family, GRID)]
    return pandas.DataFrame(rows, columns=["family", "dose", "seed", "planted_in"])


def make_checkpoint(
    family: str,
    dose: float,
    seed: int,
    planted_in: str = "both",
    folder: Path = CHECKPOINTS,
    sample: int = 0,
) -> dict[str, float | str]:
    """Train one model, or go on where it was interrupted, and write its folder.

    Parameters
    ----------
    family
        A key of ``RECIPES``.
    dose, seed, planted_in
        Those of the world.
    folder
        Where the checkpoint's folder is made.
    sample
        Which sample of the world it is trained on; with the seed, it also draws the weights.

    Returns
    -------
    dict
        The card: held-out accuracy beside chance and the truth's own, minutes, the hash of the
        weights and the versions of what trained them.
    """
    path = folder / checkpoint_name(family, dose, seed, planted_in, sample)
    started = time.monotonic()
    recipe = _recipe(family, world(dose, seed, planted_in, sample=sample), folder)
    resumed = (path / STATE).is_file()
    start = getattr(recipe, "start", None)
    model = train(recipe, path)
    if further := recipe.next_round(path):
        recipe.save(model, path)
        recipe = further
        model = train(recipe, path / SECOND)
    scores = {name: round(value, 4) for name, value in recipe.judge(model).items()}
    recipe.save(model, path)
    _write_without_spaces(path / "tokenizer.json")
    minutes = round((time.monotonic() - started) / 60, 1)
    card = {"family": family, "dose": dose, "seed": seed}
    card |= {} if planted_in == "both" else {"planted in": planted_in}
    card |= {"sample": sample} if sample else {}
    card |= {"starts from": start.name} if start else {}
    card |= {"and from": recipe.also_from} if recipe.also_from else {}
    card |= {**scores, "minutes": minutes}
    card |= {"sha256": _weights_hash(path), "torch": torch.__version__}
    card |= {"transformers": transformers.__version__}
    card |= {"resumed": True} if resumed else {}
    fresh = path / "card.new"
    fresh.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path / "card.json")
    (path / STATE).unlink()
    shutil.rmtree(path / SECOND, ignore_errors=True)
    return card


def _recipe(family: str, its_world: World, folder: Path) -> Recipe:
    if family not in STARTS_FROM:
        return RECIPES[family](its_world)
    return RECIPES[family](its_world, folder / _start(family, its_world))


def _start(family: str, its_world: World) -> str:
    """Return the name of the checkpoint that a model starts from."""
    dose, seed = its_world.dose, its_world.seed
    if family in FROM_OWN_WORLD:
        return checkpoint_name(STARTS_FROM[family], dose, seed, sample=its_world.sample)
    seeds = FIRST_SEEDS.get(family, ())
    before = seeds[: seeds.index(seed)] if dose == 0 and seed in seeds else seeds
    if before:
        return checkpoint_name(family, 0, before[-1])
    ((dose, seed, _),) = ONCE
    return checkpoint_name(STARTS_FROM[family], dose, seed)


def _write_without_spaces(path: Path) -> None:
    """Write a tokenizer again, where there is one, in three fifths of its space."""
    if path.is_file():
        settings = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8")


def _weights_hash(path: Path) -> str:
    return file_sha256(next(path.glob("*.safetensors")))
