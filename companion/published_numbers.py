"""The published numbers, re-examined: figures, tables and checks of that chapter.

What does not follow from a printed table is an erratum (A1, B3, ...; `biaslib.published.errata`);
the functions that recompute one name it.
"""

import functools
import itertools
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import stats

from biaslib.display import signed, subplots
from biaslib.inference import proportion_interval
from biaslib.published import casc_tables, errata, released_sizes, table
from biaslib.runtime import unknown_name
from companion._check import Check, judge_function
from companion._shared import TESTS, light, titled

DIVERGING = "RdBu_r"
SMALL = 9.2
P_TICKS = {1e-6: ".000001", 1e-4: ".0001", 1e-2: ".01", 1: "1"}
"""Marks of an axis of p-values, without powers, whose raised figures would be too small."""
LEVELS = {
    "W": "word",
    "S": "sentence",
    "C": "contextual",
    "T": "text masked",
    "I": "image masked",
}
"""The levels of the association tests, as the figures name them."""
GROUPS = {"Male": "men", "Female": "women"}
"""The paper's labels of groups that the figures name otherwise."""
GRID = ["experiment", "kind", "level", "model"]
CATEGORIES = ("gender", "profession", "race", "religion")
METRICS = ("vlrs", "vlbs")
CELL = ["category", "group", "word"]
SMALL_AND_FULL = {7: 14, 8: 18, 9: 17, 10: 12}
"""Tables of C-ASC for some groups, and that of the same category with more groups or words."""
FOUND = {
    ("ross2021", 3): "Table 3: more effects are positive than negative",
    ("ross2021", 4): "Table 4: with the group’s own pictures effects grow",
    ("ross2021", 5): "Table 5: half of the effects are positive",
    ("ross2021", 6): "Table 6: ViLBERT’s effects are nearly all positive",
    ("hamidieh2023", 14): "For Black faces every political word is below 0",
    ("hamidieh2023", 15): "Most occupations are printed for one group only",
    ("hamidieh2023", 17): "Illiterate, for Indian faces, is the highest",
    ("hamidieh2023", 18): "Terrorist, for Middle Eastern faces, stands alone",
}
"""Titles of heat maps of single tables: what there is to see."""


# Ross, Katz and Barbu (2021)


def table4_order() -> list[str]:
    """Return the models in the order of Table 4's header, the only header in our copy.

    >>> table4_order()
    ['VisualBERT', 'ViLBERT', 'LXMERT', 'VL-BERT']
    """
    return _columns("model_table4_order")


def _columns(name: str) -> list[str]:
    return table("ross2021", 7).drop_duplicates("column").sort_values("column")[name].tolist()


def _google_effects() -> pandas.DataFrame:
    return pandas.concat([table("ross2021", number) for number in (3, 4, 5)]).dropna(
        subset="effect_size"
    )


def column_order_conflicts(order: Sequence[str]) -> pandas.DataFrame:
    """Mark the counts of Table 7 that conflict with Tables 3 to 5 under an order of its columns.

    A test is taken to be significant only if its effect is positive (one-sided). A count k
    conflicts with the sorted effect sizes ``d_1 >= d_2 >= ...`` of its cell when it is

    - above_positive: more tests significant than positive, ``k > #{d > 0}``;
    - below_large: fewer than the large ones, ``k < #{d >= 0.5}``;
    - needs_negligible: a negligible effect would have to be significant, ``0 < d_k < 0.05``.

    The last two are a heuristic: significance also depends on the number of items.

    Examples
    --------
    >>> int(column_order_conflicts(table4_order())["conflicts"].sum())
    23
    """
    if sorted(order) != sorted(table4_order()):
        raise ValueError(f"{list(order)} is not an order of {', '.join(table4_order())}")
    counts = table("ross2021", 7).dropna(subset="significant")
    counts["model"] = counts["column"].map(dict(enumerate(order, start=1)))
    effects = _google_effects().groupby(GRID)["effect_size"].agg(list).to_dict()
    flags = [_flags(row, effects) for row in counts[[*GRID, "significant"]].to_dict("records")]
    return pandas.DataFrame(flags)


def _flags(row: dict, effects: dict) -> dict:
    sizes = sorted(effects.get(tuple(row[name] for name in GRID), []), reverse=True)
    count, positive = row["significant"], sum(each > 0 for each in sizes)
    flags = {
        "above_positive": count > positive,
        "below_large": count < sum(each >= 0.5 for each in sizes),
        "needs_negligible": 0 < count <= positive and sizes[count - 1] < 0.05,
    }
    return {**row, "effect_sizes": sizes, **flags, "conflicts": sum(flags.values())}


