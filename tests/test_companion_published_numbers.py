"""The chapter on published numbers: every number of an erratum follows from the printed tables."""

import itertools

import pandas
import pytest
from scipy import stats
from support import errata_numbers as numbers

from biaslib import published
from companion import published_numbers as chapter

table = published.table


# ---- the numbers of each erratum, from the tables


def a1():
    orders = chapter.column_orders()
    assert len(orders) == 24
    assert orders["order"][0] == "VisualBERT, VL-BERT, ViLBERT, LXMERT"
    printed = chapter.column_order_conflicts(chapter.table4_order())
    flags = printed[["above_positive", "below_large", "needs_negligible"]].sum().tolist()
    assert flags == [11, 11, 1]
    assert chapter.column_order_conflicts(orders["order"][0].split(", "))["conflicts"].sum() == 2
    return [sum(flags), *orders["conflicts"][:2], len(printed)]


def a2():
    keys = ["kind", "test", "level", "model", "printed"]
    alike = table("ross2021", 3)[keys].merge(table("ross2021", 4)[keys], on=keys)
    sizes, cells = table("ross2021", 3)["test"].value_counts(), alike["test"].value_counts()
    whole = cells.index[cells == sizes[cells.index]]
    assert " ".join(alike.query("test == 'C8'")["printed"]) == (
        "0.77 0.59 0.43 -0.29 0.62 0.26 – 0.19 0.30 -0.32 0.13 0.26"
    )
    inside = alike["test"].isin(whole)
    return [", ".join(whole), inside.sum(), (~inside).sum()]


def a3():
    rows = chapter.masking_distances().set_index("model").round(3)
    return rows[["experiment_1", "experiment_2"]].to_numpy().ravel().tolist()


def a4():
    counts = table("ross2021", 7).groupby("experiment")["significant"].sum()
    means = [round(table("ross2021", n)["effect_size"].abs().mean(), 3) for n in (3, 4)]
    assert [chapter.mean_absolute_effect(n)[1] for n in (3, 4)] == [155, 155]
    return [*counts.loc[[1, 2]], *means]


def a5():
    totals, excess = list(numbers.image_totals().values()), numbers.image_excess()
    assert [excess["subsets_google"], excess["subsets_all"]] == [0, 0]
    return [*totals, excess["google"], excess["all"]]


def a6():
    rows = numbers.not_divisible_by_four()
    assert rows["images"].tolist() == [718, 522, 254, 229, 203, 171]
    return [len(rows), rows["odd"].sum()]


def a7():
    rows = numbers.near_bound()
    others = rows[rows["model"] != "VL-BERT"]
    assert others[["table", "model", "effect_size"]].values.tolist() == [[6, "ViLBERT", 1.96]]
    alike = numbers.repeated_masked_values()["effect_size"].tolist()
    assert alike == [-1.99, -1.99, -0.17]
    return [len(rows), len(rows) - len(others), len(alike)]


def a8():
    rows = numbers.dashes()
    lxmert = rows.query("model == 'LXMERT'")
    assert lxmert[["table", "level", "tests"]].values.tolist() == [[3, "S", "C8"], [4, "S", "C8"]]
    assert rows.query("table == 6 and level == 'T'")["model"].tolist() == ["VisualBERT"]
    return [rows["cells"].sum(), len(rows)]


def b1():
    size = numbers.taxonomy_size()
    assert size["subsets_entries"] == size["subsets_distinct"] == 0
    twice = {"aggressive", "lazy", "savage", "primitive", "radical"}
    assert set(numbers.words_in_two_types()) == twice
    assert len(numbers.alphabetical_breaks("Healthcare")) == 3
    return [size["entries"], size["distinct"]]


