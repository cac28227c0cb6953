"""Worlds that a seed draws: independent of each other, and what can be made harder in them."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import stats

import plantedworld
from biaslib import published
from biaslib.runtime import UnknownNameError
from plantedworld import Evidence, Plan
from plantedworld._tables import CAPTION_GENDER, PICTURE_GENDER, TONE
from plantedworld._truth import planted_strengths
from plantedworld._words import counted
from plantedworld.training import bert

SEEDS = range(5_000, 5_012)
WORDS = plantedworld.content_words()
SLOTS = WORDS["slot"].to_numpy()


def free_words(slots):
    """Words of some slots that are not the same in every world by intention."""
    rows = WORDS["slot"].isin(slots) & ~WORDS.index.isin(counted().index)
    return WORDS.index[rows].tolist()


def assert_independent(columns):
    """Correlations of columns, one a world, are those of independent numbers: Fisher's z."""
    n, every = columns.shape[0], np.corrcoef(columns, rowvar=False)
    z = np.arctanh([every[pair] for pair in itertools.combinations(range(len(every)), 2)])
    z = z * np.sqrt(n - 3)
    assert len(z) == 66
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert 0.7 < z.std() < 1.3
    assert np.abs(z).max() < 4


# Independence


@pytest.mark.parametrize("slots", [["role"], ["attribute"]])
@pytest.mark.parametrize("column", ["gender", "tone", "interaction", "shift"])
def test_what_two_seeds_plant_is_independent(slots, column):
    tables = [plantedworld.strengths(Plan(seed)).loc[free_words(slots), column] for seed in SEEDS]
    drawn = np.stack(tables, axis=1)
    # Words of a set share a sign, so that words alone are no independent units there.
    single = ~pandas.Index(free_words(slots)).isin(words_of_sets())
    if slots == ["role"] and column in ("tone", "interaction"):
        assert not drawn[single].any()
        return
    if slots == ["attribute"] and column == "shift":
        assert not drawn.any()
        return
    assert_independent(drawn[single])


def words_of_sets():
    from plantedworld._words import _words_of_sets

    return set(_words_of_sets()["word"])


def test_the_truths_of_two_worlds_are_independent():
    """By pairs of objects, whose two words have opposite signs by design."""
    firsts = plantedworld.object_pairs()["object"].tolist()[:23]
    roles = [word for word in free_words(["role"]) if word not in words_of_sets()]
    truths = [
        plantedworld.world(1, seed).truth.log_ratio([*roles, *firsts], given="picture")
        for seed in SEEDS
    ]
    assert_independent(np.stack(truths, axis=1))


def test_frequencies_of_two_worlds_are_independent():
    kept = [w for w in free_words(["role", "attribute"]) if w not in plantedworld.PICTURED_ROLES]
    every = [plantedworld.frequencies(Plan(seed))[kept] / WORDS["weight"][kept] for seed in SEEDS]
    drawn = np.log(np.stack(every, axis=1))
    assert_independent(drawn)
    assert drawn.std() == pytest.approx(0.35, rel=0.05)


def test_signs_of_sets_and_objects_are_fair_coins():
    seeds = range(6_000, 6_400)
    for name, purpose in (
        ("career and family", "gender"),
        ("occupations", "gender"),
        ("wine", "gender"),
    ):
        women = sum(Plan(seed).sign(name, purpose) > 0 for seed in seeds)
        assert stats.binomtest(women, len(seeds)).pvalue > 1e-4
    both = [
        (Plan(s).sign("career and family", "gender"), Plan(s).sign("career and family", "tone"))
        for s in seeds
    ]
    assert stats.fisher_exact(pandas.crosstab(*np.array(both).T)).pvalue > 1e-4


def test_an_object_and_its_partner_go_with_opposite_genders():
    for seed in SEEDS:
        gender = plantedworld.strengths(Plan(seed))["gender"]
        pairs = plantedworld.object_pairs().iloc[:23]
        one, other = gender[pairs["object"]].to_numpy(), gender[pairs["partner"]].to_numpy()
        assert (one * other < 0).all()
        assert np.abs(one).min() >= 0.3
        assert np.abs(one).max() <= 1.1