def column_orders() -> pandas.DataFrame:
    """Return all 24 orders of Table 7's columns with their conflicts, the best first (A1).

    >>> column_orders()["conflicts"].head(2).tolist()
    [2, 14]
    """
    flags = ["above_positive", "below_large", "needs_negligible", "conflicts"]
    rows = [
        {"order": ", ".join(order), **column_order_conflicts(order)[flags].sum().to_dict()}
        for order in itertools.permutations(table4_order())
    ]
    ordered = pandas.DataFrame(rows).sort_values(["conflicts", "order"])
    return ordered.astype(dict.fromkeys(flags, int)).reset_index(drop=True)


def masking_cells() -> pandas.DataFrame:
    """Return Table 5's image-masked effects beside the sentence-level effects of Tables 3 and 4.

    >>> masking_cells().groupby("model", sort=False).size().to_dict()
    {'ViLBERT': 13, 'LXMERT': 13, 'VL-BERT': 13}
    """
    keys = ["test", "model"]
    rows = table("ross2021", 5).query("level == 'I'").dropna(subset="effect_size")
    rows = rows[[*keys, "effect_size"]].rename(columns={"effect_size": "masked"})
    for experiment, number in ((1, 3), (2, 4)):
        sentence = table("ross2021", number).query("level == 'S'")[[*keys, "effect_size"]]
        named = sentence.rename(columns={"effect_size": f"experiment_{experiment}"})
        rows = rows.merge(named, on=keys)
    return rows


def masking_distances() -> pandas.DataFrame:
    r"""Return the mean distance of masked-image effects from both experiments (A3).

    ``mean |d(Table 5, I) - d(Table t, S)|`` over the tests that both print, for t = 3, 4.

    >>> masking_distances().round(3).to_dict("records")[0]
    {'model': 'ViLBERT', 'experiment_1': 0.044, 'experiment_2': 0.39}
    """
    cells = masking_cells()
    for name in ("experiment_1", "experiment_2"):
        cells[name] = (cells["masked"] - cells[name]).abs()
    means = cells.groupby("model", sort=False)[["experiment_1", "experiment_2"]].mean()
    return means.reset_index()


def significant_totals() -> pandas.DataFrame:
    """Return Table 7's totals by experiment and kind; they hold for any order of columns (A4).

    >>> significant_totals().query("experiment < 3")["significant"].tolist()
    [32, 51, 30, 54]
    """
    totals = table("ross2021", 7).groupby(["experiment", "kind"])["significant"].sum().astype(int)
    return totals.reset_index()


def mean_absolute_effect(number: int) -> tuple[float, int]:
    """Return the mean of ``|d|`` over a table of effect sizes, and the number of cells (A4).

    >>> round(mean_absolute_effect(3)[0], 3), mean_absolute_effect(3)[1]
    (0.634, 155)
    """
    sizes = table("ross2021", number)["effect_size"].dropna().abs()
    return float(sizes.mean()), len(sizes)


def experiment_summary() -> pandas.DataFrame:
    """Return Table 7's totals by experiment beside the mean effects of Tables 3 and 4 (A4).

    >>> experiment_summary()["all"].tolist()
    [83, 84, 35]
    """
    totals = significant_totals().pivot(index="experiment", columns="kind", values="significant")
    totals["all"] = totals.sum(axis=1)
    for experiment, number in ((1, 3), (2, 4)):
        totals.loc[experiment, "mean |d|"] = mean_absolute_effect(number)[0]
        totals.loc[experiment, "mean d"] = table("ross2021", number)["effect_size"].mean()
    return totals.reset_index().rename_axis(columns=None)


# Hamidieh et al. (2023)


def repeated_cells() -> pandas.DataFrame:
    """Return the cells that a smaller and a fuller table both print, with both values (B3).

    >>> cells = repeated_cells()
    >>> len(cells), int((cells["casc_small"] != cells["casc_full"]).sum())
    (112, 2)
    """
    pairs = [
        table("hamidieh2023", small).merge(
            table("hamidieh2023", full), on=CELL, suffixes=("_small", "_full")
        )
        for small, full in SMALL_AND_FULL.items()
    ]
    return pandas.concat(pairs, ignore_index=True).drop(columns=["facet_small", "facet_full"])


def value_conflicts() -> pandas.DataFrame:
    """Return the repeated cells whose two values differ (B3).

    >>> value_conflicts()[["word", "casc_small", "casc_full"]].values.tolist()
    [['militant', 0.7, 0.17], ['murderer', 0.4, 0.16]]
    """
    cells = repeated_cells()
    return cells[cells["casc_small"] != cells["casc_full"]].reset_index(drop=True)


# Zhou, Lai and Jiang (2022): whole counts behind printed percentages


