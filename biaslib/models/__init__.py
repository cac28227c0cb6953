"""Encoders behind one interface. Importing this package does not import torch; loading does."""

from biaslib.models._registry import REGISTRY, Entry, available, identify, load, register
from biaslib.models.errors import CapabilityError, CheckpointError

__all__ = [
    "REGISTRY",
    "CapabilityError",
    "CheckpointError",
    "Entry",
    "available",
    "identify",
    "load",
    "register",
]
