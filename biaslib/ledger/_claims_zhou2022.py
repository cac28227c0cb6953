"""Checks of the claims of Zhou, Lai and Jiang (2022), on their printed tables or on a run's.

Intervals of shares are those of Clopper and Pearson from counts of images, of the paper and of a
run alike: a run has its *n*; behind a printed percentage is the one whole count that fits.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas
from scipy import stats

from biaslib import inference
from biaslib.ledger._evidence import Evidence, Finding, NoEvidenceError, answer
from biaslib.published import counts
from biaslib.published.reexamination import zhou2022

MODELS = ("VisualBERT", "LXMERT", "ViLT", "CLIP", "ALBEF", "FLAVA")
OTHERS = ("profession", "race", "religion")
CATEGORIES = ("gender", *OTHERS)
IMAGES = 1_028
PRINTED_SIZES = {"gender": 486, "profession": 206, "race": 322, "religion": 14}  # the paper's

RANDOM = {"vlrs": 200 / 3, "vlbs": 100 / 3}  # the paper's: its random model
REFERENCES = {"IDM": (100.0, 0.0, 100.0), "BIM": (100.0, 100.0, 0.0), "RAM": (66.67, 33.33, 66.67)}
NEAR = 0.01  # ours: a unit of the last printed digit
HALF = 3  # ours: "most" is more than half of six models
SEVERAL = 3  # ours: "several" models
ALMOST_ALL = 5  # ours: "almost all" of six models
GENERALLY = 80.0  # ours: a vlrs of a model that "generally" picks meaningful captions
STRONG = 40.0  # ours: a "strong" vlbs
SUBSTANTIAL = 5.0  # ours: points of vlrs that are "substantially" better
STEREOSET = 17_000  # the paper's: "near 17K" statements with three captions
FRACTION = 0.5  # ours: below this share it is "only a fraction"
POSITIVE = 50.0  # ours: a majority, in percent


def _printed_n(row: pandas.Series) -> int:
    """Return on how many images the paper scored a model."""
    sizes = zhou2022.sizes_of(row["model"])
    images = sum(sizes.values()) if row["category"] == "overall" else sizes[row["category"]]
    return zhou2022.denominator(row["metric"], images)


def _intervals(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return rows with *n*, *low* and *high*."""
    n = rows["n"] if "n" in rows else rows.apply(_printed_n, axis=1)
    rows = rows.assign(n=n.astype(int))
    found = [
        inference.proportion_interval(round(value * n / 100), n)
        for value, n in zip(rows["value"], rows["n"], strict=True)
    ]
    return rows.assign(low=[100 * each.low for each in found], high=[100 * f.high for f in found])


def _rows(
    evidence: Evidence, metric: str, categories: Sequence[str] = ("overall",)
) -> pandas.DataFrame:
    """Return a score of all six models in some categories, by model."""
    wanted = {"model": list(MODELS), "category": list(categories), "metric": metric}
    rows = evidence.table("zhou2022_scores", **wanted).dropna(subset="value")
    rows = rows.drop_duplicates(["category", "model"])
    n = len(MODELS) * len(categories)
    if len(rows) < n:
        raise NoEvidenceError(f"{len(rows)} of {n} scores {metric} of six models are there")
    return rows.set_index("model", drop=False)


def _told(rows: pandas.DataFrame) -> str:
    """Return the scores of models in words, with the numbers of images."""
    n = _intervals(rows)["n"]
    images = f"n = {n.min()}" if n.min() == n.max() else f"n = {n.min()} to {n.max()}"
    return ", ".join(f"{each.model} {each.value:.2f}" for each in rows.itertuples()) + f", {images}"


def _above_random(rows: pandas.DataFrame) -> tuple[int, int]:
    """Return how many scores are above the random model's, and how many with their interval."""
    mark = RANDOM[rows["metric"].iloc[0]]
    return int((rows["value"] > mark).sum()), int((_intervals(rows)["low"] > mark).sum())


