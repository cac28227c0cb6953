"""Figures, tables, the panel and the checks of the chapter on grounded association tests.

Below them is the study as the released code of Ross, Katz and Barbu (2021) runs it. States,
lengths, masks and regions are those of :mod:`biaslib.models.study1_as_released`, the statistics
those here; :func:`biaslib.published.released_differences` lists what differs from the paper. File
and line are of candacelax/bias-in-vision-and-language, commit 1622980.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from biaslib import inference, published, runtime, stimuli
from biaslib.display import (
    Figure,
    Folded,
    Table,
    fold,
    p_text,
    problem_table,
    signed,
    subplots,
)
from biaslib.display import table as table_of
from biaslib.metrics.association import association
from biaslib.metrics.grounded import GroundedResult
from biaslib.models import study1_as_released as released
from biaslib.studies import study1_grounded as study
from biaslib.studies.scores import described_test, tidy
from companion._check import (
    SAMPLED,
    Check,
    effect_step,
    items_of,
    judge_function,
    judge_steps,
    values_of,
)
from companion._drawing import Drawing, histogram
from companion._explorer import Panel
from companion._shared import LEVEL, emoji_on_white, of_the_run, undecided
from companion._shared import TESTS as TESTS

NAMES = {
    "visualbert": "VisualBERT",
    "vilbert": "ViLBERT",
    "lxmert": "LXMERT",
    "vl-bert": "VL-BERT",
    "vilt": "ViLT",
    "bert": "BERT",
    "oracle": "perfect model",
}
TINY = NAMES | {name: f"tiny-{NAMES[name]}" for name in (*study.MODELS, "bert")}
"""Names of the models of the planted world, which are no released ones."""

NOTES = {"planted": "planted world", "taste": runtime.TASTE}
"""What is said of numbers that are of no study of a paper, by their profile."""

LEVELS = {"word": "W", "sentence": "S", "contextual": "C"}
LETTERS = {letter: level for level, letter in LEVELS.items()}
PAPERS = "_paper"
"""What columns of the paper's own test end with."""

STARS = {"": "*", PAPERS: "†"}
"""Marks of p below .05: a star is for the test that rejects no more often than it says."""


# The six sets

SHOWN_SETS = {
    "X": ("man", "1f468"),
    "Ax": ("lawyer", "1f468-200d-2696-fe0f"),
    "Bx": ("teacher", "1f468-200d-1f3eb"),
    "Y": ("woman", "1f469"),
    "Ay": ("lawyer", "1f469-200d-2696-fe0f"),
    "By": ("teacher", "1f469-200d-1f3eb"),
}
"""A word of each set, and the code point of an emoji that stands in for its picture."""

OWN = [("X", "Ax", "-"), ("Y", "Ay", "-")]
COMPARED = {
    "Experiment 1\nall pictures": [*OWN, ("X", "Ay", "-"), ("Y", "Ax", "-")],
    "Experiment 2\nown group's": OWN,
    "Experiment 3\nexchanged": [*OWN, ("X", "Ay", "--"), ("Y", "Ax", "--")],
}
"""Which targets are compared with which attributes, and the line of the arrow."""

PLACES_OF_SETS = {
    "X": (0.6, 1.0),
    "Y": (0.6, 0.0),
    "Ax": (2.85, 1.0),
    "Ay": (2.85, 0.0),
    "Bx": (5.0, 1.0),
    "By": (5.0, 0.0),
}


def six_sets_figure():
    """Draw a word with its picture for each of the six sets, and what each experiment compares."""
    figure, axes = subplots(3, 3, height=4.0, width=3.4, height_ratios=[1, 1, 0.9])
    figure.set_facecolor("white")
    for place, (name, (word, code)) in zip(axes.flat, SHOWN_SETS.items(), strict=False):
        place.imshow(emoji_on_white(code), interpolation="lanczos")
        place.set(xticks=(), yticks=())
        place.set_title(f"{name}: {word}", fontsize=10)
        place.spines[:].set(visible=True, color=_colour(name), linewidth=1.6)
    for place, (title, arrows) in zip(axes[2], COMPARED.items(), strict=True):
        place.set_title(title, fontsize=8.5)
        _draw_arrows(place, arrows)
    return figure


def _colour(name: str) -> str:
    return "C0" if name in ("X", "Ax", "Bx") else "C1"


