"""Checks of exercises reject the misconceptions that they teach against, and accept any way there.

Each exercise has wrong answers that people give, and right ones that look unlike the solution.
"""

from itertools import combinations
from math import comb

import numpy as np
import pandas
import pytest
from scipy import stats

from biaslib import inference
from companion import (
    capstone,
    foundations,
    own_model,
    study1_grounded,
    study2_masked,
    study3_clip_audit,
    study4_captions,
    text_encoders,
    what_is_measured,
)
from companion import planted_study4_captions as planted_study4
from companion import planted_world as measures
from companion import published_numbers as published
from companion import what_holds_up as reproduction
from plantedworld.studies import measures as study


def hands(x, y):
    pooled = np.concatenate([x, y])
    chosen = [list(each) for each in combinations(range(len(pooled)), len(x))]
    first = np.array([pooled[each].mean() for each in chosen])
    rest = np.array([np.delete(pooled, each).mean() for each in chosen])
    return first - rest, np.mean(x) - np.mean(y)


def no_ties(x, y):
    differences, observed = hands(x, y)
    return (differences > observed + 1e-12).mean()


def both_sides(x, y):
    differences, observed = hands(x, y)
    return (np.abs(differences) >= abs(observed) - 1e-12).mean()


def drawn_with_replacement(x, y):
    rng, pooled = np.random.default_rng(0), np.concatenate([x, y])
    drawn = rng.choice(pooled, (20_000, len(pooled)))
    differences = drawn[:, : len(x)].mean(axis=1) - drawn[:, len(x) :].mean(axis=1)
    return (differences >= np.mean(x) - np.mean(y) - 1e-12).mean()


def one_more(x, y):
    differences, observed = hands(x, y)
    return (1 + (differences >= observed - 1e-12).sum()) / (1 + len(differences))


def interval(values, confidence=0.9, quantile=stats.t.ppf):
    n, mean = len(values), np.mean(values)
    share = 0.5 + confidence / 2
    times = quantile(share, n - 1) if quantile is stats.t.ppf else quantile(share)
    half = times * np.std(values, ddof=1) / np.sqrt(n)
    return mean - half, mean + half


def within(low, high):
    return low >= -0.15 and high <= 0.15


def verdicts(rule):
    """Return a check of ten verdicts that are given by a rule for a row of the table."""
    rows = reproduction.ten_numbers().to_dict("records")
    return lambda _: reproduction.check_verdicts([rule(**row) for row in rows])


def close(run, printed, margin, **_):
    return "met" if abs(run - printed) <= margin + 1e-9 else "not met"


def overlaps(low, high, printed, margin, **_):
    return "met" if high >= printed - margin and low <= printed + margin else "not met"


def no_interval_fails(low, high, printed, margin, widest, **_):
    apart = not (high >= printed - margin - 1e-9 and low <= printed + margin + 1e-9)
    return "not met" if apart else "met" if high - low <= widest + 1e-9 else "cannot be said"


def all_of_it_within(low, high, printed, margin, **_):
    inside = low >= printed - margin - 1e-9 and high <= printed + margin + 1e-9
    apart = high < printed - margin or low > printed + margin
    return "met" if inside else "not met" if apart else "cannot be said"


