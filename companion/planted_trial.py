"""The held-out test: figure and tables of what it found."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, signed, subplots
from companion.planted_measures import MODELS as NAMES

MODELS = NAMES | {
    "vl_bert": "tiny-VL-BERT",
    "visualbert": "tiny-VisualBERT",
    "vilbert": "tiny-ViLBERT",
    "lxmert": "tiny-LXMERT",
}
STAND_IN_MARKS = {
    "signs alone": "x",
    "label alone": "+",
    "another world": "^",
    "no bias": "s",
    "no picture": "D",
    "groups dealt anew": "v",
}
"""Stand-ins that are drawn beside the scores, and how. The others are scores turned round."""


def row_name(row) -> str:
    """Return what tables call a measure on a model."""
    return f"{row.measure}, {MODELS[row.model]}"


def _row_names(table: pandas.DataFrame) -> list[str]:
    return [f"{row_name(row)}, dose {row.dose:g}" for row in table.itertuples()]


def figure(judged: pandas.DataFrame, beside: pandas.DataFrame):
    """Draw ranks within signs and slopes, with bounds and stand-ins: a row a measure and dose.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.
    beside
        The *stand_ins* of :func:`plantedworld.trial.judged`.
    """
    statistics = ["rank within signs", "slope"]
    rows = judged[judged["statistic"].isin(statistics)]
    names = list(dict.fromkeys(_row_names(rows)))
    figure, panels = subplots(1, 2, height=0.42 * len(names) + 1.7, sharey=True)
    for axes, statistic in zip(panels, statistics, strict=True):
        drawn, others = (table[table["statistic"] == statistic] for table in (rows, beside))
        _draw_targets(axes, drawn, others, {name: at for at, name in enumerate(names)})
        axes.set_title(statistic, fontsize=10)
    panels[0].set_yticks(range(len(names)), names, fontsize=9)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": 4}
    figure.legend(handles, labels, frameon=False, fontsize=8.5, **place)
    return marked(figure)


def _draw_targets(axes, rows: pandas.DataFrame, others: pandas.DataFrame, places: dict) -> None:
    """Draw one statistic: where its targets lie, what was found, and the stand-ins."""
    reach = pandas.concat([rows[each] for each in ("low", "high", "least", "most")])
    right = reach[np.isfinite(reach)].max() + 0.1
    at = [places[name] for name in _row_names(rows)]
    width = rows["most"].clip(upper=right) - rows["least"]
    axes.barh(at, width, left=rows["least"], color="C2", alpha=0.3)
    dots(axes, at, rows.assign(value=rows["mean"]), "C0", label="the models")
    for name, mark in STAND_IN_MARKS.items():
        kept = others[others["scores"] == name]
        at = [places[each] for each in _row_names(kept)]
        look = {"color": "0.35", "markerfacecolor": "none", "markersize": 5, "linestyle": ""}
        axes.plot(kept["mean"], at, mark, label=name, **look)
    axes.axvline(0, color="0.4", linewidth=1)


def verdict_table(judged: pandas.DataFrame, risen: pandas.DataFrame) -> pandas.DataFrame:
    """Return what was asked and found, doses side by side: one row a statistic.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.
    risen
        The *rises* of :func:`plantedworld.trial.judged`.
    """
    targets = judged.assign(
        measure=[row_name(row) for row in judged.itertuples()],
        asked=[asked(row) for row in judged.itertuples()],
    )
    rises = risen.assign(measure="vlbs, tiny-" + risen["model"], dose=3.0, asked="more than 0")
    told = pandas.concat([targets, rises.assign(statistic="rise less that of errors, points")])
    told = told.assign(
        dose=told["dose"].map("dose {:g}".format),
        found=[
            f"{signed(row.mean)} ({ends}), asked {row.asked}: {'yes' if row.reached else 'no'}"
            for row, ends in zip(told.itertuples(), interval_texts(told), strict=True)
        ],
    )
    keys = ["measure", "statistic"]
    table = told.pivot(index=keys, columns="dose", values="found").fillna("not asked")
    worlds = told.groupby(keys)["n"].min().rename("worlds")
    return table.join(worlds).reindex(told[keys].drop_duplicates()).reset_index()


def asked(row) -> str:
    """Return the bounds of a target as text."""
    if np.isinf(row.most):
        return f"{row.least:g} or more"
    return f"{row.least:g} to {row.most:g}"


def attack_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *attacks* of :func:`plantedworld.trial.judged` as they shall be read."""
    return found.rename(
        columns={
            "claims": "claims of a recovery",
            "models": "dosed models, by measure",
            "called unbiased": "called without bias",
        }
    )


def unbiased_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *without_bias* of :func:`plantedworld.trial.judged` as they shall be read."""
    return pandas.DataFrame(
        {
            "measure": found["measure"] + ", " + found["model"].map(MODELS),
            "dose": found["dose"].astype(int),
            "slope on the log-odds of dose 1": found["mean"],
            "90% interval": interval_texts(found, 3),
            "size of scores, upper end": found["size"],
            "positive control, lower end": found["control"],
            "worlds": found["n"],
            "shown to be without bias": np.where(found["shown"], "yes", "no"),
        }
    )


def null_table(found: pandas.DataFrame) -> pandas.DataFrame:
    """Return the *nulls* of :func:`plantedworld.trial.judged` as they shall be read."""
    return pandas.DataFrame(
        {
            "measure": found["measure"],
            "model": found["model"].map(MODELS),
            "at dose 0": found["share"].map(SHARES),
            "mean": found["mean"],
            "95% interval": interval_texts(found),
            "worlds": found["n"],
        }
    )


SHARES = {
    "with the sample": "correlation with the model's own corpus",
    "rejected by portraits": "share of words with p < .05, portraits as units",
    "rejected by drawings": "share of words with p < .05, drawings as units",
}
