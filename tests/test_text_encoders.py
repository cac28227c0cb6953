"""The study of text encoders: its parts against slow ones, its chapter's claims as values."""

import dataclasses
import itertools
import re

import numpy as np
import pandas
import pytest
from scipy import stats

from biaslib import inference, runtime, stimuli
from biaslib.inference._random_attributes import _uniform_draws
from biaslib.metrics.association import effect_size
from biaslib.stimuli import pool as word_pools
from biaslib.studies import text_encoders as study
from biaslib.studies.scores import COLUMNS
from companion import text_encoders as plots


class ToyEncoder:
    """Embeds a text by hashing its letters: cheap, repeatable, meaningless."""

    name, revision = "toy", "0"

    def embed(self, texts, level="sentence", words=None):
        keys = texts if words is None else [f"{t}|{w}" for t, w in zip(texts, words, strict=True)]
        seeds = [sum(ord(c) * 31**i for i, c in enumerate(key)) % 2**32 for key in keys]
        return np.stack([np.random.default_rng(seed).normal(size=24) for seed in seeds])


@pytest.fixture(scope="module")
def toy():
    return ToyEncoder()


def test_scores_agree_with_the_metrics(toy):
    scores, embedded = study.run(toy, ["C6", "C8"], ["word", "sentence"], n_bootstrap=50)
    for row, each in zip(scores.to_dict("records"), embedded, strict=True):
        assert (row["test"], row["level"]) == (each.name, each.level)
        sets = [each.embeddings[s] for s in "XYAB"]
        assert row["value"] == pytest.approx(effect_size(*sets), abs=1e-12)
        assert row["value_ddof0"] == pytest.approx(effect_size(*sets, ddof=0), abs=1e-12)
        assert row["low"] < row["high"]


def test_attributes_of_the_same_directions_leave_the_effect_size_undefined(toy):
    """Rounding alone tells the scores apart: no d, and no p-value of what is not there."""
    each = study.embed_tests(toy, ["C6"], "word")[0]
    first, words = each.embeddings["A"], each.words["A"]
    same = dataclasses.replace(
        each,
        embeddings=each.embeddings | {"B": 3 * first},
        words=each.words | {"B": words},
        kinds=each.kinds | {"B": each.kinds["A"]},
    )
    assert 0 < np.ptp(same.scores) < 1e-15
    pools = study.embed_pools(toy, word_pools.word_pool(300, rng=0), ["word"])
    for ask in (
        same.effect_size,
        lambda: study.score(same, n_bootstrap=20),
        lambda: plots._p_values(same, pools["word"], 10, 0),
    ):
        with pytest.raises(ValueError, match="all targets have the same score"):
            ask()


def test_items_stay_with_their_words(toy):
    _, (each,) = study.run(toy, ["C6"], ["contextual"], n_bootstrap=50)
    test = stimuli.association_test("C6", "contextual")
    for s in "XYAB":
        expected = toy.embed(getattr(test, s), level="contextual", words=test.words[s])
        np.testing.assert_array_equal(each.embeddings[s], expected)


def test_word_scores_are_means_over_sentences(toy):
    each = study.embed_tests(toy, ["C6"], "sentence")[0]
    frame = pandas.DataFrame({"word": each.words["X"], "score": each.split(each.scores)[0]})
    np.testing.assert_allclose(
        each.word_scores()[0], frame.groupby("word", sort=False)["score"].mean()
    )


def test_p_values_over_rows_are_corrected(toy):
    scores, _ = study.run(toy, ["C6", "C8", "C11"], ["word"], n_bootstrap=50)
    np.testing.assert_allclose(scores["p_holm"], inference.adjust(scores["p_value"], "holm"))


