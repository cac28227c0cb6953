"""Train tiny checkpoints; ``python -m plantedworld.training --help`` tells how."""

import argparse
import json
from pathlib import Path

from plantedworld.models.checkpoints import CHECKPOINTS, PLACES, checkpoint_name
from plantedworld.training import RECIPES, make_checkpoint, plan


def main() -> None:
    """Train what is asked for and not there yet, one model after the other."""
    arguments = _parser().parse_args()
    for row in _wanted(arguments):
        name = checkpoint_name(*row)
        if (arguments.folder / name / "card.json").is_file() and not arguments.again:
            print(f"{name}: there already (--again trains it anew)")
            continue
        print(f"{name}: training", flush=True)
        card = make_checkpoint(*row, folder=arguments.folder)
        print(json.dumps(card), flush=True)


def _wanted(arguments: argparse.Namespace) -> list[tuple]:
    """Return family, dose, seed and place of the models to train."""
    asked = (arguments.family, arguments.dose, arguments.seed, arguments.planted_in)
    if None not in asked[:3]:
        return [(*asked[:3], arguments.planted_in or "both")]
    rows = list(plan().itertuples(index=False, name=None))
    return [row for row in rows if all(a in (None, b) for a, b in zip(asked, row, strict=True))]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plantedworld.training",
        description="Train the tiny checkpoints of the planted world: all that are shipped and "
        "not there yet, or those of a family, dose, seed or place. One thread a process, so two "
        "processes keep two cores busy. Models that others start from are the shipped ones.",
    )
    parser.add_argument("family", nargs="?", choices=sorted(RECIPES))
    parser.add_argument("--dose", type=float, help="factor on the planted log-odds, such as 3")
    parser.add_argument("--seed", type=int, help="seed of the world")
    parser.add_argument("--planted-in", choices=PLACES, help="where the world is planted")
    parser.add_argument("--folder", type=Path, default=CHECKPOINTS, help="where the folders go")
    parser.add_argument("--again", action="store_true", help="train even what is there")
    return parser


if __name__ == "__main__":
    main()
