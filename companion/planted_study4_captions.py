"""Study 4 where the answer is known: figures and tables."""

from collections.abc import Sequence

import numpy as np
import pandas

from biaslib.display import dots, interval_text, marked, signed, subplots
from biaslib.metrics import caption_selection
from companion._check import Check, judge, judge_list, judge_steps
from companion.planted_world import NARROW, name_rows
from companion.study4_captions import score_cell, shift_cell

LOOKED_AT = {"both": "both", "gender": "an object", "profession": "a costume"}
"""What tells the right caption, by category."""

PLACES = {
    "nothing": "nothing (dose 0)",
    "both": "captions and pictures",
    "text": "captions alone",
    "images": "pictures alone",
}

EVIDENCE = {"visible": "in plain sight", "hidden": "not in the picture"}
STRENGTHS = ((0, "no bias", "o", "0.45"), (3, "planted bias of dose 3", "D", "C1"))
"""Doses, what they are called, and how they are drawn."""


def rise_figure(verdict: pandas.DataFrame):
    """Draw vlbs of models without bias and of dose 3: a row a model.

    Around the former the noise floor; at dose 3 the interval of the rise.
    """
    rows = verdict.reset_index(drop=True)
    figure, axes = subplots(height=0.45 * len(rows) + 1.2, width=NARROW)
    zero, floor = rows["vlbs at dose 0"], rows["floor"]
    axes.barh(rows.index, 2 * floor, left=zero - floor, color="0.85", label="noise floor")
    axes.plot(zero, rows.index, "o", color="0.45", label="without bias")
    ends = {"value": rows["vlbs"], "low": zero + rows["low"], "high": zero + rows["high"]}
    dots(axes, rows.index, ends, "C1", "D", "planted bias")
    name_rows(axes, rows.index, rows["model"])
    axes.set_xlabel("vlbs, per cent")
    axes.legend(frameon=False, fontsize=9)
    return marked(figure)


def chosen_figure(summary: pandas.DataFrame):
    """Draw how often shifts are above 0 without bias: on all such images, and on the chosen."""
    rows = summary[(summary["statistic"] == "% positive") & (summary["dose"] == 0)]
    names = list(dict.fromkeys(rows["model"]))
    figure, panels = subplots(2, 1, height=1.4 + 0.75 * len(names), width=NARROW, sharex=True)
    marks = (("anti", "all such images", "o", "0.45"), ("paper", "stereotype chosen", "D", "C1"))
    for axes, test in zip(panels, ("lmss", "vlss"), strict=True):
        for shift, (level, label, mark, colour) in zip((-0.13, 0.13), marks, strict=True):
            part = rows[(rows["test"] == test) & (rows["level"] == level)].set_index("model")
            dots(axes, np.arange(len(names)) + shift, part.reindex(names), colour, mark, label)
        axes.axvline(50, color="0.5", linewidth=1, linestyle=":")
        name_rows(axes, range(len(names)), names)
        axes.set_title(f"{test} above 0", fontsize=10, loc="left")
    panels[1].set_xlabel("per cent of images", fontsize=10)
    panels[1].legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.3, -0.25))
    return marked(figure)


def modality_figure(table: pandas.DataFrame):
    """Draw lmss and vlss of the two perfect models by where the stereotype was planted."""
    names = [name for name in dict.fromkeys(table["model"]) if name.startswith("perfect")]
    figure, panels = subplots(len(names), 1, height=4.6, width=NARROW, sharex=True, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        for shift, test, colour in ((-0.1, "lmss", "C0"), (0.1, "vlss", "C1")):
            rows = table[(table["model"] == name) & (table["test"] == test)]
            rows = rows.set_index("planted in").loc[list(PLACES)]
            at = np.arange(len(PLACES)) + shift
            dots(axes, at, rows, colour, "oD"[test == "vlss"], test, upright=True)
        axes.axhline(0, color="0.5", linewidth=1)
        axes.set_xticks(range(4), ["nothing", "both", "captions", "pictures"], fontsize=9)
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_ylabel("mean shift (log)", fontsize=10)
    panels[0].legend(frameon=False, fontsize=9)
    return marked(figure)


def truth_figure(table: pandas.DataFrame, scores: Sequence[str] = ("vlbs", "vlrs")):
    """Draw scores of a perfect model and of tiny ones with the evidence in plain sight and without.

    A row a model, the perfect one first: without bias and with a planted one, means over worlds,
    and small each world. Dotted, the random model.
    """
    names = list(dict.fromkeys(table["model"]))
    panels = [(score, view) for score in scores for view in EVIDENCE]
    height = 0.6 + len(panels) * (0.6 + 0.3 * len(names))
    figure, axes = subplots(len(panels), 1, height=height, width=3.4, sharex=True, sharey=True)
    chance = caption_selection.reference_scores("random")
    for axis, (score, view) in zip(axes, panels, strict=True):
        for dose, label, mark, colour in STRENGTHS:
            rows = table[table["view"].eq(view) & table["dose"].eq(dose)]
            means = rows.groupby("model")[score].mean().reindex(names)
            shift = -0.14 if dose == 0 else 0.14
            small = [names.index(name) + shift for name in rows["model"]]
            axis.plot(rows[score], small, mark, color=colour, ms=2, alpha=0.6)
            at = np.arange(len(names)) + shift
            axis.plot(means, at, mark, color=colour, ms=4.5, label=label)
        axis.axvline(getattr(chance, score), color="0.5", linewidth=1, linestyle=":")
        axis.axhline(0.5, color="0.8", linewidth=1)
        axis.set(xlim=(-6, 106), xticks=(0, 50, 100))
        axis.set_title(f"{score}, {EVIDENCE[view]}", fontsize=9)
        axis.set_yticks(range(len(names)), names, fontsize=8.5)
    axes[-1].set_xlabel("per cent", fontsize=10)
    axes[0].invert_yaxis()
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, loc="outside lower right", ncols=2, frameon=False, fontsize=8.5)
    return marked(figure)


