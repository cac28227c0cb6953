"""The three grounded experiments against slow code, and their nulls against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biaslib import inference
from biaslib.metrics import association as metrics
from biaslib.metrics.grounded import grounded

ROLES = ("X", "Y", "Ax", "Ay", "Bx", "By")


def random_sets(seed, n_x=6, n_y=6, d=10):
    rng = np.random.default_rng(seed)
    sizes = {"X": n_x, "Y": n_y, "Ax": 5, "Ay": 4, "Bx": 3, "By": 6}
    return {role: rng.normal(size=(size, d)) for role, size in sizes.items()}


def slow_score(w, A, B):
    def cosine(u, v):
        return (
            sum(a * b for a, b in zip(u, v, strict=True))
            / (sum(a * a for a in u) * sum(b * b for b in v)) ** 0.5
        )

    return sum(cosine(w, a) for a in A) / len(A) - sum(cosine(w, b) for b in B) / len(B)


def spread(scores):
    mean = sum(scores) / len(scores)
    return (sum((s - mean) ** 2 for s in scores) / (len(scores) - 1)) ** 0.5


def mean(scores):
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("experiment", [1, 2])
def test_experiment_1_uses_all_images_and_2_the_targets_own(seed, experiment):
    sets = {role: rows.tolist() for role, rows in random_sets(seed).items()}
    A, B = sets["Ax"] + sets["Ay"], sets["Bx"] + sets["By"]
    of_x, of_y = (
        ((A, B), (A, B))
        if experiment == 1
        else (
            (sets["Ax"], sets["Bx"]),
            (sets["Ay"], sets["By"]),
        )
    )
    x = [slow_score(w, *of_x) for w in sets["X"]]
    y = [slow_score(w, *of_y) for w in sets["Y"]]
    result = grounded(*(sets[r] for r in ROLES), experiment=experiment)
    assert result.effect_size == pytest.approx((mean(x) - mean(y)) / spread(x + y), abs=1e-12)
    np.testing.assert_allclose(result.x_scores, x, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_experiment_3_as_printed_and_as_released(seed):
    sets = {role: rows.tolist() for role, rows in random_sets(seed).items()}
    x_own = [slow_score(w, sets["Ax"], sets["Bx"]) for w in sets["X"]]
    x_other = [slow_score(w, sets["Ay"], sets["By"]) for w in sets["X"]]
    y_own = [slow_score(w, sets["Ay"], sets["By"]) for w in sets["Y"]]
    y_other = [slow_score(w, sets["Ax"], sets["Bx"]) for w in sets["Y"]]
    x_shift, y_shift = mean(x_own) - mean(x_other), mean(y_own) - mean(y_other)
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    printed = 0.5 * (abs(x_shift) + abs(y_shift)) / spread(x_own + x_other + y_own + y_other)
    assert result.effect_size == pytest.approx(printed, abs=1e-12)
    assert result.x_effect == pytest.approx(x_shift / spread(x_own + x_other), abs=1e-12)
    assert result.y_effect == pytest.approx(-y_shift / spread(y_own + y_other), abs=1e-12)


def test_experiment_1_without_a_context_is_the_ungrounded_test():
    sets = random_sets(0)
    sets["Ay"], sets["By"] = sets["Ax"], sets["Bx"]
    result = grounded(*(sets[r] for r in ROLES), experiment=1)
    plain = metrics.effect_size(sets["X"], sets["Y"], sets["Ax"], sets["Bx"])
    assert result.effect_size == pytest.approx(plain, abs=1e-12)


@given(st.integers(0, 10_000))
def test_same_images_for_both_targets_make_experiments_1_and_2_one(seed):
    """As in the released file of test C8, whose rows in Tables 3 and 4 are equal."""
    sets = random_sets(seed)
    sets["Ay"], sets["By"] = sets["Ax"], sets["Bx"]
    first, second, third = (grounded(*(sets[r] for r in ROLES), experiment=e) for e in (1, 2, 3))
    assert first.effect_size == pytest.approx(second.effect_size, abs=1e-12)
    assert (third.effect_size, third.x_effect, third.y_effect) == (0.0, 0.0, 0.0)


def test_fixed_scores_react_to_attributes_that_differ_and_new_attributes_do_not():
    """Targets that are exchangeable, attributes that differ by category: which null rejects?"""
    fixed, new = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sets = random_sets(seed)
        sets["X"], sets["Y"] = 1.0 + rng.normal(size=(2, 6, 10))
        sets["Ax"] = sets["Ax"] + 2.0
        result = grounded(*(sets[r] for r in ROLES), experiment=2)
        fixed.append(inference.grounded_permutation_test(result, "fixed scores").p_value)
        new.append(inference.grounded_permutation_test(result).p_value)
    assert np.mean(np.array(fixed) < 0.05) > 0.5
    assert np.mean(np.array(new) < 0.05) < 0.10


@given(st.integers(0, 10_000))
def test_with_sets_of_equal_size_experiment_2_has_the_p_of_experiment_1(seed):
    """A relabelled target has the scores with both categories' attributes, as in Experiment 1."""
    sets = np.random.default_rng(seed).normal(size=(6, 5, 7))
    first, second = (grounded(*sets, experiment=number) for number in (1, 2))
    p = inference.permutation_test(first.x_scores, first.y_scores).p_value
    assert inference.grounded_permutation_test(first).p_value == p
    assert inference.grounded_permutation_test(second).p_value == p


