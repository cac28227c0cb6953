"""The errors of models, in a module that does not import torch."""

from pathlib import Path

from biaslib.errors import InputError

__all__ = ["CapabilityError", "CheckpointError", "refusal"]


class CapabilityError(InputError):
    """A model that lacks what it was asked for: a method, or the head behind one.

    A study that goes through several models leaves such a model out and names it. Any other error
    of a model is a fault, of the model or of its input, and is not caught.
    """


class CheckpointError(InputError):
    """A checkpoint that is not what the model needs; its text says what is wrong and what to do."""


def refusal(path: str | Path, problem: str, word: str | None = None) -> CheckpointError:
    """Return the error about a file or folder, which its text begins with.

    Examples
    --------
    >>> refusal("config.json", "is no plain file: put a file there").path.name
    'config.json'
    """
    return CheckpointError(f"{path} {problem}", path=path, word=word)
