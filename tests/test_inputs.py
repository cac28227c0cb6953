"""Arguments of every kind at every public function: right, or refused by name; nothing between.

:data:`CALLS` holds one sound call of every public function. Each argument in turn is replaced by
the same numbers in another dress, which must give the same result, and by what is no such argument,
which must be refused with an InputError that names it.
"""

import dataclasses
import datetime
import inspect
import warnings
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest

from biaslib import datasets, inference
from biaslib.datasets import ross2021, vlstereoset
from biaslib.errors import InputError
from biaslib.metrics import association, caption_association, caption_selection, masked_lm
from biaslib.metrics.grounded import grounded
from biaslib.runtime import UnknownNameError

MODULES = (association, caption_association, caption_selection, masked_lm, inference)

# Eighths are exact in float16 and bfloat16, so that every dress holds the same numbers.
RNG = np.random.default_rng(4)
X, Y = np.array([3.0, 1, 2.5, 5, 4]), np.array([0.0, 2, 1, 1.5, 3])
SETS = RNG.integers(-8, 9, (6, 4, 3)) / 8 + [0.25, 0, 0]
COSINES = RNG.integers(-8, 9, (6, 4)) / 8
POOL = RNG.integers(-8, 9, (6, 12)) / 8
SIMILARITIES = RNG.integers(0, 9, (2, 8)) / 8
GROUPS = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]], bool)
TOP = np.stack([np.arange(8), np.arange(8)[::-1]])
LOGS, NEUTRAL = -np.array([0.5, 1, 2, 0.25]), -np.array([1.0, 0.5, 0.25, 2])
SCORES = np.array([[3.0, 2, 1], [1, 3, 2], [1, 2, 3], [2, 3, 1], [3, 1, 2]])
ANTI = np.array([True, False, True, True, False])
PROBABILITIES = np.array([0.5, 0.25, 0.125])
COMPOSITION = caption_association.top_k_composition(TOP[:, :3], GROUPS)
SELECTION = caption_selection.selection_scores(SCORES, ANTI)["overall"]
LANGUAGE = masked_lm.language_association(LOGS, NEUTRAL)
VISION = masked_lm.visual_association(LOGS, -1.0)
BIAS = masked_lm.bias_score(f=VISION, m=VISION)
NULL = inference.random_attribute_null(POOL[:3], POOL[3:], 2, 2, 20, rng=0)
GROUNDED = grounded(*SETS, experiment=2)
THIRD = grounded(*SETS, experiment=3)
ATTRIBUTES = dict(zip(("Ax", "Ay", "Bx", "By"), ("aabc", "abcd", "efgh", "hgfe"), strict=True))
ATTRIBUTES = {name: list(each) for name, each in ATTRIBUTES.items()}
PICTURES = {name: [f"{name}{at}" for at in range(4)] for name in ATTRIBUTES}


def mean(weights):
    return (X @ weights) / weights.sum(axis=0)


