"""Study 1 where the answer is known: figures and tables."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, signed, subplots
from biaslib.studies import study1_grounded as study
from companion._check import Check, judge_function
from companion.planted_world import NARROW, name_rows
from companion.study1_grounded import TINY
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
    rows = rows.assign(model=rows["model"].map(TINY))
    table = rows[["model", "world", "test", "level", "experiment", "size"]]
    return table.rename(
        columns={"world": "seed of the world", "size": "d in the planted direction"}
    )


def contrast_table(null: pandas.DataFrame, biased: pandas.DataFrame) -> pandas.DataFrame:
    """Return medians of absolute effect sizes and differences in Experiment 1, by kind of model."""
    names = {"value": "median |d|", "numerator": "median |difference of mean s|"}
    rows = [part.query("experiment == 1")[list(names)].abs().median() for part in (null, biased)]
    table = pandas.DataFrame(rows).rename(columns=names).reset_index(drop=True)
    table.insert(0, "models", ["without bias", "dose 3, planted tests"])
    return table


def null_table(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how large effect sizes are without any bias, by level and experiment.

    Root mean squares (rms) stand beside that of words dealt to two equal sets by chance: of n words
    it is 2 / sqrt(n), whatever their scores.
    """
    rows = scores.assign(size=scores["value"].abs(), dealt=2 / np.sqrt(scores["n"]))
    groups = rows.groupby(["level", "experiment"], sort=False)
    squares = groups[["value", "dealt", "numerator"]].agg(lambda part: np.sqrt((part**2).mean()))
    names = ["rms d", "rms d, words dealt by chance", "rms difference of mean s"]
    ends = [calibration.over_models(part, "size") for _, part in groups]
    means = (
        groups["size"]
        .agg(["mean", "max", "size"])
        .set_axis(["mean |d|", "largest |d|", "tests"], axis=1)
    )
    means.insert(
        1, "95% over models", interval_texts(pandas.DataFrame(ends, columns=["low", "high"]))
    )
    return means.join(squares.set_axis(names, axis=1)).reset_index()


def named_rates(
    naive: pandas.DataFrame, by_models: pandas.DataFrame, by_words: pandas.DataFrame
) -> dict[str, pandas.DataFrame]:
    """Return rejections by the name of their test: permutation, exchange and the two other nulls.

    Parameters
    ----------
    naive, by_models, by_words
        Of :func:`plantedworld.studies.study1_grounded.rejections`.
    """
    first = naive[naive["experiment"] < 3]
    rates = {
        f"permutation: {what}": first[first["p"] == column]
        for column, what in calibration.P_VALUES.items()
    }
    exchanged = naive.query("experiment == 3 and p == 'p_value'")
    rates["exchange: attribute words"] = exchanged
    return rates | {"null of other models": by_models, "null of other words": by_words}


def calibration_figure(rates: dict[str, pandas.DataFrame], level: str = "word"):
    """Draw how often tests reject without bias, with intervals over models: a row a kind of test.

    Parameters
    ----------
    rates
        Of :func:`named_rates`.
    level
        Of its rows.
    """
    figure, axes = subplots(height=0.5 * len(rates) + 1.2, width=NARROW)
    ends = {"value": "share", "low": "model_low", "high": "model_high"}
    for place, table in enumerate(rates.values()):
        rows = table[table["level"] == level]
        heights = place + rows["experiment"].map({1: -0.12, 2: 0.12, 3: 0.0})
        shares = {name: 100 * rows[column] for name, column in ends.items()}
        dots(axes, heights, shares, "C0", filled=rows["experiment"] != 2)
    axes.axvline(5, color="0.35", linestyle="--", linewidth=1.2)
    name_rows(axes, range(len(rates)), rates)
    axes.set_xlabel("tests called significant (%)", fontsize=10)
    return marked(figure)


def calibration_table(rates: dict[str, pandas.DataFrame]) -> pandas.DataFrame:
    """Return the numbers of :func:`calibration_figure`."""
    rows = pandas.concat([table.assign(name=name) for name, table in rates.items()])
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


def worlds_figure(answers: pandas.DataFrame, questions: dict[str, str], title: str):
    """Draw for each question what its number says of a world with yes and one with no.

    Parameters
    ----------
    answers
        *question*, *model*, *answer* (``yes`` or ``no``), *test*, *measure*.
    questions
        Key -> the question in words, in order.
    title
        What they say together.
    """
    colours = {"yes": "C0", "no": "C1"}
    told = worlds_table(answers[answers["model"] != "oracle"])
    models = list(dict.fromkeys(answers["model"]))
    height = len(questions) * (0.2 * len(models) + 1.0) + 0.8
    figure, axes = subplots(len(questions), 1, height=height, width=4.3, squeeze=False)
    figure.suptitle(title, size=11)
    for each, (question, words) in zip(axes.flat, questions.items(), strict=True):
        rows = answers[answers["question"] == question]
        for answer, mark, shift in (("yes", "o", -0.16), ("no", "s", 0.16)):
            part = rows[rows["answer"] == answer]
            heights = part["model"].map(models.index) + shift
            look = {"s": 15, "color": colours[answer], "marker": mark, "label": f"it is {answer}"}
            each.scatter(part["measure"], heights, **look)
        each.axvline(0, color="0.6", linewidth=0.8)
        each.set_yticks(range(len(models)), [TINY[model] for model in models])
        each.set_ylim(len(models) - 0.5, -0.5)
        each.tick_params(labelsize=10.4)
        apart = told.loc[told["question"] == question, "all tests apart"]
        words += f"\n{apart.sum()} of {len(apart)} models tell yes from no"
        each.set_title(words, fontsize=10.4, loc="right")
    place = {"loc": "outside lower left", "frameon": False, "ncols": 2, "fontsize": 10.4}
    known = axes.flat[0].get_legend_handles_labels()
    figure.legend(*known, title="planted world: a test where", **place)
    return figure


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


def apart_table(worlds: pandas.DataFrame) -> pandas.DataFrame:
    """Return for each number whose two worlds lie apart, of :func:`worlds_table`."""
    apart = worlds[worlds["all tests apart"]].groupby("measure")["model"].agg(", ".join)
    asked = worlds.groupby("measure", sort=False)["model"].nunique().rename("models asked")
    table = pandas.DataFrame(asked).join(apart.rename("tells the worlds apart for"))
    return table.fillna("none").reset_index()


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
    counts = {
        name: part.agg(lambda p_values: f"{(p_values < 0.05).sum()} of {len(p_values)}")
        for name, part in found.items()
    }
    return pandas.DataFrame(counts).fillna("not run").reset_index()


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
