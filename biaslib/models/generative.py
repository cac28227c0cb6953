"""Generative models that read pictures and write text: LLaVA, Qwen-VL, SmolVLM and so on.

One adapter for all that ``AutoModelForImageTextToText`` of transformers loads and that have a chat
template. They have neither a matching head nor masks; what they have is the probability of every
text after a prompt with a picture, and of that :class:`Generative` makes five scores
(:data:`SCORES`), and study 2's cloze. Every text is read with its prompt and picture in one pass.
"""

import copy
import hashlib
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from scipy.special import logsumexp

from biaslib.capabilities import FILL, FILL_WITH_IMAGES, LIKELIHOOD, MATCH
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import LOCAL, revision_of
from biaslib.checkpoints.folders import read_config
from biaslib.errors import CheckpointError, InputError
from biaslib.models.conversation import Answer, Conversation, shared
from biaslib.models.masked_words import AMONG
from biaslib.models.reading import quiet, read_network, require_tokenizer, steady
from biaslib.models.tokens import (
    MASK,
    around_mask,
    listed,
    require_embedded,
    require_fitting,
    require_known_words,
    token_limit,
)
from biaslib.pictures.images import pictures
from biaslib.runtime import progress, unknown_name
from biaslib.runtime.batches import autocast, on_device, precision

__all__ = [
    "PROMPTS",
    "SCORES",
    "Choice",
    "Generative",
    "Likelihoods",
    "Prompts",
    "load",
]

SCORES = {
    "total": "log-likelihood of the caption",
    "mean": "log-likelihood of the caption per token",
    "gain": "log-likelihood of the caption less that without the picture",
    "choice": "log-probability of choosing the caption, over all orders",
    "yes": "log odds of yes, the caption fits",
}
"""What a caption can be scored by, and what it is called."""

OPTIONS, CAPTION = "{options}", "{caption}"
LETTERS = "ABCDEFGH"
MOST_OPTIONS = 4
"""Captions that a choice is asked among at most: of these there are 24 orders."""

GREY = 128
"""The neutral picture is of this grey all over."""

TRIED_SIDE = 224
"""Width and height of the pictures of noise that a network is tried out with."""

TRIED = ("a man and a woman", "a man and a child in the rain")
"""Answers that a network is tried out with, and that begin alike."""

CLOSE, CLOSE_IN_HALF = 1e-3, 0.1
"""How far log-probabilities may be apart that should be the same, in float32 and in half."""


@dataclass(frozen=True)
class Prompts:
    """What a model is told beside a picture.

    Attributes
    ----------
    describe
        Before a caption whose likelihood is asked for.
    choose
        Before a choice; ``{options}`` stands for the captions, each behind its letter.
    judge
        Before yes or no; ``{caption}`` stands for the caption.

    Raises
    ------
    InputError
        If one lacks what stands for its captions: all captions would get one score.
    """

    describe: str = "Describe the picture in one sentence."
    choose: str = "Which caption fits the picture?\n{options}\nAnswer with the letter alone."
    judge: str = 'Does the caption "{caption}" fit the picture? Answer yes or no.'

    def __post_init__(self) -> None:
        for prompt, place in ((self.choose, OPTIONS), (self.judge, CAPTION)):
            if place not in prompt:
                raise InputError(f"the prompt {prompt!r} lacks {place}: write it in", word=place)


PROMPTS = Prompts()
"""What models are told unless another text is given.

:meta hide-value:
"""