def test_random_attributes_agree_with_a_slow_computation(toy):
    """Redraw the same sets, embed their sentences again, and use the metric itself."""
    words = word_pools.word_pool(200, rng=0)
    embedded = study.embed_tests(toy, ["C6"], "sentence")[0]
    pool = study.embed_pools(toy, words, ["sentence"])["sentence"]
    found = study.random_attributes(embedded, pool, n_sets=4, matched=False, seed=3)
    drawn = _uniform_draws(len(words), 16, 4, np.random.default_rng(3))
    for positions, value in zip(drawn, found.effect_sizes, strict=True):
        rows = [
            toy.embed(stimuli.sentences(words.at[i, "word"], words.at[i, "kind"]))
            for i in positions
        ]
        A, B = np.concatenate(rows[:8]), np.concatenate(rows[8:])
        slow = effect_size(embedded.embeddings["X"], embedded.embeddings["Y"], A, B)
        assert abs(value) == pytest.approx(abs(slow), abs=1e-9)


def test_targets_without_clusters_are_rejected_at_the_nominal_rate(toy):
    """Where the targets are exchangeable by construction, the test keeps its level."""
    words = word_pools.word_pool(300, rng=0)
    embedded = study.embed_tests(toy, ["C6"], "word")[0]
    random = study.random_attributes(
        embedded, study.embed_pools(toy, words, ["word"])["word"], n_sets=2_000
    )
    assert random.rejection_rate() == pytest.approx(0.05, abs=0.03)
    assert plots.separability(embedded) < 0.8


def test_a_planted_cluster_makes_random_attributes_significant(toy):
    """Shift all of X by one vector: no attribute is involved, and the test cries wolf."""
    words = word_pools.word_pool(300, rng=0)
    embedded = study.embed_tests(toy, ["C6"], "word")[0]
    embedded.embeddings["X"] = embedded.embeddings["X"] + 5.0 * np.eye(24)[0]
    shifted = study.EmbeddedTest("C6", "word", embedded.embeddings, embedded.words, embedded.kinds)
    random = study.random_attributes(
        shifted, study.embed_pools(toy, words, ["word"])["word"], n_sets=2_000
    )
    assert plots.separability(shifted) > 0.85
    assert random.rejection_rate() > 0.10
    assert random.rejection_rate(both_sides=True) > 0.20


def test_every_item_is_a_unit_of_the_papers_p_value_on_either_side():
    """X has four words, Y two of two sentences each: all 70 deals of eight items, all 15 of six."""
    rng, kinds = np.random.default_rng(1), {"X": 4, "Y": 4, "A": 3, "B": 3}
    words = {"X": list("abcd"), "Y": list("eeff"), "A": list("pqr"), "B": list("uvw")}
    vectors = {role: rng.normal(size=(n, 6)) for role, n in kinds.items()}
    row = study.score(study.EmbeddedTest("t", "sentence", vectors, words, words), n_bootstrap=20)
    unit = {role: each / np.linalg.norm(each, axis=1)[:, None] for role, each in vectors.items()}
    items = np.concatenate([unit["X"], unit["Y"]]) @ (unit["A"].mean(0) - unit["B"].mean(0))
    by_word = np.append(items[:4], items[4:].reshape(2, 2).mean(axis=1))
    for scores, name in ((items, "p_value_paper"), (by_word, "p_value")):
        deals = [sum(each) for each in itertools.combinations(scores, 4)]
        share = np.mean(np.array(deals) >= scores[:4].sum() - 1e-12)
        assert row[name] == pytest.approx(share)
    assert (row["n"], row["n_texts"]) == (6, 8)


def test_scores_have_the_columns_of_every_study(toy):
    scores, _ = study.run(toy, ["C6"], ["word"], n_bootstrap=20)
    assert list(scores.columns[: len(COLUMNS)]) == list(COLUMNS)
    assert scores[["profile", "n", "n_texts"]].to_numpy().tolist() == [["planted", 16, 16]]


