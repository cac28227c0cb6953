"""Figures, tables, the panel and the checks of the chapter on grounded association tests."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas

from biaslib import inference, published, reproduction, runtime, stimuli
from biaslib.datasets import ross2021
from biaslib.display import (
    COLOURS,
    Figure,
    Folded,
    Table,
    dots,
    fold,
    marked,
    p_text,
    problem_table,
    signed,
    subplots,
)
from biaslib.display import table as table_of
from biaslib.metrics.association import association
from biaslib.studies import study1_grounded as study
from companion._check import SAMPLED, Check, items_of, judge_function, values_of
from companion._drawing import Drawing, steps
from companion._explorer import Panel
from companion._shared import LEVEL, TESTS, emoji_on_white, require_paper, undecided

NAMES = {
    "visualbert": "VisualBERT",
    "vilbert": "ViLBERT",
    "lxmert": "LXMERT",
    "vl-bert": "VL-BERT",
    "bert": "BERT",
    "oracle": "perfect model",
}
TINY = NAMES | {name: f"tiny-{NAMES[name]}" for name in (*study.MODELS, "bert")}
"""Names of the models of the planted world, which are no released ones."""

LEVELS = {"word": "W", "sentence": "S", "contextual": "C"}
LETTERS = {letter: level for level, letter in LEVELS.items()}
MARKS = ("o", "s", "^", "D")
PAPERS = "_paper"
"""What columns of the paper's own test end with."""

STARS = {"": "*", PAPERS: "†"}
"""Marks of p below .05: a star is for the test that rejects no more often than it says."""


# The tests, and the six sets of each


def test_table() -> pandas.DataFrame:
    """Return what the 13 tests compare, and how many Google images Table 1 lists for each."""
    printed = published.table("ross2021", 1).query("source == 'google'").set_index("test")
    rows = []
    for name in study.tests()["test"]:
        labels = stimuli.association_test(name).labels
        targets, attributes = (
            f"{_short(labels[first])} / {_short(labels[second])}" for first, second in ("XY", "AB")
        )
        row = {"test": name, "targets X / Y": targets, "attributes A / B": attributes}
        rows.append(row | {"images": int(printed.at[name, "images"])})
    return pandas.DataFrame(rows)


def _short(label: str) -> str:
    """Return what a set holds without the words that all sets have.

    >>> _short("names of men"), _short("African American names"), _short("words for competence")
    ('men', 'AA', 'competence')
    """
    for long, short in SHORT.items():
        label = label.replace(long, short)
    return label


SHORT = {
    **{"European American names": "EA", "African American names": "AA", "names of ": ""},
    **{"near-antonyms of the ": "opposite of the ", "words of the ": "", "words for ": ""},
    **{"'angry Black woman' stereotype": "stereotype", " words": ""},
    "occupations held mostly by": "jobs of",
}
"""What stands for a longer label, in the order in which they are replaced."""


# The name says what the rows are; it is not a test for pytest to collect.
test_table.__test__ = False

PLACES_OF_SETS = {
    **{"X": (0.6, 1.0), "Y": (0.6, 0.0)},
    **{"Ax": (2.85, 1.0), "Bx": (5.0, 1.0), "Ay": (2.85, 0.0), "By": (5.0, 0.0)},
}


def set_table(name: str) -> pandas.DataFrame:
    """Return the six sets of a test: what they hold, and whom their pictures show."""
    test = stimuli.association_test(name)
    rows = []
    for key in study.SETS:
        group = key if key in "XY" else key[1].upper()
        people = test.labels[group].removeprefix("names of ")
        words = {"words": test.labels[key[0]], "pictures of": people}
        rows.append({"set": key} | words | {"n words": len(getattr(test, key[0]))})
    return pandas.DataFrame(rows)


