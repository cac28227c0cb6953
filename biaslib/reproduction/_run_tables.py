"""A run's scores in the form of the printed tables, with intervals for a re-run."""

from collections.abc import Mapping

import numpy as np
import pandas

from biaslib import published
from biaslib.errors import InputError
from biaslib.metrics.caption_selection import reference_scores
from biaslib.studies import study3_clip_audit

Tables = dict[str, pandas.DataFrame]

MODELS = {"visualbert": "VisualBERT", "vilbert": "ViLBERT", "lxmert": "LXMERT"}
MODELS |= {"vl-bert": "VL-BERT"}
LEVELS = {"word": "W", "sentence": "S", "contextual": "C"}
MASKS = {"words": "T", "persons": "I"}
IN_DOMAIN = {"LXMERT": "coco", "VisualBERT": "coco"}
SOURCES = {"out of domain": "google", "in domain": "pretraining"}
NEEDED = {
    "ross2021": ("experiment", "masking", "p_value", "p_value_paper"),
    "hamidieh2023": ("bias_type", "group", "dataset", "n"),
    "zhou2022": ("n",),
}
"""Columns that scores must have besides model, level, test, statistic, value, low and high."""

NINETY = 1.645 / 1.96
"""The half-width of an interval at 90%, in that of one at 95%, where errors are normal."""


def tables_of_run(
    paper: str, scores: pandas.DataFrame, counts: Mapping[str, pandas.DataFrame]
) -> Tables:
    """Return a run's scores in the form of a paper's printed tables.

    Intervals are those of a re-run, at 90%: where the number of all the paper's pictures or people
    lies, by those that the run had. Study 1's scores have it at 95%
    (:func:`biaslib.studies.study1_grounded.score`), which is multiplied by 1.645 /
    1.96. The others have the interval of sampling at 95%, which is multiplied by
    :math:`\\sqrt{1 - f}` as well, where f is the share that the run had. A run of all of them is a
    census of the paper's sample, and has no sampling error.

    Parameters
    ----------
    paper
        One of the four.
    scores
        Tidy scores of its study.
    counts
        Tables of counts that scores do not hold: ``ross2021_images``, ``zhou2022_images``,
        ``hamidieh2023_laion_pronouns``.

    Returns
    -------
    dict
        Tables by the names of the files of :mod:`biaslib.published`, with *low* and *high*.

    Raises
    ------
    InputError
        If the scores lack a column, as those of another study do.
    """
    made = {"ross2021": _grounded, "hamidieh2023": _clip_audit, "zhou2022": _captions}
    found = {name: _of_counts(rows) for name, rows in counts.items()}
    if scores.empty or paper not in made:
        return found
    common = ("model", "level", "test", "statistic", "value", "low", "high")
    missing = sorted({*common, *NEEDED[paper]} - set(scores))
    if missing:
        raise InputError(
            f"scores of {paper} need the columns {', '.join(missing)}", word=missing[0]
        )
    return found | made[paper](scores, found)


def shrunk(rows: pandas.DataFrame, share: pandas.Series | float) -> pandas.DataFrame:
    """Return rows whose 95% intervals are the 90% ones of a re-run on a share of the pictures.

    Examples
    --------
    >>> rows = pandas.DataFrame({"value": [1.0], "low": [0.8], "high": [1.4]})
    >>> shrunk(rows, 0.75)[["low", "high"]].round(3).values.tolist()
    [[0.916, 1.168]]
    """
    share = np.asarray(share, dtype=float)
    left = NINETY * np.sqrt(1.0 - np.where((share >= 0) & (share <= 1), share, 0.0))
    whole = left == 0
    value = rows["value"]
    low = np.where(whole, value, value + left * (rows["low"] - value))
    high = np.where(whole, value, value + left * (rows["high"] - value))
    return rows.assign(low=low, high=high)


