"""The three grounded experiments against slow code, and their nulls against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference
from biaslib.metrics import association as metrics
from biaslib.metrics.grounded import GroundedResult, grounded

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


def listed(values):
    """Return the absolute sums under every pattern of signs, one by one."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=values.size)))
    return np.abs(signs @ values)


@pytest.mark.parametrize("n", [3, 9, 14])
@pytest.mark.parametrize("seed", range(3))
def test_a_lattice_of_sign_patterns_encloses_what_listing_counts(n, seed, monkeypatch):
    rng = np.random.default_rng([n, seed])
    shifts = rng.normal(rng.normal(), 1.0, n)
    true = np.mean(listed(shifts) >= abs(shifts.sum()) * (1 - 1e-12))
    exact = inference.sign_flip_test(shifts)
    monkeypatch.setattr("biaslib.inference._sign_sums.ENUMERATED", 0)
    found = inference.sign_flip_test(shifts)
    assert (exact.method, exact.interval, exact.p_value) == ("enumeration", "exact", true)
    assert (found.method, found.interval) == ("lattice", "proven bound")
    assert found.low <= true <= found.high
    assert found.high - found.low <= max(0.002 * true, 4 / 2**n)


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_on_a_lattice_enclose_what_listing_counts(seed, monkeypatch):
    sets = random_sets(seed, n_x=8, n_y=7)
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    exact = inference.exchange_test(result)
    monkeypatch.setattr("biaslib.inference._sign_sums.ENUMERATED", 0)
    found = inference.exchange_test(result)
    assert exact.interval == "exact"
    assert found.low <= exact.p_value <= found.high
    assert found.high - found.low <= 0.002 * exact.p_value + 8 / 2**15


def test_far_tails_of_sign_patterns_are_those_of_the_binomial():
    """All of one size: the sum is a count of heads, to the last pattern."""
    for n, heads in [(200, 190), (1_000, 900), (1_000, 1_000)]:
        values = np.repeat([1.0, -1.0], [heads, n - heads]) * np.pi
        found = inference.sign_flip_test(values)
        assert (found.method, found.interval) == ("lattice", "exact")
        true = 2 * stats.binom.sf(heads - 1, n, 0.5)
        assert found.p_value == pytest.approx(true, rel=1e-11)
        assert found.n_exchanges == 2**n


def test_uneven_shifts_of_many_targets_are_normal_to_the_known_error():
    """Edgeworth: the kurtosis of a sum of signs shifts its tail by a known term of order 1/n."""
    values = np.random.default_rng(5).gamma(4.0, size=200)
    spread = np.sqrt((values**2).sum())
    signs = np.where(np.arange(200) < 114, 1.0, -1.0)
    found = inference.sign_flip_test(values * signs)
    z = abs((values * signs).sum()) / spread
    kurtosis = -2 * (values**4).sum() / spread**4
    true = 2 * (stats.norm.sf(z) + stats.norm.pdf(z) * kurtosis / 24 * (z**3 - 3 * z))
    assert found.interval == "proven bound"
    assert found.low <= true <= found.high
    assert (found.high - found.low) / true < 0.02


def test_clusters_of_unequal_size_are_averaged_before_they_get_new_attributes():
    """Four words with one picture each, and four with eight."""
    rng = np.random.default_rng(5)
    own, other = rng.normal(size=(2, 36))
    words = np.r_[np.arange(4), np.repeat(np.arange(4, 8), 8)]
    first = GroundedResult(2, 1.0, 1, own[:4], own[4:], other[:4], other[4:])
    labels = {"clusters_x": words[:4], "clusters_y": words[4:]}
    found = inference.grounded_permutation_test(first, "new attributes", **labels)
    u, v = (np.bincount(words, each) / np.bincount(words) for each in (own, other))
    with_x, with_y = np.r_[u[:4], v[4:]], np.r_[v[:4], u[4:]]
    sums = [
        np.mean(with_x[list(chosen)]) - np.mean(np.delete(with_y, chosen))
        for chosen in itertools.combinations(range(8), 4)
    ]
    assert found.statistic == pytest.approx(sums[0])
    assert found.p_value == np.mean(np.array(sums) >= sums[0] - 1e-12)
    labels = {"clusters_x": words[:4], "clusters_y": words[3:35]}
    with pytest.raises(ValueError, match="in both target sets"):
        inference.grounded_permutation_test(first, "new attributes", **labels)


@pytest.mark.parametrize("n", [700, 3_000, 20_000, 200_000])
def test_signs_of_any_number_of_values_of_one_size_are_binomial_by_frequencies(n, monkeypatch):
    monkeypatch.setattr("biaslib.inference._sign_sums.MOST_WORK", n)  # No room for a lattice.
    heads = int(n / 2 + 1.3 * np.sqrt(n))
    values = np.repeat([1.0, -1.0], [heads, n - heads]) * np.pi
    found, true = inference.sign_flip_test(values), 2 * stats.binom.sf(heads - 1, n, 0.5)
    assert found.p_value == pytest.approx(true, rel=1e-7)
    assert found.low <= true <= found.high
    assert len(repr(found)) < 300


@pytest.mark.parametrize("shape", ["normal", "lognormal", "cauchy"])
@pytest.mark.parametrize("n", [1_000, 30_000])
def test_signs_of_many_uneven_values_are_those_of_drawn_signs(n, shape):
    rng = np.random.default_rng(n)
    draw = {"normal": rng.normal, "lognormal": rng.lognormal, "cauchy": rng.standard_cauchy}
    sizes = np.abs(draw[shape](size=n))
    signs = rng.choice([-1.0, 1.0], n)
    signs[: int(np.sqrt(n))] = 1.0
    drawn = np.abs([rng.choice([-1.0, 1.0], n) @ sizes for _ in range(4_000)])
    at_least = np.mean(drawn >= abs(signs @ sizes))
    found = inference.sign_flip_test(signs * sizes)
    assert abs(found.p_value - at_least) < 4 * np.sqrt(0.25 / 4_000)
    # 1.03 was set before the first run; 30,000 Cauchy values have 1.04.
    assert found.low <= found.p_value <= found.high <= 1.05 * found.low


def test_many_exchanges_of_two_sides_are_those_of_drawn_signs():
    rng = np.random.default_rng(8)
    x, y = rng.normal(0.01, 1.0, 20_000), rng.normal(0.0, 2.0, 5_000)
    result = GroundedResult(3, 1.0, 1, x, y, np.zeros(x.size), np.zeros(y.size))
    drawn = [
        sum(abs(rng.choice([-1.0, 1.0], side.size) @ side) for side in (x, y)) for _ in range(4_000)
    ]
    at_least = np.mean(np.array(drawn) >= abs(x.sum()) + abs(y.sum()))
    found = inference.exchange_test(result)
    assert abs(found.p_value - at_least) < 4 * np.sqrt(0.25 / 4_000)
    assert found.low <= found.p_value <= found.high <= 1.03 * found.low


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
    first, third = grounded(*sets, experiment=1), grounded(*sets, experiment=3)
    with pytest.raises(ValueError, match="exchange_test"):
        inference.grounded_permutation_test(third)
    with pytest.raises(ValueError, match="use 'fixed scores'"):
        inference.grounded_permutation_test(first, null="new attributes")
    with pytest.raises(ValueError, match="not one of fixed scores"):
        inference.grounded_permutation_test(first, null="none")
    with pytest.raises(ValueError, match="Experiment 3, this is 1"):
        inference.exchange_test(first)
