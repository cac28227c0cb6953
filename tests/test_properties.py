"""Properties of every public function of the metrics and of inference.

What must hold for any data: bounds, symmetries, what the order of rows, a shift or a scale may not
change, how measures hang together. A public function that nothing here checks fails by name.
"""

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from biaslib import inference
from biaslib import metrics as metrics_package
from biaslib.metrics import association, caption_association, caption_selection, masked_lm
from biaslib.metrics.grounded import GroundedResult, grounded

CHECKED = set()

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


def property_of(*functions, examples=50, **drawn):
    """Check with drawn examples, and take note of the functions that are checked."""
    CHECKED.update(functions)

    def prepared(check):
        return settings(max_examples=examples, deadline=None)(given(**drawn)(check))

    return prepared


def public_functions():
    """Return every function that a module of the metrics, or inference, makes public."""
    names = [each.name for each in pkgutil.iter_modules(metrics_package.__path__)]
    modules = [
        importlib.import_module(f"biaslib.metrics.{name}")
        for name in names
        if name[0] != "_" and name != "inputs"  # checks of arguments, and no formula
    ]
    objects = [getattr(each, name) for each in (*modules, inference) for name in each.__all__]
    return {each for each in objects if inspect.isfunction(each)}


def test_every_public_function_has_a_property():
    unchecked = public_functions() - CHECKED
    assert sorted(f"{each.__module__}.{each.__name__}" for each in unchecked) == []


# Association: equations 1 to 3


def word_sets(seed, n=5, d=7):
    """Return embeddings of X, Y, A and B."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, d)) for size in (n, n, 4, 3)]


def shuffled(rows, seed):
    return np.random.default_rng(seed).permutation(rows)


def rotation(seed, d=7):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@property_of(association.cosines, seed=seeds, stretch=stretches)
def test_cosines_know_only_directions(seed, stretch):
    X, Y, *_ = word_sets(seed)
    found = association.cosines(X, Y)
    assert (np.abs(found) <= 1).all()
    np.testing.assert_allclose(found, association.cosines(Y, X).T, atol=1e-12)
    np.testing.assert_allclose(found, association.cosines(stretch * X, Y), atol=1e-12)
    np.testing.assert_allclose(-found, association.cosines(-X, Y), atol=1e-12)
    turn = rotation(seed)
    np.testing.assert_allclose(found, association.cosines(X @ turn, Y @ turn), atol=1e-12)
    np.testing.assert_allclose(np.diag(association.cosines(X, X)), 1, atol=1e-12)


@property_of(association.association, seed=seeds)
def test_association_is_antisymmetric_and_a_mean_over_attributes(seed):
    X, _, A, B = word_sets(seed)
    found = association.association(X, A, B)
    assert (np.abs(found) <= 2).all()
    np.testing.assert_allclose(association.association(X, B, A), -found, atol=1e-12)
    np.testing.assert_allclose(association.association(X, shuffled(A, 0), B), found, atol=1e-12)
    np.testing.assert_allclose(association.association(X, A, A), 0, atol=1e-12)
    one_by_one = [association.association(X, row[None], B) for row in A]
    np.testing.assert_allclose(np.mean(one_by_one, axis=0), found, atol=1e-12)


@property_of(association.test_statistic, association.effect_size, seed=seeds, n=sizes)
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


@property_of(
    association.effect_size_of_scores, x=scores_with_ties, y=scores_with_ties, scale=stretches
)
def test_effect_sizes_turn_with_the_sign_and_ignore_scale(x, y, scale):
    assume(np.ptp(np.concatenate([x, y])) > 0)

    def d(first, second):
        return association.effect_size_of_scores(first, second, require_equal=False)

    assert d(y, x) == pytest.approx(-d(x, y), abs=1e-12)
    assert d(-x, -y) == pytest.approx(-d(x, y), abs=1e-12)
    assert d(scale * x + 1, scale * y + 1) == pytest.approx(d(x, y), abs=1e-9)
    assert d(x[::-1], y[::-1]) == pytest.approx(d(x, y), abs=1e-12)


# Grounded association

EQUAL_FIELDS = ("effect_size", "x_effect", "y_effect")


@property_of(grounded, seed=seeds, experiment=st.sampled_from([1, 2, 3]), scale=stretches)
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


@property_of(grounded, seed=seeds)
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


@property_of(masked_lm.pretraining_shift, masked_lm.language_association, logs_=triples)
def test_mean_log_ratios_add_up_along_a_chain(logs_):
    for score in (masked_lm.pretraining_shift, masked_lm.language_association):
        p, q, r = logs_
        assert score(p, q).score == pytest.approx(-score(q, p).score, abs=1e-12)
        assert score(p, q).score + score(q, r).score == pytest.approx(score(p, r).score, abs=1e-10)
        assert score(p[::-1], q[::-1]).score == pytest.approx(score(p, q).score, abs=1e-12)
        assert score(p, p).score == 0
        twice = score(np.tile(p, 2), np.tile(q, 2))
        assert twice.score == pytest.approx(score(p, q).score, abs=1e-12)
        assert twice.n == 2 * len(p)


@property_of(masked_lm.visual_association, logs_=triples, base=logs, other=logs)
def test_visual_association_moves_with_the_base_and_lies_above_the_mean_of_logs(logs_, base, other):
    p = logs_[0]
    score = masked_lm.visual_association(p, base)
    moved = masked_lm.visual_association(p, other)
    assert score.score - moved.score == pytest.approx(other - base, abs=1e-10)
    assert p.min() - 1e-12 <= score.score + base <= p.max() + 1e-12
    mean_of_logs = masked_lm.language_association(p, np.full(len(p), base)).score
    assert score.score >= mean_of_logs - 1e-10
    mirrored = masked_lm.visual_association(p[::-1], base)
    assert mirrored.score == pytest.approx(score.score, abs=1e-12)


@property_of(masked_lm.bias_score, logs_=triples, base=logs, other=logs)
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


def audit_case(seed, k=3, n=40, g=3, d=6):
    """Return embeddings of captions and of images, and groups with members and others."""
    rng = np.random.default_rng(seed)
    groups = rng.random((n, g)) < 0.4
    groups[0], groups[1] = True, False
    return rng.normal(size=(k, d)), rng.normal(size=(n, d)), groups


def partition_case(seed, g=3, k=8, n=30, words=4):
    """Return the images retrieved, a partition of all images, and the composition."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(n) % g)[:, None] == np.arange(g)
    top = caption_association.top_k(rng.normal(size=(words, n)), k)
    return top, groups, caption_association.top_k_composition(top, groups)