def _draw_arrows(axes, arrows: Sequence[tuple[str, str, str]]) -> None:
    """Draw the six sets as boxes, and arrows from target sets to attribute sets."""
    axes.axis("off")
    axes.set(xlim=(0, 6), ylim=(-0.5, 1.5))
    for name, (x, y) in PLACES_OF_SETS.items():
        box = {"boxstyle": "round,pad=0.3", "facecolor": "none", "edgecolor": _colour(name)}
        box["lw"] = 1.4
        axes.text(x, y, name, ha="center", va="center", fontsize=8.5, bbox=box, zorder=3)
    for target, attribute, line in arrows:
        shift = 0.06 if target == "X" else -0.06  # two arrows at one box stay apart
        start, end = (PLACES_OF_SETS[name][1] + shift for name in (target, attribute))
        arrow = {"arrowstyle": "->", "color": _colour(target), "lw": 1.6, "ls": line}
        axes.annotate("", (2.35, end), (1.1, start), arrowprops=arrow)


def set_table(name: str) -> pandas.DataFrame:
    """Return the six sets of a test: what they hold, and whom their pictures show."""
    test = stimuli.association_test(name)
    rows = []
    for key in study.SETS:
        group = key if key in "XY" else key[1].upper()
        people = test.labels[group].removeprefix("names of ")
        rows.append((key, test.labels[key[0]], people, len(getattr(test, key[0]))))
    return pandas.DataFrame(rows, columns=["set", "words", "pictures of", "n words"])


# What is missing


def missing_tables(inputs: study.Inputs) -> list[Table]:
    """Return what became of the tests that were asked for; nothing where nothing can be missing."""
    if inputs.asked.empty:
        return []
    left = "Images left of all in every set, and the levels at which each test is run"
    return [
        table_of(asked_table(inputs.asked), "Tests asked for, and what became of each level"),
        table_of(problem_table(inputs.problems), "What is wrong with the files"),
        table_of(left_table(inputs.left), left, folded=True),
    ]


def asked_table(asked: pandas.DataFrame) -> pandas.DataFrame:
    """Return what became of every test that was asked for, level by level."""
    cells = asked.groupby(["source", "test", "level"], sort=False)["outcome"].agg("; ".join)
    wide = cells.unstack("level").reindex(columns=list(LEVELS)).rename(columns=LEVELS)
    wide = _in_order(wide.reset_index().rename_axis(columns=None))
    return wide.sort_values("source", kind="stable")


