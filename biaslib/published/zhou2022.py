"""Whole counts behind the percentages of VLStereoSet's tables (Zhou, Lai and Jiang 2022)."""

import functools
import itertools

import pandas
from scipy import stats

from biaslib.published._tables import released_counts, table
from biaslib.published.counts import paired_difference_bounds, possible_counts
from biaslib.runtime import unknown_name

PAPER = "zhou2022"
CATEGORIES = ("gender", "profession", "race", "religion")
METRICS = ("vlrs", "vlbs")


def printed_sizes() -> dict[str, int]:
    """Return Table 1's images per category, as printed (C1).

    >>> printed_sizes()
    {'gender': 486, 'profession': 206, 'race': 322, 'religion': 14}
    """
    sizes = table(PAPER, 1).set_index("category")["images"]
    return {name: int(sizes[name]) for name in CATEGORIES}


def released_sizes() -> dict[str, int]:
    """Return the sizes after balancing the released file: twice the rarer label's rows (C1).

    >>> released_sizes()
    {'gender': 206, 'profession': 322, 'race': 486, 'religion': 14}
    """
    rows = released_counts().set_index("category")
    return {name: 2 * int(rows.loc[name].min()) for name in CATEGORIES}


def _scores(number: int) -> pandas.DataFrame:
    rows = table(PAPER, number).query("metric in @METRICS")
    return rows[rows["model"].isin(table(PAPER, 2)["model"])]


def denominator(metric: str, images: int) -> int:
    """Return how many images a score counts: all for vlrs, the anti-stereotypical half for vlbs.

    >>> denominator("vlrs", 206), denominator("vlbs", 206)
    (206, 103)
    """
    return images if metric == "vlrs" else images // 2


def fitting_cells(sizes: dict[str, int], models=None) -> pandas.DataFrame:
    """Mark the vlrs and vlbs cells of Table 4 that are a whole count over these sizes (C1).

    >>> int(fitting_cells(released_sizes(), ["ALBEF"])["fits"].sum())
    8
    """
    rows = _scores(4)
    if models is not None:
        rows = rows[rows["model"].isin(models)]
    fits = [
        bool(possible_counts(row.value, denominator(row.metric, sizes[row.category])))
        for row in rows.itertuples()
    ]
    return rows.drop(columns=["table", "model_printed"]).assign(fits=fits).reset_index(drop=True)


def sizes_of(model: str) -> dict[str, int]:
    """Return the images per category a model was scored on: the released sizes; ViLT fewer.

    >>> sizes_of("ViLT"), sum(sizes_of("ViLT").values())
    ({'gender': 204, 'profession': 320, 'race': 480, 'religion': 14}, 1018)
    """
    return dict(_sizes_of(model))


@functools.cache
def _sizes_of(model: str) -> dict[str, int]:
    whole = bool(fitting_cells(released_sizes(), [model])["fits"].all())
    if whole:
        return released_sizes()
    found = smaller_sizes(model)
    if len(found) != 1:
        raise ValueError(f"{len(found)} sets of sizes fit {model}")
    return found[0]


def smaller_sizes(model: str = "ViLT") -> list[dict[str, int]]:
    """Return every set of even sizes within the released ones that fits Tables 3 and 4 (C2).

    A category's size fits if its vlrs is a whole count over it and its vlbs over half of it; a set
    of sizes fits if the sums of the counts print as Table 3's overall scores.

    >>> smaller_sizes("ViLT")
    [{'gender': 204, 'profession': 320, 'race': 480, 'religion': 14}]
    """
    cells = _scores(4).query("model == @model").set_index(["category", "metric"])["value"]
    released = released_sizes()
    options = [
        [
            size
            for size in range(2, released[name] + 1, 2)
            if all(possible_counts(cells[name, m], denominator(m, size)) for m in METRICS)
        ]
        for name in CATEGORIES
    ]
    sets = [dict(zip(CATEGORIES, each, strict=True)) for each in itertools.product(*options)]
    return [sizes for sizes in sets if _fits_overall(model, sizes, cells)]


def _fits_overall(model: str, sizes: dict[str, int], cells: pandas.Series) -> bool:
    overall = _scores(3).query("model == @model").set_index("metric")["value"]
    for metric in METRICS:
        n = {name: denominator(metric, sizes[name]) for name in CATEGORIES}
        options = [possible_counts(cells[name, metric], n[name]) for name in CATEGORIES]
        sums = {sum(each) for each in itertools.product(*options)}
        if not sums & set(possible_counts(overall[metric], sum(n.values()))):
            return False
    return True


