"""C-ASC and retrieval: worked examples, slow loops, printed numbers, properties, bad input."""

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


def composition_of(seed, n=50, g=4, k=12, words=3):
    rng = np.random.default_rng(seed)
    groups = random_partition(rng, n, g)
    top = metrics.top_k(rng.normal(size=(words, n)), k)
    return top, groups, metrics.top_k_composition(top, groups)


# C-ASC


def test_worked_example():
    # Means 0.3 and 0.1 apart by 0.2; all four lie 0.1 from the mean: std 0.1, or 0.1 sqrt(4/3).
    women = np.array([[True], [True], [False], [False]])
    assert metrics.c_asc([[0.3, 0.3, 0.1, 0.1]], women, ddof=0) == pytest.approx(2.0)
    assert metrics.c_asc([[0.3, 0.3, 0.1, 0.1]], women) == pytest.approx(2 * math.sqrt(3 / 4))
    # Two images, the fewest: 0.2 apart with a standard deviation of 0.2 / sqrt(2).
    assert metrics.c_asc([[0.3, 0.1]], women[1:3]) == pytest.approx(math.sqrt(2))


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


def test_composition_counts_overlapping_groups():
    groups = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0]], bool)
    composition = metrics.top_k_composition([[0, 1], [2, 3]], groups)
    assert composition.counts.tolist() == [[2, 1, 1], [0, 2, 0]]
    assert composition.shares.tolist() == [[1.0, 0.5, 0.5], [0.0, 1.0, 0.0]]
    assert composition.expected_shares.tolist() == [0.5, 0.75, 0.25]


def test_entropy_of_known_shares():
    # One quarter and three quarters: (1/4) ln 4 + (3/4) ln(4/3), over ln 2.
    expected = (math.log(4) / 4 + 0.75 * math.log(4 / 3)) / math.log(2)
    assert metrics.entropy([[25, 75]]) == pytest.approx(expected)
    np.testing.assert_allclose(metrics.entropy([[1] * 7, [7] + [0] * 6]), [1, 0], atol=1e-12)


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
    assert (result.p_value <= 1).all()


def test_a_far_tail_keeps_its_digits():
    # All 100 retrieved from 14,000 of 97,698: the product of the shares left at every draw.
    result = metrics.representation(
        metrics.Composition(np.array([[100]]), 100, np.array([14_000]), 97_698)
    )
    exact = math.prod(Fraction(14_000 - i, 97_698 - i) for i in range(100))
    assert result.p_over[0, 0] == pytest.approx(float(exact), rel=1e-8)
    assert result.ratios[0, 0] == pytest.approx(97_698 / 14_000)


def test_representation_holds_its_level():
    rng = np.random.default_rng(0)
    groups = random_partition(rng, 300, 3)
    composition = metrics.top_k_composition(metrics.top_k(rng.random((2_000, 300)), 30), groups)
    rejected = (metrics.representation(composition).p_value <= 0.05).mean()
    assert 0.01 < rejected <= 0.05


def test_skew_of_known_shares():
    # Three of four retrieved from a half: ln 1.5; one of four: ln 0.5; none: minus infinity.
    groups = partition([0] * 5 + [1] * 5, 2)
    composition = metrics.top_k_composition([[0, 1, 2, 5], [0, 1, 2, 3], [0, 1, 5, 6]], groups)
    expected = [[math.log(1.5), math.log(0.5)], [math.log(2), -math.inf], [0, 0]]
    np.testing.assert_allclose(metrics.skew_at_k(composition), expected, atol=1e-12)
    # Two pseudo-images, one for each group: (4 + 1) and (0 + 1) of 4 + 2 against 1/2.
    smooth = metrics.skew_at_k(composition, smoothing=2)[1]
    np.testing.assert_allclose(smooth, np.log([5 / 3, 1 / 3]), atol=1e-12)


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


@pytest.mark.parametrize("statistic", ["share", "ratio", "entropy"])
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
            "entropy": metrics.entropy(again.counts),
        }[statistic]
        np.testing.assert_allclose(values, expected, atol=1e-12)


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