def ninety(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return rows with *low* and *high* of 90%, about the middle of their intervals over pictures.

    The middle is where the number of all pictures is expected, which need not be that of the run.
    """
    low, high = (
        rows.get(f"{end}_pictures", pandas.Series(np.nan, rows.index)) for end in ("low", "high")
    )
    middle, half = (low + high) / 2, NINETY * (high - low) / 2
    return rows.assign(low=middle - half, high=middle + half)


def _of_counts(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return a table of counts, each its own interval; shares have that of the binomial.

    Captions at hand are of another corpus than the paper's, which has been withdrawn: their shares
    are those of a variant, and their number says nothing of the paper's.
    """
    if rows.empty:
        return rows
    if "male" in rows:
        return rows.assign(variant="paper", **{"images low": np.nan, "images high": np.nan})
    return rows.assign(**{"images low": rows["images"], "images high": rows["images"]})


def _grounded(scores: pandas.DataFrame, counts: Mapping[str, pandas.DataFrame]) -> Tables:
    rows = scores[scores["images"] == "with"] if "images" in scores else scores
    rows = rows[rows["model"].isin(MODELS) & (rows["statistic"] == "effect size")]
    rows = rows[rows["value"].notna()]
    rows = _as_published(rows)
    if rows.empty:
        return {}
    tests = published.table("ross2021", 3).drop_duplicates("test").set_index("test")
    rows = rows[rows["test"].isin(tests.index)].reset_index(drop=True)
    first_form = (rows["experiment"] == 3) & (rows["masking"] == "none")
    masked = rows["masking"].map(MASKS)
    of_words = masked.notna() & (rows["level"] != "sentence")
    domain = rows.get("domain", "out of domain")
    rows = rows.assign(
        source=pandas.Series(domain, index=rows.index).map(SOURCES),
        model=rows["model"].map(MODELS),
        level=masked.fillna(rows["level"].map(LEVELS)),
        experiment=rows["experiment"].where(masked.isna(), 3).astype(int),
        kind=rows["test"].map(tests["kind"]),
        label=rows["test"].map(tests["label"]),
        effect_size=rows["value"],
    )
    rows = rows.assign(table=np.where(rows["source"] == "google", rows["experiment"] + 2, 6))
    other = _of_other_files(rows, counts.get("ross2021_images"))
    rows = ninety(rows).assign(share=rows.get("share", np.nan))
    rows.loc[other, ["low", "high", "share"]] = np.nan
    printed = rows[~first_form & ~of_words].reset_index(drop=True)
    first_form &= rows["source"] == "google"
    return {
        "ross2021_effect_sizes": printed,
        "ross2021_significant_counts": _significant(printed),
        "ross2021_first_form": rows[first_form].reset_index(drop=True),
    }


def _as_published(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Leave out a row of our variant where the run as published has one."""
    if "variant" not in rows:
        return rows
    names = ("model", "test", "level", "masking", "domain", "experiment")
    keys = rows[[name for name in names if name in rows]].copy()
    keys["experiment"] = keys["experiment"].where(keys["masking"] == "none", 0)
    ours = rows["variant"] == "paper"
    published_too = keys.apply(tuple, axis=1).isin(set(keys[~ours].apply(tuple, axis=1)))
    return rows[~(ours & published_too)]


def _of_other_files(rows: pandas.DataFrame, ours: pandas.DataFrame | None) -> np.ndarray:
    """Return whose files list another number of images than Table 1: what is missing is unknown."""
    if ours is None:
        return np.zeros(len(rows), dtype=bool)
    keys = ["source", "test"]
    both = published.table("ross2021", 1).merge(ours, on=keys, how="left", suffixes=("", "_ours"))
    same = both.loc[both["images"] == both["images_ours"], keys].itertuples(index=False, name=None)
    in_domain = rows["model"].map(IN_DOMAIN).fillna("conceptual_captions")
    places = in_domain.mask(rows["source"] == "google", "google")
    return ~pandas.Series(list(zip(places, rows["test"], strict=True))).isin(set(same)).to_numpy()


def _significant(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Count tests with p < .05 by the paper's own test, as its Table 7 does, where all are there.

    Bounds of p on both sides widen the count.

    A count on a share of the paper's pictures has no interval: what p-values the others would give
    is not known.
    """
    google = rows[(rows["source"] == "google") & rows["p_value_paper"].notna()]
    printed = published.table("ross2021", 7)
    columns = printed.drop_duplicates("model_inferred").set_index("model_inferred")["column"]
    sizes = printed.drop_duplicates("kind").set_index("kind")["total"]
    keys = ["experiment", "source", "kind", "level", "model"]
    parts = []
    for key, part in google.groupby(keys, sort=False):
        if part["test"].nunique() < sizes[key[2]]:
            continue
        p = part["p_value_paper"]
        bounds = (part.get(end, p).fillna(p) for end in ("p_high_paper", "p_low_paper"))
        low, high = (int((each < 0.05).sum()) for each in bounds)
        count = int((p < 0.05).sum())
        if (part["share"] != 1).any():
            low = high = np.nan
        ours = "variant" in part and (part["variant"] == "paper").any()
        variant = "paper" if ours else "released"
        parts.append((*key, count, low, high, sizes[key[2]], columns[key[4]], variant))
    names = ["significant", "low", "high", "total", "column", "variant"]
    table = pandas.DataFrame(parts, columns=[*keys, *names])
    return table.assign(table=7, model_inferred=table["model"])


def _clip_audit(scores: pandas.DataFrame, counts: Mapping[str, pandas.DataFrame]) -> Tables:
    rows = scores[(scores["statistic"] == "c_asc") & scores["level"].isin(["gender", "race"])]
    rows = rows[rows["value"].notna() & (rows["model"] == "open-clip")]
    if rows.empty:
        return {}
    rows = rows.assign(
        facet=rows["level"],
        category=rows["bias_type"],
        group=rows["group"].str.replace("_", "/"),
        word=rows["test"],
        casc=rows["value"],
    )
    of_the_paper = rows["dataset"].str.startswith(study3_clip_audit.OF_THE_PAPER)
    rows = shrunk(rows, (rows["n"] / study3_clip_audit.PORTRAITS).where(of_the_paper, 0.0))
    order = rows.groupby(["facet", "category", "group"])["casc"]
    rows = rows.assign(rank=order.rank(ascending=False, method="first").astype(int))
    lists = published.casc_tables()[["table", "facet", "category", "group"]].drop_duplicates()
    table = lists.merge(rows, on=["facet", "category", "group"])
    return {"hamidieh2023_casc": table}


def _captions(scores: pandas.DataFrame, counts: Mapping[str, pandas.DataFrame]) -> Tables:
    every = scores[scores["statistic"].isin(["vlrs", "vlbs", "ivlas"])]
    rows = every[every["level"] == "images"]
    if rows.empty:
        return {}
    rows = rows.assign(category=rows["test"], metric=rows["statistic"])
    sizes = published.table("zhou2022", 1).set_index("category")["images"]
    # The printed sizes stand under other names than they belong to: see erratum C1.
    sizes = sizes.rename({"gender": "race", "profession": "gender", "race": "profession"})
    n = rows[rows["metric"] == "vlrs"].groupby(["model", "category"])["n"].first()
    there = [n.get(key, 0) for key in zip(rows["model"], rows["category"], strict=True)]
    rows = shrunk(rows, np.asarray(there) / rows["category"].map(sizes).to_numpy())
    rows = _over_selections(rows, every[every["level"] == "balanced selections"])
    rows = rows.assign(table=np.where(rows["category"] == "overall", 3, 4))
    images = rows.loc[rows["metric"] == "vlrs", ["category", "n"]].groupby("category")["n"].max()
    return {
        "zhou2022_scores": pandas.concat([rows, _reference_models()], ignore_index=True),
        "zhou2022_images": _balanced_images(images),
    }


def _reference_models() -> pandas.DataFrame:
    """Return the scores of the three imaginary models, which follow from the formulas."""
    every = {"IDM": "ideal", "RAM": "random", "BIM": "biased"}
    scores = {name: vars(reference_scores(each)) for name, each in every.items()}
    rows = pandas.DataFrame(scores).rename_axis("metric").reset_index()
    rows = rows.melt("metric", var_name="model").assign(table=3, category="overall")
    return rows.assign(low=rows["value"], high=rows["value"])


def _balanced_images(images: pandas.Series) -> pandas.DataFrame:
    """Return images by category; up to those of the released table, where links are dead."""
    balanced = published.released_sizes()
    balanced |= {"overall": sum(balanced.values())}
    table = images.rename("images").rename_axis("category").reset_index()
    most = np.fmax(table["images"], table["category"].map(balanced))
    return table.assign(**{"images low": table["images"], "images high": most})


def _over_selections(rows: pandas.DataFrame, ranges: pandas.DataFrame) -> pandas.DataFrame:
    """Put the middle of all balanced selections in place of one, whose images were drawn by us.

    The interval is widened by their range, 95% of them: half-widths add as squares. Without it
    there is none.
    """
    keys = ["model", "test", "statistic"]
    both = rows[keys].merge(ranges[[*keys, "value", "low", "high"]], on=keys, how="left")
    own, low, high = (rows[name].to_numpy(dtype=float) for name in ("value", "low", "high"))
    middle, least, most = (both[name].to_numpy() for name in ("value", "low", "high"))
    middle = np.where(np.isnan(middle), own, middle)
    return rows.assign(
        value=middle,
        low=middle - np.hypot(own - low, NINETY * (middle - least)),
        high=middle + np.hypot(high - own, NINETY * (most - middle)),
    )
