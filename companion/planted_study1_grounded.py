"""Study 1 where the answer is known: figures, tables and sentences of the verdict."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib.display import COLOURS, counted, dots, interval_texts, marked, signed, subplots
from biaslib.studies import study1_grounded as study
from companion._check import Check, judge_function
from companion.study1_grounded import MARKS, TINY, listed, profile_of
from plantedworld import trial
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


def control_sentence(seeds: Sequence[int]) -> str:
    """Return on which tests nothing is planted in the worlds of some seeds, and on how many is.

    Examples
    --------
    >>> print(control_sentence([0]))  # doctest: +NORMALIZE_WHITESPACE
    In each world nothing is planted on one pair of word lists (C8 and C13 in the world of seed 0),
    and nothing by tone on occupations (occupation-race); the tests on these words serve as
    controls. For the 10 other tests of a world the planted direction is known.
    """
    signs = pandas.concat([planted_signs(seed).assign(world=seed) for seed in seeds])
    free = signs[signs["control"]]
    always = [test for test, rows in free.groupby("test") if len(rows) == len(seeds)]
    by_tone = [test for test in always if test.startswith("occupation")]
    of_pair = free[~free["test"].isin(by_tone)].groupby("world")["test"].agg(list)
    pairs = "; ".join(f"{listed(names)} in the world of seed {at}" for at, names in of_pair.items())
    planted = (~signs["control"]).groupby(signs["world"]).sum()
    return (
        f"In each world nothing is planted on one pair of word lists ({pairs}), and nothing by "
        f"tone on occupations ({listed(by_tone)}); the tests on these words serve as controls. For "
        f"the {listed([str(n) for n in planted.unique()])} other tests of a world the planted "
        "direction is known."
    )


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


def sign_sentence(scores: pandas.DataFrame) -> str:
    """Return how often the signs are right, what a case is, and where the wrong ones are listed."""
    rows = with_signs(scores)
    parts = [
        f"on {group} in {part['right'].sum()} of {len(part)} cases, with a mean d of "
        f"{signed(part['size'].mean())} in the planted direction"
        for group, part in rows.groupby("group", sort=False)
    ]
    missed = (~rows["right"] & (rows["group"] == "gender")).sum()
    misses = f" The folded table lists the {missed} wrong ones on gender." if missed else ""
    return (
        f"The sign is right {'; '.join(parts)} (emoji tones stand for race here). A case is "
        f"{_case(rows)}.{misses}"
    )


def _case(rows: pandas.DataFrame) -> str:
    """Return what a case is: how many tests, experiments, levels, worlds and models there are."""
    per_world = rows.groupby(["world", "group"])["test"].nunique().unique()
    n_tests = counted(per_world[0], "tests") if len(per_world) == 1 else "the tests"
    of_kind = "of either kind" if rows["group"].nunique() == 2 else "of one kind"
    names = {"experiment": "experiments", "level": "levels", "world": "worlds", "model": "models"}
    among = [counted(rows[column].nunique(), things) for column, things in names.items()]
    return f"one of {n_tests} {of_kind} with a planted direction, in one of {listed(among)}"


def sealed_signs() -> str:
    """Return how many of the sealed trial's targets for signs were missed.

    Examples
    --------
    >>> sealed_signs()[:79]
    "Of the sealed trial's 12 targets for signs, which take gender and race together"
    """
    rows = trial.judged()["verdicts"].query("statistic == 'signs'")
    return (
        f"Of the sealed trial's {len(rows)} targets for signs, which take gender and race "
        f"together, {(~rows['reached']).sum()} were missed"
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


def null_table(sizes: pandas.DataFrame) -> pandas.DataFrame:
    """Return the sizes of effects without bias, as a reader sees them."""
    return pandas.DataFrame(
        {
            "level": sizes["level"],
            "experiment": sizes["experiment"],
            "mean |d|": sizes["mean"],
            "95% over models": interval_texts(sizes),
            "rms d": sizes["rms"],
            "rms d, words dealt by chance": sizes["dealt_rms"],
            "95th percentile of |d|": sizes["q95"],
            "largest |d|": sizes["largest"],
            "rms numerator": sizes["numerator_rms"],
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
    import textwrap

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


def worlds_sentence(verdict: pandas.DataFrame) -> str:
    """Return which questions the experiments answer, and for whom, from :func:`worlds_table`."""
    parts = []
    for measure, rows in verdict.groupby("measure", sort=False):
        names = rows["model"].replace("oracle", "the oracle")
        apart = names[rows["all tests apart"]].tolist()
        mixed = names[~rows["all tests apart"]].tolist()
        question, number = measure.split("? ")
        if not apart:
            said = "for no model does it tell the two worlds apart"
        elif not mixed:
            said = "for every model, each test is higher where the answer is yes"
        else:
            said = (
                f"each test is higher where the answer is yes for {listed(apart)}; for "
                f"{listed(mixed)} the two worlds overlap"
            )
        parts.append(f"- *{question}?* {number}: {said}.")
    return "\n".join(parts)


def worlds_summary(verdict: pandas.DataFrame) -> str:
    """Return for how many models each number tells the worlds with yes from those with no.

    Parameters
    ----------
    verdict
        Of :func:`worlds_table`, with all questions of
        :data:`plantedworld.studies.study1_grounded.QUESTIONS`.
    """
    told = {question: apart_share(verdict, question) for question in calibration.QUESTIONS}
    exact = verdict[(verdict["question"] == "3: pictures") & (verdict["model"] == "oracle")]
    turned = (
        " (and the wrong way round for the oracle)" if (exact["yes"] < exact["no"]).any() else ""
    )
    later = verdict[verdict["question"].isin(["2: d", "3: pictures", "3: masks"])]
    shares = later.groupby("question")["all tests apart"].mean()
    lead = "No number" if (shares < 0.5).all() else "Not every number"
    return (
        "Whether there is a bias at all, the effect size of Experiment 1 tells for "
        f"{told['1: d']}, and the difference of means for {told['1: numerator']}. {lead} of "
        "the paper answers the second and third question in these worlds: Experiment 1 less "
        f"Experiment 2 separates the worlds for {told['2: d']}, the exchange of pictures "
        f"for {told['3: pictures']}{turned}, hiding people or words for {told['3: masks']} (the "
        "oracle is not asked). The same text with and without its picture separates them for "
        f"{told['2: picture, d']} by d and {told['2: picture, numerator']} by the difference of "
        "means."
    )


def apart_share(verdict: pandas.DataFrame, question: str) -> str:
    """Return for how many models a number tells the worlds of its question apart.

    The oracle is no model, and is named beside the count.

    >>> rows = {"question": "1", "model": ["oracle", "tiny-LXMERT"], "all tests apart": [True, 0]}
    >>> apart_share(pandas.DataFrame(rows), "1")
    '0 of 1 models (and for the oracle)'
    """
    models, oracle = _by_kind(verdict, question)
    also = " (and for the oracle)" if oracle["all tests apart"].any() else ""
    return f"{int(models['all tests apart'].sum())} of {len(models)} models{also}"


def _by_kind(verdict: pandas.DataFrame, question: str) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    rows = verdict[verdict["question"] == question]
    is_oracle = rows["model"] == "oracle"
    return rows[~is_oracle], rows[is_oracle]


def comparison_sentence(verdict: pandas.DataFrame) -> str:
    """Return what Experiment 2, compared with 1, says of help in worlds with help and without.

    Parameters
    ----------
    verdict
        Of :func:`worlds_table`.
    """
    models, _ = _by_kind(verdict, "2: d")
    helped = models[models["yes"] > 0]
    without = models.loc[models["yes"] <= 0, "model"]
    both = helped[helped["no"] > 0]
    parts = []
    if len(without):
        show = "show" if len(without) > 1 else "shows"
        parts.append(
            f"{listed(without)} {show} no help on average even where pictures show all there is to "
            "know"
        )
    parts += [
        f"{row.model} shows help in both worlds ({signed(row.yes, 3)} where pictures help, "
        f"{signed(row.no, 3)} where they do not)"
        for row in both.itertuples()
    ]
    if not parts:
        return ""
    evidence = "neither outcome of" if len(parts) > 1 else "one outcome of"
    verb = "is evidence" if len(parts) > 1 else "is no evidence"
    return f"So {evidence} comparing Experiments 1 and 2 {verb}: {', and '.join(parts)}."


def oracle_sentence(verdict: pandas.DataFrame) -> str:
    """Return whether Experiment 3 goes the wrong way for the oracle, which makes no error.

    Parameters
    ----------
    verdict
        Of :func:`worlds_table`.
    """
    _, oracle = _by_kind(verdict, "3: pictures")
    wrong = oracle[oracle["yes"] < oracle["no"]]
    return " ".join(
        "Even without any error Experiment 3 can go the wrong way: for the oracle its mean is "
        f"{signed(row.yes, 3)} where pictures carry the bias and {signed(row.no, 3)} where they do "
        "not."
        for row in wrong.itertuples()
    )


def rejects_too_often(rates: pandas.DataFrame, alpha: float = 0.05) -> str:
    """Return at which levels a test of models without bias rejects more often than it may.

    Parameters
    ----------
    rates
        Rejections of one p-value and experiment, as of
        :func:`plantedworld.studies.study1_grounded.rejections`.
    alpha
        What was promised.
    """
    above = rates[rates["model_low"] > alpha]
    if above.empty:
        return f"at no level is its rejection rate clearly above {alpha:.0%}"
    levels = listed([f"{row.level} ({row.share:.0%})" for row in above.itertuples()])
    noun = "level" if len(above) == 1 else "levels"
    return f"it rejects more often than {alpha:.0%} at the {noun} {levels}"


def against_nominal(rates: pandas.DataFrame, level: str, experiment: int = 1) -> str:
    """Return a rejection rate with its interval, and whether the interval holds 5%.

    >>> rates = pandas.DataFrame({"level": ["word"], "experiment": [1], "share": [0.2]})
    >>> against_nominal(rates.assign(model_low=0.1, model_high=0.3), "word")
    '20% (10% to 30%, which excludes 5%)'
    """
    row = rates[(rates["level"] == level) & (rates["experiment"] == experiment)].iloc[0]
    inside = row["model_low"] <= 0.05 <= row["model_high"]
    held = "includes" if inside else "excludes"
    return f"{share(rates, level, experiment)[:-1]}, which {held} 5%)"


def other_rates(models: pandas.DataFrame, words: pandas.DataFrame) -> str:
    """Return how often the two nulls reject beyond Experiment 1 at word level, for a sentence.

    Parameters
    ----------
    models, words
        Rejections against other models, by the difference of means, and against other words at
        word level, as of :func:`plantedworld.studies.study1_grounded.rejections`.
    """
    others = models[(models["level"] != "word") | (models["experiment"] != 1)]["share"]
    second = words[words["experiment"] == 2].iloc[0]
    count = "none" if second["rejected"] == 0 else f"{second['rejected']:.0f}"
    strict = second["high"] < 0.05
    said = ", so that this null is too strict there" if strict else ""
    return (
        f"The other levels and Experiment 2 lie between {others.min():.1%} and {others.max():.1%} "
        "against other models (difference of means); against other words Experiment 2 rejects "
        f"{count} of {second['n']:.0f}{said}."
    )


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
