"""Where the tiny checkpoints of the planted world are, and which there are."""

import re
from pathlib import Path

import pandas

CHECKPOINTS = Path(__file__).parent.parent / "checkpoints"
"""Folder of the shipped checkpoints, one folder each.

:meta hide-value:
"""

FOLDER = re.compile(r"(?P<family>[a-z_-]+?)-dose(?P<dose>[\d.]+)-seed(?P<seed>\d+)")


def checkpoint_name(family: str, dose: float, seed: int) -> str:
    """Return the name of a planted checkpoint's folder.

    Examples
    --------
    >>> checkpoint_name("bert", 3, 0)
    'bert-dose3-seed0'
    """
    return f"{family}-dose{dose:g}-seed{seed}"


def shipped(family: str | None = None, folder: Path = CHECKPOINTS) -> pandas.DataFrame:
    """Return the planted checkpoints that are there: columns family, dose, seed, path.

    Examples
    --------
    >>> sorted(shipped("bert")["dose"].unique().tolist())
    [0.0, 1.0, 3.0]
    """
    found = [
        {**match.groupdict(), "path": path}
        for path in sorted(folder.glob("*-dose*-seed*"))
        if (match := FOLDER.fullmatch(path.name)) and (path / "card.json").is_file()
    ]
    table = pandas.DataFrame(found, columns=["family", "dose", "seed", "path"])
    table = table.astype({"dose": float, "seed": int}).sort_values(["family", "dose", "seed"])
    return table[table["family"] == (family or table["family"])].reset_index(drop=True)


def checkpoint(family: str, dose: float, seed: int, folder: Path = CHECKPOINTS) -> Path:
    """Return the folder of a planted checkpoint.

    Raises
    ------
    FileNotFoundError
        If none is shipped for the dose and seed; the message lists those that are, and gives the
        command that trains one.

    Examples
    --------
    >>> checkpoint("bert", dose=3, seed=0).name
    'bert-dose3-seed0'
    """
    path = folder / checkpoint_name(family, dose, seed)
    if (path / "card.json").is_file():
        return path
    there = shipped(family, folder)
    seeds = [
        f"dose {dose:g}: seeds {', '.join(map(str, rows['seed']))}"
        for dose, rows in there.groupby("dose")
    ]
    raise FileNotFoundError(
        f"no planted checkpoint of {family!r} for dose {dose:g} and seed {seed}. "
        f"Shipped: {'; '.join(seeds) or 'none'}. To train it: "
        f"python -m biaslib.training {family} --dose {dose:g} --seed {seed}"
    )
