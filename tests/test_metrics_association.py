"""Equations 1 to 3 against worked examples, a slow independent implementation, and properties."""

import math
import re

import numpy as np
import pytest

from biaslib.metrics import association as metrics
from biaslib.metrics.caption_association import associate


def slow_cosine(u, v):
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / (math.sqrt(sum(a * a for a in u)) * math.sqrt(sum(b * b for b in v)))


def slow_score(w, A, B):
    to_a = sum(slow_cosine(w, a) for a in A) / len(A)
    to_b = sum(slow_cosine(w, b) for b in B) / len(B)
    return to_a - to_b


def slow_effect_size(X, Y, A, B, ddof):
    x = [slow_score(w, A, B) for w in X]
    y = [slow_score(w, A, B) for w in Y]
    both = x + y
    mean = sum(both) / len(both)
    variance = sum((s - mean) ** 2 for s in both) / (len(both) - ddof)
    return (sum(x) / len(x) - sum(y) / len(y)) / math.sqrt(variance)


def random_sets(seed, n=8, n_a=6, n_b=5, d=12):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(size, d)) for size in (n, n, n_a, n_b))


def test_worked_example():
    # cos((1, 0), (1, 0)) = 1, cos((1, 0), (3, 4)) = 3/5; cos((0, 2), .) = 0 and 4/5.
    scores = metrics.association([[1, 0], [0, 2]], A=[[1, 0]], B=[[3, 4]])
    np.testing.assert_allclose(scores, [1 - 0.6, 0 - 0.8], atol=1e-15)


def test_cosines_agree_with_slow_ones():
    X, Y, *_ = (rows.tolist() for rows in random_sets(4))
    expected = [[slow_cosine(u, v) for v in Y] for u in X]
    np.testing.assert_allclose(metrics.cosines(X, Y), expected, atol=1e-14)
    # 3-4-5: (3, 4) lies 3/5 along the first axis and 4/5 along the second.
    np.testing.assert_allclose(metrics.cosines([[3, 4]], [[2, 0], [0, -1]]), [[0.6, -0.8]])


def test_worked_effect_size():
    # Scores 0.4 and -0.8: means differ by 1.2; the spread is 0.6 with n and 0.6 sqrt(2) with n - 1.
    sets = [[1, 0]], [[0, 2]], [[1, 0]], [[3, 4]]
    assert metrics.effect_size(*sets, ddof=0) == pytest.approx(2.0, abs=1e-12)
    assert metrics.effect_size(*sets, ddof=1) == pytest.approx(math.sqrt(2), abs=1e-12)
    assert metrics.test_statistic(*sets) == pytest.approx(1.2, abs=1e-12)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_slow_implementation(seed, ddof):
    sets = random_sets(seed)
    expected = slow_effect_size(*(rows.tolist() for rows in sets), ddof)
    assert metrics.effect_size(*sets, ddof=ddof) == pytest.approx(expected, abs=1e-12)


def test_many_tests_at_once_agree_with_one_after_the_other():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 8)), rng.normal(size=(7, 8))
    one_by_one = [metrics.effect_size_of_scores(a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(metrics.effect_size_of_scores(x, y), one_by_one, atol=1e-14)


def test_unequal_sets_where_they_are_allowed():
    X, Y, A, B = random_sets(1)
    expected = slow_effect_size(X.tolist(), Y[:5].tolist(), A.tolist(), B.tolist(), 1)
    found = metrics.effect_size(X, Y[:5], A, B, require_equal=False)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_packed_bits_are_warned_of_and_unpacked_as_the_warning_says(kind):
    """As sentence-transformers packs the signs of vectors; int8 is less by 128."""
    shifts = np.array([0.2, 0, 0.1, -0.1])[:, None, None]
    sets = shifts + np.random.default_rng(0).normal(size=(4, 8, 64))
    given = [np.packbits(each > 0, axis=1) for each in sets]
    given = given if kind == "uint8" else [(each.astype(int) - 128).astype(kind) for each in given]
    with pytest.warns(UserWarning, match="packed bits") as told:
        metrics.effect_size(*given)
    names = dict(zip("XYAB", given, strict=True), np=np)
    bits = [eval(re.search(r"np.unpackbits.*", str(each.message))[0], names) for each in told]
    assert metrics.effect_size(*bits) == metrics.effect_size(*np.sign(sets))
    with pytest.warns(UserWarning, match="packed bits"):
        associate(given[0], given[1], np.arange(8)[:, None] < 4, k=2)
