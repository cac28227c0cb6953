"""Sets of scenes in the shapes of the four studies' image sets."""

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import stimuli
from biaslib.runtime import unknown_name
from plantedworld._frames import Frame, frames
from plantedworld._scenes import (
    OBJECT_VIEWS,
    PICTURED_OBJECTS,
    PICTURED_ROLES,
    looks,
    object_pairs,
)
from plantedworld._tables import GENDERS, TONES
from plantedworld._truth import planted_strengths
from plantedworld._words import agent_words, content_words
from plantedworld._world import AGES, World

PLURALS = {"woman": "women", "man": "men"}

CATEGORIES = ("gender", "profession", "tone", "age")
"""Categories of :func:`caption_choices`; on age nothing is planted."""

SHOWN = ("gender", "profession")
"""Those whose words a picture can show."""

CONTRAST = 0.6
"""Least difference, in log-odds at dose 1, between the two words of a choice."""

TARGETS_BY_AGE = {("child", "woman"): "girl", ("child", "man"): "boy"} | {
    ("older", "woman"): "grandmother",
    ("older", "man"): "grandfather",
}

MILD_WORDS = (
    "amused attached bored brave calm committed content curious dedicated excited friendly "
    "helpful hopeful independent loyal normal outgoing polite popular proud rational sensitive "
    "shy studious supportive surprised unconventional well-spoken"
)
"""The words of choices on tone and age: of those without a picture, ones that insult nobody."""


def faces(n_per_cell: int, rng: np.random.Generator, split: str = "tune") -> pandas.DataFrame:
    """Return neutral portraits, equally many of women and men in every tone: plays FairFace.

    Neither costume nor object is shown, and the gender always is. The three ages take turns, in
    the same way in every cell: balanced if ``n_per_cell`` is a multiple of 3.

    Parameters
    ----------
    n_per_cell
        Portraits of each gender in each of the five tones.
    rng
        Source of looks and layouts.
    split
        ``"train"`` or ``"tune"``: whose looks.

    Returns
    -------
    pandas.DataFrame
        10 ``n_per_cell`` rows: the columns of :meth:`World.scenes`, and ``group``, such as
        ``"women, tone 3"``.

    Examples
    --------
    >>> portraits = faces(3, np.random.default_rng(0))
    >>> len(portraits), portraits["group"].nunique()
    (30, 10)
    """
    rows = itertools.product(GENDERS, TONES, np.resize(AGES, n_per_cell))
    table = pandas.DataFrame(rows, columns=["gender", "tone", "age"])
    group = table["gender"].map(PLURALS) + ", tone " + table["tone"].astype(str)
    return _scenes(table, rng, split).assign(group=group)


def agents_with_entities(
    rng: np.random.Generator,
    entities: Sequence[str] | None = None,
    n_per_agent: int = 6,
    view: str = "visible",
    split: str = "tune",
) -> pandas.DataFrame:
    """Return scenes of a woman and of a man with every entity: plays the images of study 2.

    Everybody is an adult without costume, and women and men have the same tones.

    Parameters
    ----------
    rng
        Source of tones, looks and layouts.
    entities
        Names from :func:`biaslib.stimuli.entities`; ``None`` takes all 46.
    n_per_agent
        Scenes of a woman, and of a man, for each entity.
    view
        How the entity is shown: ``"visible"``, ``"ambiguous"`` or ``"hidden"``. In plain sight the
        truth is trivial: the entity is certain, whoever holds it.
    split
        ``"train"`` or ``"tune"``: whose looks.

    Returns
    -------
    pandas.DataFrame
        Two ``n_per_agent`` rows an entity: the columns of :meth:`World.scenes`, then ``entity``,
        ``set``, ``stereotype`` and ``frame`` of :func:`biaslib.stimuli.entities`.

    Raises
    ------
    UnknownNameError
        If an entity or the view is unknown.

    Examples
    --------
    >>> scenes = agents_with_entities(np.random.default_rng(0), ["apron"], view="hidden")
    >>> scenes["gender"].value_counts().to_dict()
    {'woman': 6, 'man': 6}
    """
    if view not in OBJECT_VIEWS:
        raise unknown_name("view of an object", view, OBJECT_VIEWS)
    known = stimuli.entities().set_index("entity")
    chosen = list(known.index) if entities is None else list(entities)
    for entity in set(chosen) - set(known.index):
        raise unknown_name("entity", entity, known.index)
    rows = [
        (entity, gender, tone)
        for entity in chosen
        for tones in [np.resize(rng.permutation(TONES), n_per_agent)]
        for gender, tone in itertools.product(GENDERS, tones)
    ]
    table = pandas.DataFrame(rows, columns=["object", "gender", "tone"]).assign(object_view=view)
    described = known.loc[table["object"], ["set", "stereotype", "frame"]].reset_index()
    return pandas.concat([_scenes(table, rng, split), described], axis=1)