def _by_category(evidence: Evidence) -> dict[str, int]:
    """Return for how many models vlbs is above the random model's, by category."""
    rows = _rows(evidence, "vlbs", CATEGORIES)
    above = (rows["value"] > RANDOM["vlbs"]).groupby(rows["category"]).sum()
    return {name: int(above[name]) for name in CATEGORIES}


def _in_categories(above: dict[str, int]) -> str:
    """Return counts of models by category in words."""
    return ", ".join(f"{name} {n}" for name, n in above.items())


def exist_everywhere(evidence: Evidence) -> Finding:
    """Check that most models are biased, overall and in every category."""
    n, clear = _above_random(_rows(evidence, "vlbs"))
    above = _by_category(evidence)
    parts = [n > HALF, clear > HALF, min(above.values()) > HALF]
    told = f"vlbs above 33.33: {n} of 6 models, {clear} with the interval above it; by category "
    return Finding(answer(parts), f"{told}{_in_categories(above)} of 6.")


def high_degree(evidence: Evidence) -> Finding:
    """Check that most models pick stereotypes more often than at random."""
    rows = _rows(evidence, "vlbs")
    n, clear = _above_random(rows)
    told = f"vlbs above 33.33: {n} of 6 models, {clear} with the interval above it ({_told(rows)})."
    return Finding(answer([n > HALF, clear > HALF]), told)


def every_category(evidence: Evidence) -> Finding:
    """Check that most models are biased in each category."""
    above = _by_category(evidence)
    told = f"vlbs above 33.33 in {sum(above.values())} of 24 cells; models by category: "
    parts = [n > HALF for n in above.values()]
    return Finding(answer(parts), f"{told}{_in_categories(above)} of 6.")


def all_cells(evidence: Evidence) -> Finding:
    """Check that every model is biased in every category."""
    rows = _rows(evidence, "vlbs", CATEGORIES)
    above, some = ((rows["value"] > mark).sum() for mark in (RANDOM["vlbs"], 0))
    least = rows.loc[rows["value"] == rows["value"].min()].iloc[0]
    told = f"vlbs above 33.33 in {above} of {len(rows)} cells, above 0 in {some}; the lowest is "
    told += f"{least['value']:.2f} ({least['model']}, {least['category']})."
    return Finding(answer([above == len(rows)]), told)


def meaningful_captions(evidence: Evidence) -> Finding:
    """Check that most models seldom pick a meaningless caption."""
    rows = _rows(evidence, "vlrs")
    _, clear = _above_random(rows)
    many = int((rows["value"] >= GENERALLY).sum())
    told = f"vlrs above 66.67 with its interval: {clear} of 6 models; at least 80: {many} of 6 "
    return Finding(answer([clear > HALF, many > HALF]), f"{told}({_told(rows)}).")


def several_strong(evidence: Evidence) -> Finding:
    """Check that several models are biased, some strongly."""
    rows = _rows(evidence, "vlbs")
    _, clear = _above_random(rows)
    strong = rows[rows["value"] > STRONG]
    told = f"vlbs above 33.33 with its interval: {clear} of 6 models; above 40: {len(strong)}"
    names = f" ({_told(strong)})" if len(strong) else ""
    return Finding(answer([clear >= SEVERAL, len(strong) > 0]), f"{told}{names}.")


def better_than_random(evidence: Evidence) -> Finding:
    """Check that vlrs is well above the random model's for all but FLAVA, and FLAVA's below."""
    rows = _intervals(_rows(evidence, "vlrs"))
    apart = rows["value"] - RANDOM["vlrs"]
    held = (apart >= SUBSTANTIAL) & (rows["low"] > RANDOM["vlrs"])
    held["FLAVA"] = rows.loc["FLAVA", "high"] < RANDOM["vlrs"]
    told = ", ".join(f"{name} {value:+.2f}" for name, value in apart.items())
    low, high = rows.loc["FLAVA", ["low", "high"]]
    told = f"vlrs less 66.67: {told}; FLAVA's interval is [{low:.2f}, {high:.2f}]."
    return Finding(answer(held), told)


