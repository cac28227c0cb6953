"""The one path by which arguments enter the metrics and tests: taken as they are meant, or refused.

Every public function of ``biaslib.metrics`` and ``biaslib.inference`` sends its arguments through
here once; what it calls below takes them as sound.

- **Numbers** come as lists, arrays of NumPy, Series and tables of pandas, or tensors of PyTorch. A
  tensor is detached and moved to the CPU without a word, bfloat16 by way of float32, which holds it
  exactly: the numbers are those that were meant. Of a Series the order counts, not the index.
- **Refused** where numbers are meant: masked and missing entries, NaN and infinity, truth values (a
  comparison given in place of scores), text even where it spells a number, complex numbers, dates,
  dicts, the outputs of a model, and rows of different length.
- **Truth values**, such as who belongs to a group, are booleans, or 0 and 1.
- **Labels** are one unit where Python takes them for equal. What has no label is refused: None,
  NaN, NaT, pandas.NA, and "".

What is refused raises :class:`biaslib.errors.InputError`; ``word`` is the name of the argument and
``row`` where it is bad, if one row can be named.
"""

import contextlib
import math
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from biaslib.errors import InputError

REAL = "iuf"
"""Kinds of NumPy's types that are real numbers: whole ones with and without sign, floats."""


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
        if array.dtype.kind == "O":  # columns of pandas that could have gaps are objects
            array = np.asarray(array.tolist())
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        said = str(error).partition("\n")[0]
        raise refused(name, f"cannot be read as real numbers ({said})") from error
    if array.dtype.kind not in kinds and array.size:
        wanted = "booleans, as in labels == 1" if kinds == "b" else "real numbers"
        raise refused(name, f"is of the type {array.dtype}; give {wanted}")
    ndim = (ndim,) if isinstance(ndim, int) else ndim
    if ndim and (array.ndim not in ndim or array.size == 0):
        raise refused(name, f"has the shape {array.shape}; give {form}")
    if finite:
        _require_finite(array, name)
    return array


def _plain(values: Any, name: str) -> Any:
    """Return values that NumPy can read, tensors as arrays, refusing what is masked."""
    if np.ma.is_masked(values):
        raise refused(name, "is masked; fill it, or leave it out")
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()  # NumPy has no bfloat16
        return (tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor).numpy()
    if isinstance(values, list | tuple) and any(hasattr(each, "__len__") for each in values):
        return [_plain(row, name) for row in values]
    return values


def _first_row(bad: np.ndarray) -> int | None:
    return int(np.argwhere(bad)[0][0]) if bad.ndim else None


def _require_finite(array: np.ndarray, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        reason = "is not finite; look for NaN in what it was computed from"
        raise refused(name, reason, _first_row(~finite))


def embeddings(vectors: ArrayLike, name: str, finite: bool = True) -> np.ndarray:
    """Return a table of embeddings in their type, and warn of bytes.

    Examples
    --------
    >>> embeddings([[0.5, 1.0]], "X")
    array([[0.5, 1. ]])
    """
    rows = real_array(vectors, name, "a table of embeddings, one row an item", 2, finite)
    if rows.dtype.itemsize == 1:
        bits = name if rows.dtype == np.uint8 else f"{name}.view(np.uint8) ^ 128"
        warnings.warn(
            f"{name} holds {rows.dtype}, as quantised vectors and packed bits do, and cosines of "
            'these are not those of the vectors: encode with precision="float32", or give bits as '
            f"np.unpackbits({bits}, axis=1) * 2.0 - 1",
            stacklevel=4,
        )
    return rows


def real_number(value: float, name: str, low: float = -np.inf, finite: bool = True) -> float:
    """Return one number, refusing what is none or less than the least.

    Examples
    --------
    >>> real_number(-1, "tolerance", low=0)
    Traceback (most recent call last):
    biaslib.errors.InputError: tolerance is -1.0; give a number of at least 0
    """
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
    whole = value if type(value) is int else real_number(value, name)
    if whole % 1 or not least <= whole <= most:
        raise refused(name, f"is {value}; give a whole number {_range(least, most)}".rstrip())
    return int(whole)


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
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
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


def require_length(values: Sequence, n: int, name: str, of: str) -> None:
    """Refuse what has not one row for each of n others.

    Examples
    --------
    >>> require_length([1, 2], 3, "groups", "images")
    Traceback (most recent call last):
    biaslib.errors.InputError: groups has 2 rows; there are 3 images, one row each
    """
    if len(values) != n:
        raise refused(name, f"has {len(values)} rows; there are {n} {of}, one row each")


def weight_columns(weights: ArrayLike, n: int, name: str = "weights") -> tuple[np.ndarray, bool]:
    """Return weights of n images, (n,) or (n, r), as columns, and whether they are one set.

    Examples
    --------
    >>> columns, single = weight_columns([1, 2], 2)
    >>> columns.shape, single
    ((2, 1), True)
    """
    columns = real_numbers(weights, name, f"one row for each of {n} images", (1, 2))
    require_length(columns, n, name, "images")
    negative = columns < 0
    if negative.any():
        raise refused(
            name, "is negative; an image counts not at all, or more", _first_row(negative)
        )
    return columns.reshape(n, -1), columns.ndim == 1


def label_keys(labels: Sequence, name: str, n: int | None = None) -> list[Hashable]:
    """Return labels as a list, none of them missing.

    Examples
    --------
    >>> label_keys(np.array([1, 2]), "people")
    [1, 2]
    >>> label_keys(["a", None], "people")
    Traceback (most recent call last):
    biaslib.errors.InputError: row 1 of people has no label
    """
    if not isinstance(labels, Iterable) or isinstance(labels, Mapping | Set):
        raise refused(name, f"is of the type {type(labels).__name__}; give a list of labels")
    keys = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    for row, key in enumerate(keys):
        if not isinstance(key, Hashable) or _is_missing(key):
            raise refused(name, "has no label", row)
    if n is not None:
        require_length(keys, n, name, "items to label")
    return keys


def _is_missing(label: Hashable) -> bool:
    # NaN and NaT do not equal themselves; pandas.NA does not say whether it does.
    same = label == label
    return not isinstance(same, bool | np.bool_) or not same or label in (None, "")


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
    with contextlib.suppress(TypeError):  # labels of several types stay as they come
        different = sorted(different)
    place = {key: at for at, key in enumerate(different)}
    return np.array([place[key] for key in keys], dtype=np.intp), different


def texts(values: Sequence[str], name: str) -> list[str]:
    """Return a list of texts, none of them missing.

    Examples
    --------
    >>> texts("nurse", "words")
    Traceback (most recent call last):
    biaslib.errors.InputError: words is one text; give a list of them
    """
    if isinstance(values, str):
        raise refused(name, "is one text; give a list of them")
    listed = label_keys(values, name)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise refused(name, f"is of the type {type(text).__name__}; give text", row)
    return listed


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
