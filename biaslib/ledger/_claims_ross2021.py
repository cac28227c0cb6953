"""Checks of the claims of Ross, Katz and Barbu (2021), on their printed tables or on a run's.

Intervals draw the 13 tests anew, and keep the levels and models of a test together, except where a
check says otherwise.
"""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import inference
from biaslib.ledger._evidence import Evidence, Finding, Mean, NoEvidenceError, answer, mean_over
from biaslib.ledger._runs import MODELS as NAMES

MODELS = tuple(NAMES.values())
MASKED = MODELS[1:]
LEVELS = ("W", "S", "C")
TESTS, ENTRIES = 13, 17
EFFECTS, COUNTS, IMAGES = (
    f"ross2021_{name}" for name in ("effect_sizes", "significant_counts", "images")
)

STATED = 10_228  # the paper's number of images
CHANCE = 0.05  # the paper's level of significance
SMALL = 0.2  # ours: the usual mark of a small effect
MEDIUM = 0.5  # ours: the usual mark of a medium effect
NOISE = 0.05  # ours: what two runs may differ by; the paper names no noise
DISTINCT = 0.95  # ours: two experiments of a larger correlation give one picture
STRONG = 0.2  # ours: a strong difference between shares of significant tests


# The tables


def _complete(rows: pandas.DataFrame, models=MODELS, tests: int = TESTS) -> pandas.DataFrame:
    missing = sorted(set(models) - set(rows["model"]))
    if missing:
        raise NoEvidenceError(f"there is nothing of {', '.join(missing)}")
    if rows["test"].nunique() < tests:
        raise NoEvidenceError(f"there are {rows['test'].nunique()} of {tests} tests")
    return rows


def _both(evidence: Evidence, alike: bool = True) -> pandas.DataFrame:
    """Return d of Experiments 1 and 2: *test*, *level*, *model*, *d1*, *d2*.

    Parameters
    ----------
    evidence
        The tables.
    alike
        Keep tests whose cells are all the same in both, which are one computation printed twice.
    """
    rows = evidence.table(EFFECTS, table=[3, 4])
    wide = rows.pivot_table(
        index=["test", "level", "model"], columns="experiment", values="effect_size", sort=False
    ).reset_index()
    if not {1, 2} <= set(wide.columns):
        raise NoEvidenceError("there is one of Experiments 1 and 2 only")
    wide = _complete(wide.rename(columns={1: "d1", 2: "d2"}))
    if set(wide["level"]) < set(LEVELS):
        raise NoEvidenceError("there are not all three levels")
    if alike:
        return wide
    same = wide.groupby("test", sort=False).apply(lambda part: (part["d1"] == part["d2"]).all())
    return wide[~wide["test"].map(same)]


def _masked(evidence: Evidence) -> pandas.DataFrame:
    """Return d with words (*T*) and people (*I*) hidden, and in sight: *S1*, *S2*."""
    hidden = evidence.table(EFFECTS, table=5, model=list(MASKED))
    wide = hidden.pivot_table(index=["test", "model"], columns="level", values="effect_size")
    if not {"T", "I"} <= set(wide.columns):
        raise NoEvidenceError("there is one of the two masks only")
    sight = evidence.table(EFFECTS, table=[3, 4], level="S")
    sight = sight.pivot_table(index=["test", "model"], columns="experiment", values="effect_size")
    both = wide.join(sight.rename(columns={1: "S1", 2: "S2"})).reset_index()
    return _complete(both.reindex(columns=["test", "model", "T", "I", "S1", "S2"]), MASKED)


