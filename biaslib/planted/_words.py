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

COUNTED_IN_LAION = ("hamidieh2023", 1)
"""The published table whose proportions the captions have at dose 1."""


@functools.cache
def agent_words() -> pandas.DataFrame:
    """Return the words for people: word, kind, gender, tone, weight, and phrase, its SEAT kind.

    Names and nouns say a gender; names of study 1's race tests also lean to one end of the tones.

    Examples
    --------
    >>> agent_words().query("word == 'woman'")[["kind", "gender"]].values.tolist()
    [['noun', 'woman']]
    """
    agents = read_table("agents.csv", dtype={"tone": str}, keep_default_na=False)
    return agents.assign(word=agents["word"].str.lower())


@functools.cache
def content_words() -> pandas.DataFrame:
    """Return every content word: its slot, the frames that carry it, and what is planted.

    Returns
    -------
    pandas.DataFrame
        Indexed by word (lower case). ``slot`` is role, object, attribute, thing or agent;
        ``groups`` names the groups of frames that can carry the word; ``phrase`` is its form in a
        frame that asks for a phrase, such as ``"a {word}"``; ``weight`` is its frequency in the
        slot up to a factor. ``gender``, ``tone`` and ``interaction`` are log-odds at dose 1;
        ``shift`` is added to ``gender`` in the captions of images and not in the text corpus, so
        that pre-training on images has something to change. ``pair`` names the planted pair of
        sets that the word belongs to, or is empty.

    Examples
    --------
    >>> content_words().loc[["apron", "nurse"], "slot"].tolist()
    ['object', 'role']
    """
    words = pandas.concat([_agents(), _entities(), _pictured_roles(), _taxonomy(), _test_words()])
    words["groups"] = words.groupby(level=0)["groups"].transform(_joined)
    words = words[~words.index.duplicated()]
    return words.join(_strengths(words))


def controls() -> tuple[str, ...]:
    """Return the pairs of sets that a seed can leave unplanted: seed s leaves out pair s modulo 5.

    Examples
    --------
    >>> controls()[0], len(controls())
    ('career and family', 5)
    """
    pairs = planted_sets()["pair"].unique()
    return tuple(pair for pair in pairs if pair not in ("occupations", "angry Black woman"))


@functools.cache
def planted_sets() -> pandas.DataFrame:
    """Return the directions of the planted sets: set, pair, gender, tone, interaction."""
    return read_table("planted_sets.csv")


def letters_draw(word: str, purpose: str) -> float:
    """Return a number in [0, 1) that depends on the word's letters and the purpose alone.

    Examples
    --------
    >>> letters_draw("apron", "gender") == letters_draw("apron", "gender")
    True
    """
    return int(hashlib.sha256(f"{purpose}:{word}".encode()).hexdigest()[:12], 16) / 16**12


def read_table(name: str, **options: object) -> pandas.DataFrame:
    """Return a table of ``biaslib/planted/data``."""
    with (importlib.resources.files("biaslib.planted") / "data" / name).open() as file:
        return pandas.read_csv(file, **options)


def _agents() -> pandas.DataFrame:
    agents = agent_words()
    groups = "agent " + agents["kind"].where(agents["kind"] == "name", "").mask(
        agents["kind"] == "noun", "noun"
    )
    return _rows(agents["word"], "agent", groups, agents["phrase"], agents["weight"])


def _entities() -> pandas.DataFrame:
    entities = stimuli.entities()
    kind = np.where(entities["frame"].str.contains(r" an? \{"), "count noun", "mass noun")
    groups = "object " + entities["frame"].str.replace(" ", "_")
    return _rows(entities["entity"], "object", groups, kind)


def _pictured_roles() -> pandas.DataFrame:
    return _rows(list(PICTURED_ROLES), "role", "person", "count noun", COUNTED_WORDS)


def _taxonomy() -> pandas.DataFrame:
    words = stimuli.taxonomy("sobit")
    slot = np.where(words["bias_type"] == "Occupation", "role", "attribute")
    plain = words["caption"].str.contains(r"of an? ")
    groups = np.where(words["kind"].isin(["adjective", "activity"]), words["kind"], "person")
    groups = np.where(plain, groups, "topic")
    kind = np.select([~plain, groups == "adjective"], ["mass noun", "adjective"], "count noun")
    kind = np.where(groups == "activity", "mass noun", kind)
    counted = words["word"].isin(published.table(*COUNTED_IN_LAION)["word"])
    return _rows(words["word"], slot, groups, kind, np.where(counted, COUNTED_WORDS, 1.0))


def _test_words() -> pandas.DataFrame:
    words = stimuli.word_frame()
    words = words[~words["word"].str.lower().isin(agent_words()["word"])]
    role = words["set"].str.startswith("occupations")
    planted = words["set"].isin(planted_sets()["set"])
    adjective = words["kind"] == "adjective"
    slot = np.select([role, planted], ["role", "attribute"], "thing")
    groups = np.select([role, planted & adjective, planted], ["person", "adjective", "topic"], "thing")
    weight = np.where(role, COUNTED_WORDS, 1.0)
    return _rows(words["word"], slot, groups, words["kind"], weight)


def _rows(word, slot, groups, kind, weight=1.0) -> pandas.DataFrame:
    forms = {kind: form.replace("{a}", "a") for kind, form in stimuli.phrases().items()}
    columns = {"slot": slot, "groups": groups, "kind": kind, "weight": weight}
    frame = pandas.DataFrame({"word": pandas.Series(word).str.lower().to_numpy()})
    for name, values in columns.items():
        frame[name] = np.asarray(values)
    return frame.assign(phrase=frame.pop("kind").map(forms)).set_index("word")


def _joined(groups: pandas.Series) -> str:
    return " ".join(dict.fromkeys(" ".join(groups).split()))


def _strengths(words: pandas.DataFrame) -> pandas.DataFrame:
    """Log-odds at dose 1: from the planted sets, the entities' stereotypes, or the letters."""
    strengths = pandas.DataFrame(0.0, index=words.index, columns=["gender", "tone", "interaction"])
    for name in strengths:
        drawn = words["slot"].isin(DRAWN_SLOTS[name])
        strengths.loc[drawn, name] = [_between(word, name) for word in words.index[drawn]]
    strengths = strengths.assign(pair="", shift=0.0)
    return strengths
