"""BERT: text embeddings and the probabilities of masked words, through transformers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers

from biaslib.capabilities import EMBED, FILL, require
from biaslib.checkpoints.entries import Entry
from biaslib.models.masked_words import candidate_log_prob
from biaslib.models.pooling import Pooling
from biaslib.models.reading import read_network
from biaslib.models.text import HEADS, TextEncoder, read_pooled
from biaslib.models.tokens import (
    model_inputs,
    places_of_masks,
    require_known_words,
    with_mask,
    word_pieces,
)
from biaslib.runtime.batches import (
    at,
    autocast,
    gather_log_probabilities,
    on_device,
)

__all__ = ["Bert", "load"]

WORDS = ("cls.*", "lm_head.*", "vocab_*", "predictions.*", "generator_*")
"""Weights of masked-word heads: a file without them embeds, and fills in nothing."""


class Bert(TextEncoder):
    """BERT with its masked-word head: embeds text as :class:`TextEncoder`, and fills in words.

    Parameters
    ----------
    model
        A transformers model for masked words.
    tokenizer, name, revision, device
        As of :class:`TextEncoder`.
    has_words
        Whether the checkpoint had a masked-word head.
    pooling, longest
        As of :class:`TextEncoder`.
    """

    def __init__(
        self,
        model,
        tokenizer,
        name: str,
        revision: str,
        device: str,
        has_words: bool = True,
        pooling: str | Pooling = "cls",
        longest: int | None = None,
    ):
        super().__init__(model.base_model, tokenizer, name, revision, pooling, device, longest)
        self.masked_lm = on_device(model, device, name)
        self.capabilities = frozenset({EMBED, FILL} if has_words else {EMBED})

    def mask_log_prob(
        self,
        texts: Sequence[str],
        candidates: Sequence[str],
        images: None = None,
        batch_size: int | None = None,
        pieces: str = "chain",
        among: str = "vocabulary",
    ) -> np.ndarray:
        """Return log P(word | rest of the text) of candidate words at each text's ``[MASK]``.

        Unless it is to be shared among the candidates, the softmax runs over the whole vocabulary,
        so that the candidates' probabilities need not sum to 1 (Srinivasan and Bisk 2021,
        section 3).

        Parameters
        ----------
        texts
            n texts with one ``[MASK]`` each.
        candidates
            k words, each of one or several word pieces, as they are where the mask stands.
        images
            None: BERT reads text alone.
        batch_size
            Texts a forward pass: 256, or more on a card with the memory for it. It is halved if
            memory does not suffice.
        pieces
            How a word of several pieces is scored, all of them masked together: ``chain``, the sum
            of log P(piece | pieces before it, the rest masked), in as many passes; or ``mean``,
            the mean of log P(piece | all masked), in one pass. The same for words of one piece.
        among
            ``vocabulary``, or ``candidates``: renormalised over the candidates of a text.

        Returns
        -------
        numpy.ndarray
            (n, k), natural logarithms.

        Raises
        ------
        ValueError
            If there are no texts or no candidates, a text has not exactly one ``[MASK]`` or is
            longer than the model takes, or a planted checkpoint does not know a word; the message
            names it.
        CapabilityError
            If the checkpoint has no masked-word head.
        UnknownNameError
            If ``pieces`` or ``among`` is none of those.

        Examples
        --------
        >>> from biaslib.models import load
        >>> bert = load("bert", dose=3, seed=0)
        >>> bert.mask_log_prob(["The woman is carrying a [MASK]."], ["purse", "briefcase"]).shape
        (1, 2)
        """
        if images is not None:
            raise ValueError(f"{self.name} reads text alone; pass images=None")
        require(self, FILL)
        if not len(texts):
            raise ValueError("there are no texts: the set is empty")
        words = word_pieces(self.tokenizer, candidates, texts, self.name)
        masked = [with_mask(text, self.tokenizer) for text in texts]
        require_known_words(self.tokenizer, masked, self.name)
        return candidate_log_prob(
            self.tokenizer(masked, verbose=False)["input_ids"],
            words,
            self.tokenizer.mask_token_id,
            self._log_probabilities,
            pieces=pieces,
            among=among,
            limit=self.limit,
            name=self.name,
            batch_size=self._rows(batch_size),
        )

    def _require_tokens(self, texts: list[str]) -> None:
        super()._require_tokens(texts)
        require_known_words(self.tokenizer, texts, self.name)

    @torch.inference_mode()
    def _log_probabilities(self, _, tokens: list[list[int]], pairs: np.ndarray) -> torch.Tensor:
        """Return the log-softmax over the vocabulary at pairs of a mask and a piece, (q,)."""
        inputs = model_inputs(tokens, self.tokenizer.pad_token_id, self.device)
        with autocast(self.device):
            logits = self.masked_lm(**inputs).logits
        at_masks = at(logits, *places_of_masks(tokens, self.tokenizer.mask_token_id))
        return gather_log_probabilities(at_masks, pairs)


def load(entry: Entry, folder: Path, device: str) -> Bert:
    """Load BERT with its masked-word head from a folder; no remote code is run."""
    reader = transformers.AutoModelForMaskedLM
    model, missing = read_network(reader, folder, entry.name, WORDS, HEADS)
    tokenizer, revision, *pooled = read_pooled(folder, entry)
    return Bert(model, tokenizer, entry.name, revision, device, not missing, *pooled)
