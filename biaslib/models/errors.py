"""The errors of models, in a module that does not import torch."""

from biaslib.errors import InputError

__all__ = ["CapabilityError", "CheckpointError"]


class CapabilityError(InputError):
    """A model that lacks what it was asked for: a method, or the head behind one.

    A study that goes through several models leaves such a model out and names it. Any other error
    of a model is a fault, of the model or of its input, and is not caught.
    """


class CheckpointError(InputError):
    """A checkpoint that is not what the model needs; its text says what is wrong and what to do."""