def _domains(evidence: Evidence) -> pandas.DataFrame:
    """Return d on the model's own pictures (*own*) beside that on Google's (*google*)."""
    keys = ["experiment", "test", "level", "model"]
    own = evidence.table(EFFECTS, table=6, level=list(LEVELS))
    google = evidence.table(EFFECTS, table=[3, 4])
    columns = [*keys, "effect_size"]
    both = own[columns].merge(google[columns], on=keys, suffixes=(" own", " google"))
    both = both.rename(columns=lambda name: name.removeprefix("effect_size "))
    if set(both["level"]) < set(LEVELS):
        raise NoEvidenceError("there are not all three levels")
    both["pair"] = both["test"] + both["model"]
    return _complete(both, tests=2)


def _counted(evidence: Evidence, experiment: int) -> pandas.DataFrame:
    """Return counts of significant tests with *model*."""
    rows = evidence.table(COUNTS, experiment=experiment)
    rows = rows[rows["significant"].notna()].assign(model=rows["model_inferred"])
    missing = set(MODELS if experiment < 3 else MASKED) - set(rows["model"])
    if missing:
        raise NoEvidenceError(f"significant tests of {', '.join(sorted(missing))} are not counted")
    return rows


def _by_model(evidence: Evidence, experiment: int, by: str = "model") -> pandas.DataFrame:
    return _counted(evidence, experiment).groupby(by)[["significant", "total"]].sum().astype(int)


def _alone(evidence: Evidence) -> pandas.DataFrame:
    """Return how much larger \\|d\\| is with images than that of BERT without: *more*, *test*."""
    text = evidence.scores_of(model="bert", images="without", experiment=1, masking="none")
    seen = evidence.scores_of(model=list(NAMES), images="with", experiment=1, masking="none")
    seen = seen[seen["domain"] != "in domain"] if "domain" in seen else seen
    both = seen.merge(text, on=["test", "level"], suffixes=("", " text"))
    more = both["value"].abs() - both["value text"].abs()
    table = both.assign(more=more, model=both["model"].map(NAMES))
    return _complete(table, tests=1)


# Statistics


def _means(rows: pandas.DataFrame, values: pandas.Series, models=MODELS) -> dict[str, Mean]:
    """Return the mean of each model, with its interval over tests."""
    parts = {model: (rows["model"] == model).to_numpy() for model in models}
    return {
        model: mean_over(values[part], rows["test"][part].tolist()) for model, part in parts.items()
    }


def _most(parts) -> bool:
    held = list(parts)
    return 2 * sum(held) > len(held)


def _listed(means: dict[str, Mean]) -> str:
    return ", ".join(f"{model} {mean}" for model, mean in means.items())


def _correlation(x: pandas.Series, y: pandas.Series, units: pandas.Series) -> Mean:
    """Return Pearson's r with a 95% interval that draws units anew."""
    rows = pandas.DataFrame({"x": x, "y": y, "unit": units}).dropna()
    powers = rows.assign(n=1.0, xx=rows.x**2, yy=rows.y**2, xy=rows.x * rows.y)
    sums = powers.groupby("unit")[["n", "x", "y", "xx", "yy", "xy"]].sum().to_numpy()

    def statistic(weights: np.ndarray) -> np.ndarray:
        n, x, y, xx, yy, xy = sums.T @ weights
        spread = (n * xx - x * x) * (n * yy - y * y)
        return (n * xy - x * y) / np.sqrt(np.where(spread > 1e-12, spread, np.nan))

    if np.isnan(statistic(np.ones((len(sums), 1)))).any():
        raise NoEvidenceError("one side of a correlation is the same throughout")
    found = inference.bootstrap(statistic, [len(sums)], limit=1.0, n_resamples=2_000, rng=0)
    return Mean(found.estimate, found.low, found.high)


def _share_above(k: int, n: int, mark: float) -> bool:
    return inference.proportion_interval(k, n).low > mark


# Experiments 1 and 2


