"""Worlds that a seed draws: independent of each other."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import stats

import plantedworld
from plantedworld import Plan
from plantedworld._tables import CAPTION_GENDER, PICTURE_GENDER, TONE
from plantedworld._truth import planted_strengths
from plantedworld._words import counted

SEEDS = range(5_000, 5_012)
WORDS = plantedworld.content_words()


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
