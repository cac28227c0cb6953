"""The one path by which arguments enter the metrics and tests: taken as they are meant, or refused.

Every public function of ``biaslib.metrics`` and ``biaslib.inference`` sends its arguments through
here once; what it calls below takes them as sound.

- **Numbers** come as lists, arrays of NumPy, Series and tables of pandas, or tensors of PyTorch. A
  tensor is detached and moved to the CPU without a word, bfloat16 by way of float32, which holds it
  exactly: the numbers are those that were meant. So are objects that are all real numbers, such as
  fractions, decimals and whole numbers of any length. Of a Series the order counts, not the index.
- **Refused** where numbers are meant: masked and missing entries, NaN and infinity, truth values (a
  comparison given in place of scores), text even where it spells a number, complex numbers, dates,
  dicts, the outputs of a model, and rows of different length.
- **Truth values**, such as who belongs to a group, are booleans, or 0 and 1.
- **Labels** are one unit where type and value are equal: 1 is neither "1" nor True, nor "a" b"a".
  Numbers are of one type, whichever library they come from. What has no label is refused: None,
  NaN, NaT, pandas.NA, masked, and "".

What is refused raises :class:`biaslib.errors.InputError`; ``word`` is the name of the argument and
``row`` where it is bad, if one row can be named.
"""

import decimal
import math
import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from biaslib.errors import InputError

REAL = "iuf"
"""Kinds of NumPy's types that are real numbers: whole ones with and without sign, floats."""

_PLAIN = {bool, int, float, str, np.float64}


def refused(name: str, reason: str, row: int | None = None) -> InputError:
    """Return the error of an argument: the reason goes on where its name, or a row of it, ends.

    Examples
    --------
    >>> raise refused("x", "is masked", row=3)
    Traceback (most recent call last):
    biaslib.errors.InputError: row 3 of x is masked
    """
    place = name if row is None else f"row {row} of {name}"
    return InputError(f"{place} {reason}", row=row, word=name)


def real_numbers(
    values: ArrayLike,
    name: str,
    form: str = "",
    ndim: int | Sequence[int] = (),
    finite: bool = True,
) -> np.ndarray:
    """Return values as a new array of float64: see :func:`real_array`.

    Examples
    --------
    >>> real_numbers([1, 2], "x")
    array([1., 2.])
    >>> real_numbers(["1", "2"], "x")
    Traceback (most recent call last):
    biaslib.errors.InputError: x is of the type <U1; give real numbers
    """
    array = real_array(values, name, form, ndim, False)
    with np.errstate(over="ignore"):
        array = array.astype(np.float64)
    if finite:
        _require_finite(array, name)
    return array


def real_array(
    values: ArrayLike,
    name: str,
    form: str = "",
    ndim: int | Sequence[int] = (),
    finite: bool = True,
    kinds: str = REAL,
) -> np.ndarray:
    """Return values as an array, in the type of real numbers that they have.

    Parameters
    ----------
    values
        What was given.
    name
        Of the argument.
    form
        What it should be, for the error of another shape.
    ndim
        Dimensions that it can have; then it cannot be empty. By default any, and empty too.
    finite
        Refuse NaN and infinity.
    kinds
        Of NumPy's types; :data:`REAL`, or with ``"b"`` truth values as well.

    Raises
    ------
    InputError
        If the values are not real numbers, an entry is masked or missing, or the shape another.
    """
    try:
        array = np.asarray(_plain(values, name))
        if array.dtype.kind == "O":
            array = _of_objects(array, name, kinds)
    except InputError:
        raise
    except Exception as error:  # whatever a library raises of what it cannot convert
        row, reason = _odd_row(values), "has another length than row 0; give rows of one length"
        if row is None:
            said = str(error).partition("\n")[0]
            reason = f"cannot be read as real numbers ({type(error).__name__}: {said})"
        raise refused(name, reason, row) from error
    if array.dtype.kind not in kinds and array.size:
        wanted = "booleans, as in labels == 1" if kinds == "b" else "real numbers"
        raise refused(name, f"is of the type {array.dtype}; give {wanted}")
    ndim = (ndim,) if isinstance(ndim, int) else ndim
    if ndim and (array.ndim not in ndim or array.size == 0):
        raise refused(name, f"has the shape {array.shape}; give {form}")
    if finite:
        _require_finite(array, name)
    return array