@dataclass(frozen=True)
class Likelihoods:
    """How likely texts are.

    Attributes
    ----------
    total
        Natural logarithms of the texts' probabilities, (n, c).
    tokens
        Of how many tokens each is, (n, c).
    """

    total: np.ndarray
    tokens: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Natural logarithm by token, (n, c): minus what transformers calls the loss."""
        return self.total / self.tokens


@dataclass(frozen=True)
class Choice:
    """What a model chooses among captions.

    Attributes
    ----------
    log_p
        Mean over all orders of the natural logarithm of a caption's share among the letters,
        (n, c).
    by_place
        Mean over all orders of the share of each letter, (n, c): 1 / c for a model that pays no
        heed to where a caption stands.
    by_order
        The captions' shares in each order alone, natural logarithms, (n, c!, c).
    """

    log_p: np.ndarray
    by_place: np.ndarray
    by_order: np.ndarray


class Generative:
    """A model that writes text after a prompt with a picture.

    Parameters
    ----------
    network
        Of ``AutoModelForImageTextToText``, a decoder.
    processor, template
        Its processor, with its tokenizer, and its chat template.
    name, revision
        What the stamp says of it; the revision names score and prompts as well, since stored
        answers depend on them.
    device
        Where the network runs.
    prompts
        What it is told.
    score
        One of :data:`SCORES`: what :meth:`match` gives.

    Raises
    ------
    CheckpointError
        If the network gives no likelihood of texts, or ignores pictures: both are tried out; or the
        chat template loses the prompt.
    UnknownNameError
        If there is no such score.
    """

    capabilities = frozenset({LIKELIHOOD, MATCH, FILL, FILL_WITH_IMAGES})

    def __init__(
        self,
        network,
        processor,
        template: str,
        name: str,
        revision: str,
        device: str,
        prompts: Prompts = PROMPTS,
        score: str = "mean",
    ) -> None:
        _require_score(score)
        self.network = on_device(network, device, name)
        self.conversation = Conversation(processor, template, name, prompts.describe)
        self.processor, self.tokenizer = processor, processor.tokenizer
        self.name, self.weights, self.device = name, revision, device
        self.prompts, self.score = prompts, score
        require_embedded(self.tokenizer, network)
        self.limit = token_limit(self.tokenizer, network)
        self._try_out()

    @property
    def revision(self) -> str:
        """The weights, and what else answers depend on."""
        chat = hashlib.sha256(self.rendered(self.prompts.describe, "yes").encode()).hexdigest()
        # transformers makes pictures smaller by Pillow or torchvision, whichever is installed.
        pictures = type(self.processor.image_processor).__name__
        return f"{self.weights}; {self.score}; {self.prompts}; chat {chat[:12]}; {pictures}"

    def scored_by(self, score: str, prompts: Prompts | None = None) -> "Generative":
        """Return the same model with another score, or other prompts.

        Raises
        ------
        UnknownNameError
            If there is no such score.
        """
        _require_score(score)
        other = copy.copy(self)
        other.score, other.prompts = score, prompts or self.prompts
        return other

    def log_likelihood(
        self, images: Any, texts: Sequence[Sequence[str]], without: str = ""
    ) -> Likelihoods:
        r"""Return how likely c texts are after the prompt, each beside its image.

        .. math:: \sum_t \log P(w_t \mid w_{<t}, \text{prompt}, \text{image})

        The prompt is ``prompts.describe`` in the model's chat template; what ends an answer is not
        scored.

        Parameters
        ----------
        images
            n images, as :func:`biaslib.pictures.images.pictures` takes them.
        texts
            n rows of c texts.
        without
            ``"picture"`` leaves the image out of the prompt, ``"content"`` makes it grey all over,
            of the same size: baselines that are not the same.

        Raises
        ------
        ValueError
            If the rows differ in number or length, a text is empty, longer than the model reads,
            or has words that the model does not know.
        """
        if without not in ("", "picture", "content"):
            raise unknown_name("baseline", without, ("picture", "content"))
        seen = pictures(images)
        texts = _rows(texts, len(seen))

        def ask(picture: np.ndarray, row: Sequence[str]) -> list[np.ndarray]:
            grey = np.full_like(picture, GREY)
            beside = {"": picture, "picture": None, "content": grey}[without]
            said = [self._answer(self.prompts.describe, text, beside) for text in row]
            return self._log_probs(beside, said)

        scored = self._each(seen, texts, ask)
        total = np.array([[tokens.sum() for tokens in row] for row in scored])
        return Likelihoods(total, np.array([[len(tokens) for tokens in row] for row in scored]))

    def choose(self, images: Any, texts: Sequence[Sequence[str]]) -> Choice:
        """Return which of c captions the model chooses, asked in all orders of the captions.

        Parameters
        ----------
        images, texts
            As of :meth:`log_likelihood`.

        Raises
        ------
        ValueError
            If there are more captions than :data:`MOST_OPTIONS`, or fewer than two, and as of
            :meth:`log_likelihood`.
        """
        seen = pictures(images)
        texts = _rows(texts, len(seen))
        c = len(texts[0])
        if not 2 <= c <= MOST_OPTIONS:
            raise ValueError(f"a choice is among 2 to {MOST_OPTIONS} captions, and here are {c}")
        orders = np.array(list(itertools.permutations(range(c))))

        def ask(picture: np.ndarray, row: Sequence[str]) -> np.ndarray:
            rows = []
            for order in orders:
                lines = (f"{LETTERS[at]}. {row[which]}" for at, which in enumerate(order))
                prompt = self.prompts.choose.replace(OPTIONS, "\n".join(lines))
                rows += [self._answer(prompt, letter, picture) for letter in LETTERS[:c]]
            return _totals(self._log_probs(picture, rows)).reshape(len(orders), c)

        letters = np.array(self._each(seen, texts, ask))
        letters -= logsumexp(letters, axis=2, keepdims=True)
        places = np.argsort(orders, axis=1)
        of_caption = np.take_along_axis(letters, places[None], axis=2)
        return Choice(of_caption.mean(axis=1), np.exp(letters).mean(axis=1), of_caption)

    def yes_no(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return log P(yes) less log P(no), asked whether each caption fits its image, (n, c).

        Parameters
        ----------
        images, texts
            As of :meth:`log_likelihood`.
        """
        seen = pictures(images)
        texts = _rows(texts, len(seen))

        def ask(picture: np.ndarray, row: Sequence[str]) -> np.ndarray:
            rows = []
            for caption in row:
                prompt = self.prompts.judge.replace(CAPTION, caption)
                rows += [self._answer(prompt, answer, picture) for answer in ("yes", "no")]
            return _totals(self._log_probs(picture, rows)).reshape(-1, 2)

        return np.array([pairs[:, 0] - pairs[:, 1] for pairs in self._each(seen, texts, ask)])

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return how well c captions fit each of n images by the model's ``score``, (n, c).

        Parameters
        ----------
        images, texts
            As of :meth:`log_likelihood`.
        """
        if self.score == "yes":
            return self.yes_no(images, texts)
        if self.score == "choice":
            return self.choose(images, texts).log_p
        likelihoods = self.log_likelihood(images, texts)
        if self.score == "gain":
            alone = self.log_likelihood(images, texts, without="picture")
            return likelihoods.total - alone.total
        return likelihoods.mean if self.score == "mean" else likelihoods.total

    def mask_log_prob(
        self,
        texts: Sequence[str],
        candidates: Sequence[str],
        images: Any = None,
        pieces: str = "chain",
        among: str = "vocabulary",
    ) -> np.ndarray:
        r"""Return how likely words are at each text's ``[MASK]``, by completing the text.

        .. math:: \log P(w, \text{what follows} \mid \text{what stands before}, \text{image})

        A network that writes from left to right has no probability of a word given what follows
        it. Two words at one place, or one word after two beginnings, are compared all the same:
        what follows is the same. The text stands after ``prompts.describe``.

        Parameters
        ----------
        texts
            n texts with one ``[MASK]`` each.
        candidates
            k words.
        images
            n images; None leaves them out of the prompt.
        pieces
            ``chain``: words of several tokens are scored token by token. There is no other way.
        among
            ``vocabulary``, or ``candidates``: of a text, renormalised over these.

        Returns
        -------
        numpy.ndarray
            (n, k), natural logarithms.

        Raises
        ------
        ValueError
            If a text has not exactly one ``[MASK]``, there are no candidates, or words are
            unknown.
        UnknownNameError
            If ``pieces`` or ``among`` is none of those.
        """
        if pieces != "chain":
            raise unknown_name("way of scoring pieces", pieces, ("chain",))
        if among not in AMONG:
            raise unknown_name("among", among, AMONG)
        texts, candidates = listed(texts), listed(candidates)
        if not texts or not candidates:
            raise ValueError("there are no texts or no candidates: the set is empty")
        texts = [text.strip() for text in texts]
        places = {text: len(around_mask(text)[0]) for text in texts}
        seen = None if images is None else pictures(images)
        if seen is not None and len(seen) != len(texts):
            raise ValueError(f"{len(texts)} texts need as many images, and here are {len(seen)}")

        def ask(picture: np.ndarray | None, text: str) -> np.ndarray:
            said = [text.replace(MASK, word) for word in candidates]
            rows = [
                self._answer(self.prompts.describe, each, picture, places[text]) for each in said
            ]
            return _totals(self._log_probs(picture, rows))

        log_p = np.array(self._each(seen, texts, ask))
        return log_p - logsumexp(log_p, axis=1, keepdims=True) if among == AMONG[1] else log_p

    def _each(self, seen: Any, texts: Sequence, ask: Callable) -> list:
        """Ask for every picture with its texts, one after the other."""
        label = f"{self.name}: {len(texts):,} images"
        # One at a time, in this process: photographs are large.
        pairs = zip([None] * len(texts) if seen is None else seen, texts, strict=True)
        pairs = progress(pairs, label, len(texts)) if len(texts) > 1 else pairs
        return [ask(picture, text) for picture, text in pairs]

    def _log_probs(self, picture: np.ndarray | None, answers: list[Answer]) -> list[np.ndarray]:
        r"""Return :math:`\log P(w_t \mid w_{<t}, \text{prompt}, \text{picture})` of all tokens.

        Answers that differ in their last token alone, such as those of one word, are read once.
        """
        read: dict[tuple, torch.Tensor] = {}
        scored = []
        for answer in answers:
            if answer.read not in read:
                read[answer.read] = self._read(picture, answer)
            chosen = torch.tensor(answer.ids[answer.start : answer.end])[:, None]
            chosen = chosen.to(self.device, non_blocking=True)
            scored.append(read[answer.read].gather(-1, chosen)[:, 0])
        together = torch.cat(scored).double().cpu().numpy()  # one wait for all rows of a picture
        return np.split(together, np.cumsum([len(each) for each in scored])[:-1])

    @torch.inference_mode()
    def _read(self, picture: np.ndarray | None, answer: Answer) -> torch.Tensor:
        """Return log-probabilities of what follows what stands before each token of an answer."""
        inputs, start = self.conversation.inputs(answer, picture)
        count = inputs["input_ids"].shape[1]
        require_fitting(
            np.array([count]), self.limit, self.name, [answer.text], "with prompt and picture"
        )
        for module in self.network.modules():
            if hasattr(module, "rope_deltas"):  # how Qwen counted the places of the last picture
                module.rope_deltas = None
        kind, n = next(self.network.parameters()).dtype, count - start + 1
        batch = {
            name: tensor.to(
                self.device, kind if tensor.is_floating_point() else None, non_blocking=True
            )
            for name, tensor in inputs.items()
        }
        if "logits_to_keep" in inspect.signature(self.network.forward).parameters:
            batch["logits_to_keep"] = n
        with autocast(self.device):
            logits = self.network(**batch, use_cache=False).logits
        return logits[0, -n:][: answer.end - answer.start].float().log_softmax(-1)

    def _try_out(self) -> None:
        """Refuse a network that reads ahead, answers at random, or ignores pictures."""
        side = (TRIED_SIDE, TRIED_SIDE, 3)
        one, other = np.random.default_rng(0).integers(0, 256, (2, *side), dtype=np.uint8)
        said = [self.conversation.answer(self.prompts.describe, text) for text in TRIED]
        first, changed = self._log_probs(one, said)
        exact = next(self.network.parameters()).dtype == torch.float32
        near = CLOSE if exact else CLOSE_IN_HALF
        if np.abs(first - self._log_probs(one, said[:1])[0]).max() > near:
            raise CheckpointError(
                f"{self.name} answers one question differently each time: switch off what it draws "
                "at random (dropout, sampling)"
            )
        n = shared(*(each.ids[each.start : each.end] for each in said))
        if np.abs(first[:n] - changed[:n]).max(initial=0) > near:
            raise CheckpointError(
                f"{self.name} reads what comes after a word before it scores the word, so that it "
                "gives no likelihood of a text"
            )
        if np.abs(first - self._log_probs(other, said[:1])[0]).max() < 1e-6:
            raise CheckpointError(
                f"{self.name} says the same whatever the picture: its files do not tell how "
                "pictures reach the text (a token for pictures, their number), or its weights "
                "ignore them"
            )

    # Prompts and texts as tokens

    def rendered(self, prompt: str, answer: str = "") -> str:
        """Return a prompt beside a picture in the model's chat template, or also its answer."""
        return self.conversation.rendered(prompt, answer)

    def _answer(self, prompt: str, text: str, picture: Any, place: int = 0) -> Answer:
        """Return the tokens of an answer, or of what follows a place in it."""
        if not text.strip():
            raise ValueError("a caption is empty, and has no likelihood")
        if self.tokenizer.unk_token_id is not None:
            require_known_words(self.tokenizer, [text], self.name)
        return self.conversation.answer(prompt, text, picture is not None, place)