def caption_choices(
    world: World, n_per_category: int, rng: np.random.Generator, split: str = "tune"
) -> pandas.DataFrame:
    """Return scenes with a choice of three captions in four categories: plays VLStereoSet.

    ============ ========================== ==================================== ==============
    category     the picture shows          the captions say                     planted on
    ============ ========================== ==================================== ==============
    gender       an object in plain sight   the woman is wearing ...             gender
    profession   a costume                  the woman is a ...                   gender
    tone         a portrait, tone 1 or 5    a name that leans to it, is ...      tone
    age          a child or an older person the girl is ...                      nothing
    ============ ========================== ==================================== ==============

    The stereotypical word is the one of its pair that the planted log-odds give to the person in
    the picture, the anti-stereotypical word the other one; both are equally frequent and stand in
    the same frame. In half of the scenes of each
    category the person has the one word, in the others the other; only an object and a costume can
    be seen, so that in the categories tone and age the picture does not say which caption is right.
    Age is the control: nothing is planted on
    it, and which of two words counts as the stereotype of children is drawn as strengths are.
    The stereotypes depend on the world's seed and not on its dose.

    The irrelevant caption says a third word of the same person in the same frame, one that the
    picture rules out where it shows the object or the costume. It is as frequent as the other two:
    of the words drawn in pictures, which all have one frequency, that whose planted log-odds lie
    nearest to the middle of the pair's and do not go with the person more than the stereotype
    does. In the categories tone and age no picture rules out such a word, and no caption of this
    world says a thing of a person: there the irrelevant caption is a photo of a thing. Such a
    caption is given for every scene, in a column of its own; it is far more frequent than the
    others, and a model only has to see that somebody is there.

    Parameters
    ----------
    world
        Whose associations say what is a stereotype.
    n_per_category
        Scenes a category, an even number.
    rng
        Source of everything else.
    split
        ``"train"`` or ``"tune"``: whose looks.

    Returns
    -------
    pandas.DataFrame
        Four ``n_per_category`` rows: the columns of :meth:`World.scenes`, then ``category``;
        ``target``, the word for the person; ``label``, ``"stereotype"`` or
        ``"anti-stereotype"``, whichever is there; ``label_shown``, whether the picture shows it;
        the captions ``stereotype``, ``anti-stereotype`` and ``irrelevant``, and
        ``neutral stereotype`` and ``neutral anti-stereotype``, which say "the person";
        ``stereotype word`` and ``anti-stereotype word``; and ``photo of a thing``, the other
        irrelevant caption.

    Raises
    ------
    ValueError
        If ``n_per_category`` is odd or below 2.

    Examples
    --------
    >>> from plantedworld import world
    >>> chosen = caption_choices(world(strength=1, seed=0), 2, np.random.default_rng(0))
    >>> chosen["category"].unique().tolist()
    ['gender', 'profession', 'tone', 'age']
    """
    if n_per_category < 2 or n_per_category % 2:
        raise ValueError(f"n_per_category must be even and at least 2 and is {n_per_category}")
    tables = [_choices(world, category, n_per_category, rng) for category in CATEGORIES]
    table = pandas.concat(tables, ignore_index=True)
    labels = [name for name in table if name not in DEFAULTS]
    return _scenes(table.drop(columns=labels), rng, split).join(table[labels])


def blank(n: int = 1) -> pandas.DataFrame:
    """Return scenes that are the white picture (:func:`plantedworld.white`): n equal rows.

    The truth takes such a scene to show nothing: not even that nobody is there, which in a picture
    of this world is a piece of evidence.

    Examples
    --------
    >>> from plantedworld import world
    >>> similarity = world(strength=1, seed=0).truth.similarity(["a photo of a nurse"], blank())
    >>> bool(abs(similarity[0, 0]) < 1e-9)
    True
    """
    table = pandas.DataFrame({"person": [False] * n, "blank": True, "gender": GENDERS[0]})
    return _scenes(table.assign(tone=TONES[0], look=0, layout=0), np.random.default_rng(0), "train")