def test_every_pair_of_sets_is_left_out_by_some_seed_and_carries_nothing_there():
    left_out = pandas.Series([plantedworld.world(1, seed).control for seed in range(7_000, 7_400)])
    assert stats.chisquare(left_out.value_counts()).pvalue > 1e-4
    assert set(left_out) == set(plantedworld.controls())
    world = plantedworld.world(3, 7_000)
    words = plantedworld._words._words_of_pair(world.control)
    rows = pandas.DataFrame(world.truth.log_words, WORDS.index).loc[words]
    assert np.ptp(rows.to_numpy(), axis=1).max() < 1e-12


@pytest.mark.parametrize("seed", [5_000, 5_001])
def test_table_1_of_study_3_holds_at_dose_1_in_every_world(seed):
    printed = published.table("hamidieh2023", 1)
    words = printed["word"].str.lower().tolist()
    women = 1 / (1 + np.exp(-plantedworld.world(1, seed).truth.log_ratio(words, given="caption")))
    np.testing.assert_allclose(women, (printed["female"] / 100).to_numpy(), atol=1e-6)


def test_a_seed_gives_one_world_whatever_the_dose():
    one, other = (plantedworld.world(dose, 5_003) for dose in (1, 3))
    assert one.plan == other.plan
    assert (
        np.ptp(plantedworld.world(0, 5_003).truth.log_words[SLOTS != "agent"], axis=1).max() < 1e-12
    )


def test_log_ratios_of_a_drawn_world_are_those_of_samples():
    world = plantedworld.world(1, 5_004)
    rng = np.random.default_rng(1)
    scenes = world.scenes(300_000, rng)
    rows = pandas.concat([scenes, world.captions(scenes, rng)], axis=1)
    counts = pandas.crosstab(rows["content"], rows["gender"])[["woman", "man"]]
    counts = counts[(counts > 50).all(axis=1)]
    found = np.log(counts["woman"] / counts["man"])
    found -= np.log((rows["gender"] == "woman").sum() / (rows["gender"] == "man").sum())
    error = np.sqrt((1 / counts).sum(axis=1))
    z = (found - world.truth.log_ratio(counts.index.tolist(), "picture")) / error
    assert len(z) > 200
    assert np.abs(z).max() < 4.5
    assert (np.abs(z) > 2).mean() < 0.1


def test_captions_and_pictures_carry_a_word_in_shares_that_the_seed_draws():
    """Given one's gender, the other says its share of a word's log-odds: closed form."""
    world = plantedworld.world(2, 5_011)
    strength = planted_strengths(world.plan, "captions")
    rows = pandas.DataFrame(world.truth.log_words, WORDS.index)
    cells = {
        (p, c): np.flatnonzero((p == PICTURE_GENDER) & (c == CAPTION_GENDER) & (TONE == 3))[0]
        for p in (0, 1)
        for c in (0, 1)
    }
    objects = plantedworld.PICTURED_OBJECTS[:46]
    said = rows[cells[0, 0]] - rows[cells[0, 1]]
    seen = rows[cells[0, 0]] - rows[cells[1, 0]]
    share, gender = strength.loc[list(objects), "share"], strength.loc[list(objects), "gender"]
    for found, expected in ((said, 2 * share * gender), (seen, 2 * (1 - share) * gender)):
        gap = found[list(objects)] - expected
        assert np.ptp(gap) < 1e-9
    assert share.between(0, 1).all()
    assert stats.kstest(strength["share"], "uniform").pvalue > 1e-4


def test_what_goes_with_the_caption_and_with_the_picture_is_told_apart():
    """No rank correlation near 1 between the truths of the two, as it is in the other worlds."""
    for seed, most in ((0, 1.001), (5_000, 0.9), (5_001, 0.9)):
        truth = plantedworld.world(1, seed).truth
        firsts = list(plantedworld.PICTURED_OBJECTS[:46])
        rows = truth.log_words[plantedworld.word_indices(firsts)]
        at = np.flatnonzero(TONE == 3)
        woman, other, man = (
            rows[:, at[(PICTURE_GENDER[at] == p) & (CAPTION_GENDER[at] == c)]][:, 0]
            for p, c in ((0, 0), (0, 1), (1, 0))
        )
        assert stats.spearmanr(woman - other, woman - man).statistic < most