COMPARED = {
    "Experiment 1\nall pictures": [("X", "xy", "C0"), ("Y", "xy", "C1")],
    "Experiment 2\nthose of the own": [("X", "x", "C0"), ("Y", "y", "C1")],
    "Experiment 3\nown, exchanged": [
        *[("X", "x", "C0"), ("Y", "y", "C1")],
        *[("X", "y", "C0"), ("Y", "x", "C1")],
    ],
}


SHOWN_SETS = {
    **{"X": ("man", "1f468"), "Y": ("woman", "1f469")},
    **{"Ax": ("lawyer", "1f468-200d-2696-fe0f"), "Ay": ("lawyer", "1f469-200d-2696-fe0f")},
    **{"Bx": ("teacher", "1f468-200d-1f3eb"), "By": ("teacher", "1f469-200d-1f3eb")},
}
"""A word of each set, and the code point of an emoji that stands in for its picture."""


def six_sets_figure():
    """Draw a word with its picture for each of the six sets, and what each experiment compares."""
    figure, axes = subplots(3, 3, height=4.6, width=4.3, height_ratios=[1, 1, 0.9])
    figure.set_facecolor("white")
    for place, name in zip(axes.flat, ("X", "Ax", "Bx", "Y", "Ay", "By"), strict=False):
        word, code = SHOWN_SETS[name]
        place.imshow(emoji_on_white(code), interpolation="lanczos")
        place.set(xticks=(), yticks=())
        place.set_title(f"{name}: {word}", fontsize=10)
        colour = "C0" if name in ("X", "Ax", "Bx") else "C1"
        place.spines[:].set(visible=True, color=colour, linewidth=1.6)
    for place, (title, pairs) in zip(axes[2], COMPARED.items(), strict=True):
        _boxes(place)
        place.set_title(title, fontsize=8.5)
        for number, (target, groups, colour) in enumerate(pairs):
            for group in groups:
                _arrow(place, target, group, colour, dashed=number > 1)
    return figure


def _boxes(axes) -> None:
    axes.axis("off")
    axes.set(xlim=(0, 6), ylim=(-0.5, 1.5))
    for key, (x, y) in PLACES_OF_SETS.items():
        colour = "C0" if key in ("X", "Ax", "Bx") else "C1"
        box = {"boxstyle": "round,pad=0.3", "facecolor": "none", "edgecolor": colour, "lw": 1.4}
        axes.text(x, y, key, ha="center", va="center", fontsize=8, bbox=box, zorder=3)


def _arrow(axes, target: str, group: str, colour: str, dashed: bool) -> None:
    """Draw an arrow from a target set to a pair of attribute sets."""
    start, end = PLACES_OF_SETS[target][1], PLACES_OF_SETS[f"A{group}"][1]
    line = {"arrowstyle": "->", "color": colour, "lw": 1.6, "ls": "--" if dashed else "-"}
    shift = 0.06 if target == "X" else -0.06
    axes.annotate("", (2.35, end + shift), (1.1, start + shift), arrowprops=line)


ARCS = {"X": 1.0, "Y": 1.0, "Ax": 0.8, "Ay": 0.6, "Bx": 0.8, "By": 0.6}
"""How far from the centre :func:`circle_figure` draws each set."""

CIRCLE_WORDS = {
    "X": ("man", "boy", "brother", "he"),
    "Y": ("woman", "girl", "sister", "she"),
    "A": ("lawyer", "judge"),
    "B": ("teacher", "nurse"),
}
"""The words of the made-up embeddings."""


def circle_figure(degrees: Mapping[str, Sequence[float]]):
    """Draw embeddings as angles of a quarter circle, an arc for each pair of sets."""
    figure, axes = subplots(height=4.4, width=4.3, subplot_kw={"projection": "polar"})
    for name, angles in degrees.items():
        colour, mark = ("C0", "C1")[name in ("Y", "Ay", "By")], "o" if name in "XY" else "D"
        radians, radius = np.radians(angles), ARCS[name]
        axes.plot(radians, [radius] * len(angles), mark, color=colour)
        for angle, word in zip(radians, _circle_words(name), strict=True):
            far = radius + (0.04 if name in "XY" else -0.03)
            place = {"ha": "left", "va": "center"} if name in "XY" else {"ha": "right", "va": "top"}
            axes.text(angle, far, word, fontsize=8.5, **place)
    axes.set(thetamin=0, thetamax=90, rticks=[0.6, 0.8, 1.0], yticklabels=[], rlim=(0, 1.25))
    axes.set_thetagrids([0, 30, 60, 90])
    return figure


