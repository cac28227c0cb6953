"""What the planted world answers: exact inference over its 20 cells, by enumeration."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas
from scipy.special import logit

from biaslib.runtime import unknown_name
from plantedworld._frames import (
    MASK,
    PLACES,
    Reading,
    agents_of_form,
    canonical,
    content_of_form,
    frames,
    read,
)
from plantedworld._logs import log_sum_exp
from plantedworld._scenes import (
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    blank_rows,
    object_pairs,
)
from plantedworld._tables import (
    CAPTION_GENDER,
    GENDERS,
    PICTURE_GENDER,
    TONE,
    Design,
    log_word_given_cell,
)
from plantedworld._words import (
    SLOT_SHARES,
    Plan,
    agent_words,
    content_words,
    counted,
    frequencies,
    strengths,
)

PLACE_SHARES = {
    "subject": {"neutral": 0.2, "noun": 0.35, "name": 0.2, "pronoun": 0.25},
    "object": {"name": 0.5, "pronoun": 0.5},
    "possessive": {"pronoun": 1.0},
    "alone": {"neutral": 0.05, "noun": 0.35, "name": 0.4, "pronoun": 0.2},
}
"""How often each type of word for a person is used in each place; alone, as what it is about."""

NAME_TONE = 4.0
"""Log-odds of tone 5 against tone 1 that the names of study 1's race tests carry, at any dose."""


VISIBLE_SLOTS = ("role", "object")


AGES = ("child", "adult", "older")
AGE_SHARES = (0.15, 0.7, 0.15)


@dataclass(frozen=True)
class Evidence:
    """How an image is made from what is there.

    ``shown_role`` is P(costume | an adult with a role that can be drawn); ``shown_object`` and
    ``ambiguous_object`` are P(view | object), the rest is hidden; ``shown_gender`` is
    P(the sprite shows the gender).
    """

    shown_role: float = 0.4
    shown_object: float = 0.4
    ambiguous_object: float = 0.2
    shown_gender: float = 0.9