def possible_counts(percent: float, n: int) -> list[int]:
    """Return the whole counts k out of n that print as this percentage, with two decimals.

    ``|100 k / n - percent| <= 0.005``: a tie may be rounded either way.

    >>> possible_counts(85.21, 1028), possible_counts(85.21, 14)
    ([876], [])
    """
    half = 0.005 + 1e-9
    first = math.ceil((percent - half) * n / 100)
    last = math.floor((percent + half) * n / 100)
    return list(range(max(first, 0), min(last, n) + 1))


def mcnemar_p(first_only: int, second_only: int) -> float:
    """Return the exact two-sided McNemar p-value from the two discordant counts.

    ``p = min(1, 2 P(K <= min(first_only, second_only)))``, K binomial over the discordant items
    with probability 1/2 (McNemar 1947); 1 when nothing is discordant.

    >>> mcnemar_p(0, 6), mcnemar_p(5, 5)
    (0.03125, 1.0)
    """
    tail = stats.binom.cdf(min(first_only, second_only), first_only + second_only, 0.5)
    return min(1.0, 2 * float(tail))


def paired_difference_bounds(
    a: int | Sequence[int], b: int | Sequence[int], n: int | Sequence[int]
) -> dict[str, Any]:
    """Bound the exact McNemar p-value of two models scored on the same items.

    Only the margins are known: of ``n`` items the first model has ``a``, the second ``b``. The
    items that both have lie between ``max(0, a + b - n)`` and ``min(a, b)``; a larger overlap
    leaves fewer discordant items and the same difference, so a smaller p-value. With sequences,
    each place is a stratum (a category) and the overlaps are bounded stratum by stratum, which
    is sharper.

    Returns
    -------
    dict
        *n*, the *difference* of the two shares, *p_low*, *p_high*, and as *verdict* what the
        margins settle.

    Examples
    --------
    >>> bounds = paired_difference_bounds(8, 5, 14)
    >>> bounds["p_low"], round(bounds["p_high"], 3), bounds["verdict"]
    (0.25, 0.581, 'not shown, whatever the overlap')
    """
    a, b, n = (np.atleast_1d(counts).astype(int) for counts in (a, b, n))
    most, least = np.minimum(a, b).sum(), np.maximum(0, a + b - n).sum()
    first, second, items = int(a.sum()), int(b.sum()), int(n.sum())
    low, high = (mcnemar_p(first - both, second - both) for both in (most, least))
    verdict = "open"
    if high <= 0.05:
        verdict = "differ, whatever the overlap"
    elif low > 0.05:
        verdict = "not shown, whatever the overlap"
    difference = (first - second) / items
    return {
        "n": items,
        "difference": difference,
        "p_low": low,
        "p_high": high,
        "verdict": verdict,
    }


def printed_sizes() -> dict[str, int]:
    """Return Table 1's images per category, as printed (C1).

    >>> printed_sizes()
    {'gender': 486, 'profession': 206, 'race': 322, 'religion': 14}
    """
    sizes = table("zhou2022", 1).set_index("category")["images"]
    return {name: int(sizes[name]) for name in CATEGORIES}


def printed_scores(number: int) -> pandas.DataFrame:
    """Return the vlrs and vlbs of the six models in Table 3 or 4.

    >>> len(printed_scores(3)), len(printed_scores(4))
    (12, 48)
    """
    rows = table("zhou2022", number).query("metric in @METRICS")
    return rows[rows["model"].isin(table("zhou2022", 2)["model"])]


def denominator(metric: str, images: int) -> int:
    """Return how many images a score counts: all for vlrs, the anti-stereotypical half for vlbs.

    >>> denominator("vlrs", 206), denominator("vlbs", 206)
    (206, 103)
    """
    return images if metric == "vlrs" else images // 2


def fitting_cells(sizes: Mapping[str, int], models=None) -> pandas.DataFrame:
    """Mark the vlrs and vlbs cells of Table 4 that are a whole count over these sizes (C1).

    >>> int(fitting_cells(released_sizes(), ["ALBEF"])["fits"].sum())
    8
    """
    rows = printed_scores(4)
    if models is not None:
        rows = rows[rows["model"].isin(models)]
    fits = [
        bool(possible_counts(row.value, denominator(row.metric, sizes[row.category])))
        for row in rows.itertuples()
    ]
    return rows.drop(columns=["table", "model_printed"]).assign(fits=fits).reset_index(drop=True)


@functools.cache
def sizes_of(model: str) -> Mapping[str, int]:
    """Return the images per category a model was scored on: the released sizes; ViLT fewer.

    >>> sizes_of("ViLT"), sum(sizes_of("ViLT").values())
    ({'gender': 204, 'profession': 320, 'race': 480, 'religion': 14}, 1018)
    """
    if fitting_cells(released_sizes(), [model])["fits"].all():
        return released_sizes()
    [sizes] = smaller_sizes(model)
    return sizes


