"""Permutation test, bootstrap and corrections against brute force and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference


def test_ties_survive_rounding():
    # 0.1 + 0.2 is not 0.3 in binary; the partitions tie all the same.
    result = inference.permutation_test([0.1, 0.2], [0.3, 0.0])
    assert result.p_value == pytest.approx(4 / 6)


def slow_bootstrap(cosines_a, cosines_b, units, ddof, drawn_anew, n_resamples, rng):
    """Draw the words of one set with replacement and copy rows and columns, one at a time."""
    values = []
    for _ in range(n_resamples):
        rows = {}
        for name, labels in units.items():
            words = np.unique(labels)
            drawn = rng.choice(words, len(words)) if name == drawn_anew else words
            rows[name] = np.concatenate([np.flatnonzero(np.asarray(labels) == w) for w in drawn])
        shift = len(units["X"])
        target = np.concatenate([rows["X"], shift + rows["Y"]])
        scores = cosines_a[np.ix_(target, rows["A"])].mean(1) - cosines_b[
            np.ix_(target, rows["B"])
        ].mean(1)
        n_x = len(rows["X"])
        difference = scores[:n_x].mean() - scores[n_x:].mean()
        values.append(difference / scores.std(ddof=ddof))
    return np.array(values)


def test_bootstrap_agrees_with_a_slow_one_that_copies_rows():
    rng = np.random.default_rng(5)
    units = {
        "X": list("aabbccdd"),
        "Y": list("eeffgghh"),
        "A": list("iiijjj"),
        "B": list("kkll"),
    }
    cosines_a = rng.uniform(-1, 1, (16, 6))
    cosines_b = rng.uniform(-1, 1, (16, 4))
    fast = inference.bootstrap_effect_size(
        cosines_a, cosines_b, *(units[s] for s in "XYAB"), n_resamples=6_000, rng=1
    )
    every, variances = [], []
    for part, name in zip(fast.values.reshape(4, 6_000), "XYAB", strict=True):
        slow = slow_bootstrap(cosines_a, cosines_b, units, 1, name, 6_000, rng)
        assert stats.ks_2samp(slow.round(9), part.round(9)).pvalue > 0.001
        every.append(slow)
        n = len(set(units[name]))
        variances.append((slow.var() * n / (n - 1), n - 1))
    # Fisher's transformation, with what Welch takes for the degrees of freedom; the interval is
    # about the population of words: d is at most 2, and variances of 8 are 6/8 of all words'.
    whole = sum(v for v, _ in variances)
    quantile = stats.t.ppf(0.975, whole**2 / sum(v**2 / f for v, f in variances))
    limit = np.sqrt(15 * 16) / 8
    half = quantile * np.sqrt(whole) / limit / (1 - (np.mean(every) / limit) ** 2)
    centre = np.arcsinh(np.sqrt(6 / 8) * np.sinh(np.arctanh(fast.estimate / limit)))
    ends = 2 * np.tanh(centre + np.array([-half, half]))
    np.testing.assert_allclose([fast.low, fast.high], ends, atol=0.03)


def test_an_effect_size_of_three_words_a_set_has_no_interval():
    near = np.random.default_rng(0).normal(size=(8, 4))
    found = inference.bootstrap_effect_size(near, -near, "abc", "defgh", "ijkl", "mnop", rng=0)
    assert np.isfinite(found.estimate)
    assert np.isnan([found.low, found.high]).all()


def test_bootstrap_keeps_the_sentences_of_a_word_together():
    """Copies of a row carry no evidence: the interval must not shrink when rows are repeated."""
    rng = np.random.default_rng(6)
    cosines_a, cosines_b = rng.normal(0.3, 0.2, (16, 8)), rng.normal(0.3, 0.2, (16, 8))
    words = {"a_units": np.arange(8), "b_units": np.arange(8), "rng": 0}
    once = inference.bootstrap_effect_size(
        cosines_a, cosines_b, np.arange(8), np.arange(8, 16), **words
    )
    repeated = inference.bootstrap_effect_size(
        np.repeat(cosines_a, 6, axis=0),
        np.repeat(cosines_b, 6, axis=0),
        np.repeat(range(8), 6),
        np.repeat(range(8, 16), 6),
        **words,
    )
    # Equal but for the divisor, which counts rows: 15 of 16 and 95 of 96.
    factor = np.sqrt((15 / 16) / (95 / 96))
    np.testing.assert_allclose(once.values, repeated.values * factor, atol=1e-9)


def slow_holm(p):
    """Step down: compare the smallest with m times itself, the next with m - 1 times, and so on."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, worst = [0.0] * len(p), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = worst
    return adjusted


def slow_step_up(p, factor):
    """Step up: the largest stays, the one of rank j is m factor / j times itself."""
    order = sorted(range(len(p)), key=lambda i: p[i], reverse=True)
    adjusted, best = [0.0] * len(p), 1.0
    for position, index in enumerate(order):
        rank = len(p) - position
        best = min(best, len(p) * factor * p[index] / rank)
        adjusted[index] = best
    return adjusted


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_corrections_agree_with_slow_ones(p):
    harmonic = sum(1 / k for k in range(1, len(p) + 1))
    np.testing.assert_allclose(inference.adjust(p, "holm"), slow_holm(p), atol=1e-12)
    np.testing.assert_allclose(inference.adjust(p, "bh"), slow_step_up(p, 1.0), atol=1e-12)
    np.testing.assert_allclose(inference.adjust(p, "by"), slow_step_up(p, harmonic), atol=1e-12)


def test_fishers_intervals_of_rank_correlations_hold_their_level():
    """Of normal pairs with Pearson's .6, whose rank correlation is 6 asin(.3) / pi."""
    rng, n = np.random.default_rng(3), 20
    true = 6 * np.arcsin(0.3) / np.pi
    x = rng.standard_normal((2_000, n))
    y = 0.6 * x + 0.8 * rng.standard_normal((2_000, n))
    ranks = (stats.rankdata(each, axis=1) - (n + 1) / 2 for each in (x, y))
    r = np.prod(list(ranks), axis=0).sum(axis=1) / (n * (n**2 - 1) / 12)
    bounds = np.array([inference.rank_correlation_interval(each, n) for each in r])
    held = ((bounds[:, 0] <= true) & (true <= bounds[:, 1])).mean()
    assert held == pytest.approx(0.95, abs=0.02)
