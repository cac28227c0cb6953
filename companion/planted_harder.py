"""Figure and table about harder worlds, from what is recorded of them."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, subplots
from plantedworld.studies.measures import MEASURES
from plantedworld.studies.recorded import recorded

NO_UNIT = ("c_asc", "top_k")
"""Measures that are not in log-odds: their slope says nothing."""


def options_figure(summary: pandas.DataFrame):
    """Draw what each option does: the slope of the scaled difference, and ranks within signs.

    Parameters
    ----------
    summary
        Of ``recorded("harder_worlds")``.
    """
    names = summary["option"].drop_duplicates().tolist()
    places = {name: at for at, name in enumerate(names)}
    figure, panels = subplots(1, 2, height=0.42 * len(names) + 1.4, sharey=True)
    slopes = summary[summary["measure"] == "logit"].assign(value=lambda rows: rows["slope"])
    dots(panels[0], slopes["option"].map(places), slopes, "C0")
    panels[0].set_title(MEASURES["logit"], fontsize=10)
    panels[0].axvline(1, color="0.4", linewidth=1, linestyle="--")
    panels[0].set(xlabel="slope", xlim=(0, 1.1))
    marks = {"logit": ("C0", "o", -0.15), "c_asc": ("C1", "D", 0), "top_k": ("C2", "s", 0.15)}
    for measure, (colour, mark, aside) in marks.items():
        rows = summary[summary["measure"] == measure]
        panels[1].plot(
            rows["rank within signs"], rows["option"].map(places) + aside, mark, color=colour,
            label=MEASURES[measure],
        )  # fmt: skip
    panels[1].axvline(0, color="0.4", linewidth=1)
    panels[1].set(xlabel="rank within words of one sign", xlim=(-0.2, 1.1))
    panels[1].legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.4, -0.22))
    panels[0].set_yticks(range(len(names)), names, fontsize=9)
    panels[0].invert_yaxis()
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
