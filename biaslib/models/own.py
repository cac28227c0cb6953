"""A model of one's own: which registered family reads it, told from its files.

Names of the model hub, names of OpenCLIP with their training data, and folders on this disk.
"""

import difflib
import importlib.util
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biaslib import runtime
from biaslib.models import _checkpoints
from biaslib.models._folders import inspect, place_of
from biaslib.models._limits import require_modest
from biaslib.models._registry import (
    REGISTRY,
    load_identified,
    repository,
    unknown_model,
)
from biaslib.models.errors import CheckpointError

PACKAGES = {"smolvlm": "num2words"}
"""By kind of model: what transformers needs beside its own packages."""

__all__ = ["OwnModel", "identify", "load_own"]


@dataclass(frozen=True)
class OwnModel:
    """A loaded model, and what it was loaded as.

    Attributes
    ----------
    given
        What was asked for; of a folder its name alone.
    registered
        The registered name whose family read it: says what images it takes.
    model
        With that family's capabilities.
    checkpoint
        What :func:`biaslib.models.load` was given; None for a registered model as it is.
    """

    given: str
    registered: str
    model: Any
    checkpoint: str | Path | None = None

    @property
    def takes_images(self) -> bool:
        """Whether the model sees at all."""
        return REGISTRY[self.registered].takes_images


def identify(given: str | Path, profile: str | None = None) -> tuple[str, str | Path | None]:
    """Return the registered name that reads a model, and what to load it from.

    Parameters
    ----------
    given
        A folder, also if a model is registered under its name; a registered name; ``owner/name``,
        ``owner/name@revision`` or the address of a page of the model hub; a name of OpenCLIP with
        its training data, such as ``ViT-B-32/laion2b_s34b_b79k``.
    profile
        ``planted`` never asks the hub; ``None`` takes that of the run.

    Raises
    ------
    CheckpointError
        If it is a path that is not there, or of an architecture that no family reads, or would be
        read as what it is not (:func:`biaslib.models._folders.inspect`); the message says what can
        be done; or if the hub does not have it.
    UnknownNameError
        If it is neither registered, nor there, nor ``owner/name``.
    ValueError
        If the hub would be needed in the profile ``planted``.

    Warns
    -----
    UserWarning
        If a model is registered under the name of the folder.
    ModuleNotFoundError
        If its processor needs a package that is not installed.

    Examples
    --------
    >>> from plantedworld.models.checkpoints import checkpoint
    >>> identify(checkpoint("flava", 3, 0))[0]
    'flava'
    >>> identify("lxmert")
    ('lxmert', None)
    """
    place = place_of(given)
    if not isinstance(place, Path) and place in REGISTRY:
        if runtime.profile(profile) == "paper":
            _require_packages(place)
        return place, None
    if isinstance(place, Path) and place.is_dir():
        if given in REGISTRY:
            warnings.warn(
                f"{given} is a folder here, and is read; a model is registered as {given}, too: "
                "move or rename the folder if that one is meant",
                stacklevel=2,
            )
        with _checkpoints.loading(given, "any model", (ModuleNotFoundError,)):
            return _family_of(place), place
    if isinstance(place, Path):
        raise CheckpointError(
            f"{given} is a file, which does not tell its architecture. Load it as the family that "
            "it is of, biaslib.models.load(name, checkpoint=...), and pass OwnModel(...) with that",
            path=place,
        )
    if runtime.profile(profile) == "planted":
        near = difflib.get_close_matches(str(given), REGISTRY)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(
            f"{given} is no registered name and no folder here, and the profile 'planted' never "
            f"downloads.{meant} For a model of the hub, owner/name, begin the run with "
            "runtime.start('paper'), or on the command line with --profile paper; or pass a folder"
        )
    if "/" not in place:
        raise unknown_model(place)
    return _from_hub(place)


def _from_hub(given: str) -> tuple[str, str]:
    """Download a repository, to see what it is; its files are kept for loading it."""
    from biaslib.models.downloads import fetch

    name, _, revision = given.partition("@")
    entry = REGISTRY["open-clip"]
    source = f"hub {repository(entry, name)}"
    wanted = replace(entry, source=source, revision=revision, sha256="", companion="")
    folder = fetch(wanted)
    with _checkpoints.loading(folder, given, (ModuleNotFoundError,)):
        return _family_of(folder, given), given


def _family_of(folder: Path, name: str = "") -> str:
    """Return the registered name whose family reads a folder, which may have come as a name."""
    require_modest(folder)
    inspect(folder)
    found = _reader_of(folder, name or str(folder))
    inspect(folder, REGISTRY[found])
    return found


def _reader_of(folder: Path, called: str) -> str:
    if (folder / "open_clip_config.json").is_file():
        return "open-clip"
    config = _checkpoints.read_config(folder, "any model")
    kind, architectures = config.get("model_type", "no kind"), _checkpoints.classes_of(config)
    readers = {each: entry.name for entry in reversed(REGISTRY.values()) for each in entry.kinds}
    _require_packages(kind)
    if kind in readers:
        return readers[kind]
    sentences = ("all-MiniLM-L6-v2",) if (folder / "modules.json").is_file() else ()
    for name in (*sentences, *_in_order(architectures)):
        try:
            _checkpoints.require_family(folder, REGISTRY[name])
        except CheckpointError:
            continue
        return name
    if "auto_map" in config:
        raise CheckpointError(
            f"{called} is a checkpoint of {kind!r}, which needs Python code of its own. Code that "
            "comes with weights is never run: take a repository of the same weights for a class "
            "that transformers has, or wrap the model in a class of your own and pass OwnModel(...)"
        )
    raise CheckpointError(
        f"{called} is a checkpoint of {kind!r} ({', '.join(architectures) or 'no architecture'}), "
        f"which no family here reads: {', '.join(sorted(readers))}, dual encoders such as CLIP, "
        "text encoders with masked words, and generative models such as LLaVA. Register its family "
        "(biaslib.models.register), or wrap it in a class with capabilities and the methods that "
        "biaslib.models.capabilities lists for them, and pass OwnModel(...) with an object of it"
    )


def _require_packages(kind: str) -> None:
    """Refuse a model whose processor needs a package that is not installed, before it is sized.

    Raises
    ------
    ModuleNotFoundError
        The message says what to install.
    """
    package = PACKAGES.get(kind)
    if package and importlib.util.find_spec(package) is None:
        raise ModuleNotFoundError(
            f"the processor of {kind} needs the package {package}, which is not installed; install "
            f"it with: pip install {package}",
            name=package,
        )


def _in_order(architectures: list[str]) -> tuple[str, ...]:
    """Return the names whose families read many kinds, those that write first if a model does.

    BLIP's name stands for dual encoders and for generative models alike: its class tells.
    """
    writes = any(each.endswith("ForConditionalGeneration") for each in architectures)
    return ("smolvlm", "clip", "bert") if writes else ("clip", "bert", "smolvlm")


def load_own(given: str | Path, profile: str | None = None, device: str | None = None) -> OwnModel:
    """Load a model by whatever names it; see :func:`identify` for names and errors.

    Examples
    --------
    >>> load_own("all-MiniLM-L6-v2").takes_images
    False
    """
    registered, checkpoint = identify(given, profile)
    given = place_of(given)
    model = load_identified(registered, checkpoint, profile, device)
    named = Path(given).resolve().name if isinstance(checkpoint, Path) else str(given)
    return OwnModel(named, registered, model, checkpoint)
