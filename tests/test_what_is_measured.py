"""The chapter on constructs: one paper's numbers at two levels, and exercises that judge."""

import csv
from pathlib import Path

import numpy as np
import pytest

from companion import what_is_measured as chapter

TABLE = Path(__file__).parents[2] / "shared" / "tables" / "grounded_weat" / "effect_sizes.csv"


def test_two_levels_against_the_first_rows_of_the_printed_table():
    """C6 in Table 3 of Ross et al."""
    effects = chapter.two_levels(3).query("test == 'C6'").set_index("model")
    order = ["VisualBERT", "ViLBERT", "LXMERT", "VL-BERT"]
    assert effects.loc[order, "word"].tolist() == [0.57, 1.04, 0.55, 1.61]
    assert effects.loc[order, "sentence"].tolist() == [-0.18, 0.98, 0.69, -0.02]


def test_agreement_counts_signs_and_ranks():
    effects = (
        chapter.two_levels(3)
        .iloc[:4]
        .assign(model="a", word=[1.0, -1.0, 0.5, 0.2], sentence=[2.0, -0.1, 0.4, -0.3])
    )
    found = chapter.agreement(effects)
    assert found["same sign"].tolist() == [3, 3]
    assert found["n"].tolist() == [4, 4]
    # Ranks 4, 1, 3, 2 against 4, 2, 3, 1: squared differences sum to 2, so 1 - 6 * 2 / 60.
    assert found["rank correlation"].tolist() == pytest.approx([0.8, 0.8])


def test_shares_have_margins_of_counts_and_not_of_shares():
    table = chapter.shares_table([[9, 1], [1, 0]], [[10, 10], [2, 8]], "ab", "cd")
    assert table["all"].tolist() == pytest.approx([0.5, 0.1, 11 / 30])
    assert table["c"].tolist() == pytest.approx([0.9, 0.5, 10 / 12])


def right(hits, people):
    rows, columns = hits.sum(1) / people.sum(1), hits.sum(0) / people.sum(0)
    (a, b), (c, d) = hits / people
    return rows[0] - rows[1], columns[0] - columns[1], a - b - c + d


def means_of_shares(hits, people):
    shares = hits / people
    return (
        np.subtract(*shares.mean(axis=1)),
        np.subtract(*shares.mean(axis=0)),
        right(hits, people)[2],
    )


@pytest.mark.parametrize(
    "wrong",
    [
        means_of_shares,
        lambda hits, people: (*right(hits, people)[:2], -right(hits, people)[2]),
        lambda hits, people: right(hits, np.ones_like(people)),
        lambda hits, people: right(hits.T, people.T),
        lambda hits, people: None,
        lambda hits, people: hits / 0,
        lambda hits, people: 1 // 0,
    ],
)
def test_margins_that_are_wrong_are_not_right(wrong):
    with np.errstate(divide="ignore"):
        assert not chapter.check_margins(wrong).passed


@pytest.mark.parametrize(
    "chosen", [{"a", "b"}, {"b", "e", "d"}, {"b", "c", "e"}, {"e", "f"}, {"b"}, set()]
)
def test_sentences_that_a_score_does_not_bear_are_not_right(chosen):
    assert not chapter.check_borne(chosen).passed


def test_the_same_counts_from_a_transcription_by_somebody_else():
    if not TABLE.is_file():
        pytest.skip("needs the shared tables")
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "3" and row["effect_size"]]
    d = {(row["test"], row["model"], row["level"]): float(row["effect_size"]) for row in rows}
    pairs = [(d[(*key[:2], "W")], value) for key, value in d.items() if key[2] == "S"]
    assert len(pairs) == 51  # C8 has a dash for LXMERT at sentence level
    assert sum(x * y > 0 or x == y == 0 for x, y in pairs) == 39