def all_but_flava(evidence: Evidence) -> Finding:
    """Check that FLAVA alone is not above the random model's vlbs."""
    rows = _intervals(_rows(evidence, "vlbs")).drop("FLAVA")
    above, clear = (rows[name] > RANDOM["vlbs"] for name in ("value", "low"))
    below = rows[~above]
    told = f"vlbs above 33.33: {above.sum()} of the 5 models other than FLAVA"
    told += f"; not {_told(below)}" if len(below) else ""
    parts = [above.all(), clear.all()]
    return Finding(answer(parts), f"{told}; {clear.sum()} with the interval above it.")


def almost_all(evidence: Evidence) -> Finding:
    """Check that at least five models are above the random model's vlbs."""
    rows = _rows(evidence, "vlbs")
    n, clear = _above_random(rows)
    told = f"vlbs above 33.33: {n} of 6 models, {clear} with the interval above it; above 0: "
    return Finding(answer([n >= ALMOST_ALL]), f"{told}{(rows['value'] > 0).sum()} of 6.")


def _contrast(rows: pandas.DataFrame, weights: Sequence[float]) -> tuple[float, float, float]:
    """Return a weighted sum of separate percentages, with its 95% interval (Zou and Donner 2008).

    Models answer about the same images: then it is usually wider than a paired interval.
    """
    value, *ends = (np.asarray(weights) * rows[name] for name in ("value", "low", "high"))
    low = value.sum() - math.sqrt(((value - np.minimum(*ends)) ** 2).sum())
    high = value.sum() + math.sqrt(((np.maximum(*ends) - value) ** 2).sum())
    return float(value.sum()), low, high


def _gender_lead(rows: pandas.DataFrame) -> tuple[float, float, float]:
    """Return by how much a model's vlbs in gender exceeds that of its other images."""
    weights = np.where(rows["category"] == "gender", 0.0, -rows["n"])
    return _contrast(rows, np.where(weights == 0, 1.0, weights / -weights.sum()))


def _gender_first(rows: pandas.DataFrame) -> int:
    """Return for how many models vlbs is highest in gender."""
    wide = rows.reset_index(drop=True).pivot(index="model", columns="category", values="value")
    return int((wide["gender"] > wide[list(OTHERS)].max(axis=1)).sum())


def gender_more_evident(evidence: Evidence) -> Finding:
    """Check that vlbs is higher in gender than elsewhere."""
    rows = _intervals(_rows(evidence, "vlbs", CATEGORIES))
    first = _gender_first(rows)
    leads = [_gender_lead(part) for _, part in rows.groupby(level=0, sort=False)]
    mean, clear = np.mean([lead for lead, _, _ in leads]), sum(low > 0 for _, low, _ in leads)
    told = f"vlbs is highest in gender for {first} of 6 models; gender less the rest: {mean:+.2f} "
    told += f"points on average, with an interval above 0 for {clear} of 6 models."
    return Finding(answer([mean > 0, first > HALF, clear > HALF]), told)


def gender_above_each(evidence: Evidence) -> Finding:
    """Check that vlbs is higher in gender than in each other category."""
    rows = _intervals(_rows(evidence, "vlbs", CATEGORIES))
    first, clear = _gender_first(rows), 0
    for _, part in rows.groupby(level=0):
        by_name = part.set_index("category")
        clear += sum(_contrast(by_name.loc[["gender", each]], [1, -1])[1] > 0 for each in OTHERS)
    every = len(MODELS) * len(OTHERS)
    told = f"vlbs is highest in gender for {first} of 6 models; of {every} differences to another "
    told += f"category {clear} have an interval above 0."
    return Finding(answer([first > HALF, first == len(MODELS), clear > every / 2]), told)


