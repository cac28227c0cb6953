"""Generative models that read pictures and write text: LLaVA, Qwen-VL, SmolVLM and so on.

One adapter for all that ``AutoModelForImageTextToText`` of transformers loads and that have a chat
template. They have neither a matching head nor masks; what they have is the probability of every
text after a prompt with a picture, and of that :class:`Generative` makes five scores
(:data:`SCORES`), and study 2's cloze. Every text is read with its prompt and picture in one pass.
"""

import copy
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from PIL import Image
from scipy.special import logsumexp

from biaslib.capabilities import FILL, FILL_WITH_IMAGES, LIKELIHOOD, MATCH
from biaslib.checkpoints.entries import Entry
from biaslib.checkpoints.files import LOCAL, revision_of
from biaslib.checkpoints.folders import read_config
from biaslib.errors import CheckpointError
from biaslib.models.masked_words import AMONG
from biaslib.models.reading import quiet, read_network, require_tokenizer
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

LETTERS = "ABCDEFGH"
MOST_OPTIONS = 4
"""Captions that a choice is asked among at most: of these there are 24 orders."""

GREY = 128
"""The neutral picture is of this grey all over."""

TRIED_SIDE = 224
"""Width and height of the pictures of noise that a network is tried out with."""

CLOSE, CLOSE_IN_HALF = 1e-3, 0.1
"""How far log-probabilities may be apart that should be the same, in float32 and in half."""

Inputs = Mapping[str, torch.Tensor]
"""What a network takes of one prompt with its picture: ``input_ids`` (1, tokens), and so on."""


