"""How a model that writes is asked: its chat template, and which tokens are its answer."""

import datetime
import itertools
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2
import jinja2.meta
import numpy as np
from PIL import Image

from biaslib.errors import CheckpointError, InputError

__all__ = ["DATE", "Answer", "Conversation"]

DATE = datetime.date(2024, 7, 26)
"""What chat templates write for today: the day that Llama's own write where there is no clock."""

FORMATS = {f"%{code}": DATE.strftime(f"%{code}") for code in "aAbBcdFHIjmMpSxXyY"}
FORMATS |= {"%-d": str(DATE.day), "%-m": str(DATE.month)}
OF_TRAINING = re.compile(r"\{%-?\s*(end)?generation\s*-?%\}")
"""A tag of transformers that changes no text, and that Jinja alone does not know."""

THINKING = ("enable_thinking", "thinking")
"""What chat templates call the variable that switches thinking off where it is False."""

OPENED = (
    "<think> <thinking> ◁think▷ [THINK] <|START_THINKING|> <|channel>thought <|channel|>analysis"
)
CLOSED = "</think> </thinking> ◁/think▷ [/THINK] <|END_THINKING|> <channel|> <|channel|>final"
THOUGHTS = dict(zip(OPENED.split(), CLOSED.split(), strict=True))
"""Marks between which models think."""

TRIED = "yes"
TIMES = 8
"""How often a conversation is written to see that its template draws nothing."""


class Answer(NamedTuple):
    """An answer among the tokens of its conversation, in which a picture is one mark.

    ``ids[start:end]`` are scored; what ends an answer is not.
    """

    prompt: str
    text: str
    ids: tuple[int, ...]
    start: int
    end: int

    @property
    def read(self) -> tuple[int, ...]:
        """What its log-probabilities depend on: where it begins, and all but its last token."""
        return self.start, *self.ids[: self.end - 1]


