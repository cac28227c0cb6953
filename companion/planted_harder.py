"""Figure, table and sentences about harder worlds."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, subplots
from plantedworld.studies.measures import MEASURES

NO_UNIT = ("c_asc", "top_k")
"""Measures that are not in log-odds: their slope says nothing."""


def options_figure(summary: pandas.DataFrame):
    """Draw what each option does: the slope of the scaled difference, and ranks within signs.

    Parameters
    ----------
    summary
        Of :func:`plantedworld.studies.harder.summary`.
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


def sentence(
    summary: pandas.DataFrame, frequency: pandas.DataFrame, intersections: pandas.DataFrame
) -> str:
    """Return what harder worlds do to each measure.

    Parameters
    ----------
    summary, frequency, intersections
        Of the functions :func:`plantedworld.studies.harder.summary`,
        :func:`plantedworld.studies.harder.by_frequency` and
        :func:`plantedworld.studies.harder.intersections`.
    """
    slope = summary[summary["measure"] == "logit"].set_index("option")["slope"]
    order = summary[summary["measure"] == "c_asc"].set_index("option")["rank within signs"]
    rare = frequency.set_index(["zipf", "third"])
    zipf = rare.loc[frequency["zipf"].max()]
    size = intersections.set_index("groups")["size"]
    clothes, age = "clothes, gender not shown", "age, gender not shown"
    return (
        "- **Clothes and age.** Where portraits do not show the gender but the clothes go with it, "
        f"the scaled difference has still a slope of {slope[clothes]:.2f}, and where age goes with "
        f"it, one of {slope[age]:.2f}: **a score called gender may be carried by what goes with "
        "it**, and words are ranked as if it were the gender. C-ASC's rank correlation within "
        f"words of one sign falls from {order['as it is']:.2f} to {order[clothes]:.2f} and "
        f"{order[age]:.2f}.\n"
        "- **Labels** that are wrong in one case of ten shrink the slope to "
        f"{slope['noisy labels']:.2f}, and nothing in the scores reveals that; "
        f"C-ASC's rank correlation falls to {order['noisy labels']:.2f}.\n"
        "- **Zipf's law** hardly touches the oracle. A count of captions is off by "
        f"{zipf.loc['rarest', 'error']:.2f} log-odds for the rarest third of the words and by "
        f"{zipf.loc['commonest', 'error']:.2f} for the commonest; the rarest third makes up "
        f"{zipf.loc['rarest', 'extreme']:.0%} of the tenth that a count finds most gendered, "
        "though frequency goes with nothing here "
        f"({rare.loc[(0.0, 'rarest'), 'extreme']:.0%} where frequencies are nearly alike).\n"
        "- **An association that only intersections have** is found neither by comparing genders "
        f"(size {size['women against men']:.2f}) nor by comparing tones "
        f"({size['tone 5 against tone 1']:.2f}); among people of one tone it is "
        f"{size['women of tone 5 against men of tone 5']:.2f}."
    )