def worded(seed, counts=(3, 3, 4, 2), copies=(1, 2, 1, 3), d=8):
    """Return six sets, and the words of attributes; a word has as many rows as copies say."""
    rng = np.random.default_rng(seed)
    sets = {name: 0.7 + rng.normal(size=(4 if name == "X" else 3, d)) for name in "XY"}
    words = {}
    for name, n in zip(ROLES[2:], (counts[0], counts[1], counts[2], counts[3]), strict=True):
        words[name] = np.repeat([f"word {i}" for i in range(n)], np.resize(copies, n))
        sets[name] = 0.7 + rng.normal(size=(len(words[name]), d))
    return sets, words


def statistic_of(sets, words, A, B):
    """Return half of both absolute shifts from means of words, with words of either set in A."""

    def near(targets, word, category):
        rows = sets[f"{word[0]}{category}"][words[f"{word[0]}{category}"] == word[1]]
        return metrics.cosines(targets, rows).mean(axis=1).mean()

    def score(targets, category):
        first, second = ([near(targets, word, category) for word in each] for each in (A, B))
        return np.mean(first) - np.mean(second)

    return 0.5 * sum(abs(score(sets[t], "x") - score(sets[t], "y")) for t in "XY")


@pytest.mark.parametrize("seed", range(4))
def test_exchange_agrees_with_scoring_every_choice_of_words_anew(seed):
    sets, words = worded(seed, counts=(3, 3, 4, 4))
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    A, B = (list(dict.fromkeys((role, word) for word in words[f"{role}x"])) for role in "AB")
    values = []
    for chosen in itertools.combinations(A + B, len(A)):
        rest = [each for each in A + B if each not in chosen]
        values.append(statistic_of(sets, words, chosen, rest))
    observed = statistic_of(sets, words, A, B)
    found = inference.exchange_test(result, words)
    assert (found.method, found.n_partitions) == ("enumeration", 35)
    assert found.statistic == pytest.approx(observed)
    true = np.mean(np.array(values) >= observed - 1e-12)
    assert found.p_value == found.low == found.high == pytest.approx(true)
    drawn = inference.exchanged_statistics(result, words)
    np.testing.assert_allclose(np.sort(drawn), np.sort(values), atol=1e-12)


def test_one_row_a_word_gives_the_printed_statistic_in_any_order():
    X, Y, Ax, Ay, Bx, By = np.random.default_rng(1).normal(size=(6, 5, 6))
    result = grounded(X, Y, Ax, Ay, Bx, By, experiment=3)
    shifts = result.x_scores - result.x_other, result.y_scores - result.y_other
    labels = {name: list("abcde") for name in ROLES[2:]}
    found = inference.exchange_test(result, labels)
    assert found.statistic == pytest.approx(0.5 * sum(abs(each.mean()) for each in shifts))
    order = [3, 1, 0, 4, 2]
    turned = grounded(X, Y, Ax[order], Ay, Bx, By, experiment=3)
    labels["Ax"] = [labels["Ax"][i] for i in order]
    assert inference.exchange_test(turned, labels).p_value == found.p_value


