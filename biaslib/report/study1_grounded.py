"""Figures, tables, the panel and the checks of the chapter on grounded association tests."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import inference, published, stimuli
from biaslib.metrics.association import association
from biaslib.report._check import Check, judge
from biaslib.report._drawing import Drawing, steps
from biaslib.report._explorer import Panel
from biaslib.report._style import COLOURS, dots, marked, subplots
from biaslib.report._tables import require_paper
from biaslib.report._text import interval_text, p_text, signed
from biaslib.studies import study1_grounded as study

NAMES = {
    "visualbert": "VisualBERT",
    "vilbert": "ViLBERT",
    "lxmert": "LXMERT",
    "vl-bert": "VL-BERT",
    "bert": "BERT",
    "all-MiniLM-L6-v2": "MiniLM",
    "oracle": "oracle",
}
LEVELS = {"word": "W", "sentence": "S", "contextual": "C"}
MARKS = ("o", "s", "^", "D")


# The twelve embeddings of Table 2


def twelve_embeddings(d: int = 3, seed: int = 2) -> dict[int, np.ndarray]:
    """Return twelve embeddings with the numbers of the paper's Table 2b, made up for an exercise.

    The first coordinate is the word's gender or occupation, the second what the picture adds, the
    third is noise.

    Examples
    --------
    >>> sorted(twelve_embeddings())[-1], twelve_embeddings()[1].shape
    (12, (3,))
    """
    rng = np.random.default_rng(seed)
    lean = {1: 1, 2: 1, 3: -1, 4: -1} | dict.fromkeys(range(5, 9), 0.7)
    lean |= dict.fromkeys(range(9, 13), -0.7)
    shown = {2: -1, 3: 1, 4: -1, 1: 1, 5: 1, 6: 1, 7: -1, 8: -1, 9: 1, 10: 1, 11: -1, 12: -1}
    return {
        k: np.array([lean[k], 0.5 * shown[k], 1.0, *np.zeros(d - 3)]) + 0.1 * rng.normal(size=d)
        for k in sorted(lean)
    }


def outputs_read() -> pandas.DataFrame:
    """Return which states are read as embeddings: the structure of Figure 2."""
    text = "[CLS], tokens, [SEP]"
    rows = [
        ("VisualBERT", f"one stream: {text}, then regions", "first state", "as the paper says"),
        ("VL-BERT", f"one stream: {text}, then regions, [END]", "first state", "as the paper says"),
        ("ViLBERT", f"two streams; text: {text}", "first state of the text", "joins both firsts"),
        ("LXMERT", f"two streams; text: {text}", "first state of the text", "joins both firsts"),
    ]
    columns = ["model", "reads", "word and sentence level", "released code"]
    table = pandas.DataFrame(rows, columns=columns)
    return table.assign(**{"contextual level": "state of the word's first piece"})


# What is missing


def left_sentence(inputs: study.Inputs) -> str:
    """Return how many of the images are there, and which tests are not run."""
    if inputs.asked.empty:
        (images,) = {
            id(sets.images): sets.images for each in inputs.values() for sets in each
        }.values()
        return f"No image is missing: all {len(set(images.ids)):,} are drawn by the package."
    left, n = inputs.left["images_left"].sum(), inputs.left["n_images"].sum()
    run = (inputs.asked["outcome"] == "run").sum()
    uneven = (inputs.problems["kind"] == "sets are unbalanced").sum()
    without = [NAMES[name] for name in study.MODELS if name not in inputs]
    told = f" Without any test: {', '.join(without)}." if without else ""
    return (
        f"Of {len(inputs.asked)} tests asked for, counted by source and level, {run} are run. "
        f"Counted by file and set, {left:,} of {n:,} images are there and can be opened. "
        f"Pairs of sets that are compared and unbalanced: {uneven}.{told}"
    )


def asked_table(asked: pandas.DataFrame) -> pandas.DataFrame:
    """Return what became of every test that was asked for, level by level."""
    cells = asked.groupby(["source", "test", "level"], sort=False)["outcome"].agg("; ".join)
    wide = cells.unstack("level").reindex(columns=list(LEVELS)).rename(columns=LEVELS)
    place = {name: at for at, name in enumerate(study.tests()["test"])}
    wide = wide.reset_index().rename_axis(columns=None)
    return wide.sort_values("test", key=lambda names: names.map(place)).sort_values(
        "source", kind="stable"
    )


def left_table(left: pandas.DataFrame) -> pandas.DataFrame:
    """Return images left, of all, in the sets of every file, and the levels at which it is run."""
    counts = [f"{row.images_left}/{row.n_images}" for row in left.itertuples()]
    keys = ["source", "test", "file", "run"]
    wide = left.assign(cell=counts).pivot(index=keys, columns="set", values="cell")
    wide = wide.reindex(columns=list(study.SETS)).fillna("none").reset_index()
    return wide[["source", "test", "file", *study.SETS, "run"]].rename(columns={"run": "run at"})


# Tables in the structure of the paper's


def effect_table(scores: pandas.DataFrame, experiment: int) -> pandas.DataFrame:
    """Return effect sizes in the structure of Tables 3 and 4: a star where p is below .05."""
    rows = scores[(scores["experiment"] == experiment) & (scores["masking"] == "none")]
    return _wide(rows, ["test", "level"])


def masked_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return effect sizes in the structure of Table 5, sentences: T tokens, I regions masked."""
    rows = scores[(scores["masking"] != "none") & (scores["level"] == "sentence")]
    letter = rows["masking"].map({"words": "T", "persons": "I"})
    return _wide(rows.assign(masked=letter), ["test", "masked"])


