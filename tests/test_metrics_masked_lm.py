"""Study 2's scores against worked examples, a slow independent implementation, and properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaslib.metrics import masked_lm as metrics

LOG = st.floats(-40, 0)


def slow_mean_of_logs(p, q):
    return sum(math.log(a) - math.log(b) for a, b in zip(p, q, strict=True)) / len(p)


def slow_log_of_mean(p, q):
    return math.log(sum(p) / len(p) / q)


def pairs(min_size=1, max_size=8):
    return st.lists(st.tuples(LOG, LOG), min_size=min_size, max_size=max_size)


def test_worked_language_association():
    # Probabilities double in one image and are a quarter in the other: (ln 2 + ln 1/4) / 2.
    score = metrics.language_association(np.log([0.4, 0.1]), np.log([0.2, 0.4]))
    assert score.score == pytest.approx(-math.log(2) / 2)
    np.testing.assert_allclose(score.contributions, [math.log(2), -math.log(4)])
    np.testing.assert_allclose(score.probabilities, [0.4, 0.1])
    assert (score.name, score.n) == ("S_L", 2)


def test_worked_visual_association_is_the_log_of_the_mean_probability():
    # Mean probability (0.4 + 0.1) / 2 = 0.25 against 0.125: ln 2. The mean of logs would be
    # ln(sqrt(0.04) / 0.125) = ln 1.6.
    score = metrics.visual_association(np.log([0.4, 0.1]), math.log(0.125))
    assert score.score == pytest.approx(math.log(2))
    assert score.score > score.contributions.mean() == pytest.approx(math.log(1.6))


def test_worked_pretraining_shift_and_bias():
    f = metrics.pretraining_shift(math.log(0.02), math.log(0.04))
    m = metrics.pretraining_shift(math.log(0.02), math.log(0.01))
    assert f.score == pytest.approx(-math.log(2))
    assert metrics.bias_score(f=f, m=m).score == pytest.approx(-2 * math.log(2))
    # For one caption each the mean over captions is the printed formula itself.
    assert f.n == 1


def test_bias_of_pretraining_is_the_bias_of_one_model_less_that_of_the_other():
    rng = np.random.default_rng(0)
    f_vl, f_l, m_vl, m_l = np.log(rng.uniform(0.01, 0.9, (4, 5)))
    shift = metrics.bias_score(
        f=metrics.pretraining_shift(f_vl, f_l), m=metrics.pretraining_shift(m_vl, m_l)
    )
    assert shift.score == pytest.approx(np.mean(f_vl - m_vl) - np.mean(f_l - m_l))


@settings(max_examples=80, deadline=None)
@given(logs=pairs())
def test_agrees_with_slow_implementation(logs):
    first, second = np.array(logs).T
    p, q = np.exp(first), np.exp(second)
    mean_of_logs = slow_mean_of_logs(p, q)
    assert metrics.language_association(first, second).score == pytest.approx(
        mean_of_logs, abs=1e-12
    )
    assert metrics.pretraining_shift(first, second).score == pytest.approx(mean_of_logs, abs=1e-12)
    assert metrics.visual_association(first, second[0]).score == pytest.approx(
        slow_log_of_mean(p, q[0]), abs=1e-12
    )


def test_probabilities_too_small_for_a_float_do_not_vanish():
    # exp(-1000) is 0 as a float; the mean of two equal ones still has the logarithm -1000.
    score = metrics.visual_association([-1000.0, -1000.0], -1002.0)
    assert score.score == pytest.approx(2.0, abs=1e-12)
    mixed = metrics.visual_association([-1000.0, -2000.0], -1000.0)
    assert mixed.score == pytest.approx(-math.log(2), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(logs=pairs(), data=st.data())
def test_reweighting_is_repeating_images(logs, data):
    first, second = np.array(logs).T
    n = len(first)
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    rows = np.repeat(np.arange(n), times)
    language = metrics.language_association(first, second)
    vision = metrics.visual_association(first, second[0])
    assert language.reweighted(np.ones(n)) == pytest.approx(language.score, abs=1e-12)
    if rows.size == 0:
        assert math.isnan(language.reweighted(times))
        assert math.isnan(vision.reweighted(times))
        return
    again = metrics.language_association(first[rows], second[rows]).score
    assert language.reweighted(times) == pytest.approx(again, abs=1e-10)
    again = metrics.visual_association(first[rows], second[0]).score
    assert vision.reweighted(times) == pytest.approx(again, abs=1e-10)
    # Many sets of weights at once are the same as one at a time.
    both = vision.reweighted(np.column_stack([times, np.ones(n)]))
    np.testing.assert_allclose(both, [vision.reweighted(times), vision.score], atol=1e-10)


def test_weights_of_a_bias_score_follow_the_images():
    rng = np.random.default_rng(1)
    f, m, neutral = np.log(rng.uniform(0.01, 0.9, (3, 6)))
    language = metrics.bias_score(
        f=metrics.language_association(f, neutral), m=metrics.language_association(m, neutral)
    )
    weights = rng.multinomial(6, np.full(6, 1 / 6), size=50).T
    expected = [(f - m) @ w / 6 for w in weights.T]
    np.testing.assert_allclose(language.reweighted(weights), expected, atol=1e-12)
    vision = metrics.bias_score(
        f=metrics.visual_association(f[:4], -1.0), m=metrics.visual_association(m, -1.0)
    )
    assert vision.reweighted(np.ones(4), np.ones(6)) == pytest.approx(vision.score)