CALLS = {
    association.cosines: dict(W=SETS[0], V=SETS[1]),
    association.association: dict(W=SETS[0], A=SETS[1], B=SETS[2]),
    association.test_statistic: dict(X=SETS[0], Y=SETS[1], A=SETS[2], B=SETS[3]),
    association.effect_size: dict(
        X=SETS[0], Y=SETS[1], A=SETS[2], B=SETS[3], ddof=1, require_equal=True
    ),
    association.effect_size_of_scores: dict(x_scores=X, y_scores=Y, ddof=1, require_equal=True),
    grounded: dict(
        zip(("X", "Y", "Ax", "Ay", "Bx", "By", "experiment", "ddof"), (*SETS, 2, 1), strict=True)
    ),
    caption_association.c_asc: dict(similarities=SIMILARITIES, groups=GROUPS, ddof=1),
    caption_association.top_k: dict(similarities=SIMILARITIES, k=3),
    caption_association.top_k_composition: dict(top=TOP[:, :3], groups=GROUPS),
    caption_association.entropy: dict(counts=np.array([[1.0, 2], [3, 4]])),
    caption_association.representation: dict(composition=COMPOSITION),
    caption_association.skew_at_k: dict(composition=COMPOSITION, smoothing=1.0),
    caption_selection.caption_probabilities: dict(scores=SCORES, scale=2.0),
    caption_selection.picks: dict(scores=SCORES, ties="split", tolerance=0.5),
    caption_selection.vlrs: dict(scores=SCORES, ties="split"),
    caption_selection.vlbs: dict(
        scores=SCORES,
        anti_stereotypical=ANTI,
        ties="split",
    ),
    caption_selection.ivlas: dict(vlrs=np.array([50.0, 60, 75]), vlbs=np.array([30.0, 20, 10])),
    caption_selection.selection_scores: dict(
        scores=SCORES,
        anti_stereotypical=ANTI,
        categories=["a", "b", "a", "b", "b"],
        targets=["c", "d", "c", "d", "e"],
        ties="split",
        tolerance=0.5,
        require_relevant=True,
        require_anti=True,
    ),
    caption_selection.reference_scores: dict(model="random"),
    caption_selection.two_way: dict(scores=SCORES[:, :2], scale=2.0),
    caption_selection.lmss: dict(original=PROBABILITIES, neutral=PROBABILITIES[::-1]),
    caption_selection.vlss: dict(with_image=PROBABILITIES, blank=PROBABILITIES[::-1]),
    caption_selection.percent_positive_without_bias: dict(below=0.25, above=0.75, between=0.5),
    masked_lm.pretraining_shift: dict(log_p_vl=LOGS, log_p_l=NEUTRAL),
    masked_lm.language_association: dict(log_p_gendered=LOGS, log_p_neutral=NEUTRAL),
    masked_lm.visual_association: dict(log_p_images=LOGS, log_p_no_image=-1.0),
    masked_lm.bias_score: dict(f=LANGUAGE, m=LANGUAGE),
    inference.adjust: dict(p_values=np.array([0.25, 0.5, 0.125]), method="bh"),
    inference.bootstrap: dict(
        statistic=mean,
        n_units=np.array([5]),
        within=(0.0, 8.0),
        n_resamples=40,
        rng=0,
        at_once=20,
        freedom=3.0,
        n_equal=4,
        limit=8.0,
    ),
    inference.stratified_bootstrap: dict(
        statistic=lambda w: (np.arange(float(len(w))) @ w) / w.sum(axis=0),
        strata=["a", "a", "b", "b"],
        n_resamples=20,
        rng=0,
        limit=8.0,
        share=np.array([0.5, 0.5, 0.25, 0.25]),
    ),
    inference.bootstrap_effect_size: dict(
        cosines_a=COSINES,
        cosines_b=COSINES[::-1],
        x_units=["a", "b", "b"],
        y_units=["c", "d", "e"],
        a_units=["p", "q", "r", "s"],
        b_units=["p", "q", "q", "s"],
        n_resamples=40,
        rng=0,
    ),
    inference.bootstrap_c_asc: dict(
        similarities=SIMILARITIES,
        groups=GROUPS,
        ddof=1,
        people=list("aabbccdd"),
        n_resamples=40,
        rng=0,
    ),
    inference.bootstrap_top_k: dict(
        ranking=TOP,
        groups=GROUPS,
        k=2,
        statistic="share",
        people=list("abcdefgh"),
        n_resamples=40,
        rng=0,
    ),
    inference.bootstrap_selection: dict(
        scores=SELECTION,
        triplets=["a", "b", "c", "a", "d"],
        statistic="ivlas",
        n_resamples=40,
        rng=0,
    ),
    inference.largest_effect_size: dict(n_x=np.array([8.0, 2]), n_y=np.array([8.0, 14]), ddof=1),
    inference.rank_correlation_interval: dict(r=0.5, n=9),
    inference.exchange_test: dict(
        result=THIRD, words=ATTRIBUTES, pictures=PICTURES, n_resamples=40, rng=0
    ),
    inference.exchanged_statistics: dict(
        result=THIRD, words=ATTRIBUTES, pictures=PICTURES, n_resamples=40, rng=0
    ),
    inference.grounded_permutation_test: dict(result=GROUNDED, null="new attributes", rng=0),
    inference.permutation_test: dict(x=X, y=Y, alternative="less", rng=0),
    inference.permutation_p_values: dict(
        x=np.stack([X, Y]), y=np.stack([Y, X]), n_resamples=40, rng=0
    ),
    inference.relabelled_differences: dict(x=X, y=Y, n_resamples=9, rng=0),
    inference.sign_flip_test: dict(differences=X - 2.5, rng=0),
    inference.n_partitions: dict(n_x=4, n_y=5),
    inference.power: dict(shift=1.5, n_x=5, n_y=6, alpha=0.25),
    inference.minimum_detectable_effect: dict(n_x=5, n_y=6, alpha=0.25, wanted_power=0.75),
    inference.proportion_interval: dict(successes=2, n=9, confidence=0.75),
    inference.random_attribute_null: dict(
        x_cosines=POOL[:3],
        y_cosines=POOL[3:],
        n_a=1,
        n_b=1,
        n_sets=3,
        draws=np.array([[0, 1], [2, 3], [4, 5]]),
        rng=0,
    ),
    # Methods of what they return.
    SELECTION.vlrs.reweighted: dict(weights=np.array([1.0, 2, 1, 0, 1])),
    SELECTION.reweighted: dict(weights=np.array([1.0, 2, 1, 0, 1])),
    LANGUAGE.reweighted: dict(weights=np.array([1.0, 2, 0, 1])),
    BIAS.reweighted: dict(f_weights=np.array([1.0, 2, 0, 1]), m_weights=np.array([1.0, 2, 3, 1])),
    NULL.p_value: dict(observed=1.0),
}

# NaN, and what a correlation of NaN means: documented to give NaN.
UNDEFINED = {
    (inference.rank_correlation_interval, "r"): ("nan",),
    # In the shape of a table, and NaN where there is none.
    (inference.bootstrap, "freedom"): ("nan", "infinity", "two", "column", "tensor of two"),
    (inference.bootstrap, "limit"): ("nan", "infinity", "two", "column", "tensor of two"),
}
# Not used with the other arguments of the call, so that it may be anything.
UNUSED = {
    (inference.permutation_test, "rng"),
    (inference.grounded_permutation_test, "rng"),
    (inference.sign_flip_test, "rng"),
    (inference.random_attribute_null, "n_sets"),
    (inference.exchange_test, "rng"),
    (inference.exchanged_statistics, "rng"),
}


def test_every_public_function_has_a_call():
    public = {getattr(module, name) for module in MODULES for name in module.__all__} | {grounded}
    functions = {each for each in public if inspect.isfunction(each)}
    assert {each.__name__ for each in functions - set(CALLS)} == set()
    for function, arguments in CALLS.items():
        wanted = {
            name
            for name, each in inspect.signature(function).parameters.items()
            if each.kind is not each.VAR_KEYWORD
        }
        assert wanted <= set(arguments), function.__name__


