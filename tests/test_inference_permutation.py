"""The permutation test, verified four ways.

Against full enumeration, against the exact distribution of ranks, against long sampled runs, and
method against method.
"""

import functools
import itertools
import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from biaslib import inference
from biaslib.inference import _enumeration, _lattice, _permutation, _saddlepoint, _tail
from biaslib.inference._clumps import clumps_tail, shares_of_sums

ACCURACY = 0.01


def seconds_of(call):
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


PHASES = 1j * np.arange(100_000) / 1_000
# What np.exp takes for them on the idle machine on which the limits below were set.
IDLE_SECONDS = 0.0017


def yardstick():
    """Return how many times slower than idle the machine is at this moment, at least 1."""
    return max(1.0, seconds_of(lambda: np.exp(PHASES))[0] / IDLE_SECONDS)


def idle_seconds_of(call, repeats=1):
    """Return how long a call takes, as if the machine were idle, and what it returned.

    The fastest of the calls, divided by the slowness of the fastest yardstick; for one call, which
    cannot be fast by chance, by the average slowness around it.
    """
    if repeats == 1:
        before = [yardstick() for _ in range(10)]
        seconds, result = seconds_of(call)
        return seconds / np.mean(before + [yardstick() for _ in range(10)]), result
    turns = [(yardstick(), *seconds_of(call)) for _ in range(repeats)]
    return min(turn[1] for turn in turns) / min(turn[0] for turn in turns), turns[-1][2]


def scores_of(kind, n_x, n_y, shift, seed=0):
    """Return scores of X and Y, such as normal, skewed, heavy-tailed, tied, with outliers."""
    rng = np.random.default_rng(seed)
    draw = {
        "normal": rng.standard_normal,
        "skewed": lambda n: rng.lognormal(0.0, 1.2, n),
        "heavy": lambda n: rng.standard_t(2, n),
        "cauchy": rng.standard_cauchy,
        "tied": lambda n: np.round(rng.standard_normal(n), 1),
        "half tied": lambda n: rng.standard_normal(n) * (rng.random(n) < 0.5),
        "outlier": rng.standard_normal,
        "exponential": rng.standard_exponential,
        "mixture": lambda n: np.where(rng.random(n) < 0.5, -1.0, 2.0) + rng.standard_normal(n),
        "clumps": lambda n: (rng.random(n) < 0.5) + 1e-3 * rng.standard_normal(n),
    }[kind]
    x, y = draw(n_x), draw(n_y)
    x = x * (1.0 + shift) if kind == "skewed" else x + (0 if kind == "clumps" else shift)
    if kind == "outlier":
        x[0], y[0] = 40.0, -15.0
    return x, y


KINDS = ["normal", "skewed", "heavy", "cauchy", "tied", "half tied", "outlier", "clumps"]


def every_sum(pooled, size):
    """Return the sum of every choice, one by one."""
    chosen = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations(range(len(pooled)), size)), int
    ).reshape(-1, size)
    return chosen, pooled[chosen].sum(axis=1)


