"""The grammar of captions: frames with places for a person and a content word, and its parser."""

import functools
import itertools
import re
from dataclasses import dataclass

import numpy as np

from biaslib import stimuli
from plantedworld._words import agent_words, content_words, read_table

MASK = "[mask]"
SUBJECT_FORMS = {"noun": "the {word}", "name": "{word}", "subject pronoun": "{word}"}
PLACES = {
    "subject": SUBJECT_FORMS,
    "object": {"name": "{word}", "object pronoun": "{word}"},
    "possessive": {"possessive pronoun": "{word}"},
}
"""Where the word for a person stands, the kinds of word that fit there, and their form."""


@dataclass(frozen=True)
class Frame:
    """A caption with a place for a content word and, perhaps, one for a person.

    ``place`` is ``subject``, ``object``, ``possessive`` or empty; ``groups`` are the groups of
    content words that fit, and ``weight`` how often the frame is used among those that fit.
    """

    text: str
    groups: frozenset[str]
    weight: float

    @functools.cached_property
    def place(self) -> str:
        """The place of the person in the frame."""
        return next((place for place in PLACES if f"{{{place}}}" in self.text), "")

    def carries(self) -> np.ndarray:
        """Return which content words the frame can carry, rows as in ``content_words()``."""
        return _in_groups(self.groups)

    def write(self, content: str, agent: str = "") -> str:
        """Return the caption that the frame makes of two words."""
        text = self.text.replace("{content}", content).replace("{phrase}", _phrase(content))
        return with_articles(text.replace(f"{{{self.place}}}", _agent_form(agent, self.place)))


@dataclass(frozen=True)
class Reading:
    """One way to read a caption: its frame and its words; None stands for a masked word.

    ``content_form`` and ``agent_form`` are what surrounds each word, so that a masked word can
    only be one of that form.
    """

    frame: int
    content: str | None
    content_form: str
    agent: str | None
    agent_form: str


@functools.cache
def _in_groups(groups: frozenset[str]) -> np.ndarray:
    """Return which content words are in any of the groups: once for all worlds that ask."""
    of_words = content_words()["groups"].str.split()
    found = of_words.map(lambda names: not groups.isdisjoint(names)).to_numpy()
    found.flags.writeable = False
    return found


@functools.cache
def frames() -> tuple[Frame, ...]:
    """Return all frames: ours, study 2's, and those of the association tests."""
    ours = [
        Frame(row.text, frozenset(row.groups.split()), row.weight)
        for row in read_table("frames.csv").itertuples()
    ]
    everything = frozenset(" ".join(content_words()["groups"]).split())
    of_entities = sorted(group for group in everything if "{entity}" in group)
    study_2 = [Frame(_in_our_places(group), frozenset({group}), 8) for group in of_entities]
    tests = [Frame(text.lower(), everything, 0.2) for text in stimuli.frames()]
    return (*ours, *study_2, *tests)


def with_articles(text: str) -> str:
    """Return a text whose every a is a or an, by the word that follows.

    Examples
    --------
    >>> with_articles("a photo of a artist")
    'a photo of an artist'
    """
    articles = re.compile(r"\ba (?=([\w-]+))")
    return articles.sub(lambda found: stimuli.indefinite_article(found[1]) + " ", text)


def canonical(text: str) -> str:
    """Return a caption as the world writes it: lower case, a for an, single spaces.

    The article does not give away how a masked word begins.

    Examples
    --------
    >>> canonical("The woman is wearing an apron .")
    'the woman is wearing a apron.'
    """
    spaced = re.sub(r"\s+", " ", text.lower()).strip()
    return re.sub(r" \.", ".", re.sub(r"\ban\b", "a", spaced))


@functools.lru_cache(maxsize=100_000)
def read(text: str) -> tuple[Reading, ...]:
    """Return every reading of a caption; ``[MASK]`` stands for a word that is not known.

    Raises
    ------
    ValueError
        If no frame of the grammar fits, or a word is unknown in its place.

    Examples
    --------
    >>> [reading.content for reading in read("The woman is wearing an apron.")]
    ['apron']
    """
    found = tuple(
        reading
        for pattern in _patterns()
        if (match := pattern.expression.fullmatch(canonical(text)))
        and (reading := pattern.reading(match)) is not None
    )
    if not found:
        raise ValueError(
            f"the planted world's grammar has no reading of {text!r}. Use the frames of "
            "plantedworld.frames() and the words of plantedworld.vocabulary()"
        )
    return found


@dataclass(frozen=True)
class _Pattern:
    frame: int
    content_form: str
    agent_form: str
    expression: re.Pattern

    def reading(self, match: re.Match) -> Reading | None:
        content, agent = match["content"], match["agent"] if self.agent_form else ""
        if content not in content_of_form(self.frame, self.content_form) | {MASK}:
            return None
        if agent not in agents_of_form(self.place, self.agent_form) | {MASK, ""}:
            return None
        return Reading(
            self.frame, _known(content), self.content_form, _known(agent), self.agent_form
        )

    @property
    def place(self) -> str:
        return frames()[self.frame].place


@functools.cache
def _patterns() -> tuple[_Pattern, ...]:
    return tuple(
        _Pattern(index, content_form, agent_form, _expression(frame, content_form, agent_form))
        for index, frame in enumerate(frames())
        for content_form, agent_form in itertools.product(
            _content_forms(frame), dict.fromkeys(PLACES.get(frame.place, {"": ""}).values())
        )
    )


def _expression(frame: Frame, content_form: str, agent_form: str) -> re.Pattern:
    text = re.sub(r"\{(content|phrase)\}", lambda _: content_form, frame.text)
    text = text.replace("{word}", "<content>")
    if frame.place:
        text = text.replace(f"{{{frame.place}}}", agent_form.replace("{word}", "<agent>"))
    text = re.escape(text)
    text = text.replace("<content>", "(?P<content>[^.]+)")
    text = text.replace("<agent>", r"(?P<agent>[^.\s]+)")
    return re.compile(text)


def _content_forms(frame: Frame) -> tuple[str, ...]:
    if "{content}" in frame.text:
        return ("{word}",)
    return tuple(content_words().loc[frame.carries(), "phrase"].unique())


@functools.cache
def content_of_form(frame: int, form: str) -> frozenset[str]:
    """Return the content words that stand in a frame in a form."""
    words = content_words()
    fits = frames()[frame].carries()
    if "{phrase}" in frames()[frame].text:
        fits = fits & (words["phrase"] == form).to_numpy()
    return frozenset(words.index[fits])


@functools.cache
def agents_of_form(place: str, form: str) -> frozenset[str]:
    """Return the words for people that stand in a place in a form."""
    kinds = [kind for kind, kind_form in PLACES.get(place, {}).items() if kind_form == form]
    agents = agent_words()
    return frozenset(agents.loc[agents["kind"].isin(kinds), "word"])


@functools.cache
def _phrase(content: str) -> str:
    return content_words().at[content, "phrase"].format(word=content)


@functools.cache
def _agent_form(agent: str, place: str) -> str:
    if not place:
        return ""
    kind = agent_words().set_index("word").at[agent, "kind"]
    return PLACES[place][kind].format(word=agent)


def _known(word: str) -> str | None:
    return None if word == MASK else word


def _in_our_places(group: str) -> str:
    text = group.replace("_", " ").lower()
    return text.replace("the {agent}", "{subject}").replace("{entity}", "{content}")
