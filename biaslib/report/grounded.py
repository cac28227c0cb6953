"""Figures, tables, the panel and the checks of the chapter on grounded association tests."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import inference, published, stimuli
from biaslib.metrics.association import association
from biaslib.report._check import Check, judge
from biaslib.report._drawing import Drawing, histogram
from biaslib.report._explorer import Panel
from biaslib.report._style import marked
from biaslib.report._text import p_text, signed
from biaslib.studies import grounded as study

__all__ = [
    "NAMES",
    "calibration_figure",
    "calibration_table",
    "check_clusters",
    "check_twelve",
    "domain_sentence",
    "domain_table",
    "effect_table",
    "effects_figure",
    "left_sentence",
    "left_table",
    "masked_table",
    "null_figure",
    "null_table",
    "outputs_read",
    "panel",
    "printed_counts",
    "printed_masked",
    "printed_sentence",
    "printed_table",
    "share",
    "sign_table",
    "significant_counts",
    "twelve_embeddings",
    "worlds_figure",
    "worlds_sentence",
    "worlds_table",
]

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
WIDTH = 7.2


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
    if inputs.left.empty:
        (pool,) = {id(sets.pool): sets.pool for each in inputs.values() for sets in each}.values()
        return f"No image is missing: all {len(set(pool.ids)):,} are drawn by the package."
    left, n = inputs.left["images_left"].sum(), inputs.left["n_images"].sum()
    emptied = inputs.left.loc[inputs.left["run"] == "not run", "file"].unique()
    uneven = (inputs.problems["kind"] == "sets are unbalanced").sum()
    lost = f"not run, because a set is empty: {', '.join(emptied)}" if len(emptied) else ""
    told = lost or "no set is empty"
    return (
        f"Counted by file and set, {left:,} of {n:,} images are there and can be opened; {told}. "
        f"Pairs of sets that are compared and unbalanced: {uneven}."
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


def sign_table(scores: pandas.DataFrame, seed: int = 0) -> pandas.DataFrame:
    """Return how often planted tests have the planted sign, by model, level and group."""
    rows = scores[(scores["masking"] == "none") & (scores["experiment"] < 3)]
    rows = rows.merge(study.planted_signs(seed), on="test").merge(study.tests(), on="test")
    rows = rows[~rows["control"]]
    right = np.sign(rows["value"]) == rows["sign"]
    rows = rows.assign(
        right=right, model=rows["model"].map(NAMES), size=rows["sign"] * rows["value"]
    )
    keys = ["model", "group", "experiment", "level"]
    found = rows.groupby(keys, sort=False).agg(
        right=("right", "sum"), tests=("right", "size"), mean=("size", "mean")
    )
    found = found.rename(columns={"mean": "mean d, planted direction", "right": "planted sign"})
    return found.reset_index()


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


# Figures


def effects_figure(scores: pandas.DataFrame, level: str = "sentence", experiment: int = 1):
    """Draw effect sizes of all tests, a mark a model; filled where the paper's p is below .05."""
    import seaborn
    from matplotlib import pyplot

    rows = scores.query("level == @level and experiment == @experiment and masking == 'none'")
    names = [each for each in study.tests()["test"] if each in set(rows["test"])][::-1]
    figure, axes = pyplot.subplots(figsize=(WIDTH, 0.4 * len(names) + 1.4))
    colours = seaborn.color_palette("colorblind")
    for number, (model, part) in enumerate(rows.groupby("model", sort=False)):
        heights = [names.index(test) + 0.15 * (1.5 - number) for test in part["test"]]
        colour, mark = colours[number], MARKS[number % len(MARKS)]
        fill = [colour if small else "none" for small in part["p_value"] < 0.05]
        axes.hlines(heights, part["low"], part["high"], color=colour, linewidth=1.2, alpha=0.7)
        axes.scatter(
            part["value"],
            heights,
            s=30,
            facecolors=fill,
            edgecolors=[colour],
            marker=mark,
            zorder=3,
        )
        axes.plot([], [], color=colour, marker=mark, label=NAMES[model])
    axes.axvline(0, color="0.35", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlim=(-2.1, 2.1), xlabel="effect size d")
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return _finished(figure, scores)


