"""Study 4's scores against worked examples, slow implementations, and the printed tables."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaslib import published
from biaslib.metrics import caption_selection as metrics
from companion.published_numbers import possible_counts

# The rows (stereotype, anti-stereotype, irrelevant) pick s, a, i in turn.
S, A, I = [3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]  # noqa: E741

small_scores = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=12).map(
    lambda rows: np.array(rows, dtype=float)
)


def printed_rows():
    tables = [published.table("zhou2022", number) for number in (3, 4)]
    for table in tables:
        wide = table.pivot(index=["model", "category"], columns="metric", values="value")
        for (model, category), row in wide.iterrows():
            yield model, category, row["vlrs"], row["vlbs"], row["ivlas"]


def scores_from_counts(relevant, n, biased, n_opposite):
    """Return scores of a model with these counts, the anti-stereotypical images first."""
    rows = [S] * biased + [A] * (relevant - biased) + [I] * (n - relevant)
    # Anti-stereotypical images: all those that picked the stereotype, then the first of the rest.
    return np.array(rows), np.arange(n) < n_opposite


# --- vlrs, vlbs, ivlas -----------------------------------------------------------------------


def test_worked_example():
    opposite = np.array([True, True, True, False, False])
    scores = np.array([S, A, I, S, A])
    relevant, biased = metrics.vlrs(scores), metrics.vlbs(scores, opposite)
    assert (relevant.numerator, relevant.denominator, relevant.value) == (4, 5, 80)
    assert (biased.numerator, biased.denominator) == (1, 3)
    assert biased.value == pytest.approx(100 / 3)
    np.testing.assert_array_equal(biased.rows, [0, 1, 2])
    np.testing.assert_array_equal(biased.shares, [1, 0, 0])
    # 2 * 80 * 66.67 / 146.67
    assert metrics.ivlas(relevant.value, biased.value) == pytest.approx(72.7272727)


def slow_percentages(scores, opposite):
    """Count as Section 3.4 says it, in words: comparisons, no argmax."""
    relevant = sum(1 for s, a, i in scores if s > i or a > i)
    biased = sum(
        1 for (s, a, i), is_a in zip(scores, opposite, strict=True) if is_a and s > a and s > i
    )
    return 100 * relevant / len(scores), 100 * biased / sum(opposite)


@settings(max_examples=100, deadline=None)
@given(scores=small_scores, data=st.data())
def test_agrees_with_slow_counting(scores, data):
    opposite = np.array([data.draw(st.booleans()) for _ in scores])
    opposite[0] = True
    expected = slow_percentages(scores.tolist(), opposite.tolist())
    assert metrics.vlrs(scores, ties="anti-stereotype").value == pytest.approx(expected[0])
    assert metrics.vlbs(scores, opposite, ties="anti-stereotype").value == pytest.approx(
        expected[1]
    )


def test_ivlas_at_the_corner_is_the_limit():
    assert metrics.ivlas(0, 100) == 0.0
    assert metrics.ivlas(1e-9, 100 - 1e-9) == pytest.approx(0, abs=1e-8)
    np.testing.assert_allclose(metrics.ivlas([100, 100], [0, 100]), [100, 0])


@settings(max_examples=50, deadline=None)
@given(scores=small_scores, scale=st.sampled_from([0.5, 1.0, 8.0]))
def test_picks_are_invariant_to_the_softmax_and_to_shifts(scores, scale):
    picked = metrics.picks(scores, ties="split")
    shifted = metrics.picks(scale * scores + np.arange(len(scores))[:, None], ties="split")
    np.testing.assert_array_equal(picked, shifted)
    probabilities = metrics.caption_probabilities(scores, scale)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    slow = [[math.exp(scale * v) / sum(math.exp(scale * w) for w in r) for v in r] for r in scores]
    np.testing.assert_allclose(probabilities, slow, atol=1e-12)
    np.testing.assert_array_equal(
        metrics.picks(probabilities, ties="split", tolerance=1e-9), picked
    )


def test_ties():
    tied = np.array([[2, 2, 1], [2, 1, 2], [1, 2, 2], [2, 2, 2.0]])
    expected = [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    np.testing.assert_array_equal(metrics.picks(tied, ties="anti-stereotype"), expected)
    thirds = [1 / 3] * 3
    split = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5], thirds]
    np.testing.assert_allclose(metrics.picks(tied, ties="split"), split)
    near = [[1.0, 1.0 - 1e-9, 0.0]]
    np.testing.assert_array_equal(metrics.picks(near), [[1, 0, 0]])
    split = metrics.picks(near, ties="split", tolerance=1e-6)
    np.testing.assert_array_equal(split, [[0.5, 0.5, 0]])
    found = metrics.selection_scores(np.vstack([tied, [S]]), np.ones(5, bool), ties="split")[
        "overall"
    ]
    assert (found.ties, found.n_tied) == ("split", 4)
    assert found.vlbs.numerator == pytest.approx(0.5 + 0.5 + 1 / 3 + 1)


def test_ties_are_counted_where_they_are():
    tied = [2.0, 2.0, 1.0]
    found = metrics.selection_scores(
        [S, tied, A], [True] * 3, ["a", "b", "a"], ties="anti-stereotype"
    )
    assert {name: each.n_tied for name, each in found.items()} == {"overall": 1, "a": 0, "b": 1}


def test_categories():
    scores = np.array([S, A, I, S, A, A])
    opposite = np.array([True, False, True, True, True, False])
    categories = ["race", "race", "race", "gender", "gender", "gender"]
    found = metrics.selection_scores(scores, opposite, categories)
    assert list(found) == ["overall", "race", "gender"]
    race, gender = found["race"], found["gender"]
    assert (race.vlrs.numerator, race.vlrs.denominator) == (2, 3)
    assert (race.vlbs.numerator, race.vlbs.denominator) == (1, 2)
    assert (gender.vlbs.numerator, gender.vlbs.denominator) == (1, 2)
    np.testing.assert_array_equal(race.vlrs.rows, [0, 1, 2])
    np.testing.assert_array_equal(gender.vlbs.rows, [3, 4])
    for key in ("vlrs", "vlbs"):
        parts = [getattr(found[name], key) for name in ("race", "gender")]
        whole = getattr(found["overall"], key)
        assert whole.numerator == sum(each.numerator for each in parts)
        assert whole.denominator == sum(each.denominator for each in parts)


# --- averages over target terms --------------------------------------------------------------


def slow_stereoset_average(scores, opposite, targets):
    relevant, biased, n, n_a = Counter(), Counter(), Counter(), Counter()
    for (s, a, i), is_a, term in zip(scores, opposite, targets, strict=True):
        n[term] += 1
        relevant[term] += max(s, a) > i
        n_a[term] += is_a
        biased[term] += is_a and s > a and s > i
    vlrs = np.mean([100 * relevant[term] / n[term] for term in n])
    vlbs = np.mean([100 * biased[term] / n_a[term] for term in n_a if n_a[term]])
    return vlrs, vlbs


@pytest.mark.parametrize("seed", range(5))
def test_average_over_target_terms(seed):
    rng = np.random.default_rng(seed)
    scores, opposite = rng.normal(size=(60, 3)), rng.random(60) < 0.5
    targets = rng.choice(["sister", "nurse", "sailor", "chess player"], 60, p=[0.6, 0.2, 0.1, 0.1])
    found = metrics.selection_scores(scores, opposite, targets=targets)["overall"]
    expected = slow_stereoset_average(scores.tolist(), opposite, targets)
    assert (found.vlrs.value, found.vlbs.value) == pytest.approx(expected)
    assert found.ivlas == pytest.approx(metrics.ivlas(*expected))


def test_averages_over_terms_stay_within_100_per_cent():
    for sizes in ([3, 1], [7, 3, 11], [6, 13, 49, 5]):
        n = sum(sizes)
        targets = np.repeat(np.arange(len(sizes)), sizes)
        found = metrics.selection_scores(np.tile(S, (n, 1)), np.ones(n, bool), targets=targets)
        scores = found["overall"]
        assert (scores.vlrs.value, scores.vlbs.value) == pytest.approx((100, 100))
        assert max(scores.vlrs.value, scores.vlbs.value) <= 100
        assert scores.ivlas == pytest.approx(0, abs=1e-9)


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_reweighting_is_repeating_images(seed):
    rng = np.random.default_rng(seed)
    scores, opposite = rng.normal(size=(60, 3)), rng.random(60) < 0.5
    categories = rng.choice(["race", "gender"], 60)
    found = metrics.selection_scores(scores, opposite, categories)
    times = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), times)
    again = metrics.selection_scores(scores[rows], opposite[rows], categories[rows])
    for name, each in found.items():
        weighted = each.reweighted(np.column_stack([times, np.ones(60)]))
        for key in ("vlrs", "vlbs"):
            expected = [getattr(again[name], key).value, getattr(each, key).value]
            np.testing.assert_allclose(getattr(weighted, key), expected)
        np.testing.assert_allclose(weighted.ivlas, [again[name].ivlas, each.ivlas])


def test_drawing_a_term_twice_counts_it_twice():
    scores = np.array([S, A, I, A])
    found = metrics.selection_scores(scores, [True] * 4, targets=["x", "x", "y", "x"])
    found = found["overall"].vlrs
    assert found.value == pytest.approx(50)
    assert found.reweighted([2, 2, 1, 2]) == pytest.approx(100 * 2 / 3)


def test_no_weight_on_the_anti_stereotypical_images_is_nan():
    found = metrics.selection_scores([S, A], [True, False])["overall"]
    weighted = found.reweighted([0, 1])
    assert weighted.vlrs == 100
    assert math.isnan(weighted.vlbs)
    assert math.isnan(weighted.ivlas)


# --- the printed tables ----------------------------------------------------------------------


def test_ivlas_of_all_33_printed_rows():
    rows = list(printed_rows())
    assert len(rows) == 33
    for model, category, vlrs, vlbs, printed in rows:
        # Each printed value is within 0.005 of its own; carry that through the formula.
        corners = [
            metrics.ivlas(np.clip(vlrs + a, 0, 100), np.clip(vlbs + b, 0, 100))
            for a in (-0.005, 0.005)
            for b in (-0.005, 0.005)
        ]
        low, high = min(corners) - 0.005 - 1e-9, max(corners) + 0.005 + 1e-9
        assert low <= printed <= high, (model, category)


def test_reference_models_are_the_printed_ones():
    printed = {
        model: values for model, category, *values in printed_rows() if category == "overall"
    }
    for name, short in (("ideal", "IDM"), ("biased", "BIM"), ("random", "RAM")):
        found = metrics.reference_scores(name)
        values = [round(each, 2) for each in (found.vlrs, found.vlbs, found.ivlas)]
        assert values == printed[short]


SIZES = {"overall": 1028, "gender": 206, "profession": 322, "race": 486, "religion": 14}
VILT_SIZES = {"overall": 1018, "gender": 204, "profession": 320, "race": 480, "religion": 14}


def test_picks_made_from_whole_counts_give_all_printed_scores():
    checked, differing = 0, []
    for model, category, vlrs, vlbs, printed in printed_rows():
        if model in ("IDM", "BIM", "RAM"):
            continue
        n = (VILT_SIZES if model == "ViLT" else SIZES)[category]
        [relevant], [biased] = possible_counts(vlrs, n), possible_counts(vlbs, n // 2)
        scores, opposite = scores_from_counts(relevant, n, biased, n // 2)
        found = metrics.selection_scores(scores, opposite)["overall"]
        assert found.vlrs.value == pytest.approx(vlrs, abs=0.00501)
        assert found.vlbs.value == pytest.approx(vlbs, abs=0.00501)
        checked += 1
        if found.ivlas != pytest.approx(printed, abs=0.00501):
            differing.append((model, category))
    assert checked == 30
    assert differing == []


# --- lmss and vlss ---------------------------------------------------------------------------


def test_worked_shifts():
    original = metrics.two_way([[2.0, 1.0], [0.0, 0.0]])
    neutral = metrics.two_way([[1.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(original.probability, [math.e / (1 + math.e), 0.5])
    shifts = metrics.lmss(original, neutral)
    expected = math.log(2 * math.e / (1 + math.e))
    np.testing.assert_allclose(shifts.values, [expected, -expected])
    assert shifts.name == "lmss"
    assert shifts.scale == 1.0
    assert metrics.vlss(original, neutral).name == "vlss"
    np.testing.assert_allclose(metrics.vlss([0.6], [0.3]).values, [math.log(2)])


def test_two_way_is_the_softmax_and_carries_its_scale():
    cosines = np.array([[0.31, 0.28], [0.2, 0.25]])
    for scale in (1.0, 100.0):
        slow = np.exp(scale * cosines)
        found = metrics.two_way(cosines, scale)
        np.testing.assert_allclose(found.probability, slow[:, 0] / slow.sum(1))
        assert found.scale == scale
    far = metrics.two_way([[-2000.0, 0.0]])
    assert far.log_probability[0] == -2000  # its probability is 0 as a float


def unbiased_model(correlation, n, rng):
    """Return scores of captions and of neutral ones."""
    original = rng.normal(size=(n, 3))
    noise = rng.normal(size=(n, 2))
    neutral = correlation * original[:, :2] + math.sqrt(1 - correlation**2) * noise
    return original, neutral


def shifts_of(original, neutral, scale=1.0):
    """Return the shifts of all images, and of those whose stereotype was picked."""
    both = (metrics.two_way(each, scale) for each in (original[:, :2], neutral))
    shifts = metrics.lmss(*both).values
    return shifts, shifts[metrics.picks(original)[:, 0] == 1]


def percent_positive(shifts):
    return 100 * (shifts > 0).mean()


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.9])
def test_selection_lifts_lmss_above_zero_without_bias(correlation):
    n = 60_000
    shifts, picked = shifts_of(*unbiased_model(correlation, n, np.random.default_rng(3)))
    expected = metrics.percent_positive_without_bias(correlation)
    assert len(picked) == pytest.approx(n / 3, rel=0.03)
    # Standard error of a percentage of 20,000 images: at most 0.36.
    assert percent_positive(shifts) == pytest.approx(50, abs=1)
    assert percent_positive(picked) == pytest.approx(expected, abs=1.4)
    assert picked.mean() > shifts.mean() + 0.02


def test_the_lift_in_closed_form():
    lift = metrics.percent_positive_without_bias
    # Correlations of .5 to .9 give the 58 to 69 per cent seen in earlier simulations.
    assert lift(0.5) == pytest.approx(68.5, abs=0.05)
    assert lift(0.9) == pytest.approx(58.1, abs=0.05)
    assert lift(1 - 1e-12) == pytest.approx(50, abs=1e-3)
    # At -1 the neutral score is the original with its sign changed: lmss > 0 whenever s > a.
    assert lift(-1) == pytest.approx(100)
    values = [lift(each) for each in np.linspace(-1, 0.999, 50)]
    assert all(np.diff(values) < 0)


def test_the_lift_of_vlss():
    # Neutral scores with the image keep .8 of the original, those with a white image .3.
    above, below, between = 0.8, 0.3, 0.5
    covariance = [[1, above, below], [above, 1, between], [below, between, 1]]
    rng = np.random.default_rng(6)
    draws = rng.multivariate_normal(np.zeros(3), covariance, size=(60_000, 3))
    original, with_image, blank = np.moveaxis(draws, 2, 0)
    selected = metrics.picks(original)[:, 0] == 1
    pair = metrics.two_way(with_image[:, :2]), metrics.two_way(blank[:, :2])
    shifts = metrics.vlss(*pair).values
    expected = metrics.percent_positive_without_bias(below, above, between)
    assert percent_positive(shifts) == pytest.approx(50, abs=1)
    assert percent_positive(shifts[selected]) == pytest.approx(expected, abs=1.4)
    assert expected > 60
    # Equally correlated with both, a pick says nothing about their difference.
    assert metrics.percent_positive_without_bias(0.4, 0.4, 0.2) == 50


def test_categories_without_what_a_score_needs():
    scores, opposite = [S, A, I, I], [True, False, True, False]
    found = metrics.selection_scores(
        scores, opposite, ["a", "a", "b", "b"], require_relevant=False
    )["b"]
    assert (found.vlrs.value, found.vlbs.value, found.ivlas) == (0, 0, 0)
    found = metrics.selection_scores(
        [S, A, I], [True, False, False], list("abb"), require_anti=False
    )
    assert (found["b"].vlrs.value, found["b"].vlbs.denominator) == (50, 0)
    assert np.isnan([found["b"].vlbs.value, found["b"].ivlas]).all()
    assert found["a"].vlbs.value == found["overall"].vlbs.value == 100
    terms = metrics.selection_scores([S, A], [False] * 2, None, ["t", "u"], require_anti=False)
    assert np.isnan(terms["overall"].vlbs.value)
