"""The checks of the claims of Hamidieh et al. (2023), on changed tables and on runs."""

import numpy as np
import pandas
import pytest

from biaslib import stimuli
from biaslib.ledger import _verdicts
from biaslib.ledger._claims_hamidieh2023 import RACES, TYPES
from biaslib.ledger._evidence import Evidence, NoEvidenceError, NoIntervalError
from biaslib.published._tables import _file

CHECKS = _verdicts.checks("hamidieh2023")

CASC, TAXONOMY, PRONOUNS = (f"hamidieh2023_{s}" for s in ("casc", "taxonomy", "laion_pronouns"))
MEN, WOMEN = "Male", "Female"
BOTH = [f"{gender}, {race.replace('/', '_')}" for gender in (WOMEN, MEN) for race in RACES]
FOLLOWS, PART, NOT = "follows", "in part", "does not follow"


def found(number, given):
    return CHECKS[f"hamidieh2023/claim/{number}"](given)


def changed(stem, change):
    """The printed evidence with one table changed."""
    tables = {name: _file(name) for name in (CASC, TAXONOMY, PRONOUNS)}
    return Evidence(tables | {stem: change(tables[stem].copy())})


def groups_exchanged(first, second):
    names = {first: second, second: first}
    return changed(CASC, lambda rows: rows.assign(group=rows["group"].replace(names)))


def times(factor):
    return changed(CASC, lambda rows: rows.assign(casc=rows["casc"] * factor))


def with_value(word, group, value):
    def change(rows):
        rows.loc[(rows["word"] == word) & (rows["group"] == group), "casc"] = value
        return rows

    return changed(CASC, change)


def words_renamed(**names):
    return changed(CASC, lambda rows: rows.assign(word=rows["word"].replace(names)))


def first_words(n, types):
    def change(rows):
        return rows.iloc[:n].assign(bias_type=[f"type {at % types}" for at in range(n)])

    return changed(TAXONOMY, change)


def pronouns(**columns):
    return changed(PRONOUNS, lambda rows: rows.assign(**columns))


CHANGES = [
    (1, lambda: first_words(374, 10), FOLLOWS),
    (1, lambda: first_words(374, 9), PART),
    (2, lambda: times(0.1), NOT),
    (3, lambda: groups_exchanged(MEN, WOMEN), PART),
    (3, lambda: changed(CASC, lambda rows: rows.replace({"builder": "ceo"})), FOLLOWS),
    (4, lambda: times(0.0), NOT),
    (6, lambda: times(0.1), PART),
    (7, lambda: groups_exchanged("Middle Eastern", "Black"), NOT),
    (8, lambda: groups_exchanged(MEN, WOMEN), NOT),
    (9, lambda: groups_exchanged(MEN, WOMEN), NOT),
    (10, lambda: times(0.1), PART),
    (10, lambda: times(0.0), NOT),
    (12, lambda: pronouns(female=50.0, male=50.0), NOT),
    (13, lambda: pronouns(female=60.0, male=40.0), PART),
    (13, lambda: pronouns(female=31.0, male=69.0), NOT),
    (14, lambda: times(0.0), NOT),
    (17, lambda: groups_exchanged(MEN, WOMEN), NOT),
    (17, lambda: with_value("rowdy", MEN, 0.9), PART),
    (18, lambda: with_value("fishing", MEN, 0.1), PART),
    (19, lambda: times(-1.0), NOT),
    (20, lambda: with_value("maid", WOMEN, 0.4), PART),
    (21, lambda: words_renamed(policeman="guard", waiter="pilot"), FOLLOWS),
    (22, lambda: words_renamed(fit="fat"), PART),
    (22, lambda: words_renamed(fit="fat", old="thin", tall="ugly"), NOT),
    (23, lambda: with_value("ugly", WOMEN, -0.04), PART),
    (24, lambda: with_value("extremist", "Middle Eastern", 0.4), PART),
    (25, lambda: groups_exchanged("White", "Black"), NOT),
    (26, lambda: with_value("populist", "Black", 0.07), PART),
    (26, lambda: times(-1.0), NOT),
    (27, lambda: groups_exchanged("Southeast Asian", "East Asian"), PART),
    (28, lambda: groups_exchanged("Black", "Indian"), PART),
    (31, lambda: groups_exchanged("Black", "White"), PART),
    (33, lambda: with_value("immigrant", "Latino/Hispanic", 0.6), FOLLOWS),
    (36, lambda: times(0.7), PART),
    (37, lambda: with_value("uneducated", "East Asian", 0.6), PART),
    (38, lambda: groups_exchanged("Latino/Hispanic", "White"), NOT),
    (40, lambda: with_value("homeless", "White", 0.5), PART),
    (40, lambda: changed(CASC, lambda r: r.replace({"underrepresented": "low rate"})), FOLLOWS),
    (47, lambda: groups_exchanged("Black", "White"), PART),
    (49, lambda: groups_exchanged("Latino/Hispanic", "Middle Eastern"), NOT),
    (50, lambda: times(0.0), NOT),
]