def rows_to_try(n_rows, most):
    """Return every row if there are few; else the ends and some between."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int))


SIZES = [(1, 1), (1, 7), (2, 3), (3, 3), (5, 2), (4, 4), (6, 3), (5, 5), (6, 6)]
LARGE_SIZES = [(8, 8), (3, 30), (30, 3), (2, 200), (9, 9), (20, 5), (10, 10)]


@pytest.mark.parametrize(("n_x", "n_y"), SIZES + LARGE_SIZES)
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
    total, expected_sum = len(sums), n_x * pooled.mean()
    order = np.argsort(sums, kind="stable")
    tried = order[rows_to_try(total, 924 if (n_x, n_y) in SIZES else 15)]
    between = min(7, len(tried) // 2)
    for number, row in enumerate(tried):
        x, y = pooled[chosen[row]], np.delete(pooled, chosen[row])
        counts = {
            "greater": (sums >= sums[row] - 1e-9).sum(),
            "less": (sums <= sums[row] + 1e-9).sum(),
            "two-sided": (
                np.abs(sums - expected_sum) >= abs(sums[row] - expected_sum) - 1e-9
            ).sum(),
        }
        for alternative, count in counts.items():
            result = inference.permutation_test(x, y, alternative=alternative)
            assert result.p_value == count / total
            assert (result.method, result.interval) == ("enumeration", "exact")
            assert result.n_partitions == result.n_evaluated == total
        if number % 60 == 0:
            other = inference.permutation_test(x, y, method="tail")
            assert other.p_value == pytest.approx(counts["greater"] / total, rel=1e-12)
        # The ends, where sets do not overlap, take a lattice seconds: they have a test below.
        if number % 60 != between:
            continue
        lattice = inference.permutation_test(x, y, method="lattice")
        slack = 1 + 1e-9
        assert lattice.low / slack <= counts["greater"] / total <= lattice.high * slack
        if kind != "continuous":
            assert lattice.interval == "exact"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accuracy", [0.001, 0.003, 0.05, 0.3])
def test_whatever_the_accuracy_the_interval_holds_the_exact_answer(kind, accuracy):
    """Beyond 18 and 18 targets nothing is enumerated unless it is asked for."""
    for shift in (0.0, 0.4, 1.0):
        x, y = scores_of(kind, 20, 21, shift, seed=5)
        exact = inference.permutation_test(x, y, method="enumeration").p_value
        found = inference.permutation_test(x, y, accuracy=accuracy)
        assert found.low * (1 - 1e-9) <= exact <= found.high * (1 + 1e-9)
        assert found.low <= found.p_value <= found.high
        assert found.p_value == pytest.approx(exact, rel=max(accuracy, 0.01))
        if found.interval == "error estimate":
            assert found.high - found.low <= 2.01 * max(accuracy, 0.003) * found.p_value


@given(st.integers(0, 2**32 - 1), st.integers(19, 21), st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=25, deadline=None)
def test_less_accuracy_still_holds_the_exact_answer(seed, n, accuracy):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=n) + rng.uniform(0, 2), rng.normal(size=n) * rng.lognormal()
    exact = inference.permutation_test(x, y, method="enumeration").p_value
    found = inference.permutation_test(x, y, accuracy=accuracy)
    assert found.low * (1 - 1e-9) <= exact <= found.high * (1 + 1e-9)


def test_less_accuracy_takes_the_integral_where_more_needs_a_lattice():
    """Eight words a side with three texts each, which lie so near each other that they clump."""
    rng = np.random.default_rng(3)
    words = 0.5 * rng.normal(size=16)
    x, y = (np.repeat(each, 3) + 0.02 * rng.normal(size=24) for each in (words[:8], words[8:]))
    narrow, wide = (inference.permutation_test(x + 1.5, y, accuracy=a) for a in (0.003, 0.05))
    assert (narrow.method, wide.method) == ("lattice", "inversion")
    assert narrow.high - narrow.low <= 0.0101 * narrow.p_value
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert wide.high - wide.low <= 0.1 * wide.p_value
    coarse = inference.permutation_test(x + 1.5, y, method="lattice", accuracy=0.2)
    assert coarse.low <= narrow.p_value <= coarse.high
    assert 0.01 < (coarse.high - coarse.low) / coarse.p_value <= 0.26


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_x", "n_y"), [(20, 20), (13, 27)])
def test_equals_halves_beyond_full_lists(kind, n_x, n_y):
    """The count by halves is exact; bounds must hold it, and what auto says must be within 1%."""
    for shift in (0.0, 0.6, 1.2):
        x, y = scores_of(kind, n_x, n_y, shift, seed=3)
        exact = inference.permutation_test(x, y, method="enumeration").p_value
        chosen = inference.permutation_test(x, y)
        assert chosen.p_value == pytest.approx(exact, rel=ACCURACY)
        assert chosen.low * (1 - 1e-9) <= exact <= chosen.high * (1 + 1e-9)
        if kind == "clumps" and shift:
            continue  # The finest of lattices: some seconds each.
        lattice = inference.permutation_test(x, y, method="lattice")
        assert lattice.interval != "error estimate"
        assert lattice.low * (1 - 1e-9) <= exact <= lattice.high * (1 + 1e-9)
        assert lattice.p_value == pytest.approx(exact, rel=ACCURACY)


@pytest.mark.parametrize(("n_x", "n_y"), [(25, 30), (50, 50), (70, 20), (80, 80)])
def test_equals_the_exact_distribution_of_ranks(n_x, n_y):
    seen = []
    for seed, shift in enumerate((0.0, 0.5, 1.0, 2.0, 2.5)):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal(n_x + n_y)
        scores[:n_x] += shift
        ranks = stats.rankdata(scores)
        for alternative in ("greater", "less", "two-sided"):
            result = inference.permutation_test(ranks[:n_x], ranks[n_x:], alternative=alternative)
            expected = stats.mannwhitneyu(
                ranks[:n_x], ranks[n_x:], alternative=alternative, method="exact"
            ).pvalue
            assert result.interval == "exact"
            assert result.p_value == pytest.approx(expected, rel=1e-9, abs=0)
            seen.append(result.p_value)
    assert min(seen) < (1e-30 if n_x == 80 else 1e-10)


@pytest.mark.parametrize(("n_x", "n_y"), [(40, 40), (30, 55)])
def test_whole_numbers_with_ties_equal_a_convolution_of_integers(n_x, n_y):
    """Counts in Python's integers, nothing rounded, however far out."""
    pooled = np.random.default_rng(n_x).poisson(6, n_x + n_y)
    ways = [{0: 1}] + [{} for _ in range(n_x)]
    for score in pooled.tolist():
        for size in range(n_x, 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + score] = ways[size].get(total + score, 0) + count
    pooled.sort()
    for start in (0, 5, 12, 25):
        x = pooled[::-1][start : start + n_x]
        y = np.concatenate([pooled[::-1][:start], pooled[::-1][start + n_x :]])
        count = sum(count for total, count in ways[n_x].items() if total >= x.sum())
        result = inference.permutation_test(x, y)
        assert result.interval == "exact"
        assert result.p_value == pytest.approx(count / math.comb(n_x + n_y, n_x), rel=1e-9, abs=0)