def grounded_sets(
    test_name: str,
    rng: np.random.Generator,
    n_per_word: int = 1,
    split: str = "tune",
) -> dict[str, pandas.DataFrame]:
    """Return the scenes of one association test with images: plays the images of study 1.

    Attributes are seen in the context of each target set: ``Ax`` shows the words of A on the
    people of X, for example men in the costume of a nurse, ``Ay`` on those of Y. Names are shown by
    portraits: those of the gender tests by the gender that the name says in this world, those of
    the race tests by that gender and the tone, 1 or 5, that the name leans to (a choice of the
    planted world and no claim about anybody's name). A word that cannot be drawn has a picture of
    its context alone, or the white picture where the target has none either.

    Parameters
    ----------
    test_name
        One of study 1's 13 tests.
    rng
        Source of looks and layouts. Who is shown is the same in every draw: the people of a
        target set in turn, and the five tones in turn where a word names none, so that the sets
        to be compared do not differ in them.
    n_per_word
        Scenes a word and set.
    split
        ``"train"`` or ``"tune"``: whose looks.

    Returns
    -------
    dict
        The frames ``X``, ``Y``, ``Ax``, ``Ay``, ``Bx`` and ``By``: the columns of
        :meth:`World.scenes`, then ``word`` and ``drawn``, whether the picture shows it.

    Raises
    ------
    UnknownNameError
        If there is no such test in study 1.
    Examples
    --------
    >>> sets = grounded_sets("occupation-gender", np.random.default_rng(0))
    >>> sets["Ax"]["gender"].unique().tolist(), sets["Ax"]["drawn"].tolist()[:2]
    (['man'], [False, False])
    """
    known = stimuli.association_tests(study1=True)["name"].tolist()
    if test_name not in known:
        raise unknown_name("association test of study 1", test_name, known)
    test = stimuli.association_test(test_name)
    sets = {"X": (test.X, None), "Y": (test.Y, None)} | {
        f"{attribute}{target.lower()}": (getattr(test, attribute), getattr(test, target))
        for attribute, target in itertools.product("AB", "XY")
    }
    return {
        name: _grounded(words, context, test.kind, n_per_word, rng, split)
        for name, (words, context) in sets.items()
    }


DEFAULTS: dict[str, object] = {
    "person": True,
    "gender": None,
    "caption_gender": None,
    "tone": None,
    "age": "adult",
    "role": "",
    "object": "",
    "attribute": "",
    "thing": "",
    "gender_shown": True,
    "role_shown": False,
    "object_view": "hidden",
    "look": None,
    "layout": None,
    "blank": False,
}
"""The columns of a frame of scenes, and what they hold unless a set says otherwise."""


def _scenes(table: pandas.DataFrame, rng: np.random.Generator, split: str) -> pandas.DataFrame:
    """Return a frame of scenes: the columns given, and the defaults for all others."""
    drawn = {
        "caption_gender": table["gender"],
        "look": rng.choice(looks(split), size=len(table)),
        "layout": rng.integers(0, 2**31, size=len(table)),
    }
    columns = {name: table.get(name, drawn.get(name, value)) for name, value in DEFAULTS.items()}
    scenes = pandas.DataFrame(columns, index=table.index)
    absent = {name: value for name, value in DEFAULTS.items() if value is not None}
    kept = {n: scenes[n].where(scenes[n].notna(), value) for n, value in absent.items()}
    return scenes.assign(**kept).astype({n: type(value) for n, value in absent.items()})