def halves_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return Experiment 3 as the released code has it: an effect size for each target set."""
    rows = scores[(scores["experiment"] == 3) & (scores["masking"] == "none")]
    rows = rows.assign(targets=rows["statistic"].str.removeprefix("effect size of "), p_value=1.0)
    return _wide(rows, ["test", "level", "targets"])


def masked_both_ways(ours: pandas.DataFrame, released: pandas.DataFrame) -> pandas.DataFrame:
    """Return masked effect sizes of Experiment 1, as the released code has it, and Experiment 2.

    Scores of the profile ``paper`` have those of the printed Table 5 beside them.

    Parameters
    ----------
    ours, released
        Scores with masks of :func:`biaslib.studies.study1_grounded.run`, of either variant.
    """
    keys = ["test", "masking", "model"]
    kept = [table[table["masking"] != "none"] for table in (released, ours)]
    kept = [table.loc[table["level"] == "sentence", [*keys, "value"]] for table in kept]
    as_run, as_said = (
        table.rename(columns={"value": name})
        for table, name in zip(kept, ("as the code: Experiment 1", "Experiment 2"), strict=True)
    )
    joined = as_run.merge(as_said, on=keys, how="left")
    joined["masking"] = joined["masking"].map({"words": "T", "persons": "I"})
    joined["model"] = joined["model"].map(NAMES)
    if "profile" in released and (released["profile"] == "paper").all():
        printed = published.table("ross2021", 5).rename(columns={"level": "masking"})
        printed = printed[[*keys, "effect_size"]].rename(columns={"effect_size": "printed"})
        joined = joined.merge(printed, on=keys, how="left")
    return joined.rename(columns={"masking": "masked"})


def differences_table() -> pandas.DataFrame:
    """Return where paper and released code of study 1 differ, and what each variant does."""
    table = published.released_differences()
    table["model"] = table["model"].map(lambda name: NAMES.get(name, name))
    places = table["where"].str.removeprefix("1622980 ")
    table["where"] = places.str.replace("/", "/\N{ZERO WIDTH SPACE}")
    named = {"subject": "what", "paper": "the paper", "code": "the released code"}
    named |= {"released_variant": 'variant="released"', "paper_variant": 'variant="paper"'}
    return table.rename(columns=named)


def _wide(rows: pandas.DataFrame, by: list[str]) -> pandas.DataFrame:
    found = zip(rows["value"], rows["p_value"] < 0.05, strict=True)
    cells = rows.assign(
        cell=[_number(value) + ("*" if small else "") for value, small in found],
        level=rows["level"].map(LEVELS),
        model=rows["model"].map(NAMES),
    )
    order = list(study.tests()["test"])
    wide = cells.pivot_table(index=by, columns="model", values="cell", aggfunc="first", sort=False)
    wide = wide[[name for name in NAMES.values() if name in wide]].reset_index()
    place = wide["test"].map(order.index)
    return wide.assign(place=place).sort_values("place", kind="stable").drop(columns="place")


def _number(value: float) -> str:
    return "–" if pandas.isna(value) else signed(value)


def domain_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return effect sizes in and out of domain in the structure of Table 6, test by test.

    Only what a model has on both sides: the same test, experiment and level.
    """
    rows = _in_both_domains(scores).sort_values(
        ["experiment", "level", "domain"],
        key=lambda column: column.map(lambda each: PLACES.get(each, each)),
        kind="stable",
    )
    return _wide(rows.assign(p_value=np.nan), ["test", "experiment", "level", "domain"])