def smaller_sizes(model: str = "ViLT") -> list[dict[str, int]]:
    """Return every set of even sizes within the released ones that fits Tables 3 and 4 (C2).

    A category's size fits if its vlrs is a whole count over it and its vlbs over half of it; a set
    of sizes fits if the sums of the counts print as Table 3's overall scores.

    >>> smaller_sizes("ViLT")
    [{'gender': 204, 'profession': 320, 'race': 480, 'religion': 14}]
    """
    cells = printed_scores(4).query("model == @model").set_index(["category", "metric"])["value"]
    released = released_sizes()
    options = [
        [
            size
            for size in range(2, released[name] + 1, 2)
            if all(possible_counts(cells[name, m], denominator(m, size)) for m in METRICS)
        ]
        for name in CATEGORIES
    ]
    sets = [dict(zip(CATEGORIES, sizes, strict=True)) for sizes in itertools.product(*options)]
    return [sizes for sizes in sets if _fits_overall(model, sizes, cells)]


def _fits_overall(model: str, sizes: dict[str, int], cells: pandas.Series) -> bool:
    overall = printed_scores(3).query("model == @model").set_index("metric")["value"]
    for metric in METRICS:
        n = {name: denominator(metric, sizes[name]) for name in CATEGORIES}
        options = [possible_counts(cells[name, metric], n[name]) for name in CATEGORIES]
        sums = {sum(counts) for counts in itertools.product(*options)}
        if not sums & set(possible_counts(overall[metric], sum(n.values()))):
            return False
    return True


def reconstructed_counts() -> pandas.DataFrame:
    """Return the whole counts behind Table 4, by model, category and metric.

    >>> rows = reconstructed_counts().query("model == 'ALBEF' and metric == 'vlrs'")
    >>> rows["count"].tolist(), rows["n"].tolist()
    ([184, 273, 408, 11], [206, 322, 486, 14])
    """
    rows = printed_scores(4)
    n = [
        denominator(metric, sizes_of(model)[category])
        for model, category, metric in zip(
            rows["model"], rows["category"], rows["metric"], strict=True
        )
    ]
    counts = [possible_counts(value, size) for value, size in zip(rows["value"], n, strict=True)]
    one = [options[0] if len(options) == 1 else None for options in counts]
    rows = rows.assign(n=n, count=one)
    return rows.drop(columns=["table", "model_printed"]).reset_index(drop=True)


def overall_counts() -> pandas.DataFrame:
    """Return the sums over categories, the percentage they make, and Table 3's (C1, C2).

    >>> overall_counts().query("model == 'ViLT'")[["count", "n", "printed"]].values.tolist()
    [[885.0, 1018.0, 86.94], [212.0, 509.0, 41.65]]
    """
    sums = reconstructed_counts().groupby(["model", "metric"], as_index=False)[["count", "n"]]
    sums = sums.sum()
    printed = printed_scores(3).set_index(["model", "metric"])["value"]
    sums["percent"] = (100 * sums["count"] / sums["n"]).round(2)
    sums["printed"] = [printed[key] for key in zip(sums["model"], sums["metric"], strict=True)]
    by_vlrs = sums.sort_values(["metric", "model"], ascending=[False, True])
    return by_vlrs.reset_index(drop=True)


def score_intervals() -> pandas.DataFrame:
    """Return vlrs and vlbs in percent with exact binomial intervals (95%), overall and by category.

    >>> row = score_intervals().query("model == 'ALBEF' and metric == 'vlbs'").iloc[0]
    >>> row[["count", "n", "low", "high"]].astype(float).round(1).tolist()
    [166.0, 514.0, 28.3, 36.5]
    """
    overall = overall_counts().assign(category="overall")
    rows = pandas.concat([overall, reconstructed_counts()], ignore_index=True)
    rows = rows[["model", "category", "metric", "count", "n"]]
    rows["percent"] = 100 * rows["count"] / rows["n"]
    for row, (k, n) in enumerate(zip(rows["count"], rows["n"], strict=True)):
        interval = proportion_interval(int(k), int(n))
        rows.loc[row, ["low", "high"]] = 100 * interval.low, 100 * interval.high
    return rows


