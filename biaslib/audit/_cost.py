"""What an audit would take: gigabytes and memory before weights are downloaded, minutes after."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from biaslib import capabilities as can
from biaslib import models, runtime
from biaslib.audit._folder import OwnFolder
from biaslib.audit._parts import Part, Setting
from biaslib.audit._run import chosen_data, chosen_parts, least_p_values
from biaslib.audit._tables import reach
from biaslib.checkpoints.downloads import kept, listed_bytes, settings_of
from biaslib.checkpoints.files import weight_files
from biaslib.checkpoints.names import place_of
from biaslib.checkpoints.registry import identify, repository
from biaslib.pictures.images import pictures

__all__ = ["Cost", "DoesNotFitError", "cost"]

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
ROOM = 1.25
"""What a model takes beside its weights while it runs, as a factor. Ours."""

PORTRAITS = {"planted": 300, "paper": 10_954}
"""Those of the planted world, and of FairFace's validation set."""

SCENES = {"planted": 1, "paper": 7}
"""How many images VLStereoSet has for each scene of the planted world, about."""

FEW, CANDIDATES = 8, ["purse", "suit", "apron", "beer", "car", "boat", "dog", "cat"] * 2
"""Items with which a model is timed, and as many words as study 2 compares in a caption, about."""


class DoesNotFitError(ValueError):
    """A model that the device has no memory for; the message says what would fit."""


@dataclass(frozen=True)
class Cost:
    """What an audit would take.

    Attributes
    ----------
    parameters
        Of the model, from the bytes of its files.
    download
        Gigabytes to download; 0 for what is on this disk.
    memory, free
        GiB that the model takes while it runs, and that the device has free (0: unknown).
    device
        Where it runs.
    items
        By part, how many texts, or texts with a picture, the model reads, about.
    least
        Of each question that would be asked, how small its p-value can be.
    untrained
        How many networks with random weights read the same.
    """

    parameters: float
    download: float
    memory: float
    free: float
    device: str
    items: dict[Part, int]
    least: np.ndarray
    untrained: int = 0

    def minutes(self, model: Any) -> float | None:
        """Return coarse minutes of reading, by the time that a few items take; None if unknown.

        They are unknown of a model with a detector, and where a few items fail: the audit says why.
        What is computed of the answers is not in them.
        """
        if getattr(model, "find_detector", None) is not None:
            return None
        seconds = 0.0
        try:
            for capability in {part.needs for part in self.items}:
                _ask(model, capability)  # The first call prepares what the others use, too.
                begun = perf_counter()
                _ask(model, capability)
                taken = (perf_counter() - begun) / FEW
                needs_it = (n for part, n in self.items.items() if part.needs == capability)
                seconds += taken * sum(needs_it)
        except Exception:
            return None
        return seconds / 60 * (1 + self.untrained)

    def __str__(self) -> str:
        reads = ", ".join(f"{part.name}: {n:,} items" for part, n in self.items.items())
        free = f"of {self.free:.1f} GiB free" if self.free else "(what is free is not known)"
        return (
            f"{self.parameters / 1e6:,.1f} million parameters on {self.device}\n"
            f"download: {self.download:.2f} GB\n"
            f"memory: {self.memory:.1f} GiB {free}\n"
            f"questions, at most: {reach(self.least)}\n"
            f"reads, about: {reads}\n"
            f"networks with random weights: {self.untrained or 'none'}; each reads all of it again"
        )

    def require_fit(self, beside: float = 0.0) -> None:
        """Refuse a model that the device has no memory for.

        Parameters
        ----------
        beside
            GiB that other models take at the same time.

        Raises
        ------
        DoesNotFitError
            With what would fit.
        """
        if self.free and self.memory + beside > self.free:
            both = f", that beside it {beside:.1f} GiB," if beside else ""
            raise DoesNotFitError(
                f"the model takes about {self.memory:.1f} GiB{both} and {self.device} has "
                f"{self.free:.1f} GiB free: take a smaller model of the family or a device with "
                "more memory; on a GPU BIASLIB_PRECISION=auto halves what float32 takes. A smaller "
                "batch does not help: the weights alone are too large"
            )