PLACES = {
    each: place for names in (study.LEVELS, study.DOMAINS) for place, each in enumerate(names)
}


def _in_both_domains(scores: pandas.DataFrame) -> pandas.DataFrame:
    rows = scores[(scores["masking"] == "none") & (scores["experiment"] < 3)]
    sides = rows.groupby(["model", "test", "experiment", "level"])["domain"].transform("nunique")
    return rows[sides == len(study.DOMAINS)]


def domain_sentence(scores: pandas.DataFrame) -> str:
    """Return the mean absolute effect size on either side, of what is compared."""
    rows = _in_both_domains(scores)
    if rows.empty:
        return "No test has images both in and out of domain; there is nothing to compare."
    size = rows["value"].abs().groupby(rows["domain"]).mean()
    out, own = (f"{size[domain]:.2f}" for domain in study.DOMAINS)
    return (
        f"Over the {len(rows) // 2} effect sizes that there are on both sides, of "
        f"{' and '.join(rows['test'].unique())}, the mean absolute size is {out} out of domain "
        f"and {own} in domain."
    )


def significant_counts(scores: pandas.DataFrame, column: str = "p_value") -> pandas.DataFrame:
    """Return how many tests have p below .05, in the structure of Table 7."""
    group = study.tests().set_index("test")["group"]
    rows = scores.assign(
        group=scores["test"].map(group),
        model=scores["model"].map(NAMES),
        significant=scores[column] < 0.05,
        part=_part(scores),
    )
    found = rows.groupby(["group", "experiment", "part", "model"], sort=False)["significant"]
    table = found.agg(lambda each: f"{each.sum()} of {len(each)}").unstack("model")
    return table.reindex(columns=[n for n in NAMES.values() if n in table]).reset_index()


def _part(scores: pandas.DataFrame) -> pandas.Series:
    masked = scores["masking"].map({"words": "T", "persons": "I"})
    return masked.fillna(scores["level"].map(LEVELS))


def baseline_table(scores: Sequence[tuple[str, pandas.DataFrame]]) -> pandas.DataFrame:
    """Return mean absolute effect sizes of Experiment 1, a row a model and a column a level.

    Parameters
    ----------
    scores
        Pairs of what the model was shown, and scores.

    Returns
    -------
    pandas.DataFrame
        In brackets the 95% interval of the mean, tests drawn anew.
    """
    rows = []
    for shown, table in scores:
        for model, part in table[table["experiment"] == 1].groupby("model", sort=False):
            levels = part.groupby("level", sort=False)["value"]
            cells = {level: _mean_size(values.abs().to_numpy()) for level, values in levels}
            rows.append({"model": NAMES[model], "shown": shown} | cells)
    return pandas.DataFrame(rows)


def _mean_size(sizes: np.ndarray) -> str:
    known = sizes[~np.isnan(sizes)]
    found = inference.bootstrap(
        lambda weights: known @ weights / weights.sum(axis=0), [len(known)], rng=0
    )
    return f"{known.mean():.2f} ({interval_text(found.low, found.high)})"


