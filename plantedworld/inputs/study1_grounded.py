"""Study 1's stimuli in the profile `planted`: tests shown as scenes of a planted world."""

import functools
from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import models, stimuli
from biaslib.studies.study1_grounded import (
    DOMAINS,
    LEVELS,
    MODELS,
    SETS,
    GroundedStimuli,
    Inputs,
    require_known,
    tests,
)
from plantedworld import Scenes, grounded_sets, planted_sets, world
from plantedworld.models.checkpoints import shipped

__all__ = ["available_models", "inputs", "planted_signs", "planted_stimuli", "planted_tests"]


def inputs(
    domain: str = "out of domain",
    names: Sequence[str] | None = None,
    style: str = "twemoji",
    levels: Sequence[str] = LEVELS,
    n_per_word: int = 1,
    n_texts: int | None = 2,
    seed: int = 0,
) -> Inputs:
    """Return the stimuli of each model that has a checkpoint of dose 3.

    Out of domain are looks that training did not show, in domain those that it did.

    Parameters
    ----------
    domain
        One of :data:`biaslib.studies.study1_grounded.DOMAINS`.
    names
        Of the 13 tests; ``None`` takes all.
    style, levels, n_per_word, n_texts, seed
        As of :func:`planted_stimuli`.

    Raises
    ------
    UnknownNameError
        If there is no such domain or test.
    """
    require_known(domain, names)
    split = "tune" if domain == DOMAINS[0] else "train"
    names = names if names is None else tuple(names)
    every = _stimuli(names, tuple(levels), n_per_word, n_texts, seed, split, style)
    return Inputs(dict.fromkeys(available_models(), every), "planted", "planted scenes")


@functools.lru_cache(maxsize=4)
def _stimuli(*settings) -> list[GroundedStimuli]:
    """Make the stimuli of a call once, so that the regions of their scenes are found once."""
    return planted_stimuli(*settings)


def available_models() -> list[str]:
    """Return the paper's models of which there is a tiny checkpoint of dose 3."""
    there = shipped()
    there = set(there.loc[(there["dose"] == 3) & (there["seed"] == 0), "family"])
    return [name for name in MODELS if models.REGISTRY[name].family in there]


def planted_signs(seed: int) -> pandas.DataFrame:
    """Return what is planted on each test in the worlds of a seed: +1, -1 or 0.

    The seed draws which direction. Nothing is planted on the tests of the pair of sets that it
    leaves out, nor on occupations by tone.

    Returns
    -------
    pandas.DataFrame
        *test*, *sign*, and *control*, whether nothing is planted.

    Examples
    --------
    >>> signs = planted_signs(0).set_index("test")["sign"]
    >>> int(signs["occupation-gender"]), int(signs["C8"])
    (1, 0)
    """
    design = world(1, seed).design
    rows = []
    for name in tests()["test"]:
        direction, pair = _direction(name)
        drawn = design.plan.sign(pair, AXES[stimuli.association_test(name).kind])
        sign = 0 if pair == design.plan.control else int(-direction * drawn)
        rows.append({"test": name, "sign": sign, "control": sign == 0})
    return pandas.DataFrame(rows)


def planted_tests(group: str, seed: int = 0) -> list[str]:
    """Return the tests of a group on which the worlds of a seed have something planted.

    Examples
    --------
    >>> planted_tests("race")
    ['C3', 'C12', 'DB-competent-race', 'DB-likeable-race', 'ABW']
    """
    names = tests().query("group == @group")["test"]
    signs = planted_signs(seed).set_index("test")["sign"]
    return [name for name in names if signs[name]]


AXES = {"gender": "gender", "race": "tone", "race and gender": "interaction"}
"""What each kind of test is about, among what is planted."""


@functools.cache
def _direction(name: str) -> tuple[int, str]:
    """Return where the planted set of a test leans (1: women, or tone 5), and its pair."""
    test, words = stimuli.association_test(name), stimuli.word_frame()
    of_set = words.groupby("set")["word"].agg(frozenset)
    for row in planted_sets().itertuples():
        if of_set[row.set] in (frozenset(test.A), frozenset(test.X)):
            return int(getattr(row, AXES[test.kind])), row.pair
    raise ValueError(f"no set of the test {name} is planted; add it to planted_sets.csv")


def planted_stimuli(
    names: Sequence[str] | None = None,
    levels: Sequence[str] = LEVELS,
    n_per_word: int = 1,
    n_texts: int | None = 2,
    seed: int = 0,
    split: str = "tune",
    style: str = "twemoji",
) -> list[GroundedStimuli]:
    """Return tests with scenes of the planted world: people in the context of every word.

    Parameters
    ----------
    names
        Of the 13 tests of study 1; ``None`` takes all.
    levels
        Of ``word``, ``sentence`` and ``contextual``; they share their scenes.
    n_per_word
        Scenes a word and set.
    n_texts
        Sentences a word; ``None`` takes all. Sentences and scenes take turns.
    seed
        Of the scenes.
    split
        Whose looks: see :func:`plantedworld.looks`.
    style
        How scenes are drawn: one of :data:`plantedworld.STYLES`.

    Returns
    -------
    list of GroundedStimuli
        Level by level; they share their images.

    Raises
    ------
    UnknownNameError
        If there is no such test or level.

    Examples
    --------
    >>> (one,) = planted_stimuli(["C6"], ["word"])
    >>> one.rows.groupby("set").size().to_dict()
    {'Ax': 8, 'Ay': 8, 'Bx': 8, 'By': 8, 'X': 8, 'Y': 8}
    """
    names = list(tests()["test"]) if names is None else list(names)
    scenes = pandas.concat(
        [_scenes_of(name, n_per_word, seed, split) for name in names], ignore_index=True
    )
    shown = scenes.drop(columns=["test", "set", "word", "drawn"])
    images = Scenes(shown, style)
    return [
        _with_texts(name, level, scenes[scenes["test"] == name], n_texts, images)
        for level in levels
        for name in names
    ]


def _scenes_of(name: str, n_per_word: int, seed: int, split: str) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    found = grounded_sets(name, rng, n_per_word, split)
    return pandas.concat([found[each].assign(test=name, set=each) for each in SETS])


def _with_texts(name, level, scenes, n_texts, images) -> GroundedStimuli:
    texts = _texts(name, level)
    rows = []
    for (set_name, word), part in scenes.groupby(["set", "word"], sort=False):
        said = texts[set_name[0]][word][:n_texts]
        n = max(len(said), len(part))
        pairs = zip(np.resize(said, n), np.resize(part.index, n), strict=True)
        rows += [(set_name, str(text), word, image) for text, image in pairs]
    hidden = tuple(dict.fromkeys(word for role in "XYAB" for word in texts[role]))
    table = pandas.DataFrame(rows, columns=["set", "text", "word", "image"])
    return GroundedStimuli(name, level, table, images, hidden)


def _texts(name: str, level: str) -> dict[str, dict[str, list[str]]]:
    """Return the texts of each word: set -> word -> texts."""
    found = stimuli.association_test(name, level)
    texts: dict[str, dict[str, list[str]]] = {role: {} for role in "XYAB"}
    for role in "XYAB":
        for text, word in zip(getattr(found, role), found.words[role], strict=True):
            texts[role].setdefault(word, []).append(text)
    return texts
