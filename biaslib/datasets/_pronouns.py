"""Sentences that do not say whether they speak of a woman or a man: singular *they*."""

import functools
import re

from biaslib.errors import brought_by

NOUNS = (
    "man men woman women boy boys girl girls lady ladies gentleman gentlemen male males female "
    "females mother mothers father fathers mommy mama mom mum daddy dad daughter daughters son "
    "sons sister sisters brother brothers grandmother grandfather wife husband schoolboy schoolgirl"
)
"""Nouns that name a woman or a man; adjectives of style, such as *feminine*, are attributes."""

NAMES = "gary jane john susie"
"""The first names that stand in the released captions of the category gender."""

PRONOUNS = "he him his himself she her hers herself"

GENDERED = re.compile(rf"\b(?:{'|'.join(f'{NOUNS} {NAMES} {PRONOUNS}'.split())})\b", re.IGNORECASE)

NO_OWNER = (
    "a about an and as at because but by for from herself how if in into my of off on or out over "
    "so than that the themselves then this through to up what when where while who why with your"
)
"""Words before which *her* is an object; before a form of *be* it is a mistake, and stays."""

BE = {"is": "are", "was": "were"}

SUBJECT = re.compile(r"\b(he|she)\b(?!['’]s)(?P<between>(?:\s+(?:\w+ly|always|never|often))*)"
                     r"(?P<verb>\s+\w+)?", re.IGNORECASE)  # fmt: skip
OBJECT = re.compile(r"\b(him|his|hers|himself|herself|her)\b(?P<next>\s+[A-Za-z]+)?", re.IGNORECASE)


def with_they(text: str) -> str:
    """Return a statement with *they* in place of *she* and *he*, and verbs that agree with it.

    *them*, *their*, *theirs* and *themselves* follow. The first verb after *she* or *he* gets the
    form of the plural; one that is joined to it by "and" is not looked for. What cannot be decided
    stays as it is, so that :data:`GENDERED` finds it: "she's", which may be "is" or "has", and
    "her" before a form of "be".

    Examples
    --------
    >>> with_they("She often sees herself as kind when he was with her.")
    'They often see themselves as kind when they were with them.'
    >>> with_they("Her watch is his, and she's told her friend.")
    "Their watch is theirs, and she's told their friend."
    """
    return OBJECT.sub(_other, SUBJECT.sub(_subject, text))


def _subject(match: re.Match) -> str:
    verb = match["verb"] or ""
    plural = verb.replace(verb.strip(), _plural(verb.strip())) if verb else ""
    return _as(match[1], "they") + match["between"] + plural


@functools.cache
def _plural(verb: str) -> str:
    """Return the form of the plural of a verb in the third person; others stay."""
    with brought_by("language"):
        import lemminflect

    if verb in BE:
        return BE[verb]
    for lemma in lemminflect.getAllLemmas(verb, upos="VERB").get("VERB", ()):
        if verb in lemminflect.getInflection(lemma, "VBZ"):
            return lemma
    return verb


def _other(match: re.Match) -> str:
    word, after = match[1].lower(), match["next"] or ""
    following = after.strip().lower()
    if word == "her" and following in BE:
        return match[0]
    owned = bool(following) and following not in NO_OWNER.split()
    new = {"him": "them", "hers": "theirs", "himself": "themselves", "herself": "themselves"}
    new |= {"his": "their" if owned else "theirs", "her": "their" if owned else "them"}
    return _as(match[1], new[word]) + OBJECT.sub(_other, after)


def _as(old: str, new: str) -> str:
    return new.capitalize() if old[0].isupper() else new
