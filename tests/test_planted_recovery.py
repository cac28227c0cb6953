"""Rank correlations with what was planted: closed forms, and scores that have to fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from plantedworld.studies.recovery import partial_rank, rank_within_signs


def test_rank_within_signs_is_the_weighted_mean_of_two_correlations():
    rng = np.random.default_rng(1)
    truth = np.concatenate([rng.uniform(0.1, 1, 30), -rng.uniform(0.1, 1, 10)])
    value = truth + rng.normal(0, 0.5, 40)
    up, down = (stats.spearmanr(value[s], truth[s]).statistic for s in (truth > 0, truth < 0))
    assert rank_within_signs(value, truth) == pytest.approx((30 * up + 10 * down) / 40, abs=1e-12)


def test_signs_alone_have_a_high_rank_over_all_words_and_none_within_signs():
    truth = np.random.default_rng(2).uniform(-1, 1, 400)
    signs = np.sign(truth)
    assert stats.spearmanr(signs, truth).statistic == pytest.approx(0.866, abs=0.005)
    assert rank_within_signs(signs, truth) == 0.0
    noisy = signs + np.random.default_rng(3).normal(0, 0.1, 400)
    assert abs(rank_within_signs(noisy, truth)) < 0.15


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40, unique=True))
@settings(max_examples=50, deadline=None)
def test_rank_within_signs_knows_no_monotone_change_that_keeps_signs(truth):
    truth = np.round(truth, 6)
    if len(set(truth)) < len(truth) or max((truth > 0).sum(), (truth < 0).sum()) < 3:
        return
    assert rank_within_signs(truth**3, truth) == pytest.approx(1.0)
    assert rank_within_signs(-truth, truth) == pytest.approx(-1.0)


def test_too_few_words_of_a_sign_are_left_out():
    assert rank_within_signs([1, 2, 3, 9, -9], [1, 2, 3, -1, -2]) == pytest.approx(1.0)
    assert np.isnan(rank_within_signs([1, -1], [1, -1]))


def test_partial_rank_is_the_correlation_of_residual_ranks():
    rng = np.random.default_rng(4)
    given = rng.normal(size=200)
    truth, value = given + rng.normal(size=200), given + rng.normal(size=200)
    ranks = [stats.rankdata(each) for each in (value, truth, given)]
    lines = [np.polyval(np.polyfit(ranks[2], each, 1), ranks[2]) for each in ranks[:2]]
    residuals = [each - line for each, line in zip(ranks[:2], lines, strict=True)]
    expected = stats.pearsonr(*residuals).statistic
    assert partial_rank(value, truth, given) == pytest.approx(expected, abs=1e-12)
    assert partial_rank(given, truth, given) == 0.0


def test_truths_that_are_zero_but_for_rounding_have_no_sign():
    truth = np.concatenate([np.linspace(0.1, 1, 10), -np.linspace(0.1, 1, 10), np.full(20, 1e-12)])
    value = np.concatenate([truth[:20], np.arange(20.0)])
    assert rank_within_signs(value, truth) == pytest.approx(1.0)
