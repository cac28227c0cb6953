"""What the checks of Srinivasan and Bisk (2021) find in a changed Table 3, and in runs."""

import math

import numpy as np
import pandas
import pytest

from biaslib.ledger import CHECKS, Evidence, NoEvidenceError
from biaslib.ledger._claims_srinivasan2021 import ENTITIES
from biaslib.published._tables import _file

STEREOTYPES = dict(zip(ENTITIES, ("women", "men") * 2 + ("women", "men"), strict=True))
IN_PART, NOT = "in part", "does not follow"
ON_TABLES = (1, 7, 9, 24)


def ask(n, of):
    return CHECKS[f"srinivasan2021/claim/{n}"](of)


def with_case_study(table):
    return Evidence({"srinivasan2021_case_study": table})


def test_probabilities_the_other_way_round():
    table = _file("srinivasan2021_case_study").copy()
    table["mark"] = table["mark"].replace({"✓": "✗", "✗": "✓"})
    other = with_case_study(table)
    assert [ask(n, other).answer for n in ON_TABLES] == [NOT] * 4
    table = _file("srinivasan2021_case_study").copy()
    table.loc[(table["image"] == 2) & (table["mark"] == "✗"), "probability"] = 0.01
    one = with_case_study(table)
    assert [ask(n, one).answer for n in ON_TABLES] == [NOT, NOT, NOT, IN_PART]


def test_many_pictures_of_people_whose_gender_is_told():
    rows = _file("srinivasan2021_case_study").query("image == 2")
    many = pandas.concat([rows.assign(image=at) for at in range(10)], ignore_index=True)
    assert ask(1, with_case_study(many)).answer == "follows"
    assert ask(9, with_case_study(many.assign(gender="man"))).answer == "follows"
    assert ask(9, with_case_study(many.assign(gender="woman"))).answer == IN_PART


def test_no_picture_without_a_purse():
    table = _file("srinivasan2021_case_study")
    with pytest.raises(NoEvidenceError, match="purse"):
        ask(9, with_case_study(table[table["image"] != 2]))


def scores(level, values, bounds=0.1, **same):
    """Return rows S(f), S(m) and B of entities from pairs S(f), S(m)."""
    rows = []
    for entity, (f, m) in values.items():
        for statistic, value in (("S(f)", f), ("S(m)", m), ("B", f - m)):
            row = {"test": entity, "level": level, "statistic": statistic, "value": value, "n": 12}
            row |= {"low": value - bounds, "high": value + bounds}
            rows.append(row | {"stereotype": STEREOTYPES.get(entity, "")} | same)
    return pandas.DataFrame(rows)


def run(*parts):
    return Evidence({}, pandas.concat(parts, ignore_index=True))


def signed(size, entities=ENTITIES):
    """Return pairs whose B has the stereotype's sign and this size."""
    sign = {"women": 1, "men": -1}
    halves = {each: sign[STEREOTYPES[each]] * size / 2 for each in entities}
    return {each: (half, -half) for each, half in halves.items()}


FIGURE_2 = {
    "purse": (-0.5, 0.4),
    "briefcase": (0.5, 1.6),
    "apron": (-2.0, -1.0),
    "suit": (-1.2, -1.1),
    "wine": (-1.5, -0.7),
    "beer": (-1.3, -0.4),
}
"""Scores as the text tells of Figure 2; their sizes are made up."""


def test_pre_training_as_the_text_tells_it():
    of = run(scores("S_PT", FIGURE_2, bounds=np.nan))
    claims = (4, 10, 11, 12, 13, 14, 15, 16)
    assert {n: ask(n, of).answer for n in claims} == dict.fromkeys(claims, "follows")
    assert "1.10" in ask(13, of).told
    assert "briefcase 0.50 with a woman and 1.60 with a man" in ask(11, of).told
    assert "6 of 6" in ask(16, of).told