def numbers_of(found) -> list[float]:
    """Return all numbers of a result, in order."""
    if dataclasses.is_dataclass(found):
        names = [each.name for each in dataclasses.fields(found) if each.name != "category"]
        found = {name: getattr(found, name) for name in names}
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [number for each in found for number in numbers_of(each)]
    if found is None or isinstance(found, str | bytes) or callable(found):
        return []
    return np.asarray(found, float).ravel().tolist()


def changed(values, value):
    """Return an array of objects in which the second item is another."""
    other = np.array(values, object)
    other.flat[min(1, other.size - 1)] = value
    return other


def masked(values):
    place = np.arange(np.size(values)).reshape(np.shape(values))
    return np.ma.masked_array(values, place == min(1, place.max()))


def frame(values, dtype=None):
    """Return a Series or a table of pandas whose index says nothing."""
    kind = pandas.Series if np.ndim(values) == 1 else pandas.DataFrame
    return kind(np.asarray(values), index=range(len(values), 0, -1), dtype=dtype)


def with_na(values, dtype):
    table = frame(values, dtype)
    place = (0,) if table.ndim == 1 else (0, 0)
    table.iloc[place] = pandas.NA
    return table


def torch():
    return pytest.importorskip("torch")


class OnOtherDevice:
    """A tensor that NumPy cannot read before it is brought to the CPU."""

    dtype = "float64"

    def __init__(self, values, is_here=False):
        self.values, self.is_here = values, is_here

    def detach(self):
        return self

    def cpu(self):
        return OnOtherDevice(self.values, True)

    def numpy(self):
        if not self.is_here:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return np.asarray(self.values)

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


class ModelOutput(OrderedDict):
    """What models of transformers return."""


SAME = {
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
    "float16": lambda v: v.astype(np.float16),
    "float32": lambda v: v.astype(np.float32),
    "longdouble": lambda v: v.astype(np.longdouble),
    "objects": lambda v: v.astype(object),
    "fractions": lambda v: np.vectorize(Fraction, otypes=[object])(v.astype(float)),
    "decimals": lambda v: np.vectorize(Decimal, otypes=[object])(v.astype(float)),
    "masked nowhere": np.ma.masked_array,
    "list of rows masked nowhere": lambda v: [np.ma.masked_array(row) for row in v],
    "column-major": np.asfortranarray,
    "reversed view": lambda v: v[::-1].copy()[::-1],
    "pandas": frame,
    "pandas nullable": lambda v: frame(v, "Float64"),
    "tensor": lambda v: torch().tensor(v.copy()),
    "tensor with gradient": lambda v: torch().tensor(v.astype(float).copy(), requires_grad=True),
    "tensor float16": lambda v: torch().tensor(v.astype(np.float16)),
    "tensor bfloat16": lambda v: torch().tensor(v.astype(float)).bfloat16(),
    "list of tensors": lambda v: [torch().tensor(row.astype(float)).bfloat16() for row in v],
    "tensor on another device": OnOtherDevice,
}
BAD = {
    "masked": masked,
    "list of masked rows": lambda v: [masked(row) if np.ndim(v) > 1 else np.ma.masked for row in v],
    "nan": lambda v: changed(v, np.nan).astype(float),
    "infinity": lambda v: changed(v, np.inf).astype(float),
    "tensor of nan": lambda v: torch().tensor(changed(v, np.nan).astype(float)).bfloat16(),
    "None": lambda v: changed(v, None),
    "None in a list": lambda v: changed(v, None).tolist(),
    "pandas.NA": lambda v: changed(v, pandas.NA),
    "pandas missing": lambda v: with_na(v, "Float64"),
    "NaT": lambda v: changed(v, pandas.NaT),
    "bool": lambda v: v > 0,
    "object bool": lambda v: changed(v, True),
    "text": lambda v: v.astype(str),
    "one text": lambda v: changed(v, "1"),
    "bytes": lambda v: v.astype(bytes),
    "complex": lambda v: v + 0j,
    "dates": lambda v: v.astype("int64").astype("datetime64[s]"),
    "date": lambda v: changed(v, datetime.date(2020, 1, 1)),
    "object": lambda v: object(),
    "dict": lambda v: {str(at): row for at, row in enumerate(v)},
    "output of a model": lambda v: ModelOutput(logits=v),
    "set": lambda v: {0.5, 0.25},
    "ragged": lambda v: [v[0], [1.0, 2, 3, 4, 5, 6, 7], *v[2:]],
    "word": lambda v: "word",
    "tensor without numbers": lambda v: torch().tensor(v.copy(), device="meta"),
}
SHAPES = {
    "empty": lambda v: v[:0],
    "0-d": lambda v: np.array(1.0),
    "one more dimension": lambda v: v[None],
    "one row less": lambda v: v[1:],
}
SAME_TRUTHS = {
    "list": lambda v: v.tolist(),
    "whole numbers": lambda v: v.astype(int),
    "floats": lambda v: v.astype(float),
    "objects": lambda v: v.astype(object),
    "pandas": frame,
    "pandas nullable": lambda v: frame(v, "boolean"),
    "tensor": lambda v: torch().tensor(v),
    "masked nowhere": np.ma.masked_array,
}
BAD_TRUTHS = {
    name: BAD[name]
    for name in ("masked", "nan", "None", "pandas.NA", "text", "one text", "dict", "word", "object")
} | {"pandas missing": lambda v: with_na(v, "boolean"), "two": lambda v: v.astype(int) + 1}
SAME_LABELS = {
    "tuple": tuple,
    "array": np.array,
    "array of objects": lambda v: np.array(v, object),
    "text of NumPy": lambda v: [np.str_(each) for each in v],
    "bytes": lambda v: [each.encode() for each in v],
    "numbers": lambda v: [ord(each) for each in v],
    "numbers of several kinds": lambda v: [
        (int, float, np.int64, np.uint8)[at % 4](ord(each)) for at, each in enumerate(v)
    ],
    "pandas": frame,
    "pandas category": lambda v: pandas.Categorical(v),
    "pandas text": lambda v: pandas.array(v, dtype="string"),
    "tensor": lambda v: torch().tensor([ord(each) for each in v]),
    "generator": lambda v: (each for each in v),
}
BAD_LABELS = {
    "None": lambda v: [*v[:-1], None],
    "nan": lambda v: [*v[:-1], np.nan],
    "empty": lambda v: [*v[:-1], ""],
    "pandas.NA": lambda v: pandas.array([*v[:-1], None], dtype="string"),
    "NaT": lambda v: [*v[:-1], pandas.NaT],
    "masked": lambda v: np.ma.masked_array(v, np.arange(len(v)) == 1),
    "list": lambda v: [*v[:-1], ["a"]],
    "table": lambda v: pandas.DataFrame({"label": v}),
    "two columns": lambda v: np.array([v, v]),
    "dict": lambda v: dict.fromkeys(v),
    "set": set,
    "number": lambda v: 5,
}
NO_NUMBER = {
    "nan": lambda v: np.nan,
    "infinity": lambda v: np.inf,
    "masked": lambda v: np.ma.masked,
    "pandas.NA": lambda v: pandas.NA,
    "NaT": lambda v: pandas.NaT,
    "bool": lambda v: True,
    "text": str,
    "bytes": lambda v: b"1",
    "complex": lambda v: v + 0j,
    "date": lambda v: datetime.date(2020, 1, 1),
    "two": lambda v: [v, v],
    "column": lambda v: pandas.Series([v, v]),
    "dict": lambda v: {"value": v},
    "object": lambda v: object(),
    "tensor of two": lambda v: torch().tensor([v, v]),
}
SAME_NUMBER = {
    "of NumPy": np.float64,
    "0-d": np.array,
    "fraction": Fraction,
    "decimal": Decimal,
    "tensor": lambda v: torch().tensor(v),
    "tensor bfloat16": lambda v: torch().tensor(float(v), requires_grad=True).bfloat16(),
}
NO_CHOICE = {
    "another word": lambda v: "another word",
    "bytes": str.encode,
    "number": lambda v: 1,
    "list": lambda v: [v],
    "array": lambda v: np.array([v, v]),
    "None": lambda v: None,
    "pandas.NA": lambda v: pandas.NA,
}
NO_FLAG = {
    "no": lambda v: "no",
    "number": lambda v: 0,
    "None": lambda v: None,
    "array": lambda v: np.array([True, False]),
    "pandas.NA": lambda v: pandas.NA,
}
NO_RESULT = {
    "None": lambda v: None,
    "dict": lambda v: {},
    "array": lambda v: X,
    "text": lambda v: "text",
    "pandas.NA": lambda v: pandas.NA,
    "tensor": lambda v: torch().tensor(X),
}
NO_SEED = {
    "text": lambda v: "today",
    "float": lambda v: 0.5,
    "nan": lambda v: np.nan,
    "negative": lambda v: -1,
    "pandas.NA": lambda v: pandas.NA,
    "dict": lambda v: {},
    "bool": lambda v: True,
    "masked": lambda v: np.ma.masked,
    "tensor": lambda v: torch().tensor([0.5], requires_grad=True),
}