@property_of(caption_association.c_asc, seed=seeds)
def test_c_asc_ignores_the_order_of_images_and_copies_of_the_whole(seed):
    text, image, groups = audit_case(seed)
    similarities = association.cosines(text, image)
    values = caption_association.c_asc(similarities, groups, ddof=0)
    order = np.random.default_rng(seed).permutation(len(image))
    moved = caption_association.c_asc(similarities[:, order], groups[order], ddof=0)
    np.testing.assert_allclose(moved, values, atol=1e-9)
    twice = caption_association.c_asc(np.tile(similarities, 2), np.tile(groups, (2, 1)), ddof=0)
    np.testing.assert_allclose(twice, values, atol=1e-9)


@property_of(caption_association.top_k, seed=seeds, k=st.integers(1, 20))
def test_the_nearest_images_are_nested_and_know_only_the_order(seed, k):
    similarities = np.random.default_rng(seed).integers(9, size=(3, 20)) / 4
    top = caption_association.top_k(similarities, k)
    everything = caption_association.top_k(similarities, 20)
    np.testing.assert_array_equal(top, everything[:, :k])
    np.testing.assert_array_equal(np.sort(everything), np.tile(np.arange(20), (3, 1)))
    np.testing.assert_array_equal(caption_association.top_k(np.exp(similarities), k), top)
    assert (np.diff(np.take_along_axis(similarities, everything, axis=1)) <= 0).all()