def b3():
    cells, conflicts = chapter.repeated_cells(), chapter.value_conflicts()
    assert conflicts[["word", "group", "casc_small", "casc_full"]].values.tolist() == [
        ["militant", "Middle Eastern", 0.7, 0.17],
        ["murderer", "Middle Eastern", 0.4, 0.16],
    ]
    lists = published.casc_tables().groupby(["table", "group"])
    breaks = [
        word
        for _, rows in lists
        for word, value, after in zip(rows["word"], rows["casc"], rows["casc"][1:], strict=False)
        if value < after
    ]
    assert breaks == ["militant", "murderer"]
    return [len(cells), len(conflicts), len(breaks), lists.ngroups]


def b4():
    rows = numbers.repeated_tables().set_index("small")
    assert rows.loc[7, ["alike", "repeated", "cells"]].tolist() == [29, 30, 30]
    return rows.loc[10, ["alike", "cells"]].tolist()


def lists(small):
    """Return the words of a group in a small table and in the fuller one, group by group."""
    full = table("hamidieh2023", chapter.SMALL_AND_FULL[small]).groupby("group")["word"]
    for group, words in table("hamidieh2023", small).groupby("group", sort=False)["word"]:
        yield group, words.tolist(), full.get_group(group).tolist()


def b5():
    skipped = []
    for _, words, full in lists(8):
        reached = max(len(words), max(map(full.index, set(words) & set(full))) + 1)
        skipped += [word for word in full[:reached] if word not in words]
    added = [group for group, words, full in lists(9) if set(words) - set(full)]
    swapped = [
        (group, first, second)
        for group, words, full in lists(9)
        for first, second in itertools.pairwise(word for word in words if word in full)
        if full.index(first) > full.index(second)
    ]
    assert swapped == [("Southeast Asian", "disadvantaged", "undocumented")]
    return [len(skipped), len(added), len(swapped)]


def b6():
    outside = numbers.words_outside_taxonomy()
    assert (outside[13], outside[17]) == (["backwards"], ["migrant"])
    assert set(table("hamidieh2023", 5)["word"]) - set(outside[5]) == {"caring"}
    return [sum(len(words) for number, words in outside.items() if number > 6), len(outside[5])]


def b7():
    rows = numbers.category_conflicts()
    found = {(r.word, r.group): (r.casc_first, r.casc_second) for r in rows.itertuples()}
    assert found == {
        ("radical", "White"): (0.31, 0.44),
        ("radical", "Middle Eastern"): (0.31, 0.39),
        ("radical", "Latino/Hispanic"): (-0.05, 0.15),
        ("liberal", "Middle Eastern"): (0.32, 0.39),
        ("liberal", "Latino/Hispanic"): (-0.03, 0.14),
        ("liberal", "East Asian"): (0.03, -0.08),
    }
    return [len(rows)]


def b11():
    rows = numbers.coverage().set_index("bias_type")
    assert rows.index[(rows == "").all(axis=1)].tolist() == ["Healthcare"]
    return [(rows == "").all(axis=1).sum(), (rows["gender"] == "").sum()]


def c1():
    ways = chapter.category_assignments()
    assert ways.loc[0, [*chapter.CATEGORIES]].tolist() == [206, 322, 486, 14]
    assert (len(ways), ways["fit"][0], ways["cells"][0]) == (24, 40, 40)
    among_three = ways.query("religion == 14")["fit_without_religion"].tolist()
    assert among_three == [30, 12, 11, 10, 2, 1]
    wrong = chapter.fitting_cells(chapter.printed_sizes())["fits"]
    weighted = numbers.weighted_overall("ALBEF", chapter.printed_sizes())
    assert weighted == {"vlrs": 86.58, "vlbs": 34.15}
    sizes = published.released_sizes().values()
    return [*sizes, f"{among_three[0]} of 30", f"{(~wrong).sum()} of {len(wrong)}"]


def c2():
    rows = chapter.overall_counts().query("model == 'ViLT'").set_index("metric")
    return rows.loc[["vlrs", "vlbs"], ["count", "n"]].astype(int).to_numpy().ravel().tolist()


