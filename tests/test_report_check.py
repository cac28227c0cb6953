"""Checks of exercises say right or not yet, whatever they are given."""

import numpy as np
import pandas
import pytest

from biaslib import report


@pytest.mark.parametrize(
    ("answer", "expected", "passed"),
    [
        (..., 1.0, False),
        (None, None, False),
        (0.3, 0.1 + 0.2, True),
        (0.31, 0.3, False),
        ("0.3", 0.3, True),
        ("three", 0.3, False),
        ([0.1, 0.2], np.array([0.1, 0.2]), True),
        ([[0.1, 0.2]], [0.1, 0.2], False),
        (np.array([1, np.nan]), [1, np.nan], True),
        (pandas.Series([1.0, 2.0]), [1, 2], True),
        ([1, 2], pandas.Series([1.0, 2.0]), True),
        ("word", "word", True),
        (["word"], "word", False),
        (True, True, True),
        (["a", "b"], ("a", "b"), True),
        (["a"], ("a", "b"), False),
        (["a", "b", "c"], ["a", "b"], False),
        ({"d": 0.5, "p": [1]}, {"d": 0.5, "p": [1]}, True),
        ({"d": 0.5}, {"d": 0.5, "p": 1}, False),
        (0.5, {"d": 0.5}, False),
        ({"a", "b"}, {"b", "a"}, True),
        (len, 3, False),
    ],
)
def test_answers_are_judged(answer, expected, passed):
    found = report.judge(answer, expected, "the mean is over words")
    assert found.passed is passed
    assert repr(found) == ("Right: well done." if passed else "Not yet: the mean is over words")


def test_the_tolerance_is_absolute():
    assert report.judge(1009.0, 1000, "", tolerance=10).passed
    assert not report.judge(0.02, 0.01, "", tolerance=0.005).passed


def test_a_check_is_a_line_of_the_page():
    assert report.Check(True, "a < b")._repr_html_() == (
        '<p class="check check-right"><strong>Right:</strong> a &lt; b</p>'
    )