@property_of(caption_association.top_k_composition, seed=seeds, g=st.integers(2, 5))
def test_compositions_add_up(seed, g):
    top, groups, composition = partition_case(seed, g)
    np.testing.assert_array_equal(composition.counts.sum(axis=1), 8)
    np.testing.assert_allclose(composition.shares.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(composition.expected_shares.sum(), 1, atol=1e-12)
    united = np.column_stack([groups[:, 0] | groups[:, 1], ~groups[:, 0]])
    counts = caption_association.top_k_composition(top[:, ::-1], united).counts
    np.testing.assert_array_equal(counts[:, 0], composition.counts[:, :2].sum(axis=1))
    np.testing.assert_array_equal(counts[:, 1], 8 - composition.counts[:, 0])
    everyone = caption_association.top_k_composition([np.arange(30)], groups)
    np.testing.assert_array_equal(everyone.counts[0], composition.group_sizes)


@property_of(caption_association.entropy, seed=seeds, g=st.integers(2, 6), scale=stretches)
def test_entropy_is_largest_where_all_are_equal(seed, g, scale):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(g), size=2)
    first, second = caption_association.entropy(shares)
    assert caption_association.entropy(np.ones((1, g)))[0] == pytest.approx(1, abs=1e-12)
    assert max(first, second) <= 1
    np.testing.assert_allclose(
        caption_association.entropy(scale * shares[:, rng.permutation(g)]),
        [first, second],
        atol=1e-12,
    )
    mixture = caption_association.entropy([shares.mean(axis=0)])[0]
    assert mixture >= (first + second) / 2 - 1e-12


@property_of(caption_association.representation, seed=seeds, k=st.integers(1, 29))
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


@property_of(
    caption_association.skew_at_k,
    seed=seeds,
    g=st.integers(2, 5),
    smoothing=st.floats(0.1, 50),
)
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


@property_of(caption_selection.caption_probabilities, scores=choices, shift=shifts, scale=stretches)
def test_caption_probabilities_know_only_differences(scores, shift, scale):
    found = caption_selection.caption_probabilities(scores, scale)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    moved = caption_selection.caption_probabilities(scale * (scores + shift))
    np.testing.assert_allclose(moved, found, atol=1e-12)
    turned = caption_selection.caption_probabilities(scores[::-1, ::-1], scale)
    np.testing.assert_allclose(turned, found[::-1, ::-1], atol=1e-12)


@property_of(caption_selection.picks, scores=choices, ties=policies)
def test_picks_know_only_the_order_of_scores(scores, ties):
    found = caption_selection.picks(scores, ties)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(caption_selection.picks(scores**3 + 1, ties), found)
    np.testing.assert_array_equal(caption_selection.picks(scores[::-1], ties), found[::-1])
    picked = np.where(found > 0, scores, np.inf).min(axis=1)
    np.testing.assert_array_equal(picked, scores.max(axis=1))


@property_of(caption_selection.vlrs, caption_selection.vlbs, scores=choices, seed=seeds)
def test_selection_percentages_count_images_in_any_order(scores, seed):
    rng = np.random.default_rng(seed)
    opposite = rng.random(len(scores)) < 0.5
    opposite[0] = True
    order = rng.permutation(len(scores))
    relevant = caption_selection.vlrs(scores, "split")
    biased = caption_selection.vlbs(scores, opposite, "split")
    assert 0 <= relevant.value <= 100
    assert 0 <= biased.value <= 100
    moved = caption_selection.vlrs(scores[order], "split")
    assert moved.value == pytest.approx(relevant.value, abs=1e-9)
    moved = caption_selection.vlbs(scores[order], opposite[order], "split")
    assert moved.value == pytest.approx(biased.value, abs=1e-9)
    # Relevance does not ask which of the two; bias of the one and of the other make it up.
    exchanged = scores[:, [1, 0, 2]]
    mirrored = caption_selection.vlrs(exchanged, "split").value
    assert mirrored == pytest.approx(relevant.value, abs=1e-9)
    everyone = np.ones(len(scores), bool)
    both = [caption_selection.vlbs(each, everyone, "split").value for each in (scores, exchanged)]
    assert sum(both) == pytest.approx(relevant.value, abs=1e-9)


@property_of(
    caption_selection.ivlas, x=st.floats(0, 100), y=st.floats(0, 100), more=st.floats(0, 1)
)
def test_ivlas_lies_between_its_parts_and_rises_with_both(x, y, more):
    value = caption_selection.ivlas(x, y)
    assert min(x, 100 - y) - 1e-9 <= value <= max(x, 100 - y) + 1e-9
    assert caption_selection.ivlas(x + more * (100 - x), y) >= value - 1e-9
    assert caption_selection.ivlas(x, y * more) >= value - 1e-9
    assert caption_selection.ivlas(x, 100 - x) == pytest.approx(x, abs=1e-9)
    assert caption_selection.ivlas(100 - y, 100 - x) == pytest.approx(value, abs=1e-9)


