"""Does the model look at the pictures? Right captions against swapped ones, before any score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from biaslib import inference, runtime
from biaslib.audit._folder import OwnFolder
from biaslib.capabilities import ENCODE, FILL_WITH_IMAGES, LIKELIHOOD, MATCH
from biaslib.models import REGISTRY
from biaslib.pictures.images import Pictures
from biaslib.studies import study2_masked as masked
from biaslib.studies import study4_captions as selection

__all__ = ["HEADS", "GroundingCheck", "caption_check", "check_grounding", "choices", "word_check"]

WORDS = "masked words"
HEADS = {MATCH: "matching", ENCODE: "contrastive", FILL_WITH_IMAGES: WORDS}
"""By capability: what is asked in the check."""

BY_CHANCE = 0.5
"""The share that a model gets right which does not look, whatever caption it prefers."""


@dataclass(frozen=True)
class GroundingCheck:
    """The result of a check of grounding.

    Attributes
    ----------
    head
        What was asked: one of :data:`HEADS`.
    right, n
        Swapped pairs that the model got right, and all of them.
    share, low, high
        With a 95% interval of Clopper and Pearson.
    dataset
        Whose pictures and captions.
    """

    head: str
    right: float
    n: int
    low: float
    high: float
    dataset: str

    @property
    def share(self) -> float:
        """Share of pairs that the model got right."""
        return self.right / self.n

    @property
    def passed(self) -> bool:
        """Whether the whole interval lies above one half."""
        return self.low > BY_CHANCE

    def __str__(self) -> str:
        share = f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%}) of {self.n} swapped pairs"
        result = "looks at pictures" if self.passed else "was not seen to look at pictures"
        return f"{self.head}: {result}, right in {share}; a model that does not look gets 50%"


def check_grounding(
    model: Any,
    profile: str,
    store: runtime.Store | None,
    folder: OwnFolder | None = None,
    failed: dict[str, Exception] | None = None,
) -> dict[str, GroundingCheck]:
    """Check every way in which a model can be asked about pictures.

    Parameters
    ----------
    model
        With capabilities, a name and a revision.
    profile
        Whose pictures and captions.
    store
        Of answers.
    folder
        Pictures of one's own instead; without captions nothing can be checked.
    failed
        Takes why a check could not be made, by what was asked; the others are made. None: that is
        raised.

    Returns
    -------
    dict
        By what was asked: see :data:`HEADS`. What the model cannot be asked is left out.
    """
    able = getattr(model, "capabilities", ())
    checks = {}
    for head in [HEADS[capability] for capability in HEADS if capability in able]:
        if folder is not None and (folder.captions is None or head == WORDS):
            continue
        try:
            if head == WORDS:
                checks[head] = word_check(model, profile, store)
            else:
                shown = _study4(profile) if folder is None else folder.captions
                checks[head] = caption_check(model, head, *shown, store)
        except Exception as error:
            if failed is None:
                raise
            failed[head] = error
    return checks


def _study4(profile: str) -> tuple[Pictures, list[str], str]:
    """Return the pictures of study 4, each with the caption that is true of it."""
    given = selection.inputs(profile, size="full")
    columns = given.table[selection.PAIR].to_numpy()
    right = columns[np.arange(len(columns)), given.anti.astype(int)]
    return given.images, right.tolist(), given.dataset


def caption_check(
    model: Any,
    head: str,
    pictures: Pictures,
    captions: Sequence[str],
    dataset: str = "",
    store: runtime.Store | None = None,
) -> GroundingCheck:
    r"""Count pairs of pictures whose captions fit better as they are than swapped.

    .. math:: s(i, c_i) + s(j, c_j) > s(i, c_j) + s(j, c_i)

    A caption that a model always prefers, or a picture that it likes with any caption, stands on
    both sides. Ties count half. Each picture is in one pair.

    Parameters
    ----------
    model, head, store
        As of :func:`biaslib.studies.study4_captions.caption_scores`.
    pictures, captions
        Each with its own.
    dataset
        Their name.

    Raises
    ------
    ValueError
        If no two pictures have different captions.
    """
    pairs = _pairs(captions)
    if not len(pairs):
        raise ValueError("no two pictures have different captions: nothing can be swapped")
    places = pairs.ravel()
    said = [[captions[own], captions[other]] for own, other in _both(pairs)]
    scores = selection.caption_scores(model, head, pictures.part(places.tolist()), said, store)
    return _counted(head, scores, dataset)


def _pairs(captions: Sequence[str]) -> np.ndarray:
    """Return pairs of places with different captions, at random but always the same: (p, 2)."""
    waiting = np.random.default_rng(0).permutation(len(captions)).tolist()
    pairs = []
    while waiting:
        first = waiting.pop(0)
        other = next((each for each in waiting if captions[each] != captions[first]), None)
        if other is None:  # All that are left have the same caption.
            break
        waiting.remove(other)
        pairs.append((first, other))
    return np.array(pairs, dtype=int).reshape(-1, 2)


def _both(pairs: np.ndarray):
    for first, second in pairs:
        yield first, second
        yield second, first


def _counted(head: str, scores: np.ndarray, dataset: str) -> GroundingCheck:
    """Count rows of own and swapped scores, (2 p, 2)."""
    gain = (scores[:, 0] - scores[:, 1]).reshape(-1, 2).sum(axis=1)
    tied = np.abs(gain) <= selection.TOLERANCE
    right, n = float((gain > 0)[~tied].sum() + tied.sum() / 2), len(gain)
    interval = inference.proportion_interval(int(right), n)
    return GroundingCheck(head, right, n, interval.low, interval.high, dataset)


def word_check(model: Any, profile: str, store: runtime.Store | None) -> GroundingCheck:
    """Count pairs of pictures whose entities are more likely with their own picture than swapped.

    As :func:`caption_check`, of masked words: the caption says "person", and both entities could
    stand in it.
    """
    options = {"model": masked_name(model), "per_agent": 1, "view": "visible", "pictured": None}
    given = masked.readable(masked.inputs(profile, only_sound=True, size="full", **options), model)
    if given.images is None:
        raise FileNotFoundError("there are no pictures of entities: nothing can be swapped")
    chosen, names = choices(model), given.entities["entity"].tolist()
    problems = masked.tokenizer_problems(model, names, chosen.pieces)
    entities = masked.sound_entities(given.entities, problems)
    answers = masked.masked_log_probs(model, entities, given.images, chosen, store)
    return _counted(WORDS, _swapped_words(answers, entities), given.dataset)


def masked_name(model: Any) -> str:
    """Return the registered name whose images and text model study 2 takes for a model."""
    return model.name if model.name in REGISTRY else "bert"


def choices(model: Any) -> masked.Choices:
    """Return how entities of several pieces are asked for: as a chain, if a model writes."""
    return masked.Choices(pieces="chain" if LIKELIHOOD in model.capabilities else "")


def _swapped_words(answers: pandas.DataFrame, entities: pandas.DataFrame) -> np.ndarray:
    """Return rows (own, swapped) of pairs of pictures that show different entities of a verb."""
    shown = answers[(answers["image"] != "") & (answers["agent"] == "person")]
    rows = []
    frames = entities.set_index("entity")["frame"].str.replace(r" an? \{entity\}", "", regex=True)
    for _, group in shown.groupby(shown["entity"].map(frames), sort=False):
        table = group.pivot_table(index=["entity", "image"], columns="candidate", values="log_p")
        names = table.index.get_level_values("entity").tolist()
        for own, other in _both(_pairs(names)):
            rows.append((table[names[own]].iloc[own], table[names[other]].iloc[own]))
    if not rows:
        raise ValueError("no two pictures show different entities: nothing can be swapped")
    return np.array(rows)
