"""Figure about harder worlds, from what is recorded of them."""

import pandas

from biaslib.display import marked, subplots
from companion.planted_measures import NARROW
from plantedworld.studies.measures import MEASURES


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
        told = f"{MEASURES[measure].removeprefix('similarity: ')}, {column}"
        axes.plot(rows[column], rows["option"], mark, color=colour, label=told)
    axes.axvline(1, color="0.4", linewidth=1, linestyle="--")
    axes.set_xlim(-0.05, 1.1)
    axes.invert_yaxis()
    axes.tick_params(labelsize=9)
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.2, -0.1))
    return marked(figure)
