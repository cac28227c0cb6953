"""Encoders behind one interface. Importing this package does not import torch; loading does."""

from biaslib.models._registry import REGISTRY, Entry, available, load

__all__ = ["REGISTRY", "Entry", "available", "load"]
