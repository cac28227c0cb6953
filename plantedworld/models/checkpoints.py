"""Where the tiny checkpoints of the planted world are, and which there are."""

import hashlib
import json
import re
from collections.abc import Iterable
from numbers import Real
from pathlib import Path

import pandas

from biaslib.runtime import note_files, unknown_name

CHECKPOINTS = Path(__file__).parent.parent / "checkpoints"
"""Folder of the shipped checkpoints, one folder each.

:meta hide-value:
"""

FOLDER = re.compile(
    r"(?P<family>[a-z_-]+?)-dose(?P<dose>[\d.]+)-seed(?P<seed>\d+)(-(?P<planted_in>text|images))?"
)

PLACES = ("both", "text", "images")
"""Where a world can be planted: in captions and pictures, or in one of them alone."""


def checkpoint_name(family: str, dose: float, seed: int, planted_in: str = "both") -> str:
    """Return the name of a planted checkpoint's folder.

    Raises
    ------
    UnknownNameError
        If ``planted_in`` is not ``both``, ``text`` or ``images``.
    TypeError
        If the dose is no number.

    Examples
    --------
    >>> checkpoint_name("bert", 3, 0)
    'bert-dose3-seed0'
    >>> checkpoint_name("vilt", 3, 0, planted_in="text")
    'vilt-dose3-seed0-text'
    """
    if not isinstance(dose, Real):
        raise TypeError(f"the dose must be a number and is {dose!r}")
    if planted_in not in PLACES:
        raise unknown_name("place to plant in", planted_in, PLACES)
    suffix = "" if planted_in == "both" else f"-{planted_in}"
    return f"{family}-dose{dose:g}-seed{seed}{suffix}"


def shipped(family: str | None = None, folder: Path = CHECKPOINTS) -> pandas.DataFrame:
    """Return the planted checkpoints that are there.

    Returns
    -------
    pandas.DataFrame
        Columns family, dose, seed, planted_in (``both``, ``text`` or ``images``) and path.

    Examples
    --------
    >>> sorted(shipped("bert")["dose"].unique().tolist())
    [0.0, 1.0, 3.0]
    """
    note_files(folder / "*")
    rows = [
        {**match.groupdict(default="both"), "path": path}
        for path in sorted(folder.glob("*-dose*-seed*"))
        if (match := FOLDER.fullmatch(path.name)) and (path / "card.json").is_file()
    ]
    columns = ["family", "dose", "seed", "planted_in", "path"]
    table = pandas.DataFrame(rows, columns=columns).astype({"dose": float, "seed": int})
    table = table[table["family"] == (family or table["family"])]
    return table.sort_values(columns[:4], ignore_index=True)


def checkpoint(
    family: str, dose: float, seed: int, planted_in: str = "both", folder: Path = CHECKPOINTS
) -> Path:
    """Return the folder of a planted checkpoint.

    Raises
    ------
    FileNotFoundError
        If none is shipped for the world; the message gives the command that trains one.
    UnknownNameError
        If ``planted_in`` is not ``both``, ``text`` or ``images``.

    Examples
    --------
    >>> checkpoint("bert", dose=3, seed=0).name
    'bert-dose3-seed0'
    """
    path = folder / checkpoint_name(family, dose, seed, planted_in)
    if (path / "card.json").is_file():
        note_files(path)
        return path
    option = "" if planted_in == "both" else f" --planted-in {planted_in}"
    raise FileNotFoundError(
        f"no planted checkpoint of {family!r} for dose {dose:g} and seed {seed}"
        f"{_only(planted_in)}; plantedworld.models.checkpoints.shipped() lists those that are. "
        "To train it, in a clone of the repository: "
        f"python -m plantedworld.training {family} --dose {dose:g} --seed {seed}"
        f"{option}"
    )


def fingerprints(families: Iterable[str], seeds: Iterable[int]) -> dict[str, str]:
    """Return what a page's stamp says of shipped checkpoints: one fingerprint a family and dose.

    Parameters
    ----------
    families, seeds
        Of which; others are left out.

    Returns
    -------
    dict
        The first twelve digits of the SHA-256 of the hashes of the weights, by family, dose, where
        it is planted, and seeds.

    Examples
    --------
    >>> list(fingerprints(["bert"], [0, 1]))[:2]
    ['bert dose 0, seeds 0, 1', 'bert dose 1, seeds 0, 1']
    """
    table = shipped()
    table = table[table["family"].isin(list(families)) & table["seed"].isin(list(seeds))]
    prints = {}
    for (family, dose, planted_in), rows in table.groupby(["family", "dose", "planted_in"]):
        cards = [json.loads((path / "card.json").read_text())["sha256"] for path in rows["path"]]
        numbers = ", ".join(map(str, rows["seed"]))
        name = f"{family} dose {dose:g}{_only(planted_in)}, seeds {numbers}"
        prints[name] = hashlib.sha256("".join(cards).encode()).hexdigest()[:12]
    return prints


def _only(planted_in: str) -> str:
    return "" if planted_in == "both" else f", planted only in {planted_in}"
