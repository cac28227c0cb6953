"""Our own sentence templates, by the grammatical kind of the word."""

import re

import pandas

from biaslib.runtime import unknown_name
from biaslib.stimuli._data import read_json

AN = re.compile(r"[aeiou]|heir|hon(est|ou?r)|hour", re.IGNORECASE)
A_ALL_THE_SAME = re.compile(r"eu|ewe|one\b|ubi|uni(?![mn])|us[eu]|uti", re.IGNORECASE)
"""Beginnings that are said with a consonant, as in a university, a European, a one-off."""
INITIALS = re.compile(r"[A-Z](?:[A-Z]{0,2}|[B-DF-HJ-NP-TV-XZ]{3,})(?![A-Za-z])")
"""Up to three capital letters, or more without a vowel: said letter by letter, as in a CEO."""


def sentences(word: str, kind: str) -> list[str]:
    """Return the sentences that carry a word, one per template of its kind.

    The sentences say next to nothing about the word, in the manner of SEAT (May et al., 2019,
    section 3) but in words of our own. Six frames serve every kind, so that two words differ in
    nothing but the words and what grammar asks for, and every word weighs the same. The word
    stands in each sentence once, whole and as it was given: never capitalised or put in the
    plural.

    Parameters
    ----------
    word
        The word, for example ``"John"`` or ``"construction worker"``.
    kind
        Its kind: one of those in :func:`templates`.

    Returns
    -------
    list of str
        Six sentences.

    Raises
    ------
    UnknownNameError
        If there is no such kind; a :class:`KeyError`.

    Examples
    --------
    >>> sentences("John", "name")[:2]
    ['Someone mentioned John.', 'They were talking about John.']
    >>> sentences("aunt", "count noun")[2]
    'I am thinking of an aunt.'
    >>> sentences("gentle", "adjective")[3]
    'It was about being gentle.'
    """
    return [
        template.format(a=indefinite_article(word), word=word) for template in _templates_of(kind)
    ]


def templates() -> pandas.DataFrame:
    """Return the templates of all kinds: columns kind, template, and an example.

    Examples
    --------
    >>> templates().query("kind == 'count noun'").iloc[0].tolist()
    ['count noun', 'Someone mentioned {a} {word}.', 'Someone mentioned an office.']
    """
    rows = [
        {"kind": kind, "template": template, "example": example}
        for kind, word in read_json("templates.json")["examples"].items()
        for template, example in zip(_templates_of(kind), sentences(word, kind), strict=True)
    ]
    return pandas.DataFrame(rows)


def phrases() -> dict[str, str]:
    """Return what stands for a word in a sentence, by the kind of the word.

    Examples
    --------
    >>> phrases()["adjective"], phrases()["count noun"]
    ('being {word}', '{a} {word}')
    """
    return dict(read_json("templates.json")["phrases"])


def frames() -> tuple[str, ...]:
    """Return our sentences with a place for the phrase that carries a word.

    Examples
    --------
    >>> frames()[0]
    'Someone mentioned {phrase}.'
    """
    return tuple(read_json("templates.json")["frames"])


def indefinite_article(word: str) -> str:
    """Return ``a`` or ``an``, by the sound the word begins with.

    Initials are taken to be spelled out (an MP, an X-ray, a US citizen), if they are no more than
    three or have no vowel after the first (an LGBT group). Longer ones are read as a word (a NASA
    engineer), and so the few short ones that are said as a word (a SIM card) get it wrong.

    Examples
    --------
    >>> [indefinite_article(word) for word in ("office", "driver", "hour", "university", "HIV")]
    ['an', 'a', 'an', 'a', 'an']
    """
    if INITIALS.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if AN.match(word) and not A_ALL_THE_SAME.match(word) else "a"


def _templates_of(kind: str) -> list[str]:
    phrases = read_json("templates.json")["phrases"]
    if kind not in phrases:
        raise unknown_name("kind of word", kind, phrases)
    return [
        frame.replace("{phrase}", phrases[kind]) for frame in read_json("templates.json")["frames"]
    ]
