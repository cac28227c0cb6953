"""Bad input of every public function of biaslib: one table of what is refused.

A call, a row of a table or a file is refused with an InputError whose ``path``, ``word`` and
``row`` say where it is bad; what it says in words is not tested. To add a rule, add a row: to
:data:`VALUES` for a function that has a sound call in :data:`CALLS`, to :data:`FILES` for what is
read from a folder, to :data:`NAMES` for a list of names.
"""

import csv
import inspect
import json
import warnings
from collections import OrderedDict

import numpy as np
import pandas
import pytest

from biaslib import datasets, inference, published, stimuli
from biaslib.datasets import DataError, fairface, ross2021, visogender, vlstereoset
from biaslib.errors import InputError
from biaslib.metrics import association, caption_association, caption_selection, inputs, masked_lm
from biaslib.metrics.grounded import grounded
from biaslib.runtime import UnknownNameError
from biaslib.studies import study2_masked

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
    caption_association.associate: dict(
        texts=SETS[0][:2], images=POOL.T[:8, :3], groups=GROUPS, k=3, ddof=1
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
        items=(5, 6),
        between=0.5,
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
    inference.share_between: dict(
        scores=np.concatenate([X, Y]), x_words=list("aabbc"), y_words=list("ddeef")
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

# NaN is a correlation, or a bound in the shape of a table, that is not defined.
UNDEFINED = {
    (inference.rank_correlation_interval, "r"),
    (inference.bootstrap, "freedom"),
    (inference.bootstrap, "limit"),
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
        assert set(inspect.signature(function).parameters) <= set(arguments), function.__name__


# Numbers, in every dress


def masked(values):
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) == 1)


def changed(values, value):
    """Return a list of rows in which one number is another."""
    rows = values.tolist()
    rows[1][0] = value
    return rows


def torch():
    return pytest.importorskip("torch")


class ModelOutput(OrderedDict):
    """What models of transformers return."""


SAME = {
    "list": lambda v: v.tolist(),
    "float16": lambda v: v.astype(np.float16),
    "longdouble": lambda v: v.astype(np.longdouble),
    "objects": lambda v: v.astype(object),
    "masked nowhere": np.ma.masked_array,
    "reversed view": lambda v: v[::-1].copy()[::-1],
    "pandas": lambda v: pandas.DataFrame(v, index=range(len(v), 0, -1)),
    "pandas nullable": lambda v: pandas.DataFrame(v, dtype="Float64"),
    "tensor with gradient": lambda v: torch().tensor(v, requires_grad=True),
    "tensor bfloat16": lambda v: torch().tensor(v).bfloat16(),
    "list of tensors": lambda v: [torch().tensor(row).bfloat16() for row in v],
}
BAD = {
    "masked": masked,
    "list of masked rows": lambda v: [masked(row) for row in v],
    "nan": lambda v: changed(v, np.nan),
    "infinity": lambda v: changed(v, np.inf),
    "None": lambda v: changed(v, None),
    "pandas.NA": lambda v: changed(v, pandas.NA),
    "pandas missing": lambda v: pandas.DataFrame(changed(v, None), dtype="Float64"),
    "NaT": lambda v: changed(v, pandas.NaT),
    "bool": lambda v: v > 0,
    "text": lambda v: v.astype(str),
    "one text": lambda v: changed(v, "1"),
    "complex": lambda v: v + 0j,
    "dates": lambda v: v.astype("int64").astype("datetime64[s]"),
    "object": lambda v: object(),
    "dict": lambda v: {str(at): row for at, row in enumerate(v)},
    "output of a model": lambda v: ModelOutput(logits=v),
    "set": lambda v: {0.5, 0.25},
    "ragged": lambda v: [v[0], [1.0, 2, 3, 4, 5, 6, 7], *v[2:]],
    "tensor without numbers": lambda v: torch().tensor(v, device="meta"),
}


@pytest.mark.parametrize("dress", SAME)
def test_the_same_numbers_in_another_dress_are_the_same(dress):
    found = inputs.real_numbers(SAME[dress](COSINES), "scores")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, COSINES)