def _in_order(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return rows in the paper's order of tests."""
    place = {name: at for at, name in enumerate(study.tests()["test"])}
    return table.sort_values("test", key=lambda tests: tests.map(place), kind="stable")


def left_table(left: pandas.DataFrame) -> pandas.DataFrame:
    """Return images left, of all, in the sets of every file, and the levels at which it is run."""
    counts = [f"{row.images_left}/{row.n_images}" for row in left.itertuples()]
    keys = ["source", "test", "file", "run"]
    wide = left.assign(cell=counts).pivot(index=keys, columns="set", values="cell")
    wide = wide.reindex(columns=list(study.SETS)).fillna("none").reset_index()
    return wide[["source", "test", "file", *study.SETS, "run"]].rename(columns={"run": "run at"})


# Tables of scores


def score_table(scores: pandas.DataFrame, of: str = "") -> pandas.DataFrame:
    """Return every effect size for looking one up: a row a test, level and run, a column a model.

    A star where p is below .05; in brackets where the bounds of p leave that open.

    Parameters
    ----------
    scores
        Of :func:`biaslib.studies.study1_grounded.run` or of :func:`run_as_released`, with *domain*.
    of
        Whose p: that with words as units, or of :data:`PAPERS`, marked by a dagger.
    """
    whose = scores["statistic"].where(scores["experiment"] == 3, "").str.partition(" of ")[2]
    runs = _runs(scores) + whose.map(lambda targets: f", {targets}" if targets else "")
    runs += np.where(scores["domain"] == "in domain", ", in domain", "")
    names = names_of(scores)
    rows = zip(scores["value"], _bounded(scores, of).to_numpy(), strict=True)
    cells = scores.assign(
        run=runs,
        level=scores["level"].map(LEVELS),
        model=scores["model"].map(names),
        cell=["–" if pandas.isna(d) else signed(d) + _star(*p, STARS[of]) for d, p in rows],
    )
    by = ["test", "level", "run"]
    wide = cells.pivot_table(index=by, columns="model", values="cell", aggfunc="first", sort=False)
    return _in_order(wide[[name for name in names.values() if name in wide]].reset_index())


MASKED = {"none": "", "words": ", words hidden", "persons": ", people hidden"}


def _runs(scores: pandas.DataFrame) -> pandas.Series:
    """Return what each row is a run of: an experiment, and what is hidden."""
    return "Experiment " + scores["experiment"].astype(str) + scores["masking"].map(MASKED)


def _bounded(rows: pandas.DataFrame, of: str = "") -> pandas.DataFrame:
    """Return *p*, *low* and *high* of a test: p itself where there are no bounds."""
    p = rows[f"p_value{of}"]
    low, high = (rows.get(f"p_{end}{of}", p).fillna(p) for end in ("low", "high"))
    return pandas.DataFrame({"p": p, "low": low, "high": high})


def _star(p_value: float, low: float, high: float, star: str) -> str:
    if undecided(low, high):
        return f"({star})"
    return star if p_value < LEVEL else ""


def stars(scores: pandas.DataFrame, of: str = "") -> str:
    """Return what the marks of :func:`score_table` mean.

    >>> stars(pandas.DataFrame({"p_value": [0.01]}))
    '* p < .05, words as units'
    """
    tests = {"": "words as units", PAPERS: "the paper's own test, which rejects too often"}
    parts = [f"{STARS[of]} p < .05, {tests[of]}"]
    if any(undecided(low, high) for _, low, high in _bounded(scores, of).to_numpy()):
        parts.append(f"({STARS[of]}) p is known by bounds only, which lie on both sides of .05")
    return "; ".join(parts)


def stricter_counts(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return how many tests stay significant as more is asked of them.

    By the paper's own test, which Experiment 3 does not have; with words as units; and these after
    Holm's correction over all tests of the row.

    Parameters
    ----------
    scores
        Of :func:`biaslib.studies.study1_grounded.run`, with *p_value* and *p_value_paper*.
        Where bounds of p leave open whether it is below .05, a count is from how many to how many.
    """
    rows = []
    for run, part in scores.groupby(_runs(scores), sort=False):
        papers, words = (_bounded(part, of).dropna() for of in (PAPERS, ""))
        holm = words.apply(lambda p: inference.adjust(p.to_numpy(), "holm"))
        counts = map(_significant, (papers, words, holm))
        rows.append((run, len(part), *counts))
    names = ["p < .05, the paper's own test", "words as units", "words, and Holm"]
    return pandas.DataFrame(rows, columns=["run", "tests", *names])


def _significant(bounded: pandas.DataFrame) -> int | str:
    """Return how many p-values with these bounds are below .05; from how many to how many."""
    if bounded.empty:
        return "none"
    least, most = (int((bounded[end] < LEVEL).sum()) for end in ("high", "low"))
    return least if least == most else f"{least} to {most}"


def mean_sizes(looked_up: pandas.DataFrame, alone: pandas.DataFrame) -> pandas.DataFrame:
    """Return the mean absolute effect size by run and domain, and of text alone, with n."""
    parts = looked_up.assign(run=_runs(looked_up), size=looked_up["value"].abs())
    means = parts.groupby(["run", "domain"], sort=False)["size"].agg(["mean", "size"])
    text = ("Experiment 1, text alone", "no pictures", alone["value"].abs().mean(), len(alone))
    rows = [*means.reset_index().itertuples(index=False, name=None), text]
    return pandas.DataFrame(rows, columns=["run", "pictures", "mean |d|", "n"])


def results(
    every: pandas.DataFrame,
    looked_up: pandas.DataFrame,
    alone: pandas.DataFrame,
    *figures: Figure,
) -> Folded:
    """Return what a run has to show, figures and tables, behind one line.

    Parameters
    ----------
    every
        Scores of the three experiments out of domain, and those with an input hidden.
    looked_up
        *every*, and those in domain.
    alone
        Of the model that reads the same texts without pictures.
    *figures
        Of the same scores.
    """
    stricter = (
        "Significant tests, all models and levels, under stricter rules. The paper's own test "
        "rejects too often, and is none of Experiment 3; by words Experiment 2 has, with sets of "
        f"equal size, the p of Experiment 1.{mark(every)}"
    )
    means = f"Mean absolute effect size by experiment, and of text alone.{mark(every)}"
    tables = [
        table_of(stricter_counts(every), stricter),
        table_of(mean_sizes(looked_up, alone), means),
    ]
    return of_the_run(profile_of(every), *figures, *tables)


def released_tables(scores: pandas.DataFrame, *inputs: study.Inputs) -> list[Table]:
    """Return the scores as the released code computes them, and in ``paper`` what is wrong.

    Parameters
    ----------
    scores
        Of :func:`run_as_released`; empty where it was not run.
    *inputs
        What was read for it.
    """
    if scores.empty:
        return []
    caption = "Effect sizes as the released code computes them; "
    caption += f"{stars(scores, PAPERS)}.{mark(scores)}"
    shown = [table_of(score_table(scores, PAPERS), caption, folded=True)]
    if profile_of(scores) != "planted":
        wrong = "What is wrong with images and region files of this run"
        problems = pandas.concat([given.problems for given in inputs], ignore_index=True)
        shown.append(table_of(problem_table(problems), wrong))
    return shown


def differences_table() -> pandas.DataFrame:
    """Return where paper and released code of study 1 differ, and what each variant does.

    In brackets, what :func:`run_as_released` does where that is not the same as the code.
    """
    table = published.released_differences()
    here = table.pop("released_variant").str.removeprefix("the same").str.lstrip(",: ")
    here = here.mask([b in a for a, b in zip(table["code"], here, strict=True)], "")
    table["code"] += here.where(here == "", " [here: " + here + "]")
    table["model"] = table["model"].map(lambda name: NAMES.get(name, name))
    places = table["where"].str.removeprefix("1622980 ")
    table["where"] = places.str.replace("/", "/\N{ZERO WIDTH SPACE}")
    named = {"subject": "what", "paper": "the paper", "code": "the released code"}
    return table.rename(columns=named | {"paper_variant": "the variant paper"})


def profile_of(scores: pandas.DataFrame) -> str:
    """Return the profile of which all scores are; that of no scores is ``paper``."""
    return scores["profile"].iloc[0] if len(scores) and "profile" in scores else "paper"


def mark(scores: pandas.DataFrame) -> str:
    """Return what a caption ends with: whether its scores are planted, or of a taste."""
    note = NOTES.get(profile_of(scores), "")
    return f" {note[0].upper()}{note[1:]}." if note else ""


def names_of(scores: pandas.DataFrame) -> dict[str, str]:
    """Return how models are called where these scores stand: those of the planted world tiny."""
    return TINY if profile_of(scores) == "planted" else NAMES


# The panels


def printed_panel() -> Panel:
    """Return the panel of Tables 3 and 4: a model's tests at a level, in Experiments 1 and 2.

    Examples
    --------
    >>> printed_panel().sentence("VL-BERT", "word").partition(":")[0]
    '3 of 12 results of VL-BERT at word level change sign'
    """
    sizes = pandas.concat(published.table("ross2021", n) for n in (3, 4))
    sizes = sizes[sizes["test"] != "C8"]  # Printed alike in both tables.
    order = list(dict.fromkeys(sizes["test"]))[::-1]
    cases = {}
    for (model, letter), rows in sizes.groupby(["model", "level"], sort=False):
        wide = rows.pivot(index="test", columns="experiment", values="effect_size").reindex(order)
        cases[model, LETTERS[letter]] = _moves(wide.dropna(), model, LETTERS[letter])
    models, levels = (list(dict.fromkeys(column)) for column in zip(*cases, strict=True))
    return Panel("Pictures and single results", {"Model": models, "Level": levels}, cases)


def _moves(wide: pandas.DataFrame, model: str, level: str) -> Drawing:
    """Draw the effect sizes of tests with any pictures and with those of the own group."""
    heights = list(range(len(wide)))
    rows = zip(heights, wide[1], wide[2], strict=True)
    lines = [{"kind": "line", "x": ends, "y": [y, y], "thin": True} for y, *ends in rows]
    marks = [
        {"kind": "dots", "x": wide[k], "y": heights, "group": k - 1, "names": [name] * len(wide)}
        | {"label": name}
        for k, name in ((1, "any pictures (Experiment 1)"), (2, "those of the own group (2)"))
    ]
    turned = (wide[1] * wide[2] < 0).sum()
    return Drawing(
        f"{turned} of {len(wide)} results of {model} at {level} level change sign: their mean goes "
        f"from {signed(wide[1].mean())} to {signed(wide[2].mean())}.",
        [{"kind": "rule", "x": [0]}, *lines, *marks],
        "effect size d, as printed",
        "",
        (-2.1, 2.1),
        (-0.7, len(wide) - 0.3),
        "A row a test with two dots, joined by a line.",
        table=wide.add_prefix("Experiment ").iloc[::-1].reset_index(),
        y_ticks=dict(enumerate(wide.index)),
        height=90 + 22 * len(wide),
    )


SINGLE = ("occupation-gender", "C6", "C8", "ABW")
"""The tests of the panel."""


def single_tests(encoders: Mapping, inputs: study.Inputs, scores: pandas.DataFrame) -> Folded:
    """Return the panel of :data:`SINGLE`, folded."""
    shown = {}
    for name, encoder in encoders.items():
        kept = [sets for test in SINGLE for sets in inputs[name] if sets.test == test]
        shown[name] = study.embed(encoder, kept)
    line = "Look at single tests: the score of each word, the null, and p"
    return fold(line, panel(shown, scores))


def panel(embedded: dict[str, Sequence[study.EmbeddedSets]], scores: pandas.DataFrame) -> Panel:
    """Return the panel: test, model, level and experiment; two clouds, effect size, null and p.

    Parameters
    ----------
    embedded
        Stimuli that each model has embedded, without masks; the first is shown first.
    scores
        Those of the same models, as of :func:`biaslib.studies.study1_grounded.run`.
    """
    rows = scores[scores["masking"] == "none"].set_index(["model", "test", "level", "experiment"])
    note = NOTES.get(profile_of(scores), "")
    cases, names = {}, names_of(scores)
    for model, every in embedded.items():
        for sets, experiment in itertools.product(every, study.EXPERIMENTS):
            row = rows.loc[model, sets.test, sets.level, experiment]
            drawings = [_clouds(sets, experiment, _sentence(row, experiment), note)]
            if pandas.notna(row["value"]) and pandas.notna(row["p_value"]):
                drawings.append(_null(sets, experiment, row, note))
            cases[sets.test, names[model], sets.level, f"Experiment {experiment}"] = drawings
    labels = ("Test", "Model", "Level", "Experiment")
    values = (list(dict.fromkeys(column)) for column in zip(*cases, strict=True))
    return Panel("Grounded association tests", dict(zip(labels, values, strict=True)), cases)


def _sentence(row: pandas.Series, experiment: int) -> str:
    if pandas.isna(row["value"]):
        return "All scores are the same: there is no effect size."
    p = f"{p_text(row['p_value'])} with words as units"
    if experiment != 3:
        p += f", {p_text(row['p_value_paper'])} by the paper's own test"
    return f"d = {signed(row['value'])}; difference {signed(row['numerator'], 3)}; {p}."


def _clouds(sets, experiment: int, sentence: str, note: str) -> Drawing:
    """Draw s of every target word, X above Y; in Experiment 3 with the other attributes too."""
    labels = stimuli.association_test(sets.test).labels
    result = sets.grounded(min(experiment, 2))
    rows = [("X", 3, "", result.x_scores), ("Y", 1, "", result.y_scores)]
    if experiment == 3:
        other = ", other attributes"
        rows.insert(1, ("X", 2, other, result.x_other))
        rows.append(("Y", 0, other, result.y_other))
    marks = []
    for group, (target, height, other, scores) in enumerate(rows):
        means = pandas.Series(scores).groupby(sets.words[target], sort=False).mean().tolist()
        dots = {"kind": "dots", "x": means, "y": [height] * len(means), "group": group}
        marks.append(dots | {"label": labels[target] + other})
    reach = 1.15 * max(1e-6, *(abs(x) for dots in marks for x in dots["x"]))
    return Drawing(
        sentence,
        marks,
        "s(w, A, B), mean of each target word",
        "",
        (-reach, reach),
        (-0.7, 3.7),
        f"Rows of dots, one a target word of {labels['X']} and {labels['Y']}.",
        note=note,
        y_ticks={height: target for target, height, *_ in rows},
        height=130,
    )


def _null(sets, experiment: int, row: pandas.Series, note: str) -> Drawing:
    """Draw the computed null with words as units, and where this test stands in it."""
    result = sets.grounded(experiment)
    if experiment == 3:
        given = result, sets.words, sets.images
        observed = inference.exchange_test(*given, rng=row["seed"]).statistic
        values = inference.exchanged_statistics(*given, rng=row["seed"])
        what, how = "half the sum of both absolute shifts", "exchanges of attribute words"
    else:
        observed, values = _relabelled(study.averaged(result, sets.words))
        what, how = "difference of mean s", "relabellings of target words"
    reach = 1.1 * max(np.abs(values).max(), abs(observed), 1e-6)  # all 0 where Ax is Ay
    ends = (0 if experiment == 3 else -reach, reach)
    bars = histogram(values, np.linspace(*ends, 32))
    share = f"the share of {how} at the dashed line or above"
    return Drawing(
        f"With words as units, {p_text(row['p_value'])}: {share}.",
        [
            bars | {"label": how, "group": 2},
            {"kind": "rule", "x": [observed], "y": [], "label": "this test", "group": 3},
        ],
        what,
        "share",
        ends,
        (0, 1.1 * max(bars["y"])),
        "A histogram of the computed null, and an upright line where this test stands.",
        note=note,
        height=130,
    )


def _relabelled(result: GroundedResult) -> tuple[float, np.ndarray]:
    x, y, shift = result.x_scores, result.y_scores, 0.0
    observed = float(x.mean() - y.mean())
    if result.experiment == 2:  # Weighted means of both scores, as in grounded_permutation_test.
        own, other = np.append(x, result.y_other), np.append(result.x_other, y)
        weighted, shift = (len(y) * own + len(x) * other) / len(own), (own - other).mean()
        x, y = np.split(weighted, [len(x)])
    return observed, shift + inference.relabelled_differences(x, y, 200_000, rng=0)


# Checks of exercises


def check_twelve(answer) -> Check:
    """Judge the statistics of Experiments 2 and 3 on several sets of twelve embeddings.

    In some of them the shift of the one word is positive and that of the other negative, so that
    absolute values matter.
    """
    hint = (
        "use 1 and 4 as words, 5 and 10 with men, 7 and 12 with women; Experiment 3 is half the "
        "sum of two absolute values"
    )
    rng, cases = np.random.default_rng(0), []
    for _ in range(6):
        e = {number: rng.normal(size=4) for number in range(1, 13)}
        cases.append(((e,), _second_and_third(*(e[number] for number in (1, 4, 5, 7, 10, 12)))))

    def pair(e):
        numbers = values_of(answer(e))
        return [np.squeeze(each) for each in numbers] if np.iterable(numbers) else numbers

    return judge_function(pair, cases, hint, right="both experiments, by hand.")


def _second_and_third(x, y, ax, ay, bx, by) -> list[float]:
    own_x, own_y = association([x], [ax], [bx])[0], association([y], [ay], [by])[0]
    other_x, other_y = association([x], [ay], [by])[0], association([y], [ax], [bx])[0]
    return [own_x - own_y, 0.5 * (abs(own_x - other_x) + abs(own_y - other_y))]


def check_effect(answer) -> Check:
    """Judge Experiment 2 by hand: the statistic, its effect size, and its p-value of six deals."""
    x, y = np.array([0.20, 0.12]), np.array([0.0, -0.08])
    gap, scores = x.mean() - y.mean(), np.concatenate([x, y])
    sums = {"this is the difference of the sums: d has means": 2 * gap / scores.std(ddof=1)}
    steps = [
        (
            x.sum() - y.sum(),
            "each name's score is its cosine with A less that with B; add those of a set",
            {"this is the difference of the means: the statistic has sums": gap},
        ),
        effect_step(gap, scores, sums),
        (
            1 / 6,
            "in how many ways can two of four be dealt, and how many give as much?",
            {
                "the observed deal is one of them, so that p is never 0": 0,
                "this is two-sided: only deals that favour X with A count": 1 / 3,
                "this counts orders: two hands of two can be dealt in six ways": 1 / 24,
            },
        ),
    ]
    form = "give three numbers: the statistic of Experiment 2, d, p"
    return judge_steps(answer, steps, form, "two names a side never have a smaller p.")


def check_clusters(answer) -> Check:
    """Judge a p-value with words as units, on scores made up for it.

    Words have between two and six items, in no order, so that sums are no means.
    """
    rng = np.random.default_rng(58)
    items, labels, means = [], [], []
    for side, shift in (("x", 0.5), ("y", 0.0)):
        words = np.repeat([f"{side}{i}" for i in range(6)], [2, 6, 3, 5, 4, 6])
        words = rng.permutation(words)
        centre = {word: rng.normal(shift) for word in np.unique(words)}
        scores = np.array([centre[word] for word in words]) + 0.2 * rng.normal(size=len(words))
        items.append(scores)
        labels.append(words)
        means.append(pandas.Series(scores).groupby(words).mean().to_numpy())
    expected = inference.permutation_test(*means).p_value
    hint = "one mean a word, twelve numbers in all, before the test"
    right = "the p-value no longer depends on how many sentences a word has."
    return judge_function(answer, [((*items, *labels), expected)], hint, SAMPLED, right)


def check_verdict(reported, absent) -> Check:
    """Judge which of five results a reader reports, and which as showing no association."""
    if reported is ... or absent is ...:
        return Check(False, "two lists of letters; an empty list is an answer, too")
    reported, absent = (
        {str(item).strip().upper() for item in items_of(letters)} for letters in (reported, absent)
    )
    if absent - {"NONE"}:
        hint = "an interval from −0.90 to 1.00 holds large effects of either sign: nothing is shown"
        return Check(False, hint)
    if "D" in reported:
        return Check(False, "how many random attributes do as well as those of D?")
    hint = "take words as units, correct over all tests, and compare with random attributes last"
    right = "only A is left, and no line of the table shows that there is no association."
    return Check(reported == {"A"}, right if reported == {"A"} else hint)


# The study as its released code runs it

RELEASED_WEIGHTS = {name: reading.checkpoint for name, reading in released.RELEASED.items()}
"""The registered names of the weights that the code points to, by the models of the study.

:meta hide-value:
"""

SAMPLED_ABOVE = 20
"""Targets of X up to which the code means to count every partition (weat_images_union.py:140)."""

SAMPLES = 100_000
"""Of its configurations: one less is drawn, and one is added to both counts (:146)."""


def released_weights(name: str, profile: str | None = None) -> str:
    """Return the registered name of the weights that a model of the study has.

    Examples
    --------
    >>> released_weights("vilbert", "paper"), released_weights("vilbert", "planted")
    ('vilbert-beta', 'vilbert')
    """
    return RELEASED_WEIGHTS[name] if runtime.profile(profile) == "paper" else name


class _Reader:
    """A model that reads as the released code does, with the arguments that the study passes."""

    def __init__(self, model: Any) -> None:
        self.model = released.reader(model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def embed(self, texts, images=None, level="sentence", words=(), mask=None, test_words=()):
        masking = "none" if mask is None else "persons" if mask.persons else "words"
        return self.model.embed(texts, images, level, test_words, masking)


def embed_as_released(
    model: Any,
    every: Sequence[study.GroundedStimuli],
    masking: str = "none",
    store: runtime.Store | None = None,
) -> list[study.EmbeddedSets]:
    """Embed the sets of tests as :func:`biaslib.studies.study1_grounded.embed` does.

    The released code needs all words of a test to find the place of one, and labels to mask.

    Raises
    ------
    CapabilityError
        If the released code does not read the model.
    """
    reader, groups = _Reader(model), {}
    for at, sets in enumerate(every):
        needed = masking != "none" or sets.level == "contextual"
        groups.setdefault(sets.hidden if needed else (), []).append(at)
    embedded = {}
    for words, places in groups.items():
        chosen = [every[at] for at in places]
        done = study.embed(reader, chosen, masking, store=store, test_words=list(words))
        embedded |= dict(zip(places, done, strict=True))
    return [embedded[at] for at in range(len(every))]


def run_as_released(
    models: Mapping[str, Any],
    given: study.Inputs,
    levels: Sequence[str] = study.LEVELS,
    domain: str = study.DOMAINS[0],
    store: runtime.Store | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Score the tests of each model as the code does: tidy scores, with *variant* ``released``.

    With masks it runs Experiment 1 (bias_test.py:270), on sentences; the paper says that the masked
    runs are those of Experiment 2. VisualBERT, whose regions it never masks, has no rows with
    hidden persons.

    Parameters
    ----------
    models
        By name, with the weights of :func:`released_weights`.
    given
        The tests of each, as of :func:`biaslib.studies.study1_grounded.inputs`.
    levels, domain
        Those of the tests, and what the scores say of their images.
    store
        Where embeddings are kept; ``None`` takes the usual one.
    **settings
        As of :func:`score_as_released`.
    """
    tables = []
    for name in [name for name in given if name in models]:
        reader, rows = released.reader(models[name]), []
        for masking in study.MASKINGS:
            if masking == "persons" and not reader.reading.labels:
                continue
            kept = levels if masking == "none" else ["sentence"]
            every = [sets for sets in given[name] if sets.level in kept and sets.level in levels]
            experiments = study.EXPERIMENTS if masking == "none" else (1,)
            embedded = embed_as_released(models[name], every, masking, store)
            cases = list(itertools.product(embedded, experiments))
            rows += score_as_released(cases, **settings)
        labels = {"study": study.STUDY, "model": name, "revision": reader.revision}
        labels |= given.labels | {"images": "with", "variant": "released"}
        tables.append(tidy(rows, **labels, domain=domain))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()


def score_as_released(
    cases: Sequence[tuple[study.EmbeddedSets, int]],
    seed: int = 0,
    p_values: bool = True,
    n_bootstrap: int = 0,
) -> list[dict[str, object]]:
    """Return the rows of scores of some experiments as the released code computes them.

    One row each; of Experiment 3 two, a signed effect size for each target set in place of half the
    sum of absolute values that the paper prints (weat_images_intra_targ.py:180), named in the
    column *statistic*. *p_value_paper* is one-sided and counts texts with an image, as does *n*.

    Parameters
    ----------
    cases
        Sets with an experiment.
    seed
        Of the shuffles, of which the released code has none, and of the resamples.
    p_values
        Whether they are wanted.
    n_bootstrap
        Resamples of pictures for *low_pictures* and *high_pictures*, which the released code does
        not have, as of :func:`biaslib.studies.study1_grounded.score`. Not of Experiment 3.
    """
    scored = [study.defined_result(sets, experiment) for sets, experiment in cases]
    defined = [result for result in scored if result is not None]
    tests = iter(_p_values(defined, seed) if p_values else [{} for _ in defined])
    rows = []
    for (sets, experiment), result in zip(cases, scored, strict=True):
        row = study.described(sets, experiment, seed)
        row |= {"n": row["n_texts"], "p_value_paper": np.nan, "value": np.nan}
        if result is None:
            rows.append(row)
            continue
        row |= next(tests)
        if experiment == 3:
            halves = (("X", result.x_effect), ("Y", result.y_effect))
            rows += [row | {"statistic": f"effect size of {s}", "value": d} for s, d in halves]
            continue
        if n_bootstrap:
            row |= study.interval_of_pictures(sets, experiment, n_bootstrap, seed)
        rows.append(row | {"value": result.effect_size})
    return rows


def _p_values(results: Sequence[GroundedResult], seed: int) -> list[dict[str, Any]]:
    """Return the one-sided p-value of each result over items, ties counted.

    Above 20 targets it is sampled, all tests of one size with the same shuffles; up to 20 it is
    that of all partitions, where the code stops with an error. The longer target set is cut to the
    length of the shorter (weat_images_union.py:97), in Experiment 2 too, where the code stops.
    Experiment 3's is 1 whatever the data, since the sampled statistic is never compared with the
    observed one (weat_images_intra_targ.py:111-139).
    """
    never = {"p_value_paper": 1.0, "p_method_paper": "never evaluated"}
    tests: list[dict[str, Any]] = [never for _ in results]
    sizes = [min(len(result.x_scores), len(result.y_scores)) for result in results]
    for n in set(sizes):
        places = [at for at, size in enumerate(sizes) if size == n and results[at].experiment < 3]
        cut = [(results[at].x_scores[:n], results[at].y_scores[:n]) for at in places]
        if n > SAMPLED_ABOVE and cut:
            tested = _sampled(cut, seed)
        else:
            counted = (inference.permutation_test(x, y, rng=seed) for x, y in cut)
            tested = [described_test(test, "_paper") for test in counted]
        for at, test in zip(places, tested, strict=True):
            tests[at] = test
    return tests


def _sampled(tests: Sequence[tuple[np.ndarray, np.ndarray]], seed: int) -> list[dict[str, Any]]:
    x, y = (np.stack(scores) for scores in zip(*tests, strict=True))
    p_values = inference.permutation_p_values(x, y, n_resamples=SAMPLES, rng=seed)
    rows = []
    for p in p_values:
        drawn = inference.proportion_interval(round(p * SAMPLES) - 1, SAMPLES - 1)
        bounds = {"p_low_paper": drawn.low, "p_high_paper": drawn.high}
        rows.append({"p_value_paper": float(p), **bounds, "p_method_paper": "sampled"})
    return rows