# What the paper prints


def printed_table(number: int) -> pandas.DataFrame:
    """Return a table of printed effect sizes, a column a model as our copy has them."""
    table = published.table("ross2021", number)
    keys = (
        ["source", "experiment", "kind", "test", "level"]
        if number == 6
        else ["kind", "test", "level"]
    )
    wide = table.pivot_table(
        index=keys, columns="model", values="printed", aggfunc="first", sort=False
    )
    return wide.reset_index()


def printed_masked() -> pandas.DataFrame:
    """Return the printed Table 5."""
    return printed_table(5)


def printed_counts() -> pandas.DataFrame:
    """Return the printed Table 7, by columns, since the header is lost in our copy."""
    table = published.table("ross2021", 7)
    keys = ["kind", "experiment", "level"]
    wide = table.pivot_table(
        index=keys, columns="column", values="printed", aggfunc="first", sort=False
    )
    return wide.rename(columns=lambda column: f"column {column}").reset_index()


def beside_printed(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return effect sizes of Experiments 1 and 2 beside those of Tables 3 and 4.

    Raises
    ------
    ValueError
        If the scores are of the planted world, which does not stand beside published numbers.
    """
    require_paper(scores)
    rows = scores[(scores["masking"] == "none") & (scores["experiment"] < 3)]
    ours = rows.assign(model=rows["model"].map(NAMES), level=rows["level"].map(LEVELS))
    printed = pandas.concat([published.table("ross2021", number) for number in (3, 4)])
    keys = ["experiment", "test", "level", "model"]
    joined = ours[[*keys, "value"]].merge(printed[[*keys, "effect_size"]], on=keys, how="left")
    difference = joined["value"] - joined["effect_size"]
    joined = joined.assign(difference=difference)
    return joined.rename(columns={"value": "d here", "effect_size": "d printed"})


# Figures


def effects_figure(scores: pandas.DataFrame, level: str = "sentence", experiment: int = 1):
    """Draw effect sizes of all tests, a mark a model; filled where the paper's p is below .05."""
    rows = scores.query("level == @level and experiment == @experiment and masking == 'none'")
    names = [each for each in study.tests()["test"] if each in set(rows["test"])][::-1]
    figure, axes = subplots(height=0.4 * len(names) + 1.4)
    for number, (model, part) in enumerate(rows.groupby("model", sort=False)):
        heights = [names.index(test) + 0.15 * (1.5 - number) for test in part["test"]]
        colour, mark = COLOURS[number], MARKS[number % len(MARKS)]
        dots(axes, heights, part, colour, mark, NAMES[model], part["p_value"] < 0.05)
    axes.axvline(0, color="0.35", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlim=(-2.1, 2.1), xlabel="effect size d")
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return marked(figure, profile_of(scores))


# The panel


def panel(
    embedded: dict[str, Sequence[study.EmbeddedSets]],
    scores: pandas.DataFrame,
    experiments: Sequence[int] = study.EXPERIMENTS,
) -> Panel:
    """Return the panel: test, model, level and experiment; two clouds, effect size, null and p.

    Parameters
    ----------
    embedded
        Stimuli that each model has embedded, without masks.
    scores
        Those of the same models, as of :func:`biaslib.studies.study1_grounded.run`.
    experiments
        Which.
    """
    rows = scores[scores["masking"] == "none"].set_index(["model", "test", "level", "experiment"])
    cases = {}
    for model, sets_of in embedded.items():
        for sets in sets_of:
            for experiment in experiments:
                key = (sets.test, NAMES[model], sets.level, f"Experiment {experiment}")
                row = rows.loc[model, sets.test, sets.level, experiment]
                cases[key] = _drawings(sets, experiment, row, _note(scores))
    choices = {
        "Test": [name for name in study.tests()["test"] if any(k[0] == name for k in cases)],
        "Model": list(dict.fromkeys(key[1] for key in cases)),
        "Level": list(dict.fromkeys(key[2] for key in cases)),
        "Experiment": [f"Experiment {experiment}" for experiment in experiments],
    }
    return Panel("Grounded association tests", choices, cases)


def _drawings(sets, experiment: int, row: pandas.Series, note: str) -> list[Drawing]:
    if pandas.isna(row["value"]):
        sentence = "All scores are the same: there is no effect size."
        return [_clouds(sets, experiment, sentence, note)]
    sentence = (
        f"d = {signed(row['value'])}; "
        f"difference {signed(row['numerator'], 3)}; {p_text(row['p_value'])} with every text with "
        f"an image as a unit, {p_text(row['p_value_words'])} with words as units."
    )
    return [_clouds(sets, experiment, sentence, note), _null(sets, experiment, row, note)]


def _clouds(sets, experiment: int, sentence: str, note: str) -> Drawing:
    """Draw s of every target word, X above Y; in Experiment 3 with the other attributes too."""
    test = stimuli.association_test(sets.test)
    result = sets.grounded(min(experiment, 2) if experiment < 3 else 2)
    marks, values = [], []
    parts = [("X", result.x_scores, 3), ("Y", result.y_scores, 1)]
    if experiment == 3:
        parts = [("X", result.x_scores, 3), ("X", result.x_other, 2)]
        parts += [("Y", result.y_scores, 1), ("Y", result.y_other, 0)]
    for number, (target, scores, height) in enumerate(parts):
        means = _word_means(scores, sets.words[target])
        other = experiment == 3 and number % 2
        label = test.labels[target] + (", other attributes" if other else "")
        marks.append(
            {"kind": "dots", "x": list(means.values()), "y": [height] * len(means)}
            | {"label": label, "group": number}
        )
        values += list(means.values())
    reach = 1.15 * max(np.abs(values).max(), 1e-6)
    ticks = {height: target for target, _, height in parts}
    return Drawing(
        sentence, marks, "s(w, A, B), mean of each target word", "", (-reach, reach), (-0.7, 3.7),
        f"Rows of dots, one a target word of {test.labels['X']} and {test.labels['Y']}.",
        note=note, y_ticks=ticks, height=190,
    )  # fmt: skip


def _word_means(scores: np.ndarray, words: np.ndarray) -> dict[str, float]:
    means = pandas.Series(scores).groupby(words, sort=False).mean()
    return means.to_dict()


def _null(sets, experiment: int, row: pandas.Series, note: str) -> Drawing:
    """Draw the computed null with words as units, and where this test stands in it."""
    result = study.averaged(sets.grounded(experiment), sets.words)
    if experiment == 3:
        observed, edges, heights = _exchanged(result)
        what, how = "half the sum of both absolute shifts", "exchanges of own and other attributes"
    else:
        observed, edges, heights = _relabelled(result)
        what, how = "difference of mean s", "relabellings of target words"
    marks = [
        steps(heights, edges) | {"label": f"all {how}", "group": 2},
        {"kind": "rule", "x": [observed], "y": [], "label": "this test", "group": 3},
    ]
    p = p_text(row["p_value_words"])
    sentence = f"With words as units, {p}: the share of all {how} at the dashed line or above."
    return Drawing(
        sentence, marks, what, "share", (edges[0], edges[-1]), (0, 1.1 * heights.max()),
        "A histogram of the computed null, and an upright line where this test stands.",
        note=note, height=190,
    )  # fmt: skip


def _relabelled(result) -> tuple[float, np.ndarray, np.ndarray]:
    x, y = result.x_scores, result.y_scores
    observed = x.mean() - y.mean()
    pooled = np.concatenate([x, y])
    spread = pooled.std(ddof=1) * np.sqrt(1 / len(x) + 1 / len(y))
    reach = max(4 * spread, 1.1 * abs(observed))
    edges = np.linspace(-reach, reach, 32)
    return float(observed), edges, inference.permutation_histogram(x, y, edges)


def _exchanged(result) -> tuple[float, np.ndarray, np.ndarray]:
    shifts = result.x_scores - result.x_other, result.y_scores - result.y_other
    observed = 0.5 * sum(abs(each.sum()) for each in shifts)
    spread = np.sqrt(sum((each**2).sum() for each in shifts))
    edges = np.linspace(0, max(2.5 * spread, 1.1 * observed, 1e-6), 32)  # all 0 where Ax is Ay
    return float(observed), edges, inference.exchange_histogram(result, edges)


# Shared


def profile_of(scores: pandas.DataFrame) -> str:
    """Return the profile of which all scores are."""
    planted = "profile" in scores and (scores["profile"] == "planted").all()
    return "planted" if planted else "paper"


def _note(scores: pandas.DataFrame) -> str:
    return "planted world" if profile_of(scores) == "planted" else ""


# Checks of exercises, and sentences that carry several numbers


def check_twelve(answer) -> Check:
    """Judge the statistics of Experiments 2 and 3 on the twelve embeddings of Table 2."""
    e = twelve_embeddings()
    numbers = zip(study.SETS, (1, 4, 5, 7, 10, 12), strict=True)
    sets = {name: np.array([e[number]]) for name, number in numbers}
    expected = _second_and_third(**sets)
    hint = "use 1 and 4 as words, 5 and 10 with men, 7 and 12 with women; Experiment 3 has a half"
    found = answer(e)
    found = found if found is None or found is ... else [float(each) for each in found]
    return judge(found, expected, hint, right="both experiments, by hand.")


def _second_and_third(X, Y, Ax, Ay, Bx, By) -> list[float]:
    own = association(X, Ax, Bx)[0], association(Y, Ay, By)[0]
    other = association(X, Ay, By)[0], association(Y, Ax, Bx)[0]
    return [own[0] - own[1], 0.5 * (abs(own[0] - other[0]) + abs(own[1] - other[1]))]


def check_clusters(answer) -> Check:
    """Judge a p-value with words as units, on scores made up for it."""
    rng = np.random.default_rng(7)
    words = [np.repeat([f"{side}{i}" for i in range(6)], 4) for side in "xy"]
    x, y = (np.repeat(rng.normal(size=6), 4) + 0.2 * rng.normal(size=24) for _ in "xy")
    expected = inference.permutation_test(x, y, clusters_x=words[0], clusters_y=words[1]).p_value
    hint = "one mean a word, twelve numbers in all, before the test"
    right = "the p-value no longer depends on how many sentences a word has."
    return judge(answer(x, y, *words), expected, hint, right=right)


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> listed(["BERT", "LXMERT", "ViLBERT"])
    'BERT, LXMERT and ViLBERT'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def encoder_table(judged: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often tests reject random attribute words in a real encoder, as it is read."""
    return pandas.DataFrame(
        {
            "test": judged["test"],
            "mean |d|": judged["size"],
            "permutation rejects (%)": _percent(judged, "permutation"),
            "random words reject (%)": _percent(judged, "remedy"),
            "sets judged": [
                f"{a:,} and {b:,}"
                for a, b in zip(judged["n_permutation"], judged["n_remedy"], strict=True)
            ],
        }
    )


def _percent(rows: pandas.DataFrame, name: str) -> list[str]:
    parts = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [f"{100 * a:.1f} ({100 * b:.1f} to {100 * c:.1f})" for a, b, c in parts]


def printed_sentence() -> str:
    """Return what the printed effect sizes of Tables 3 and 4 amount to."""
    sizes = [published.table("ross2021", number)["effect_size"].abs().mean() for number in (3, 4)]
    counts = published.table("ross2021", 7).groupby("experiment")["significant"].sum()
    return (
        f"The mean absolute effect size is {sizes[0]:.2f} in Table 3 and {sizes[1]:.2f} in Table "
        f"4, and Table 7 counts {counts[1]:.0f} significant tests in Experiment 1 and "
        f"{counts[2]:.0f} in Experiment 2: that they are fewer, or attenuated, does not follow "
        "from the tables in our copy."
    )