class Truth:
    """Exact answers of one world's corpus: joint probabilities of captions and images.

    A caption is about one content word w and may speak of a person a; frame f; cell z = (gender in
    the picture, gender in the caption, tone); image evidence I. All answers come from

    .. math:: P(\\text{caption}, I) = P(f \\mid w) \\sum_z P(z) P(I \\mid z, w) P(w \\mid z)
              P(a \\mid z)

    Parameters
    ----------
    design
        Dose, where it is planted, rate of wrong gender words.
    corpus
        ``"captions"`` or ``"text"``: the two differ in the words' strengths (``shift``).
    evidence
        How images show what is there.

    Examples
    --------
    >>> from plantedworld import world
    >>> truth = world(strength=1, seed=0).truth
    >>> float(np.exp(truth.mask_log_prob(["[MASK] is a nurse."], ["she", "he"])).round(3).sum()) < 1
    True
    """

    def __init__(self, design: Design, corpus: str, evidence: Evidence = Evidence()) -> None:
        self.design, self.corpus, self.evidence = design, corpus, evidence

    @functools.cached_property
    def log_words(self) -> np.ndarray:
        """Log P(caption is about the word | cell), rows as in ``content_words()``; (n, 20)."""
        words = content_words()
        log_words = np.empty((len(words), len(TONE)))
        for slot, share in SLOT_SHARES.items():
            rows = (words["slot"] == slot).to_numpy()
            log_words[rows] = np.log(share) + self._log_slot(slot)
        return log_words

    def _log_slot(self, slot: str) -> np.ndarray:
        if slot == "agent":
            return self.log_agents["alone"]
        words = content_words().query("slot == @slot")
        planted = planted_strengths(self.design.plan, self.corpus).loc[words.index]
        weights = frequencies(self.design.plan).loc[words.index].to_numpy()
        return log_word_given_cell(self.design, weights, planted)

    @functools.cached_property
    def log_agents(self) -> dict[str, np.ndarray]:
        """Log P(word for a person | place, cell) by place, rows as in ``agent_words()``."""
        return {place: _log_agents(place) for place in PLACE_SHARES}

    @functools.cached_property
    def log_frames(self) -> np.ndarray:
        """Log P(frame | content word), shape (n words, n frames)."""
        weights = np.stack([frame.carries() * frame.weight for frame in frames()], axis=1)
        with np.errstate(divide="ignore"):
            return np.log(weights / weights.sum(axis=1, keepdims=True))

    def log_joint(self, texts: list[str], scenes: pandas.DataFrame | None = None) -> np.ndarray:
        """Return log P(caption, image), shape (n texts, n images); without images, (n texts, 1).

        Raises
        ------
        ValueError
            If the grammar has no reading of a text.
        """
        states = self._states(scenes)
        return np.stack([self._log_caption(text, states) for text in texts])

    def log_image(self, scenes: pandas.DataFrame) -> np.ndarray:
        """Return log P(what the image shows), shape (n images,), up to layout and look."""
        return self._states(scenes).log_image

    def similarity(self, texts: list[str], scenes: pandas.DataFrame) -> np.ndarray:
        """Return the pointwise mutual information of captions and images, (n texts, n images).

        log P(caption, image) - log P(caption) - log P(image), in nats: what a contrastive
        objective approaches up to a constant (van den Oord et al. 2018). Minus infinity where the
        image rules the caption out.

        Raises
        ------
        ValueError
            If the grammar has no reading of a text, or the world never says it.
        """
        return self.log_joint(texts, scenes) - self._log_said(texts) - self.log_image(scenes)

    def _log_said(self, texts: list[str]) -> np.ndarray:
        """Log P(caption), shape (n texts, 1), of captions that the world can say."""
        log_texts = self.log_joint(texts)
        if np.isneginf(log_texts).any():
            never = texts[int(np.flatnonzero(np.isneginf(log_texts))[0])]
            raise ValueError(
                f"the planted world never says {never!r}: its words for people contradict each "
                "other; change one of them"
            )
        return log_texts

    def log_cells_of_captions(self, texts: list[str]) -> np.ndarray:
        """Return log P(cell | caption), without an image, shape (n texts, 20).

        Raises
        ------
        ValueError
            If the grammar has no reading of a text, or the world never says it.
        """
        self._log_said(texts)
        states = self._states(None)
        rows = [[self._cells_of(reading, states)[0] for reading in read(text)] for text in texts]
        joint = np.stack([log_sum_exp(row, axis=0) for row in rows])
        return joint - log_sum_exp(joint, axis=1, keepdims=True)

    def log_cells_of_images(self, scenes: pandas.DataFrame) -> np.ndarray:
        """Return log P(cell | what the image shows), shape (n images, 20)."""
        states = self._states(scenes)
        joint = states.log_cells + sum(states.log_slots.values())
        return (joint - log_sum_exp(joint, axis=1, keepdims=True))[states.inverse]

    def match(
        self,
        scenes: pandas.DataFrame,
        texts: list[list[str]],
        swapped: float = 0.5,
        mislabelled: float = 0.0,
    ) -> np.ndarray:
        """Return the log-odds that a caption belongs to its image, shape (n images, c captions).

        One pair in two is a match. Of the others, a share ``swapped`` has the caption's content
        word exchanged for one drawn by its frequency in the same frame and form (perhaps the same
        word again); the rest has the caption of another scene. A share ``mislabelled`` of all
        pairs has the wrong label: with none, a caption that the image rules out has minus infinity.
        """
        states, blind = self._states(scenes), self._states(None)
        rows = [
            self._match_row(captions, states.take(index), blind, swapped)
            for index, captions in enumerate(texts)
        ]
        return _with_wrong_labels(np.stack(rows), mislabelled)

    def mask_log_prob(
        self,
        texts: list[str],
        candidates: list[str],
        scenes: pandas.DataFrame | None = None,
    ) -> np.ndarray:
        """Return log P(word | rest of the caption, image) for one ``[MASK]`` a text, (n, k).

        The posterior over the whole vocabulary, read off at the candidates: it sums to 1 over all
        words, not over the candidates. Row i goes with image i.

        Raises
        ------
        ValueError
            If a text has not exactly one ``[MASK]``, the grammar has no reading of it, or no word
            fits it and the image.
        UnknownNameError
            If a candidate is not a word of the world.
        """
        columns = word_indices(candidates)
        states = self._states(scenes)
        rows = [
            self._posterior(text, states.take(index if scenes is not None else 0))
            for index, text in enumerate(texts)
        ]
        return np.stack(rows)[:, columns]

    def log_ratio(self, words: list[str], given: str = "picture") -> np.ndarray:
        """Return log P(word | woman) / P(word | man), shape (n words,).

        ``given`` says whose gender is known: that of the ``picture``, or that of the ``caption``.
        """
        of_cell = {"picture": PICTURE_GENDER, "caption": CAPTION_GENDER}
        if given not in of_cell:
            raise unknown_name("place of the gender", given, of_cell)
        rows = self.log_words[word_indices(words)] + self.design.log_cells
        woman, man = (log_sum_exp(rows[:, of_cell[given] == side], axis=1) for side in (0, 1))
        return woman - man

    def tone_log_ratio(self, words: list[str]) -> np.ndarray:
        """Return log P(word | tone 5) / P(word | tone 1), shape (n words,)."""
        rows = self.log_words[word_indices(words)] + self.design.log_cells
        return log_sum_exp(rows[:, TONE == 5], axis=1) - log_sum_exp(rows[:, TONE == 1], axis=1)

    def _states(self, scenes: pandas.DataFrame | None) -> "_States":
        if scenes is None:
            return _States.blind(self)
        return _States.of(self, scenes)

    def _log_caption(self, text: str, states: "_States") -> np.ndarray:
        values = [log_sum_exp(self._cells_of(reading, states), axis=1) for reading in read(text)]
        return log_sum_exp(values, axis=0)[states.inverse]

    def _cells_of(self, reading: Reading, states: "_States") -> np.ndarray:
        """Log P(caption, image, cell) of one reading, shape (n states, 20)."""
        word = word_indices([reading.content])[0]
        cells = states.log_cells_with(word) + self.log_words[word]
        return cells + self.log_frames[word, reading.frame] + self._log_agent(reading)

    def _log_agent(self, reading: Reading) -> np.ndarray | float:
        place = frames()[reading.frame].place
        if not place:
            return 0.0
        return self.log_agents[place][_agent_index(reading.agent)]

    def _posterior(self, text: str, state: "_States") -> np.ndarray:
        if canonical(text).count(MASK) != 1:
            raise ValueError(f"{text!r} should have one [MASK], and no more")
        joint = np.full(len(vocabulary()), -np.inf)
        for reading in read(text):
            fill = self._fill_content if reading.content is None else self._fill_agent
            words, values = fill(reading, state)
            joint[words] = np.logaddexp(joint[words], values)
        if np.isneginf(joint).all():
            raise ValueError(f"no word fits {text!r} with what the image shows; change one of them")
        return joint - log_sum_exp(joint)

    def _fill_content(self, reading: Reading, state: "_States") -> tuple[np.ndarray, np.ndarray]:
        words = word_indices(content_of_form(reading.frame, reading.content_form))
        cells = state.log_cells_with(words) + self.log_words[words] + self._log_agent(reading)
        return words, log_sum_exp(cells, axis=1) + self.log_frames[words, reading.frame]

    def _fill_agent(self, reading: Reading, state: "_States") -> tuple[np.ndarray, np.ndarray]:
        place = frames()[reading.frame].place
        agents = sorted(agents_of_form(place, reading.agent_form))
        word = word_indices([reading.content])[0]
        cells = state.log_cells_with(word) + self.log_words[word]
        values = cells + self.log_agents[place][[_agent_index(agent) for agent in agents]]
        values = log_sum_exp(values, axis=1) + self.log_frames[word, reading.frame]
        return word_indices(agents), values

    def _match_row(
        self, captions: list[str], state: "_States", blind: "_States", swapped: float
    ) -> np.ndarray:
        log_image = state.log_image
        match = np.concatenate([self._log_caption(text, state) for text in captions]) - log_image
        other = np.concatenate([self._log_caption(text, blind) for text in captions])
        swap = np.array([self._log_swapped(text, state) for text in captions]) - log_image
        with np.errstate(divide="ignore"):
            shares = np.log([1 - swapped, swapped])
        return match - np.logaddexp(other + shares[0], swap + shares[1])

    def _log_swapped(self, text: str, state: "_States") -> float:
        """Log P(image, the caption is what a swap of the content word left)."""
        parts = []
        for reading in read(text):
            words, values = self._fill_content(replace(reading, content=None), state)
            marginal = self.log_words[words] + self.design.log_cells
            frequency = log_sum_exp(marginal, axis=1) + self.log_frames[words, reading.frame]
            chosen = frequency[words == word_indices([reading.content])[0]][0]
            parts.append(log_sum_exp(values) + chosen - log_sum_exp(frequency))
        return log_sum_exp(parts)


