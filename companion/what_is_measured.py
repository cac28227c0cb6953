"""Figures, tables and checks of the chapter on harms, constructs, labels and audits."""

from pathlib import Path

import numpy as np
import pandas

from biaslib.display import subplots
from biaslib.published import table
from companion._check import Check, judge, judge_choice, judge_function, judge_list
from companion._shared import titled

DATA = Path(__file__).parent / "data"

LEVELS = {"W": "word", "S": "sentence", "C": "contextual"}


def two_levels(number: int = 3) -> pandas.DataFrame:
    """Return Ross et al.'s printed effect sizes, a row a test and model, a column a level.

    Parameters
    ----------
    number
        Of the paper's table: 3 for Experiment 1, 4 for Experiment 2.

    Examples
    --------
    >>> two_levels(3).shape
    (52, 5)
    """
    printed = table("ross2021", number).replace({"level": LEVELS})
    wide = printed.pivot(index=["model", "test"], columns="level", values="effect_size")
    return wide[list(LEVELS.values())].reset_index().rename_axis(None, axis=1)


def agreement(effects: pandas.DataFrame, x: str = "word", y: str = "sentence") -> pandas.DataFrame:
    """Count, by model, the tests whose effect sizes have the same sign at two levels.

    Parameters
    ----------
    effects
        Of :func:`two_levels`.
    x, y
        The levels.

    Returns
    -------
    DataFrame
        *model*, *same sign*, *n* and *rank correlation* (Spearman's) over the tests; the last row
        is of all models together. A test without an effect size at a level is left out.

    Examples
    --------
    >>> agreement(two_levels()).iloc[-1][["same sign", "n"]].map(int).tolist()
    [39, 51]
    """
    effects = effects.dropna(subset=[x, y])
    parts = [*effects.groupby("model"), ("all four", effects)]
    rows = [
        {
            "model": name,
            "same sign": int((np.sign(part[x]) == np.sign(part[y])).sum()),
            "n": len(part),
            "rank correlation": part[x].corr(part[y], method="spearman"),
        }
        for name, part in parts
    ]
    return pandas.DataFrame(rows)


def two_levels_figure(effects: pandas.DataFrame):
    """Draw every test at word level against the same test at sentence level, a panel a model."""
    figure, panels = subplots(2, 2, height=4.6, width=4.3, sharex=True, sharey=True)
    for axes, (name, part) in zip(panels.flat, effects.groupby("model"), strict=True):
        same = np.sign(part["word"]) == np.sign(part["sentence"])
        for chosen, marker, colour in ((same, "o", "C0"), (~same, "x", "C3")):
            axes.scatter(part["word"][chosen], part["sentence"][chosen], 26, colour, marker)
        axes.axhline(0, color="0.6", linewidth=0.8)
        axes.axvline(0, color="0.6", linewidth=0.8)
        axes.set_title(name, fontsize=11)
        axes.set(xlim=(-2.1, 2.1), ylim=(-2.1, 2.1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    figure.supylabel("d, sentences", fontsize=10)
    figure.supxlabel("d, words", fontsize=10)
    return titled(figure, "Only ViLBERT’s tests all agree in sign")


def constructs() -> pandas.DataFrame:
    """Return what each paper calls bias, what it computes, and what would have to hold."""
    return pandas.read_csv(DATA / "constructs.csv")


def labellers() -> pandas.DataFrame:
    """Return who said what the people in each study's pictures are, and from what."""
    return pandas.read_csv(DATA / "labellers.csv")


def shares_table(hits: np.ndarray, people: np.ndarray, rows, columns) -> pandas.DataFrame:
    """Return shares in a table of two by two, with both margins.

    Parameters
    ----------
    hits, people
        Counts of shape (2, 2).
    rows, columns
        The names of the groups.

    Examples
    --------
    >>> shares_table(np.array([[3, 1], [1, 3]]), np.full((2, 2), 4), "ab", "cd")
      group     c     d  all
    0     a  0.75  0.25  0.5
    1     b  0.25  0.75  0.5
    2   all  0.50  0.50  0.5
    """

    def with_margins(counts):
        wide = np.column_stack([counts, counts.sum(axis=1)])
        return np.vstack([wide, wide.sum(axis=0)])

    shares = with_margins(np.asarray(hits)) / with_margins(np.asarray(people))
    frame = pandas.DataFrame(shares, columns=[*columns, "all"])
    frame.insert(0, "group", [*rows, "all"])
    return frame


def check_margins(function) -> Check:
    """Check an exercise: the gap by row, the gap by column, and the interaction."""
    hits, people = np.array([[12, 6], [9, 40]]), np.array([[20, 60], [45, 50]])
    shares = hits / people
    rows = hits.sum(axis=1) / people.sum(axis=1)
    columns = hits.sum(axis=0) / people.sum(axis=0)
    expected = [
        rows[0] - rows[1],
        columns[0] - columns[1],
        shares[0, 0] - shares[0, 1] - shares[1, 0] + shares[1, 1],
    ]
    return judge_function(
        function,
        [((hits, people), expected)],
        "add the counts of a row before you divide (groups differ in size); the interaction is a "
        "difference of differences of the four shares.",
        right="three numbers, and none of them can be had from the other two.",
    )


HARMS = {"a": "allocational", "b": "representational", "c": "representational", "d": "allocational"}


def check_harms(answers) -> Check:
    """Check an exercise: which kind of harm each of four cases is first of all."""
    return judge(
        answers,
        HARMS,
        "ask of each case whether somebody is refused a thing, a place or a service, or whether a "
        "group is shown as less, as other, or not at all.",
        right="and the second often prepares the first.",
    )


LAWS = ("local law 144", "ai act", "data protection", "none")
"""The law of the chapter that asks for something in each of four cases.

:meta hide-value:
"""


def check_laws(answer) -> Check:
    """Check an exercise: which law asks for something in each of four cases.

    Examples
    --------
    >>> check_laws(["ai act", "ai act", "data protection", "none"])
    Not yet: 3 of 4 are right; (a) where is the employer, and what has to be published?
    """
    hints = (
        "(a) where is the employer, and what has to be published?",
        "(b) where is it sold, and is its use of high risk?",
        "(c) no decision is made here, but something is kept of a person; what kind of data is it?",
        "(d) whose law asks for this number?",
    )
    form = f"give four of {', '.join(LAWS)}, in the order of the cases"
    return judge_list(answer, LAWS, form, hints, "none of the laws asks for a number of this book.")


def check_borne(chosen) -> Check:
    """Check an exercise: which sentences a result supports."""
    hints = {
        "a": "speaks of the model's opinion of people; the score is of labelled faces",
        "c": "needs to know how such searches are used, and with what result",
        "d": "speaks of where it was learned, and nothing about training was measured",
        "f": "says that there is nothing; one word and one set of faces cannot",
    }
    missing = "two of the six say no more than what was computed, on what, and with which doubt."
    right = "both name the word, the faces and the labels, and stop there."
    return judge_choice(chosen, "be", hints, missing, right)
