"""Bootstrap intervals against SciPy's, power against simulation."""

import numpy as np
import pytest
from scipy import optimize, stats

from biaslib import inference
from biaslib.inference import _power


def weighted_mean_difference(x, y):
    def statistic(x_weights, y_weights):
        return (x @ x_weights) / x_weights.sum(0) - (y @ y_weights) / y_weights.sum(0)

    return statistic


def grid(n, scale=1.0):
    """Numbers that are no more skewed than their mirror image."""
    return scale * stats.norm.ppf((np.arange(n) + 0.5) / n)


def test_two_samples_agree_with_scipy():
    x, y = grid(14), grid(9, 3.0)
    ours = inference.bootstrap(weighted_mean_difference(x, y), [14, 9], n_resamples=200_000, rng=1)
    theirs = stats.ttest_ind(x, y, equal_var=False).confidence_interval()
    np.testing.assert_allclose([ours.low, ours.high], [theirs.low, theirs.high], atol=0.05)
    assert ours.values.shape == (400_000,)


def test_one_sample_has_students_interval_and_is_longer_where_it_is_skewed():
    x = np.array([0.0, 0.1, 0.2, 0.4, 0.9, 3.0])
    found = inference.bootstrap(lambda w: x @ w / 6, [6], n_resamples=200_000, rng=0)
    quantile, error = stats.t.ppf(0.975, 5), stats.sem(x)
    longer = (2 * quantile**2 + 1) / 6 * stats.skew(x) / np.sqrt(6) * error
    expected = [x.mean() - quantile * error, x.mean() + quantile * error + longer]
    np.testing.assert_allclose([found.low, found.high], expected, rtol=0.01)
    mirrored = inference.bootstrap(lambda w: -x @ w / 6, [6], n_resamples=200_000, rng=0)
    np.testing.assert_allclose([-mirrored.high, -mirrored.low], [found.low, found.high])


@pytest.mark.parametrize("hits", [0, 1, 5, 12])
def test_a_share_has_wilsons_interval_with_students_quantile(hits):
    n, x = 12, np.arange(12) < hits
    found = inference.bootstrap(lambda w: x @ w / n, [n], (0, 1), n_resamples=200_000, rng=0)
    quantile, size = stats.t.ppf(0.975, n - 1), n - 1 if 0 < hits < n else n
    ends = [each for each in (found.low, found.high) if 0 < each < 1]
    assert 0 <= found.low < found.high <= 1
    assert len(ends) == 1 + (size < n)
    for end in ends:
        distance = abs(hits / n - end) / np.sqrt(end * (1 - end) / size)
        assert distance == pytest.approx(quantile, rel=0.01)
    stretched = inference.bootstrap(
        lambda w: 100 * (x @ w) / n, [n], (0, 100), n_resamples=200_000, rng=0
    )
    assert (stretched.low, stretched.high) == pytest.approx((100 * found.low, 100 * found.high))


def test_a_correlation_of_many_has_the_interval_of_scipy():
    x, noise = np.random.default_rng(0).normal(size=(2, 400))
    y = x + 0.8 * noise

    def pearson(weights):
        n = weights.sum(0)
        x_mean, y_mean = (each @ weights / n for each in (x, y))
        both = (x * y) @ weights / n - x_mean * y_mean
        squares = [(v**2) @ weights / n - m**2 for v, m in ((x, x_mean), (y, y_mean))]
        return both / np.sqrt(squares[0] * squares[1])

    found = inference.bootstrap(pearson, [400], limit=1.0, n_resamples=4_000, rng=0)
    theirs = stats.pearsonr(x, y).confidence_interval()
    np.testing.assert_allclose([found.low, found.high], [theirs.low, theirs.high], atol=0.015)


@pytest.mark.parametrize("within", [None, (0.0, 1.0)])
def test_an_interval_holds_its_estimate_where_all_resamples_lie_beyond_it(within):
    """As near the end of a scale; here the share of units drawn more than once, of which 0 is."""

    def drawn_again(weights):
        return (weights > 1).mean(axis=0)

    found = inference.bootstrap(drawn_again, [40], within, n_resamples=400, rng=0)
    assert found.values.min() > found.estimate == 0 >= found.low
    assert found.high > 0
    assert within is None or found.low == 0