def test_ranks_in_any_unit_are_a_lattice():
    rng = np.random.default_rng(0)
    ranks = rng.permutation(100) + 1.0
    plain = inference.permutation_test(ranks[:50], ranks[50:])
    scaled = inference.permutation_test(ranks[:50] / 7 - 0.3, ranks[50:] / 7 - 0.3)
    assert (plain.interval, scaled.interval) == ("exact", "exact")
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "n_x", "n_y", "alternative"),
    [
        ("normal", 25, 25, "greater"),
        ("skewed", 30, 50, "greater"),
        ("heavy", 40, 25, "less"),
        ("tied", 40, 40, "two-sided"),
        ("outlier", 25, 40, "two-sided"),
        ("clumps", 40, 30, "greater"),
    ],
)
def test_agrees_with_long_sampled_runs(kind, n_x, n_y, alternative):
    x, y = scores_of(kind, n_x, n_y, 0.2, seed=1)
    result = inference.permutation_test(x, y, alternative=alternative)
    sampled = inference.permutation_test(
        x, y, method="sampled", alternative=alternative, n_resamples=150_000, rng=0
    )
    hits = round(sampled.p_value * 150_000) - 1
    interval = stats.binomtest(hits, 149_999).proportion_ci(0.9999, method="exact")
    assert interval.low <= result.p_value <= interval.high


def finer_lattice(x, y):
    """Return the answer of a lattice four times finer than the default, without short cuts."""
    pooled = np.concatenate([x, y])
    centred = pooled - pooled.mean()
    observed, tolerance = centred[: len(x)].sum(), 5e-10 * np.abs(centred).sum()
    step = _lattice.common_step(centred, tolerance)
    finer = {"width": 0.002} if step is None else {"step": step / 4}
    if observed > tolerance:
        return _lattice.lattice_tail(centred, len(x), observed - tolerance, **finer).p_value
    return 1 - _lattice.lattice_tail(-centred, len(x), tolerance - observed, **finer).p_value


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize(("n", "shifts"), [(25, (0.0, 0.7)), (80, (0.1, 0.8)), (400, (0.3,))])
def test_methods_agree_also_on_a_four_times_finer_lattice(kind, n, shifts):
    for shift in shifts:
        x, y = scores_of(kind, n, n, shift, seed=2)
        seconds, result = idle_seconds_of(lambda x=x, y=y: inference.permutation_test(x, y))
        assert seconds < 5.0
        assert result.p_value == pytest.approx(finer_lattice(x, y), rel=ACCURACY)
        assert result.high - result.low <= 0.02 * result.p_value
        if result.interval == "error estimate":
            integral = inference.permutation_test(x, y, method="inversion")
            assert integral.p_value == pytest.approx(result.p_value, rel=0.005)


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimated_error_of_the_integral_is_not_exceeded(kind):
    for seed, shift in itertools.product(range(3), (0.1, 0.5)):
        x, y = scores_of(kind, 17, 18, shift, seed)
        exact = inference.permutation_test(x, y)
        if exact.p_value * exact.n_partitions > 10_000:
            result = inference.permutation_test(x, y, method="inversion")
            slack = 2e-5 * exact.p_value
            assert result.low - slack <= exact.p_value <= result.high + slack


def test_auto_notices_where_the_saddlepoint_fails():
    failures = 0
    for kind, shift in itertools.product(("outlier", "cauchy", "skewed", "tied"), (0.0, 0.5)):
        x, y = scores_of(kind, 25, 25, shift, seed=4)
        truth = inference.permutation_test(x, y, method="lattice")
        saddlepoint = inference.permutation_test(x, y, method="saddlepoint")
        result = inference.permutation_test(x, y)
        assert result.p_value == pytest.approx(truth.p_value, rel=ACCURACY)
        if abs(saddlepoint.p_value / truth.p_value - 1) > ACCURACY:
            failures += 1
            assert result.method != "saddlepoint"
            # Asked for by name it says so itself.
            assert saddlepoint.high / saddlepoint.low > 1 + ACCURACY / 2
    assert failures >= 4


def test_scores_in_clumps_take_the_lattice_and_keep_their_bounds():
    x, y = scores_of("clumps", 80, 80, 0.0, seed=5)
    seconds, result = idle_seconds_of(lambda: inference.permutation_test(x, y))
    assert seconds < 5.0
    assert (result.method, result.interval) == ("lattice", "proven bound")
    assert result.low < result.p_value < result.high < 1.04 * result.low