def biased(evidence: Evidence) -> Finding:
    """More tests are significant than by chance, for every model; d is positive on average."""
    both, found = _both(evidence), _by_model(evidence, 1)
    mean = mean_over(both["d1"], both["test"])
    enough = all(_share_above(k, n, CHANCE) for k, n in found.to_numpy())
    k, n = found.sum()
    told = f"{k} of {n} tests are significant, at least {found['significant'].min()} of "
    told += f"{found['total'].min()} of each model; mean d {mean}"
    return Finding(answer([enough, mean.low > 0]), told)


def every_model_biased(evidence: Evidence) -> Finding:
    """The same, with a positive mean d of every model."""
    both, found = _both(evidence), _by_model(evidence, 1)
    means = _means(both, both["d1"])
    enough = all(_share_above(k, n, CHANCE) for k, n in found.to_numpy())
    counts = ", ".join(map(str, found["significant"]))
    told = f"{counts} of {found['total'].min()} significant; mean d {_listed(means)}"
    return Finding(answer([enough, all(mean.low > 0 for mean in means.values())]), told)


def significant_1(evidence: Evidence) -> Finding:
    """More tests of Experiment 1 are significant than by chance."""
    k, n = _by_model(evidence, 1).sum()
    return Finding(answer([_share_above(k, n, CHANCE)]), f"{k} of {n} tests are significant")


def different_answers(evidence: Evidence) -> Finding:
    """Experiments 1 and 2 do not give one picture."""
    rows, every = _both(evidence, alike=False), _both(evidence)
    r = _correlation(rows["d1"], rows["d2"], rows["test"])
    change = mean_over(every["d2"].abs() - every["d1"].abs(), every["test"])
    told = f"r of d between Experiments 1 and 2 {r} over {len(rows)} cells; mean |d| changes by "
    apart = change.low > 0 or change.high < 0
    return Finding(answer([r.high < DISTINCT, apart]), f"{told}{change}")


def helps_little(evidence: Evidence) -> Finding:
    """No model's mean d falls by a small effect."""
    rows = _both(evidence)
    means = _means(rows, rows["d2"] - rows["d1"])
    pooled = mean_over(rows["d2"] - rows["d1"], rows["test"])
    held = [pooled.low > -SMALL, all(mean.low > -SMALL for mean in means.values())]
    told = f"Mean change of d over {len(rows)} cells {pooled}"
    return Finding(answer(held), f"{told}; {_listed(means)}")


def little_impact(evidence: Evidence) -> Finding:
    """Mean \\|d\\| changes by less than a small effect: the whole interval."""
    rows = _both(evidence)
    change = mean_over(rows["d2"].abs() - rows["d1"].abs(), rows["test"])
    means = [rows[name].abs().mean() for name in ("d1", "d2")]
    told = f"Mean |d| {means[0]:.3f} and {means[1]:.3f}, difference {change}"
    return Finding(answer([change.low > -SMALL and change.high < SMALL]), told)


def attenuated(evidence: Evidence) -> Finding:
    """Mean \\|d\\| falls."""
    rows = _both(evidence)
    size = rows["d2"].abs() - rows["d1"].abs()
    change, means = mean_over(size, rows["test"]), _means(rows, size)
    up = sum(mean.value > 0 for mean in means.values())
    told = f"Mean |d| {rows['d1'].abs().mean():.3f} and {rows['d2'].abs().mean():.3f}, difference "
    return Finding(answer([change.high < 0]), f"{told}{change}; it rises for {up} of 4 models")


def overcomes_not(evidence: Evidence) -> Finding:
    """Where d was at least medium, it stays positive with pictures of the own group."""
    rows = _both(evidence, alike=False)
    rows = rows[rows["d1"] >= MEDIUM]
    stays = mean_over((rows["d2"] > 0).astype(float), rows["test"])
    mean = mean_over(rows["d2"], rows["test"])
    told = f"{int((rows['d2'] > 0).sum())} of {len(rows)} stay above 0; mean d "
    told += f"{rows['d1'].mean():.3f} and then {mean}"
    return Finding(answer([stays.low > 0.5, mean.low > 0]), told)