def _correlations(rows: pandas.DataFrame) -> tuple[float, float, float, float]:
    """Return Pearson's correlation of vlrs and vlbs, Fisher's interval if any, and Spearman's."""
    pairs = rows["vlrs"].tolist(), rows["vlbs"].tolist()
    if not all(map(np.ptp, pairs)):
        raise NoEvidenceError("there is no correlation: all values of one score are the same")
    found, spearman = stats.pearsonr(*pairs), stats.spearmanr(*pairs).statistic
    # The transform of a correlation of 1 is infinite.
    exact = abs(found.statistic) > 1 - 1e-12
    bounds = (np.nan, np.nan) if exact else found.confidence_interval()
    return found.statistic, *bounds, spearman


def go_together(evidence: Evidence, better_than_random: bool = False) -> Finding:
    """Check that vlrs and vlbs are correlated over all models, or those of a vlrs above chance."""
    rows = pandas.DataFrame({name: _rows(evidence, name)["value"] for name in RANDOM})
    rows = rows[rows["vlrs"] > RANDOM["vlrs"] * better_than_random]
    if len(rows) < 4:
        raise NoEvidenceError(f"{len(rows)} models are too few for a correlation's interval")
    pearson, low, high, spearman = _correlations(rows)
    bounds = "no interval" if np.isnan(low) else f"{low:.2f}, {high:.2f}"
    told = f"vlrs and vlbs of {len(rows)} models: Pearson {pearson:.2f} [{bounds}], "
    return Finding(answer([pearson > 0, spearman > 0, low > 0]), f"{told}Spearman {spearman:.2f}.")


def clip_above_others(evidence: Evidence) -> Finding:
    """Check that CLIP's vlbs is clearly the highest."""
    rows = _intervals(_rows(evidence, "vlbs"))
    others = [each for each in MODELS if each != "CLIP"]
    leads = {each: _contrast(rows.loc[["CLIP", each]], [1, -1]) for each in others}
    clear = sum(low > 0 for _, low, _ in leads.values())
    told = "; ".join(
        f"{name} {d:.2f} [{low:.2f}, {high:.2f}]" for name, (d, low, high) in leads.items()
    )
    parts = [min(lead for lead, _, _ in leads.values()) > 0, clear == len(others)]
    return Finding(answer(parts), f"CLIP's vlbs ({rows.loc['CLIP', 'value']:.2f}) less: {told}.")


def extreme(evidence: Evidence, model: str, metrics: Sequence[str], highest: bool) -> Finding:
    """Check that a model is first, or last, in some scores."""
    parts, told = [], []
    for metric in metrics:
        rows = _rows(evidence, metric).sort_values("value", ascending=not highest)
        own, other = rows.loc[model, "value"], rows.drop(model).iloc[0]
        parts.append(own > other["value"] if highest else own < other["value"])
        told.append(f"{metric} {own:.2f} ({other['model']} {other['value']:.2f})")
    end = "highest" if highest else "lowest"
    return Finding(answer(parts), f"{model}, and the {end} of the others: {', '.join(told)}.")


def harmonic_means(evidence: Evidence) -> Finding:
    """Check that every ivlas is the harmonic mean of vlrs and 100 - vlbs."""
    _rows(evidence, "ivlas", ("overall", *CATEGORIES))
    rows = evidence.table("zhou2022_scores").dropna(subset="value")
    wide = rows.pivot_table(index=["model", "category"], columns="metric", values="value").dropna()
    harmonic = zhou2022.harmonic_mean(wide["vlrs"], wide["vlbs"])
    apart = (harmonic.round(2) - wide["ivlas"].round(2)).abs().round(6)
    held, exact = (apart <= NEAR).sum(), (apart == 0).sum()
    told = f"{held} of {len(wide)} ivlas are the harmonic mean within 0.01, {exact} to the digit."
    return Finding(answer([held == len(wide)]), told)


