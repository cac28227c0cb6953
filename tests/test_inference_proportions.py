"""Intervals of proportions and of selection scores against scipy, definitions and slow loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference
from biaslib.metrics.caption_selection import ivlas, selection_scores


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 600), share=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_bounds_solve_the_tail_equations(n, share, confidence):
    k = round(share * n)
    found = inference.proportion_interval(k, n, confidence)
    tail = (1 - confidence) / 2
    assert 0 <= found.low <= found.proportion <= found.high <= 1
    assert found.proportion == k / n
    if k > 0:
        assert stats.binom.sf(k - 1, n, found.low) == pytest.approx(tail, rel=1e-6)
    else:
        assert found.low == 0
    if k < n:
        assert stats.binom.cdf(k, n, found.high) == pytest.approx(tail, rel=1e-6)
    else:
        assert found.high == 1


def scored(seed=0, n_triplets=40, images=3, spread=1.0, **settings):
    """Return scores with triplets of captions that share a preference, and the triplets."""
    rng = np.random.default_rng(seed)
    triplets = np.repeat(np.arange(n_triplets), images)
    shared = rng.normal(size=(n_triplets, 3)) * spread
    scores = shared[triplets] + rng.normal(size=(len(triplets), 3))
    opposite = rng.random(len(triplets)) < 0.5
    return selection_scores(scores, opposite, **settings), triplets


def slow_bootstrap(found, triplets, statistic, n_resamples, rng):
    """Redraw triplets by the same generator and count images one by one."""
    relevant = dict(zip(found.vlrs.rows, found.vlrs.shares, strict=True))
    biased = dict(zip(found.vlbs.rows, found.vlbs.shares, strict=True))
    counted = found.vlbs.rows if statistic == "vlbs" else found.vlrs.rows
    names = sorted(set(triplets[counted].tolist()))
    rows_of = {name: np.flatnonzero(triplets == name) for name in names}
    values = []
    for _ in range(n_resamples):
        drawn = [
            i for each in rng.integers(len(names), size=len(names)) for i in rows_of[names[each]]
        ]
        vlrs = 100 * np.mean([relevant[i] for i in drawn])
        vlbs = 100 * np.mean([biased[i] for i in drawn if i in biased])
        values.append({"vlrs": vlrs, "vlbs": vlbs, "ivlas": ivlas(vlrs, vlbs)}[statistic])
    return values


@pytest.mark.parametrize("statistic", ["vlrs", "vlbs", "ivlas"])
def test_agrees_with_a_slow_bootstrap(statistic):
    found, triplets = scored()
    interval = inference.bootstrap_selection(
        found["overall"], triplets, statistic, n_resamples=200, rng=5
    )
    expected = slow_bootstrap(found["overall"], triplets, statistic, 200, np.random.default_rng(5))
    np.testing.assert_allclose(interval.values, expected)
    used = len(np.unique(triplets[found["overall"].vlbs.rows]))
    n = 40 if statistic == "vlrs" else used
    size = np.mean(expected) * (100 - np.mean(expected)) / np.var(expected) * (n - 1) / n
    for end in (interval.low, interval.high):
        distance = abs(interval.estimate - end) / np.sqrt(end * (100 - end) / size)
        assert distance == pytest.approx(stats.t.ppf(0.975, n - 1))
    assert np.isfinite(interval.values).sum() == 200
    assert interval.n_units == (used if statistic == "vlbs" else 40,)


def test_one_triplet_has_no_interval_and_few_that_agree_have_a_wide_one():
    found = selection_scores([[3, 2, 1], [1, 3, 2]], [True, False])["overall"]
    for statistic in ("vlbs", "ivlas"):
        alone = inference.bootstrap_selection(found, "ab", statistic, rng=0)
        assert np.isnan([alone.low, alone.high]).all()
    same = selection_scores([[1, 3, 2]] * 10, [True, False] * 5)["overall"]
    names = list("aabbccddee")
    for statistic, value in (("vlrs", 100), ("vlbs", 0), ("ivlas", 100)):
        found = inference.bootstrap_selection(same, names, statistic, rng=0)
        moved = stats.t.ppf(0.975, 4) ** 2 / 5
        far = 100 * (1 / (1 + moved) if value else moved / (1 + moved))
        assert found.estimate == value
        assert sorted([found.low, found.high]) == pytest.approx(sorted([value, far]))


def test_only_the_triplets_of_a_category_are_drawn():
    labels = np.resize(["race", "gender", "race", "race"], 120)
    found, triplets = scored(categories=labels)
    first = inference.bootstrap_selection(found["gender"], triplets, rng=9)
    assert first.n_units == (len(set(triplets[labels == "gender"])),)
    assert first.estimate == pytest.approx(found["gender"].ivlas, rel=1e-14)
    assert first.low <= first.estimate <= first.high


def test_terms_as_units_of_an_average_over_terms():
    rng = np.random.default_rng(3)
    terms = np.repeat(["a", "b", "c", "d", "e", "f"], [1, 2, 3, 4, 5, 6])
    found = selection_scores(rng.normal(size=(21, 3)), np.ones(21, bool), targets=terms)["overall"]
    interval = inference.bootstrap_selection(found, terms, "vlrs", n_resamples=300, rng=0)
    share = [100 * found.vlrs.shares[terms == each].mean() for each in "abcdef"]
    drawn = np.random.default_rng(0).integers(6, size=(300, 6))
    np.testing.assert_allclose(interval.values, np.mean(np.array(share)[drawn], axis=1))


def test_resamples_without_an_anti_stereotypical_image_are_left_out():
    scores = [[3, 2, 1], [1, 3, 2], [2, 3, 1]]
    found = selection_scores(scores, [True, False, False])["overall"]
    interval = inference.bootstrap_selection(found, "abc", n_resamples=1_000, rng=0)
    # (2/3)^3 = 29.6% of the resamples miss the only such image.
    assert np.isfinite(interval.values).sum() == pytest.approx(704, abs=45)
