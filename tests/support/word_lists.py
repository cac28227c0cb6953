"""Checks of the word lists that travel with the package: each error names the row and the file."""

from biaslib.stimuli import CAPTION_TEMPLATES
from biaslib.stimuli._data import ROLES

KINDS_FILE = "biaslib/stimuli/data/taxonomy_kinds.csv"


def check_tests(tests, words):
    """Check that every test compares proper sets.

    No set is empty or holds a word twice; the target sets are of one size, as the permutation
    test needs; no word is in both target sets or in both attribute sets. ``tests`` has the columns
    name, X, Y, A, B that name sets, and ``words`` the columns set and word.
    """
    members = words.groupby("set")["word"].apply(list).to_dict()
    for test in tests.to_dict("records"):
        sets = {role: members.get(test[role], []) for role in ROLES}
        for role in ROLES:
            _check_set(sets[role], f"test {test['name']}: {role} ({test[role]})")
        _check_sizes(test, sets)
        _check_disjoint(test, sets, "X", "Y")
        _check_disjoint(test, sets, "A", "B")


def _check_set(words, where):
    if not words:
        raise ValueError(f"{where} holds no words")
    twice = [word for word in words if words.count(word) > 1]
    if twice:
        raise ValueError(f"{where} holds the word {twice[0]!r} twice")


def _check_sizes(test, sets):
    n_x, n_y = len(sets["X"]), len(sets["Y"])
    if n_x != n_y:
        raise ValueError(
            f"test {test['name']}: X ({test['X']}) has {n_x} words and Y ({test['Y']}) has {n_y}, "
            f"but target sets must be of one size; their last words are {sets['X'][-1]!r} "
            f"and {sets['Y'][-1]!r}"
        )


def _check_disjoint(test, sets, one, other):
    shared = [word for word in sets[one] if word in sets[other]]
    if shared:
        raise ValueError(
            f"test {test['name']}: {one} ({test[one]}) and {other} ({test[other]}) "
            f"share the word {shared[0]!r}"
        )


def check_kinds(kinds, printed):
    """Check that every printed word, with its type, has one proper row of kind and mass."""
    for row in kinds.itertuples():
        _check_row(row)
    rows, expected = pairs(kinds), pairs(printed)
    _refuse([pair for pair in rows if rows.count(pair) > 1], "has two rows; leave one")
    _refuse(
        [pair for pair in rows if pair not in expected],
        "is in neither Table 2 nor Table 5 under that type; correct the row or leave it out",
    )
    _refuse([pair for pair in expected if pair not in rows], "is printed and has no row; add one")


def pairs(frame):
    return list(zip(frame["word"], frame["bias_type"], strict=True))


def _check_row(row):
    pair = [(row.word, row.bias_type)]
    if row.kind not in CAPTION_TEMPLATES:
        fix = "write adjective, noun, object or activity"
        _refuse(pair, f"has the unknown kind {row.kind!r}; {fix}")
    if row.mass not in ("", "yes"):
        _refuse(pair, f"has {row.mass!r} in the column mass; write yes or leave it empty")
    if row.mass and row.kind not in ("noun", "object"):
        _refuse(pair, f"is a mass noun of the kind {row.kind}; only noun and object can be")


def _refuse(pairs, what):
    if pairs:
        word, bias_type = pairs[0]
        raise ValueError(f"{KINDS_FILE}: {word!r} ({bias_type}) {what}")