@pytest.mark.parametrize(("n", "alpha"), [(3, 0.05), (4, 0.05), (5, 0.05), (5, 0.1)])
def test_a_test_on_both_sides_rejects_what_either_side_does(n, alpha):
    """Of n items a side whose sums all differ: ranks of the sums, from above and from below."""
    scores = 2.0 ** np.arange(2 * n)  # no two sums are equal
    deals = [np.isin(np.arange(2 * n), each) for each in itertools.combinations(range(2 * n), n)]
    x, y = (np.stack([scores[own == side] for own in deals]) for side in (True, False))
    upper, lower = (stats.rankdata(by * x.sum(axis=1)) / len(deals) for by in (-1, 1))
    null = inference.RandomAttributeNull(x, y, np.zeros(len(deals)))
    p_values = inference.permutation_p_values(x, y)
    np.testing.assert_allclose(p_values, upper)
    random = study.RandomAttributes("t", "word", null, p_values, len(deals))
    assert random.rejection_rate(alpha) == np.mean(upper < alpha)
    assert random.rejection_rate(alpha, both_sides=True) == np.mean(
        (upper < alpha) | (lower < alpha)
    )


def test_p_among_random_sets():
    effect_sizes = np.array([0.1, -0.5, 0.9])
    null = inference.RandomAttributeNull(np.empty((3, 0)), np.empty((3, 0)), effect_sizes)
    random = study.RandomAttributes("t", "word", null, np.ones(3), 20)
    assert random.p_value(0.5) == 3 / 4
    assert random.p_value(-2.0) == 1 / 4


# The pool of ordinary words


def test_no_random_word_names_a_gender_or_abuses():
    """What a reading of the pool found, and the partners of words that are left out."""
    kept, left_out = set(word_pools.word_pool()["word"]), word_pools.left_out_words()
    seen = "madam mama nanny clergyman councilman craftsman gunman sportsman sultan pope sire bull "
    seen += "cow bra brotherhood knight ram mare widowed bridal diva virgin sheikh butler valet "
    seen += "dyke pimp brothel slag midget moron cripple gypsy hoe boner"
    assert kept.isdisjoint(seen.split())
    partners = "waiter waitress wizard witch god goddess host hostess steward stewardess master "
    partners += "mistress actor actress heir heiress monk nun bull cow ram sow stag tsar"
    assert set(partners.split()) <= left_out
    persons = re.compile("(man|woman|lady|girl|boy|mother|father|master)$")
    assert {word for word in kept if persons.search(word)} == {"human", "inhuman", "shaman"}


def test_matched_words_are_alike():
    pool = word_pools.word_pool()
    words, kinds = ["lawyer", "career", "gentle"], ["count noun", "mass noun", "adjective"]
    drawn = word_pools.draw_matched(words, kinds, pool, 500, np.random.default_rng(0))
    for column, (word, kind) in enumerate(zip(words, kinds, strict=True)):
        replacements = pool.iloc[drawn[:, column]]
        wanted = "adjective" if kind == "adjective" else "count noun"
        assert set(replacements["kind"]) == {wanted}
        assert (replacements["frequency"] - word_pools.word_frequency(word)).abs().max() < 1.0
        assert (replacements["length"] - len(word)).abs().max() <= 2
    assert all(len(set(row)) == 3 for row in drawn)


def test_the_pool_leaves_out_what_is_tested():
    pool = set(word_pools.word_pool(exclude=["Nurse", "career"])["word"])
    assert not pool & {"nurse", "career", "woman", "actress", "john", "emily", "keisha"}
    assert {"table", "engine"} <= pool


@pytest.mark.parametrize("level", study.LEVELS)
def test_stored_embeddings_are_those_of_the_encoder(encoder, level, tmp_path):
    store = runtime.Store(tmp_path)
    plain, first, again = (
        study.embed_tests(encoder, ["C6"], level, each)[0] for each in (None, store, store)
    )
    for each in "XYAB":
        np.testing.assert_allclose(first.embeddings[each], plain.embeddings[each], atol=1e-6)
        np.testing.assert_array_equal(again.embeddings[each], first.embeddings[each])


@pytest.mark.parametrize(("name", "expected"), [("C3", 0.3332), ("C6", 1.2938)])
def test_published_sentences_give_what_an_independent_reading_gave(
    encoder, name, expected, tmp_path
):
    """The expected values were computed outside this project from the released sentences."""
    store = runtime.Store(tmp_path)
    embedded = study.embed_tests(encoder, [stimuli.seat_test(name)], "sentence", store)[0]
    found = effect_size(*(embedded.embeddings[each] for each in "XYAB"))
    assert found == pytest.approx(expected, abs=5e-5)