def null_figure(null: pandas.DataFrame, biased: pandas.DataFrame, experiment: int = 1):
    """Draw effect sizes and differences of means of models without bias, and of one with it.

    ``biased`` are scores of tests on which a bias was planted.
    """
    import seaborn
    from matplotlib import pyplot

    colours = seaborn.color_palette("colorblind")
    figure, axes = pyplot.subplots(1, 2, figsize=(WIDTH, 3.2))
    sets = (
        (null[null["experiment"] == experiment], colours[0], "dose 0, nothing planted"),
        (biased[biased["experiment"] == experiment], colours[1], "dose 3, planted tests"),
    )
    reach = max(part["numerator"].abs().max() for part, _, _ in sets)
    for each, column, edges, label in (
        (axes[0], "value", np.linspace(-2, 2, 33), "effect size d"),
        (axes[1], "numerator", np.linspace(-reach, reach, 33), "difference of mean s"),
    ):
        for part, colour, name in sets:
            each.hist(part[column], edges, density=True, color=colour, alpha=0.55, lw=0, label=name)
        each.set(xlabel=label, yticks=[])
    axes[1].legend(frameon=False, fontsize=8.5)
    return _finished(figure, null)


def null_table(sizes: pandas.DataFrame) -> pandas.DataFrame:
    """Return the sizes of effects without bias, as a reader sees them."""
    return pandas.DataFrame(
        {
            "level": sizes["level"],
            "experiment": sizes["experiment"],
            "mean |d|": sizes["mean"],
            "95% over models": _intervals(sizes, "low", "high"),
            "95th percentile of |d|": sizes["q95"],
            "largest |d|": sizes["largest"],
            "numerator, root mean square": sizes["numerator_rms"],
            "models": sizes["n_models"],
            "tests": sizes["n"],
        }
    )


def calibration_figure(tables: Sequence[tuple[str, pandas.DataFrame]]):
    """Draw how often tests reject without bias, with intervals over models: a row a kind of test.

    Parameters
    ----------
    tables
        Names, and the rejections of one p-value each.
    """
    import seaborn
    from matplotlib import pyplot

    colours = seaborn.color_palette("colorblind")
    figure, axes = pyplot.subplots(figsize=(WIDTH, 0.62 * len(tables) + 1.5))
    shifts = {level: 0.24 * (1 - number) for number, level in enumerate(study.LEVELS)}
    for place, (_, table) in enumerate(tables):
        for number, (level, shift) in enumerate(shifts.items()):
            for row in table[table["level"] == level].itertuples():
                height = place + shift + (0.06 if row.experiment == 2 else -0.06)
                reach = [[100 * (row.share - row.model_low)], [100 * (row.model_high - row.share)]]
                axes.errorbar(
                    100 * row.share, height, xerr=np.clip(np.nan_to_num(reach), 0, None),
                    fmt=MARKS[number], color=colours[number], capsize=2, ms=5,
                    mfc=colours[number] if row.experiment == 1 else "none",
                )  # fmt: skip
    for number, level in enumerate(shifts):
        axes.plot([], [], color=colours[number], marker=MARKS[number], ls="", label=level)
    axes.axvline(5, color="0.35", linestyle="--", linewidth=1.2)
    axes.set_yticks(range(len(tables)), [name for name, _ in tables], fontsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="tests of models without bias that are called significant (%)", xlim=(0, None))
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    return marked(figure)


