"""Study 1 where the answer is known: figures and tables."""

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas

from biaslib import inference
from biaslib.display import COLOURS, dots, interval_texts, marked, signed, subplots
from biaslib.studies import study1_grounded as study
from companion._check import Check, judge_function
from companion.study1_grounded import MARKS, TINY, profile_of
from plantedworld.inputs.study1_grounded import planted_signs
from plantedworld.studies import study1_grounded as calibration


def with_signs(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return scores of planted tests beside what was planted in the world of each model.

    Parameters
    ----------
    scores
        With *world*, the seed; controls, masked rows and Experiment 3 are left out.

    Returns
    -------
    pandas.DataFrame
        The scores with *sign*, *group*, *size* (the effect size in the planted direction) and
        *right*, whether it is above 0.
    """
    rows = scores[(scores["masking"] == "none") & (scores["experiment"] < 3)]
    worlds = [planted_signs(seed).assign(world=seed) for seed in rows["world"].unique()]
    rows = rows.merge(pandas.concat(worlds), on=["test", "world"]).merge(study.tests(), on="test")
    rows = rows[~rows["control"]]
    size = rows["sign"] * rows["value"]
    return rows.assign(size=size, right=size > 0)


def sign_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often planted tests have the planted sign, and their mean d in its direction.

    One row a model and group, one column a level; all tests count, right or wrong.
    """
    rows = with_signs(scores)
    keys = ["group", "model", "level"]
    found = rows.groupby(keys, sort=False)[["right", "size"]].agg(["sum", "count", "mean"])
    cells = [
        f"{row['right', 'sum']:.0f} of {row['right', 'count']:.0f}; {signed(row['size', 'mean'])}"
        for _, row in found.iterrows()
    ]
    table = pandas.Series(cells, index=found.index).unstack("level", sort=False).reset_index()
    table.insert(0, "model", table.pop("model").map(TINY))
    return table


def miss_table(scores: pandas.DataFrame, group: str = "gender") -> pandas.DataFrame:
    """Return the planted tests of a group whose sign is not the planted one."""
    rows = with_signs(scores)
    rows = rows[~rows["right"] & (rows["group"] == group)]
    return pandas.DataFrame(
        {
            "model": rows["model"].map(TINY),
            "seed of the world": rows["world"],
            "test": rows["test"],
            "level": rows["level"],
            "experiment": rows["experiment"],
            "d in the planted direction": rows["size"],
        }
    )


def null_figure(null: pandas.DataFrame, biased: pandas.DataFrame, experiment: int = 1):
    """Draw effect sizes and differences of means of models without bias, and of one with it.

    ``biased`` are scores of tests on which a bias was planted. Bars are shares of the tests, in
    per cent.
    """
    figure, axes = subplots(1, 2, height=3.2)
    sets = (
        (null[null["experiment"] == experiment], "C0", "nothing planted"),
        (biased[biased["experiment"] == experiment], "C1", "dose 3, planted tests"),
    )
    reach = max(part["numerator"].abs().max() for part, _, _ in sets)
    for each, column, edges, label in (
        (axes[0], "value", np.linspace(-2, 2, 33), "effect size d"),
        (axes[1], "numerator", np.linspace(-reach, reach, 33), "difference of mean s"),
    ):
        for part, colour, name in sets:
            shares = np.full(len(part), 100 / len(part))
            each.hist(
                part[column], edges, weights=shares, color=colour, alpha=0.55, lw=0, label=name
            )
        each.set_xlabel(label)
        each.margins(y=0.3)  # room for the legend above the bars
    axes[0].set_ylabel("share of tests (%)")
    axes[1].legend(frameon=False, fontsize=8.5, loc="upper right")
    return marked(figure, profile_of(null))


def sizes(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how large effect sizes are without any bias, by level and experiment.

    Returns
    -------
    pandas.DataFrame
        *level*, *experiment*; *mean* of the absolute effect size with *low* and *high* (95%, models
        resampled), *q95* and *largest*; root mean squares: *rms*, *numerator_rms*, and *dealt_rms*
        where words are dealt to two equal sets by chance: of n words it is 2 / sqrt(n), whatever
        their scores; *n_models* and *n*.
    """
    rows = scores.assign(size=scores["value"].abs(), dealt=2 / np.sqrt(scores["n_words"]))
    groups = rows.groupby(["level", "experiment"], sort=False)
    table = groups.agg(
        mean=("size", "mean"), rms=("size", _root_mean_square),
        dealt_rms=("dealt", _root_mean_square),
        q95=("size", lambda size: size.quantile(0.95)), largest=("size", "max"),
        numerator_rms=("numerator", _root_mean_square),
        n_models=("world", "nunique"), n=("size", "size"),
    )  # fmt: skip
    table[["low", "high"]] = [calibration.over_models(part, "size") for _, part in groups]
    return table.reset_index()


def _root_mean_square(values: pandas.Series) -> float:
    return float(np.sqrt((values**2).mean()))


def null_table(sizes: pandas.DataFrame) -> pandas.DataFrame:
    """Return the sizes of effects without bias, as a reader sees them."""
    names = {
        "level": "level",
        "experiment": "experiment",
        "mean": "mean |d|",
        "interval": "95% over models",
        "rms": "rms d",
        "dealt_rms": "rms d, words dealt by chance",
        "q95": "95th percentile of |d|",
        "largest": "largest |d|",
        "numerator_rms": "rms numerator",
        "n_models": "models",
        "n": "tests",
    }
    return sizes.assign(interval=interval_texts(sizes))[list(names)].rename(columns=names)


def calibration_figure(tables: Sequence[tuple[str, pandas.DataFrame]]):
    """Draw how often tests reject without bias, with intervals over models: a row a kind of test.

    Parameters
    ----------
    tables
        Names, and the rejections of one p-value each.
    """
    figure, axes = subplots(height=0.62 * len(tables) + 1.5)
    shifts = {level: 0.24 * (1 - number) for number, level in enumerate(study.LEVELS)}
    for place, (_, table) in enumerate(tables):
        for number, (level, shift) in enumerate(shifts.items()):
            rows = table[table["level"] == level]
            heights = place + shift + rows["experiment"].map({1: -0.06, 2: 0.06, 3: 0.0})
            ends = {"value": "share", "low": "model_low", "high": "model_high"}
            rates = {name: 100 * rows[column] for name, column in ends.items()}
            filled, label = rows["experiment"] != 2, level if place == 0 else ""
            dots(axes, heights, rates, COLOURS[number], MARKS[number], label, filled)
    axes.axvline(5, color="0.35", linestyle="--", linewidth=1.2)
    axes.set_yticks(range(len(tables)), [name for name, _ in tables], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("tests called significant in models without bias (%)", fontsize=10)
    axes.set_xlim(-1.5, None)
    axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    return marked(figure)


def calibration_table(tables: Sequence[tuple[str, pandas.DataFrame]]) -> pandas.DataFrame:
    """Return the numbers of :func:`calibration_figure`."""
    rows = pandas.concat([table.assign(name=name) for name, table in tables], ignore_index=True)
    over_models = 100 * rows[["model_low", "model_high"]]
    return pandas.DataFrame(
        {
            "test": rows["name"],
            "level": rows["level"],
            "experiment": rows["experiment"],
            "rejected": rows["rejected"],
            "of": rows["n"],
            "%": 100 * rows["share"],
            "Clopper-Pearson": interval_texts(100 * rows[["low", "high"]], 0),
            "over models": interval_texts(over_models.set_axis(["low", "high"], axis=1), 0),
        }
    )


def share(table: pandas.DataFrame, level: str, experiment: int, column: str | None = None) -> str:
    """Return a rejection rate with its interval over models, for a sentence."""
    rows = table[(table["level"] == level) & (table["experiment"] == experiment)]
    row = rows[rows["units"] == column].iloc[0] if column else rows.iloc[0]
    return f"{row['share']:.0%} ({row['model_low']:.0%} to {row['model_high']:.0%})"


def worlds_figure(answers: pandas.DataFrame, questions: dict[str, str], columns: int = 2):
    """Draw for each question what its number says of a world with yes and one with no.

    Parameters
    ----------
    answers
        *question*, *model*, *answer* (``yes`` or ``no``), *test*, *measure*.
    questions
        Key -> the question in words, in order.
    columns
        Panels beside each other.
    """
    colours = {"yes": "C0", "no": "C1"}
    models = list(dict.fromkeys(answers["model"]))
    lines = -(-len(questions) // columns)
    height = lines * (0.19 * len(models) + 1.0) + 0.4
    figure, axes = subplots(lines, columns, height=height, squeeze=False)
    for each, (question, words) in zip(axes.flat, questions.items(), strict=False):
        rows = answers[answers["question"] == question]
        for answer, mark, shift in (("yes", "o", -0.16), ("no", "s", 0.16)):
            part = rows[rows["answer"] == answer]
            heights = part["model"].map(models.index) + shift
            each.scatter(part["measure"], heights, s=15, color=colours[answer], marker=mark)
        each.axvline(0, color="0.6", linewidth=0.8)
        names = [TINY[model] for model in models]
        each.set_yticks(range(len(models)), names, fontsize=8.5)
        each.set_ylim(len(models) - 0.5, -0.5)
        each.tick_params(axis="x", labelsize=8.5)
        each.set_title("\n".join(textwrap.wrap(words, 46)), fontsize=8.5, loc="left")
    for each in axes.flat[len(questions) :]:
        each.set_axis_off()
    handles = [
        axes.flat[0].scatter([], [], s=15, color=colours[answer], marker=mark, label=label)
        for answer, mark, label in (
            ("yes", "o", "a test where the answer is yes"),
            ("no", "s", "where it is no"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower left", frameon=False, fontsize=9, ncols=2)
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
            {"question": question, "model": TINY[model]}
            | {"measure": part["what"].iloc[0], "yes": yes.mean(), "no": no.mean()}
            | {"tests": len(yes), "all tests apart": bool(apart)}
        )
    return pandas.DataFrame(rows)


def power_table(models: pandas.DataFrame, words: pandas.DataFrame) -> pandas.DataFrame:
    """Return how many planted tests are significant at 5% against each null.

    Parameters
    ----------
    models
        Planted tests with *p_models*.
    words
        Planted tests with *p_random*, at the levels where it was run.

    Returns
    -------
    pandas.DataFrame
        One row a level and experiment.
    """
    keys = ["level", "experiment"]
    found = {
        "null of other models, difference": models.groupby(keys, sort=False)["p_models"],
        "null of other attribute words": words.groupby(keys, sort=False)["p_random"],
    }
    table = pandas.DataFrame({name: part.agg(_found) for name, part in found.items()})
    return table.fillna("not run").reset_index()


def _found(p_values: pandas.Series) -> str:
    return f"{(p_values < 0.05).sum()} of {len(p_values)}"


def encoder_rejections(random_sets: Sequence) -> pandas.DataFrame:
    """Return the same calibration of a real text encoder, from random attribute words.

    A second half of the random sets plays tests without any planted meaning; the first half is the
    null in which the remedy places them.

    Parameters
    ----------
    random_sets
        The second of what :func:`biaslib.studies.text_encoders.against_random` returns.

    Returns
    -------
    pandas.DataFrame
        *test*, *level*, *size* (mean absolute effect size of random sets), *permutation* (share of
        *n_permutation* with p below .05, one-sided), *remedy* (share of *n_remedy*, the second
        half, that the first half calls significant at 5%, two-sided); of both shares the 95%
        interval of Clopper and Pearson, such as *remedy_low* and *remedy_high*.
    """
    rows = []
    for random in random_sets:
        first, second = (np.abs(random.effect_sizes[start::2]) for start in (0, 1))
        larger = (first[:, None] >= second).sum(axis=0)
        row = {
            "test": random.test,
            "level": random.level,
            "size": np.abs(random.effect_sizes).mean(),
        }
        for name, rejected in {
            "permutation": np.asarray(random.p_values) < 0.05,
            "remedy": (1 + larger) / (1 + len(first)) < 0.05,
        }.items():
            interval = inference.proportion_interval(int(rejected.sum()), len(rejected))
            row |= {name: float(rejected.mean()), f"n_{name}": len(rejected)}
            row |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
        rows.append(row)
    return pandas.DataFrame(rows)


def encoder_table(judged: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often tests reject random attribute words in a real encoder, as it is read."""
    sizes = zip(judged["n_permutation"], judged["n_remedy"], strict=True)
    return pandas.DataFrame(
        {
            "test": judged["test"],
            "mean |d|": judged["size"],
            "permutation rejects (%)": _percent(judged, "permutation"),
            "random words reject (%)": _percent(judged, "remedy"),
            "sets judged": [f"{one:,} and {other:,}" for one, other in sizes],
        }
    )


def _percent(rows: pandas.DataFrame, name: str) -> list[str]:
    parts = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [f"{100 * a:.1f} ({100 * b:.1f} to {100 * c:.1f})" for a, b, c in parts]


def check_rate(answer) -> Check:
    """Judge a rejection rate and its standard error with the model as the unit."""
    rng = np.random.default_rng(3)
    n_models, n_tests = 6, 40
    model = np.repeat([f"seed {seed}" for seed in range(n_models)], n_tests)
    worst = np.repeat(rng.uniform(0.02, 0.5, n_models), n_tests)
    p_values = np.where(rng.random(model.size) < worst, 0.01, rng.uniform(0.06, 1, model.size))
    order = rng.permutation(model.size)
    shares = pandas.Series(p_values < 0.05).groupby(model).mean()
    expected = [shares.mean(), shares.std(ddof=1) / np.sqrt(n_models)]
    hint = (
        "two numbers, the share and its standard error: one share a model first; the error is that "
        "of the mean of these shares"
    )
    right = "six models, and not 240 tests, are what the error is over."
    cases = [((p_values[order], model[order]), expected)]
    return judge_function(answer, cases, hint, right=right)
