"""The pieces of BERT of which VL-BERT, ViLBERT and ALBEF are made.

Written out, not taken from transformers: the three networks put them together in orders that its
classes do not offer, and what stands here does not change with its releases. Modules carry the
names of BERT's published files.

Throughout: n rows of a batch, t positions, d numbers a position. GELU is the exact one,
x/2 (1 + erf(x / sqrt 2)). Layers normalise after adding, as the original BERT (Devlin et al. 2019).
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

__all__ = [
    "AddNorm",
    "Attention",
    "AttentionBlock",
    "BertEmbeddings",
    "BertEncoder",
    "BertLayer",
    "FeedForward",
    "LayerShape",
    "Pooler",
    "RegionHead",
    "TextConfig",
    "Transform",
    "WordHead",
    "WordPredictions",
    "additive_mask",
    "attend",
    "initialise",
]

EPS = 1e-12
"""What BERT's layer norms add to the variance."""

HIDDEN_SCORE = -10_000.0
"""What is added to the attention score of a position that is not there."""


@dataclass(frozen=True)
class LayerShape:
    """Sizes of a layer.

    Parameters
    ----------
    hidden_size
        Numbers a position, d.
    num_attention_heads
        Heads, which share the width of the attention equally.
    intermediate_size
        Width between the two linear maps of the feed-forward part.
    dropout
        Share of the numbers that training drops.
    """

    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    dropout: float = 0.0


@dataclass(frozen=True)
class TextConfig(LayerShape):
    """Sizes of a text encoder, as in BERT; the defaults are those of its base size.

    Parameters
    ----------
    vocab_size, max_position_embeddings, type_vocab_size
        Rows of the tables of words, positions and token types.
    num_hidden_layers
        How many layers there are.
    """

    hidden_size: int = 768
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    dropout: float = 0.1
    vocab_size: int = 30_522
    num_hidden_layers: int = 12
    max_position_embeddings: int = 512
    type_vocab_size: int = 2