def reference_models(evidence: Evidence) -> Finding:
    """Check the nine scores of the three imagined models."""
    rows = evidence.table("zhou2022_scores", model=list(REFERENCES), category="overall")
    found = rows.set_index(["model", "metric"])["value"].round(2)
    wanted = {
        (model, metric): value
        for model, values in REFERENCES.items()
        for metric, value in zip(("vlrs", "vlbs", "ivlas"), values, strict=True)
    }
    if not set(wanted) <= set(found.index):
        raise NoEvidenceError("scores of the three imagined models are missing")
    held = sum(found[key] == value for key, value in wanted.items())
    ram = ", ".join(f"{found['RAM', metric]:.2f}" for metric in ("vlrs", "vlbs", "ivlas"))
    told = f"{held} of 9 scores are those of the definitions; the random model has {ram}."
    return Finding(answer([held == len(wanted)]), told)


def _sizes(evidence: Evidence) -> pandas.Series:
    """Return the images by category of the whole data set."""
    sizes = evidence.table("zhou2022_images").set_index("category")["images"]
    names = [*CATEGORIES, "overall"]
    if not set(names) <= set(sizes.index):
        raise NoEvidenceError("counts of images are missing for a category")
    if sizes["overall"] != IMAGES:
        raise NoEvidenceError(f"{sizes['overall']} of {IMAGES:,} images are there")
    return sizes[names].astype(int)


def sizes_of_categories(evidence: Evidence) -> Finding:
    """Check that the categories have the printed sizes, and scores that these allow."""
    sizes = _sizes(evidence)
    same = all(sizes[name] == n for name, n in PRINTED_SIZES.items())
    rows = pandas.concat([_rows(evidence, metric, CATEGORIES) for metric in RANDOM])
    fits = pandas.Series([_fits(row, sizes) for row in rows.to_dict("records")], rows.index)
    shown = ", ".join(f"{name} {sizes[name]}" for name in CATEGORIES)
    told = f"{shown}: {(~fits).sum()} of {len(fits)} scores vlrs and vlbs are no whole count of "
    return Finding(answer([same and fits.drop("ViLT").all()]), f"{told}that many images.")


def _fits(row: dict, sizes: pandas.Series) -> bool:
    """Return whether a printed score is a whole count of images."""
    n = zhou2022.denominator(row["metric"], int(sizes[row["category"]]))
    return bool(counts.possible_counts(round(row["value"], 2), n))


def balanced_labels(evidence: Evidence) -> Finding:
    """Check that both labels have the same number of images in each category."""
    images = evidence.table("zhou2022_images", category=list(CATEGORIES))
    even = (images["images"] % 2 == 0).all()
    labels = ["stereotypical", "anti-stereotypical"]
    known = set(labels) <= set(images.columns)
    equal = known and (images[labels[0]] == images[labels[1]]).all()
    shown = ", ".join(map(str, images["images"]))
    told = f"The counts of categories are {'all' if even else 'not all'} even ({shown}); "
    told += "the labels are counted." if known else "the labels are not counted."
    return Finding(answer([even, equal]), told)


def same_images(evidence: Evidence) -> Finding:
    """Check that the overall scores of all six models are whole counts of all images."""
    images = int(_sizes(evidence)["overall"])
    rows = pandas.concat([_rows(evidence, metric) for metric in RANDOM])
    if "n" in rows:
        raise NoEvidenceError("only the paper's own scores can tell on which images they rest")
    fits = np.array(
        [_fits(row, pandas.Series({"overall": images})) for row in rows.to_dict("records")]
    )
    odd = rows[~fits]
    names = ", ".join(f"{each.model} {each.metric} {each.value:.2f}" for each in odd.itertuples())
    told = f"{fits.sum()} of {len(rows)} overall scores are whole counts of {images:,} or "
    told += f"{images // 2} images" + (f"; not {names}" if names else "") + _smaller(odd)
    return Finding(answer([fits.all()]), f"{told}.")