@pytest.mark.parametrize(("number", "given", "expected"), CHANGES)
def test_other_tables_another_answer(number, given, expected):
    assert found(number, given()).answer == expected


def rows_of(level, category, statistic, words, groups, value, half=0.01, p_value=0.001):
    """Scores of words and groups: value(word, group), with an interval about it."""
    rows = pandas.DataFrame(
        [{"test": w, "group": g, "value": float(value(w, g))} for w in words for g in groups]
    )
    rows = rows.assign(low=rows["value"] - half, high=rows["value"] + half, p_value=p_value)
    return rows.assign(level=level, bias_type=category, statistic=statistic, model="open-clip")


def c_asc(category, words, value, level="race", half=0.01):
    groups = {"gender": (WOMEN, MEN), "gender x race": BOTH}
    races = [race.replace("/", "_") for race in RACES]
    return rows_of(level, category, "c_asc", words, groups.get(level, races), value, half)


def retrieved(category, most, share=0.6, level="gender x race"):
    """Shares and skews: by word, the group with this share; the others have equal ones."""
    groups = BOTH if level == "gender x race" else [race.replace("/", "_") for race in RACES]
    pool, rest = 1 / len(groups), (1 - share) / (len(groups) - 1)

    def part(word, group):
        return share if group == most[word] else rest

    def skew(word, group):
        return np.log((100 * part(word, group) + pool) / 101 / pool)

    each = [(part, "share"), (skew, "skew")]
    return pandas.concat(rows_of(level, category, s, most, groups, value) for value, s in each)


def run(*scores, **tables):
    return Evidence(tables, pandas.concat(scores, ignore_index=True))


CRIME = {"terrorist": "Male, Middle Eastern", "felon": "Male, Black", "hacker": "Male, White"}
MEDIA = {"ghetto": "Male, Black", "savage": "Male, Black"}
INDIAN = {"third-world": "Indian", "tribal": "Indian"}
FOUR = [*MEDIA, *INDIAN]


def test_who_is_retrieved():
    given = run(retrieved("Criminal justice", CRIME))
    assert found(7, given).answer == found(32, given).answer == FOLLOWS
    assert "terrorist 60% Middle Eastern men, others to 3%" in found(32, given).told
    other = run(retrieved("Criminal justice", CRIME | {"terrorist": "Male, White"}))
    assert (found(7, other).answer, found(32, other).answer) == (NOT, PART)
    even = run(retrieved("Criminal justice", CRIME, share=1 / 14))
    assert found(7, even).answer == found(32, even).answer == NOT


def test_who_is_retrieved_at_two_levels():
    media = retrieved("Portrayal in Media", MEDIA)
    by_race = retrieved("Portrayal in Media", INDIAN, level="race")
    assert found(34, run(media, by_race)).answer == FOLLOWS
    wrong = retrieved("Portrayal in Media", dict.fromkeys(INDIAN, "White"), level="race")
    assert found(34, run(media, wrong)).answer == PART
    with pytest.raises(NoEvidenceError, match="third-world"):
        found(34, run(media))


@pytest.mark.parametrize(
    ("number", "category", "most"),
    [
        (
            39,
            "Education and wealth",
            dict.fromkeys(("underperforming", "unmotivated"), "Female, White"),
        ),
        (43, "Occupation", {"farmer": "Male, Indian", "CEO": "Male, White"}),
        (45, "Education and wealth", dict.fromkeys(("illiterate", "unskilled"), "Male, Indian")),
        (46, "Behavioral", {"shy": "Female, East Asian", "domestic": "Female, Indian"}),
        (42, "Occupation", {"homemaker": "Female, Indian"}),
    ],
)
def test_groups_named_by_the_text(number, category, most):
    assert found(number, run(retrieved(category, most))).answer == FOLLOWS
    other = run(retrieved(category, dict.fromkeys(most, "Male, Black")))
    assert found(number, other).answer == NOT


def test_more_than_half_with_its_interval():
    near = retrieved("Occupation", {"homemaker": "Female, Indian"}, share=0.505)
    assert found(42, run(near)).answer == PART
    assert "homemaker 50% [50%, 52%] Indian women" in found(42, run(near)).told