def _totals(log_probs: list[np.ndarray]) -> np.ndarray:
    return np.array([tokens.sum() for tokens in log_probs])


def _rows(texts: Sequence[Sequence[str]], n: int) -> list[list[str]]:
    """Return n rows of texts, or say what is wrong with them."""
    if isinstance(texts, str) or any(isinstance(row, str) for row in texts):
        raise TypeError("texts are one row of captions an image: a list of lists")
    rows = [list(row) for row in texts]
    if not n or len(rows) != n:
        raise ValueError(f"{len(rows)} rows of captions need as many images, and here are {n}")
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError("every image needs the same number of captions, and one at least")
    return rows


def _require_score(score: str) -> None:
    if score not in SCORES:
        raise unknown_name("score", score, SCORES)


def load(
    entry: Entry, folder: Path, device: str, score: str = "mean", prompts: Prompts | None = None
) -> Generative:
    """Load a generative model from a folder through transformers; no remote code is run.

    Its weights are in half precision where ``BIASLIB_PRECISION`` asks for it.

    Parameters
    ----------
    entry
        Of the registry: what errors and stamps call the model.
    folder
        Its files, as they lie on the hub.
    device
        Where it runs.
    score
        One of :data:`SCORES`: what :meth:`Generative.match` gives.
    prompts
        What it is told; None for :data:`PROMPTS`.

    Raises
    ------
    CheckpointError
        If it is no model that reads pictures and writes text from left to right, has no chat
        template, weights are missing or left over, it needs code of its own, or it is not usable:
        see :class:`Generative`.
    UnknownNameError
        If there is no such score.
    """
    kind = read_config(folder, entry.name).get("model_type", "")
    network, _ = read_network(
        transformers.AutoModelForImageTextToText, folder, entry.name, numbers=precision(device)
    )
    if network.config.get_text_config().is_encoder_decoder:
        raise CheckpointError(
            f"{folder} is a {kind!r} whose text is encoded and decoded apart, and only networks "
            "that write from left to right are scored here"
        )
    require_tokenizer(folder)
    with quiet():
        processor = transformers.AutoProcessor.from_pretrained(folder, **LOCAL)
    processor.tokenizer = steady(processor.tokenizer, folder)
    _count_as(network.config, processor)
    template = processor.chat_template or processor.tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        raise CheckpointError(
            f"{folder} has no chat template, or none called default, which says how a model is "
            "asked: take a model that was tuned for conversations",
            path=folder,
        )
    revision, prompts = revision_of(folder), prompts or PROMPTS
    return Generative(network, processor, template, entry.name, revision, device, prompts, score)


def _count_as(config: Any, processor: Any) -> None:
    """Have LLaVA's processor keep as many places for a picture as the network makes vectors of it.

    Folders saved before version 4.47 of transformers say it in ``config.json`` alone.
    """
    if hasattr(processor, "num_additional_image_tokens"):
        strategy = "vision_feature_select_strategy"
        processor.patch_size = config.vision_config.patch_size
        setattr(processor, strategy, getattr(config, strategy, getattr(processor, strategy)))
        if config.vision_config.model_type == "clip_vision_model":
            processor.num_additional_image_tokens = 1  # its class embedding