def test_a_single_unit_has_no_interval_and_a_sample_of_one_is_held():
    alone = inference.bootstrap(lambda w: 3.0 * w[0], [1], (0, 4), rng=0)
    assert alone.estimate == pytest.approx(3)
    assert np.isnan([alone.low, alone.high]).all()
    x = grid(7)
    both = inference.bootstrap(lambda w, v: x @ w / 7 - v[0], [7, 1], n_resamples=500, rng=0)
    held = inference.bootstrap(lambda w: x @ w / 7 - 1, [7], n_resamples=500, rng=0)
    assert (both.low, both.high) == pytest.approx((held.low, held.high))


def test_a_statistic_that_rests_on_few_of_the_units_has_their_degrees_of_freedom():
    x = grid(40)
    every, few = (
        inference.bootstrap(lambda w: x @ w / 40, [40], limit=9, freedom=f, rng=0)
        for f in (None, 2.0)
    )
    halves = [np.arctanh(each.high / 9) - np.arctanh(each.estimate / 9) for each in (every, few)]
    wanted = [stats.t.ppf(0.975, f) * np.sqrt((f + 1) / f) for f in (39, 2)]
    assert halves[1] / halves[0] == pytest.approx(wanted[1] / wanted[0])


@pytest.mark.parametrize(("n", "d"), [(4, 1.89), (8, 1.9), (8, 1.95), (12, 1.95)])
def test_an_interval_holds_an_effect_size_that_these_words_cannot_have(n, d):
    """Two normal populations: d = D / sqrt(1 + D^2 / 4), D in their standard deviations."""
    apart, rng, held = 2 * d / np.sqrt(4 - d**2), np.random.default_rng(n), 0
    for at in range(60):
        near = rng.normal(np.repeat([apart, 0.0], n))[:, None]
        units = [range(n), range(n), [0], [0]]
        found = inference.bootstrap_effect_size(near, 0 * near, *units, n_resamples=200, rng=at)
        assert found.low <= found.estimate <= found.high < 2
        held += found.low <= d <= found.high
    assert held >= stats.binom.ppf(1e-4, 60, 0.93)


def test_the_interval_of_many_words_is_that_of_the_noncentral_t_distribution():
    """Of the same differences of normal scores; the spread within sets is that of n - 2."""
    n, rng = 150, np.random.default_rng(3)
    x, y = rng.normal([[3.0], [0.0]], size=(2, n))
    near, units = np.concatenate([x, y])[:, None], [range(n), range(n), [0], [0]]
    found = inference.bootstrap_effect_size(near, 0 * near, *units, n_resamples=4_000, rng=0)
    t = stats.ttest_ind(x, y).statistic
    ends = [
        optimize.brentq(lambda away, p=p: stats.nct.cdf(t, 2 * n - 2, away) - p, 0, 2 * t)
        for p in (0.975, 0.025)
    ]
    apart = np.array(ends) * np.sqrt(2 / n)
    expected = apart / np.sqrt(1 + apart**2 / 4)
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.015)


def test_no_two_sets_are_further_apart_than_the_largest_effect_size():
    from biaslib.metrics.association import effect_size_of_scores

    for n_x, n_y, ddof in ((8, 8, 1), (2, 14, 1), (3, 5, 0)):
        apart = effect_size_of_scores(np.ones(n_x), np.zeros(n_y), ddof, require_equal=False)
        assert inference.largest_effect_size(n_x, n_y, ddof) == pytest.approx(apart)


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

        alone = inference.bootstrap(one, [6], n_resamples=700, rng=3, at_once=300)
        np.testing.assert_array_equal(table.values[:, column], alone.values)
        for name in ("estimate", "low", "high"):
            assert getattr(table, name)[column] == pytest.approx(getattr(alone, name))