def _circle_words(name: str) -> tuple[str, ...]:
    return CIRCLE_WORDS[name[0]]


def circle_table(degrees: Mapping[str, Sequence[float]]) -> pandas.DataFrame:
    """Return what :func:`circle_figure` draws."""
    rows = [
        (name, word, angle)
        for name, angles in degrees.items()
        for word, angle in zip(_circle_words(name), angles, strict=True)
    ]
    return pandas.DataFrame(rows, columns=["set", "word", "degrees"])


# The twelve embeddings of Table 2


def twelve_embeddings() -> dict[int, np.ndarray]:
    """Return twelve embeddings with the numbers of the paper's Table 2b, made up for an exercise.

    The first coordinate is the word's gender or occupation, the second what the picture adds, the
    third is noise.

    Examples
    --------
    >>> sorted(twelve_embeddings())[-1], twelve_embeddings()[1].shape
    (12, (3,))
    """
    rng = np.random.default_rng(2)
    lean = {1: 1, 2: 1, 3: -1, 4: -1} | dict.fromkeys(range(5, 9), 0.7)
    lean |= dict.fromkeys(range(9, 13), -0.7)
    shown = {2: -1, 3: 1, 4: -1, 1: 1, 5: 1, 6: 1, 7: -1, 8: -1, 9: 1, 10: 1, 11: -1, 12: -1}
    return {
        k: np.array([lean[k], 0.5 * shown[k], 1.0]) + 0.1 * rng.normal(size=3) for k in sorted(lean)
    }


# What is missing


def asked_table(asked: pandas.DataFrame) -> pandas.DataFrame:
    """Return what became of every test that was asked for, level by level."""
    cells = asked.groupby(["source", "test", "level"], sort=False)["outcome"].agg("; ".join)
    wide = cells.unstack("level").reindex(columns=list(LEVELS)).rename(columns=LEVELS)
    place = {name: at for at, name in enumerate(study.tests()["test"])}
    wide = wide.reset_index().rename_axis(columns=None)
    wide = wide.sort_values("test", key=lambda tests: tests.map(place))
    return wide.sort_values("source", kind="stable")


def left_table(left: pandas.DataFrame) -> pandas.DataFrame:
    """Return images left, of all, in the sets of every file, and the levels at which it is run."""
    counts = [f"{row.images_left}/{row.n_images}" for row in left.itertuples()]
    keys = ["source", "test", "file", "run"]
    wide = left.assign(cell=counts).pivot(index=keys, columns="set", values="cell")
    wide = wide.reindex(columns=list(study.SETS)).fillna("none").reset_index()
    return wide[["source", "test", "file", *study.SETS, "run"]].rename(columns={"run": "run at"})


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


def image_counts(*every: study.Inputs) -> pandas.DataFrame:
    """Return how many images the files of each test list, as Table 1 prints: see
    :func:`biaslib.datasets.ross2021.image_counts`.

    Nothing is counted of images that the package draws, or of one's own.

    Parameters
    ----------
    *every
        Of :func:`biaslib.studies.study1_grounded.inputs`, of either domain and any weights.
    """
    sources = [set(inputs.left["source"]) for inputs in every]
    if not any(each and each <= set(ross2021.SOURCES) for each in sources):
        return pandas.DataFrame(columns=["source", "test", "images"])
    return ross2021.image_counts(runtime.data_folder(study.STUDY))


# Tables of scores


