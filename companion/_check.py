"""Checks of exercises: right, or not yet and a hint."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pandas

FOUR_DECIMALS = 5.001e-5
"""How far a number moves that is rounded to four decimals."""

SAMPLED = 0.02
"""How far a p-value from 10,000 drawn deals may lie from that of all: four standard errors."""


@dataclass(frozen=True)
class Check:
    """Whether an exercise is solved, shown as "Right: ..." or "Not yet: ...".

    Parameters
    ----------
    passed
        Whether the answer is right.
    message
        What the reader learns from the right answer, or the hint.

    Examples
    --------
    >>> Check(False, "the mean is over words")
    Not yet: the mean is over words
    """

    passed: bool
    message: str

    def __repr__(self) -> str:
        return f"{'Right' if self.passed else 'Not yet'}: {self.message}"

    def _repr_html_(self) -> str:
        state = "right" if self.passed else "not-yet"
        start, message = ("Right" if self.passed else "Not yet"), html.escape(self.message)
        return f'<p class="check check-{state}"><strong>{start}:</strong> {message}</p>'


def judge(
    answer: Any,
    expected: Any,
    hint: str,
    tolerance: float = FOUR_DECIMALS,
    right: str = "well done.",
    faults: Mapping[str, Any] | None = None,
) -> Check:
    """Compare an answer with the expected one.

    Parameters
    ----------
    answer
        What the reader wrote; ``None`` and ``...`` are blanks. A mapping may stand for a sequence;
        a result of a permutation test for a number that lies in its interval.
    expected
        A number, an array, a word (of any case), or sequences and mappings of these.
    hint
        What to say while the answer is not right.
    tolerance
        Largest difference of numbers that still counts as equal.
    right
        What to say of a right answer.
    faults
        What people give instead: by what to say to it, in the place of ``hint``.

    Returns
    -------
    Check
        Never an error: an answer of another type or shape is not right yet.

    Examples
    --------
    >>> judge(..., 0.25, "count the partitions first")
    Not yet: count the partitions first
    >>> judge([0.1, 0.2], np.array([0.1, 0.2]), "", right="one score a word.")
    Right: one score a word.
    >>> judge(0.3, 0.69, "a ratio", faults={"this is log10; ln is natural": 0.3})
    Not yet: this is log10; ln is natural
    """
    passed = _same(answer, expected, tolerance)
    made = (told for told, wrong in (faults or {}).items() if _same(answer, wrong, tolerance))
    return Check(passed, right if passed else next(made, hint))


def judge_function(
    answer: Any,
    cases: Sequence[tuple[tuple, Any]],
    hint: str,
    tolerance: float = FOUR_DECIMALS,
    right: str = "well done.",
    faults: Mapping[str, Callable] | None = None,
) -> Check:
    """Judge a function by what it gives for several arguments, at least one for each mistake.

    Parameters
    ----------
    answer
        What the reader wrote.
    cases
        Arguments, and what the function has to give for them.
    hint, tolerance, right
        As for :func:`judge`.
    faults
        Functions that people write instead, by what to say to it.

    Returns
    -------
    Check
        Never an error: one that the function raises is told to the reader.

    Examples
    --------
    >>> judge_function(max, [((2, 3), 3), ((5, 4), 5)], "compare them")
    Right: well done.
    >>> judge_function(max, [((2, None), 2)], "compare them").message.split(":")[0]
    'the function stops with a TypeError'
    """
    if not callable(answer):
        return Check(False, f"write a function: {hint}")
    for arguments, expected in cases:
        try:
            given = answer(*arguments)
        except Exception as error:
            return stopped(error)
        made = {told: wrong(*arguments) for told, wrong in (faults or {}).items()}
        check = judge(given, expected, hint, tolerance, right, made)
        if not check.passed:
            return check
    return Check(True, right)


def judge_steps(
    answer: Any, steps: Sequence[tuple[float, str, Mapping]], form: str, right: str
) -> Check:
    """Judge numbers that are worked out one after the other; the first wrong one has the hint.

    Parameters
    ----------
    answer
        The numbers, in their order.
    steps
        For each the expected number, a hint, and faults as for :func:`judge`.
    form
        What to give, as an instruction.
    right
        What to say if all are right.

    Examples
    --------
    >>> judge_steps([0.5, 3], [(0.5, "", {}), (2, "add them", {})], "give two", "well done.")
    Not yet: add them
    """
    given = values_of(answer)
    given = list(given) if isinstance(given, list | tuple | np.ndarray | pandas.Series) else []
    if len(given) != len(steps) or any(each is None or each is ... for each in given):
        return Check(False, form)
    pairs = zip(given, steps, strict=True)
    checks = [judge(each, *step[:2], faults=step[2]) for each, step in pairs]
    return next((each for each in checks if not each.passed), Check(True, right))


def stopped(error: Exception) -> Check:
    """Tell a reader what the reader's function raises."""
    return Check(False, f"the function stops with a {type(error).__name__}: {error}")


def values_of(answer: Any) -> Any:
    """Return the values of a mapping, in its order, and anything else as it is.

    Examples
    --------
    >>> values_of({"second": 0.5, "third": 0.25}), values_of(0.5)
    ([0.5, 0.25], 0.5)
    """
    return list(answer.values()) if isinstance(answer, Mapping) else answer