def test_pre_training_the_other_way_round():
    """Genders exchanged and signs flipped: nothing is left but that entities differ."""
    exchanged = {each: (m, f) for each, (f, m) in FIGURE_2.items()}
    of = run(scores("S_PT", exchanged))
    expected = {4: NOT, 10: "follows", 11: "follows", 12: "follows"}
    expected |= {13: NOT, 14: NOT, 15: NOT, 16: NOT}
    assert {n: ask(n, of).answer for n in expected} == expected
    flipped = {each: (-f, -m) for each, (f, m) in FIGURE_2.items()}
    of = run(scores("S_PT", flipped))
    assert {n: ask(n, of).answer for n in (11, 12, 14, 15)} == dict.fromkeys((11, 12, 14, 15), NOT)


def test_pre_training_in_part():
    some = FIGURE_2 | {"briefcase": (-0.1, 0.3), "suit": (0.1, -1.0), "wine": (-0.1, -0.7)}
    of = run(scores("S_PT", some | {"purse": (0.1, 0.2), "beer": (0.5, 0.4)}))
    expected = {4: NOT, 16: NOT, 11: IN_PART, 12: IN_PART, 13: IN_PART, 15: IN_PART}
    assert {n: ask(n, of).answer for n in expected} == expected
    of = run(scores("S_PT", some))
    assert [ask(n, of).answer for n in (4, 16, 14)] == ["follows", IN_PART, IN_PART]
    same = run(scores("S_PT", dict.fromkeys(ENTITIES, (0.2, 0.4))))
    assert ask(10, same).answer == NOT


@pytest.mark.parametrize(
    ("f", "m", "bounds", "expected"),
    [
        (0.8, -0.8, 0.5, ("follows", "follows")),
        (0.3, -0.3, 0.1, (IN_PART, IN_PART)),
        (0.8, -0.8, 0.9, (IN_PART, IN_PART)),
        (-0.8, 0.8, 0.5, (NOT, NOT)),
    ],
)
def test_purse_by_the_word_for_the_person(f, m, bounds, expected):
    of = run(scores("S_L", {"purse": (f, m)}, bounds))
    assert (ask(17, of).answer, ask(18, of).answer) == expected
    assert f"purse {f:.2f} [{f - bounds:.2f}, {f + bounds:.2f}], n = 12" in ask(17, of).told


def contexts(language, image, bounds=0.1):
    return run(*(scores(level, of, bounds) for level, of in (("S_L", language), ("S_V", image))))


def test_language_and_image_as_the_text_tells_it():
    strong = signed(1.2) | signed(0.2, ("suit", "wine"))
    of = contexts(strong, strong)
    for n in (5, 8, 19, 20, 21, 22, 23):
        assert ask(n, of).answer == "follows", n
    assert "S_L of 4 of 6 entities, S_V of 4 of 6" in ask(5, of).told


def test_language_and_image_the_other_way_round():
    weak = signed(-0.2) | signed(2.0, ("suit", "wine"))
    of = contexts(weak, weak)
    expected = {5: NOT, 8: "follows", 19: NOT, 20: NOT, 21: NOT, 22: NOT, 23: NOT}
    assert {n: ask(n, of).answer for n in expected} == expected


def test_language_without_images_that_differ():
    of = contexts(signed(1.2), signed(0.0))
    assert [ask(n, of).answer for n in (5, 8, 19)] == [IN_PART, IN_PART, "follows"]
    one = contexts(
        signed(1.2) | {"apron": (-1, 0)}, signed(1.2) | {"apron": (-1, 0), "beer": (1, 0)}
    )
    assert [ask(n, one).answer for n in (19, 21, 22)] == [IN_PART] * 3


def test_a_factor_of_two_is_the_threshold():
    for size, expected in ((math.log(2) + 1e-9, "follows"), (math.log(2) - 1e-9, NOT)):
        of = contexts(signed(size), signed(size))
        assert [ask(n, of).answer for n in (5, 19, 21)] == [expected] * 3


def test_wide_intervals_show_no_similarity():
    near = signed(1.2) | signed(0.1, ("suit", "wine"))
    assert ask(20, contexts(near, near, 0.3)).answer == "follows"
    assert ask(20, contexts(near, near, 0.7)).answer == IN_PART


