"""Checks of exercises say right or not yet, whatever they are given."""

import numpy as np
import pandas
import pytest

from companion import _check


class Found:
    """What a permutation test returns: a p-value, and the interval that it lies in."""

    def __init__(self, p_value, low=None, high=None):
        self.p_value = p_value
        self.low, self.high = (p_value if end is None else end for end in (low, high))


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
        (" Word", "word", True),
        (np.array([0.3]), 0.3, True),
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
        ({"first": 0.5, "second": 0.25}, [0.5, 0.25], True),
        ({"first": 0.25, "second": 0.5}, [0.5, 0.25], False),
        ({"first": 0.5, "second": 0.25}, 0.5, False),
        (0.1235, 0.12345678, True),
        (0.123457, 0.12345678, True),
        (0.1236, 0.12345678, False),
        (0.12, 0.12345678, False),
        ([0.1235, 2.0], [0.12345678, 2.0], True),
        ([0.1236, 2.0], [0.12345678, 2.0], False),
        (Found(0.30), 0.3, True),
        (Found(0.31), 0.3, False),
        (Found(0.31, 0.28, 0.34), 0.3, True),
        (Found(0.35, 0.31, 0.39), 0.3, False),
        (Found(float("nan")), 0.3, False),
        (Found(0.3), [0.3], False),
    ],
)
def test_answers_are_judged(answer, expected, passed):
    found = _check.judge(answer, expected, "the mean is over words")
    assert found.passed is passed
    assert repr(found) == ("Right: well done." if passed else "Not yet: the mean is over words")


def test_the_tolerance_is_absolute():
    assert _check.judge(1009.0, 1000, "", tolerance=10).passed
    assert not _check.judge(0.02, 0.01, "", tolerance=0.005).passed


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([True, False, True], "Right: well done."),
        (np.array([True, False, True]), "Right: well done."),
        (pandas.Series([True, False, True]), "Right: well done."),
        ([True, True, False], "Not yet: 1 of 3 are right; two"),
        ([1, 0, 1], "Not yet: three truth values"),
        ([True, False], "Not yet: three truth values"),
        ({"a": True, "b": False, "c": True}, "Right: well done."),
        (["True", "False", "True"], "Not yet: three truth values"),
        (None, "Not yet: three truth values"),
    ],
)
def test_verdicts_are_counted_and_the_first_wrong_one_is_hinted_at(answer, told):
    hints = ["one", "two", "three"]
    found = _check.judge_list(answer, [True, False, True], "three truth values", hints)
    assert repr(found) == told


def test_words_that_are_never_expected_are_asked_for_again():
    found = _check.judge_list(["yes", "perhaps"], ["yes", "no"], "say yes or no")
    assert repr(found) == "Not yet: say yes or no"
    found = _check.judge_list(np.array(["yes", "yes"]), ["yes", "no"], "say yes or no", "again")
    assert repr(found) == "Not yet: 1 of 2 are right; again"