def _plain(values: Any, name: str, row: int | None = None) -> Any:
    """Return values that NumPy can read, tensors as arrays, refusing what is masked."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            row = _first_row(np.ma.getmaskarray(values)) if row is None else row
            raise refused(name, "is masked; fill it, or leave it out", row)
        return values.data
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        return (tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor).numpy()
    if isinstance(values, list | tuple) and not _PLAIN.issuperset(map(type, values)):
        return [_plain(each, name, at if row is None else row) for at, each in enumerate(values)]
    return values


def _of_objects(array: np.ndarray, name: str, kinds: str) -> np.ndarray:
    for place, each in np.ndenumerate(array):
        is_truth = isinstance(each, bool | np.bool_)
        if not (isinstance(each, numbers.Real | decimal.Decimal) or is_truth) or (
            is_truth and "b" not in kinds
        ):
            reason = f"is of the type {type(each).__name__}; give real numbers"
            raise refused(name, reason, place[0] if place else None)
    return array.astype(np.float64)


def _odd_row(values: Any) -> int | None:
    """Return the first row that is longer or shorter than the first."""
    try:
        sizes = [np.size(each) for each in values]
        return next((row for row, size in enumerate(sizes) if size != sizes[0]), None)
    except Exception:  # rows that cannot be told, as those of a tensor on no device
        return None


def _first_row(bad: np.ndarray) -> int | None:
    return int(np.argwhere(bad)[0][0]) if bad.ndim else None


def _require_finite(array: np.ndarray, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        reason = "is not finite; look for NaN in what it was computed from"
        raise refused(name, reason, _first_row(~finite))


def real_number(value: float, name: str, low: float = -np.inf, finite: bool = True) -> float:
    """Return one number, refusing what is none or less than the least.

    Examples
    --------
    >>> real_number(-1, "tolerance", low=0)
    Traceback (most recent call last):
    biaslib.errors.InputError: tolerance is -1.0; give a number of at least 0
    """
    if type(value) is not float:
        array = real_numbers(value, name, finite=False)
        if array.ndim:
            raise refused(name, f"has the shape {array.shape}; give one number")
        value = float(array)
    if finite and not math.isfinite(value):
        raise refused(name, f"is {value}; give a finite number")
    if value < low:
        raise refused(name, f"is {value}; give a number of at least {low}")
    return value


def between_0_and_1(value: float, name: str) -> float:
    """Return a level: a number above 0 and below 1.

    Examples
    --------
    >>> between_0_and_1(95, "confidence")
    Traceback (most recent call last):
    biaslib.errors.InputError: confidence is 95.0; it must lie between 0 and 1
    """
    value = real_number(value, name)
    if not 0.0 < value < 1.0:
        raise refused(name, f"is {value}; it must lie between 0 and 1")
    return value


def whole_number(value: int, name: str, least: float = -np.inf, most: float = np.inf) -> int:
    """Return a whole number in a range, its ends included.

    Examples
    --------
    >>> whole_number(0, "n_resamples", 1)
    Traceback (most recent call last):
    biaslib.errors.InputError: n_resamples is 0; give a whole number of at least 1
    """
    whole = value
    if type(value) is not int:
        whole = value.item() if isinstance(value, np.integer) else real_number(value, name)
        whole = int(whole) if whole % 1 == 0 else None
    if whole is None or not least <= whole <= most:
        raise refused(name, f"is {value}; give a whole number {_range(least, most)}".rstrip())
    return whole


def whole_numbers(
    values: ArrayLike, name: str, form: str, ndim: int, least: int, most: float
) -> np.ndarray:
    """Return an array of whole numbers in a range, its ends included: places, counts.

    Examples
    --------
    >>> whole_numbers([[0, 2], [1, 9]], "draws", "a table", 2, 0, 5)
    Traceback (most recent call last):
    biaslib.errors.InputError: row 1 of draws holds 9; give whole numbers from 0 to 5
    """
    array = real_array(values, name, form, ndim)
    bad = (array < least) | (array > most)
    if array.dtype.kind == "f":
        bad |= array % 1 != 0
    if bad.any():
        reason = f"holds {array[bad][0]}; give whole numbers {_range(least, most)}"
        raise refused(name, reason, _first_row(bad))
    return array.astype(np.intp)


def _range(low: float, high: float) -> str:
    if np.isinf(low):
        return "" if np.isinf(high) else f"of at most {high}"
    return f"of at least {low}" if np.isinf(high) else f"from {low} to {high}"


def divisor(ddof: int) -> int:
    """Return what is taken from n in the divisor of a variance: 0 or 1.

    Examples
    --------
    >>> divisor(2)
    Traceback (most recent call last):
    biaslib.errors.InputError: ddof is 2; give a whole number from 0 to 1
    """
    return whole_number(ddof, "ddof", 0, 1)


def one_of(value: str, name: str, known: Iterable[str]) -> str:
    """Return a choice that exists.

    Examples
    --------
    >>> one_of("both", "alternative", ("greater", "less"))
    Traceback (most recent call last):
    biaslib.errors.InputError: alternative is 'both'; it can be one of greater, less
    """
    if not isinstance(value, str) or value not in known:
        given = repr(value) if isinstance(value, str) else f"of the type {type(value).__name__}"
        raise refused(name, f"is {given}; it can be one of {', '.join(known)}")
    return value


def flag(value: bool, name: str) -> bool:
    """Return True or False, and refuse what only counts as one, such as the text "no".

    Examples
    --------
    >>> flag("no", "require_equal")
    Traceback (most recent call last):
    biaslib.errors.InputError: require_equal is of the type str; give True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise refused(name, f"is of the type {type(value).__name__}; give True or False")
    return bool(value)