class _States:
    """What images show, one row per distinct state, as log-likelihoods."""

    def __init__(
        self, truth: Truth, log_cells: np.ndarray, likelihood: np.ndarray, allowed: np.ndarray
    ) -> None:
        self.truth, self.log_cells = truth, log_cells
        self.likelihood, self.allowed = likelihood, allowed
        self.inverse = np.arange(len(log_cells))

    @classmethod
    def blind(cls, truth: Truth) -> "_States":
        """One state that shows nothing at all."""
        nothing = np.zeros((1, len(vocabulary())))
        return cls(truth, truth.design.log_cells[np.newaxis], nothing, nothing)

    @classmethod
    def of(cls, truth: Truth, scenes: pandas.DataFrame) -> "_States":
        """The distinct states of a frame of scenes."""
        shown = list(shown_evidence(scenes).itertuples(index=False))
        rows = {row: at for at, row in enumerate(dict.fromkeys(shown))}
        states = cls(
            truth,
            np.stack([_log_cells(truth.design, row) for row in rows]),
            np.stack([_log_likelihood(truth.evidence, row) for row in rows]),
            np.stack([_log_allowed(row) for row in rows]),
        )
        states.inverse = np.array([rows[row] for row in shown])
        return states

    def take(self, row: int) -> "_States":
        """The state of one image, as the only one."""
        state = [self.inverse[row]]
        taken = _States(
            self.truth, self.log_cells[state], self.likelihood[state], self.allowed[state]
        )
        taken.log_slots = {slot: rows[state] for slot, rows in self.log_slots.items()}
        return taken

    @functools.cached_property
    def log_slots(self) -> dict[str, np.ndarray]:
        """Log P(what is shown of a slot | cell), (n states, 20), of the slots that can be shown."""
        return {slot: self._log_slot(slot) for slot in VISIBLE_SLOTS}

    def _log_slot(self, slot: str) -> np.ndarray:
        words = _slots() == slot
        log_words = self.truth.log_words[words] - np.log(SLOT_SHARES[slot])
        return log_sum_exp(self.likelihood[:, words, np.newaxis] + log_words, axis=1)

    @property
    def log_image(self) -> np.ndarray:
        """Log P(image), for every image."""
        cells = self.log_cells + sum(self.log_slots.values())
        slots = content_words()["slot"].drop_duplicates()
        shares = np.array([SLOT_SHARES[slot] for slot in slots])
        first = self.allowed[:, vocabulary().get_indexer(slots.index)]
        log_kind = log_sum_exp(first + np.log(shares), axis=1)
        return (log_sum_exp(cells, axis=1) + log_kind)[self.inverse]

    def log_cells_with(self, words: np.ndarray) -> np.ndarray:
        """Log P(image, cell | caption's word): a row per state, or per word of the only state."""
        slot = _slots()[words]
        cells = self.log_cells
        for name, log_slot in self.log_slots.items():
            cells = cells + np.where(np.equal(slot, name)[..., np.newaxis], 0.0, log_slot)
        return cells + (self.likelihood + self.allowed)[:, words].reshape(-1, 1)


