"""Every analysis of a test: the choices change what they say they change, and nothing else."""

import itertools

import numpy as np
import pandas
import pytest

from biaslib import inference
from biaslib.studies import text_encoders
from companion import text_encoders as plots

CARRIER, UNIT, NULL, CORRECTION, WORDS, DIVISOR = plots.CHOICES


@pytest.fixture(scope="module")
def found():
    """Three tests in three carriers and one in SEAT's sentences, with p-values made up for them."""
    rng, rows = np.random.default_rng(4), []
    carriers = list(plots.SENTENCES.values())
    for carrier, words in itertools.product(carriers, plots.CHOICES[WORDS]):
        for test in ("C6",) if carrier == carriers[-1] else ("C3", "C6", "C8"):
            value, p = rng.uniform(-1, 1), rng.uniform(0, 0.06, 3)
            row = {"test": test, "sentences": carrier, "words": words, "value": value}
            rows.append(row | {"value_ddof0": 1.1 * value} | dict(zip(P_VALUES, p, strict=True)))
    return pandas.DataFrame(rows)


P_VALUES = ("p_items", "p_words", "p_random")


@pytest.fixture(scope="module")
def every(found):
    return plots.all_analyses(found)


def test_every_combination_of_choices_is_there_once(every):
    n = int(np.prod([len(values) for values in plots.CHOICES.values()]))
    counts = every.groupby("test").size()
    assert counts.to_dict() == {"C3": n * 3 // 4, "C6": n, "C8": n * 3 // 4}
    assert not every.duplicated(["test", *plots.CHOICES]).any()


def test_the_divisor_changes_d_and_no_p_value(every):
    keys = [CARRIER, UNIT, NULL, CORRECTION, WORDS]
    one, other = (
        every[every[DIVISOR] == name].set_index(["test", *keys]).sort_index()
        for name in plots.CHOICES[DIVISOR]
    )
    assert one["p"].equals(other["p"])
    assert np.allclose(other["value"], 1.1 * one["value"])


def test_corrections_are_over_tests_that_were_treated_alike(found, every):
    chosen = {CARRIER: "our sentences", UNIT: "every word", NULL: "relabelled targets"}
    chosen |= {WORDS: "all", DIVISOR: "n"}
    rows = every.loc[(every[list(chosen)] == pandas.Series(chosen)).all(axis=1)]
    raw = found.query("sentences == 'our sentences' and words == 'all'").set_index("test")
    holm = rows[rows[CORRECTION] == "Holm"].set_index("test")["p"]
    assert holm.to_dict() == pytest.approx(
        dict(zip(raw.index, inference.adjust(raw["p_words"], "holm"), strict=True))
    )


def test_sentences_of_seat_take_the_place_of_ours_in_a_correction(found, every):
    ours = found.query("sentences == 'our sentences' and words == 'all'").set_index("test")
    seat = found.query("sentences == \"SEAT's sentences\" and words == 'all'").set_index("test")
    family = [ours.loc["C3", "p_items"], seat.loc["C6", "p_items"], ours.loc["C8", "p_items"]]
    chosen = {CARRIER: "SEAT's sentences", UNIT: "every sentence", NULL: "relabelled targets"}
    chosen |= {CORRECTION: "Benjamini and Hochberg", WORDS: "all", DIVISOR: "n − 1"}
    (p,) = every.loc[(every[list(chosen)] == pandas.Series(chosen)).all(axis=1), "p"]
    assert p == pytest.approx(inference.adjust(family, "bh")[1])


def made_up(n_attributes=4, n_sentences=2):
    rng = np.random.default_rng(1)
    words = {"X": "ab", "Y": "cd", "A": "efgh"[:n_attributes], "B": "ijkl"[:n_attributes]}
    words = {role: tuple(np.repeat(list(each), n_sentences)) for role, each in words.items()}
    kinds = {role: ("name",) * len(each) for role, each in words.items()}
    rows = {role: rng.normal(size=(len(each), 3)) for role, each in words.items()}
    return text_encoders.EmbeddedTest("made up", "sentence", rows, words, kinds)


def test_half_of_the_attribute_words_takes_their_sentences_along():
    whole = made_up()
    every, first, second = (plots.half(whole, which) for which in plots.CHOICES[WORDS])
    assert every is whole
    assert (first.words["A"], second.words["B"]) == (("e", "e", "f", "f"), ("k", "k", "l", "l"))
    assert np.array_equal(second.embeddings["B"], whole.embeddings["B"][4:])
    assert np.array_equal(first.targets, whole.targets)


@pytest.fixture(scope="module")
def of_c6(encoder):
    tests = {
        level: text_encoders.embed_tests(encoder, ["C6"], level) for level in ("word", "sentence")
    }
    pool = pandas.DataFrame({"word": POOL, "kind": "count noun", "zipf": 4.0, "length": 5})
    pools = text_encoders.embed_pools(encoder, pool, tests)
    return tests, pools


POOL = ["table", "river", "stone", "bread", "cloud", "engine", "ticket", "basket", "ladder"]
POOL += ["window", "carpet", "button", "pencil", "garden", "bridge", "candle", "bottle", "mirror"]


def test_the_p_values_are_those_of_the_chapter(of_c6, monkeypatch):
    tests, pools = of_c6
    draw = text_encoders.random_null
    monkeypatch.setattr(text_encoders, "random_null", lambda *a, **k: draw(*a, **k, matched=False))
    found = plots.p_values_by_choice(tests, pools, n_sets=50).set_index(["sentences", "words"])
    each = tests["sentence"][0]
    row = found.loc[("our sentences", "all")]
    score = text_encoders.score(each, n_bootstrap=20)
    assert row["value"] == pytest.approx(score["value"])
    assert row["value_ddof0"] == pytest.approx(score["value_ddof0"])
    assert row["p_items"] == pytest.approx(score["p_value_paper"])
    assert row["p_words"] == pytest.approx(score["p_value"])
    word = found.loc[("the word alone", "all")]
    assert word["p_items"] == word["p_words"]
    assert found["p_random"].between(1 / 51, 1).all()


def test_switches_ask_more_and_more():
    scores = pandas.DataFrame(
        {
            "test": ["C6", "C8", "C3", "ABW"],
            "level": "word",
            "value": [1.5, 1.0, 0.7, 0.1],
            "p_value_paper": [0.001, 0.002, 0.02, 0.3],
            "p_value": [0.001, 0.004, 0.06, 0.3],
        }
    )
    placed = pandas.DataFrame({"p_random": [0.001, 0.3, 0.4, 0.9]})
    assert plots.four_counts(scores, placed) == [3, 2, 2, 1]
    assert plots.significant(scores, placed, False, False, True).tolist() == [True] + 3 * [False]