def test_more_exchanges_than_can_be_counted_are_drawn_with_their_interval():
    rng = np.random.default_rng(3)
    sets = [rng.normal(size=(n, 6)) for n in (4, 4, 12, 12, 12, 12)]
    result = grounded(*sets, experiment=3)
    words = {name: range(12) for name in ROLES[2:]}
    found = inference.exchange_test(result, words, n_resamples=5_000, rng=0)
    assert (found.method, found.n_partitions) == ("sampled", 2_704_156)
    count = round(found.p_value * 5_000) - 1
    true = stats.binomtest(count, 4_999).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((true.low, true.high))
    assert found == inference.exchange_test(result, words, n_resamples=5_000, rng=0)
    assert found != inference.exchange_test(result, words, n_resamples=5_000, rng=1)


def test_words_that_share_a_picture_and_captions_of_one_stay_together():
    sets, words = worded(5, counts=(4, 4, 4, 4), copies=(1,))
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    own = {name: [f"{name}{i}" for i in range(4)] for name in ROLES[2:]}
    shared = {**own, "Ax": ["one", "one", "Ax2", "Ax3"], "By": ["By0", "By1", "two", "two"]}
    merged = {name: list(each) for name, each in words.items()}
    for name in ("Ax", "Ay"):
        merged[name][1] = merged[name][0]
    for name in ("Bx", "By"):
        merged[name][3] = merged[name][2]
    found = inference.exchange_test(result, words, shared)
    assert found.n_partitions == 20
    assert found == inference.exchange_test(result, merged)
    assert inference.exchange_test(result, words, own) == inference.exchange_test(result, words)


def test_words_seen_with_one_category_alone_are_left_out():
    sets, words = worded(6, counts=(4, 3, 3, 3), copies=(1,))
    result = grounded(*(sets[r] for r in ROLES), experiment=3)
    found = inference.exchange_test(result, words)
    sets["Ax"] = sets["Ax"][:3]
    without = grounded(*(sets[r] for r in ROLES), experiment=3)
    fewer = words | {"Ax": words["Ax"][:3]}
    assert found.p_value == inference.exchange_test(without, fewer).p_value


@pytest.mark.parametrize("n", [1, 2, 3, 9, 14])
@pytest.mark.parametrize("seed", range(3))
def test_sign_patterns_are_counted_as_in_a_list(n, seed):
    rng = np.random.default_rng([n, seed])
    shifts = np.round(rng.normal(rng.normal(), 1.0, n), 1)
    sums = np.abs(np.array(list(itertools.product((1.0, -1.0), repeat=n))) @ shifts)
    found = inference.sign_flip_test(shifts)
    assert (found.method, found.low, found.high) == ("enumeration", found.p_value, found.p_value)
    assert found.p_value == np.mean(sums >= abs(shifts.sum()) - 1e-9)
    assert found.statistic == pytest.approx(shifts.sum())


@pytest.mark.parametrize("n", [32, 33, 200])
def test_signs_of_values_of_one_size_are_binomial(n):
    """Counted up to 32, and else drawn."""
    for heads in (n // 2 + 1, int(n / 2 + 0.8 * np.sqrt(n)), n):
        values = np.repeat([1.0, -1.0], [heads, n - heads]) * np.pi
        found = inference.sign_flip_test(values, rng=0)
        true = 2 * stats.binom.sf(heads - 1, n, 0.5)
        assert found.n_partitions == 2**n
        if n <= 32:
            assert found.p_value == found.low == pytest.approx(true, rel=1e-12)
        else:
            assert found.method == "sampled"
            assert abs(found.p_value - true) < 5 * np.sqrt(true / 1e5) + 1.1e-5
            ends = stats.binomtest(round(found.p_value * 1e5) - 1, 99_999).proportion_ci()
            assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
            assert found == inference.sign_flip_test(values, rng=0)