def ignores(evidence: Evidence) -> Finding:
    """Effects hardly change at all; or, weaker, they do not fall."""
    rows = _both(evidence, alike=False)
    means = _means(rows, (rows["d2"] - rows["d1"]).abs())
    change = mean_over(rows["d2"] - rows["d1"], rows["test"])
    every = (rows["d2"] - rows["d1"]).abs().mean()
    turned = int((np.sign(rows["d1"]) * np.sign(rows["d2"]) < 0).sum())
    told = f"Mean |change of d| {every:.3f} over {len(rows)} cells (C8 left out: printed alike); "
    told += f"{turned} change sign; mean change "
    strict = _most(mean.high < NOISE for mean in means.values())
    return Finding(answer([strict, change.low > -SMALL]), f"{told}{change}")


def overrules(evidence: Evidence) -> Finding:
    """With pictures of the own group d is positive on average, and often significant."""
    rows = _both(evidence)
    mean, (k, n) = mean_over(rows["d2"], rows["test"]), _by_model(evidence, 2).sum()
    known = rows["d2"].dropna()
    told = (
        f"Mean d {mean}; {int((known > 0).sum())} of {len(known)} positive; {k} of {n} significant"
    )
    return Finding(answer([mean.low > 0, _share_above(k, n, CHANCE)]), told)


def _totals(evidence: Evidence) -> tuple[int, int, int]:
    first, second = (_by_model(evidence, experiment).sum() for experiment in (1, 2))
    return first["significant"], second["significant"], first["total"]


def fewer(evidence: Evidence) -> Finding:
    """Fewer tests of Experiment 2 are significant."""
    first, second, n = _totals(evidence)
    told = f"{second} of {n} in Experiment 2 against {first} in Experiment 1"
    return Finding(answer([second < first]), told)


def helpful(evidence: Evidence) -> Finding:
    """Mean \\|d\\| or the number of significant tests falls."""
    first, second, _ = _totals(evidence)
    rows = _both(evidence)
    change = mean_over(rows["d2"].abs() - rows["d1"].abs(), rows["test"])
    told = f"{second} against {first} significant; mean |d| changes by {change}"
    return Finding(answer([change.high < 0 or second < first]), told)


def as_in_humans(evidence: Evidence) -> Finding:
    """More effects have the direction of the stereotype than not."""
    rows = _both(evidence)
    rows = rows[rows["d1"].notna()]
    share = mean_over((rows["d1"] > 0).astype(float), rows["test"])
    told = f"{int((rows['d1'] > 0).sum())} of {len(rows)} effects are positive: {share}"
    return Finding(answer([share.value > 0.5, share.low > 0.5]), told)


def _levels(evidence: Evidence) -> pandas.DataFrame:
    return _both(evidence).pivot_table(index=["test", "model"], columns="level", values="d1")


PAIRS = (("W", "S"), ("W", "C"), ("S", "C"))


def _signs(wide: pandas.DataFrame) -> dict[str, tuple[int, int]]:
    """Return for each pair of levels how many cells share their sign, and of how many."""
    found = {}
    for one, other in PAIRS:
        both = wide[[one, other]].dropna()
        same = int((np.sign(both[one]) == np.sign(both[other])).sum())
        found[f"{one},{other}"] = (same, len(both))
    return found


def levels_agree(evidence: Evidence) -> Finding:
    """Effects at two levels go together."""
    wide = _levels(evidence)
    tests = wide.index.get_level_values("test").to_series(index=wide.index)
    found = {f"{a},{b}": _correlation(wide[a], wide[b], tests) for a, b in PAIRS}
    signs = _signs(wide)
    parts = [all(r.low > 0 for r in found.values()), all(2 * k > n for k, n in signs.values())]
    told = "; ".join(
        f"{pair} r {found[pair]}, same sign {k} of {n}" for pair, (k, n) in signs.items()
    )
    return Finding(answer(parts), told)