def mark(scores: pandas.DataFrame) -> str:
    """Return what a caption ends with: whether its scores are of the planted world."""
    return " Planted world." if profile_of(scores) == "planted" else ""


def with_intervals(scores: pandas.DataFrame, drawn: pandas.DataFrame) -> pandas.DataFrame:
    """Return the scores that have an interval in another run of the same, with it."""
    keys = ["model", "test", "level", "experiment"]
    return scores.drop(columns=["low", "high"]).merge(drawn[[*keys, "low", "high"]], on=keys)


def score_table(scores: pandas.DataFrame, of: str = "") -> pandas.DataFrame:
    """Return every effect size for looking one up: a row a test, level and run, a column a model.

    A star where p is below .05; in brackets where the bounds of p leave that open.

    Parameters
    ----------
    scores
        Of :func:`biaslib.studies.study1_grounded.run` or of
        :func:`companion.study1_released.run_each`, with *domain*.
    of
        Whose p: that with words as units, or of :data:`PAPERS`, marked by a dagger.
    """
    whose = scores["statistic"].where(scores["experiment"] == 3, "").str.partition(" of ")[2]
    runs = _runs(scores) + whose.map(lambda targets: f", {targets}" if targets else "")
    runs += np.where(scores["domain"] == "in domain", ", in domain", "")
    return _wide(scores.assign(run=runs), ["test", "level", "run"], of)


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


def released_tables(released: pandas.DataFrame, *inputs: study.Inputs) -> list[Table]:
    """Return the scores as the released code computes them, and in ``paper`` what is wrong.

    Parameters
    ----------
    released
        Of :func:`companion.study1_released.run_each`; empty where it was not run.
    *inputs
        What was read for it.
    """
    if released.empty:
        return []
    caption = "Effect sizes as the released code computes them; "
    caption += f"{stars(released, PAPERS)}.{mark(released)}"
    found = [table_of(score_table(released, PAPERS), caption, folded=True)]
    if profile_of(released) == "paper":
        wrong = "What is wrong with images and region files of this run"
        problems = pandas.concat([each.problems for each in inputs], ignore_index=True)
        found.append(table_of(problem_table(problems), wrong))
    return found


def beside_tables(**runs: pandas.DataFrame) -> list[Table]:
    """Return tables of scores beside the printed and stated ones, of runs in ``paper`` alone.

    Parameters
    ----------
    **runs
        Scores by how they were run; those of the planted world are left out.
    """
    runs = {how: each for how, each in runs.items() if len(each) and profile_of(each) == "paper"}
    found = [
        table_of(beside_printed(scores), f"Effect sizes {how}, and as printed", folded=True)
        for how, scores in runs.items()
    ]
    stated = [beside_stated(each) for each in runs.values() if "paper" in set(each["variant"])]
    caption = "What section 5 states without a table, and what the run gives"
    return found + [table_of(each, caption, folded=True) for each in stated]


