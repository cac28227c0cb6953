"""The planted world: scenes and captions drawn from a known distribution, and its truth."""

import functools
from dataclasses import dataclass, field

import numpy as np
import pandas

from biaslib.runtime import unknown_name
from plantedworld._frames import frames
from plantedworld._scenes import PICTURED_OBJECTS, PICTURED_ROLES, looks
from plantedworld._seeds import FIRST_DRAWN, N_WORLDS, drawn_seed
from plantedworld._tables import (
    CAPTION_GENDER,
    GENDERS,
    IN_BOTH,
    PICTURE_GENDER,
    TONE,
    TONES,
    Design,
)
from plantedworld._truth import AGE_SHARES, AGES, Evidence, Truth
from plantedworld._words import NOTHING, SLOT_SHARES, Plan, agent_words, content_words, controls

CAPTION_SHARES = {"both": IN_BOTH, "text": 1.0, "images": 0.0}
"""Share of an association that goes with the caption's gender, by where it is planted."""

SCENE_SLOTS = tuple(slot for slot in SLOT_SHARES if slot != "agent")
"""The slots that every scene fills, whether or not its caption is about them."""

AS_SHOWN = Evidence()


@dataclass(frozen=True)
class World:
    """A world whose associations we planted. Make one with :func:`world`."""

    dose: float
    seed: int
    planted_in: str
    wrong_gender: float
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def training_seed(self) -> int:
        """Seed of a corpus and of a model's weights."""
        drawn = drawn_seed(self.seed)
        return self.seed if drawn is None else drawn

    @property
    def plan(self) -> Plan:
        """What is planted on every word, whatever the dose."""
        drawn = drawn_seed(self.seed)
        if drawn is None:
            return NOTHING
        left_out = int(Plan(drawn).draw("pair", "control") * len(controls()))
        return Plan(drawn, controls()[left_out])

    @property
    def control(self) -> str:
        """The pair of sets that this seed leaves unplanted."""
        return self.plan.control

    @property
    def design(self) -> Design:
        """What is planted, as numbers."""
        return Design(
            dose=self.dose,
            plan=self.plan,
            caption_share=CAPTION_SHARES[self.planted_in],
            wrong_gender=self.wrong_gender,
        )

    @functools.cached_property
    def truth(self) -> Truth:
        """Exact answers for captions and images."""
        return Truth(self.design, "captions", self.evidence)

    @functools.cached_property
    def text_truth(self) -> Truth:
        """Exact answers for the text corpus, whose strengths differ by the words' shift."""
        return Truth(self.design, "text", self.evidence)

    def scenes(self, n: int, rng: np.random.Generator, split: str = "train") -> pandas.DataFrame:
        """Draw scenes: what is there, and how it is shown.

        Parameters
        ----------
        n
            How many.
        rng
            Source of randomness.
        split
            ``"train"``, or ``"tune"`` or ``"test"`` for portraits that training never shows.

        Returns
        -------
        pandas.DataFrame
            One row per scene: person, gender, caption_gender, tone, age, role, object, attribute,
            thing (the latent variables); gender_shown, role_shown, object_view, look, layout (how
            :func:`plantedworld.draw` shows them).

        Examples
        --------
        >>> scenes = world(strength=3, seed=0).scenes(5, np.random.default_rng(1))
        >>> bool(scenes["tone"].between(1, 5).all())
        True
        """
        latents = self._latents(self.truth, n, rng)
        views = self._views(n, rng, split)
        return latents.assign(**views).pipe(_consistent)

    def captions(self, scenes: pandas.DataFrame, rng: np.random.Generator) -> pandas.DataFrame:
        """Draw one caption a scene: columns text, frame, content, agent, rows as the scenes."""
        return _captions(self.truth, scenes, rng)

    def text_corpus(self, n: int, rng: np.random.Generator) -> pandas.DataFrame:
        """Draw captions without images from the text corpus.

        Columns as of :meth:`captions`, and the latent variables.
        """
        latents = self._latents(self.text_truth, n, rng)
        return latents.join(_captions(self.text_truth, latents, rng))

    def _latents(self, truth: Truth, n: int, rng: np.random.Generator) -> pandas.DataFrame:
        cell = rng.choice(len(TONE), size=n, p=np.exp(self.design.log_cells))
        words = {slot: _draw_words(truth, slot, cell, rng) for slot in SCENE_SLOTS}
        return pandas.DataFrame(
            {
                "person": rng.random(n) >= SLOT_SHARES["thing"],
                "gender": np.array(GENDERS)[PICTURE_GENDER[cell]],
                "caption_gender": np.array(GENDERS)[CAPTION_GENDER[cell]],
                "tone": TONE[cell],
                "age": rng.choice(AGES, size=n, p=AGE_SHARES),
                **words,
            }
        )

    def _views(self, n: int, rng: np.random.Generator, split: str) -> dict[str, np.ndarray]:
        seen, ambiguous = self.evidence.shown_object, self.evidence.ambiguous_object
        views = ("visible", "ambiguous", "hidden")
        return {
            "gender_shown": rng.random(n) < self.evidence.shown_gender,
            "role_shown": rng.random(n) < self.evidence.shown_role,
            "object_view": rng.choice(views, size=n, p=(seen, ambiguous, 1 - seen - ambiguous)),
            "look": rng.choice(looks(split), size=n),
            "layout": rng.integers(0, 2**31, size=n),
        }


