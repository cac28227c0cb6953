"""Bootstrap intervals against SciPy's, power against simulation."""

import numpy as np
import pytest
from scipy import stats

from biaslib import inference
from biaslib.inference import _power


def weighted_mean_difference(x, y):
    def statistic(x_weights, y_weights):
        return (x @ x_weights) / x_weights.sum(0) - (y @ y_weights) / y_weights.sum(0)

    return statistic


@pytest.mark.parametrize(("method", "name"), [("percentile", "percentile"), ("bca", "BCa")])
def test_two_samples_agree_with_scipy(method, name):
    rng = np.random.default_rng(0)
    x, y = rng.exponential(size=14), rng.normal(size=9)
    ours = inference.bootstrap(
        weighted_mean_difference(x, y), [14, 9], method, n_resamples=300_000, rng=1
    )
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        method=name,
        n_resamples=300_000,
        batch=50_000,
        random_state=np.random.default_rng(2),
    ).confidence_interval
    np.testing.assert_allclose([ours.low, ours.high], theirs, atol=0.02)


def test_bca_differs_from_percentile_where_the_statistic_is_skewed():
    x = np.random.default_rng(0).exponential(size=12)

    def variance(weights):
        total = weights.sum(0)
        return (x**2 @ weights) / total - ((x @ weights) / total) ** 2

    percentile, bca = (
        inference.bootstrap(variance, [12], method, n_resamples=20_000, rng=1)
        for method in ("percentile", "bca")
    )
    theirs = stats.bootstrap(
        (x,), np.var, method="BCa", n_resamples=20_000, random_state=np.random.default_rng(3)
    ).confidence_interval
    assert bca.high > percentile.high
    np.testing.assert_allclose([bca.low, bca.high], theirs, rtol=0.06)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_an_interval_holds_its_estimate_where_all_resamples_lie_beyond_it(method):
    """As near the end of a scale; here the share of units drawn more than once, of which 0 is."""

    def drawn_again(weights):
        return (weights > 1).mean(axis=0)

    found = inference.bootstrap(drawn_again, [40], method, n_resamples=400, rng=0)
    assert found.values.min() > found.estimate == found.low == 0
    assert 0 < found.high <= np.quantile(found.values, 0.975)


def test_undefined_resamples_are_left_out_and_counted():
    def sometimes(weights):
        return np.where(weights[0] > 0, weights[0], np.nan)

    interval = inference.bootstrap(sometimes, [5], n_resamples=1_000, rng=0)
    assert interval.n_resamples == len(interval.values) == 1_000
    assert interval.n_defined == np.isfinite(interval.values).sum()
    assert interval.n_defined == pytest.approx(1_000 * (1 - 0.8**5), abs=60)


def mean_and_first(values):
    """A table of two statistics; the second is not defined where the first unit is not drawn."""

    def statistic(weights):
        first = np.where(weights[0] > 0, weights[0], np.nan)
        return np.stack([(values @ weights) / weights.sum(0), first], axis=1)

    return statistic


def test_a_table_of_statistics_is_the_statistics_one_by_one():
    values = np.random.default_rng(0).normal(size=6)
    table = inference.bootstrap(mean_and_first(values), [6], n_resamples=700, rng=3)
    for column in range(2):

        def one(weights, column=column):
            return mean_and_first(values)(weights)[:, column]

        alone = inference.bootstrap(one, [6], n_resamples=700, rng=3)
        np.testing.assert_array_equal(table.values[:, column], alone.values)
        for name in ("estimate", "low", "high", "n_defined"):
            assert getattr(table, name)[column] == getattr(alone, name)
    with pytest.raises(ValueError, match="'bca' is for one number"):
        inference.bootstrap(mean_and_first(values), [6], "bca", rng=3)


def test_a_few_at_once_is_all_at_once():
    values = np.random.default_rng(1).normal(size=7)
    whole, parts = (
        inference.bootstrap(mean_and_first(values), [7], n_resamples=100, rng=5, at_once=at_once)
        for at_once in (None, 30)
    )
    np.testing.assert_array_equal(whole.values, parts.values)


def test_a_statistic_that_is_never_defined():
    with pytest.raises(ValueError, match="not defined in any resample"):
        inference.bootstrap(lambda w: np.full(w.shape[1], np.nan), [3], rng=0)


def simulated_power(shift, n, alpha, runs=4_000):
    rng = np.random.default_rng(5)
    x, y = rng.normal(shift, 1, (runs, n)), rng.normal(0, 1, (runs, n))
    p = inference.permutation_p_values(x, y, n_resamples=13_000, rng=0)
    return (p < alpha).mean()


