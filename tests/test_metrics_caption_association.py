"""C-ASC and retrieval: slow loops, printed numbers, exact tails, intervals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference, published
from biaslib.metrics import caption_association as metrics

seeds = st.integers(0, 2**32 - 1)


def slow_c_asc(similarities, group, ddof):
    inside = [s for s, member in zip(similarities, group, strict=True) if member]
    outside = [s for s, member in zip(similarities, group, strict=True) if not member]
    mean = sum(similarities) / len(similarities)
    variance = sum((s - mean) ** 2 for s in similarities) / (len(similarities) - ddof)
    return (sum(inside) / len(inside) - sum(outside) / len(outside)) / math.sqrt(variance)


def slow_top(similarities, k):
    return sorted(range(len(similarities)), key=lambda i: (-similarities[i], i))[:k]


def slow_tail(n, size, drawn, count):
    ways = [math.comb(size, x) * math.comb(n - size, drawn - x) for x in range(drawn + 1)]
    return Fraction(sum(ways[count:]), math.comb(n, drawn))


def partition(labels, g):
    return np.asarray(labels)[:, None] == np.arange(g)


def random_partition(rng, n, g):
    return partition(rng.permutation(np.arange(n) % g), g)


def random_case(seed, k=5, n=60, g=4, d=17):
    rng = np.random.default_rng(seed)
    overlapping = rng.random((n, g)) < 0.4
    overlapping[0], overlapping[1] = True, False
    return rng.normal(size=(k, d)), rng.normal(size=(n, d)), overlapping


# C-ASC


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_c_asc_agrees_with_slow_loops(seed, ddof):
    similarities = np.random.default_rng(seed).normal(0.2, 0.03, size=(5, 60))
    groups = random_case(seed)[2]
    expected = [
        [slow_c_asc(row.tolist(), group.tolist(), ddof) for group in groups.T]
        for row in similarities
    ]
    np.testing.assert_allclose(metrics.c_asc(similarities, groups, ddof), expected, atol=1e-10)


# The numbers printed in the paper


@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_printed_gender_tables_agree_with_opposite_values(number):
    # Female = -Male for every word. So no word can lead both lists with a positive value, and a
    # word printed for one gender would, with its sign turned, rank below the other's list.
    table = published.table("hamidieh2023", number)
    lists = {group: rows.set_index("word")["casc"] for group, rows in table.groupby("group")}
    for one, other in (("Male", "Female"), ("Female", "Male")):
        assert not set(lists[one].index) & set(lists[other].index)
        assert (-lists[one]).max() <= lists[other].min() + 0.005


def test_printed_values_are_possible_for_seven_balanced_groups():
    # For one word in a partition of shares p: sum of p ((1 - p) C-ASC)^2 is at most 1.
    share = 1 / 7
    for number in range(7, 19):
        table = published.table("hamidieh2023", number)
        for _, rows in table[table.facet == "race"].groupby("word"):
            values = rows.drop_duplicates("group")["casc"]
            assert (share * ((1 - share) * values) ** 2).sum() <= 1
            assert len(values) < 7 or values.min() <= 0.005 * 7


# Retrieval


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 30), st.integers(1, 8))
def test_top_k_agrees_with_sorting(seed, n, levels):
    similarities = np.random.default_rng(seed).integers(levels, size=(3, n)) / 7
    for k in {1, (n + 1) // 2, n}:
        expected = [slow_top(row.tolist(), k) for row in similarities]
        assert metrics.top_k(similarities, k).tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "bound"), [(np.float32, 1e-7), (np.float64, 1e-13), (np.float16, 1e-7)]
)
@pytest.mark.parametrize(("n", "k"), [(9_001, 100), (4_097, 4_097), (40, 7)])
def test_one_pass_agrees_with_the_table_of_products(n, k, dtype, bound):
    rng = np.random.default_rng(n)
    centre = rng.normal(size=24)
    texts, images = (rng.normal(size=(rows, 24)) + centre for rows in (30, n))
    texts, images = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (texts, images))
    texts, images = texts.astype(dtype), images.astype(dtype)
    images[n // 2 :: 3] = images[: len(images[n // 2 :: 3])]  # equal ones, blocks apart
    groups = np.column_stack([random_partition(rng, n, 3), rng.random(n) < 0.3])
    found = metrics.associate(texts, images, groups, k)
    wide = np.float32 if dtype == np.float16 else dtype
    table = texts.astype(wide) @ images.astype(wide).T
    exact = texts.astype(float) @ images.astype(float).T
    inside = np.stack([exact[:, group].mean(axis=1) for group in groups.T], axis=1)
    outside = np.stack([exact[:, ~group].mean(axis=1) for group in groups.T], axis=1)
    expected = (inside - outside) / exact.std(axis=1, ddof=1, keepdims=True)
    np.testing.assert_allclose(found.c_asc, expected, rtol=0, atol=10 * bound)
    np.testing.assert_allclose(found.c_asc, metrics.c_asc(table, groups), rtol=0, atol=bound)
    for row, nearest in enumerate(found.nearest):
        np.testing.assert_allclose(table[row, nearest], np.sort(table[row])[::-1][:k], atol=2e-7)
        assert (found.counts[row] == groups[nearest].sum(axis=0)).all()


def test_equally_near_images_go_by_index_in_one_pass():
    images = np.ones((9_000, 2))
    images[5_000] = [2, 0]
    found = metrics.associate([[1, 0]], images, np.arange(9_000)[:, None] < 50, k=4)
    assert found.nearest.tolist() == [[5_000, 0, 1, 2]]
    assert found.counts.tolist() == [[3]]


def test_composition_counts_overlapping_groups():
    groups = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]], bool)
    composition = metrics.top_k_composition([[0, 1], [2, 3]], groups)
    assert composition.counts.tolist() == [[2, 1, 1], [0, 2, 0]]
    assert composition.shares.tolist() == [[1.0, 0.5, 0.5], [0.0, 1.0, 0.0]]
    assert composition.expected_shares.tolist() == [0.5, 0.75, 0.25]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 100), min_size=2, max_size=9))
def test_entropy_properties(counts):
    assume(sum(counts) > 0)
    value = metrics.entropy([counts])[0]
    assert 0 <= value <= 1
    assert metrics.entropy([counts[::-1]])[0] == pytest.approx(value, abs=1e-12)
    reference = stats.entropy(counts) / math.log(len(counts))
    assert value == pytest.approx(reference, abs=1e-12)
    assert (value > 1 - 1e-12) == (len(set(counts)) == 1)
    assert (value == 0) == (sum(count > 0 for count in counts) == 1)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.data())
def test_hypergeometric_tails(n, data):
    size, drawn = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    least, most = max(0, drawn - (n - size)), min(size, drawn)
    counts = np.arange(least, most + 1)[:, None]
    result = metrics.representation(metrics.Composition(counts, drawn, np.array([size]), n))
    exact = [float(slow_tail(n, size, drawn, count)) for count in range(least, most + 2)]
    np.testing.assert_allclose(result.p_over[:, 0], exact[:-1], rtol=1e-9)
    np.testing.assert_allclose(result.p_under[:, 0], 1 - np.array(exact[1:]), atol=1e-12)
    mass = stats.hypergeom(n, size, drawn).pmf(counts[:, 0])
    np.testing.assert_allclose(result.p_over[:, 0] + result.p_under[:, 0], 1 + mass, atol=1e-9)
    smaller = np.minimum(result.p_over, result.p_under)
    np.testing.assert_array_equal(result.p_value, np.minimum(2 * smaller, 1))


def test_a_far_tail_keeps_its_digits():
    # All 100 retrieved from 14,000 of 97,698: the product of the shares left at every draw.
    result = metrics.representation(
        metrics.Composition(np.array([[100]]), 100, np.array([14_000]), 97_698)
    )
    exact = math.prod(Fraction(14_000 - i, 97_698 - i) for i in range(100))
    assert result.p_over[0, 0] == pytest.approx(float(exact), rel=1e-8)
    assert result.ratios[0, 0] == pytest.approx(97_698 / 14_000)


# Intervals that resample people


def slow_draws(seed, n, n_resamples):
    rng = np.random.default_rng(seed)
    return [rng.integers(n, size=n) for _ in range(n_resamples)]


def test_bootstrap_of_c_asc_is_that_of_resampled_columns():
    similarities = np.random.default_rng(0).normal(size=(3, 40))
    groups = random_case(1, n=40)[2]
    interval = inference.bootstrap_c_asc(similarities, groups, n_resamples=60, rng=7)
    for values, drawn in zip(interval.values, slow_draws(7, 40, 60), strict=True):
        expected = metrics.c_asc(similarities[:, drawn], groups[drawn])
        np.testing.assert_allclose(values, expected, atol=1e-9)
    # Wilson's interval on the scale of what C-ASC can be, with Welch's degrees of freedom.
    n = np.stack([groups.sum(0), 40 - groups.sum(0)])
    freedom = (1 / n).sum(0) ** 2 / (1 / (n**2 * (n - 1))).sum(0)
    limit = np.sqrt(39 * 40 / n.prod(0))
    mean, variance = interval.values.mean(0), interval.values.var(0) * (freedom + 1) / freedom
    size = (limit**2 - mean**2) / variance
    for end in (interval.low, interval.high):
        distance = np.abs(interval.estimate - end) / np.sqrt((limit**2 - end**2) / size)
        np.testing.assert_allclose(distance, np.tile(stats.t.ppf(0.975, freedom), (3, 1)))


@pytest.mark.parametrize("statistic", ["share", "ratio"])
def test_bootstrap_retrieves_again(statistic):
    similarities = np.random.default_rng(2).normal(size=(3, 40))
    groups = random_partition(np.random.default_rng(3), 40, 2)
    ranking = metrics.top_k(similarities, 40)
    interval = inference.bootstrap_top_k(
        ranking, groups, k=9, statistic=statistic, n_resamples=60, rng=7
    )
    for values, drawn in zip(interval.values, slow_draws(7, 40, 60), strict=True):
        again = metrics.top_k_composition(metrics.top_k(similarities[:, drawn], 9), groups[drawn])
        expected = {
            "share": again.shares,
            "ratio": again.shares / again.expected_shares,
        }[statistic]
        np.testing.assert_allclose(values, expected, atol=1e-12)
    # Wilson's interval on the scale of what a share or ratio can be, with Student's quantile.
    limit, mean = {"share": 1, "ratio": 2}[statistic], interval.values.mean(0)
    size = mean * (limit - mean) / (interval.values.var(0) * 40 / 39)
    for end in (interval.low, interval.high):
        distance = np.abs(interval.estimate - end) / np.sqrt(end * (limit - end) / size)
        np.testing.assert_allclose(distance, stats.t.ppf(0.975, 39))


def test_images_of_one_person_stay_together():
    similarities = np.tile(np.random.default_rng(4).normal(size=(2, 30)), 4)
    groups = np.tile(np.arange(30) < 12, 4)[:, None]
    people = np.tile([f"person {i}" for i in range(30)], 4)
    clustered = inference.bootstrap_c_asc(similarities, groups, 0, people, rng=0)
    single = inference.bootstrap_c_asc(similarities[:, :30], groups[:30], 0, rng=0)
    wrong = inference.bootstrap_c_asc(similarities, groups, 0, rng=0)
    # Four copies of each person know no more than one: pooled as people they would look surer.
    np.testing.assert_allclose(clustered.high - clustered.low, single.high - single.low, rtol=0.25)
    assert ((wrong.high - wrong.low) < 0.7 * (clustered.high - clustered.low)).all()


def test_a_group_missing_from_a_resample_is_not_a_silent_number():
    groups = np.arange(20)[:, None] == 0
    similarities = np.random.default_rng(5).normal(size=(1, 20))
    interval = inference.bootstrap_c_asc(similarities, groups, n_resamples=300, rng=0)
    # The one member is missed with probability (1 - 1/20)^20 = 0.358.
    assert 0.55 < np.isfinite(interval.values[:, 0, 0]).mean() < 0.73
    assert np.isnan([interval.low, interval.high]).all()  # one member says nothing of a spread
    ranking = metrics.top_k(similarities, 20)
    ratios = inference.bootstrap_top_k(
        ranking, groups, k=5, statistic="ratio", n_resamples=300, rng=0
    )
    np.testing.assert_array_equal(np.isnan(ratios.values), np.isnan(interval.values))
    assert np.isfinite([ratios.low, ratios.high]).all()