@pytest.mark.parametrize("dress", BAD)
def test_what_is_no_number_is_refused_by_name(dress):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            inputs.real_numbers(BAD[dress](COSINES), "scores")
    assert caught.value.word == "scores"
    assert caught.value.row == (1 if dress in ("nan", "infinity") else None)


def test_labels_are_units_and_what_is_none_is_refused_by_row():
    same = [1, np.uint8(1), 1.0, "1", b"1", 2**70]
    codes, different = inputs.label_codes(same, "people")
    assert codes.tolist() == [0, 0, 0, 1, 2, 3]
    assert different == [1, "1", b"1", 2**70]
    assert inputs.label_codes(pandas.Series(["b", "a", "b"], index=[9, 8, 7]), "x")[1] == ["a", "b"]
    for missing in (None, np.nan, "", pandas.NA, pandas.NaT, ["a"]):
        with pytest.raises(InputError) as caught:
            inputs.label_keys(["a", missing], "people")
        assert (caught.value.word, caught.value.row) == ("people", 1)
    for labels in ({"a": 1}, {"a"}, 5):
        with pytest.raises(InputError) as caught:
            inputs.label_keys(labels, "people")
        assert caught.value.word == "people"


# Each argument of each function


def no_such(name, value):
    """Return what an argument may not be."""
    if name == "rng":
        return ["today", 0.5, -1]
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return [value.astype(str), "word"]
    if isinstance(value, np.ndarray):
        nan = value.astype(float)
        nan.flat[-1] = np.nan
        return [value.astype(str), "word", nan, value > 0]
    if isinstance(value, bool):
        return ["no", 0, None]
    if isinstance(value, int | float):
        return ["1", [value, value], True, np.nan]
    if isinstance(value, str):
        return ["another word", 1, None]
    if isinstance(value, list):
        return [[*value[:-1], None], 5]
    return [None, "text"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        pytest.param(function, name, id=f"{function.__qualname__}-{name}")
        for function, arguments in CALLS.items()
        for name in arguments
        if (function, name) not in UNUSED
    ],
)
def test_what_is_no_such_argument_is_refused_by_name(function, name):
    default = inspect.signature(function).parameters[name].default
    for value in no_such(name, CALLS[function][name]):
        if value is None and default is None:
            continue
        if (function, name) in UNDEFINED and value not in ("1", True):
            continue
        with pytest.raises(InputError) as caught:
            function(**CALLS[function] | {name: value})
        assert caught.value.word == name, value


S, A, I = [3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]  # noqa: E741
SAME_ROWS = np.ones((3, 12))
SECOND = grounded(*SETS, experiment=2)
LABELLED = {name: ["one", "two", "three", "four"] for name in ("Ax", "Ay", "Bx", "By")}

