"""Weights of one network by the names that another network has for them."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

NAMES = Path(__file__).parent / "data" / "names.csv"
"""By what starts from what: names of weights, or their beginnings, in the one and in the other."""


def names(start: str) -> dict[str, str]:
    """Return a table of :data:`NAMES`.

    Examples
    --------
    >>> names("vl_bert from bert")[r"bert\\.encoder\\."]
    'vlbert.encoder.'
    """
    with NAMES.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        return {row["one"]: row["other"] for row in rows if row["start"] == start}


def renamed(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    r"""Return weights by other names; those that no name stands for are left out.

    Parameters
    ----------
    weights
        By their names.
    names
        What each pattern at the beginning of a name is replaced by; the first one that fits counts.

    Examples
    --------
    >>> list(renamed({"encoder.layer.0.weight": 0, "pooler": 1}, {r"encoder\.layer\.": "h."}))
    ['h.0.weight']
    """
    others = {}
    for name, weight in weights.items():
        pattern = next((each for each in names if re.match(each, name)), None)
        if pattern is not None:
            others[re.sub(f"^{pattern}", names[pattern], name)] = weight
    return others


def borrowed(
    network: nn.Module, weights: Mapping[str, Tensor], names: Mapping[str, str]
) -> dict[str, Tensor]:
    """Return the weights that parts of a network start from; tied ones are left out.

    Parameters
    ----------
    network
        The one to start.
    weights
        Of the other network, by name.
    names
        Beginnings of names: of the network's own, and what they are called in the other.
    """
    start = {}
    for name in network.state_dict():
        ours = next((each for each in names if name.startswith(each)), None)
        if ours is not None and ".decoder." not in name:
            start[name] = weights[names[ours] + name.removeprefix(ours)].float()
    return start


def joined(weights: Mapping[str, Tensor], parts: Sequence[str], whole: str) -> dict[str, Tensor]:
    """Return weights in which some parts, such as query, key and value, are one.

    Parameters
    ----------
    weights
        By their names.
    parts
        What the parts are called within the names, in the order of their rows.
    whole
        What they are called together.
    """
    others = {n: w for n, w in weights.items() if not any(part in n for part in parts)}
    for name in weights:
        if parts[0] in name:
            each = [weights[name.replace(parts[0], part)] for part in parts]
            others[name.replace(parts[0], whole)] = torch.cat(each)
    return others
