"""The words of a taxonomy of social bias, each with its caption.

.. warning:: Content note. The taxonomy holds slurs, words of contempt, and words for crime, illness
   and religion, because the study asks which portraits a model returns for them. They say nothing
   about the people in the portraits.
"""

import functools

import pandas

from biaslib.errors import InputError
from biaslib.published import table
from biaslib.runtime import unknown_name
from biaslib.stimuli._data import read_csv
from biaslib.stimuli._sentences import indefinite_article

__all__ = [
    "CAPTION_TEMPLATES",
    "GENDERED_OCCUPATIONS",
    "TAXONOMIES",
    "caption",
    "innocent_things",
    "printed_outside",
    "taxonomy",
    "taxonomy_kinds",
]

TAXONOMIES = {"sobit": "SO-B-IT, the Social Bias Implications Taxonomy (Hamidieh et al. 2023)"}
"""The taxonomies, by name."""

CAPTION_TEMPLATES = {
    "adjective": "a photo of {a} {word} person",
    "noun": "a photo of {a} {word}",
    "object": "a photo of {a} {word}",
    "activity": "a photo of a person who is {word}",
}
"""The captions of Hamidieh et al. (2023), Appendix D.1, by the kind of the word."""

GENDERED_OCCUPATIONS = (
    "actor",
    "actress",
    "delivery man",
    "handyman",
    "maid",
    "policeman",
    "waiter",
    "waitress",
)
"""Occupations of SO-B-IT whose form names a gender. Ours: the caption of the paper's Table 4 says
that such words were removed and does not list them; two of these are in the table (erratum B10)."""

KINDS_FILE = "taxonomy_kinds.csv"
OUTSIDE_FILE = "outside_kinds.csv"
PAPER = "hamidieh2023"
ACTIVITY = "Activity"


def taxonomy(name: str) -> pandas.DataFrame:
    """Return the words of a taxonomy as printed, each with its caption.

    ``"sobit"`` is SO-B-IT of Hamidieh et al. (2023): the 408 entries of Table 2 under nine types
    of bias, then the 20 activities of Table 5 under a tenth type that Table 2 lacks. Six words are
    listed under two types. Spelling and capital letters are those of the print.

    The captions follow Appendix D.1, "we design templates for four categories of words:
    adjectives, profession or political nouns, object, and activities. Then, for each word in our
    taxonomy, we use the caption a photo of a/an [adjective] person for adjectives, a photo of
    a/an [noun] for nouns, and a photo of a person who is [gerund verb for activity]." Objects have
    no template of their own there; they get that of nouns.

    Which word is of which kind is not in the paper. It is our decision, see
    :func:`taxonomy_kinds`.

    Parameters
    ----------
    name
        A key of :data:`TAXONOMIES`.

    Returns
    -------
    pandas.DataFrame
        One row per type and word, in printed order: columns word, bias_type, kind (a key of
        :data:`CAPTION_TEMPLATES`), caption, and printed_in (``"Table 2"`` or ``"Table 5"``).

    Raises
    ------
    UnknownNameError
        If there is no such taxonomy; a :class:`KeyError`.

    Examples
    --------
    >>> words = taxonomy("sobit")
    >>> words.groupby("printed_in").size().to_dict(), words["word"].nunique()
    ({'Table 2': 408, 'Table 5': 20}, 422)
    >>> words.query("word == 'caring'")["caption"].tolist()
    ['a photo of a caring person', 'a photo of a person who is caring']
    """
    if name not in TAXONOMIES:
        raise unknown_name("taxonomy", name, TAXONOMIES)
    frame = _printed().merge(taxonomy_kinds(), on=["bias_type", "word"], validate="one_to_one")
    frame["caption"] = [
        caption(row.word, row.kind, mass=bool(row.mass)) for row in frame.itertuples()
    ]
    return frame[["word", "bias_type", "kind", "caption", "printed_in"]]


