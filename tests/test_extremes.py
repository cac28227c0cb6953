"""Statistics at their extremes: what is not defined stays so, at any scale, shape and type."""

import itertools

import numpy as np
import pytest

from biaslib import inference
from biaslib.errors import InputError
from biaslib.metrics import association, caption_association, caption_selection
from biaslib.metrics.grounded import GroundedResult

SCALES = (1e-300, 1e-160, 1e-12, 1e12, 1e160, 1e300)
X, Y = np.array([1.2, 2.0, 3.1, 0.4, 2.2, 1.9, 2.8]), np.array([0.3, 1.1, 2.4, 0.2, 0.9, 1.4, 1.0])


def brute(x, y):
    """The share of partitions whose difference of means is not smaller, with whole fractions."""
    pooled, n = [*x, *y], len(x)
    observed = sum(x) / n - sum(y) / len(y)
    reached = total = 0
    for chosen in itertools.combinations(range(len(pooled)), n):
        inside = sum(pooled[at] for at in chosen)
        difference = inside / n - (sum(pooled) - inside) / len(y)
        reached += difference >= observed
        total += 1
    return reached / total


@pytest.mark.parametrize("scale", SCALES)
def test_a_p_value_has_no_unit(scale):
    rng = np.random.default_rng(0)
    many = rng.normal(0.4, 1, 30), rng.normal(size=25)
    tied = np.repeat(X, 4), np.repeat(Y, 4)
    for test, method in ((X, Y), "enumeration"), (many, "saddlepoint"), (tied, "sampled"):
        one = inference.permutation_test(*test, rng=0)
        other = inference.permutation_test(*(scale * each for each in test), rng=0)
        assert one.method == other.method == method
        results = ([each.p_value, each.low, each.high] for each in (one, other))
        np.testing.assert_allclose(*results, rtol=1e-6)
        assert other.statistic == pytest.approx(one.statistic * scale)


@pytest.mark.parametrize("scale", SCALES)
def test_effects_and_cosines_have_no_unit(scale):
    d = association.effect_size_of_scores(X, Y)
    assert association.effect_size_of_scores(X * scale, Y * scale) == pytest.approx(d, rel=1e-12)
    rows = np.column_stack([X, Y])
    expected = association.cosines(rows, rows[:2])
    np.testing.assert_allclose(association.cosines(rows * scale, rows[:2]), expected, rtol=1e-12)
    shifts = X - Y
    scaled, plain = inference.sign_flip_test(shifts * scale), inference.sign_flip_test(shifts)
    assert scaled.p_value == plain.p_value
    assert scaled.statistic == pytest.approx(scale * plain.statistic, rel=1e-12)
    near = {name: np.random.default_rng(1).normal(size=(4, 2)) for name in ("Ax", "Ay", "Bx")}
    near["By"] = np.flip(near["Ay"])
    exact, found = (
        inference.exchange_test(
            GroundedResult(
                3, 1.0, 1, X, Y, X, Y, attributes={name: by * v for name, v in near.items()}
            ),
            {name: range(4) for name in near},
        )
        for by in (1, scale)
    )
    assert found.p_value == exact.p_value
    assert found.statistic == pytest.approx(scale * exact.statistic, rel=1e-12)
    drawn = inference.relabelled_differences(X * scale, Y * scale, 20, rng=0)
    plain = inference.relabelled_differences(X, Y, 20, rng=0)
    np.testing.assert_allclose(drawn / scale, plain, rtol=1e-12)
    many = inference.permutation_p_values([X * scale, X], [Y * scale, Y])
    assert many[0] == many[1]


