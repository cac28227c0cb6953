"""Encoders behind one interface. Importing this package does not import torch; loading does."""

from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.registry import REGISTRY, available, identify, load, register
from biaslib.errors import CapabilityError, CheckpointError

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
