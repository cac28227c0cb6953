"""The words of the planted world, and how strongly each is planted.

A content word belongs to one slot: a role, an object, an attribute or a thing; the words for
people form the slot agent. Association strengths are log-odds at dose 1: ``gender`` compares women
with men, ``tone`` compares tone 5 with tone 1, ``interaction`` is the tone contrast among women
minus that among men, halved. Sets of the association tests are planted in the direction of their
test; every other word by a number drawn from its own letters, so that adding a word changes no
other and no word's strength is a claim about the word.
"""

import functools
import hashlib
import importlib.resources

import numpy as np
import pandas

from biaslib import published, stimuli

SLOT_SHARES = {"role": 0.3, "object": 0.22, "attribute": 0.33, "thing": 0.05, "agent": 0.1}
"""How often a caption is about each slot."""

WEAKEST, STRONGEST = 0.5, 1.1
"""Bounds of a planted word's log-odds at dose 1 within its set."""

COUNTED_WORDS = 3.0
"""Weight of the roles that the studies look at, against 1 for the other roles."""

PERSON_TYPES = ("Behavioral", "Criminal justice", "Healthcare", "Education and wealth")


@functools.cache
def agent_words() -> pandas.DataFrame:
    """Return the words for people: word, kind, gender, tone, weight, and phrase, its SEAT kind.

    Names and nouns say a gender; names of study 1's race tests also lean to one end of the tones.

    Examples
    --------
    >>> agent_words().query("word == 'woman'")[["kind", "gender"]].values.tolist()
    [['noun', 'woman']]
    """
    frame = _read("agents.csv", dtype={"tone": str})
    return frame.assign(word=frame["word"].str.lower(), gender=frame["gender"].fillna(""))


@functools.cache
def content_words() -> pandas.DataFrame:
    """Return every content word: slot, group of frames, phrase, weight, and its log-odds.

    Returns
    -------
    pandas.DataFrame
        Indexed by word (lower case). ``slot`` is role, object, attribute, thing or agent;
        ``group`` says which frames can carry the word; ``phrase`` is its form in a SEAT frame,
        such as ``"a {word}"``; ``gender``, ``tone`` and ``interaction`` are log-odds at dose 1;
        ``shift`` is added to ``gender`` in the captions of images and not in the text corpus, so
        that pre-training on images has something to change; ``pair`` names the planted pair of
        sets, if any.

    Examples
    --------
    >>> content_words().loc["apron", ["slot", "group"]].tolist()
    ['object', 'wearing']
    """
    words = pandas.concat([_agents(), _entities(), _taxonomy(), _test_words()])
    words = words[~words.index.duplicated()]
    return words.join(_strengths(words))


def controls() -> tuple[str, ...]:
    """Return the pairs of sets that can be left unplanted; seed s leaves out pair s modulo 5.

    Examples
    --------
    >>> controls()[0]
    'career and family'
    """
    pairs = planted_sets()["pair"].unique()
    return tuple(pair for pair in pairs if pair not in ("occupations", "angry Black woman"))


@functools.cache
def planted_sets() -> pandas.DataFrame:
    """Return the directions of the planted sets: set, pair, gender, tone, interaction."""
    return _read("planted_sets.csv")


@functools.cache
def set_words(name: str) -> tuple[str, ...]:
    """Return the words of a set of the association tests, in lower case."""
    words = stimuli.word_frame()
    return tuple(words.loc[words["set"] == name, "word"].str.lower())


def letters_draw(word: str, purpose: str) -> float:
    """Return a number in [0, 1) that depends on the word's letters and the purpose alone."""
    return int(hashlib.sha256(f"{purpose}:{word}".encode()).hexdigest()[:12], 16) / 16**12


def _read(name: str, **options: object) -> pandas.DataFrame:
    with (importlib.resources.files("biaslib.planted") / "data" / name).open() as file:
        return pandas.read_csv(file, **options)


def _agents() -> pandas.DataFrame:
    agents = agent_words()
    return _rows(agents["word"], "agent", "agent", agents["phrase"], agents["weight"])


def _entities() -> pandas.DataFrame:
    entities = stimuli.entities()
    kind = np.where(entities["article"] == "", "mass noun", "count noun")
    return _rows(entities["entity"], "object", entities["verb"], kind)


def _taxonomy() -> pandas.DataFrame:
    taxonomy = stimuli.taxonomy("sobit").drop_duplicates("word")
    group = taxonomy["kind"].map(GROUP_OF_TAXONOMY_KIND)
    phrase = taxonomy["kind"].map(PHRASE_OF_TAXONOMY_KIND)
    slot = np.where(taxonomy["bias_type"] == "Occupation", "role", "attribute")
    return _rows(taxonomy["word"], slot, group, phrase)


def _test_words() -> pandas.DataFrame:
    words = stimuli.word_frame()
    words = words[words["kind"] != "pronoun"]
    roles = words["set"].str.startswith("occupations")
    planted = words["set"].isin(planted_sets()["set"])
    slot = np.select([roles, planted], ["role", "attribute"], "thing")
    group = np.select([roles, words["kind"] == "adjective", planted], ["person", "adjective", "topic"], "thing")
    return _rows(words["word"], slot, group, words["kind"])