def test_samples_of_a_world_differ_in_what_is_drawn_and_not_in_what_is_planted(monkeypatch):
    first, second = (plantedworld.world(3, 5_000, sample=each) for each in (0, 1))
    assert first.training_seed == 5_000
    assert first.training_seed != second.training_seed
    assert np.array_equal(first.truth.log_words, second.truth.log_words)
    texts = [
        each.text_corpus(200, np.random.default_rng([each.training_seed, 1]))["text"].tolist()
        for each in (first, second)
    ]
    assert texts[0] != texts[1]
    few = bert.BertRecipe.first._replace(unseen=200)
    monkeypatch.setattr(bert.BertRecipe, "first", few)
    assert [
        bert.BertRecipe(each).captions.table["text"].tolist() for each in (first, second)
    ] == texts


# Harder worlds


def test_zipf_frequencies_are_crossed_with_strengths():
    plan = Plan(5_005, zipf=1.0)
    weight = plantedworld.frequencies(plan)
    for slot in ("role", "object", "attribute"):
        words = free_words([slot])
        sizes = np.sort(weight[words].to_numpy())[::-1]
        rank = np.argsort(np.argsort(-weight[words].to_numpy())) + 1
        slope = np.polyfit(np.log(rank), np.log(weight[words]), 1)[0]
        assert -1.3 < slope < -0.8
        assert sizes[0] > 15 * sizes[-1]
    ranks = [
        stats.spearmanr(
            plantedworld.frequencies(Plan(seed, zipf=1.0))[words],
            plantedworld.strengths(Plan(seed, zipf=1.0)).loc[words, "gender"],
        ).statistic
        for seed in range(8_000, 8_030)
        for words in [free_words(["role", "attribute"])]
    ]
    assert abs(np.mean(ranks)) < 4 * np.std(ranks) / np.sqrt(len(ranks))
    truth = plantedworld.world(1, 5_005, zipf=1.0).truth
    found = np.exp(np.logaddexp.reduce(truth.log_words + truth.design.log_cells, axis=1))
    share = found[SLOTS == "attribute"] / found[SLOTS == "attribute"].sum()
    own = weight[SLOTS == "attribute"]
    np.testing.assert_allclose(share, own / own.sum(), rtol=1e-9)


def test_an_intersection_shows_in_neither_gender_nor_tone_alone():
    world = plantedworld.world(1, 5_006, intersections=True)
    words = [word for word in free_words(["role", "object"]) if word not in words_of_sets()]
    strength = planted_strengths(world.plan, "captions").loc[words]
    assert not strength[["gender", "tone"]].to_numpy().any()
    assert strength["interaction"].abs().max() > 0.8
    # Other words of a slot make room: a ratio is that of all its planted words.
    for ratio in (world.truth.log_ratio(words), world.truth.tone_log_ratio(words)):
        assert np.abs(ratio - ratio.mean()).max() < 0.06
    rows = pandas.DataFrame(world.truth.log_words, WORDS.index).loc[words]
    at = {
        (g, t): np.flatnonzero((g == PICTURE_GENDER) & (g == CAPTION_GENDER) & (t == TONE))[0]
        for g in (0, 1)
        for t in (1, 5)
    }
    contrast = rows[at[0, 5]] - rows[at[0, 1]] - rows[at[1, 5]] + rows[at[1, 1]]
    gap = contrast - contrast.iloc[0]
    expected = 2 * (strength["interaction"] - strength["interaction"].iloc[0])
    for slot in ("role", "object"):
        kept = WORDS.loc[words, "slot"] == slot
        one, two = gap[kept], expected[kept]
        np.testing.assert_allclose(one - one.iloc[0], two - two.iloc[0], atol=1e-9)