SECOND = {
    "masked",
    "nan",
    "infinity",
    "None",
    "pandas.NA",
    "NaT",
    "object bool",
    "one text",
    "date",
}
LAST = {"None", "nan", "empty", "NaT", "list", "pandas.NA"}


def row_of(dress, value):
    """Return the row that an error must name, or None where no row alone is bad."""
    if isinstance(value, list):
        return len(value) - 1 if dress in LAST else None
    if not isinstance(value, np.ndarray) or dress not in SECOND:
        return None
    if value.dtype == bool and dress == "nan":
        return None  # of another type throughout
    return min(1, value.size - 1) if value.ndim == 1 else 0


def dresses(name, value):
    """Return what an argument may be, what it may not, and other shapes of it."""
    if name == "rng":
        return {}, NO_SEED, {}
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return SAME_TRUTHS, BAD_TRUTHS, SHAPES
    if isinstance(value, np.ndarray):
        return SAME, BAD, SHAPES
    if isinstance(value, bool):
        return {}, NO_FLAG, {}
    if isinstance(value, int | float):
        return SAME_NUMBER, NO_NUMBER, {}
    if isinstance(value, str):
        return {}, NO_CHOICE, {}
    if isinstance(value, list):
        return SAME_LABELS, BAD_LABELS, {"one less": lambda v: v[1:]}
    return {}, NO_RESULT, {}


ARGUMENTS = [
    pytest.param(
        function,
        name,
        id=f"{function.__qualname__}-{name}",
    )
    for function, arguments in CALLS.items()
    for name in arguments
]


def asked(function, name, dress):
    arguments = CALLS[function]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(**arguments | {name: dress(arguments[name])})


@pytest.mark.parametrize(("function", "name"), ARGUMENTS)
def test_the_same_numbers_in_another_dress_give_the_same_result(function, name):
    arguments = CALLS[function]
    expected = numbers_of(function(**arguments))
    same, _, _ = dresses(name, arguments[name])
    wrong = []
    for dress, make in same.items():
        try:
            found = numbers_of(asked(function, name, make))
        except InputError as error:
            # Truth values that are no booleans may be refused where either label could be meant.
            if not (name == "anti_stereotypical" and error.word == name):
                wrong.append((dress, error))
            continue
        if not np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            wrong.append((dress, found))
    assert wrong == []


