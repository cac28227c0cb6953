"""The panel of association tests: it carries the scores and needs no kernel."""

import numpy as np
import pytest

from biaslib import display, inference
from biaslib.studies import text_encoders as study
from companion import text_encoders as plots

DIVISORS = {1: "n − 1 (ddof 1)", 0: "n (ddof 0)"}


@pytest.fixture(scope="module")
def scores_and_random(encoder):
    scores, embedded = study.run(encoder, ["C6", "C8"], ["word", "contextual"], n_bootstrap=200)
    empty = np.empty((101, 0))
    null = inference.RandomAttributeNull(empty, empty, np.linspace(-1.5, 1.5, 101))
    random = [study.RandomAttributes(e.name, e.level, null, np.ones(101)) for e in embedded]
    return scores, embedded, random


@pytest.fixture(scope="module")
def panel(scores_and_random):
    return plots.panel(*scores_and_random)


def drawn(panel, *chosen):
    """Return the two histograms and the place of the test."""
    (drawing,) = panel.drawings(*chosen)
    relabelled, random, rule = drawing.as_dict()["marks"]
    return relabelled, random, rule["x"][0]


def test_the_page_carries_the_scores(panel, scores_and_random):
    scores, _, random = scores_and_random
    assert len(panel.cases) == 2 * len(scores)
    for row, sets in zip(scores.to_dict("records"), random, strict=True):
        for ddof, column in ((1, "value"), (0, "value_ddof0")):
            chosen = row["test"], row["level"], DIVISORS[ddof]
            relabelled, by_words, d = drawn(panel, *chosen)
            assert d == pytest.approx(row[column], abs=5e-4)
            assert sum(relabelled["y"]) == pytest.approx(1, abs=2e-3)
            assert sum(by_words["y"]) == pytest.approx(1, abs=2e-3)
            stretch, sentence = row[column] / row["value"], panel.sentence(*chosen)
            assert f"d = {display.signed(row[column])}" in sentence
            assert f"interval {display.signed(stretch * row['low'])} to" in sentence
            assert f"{row['n_words']} words a side" in sentence
            assert f"in {row['p_value_words']:.1%} of partitions" in sentence
            assert f"in {sets.p_value(row['value']):.1%} of 101 sets" in sentence
            assert f"±{stretch * sets.quantile():.2f}" in sentence


def test_another_divisor_moves_the_test_and_its_histograms_together(panel):
    ends = [drawn(panel, "C6", "contextual", DIVISORS[ddof]) for ddof in (1, 0)]
    assert ends[1][2] > ends[0][2] > 0
    assert ends[1][1]["x"][0] <= ends[0][1]["x"][0] <= -1.4
