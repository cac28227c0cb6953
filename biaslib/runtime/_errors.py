"""Errors that say what to do."""

import difflib
from collections.abc import Iterable, Sequence


class UnknownNameError(KeyError):
    """A name that is not in a list of names; its text gives the nearest ones."""

    def __str__(self) -> str:
        return str(self.args[0])


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list in words, of which all but the first few are only counted.

    Examples
    --------
    >>> first_few(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def unknown_name(kind: str, name: object, known: Iterable[object]) -> UnknownNameError:
    """Return the error for an unknown name, with the nearest known names in its text.

    Parameters
    ----------
    kind
        What was asked for, for example ``"test"``.
    name
        The name that was given.
    known
        The names that exist.

    Examples
    --------
    >>> str(unknown_name("test", "c6", ["C3", "C6"]))
    "unknown test 'c6'. Did you mean 'C6'? Known: C3, C6."
    """
    names = [str(each) for each in known]
    lowered = {each.lower(): each for each in names}
    given = str(name).lower()
    holding = [each for each in lowered if given and given in each]
    near = difflib.get_close_matches(given, holding or lowered, cutoff=0.0 if holding else 0.5)
    if given in lowered:
        near = [given]
    hint = f" Did you mean {' or '.join(repr(lowered[each]) for each in near)}?" if near else ""
    listed = ", ".join(repr(each) if "," in each else each for each in names)
    return UnknownNameError(f"unknown {kind} {name!r}.{hint} Known: {listed}.")
