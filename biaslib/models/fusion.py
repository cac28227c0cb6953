"""What all models share that read a text and an image together.

A family says in a few lines how its network is called (:class:`FusionModel`); tokens, masks,
batches and the places to read from are the same for all and are here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from biaslib.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    FILL,
    FILL_WITH_IMAGES,
    MATCH,
    require,
)
from biaslib.errors import CapabilityError
from biaslib.models.masked_words import candidate_log_prob
from biaslib.models.tokens import (
    Tokens,
    listed,
    model_inputs,
    places_of,
    places_of_masks,
    require_embedded,
    require_fitting,
    require_known_words,
    require_level,
    token_limit,
    tokenized,
    with_mask,
    word_pieces,
)
from biaslib.pictures.regions import SharedRegions
from biaslib.pictures.transforms import ImageBatch, different, selected
from biaslib.runtime.batches import (
    at,
    autocast,
    gather_log_probabilities,
    on_device,
    rows_that_fit,
    run_in_batches,
)

__all__ = ["FusionModel", "Mask", "Output"]


@dataclass(frozen=True)
class Mask:
    """What to hide before embedding: Experiment 3 of Ross, Katz and Barbu (2021, section 4).

    Parameters
    ----------
    words
        The test's contextual words. Every whole-word occurrence in a text is hidden, in either
        case: each of its word pieces becomes the mask token.
    persons
        Whether the regions that show a person are hidden, in the way of the family, and with them
        those that the detector gave the name of one of ``words``, as the paper says. In regions
        from elsewhere, whoever made them says which show a person.

    Examples
    --------
    >>> Mask(words=["nurse", "judge"], persons=True)
    Mask(words=['nurse', 'judge'], persons=True)
    """

    words: Sequence[str] = ()
    persons: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.words, str):
            raise TypeError(f"words is one string; pass a list of words: [{self.words!r}]")


class Output(NamedTuple):
    """What a network says of a batch of n texts with images.

    ``text`` are the last hidden states of the text's tokens, (n, tokens, d); ``image`` the first
    one of the visual stream, (n, d), where there are two streams; ``match`` the logit of a match
    less that of none, (n,), where there is a head; ``words`` the head that reads
    masked words off these states, where that is not :meth:`FusionModel.word_logits`.
    """

    text: torch.Tensor
    image: torch.Tensor | None = None
    match: torch.Tensor | None = None
    words: Callable[[torch.Tensor], torch.Tensor] | None = None


class FusionModel(ABC):
    """Texts with images: embeddings, masked words, and how well a caption fits.

    A family has a subclass that says how images are prepared (:meth:`prepare`), what the network
    takes of them (:meth:`visual`), what it makes of them alone (:meth:`encode`), how it is called
    (:meth:`forward`) and what its masked-word head gives (:meth:`word_logits`).

    Parameters
    ----------
    network
        A network of transformers.
    tokenizer
        Its fast tokenizer. ``max_tokens``, how many tokens a text may have, is the tokenizer's
        limit or the network's number of positions, whichever is less.
    name, revision
        What the stamp says of it.
    device
        Where it runs.
    """

    batch_size = 64
    """Texts a forward pass, more on a card with the memory for it; halved where memory does not
    suffice. It changes results by rounding alone."""

    capabilities = frozenset({EMBED, EMBED_WITH_IMAGES, FILL, FILL_WITH_IMAGES, MATCH})
    """What it can do; an adapter takes away what its network, or the weights at hand, cannot."""

    def __init__(self, network: torch.nn.Module, tokenizer, name: str, revision: str, device: str):
        require_embedded(tokenizer, network)
        self.network = on_device(network, device, name)
        self.tokenizer = tokenizer
        self.name, self.revision, self.device = name, revision, device
        self.max_tokens = token_limit(tokenizer, network)
        if self.batch_size > 1:
            self.batch_size = rows_that_fit(device, self.batch_size)

    @abstractmethod
    def prepare(self, images: Any) -> Any:
        """Return images in a form that has a length, and of which rows can be taken.

        ``None`` stands for no image, where the family allows it; a ``ValueError`` says where it
        does not.
        """

    def visual(self, prepared: Any, rows: np.ndarray, mask: Mask | None) -> dict[str, torch.Tensor]:
        """Return what the network takes of some images, on any device.

        Parameters
        ----------
        prepared
            Rows of what :meth:`prepare` returned; ``None`` for no images.
        rows
            (n,), which of them.
        mask
            What to hide.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its network takes")

    def load(
        self, prepared: Any, planned: Sequence[np.ndarray], mask: Mask | None
    ) -> Iterator[ImageBatch]:
        """Yield what the network takes of the images of each batch.

        Parameters
        ----------
        prepared
            What :meth:`prepare` returned; ``None`` for no images.
        planned
            The numbers of the images of each batch, which may repeat.
        mask
            What to hide.
        """
        for batch in planned:
            images = different(batch)
            part = None if prepared is None else prepared[images]
            visual = self.visual(part, np.arange(len(images)), mask)
            yield ImageBatch(images, visual, self.device)

    def encode(self, visual: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return what is made of images before a text is read: once for all texts of an image."""
        return visual

    @abstractmethod
    def forward(self, tokens: dict[str, torch.Tensor], visual: dict[str, torch.Tensor]) -> Output:
        """Run the network on n texts: ``tokens`` holds input_ids and attention_mask, and ``visual``
        the n rows of :meth:`encode` that go with them."""

    def word_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return the masked-word head's logits for states (n, d): (n, vocabulary).

        A family that fills masks has its own; this one answers for the others.
        """
        raise CapabilityError(f"{self.name} has no head that fills masks")

    def embed(
        self,
        texts: Sequence[str],
        images: Any = None,
        level: str = "sentence",
        words: Sequence[str] | None = None,
        mask: Mask | None = None,
    ) -> np.ndarray:
        """Return one embedding a text with its image.

        Following Ross, Katz and Barbu (2021, section 4): at the levels ``word`` and ``sentence``
        the last hidden state of ``[CLS]`` in the text stream, at the level ``contextual`` that of
        the first sub-word of the given word, where it first stands in the text.

        Parameters
        ----------
        texts
            n words or sentences.
        images
            n images, in any form that the family takes; ``None`` for none.
        level
            ``word``, ``sentence`` or ``contextual``.
        words
            For ``contextual``: the n words to look at, each a whole word of its text.
        mask
            What to hide: see :class:`Mask`. A word that is hidden is read at its mask token.

        Returns
        -------
        numpy.ndarray
            (n, d), float32.

        Raises
        ------
        UnknownNameError
            If there is no such level.
        ValueError
            If texts, images and words differ in number, a word is missing from its text, or a text
            is longer than the model reads.
        CapabilityError
            If the model cannot read texts alone, or with images.
        """
        require(self, EMBED if images is None else EMBED_WITH_IMAGES)
        require_level(level)
        rows = [self._hidden(tokens, mask) for tokens in self._tokens(texts)]
        contextual = level == "contextual"
        places = places_of(rows, words) if contextual else np.zeros(len(rows), dtype=int)
        return self._run(
            rows,
            self.prepare(images),
            lambda output, batch: at(output.text, range(len(batch)), places[batch]),
            mask=mask,
        )

    def mask_log_prob(
        self,
        texts: Sequence[str],
        candidates: Sequence[str],
        images: Any = None,
        pieces: str = "chain",
        among: str = "vocabulary",
    ) -> np.ndarray:
        """Return log P(word | rest of the text, image) of candidates at each text's ``[MASK]``.

        Unless it is to be shared among the candidates, the softmax runs over the whole vocabulary
        (Srinivasan and Bisk 2021, section 3).

        Parameters
        ----------
        texts
            n texts with one ``[MASK]`` each.
        candidates
            k words, each of one or several word pieces, as they are where the mask stands.
        images
            n images, or ``None``.
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
            If a text has not exactly one ``[MASK]``, or a candidate is unknown.
        UnknownNameError
            If ``pieces`` or ``among`` is none of those.
        CapabilityError
            If the model has no masked-word head.
        """
        require(self, FILL if images is None else FILL_WITH_IMAGES)
        texts = listed(texts)
        words = word_pieces(self.tokenizer, candidates, texts, self.name)
        rows = self._tokens([with_mask(text, self.tokenizer) for text in texts])
        images_of, load = self._loading(self.prepare(images), np.arange(len(rows)))
        mask = self.tokenizer.mask_token_id

        def log_probabilities(
            batch: np.ndarray, filled: list[list[int]], pairs: np.ndarray, loaded: ImageBatch
        ) -> torch.Tensor:
            def at_masks(output: Output) -> torch.Tensor:
                states = at(output.text, *places_of_masks(filled, mask))
                head = output.words or self.word_logits
                return gather_log_probabilities(head(states), pairs)

            return self._read(filled, loaded, images_of[batch], at_masks)

        return candidate_log_prob(
            [row.ids for row in rows],
            words,
            mask,
            log_probabilities,
            pieces=pieces,
            among=among,
            limit=self.max_tokens,
            name=self.name,
            batch_size=self.batch_size,
            load=load,
        )

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
            If there are no images or not one row of captions for each, the rows differ in length,
            or a caption is longer than the model reads.
        CapabilityError
            If the model has no matching head.
        """
        require(self, MATCH)
        if images is None:
            raise ValueError("matching needs an image for every row of captions")
        texts = [listed(row) for row in listed(texts)]
        n_captions = sorted({len(row) for row in texts})
        if len(n_captions) != 1:
            raise ValueError(f"every image needs the same number of captions, not {n_captions}")
        rows = self._tokens([text for row in texts for text in row])
        of_image = np.repeat(np.arange(len(texts)), n_captions[0])
        logits = self._run(rows, self.prepare(images), lambda output, _: output.match, of_image)
        return logits.reshape(len(texts), -1).astype(np.float64)

    def _run(
        self,
        rows: list[Tokens],
        prepared: Any,
        read: Callable[[Output, np.ndarray], torch.Tensor],
        of_image: np.ndarray | None = None,
        mask: Mask | None = None,
    ) -> np.ndarray:
        """Run the network over texts of like length together; ``read`` picks what is wanted.

        Captions of one image count as long as the longest of them, so that they stay together, and
        a batch ends with the last of an image's captions.
        """
        of_image = np.arange(len(rows)) if of_image is None else of_image
        n_captions = len(rows) // (of_image.max() + 1)
        longest = np.array([len(row.ids) for row in rows]).reshape(-1, n_captions).max(axis=1)
        images_of, load = self._loading(prepared, of_image, mask)

        def run(batch: np.ndarray, loaded: ImageBatch) -> torch.Tensor:
            ids = [rows[i].ids for i in batch]
            return self._read(ids, loaded, images_of[batch], lambda output: read(output, batch))

        size = self.batch_size - self.batch_size % n_captions or self.batch_size
        label = f"{self.name}: {len(rows):,} texts"
        return run_in_batches(longest[of_image], run, size, label, load)

    def _loading(
        self, prepared: Any, of_image: np.ndarray, mask: Mask | None = None
    ) -> tuple[np.ndarray, Callable[[list[np.ndarray]], Iterator[ImageBatch]]]:
        """Return the image of each text, and what yields those of each batch of texts."""
        n = of_image.max() + 1
        if prepared is not None and len(prepared) != n:
            raise ValueError(f"there are {len(prepared)} images for {n} texts; give one for each")
        if isinstance(prepared, SharedRegions):
            prepared, of_image = prepared.whole, prepared.rows[of_image]
        return of_image, lambda planned: self.load(
            prepared, [of_image[batch] for batch in planned], mask
        )

    @torch.inference_mode()
    def _read(
        self,
        ids: Sequence[Sequence[int]],
        loaded: ImageBatch,
        images: np.ndarray,
        read: Callable[[Output], torch.Tensor],
    ) -> torch.Tensor:
        """Run the network on texts with images, and return what ``read`` takes of its output."""
        row_of = {image: row for row, image in enumerate(dict.fromkeys(images.tolist()))}
        rows = [row_of[image] for image in images.tolist()]
        with autocast(self.device):
            visual = self.encode(loaded.of(list(row_of)))
            visual = selected(visual, rows, len(row_of))
            return read(self.forward(self._inputs(ids), visual)).float()

    def _inputs(self, ids: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Return rows of tokens as the network takes them: input_ids and attention_mask."""
        return model_inputs(ids, self.tokenizer.pad_token_id, self.device)

    def _tokens(self, texts: Sequence[str]) -> list[Tokens]:
        texts = listed(texts)
        rows = tokenized(self.tokenizer, texts)
        if unknown := [row.text for row in rows if self.tokenizer.unk_token_id in row.ids]:
            require_known_words(self.tokenizer, unknown, self.name)
        counts = np.array([len(row.ids) for row in rows])
        require_fitting(counts, self.max_tokens, self.name, texts)
        return rows

    def _hidden(self, tokens: Tokens, mask: Mask | None) -> Tokens:
        if mask is None:
            return tokens
        return tokens.hiding(mask.words, self.tokenizer.mask_token_id)