def calibration_table(tables: Sequence[tuple[str, pandas.DataFrame]]) -> pandas.DataFrame:
    """Return the numbers of :func:`calibration_figure`."""
    rows = pandas.concat([table.assign(name=name) for name, table in tables], ignore_index=True)
    return pandas.DataFrame(
        {
            "test": rows["name"],
            "level": rows["level"],
            "experiment": rows["experiment"],
            "rejected": rows["rejected"],
            "of": rows["n"],
            "%": 100 * rows["share"],
            "Clopper-Pearson": _intervals(100 * rows[["low", "high"]], "low", "high", 0),
            "over models": _intervals(
                100 * rows[["model_low", "model_high"]], "model_low", "model_high", 0
            ),
        }
    )


def share(table: pandas.DataFrame, level: str, experiment: int, column: str | None = None) -> str:
    """Return a rejection rate with its interval over models, for a sentence."""
    rows = table[(table["level"] == level) & (table["experiment"] == experiment)]
    row = rows[rows["units"] == column].iloc[0] if column else rows.iloc[0]
    return f"{row['share']:.0%} ({row['model_low']:.0%} to {row['model_high']:.0%})"


def worlds_figure(answers: pandas.DataFrame, questions: Sequence[str]):
    """Draw for each question what its experiment says of a world with yes and one with no.

    Parameters
    ----------
    answers
        *question*, *model*, *answer* (``yes`` or ``no``), *test*, *measure*.
    questions
        In order.
    """
    import seaborn
    from matplotlib import pyplot

    colours = seaborn.color_palette("colorblind")
    figure, axes = pyplot.subplots(1, len(questions), figsize=(WIDTH, 3.3), squeeze=False)
    for each, question in zip(axes[0], questions, strict=True):
        rows = answers[answers["question"] == question]
        models = list(dict.fromkeys(rows["model"]))
        pairs = [(model, answer) for model in models for answer in ("yes", "no")]
        for place, (model, answer) in enumerate(pairs):
            here = (rows["model"] == model) & (rows["answer"] == answer)
            values = rows.loc[here, "measure"]
            spots = place + np.linspace(-0.2, 0.2, max(len(values), 1))[: len(values)]
            colour = colours[0] if answer == "yes" else colours[1]
            mark = "o" if answer == "yes" else "s"
            each.scatter(spots, values, s=16, color=colour, marker=mark)
        ticks = [f"{NAMES[model]}\n{answer}" for model, answer in pairs]
        each.set_xticks(range(len(ticks)), ticks, fontsize=7.5)
        each.axhline(0, color="0.6", linewidth=0.8)
        each.set_title(question, fontsize=9)
    return marked(figure)


def worlds_table(answers: pandas.DataFrame) -> pandas.DataFrame:
    """Return for each question and model both answers' means, and whether they part.

    They part if every test of the one world scores above every test of the other.
    """
    rows = []
    for (question, model), part in answers.groupby(["question", "model"], sort=False):
        yes, no = (part.loc[part["answer"] == a, "measure"].dropna() for a in ("yes", "no"))
        apart = yes.min() > no.max() if len(yes) and len(no) else False
        rows.append(
            {"question": question, "model": NAMES[model]}
            | {"measure": part["what"].iloc[0], "yes": yes.mean(), "no": no.mean()}
            | {"tests": len(yes), "all tests apart": bool(apart)}
        )
    return pandas.DataFrame(rows)


# The panel