@pytest.mark.parametrize(("function", "name"), ARGUMENTS)
def test_what_is_no_such_argument_is_refused_by_name(function, name):
    value = CALLS[function][name]
    _, bad, _ = dresses(name, value)
    wrong = []
    default = inspect.signature(function).parameters.get(name)
    for dress, make in bad.items():
        if dress == "None" and default is not None and default.default is None:
            continue
        if (function, name) in UNUSED or dress in UNDEFINED.get((function, name), ()):
            continue
        try:
            wrong.append((dress, asked(function, name, make)))
        except InputError as error:
            row = row_of(dress, value)
            if error.word != name or (row is not None and error.row != row):
                wrong.append((dress, error.word, error.row, error))
    assert wrong == []


@pytest.mark.parametrize(("function", "name"), ARGUMENTS)
def test_other_shapes_are_refused_by_an_error_of_ours_or_right(function, name):
    _, _, shapes = dresses(name, CALLS[function][name])
    for make in shapes.values():
        try:
            found = asked(function, name, make)
        except InputError:
            continue
        assert not np.isnan(numbers_of(found)).any()


VALUES = [
    (association.effect_size, {"X": np.ones(3)}, "X", None),
    (association.effect_size, {"A": np.ones((2, 5))}, "A", None),
    (association.effect_size, {"B": SETS[3] * [[1], [0], [1], [1]]}, "B", 1),
    (association.effect_size, {"Y": [*SETS[1][:3], [1, np.inf, 1]]}, "Y", 3),
    (association.effect_size_of_scores, {"y_scores": [X, Y]}, "y_scores", None),
    (association.effect_size_of_scores, {"ddof": 2}, "ddof", None),
    (grounded, {"experiment": 4}, "experiment", None),
    (grounded, {"By": np.zeros((0, 3))}, "By", None),
    (caption_association.c_asc, {"groups": GROUPS[:7]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS & [True, False]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS | [True, False]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS[:, 0]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS * 2}, "groups", 0),
    (caption_association.c_asc, {"similarities": SIMILARITIES[0]}, "similarities", None),
    (caption_association.top_k, {"k": 9}, "k", None),
    (caption_association.top_k, {"k": 0}, "k", None),
    (caption_association.top_k_composition, {"top": [[0, 8]]}, "top", 0),
    (caption_association.top_k_composition, {"top": [[0, 1], [-1, 1]]}, "top", 1),
    (caption_association.top_k_composition, {"top": [[0, 1], [1, 1]]}, "top", 1),
    (caption_association.top_k_composition, {"top": [[0.5]]}, "top", 0),
    (caption_association.entropy, {"counts": [[3, 1], [0, 0]]}, "counts", 1),
    (caption_association.entropy, {"counts": [[3, -1], [1, 1]]}, "counts", 0),
    (caption_association.skew_at_k, {"smoothing": -1}, "smoothing", None),
    (caption_selection.vlrs, {"scores": [[1, 2]]}, "scores", None),
    (caption_selection.vlrs, {"scores": np.zeros((0, 3))}, "scores", None),
    (caption_selection.vlrs, {"ties": "first"}, "ties", None),
    (caption_selection.picks, {"tolerance": -1}, "tolerance", None),
    (caption_selection.selection_scores, {"targets": ["a", "b"]}, "targets", None),
    (caption_selection.vlbs, {"anti_stereotypical": [1, 0, 1, 1, 0]}, "anti_stereotypical", None),
    (caption_selection.vlbs, {"anti_stereotypical": [True]}, "anti_stereotypical", None),
    (caption_selection.ivlas, {"vlrs": 101}, "vlrs", None),
    (caption_selection.ivlas, {"vlbs": [-1, 0, 0]}, "vlbs", None),
    (caption_selection.reference_scores, {"model": "perfect"}, "model", None),
    (caption_selection.caption_probabilities, {"scale": 0}, "scale", None),
    (caption_selection.two_way, {"scores": SCORES}, "scores", None),
    (caption_selection.lmss, {"original": [0.5, 1.2, 0.5]}, "original", 1),
    (caption_selection.lmss, {"neutral": [0.5, 0.5, 0.0]}, "neutral", 2),
    (caption_selection.vlss, {"blank": [0.5, 0.5]}, "blank", None),
    (caption_selection.selection_scores, {"categories": ["overall"] * 5}, "categories", None),
    (
        masked_lm.language_association,
        {"log_p_gendered": [-1, -np.inf, -1, -1]},
        "log_p_gendered",
        1,
    ),
    (masked_lm.language_association, {"log_p_gendered": [-1, -1, 0.3, -1]}, "log_p_gendered", 2),
    (masked_lm.language_association, {"log_p_neutral": [-1.0] * 3}, "log_p_neutral", None),
    (masked_lm.visual_association, {"log_p_no_image": [-1.0, -2.0]}, "log_p_no_image", None),
    (LANGUAGE.reweighted, {"weights": [1.0]}, "weights", None),
    (LANGUAGE.reweighted, {"weights": [1.0, -1.0, 1, 1]}, "weights", 1),
    (BIAS.reweighted, {"m_weights": None}, "m_weights", None),
    (inference.adjust, {"p_values": [0.5, 1.2]}, "p_values", 1),
    (inference.adjust, {"p_values": [-0.1]}, "p_values", 0),
    (inference.adjust, {"method": "bonferroni"}, "method", None),
    (inference.bootstrap, {"n_units": [3, 0]}, "n_units", 1),
    (inference.bootstrap, {"n_units": []}, "n_units", None),
    (inference.bootstrap, {"n_resamples": 0}, "n_resamples", None),
    (inference.bootstrap_effect_size, {"cosines_a": COSINES[:3]}, "cosines_a", None),
    (inference.bootstrap_effect_size, {"cosines_b": COSINES[:, :3]}, "cosines_b", None),
    (inference.bootstrap_c_asc, {"people": [1, 2]}, "people", None),
    (inference.bootstrap_top_k, {"k": 9}, "k", None),
    (inference.bootstrap_top_k, {"k": 1.5}, "k", None),
    (inference.bootstrap_top_k, {"statistic": "odds"}, "statistic", None),
    (inference.bootstrap_selection, {"triplets": [1, 2]}, "triplets", None),
    (inference.bootstrap_selection, {"statistic": "lmss"}, "statistic", None),
    (inference.rank_correlation_interval, {"r": 1.1}, "r", None),
    (inference.permutation_test, {"x": []}, "x", None),
    (inference.permutation_test, {"x": [X]}, "x", None),
    (inference.permutation_test, {"alternative": "larger"}, "alternative", None),
    (inference.permutation_p_values, {"y": [Y]}, "y", None),
    (inference.relabelled_differences, {"n_resamples": 0}, "n_resamples", None),
    (inference.power, {"n_x": 0}, "n_x", None),
    (inference.power, {"alpha": 1.5}, "alpha", None),
    (inference.power, {"n_x": 1, "n_y": 1}, "n_y", None),
    (inference.minimum_detectable_effect, {"wanted_power": 0.01}, "wanted_power", None),
    (inference.proportion_interval, {"successes": 0.5}, "successes", None),
    (inference.proportion_interval, {"successes": 10}, "successes", None),
    (inference.proportion_interval, {"n": 0}, "n", None),
    (inference.random_attribute_null, {"draws": [[0, 0]]}, "draws", 0),
    (inference.random_attribute_null, {"draws": [[0, 1], [1, 12]]}, "draws", 1),
    (inference.random_attribute_null, {"draws": [[0, 1.5]]}, "draws", 0),
    (inference.random_attribute_null, {"draws": [[0, 1, 2]]}, "draws", None),
    (inference.random_attribute_null, {"n_a": 0}, "n_a", None),
    (inference.random_attribute_null, {"draws": None, "n_sets": 0}, "n_sets", None),
    (inference.random_attribute_null, {"draws": None, "n_a": 12}, "n_a", None),
    (inference.random_attribute_null, {"y_cosines": POOL[:, :5]}, "y_cosines", None),
]