@pytest.mark.parametrize(
    ("number", "category", "words"),
    [(35, "Portrayal in Media", FOUR), (44, "Occupation", ["homemaker", "farmer", "maid"])],
)
def test_white_people_are_seldom_retrieved(number, category, words):
    seldom = retrieved(category, dict.fromkeys(words, "Indian"), level="race")
    assert found(number, run(seldom)).answer == FOLLOWS
    assert found(number, run(seldom.assign(p_value=0.2))).answer == NOT
    often = retrieved(category, dict.fromkeys(words, "White"), level="race")
    assert found(number, run(often)).answer == NOT


def test_white_people_by_type_of_words():
    crime = {f"crime {n}": "Black" for n in range(9)} | {"hacker": "White"}
    behaviour = {f"behaviour {n}": "White" for n in range(9)}
    given = run(
        retrieved("Criminal justice", crime, level="race"),
        retrieved("Behavioral", behaviour, level="race"),
    )
    assert found(30, given).answer == FOLLOWS
    assert "over 9 crime words" in found(30, given).told
    turned = run(
        retrieved("Criminal justice", dict.fromkeys(crime, "White"), level="race"),
        retrieved("Behavioral", dict.fromkeys(behaviour, "Black"), level="race"),
    )
    assert found(30, turned).answer == NOT


def test_few_for_behaviour():
    words = [f"word {n}" for n in range(20)]
    most = dict.fromkeys(words, "White") | {words[0]: "Black"}
    given = retrieved("Behavioral", most, level="race")
    assert found(48, run(given)).answer == FOLLOWS
    assert "Black for 19 of 20 words, 95%" in found(48, run(given)).told
    third = most | dict.fromkeys(words[:3], "Black")
    assert found(48, run(retrieved("Behavioral", third, level="race"))).answer == PART


def test_maid_and_homemaker():
    home = {"maid": "Female, Indian", "homemaker": "Female, Indian"}
    assert found(41, run(retrieved("Occupation", home))).answer == FOLLOWS
    white = dict.fromkeys(home, "Female, White")
    assert found(41, run(retrieved("Occupation", white))).answer == NOT


SHARES = _file(PRONOUNS).set_index("word")["female"]


def test_captions_against_the_model():
    def as_captions(word, group):
        return (SHARES[word.lower()] - 50) / 50 * (1 if group == WOMEN else -1)

    words = ["CEO", *SHARES.index.drop("ceo")]
    tables = {PRONOUNS: _file(PRONOUNS)}
    alike = run(c_asc("Occupation", words, as_captions, "gender"), **tables)
    assert found(5, alike).answer == found(3, alike).answer == found(14, alike).answer == FOLLOWS
    assert "Rank correlation 1.00" in found(5, alike).told

    turned = run(c_asc("Occupation", words, lambda w, g: -as_captions(w, g), "gender"), **tables)
    assert found(5, turned).answer == found(3, turned).answer == NOT
    with pytest.raises(NoEvidenceError, match="laion_pronouns"):
        found(5, run(c_asc("Occupation", words, as_captions, "gender")))


def test_uneducated_by_gender_and_race():
    def women(word, group):
        return 0.5 if group == "Female, East Asian" else 0.0

    education = c_asc("Education and wealth", ["uneducated"], lambda w, g: g == "East Asian")
    both = c_asc("Education and wealth", ["uneducated"], women, "gender x race")
    assert found(37, run(education, both)).answer == FOLLOWS
    wide = c_asc("Education and wealth", ["uneducated"], women, "gender x race", half=0.6)
    assert found(37, run(education, wide)).answer == PART


def test_a_run_has_to_be_beyond_its_intervals():
    def value(word, group):
        return 0.9 if group == "Middle Eastern" else 0.3

    words = ["extremist"]
    assert found(10, run(c_asc("Political", words, value))).answer == FOLLOWS
    wide = found(10, run(c_asc("Political", words, value, half=0.4)))
    assert wide.answer == PART
    assert "0.90 [0.50, 1.30]" in wide.told


def test_a_run_needs_every_group_and_word():
    given = c_asc("Political", ["extremist"], lambda w, g: 1.0)
    with pytest.raises(NoEvidenceError, match="Indian"):
        found(10, run(given[given["group"] != "Indian"]))
    with pytest.raises(NoEvidenceError, match="libertarian"):
        found(25, run(given))