VALUES = [
    # association
    (association.effect_size, {"X": np.ones(3)}, "X", None),
    (association.effect_size, {"A": np.ones((2, 5))}, "A", None),
    (association.effect_size, {"B": SETS[3] * [[1], [0], [1], [1]]}, "B", 1),
    (association.effect_size, {"Y": [*SETS[1][:3], [1, np.inf, 1]]}, "Y", 3),
    (association.effect_size, {"Y": SETS[1][:3]}, None, None),
    (association.effect_size, {"B": 3 * SETS[2]}, None, None),
    (association.effect_size_of_scores, {"x_scores": X * 0, "y_scores": Y * 0}, None, None),
    (association.effect_size_of_scores, {"y_scores": [X, Y]}, "y_scores", None),
    (association.effect_size_of_scores, {"ddof": 2}, "ddof", None),
    (grounded, {"experiment": 4}, "experiment", None),
    (grounded, {"By": np.zeros((0, 3))}, "By", None),
    (grounded, {"Bx": 3 * SETS[2], "By": 3 * SETS[3]}, None, None),
    # caption_association
    (caption_association.associate, {"images": POOL.T[:8, :2]}, "images", None),
    (caption_association.associate, {"images": [[0, 0, np.nan]] * 8}, "images", 0),
    (caption_association.associate, {"images": POOL.T[:8, :3] * 1e300}, None, None),
    (caption_association.associate, {"images": [[1, 0, 0]] * 8}, None, 0),
    (caption_association.associate, {"groups": GROUPS | [True, False]}, "groups", None),
    (caption_association.associate, {"k": 9}, "k", None),
    (caption_association.c_asc, {"groups": GROUPS[:7]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS & [True, False]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS | [True, False]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS[:, 0]}, "groups", None),
    (caption_association.c_asc, {"groups": GROUPS * 2}, "groups", 0),
    (caption_association.c_asc, {"similarities": SIMILARITIES[0]}, "similarities", None),
    (caption_association.c_asc, {"similarities": SIMILARITIES * [[1], [0]]}, None, 1),
    (caption_association.top_k, {"k": 9}, "k", None),
    (caption_association.top_k, {"k": 0}, "k", None),
    (caption_association.top_k_composition, {"groups": GROUPS & [True, False]}, "groups", None),
    (caption_association.top_k_composition, {"top": [[0, 8]]}, "top", 0),
    (caption_association.top_k_composition, {"top": [[0, 1], [-1, 1]]}, "top", 1),
    (caption_association.top_k_composition, {"top": [[0, 1], [1, 1]]}, "top", 1),
    (caption_association.top_k_composition, {"top": [[0.5]]}, "top", 0),
    (caption_association.entropy, {"counts": [[3, 1], [0, 0]]}, "counts", 1),
    (caption_association.entropy, {"counts": [[3, -1], [1, 1]]}, "counts", 0),
    (caption_association.entropy, {"counts": [[3]]}, None, None),
    (caption_association.skew_at_k, {"smoothing": -1}, "smoothing", None),
    # caption_selection
    (caption_selection.vlrs, {"scores": [[1, 2]]}, "scores", None),
    (caption_selection.vlrs, {"scores": np.zeros((0, 3))}, "scores", None),
    (caption_selection.vlrs, {"ties": "first"}, "ties", None),
    (caption_selection.picks, {"tolerance": -1}, "tolerance", None),
    (caption_selection.picks, {"scores": [S, [2, 1, 2]], "ties": "error"}, "scores", 1),
    (caption_selection.picks, {"scores": [[1, 0.9, 0]], "ties": "error"}, "scores", 0),
    (caption_selection.selection_scores, {"targets": ["a", "b"]}, "targets", None),
    (caption_selection.selection_scores, {"categories": ["overall"] * 5}, "categories", None),
    (caption_selection.selection_scores, {"categories": [*"aaaa", ""]}, "categories", 4),
    (caption_selection.selection_scores, {"categories": list("abaab")}, "b", None),
    (
        caption_selection.selection_scores,
        {"scores": [S, A, I, I, I], "categories": list("aabbb")},
        "b",
        None,
    ),
    (caption_selection.vlbs, {"anti_stereotypical": [1, 0, 1, 1, 0]}, "anti_stereotypical", None),
    (caption_selection.vlbs, {"anti_stereotypical": [True]}, "anti_stereotypical", None),
    (caption_selection.vlbs, {"anti_stereotypical": [False] * 5}, "overall", None),
    (caption_selection.ivlas, {"vlrs": 101}, "vlrs", None),
    (caption_selection.ivlas, {"vlbs": [-1, 0, 0]}, "vlbs", None),
    (caption_selection.ivlas, {"vlbs": [1, 0]}, "vlbs", None),
    (caption_selection.caption_probabilities, {"scale": 0}, "scale", None),
    (caption_selection.two_way, {"scores": SCORES}, "scores", None),
    (caption_selection.lmss, {"original": [0.5, 1.2, 0.5]}, "original", 1),
    (caption_selection.lmss, {"neutral": [0.5, 0.5, 0.0]}, "neutral", 2),
    (caption_selection.vlss, {"blank": [0.5, 0.5]}, "blank", None),
    (
        caption_selection.lmss,
        {
            "original": caption_selection.two_way(SCORES[:, :2]),
            "neutral": caption_selection.two_way(SCORES[:, :2], 100),
        },
        None,
        None,
    ),
    (caption_selection.percent_positive_without_bias, {"between": 1.0}, None, None),
    (caption_selection.percent_positive_without_bias, {"below": -0.9}, None, None),
    # masked_lm
    (
        masked_lm.language_association,
        {"log_p_neutral": [-1.0, -1, -np.inf, -1]},
        "log_p_neutral",
        2,
    ),
    (masked_lm.language_association, {"log_p_gendered": [-1, -1, 0.3, -1]}, "log_p_gendered", 2),
    (masked_lm.language_association, {"log_p_neutral": [-1.0] * 3}, "log_p_neutral", None),
    (masked_lm.visual_association, {"log_p_no_image": [-1.0, -2.0]}, "log_p_no_image", None),
    (masked_lm.bias_score, {"m": VISION}, None, None),
    (masked_lm.bias_score, {"m": masked_lm.language_association(-1.0, -1.0)}, None, None),
    (masked_lm.bias_score, {"m": masked_lm.language_association(LOGS, LOGS)}, None, None),
    (masked_lm.bias_score, {"f": VISION, "m": masked_lm.visual_association(LOGS, -2)}, None, None),
    (LANGUAGE.reweighted, {"weights": [1.0]}, "weights", None),
    (LANGUAGE.reweighted, {"weights": [1.0, -1.0, 1, 1]}, "weights", 1),
    (BIAS.reweighted, {"m_weights": None}, "m_weights", None),
    # inference
    (inference.adjust, {"p_values": [0.5, 1.2]}, "p_values", 1),
    (inference.adjust, {"p_values": [-0.1]}, "p_values", 0),
    (inference.adjust, {"method": "bonferroni"}, "method", None),
    (inference.bootstrap, {"n_units": [3, 0]}, "n_units", 1),
    (inference.bootstrap, {"n_units": []}, "n_units", None),
    (inference.bootstrap, {"n_resamples": 1}, "n_resamples", None),
    (inference.bootstrap, {"within": (0.0, 1.0, 2.0)}, "within", None),
    (inference.bootstrap, {"items": [8]}, "items", None),
    (inference.bootstrap, {"statistic": lambda w: w[0] * np.nan}, None, None),
    (inference.stratified_bootstrap, {"share": 1.5}, "share", None),
    (inference.bootstrap_effect_size, {"cosines_a": COSINES[:3]}, "cosines_a", None),
    (inference.bootstrap_effect_size, {"cosines_b": COSINES[:, :3]}, "cosines_b", None),
    (inference.bootstrap_c_asc, {"people": [1, 2]}, "people", None),
    (inference.bootstrap_top_k, {"k": 9}, "k", None),
    (inference.bootstrap_top_k, {"k": 1.5}, "k", None),
    (inference.bootstrap_top_k, {"statistic": "entropy"}, "statistic", None),
    (inference.bootstrap_top_k, {"ranking": TOP[:, :2]}, None, None),
    (inference.bootstrap_selection, {"triplets": [1, 2]}, "triplets", None),
    (inference.bootstrap_selection, {"statistic": "lmss"}, "statistic", None),
    (inference.largest_effect_size, {"n_y": [1, 2, 3]}, "n_y", None),
    (inference.rank_correlation_interval, {"r": 1.1}, "r", None),
    (inference.permutation_test, {"x": []}, "x", None),
    (inference.permutation_test, {"x": [X]}, "x", None),
    (inference.permutation_p_values, {"y": [Y]}, "y", None),
    (inference.relabelled_differences, {"n_resamples": 0}, "n_resamples", None),
    (inference.power, {"n_x": 0}, "n_x", None),
    (inference.power, {"alpha": 1.5}, "alpha", None),
    (inference.power, {"shift": np.inf}, "shift", None),
    (inference.power, {"n_x": 1, "n_y": 1}, "n_y", None),
    (inference.minimum_detectable_effect, {"wanted_power": 0.01}, "wanted_power", None),
    (inference.proportion_interval, {"successes": 0.5}, "successes", None),
    (inference.proportion_interval, {"successes": 10}, "successes", None),
    (inference.proportion_interval, {"n": 0}, "n", None),
    (inference.random_attribute_null, {"draws": [[0, 0]]}, "draws", 0),
    (inference.random_attribute_null, {"draws": [[0, 1], [1, 12]]}, "draws", 1),
    (inference.random_attribute_null, {"draws": [[0, 1, 2]]}, "draws", None),
    (inference.random_attribute_null, {"n_a": 0}, "n_a", None),
    (inference.random_attribute_null, {"draws": None, "n_sets": 0}, "n_sets", None),
    (inference.random_attribute_null, {"draws": None, "n_a": 12}, "n_a", None),
    (inference.random_attribute_null, {"y_cosines": POOL[:, :5]}, "y_cosines", None),
    (
        inference.random_attribute_null,
        {"x_cosines": SAME_ROWS, "y_cosines": SAME_ROWS},
        None,
        None,
    ),
    (inference.grounded_permutation_test, {"result": THIRD}, None, None),
    (inference.grounded_permutation_test, {"null": "none"}, "null", None),
    (inference.exchange_test, {"result": SECOND}, None, None),
    (inference.exchange_test, {"words": {"Ax": list("abcd")}}, "words", None),
    (inference.exchange_test, {"words": LABELLED | {"Bx": ["one"]}}, "words['Bx']", None),
    (inference.exchange_test, {"words": LABELLED | {"Ay": list("abcd")}}, None, None),
    (inference.exchange_test, {"pictures": LABELLED}, None, None),
    (inference.exchange_test, {"n_resamples": 1}, "n_resamples", None),
]


