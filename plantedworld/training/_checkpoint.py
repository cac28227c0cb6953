"""From a recipe to a checkpoint's folder, with a card that says how good it is."""

import json
import time
from pathlib import Path

import pandas
import torch
import transformers

from biaslib.runtime import file_sha256
from plantedworld import world
from plantedworld.models.checkpoints import CHECKPOINTS, checkpoint_name
from plantedworld.training._recipes import RECIPES
from plantedworld.training._train import train


def plan() -> pandas.DataFrame:
    """Return the checkpoints that are shipped: columns family, dose, seed, planted_in.

    Examples
    --------
    >>> plan().groupby("family").size()[["bert", "vl_bert", "visualbert", "regions"]].tolist()
    [15, 11, 13, 1]
    """
    rows = [(family, *row) for family, recipe in RECIPES.items() for row in recipe.worlds]
    return pandas.DataFrame(rows, columns=["family", "dose", "seed", "planted_in"])


def make_checkpoint(
    family: str, dose: float, seed: int, planted_in: str = "both", folder: Path = CHECKPOINTS
) -> dict[str, float | str]:
    """Train one model and write its folder.

    Parameters
    ----------
    family
        A key of ``RECIPES``.
    dose, seed, planted_in
        Those of the world.
    folder
        Where the checkpoint's folder is made. Models that others start from are the shipped ones.

    Returns
    -------
    dict
        The card: held-out accuracy beside chance and the truth's own, minutes, the hash of the
        weights and the versions of what trained them.
    """
    path = folder / checkpoint_name(family, dose, seed, planted_in)
    path.mkdir(parents=True, exist_ok=True)
    (path / "card.json").unlink(missing_ok=True)
    started = time.monotonic()
    recipe = RECIPES[family](world(dose, seed, planted_in))
    model = train(recipe)
    recipe.save(model, path)
    _write_without_spaces(path / "tokenizer.json")
    card = {"family": family, "dose": dose, "seed": seed}
    card |= {} if planted_in == "both" else {"planted in": planted_in}
    card |= {"starts from": recipe.start.name} if recipe.starts_from else {}
    card |= {"and from": recipe.also_from} if recipe.also_from else {}
    scores = recipe.judge(model.float(), path)
    card |= {name: round(value, 4) for name, value in scores.items()}
    card |= {"minutes": round((time.monotonic() - started) / 60, 1)}
    card |= {"sha256": file_sha256(next(path.glob("*.safetensors")))}
    card |= {"torch": torch.__version__, "transformers": transformers.__version__}
    (path / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


def _write_without_spaces(path: Path) -> None:
    """Write a tokenizer again, where there is one, in three fifths of its space."""
    if path.is_file():
        settings = json.loads(path.read_text(encoding="utf-8"))
        text = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8")
