"""Pictures of the chapter that works an association test by hand."""

import itertools

import numpy as np
import pandas

from biaslib import inference
from biaslib.display import subplots
from biaslib.metrics import association
from companion._check import SAMPLED, Check, effect_step, judge_function, judge_steps
from companion._shared import titled
from companion._vectors import Vectors
from companion.text_encoders import ROWS

SETS = {"X": "C0", "Y": "C1", "A": "C2", "B": "C4"}
"""Colours of the sets: those nearest to the panel's in ``assets/vectors.css``."""


def vectors(sets: dict[str, np.ndarray]):
    """Draw two-dimensional embeddings as arrows, a colour a set."""
    figure, axes = subplots(height=4.6, width=4.3)
    for name, rows in sets.items():
        colour = SETS[name]
        for number, (across, up) in enumerate(rows, start=1):
            width = 2.4 if name in "XY" else 1.0
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": width}
            axes.annotate("", (across, up), (0, 0), arrowprops=arrow)
            beyond = 11 * np.array([across, up]) / np.hypot(across, up)
            axes.annotate(
                f"{name}{number}", (across, up), beyond, textcoords="offset points",
                ha="center", va="center",
            )  # fmt: skip
    axes.set(xlim=(-0.05, 1.2), ylim=(-0.05, 1.2), aspect="equal", xticks=[0, 1], yticks=[0, 1])
    return figure


def dragged(X: np.ndarray, Y: np.ndarray, A: np.ndarray, B: np.ndarray) -> Vectors:
    """Return the toy's vectors for a reader to drag, with two other places to begin from."""
    sets = {"X": X, "Y": Y, "A": A, "B": B}
    close = {"X": [(0.80, 0.62), (0.80, 0.62)], "Y": [(0.79, 0.63), (0.79, 0.63)], "A": A, "B": B}
    return Vectors(
        "Vectors of the toy: a tip can be dragged; arrow keys turn and stretch it",
        sets,
        {
            "Targets that agree": close,
            "Half as long": {name: np.asarray(rows) / 2 for name, rows in sets.items()},
        },
    )


def cosine_table(X, Y, A, B) -> pandas.DataFrame:
    """Return the cosine of every target with every attribute, and the target's score."""
    targets, attributes = np.concatenate([X, Y]), np.concatenate([A, B])
    names = [f"{s}{i}" for s, rows in (("A", A), ("B", B)) for i in range(1, len(rows) + 1)]
    frame = pandas.DataFrame(association.cosines(targets, attributes), columns=names)
    frame.insert(
        0,
        "target",
        [f"{s}{i}" for s, rows in (("X", X), ("Y", Y)) for i in range(1, len(rows) + 1)],
    )
    return frame.assign(score=association.association(targets, A, B))


def deals(x: np.ndarray, y: np.ndarray):
    """Draw the difference of means of every deal of the scores into two hands, as dots."""
    differences, observed = _differences(x, y)
    width = 0.04 * (differences.max() - differences.min())
    columns = np.floor((differences - observed + 1e-12) / width).astype(int)
    figure, axes = subplots(height=3.2, width=4.3)
    for column in np.unique(columns):
        stack = np.sort(differences[columns == column])
        reached = stack >= observed - 1e-12
        heights = np.arange(1, len(stack) + 1)
        for mask, colour in ((~reached, "C0"), (reached, "C3")):
            centre = observed + (column + 0.5) * width
            axes.scatter(np.full(mask.sum(), centre), heights[mask], s=14, color=colour)
    axes.axvline(observed, color="0.3", linestyle="--", linewidth=1.2)
    axes.set(xlabel="difference of means", ylabel="deals", ylim=(0, None))
    return figure


def deals_table(x: np.ndarray, y: np.ndarray) -> pandas.DataFrame:
    """Return how many deals fall into ten equal ranges of the difference of means.

    >>> deals_table(np.array([3, 1, 2]), np.array([2, 0, 1])).iloc[:, 2:].sum().tolist()
    [20, 5]
    """
    differences, observed = _differences(x, y)
    edges = np.histogram_bin_edges(differences, 10)
    reached = differences[differences >= observed - 1e-12]
    return pandas.DataFrame(
        {
            "from": edges[:-1],
            "to": edges[1:],
            "deals": np.histogram(differences, edges)[0],
            "reach the observed one": np.histogram(reached, edges)[0],
        }
    )