def test_intervals_cover():
    # 150 data sets from one population: C-ASC = 0.5 in standard deviations of the mixture.
    rng = np.random.default_rng(6)
    groups = np.arange(200)[:, None] < 100
    truth = 0.5 / math.sqrt(1 + 0.25**2)
    covered = 0
    for _ in range(150):
        scores = rng.normal(size=(1, 200)) + 0.5 * groups.T
        interval = inference.bootstrap_c_asc(scores, groups, n_resamples=200, rng=rng)
        covered += bool(interval.low[0, 0] <= truth <= interval.high[0, 0])
    assert 0.88 <= covered / 150 <= 0.99


def test_retrieval_intervals_cover():
    # The best 10% of a population, half of it shifted by 0.5: the truth is the tail's mixture.
    rng = np.random.default_rng(8)
    groups = partition(np.arange(1_000) % 2, 2)
    grid = np.linspace(-3, 5, 100_001)
    tails = stats.norm.sf(grid - 0.5), stats.norm.sf(grid)
    at = np.argmin(np.abs((tails[0] + tails[1]) / 2 - 0.1))
    truth = tails[0][at] / (tails[0][at] + tails[1][at])
    scores = rng.normal(size=(200, 1_000)) + 0.5 * groups[:, 0]
    interval = inference.bootstrap_top_k(
        metrics.top_k(scores, 400), groups, k=100, n_resamples=200, rng=0
    )
    covered = (interval.low[:, 0] <= truth) & (truth <= interval.high[:, 0])
    assert 0.88 <= covered.mean() <= 0.99


# Bad input

GOOD = np.array([[0.1, 0.2, 0.4], [0.3, 0.1, 0.2]])
GROUPS = np.eye(3, dtype=bool)


@pytest.mark.parametrize(
    ("similarities", "groups", "options", "message"),
    [
        (GOOD, GROUPS & [True, False, True], {}, "group 1 has no image"),
        (GOOD, GROUPS | [False, False, True], {}, "group 2 holds every image"),
        ([[0.1, 0.2, 0.4], [0.3] * 3], GROUPS, {}, r"word 1 has the same similarity"),
        ([[0.1, 0.2, 0.4], [0.3, np.nan, 1]], GROUPS, {}, r"word 1 with image 1 is not"),
        ([[0.1, np.inf, 0.4], [1, 2, 3]], GROUPS, {}, r"word 0 with image 1 is not"),
    ],
)
def test_bad_input_to_c_asc(similarities, groups, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.c_asc(similarities, groups, **options)


def replaced(table, row, value):
    changed = table.copy()
    changed[row] = value
    return changed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.top_k([[np.nan, 1]], 1), "word 0 with image 0 is not finite"),
        (lambda: metrics.entropy([[3]]), "entropy of one group"),
        (lambda: metrics.entropy([[3, 1], [0, 0]]), "word 1"),
        (lambda: metrics.top_k_composition([[0, 1]], GROUPS & [1, 0, 1]), "group 1 has no image"),
        (lambda: inference.bootstrap_top_k([[0, 1]], GROUPS, k=2, rng=0), "rank the images deeper"),
        (
            lambda: inference.bootstrap_top_k([[0, 1]], GROUPS[:, :2], 1, "entropy"),
            "entropy needs a partition",
        ),
    ],
)
def test_bad_input_to_retrieval(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("counts", "sizes", "drawn", "n", "message"),
    [
        ([[5, 0]], [4, 6], 5, 10, r"the count 5 of group 0 for word 0 is impossible"),
        ([[-1, 6]], [4, 6], 5, 10, "the count -1 of group 0"),
        ([[2.5, 2.5]], [5, 5], 5, 10, "the count 2.5 of group 0"),
        # Only two images are not of the group, so three of five retrieved must be.
        ([[2, 2]], [8, 2], 5, 10, "the count 2 of group 0"),
        ([[2, 3]], [0, 10], 5, 10, r"group 0 has 0 of 10 images"),
        ([[2, 3]], [5, 5], 11, 10, "n_retrieved is 11"),
        ([[2, 3]], [5, 5, 5], 5, 10, "2 columns of counts for 3 group sizes"),
    ],
)
def test_impossible_counts(counts, sizes, drawn, n, message):
    composition = metrics.Composition(np.array(counts), drawn, np.array(sizes), n)
    for measure in (metrics.representation, metrics.skew_at_k):
        with pytest.raises(ValueError, match=message):
            measure(composition)
