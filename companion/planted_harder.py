"""Figure and table about harder worlds, from what is recorded of them."""

import numpy as np
import pandas

from biaslib.display import interval_texts, marked, subplots
from companion.planted_measures import NARROW
from plantedworld.studies.measures import MEASURES
from plantedworld.studies.recorded import recorded

NO_UNIT = ("c_asc", "top_k")
"""Measures that are not in log-odds: their slope says nothing."""


def options_figure(summary: pandas.DataFrame):
    """Draw the slope of the scaled difference, and the order that C-ASC keeps, by kind of world.

    Parameters
    ----------
    summary
        Of ``recorded("harder_worlds")``.
    """
    figure, axes = subplots(height=3.4, width=NARROW)
    for measure, column, colour, mark in (
        ("logit", "slope", "C0", "o"),
        ("c_asc", "rank within signs", "C1", "D"),
    ):
        rows = summary[summary["measure"] == measure]
        axes.plot(
            rows[column], rows["option"], mark, color=colour, label=f"{MEASURES[measure]}, {column}"
        )
    axes.axvline(1, color="0.4", linewidth=1, linestyle="--")
    axes.set_xlim(-0.05, 1.1)
    axes.invert_yaxis()
    axes.tick_params(labelsize=9)
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.2, -0.1))
    return marked(figure)


def options_table(summary: pandas.DataFrame) -> pandas.DataFrame:
    """Return the numbers of :func:`options_figure`, for all measures."""
    unit = ~summary["measure"].isin(NO_UNIT)
    return pandas.DataFrame(
        {
            "world": summary["option"],
            "measure": summary["measure"].map(MEASURES),
            "slope": summary["slope"].where(unit),
            "95% interval": np.where(unit, interval_texts(summary), "–"),
            "rank within signs": summary["rank within signs"],
            "rank, all words": summary["rank"],
            "worlds": summary["n"],
        }
    )


def other_tables() -> pandas.DataFrame:
    """Return how far counts are off by frequency, and what comparisons of groups find.

    Two tables in one: *compared* says what, *size* is the error of the count, or the root mean
    square of the scaled difference.
    """
    counts, groups = recorded("harder_frequencies"), recorded("harder_intersections")
    kind = counts["zipf"].map({0.0: "nearly equal frequencies", 1.0: "Zipf's law"})
    parts = [
        counts.assign(compared=kind + ", " + counts["third"] + " words", size=counts["error"]),
        groups.assign(compared=groups["groups"]),
    ]
    rows = pandas.concat(parts, ignore_index=True)
    return pandas.DataFrame(
        {
            "compared": rows["compared"],
            "size": rows["size"],
            "95% interval": interval_texts(rows),
            "share of the most gendered tenth": rows["extreme"],
            "rank with what is planted": rows["rank"],
            "worlds": rows["n"],
        }
    )
