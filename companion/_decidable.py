"""Which printed numbers a run can decide: runs equal to the papers, and what is said of them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas

from biaslib import published, reproduction
from biaslib.metrics.caption_selection import ivlas

WIDTHS = Path(__file__).parent / "data" / "picture_widths.csv"
"""Half the width of a simulated interval over pictures, from ``tools/decision_rule.py``."""

DRAWS, SEED = 1_000, 0
ALIVE = 0.85

EqualRun = tuple[pandas.DataFrame, dict[str, pandas.DataFrame]]
"""Scores and counts."""


def equal_run(paper: str, alive: float = 1.0) -> EqualRun:
    """Return scores and counts of a run whose every number is the printed one.

    Parameters
    ----------
    paper
        One of the four.
    alive
        Share of the pictures behind links that are there.

    Notes
    -----
    Intervals over pictures are simulated for Ross et al. (``tools/decision_rule.py``), with links
    that die evenly, and those of a binomial for Zhou et al.; there the range over balanced
    selections is that of draws from the released table. FairFace is one file, and has no links.

    Examples
    --------
    >>> scores, counts = equal_run("hamidieh2023")
    >>> len(scores), counts
    (597, {})
    """
    made = {"ross2021": _grounded, "hamidieh2023": _clip_audit, "zhou2022": _captions}
    if paper not in made:
        return pandas.DataFrame(), {}
    rows, counts = made[paper](alive)
    labels = {"study": paper, "profile": "paper", "revision": "as printed", "seed": SEED}
    return rows.assign(**labels), counts


def decided(alive: float = 1.0) -> pandas.DataFrame:
    """Return what is said of each printed number by a run that is equal to its paper.

    Columns are those of :func:`biaslib.reproduction.compare`, and *paper*, *place*, *barrier* and
    *erratum*.
    """
    parts = []
    for paper in published.PAPERS:
        scores, counts = equal_run(paper, alive)
        found = reproduction.compare(scores, paper, counts)
        known = reproduction.printed(paper).query("kind != 'list'")
        about = known[["id", "paper", "place", "barrier", "erratum"]]
        parts.append(about.merge(found, on="id"))
    return pandas.concat(parts, ignore_index=True)


def decidable() -> pandas.DataFrame:
    """Return by paper how many of its numbers a run that is equal to it can meet, and why not all.

    Returns
    -------
    pandas.DataFrame
        *paper*, its printed *numbers*, how many are met with *every picture* and with *85% of the
        links*, and of how many of the *others*, in the two runs, what stands in the way.

    Examples
    --------
    >>> decidable().set_index("paper")["numbers"].to_dict()["srinivasan2021"]
    4
    """
    runs = {"every picture": decided(), "85% of the links": decided(ALIVE)}
    rows = []
    for paper in published.PAPERS:
        found = [run[run["paper"] == paper] for run in runs.values()]
        met = [int((run["verdict"] == "met").sum()) for run in found]
        left = [Counter(map(_way, run[run["verdict"] != "met"].itertuples())) for run in found]
        others = [f"{left[0][way]} and {left[1][way]}: {way}" for way in left[0] | left[1]]
        numbers = {"paper": paper, "numbers": len(found[0])}
        rows.append(numbers | dict(zip(runs, met, strict=True)) | {"others": "; ".join(others)})
    return pandas.DataFrame(rows)


def _way(number) -> str:
    """Return what stands in the way of a number."""
    if number.verdict == "not met":
        return f"printed twice with two values, or under another heading ({number.erratum})"
    return number.barrier


# The three papers with data that can be had


def _grounded(alive: float) -> EqualRun:
    every = pandas.concat([published.table("ross2021", number) for number in (3, 4, 5, 6)])
    # Table 7 counts the test whose effect size is left out of Tables 3 and 4, too.
    every = every.assign(effect_size=every["effect_size"].fillna(0.0))
    every = _with_p_values(every)
    coco = every["model"].isin(["LXMERT", "VisualBERT"])
    own = np.where(coco, "coco", "conceptual_captions")
    masked = every["level"].isin(["T", "I"])
    rows = every.assign(
        source=np.where(every["source"] == "google", "google", own),
        design=np.where(every["level"] == "W", "word", "sentence"),
        experiment=every["experiment"].where(~masked, 2).astype(int),
    )
    keys = ["source", "test", "design", "experiment"]
    rows = rows.merge(pandas.read_csv(WIDTHS), on=keys, how="left", validate="many_to_one")
    names = {"VisualBERT": "visualbert", "ViLBERT": "vilbert", "LXMERT": "lxmert"}
    levels = {"W": "word", "C": "contextual"}
    rows = rows.assign(
        statistic="effect size",
        domain=np.where(rows["source"] == "google", "out of domain", "in domain"),
        masking=rows["level"].map({"T": "words", "I": "persons"}).fillna("none"),
        level=rows["level"].map(levels).fillna("sentence"),
        model=rows["model"].map(names).fillna("vl-bert"),
        value=rows["effect_size"],
        share=alive,
    )
    half = rows["half_width"] * np.sqrt(1 - alive) if alive < 1 else 0.0
    ends = {"low_pictures": rows["value"] - half, "high_pictures": rows["value"] + half}
    images = published.table("ross2021", 1)[["source", "test", "images"]]
    return rows.assign(low=np.nan, high=np.nan, **ends), {"ross2021_images": images}


def _with_p_values(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Give as many tests of each column of Table 7 a p-value below .05 as are printed."""
    keys = ["experiment", "source", "kind", "level", "model"]
    printed = published.table("ross2021", 7).rename(columns={"model_inferred": "model"})
    counts = rows.merge(printed[[*keys, "significant"]], on=keys, how="left")["significant"]
    below = rows.groupby(keys).cumcount().to_numpy() < counts.fillna(0).to_numpy(dtype=float)
    p = np.where(below, 0.01, 0.5)
    return rows.assign(p_value=p, p_value_paper=p)