@pytest.mark.parametrize(("function", "change", "word", "row"), VALUES)
def test_a_value_out_of_range_is_refused_by_name_and_row(function, change, word, row):
    with pytest.raises(InputError) as found:
        function(**CALLS[function] | change)
    assert (found.value.word, found.value.row) == (word, row)


# Labels

TWINS = [
    (1, "1"),
    (1, True),
    (0, False),
    ("a", b"a"),
    ("a", "a\0"),
    (2**53 + 1, float(2**53)),
    (np.int64(2**53 + 1), np.float64(2**53)),
    ("None", "none"),
    (1.5, "1.5"),
    ((1, 2), "(1, 2)"),
    (np.datetime64("2020-01-01"), "2020-01-01"),
]


@pytest.mark.parametrize("twins", TWINS)
def test_labels_that_look_alike_are_two_units(twins):
    """As two words that nobody takes for one."""

    def results(one, other):
        labels = [one, other, one, other, "third"]
        return [
            inference.bootstrap_selection(SELECTION, labels, n_resamples=30, rng=0).n_units[0],
            inference.bootstrap_top_k(
                TOP, GROUPS, 2, people=[*labels, one, other, "third"], n_resamples=30, rng=0
            ).n_units[0],
        ]

    assert results(*twins) == pytest.approx(results("one", "other"))


@pytest.mark.parametrize(
    "twins",
    [(1, np.uint8(1)), (1, 1.0), ("a", np.str_("a")), (True, np.True_), (2**70, Fraction(2**70))],
)
def test_labels_of_one_value_are_one_unit_whichever_library_they_come_from(twins):
    one, other = twins
    found = inference.bootstrap_selection(
        SELECTION, [one, other, "b", "c", "d"], n_resamples=30, rng=0
    )
    assert found.n_units == (4,)


def test_a_category_keeps_its_type():
    found = caption_selection.selection_scores(SCORES, ANTI, [1, "1", "1", 1, "1"])
    assert list(found) == ["overall", 1, "1"]
    assert [each.vlrs.denominator for each in found.values()] == [5, 2, 3]
    with pytest.raises(InputError) as error:  # one key of a dict
        caption_selection.selection_scores(SCORES, ANTI, [1, True, True, 1, 1])
    assert error.value.word == "categories"


# Vectors as a model gives them


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("gradient", [False, True])
def test_vectors_of_a_model_have_the_value_of_their_numbers(dtype, gradient):
    torch_ = torch()
    sets = [
        torch_.tensor(RNG.normal(size=(8, 16))).to(getattr(torch_, dtype)).requires_grad_(gradient)
        for _ in range(4)
    ]
    plain = [each.detach().double().numpy() for each in sets]
    assert association.effect_size(*sets) == pytest.approx(association.effect_size(*plain))
    scores = [each.mean(axis=1) for each in sets[:2]]
    expected = inference.permutation_test(*(each.detach().double().numpy() for each in scores))
    assert inference.permutation_test(*scores).p_value == pytest.approx(expected.p_value)
    assert all(each.requires_grad is gradient for each in sets)


