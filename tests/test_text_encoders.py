"""The study of text encoders: its parts against slow ones, its chapter's claims as values."""

import dataclasses

import numpy as np
import pandas
import pytest

from biaslib import inference, runtime, stimuli
from biaslib.inference._random_attributes import _uniform_draws
from biaslib.metrics.association import effect_size
from biaslib.stimuli import pool as word_pools
from biaslib.studies import text_encoders as study
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


def test_p_among_random_sets():
    effect_sizes = np.array([0.1, -0.5, 0.9])
    null = inference.RandomAttributeNull(np.empty((3, 0)), np.empty((3, 0)), effect_sizes)
    random = study.RandomAttributes("t", "word", null, np.ones(3), 20)
    assert random.p_value(0.5) == 3 / 4
    assert random.p_value(-2.0) == 1 / 4


# The pool of ordinary words


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