@property_of(caption_selection.selection_scores, scores=choices, ties=policies, seed=seeds)
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


@property_of(caption_selection.reference_scores, opposite=st.lists(st.booleans(), max_size=9))
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


@property_of(
    caption_selection.two_way,
    scores=choices,
    scale=stretches,
    shift=shifts,
)
def test_two_way_probabilities_of_the_two_captions_add_up_to_one(scores, scale, shift):
    pair = scores[:, :2]
    found = caption_selection.two_way(pair, scale)
    other = caption_selection.two_way(pair[:, ::-1], scale)
    np.testing.assert_allclose(found.probability + other.probability, 1, atol=1e-12)
    moved = caption_selection.two_way(scale * (pair + shift))
    np.testing.assert_allclose(moved.log_probability, found.log_probability, atol=1e-9)
    assert found.scale == scale


@property_of(caption_selection.lmss, caption_selection.vlss, scores=choices)
def test_shifts_add_up_along_a_chain(scores):
    first, second, third = (
        caption_selection.two_way(scores[:, columns]) for columns in ([0, 1], [1, 2], [2, 0])
    )
    for shift in (caption_selection.lmss, caption_selection.vlss):
        chain = shift(first, second).values + shift(second, third).values
        np.testing.assert_allclose(chain, shift(first, third).values, atol=1e-12)
        np.testing.assert_array_equal(shift(second, first).values, -shift(first, second).values)


@property_of(caption_selection.percent_positive_without_bias, seed=seeds, less=st.floats(0, 0.9))
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


@property_of(inference.n_partitions, n_x=st.integers(1, 60), n_y=st.integers(1, 60))
def test_partitions_follow_pascal(n_x, n_y):
    without_one = inference.n_partitions(n_x - 1, n_y) + inference.n_partitions(n_x, n_y - 1)
    assert inference.n_partitions(n_x, n_y) == inference.n_partitions(n_y, n_x) == without_one


