"""Names and words from outside: what looks the same is the same."""

import io
import itertools

import pandas
import pytest

from biaslib.runtime import MISSING, cleaned, look_alikes, says_nothing


def test_what_is_missing_to_pandas_is_missing_here():
    words = [*MISSING - {""}, "unknown", "none", "0", "Nana"]
    read = pandas.read_csv(io.StringIO("\n".join(["word", *(f'"{each}"' for each in words)])))
    assert read["word"].isna().tolist() == [each in MISSING for each in words]
    from pandas._libs.parsers import STR_NA_VALUES

    assert MISSING >= STR_NA_VALUES


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\u0308lter", "\u00e4lter"),
        ("wo\u200bmen", "women"),
        ("\u202ewomen\u202c", "women"),
        ("wo\u200dmen\u200c", "women"),
        ("\u00a0East\u2009Asian\u3164\r", "East Asian"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,  # Persian, where it shows
        ("\U0001f469\u200d\u2695\ufe0f",) * 2,  # a woman who is a doctor, and not both
        ("two  blanks",) * 2,
        ("\x1b[31mmen\x9b0m", "[31mmen0m"),  # a terminal would colour it
    ],
)
def test_what_nobody_sees_goes_and_nothing_else(given, expected):
    assert cleaned(given) == expected
    assert cleaned(cleaned(given)) == cleaned(given)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("women", "wom\u0435n", True),  # Cyrillic
        ("OLD", "\u039fLD", True),  # Greek
        ("women", "\uff57\uff4f\uff4d\uff45\uff4e", True),  # full width
        ("non-binary", "non\u2011binary", True),
        ("Stra\u00dfe", "STRASSE", True),
        ("men", "women", False),
        ("\u00e4lter", "alter", False),
        ("\u2640", "\u2640\ufe0f", True),
        ("2-9", "29", False),
        ("P3", "p003", True),
        ("P3", "P3.0", True),
        ("1,000", "1000", True),
        ('"7"', "7", True),
        ("2026-01-05", "2026-1-5", True),
        ("2020.10.01", "2020.1.01", False),
        ("12345678901234567890", "12345678901234567891", False),
        ("abc1e3", "abc1000", False),
        ("KADIN", "kad\u0131n", True),
        ("O\u02bcBrien", "O'Brien", True),
    ],
)
def test_names_that_look_alike_are_found(one, other, alike):
    assert look_alikes([one, "x", other, one]) == [[one, other]] * alike


def test_numbers_look_alike_where_python_reads_one_number():
    spellings = (
        "3 3.0 3.00 +3 03 3. 3e0 -3 -3.0 30 3e1 0.3 .3 3e-1 1000 1e3 1E+3 100 \u0663 33 0 0.0"
    )
    for one, other in itertools.combinations(spellings.split(), 2):
        assert bool(look_alikes([one, other])) == (float(one) == float(other)), (one, other)


def test_what_may_stand_for_a_missing_value_is_told_from_labels():
    """The question mark is that of UCI's Adult; pandas takes the first eight for missing."""
    missing = ["n/a", "null", "none", "nan", "NA", "N/A", "#N/A", "<NA>", "?", "-", ".", "--"]
    missing += ["\u2026", "\uff1f", "n.a.", "missing", "Unknown", "not available", "(no answer)"]
    assert all(map(says_nothing, missing))
    labels = ["0", "-1", "+", "\u2640", "no", "Nana", "other", "native", "\u5973", "N", "known"]
    assert not any(map(says_nothing, labels))