def paired_bounds(metric: str, category: str | None = None) -> pandas.DataFrame:
    """Bound the McNemar p-value of every two models that were scored on the same images.

    Parameters
    ----------
    metric
        ``"vlrs"`` or ``"vlbs"``.
    category
        One category; ``None`` takes all, with the overlap bounded category by category.

    Examples
    --------
    >>> rows = paired_bounds("vlbs")
    >>> len(rows), rows["n"].unique().tolist()
    (10, [514])
    """
    cells = reconstructed_counts().query("metric == @metric")
    if category is not None:
        cells = cells[cells["category"] == category]
    counts = cells.pivot(index="model", columns="category", values="count")
    n = cells.pivot(index="model", columns="category", values="n")
    same_images = [model for model in counts.index if sizes_of(model) == released_sizes()]
    by_score = counts.loc[same_images].sum(axis=1).sort_values(ascending=False, kind="stable")
    rows = []
    for first, second in itertools.combinations(by_score.index, 2):
        bounds = paired_difference_bounds(counts.loc[first], counts.loc[second], n.loc[first])
        bounds["difference"] *= 100
        rows.append({"first": first, "second": second} | bounds)
    return pandas.DataFrame(rows)


def category_assignments() -> pandas.DataFrame:
    """Give the four printed sizes to the categories in all 24 ways; count the cells that fit (C1).

    ViLT is left out, which was scored on fewer images (C2).

    Examples
    --------
    >>> best = category_assignments().iloc[0]
    >>> best[["gender", "profession", "race", "religion", "fit", "cells"]].tolist()
    [206, 322, 486, 14, 40, 40]
    """
    models = [each for each in table("zhou2022", 2)["model"] if each != "ViLT"]
    rows = []
    for order in itertools.permutations(printed_sizes().values()):
        sizes = dict(zip(CATEGORIES, order, strict=True))
        cells = fitting_cells(sizes, models)
        large = cells[cells["category"] != "religion"]
        counted = {"fit": int(cells["fits"].sum()), "cells": len(cells)}
        rows.append({**sizes, **counted, "fit_without_religion": int(large["fits"].sum())})
    ordered = pandas.DataFrame(rows).sort_values("fit", ascending=False, kind="stable")
    return ordered.reset_index(drop=True)


def paired_verdicts() -> pandas.DataFrame:
    """Count the verdicts on the pairs of models, overall and within each category.

    >>> paired_verdicts().query("category == 'religion'")["not shown"].tolist()
    [10, 10]
    """
    rows = []
    for metric, category in itertools.product(METRICS, (None, *CATEGORIES)):
        verdicts = paired_bounds(metric, category)["verdict"]
        row = {"metric": metric, "category": category or "overall", "pairs": len(verdicts)}
        starts = {"differ": "differ", "not shown": "not", "open": "open"}
        counted = {name: int(verdicts.str.startswith(s).sum()) for name, s in starts.items()}
        rows.append({**row, **counted})
    return pandas.DataFrame(rows)


def ability_and_bias() -> pandas.DataFrame:
    """Return the correlation of vlrs and vlbs over the six models, with an exact p-value.

    The two-sided p-value is the share of all orders of the models with as large a correlation in
    size. ``lowest`` and ``highest`` are the values when one model is left out.

    Examples
    --------
    >>> ability_and_bias()[["statistic", "n"]].values.tolist()
    [['Pearson', 6], ['Spearman', 6]]
    """
    wide = printed_scores(3).pivot(index="model", columns="metric", values="value")
    wide, rows = wide[list(METRICS)], []
    for name, correlation in (("Pearson", stats.pearsonr), ("Spearman", stats.spearmanr)):
        left = [correlation(*wide.drop(each).T.values).statistic for each in wide.index]
        row = {"statistic": name, "n": len(wide), "value": correlation(*wide.T.values).statistic}
        row["p_value"] = _orders_as_far(*wide.T.values, correlation)
        rows.append({**row, "lowest": min(left), "highest": max(left)})
    return pandas.DataFrame(rows)


def _orders_as_far(x: np.ndarray, y: np.ndarray, correlation: Callable) -> float:
    def size(order: np.ndarray) -> float:
        return abs(correlation(order, y).statistic)

    found = stats.permutation_test((x,), size, permutation_type="pairings", alternative="greater")
    return found.pvalue


def stereotype_share() -> pandas.DataFrame:
    """Bound the share of stereotypes among the relevant picks on anti-stereotypical images.

    vlbs counts stereotypes among all picks, so a model that picks unrelated captions has a low
    one. Of R relevant picks on n images, the anti-stereotypical half m = n / 2 holds at least
    ``max(S, R - m)`` and at most ``min(m, R)``, S being the stereotypes picked there; the bounds
    are summed over the categories. A model that picks at random among relevant captions has 50.

    Examples
    --------
    >>> stereotype_share().query("model == 'ALBEF'")[["low", "high"]].round(1).values.tolist()
    [[32.3, 45.9]]
    """
    wide = reconstructed_counts().pivot(
        index=["model", "category"], columns="metric", values=["count", "n"]
    )
    relevant, picked, half = wide["count", "vlrs"], wide["count", "vlbs"], wide["n", "vlbs"]
    most = relevant.clip(upper=half).groupby("model").sum()
    least = (relevant - half).clip(lower=picked).groupby("model").sum()
    stereotypes = picked.groupby("model").sum()
    share = pandas.DataFrame({"low": 100 * stereotypes / most, "high": 100 * stereotypes / least})
    return share.sort_values("low").reset_index()


