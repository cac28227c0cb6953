"""What an audit would take, before anything is downloaded or run: minutes, memory, gigabytes."""

import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import models, runtime
from biaslib.models._registry import repository
from biaslib.models.downloads import listed_bytes
from biaslib.models.own import identify
from biaslib.studies import study1_grounded as grounded
from biaslib.studies import study2_masked as masked
from biaslib.studies import study3_clip_audit as clip_audit
from biaslib.studies import study4_captions as selection
from biaslib.studies.own_model._audit import chosen_data, chosen_parts
from biaslib.studies.own_model._folder import OwnFolder
from biaslib.studies.own_model._parts import MATCHED_PER_CELL, QUOTED, Part

__all__ = ["DoesNotFitError", "Plan", "plan", "weights_of"]

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
LIBRARIES = 0.7
"""GiB that Python and its libraries take themselves."""

ROOM = 1.25
"""What a model takes beside its weights while it runs, as a factor. Ours."""

TEXT_TOKENS, PICTURE_TOKENS = 16, 300
"""Of a caption and of a picture, for the estimate of minutes. Ours."""

OVERHEAD = 2e-3
"""Seconds that an item takes in the smallest model. Ours."""

ON_CUDA = 2e13
"""Operations a second that are reckoned with on a GPU. Ours, until measured."""

EFFICIENCY = 0.3

OF_LISTS = 200
"""Captions of word lists and of innocent words, about."""


class DoesNotFitError(ValueError):
    """A model that the device has no memory for; the message says what would fit."""


@dataclass(frozen=True)
class Plan:
    """What an audit would take.

    Attributes
    ----------
    parameters
        Of the model, from the bytes of its files.
    download
        Gigabytes to download; 0 for what is on this disk.
    memory, free
        Gibibytes that the model takes while it runs, and that the device has free (0: unknown).
    device, precision
        Where, and with what numbers.
    parts
        One row a part: *part*, *texts*, *pictures* (with texts), *minutes*.
    """

    parameters: float
    download: float
    memory: float
    free: float
    device: str
    precision: str
    parts: pandas.DataFrame

    @property
    def minutes(self) -> float:
        """Minutes of all parts: an estimate that may be three times too high or too low."""
        return float(self.parts["minutes"].sum())

    @property
    def fits(self) -> bool:
        """Whether the device has the memory, as far as it tells."""
        return not self.free or self.memory <= self.free

    def __str__(self) -> str:
        rows = [
            f"  {row.part}: {row.texts:,} texts, {row.pictures:,} texts with a picture, "
            f"{row.minutes:.1f} min"
            for row in self.parts.itertuples()
        ]
        return "\n".join(
            [
                f"{self.parameters / 1e6:,.1f} million parameters on {self.device} "
                f"({self.precision})",
                f"download: {self.download:.2f} GB",
                f"memory: {self.memory:.1f} GiB of {self.free:.1f} GiB free",
                f"time: about {self.minutes:.1f} minutes if the model can do all of these "
                "(an estimate: a third to three times as long)",
                *rows,
            ]
        )

    def require_fit(self) -> None:
        """Refuse a model that does not fit.

        Raises
        ------
        DoesNotFitError
            With what would fit.
        """
        if self.fits:
            return
        ways = []
        if self.precision == "float32" and self.device.startswith("cuda"):
            half = self.memory / 2
            fits = "which fits" if half <= self.free else "which does not fit either"
            ways.append(f"BIASLIB_PRECISION=auto would take {half:.1f} GiB, {fits}")
        if importlib.util.find_spec("bitsandbytes"):
            ways.append("weights quantised to 8 bits, wrapped in a class of your own, a quarter")
        ways.append("a smaller model of the family, or a device with more memory, fits")
        raise DoesNotFitError(
            f"the model takes about {self.memory:.1f} GiB and {self.device} has {self.free:.1f} "
            f"GiB free: {'; '.join(ways)}. A smaller batch does not help: the weights alone are "
            "too large"
        )