@pytest.mark.parametrize(("shift", "n"), [(0.0, 8), (1.0, 8), (1.3, 8), (0.7, 15)])
def test_power_agrees_with_simulated_permutation_tests(shift, n):
    assert inference.power(shift, n, n) == pytest.approx(simulated_power(shift, n, 0.05), abs=0.03)


def test_power_agrees_with_the_manual_of_r():
    """The examples of power.t.test, which leaves out the far tail of its two-sided tests."""
    assert inference.power(1.0, 20, 20, alpha=0.025) == pytest.approx(0.8689528, abs=5e-8)
    smaller, larger = (inference.power(1.0, n, n, alpha=0.025) for n in (22, 23))
    # It prints n = 22.02110 for a power of .90.
    assert smaller < 0.9 < larger
    assert (0.9 - smaller) / (larger - smaller) == pytest.approx(0.0211, abs=0.002)


@pytest.mark.parametrize("n", [4, 200])
def test_the_detectable_effect_has_the_wanted_power(n):
    found = inference.minimum_detectable_effect(n, n)
    assert inference.power(found.shift, n, n) == pytest.approx(0.8, abs=1e-9)


def test_effect_size_that_goes_with_a_shift():
    """Simulate equation 3 on large sets with the shift of the result."""
    from biaslib.metrics.association import effect_size_of_scores

    found = inference.minimum_detectable_effect(8, 8)
    rng = np.random.default_rng(0)
    d = effect_size_of_scores(rng.normal(found.shift, 1, 400_000), rng.normal(0, 1, 400_000))
    assert found.effect_size == pytest.approx(d, abs=0.01)


@pytest.mark.parametrize("n", [10**5, 10**9])
def test_the_detectable_effect_of_huge_sets_is_that_of_normal_means(n):
    found = inference.minimum_detectable_effect(n, n)
    shift = (stats.norm.isf(0.05) + stats.norm.ppf(0.8)) * np.sqrt(2 / n)
    assert found.shift == pytest.approx(shift, rel=1e-4)


def test_the_attained_level_is_the_same_with_and_without_counting_partitions(monkeypatch):
    sizes = [(n, m) for n in range(2, 60) for m in (1, n, 2 * n)]
    found = [inference.power(0.5, *each) for each in sizes]
    monkeypatch.setattr(_power, "log_choices", lambda n, k: 0.0)
    assert [inference.power(0.5, *each) for each in sizes] == found


def test_a_test_that_can_never_be_significant_has_no_power():
    assert inference.power(10.0, 3, 3) == 0.0
    assert inference.minimum_detectable_effect(4, 4, alpha=0.01).shift == np.inf


def test_auto_is_bca_where_it_is_defined_and_else_percentiles():
    values = np.array([1.0, 2.0, 4.0, 8.0, 16.0])

    def spread(weights):
        mean = (values @ weights) / weights.sum(0)
        square = (values**2 @ weights) / weights.sum(0) - mean**2
        return np.where(square > 1e-9, square, np.nan)

    def alone(weights):
        return np.where(weights[0] > 0, values @ weights, np.nan)

    for statistic, method in ((spread, "bca"), (alone, "percentile")):
        found, named = (
            inference.bootstrap(statistic, [5], each, n_resamples=500, rng=1)
            for each in ("auto", method)
        )
        assert (found.low, found.high, found.method) == (named.low, named.high, method)
    table = inference.bootstrap(mean_and_first(values), [5], "auto", n_resamples=100, rng=1)
    assert table.method == "percentile"


@pytest.mark.parametrize("n", [5, 8])
def test_with_few_words_bca_intervals_of_effect_sizes_come_nearer_to_their_level(n):
    """In the same draws more of them hold the effect size, and not more than 95% and its noise."""
    rng, held = np.random.default_rng(21), {"percentile": 0, "auto": 0}
    for seed in range(200):
        scores = np.concatenate([rng.normal(0.4, 1, n), rng.normal(-0.4, 1, n)])[:, np.newaxis]
        for method in held:
            found = inference.bootstrap_effect_size(
                *(scores, 0 * scores, range(n), range(n), "a", "b"),
                **{"method": method, "n_resamples": 500, "rng": seed},
            )
            held[method] += found.low <= 0.8 / np.sqrt(1.16) <= found.high
    assert held["percentile"] < held["auto"] <= 200 * 0.95 + 2 * np.sqrt(200 * 0.95 * 0.05)