def differences_table() -> pandas.DataFrame:
    """Return where paper and released code of study 1 differ, and what each variant does.

    In brackets, what :mod:`companion.study1_released` does where that is not the same as the code.
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


def _wide(rows: pandas.DataFrame, by: list[str], of: str) -> pandas.DataFrame:
    names, p_values = names_of(rows), _bounded(rows, of).to_numpy()
    found = zip(rows["value"], p_values, strict=True)
    cells = rows.assign(
        cell=[_number(value) + _star(*p, STARS[of]) for value, p in found],
        level=rows["level"].map(LEVELS),
        model=rows["model"].map(names),
    )
    order = list(study.tests()["test"])
    wide = cells.pivot_table(index=by, columns="model", values="cell", aggfunc="first", sort=False)
    wide = wide[[name for name in names.values() if name in wide]].reset_index()
    return wide.sort_values("test", key=lambda tests: tests.map(order.index), kind="stable")


def _number(value: float) -> str:
    return "–" if pandas.isna(value) else signed(value)


def _bounded(rows: pandas.DataFrame, of: str = "") -> pandas.DataFrame:
    """Return *p*, *low* and *high* of a test: p itself where there are no bounds."""
    p = rows[f"p_value{of}"]
    bounds = {end: rows.get(f"p_{end}{of}", p).fillna(p) for end in ("low", "high")}
    return pandas.DataFrame({"p": p, **bounds})


def _star(p_value: float, low: float, high: float, star: str) -> str:
    if undecided(low, high):
        return f"({star})"
    return star if p_value < LEVEL else ""


def _significant(lows: Sequence[float], highs: Sequence[float]) -> int | str:
    """Return how many p-values with these bounds are below .05; from how many to how many."""
    if not len(lows):
        return "none"
    least, most = (int((np.asarray(each) < LEVEL).sum()) for each in (highs, lows))
    return least if least == most else f"{least} to {most}"


MASKED = {"none": "", "words": ", words hidden", "persons": ", people hidden"}


def _runs(scores: pandas.DataFrame) -> pandas.Series:
    """Return what each row is a run of: an experiment, and what is hidden."""
    return "Experiment " + scores["experiment"].astype(str) + scores["masking"].map(MASKED)


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
        papers, words = (
            [each[end].to_numpy() for end in ("low", "high")]
            for each in (_bounded(part, of).dropna() for of in (PAPERS, ""))
        )
        counts = {
            "tests": len(part),
            "p < .05, the paper's own test": _significant(*papers),
            "words as units": _significant(*words),
            "words, and Holm": _significant(*(inference.adjust(each, "holm") for each in words)),
        }
        rows.append({"run": run} | counts)
    return pandas.DataFrame(rows)


# What the paper prints


def printed_effects() -> pandas.DataFrame:
    """Return the effect sizes of Tables 3 and 4 as printed, one behind the other in each cell."""
    table = pandas.concat([published.table("ross2021", number) for number in (3, 4)])
    keys = ["kind", "test", "level"]
    wide = table.pivot_table(
        index=keys, columns="model", values="printed", aggfunc=" / ".join, sort=False
    )
    return wide.reset_index()


def printed_effects_figure():
    """Draw every printed effect size of Experiments 1 and 2: a row a test, colours for levels."""
    sizes = pandas.concat([published.table("ross2021", number) for number in (3, 4)])
    names = list(study.tests()["test"])[::-1]
    models = list(dict.fromkeys(sizes["model"]))
    figure, axes = subplots(2, 1, height=7.8, width=4.3, sharex=True)
    for experiment, each in zip((1, 2), axes, strict=True):
        for number, letter in enumerate(LETTERS):
            for place, model in enumerate(models):
                wanted = (sizes["experiment"] == experiment) & (sizes["level"] == letter)
                part = sizes[wanted & (sizes["model"] == model)]
                heights = part["test"].map(names.index) + 0.24 * (1 - number)
                style = {"color": COLOURS[number], "marker": MARKS[place], "s": 17, "alpha": 0.85}
                each.scatter(part["effect_size"], heights, **style)
        each.axvline(0, color="0.35", linewidth=1)
        each.axhline(6.5, color="0.6", linewidth=0.8, linestyle=":")
        each.set_xlim(-2.1, 2.1)
        each.set_yticks(range(len(names)), [TESTS[name] for name in names])
        each.set_title(f"Experiment {experiment}", fontsize=10.5)
        each.tick_params(labelsize=9)
    axes[1].set_xlabel("effect size d")
    blank = [
        axes[0].plot([], [], "o", color=COLOURS[n], label=f"{LETTERS[letter]}")[0]
        for n, letter in enumerate(LETTERS)
    ]
    blank += [
        axes[0].plot([], [], MARKS[n], color="0.4", label=model)[0]
        for n, model in enumerate(models)
    ]
    figure.legend(
        handles=blank,
        loc="outside upper center",
        frameon=False,
        ncols=4,
        fontsize=8.5,
        columnspacing=0.9,
        handletextpad=0.2,
    )
    return figure


def beside_printed(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return effect sizes beside those of Tables 3 to 6, whose masks are of Experiment 3.

    With intervals over pictures, where the scores have them, or why there is none.

    Raises
    ------
    ValueError
        If the scores are of the planted world, which does not stand beside published numbers.
    """
    require_paper(scores)
    ours = reproduction.tables_of_run("ross2021", scores, {})["ross2021_effect_sizes"]
    keys = ["table", "experiment", "test", "level", "model"]
    shown = [*keys, "value", *(["low", "high", "no_interval"] if "no_interval" in ours else [])]
    printed = pandas.concat([published.table("ross2021", number) for number in (3, 4, 5, 6)])
    joined = ours[shown].merge(printed[[*keys, "effect_size"]], on=keys, how="left")
    joined = joined.assign(difference=joined["value"] - joined["effect_size"])
    return joined.rename(columns={"value": "d here", "effect_size": "d printed"})