WRONG = {
    "the value is near": (verdicts(close), None),
    "the interval reaches the printed one": (verdicts(overlaps), None),
    "the whole interval within the margin": (verdicts(all_of_it_within), None),
    "no interval, so not met": (verdicts(no_interval_fails), None),
    "deals that tie do not count": (foundations.check_deals, no_ties),
    "large on either side": (foundations.check_deals, both_sides),
    "dealt with replacement": (foundations.check_deals, drawn_with_replacement),
    "the observed deal counted twice": (foundations.check_deals, one_more),
    "only the direction of d": (
        text_encoders.check_p_random,
        lambda d, random: (1 + (random >= d).sum()) / (1 + len(random)),
    ),
    "a p-value of 0": (
        text_encoders.check_p_random,
        lambda d, random: (np.abs(random) >= abs(d)).mean(),
    ),
    "ties left out": (
        text_encoders.check_p_random,
        lambda d, random: (1 + (np.abs(random) > abs(d)).sum()) / (1 + len(random)),
    ),
    "the mean lies within": (measures.check_within, lambda values: abs(np.mean(values)) < 0.15),
    "a large p-value shows it": (
        measures.check_within,
        lambda values: stats.ttest_1samp(values, 0).pvalue > 0.05,
    ),
    "the median of a word": (
        study1_grounded.check_clusters,
        lambda x, y, of_x, of_y: (
            inference.permutation_test(
                by_word(x, of_x, "median"), by_word(y, of_y, "median")
            ).p_value
        ),
    ),
    "an interval of 95%": (
        measures.check_within,
        lambda values: within(*interval(values, confidence=0.95)),
    ),
    "the normal quantile": (
        measures.check_within,
        lambda values: within(*interval(values, quantile=stats.norm.ppf)),
    ),
    "one end only": (measures.check_within, lambda values: interval(values)[1] <= 0.15),
    "counts that divide exactly": (
        published.check_sizes,
        lambda percent, most: [n for n in range(1, most + 1) if percent * n % 100 == 0],
    ),
    "a nearest count always exists": (
        published.check_sizes,
        lambda percent, most: [
            n for n in range(1, most + 1) if abs(percent * n / 100 - round(percent * n / 100)) < 0.5
        ],
    ),
    "rounded to whole percents": (
        published.check_sizes,
        lambda percent, most: [
            n
            for n in range(1, most + 1)
            if round(100 * round(percent * n / 100) / n) == round(percent)
        ],
    ),
}


