r"""The perfect model: answers about the planted world by exact inference, with no training.

A metric is judged on the perfect model first and on trained checkpoints second, so that a failure
of the metric and a failure of training are told apart. Images are frames of scenes; it reads what
they show (:func:`plantedworld.shown_evidence`) and nothing that is hidden.

Three of the four capabilities are the world's probabilities themselves. The fourth, embeddings for
association tests, has no truth but sign and order: which vectors stand for a word is a choice,
described at :meth:`PerfectModel.embed`.
"""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    ENCODE,
    FILL,
    FILL_WITH_IMAGES,
    MATCH,
)
from biaslib.runtime import unknown_name
from plantedworld import (
    Scenes,
    Truth,
    World,
    blank,
    faces,
    read,
    shown_evidence,
    vocabulary,
    word_indices,
    world,
)
from plantedworld._logs import log_sum_exp
from plantedworld._pictures import frame_of, package_hash

__all__ = ["LOWEST", "PerfectModel", "load"]

LOWEST = -20.0
"""What stands for a pointwise mutual information of minus infinity in :meth:`encode_text`."""

CORPORA = ("captions", "text")
LEVELS = ("word", "sentence", "contextual")


class PerfectModel:
    """A perfect model of one planted world.

    Parameters
    ----------
    world
        The world, from :func:`plantedworld.world`.
    corpus
        ``"captions"``, or ``"text"`` for that of the text corpus, which plays the model
        before its training on images.
    scenes
        Scenes that :meth:`encode_image` shall know; ``None`` for neutral portraits and the white
        picture.
    mislabelled
        Share of wrong labels that :meth:`match` reckons with: the largest logit is
        log((1 - m) / m). With 0, a caption that its picture rules out scores minus infinity.

    Raises
    ------
    UnknownNameError
        If there is no such corpus.

    Examples
    --------
    >>> model = PerfectModel(world(strength=1, seed=0))
    >>> women, men = model.mask_log_prob(["[MASK] is a nurse."], ["she", "he"])[0]
    >>> bool(women > men)
    True
    """

    name = "oracle"
    code = package_hash()
    capabilities = frozenset({EMBED, EMBED_WITH_IMAGES, FILL, FILL_WITH_IMAGES, ENCODE, MATCH})

    def __init__(
        self,
        world: World,
        corpus: str = "captions",
        scenes: pandas.DataFrame | None = None,
        mislabelled: float = 0.01,
    ) -> None:
        if corpus not in CORPORA:
            raise unknown_name("corpus", corpus, CORPORA)
        self.world, self.corpus, self.mislabelled = world, corpus, mislabelled
        known = _default_scenes() if scenes is None else scenes
        self._known = known.loc[~shown_evidence(known).duplicated()]

    @property
    def revision(self) -> str:
        """What the stamp says of it: the world's settings."""
        made = self.world
        return (
            f"planted world: dose {made.dose:g}, seed {made.seed}, planted in {made.planted_in}, "
            f"wrong gender {made.wrong_gender:g}, corpus {self.corpus}"
        )

    @property
    def truth(self) -> Truth:
        """The probabilities that it answers from."""
        return self.world.truth if self.corpus == "captions" else self.world.text_truth

    def embed(
        self,
        texts: Sequence[str],
        images: Scenes | pandas.DataFrame | None = None,
        level: str = "sentence",
        words: Sequence[str] | None = None,
    ) -> np.ndarray:
        r"""Return one embedding a text, alone or with an image.

        The first 20 coordinates are those of correspondence analysis, one for each cell z (gender
        in the picture, gender in the caption, tone); the others say which word it is:

        .. math:: v_z = \sqrt{P(z)} \left( \frac{P(z \mid \text{text, image})}{P(z)} - 1 \right),
                  \qquad v_w = [w \text{ is the word}]

        For two different words the inner product is
        :math:`\sum_z P(z \mid w) P(z \mid a) / P(z) - 1`, the lift of the pair less 1: how much
        more often than by chance two captions, one about each word, are about the same cell. So
        it has the sign of their pointwise mutual information, grows with it, and is 0 where
        nothing is planted. Cosines divide by the vectors' lengths, and the coordinate of the
        word, of length 1, sees to it that a word without association has a direction too.

        Text and image are taken as two independent witnesses of one cell: what a text leaves open
        about its own picture does not matter, and a picture that rules out its caption has an
        embedding too.

        .. math:: P(z \mid \text{text, image})
                  \propto P(z \mid \text{text}) \, P(z \mid \text{image}) / P(z)

        Parameters
        ----------
        texts
            n words of the world, or n captions in its grammar.
        images
            A frame of n scenes, or None.
        level
            ``"word"``, ``"sentence"`` or ``"contextual"``. A sentence's second part is shared
            among its words; at ``contextual`` it is that of the given word alone.
        words
            For ``contextual``: the n words to look at.

        Returns
        -------
        numpy.ndarray
            (n, 20 + number of words in the world).

        Raises
        ------
        UnknownNameError
            If there is no such level, or a word is not in the world.
        ValueError
            If a text is not in the grammar or has a masked word, or texts, images and words
            differ in number.
        """
        if level not in LEVELS:
            raise unknown_name("level", level, LEVELS)
        texts = _listed(texts)
        carried = _words_carried(texts, level, words)
        log_cells = self.truth.design.log_cells
        log_posterior = self._log_cells(texts, level)
        if images is not None:
            _require_rows("images", len(images), len(texts))
            log_posterior = (
                log_posterior + self.truth.log_cells_of_images(frame_of(images)) - log_cells
            )
            log_posterior -= log_sum_exp(log_posterior, axis=1, keepdims=True)
        cells = np.exp(log_posterior - log_cells / 2) - np.exp(log_cells / 2)
        return np.hstack([cells, _identities(carried)])

    def encode_text(self, texts: Sequence[str]) -> np.ndarray:
        """Return the pointwise mutual information of captions with all that pictures can show.

        One coordinate for each distinct piece of evidence among the scenes that the model knows,
        in nats; :data:`LOWEST` where the picture rules the caption out. The
        product with :meth:`encode_image` is :meth:`plantedworld.Truth.similarity`, exactly. No
        factorisation of fewer dimensions has that: the logarithm of a sum over cells is not
        bilinear.

        Parameters
        ----------
        texts
            n captions in the world's grammar.

        Returns
        -------
        numpy.ndarray
            (n, number of known pieces of evidence).

        Raises
        ------
        ValueError
            If a text is not in the grammar.

        Examples
        --------
        >>> from plantedworld import faces
        >>> model, scenes = PerfectModel(world(1, 0)), faces(3, np.random.default_rng(0))
        >>> (model.encode_text(["a photo of a nurse"]) @ model.encode_image(scenes).T).shape
        (1, 30)
        """
        return np.maximum(self.truth.similarity(_listed(texts), self._known), LOWEST)

    def encode_image(self, images: Scenes | pandas.DataFrame) -> np.ndarray:
        """Return which piece of evidence each scene shows: rows with a single 1.

        All rows have length 1, so that cosines order the images as the products do, and C-ASC,
        which does not depend on the scale of a word's similarities, is the same for both.

        Parameters
        ----------
        images
            A frame of n scenes, all of which the model knows.

        Returns
        -------
        numpy.ndarray
            (n, number of known pieces of evidence).

        Raises
        ------
        ValueError
            If the model does not know a scene.
        """
        known = pandas.MultiIndex.from_frame(shown_evidence(self._known))
        rows = known.get_indexer(pandas.MultiIndex.from_frame(shown_evidence(frame_of(images))))
        if (rows < 0).any():
            raise ValueError(
                f"image {np.flatnonzero(rows < 0)[0]} shows what this model does not know; "
                "encode texts and images with PerfectModel(world, scenes=images)"
            )
        return np.eye(len(known))[rows]

    def mask_log_prob(
        self,
        texts: Sequence[str],
        candidates: Sequence[str],
        images: Scenes | pandas.DataFrame | None = None,
    ) -> np.ndarray:
        """Return log P(candidate | rest of the caption, image), (n, k).

        See :meth:`plantedworld.Truth.mask_log_prob`: the posterior over all words of the world.

        Raises
        ------
        ValueError, UnknownNameError
            As there; and if texts and images differ in number.
        """
        texts = _listed(texts)
        if images is not None:
            _require_rows("images", len(images), len(texts))
        return self.truth.mask_log_prob(texts, _listed(candidates), frame_of(images))

    def match(
        self, images: Scenes | pandas.DataFrame, texts: Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Return the log-odds that each caption belongs to its image, (n, c).

        See :meth:`plantedworld.Truth.match` for the negatives.

        Raises
        ------
        ValueError
            If a text is not in the grammar, or texts and images differ in number.
        """
        texts = [_listed(row) for row in _listed(texts)]
        _require_rows("rows of texts", len(texts), len(images))
        return self.truth.match(frame_of(images), texts, mislabelled=self.mislabelled)

    def _log_cells(self, texts: list[str], level: str) -> np.ndarray:
        """Log P(cell | text), (n, 20)."""
        if level != "word":
            return self.truth.log_cells_of_captions(texts)
        joint = self.truth.log_words[word_indices(texts)] + self.truth.design.log_cells
        return joint - log_sum_exp(joint, axis=1, keepdims=True)


def load(
    dose: float = 1.0,
    seed: int = 0,
    planted_in: str = "both",
    wrong_gender: float = 0.1,
    corpus: str = "captions",
    mislabelled: float = 0.01,
) -> PerfectModel:
    """Return a world's perfect model: see :func:`plantedworld.world` and :class:`PerfectModel`.

    Examples
    --------
    >>> load(dose=3, seed=1).revision
    'planted world: dose 3, seed 1, planted in both, wrong gender 0.1, corpus captions'
    """
    made = world(dose, seed, planted_in, wrong_gender)
    return PerfectModel(made, corpus, mislabelled=mislabelled)


def _default_scenes() -> pandas.DataFrame:
    """Return portraits of every gender, tone and age, with and without their gender; white."""
    shown = faces(3, np.random.default_rng(0))
    return pandas.concat([shown, shown.assign(gender_shown=False), blank()], ignore_index=True)


def _listed(texts: Sequence) -> list:
    if isinstance(texts, str):
        raise TypeError(f"texts is one string; pass a list of texts: [{texts!r}]")
    return list(texts)


def _require_rows(name: str, count: int, expected: int) -> None:
    if count != expected:
        raise ValueError(f"there are {count} {name} for {expected}; give one for each")


def _words_carried(texts: list[str], level: str, words: Sequence[str] | None) -> list[list[str]]:
    """Return the words that each text is known by."""
    if level == "word":
        return [[text] for text in texts]
    if level == "sentence":
        return [_words_of(text) for text in texts]
    if words is None or len(words) != len(texts):
        raise ValueError("the contextual level needs the word to look at for every text")
    for text, word in zip(texts, words, strict=True):
        if word.lower() not in _words_of(text):
            raise ValueError(f"{word!r} is not one of the words of {text!r}: {_words_of(text)}")
    return [[word] for word in words]


def _words_of(text: str) -> list[str]:
    words = [word for reading in read(text) for word in (reading.content, reading.agent)]
    if None in words:
        raise ValueError(f"{text!r} has a masked word; embeddings are of whole captions")
    return [word for word in dict.fromkeys(words) if word]


def _identities(carried: list[list[str]]) -> np.ndarray:
    """Return which words each text is known by: rows of length 1, (n, words in the world)."""
    rows = np.zeros((len(carried), len(vocabulary())))
    for row, words in zip(rows, carried, strict=True):
        row[word_indices(words)] = 1 / np.sqrt(len(words))
    return rows
