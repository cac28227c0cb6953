"""The first minute of a study in ``paper``: what it takes on this machine, and what cannot work."""

import csv
import importlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from biaslib import runtime
from biaslib.checkpoints.reach import SILENT, refusals
from biaslib.errors import CheckpointError
from biaslib.studies._fetch import Part, fetched

__all__ = ["first_look", "gigabytes", "in_words", "minutes"]

WORK = Path(__file__).parent / "data" / "work.csv"
"""What each study calculates, by its size: FLOP, how they were counted, a processor's seconds."""

STORED = {("study1_grounded", "full"): 6.2}
"""GB that answers and regions take; of the others some hundred MB."""

BESIDE = 1.0
"""GB that a batch and its program take beside twice the weights, on a card as in memory: ours."""


def first_look(study: str, size: str) -> list[str]:
    """Return what a study takes here, and a warning for each thing that is short or not to be had.

    Each source is asked for one header, unless its files are here already.

    Parameters
    ----------
    study, size
        Name of the study's module, and ``full`` or ``taste``.

    Raises
    ------
    CheckpointError
        If a source does not give what there is no study without.
    """
    parts = _parts(study, size)
    wanted = [each for each in parts if not each.here()]
    load, stored = sum(each.gigabytes for each in wanted), STORED.get((study, size), 0.5)
    device, rate = runtime.speed()
    took = in_words(minutes(study, size, rate))
    kept = " The rest is here." if len(wanted) < len(parts) else ""
    told = f"It downloads some {load:.1f} GB, takes {load + stored:.1f} GB of disk, and then"
    lines = [f"{told} about {took} on {device}: estimates, not measured.{kept}"]
    short = [*_short(parts, load + stored), *_refused(wanted)]
    by_hand = fetched([each for each in parts if not each.source])  # these look, and fetch nothing
    short += [f"nobody can fetch {row[0]}. Without it: {row[1]}" for row in by_hand.to_numpy()]
    return lines + [f"WARNING: {each}" for each in short]


def _parts(study: str, size: str) -> list[Part]:
    return importlib.import_module(f"biaslib.studies.{study}").parts(size)


def gigabytes(study: str, size: str) -> float:
    """Return what a study downloads where nothing is here yet."""
    return sum(each.gigabytes for each in _parts(study, size))


def minutes(study: str, size: str, rate: float) -> float:
    """Return the minutes of a study without its downloads, at so many TFLOP/s: an estimate.

    Examples
    --------
    >>> round(minutes("study3_clip_audit", "full", 19.5))
    29
    """
    with open(WORK, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["study"], row["size"]) == (study, size)]
    tera = sum(float(row["items"]) * float(row["gflop"]) / 1e3 for row in rows)
    return (tera / rate + sum(float(row["seconds"]) for row in rows)) / 60


def in_words(amount: float) -> str:
    """Return minutes as an estimate is said.

    Examples
    --------
    >>> in_words(29.4), in_words(200)
    ('29 min', '3.3 h')
    """
    return f"{amount:.0f} min" if amount < 90 else f"{amount / 60:.1f} h"


def _short(parts: Sequence[Part], disk: float) -> Iterator[str]:
    """Yield what there is too little of: disk, memory of the card, memory."""
    free = shutil.disk_usage(".").free / 1e9
    if free < disk:
        yield (
            f"{free:.1f} GB of disk are free, and {disk:.1f} needed: make room, or name folders "
            "of a larger disk in BIASLIB_DATA, BIASLIB_CACHE and BIASLIB_STORE"
        )
    weights = [each.gigabytes for each in parts if not each.source.startswith("data ")]
    needed = 2 * max(weights, default=0) + BESIDE
    card, memory = runtime.card_memory() * 1.074, runtime.free_memory("cpu") / 1e9
    for what, there in (("the card has", card), ("free memory is", memory)):
        if 0 < there < needed:
            enough = f"weights with a batch take some {needed:.1f}"
            yield f"{what} {there:.1f} GB, and {enough}: take a larger one, or SIZE = 'taste'"


def _refused(wanted: Sequence[Part]) -> list[str]:
    """Return a warning for each source, or host, that does not give what the study can do without.

    Raises
    ------
    CheckpointError
        If there is no study without it.
    """
    found, groups = refusals(each.source for each in wanted if each.source), {}
    silent = len(found) > 1 and {each.why for each in found.values()} == {SILENT}
    for part in wanted:
        if refusal := found.get(part.source):
            groups.setdefault(SILENT if silent else refusal, []).append(part)
    warnings = []
    for group in groups.values():
        host, why, fix = found[group[0].source]
        host += " and others" * (silent and len({each.host for each in found.values()}) > 1)
        said = f"{SILENT} from {host}" if why == SILENT else f"{host} {why}"
        what = f"{said}: {runtime.first_few([each.what for each in group])}. To do: {fix}."
        vital = [each for each in group if not each.without]
        if vital:
            raise CheckpointError(f"{what} There is no study without it", word=vital[0].source)
        without = runtime.first_few(list(dict.fromkeys(each.without for each in group)), 3)
        warnings.append(f"{what} Without it: {without}")
    return warnings