def test_power_agrees_with_the_manual_of_r():
    """The examples of power.t.test, which leaves out the far tail of its two-sided tests."""
    assert inference.power(1.0, 20, 20, alpha=0.025) == pytest.approx(0.8689528, abs=5e-8)
    smaller, larger = (inference.power(1.0, n, n, alpha=0.025) for n in (22, 23))
    # It prints n = 22.02110 for a power of .90.
    assert smaller < 0.9 < larger
    assert (0.9 - smaller) / (larger - smaller) == pytest.approx(0.0211, abs=0.002)


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


def test_a_stratified_bootstrap_has_the_variance_of_a_stratified_mean():
    """Closed form: (n_h / n)^2 s_h^2 / n_h, added up; Student with n - H degrees of freedom."""
    rng, sizes = np.random.default_rng(0), [2, 3, 3, 9, 1]
    strata = np.repeat(["a", "b", "c", "d", "e"], sizes)
    values = rng.normal(size=len(strata)) + np.repeat([0, 5, -5, 9, 1], sizes)
    order = rng.permutation(len(strata))
    strata, values = strata[order], values[order]

    def mean(weights):
        return (values @ weights) / weights.sum(axis=0)

    found = inference.stratified_bootstrap(mean, strata, 20_000, rng=1)
    own = [values[strata == name] for name in "abcd"]
    error = np.sqrt(sum(len(v) * v.var(ddof=1) for v in own)) / len(values)
    assert found.estimate == pytest.approx(values.mean())
    assert found.values.std() == pytest.approx(error, rel=0.02)
    half = stats.t.ppf(0.975, 18 - 5) * error
    assert [found.low, found.high] == pytest.approx(
        [values.mean() - half, values.mean() + half], abs=0.02 * half
    )
    whole = inference.stratified_bootstrap(mean, np.arange(18), 10, rng=1)
    assert np.isnan([whole.low, whole.high]).all()


def test_a_stratified_bootstrap_shrinks_each_stratum_by_the_share_that_is_missing():
    """Closed form of a mean, sampling without replacement: (1 - f) s^2 / n of each stratum."""
    rng = np.random.default_rng(4)
    values, strata = rng.normal(size=18), np.array(list("aabbbbccccccdddddd"))
    shares = {"a": 0.0, "b": 0.35, "c": 0.95, "d": 1.0}
    f = np.array([shares[name] for name in strata])
    found = inference.stratified_bootstrap(
        lambda w: values @ w / 18, strata, 20_000, rng=1, share=f
    )
    own = {name: values[strata == name] for name in "abcd"}
    parts = [(1 - shares[name]) * len(v) * v.var(ddof=1) for name, v in own.items()]
    error = np.sqrt(sum(parts)) / 18
    assert found.values.std() == pytest.approx(error, rel=0.02)
    half = stats.t.ppf(0.975, 12 - 3) * error  # all of d is at hand
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.02)
    census = inference.stratified_bootstrap(lambda w: values @ w / 18, strata, 10, rng=1, share=1.0)
    assert {census.low, census.high} == {census.estimate}


def test_intervals_of_words_with_many_noisy_texts_hold_the_population_s_effect_size():
    """The population's d by its formula: means 12 apart, variances 1 of words and 9 of texts."""
    rng, words, texts, held = np.random.default_rng(0), np.repeat(np.arange(8), 50), 400, 0
    truth = 12.0 / np.sqrt(6.0**2 + 1.0 + 3.0**2)
    for _ in range(150):
        x, y = (
            shift + rng.normal(size=8)[words] + rng.normal(scale=3.0, size=texts)
            for shift in (6.0, -6.0)
        )
        found = inference.bootstrap_effect_size(
            np.concatenate([x, y])[:, None],
            np.zeros((2 * texts, 1)),
            [f"x{word}" for word in words],
            [f"y{word}" for word in words],
            ["a"],
            ["b"],
            n_resamples=300,
            rng=rng,
        )
        held += found.low <= truth <= found.high
    assert held / 150 > 0.9