def _choices(world: World, category: str, n: int, rng: np.random.Generator) -> pandas.DataFrame:
    pairs, things, lean = _pairs(category, world), _things(), _leans(world)["gender"]

    @functools.cache
    def third(words: tuple[str, str], person_side: int) -> str:
        return _third_word(words, lean * person_side)

    side = np.resize([1, -1], n).tolist()
    label = np.repeat(["stereotype", "anti-stereotype"], n // 2)
    rows = []
    for person_side, name in zip(side, label, strict=True):
        plus, minus = pairs[rng.integers(len(pairs))]
        words = (plus, minus) if person_side > 0 else (minus, plus)
        person = _person(category, person_side, rng)
        there = words[name != "stereotype"]
        target = person.pop("target")
        row = person | _shown(category, there) | _texts(target, words)
        row["photo of a thing"] = _photo_of_a_thing().write(things[rng.integers(len(things))])
        row["irrelevant"] = row["photo of a thing"]
        if category in SHOWN:
            row["irrelevant"] = _frame_of(*words).write(third(words, person_side), target)
        rows.append(row | {"category": category, "label": name})
    table = pandas.DataFrame(rows)
    return table.assign(label_shown=category in SHOWN)


def _person(category: str, side: int, rng: np.random.Generator) -> dict:
    """Return who is in the picture, and the word for them: side 1 is that of the plus words."""
    gender = GENDERS[0 if side > 0 else 1]
    if category in SHOWN:
        tone = int(rng.choice(TONES))
        return {"gender": gender, "tone": tone, "age": "adult", "target": gender}
    gender = str(rng.choice(GENDERS))
    if category == "tone":
        tone = TONES[-1] if side > 0 else TONES[0]
        target = str(rng.choice(_names(gender, str(tone))))
        return {"gender": gender, "tone": tone, "age": "adult", "target": target}
    age = "child" if side > 0 else "older"
    tone = int(rng.choice(TONES))
    return {"gender": gender, "tone": tone, "age": age, "target": TARGETS_BY_AGE[age, gender]}


@functools.cache
def _names(gender: str, tone: str) -> list[str]:
    """Return the names that lean to a gender and a tone."""
    agents = agent_words()
    kept = (agents["kind"] == "name") & (agents["gender"] == gender) & (agents["tone"] == tone)
    return agents.loc[kept, "word"].tolist()


def _shown(category: str, word: str) -> dict:
    if category == "gender":
        return {"object": word, "object_view": "visible"}
    if category == "profession":
        return {"role": word, "role_shown": True}
    return {"attribute": word}


def _texts(target: str, words: tuple[str, str]) -> dict[str, str]:
    frame = _frame_of(*words)
    stereotype, anti = words
    return {
        "target": target,
        "stereotype": frame.write(stereotype, target),
        "anti-stereotype": frame.write(anti, target),
        "neutral stereotype": frame.write(stereotype, "person"),
        "neutral anti-stereotype": frame.write(anti, "person"),
        "stereotype word": stereotype,
        "anti-stereotype word": anti,
    }


@functools.cache
def _frame_of(*words: str) -> Frame:
    """Return the first frame with a person as its subject that carries all the words."""
    rows = content_words().index.get_indexer(list(words))
    return next(f for f in frames() if f.place == "subject" and f.carries()[rows].all())


@functools.cache
def _photo_of_a_thing() -> Frame:
    return next(frame for frame in frames() if frame.text == "a photo of {phrase}")


@functools.cache
def _things() -> list[str]:
    """Return the things, which pictures with a person are never about."""
    return content_words().query("slot == 'thing'").index.tolist()


def _third_word(words: tuple[str, str], lean: pandas.Series) -> str:
    """Return the irrelevant word for a stereotypical word and its partner.

    ``lean`` is how much every word goes with the person in the picture.
    """
    stereotype, middle = words[0], lean[list(words)].mean()
    others = [word for word in _drawn_alike(stereotype) if word not in words]
    kept = [word for word in others if lean[word] <= lean[stereotype]]
    return min(kept, key=lambda word: abs(lean[word] - middle))


@functools.cache
def _drawn_alike(word: str) -> list[str]:
    """Return the words drawn in pictures that are as frequent as a word, in the same frames."""
    pairs = _alike((word, other) for other in (*PICTURED_OBJECTS, *PICTURED_ROLES))
    return [other for _, other in pairs]


def _leans(world: World) -> pandas.DataFrame:
    """Return what is planted on the words of captions in a world, whatever its dose."""
    return planted_strengths(world.plan, "captions")


def _pairs(category: str, world: World) -> list[tuple[str, str]]:
    """Return pairs of words: the first goes with side 1 (women, tone 5, children)."""
    planted = _leans(world)
    if category == "gender":
        candidates = object_pairs().itertuples(index=False, name=None)
        return _contrasted(_alike(candidates), planted["gender"])
    if category == "profession":
        candidates = itertools.combinations(PICTURED_ROLES, 2)
        return _contrasted(_alike(candidates), planted["gender"])
    words = pandas.Index(MILD_WORDS.split())
    if category == "tone":
        return _matched(words, planted["tone"], planted[["gender", "interaction"]])
    draws = pandas.Series([world.plan.draw(word, "age") - 0.5 for word in words], words)
    return _matched(words, 2 * draws, planted[["gender", "tone", "interaction"]])


def _alike(pairs) -> list[tuple[str, str]]:
    """Return the pairs of words that are equally frequent and stand in the same frames."""
    sorts = _sorts()
    known = [pair for pair in pairs if set(pair) <= set(sorts)]
    return [(one, other) for one, other in known if sorts[one] == sorts[other]]


@functools.cache
def _sorts() -> dict[str, tuple]:
    """Return slot, frequency, form and frames of every word."""
    rows = content_words().itertuples()
    return {row.Index: (row.slot, row.weight, row.phrase, set(row.groups.split())) for row in rows}


def _contrasted(pairs: list[tuple[str, str]], strength: pandas.Series) -> list[tuple[str, str]]:
    ordered = [sorted(pair, key=strength.get, reverse=True) for pair in pairs]
    return [(p, m) for p, m in ordered if strength[p] - strength[m] >= CONTRAST]


def _matched(
    words: pandas.Index, strength: pandas.Series, others: pandas.DataFrame
) -> list[tuple[str, str]]:
    """Return each word of one side with that word of the other that is nearest in all else."""
    plus = [word for word in words if strength[word] >= CONTRAST / 2]
    minus = [word for word in words if strength[word] <= -CONTRAST / 2]
    kept = others.loc[minus].to_numpy()
    distance = [np.abs(kept - others.loc[word].to_numpy()).sum(axis=1) for word in plus]
    return [(word, minus[row.argmin()]) for word, row in zip(plus, distance, strict=True)]


@functools.cache
def _depiction(word: str, kind: str) -> dict[str, object]:
    """Return the columns of a scene that depicts a word; empty where no picture shows it.

    Names of the gender tests stand for a gender alone, those of the others for their tone too.
    """
    agent = agent_words()
    agent = agent[agent["word"] == word.lower()]
    if word.lower() in PICTURED_ROLES:
        return {"role": word.lower(), "role_shown": True}
    if word.lower() in PICTURED_OBJECTS:
        return {"object": word.lower(), "object_view": "visible"}
    if agent.empty or not agent["gender"].item():
        return {}
    tone = agent["tone"].item() if kind.startswith("race") else ""
    return {"gender": agent["gender"].item()} | ({"tone": int(tone)} if tone else {})


def _grounded(
    words: Sequence[str],
    context: Sequence[str] | None,
    kind: str,
    n: int,
    rng: np.random.Generator,
    split: str,
) -> pandas.DataFrame:
    repeated = [word for word in words for _ in range(n)]
    around = _spread_over(context, len(repeated)) if context is not None else repeated
    pairs = zip(repeated, around, strict=True)
    table = pandas.DataFrame([_grounded_row(word, other, kind) for word, other in pairs])
    filled = table.reindex(columns=table.columns.union(["gender", "tone"], sort=False))
    tones = np.resize(TONES, len(table))
    filled["tone"] = filled["tone"].where(filled["tone"].notna(), tones).astype(int)
    filled["gender"] = filled["gender"].where(filled["gender"].notna(), GENDERS[0])
    labels = filled[["word", "drawn"]]
    return _scenes(filled.drop(columns=["word", "drawn"]), rng, split).join(labels)


def _grounded_row(word: str, context: str, kind: str) -> dict[str, object]:
    """Return what shows a word, on the person of another word where it names none itself."""
    own = _depiction(word, kind)
    merged = _depiction(context, kind) | own
    nobody = "gender" not in merged
    return {"person": not nobody, "blank": nobody, "word": word, "drawn": bool(own)} | merged


def _spread_over(words: Sequence[str], n: int) -> list[str]:
    """Return n of the words, in their order and evenly: the same for every set of n."""
    return [words[index * len(words) // n] for index in range(n)]