def beside_stated(scores: pandas.DataFrame) -> pandas.DataFrame:
    """Return numbers that section 5 states without a table, beside those of the scores.

    They are the mean effect sizes of Experiment 3's first form, the percentage of its tests that
    are significant, and whether results with an input hidden are similar at word level.

    Raises
    ------
    ValueError
        As :func:`beside_printed`.
    """
    require_paper(scores)
    found = reproduction.compare(scores, "ross2021").set_index("id")
    wanted = [f"ross2021/claim/{number}" for number in (37, 38, 34)]
    return found.loc[wanted, ["printed", "reason"]].rename(columns={"reason": "here"})


# Figures


def effects_figure(scores: pandas.DataFrame, level: str = "sentence", experiment: int = 1):
    """Draw effect sizes of all tests, a mark a model; filled where p is below .05."""
    rows = scores.query("level == @level and experiment == @experiment and masking == 'none'")
    names = [each for each in study.tests()["test"] if each in set(rows["test"])][::-1]
    figure, axes = subplots(height=0.27 * len(names) + 1.3, width=4.3)
    for number, (model, part) in enumerate(rows.groupby("model", sort=False)):
        heights = [names.index(test) + 0.15 * (1.5 - number) for test in part["test"]]
        colour, mark = COLOURS[number], MARKS[number % len(MARKS)]
        name = names_of(scores)[model]
        dots(axes, heights, part, colour, mark, name, part["p_value"] < 0.05)
    axes.axvline(0, color="0.35", linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlim=(-2.1, 2.1), xlabel="effect size d")
    axes.legend(frameon=False, ncols=2, fontsize=9, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    return marked(figure, profile_of(scores))


# The run


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
    planted = profile_of(every) == "planted"
    line = "The run's tables and figures"
    if planted:
        line = "A toy's numbers, to show the form of the tables and figures"
    stricter = "Significant tests, all models and levels, under stricter rules. The paper's own "
    stricter += (
        "test rejects too often, and is none of Experiment 3; by words Experiment 2 has, with "
    )
    stricter += f"sets of equal size, the p of Experiment 1.{mark(every)}"
    means = f"Mean absolute effect size by experiment, and of text alone.{mark(every)}"
    return fold(
        line,
        *figures,
        table_of(stricter_counts(every), stricter),
        table_of(mean_sizes(looked_up, alone), means, decimals=2),
    )


def mean_sizes(looked_up: pandas.DataFrame, alone: pandas.DataFrame) -> pandas.DataFrame:
    """Return the mean absolute effect size by run and domain, and of text alone, with n."""
    parts = looked_up.assign(run=_runs(looked_up), size=looked_up["value"].abs())
    found = parts.groupby(["run", "domain"], sort=False)["size"].agg(["mean", "size"])
    text = ("Experiment 1, text alone", "no pictures", alone["value"].abs().mean(), len(alone))
    rows = [*found.reset_index().itertuples(index=False, name=None), text]
    return pandas.DataFrame(rows, columns=["run", "pictures", "mean |d|", "n"])


# The panel

SINGLE = ("occupation-gender", "C6", "C8", "ABW")
"""The tests of the panel."""


def single_tests(encoders: Mapping, inputs: study.Inputs, scores: pandas.DataFrame) -> Folded:
    """Return the panel of :data:`SINGLE`, folded."""
    shown = {}
    for name, every in inputs.items():
        kept = sorted((each for each in every if each.test in SINGLE), key=_place_of_test)
        shown[name] = study.embed(encoders[name], kept)
    return fold(
        "Look at single tests: the score of each word, the null, and p", panel(shown, scores)
    )


def _place_of_test(sets: study.GroundedStimuli) -> int:
    return SINGLE.index(sets.test)


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
    cases, names = {}, names_of(scores)
    for model, sets_of in embedded.items():
        for sets in sets_of:
            for experiment in study.EXPERIMENTS:
                key = (sets.test, names[model], sets.level, f"Experiment {experiment}")
                row = rows.loc[model, sets.test, sets.level, experiment]
                cases[key] = _drawings(sets, experiment, row, _note(scores))
    choices = {
        "Test": list(dict.fromkeys(key[0] for key in cases)),
        "Model": list(dict.fromkeys(key[1] for key in cases)),
        "Level": list(dict.fromkeys(key[2] for key in cases)),
        "Experiment": [f"Experiment {experiment}" for experiment in study.EXPERIMENTS],
    }
    return Panel("Grounded association tests", choices, cases)


def _drawings(sets, experiment: int, row: pandas.Series, note: str) -> list[Drawing]:
    if pandas.isna(row["value"]):
        sentence = "All scores are the same: there is no effect size."
        return [_clouds(sets, experiment, sentence, note)]
    p = f"{p_text(row['p_value'])} with words as units"
    if experiment != 3:
        p += f", {p_text(row['p_value_paper'])} by the paper's own test"
    sentence = f"d = {signed(row['value'])}; difference {signed(row['numerator'], 3)}; {p}."
    drawings = [_clouds(sets, experiment, sentence, note)]
    if pandas.notna(row["p_value"]):
        drawings.append(_null(sets, experiment, row, note))
    return drawings


def _clouds(sets, experiment: int, sentence: str, note: str) -> Drawing:
    """Draw s of every target word, X above Y; in Experiment 3 with the other attributes too."""
    test = stimuli.association_test(sets.test)
    result = sets.grounded(min(experiment, 2))
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
        note=note, y_ticks=ticks, height=130,
    )  # fmt: skip