@property_of(
    inference.permutation_test,
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


@property_of(inference.permutation_p_values, seed=seeds, n_x=sizes, n_y=sizes, scale=stretches)
def test_many_permutation_tests_stand_side_by_side(seed, n_x, n_y, scale):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-8, 9, (4, n_x)) / 8, rng.integers(-8, 9, (4, n_y)) / 8
    together = inference.permutation_p_values(x, y)
    apart = [inference.permutation_test(a, b).p_value for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    np.testing.assert_array_equal(inference.permutation_p_values(x[::-1], y[::-1]), together[::-1])
    np.testing.assert_array_equal(inference.permutation_p_values(scale * x, scale * y), together)
    assert (together + inference.permutation_p_values(y, x) >= 1 - 1e-12).all()


@property_of(
    inference.relabelled_differences,
    x=scores_with_ties,
    y=scores_with_ties,
    shift=shifts,
    seed=seeds,
)
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


@property_of(inference.exchange_test, sets=six_sets(), scale=st.sampled_from([0.5, 1.0, 4.0]))
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


@property_of(inference.exchanged_statistics, sets=six_sets())
def test_exchanged_statistics_are_as_many_as_exchanges_and_hold_the_observed_one(sets):
    result = grounded(*sets, experiment=3)
    words = words_by_place(sets)
    values = inference.exchanged_statistics(result, words)
    test = inference.exchange_test(result, words)
    assert len(values) == test.n_partitions
    assert np.abs(values - test.statistic).min() < 1e-12
    assert np.mean(values >= test.statistic - 1e-9) == pytest.approx(test.p_value)


@property_of(
    inference.sign_flip_test,
    differences=st.lists(st.integers(-8, 8), min_size=1, max_size=9).map(np.array),
    scale=st.sampled_from([-4.0, -1.0, 0.5, 2.0]),
)
def test_sign_flips_know_neither_side_nor_size_nor_units_that_agree(differences, scale):
    found = inference.sign_flip_test(differences).p_value
    assert 2.0 ** (1 - np.count_nonzero(differences)) <= found <= 1 or not differences.any()
    assert inference.sign_flip_test(scale * differences[::-1]).p_value == found
    assert inference.sign_flip_test(np.append(differences, [0, 0])).p_value == found
    assert inference.sign_flip_test([0]).p_value == 1


@property_of(inference.grounded_permutation_test, scores=four_scores)
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


@property_of(
    inference.bootstrap,
    seed=seeds,
    scale=st.sampled_from([0.5, 4.0, -2.0]),
)
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


@property_of(inference.stratified_bootstrap, seed=seeds, scale=st.sampled_from([0.5, 4.0, -2.0]))
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


@property_of(inference.bootstrap_effect_size, seed=seeds, shift=shifts, stretch=stretches)
def test_intervals_of_effect_sizes_ignore_scale_and_turn_with_the_sign(seed, shift, stretch):
    cosines_a, cosines_b = np.random.default_rng(seed).uniform(-1, 1, (2, 10, 4))
    units = (range(5), range(5), range(4), range(4))

    def interval(first, second):
        return inference.bootstrap_effect_size(first, second, *units, n_resamples=200, rng=seed)

    found = interval(cosines_a, cosines_b)
    scores = (cosines_a - cosines_b).mean(axis=1)
    d = association.effect_size_of_scores(scores[:5], scores[5:])
    assert found.estimate == pytest.approx(d, abs=1e-9)
    assert -2 - 1e-9 <= found.low <= found.high <= 2 + 1e-9
    assert found.n_units == (5, 5, 4, 4)
    moved = interval(shift + stretch * cosines_a, shift + stretch * cosines_b)
    np.testing.assert_allclose(bounds(moved), bounds(found), atol=1e-6)
    turned = interval(-cosines_a, -cosines_b)
    np.testing.assert_allclose(bounds(turned), -bounds(found)[::-1], atol=1e-9)


@property_of(
    inference.largest_effect_size, seed=seeds, n_x=st.integers(1, 9), n_y=st.integers(2, 9)
)
def test_no_effect_size_is_larger_than_the_largest(seed, n_x, n_y):
    x, y = (np.random.default_rng([seed, n]).normal(size=n) for n in (n_x, n_y))
    largest = inference.largest_effect_size(n_x, n_y)
    assert abs(association.effect_size_of_scores(x, y, 1, require_equal=False)) <= largest + 1e-9
    assert inference.largest_effect_size(n_y, n_x) == pytest.approx(largest)


@property_of(inference.bootstrap_c_asc, seed=seeds, shift=shifts, stretch=stretches)
def test_intervals_of_c_asc_ignore_scale_and_turn_for_the_others(seed, shift, stretch):
    text, image, groups = audit_case(seed)
    similarities = association.cosines(text, image)

    def interval(scores, members):
        return inference.bootstrap_c_asc(scores, members, n_resamples=60, rng=seed)

    found = interval(similarities, groups)
    expected = caption_association.c_asc(similarities, groups)
    np.testing.assert_allclose(found.estimate, expected, atol=1e-9)
    assert (found.low <= found.high).all()
    moved = interval(shift + stretch * similarities, groups)
    np.testing.assert_allclose(bounds(moved), bounds(found), atol=1e-6)
    others = interval(similarities, ~groups)
    np.testing.assert_allclose(bounds(others), -bounds(found)[::-1], atol=1e-9)
    np.testing.assert_array_equal(bounds(interval(similarities, groups)), bounds(found))


@property_of(inference.bootstrap_top_k, seed=seeds, g=st.integers(2, 4), k=st.integers(1, 22))
def test_intervals_of_compositions_add_up_and_have_bounds(seed, g, k):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(30) % g)[:, None] == np.arange(g)
    ranking = caption_association.top_k(rng.normal(size=(3, 30)), 30)
    share, ratio, entropy = (
        inference.bootstrap_top_k(ranking, groups, k, statistic, n_resamples=60, rng=seed)
        for statistic in ("share", "ratio", "entropy")
    )
    composition = caption_association.top_k_composition(ranking[:, :k], groups)
    np.testing.assert_allclose(share.estimate, composition.shares, atol=1e-12)
    expected = composition.shares / composition.expected_shares
    np.testing.assert_allclose(ratio.estimate, expected, atol=1e-12)
    expected = caption_association.entropy(composition.counts)
    np.testing.assert_allclose(entropy.estimate, expected, atol=1e-12)
    np.testing.assert_allclose(share.values.sum(axis=2), 1, atol=1e-12)
    for each in (share, entropy):
        if each is entropy and k < 20:  # of so few it says nothing of others
            assert np.isnan([each.low, each.high]).all()
            continue
        assert ((each.low >= 0) & (each.low <= each.high) & (each.high <= 1)).all()
    renamed = inference.bootstrap_top_k(ranking, groups[:, ::-1], k, n_resamples=60, rng=seed)
    np.testing.assert_allclose(bounds(renamed), bounds(share)[:, :, ::-1], atol=1e-12)


