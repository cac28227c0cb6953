"""What the checks of Zhou, Lai and Jiang (2022) find in changed tables, and in runs."""

import pandas
import pytest

from biaslib import ledger
from biaslib.ledger import CHECKS, Evidence, NoEvidenceError
from biaslib.ledger._claims_zhou2022 import CATEGORIES, MODELS
from biaslib.published._tables import _file

IN_PART, NOT = "in part", "does not follow"


def ask(n, of):
    return CHECKS[f"zhou2022/claim/{n}"](of)


def changed(table, stem="zhou2022_scores"):
    """Return the printed tables with another one in the place of one."""
    return Evidence({**ledger.printed("zhou2022"), stem: table})


def with_scores(metric, values, category=None):
    """Return the printed tables with other scores: one for all of a metric, or by model."""
    table = _file("zhou2022_scores").copy()
    rows = (table["metric"] == metric) & table["model"].isin(MODELS)
    if category:
        rows &= table["category"] == category
    new = table["model"].map(values) if isinstance(values, dict) else values
    table["value"] = table["value"].mask(rows & pandas.notna(new), new)
    return changed(table)


@pytest.mark.parametrize(
    ("n", "metric", "values", "category", "expected"),
    [
        (1, "vlbs", 60.0, None, "follows"),
        (1, "vlbs", 0.0, None, NOT),
        (2, "vlbs", 80.0, "gender", "follows"),
        (2, "vlbs", 0.0, "gender", NOT),
        (4, "vlrs", 70.0, None, IN_PART),
        (4, "vlrs", 66.0, None, NOT),
        (5, "vlbs", 50.0, "overall", "follows"),
        (5, "vlbs", 10.0, "overall", NOT),
        (7, "vlbs", 40.0, "religion", "follows"),
        (7, "vlbs", 10.0, None, NOT),
        (10, "vlbs", 39.0, "overall", IN_PART),
        (10, "vlbs", 30.0, "overall", NOT),
        (12, "vlrs", {"LXMERT": 70.0}, None, IN_PART),
        (13, "vlbs", {"ALBEF": 45.0, "LXMERT": 45.0}, "overall", "follows"),
        (13, "vlbs", {"ALBEF": 34.0}, "overall", IN_PART),
        (14, "vlbs", {"ALBEF": 34.0}, "overall", "follows"),
        (15, "vlbs", {"CLIP": 60.0}, "overall", "follows"),
        (15, "vlbs", {"CLIP": 30.0}, "overall", NOT),
        (19, "vlbs", {"ViLT": 50.0}, "overall", IN_PART),
        (19, "vlrs", {"CLIP": 50.0}, "overall", IN_PART),
        (20, "vlrs", {"FLAVA": 90.0}, "overall", IN_PART),
        (22, "ivlas", {"FLAVA": 90.0}, "overall", NOT),
        (23, "ivlas", {"FLAVA": 65.56}, "overall", NOT),
        (25, "vlbs", 33.34, None, "follows"),
        (26, "vlbs", 90.0, "gender", "follows"),
        (26, "vlbs", 0.0, "gender", NOT),
    ],
)
def test_other_scores_get_another_answer(n, metric, values, category, expected):
    assert ask(n, with_scores(metric, values, category)).answer == expected


def test_models_that_trade_off_the_other_way_round():
    vlrs = dict(zip(MODELS, (70.0, 75.0, 80.0, 85.0, 90.0, 95.0), strict=True))
    rising = dict(zip(MODELS, (20.1, 25.0, 30.0, 35.0, 40.0, 45.0), strict=True))
    falling = dict(zip(MODELS, reversed(rising.values()), strict=True))
    for values, expected in ((rising, "follows"), (falling, NOT)):
        of = with_scores("vlrs", vlrs, "overall")
        table = of.tables["zhou2022_scores"]
        rows = (table["metric"] == "vlbs") & (table["category"] == "overall")
        new = table["model"].map(values)
        table["value"] = table["value"].mask(rows & new.notna(), new)
        assert {ask(n, of).answer for n in (6, 18, 21)} == {expected}