class Row(NamedTuple):
    """A prompt, and the numbers of the tokens that are to be scored after it."""

    inputs: Inputs
    answer: list[int]

    @property
    def prompt(self) -> list[int]:
        """Numbers of the prompt's tokens."""
        return self.inputs["input_ids"][0].tolist()


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
    """

    describe: str = "Describe the picture in one sentence."
    choose: str = "Which caption fits the picture?\n{options}\nAnswer with the letter alone."
    judge: str = 'Does the caption "{caption}" fit the picture? Answer yes or no.'


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
    processor
        Its processor, with tokenizer and chat template.
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
        name: str,
        revision: str,
        device: str,
        prompts: Prompts = PROMPTS,
        score: str = "mean",
    ) -> None:
        _require_score(score)
        self.network = on_device(network, device, name)
        self.processor, self.tokenizer = processor, processor.tokenizer
        self.name, self.weights, self.device = name, revision, device
        self.prompts, self.score = prompts, score
        require_embedded(self.tokenizer, network)
        self.limit = token_limit(self.tokenizer, network)
        self.gap = self._gap()
        self._try_out()

    @property
    def revision(self) -> str:
        """The weights, and what else answers depend on."""
        return f"{self.weights}; {self.score}; {self.prompts}"

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
            inputs = self._inputs(beside, self.prompts.describe)
            return self._log_probs([self._row(inputs, text) for text in row])

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
                prompt = self.prompts.choose.format(options="\n".join(lines))
                inputs = self._inputs(picture, prompt)
                rows += [self._row(inputs, letter) for letter in LETTERS[:c]]
            return _totals(self._log_probs(rows)).reshape(len(orders), c)

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
                inputs = self._inputs(picture, self.prompts.judge.format(caption=caption))
                rows += [self._row(inputs, answer) for answer in ("yes", "no")]
            return _totals(self._log_probs(rows)).reshape(-1, 2)

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
        begun = {text: len(around_mask(text)[0]) for text in texts}
        seen = None if images is None else pictures(images)
        if seen is not None and len(seen) != len(texts):
            raise ValueError(f"{len(texts)} texts need as many images, and here are {len(seen)}")

        def ask(picture: np.ndarray | None, text: str) -> np.ndarray:
            inputs = self._inputs(picture, self.prompts.describe)
            rows, starts = [], []
            for word in candidates:
                row, start = self._row_from(inputs, text.replace(MASK, word), begun[text])
                rows.append(row)
                starts.append(start)
            scored = self._log_probs(rows)
            return np.array([tokens[at:].sum() for tokens, at in zip(scored, starts, strict=True)])

        log_p = np.array(self._each(seen, texts, ask))
        return log_p - logsumexp(log_p, axis=1, keepdims=True) if among == AMONG[1] else log_p

    def _each(self, seen: Any, texts: Sequence, ask: Callable) -> list:
        """Ask for every picture with its texts, one after the other."""
        label = f"{self.name}: {len(texts):,} images"
        # One at a time, in this process: photographs are large.
        pairs = zip([None] * len(texts) if seen is None else seen, texts, strict=True)
        pairs = progress(pairs, label, len(texts)) if len(texts) > 1 else pairs
        return [ask(picture, text) for picture, text in pairs]

    @torch.inference_mode()
    def _log_probs(self, rows: list[Row]) -> list[np.ndarray]:
        r"""Return :math:`\log P(w_t \mid w_{<t}, \text{prompt}, \text{picture})` of all tokens.

        Rows have the same picture. Those that differ in their last token alone, such as answers of
        one word, are read once.
        """
        counts = np.array([len(row.prompt) + len(row.answer) for row in rows])
        require_fitting(counts, self.limit, self.name, counted="with prompt and picture")
        read: dict[tuple, torch.Tensor] = {}
        scored = []
        for row in rows:
            known = (*row.prompt, None, *row.answer[:-1])
            if known not in read:
                read[known] = self._after_prompt(row.inputs, row.answer[:-1])
            chosen = torch.tensor(row.answer)[:, None].to(self.device, non_blocking=True)
            scored.append(read[known].gather(-1, chosen)[:, 0])
        together = torch.cat(scored).double().cpu().numpy()  # one wait for all rows of a picture
        return np.split(together, np.cumsum([len(row.answer) for row in rows])[:-1])

    def _after_prompt(self, inputs: Inputs, answer: list[int]) -> torch.Tensor:
        """Return log-probabilities of what follows a prompt and each token of an answer."""
        for module in self.network.modules():
            if hasattr(module, "rope_deltas"):  # how Qwen counted the places of the last picture
                module.rope_deltas = None
        batch = dict(inputs)
        for name, tensor in inputs.items():
            if tensor.shape == inputs["input_ids"].shape and not tensor.is_floating_point():
                last = {"input_ids": answer, "attention_mask": [1] * len(answer)}
                more = torch.tensor([last.get(name, [0] * len(answer))], dtype=tensor.dtype)
                batch[name] = torch.cat([tensor, more], dim=1)
        kind, n = next(self.network.parameters()).dtype, len(answer) + 1
        batch = {
            name: tensor.to(
                self.device, kind if tensor.is_floating_point() else None, non_blocking=True
            )
            for name, tensor in batch.items()
        }
        if "logits_to_keep" in inspect.signature(self.network.forward).parameters:
            batch["logits_to_keep"] = n
        with autocast(self.device):
            logits = self.network(**batch, use_cache=False).logits
        return logits[0, -n:].float().log_softmax(-1)

    def _try_out(self) -> None:
        """Refuse a network that reads answers before it is asked for them, or ignores pictures."""
        special = {*self.tokenizer.all_special_ids, *self.tokenizer.get_added_vocab().values()}
        middle = len(self.tokenizer) // 2
        numbers = [*range(middle, len(self.tokenizer)), *range(middle)]
        a, b, c = [number for number in numbers if number not in special][:3]
        side = (TRIED_SIDE, TRIED_SIDE, 3)
        noise = np.random.default_rng(0).integers(0, 256, (2, *side), dtype=np.uint8)
        one, other = (self._inputs(picture, self.prompts.describe) for picture in noise)
        first, changed = self._log_probs([Row(one, [a, b, c, a]), Row(one, [a, b, b, b])])
        exact = next(self.network.parameters()).dtype == torch.float32
        if np.abs(first - changed)[:2].max() > (CLOSE if exact else CLOSE_IN_HALF):
            raise CheckpointError(
                f"{self.name} reads what comes after a word before it scores the word, so that it "
                "gives no likelihood of a text"
            )
        if np.abs(first - self._log_probs([Row(other, [a, b, c, a])])[0]).max() < 1e-6:
            raise CheckpointError(
                f"{self.name} says the same whatever the picture: its files do not tell how "
                "pictures reach the text (a token for pictures, their number), or its weights "
                "ignore them"
            )

    # Prompts and texts as tokens

    def rendered(self, prompt: str, answer: str = "") -> str:
        """Return a prompt beside a picture in the model's chat template, or also its answer."""
        conversation = _conversation(prompt, True)
        if answer:
            content = [{"type": "text", "text": answer}]
            conversation.append({"role": "assistant", "content": content})
        return self.processor.apply_chat_template(
            conversation, add_generation_prompt=not answer, tokenize=False
        )

    def _gap(self) -> str:
        """Return what the chat template puts between a prompt and its answer: a blank, or nothing.

        Raises
        ------
        CheckpointError
            If it puts an answer elsewhere, such as behind a thought, or loses the prompt.
        """
        question, answer = self.prompts.describe, "yes"
        prompt, both = self.rendered(question), self.rendered(question, answer)
        gap, _, _ = both.removeprefix(prompt).partition(answer)
        if question in prompt and both.startswith(f"{prompt}{gap}{answer}") and not gap.strip():
            return gap
        raise CheckpointError(
            f"the chat template of {self.name} does not put an answer behind its prompt: of "
            f"{question!r} it makes {prompt!r}, and with the answer {answer!r} {both!r}"
        )

    def _inputs(self, picture: np.ndarray | None, prompt: str) -> Inputs:
        """Return what the network takes of a prompt with a picture, or without one."""
        conversation = _conversation(prompt, picture is not None)
        if picture is not None:
            conversation[0]["content"][0]["image"] = Image.fromarray(picture)
        return self.processor.apply_chat_template(
            conversation,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )

    def _row(self, inputs: Inputs, text: str) -> Row:
        return self._row_from(inputs, text, 0)[0]

    def _row_from(self, inputs: Inputs, text: str, place: int) -> tuple[Row, int]:
        """Return a text behind a prompt, and the number of the token that a character is in."""
        if not text.strip():
            raise ValueError("a caption is empty, and has no likelihood")
        if self.tokenizer.unk_token_id is not None:
            require_known_words(self.tokenizer, [text], self.name)
        encoded = self.tokenizer(
            self.gap + text,
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
        )
        ends = (end for _, end in encoded["offset_mapping"])
        start = next(at for at, end in enumerate(ends) if end > place + len(self.gap))
        return Row(inputs, encoded["input_ids"]), start


def _conversation(prompt: str, picture: bool) -> list[dict[str, Any]]:
    """Return a prompt as chat templates take it."""
    content = [{"type": "image"}] * picture + [{"type": "text", "text": prompt}]
    return [{"role": "user", "content": content}]


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
    if not getattr(processor, "chat_template", None):
        raise CheckpointError(
            f"{folder} has no chat template, which says how a model is asked: take a model that "
            "was tuned for conversations",
            path=folder,
        )
    revision, prompts = revision_of(folder), prompts or PROMPTS
    return Generative(network, processor, entry.name, revision, device, prompts, score)