@pytest.mark.parametrize(("function", "change", "word", "row"), VALUES)
def test_a_value_out_of_range_is_refused_by_name_and_row(function, change, word, row):
    with pytest.raises(InputError) as caught:
        function(**CALLS[function] | change)
    assert (caught.value.word, caught.value.row) == (word, row)


# Names

NAMES = [
    (stimuli.association_test, ("c6",)),
    (stimuli.association_test, ("C6", "words")),
    (stimuli.seat_test, ("C8",)),
    (stimuli.taxonomy, ("SOBIT",)),
    (stimuli.caption, ("shy", "adjectives")),
    (datasets.user_test, ("C6", "folder", "contextual")),
    (datasets.read_fairface, ("folder", "val")),
    (datasets.read_fairface, ("folder", "train", "0.5")),
    (ross2021.links, ("folder", "flickr")),
    (published.stated, ("nobody2021",)),
    (published.errata, ("nobody2021",)),
    (study2_masked.paper_inputs, ("vlbert", None, 6, "folder", None, True)),
]


@pytest.mark.parametrize(("function", "arguments"), NAMES)
def test_an_unknown_name_is_refused(function, arguments):
    with pytest.raises(UnknownNameError):
        function(*arguments)


# Tables

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
# A function of a table, its name among the arguments, the table, and columns without a gap.
TABLES = [
    (lambda t: datasets.balance(TEST, t), "pairs", PAIRS, ["set", "image", "caption_id"]),
    (datasets.balanced_images, "manifest", AGENTS, ["entity", "gender"]),
    (datasets.coverage, "downloaded", DOWNLOADED, ["test", "group", "outcome"]),
    (datasets.entity_balance, "manifest", AGENTS, ["entity", "gender"]),
    (lambda t: datasets.membership(t, ["gender", "race"]), "manifest", PEOPLE, ["gender", "race"]),
    (lambda t: datasets.outcomes(t, "no such folder"), "links", LINKS, ["file"]),
    (datasets.proportions, "counts", COUNTS, ["word", "both"]),
    (lambda t: vlstereoset.balanced(t, 0), "table", STEREOTYPES, ["category", "label"]),
    (vlstereoset.neutralised, "table", STEREOTYPES, ["category", "target", "stereotype"]),
]


