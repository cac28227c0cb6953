"""The three grounded experiments against slow code, and their nulls against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biaslib import inference
from biaslib.metrics import association as metrics
from biaslib.metrics.grounded import grounded

ROLES = ("X", "Y", "Ax", "Ay", "Bx", "By")


def random_sets(seed, n_x=6, n_y=6, d=10):
    rng = np.random.default_rng(seed)
    sizes = {"X": n_x, "Y": n_y, "Ax": 5, "Ay": 4, "Bx": 3, "By": 6}
    return {role: rng.normal(size=(size, d)) for role, size in sizes.items()}


def slow_score(w, A, B):
    def cosine(u, v):
        return (
            sum(a * b for a, b in zip(u, v, strict=True))
            / (sum(a * a for a in u) * sum(b * b for b in v)) ** 0.5
        )

    return sum(cosine(w, a) for a in A) / len(A) - sum(cosine(w, b) for b in B) / len(B)


def spread(scores):
    mean = sum(scores) / len(scores)
    return (sum((s - mean) ** 2 for s in scores) / (len(scores) - 1)) ** 0.5


def mean(scores):
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(4))
def test_experiment_1_uses_all_images(seed):
    sets = {role: rows.tolist() for role, rows in random_sets(seed).items()}
    A, B = sets["Ax"] + sets["Ay"], sets["Bx"] + sets["By"]
    x, y = ([slow_score(w, A, B) for w in sets[s]] for s in "XY")
    result = grounded(*(sets[r] for r in ROLES), experiment=1)
    assert result.effect_size == pytest.approx((mean(x) - mean(y)) / spread(x + y), abs=1e-12)
    np.testing.assert_allclose(result.x_scores, x, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_experiment_2_uses_the_targets_own_images(seed):
    sets = {role: rows.tolist() for role, rows in random_sets(seed).items()}
    x = [slow_score(w, sets["Ax"], sets["Bx"]) for w in sets["X"]]
    y = [slow_score(w, sets["Ay"], sets["By"]) for w in sets["Y"]]
    result = grounded(*(sets[r] for r in ROLES), experiment=2)
    assert result.effect_size == pytest.approx((mean(x) - mean(y)) / spread(x + y), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_experiment_3_as_printed_and_as_released(seed):
    sets = {role: rows.tolist() for role, rows in random_sets(seed).items()}
    x_own = [slow_score(w, sets["Ax"], sets["Bx"]) for w in sets["X"]]
    x_other = [slow_score(w, sets["Ay"], sets["By"]) for w in sets["X"]]
    y_own = [slow_score(w, sets["Ay"], sets["By"]) for w in sets["Y"]]
    y_other = [slow_score(w, sets["Ax"], sets["Bx"]) for w in sets["Y"]]
    x_shift, y_shift = mean(x_own) - mean(x_other), mean(y_own) - mean(y_other)
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    printed = 0.5 * (abs(x_shift) + abs(y_shift)) / spread(x_own + x_other + y_own + y_other)
    assert result.effect_size == pytest.approx(printed, abs=1e-12)
    assert result.x_effect == pytest.approx(x_shift / spread(x_own + x_other), abs=1e-12)
    assert result.y_effect == pytest.approx(-y_shift / spread(y_own + y_other), abs=1e-12)


def test_experiment_1_without_a_context_is_the_ungrounded_test():
    sets = random_sets(0)
    sets["Ay"], sets["By"] = sets["Ax"], sets["Bx"]
    result = grounded(*(sets[r] for r in ROLES), experiment=1)
    plain = metrics.effect_size(sets["X"], sets["Y"], sets["Ax"], sets["Bx"])
    assert result.effect_size == pytest.approx(plain, abs=1e-12)


@given(st.integers(0, 10_000))
def test_same_images_for_both_targets_make_experiments_1_and_2_one(seed):
    """As in the released file of test C8, whose rows in Tables 3 and 4 are equal."""
    sets = random_sets(seed)
    sets["Ay"], sets["By"] = sets["Ax"], sets["Bx"]
    first, second, third = (grounded(*(sets[r] for r in ROLES), experiment=e) for e in (1, 2, 3))
    assert first.effect_size == pytest.approx(second.effect_size, abs=1e-12)
    assert (third.effect_size, third.x_effect, third.y_effect) == (0.0, 0.0, 0.0)


@given(st.integers(0, 10_000))
def test_signs(seed):
    sets = random_sets(seed)
    X, Y, Ax, Ay, Bx, By = (sets[r] for r in ROLES)
    for experiment in (1, 2):
        d = grounded(X, Y, Ax, Ay, Bx, By, experiment).effect_size
        turned = grounded(Y, X, Ay, Ax, By, Bx, experiment).effect_size
        exchanged = grounded(X, Y, Bx, By, Ax, Ay, experiment).effect_size
        assert turned == pytest.approx(-d, abs=1e-10)
        assert exchanged == pytest.approx(-d, abs=1e-10)
    third = grounded(X, Y, Ax, Ay, Bx, By, 3)
    other_way = grounded(X, Y, Ay, Ax, By, Bx, 3)
    assert other_way.effect_size == pytest.approx(third.effect_size, abs=1e-10)
    assert other_way.x_effect == pytest.approx(-third.x_effect, abs=1e-10)
    assert 0 <= third.effect_size <= 2


def test_new_attributes_agree_with_recomputing_every_relabelling():
    """Give each relabelled target the attributes of its new label, one partition at a time."""
    sets = random_sets(3, n_x=4, n_y=4)
    result = grounded(*(sets[r] for r in ROLES), experiment=2)
    pooled = np.concatenate([sets["X"], sets["Y"]])
    own_x = metrics.association(pooled, sets["Ax"], sets["Bx"])
    own_y = metrics.association(pooled, sets["Ay"], sets["By"])
    statistics = []
    for chosen in itertools.combinations(range(8), 4):
        rest = [i for i in range(8) if i not in chosen]
        statistics.append(own_x[list(chosen)].sum() - own_y[rest].sum())
    expected = np.mean(np.array(statistics) >= statistics[0] - 1e-12)
    found = inference.grounded_permutation_test(result, null="new attributes")
    assert found.p_value == pytest.approx(expected, abs=1e-15)


def test_fixed_scores_react_to_attributes_that_differ_and_new_attributes_do_not():
    """Targets that are exchangeable, attributes that differ by category: which null rejects?"""
    fixed, new = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sets = random_sets(seed)
        sets["X"], sets["Y"] = 1.0 + rng.normal(size=(2, 6, 10))
        sets["Ax"] = sets["Ax"] + 2.0
        result = grounded(*(sets[r] for r in ROLES), experiment=2)
        fixed.append(inference.grounded_permutation_test(result).p_value)
        new.append(inference.grounded_permutation_test(result, null="new attributes").p_value)
    assert np.mean(np.array(fixed) < 0.05) > 0.5
    assert np.mean(np.array(new) < 0.05) < 0.10


def brute_force_exchange(result):
    x, y = result.x_scores - result.x_other, result.y_scores - result.y_other
    observed = abs(x.sum()) + abs(y.sum())
    reached = total = 0
    for signs in itertools.product((1, -1), repeat=x.size + y.size):
        value = abs(np.dot(signs[: x.size], x)) + abs(np.dot(signs[x.size :], y))
        reached += value >= observed - 1e-12
        total += 1
    return reached / total


@pytest.mark.parametrize("seed", range(4))
def test_exchange_agrees_with_all_sign_patterns(seed):
    sets = random_sets(seed, n_x=5, n_y=4)
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    found = inference.exchange_test(result)
    assert found.method == "enumeration"
    assert found.n_exchanges == 2**9
    assert found.p_value == pytest.approx(brute_force_exchange(result), abs=1e-15)


def test_sampled_exchange_agrees_with_enumeration(monkeypatch):
    sets = random_sets(1, n_x=8, n_y=8)
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    exact = inference.exchange_test(result).p_value
    monkeypatch.setattr("biaslib.inference._exchange.ENUMERATED", 0)
    sampled = inference.exchange_test(result, n_resamples=50_000, rng=0)
    assert sampled.method == "sampled"
    assert sampled.low <= exact <= sampled.high
    assert sampled.p_value == pytest.approx(exact, abs=0.01)


def test_exchange_keeps_its_level_although_the_statistic_is_never_negative():
    p_values = []
    for seed in range(400):
        sets = random_sets(seed)
        p_values.append(
            inference.exchange_test(grounded(*(sets[r] for r in ROLES), experiment=3)).p_value
        )
    rejected = np.mean(np.array(p_values) <= 0.05)
    assert rejected < 0.10


def test_bad_input_says_what_is_wrong():
    sets = [random_sets(0)[r] for r in ROLES]
    with pytest.raises(ValueError, match="experiment 4"):
        grounded(*sets, experiment=4)
    first, third = grounded(*sets, experiment=1), grounded(*sets, experiment=3)
    with pytest.raises(ValueError, match="exchange_test"):
        inference.grounded_permutation_test(third)
    with pytest.raises(ValueError, match="use 'fixed scores'"):
        inference.grounded_permutation_test(first, null="new attributes")
    with pytest.raises(ValueError, match="not one of fixed scores"):
        inference.grounded_permutation_test(first, null="none")
    with pytest.raises(ValueError, match="Experiment 3, this is 1"):
        inference.exchange_test(first)