def test_few_partitions_in_the_tail_are_listed():
    pooled = np.sort(np.random.default_rng(6).standard_normal(50))[::-1]
    # Swap the two in the middle: only the top choice is above.
    x = np.append(pooled[:24], pooled[25])
    y = np.append(pooled[24], pooled[26:])
    result = inference.permutation_test(x, y)
    assert (result.method, result.interval, result.n_evaluated) == ("tail", "exact", 2)
    assert result.p_value == 2 / math.comb(50, 25)
    assert result.n_partitions == math.comb(50, 25)
    # At p = 1e-12 about 126 partitions, where the saddlepoint is off by more than 1%.
    x = np.append(pooled[:23], pooled[[25, 28]])
    y = np.append(pooled[[23, 24, 26, 27]], pooled[29:])
    result = inference.permutation_test(x, y)
    assert result.p_value == pytest.approx(finer_lattice(x, y), rel=ACCURACY)
    assert result.n_evaluated == round(result.p_value * result.n_partitions) < 10_000


@pytest.mark.parametrize("size", [1, 3, 6, 11])
def test_listing_equals_counting_by_halves(size):
    scores = np.round(np.random.default_rng(size).standard_normal(12), 1)
    for threshold in np.linspace(-5, 5, 21) + 0.05:
        _, sums = every_sum(scores, size)
        count = (sums >= threshold).sum()
        assert _tail.count_listed(scores, size, threshold, 10_000) == count
        assert _enumeration.count_by_halves(scores, size, threshold, 1e9) == [count, 0]
    assert _tail.count_listed(scores, 6, -100.0, 100) is None


@pytest.mark.parametrize("n", [25, 80, 400])
@pytest.mark.parametrize("kind", ["normal", "skewed", "heavy", "exponential", "mixture"])
def test_takes_a_fraction_of_ten_thousand_relabellings_where_the_saddlepoint_applies(kind, n):
    x, y = scores_of(kind, n, n, 0.4, seed=8)
    seconds, result = idle_seconds_of(lambda: inference.permutation_test(x, y), repeats=60)
    drawn = functools.partial(stats.permutation_test, (x, y), mean_difference, vectorized=True)
    theirs, _ = idle_seconds_of(lambda: drawn(n_resamples=9_999), repeats=1)
    # Where the integral corrects the saddlepoint it takes no longer.
    assert result.method in ({"saddlepoint"} if kind == "normal" else {"saddlepoint", "inversion"})
    assert 5 * seconds < theirs


def mean_difference(x, y, axis):
    return x.mean(axis) - y.mean(axis)


def test_bounds_stay_close_where_the_finest_lattice_cannot_be_afforded():
    x, y = scores_of("normal", 60, 60, 3.0, seed=1)
    exact = inference.permutation_test(x, y, method="tail")
    assert exact.interval == "exact"
    assert exact.p_value < 1e-26
    seconds, lattice = idle_seconds_of(lambda: inference.permutation_test(x, y, method="lattice"))
    assert seconds < 5.0
    assert lattice.low <= exact.p_value <= lattice.high < 1.1 * lattice.low


def test_sets_of_thousands():
    x, y = scores_of("normal", 2_000, 3_000, 0.2, seed=9)
    result = inference.permutation_test(x, y)
    assert result.n_partitions == math.comb(5_000, 2_000)
    welch = stats.ttest_ind(x, y, alternative="greater").pvalue
    assert result.p_value == pytest.approx(welch, rel=0.05)
    # A p-value too small for a float is not zero.
    assert inference.permutation_test(x + 10, y).p_value == 5e-324


def test_saddlepoint_passes_smoothly_through_the_middle():
    rng = np.random.default_rng(10)
    pooled = rng.exponential(size=60)
    pooled -= pooled.mean()
    shifts = np.linspace(-0.3, 0.3, 41) * pooled.std() * math.sqrt(15)
    p = [
        np.exp(
            _saddlepoint.saddlepoint_log_tail(pooled, 30, s, _saddlepoint.solve_tilt(pooled, 30, s))
        )
        for s in shifts
    ]
    assert (np.diff(p) < 0).all()
    assert np.abs(np.diff(p, 2)).max() < 2e-4


def test_normal_approximation_has_the_finite_population_variance():
    x, y = scores_of("normal", 40, 60, 0.2, seed=11)
    pooled = np.concatenate([x, y])
    difference = x.mean() - y.mean()
    deviation = pooled.std(ddof=1) * math.sqrt(1 / 40 + 1 / 60)
    result = inference.permutation_test(x, y, method="normal")
    assert result.p_value == pytest.approx(special.ndtr(-difference / deviation), rel=1e-9)
    assert result.statistic == pytest.approx(difference)
    assert result.low <= inference.permutation_test(x, y).p_value * 1.01
    assert (result.method, result.interval) == ("normal", "error estimate")


@pytest.mark.parametrize("kind", ["normal", "outlier"])
@pytest.mark.parametrize("method", ["auto", "lattice", "inversion", "saddlepoint"])
def test_sides_belong_together_in_large_sets(kind, method):
    x, y = scores_of(kind, 40, 25, 0.3, seed=12)
    greater, less, both = (
        inference.permutation_test(x, y, method=method, alternative=each)
        for each in ("greater", "less", "two-sided")
    )
    # The observed partition itself is all that ties.
    assert greater.p_value + less.p_value == pytest.approx(1 + 1 / greater.n_partitions, rel=5e-3)
    swapped = inference.permutation_test(y, x, method=method, alternative="less")
    assert swapped.p_value == pytest.approx(greater.p_value, rel=1e-6)
    assert both.p_value >= min(greater.p_value, less.p_value) * (1 - 1e-9)


