"""The permutation test: against full lists, a convolution of whole numbers, ranks and draws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference
from biaslib.inference import _enumeration, _saddlepoint

ALTERNATIVES = ("greater", "less", "two-sided")


def scores_of(kind, n_x, n_y, shift, seed=0):
    """Return scores of X and Y, such as normal, skewed, heavy-tailed, tied, with outliers."""
    rng = np.random.default_rng(seed)
    draw = {
        "normal": rng.standard_normal,
        "uniform": rng.random,
        "skewed": lambda n: rng.lognormal(0.0, 1.2, n),
        "heavy": lambda n: rng.standard_t(2, n),
        "tied": lambda n: np.round(rng.standard_normal(n), 1),
        "half tied": lambda n: rng.standard_normal(n) * (rng.random(n) < 0.5),
        "outlier": rng.standard_normal,
        "exponential": rng.standard_exponential,
        "mixture": lambda n: np.where(rng.random(n) < 0.5, -1.0, 2.0) + rng.standard_normal(n),
        "clumps": lambda n: (rng.random(n) < 0.5) + 1e-2 * rng.standard_normal(n),
        "two values": lambda n: (rng.random(n) < 0.4).astype(float),
    }[kind]
    x, y = draw(n_x), draw(n_y)
    x = x * (1.0 + shift) if kind == "skewed" else x + shift * (kind not in ("clumps",))
    if kind == "two values":
        x = (rng.random(n_x) < 0.4 + 0.3 * shift).astype(float)
    if kind == "outlier":
        x[0], y[0] = 40.0, -15.0
    return x, y


KINDS = ["normal", "skewed", "heavy", "tied", "half tied", "outlier", "clumps", "two values"]
KINDS += ["uniform", "exponential", "mixture"]


def assert_right(found, exact, error=0.0301):
    """Assert that a result holds the exact answer in the sense of its method."""
    assert found.low <= found.p_value * (1 + 1e-12)
    assert found.p_value <= found.high * (1 + 1e-12)
    if found.method == "enumeration":
        assert found.p_value == pytest.approx(exact, rel=1e-9, abs=0)
        assert found.low == found.high == found.p_value
    elif found.method == "saddlepoint":
        tail = min(exact, 1.0 - exact)
        assert abs(found.p_value - exact) <= (error if tail > 1e-5 else 0.1) * tail
        assert found.low <= exact * (1 + 1e-12)
        assert exact <= found.high * (1 + 1e-12)
    else:
        count = round(found.p_value * 100_000) - 1
        ends = stats.binomtest(count, 99_999).proportion_ci(1 - 1e-6, method="exact")
        assert ends.low <= exact * (1 + 1e-9)
        assert exact <= ends.high * (1 + 1e-9)


def every_sum(pooled, size):
    """Return every choice and its sum, one by one."""
    chosen = np.array(list(itertools.combinations(range(len(pooled)), size)))
    return chosen, pooled[chosen].sum(axis=1)


SIZES = [(1, 1), (1, 7), (2, 3), (3, 3), (5, 2), (4, 4), (6, 3), (8, 8), (3, 30), (30, 3), (2, 200)]


@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
@pytest.mark.parametrize("kind", ["continuous", "eighths", "zeros and ones"])
def test_equals_full_enumeration_for_every_split(n_x, n_y, kind):
    rng = np.random.default_rng(n_x + 100 * n_y)
    n = n_x + n_y
    pooled = {
        "continuous": rng.standard_normal(n),
        "eighths": rng.integers(-9, 9, n) / 8,
        "zeros and ones": rng.integers(0, 2, n) * 1.0,
    }[kind]
    chosen, sums = every_sum(pooled, n_x)
    order, away = np.argsort(sums, kind="stable"), sums - n_x * pooled.mean()
    for row in order[np.unique(np.linspace(0, len(sums) - 1, 100).astype(int))]:
        x, y = pooled[chosen[row]], np.delete(pooled, chosen[row])
        counts = {
            "greater": (sums >= sums[row] - 1e-9).sum(),
            "less": (sums <= sums[row] + 1e-9).sum(),
            "two-sided": (np.abs(away) >= abs(away[row]) - 1e-9).sum(),
        }
        for alternative, count in counts.items():
            found = inference.permutation_test(x, y, alternative)
            assert found.p_value == found.low == found.high == count / len(sums)
            assert (found.method, found.n_partitions) == ("enumeration", len(sums))
            assert found.statistic == pytest.approx(x.mean() - y.mean())


@pytest.mark.parametrize("size", [1, 3, 6, 11])
def test_counting_by_halves_equals_a_list(size):
    scores = np.round(np.random.default_rng(size).standard_normal(12), 1)
    _, sums = every_sum(scores, size)
    for threshold in np.linspace(-5, 5, 21) + 0.05:
        count = _enumeration.count_by_halves(scores, size, threshold)
        assert count == (sums >= threshold).sum()
    assert _enumeration.count_by_halves(scores, size, 1e9) == 0


def convolved(pooled, size):
    """Return the distribution of sums of ``size`` whole numbers from 0, built up one by one."""
    shares = np.zeros((size + 1, int(np.sort(pooled)[-size:].sum()) + 1))
    shares[0, 0] = 1.0
    for place, value in enumerate(pooled, 1):
        # Chances that so many of the first ``place`` are taken, so that nothing overflows.
        taken = np.arange(1, size + 1)[:, None] / place
        grown = shares.copy() * (1 - np.arange(size + 1)[:, None] / place)
        moved = shares[:-1, : shares.shape[1] - value] * taken
        grown[1:, value:] += moved
        shares = grown
    return shares[size] / shares[size].sum()


def whole(scores, steps=400):
    low, high = scores.min(), scores.max()
    return np.rint((scores - low) / (high - low) * steps).astype(int)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_x", "n_y"), [(25, 25), (50, 8)])
def test_equals_a_convolution_of_whole_numbers(kind, n_x, n_y):
    for at, shift in enumerate((-0.4, 0.0, 0.5, 1.0)):
        x, y = scores_of(kind, n_x, n_y, shift, seed=at)
        pooled = whole(np.concatenate([x, y]))
        x, y = pooled[:n_x], pooled[n_x:]
        shares = convolved(pooled, n_x)
        tails = shares[::-1].cumsum()[::-1], shares.cumsum()
        away = np.abs(np.arange(len(shares)) - n_x * pooled.mean())
        observed = x.sum()
        exact = {
            "greater": tails[0][observed],
            "less": tails[1][observed],
            "two-sided": shares[away >= away[observed] - 1e-9].sum(),
        }
        for alternative, p_value in exact.items():
            assert_right(inference.permutation_test(x, y, alternative, rng=at), p_value)


@pytest.mark.parametrize("kind", ["normal", "uniform", "mixture", "exponential"])
@pytest.mark.parametrize(("n_x", "n_y"), [(17, 17), (20, 19), (12, 30)])
def test_equals_halves_beyond_what_is_counted(kind, n_x, n_y, monkeypatch):
    """Within 1.5% where it approximates, of every sum that the count by halves can still tell."""
    methods = []
    for seed, shift in enumerate((0.0, 0.4, 0.8, 1.2)):
        test = scores_of(kind, n_x, n_y, shift, seed)
        found = inference.permutation_test(*test, rng=0)
        with monkeypatch.context() as patched:
            patched.setattr(_enumeration, "MOST_SUMS", 2**30)
            exact = inference.permutation_test(*test)
        assert exact.method == "enumeration"
        assert_right(found, exact.p_value, 0.015)
        methods.append(found.method)
    assert "saddlepoint" in methods


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("two values", 9), ("tied", 7), ("clumps", 0), ("outlier", 0), ("skewed", 3), ("heavy", 11)],
)
def test_draws_where_the_saddlepoint_would_be_wrong_by_more_than_5_percent(kind, seed, monkeypatch):
    x, y = scores_of(kind, 18, 18, 0.3, seed)
    found = inference.permutation_test(x, y, rng=0)
    assert found.method == "sampled"
    monkeypatch.setattr(_enumeration, "MOST_SUMS", 2**30)
    exact = inference.permutation_test(x, y).p_value
    assert_right(found, exact)
    monkeypatch.setattr(_enumeration, "MOST_SUMS", 0)
    for name in ("FIRST_ORDER", "SECOND_ORDER", "ECHO", "FAR_ECHO"):
        monkeypatch.setattr(_saddlepoint, name, np.inf)
    wrong = inference.permutation_test(x, y)
    assert wrong.method == "saddlepoint"
    assert abs(wrong.p_value / exact - 1) > 0.05


@pytest.mark.parametrize(("n_x", "n_y"), [(25, 30), (50, 50), (80, 80)])
def test_equals_the_exact_distribution_of_ranks(n_x, n_y):
    rng = np.random.default_rng(n_x)
    for shift, alternative in itertools.product((0.0, 0.5), ALTERNATIVES):
        scores = rng.standard_normal(n_x + n_y)
        scores[:n_x] += shift
        x, y = np.split(stats.rankdata(scores), [n_x])
        expected = stats.mannwhitneyu(x, y, alternative=alternative, method="exact").pvalue
        assert_right(inference.permutation_test(x, y, alternative, rng=0), expected)


def test_few_partitions_near_the_rim_are_counted():
    pooled = np.sort(np.random.default_rng(6).standard_normal(50))[::-1]
    apart = inference.permutation_test(pooled[:25], pooled[25:])
    assert (apart.method, apart.p_value) == ("enumeration", 1 / math.comb(50, 25))
    # Swap the two in the middle: only the top choice is above.
    x, y = np.append(pooled[:24], pooled[25]), np.append(pooled[24], pooled[26:])
    found = inference.permutation_test(x, y)
    assert (found.method, found.p_value) == ("enumeration", 2 / math.comb(50, 25))


def test_the_other_tail_of_uneven_sets_need_not_hold_a_sum_like_the_observed_one():
    """Of 28 ones among 90, X of 10 gets k: as far from 28/9 as 0 is 7 and not 6."""
    found = inference.permutation_test([0] * 10, [1] * 28 + [0] * 52, "two-sided", rng=0)
    null = stats.hypergeom(90, 28, 10)
    assert_right(found, null.pmf(0) + null.sf(6))


def test_sets_of_thousands():
    x, y = scores_of("normal", 2_000, 3_000, 0.2, seed=9)
    found = inference.permutation_test(x, y)
    assert found.n_partitions == math.comb(5_000, 2_000)
    welch = stats.ttest_ind(x, y, alternative="greater").pvalue
    assert found.p_value == pytest.approx(welch, rel=0.05)
    # A p-value too small for a float is not zero.
    assert inference.permutation_test(x + 10, y).p_value == 5e-324


def test_the_saddlepoint_passes_smoothly_through_the_middle():
    pooled = np.random.default_rng(10).normal(size=60)
    pooled -= pooled.mean()
    sums = np.linspace(1e-9, 0.6, 31) * pooled.std() * math.sqrt(15)
    p = np.array([_saddlepoint.saddlepoint_tail(pooled, 30, each)[0] for each in sums])
    assert p[0] == pytest.approx(0.5, abs=0.01)
    assert (np.diff(p) < 0).all()
    assert np.abs(np.diff(p, 3)).max() < 1e-5


scores_lists = st.lists(st.integers(-40, 40), min_size=1, max_size=7)


@settings(max_examples=80, deadline=None)
@given(x=scores_lists, y=scores_lists)
def test_sides_add_up_to_one_and_the_ties(x, y):
    x, y = np.array(x) / 8, np.array(y) / 8
    greater, less, both = (
        inference.permutation_test(x, y, alternative).p_value for alternative in ALTERNATIVES
    )
    _, sums = every_sum(np.concatenate([x, y]), len(x))
    assert greater + less == pytest.approx(1 + (sums == x.sum()).mean())
    assert 0 < min(greater, less) <= both + 1e-12
    assert max(greater, less, both) <= 1
    assert inference.permutation_test(-x, -y, "less").p_value == greater


def test_many_tests_at_once_agree_with_one_after_the_other():
    rng = np.random.default_rng(13)
    x, y = rng.normal(0.3, 1, (131, 9)), rng.normal(size=(131, 6))
    one_by_one = [inference.permutation_test(a, b).p_value for a, b in zip(x, y, strict=True)]
    at_once = inference.permutation_p_values(x, y)
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)
    drawn = inference.permutation_p_values(x, y, n_resamples=4_000, rng=0)
    alone = inference.permutation_p_values(x[:1], y[:1], n_resamples=4_000, rng=0)
    assert drawn[0] == alone[0]
    np.testing.assert_allclose(drawn, at_once, atol=5 * np.sqrt(0.25 / 4_000))
    assert not np.array_equal(drawn, inference.permutation_p_values(x, y, 4_000, rng=1))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_draws_follow_may_et_al_and_are_repeatable(alternative):
    x, y = scores_of("tied", 30, 30, 0.3, seed=14)
    first, again, other = (
        inference.permutation_test(x, y, alternative, rng=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert first.method == "sampled"
    differences = inference.relabelled_differences(x, y, 99_999, rng=0)
    observed = x.mean() - y.mean()
    reached = {
        "greater": differences >= observed - 1e-9,
        "less": differences <= observed + 1e-9,
        "two-sided": np.abs(differences) >= abs(observed) - 1e-9,
    }[alternative].sum()
    assert first.p_value == (1 + reached) / 100_000
    ends = stats.binomtest(int(reached), 99_999).proportion_ci(method="exact")
    assert (first.low, first.high) == pytest.approx((ends.low, ends.high))


def test_relabellings_are_drawn_without_replacement():
    differences = inference.relabelled_differences(np.ones(3), np.zeros(50), 4_000, rng=0)
    # Of three ones among 53, k are dealt to X: the hypergeometric law.
    ones = np.rint((differences + 3 / 50) / (1 / 3 + 1 / 50)).astype(int)
    expected = stats.hypergeom(53, 3, 3).pmf(range(4))
    np.testing.assert_allclose(np.bincount(ones, minlength=4) / 4_000, expected, atol=0.03)


@pytest.mark.parametrize(("n_x", "n_y"), [(2, 3), (80, 60)])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_equal_scores_always_tie(n_x, n_y, alternative):
    found = inference.permutation_test(np.full(n_x, 0.1), np.full(n_y, 0.1), alternative)
    assert (found.p_value, found.method) == (1.0, "enumeration")