def items_of(answer: Any) -> list:
    """Return what an answer names: the items of a set, a list or an array, or letters of a text.

    Examples
    --------
    >>> items_of("b, e"), items_of("be"), items_of({5}), items_of(5), items_of(None)
    (['b', 'e'], ['b', 'e'], [5], [5], [])
    """
    if answer is None or answer is ... or (isinstance(answer, str) and answer.lower() == "none"):
        return []
    if isinstance(answer, str):
        parts = re.split(r"[\s,;]+", answer.strip())
        return parts if len(parts) > 1 else list(parts[0])
    return list(answer) if np.iterable(answer) else [answer]


def judge_choice(
    answer: Any, expected: str, hints: Mapping[str, str], missing: str, right: str
) -> Check:
    """Judge which letters a reader chose.

    Parameters
    ----------
    answer
        Letters, in any form that :func:`items_of` reads.
    expected
        Those that are right.
    hints
        Of each letter that is wrong, what to think about.
    missing
        What to say if none is wrong, and not all are there.
    right
        What to say if they are those expected.

    Examples
    --------
    >>> judge_choice("b, c", "b", {"a": "by whom?", "c": "of how many?"}, "read on", "well done.")
    Not yet: (c) of how many?
    """
    chosen = {str(each).strip().lower() for each in items_of(answer)}
    if wrong := sorted(chosen & set(hints)):
        return Check(False, "; ".join(f"({each}) {hints[each]}" for each in wrong))
    passed = chosen == set(expected)
    return Check(passed, right if passed else missing)


def effect_step(gap: float, scores: np.ndarray, more: Mapping[str, float]) -> tuple:
    """Return a step of :func:`judge_steps`: an effect size, of a difference of means by hand."""
    faults = {
        "this is ddof 0: divide the sum of squares by 3 and not by 4": gap / scores.std(),
        "this is the difference of the means: divide it by the spread": gap,
    }
    hint = "the difference of two means, over the spread of all four scores"
    return gap / scores.std(ddof=1), hint, faults | more


def judge_list(
    answer: Any,
    expected: Sequence[Any],
    form: str,
    hint: str | Sequence[str] = "",
    right: str = "well done.",
) -> Check:
    """Compare a list of verdicts with the expected one, and say how many of them are right.

    Parameters
    ----------
    answer, expected
        Verdicts in the same order: truth values, or words, each of which is expected somewhere,
        in small letters; the answer's may be of any case. Anything else is asked for again.
    form
        What to give, as an instruction.
    hint
        What to think about if an answer is wrong; a sequence has one for each place, of which that
        of the first wrong answer is shown.
    right
        What to say if all are right.

    Examples
    --------
    >>> judge_list([True, True], [True, False], "give two truth values", "read them again")
    Not yet: 1 of 2 are right; read them again
    """
    answer = values_of(answer)
    given = list(answer) if isinstance(answer, list | tuple | np.ndarray | pandas.Series) else []
    given = [each.strip().lower() if isinstance(each, str) else each for each in given]
    kinds = str if isinstance(expected[0], str) else bool | np.bool_
    known = all(isinstance(each, kinds) and each in set(expected) for each in given)
    if len(given) != len(expected) or not known:
        return Check(False, form)
    wrong = [at for at, pair in enumerate(zip(given, expected, strict=True)) if pair[0] != pair[1]]
    if not wrong:
        return Check(True, right)
    told = f"{len(given) - len(wrong)} of {len(given)} are right"
    hint = hint if isinstance(hint, str) else hint[wrong[0]]
    return Check(False, f"{told}; {hint}" if hint else told)


def _same(answer: Any, expected: Any, tolerance: float) -> bool:
    if answer is None or answer is ...:
        return False
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip().lower() == expected.lower()
    if isinstance(expected, bool | np.bool_):
        return bool(np.ndim(answer) == 0 and answer == expected)
    if isinstance(expected, Mapping):
        answer = answer.to_dict() if isinstance(answer, pandas.Series) else answer
        same_keys = isinstance(answer, Mapping) and answer.keys() == expected.keys()
        return same_keys and all(_same(answer[k], expected[k], tolerance) for k in expected)
    answer = values_of(answer)
    if isinstance(expected, Number | np.ndarray) or _numbers(expected):
        return _near(answer, expected, tolerance)
    if isinstance(expected, Sequence) and isinstance(answer, Sequence | np.ndarray):
        pairs = zip(answer, expected, strict=False)
        return len(answer) == len(expected) and all(_same(a, e, tolerance) for a, e in pairs)
    return bool(answer == expected)


def _numbers(expected: Any) -> bool:
    if not isinstance(expected, Sequence):
        return hasattr(expected, "to_numpy")
    return all(isinstance(each, Number) for each in expected)


def _near(answer: Any, expected: Any, tolerance: float) -> bool:
    if hasattr(answer, "p_value"):
        low, high = (getattr(answer, end, answer.p_value) for end in ("low", "high"))
        return np.ndim(expected) == 0 and bool(low - tolerance <= expected <= high + tolerance)
    try:
        found, wanted = np.asarray(answer, dtype=float), np.asarray(expected, dtype=float)
    except (TypeError, ValueError):
        return False
    found = found if wanted.ndim else found.squeeze()
    close = found.shape == wanted.shape
    return close and bool(np.allclose(found, wanted, rtol=0, atol=tolerance, equal_nan=True))