scores_lists = st.lists(st.integers(-40, 40), min_size=1, max_size=7)


@settings(max_examples=80, deadline=None)
@given(x=scores_lists, y=scores_lists)
def test_sides_add_up_to_one_and_the_ties(x, y):
    x, y = np.array(x) / 8, np.array(y) / 8
    greater, less, both = (
        inference.permutation_test(x, y, alternative=each).p_value
        for each in ("greater", "less", "two-sided")
    )
    _, sums = every_sum(np.concatenate([x, y]), len(x))
    ties = (sums == x.sum()).mean()
    assert greater + less == pytest.approx(1 + ties)
    assert 0 < min(greater, less, both) <= max(greater, less, both) <= 1
    assert both >= min(greater, less) - 1e-12
    mirrored = inference.permutation_test(-x, -y, alternative="less").p_value
    assert mirrored == greater


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_x=st.integers(1, 60),
    n_y=st.integers(1, 60),
    kind=st.sampled_from(["normal", "heavy", "tied", "outlier"]),
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
)
def test_neither_shift_nor_scale_matters(seed, n_x, n_y, kind, shift, scale):
    x, y = scores_of(kind, n_x, n_y, 0.5, seed)
    result = inference.permutation_test(x, y)
    moved = inference.permutation_test(x * scale + shift, y * scale + shift)
    assert 0 < result.low <= result.p_value <= result.high <= 1
    # A tie may be lost where the shift swallows digits: never more than the accuracy.
    assert moved.p_value == pytest.approx(result.p_value, rel=ACCURACY)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_x=st.integers(2, 50),
    n_y=st.integers(2, 50),
    kind=st.sampled_from(["normal", "skewed", "tied"]),
)
def test_p_falls_as_the_statistic_rises(seed, n_x, n_y, kind):
    """Exchanging the least of X for the greatest of Y leaves the pool and raises the statistic."""
    x, y = scores_of(kind, n_x, n_y, 0.0, seed)
    assume(y.max() > x.min() + 1e-6)
    before = inference.permutation_test(x, y)
    x[x.argmin()], y[y.argmax()] = y.max(), x.min()
    after = inference.permutation_test(x, y)
    assert after.statistic > before.statistic
    assert after.p_value <= before.p_value * (1 + ACCURACY)


@pytest.mark.parametrize("method", [each for each in _permutation.METHODS if each != "tail"])
def test_many_tests_at_once_agree_with_one_after_the_other(method):
    rng = np.random.default_rng(13)
    x, y = rng.normal(0.3, 1, (3, 9)), rng.normal(size=(3, 6))
    at_once = inference.permutation_p_values(x, y, method=method, n_resamples=6_000, rng=0)
    one_by_one = [
        inference.permutation_test(a, b, method=method, n_resamples=6_000, rng=0).p_value
        for a, b in zip(x, y, strict=True)
    ]
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)


@pytest.mark.parametrize("alternative", _permutation.ALTERNATIVES)
@pytest.mark.parametrize("method", ["enumeration", "sampled"])
def test_more_tests_than_are_summed_together(method, alternative):
    rng = np.random.default_rng(14)
    n = 2 * _permutation.TESTS_AT_ONCE + 3
    x, y = rng.normal(0.2, 1, (n, 5)), rng.normal(size=(n, 4))
    options = {"method": method, "alternative": alternative, "n_resamples": 500}
    at_once = inference.permutation_p_values(x, y, rng=0, **options)
    one_by_one = [
        inference.permutation_p_values(a[None], b[None], rng=0, **options)[0]
        for a, b in zip(x, y, strict=True)
    ]
    assert at_once.tolist() == one_by_one