def levels_differ(evidence: Evidence) -> Finding:
    """The levels do not find the same biases."""
    rows = _counted(evidence, 1)
    counts = rows.pivot_table(
        index=["model", "kind"], columns="level", values="significant", aggfunc="sum"
    )
    apart = (counts.nunique(axis=1) > 1).groupby("model").any()
    signs = _signs(_levels(evidence))
    totals = ", ".join(f"{level} {int(counts[level].sum())}" for level in LEVELS)
    others = ", ".join(f"{n - k} of {n} ({pair})" for pair, (k, n) in signs.items())
    told = f"Significant: {totals}. Signs differ in {others}"
    return Finding(answer([apart.all(), all(k < n for k, n in signs.values())]), told)


def no_strong_differences(evidence: Evidence) -> Finding:
    """Models have like shares of significant tests in Experiments 1 and 2."""
    told, gaps = [], []
    for experiment in (1, 2):
        found = _by_model(evidence, experiment)
        share = found["significant"] / found["total"]
        gaps.append(share.max() - share.min())
        told.append(f"{', '.join(map(str, found['significant']))} of {found['total'].min()}")
    return Finding(answer([max(gaps) <= STRONG]), f"{'; '.join(told)}; largest gap {max(gaps):.2f}")


# Masks

HIDDEN = {"I": "with people hidden", "T": "with words hidden"}
MORE = "Hiding words moves d more than hiding people does, by"


def both_contribute(evidence: Evidence) -> Finding:
    """With either input hidden, more tests are significant than by chance."""
    found = _counted(evidence, 3).groupby(["level", "model"])[["significant", "total"]].sum()
    parts = [_share_above(int(k), int(n), CHANCE) for k, n in found.to_numpy()]
    totals = found.groupby("level").sum().astype(int)
    told = ", ".join(f"{HIDDEN[level]} {k} of {n}" for level, (k, n) in totals.iterrows())
    low = found["significant"].astype(int).min()
    return Finding(answer(parts), f"Significant {told}; the fewest of a model: {low}")


def _shifts(evidence: Evidence) -> pandas.DataFrame:
    rows = _masked(evidence)
    if rows["S1"].isna().all():
        raise NoEvidenceError("there is no sentence level of Experiment 1")
    return rows.assign(t=(rows["T"] - rows["S1"]).abs(), i=(rows["I"] - rows["S1"]).abs())


def language_more(evidence: Evidence, some: bool) -> Finding:
    """Hiding words moves d more than hiding people: for some model, or for most."""
    rows = _shifts(evidence)
    means = _means(rows, rows["t"] - rows["i"], MASKED)
    pooled = mean_over(rows["t"] - rows["i"], rows["test"])
    above = [mean.low > 0 for mean in means.values()]
    held = any(above) if some else pooled.low > 0 and _most(above)
    return Finding(answer([held]), f"{MORE} {pooled} over all; {_listed(means)}")


def mixture(evidence: Evidence) -> Finding:
    """Hiding either input moves d by more than noise, for most models."""
    rows = _shifts(evidence)
    parts = []
    for name in "ti":
        means = _means(rows, rows[name], MASKED)
        parts.append(_most(mean.low > NOISE for mean in means.values()))
    told = f"Hiding words moves d by {rows['t'].mean():.3f}, hiding people by "
    told += f"{rows['i'].mean():.3f} on average over "
    return Finding(answer(parts), f"{told}{rows[['t', 'i']].dropna().shape[0]} cells")


def considers_vision(evidence: Evidence) -> Finding:
    """Hiding people moves d of each model at all; and by more than noise."""
    rows = _shifts(evidence)
    means = _means(rows, rows["i"], MASKED)
    told = f"Hiding people moves d by {rows['i'].mean():.3f} on average; {_listed(means)}"
    parts = [all(mean.low > mark for mean in means.values()) for mark in (0, NOISE)]
    return Finding(answer(parts), told)


