"""The held-out test: figure and tables of what it found."""

import numpy as np
import pandas

from biaslib.display import dots, interval_texts, marked, signed, subplots
from companion.planted_measures import MODELS as NAMES
from companion.planted_measures import NARROW, name_rows

MODELS = NAMES | {
    "vl_bert": "tiny-VL-BERT",
    "visualbert": "tiny-VisualBERT",
    "vilbert": "tiny-ViLBERT",
    "lxmert": "tiny-LXMERT",
}


def row_name(row) -> str:
    """Return what tables call a measure on a model."""
    return f"{row.measure}, {MODELS[row.model]}"


def figure(judged: pandas.DataFrame, dose: float = 3):
    """Draw what was found of order and of size, and where the whole interval has to lie.

    Parameters
    ----------
    judged
        The *verdicts* of :func:`plantedworld.trial.judged`.
    dose
        Of its rows.
    """
    titles = {"rank within signs": "Order within words of one sign", "slope": "Size (slope)"}
    drawn = judged[judged["dose"] == dose].assign(value=lambda rows: rows["mean"])
    sizes = [(drawn["statistic"] == name).sum() for name in titles]
    figure, panels = subplots(2, 1, height=6.4, width=NARROW, height_ratios=sizes)
    for axes, (statistic, title) in zip(panels, titles.items(), strict=True):
        rows = drawn[drawn["statistic"] == statistic]
        at, right = np.arange(len(rows)), rows["most"].where(np.isfinite(rows["most"]), 1.0)
        axes.barh(at, right - rows["least"], left=rows["least"], color="C2", alpha=0.3)
        dots(axes, at, rows, "C0", filled=rows["reached"])
        name_rows(axes, at, [row_name(row) for row in rows.itertuples()])
        axes.set(xlim=(0, None))
        axes.set_title(title, fontsize=10, loc="left")
    return marked(figure)


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