def additive_mask(real: torch.Tensor) -> torch.Tensor:
    """Return what is added to attention scores: 0 where there is something, else -10,000.

    Parameters
    ----------
    real
        (n, t), true or 1 where there is something.

    Returns
    -------
    torch.Tensor
        (n, 1, 1, t).

    Examples
    --------
    >>> additive_mask(torch.tensor([[True, False]])).flatten().abs().tolist()
    [0.0, 10000.0]
    """
    return ((1 - real.float()) * HIDDEN_SCORE)[:, None, None]


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    heads: int,
    mask: torch.Tensor | None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Return softmax(q k' / sqrt(d / heads) + mask) v, head by head (Vaswani et al. 2017, eq. 1).

    Parameters
    ----------
    query
        (n, t, d).
    key, value
        (n, s, d).
    heads
        How many equal parts d is cut into.
    mask
        (n, 1, 1, s), added to the scores; ``None`` for none.
    dropout
        Share of the weights to drop.

    Returns
    -------
    torch.Tensor
        (n, t, d).

    Examples
    --------
    With equal scores, the mean of the values:

    >>> zeros, values = torch.zeros(1, 2, 4), torch.tensor([[[0.0] * 4, [1.0] * 4]])
    >>> attend(zeros, zeros, values, heads=2, mask=None)[0, 0].tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    query, key, value = (
        states.unflatten(-1, (heads, -1)).transpose(1, 2) for states in (query, key, value)
    )
    if mask is not None:
        mask = mask.to(query.dtype)
    mixed = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
    return mixed.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Queries of the states over keys and values of the same states, or of others.

    Parameters
    ----------
    shape
        Of the layer.
    memory_size
        Width of the other states that are looked at; ``None`` for the layer's own width.
    """

    def __init__(self, shape: LayerShape, memory_size: int | None = None):
        super().__init__()
        width, memory_size = shape.hidden_size, memory_size or shape.hidden_size
        if width % shape.num_attention_heads:
            raise ValueError(
                f"{width} numbers cannot be shared by {shape.num_attention_heads} attention heads; "
                "choose a hidden_size that is a multiple of num_attention_heads"
            )
        self.heads, self.dropout = shape.num_attention_heads, shape.dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(memory_size, width)
        self.value = nn.Linear(memory_size, width)

    def forward(
        self, states: torch.Tensor, mask: torch.Tensor | None, memory: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return (n, t, d); ``memory`` (n, s, m) is what is looked at, ``mask`` says where."""
        memory = states if memory is None else memory
        dropout = self.dropout if self.training else 0.0
        query, key, value = self.query(states), self.key(memory), self.value(memory)
        return attend(query, key, value, self.heads, mask, dropout)


class AddNorm(nn.Module):
    """LayerNorm(linear(states) + residual)."""

    def __init__(self, size_in: int, size_out: int, dropout: float = 0.0):
        super().__init__()
        self.dense = nn.Linear(size_in, size_out)
        self.LayerNorm = nn.LayerNorm(size_out, eps=EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return (n, t, size_out)."""
        return self.LayerNorm(self.dropout(self.dense(states)) + residual)


class AttentionBlock(nn.Module):
    """Attention, then a linear map, the residual and the layer norm."""

    def __init__(self, shape: LayerShape, memory_size: int | None = None):
        super().__init__()
        self.self = Attention(shape, memory_size)
        self.output = AddNorm(shape.hidden_size, shape.hidden_size, shape.dropout)

    def forward(
        self, states: torch.Tensor, mask: torch.Tensor | None, memory: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return (n, t, d); see :meth:`Attention.forward`."""
        return self.output(self.self(states, mask, memory), states)


class FeedForward(nn.Module):
    """A linear map and GELU: the first half of the feed-forward part."""

    def __init__(self, size_in: int, size_out: int):
        super().__init__()
        self.dense = nn.Linear(size_in, size_out)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (n, t, size_out)."""
        return functional.gelu(self.dense(states))


class BertLayer(nn.Module):
    """One layer of BERT; with ``memory_size`` one that also looks at other states in between.

    Parameters
    ----------
    shape
        Of the layer.
    memory_size
        Width of the other states; ``None`` for a layer that looks at nothing else.
    """

    def __init__(self, shape: LayerShape, memory_size: int | None = None):
        super().__init__()
        self.attention = AttentionBlock(shape)
        if memory_size is not None:
            self.crossattention = AttentionBlock(shape, memory_size)
        self.intermediate = FeedForward(shape.hidden_size, shape.intermediate_size)
        self.output = AddNorm(shape.intermediate_size, shape.hidden_size, shape.dropout)
        self.reads_memory = memory_size is not None

    def forward(
        self, states: torch.Tensor, mask: torch.Tensor | None, memory: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return (n, t, d); every position of ``memory`` (n, s, m) is looked at."""
        states = self.attention(states, mask)
        if self.reads_memory:
            states = self.crossattention(states, None, memory)
        return self.output(self.intermediate(states), states)


class BertEncoder(nn.Module):
    """Layers, one after the other; the last ``n_reading`` of them also look at other states.

    Parameters
    ----------
    shape
        Of every layer.
    n_layers
        How many.
    n_reading
        How many of them, counted from the last, look at other states.
    memory_size
        Width of those.
    """

    def __init__(
        self,
        shape: LayerShape,
        n_layers: int,
        n_reading: int = 0,
        memory_size: int | None = None,
    ):
        super().__init__()
        memories = [None] * (n_layers - n_reading) + [memory_size] * n_reading
        self.layer = nn.ModuleList([BertLayer(shape, memory) for memory in memories])

    def forward(
        self,
        states: torch.Tensor,
        mask: torch.Tensor | None,
        memory: torch.Tensor | None = None,
        first: int = 0,
        stop: int | None = None,
    ) -> torch.Tensor:
        """Return the states after the layers ``first`` to ``stop``, that one not included."""
        for layer in self.layer[first:stop]:
            states = layer(states, mask, memory)
        return states


class BertEmbeddings(nn.Module):
    """Word, position and token type, added and normalised."""

    def __init__(self, config: TextConfig):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return (n, t, d) for token numbers (n, t); types are 0 unless given."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        states = (
            self.word_embeddings(input_ids)
            + self.position_embeddings(positions)
            + self.token_type_embeddings(types)
        )
        return self.dropout(self.LayerNorm(states))


class Pooler(nn.Module):
    """The first position through a linear map and ReLU (BERT itself has tanh)."""

    def __init__(self, size_in: int, size_out: int):
        super().__init__()
        self.dense = nn.Linear(size_in, size_out)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (n, size_out) for (n, t, size_in)."""
        return functional.relu(self.dense(states[:, 0]))


class Transform(nn.Module):
    """A linear map, GELU and, unless told otherwise, a layer norm: how BERT's heads begin."""

    def __init__(self, size: int, norm: bool = True):
        super().__init__()
        self.dense = nn.Linear(size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=EPS) if norm else nn.Identity()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., size)."""
        return self.LayerNorm(functional.gelu(self.dense(states)))


class WordHead(nn.Module):
    """Logits of masked words. The last matrix is the table of word embeddings, passed in."""

    def __init__(self, hidden_size: int, vocab_size: int):
        super().__init__()
        self.transform = Transform(hidden_size)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, states: torch.Tensor, words: nn.Embedding) -> torch.Tensor:
        """Return (..., vocabulary) for states (..., d)."""
        return functional.linear(self.transform(states), words.weight, self.bias)


class WordPredictions(nn.Module):
    """Holds a masked-word head under the name that it has in the files."""

    def __init__(self, hidden_size: int, vocab_size: int):
        super().__init__()
        self.predictions = WordHead(hidden_size, vocab_size)


class RegionHead(nn.Module):
    """Logits of the classes of regions."""

    def __init__(self, size: int, classes: int, norm: bool = True):
        super().__init__()
        self.transform = Transform(size, norm)
        self.decoder = nn.Linear(size, classes)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., classes) for states (..., size)."""
        return self.decoder(self.transform(states))


def initialise(module: nn.Module, std: float = 0.02) -> None:
    """Give a module BERT's initial weights: normal with a standard deviation, biases 0.

    Meant for ``network.apply(initialise)``.

    Parameters
    ----------
    module
        Its own weights are drawn, not those of modules in it.
    std
        The standard deviation; tiny networks need one of about 0.1 to learn.
    """
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