def _word_means(scores: np.ndarray, words: np.ndarray) -> dict[str, float]:
    means = pandas.Series(scores).groupby(words, sort=False).mean()
    return means.to_dict()


def _null(sets, experiment: int, row: pandas.Series, note: str) -> Drawing:
    """Draw the computed null with words as units, and where this test stands in it."""
    result = sets.grounded(experiment)
    if experiment == 3:
        observed, edges, heights = _exchanged(result, sets, row["seed"])
        what, how = "half the sum of both absolute shifts", "exchanges of attribute words"
    else:
        observed, edges, heights = _relabelled(study.averaged(result, sets.words))
        what, how = "difference of mean s", "relabellings of target words"
    marks = [
        steps(heights, edges) | {"label": how, "group": 2},
        {"kind": "rule", "x": [observed], "y": [], "label": "this test", "group": 3},
    ]
    p = p_text(row["p_value"])
    sentence = f"With words as units, {p}: the share of {how} at the dashed line or above."
    return Drawing(
        sentence, marks, what, "share", (edges[0], edges[-1]), (0, 1.1 * heights.max()),
        "A histogram of the computed null, and an upright line where this test stands.",
        note=note, height=130,
    )  # fmt: skip


def _relabelled(result) -> tuple[float, np.ndarray, np.ndarray]:
    x, y, shift = result.x_scores, result.y_scores, 0.0
    observed = float(x.mean() - y.mean())
    if result.experiment == 2:  # Weighted means of both scores, as in grounded_permutation_test.
        own, other = np.append(x, result.y_other), np.append(result.x_other, y)
        weighted, shift = (len(y) * own + len(x) * other) / len(own), (own - other).mean()
        x, y = np.split(weighted, [len(x)])
    values = shift + inference.relabelled_differences(x, y, 200_000, rng=0)
    reach = 1.1 * max(np.abs(values).max(), abs(observed))
    edges = np.linspace(-reach, reach, 32)
    return observed, edges, np.histogram(values, edges)[0] / len(values)