def independent_p(a: int, b: int, n: int) -> float:
    """Return the two-sided p-value of the z-test for two independent proportions out of n each.

    ``z = (a - b) / n / sqrt(2 q (1 - q) / n)`` with ``q = (a + b) / (2 n)``. For comparison only:
    models scored on the same items are not independent.

    Examples
    --------
    >>> round(independent_p(60, 40, 100), 4)
    0.0047
    """
    pooled = (a + b) / (2 * n)
    error = math.sqrt(2 * pooled * (1 - pooled) / n)
    return 2 * float(stats.norm.sf(abs(a - b) / n / error))


# Figures and tables


WORDS = json.loads((Path(__file__).parent / "data" / "columns.json").read_text(encoding="utf-8"))
"""Columns of the re-examination in words."""


def _pastel():
    """Return a diverging palette whose ends are light enough for black ink."""
    return light(DIVERGING, 0.28, 0.72)


def _heat_map(axes, values: np.ndarray, limit: float, missing: str = "", words=None):
    """Draw an annotated heat map, diverging about 0, with a word in each cell if words are given.

    Empty cells are hatched if something stands for what is missing.
    """
    image = axes.imshow(values, cmap=_pastel(), vmin=-limit, vmax=limit, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            _missing(axes, row, column, missing)
        else:
            text = signed(value) if words is None else f"{words[row][column]} {signed(value)}"
            axes.text(column, row, text, ha="center", va="center", size=SMALL)
    axes.tick_params(length=0, labelsize=SMALL)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image


def _missing(axes, row: int, column: int, text: str) -> None:
    if not text:
        return
    axes.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor="0.6", linewidth=0
        )
    )
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.text(column, row, text, ha="center", va="center", color="black", size=SMALL, bbox=box)


def _colour_bar(figure: Figure, image, axes, label: str) -> None:
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=40, pad=0.01)
    bar.set_label(textwrap.fill(label, 30), size=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)


def effect_sizes(number: int) -> pandas.DataFrame:
    """Return one of Tables 3 to 6 of the grounded tests with a row per test and level.

    A level of Table 6 is preceded by its experiment. Dashes are missing values.
    """
    if number not in (3, 4, 5, 6):
        raise unknown_name("table of effect sizes", str(number), "3456")
    rows = table("ross2021", number)
    rows["level"] = rows["level"].map(LEVELS)
    if number == 6:
        rows["level"] = "exp. " + rows["experiment"].astype(str) + ", " + rows["level"]
    rows["test"] = rows["test"].map(TESTS)
    wide = rows.pivot(index=["test", "level"], columns="model", values="effect_size")
    order = rows[["test", "level"]].drop_duplicates()
    wide = wide.loc[list(order.itertuples(index=False, name=None)), rows["model"].unique()]
    return wide.reset_index().rename_axis(columns=None)


def effect_size_map(number: int) -> Figure:
    """Draw one of Tables 3 to 6 of the grounded tests, annotated, on a scale from -2 to 2."""
    wide = effect_sizes(number)
    wide["level"] = wide["level"].str.removeprefix("exp. ")
    models = list(wide.columns[2:])
    values = wide[models].to_numpy(dtype=float)
    figure, axes = subplots(height=2.1 + 0.255 * len(wide), width=4.3)
    image = _heat_map(axes, values, 2, "–")
    _name_cells(axes, models, wide["level"])
    _name_tests(axes, wide)
    numbered = "on the left, the experiment; " if number == 6 else ""
    _colour_bar(figure, image, axes, f"effect size d; {numbered}hatched: printed as a dash")
    figure.suptitle(FOUND["ross2021", number], size=11)
    return figure


def _name_cells(axes, columns, rows) -> None:
    """Name the columns of a heat map above it, and its rows on the left."""
    columns = list(columns)
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), rows)


def _name_tests(axes, wide: pandas.DataFrame) -> None:
    """Write each test's name beside its block of rows, and a line between blocks."""
    left = -14 - 5.4 * wide["level"].str.len().max()
    for name, rows in wide.groupby("test", sort=False):
        first, last = rows.index[0], rows.index[-1]
        place = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
        words, middle = textwrap.fill(name, 16), (0, (first + last) / 2)
        axes.annotate(words, middle, (left, 0), ha="right", va="center", size=SMALL, **place)
        if first:
            axes.axhline(first - 0.5, color="black", linewidth=1.2)