def world(
    strength: float,
    seed: int,
    planted_in: str = "both",
    wrong_gender: float = 0.1,
    *,
    evidence: Evidence = AS_SHOWN,
) -> World:
    """Return a world with a known bias.

    Parameters
    ----------
    strength
        Factor on every planted log-odds, the dose of chapters and checkpoints: 0 is a world without
        bias; at 1, captions have the proportions of study 3's Table 1.
    seed
        Draws what is planted on every word, how frequent each is, which set of a pair goes with
        women, and which pair is left out. From 0 to 9, the worlds of the held-out test (see
        ``plantedworld/PROTOCOL.md``); from 2,000 on, any other. Those between name worlds without
        bias, for encoders that several models share: nothing is drawn.
    planted_in
        ``"both"``: associations go with the gender in the picture and that in the caption alike;
        ``"text"`` or ``"images"``: with one of the two.
    wrong_gender
        Probability that the caption has the other gender than the picture.
    evidence
        How pictures show what is there.

    Raises
    ------
    ValueError
        If the strength or seed is negative, a rate is not between 0 and 1, or a bias is
        asked of a seed that draws none.
    UnknownNameError
        If ``planted_in`` is none of the three.

    Examples
    --------
    >>> world(strength=1, seed=0).truth.log_ratio(["nurse"], given="caption").round(2).tolist()
    [0.8]
    """
    if planted_in not in CAPTION_SHARES:
        raise unknown_name("place to plant in", planted_in, CAPTION_SHARES)
    if not strength >= 0:
        raise ValueError(f"the strength must be 0 or more and is {strength}")
    if seed < 0:
        raise ValueError(f"the seed must be 0 or more and is {seed}")
    if not 0 < wrong_gender < 1:
        raise ValueError(f"wrong_gender must be between 0 and 1 and is {wrong_gender}")
    if drawn_seed(seed) is None and strength:
        raise ValueError(
            f"seed {seed} draws nothing, so that its world has no bias (strength 0); use one from "
            f"0 to {N_WORLDS - 1}, or from {FIRST_DRAWN:,} on"
        )
    return World(strength, seed, planted_in, wrong_gender, evidence)


def _consistent(scenes: pandas.DataFrame) -> pandas.DataFrame:
    """Show a role only on adults whose role can be drawn, an object only if it can be drawn.

    A picture without a person shows neither.
    """
    role = scenes["role"].isin(PICTURED_ROLES) & (scenes["age"] == "adult") & scenes["person"]
    drawn = scenes["object"].isin(PICTURED_OBJECTS) & scenes["person"]
    return scenes.assign(
        role_shown=scenes["role_shown"] & role,
        object_view=scenes["object_view"].where(drawn, "hidden"),
    )


def _draw_words(truth: Truth, slot: str, cell: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rows = (content_words()["slot"] == slot).to_numpy()
    probability = np.exp(truth.log_words[rows]) / SLOT_SHARES[slot]
    return content_words().index[rows].to_numpy()[_draw_rows(probability, cell, rng)]


def _draw_rows(probability: np.ndarray, column: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a row for each of the given columns, each column being a distribution over rows."""
    cumulative = np.cumsum(probability, axis=0)
    cumulative /= cumulative[-1]
    drawn = np.empty(len(column), dtype=int)
    for value in np.unique(column):
        here = column == value
        drawn[here] = np.searchsorted(cumulative[:, value], rng.random(here.sum()), side="right")
    return drawn


def _captions(truth: Truth, scenes: pandas.DataFrame, rng: np.random.Generator) -> pandas.DataFrame:
    cell = _cells(scenes)
    content = _contents(truth, scenes, cell, rng)
    rows = content_words().index.get_indexer(content)
    frame = _draw_rows(np.exp(truth.log_frames.T), rows, rng)
    agent = np.full(len(scenes), "", dtype=object)
    for place, log_agents in truth.log_agents.items():
        here = np.array([frames()[index].place == place for index in frame])
        drawn = _draw_rows(np.exp(log_agents), cell[here], rng)
        agent[here] = agent_words()["word"].to_numpy()[drawn]
    words = zip(frame, content, agent, strict=True)
    text = [frames()[index].write(word, person) for index, word, person in words]
    columns = {"text": text, "frame": frame, "content": content, "agent": agent}
    return pandas.DataFrame(columns, index=scenes.index)


def _cells(scenes: pandas.DataFrame) -> np.ndarray:
    """Return the cell of each scene."""
    picture = (scenes["gender"] == "man").to_numpy(int)
    caption = (scenes["caption_gender"] == "man").to_numpy(int)
    return (picture * 2 + caption) * len(TONES) + scenes["tone"].to_numpy() - 1


def _contents(
    truth: Truth, scenes: pandas.DataFrame, cell: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw what each caption is about: a thing where nobody is there, else a word of the scene."""
    shares = {slot: share for slot, share in SLOT_SHARES.items() if slot != "thing"}
    probability = np.array(list(shares.values())) / sum(shares.values())
    slot = rng.choice(list(shares), size=len(scenes), p=probability)
    slot = np.where(scenes["person"], slot, "thing")
    alone = _draw_rows(np.exp(truth.log_agents["alone"]), cell, rng)
    agent = agent_words()["word"].to_numpy()[alone]
    of_scene = [scenes[name] for name in SCENE_SLOTS]
    return np.select([slot == name for name in SCENE_SLOTS], of_scene, agent)
