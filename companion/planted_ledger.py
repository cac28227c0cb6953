"""What the planted world says of the papers' measures, as tables."""

from pathlib import Path

import numpy as np
import pandas

import plantedworld
from biaslib.display import interval_texts
from companion.planted_trial import MODELS, asked, verdict_table
from plantedworld import trial

DATA = Path(plantedworld.__file__).parent / "data" / "measure_verdicts.csv"

OF_STUDY = {
    "1": ("d, word", "d, sentence", "d, contextual"),
    "2": ("B(E)", "S_PT", "S_L", "S_V"),
    "3": ("difference", "C-ASC", "top k"),
    "4": ("vlbs",),
}
"""What the held-out test calls the measures of each study."""

CALLED = dict.fromkeys(OF_STUDY["1"], "d, Experiment 1") | {
    "difference": "scaled difference",
    "top k": "retrieval, top k",
}
"""What printed numbers call them."""

TITLES = {
    "planted_world": "A world with a known answer",
    "planted_study1_grounded": "Study 1 in the planted world",
}
"""Headings of the pages that show the verdicts."""

QUESTIONS = {
    "signs": "sign",
    "rank within signs": "order within words of one sign",
    "partial rank": "order beyond what the same model says without a picture",
    "slope": "size (slope)",
}
"""What each statistic of the trial asks of a measure."""

OF_PRETRAINING = {"partial rank": "order beyond what the text-only model says"}
"""What is asked otherwise of S_PT, which has no picture: the text-only model takes its place."""


def measures() -> pandas.DataFrame:
    """Return what the planted world says of each measure: one row a measure.

    Returns
    -------
    pandas.DataFrame
        *measure* and the *study* that uses it; *what it finds*, of which *scope*; *page*, where it
        is shown, with numbers. First those of the held-out test, at dose 3: which of their targets
        were reached and which were missed.

    Examples
    --------
    >>> measures().set_index("measure").loc["C-ASC", "what it finds"]
    'Missed: order within words of one sign.'
    """
    found = trial.judged()["verdicts"].query("dose == 3")
    rows = []
    for study, names in OF_STUDY.items():
        own = found[found["measure"].isin(names)]
        for measure, targets in own.groupby(own["measure"].replace(CALLED), sort=False):
            models = ", ".join(MODELS[name] for name in targets["model"].unique())
            rows.append((measure, study, _targets(targets), models, TITLES["planted_world"]))
    table = pandas.read_csv(DATA, dtype=str)
    held_out = pandas.DataFrame(rows, columns=table.columns)
    return pandas.concat([held_out, table.assign(page=table["page"].map(TITLES))])


def _targets(rows: pandas.DataFrame) -> str:
    """Return which targets of a measure were reached, and which not, with models if they differ."""
    levels = rows["measure"].str.partition(", ")[2]
    asks = [
        ", ".join(filter(None, (_question(row), level)))
        for row, level in zip(rows.itertuples(), levels, strict=True)
    ]
    rows, parts = rows.assign(asks=asks, model=rows["model"].map(MODELS)), []
    for reached, word in ((True, "Reached"), (False, "Missed")):
        told = []
        for name, models in rows[rows["reached"] == reached].groupby("asks", sort=False)["model"]:
            some = len(models) < (rows["asks"] == name).sum()
            told.append(f"{name} ({', '.join(models)})" if some else name)
        parts += [f"{word}: {'; '.join(told)}."] if told else []
    return " ".join(parts)


def questions() -> pandas.DataFrame:
    """Return what the held-out test asked of each measure, with its answers and baselines.

    Returns
    -------
    pandas.DataFrame
        *measure*, *model*, *dose*; *question*, of ``QUESTIONS``; *verdict*, yes or no; *mean* over
        *worlds* with its *95% interval*; what was *asked*; *best wrong score*, the kind of stand-in
        that comes highest, or nearest to the middle of two bounds, and *its mean*.
    """
    found = trial.judged()
    judged, keys = found["verdicts"], ["measure", "model", "dose", "statistic"]
    wrong = found["stand_ins"].merge(judged[[*keys, "least", "most"]], on=keys)
    middle = (wrong["least"] + wrong["most"]) / 2
    away = -wrong["mean"].where(np.isinf(middle), -(wrong["mean"] - middle).abs())
    wrong = (
        wrong.assign(away=away).sort_values("away").drop_duplicates(keys)[[*keys, "scores", "mean"]]
    )
    table = judged.merge(wrong, on=keys, how="left", suffixes=("", " of wrong"))
    shares = table["statistic"] == "signs"  # an interval of Student can reach beyond 1
    table["high"] = table["high"].mask(shares, table["high"].clip(upper=1))
    return pandas.DataFrame(
        {
            "measure": table["measure"],
            "model": table["model"].map(MODELS),
            "dose": table["dose"],
            "question": [_question(row) for row in table.itertuples()],
            "verdict": table["reached"].map({True: "yes", False: "no"}),
            "mean": table["mean"],
            "95% interval": interval_texts(table),
            "worlds": table["n"],
            "asked": [asked(row) for row in table.itertuples()],
            "best wrong score": table["scores"].fillna("none asked"),
            "its mean": table["mean of wrong"],
        }
    )


def of_study(study: str) -> pandas.DataFrame:
    """Return what the held-out test found of the measures of one study, at dose 3.

    Examples
    --------
    >>> of_study("3")["measure"].unique().tolist()
    ['difference, tiny-CLIP', 'C-ASC, tiny-CLIP', 'top k, tiny-CLIP']
    """
    found = trial.judged()
    table = verdict_table(found["verdicts"], found["rises"])
    kept = table["measure"].str.partition(", tiny-")[0].isin(OF_STUDY[study])
    return table.loc[kept, ["measure", "statistic", "dose 3", "worlds"]].reset_index(drop=True)


def _question(row) -> str:
    """Return what a target asks of its measure."""
    asks = QUESTIONS | (OF_PRETRAINING if row.measure == "S_PT" else {})
    return asks[row.statistic]
