"""The null of random attribute sets: against slow code, and against the permutation test."""

import numpy as np
import pytest
from scipy import stats

from biaslib import inference
from biaslib.metrics.association import cosines, effect_size


@pytest.fixture
def embeddings():
    rng = np.random.default_rng(0)
    X, Y, pool = rng.normal(size=(6, 20)), rng.normal(size=(6, 20)), rng.normal(size=(80, 20))
    return X, Y, pool


def test_agrees_with_one_set_after_the_other(embeddings):
    X, Y, pool = embeddings
    draws = np.stack([np.random.default_rng(i).choice(80, 9, replace=False) for i in range(20)])
    null = inference.random_attribute_null(cosines(X, pool), cosines(Y, pool), 5, 4, draws=draws)
    slow = [effect_size(X, Y, pool[d[:5]], pool[d[5:]]) for d in draws]
    np.testing.assert_allclose(np.abs(null.effect_sizes), np.abs(slow), atol=1e-12)


def test_the_null_has_no_direction_even_if_the_words_for_a_lean(embeddings):
    X, Y, pool = embeddings
    leaning = np.concatenate([pool[:40] + 2 * X.mean(0), pool[40:] + 2 * Y.mean(0)])
    rng = np.random.default_rng(0)
    draws = np.concatenate(
        [
            np.stack([rng.choice(40, 5, replace=False) for _ in range(2_000)]),
            40 + np.stack([rng.choice(40, 5, replace=False) for _ in range(2_000)]),
        ],
        axis=1,
    )
    table = cosines(X, leaning), cosines(Y, leaning)
    null = inference.random_attribute_null(*table, 5, 5, draws=draws, rng=1)
    assert np.abs(null.effect_sizes).mean() > 0.5
    assert (null.effect_sizes > 0).mean() == pytest.approx(0.5, abs=0.04)


def test_p_value_counts_the_observed_one():
    null = inference.RandomAttributeNull(None, None, np.array([0.1, -0.5, 0.9, 0.2]))
    assert [null.p_value(each) for each in (-0.5, 5.0, 0.0)] == [3 / 5, 1 / 5, 1.0]


def test_keeps_its_level_where_the_permutation_test_does_not():
    """Two clusters of targets; the observed attributes are themselves drawn from the pool."""
    rng = np.random.default_rng(1)
    apart = rng.normal(size=30)
    X, Y = rng.normal(size=(8, 30)) + apart, rng.normal(size=(8, 30)) - apart
    pool = rng.normal(size=(400, 30))
    x, y = cosines(X, pool), cosines(Y, pool)
    null = inference.random_attribute_null(x, y, 8, 8, n_sets=2_000, rng=2)
    observed = inference.random_attribute_null(x, y, 8, 8, n_sets=600, rng=3)
    ours = np.array([null.p_value(d) for d in observed.effect_sizes])
    theirs = inference.permutation_p_values(observed.x_scores, observed.y_scores)
    assert (ours < 0.05).mean() == pytest.approx(0.05, abs=0.03)
    assert ((theirs < 0.025) | (theirs > 0.975)).mean() > 0.3


def test_every_draw_is_as_likely_in_every_order():
    """Two of four words: 12 ordered pairs."""
    drawn = inference._random_attributes._uniform_draws(4, 2, 24_000, np.random.default_rng(1))
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(pairs) == 12
    assert stats.chisquare(counts).pvalue > 1e-3