def reconstructed_counts() -> pandas.DataFrame:
    """Return the whole counts behind Table 4, by model, category and metric.

    >>> rows = reconstructed_counts().query("model == 'ALBEF' and metric == 'vlrs'")
    >>> rows["count"].tolist(), rows["n"].tolist()
    ([184, 273, 408, 11], [206, 322, 486, 14])
    """
    sizes = {model: sizes_of(model) for model in table(PAPER, 2)["model"]}
    rows = _scores(4)
    n = [
        denominator(m, sizes[model][category])
        for model, category, m in zip(rows["model"], rows["category"], rows["metric"], strict=True)
    ]
    found = [possible_counts(value, size) for value, size in zip(rows["value"], n, strict=True)]
    counts = rows.assign(n=n, count=[each[0] if len(each) == 1 else None for each in found])
    return counts.drop(columns=["table", "model_printed"]).reset_index(drop=True)


def overall_counts() -> pandas.DataFrame:
    """Return the sums over categories, the percentage they make, and Table 3's (C1, C2).

    >>> overall_counts().query("model == 'ViLT'")[["count", "n", "printed"]].values.tolist()
    [[885.0, 1018.0, 86.94], [212.0, 509.0, 41.65]]
    """
    sums = reconstructed_counts().groupby(["model", "metric"], as_index=False)[["count", "n"]]
    sums = sums.sum()
    printed = _scores(3).set_index(["model", "metric"])["value"]
    sums["percent"] = (100 * sums["count"] / sums["n"]).round(2)
    sums["printed"] = [printed[key] for key in zip(sums["model"], sums["metric"], strict=True)]
    by_vlrs = sums.sort_values(["metric", "model"], ascending=[False, True])
    return by_vlrs.reset_index(drop=True)


def harmonic_mean(vlrs: float | pandas.Series, vlbs: float | pandas.Series):
    """Return ivlas, ``2 vlrs (100 - vlbs) / (vlrs + 100 - vlbs)``, in percent.

    >>> round(harmonic_mean(66.67, 33.33), 2)
    66.67
    """
    return 2 * vlrs * (100 - vlbs) / (vlrs + 100 - vlbs)


def score_intervals() -> pandas.DataFrame:
    """Return vlrs and vlbs in percent with exact binomial intervals (95%), overall and by category.

    Examples
    --------
    >>> row = score_intervals().query("model == 'ALBEF' and metric == 'vlbs'").iloc[0]
    >>> row[["count", "n", "low", "high"]].astype(float).round(1).tolist()
    [166.0, 514.0, 28.3, 36.5]
    """
    overall = overall_counts().assign(category="overall")
    rows = pandas.concat([overall, reconstructed_counts()], ignore_index=True)
    rows = rows[["model", "category", "metric", "count", "n"]]
    rows["percent"] = 100 * rows["count"] / rows["n"]
    for row, (k, n) in enumerate(zip(rows["count"], rows["n"], strict=True)):
        interval = stats.binomtest(int(k), int(n)).proportion_ci(0.95)
        rows.loc[row, ["low", "high"]] = 100 * interval.low, 100 * interval.high
    return rows


def category_order() -> pandas.DataFrame:
    """Return each model's vlbs by category, the highest category, and gender's lead (C5).

    >>> frame = category_order().set_index("model")
    >>> frame["highest"].value_counts().to_dict()
    {'gender': 5, 'religion': 1}
    """
    rows = table(PAPER, 4).query("metric == 'vlbs'")
    wide = rows.pivot(index="model", columns="category", values="value")
    others = wide.drop(columns="gender").max(axis=1)
    wide = wide.assign(highest=wide.idxmax(axis=1), gender_lead=(wide["gender"] - others).round(2))
    return wide.reset_index().rename_axis(columns=None)


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
    >>> frame = paired_bounds("vlbs")
    >>> len(frame), frame["n"].unique().tolist()
    (10, [514])
    """
    for kind, name, known in (
        ("metric", metric, METRICS),
        ("category", category or CATEGORIES[0], CATEGORIES),
    ):
        if name not in known:
            raise unknown_name(kind, name, known)
    cells = reconstructed_counts().query("metric == @metric")
    if category is not None:
        cells = cells[cells["category"] == category]
    margins = {name: rows for name, rows in cells.groupby("model") if name in _full_models()}
    pairs = itertools.combinations(_by_score(margins), 2)
    return pandas.DataFrame([_pair(first, second, margins) for first, second in pairs])


def _full_models() -> list[str]:
    return [each for each in table(PAPER, 2)["model"] if sizes_of(each) == released_sizes()]


def _by_score(margins: dict[str, pandas.DataFrame]) -> list[str]:
    return sorted(margins, key=lambda name: -margins[name]["count"].sum())


def _pair(first: str, second: str, margins: dict[str, pandas.DataFrame]) -> dict:
    a, b = (margins[name].set_index("category")["count"] for name in (first, second))
    n = margins[first].set_index("category")["n"]
    bounds = paired_difference_bounds(a.tolist(), b[a.index].tolist(), n[a.index].tolist())
    return {
        "first": first,
        "second": second,
        "n": int(n.sum()),
        "difference": 100 * bounds.difference,
        "p_low": bounds.p_low,
        "p_high": bounds.p_high,
        "verdict": bounds.verdict(),
    }