def panel(
    embedded: dict[str, Sequence[study.EmbeddedSets]],
    scores: pandas.DataFrame,
    experiments: Sequence[int] = study.EXPERIMENTS,
    n_relabellings: int = 1_000,
) -> Panel:
    """Return the panel: test, model, level and experiment; two clouds, effect size, null and p.

    Parameters
    ----------
    embedded
        Stimuli that each model has embedded, without masks.
    scores
        Those of the same models, as of :func:`biaslib.studies.grounded.run`.
    experiments
        Which.
    n_relabellings
        Of target words, for the picture of the null; the p-value is computed.
    """
    rows = scores[scores["masking"] == "none"].set_index(["model", "test", "level", "experiment"])
    cases = {}
    for model, sets_of in embedded.items():
        for sets in sets_of:
            for experiment in experiments:
                key = (sets.test, NAMES[model], sets.level, experiment)
                row = rows.loc[model, sets.test, sets.level, experiment]
                cases[key] = _drawings(sets, experiment, row, n_relabellings, _note(scores))
    choices = {
        "Test": [name for name in study.tests()["test"] if any(k[0] == name for k in cases)],
        "Model": list(dict.fromkeys(key[1] for key in cases)),
        "Level": list(dict.fromkeys(key[2] for key in cases)),
        "Experiment": list(experiments),
    }
    return Panel("Grounded association tests", choices, cases)


def _drawings(sets, experiment: int, row: pandas.Series, n: int, note: str) -> list[Drawing]:
    if pandas.isna(row["value"]):
        sentence = "All scores are the same: there is no effect size."
        return [_clouds(sets, experiment, sentence, note)]
    sentence = (
        f"d = {signed(row['value'])}; "
        f"difference {signed(row['numerator'], 3)}; {p_text(row['p_value'])} with every text with "
        f"an image as a unit, {p_text(row['p_value_words'])} with words as units."
    )
    drawings = [_clouds(sets, experiment, sentence, note)]
    return drawings if experiment == 3 else [*drawings, _null(sets, experiment, n, note)]


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


def _null(sets, experiment: int, n: int, note: str) -> Drawing:
    """Draw differences of relabelled target words, and the observed one."""
    result = sets.grounded(experiment)
    x, y = (
        np.array(list(_word_means(scores, sets.words[target]).values()))
        for scores, target in ((result.x_scores, "X"), (result.y_scores, "Y"))
    )
    drawn = inference.relabelled_differences(x, y, n, rng=0)
    observed = x.mean() - y.mean()
    reach = 1.1 * max(np.abs(drawn).max(), abs(observed), 1e-6)
    null = histogram(drawn, np.linspace(-reach, reach, 31))
    share_above = float((drawn >= observed).mean())
    marks = [
        null | {"label": "target words relabelled", "group": 2},
        {"kind": "rule", "x": [observed], "y": [], "label": "this test", "group": 3},
    ]
    sentence = f"{share_above:.1%} of {n:,} relabellings drawn reach this difference."
    return Drawing(
        sentence, marks, "difference of mean s", "share", (-reach, reach),
        (0, 1.1 * max(null["y"])),
        "A histogram of relabelled differences, and an upright line at the observed one.",
        note=note, height=190,
    )  # fmt: skip


# Shared


def _intervals(rows: pandas.DataFrame, low: str, high: str, decimals: int = 2) -> list[str]:
    return [
        f"{signed(a, decimals)} to {signed(b, decimals)}"
        for a, b in zip(rows[low], rows[high], strict=True)
    ]


def _note(scores: pandas.DataFrame) -> str:
    planted = "profile" in scores and (scores["profile"] == "planted").all()
    return "planted world" if planted else ""


def _finished(figure, scores: pandas.DataFrame):
    """Close a figure; it says so if its scores are of the planted world."""
    return marked(figure, _note(scores))


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


def worlds_sentence(verdict: pandas.DataFrame) -> str:
    """Return which questions the experiments answer, from :func:`worlds_table`."""
    parts = []
    for question, rows in verdict.groupby("question", sort=False):
        apart = rows.loc[rows["all tests apart"], "model"].tolist()
        failed = rows.loc[~rows["all tests apart"], "model"].tolist()
        said = f"parts the two worlds on every test for {', '.join(apart)}" if apart else ""
        not_said = f"does not for {', '.join(failed)}" if failed else ""
        parts.append(f"- *{question}*: {'; '.join(filter(None, (said, not_said)))}.")
    return "\n".join(parts)


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
