"""The errors of models, in a module that does not import torch."""

__all__ = ["CapabilityError", "CheckpointError"]


class CapabilityError(ValueError):
    """A model that lacks what it was asked for: a method, or the head behind one.

    A study that goes through several models leaves such a model out and names it. Any other error
    of a model is a fault, of the model or of its input, and is not caught.
    """


class CheckpointError(ValueError):
    """A checkpoint that is not what the model needs; its text says what is wrong and what to do."""
