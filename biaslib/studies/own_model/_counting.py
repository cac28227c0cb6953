"""How often a model would be asked: the parts ask one that answers at random, and counts."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from biaslib import runtime
from biaslib.models.capabilities import (
    EMBED,
    EMBED_WITH_IMAGES,
    ENCODE,
    FILL,
    FILL_WITH_IMAGES,
    LIKELIHOOD,
    MATCH,
)
from biaslib.models.images import Pictures
from biaslib.models.own import OwnModel
from biaslib.studies.own_model import _grounding as grounding
from biaslib.studies.own_model._parts import Part, Setting

__all__ = ["CHECK", "KINDS", "Counting", "Question", "counts", "seconds"]

CHECK = "does it look at pictures?"
"""What the checks of grounding are called beside the parts."""

KINDS = ("texts", "pictures", "pairs")
"""What a model reads: texts, pictures, and texts that each come with a picture."""

FEW = 8
"""Items with which a model is tried out."""

Question = tuple[str, str, str]
"""What is read (one of :data:`KINDS`), the capability that is asked for, and how."""


class Counting:
    """A model that answers at random and counts what it has to read.

    Parameters
    ----------
    capabilities
        Of the model that it stands for: one that writes reads a text once for each candidate, one
        with masks once.

    Attributes
    ----------
    read
        How much, by question.
    tried
        By question the same for a few items: takes a model, and returns how much that reads.
    """

    name, revision = "counting", "1"

    def __init__(self, capabilities: Collection[str]) -> None:
        self.capabilities = capabilities
        self.read: Counter[Question] = Counter()
        self.tried: dict[Question, Callable[[Any], int]] = {}
        self.rng = np.random.default_rng(0)

    def _note(self, question: Question, n: int, ask: Callable[[Any], int]) -> None:
        self.read[question] += n
        self.tried.setdefault(question, ask)

    def embed(
        self, texts: Sequence[str], images: Any = None, level: str = "sentence", words: Any = None
    ) -> np.ndarray:
        """Count texts, or pairs."""
        few, shown = list(texts[:FEW]), _some(images)

        def ask(model: Any) -> int:
            return len(model.embed(few, shown, level=level, words=words and words[:FEW]))

        alone = images is None
        question = ("texts", EMBED, level) if alone else ("pairs", EMBED_WITH_IMAGES, level)
        self._note(question, len(texts), ask)
        return self.rng.normal(size=(len(texts), 4))

    def mask_log_prob(
        self, texts: Sequence[str], candidates: Sequence[str], images: Any = None, **options: Any
    ) -> np.ndarray:
        """Count texts, or pairs: with every candidate for a model that writes."""
        few, shown = list(texts[:FEW]), _some(images)
        each = len(candidates) if LIKELIHOOD in self.capabilities else 1

        def ask(model: Any) -> int:
            return each * len(model.mask_log_prob(few, candidates, shown, **options))

        question = ("texts", FILL, "") if images is None else ("pairs", FILL_WITH_IMAGES, "")
        self._note(question, each * len(texts), ask)
        return np.log(self.rng.uniform(0.1, 0.9, size=(len(texts), len(candidates))))

    def encode_text(self, texts: Sequence[str]) -> np.ndarray:
        """Count texts."""
        few = list(texts[:FEW])
        self._note(("texts", ENCODE, ""), len(texts), lambda model: len(model.encode_text(few)))
        return self.rng.normal(size=(len(texts), 4))

    def encode_image(self, images: Any) -> np.ndarray:
        """Count pictures."""
        few = _some(images)
        self._note(
            ("pictures", ENCODE, ""), len(images), lambda model: len(model.encode_image(few))
        )
        return self.rng.normal(size=(len(images), 4))

    def match(self, images: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Count pairs."""
        c = len(texts[0])
        shown = _some(images, max(1, FEW // c))
        said = texts[: len(shown)]
        self._note(
            ("pairs", MATCH, f"of {c}"),
            c * len(texts),
            lambda model: np.size(model.match(shown, said)),
        )
        return self.rng.normal(size=(len(texts), c))


def _some(images: Pictures | None, most: int = FEW) -> Pictures | None:
    """Return the first few pictures."""
    if images is None:
        return None
    return images.part(range(min(most, len(images))))


def counts(
    wanted: Sequence[Part], registered: str, model: Counting, setting: Setting
) -> Iterator[tuple[str, Counter[Question]]]:
    """Yield what each part would have a model read that has answered nothing yet.

    Exact for a model that looks at pictures and knows all words. What a text-only model is asked
    beside it does not count.

    Parameters
    ----------
    wanted
        The parts, in their order: what one has asked the next ones find in the store.
    registered
        The registered name whose family reads the model.
    model
        Counts.
    setting
        Without a store, and without what was found of looking.
    """
    own = OwnModel(model.name, registered, model)
    asks = [(part.name, part.ask) for part in wanted if not part.refused(own, setting)]
    checked = setting.folder is None or setting.folder.captions is not None
    if checked and any(part.pictures and not part.missing(own) for part in wanted):
        asks = [(CHECK, _look), *asks]
    with tempfile.TemporaryDirectory() as place:
        alone = replace(setting, store=runtime.Store(place), n_resamples=0, with_text_model=False)
        for name, ask in asks:
            before = Counter(model.read)
            with contextlib.suppress(Exception):  # the audit names data that are not there
                ask(own, alone)
            yield name, model.read - before


def _look(own: OwnModel, setting: Setting) -> None:
    grounding.looking(own, setting.profile, setting.store, setting.folder)


def seconds(model: Any, asked: Counting) -> dict[Question, float]:
    """Return how long a model takes for an item of each question that it can be asked.

    It is asked for a few items twice, since the first call also prepares what all others use.
    """
    found = {}
    for question, ask in asked.tried.items():
        if question[1] in model.capabilities:
            with contextlib.suppress(Exception):  # the audit names what fails
                ask(model)
                begun = perf_counter()
                n = ask(model)
                found[question] = (perf_counter() - begun) / n
    return found
