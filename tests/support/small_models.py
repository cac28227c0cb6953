"""Models of two layers with random weights, saved as the hub's repositories are."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

WORDS = ["the", "a", "woman", "man", "is", "nurse", "pilot", "old", "tall", "here", "."]
PIECES = ["car", "##ry", "##ing", *"abcdefgh", *(f"##{letter}" for letter in "abcdefgh")]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIALS, *WORDS, *PIECES]

BLOCKS = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.3,
}
SIDE = 64
PATCH = 16


def pictures(n: int = 3, seed: int = 0) -> list[np.ndarray]:
    """Return pictures of noise, each of another shape."""
    rng = np.random.default_rng(seed)
    shapes = [(SIDE, SIDE), (SIDE, 90), (130, SIDE), (80, 80)]
    return [rng.integers(0, 256, (*shapes[i % 4], 3), dtype=np.uint8) for i in range(n)]


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer of word pieces, as BERT's."""
    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    return transformers.BertTokenizer(vocab=numbers, do_lower_case=True)


def random_parameters(network: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Give every parameter random values, also those that are born as zeros or ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim():
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return network.eval()


def random_network(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Return a network with random parameters, the same ones whatever ran before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return random_parameters(build())


def save(folder: Path, network, image_processor, text_tokenizer=None) -> Path:
    """Write a repository: weights, configuration, tokenizer, image processor."""
    network.save_pretrained(folder)
    (text_tokenizer or tokenizer()).save_pretrained(folder)
    image_processor.save_pretrained(folder)
    return folder
