"""The words of the planted world, and how strongly each is planted.

A content word belongs to one slot: a role, an object, an attribute or a thing; the words for
people form the slot agent. Association strengths are log-odds at dose 1: ``gender`` compares women
with men, ``tone`` compares tone 5 with tone 1, ``interaction`` is the tone contrast among women
minus that among men, halved. They are drawn from the letters of a word and from a seed: so adding a
word changes no other, and no word's strength is a claim about the word.
"""

import functools
import hashlib
import importlib.resources
from dataclasses import dataclass

import numpy as np
import pandas
from scipy import stats

from biaslib import published, stimuli
from plantedworld._scenes import PICTURED_OBJECTS, PICTURED_ROLES, object_pairs

SLOT_SHARES = {"role": 0.28, "object": 0.2, "attribute": 0.32, "thing": 0.05, "agent": 0.15}
"""How often a caption is about each slot."""

WEAKEST, STRONGEST = 0.3, 1.1
"""Bounds of a planted word's log-odds at dose 1, without their sign."""

COUNTED_WORDS = 3.0
"""Weight of the roles that the studies look at, against 1 for the other roles."""

FREQUENCY_SPREAD = 0.35
"""Standard deviation of the log of a word's frequency."""

INTERACTION = 0.5
"""Bound of the interaction of an attribute word."""


@dataclass(frozen=True)
class Plan:
    """What is planted, whatever the dose.

    Attributes
    ----------
    seed
        Draws strengths, signs and frequencies of every word. None plants nothing.
    control
        The pair of sets that is left out, one of :func:`controls`, or none.
    """

    seed: int | None = None
    control: str = ""

    def draw(self, word: str, purpose: str) -> float:
        """Return a number in [0, 1) that depends on seed, word and purpose alone.

        Examples
        --------
        >>> Plan(7).draw("apron", "gender") == Plan(8).draw("apron", "gender")
        False
        """
        text = f"{self.seed}:{purpose}:{word}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12

    def sign(self, name: str, purpose: str) -> float:
        """Return 1 or -1, each half of the time."""
        return 1.0 if self.draw(name, f"sign of {purpose}") < 0.5 else -1.0


NOTHING = Plan()
"""No word goes with anybody."""


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
    """Return every content word: its slot, the frames that carry it, and how frequent it is.

    Returns
    -------
    pandas.DataFrame
        Indexed by word (lower case). ``slot`` is role, object, attribute, thing or agent;
        ``groups`` names the groups of frames that can carry the word; ``phrase`` is its form in a
        frame that asks for a phrase, such as ``"a {word}"``; ``weight`` is its frequency in the
        slot up to a factor.

    Examples
    --------
    >>> content_words().loc[["apron", "nurse"], "slot"].tolist()
    ['object', 'role']
    """
    words = pandas.concat([_agents(), _entities(), _pictured_roles(), _taxonomy(), _test_words()])
    words["groups"] = words.groupby(level=0)["groups"].transform(_joined)
    return words[~words.index.duplicated()]


@functools.cache
def strengths(plan: Plan) -> pandas.DataFrame:
    """Return what is planted on every content word: its log-odds at dose 1.

    Parameters
    ----------
    plan
        Which world's. Words of its control carry nothing at all, also where another set holds
        them.

    Returns
    -------
    pandas.DataFrame
        Rows as in :func:`content_words`. ``gender`` compares women with men, ``tone`` tone 5 with
        tone 1, ``interaction`` half the difference of the tone contrast between women and men;
        ``shift`` is added to ``gender`` in the captions of images and not in the text corpus, so
        that pre-training on images has something to change. ``share`` is how much of a word's
        association goes with the caption's gender; the rest goes with the picture's, so that the
        two can be told apart.

    Examples
    --------
    >>> float(strengths(Plan(7)).at["purse", "gender"].round(2))
    -0.99
    >>> float(strengths(Plan(7, control="career and family")).at["salary", "gender"])
    0.0
    """
    words = content_words()
    columns = ["gender", "tone", "interaction", "share", "shift"]
    planted = pandas.DataFrame(0.0, index=words.index, columns=columns)
    if plan.seed is None:
        return planted
    planted["gender"] = _drawn(plan, "gender", ["role", "attribute"]) + _of_entities(plan)
    planted["tone"] = _drawn(plan, "tone", ["attribute"])
    planted["interaction"] = INTERACTION * _drawn(plan, "interaction", ["attribute"])
    planted["share"] = [plan.draw(word, "share") for word in words.index]
    planted["shift"] = 0.5 * _drawn(plan, "shift", ["role", "object"])
    planted.loc[counted().index, "shift"] = 0.0
    of_sets = _set_strengths(plan)
    planted.loc[of_sets.index, of_sets.columns] = of_sets
    planted.loc[_words_of_pair(plan.control), [*of_sets.columns, "shift"]] = 0.0
    return planted