def truth_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return means over worlds: a row a view, dose and model, the perfect one first."""
    keys = ["view", "dose", "model"]
    means = table.groupby(keys, sort=False)[["vlrs", "vlbs", "lmss", "vlss"]].mean()
    means["worlds"] = table.groupby(keys, sort=False).size()
    means = means.round({"lmss": 2, "vlss": 2}).reset_index()
    means["view"] = means["view"].map(EVIDENCE)
    return means.sort_values(["view", "dose"], kind="stable").rename(columns={"view": "evidence"})


def grounding_table(look: pandas.DataFrame) -> pandas.DataFrame:
    """Return the shares of right captions: a row a model and dose, a column a category."""
    shares = look.rename(columns={"percent": "value"})
    cells = look.assign(cell=[score_cell(row) for _, row in shares.iterrows()])
    wide = cells.pivot(index=["dose", "model"], columns="category", values="cell")
    order = look.drop_duplicates(["dose", "model"]).set_index(["dose", "model"]).index
    wide = wide.loc[order, list(LOOKED_AT)].rename(columns=LOOKED_AT)
    n = look.query("category == 'gender'").set_index(["dose", "model"])["n"]
    wide["images per category"] = n.loc[order]
    return wide.reset_index().rename_axis(columns=None)


def verdict_table(verdict: pandas.DataFrame) -> pandas.DataFrame:
    """Return the verdict for the reader."""
    rises = [
        f"{signed(row['rise'], 1)} ({interval_text(row['low'], row['high'], 0)})"
        for _, row in verdict.iterrows()
    ]
    table = verdict.drop(columns=["low", "high"]).assign(rise=rises)
    table["opacity"] = table["opacity"].map("{:g}".format)
    names = {
        "looks": "reads the picture",
        "vlrs": "vlrs at dose 3",
        "vlbs": "vlbs at dose 3",
        "floor": "noise floor",
        "rise": "rise (95% interval)",
        "n": "pictures",
    }
    return table.rename(columns=names)


def modality_table(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return what :func:`modality_figure` draws, and the models with some worlds only."""
    return pandas.DataFrame(
        {
            "model": table["model"],
            "planted in": table["planted in"].map(PLACES),
            "score": table["test"],
            "mean (95% interval)": [shift_cell(row) for _, row in table.iterrows()],
            "n": table["n"],
        }
    )


# Exercises

FOUR_MODELS = {
    "A": ("yes", "all that is asked for is met, by the interval too"),
    "B": ("no", "what does a model read that is right as often as chance?"),
    "C": ("open", "compare both ends of the interval with the noise floor"),
    "D": ("no", "is the rise above what models without bias have among themselves?"),
}
"""The exercise's four invented models: whether vlbs has found a bias, and a hint."""


def check_blind(answer) -> Check:
    """Judge vlrs, vlbs and the share of right captions of a model that ignores pictures.

    Examples
    --------
    >>> check_blind([100, 70, 70])
    Not yet: which caption does it pick for the two images of one triplet?
    """
    hint = "which caption does it pick for the two images of one triplet?"
    return judge(answer, [100, 70, 50], hint)


def check_outcome(answer) -> Check:
    """Check the mean of six shifts, and that of those on which the stereotype was picked."""
    shifts = np.array([0.9, 0.4, 0.2, -0.2, -0.5, -0.8])
    steps = [
        (
            shifts.mean(),
            "add all six, with their signs",
            {"these are sizes: add them with their signs": abs(shifts).mean()},
        ),
        (
            shifts[:3].mean(),
            "take the first three alone",
            {"of the three, not of all six: divide by 3": shifts[:3].sum() / 6},
        ),
    ]
    right = "the pick chose the pictures, and with them the mean."
    return judge_steps(answer, steps, "give two numbers: of all six, of the three", right)


def check_four(answer) -> Check:
    """Check for which of :data:`FOUR_MODELS` the reader says that vlbs has found a bias.

    Examples
    --------
    >>> check_four(["yes", "yes", "yes", "no"])
    Not yet: 2 of 4 are right; model B: what does a model read that is right as often as chance?
    """
    form = "give four of 'yes', 'no' and 'open', in the order of the models"
    expected, hints = zip(*FOUR_MODELS.values(), strict=True)
    hints = [f"model {model}: {hint}" for model, hint in zip(FOUR_MODELS, hints, strict=True)]
    learned = "a rise counts only in a model that reads pictures, and beyond the noise."
    return judge_list(answer, expected, form, hints, learned)