# Data sets

PEOPLE = pandas.DataFrame(
    {"gender": ["w", "m", "m", "w"], "race": ["a", "b", "a", "b"], "entity": ["tie"] * 4}
)
AGENTS = PEOPLE.assign(gender=["woman", "man", "man", "woman"])
COUNTS = pandas.DataFrame(
    {
        "word": ["ceo", "nurse"],
        "captions": [90, 40],
        "female": [2, 9],
        "male": [6, 3],
        "both": [1, 2],
    }
)
LINKS = pandas.DataFrame({"file": ["a.img", "b.img"], "url": ["http://a/a.jpg", "http://a/b.jpg"]})
DOWNLOADED = LINKS.assign(test="C6", group=["X", "Y"], outcome=["here", "error 404"])
PAIRS = pandas.DataFrame({"set": ["X", "Y"], "image": ["1", "2"], "caption_id": [0, 0]})
TEST = datasets.GroundedTest("t", "google", ("word",), (), {}, PAIRS, PAIRS)
STEREOTYPES = pandas.DataFrame(
    {
        "category": ["gender", "gender", "race"],
        "label": ["stereotype", "anti-stereotype", "stereotype"],
        "target": ["sister", "sister", "sister"],
        "stereotype": ["My sister is kind."] * 3,
        "anti-stereotype": ["My sister is rude."] * 3,
        "url": ["http://a/a.jpg", "http://a/b.jpg", "http://a/c.jpg"],
    }
)
FOUND = pandas.DataFrame({"severity": ["note"], "kind": "k", "where": "w", "what": "w"})
# Calls of data sets: FOLDER and CORPUS stand for a folder and a file that are there.
FOLDER, CORPUS = "folder", "corpus"
DATASETS = {
    datasets.balance: dict(test=TEST, pairs=PAIRS),
    datasets.balanced_images: dict(manifest=AGENTS),
    datasets.coverage: dict(downloaded=DOWNLOADED),
    datasets.download_images: dict(links=LINKS, folder=FOLDER, n_workers=2, again=False),
    datasets.entity_balance: dict(manifest=AGENTS),
    datasets.entity_images: dict(folder=FOLDER, entities=["tie", "purse"], per_agent=6),
    datasets.grounded_test: dict(path=FOLDER),
    datasets.group_counts: dict(
        corpus=CORPUS,
        words=["nurse", "ceo"],
        groups={"female": ("she",), "male": ("he",)},
        column="caption",
        threads=1,
        memory="500MB",
    ),
    datasets.images_of: dict(test=TEST, folder=FOLDER),
    datasets.matching_captions: dict(
        corpus=CORPUS, word="nurse", group=["she", "her"], n=5, seed=0, column="caption"
    ),
    datasets.membership: dict(manifest=PEOPLE, by=["gender", "entity"], order=["w, tie", "m, tie"]),
    datasets.outcomes: dict(links=LINKS, folder=FOLDER),
    datasets.proportions: dict(counts=COUNTS, both="counted twice"),
    datasets.read_fairface: dict(folder=FOLDER, split="train", crop="0.25"),
    datasets.require_sound: dict(found=FOUND, name="C6", only_sound=False, advice="Mend it"),
    datasets.user_test: dict(name="C6", folder=FOLDER, level="word"),
    ross2021.fetch_images: dict(folder=FOLDER, source="google", again=False),
    ross2021.files_of_tests: dict(folder=FOLDER, source="google"),
    ross2021.image_counts: dict(folder=FOLDER),
    ross2021.image_folder: dict(folder=FOLDER, source="google"),
    ross2021.links: dict(folder=FOLDER, source="google"),
    ross2021.tests_on_disk: dict(sources=[], names=["C6"]),
    vlstereoset.balanced: dict(table=STEREOTYPES, seed=0),
    vlstereoset.fetch_images: dict(folder=FOLDER, again=False),
    vlstereoset.neutral_terms: dict(),
    vlstereoset.neutralised: dict(table=STEREOTYPES),
    vlstereoset.read: dict(path=FOLDER),
    vlstereoset.released: dict(folder=FOLDER),
    vlstereoset.with_images: dict(table=STEREOTYPES, folder=FOLDER),
}
# What is handed on as it is: words of a message; what is asked for only when a network was.
HANDED_ON = {
    (datasets.require_sound, "name"),
    (datasets.require_sound, "advice"),
    (ross2021.fetch_images, "again"),
    (ross2021.tests_on_disk, "sources"),
    (ross2021.tests_on_disk, "names"),
    (vlstereoset.fetch_images, "again"),
}
NO_PATH = {
    "None": lambda v: None,
    "number": lambda v: 5,
    "nan": lambda v: np.nan,
    "list": lambda v: [v],
    "bytes": lambda v: str(v).encode(),
    "table": lambda v: PEOPLE,
    "pandas.NA": lambda v: pandas.NA,
}
NO_TABLE = {
    "None": lambda v: None,
    "dict": lambda v: v.to_dict("list"),
    "array": lambda v: v.to_numpy(),
    "column": lambda v: v.iloc[:, 0],
    "path": lambda v: "labels.csv",
}
NO_TEXTS = BAD_LABELS | {
    "numbers": lambda v: [1, 2],
    "bytes": lambda v: [each.encode() for each in v],
}
NO_TEXT = {name: NO_CHOICE[name] for name in NO_CHOICE if name != "another word"} | {
    "nan": lambda v: np.nan
}
NO_GROUPS = {
    "None": lambda v: 5,
    "list": lambda v: [("she",), ("he",)],
    "text": lambda v: {"female": "she", "male": "he"},
    "numbers": lambda v: {"female": ("she",), "male": (1,)},
    "missing": lambda v: {"female": ("she",), "male": ("he", None)},
    "three": lambda v: v | {"third": ("they",)},
}