@pytest.mark.parametrize("nuisance", plantedworld.NUISANCES)
def test_a_nuisance_goes_with_the_gender_and_the_truth_reckons_with_it(nuisance):
    world = plantedworld.world(1, 5_007, evidence=Evidence(nuisance=nuisance, nuisance_share=0.8))
    scenes = world.scenes(6_000, np.random.default_rng(2))
    people = scenes[scenes["person"]]
    first = plantedworld.first_half(people["layout"].to_numpy(), nuisance)
    women = (people["gender"] == "woman").to_numpy()
    assert first[women].mean() == pytest.approx(0.8, abs=0.025)
    assert first[~women].mean() == pytest.approx(0.2, abs=0.025)
    hidden = people[~people["gender_shown"] & ~people["role_shown"]]
    hidden = hidden[hidden["object_view"] == "hidden"]
    cells = np.exp(world.truth.log_cells_of_images(hidden))
    said = cells[:, PICTURE_GENDER == 0].sum(axis=1)
    half = plantedworld.first_half(hidden["layout"].to_numpy(), nuisance)
    # A costume and an object that are not there say a little too.
    assert said[half] == pytest.approx(0.8, abs=0.03)
    assert said[~half] == pytest.approx(0.2, abs=0.03)
    without = plantedworld.world(1, 5_007).truth.log_cells_of_images(hidden)
    assert np.exp(without)[:, PICTURE_GENDER == 0].sum(axis=1) == pytest.approx(0.5, abs=0.05)


def test_the_side_of_a_nuisance_is_that_of_the_drawing():
    world = plantedworld.world(1, 5_008, evidence=Evidence(nuisance="position", nuisance_share=0.9))
    scenes = world.scenes(300, np.random.default_rng(3))
    scenes = scenes[scenes["person"]]
    boxes = plantedworld.boxes(scenes)["person"]
    left = ((boxes["x0"] + boxes["x1"]) / 2 < 32).to_numpy()
    first = plantedworld.first_half(scenes["layout"].to_numpy(), "position")
    assert (left == first).mean() > 0.97


def test_ages_that_go_with_a_gender():
    world = plantedworld.world(1, 5_009, evidence=Evidence(older_share=0.8))
    scenes = world.scenes(20_000, np.random.default_rng(4))
    shares = pandas.crosstab(scenes["gender"], scenes["age"], normalize="index")
    assert shares.loc["man", "older"] == pytest.approx(0.24, abs=0.015)
    assert shares.loc["woman", "older"] == pytest.approx(0.06, abs=0.015)
    assert shares.loc["woman", "adult"] == pytest.approx(0.7, abs=0.015)
    kept = scenes["person"] & ~scenes["gender_shown"] & (scenes["age"] != "adult")
    hidden = scenes[kept & (scenes["object_view"] == "hidden")]
    cells = np.exp(world.truth.log_cells_of_images(hidden))
    said = cells[:, PICTURE_GENDER == 0].sum(axis=1)
    older = (hidden["age"] == "older").to_numpy()
    assert said[older] == pytest.approx(0.2, abs=0.03)
    assert said[~older] == pytest.approx(0.8, abs=0.03)


def test_images_have_probabilities_that_add_up_with_a_nuisance():
    """P(image) of both halves together is that of the world without the nuisance."""
    evidence = Evidence(nuisance="clothes", nuisance_share=0.8)
    with_it, without = plantedworld.world(1, 5_010, evidence=evidence), plantedworld.world(1, 5_010)
    scenes = without.scenes(40, np.random.default_rng(5))
    scenes = scenes[scenes["person"]]
    layouts = np.arange(200)
    half = plantedworld.first_half(layouts, "clothes")
    both = [
        with_it.truth.log_image(scenes.assign(layout=layouts[half == side][0]))
        for side in (True, False)
    ]
    np.testing.assert_allclose(np.logaddexp(*both), without.truth.log_image(scenes), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"evidence": Evidence(nuisance="hats")}, UnknownNameError, "unknown nuisance 'hats'"),
        ({"evidence": Evidence(nuisance_share=1.0)}, ValueError, "nuisance_share must be between"),
        ({"evidence": Evidence(older_share=0.0)}, ValueError, "older_share must be between"),
        ({"seed": 10}, ValueError, "seed 10 draws nothing, .*from 0 to 9, or from 2,000 on"),
        ({"seed": 1_999, "dose": 0, "zipf": 1.0}, ValueError, "seed 1999 draws nothing"),
        ({"seed": 50, "dose": 0, "intersections": True}, ValueError, "seed 50 draws nothing"),
        ({"seed": -1}, ValueError, "seed and sample must be 0 or more and are -1 and 0"),
    ],
)
def test_what_no_world_can_be_is_refused(options, error, told):
    with pytest.raises(error, match=told):
        plantedworld.world(**({"dose": 1, "seed": 5_000} | options))