def test_a_correlation_of_exactly_1_has_no_interval_and_is_not_said_to_be_clear():
    table = with_scores("vlrs", dict(zip(MODELS, range(70, 76), strict=True)), "overall")
    rows = table.tables["zhou2022_scores"]
    rising = (rows["metric"] == "vlbs") & (rows["category"] == "overall")
    vlbs = rows["model"].map(dict(zip(MODELS, range(20, 26), strict=True)))
    rows["value"] = rows["value"].mask(rising & vlbs.notna(), vlbs)
    found = ask(6, table)
    assert "Pearson 1.00 [no interval], Spearman 1.00" in found.told
    assert found.answer == IN_PART


def test_no_correlation_of_models_that_are_all_the_same():
    with pytest.raises(NoEvidenceError, match="no correlation"):
        ask(6, with_scores("vlbs", 30.0))
    with pytest.raises(NoEvidenceError, match="too few"):
        ask(21, with_scores("vlrs", 30.0))


def test_reference_models_with_exchanged_scores():
    table = _file("zhou2022_scores").copy()
    table["model"] = table["model"].replace({"IDM": "BIM", "BIM": "IDM"})
    found = ask(24, changed(table))
    assert found.answer == NOT
    assert found.told.startswith("5 of 9")
    with pytest.raises(NoEvidenceError):
        ask(24, changed(table[table["model"] != "RAM"]))
    with pytest.raises(NoEvidenceError, match="imagined"):
        ask(24, changed(table[table["model"] != "BIM"]))


def test_scores_that_fit_the_images():
    table = _file("zhou2022_scores").copy()
    rows = (table["model"] == "ViLT") & (table["category"] == "overall")
    table.loc[rows & (table["metric"] == "vlrs"), "value"] = round(100 * 894 / 1028, 2)
    table.loc[rows & (table["metric"] == "vlbs"), "value"] = round(100 * 214 / 514, 2)
    found = ask(34, changed(table))
    assert (found.answer, found.told) == (
        "follows",
        "12 of 12 overall scores are whole counts of 1,028 or 514 images.",
    )


def images(**sizes):
    table = _file("zhou2022_images").copy()
    table["images"] = table["category"].map(sizes).fillna(table["images"]).astype(int)
    return table


def test_sizes_of_categories():
    """Correct sizes are not the printed ones; the printed ones with scores that fit them are."""
    other = changed(images(gender=206, profession=322, race=486), "zhou2022_images")
    found = ask(32, other)
    assert found.answer == NOT
    assert "6 of 48" in found.told  # ViLT's, of fewer images
    whole = with_scores("vlrs", 50.0).tables["zhou2022_scores"]
    whole["value"] = whole["value"].mask(whole["metric"] == "vlbs", 100.0)
    assert ask(32, changed(whole)).answer == "follows"


def test_a_part_of_the_images_tells_nothing_of_the_whole():
    part = changed(images(overall=900), "zhou2022_images")
    for n in (32, 34, 35):
        with pytest.raises(NoEvidenceError, match="900 of 1,028 images"):
            ask(n, part)