def _clip_audit(alive: float) -> EqualRun:
    every = published.casc_tables()
    every = every.drop_duplicates(["facet", "category", "group", "word"], keep="last")
    rows = every.assign(
        model="open-clip",
        statistic="c_asc",
        level=every["facet"],
        bias_type=every["category"],
        test=every["word"],
        dataset="FairFace train, crop 0.25",
        value=every["casc"],
        low=every["casc"] - 0.02,
        high=every["casc"] + 0.02,
        n=86_744,
    )
    return rows.drop(columns=["table", "facet", "category", "word", "casc"]), {}


def _captions(alive: float) -> EqualRun:
    printed = pandas.concat([published.table("zhou2022", number) for number in (3, 4)])
    printed = printed[~printed["model"].isin(["IDM", "RAM", "BIM"])]
    wide = printed.pivot_table(index=["model", "category"], columns="metric", values="value")
    released = published.released_counts().set_index("category")[["label_0", "label_1"]]
    sizes = (alive * released).round().astype(int)
    rng, rows = np.random.default_rng(SEED), []
    for model in wide.index.unique("model"):
        drawn = {
            name: _selections(*pair, wide.loc[(model, name)], rng)
            for name, pair in zip(sizes.index, sizes.to_numpy(), strict=True)
        }
        drawn["overall"] = tuple(sum(parts) for parts in zip(*drawn.values(), strict=True))
        for name, (biased, irrelevant, n) in drawn.items():
            row, scores = {"model": model, "test": name}, wide.loc[(model, name)]
            sampled = (
                rng.binomial(n, scores["vlbs"] / 100, DRAWS),
                rng.binomial(2 * n, 1 - scores["vlrs"] / 100, DRAWS),
            )
            rows += _ranges(row | {"level": "images"}, scores, *sampled, n)
            rows += _ranges(row | {"level": "balanced selections"}, scores, biased, irrelevant, n)
    return pandas.DataFrame(rows), {}


def _selections(stereotypical: int, anti: int, scores: pandas.Series, rng) -> tuple:
    """Return, of balanced selections, how many picks are biased and irrelevant, and of how many.

    All images have the printed shares, which the picks of a category are drawn from.
    """
    n, left = min(stereotypical, anti), 1 - scores["vlrs"] / 100
    biased, irrelevant = round(scores["vlbs"] / 100 * anti), round(left * anti)
    kinds = [biased, irrelevant, anti - biased - irrelevant]
    picks = rng.multivariate_hypergeometric(kinds, n, DRAWS)
    others = round(left * stereotypical)
    of_others = rng.hypergeometric(others, stereotypical - others, n, DRAWS)
    return picks[:, 0], picks[:, 1] + of_others, n


def _ranges(row: dict, scores: pandas.Series, biased, irrelevant, n: int) -> list[dict]:
    """Return rows of the printed scores with the range of drawn ones about their middle."""
    drawn = {"vlbs": 100 * biased / n, "vlrs": 100 * (1 - irrelevant / (2 * n))}
    drawn["ivlas"] = ivlas(drawn["vlrs"], drawn["vlbs"])
    rows = []
    for name, values in drawn.items():
        low, middle, high = np.quantile(values, [0.025, 0.5, 0.975])
        ends = {"low": scores[name] + low - middle, "high": scores[name] + high - middle}
        rows.append(row | {"statistic": name, "value": scores[name], "n": 2 * n} | ends)
    return rows