@property_of(
    inference.bootstrap_selection, seed=seeds, statistic=st.sampled_from(["vlrs", "vlbs", "ivlas"])
)
def test_intervals_of_selection_scores_ignore_the_order_of_images(seed, statistic):
    rng = np.random.default_rng(seed)
    scores, triplets, order = rng.normal(size=(24, 3)), np.arange(24) % 8, rng.permutation(24)

    def interval(table, units):
        found = caption_selection.selection_scores(
            table, np.ones(24, bool), require_relevant=False
        )["overall"]
        return inference.bootstrap_selection(found, units, statistic, n_resamples=100, rng=seed)

    found = interval(scores, triplets)
    assert 0 <= found.low <= found.high <= 100
    np.testing.assert_allclose(bounds(interval(scores[order], triplets[order])), bounds(found))
    always = np.tile([3.0, 2.0, 1.0], (24, 1))
    constant = {"vlrs": 100, "vlbs": 100, "ivlas": 0}[statistic]
    same = interval(always, triplets)
    assert constant == pytest.approx(same.high if constant else same.low, abs=1e-9)
    assert 0 <= same.low < same.high <= 100


# Proportions, corrections, power, random attributes


@property_of(
    inference.proportion_interval,
    n=st.integers(1, 300),
    share=st.floats(0, 1),
    level=st.floats(0.5, 0.98),
)
def test_intervals_of_proportions_mirror_and_widen_and_rise(n, share, level):
    k = round(share * n)
    found, mirrored = (inference.proportion_interval(each, n, level) for each in (k, n - k))
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)
    wider = inference.proportion_interval(k, n, level + 0.01)
    assert wider.low <= found.low <= k / n <= found.high <= wider.high
    if k < n:
        more = inference.proportion_interval(k + 1, n, level)
        assert more.low >= found.low
        assert more.high >= found.high


@property_of(
    inference.rank_correlation_interval,
    r=st.floats(-1, 1),
    n=st.integers(5, 200),
)
def test_intervals_of_rank_correlations_mirror(r, n):
    low, high = inference.rank_correlation_interval(r, n)
    assert inference.rank_correlation_interval(-r, n) == pytest.approx((-high, -low))
    assert -1 <= low <= r <= high <= 1
    assert low < high


@property_of(inference.adjust, p=p_values, seed=seeds)
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


@property_of(
    inference.power,
    shift=st.floats(0, 3),
    n_x=st.integers(6, 40),
    n_y=st.integers(6, 40),
    more=st.floats(0, 1),
)
def test_power_rises_with_effect_size_level_and_targets(shift, n_x, n_y, more):
    found = inference.power(shift, n_x, n_y)
    assert 0 <= found <= 1
    least = 1 / math.comb(n_x + n_y, n_x)
    assert 0.05 - least - 1e-12 <= inference.power(0, n_x, n_y) <= 0.05 + 1e-12
    assert inference.power(shift, n_y, n_x) == pytest.approx(found, abs=1e-12)
    slack = 1e-9
    assert inference.power(shift + more, n_x, n_y) >= found - slack
    # The level attained may fall by one partition.
    assert inference.power(shift, n_x + 1, n_y) >= found - 20 * least - slack
    assert inference.power(shift, n_x, n_y, alpha=0.05 + more / 20) >= found - slack


@property_of(
    inference.minimum_detectable_effect,
    n_x=st.integers(8, 40),
    n_y=st.integers(8, 40),
    wanted=st.floats(0.3, 0.95),
)
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


@property_of(inference.random_attribute_null, seed=seeds, stretch=stretches, shift=shifts)
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
