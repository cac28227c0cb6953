"""Log-probabilities of texts that a generative network would write after a prompt with a picture.

What can go wrong without an error is tried out when a network is loaded: see :func:`settled`.
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from biaslib.models._batches import autocast, says_no_memory
from biaslib.models._masks import padded
from biaslib.models.errors import CheckpointError

CLOSE = 1e-3
"""How far two ways to the same log-probabilities may be apart, of weights in float32."""

CLOSE_IN_HALF = 0.1

WAYS = ("one prefix", "one prompt", "whole")
"""What is computed once a picture: all that its prompts begin with, each prompt, or nothing."""

Inputs = Mapping[str, torch.Tensor]
"""What a network takes of one prompt with its picture: ``input_ids`` (1, tokens), and so on."""


@dataclass(frozen=True)
class Row:
    """A prompt, and what is to be scored after it.

    Attributes
    ----------
    inputs
        Of the prompt; rows of one call share the picture.
    answer
        Numbers of the tokens that follow the prompt.
    """

    inputs: Inputs
    answer: Sequence[int]

    @property
    def prompt(self) -> list[int]:
        """Numbers of the prompt's tokens."""
        return self.inputs["input_ids"][0].tolist()


@dataclass(frozen=True)
class Continuations:
    """Scores what a network may write after prompts.

    Parameters
    ----------
    network
        Of ``AutoModelForImageTextToText``.
    device
        Where it runs.
    image_tokens
        Numbers of tokens that stand for a picture.
    way
        One of :data:`WAYS`: later ones compute more, and give the same numbers.
    answer_type
        Type of the answer's tokens, for networks that tell types apart: PaliGemma reads tokens of
        type 0 in both directions, those of an answer to come too.
    """

    network: Any
    device: str
    image_tokens: frozenset[int] = frozenset()
    way: str = WAYS[0]
    answer_type: int = 0

    def log_probs(self, rows: Sequence[Row]) -> list[np.ndarray]:
        r"""Return :math:`\log P(w_t \mid w_{<t}, \text{prompt}, \text{picture})` of all tokens.

        Parameters
        ----------
        rows
            Prompts with the same picture, or all without one.

        Returns
        -------
        list of numpy.ndarray
            One array a row, a natural logarithm a token of its answer, float64.
        """
        with torch.inference_mode(), autocast(self.device):
            found: dict[int, np.ndarray] = {}
            for places, start in self._groups(rows):
                members = [rows[place] for place in places]
                whole = self.way == "whole"
                scored = map(self._one, members) if whole else self._after(members, start)
                found |= dict(zip(places, scored, strict=True))
        return [found[place] for place in range(len(rows))]

    def _groups(self, rows: Sequence[Row]) -> list[tuple[list[int], int]]:
        """Return rows that share a prefix, and how many tokens of it."""
        prompts = [row.prompt for row in rows]
        everything = list(range(len(rows)))
        if self.way == "whole":
            return [(everything, 0)]
        shared = _shared(prompts)
        after_picture = not self.image_tokens.intersection(prompts[0][shared:])
        if len(set(map(tuple, prompts))) == 1 or (self.way == "one prefix" and after_picture):
            return [(everything, shared)]
        alike: dict[tuple, list[int]] = {}
        for place, prompt in enumerate(prompts):
            alike.setdefault(tuple(prompt), []).append(place)
        return [(places, len(prompt)) for prompt, places in alike.items()]

    def _after(self, rows: Sequence[Row], start: int) -> list[np.ndarray]:
        """Score rows after the first ``start`` tokens, which are read once."""
        self._forget_positions()
        prefix = _first(rows[0].inputs, start)
        read = self.network(**self._there(prefix), use_cache=True, **self._keep(1))
        first = read.logits[0, -1].float().log_softmax(-1).cpu()
        tails = [[*row.prompt[start:], *row.answer] for row in rows]
        if max(map(len, tails)) == 1:
            later = [np.empty(0)] * len(rows)
        else:
            later = self._halving(tails, read.past_key_values, start)
        scored = []
        for row, tail, rest in zip(rows, tails, later, strict=True):
            every = np.concatenate([[first[tail[0]].item()], rest])
            scored.append(every[len(tail) - len(row.answer) :])
        return scored

    def _halving(self, tails: list[list[int]], cache: Any, start: int) -> list[np.ndarray]:
        """Score tails behind a cache, fewer at once where memory does not suffice."""
        try:
            return self._behind(tails, copy.deepcopy(cache), start)
        except (MemoryError, RuntimeError) as error:
            if not says_no_memory(error) or len(tails) == 1:
                raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        half = len(tails) // 2
        parts = tails[:half], tails[half:]
        return [each for part in parts for each in self._halving(part, cache, start)]

    def _behind(self, tails: list[list[int]], cache: Any, start: int) -> list[np.ndarray]:
        """Return log-probabilities of each tail's tokens but the first.

        Tails that differ in their last token alone, such as answers of one word, are read once.
        """
        read = list(dict.fromkeys(tuple(tail[:-1]) for tail in tails))
        ids, real = (torch.as_tensor(each).long() for each in padded(read, 0))
        n, longest = ids.shape
        cache.batch_repeat_interleave(n)
        told = {"input_ids": ids, **self._positions(n, start, longest)}
        told["attention_mask"] = torch.cat([torch.ones(n, start, dtype=torch.long), real], dim=1)
        logits = self.network(**self._there(told), past_key_values=cache, use_cache=True).logits
        places = {each: at for at, each in enumerate(read)}
        of_tail = (logits[places[tuple(tail[:-1])]] for tail in tails)
        return [_picked(each, tail[1:]) for each, tail in zip(of_tail, tails, strict=True)]

    def _one(self, row: Row) -> np.ndarray:
        """Score a row that is read from its first token."""
        self._forget_positions()
        answer = torch.tensor([list(row.answer)])
        n = answer.shape[1]
        told = dict(row.inputs)
        for name, each in row.inputs.items():
            if of_tokens(each, row.inputs):
                last = {"input_ids": answer, "attention_mask": torch.ones_like(answer)}
                fill = last.get(name, torch.full_like(answer, self.answer_type))
                told[name] = torch.cat([each, fill.to(each.dtype)], dim=1)
        logits = self.network(**self._there(told), use_cache=False, **self._keep(n + 1)).logits
        return _picked(logits[0, -n - 1 : -1], row.answer)

    def _keep(self, last: int) -> dict[str, int]:
        known = inspect.signature(self.network.forward).parameters
        return {"logits_to_keep": last} if "logits_to_keep" in known else {}

    def _there(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """Return inputs on the network's device, pixels in the type of its weights."""
        kind = next(self.network.parameters()).dtype
        found = {name: each.to(self.device) for name, each in inputs.items()}
        return {
            name: each.to(kind) if each.is_floating_point() else each
            for name, each in found.items()
        }

    def _positions(self, n: int, start: int, longest: int) -> dict[str, torch.Tensor]:
        """Return where tokens behind a cache stand, for networks that count pictures otherwise."""
        shifts = [module.rope_deltas for module in self._counting()]
        shifts = [each for each in shifts if each is not None]
        if not shifts:
            return {}
        places = torch.arange(start, start + longest) + shifts[0].reshape(-1)[0].cpu()
        return {"position_ids": places.expand(3, n, -1)}

    def _forget_positions(self) -> None:
        """Have the network forget how it counted the last picture."""
        for module in self._counting():
            module.rope_deltas = None

    def _counting(self) -> list[Any]:
        return [each for each in self.network.modules() if hasattr(each, "rope_deltas")]


def settled(
    continuations: Continuations, rows: Sequence[Row], others: Sequence[Row], name: str
) -> Continuations:
    """Return the fastest way in which a network gives the numbers that reading all of it gives.

    Tried out on a few rows: whether a network gives a log-probability before it has read what comes
    after it, whether it looks at pictures, and which :data:`WAYS` agree with reading every row from
    its first token to its last. So architectures need no list of what each of them is like.

    Parameters
    ----------
    continuations
        Whose way and type of answers are not known yet.
    rows
        Of two different prompts with one picture, each followed by at least three tokens.
    others
        The same with another picture.
    name
        What errors call the model.

    Raises
    ------
    CheckpointError
        If the network reads answers before it is asked for them, or pays no heed to pictures.
    """
    exact = next(continuations.network.parameters()).dtype == torch.float32
    close = CLOSE if exact else CLOSE_IN_HALF
    plain = replace(continuations, way="whole")
    for kind in (0, 1):
        plain = replace(plain, answer_type=kind)
        whole = plain.log_probs(rows)
        if _apart(whole, plain.log_probs(_ending_otherwise(rows)), but_last=True) < close:
            break
    else:
        raise CheckpointError(
            f"{name} reads what comes after a word before it scores the word, so that it gives no "
            "likelihood of a text"
        )
    if _apart(whole, plain.log_probs(others)) < 1e-6:
        raise CheckpointError(
            f"{name} says the same whatever the picture: its files do not tell how pictures reach "
            "the text (a token for pictures, their number), or its weights ignore them"
        )
    for way in WAYS[:-1]:
        tried = replace(plain, way=way)
        try:
            agrees = _apart(whole, tried.log_probs(rows)) < close
        except (RuntimeError, ValueError, TypeError, AttributeError, LookupError) as error:
            if says_no_memory(error):
                raise
            agrees = False
        if agrees:
            return tried
    return plain


def _ending_otherwise(rows: Sequence[Row]) -> list[Row]:
    """Return rows with the last token of their answers replaced by the first."""
    return [replace(row, answer=[*row.answer[:-1], row.answer[0]]) for row in rows]


def _apart(one: list[np.ndarray], other: list[np.ndarray], but_last: bool = False) -> float:
    """Return the largest difference of log-probabilities."""
    end = -1 if but_last else None
    pairs = zip(one, other, strict=True)
    return max(float(np.abs(a[:end] - b[:end]).max()) for a, b in pairs)


def _shared(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many tokens all prompts begin with."""
    first, last = min(prompts), max(prompts)
    pairs = enumerate(zip(first, last, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(map(len, prompts)))


def of_tokens(each: torch.Tensor, inputs: Inputs) -> bool:
    """Tell whether an input has one number a token."""
    return each.shape == inputs["input_ids"].shape and not each.is_floating_point()


def _first(inputs: Inputs, n: int) -> dict[str, torch.Tensor]:
    """Return the inputs of the first n tokens, with all of the picture."""
    return {name: each[:, :n] if of_tokens(each, inputs) else each for name, each in inputs.items()}


def _picked(logits: torch.Tensor, ids: Sequence[int]) -> np.ndarray:
    """Return log-probabilities of n tokens, given the logits before each, (n or more, v)."""
    here = logits[: len(ids)].float()
    numbers = torch.tensor(list(ids), dtype=torch.long, device=here.device)
    chosen = here.gather(-1, numbers[:, None])[:, 0] - here.logsumexp(-1)
    return chosen.double().cpu().numpy()