def test_sampling_is_repeatable_and_without_replacement():
    x, y = scores_of("normal", 7, 30, 0.4, seed=14)
    first, again, other = (
        inference.permutation_test(x, y, method="sampled", n_resamples=2_000, rng=seed)
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert (first.interval, first.n_evaluated) == ("95% confidence", 2_000)
    differences = inference.relabelled_differences(np.ones(3), np.zeros(5), 4_000, rng=0)
    # Of three ones among eight, k are dealt to X: the hypergeometric law.
    ones = np.rint((differences + 3 / 5) / (1 / 3 + 1 / 5)).astype(int)
    expected = stats.hypergeom(8, 3, 3).pmf(range(4))
    np.testing.assert_allclose(np.bincount(ones, minlength=4) / 4_000, expected, atol=0.03)


def test_equal_scores_always_tie():
    for n_x, n_y in ((2, 3), (80, 60)):
        assert inference.permutation_test(np.full(n_x, 0.1), np.full(n_y, 0.1)).p_value == 1.0


def test_clusters_move_together():
    rng = np.random.default_rng(15)
    x_words, y_words = rng.normal(1.0, 1, 9), rng.normal(size=7)
    plain = inference.permutation_test(x_words, y_words)
    noise = np.array([-0.2, 0.0, 0.2])
    x = (x_words[:, None] + noise).ravel()
    y = (y_words[:, None] - noise).ravel()
    clustered = inference.permutation_test(
        x, y, clusters_x=np.repeat(range(9), 3), clusters_y=np.repeat(range(20, 27), 3)
    )
    assert clustered.p_value == plain.p_value
    assert clustered.n_partitions == math.comb(16, 9)
    assert clustered.statistic == pytest.approx(x.mean() - y.mean())
    # Sentences dealt one by one would pass for more evidence than there is.
    assert inference.permutation_test(x, y).p_value < plain.p_value


def test_clusters_of_unequal_size_weigh_the_same():
    result = inference.permutation_test(
        [1.0, 2.0, 6.0], [0.0, 1.0], clusters_x=["a", "a", "b"], clusters_y=["c", "d"]
    )
    assert result.statistic == pytest.approx((1.5 + 6.0) / 2 - 0.5)
    assert result.n_partitions == 6


def test_clusters_keep_the_level_where_items_do_not():
    """Under the null of words, tests of their sentences reject far too often."""
    rng = np.random.default_rng(16)
    words = np.repeat(range(6), 5)
    rejected = {"items": 0, "clusters": 0}
    for _ in range(300):
        x, y = (rng.standard_normal(6)[words] + 0.6 * rng.standard_normal(30) for _ in range(2))
        labels = {"clusters_x": words, "clusters_y": words + 6}
        rejected["items"] += inference.permutation_test(x, y).p_value < 0.05
        rejected["clusters"] += inference.permutation_test(x, y, **labels).p_value < 0.05
    assert rejected["clusters"] / 300 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    assert rejected["items"] / 300 > 0.12


BAD = [
    ((np.arange(40.0), np.arange(40.0)), {"method": "enumeration"}, "use method='auto'"),
    ((np.arange(40.0), np.arange(40.0)), {"method": "tail"}, "'auto' chooses"),
]


@pytest.mark.parametrize(("scores", "options", "message"), BAD)
def test_bad_input_says_what_to_do(scores, options, message):
    with pytest.raises(ValueError, match=message):
        inference.permutation_test(*scores, **options)


def test_sets_that_do_not_overlap_at_all():
    """One partition of 12,870 is as extreme; approximations must not leave the interval to 1."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=8) + 3, rng.normal(size=8) - 3
    least = 1 / 12_870
    assert inference.permutation_test(x, y).p_value == pytest.approx(least)
    with pytest.raises(ValueError, match="'saddlepoint' has no answer"):
        inference.permutation_test(x, y, method="saddlepoint")
    normal = inference.permutation_test(x, y, method="normal")
    assert normal.low <= normal.p_value <= normal.high < 1e-3
    lattice = inference.permutation_test(x, y, method="lattice")
    assert lattice.low <= least * (1 + 1e-9) <= lattice.high
    assert lattice.p_value >= least * (1 - 1e-9)


# Few different values

NO_LATTICE = np.array([0.0, math.pi, 1.3 * math.e, math.sqrt(61)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_few_values_are_counted_by_how_many_of_each_are_chosen(seed, alternative, monkeypatch):
    rng = np.random.default_rng(seed)
    x, y = rng.choice(NO_LATTICE, 9, p=[0.2, 0.2, 0.2, 0.4]), rng.choice(NO_LATTICE, 11)
    counted = inference.permutation_test(x, y, "enumeration", alternative)
    monkeypatch.setattr(_permutation, "EASY_HALF_SUMS", 0)
    found = inference.permutation_test(x, y, alternative=alternative)
    assert (found.method, found.interval) == ("enumeration", "exact")
    assert found.p_value == pytest.approx(counted.p_value, rel=1e-11)


def test_few_values_of_many_targets_are_the_multivariate_hypergeometric():
    rng = np.random.default_rng(3)
    x, y = rng.choice(NO_LATTICE, 30, p=[0.15, 0.2, 0.25, 0.4]), rng.choice(NO_LATTICE, 300)
    pooled = np.concatenate([x, y])
    numbers = [int((pooled == value).sum()) for value in NO_LATTICE]
    null = stats.multivariate_hypergeom(numbers, 30)
    choices = [
        (*first, 30 - sum(first))
        for first in itertools.product(range(31), repeat=3)
        if sum(first) <= 30
    ]
    sums = np.array(choices) @ NO_LATTICE
    true = null.pmf(choices)[sums >= x.sum() - 1e-9].sum()
    found = inference.permutation_test(x, y)
    assert (found.method, found.interval) == ("enumeration", "exact")
    assert found.p_value == pytest.approx(true, rel=1e-9)


def test_the_other_tail_of_uneven_sets_ends_between_two_places_of_the_lattice():
    """Of 28 ones among 90, X of 10 gets k: as far from 28/9 as 0 is 7 and not 6."""
    found = inference.permutation_test([0] * 10, [1] * 28 + [0] * 52, alternative="two-sided")
    null = stats.hypergeom(90, 28, 10)
    assert found.p_value == pytest.approx(null.pmf(0) + null.sf(6), rel=1e-9)
    assert found.interval == "exact"


@pytest.mark.parametrize("seed", range(12))
def test_both_tails_of_uneven_sets_on_a_lattice_are_those_that_enumeration_counts(seed):
    rng = np.random.default_rng(seed)
    n_x, n_y = rng.integers(2, 8), rng.integers(8, 16)
    x, y = rng.integers(0, 3, n_x) + (seed % 3 == 0), rng.integers(0, 3, n_y)
    for one, other in ((x, y), (y, x), (0.1 * x, 0.1 * y)):
        counted, found = (
            inference.permutation_test(one, other, method, "two-sided")
            for method in ("enumeration", "lattice")
        )
        assert found.p_value == pytest.approx(counted.p_value, rel=1e-9)


def test_results_of_many_scores_are_shown_and_drawn_in_little_memory():
    scores = np.arange(60_000.0)
    tracemalloc.start()
    try:
        found = inference.permutation_test(scores, scores, "sampled", n_resamples=400, rng=0)
        assert tracemalloc.get_traced_memory()[1] < 2**30
    finally:
        tracemalloc.stop()
    assert len(repr(found)) < 300


def test_levels_that_the_bounds_do_not_decide_are_named():
    def undecided(low, high):
        result = inference.PermutationResult(low, low, high, "lattice", 10, None, 0.0, "")
        return result.undecided

    assert undecided(0.04, 0.06) == (0.05,)
    assert undecided(0.0005, 0.02) == (0.01, 0.001)
    assert undecided(0.02, 0.04) == ()
    assert undecided(0.05, 0.05) == ()
    assert undecided(0.05, 0.06) == ()  # not below, whichever
    assert undecided(0.04, 0.05) == (0.05,)


# Scores in two clumps


def near_binary(n_x, n_y, jitter, seed):
    """Return scores near 0 and 1, of which one lattice for all would have to be too fine."""
    rng = np.random.default_rng(seed)
    return [
        (rng.random(n) < share) + jitter * rng.standard_normal(n)
        for n, share in ((n_x, 0.5), (n_y, 0.3))
    ]


def assert_clumps_enclose_what_is_counted(tests, alternative, monkeypatch):
    counted = [inference.permutation_test(*each, "enumeration", alternative) for each in tests]
    monkeypatch.setattr(_permutation, "EASY_HALF_SUMS", 0)
    monkeypatch.setitem(_permutation._AUTOMATIC, "auto", _permutation._of_clumps)
    for test, exact in zip(tests, counted, strict=True):
        found = inference.permutation_test(*test, alternative=alternative)
        assert found.interval == "proven bound"
        assert found.low <= exact.p_value * (1 + 1e-8)
        assert found.high >= exact.p_value * (1 - 1e-8)
        assert found.high - found.low <= 0.02 * exact.p_value + 2 / exact.n_partitions


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("jitter", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize(("n_x", "n_y"), [(4, 9), (11, 8), (14, 3)])
def test_two_clumps_enclose_what_enumeration_counts(n_x, n_y, jitter, alternative, monkeypatch):
    tests = [near_binary(n_x, n_y, jitter, seed) for seed in range(4)]
    assert_clumps_enclose_what_is_counted(tests, alternative, monkeypatch)


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("jitter", [1e-4, 1e-6])
@pytest.mark.parametrize("n_clumps", [3, 4, 5])
def test_more_clumps_enclose_what_enumeration_counts(n_clumps, jitter, alternative, monkeypatch):
    rng = np.random.default_rng(n_clumps)
    places = np.append(NO_LATTICE, -3.3)[:n_clumps]
    sets = [
        [rng.choice(places, n) + jitter * rng.standard_normal(n) for n in (11, 9)] for _ in range(4)
    ]
    assert_clumps_enclose_what_is_counted(sets, alternative, monkeypatch)


@pytest.mark.parametrize("seed", range(100))
def test_bounds_of_clumps_of_any_sizes_and_widths_enclose_the_share(seed):
    """Also where nothing is taken of a clump that is wider than the others."""
    rng = np.random.default_rng(seed)
    n_clumps = rng.integers(3, 6)
    widths = rng.choice([1e-2, 1e-3, 1e-4], n_clumps)
    clumps = zip(rng.normal(size=n_clumps), widths, rng.integers(1, 5, n_clumps), strict=True)
    scores = np.concatenate([place + width * rng.normal(size=n) for place, width, n in clumps])
    size = int(rng.integers(1, min(5, len(scores))))
    sums = np.array([sum(each) for each in itertools.combinations(scores, size)])
    threshold = rng.choice(sums)
    low, high = clumps_tail(scores, size, threshold - 1e-12, threshold + 1e-12)
    assert low <= (sums >= threshold - 1e-11).mean() * (1 + 1e-8)
    assert high >= (sums >= threshold + 1e-11).mean() * (1 - 1e-8)


@pytest.mark.parametrize(("n", "n_clumps"), [(80, 2), (300, 2), (25, 3)])
def test_clumps_of_many_targets_are_decided_within_the_tie(n, n_clumps):
    """Within the way of choosing that was observed the jitter decides: beside the sampled p."""
    rng = np.random.default_rng(n)
    x, y = (rng.choice(NO_LATTICE[:n_clumps], n) + 1e-7 * rng.standard_normal(n) for _ in "xy")
    found = inference.permutation_test(x, y)
    assert found.interval == "proven bound"
    assert found.high - found.low <= 0.02 * found.p_value
    sampled = inference.permutation_test(x, y, "sampled", n_resamples=20_000, rng=0)
    hits = round(sampled.p_value * 20_000) - 1
    interval = stats.binomtest(hits, 19_999).proportion_ci(0.9999, method="exact")
    assert interval.low <= found.high
    assert found.low <= interval.high


@pytest.mark.parametrize("jitter", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_near_binary_scores_of_unequal_sets_are_decided_at_the_usual_levels(seed, jitter):
    """300 against 8, where bounds of one lattice reach from .02 to .11; and a sampled p-value."""
    x, y = near_binary(300, 8, jitter, seed)
    found = inference.permutation_test(x, y)
    assert (found.method, found.interval, found.undecided) == ("lattice", "proven bound", ())
    assert found.high - found.low <= 0.02 * found.p_value
    sampled = inference.permutation_test(x, y, "sampled", n_resamples=20_000, rng=0)
    hits = round(sampled.p_value * 20_000) - 1
    interval = stats.binomtest(hits, 19_999).proportion_ci(0.9999, method="exact")
    assert interval.low <= found.p_value <= interval.high


@pytest.mark.parametrize(("n", "size"), [(30, 11), (1_500, 700)])
def test_sums_of_zeros_and_ones_are_hypergeometric_however_many(n, size):
    places = np.arange(n) % 3 // 2
    shares = shares_of_sums(places, size)
    expected = stats.hypergeom(n, places.sum(), size).pmf(np.arange(len(shares)))
    assert shares == pytest.approx(expected, rel=1e-9, abs=1e-300)


# The studentised test


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize(("n_x", "n_y"), [(2, 2), (4, 5), (6, 3), (5, 5)])
def test_the_studentised_test_is_scipys_with_welchs_statistic(n_x, n_y, alternative):
    rng = np.random.default_rng([n_x, n_y])
    x, y = rng.normal(0.5, 3, n_x), rng.normal(0, 1, n_y)
    found = inference.studentised_test(x, y, alternative)

    def welch(a, b, axis=-1):
        t = stats.ttest_ind(a, b, axis=axis, equal_var=False).statistic
        return np.abs(t) if alternative == "two-sided" else t

    side = "less" if alternative == "less" else "greater"
    true = stats.permutation_test(
        (x, y), welch, vectorized=True, n_resamples=np.inf, alternative=side
    )
    assert found.p_value == pytest.approx(true.pvalue, abs=1e-12)
    assert (found.method, found.interval, found.low) == ("enumeration", "exact", found.p_value)
    expected = stats.ttest_ind(x, y, equal_var=False).statistic
    assert found.statistic == pytest.approx(expected, rel=1e-12)


def test_the_studentised_test_samples_what_it_cannot_count():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.6, 2, 7), rng.normal(0, 1, 9)
    exact = inference.studentised_test(x, y)
    drawn = inference.studentised_test(x, y, n_resamples=5_000, rng=0)
    assert (exact.method, drawn.method, drawn.interval) == (
        "enumeration", "sampled", "95% confidence",
    )  # fmt: skip
    assert drawn.low <= exact.p_value <= drawn.high
    assert drawn == inference.studentised_test(x, y, n_resamples=5_000, rng=0)


def test_the_studentised_test_comes_nearer_to_its_level_where_only_spreads_differ():
    """Of 1,500 draws with SD 3 and 1, 6 and 18 targets: its error is at most two thirds."""
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(1_500):
        x, y = rng.normal(0, 3, 6), rng.normal(0, 1, 18)
        plain = inference.permutation_test(x, y, accuracy=0.05)
        studentised = inference.studentised_test(x, y, n_resamples=500, rng=rng)
        p_values.append((plain.p_value, studentised.p_value))
    plain, studentised = (np.array(p_values) <= 0.05).mean(axis=0)
    assert plain > 0.12
    assert studentised - 0.05 < (plain - 0.05) * 2 / 3


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0], [2.0, 3.0], "X has 1 units and Y 2"),
    ],
)
def test_the_studentised_test_says_what_it_needs(x, y, message):
    with pytest.raises(ValueError, match=message):
        inference.studentised_test(x, y)


def test_sets_without_spread_are_as_far_apart_as_can_be():
    found = inference.studentised_test([1.0, 1.0, 1.0], [0.1, 0.1, 0.1])
    assert (found.statistic, found.p_value) == (np.inf, 1 / 20)
    equal = inference.studentised_test([0.1, 0.1], [0.1, 0.1, 0.1])
    assert (equal.statistic, equal.p_value) == (0.0, 1.0)