@pytest.mark.parametrize(("function", "name", "table", "columns"), TABLES)
def test_a_gap_in_a_table_is_named_by_column_and_row(function, name, table, columns):
    for column in columns:
        gap = table.astype(object)
        gap.iloc[1, gap.columns.get_loc(column)] = None
        with pytest.raises(InputError) as caught:
            function(gap)
        assert (caught.value.word, caught.value.row) == (column, 1)
        with pytest.raises(InputError) as caught:
            function(table.drop(columns=column))
        assert caught.value.word == column
    with pytest.raises(InputError) as caught:
        function(table.to_dict("list"))
    assert caught.value.word == name


@pytest.mark.parametrize(("function", "name", "table", "columns"), TABLES)
def test_the_index_of_a_table_says_nothing(function, name, table, columns):
    expected, found = (
        function(each).fillna("gap").to_numpy()
        for each in (table, table.set_axis([7] * len(table)))
    )
    np.testing.assert_array_equal(found, expected)


def test_shares_stay_with_their_words_after_a_selection():
    counts = pandas.concat([COUNTS, COUNTS.assign(word=["cook", "boss"], female=[1, 4])])
    found = datasets.proportions(counts[counts["female"] > 1]).set_index("word")["share"]
    assert found.to_dict() == pytest.approx({"ceo": 2 / 8, "nurse": 9 / 12, "boss": 4 / 7})