def printed_outside() -> pandas.DataFrame:
    """Return the words that the tables of C-ASC print under a type that Table 2 does not give them.

    Six words in 19 cells of Tables 13, 17 and 18. One is in Table 2 under another type, five are
    not in it. Their kinds are our decision, as those of :func:`taxonomy_kinds`.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`taxonomy`; *printed_in* is the table.

    Examples
    --------
    >>> printed_outside().query("word == 'liberal'")[["bias_type", "printed_in"]].values.tolist()
    [['Religion', 'Table 13']]
    """
    tables = pandas.concat(table(PAPER, number) for number in range(3, 19))
    cells = tables.rename(columns={"category": "bias_type"})[["word", "bias_type", "table"]]
    known = set(_pairs(_printed()))
    rows = cells[[pair not in known for pair in _pairs(cells)]].drop_duplicates()
    rows = rows.merge(read_csv(OUTSIDE_FILE), on=["word", "bias_type"], validate="one_to_one")
    captions = [caption(row.word, row.kind) for row in rows.itertuples()]
    rows = rows.assign(caption=captions, printed_in="Table " + rows["table"].astype(str))
    return rows[["word", "bias_type", "kind", "caption", "printed_in"]]


def taxonomy_kinds() -> pandas.DataFrame:
    """Return our decision on the kind of every word of SO-B-IT, with notes.

    A word that is only an adjective or only a noun is that. One that is both is a noun under
    Occupation and Political, since the paper speaks of "profession or political nouns", and
    elsewhere what most words of its type are, so that words of one type are compared in one
    caption. Every noun for a person is a noun, whether or not it is a profession; an object is
    a noun for anything else. Exceptions and doubts have a note.

    Returns
    -------
    pandas.DataFrame
        One row per type and word: columns word, bias_type, kind, mass (``"yes"`` for a mass noun,
        which takes no article) and note.

    Examples
    --------
    >>> taxonomy_kinds().set_index("word").loc["birth control", ["kind", "mass"]].to_list()
    ['object', 'yes']
    """
    return read_csv(KINDS_FILE)


def innocent_things() -> list[str]:
    """Return concrete things without social meaning, against which a word's score can be held.

    Chosen by hand, one by one: parts of buildings and landscapes, and plain implements, none of
    them in a list of the studies, worn, eaten, bought by some and not by others, or used in an
    occupation or a household task that the lists name.

    Examples
    --------
    >>> things = innocent_things()
    >>> len(things), things[:3]
    (60, ['anchor', 'balcony', 'basin'])
    """
    return read_csv("innocent_things.csv")["word"].tolist()


def caption(word: str, kind: str, mass: bool = False) -> str:
    """Return the caption of a word, as Hamidieh et al. (2023), Appendix D.1, write theirs.

    Parameters
    ----------
    word
        The word, for example ``"smart"``, ``"CEO"`` or ``"fixing cars"``.
    kind
        A key of :data:`CAPTION_TEMPLATES`.
    mass
        Whether a noun or object is a mass noun, which takes no article.

    Returns
    -------
    str
        The caption, with the word as it was given and without a full stop.

    Raises
    ------
    UnknownNameError
        If there is no such kind; a :class:`KeyError`.
    InputError
        If a mass noun is said to be an adjective or an activity.

    Examples
    --------
    >>> caption("unemployed", "adjective")
    'a photo of an unemployed person'
    >>> caption("CEO", "noun")
    'a photo of a CEO'
    >>> caption("fixing cars", "activity")
    'a photo of a person who is fixing cars'
    """
    if kind not in CAPTION_TEMPLATES:
        raise unknown_name("kind of word in a caption", kind, CAPTION_TEMPLATES)
    if not mass:
        return CAPTION_TEMPLATES[kind].format(a=indefinite_article(word), word=word)
    if kind not in ("noun", "object"):
        raise InputError(
            f"{word!r} cannot be a mass noun and of the kind {kind}: pass mass=False, "
            "or the kind noun or object",
            word=word,
        )
    return CAPTION_TEMPLATES[kind].replace("{a} ", "").format(word=word)


def _pairs(frame: pandas.DataFrame) -> list[tuple[str, str]]:
    return list(zip(frame["word"], frame["bias_type"], strict=True))


@functools.cache
def _printed() -> pandas.DataFrame:
    """Return the printed words in order: columns bias_type, word, printed_in."""
    activities = table(PAPER, 5)[["word"]].assign(bias_type=ACTIVITY, printed_in="Table 5")
    words = table(PAPER, 2).assign(printed_in="Table 2")
    return pandas.concat([words, activities], ignore_index=True)