def shown_evidence(scenes: pandas.DataFrame) -> pandas.DataFrame:
    """Return what the images show, apart from looks and layout: person, gender, tone, role, object.

    Empty texts stand for what is hidden, ``apron|suit`` for a picture that fits two objects. A
    white picture, where the scenes have a column ``blank`` that says so, shows nothing: not even
    whether a person is there.
    """
    blank = blank_rows(scenes)
    person = scenes["person"].to_numpy(dtype=bool) & ~blank
    pair = scenes["object"].map(_pair_names())
    view = scenes["object_view"].to_numpy()
    adult = (scenes["age"] == "adult").to_numpy()
    views = [view == "visible", view == "ambiguous"]
    shown_object = np.select(views, [scenes["object"], pair], "")
    return pandas.DataFrame(
        {
            "blank": blank,
            "person": person,
            "gender": np.where(person & scenes["gender_shown"], scenes["gender"], ""),
            "tone": np.where(person, scenes["tone"], 0),
            "adult": person & adult,
            "role": np.where(person & adult & scenes["role_shown"], scenes["role"], ""),
            "object": np.where(person, shown_object, ""),
        }
    )


@functools.cache
def _pair_names() -> dict[str, str]:
    """Return what a half-hidden object looks like, by object: ``apron|suit``."""
    names = {}
    for pair in object_pairs().itertuples(index=False):
        names |= dict.fromkeys(pair, "|".join(sorted(pair)))
    return names


@functools.cache
def _slots() -> np.ndarray:
    """Return the slot of every content word."""
    return content_words()["slot"].to_numpy(dtype=object)


def vocabulary() -> pandas.Index:
    """Return every word that a caption can be about, words for people included."""
    return content_words().index


def word_indices(words: Iterable[str]) -> np.ndarray:
    """Return the rows of words in :func:`vocabulary`.

    Raises
    ------
    UnknownNameError
        If a word is not in the world; the message names it.
    """
    words, rows = list(words), _rows()
    missing = [word for word in words if word.lower() not in rows]
    if missing:
        raise unknown_name("word of the planted world", missing[0], list(rows))
    return np.array([rows[word.lower()] for word in words], dtype=int)


