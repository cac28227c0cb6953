"""Grounded association tests (Ross et al. 2021): Tables 1 and 3 to 7 against one another."""

import itertools
import math
from collections.abc import Sequence

import pandas

from biaslib.published._tables import table

PAPER = "ross2021"
CELL = ["experiment", "kind", "level", "model"]
PRINTED_TOTAL = 10_228
"""The number of images that the text gives."""


def table4_order() -> list[str]:
    """Return the models in the order of Table 4's header, the only header in our copy.

    >>> table4_order()
    ['VisualBERT', 'ViLBERT', 'LXMERT', 'VL-BERT']
    """
    return _columns("model_table4_order")


def inferred_order() -> list[str]:
    """Return the order of Table 7's columns that fits Tables 3 to 5 best; an inference (A1).

    >>> inferred_order()
    ['VisualBERT', 'VL-BERT', 'ViLBERT', 'LXMERT']
    """
    return _columns("model_inferred")


def _columns(name: str) -> list[str]:
    return table(PAPER, 7).drop_duplicates("column").sort_values("column")[name].tolist()


def _google_effects() -> pandas.DataFrame:
    return pandas.concat([table(PAPER, number) for number in (3, 4, 5)]).dropna(
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
    >>> int(column_order_conflicts(inferred_order())["conflicts"].sum())
    2
    """
    if sorted(order) != sorted(table4_order()):
        raise ValueError(f"{list(order)} is not an order of {', '.join(table4_order())}")
    counts = table(PAPER, 7).dropna(subset="significant")
    counts["model"] = counts["column"].map(dict(enumerate(order, start=1)))
    effects = _google_effects().groupby(CELL)["effect_size"].agg(list).to_dict()
    flags = [_flags(row, effects) for row in counts[[*CELL, "significant"]].to_dict("records")]
    return pandas.DataFrame(flags)


def _flags(row: dict, effects: dict) -> dict:
    sizes = sorted(effects.get(tuple(row[name] for name in CELL), []), reverse=True)
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


def column_orders_by_block() -> pandas.DataFrame:
    """Return the conflicts of the inferred order and the least of all orders, block by block.

    >>> frame = column_orders_by_block()
    >>> bool((frame["inferred"] == frame["least"]).all())
    True
    """
    every = {
        order: column_order_conflicts(order).groupby(["experiment", "kind"])["conflicts"].sum()
        for order in itertools.permutations(table4_order())
    }
    blocks = pandas.DataFrame({"least": pandas.DataFrame(every).min(axis=1)})
    blocks["inferred"] = every[tuple(inferred_order())]
    blocks["table4"] = every[tuple(table4_order())]
    return blocks.reset_index()


def experiment_3_totals() -> pandas.DataFrame:
    """Return the significant tests of Experiment 3 per column of Table 7, under both readings.

    >>> experiment_3_totals().set_index("inferred")["significant"].to_dict()
    {'VisualBERT': 0, 'VL-BERT': 7, 'ViLBERT': 16, 'LXMERT': 12}
    """
    counts = table(PAPER, 7).query("experiment == 3")
    sums = counts.groupby("column").agg(
        table4=("model_table4_order", "first"),
        inferred=("model_inferred", "first"),
        significant=("significant", "sum"),
        masked_text=("significant", lambda s: s[counts["level"] == "T"].sum()),
        masked_image=("significant", lambda s: s[counts["level"] == "I"].sum()),
    )
    numbers = ["significant", "masked_text", "masked_image"]
    return sums.astype(dict.fromkeys(numbers, int)).reset_index()


def identical_cells(first: int = 3, second: int = 4) -> pandas.DataFrame:
    """Return the cells printed alike in two tables of effect sizes, dashes included (A2).

    >>> identical_cells().groupby("test").size().to_dict()["C8"]
    12
    """
    keys = ["kind", "test", "level", "model"]
    both = table(PAPER, first).merge(table(PAPER, second), on=keys, suffixes=("_first", "_second"))
    alike = both[both["printed_first"] == both["printed_second"]]
    return alike[[*keys, "printed_first"]].rename(columns={"printed_first": "printed"})


def identical_tests(first: int = 3, second: int = 4) -> list[str]:
    """Return the tests whose every cell is printed alike in two tables (A2).

    >>> identical_tests()
    ['C8']
    """
    alike = identical_cells(first, second).groupby("test").size()
    size = table(PAPER, first).groupby("test").size()
    return [name for name in alike.index if alike[name] == size[name]]


def masking_cells() -> pandas.DataFrame:
    """Return Table 5's image-masked effects beside the sentence-level effects of Tables 3 and 4.

    >>> masking_cells().groupby("model", sort=False).size().to_dict()
    {'ViLBERT': 13, 'LXMERT': 13, 'VL-BERT': 13}
    """
    keys = ["test", "model"]
    rows = table(PAPER, 5).query("level == 'I'").dropna(subset="effect_size")
    rows = rows[[*keys, "effect_size"]].rename(columns={"effect_size": "masked"})
    for experiment, number in ((1, 3), (2, 4)):
        sentence = table(PAPER, number).query("level == 'S'")[[*keys, "effect_size"]]
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
    totals = table(PAPER, 7).groupby(["experiment", "kind"])["significant"].sum().astype(int)
    return totals.reset_index()


def mean_absolute_effect(number: int) -> tuple[float, int]:
    """Return the mean of ``|d|`` over a table of effect sizes, and the number of cells (A4).

    >>> round(mean_absolute_effect(3)[0], 3), mean_absolute_effect(3)[1]
    (0.634, 155)
    """
    sizes = table(PAPER, number)["effect_size"].dropna().abs()
    return float(sizes.mean()), len(sizes)


def image_totals() -> dict[str, int]:
    """Return Table 1's number of images by source and in all (A5).

    >>> image_totals()
    {'google': 10584, 'coco': 483, 'conceptual_captions': 374, 'all': 11441}
    """
    sums = table(PAPER, 1).groupby("source", sort=False)["images"].sum()
    return {**{name: int(each) for name, each in sums.items()}, "all": int(sums.sum())}


def subsets_with_sum(values: Sequence[int], target: int) -> int:
    """Count the subsets of values that sum to ``target`` (A5, B1).

    >>> subsets_with_sum([1, 2, 3], 3)
    2
    """
    return sum(
        sum(chosen) == target
        for size in range(1, len(values) + 1)
        for chosen in itertools.combinations(values, size)
    )


def image_excess() -> dict[str, int]:
    """Return how far Table 1 exceeds the total of the text, and the subsets that explain it (A5).

    >>> image_excess()["google"], image_excess()["all"]
    (356, 1213)
    """
    images, totals = table(PAPER, 1), image_totals()
    google = images.query("source == 'google'")["images"].tolist()
    excess = {name: totals[name] - PRINTED_TOTAL for name in ("google", "all")}
    return {
        **excess,
        "subsets_google": subsets_with_sum(google, excess["google"]),
        "subsets_all": subsets_with_sum(images["images"].tolist(), excess["all"]),
    }


def not_divisible_by_four() -> pandas.DataFrame:
    """Return Table 1's counts that four equal target-attribute pairs cannot make (A6).

    >>> not_divisible_by_four()["images"].tolist()
    [718, 522, 254, 229, 203, 171]
    """
    images = table(PAPER, 1)
    rest = images[images["images"] % 4 != 0].drop(columns="label")
    return rest.assign(odd=rest["images"] % 2 == 1).reset_index(drop=True)


def near_bound(threshold: float = 1.9) -> pandas.DataFrame:
    r"""Return the effect sizes near the bound 2 (A7).

    With the population's standard deviation and equally large sets, ``|d| <= 2``, and 2 is
    reached when every target of a set has the same association: a sign of degenerate inputs.

    >>> near_bound().groupby("model").size().to_dict()
    {'VL-BERT': 9, 'ViLBERT': 1}
    """
    effects = pandas.concat([table(PAPER, number) for number in (3, 4, 5, 6)])
    large = effects[effects["effect_size"].abs() >= threshold]
    return large.drop(columns=["label", "printed"]).reset_index(drop=True)


def repeated_masked_values(model: str = "VL-BERT") -> pandas.DataFrame:
    """Return the tests whose gender and race effects agree once words are masked (A7).

    >>> repeated_masked_values()["effect_size"].tolist()
    [-1.99, -1.99, -0.17]
    """
    masked = table(PAPER, 5).query("level == 'T' and model == @model")
    masked = masked.assign(test=masked["test"].str.replace("-gender|-race", "", regex=True))
    pairs = masked.pivot(index="test", columns="kind", values="effect_size").dropna()
    alike = pairs[pairs["gender"] == pairs["race"]].rename(columns={"gender": "effect_size"})
    return alike[["effect_size"]].reset_index().rename_axis(columns=None)


def dashes() -> pandas.DataFrame:
    """Return how many cells of each table, model and level are printed as a dash (A8).

    >>> dashes().query("model == 'LXMERT'")["table"].tolist()
    [3, 4]
    """
    effects = pandas.concat([table(PAPER, number) for number in (3, 4, 5, 6)])
    missing = effects[effects["effect_size"].isna()]
    by = ["table", "level", "model"]
    return missing.groupby(by, as_index=False).agg(
        cells=("printed", "size"), tests=("test", ", ".join)
    )


def domain_strength() -> pandas.DataFrame:
    """Return the mean of ``|d|`` in and out of domain, on the tests that both have (A11).

    Google Images (out of domain, Tables 3 and 4) and the models' pretraining images (Table 6),
    Experiments 1 and 2.

    >>> domain_strength().round(3).to_dict("records")[0]
    {'source': 'google', 'mean_absolute_effect': 0.751, 'cells': 48}
    """
    inside = table(PAPER, 6).query("experiment < 3")
    outside = pandas.concat([table(PAPER, 3), table(PAPER, 4)])
    outside = outside[outside["test"].isin(inside["test"])]
    sizes = pandas.concat([outside, inside]).dropna(subset="effect_size")
    sizes = sizes.assign(effect_size=sizes["effect_size"].abs())
    return sizes.groupby("source", as_index=False).agg(
        mean_absolute_effect=("effect_size", "mean"), cells=("effect_size", "size")
    )


def experiment_2_change() -> dict[str, float]:
    """Return how many cells grow and shrink in ``|d|`` from Experiment 1 to 2 (A4).

    >>> {name: round(value, 3) for name, value in experiment_2_change().items()}
    {'grew': 89, 'shrank': 52, 'same': 14, 'mean_change': 0.146}
    """
    keys = ["test", "level", "model"]
    both = (
        table(PAPER, 3)
        .merge(table(PAPER, 4), on=keys)
        .dropna(subset=["effect_size_x", "effect_size_y"])
    )
    change = both["effect_size_y"].abs() - both["effect_size_x"].abs()
    return {
        "grew": int((change > 1e-9).sum()),
        "shrank": int((change < -1e-9).sum()),
        "same": int((change.abs() <= 1e-9).sum()),
        "mean_change": math.fsum(change) / len(change),
    }


def experiment_summary() -> pandas.DataFrame:
    """Return Table 7's totals by experiment beside the mean effects of Tables 3 and 4 (A4).

    >>> experiment_summary()["all"].tolist()
    [83, 84, 35]
    """
    totals = significant_totals().pivot(index="experiment", columns="kind", values="significant")
    totals["all"] = totals.sum(axis=1)
    for experiment, number in ((1, 3), (2, 4)):
        totals.loc[experiment, "mean |d|"] = mean_absolute_effect(number)[0]
        totals.loc[experiment, "mean d"] = table(PAPER, number)["effect_size"].mean()
    return totals.reset_index().rename_axis(columns=None)
