"""Trained networks into folders and back."""

from pathlib import Path

import torch
from transformers import PreTrainedModel


def write_network(network: PreTrainedModel, folder: Path) -> None:
    """Write weights in half precision, and the configuration."""
    network.half().save_pretrained(folder)


def read_network(kind: type[PreTrainedModel], folder: Path) -> PreTrainedModel:
    """Return the network of a kind that lies in a folder, in single precision."""
    return kind.from_pretrained(folder, dtype=torch.float32)
