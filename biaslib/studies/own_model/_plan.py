"""What an audit would take, before anything is downloaded or run: minutes, memory, gigabytes."""

import importlib.util
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from biaslib import models, runtime
from biaslib.models._folders import place_of, weight_files
from biaslib.models._registry import repository
from biaslib.models.downloads import kept, listed_bytes, settings_of
from biaslib.models.own import identify
from biaslib.studies.own_model import _counting as counting
from biaslib.studies.own_model._audit import chosen_data, chosen_parts
from biaslib.studies.own_model._counting import Counting, Question
from biaslib.studies.own_model._folder import OwnFolder
from biaslib.studies.own_model._parts import Setting

__all__ = ["DoesNotFitError", "Plan", "plan", "weights_of"]

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
LIBRARIES = 0.7
"""GiB that Python and its libraries take themselves."""

ROOM = 1.25
"""What a model takes beside its weights while it runs, as a factor. Ours."""

TOKENS = {"texts": 16, "pictures": 300, "pairs": 316}
"""Of a caption, of a picture and of both, for the estimate of minutes. Ours."""

OVERHEAD = 2e-3
"""Seconds that an item takes in the smallest model. Ours."""

ON_CUDA = 2e13
"""Operations a second that are reckoned with on a GPU. Ours, until measured."""

EFFICIENCY = 0.3

MINUTES_TOLD = 120
"""Up to here a time is told in minutes, then in hours."""


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
    asked
        What counted, and has a few items of each question.
    read
        By part, and of the checks of whether the model looks: how much is read by question.
    seconds
        That an item of a question takes.
    measured
        Whether they are measured with a few items.
    """

    parameters: float
    download: float
    memory: float
    free: float
    device: str
    precision: str
    asked: Counting
    read: dict[str, Counter[Question]]
    seconds: dict[Question, float]
    measured: bool = False

    @property
    def parts(self) -> pandas.DataFrame:
        """One row a part: *part*; *texts*, *pictures* and *pairs* that are read; *minutes*."""
        rows = [{"part": part, **self._row(read)} for part, read in self.read.items()]
        return pandas.DataFrame(rows, columns=["part", *counting.KINDS, "minutes"])

    def _row(self, read: Counter[Question]) -> dict[str, float]:
        kinds = {
            kind: sum(n for each, n in read.items() if each[0] == kind) for kind in counting.KINDS
        }
        known = (n * self.seconds[each] for each, n in read.items() if each in self.seconds)
        return kinds | {"minutes": sum(known) / 60}

    def timed(self, model: Any) -> "Plan":
        """Return the plan with minutes that are measured: the model is asked for a few items."""
        return replace(self, seconds=counting.seconds(model, self.asked), measured=True)

    @property
    def minutes(self) -> float:
        """Minutes of all parts: measured, or an estimate that may be three times too low or high.

        What is computed of the answers is not in it.
        """
        return float(self.parts["minutes"].sum())

    @property
    def time(self) -> str:
        """The minutes in words."""
        how = "measured with a few items" if self.measured else "an estimate: a third to three"
        how += "" if self.measured else " times as long"
        hours = self.minutes > MINUTES_TOLD
        long = f"{self.minutes / 60:.1f} hours" if hours else f"{self.minutes:.1f} minutes"
        return f"time: about {long} of reading ({how})"

    @property
    def fits(self) -> bool:
        """Whether the device has the memory, as far as it tells."""
        return not self.free or self.memory <= self.free

    def __str__(self) -> str:
        rows = [
            f"  {row.part}: {row.texts:,} texts, {row.pictures:,} pictures, {row.pairs:,} pairs "
            f"of both, {row.minutes:.1f} min"
            for row in self.parts.itertuples()
        ]
        return "\n".join(
            [
                f"{self.parameters / 1e6:,.1f} million parameters on {self.device} "
                f"({self.precision})",
                f"download: {self.download:.2f} GB",
                f"memory: {self.memory:.1f} GiB of {self.free:.1f} GiB free",
                self.time,
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
    """Return what an audit would take; no weights are downloaded, and no model is loaded.

    How many texts and pictures the model would read is counted by running the parts with a model
    that answers at random: exact for one that has answered nothing yet, looks at pictures and knows
    all words.

    Parameters
    ----------
    given, profile, device, data, parts
        As of :func:`audit`.
    speed
        Operations a second of the device; None tries it out.
    """
    chosen, place = runtime.profile(profile), runtime.device(device)
    stimuli, folder = chosen_data(data, chosen)
    given = _on_this_disk(place_of(given), chosen)
    registered, told = _family(given, chosen)
    weights, stored, download = weights_of(given, chosen)
    parameters = weights / (told or stored)
    numbers = _precision(place)
    memory = parameters * BYTES[numbers] * ROOM / GIB + (0 if "cuda" in place else LIBRARIES)
    there = models.REGISTRY[registered].capabilities
    asked = Counting(there)
    wanted = [part for part in chosen_parts(parts) if part.instead not in there]
    read = dict(counting.counts(wanted, registered, asked, Setting(stimuli, folder=folder)))
    speed = speed or _speed(place)
    seconds = {each: 2 * parameters * TOKENS[each[0]] / speed + OVERHEAD for each in asked.read}
    sizes = parameters, download / 1e9, memory, runtime.free_memory(place) / GIB
    return Plan(*sizes, place, numbers, asked, read, seconds)


def _on_this_disk(given: str | Path, profile: str) -> str | Path:
    """Return the folder of a name of the hub that was downloaded before; else what was given."""
    if _is_here(given) or profile == "planted":
        return given
    return kept(*_address(given)) or given


def _is_here(given: str | Path) -> bool:
    """Tell whether what is given is a path or a registered name, and none of the hub."""
    return isinstance(given, Path) or "/" not in given


def _address(given: str | Path) -> tuple[str, str]:
    """Return the repository of the hub that is meant, and its revision, empty if none is named."""
    name, _, revision = str(given).partition("@")
    return repository(models.REGISTRY["open-clip"], name), revision


def _family(given: str | Path, profile: str) -> tuple[str, int]:
    """Return the registered name whose family reads a model, and the bytes of a number of weights.

    These are 0 where no settings were asked the hub for.
    """
    if _is_here(given) or profile == "planted":
        return identify(given, profile)[0], 0
    with tempfile.TemporaryDirectory() as folder:
        settings_of(*_address(given), Path(folder))
        return identify(folder, profile)[0], _stored(Path(folder))


def weights_of(given: str | Path, profile: str) -> tuple[int, int, int]:
    """Return the bytes of a model's weights, bytes a number, and bytes to download."""
    tiny = getattr(runtime.provider(profile), "model", None)
    given = place_of(given)
    if given in models.REGISTRY and tiny:
        given = tiny(given)
    if isinstance(given, Path):
        files = weight_files(given, (given / "open_clip_config.json").is_file())
        weights = sum(path.stat().st_size for path in files)
        return weights, _stored(given), 0
    if given in models.REGISTRY:
        entry = models.REGISTRY[given]
        weights = int(entry.parameters) * 4
        return weights, 4, weights
    size = listed_bytes(*_address(given)) if profile == "paper" else 0
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