def no_such(name, value):
    """Return what an argument of a data set may not be."""
    if name == "rng":
        return NO_SEED
    if value in (FOLDER, CORPUS) if isinstance(value, str) else False:
        return NO_PATH
    kinds = {
        pandas.DataFrame: NO_TABLE, bool: NO_FLAG, int: NO_NUMBER, float: NO_NUMBER, str: NO_TEXT,
        list: NO_TEXTS, dict: NO_GROUPS,
    }  # fmt: skip
    return kinds.get(type(value), NO_RESULT)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    corpus = folder / "corpus.parquet"
    pandas.DataFrame({"caption": ["the nurse and her bag", "he is a ceo"]}).to_parquet(corpus)
    return {FOLDER: folder, CORPUS: corpus}


def arguments_of(function, places):
    given = DATASETS[function].items()
    return {
        name: places[value] if isinstance(value, str) and value in places else value
        for name, value in given
    }


def test_every_public_function_of_data_sets_has_a_call():
    public = [
        getattr(module, name)
        for module in (datasets, ross2021, vlstereoset)
        for name in module.__all__
    ]
    functions = {each for each in public if inspect.isfunction(each)}
    assert {each.__name__ for each in functions - set(DATASETS)} == set()
    for function, arguments in DATASETS.items():
        assert set(inspect.signature(function).parameters) == set(arguments), function.__name__


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param(function, name, id=f"{function.__module__}.{function.__name__}-{name}")
        for function, arguments in DATASETS.items()
        for name in arguments
        if (function, name) not in HANDED_ON
    ],
)
def test_what_is_no_such_argument_of_a_data_set_is_refused_by_name(function, name, places):
    arguments, wrong = arguments_of(function, places), []
    for dress, make in no_such(name, DATASETS[function][name]).items():
        if dress == "None" and inspect.signature(function).parameters[name].default is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = function(**arguments | {name: make(arguments[name])})
            wrong.append((dress, found))
        except UnknownNameError:
            continue
        except InputError as error:
            if error.word != name:
                wrong.append((dress, error.word, error))
    assert wrong == []


TABLES = [
    (datasets.balance, "pairs", ["set", "image", "caption_id"]),
    (datasets.balanced_images, "manifest", ["entity", "gender"]),
    (datasets.coverage, "downloaded", ["test", "group", "outcome"]),
    (datasets.entity_balance, "manifest", ["entity", "gender"]),
    (datasets.membership, "manifest", ["gender", "entity"]),
    (datasets.outcomes, "links", ["file"]),
    (datasets.proportions, "counts", ["word", "both", "male", "female"]),
    (vlstereoset.balanced, "table", ["category", "label"]),
    (vlstereoset.neutralised, "table", ["category", "target", "stereotype"]),
]


@pytest.mark.parametrize(("function", "name", "columns"), TABLES)
def test_a_gap_in_a_table_is_named_by_column_and_row(function, name, columns, places):
    arguments = arguments_of(function, places)
    for column in columns:
        gap = arguments[name].astype(object).copy()
        for missing in (None, np.nan, pandas.NA, pandas.NaT):
            gap.iloc[1, gap.columns.get_loc(column)] = missing
            with pytest.raises(InputError) as found:
                function(**arguments | {name: gap})
            assert (found.value.word, found.value.row) == (column, 1)
        if function is not datasets.proportions:
            with pytest.raises(InputError) as found:
                function(**arguments | {name: arguments[name].drop(columns=column)})
            assert found.value.word == column


@pytest.mark.parametrize(("function", "name", "columns"), TABLES)
def test_the_index_of_a_table_says_nothing(function, name, columns, places):
    arguments = arguments_of(function, places)
    expected = function(**arguments)
    for index in (range(len(arguments[name]), 0, -1), [7] * len(arguments[name])):
        found = function(**arguments | {name: arguments[name].set_axis(index)})
        np.testing.assert_array_equal(
            found.fillna("gap").to_numpy(), expected.fillna("gap").to_numpy()
        )


def test_shares_stay_with_their_words_after_a_selection():
    counts = pandas.concat([COUNTS, COUNTS.assign(word=["cook", "boss"], female=[1, 4])])
    found = datasets.proportions(counts[counts["female"] > 1]).set_index("word")["share"]
    assert found.to_dict() == pytest.approx({"ceo": 2 / 8, "nurse": 9 / 12, "boss": 4 / 7})


@pytest.mark.parametrize(
    "labels", [[1, "1"], [True, "True"], [1.5, "1.5"], ["a", b"a"], [("a",), "('a',)"]]
)
def test_groups_that_would_have_one_name_are_refused(labels):
    people = pandas.DataFrame({"gender": [*labels, "c"]}, dtype=object)
    with pytest.raises(InputError) as found:
        datasets.membership(people, "gender")
    assert found.value.word == str(labels[0])
    people = pandas.DataFrame({"one": ["a, b", "a"], "other": ["c", "b, c"]})
    with pytest.raises(InputError) as found:
        datasets.membership(people, ["one", "other"])
    assert found.value.word == "a, b, c"