def detectable_effects(
    sizes: pandas.DataFrame, alphas: tuple[float, float], power: float = 0.8
) -> pandas.DataFrame:
    """Return the smallest effect size that each test finds, at a level and at a corrected one.

    ``sizes`` has the columns name, n_X and n_Y.
    """
    names = [f"{alphas[0]:.0%}", f"{alphas[1]:.2%} (corrected)"]
    rows = [
        {"test": ROWS[name], "words a side": n_x}
        | {
            label: inference.minimum_detectable_effect(n_x, n_y, alpha, power).effect_size
            for label, alpha in zip(names, alphas, strict=True)
        }
        for name, n_x, n_y in sizes.itertuples(index=False, name=None)
    ]
    return pandas.DataFrame(rows)


def detectable_table(detectable: pandas.DataFrame) -> pandas.DataFrame:
    """Return the effects of :func:`detectable_effects`: a row for each number of words a side."""
    table = detectable.drop(columns="test").drop_duplicates("words a side")
    counts = detectable.groupby("words a side").size()
    table.insert(1, "tests", table["words a side"].map(counts))
    return table.sort_values("words a side", ignore_index=True)


def power_chart(detectable: pandas.DataFrame):
    """Draw the effects that each test would miss, from 0 to the smallest that it finds."""
    colour = "C0"
    _, _, plain, corrected = detectable.columns
    rows = np.arange(len(detectable))[::-1]
    figure, axes = subplots(height=0.27 * len(detectable) + 1.2, width=4.3)
    axes.barh(rows, detectable[corrected], color=colour, alpha=0.25, height=0.6)
    axes.barh(rows, detectable[plain], color=colour, alpha=0.5, height=0.6)
    for label, mark in ((plain, "o"), (corrected, "s")):
        axes.plot(detectable[label], rows, mark, color=colour, label=f"found at {label}")
    axes.set(
        yticks=rows,
        yticklabels=[f"{t} ({n})" for t, n in detectable.iloc[:, :2].itertuples(index=False)],
        xlim=(0, 2),
        xlabel="effect size d",
    )
    return titled(figure, "With eight words a side only large effects are found", columns=1)


def check_by_hand(answer) -> Check:
    """Judge two cosines, the score that they give, and an effect size of four other scores."""
    scores = np.array([0.3, 0.1, 0.0, -0.2])
    gap = scores[:2].mean() - scores[2:].mean()
    others = {
        "this divides by the variance: take its root": gap / scores.var(ddof=1),
        "this is the spread within the sets; d takes that of all four": (
            gap / np.std([0.1, -0.1, 0.1, -0.1], ddof=2)
        ),
    }
    product = "this is the scalar product: divide it by both lengths"
    steps = [
        (0.96, "multiply entry by entry, add, and divide by both lengths", {product: 24.0}),
        (0.80, "multiply entry by entry, add, and divide by both lengths", {product: 20.0}),
        (0.16, "take the cosine with b from that with a", {"its sign is turned": -0.16}),
        effect_step(gap, scores, others),
    ]
    form = "give four numbers: two cosines, the score, d"
    return judge_steps(answer, steps, form, "and d would be the same for a tenth of the scores.")


def check_deals(answer) -> Check:
    """Judge a one-sided permutation p-value, on scores with ties and on sets of unequal size."""
    scores = [
        ([3.0, 1.0, 2.0], [2.0, 0.0, 1.0]),
        ([0.5, 0.75], [0.25, 0.0, 0.5, -0.25]),
        ([-1.0, 0.0, -0.5], [0.25, 0.5, 1.0]),
    ]
    hands = [tuple(np.array(each) for each in pair) for pair in scores]
    cases = [(pair, inference.permutation_test(*pair).p_value) for pair in hands]
    hint = "count the deals at least as large as the observed one, ties included, on one side"
    right = "the observed deal is one of them, so p is never 0."
    return judge_function(answer, cases, hint, SAMPLED, right)


def _differences(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the difference of means of every deal, and the observed one."""
    pooled = np.concatenate([x, y])
    chosen = np.array(list(itertools.combinations(range(len(pooled)), len(x))))
    sums = pooled[chosen].sum(axis=1)
    means = sums / len(x) - (pooled.sum() - sums) / len(y)
    return means, float(x.mean() - y.mean())
