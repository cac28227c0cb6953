"""What the printed tables say of each claim: its answer, and the numbers that it is told with.

Expected answers and numbers were computed from the same tables by somebody else, those of Ross et
al.'s 27 and 48 before means over tests had the interval of Student's t.
"""

import json

import pytest

from biaslib import ledger
from biaslib.ledger import CHECKS, Evidence
from biaslib.ledger._contracts import DATA

FOLLOWS, PART, NOT = "follows", "in part", "does not follow"

ROSS2021 = [
    (1, PART, ["83 of 156", "at least 17 of 39", "0.208"]),
    (3, NOT, ["11,441", "10,584", "483", "374"]),
    (4, FOLLOWS, ["0.695", "144 cells"]),
    (5, PART, ["0.084", "0.178", "0.134", "0.021", "0.003"]),
    (6, NOT, ["0.634", "0.780", "0.146"]),
    (7, PART, ["words hidden 15 of 39", "people hidden 20 of 39"]),
    (8, FOLLOWS, ["0.815", "0.278", "0.033"]),
    (9, PART, ["0.450", "0.072", "38 cells"]),
    (11, FOLLOWS, ["48 of 54", "1.023", "0.916"]),
    (12, PART, ["0.443", "144 cells", "34 change sign"]),
    (13, PART, ["0.751", "0.665"]),
    (14, PART, ["0.634", "0.780"]),
    (16, FOLLOWS, ["coco 2 of 13", "conceptual_captions 2 of 13"]),
    (17, NOT, ["6 of 17", "C8 718", "C13 522", "254", "229", "203", "171"]),
    (18, FOLLOWS, ["13 of 13"]),
    (19, NOT, ["0.232", "-0.059"]),
    (20, PART, ["92 of 155", "0.594"]),
    (21, PART, ["0.550", "0.324", "0.466", "39 of 51", "33 of 52", "30 of 51"]),
    (22, FOLLOWS, ["W 23, S 24"]),
    (23, FOLLOWS, ["83 of 156"]),
    (26, NOT, ["0.634", "0.780", "0.146", "4 of 4 models"]),
    (27, PART, ["0.293", "96 of 155", "84 of 156"]),
    (28, PART, ["0.073", "0.331", "0.213", "0.217"]),
    (29, PART, ["0.719", "0.487", "4 of 4 models"]),
    (30, NOT, ["84", "83"]),
    (31, NOT, ["84 against 83", "0.146"]),
    (32, NOT, ["35 of 78", "people hidden 20 of 39", "words hidden 15 of 39"]),
    (33, PART, ["hidden 20", "hidden 15", "VL-BERT 6 and 1"]),
    (35, FOLLOWS, ["1 and 6", "8 and 8", "6 and 6"]),
    (36, PART, ["0.815", "1 of 2 orders"]),
    (39, FOLLOWS, ["0.378", "0.033", "0.278", "0.815"]),
    (40, PART, ["0.072", "0.044", "0.029", "0.140"]),
    (41, NOT, ["0.099", "14 of 24", "0.057", "12 of 24"]),
    (42, FOLLOWS, ["0.15"]),
    (43, PART, ["16 against 12 and 7", "7 against 16 and 12"]),
    (44, FOLLOWS, ["6 of gender and 7 of race"]),
    (45, NOT, ["13 values of T in Table 5"]),
    (46, NOT, ["0.029 and 0.533", "0.140 and 0.406", "0.044 and 0.390"]),
    (47, NOT, ["11,441"]),
    (48, NOT, ["0.487 [0.132, 0.843]", "0.205"]),
]
"""46's second distance of LXMERT is .5325, printed there as .532.

Of 4 and 22 the other reading says that they follow in part: it keeps back what a number cannot
show, "important", and which cells are significant.
"""

SRINIVASAN2021 = [
    (1, PART, ["2 of 2", "0.4944 against 0.0018", "0.084 against 0.067", "[0.16, 1.00]"]),
    (7, PART, ["2 of 2", "0.4944 against 0.0018", "0.084 against 0.067"]),
    (9, PART, ["1 of 1", "0.084 against 0.067", "0 are said to show a man"]),
    (24, FOLLOWS, ["2 of 2", "0.4944 against 0.0018", "0.084 against 0.067"]),
]