def _exchanged(result, sets, seed: int) -> tuple[float, np.ndarray, np.ndarray]:
    asked = result, sets.words, sets.images
    observed = inference.exchange_test(*asked, rng=seed).statistic
    values = inference.exchanged_statistics(*asked, rng=seed)
    edges = np.linspace(0, 1.1 * max(observed, values.max(), 1e-6), 32)  # all 0 where Ax is Ay
    return observed, edges, np.histogram(values, edges)[0] / len(values)


# Shared


def profile_of(scores: pandas.DataFrame) -> str:
    """Return the profile of which all scores are."""
    planted = "profile" in scores and (scores["profile"] == "planted").all()
    return "planted" if planted else "paper"


def names_of(scores: pandas.DataFrame) -> dict[str, str]:
    """Return how models are called where these scores stand: those of the planted world tiny."""
    return TINY if profile_of(scores) == "planted" else NAMES


def _note(scores: pandas.DataFrame) -> str:
    return "planted world" if profile_of(scores) == "planted" else ""


# Checks of exercises, and sentences that carry several numbers


def check_twelve(answer) -> Check:
    """Judge the statistics of Experiments 2 and 3 on several sets of twelve embeddings.

    In some of them the shift of the one word is positive and that of the other negative, so that
    absolute values matter.
    """
    hint = (
        "use 1 and 4 as words, 5 and 10 with men, 7 and 12 with women; Experiment 3 is half the "
        "sum of two absolute values"
    )
    cases = []
    for e in [twelve_embeddings(), *(_random_twelve(seed) for seed in range(6))]:
        numbers = zip(study.SETS, (1, 4, 5, 7, 10, 12), strict=True)
        sets = {name: np.array([e[number]]) for name, number in numbers}
        cases.append(((e,), _second_and_third(**sets)))
    return judge_function(_of_a_pair(answer), cases, hint, right="both experiments, by hand.")


def _random_twelve(seed: int) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {number: rng.normal(size=4) for number in range(1, 13)}


def _of_a_pair(function):
    """Return a function of which two arrays of one number are two numbers."""

    def pair(e):
        found = values_of(function(e))
        return [np.squeeze(each) for each in found] if np.iterable(found) else found

    return pair


def _second_and_third(X, Y, Ax, Ay, Bx, By) -> list[float]:
    own = association(X, Ax, Bx)[0], association(Y, Ay, By)[0]
    other = association(X, Ay, By)[0], association(Y, Ax, Bx)[0]
    return [own[0] - own[1], 0.5 * (abs(own[0] - other[0]) + abs(own[1] - other[1]))]


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
        {str(item).strip().upper() for item in items_of(each)} for each in (reported, absent)
    )
    if absent - {"NONE"}:
        hint = (
            "an interval from −0.90 to 1.00 holds large effects of either sign: nothing was shown"
        )
        return Check(False, hint)
    if "D" in reported:
        return Check(False, "how many random attributes do as well as those of D?")
    hint = "take words as units, correct over all tests, and compare with random attributes last"
    right = "only A is left, and no line of the table shows that there is no association."
    return Check(reported == {"A"}, right if reported == {"A"} else hint)