def test_labels_that_are_counted():
    odd = changed(images(gender=205), "zhou2022_images")
    assert ask(33, odd).answer == NOT
    half = images().assign(stereotypical=lambda t: t["images"] // 2)
    half["anti-stereotypical"] = half["images"] - half["stereotypical"]
    assert ask(33, changed(half, "zhou2022_images")).answer == "follows"


def test_a_model_or_a_category_that_is_missing():
    table = _file("zhou2022_scores")
    without = changed(table[table["model"] != "FLAVA"])
    for n in (1, 2, 4, 5, 6, 7, 10, 12, 13, 14, 15, 19, 20, 22, 23, 25, 26, 34):
        with pytest.raises(NoEvidenceError, match="of six models are there"):
            ask(n, without)
    assert len(CATEGORIES) == 4
    with pytest.raises(NoEvidenceError, match="18 of 24"):
        ask(25, changed(table[table["category"] != "religion"]))


def as_run(share=1):
    """Return the printed scores as a run would give them, of a part of the images."""
    table = _file("zhou2022_scores")
    images = table["category"].map({"gender": 206, "profession": 322, "race": 486, "religion": 14})
    images = images.fillna(1028).where(table["metric"] == "vlrs", images.fillna(1028) / 2)
    n = (images * share).round().clip(lower=1)
    return Evidence({"zhou2022_scores": table.assign(n=n, low=table["value"], high=table["value"])})


def test_a_run_with_the_printed_scores_gets_the_printed_answers():
    """Intervals are those of n images, also where the run's own are of a re-run."""
    printed = Evidence(ledger.printed("zhou2022"))
    for n in (1, 2, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, *range(18, 27)):
        assert ask(n, as_run()).answer == ask(n, printed).answer, n


def test_fewer_images_leave_more_open():
    assert "3 with" in ask(5, as_run()).told
    assert "0 with" in ask(5, as_run(0.05)).told
    assert ask(4, as_run(0.02)).answer == IN_PART


def test_a_run_does_not_tell_which_images_the_paper_scored():
    tables = as_run().tables | {"zhou2022_images": images()}
    with pytest.raises(NoEvidenceError, match="only the paper's own scores"):
        ask(34, Evidence(tables))


def shifts(clip, albef, n=50):
    rows = [
        ("CLIP", "lmss", clip[0]),
        ("CLIP", "vlss", clip[1]),
        ("ALBEF", "lmss", albef[0]),
        ("ALBEF", "vlss", albef[1]),
    ]
    table = pandas.DataFrame(rows, columns=["model", "test", "value"])
    table = table.assign(level="paper", statistic="% positive", n=n)
    return Evidence({}, table)


@pytest.mark.parametrize(
    ("clip", "albef", "by_value", "by_interval", "together"),
    [
        ((90, 92), (80, 86), "follows", "follows", "follows"),
        ((54, 92), (80, 86), "follows", IN_PART, None),
        ((40, 92), (80, 86), IN_PART, IN_PART, IN_PART),
        ((40, 44), (30, 20), NOT, NOT, NOT),
    ],
)
def test_shifts_of_a_run(clip, albef, by_value, by_interval, together):
    of = shifts(clip, albef)
    assert {ask(n, of).answer for n in (3, 11, 30)} == {by_value}
    assert ask(9, of).answer == by_interval
    assert f"CLIP lmss {clip[0]}% [" in ask(30, of).told
    if together is None:
        with pytest.raises(NoEvidenceError, match="leave open"):
            ask(31, of)
    else:
        assert ask(31, of).answer == together


def test_shifts_of_one_model_are_not_enough():
    of = shifts((90, 92), (80, 86))
    for kept in (of.scores[of.scores["model"] == "CLIP"], of.scores.iloc[1:]):
        with pytest.raises(NoEvidenceError, match="not all there"):
            ask(30, Evidence({}, kept))


@pytest.mark.parametrize(
    ("matching", "encoders", "expected"),
    [(90.0, 60.7, "follows"), (66.0, 50.0, IN_PART), (50.0, 60.7, NOT)],
)
def test_heads_of_flava_in_a_run(matching, encoders, expected):
    rows = [("FLAVA, matching logit", matching), ("FLAVA", encoders)]
    table = pandas.DataFrame(rows, columns=["model", "value"])
    table = table.assign(test="overall", statistic="vlrs", n=1028)
    found = ask(17, Evidence({}, table))
    assert found.answer == expected
    assert f"{matching - encoders:+.2f} points" in found.told
    with pytest.raises(NoEvidenceError, match="both heads"):
        ask(17, Evidence({}, table.iloc[:1]))