def made_by(value: Any, name: str, kind: type, source: str) -> Any:
    """Return a result of ours, and refuse another object in its place.

    Examples
    --------
    >>> made_by({}, "result", float, "what grounded() returns")
    Traceback (most recent call last):
    biaslib.errors.InputError: result is of the type dict; give what grounded() returns
    """
    if not isinstance(value, kind):
        raise refused(name, f"is of the type {type(value).__name__}; give {source}")
    return value


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a generator of random numbers, from itself, a seed, or None.

    Examples
    --------
    >>> generator("today")
    Traceback (most recent call last):
    biaslib.errors.InputError: rng is of the type str; give a seed, a whole number of at least 0
    """
    try:
        if isinstance(rng, bool | np.bool_ | np.ma.MaskedArray):
            raise TypeError
        return np.random.default_rng(rng)
    except Exception as error:  # whatever a library raises of what it cannot convert
        reason = f"is of the type {type(rng).__name__}; give a seed, a whole number of at least 0"
        raise refused("rng", reason) from error


def truth_values(values: ArrayLike, name: str, form: str, ndim: int) -> np.ndarray:
    """Return booleans, from booleans or 0 and 1.

    Examples
    --------
    >>> truth_values([[1, 0], [0, 2]], "groups", "a table", 2)
    Traceback (most recent call last):
    biaslib.errors.InputError: row 1 of groups holds a value that is not true or false
    """
    array = real_array(values, name, form, ndim, kinds=REAL + "b")
    if array.dtype != bool and not (sound := (array == 0) | (array == 1)).all():
        raise refused(name, "holds a value that is not true or false", _first_row(~sound))
    return array.astype(bool, copy=False)


def weight_columns(weights: ArrayLike, n: int, name: str = "weights") -> tuple[np.ndarray, bool]:
    """Return weights of n images, (n,) or (n, r), as columns, and whether they are one set.

    Examples
    --------
    >>> columns, single = weight_columns([1, 2], 2)
    >>> columns.shape, single
    ((2, 1), True)
    """
    columns = real_numbers(weights, name, f"one row for each of {n} images", (1, 2))
    if len(columns) != n:
        raise refused(name, f"has the shape {columns.shape}; there are {n} images, one row each")
    negative = columns < 0
    if negative.any():
        raise refused(
            name, "is negative; an image counts not at all, or more", _first_row(negative)
        )
    return columns.reshape(n, -1), columns.ndim == 1


def label_keys(labels: Sequence, name: str, n: int | None = None) -> list[Hashable]:
    """Return one key a label; keys are equal where types and values of labels are.

    Examples
    --------
    >>> len(set(label_keys([1, "1", True, np.int64(1), 1.0, b"1"], "people")))
    4
    >>> label_keys(["a", None], "people")
    Traceback (most recent call last):
    biaslib.errors.InputError: row 1 of people has no label
    """
    values = labels.tolist() if hasattr(labels, "tolist") else labels
    if not isinstance(values, Iterable) or isinstance(values, Mapping | set | frozenset):
        raise refused(name, f"is of the type {type(labels).__name__}; give a list of labels")
    if getattr(labels, "ndim", 1) != 1:
        raise refused(name, f"has {labels.ndim} dimensions; give a list of labels")
    keys = [_key(each, name, row) for row, each in enumerate(values)]
    if n is not None and len(keys) != n:
        raise refused(name, f"has {len(keys)} labels; there must be {n}")
    return keys


def label_codes(labels: Sequence, name: str, n: int | None = None) -> tuple[np.ndarray, list]:
    """Return the number of each label among the different ones, (n,), and these, in their order.

    Examples
    --------
    >>> codes, different = label_codes(["b", "a", "b"], "people")
    >>> codes.tolist(), different
    ([1, 0, 1], ['a', 'b'])
    """
    keys = label_keys(labels, name, n)
    different = list(dict.fromkeys(keys))
    try:
        different.sort()
    except TypeError:  # of several types: in the order in which they come
        different = list(dict.fromkeys(keys))
    place = {key: at for at, key in enumerate(different)}
    codes = np.array([place[key] for key in keys], dtype=np.intp)
    return codes, [each[1] if isinstance(each, _Truth) else each for each in different]


class _Truth(tuple):
    """The key of a truth value, which Python takes for 0 or 1."""


def _key(label: Any, name: str, row: int) -> Hashable:
    """Return a label, or what stands for it in comparisons."""
    if type(label) is str and label:
        return label
    if isinstance(label, bool | np.bool_):
        return _Truth((bool, bool(label)))
    if isinstance(label, np.number):
        label = label.item()  # NumPy compares whole numbers with floats as floats
    try:
        hash(label)
    except TypeError as error:
        reason = f"is of the type {type(label).__name__}; give text or numbers"
        raise refused(name, reason, row) from error
    same = label == label
    is_there = isinstance(same, bool | np.bool_) and same and label is not None and label != ""
    if not is_there:
        raise refused(name, "has no label", row)
    return label


def in_scale(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return values divided by a power of two that brings the largest into [0.5, 1), and its log2.

    Nothing is rounded: only exponents change, so that sums and squares of what is very large or
    very small are neither infinite nor 0.

    Examples
    --------
    >>> values, exponent = in_scale(np.array([3e200, -1e200]))
    >>> float(np.abs(values).max()) < 1, np.ldexp(values, exponent).tolist()
    (True, [3e+200, -1e+200])
    """
    largest = np.abs(values).max(axis=axis, keepdims=axis is not None)
    exponent = np.frexp(largest)[1]
    return np.ldexp(values, -exponent), exponent