def test_a_run_without_intervals_says_nothing_rather_than_no():
    given = c_asc("Political", ["extremist"], lambda w, g: 1.0).assign(low=np.nan)
    with pytest.raises(NoIntervalError, match="C-ASC of Political words has no interval"):
        found(10, given := run(given))
    rows = _verdicts._asked("hamidieh2023/claim/10", given)
    assert rows == ("in part", "a C-ASC of Political words has no interval")
    home = retrieved("Occupation", {"homemaker": "Female, Indian"}).assign(low=np.nan)
    with pytest.raises(NoIntervalError, match="a share of 'homemaker' has no interval"):
        found(42, run(home))


def test_a_type_without_one_of_the_groups_is_not_compared_with_another():
    crime = c_asc("Criminal justice", ["a", "b", "c"], lambda w, g: 0.5)
    work = c_asc("Occupation", ["d", "e"], lambda w, g: 0.5 if g == "White" else 0.1)
    assert found(2, run(crime, work)).answer == PART
    with pytest.raises(NoEvidenceError, match="not the paper's: Occupation words have no White"):
        found(2, run(crime, work[work["group"] != "White"]))


def whole_run(**names):
    """Random scores of all printed words and of all groups, as a run of the study has them."""
    rng = np.random.default_rng(0)
    rows = pandas.concat([stimuli.taxonomy("sobit"), stimuli.printed_outside()])
    races = [race.replace("/", "_") for race in RACES]
    facets = {"gender": [WOMEN, MEN], "race": races, "gender x race": BOTH}
    each = [
        {"test": row.word, "bias_type": row.bias_type, "level": level, "group": group}
        for row in rows.itertuples()
        for level, groups in facets.items()
        for group in groups
    ]
    found = [pandas.DataFrame(each).assign(statistic=s) for s in ("c_asc", "share", "skew")]
    scores = pandas.concat(found, ignore_index=True)
    value = rng.uniform(0, 1, len(scores))
    scores = scores.assign(value=value, low=value - 0.01, high=value + 0.01, p_value=value)
    return Evidence({PRONOUNS: _file(PRONOUNS)}, scores.replace({"group": names}))


def test_a_whole_run_answers_all_but_what_is_about_the_printed_lists():
    given, missing = whole_run(), []
    for claim, check in CHECKS.items():
        try:
            assert check(given).told
        except NoEvidenceError:
            missing.append(int(claim.split("/")[-1]))
    assert missing == [1, 21]


def test_other_groups_than_the_papers():
    with pytest.raises(NoEvidenceError, match="groups of gender are not the paper's"):
        found(14, whole_run(Male="men", Female="women"))


def test_one_model_at_a_time():
    given = c_asc("Political", ["extremist"], lambda w, g: 1.0)
    with pytest.raises(NoEvidenceError, match="one model"):
        found(10, run(given, given.assign(model="another")))


def test_tables_of_a_run_have_intervals():
    rows = _file(CASC)
    rows = rows.assign(low=rows["casc"] - 0.3, high=rows["casc"] + 0.3)
    given = Evidence({CASC: rows, TAXONOMY: _file(TAXONOMY)})
    assert found(17, given).answer == NOT
    assert found(19, given).answer == FOLLOWS
    assert found(50, given).answer == NOT
    with pytest.raises(NoEvidenceError, match="printed list"):
        found(21, given)


def test_many_types_by_gender_and_race():
    def every(level, least):
        return [c_asc(each, [f"{each} word"], lambda w, g: least, level) for each in TYPES]

    assert found(6, run(*every("race", 0.6), *every("gender", 0.6))).answer == FOLLOWS
    given = run(*every("race", 0.6), *every("gender", 0.1))
    assert (found(4, given).answer, found(6, given).answer) == (FOLLOWS, PART)
    given = run(*every("race", 0.1), *every("gender", 0.1))
    assert found(4, given).answer == found(6, given).answer == NOT


def test_crime_words_and_white_people():
    white = c_asc("Criminal justice", ["a", "b", "c"], lambda w, g: g == "White")
    assert found(11, run(white)).answer == NOT
    black = c_asc("Criminal justice", ["d", "e", "f"], lambda w, g: g == "Black")
    assert found(11, run(black)).answer == FOLLOWS
    half = c_asc("Criminal justice", ["d", "e", "f"], lambda w, g: g == "Black", half=0.6)
    assert found(11, run(half)).answer == PART


def test_harmful_words_against_occupations():
    crime = c_asc("Criminal justice", ["a", "b", "c"], lambda w, g: 0.5)
    work = c_asc("Occupation", ["d", "e"], lambda w, g: 0.1)
    assert found(2, run(crime, work)).answer == FOLLOWS
    same = c_asc("Occupation", ["d", "e"], lambda w, g: 0.5)
    assert found(2, run(crime, same)).answer == PART
