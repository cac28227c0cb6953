"""Which score of a generative model finds what is planted: figures and tables."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, subplots
from companion._check import Check, judge_function
from companion.planted_world import NARROW, name_rows
from plantedworld.models.prompts import ASKED
from plantedworld.studies import generative as study
from plantedworld.studies.measures import mean_over_seeds

SHARES = ("right is long", "right is short")


def finding_plot(found: pandas.DataFrame):
    """Draw slopes and ranks within signs of all scores, with intervals over worlds."""
    figure, panels = subplots(2, 1, height=6.4, width=NARROW)
    at = np.arange(len(found))
    for axes, name, title in (
        (panels[0], "slope", "Slope"),
        (panels[1], "rank", "Order within entities of one sign"),
    ):
        rows = found.rename(columns={name: "value", f"{name} low": "low", f"{name} high": "high"})
        axes.axvline(0, color="0.6", linewidth=1)
        dots(axes, at, rows, "C1", filled=found["finds"])
        axes.set_title(title, fontsize=10, loc="left")
        name_rows(axes, at, found["score"].map(study.SCORES))
    panels[0].scatter(found["slope at dose 0"], at, facecolors="none", edgecolors="0.4", zorder=2)
    return marked(figure)


def finding_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the numbers behind :func:`finding_plot`, and the verdicts."""
    table = pandas.DataFrame({"score": found["score"].map(study.SCORES)})
    table["slope, dose 3"] = found["slope"].round(2)
    table["slope, dose 0"] = found["slope at dose 0"].round(2)
    for name, label in (("more", "difference of slopes"), ("rank", "rank within signs")):
        table[label] = found[name].round(2)
        table[f"{label}, 95% interval"] = _intervals(found, name)
    points = [None if np.isnan(each) else f"{each:.0f}" for each in found["rise"]]
    table["rise less that of errors, points"] = points
    table["rise, 95% interval"] = _intervals(found, "rise", 0)
    table["finds it, study 2"] = found["finds"].map({True: "yes", False: "no"})
    table["finds it, study 4"] = found["finds, study 4"].map({True: "yes", False: "no"}).fillna("–")
    return table


def _intervals(found: pandas.DataFrame, name: str, decimals: int = 2) -> list[str]:
    return interval_texts({"low": found[f"{name} low"], "high": found[f"{name} high"]}, decimals)


def prompt_table(recorded: pandas.DataFrame) -> pandas.DataFrame:
    """Return the slope at dose 3 of every score by prompt, a mean over worlds."""
    asked = recorded[(recorded["question"] == "study 2") & (recorded["dose"] == 3)]
    slopes = study.recovery(asked).pivot_table(index="score", columns="prompt", values="slope")
    slopes = slopes.loc[list(study.SCORES), list(ASKED)].rename_axis(columns=None)
    slopes.insert(0, "score", list(study.SCORES.values()))
    return slopes.round(2).reset_index(drop=True)


def length_shares(recorded: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often the right caption wins if it is the longer, and the shorter, by score.

    Means over worlds and doses with *low* and *high*, Student's interval over worlds.
    """
    asked = recorded[(recorded["question"] == "length") & recorded["item"].isin(SHARES)]
    worlds = asked.groupby(["score", "item", "seed"])["value"].mean()
    rows = [
        {"score": score, "item": item, **mean_over_seeds(worlds[score, item])}
        for score in study.SCORES
        for item in SHARES
        if (score, item) in worlds.index.droplevel("seed")
    ]
    return pandas.DataFrame(rows).rename(columns={"mean": "value"})


def length_plot(shares: pandas.DataFrame):
    """Draw both shares of every score, with chance; intervals are cut off at 0 and 100."""
    figure, axes = subplots(height=3.6, width=NARROW)
    ends = ["low", "high"]
    shares = shares.assign(**shares[ends].clip(0, 100))
    scores = list(dict.fromkeys(shares["score"]))[::-1]
    axes.axvline(50, color="0.6", linewidth=1, linestyle=":")
    for item, colour, marker, shift in zip(
        SHARES, ("C0", "C1"), ("o", "D"), (0.12, -0.12), strict=True
    ):
        rows = shares[shares["item"] == item]
        at = [scores.index(score) + shift for score in rows["score"]]
        dots(axes, at, rows, colour, marker, item)
    axes.set(xlim=(-3, 103), xlabel="right caption wins, per cent")
    axes.set_yticks(range(len(scores)), [study.SCORES[score] for score in scores], fontsize=9)
    axes.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1))
    return marked(figure)


def length_table(shares: pandas.DataFrame) -> pandas.DataFrame:
    """Return the numbers behind :func:`length_plot`."""
    wide = shares.pivot(index="score", columns="item", values="value").loc[
        list(dict.fromkeys(shares["score"])), list(SHARES)
    ]
    wide = wide.rename_axis(columns=None).reset_index()
    return wide.assign(score=wide["score"].map(study.SCORES))


def order_table(recorded: pandas.DataFrame) -> pandas.DataFrame:
    """Return what the order of options does, in per cent, means over worlds and doses."""
    asked = recorded[recorded["question"] == "order"]
    means = asked.groupby("item")["value"].mean()
    rows = {f"share of {letter}": 100 * means[f"share of {letter}"] for letter in "ABC"}
    alone = asked[asked["item"].str.startswith("vlbs")].groupby(["dose", "seed"])["value"]
    rows |= {
        "pictures whose pick depends on the order": means["changed"],
        "vlbs of the order with least of it": alone.min().mean(),
        "vlbs of the order with most of it": alone.max().mean(),
        "the former in the model where it is least": alone.min().min(),
        "the latter in the model where it is most": alone.max().max(),
    }
    return pandas.DataFrame({"what": rows.keys(), "%": rows.values()})


def check_preference(answer) -> Check:
    """Check the exercise on the two orders of a choice."""
    first, second = np.array([0.9, 0.6, 0.5, 0.2]), np.array([0.8, 0.6, 0.1, 0.2])
    expected = (np.log(first / (1 - first)) - np.log(second / (1 - second))) / 2
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return judge_function(
        answer,
        list(zip(pairs, expected, strict=True)),
        "in the second order A stands for the other caption; average log-odds, not probabilities.",
        right="what the letter adds is in both log-odds alike and cancels in their difference.",
    )