def generally_significant(evidence: Evidence) -> Finding:
    """More than half of the tests with a mask are significant."""
    found = _by_model(evidence, 3, "level")
    k, n = found.sum()
    each = ", ".join(f"{HIDDEN[mask]} {a} of {b}" for mask, (a, b) in found.iterrows())
    told = f"{k} of {n} significant; {each}"
    return Finding(answer([_share_above(k, n, 0.5)]), told)


def more_for_language(evidence: Evidence) -> Finding:
    """More tests are significant with people hidden than with words hidden."""
    rows = _counted(evidence, 3)
    wide = rows.pivot_table(index="model", columns="level", values="significant", aggfunc="sum")
    total = wide.sum()
    pairs = ", ".join(f"{m} {int(r['I'])} and {int(r['T'])}" for m, r in wide.iterrows())
    told = f"People hidden {int(total['I'])}, words hidden {int(total['T'])}; {pairs}"
    return Finding(answer([total["I"] > total["T"], _most(wide["I"] > wide["T"])]), told)


def differs_by_model(evidence: Evidence) -> Finding:
    """Each model has significant tests with either mask, and the models differ."""
    rows = _counted(evidence, 3)
    wide = rows.pivot_table(index="model", columns="level", values="significant", aggfunc="sum")
    pairs = ", ".join(f"{int(row['T'])} and {int(row['I'])}" for _, row in wide.iterrows())
    parts = [bool((wide > 0).all(axis=None)), (wide["T"] - wide["I"]).nunique() > 1]
    told = f"Significant of {TESTS} with words hidden and with people hidden, by model"
    return Finding(answer(parts), f"{told}: {pairs}")


def _orders(rows: pandas.DataFrame) -> list[str]:
    """Return the columns that say which model a count is of: two where the header is lost."""
    return [c for c in ("model_inferred", "model_table4_order") if c in rows]


def vl_bert(evidence: Evidence) -> Finding:
    """For VL-BERT hiding words takes more away than hiding people."""
    rows, shifts, parts = _counted(evidence, 3), _shifts(evidence), []
    for order in _orders(rows):
        of_model = rows[rows[order] == "VL-BERT"].groupby("level")["significant"].sum()
        parts.append(bool(of_model["T"] < of_model["I"]))
    mean = _means(shifts, shifts["t"] - shifts["i"], ["VL-BERT"])["VL-BERT"]
    fits = f"fewer significant with words hidden in {sum(parts)} of {len(parts)} orders of columns"
    return Finding(answer([mean.low > 0, *parts]), f"{MORE} {mean}; {fits}")


def vilbert(evidence: Evidence) -> Finding:
    """ViLBERT has the most significant tests of Experiment 3."""
    rows, parts, told = _counted(evidence, 3), [], []
    for order in _orders(rows):
        found = rows.groupby(order)["significant"].sum().astype(int)
        if "ViLBERT" not in found:
            continue
        others = found.drop("ViLBERT")
        parts.append(bool(found["ViLBERT"] > others.max()))
        told.append(f"{found['ViLBERT']} against {' and '.join(map(str, others))}")
    return Finding(answer(parts), "; in another order of columns ".join(told))


def visualbert(evidence: Evidence) -> Finding:
    """There is no number of VisualBERT with words or people hidden."""
    rows = evidence.table(EFFECTS, table=[5, 6], level=["T", "I"])
    if "VisualBERT" not in set(evidence.table(EFFECTS)["model"]):
        raise NoEvidenceError("there is nothing of VisualBERT")
    known = rows[(rows["model"] == "VisualBERT") & rows["effect_size"].notna()]
    n = known.groupby(["table", "level"]).size()
    told = ", ".join(f"{k} values of {level} in Table {table}" for (table, level), k in n.items())
    return Finding(answer([known.empty]), told or "no value")


