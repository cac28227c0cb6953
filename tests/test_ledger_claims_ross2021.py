"""The checks of the claims of Ross, Katz and Barbu (2021), on changed tables and on runs."""

import pandas
import pytest

from biaslib import ledger
from biaslib.ledger import CHECKS, Evidence

EFFECTS, COUNTS, IMAGES = (
    f"ross2021_{name}" for name in ("effect_sizes", "significant_counts", "images")
)
FOLLOWS, PARTLY, NOT = "follows", "in part", "does not follow"


def evidence(**changed):
    return Evidence({**ledger.printed("ross2021"), **changed})


def effects(change):
    """The tables with other effect sizes."""
    rows = ledger.printed("ross2021")[EFFECTS]
    return evidence(**{EFFECTS: rows.assign(effect_size=change(rows))})


def counts(change):
    rows = ledger.printed("ross2021")[COUNTS]
    return evidence(**{COUNTS: rows.assign(significant=change(rows))})


def asked(number, tables):
    return CHECKS[f"ross2021/claim/{number}"](tables)


def positive(rows):
    return rows["effect_size"].abs() + 0.1


def shrunk_in_2(rows):
    return rows["effect_size"].where(rows["table"] != 4, rows["effect_size"] * 0.1)


def masks_swapped(rows):
    """Effects with words hidden in the place of those with people hidden, and the reverse."""
    keys = ["table", "experiment", "test", "model"]
    other = rows.assign(level=rows["level"].replace({"T": "I", "I": "T"}))
    both = rows.merge(other, on=[*keys, "level"], how="left", suffixes=("", " other"))
    return both["effect_size other"].to_numpy()


def nearly_experiment_2(rows):
    """Effects with people hidden are those of Experiment 2."""
    second = rows[(rows["table"] == 4) & (rows["level"] == "S")]
    second = second.set_index(["test", "model"])["effect_size"]
    found = rows["effect_size"].copy()
    there = (rows["table"] == 5) & (rows["level"] == "I")
    keys = list(zip(rows.loc[there, "test"], rows.loc[there, "model"], strict=True))
    found[there] = [second.get(key, float("nan")) for key in keys]
    return found


@pytest.mark.parametrize(
    ("number", "tables", "answer"),
    [
        (1, effects(positive), FOLLOWS),
        (1, counts(lambda rows: rows["significant"] * 0), NOT),
        (6, effects(shrunk_in_2), NOT),
        (8, effects(masks_swapped), NOT),
        (11, effects(lambda rows: rows["effect_size"].where(rows["table"] != 4, -1.0)), NOT),
        (14, effects(shrunk_in_2), NOT),
        (20, effects(lambda rows: -positive(rows)), NOT),
        (20, effects(positive), FOLLOWS),
        (23, counts(lambda rows: rows["significant"] * 0), NOT),
        (26, effects(shrunk_in_2), FOLLOWS),
        (27, effects(lambda rows: -positive(rows)), PARTLY),
        (28, effects(positive), FOLLOWS),
        (30, counts(lambda rows: rows["significant"].where(rows["experiment"] != 2, 0)), FOLLOWS),
        (31, effects(shrunk_in_2), FOLLOWS),
        (32, counts(lambda rows: rows["total"]), FOLLOWS),
        (39, effects(masks_swapped), NOT),
        (43, counts(lambda rows: rows["significant"].where(rows["column"] != 3, 0)), NOT),
        (46, effects(nearly_experiment_2), FOLLOWS),
    ],
)
def test_other_tables_get_another_answer(number, tables, answer):
    assert asked(number, tables).answer == answer


def test_other_counts_of_images_get_another_answer():
    rows = ledger.printed("ross2021")[IMAGES]
    stated = rows.assign(images=[10_228 - 16 * 4, *[4] * 16])
    tables = evidence(**{IMAGES: stated})
    assert asked(3, tables).answer == asked(17, tables).answer == FOLLOWS
    assert asked(18, evidence(**{IMAGES: rows[rows["test"] != "ABW"]})).answer == NOT


def test_a_table_without_a_model_is_not_judged():
    rows = ledger.printed("ross2021")[EFFECTS]
    tables = evidence(**{EFFECTS: rows[rows["model"] != "LXMERT"]})
    for number in (1, 5, 13, 26, 46):
        with pytest.raises(ledger.NoEvidenceError, match="LXMERT"):
            asked(number, tables)


def run_scores(size, masked=None):
    """Scores of four models with images and of BERT without, the latter with d of 0.5."""
    tests = ledger.printed("ross2021")[EFFECTS]["test"].unique()
    rows = []
    for at, test in enumerate(tests):
        labels = {"test": test, "level": "word", "experiment": 1, "masking": "none"}
        for model in ("visualbert", "vilbert", "lxmert", "vl-bert"):
            value = size + 0.01 * at
            rows.append(
                labels | {"model": model, "images": "with", "value": value, "p_value": 0.01}
            )
        text = {"model": "bert", "images": "without", "value": 0.5, "p_value": 0.01}
        rows.append(labels | text)
        for level, value in (("word", at), ("sentence", at if masked is None else masked * at)):
            hidden = {"model": "lxmert", "images": "with", "masking": "words", "level": level}
            rows.append(labels | hidden | {"value": 0.1 * value, "p_value": 0.5})
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    ("number", "size", "answer"),
    [
        (2, 0.6, FOLLOWS),
        (2, 0.2, PARTLY),
        (10, 0.5, FOLLOWS),
        (10, 1.5, NOT),
        (15, 0.5, FOLLOWS),
        (15, 0.2, NOT),
        (25, 0.6, FOLLOWS),
        (25, 0.2, NOT),
    ],
)
def test_a_run_beside_bert_is_judged_by_the_difference(number, size, answer):
    found = CHECKS[f"ross2021/claim/{number}"](Evidence({}, run_scores(size)))
    assert found.answer == answer


def test_words_and_sentences_with_a_mask_are_compared():
    check = CHECKS["ross2021/claim/34"]
    assert check(Evidence({}, run_scores(0.5))).answer == FOLLOWS
    assert check(Evidence({}, run_scores(0.5, masked=-1.0))).answer == NOT
