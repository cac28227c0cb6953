"""Properties of measures and tests.

What must hold for any data: bounds, symmetries, what the order of rows, a shift or a scale may not
change, how measures hang together. Measures that another test holds to an implementation of their
own have them by that, and are not here.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biaslib import inference
from biaslib.metrics import association, caption_association, caption_selection, masked_lm
from biaslib.metrics.grounded import GroundedResult, grounded

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 7)
# Eighths add up without rounding, so that ties are ties; and there are many of them.
scores_with_ties = st.lists(st.integers(-16, 16), min_size=1, max_size=6).map(
    lambda values: np.array(values) / 8
)
shifts, stretches = st.floats(-3, 3), st.floats(0.1, 10)
logs = st.floats(-40, 0)
triples = st.lists(st.tuples(logs, logs, logs), min_size=1, max_size=8).map(
    lambda rows: np.array(rows).T
)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


def property_of(examples=50, **drawn):
    """Check with drawn examples."""

    def prepared(check):
        return settings(max_examples=examples, deadline=None)(given(**drawn)(check))

    return prepared


# Association: equations 1 to 3


def word_sets(seed, n=5, d=7):
    """Return embeddings of X, Y, A and B."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, d)) for size in (n, n, 4, 3)]


def shuffled(rows, seed):
    return np.random.default_rng(seed).permutation(rows)


def rotation(seed, d=7):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@property_of(seed=seeds, n=sizes)
def test_the_statistic_and_the_effect_size_belong_together(seed, n):
    X, Y, A, B = word_sets(seed, n)
    statistic, d = association.test_statistic(X, Y, A, B), association.effect_size(X, Y, A, B)
    spread = association.association(np.concatenate([X, Y]), A, B).std(ddof=1)
    assert statistic == pytest.approx(n * d * spread, abs=1e-10)
    assert abs(d) <= 2 * math.sqrt((2 * n - 1) / (2 * n)) + 1e-9
    assert association.effect_size(X, Y, B, A) == pytest.approx(-d, abs=1e-10)
    assert association.test_statistic(Y, X, A, B) == pytest.approx(-statistic, abs=1e-12)
    assert association.test_statistic(X, X, A, B) == 0
    mixed = [shuffled(rows, seed) for rows in (X, Y, A, B)]
    assert association.effect_size(*mixed) == pytest.approx(d, abs=1e-10)
    turned = [rows @ rotation(seed) for rows in (X, Y, A, B)]
    assert association.effect_size(*turned) == pytest.approx(d, abs=1e-10)


# Grounded association

EQUAL_FIELDS = ("effect_size", "x_effect", "y_effect")


@property_of(seed=seeds, experiment=st.sampled_from([1, 2, 3]), scale=stretches)
def test_grounded_experiments_ignore_lengths_and_order(seed, experiment, scale):
    rng = np.random.default_rng(seed)
    sets = [rng.normal(size=(size, 6)) for size in (5, 4, 3, 4, 4, 3)]
    found = grounded(*sets, experiment)
    other = grounded(*(scale * rng.permutation(rows) for rows in sets), experiment)
    for name in EQUAL_FIELDS:
        expected = getattr(found, name)
        assert getattr(other, name) == (expected and pytest.approx(expected, abs=1e-9))
    np.testing.assert_allclose(np.sort(other.x_scores), np.sort(found.x_scores), atol=1e-9)
    with_n = grounded(*sets, experiment, ddof=0).effect_size
    n = 9 if experiment < 3 else 18
    assert with_n == pytest.approx(found.effect_size * math.sqrt(n / (n - 1)), abs=1e-9)
    assert found.effect_size >= 0 or experiment < 3


@property_of(seed=seeds)
def test_exchanging_the_categories_of_attributes_exchanges_own_and_other(seed):
    rng = np.random.default_rng(seed)
    X, Y, Ax, Ay, Bx, By = (rng.normal(size=(size, 6)) for size in (5, 4, 3, 4, 4, 3))
    pooled = grounded(X, Y, Ax, Ay, Bx, By, 1).effect_size
    assert grounded(X, Y, Ay, Ax, Bx, By, 1).effect_size == pytest.approx(pooled, abs=1e-12)
    for experiment in (2, 3):
        found = grounded(X, Y, Ax, Ay, Bx, By, experiment)
        exchanged = grounded(X, Y, Ay, Ax, By, Bx, experiment)
        np.testing.assert_array_equal(exchanged.x_scores, found.x_other)
        np.testing.assert_array_equal(exchanged.y_scores, found.y_other)
        np.testing.assert_array_equal(exchanged.x_other, found.x_scores)
        np.testing.assert_array_equal(exchanged.y_other, found.y_scores)