@functools.cache
def _rows() -> dict[str, int]:
    return {word: row for row, word in enumerate(vocabulary())}


def _log_cells(design: Design, row: tuple) -> np.ndarray:
    """Log P(cell), minus infinity where the picture contradicts it."""
    fits = np.ones(len(TONE), dtype=bool)
    if row.gender:
        fits &= GENDERS.index(row.gender) == PICTURE_GENDER
    if row.person:
        fits &= row.tone == TONE
    return np.where(fits, design.log_cells, -np.inf)


@functools.lru_cache(maxsize=2_000)
def _log_likelihood(evidence: Evidence, row: tuple) -> np.ndarray:
    """Log P(what is shown | word), for the words of the slots that can be shown; 0 elsewhere."""
    words, slots = vocabulary(), content_words()["slot"].to_numpy()
    likelihood = np.ones(len(words))
    if row.person and row.adult:
        roles = evidence.shown_role * words.isin(PICTURED_ROLES)
        shown = np.where(words == row.role, roles, 0.0) if row.role else 1 - roles
        likelihood = np.where(slots == "role", shown, likelihood)
    if row.person:
        drawn = words.isin(PICTURED_OBJECTS)
        seen = evidence.shown_object + evidence.ambiguous_object
        if "|" in row.object:
            shown = evidence.ambiguous_object * words.isin(row.object.split("|"))
        elif row.object:
            shown = evidence.shown_object * (words == row.object)
        else:
            shown = 1 - seen * drawn
        likelihood = np.where(slots == "object", shown, likelihood)
    with np.errstate(divide="ignore"):
        return np.log(likelihood)


def _log_allowed(row: tuple) -> np.ndarray:
    """0 for the words that a caption of the image may be about, minus infinity for the others."""
    things = content_words()["slot"].to_numpy() == "thing"
    return np.where(row.blank | (things == (not row.person)), 0.0, -np.inf)


def _with_wrong_labels(log_odds: np.ndarray, share: float) -> np.ndarray:
    """Return the log-odds of a label that is wrong in a share of all cases."""
    with np.errstate(divide="ignore"):
        wrong, right = np.log([share, 1 - share])
    return np.logaddexp(log_odds + right, wrong) - np.logaddexp(log_odds + wrong, right)


def _agent_index(agent: str) -> int:
    return agent_words()["word"].tolist().index(agent)


def _log_agents(place: str) -> np.ndarray:
    """Log P(word for a person | cell) in a place, shape (n agents, 20)."""
    agents = agent_words()
    kinds = agents["kind"].isin(PLACES.get(place, agents["kind"]))
    lean = agents["tone"].map({"1": -1.0, "5": 1.0, "": 0.0}).to_numpy()
    weights = np.exp(NAME_TONE * np.outer(lean, (TONE - 3) / 4)) * agents[["weight"]].to_numpy()
    gender = agents["gender"].to_numpy()[:, np.newaxis]
    weights = weights * ((gender == "") | (gender == np.array(GENDERS)[CAPTION_GENDER]))
    types = np.where(agents["gender"] == "", "neutral", agents["kind"].str.split().str[-1])
    probability = np.zeros_like(weights)
    for name, share in PLACE_SHARES[place].items():
        rows = (types == name) & kinds.to_numpy()
        probability[rows] = share * weights[rows] / weights[rows].sum(axis=0)
    with np.errstate(divide="ignore"):
        return np.log(probability)


@functools.cache
def planted_strengths(plan: Plan, corpus: str) -> pandas.DataFrame:
    """Return the log-odds at dose 1 of every content word in a corpus: gender, tone, interaction.

    Those of the words that study 3 counted in LAION are such that, at dose 1, captions have the
    proportions of its Table 1.
    """
    planted = strengths(plan).copy()
    if corpus == "captions":
        planted["gender"] += planted.pop("shift")
    roles = content_words().query("slot == 'role'")
    target = logit(counted()).to_numpy()
    for _ in range(50):
        design = Design(dose=1)
        weights = frequencies(plan).loc[roles.index].to_numpy()
        rows = log_word_given_cell(design, weights, planted.loc[roles.index])
        rows = rows[roles.index.get_indexer(counted().index)] + design.log_cells
        woman, man = (log_sum_exp(rows[:, side == CAPTION_GENDER], axis=1) for side in (0, 1))
        planted.loc[counted().index, "gender"] += target - (woman - man)
    return planted