def gender_words() -> Figure:
    """Draw the C-ASC tables by gender: the ranked words of each group, coloured by C-ASC."""
    figure, panels = subplots(4, 1, height=12.0, width=4.3, height_ratios=[5, 7, 10, 10])
    for axes, number in zip(panels, (3, 4, 5, 6), strict=True):
        rows = table("hamidieh2023", number)
        values, words = (
            rows.pivot(index="rank", columns="group", values=name)[["Male", "Female"]].to_numpy()
            for name in ("casc", "word")
        )
        image = _heat_map(axes, values.astype(float), 1.7, words=words)
        axes.set_xticks([0, 1], [GROUPS["Male"], GROUPS["Female"]])
        axes.set_yticks(range(len(values)), [str(rank) for rank in range(1, len(values) + 1)])
        axes.set_title(f"{rows['category'][0]} (Table {number})", size=11)
    _colour_bar(figure, image, panels, "C-ASC as printed; the number on the left is the rank")
    figure.suptitle("Occupations have the highest scores", size=11)
    return figure


def words_by_group(number: int) -> pandas.DataFrame:
    """Return a C-ASC table by race with a row per word and a column per group.

    A cell is missing where the word is not among the group's printed words.
    """
    if number not in range(7, 19):
        raise unknown_name("C-ASC table by race", str(number), range(7, 19))
    rows = table("hamidieh2023", number)
    wide = rows.pivot(index="word", columns="group", values="casc")[rows["group"].unique()]
    first = wide.to_numpy(dtype=float)
    order = np.lexsort((-np.nanmax(first, axis=1), np.nanargmax(first, axis=1)))
    return wide.iloc[order].reset_index().rename_axis(columns=None)