def _ask(model: Any, capability: str) -> None:
    """Ask a model for a few items."""
    texts, masked = ["a photo of a person"] * FEW, ["The person is holding a [MASK]."] * FEW
    gray = pictures(np.full((FEW, 64, 64, 3), 128, np.uint8))
    if capability in (can.EMBED, can.EMBED_WITH_IMAGES):
        model.embed(texts, None if capability == can.EMBED else gray)
    elif capability in (can.FILL, can.FILL_WITH_IMAGES):
        model.mask_log_prob(masked, CANDIDATES, None if capability == can.FILL else gray)
    elif capability == can.ENCODE:
        model.encode_text(texts), model.encode_image(gray)
    else:
        model.match(gray, [[text] for text in texts])


def cost(
    given: str | Path,
    profile: str | None = None,
    device: str | None = None,
    data: OwnFolder | str | Path | None = None,
    parts: Sequence[str] | None = None,
    untrained: int = 0,
) -> Cost:
    """Return what an audit would take; no weights are downloaded, and no model is loaded.

    Bytes are those of the folder's files, or those that the hub lists. :meth:`Cost.minutes` times
    a model that is at hand.

    Parameters
    ----------
    given
        What :func:`biaslib.models.load` takes.
    profile, device, data, parts, untrained
        As of :func:`run`.
    """
    from biaslib.runtime.batches import precision

    profile, device = runtime.profile(profile), runtime.device(device)
    stimuli, folder = chosen_data(data, profile)
    registered, weights, stored, download = _weights(place_of(given), profile)
    able = models.REGISTRY[registered].capabilities
    parameters, number = weights / stored, str(precision(device)).removeprefix("torch.")
    portraits = PORTRAITS[stimuli] if folder is None else len(folder.people)
    of_kind = {"": 1, "portraits": 1, "scenes": SCENES[stimuli] if folder is None else 0}
    items = {
        part: part.items * of_kind[part.pictures] + part.per_portrait * portraits
        for part in chosen_parts(parts)
        if part.needs in able and part.instead not in able and of_kind[part.pictures]
    }
    copies = 2 if untrained and device == "cpu" else 1  # of a card's the other is in main memory
    memory = copies * parameters * BYTES[number] * ROOM / GIB
    free = runtime.free_memory(device) / GIB
    least = least_p_values(list(items), Setting(stimuli, folder=folder))
    return Cost(parameters, download / 1e9, memory, free, device, items, least, untrained)


def _weights(given: str | Path, profile: str) -> tuple[str, int, int, int]:
    """Return the name that reads a model, bytes of weights and of a number, bytes to download."""
    folder: Path | None = given if isinstance(given, Path) else None
    if isinstance(given, str) and "/" in given and profile != "planted":
        name, _, revision = given.partition("@")
        address = repository(models.REGISTRY["open-clip"], name), revision
        folder = kept(*address)
        if folder is None:
            with tempfile.TemporaryDirectory() as settings:
                settings_of(*address, Path(settings))
                size, registered = listed_bytes(*address), identify(settings, profile)[0]
                return registered, size, _stored(Path(settings)), size
    registered, _ = identify(folder or given, profile)
    tiny = getattr(runtime.provider(profile), "model", None)
    folder = folder or (tiny(registered) if tiny else None)
    if folder is None:
        size = 4 * int(models.REGISTRY[registered].parameters)
        return registered, size, 4, size
    files = weight_files(folder, (folder / "open_clip_config.json").is_file())
    return registered, sum(path.stat().st_size for path in files), _stored(folder), 0


def _stored(folder: Path) -> int:
    """Return the bytes of a number of a folder's weights, which its configuration tells."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 4
    return BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or "float32"), 4)