@pytest.mark.parametrize("scale", SCALES)
def test_intervals_and_measures_of_captions_have_no_unit(scale):
    rng = np.random.default_rng(4)
    cosines = rng.uniform(-1, 1, (8, 12))
    groups = np.arange(12)[:, None] < 5

    def measured(by):
        units = range(4), range(4), range(6), range(6)
        tables = by * cosines[:, :6], by * cosines[:, 6:]
        effect = inference.bootstrap_effect_size(*tables, *units, n_resamples=50, rng=0)
        found = inference.bootstrap_c_asc(by * cosines, groups, n_resamples=20, rng=0)
        null = inference.random_attribute_null(by * cosines[:4], by * cosines[4:], 3, 3, 30, rng=0)
        return [
            np.array([effect.low, effect.high]),
            caption_association.c_asc(by * cosines, groups),
            found.low,
            null.effect_sizes,
        ]

    for one, other in zip(measured(1.0), measured(scale), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_one_huge_score_does_not_make_the_others_tie():
    x, y = [10**10, 2, 3, 4, 2.5, 3.5], [1, 0.5, 1.5, 0, 0.2, 0.3]
    found = inference.permutation_test(x, y)
    assert found.p_value == found.low == found.high == brute(x, y) == 1 / 924


# What is not defined


@pytest.mark.parametrize("last_digit", [False, True])
def test_random_attributes_that_are_alike_leave_rounding_and_no_effect(last_digit):
    column = np.random.default_rng(0).uniform(-1, 1, (8, 1))
    pool = np.repeat(column, 6, axis=1)
    if last_digit:
        pool[:, 1:] = np.nextafter(pool[:, 1:], 2)
    with pytest.raises(InputError):
        inference.random_attribute_null(pool[:4], pool[4:], 3, 3, n_sets=20, rng=0)


def test_what_is_not_defined_for_the_data_has_no_interval():
    def not_of_all(weights):
        return np.where((weights == 1).all(axis=0), np.nan, weights[0])

    with pytest.raises(InputError):
        inference.bootstrap(not_of_all, [4], rng=0)
    table = inference.bootstrap(
        lambda weights: np.stack([not_of_all(weights), weights[0]], axis=1), [4], rng=0
    )
    assert np.isnan([table.low[0], table.high[0]]).all()
    assert table.low[1] < 1 < table.high[1]


@pytest.mark.parametrize("r", [1.0, -1.0])
def test_a_correlation_of_1_is_not_known_for_certain(r):
    low, high = inference.rank_correlation_interval(r, 7)
    assert max(low, high, key=abs) == r
    assert min(low, high, key=abs) == pytest.approx(0.7592 * r, abs=1e-4)
    inner = [min(inference.rank_correlation_interval(r, n), key=abs) * r for n in (5, 9, 40)]
    assert inner == sorted(inner)
    assert inner[-1] < 1
    assert np.isnan(inference.rank_correlation_interval(r, 4)).all()
    assert np.isnan(inference.rank_correlation_interval(np.nan, 9)).all()


# Power


def test_power_is_that_of_the_level_which_the_test_attains():
    """By simulation: 5 and 5 targets at .005, where p is 1 / 252 or at least 2 / 252."""
    shift = inference.minimum_detectable_effect(5, 5, 0.005).shift
    assert inference.power(shift, 5, 5, 0.005) == pytest.approx(0.8)
    rng = np.random.default_rng(0)
    x, y = rng.normal(shift, 1, (4_000, 5)), rng.normal(0, 1, (4_000, 5))
    found = (inference.permutation_p_values(x, y) < 0.005).mean()
    assert found == pytest.approx(0.72, abs=0.02)  # as the docstring says
    shift = inference.minimum_detectable_effect(8, 8, 0.05).shift
    x, y = rng.normal(shift, 1, (1_000, 8)), rng.normal(0, 1, (1_000, 8))
    found = (inference.permutation_p_values(x, y) < 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.04)


def test_power_has_no_largest_set():
    assert inference.power(0.1, 5_000, 5_000) == pytest.approx(0.9996, abs=1e-4)
    assert inference.minimum_detectable_effect(600, 600).shift == pytest.approx(0.1436, abs=1e-4)


# Captions and masks


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e308])
def test_counts_and_vectors_have_no_unit(scale):
    counts = np.array([[1.0, 0.5, 0.25], [0.5, 0.5, 0.5]])
    expected = caption_association.entropy(counts)
    np.testing.assert_allclose(caption_association.entropy(counts * scale), expected, rtol=1e-12)
    assert caption_association.entropy([[1e308, 1e308]]).item() == pytest.approx(1.0)


def test_a_steep_softmax_picks_and_is_not_undefined():
    scores = [[0.3, 0.2, 0.1], [0.1, 0.1, 0.0]]
    found = caption_selection.caption_probabilities(scores, scale=1e308)
    assert found.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
