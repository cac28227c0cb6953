"""The sentences of SEAT (May et al. 2019), made by the rules behind its released files."""

import dataclasses
import re

from biaslib.runtime import unknown_name
from biaslib.stimuli._association import AssociationTest, association_test
from biaslib.stimuli._data import ROLES, read_json
from biaslib.stimuli._sentences import indefinite_article

TESTS = ("C3", "C6")


def seat_test(name: str) -> AssociationTest:
    """Return a test at sentence level in the sentences that SEAT published for it.

    May et al. (2019, section 3) put a word into templates that depend on its kind: a name into 8,
    a count noun into 14 (6 of them in the plural), an adjective into 3. So a noun weighs nearly
    five times as much as an adjective. Their kinds are theirs: *death* is counted, *professional*
    an adjective. In other tests the release leaves sentences out at random, to have as many for
    one target set as for the other.

    Parameters
    ----------
    name
        ``"C3"`` or ``"C6"``, whose sentences follow from the rules, one by one.

    Raises
    ------
    UnknownNameError
        For another test.

    Examples
    --------
    >>> test = seat_test("C6")
    >>> len(test.X), len(test.A), test.X[7], test.B[8]
    (64, 101, "The person's name is John.", 'These are homes.')
    """
    if name not in TESTS:
        raise unknown_name("test with the sentences of SEAT", name, TESTS)
    test = association_test(name)
    stimuli = {role: _stimuli(getattr(test, role), test.kinds[role]) for role in ROLES}
    X, Y, A, B = (tuple(sentence for sentence, _, _ in stimuli[role]) for role in ROLES)
    return dataclasses.replace(
        test,
        level="sentence",
        X=X,
        Y=Y,
        A=A,
        B=B,
        words={role: tuple(word for _, word, _ in stimuli[role]) for role in ROLES},
        kinds={role: tuple(kind for _, _, kind in stimuli[role]) for role in ROLES},
    )


def _stimuli(words: tuple[str, ...], kinds: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return each sentence with the word it carries and the kind that SEAT gives that word."""
    seat = read_json("seat.json")
    kind_of = {w: seat["kinds"].get(w, kind) for w, kind in zip(words, kinds, strict=True)}
    return [
        (template.format(**_forms(word, seat["singulars"])), word, kind)
        for word, kind in kind_of.items()
        for template in seat["templates"][kind]
    ]


def _forms(word: str, singulars: dict[str, str]) -> dict[str, str]:
    """Return a word as templates ask for it, with its article and plural.

    >>> _forms("salary", {})["plural"], _forms("caress", {})["plural"]
    ('salaries', 'caresses')
    """
    singular = singulars.get(word, word)
    regular = re.sub(r"(?<=[^aeiou])y$", "ie", singular)
    regular += "es" if re.search(r"(s|x|sh|ch)$", singular) else "s"
    plural = word if word in singulars else regular
    article = indefinite_article(singular)
    return {
        "word": singular,
        "a": article,
        "A": article.capitalize(),
        "plural": plural,
        "Plural": plural.capitalize(),
    }