def _smaller(odd: pandas.DataFrame) -> str:
    """Return the number of images that a model's two scores fit, if there is one below 1,028."""
    scores = odd.set_index("metric")["value"]
    if odd["model"].nunique() != 1 or set(scores.index) != set(RANDOM):
        return ""
    fitting = [
        n
        for n in range(IMAGES, IMAGES - 100, -2)
        if counts.possible_counts(scores["vlrs"], n)
        and counts.possible_counts(scores["vlbs"], n // 2)
    ]
    return f", which fit {fitting[0]:,} and {fitting[0] // 2}" if len(fitting) == 1 else ""


def only_a_fraction(evidence: Evidence) -> Finding:
    """Check that the images cannot cover half of StereoSet."""
    images = int(_sizes(evidence)["overall"])
    share = images / STEREOSET
    told = f"At most {images:,} of near {STEREOSET:,} statements with three captions ({share:.0%})."
    return Finding(answer([share < FRACTION]), told)


def flava_heads(evidence: Evidence) -> Finding:
    """Check that FLAVA's matching head picks meaningful captions more often than its encoders."""
    names = ["FLAVA, matching logit", "FLAVA"]
    rows = evidence.scores_of(model=names, test="overall", statistic="vlrs").dropna(subset="value")
    if set(rows["model"]) != set(names):
        raise NoEvidenceError("the run has not both heads of FLAVA")
    rows = _intervals(rows.drop_duplicates("model").set_index("model").loc[names])
    lead, low, high = _contrast(rows, [1, -1])
    own, n = rows.loc[names[0], ["value", "n"]]
    told = f"vlrs {own:.2f} by the matching head, n = {n:.0f} images: {lead:+.2f} points "
    told += f"[{low:.2f}, {high:.2f}] over the encoders."
    return Finding(answer([low > 0, own > RANDOM["vlrs"]]), told)


SHIFTED = tuple((model, name) for model in ("CLIP", "ALBEF") for name in ("lmss", "vlss"))


def _shifts(evidence: Evidence) -> pandas.DataFrame:
    """Return the shares of images with lmss or vlss above 0, of CLIP and ALBEF."""
    wanted = {"level": "paper", "statistic": "% positive", "test": ["lmss", "vlss"]}
    rows = evidence.scores_of(model=["CLIP", "ALBEF"], **wanted).dropna(subset="value")
    rows = rows.drop_duplicates(["model", "test"]).set_index(["model", "test"])
    if set(rows.index) != set(SHIFTED):
        raise NoEvidenceError("lmss and vlss of CLIP and ALBEF are not all there")
    return _intervals(rows.loc[list(SHIFTED)])


def _in_shares(rows: pandas.DataFrame) -> str:
    """Return the shares of images with positive shifts in words."""
    parts = []
    for (model, name), (value, low, high, n) in rows[["value", "low", "high", "n"]].iterrows():
        parts.append(f"{model} {name} {value:.0f}% [{low:.0f}, {high:.0f}] of {n:.0f}")
    return ", ".join(parts)


def positive(evidence: Evidence, column: str = "value") -> Finding:
    """Check that lmss and vlss are above 0 for most images, by value or by lower end."""
    rows = _shifts(evidence)
    return Finding(answer(rows[column] > POSITIVE), f"Above 0: {_in_shares(rows)} images.")


def positive_together(evidence: Evidence) -> Finding:
    """Check that both are above 0 for most images; two shares bound their overlap."""
    rows = _shifts(evidence)
    wide = rows["value"].unstack()
    sure, possible = (wide.sum(axis=1) - 100 > POSITIVE), wide.min(axis=1) > POSITIVE
    if (possible & ~sure).any():
        raise NoEvidenceError("the two shares leave open how many images have both above 0")
    return Finding(answer(sure), f"Above 0: {_in_shares(rows)} images.")