def c3():
    both = pandas.concat([table("zhou2022", 3), table("zhou2022", 4)])
    wide = both.pivot(index=["table", "model", "category"], columns="metric", values="value")
    exact = numbers.harmonic_mean(wide["vlrs"], wide["vlbs"])
    low = numbers.harmonic_mean(wide["vlrs"] - 0.005, wide["vlbs"] + 0.005) - 0.005
    high = numbers.harmonic_mean(wide["vlrs"] + 0.005, wide["vlbs"] - 0.005) + 0.005
    alike = ((exact.round(2) - wide["ivlas"]).abs() < 0.001).sum()
    within = wide["ivlas"].between(low - 1e-9, high + 1e-9).sum()
    counted = pandas.concat(
        [chapter.reconstructed_counts(), chapter.overall_counts().assign(category="overall")]
    )
    percent = counted.assign(percent=100 * counted["count"] / counted["n"]).pivot(
        index=["model", "category"], columns="metric", values="percent"
    )
    joint = numbers.harmonic_mean(percent["vlrs"], percent["vlbs"]).round(2)
    printed = wide["ivlas"].droplevel("table")
    return [len(wide), alike, within, (joint == printed[joint.index]).sum()]


def c5():
    rows = numbers.category_order()
    leads = rows.loc[["CLIP", "FLAVA"], "gender_lead"]
    return [(rows["highest"] == "gender").sum(), *leads]


def d2():
    rows = numbers.entity_against_image()
    assert rows[["right", "wrong"]].values.tolist() == [[0.0018, 0.4944], [0.067, 0.084]]
    return [len(rows), (rows["ratio"] > 1).sum()]


FUNCTIONS = (a1, a2, a3, a4, a5, a6, a7, a8, b1, b3, b4, b5, b6, b7, b11, c1, c2, c3, c5, d2)
RECOMPUTED = {each.__name__.upper(): each for each in FUNCTIONS} | {
    "A11": lambda: numbers.domain_strength()["mean_absolute_effect"].round(3).tolist(),
    "B2": lambda: [table("hamidieh2023", 2)["bias_type"].nunique()],
    "B10": lambda: [", ".join(numbers.gendered_occupations()), *numbers.pronoun_order_breaks()],
    "C4": lambda: [", ".join(numbers.below_random())],
    "D3": lambda: [", ".join(numbers.article_slips())],
}


@pytest.mark.parametrize("erratum", published.errata()["id"])
def test_the_numbers_of_an_erratum_follow_from_the_printed_tables(erratum):
    computed = published.errata().set_index("id").at[erratum, "computed"]
    found = RECOMPUTED.get(erratum, list)()
    assert found == list(computed.values())


# ---- what the chapter shows besides


def test_a1_experiment_3_under_both_readings():
    totals = numbers.experiment_3_totals()
    inferred = totals.set_index("inferred")["significant"]
    assert inferred[["ViLBERT", "LXMERT", "VL-BERT"]].tolist() == [16, 12, 7]
    assert totals.set_index("table4")["significant"]["ViLBERT"] == 7
    vlbert = totals.set_index("inferred").loc["VL-BERT"]
    assert [vlbert["masked_text"], vlbert["masked_image"]] == [1, 6]


def test_a5_subsets_are_counted_as_by_brute_force():
    values = [1, 2, 2, 5]
    for target in range(1, 11):
        chosen = [s for k in range(1, 5) for s in itertools.combinations(values, k)]
        expected = sum(sum(each) == target for each in chosen)
        assert numbers.subsets_with_sum(values, target) == expected


def test_verdicts_on_pairs_of_models():
    verdicts = chapter.paired_verdicts()
    assert (verdicts[["differ", "not shown", "open"]].sum(axis=1) == verdicts["pairs"]).all()
    overall = verdicts.query("category == 'overall'").set_index("metric")
    assert overall["open"].to_dict() == {"vlrs": 2, "vlbs": 4}