# Files


def corpus(column="TEXT", texts=("her nurse",)):
    return lambda path: pandas.DataFrame({column: list(texts)}).to_parquet(path)


def count(folder, words=("nurse",), file="a.parquet", **how):
    return datasets.group_counts(folder / file, list(words), **how)


def own(rows, header="entity,frame,stereotype"):
    return "\n".join([header, *rows])


KETTLE = "kettle,The {agent} is holding a {entity}.,"
STEREO = list(vlstereoset.COLUMNS)
SISTER = ["gender", "sister", "My sister", "is tall", "is small", "is soup", "1", "http://a/1"]


def stereo(*rows, columns=STEREO):
    def write(path):
        with open(path, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([columns, *rows])

    return write


def viso(**changes):
    row = {"IDX": "OO_1", "Occupation": "clerk", "Object": "desk"}
    row |= {"URL type (Type NA if can't find)": "http://a/1"}
    row |= {"Occupation_perceived_gender": changes.pop("gender", "feminine")} | changes
    return "\t".join(row) + "\r\n" + "\t".join(row.values()) + "\r\n"


def released(**changes):
    part = {"category": "W", "captions": {"0": "John"}, "images": {"a.jpg": [0]}}
    images = {"W_Images": {"a.jpg": [0]}}
    attributes = {"category": "C", "captions": {"0": "office"}, **images}
    content = {"test_name": "weat6", "dataset": "google", "test_types": ["word"]}
    content |= {"targ1": part, "targ2": part, "attr1": attributes, "attr2": attributes}
    return json.dumps(content | changes)


def part(**changes):
    return {"category": "W", "captions": {"0": "John"}, "images": {"a.jpg": [0]}} | changes


def read_test(folder):
    return datasets.grounded_test(folder / "a.jsonl")


# What a folder holds (text, or what writes a file), what reads it, class, and fields: path below
# the folder, word and row.
FILES = [
    # datasets.captions
    ({}, lambda f: datasets.group_counts(f, ["nurse"]), DataError, {"path": "."}),
    ({}, count, DataError, {"path": "a.parquet"}),
    ({"a.parquet": corpus("sentence")}, lambda f: count(f, column="words"), DataError,
     {"path": "a.parquet", "word": "words"}),
    ({"a.parquet": corpus("sentence")}, count, DataError, {"path": "a.parquet"}),
    ({"a.parquet": corpus(texts=[])}, count, DataError, {"path": "a.parquet"}),
    ({"a.parquet": corpus(texts=[1])}, count, DataError, {"path": "a.parquet", "word": "TEXT"}),
    ({"a.parquet": corpus(texts=[["a"]])}, count, DataError, {"path": "a.parquet", "word": "TEXT"}),
    ({"a.parquet": corpus(texts=["9" * 400] * 20_000)}, lambda f: count(f, memory="1MB"), DataError,
     {"path": "a.parquet"}),
    ({"a.parquet": pandas.DataFrame({"text": ["her"], "TEXT": ["his"]}).to_parquet},
     lambda f: count(f, column="TEXT"), DataError, {"path": "a.parquet", "word": "text"}),
    ({"a.parquet": corpus()}, lambda f: count(f, words=[]), InputError, {"word": "words"}),
    ({"a.parquet": corpus()}, lambda f: count(f, words=["a", "--"]), InputError, {"word": "--"}),
    ({"a.parquet": corpus()}, lambda f: datasets.group_counts(f, "nurse"), InputError,
     {"word": "words"}),
    ({"a.parquet": corpus()}, lambda f: count(f, groups={"x": ("she is",), "y": ("he",)}),
     InputError, {"word": "she is"}),
    ({"a.parquet": corpus()}, lambda f: count(f, groups={"x": "she", "y": "he"}), InputError,
     {"word": "groups"}),
    ({"a.parquet": corpus()}, lambda f: count(f, groups={"x": ("she",)}), InputError,
     {"word": "groups"}),
    # datasets.fairface
    ({}, datasets.read_fairface, DataError, {"path": "."}),
    ({}, lambda f: datasets.membership(PEOPLE, "race", ["a", "c"]), DataError, {"word": "c"}),
    ({}, lambda f: datasets.membership(PEOPLE, "tone"), DataError, {"word": "tone"}),
    ({}, lambda f: fairface.group_sizes(PEOPLE, "age", {"age": ["0-2"]}), DataError,
     {"word": "age"}),
    # datasets.vlstereoset
    ({"a.csv": stereo(SISTER, columns=[*STEREO[:1], "who", *STEREO[2:]])},
     lambda f: vlstereoset.read(f / "a.csv"), DataError, {"path": "a.csv", "word": "target"}),
    ({"a.csv": stereo(SISTER, [*SISTER[:4], "Is tall!", *SISTER[5:]])},
     lambda f: vlstereoset.read(f / "a.csv"), DataError, {"word": "a.csv, line 3"}),
    ({"a.csv": stereo(SISTER, [*SISTER[:6], "2", SISTER[7]])},
     lambda f: vlstereoset.read(f / "a.csv"), DataError, {"word": "a.csv, line 3"}),
    ({"a.csv": stereo(SISTER, [*SISTER[:7], " "])},
     lambda f: vlstereoset.read(f / "a.csv"), DataError, {"word": "a.csv, line 3"}),
    ({"a.csv": stereo()}, lambda f: vlstereoset.read(f / "a.csv"), DataError, {"path": "a.csv"}),
    ({}, lambda f: vlstereoset.balanced(STEREOTYPES.iloc[2:], 0), DataError, {}),
    ({}, lambda f: vlstereoset.with_images(STEREOTYPES, f), DataError, {"path": "images"}),
    # datasets.visogender
    ({"a.tsv": viso(gender="")}, lambda f: visogender.read(f / "a.tsv"), DataError,
     {"path": "a.tsv", "row": 2, "word": ""}),
    ({"a.tsv": "IDX\tObject\nOO_1\tdesk\n"}, lambda f: visogender.read(f / "a.tsv"), DataError,
     {"path": "a.tsv"}),
    # datasets.links
    ({"downloads.csv": "\x01 a picture\n\x01\n"}, lambda f: datasets.outcomes(LINKS, f), DataError,
     {"path": "downloads.csv"}),
    # datasets.ross2021
    ({}, lambda f: ross2021.links(f, "google"), DataError, {"path": "data/google-images"}),
    ({}, lambda f: ross2021.links(f, "coco"), DataError, {"path": "tests/grounded-tests/coco"}),
    ({}, lambda f: ross2021.links(f, "concap"), DataError, {"path": ross2021.CAPTIONS}),
    # datasets.grounded_images
    ({}, lambda f: datasets.images_of(TEST, f / "none"), DataError, {"path": "none"}),
    ({}, lambda f: datasets.user_test("C6", f), DataError, {"path": "."}),
    ({"a.jsonl": "[]"}, read_test, DataError, {"path": "a.jsonl"}),
    *[
        ({"a.jsonl": released(**changes)}, read_test, DataError, {"path": "a.jsonl", "word": word})
        for changes, word in [
            ({"targ1": part(captions={"one": "John"})}, "targ1.captions"),
            ({"targ1": part(captions={"0": None})}, "targ1.captions.0"),
            ({"targ1": part(captions={"0": "J", "00": "P"})}, "targ1.captions"),
            ({"targ1": part(images={"a.jpg": [0.5]})}, "targ1.images.a.jpg"),
            ({"attr2": part(W_Images=[])}, "attr2.W_Images"),
            ({"targ1": []}, "targ1"),
            ({"targ2": {"category": "W", "images": {}}}, "targ2.captions"),
            ({"attr1": {"category": "C", "captions": {}}}, "attr1.W_Images"),
            ({"test_types": []}, "test_types"),
            ({"contextual_words": ["John", None]}, "contextual_words[1]"),
        ]
    ],
    # stimuli
    ({"a.csv": own(["kettle"])}, lambda f: stimuli.own_entities(f / "a.csv"), InputError,
     {"path": "a.csv", "row": 2}),
    ({"a.csv": own([KETTLE, KETTLE])}, lambda f: stimuli.own_entities(f / "a.csv"), InputError,
     {"path": "a.csv", "word": "kettle"}),
    ({"a.csv": own([KETTLE + "people"])}, lambda f: stimuli.own_entities(f / "a.csv"), InputError,
     {"path": "a.csv", "word": "kettle"}),
    ({"a.csv": own(["kettle,A {entity}.,"])}, lambda f: stimuli.own_entities(f / "a.csv"),
     InputError, {"path": "a.csv", "word": "kettle"}),
    ({"a.csv": own(["kettle"], "entity")}, lambda f: stimuli.own_entities(f / "a.csv"), InputError,
     {"path": "a.csv", "word": "frame"}),
    ({}, lambda f: stimuli.caption("shy", "adjective", mass=True), InputError, {"word": "shy"}),
]  # fmt: skip


@pytest.mark.parametrize(("files", "call", "kind", "fields"), FILES)
def test_a_file_that_cannot_be_used_is_refused_by_path_word_and_row(
    tmp_path, files, call, kind, fields
):
    for name, content in files.items():
        if callable(content):
            content(tmp_path / name)
        else:
            (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(kind) as caught:
        call(tmp_path)
    for name, value in fields.items():
        expected = tmp_path / value if name == "path" else value
        assert getattr(caught.value, name) == expected
