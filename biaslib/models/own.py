"""A model of one's own, with what it was loaded as.

Names of the model hub, names of OpenCLIP with their training data, and folders on this disk.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biaslib.models._folders import place_of
from biaslib.models._registry import REGISTRY, identify, load_identified
from biaslib.models.errors import CheckpointError  # noqa: F401

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


def load_own(given: str | Path, profile: str | None = None, device: str | None = None) -> OwnModel:
    """Load a model by whatever names it; see :func:`identify` for names and errors.

    Examples
    --------
    >>> load_own("all-MiniLM-L6-v2").takes_images
    False
    """
    registered, checkpoint = identify(given, profile)
    model = load_identified(registered, checkpoint, profile, device, checkpoint is not None)
    is_folder = isinstance(checkpoint, Path)
    name = checkpoint.resolve().name if is_folder else str(place_of(given))
    return OwnModel(name, registered, model, checkpoint)