HAMIDIEH2023 = [
    (1, NOT, ["408 entries", "403 distinct", "9 types"]),
    (2, PART, ["20 of 28"]),
    (3, PART, ["3 of 3", "4 of 7"]),
    (4, FOLLOWS, ["8 of the 8 types", "has 9"]),
    (6, PART, ["8 of the 8", "3 of the 3"]),
    (7, PART, ["terrorist 1.05", "others to 0.27"]),
    (8, PART, ["over 4 positive", "over 3 negative"]),
    (9, FOLLOWS, ["6 of 6", "4 of 7"]),
    (10, FOLLOWS, ["0.88", "Middle Eastern"]),
    (11, FOLLOWS, ["Of 28 words", "for 20", "8 cannot"]),
    (12, PART, ["5 of 7", "25.8%", "72.1%"]),
    (13, FOLLOWS, ["69.0% [68.3, 69.7]", "31.0%", "2.23", "18,742"]),
    (14, PART, ["3 of 3", "4 of 7"]),
    (17, FOLLOWS, ["ambitious 0.53 (next 0.48)", "bossy 0.60 (next 0.58)"]),
    (18, FOLLOWS, ["0.75 (rank 1)", "0.48 (rank 2)"]),
    (19, FOLLOWS, ["0.31 (rank 2)"]),
    (20, FOLLOWS, ["maid 1.28 (rank 1)", "housekeeper 0.98 (rank 7)", "homemaker 1.14"]),
    (21, NOT, ["2 of 14", "policeman, waiter"]),
    (22, FOLLOWS, ["9 of 10", "disfigured"]),
    (23, FOLLOWS, ["0.28 (rank 5)", "0.14 (rank 9)", "0.04 (rank 10)"]),
    (24, FOLLOWS, ["0.88", "1.05", "0.27"]),
    (25, FOLLOWS, ["0.67", "0.62"]),
    (26, FOLLOWS, ["populist, -0.07"]),
    (27, FOLLOWS, ["0.88", "0.87", "communist 0.36"]),
    (28, FOLLOWS, ["0.32", "0.37", "0.20", "1.05", "0.31"]),
    (31, FOLLOWS, ["delinquent 0.34", "felon 0.37"]),
    (32, PART, ["hacker 0.24 (White; others to 0.31)", "1.05", "0.37"]),
    (33, PART, ["0.28 (Latino/Hispanic; others to 0.54)", "0.42", "0.32", "1.14", "0.98"]),
    (34, PART, ["0.42", "0.98", "0.31 (Indian; others to 0.33)", "0.15"]),
    (35, PART, ["ghetto -0.13", "savage 0.13", "third-world at most -0.13"]),
    (36, FOLLOWS, ["0.80 (Indian; others to 0.42)", "0.54"]),
    (37, NOT, ["0.30 (East Asian; others to 0.34)"]),
    (38, FOLLOWS, ["0.64 (Latino/Hispanic; others to 0.31)"]),
    (39, NOT, ["unmotivated 0.13 (White; others to 0.33)", "underperforming 0.25"]),
    (40, PART, ["menial 0.34", "migrant 0.30", "White at most -0.06", "in no list"]),
    (41, PART, ["maid 0.48 (Southeast Asian", "homemaker 0.50 (Indian"]),
    (43, PART, ["farmer 0.45", "CEO is in no list"]),
    (45, PART, ["0.80", "0.54"]),
    (46, PART, ["shy 0.39", "domestic 0.52"]),
    (47, PART, ["Black 0.023", "Latino/Hispanic 0.015", "White 0.331", "East Asian 0.415"]),
    (49, PART, ["Black in 2", "Latino/Hispanic in 5 of 7"]),
    (50, FOLLOWS, ["Of 25 words", "10 lean to women", "10 to men"]),
]