class Conversation:
    """A model's chat template, which puts an answer behind a prompt with its picture.

    A template that asks for today's date gets :data:`DATE`, and one that knows a switch for
    thinking has it off; both are warned of.

    Parameters
    ----------
    processor
        Of transformers, with tokenizer and image processor.
    template
        Its chat template.
    name
        What errors call the model.
    question
        A prompt to try it with.

    Raises
    ------
    CheckpointError
        If the template writes a conversation differently each time, loses the prompt, or puts an
        answer elsewhere than behind it, such as inside a thought.
    """

    def __init__(self, processor: Any, template: str, name: str, question: str) -> None:
        self.processor, self.tokenizer, self.name = processor, processor.tokenizer, name
        self.template, self.content, self.lead = template, _in_parts, ""
        self.switches: dict[str, bool] = {}
        tokens = self.tokenizer.added_tokens_decoder.values()
        self.control = {each.content for each in tokens if each.special}
        if "strftime_now" in template:
            self.template = _with_date(template)
            self._warn(f"writes today's date, and gets {DATE:%d %B %Y} in its place")
        self._require_one(question)
        self._switch_off(question)
        self._place(question)
        self._require_one(question, TRIED)

    def _warn(self, what: str) -> None:
        warnings.warn(f"the chat template of {self.name} {what}", stacklevel=2)

    def _require_one(self, question: str, said: str = "") -> None:
        """Refuse a template that writes one conversation differently each time."""
        try:
            found = {self.rendered(question, said) for _ in range(TIMES)}
        except (TypeError, jinja2.TemplateError) as error:  # such as of a template without parts
            what = f"the chat template of {self.name} cannot be used: {error}"
            raise CheckpointError(what) from error
        if len(found) > 1:
            raise CheckpointError(
                f"the chat template of {self.name} writes one conversation differently each time: "
                "take out what it draws at random"
            )

    def _switch_off(self, question: str) -> None:
        """Switch thinking off where the template knows how."""
        before = self.rendered(question)
        tree = jinja2.Environment(extensions=["jinja2.ext.loopcontrols"]).parse(
            OF_TRAINING.sub("", self.template)
        )
        known = jinja2.meta.find_undeclared_variables(tree)
        self.switches = {name: False for name in THINKING if name in known}
        if self.rendered(question) != before:
            self._warn("lets the model think before it answers, which is switched off")

    def _place(self, question: str) -> None:
        """Find how a message has to be written to stand behind the prompt.

        Where thinking is off, prompts of some models close an empty thought that the messages of
        their templates lack: it is put before these.
        """
        prompt, both = self.rendered(question), ""
        for self.content in (_in_parts, str):
            self.lead = ""
            try:
                both = self.rendered(question, TRIED)
            except (TypeError, jinja2.TemplateError):
                continue
            rest = prompt[shared(prompt, both) :]
            if any(rest.strip().startswith(mark) for mark in THOUGHTS):
                self.lead = rest
                both = self.rendered(question, TRIED)
            before, found, _ = both.removeprefix(prompt).partition(TRIED)
            asked = prompt.rpartition(question)[2] + before
            if any(asked.rfind(mark) > asked.rfind(end) for mark, end in THOUGHTS.items()) or any(
                end in before for end in THOUGHTS.values()
            ):
                raise CheckpointError(
                    f"the chat template of {self.name} has the model think before it answers, and "
                    f"an answer would be scored inside a thought: {(prompt + before)[-60:]!r}. "
                    "Take a model, or a template, that answers at once"
                )
            if question in prompt and both.startswith(prompt) and found and not before.strip():
                return
        raise CheckpointError(
            f"the chat template of {self.name} does not put an answer behind its prompt: of "
            f"{question!r} it makes {prompt!r}, and with the answer {TRIED!r} {both!r}"
        )

    def _apply(self, prompt: str, answer: str, shown: list[dict], **how: Any) -> Any:
        messages = [{"role": "user", "content": [*shown, {"type": "text", "text": prompt}]}]
        if answer:
            messages.append({"role": "assistant", "content": self.content(self.lead + answer)})
        how |= {"chat_template": self.template, "add_generation_prompt": not answer}
        return self.processor.apply_chat_template(messages, **how, **self.switches)

    def rendered(self, prompt: str, answer: str = "", picture: bool = True) -> str:
        """Return a prompt beside a picture in the chat template, or also its answer."""
        return self._apply(prompt, answer, [{"type": "image"}] * picture, tokenize=False)

    def answer(self, prompt: str, text: str, picture: bool = True, place: int = 0) -> Answer:
        """Return which tokens are an answer, or what follows a place in it.

        A blank before that place is scored with what follows, whether or not it has a token to
        itself.

        Raises
        ------
        InputError
            If prompt or answer hold a token that steers the model, or the template changes the
            answer.
        """
        if held := [token for token in self.control if token in prompt + "\n" + text]:
            problem = f"{prompt!r} or its answer {text!r} holds {held[0]!r}"
            raise InputError(f"{problem}, which is no text for {self.name}", word=held[0])
        asked, whole = (self.rendered(prompt, said, picture) for said in ("", text))
        behind = whole.removeprefix(asked)
        said = text if text in behind else text.strip()
        gap, found, _ = behind.partition(said)
        if not whole.startswith(asked) or not found or gap.strip():
            raise InputError(
                f"the chat template of {self.name} changes the answer {text!r}: it makes "
                f"{behind!r} of it",
                word=text,
            )
        first = len(asked) + len(gap)
        begun = whole[: max(len(asked), len(whole[: first + place].rstrip()))]
        encoded = self.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        ids = tuple(encoded["input_ids"])
        start = shared(self.tokenizer(begun, add_special_tokens=False)["input_ids"], ids)
        stop = first + len(said)
        end = sum(low < stop for low, _ in encoded["offset_mapping"])
        return Answer(prompt, text, ids, start, end)

    def inputs(self, answer: Answer, picture: np.ndarray | None) -> tuple[dict, int]:
        """Return what the network takes of a conversation, and the place of its answer in that.

        Raises
        ------
        CheckpointError
            If the processor ends it with other tokens than its tokenizer.
        """
        # Of an array 1, 3 or 4 pixels high a processor would take the rows for colours.
        shown = [] if picture is None else [{"type": "image", "image": Image.fromarray(picture)}]
        how = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}
        inputs = dict(self._apply(answer.prompt, answer.text, shown, **how))
        ids, known = tuple(inputs["input_ids"][0].tolist()), answer.ids[answer.start - 1 :]
        for end in (len(ids), len(ids) - 1):  # some tokenizers end whatever they read
            if ids[end - len(known) : end] == known:
                return inputs, end - len(known) + 1
        raise CheckpointError(
            f"the processor of {self.name} reads a conversation otherwise than its tokenizer: "
            f"it ends in {self.tokenizer.decode(ids[-len(known) :])!r}"
        )


def shared(one: Sequence, other: Sequence) -> int:
    """Return how many tokens or characters two texts begin with in common.

    Examples
    --------
    >>> shared([1, 2, 3], [1, 2, 4, 5])
    2
    """
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _in_parts(text: str) -> list[dict[str, str]]:
    """Return a message as most templates take it; some take a string."""
    return [{"type": "text", "text": text}]


def _with_date(template: str) -> str:
    """Return a chat template whose clock stands still."""
    steps = "".join(f"|replace({code!r}, {said!r})" for code, said in FORMATS.items())
    return f"{{% macro strftime_now(format) %}}{{{{ format{steps} }}}}{{% endmacro %}}\n{template}"