# Masked language modelling


@property_of(logs_=triples, base=logs, other=logs)
def test_bias_turns_with_the_genders_and_forgets_what_they_share(logs_, base, other):
    f, m, neutral = logs_

    def vision(first, second, without):
        scores = (masked_lm.visual_association(each, without) for each in (first, second))
        return masked_lm.bias_score(**dict(zip("fm", scores, strict=True))).score

    def language(first, second, without):
        scores = (masked_lm.language_association(each, without) for each in (first, second))
        return masked_lm.bias_score(**dict(zip("fm", scores, strict=True))).score

    assert vision(m, f, base) == pytest.approx(-vision(f, m, base), abs=1e-10)
    assert vision(f, m, other) == pytest.approx(vision(f, m, base), abs=1e-10)
    assert language(m, f, neutral) == pytest.approx(-language(f, m, neutral), abs=1e-10)
    assert language(f, m, neutral) == pytest.approx(np.mean(f - m), abs=1e-10)
    assert language(f, f, neutral) == vision(f, f, base) == 0


# Caption association and retrieval


def partition_case(seed, g=3, k=8, n=30, words=4):
    """Return the images retrieved, a partition of all images, and the composition."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(n) % g)[:, None] == np.arange(g)
    top = caption_association.top_k(rng.normal(size=(words, n)), k)
    return top, groups, caption_association.top_k_composition(top, groups)


@property_of(seed=seeds, k=st.integers(1, 29))
def test_over_representation_is_under_representation_of_the_others(seed, k):
    top, groups, composition = partition_case(seed, k=k)
    found = caption_association.representation(composition)
    others = caption_association.representation(caption_association.top_k_composition(top, ~groups))
    np.testing.assert_allclose(found.p_over, others.p_under, rtol=1e-9)
    np.testing.assert_allclose(found.p_value, others.p_value, rtol=1e-9)
    assert ((found.p_value > 0) & (found.p_value <= 1)).all()
    assert (found.p_over + found.p_under >= 1 - 1e-12).all()
    by_count = np.argsort(composition.counts[:, 0])
    assert (np.diff(found.p_over[by_count, 0]) <= 1e-12).all()
    skews = caption_association.skew_at_k(composition)
    np.testing.assert_allclose(np.exp(skews), found.ratios, atol=1e-12)


@property_of(seed=seeds, g=st.integers(2, 5), smoothing=st.floats(0.1, 50))
def test_skews_are_bounded_and_shrink_with_smoothing(seed, g, smoothing):
    _, _, composition = partition_case(seed, g)
    expected = composition.expected_shares
    skews = caption_association.skew_at_k(composition)
    smooth = caption_association.skew_at_k(composition, smoothing)
    defined = [
        [
            math.log((count + smoothing * q) / (8 + smoothing) / q)
            for count, q in zip(row, expected, strict=True)
        ]
        for row in composition.counts
    ]
    np.testing.assert_allclose(smooth, defined, atol=1e-12)
    for each in (skews, smooth):
        np.testing.assert_allclose(np.exp(each) @ expected, 1, atol=1e-12)
    assert (np.abs(smooth) <= np.abs(skews) + 1e-12).all()
    # The shares of a partition can be neither all too small nor all too large.
    largest, smallest = skews.max(axis=1), smooth.min(axis=1)
    assert ((largest >= -1e-12) & (largest <= -np.log(expected.min()) + 1e-12)).all()
    # A group that is absent has the share of its pseudo-count alone.
    lowest = np.log(smoothing / (8 + smoothing))
    assert ((smallest <= 1e-12) & (smallest >= lowest - 1e-12)).all()


# Caption selection

choices = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=2, max_size=12).map(
    lambda rows: np.array(rows, dtype=float)
)
policies = st.sampled_from(["anti-stereotype", "split"])


@property_of(x=st.floats(0, 100), y=st.floats(0, 100), more=st.floats(0, 1))
def test_ivlas_lies_between_its_parts_and_rises_with_both(x, y, more):
    value = caption_selection.ivlas(x, y)
    assert min(x, 100 - y) - 1e-9 <= value <= max(x, 100 - y) + 1e-9
    assert caption_selection.ivlas(x + more * (100 - x), y) >= value - 1e-9
    assert caption_selection.ivlas(x, y * more) >= value - 1e-9
    assert caption_selection.ivlas(x, 100 - x) == pytest.approx(x, abs=1e-9)
    assert caption_selection.ivlas(100 - y, 100 - x) == pytest.approx(value, abs=1e-9)


@property_of(scores=choices, ties=policies, seed=seeds)
def test_overall_scores_are_those_of_the_categories_together(scores, ties, seed):
    opposite = np.ones(len(scores), bool)
    labels = np.where(np.arange(len(scores)) % 2 == 0, "race", "gender")
    options = {"ties": ties, "require_relevant": False}
    found = caption_selection.selection_scores(scores, opposite, labels, **options)
    assert list(found) == ["overall", "race", "gender"]
    for name in ("vlrs", "vlbs"):
        whole, *parts = (getattr(each, name) for each in found.values())
        together = sum(part.value * part.denominator for part in parts) / len(scores)
        assert whole.value == pytest.approx(together, abs=1e-9)
    order = np.random.default_rng(seed).permutation(len(scores))
    moved = caption_selection.selection_scores(scores[order], opposite, labels[order], **options)
    for name, each in found.items():
        assert moved[name].ivlas == pytest.approx(each.ivlas, abs=1e-9)
        assert moved[name].n_tied == each.n_tied
        low, high = sorted([each.vlrs.value, 100 - each.vlbs.value])
        assert low - 1e-9 <= each.ivlas <= high + 1e-9


@property_of(opposite=st.lists(st.booleans(), max_size=9))
def test_reference_models_are_what_they_say_on_any_images(opposite):
    opposite = np.array([True, *opposite])
    models = {
        "ideal": np.where(opposite[:, None], [0.0, 1, -1], [1.0, 0, -1]),
        "biased": np.tile([1.0, 0, -1], (len(opposite), 1)),
        # One that cannot tell the captions apart, its ties split, is the random one's mean.
        "random": np.zeros((len(opposite), 3)),
    }
    for name, scores in models.items():
        found = caption_selection.selection_scores(scores, opposite, ties="split")["overall"]
        expected = caption_selection.reference_scores(name)
        values = found.vlrs.value, found.vlbs.value, found.ivlas
        assert values == pytest.approx((expected.vlrs, expected.vlbs, expected.ivlas), abs=1e-9)


@property_of(seed=seeds, less=st.floats(0, 0.9))
def test_the_lift_by_selection_turns_with_the_two_captions(seed, less):
    units = np.random.default_rng(seed).normal(size=(3, 4))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    (_, above, below), (_, _, between), _ = units @ units.T
    lift = caption_selection.percent_positive_without_bias
    found = lift(below, above, between)
    assert found + lift(above, below, between) == pytest.approx(100, abs=1e-9)
    assert (found >= 50) == (above >= below)
    assert 50 <= lift(less) <= lift(less - 0.1) <= 100


# Permutation and exchange tests


@property_of(
    x=scores_with_ties,
    y=scores_with_ties,
    shift=st.integers(-8, 8),
    scale=st.sampled_from([0.25, 1.0, 16.0]),
)
def test_permutation_tests_of_both_sides(x, y, shift, scale):
    def p(first, second, alternative="greater"):
        return inference.permutation_test(first, second, alternative=alternative).p_value

    assert p(x, y) + p(y, x) >= 1
    assert p(x, y) >= 1 / inference.n_partitions(len(x), len(y))
    assert p(x, y, "less") == p(y, x)
    assert p(x, y, "two-sided") == p(y, x, "two-sided") >= min(p(x, y), p(y, x))
    for alternative in ("greater", "less", "two-sided"):
        moved = p(scale * x[::-1] + shift, scale * y[::-1] + shift, alternative)
        assert moved == p(x, y, alternative)


@property_of(x=scores_with_ties, y=scores_with_ties, shift=shifts, seed=seeds)
def test_relabelled_differences_stay_within_the_most_extreme_partition(x, y, shift, seed):
    drawn = inference.relabelled_differences(x, y, 50, rng=seed)
    pooled = np.sort(np.concatenate([x, y]))
    most = pooled[-len(x) :].mean() - pooled[: len(y)].mean()
    least = pooled[: len(x)].mean() - pooled[len(x) :].mean()
    assert ((drawn >= least - 1e-9) & (drawn <= most + 1e-9)).all()
    moved = inference.relabelled_differences(x + shift, y + shift, 50, rng=seed)
    np.testing.assert_allclose(moved, drawn, atol=1e-9)
    doubled = inference.relabelled_differences(-2 * x, -2 * y, 50, rng=seed)
    np.testing.assert_allclose(doubled, -2 * drawn, atol=1e-9)


four_scores = st.lists(st.tuples(*[st.integers(-16, 16)] * 4), min_size=2, max_size=5).map(
    lambda rows: np.array(rows).T / 8
)


@st.composite
def six_sets(draw):
    rng = np.random.default_rng(draw(seeds))
    n_x, n_y, n_a, n_b = (draw(sizes) for _ in range(4))
    return [rng.normal(size=(n, 3)) for n in (n_x, n_y, n_a, n_a, n_b, n_b)]


def words_by_place(six):
    return {
        name: range(len(each)) for name, each in zip(("Ax", "Ay", "Bx", "By"), six[2:], strict=True)
    }


@property_of(sets=six_sets(), scale=st.sampled_from([0.5, 1.0, 4.0]))
def test_exchanges_know_neither_targets_nor_categories_nor_attributes_from_the_others(sets, scale):
    X, Y, Ax, Ay, Bx, By = sets

    def p(*six):
        result = grounded(*six, experiment=3)
        return inference.exchange_test(result, words_by_place(six)).p_value

    found = p(*sets)
    assert 1 / math.comb(len(Ax) + len(Bx), len(Ax)) - 1e-12 <= found <= 1
    for other in (
        p(Y, X, Ax, Ay, Bx, By),
        p(X, Y, Ay, Ax, By, Bx),
        p(X, Y, Bx, By, Ax, Ay),
        p(scale * X, Y, Ax[::-1], Ay[::-1], scale * Bx, scale * By),
    ):
        assert other == found


@property_of(scores=four_scores)
def test_grounded_nulls_permute_what_they_say(scores):
    x, x_other, y, y_other = scores

    def p(null, *four):
        first, second, third, fourth = four
        result = GroundedResult(2, 1.0, 1, first, third, second, fourth)
        return inference.grounded_permutation_test(result, null).p_value

    fixed = p("fixed scores", x, x_other, y, y_other)
    assert fixed == inference.permutation_test(x, y).p_value
    assert fixed == p("fixed scores", x, y, y, x)
    new = p("new attributes", x, x_other, y, y_other)
    # Only the sum of a target's two scores counts: own and other may change places.
    assert new == p("new attributes", x_other, x, y, y_other)
    assert new + p("new attributes", y, y_other, x, x_other) >= 1


# Bootstrap


def mean_of(x):
    return lambda weights: (x @ weights) / weights.sum(axis=0)


def bounds(interval):
    return np.array([interval.low, interval.high])


@property_of(seed=seeds, scale=st.sampled_from([0.5, 4.0, -2.0]))
def test_bootstrap_intervals_turn_and_stretch_and_move(seed, scale):
    x = np.random.default_rng(seed).exponential(size=9)

    def interval(values):
        return inference.bootstrap(mean_of(values), [9], None, 200, seed)

    found = interval(x)
    assert found.low < found.estimate < found.high
    assert found.estimate == pytest.approx(x.mean(), abs=1e-12)
    assert (found.n_units, found.values.shape) == ((9,), (200,))
    np.testing.assert_array_equal(bounds(interval(x)), bounds(found))
    moved = np.sort(bounds(interval(scale * x + 3)))
    np.testing.assert_allclose(moved, np.sort(scale * bounds(found) + 3), atol=1e-9)
    np.testing.assert_allclose(bounds(interval(np.full(9, x[0]))), x[0], atol=1e-12)


@property_of(seed=seeds, scale=st.sampled_from([0.5, 4.0, -2.0]))
def test_intervals_within_strata_stretch_and_move_and_hold_a_stratum_of_one(seed, scale):
    x = np.random.default_rng(seed).exponential(size=9)
    strata = list("aaaabbbcc")

    def interval(values, strata=strata):
        return inference.stratified_bootstrap(mean_of(values), strata, 200, seed)

    found = interval(x)
    assert found.low < found.estimate < found.high
    assert found.estimate == pytest.approx(x.mean(), abs=1e-12)
    moved = np.sort(bounds(interval(scale * x + 3)))
    np.testing.assert_allclose(moved, np.sort(scale * bounds(found) + 3), atol=1e-9)
    of_each = interval(np.repeat([1.0, 2.0, 5.0], [4, 3, 2]))  # nothing varies within a stratum
    np.testing.assert_allclose(bounds(of_each), of_each.estimate, atol=1e-9)
    assert np.isnan(bounds(interval(x, list(range(9))))).all()


@property_of(seed=seeds, g=st.integers(2, 4), k=st.integers(1, 22))
def test_intervals_of_compositions_add_up_and_have_bounds(seed, g, k):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(30) % g)[:, None] == np.arange(g)
    ranking = caption_association.top_k(rng.normal(size=(3, 30)), 30)
    share, ratio = (
        inference.bootstrap_top_k(ranking, groups, k, statistic, n_resamples=60, rng=seed)
        for statistic in ("share", "ratio")
    )
    composition = caption_association.top_k_composition(ranking[:, :k], groups)
    np.testing.assert_allclose(share.estimate, composition.shares, atol=1e-12)
    expected = composition.shares / composition.expected_shares
    np.testing.assert_allclose(ratio.estimate, expected, atol=1e-12)
    np.testing.assert_allclose(share.values.sum(axis=2), 1, atol=1e-12)
    assert ((share.low >= 0) & (share.low <= share.high) & (share.high <= 1)).all()
    renamed = inference.bootstrap_top_k(ranking, groups[:, ::-1], k, n_resamples=60, rng=seed)
    np.testing.assert_allclose(bounds(renamed), bounds(share)[:, :, ::-1], atol=1e-12)


# Proportions, corrections, power, random attributes


@property_of(r=st.floats(-1, 1), n=st.integers(5, 200))
def test_intervals_of_rank_correlations_mirror(r, n):
    low, high = inference.rank_correlation_interval(r, n)
    assert inference.rank_correlation_interval(-r, n) == pytest.approx((-high, -low))
    assert -1 <= low <= r <= high <= 1
    assert low < high


@property_of(p=p_values, seed=seeds)
def test_corrections_stand_in_order_and_keep_the_order(p, seed):
    bh, by, holm = (inference.adjust(p, method) for method in ("bh", "by", "holm"))
    bonferroni = np.minimum(len(p) * p, 1)
    tiny = 1e-12
    assert (p <= bh + tiny).all()
    assert (bh <= holm + tiny).all()
    assert (bh <= by + tiny).all()
    assert (holm <= bonferroni + tiny).all()
    order = np.random.default_rng(seed).permutation(len(p))
    for method, adjusted in (("bh", bh), ("by", by), ("holm", holm)):
        assert (np.diff(adjusted[np.argsort(p)]) >= -tiny).all()
        np.testing.assert_allclose(inference.adjust(p[order], method), adjusted[order], atol=tiny)
        np.testing.assert_array_equal(inference.adjust(p[:, None], method), adjusted[:, None])
        assert (inference.adjust(p / 2, method) <= adjusted + tiny).all()


@property_of(n_x=st.integers(8, 40), n_y=st.integers(8, 40), wanted=st.floats(0.3, 0.95))
def test_the_detectable_effect_undoes_power(n_x, n_y, wanted):
    found = inference.minimum_detectable_effect(n_x, n_y, wanted_power=wanted)
    assert inference.power(found.shift, n_x, n_y) == pytest.approx(wanted, abs=1e-6)
    assert 0 < found.effect_size <= (n_x + n_y) / math.sqrt(n_x * n_y)
    assert found.effect_size < found.shift
    more = inference.minimum_detectable_effect(n_x, n_y + 1, wanted_power=wanted)
    assert more.shift < found.shift
    stronger = inference.minimum_detectable_effect(n_x, n_y, wanted_power=wanted + 0.01)
    assert stronger.shift > found.shift
    strict = inference.minimum_detectable_effect(n_x, n_y, alpha=0.04, wanted_power=wanted)
    assert strict.shift > found.shift


@property_of(seed=seeds, stretch=stretches, shift=shifts)
def test_random_attributes_ignore_scale_and_place_larger_effects_further_out(seed, stretch, shift):
    x, y = np.random.default_rng(seed).uniform(-1, 1, (2, 5, 20))

    def null(first, second):
        return inference.random_attribute_null(first, second, 4, 3, n_sets=60, rng=seed)

    found = null(x, y)
    assert (np.abs(found.effect_sizes) <= 2 + 1e-9).all()
    np.testing.assert_array_equal(null(x, y).effect_sizes, found.effect_sizes)
    moved = null(shift + stretch * x, shift + stretch * y).effect_sizes
    np.testing.assert_allclose(moved, found.effect_sizes, atol=1e-6)
    # What a target has in common with every word says nothing about A against B.
    common = np.arange(5.0)[:, None]
    moved = null(x + common, y - common).effect_sizes
    np.testing.assert_allclose(moved, found.effect_sizes, atol=1e-9)
    np.testing.assert_allclose(null(y, x).effect_sizes, -found.effect_sizes, atol=1e-9)
    placed = [found.p_value(each) for each in np.linspace(0, 3, 7)]
    assert placed[0] == 1
    assert placed[-1] == 1 / 61
    assert (np.diff(placed) <= 0).all()
    assert found.p_value(-1.0) == found.p_value(1.0)