def which_experiment(evidence: Evidence) -> Finding:
    """Effects with people hidden lie nearer to Experiment 2 than to 1, for each model."""
    rows = _masked(evidence)
    if rows["S2"].isna().all():
        raise NoEvidenceError("there is no sentence level of Experiment 2")
    parts, told = [], []
    for model, part in rows.groupby("model", sort=False):
        first, second = ((part["I"] - part[name]).abs().mean() for name in ("S1", "S2"))
        parts.append(second < first)
        told.append(f"{model} {first:.3f} and {second:.3f}")
    return Finding(answer(parts), f"Mean distance from Experiments 1 and 2: {', '.join(told)}")


def similar_for_words(evidence: Evidence) -> Finding:
    """With a mask, effects of single words go with those of sentences."""
    rows = evidence.scores_of(level=["word", "sentence"], masking=["words", "persons"])
    wide = rows.pivot_table(index=["test", "model", "masking"], columns="level", values="value")
    if not {"word", "sentence"} <= set(wide.columns):
        raise NoEvidenceError("the run has masks at one level only")
    tests = wide.index.get_level_values("test").to_series(index=wide.index)
    r = _correlation(wide["word"], wide["sentence"], tests)
    return Finding(answer([r.low > 0]), f"r {r} over {len(wide.dropna())} cells")


# Domains, images, text alone


def amplified(evidence: Evidence, experiments: Sequence[int]) -> Finding:
    """Mean \\|d\\| is larger on Google's images; units of the interval are tests of a model."""
    rows = _domains(evidence)
    rows = rows[rows["experiment"].isin(experiments)]
    sizes, tests = rows[["google", "own"]].abs(), rows["test"].nunique()
    more = sizes["google"] - sizes["own"]
    found = mean_over(more, rows["pair"])
    higher = more.groupby(rows["model"]).mean() > 0
    told = f"Mean |d| {sizes['google'].mean():.3f} against {sizes['own'].mean():.3f}, difference "
    told += f"{found}, higher for {higher.sum()} of 4 models; {tests} of {TESTS} tests"
    return Finding(answer([found.value > 0 and _most(higher), found.low > 0]), told)


def small_differences(evidence: Evidence) -> Finding:
    """Mean \\|d\\| differs by less than a small effect between domains, in both experiments."""
    rows, parts, told = _domains(evidence), [], []
    for experiment, part in rows.groupby("experiment"):
        found = mean_over(part["google"].abs() - part["own"].abs(), part["pair"])
        parts.append(found.low > -SMALL and found.high < SMALL)
        told.append(f"Experiment {experiment}: {found}")
    return Finding(answer([all(parts)]), "; ".join(told))


def consistent(evidence: Evidence) -> Finding:
    """Effects of the two domains go together, and share their sign in more than half."""
    rows, parts, told = _domains(evidence), [], []
    for experiment, part in rows.groupby("experiment"):
        r = _correlation(part["own"], part["google"], part["pair"])
        same = int((np.sign(part["own"]) == np.sign(part["google"])).sum())
        parts.append(r.low > 0 and 2 * same > len(part))
        told.append(f"Experiment {experiment}: r {r}, same sign {same} of {len(part)}")
    return Finding(answer([all(parts)]), "; ".join(told))


def in_domain_too(evidence: Evidence) -> Finding:
    """Mean \\|d\\| in domain is above a small effect, over all models and for each."""
    rows = _domains(evidence)
    rows = rows[rows["experiment"] == 1]
    pooled = mean_over(rows["own"].abs(), rows["pair"])
    by_model = rows["own"].abs().groupby(rows["model"], sort=False).mean()
    listed = ", ".join(f"{model} {value:.3f}" for model, value in by_model.items())
    parts = [pooled.low > SMALL, bool((by_model > SMALL).all())]
    return Finding(answer(parts), f"Mean |d| {pooled}; {listed}")