def test_the_test_for_independent_samples_is_the_chi_squared_test():
    for a, b, n in [(166, 148, 514), (3, 9, 12)]:
        rows = [[a, n - a], [b, n - b]]
        expected = stats.chi2_contingency(rows, correction=False).pvalue
        assert chapter.independent_p(a, b, n) == pytest.approx(expected)


def test_stereotype_shares_are_the_extremes_over_every_split():
    rows = chapter.stereotype_share().set_index("model")
    cells = chapter.reconstructed_counts().set_index(["model", "category", "metric"])["count"]
    picked, relevant = cells["FLAVA", "religion", "vlbs"], cells["FLAVA", "religion", "vlrs"]
    splits = [inside for inside in range(8) if picked <= inside <= relevant <= inside + 7]
    assert (min(splits), max(splits)) == (max(picked, relevant - 7), min(7, relevant))
    assert (rows["low"] <= rows["high"]).all()
    assert rows.loc["ALBEF"].round(1).tolist() == [32.3, 45.9]


def test_ability_and_bias_are_correlated_over_all_orders_of_the_models():
    wide = table("zhou2022", 3).pivot(index="model", columns="metric", values="value")
    x, y = (wide.drop(index=["IDM", "RAM", "BIM"])[name].tolist() for name in ("vlrs", "vlbs"))
    rows = chapter.ability_and_bias().set_index("statistic")
    for name, correlation in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr)):
        values = [abs(correlation(x, order).statistic) for order in itertools.permutations(y)]
        observed = correlation(x, y).statistic
        expected = sum(each >= abs(observed) - 1e-9 for each in values) / 720
        assert rows.loc[name, ["value", "p_value"]].tolist() == pytest.approx([observed, expected])


# Counts behind percentages


def test_possible_counts_are_the_counts_that_print_so():
    for n in (7, 14, 103, 206):
        for k in range(n + 1):
            assert k in chapter.possible_counts(round(100 * k / n, 2), n)
    assert chapter.possible_counts(50.0, 3) == []


def overlaps(a, b, n):
    return range(max(0, a + b - n), min(a, b) + 1)


@pytest.mark.parametrize("n", range(1, 13))
def test_paired_bounds_are_the_extremes_over_every_overlap(n):
    for a, b in itertools.product(range(n + 1), repeat=2):
        every = [chapter.mcnemar_p(a - both, b - both) for both in overlaps(a, b, n)]
        bounds = chapter.paired_difference_bounds(a, b, n)
        assert (bounds["p_low"], bounds["p_high"]) == (min(every), max(every))
        assert bounds["difference"] == pytest.approx((a - b) / n)


def test_paired_bounds_with_strata_are_the_extremes_over_every_overlap():
    a, b, n = (3, 1), (1, 4), (5, 6)
    every = [
        chapter.mcnemar_p(sum(a) - sum(both), sum(b) - sum(both))
        for both in itertools.product(*(overlaps(*each) for each in zip(a, b, n, strict=True)))
    ]
    bounds = chapter.paired_difference_bounds(a, b, n)
    assert (bounds["p_low"], bounds["p_high"]) == (min(every), max(every))
    pooled = chapter.paired_difference_bounds(sum(a), sum(b), sum(n))
    assert pooled["p_low"] <= bounds["p_low"] <= bounds["p_high"] <= pooled["p_high"]


def test_mcnemar_agrees_with_the_binomial_test():
    for first, second in itertools.product(range(8), repeat=2):
        if first + second:
            expected = stats.binomtest(first, first + second).pvalue
            assert chapter.mcnemar_p(first, second) == pytest.approx(expected)
    assert chapter.mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize(
    ("margins", "verdict"), [((60, 50), "open"), ((90, 10), "differ"), ((50, 49), "not shown")]
)
def test_a_verdict_is_open_when_the_overlap_decides(margins, verdict):
    bounds = chapter.paired_difference_bounds(*margins, 100)
    assert bounds["verdict"].split(",")[0] == verdict
