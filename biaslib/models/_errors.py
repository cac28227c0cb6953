"""The error of checkpoints, in a module that does not import torch."""

__all__ = ["CheckpointError"]


class CheckpointError(ValueError):
    """A checkpoint that is not what the model needs; its text says what is wrong and what to do."""