def test_all_three_sources_go_with_the_stereotype():
    sizes = dict(zip(ENTITIES, (0.4, 0.6, 0.8, 1.0, 1.2, 1.4), strict=True))
    towards = {each: signed(size, [each])[each] for each, size in sizes.items()}
    away = {each: (-f, -m) for each, (f, m) in towards.items()}
    for pre_training, language, expected in (
        (towards, towards, "follows"),
        (away, towards, IN_PART),
        (away, away, NOT),
    ):
        image = scores("S_V", language)
        of = run(scores("S_PT", pre_training), scores("S_L", language), image)
        assert ask(2, of).answer == expected
    assert "S_PT -0.90 [" in ask(2, of).told
    with pytest.raises(NoEvidenceError, match="stereotype"):
        ask(2, Evidence({}, of.scores.assign(stereotype="")))


def shares(agrees, towards_men, n=40):
    rows = [("S_L, no image", "agrees with the label", *agrees)]
    rows += [("S_L, text model", "agrees with the label", 0.1, 0.0, 0.2)]
    rows += [("S_PT", "towards men", *towards_men)]
    table = pandas.DataFrame(rows, columns=["level", "statistic", "value", "low", "high"])
    return run(table.assign(test="gendered", n=n), table.assign(test="all", value=0.0, n=46))


@pytest.mark.parametrize(
    ("agrees", "towards_men", "expected"),
    [
        ((0.8, 0.64, 0.91), (0.7, 0.53, 0.83), ("follows", "follows", "follows")),
        ((0.8, 0.64, 0.91), (0.6, 0.43, 0.75), ("follows", IN_PART, IN_PART)),
        ((0.5, 0.34, 0.66), (0.7, 0.53, 0.83), (NOT, "follows", IN_PART)),
        ((0.2, 0.09, 0.36), (0.4, 0.25, 0.57), (NOT, NOT, NOT)),
    ],
)
def test_shares_of_the_larger_set(agrees, towards_men, expected):
    of = shares(agrees, towards_men)
    assert {ask(n, of).answer for n in (3, 25, 26)} == {expected[0]}
    assert (ask(27, of).answer, ask(6, of).answer) == expected[1:]
    assert f"{agrees[0]:.0%} [{agrees[1]:.0%}, {agrees[2]:.0%}] of 40" in ask(25, of).told


def test_cat_and_cigar():
    text = scores("S_L, text model", {"cat": (1.0, -1.0), "cigar": (-1.0, 1.0)})
    for cat, cigar, expected in (
        ((0.5, -0.5), (-0.5, 0.5), "follows"),
        ((0.5, -0.5), (-2.0, 2.0), IN_PART),
        ((-2.0, 2.0), (2.0, -2.0), NOT),
    ):
        of = run(scores("S_L, no image", {"cat": cat, "cigar": cigar}), text)
        assert ask(28, of).answer == expected
    assert "cat -4.00 (text only 2.00)" in ask(28, of).told


def test_a_run_that_lacks_something():
    of = run(scores("S_PT", {each: FIGURE_2[each] for each in ENTITIES[:5]}))
    with pytest.raises(NoEvidenceError, match="no S_PT of beer"):
        ask(4, of)
    with pytest.raises(NoEvidenceError, match="no scores"):
        ask(5, of)
    twice = run(scores("S_PT", FIGURE_2, model="vl-bert"), scores("S_PT", FIGURE_2, model="bert"))
    with pytest.raises(NoEvidenceError, match="more than one model"):
        ask(16, twice)
    bare = contexts(signed(1.0), signed(1.0), np.nan)
    for n in (5, 8, 17, 18, 19, 20, 21, 22):
        with pytest.raises(NoEvidenceError, match="no intervals"):
            ask(n, bare)
    doubled = shares((0.8, 0.6, 0.9), (0.8, 0.6, 0.9)).scores
    with pytest.raises(NoEvidenceError, match="2 shares"):
        ask(25, run(doubled, doubled))