ZHOU2022 = [
    (1, PART, ["4 of 6", "3 with", "gender 6, profession 6, race 4, religion 2"]),
    (2, PART, ["5 of 6", "above 0 for 1 of 6"]),
    (4, FOLLOWS, ["5 of 6", "4 of 6", "85.21", "85.31", "86.94", "88.04", "74.22", "60.70"]),
    (5, PART, ["4 of 6", "3 with", "n = 509 to 514"]),
    (6, PART, ["0.74 [-0.18, 0.97]", "0.94"]),
    (7, PART, ["18 of 24", "gender 6, profession 6, race 4, religion 2"]),
    (8, PART, ["5 of 6"]),
    (10, FOLLOWS, ["3 of 6", "above 40: 2", "ViLT 41.65", "CLIP 45.72"]),
    (12, FOLLOWS, ["+18.54", "+18.64", "+20.27", "+7.55", "+21.37", "-5.97"]),
    (13, NOT, ["4 of the 5", "ALBEF 32.30"]),
    (14, NOT, ["4 of 6", "3 with", "above 0: 6 of 6"]),
    (15, PART, ["45.72", "ViLT 4.07 [-", "6.81", "8.37", "13.42", "16.93"]),
    (18, PART, ["0.74 [-0.18, 0.97]", "0.94"]),
    (19, FOLLOWS, ["88.04", "ViLT 86.94", "45.72", "ViLT 41.65"]),
    (20, FOLLOWS, ["60.70", "LXMERT 74.22", "28.79", "ALBEF 32.30"]),
    (21, PART, ["5 models", "0.39", "0.90"]),
    (22, FOLLOWS, ["75.46", "VisualBERT 71.20"]),
    (23, FOLLOWS, ["33 of 33", "24 to the digit"]),
    (24, FOLLOWS, ["9 of 9", "66.67, 33.33, 66.67"]),
    (25, NOT, ["18 of 24", "above 0 in 24", "14.29"]),
    (26, PART, ["5 of 6"]),
    (32, NOT, ["34 of 48", "gender 486, profession 206, race 322, religion 14"]),
    (33, PART, ["486, 206, 322, 14"]),
    (34, NOT, ["10 of 12", "86.94", "41.65", "1,018 and 509"]),
    (35, FOLLOWS, ["1,028", "6%"]),
]

PRINTED = {
    f"{paper}/claim/{number}": (answer, numbers)
    for paper, rows in {
        "ross2021": ROSS2021,
        "srinivasan2021": SRINIVASAN2021,
        "hamidieh2023": HAMIDIEH2023,
        "zhou2022": ZHOU2022,
    }.items()
    for number, answer, numbers in rows
}


def asked(claim):
    return CHECKS[claim](Evidence(ledger.printed(claim.partition("/")[0])))


@pytest.mark.parametrize("claim", PRINTED)
def test_what_the_printed_tables_say_of_a_claim(claim):
    found, (answer, numbers) = asked(claim), PRINTED[claim]
    assert found.answer == answer
    assert [each for each in numbers if each not in found.told] == []
    assert len(found.told) <= (220 if claim.startswith("hamidieh2023") else 200)


@pytest.mark.parametrize("claim", sorted(CHECKS.keys() - PRINTED.keys()))
def test_what_the_paper_prints_no_number_for_cannot_be_told(claim):
    with pytest.raises(ledger.NoEvidenceError, match="the paper prints no number for it"):
        asked(claim)


@pytest.mark.parametrize(
    ("paper", "n", "unchecked"),
    [
        ("ross2021", 48, [24, 37, 38]),
        ("srinivasan2021", 30, [29, 30]),
        ("hamidieh2023", 50, [15, 16, 29]),
        ("zhou2022", 35, [16, 27, 28, 29]),
    ],
)
def test_claims_have_a_check_but_those_about_other_data_and_name_their_tables(paper, n, unchecked):
    claims = json.loads((DATA / f"{paper}.json").read_text(encoding="utf-8"))["claims"]
    names = [each["id"] for each in claims]
    assert names == [f"{paper}/claim/{number}" for number in range(1, n + 1)]
    assert set(names) - set(CHECKS) == {f"{paper}/claim/{number}" for number in unchecked}
    # Claim 5 of Hamidieh et al. is about a table of theirs beside a run's scores.
    named = {each["id"] for each in claims if each["tables"]} - {"hamidieh2023/claim/5"}
    assert named == set(names) & set(PRINTED)
