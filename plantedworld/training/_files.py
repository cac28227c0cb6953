"""Trained networks into folders and back: those of transformers, and those written out here."""

from pathlib import Path

import torch
from transformers import PreTrainedModel

from biaslib.models.networks.files import load_converted, save_converted


def write_network(network: torch.nn.Module, folder: Path) -> None:
    """Write weights in half precision, and the configuration."""
    if isinstance(network, PreTrainedModel):
        network.half().save_pretrained(folder)
    else:
        save_converted(network, folder, torch.float16)


def read_network(kind: type[torch.nn.Module], folder: Path) -> torch.nn.Module:
    """Return the network of a kind that lies in a folder, in single precision."""
    if issubclass(kind, PreTrainedModel):
        return kind.from_pretrained(folder, dtype=torch.float32)
    return load_converted(folder)