@pytest.mark.parametrize(("check", "answer"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_is_not_yet_right(check, answer):
    assert not check(answer).passed


def wins(scores, anti, of):
    return np.mean(anti & (scores.argmax(axis=1) == 0)) * of / anti.mean() ** (of == 1)


NAMED = {
    "a share of the right images": (
        study4_captions.check_vlbs,
        lambda given, anti: wins(given, anti, 1),
        "0 to 1",
    ),
    "per cent of all images": (
        study4_captions.check_vlbs,
        lambda given, anti: wins(given, anti, 100),
        "by all",
    ),
    "ddof 0": (
        study3_clip_audit.check_c_asc,
        lambda cosines, group: (cosines[group].mean() - cosines[~group].mean()) / cosines.std(),
        "ddof 0",
    ),
    "log10": (study2_masked.check_order, lambda p, q: np.log10(np.mean(p) / q), "log10"),
    "ddof 0 by hand": (foundations.check_by_hand, [0.96, 0.8, 0.16, 0.3 / 0.0325**0.5], "ddof 0"),
    "sums in d": (study1_grounded.check_effect, [0.4, 3.2163, 1 / 6], "sums"),
    "p of nothing": (study1_grounded.check_effect, [0.4, 1.6082, 0], "never 0"),
    "a share of six": (planted_study4.check_outcome, [0, 0.25], "by 3"),
}


@pytest.mark.parametrize(("check", "answer", "words"), NAMED.values(), ids=NAMED)
def test_a_hint_names_the_fault(check, answer, words):
    found = check(answer)
    assert not found.passed
    assert words in found.message


def by_word(scores, words, how="mean"):
    return getattr(pandas.Series(scores).groupby(words), how)().to_numpy()


def sampled(x, y):
    """The p-value of 10,000 drawn deals."""
    pooled = np.concatenate([x, y])
    drawn = np.random.default_rng(0).permuted(np.tile(pooled, (10_000, 1)), axis=1)
    means = drawn[:, : len(x)].mean(axis=1) - drawn[:, len(x) :].mean(axis=1)
    return (means >= np.mean(x) - np.mean(y) - 1e-12).mean()


RIGHT = {
    "deals that are drawn": (foundations.check_deals, sampled),
    "the result of the package's test": (foundations.check_deals, inference.permutation_test),
    "the result of a test on words": (
        study1_grounded.check_clusters,
        lambda x, y, of_x, of_y: inference.permutation_test(by_word(x, of_x), by_word(y, of_y)),
    ),
    "deals of words that are drawn": (
        study1_grounded.check_clusters,
        lambda x, y, of_x, of_y: sampled(by_word(x, of_x), by_word(y, of_y)),
    ),
    "sums of one hand, an array of NumPy": (
        foundations.check_deals,
        lambda x, y: np.float64(
            sum(
                sum(hand) >= x.sum() - 1e-9 for hand in combinations(np.concatenate([x, y]), len(x))
            )
            / comb(len(x) + len(y), len(x))
        ),
    ),
    "an array of one p-value": (
        text_encoders.check_p_random,
        lambda d, random: np.asarray((1 + (np.abs(random) >= abs(d)).sum()) / (1 + len(random))),
    ),
    "two one-sided tests": (
        measures.check_within,
        lambda values: (
            max(
                stats.ttest_1samp(values, -0.15, alternative="greater").pvalue,
                stats.ttest_1samp(values, 0.15, alternative="less").pvalue,
            )
            < 0.05
        ),
    ),
    "NumPy's own truth": (
        measures.check_within,
        lambda values: np.all(
            [abs(study.mean_over_seeds(values, confidence=0.9)[end]) <= 0.15 for end in ENDS]
        ),
    ),
    "an array of sizes": (
        published.check_sizes,
        lambda percent, most: np.array(
            [n for n in range(1, most + 1) if published.possible_counts(percent, n)]
        ),
    ),
    "printed and read": (
        published.check_sizes,
        lambda percent, most: [
            n
            for n in range(1, most + 1)
            if f"{percent:.2f}" in {f"{100 * k / n:.2f}" for k in range(n + 1)}
        ],
    ),
}
ENDS = ("low", "high")


@pytest.mark.parametrize(("check", "answer"), RIGHT.values(), ids=RIGHT)
def test_a_right_answer_is_right_whatever_its_form(check, answer):
    found = check(answer)
    assert found.passed, repr(found)


@pytest.mark.parametrize(
    "check",
    [foundations.check_deals, what_is_measured.check_margins, own_model.check_reading],
)
def test_a_function_that_stops_is_not_yet_right_and_no_error(check):
    def misspelt(*given):
        return {}["mean"]

    for answer in (misspelt, lambda *given: 1 / 0, lambda *given: None):
        assert not check(answer).passed


LISTS = [
    (what_is_measured.check_borne, "be"),
    (lambda answer: study1_grounded.check_verdict(answer, ["none"]), "A"),
    (lambda answer: study1_grounded.check_verdict(answer, "none"), "A"),
    (capstone.check_flaws, "134679"),
]


@pytest.mark.parametrize(("check", "right"), LISTS)
def test_a_list_may_have_any_form(check, right):
    forms = (set, list, np.array, pandas.Series, ", ".join, lambda items: f" {' '.join(items)} ")
    for form in forms:
        assert check(form(list(right))).passed, form
    for wrong in (5, None, ..., np.array(["x"]), "x, y", []):
        assert not check(wrong).passed, wrong


def test_judgements_may_go_by_name():
    expected = ("report", "do not report", "cannot be said") * 2
    expected = [expected[at] for at in (0, 1, 2, 0, 1, 2)]
    words = study3_clip_audit.scores_to_judge()["word"]
    assert study3_clip_audit.check_judgements(dict(zip(words, expected, strict=True))).passed
    assert not study3_clip_audit.check_judgements(dict.fromkeys(words, "report")).passed


def test_words_may_have_any_case_and_kinds_may_be_a_series():
    harms = {letter: kind.title() for letter, kind in what_is_measured.HARMS.items()}
    assert what_is_measured.check_harms(harms).passed
    assert what_is_measured.check_harms(pandas.Series(harms)).passed
    assert not what_is_measured.check_harms({**harms, "a": "Representational"}).passed
    assert planted_study4.check_four([" Yes", "NO", "Open", "no"]).passed
