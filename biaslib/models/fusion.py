"""What all models share that read a text and an image together.

A family says in a few lines how its network is called (:class:`FusionModel`); tokens, masks,
batches and the places to read from are the same for all and are here.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from biaslib.models._batches import run_in_batches
from biaslib.models._words import require_fitting_length, require_known_words, single_tokens
from biaslib.models.bert import MASK
from biaslib.models.text import LEVELS
from biaslib.runtime import unknown_name

__all__ = ["FusionModel", "Mask", "Output"]

STREAMS = ("text", "both")


@dataclass(frozen=True)
class Mask:
    """What to hide before embedding: Experiment 3 of Ross, Katz and Barbu (2021, section 4).

    Parameters
    ----------
    words
        The test's contextual words. Every whole-word occurrence in a text is hidden: each of its
        word pieces becomes the mask token.
    persons
        Whether the regions that show a person are hidden, in the way of the family.
    as_released
        Hide as the authors' released code does: only the first occurrence of the longest matching
        word, all of its pieces together as one mask token.
    """

    words: Sequence[str] = ()
    persons: bool = False
    as_released: bool = False


class Output(NamedTuple):
    """What a network says of a batch of n texts with images.

    ``text`` are the last hidden states of the text's tokens, (n, tokens, d); ``image`` the first
    one of the visual stream, (n, d), where there is one; ``match`` the logit, matching less not
    matching, (n,), where there is a head.
    """

    text: torch.Tensor
    image: torch.Tensor | None = None
    match: torch.Tensor | None = None


class FusionModel(ABC):
    """Texts with images: embeddings, masked words, and how well a caption fits.

    A family has a subclass that says how images are prepared (:meth:`prepare`), what the network
    takes of them (:meth:`visual`), how it is called (:meth:`forward`) and what its masked-word
    head gives (:meth:`word_logits`).

    Parameters
    ----------
    network
        A torch module.
    tokenizer
        Its fast tokenizer.
    name, revision
        What the stamp says of it.
    device
        Where it runs.
    """

    max_tokens = 512
    """Tokens that the model reads at most, special ones included."""

    batch_size = 64
    """Texts a forward pass; halved where memory does not suffice."""

    has_two_streams = False

    def __init__(self, network: torch.nn.Module, tokenizer, name: str, revision: str, device: str):
        self.network = network.to(device).eval()
        self.tokenizer = tokenizer
        self.name, self.revision, self.device = name, revision, device

    @abstractmethod
    def prepare(self, images: Any) -> Any:
        """Return images in a form that has a length and that :meth:`visual` takes rows of.

        ``None`` stands for no image, where the family allows it; a ``ValueError`` says where it
        does not.
        """

    @abstractmethod
    def visual(self, prepared: Any, rows: np.ndarray, mask: Mask | None) -> dict[str, torch.Tensor]:
        """Return what the network takes of the given images; none of them where ``None``."""

    @abstractmethod
    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on a batch: ``tokens`` holds input_ids and attention_mask."""

    @abstractmethod
    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary)."""

    def embed(
        self,
        texts: Sequence[str],
        images: Any = None,
        level: str = "sentence",
        words: Sequence[str] | None = None,
        mask: Mask | None = None,
        stream: str = "text",
    ) -> np.ndarray:
        """Return one embedding a text with its image.

        Following Ross, Katz and Barbu (2021, section 4): at the levels ``word`` and ``sentence``
        the last hidden state of ``[CLS]`` in the text stream, at the level ``contextual`` that of
        the first sub-word of the given word.

        Parameters
        ----------
        texts
            n words or sentences.
        images
            n images, in any form of the package's; ``None`` for none.
        level
            ``word``, ``sentence`` or ``contextual``.
        words
            For ``contextual``: the n words to look at, each a whole word of its text.
        mask
            What to hide: see :class:`Mask`.
        stream
            ``text``, as the paper says; ``both`` joins the first state of the visual stream to
            it, as the released code does for models of two streams.

        Returns
        -------
        numpy.ndarray
            (n, d), float32; (n, d text + d visual) for both streams.

        Raises
        ------
        UnknownNameError
            If there is no such level or stream.
        ValueError
            If texts, images and words differ in number, a word is missing from its text, a text is
            longer than the model reads, or the model has one stream only and both are asked for.
        """
        texts = _listed(texts)
        self._require_level(level, stream)
        rows, places = self._token_rows(texts, words if level == "contextual" else None, level)
        if mask is not None:
            hidden = [self._hide(text, ids, mask) for text, ids in zip(texts, rows, strict=True)]
            places = np.array(
                [kept[place] for (_, kept), place in zip(hidden, places, strict=True)]
            )
            rows = [ids for ids, _ in hidden]
        prepared = self._prepared(images, len(texts))

        def read(output: Output, batch: np.ndarray) -> torch.Tensor:
            states = output.text[torch.arange(len(batch)), torch.as_tensor(places[batch])]
            return states if stream == "text" else torch.cat([states, output.image], dim=1)

        return self._run(rows, prepared, np.arange(len(texts)), read, mask).astype(np.float32)

    def mask_log_prob(
        self, texts: Sequence[str], candidates: Sequence[str], images: Any = None
    ) -> np.ndarray:
        """Return log P(word | rest of the text, image) of candidates at each text's ``[MASK]``.

        The softmax runs over the whole vocabulary (Srinivasan and Bisk 2021, section 3).

        Parameters
        ----------
        texts
            n texts with one ``[MASK]`` each.
        candidates
            k words that are one token each.
        images
            n images, or ``None``.

        Returns
        -------
        numpy.ndarray
            (n, k), natural logarithms.

        Raises
        ------
        ValueError
            If a text has not exactly one ``[MASK]``, or a candidate is unknown or splits.
        """
        columns = single_tokens(self.tokenizer, candidates)
        masked = [self._with_mask(text) for text in _listed(texts)]
        rows, _ = self._token_rows(masked, None, "sentence")
        places = np.array([ids.index(self.tokenizer.mask_token_id) for ids in rows])

        def read(output: Output, batch: np.ndarray) -> torch.Tensor:
            states = output.text[torch.arange(len(batch)), torch.as_tensor(places[batch])]
            return self.word_logits(states).float().log_softmax(-1)[:, columns]

        prepared = self._prepared(images, len(masked))
        return self._run(rows, prepared, np.arange(len(masked)), read).astype(np.float64)

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return how well c captions fit each of n images: logit of a match less that of none.

        Parameters
        ----------
        images
            n images.
        texts
            n rows of c captions.

        Returns
        -------
        numpy.ndarray
            (n, c).

        Raises
        ------
        ValueError
            If there is not one row of captions for each image, the rows differ in length, or a
            caption is longer than the model reads.
        """
        texts = [_listed(row) for row in _listed(texts)]
        counts = {len(row) for row in texts}
        if len(counts) != 1:
            raise ValueError(f"every image needs the same number of captions, not {sorted(counts)}")
        rows, _ = self._token_rows([text for row in texts for text in row], None, "sentence")
        prepared = self._prepared(images, len(texts))
        of_image = np.repeat(np.arange(len(texts)), counts.pop())
        logits = self._run(rows, prepared, of_image, lambda output, _: output.match)
        return logits.reshape(len(texts), -1).astype(np.float64)

    def _run(
        self,
        rows: list[list[int]],
        prepared: Any,
        of_image: np.ndarray,
        read: Callable[[Output, np.ndarray], torch.Tensor],
        mask: Mask | None = None,
    ) -> np.ndarray:
        """Run the network over texts of like length together; ``read`` picks what is wanted."""

        @torch.inference_mode()
        def run(batch: np.ndarray) -> np.ndarray:
            tokens = self.tokenizer.pad(
                {"input_ids": [rows[i] for i in batch]}, return_tensors="pt"
            )
            visual = self.visual(prepared, of_image[batch], mask)
            output = self.forward(dict(tokens.to(self.device)), visual)
            return read(output, batch).float().cpu().numpy()

        lengths = [len(ids) for ids in rows]
        return run_in_batches(lengths, run, self.batch_size, f"{self.name}: {len(rows):,} texts")

    def _prepared(self, images: Any, n: int) -> Any:
        prepared = self.prepare(images)
        if prepared is not None and len(prepared) != n:
            raise ValueError(f"there are {len(prepared)} images for {n} texts; give one for each")
        return prepared

    def _token_rows(self, texts: list[str], words: Sequence[str] | None, level: str):
        """Return each text's tokens, and the place to read: that of ``[CLS]`` or of its word."""
        if not texts:
            raise ValueError("there are no texts to encode: the set is empty")
        require_known_words(self.tokenizer, texts)
        require_fitting_length(self.tokenizer, texts, self.max_tokens, self.name)
        encoded = self.tokenizer(texts, return_offsets_mapping=True)
        rows = encoded["input_ids"]
        if level != "contextual":
            return rows, np.zeros(len(rows), dtype=int)
        if words is None or len(words) != len(texts):
            raise ValueError("the contextual level needs the word to look at for every text")
        triples = zip(texts, words, encoded["offset_mapping"], strict=True)
        return rows, np.array([_place_of(text, word, offsets) for text, word, offsets in triples])

    def _hide(self, text: str, ids: list[int], mask: Mask) -> tuple[list[int], list[int]]:
        """Return the tokens with words hidden, and the new place of every old token."""
        offsets = self.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        spans = _spans(text, mask.words)
        if mask.as_released:
            spans = [
                span for span in spans if span == max(spans, key=lambda s: (s[1] - s[0], -s[0]))
            ]
        hidden, places = [], []
        previous = None
        for number, (low, high) in zip(ids, offsets, strict=True):
            span = next((s for s in spans if s[0] < high and low < s[1]), None)
            if span is None or not mask.as_released or span != previous:
                hidden.append(number if span is None else self.tokenizer.mask_token_id)
            places.append(len(hidden) - 1)
            previous = span
        return hidden, places

    def _with_mask(self, text: str) -> str:
        if text.count(MASK) != 1:
            raise ValueError(f"{text!r} should have one {MASK}, and no more")
        return text.replace(MASK, self.tokenizer.mask_token)

    def _require_level(self, level: str, stream: str) -> None:
        if level not in LEVELS:
            raise unknown_name("level", level, LEVELS)
        if stream not in STREAMS:
            raise unknown_name("stream", stream, STREAMS)
        if stream == "both" and not self.has_two_streams:
            raise ValueError(f"{self.name} has one stream; use stream='text'")


def _listed(texts: Sequence) -> list:
    if isinstance(texts, str):
        raise TypeError(f"texts is one string; pass a list of texts: [{texts!r}]")
    return list(texts)


def _spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where the words stand in a text, as whole words in either case, longest first."""
    if not words:
        return []
    longest_first = sorted(words, key=len, reverse=True)
    pattern = "|".join(re.escape(word) for word in longest_first)
    return [found.span() for found in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.I)]


def _place_of(text: str, word: str, offsets: list[tuple[int, int]]) -> int:
    """Return the index of the first token of a word."""
    found = _spans(text, [word])
    if not found:
        raise ValueError(f"the word {word!r} is not a whole word of the text {text!r}")
    return next(i for i, (low, high) in enumerate(offsets) if low <= found[0][0] < high)