@functools.cache
def frequencies(plan: Plan) -> pandas.Series:
    """Return how frequent every content word is in its slot, up to a factor.

    Words that pictures show, those that are counted for study 3's Table 1, and those for people
    keep their weight; of the others the logarithm is drawn with a spread of
    :data:`FREQUENCY_SPREAD`.

    Examples
    --------
    >>> frequencies(Plan(7)).loc[["apron", "nurse"]].tolist()
    [1.0, 3.0]
    """
    words = content_words()
    weight = words["weight"].copy()
    if plan.seed is None:
        return weight
    kept = words["slot"].isin(["agent", "thing"]) | words.index.isin(counted().index)
    kept |= words.index.isin([*PICTURED_ROLES, *PICTURED_OBJECTS])
    normal = stats.norm.ppf([plan.draw(w, "frequency") * 0.998 + 0.001 for w in words.index])
    return weight.where(kept, weight * np.exp(FREQUENCY_SPREAD * normal))


def controls() -> tuple[str, ...]:
    """Return the pairs of sets that a seed can leave unplanted.

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


@functools.cache
def counted() -> pandas.Series:
    """Return the share of women among the captions of each word of study 3's Table 1.

    Examples
    --------
    >>> float(counted()["nurse"])
    0.69
    """
    rows = published.table("hamidieh2023", 1)
    return pandas.Series((rows["female"] / 100).to_numpy(), rows["word"].str.lower()).round(4)


def read_table(name: str, **options: object) -> pandas.DataFrame:
    """Return a table of ``plantedworld/data``."""
    with (importlib.resources.files("plantedworld") / "data" / name).open() as file:
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
    frames = entities["frame"].str.replace(" an {", " a {")
    groups = "object " + frames.str.replace(" ", "_")
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
    in_laion = words["word"].str.lower().isin(counted().index)
    return _rows(words["word"], slot, groups, kind, np.where(in_laion, COUNTED_WORDS, 1.0))


def _test_words() -> pandas.DataFrame:
    words = stimuli.word_frame()
    words = words[~words["word"].str.lower().isin(agent_words()["word"])]
    role = words["set"].str.startswith("occupations")
    planted = words["word"].isin(words.loc[words["set"].isin(planted_sets()["set"]), "word"])
    adjective = words["kind"] == "adjective"
    slot = np.select([role, planted], ["role", "attribute"], "thing")
    groups = np.select(
        [role, planted & adjective, planted], ["person", "adjective", "topic"], "thing"
    )
    weight = np.where(role, COUNTED_WORDS, 1.0)
    return _rows(words["word"], slot, groups, words["kind"], weight)


def _rows(word, slot, groups, kind, weight=1.0) -> pandas.DataFrame:
    forms = {kind: form.replace("{a}", "a") for kind, form in stimuli.phrases().items()}
    columns = {"slot": slot, "groups": groups, "kind": kind, "weight": weight}
    frame = pandas.DataFrame({"word": pandas.Series(word).str.lower().to_numpy()})
    for name, values in columns.items():
        frame[name] = np.asarray(values).tolist()
    return frame.assign(phrase=frame.pop("kind").map(forms)).set_index("word")


def _joined(groups: pandas.Series) -> str:
    return " ".join(dict.fromkeys(" ".join(groups).split()))


def _drawn(plan: Plan, purpose: str, slots: list[str]) -> pandas.Series:
    """Strengths between minus and plus the strongest."""
    words = content_words()
    draws = pandas.Series([2 * plan.draw(word, purpose) - 1 for word in words.index], words.index)
    return STRONGEST * draws.where(words["slot"].isin(slots), 0.0)


def _magnitude(plan: Plan, word: str, purpose: str) -> float:
    return WEAKEST + (STRONGEST - WEAKEST) * plan.draw(word, purpose)


def _of_entities(plan: Plan) -> pandas.Series:
    """Strengths of the entities: an object and its partner go with opposite genders.

    Which with which, the seed draws.
    """
    entities = stimuli.entities()
    sign = np.where(entities["stereotype"] == "women", 1, -1)
    sign = sign * [plan.sign(_pair_of()[word], "gender") for word in entities["entity"]]
    sizes = [_magnitude(plan, word, "gender") for word in entities["entity"]]
    found = pandas.Series(sign * sizes, entities["entity"])
    return found.reindex(content_words().index, fill_value=0.0)


@functools.cache
def _pair_of() -> dict[str, str]:
    """Return by object the one of its pair that comes first."""
    return {word: pair[0] for pair in object_pairs().to_numpy().tolist() for word in pair}


def _set_strengths(plan: Plan) -> pandas.DataFrame:
    """Strengths of the words of the planted sets; a word in two sets has the sum of both.

    Which set of a pair goes with women, and which with tone 5, the seed draws.
    """
    rows = _words_of_sets()
    for name in ("gender", "tone", "interaction"):
        rows[name] *= np.array([_magnitude(plan, word, name) for word in rows["word"]])
        rows[name] *= np.array([plan.sign(pair, name) for pair in rows["pair"]])
    return rows.groupby("word")[["gender", "tone", "interaction"]].sum()


def _words_of_pair(pair: str) -> list[str]:
    """The words of a pair of sets, those that another set holds as well included."""
    return _words_of_sets().query("pair == @pair")["word"].unique().tolist()


def _words_of_sets() -> pandas.DataFrame:
    rows = stimuli.word_frame().merge(planted_sets(), on="set")
    return rows.assign(word=rows["word"].str.lower())