def _images(evidence: Evidence) -> pandas.DataFrame:
    rows = evidence.table(IMAGES)
    if len(rows) < ENTRIES:
        raise NoEvidenceError(f"there are {len(rows)} of {ENTRIES} counts of images")
    return rows


def number_of_images(evidence: Evidence) -> Finding:
    """The counts add up to the stated number."""
    totals = _images(evidence).groupby("source", sort=False)["images"].sum()
    listed = ", ".join(f"{source} {n:,}" for source, n in totals.items())
    told = f"{totals.sum():,} images: {listed}"
    return Finding(answer([totals.sum() == STATED]), told)


def nearly_impossible(evidence: Evidence) -> Finding:
    """Fewer than half of the tests have images of either training set."""
    rows = _images(evidence)
    counts = rows[rows["source"] != "google"].groupby("source")["test"].nunique()
    told = ", ".join(f"{source} {n} of {TESTS}" for source, n in counts.items())
    return Finding(answer([bool((counts < TESTS / 2).all())]), f"Tests with images: {told}")


def equal_numbers(evidence: Evidence) -> Finding:
    """Every count can be divided among four pairs."""
    odd = _images(evidence)
    odd = odd[odd["images"] % 4 != 0]
    listed = ", ".join(f"{r.source} {r.test} {r.images}" for r in odd.itertuples())
    told = f"{len(odd)} of {ENTRIES} counts are no multiple of 4: {listed}"
    return Finding(answer([odd.empty]), told)


def complete_set(evidence: Evidence) -> Finding:
    """Every test of the results has a count of Google's images."""
    have = set(evidence.table(IMAGES, source="google")["test"])
    used = set(evidence.table(EFFECTS, table=[3, 4, 5])["test"])
    told = f"{len(used & have)} of {len(used)} tests have images"
    return Finding(answer([len(used) == TESTS and used <= have]), told)


def how_many_tests(evidence: Evidence) -> Finding:
    """There are six tests of gender and seven of race."""
    rows = evidence.table(EFFECTS, table=[3, 4, 5]).drop_duplicates("test")
    n = rows["kind"].value_counts()
    told = f"{n.get('gender', 0)} of gender and {n.get('race', 0)} of race"
    return Finding(answer([n.to_dict() == {"gender": 6, "race": 7}]), told)


def against_text(evidence: Evidence, least: float, most: float = np.inf) -> Finding:
    """\\|d\\| less BERT's without images lies in a range with its interval, for most models."""
    rows = _alone(evidence)
    means = _means(rows, rows["more"])
    held = _most(mean.low > least and mean.high < most for mean in means.values())
    return Finding(answer([held]), f"|d| - |d of BERT|: {_listed(means)}")


def equally_or_more(evidence: Evidence) -> Finding:
    """Effects are as large as BERT's, and as often significant."""
    rows = _alone(evidence)
    means = _means(rows, rows["more"])
    ours, text = (rows[name] < CHANCE for name in ("p_value", "p_value text"))
    parts = [_most(mean.value >= 0 for mean in means.values()), ours.mean() >= text.mean()]
    told = f"|d| - |d of BERT|: {_listed(means)}; significant {ours.mean():.2f}, {text.mean():.2f}"
    return Finding(answer(parts), told)


def eliminates_not(evidence: Evidence) -> Finding:
    """Effects are not smaller than BERT's, nor than without pictures of the own group."""
    rows = _both(evidence)
    means = [rows[name].abs().mean() for name in ("d1", "d2")]
    parts, told = [means[1] >= means[0]], f"Mean |d| {means[0]:.3f} and {means[1]:.3f}"
    if evidence.scores.empty:
        return Finding("in part" if parts[0] else "does not follow", f"{told}; BERT is not printed")
    alone = _alone(evidence)
    less = _most(mean.high < 0 for mean in _means(alone, alone["more"]).values())
    return Finding(answer([*parts, not less]), told)