def word_map(number: int) -> Figure:
    """Draw a C-ASC table by race: words by groups, blank where a word is not printed."""
    wide = words_by_group(number)
    label = "C-ASC as printed; blank: not among the group's printed words"
    figure, axes = _group_map(wide, 2.3 + 0.225 * len(wide), 1.7, "", label)
    figure.suptitle(FOUND.get(("hamidieh2023", number), f"Table {number}"), size=11)
    axes.set_yticks(np.arange(len(wide)) - 0.5, minor=True)
    axes.grid(which="minor", axis="y", color="0.85", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    return figure


def _group_map(wide: pandas.DataFrame, height: float, limit: float, missing: str, label: str):
    """Draw a heat map of a table with a column a group, whose first column names the rows."""
    figure, axes = subplots(height=height, width=4.3)
    image = _heat_map(axes, wide.iloc[:, 1:].to_numpy(dtype=float), limit, missing)
    _name_cells(axes, map(_two_lines, wide.columns[1:]), wide.iloc[:, 0])
    _colour_bar(figure, image, axes, label)
    return figure, axes


def _two_lines(name: str) -> str:
    return name.replace(" ", "\n").replace("/", "/\n")


def top_words_summary() -> pandas.DataFrame:
    """Return the mean C-ASC of the printed top words by group and category (race tables)."""
    rows = casc_tables().query("facet == 'race' and table in [10, 11, 13, 14, 15, 16, 17, 18]")
    groups = table("hamidieh2023", 13)["group"].unique()
    wide = rows.pivot_table(index="category", columns="group", values="casc", aggfunc="mean")
    return wide[list(groups)].reset_index().rename_axis(columns=None)


def top_words_map() -> Figure:
    """Draw the mean C-ASC of each group's ten printed words, by category; no words shown."""
    label = "mean C-ASC of the ten printed words; hatched: no list"
    figure, _ = _group_map(top_words_summary(), 4.6, 0.8, "–", label)
    figure.suptitle("Religion, for Middle Eastern faces, is the highest", size=11)
    return figure


def conflicts_by_order() -> Figure:
    """Draw the conflicts of the 24 orders of Table 7's columns, by kind of conflict."""
    rows = column_orders().iloc[::-1].reset_index(drop=True)
    counted = len(column_order_conflicts(table4_order()))
    figure, axes = subplots(height=9.8, width=4.3)
    kinds = {name: WORDS[name] for name in ("above_positive", "below_large", "needs_negligible")}
    left = np.zeros(len(rows))
    orders = rows["order"].str.replace(r"(, \S+),", r"\1,\n", n=1, regex=True)
    for (name, label), hatch in zip(kinds.items(), ("", "///", "..."), strict=True):
        axes.barh(orders, rows[name], left=left, label=label, hatch=hatch, edgecolor="white")
        left += rows[name].to_numpy()
    for at, total in enumerate(rows["conflicts"]):
        axes.text(total + 0.4, at, str(total), va="center", size=SMALL)
    axes.set_xlabel(f"conflicts among {counted} counts")
    axes.margins(x=0.12, y=0.01)
    titled(figure, "One order of the columns fits far better", columns=1)
    axes.tick_params(labelsize=SMALL)
    return figure


def fits_by_assignment() -> Figure:
    """Draw how many cells of Table 4 fit each way of giving the sizes to the categories."""
    rows = category_assignments().iloc[::-1].reset_index(drop=True)
    names = ["gender", "profession", "race", "religion"]
    labels = [" / ".join(str(row[name]) for name in names) for _, row in rows.iterrows()]
    printed = " / ".join(str(n) for n in printed_sizes().values())
    figure, axes = subplots(height=6.4, width=4.3)
    colours = ["C1" if label == printed else "C0" for label in labels]
    bars = axes.barh(labels, rows["fit"], color=colours)
    axes.bar_label(bars, size=SMALL, padding=3)
    bars[labels.index(printed)].set_hatch("///")
    axes.margins(x=0.12, y=0.01)
    axes.set_xlabel(f"cells of {rows['cells'][0]} that are whole counts\n(hatched: as printed)")
    axes.set_ylabel("sizes of gender / profession / race / religion")
    return titled(figure, "One assignment fits every cell")


def paired_verdicts_figure() -> Figure:
    """Draw, for every two models, the range of the McNemar p-value that the margins allow."""
    figure, panels = subplots(2, 1, height=6.8, width=4.3, sharex=True)
    for axes, metric in zip(panels, ("vlrs", "vlbs"), strict=True):
        rows = paired_bounds(metric).sort_values("p_high", ascending=False)
        low, high = rows["p_low"].clip(lower=1e-6), rows["p_high"].clip(lower=1e-6)
        at = np.arange(len(rows))
        axes.hlines(at, low, high, color="C0", linewidth=3)
        axes.plot(low, at, "|", color="C0", markersize=10, markeredgewidth=2)
        axes.plot(high, at, "o", color="C0", markersize=6)
        axes.axvline(0.05, color="0.3", linestyle="--", linewidth=1)
        pairs = zip(rows["first"], rows["second"], rows["difference"], strict=True)
        axes.set_yticks(at, [f"{a} – {b}: {d:+.1f}".replace("-", "−") for a, b, d in pairs])
        axes.tick_params(labelsize=SMALL)
        axes.set_xscale("log")
        axes.set_xticks(list(P_TICKS), list(P_TICKS.values()))
        axes.xaxis.minorticks_off()
        axes.set_title(f"{metric} (difference in points)", size=11, loc="left")
    panels[1].set_xlabel(
        "exact McNemar p-value, smallest\nto largest possible (below 0.000001\n"
        "drawn there; dashed: 0.05)",
        size=10,
    )
    figure.suptitle("The printed totals settle many pairs, not all", size=11)
    return figure


def errata_table(paper: str) -> pandas.DataFrame:
    """Return a paper's errata for reading: id, tables, finding, computed numbers, standing."""
    frame = errata(paper)
    return pandas.DataFrame(
        {
            "id": frame["id"],
            "tables": frame["tables"].map(lambda each: ", ".join(map(str, each)) or "text"),
            "what": frame["title"],
            "printed": frame["printed"].map(_pairs),
            "computed": frame["computed"].map(_pairs),
            "standing": frame["standing"],
            "what would settle it": frame["settle"],
        }
    )


def _pairs(numbers: dict) -> str:
    return "; ".join(f"{name}: {_number(value)}" for name, value in numbers.items()) or "–"


def _number(value) -> str:
    """Return a number of an entry, thousands apart.

    >>> _number(10228), _number(0.044), _number([0.7, 0.17])
    ('10,228', '0.044', '0.7 and 0.17')
    """
    if isinstance(value, list):
        return " and ".join(map(_number, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def in_words(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return a table whose columns are named in words, with bounds of p-values as text.

    Examples
    --------
    >>> in_words(pandas.DataFrame({"p_low": [1e-6], "p_high": [0.1027]})).to_dict("records")
    [{'smallest p': '< .0001', 'largest p': '.1027'}]
    """
    bounds = {name: frame[name].map(_p_bound) for name in ("p_low", "p_high") if name in frame}
    return frame.assign(**bounds).rename(columns=WORDS)


def _p_bound(p: float) -> str:
    return "< .0001" if p < 0.0001 else f"{p:.4f}".removeprefix("0")


def check_sizes(answer) -> Check:
    """Judge which numbers of images a percentage printed with two decimals can be over."""
    cases = [(71.43, 30), (14.29, 15), (50.0, 9), (33.33, 40)]
    cases = [
        ((percent, most), [n for n in range(1, most + 1) if possible_counts(percent, n)])
        for percent, most in cases
    ]
    hint = "for each number of images: does the nearest count round to the printed two decimals?"
    right = "no count divides exactly, and few round to it."
    return judge_function(answer, cases, hint, right=right)
