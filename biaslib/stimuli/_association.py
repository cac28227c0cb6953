"""Association tests: two sets of targets, two sets of attributes."""

from dataclasses import dataclass

import pandas

from biaslib.runtime import unknown_name
from biaslib.stimuli._data import ROLES, catalogue, set_frame, word_set
from biaslib.stimuli._sentences import sentences

LEVELS = ("word", "sentence", "contextual")
"""What stands for a word: itself, its sentences, or the word's token within its sentences."""


@dataclass(frozen=True)
class AssociationTest:
    """The stimuli of one association test at one level.

    ``X`` and ``Y`` are the targets, ``A`` and ``B`` the attributes: words, or sentences at the
    levels ``sentence`` and ``contextual``. ``labels`` says what each of the four sets holds.
    ``words`` gives, for each of the four, the word that each stimulus carries, in the same order:
    the unit to resample, and the token to look up at the level ``contextual``; ``kinds`` the
    grammatical kind of that word. ``kind`` is gender,
    race, race and gender, age or other; ``source`` the paper the test comes from, and ``sources``
    where each of the four lists was taken from; ``study1`` tells whether it is one of the 13 of
    Ross et al. (2021); ``note`` says where sources differ.

    Examples
    --------
    >>> test = association_test("C6", level="sentence")
    >>> len(test.X), test.words["X"][6], test.X[6]
    (48, 'Paul', 'Someone mentioned Paul.')
    """

    name: str
    title: str
    level: str
    X: tuple[str, ...]
    Y: tuple[str, ...]
    A: tuple[str, ...]
    B: tuple[str, ...]
    labels: dict[str, str]
    words: dict[str, tuple[str, ...]]
    kinds: dict[str, tuple[str, ...]]
    kind: str
    source: str
    sources: dict[str, str]
    study1: bool
    note: str = ""

    @property
    def direction(self) -> str:
        """What a positive effect means.

        Examples
        --------
        >>> association_test("C6").direction
        'names of men with career words, names of women with family words'
        """
        return _direction(self.labels)


def association_test(name: str, level: str = "word") -> AssociationTest:
    """Return an association test by name.

    Parameters
    ----------
    name
        ``"C1"`` to ``"C10"`` for WEAT 1 to 10 of Caliskan et al. (2017), or another name of
        :func:`association_tests`. Names are those of study 1's tables.
    level
        ``"word"``, ``"sentence"`` or ``"contextual"``; the last two give the same sentences.

    Returns
    -------
    AssociationTest
        Ordered as its source orders it; :attr:`AssociationTest.direction` reads the sign.

    Raises
    ------
    UnknownNameError
        If there is no such test or level; a :class:`KeyError` that suggests the nearest names.

    Examples
    --------
    >>> association_test("C8").A
    ('brother', 'father', 'uncle', 'grandfather', 'son', 'he', 'his', 'him')
    """
    if name not in catalogue():
        raise unknown_name("association test", name, catalogue())
    if level not in LEVELS:
        raise unknown_name("level", level, LEVELS)
    row = catalogue()[name]
    triples = {role: _stimuli(row[role], level) for role in ROLES}
    X, Y, A, B = (tuple(stimulus for stimulus, _, _ in triples[role]) for role in ROLES)
    return AssociationTest(
        name=row["name"],
        title=row["title"],
        level=level,
        X=X,
        Y=Y,
        A=A,
        B=B,
        labels=_describe(row, "label"),
        words={role: tuple(word for _, word, _ in triples[role]) for role in ROLES},
        kinds={role: tuple(kind for _, _, kind in triples[role]) for role in ROLES},
        kind=row["kind"],
        source=row["source"],
        sources=_describe(row, "source"),
        study1=row["study1"],
        note=row["note"],
    )


def association_tests(study1: bool | None = None) -> pandas.DataFrame:
    """Return an overview of the association tests, one row each.

    Parameters
    ----------
    study1
        ``True`` for the 13 tests of Ross et al. (2021), ``False`` for the others, ``None`` for all.

    Returns
    -------
    pandas.DataFrame
        Columns name, title, kind, study1, the numbers of words n_X, n_Y, n_A, n_B, direction
        (what a positive effect means) and source.

    Examples
    --------
    >>> association_tests(study1=True)[["name", "n_X", "n_A"]].head(2).to_dict("list")
    {'name': ['C3', 'C6'], 'n_X': [32, 8], 'n_A': [25, 8]}
    """
    rows = [_overview(row) for row in catalogue().values() if study1 in (None, row["study1"])]
    return pandas.DataFrame(rows)


def all_words() -> frozenset[str]:
    """Return every word of every test, targets and attributes.

    Examples
    --------
    >>> {"John", "nurse", "orchid"} <= all_words()
    True
    """
    tests = catalogue().values()
    return frozenset(word for row in tests for role in ROLES for word, _ in word_set(row[role]))


def _stimuli(set_name: str, level: str) -> list[tuple[str, str, str]]:
    """Return each stimulus of a set with the word it carries and that word's kind."""
    if level == "word":
        return [(word, word, kind) for word, kind in word_set(set_name)]
    return [
        (sentence, word, kind)
        for word, kind in word_set(set_name)
        for sentence in sentences(word, kind)
    ]


def _overview(row: dict) -> dict:
    overview = {key: row[key] for key in ("name", "title", "kind", "study1")}
    overview |= {f"n_{role}": len(word_set(row[role])) for role in ROLES}
    return overview | {"direction": _direction(_describe(row, "label")), "source": row["source"]}


def _describe(row: dict, column: str) -> dict[str, str]:
    return {role: set_frame().loc[row[role], column] for role in ROLES}


def _direction(labels: dict[str, str]) -> str:
    return "{X} with {A}, {Y} with {B}".format(**labels)
