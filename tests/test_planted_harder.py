"""Harder worlds, as the oracle answers: against closed forms."""

import numpy as np
import pandas
import pytest

from companion import planted_harder as plots
from plantedworld.studies import harder


def slope(scores, measure="logit"):
    rows = scores[scores["measure"] == measure]
    return np.polyfit(rows["truth"], rows["value"], 1)[0]


def option(name):
    return next(each for each in harder.OPTIONS if each.name == name)


def test_as_it_is_the_oracle_finds_all():
    scores = harder.oracle_scores(option("as it is"), 2_000)
    assert slope(scores) == pytest.approx(1.0, abs=1e-3)
    assert slope(scores, "masked") == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("clothes, gender not shown", "clothes go with the gender"),
        ("age, gender not shown", "age goes with the gender"),
    ],
)
def test_what_goes_with_the_gender_carries_a_score_where_the_gender_is_not_shown(name, same):
    """With a small dose the slope is the square of 2s - 1: once for the picture, once for who."""
    scores = harder.oracle_scores(option(name), 2_000, dose=0.1, n_per_cell=120)
    assert slope(scores) == pytest.approx((2 * harder.SHARE - 1) ** 2, abs=0.06)
    shown = harder.oracle_scores(option(same), 2_000, dose=0.1)
    assert slope(shown) == pytest.approx(1.0, abs=1e-3)


def test_wrong_labels_shrink_the_slope_by_twice_their_share():
    scores = harder.oracle_scores(option("noisy labels"), 2_000, n_per_cell=150)
    assert slope(scores) == pytest.approx(1 - 2 * harder.WRONG, abs=0.05)


def test_annotators_are_wrong_and_silent_as_often_as_they_are_said_to_be():
    gender = np.repeat(["woman", "man"], [8_000, 4_000])
    said = harder.annotated(gender, np.random.default_rng(0))
    named = said != "not said"
    assert (~named).mean() == pytest.approx(harder.UNSAID, abs=0.01)
    assert (said[named] != gender[named]).mean() == pytest.approx(harder.WRONG, abs=0.01)
    assert set(said) == set(harder.SAID)
    assert np.array_equal(harder.annotated(gender, np.random.default_rng(0), 0, 0), gender)


def test_an_intersection_is_found_by_comparing_intersections_alone():
    found = harder.intersections([2_000, 2_001]).set_index("groups")
    assert found.loc["women against men", "size"] < 0.2
    assert found.loc["tone 5 against tone 1", "size"] < 0.2
    assert found.loc["women of tone 5 against men of tone 5", "size"] > 1.2
    assert found.loc["women of tone 5 against men of tone 5", "rank"] > 0.97
    assert found.loc["women of tone 1 against men of tone 1", "rank"] < -0.97


def test_a_count_errs_most_on_rare_words():
    """Poisson: the error of a log ratio is about sqrt(1 / women + 1 / men)."""
    found = harder.by_frequency(range(2_000, 2_012)).set_index(["zipf", "third"])
    assert found.loc[(1.0, "rarest"), "error"] > 2 * found.loc[(1.0, "commonest"), "error"]
    assert found.loc[(1.0, "rarest"), "extreme"] > 0.4
    assert abs(found.loc[(0.0, "rarest"), "extreme"] - 1 / 3) < 0.1
    assert found.groupby("zipf")["extreme"].sum().tolist() == pytest.approx([1.0, 1.0])


def test_figure_table_and_sentence_say_the_numbers():
    summary = harder.summary([2_000, 2_001])
    frequency = pandas.DataFrame(
        {
            "zipf": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            "third": [*harder.THIRDS] * 2,
            "error": 0.1,
            "low": 0.0,
            "high": 0.2,
            "n": 2,
            "extreme": [0.3, 0.3, 0.4, 0.5, 0.3, 0.2],
        }
    )
    crossed = harder.intersections([2_000])
    told = plots.sentence(summary, frequency, crossed)
    rows = summary[summary["measure"] == "logit"].set_index("option")["slope"]
    assert f"has still a slope of {rows['clothes, gender not shown']:.2f}" in told
    assert "makes up 50% of the tenth" in told
    assert "(30% where frequencies are nearly alike)" in told
    assert "off by 0.10 log-odds for the rarest third" in told
    order = summary[summary["measure"] == "c_asc"].set_index("option")["rank within signs"]
    fallen = [order[f"{name}, gender not shown"] for name in ("clothes", "age")]
    assert f"falls from {order['as it is']:.2f} to {fallen[0]:.2f} and {fallen[1]:.2f}" in told
    size = crossed.set_index("groups")["size"]
    assert f"comparing genders (size {size['women against men']:.2f})" in told
    table = plots.options_table(summary)
    assert len(table) == len(harder.OPTIONS) * 4
    assert table.loc[table["measure"].str.contains("C-ASC"), "slope"].isna().all()
    assert len(plots.options_figure(summary).axes) == 2