def plan(
    given: str | Path,
    profile: str | None = None,
    device: str | None = None,
    data: OwnFolder | str | Path | None = None,
    parts: Sequence[str] | None = None,
    speed: float | None = None,
) -> Plan:
    """Return what an audit would take; nothing is downloaded, and no model is loaded.

    Parameters
    ----------
    given, profile, device, data, parts
        As of :func:`audit`.
    speed
        Operations a second of the device; None tries it out.
    """
    chosen, place = runtime.profile(profile), runtime.device(device)
    stimuli, folder = chosen_data(data, chosen)
    weights, stored, download = weights_of(given, chosen)
    parameters = weights / stored
    numbers = _precision(place)
    memory = parameters * BYTES[numbers] * ROOM / GIB + (0 if "cuda" in place else LIBRARIES)
    speed = speed or _speed(place)
    rows = []
    for part in _possible(chosen_parts(parts), given, chosen):
        texts, shown = _items(part, stimuli, folder)
        work = 2 * parameters * (texts * TEXT_TOKENS + shown * (TEXT_TOKENS + PICTURE_TOKENS))
        seconds = work / speed + (texts + shown) * OVERHEAD
        rows.append((part.name, texts, shown, seconds / 60))
    table = pandas.DataFrame(rows, columns=["part", "texts", "pictures", "minutes"])
    free = runtime.free_memory(place) / GIB
    return Plan(parameters, download / 1e9, memory, free, place, numbers, table)


def _possible(parts: Sequence[Part], given: str | Path, profile: str) -> list[Part]:
    """Return the parts that a model of its family can do; all of them if it is still on the hub."""
    if not Path(given).is_dir() and str(given) not in models.REGISTRY:
        return list(parts)
    there = models.REGISTRY[identify(given, profile)[0]].capabilities
    return [part for part in parts if part.needs in there and part.instead not in there]


def weights_of(given: str | Path, profile: str) -> tuple[int, int, int]:
    """Return the bytes of a model's weights, bytes a number, and bytes to download."""
    if Path(given).is_dir():
        files = [*Path(given).glob("*.safetensors"), *Path(given).glob("*.bin")]
        weights = sum(path.stat().st_size for path in files)
        return weights, _stored(Path(given)), 0
    if str(given) in models.REGISTRY:
        entry = models.REGISTRY[str(given)]
        weights = int(entry.parameters) * 4
        return weights, 4, weights if profile == "paper" else 0
    name, _, revision = str(given).partition("@")
    address = repository(models.REGISTRY["open-clip"], name)
    size = listed_bytes(address, revision) if profile == "paper" else 0
    return size, 4, size


def _stored(folder: Path) -> int:
    """Return the bytes of a number of a folder's weights, which its configuration tells."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 4
    return BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or "float32"), 4)


def _precision(device: str) -> str:
    from biaslib.models._batches import precision

    return str(precision(device)).removeprefix("torch.")


def _speed(device: str) -> float:
    """Return operations a second: of a CPU as a product of matrices gives them."""
    if device.startswith("cuda"):
        return ON_CUDA
    matrix = np.ones((512, 512), dtype=np.float32)
    begun = time.perf_counter()
    for _ in range(10):
        matrix @ matrix
    return EFFICIENCY * 10 * 2 * 512**3 / (time.perf_counter() - begun)


def _items(part: Part, profile: str, folder: OwnFolder | None) -> tuple[int, int]:
    """Return texts alone, and texts with a picture, that a part asks for; none without data."""
    if folder is not None and part.pictures == "scenes":
        return 0, 0
    try:
        return COUNTS[part.study](part, profile, folder)
    except Exception:  # data that are not there are named by the audit
        return 0, 0


def _of_tests(part: Part, profile: str, folder: OwnFolder | None) -> tuple[int, int]:
    every = next(iter(grounded.inputs(profile, only_sound=True, n_texts=1).values()))
    n = sum(len(each.rows) for each in every)
    return (0, n) if part.pictures else (n, 0)


def _of_entities(part: Part, profile: str, folder: OwnFolder | None) -> tuple[int, int]:
    per_agent = 2 if part.pictures else 0
    given = masked.inputs(profile, only_sound=True, per_agent=per_agent, pictured=None)
    shown = 0 if given.images is None else len(given.images.rows)
    return len(given.entities) * len(masked.AGENTS), shown * len(masked.AGENTS)


def _of_portraits(part: Part, profile: str, folder: OwnFolder | None) -> tuple[int, int]:
    matching = "matching" in part.name
    few = {"n_per_cell": MATCHED_PER_CELL} if matching else {}
    given = clip_audit.inputs(profile, **few) if folder is None else folder
    words = clip_audit.words()
    captions = len(words[words["bias_type"] == QUOTED] if matching else words) + OF_LISTS
    return (0, len(given.people) * captions) if matching else (captions, len(given.people))


def _of_choices(part: Part, profile: str, folder: OwnFolder | None) -> tuple[int, int]:
    return 0, 7 * len(selection.inputs(profile).table)


COUNTS: dict[str, Callable[[Part, str, Any], tuple[int, int]]] = {
    "ross2021": _of_tests,
    "srinivasan2021": _of_entities,
    "hamidieh2023": _of_portraits,
    "zhou2022": _of_choices,
}
